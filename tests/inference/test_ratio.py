"""The limits of a ratio of noisy sums hold exactly, over the discrete noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.integrate import trapezoid

from dither.inference.ratio import RatioInterval, tail_of_two
from dither.mechanisms import Laplace


def test_the_tail_of_a_weighted_pair_agrees_with_numerical_integration():
    for p, q in [(0.5, 0.5), (0.9, 0.1), (0.500001, 0.499999), (1.0, 0.0), (0.7, 0.3)]:
        z = np.linspace(-40, 40, 400_001)
        for t in (0.0, 0.5, 3.0):
            law = scipy_stats.laplace
            inside = (law.cdf((t - q * z) / p) - law.cdf((-t - q * z) / p)) * law.pdf(z)
            assert tail_of_two(p, q, t) == pytest.approx(1 - trapezoid(inside, z), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.7, 1.0, 1.5, 2.0, 3.0, 6.0])
@pytest.mark.parametrize("above", [0, 1, 10, 25])
def test_the_interval_of_a_ratio_holds_exactly_over_the_discrete_noise(epsilon, above):
    """Every outcome with its probability: with the real law in place of the discrete one this was 0.91 for 0.95."""
    n, farthest, confidence = 50, math.ceil(14 / epsilon), 0.95
    q = math.exp(-epsilon)
    weights = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-farthest, farthest + 1)]
    missed = 0.0
    mechanism = Laplace(1, epsilon)
    for i, p in enumerate(weights):
        for j, r in enumerate(weights):
            high, low = above + i - farthest, n - above + j - farthest
            share = min(max(high / (high + low), 0.0), 1.0) if high + low > 0 else 0.5
            ends = RatioInterval(high, low, mechanism, 0.0, 1.0)(share, confidence)
            missed += 0.0 if ends[0] <= above / n <= ends[1] else p * r
    assert missed <= 1 - confidence + 1e-5


def test_sums_that_show_nothing_give_the_whole_range():
    assert RatioInterval(-3, 2, Laplace(1, 1), 10.0, 5.0)(12.5, 0.95) == (10.0, 15.0)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_limits_are_outside_what_is_possible_and_hold_the_estimate(confidence):
    interval = RatioInterval(30, 70, Laplace(1, 0.5), 0.0, 1.0)
    low, high = interval(0.3, confidence)
    assert low < 0.3 < high
    assert not interval.possible(low, 1 - confidence)
    assert not interval.possible(high, 1 - confidence)
    assert interval.possible(low * (1 + 1e-9), 1 - confidence)
    assert interval.possible(high * (1 - 1e-9), 1 - confidence)
