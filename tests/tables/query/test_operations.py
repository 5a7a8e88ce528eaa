"""Every row of the table of operations, everywhere an operation is used: parsed, type-checked, compiled, evaluated."""

from __future__ import annotations

import itertools
import math
import pickle
import subprocess
import sys
from datetime import date, datetime

import pyarrow as pa
import pytest
from sqlglot import exp

from dither.errors import DitherError, InvalidArgument
from dither.tables.builder.expressions import term
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import expressions
from dither.tables.compile.queries import alias, relation, select
from dither.tables.query import nodes
from dither.tables.query.evaluate import check_arity, evaluate
from dither.tables.query.operations import FUNCTIONS, OPERATIONS, SPECIAL_FUNCTIONS, SYNTAX
from dither.tables.query.tree import Call, Column, Literal, walk
from dither.tables.query.typecheck import typed
from dither.tables.sql.expressions import syntax
from support import refuses

# pyspark reads every answer from a socket that it leaves to the collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

COLUMNS = {
    "x": ColumnCard("number", (-2.0, 2.0)),
    "n": ColumnCard("integer", (-3, 3)),
    "s": ColumnCard("text"),
    "d": ColumnCard("date"),
    "t": ColumnCard("timestamp"),
    "b": ColumnCard("boolean"),
}
VALUES = {
    "x": [None, -2.0, -1.5, -0.25, 0.0, 0.5, 1.0, 2.0],
    "n": [None, -3, -1, 0, 0, 1, 2, 3],
    "s": [None, "", "a", "A", "b", "aé", "É%", "ab"],
    "d": [None, *(date(2024, month, 29) for month in range(1, 8))],
    "t": [None, *(datetime(2024, 2, 29, hour, 59, 1) for hour in range(0, 21, 3))],
    "b": [None, True, False, True, False, None, True, False],
}
ROWS = [
    dict(zip(VALUES, values, strict=True))
    for shift in range(8)
    for values in zip(
        *(pool[i * shift % 8 :] + pool[: i * shift % 8] for i, pool in enumerate(VALUES.values())), strict=True
    )
]
CARD = Card("t", "", {"i": ColumnCard("integer"), **COLUMNS})
TYPES = {name: column.type for name, column in COLUMNS.items()}
KINDS = ["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.slow)]
every_row = pytest.mark.parametrize("row", OPERATIONS.values(), ids=OPERATIONS)


def example_of(row):
    expression = syntax(row.example)
    return typed(expression, lambda column: TYPES[column.name])


@every_row
def test_sql_is_read_as_the_operation(row):
    expression = syntax(row.example)
    assert row.name in {node.op for node in walk(expression) if isinstance(node, Call)}
    assert row.functions or row.special_functions or row.syntax, "no SQL stands for it"
    for name in row.functions:
        assert syntax(f"{name.lower()}(x)").op == row.name
    if row.syntax is not None:
        assert issubclass(getattr(exp, row.syntax.node), exp.Expr)


@every_row
def test_types_are_checked(row):
    _, kind = example_of(row)
    assert kind in set(TYPES.values())
    refused = 0
    for choice in itertools.product(TYPES, repeat=min(row.least, 3)):
        call = Call(row.name, tuple(Column(name) for name in choice))
        try:
            typed(call, lambda column: TYPES[column.name])
        except DitherError:
            refused += 1
    assert refused or row.name in ("is_null", "coalesce")


@every_row
def test_the_number_of_arguments_is_checked(row):
    wrong = {row.least - 1} | ({row.most + 1} if row.most is not None else set())
    for count in wrong:
        with refuses(InvalidArgument, "arguments"):
            check_arity(Call(row.name, (Column("x"),) * count))
        with refuses(DitherError):
            expressions.compile(Call(row.name, (Column("x"),) * count), expressions.lookup(CARD, {}))


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_computes_what_python_does(engine, kind):
    """Python is asked about values within their bounds that are whole multiples of a quarter: no rounding is left."""
    columns = {name: pa.array([row[name] for row in ROWS], arrow) for name, arrow in ARROW.items()}
    loaded = engine(kind, pa.table({"i": pa.array(range(len(ROWS))), **columns}), CARD)
    checked = {row.name: example_of(row) for row in OPERATIONS.values()}
    compiled = {
        name: expressions.compile(expression, expressions.lookup(CARD, {})) for name, (expression, _) in checked.items()
    }
    listed = [alias(typed_sql.node, f"y{i}") for i, typed_sql in enumerate(compiled.values())]
    answer = loaded.run(select(listed, relation(loaded.table, "t")).order_by(nodes.column("i", "t")))
    for (name, (expression, kind_of_result)), column in zip(checked.items(), answer.columns, strict=True):
        expected = [evaluate(expression, row) for row in ROWS]
        result = column.to_pylist()
        assert [value is None for value in result] == [value is None for value in expected], name
        assert result == pytest.approx(expected) if kind_of_result in ("integer", "number") else result == expected, (
            name
        )


ARROW = {
    "x": pa.float64(), "n": pa.int64(), "s": pa.string(), "d": pa.date32(), "t": pa.timestamp("us"), "b": pa.bool_(),
}  # fmt: skip


@every_row
def test_results_are_within_their_range(row):
    expression, kind = example_of(row)
    known = expressions.compile(expression, expressions.lookup(CARD, {})).range
    values = [value for value in (evaluate(expression, item) for item in ROWS) if value is not None]
    assert values
    if kind in ("integer", "number") and known is not None:
        assert known.low <= min(values) <= max(values) <= known.high
    assert known is not None or kind not in ("integer", "number") or row.name == "nullif"


@every_row
def test_python_builds_it_too(row):
    expression = syntax(row.example)
    call = next(node for node in walk(expression) if isinstance(node, Call) and node.op == row.name)
    assert term(row.name, *call.args).expression == call
    assert pickle.loads(pickle.dumps(call)) == call


def test_spellings_are_of_one_operation_each():
    functions = [name for row in OPERATIONS.values() for name in row.functions]
    special = [item.name for row in OPERATIONS.values() for item in row.special_functions]
    classes = [row.syntax.node for row in OPERATIONS.values() if row.syntax]
    assert len({*functions, *special}) == len(functions) + len(special) == len(FUNCTIONS) + len(SPECIAL_FUNCTIONS)
    assert len(set(classes)) == len(classes) == len(SYNTAX)


def test_rounding_down_and_up():
    """FLOOR and CEIL give whole numbers, which can be grouped by; beyond 2^53 no double is a fraction."""
    assert [evaluate(syntax("FLOOR(x)"), {"x": value}) for value in (-1.5, -0.0, 0.25, None)] == [-2, 0, 0, None]
    assert [evaluate(syntax("CEIL(x)"), {"x": value}) for value in (-1.5, 0.25, math.nan)] == [-1, 1, None]
    find = expressions.lookup(CARD, {})
    assert expressions.compile(syntax("FLOOR(x * 4)"), find).interval == (-8.0, 8.0)
    assert expressions.compile(syntax("FLOOR(x * 4)"), find).type == "integer"
    with refuses(InvalidArgument, "2^53"):
        expressions.compile(Call("floor", (Call("*", (Column("x"), Literal(1e16))),)), find)


def test_no_operation_loads_sqlglot_before_something_is_compiled():
    code = "import sys, dither.tables.query.operations; assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
