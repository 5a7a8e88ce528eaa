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

    def __init__(self, value: object) -> None:
        self.container = value


Child = tuple[str, Any]


def leaves(output: Any) -> Iterator[tuple[str, Leaf]]:
    """Every leaf of an output with its path, in an order that depends only on the output."""
    stack: list[Child] = [("", output)]
    inside: dict[int, int] = {}  # the depth of every container that is being visited
    while stack:
        path, value = stack.pop()
        kind = type(value)
        if kind is Leaf:
            yield path, value
        elif kind is float:
            yield path, Leaf("float", value)
        elif kind is _EndOfContainer:
            del inside[id(value.container)]
        elif id(value) in inside:
            yield path, Leaf(f"itself, {len(inside) - inside[id(value)]} up")
        else:
            children = _parts(value)
            count = 0
            while count < len(children) and type(children[count][1]) is Leaf:
                yield path + children[count][0], children[count][1]
                count += 1
            if count < len(children):
                inside[id(value)] = len(inside)
                stack.append((path, _EndOfContainer(value)))
                stack.extend([(path + name, child) for name, child in reversed(children[count:])])


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


def _parts(value: Any) -> list[Child]:
    """A single leaf, or the named parts of a value."""
    decomposers = _CONTAINERS if type(value) in _BUILT_IN else _OTHERS
    for decompose in decomposers:
        result = decompose(value)
        if result is not None:
            return result
    return _object(value)


def _scalar(value: Any) -> list[Child] | None:
    kind = type(value)
    if kind is float:
        return [("", Leaf("float", value))]
    if kind is int:
        return [("", Leaf("int", value))] if -_EXACT <= value <= _EXACT else _long(value, "int")
    if kind is str or kind is bytes:
        return [("", Leaf(_quoted(value)))]
    if value is None or kind is bool or value is NotImplemented or value is Ellipsis:
        return [("", Leaf(repr(value)))]
    if kind is Raised:
        return [("", Leaf(f"raised {value.kind}")), (" message", value.message)]
    if kind is Warned:
        return [(" warnings", value.warnings), ("", value.output)]
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


def _number(value: Any) -> list[Child] | None:
    """Numbers of other types, and subclasses of built-in scalars with their attributes."""
    kind = type(value).__qualname__
    if isinstance(value, np.generic):
        return _numpy(value)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        real = np.nan if value.is_nan() else _real(value)
        result: list[Child] = [("", Leaf(kind, real)), (" sign", Leaf("int", sign)), (" exponent", exponent)]
        return [*result, (" coefficient", int("".join(map(str, digits)) or "0")), *_attribute_parts(value)]
    if isinstance(value, Fraction):
        parts = [(" numerator", value.numerator), (" denominator", value.denominator)]
        return [("", Leaf(kind, _real(value))), *parts, *_attribute_parts(value)]
    if isinstance(value, float):
        return [("", Leaf(kind, float(value))), *_attribute_parts(value)]
    if isinstance(value, complex):
        return [("", Leaf(kind)), (" real", value.real), (" imaginary", value.imag), *_attribute_parts(value)]
    if isinstance(value, int):
        return [
            ("", Leaf(kind, int(value) if abs(value) <= _EXACT else None)),
            (" whole", int(value)),
            *_attribute_parts(value),
        ]
    if isinstance(value, (str, bytes, bytearray)):
        plain = str.__str__(value) if isinstance(value, str) else bytes(value)
        return [(" type", Leaf(kind)), ("", Leaf(_quoted(plain))), *_attribute_parts(value)]
    return None


def _view(value: Any) -> list[Child] | None:
    if not isinstance(value, memoryview):
        return None
    layout = f"memoryview {value.format} {value.shape} {value.strides} {value.readonly}"
    return [(" type", Leaf(layout)), ("", value.tobytes())]


def _attribute_parts(instance: Any) -> list[Child]:
    return [(f".{name}", value) for name, value in sorted(attributes(instance).items())]


def _numpy(value: Any) -> list[Child]:
    kind = value.dtype.kind
    if kind == "b":
        return [("", Leaf(f"numpy.{bool(value)}"))]
    if kind in "iu":
        whole = int(value)
        return [("", Leaf(value.dtype.name, whole))] if abs(whole) <= _EXACT else _long(whole, value.dtype.name)
    if kind == "f" and value.dtype.itemsize <= 8:
        return [("", Leaf(value.dtype.name, float(value)))]
    return [(" scalar", np.asarray(value))]


