"""Only objects exactly as their constructors build them are certified: every attribute is tampered with in turn."""

from __future__ import annotations

import builtins
import dataclasses
import math
import os
import sys
import types
from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither import mechanisms
from dither.audit.proof import integrity, reference
from dither.audit.proof.certify import certify
from dither.budget_hooks import charging_to, observed_by
from dither.errors import NotPrivate
from dither.public_module import defining_module
from dither.randomness import SYSTEM, SeededSource, drawn_from, normal, source
from support import each, refuses

from .test_certify import built_in, holdout

MECHANISMS = [mechanism for mechanism, _ in built_in((1,))]
NAMES = [f"{index} {type(mechanism).__name__}" for index, mechanism in enumerate(MECHANISMS)]


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
def test_every_attribute_of_every_mechanism_is_checked(index, monkeypatch):
    monkeypatch.setattr(integrity, "changed_code", list)  # below
    monkeypatch.setattr(integrity, "clear_caches", list)
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
def test_additional_attributes_and_subclasses_are_refused(index, monkeypatch):
    monkeypatch.setattr(integrity, "changed_code", list)
    monkeypatch.setattr(integrity, "clear_caches", list)
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


def test_code_that_is_replaced_in_place_is_detected():
    method = mechanisms.SparseVectorSession._exceeds
    before = method.__code__
    try:
        method.__code__ = (lambda *_: True).__code__
        with refuses(NotPrivate, "_exceeds"):
            certify(dp.SparseVector(1, 1))
    finally:
        method.__code__ = before
    assert certify(dp.SparseVector(1, 1)).holds


def test_changed_constants_and_distributions_are_detected(monkeypatch):
    from dither.mechanisms import noisy_max, sparse_vector

    with monkeypatch.context() as patched:
        patched.setattr(sparse_vector, "_LAPLACE", noisy_max._LAWS["gumbel"])
        with refuses(NotPrivate):
            certify(dp.SparseVector(1, 1))
    with monkeypatch.context() as patched:
        patched.setitem(noisy_max._LAWS, "laplace", noisy_max._LAWS["gumbel"])
        with refuses(NotPrivate):
            certify(dp.NoisyMax(1, 1, noise="laplace"))
    law = sparse_vector._LAPLACE
    try:
        object.__setattr__(law, "symmetric", False)
        with refuses(NotPrivate):
            certify(dp.SparseVector(1, 1))
    finally:
        object.__setattr__(law, "symmetric", True)
    assert certify(dp.SparseVector(1, 1)).holds


