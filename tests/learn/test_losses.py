"""Losses: gradients against finite differences, the closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dither.errors import InvalidArgument
from dither.learn.losses import (
    Huber,
    Logistic,
    Multinomial,
    SmoothHinge,
    Squared,
    ridge_line,
    softmax,
)
from support import refuses

SCALAR = [Squared(), Squared(weight=0.5, penalty=0.3, free=1), Logistic(penalty=0.1), SmoothHinge(width=0.7), Huber()]


def problem(loss, n=40, d=4, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if isinstance(loss, Multinomial):
        return X, np.eye(3)[rng.integers(0, 3, n)], rng.normal(size=(d, 3))
    y = rng.normal(size=n) if isinstance(loss, (Squared, Huber)) else rng.integers(0, 2, n).astype(float)
    return X, y, rng.normal(size=d)


@pytest.mark.parametrize("loss", [*SCALAR, Multinomial(penalty=0.2, free=1)], ids=lambda loss: type(loss).__name__)
def test_the_gradient_is_that_of_finite_differences(loss):
    X, y, beta = problem(loss)
    result, step = loss.gradient(beta, X, y), 1e-6
    for place in np.ndindex(beta.shape):
        ahead, behind = beta.copy(), beta.copy()
        ahead[place] += step
        behind[place] -= step
        slope = (loss.objective(ahead, X, y) - loss.objective(behind, X, y)) / (2 * step)
        assert result[place] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("loss", [*SCALAR, Multinomial()], ids=lambda loss: type(loss).__name__)
def test_curvature_and_smoothness_bound_how_fast_gradients_turn(loss):
    X, y, beta = problem(loss)
    rng = np.random.default_rng(2)
    largest = 0.0
    for _ in range(200):
        other = beta + rng.normal(size=beta.shape) * 10.0 ** rng.uniform(-4, 1)
        turn = np.linalg.norm(loss.gradient(other, X, y) - loss.gradient(beta, X, y)) / np.linalg.norm(other - beta)
        largest = max(largest, turn / loss.smoothness(X))
        for i in range(5):
            one = slice(i, i + 1)
            turn = np.linalg.norm(loss.gradient(other, X[one], y[one]) - loss.gradient(beta, X[one], y[one]))
            assert turn <= loss.smoothness(X, single=True) * np.linalg.norm(other - beta) * (1 + 1e-9)
    assert 0.05 < largest <= 1 + 1e-9


@pytest.mark.parametrize("penalty", [0.0, 0.3, 10.0])
def test_three_ways_to_the_ridge_line_agree(penalty):
    rng = np.random.default_rng(4)
    v = rng.normal(2, 1, 50)
    u = 1 + 3 * v + rng.normal(size=50)
    X, loss = np.column_stack([np.ones(50), v]), Squared(weight=0.5, penalty=penalty, free=1)
    line = ridge_line(v, u, penalty)
    assert loss.minimum(X, u) == pytest.approx(line)
    assert loss.gradient(np.array(line), X, u) == pytest.approx(np.zeros(2), abs=1e-9)
    searched = minimize(lambda beta: loss.objective(beta, X, u), np.zeros(2), tol=1e-12).x
    assert searched == pytest.approx(line, abs=1e-4)


def test_the_sample_mean_is_the_minimum_of_squares():
    x = np.random.default_rng(5).exponential(size=1000)
    assert Squared().minimum(np.ones((1000, 1)), x) == pytest.approx([x.mean()])


def test_hinge_and_huber_are_what_they_round_off():
    margins = np.linspace(-4, 4, 801)
    sharp = np.maximum(0, 1 - margins)
    for width in (0.01, 1.0):
        smooth = SmoothHinge(width=width).value(margins, np.ones_like(margins))
        assert np.all(smooth <= sharp + 1e-12)
        assert np.all(sharp - smooth <= width / 2 + 1e-12)
    far = Huber(width=2.0)
    assert far.value(np.array([1.0, 100.0]), np.zeros(2)) == pytest.approx([0.5, 2 * (100 - 1)])
    assert far.residual(np.array([1.0, 100.0]), np.zeros(2)).tolist() == [1, 2]


def test_scores_beyond_floats_overflow_nothing():
    far = np.array([-1e6, 1e6, 0.0])
    assert Logistic().residual(far, np.array([0.0, 1.0, 1.0])).tolist() == [0, 0, -0.5]
    assert np.all(np.isfinite(Logistic().value(far, np.zeros(3))))
    assert softmax(np.array([[1e300, -1e300, 0.0]])).tolist() == [[1, 0, 0]]


def test_a_record_without_a_class_has_no_gradient():
    scores = np.array([[0.3, 0.7], [0.1, 0.2]])
    y = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert Multinomial().residual(scores, y)[0].tolist() == [0, 0]
    assert Multinomial().value(scores, y)[0] == 0


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_what_is_no_penalty_is_refused(wrong):
    with refuses(InvalidArgument, "penalty"):
        Logistic(penalty=wrong)
    with refuses(InvalidArgument):
        Huber(width=wrong)
