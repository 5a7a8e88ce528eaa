"""Every row of the table of operations, everywhere an operation is used: parsed, type-checked, compiled, evaluated."""

from __future__ import annotations

import itertools
import math
import pickle
import subprocess
import sys
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from sqlglot import exp

from dither.errors import DitherError, InvalidArgument
from dither.tables.builder.expressions import term
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import expressions
from dither.tables.query import nodes
from dither.tables.query.evaluate import check_arity, evaluate, require_number, typed
from dither.tables.query.nodes import alias, relation, select
from dither.tables.query.operations import FUNCTIONS, OPERATIONS, SPECIAL_FUNCTIONS, SYNTAX
from dither.tables.query.tree import Call, Column, Literal, walk
from dither.tables.sql.aggregates import syntax
from support import each, refuses

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
every_row = each("row", OPERATIONS.values())


def example_of(row):
    return checked_example(row.example)


def checked_example(text):
    return typed(syntax(text), lambda column: TYPES[column.name])


EXAMPLES = {text: row for row in OPERATIONS.values() for text in (row.example, *row.examples)}
every_example = each("text", EXAMPLES)


@every_row
def test_sql_is_read_as_the_operation(row):
    expression = syntax(row.example)
    assert row.name in {node.op for node in walk(expression) if isinstance(node, Call)}
    assert row.functions or row.special_functions or row.syntax, "no SQL stands for it"
    for name in row.functions:
        assert syntax(f"{name.lower()}(x)").op == row.name
    for form in row.all_syntax:
        assert issubclass(getattr(exp, form.node), exp.Expr)
    for text in row.examples:
        assert row.name in {node.op for node in walk(syntax(text)) if isinstance(node, Call)}, text


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_computes_what_python_does(engine, kind):
    """Python is asked about values within their bounds that are whole multiples of a quarter: no rounding is left."""
    columns = {name: pa.array([row[name] for row in ROWS], arrow) for name, arrow in ARROW.items()}
    loaded = engine(kind, pa.table({"i": pa.array(range(len(ROWS))), **columns}), CARD)
    checked = {text: checked_example(text) for text in EXAMPLES}
    compiled = {
        name: expressions.compile(expression, expressions.lookup(CARD, {})) for name, (expression, _) in checked.items()
    }
    listed = [alias(typed_sql.node, f"y{i}") for i, typed_sql in enumerate(compiled.values())]
    answers = [  # Spark takes much longer for one statement of all
        loaded.run(select(listed[i : i + 40], relation(loaded.table, "t")).order_by(nodes.column("i", "t")))
        for i in range(0, len(listed), 40)
    ]
    columns = [column for answer in answers for column in answer.columns]
    for (name, (expression, kind_of_result)), column in zip(checked.items(), columns, strict=True):
        expected = [evaluate(expression, row) for row in ROWS]
        result = column.to_pylist()
        assert [value is None for value in result] == [value is None for value in expected], name
        if kind_of_result == "number" and not all(is_exact(expression)):
            expected = [None if value is None else pytest.approx(value, rel=1e-12, abs=1e-12) for value in expected]
        assert result == expected, name


def is_exact(expression):
    """Whether each operation in it gives the same bits everywhere."""
    return [OPERATIONS[node.op].exact for node in walk(expression) if isinstance(node, Call)]


ARROW = {
    "x": pa.float64(), "n": pa.int64(), "s": pa.string(), "d": pa.date32(), "t": pa.timestamp("us"), "b": pa.bool_(),
}  # fmt: skip


@every_example
def test_results_are_within_their_range(text):
    expression, kind = checked_example(text)
    compile = expressions.number if kind in ("integer", "number") else expressions.compile
    known = compile(expression, expressions.lookup(CARD, {})).range
    values = [value for value in (evaluate(expression, item) for item in ROWS) if value is not None]
    assert values
    if kind in ("integer", "number"):
        assert known is not None
        assert known.low <= min(values) <= max(values) <= known.high
        assert all(value == 0 or abs(value) >= known.least for value in values)
        assert all((Fraction(value) / Fraction(known.quantum)).denominator == 1 for value in values)


@every_row
def test_python_builds_it_too(row):
    expression = syntax(row.example)
    call = next(node for node in walk(expression) if isinstance(node, Call) and node.op == row.name)
    assert term(row.name, *call.args).expression == call
    assert pickle.loads(pickle.dumps(call)) == call


def test_spellings_are_of_one_operation_each():
    functions = [name for row in OPERATIONS.values() for name in row.functions]
    special = [item.name for row in OPERATIONS.values() for item in row.special_functions]
    classes = [form.node for row in OPERATIONS.values() for form in row.all_syntax]
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


