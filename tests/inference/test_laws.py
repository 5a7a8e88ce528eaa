"""Laws of noise agree with the mechanisms that they describe."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither.inference import EXACT, NoiseLaw
from dither.mechanisms import Gaussian, Laplace, MixedNoise
from support import each

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
