"""The public names of dither, from the ``__all__`` of its packages, and where each of them is described."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import Any

import dither
from dither.public_module import defining_module

PACKAGES = (
    *("accounting", "audit", "course", "density", "learn", "ledger", "local", "mechanisms", "present", "publish"),
    *("sensitivity", "stats", "stream"),
)
"""Packages with names for users. A package that is not there yet is passed over; one that is missing here is caught by
the test that compares this list with ``tests/test_public_face.py``."""

LOWER = ("exact", "inference", "randomness")
"""Packages below the public face, described after the others."""

ONLY_BY_NAME = ("max", "min", "open", "sum")
"""Names of ``dither`` that ``from dither import *`` leaves alone."""


@dataclass(frozen=True)
class Name:
    """A public name: the package that offers it, the object, and the full name under which it is described."""

    package: str
    name: str
    value: Any
    home: str

    @property
    def full(self) -> str:
        """As users write it."""
        return f"{self.package}.{self.name}"

    @property
    def kind(self) -> str:
        """The directive of autodoc that describes it."""
        if inspect.ismodule(self.value):
            return "module"
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if inspect.isroutine(self.value) else "data"

    @property
    def first_line(self) -> str:
        """What it is, in a line: the first sentence of its docstring."""
        text = inspect.getdoc(self.value) or ""
        if self.kind == "data":
            text = f"A constant: {shortened(repr(self.value))}."
        paragraph = " ".join(text.split("\n\n")[0].split())
        return paragraph if len(paragraph) <= 200 else paragraph.split(". ")[0].rstrip(".") + "."


def shortened(text: str) -> str:
    """At most 60 signs."""
    return text if len(text) <= 60 else text[:57] + "…"


def packages() -> list[str]:
    """The packages that are there, by their full names."""
    present = []
    for name in (*PACKAGES, *LOWER):
        try:
            importlib.import_module(f"dither.{name}")
        except ModuleNotFoundError as missing:
            if missing.name != f"dither.{name}":
                raise
        else:
            present.append(f"dither.{name}")
    return ["dither", *present]


def public_names(package: str) -> list[Name]:
    """Every public name of a package, without its version and without packages inside it."""
    module = importlib.import_module(package)
    listed = [*module.__all__, *(ONLY_BY_NAME if module is dither else ())]
    result = []
    for name in listed:
        value = getattr(module, name)
        if inspect.ismodule(value) or name == "__version__":
            continue
        result.append(Name(package, name, value, _home(package, name, value)))
    return sorted(result, key=lambda item: item.name.lower())


def _home(package: str, name: str, value: Any) -> str:
    """Where it is described: a name that ``dither`` offers too is described there."""
    shared = package != "dither" and name in dither.__all__ and getattr(dither, name) is value
    return f"dither.{name}" if shared else f"{package}.{name}"


def family(item: Name) -> str:
    """The page of a name of ``dither`` itself: by the package its code is in."""
    where = defining_module(item.value) if inspect.isclass(item.value) else getattr(item.value, "__module__", "")
    for prefix, page in _FAMILIES:
        if str(where).startswith(prefix) or (item.name in ("AddRemove", "ReplaceOne") and page == "guarantees"):
            return page
    return "guarantees"


_FAMILIES = (
    ("dither.mechanisms", "mechanisms"), ("dither.tables.builder", "aggregates"), ("dither.tables", "tables"),
    ("dither.client", "tables"),
    ("dither.errors", "errors"), ("dither.guarantees", "guarantees"), ("dither.neighbors", "guarantees"),
)  # fmt: skip
