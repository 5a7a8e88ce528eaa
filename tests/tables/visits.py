"""A table of visits, its card, and what the tests of questions look up in its ledger."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq

import dither as dp
from dither.tables.card.model import Card, ColumnCard

ROWS = pa.table(
    {
        "who": pa.array([i % 400 for i in range(2000)] + [None] * 10, pa.int64()),
        "region": [("north", "south", "east")[i % 3] for i in range(2000)] + ["secret"] * 10,
        "amount": [float(i % 50) for i in range(2000)] + [math.nan] * 10,
        "age": [i % 90 for i in range(2000)] + [None] * 10,
    }
)
PROFILED = {
    "who": ColumnCard("integer"),
    "region": ColumnCard("text", keys=("north", "south")),
    "town": ColumnCard("text"),
    "amount": ColumnCard("number", (-50.0, 50.0)),
    "age": ColumnCard("integer", (0, 120)),
    "day": ColumnCard("date", period=(date(2024, 1, 1), date(2024, 12, 31))),
    "vip": ColumnCard("boolean"),
    "empty": ColumnCard("number", (0.0, 1.0)),
    "one": ColumnCard("integer", (1, 9)),
}
"""Columns of every type, as a profile measures them."""
COUNT = "SELECT COUNT(*) AS n FROM visits"


def card(tmp_path, **more) -> Card:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    columns = {
        "who": ColumnCard("integer"),
        "region": ColumnCard("text"),
        "amount": ColumnCard("number", (0, 50)),
        "age": ColumnCard("integer", (0, 120)),
    }
    stated = {
        "columns": columns,
        "unit": "who",
        "max_groups": 3,
        "max_rows": 5,
        "ledger": str(tmp_path / "ledger.sqlite"),
        "budget": dp.ApproxDP(10, 1e-3),
        "delta": 1e-6,
    }
    return Card("visits", str(tmp_path / "visits.parquet"), **{**stated, **more})


def reads(table, monkeypatch) -> list[str]:
    """Every statement that an engine is asked to run from now on."""
    seen: list[str] = []
    real = table.engine.run
    monkeypatch.setattr(table.engine, "run", lambda sql: seen.append(str(sql)) or real(sql))
    return seen


def spent(table) -> object:
    return [(account.name, account.kind, account.spent) for account in table.ledger.accounts()]


def entries(table) -> Counter:
    return Counter(entry.kind for entry in table.ledger.history())
