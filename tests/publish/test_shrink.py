"""Empirical Bayes: better than clipping where most counts are zero, and no worse where none is."""

from __future__ import annotations

import numpy as np
import pytest

from dither.publish.shrink import shrink


def noisy_counts(counts, deviation, seed=1):
    return counts + deviation * np.random.default_rng(seed).normal(size=len(counts))


def error(estimate, counts):
    return float(np.sqrt(np.mean((estimate - counts) ** 2)))


@pytest.mark.parametrize(("mean", "share"), [(0.05, 0.3), (1.0, 0.6), (10.0, 0.95)])
def test_errors_and_bias_are_smaller_than_with_clipping(mean, share):
    generator = np.random.default_rng(2)
    counts = generator.poisson(mean * generator.gamma(0.3, 1 / 0.3, 20_000)).astype(float)
    noisy = noisy_counts(counts, 5.0)
    estimate, _ = shrink(noisy, np.full(len(counts), 25.0), np.full(len(counts), mean))
    clipped = np.maximum(noisy, 0)
    assert error(estimate, counts) < share * error(clipped, counts)
    assert abs(np.mean(estimate - counts)) < 0.1 * abs(np.mean(clipped - counts)) + 0.02
    assert estimate.min() >= 0


def test_counts_far_from_zero_stay_as_they_are():
    counts = np.linspace(300, 900, 500)
    noisy = noisy_counts(counts, 5.0)
    estimate, variance = shrink(noisy, np.full(500, 25.0), np.full(500, 600.0))
    np.testing.assert_array_equal(estimate, noisy)
    np.testing.assert_array_equal(variance, 25.0)


def test_few_counts_are_only_clipped_and_empty_parents_have_empty_children():
    noisy = np.array([-3.0, 4.0, 5.0])
    estimate, variance = shrink(noisy, np.full(3, 4.0), np.array([2.0, 2.0, 0.0]))
    assert estimate.tolist() == [0.0, 4.0, 0.0]
    assert variance[2] == 0


def test_the_posterior_variance_says_how_large_the_error_is():
    generator = np.random.default_rng(5)
    counts = generator.poisson(generator.gamma(0.5, 6, 50_000)).astype(float)
    estimate, variance = shrink(noisy_counts(counts, 4.0), np.full(50_000, 16.0), np.full(50_000, 3.0))
    assert np.mean((estimate - counts) ** 2) == pytest.approx(variance.mean(), rel=0.05)
