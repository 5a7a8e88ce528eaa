"""The optimum over all factorizations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dither.stream import optimum
from dither.stream.bands import square_root_coefficients


def test_against_a_search_over_factorizations():
    """n = 3: minimize over lower-triangular C by another method."""
    a = np.tril(np.ones((3, 3)))

    def error(x):
        c = np.zeros((3, 3))
        c[np.tril_indices(3)] = x
        c[np.diag_indices(3)] = np.exp(c[np.diag_indices(3)])
        b = a @ np.linalg.inv(c)
        return float(np.sqrt((b * b).sum(axis=1).max() * (c * c).sum(axis=0).max()))

    starts = [np.zeros(6), np.array([0.1, 0.4, 0.0, 0.3, 0.4, -0.1])]
    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-10, "fatol": 1e-12}
    best = min(float(minimize(error, start, method="Nelder-Mead", options=options).fun) for start in starts)
    result = optimum(3)
    assert result.lower <= best * (1 + 1e-9)
    assert best == pytest.approx(result.upper, rel=2e-3)


def test_two_steps_in_closed_form():
    assert optimum(2).lower == pytest.approx(2 / math.sqrt(3), rel=1e-4)


def test_bounds_meet_and_are_below_the_square_root():
    result = optimum(64)
    assert 0 <= result.gap <= 1e-4
    square_root = float((square_root_coefficients(64) ** 2).sum())
    assert 1.05 < square_root / result.upper < 1.15
