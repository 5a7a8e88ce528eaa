"""One page of HTML about a series: a line with its band for each aggregate, the last points, and what it cost."""

from __future__ import annotations

import os

from dither.errors import InvalidArgument
from dither.present.markup import escaped
from dither.present.pages.sheet import FOOT, head, write
from dither.stream.series_answer import SeriesAnswer
from dither.stream.series_chart import line_chart

MAX_ROWS = 200


def series_page(answer: SeriesAnswer, title: str = "A series of private numbers") -> str:
    """The page, as text.

    >>> from dither.guarantees import PureDP
    >>> from datetime import date
    >>> rows = ((date(2026, 1, 1), 4.0), (date(2026, 1, 2), 7.0))
    >>> page = series_page(SeriesAnswer(("day", "n"), ("date", "number"), rows, {"n": (1.0, 1.5)}, PureDP(1)), "a < b")
    >>> page.startswith("<!DOCTYPE html>"), page.count("<polygon"), "<script" in page, "a &lt; b" in page
    (True, 1, False, True)
    """
    if not isinstance(answer, SeriesAnswer):
        fix = "pass what release() of a series returned"
        raise InvalidArgument("answer", "the points of a series", type(answer).__name__, fix)
    parts = [head(title), "<h2>Over time</h2>\n"]
    names = [name for name in answer.columns if name in answer.errors]
    parts += [f"<figure>\n{line_chart(answer, name)}</figure>\n" for name in names if answer.rows]
    if answer.notes:  # beside the lines that they are about
        parts.append("<ul>\n" + "".join(f"<li>{escaped(str(note))}</li>\n" for note in answer.notes) + "</ul>\n")
    parts += [_facts(answer), _points(answer), _promises(answer), FOOT]
    return "".join(parts)


def write_series(
    path: str | os.PathLike[str], answer: SeriesAnswer, title: str = "A series of private numbers"
) -> None:
    """Write the page to a file; it appears whole or not at all.

    >>> from dither.guarantees import PureDP
    >>> import tempfile
    >>> from pathlib import Path
    >>> answer = SeriesAnswer(("day", "n"), ("date", "number"), (), {"n": ()}, PureDP(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_series(folder + "/series.html", answer)
    ...     Path(folder, "series.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    write(path, series_page(answer, title))


def _facts(answer: SeriesAnswer) -> str:
    facts = [("cost", f"{answer.cost}, once for the whole series")]
    facts += [] if answer.remaining is None else [("left of the budget", str(answer.remaining))]
    facts += [("receipt", answer.receipt)] if answer.receipt else []
    lines = "".join(f'<tr><th scope="row">{name}</th><td>{escaped(text)}</td></tr>\n' for name, text in facts)
    return (
        '<h2>What it cost</h2>\n<table class="facts">\n<caption>Cost, and what is left.</caption>\n'
        f"<tbody>\n{lines}</tbody>\n</table>\n"
    )


def _points(answer: SeriesAnswer) -> str:
    headings, lines = answer.table()
    names = "".join(
        f'<th scope="col"{" class=n" if heading.numeric else ""}>{escaped(heading.text)}</th>' for heading in headings
    )
    rows = []
    for line in lines[-MAX_ROWS:]:
        first, *rest = ("NULL" if cell is None else escaped(cell) for cell in line)
        kinds = [' class="n"' if heading.numeric else "" for heading in headings[1:]]
        cells = "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, rest, strict=True))
        rows.append(f'<tr><th scope="row">{first}</th>{cells}</tr>\n')
    caption = "± is how far the noise may have moved each number, with 95 % confidence."
    if len(lines) > MAX_ROWS:
        caption += f" The last {MAX_ROWS} of {len(lines):,} points."
    return (
        f'<h2>Points</h2>\n<div class="wide">\n<table>\n<caption>{caption}</caption>\n<thead><tr>{names}</tr></thead>\n'
        f"<tbody>\n{''.join(rows)}</tbody>\n</table>\n</div>\n"
    )


def _promises(answer: SeriesAnswer) -> str:
    lines = [
        f"All points of the whole series together, those still to come too, are private at {answer.cost}.",
        "A point that is out does not change, neither when rows are added, changed or deleted, nor when asked again.",
        "Errors of neighboring points are correlated: two points may both be too high.",
    ]
    return "<h2>What is promised</h2>\n<ul>\n" + "".join(f"<li>{escaped(line)}</li>\n" for line in lines) + "</ul>\n"
