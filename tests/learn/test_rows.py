"""Each row is by itself: whatever is computed of a row is the same to the bit beside any others, at any place."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.learn.budget import quantised
from dither.learn.descent import Factors
from dither.learn.losses import Huber, Logistic, Multinomial, SmoothHinge, Squared, softmax
from dither.learn.rows import project, row_norms, row_sums

SHAPES = st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 12))


def drawn(shape, spread=30):
    rng = np.random.default_rng()
    return rng.normal(size=shape) * 2.0 ** rng.uniform(-spread, spread, size=(shape[0],) + (1,) * (len(shape) - 1))


def alike(function, *columns):
    """The same for all rows as for some of them, in another order, at other places."""
    rng = np.random.default_rng()
    whole = function(*columns)
    for _ in range(4):
        some = rng.permutation(len(columns[0]))[: rng.integers(1, len(columns[0]) + 1)]
        assert np.array_equal(function(*(column[some] for column in columns)), whole[some], equal_nan=True)


def _on_lattice(order, rows):
    return quantised(rows, 1.0, 16, order)[0]


@settings(max_examples=40)
@given(SHAPES)
def test_rows_are_by_themselves(shape):
    n, d, k = shape
    X, w, W = drawn((n, d)), drawn((d,)), drawn((d, k))
    for order in (1, 2):
        alike(partial(row_norms, order=order), X)
        alike(partial(_on_lattice, order), X)
    alike(row_sums, X)
    largest = float(np.abs(X).max())
    alike(lambda rows: project(rows, w, largest), X)
    alike(lambda rows: project(rows, W, largest), X)
    alike(lambda rows: Factors.of(rows).times(W), X)
    alike(lambda rows: Factors.of(rows).directions, X)
    alike(softmax, drawn((n, k), 1))


@pytest.mark.parametrize("loss", [Squared(), Logistic(), SmoothHinge(), Huber()], ids=lambda loss: type(loss).__name__)
def test_residuals_are_by_themselves_on_this_machine(loss):
    """Library functions such as exp take numbers in groups: here each comes out the same in any."""
    scores, y = drawn((1003,), 3), (np.random.default_rng().random(1003) > 0.5).astype(float)
    alike(loss.residual, scores, y)
    alike(Multinomial().residual, drawn((301, 5), 3), np.eye(5)[np.random.default_rng().integers(0, 5, 301)])


@settings(max_examples=40)
@given(SHAPES)
def test_products_are_near(shape):
    n, d, k = shape
    X, W = drawn((n, d)), drawn((d, k), 2)
    top = float(np.abs(X).max())
    assert np.all(np.abs(project(X, W, top) - X @ W) <= top * np.abs(W).max() * d * 2.0**-20)
    rough = np.abs(Factors.of(X).times(W) - X @ W)
    assert np.all(rough <= row_norms(X)[:, np.newaxis] * np.abs(W).max() * d * 2.0**-14)
    assert row_norms(X) == pytest.approx(np.linalg.norm(X, axis=1))
    assert row_norms(X, 1) == pytest.approx(np.abs(X).sum(axis=1))


def test_extremes():
    X = np.array([[0.0, 0.0], [5e-324, 0.0], [1e-300, 1.0]])
    assert project(X, np.array([1.0, 1.0]), 1.0) == pytest.approx([0.0, 0.0, 1.0], abs=1e-20)
    assert project(X, np.zeros(2), 1.0).tolist() == [0.0] * 3
    assert project(X * 0, np.ones(2), 0.0).tolist() == [0.0] * 3
    assert project(np.zeros((0, 2)), np.zeros((2, 3)), 1.0).shape == (0, 3)
    assert np.all(np.isfinite(project(X, np.array([1e300, -1e300]), 1.0)))
