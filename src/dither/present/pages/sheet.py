"""The skeleton of all pages: one style sheet, sections, tables, figures, and writing to a file.

Pages hold no script, load nothing, and are the same for the same values.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from dither.errors import InvalidArgument
from dither.ledger.files import write_durably
from dither.present import drawing, markup
from dither.present.chart import Chart
from dither.present.text import escaped

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #ffffff; max-width: 50rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; }
figcaption { color: #444444; padding-bottom: .4rem; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #c8c8c8; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.facts table { width: 100%; }
.facts td { overflow-wrap: anywhere; }
.facts th { width: 12rem; }
.facts td + td { color: #444444; white-space: nowrap; }
pre { background: #f2f2f2; padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
svg { max-width: 100%; }
svg.scaled { height: auto; }
.scroll { overflow-x: auto; }
.side-by-side { display: flex; flex-wrap: wrap; gap: 1rem 1.5rem; }
.side-by-side figure { margin: 0; max-width: 100%; }
@media (max-width: 40rem) {
  .facts th, .facts td { display: block; width: auto; }
  .facts th { border: 0; padding-bottom: 0; }
}
"""


def page(title: str, *parts: str) -> str:
    """Return a complete HTML page.

    >>> "<h1>a &lt; b</h1>" in page("a < b"), page("").startswith("<!DOCTYPE html>")
    (True, True)
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escaped(title)}</h1>\n{''.join(parts)}</main>\n</body>\n</html>\n"
    )


def section(title: str, *parts: str) -> str:
    """Return a heading and the parts below it."""
    return f"<h2>{escaped(title)}</h2>\n{''.join(parts)}"


def paragraph(text: object) -> str:
    """Return a paragraph."""
    return f"<p>{escaped(text)}</p>\n"


def listed(texts: Iterable[object]) -> str:
    """Return a bulleted list."""
    return "<ul>\n" + "".join(f"<li>{escaped(text)}</li>\n" for text in texts) + "</ul>\n"


def table(
    headings: Sequence[object], rows: Iterable[Sequence[object]], caption: str, right: Sequence[bool] = ()
) -> str:
    """Return a captioned table that scrolls if it is wider than the page; the first cell of a row is its header.

    ``right`` says of each column whether it is flush right, as numbers are; empty: none is.
    """
    body = markup.table(headings, rows, right, named_rows=True, inline=False)
    return (
        f'<figure>\n<figcaption>{escaped(caption)}</figcaption>\n<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escaped(caption)}">\n{body}\n</div>\n</figure>\n'
    )


def facts(pairs: Iterable[Sequence[object]]) -> str:
    """Return a table of names and values."""
    return f'<div class="facts">\n{markup.facts(pairs, inline=False)}\n</div>\n'


def figure(chart: Chart, width: int = 680, height: int = 200) -> str:
    """Return a chart as a figure."""
    return f"<figure>\n{drawing.svg(chart, width=width, height=height)}\n</figure>\n"


def side_by_side(figures: Iterable[str]) -> str:
    """Return figures in rows, as many beside each other as fit."""
    return f'<div class="side-by-side">\n{"".join(figures)}</div>\n'


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write the ``text`` of a page to the file ``path``, which is replaced atomically."""
    try:
        write_durably(Path(path), text.encode("utf-8"), mode=0o644)
    except OSError:
        raise InvalidArgument(
            "report", "a file in a folder that can be written", "one that cannot be", "choose a different path"
        ) from None
