"""Optional packages: imported where they are used, and named in the error where they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dither.errors import MissingPackage, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame
else:  # known to type checkers; nothing is imported to read an annotation
    Axes = PandasFrame = PolarsFrame = Any

_PACKAGES = {"sklearn": "scikit-learn"}


def need(module: str, extra: str) -> Any:
    """A module of an extra, or an error that names the extra to install.

    >>> need("numpy", "test").__name__
    'numpy'
    >>> need("nowhere", "plot")
    Traceback (most recent call last):
    dither.MissingPackage: nowhere: expected the package to be installed, got none. Fix: run pip install
    'dither[plot]'.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        top = module.partition(".")[0]
        text = message(
            _PACKAGES.get(top, top), "the package to be installed", "none", f"run pip install 'dither[{extra}]'"
        )
        raise MissingPackage(text, name=top) from missing


__all__ = ["Axes", "PandasFrame", "PolarsFrame", "need"]
