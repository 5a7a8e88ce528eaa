"""Standardizing: close to scikit-learn's, never a division by nearly nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import preprocessing

import dither as dp
from dither.learn.scaler import StandardScaler

rng = np.random.default_rng(4)
X = rng.beta(2, 5, (30000, 3)) * [1, 10, 100] - [0, 5, 50]
BOUNDS = [(0, 1), (-5, 5), (-50, 50)]


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_it_is_close_to_that_without_noise(delta, neighbors):
    result = StandardScaler(epsilon=1, delta=delta, bounds=BOUNDS, neighbors=neighbors).fit(X)
    plain = preprocessing.StandardScaler().fit(X)
    np.testing.assert_allclose(result.mean_ / [1, 10, 100], plain.mean_ / [1, 10, 100], atol=0.02)
    np.testing.assert_allclose(result.scale_, plain.scale_, rtol=0.2)
    np.testing.assert_allclose(result.scale_**2, result.var_)


def test_there_and_back():
    result = StandardScaler(bounds=BOUNDS).fit(X)
    np.testing.assert_allclose(result.inverse_transform(result.transform(X)), X, atol=1e-9)
    half = StandardScaler(bounds=BOUNDS, with_mean=False, with_std=False).fit(X)
    np.testing.assert_array_equal(half.transform(X), X)


def test_names_go_through():
    result = StandardScaler(bounds=BOUNDS).fit(X)
    assert result.get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("n", [1, 10, 5000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_a_constant_feature_is_not_blown_up(n, epsilon):
    """The scale is at least the root of the noise, of which a place in the bounds is a few deviations at most."""
    constant = np.full((n, 2), 0.3)
    result = StandardScaler(epsilon=epsilon, bounds=(0, 1)).fit(constant)
    assert np.all(result.scale_ > 0)
    assert np.all(np.abs(result.transform(constant)) < 12)


def test_the_twin_is_scikit_learns():
    twin = StandardScaler(bounds=(-1, 1)).non_private().fit(X)
    plain = preprocessing.StandardScaler().fit(np.clip(X, -1, 1))
    np.testing.assert_allclose(twin.transform(X), plain.transform(np.clip(X, -1, 1)))
