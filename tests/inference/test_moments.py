"""Mean, variance and standard deviation from noisy sums: the truth is inside, whatever the noise within its error."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.inference import IntervalEstimate, NoisySum, mean, standard_deviation, variance
from dither.inference.moments import sample_variance, variance_limits

LARGEST = 3.0
VALUES = st.lists(st.floats(-LARGEST, LARGEST), min_size=0, max_size=40)
ERROR = st.floats(0, 60)
SHARE = st.floats(-1, 1)


def noisy(truth: float, error: float, share: float) -> NoisySum:
    return NoisySum(truth + share * error, error)


@st.composite
def sums(draw, fewest: int = 0):
    values = draw(VALUES.filter(lambda values: len(values) >= fewest))
    truths = (len(values), math.fsum(values), math.fsum(value * value for value in values))
    return values, [noisy(truth, draw(ERROR), draw(SHARE)) for truth in truths]


@given(sums(fewest=1))
def test_the_true_mean_is_inside(case):
    values, (count, total, _) = case
    estimate = mean(count, total, LARGEST)
    assert -LARGEST <= estimate.low <= estimate.value <= estimate.high <= LARGEST
    assert estimate.low - 1e-9 <= statistics.fmean(values) <= estimate.high + 1e-9


@given(sums(fewest=2))
def test_the_true_variance_and_standard_deviation_are_inside(case):
    values, (count, total, squares) = case
    estimate, true = variance(count, total, squares, LARGEST), statistics.variance(values)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 2 * LARGEST**2 * (1 + 1e-12)
    assert estimate.low - 1e-6 <= true <= estimate.high + 1e-6
    root = standard_deviation(estimate)
    assert root.low - 1e-6 <= math.sqrt(true) <= root.high + 1e-3


def propagated(count: NoisySum, total: NoisySum, squares: NoisySum) -> tuple[float, float]:
    """The errors of mean and variance by the triangle inequality, kept to what is possible: wider, never narrower."""
    value = min(max(total.value / count.value, -LARGEST), LARGEST)
    least, largest = count.value - count.error, 2 * LARGEST**2
    error = LARGEST + abs(value)
    if least > 0:
        error = min((total.error + abs(value) * count.error) / least, error)
    square = squares.value / count.value
    spread = max(square - value * value, 0.0)
    of_variance = min(spread * (count.value / (count.value - 1) if count.value > 1 else 1.0), largest)
    off = max(of_variance, largest - of_variance)
    if least > 1:
        moved = (squares.error + abs(square) * count.error) / least + 2 * abs(value) * error + error * error
        off = min(moved * least / (least - 1) + spread * (1 / (least - 1) - 1 / (count.value - 1)), off)
    return error, off


@given(sums())
def test_intervals_are_never_wider_than_by_the_triangle_inequality(case):
    _, (count, total, squares) = case
    if count.value < 1:
        return
    first, second = mean(count, total, LARGEST), variance(count, total, squares, LARGEST)
    error, off = propagated(count, total, squares)
    assert first.error <= error * (1 + 1e-9) + 1e-9
    spread = squares.value / count.value - first.value**2
    if 0 <= spread <= LARGEST**2 and count.value >= 2:  # elsewhere the estimate itself is kept to what is possible
        assert second.error <= off * (1 + 1e-9) + 1e-9


def test_corners_are_narrower_where_the_mean_is_far_from_the_middle():
    count, total, squares = NoisySum(1000, 10.0), NoisySum(2000, 30.0), NoisySum(5000, 90.0)
    assert variance(count, total, squares, LARGEST).error < propagated(count, total, squares)[1]


@pytest.mark.parametrize("count", [NoisySum(0, 3.0), NoisySum(-5, 3.0), NoisySum(0.5, 0.1)])
def test_without_any_values_the_limits_are_those_of_the_bounds(count):
    assert mean(count, NoisySum(5, 1.0), LARGEST) == IntervalEstimate(0.0, -LARGEST, LARGEST)
    assert variance(count, NoisySum(5, 1.0), NoisySum(5, 1.0), LARGEST) == IntervalEstimate(0.0, 0.0, 2 * LARGEST**2)


def test_a_count_that_may_be_none_or_one_says_nothing():
    few = NoisySum(3, 3.0)
    assert mean(few, NoisySum(3, 1.0), LARGEST) == IntervalEstimate(1.0, -LARGEST, LARGEST)
    estimate = variance(NoisySum(3, 2.0), NoisySum(0, 1.0), NoisySum(6, 1.0), LARGEST)
    assert (estimate.value, estimate.low, estimate.high) == (3.0, 0.0, 2 * LARGEST**2)


def test_squares_of_a_coarser_grid_may_be_a_little_larger():
    exact = NoisySum(100, 0.0), NoisySum(0, 0.0), NoisySum(910, 0.0)
    assert variance(*exact, LARGEST, 9.1).high == pytest.approx(9.0 * 100 / 99)


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=2).map(sorted),
    st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted),
    st.lists(st.floats(2, 100), min_size=2, max_size=2).map(sorted),
    st.tuples(*[st.floats(0, 1)] * 3),
)
def test_limits_of_a_variance_hold_every_point_between(first, second, count, shares):
    low, high = variance_limits(tuple(first), tuple(second), tuple(count), 1.0)
    point = [a + share * (b - a) for (a, b), share in zip((first, second, count), shares, strict=True)]
    if point[1] >= point[0] ** 2:  # otherwise they are the moments of nothing
        assert low - 1e-12 <= sample_variance(*point, 1.0) <= high + 1e-12
