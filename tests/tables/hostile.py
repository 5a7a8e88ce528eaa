"""Values and constants chosen to make an engine fail: limits of doubles, integers, dates and text."""

from __future__ import annotations

import itertools
import math
import random
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from dither.errors import DitherError
from dither.tables.card.model import TYPES, ColumnCard, PublicTable
from dither.tables.card.values import Value
from dither.tables.compile.expressions import compile
from dither.tables.query import nodes
from dither.tables.query.operations import OPERATIONS
from dither.tables.query.operations.base import TypedSql
from dither.tables.query.operations.dates import NAMES, PARTS, PERIODS, UNITS
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
TEXTS = [
    "", " ", "a", "A\u030a", "é", "İ", "\\", "%", "_", "\\%", "'", "a\nb", "\U0010ffff", "\ufeff", "NULL", "1e400",
    "\u00a0a\u2003", "\ta ", "-0", "+7", "007", "7\n", "1_000", "0x1f", "9223372036854775808", "99999999999999999999",
    "1.5", "1.", ".5", "1e99", "1E-99", "12345678901234567.890123456789", "0.1d", "NaN", "Infinity", "-inf", "٣",
    "true", "FALSE", "t", "yes", "TRUE ", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01",
    "0001-01-01", "9999-12-31", "10000-01-01", "2024-13-01", "2024-04-31", "2024-2-9", "epoch", "infinity", "today",
    "2024-02-29 23:59:59.999999", "2024-02-29T00:00", "2024-02-29 24:00:00", "2024-02-29 23:59:60", "2024-02-29 1:00",
    "2024-02-29 12:00:00+02", "2024-02-29\n", "0000-01-01 00:00",
]  # fmt: skip
DATES = [
    date.min, date(1, 1, 7), date(4, 2, 29), date(1582, 10, 10), date(1900, 2, 28), date(1970, 1, 1),
    date(2020, 12, 31), date(2024, 1, 31), date(2024, 2, 29), date(9996, 2, 29), date(9999, 11, 30), date.max,
]  # fmt: skip
TIMES = [
    datetime.min, datetime(1, 1, 1, 0, 0, 0, 1), datetime(1883, 11, 18), datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 2, 29, 23), datetime(2024, 12, 29, 12, 30, 30, 500000), datetime.max,
]  # fmt: skip

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
    result: dict[str, list[Expression]] = {op: [] for op in sorted(OPERATIONS)}
    inner: list[Expression] = []
    for _ in range(2):  # the second time around the first results are nested
        typed = [(item, _type(item)) for item in (*map(Column, COLUMNS), *map(Literal, CONSTANTS), *inner)]
        operands = {kind: [item for item, type in typed if type == kind] for kind in (*TYPES, None)}
        for op in result:
            tries = 0
            before = len(result[op])
            while len(result[op]) < before + count and tries < 200 * count:
                tries += 1
                call = Call(op, tuple(_arguments(op, pick, operands)))
                if columns_in(call) and _type(call) is not None:
                    result[op].append(call)
        inner = [pick.choice(result[op]) for op in result for _ in range(4) if OPERATIONS[op].exact]
    return result


def columns_in(expression: Expression) -> bool:
    if isinstance(expression, Call):
        return any(columns_in(item) for item in expression.args)
    return isinstance(expression, Column)


_PARTS_OF_TEXTS: list[Value] = ["a", "é", " ", "\\", "%", "\U0010ffff", "-", "\n"]
_TEXT_ARGUMENTS: dict[str, tuple[list[Value] | None, ...]] = {
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim", "length"), (None,)),
    **dict.fromkeys(("contains", "starts_with", "ends_with"), (None, None)),
    "||": (None, None, None),
    "substr": (None, [1, 2, 7, 65_536], [0, 1, 3, 65_536]),
    "right": (None, [0, 1, 2, 65_536]),
    "replace": (None, _PARTS_OF_TEXTS, ["", *_PARTS_OF_TEXTS, "x" * 256]),
}
"""The arguments of operations on texts: any text, or one of these constants."""
_STEPS: list[Value] = [-9998, -400, -31, -1, 0, 1, 29, 1_000, 9_998, 100_000, 3_000_000]


Operands = dict[str | None, list[Expression]]
"""Columns, constants and nested expressions by their type."""


def _arguments(op: str, pick: random.Random, operands: Operands) -> list[Expression]:
    numbers = [*operands["integer"], *operands["number"]]
    moments = [*operands["date"], *operands["timestamp"]]
    if op in ("+", "-", "*", "/"):
        return [pick.choice(numbers), pick.choice(numbers)]
    if op in ("neg", "abs", "floor", "ceil", "sign", "sqrt", "ln", "log10", "log2", "exp"):
        return [pick.choice(numbers)]
    if op in ("round", "trunc"):
        return [pick.choice(numbers), Literal(pick.choice([-15, -3, -1, 0, 0, 1, 2, 15]))]
    if op == "power":
        return [pick.choice(numbers), Literal(pick.choice([-2, -0.5, 0.5, 1, 1.5, 2, 3]))]
    if op == "%":
        return [pick.choice(numbers), pick.choice([*map(Literal, EDGES), Column("age"), Column("code"), Column("who")])]
    if op == "bin":
        edges = sorted({float(pick.choice([*EDGES, *DOUBLES[:-3]])) for _ in range(5)})
        return [pick.choice(numbers), *map(Literal, edges)]
    if op in ("like", "ilike"):
        return [Column("name"), Literal("".join(pick.choice("%_aAé'\\") for _ in range(4)))]
    if op in _TEXT_ARGUMENTS:
        texts = [*operands["text"], *[Column("name")] * 40]
        return [pick.choice(texts) if item is None else Literal(pick.choice(item)) for item in _TEXT_ARGUMENTS[op]]
    if op == "date_trunc":
        return [Literal(pick.choice(PERIODS)), pick.choice(moments)]
    if op == "date_name":
        return [Literal(pick.choice([*NAMES])), pick.choice(moments)]
    if op == "date_part":
        return [Literal(pick.choice([*PARTS])), pick.choice(moments)]
    if op == "date_add":
        return [Literal(pick.choice(UNITS)), Literal(pick.choice(_STEPS)), pick.choice(moments)]
    if op == "date_diff":
        return [Literal(pick.choice(UNITS)), pick.choice(moments), pick.choice(moments)]
    if op == "cast":
        kind = pick.choice(TYPES)
        return [Literal(pick.choice(TYPES)), pick.choice([*operands[kind], Column("name")])]
    if op == "case":
        whens = [Call("<", (pick.choice(numbers), pick.choice(numbers))), Column("ok")]
        values = operands[pick.choice(TYPES)] + operands[None]
        return [
            pick.choice(whens), pick.choice(values), pick.choice(whens), pick.choice(values), pick.choice(values)
        ]  # fmt: skip
    if op in ("and", "or", "not"):
        return [pick.choice(operands["boolean"]) for _ in range(1 if op == "not" else 2)]
    sizes = {"is_null": 1, "coalesce": 3, "between": 3, "in": 4, "greatest": 3, "least": 3}
    alike = operands[pick.choice(TYPES)]
    first = pick.choice(alike)
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
