"""Choosing among models is private and finds good ones; comparing scores says that it is not private."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import dither as dp
from dither.audit import replay
from dither.budget_hooks import charging_to
from dither.errors import InvalidArgument, InvalidData, NotPrivate, WrongType
from dither.learn import (
    PCA,
    Comparison,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    Mean,
    StandardScaler,
    compare,
    inputs,
)
from dither.learn.selection import _STEPS, _scores, _steps, select_model
from dither.randomness import SeededSource
from support import refuses

RNG = np.random.default_rng(2)
ROWS = RNG.uniform(0, 10, (120, 2))
LABELS = (ROWS[:, 0] > 5).astype(int)


class Always:
    """Predicts the same for every row."""

    def __init__(self, label):
        self.label = label

    def predict(self, X):
        return np.array([self.label] * len(X))


class Looks:
    """Predicts the first feature, and fails on rows where the second is above 9."""

    def predict(self, X):
        if np.max(np.asarray(X)[:, 1]) > 9:
            raise RuntimeError("9.7 is too much")
        return np.asarray(X)[:, 0]


def score(model, X, y, together=False):
    """How many records a model predicts."""
    _, rows = inputs.together(X) if together else inputs.records(X)
    [steps] = _scores([model], rows, inputs.shown(list(y)), None, together)
    return steps / _STEPS


def test_the_best_is_chosen_where_it_is_clear():
    tree = DecisionTreeClassifier().fit(RNG.uniform(0, 10, (500, 2)), RNG.integers(0, 2, 500))
    good = DecisionTreeClassifier(max_depth=1).fit([[0.0, 0.0], [10.0, 0.0]], [0, 1])
    choice = select_model([Always(0), tree, good], ROWS, LABELS, epsilon=2, public=True)
    assert choice.index == 2
    assert choice.model is good
    assert choice.guarantee_ == dp.PureDP(2)


@pytest.mark.parametrize(("neighbors", "rate"), [(None, 1.0), (dp.AddRemove, 1.0), (dp.ReplaceOne, 0.5)])
def test_the_law_is_that_of_the_exponential_mechanism(neighbors, rate):
    """2,000 choices between candidates with 3, 2 and 0 records right, against probabilities written down here; a
    mechanism with half or twice the epsilon would fail."""
    rows, labels = np.zeros((5, 1)), np.array(["a", "a", "a", "b", "b"])
    candidates = [Always("a"), Always("b"), Always("c")]
    chosen = [
        select_model(candidates, rows, labels, epsilon=0.8, public=True, neighbors=neighbors).index for _ in range(2000)
    ]
    counts = np.bincount(chosen, minlength=3)

    def p(epsilon):
        weights = np.exp(rate * epsilon * np.array([3, 2, 0]))
        return stats.chisquare(counts, 2000 * weights / weights.sum()).pvalue

    assert p(0.8) > 1e-9
    assert p(0.4) < 1e-9
    assert p(1.6) < 1e-9


@given(
    st.sampled_from(["a", "b", 1, 1.0, None, math.nan, math.inf, -math.inf, [1, 2], b"x", 1e308, -1e308]),
    st.sampled_from(["a", 1, 0.5, math.nan, 1e308, -1e308]),
    st.sampled_from([None, 1e-300, 1.0, 1e300]),
)
def test_a_record_adds_between_nothing_and_one(predicted, label, width):
    added = _steps(predicted, label, width)
    assert isinstance(added, int)
    assert 0 <= added <= _STEPS


def test_nearer_is_better_for_numbers():
    assert [_steps(value, 10.0, 4.0) for value in (10, 11, 12, 14, 15, -1)] == [
        int(_STEPS * Fraction(k, 4)) for k in (4, 3, 2, 0, 0, 0)
    ]
    choice = select_model(
        [Always(3.0), Always(9.0)], np.zeros((50, 1)), np.full(50, 9.5), epsilon=2, within=5, public=True
    )
    assert choice.index == 1


def test_an_error_of_a_candidate_is_a_miss_and_reveals_nothing():
    """A row that a candidate fails on moves its score by that row alone."""
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 9.9]])
    labels = np.array([1.0, 1.0, 1.0])
    assert score(Looks(), rows, labels) == 1
    select_model([Looks(), Always(1.0)], rows, labels, epsilon=1, public=True)


class Batch:
    """Predicts a label by the mean of all rows that it is shown: what one row adds would depend on the others."""

    def predict(self, X):
        return np.full(len(X), int(np.mean(X) > 5))


@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne])
def test_one_record_moves_no_score_by_more_than_one(neighbors):
    candidates = [Always(0), Always(1), Looks(), Batch()]
    more = (np.vstack([ROWS, [1e9, 9.9]]), np.append(LABELS, 0))
    if neighbors is dp.ReplaceOne:
        more = (np.vstack([ROWS[1:], [1e9, 9.9]]), np.append(LABELS[1:], 0))

    def choose(data):
        return select_model(candidates, *data, epsilon=1, public=True, neighbors=neighbors).index

    result = replay(choose, (ROWS, LABELS), more, claim=dp.PureDP(1))
    assert result.passed, str(result)
    assert len(result.releases) == 1


def test_the_replay_sees_a_candidate_that_looks_at_all_rows_together():
    """The broken twin: with together=True such a candidate is the caller's fault, and is seen."""

    def choose(data):
        return select_model([Always(0), Batch()], *data, epsilon=1, public=True, together=True).index

    low = np.full((20, 1), 5.0)
    result = replay(choose, (low, np.ones(20)), (np.vstack([low, [[9.0]]]), np.ones(21)), claim=dp.PureDP(1))
    assert "sensitivity" in str(result)


