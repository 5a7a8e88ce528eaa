"""The auditor on every estimator: nothing goes round the noise, no sum moves too far, no claim is refuted.

The last tests are of faults that were found in other libraries' estimators: one LinearRegression releases a diagonal
without noise, a LogisticRegression has a true epsilon of 3.26 for a claimed 1 at a norm of 100, a GaussianNB of at
least 5.75, a KMeans of 2.28 epsilon.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither import learn
from dither.audit import measure, replay
from dither.learn import base, budget, transformers
from support import each

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(11)
ROWS = RNG.uniform(0, 10, size=(400, 3))
LABELS = (ROWS[:, 0] > ROWS[:, 1]).astype(int)
VALUES = ROWS @ [1.0, -1.0, 0.5] + 5
BOUNDS = (0, 10)

# a record inside the bounds, on a corner, on the other, and far outside
RECORDS = {
    "inside": (np.array([3.0, 7.0, 1.0]), 0, 4.0),
    "corner": (np.array([0.0, 10.0, 10.0]), 1, 0.0),
    "opposite": (np.array([10.0, 0.0, 0.0]), 0, 20.0),
    "far": (np.array([1e12, -1e12, 1e300]), 7, -1e9),
}
ESTIMATORS = {
    "Mean": lambda **given: learn.Mean(bounds=BOUNDS, **given),
    "pure Mean": lambda **given: learn.Mean(delta=None, bounds=BOUNDS, **given),
    "LinearRegression": lambda **given: learn.LinearRegression(bounds=BOUNDS, label_bounds=(0, 20), **given),
    "Ridge": lambda **given: learn.Ridge(bounds=BOUNDS, label_bounds=(0, 20), **given),
    "LogisticRegression": lambda **given: learn.LogisticRegression(bounds=BOUNDS, classes=[0, 1], **given),
    "multinomial": lambda **given: learn.LogisticRegression(bounds=BOUNDS, classes=[0, 1, 2], **given),
    "GaussianNB": lambda **given: learn.GaussianNB(bounds=BOUNDS, classes=[0, 1], **given),
    "pure GaussianNB": lambda **given: learn.GaussianNB(delta=None, bounds=BOUNDS, classes=[0, 1], **given),
    "KMeans": lambda **given: learn.KMeans(3, bounds=BOUNDS, **given),
    "pure KMeans": lambda **given: learn.KMeans(3, delta=None, bounds=BOUNDS, **given),
    "PCA": lambda **given: learn.PCA(2, bounds=BOUNDS, **given),
    "StandardScaler": lambda **given: learn.StandardScaler(bounds=BOUNDS, **given),
    "pure StandardScaler": lambda **given: learn.StandardScaler(delta=None, bounds=BOUNDS, **given),
}
TRIALS = 60
REGRESSORS = ("LinearRegression", "Ridge")


def published(model):
    """All that a fit leaves behind."""
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}


def fitting(name, **given):
    def fit(data):
        rows, labels, values = data
        try:
            return published(ESTIMATORS[name](**given).fit(rows, values if name in REGRESSORS else labels))
        except Exception as error:  # a replay takes an error for an outcome, and both runs may have the same
            raise Broken from error

    return fit


class Broken(BaseException):
    """A fit that should have gone through."""


def with_record(record):
    row, label, value = RECORDS[record]
    return np.vstack([ROWS, row]), np.append(LABELS, label), np.append(VALUES, value)


def changed(record):
    row, label, value = RECORDS[record]
    data = ROWS.copy(), LABELS.copy(), VALUES.copy()
    data[0][0], data[1][0], data[2][0] = row, label, value
    return data


@each("epsilon", [1, 20])
@each("record", RECORDS)
@each("name", ESTIMATORS)
def test_one_record_more_moves_the_sums_and_nothing_else(name, record, epsilon):
    claim = ESTIMATORS[name](epsilon=epsilon).guarantee
    result = replay(fitting(name, epsilon=epsilon), (ROWS, LABELS, VALUES), with_record(record), claim=claim)
    assert result.passed, str(result)
    assert result.releases


@each("epsilon", [1, 20])
@each("record", RECORDS)
@each("name", ESTIMATORS)
def test_one_record_changed_moves_the_sums_and_nothing_else(name, record, epsilon):
    given = {"epsilon": epsilon, "neighbors": dp.ReplaceOne}
    claim = ESTIMATORS[name](**given).guarantee
    result = replay(fitting(name, **given), (ROWS, LABELS, VALUES), changed(record), claim=claim)
    assert result.passed, str(result)
    assert result.releases


@pytest.mark.parametrize("epsilon", [0.5, 1.25, 20], ids=["margins", "calibrated", "likelihood"])
@pytest.mark.parametrize("record", RECORDS)
def test_one_record_more_moves_the_sums_on_each_way_of_logistic_regression(record, epsilon):
    fit = fitting("LogisticRegression", epsilon=epsilon)
    result = replay(fit, (ROWS, LABELS, VALUES), with_record(record), claim=dp.ApproxDP(epsilon, 1e-5))
    assert result.passed, str(result)


def unclipped(rows, norm, bits, *_):
    """Rows in steps as :func:`dither.learn.budget.quantized` makes them, however long they are."""
    top = budget.steps_to_one(rows.shape[1], norm, bits)
    return np.trunc(rows * top), top


@pytest.mark.parametrize("name", ["Mean", "GaussianNB", "KMeans", "PCA"])
def test_a_twin_that_does_not_clip_is_caught(name, monkeypatch):
    monkeypatch.setattr(base, "clip", lambda rows, _: rows)
    monkeypatch.setattr(budget, "quantized", unclipped)
    far = np.vstack([ROWS, [60.0, -60.0, 60.0]]), np.append(LABELS, 1), np.append(VALUES, 1.0)
    result = replay(
        fitting(name, epsilon=20), (ROWS, LABELS, VALUES), far, claim=ESTIMATORS[name](epsilon=20).guarantee
    )
    assert not result.passed
    assert "sensitivity" in str(result) or "lose more" in str(result)


@pytest.mark.parametrize(("name", "kept"), [("GaussianNB", "theta_"), ("KMeans", "cluster_centers_")])
def test_a_twin_that_keeps_something_of_the_data_is_caught(name, kept):
    def fit(data):
        return {**fitting(name)(data), kept: data[0].mean(axis=0)}

    result = replay(fit, (ROWS, LABELS, VALUES), with_record("inside"))
    assert "result differs" in str(result)


@pytest.mark.parametrize("name", ["pure Mean", "pure StandardScaler", "GaussianNB", "LogisticRegression"])
def test_a_twin_that_spends_its_budget_on_every_release_is_caught(name, monkeypatch):
    noisy = budget.GaussianBudget._noisy
    monkeypatch.setattr(
        budget.GaussianBudget,
        "_noisy",
        lambda self, total, sensitivity, _: noisy(self, total, sensitivity, Fraction(1)),
    )
    claim = ESTIMATORS[name]().guarantee
    result = replay(fitting(name), (ROWS, LABELS, VALUES), with_record("corner"), claim=claim)
    assert "lose more" in str(result)


@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if name in (*REGRESSORS, "LogisticRegression", "GaussianNB")]
)
def test_rows_and_labels_of_different_numbers_are_refused(name):
    with pytest.raises(ValueError, match="as many labels as rows"):
        ESTIMATORS[name]().fit(ROWS, np.zeros(399))


@pytest.mark.parametrize(
    "name", ["Mean", "LinearRegression", "LogisticRegression", "GaussianNB", "KMeans", "PCA", "StandardScaler"]
)
def test_the_measured_epsilon_is_below_the_claim(name):
    """A dozen records at one corner, and one at the other or not; a small delta, so that a claim could be refuted."""
    rows, labels, values = np.zeros((12, 1)), np.arange(12) % 2, np.zeros(12)
    more = np.vstack([rows, [[10.0]]]), np.append(labels, 1), np.append(values, 20.0)

    def fit(data):
        model = ESTIMATORS[name](epsilon=0.5) if name != "PCA" else learn.PCA(1, epsilon=0.5, bounds=BOUNDS)
        model.fit(data[0], data[2] if name in REGRESSORS else data[1])
        kept = {
            key: value for key, value in published(model).items() if key not in ("classes_", "event_", "guarantee_")
        }
        return np.concatenate([np.ravel(kept[key]) for key in sorted(kept) if not isinstance(kept[key], str)])

    result = measure(
        fit, (rows, labels, values), more, trials=TRIALS, claim=dp.ApproxDP(0.5, 1e-5), confidence=1 - 1e-9
    )
    assert not result.refuted


def test_the_measure_refutes_a_fit_with_too_little_noise():
    """A budget of a hundred, claimed to be a half: what the test above looks for is there to be seen."""
    rows = np.full((12, 1), 1.0)

    def fit(rows):
        return learn.Mean(epsilon=100, bounds=BOUNDS).fit(rows).mean_

    result = measure(fit, rows, np.vstack([rows, [[10.0]]]), trials=500, claim=dp.ApproxDP(0.5, 1e-5))
    assert result.refuted


def test_linear_regression_releases_nothing_without_noise():
    """Two fits to the same data agree in nothing."""
    rows = np.repeat(ROWS, 20, axis=0)
    one, other = (published(ESTIMATORS["LinearRegression"](epsilon=5).fit(rows, rows[:, 0])) for _ in range(2))
    assert one["method_"] == "newton"  # the way by a Gram matrix, which has the diagonal
    assert np.all(one["coef_"] != other["coef_"])
    assert one["intercept_"] != other["intercept_"]


def test_every_entry_of_a_gram_matrix_has_noise():
    budgets = [budget.GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove) for _ in range(2)]
    one, other = (budget.noisy_gram(ROWS, 2.0, paid, 1) for paid in budgets)
    assert np.all(one != other)
    assert all(paid.left == 0 for paid in budgets)


def test_a_diagonal_without_noise_would_be_seen(monkeypatch):
    """The broken twin: the diagonal goes out as it is, and the replay says that the result differs."""

    def leaky(rows, norm, paid, share):
        result = budget.noisy_gram(rows, norm, paid, share)
        np.fill_diagonal(result, (rows * rows).sum(axis=0))
        return result

    monkeypatch.setattr(transformers, "noisy_gram", leaky)
    result = replay(fitting("PCA"), (ROWS, LABELS, VALUES), (ROWS[1:], LABELS[1:], VALUES[1:]))
    assert "result differs" in str(result)


@pytest.mark.parametrize(
    ("name", "kept", "epsilon"),
    [
        ("GaussianNB", "theta_", 1),
        ("KMeans", "cluster_centers_", 1),
        ("Mean", "mean_", 1),
        ("GaussianNB", "theta_", 200),
    ],
)
def test_the_pair_that_broke_other_libraries_is_distinguished_only_without_noise(name, kept, epsilon):
    """One record far out, there or not, among a few: 250 fits a side refute epsilon = 1 of a fit with 200 alone."""
    rows, labels = np.zeros((10, 1)), np.arange(10) % 2
    more = np.vstack([rows, [[500.0]]]), np.append(labels, 1)

    def fit(data):
        return np.ravel(getattr(ESTIMATORS[name](epsilon=epsilon).fit(*data), kept))

    result = measure(fit, (rows, labels), more, trials=250, claim=dp.ApproxDP(1, 1e-5), confidence=1 - 1e-9)
    assert result.refuted is (epsilon == 200)
