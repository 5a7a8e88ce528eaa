"""Two private tables with columns of the same names: what dither answers without noise, and what DuckDB answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard, PrivateTable, PublicTable
from tables.glass import glass

PEOPLE, FIRST = 60, date(2024, 1, 1)
KINDS = ("a", "b", "c")
VISITS = pa.table(
    {
        "pid": [i * 17 % PEOPLE for i in range(400)],
        "kind": [KINDS[(0, 0, 1, 0, 1, 2)[i // 7 % 6]] for i in range(400)],
        "amount": [float(i * 37 % 1000) for i in range(400)],
        "day": [FIRST + timedelta(i * 29 % 366) for i in range(400)],
        "n": [math.isqrt(i * 13 % 49) for i in range(400)],
    }
)
CLAIMS = pa.table(
    {
        "pid": [i * 13 % (PEOPLE + 9) for i in range(150)],
        "kind": [KINDS[i * 5 % 13 % 3] for i in range(150)],
        "cost": [float(i * 17 % 40) for i in range(150)],
        "n": [math.isqrt(i * 11 % 49) for i in range(150)],
    }
)
PLANS = pa.table({"kind": list(KINDS), "plan": ["x", "y", "x"]})
COLUMNS = {
    "pid": ColumnCard("integer"),
    "kind": ColumnCard("text", keys=KINDS),
    "amount": ColumnCard("number", (0, 1000)),
    "day": ColumnCard("date", period=(FIRST, date(2024, 12, 31))),
    "n": ColumnCard("integer", (0, 6)),
}
CLAIM_COLUMNS = {name: column for name, column in COLUMNS.items() if name in ("pid", "kind", "n")}
CLAIM_COLUMNS["cost"] = ColumnCard("number", (0, 100))
PUBLIC = {"kind": ColumnCard("text"), "plan": ColumnCard("text", keys=("x", "y"))}
TABLES = {"visits": VISITS, "claims": CLAIMS, "plans": PLANS}
CARD = Card(
    "visits", "", COLUMNS, "pid", max_groups=50, max_rows=200, public={"plans": PublicTable("", PUBLIC)},
    tables={"claims": PrivateTable("", CLAIM_COLUMNS, "pid")},
)  # fmt: skip
"""For what is read alone."""


@contextmanager
def opened(folder: Path) -> Iterator[dp.Table]:
    """The tables, from files in a folder."""
    for name, table in TABLES.items():
        pq.write_table(table, folder / f"{name}.parquet")
    tables = {
        name: PrivateTable(str(folder / f"{name}.parquet"), columns, "pid")
        for name, columns in (("visits", COLUMNS), ("claims", CLAIM_COLUMNS))
    }
    card = Card(
        "care", "", {}, None, max_groups=50, max_rows=200, tables=tables, delta=1e-6,
        public={"plans": PublicTable(str(folder / "plans.parquet"), PUBLIC)},
        ledger=str(folder / "ledger.sqlite"), budget=dp.ApproxDP(4600, 0.5), each_person=dp.ApproxDP(4600, 0.5),
    )  # fmt: skip
    with dp.open(card) as table:
        yield table


Rows = list[tuple[object, ...]]


def answered(table: dp.Table, sql: str) -> Rows | None:
    """The rows of the answer without noise; None where the question is refused."""
    with glass():
        try:
            return list(table.sql(sql).release(epsilon=1).rows)
        except InvalidArgument:
            return None


def truth(sql: str) -> Rows | None:
    """What DuckDB answers on the raw rows; None where it refuses."""
    with duckdb.connect() as connection:
        for name, rows in TABLES.items():
            connection.register(name, rows)
        try:
            return list(connection.sql(sql).fetchall())
        except duckdb.Error:
            return None
