"""A lossless canonical form of outputs of arbitrary type.

An output is decomposed into *leaves*, each with a path: the number itself, ``[3]`` of a list, ``['north']`` of a dict,
the presence of a key or an element, a cell of a table, its index, the names and types of its columns, the type and
message of an error, a warning. A leaf has a *kind* (the exact type of a number, or a text that represents anything
else) and possibly a number or a vector of numbers. Outputs that a recipient can distinguish differ in some leaf;
outputs that are equal in value, type, names, index, shape and order have identical leaves. Nothing is rounded or
truncated: values that a 64-bit float or integer cannot represent (long integers, decimals, fractions, extended floats)
have additional leaves for the remainder.

>>> [(path, leaf.kind) for path, leaf in leaves({"n": 2.5})]
[(' type', 'dict'), (' keys', "'n'"), ("['n']", 'float')]
>>> digest([1, 2]) == digest([1, 2]), digest([1, 2]) == digest([1, 2.0])
(True, False)
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.audit.outputs.dataframes import columns_of, keyed_rows
from dither.audit.outputs.equality import attributes

Array = NDArray[Any]

MODULUS = 4512611027925 << 20
"""The residue modulo this number determines the residues modulo 2^20 and modulo every odd number up to 31."""
_EXACT = 1 << 53
_WORD = (1 << 62) - 1
_ADDRESS = re.compile(r"\b0x[0-9a-f]+")
_KEYS = (str, int, bool, float, bytes, type(None))


@dataclass(frozen=True)
class Raised:
    """An error, treated as an output.

    >>> Raised.by(ValueError("too few"))
    Raised(kind='ValueError', message='too few')
    """

    kind: str
    message: str

    @classmethod
    def by(cls, error: BaseException) -> Raised:
        """What an error shows to its reader: its type, message, notes and the chain of its causes."""
        messages, visited = list[str](), set[int]()
        step: BaseException | None = error
        while step is not None and id(step) not in visited:
            visited.add(id(step))
            try:
                text = "\n".join([str(step), *map(str, getattr(step, "__notes__", ()))])
            except Exception:
                text = "…"
            messages.append(text if step is error else f"{type(step).__qualname__}: {text}")
            step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)
        return cls(type(error).__qualname__, "\n".join(messages))


@dataclass(frozen=True)
class Warned:
    """An output together with the category and message of every warning issued while it was computed.

    >>> Warned(0.5, (("RuntimeWarning", "overflow encountered"),)).output
    0.5
    """

    output: Any
    warnings: tuple[tuple[str, str], ...]


class Leaf(NamedTuple):
    """A kind, with a number (int, float) or a vector (64-bit integers or floats) where there is one.

    >>> Leaf("float32", 0.5)
    Leaf(kind='float32', value=0.5)
    """

    kind: str
    value: Any = None


class _EndOfContainer:
    """A marker on the stack for the end of a container."""

    def __init__(self, thing: object) -> None:
        self.thing = thing


Child = tuple[str, Any]


def leaves(output: Any) -> Iterator[tuple[str, Leaf]]:
    """Every leaf of an output with its path, in an order that depends only on the output."""
    stack: list[Child] = [("", output)]
    inside: dict[int, int] = {}  # the depth of every container that is being visited
    while stack:
        path, thing = stack.pop()
        kind = type(thing)
        if kind is Leaf:
            yield path, thing
        elif kind is float:
            yield path, Leaf("float", thing)
        elif kind is _EndOfContainer:
            del inside[id(thing.thing)]
        elif id(thing) in inside:
            yield path, Leaf(f"itself, {len(inside) - inside[id(thing)]} up")
        else:
            children = _parts(thing)
            done = 0
            while done < len(children) and type(children[done][1]) is Leaf:
                yield path + children[done][0], children[done][1]
                done += 1
            if done < len(children):
                inside[id(thing)] = len(inside)
                stack.append((path, _EndOfContainer(thing)))
                stack.extend([(path + name, child) for name, child in reversed(children[done:])])


def digest(output: Any) -> bytes:
    """A hash of the canonical form."""
    result = blake2b(digest_size=16)
    for path, leaf in leaves(output):
        value = leaf.value
        exact = (
            value.tobytes()
            if isinstance(value, np.ndarray)
            else np.float64(value).tobytes()
            if type(value) is float
            else repr(value).encode()
        )
        for part in (path.encode("utf-8", "surrogatepass"), leaf.kind.encode("utf-8", "surrogatepass"), exact):
            result.update(len(part).to_bytes(8, "big") + part)
    return result.digest()


class ContentEquality:
    """Equality and hashing by content, for values that contain arrays."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and digest(other) == digest(self)

    def __hash__(self) -> int:
        return hash(digest(self))


