"""Limits from a sample of the noise: exact for linear functions and quotients, the same every time.

Laws of noise agree with the mechanisms that they describe.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither.inference import EXACT, NoiseLaw, measured
from dither.inference.measured import limits
from dither.mechanisms import Gaussian, Laplace, MixedNoise
from support import each


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


LEVELS = (np.arange(1 << 16) + 0.5) / (1 << 16)


@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 3.7, 40.0])
def test_uniform_levels_give_the_discrete_laplace_law(scale):
    noise = NoiseLaw("laplace", scale, step=1.0).quantiles(LEVELS)
    q = math.exp(-1 / scale)
    for k in range(-6, 7):
        assert np.mean(noise == k) == pytest.approx((1 - q) / (1 + q) * q ** abs(k), abs=3e-5)


@pytest.mark.parametrize("step", [0.0, 1.0, 0.25])
def test_uniform_levels_give_the_normal_law_rounded_to_the_lattice(step):
    noise = NoiseLaw("normal", 1.5, step=step).quantiles(LEVELS)
    for edge in (-2.125, -0.125, 0.125, 3.125) if step == 0.25 else (-2.5, -0.5, 0.5, 3.5):
        assert np.mean(noise < edge) == pytest.approx(scipy_stats.norm.cdf(edge / 1.5), abs=3e-5)


def test_the_real_laplace_law():
    levels = np.array([1e-9, 0.01, 0.3, 0.77, 0.999])
    assert NoiseLaw("laplace", 3.0).quantiles(levels) == pytest.approx(scipy_stats.laplace.ppf(levels, scale=3.0))


@each("mechanism", [Laplace(1, 0.3), Laplace(50, 2), Gaussian(3, 1, 1e-6), MixedNoise(1, 1, 1e-6)])
@each("tail", [0.5, 0.05, 1e-6, 1e-12])
@each("integer", [True, False])
def test_errors_are_those_of_the_mechanism(mechanism, tail, integer):
    expected = mechanism.error(1 - tail, integer=integer)
    assert NoiseLaw.of(mechanism, integer=integer).error(tail) == pytest.approx(expected, rel=1e-4)
    scaled = NoiseLaw.of(mechanism, integer=integer, unit=0.125)
    assert scaled.error(tail) == pytest.approx(expected / 8, rel=1e-4)
    assert scaled == NoiseLaw.of(mechanism, integer=integer).times(0.125)


def test_a_public_number_has_no_noise():
    assert not EXACT.quantiles(LEVELS).any()
    assert EXACT.error(1e-9) == 0


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("tail", [0.1, 1e-3, 1e-6])
def test_the_limit_of_a_sum_is_that_of_the_convolved_laws(count, tail):
    """A sum of Laplace noises has the characteristic function ``(1 + u^2)^-count``: its tail by inversion, and the
    tail of a sum of normal ones by its law."""
    limit = NoiseLaw("laplace", 3.0).sum_limit(count, tail) / 3
    with mpmath.workdps(30):
        density = [mpmath.mpf(1) / 2]  # the density of |sum| is exp(-t) times a polynomial, found by convolution
        for _ in range(count - 1):
            density = _convolved(density)
        exceeded = sum(c * mpmath.gammainc(j + 1, limit) for j, c in enumerate(density))
    assert float(exceeded) == pytest.approx(tail, rel=1e-6)
    normal = NoiseLaw("normal", 3.0).sum_limit(count, tail)
    assert scipy_stats.norm.sf(normal / 3 / math.sqrt(count)) == pytest.approx(tail, rel=1e-9)
    assert EXACT.sum_limit(count, tail) == 0


def _convolved(density: list[mpmath.mpf]) -> list[mpmath.mpf]:
    """The polynomial of the law of a sum and one more noise, both with densities ``exp(-|t|) p(|t|)``, at t > 0."""
    result = [mpmath.mpf(0)] * (len(density) + 1)
    for j, c in enumerate(density):
        # the part of the sum below 0: int_0^inf s^j exp(-s) exp(-(t + s)) ds
        result[0] += c / 2 * mpmath.factorial(j) / mpmath.mpf(2) ** (j + 1)
        # between 0 and t: int_0^t s^j exp(-s) exp(-(t - s)) ds
        result[j + 1] += c / 2 / (j + 1)
        # above t: int_t^inf s^j exp(-s) exp(-(s - t)) ds = exp(-t) sum_i C(j, i) t^i (j - i)! / 2^(j - i + 1)
        for i in range(j + 1):
            result[i] += c / 2 * mpmath.binomial(j, i) * mpmath.factorial(j - i) / mpmath.mpf(2) ** (j - i + 1)
    return result
