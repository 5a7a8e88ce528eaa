"""Principal components and standardizing: close to those of the data where noise is small, usable always."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import decomposition, preprocessing
from sklearn.datasets import load_digits

import dither as dp
from dither.learn.transformers import PCA, StandardScaler

rng = np.random.default_rng(5)
X = np.clip(rng.normal(size=(40000, 6)) * [0.5, 0.3, 0.1, 0.05, 0.05, 0.05] + 0.2, -2, 2)


@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_components_are_those_of_the_data(neighbors):
    result = PCA(2, epsilon=1, bounds=(-2, 2), neighbors=neighbors).fit(X)
    plain = decomposition.PCA(2).fit(X)
    overlap = np.abs(result.components_ @ plain.components_.T)
    np.testing.assert_allclose(overlap, np.eye(2), atol=0.1)
    np.testing.assert_allclose(result.mean_, X.mean(axis=0), atol=0.02)
    assert result.explained_variance_[0] > result.explained_variance_[1] > 0
    assert 0 < result.explained_variance_ratio_.sum() <= 1 + 1e-9


@pytest.mark.parametrize("n", [1, 100])
def test_components_are_orthonormal_whatever_the_noise(n):
    result = PCA(3, epsilon=0.01, bounds=(-2, 2)).fit(X[:n])
    np.testing.assert_allclose(result.components_ @ result.components_.T, np.eye(3), atol=1e-9)
    assert np.all(result.explained_variance_ >= 0)


def test_digits_keep_their_variance():
    """The mean of ten fits at epsilon 1 keeps more than 0.525 of the variance, where 0.545 is the most there is."""
    rows = load_digits().data
    middle = rows - rows.mean(axis=0)
    kept = []
    for _ in range(10):
        components = PCA(5, epsilon=1, bounds=(0, 16)).fit(rows).components_
        kept.append(np.sum((middle @ components.T) ** 2) / np.sum(middle**2))
    assert 0.525 < np.mean(kept) < 0.5451


def test_there_and_back():
    result = PCA(epsilon=1, bounds=(-2, 2)).fit(X)
    np.testing.assert_allclose(result.inverse_transform(result.transform(X)), X, atol=1e-9)
    assert result.get_feature_names_out().tolist() == [f"pca{i}" for i in range(6)]
    assert result.transform(X).shape == X.shape


@pytest.mark.parametrize("wanted", [0, -1, 7, 2.5, "all"])
def test_senseless_numbers_of_components_are_refused(wanted):
    with pytest.raises((ValueError, TypeError), match="n_components"):
        PCA(wanted, bounds=(-2, 2)).fit(X[:50])


scaled_rng = np.random.default_rng(4)
SCALED = scaled_rng.beta(2, 5, (30000, 3)) * [1, 10, 100] - [0, 5, 50]
BOUNDS = [(0, 1), (-5, 5), (-50, 50)]


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_it_is_close_to_that_without_noise(delta, neighbors):
    result = StandardScaler(epsilon=1, delta=delta, bounds=BOUNDS, neighbors=neighbors).fit(SCALED)
    plain = preprocessing.StandardScaler().fit(SCALED)
    np.testing.assert_allclose(result.mean_ / [1, 10, 100], plain.mean_ / [1, 10, 100], atol=0.02)
    np.testing.assert_allclose(result.scale_, plain.scale_, rtol=0.2)
    np.testing.assert_allclose(result.scale_**2, result.var_)


def test_scaled_there_and_back():
    result = StandardScaler(bounds=BOUNDS).fit(SCALED)
    np.testing.assert_allclose(result.inverse_transform(result.transform(SCALED)), SCALED, atol=1e-9)
    half = StandardScaler(bounds=BOUNDS, with_mean=False, with_std=False).fit(SCALED)
    np.testing.assert_array_equal(half.transform(SCALED), SCALED)


def test_names_go_through():
    result = StandardScaler(bounds=BOUNDS).fit(SCALED)
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
    twin = StandardScaler(bounds=(-1, 1)).non_private().fit(SCALED)
    plain = preprocessing.StandardScaler().fit(np.clip(SCALED, -1, 1))
    np.testing.assert_allclose(twin.transform(SCALED), plain.transform(np.clip(SCALED, -1, 1)))
