"""Private naive Bayes: it learns, it keeps to its budget, it refuses what it must and shrugs off the rest."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB as PlainGaussianNB
from sklearn.utils.estimator_checks import check_estimator

import dither as dp
from dither.accounting import best_of
from dither.budget_hooks import charging_to
from dither.errors import DitherError, InvalidArgument, InvalidData, NotPrivate, WrongType
from dither.learn.budget import GaussianBudget
from dither.learn.naive_bayes import GaussianNB, moments
from dither.randomness import SeededSource
from learn.conformance import failed
from learn.keeper import charged
from support import refuses

pytestmark = pytest.mark.filterwarnings("ignore::dither.learn.spent.PrivacyWarning")  # fitted again and again

RNG = np.random.default_rng(7)
LABELS = RNG.integers(0, 3, 6000)
ROWS = RNG.normal(np.array([[2.0, 5.0], [5.0, 5.0], [8.0, 2.0]])[LABELS], [[0.8, 1.2]])


def model(**changed):
    return GaussianNB(**{"epsilon": 1, "bounds": (0, 10), "classes": [0, 1, 2], **changed})


def test_scikit_learn_accepts_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that are skipped warn
        result = check_estimator(
            model(epsilon=5, bounds=(-20, 20), classes="observed", source=SeededSource(1)), on_fail=None
        )
    assert failed(result) == []


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_with_many_records_it_is_that_of_scikit_learn(delta, neighbors):
    """At epsilon = 1000 there is hardly any noise left: means and counts agree, clipped variances nearly."""
    ours = model(epsilon=1000, delta=delta, neighbors=neighbors).fit(ROWS, LABELS)
    theirs = PlainGaussianNB().fit(np.clip(ROWS, 0, 10), LABELS)
    assert ours.class_count_ == pytest.approx(theirs.class_count_, abs=2)
    assert ours.class_prior_ == pytest.approx(theirs.class_prior_, abs=1e-3)
    assert ours.theta_ == pytest.approx(theirs.theta_, abs=0.02)
    assert ours.var_ == pytest.approx(theirs.var_, rel=0.1)
    assert np.mean(ours.predict(ROWS) == theirs.predict(ROWS)) > 0.99


def test_predictions_are_those_of_the_model_that_it_states():
    """Densities from SciPy."""
    result = model().fit(ROWS, LABELS)
    inside = np.clip(ROWS[:50], 0, 10)
    logs = [
        math.log(prior) + stats.norm.logpdf(inside, mean, np.sqrt(var)).sum(axis=1)
        for prior, mean, var in zip(result.class_prior_, result.theta_, result.var_, strict=True)
    ]
    joint = np.exp(np.column_stack(logs))
    expected = joint / joint.sum(axis=1, keepdims=True)
    assert result.predict_proba(ROWS[:50]) == pytest.approx(expected, abs=1e-9)
    assert np.exp(result.predict_log_proba(ROWS[:50])) == pytest.approx(expected, abs=1e-9)
    assert np.array_equal(result.predict(ROWS[:50]), expected.argmax(axis=1))


@pytest.mark.parametrize("delta", [1e-5, None])
def test_classes_are_separated(delta):
    assert model(delta=delta).fit(ROWS, LABELS).score(ROWS, LABELS) > 0.9  # some 0.95


def test_without_signal_there_is_nothing_to_learn():
    """The broken twin of the test above: with shuffled labels all classes look alike."""
    assert np.ptp(model().fit(ROWS, LABELS).theta_[:, 0]) > 4  # 6
    assert np.ptp(model().fit(ROWS, RNG.permutation(LABELS)).theta_[:, 0]) < 1  # some 0.1


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
        result = model(bounds=[(0, float(top)) for top in tops], classes=list(range(int(y.max()) + 1)))
        scores.append(result.fit(train, seen).score(test, hidden))
    assert np.mean(scores) > least


@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne, None])
@pytest.mark.parametrize("n", [4, 300, 6000])
def test_the_noise_that_was_added_keeps_to_the_guarantee(neighbors, n):
    result = model(epsilon=0.7, neighbors=neighbors).fit(ROWS[:n], LABELS[:n])
    assert result.guarantee_ == dp.ApproxDP(0.7, 1e-5)
    spent = best_of(result.event_, 1e-5).guarantee.epsilon
    assert 0.699 < spent <= 0.7


def test_a_pure_fit_spends_exactly_epsilon():
    result = model(epsilon=0.7, delta=None).fit(ROWS, LABELS)
    assert result.guarantee_ == dp.PureDP(0.7)
    assert result.event_.guarantee == dp.PureDP(0.7)


def test_all_of_the_budget_is_spent_and_no_more():
    budget = GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove)
    moments(np.zeros((50, 2)), np.zeros(50, dtype=np.int64), 2, budget)
    assert budget.left == 0
    with refuses(NotPrivate):
        budget.release([(np.zeros(1, dtype=np.int64), 1)], 1e-9)


def test_a_ledger_is_charged_once():
    assert charged(lambda: model().fit(ROWS, LABELS)) == [(dp.ApproxDP(1, 1e-5), True)]


def test_a_ledger_gives_the_same_fit_again(tmp_path):
    with dp.ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create("people", limit=dp.ApproxDP(1.5, 1e-4))
        fits = []
        for _ in range(2):
            with ledger.scope("people", key="first"):
                fits.append(model().fit(ROWS, LABELS))
        with ledger.scope("people"), pytest.raises(dp.BudgetExceeded):
            model().fit(ROWS, LABELS)
    assert np.array_equal(fits[0].theta_, fits[1].theta_)
    assert np.array_equal(fits[0].var_, fits[1].var_)
    assert np.array_equal(fits[0].predict(ROWS), fits[1].predict(ROWS))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"epsilon": math.inf}, ValueError),
        ({"epsilon": math.nan}, ValueError),
        ({"epsilon": 0}, InvalidArgument),
        ({"delta": 0}, InvalidArgument),
        ({"delta": 1}, InvalidArgument),
        ({"bounds": None}, InvalidArgument),
        ({"bounds": (1, 0)}, InvalidArgument),
        ({"bounds": [(0, 1)]}, InvalidArgument),
        ({"classes": None}, InvalidArgument),
        ({"classes": [1]}, InvalidArgument),
        ({"classes": [1, 1]}, InvalidArgument),
        ({"classes": "01"}, WrongType),
        ({"classes": 3}, WrongType),
        ({"neighbors": "replace"}, WrongType),
    ],
)
def test_parameters_are_refused(changed, error):
    with pytest.raises(error) as refused:
        model(**changed).fit(ROWS, LABELS)
    assert isinstance(refused.value, DitherError)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (ROWS[:5], np.zeros(4)),
        (ROWS[:5], np.zeros((5, 2))),
        (ROWS[:5], np.full(5, 1j)),
        (ROWS[:5], None),
        (np.array([["secret", "b"]] * 5), np.zeros(5)),
    ],
)
def test_data_are_refused_before_anything_is_charged(X, y):
    class Keeper:
        def spend(self, what, compute, *, private, recordable=True):
            raise AssertionError("charged")

    with charging_to(Keeper()), pytest.raises(ValueError) as refused:
        model().fit(X, y)
    assert "secret" not in str(refused.value)


def test_sparse_rows_and_weights_are_refused():
    with pytest.raises(TypeError, match="parse"):
        model().fit(sparse.csr_matrix(ROWS), LABELS)
    with pytest.raises(TypeError):
        model().fit(ROWS, LABELS, np.ones(6000))


def test_one_class_only_is_no_error_if_classes_are_public():
    result = model().fit(ROWS, np.zeros(6000, dtype=int))
    assert result.class_prior_[0] > 0.9
    with refuses(InvalidData, "class"):
        model(classes="observed").fit(ROWS, np.zeros(6000))


def test_labels_that_are_no_class_add_nothing():
    """The counts do not see them."""
    strange = np.where(LABELS == 2, 99, LABELS)
    result = model(epsilon=50).fit(ROWS, strange)
    assert result.class_count_[2] < 30
    assert result.class_count_[:2] == pytest.approx([np.sum(LABELS == 0), np.sum(LABELS == 1)], abs=30)
    assert set(result.classes_) == {0, 1, 2}


def test_names_are_classes():
    names = np.array(["red", "green", "blue"])[LABELS]
    result = model(classes=["red", "green", "blue"]).fit(ROWS, names)
    assert result.classes_.tolist() == ["blue", "green", "red"]
    assert result.score(ROWS, names) > 0.9


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("epsilon", [0.01, 1, 100])
def test_what_comes_out_is_always_usable(delta, epsilon):
    """Few records, constant features, more features than records: finite, positive variances, inside the bounds."""
    for rows in (ROWS[:3], np.full((40, 2), 10.0), RNG.uniform(0, 10, (5, 40))):
        result = model(epsilon=epsilon, delta=delta).fit(rows, np.arange(len(rows)) % 3)
        assert np.all((result.theta_ >= 0) & (result.theta_ <= 10))
        assert np.all(np.isfinite(result.var_))
        assert np.all(result.var_ > 0)
        assert result.class_prior_.sum() == pytest.approx(1)
        assert np.all(result.class_count_ >= 1)
        assert np.all(np.isfinite(result.predict_proba(rows)))


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        model().predict(ROWS)


def test_the_twin_is_that_of_scikit_learn():
    twin = model().non_private().fit(ROWS, LABELS)
    assert isinstance(twin.model_, PlainGaussianNB)
    assert twin.score(ROWS, LABELS) > 0.93
