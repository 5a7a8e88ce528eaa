"""Conservative limits of mean and variance: the truth is inside, whatever the noise within its error."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.inference.moments import mean_limits, spread_limits, variance_limits

LARGEST = 3.0
VALUES = st.lists(st.floats(-LARGEST, LARGEST), min_size=0, max_size=40)
ERROR = st.floats(0, 60)
SHARE = st.floats(-1, 1)


def noisy(truth: float, error: float, share: float) -> tuple[float, float]:
    """The range around a released number that is off by this share of its error."""
    released = truth + share * error
    return released - error, released + error


@st.composite
def ranges(draw, fewest: int = 0):
    values = draw(VALUES.filter(lambda values: len(values) >= fewest))
    truths = (len(values), math.fsum(values), math.fsum(value * value for value in values))
    return values, [noisy(truth, draw(ERROR), draw(SHARE)) for truth in truths]


@given(ranges(fewest=1))
def test_the_true_mean_is_inside(case):
    values, (count, total, _) = case
    low, high = mean_limits(count, total, LARGEST)
    assert -LARGEST <= low <= high <= LARGEST
    assert low - 1e-9 <= statistics.fmean(values) <= high + 1e-9


@given(ranges(fewest=2))
def test_the_true_variance_is_inside(case):
    values, sums = case
    low, high = variance_limits(*sums, LARGEST, LARGEST**2)
    assert low >= 0
    assert high <= 2 * LARGEST**2 * (1 + 1e-12)
    assert low - 1e-6 <= statistics.variance(values) <= high + 1e-6


def propagated(count: float, total: float, squares: float, errors: tuple[float, float, float]) -> tuple[float, float]:
    """The errors of mean and variance by the triangle inequality, for sums that values can have."""
    value, square, least = total / count, squares / count, count - errors[0]
    of_mean = (errors[1] + abs(value) * errors[0]) / least
    moved = (errors[2] + square * errors[0]) / least + 2 * abs(value) * of_mean + of_mean * of_mean
    spread = square - value * value
    return of_mean, moved * least / (least - 1) + spread * (1 / (least - 1) - 1 / (count - 1))


@pytest.mark.parametrize("total", [-2000.0, 0.0, 2000.0])
def test_limits_are_never_wider_than_by_the_triangle_inequality(total):
    count, squares, errors = 1000.0, 5000.0, (10.0, 30.0, 90.0)
    sums = [(value - error, value + error) for value, error in zip((count, total, squares), errors, strict=True)]
    of_mean, of_variance = propagated(count, total, squares, errors)
    low, high = mean_limits(sums[0], sums[1], LARGEST)
    assert max(high - total / count, total / count - low) <= of_mean * (1 + 1e-9)
    low, high = variance_limits(*sums, LARGEST, LARGEST**2)
    value = (squares / count - (total / count) ** 2) * count / (count - 1)
    assert max(high - value, value - low) <= of_variance * (1 + 1e-9)


@pytest.mark.parametrize("count", [(-3.0, 3.0), (-8.0, -2.0), (0.0, 6.0)])
def test_a_count_that_may_be_none_says_nothing(count):
    assert mean_limits(count, (4.0, 6.0), LARGEST) == (-LARGEST, LARGEST)
    assert variance_limits(count, (4.0, 6.0), (4.0, 6.0), LARGEST, 9.0) == (0.0, 2 * LARGEST**2)


def test_a_count_that_may_be_one_says_nothing_about_the_variance():
    assert variance_limits((1.0, 5.0), (-1.0, 1.0), (5.0, 7.0), LARGEST, 9.0) == (0.0, 2 * LARGEST**2)


def test_squares_of_a_coarser_grid_may_be_a_little_larger():
    limits = variance_limits((100.0, 100.0), (0.0, 0.0), (910.0, 910.0), LARGEST, 9.1)
    assert limits[1] == pytest.approx(9.0 * 100 / 99)


def test_groups_are_independent_of_each_other():
    count, total = np.array([[90.0, 0.0], [110.0, 4.0]]), np.array([[10.0, 1.0], [30.0, 2.0]])
    low, high = mean_limits((count[0], count[1]), (total[0], total[1]), LARGEST)
    assert (low[0], high[0]) == mean_limits((90.0, 110.0), (10.0, 30.0), LARGEST)
    assert (low[1], high[1]) == (-LARGEST, LARGEST)


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=2).map(sorted),
    st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
    st.lists(st.floats(2, 100), min_size=2, max_size=2).map(sorted),
    st.tuples(*[st.floats(0, 1)] * 3),
)
def test_limits_of_a_spread_hold_every_point_between(first, second, count, shares):
    low, high = spread_limits(tuple(first), tuple(second), tuple(count), 1.0)
    m1, m2, size = (a + share * (b - a) for (a, b), share in zip((first, second, count), shares, strict=True))
    if m2 >= m1**2:  # otherwise they are the moments of nothing
        assert low - 1e-12 <= min(m2 - m1**2, 1.0) * size / (size - 1) <= high + 1e-12
