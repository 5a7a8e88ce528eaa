"""Values and constants chosen to make an engine fail: limits of doubles, integers, dates and text."""

from __future__ import annotations

import itertools
import math
import random
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from dither.errors import DitherError
from dither.tables.card.model import ColumnCard, PublicTable
from dither.tables.card.values import Value
from dither.tables.compile.expressions import TypedSql, compile
from dither.tables.query import nodes
from dither.tables.query.operations import OPERATIONS
from dither.tables.query.operations.dates import PERIODS
from dither.tables.query.tree import Call, Column, Expression, Literal

EDGES = [
    sign * base + step
    for base in (0, 1 << 31, 1 << 32, 1 << 53, 1 << 62, 1 << 63)
    for step in (-1, 0, 1)
    for sign in (-1, 1)
    if -(1 << 63) <= sign * base + step < 1 << 63
]
DOUBLES = [
    0.0, -0.0, 5e-324, -5e-324, 1e-310, 2.2250738585072014e-308, 1e-250, 1e-200, -1e-160, 1e-150, 1e-30, 0.1, -0.5,
    1.0, 119.99999999999999, 4503599627370496.5, 1e30, 1e100, 1e150, -1e200, 1e308, -1.7976931348623157e308, math.inf,
    -math.inf, math.nan,
]  # fmt: skip
TEXTS = ["", " ", "a", "A\u030a", "é", "İ", "\\", "%", "_", "\\%", "'", "a\nb", "\U0010ffff", "\ufeff", "NULL", "1e400"]
DATES = [date.min, date(1, 1, 7), date(1582, 10, 10), date(1970, 1, 1), date(2024, 2, 29), date.max]
TIMES = [datetime.min, datetime(1, 1, 1, 0, 0, 0, 1), datetime(1883, 11, 18), datetime(2024, 2, 29, 23), datetime.max]

CONSTANTS: list[Value] = [
    *EDGES, *(value for value in DOUBLES if math.isfinite(value)), *TEXTS[:9], *DATES, *TIMES, True, False, None,
]  # fmt: skip

COLUMNS = {
    "who": ColumnCard("integer"),
    "name": ColumnCard("text"),
    "x": ColumnCard("number", (-1.0, 1.0)),
    "large": ColumnCard("number", (0.0, 1e100)),
    "small": ColumnCard("number", (0.0, 1e-100)),
    "age": ColumnCard("integer", (0, 120)),
    "code": ColumnCard("integer", (-(1 << 63), (1 << 63) - 1)),
    "free": ColumnCard("number"),
    "day": ColumnCard("date"),
    "at": ColumnCard("timestamp"),
    "ok": ColumnCard("boolean"),
}
_POOLS: dict[str, tuple[list[Any], Any]] = {
    "integer": (EDGES, pa.int64()),
    "number": (DOUBLES, pa.float64()),
    "text": (TEXTS, pa.string()),
    "date": (DATES, pa.date32()),
    "timestamp": (TIMES, pa.timestamp("us")),
    "boolean": ([True, False], pa.bool_()),
}


PUBLIC = PublicTable("", {"key": ColumnCard("integer")})


def table(size: int = 80) -> pa.Table:
    """Rows in which every column has each of its worst values, in orders of their own."""
    pick = random.SystemRandom()
    columns = {}
    for name, column in COLUMNS.items():
        pool, kind = _POOLS[column.type]
        values = [*pool, None, *(pick.choice([*pool, None]) for _ in range(size - len(pool) - 1))]
        pick.shuffle(values)
        columns[name] = pa.array(values, kind)
    return pa.table({"i": pa.array(range(size), pa.int64()), **columns})


def expressions(count: int) -> dict[str, list[Expression]]:
    """By operation, expressions of columns and constants, plain and nested, that the compiler accepts."""
    pick = random.SystemRandom()
    atoms: list[Expression] = [*map(Column, COLUMNS), *map(Literal, CONSTANTS)]
    numbers = [item for item in atoms if _type(item) in ("integer", "number")]
    result: dict[str, list[Expression]] = {op: [] for op in sorted(OPERATIONS)}
    inner: list[Expression] = []
    for _ in range(2):  # the second time around what was found is nested
        for op in result:
            tries = 0
            before = len(result[op])
            while len(result[op]) < before + count and tries < 200 * count:
                tries += 1
                call = Call(op, tuple(_arguments(op, pick, [*atoms, *inner], [*numbers, *inner])))
                if _type(call) is not None and columns_in(call):
                    result[op].append(call)
        inner = [pick.choice(result[op]) for op in result for _ in range(4)]
    return result


