"""Distributions of local reports: unbiased shares, smooth shares, intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dither as dp
from dither.local.distribution import Distribution


def spread(n: int) -> np.ndarray:
    """A smooth distribution on [0, 100], without luck."""
    return 100 * np.linspace(0, 1, n) ** 0.6


def test_unbiased_shares_are_exactly_unbiased() -> None:
    p = Distribution((0, 100), 16, 1)
    tally = np.rint(p.windows.law() * 10**9).astype(np.int64)
    for code in (0, 7, 15):
        unbiased, _ = p.inverted(tally[code])
        assert np.allclose(unbiased, np.eye(16)[code], atol=1e-5)


@pytest.mark.parametrize("epsilon", [1, 3])
def test_cumulative_shares_are_near(epsilon: float) -> None:
    p, values = Distribution((0, 100), 32, epsilon), spread(100_000)
    truth = np.cumsum(np.histogram(values, p.edges)[0] / values.size)
    result = p.estimate(p.privatize(values))
    low, high = result.cumulative_interval(1 - 1e-11)
    assert np.all((low <= truth + 1e-9) & (truth <= high + 1e-9))
    assert np.abs(result.cumulative - truth).max() < 6.5 * (high - low).max() / 13.2 + 0.02
    assert abs(result.quantile(0.5) - np.median(values)) < 8
    assert abs(result.mean - values.mean()) < 5
    # another distribution is not covered
    other = np.cumsum(np.histogram(100 - values, p.edges)[0] / values.size)
    assert np.any((other < low) | (other > high))


def test_smooth_shares_are_closer_than_unbiased_ones() -> None:
    p, values = Distribution((0, 100), 32, 1), spread(20_000)
    truth = np.histogram(values, p.edges)[0] / values.size
    result = p.estimate(p.privatize(values))
    assert np.abs(result.shares - truth).sum() < np.abs(result.unbiased - truth).sum()
    assert math.isclose(result.shares.sum(), 1)
    assert result.shares.min() >= 0


def test_standard_errors_are_those_of_the_law() -> None:
    p, n = Distribution((0, 1), 8, 1), 40_000
    result = p.estimate(p.privatize(np.linspace(0, 1, n)))
    assert result.standard_error[4] == pytest.approx(math.sqrt(p.variance(n, 1 / 8)), rel=0.1)


def test_refusals() -> None:
    p = Distribution((0, 1), 8, 1)
    for bad in ([1.5], [math.nan]):
        with pytest.raises(dp.InvalidData):
            p.privatize(bad)
    with pytest.raises(dp.InvalidArgument):
        Distribution((0, 1), 1, 1)
    with pytest.raises(dp.InvalidData):
        p.server().estimate()
    with pytest.raises(dp.InvalidArgument):
        p.estimate(p.privatize([0.5]), [0])
    with pytest.raises(dp.InvalidData, match="clients with"):
        p.estimate(Distribution((0, 1), 9, 1).privatize([0.5]))
