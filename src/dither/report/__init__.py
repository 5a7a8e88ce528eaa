"""An answer as a page to hand on: the table, its errors, what it cost, what is left, and what is promised.

One file without scripts and without anything from elsewhere; drawn here, so matplotlib is not needed.

>>> from dither.tables.answer import Answer
>>> answer = Answer(("region", "n"), ("text", "integer"), (("north", 41), ("south", 60)), {"n": (6.0, 6.0)}, "ε = 0.5")
>>> page = html(answer, question="SELECT region, COUNT(*) AS n FROM visits GROUP BY region")
>>> page.startswith("<!DOCTYPE html>"), "<script" in page
(True, False)
"""

from __future__ import annotations

from dither.report.chart import chart
from dither.report.page import html, write_html
from dither.report.publication import publication_page, write_publication
from dither.report.series import series_page, write_series
from dither.report.synthetic import synthetic_page, write_synthetic

__all__ = [
    "chart",
    "html",
    "publication_page",
    "series_page",
    "synthetic_page",
    "write_html",
    "write_publication",
    "write_series",
    "write_synthetic",
]


def __dir__() -> list[str]:
    return sorted(__all__)
