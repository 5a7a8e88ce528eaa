"""Choosing a model: the right law, the right sensitivity, nothing told by errors, paid once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import dither as dp
from dither.audit import replay
from dither.budget_hooks import charging_to
from dither.errors import InvalidArgument, InvalidData, NotPrivate, WrongType
from dither.learn import GaussianNB, LogisticRegression, StandardScaler, inputs
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
    with pytest.raises(NotPrivate, match="guarantee_"):  # a seeded source protects nobody
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
