"""Hostile tables at random: values at and beyond the ends of their types, keys that look alike, and people with few
rows, with very many, and with rows in every group."""

from __future__ import annotations

import math
import random
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from dither.tables.card.model import (
    Card,
    ColumnCard,
    PersonPath,
    PrivateTable,
    PublicTable,
    arrow_type,
    with_people_by_path,
)

_PRIME = (1 << 31) - 1
_ENDS = (-(1 << 63), (1 << 63) - 1)
_TIED = [5 + step * _PRIME for step in range(-2, 4)]

COLUMNS: dict[str, ColumnCard] = {
    "person": ColumnCard("integer"),
    "name": ColumnCard("text"),
    "region": ColumnCard("text", keys=("north", "south", "Ä")),
    "town": ColumnCard("text"),
    "code": ColumnCard("integer"),
    "amount": ColumnCard("number", (0, 100)),
    "score": ColumnCard("number", (-1.5, 2.5)),
    "age": ColumnCard("integer", (0, 12)),
    "stars": ColumnCard("integer", (-2, 3)),
    "day": ColumnCard("date", period=(date(2023, 12, 30), date(2024, 3, 2))),
    "ever": ColumnCard("date"),
    "at": ColumnCard("timestamp"),
    "vip": ColumnCard("boolean"),
    "removed": ColumnCard("integer"),
}
PERSON_COLUMNS: dict[str, ColumnCard] = {
    "id": ColumnCard("integer"),
    "born": ColumnCard("integer", (1940, 2000)),
    "sex": ColumnCard("text", keys=("f", "m")),
    "joined": ColumnCard("date"),
    "removed": ColumnCard("integer"),
}
"""The columns of a second private table of the same people; the type of ``id`` is that of the unit."""
NOTE_COLUMNS: dict[str, ColumnCard] = {
    "stars": ColumnCard("integer", (-2, 3)),
    "region": ColumnCard("text", keys=("north", "south", "Ä")),
    "town": ColumnCard("text"),
    "removed": ColumnCard("integer"),
}
"""The columns of tables that name no person: notes lead to persons by a number, and pages to notes by two columns."""
KEYS: dict[str, dict[str, ColumnCard]] = {
    "persons": {"number": ColumnCard("integer")},
    "notes": {"number": ColumnCard("integer"), "note": ColumnCard("integer"), "part": ColumnCard("text")},
    "pages": {"note": ColumnCard("integer"), "part": ColumnCard("text")},
}
"""The keys of these paths. Several people have some of them, and some rows lead to nobody."""
PATHS = {
    "notes": PersonPath("persons", (("number", "number"),)),
    "pages": PersonPath("notes", (("note", "note"), ("part", "part"))),
}
_APART = 1 << 40
"""What lies between the keys of the rows that are compared, so that no path leads from some of them to the others."""
_NUMBERS = [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, math.inf, -math.inf, math.nan]
VALUES: dict[str, list[Any]] = {
    "region": ["north", "south", "Ä", "A\u0308", "ä", "NORTH", "north ", "east", ""],
    # in a collation without case and accents most of these are one town; é is there composed and decomposed
    "town": ["", "a", "A", "á", "A\u0301", "é", "e\u0301", "E", "ß", "ss", "🎲", " a", "-0", "7"],
    # keys that differ by the prime of the keyed hash have the same hash under every secret
    "code": [*_TIED, *_TIED, *_TIED, 0, *_ENDS, (1 << 53) + 1],
    "amount": [*_NUMBERS, 100.0, 100.0, 99.99999999, 49.5, 50.0, 0.1, 1 / 3, 100.00000000000001, 1e-17, 33.3, 7.77],
    "score": [*_NUMBERS, -1.5, 2.5, 2.5, 0.1, -0.7, 2.4999999999999996, 1.0000000001],
    "age": [0, 1, 6, 11, 12, 12, 13, -1, *_ENDS],
    "stars": [-3, -2, -1, 0, 1, 2, 3, 4, *_ENDS],
    "day": [date.min, date(2023, 12, 29), date(2023, 12, 30), date(2024, 2, 29), date(2024, 3, 2), date.max],
    "ever": [date.min, date(1900, 2, 28), date(1969, 12, 31), date(2024, 2, 29), date(2024, 12, 30), date.max],
    "at": [datetime.min, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 23, 59), datetime.max],
    "vip": [True, False],
}
NAMES = ["", "ann", "Ann", "ánn", "a\u0301nn", "bob", "bob ", "ß", "SS", "🎲"]
"""Persons by their name: all different, though some collations take several of them for one."""
ZONES = [("", 1, "low"), ("a", 1, "high"), ("A", 2, "low"), ("é", 3, None), ("ss", 4, "high")]
"""A public table of towns with a zone and a level; some towns are not in it."""


