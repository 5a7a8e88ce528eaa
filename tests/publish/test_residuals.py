"""Residuals against dense generalized least squares, on random domains."""

from __future__ import annotations

import numpy as np
import pytest

from dither.publish.residuals import Residuals, margin, margins
from support import each
from support_publish import dense, measurement, random_domain


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
        shares = residuals.mean_variances(table, variances)
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
