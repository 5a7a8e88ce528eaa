"""Bernstein sums give the same moments as counts and sums, with noise that is correlated as theirs is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither.inference import BernsteinInterval
from dither.mechanisms import Laplace, MixedNoise

SPAN = 8
Y = np.resize(np.array([0, 3, 3, 5, 6, 8]), 600)
QUIET = Laplace(1, 1e6)


def degree_two(y):
    return tuple(int(item) for item in (((SPAN - y) ** 2).sum(), (2 * y * (SPAN - y)).sum(), (y * y).sum()))


def degree_one(y):
    return int((SPAN - y).sum()), int(y.sum())


@pytest.mark.parametrize("sums", [degree_one(Y), degree_two(Y)])
def test_without_noise_the_mean_is_that_of_the_values(sums):
    interval = BernsteinInterval(sums, QUIET, "mean", SPAN, 10.0, 4.0)
    expected = 10 + 4 * (Y / SPAN).mean()
    assert interval.point() == pytest.approx(expected)
    assert interval(expected, 0.95) == pytest.approx((expected, expected), abs=1e-3)


@pytest.mark.parametrize("count", [None, Y.size])
def test_without_noise_the_variance_is_that_of_the_values(count):
    interval = BernsteinInterval(degree_two(Y), QUIET, "variance", SPAN, 10.0, 4.0, count)
    assert interval.point() == pytest.approx(16 * (Y / SPAN).var(ddof=1))


def test_sums_that_show_nothing_give_the_whole_range():
    assert BernsteinInterval((-3, 2), Laplace(1, 1), "mean", 1, 10.0, 5.0)(12.5, 0.95) == (10.0, 15.0)


@pytest.mark.parametrize("population", [False, True])
@pytest.mark.parametrize("statistic", ["mean", "variance"])
@pytest.mark.parametrize("noise", [Laplace(SPAN**2, 0.5), MixedNoise(SPAN**2, 0.5, 1e-2, coordinates=3)])
def test_intervals_cover_as_often_as_they_say(statistic, noise, population):
    exact = degree_two(Y)
    truth = (Y / SPAN).mean() if statistic == "mean" else (Y / SPAN).var(ddof=1)
    hits, asks = 0, 1_000
    for released in np.asarray(noise.release(np.tile(exact, asks))).reshape(asks, 3):
        sums = tuple(int(item) for item in released)
        interval = BernsteinInterval(sums, noise, statistic, SPAN, 0.0, 1.0, None, population)
        low, high = interval(interval.point(), 0.95)
        hits += low <= truth <= high
    assert hits >= scipy_stats.binom.ppf(1e-9, asks, 0.945)
    assert population or hits <= scipy_stats.binom.isf(1e-9, asks, 0.965)
