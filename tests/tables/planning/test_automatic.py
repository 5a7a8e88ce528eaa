"""What is chosen privately: bounds, and how many groups of a person count."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DitherError
from dither.guarantees import ApproxDP, PureDP
from dither.tables.planning import automatic
from dither.tables.query.tree import Aggregate, Call, Column, Group, Literal, Query
from support import refuses
from tables.glass import glass

ROWS = pa.table(
    {
        "who": [i // 3 for i in range(6000)],
        "town": [f"t{i % 3}" for i in range(6000)],
        "x": [100.0 + i % 300 for i in range(6000)],
        "zero": [0] * 6000,
        "big": [-5_000_000 + i for i in range(6000)],
    }
)


@pytest.fixture(autouse=True)
def sure(monkeypatch):
    """No test here fails by chance."""
    monkeypatch.setattr(automatic, "CONFIDENCE", 1 - 1e-11)


@pytest.fixture
def table():
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(4000, 0.1), delta=1e-6, max_rows=3) as result:
        yield result


def test_bounds_hold_the_values(table):
    result = table.agg(m=dp.mean("x", bounds="auto"), b=dp.mean("big", bounds="auto")).release(100)
    assert result["m"][0] == pytest.approx(249.5, abs=5)
    assert result["b"][0] == pytest.approx(-4_997_000, rel=0.01)
    assert [note for note in result.notes if "bounds of m = (64, 512)" in note]
    assert [note for note in result.notes if "bounds of b = (-8.38861e+06, -4.1943e+06)" in note]


def test_bounds_of_whole_numbers_are_whole_and_apart(table):
    """All values 0: the powers of two next to it are 0 and 2^-20, and no whole number lies between."""
    result = table.agg(m=dp.mean("zero", bounds="auto")).release(100)
    assert "bounds of m = (0, 1)" in result.notes[-1]
    assert result["m"][0] == pytest.approx(0, abs=0.1)


def test_enough_groups_are_chosen(table):
    result = table.group_by("town").agg(n=dp.people()).release(100, max_groups="auto")
    assert "max_groups = 3" in result.notes[-1]
    assert result["n"] == pytest.approx([2000] * 3, abs=20)


def test_a_row_is_in_one_group():
    """Without a unit there is nothing to choose, and nothing to pay for it."""
    with dp.open(ROWS, budget=dp.ApproxDP(100, 0.1), delta=1e-6) as table:
        plan = table.group_by("town").agg(n=dp.count()).plan(1, max_groups="auto")
        assert plan.automatic is None
        result = table.group_by("town").agg(s=dp.mean("x", bounds="auto")).release(50, max_groups="auto")
        assert len([note for note in result.notes if "chosen privately" in note]) == 1
        assert result["s"] == pytest.approx([248.5, 249.5, 250.5], abs=5)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("consistent", [False, True])
def test_the_choices_are_part_of_what_is_charged(delta, consistent):
    """Everything that reaches a mechanism, choices included, costs no more than the charge."""
    keys = {"town": ["t0", "t1", "t2"]}
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(100, 0.1), keys=keys, max_rows=3) as table:
        question = table.group_by("town").agg(m=dp.mean("x", bounds="auto"), n=dp.count())
        plan = question.plan(1, delta=delta, max_groups="auto", consistent=consistent, noise="laplace")
        assert plan.guarantee == (PureDP(1) if delta is None else ApproxDP(1, delta))
        assert plan.automatic == Fraction(1, 20)
        with glass() as seen:
            question.release(1, delta=delta, max_groups="auto", consistent=consistent, noise="laplace")
        assert sum(Fraction(mechanism.epsilon) for mechanism, _ in seen.added) <= 1
        assert sum(Fraction(mechanism.epsilon) for mechanism, _ in seen.added) > Fraction(99, 100)
        spread, magnitudes = seen.added[0][1], seen.added[1][1]
        assert spread.tolist()[:4] == [0, 0, 2000, 0]
        assert (spread.sum(), seen.added[0][0].sensitivity) == (2000, 1)
        assert (magnitudes.sum() <= 3 * 2000, seen.added[1][0].sensitivity) == (True, 3)


def test_bounds_of_an_expression_are_stated():
    query = Query({"m": Aggregate("mean", Call("+", (Column("x"), Literal(1))), bounds="auto")})
    with refuses(DitherError, "plain column"):
        automatic.unstated_limits(query, 1)
    both = Query({"m": Aggregate("mean", Column("x"), bounds="auto")}, (Group("town", Column("town")),))
    assert automatic.unstated_limits(both, "auto") == ["max_groups", "m"]
    assert automatic.unstated_limits(both, 1) == ["m"]
    assert automatic.with_provisional_bounds(both).aggregates["m"].bounds == (0.0, 1.0)


def test_nothing_at_all_is_no_error():
    with dp.open(ROWS.slice(0, 0), unit="who", budget=dp.ApproxDP(100, 0.1), delta=1e-6) as table:
        result = table.group_by("town").agg(m=dp.mean("x", bounds="auto")).release(1, max_groups="auto")
        assert len(result) == 0


def test_without_enough_values_there_are_no_bounds_and_no_answer():
    """What noise alone would show is no reason for bounds: the answer is NULL, and says why."""
    few = pa.table({"who": [1, 2, 3], "x": [100.0, 200.0, 300.0]})
    with dp.open(few, unit="who", budget=dp.PureDP(10)) as table:
        result = table.agg(m=dp.mean("x", bounds="auto"), n=dp.count()).release(0.5)
        assert result["m"] == [None]
        assert result.error("m") == [None]
        assert isinstance(result["n"][0], int)
        assert [note for note in result.notes if "no bounds of m could be found" in note]


def test_the_noise_that_was_asked_for_is_part_of_what_is_recorded(table):
    question = table.group_by("town").agg(n=dp.people())
    assert not question.release(1, max_groups="auto").replayed
    assert not question.release(1, max_groups="auto", noise="laplace").replayed
    assert question.release(1, max_groups="auto", noise="laplace").replayed