def name_of(key: Any) -> str:
    """The name of a dict key or set element within a path; distinct keys have distinct names."""
    if type(key) in _KEYS or (type(key) is tuple and all(type(part) in _KEYS for part in key)):
        return repr(key)
    return f"{type(key).__qualname__}:{digest(key).hex()}"


def _parts(thing: Any) -> list[Child]:
    """A single leaf, or the named parts of a value."""
    decomposers = _CONTAINERS if type(thing) in _BUILT_IN else _OTHERS
    for decompose in decomposers:
        result = decompose(thing)
        if result is not None:
            return result
    return _object(thing)


def _scalar(thing: Any) -> list[Child] | None:
    kind = type(thing)
    if kind is float:
        return [("", Leaf("float", thing))]
    if kind is int:
        return [("", Leaf("int", thing))] if -_EXACT <= thing <= _EXACT else _long(thing, "int")
    if kind is str or kind is bytes:
        return [("", Leaf(_quoted(thing)))]
    if thing is None or kind is bool or thing is NotImplemented or thing is Ellipsis:
        return [("", Leaf(repr(thing)))]
    if kind is Raised:
        return [("", Leaf(f"raised {thing.kind}")), (" message", thing.message)]
    if kind is Warned:
        return [(" warnings", thing.warnings), ("", thing.output)]
    return None


def _quoted(text: str | bytes) -> str:
    """A text in quotes, one character per character or byte; no other kind begins with a quote."""
    return f"'{text}'" if isinstance(text, str) else f"b'{text.decode('latin-1')}'"


def _long(value: int, kind: str) -> list[Child]:
    """An integer that no float represents exactly: its residues, its low bits and all of its digits."""
    short = value if -(1 << 63) <= value < 1 << 63 else _real(value)
    return [
        ("", Leaf(kind, short)),
        (" residue", Leaf("int", value % MODULUS)),
        (" low bits", Leaf("int", value & _WORD)),
        (" digits", Leaf(hex(value))),
    ]


