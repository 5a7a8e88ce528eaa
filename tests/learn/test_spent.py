"""What many fits cost together is stated, and where nobody adds it up there is one warning."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import dither as dp
from dither.learn import Mean, PrivacyWarning, Ridge, StandardScaler, total_spent
from support import refuses

X = np.linspace(0, 1, 60)[:, np.newaxis]
Y = X[:, 0]


def ridge(**given):
    return Ridge(**{"epsilon": 1, "bounds": (0, 1), "label_bounds": (0, 1), **given})


def test_a_search_outside_of_a_ledger_warns_once_and_its_total_is_stated():
    search = GridSearchCV(ridge(), {"alpha": [1.0, 2.0]}, cv=3)
    with pytest.warns(PrivacyWarning, match="add up") as caught:
        search.fit(X, Y)
    assert len(caught) == 1
    assert search.best_estimator_.guarantee_ == dp.ApproxDP(1, 1e-5)
    assert search.best_estimator_.total_guarantee == dp.ApproxDP(7, 7e-5)
    assert search.estimator.total_guarantee == dp.ApproxDP(7, 7e-5)


def test_cross_validation_is_counted_also_in_pipelines():
    model = make_pipeline(StandardScaler(epsilon=0.5, bounds=(0, 1)), ridge(bounds=(-4, 4), label_bounds=(0, 1)))
    with total_spent() as total:
        cross_val_score(model, X, Y, cv=4)
    assert total.fits == 8
    assert total.guarantee == dp.ApproxDP(6, 8e-5)
    assert model[0].total_guarantee == dp.ApproxDP(2, 4e-5)


def test_with_a_ledger_every_fit_is_charged_and_there_is_no_warning(tmp_path):
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", limit=dp.ApproxDP(10, 1e-3))
        with ledger.scope("visits"), total_spent() as total:
            cross_val_score(ridge(), X, Y, cv=5)
        assert total.guarantee == dp.ApproxDP(5, 5e-5)
        assert ledger.left("visits") == dp.ApproxDP(5, 1e-3 - 5e-5)
        with ledger.scope("visits", key="june"):
            model = ridge().fit(X, Y)
        with ledger.scope("visits", key="june"):
            model.fit(X, Y)  # given again, for nothing
        assert model.total_guarantee == dp.ApproxDP(1, 1e-5)


def test_one_fit_each_is_no_reason_to_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ridge().total_guarantee is None
        assert ridge().fit(X, Y).total_guarantee == ridge().fit(X, Y).guarantee_


def test_a_second_fit_of_one_object_or_of_its_clone_warns():
    model = Mean(bounds=(0, 1)).fit(X)
    with pytest.warns(PrivacyWarning):
        clone(model).fit(X)
    again = Mean(bounds=(0, 1)).fit(X)
    with pytest.warns(PrivacyWarning):
        again.fit(X)


def test_copies_know_what_was_spent():
    model = Mean(bounds=(0, 1)).fit(X)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.total_guarantee == dp.ApproxDP(1, 1e-5)


def test_totals_nest():
    with total_spent() as outer:
        Mean(bounds=(0, 1)).fit(X)
        with total_spent() as inner:
            Mean(epsilon=2, delta=None, bounds=(0, 1)).fit(X)
    assert (outer.fits, inner.fits) == (2, 1)
    assert inner.guarantee == dp.PureDP(2)


@pytest.mark.filterwarnings("ignore::dither.learn.base.PrivacyWarning")
def test_a_fit_that_is_allowed_is_not_refused_because_of_others():
    """The total of two such fits is beyond what a guarantee states: it is refused where it is read."""
    model = Mean(epsilon=6e5, bounds=(0, 1))
    with total_spent() as total:
        model.fit(X).fit(X)
    assert total.fits == 2
    for read in (lambda: total.guarantee, lambda: model.total_guarantee):
        with refuses(dp.errors.NotPrivate, "total"):
            read()


def test_a_bag_without_replacement_costs_what_the_total_states():
    """With replacement a record is in one bag several times: docs/learning.md says so."""
    from sklearn.ensemble import BaggingRegressor

    seen = []

    class Counting(Ridge):
        def fit(self, X, y):
            seen.append(np.unique(X[:, 0], return_counts=True)[1].max())
            return super().fit(X, y)

    with total_spent() as total:
        model = Counting(epsilon=1, bounds=(0, 1), label_bounds=(0, 1))
        BaggingRegressor(model, n_estimators=3, bootstrap=False).fit(X, Y)
        assert seen == [1, 1, 1]
        assert total.guarantee == dp.ApproxDP(3, 3e-5)
        BaggingRegressor(model, n_estimators=3).fit(X, Y)
    assert max(seen) > 1
