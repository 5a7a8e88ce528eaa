"""A certificate is given to what the constructor builds and to nothing else: every attribute is tampered with."""

from __future__ import annotations

import dataclasses
import importlib
import math
import pkgutil
from fractions import Fraction
from types import FunctionType

import numpy as np
import pytest

import dither as dp
from dither import mechanisms, randomness
from dither.audit import genuine
from dither.audit.certify import certify
from dither.errors import NotPrivate
from dither.randomness import SeededSource

from .test_certify import built_in, holdout

MECHANISMS = [mechanism for mechanism, _ in built_in((1,))]
NAMES = [f"{place} {type(mechanism).__name__}" for place, mechanism in enumerate(MECHANISMS)]


def other_values(value):
    """Values of the same and of other types, none of them equal to this one."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value - 1, value + 1, -100)
    elif isinstance(value, float):
        yield from (value / 2, value * 2, math.nan, Liar(value))
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


class Liar(float):
    """A number that is another one when it is multiplied."""

    def __mul__(self, other):
        return 0.0


def alike(one, other):
    return type(one) is type(other) and repr(one) == repr(other)


def a_legitimate_one(mechanism):
    """Whether the constructor makes just this from its arguments: another mechanism, but not a forged one."""
    if not dataclasses.is_dataclass(mechanism):
        return False
    given = {each.name: getattr(mechanism, each.name) for each in dataclasses.fields(mechanism) if each.init}
    if any(isinstance(value, Liar) for value in given.values()):
        return False
    try:
        fresh = type(mechanism)(**given)
    except (ValueError, TypeError):
        return False
    return vars(fresh).keys() <= vars(mechanism).keys() and all(
        alike(vars(fresh)[name], vars(mechanism)[name]) for name in vars(fresh)
    )


@pytest.mark.parametrize("place", range(len(MECHANISMS)), ids=NAMES)
def test_every_attribute_of_every_mechanism_is_checked(place, monkeypatch):
    monkeypatch.setattr(genuine, "changed_code", list)  # below
    count = len(vars(MECHANISMS[place]))
    tried = 0
    for name in sorted(vars(MECHANISMS[place]).keys() - {"_train", "_threshold"}):  # these are public, and any will do
        for changed in other_values(getattr(MECHANISMS[place], name)):
            mechanism = rebuilt(place)
            if alike(changed, getattr(mechanism, name)):
                continue
            object.__setattr__(mechanism, name, changed)
            if a_legitimate_one(mechanism):
                continue
            tried += 1
            with pytest.raises(NotPrivate):
                certify(mechanism)
    assert tried >= count


def rebuilt(place):
    """A fresh one of the same kind and parameters."""
    given = MECHANISMS[place]
    if dataclasses.is_dataclass(given):
        return type(given)(**{e.name: getattr(given, e.name) for e in dataclasses.fields(given) if e.init})
    if isinstance(given, mechanisms.ReusableHoldout):
        return holdout(1)
    return dp.SparseVector(1, 1).start(threshold=3)


@pytest.mark.parametrize("place", range(len(MECHANISMS)), ids=NAMES)
def test_additional_attributes_and_subclasses_are_refused(place, monkeypatch):
    monkeypatch.setattr(genuine, "changed_code", list)
    mechanism = rebuilt(place)
    kind = type(mechanism)
    for name in ("release", "select_index", "ask", "probability", "guarantee", "anything"):
        extended = rebuilt(place)
        vars(extended)[name] = lambda *given: given
        with pytest.raises(NotPrivate):
            certify(extended)
    vars(forged := object.__new__(type(kind.__name__, (kind,), {}))).update(vars(mechanism))
    with pytest.raises(NotPrivate, match="draw in its own way"):
        certify(forged)


class Truthful(dp.RandomizedResponse):
    @property
    def probability(self):
        return 1.0


def test_a_subclass_whose_probability_is_a_property():
    with pytest.raises(NotPrivate):
        certify(Truthful(1))


@pytest.mark.parametrize("state", [{"above": -100}, {"above": 1}, {"asked": 5}, {"limit": 10}])
def test_a_session_whose_state_was_set_by_hand(state):
    session = dp.SparseVector(1, 1).start(threshold=3)
    assert certify(session).holds
    for name, value in state.items():
        vars(session)[name] = value
    with pytest.raises(NotPrivate):
        certify(session)


def test_a_session_that_was_asked_is_refused():
    session = dp.SparseVector(1, 1).start(threshold=10**6)
    session.ask(0)
    with pytest.raises(NotPrivate):
        certify(session)
    assert certify(dp.SparseVector(1, 1)).holds


def test_a_session_with_known_noise_is_refused():
    with pytest.raises(NotPrivate):
        certify(dp.SparseVector(1, 1).start(threshold=3, source=SeededSource(1)))


def test_what_was_computed_once_and_kept_is_computed_again():
    mechanism = dp.BoundedLaplace(1, 1, 0, 10)
    mechanism.release(3)  # computes the scale for integers
    assert "_integer_scale" in vars(mechanism)
    assert certify(mechanism).holds
    vars(mechanism)["_integer_scale"] = 0.6
    with pytest.raises(NotPrivate):
        certify(mechanism)


def classes():
    for package in (mechanisms, randomness):
        for found in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{found.name}")
            yield from (v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__)


@pytest.mark.parametrize("kind", list(classes()), ids=lambda kind: kind.__qualname__)
def test_every_method_that_is_replaced_is_noticed(kind, monkeypatch):
    members = [name for name, member in vars(kind).items() if isinstance(member, (FunctionType, property))]
    with monkeypatch.context() as patched:
        for name in members:
            patched.setattr(kind, name, property(lambda _: 1.0))
        noticed = genuine.changed_code()
    assert {f"{kind.__module__}.{kind.__qualname__}.{name}" for name in members} <= {*noticed}
    assert not genuine.changed_code()


def test_code_that_is_replaced_in_place_is_noticed():
    method = mechanisms.SparseVectorSession._exceeds
    before = method.__code__
    try:
        method.__code__ = (lambda *_: True).__code__
        with pytest.raises(NotPrivate, match="_exceeds"):
            certify(dp.SparseVector(1, 1))
    finally:
        method.__code__ = before
    assert certify(dp.SparseVector(1, 1)).holds


def test_constants_and_laws_are_noticed(monkeypatch):
    from dither.mechanisms import noisy_max, sparse_vector

    with monkeypatch.context() as patched:
        patched.setattr(sparse_vector, "_LAPLACE", noisy_max._LAWS["gumbel"])
        with pytest.raises(NotPrivate):
            certify(dp.SparseVector(1, 1))
    with monkeypatch.context() as patched:
        patched.setitem(noisy_max._LAWS, "laplace", noisy_max._LAWS["gumbel"])
        with pytest.raises(NotPrivate):
            certify(dp.NoisyMax(1, 1, noise="laplace"))
    law = sparse_vector._LAPLACE
    try:
        object.__setattr__(law, "symmetric", False)
        with pytest.raises(NotPrivate):
            certify(dp.SparseVector(1, 1))
    finally:
        object.__setattr__(law, "symmetric", True)
    assert certify(dp.SparseVector(1, 1)).holds


def test_a_method_that_was_replaced_before_the_auditor_was_loaded(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(dp.Laplace, "release", lambda *given: given[1])
        patched.setattr(genuine, "_AT_IMPORT", genuine._code())
        with pytest.raises(NotPrivate, match="release"):
            certify(dp.Laplace(1, 1))


def test_used_mechanisms_are_certified_all_the_same():
    noise = dp.Laplace(1, 1)
    noise.release(np.zeros(3))
    choice = dp.Exponential(1, 1)
    choice.select_index([0, 1])
    assert certify(noise).holds
    assert certify(choice).holds
