"""Only objects exactly as their constructors build them are certified: every attribute is tampered with in turn."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither import mechanisms
from dither.audit.proof.certify import certify
from dither.budget_hooks import charging_to, observed_by
from dither.errors import NotPrivate
from dither.randomness import SeededSource, drawn_from, source
from support import each, refuses

from .test_certify import built_in, holdout

MECHANISMS = [mechanism for mechanism, _ in built_in((1,))]


def other_values(value):
    """Values of the same type and of other types that differ from this one."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value - 1, value + 1, -100)
    elif isinstance(value, float):
        yield from (value / 2, value * 2, math.nan, LyingFloat(value))
    elif isinstance(value, Fraction):
        yield from (value / 2, value + 1)
    elif isinstance(value, str):
        yield from ("laplace", "gaussian", "gumbel", "textbook")
    elif isinstance(value, tuple) and value:
        for changed in other_values(value[0]):
            yield (changed, *value[1:])
        yield value[1:]
        yield (*value, value[0])
    elif isinstance(value, np.ndarray):
        yield value[:-1]
    yield from (object(), None, lambda *given: given[-1])


class LyingFloat(float):
    """A float that behaves as another number when it is multiplied."""

    def __mul__(self, other):
        return 0.0


def same_value(one, other):
    return type(one) is type(other) and repr(one) == repr(other)


def is_legitimate(mechanism):
    """Whether the constructor builds exactly this object from its arguments: a different mechanism, but a valid one."""
    if not dataclasses.is_dataclass(mechanism):
        return False
    given = {item.name: getattr(mechanism, item.name) for item in dataclasses.fields(mechanism) if item.init}
    if any(isinstance(value, LyingFloat) for value in given.values()):
        return False
    try:
        fresh = type(mechanism)(**given)
    except (ValueError, TypeError):
        return False
    return vars(fresh).keys() <= vars(mechanism).keys() and all(
        same_value(vars(fresh)[name], vars(mechanism)[name]) for name in vars(fresh)
    )


@each("index", range(len(MECHANISMS)))
def test_every_attribute_of_every_mechanism_is_checked(index):
    count = len(vars(MECHANISMS[index]))
    tried = 0
    for name in sorted(vars(MECHANISMS[index]).keys() - {"_train", "threshold"}):  # these are public, and any will do
        for changed in other_values(getattr(MECHANISMS[index], name)):
            mechanism = rebuilt(index)
            if same_value(changed, getattr(mechanism, name)):
                continue
            object.__setattr__(mechanism, name, changed)
            if is_legitimate(mechanism):
                continue
            tried += 1
            with refuses(NotPrivate):
                certify(mechanism)
    assert tried >= count


def rebuilt(index):
    """A fresh mechanism of the same class and parameters."""
    given = MECHANISMS[index]
    if dataclasses.is_dataclass(given):
        return type(given)(**{e.name: getattr(given, e.name) for e in dataclasses.fields(given) if e.init})
    if isinstance(given, mechanisms.ReusableHoldout):
        return holdout(1)
    return dp.SparseVector(1, 1).start(threshold=3)


@each("index", range(len(MECHANISMS)))
def test_additional_attributes_and_subclasses_are_refused(index):
    mechanism = rebuilt(index)
    kind = type(mechanism)
    for name in ("release", "select_index", "ask", "probability", "guarantee", "anything"):
        extended = rebuilt(index)
        vars(extended)[name] = lambda *given: given
        with refuses(NotPrivate):
            certify(extended)
    vars(forged := object.__new__(type(kind.__name__, (kind,), {}))).update(vars(mechanism))
    with refuses(NotPrivate, "draw in its own way"):
        certify(forged)


class Truthful(dp.RandomizedResponse):
    @property
    def probability(self):
        return 1.0


def test_a_subclass_whose_probability_is_a_property():
    with refuses(NotPrivate):
        certify(Truthful(1))


@pytest.mark.parametrize("state", [{"above": -100}, {"above": 1}, {"asked": 5}, {"limit": 10}])
def test_a_session_with_modified_state_is_refused(state):
    session = dp.SparseVector(1, 1).start(threshold=3)
    assert certify(session).holds
    for name, value in state.items():
        vars(session)[name] = value
    with refuses(NotPrivate):
        certify(session)


def test_a_session_that_was_asked_is_refused():
    session = dp.SparseVector(1, 1).start(threshold=10**6)
    session.ask(0)
    with refuses(NotPrivate):
        certify(session)
    assert certify(dp.SparseVector(1, 1)).holds


def test_a_session_with_known_noise_is_refused():
    with refuses(NotPrivate):
        certify(dp.SparseVector(1, 1).start(threshold=3, source=SeededSource(1)))


def test_cached_properties_are_recomputed():
    mechanism = dp.BoundedLaplace(1, 1, 0, 10)
    mechanism.release(3)  # computes the scale for integers
    assert "integer_scale" in vars(mechanism)
    assert certify(mechanism).holds
    vars(mechanism)["integer_scale"] = 0.6
    with refuses(NotPrivate):
        certify(mechanism)


def test_another_source_of_noise_is_refused():
    token = source._DEFAULT.set(SeededSource(3))
    try:
        with refuses(NotPrivate, "source"):
            certify(dp.Laplace(1, 1))
    finally:
        source._DEFAULT.reset(token)
    with drawn_from(SeededSource(3)), pytest.raises(NotPrivate, match="source"):
        certify(dp.Laplace(1, 1))
    assert certify(dp.Laplace(1, 1)).holds


class Replaces:
    """A hook that returns the input of a release instead of its output."""

    def see(self, what, name, given, compute):
        return given["value"]

    def spend(self, what, compute, *, private, recordable=True):
        return 0


def test_an_observer_or_a_foreign_spender_in_force_is_refused(tmp_path):
    """Either may replace what a release returns, so that a certificate of the mechanism would say nothing about it."""
    mechanism = dp.Laplace(1, 1)
    with observed_by(Replaces()):
        assert mechanism.release(42) == 42
        with refuses(NotPrivate, "observer"):
            certify(mechanism)
    with charging_to(Replaces()), refuses(NotPrivate, "spender"):
        certify(mechanism)
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        with ledger.scope("visits"):
            session = dp.SparseVector(1, 0.25).start(0)
            assert certify(mechanism).holds
            assert certify(session).holds
        assert ledger.left("visits") == dp.PureDP(0.75), "the auditor's comparisons cost nothing"


def test_mechanisms_that_were_used_are_certified():
    noise = dp.Laplace(1, 1)
    noise.release(np.zeros(3))
    choice = dp.Exponential(1, 1)
    choice.select_index([0, 1])
    assert certify(noise).holds
    assert certify(choice).holds
