"""Answers without noise, and what DuckDB computes from the rows themselves."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

import duckdb
import pyarrow as pa

import dither as dp
from tables.glass import glass


def answered(table: dp.Table, sql: str, **options: Any) -> dp.Answer:
    """The answer without noise."""
    with glass():
        return table.sql(sql).release(epsilon=10, **options)


def truth(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        for name, rows in tables.items():
            database.register(name, rows)
        return database.sql(sql).fetchall()


def alike(one: Any, other: Any) -> bool:
    """Rows in any order, numbers up to the last digits."""

    def plain(value: Any) -> str:
        if isinstance(value, datetime) and value.time() == time():
            value = value.date()
        return f"{value:.6f}" if isinstance(value, (int, float)) else str(value)

    def lines(rows: Any) -> list[list[str]]:
        return sorted([plain(value) for value in row] for row in rows)

    return lines(one) == lines(other)
