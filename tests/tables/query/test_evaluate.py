"""What is done to the noisy table, against DuckDB doing the same."""

from __future__ import annotations

import math
import operator
from datetime import date, datetime
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import InvalidArgument
from dither.tables.compile.expressions import bounded
from dither.tables.query.evaluate import apply, check_shape, evaluate
from dither.tables.query.operations.base import LEAST, MOST, Range, advice_on_types
from dither.tables.query.operations.dates import start_of_period
from dither.tables.query.operations.text import like
from dither.tables.query.tree import Call, Column, Expression, Literal, Order, Shape, walk
from support import each, refuses
from tables.questions import conditions, numbers, op, sql, text

NAMES = ["word", "n", "s"]
HALVES = st.integers(-8, 8).map(lambda x: x / 2)


@pytest.fixture(scope="module")
def engine():
    connection = duckdb.connect()
    settings = {name for (name,) in connection.execute("SELECT name FROM duckdb_settings()").fetchall()}
    if "error_on_division_by_zero" in settings:  # DuckDB before 2.0 always returns NULL
        connection.execute("SET error_on_division_by_zero = false")
    connection.execute("SET ieee_floating_point_ops = false")
    connection.execute("CREATE TABLE noisy (place INTEGER, word VARCHAR, n DOUBLE, s DOUBLE)")
    yield connection
    connection.close()


def halved(expression: Expression) -> Expression:
    """The expression with constants that doubles hold exactly, so that both sides compute the same."""
    if isinstance(expression, Literal) and isinstance(expression.value, (int, float)) and expression.value is not True:
        return Literal(float(round(expression.value) % 17) / 2 - 4)
    return Call(expression.op, tuple(map(halved, expression.args))) if isinstance(expression, Call) else expression


def in_duckdb(expression: Expression) -> str:
    """Numbers are doubles there too, not decimals."""
    if isinstance(expression, Literal) and isinstance(expression.value, float):
        return f"CAST('{expression.value}' AS DOUBLE)"
    if isinstance(expression, Call):
        inside = [Column(f"\1{i}") for i in range(len(expression.args))]
        written = sql(Call(expression.op, tuple(inside)))
        for i, item in enumerate(expression.args):
            written = written.replace(f'"\1{i}"', in_duckdb(item))
        return written
    return sql(expression)


rows_ = st.lists(
    st.fixed_dictionaries(
        {"word": st.none() | st.text("abAB%_", max_size=3), "n": st.none() | HALVES, "s": st.none() | HALVES}
    ),
    max_size=8,
)
numeric = numbers(("n", "s"), 3, ("word",), dated=False).map(halved)
truths = conditions(3, ("n", "s"), ("word",), dated=False).map(halved)


@pytest.mark.slow
@settings(max_examples=400)
@given(
    rows=rows_,
    shown=st.lists(numeric | truths | st.just(Column("word")), min_size=1, max_size=3),
    having=st.none() | truths,
    order=st.lists(st.tuples(numeric | st.just(Column("word")), st.booleans()), max_size=2),
    limit=st.none() | st.integers(0, 9),
)
def test_as_duckdb_does(engine, rows, shown, having, order, limit):
    columns = {f"c{i}": item for i, item in enumerate(shown)}
    shape = Shape(columns, having, tuple(Order(*item) for item in order), limit)
    result = [tuple(row.values()) for row in apply(shape, NAMES, rows)]

    engine.execute("DELETE FROM noisy")
    if rows:
        values = [value for place, row in enumerate(rows) for value in (place, row["word"], row["n"], row["s"])]
        engine.execute(f"INSERT INTO noisy VALUES {', '.join(['(?, ?, ?, ?)'] * len(rows))}", values)
    query = f"SELECT {', '.join(in_duckdb(item) for item in shown)} FROM noisy"
    if having is not None:
        query += f" WHERE {in_duckdb(having)}"
    keys = [f"{in_duckdb(value)} {'DESC' if falling else 'ASC'} NULLS LAST" for value, falling in order]
    query += f" ORDER BY {', '.join([*keys, 'place'])}"
    if limit is not None:
        query += f" LIMIT {limit}"
    expected = engine.execute(query).fetchall()
    assert [tuple(map(plain, row)) for row in result] == [tuple(map(plain, row)) for row in expected]


def plain(value):
    """What is not finite is NULL; both zeros are one."""
    if isinstance(value, float):
        return None if not math.isfinite(value) else value + 0.0
    return value


@settings(max_examples=300)
@given(
    st.sampled_from(["year", "quarter", "month", "week", "day", "hour"]),
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)).map(lambda at: at.replace(fold=0)),
)
def test_periods(engine, period, at):
    expected = engine.execute("SELECT date_trunc(?, CAST(? AS TIMESTAMP))", [period, at]).fetchone()[0]
    assert start_of_period(period, at) == expected
    if period != "hour":
        assert start_of_period(period, at.date()) == expected.date()
        assert not isinstance(start_of_period(period, at.date()), datetime)