def test_a_method_that_was_replaced_before_the_auditor_was_loaded(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(dp.Laplace, "release", lambda *given: given[1])
        reference.reference_modules.cache_clear()
        with refuses(NotPrivate, "release"):
            certify(dp.Laplace(1, 1))


MODULES = sorted(reference.reference_modules())
CHECKER = "dither.audit.proof.reference"


def detected(module):
    return {*reference._module_changes(module.__name__)}


def test_the_modules_behind_a_certificate_are_all_compared():
    loaded = {name for name in sys.modules if name.startswith(("dither.mechanisms.", "dither.randomness."))}
    drawing = {"dither.mechanisms.densities"}  # of pictures alone, and imported where one is drawn
    assert loaded - drawing <= {*MODULES}
    assert {"dither.exact", "dither.arguments", "dither.audit.proof.shifts", "dither.audit.proof.certify"} <= {*MODULES}


@each("name", [name for name in MODULES if name != CHECKER])
def test_every_rebound_global_is_detected(name, monkeypatch):
    module = sys.modules[name]
    names = [key for key in vars(module) if key.isidentifier()]
    names = [key for key in names if key not in reference._IMPORT_SYSTEM and f"{name}.{key}" not in COUNTERS]
    with monkeypatch.context() as patched:
        patched.setattr(module, "another", 1, raising=False)  # first: it asks the module's own __getattr__
        for key in names:
            value = vars(module)[key]
            imitation = types.ModuleType(key) if isinstance(value, types.ModuleType) else object()
            if isinstance(imitation, types.ModuleType):
                vars(imitation).update(vars(value))
            patched.setattr(module, key, imitation)
        assert {f"{name}.{key}" for key in (*names, "another")} <= detected(module)
    with monkeypatch.context() as patched:
        patched.setitem(vars(module), "__builtins__", dict(vars(builtins)))
        assert not detected(module)  # equal to the real ones
        patched.setitem(vars(module), "__builtins__", {**vars(builtins), "round": float})
        assert f"{name}.__builtins__" in detected(module)
    assert not detected(module)


COUNTERS = reference._COUNTERS
NEVER_SET = {"__dict__", "__weakref__", *reference._DOCUMENTATION}


class Descriptor:
    """A descriptor in place of a method."""

    def __get__(self, thing, kind):
        return lambda *_: 0


def every_class():
    for name in MODULES:
        yield from (v for v in vars(sys.modules[name]).values() if isinstance(v, type) and defining_module(v) == name)


CLASSES = sorted({*every_class()}, key=lambda kind: (defining_module(kind), kind.__qualname__))


@each("kind", CLASSES)
def test_every_member_of_every_class_is_compared(kind):
    module, name = sys.modules[defining_module(kind)], f"{defining_module(kind)}.{kind.__qualname__}"
    inherited = {"__getattribute__", "__call__", "another"} - vars(kind).keys()
    before = {key: value for key, value in vars(kind).items() if key not in NEVER_SET}
    try:
        for key in (*before, *inherited):
            type.__setattr__(kind, key, Descriptor())
        result = detected(module)
    finally:
        for key in inherited:
            type.__delattr__(kind, key)
        for key, value in before.items():
            type.__setattr__(kind, key, value)
    assert {f"{name}.{key}" for key in (*before, *inherited)} <= result
    assert not detected(module)


def test_replaced_base_classes_are_detected():
    tried = 0
    for kind in CLASSES:
        before = kind.__bases__
        try:
            kind.__bases__ = (type(kind)("Between", before, {}),)
        except (TypeError, AttributeError):  # Python allows it of some only
            continue
        try:
            assert any("__bases__" in name for name in detected(sys.modules[defining_module(kind)])), kind
        finally:
            kind.__bases__ = before
        tried += 1
    assert tried >= 10
    assert not reference.changed_names()


def test_attributes_of_instances_that_modules_hold_are_compared():
    from dither.mechanisms import laplace

    for thing in (SYSTEM, laplace._LAPLACE):
        vars(thing)["quantile"] = vars(thing)["word"] = lambda *_: 1 << 62
        try:
            with refuses(NotPrivate):
                certify(dp.Laplace(1, 1))
        finally:
            del vars(thing)["quantile"], vars(thing)["word"]
    assert certify(dp.Laplace(1, 1)).holds


def test_cached_arrays_are_read_only_and_changes_are_detected():
    columns, _ = normal._table()
    with pytest.raises(ValueError, match="read-only"):
        columns[...] = 0
    columns.setflags(write=True)
    columns[1, 5] += 1
    try:
        with refuses(NotPrivate, "_table"):
            certify(dp.Gaussian(1, 1, 1e-6))
    finally:
        columns[1, 5] -= 1
        normal._table.cache_clear()
    arrays = [v for name in MODULES for v in vars(sys.modules[name]).values() if isinstance(v, np.ndarray)]
    assert len(arrays) >= 4
    for array in arrays:
        assert not array.flags.writeable
        before = array.copy()
        array.setflags(write=True)
        array.flat[0] += 1
        assert reference.changed_names()
        array[...] = before
        array.setflags(write=False)
    assert not reference.changed_names()


def test_caches_filled_during_a_replacement_are_cleared(monkeypatch):
    from dither.exact import functions

    functions.pi.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(functions, "Fraction", None)
        functions.pi(8)
    assert functions.pi.cache_info().currsize
    certify(dp.Laplace(1, 1))
    assert not functions.pi.cache_info().currsize


@pytest.mark.parametrize(("library", "name"), [(os, "urandom"), (os, "getpid"), (math, "exp"), (np, "full")])
def test_replaced_library_functions_are_detected(library, name, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(library, name, lambda *_: bytes(48))
        changed = reference.changed_names()
    assert f"{library.__name__}.{name}" in changed


def test_a_module_replaced_everywhere_is_detected(monkeypatch):
    from dither import arguments
    from dither.mechanisms import additive

    fake = types.ModuleType("dither.arguments")
    vars(fake).update(vars(arguments), sensitivity=lambda *_: Fraction(1, 1000))
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "dither.arguments", fake)
        patched.setattr(dp, "arguments", fake, raising=False)
        patched.setattr(additive, "arguments", fake)
        reference.reference_modules.cache_clear()
        with refuses(NotPrivate):
            certify(dp.Laplace(1, 1))
    reference.reference_modules.cache_clear()
    assert certify(dp.Laplace(1, 1)).holds


def test_another_source_of_noise_is_refused():
    token = source._DEFAULT.set(SeededSource(3))
    try:
        with refuses(NotPrivate, "source"):
            certify(dp.Laplace(1, 1))
    finally:
        source._DEFAULT.reset(token)
    with drawn_from(SeededSource(3)), pytest.raises(NotPrivate, match="source"):
        certify(dp.Laplace(1, 1))
    own_source = source.SystemSource()
    own_source._local.stream = source.KeyStream(bytes(48))
    with refuses(NotPrivate):
        certify(dp.SparseVector(1, 1).start(threshold=3, source=own_source))
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
