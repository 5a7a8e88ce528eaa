"""Private k-means: better than one center, within its budget, and usable on whatever it is given."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import dither as dp
from dither.accounting import best_of
from dither.budget_hooks import charging_to
from dither.errors import DitherError, InvalidArgument, WrongType
from dither.learn.budget import GaussianBudget
from dither.learn.kmeans import KMeans, _normal_centers, private_centers, squared_distances
from dither.learn.linear import LinearRegression
from dither.randomness import SeededSource
from learn.conformance import failed
from learn.keeper import charged

pytestmark = pytest.mark.filterwarnings("ignore::dither.learn.spent.PrivacyWarning")  # fitted again and again

RNG = np.random.default_rng(3)
CENTERS = np.array([[2.0, 2.0, 5.0], [8.0, 3.0, 5.0], [5.0, 9.0, 5.0]])
ROWS = CENTERS[RNG.integers(0, 3, 3000)] + RNG.normal(0, 0.5, (3000, 3))
IRIS = [(4, 8), (2, 5), (0, 8), (0, 3)]


def model(clusters=3, **changed):
    return KMeans(clusters, **{"epsilon": 1, "bounds": (0, 10), **changed})


def spread(rows, centers):
    """The sum of the squared distances to the nearest center; distances by SciPy."""
    return float((cdist(rows, centers) ** 2).min(axis=1).sum())


def test_scikit_learn_accepts_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that are skipped warn
        result = check_estimator(model(epsilon=5, bounds=(-20, 20), source=SeededSource(1)), on_fail=None)
    assert failed(result) == []


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_groups_are_found(delta, neighbors):
    result = model(epsilon=5, delta=delta, neighbors=neighbors).fit(ROWS)
    assert cdist(result.cluster_centers_, CENTERS).min(axis=0).max() < 3  # some 0.1
    assert len({*result.predict(CENTERS)}) == 3
    assert np.array_equal(result.predict(ROWS), cdist(ROWS, result.cluster_centers_).argmin(axis=1))
    assert result.score(ROWS) * 25 == pytest.approx(-spread(ROWS, result.cluster_centers_))
    assert result.transform(ROWS) * 5 == pytest.approx(cdist(ROWS, result.cluster_centers_))


@pytest.mark.parametrize(
    ("load", "clusters", "bounds", "epsilon", "most"),
    [(load_iris, 3, IRIS, 3, 0.7), (load_iris, 3, IRIS, 1, 0.85), (load_digits, 10, [(0, 16)] * 64, 1, 0.85)],
)
def test_public_data_have_less_spread_than_around_one_center(load, clusters, bounds, epsilon, most):
    """In units of that of one center, mean over ten fits: some 0.2, 0.3 and 0.7; not private 0.18, 0.18 and 0.54."""
    X = load().data
    lower, upper = np.array(bounds, dtype=float).T
    unit = (upper - lower) / 2
    result = [
        spread(X / unit, KMeans(clusters, epsilon=epsilon, bounds=bounds).fit(X).cluster_centers_ / unit)
        for _ in range(10)
    ]
    assert np.mean(result) < most * spread(X / unit, X.mean(axis=0)[np.newaxis] / unit)


def test_where_there_are_no_groups_none_are_gained():
    """The broken twin of the tests above: rows all over the cube."""
    cube = RNG.uniform(0, 10, (3000, 3))
    result = model().fit(cube)
    assert spread(cube, result.cluster_centers_) > 0.5 * spread(cube, cube.mean(axis=0)[np.newaxis])


def test_with_noise_only_it_is_one_center():
    """Nine times in ten; of forty, fewer than half do not happen."""
    result = [created for created in (model(epsilon=0.01).fit(ROWS[:50]) for _ in range(40)) if created.n_iter_ == 0]
    assert len(result) >= 20
    assert np.ptp(result[0].cluster_centers_, axis=0) == pytest.approx(np.zeros(3))


@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne, None])
@pytest.mark.parametrize("n", [5, 300, 3000])
def test_the_noise_that_was_added_keeps_to_the_guarantee(neighbors, n):
    result = model(epsilon=0.7, neighbors=neighbors).fit(ROWS[:n])
    assert result.guarantee_ == dp.ApproxDP(0.7, 1e-5)
    spent = best_of(result.event_, 1e-5).guarantee.epsilon
    assert 0.699 < spent <= 0.7


def test_a_pure_fit_spends_exactly_epsilon():
    result = model(epsilon=0.7, delta=None).fit(ROWS)
    assert result.event_.guarantee == result.guarantee_ == dp.PureDP(0.7)


@pytest.mark.parametrize("n", [5, 300, 3000])
def test_all_of_the_budget_is_spent(n):
    budget = GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove)
    private_centers(np.clip(ROWS[:n] / 5 - 1, -1, 1), 4, budget)
    assert budget.left == 0


def test_a_ledger_is_charged_once():
    assert charged(lambda: model().fit(ROWS)) == [(dp.ApproxDP(1, 1e-5), True)]


def test_a_ledger_gives_the_same_centers_again(tmp_path):
    with dp.ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create("people", limit=dp.ApproxDP(1.5, 1e-4))
        fits = []
        for _ in range(2):
            with ledger.scope("people", key="first"):
                fits.append(model().fit(ROWS))
    assert np.array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)


def test_a_seed_gives_the_same_centers_again():
    one, other = (model(source=SeededSource(5)).fit(ROWS) for _ in range(2))
    assert np.array_equal(one.cluster_centers_, other.cluster_centers_)
    assert not one.private_


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"epsilon": math.inf}, ValueError),
        ({"epsilon": math.nan}, ValueError),
        ({"epsilon": -1}, InvalidArgument),
        ({"delta": 1}, InvalidArgument),
        ({"bounds": None}, InvalidArgument),
        ({"bounds": [(0, 1)] * 2}, InvalidArgument),
        ({"clusters": 0}, InvalidArgument),
        ({"clusters": 2.5}, WrongType),
        ({"neighbors": "replace"}, WrongType),
    ],
)
def test_parameters_are_refused(changed, error):
    with pytest.raises(error) as refused:
        model(**changed).fit(ROWS)
    assert isinstance(refused.value, DitherError)


@pytest.mark.parametrize(
    "X", [np.full(5, 4.0), np.full((5, 3), "secret"), np.full((5, 3), 1j), np.full((5, 3), 4.0, dtype=object)]
)
def test_data_are_refused_before_anything_is_charged(X):
    class Keeper:
        def spend(self, what, compute, *, private, recordable=True):
            raise AssertionError("charged")

    with charging_to(Keeper()), pytest.raises(ValueError) as refused:
        model().fit(X)
    assert "secret" not in str(refused.value)


def test_sparse_rows_and_weights_are_refused():
    with pytest.raises(TypeError, match="parse"):
        model().fit(sparse.csr_matrix(ROWS))
    with pytest.raises(TypeError):
        model().fit(ROWS, None, np.ones(3000))


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("epsilon", [0.01, 1, 100])
@pytest.mark.parametrize("clusters", [1, 7])
def test_what_comes_out_is_always_usable(delta, epsilon, clusters):
    for rows in (ROWS[:2], np.full((40, 3), 10.0), RNG.uniform(-50, 50, (5, 40))):
        result = model(clusters, epsilon=epsilon, delta=delta).fit(rows)
        assert result.cluster_centers_.shape == (clusters, rows.shape[1])
        assert np.all((result.cluster_centers_ >= 0) & (result.cluster_centers_ <= 10))
        assert np.all(np.isfinite(result.transform(rows)))


def test_there_are_no_labels_of_the_records():
    result = model()
    assert not hasattr(result.fit(ROWS), "labels_")
    assert result.fit_predict(ROWS).shape == (3000,)
    with pytest.raises(NotFittedError):
        model().predict(ROWS)


def test_it_is_a_step_of_a_pipeline():
    far = make_pipeline(model(), LinearRegression(bounds=(0, 5), label_bounds=(0, 10))).fit(ROWS, ROWS[:, 0])
    assert far.predict(ROWS).shape == (3000,)
    assert model().fit(ROWS).get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]


def test_the_twin_is_that_of_scikit_learn():
    twin = model().non_private().fit(ROWS)
    assert twin.score(ROWS) * 25 == pytest.approx(-spread(ROWS, CENTERS), rel=0.05)


def test_distances_are_those_of_scipy_and_of_each_row_by_itself():
    rows, centers = RNG.normal(size=(57, 9)), RNG.normal(size=(4, 9))
    result = squared_distances(rows, centers)
    assert result == pytest.approx(cdist(rows, centers) ** 2)
    for some in (slice(1), slice(3, 20), slice(None, None, 7)):
        assert np.array_equal(squared_distances(rows[some].copy(), centers), result[some])


def test_the_start_is_that_of_the_normal_law():
    """The best two and three points for a standard normal number: Max 1960, table I."""
    assert _normal_centers(np.ones(1), 2).ravel() == pytest.approx([-0.7979, 0.7979], abs=0.01)
    assert _normal_centers(np.ones(1), 3).ravel() == pytest.approx([-1.224, 0.0, 1.224], abs=0.02)
    assert not _normal_centers(np.zeros(2), 5).any()
