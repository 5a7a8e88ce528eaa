"""Attacks on the estimators: hostile records beside others, at every place; what a fit shows besides its noise."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither import course, learn
from dither.exact import exactly
from dither.learn import selection
from dither.learn.budget import GaussianBudget, noisy_ceiling
from dither.learn.descent import NoisyDescent
from support import each, refuses

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(5)
BOUNDS = (0, 10)
HOSTILE = np.array([0.0, -0.0, 10.0, np.nextafter(10, 11), 5e-324, -1e-300, 1e100, 1e308, -1e308, 1 / 3, 10 / 3])
ESTIMATORS = {
    "Mean": lambda **given: learn.Mean(bounds=BOUNDS, **given),
    "LinearRegression": lambda **given: learn.LinearRegression(bounds=BOUNDS, label_bounds=BOUNDS, **given),
    "LogisticRegression": lambda **given: learn.LogisticRegression(bounds=BOUNDS, classes=[0, 1], **given),
    "multinomial": lambda **given: learn.LogisticRegression(bounds=BOUNDS, classes=[0, 1, 2], **given),
    "GaussianNB": lambda **given: learn.GaussianNB(bounds=BOUNDS, classes=[0, 1, 2], **given),
    "KMeans": lambda **given: learn.KMeans(3, bounds=BOUNDS, **given),
    "PCA": lambda **given: learn.PCA(bounds=BOUNDS, **given),
    "StandardScaler": lambda **given: learn.StandardScaler(bounds=BOUNDS, **given),
}
PURE = ("Mean", "GaussianNB", "KMeans", "StandardScaler")
CLASSIFIERS = (learn.LogisticRegression, learn.GaussianNB)


class Tape:
    """The releases of one fit, given again to a fit of its neighbor; ``moved`` is the farthest that the parts of one
    release differ, in units of their sensitivities, squared under l2."""

    def __init__(self, monkeypatch):
        self.calls, self.place, self.moved = [], None, Fraction(0)
        release = GaussianBudget.release

        def taped(budget, parts, share, *, aligned=False):
            if self.place is None:
                result = release(budget, parts, share, aligned=aligned)
                self.calls.append((parts, share, aligned, result))
                return result
            before, *asked, result = self.calls[self.place]
            self.place += 1
            assert asked == [share, aligned]
            assert [sensitivity for _, sensitivity in parts] == [sensitivity for _, sensitivity in before]
            release(budget, parts, share, aligned=aligned)
            self.moved = max(self.moved, self.distance(budget, parts, before, aligned))
            return result

        monkeypatch.setattr(GaussianBudget, "release", taped)

    @staticmethod
    def distance(budget, parts, before, aligned):
        total = Fraction(0)
        for (new, sensitivity), (old, _) in zip(parts, before, strict=True):
            change = [abs(int(one) - int(other)) for one, other in zip(new.ravel(), old.ravel(), strict=True)]
            far = exactly(sensitivity) * budget._relation_factor(aligned)
            total += sum(change) / far if budget.pure else sum(one * one for one in change) / far**2
        return total

    def of(self, make, data, neighbor):
        make().fit(*data)
        self.place = 0
        make().fit(*neighbor)
        assert self.place == len(self.calls)
        return self.moved


def hostile(count, columns):
    rows = RNG.uniform(0, 10, (count, columns))
    return np.where(RNG.random(rows.shape) < 0.4, RNG.choice(HOSTILE, rows.shape), rows)


def records(name, count, columns):
    rows = hostile(count, columns)
    return rows, hostile(count, 1)[:, 0] if name == "LinearRegression" else RNG.integers(0, 4, count)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("count", "columns"), [(1, 2), (7, 5), (400, 13), (8192, 2)])
@each("neighbors", [dp.AddRemove, dp.ReplaceOne])
@each("epsilon", [1, 100])
@each(("name", "delta"), [(name, 1e-5) for name in ESTIMATORS] + [(name, None) for name in PURE])
def test_a_record_at_any_place_moves_only_its_own_part(name, delta, count, columns, epsilon, neighbors, monkeypatch):
    rows, labels = records(name, count + 1, columns)
    place = int(RNG.integers(count + 1))
    if neighbors is dp.AddRemove:
        other = np.delete(rows, place, axis=0), np.delete(labels, place)
    else:
        other = rows.copy(), labels.copy()
        other[0][place], other[1][place] = hostile(1, columns)[0], 1
    moved = Tape(monkeypatch).of(
        lambda: ESTIMATORS[name](epsilon=epsilon, delta=delta, neighbors=neighbors), (rows, labels), other
    )
    assert moved <= 1


def test_the_tape_sees_rows_that_are_not_by_themselves(monkeypatch):
    """The twin takes the largest row away before they are summed."""
    from dither.learn import linear

    monkeypatch.setattr(linear, "centered", lambda rows, _: (rows - rows.max(axis=0)) / 10)
    rows = np.zeros((50, 2))
    assert Tape(monkeypatch).of(ESTIMATORS["Mean"], (rows,), (np.vstack([rows, [[10.0, 10.0]]]),)) > 100


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("strange", ["x", None, 2**70, b"1", 0.5])
def test_a_label_of_another_type_does_not_change_the_others(estimator, strange, monkeypatch):
    """In an array of NumPy one text makes text of all labels, and none is of its class then."""
    rows = RNG.uniform(0, 10, (300, 2))
    labels = (rows[:, 0] > 5).astype(int).tolist()
    more = np.vstack([rows, [[1.0, 9.0]]]), [*labels, strange]
    moved = Tape(monkeypatch).of(lambda: estimator(bounds=BOUNDS, classes=[0, 1]), (rows, labels), more)
    assert moved <= 1


@pytest.mark.parametrize("classes", [[0, "b"], [None, 1]])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_classes_of_two_types_are_refused(estimator, classes):
    with refuses(dp.DitherError, "classes"):
        estimator(bounds=BOUNDS, classes=classes).fit(np.ones((4, 1)), [0, 1, 0, 1])


@each("bounds", [(1e16, 1e16 + 2), (1e12, 1e12 + 1), (1e15, 1e15 + 0.5)])
@each("row", [0.0, 5.0, 10.0])
@each("end", [0, 1])
def test_label_bounds_close_to_each_other_hold(bounds, row, end, monkeypatch):
    """Their middle is no float: labels at a bound came out as 2, where 1 is the most that noise was made for."""
    rows = RNG.uniform(0, 10, (5000, 1))
    labels = np.where(np.arange(5000) % 2, *bounds)
    more = np.vstack([rows, [[row]]]), np.append(labels, bounds[end])
    moved = Tape(monkeypatch).of(
        lambda: learn.LinearRegression(epsilon=20, bounds=BOUNDS, label_bounds=bounds), (rows, labels), more
    )
    assert moved <= 1


@pytest.mark.parametrize("estimator", [learn.LinearRegression, learn.Ridge])
@pytest.mark.parametrize("limits", [(-1e308, 1e308), (0, 5e-324), (0, 10**400), [(0, 1)], (1, 0), (0, np.nan)])
def test_label_bounds_that_floats_cannot_hold_are_refused(estimator, limits):
    with refuses(dp.DitherError, "label_bounds"):
        estimator(bounds=BOUNDS, label_bounds=limits).fit(np.ones((9, 1)), np.ones(9))


@each("name", ESTIMATORS)
@each(
    "bounds",
    [[(0, 1), (0, 1, 2)], [(0, 1), 3], (0, 10**400), (0, 1e-95), (-1e95, 1e95), (1, 0), (0, np.inf), "ab", [(0, 1)]],
)
def test_bounds_that_are_none_are_one_clear_error(name, bounds):
    with refuses(dp.DitherError, "bounds"):
        ESTIMATORS[name]().set_params(bounds=bounds).fit(np.ones((9, 2)), np.arange(9) % 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("width", [1e-89, 1e-80, 1e-20, 1e20, 1e89])
@each("name", [*ESTIMATORS, "Ridge"])
def test_the_widest_and_the_narrowest_bounds_give_numbers(name, width):
    """Few records and many, one column of the width and one of an ordinary one, and all of the width."""
    make = ESTIMATORS.get(name, lambda **given: learn.Ridge(label_bounds=(0, 1), **given))
    for count in (50, 4000):
        rows = RNG.uniform(0, 1, (count, 2))
        for bounds in ((0, width), [(0, width), (0, 1)], [(-width, width), (width, 2 * width)]):
            given = rows * np.array([width, 1.0 if bounds[1] == (0, 1) else width])
            model = make(epsilon=20).set_params(bounds=bounds).fit(given, np.arange(count) % 2)
            for result in (value for key, value in vars(model).items() if key.endswith("_") and key[0] != "_"):
                if isinstance(result, (float, np.ndarray)) and np.asarray(result).dtype.kind == "f":
                    assert np.isfinite(result).all()
            used = getattr(model, "predict", getattr(model, "transform", None))
            assert used is None or np.isfinite(used(given)).all()


def test_a_penalty_of_one_weight_does_not_blur_the_others():
    rows = RNG.uniform(-1, 1, (6000, 2)) * [1.0, 1e-12]
    model = learn.Ridge(alpha=1, epsilon=5, bounds=[(-1, 1), (-1e-12, 1e-12)], label_bounds=(-1, 1))
    result = model.fit(rows, 0.5 * rows[:, 0]).coef_
    assert abs(result[0] - 0.5) < 0.1
    assert abs(result[1]) < 1


@pytest.mark.parametrize("kind", ["U", "S", object])
def test_no_error_shows_a_label(kind):
    labels = np.array(["1"] * 8 + ["secret"]).astype(kind)
    with refuses(dp.InvalidData, "text") as caught:
        ESTIMATORS["LinearRegression"]().fit(np.ones((9, 1)), labels)
    assert "secret" not in str(caught.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_record_makes_a_warning(name):
    """The sum of these is infinity less infinity, which scikit-learn looks at to find out whether all are finite."""
    rows = np.repeat([[1.7e308, 1.7e308], [-1.7e308, -1.7e308]], 200, axis=0)
    ESTIMATORS[name]().fit(rows, np.arange(400) % 2)


class Always:
    def __init__(self, answer):
        self.answer = answer

    def predict(self, X):
        if isinstance(X[0][0], str):
            raise ValueError("numbers are wanted")
        if X[0][0] > 1e300:
            warnings.warn("a large number", RuntimeWarning, stacklevel=1)
        return np.full(len(X), self.answer)


def scores(X, y, monkeypatch, **given):
    result = []

    def noted(_, all_scores, **__):
        result.extend(all_scores)
        return 0

    monkeypatch.setattr(selection.Exponential, "select_index", noted)
    learn.select_model([Always(0), Always(1)], X, y, epsilon=1, public=True, **given)
    return [one / 2**20 for one in result]


@pytest.mark.parametrize(("row", "label"), [(["x"], 0), ([1.0], "x"), (["x"], "x"), ([None], None), ([10**400], 1)])
@pytest.mark.parametrize("within", [None, 1.0])
def test_a_record_of_another_type_does_not_change_the_scores_of_others(row, label, within, monkeypatch):
    rows, labels = [[1.0]] * 10, [0, 1, 1] * 3 + [1]
    before = scores(rows, labels, monkeypatch, within=within)
    after = scores([*rows, row], [*labels, label], monkeypatch, within=within)
    assert before == [3.0, 7.0]
    assert all(0 <= new - old <= 1 for old, new in zip(before, after, strict=True))


@pytest.mark.filterwarnings("error")
def test_a_candidate_that_warns_of_a_record_is_not_heard(monkeypatch):
    assert scores(np.array([[1.0], [1e308]]), [0, 0], monkeypatch) == [2.0, 0.0]


def test_a_target_belongs_to_one_record():
    """With as many scores as records targets without a column of each would be subtracted across records."""
    descent = NoisyDescent(steps=2, step=0.1, clip=1.0, noise_multiplier=1, size=3)
    theorem = course.TheoremSGD(epsilon=1, steps=3, clip=1.0)
    for start, targets in ((np.zeros((2, 3)), np.arange(3.0)), (np.zeros(2), np.arange(3.0)[:, np.newaxis])):
        for run in (descent.run, theorem.run):
            with refuses(dp.InvalidData, "target"):
                run(learn.Squared(), np.ones((3, 2)), targets, start)
    with refuses(dp.InvalidData):
        theorem.run(learn.Squared(), np.ones((0, 2)), np.ones(0), np.zeros(2))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", [learn.Squared(), learn.Logistic(), learn.Huber(), learn.SmoothHinge()])
@pytest.mark.parametrize("size", [1e308, 1e200, 5e-324])
def test_no_record_makes_a_warning_in_a_descent(loss, size):
    rows, targets = np.ones((20, 2)), np.arange(20) % 2.0
    rows[3] = size, -size
    if isinstance(loss, (learn.Squared, learn.Huber)):
        targets[4] = -size
    result = NoisyDescent(steps=20, step=5, clip=1.0, noise_multiplier=1, size=20).run(loss, rows, targets, np.zeros(2))
    assert np.isfinite(result.iterates).all()
    assert np.isfinite(course.TheoremSGD(epsilon=1, steps=60, clip=1.0).run(loss, rows, targets, np.zeros(2))).all()


def test_noise_on_a_coarser_lattice_is_refused():
    """Before the last step two neighbors get the same noise, and must not be rounded farther apart by it."""
    with refuses(dp.InvalidArgument, "epsilon"):
        course.TheoremSGD(epsilon=1e-11, steps=100, clip=1.0)
    assert course.TheoremSGD(epsilon=1e-6, steps=100, clip=1.0).guarantee == dp.PureDP(1e-6)


@pytest.mark.parametrize("clip", [1e-91, 1e91])
def test_a_clip_that_floats_cannot_square_is_refused_at_once(clip):
    with refuses(dp.InvalidArgument, "clip"):
        NoisyDescent(steps=2, step=0.1, clip=clip, noise_multiplier=1, size=3)


def test_too_many_clusters_are_refused_before_anything_is_paid(tmp_path):
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", limit=dp.ApproxDP(2, 1e-4))
        with ledger.scope("visits"), pytest.raises(dp.InvalidArgument, match="n_clusters"):
            learn.KMeans(2048, epsilon=1, bounds=BOUNDS).fit(np.ones((50, 2)))
        assert ledger.left("visits") == dp.ApproxDP(2, 1e-4)
    assert learn.KMeans(2047, epsilon=100, bounds=BOUNDS).fit(np.ones((50, 2))).cluster_centers_.shape == (2047, 2)


def test_an_answer_is_not_given_again_for_other_features(tmp_path):
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", limit=dp.ApproxDP(2, 1e-4))
        with ledger.scope("visits", key="june"):
            ESTIMATORS["Mean"]().fit(np.ones((50, 2)))
        with ledger.scope("visits", key="june"), pytest.raises(dp.InvalidArgument, match="key"):
            ESTIMATORS["Mean"]().fit(np.ones((50, 3)))


def test_records_of_no_length_are_below_every_ceiling():
    """Zero has no octave: it counted as nearly the largest."""
    result = noisy_ceiling(np.zeros(10000), 8.0, 0.9, 10000, GaussianBudget(dp.ApproxDP(20, 1e-5)), share=1)
    assert result == 8 * 2**-9.5


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_given_is_left_alone(name):
    rows, labels = hostile(60, 3), np.arange(60) % 2.0
    for kept in (rows.copy(), np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2]):
        before, targets = kept.copy(), labels.copy()
        ESTIMATORS[name](epsilon=50).fit(kept, targets)
        assert np.array_equal(kept, before)
        assert np.array_equal(targets, labels)
    rows.flags.writeable = labels.flags.writeable = False
    ESTIMATORS[name](epsilon=50).fit(rows, labels)
