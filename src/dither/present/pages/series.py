"""One page about a series: a line with its band for each aggregate, the last points, and what it cost."""

from __future__ import annotations

from dither.present.pages import sheet
from dither.stream.series_answer import SeriesAnswer

MAX_ROWS = 200


def series_page(answer: SeriesAnswer, title: str) -> str:
    """Return the page."""
    names = [name for name in answer.columns if name in answer.errors]
    figures = [sheet.figure(answer.chart(name), height=240) for name in names if answer.rows]
    facts = [("cost", f"{answer.cost}, once for the whole series")]
    facts += [] if answer.remaining is None else [("left of the budget", str(answer.remaining))]
    facts += [("receipt", answer.receipt)] if answer.receipt else []
    headings, lines = answer.table()
    caption = "± is how far the noise may have moved each number, with 95 % confidence."
    if len(lines) > MAX_ROWS:
        caption += f" The last {MAX_ROWS} of {len(lines):,} points."
    points = sheet.table(
        [item.text for item in headings], lines[-MAX_ROWS:], caption, [item.numeric for item in headings]
    )
    promises = [
        f"All points of the whole series together, those still to come too, are private at {answer.cost}.",
        "A published point does not change, neither when rows are added, changed or deleted, nor when asked again.",
        "Errors of neighboring points are correlated: two points may both be too high.",
    ]
    return sheet.page(
        title,
        # the notes stand beside the lines that they are about
        sheet.section("Over time", *figures, sheet.listed(answer.notes) if answer.notes else ""),
        sheet.section("What it cost", sheet.facts(facts)),
        sheet.section("Points", points),
        sheet.section("What is promised", sheet.listed(promises)),
    )
