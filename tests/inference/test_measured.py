"""Limits from a sample of the noise: exact for linear functions and quotients, the same every time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither.inference import EXACT, NoiseLaw, measured
from dither.inference.measured import limits


def tail_of_two(p: float, q: float, t: float) -> float:
    """``P(|p X + q Y| > t)`` for independent standard Laplace X and Y, by numerical integration."""
    z = np.linspace(-60, 60, 600_001)
    law = scipy_stats.laplace
    inside = (law.cdf((t - q * z) / p) - law.cdf((-t - q * z) / p)) * law.pdf(z)
    return float(1 - np.trapezoid(inside, z))


def difference(values, noises):
    return values[0] - values[1] - (noises[0] - noises[1])


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.998])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, 0.2), (3.0, 1.0)])
def test_limits_of_a_linear_function_are_quantiles_of_its_noise(confidence, scales):
    inputs = measured([7.0, 2.0], [NoiseLaw("laplace", scale) for scale in scales], confidence)
    low, high = limits(difference, inputs, -np.inf, np.inf)
    assert high[0] - 5 == pytest.approx(5 - low[0])
    assert tail_of_two(*scales, high[0] - 5) == pytest.approx(1 - confidence, rel=0.1)


@pytest.mark.parametrize("dimension", [2, 3, 4, 5])
def test_the_sample_has_the_moments_of_independent_noise(dimension):
    inputs = measured([0.0] * dimension, [NoiseLaw("normal", 1.0)] * dimension, 0.95)
    noise = np.array([item.noise for item in inputs])
    assert noise.mean(axis=1) == pytest.approx(0, abs=1e-9)
    assert np.corrcoef(noise) == pytest.approx(np.eye(dimension), abs=0.05)
    assert np.corrcoef(noise**2) == pytest.approx(np.eye(dimension), abs=0.06)


def test_the_same_numbers_always_have_the_same_limits():
    laws = [NoiseLaw("laplace", 1.0), NoiseLaw("normal", 2.0)]
    one, two = (limits(difference, measured([7.0, 2.0], laws, 0.95), -np.inf, np.inf) for _ in range(2))
    assert one == two


def test_many_groups_have_the_limits_that_each_has_alone():
    laws, first, second = [NoiseLaw("laplace", 1.0)] * 2, np.linspace(-5, 900, 300), np.linspace(4, 8, 300)
    low, high = limits(difference, measured([first, second], laws, 0.95), -np.inf, np.inf)
    for i in (0, 63, 64, 65, 299):
        alone = limits(difference, measured([first[i], second[i]], laws, 0.95), -np.inf, np.inf)
        assert (low[i], high[i]) == (alone[0][0], alone[1][0])


def test_a_sample_that_is_undefined_is_beyond_both_limits():
    inputs = measured([0.0, 0.0], [NoiseLaw("normal", 1.0), EXACT], 0.95)

    def undefined_above(threshold):
        return lambda values, noises: np.where(values[0] - noises[0] > threshold, np.nan, values[0] - noises[0])

    plain, few, many = (limits(undefined_above(at), inputs, -9.0, 9.0) for at in (np.inf, 2.5, 1.5))
    assert few[0] <= plain[0]
    assert few[1] == pytest.approx(plain[1])
    assert many == (-9.0, 9.0)


def test_arithmetic_keeps_what_numbers_share():
    one, two = measured([10.0, 4.0], [NoiseLaw("laplace", 1.0)] * 2, 0.95)
    nothing = (one + two) * 0.5 - one * 0.5 - two * 0.5
    assert nothing.value == 0
    assert nothing.noise == pytest.approx(0, abs=1e-12)
    assert (one * -2.0).error == 2 * one.error


def test_errors_hold_together_with_the_confidence():
    items = measured([0.0, 0.0, 5.0], [NoiseLaw("laplace", 1.0), NoiseLaw("laplace", 2.0), EXACT], 0.9)
    assert [item.error for item in items] == pytest.approx([math.log(20), 2 * math.log(20), 0.0])


def test_a_confidence_beyond_the_sample_is_said():
    assert measured([0.0], [EXACT], 0.998)[0].resolved
    assert not measured([0.0], [EXACT], 0.9999)[0].resolved
