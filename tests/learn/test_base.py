"""What all private estimators keep to: public bounds, refusals that show no value, one charge, repeatable requests."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import dither as dp
from dither.learn.base import limits_of
from dither.learn.budget import GaussianBudget
from dither.learn.groups import GaussianNB, KMeans
from dither.learn.linear import LinearRegression, Mean, Ridge
from dither.learn.logistic import LogisticRegression
from dither.learn.transformers import PCA, StandardScaler
from dither.randomness import SeededSource
from learn.conformance import failed
from support import refuses

pytestmark = pytest.mark.filterwarnings("ignore::dither.learn.base.PrivacyWarning")  # fitted again and again

BOUNDS, LABELS = (-100, 100), (-1000, 1000)
rng = np.random.default_rng(0)


class Repeatable(SeededSource):
    """A seeded source that can be copied, as scikit-learn copies parameters."""

    def __reduce__(self):
        return Repeatable, (self.seed,)


def estimators(classes=(-1000, 0, 1000), **more):
    return [
        LinearRegression(bounds=BOUNDS, label_bounds=LABELS, **more),
        Ridge(bounds=BOUNDS, label_bounds=LABELS, **more),
        LogisticRegression(bounds=BOUNDS, classes=classes, **more),
        GaussianNB(bounds=BOUNDS, classes=classes, **more),
        KMeans(2, bounds=BOUNDS, **more),
        Mean(bounds=BOUNDS, **more),
        StandardScaler(bounds=BOUNDS, **more),
        PCA(bounds=BOUNDS, **more),
    ]


PURE = (GaussianNB, KMeans, Mean, StandardScaler)
CLASSIFIERS = (LogisticRegression, GaussianNB)
RELEASED = ("coef_", "mean_", "scale_", "components_", "theta_", "cluster_centers_")


def named(estimator):
    return type(estimator).__name__


for_every_estimator = pytest.mark.parametrize("estimator", estimators(), ids=named)
X, y = rng.uniform(-100, 100, (300, 3)), rng.choice([-1000.0, 0.0, 1000.0], 300)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", estimators("observed", epsilon=1e4, source=Repeatable(1)), ids=named)
def test_scikit_learn_accepts_it(estimator):
    assert failed(check_estimator(estimator, on_fail=None)) == []


@for_every_estimator
@pytest.mark.parametrize("neighbors", [dp.AddRemove, dp.ReplaceOne, None])
@pytest.mark.parametrize("n", [3, 300])
def test_the_noise_that_was_added_keeps_to_the_guarantee(estimator, neighbors, n):
    fitted = clone(estimator).set_params(epsilon=0.7, neighbors=neighbors).fit(X[:n], y[:n])
    assert fitted.private_
    assert fitted.guarantee_ == dp.ApproxDP(0.7, 1e-5)
    assert 0.699 < dp.accounting.best_of(fitted.event_, 1e-5).guarantee.epsilon <= 0.7


@for_every_estimator
def test_without_a_delta_a_fit_is_pure_or_refused(estimator):
    pure = clone(estimator).set_params(epsilon=0.7, delta=None)
    if isinstance(estimator, PURE):
        assert pure.fit(X, y).event_.guarantee == pure.guarantee_ == dp.PureDP(0.7)
    else:
        with refuses(dp.InvalidArgument, "delta"):
            pure.fit(X, y)


@for_every_estimator
def test_a_seeded_fit_repeats_itself_and_says_that_it_is_not_private(estimator):
    one, other = (clone(estimator).set_params(source=Repeatable(1)).fit(X, y) for _ in range(2))
    fresh = clone(estimator).fit(X, y)
    assert not one.private_
    for name in RELEASED:
        if hasattr(one, name):
            assert np.array_equal(getattr(one, name), getattr(other, name))
            assert not np.array_equal(getattr(one, name), getattr(fresh, name))


@for_every_estimator
def test_it_must_be_fitted_first(estimator):
    for name in ("predict", "transform"):
        if hasattr(estimator, name):
            with pytest.raises(NotFittedError):
                getattr(estimator, name)(X)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(
    ("classes", "error"),
    [(None, ValueError), ([1], ValueError), ([1, 1], ValueError), ("01", TypeError), (3, TypeError)],
)
def test_classes_are_required(kind, classes, error):
    with refuses(error, "classes"):
        kind(bounds=BOUNDS, classes=classes).fit(X, y)


@for_every_estimator
@pytest.mark.parametrize(
    ("changed", "error"),
    [*(({"delta": delta}, ValueError) for delta in (0, 1, math.nan)), ({"neighbors": "replace"}, TypeError)],
    ids=str,
)
def test_senseless_parameters_are_refused(estimator, changed, error):
    with refuses(error, *changed):
        clone(estimator).set_params(**changed).fit(X, y)


@for_every_estimator
def test_all_of_the_budget_and_no_more_is_spent(estimator, monkeypatch):
    created = []
    monkeypatch.setattr(
        "dither.learn.base.GaussianBudget", lambda *given: created.append(GaussianBudget(*given)) or created[-1]
    )
    clone(estimator).fit(X, y)
    [budget] = created
    assert 0 <= budget.left < 1e-9  # steps of equal shares may leave a rounding


@for_every_estimator
@pytest.mark.parametrize("epsilon", [math.inf, math.nan, 0, -1, "1", None, 1 + 0j])
def test_senseless_epsilons_are_refused(estimator, epsilon):
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        clone(estimator).set_params(epsilon=epsilon).fit(X, y)


@for_every_estimator
def test_bounds_are_required_and_never_read_from_the_data(estimator):
    with refuses(dp.InvalidArgument, "bounds: expected public limits"):
        clone(estimator).set_params(bounds=None).fit(X, y)
    with refuses(dp.InvalidArgument, "one pair for each of the 3"):
        clone(estimator).set_params(bounds=[(0, 1), (0, 1)]).fit(X, y)
    with refuses(dp.InvalidArgument):
        clone(estimator).set_params(bounds=(-math.inf, math.inf)).fit(X, y)


@pytest.mark.parametrize("bounds", [{"a": (0, 1), "b": (0, 1)}, {}, "(0, 1)", 1.0, (0, 1, 2), ()], ids=str)
@for_every_estimator
def test_bounds_of_another_form_are_refused_with_both_forms(estimator, bounds):
    with refuses(ValueError if isinstance(bounds, tuple) else TypeError) as caught:
        clone(estimator).set_params(bounds=bounds).fit(X, y)
    assert "one pair (lower, upper) for all columns, or a list of one pair for each" in str(caught.value)
    assert "[pairs[c] for c in X.columns]" in str(caught.value)


def test_labels_have_bounds_too():
    with refuses(dp.InvalidArgument, "label_bounds"):
        LinearRegression(bounds=[BOUNDS] * X.shape[1]).fit(X, y)
    with refuses(dp.InvalidArgument, "label_bounds: expected ", "got none"):
        LinearRegression(bounds=(0, 1)).fit(X, y)  # limits of the features are none of the labels
    high = LinearRegression(epsilon=1e5, bounds=(0, 1), label_bounds=(0, 1)).fit(X, np.full(len(X), 50.0))
    assert high.intercept_ == pytest.approx(1, abs=0.2)


@for_every_estimator
@pytest.mark.parametrize(("bad", "counts_as"), [(math.nan, 0.0), (math.inf, 100.0), (-math.inf, -100.0)])
def test_what_is_missing_counts_as_the_middle_and_what_is_infinite_as_a_bound(estimator, bad, counts_as):
    rows, same = X.copy(), X.copy()
    rows[7, 1], same[7, 1] = bad, counts_as
    fitted = [clone(estimator).set_params(source=Repeatable(1)).fit(one, y) for one in (rows, same)]
    for name in RELEASED:
        if hasattr(fitted[0], name):
            assert np.array_equal(*(getattr(one, name) for one in fitted))


@for_every_estimator
@pytest.mark.parametrize("kind", [object, "U"])
def test_objects_and_text_are_refused_by_their_dtype_and_not_shown(estimator, kind):
    rows = X.astype(object)
    rows[7, 1] = "secret diagnosis"
    with refuses(dp.InvalidData, "text") as caught:
        clone(estimator).fit(rows.astype(kind), y)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    with refuses(dp.InvalidData, "text") as clean:
        clone(estimator).fit(X.astype(kind), y)
    assert str(clean.value) == str(caught.value)


@for_every_estimator
def test_sparse_rows_and_weights_are_refused(estimator):
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        clone(estimator).fit(sparse.csr_matrix(X), y)
    with pytest.raises(TypeError, match="sample_weight"):
        clone(estimator).fit(X, y, sample_weight=np.ones(len(y)))


@for_every_estimator
@pytest.mark.parametrize("shape", [(1, 1), (3, 20), (50, 2)])
def test_few_rows_many_columns_and_constant_columns_do_not_fail(estimator, shape):
    rows, labels = np.full(shape, 3.0), np.full(shape[0], 5.0)
    fitted = clone(estimator).fit(rows, labels)
    result = [value for name, value in vars(fitted).items() if name.endswith("_") and isinstance(value, np.ndarray)]
    assert result
    assert all(np.all(np.isfinite(value)) for value in result)


@for_every_estimator
def test_what_is_out_of_bounds_counts_as_the_bound(estimator):
    """With the same coins, values beyond the bounds and values at them give the same answer."""
    wild, tame = X.copy(), X.copy()
    wild[:20], tame[:20] = 1e30, 100.0
    labels, kept = y.copy(), y.copy()
    if not isinstance(estimator, CLASSIFIERS):
        labels[:20], kept[:20] = -1e30, -1000.0
    one, other = (clone(estimator).set_params(source=Repeatable(5)) for _ in range(2))
    one.fit(wild, labels)
    other.fit(tame, kept)
    for name in RELEASED:
        if hasattr(one, name):
            assert np.array_equal(getattr(one, name), getattr(other, name))


class Replay:
    """A first fit is recorded; a second, on a neighbor, is given the first one's answers, and must ask alike."""

    def __init__(self, monkeypatch):
        self.recorded, self.again, self.worst = [], None, 0.0
        original = GaussianBudget.release

        def release(budget, parts, share, *, aligned=False):
            answers = original(budget, parts, share, aligned=aligned)
            if self.again is None:
                self.recorded.append((parts, share, answers))
                return answers
            before, same, answers = next(self.again)
            assert share == same
            loss = 0.0
            for (sums, sensitivity), (earlier, promised) in zip(parts, before, strict=True):
                assert sensitivity == promised
                change = np.asarray(sums, dtype=object) - np.asarray(earlier, dtype=object)
                loss += sum((int(entry) / float(sensitivity)) ** 2 for entry in change.ravel())
            self.worst = max(self.worst, loss)
            return answers

        monkeypatch.setattr(GaussianBudget, "release", release)

    def second(self):
        self.again = iter(self.recorded)