def test_together_is_the_same_for_candidates_that_look_at_single_rows():
    tree = DecisionTreeClassifier(max_depth=2).fit(ROWS, LABELS)
    assert score(tree, ROWS, LABELS, together=True) == score(tree, ROWS, LABELS) > 60
    with refuses(InvalidData, "one prediction"):
        select_model([DummyClassifierOfOne()], ROWS, LABELS, epsilon=1, public=True, together=True)


class DummyClassifierOfOne:
    def predict(self, X):
        return [0]


def test_data_frames_are_shown_as_such():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    model = DecisionTreeClassifier().fit(frame, [0, 1, 1])
    for together in (False, True):
        assert score(model, frame, [0, 1, 0], together) == 2


def test_candidates_fitted_without_privacy_are_refused():
    fitted = DummyClassifier().fit(ROWS, LABELS)
    with refuses(NotPrivate, "guarantee_"):
        select_model([fitted], ROWS, LABELS, epsilon=1)
    naive = GaussianNB(bounds=(0, 10), classes=[0, 1])
    with refuses(NotPrivate, "guarantee_"):
        select_model([naive.non_private().fit(ROWS, LABELS)], ROWS, LABELS, epsilon=1)
    seeded = GaussianNB(bounds=(0, 10), classes=[0, 1], source=SeededSource(1)).fit(ROWS, LABELS)
    with pytest.raises(NotPrivate, match="guarantee_"):  # a seeded source gives no protection
        select_model([seeded], ROWS, LABELS, epsilon=1)
    half = make_pipeline(StandardScaler(bounds=(0, 10)), DummyClassifier()).fit(ROWS, LABELS)
    with refuses(NotPrivate, "guarantee_"):
        select_model([half], ROWS, LABELS, epsilon=1)


def test_private_estimators_and_pipelines_of_them_are_candidates():
    naive = GaussianNB(bounds=(0, 10), classes=[0, 1])
    logistic = LogisticRegression(bounds=(-3, 3), classes=[0, 1])
    candidates = [naive.fit(ROWS, LABELS), make_pipeline(StandardScaler(bounds=(0, 10)), logistic).fit(ROWS, LABELS)]
    choice = select_model(candidates, ROWS, LABELS, epsilon=1)
    assert choice.model in candidates
    assert choice.model.predict(ROWS).shape == (120,)


def test_the_error_is_that_of_the_theorem():
    """``ln(d / beta) / epsilon`` records when one is added, twice as many when one is replaced."""
    candidates = [Always(0), Always(1), Always(2), Always(3)]
    for neighbors, factor in ((dp.AddRemove, 1), (dp.ReplaceOne, 2)):
        choice = select_model(candidates, ROWS, LABELS, epsilon=0.5, public=True, neighbors=neighbors)
        assert choice.error(0.95) == pytest.approx(factor * math.log(4 / 0.05) / 0.5)


