"""Whether a mechanism is the one that its class and its parameters say.

A certificate is computed from what a mechanism holds, so it speaks of the object only if the object will do what the
class does with what the constructor computes. Two checks make that so:

* *The code.* Every function, class and constant of the modules that draw noise is the object it was when this module
  was imported, and every method comes from this package: a method that was replaced, a constant that was rebound or a
  law that was edited in place is noticed.
* *The object.* Its type is exactly a class of this package, and building it again from the values of its own
  constructor arguments gives the same attributes, all of them, computed and private ones included. A subclass, an
  attribute that was set by hand and a parameter of a type that is not known are refused.

A session that has answered cannot be told from one whose count was set back, so only one that was never asked passes.

>>> import dither as dp
>>> laplace = dp.Laplace(sensitivity=1, epsilon=1)
>>> require_genuine(laplace)
>>> object.__setattr__(laplace, "_scales", (0.5,))
>>> require_genuine(laplace)
Traceback (most recent call last):
dither.errors.NotPrivate: mechanism: expected a Laplace as its constructor builds it, got another value in
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
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from dither.errors import DitherError, NotPrivate, message
from dither.mechanisms import ReusableHoldout, SparseVector, SparseVectorSession
from dither.randomness import LazyUniform, SystemSource, Variate

Parts = dict[str, object]

_PACKAGES = (
    "accounting", "arguments", "exact", "guarantees", "intake", "mechanisms", "randomness", "spending", "stateful",
)  # fmt: skip
_FOLDER = str(Path(__file__).parent.parent)
_REBOUND = {"dither.randomness.source._generation", "dither.stateful._forks"}  # these count forks
_PLAIN: frozenset[type] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, fractions.Fraction, decimal.Decimal, uuid.UUID}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
_FRESH_BITS = 63
_LOCK = type(threading.Lock())


def _modules() -> list[ModuleType]:
    wanted = tuple(f"dither.{name}" for name in _PACKAGES)
    names = sorted(name for name in sys.modules if name in wanted or name.startswith(tuple(f"{w}." for w in wanted)))
    return [sys.modules[name] for name in names]


def _code() -> Parts:
    """Everything that the modules which draw noise are made of, by name."""
    found: Parts = {}
    for module in _modules():
        for name, value in vars(module).items():
            if not (name.startswith("__") or isinstance(value, ModuleType)):
                home = getattr(value, "__module__", module.__name__) == module.__name__
                full = f"{module.__name__}.{name}"
                whole = home or not isinstance(value, (type, FunctionType))  # else it is looked at where it is at home
                found.update(_parts(full, value) if whole else [(full, value)])
    return {name: value for name, value in found.items() if name not in _REBOUND}


def _parts(name: str, value: Any) -> Iterator[tuple[str, object]]:
    """A thing and what it is made of, so far as that can be changed in place."""
    yield name, value
    if isinstance(value, FunctionType):
        yield f"{name}.__code__", value.__code__
        yield f"{name}.__defaults__", value.__defaults__
        for key, default in (value.__kwdefaults__ or {}).items():
            yield f"{name}.__kwdefaults__.{key}", default
        for place, cell in enumerate(value.__closure__ or ()):
            inner, content = f"{name}.__closure__[{place}]", _content(cell)
            # the classes that methods close over have a place of their own
            yield from _parts(inner, content) if isinstance(content, FunctionType) else [(inner, content)]
    elif isinstance(value, (staticmethod, classmethod)):
        yield from _parts(f"{name}.__func__", value.__func__)
    elif isinstance(value, property):
        yield from _parts(f"{name}.fget", value.fget)
        yield from _parts(f"{name}.fset", value.fset)
    elif isinstance(value, functools.cached_property):
        yield from _parts(f"{name}.func", value.func)
    elif isinstance(value, functools._lru_cache_wrapper):
        yield from _parts(f"{name}.__wrapped__", value.__wrapped__)
    elif isinstance(value, type):
        for key, member in vars(value).items():
            if not key.startswith("__") or isinstance(member, (FunctionType, property)):
                yield from _parts(f"{name}.{key}", member)
    elif isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, list):
        yield from ((f"{name}[{place}]", item) for place, item in enumerate(value))
    elif dataclasses.is_dataclass(value):
        yield from ((f"{name}.{each.name}", getattr(value, each.name)) for each in dataclasses.fields(value))


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not yet bound
        return None


def _foreign(found: Parts) -> list[str]:
    """Methods whose code is not from this package; what a dataclass writes comes from a string."""
    owned = {name.removesuffix(".__code__"): value for name, value in found.items() if isinstance(value, CodeType)}
    methods = {name for kind in _kinds() for name in _methods(kind)}
    return sorted(
        name
        for name, code in owned.items()
        if name in methods
        and not code.co_filename.startswith(_FOLDER)
        and not (code.co_filename == "<string>" and name.rsplit(".", 1)[-1].startswith("__"))
        and not code.co_filename.startswith(str(Path(dataclasses.__file__).parent))
    )


def _kinds() -> list[type]:
    return [
        value
        for module in _modules()
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]


def _methods(kind: type) -> Iterator[str]:
    for key, member in vars(kind).items():
        if isinstance(member, FunctionType):
            yield f"{kind.__module__}.{kind.__qualname__}.{key}"
        elif isinstance(member, property):
            yield f"{kind.__module__}.{kind.__qualname__}.{key}.fget"


_AT_IMPORT = _code()
_KNOWN: frozenset[type] = frozenset(_kinds())


def changed_code() -> list[str]:
    """The names of what is no longer what it was at import, or never was this package's own."""
    now = _code()
    names = {*now, *_AT_IMPORT}
    changed = sorted(name for name in names if now.get(name, _Missing) is not _AT_IMPORT.get(name, _Missing))
    return changed or _foreign(now)


def _refuse_changed_code() -> None:
    changed = changed_code()
    if changed:
        raise NotPrivate(
            message(
                "mechanism",
                "the code of dither as it was imported",
                f"another {changed[0]}",
                "start Python anew and leave the code alone",
            )
        )


class _Missing:
    """Stands for what was not there."""


def require_genuine(mechanism: Any, name: str | None = None) -> None:
    """Refuse an object that is not what its class and its constructor arguments make."""
    _refuse_changed_code()
    kind = type(mechanism)
    shown = kind.__name__ if name is None else name
    if kind not in _KNOWN:
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
    return kind(**{each.name: getattr(mechanism, each.name) for each in dataclasses.fields(kind) if each.init})


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
        return None
    if kind is _LOCK:
        return name if given.locked() else None
    if kind not in _KNOWN or not hasattr(given, "__dict__"):
        return None if built is given and kind in _KNOWN else name
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


def _first(found: Any) -> str | None:
    return next((where for where in found if where is not None), None)


__all__ = ["require_genuine"]