def test_the_first_week():
    assert start_of_period("week", date(1, 1, 3)) == date(1, 1, 1)


@settings(max_examples=500)
@given(st.text("ab%_\n", max_size=6), st.text("ab%_", max_size=6))
def test_patterns(engine, word, pattern):
    assert like(word, pattern) is engine.execute("SELECT ? LIKE ?", [word, pattern]).fetchone()[0]


def test_patterns_that_repeat_take_no_time():
    assert not like("a" * 3000, "%a" * 30 + "b")


BINS = [(-0.5, None), (0, 0), (9.5, 0), (10, 1), (19, 1), (20, 1), (20.5, None), (None, None), (math.nan, None)]


@pytest.mark.parametrize(("value", "place"), BINS)
def test_bins(value, place):
    assert evaluate(op("bin", "n", 0, 10, 20), {"n": value}) == place


VALUES = [
    (op("/", "n", 0), {"n": 1}, None),
    (op("/", "n", 0.0), {"n": 1}, None),
    (op("/", "n", 2), {"n": 3}, 1.5),
    (op("+", "n", 1), {"n": 2**80}, 2.0**80),
    (op("*", "n", "n"), {"n": 2**62}, 2.0**124),
    (op("neg", "n"), {"n": -(2**63)}, 2.0**63),
    (op("+", "n", 1), {"n": 2**63 - 2}, 2**63 - 1),
    (op("nullif", "n", 1), {"n": 1}, None),
    (op("nullif", "n", "m"), {"n": 1, "m": None}, 1),
    (op("*", "n", "n"), {"n": 1e200}, None),
    (op("+", "n", 0.5), {"n": 10**400}, None),
    (op("/", "n", 3), {"n": 10**400}, None),
    (Column("n"), {"n": math.nan}, None),
    (op("is_null", "n"), {"n": math.nan}, True),
    (op("is_null", "n"), {"n": 0}, False),
    (op("and", "n", False), {"n": None}, False),
    (op("and", "n", True), {"n": None}, None),
    (op("or", "n", True), {"n": None}, True),
    (op("or", "n", False), {"n": None}, None),
    (op("not", "n"), {"n": None}, None),
    (op("between", Literal(5), "n", 3), {"n": None}, False),
    (op("between", Literal(2), "n", 3), {"n": None}, None),
    (op("in", "n", 1, 2), {"n": None}, None),
    (op("in", "n", 1, None), {"n": 1}, True),
    (op("in", "n", 1, None), {"n": 2}, None),
    (op("in", "n", 1, 2), {"n": 3}, False),
    (op("case", op(">", "n", 1), 1, 2), {"n": None}, 2),
    (op("coalesce", "n", None, 3), {"n": None}, 3),
    (op("lower", "n"), {"n": "ÀB"}, "Àb"),
    (op("upper", "n"), {"n": "ßé"}, "ßé"),
    (op("=", "n", datetime(2024, 1, 1)), {"n": date(2024, 1, 1)}, True),
    (op("date_trunc", text("month"), "n"), {"n": date(2024, 5, 6)}, date(2024, 5, 1)),
    (Column("n"), {"n": [1, 2]}, [1, 2]),
]


@each(("expression", "row", "expected"), VALUES)
def test_values(expression, row, expected):
    result = evaluate(expression, row)
    assert result == expected
    assert type(result) is type(expected)


def test_order_is_stable_and_nulls_come_last():
    rows = [{"n": n, "i": i} for i, n in enumerate([2, None, 1, 2, None, 1])]
    rising = apply(Shape(order=(Order(Column("n")),)), ["n", "i"], rows)
    falling = apply(Shape(order=(Order(Column("n"), descending=True),)), ["n", "i"], rows)
    assert [row["i"] for row in rising] == [2, 5, 0, 3, 1, 4]
    assert [row["i"] for row in falling] == [0, 3, 2, 5, 1, 4]


def test_nothing_stated_shows_everything():
    rows = [{"a": 1, "b": 2}]
    assert apply(Shape(), ["b", "a"], rows) == [{"b": 2, "a": 1}]
    assert rows == [{"a": 1, "b": 2}]


def test_a_column_may_be_called_otherwise():
    shape = Shape({"n": op("+", "n", 1)}, having=op("=", "n", 1), order=(Order(Column("n")),))
    assert apply(shape, ["n"], [{"n": 1}, {"n": 2}]) == [{"n": 2}]


WRONG = [
    (Shape({"x": Column("m")}), "'m'"),
    (Shape(having=op(">", "nn", 1)), "write 'n'"),
    (Shape(order=(Order(Column("n", "table")),)), "names of groups"),
    (Shape({"x": Call("cbrt", (Column("n"),))}), "operation"),
    (Shape({"x": Call("+", (Column("n"),))}), "2 arguments"),
    (Shape({"x": Call("case", (Column("n"), Column("n")))}), "arguments"),
    (Shape(limit=-1), "limit"),
]


