"""Optional packages: imported where they are used, and named in the error where they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dither.errors import MissingPackage

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import polars

    Axes = matplotlib.axes.Axes
    PandasFrame = pandas.DataFrame
    PolarsFrame = polars.DataFrame
else:  # known to type checkers; nothing is imported to read an annotation
    Axes = PandasFrame = PolarsFrame = Any

_PACKAGES = {"sklearn": "scikit-learn"}


def need(module: str, extra: str) -> Any:
    """Import a module of an optional package; if it is missing, raise an error that names the extra to install.

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
        package, fix = _PACKAGES.get(top, top), f"run pip install 'dither[{extra}]'"
        raise MissingPackage(package, "the package to be installed", "none", fix, name=top) from missing
