"""The study of score against epsilon: the same splits for all, the right figures, and said not to be private."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression as PlainLinearRegression
from sklearn.pipeline import make_pipeline

from dither.errors import InvalidArgument
from dither.learn import PCA, Comparison, GaussianNB, KMeans, LinearRegression, Mean, StandardScaler, compare
from support import refuses

RNG = np.random.default_rng(9)
ROWS = RNG.uniform(0, 10, (900, 2))
VALUES = ROWS @ [1.0, 0.5]


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
        LinearRegression(bounds=(0, 10), label_bounds=(0, 15)), ROWS, VALUES, epsilons=(0.01, 50), repeats=5
    )
    assert result.baseline == pytest.approx(np.ones(5))
    assert result.scores[1].min() > 0.9
    assert result.scores[0].mean() < result.scores[1].mean()


def test_the_table_is_that_of_numpy():
    scores = RNG.uniform(size=(2, 6))
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
    labels = (ROWS[:, 0] > 5).astype(int)
    kinds = (
        (GaussianNB(bounds=(0, 10), classes=[0, 1]), labels, None),
        (KMeans(2, bounds=(0, 10)), None, None),
        (PCA(1, bounds=(0, 10)), None, lambda model, X: float(((X - X.mean(0)) @ model.components_.T).var())),
        (Mean(bounds=(0, 10)), None, lambda model, X: -float(np.abs(X.mean(axis=0) - model.mean_).max())),
    )
    for estimator, y, scoring in kinds:
        result = compare(estimator, ROWS, y, epsilons=(1,), repeats=2, scoring=scoring)
        assert result.scores.shape == (1, 2)
        assert np.all(np.isfinite(result.scores))
        assert result.baseline is not None
        assert result.name == type(estimator).__name__


def test_a_pipeline_can_be_studied():
    steps = make_pipeline(StandardScaler(bounds=(0, 10)), LinearRegression(bounds=(-3, 3), label_bounds=(0, 15)))
    result = compare(steps, ROWS, VALUES, epsilons=(1, 9), repeats=2, parameter="linearregression__epsilon")
    assert result.baseline is None
    result = compare(
        steps, ROWS, VALUES, repeats=1, parameter="linearregression__epsilon", baseline=PlainLinearRegression()
    )
    assert result.baseline is not None
    assert result.scores.shape == (4, 1)


def test_scoring_is_that_of_scikit_learn():
    estimator = LinearRegression(bounds=(0, 10), label_bounds=(0, 15))
    wanted = "neg_mean_absolute_error"
    result = compare(estimator, ROWS, VALUES, epsilons=(20,), repeats=2, scoring=wanted, baseline=None)
    assert -2 < result.scores.max() <= 0


@pytest.mark.parametrize("changed", [{"epsilons": ()}, {"epsilons": (math.inf,)}, {"epsilons": (0,)}, {"repeats": 0}])
def test_bad_requests_are_refused(changed):
    with refuses(InvalidArgument):
        compare(Mean(bounds=(0, 10)), ROWS, **changed)


def test_the_estimator_is_left_alone():
    estimator = LinearRegression(bounds=(0, 10), label_bounds=(0, 15))
    compare(estimator, ROWS, VALUES, epsilons=(5,), repeats=1)
    assert estimator.epsilon == 1.0
    assert not hasattr(estimator, "coef_")


def test_without_scikit_learn_it_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None\nimport dither\ntry:\n import dither.learn\n"
    code += "except dither.DitherError as error:\n print(error)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'dither[learn]'" in said
