"""Regression and means: close to what is true, by either way, in any units; ridge as scikit-learn means it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn import linear_model
from sklearn.datasets import load_diabetes

import dither as dp
from dither.learn import linear
from dither.learn.budget import GaussianBudget
from dither.learn.linear import LinearRegression, Mean, Ridge, solve

rng = np.random.default_rng(3)


def made(n, d=4, noise=0.1):
    X = rng.uniform(-1, 1, (n, d))
    return X, X @ np.linspace(-0.5, 0.5, d) + 0.3 + noise * rng.normal(size=n)


@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_many_records_give_the_least_squares(neighbors):
    X, y = made(60000)
    model = LinearRegression(epsilon=1, bounds=(-1, 1), label_bounds=(-2, 2), neighbors=neighbors).fit(X, y)
    assert model.method_ == "newton"
    np.testing.assert_allclose(model.coef_, np.linspace(-0.5, 0.5, 4), atol=0.03)
    assert model.intercept_ == pytest.approx(0.3, abs=0.02)


@pytest.mark.slow
def test_few_records_are_not_fitted_worse_than_by_a_constant():
    """Twenty fits by descent of 350 records at epsilon 1 lie between nothing learnt and all."""
    X, y = load_diabetes(return_X_y=True)
    scores = []
    for _ in range(20):
        model = LinearRegression(epsilon=1, bounds=(-0.2, 0.2), label_bounds=(0, 350)).fit(X, y)
        assert model.method_ == "descent"
        scores.append(model.score(X, y))
    best = linear_model.LinearRegression().fit(X, y).score(X, y)
    assert 0.8 * best < np.mean(scores) < best


def test_the_way_is_chosen_by_public_numbers_only():
    ways = []
    for values in (np.zeros((3000, 3)), rng.uniform(-1, 1, (3000, 3))):
        ways.append(solve(values, np.zeros(3000), np.zeros(3), GaussianBudget(dp.ApproxDP(1, 1e-5), dp.ReplaceOne))[2])
    assert ways == ["newton", "newton"]
    assert solve(np.zeros((300, 3)), np.zeros(300), np.zeros(3), GaussianBudget(dp.ApproxDP(1, 1e-5)))[2] == "descent"


@pytest.mark.parametrize("n", [400, 40000])
def test_units_do_not_matter(n):
    """With the same coins, other units of features and label give the same model in those units."""
    X, y = made(n)
    scale, shift = np.array([1024.0, 2.0**-10, 1.0, 16.0]), np.array([0.0, 0.0, 8.0, 0.0])
    bounds = np.column_stack([shift - scale, shift + scale]).tolist()
    source = dp.randomness.SeededSource(7)
    one = LinearRegression(bounds=(-1, 1), label_bounds=(-2, 2), source=source).fit(X, y)
    other = LinearRegression(bounds=bounds, label_bounds=(-2048, 2048), source=source).fit(X * scale + shift, 1024 * y)
    np.testing.assert_allclose(other.coef_ * scale / 1024, one.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("epsilon", [1.0, 1e4])
@pytest.mark.parametrize("alpha", [0.0, 3.0, 3000.0, 1e9])
def test_a_ridge_is_that_of_scikit_learn(alpha, epsilon):
    n = 100000 if epsilon == 1 else 2000
    X, y = made(n, noise=0.05)
    model = Ridge(epsilon=epsilon, alpha=alpha, bounds=(-1, 1), label_bounds=(-2, 2)).fit(X, y)
    plain = linear_model.Ridge(alpha=alpha).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.03)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=0.03)


def test_a_ridge_shrinks_by_descent_too():
    X, y = made(400)
    free, bound = (Ridge(alpha=alpha, bounds=(-1, 1), label_bounds=(-2, 2)).fit(X, y) for alpha in (0.0, 1e9))
    assert free.method_ == bound.method_ == "descent"
    assert np.abs(bound.coef_).max() < 1e-3 < np.abs(free.coef_).max()


@pytest.mark.parametrize("alpha", [-1.0, math.nan, math.inf])
def test_senseless_penalties_are_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        Ridge(alpha=alpha, bounds=(-1, 1), label_bounds=(-2, 2)).fit(*made(10))


def test_heavy_tails_and_rare_columns_do_not_upset_it():
    n = 60000
    X = np.column_stack([np.minimum(rng.exponential(0.05, n), 1), rng.random(n) < 3e-4, rng.uniform(-1, 1, n)])
    y = X @ [1.0, 0.2, 0.1] + 0.02 * rng.standard_t(3, n)
    model = LinearRegression(epsilon=1, bounds=[(0, 1), (0, 1), (-1, 1)], label_bounds=(-1, 3)).fit(X, y)
    assert model.score(X, y) > 0.9 * linear_model.LinearRegression().fit(X, y).score(X, y)


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_a_mean_is_close(delta, neighbors):
    X = rng.beta(2, 5, (20000, 3)) * [1, 10, 100]
    model = Mean(epsilon=1, delta=delta, bounds=[(0, 1), (0, 10), (0, 100)], neighbors=neighbors).fit(X)
    np.testing.assert_allclose(model.mean_ / [1, 10, 100], X.mean(axis=0) / [1, 10, 100], atol=0.02)
    assert model.guarantee_ == (dp.PureDP(1) if delta is None else dp.ApproxDP(1, 1e-5))


@pytest.mark.slow
def test_the_noise_of_a_mean_has_its_size():
    """Under ReplaceOne the mean of zeros is the noise, and all of the budget is for it: 2 sqrt(d) r / n."""
    n, d = 10000, 2000
    result = Mean(epsilon=1, bounds=(-1, 1), neighbors=dp.ReplaceOne).fit(np.zeros((n, d))).mean_
    deviation = 2 * math.sqrt(d) * 3.7306316 / n
    low, high = stats.chi2.ppf([5e-10, 1 - 5e-10], d)
    for factor, right in ((1.0, True), (0.8, False), (1.25, False)):
        assert bool(low <= np.sum((result / (factor * deviation)) ** 2) <= high) is right


def test_a_mean_stays_inside_its_bounds():
    for _ in range(20):
        result = Mean(epsilon=0.01, bounds=(2, 3)).fit(np.full((3, 2), 2.5)).mean_
        assert np.all((result >= 2) & (result <= 3))


@pytest.mark.slow
def test_with_few_records_it_is_little_worse_than_a_constant(monkeypatch):
    """Means over 60 fits to labels that the features say nothing of: what is left of the noise costs some 0.35 of their
    variance (the standard error is 0.06), and costs 1.1 where the weights of the descent are taken as they are."""
    generator = np.random.default_rng(8)
    rows, labels = generator.uniform(-1, 1, (400, 10)), generator.normal(0, 0.3, 400)

    def lost():
        fits = (
            LinearRegression(0.05, bounds=(-1, 1), label_bounds=(-1, 1)).fit(rows[:200], labels[:200])
            for _ in range(60)
        )
        return np.mean([np.mean(model.predict(rows[200:]) ** 2) for model in fits]) / 0.09

    assert lost() < 0.75
    monkeypatch.setattr(linear, "_likely_weights", lambda result, *_: result)
    assert lost() > 0.75