@pytest.mark.parametrize(("shape", "fragment"), WRONG, ids=str)
def test_checked_before_anything_is_charged(shape, fragment):
    with pytest.raises(InvalidArgument, match=fragment):
        check_shape(shape, ["n"])
    with pytest.raises(InvalidArgument, match=fragment):
        apply(shape, ["n"], [])


@pytest.mark.parametrize(
    "shape",
    [Shape({"x": op("+", "n", "s")}), Shape({"x": op("=", "n", "s")}), Shape(order=(Order(Column("n")),))],
    ids=str,
)
def test_values_of_different_kinds(shape):
    rows = [{"n": 1, "s": "secret"}, {"n": "secret", "s": 1}]
    with refuses(InvalidArgument, "different kinds") as refused:
        apply(shape, ["n", "s"], rows)
    assert "secret" not in str(refused.value)


def test_too_deep():
    deep: Expression = Column("n")
    for _ in range(5000):
        deep = Call("neg", (deep,))
    assert sum(1 for _ in walk(deep)) == 5001
    with refuses(InvalidArgument, "at most 100"):
        check_shape(Shape({"x": deep}), ["n"])


TEXT, NUMBER = (Column("delay"), "text"), (Literal(10), "integer")


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "between", "greatest", "least"])
def test_texts_are_read_as_numbers_where_the_order_counts(op):
    advice = advice_on_types(Call(op, (TEXT[0], NUMBER[0])), [TEXT, NUMBER], ["integer", "text"])
    assert "CAST(delay AS INTEGER)" in advice
    assert "quotes" not in advice


@pytest.mark.parametrize("op", ["=", "<>", "in"])
def test_a_code_may_be_written_in_quotes_where_values_are_equal(op):
    advice = advice_on_types(Call(op, (TEXT[0], NUMBER[0])), [TEXT, NUMBER], ["integer", "text"])
    assert advice.index('state type = "integer"') < advice.index("if it holds codes, write '10', with quotes")


numbers = st.floats(-1e40, 1e40, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-40)


@st.composite
def valued(draw):
    """A range with one of its values, by operations on constants and bounded columns."""
    leaf = draw(st.booleans())
    if leaf:
        low, high = sorted((draw(numbers), draw(numbers)))
        scale = 2.0 ** draw(st.integers(-10, 10))
        low, high = (round(end * scale) / scale for end in (low, high))
        value = round(min(max(draw(st.floats(low, high)), low), high) * scale) / scale
        return Range.of(low, high, 1 / scale), min(max(value, low), high)
    value = draw(numbers)
    return Range.constant(value), value


def inside(value: float, known: Range) -> bool:
    return (
        known.low <= value <= known.high
        and (value == 0 or abs(value) >= known.least)
        and Fraction(value) % Fraction(known.quantum) == 0
    )


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@given(valued(), st.lists(st.tuples(st.sampled_from("+-*/nar"), valued()), max_size=6))
def test_results_are_in_their_ranges(first, steps):
    known, value = first
    assert inside(value, known)
    for sign, (other, by) in steps:
        if sign == "n":
            known, value = -known, -value
        elif sign == "a":
            known, value = abs(known), abs(value)
        elif sign == "r":
            known = known | other
        else:
            if sign == "/" and by == 0:
                continue
            wider = OPERATORS[sign](known, other)
            try:
                known = wider.checked()
            except InvalidArgument:
                return
            value = OPERATORS[sign](value, by)
        assert inside(value, known), (sign, by)


def test_a_long_sum_of_grid_values_is_as_exact_as_one_of_them():
    one = Range.of(-1.0, 1.0, 2.0**-23)
    total = one
    for _ in range(99):
        total = (total + one).checked()
    assert (total.low, total.high, total.quantum) == (-100.0, 100.0, 2.0**-23)


@pytest.mark.parametrize("bounds", [(0, 10**400), (0.5, 1e308), (-1e308, 1e308), (0, 5e-324), (10**30, 10**30 + 1)])
def test_bounds_that_no_double_can_bear_are_refused(bounds):
    with refuses(InvalidArgument, "bounds"):
        bounded(*bounds)


def test_what_could_overflow_or_vanish_is_refused():
    for known in (Range.constant(MOST) + Range.constant(MOST), Range.constant(1e-150) * Range.constant(1e-150)):
        with refuses(InvalidArgument, "1e-250 and 1e150"):
            known.checked()
    assert (Range.constant(1e-150) * Range.constant(1e-99)).checked().least >= LEAST
    with refuses(InvalidArgument, "larger ones"):
        Range.whole(0, 10**400)
