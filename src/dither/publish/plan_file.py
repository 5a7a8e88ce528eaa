"""Plan files: the tables to publish, in TOML, with an error for every mistake in them.

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

:func:`draft_plan` writes a first plan from a card: its columns with their public domains, and two tables.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dither.guarantees import ZCDP, ApproxDP
from dither.publish.publication_plan import Plan
from dither.tables.card.model import Card, ColumnCard
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
    """Return the plan in a file, for an open ``table`` or, if it is None, for the table of the card that the plan
    names.

    ``read_only`` opens that table for explaining the plan only: no ledger is made, and nothing can be released. Closing
    the plan, or leaving its ``with`` block, closes the table.

    >>> import tempfile
    >>> import dither as dp, pyarrow as pa
    >>> rows = pa.table({"sex": ["f", "m"] * 500})
    >>> with tempfile.TemporaryDirectory() as folder, dp.open(rows, budget=dp.ZCDP(1)) as people:
    ...     file = Path(folder, "plan.toml")
    ...     _ = file.write_text('tables = [["sex"]]\\ncolumns.sex.keys = ["f", "m"]\\nbudget.rho = 0.5')
    ...     print(plan(file, people).release().table("sex").column_names)
    ['sex', 'value', 'lower', 'upper', 'integer']
    """
    file = Path(path)
    given = read_plan(file)
    folder = file.absolute().parent
    if table is not None:
        return plan_of(given, table, folder)
    opened = open_table(str(card_path(given, folder)), read_only=read_only)
    try:
        return plan_of(given, opened, folder)
    except BaseException:
        opened.close()
        raise


def read_plan(file: Path) -> dict[str, Any]:
    """Return the parsed TOML of a plan file; refuse unknown keys and files of another kind, such as a card."""
    raw = read_bytes(file, "plan", "or draft one from a card with dither publish --draft CARD")
    given = contents(raw, "plan", file)
    if "source" in given or ("columns" in given and "tables" not in given and "card" not in given):
        fix = f"draft a plan from it: dither publish --draft {clip(file.name)}"
        raise wrong("plan", "a plan of tables", "a card", fix)
    check_names(given, KEYS, "")
    for key in _SECTIONS:
        if not isinstance(given.get(key, {}), Mapping):
            raise wrong(key, "a section", kind_of(given[key]), f"write [{key}] and its keys below")
    _check_places(given)
    return given


def _check_places(given: Mapping[str, Any]) -> None:
    """Refuse a plan in which a top-level key is written below a section header, so that TOML assigns it to the
    section."""
    sections = {"budget": given.get("budget", {})}
    for key in ("columns", "nested"):
        sections |= {f"{key}.{name}": section for name, section in given.get(key, {}).items()}
    totals = given.get("totals", [])
    sections |= {f"totals[{i}]": item for i, item in enumerate(totals if isinstance(totals, list) else [])}
    for name, section in sections.items():
        for key in section if isinstance(section, Mapping) else ():
            if key in KEYS and key not in _SECTIONS:
                fix = f"move the line {key} = … up, above the first line in [brackets]"
                raise wrong(f"{clip(name)}.{key}", f"{key} outside of every section", f"one below [{clip(name)}]", fix)


def card_path(given: Mapping[str, Any], folder: Path) -> Path:
    """Return the path of the card that a plan names, relative to the folder of the plan."""
    name = given.get("card")
    if not isinstance(name, str) or not name.strip():
        got = "none" if name is None else kind_of(name) if not isinstance(name, str) else "empty text"
        raise wrong("card", "the path of a card", got, 'write card = "visits.toml"')
    file = Path(os.path.normpath(folder / os.path.expanduser(name)))
    if file.suffix.lower() != ".toml":
        raise wrong("card", "a file that ends in .toml", repr(clip(name)), "name the card of the table")
    if not file.is_file():
        raise missing(file, "card", "which starts from the folder of the plan")
    return file


def plan_of(given: Mapping[str, Any], table: Table, folder: Path) -> Plan:
    """Return the plan for an open table from the parsed TOML ``given``; relative paths of lookups start from
    ``folder``.

    Types of values that :class:`Plan` does not check are checked here.
    """
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


_BARE = re.compile("[A-Za-z0-9_-]+")
_FEW_KEYS = 1_000


def draft_plan(card: Card, path: str, about: str | None = None) -> str:
    """Return the TOML text of a plan for a card's private table ``about`` (None: the only or first one); ``path`` is
    the path of the card as the plan states it."""
    if about is None and not card.columns and card.tables:
        about = next(iter(card.tables))
    item = card if about is None else card.for_table(about)
    usable: list[tuple[str, ColumnCard, str]] = []
    others: list[tuple[str, ColumnCard, str]] = []
    for name, column in item.columns.items():
        if name == item.unit:
            continue
        section = _section(name, column)
        (others if section is None else usable).append((name, column, section or _unusable(name, column)))
    first = sorted(usable, key=lambda entry: _size(entry[1]))[:2]
    names = [_quoted(name) for name, _, _ in first]
    tables = [f"[{names[0]}]", f"[{', '.join(names)}]"][: len(names)] if names else []
    example = names[0] if names else '"state"'
    lines = [
        f"# A plan to publish tables of {item.name}, drafted from its card: every number here is public.",
        "# dither publish FILE --dry-run shows the expected ± of every table; nothing is read or charged.",
        "",
        f"card = {_quoted(path)}",
        *([f"about = {_quoted(about)}"] if about is not None else []),
        "",
        f"# Every table is a list of columns; {{ by = [{example}], error = \"2%\" }} for one that must be so good, or",
        f"# {{ by = [{example}], weight = 2 }} for one that matters more. [] is everybody.",
        "tables = [",
        *(f"    {table}," for table in tables),
        "]",
        "",
        *_rows(item),
        "# where = \"…\"       # only rows that meet a condition in SQL count",
        "# max_rows = 1      # how many rows of a person count in full; by default as the card says; \"auto\" chooses",
        "# bias = true       # with a stated max_rows: say how much it leaves out, for a twentieth of the cost",
        "",
        "[budget]",
        *_budget(item),
        "",
        "# A row counts in all tables or in none. By default it counts in none if the value of a column is NULL or not",
        "# in the domain; null = true makes NULL a key, other = \"other\" makes one of all values that are not listed.",
    ]  # fmt: skip
    for _, _, section in [*usable, *others]:
        lines += ["", section]
    lines += [
        "",
        "# Places inside places: a public table of the card or a file says which county lies in which state.",
        "# [nested.geography]",
        '# levels = ["state", "county"]',
        '# lookup = "places.csv"',
        "",
    ]
    return "\n".join(lines)


def _rows(card: Card) -> list[str]:
    """Return the commented line on the number of rows for a drafted plan."""
    if card.rows is not None:
        return [f"# rows = {card.rows}     # what an error in percent is of; this is what the card says"]
    return ["# rows = 100000     # about how many rows there are, if that is public: what an error in percent is of"]


def _budget(card: Card) -> list[str]:
    """Return the lines of a drafted plan's ``[budget]``: a small part of the card's limit, in the same unit."""
    limit = card.each_person if card.each_person is not None else card.budget
    if isinstance(limit, ZCDP):
        return [f"rho = {limit.rho / 10:.3g}"]
    delta = card.delta if card.delta is not None else limit.delta / 10 if isinstance(limit, ApproxDP) else 1e-9
    epsilon = 1.0 if limit is None else min(1.0, float(limit.exact[0]))
    return [f"epsilon = {epsilon:g}", f"delta = {delta:g}"]


def _section(name: str, column: ColumnCard) -> str | None:
    """Return the section of a drafted plan for a column of the card; None where the card has neither keys nor bounds
    for it."""
    head = f"[columns.{_key(name)}]"
    if column.keys is not None:
        return f"{head}   # {len(column.keys):,} keys, as the card lists them"
    if column.type == "boolean":
        return f"{head}   # true and false"
    if column.period is not None:
        first, last = column.period
        return f'{head}   # {first} to {last}\npart = "month"   # or period = "month", which tells years apart'
    if column.type in ("integer", "number") and column.bounds is not None:
        low, high = column.bounds
        if column.type == "integer" and _width(high - low) <= 1:
            return f"{head}   # the whole numbers {low:g} to {high:g}"
        return f"{head}   # {low:g} to {high:g}\nwidth = {_width(high - low):.15g}   # or edges = […]"
    return None


def _unusable(name: str, column: ColumnCard) -> str:
    """Return the commented section of a column for which the card has no domain."""
    wanted = {"integer": "edges = [0, 10, 100]", "number": "edges = [0, 10, 100]", "text": 'keys = ["…"]'}
    state = wanted.get(column.type, "bounds in the card")
    return f"# [columns.{_key(name)}]   # the card has no domain for it: it needs {state}"


def _width(span: float) -> float:
    """Return a width with one significant digit that divides a range of length ``span`` into about ten bins."""
    return float(f"{max(span, 1e-300) / 10:.0e}")


def _size(column: ColumnCard) -> int:
    """Return the rough number of keys of a drafted column, for choosing small tables."""
    if column.keys is not None:
        return len(column.keys) if len(column.keys) <= _FEW_KEYS else 10**9
    return 2 if column.type == "boolean" else 11


def _key(name: str) -> str:
    """Return a column name as a key in TOML, quoted where necessary."""
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """Return a text in double quotes, escaped as in TOML."""
    return json.dumps(text, ensure_ascii=False)
