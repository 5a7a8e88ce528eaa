"""One record cannot change how another is represented, nor cause an error: every public name that takes records."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeClassifier

import dither as dp
from dither import course, learn
from dither.accounting import Pure
from dither.learn import inputs, selection
from dither.learn.budget import GaussianBudget
from dither.randomness import SeededSource
from support import each, refuses

pytestmark = pytest.mark.filterwarnings("error", "ignore::dither.learn.base.PrivacyWarning")

BOUNDS = (0, 10)
HOSTILE = {"None": None, "NaN": math.nan, "text": "?", "1.5": 1.5, "2**70": 2**70, "True": True, "inf": math.inf}
ROW, COUNT = 3, 14
RNG = np.random.default_rng(3)
X = RNG.integers(0, 11, (COUNT, 2))
Y = (X[:, 0] > 5).astype(int)

ESTIMATORS = {
    "Mean": partial(learn.Mean, bounds=BOUNDS),
    "StandardScaler": partial(learn.StandardScaler, bounds=BOUNDS),
    "PCA": partial(learn.PCA, bounds=BOUNDS),
    "KMeans": partial(learn.KMeans, 2, bounds=BOUNDS),
    "LinearRegression": partial(learn.LinearRegression, bounds=BOUNDS, label_bounds=(0, 1)),
    "Ridge": partial(learn.Ridge, bounds=BOUNDS, label_bounds=(0, 1)),
    "LogisticRegression": partial(learn.LogisticRegression, bounds=BOUNDS, classes=[0, 1]),
    "GaussianNB": partial(learn.GaussianNB, bounds=BOUNDS, classes=[0, 1]),
}
DESCENTS = ("NoisyDescent", "noisy_descent", "TheoremSGD")
NOT_PRIVATE = {
    "NonPrivate", "compare", "gradient_descent", "online_sgd", "offline_sgd", "gradient_variance", "ridge_line",
}  # fmt: skip
NO_RECORDS = {
    "Choice", "Comparison", "Huber", "Logistic", "Loss", "Multinomial", "PrivacyWarning", "Schedule", "SmoothHinge",
    "Squared", "Trace", "descend", "descent_bound", "noise_for", "stochastic_bound", "total_spent",
    "utility_bound",
}  # fmt: skip


def test_every_public_name_is_tried_or_takes_no_private_records():
    assert {*ESTIMATORS, *DESCENTS, "select_model", *NOT_PRIVATE, *NO_RECORDS} == {*learn.__all__, "TheoremSGD"}
    classes = {name for name in learn.__all__ if isinstance(getattr(learn, name), type)}
    assert {n for n in classes if issubclass(getattr(learn, n), BaseEstimator)} == {*ESTIMATORS, "NonPrivate"}


def columns(cells, make):
    return [make([row[j] for row in cells]) for j in range(len(cells[0]))]


def frame(cells, dtype):
    return pd.DataFrame({f"c{j}": [row[j] for row in cells] for j in range(len(cells[0]))}).astype(dtype)


def numeric(cell):
    return cell if isinstance(cell, (int, float)) else None


def inferred(cell):
    """What makes pandas change the type of the whole column: None, a fraction, a large number."""
    return float(cell) if isinstance(cell, bool) or cell == 2**70 else numeric(cell)


def nullable(cell):
    """What a nullable column of whole numbers can hold."""
    small = isinstance(cell, int) and abs(cell) < 2**63
    return int(cell) if small else None


def each_cell(change, cells):
    return [[change(cell) for cell in row] for row in cells]


def in_polars(cells, dtype):
    names = ["a", "b"][: len(cells[0])]
    return pl.DataFrame(columns(cells, lambda column: pl.Series(column, dtype=dtype)), schema=names)


def in_arrow(cells):
    return pa.table(columns(cells, lambda column: pa.array(column, pa.float64())), names=["a", "b"][: len(cells[0])])


def optional_float(cell):
    return None if numeric(cell) is None else float(cell)


# how a table is given, and what becomes of a cell that such a container cannot hold
TABLES = {
    "list": lambda cells: cells,
    "tuples": lambda cells: tuple(map(tuple, cells)),
    "float array": lambda cells: np.array(each_cell(optional_float, cells), dtype=float),
    "object array": lambda cells: np.array(cells, dtype=object),
    "inferred by pandas": lambda cells: pd.DataFrame(each_cell(inferred, cells)),
    "pandas object": lambda cells: frame(cells, object),
    "pandas nullable": lambda cells: frame(each_cell(nullable, cells), "Int64"),
    "pandas categorical": lambda cells: frame(cells, object).astype("category"),
    "polars": lambda cells: in_polars(each_cell(nullable, cells), pl.Int64),
    "polars object": lambda cells: in_polars(cells, pl.Object),
    "arrow": lambda cells: in_arrow(each_cell(optional_float, cells)),
}


def one_column(make):
    def made(labels):
        given = make([[label] for label in labels])
        if isinstance(given, (list, tuple)):
            return [row[0] for row in given]
        if isinstance(given, pd.DataFrame):
            return given.iloc[:, 0]
        if isinstance(given, np.ndarray):
            return given[:, 0]
        return given.to_series(0) if isinstance(given, pl.DataFrame) else given.column(0)

    return made


def neighbors_of(place, bad):
    """The records, and the same with one cell, one label or one row swapped."""
    cells, labels = X.tolist(), Y.tolist()
    other, other_labels = [list(row) for row in cells], list(labels)
    if place == "cell":
        other[ROW][1] = bad
    elif place == "label":
        other_labels[ROW] = bad
    else:
        other[ROW], other_labels[ROW] = [bad, bad], bad
    return (cells, labels), (other, other_labels)


def outcome(action):
    """What an action returns, or the error it refuses with."""
    try:
        return action(), None
    except dp.DitherError as error:
        return None, f"{type(error).__name__}: {error}"


class Sums:
    """Every sum that is released, and noise that is none."""

    def __init__(self, monkeypatch):
        self.seen = []

        def release(budget, parts, share, *, aligned=False):
            budget._left -= Fraction(str(share)) if isinstance(share, float) else share
            budget._events.append(Pure(1))
            if self.first is None:
                self.seen.append(parts)
                return [np.asarray(total, dtype=float) for total, _ in parts]
            before = self.first[len(self.seen)]
            self.seen.append(parts)
            return [np.asarray(total, dtype=float) for total, _ in before]

        self.first = None
        monkeypatch.setattr(GaussianBudget, "release", release)

    def farthest(self):
        """How far one release is from that of the neighbor, in reaches: two records at most, one taken, one added."""
        moves = [0.0]
        for new, old in zip(self.seen, self.first, strict=True):
            for (total, sensitivity), (before, _) in zip(new, old, strict=True):
                change = (np.asarray(total, dtype=float) - np.asarray(before, dtype=float)).ravel()
                moves.append(float(np.linalg.norm(change)) / float(sensitivity))
        return max(moves)


@pytest.mark.parametrize("name", ESTIMATORS)
@each("place", ["cell", "label", "row"])
@each("kind", TABLES)
def test_a_swapped_cell_moves_one_record_and_is_no_error(name, kind, place, monkeypatch):
    """With the noise frozen, sums move by two contributions at most, and what is refused is refused for all cells."""
    for bad in HOSTILE.values() if kind in ("list", "inferred by pandas") else (None, 1.5, 2**70):
        refused = []
        sums = Sums(monkeypatch)
        for cells, labels in neighbors_of(place, bad):
            given = TABLES[kind](cells), one_column(TABLES[kind])(labels)
            model, error = outcome(lambda given=given: ESTIMATORS[name](epsilon=0.1).fit(*given))
            refused.append(error)
            predict = getattr(model, "predict", getattr(model, "transform", None))
            assert predict is None or np.isfinite(predict(given[0])).all()
            if sums.first is None:
                sums.first, sums.seen = sums.seen, []
        assert refused[0] == refused[1]
        assert (refused[0] is not None) == ("object" in kind or "categorical" in kind)
        if refused[0] is None:
            assert len(sums.seen) > 0
            assert sums.farthest() <= 2


def test_the_sums_see_a_column_whose_type_one_record_changes(monkeypatch):
    """The broken twin reads labels as NumPy does: one text makes text of all, and none is of its class then."""
    monkeypatch.setattr(
        inputs, "codes", lambda y, classes: np.where(np.asarray(y)[:, np.newaxis] == classes, 1, 0)[:, 1]
    )
    sums = Sums(monkeypatch)
    for cells, labels in neighbors_of("label", "?"):
        learn.GaussianNB(bounds=BOUNDS, classes=[0, 1]).fit(cells, labels)
        if sums.first is None:
            sums.first, sums.seen = sums.seen, []
    assert sums.farthest() > 2


@each("place", ["cell", "label", "row"])
@each("kind", TABLES)
@each("name", DESCENTS)
def test_a_swapped_cell_has_no_gradient_at_most(name, kind, place):
    """With the seed of the noise the same, the trace of the swapped records is that of records without it."""

    def run(cells, labels):
        given = TABLES[kind](cells), one_column(TABLES[kind])(labels)
        if name == "TheoremSGD":
            return course.TheoremSGD(epsilon=1, steps=5, clip=1.0).run(
                learn.Squared(), *given, np.zeros(2), source=SeededSource(1)
            )
        return learn.noisy_descent(
            learn.Squared(),
            *given,
            start=np.zeros(2),
            steps=5,
            clip=1.0,
            step=0.1,
            noise_multiplier=1,
            size=14,
            source=SeededSource(1),
        ).last

    for bad in HOSTILE.values():
        (cells, labels), swapped = neighbors_of(place, bad)
        (plain, error), (other, refused) = (
            outcome(lambda c=cells, t=labels: run(c, t)),
            outcome(lambda s=swapped: run(*s)),
        )
        assert error == refused
        assert (error is not None) == ("object" in kind or "categorical" in kind)
        if error is None and name != "TheoremSGD" and bad in (None, "?"):
            left = [c if i != ROW else [0, 0] for i, c in enumerate(cells)]
            assert np.array_equal(other, run(left, [t if i != ROW else 0 for i, t in enumerate(labels)]))
            assert np.isfinite(plain).all()


class Picky:
    """Predicts 1 for whole numbers, by the type that it is shown."""

    def predict(self, rows):
        values = np.asarray(rows)
        return [int(all(isinstance(one, (int, np.integer)) for one in row)) for row in values.tolist()]


@each("place", ["cell", "label", "row"])
@each("kind", TABLES)
def test_a_swapped_cell_moves_no_score_of_another_record(kind, place, monkeypatch):
    scores = []
    monkeypatch.setattr(selection.Exponential, "select_index", lambda _, result, **__: scores.append(result) or 0)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X.astype(float), Y)

    def choose(cells, labels, models, together):
        given = TABLES[kind](cells), one_column(TABLES[kind])(labels)
        learn.select_model(models, *given, epsilon=1, public=True, together=together)

    for bad in HOSTILE.values() if kind in ("list", "inferred by pandas") else (None, 1.5, 2**70):
        for together, models in ((False, [tree, Picky()]), (True, [Picky()])):
            scores.clear()
            errors = [outcome(partial(choose, *data, models, together))[1] for data in neighbors_of(place, bad)]
            assert errors[0] == errors[1]
            if errors[0] is None:
                assert all(abs(new - old) <= 1 << 20 for old, new in zip(*scores, strict=True))


@each("neighbors", [dp.AddRemove, dp.ReplaceOne])
@each("name", ESTIMATORS)
def test_no_row_and_one_row_are_fitted_alike(name, neighbors):
    for count in (0, 1, 2):
        model = ESTIMATORS[name]().set_params(neighbors=neighbors).fit(X[:count], Y[:count])
        assert model.n_features_in_ == 2
    pairs = ESTIMATORS[name]().set_params(bounds=[BOUNDS, BOUNDS])
    assert pairs.fit([], []).n_features_in_ == 2


@pytest.mark.parametrize("name", ["NoisyDescent", "noisy_descent"])
def test_a_descent_runs_without_rows(name):
    given = {"steps": 3, "step": 0.1, "clip": 1.0, "noise_multiplier": 1, "size": 3}
    for loss, start in ((learn.Squared(), np.zeros(2)), (learn.Multinomial(), np.zeros((2, 3)))):
        for sampling in (
            {},
            {"sampling_rate": 0.5, "delta": 1e-5},
            {"sampling_rate": 0.5, "sampling": "once", "delta": 1e-5},
        ):
            for count in (0, 1):
                rows, targets = np.ones((count, 2)), np.ones((count, *start.shape[1:]))
                if name == "NoisyDescent":
                    result = learn.NoisyDescent(**given, **sampling).run(loss, rows, targets, start)
                else:
                    result = learn.noisy_descent(loss, rows, targets, start=start, **given, **sampling)
                assert result.iterates.shape == (4, *start.shape)


NUMBER = 1234577
SHORT = NUMBER % 1000


@pytest.mark.parametrize("name", [*ESTIMATORS, "select_model", *DESCENTS])
def test_no_message_holds_the_number_of_rows_or_a_value(name):
    """Wrong lengths, shapes and types of data that all hold one number, in as many rows."""
    rows, labels = np.full((SHORT, 2), float(NUMBER)), np.full(SHORT, NUMBER)
    cases = [
        (rows, labels[1:]), (rows[1:], labels), (rows[:, 0], labels), (rows, np.column_stack([labels, labels])),
        (rows + 1j, labels), (rows, labels + 1j), (rows.astype(str), labels), (rows.astype(object), labels),
        (rows[:, :0], labels), (rows, None), (rows.tolist(), labels[1:].tolist()), (rows[:, 0].tolist(), labels),
        (rows, labels.astype("datetime64[s]")),
    ]  # fmt: skip
    said = []
    for given in cases:
        _, error = outcome(partial(used, name, *given))
        said.append(error)
        for secret in (str(NUMBER), str(SHORT), str(SHORT - 1), f"{NUMBER:g}"):
            assert secret not in (error or "")
    assert sum(error is not None for error in said) >= 6


def used(name, X, y):
    """Records given to a public name."""
    if name == "select_model":
        return learn.select_model([Picky()], X, y, epsilon=1, public=True)
    if name == "TheoremSGD":
        return course.TheoremSGD(epsilon=1, steps=2, clip=1.0).run(learn.Squared(), X, y, np.zeros(2))
    given = {"steps": 1, "clip": 1.0, "step": 0.1, "noise_multiplier": 1, "size": 14}
    if name == "NoisyDescent":
        return learn.NoisyDescent(**given).run(learn.Squared(), X, y, np.zeros(2))
    if name == "noisy_descent":
        return learn.noisy_descent(learn.Squared(), X, y, start=np.zeros(2), **given)
    model = ESTIMATORS[name]()
    return model.set_params(**{"classes": "observed"} if hasattr(model, "classes") else {}).fit(X, y)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_other_columns_than_those_of_the_fit_are_refused_without_the_number_of_rows(name):
    model = ESTIMATORS[name]().fit(X, Y)
    with refuses(dp.InvalidArgument, "3 features") as caught:
        model._new_rows(np.ones((SHORT, 3)))
    assert str(SHORT) not in str(caught.value)


def test_classes_beyond_the_floats_are_refused():
    """One missing label makes floats of a column of integers, in which 2^53 and 2^53 + 1 are one."""
    with refuses(dp.InvalidArgument, "classes"):
        learn.GaussianNB(bounds=BOUNDS, classes=[2**53, 2**53 + 1]).fit(X, Y)


def test_labels_of_text_and_categories_are_found_by_value():
    labels = np.where(Y == 1, "yes", "no")
    for given in (
        labels,
        labels.tolist(),
        pd.Series(labels),
        pd.Series(labels).astype("category"),
        pl.Series(labels.tolist()),
        pl.Series(labels.tolist(), dtype=pl.Categorical),
        pa.array(labels.tolist()),
        labels.astype(object),
    ):
        assert inputs.codes(given, np.array(["no", "yes"])).tolist() == Y.tolist()
    for given in (
        Y,
        Y.astype(float),
        Y.astype(bool),
        Y.tolist(),
        pd.Series(Y).astype("Int64"),
        pl.Series(Y.tolist()),
        Y[:, np.newaxis].tolist(),
    ):
        assert inputs.codes(given, np.array([0, 1])).tolist() == Y.tolist()
        assert inputs.observed(given).tolist() == [0, 1]
