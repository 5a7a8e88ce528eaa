"""A function of the user's on private records shows nothing but what it returns."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import dither as dp
from support import refuses

CLEAN = np.ones(60)
ONE_ZERO = np.r_[np.ones(59), 0.0]


class Stop(BaseException):
    pass


def _raises(error):
    def function(x):
        if np.any(np.asarray(x, dtype=float) == 0):
            raise error
        return np.asarray(x, dtype=float)

    return function


def _log(x):
    return np.log(np.asarray(x, dtype=float))


def _warns(x):
    if np.any(np.asarray(x, dtype=float) == 0):
        warnings.warn("a record is 0", stacklevel=1)
    return np.asarray(x, dtype=float)


class _Model:
    def __init__(self, function):
        self.function = function

    def predict(self, X):
        return self.function(np.asarray(X, dtype=float)[:, 0])


def _holdout(function, x):
    holdout = dp.ReusableHoldout(CLEAN, x, bounds=(0, 1), epsilon=1, threshold=1e6, limit=3)
    return holdout.ask(function).from_holdout


def _sample(function, x):
    return dp.SampleAndAggregate(lambda rows: float(np.mean(function(rows))), 5, (0, 1)).results(x).shape


def _selected(function, x):
    models = [_Model(function), _Model(function)]
    return dp.learn.select_model(models, x[:, None], CLEAN, epsilon=1, within=1.0, public=True).candidates


FUNCTIONS = {
    "log": _log,
    "warns": _warns,
    **{
        type(error).__name__: _raises(error)
        for error in (ValueError("secret"), SystemExit("secret"), GeneratorExit("secret"), Stop("secret"))
    },
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("ask", [_holdout, _sample, _selected])
def test_one_record_shows_in_no_warning_and_no_error(ask, name, capsys):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        assert ask(FUNCTIONS[name], ONE_ZERO) == ask(FUNCTIONS[name], CLEAN)
    assert shown == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("ask", [_holdout, _sample, _selected])
def test_a_keyboard_interrupt_reveals_nothing(ask):
    with pytest.raises(KeyboardInterrupt) as caught:
        ask(_raises(KeyboardInterrupt("secret")), ONE_ZERO)
    assert caught.value.args == ()
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_prediction_of_all_rows_that_fails_is_refused_without_its_error():
    models = [_Model(_raises(Stop("secret")))]
    with refuses(dp.InvalidData) as caught:
        dp.learn.select_model(models, ONE_ZERO[:, None], CLEAN, epsilon=1, within=1.0, public=True, together=True)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_score_that_fails_is_refused_without_its_error():
    def score(k):
        sys.exit("secret")

    with refuses(dp.InvalidData) as caught:
        dp.Exponential(1, 1).select_integer(score, center=0, ceiling=0, slope=1)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_question_is_asked_of_every_record_by_itself():
    seen = []

    def question(x):
        seen.append(x.tolist())
        return x / 100

    for held in ([1.0, 2.0, 3.0], [1.0, 2.0, np.nan]):
        seen.clear()
        dp.ReusableHoldout([7.0], held, bounds=(0, 1), epsilon=1, threshold=9, limit=1).ask(question)
        assert [len(x) for x in seen] == [1] * 4
