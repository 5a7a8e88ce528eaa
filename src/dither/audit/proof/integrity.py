"""Whether a mechanism is the one that its class and its parameters say.

A certificate is computed from what a mechanism holds, so it speaks of the object only if the object will do what the
class does with what the constructor computes. Three checks make that so:

* *The code.* Everything that the modules behind a certificate hold is what their files define
  (:mod:`dither.audit.proof.reference`), whenever it was changed.
* *The source of randomness.* Whatever is drawn now, no other source being given, comes from the operating system.
* *The object.* Its type is exactly a class of this package, and building it again from the values of its own
  constructor arguments gives the same attributes, all of them, computed and private ones included. A subclass, an
  attribute that was set by hand and a parameter of a type that is not known are refused.

These find mistakes and accidents: a patch that a test left behind, a seeded source that is still in force. Code in the
same process that means to deceive can change the checker as well, and no check inside the process can rule that out.

A session that has answered cannot be told from one whose count was set back, so only one that was never asked passes.

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

from dither.audit.proof.reference import changed_names, clear_caches, reference_modules
from dither.errors import DitherError, NotPrivate, message
from dither.homes import defining_module
from dither.mechanisms import ReusableHoldout, SparseVector, SparseVectorSession
from dither.randomness import SYSTEM, LazyUniform, SystemSource, Variate, resolve
from dither.randomness.source import _Stream

_PLAIN: frozenset[type] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, fractions.Fraction, decimal.Decimal, uuid.UUID}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
_FRESH_BITS = 63
_LOCK = type(threading.Lock())


def changed_code() -> list[str]:
    """The names of what is not what the files of this package define."""
    return changed_names()


def _refuse_changed_code() -> None:
    changed = changed_code()
    if changed:
        raise NotPrivate(
            message(
                "mechanism",
                "the code of dither as its files define it",
                f"another {changed[0]}",
                "start Python anew and leave the code alone",
            )
        )


def _refuse_another_source() -> None:
    if resolve(None) is not SYSTEM or _not_secure(SYSTEM):
        raise NotPrivate(
            message(
                "mechanism",
                "noise from the operating system",
                "another default source of random words",
                "certify outside of drawn_from, and leave dither.randomness.SYSTEM alone",
            )
        )


def _not_secure(source: SystemSource) -> bool:
    """Whether a source of this type holds anything but its own stream of words."""
    held = vars(source)
    if held.keys() != {"_local"} or type(held["_local"]) is not threading.local:
        return True
    streams = vars(held["_local"])
    stream = streams.get("stream")
    encryptor = type(getattr(stream, "_encrypt", None))
    return not streams.keys() <= {"stream"} or not (
        stream is None
        or (type(stream) is _Stream and not stream._forever and encryptor.__module__.startswith("cryptography."))
    )


def _known(kind: type) -> bool:
    """Whether this is a class of dither itself."""
    module = defining_module(kind)
    return module in reference_modules() and vars(sys.modules[module]).get(kind.__qualname__) is kind


def require_genuine(mechanism: Any, name: str | None = None) -> None:
    """Refuse an object that is not what its class and its constructor arguments make."""
    _refuse_changed_code()
    _refuse_another_source()
    clear_caches()
    kind = type(mechanism)
    shown = kind.__name__ if name is None else name
    if not _known(kind):
        raise NotPrivate(
            message(
                "mechanism",
                "a class of dither itself",
                f"{kind.__name__}, which may draw in its own way",
                "measure it with dither.audit.measure",
            )
        )
    where = _altered(mechanism, shown)
    if where is not None:
        raise NotPrivate(
            message(
                "mechanism",
                f"a {kind.__name__} as its constructor builds it",
                f"another value in {where}",
                "build it anew and leave its attributes alone",
            )
        )


def _altered(mechanism: Any, name: str) -> str | None:
    """The first attribute in which a mechanism differs from one built from its own arguments, or None."""
    try:
        rebuilt = _rebuilt(mechanism)
    except (DitherError, AttributeError, TypeError, ValueError, ArithmeticError):  # no constructor accepts these values
        return name
    return _attributes(rebuilt, mechanism, name)


def _rebuilt(mechanism: Any) -> Any:
    kind = type(mechanism)
    if kind is SparseVectorSession:
        if (type(mechanism._mechanism), type(mechanism._threshold)) != (SparseVector, fractions.Fraction):
            raise TypeError
        return kind(mechanism._mechanism, mechanism._threshold, mechanism._source)
    if kind is ReusableHoldout:
        inner, session = mechanism._mechanism, mechanism._session
        return kind(
            mechanism._train,
            mechanism._holdout,
            bounds=mechanism._bounds,
            epsilon=inner.epsilon,
            threshold=session._threshold,
            limit=inner.limit,
            source=session._source,
        )
    return kind(**{item.name: getattr(mechanism, item.name) for item in dataclasses.fields(kind) if item.init})


def _differing(built: Any, given: Any, name: str) -> str | None:
    kind = type(given)
    if type(built) is not kind:
        return name
    if kind in _PLAIN:
        return None if built is given or (built == given and repr(built) == repr(given)) else name
    if kind in (tuple, list):
        if len(built) != len(given):
            return name
        return _first((_differing(b, g, f"{name}[{i}]") for i, (b, g) in enumerate(zip(built, given, strict=True))))
    if kind is dict:
        return _differing([*built.items()], [*given.items()], name)
    if issubclass(kind, np.generic) and kind.__module__ == "numpy":
        return None if built.tobytes() == given.tobytes() else name
    if kind is np.ndarray:
        # data, of which only the number counts here; objects are the same by their addresses
        alike = built.dtype == given.dtype and built.shape == given.shape
        return None if alike and built.tobytes() == given.tobytes() else name
    if kind is Variate:
        return _first([_differing(built._law, given._law, f"{name}._law"), _not_fresh(given._u, name)])
    if kind is SystemSource:
        return name if _not_secure(given) else None
    if kind is _LOCK:
        return name if given.locked() else None
    if not _known(kind) or not hasattr(given, "__dict__"):
        return None if built is given and _known(kind) else name
    where = _altered(given, name) if dataclasses.is_dataclass(kind) else None
    return _attributes(built, given, name) if where is None else where


def _not_fresh(uniform: Any, name: str) -> str | None:
    fresh = (
        type(uniform) is LazyUniform
        and type(uniform.value) is int
        and (uniform.bits, type(uniform._source)) == (_FRESH_BITS, SystemSource)
        and 0 <= uniform.value < 1 << _FRESH_BITS
    )
    return None if fresh else f"{name}._u"


def _attributes(built: Any, given: Any, name: str) -> str | None:
    expected, held = dict(vars(built)), vars(given)
    for key in held:  # what is computed once and kept is computed here too
        if key not in expected and isinstance(getattr(type(built), key, None), functools.cached_property):
            expected[key] = getattr(built, key)
    for key in expected.keys() ^ held.keys():
        if not isinstance(getattr(type(built), key, None), functools.cached_property):
            return f"{name}.{key}"
    return _first(_differing(expected[key], held[key], f"{name}.{key}") for key in held)


def _first(result: Any) -> str | None:
    return next((where for where in result if where is not None), None)


__all__ = ["require_genuine"]
