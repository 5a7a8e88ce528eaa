"""Means and distributions of numbers: laws, estimates and errors, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dither as dp
from dither.local.windows import STEPS, Distribution, Mean, Windows, line_bounds
from dither.randomness import SYSTEM

CASES = [Windows(2, 1, Fraction(1)), Windows(5, 3, Fraction(2)), Windows(9, 12, Fraction(1, 2))]


@pytest.mark.parametrize("windows", CASES)
def test_every_report_is_at_most_e_to_the_epsilon_times_as_likely(windows: Windows) -> None:
    law = windows.law()
    assert law.shape == (windows.points, windows.total)
    assert np.allclose(law.sum(axis=1), 1)
    ratios = law.max(axis=0) / law.min(axis=0)
    assert ratios.max() == pytest.approx(math.exp(float(windows.epsilon)), rel=1e-12)


@pytest.mark.parametrize("windows", CASES)
def test_the_mean_report_is_a_straight_line(windows: Windows) -> None:
    means = windows.law() @ np.arange(windows.total)
    assert np.allclose(np.diff(means), windows.slope)
    assert means.mean() == pytest.approx((windows.total - 1) / 2)


@pytest.mark.parametrize("windows", CASES)
def test_draws_follow_the_law_and_no_other(windows: Windows) -> None:
    n = 100_000
    place = windows.points // 2
    drawn = np.bincount(windows.draw(np.full(n, place), SYSTEM), minlength=windows.total)
    assert stats.chisquare(drawn, windows.law()[place] * n).pvalue > 1e-9
    wrong = Windows(windows.points, windows.width, windows.epsilon * Fraction(11, 10))
    if windows.epsilon >= 1:
        assert stats.chisquare(drawn, wrong.law()[place] * n).pvalue < 1e-9


def test_the_law_of_a_large_epsilon_has_no_zeros() -> None:
    law = Windows(8, 1, Fraction(50)).law()
    assert law.min() == pytest.approx(math.exp(-50), rel=1e-12)


@pytest.mark.parametrize("bounds", [(-1e308, 1e308), (2**53, 2**53 + 1), (0, 5e-324)])
def test_bounds_between_which_floats_tell_no_places_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(dp.InvalidArgument, match="bounds"):
        dp.local.Mean(bounds=bounds, epsilon=1)
    with pytest.raises(dp.InvalidArgument, match="bounds"):
        dp.local.Distribution(bounds=bounds, bins=8, epsilon=1)
    assert line_bounds((0, 2**70)) == (0, 2**70)


def published(epsilon: float) -> dict[str, float]:
    """Wang et al. 2019, section III: worst-case variances on [-1, 1]."""
    growth, root = math.exp(epsilon), math.exp(epsilon / 2)
    duchi = ((growth + 1) / (growth - 1)) ** 2
    hybrid = (root + 3) / (3 * root * (root - 1)) + duchi / root if epsilon > 0.61 else duchi
    return {"duchi": duchi, "piecewise": 4 * root / (3 * (root - 1) ** 2), "hybrid": hybrid}


@pytest.mark.parametrize("epsilon", [0.3, 0.7, 1, 2, 4])
def test_variances_are_those_of_the_papers(epsilon: float) -> None:
    for method, variance in published(epsilon).items():
        ours = Mean((-1, 1), epsilon, method).worst_variance
        assert ours == pytest.approx(variance, rel=0.015)
    best = Mean((-1, 1), epsilon)
    assert best.worst_variance <= min(published(epsilon).values()) * 1.001
    assert best.chosen == ("duchi" if epsilon < 0.61 else "hybrid")


@pytest.mark.parametrize("method", ["duchi", "piecewise", "hybrid"])
def test_estimates_are_unbiased_for_every_number(method: str) -> None:
    """Exactly, from the law of a report: no sampling."""
    p = Mean((-3, 5), 1, method)
    bit, window = p.windows
    z = p.contributions
    for place in (0, 1, 500, STEPS):
        share = place / STEPS
        by_bit = (1 - share) * bit.law()[0] @ z[:2] + share * bit.law()[1] @ z[:2]
        by_window = window.law()[place] @ z[2:]
        rate = float(p.window_rate)
        expected = (1 - rate) * by_bit + rate * by_window
        assert expected == pytest.approx(-3 + 8 * share, abs=1e-9)


@pytest.mark.parametrize("value", [0.0, 3.3, 10.0])
def test_reports_of_many_people(value: float) -> None:
    p, n = Mean((0, 10), 2), 100_000
    result = p.estimate(p.privatize(np.full(n, value)))
    assert abs(result.value - value) < 6.5 * math.sqrt(p.variance(n))
    assert result.standard_error <= 1.02 * math.sqrt(p.variance(n))
    # reports of other numbers are not mistaken for these
    other = p.estimate(p.privatize(np.full(n, value + 0.5 if value < 5 else value - 0.5)))
    assert abs(other.value - value) > 6.5 * math.sqrt(p.variance(n))


def test_intervals_cover_what_they_say() -> None:
    """400 surveys: 95 % intervals miss 20 times on average, and more than 55 times with a probability of 1e-11."""
    p, values = Mean((0, 1), 1), np.linspace(0, 1, 500)
    results = [p.estimate(p.privatize(values)) for _ in range(400)]
    misses = sum(abs(result.value - values.mean()) > result.error() for result in results)
    assert misses <= 55
    tight = sum(abs(result.value - values.mean()) > 0.5 * result.error() for result in results)
    assert tight > 60  # intervals of half the width are seen to be too short


def test_bytes_and_servers() -> None:
    p = Mean((0, 1), 1)
    server = p.server()
    server.add(p.privatize([0.2, 0.4]).to_bytes()).add(p.privatize([1.0]))
    assert server.estimate().n == 3
    assert server.estimate().standard_error >= math.sqrt(p.variance(3)) * 0.999
    with pytest.raises(dp.InvalidData, match="clients with"):
        server.add(Mean((0, 2), 1).privatize([0.5]))
    with pytest.raises(dp.InvalidArgument):
        server.estimate([1])
    assert server.n == 3


def test_refusals_show_no_value() -> None:
    p = Mean((0, 1), 1)
    for bad in ([2.5], [math.nan], [-0.001]):
        with pytest.raises(dp.InvalidData) as refusal:
            p.privatize(bad)
        assert "2.5" not in str(refusal.value)
    with pytest.raises(dp.InvalidArgument):
        Mean((0, 1), 1, "laplace")
    with pytest.raises(dp.InvalidData):
        p.server().estimate()


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
