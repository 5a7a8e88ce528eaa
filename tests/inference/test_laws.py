"""Laws of noise agree with the mechanisms that they describe."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from dither.inference import EXACT, NoiseLaw
from dither.mechanisms import Gaussian, Laplace, MixedNoise

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


@pytest.mark.parametrize("mechanism", [Laplace(1, 0.3), Laplace(50, 2), Gaussian(3, 1, 1e-6), MixedNoise(1, 1, 1e-6)])
@pytest.mark.parametrize("tail", [0.5, 0.05, 1e-6, 1e-12])
@pytest.mark.parametrize("integer", [True, False])
def test_errors_are_those_of_the_mechanism(mechanism, tail, integer):
    expected = mechanism.error(1 - tail, integer=integer)
    assert NoiseLaw.of(mechanism, integer=integer).error(tail) == pytest.approx(expected, rel=1e-4)
    scaled = NoiseLaw.of(mechanism, integer=integer, unit=0.125)
    assert scaled.error(tail) == pytest.approx(expected / 8, rel=1e-4)
    assert scaled == NoiseLaw.of(mechanism, integer=integer).times(0.125)


def test_a_public_number_has_no_noise():
    assert not EXACT.quantiles(LEVELS).any()
    assert EXACT.error(1e-9) == 0
