"""Limits and bounds of a question without a profile, from a sketch that a part of its epsilon buys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.guarantees import PureDP
from dither.tables.planning.automatic import VALUES_OF
from dither.tables.planning.sketch import sketch_edges
from support import each, noted
from tables.glass import glass

GENERATOR = np.random.default_rng(12)
SIZES = np.ceil(GENERATOR.lognormal(2.5, 0.9, 3000)).astype(int)
WHO = np.repeat(np.arange(len(SIZES)), SIZES)
X = np.clip(GENERATOR.gamma(0.6, 25, len(WHO)) - 8, -40, 2000)
TOWN = np.array(["a", "b", "c", "d"])[GENERATOR.integers(0, 4, len(WHO))]
DATA = pa.table({"who": WHO, "x": X, "town": TOWN})


@pytest.fixture(scope="module")
def table():
    card = {"bounds": {"x": (-40, 2000)}, "keys": {"town": ["a", "b", "c", "d"]}}
    with dp.open(
        DATA, unit="who", name="t", budget=dp.PureDP(2000), max_rows="auto", max_groups="auto", **card
    ) as result:
        yield result


def test_the_sketch_is_a_part_of_what_is_charged(table):
    question = table.sql("SELECT town, AVG(x) AS a FROM t GROUP BY town")
    plan = question.plan(1.0).parts[0]
    assert plan.guarantee == PureDP(1)
    assert plan.automatic == {"max_rows": Fraction(1, 10), VALUES_OF + "a": Fraction(1, 20)}
    with glass() as seen:
        question.release(1.0, again=True)
    people, values, *answers = seen.added
    spent = sum(Fraction(mechanism.epsilon) for mechanism, _ in [people, values, *answers])
    assert Fraction(99, 100) < spent <= 1
    assert people[1].sum() == len(SIZES)
    one = values[0].sensitivity
    assert one == 1 << 10  # weights of a person add up to 1 in units of 2^-10
    assert abs(values[1].sum() / one - len(SIZES)) < 0.02 * len(SIZES)  # each person adds one value in all


def test_means_get_limits_and_bounds_of_their_own_and_say_so(table):
    answer = table.sql("SELECT town, AVG(x) AS a FROM t GROUP BY town").release(1.0, again=True, force=True)
    (bounds,) = noted(answer, "bounds_chosen")
    assert -40 <= bounds["low"] < 0 < bounds["high"] < 500
    assert answer.parts("a").limits[0] > 0


@each(
    "sql",
    [
        "SELECT town, COUNT(*) AS a FROM t GROUP BY town",
        "SELECT AVG(x, contribution_bounds_per_row => (0, 50)) AS a FROM t",
        "SELECT AVG(CASE WHEN x > 3 THEN 1 ELSE 0 END) AS a FROM t",
    ],
)
def test_nothing_is_sketched_where_bounds_are_stated_or_do_not_matter(sql, table):
    plan = table.sql(sql).plan(1.0).parts[0]
    assert not [name for name in plan.automatic if name.startswith(VALUES_OF)]


def test_bounds_of_a_sum_are_looked_for(table):
    asked = table.sql("SELECT town, SUM(x) AS a FROM t GROUP BY town")
    (bounds,) = noted(asked.release(2.0, again=True, force=True), "bounds_chosen")
    assert -40 <= bounds["low"] < 0 < bounds["high"] < 500


def test_a_count_beside_a_mean_gets_back_what_its_limit_leaves_out(table):
    answer = table.sql("SELECT town, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY town").release(
        2.0, again=True, force=True
    )
    assert all(error > 0 for error in answer.parts("n").limits)
    true = [(town == TOWN).sum() for town in "abcd"]
    assert answer["n"] == pytest.approx(true, rel=0.1)


def test_the_error_is_far_below_that_of_the_bounds_of_the_card_and_covers(table):
    inside, off = [], []
    for _ in range(12):
        answer = table.sql("SELECT town, AVG(x) AS a FROM t GROUP BY town").release(1.0, again=True, force=True)
        for row, error in zip(answer.dicts(), answer.error("a"), strict=True):
            true = X[row["town"] == TOWN].mean()
            off.append(abs(row["a"] - true))
            inside.append(off[-1] <= error)
    assert np.mean(inside) >= 0.9
    assert np.median(off) < 2.5


def test_where_each_row_is_a_person_the_sketch_is_of_values_alone():
    rows = pa.table({"x": X, "y": 3 * X + GENERATOR.normal(0, 20, len(X)), "town": TOWN})
    every = {
        "SELECT SUM(x) AS a FROM t": (X.sum(), 0.05),
        "SELECT AVG(x) AS a FROM t": (X.mean(), 0.05),
        "SELECT STDDEV(x) AS a FROM t": (X.std(), 0.1),
        "SELECT CORR(x, y) AS a FROM t": (np.corrcoef(X, rows["y"].to_numpy())[0, 1], 0.1),
        "SELECT REGR_SLOPE(y, x) AS a FROM t": (3, 0.2),
    }
    bounds = {"x": (-40, 2000), "y": (-2000, 8000)}
    with dp.open(rows, name="t", bounds=bounds, budget=dp.PureDP(2000), max_rows="auto") as people:
        for sql, (true, most) in every.items():
            answer = people.sql(sql).release(1.0, force=True)
            assert answer.cost == PureDP(1)
            assert answer["a"][0] == pytest.approx(true, rel=most), sql
            assert abs(answer["a"][0] - true) <= 3 * answer.error("a")[0], sql
        plan = people.sql("SELECT CORR(x, y) AS a FROM t").plan(1.0).parts[0]
        assert sum(plan.automatic.values()) == Fraction(1, 10)


@each("epsilon", [0.001, 0.02])
def test_a_sketch_of_noise_alone_leaves_the_bounds_of_the_card(epsilon, table):
    answer = table.sql("SELECT AVG(x) AS a FROM t").release(epsilon, again=True, force=True)
    assert answer["a"] == [None] or answer.error("a")[0] > 0


def test_edges_hold_the_bounds():
    for bounds in ((-100, 2000), (0, 1500), (5, 7), (-3.5, -1)):
        edges = sketch_edges(bounds)
        assert (edges[0], edges[-1]) == bounds
        assert list(edges) == sorted(set(edges))
    assert min(abs(edge) for edge in sketch_edges((-100, 2000), whole=True) if edge) >= 1
