"""Means of local reports: their variance against the papers' formulas, no bias, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dither as dp
from dither.local.mean import STEPS, Mean


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
