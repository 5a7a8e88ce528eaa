"""Densities for pictures, against SciPy's and against the integral of one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import dither as dp
from dither.mechanisms import densities
from support import refuses

ADDING = [
    dp.Laplace(2, 0.5), dp.Gaussian(1, 1, 1e-6), dp.Staircase(1, 1), dp.MixedNoise(1, 1, 1e-3),
    dp.SmoothNoise("laplace", 1, 1e-6), dp.SmoothNoise("gaussian", 1, 1e-6), dp.SmoothNoise("student", 1),
    dp.Laplace([1, 2], 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mechanism", "reference"),
    [
        (dp.Laplace(2, 0.5), scipy.stats.laplace(7, 4)),
        (dp.Gaussian(1, rho=0.5), scipy.stats.norm(7, 1)),
        (dp.SmoothNoise("cauchy", 1), None),
    ],
)
def test_the_density_is_that_of_scipy(mechanism, reference):
    _, scale = densities.law_and_scale(mechanism)
    # density proportional to 1 / (1 + z^2): SciPy's Cauchy law
    reference = reference or scipy.stats.cauchy(7, scale)
    for z in (7.0, 7.3, 4.0, 12.5):
        assert densities.density_at(mechanism, z, value=7) == pytest.approx(reference.pdf(z), rel=1e-4)


@pytest.mark.parametrize("mechanism", ADDING, ids=repr)
def test_a_density_has_the_integral_one(mechanism):
    law, scale = densities.law_and_scale(mechanism)
    z = np.linspace(0, scale * law.quantile_one(1e-4)[0], 3001)
    heights = [densities.density_at(mechanism, place) for place in z]
    assert 2 * np.trapezoid(heights, z) == pytest.approx(1, abs=0.01)


def test_a_bounded_density_is_inside_its_bounds_and_loses_what_is_promised():
    m = dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10)
    z = np.linspace(0, 10, 5001)
    at_0, at_1 = (np.array([densities.density_at(m, place, value=value) for place in z]) for value in (0.0, 1.0))
    assert np.trapezoid(at_0, z) == pytest.approx(1, rel=1e-5)
    assert densities.density_at(m, -0.1) == 0
    assert np.abs(np.log(at_0 / at_1)).max() == pytest.approx(1, abs=1e-9)


def test_the_grid_holds_nearly_all_of_the_noise():
    z = densities.grid(dp.Laplace(1, 1), 5.0, 11)
    assert z[5] == pytest.approx(5)
    assert scipy.stats.laplace(5, 1).cdf(z[-1]) == pytest.approx(0.995, abs=1e-6)


def test_a_mechanism_that_chooses_has_no_density():
    with refuses(dp.InvalidArgument):
        densities.law_and_scale(dp.Exponential(1, 1))
