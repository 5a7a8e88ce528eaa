"""Exact sums: rows within their norm, sums without rounding, a budget that adds up, noise of the right size.

Each row is by itself: whatever is computed of a row is the same to the bit beside any others, at any place.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import dither as dp
from dither.learn import budget as sums
from dither.learn.budget import GaussianBudget, project, quantized, row_norms, row_sums
from dither.learn.descent import Factors
from dither.learn.losses import Huber, Logistic, Multinomial, SmoothHinge, Squared, softmax
from support import refuses

ONE = dp.ApproxDP(1, 1e-5)
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
ROWS = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=NUMBERS)


def length(row: np.ndarray, order: int) -> int:
    """The l1 norm, or the square of the l2 norm, in whole numbers."""
    return sum(abs(int(entry)) if order == 1 else int(entry) ** 2 for entry in row)


@settings(deadline=None)
@given(ROWS, st.floats(1e-3, 1e3), st.sampled_from([1, 2]), st.sampled_from([4, 16, 20]))
def test_no_row_is_longer_than_its_bound(rows, norm, order, bits):
    whole, _ = sums.quantized(rows, norm, bits, order)
    assert np.array_equal(whole, np.trunc(whole))
    assert all(length(row, order) <= (1 << bits) ** order for row in whole)


def test_rounding_to_the_nearest_would_be_longer():
    """The broken twin: without cutting toward zero the bound does not hold."""
    rows = np.random.default_rng(1).normal(size=(200, 10))
    scaled = np.rint(rows / np.linalg.norm(rows, axis=1)[:, np.newaxis] * 2**16)
    assert any(length(row, 2) > 2**32 for row in scaled)
    assert all(length(row, 2) <= 2**32 for row in sums.quantized(1e6 * rows, 1.0, 16)[0])


def test_clipping_keeps_short_rows_and_directions():
    whole, steps = sums.quantized(np.array([[0.25, -0.5], [30.0, 40.0], [0.0, 0.0]]), 1.0, 20)
    np.testing.assert_allclose(whole / steps, [[0.25, -0.5], [0.6, 0.8], [0.0, 0.0]], atol=2e-6)


def test_a_row_beyond_all_floats_counts_as_nothing():
    whole, _ = sums.quantized(np.array([[1e200, 1.0]]), 1.0, 20)
    assert np.array_equal(whole, [[0.0, 0.0]])


def test_sums_are_exact_in_any_order_and_over_blocks():
    rows = np.random.default_rng(2).normal(size=(2**14 + 1000, 3))
    total, _ = sums.exact_sum(rows, 2.0)
    gram, _ = sums.exact_gram(rows, 2.0)
    small = sums.quantized(rows, 2.0, sums.VECTOR_BITS)[0].astype(np.int64)
    fine = sums.quantized(rows, 2.0, sums.GRAM_BITS)[0].astype(np.int64)
    assert [int(entry) for entry in total] == [sum(map(int, column)) for column in small.T]
    assert np.array_equal(gram, fine.T @ fine)  # in 64-bit integers
    order = np.random.default_rng(3).permutation(len(rows))
    assert np.array_equal(sums.exact_sum(rows[order], 2.0)[0], total)
    assert np.array_equal(sums.exact_gram(rows[order], 2.0)[0], gram)


@settings(deadline=None)
@given(ROWS, st.sampled_from([1, 2]))
def test_one_row_changes_a_gram_matrix_by_its_sensitivity_at_most(rows, order):
    sensitivity = 1 << (2 * sums.GRAM_BITS)
    change = sums.exact_gram(rows, 1.0, order)[0] - sums.exact_gram(rows[1:], 1.0, order)[0]
    loss = Fraction(0)
    for part, most in sums.gram_parts(change, sensitivity, pure=order == 1):
        loss += sum((Fraction(abs(int(entry))) / most) ** order for entry in part)
    assert loss <= 1


def test_a_symmetric_matrix_from_its_parts():
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    diagonal, above = (part for part, _ in sums.gram_parts(matrix, 1, pure=False))
    assert np.array_equal(sums.symmetric(diagonal, above), matrix)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_noise_of_the_whole_budget_is_that_of_the_exact_curve(epsilon):
    ratio = GaussianBudget(dp.ApproxDP(epsilon, 1e-5)).ratio(1)

    def delta(r):
        phi = stats.norm.cdf
        return phi(1 / (2 * r) - epsilon * r) - math.exp(epsilon) * phi(-1 / (2 * r) - epsilon * r)

    assert delta(ratio) <= 1e-5 * (1 + 1e-6)
    assert delta(0.999 * ratio) > 1e-5


def test_shares_add_up_and_no_more_is_handed_out():
    budget = GaussianBudget(ONE)
    for _ in range(10):
        budget.release([(np.array([1, 2]), 1)], 0.1)
    assert budget.left == 0
    with refuses(dp.NotPrivate, "which is left"):
        budget.release([(np.array([1]), 1)], 0.001)
    ratios = [part.ratio for part, times in budget.event.parts for _ in range(times)]
    whole = 1 / sum(1 / ratio**2 for ratio in ratios)
    assert whole >= Fraction(GaussianBudget(ONE).ratio(1)) ** 2 * (1 - Fraction(1, 10**12))
    assert dp.accounting.best_of(budget.event, 1e-5).guarantee <= dp.ApproxDP(1.000001, 1e-5)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, math.nan])
def test_shares_outside_of_0_and_1_are_refused(share):
    with pytest.raises(ValueError):
        GaussianBudget(ONE).release([(np.array([1]), 1)], share)


def test_zcdp_is_not_a_budget():
    with refuses(dp.WrongType, "PureDP or ApproxDP"):
        GaussianBudget(dp.ZCDP(1))


def test_replacing_moves_twice_as_far():
    add, replace = GaussianBudget(ONE, dp.AddRemove), GaussianBudget(ONE, dp.ReplaceOne)
    assert replace.ratio(1) == pytest.approx(2 * add.ratio(1))
    assert replace.ratio(1, aligned=True) == pytest.approx(math.sqrt(2) * add.ratio(1))
    pure = GaussianBudget(dp.PureDP(1), dp.ReplaceOne)
    assert pure.ratio(1, aligned=True) == pytest.approx(2.0), "l1 has no such saving"


def fits(sample: np.ndarray, deviation: float) -> bool:
    """Whether the sum of squares is that of this deviation; a false alarm of 1e-9."""
    low, high = stats.chi2.ppf([5e-10, 1 - 5e-10], sample.size)
    return bool(low <= np.sum((sample / deviation) ** 2) <= high)


@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_the_noise_has_its_size(neighbors):
    moves = 1 if neighbors is dp.AddRemove else 2
    budget = GaussianBudget(ONE, neighbors)
    [noise] = budget.release([(np.zeros(40000, dtype=np.int64), 1 << 20)], 0.25)
    deviation = 2**20 * 2 * 3.7306316 * moves
    assert fits(noise, deviation)
    assert not fits(noise, 0.9 * deviation)
    assert not fits(noise, 1.1 * deviation)


def test_the_noise_of_a_gram_matrix_has_its_size():
    result = sums.noisy_gram(np.zeros((1, 250)), 3.0, GaussianBudget(ONE), 1)
    above = result[np.triu_indices(250, 1)]
    deviation = 9 * 3.7306316 / math.sqrt(2)
    assert np.array_equal(result, result.T)
    assert fits(above, deviation)
    assert not fits(above, 0.95 * deviation)
    assert not fits(above, 1.05 * deviation)


def test_pure_noise_is_laplace():
    [noise] = GaussianBudget(dp.PureDP(1)).release([(np.zeros(40000, dtype=np.int64), 1000)], 0.5)
    assert stats.kstest(noise / 2000, "laplace").pvalue > 1e-9
    assert stats.kstest(noise / 1800, "laplace").pvalue < 1e-9


def test_sums_beyond_exact_floats_are_released_exactly():
    big = 2**60 + 1
    [result] = GaussianBudget(dp.PureDP(1)).release([(np.array([big, -big]), 1)], 1)
    assert abs(result[0] - big) < 1e3
    assert abs(result[1] + big) < 1e3
    assert GaussianBudget(ONE).release([(np.zeros(0, dtype=np.int64), 1)], 1)[0].shape == (0,)


def test_a_public_count_is_free_and_a_private_one_is_not():
    public, private = GaussianBudget(ONE, dp.ReplaceOne), GaussianBudget(ONE)
    assert sums.noisy_count(np.zeros(7), public, 0.1) == 7.0
    assert public.left == 1
    assert sums.noisy_count(np.zeros(100000), private, 0.5) == pytest.approx(100000, abs=100)
    assert private.left == Fraction(1, 2)


@settings(deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 5)), elements=st.floats(-1, 1)))
def test_the_norm_of_moments_cuts_nothing(places):
    both = np.hstack([places, places**2 - 0.5])
    columns = places.shape[1]
    assert np.linalg.norm(both, axis=1).max() <= math.sqrt(1.25 * columns) * (1 + 1e-12)
    assert np.abs(both).sum(axis=1).max() <= 1.5 * columns * (1 + 1e-12)


def test_a_ceiling_is_above_about_its_fraction():
    sizes = np.random.default_rng(5).uniform(0, 1, 50000)
    result = sums.noisy_ceiling(sizes, 16.0, 0.9, 50000, GaussianBudget(ONE), 0.02)
    assert result == 1.0
    few = sums.noisy_ceiling(np.zeros(10), 16.0, 0.9, 10, GaussianBudget(dp.ApproxDP(0.01, 1e-5)), 0.02)
    assert few <= 16.0
    assert sums.noisy_ceiling(np.array([0.0, 1e-30, 1e300] * 9999), 16.0, 0.9, 29997, GaussianBudget(ONE), 1) == 16.0


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
    return quantized(rows, 1.0, 16, order)[0]


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