def _array(instance: Any) -> list[Child] | None:
    if not isinstance(instance, np.ndarray):
        return None
    subclass = "" if type(instance) is np.ndarray else f" {type(instance).__qualname__}"
    result: list[Child] = [
        (" shape", Leaf(f"{instance.shape} {instance.dtype}{subclass}")),
        (" length", Leaf("int", instance.size)),
    ]
    order = instance.flags.c_contiguous, instance.flags.f_contiguous
    if order != (True, True):
        result.append((" order", Leaf(str(order))))
    if isinstance(instance, np.ma.MaskedArray):
        return [*result, ("", instance.data), (" mask", np.ma.getmaskarray(instance)), (" fill", instance.fill_value)]
    flat = np.asarray(instance).ravel()
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


def _table(value: Any) -> list[Child] | None:
    """The columns of a table, and its rows once more, each under its key."""
    columns = columns_of(value)
    if columns is None:
        return None
    return [(" type", Leaf(type(value).__qualname__)), *columns, *_keyed(value)]


def _keyed(instance: Any) -> list[Child]:
    return [(path, Leaf("present") if value is ... else value) for path, value in keyed_rows(instance, name_of)]


def _container(instance: Any) -> list[Child] | None:
    kind = type(instance).__qualname__
    attributes_of_subclass = [] if type(instance) in _BUILT_IN else _attribute_parts(instance)
    if isinstance(instance, Mapping):
        names = [name_of(key) for key in instance]
        values = [(f"[{name}]", value) for name, value in zip(names, instance.values(), strict=True)]
        return [(" type", Leaf(kind)), (" keys", Leaf(", ".join(names))), *values, *attributes_of_subclass]
    if isinstance(instance, Set):
        names = sorted(name_of(element) for element in instance)
        result = [(f" has {name}", Leaf("present")) for name in names]
        return [(" type", Leaf(kind)), (" size", Leaf("int", len(names))), *result, *attributes_of_subclass]
    if isinstance(instance, (list, tuple, deque)):
        rows = _keyed(instance) if instance and isinstance(instance[0], Mapping) else []
        return [*_sequence(instance, kind), *rows, *attributes_of_subclass]
    return None


def _sequence(instance: Any, kind: str) -> list[Child]:
    """The elements of a sequence, as one vector if they are numbers of one type that 64 bits represent exactly."""
    length: Child = (" length", Leaf("int", len(instance)))
    kinds = set(map(type, instance))
    if len(kinds) == 1:
        (element,) = kinds
        if element is float or element is np.float64:
            vector = np.array(instance, dtype=np.float64)
            return [(" type", Leaf(f"{kind} of {element.__name__}")), length, ("", Leaf("floats", vector))]
        if (element is int or element is np.int64) and all(-_EXACT <= value <= _EXACT for value in instance):
            vector = np.array(instance, dtype=np.int64)
            return [(" type", Leaf(f"{kind} of {element.__name__}")), length, ("", Leaf("ints", vector))]
    return [(" type", Leaf(kind)), length, *((f"[{position}]", value) for position, value in enumerate(instance))]


def _callable(value: Any) -> list[Child] | None:
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    if isinstance(value, type):
        return [("", Leaf(f"class {name}"))]
    if isinstance(value, (ModuleType, BuiltinFunctionType)):
        return [("", Leaf(_ADDRESS.sub("", repr(value))))]
    if isinstance(value, MethodType):
        return [(" type", Leaf("method")), (".__func__", value.__func__), (".__self__", value.__self__)]
    if isinstance(value, FunctionType):
        module = sys.modules.get(value.__module__)
        if module is not None and vars(module).get(value.__qualname__) is value:
            return [("", Leaf(f"function {name}"))]
        names = ("__code__", "__defaults__", "__kwdefaults__", "__closure__")
        return [
            (" type", Leaf("function")),
            *((f".{name}", getattr(value, name)) for name in names),
            *_attribute_parts(value),
        ]
    if isinstance(value, CodeType):
        fields = ("co_name", "co_code", "co_consts", "co_names", "co_varnames", "co_freevars")
        return [(" type", Leaf("code")), *((f".{name}", getattr(value, name)) for name in fields)]
    if isinstance(value, CellType):
        return [(" type", Leaf("cell")), *([(".contents", value.cell_contents)] if value != CellType() else [])]
    return None


_BUILT_IN = frozenset({dict, list, tuple, set, frozenset, deque})
_CONTAINERS = (_container,)
_OTHERS = (_scalar, _number, _view, _array, _table, _container, _callable)


def _object(value: Any) -> list[Child]:
    kind: Child = (" type", Leaf(f"{type(value).__module__}.{type(value).__qualname__}"))
    stored = _attribute_parts(value)
    if stored:
        return [kind, *stored, *_keyed(value)]
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # a lock, a connection, a generator
        return [kind, ("", Leaf(_ADDRESS.sub("", repr(value))))]
    return [kind, (" kept", reduced)]


__all__ = ["MODULUS", "ContentEquality", "Leaf", "Raised", "Warned", "digest", "leaves", "name_of"]
