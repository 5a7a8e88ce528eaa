"""Theorem 10 is refused with the true delta where it is false, and granted with its true delta where it holds."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import pytest

from dither import Gaussian, Laplace, NotPrivate
from dither.accounting import gaussian_delta
from dither.course import theorem_10
from support import refuses


@pytest.mark.parametrize("epsilon", [0.1, 1, 2])
@pytest.mark.parametrize("sensitivity", [1e-9, 1e-6, 1e-4])
def test_theorem_10_is_refused_with_the_true_delta(sensitivity: float, epsilon: float) -> None:
    """Its condition is sensitivity <= sqrt(pi) delta epsilon / 2: by units alone it can always be met."""
    claimed = sensitivity * 2 / math.sqrt(math.pi) / epsilon * 1.001
    e = mp.mpf(str(epsilon))
    r = mp.sqrt(2) / e
    true = mp.ncdf(1 / (2 * r) - e * r) - mp.exp(e) * mp.ncdf(-1 / (2 * r) - e * r)
    with refuses(NotPrivate) as refused:
        theorem_10(sensitivity, epsilon, claimed)
    assert f"{float(true):.6g}" in str(refused.value)


def test_theorem_10_s_true_delta_at_one_is_0396() -> None:
    with refuses(NotPrivate, "0.0396"):
        theorem_10(0.01, 1, 0.0113)


def test_theorem_10_is_granted_where_it_is_true() -> None:
    assert theorem_10(1, 1, 0.01) == Laplace(1, 1)  # above the threshold: Laplace noise
    granted = theorem_10(0.01, 1, 0.1)
    assert isinstance(granted, Gaussian)
    assert granted.delta is not None
    assert granted.delta <= 0.1
    assert granted.privacy_curve(1) <= granted.delta
    assert gaussian_delta(Fraction(1), Fraction(math.sqrt(2))) <= granted.delta * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("sensitivity", [0.5, 2.0])
def test_a_free_threshold_and_sigma_have_their_true_delta(sensitivity: float, sigma: float) -> None:
    r = mp.mpf(sigma) / mp.mpf(sensitivity)
    true = mp.ncdf(1 / (2 * r) - r) - mp.e * mp.ncdf(-1 / (2 * r) - r)
    assert theorem_10(sensitivity, 1, 0.01, threshold=sensitivity * 0.99, sigma=sigma) == Laplace(sensitivity, 1)
    if true > 0.01:
        with refuses(NotPrivate, f"at least {float(true):.6g}"):
            theorem_10(sensitivity, 1, 0.01, threshold=sensitivity, sigma=sigma)
    else:
        granted = theorem_10(sensitivity, 1, 0.01, threshold=sensitivity, sigma=sigma)
        assert isinstance(granted, Gaussian)
        assert granted.delta == pytest.approx(float(true), rel=1e-9)
        assert granted.sigma == pytest.approx(sigma, rel=1e-9)