def test_a_ledger_is_charged_once_and_first(tmp_path):
    asked = []

    class Watched(Always):
        def predict(self, X):
            asked.append("predicted")
            return super().predict(X)

    class Keeper:
        def spend(self, what, compute, *, private, recordable=True):
            asked.append(what.guarantee)
            return compute()

    with charging_to(Keeper()):
        select_model([Watched(0), Always(1)], ROWS, LABELS, epsilon=1, public=True)
    assert asked[0] == dp.PureDP(1)
    assert asked.count(dp.PureDP(1)) == 1
    with dp.ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.create("people", limit=dp.PureDP(1))
        result = set()
        for _ in range(5):
            with ledger.scope("people", key="choice"):
                result.add(select_model([Always(0), Always(1)], ROWS, LABELS, epsilon=1, public=True).index)
        assert len(result) == 1
        assert ledger.left("people") is None


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"epsilon": math.inf}, ValueError),
        ({"epsilon": math.nan}, ValueError),
        ({"epsilon": 0}, InvalidArgument),
        ({"candidates": []}, InvalidArgument),
        ({"candidates": [3]}, InvalidArgument),
        ({"within": 0}, InvalidArgument),
        ({"within": math.nan}, ValueError),
        ({"neighbors": "replace"}, WrongType),
        ({"y": LABELS[:5]}, InvalidData),
        ({"y": ROWS}, InvalidData),
        ({"X": 3}, InvalidData),
        ({"y": np.array(["a"] * 120), "within": 1}, InvalidData),
        ({"X": ROWS.tolist(), "together": True}, WrongType),
        ({"X": ROWS.astype(object), "together": True}, InvalidData),
        ({"X": pd.DataFrame(ROWS).astype(object), "together": True}, WrongType),
    ],
)
def test_bad_requests_are_refused(changed, error):
    given = {"candidates": [Always(0)], "X": ROWS, "y": LABELS, "epsilon": 1, "public": True, **changed}
    candidates, X, y = (given.pop(name) for name in ("candidates", "X", "y"))
    with pytest.raises(error):
        select_model(candidates, X, y, **given)


COMPARED_RNG = np.random.default_rng(9)
COMPARED_ROWS = COMPARED_RNG.uniform(0, 10, (900, 2))
VALUES = COMPARED_ROWS @ [1.0, 0.5]


class Notes(ClassifierMixin, BaseEstimator):
    """An estimator that writes down what it was fitted and scored on."""

    seen = []  # noqa: RUF012

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen.append((self.epsilon, "fit", X[:, 0].tolist(), y.tolist()))
        return self

    def score(self, X, y):
        self.seen.append((self.epsilon, "score", X[:, 0].tolist(), y.tolist()))
        return self.epsilon


def test_all_epsilons_have_the_same_splits_and_classes_keep_their_shares():
    Notes.seen.clear()
    X, y = np.arange(50.0)[:, np.newaxis], np.repeat([0, 1], [40, 10])
    result = compare(Notes(), X, y, epsilons=(0.5, 2, 7), repeats=4, baseline=Notes(epsilon=99), test_size=0.2)
    assert result.scores.tolist() == [[0.5] * 4, [2.0] * 4, [7.0] * 4]
    assert result.baseline.tolist() == [99.0] * 4
    by_epsilon = {epsilon: [one[1:] for one in Notes.seen if one[0] == epsilon] for epsilon in (0.5, 2, 7, 99)}
    assert by_epsilon[0.5] == by_epsilon[2] == by_epsilon[7] == by_epsilon[99]
    assert len({tuple(one[1]) for one in by_epsilon[2]}) == 8  # other splits in every repeat
    for what, rows, labels in by_epsilon[2]:
        assert len(rows) == (40 if what == "fit" else 10)
        assert sum(labels) == len(rows) / 5


def test_private_scores_come_near_the_baseline_as_epsilon_grows():
    result = compare(
        LinearRegression(bounds=(0, 10), label_bounds=(0, 15)), COMPARED_ROWS, VALUES, epsilons=(0.01, 50), repeats=5
    )
    assert result.baseline == pytest.approx(np.ones(5))
    assert result.scores[1].min() > 0.9
    assert result.scores[0].mean() < result.scores[1].mean()