@for_every_estimator
@pytest.mark.parametrize("epsilon", [0.5, 1000.0])
@pytest.mark.parametrize("extra", [100.0, -100.0, 3.0])
def test_one_person_more_changes_no_sum_by_more_than_its_sensitivity(estimator, epsilon, extra, monkeypatch):
    """Whatever was answered before: the worst change of all sums, of all steps, in units of what the noise is for."""
    replay = Replay(monkeypatch)
    model = clone(estimator).set_params(epsilon=epsilon)
    model.fit(X, y)
    replay.second()
    model.fit(np.vstack([X, np.full((1, 3), extra)]), np.append(y, -1000.0 if extra > 0 else 1000.0))
    assert next(replay.again, None) is None
    assert 0 < replay.worst <= 1


def test_the_replay_sees_a_sum_that_moves_too_far(monkeypatch):
    replay = Replay(monkeypatch)
    model = Mean(bounds=BOUNDS)
    model.fit(X)
    replay.second()
    model.fit(np.vstack([X, np.full((30, 3), 100.0)]))
    assert replay.worst > 1


@pytest.fixture
def ledger(tmp_path):
    with dp.ledger.open(tmp_path / "budget.sqlite") as result:
        yield result


@for_every_estimator
def test_an_open_scope_is_charged_once_for_a_fit(estimator, ledger):
    ledger.create("visits", limit=dp.ApproxDP(2, 1e-4))
    with ledger.scope("visits"):
        clone(estimator).fit(X, y)
    assert ledger.left("visits") == dp.ApproxDP(1, 9e-5)
    assert [entry.kind for entry in ledger.history()].count("charge") == 1


