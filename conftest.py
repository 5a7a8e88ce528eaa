"""Doctests of all of dither are collected, each class's from the file that defines it, and every test is seeded."""

import doctest
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dither.audit  # noqa: F401  (loaded before doctests are collected: pytest would execute its first module twice)
from dither.public_module import defining_module

sys.path.insert(0, str(Path(__file__).parent / "tests"))
pytest_plugins = ["support_seeding"]

_is_from_module = doctest.DocTestFinder._from_module


def _from_module(finder: Any, module: ModuleType | None, thing: Any) -> bool:
    """Whether a thing is defined in this module; public classes are named by their package, not by their file."""
    if module is not None and inspect.isclass(thing):
        return module.__name__ == defining_module(thing)
    return bool(_is_from_module(finder, module, thing))


doctest.DocTestFinder._from_module = _from_module


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Close the figures of a test: matplotlib warns of many open ones, and a warning fails a test."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