def public_table() -> pa.Table:
    """The public table: one row for each town that it knows."""
    towns, zones, levels = zip(*ZONES, strict=True)
    return pa.table({"town": towns, "zone": pa.array(zones, pa.int64()), "level": levels})


PUBLIC_COLUMNS = {"town": ColumnCard("text"), "zone": ColumnCard("integer", (1, 4)), "level": ColumnCard("text")}


def card(unit: str | None, public_source: str, **options: Any) -> Card:
    """The card of every hostile table, whose people are known by ``unit``; with one, of a second table of theirs."""
    public = {"zones": PublicTable(public_source, PUBLIC_COLUMNS)}
    if unit is None or options.get("rows_without_unit") == "each":  # which tables with paths do not take
        persons = {} if unit is None else {"persons": PrivateTable("", person_columns(unit), "id")}
        return Card("visits", "", COLUMNS, unit, public=public, tables=persons, **options)
    tables = {"persons": PrivateTable("", person_columns(unit), "id")}
    tables |= {name: PrivateTable("", {**NOTE_COLUMNS, **KEYS[name]}, None, path=PATHS[name]) for name in PATHS}
    return with_people_by_path(Card("visits", "", COLUMNS, unit, public=public, tables=tables, **options))


def person_columns(unit: str) -> dict[str, ColumnCard]:
    """The columns of the second private table, with the key that notes lead to it by."""
    return {**PERSON_COLUMNS, "id": COLUMNS[unit], **KEYS["persons"]}


def tables_with_one_person_marked(
    pick: random.Random, unit: str | None, each_without_unit: bool = False
) -> dict[str, pa.Table]:
    """Hostile tables by name. In the rows of one person, often the one with the most rows, ``removed`` is 1, in others
    0. All rows are there once more, in another order, with 3 and 2. With ``each_without_unit`` a row without a unit may
    be the person."""
    rows = _rows(pick)
    owners = [row[unit] if unit is not None else number for number, row in enumerate(rows)]
    known = sorted({owner for owner in owners if owner is not None}, key=owners.count)
    if each_without_unit:
        owners = [("row", number) if owner is None else owner for number, owner in enumerate(owners)]
    removed = known[-1] if pick.random() < 0.75 else pick.choice(sorted(set(owners) - {None}, key=repr))
    result = {"visits": _marked(pick, COLUMNS, rows, owners, removed)}
    if unit is not None:
        people = [*known, *pick.choices(known, k=pick.randint(0, 3)), None]
        persons = [{"id": person, **_person(pick)} for person in people if pick.random() < 0.9]
        result["persons"] = _marked(pick, person_columns(unit), persons, [row["id"] for row in persons], removed)
        if not each_without_unit:
            result |= _with_paths(pick, persons, removed)
    return result


