"""Covariance, correlation and regression from noisy sums: their limits cover, and those of a wrong scale do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dither.inference import NoiseLaw, PairSums, measured, pair_statistic
from support import each

ASKS = 1500
FEWEST = int(stats.binom.ppf(1e-9, ASKS, 0.935))
MOST = int(stats.binom.ppf(1 - 1e-9, ASKS, 0.985))
GENERATOR = np.random.default_rng(20_261_116)
KINDS = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2")


def pairs(size: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
    z = GENERATOR.standard_normal((2, size))
    first = np.clip(0.4 + 0.18 * z[0], 0, 1) / 2
    return first, np.clip(0.6 + 0.18 * (rho * z[0] + np.sqrt(1 - rho**2) * z[1]), 0, 1) / 2


def parts(a: np.ndarray, b: np.ndarray) -> list[float]:
    c = 1 - a - b
    return [float(item.sum()) for item in (a * a, b * b, c * c, 2 * a * b, 2 * a * c, 2 * b * c)]


def truth(kind: str, a: np.ndarray, b: np.ndarray, at: float = 0.0) -> float:
    covariance = np.cov(a, b)
    slope, correlation = covariance[0, 1] / covariance[0, 0], np.corrcoef(a, b)[0, 1]
    return float(
        {
            "covar_samp": covariance[0, 1],
            "covar_pop": covariance[0, 1] * (a.size - 1) / a.size,
            "corr": correlation,
            "regr_slope": slope,
            "regr_intercept": b.mean() - slope * (a.mean() - at),
            "regr_r2": correlation**2,
        }[kind]
    )


def hits(kind, a, b, drawn, stated) -> int:
    sums = [part + drawn.rvs(ASKS, random_state=GENERATOR) for part in parts(a, b)]
    estimate = pair_statistic(kind, PairSums.of_parts(measured(sums, [stated] * 6, confidence=0.95)), at=-0.3)
    expected = truth(kind, a, b, -0.3)
    return int(np.sum((estimate.low <= expected) & (expected <= estimate.high)))


@each("kind", KINDS)
@each("rho", [0.0, 0.5, -0.9])
def test_the_limits_hold_the_truth_as_often_as_they_say(kind, rho):
    a, b = pairs(4000, rho)
    assert FEWEST <= hits(kind, a, b, stats.laplace(scale=1.0), NoiseLaw("laplace", 1.0)) <= MOST
    assert hits(kind, a, b, stats.norm(scale=1.5), NoiseLaw("normal", 1.5)) >= FEWEST


@pytest.mark.parametrize("kind", KINDS)
def test_limits_for_noise_of_two_thirds_of_the_size_do_not(kind):
    a, b = pairs(4000, 0.5)
    assert hits(kind, a, b, stats.laplace(scale=1.5), NoiseLaw("laplace", 1.0)) < FEWEST


def test_without_noise_everything_is_exact():
    a, b = pairs(50, 0.4)
    sums = PairSums.of_parts(measured(parts(a, b), [NoiseLaw("laplace", 1e-12)] * 6, confidence=0.95))
    for kind in KINDS:
        estimate = pair_statistic(kind, sums)
        assert float(estimate.value[0]) == pytest.approx(truth(kind, a, b), rel=1e-6)
    swapped = pair_statistic("regr_slope", sums.swapped)
    assert float(swapped.value[0]) == pytest.approx(truth("regr_slope", b, a), rel=1e-6)


def test_a_variance_lost_in_its_noise_leaves_a_slope_without_limits():
    sums = PairSums.of_parts(measured([10.0, 9.0, 5.0, 19.0, 14.0, 13.0], [NoiseLaw("laplace", 5.0)] * 6, 0.95))
    estimate = pair_statistic("regr_slope", sums)
    assert np.isinf(estimate.high[0] - estimate.low[0]) or np.isnan(estimate.value[0])
    correlation = pair_statistic("corr", sums)
    assert (float(correlation.low[0]), float(correlation.high[0])) == (-1.0, 1.0)
