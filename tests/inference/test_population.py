"""Intervals for the population hold its mean, share and variance as often as they say, with new records every time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither.errors import InvalidArgument
from dither.inference import (
    EXACT,
    STANDARD_NORMAL,
    NoiseLaw,
    PopulationCount,
    PopulationVariance,
    measured,
    population_mean,
    population_variance,
    wilson,
)
from support import refuses

ASKS, CONFIDENCE = 4_000, 0.95
FEWEST = int(scipy_stats.binom.ppf(1e-9, ASKS, CONFIDENCE - 0.01))
MOST = int(scipy_stats.binom.isf(1e-9, ASKS, CONFIDENCE + 0.015))
GENERATOR = np.random.default_rng(20_260_101)
"""A seed makes the test the same every time; nothing here is private."""


def drawn(scale: float, records: int):
    """Noisy sums of new records of a population on (-1, 1), about its middle, for every ask; its mean and variance."""
    x = GENERATOR.beta(2, 3, size=(ASKS, records)) * 2 - 1
    law = scipy_stats.beta(2, 3, loc=-1, scale=2)
    sums = [np.full(ASKS, float(records)), x.sum(axis=1), (x * x).sum(axis=1), np.zeros(ASKS)]
    noisy = [total + GENERATOR.laplace(0, scale, ASKS) if scale else total for total in sums[:3]]
    noise = NoiseLaw("laplace", scale) if scale else EXACT
    return measured([*noisy, sums[3]], [noise] * 3 + [STANDARD_NORMAL], CONFIDENCE), law.mean(), law.var()


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("records", [30, 200])
def test_the_mean_of_the_population_is_covered(scale, records):
    sums, mean, _ = drawn(scale, records)
    _, low, high = population_mean(*sums, 1.0)
    hits = np.sum((low <= mean) & (mean <= high))
    assert hits >= FEWEST
    if scale * 10 <= records:
        assert hits <= MOST


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_the_variance_of_the_population_is_covered(scale):
    sums, _, variance = drawn(scale, 200)
    _, low, high = population_variance(*sums, 1.0)
    assert np.sum((low <= variance) & (variance <= high)) >= FEWEST
    assert np.median(high - low) < 0.6


def test_without_noise_the_interval_of_a_mean_is_that_of_student():
    x = np.linspace(-0.3, 0.9, 12)
    sums = measured([12.0, x.sum(), (x * x).sum(), 0.0], [EXACT] * 3 + [STANDARD_NORMAL], CONFIDENCE)
    _, low, high = population_mean(*sums, 1.0)
    expected = scipy_stats.ttest_1samp(x, 0).confidence_interval(CONFIDENCE)
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), rel=0.02)


@pytest.mark.parametrize(("hits", "records"), [(0, 50), (5, 50), (25, 50), (50, 50), (30, 1000)])
def test_without_noise_the_interval_of_a_share_is_that_of_wilson(hits, records):
    expected = scipy_stats.binomtest(hits, records).proportion_ci(CONFIDENCE, method="wilson")
    low, high = PopulationCount(EXACT, records)(hits, CONFIDENCE)
    assert (low / records, high / records) == pytest.approx((expected.low, expected.high), abs=0.004)


def test_a_count_of_a_private_number_of_records_is_that_of_a_poisson_law():
    low, high = PopulationCount(EXACT, None)(100, CONFIDENCE)
    assert (low, high) == pytest.approx((82.2, 121.6), abs=0.5)


def test_noise_widens_the_interval_of_a_count():
    widths = [np.subtract(*PopulationCount(NoiseLaw("laplace", scale), 500)(100, 0.95)) for scale in (0.1, 5, 50)]
    assert widths[0] > widths[1] > widths[2]


def test_the_interval_of_a_variance_of_a_public_number_of_records_covers():
    x = GENERATOR.beta(2, 3, size=(500, 100)) * 2
    truth, law = scipy_stats.beta(2, 3, scale=2).var(), NoiseLaw("laplace", 0.02)
    released = x.var(axis=1, ddof=1) + GENERATOR.laplace(0, law.scale, 500)
    hits = 0
    for value in np.clip(released, 0, None):
        low, high = PopulationVariance(law, 100, 2.0)(float(value), CONFIDENCE)
        assert low <= value <= high
        hits += low <= truth <= high
    assert hits >= scipy_stats.binom.ppf(1e-9, 500, CONFIDENCE)


def test_wilson_solves_its_equation():
    share, z = np.array([0.0, 0.1, 0.5, 1.0]), np.array([1.5, -2.0, 0.5, 1.0])
    p = wilson(share, 40.0, z)
    assert share - p == pytest.approx(z * np.sqrt(p * (1 - p) / 40), abs=1e-9)


def test_a_confidence_beyond_the_sample_is_refused():
    with refuses(InvalidArgument, "confidence", "0.998"):
        PopulationCount(EXACT, 10)(5, 0.99999)
