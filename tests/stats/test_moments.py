"""Neighbours never move what is released by more than is paid for, exactly; answers stay in their domain."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from dither import AddRemove, ReplaceOne, stats
from dither.stats.moments import noise

FALSE_ALARM = 1e-9
BOTH = [AddRemove, ReplaceOne]
NUMBERS = [stats.sum, stats.mean, stats.variance, stats.std]

finite = st.floats(allow_nan=False, allow_infinity=False)
tricky = st.one_of(
    finite,
    st.floats(-10, 10),
    st.sampled_from([1e308, -1e308, 5e-324, -5e-324, 0.1, 1 / 3, 2.0**53, 2.0**53 + 2, 1 + 2**-52, -0.0, 2.0**-1074]),
)
int64 = st.integers(-(2**63), 2**63 - 1)
wild = st.one_of(int64, st.integers(-5, 5), st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63)]))


def clean(low: float, high: float) -> bool:
    return high - low > 1e-9 * max(abs(low), abs(high))


@st.composite
def float_bounds(draw: st.DrawFn) -> tuple[float, float]:
    ends = st.one_of(st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6), st.integers(-100, 100))
    low, high = sorted((draw(ends), draw(ends)))
    return (low, high) if clean(low, high) else (low, low + 1)


@st.composite
def int_bounds(draw: st.DrawFn) -> tuple[int, int]:
    """Small ranges anywhere, and wide ones around 0: wide and far from 0 is refused."""
    if draw(st.booleans()):
        low = draw(st.one_of(st.integers(-100, 100), st.sampled_from([-(2**61), 2**53, 2**62, -(2**63)])))
        return low, low + draw(st.integers(1, 200))
    return draw(st.integers(-100, 100)), draw(st.sampled_from([2**21, 2**31, 2**61]))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, tuple[float, float], Any]:
    whole, relation = draw(st.booleans()), draw(st.sampled_from(BOTH))
    bounds = draw(int_bounds() if whole else float_bounds())
    near = st.integers(int(bounds[0]), int(bounds[1])) if whole else st.floats(float(bounds[0]), float(bounds[1]))
    record = st.one_of(wild if whole else tricky, near)
    dtype = np.int64 if whole else np.float64
    x = draw(st.lists(record.filter(lambda v: not whole or -(2**63) <= v < 2**63), min_size=2, max_size=7))
    y = x[:-1] if relation is AddRemove else [draw(record.filter(lambda v: not whole or -(2**63) <= v < 2**63)), *x[1:]]
    y = draw(st.permutations(y))
    return np.array(x, dtype=dtype), np.array(y, dtype=dtype), bounds, relation


@pytest.mark.parametrize("statistic", NUMBERS)
@given(pair=neighbours())
def test_no_neighbours_move_the_exact_value_by_more_than_is_paid_for(statistic, pair, paid):
    x, y, bounds, relation = pair
    one, two = (paid(lambda z=z: statistic(z, bounds=bounds, epsilon=1, neighbors=relation)) for z in (x, y))
    assert one.covers(two)


@pytest.mark.parametrize("statistic", NUMBERS)
@given(pair=neighbours())
def test_the_same_with_a_delta_in_the_norm_of_the_noise_that_is_chosen(statistic, pair, paid):
    x, y, bounds, relation = pair
    one, two = (paid(lambda z=z: statistic(z, bounds, 1, 1e-3, neighbors=relation)) for z in (x, y))
    assert one.covers(two)


@given(pair=neighbours())
def test_the_bounded_method_is_paid_for_and_its_limits_do_not_follow_the_data(pair, paid):
    x, y, bounds, relation = pair
    if relation is ReplaceOne:
        one, two = (paid(lambda z=z: stats.variance(z, bounds=bounds, epsilon=1, method="bounded")) for z in (x, y))
        assert one.covers(two)
        assert (one.mechanism.lower, one.mechanism.upper) == (two.mechanism.lower, two.mechanism.upper)
        assert all(item.vector[0] <= Fraction(item.mechanism.upper) for item in (one, two))


@given(pair=neighbours())
def test_a_bernstein_vector_moves_by_exactly_its_sensitivity_when_a_record_leaves(pair, paid):
    x, _, bounds, _ = pair
    for statistic in (stats.mean, stats.variance):
        one, two = (paid(lambda z=z, f=statistic: f(z, bounds, 1, neighbors=AddRemove)) for z in (x, x[:-1]))
        assert sum(abs(a - b) for a, b in zip(one.vector, two.vector, strict=True)) == one.sensitivity
        assert all(item >= 0 for item in (*one.vector, *two.vector))


@given(flags=st.lists(st.booleans(), min_size=1, max_size=9), other=st.booleans())
def test_a_count_moves_by_one_at_most(flags, other, paid):
    for relation, y in ((AddRemove, flags[1:]), (ReplaceOne, [other, *flags[1:]])):
        for kind in (np.array, list):
            columns = (kind(flags), kind(y))
            one, two = (paid(lambda z=z, r=relation: stats.count(z, 1, neighbors=r)) for z in columns)
            assert one.covers(two)


@given(entries=st.lists(st.sampled_from([True, False, None, 1, 2.5, 0]), min_size=1, max_size=6), data=st.data())
def test_a_count_of_a_mixed_list_is_a_question_to_each_entry_by_itself(entries, data, paid):
    """One None among booleans once turned "how many are true" into "how many are there"."""
    i = data.draw(st.integers(0, len(entries) - 1))
    fewer = entries[:i] + entries[i + 1 :]
    for policy in ("drop", "lower"):
        one, two = (paid(lambda z=z, p=policy: stats.count(z, 1, neighbors=AddRemove, nan=p)) for z in (entries, fewer))
        assert one.covers(two)


def test_booleans_with_a_missing_entry_still_count_the_true_ones(paid):
    entries = [False] * 1000 + [True] * 3 + [None]
    for kind in (list, tuple, iter):
        assert paid(lambda k=kind: stats.count(k(entries), 1, neighbors=AddRemove, nan="drop")).vector == [3]


@pytest.mark.parametrize("relation", BOTH)
def test_the_order_of_the_rows_leaves_every_exact_value_alone(relation, paid):
    """Casacuberta et al. 2022: 2^53 followed by ones sums to 2^53 in floats, in the other order to more."""
    x = np.array([2.0**53] + [1.0] * 1000 + [1e-3] * 1000 + [-(2.0**53)])
    for statistic in NUMBERS:
        values = {
            tuple(paid(lambda z=z, f=statistic: f(z, bounds=(-(2**54), 2**54), epsilon=1, neighbors=relation)).vector)
            for z in (x, x[::-1], np.sort(x), np.roll(x, 700))
        }
        assert len(values) == 1


@pytest.mark.parametrize("n", [3, 200_000, 262_145])
def test_sums_of_the_largest_integers_do_not_wrap(n, paid):
    top = 2**62
    x = np.full(n, 2**63 - 1)
    assert paid(lambda: stats.sum(x, bounds=(top - 10, top), epsilon=1)).vector == [n * top]
    assert paid(lambda: stats.sum(-x, bounds=(-top, -top + 10), epsilon=1)).vector == [-n * top]


@given(entries=st.lists(st.integers(-50, 50), min_size=2, max_size=30))
def test_the_exact_values_of_integers_are_the_textbook_ones(entries, paid):
    x = np.array(entries)
    truth = [Fraction(v) for v in entries]
    middle = sum(truth) / len(truth)
    spread = sum((v - middle) ** 2 for v in truth) / (len(truth) - 1)
    assert paid(lambda: stats.sum(x, (-50, 50), 1)).vector == [sum(truth)]
    assert paid(lambda: stats.mean(x, (-50, 50), 1)).vector == [middle]
    assert paid(lambda: stats.variance(x, (-50, 50), 1)).vector == [spread]
    above, below = paid(lambda: stats.mean(x, (-50, 50), 1, neighbors=AddRemove)).vector
    assert above / (above + below) * 100 - 50 == middle


@pytest.mark.parametrize("statistic", [stats.sum, stats.mean])
@pytest.mark.parametrize("relation", BOTH)
def test_answers_are_near_the_truth(statistic, relation):
    x = np.arange(1000) % 90
    truth = x.sum() if statistic is stats.sum else x.mean()
    scale = 90 if statistic is stats.sum else 0.2
    assert abs(statistic(x, (0, 90), 1, neighbors=relation) - truth) < 25 * scale


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("data", [[], [3.0], [0.0] * 5, [0.0, 10.0], [5.0] * 50])
def test_variance_and_deviation_never_leave_their_domain(relation, data):
    if relation is ReplaceOne and len(data) < 2:
        return
    methods = ("clamped", "bounded") if relation is ReplaceOne else ("clamped",)
    for _ in range(40):
        for method in methods:
            spread = stats.variance(np.array(data), (0, 10), 0.1, neighbors=relation, method=method)
            deviation = stats.std(np.array(data), (0, 10), 0.1, neighbors=relation, method=method)
            assert 0 <= spread <= 50.001
            assert 0 <= deviation <= math.sqrt(50.001)


@pytest.mark.parametrize("bounds", [(0.1, 0.9), (-0.3, 0.7), (1 / 3, 2 / 3), (0, 1)])
def test_a_mean_of_a_private_size_stays_inside_the_bounds(bounds):
    for data in ([], [bounds[0]], [bounds[1]] * 3):
        for _ in range(60):
            assert bounds[0] <= stats.mean(np.array(data, dtype=float), bounds, 0.5, neighbors=AddRemove) <= bounds[1]


def test_a_delta_never_makes_the_noise_larger():
    for delta in (1e-9, 1e-3, 0.4):
        assert noise(1, 1, delta).variance <= noise(1, 1).variance * (1 + 1e-9)


def test_one_answer_costs_one_epsilon_and_says_so():
    for relation in BOTH:
        for statistic in NUMBERS:
            answer = statistic(np.arange(20), (0, 20), 0.1, neighbors=relation)
            assert answer.guarantee.exact_epsilon == Fraction(1, 10)
            assert answer.neighbors is relation
