"""HTML of notebooks and pages: tables, lists of facts, code and pictures, in which nothing from the data is a tag.

A fragment for a notebook has no script and no style sheet, and takes its colors from where it is shown: it is legible
on a light and on a dark ground. A page has a style sheet, so that its parts are made with ``inline=False``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from dither.present import drawing
from dither.present.chart import Chart
from dither.present.text import escaped

_CELL = "padding:.15em 1em .15em 0;border-bottom:1px solid rgba(128,128,128,.35);vertical-align:top"
_SIDES = {
    True: f"{_CELL};text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap",
    False: f"{_CELL};text-align:left",
}
_TABLE = "border-collapse:collapse;background:transparent;color:inherit;margin:.5em 0"


class Explained(NamedTuple):
    """A table heading with a tooltip."""

    text: str
    explanation: str


def block(*parts: str) -> str:
    """Wrap fragments in a block that scrolls horizontally if it is wider than the page."""
    return f'<div style="overflow-x:auto;max-width:100%">{"".join(parts)}</div>'


def heading(text: object) -> str:
    """Return a short line in bold."""
    return f'<div style="font-weight:bold;padding:.3em 0">{escaped(text)}</div>'


def picture(chart: Chart) -> str:
    """Render a chart for a notebook, below its title if it has no heading."""
    title = "" if chart.heading else lines([chart.title])
    return title + drawing.svg(chart, width=480, height=150, style="max-width:100%")


def code(text: str) -> str:
    """Render source text with its line breaks."""
    style = "background:transparent;color:inherit;margin:.3em 0;white-space:pre-wrap;overflow-wrap:anywhere"
    return f'<pre style="{style}">{escaped_lines(text)}</pre>'


def escaped_lines(text: str) -> str:
    """Escape text for HTML and keep its line ends."""
    return "\n".join(escaped(line) for line in text.splitlines())


def lines(texts: Iterable[object]) -> str:
    """Render texts as lines of a notebook."""
    style = "padding-top:.3em;opacity:.85;max-width:60em;text-align:left"
    return "".join(f'<div style="{style}">{escaped(text)}</div>' for text in texts)


def folded(title: str, content: str, *, inline: bool = True) -> str:
    """Render content that opens on demand below its title; nothing where there is none.

    >>> folded("2 more notes", lines(["a", "b"])).startswith("<details"), folded("0 more notes", "")
    (True, '')
    """
    look = ' style="padding-top:.3em;opacity:.85"' if inline else ""
    return f"<details{look}><summary>{escaped(title)}</summary>{content}</details>\n" if content else ""


def table(
    headings: Sequence[object],
    rows: Iterable[Sequence[object]],
    right: Sequence[bool] = (),
    *,
    named_rows: bool = False,
    inline: bool = True,
) -> str:
    """Render an HTML table of ``rows`` under ``headings``; None is shown as NULL, and columns marked in ``right`` are
    flush right.

    With ``named_rows`` the first cell of a row is its name. ``inline`` writes the style into each tag, for notebooks,
    which have no style sheet of ours.

    >>> "&lt;b&gt;" in table(["<b>", "n"], [["north", 41], [None, 6]], [False, True])
    True
    """
    sides = right or [False] * max(len(headings), 1)

    def cell(tag: str, content: object, flush: bool, scope: str = "") -> str:
        """Render one cell."""
        look = f' style="{_SIDES[flush]}"' if inline else ' class="n"' if flush else ""
        text = "<em>NULL</em>" if content is None else escaped(content)
        if isinstance(content, Explained):
            text = f'<abbr title="{escaped(content.explanation)}">{escaped(content.text)}</abbr>'
        return f"<{tag}{scope}{look}>{text}</{tag}>"

    head = "".join(
        cell("th", name, flush, ' scope="col"') if name != "" else "<td></td>"
        for name, flush in zip(headings, sides, strict=False)
    )
    body = []
    for row in rows:
        first = [cell("th", row[0], sides[0] and inline, ' scope="row"')] if named_rows else []
        rest = [cell("td", text, flush) for text, flush in zip(row, sides, strict=True)][len(first) :]
        body.append(f"<tr>{''.join(first + rest)}</tr>\n")
    look = f' style="{_TABLE}"' if inline else ""
    top = f"<thead><tr>{head}</tr></thead>" if headings else ""
    return f"<table{look}>{top}<tbody>{''.join(body)}</tbody></table>"


def facts(pairs: Iterable[Sequence[object]], *, inline: bool = True) -> str:
    """Render a table of names and values, a line each.

    >>> "<th" in facts([("cost", "ε = 1")]), "NULL" in facts([("cost", None)])
    (True, True)
    """
    rows = list(pairs)
    columns = max((len(row) for row in rows), default=2)
    return table((), rows, [False] * columns, named_rows=True, inline=inline)


def guarantee(text: str, epsilon: Fraction | None, except_delta: bool) -> str:
    """Render a privacy guarantee and what it means for one person; ``epsilon`` None stands for zCDP.

    >>> "e^ε = 1.65" in guarantee("ε = 0.5", Fraction(1, 2), except_delta=False)
    True
    """
    if epsilon is None:
        meaning = "zero-concentrated differential privacy: ρ adds up over releases; to_approx(delta) converts it"
    else:
        factor = f" = {math.ceil(math.exp(epsilon) * 100) / 100:,.2f}" if epsilon <= 10 else ""
        meaning = f"with or without one person's data, any outcome is as likely to within a factor of e^ε{factor}"
        meaning += ", plus a probability of at most δ" if except_delta else ""
    return block(heading(text), lines([meaning]))
