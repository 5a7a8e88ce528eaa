"""Plots to files: whether they can be drawn is asked before anything is charged."""

from __future__ import annotations

from importlib.util import find_spec

from dither.errors import InvalidArgument, message


def check(path: str | None) -> None:
    """Refuse a plot if what draws it is not installed.

    >>> check(None)
    """
    if path is not None and find_spec("matplotlib") is None:
        raise InvalidArgument(
            message("--plot", "matplotlib, which draws it", "none installed", "run pip install 'dither[plot]'")
        )
