"""Modules that are imported when they are first used.

sqlglot takes long to load, and a question built in Python needs it only when it is compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module, which is imported when one of its names is first used.

    >>> LazyModule("math").floor(1.5)
    1
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


__all__ = ["LazyModule"]