@for_every_estimator
def test_what_cannot_be_fitted_is_not_charged(estimator, ledger):
    ledger.create("visits", limit=dp.ApproxDP(2, 1e-4))
    with ledger.scope("visits"):
        for bad in ({"bounds": None}, {"epsilon": 0}, {"source": Repeatable(1)}):
            with pytest.raises(ValueError):
                clone(estimator).set_params(**bad).fit(X, y)
        with pytest.raises(dp.BudgetExceeded):
            clone(estimator).set_params(epsilon=3).fit(X, y)
    assert ledger.left("visits") == dp.ApproxDP(2, 1e-4)


@for_every_estimator
def test_a_request_under_a_key_is_answered_again_for_nothing(estimator, ledger):
    ledger.create("visits", limit=dp.ApproxDP(1, 1e-5))
    result = []
    for _ in range(2):
        with ledger.scope("visits", key="june"):
            result.append(clone(estimator).fit(X, y))
    for name in RELEASED:
        if hasattr(result[0], name):
            assert np.array_equal(getattr(result[0], name), getattr(result[1], name))
    assert result[1].event_.epsilon_at(Fraction(1, 10**5)) == 1
    with ledger.scope("visits", key="june"), pytest.raises(dp.InvalidArgument, match="key"):
        clone(estimator).set_params(bounds=(-50, 50)).fit(X, y)


@for_every_estimator
def test_the_twin_without_noise_clips_alike(estimator):
    twin = estimator.non_private().fit(3 * X, y)
    assert twin.private_ is False
    if hasattr(twin, "mean_"):
        np.testing.assert_allclose(twin.mean_, np.clip(3 * X, -100, 100).mean(axis=0))
    with pytest.raises(AttributeError):
        twin.nothing  # noqa: B018
    if hasattr(twin, "coef_"):
        assert twin.score(X, y) <= 1


def test_estimators_work_in_a_pipeline():
    model = make_pipeline(
        StandardScaler(epsilon=1, bounds=BOUNDS), LinearRegression(epsilon=1, bounds=(-4, 4), label_bounds=LABELS)
    )
    assert model.fit(X, y).predict(X).shape == (300,)


def test_bounds_far_from_floats_are_refused():
    for bad in ((0, 1e101), (0, 1e-101), "ab", (1, 0), (0,)):
        with pytest.raises((ValueError, TypeError)):
            limits_of(bad, 1)


def test_dither_does_not_import_scikit_learn():
    code = "import sys, dither; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_scikit_learn_the_error_says_what_to_install(tmp_path: Path):
    (tmp_path / "sklearn.py").write_text("raise ImportError('no')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import dither.learn.base"
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "pip install 'dither[learn]'" in result.stderr
