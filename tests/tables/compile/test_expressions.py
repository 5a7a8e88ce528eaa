"""Row expressions as SQL: safe by their intervals, refused where they cannot be."""

from __future__ import annotations

import math

import pytest

from dither.errors import DitherError, InvalidArgument, WrongType
from dither.tables.card.model import ColumnCard
from dither.tables.compile import expressions
from dither.tables.query import nodes
from dither.tables.query.tree import Call, Column, Literal
from support import each, refuses

CARDS = {
    "a": ColumnCard("integer", (0, 120)),
    "x": ColumnCard("number", (-1, 1)),
    "wide": ColumnCard("number", (0, 1e100)),
    "free": ColumnCard("number"),
    "t": ColumnCard("text"),
    "d": ColumnCard("date"),
    "s": ColumnCard("timestamp"),
    "b": ColumnCard("boolean"),
}


def find(column):
    return nodes.column(column.name, "t"), CARDS[column.name]


def written(typed):
    return nodes.render(typed.node, "duckdb")


def op(name, *args):
    return Call(name, tuple(item if isinstance(item, (Call, Column, Literal)) else Literal(item) for item in args))


A, X, WIDE, FREE, T, D, S, B = (Column(name) for name in CARDS)


@each(
    "expression",
    [
        op("+", FREE, 1),
        op("*", WIDE, WIDE),
        op("+", T, 1),
        op("+", A, None),
        op("=", T, 1),
        op("=", B, 1),
        op("<", D, "2024"),
        op("and", A, B),
        op("not", A),
        op("like", A, "x%"),
        op("like", T, "a\\%"),
        op("like", T, T),
        op("lower", A),
        op("date_trunc", "hour", D),
        op("date_trunc", "century", D),
        op("date_trunc", "day", T),
        op("bin", A, 10, 5),
        op("bin", A, 10),
        op("bin", T, 0, 1),
        op("in", T, 1, 2),
        op("case", B, T, 1),
        op("coalesce", D, 1),
        op("nosuch", A),
        op(">", X, 1e200),
        op(">", X, math.inf),
        op(">", X, 1e-200),
        op("=", T, "a\0"),
        op("abs", FREE),
        op("/", op("/", op("/", X, WIDE), WIDE), WIDE),
    ],
)
def test_what_is_not_safe_is_refused(expression):
    with refuses(DitherError):
        expressions.compile(expression, find)


@pytest.mark.parametrize("name", ["//", "+", "neg"])
def test_a_text_that_is_cast_to_text_is_no_number(name):
    values = [op("cast", "text", T), A]
    with refuses(WrongType, "a number", "text"):
        expressions.compile(op(name, *values[: 1 if name == "neg" else 2]), find)


def test_whatever_is_computed_with_is_within_its_bounds():
    """A column inside CASE or COALESCE, too: its interval is what makes the sum around it safe."""
    for inner in (op("coalesce", A, 7), op("case", B, A, 7), op("coalesce", op("case", B, A, None), A)):
        outer = expressions.compile(op("*", inner, 2), find)
        assert outer.interval in ((0.0, 240.0), (14.0, 14.0))
        text = written(outer)
        assert text.count("""WHEN "t"."a" >= CAST('120' AS BIGINT) THEN CAST('120.0' AS DOUBLE)""") >= 1
        assert 'THEN "t"."a" ' not in text
        assert expressions.compile(inner, find).type == "integer"  # as a key or in a comparison it is what it is


def test_intervals_hold_what_they_say():
    assert expressions.compile(op("neg", A), find).interval == (-120.0, 0.0)
    assert expressions.compile(op("abs", X), find).interval == (0.0, 1.0)
    assert expressions.compile(op("abs", op("+", X, 5)), find).interval == (4.0, 6.0)
    assert expressions.compile(op("-", A, X), find).interval == (-1.0, 121.0)
    low, high = expressions.compile(op("/", 1, X), find).interval
    assert (low, high) == (-(2.0**22), 2.0**22) or high >= 2**22
    assert expressions.compile(op("/", 1, op("+", A, 1)), find).interval == (1 / 121, 1.0)


@pytest.mark.parametrize("width", [1e-310, 1e-260, 1e200, math.inf])
def test_no_grid_is_finer_or_coarser_than_a_double(width):
    with refuses(InvalidArgument, "difference"):
        expressions.scale_of(0.0, width)


def test_names_and_texts_are_quoted():
    assert nodes.render(nodes.column('a"; DROP'), "duckdb") == '"a""; DROP"'
    assert written(expressions.literal("it's")) == "'it''s'"
    with refuses(WrongType):
        expressions.literal(object())  # type: ignore[arg-type]


def test_unknown_columns_and_tables_are_named():
    from tables.questions import CARD

    with refuses(InvalidArgument, "nosuch"):
        expressions.lookup(CARD, {})(Column("nosuch"))
    with refuses(InvalidArgument, "public table"):
        expressions.lookup(CARD, {})(Column("name", "regions"))
    assert expressions.lookup(CARD, {"regions": "p0"})(Column("name", "regions"))[0] == nodes.column("name", "p0")