def documented(row):
    """The line of an operation in docs/tables.md."""
    names = [*row.functions, *(item.name for item in row.special_functions)]
    others = [name for name in names if not row.example.startswith(f"{name}(")]
    spellings = ", ".join(f"`{text}`" for text in (row.example, *others))
    cells = [spellings, row.meaning, row.null_where, row.range_rule]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def test_the_documentation_lists_every_operation():
    text = (Path(__file__).parents[3] / "docs" / "tables.md").read_text(encoding="utf-8")
    listed = text.split("<!-- operations: begin -->\n")[1].split("<!-- operations: end -->")[0]
    head = ["| written | meaning | NULL where | range |", "|---|---|---|---|"]
    assert listed.splitlines() == [*head, *map(documented, OPERATIONS.values())]


def bounds_of(text):
    return expressions.number(checked_example(text)[0], expressions.lookup(CARD, {})).interval


def test_bounds_follow_from_those_of_the_columns():
    expected = {
        "ABS(x - 1)": (0, 3), "MONTH(d)": (1, 12), "ISODOW(t)": (1, 7), "WEEKDAY(t)": (0, 6), "HOUR(t)": (0, 23),
        "YEAR(d)": (1, 9999),
        "ROUND(x * 1.25)": (-3, 3), "ROUND(n * 7, -1)": (-20, 20), "TRUNC(x * 0.75)": (-1, 1), "SIGN(x)": (-1, 1),
        "n % 2": (-1, 1), "ABS(n) % 100": (0, 3), "SQRT(x + 2)": (0, 2), "POWER(n, 2)": (0, 9),
        "POWER(n, 3)": (-27, 27),
        "GREATEST(x, 0)": (0, 2), "LEAST(n, 1)": (-3, 1), "GREATEST(0, LEAST(100, CAST(s AS INTEGER)))": (0, 100),
        "LENGTH(s)": (0, 65_536), "CAST(b AS INTEGER)": (0, 1), "CAST(x * 0.75 AS INTEGER)": (-2, 2),
        "d - DATE '9999-12-31'": (-3_652_058, 0), "DATE_DIFF('year', DATE '2000-06-01', d)": (-1999, 7999),
        "IF(b, 5, n)": (-3, 5),
    }  # fmt: skip
    assert {text: bounds_of(text) for text in expected} == expected
    low, high = bounds_of("LN(x)")  # of what is above 0: what is smaller than half a step is 0
    assert low == pytest.approx(math.log(2**-22), abs=1e-6)
    assert high == pytest.approx(math.log(2))
    assert bounds_of("EXP(x)") == pytest.approx((math.exp(-2), math.exp(2)))


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("EXP(n * 200)", "exponents from"), ("SQRT(-1 - ABS(x))", "from 0 on"), ("LN(-ABS(x))", "above 0"),
        ("POWER(x * 1e100, 2)", "1e150"), ("ROUND(x * 1e16)", "2^53"),
    ],
)  # fmt: skip
def test_what_could_fail_by_its_bounds_is_refused(text, fragment):
    with refuses(InvalidArgument, fragment):
        bounds_of(text)


def test_a_boolean_is_counted_as_one_and_zero():
    checked = require_number(Column("b"), lambda column: TYPES[column.name], "AVG")
    assert [evaluate(checked, {"b": value}) for value in (True, False, None)] == [1, 0, None]
    assert expressions.number(checked, expressions.lookup(CARD, {})).interval == (0.0, 1.0)


def test_texts_that_grow_too_long_are_null():
    long = "x" * 1_024
    assert evaluate(syntax("s || ''"), {"s": long}) == long
    assert evaluate(syntax("s || 'x'"), {"s": long}) is None
    assert evaluate(syntax("REPLACE(s, 'x', 'yy')"), {"s": long}) is None


def test_arithmetic_of_whole_numbers_is_whole():
    """So it can be grouped by: ten years of age are FLOOR(age / 10) * 10."""
    find = expressions.lookup(CARD, {})
    for text in ("n + 1", "FLOOR(n / 10) * 10", "-n", "ABS(n) - n * n", "(n + 1) % 2", "MONTH(d) * 100 + DAY(d)"):
        assert expressions.compile(checked_example(text)[0], find).type == "integer", text
    for text in ("n / 1", "n + 0.5", "x + 1", "n * 1e16"):
        assert expressions.compile(checked_example(text)[0], find).type == "number", text


def test_a_unit_in_quotes_is_no_column():
    difference = Call("date_diff", (Literal("day"), Column("start"), Column("day")))
    for text in ("DATE_DIFF('day', start, day)", "DATEDIFF(day, start)"):
        assert syntax(text) == difference
    assert syntax("DATE_DIFF(d, start, MONTH)") == Call("date_diff", (Literal("month"), Column("start"), Column("d")))


def test_no_operation_loads_sqlglot_before_something_is_compiled():
    code = "import sys, dither.tables.query.operations; assert 'sqlglot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
