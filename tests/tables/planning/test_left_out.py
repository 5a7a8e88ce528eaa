"""What limits leave out is where it is said to be, whatever people there are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dither as dp
from dither.randomness import SeededSource, drawn_from
from dither.tables.planning import left_out
from dither.tables.planning.best_limit import EDGES
from dither.tables.planning.left_out import LeftOut, estimate_left_out

DRAWS = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def same_draws_whatever_ran_before():
    """Every test starts from the same seed, alone or after others."""
    DRAWS.bit_generator.state = np.random.default_rng(7).bit_generator.state


def zipf(exponent, largest=1000, people=4000):
    rows = np.arange(1, largest + 1)
    law = rows ** -float(exponent)
    return DRAWS.choice(rows, people, p=law / law.sum())


POPULATIONS = {
    **{f"zipf {exponent}": lambda exponent=exponent: zipf(exponent) for exponent in (0.5, 1.5, 1.8, 2, 2.5, 3)},
    "zipf 1.5 to 100,000": lambda: zipf(1.5, 100_000),
    "two humps": lambda: np.concatenate([DRAWS.integers(1, 6, 3900), DRAWS.integers(200, 400, 100)]),
    "one giant": lambda: np.concatenate([DRAWS.integers(1, 6, 3999), [10**7]]),
    "one giant among many": lambda: np.concatenate([np.full(3999, 12), [50_000]]),
    "all alike": lambda: np.full(4000, 7),
    "few": lambda: DRAWS.integers(1, 30, 20),
    "nobody": lambda: np.zeros(0, dtype=np.int64),
}


def histogram(rows_of_people):
    places = np.minimum(np.searchsorted(EDGES, rows_of_people), len(EDGES) - 1)
    return np.bincount(places, minlength=len(EDGES))


def noisy(counts, epsilon):
    """The histogram with discrete Laplace noise, seeded: the difference of two geometric variables."""
    rate = 1 - np.exp(-float(epsilon))
    return counts + (DRAWS.geometric(rate, len(counts)) - DRAWS.geometric(rate, len(counts))).astype(np.float64)


def share_beyond(people, limit):
    return np.maximum(people - limit, 0).sum() / max(people.sum(), 1)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("name", POPULATIONS)
def test_the_statement_is_true(name, epsilon):
    """Of 60 seeded histograms, no more miss than 0.05 of them allow with a probability of 1e-6; "at least" is an
    interval up to 100 %."""
    missed = 0
    for i in range(60):
        people, limit = POPULATIONS[name](), (1, 3, 10, 100)[i % 4]
        stated = estimate_left_out(noisy(histogram(people), epsilon), epsilon, limit)
        missed += not stated.low <= share_beyond(people, limit) <= stated.high
    assert missed <= stats.binom.isf(1e-6, 60, 0.05)


def test_with_little_noise_the_statement_says_much():
    """The least that it can be is near what it is, so that it is of use."""
    for name, limit, least in (
        ("all alike", 3, 0.56),
        ("two humps", 3, 0.7),
        ("zipf 1.8", 3, 0.6),
        ("zipf 1.5", 10, 0.75),
    ):
        people = POPULATIONS[name]()
        stated = estimate_left_out(noisy(histogram(people), 1), Fraction(1), limit)
        assert least <= stated.low <= share_beyond(people, limit), name


def test_no_upper_limit_is_stated_unless_it_is_public():
    """One person more, with very many rows, moves one bin by 1: no limit from above could hold for both tables."""
    people = np.full(4000, 3)
    for epsilon in (Fraction(1, 20), Fraction(10)):
        counts = noisy(histogram(people), epsilon)
        assert estimate_left_out(counts, epsilon, 1).high == 1
        stated = estimate_left_out(counts, epsilon, 1, most=4)
        assert stated.low <= 2 / 3 <= stated.high < 0.8
        assert estimate_left_out(counts, epsilon, 4, most=4) == LeftOut(0.0, 0.0, 0.0)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1, 2)])
def test_of_groups_both_limits_hold(epsilon):
    missed = 0
    for i in range(100):
        most, limit = (5, 12, 300)[i % 3], (1, 2, 4)[i % 3]
        groups = np.minimum(DRAWS.geometric(DRAWS.uniform(0.05, 0.6), 3000), most)
        stated = estimate_left_out(noisy(histogram(groups), epsilon), epsilon, limit, most)
        missed += not stated.low <= share_beyond(groups, limit) <= stated.high
    assert missed <= stats.binom.isf(1e-6, 100, 0.05)


def test_noise_exceeds_its_bound_no_more_often_than_stated():
    weights = np.array([np.ones(40), np.geomspace(0.1, 50, 40), np.eye(40)[3] * 7 + 1e-9])
    sums = DRAWS.laplace(size=(200_000, 40)) @ weights.T
    for doubt in (0.025, 0.001):
        exceeded = np.mean(sums > left_out._noise(weights, doubt), axis=0)
        assert (exceeded <= doubt).all()
        assert (exceeded >= doubt / 100).all()  # and the bound is of use


def test_words():
    assert str(LeftOut(1.9e-7, 0.0, 0.031)) == "about less than 0.01 % of the rows are left out (0 % to 3.1 %)"
    assert str(LeftOut.at_least(0.37)) == "at least 37 % of the rows are left out"
    assert LeftOut.at_least(0.0).of("people's groups") == "the noise hides whether any of people's groups are left out"


def test_a_plan_and_an_answer_state_what_is_true_of_a_long_tail():
    """zipf 1.8 up to 1000 rows, of which a limit of 3 leaves out three quarters; seeded."""
    people = zipf(1.8)
    who = np.repeat(np.arange(len(people)), people)
    rows = pa.table({"who": who, "town": np.array(["a", "b"])[who % 2]})
    budget = dp.ApproxDP(1000, 1e-3)
    with (
        drawn_from(SeededSource(1)),
        dp.open(rows, unit="who", keys={"town": ["a", "b"]}, budget=budget, name="visits") as table,
    ):
        for epsilon in (1, 10, 40):
            plan = dp.publish.Plan(table=table, tables=[("town",)], max_rows=3, bias=True)
            released = plan.release(epsilon=epsilon, delta=1e-9)
            assert released.left_out.low <= share_beyond(people, 3) <= released.left_out.high == 1
            assert any(str(released.left_out) in note for note in released.notes)
            answer = table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon, max_rows=3, bias=True)
            share, low, high = answer.left_out["n"]
            assert share == low <= share_beyond(people, 3) <= high == 1
            (bound,) = answer.low_by("n")
            assert bound[2] is None
            assert f"at least {bound[0]:,.0f}"[:10] in str(answer)