def test_the_table_is_that_of_numpy():
    scores = COMPARED_RNG.uniform(size=(2, 6))
    result = Comparison("Ridge", (0.5, 1.0), scores, scores[0] + 1)
    for row, values in zip(result.table, (scores[0], scores[1], scores[0] + 1), strict=True):
        assert row["mean"] == pytest.approx(np.mean(values))
        assert row["std"] == pytest.approx(np.std(values, ddof=1))
        assert (row["lowest"], row["highest"]) == (values.min(), values.max())
    assert [row["epsilon"] for row in result.table] == [0.5, 1.0, None]
    frame = result.to_pandas()
    assert frame["epsilon"].tolist() == [0.5, 1.0, math.inf]
    assert frame["mean"].tolist() == [row["mean"] for row in result.table]


def test_it_says_that_it_is_not_private():
    assert "not private" in str(Comparison("Ridge", (1.0,), np.ones((1, 1)), None))
    assert "Not private" in (compare.__doc__ or "")


def test_the_picture_has_the_curve_the_dots_and_the_baseline():
    scores = np.array([[0.5, 0.7], [0.8, 0.8]])
    axes = Figure().subplots()
    assert Comparison("Ridge", (0.5, 1.0), scores, np.array([0.9, 0.9])).plot(axes) is axes
    curve, baseline = axes.lines
    assert curve.get_xdata().tolist() == [0.5, 1.0]
    assert curve.get_ydata() == pytest.approx([0.6, 0.8])
    assert set(baseline.get_ydata()) == {0.9}
    band, dots = axes.collections
    assert len(dots.get_offsets()) == 4
    assert band.get_paths()[0].vertices[:, 1].min() == pytest.approx(0.6 - np.std([0.5, 0.7], ddof=1))
    alone = Comparison("Ridge", (0.5, 1.0), scores, None).plot()
    assert len(alone.lines) == 1


def test_every_kind_of_estimator_can_be_studied():
    labels = (COMPARED_ROWS[:, 0] > 5).astype(int)
    kinds = (
        (GaussianNB(bounds=(0, 10), classes=[0, 1]), labels, None),
        (KMeans(2, bounds=(0, 10)), None, None),
        (PCA(1, bounds=(0, 10)), None, lambda model, X: float(((X - X.mean(0)) @ model.components_.T).var())),
        (Mean(bounds=(0, 10)), None, lambda model, X: -float(np.abs(X.mean(axis=0) - model.mean_).max())),
    )
    for estimator, y, scoring in kinds:
        result = compare(estimator, COMPARED_ROWS, y, epsilons=(1,), repeats=2, scoring=scoring)
        assert result.scores.shape == (1, 2)
        assert np.all(np.isfinite(result.scores))
        assert result.baseline is not None
        assert result.name == type(estimator).__name__


def test_a_pipeline_can_be_studied():
    steps = make_pipeline(StandardScaler(bounds=(0, 10)), LinearRegression(bounds=(-3, 3), label_bounds=(0, 15)))
    result = compare(steps, COMPARED_ROWS, VALUES, epsilons=(1, 9), repeats=2, parameter="linearregression__epsilon")
    assert result.baseline is None
    result = compare(
        steps, COMPARED_ROWS, VALUES, repeats=1, parameter="linearregression__epsilon", baseline=PlainLinearRegression()
    )
    assert result.baseline is not None
    assert result.scores.shape == (4, 1)


def test_scoring_is_that_of_scikit_learn():
    estimator = LinearRegression(bounds=(0, 10), label_bounds=(0, 15))
    wanted = "neg_mean_absolute_error"
    result = compare(estimator, COMPARED_ROWS, VALUES, epsilons=(20,), repeats=2, scoring=wanted, baseline=None)
    assert -2 < result.scores.max() <= 0


@pytest.mark.parametrize("changed", [{"epsilons": ()}, {"epsilons": (math.inf,)}, {"epsilons": (0,)}, {"repeats": 0}])
def test_bad_comparisons_are_refused(changed):
    with refuses(InvalidArgument):
        compare(Mean(bounds=(0, 10)), COMPARED_ROWS, **changed)


def test_the_estimator_is_left_alone():
    estimator = LinearRegression(bounds=(0, 10), label_bounds=(0, 15))
    compare(estimator, COMPARED_ROWS, VALUES, epsilons=(5,), repeats=1)
    assert estimator.epsilon == 1.0
    assert not hasattr(estimator, "coef_")


def test_without_scikit_learn_it_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None\nimport dither\ntry:\n import dither.learn\n"
    code += "except dither.DitherError as error:\n print(error)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'dither[learn]'" in said
