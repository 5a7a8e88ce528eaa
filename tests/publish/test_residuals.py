"""Residuals against dense generalized least squares, on random domains.

Contrasts: whole, orthogonal, complete.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dither.publish.residuals import Contrasts, Residuals, margin, margins
from support import each
from support_publish import dense, measurement, random_domain


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 51])
def test_contrasts_are_whole_and_orthogonal_and_their_squares_are_known(size):
    contrasts = Contrasts(np.array([size]))
    matrix = contrasts.of(np.eye(size, dtype=np.int64))
    assert matrix.dtype == np.int64
    assert matrix.shape == (size - 1, size)
    assert not matrix.sum(axis=1).any()
    gram = matrix @ matrix.T
    assert not (gram - np.diag(np.diag(gram))).any()
    squares = np.concatenate([[square] * (stop - start) for start, stop, square in contrasts.groups] or [[]])
    assert [Fraction(int(length)) * Fraction(size - 1, size) for length in np.diag(gram)] == list(squares)


@pytest.mark.parametrize("size", [2, 3, 7, 30])
def test_one_record_is_as_far_from_none_in_every_place(size):
    contrasts = Contrasts(np.array([size]))
    matrix = contrasts.of(np.eye(size, dtype=np.int64))
    scale = np.concatenate([[float(square)] * (stop - start) for start, stop, square in contrasts.groups])
    np.testing.assert_allclose((matrix**2 / scale[:, np.newaxis]).sum(axis=0), 1.0, rtol=1e-12)


def test_families_of_any_size_come_back_from_their_sums_and_contrasts():
    generator = np.random.default_rng(1)
    children = generator.integers(1, 9, 40)
    contrasts = Contrasts(children)
    counts = generator.integers(0, 1000, (children.sum(), 3))
    sums = np.add.reduceat(counts, np.cumsum(children) - children, axis=0)
    back = contrasts.expand(sums.astype(float), contrasts.of(counts).astype(float))
    np.testing.assert_allclose(back, counts, atol=1e-9)
    even = contrasts.expand(sums.astype(float), None)
    np.testing.assert_allclose(even, np.repeat(sums / children[:, np.newaxis], children, axis=0))


def test_few_different_lengths_occur():
    assert len(Contrasts(np.array([1000])).groups) <= 20
    assert Contrasts(np.array([1000])).largest_coefficient < 501


def test_whole_numbers_that_exceed_64_bits_wrap_around_silently():
    counts = np.full((3, 1), 2**62, dtype=np.int64)
    exact = [int(value) for value in Contrasts(np.array([3])).of(counts).ravel()]
    assert exact == [0, 0]


@pytest.mark.slow
@each("seed", range(25))
def test_estimates_and_variances_are_those_of_generalized_least_squares(seed):
    """Every cell of every table, and sums of cells, to 1e-9."""
    domain, finest = random_domain(seed)
    generator = np.random.default_rng(seed)
    residuals = Residuals(domain)
    variances = {levels: float(generator.uniform(0.2, 5)) for levels in margins([finest])}
    matrix, noise = measurement(residuals, finest, variances)
    counts = generator.integers(0, 100, domain.shape(finest))
    noisy = matrix @ counts.ravel() + np.sqrt(noise) * generator.normal(size=len(noise))
    information = matrix.T @ (matrix / noise[:, np.newaxis])
    covariance = np.linalg.inv(information)
    least_squares = covariance @ (matrix.T @ (noisy / noise))
    parts, start = {}, 0
    for levels in margins([finest]):
        size = residuals.size(levels)
        parts[levels] = noisy[start : start + size].reshape(residuals.shape(levels))
        start += size
    for table in margins([finest]):
        sums = dense(domain, finest, table)
        np.testing.assert_allclose(residuals.table(table, parts.get).ravel(), sums @ least_squares, rtol=0, atol=1e-9)
        expected = np.diag(sums @ covariance @ sums.T)
        np.testing.assert_allclose(residuals.variances(table, variances).ravel(), expected, rtol=1e-9)
        shares = residuals.mean_coefficients(table, variances)
        assert shares @ np.array([*variances.values()]) == pytest.approx(expected.mean(), rel=1e-9)
        largest, row = residuals.largest_variance(table, variances)
        assert largest == pytest.approx(expected.max(), rel=1e-9)
        assert row @ np.array([*variances.values()]) == pytest.approx(largest, rel=1e-9)
        weights = generator.normal(size=domain.shape(table))
        combined = sums.T @ weights.ravel()
        assert residuals.variance_of_sum(table, weights, variances) == pytest.approx(
            combined @ covariance @ combined, rel=1e-9
        )


@pytest.mark.parametrize("seed", range(5))
def test_residuals_of_a_margin_can_be_computed_from_it_or_from_the_cells(seed):
    domain, finest = random_domain(seed)
    residuals = Residuals(domain)
    counts = np.random.default_rng(seed).integers(0, 9, domain.shape(finest))
    for levels in margins([finest]):
        from_margin = residuals.of(levels, margin(domain, counts, finest, levels), levels)
        np.testing.assert_array_equal(residuals.of(levels, counts, finest), from_margin)


def test_residuals_that_are_missing_count_as_zero():
    domain, finest = random_domain(11)
    residuals = Residuals(domain)
    counts = np.ones(domain.shape(finest))
    total = {(0,) * len(finest): counts.sum().reshape([1] * len(finest))}
    even = residuals.table(finest, total.get)
    assert even.shape == counts.shape
    assert even.sum() == pytest.approx(counts.sum())
    assert not residuals.table(finest, {}.get).any()
