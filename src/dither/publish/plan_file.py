"""Plan files: what is to be published, in TOML, read with every mistake named.

A plan looks like this; paths in it start from its folder::

    card = "visits.toml"
    tables = [["state"], ["state", "age"], { by = ["county", "sex"], error = "2%" }]

    [budget]
    epsilon = 1
    delta = 1e-9

    [columns.age]
    edges = [0, 18, 65, 120]

    [nested.geo]
    levels = ["state", "county"]
    lookup = "places.csv"

``docs/publishing.md`` has every key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dither.publish.publication_plan import Plan
from dither.tables.card.toml import check_names, contents, kind_of, missing, read_bytes, wrong
from dither.tables.card.values import clip
from dither.tables.table import Table
from dither.tables.table import open as open_table

KEYS = (
    "card", "about", "tables", "columns", "nested", "lookups", "totals", "where", "max_rows", "bias", "rows",
    "objective", "whole", "budget",
)  # fmt: skip
_SECTIONS = ("columns", "nested", "lookups", "budget")


def plan(path: str | os.PathLike[str], table: Table | None = None, *, read_only: bool = False) -> Plan:
    """The plan in a file, for the table of its card, or for one that is open already.

    ``read_only`` opens the card's table to explain the plan only: no ledger is made, and nothing can be released. Close
    the plan when it is done, or use it in a ``with``: that closes its table.

    >>> import tempfile
    >>> import dither as dp, pyarrow as pa
    >>> rows = pa.table({"sex": ["f", "m"] * 500})
    >>> with tempfile.TemporaryDirectory() as folder, dp.open(rows, budget=dp.ZCDP(1)) as people:
    ...     place = Path(folder, "plan.toml")
    ...     _ = place.write_text('tables = [["sex"]]\\ncolumns.sex.keys = ["f", "m"]\\nbudget.rho = 0.5')
    ...     print(plan(place, people).release().table("sex").column_names)
    ['sex', 'value', 'lower', 'upper', 'integer']
    """
    place = Path(path)
    given = read_plan(place)
    folder = place.absolute().parent
    if table is not None:
        return plan_of(given, table, folder)
    opened = open_table(str(card_path(given, folder)), read_only=read_only)
    try:
        return plan_of(given, opened, folder)
    except BaseException:
        opened.close()
        raise


def read_plan(place: Path) -> dict[str, Any]:
    """The contents of a plan's file, whose keys are checked."""
    raw = read_bytes(place, "plan", "or draft one from a card with dither publish --draft CARD")
    given = contents(raw, "plan", place)
    if "source" in given or ("columns" in given and "tables" not in given and "card" not in given):
        fix = f"draft a plan from it: dither publish --draft {clip(place.name)}"
        raise wrong("plan", "a plan of tables", "a card", fix)
    check_names(given, KEYS, "")
    for key in _SECTIONS:
        if not isinstance(given.get(key, {}), Mapping):
            raise wrong(key, "a section", kind_of(given[key]), f"write [{key}] and its keys below")
    _check_places(given)
    return given


def _check_places(given: Mapping[str, Any]) -> None:
    """Refuse a key of the plan that stands below a section: in TOML it belongs to that section."""
    sections = {"budget": given.get("budget", {})}
    for key in ("columns", "nested"):
        sections |= {f"{key}.{name}": section for name, section in given.get(key, {}).items()}
    totals = given.get("totals", [])
    sections |= {f"totals[{i}]": item for i, item in enumerate(totals if isinstance(totals, list) else [])}
    for place, section in sections.items():
        for key in section if isinstance(section, Mapping) else ():
            if key in KEYS and key not in _SECTIONS:
                fix = f"move the line {key} = … up, above the first line in [brackets]"
                raise wrong(
                    f"{clip(place)}.{key}", f"{key} outside of every section", f"one below [{clip(place)}]", fix
                )


def card_path(given: Mapping[str, Any], folder: Path) -> Path:
    """Where the card of a plan is."""
    name = given.get("card")
    if not isinstance(name, str) or not name.strip():
        got = "none" if name is None else kind_of(name) if not isinstance(name, str) else "empty text"
        raise wrong("card", "the path of a card", got, 'write card = "visits.toml"')
    place = Path(os.path.normpath(folder / os.path.expanduser(name)))
    if place.suffix.lower() != ".toml":
        raise wrong("card", "a file that ends in .toml", repr(clip(name)), "name the card of the table")
    if not place.is_file():
        raise missing(place, "card", "which starts from the folder of the plan")
    return place


def plan_of(given: Mapping[str, Any], table: Table, folder: Path) -> Plan:
    """The plan that a file's contents say, for an open table."""
    where, about = given.get("where"), given.get("about")
    for key, value in (("where", where), ("about", about)):
        if value is not None and not isinstance(value, str):
            raise wrong(key, "text", kind_of(value), f'write {key} = "…"')
    for key in ("max_rows", "rows"):
        value = given.get(key)
        if key == "max_rows" and value == "auto":
            continue
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            got = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else kind_of(value)
            fix = f"write {key} = 1000, for example" + (', or max_rows = "auto"' if key == "max_rows" else "")
            raise wrong(key, "a whole number from 1 on", got, fix)
    bias = given.get("bias", False)
    if not isinstance(bias, bool):
        raise wrong("bias", "true or false", kind_of(bias), "write bias = true, or leave it out")
    totals = given.get("totals")
    if totals is not None and not isinstance(totals, list):
        fix = 'write [[totals]], and below it by = ["state"] and counts = { A = 100, B = 200 }'
        raise wrong("totals", "a section for each table", kind_of(totals), fix)
    return Plan(
        table=table,
        tables=given.get("tables", []),
        columns=given.get("columns"),
        nested=given.get("nested"),
        lookups=given.get("lookups"),
        totals=totals,
        where=where,
        max_rows=given.get("max_rows"),
        bias=bias,
        objective=given.get("objective", "sum"),
        whole=given.get("whole", True),
        rows=given.get("rows"),
        about=about,
        budget=given.get("budget"),
        folder=str(folder),
    )