def _real(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _number(thing: Any) -> list[Child] | None:
    """Numbers of other types, and subclasses of built-in scalars with their attributes."""
    kind = type(thing).__qualname__
    if isinstance(thing, np.generic):
        return _numpy(thing)
    if isinstance(thing, Decimal):
        sign, digits, exponent = thing.as_tuple()
        real = np.nan if thing.is_nan() else _real(thing)
        result: list[Child] = [("", Leaf(kind, real)), (" sign", Leaf("int", sign)), (" exponent", exponent)]
        return [*result, (" coefficient", int("".join(map(str, digits)) or "0")), *_attribute_parts(thing)]
    if isinstance(thing, Fraction):
        parts = [(" numerator", thing.numerator), (" denominator", thing.denominator)]
        return [("", Leaf(kind, _real(thing))), *parts, *_attribute_parts(thing)]
    if isinstance(thing, float):
        return [("", Leaf(kind, float(thing))), *_attribute_parts(thing)]
    if isinstance(thing, complex):
        return [("", Leaf(kind)), (" real", thing.real), (" imaginary", thing.imag), *_attribute_parts(thing)]
    if isinstance(thing, int):
        return [
            ("", Leaf(kind, int(thing) if abs(thing) <= _EXACT else None)),
            (" whole", int(thing)),
            *_attribute_parts(thing),
        ]
    if isinstance(thing, (str, bytes, bytearray)):
        plain = str.__str__(thing) if isinstance(thing, str) else bytes(thing)
        return [(" type", Leaf(kind)), ("", Leaf(_quoted(plain))), *_attribute_parts(thing)]
    return None


def _view(thing: Any) -> list[Child] | None:
    if not isinstance(thing, memoryview):
        return None
    shown = f"memoryview {thing.format} {thing.shape} {thing.strides} {thing.readonly}"
    return [(" type", Leaf(shown)), ("", thing.tobytes())]


def _attribute_parts(thing: Any) -> list[Child]:
    return [(f".{name}", value) for name, value in sorted(attributes(thing).items())]


def _numpy(thing: Any) -> list[Child]:
    kind = thing.dtype.kind
    if kind == "b":
        return [("", Leaf(f"numpy.{bool(thing)}"))]
    if kind in "iu":
        whole = int(thing)
        return [("", Leaf(thing.dtype.name, whole))] if abs(whole) <= _EXACT else _long(whole, thing.dtype.name)
    if kind == "f" and thing.dtype.itemsize <= 8:
        return [("", Leaf(thing.dtype.name, float(thing)))]
    return [(" scalar", np.asarray(thing))]


def _array(thing: Any) -> list[Child] | None:
    if not isinstance(thing, np.ndarray):
        return None
    subclass = "" if type(thing) is np.ndarray else f" {type(thing).__qualname__}"
    result: list[Child] = [
        (" shape", Leaf(f"{thing.shape} {thing.dtype}{subclass}")),
        (" length", Leaf("int", thing.size)),
    ]
    order = thing.flags.c_contiguous, thing.flags.f_contiguous
    if order != (True, True):
        result.append((" order", Leaf(str(order))))
    if isinstance(thing, np.ma.MaskedArray):
        return [*result, ("", thing.data), (" mask", np.ma.getmaskarray(thing)), (" fill", thing.fill_value)]
    flat = np.asarray(thing).ravel()
    kind = flat.dtype.kind
    if kind == "b":
        return [*result, ("", Leaf("ints", flat.astype(np.int64)))]
    if kind in "mM":
        return [*result, ("", Leaf("ints", flat.astype(flat.dtype.newbyteorder("=")).view(np.int64)))]
    if kind == "c":
        return [*result, (" real", flat.real.copy()), (" imaginary", flat.imag.copy())]
    if kind == "u" and flat.dtype.itemsize == 8 and flat.size and int(flat.max()) >= 1 << 63:
        low = (flat & np.uint64(_WORD)).astype(np.int64)
        return [*result, ("", Leaf("floats", flat.astype(np.float64))), (" low bits", Leaf("ints", low)),
                (" high bits", Leaf("ints", (flat >> np.uint64(62)).astype(np.int64)))]  # fmt: skip
    if kind in "iu":
        return [*result, ("", Leaf("ints", flat.astype(np.int64)))]
    if kind == "f" and flat.dtype.itemsize <= 8:
        return [*result, ("", Leaf("floats", flat.astype(np.float64)))]
    if kind == "f":
        short = flat.astype(np.float64)
        with np.errstate(invalid="ignore"):
            rest = (flat - short).astype(np.float64)
        return [*result, ("", Leaf("floats", short)), (" rest", Leaf("floats", rest))]
    if flat.dtype.names:
        return [*result, *((f".{name_of(name)}", flat[name]) for name in flat.dtype.names)]
    return [*result, *((f"[{position}]", value) for position, value in enumerate(flat.tolist()))]


def _table(thing: Any) -> list[Child] | None:
    """The columns of a table, and its rows once more, each under its key."""
    columns = columns_of(thing)
    if columns is None:
        return None
    return [(" type", Leaf(type(thing).__qualname__)), *columns, *_keyed(thing)]


def _keyed(thing: Any) -> list[Child]:
    return [(path, Leaf("present") if value is ... else value) for path, value in keyed_rows(thing, name_of)]


def _container(thing: Any) -> list[Child] | None:
    kind = type(thing).__qualname__
    more = [] if type(thing) in _BUILT_IN else _attribute_parts(thing)
    if isinstance(thing, Mapping):
        names = [name_of(key) for key in thing]
        values = [(f"[{name}]", value) for name, value in zip(names, thing.values(), strict=True)]
        return [(" type", Leaf(kind)), (" keys", Leaf(", ".join(names))), *values, *more]
    if isinstance(thing, Set):
        names = sorted(name_of(element) for element in thing)
        result = [(f" has {name}", Leaf("present")) for name in names]
        return [(" type", Leaf(kind)), (" size", Leaf("int", len(names))), *result, *more]
    if isinstance(thing, (list, tuple, deque)):
        rows = _keyed(thing) if thing and isinstance(thing[0], Mapping) else []
        return [*_sequence(thing, kind), *rows, *more]
    return None


def _sequence(thing: Any, kind: str) -> list[Child]:
    """The elements of a sequence, as one vector if they are numbers of one type that 64 bits represent exactly."""
    length: Child = (" length", Leaf("int", len(thing)))
    kinds = set(map(type, thing))
    if len(kinds) == 1:
        (element,) = kinds
        if element is float or element is np.float64:
            vector = np.array(thing, dtype=np.float64)
            return [(" type", Leaf(f"{kind} of {element.__name__}")), length, ("", Leaf("floats", vector))]
        if (element is int or element is np.int64) and all(-_EXACT <= value <= _EXACT for value in thing):
            vector = np.array(thing, dtype=np.int64)
            return [(" type", Leaf(f"{kind} of {element.__name__}")), length, ("", Leaf("ints", vector))]
    return [(" type", Leaf(kind)), length, *((f"[{position}]", value) for position, value in enumerate(thing))]


def _callable(thing: Any) -> list[Child] | None:
    name = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
    if isinstance(thing, type):
        return [("", Leaf(f"class {name}"))]
    if isinstance(thing, (ModuleType, BuiltinFunctionType)):
        return [("", Leaf(_ADDRESS.sub("", repr(thing))))]
    if isinstance(thing, MethodType):
        return [(" type", Leaf("method")), (".__func__", thing.__func__), (".__self__", thing.__self__)]
    if isinstance(thing, FunctionType):
        home = sys.modules.get(thing.__module__)
        if home is not None and vars(home).get(thing.__qualname__) is thing:
            return [("", Leaf(f"function {name}"))]
        names = ("__code__", "__defaults__", "__kwdefaults__", "__closure__")
        return [
            (" type", Leaf("function")),
            *((f".{name}", getattr(thing, name)) for name in names),
            *_attribute_parts(thing),
        ]
    if isinstance(thing, CodeType):
        fields = ("co_name", "co_code", "co_consts", "co_names", "co_varnames", "co_freevars")
        return [(" type", Leaf("code")), *((f".{name}", getattr(thing, name)) for name in fields)]
    if isinstance(thing, CellType):
        return [(" type", Leaf("cell")), *([(".contents", thing.cell_contents)] if thing != CellType() else [])]
    return None


_BUILT_IN = frozenset({dict, list, tuple, set, frozenset, deque})
_CONTAINERS = (_container,)
_OTHERS = (_scalar, _number, _view, _array, _table, _container, _callable)


def _object(thing: Any) -> list[Child]:
    kind: Child = (" type", Leaf(f"{type(thing).__module__}.{type(thing).__qualname__}"))
    stored = _attribute_parts(thing)
    if stored:
        return [kind, *stored, *_keyed(thing)]
    try:
        reduced = thing.__reduce_ex__(4)
    except Exception:  # a lock, a connection, a generator
        return [kind, ("", Leaf(_ADDRESS.sub("", repr(thing))))]
    return [kind, (" kept", reduced)]


__all__ = ["MODULUS", "ContentEquality", "Leaf", "Raised", "Warned", "digest", "leaves", "name_of"]