def _with_paths(pick: random.Random, persons: list[dict[str, Any]], removed: Any) -> dict[str, pa.Table]:
    """Rows of notes and pages, whose people are found as the proof says: the least of those that have the key."""
    by_number = [(row["number"], row["id"]) for row in persons]
    notes = [_note(pick) for _ in range(pick.randint(4, 40))]
    owners = [least(by_number, row["number"]) for row in notes]
    by_note = [((row["note"], row["part"]), owner) for row, owner in zip(notes, owners, strict=True)]
    pages = [_note(pick) for _ in range(pick.randint(4, 40))]
    of_pages = [least(by_note, (row["note"], row["part"])) for row in pages]
    return {
        "notes": _marked(pick, {**NOTE_COLUMNS, **KEYS["notes"]}, notes, owners, removed),
        "pages": _marked(pick, {**NOTE_COLUMNS, **KEYS["pages"]}, pages, of_pages, removed),
    }


def least(rows: list[tuple[Any, Any]], key: Any) -> Any:
    """The least of the people who have a key; None where nobody has it, or a part of it is missing."""
    if key is None or (isinstance(key, tuple) and None in key):
        return None
    return min((owner for other, owner in rows if other == key and owner is not None), default=None)


def _note(pick: random.Random) -> dict[str, Any]:
    return {
        "number": pick.choice([None, 1, 1, 2, 2, 3, 4, 5]),
        "note": pick.choice([None, 1, 1, 2, 3]),
        "part": pick.choice([None, "", "a", "A", "é"]),
        **{name: pick.choice([None, *VALUES[name]]) for name in ("stars", "region", "town")},
    }


def _person(pick: random.Random) -> dict[str, Any]:
    return {
        "born": pick.choice([None, 1940, 1950, 1951, 1999, 2000, 2001, *_ENDS]),
        "sex": pick.choice([None, "f", "m", "F", ""]),
        "joined": pick.choice(VALUES["ever"]),
        "number": pick.choice([None, 1, 2, 2, 3, 4]),
    }


def _marked(
    pick: random.Random, columns: dict[str, ColumnCard], rows: list[dict[str, Any]], owners: list[Any], removed: Any
) -> pa.Table:
    marked = [{**row, "removed": int(owner == removed)} for row, owner in zip(rows, owners, strict=True)]
    again = [{**row, "removed": row["removed"] + 2} for row in pick.sample(marked, len(marked))]
    every = [_with_own_keys(row) for row in (*marked, *again)]
    return pa.table(
        {name: pa.array([row[name] for row in every], arrow_type(column.type)) for name, column in columns.items()}
    )


def _with_own_keys(row: dict[str, Any]) -> dict[str, Any]:
    """The row with keys that lead only to rows which are compared together with it."""
    apart = max(row["removed"] - 1, 0) * _APART
    return row | {name: row[name] + apart for name in ("number", "note") if row.get(name) is not None}


def _rows(pick: random.Random) -> list[dict[str, Any]]:
    """Some people with a few rows, one with many, one with a row in every town, and rows of nobody."""
    nulls = pick.choice([0.0, 0.05, 0.3])
    people = pick.sample(range(len(NAMES)), pick.randint(2, 6))
    rows = [_row(pick, nulls, pick.choice(people)) for _ in range(pick.randint(6, 30))]
    heavy = people[0]
    rows += [_row(pick, nulls, heavy) for _ in range(pick.randint(5, 40))]
    if pick.random() < 0.5:
        rows += [{**_row(pick, nulls, people[-1]), "town": town} for town in VALUES["town"]]
    if pick.random() < 0.5:  # the same row over and over: its weight is small, or its count is a square
        rows += [_row(pick, nulls, heavy)] * pick.choice([2, 4, 9, 64, 500])
    if pick.random() < 0.3:
        rows += [_row(pick, nulls, None) for _ in range(3)]
    pick.shuffle(rows)
    return rows


def _row(pick: random.Random, nulls: float, person: int | None) -> dict[str, Any]:
    row = {column: None if pick.random() < nulls else pick.choice(values) for column, values in VALUES.items()}
    return {"person": person and person * _PRIME, "name": None if person is None else NAMES[person], **row}
