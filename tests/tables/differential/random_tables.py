"""Small random tables of two private and two public relations, and the card that says what is public about them.

Names of columns occur in several tables on purpose: that is where SQL's rules of scope decide what a name means.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dither.tables.card.model import (
    Card,
    ColumnCard,
    PersonPath,
    PrivateTable,
    PublicTable,
    arrow_type,
    with_people_by_path,
)

FIRST, LAST = date(2024, 1, 1), date(2024, 12, 31)
DAYS = [FIRST + timedelta(days=days) for days in range((LAST - FIRST).days + 1)]
REGIONS = ("east", "north", "south")
KINDS = ("dental", "eye", "other")
PLANS = [(1, "basic", "low"), (2, "plus", "low"), (3, "gold", "high"), (4, "max", "high"), (5, "old", None)]
AREAS = [("east", "coast"), ("north", "hills"), ("south", "coast")]
LABELS = ("drug", "test", "none")
CLIMATES = [("coast", "mild"), ("hills", "cold"), ("plain", "dry")]
RATES = [(region, plan, plan * 2.5 + place) for place, region in enumerate(REGIONS) for plan in (1, 2, 3)]

COLUMNS: dict[str, dict[str, ColumnCard]] = {
    "visits": {
        "pid": ColumnCard("integer"),
        "visit_id": ColumnCard("integer"),
        "region": ColumnCard("text", keys=REGIONS),
        "plan_id": ColumnCard("integer"),
        "kind": ColumnCard("text"),
        "day": ColumnCard("date", period=(FIRST, LAST)),
        "amount": ColumnCard("number", (0, 128)),
        "qty": ColumnCard("integer", (0, 9)),
        "vip": ColumnCard("boolean"),
        "price": ColumnCard("number", (0, 128)),
        "fee": ColumnCard("number", (0, 128)),
        "score": ColumnCard("integer", (0, 9)),
    },
    "claims": {
        "pid": ColumnCard("integer"),
        "kind": ColumnCard("text", keys=KINDS),
        "cost": ColumnCard("number", (0, 64)),
        "day": ColumnCard("date", period=(FIRST, LAST)),
        "qty": ColumnCard("integer", (0, 9)),
    },
    "people": {
        "pid": ColumnCard("integer"),
        "sex": ColumnCard("text", keys=("f", "m")),
        "age": ColumnCard("integer", (0, 99)),
        "region": ColumnCard("text", keys=REGIONS),
    },
    "items": {
        "visit_id": ColumnCard("integer"),
        "label": ColumnCard("text", keys=LABELS),
        "weight": ColumnCard("number", (0, 32)),
        "qty": ColumnCard("integer", (0, 9)),
    },
}
PATHS = {"items": PersonPath("visits", (("visit_id", "visit_id"),))}
"""How rows reach their person in tables that name none."""
PUBLIC_COLUMNS = {
    "plans": {
        "plan_id": ColumnCard("integer"),
        "plan_name": ColumnCard("text"),
        "tier": ColumnCard("text"),
    },
    "areas": {"region": ColumnCard("text"), "area": ColumnCard("text")},
    "climates": {"area": ColumnCard("text"), "climate": ColumnCard("text")},
    "rates": {"region": ColumnCard("text"), "plan_id": ColumnCard("integer"), "rate": ColumnCard("number")},
}
PUBLIC_ROWS: dict[str, Sequence[tuple[Any, ...]]] = {
    "plans": PLANS, "areas": AREAS, "climates": CLIMATES, "rates": RATES,
}  # fmt: skip
DOMAINS: dict[str, dict[str, list[Any]]] = {
    "visits": {
        "region": list(REGIONS),
        "day": DAYS,
        "qty": list(range(10)),
        "vip": [False, True],
        "score": list(range(10)),
        "fee": [quarters / 4 for quarters in range(513)],
    },
    "claims": {"kind": list(KINDS), "day": DAYS, "qty": list(range(10))},
    "people": {"sex": ["f", "m"], "age": list(range(100)), "region": list(REGIONS)},
    "items": {"label": list(LABELS), "qty": list(range(10))},
}
"""Every value that a column with public keys can have, by what the card says."""
BEYOND = ("fee", "score")
"""Columns with values beyond their bounds. They are in conditions and keys, and in nothing that is added up, where such
a value counts as the bound."""


@dataclass(frozen=True)
class Data:
    """Rows of each private table, and whether any of them lacks a key."""

    tables: dict[str, pa.Table]
    nulls: bool
    """Whether columns have NULLs."""
    unowned: bool
    """Whether some rows have no person."""


def random_data(pick: random.Random) -> Data:
    """A few hundred rows of a few dozen people; in half of the tables columns have NULLs."""
    nulls = pick.choice([0.0, 0.0, 0.1, 0.3])
    unowned = pick.random() < 0.3
    people = list(range(1, pick.choice([8, 25, 40]) + 1))
    heavy = pick.choice([4, 12])
    visits = [_visit(pick, person, nulls) for person in people for _ in range(pick.randint(1, heavy))]
    claims = [
        _claim(pick, person, nulls) for person in people if pick.random() < 0.8 for _ in range(pick.randint(1, 5))
    ]
    persons = [_person(pick, person, nulls) for person in [*people, 900, 901] if pick.random() < 0.9]
    if unowned:
        visits += [_visit(pick, None, nulls) for _ in range(5)]
        claims += [_claim(pick, None, nulls) for _ in range(3)]
        persons += [_person(pick, None, nulls)]
    visits = [{**row, "visit_id": number} for number, row in enumerate(visits, start=1000)]
    numbers = [row["visit_id"] for row in visits]
    items = [_item(pick, pick.choice([*numbers, None, 9]), nulls) for _ in range(pick.randint(1, 3 * len(visits)))]
    rows = {"visits": visits, "claims": claims, "people": persons, "items": items}
    return Data({name: _table(name, lines) for name, lines in rows.items()}, nulls > 0, unowned)


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {
            column: pa.array([row[column] for row in rows], arrow_type(card.type))
            for column, card in COLUMNS[name].items()
        }
    )


def _visit(pick: random.Random, person: int | None, nulls: float) -> dict[str, Any]:
    row = {
        "region": pick.choice(REGIONS),
        "plan_id": pick.choice([1, 1, 2, 3, 4, 4]),
        "kind": pick.choice(["dental", "eye", "eye", "general"]),
        "day": pick.choice(DAYS),
        "amount": pick.randint(0, 512) / 4,
        "qty": pick.choice([0, 1, 1, 2, 3, 5, 9]),
        "vip": pick.random() < 0.4,
        "price": pick.choice([9.99, 19.99, 49.95, pick.randint(0, 12800) / 100]),
        "fee": pick.choice([-0.5, 0.25, 31.75, 32, 99.5, 100, 128, 128.25, 300, pick.randint(-160, 1200) / 4]),
        "score": pick.choice([0, 1, 2, 2, 5, 9, 9, -1, -7, 10, 25, 10**9]),
    }
    return {"pid": person, **_with_nulls(pick, row, nulls)}


def _claim(pick: random.Random, person: int | None, nulls: float) -> dict[str, Any]:
    row = {
        "kind": pick.choice(KINDS),
        "cost": pick.randint(0, 256) / 4,
        "day": pick.choice(DAYS),
        "qty": pick.choice([0, 1, 2, 2, 7]),
    }
    return {"pid": person, **_with_nulls(pick, row, nulls)}


def _person(pick: random.Random, person: int | None, nulls: float) -> dict[str, Any]:
    row = {"sex": pick.choice("fm"), "age": pick.randint(0, 99), "region": pick.choice(REGIONS)}
    return {"pid": person, **_with_nulls(pick, row, nulls)}


def _item(pick: random.Random, visit: int | None, nulls: float) -> dict[str, Any]:
    row = {"label": pick.choice(LABELS), "weight": pick.randint(0, 128) / 4, "qty": pick.choice([0, 1, 2, 2, 7])}
    return {"visit_id": visit, **_with_nulls(pick, row, nulls)}


def _with_nulls(pick: random.Random, row: dict[str, Any], share: float) -> dict[str, Any]:
    return {name: None if pick.random() < share else value for name, value in row.items()}


def write_public_tables(folder: Path) -> None:
    """The public tables as files."""
    for name, rows in PUBLIC_ROWS.items():
        columns = list(zip(*rows, strict=True))
        arrays = {
            column: pa.array(values, arrow_type(card.type))
            for (column, card), values in zip(PUBLIC_COLUMNS[name].items(), columns, strict=True)
        }
        pq.write_table(pa.table(arrays), folder / f"{name}.parquet")


def card(folder: Path, max_groups: Any, max_rows: Any) -> Card:
    """The card of all of these tables, with limits on what a person counts for."""
    public = {name: PublicTable(str(folder / f"{name}.parquet"), columns) for name, columns in PUBLIC_COLUMNS.items()}
    more = {name: PrivateTable("", COLUMNS[name], "pid") for name in ("claims", "people")}
    more |= {name: PrivateTable("", COLUMNS[name], None, path=path) for name, path in PATHS.items()}
    result = Card(
        "visits", "", COLUMNS["visits"], "pid", max_groups=max_groups, max_rows=max_rows, public=public, tables=more,
        delta=1e-6,
    )  # fmt: skip
    return with_people_by_path(result)
