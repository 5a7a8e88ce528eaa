"""Naive Bayes and k-means: they learn what there is, keep to their budgets, and are usable on whatever is given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB as PlainGaussianNB
from sklearn.pipeline import make_pipeline

import dither as dp
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.learn.budget import GaussianBudget
from dither.learn.groups import GaussianNB, KMeans, _normal_centers, private_centers, squared_distances
from dither.learn.linear import LinearRegression
from support import refuses

pytestmark = pytest.mark.filterwarnings("ignore::dither.learn.base.PrivacyWarning")  # fitted again and again

BAYES_RNG = np.random.default_rng(7)
LABELS = BAYES_RNG.integers(0, 3, 6000)
BAYES_ROWS = BAYES_RNG.normal(np.array([[2.0, 5.0], [5.0, 5.0], [8.0, 2.0]])[LABELS], [[0.8, 1.2]])


def bayes(**changed):
    return GaussianNB(**{"epsilon": 1, "bounds": (0, 10), "classes": [0, 1, 2], **changed})


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_with_many_records_it_is_that_of_scikit_learn(delta, neighbors):
    """At epsilon = 1000 there is hardly any noise left: means and counts agree, clipped variances nearly."""
    ours = bayes(epsilon=1000, delta=delta, neighbors=neighbors).fit(BAYES_ROWS, LABELS)
    theirs = PlainGaussianNB().fit(np.clip(BAYES_ROWS, 0, 10), LABELS)
    assert ours.class_count_ == pytest.approx(theirs.class_count_, abs=2)
    assert ours.class_prior_ == pytest.approx(theirs.class_prior_, abs=1e-3)
    assert ours.theta_ == pytest.approx(theirs.theta_, abs=0.02)
    assert ours.var_ == pytest.approx(theirs.var_, rel=0.1)
    assert np.mean(ours.predict(BAYES_ROWS) == theirs.predict(BAYES_ROWS)) > 0.99


def test_predictions_are_those_of_the_model_that_it_states():
    """Densities from SciPy."""
    result = bayes().fit(BAYES_ROWS, LABELS)
    inside = np.clip(BAYES_ROWS[:50], 0, 10)
    logs = [
        math.log(prior) + stats.norm.logpdf(inside, mean, np.sqrt(var)).sum(axis=1)
        for prior, mean, var in zip(result.class_prior_, result.theta_, result.var_, strict=True)
    ]
    joint = np.exp(np.column_stack(logs))
    expected = joint / joint.sum(axis=1, keepdims=True)
    assert result.predict_proba(BAYES_ROWS[:50]) == pytest.approx(expected, abs=1e-9)
    assert np.exp(result.predict_log_proba(BAYES_ROWS[:50])) == pytest.approx(expected, abs=1e-9)
    assert np.array_equal(result.predict(BAYES_ROWS[:50]), expected.argmax(axis=1))


@pytest.mark.parametrize("delta", [1e-5, None])
def test_classes_are_separated(delta):
    assert bayes(delta=delta).fit(BAYES_ROWS, LABELS).score(BAYES_ROWS, LABELS) > 0.9  # some 0.95


def test_without_signal_there_is_nothing_to_learn():
    """The broken twin of the test above: with shuffled labels all classes look alike."""
    assert np.ptp(bayes().fit(BAYES_ROWS, LABELS).theta_[:, 0]) > 4  # 6
    assert np.ptp(bayes().fit(BAYES_ROWS, BAYES_RNG.permutation(LABELS)).theta_[:, 0]) < 1  # some 0.1


@pytest.mark.parametrize(
    ("load", "tops", "least"), [(load_breast_cancer, None, 0.88), (load_digits, np.full(64, 16.0), 0.75)]
)
def test_public_data_are_learned(load, tops, least):
    """Means over four splits at epsilon = 1: some 0.94 and 0.84."""
    X, y = load(return_X_y=True)
    tops = 1.25 * X.max(axis=0) if tops is None else tops  # a test may look; bounds are public in earnest
    scores = []
    for seed in range(4):
        train, test, seen, hidden = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)
        result = bayes(bounds=[(0, float(top)) for top in tops], classes=list(range(int(y.max()) + 1)))
        scores.append(result.fit(train, seen).score(test, hidden))
    assert np.mean(scores) > least


def test_one_class_only_is_no_error_if_classes_are_public():
    result = bayes().fit(BAYES_ROWS, np.zeros(6000, dtype=int))
    assert result.class_prior_[0] > 0.9
    with refuses(InvalidData, "class"):
        bayes(classes="observed").fit(BAYES_ROWS, np.zeros(6000))


def test_labels_that_are_no_class_add_nothing():
    """The counts do not see them."""
    strange = np.where(LABELS == 2, 99, LABELS)
    result = bayes(epsilon=50).fit(BAYES_ROWS, strange)
    assert result.class_count_[2] < 30
    assert result.class_count_[:2] == pytest.approx([np.sum(LABELS == 0), np.sum(LABELS == 1)], abs=30)
    assert set(result.classes_) == {0, 1, 2}


def test_names_are_classes():
    names = np.array(["red", "green", "blue"])[LABELS]
    result = bayes(classes=["red", "green", "blue"]).fit(BAYES_ROWS, names)
    assert result.classes_.tolist() == ["blue", "green", "red"]
    assert result.score(BAYES_ROWS, names) > 0.9


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("epsilon", [0.01, 1, 100])
def test_what_comes_out_is_always_usable(delta, epsilon):
    """Few records, constant features, more features than records: finite, positive variances, inside the bounds."""
    for rows in (BAYES_ROWS[:3], np.full((40, 2), 10.0), BAYES_RNG.uniform(0, 10, (5, 40))):
        result = bayes(epsilon=epsilon, delta=delta).fit(rows, np.arange(len(rows)) % 3)
        assert np.all((result.theta_ >= 0) & (result.theta_ <= 10))
        assert np.all(np.isfinite(result.var_))
        assert np.all(result.var_ > 0)
        assert result.class_prior_.sum() == pytest.approx(1)
        assert np.all(result.class_count_ >= 1)
        assert np.all(np.isfinite(result.predict_proba(rows)))


def test_the_twin_is_that_of_scikit_learn():
    twin = bayes().non_private().fit(BAYES_ROWS, LABELS)
    assert isinstance(twin.model_, PlainGaussianNB)
    assert twin.score(BAYES_ROWS, LABELS) > 0.93


RNG = np.random.default_rng(3)
CENTERS = np.array([[2.0, 2.0, 5.0], [8.0, 3.0, 5.0], [5.0, 9.0, 5.0]])
ROWS = CENTERS[RNG.integers(0, 3, 3000)] + RNG.normal(0, 0.5, (3000, 3))
IRIS = [(4, 8), (2, 5), (0, 8), (0, 3)]


def kmeans(clusters=3, **changed):
    return KMeans(clusters, **{"epsilon": 1, "bounds": (0, 10), **changed})


def spread(rows, centers):
    """The sum of the squared distances to the nearest center; distances by SciPy."""
    return float((cdist(rows, centers) ** 2).min(axis=1).sum())


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_groups_are_found(delta, neighbors):
    result = kmeans(epsilon=5, delta=delta, neighbors=neighbors).fit(ROWS)
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
    result = kmeans().fit(cube)
    assert spread(cube, result.cluster_centers_) > 0.5 * spread(cube, cube.mean(axis=0)[np.newaxis])


def test_with_noise_only_it_is_one_center():
    """Nine times in ten; of forty, fewer than half do not happen."""
    result = [created for created in (kmeans(epsilon=0.01).fit(ROWS[:50]) for _ in range(40)) if created.n_iter_ == 0]
    assert len(result) >= 20
    assert np.ptp(result[0].cluster_centers_, axis=0) == pytest.approx(np.zeros(3))


@pytest.mark.parametrize("n", [5, 300, 3000])
def test_all_of_the_budget_is_spent(n):
    budget = GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove)
    private_centers(np.clip(ROWS[:n] / 5 - 1, -1, 1), 4, budget)
    assert budget.left == 0


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("epsilon", [0.01, 1, 100])
@pytest.mark.parametrize("clusters", [1, 7])
def test_centers_are_always_usable(delta, epsilon, clusters):
    for rows in (ROWS[:2], np.full((40, 3), 10.0), RNG.uniform(-50, 50, (5, 40))):
        result = kmeans(clusters, epsilon=epsilon, delta=delta).fit(rows)
        assert result.cluster_centers_.shape == (clusters, rows.shape[1])
        assert np.all((result.cluster_centers_ >= 0) & (result.cluster_centers_ <= 10))
        assert np.all(np.isfinite(result.transform(rows)))


@pytest.mark.parametrize(("clusters", "error"), [(0, InvalidArgument), (2.5, WrongType)])
def test_senseless_numbers_of_clusters_are_refused(clusters, error):
    with pytest.raises(error):
        kmeans(clusters).fit(ROWS)


def test_there_are_no_labels_of_the_records():
    result = kmeans()
    assert not hasattr(result.fit(ROWS), "labels_")
    assert result.fit_predict(ROWS).shape == (3000,)


def test_it_is_a_step_of_a_pipeline():
    far = make_pipeline(kmeans(), LinearRegression(bounds=(0, 5), label_bounds=(0, 10))).fit(ROWS, ROWS[:, 0])
    assert far.predict(ROWS).shape == (3000,)
    assert kmeans().fit(ROWS).get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]


def test_the_twin_of_k_means_is_that_of_scikit_learn():
    twin = kmeans().non_private().fit(ROWS)
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
