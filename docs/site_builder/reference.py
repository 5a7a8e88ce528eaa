"""The reference: a page for each package and, of ``dither`` itself, for each family of names."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable

from site_builder.public_names import LOWER, Name, family, packages, public_names, shortened

FAMILIES = {
    "tables": ("Tables", "What a steward opens and an analyst asks: `dp.open`, and what comes back."),
    "aggregates": (
        "Aggregates",
        'What a question asks for, in Python: `visits.group_by("region").agg(n=dp.count())`. '
        "In SQL they are `COUNT`, `SUM`, `AVG` and so on.",
    ),
    "mechanisms": (
        "Mechanisms",
        "A mechanism is frozen and checked when it is built; nothing is random until it releases. Each states what it "
        "promises and why.",
    ),
    "guarantees": ("Guarantees and neighbors", "What is promised, and to whom."),
    "errors": ("Errors", "Every error says what was expected, what was given and what to do. None holds a data value."),
}


def pages() -> dict[str, str]:
    """The text of every page of the reference by its path below ``generated/reference``."""
    result: dict[str, str] = {}
    groups: dict[str, list[Name]] = {page: [] for page in FAMILIES}
    for item in public_names("dither"):
        groups[family(item)].append(item)
    for page, (title, text) in FAMILIES.items():
        result[page] = _page(title, text, groups[page])
    for package in packages()[1:]:
        short = package.removeprefix("dither.")
        result[f"package-{short}"] = _package_page(package)
    return result


def described() -> set[str]:
    """The full names that have an entry of their own."""
    return {item.home for package in packages() for item in public_names(package)}


def index_entries() -> list[tuple[str, str, str]]:
    """Path, title and text of every page, for the index of the reference."""
    rows = [(page, title, text) for page, (title, text) in FAMILIES.items()]
    for package in packages()[1:]:
        text = (inspect.getdoc(importlib.import_module(package)) or "").split("\n\n")[0]
        short = package.removeprefix("dither.")
        lower = " (below the public face)" if short in LOWER else ""
        rows.append((f"package-{short}", f"{package}{lower}", " ".join(text.split()).replace("``", "`")))
    return rows


def _package_page(package: str) -> str:
    names = public_names(package)
    summary = f"```{{eval-rst}}\n.. automodule:: {package}\n   :no-members:\n```\n"
    return _page(package, summary, names)


def _page(title: str, text: str, names: list[Name]) -> str:
    lines = [f"# {title}", "", text, "", *_table(names), ""]
    for item in names:
        if item.home == item.full:
            lines += [f"## {item.name}", "", *_entry(item), ""]
    return "\n".join(lines)


def _table(names: Iterable[Name]) -> list[str]:
    rows = [f"   * - :py:obj:`{item.full} <{item.home}>`\n     - {_plain(item.first_line)}" for item in names]
    return ["```{eval-rst}", ".. list-table::", "   :widths: 30 70", "   :class: names", "", *rows, "```"]


def _plain(text: str) -> str:
    """A line of a docstring without markup that could be cut in two."""
    without_code = re.sub(r":\w+:`~?([^`<]*)[^`]*`|`+", lambda match: match.group(1) or "", text)
    return re.sub(r"([*|_\\])", r"\\\1", without_code)


def _entry(item: Name) -> list[str]:
    if item.kind == "data":
        text = inspect.getdoc(item.value) if type(item.value).__module__.startswith("dither") else ""
        first = (text or "").split("\n\n")[0].splitlines()
        value = shortened(repr(item.value))
        return [
            "```{eval-rst}",
            f".. py:data:: {item.home}",
            f"   :value: {value}",
            "",
            *(f"   {x}" for x in first),
            "```",
        ]
    directive = "autofunction" if item.kind == "function" else f"auto{item.kind}"
    options = ["   :members:", "   :inherited-members: tuple, Enum, int, float, Exception"]
    if item.kind == "function":
        options = []
    elif item.kind == "exception":
        options = ["   :show-inheritance:"]
    return ["```{eval-rst}", f".. {directive}:: {item.home}", *options, "```"]
