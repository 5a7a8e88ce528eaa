"""Intervals of mean, variance and standard deviation cover as often as they say, and are no wider than they must be.

False alarms have a probability below 1e-9. Every test of coverage is shown to fail on intervals of 0.8 times the width.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither.inference import IntervalEstimate, NoiseLaw, mean, measured, standard_deviation, variance
from dither.mechanisms import Gaussian, Laplace
from dither.randomness import SeededSource
from support import each

ASKS, CONFIDENCE = 8_000, 0.95
RESOLUTION = 0.004
"""How far the coverage may be off by the sample of the noise and the terms of third order."""
FEWEST = int(scipy_stats.binom.ppf(1e-9, ASKS, CONFIDENCE - RESOLUTION))
MOST = int(scipy_stats.binom.isf(1e-9, ASKS, CONFIDENCE + 0.01))
STEPS = 1 << 10
POPULATIONS = {
    "uniform": np.linspace(-1, 1, 401),
    "off the middle": np.linspace(0.1, 0.9, 800),
    "two values": np.repeat([-0.5, 0.5], 300),
    "skewed": np.linspace(0, 1, 700) ** 4 * 2 - 1,
}
LAWS = {
    "Laplace": lambda sensitivity, epsilon: Laplace(sensitivity, epsilon),
    "Gaussian": lambda sensitivity, epsilon: Gaussian(sensitivity, 4 * epsilon, 1e-6),
}


def released(x, law, epsilon, parts, asks=ASKS, confidence=CONFIDENCE):
    """Noisy sums as tables release them: whole numbers of steps, with new noise for every ask."""
    steps = np.rint(x * STEPS).astype(np.int64)
    values, laws = [], []
    for power in range(parts):
        mechanism = LAWS[law](STEPS**power, epsilon / parts)
        values.append(np.asarray(mechanism.release(np.full(asks, (steps**power).sum()))) * float(STEPS) ** -power)
        laws.append(NoiseLaw.of(mechanism, integer=True, unit=float(STEPS) ** -power))
    return measured(values, laws, confidence), steps / STEPS


def asked(what, x, law, epsilon, asks=ASKS):
    """The estimates of many asks, each with the truth: the mean, or the variance and the standard deviation."""
    if what == "mean":
        sums, exact = released(x, law, epsilon, 2, asks)
        return [(mean(*sums, 1.0), float(exact.mean()))]
    sums, exact = released(x, law, epsilon, 3, asks)
    square, truth = variance(*sums, 1.0), float(exact.var(ddof=1))
    return [(square, truth), (standard_deviation(square), math.sqrt(truth))]


def hits(low, high, truth):
    return int(np.sum((low <= truth + 1e-9) & (truth <= high + 1e-9)))


@each("epsilon", [0.3, 5.0])
@each("law", LAWS)
@each("population", POPULATIONS)
@each("what", ["mean", "variance"])
def test_intervals_cover_as_often_as_they_say_and_are_no_wider_than_needed(what, population, law, epsilon):
    for estimate, truth in asked(what, POPULATIONS[population], law, epsilon):
        value, low, high = estimate
        assert hits(low, high, truth) >= FEWEST
        if np.mean(low > (-1 if what == "mean" else 0)) > 0.9:  # elsewhere nothing is missed on one side
            assert hits(low, high, truth) <= MOST
            assert hits(value - 0.8 * (value - low), value + 0.8 * (high - value), truth) < FEWEST
            needed = np.quantile(np.abs(value - truth), CONFIDENCE)
            assert np.median(high - low) / 2 <= 1.15 * needed
            assert hits(value - estimate.error, value + estimate.error, truth) >= FEWEST


@each("what", ["mean", "variance"])
@each("law", LAWS)
@each("size", [2, 15, 60])
@each("values", [[-1, 1], [0.9, 1], [-1, -1], [0, 0.2]])
def test_intervals_of_small_groups_cover_at_least_as_often_as_they_say(what, law, size, values):
    x = np.resize(np.array(values, dtype=np.float64), size)
    for epsilon in (0.1, 1.0):
        for (value, low, high), truth in asked(what, x, law, epsilon, asks=2_000):
            assert hits(low, high, truth) >= scipy_stats.binom.ppf(1e-9, 2_000, 0.945)
            assert (low <= value).all()
            assert (value <= high).all()


@pytest.mark.parametrize("count", [0.0, -5.0, 0.5])
def test_without_any_values_the_limits_are_those_of_the_bounds(count):
    sums = measured([count, 5.0, 5.0], [NoiseLaw("laplace", 2.0)] * 3, CONFIDENCE)
    assert [float(number[0]) for number in mean(*sums[:2], 3.0)] == [0.0, -3.0, 3.0]
    assert [float(number[0]) for number in variance(*sums, 3.0)] == [0.0, 0.0, 18.0]


def test_impossible_sums_have_intervals_that_never_shrink_to_nothing():
    laws = [NoiseLaw("laplace", 2.0)] * 3
    impossible, far, nearest = (
        variance(*measured([500.0, 0.0, s], laws, CONFIDENCE), 1.0) for s in (-40.0, -4000.0, 0.0)
    )
    assert impossible == far
    assert math.sqrt(8) / 499 < impossible.high < nearest.high  # one standard error of the noise at least
    assert [float(number[0]) for number in impossible[:2]] == [0.0, 0.0]
    impossible, nearest = (mean(*measured([500.0, t], laws[:2], CONFIDENCE), 1.0) for t in (540.0, 500.0))
    assert impossible == nearest
    assert impossible.low < 0.99


@pytest.mark.parametrize("what", ["mean", "variance"])
def test_intervals_widen_with_the_confidence_and_beyond_the_sample_are_conservative(what):
    x = POPULATIONS["skewed"]
    ends = []
    for confidence in (0.5, 0.9, 0.99, 0.998, 0.9999, 0.999999):
        sums = measured([len(x), x.sum(), (x * x).sum()], [NoiseLaw("laplace", 3.0)] * 3, confidence)
        estimate = mean(*sums[:2], 1.0) if what == "mean" else variance(*sums, 1.0)
        ends.append((float(estimate.low[0]), float(estimate.high[0])))
    assert ends == [(max(low for low, _ in ends[i:]), min(high for _, high in ends[i:])) for i in range(len(ends))]
    assert all(low < high for low, high in ends)


@each("epsilon", [0.7, 1.0, 2.0, 6.0])
@each("above", [0, 1, 10, 25])
def test_a_share_of_two_counts_is_covered_over_the_discrete_noise(epsilon, above):
    """Every outcome with its probability: with the real law in place of the discrete one this was 0.91 for 0.95."""
    n, farthest = 50, math.ceil(14 / epsilon)
    noise = np.arange(-farthest, farthest + 1)
    q = math.exp(-epsilon)
    weights = (1 - q) / (1 + q) * q ** np.abs(noise)
    one, two = (grid.ravel().astype(np.float64) for grid in np.meshgrid(above + noise, n - above + noise))
    sums = measured([one, two], [NoiseLaw("laplace", 1 / epsilon, step=1.0)] * 2, CONFIDENCE)
    _, low, high = mean(sums[0] + sums[1], (sums[0] - sums[1]) * 0.5, 0.5).shifted(0.5)
    missed = (np.outer(weights, weights).ravel() * ((above / n < low - 1e-12) | (above / n > high + 1e-12))).sum()
    assert missed <= 1 - CONFIDENCE + RESOLUTION


def test_squares_of_a_coarser_grid_may_be_a_little_larger():
    laws = [NoiseLaw("none")] * 3
    estimate = variance(*measured([100.0, 0.0, 910.0], laws, CONFIDENCE), 3.0, 9.1)
    assert float(estimate.value[0]) == pytest.approx(9.0 * 100 / 99)


def test_an_estimate_can_be_moved_and_scaled():
    estimate = IntervalEstimate(1.0, 0.5, 1.25)
    assert estimate.shifted(2.0) == IntervalEstimate(3.0, 2.5, 3.25)
    assert estimate.scaled(2.0) == IntervalEstimate(2.0, 1.0, 2.5)


def test_the_same_release_has_the_same_interval():
    one, two = (Laplace(1, 1).release(np.full(3, 100), source=SeededSource(1)) for _ in range(2))
    laws = [NoiseLaw("laplace", 1.0, step=1.0)] * 2
    first, second = (mean(*measured([item, np.array([1.0, 2.0, 3.0])], laws, 0.95), 1.0) for item in (one, two))
    assert (first.low == second.low).all()