def columns_in(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return any(columns_in(item) for item in expression.args)
    return isinstance(expression, Column)


def _arguments(op: str, pick: random.Random, atoms: list[Expression], numbers: list[Expression]) -> list[Expression]:
    if op in ("+", "-", "*", "/"):
        return [pick.choice(numbers), pick.choice(numbers)]
    if op in ("neg", "abs", "floor", "ceil"):
        return [pick.choice(numbers)]
    if op == "bin":
        edges = sorted({float(pick.choice([*EDGES, *DOUBLES[:-3]])) for _ in range(5)})
        return [pick.choice(numbers), *map(Literal, edges)]
    if op == "date_trunc":
        return [Literal(pick.choice(PERIODS)), pick.choice([*map(Column, ("day", "at")), *map(Literal, DATES + TIMES)])]
    if op == "like":
        return [Column("name"), Literal("".join(pick.choice("%_aé'\\") for _ in range(4)))]
    if op in ("lower", "upper"):
        return [pick.choice([Column("name"), *map(Literal, TEXTS)])]
    if op == "case":
        whens = [Call("<", (pick.choice(numbers), pick.choice(numbers))), Column("ok")]
        return [pick.choice(whens), pick.choice(atoms), pick.choice(whens), pick.choice(atoms), pick.choice(atoms)]
    if op in ("and", "or", "not"):
        conditions = [Column("ok"), Literal(True), Call("is_null", (pick.choice(atoms),))]
        conditions += [item for item in atoms if _type(item) == "boolean"]
        return [pick.choice(conditions) for _ in range(1 if op == "not" else 2)]
    sizes = {"is_null": 1, "coalesce": 3, "between": 3, "in": 4}
    first = pick.choice(atoms)
    kind = _type(first)
    alike = [item for item in atoms if _type(item) == kind] or [first]
    if op == "in":
        alike = [item for item in alike if isinstance(item, Literal)] or [Literal(1)]
    return [first, *(pick.choice(alike) for _ in range(sizes.get(op, 2) - 1))]


def find(column: Column) -> tuple[Any, ColumnCard]:
    return nodes.column(column.name, "t"), COLUMNS[column.name]


def compiled(expression: Expression) -> TypedSql | None:
    """The expression as SQL, or None where it is refused."""
    try:
        return compile(expression, find)
    except DitherError:
        return None


def _type(expression: Expression) -> str | None:
    result = compiled(expression)
    return None if result is None or result.is_null else result.type


BOUNDS: list[tuple[float, float]] = [
    (0, 1), (0.0, 1.0), (-1e150, 0.0), (0.0, 1e150), (-1e-250, 0.0), (0.0, 1e-200), (0.5, 1e308), (-1e308, 1e308),
    (0.0, 5e-324), (-5e-324, 5e-324), (1e10, 1e10 + 1e-5), (1e150, 1.0000000001e150), (1e-150, 1.0), (-0.1, 0.1),
    (-(1 << 63), (1 << 63) - 1), ((1 << 62), (1 << 62) + 1), (0, 10**30), (10**30, 10**30 + 1), (0, 10**400),
    (-10, 100),
]  # fmt: skip
VANISHING = Call(
    "case",
    (
        Column("ok"),
        Call("*", (Literal(1e-150), Literal(1e-100))),
        Call(">", (Column("code"), Literal(500))),
        Literal(1e150),
        Literal(0),
    ),
)
"""A product that all but vanishes within bounds so wide that it does when it is divided by their width."""
VALUES: list[Expression] = [
    Column("x"), Column("large"), Column("small"), Column("free"), Column("age"), Column("code"),
    VANISHING,
    Call("*", (Column("small"), Column("small"))), Call("/", (Column("large"), Column("x"))),
    Call("-", (Column("code"), Literal((1 << 63) - 1))), Call("+", (Column("x"), Literal(1e-150))),
]  # fmt: skip
EDGE_LISTS: list[tuple[float, ...]] = [
    tuple(scale * i for i in range(-first, 101 - first))
    for scale, first in itertools.product((1e-320, 1e-300, 1e-252, 0.01, 1, 1e148, 1.7e306), (0, 50))
] + [(0.0, 5e-324, 1e-300, 1.0, 1e308), (-1.7e308, 0.0, 1.7e308)]
