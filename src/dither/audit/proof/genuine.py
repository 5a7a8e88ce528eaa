"""Whether a mechanism is what its class and its constructor arguments say.

A certificate is computed from the attributes of a mechanism, so it applies to the object only if the object behaves as
its class does on the attributes that the constructor computes. Three checks establish this:

* *The source of randomness.* The default source of random words is the operating system.
* *The hooks.* No observer is in force, and no spender but a ledger's: either could replace what a release returns.
* *The object.* Its type is exactly a class of this package, and rebuilding it from its own constructor arguments gives
  the same attributes, including all computed and private ones. Subclasses, modified attributes and parameters of
  unknown types are refused.

These checks detect mistakes, such as a subclass or a seeded source that is still in force. They do not detect code that
was replaced in the same process: no check inside the process can rule that out.

A session that has answered a question cannot be distinguished from one whose count was reset, so only sessions that
were never asked pass.

>>> import dither as dp
>>> laplace = dp.Laplace(sensitivity=1, epsilon=1)
>>> require_genuine(laplace)
>>> object.__setattr__(laplace, "_scales", (0.5,))
>>> require_genuine(laplace)
Traceback (most recent call last):
dither.NotPrivate: mechanism: expected a Laplace as its constructor builds it, got another value in
Laplace._scales[0]. Fix: build it anew and leave its attributes alone.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import functools
import sys
import threading
import uuid
from typing import Any

import numpy as np

from dither.budget_hooks import charging_to, current_observer, current_spender
from dither.errors import DitherError, NotPrivate
from dither.mechanisms import ReusableHoldout, SparseVector, SparseVectorSession
from dither.public_module import defining_module
from dither.randomness import SYSTEM, LazyUniform, SystemSource, Variate, resolve

_PLAIN: frozenset[type] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, fractions.Fraction, decimal.Decimal, uuid.UUID}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
_INITIAL_BITS = 63
_LOCK = type(threading.Lock())


def _refuse_another_source() -> None:
    if resolve(None) is not SYSTEM:
        raise NotPrivate(
            "mechanism",
            "noise from the operating system",
            "another default source of random words",
            "certify outside of drawn_from, and leave dither.randomness.SYSTEM alone",
        )


def _refuse_hooks() -> None:
    """Refuse where somebody may replace what a release returns: an observer, or a spender that is not a ledger's."""
    from dither.ledger.scope import Allowance, Scope  # a ledger takes a while to import

    if current_observer() is not None or type(current_spender()) not in (type(None), Allowance, Scope):
        raise NotPrivate(
            "mechanism",
            "releases that nobody observes or replaces",
            "an observer, or a spender of another package, in force",
            "certify outside of observed_by and charging_to; a ledger scope may be open",
        )


def _is_defined_by_dither(kind: type) -> bool:
    """Whether this is a class that a module of dither defines."""
    module = defining_module(kind)
    return module.startswith("dither.") and vars(sys.modules[module]).get(kind.__qualname__) is kind


def require_genuine(mechanism: Any) -> None:
    """Refuse an object that differs from what its constructor builds from its own arguments."""
    _refuse_another_source()
    _refuse_hooks()
    kind = type(mechanism)
    if not _is_defined_by_dither(kind):
        raise NotPrivate(
            "mechanism",
            "a class of dither itself",
            f"{kind.__name__}, which may draw in its own way",
            "measure it with dither.audit.measure",
        )
    location = _altered(mechanism, kind.__name__)
    if location is not None:
        raise NotPrivate(
            "mechanism",
            f"a {kind.__name__} as its constructor builds it",
            f"another value in {location}",
            "build it anew and leave its attributes alone",
        )


def _altered(mechanism: Any, name: str) -> str | None:
    """The first attribute that differs from that of a mechanism rebuilt from its own arguments, or None."""
    try:
        rebuilt = _rebuilt(mechanism)
    except (DitherError, AttributeError, TypeError, ValueError, ArithmeticError):  # refused by the constructor
        return name
    return _attributes(rebuilt, mechanism, name)


def _rebuilt(mechanism: Any) -> Any:
    kind = type(mechanism)
    if kind in (SparseVectorSession, ReusableHoldout):
        keywords = mechanism.constructor_arguments()
        if kind is SparseVectorSession and [type(keywords[name]) for name in ("mechanism", "threshold")] != [
            SparseVector,
            fractions.Fraction,
        ]:
            raise TypeError
        with charging_to(None):  # a session that nobody asks costs nothing
            return kind(**keywords)
    return kind(**{item.name: getattr(mechanism, item.name) for item in dataclasses.fields(kind) if item.init})


def _differing(expected: Any, actual: Any, name: str) -> str | None:
    kind = type(actual)
    if type(expected) is not kind:
        return name
    if kind in _PLAIN:
        return None if expected is actual or (expected == actual and repr(expected) == repr(actual)) else name
    if kind in (tuple, list):
        if len(expected) != len(actual):
            return name
        return _first_difference(
            (_differing(b, g, f"{name}[{i}]") for i, (b, g) in enumerate(zip(expected, actual, strict=True)))
        )
    if kind is dict:
        return _differing([*expected.items()], [*actual.items()], name)
    if issubclass(kind, np.generic) and kind.__module__ == "numpy":
        return None if expected.tobytes() == actual.tobytes() else name
    if kind is np.ndarray:
        # arrays of data; objects in them are compared by identity
        same_shape = expected.dtype == actual.dtype and expected.shape == actual.shape
        return None if same_shape and expected.tobytes() == actual.tobytes() else name
    if kind is Variate:
        return _first_difference(
            [_differing(expected.law, actual.law, f"{name}.law"), _stale_variate(actual.uniform, name)]
        )
    if kind is SystemSource:
        return None
    if kind is _LOCK:
        return name if actual.locked() else None
    if not _is_defined_by_dither(kind) or not hasattr(actual, "__dict__"):
        return None if expected is actual and _is_defined_by_dither(kind) else name
    location = _altered(actual, name) if dataclasses.is_dataclass(kind) else None
    return _attributes(expected, actual, name) if location is None else location


def _stale_variate(uniform: Any, name: str) -> str | None:
    is_fresh = (
        type(uniform) is LazyUniform
        and type(uniform.value) is int
        and (uniform.bits, type(uniform.source)) == (_INITIAL_BITS, SystemSource)
        and 0 <= uniform.value < 1 << _INITIAL_BITS
    )
    return None if is_fresh else f"{name}.uniform"


def _attributes(rebuilt: Any, actual: Any, name: str) -> str | None:
    expected, state = dict(vars(rebuilt)), vars(actual)
    for key in state:  # cached properties are recomputed
        if key not in expected and isinstance(getattr(type(rebuilt), key, None), functools.cached_property):
            expected[key] = getattr(rebuilt, key)
    for key in expected.keys() ^ state.keys():
        if not isinstance(getattr(type(rebuilt), key, None), functools.cached_property):
            return f"{name}.{key}"
    return _first_difference(_differing(expected[key], state[key], f"{name}.{key}") for key in state)


def _first_difference(result: Any) -> str | None:
    return next((location for location in result if location is not None), None)
