"""What is measured for an aggregate: keys of a mode that are public without being listed, and what is shared."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.planning import plan
from dither.tables.query.tree import Aggregate, Column, Query
from support import each, refuses
from tables.glass import card
from tables.raw_rows import answered, truth

ROWS = pa.table(
    {"x": [3, 3, 3, 4, 5] * 40, "late": [True, False, False, True, False] * 40, "code": ["a", "b", "b", "c", "d"] * 40}
)


@pytest.fixture(scope="module")
def table():
    with dp.open(ROWS, bounds={"x": (0, 9)}, budget=dp.PureDP(4000), name="t") as result:
        yield result


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("MODE(x)", 3),
        ("MODE(late)", False),
        ("MODE(x > 3)", False),
        ("MODE(CASE WHEN x = 3 THEN 'three' ELSE 'other' END)", "three"),
        ("MODE() WITHIN GROUP (ORDER BY x)", 3),
    ],
)
def test_a_mode_is_chosen_among_keys_that_are_public_without_being_listed(table, sql, mode):
    assert table.sql(f"SELECT {sql} AS m FROM t").release(100, again=True)["m"] == [mode]


def test_a_list_in_where_makes_the_keys_of_a_mode_public(table):
    assert table.sql("SELECT MODE(code) AS m FROM t WHERE code IN ('a', 'b')").release(100)["m"] == ["b"]
    assert table.agg(m=dp.mode(dp.col("x") < 4)).release(100)["m"] == [True]


def test_a_mode_among_keys_that_nobody_states_is_refused_with_a_way_out(table):
    question = table.sql("SELECT MODE(code) AS m FROM t")
    with refuses(InvalidArgument, "WHERE code IN (…)"):
        question.plan(1)


@each("rows", [1, 7, 200])
@each("other", ["STDDEV(x)", "VAR_SAMP(x)"])
def test_a_mean_is_as_fine_beside_a_variance_as_alone(rows, other):
    """Squares of a fine grid do not fit; a coarser grid had moved the mean."""
    given = pa.table({"who": list(range(900)), "x": [(i * i % 1009) / 100 + 0.0195 for i in range(900)]})
    ((mean, spread),) = truth("SELECT AVG(x), " + other + " FROM data", data=given)
    with dp.open(given, unit="who", bounds={"x": (0, 5000)}, max_rows=rows, budget=dp.PureDP(1000)) as table:
        alone = answered(table, "SELECT AVG(x) AS m FROM data").rows[0][0]
        beside, variance = answered(table, f"SELECT AVG(x) AS m, {other} AS s FROM data").rows[0]
    step = 5000 / (1 << 19)
    assert abs(alone - mean) < step
    assert abs(beside - mean) < step
    assert abs(variance - spread) < (0.1 if rows == 1 else 20)


def test_a_third_of_the_budget_of_a_choice_goes_to_its_interval():
    query = Query({"m": Aggregate("max", Column("age")), "k": Aggregate("mode", Column("region"))})
    without, asked = (plan.make(query, card(), epsilon=1, intervals=intervals) for intervals in (False, True))
    for before, after in zip(without.choices, asked.choices, strict=True):
        assert before.interval is None
        assert after.interval is not None
        total = Fraction(after.mechanism.epsilon) + Fraction(after.interval.epsilon)
        assert Fraction(before.mechanism.epsilon) - Fraction(1, 10**12) <= total <= Fraction(1, 2)
        assert after.interval.epsilon == pytest.approx(1 / 6)


def test_errors_for_a_population_take_squares_as_well():
    query = Query({"m": Aggregate("mean", Column("age")), "s": Aggregate("sum", Column("age"))})
    noise, population = (plan.make(query, card(), epsilon=1, population=yes) for yes in (False, True))
    assert [len(made.measures) for made in (noise, population)] == [2, 3]
