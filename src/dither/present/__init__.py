"""Everything a person sees, made from values: pages to hand on, charts, tables on a terminal, fragments in a notebook.

A page is one file without scripts and without anything from elsewhere; its charts are drawn here as SVG, so matplotlib
is needed for plots alone.

>>> import dither as dp
>>> rows = (("north", 41), ("south", 60))
>>> answer = dp.Answer(("region", "n"), ("text", "integer"), rows, {"n": (6.0, 6.0)}, dp.PureDP(0.5))
>>> page = dp.present.html(answer, question="SELECT region, COUNT(*) AS n FROM visits GROUP BY region")
>>> page.startswith("<!DOCTYPE html>"), "<script" in page
(True, False)
"""

from __future__ import annotations

import typing as _typing

if _typing.TYPE_CHECKING:
    from dither.present.drawing import svg
    from dither.present.pages import html, write_html
    from dither.present.plot import (
        compare,
        density,
        error_over_time,
        local_variance,
        noise_beside_data,
        privacy_curve,
        trade_off,
    )

__all__ = [
    "compare",
    "density",
    "error_over_time",
    "html",
    "local_variance",
    "noise_beside_data",
    "privacy_curve",
    "svg",
    "trade_off",
    "write_html",
]

_LATER = {
    "svg": "drawing",
    **dict.fromkeys(["html", "write_html"], "pages"),
    **dict.fromkeys(
        ["compare", "density", "error_over_time", "local_variance", "noise_beside_data", "privacy_curve", "trade_off"],
        "plot",
    ),
}
"""Names that are loaded when they are first asked for.

Every floor of the house shows its values with the low modules of this package (text, charts, fragments); the public
functions stand above all floors, so that importing the package may not import them.
"""


def __getattr__(name: str) -> _typing.Any:
    """Import a public name when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module 'dither.present' has no attribute {name!r}", name=name)
    import importlib

    return getattr(importlib.import_module(f"dither.present.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
