"""A lossless canonical form of outputs of arbitrary type.

An output is decomposed into *leaves*, each with a path: the number itself, ``[3]`` of a list, ``['north']`` of a dict,
the presence of a key or an element, a cell of a table, its index, the names and types of its columns, the type and
message of an error, a warning. A leaf has a *kind* (the exact type of a number, or a text that represents anything
else) and possibly a number or a vector of numbers. Outputs that a recipient can distinguish differ in some leaf;
outputs that are equal in value, type, names, index, shape and order have identical leaves. Nothing is rounded or
truncated: values that a 64-bit float or integer cannot represent (long integers, decimals, fractions, extended floats)
have additional leaves for the remainder.

The form is that of the *structure* and never what an object says about itself: its ``==``, ``hash``, ``repr``,
iteration and properties are not asked where a class of Python defines them. An object consists of what its built-in
base holds, of its slots and ``__dict__``, and of its class, unless that can be imported. What lies behind a value and
can be reached from it belongs to it: the base of a view, the values under a mask or null, the categories that no row
has, the closure of a function, the items of an iterator.

*Rule.* What has a state that cannot be decomposed (a connection, a socket, a type of another language without a known
form) is a leaf of the kind :data:`OPAQUE`. It cannot be compared, and nothing concludes that two of them are equal.

>>> [(path, leaf.kind) for path, leaf in leaves({"n": 2.5})]
[(' type', 'dict'), (' keys', "'n'"), ("['n']", 'float')]
>>> digest([1, 2]) == digest([1, 2]), digest([1, 2]) == digest([1, 2.0])
(True, False)
>>> difference({"n": 3, "keys": ["a"]}, {"n": 3, "keys": ["b"]})
' at [key 2][0]'
>>> import sqlite3
>>> next(leaf.kind for _, leaf in leaves(sqlite3.connect(":memory:")))
'cannot be compared: sqlite3.Connection'
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    TracebackType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.audit.outputs.libraries import Opaque, Shared, keyed_rows, library_parts, module_of
from dither.public_module import defining_module

Array = NDArray[Any]
Attributes = dict[str, Any]

MODULUS = 4512611027925 << 20
"""The residue modulo this number determines the residues modulo 2^20 and modulo every odd number up to 31."""
OPAQUE = "cannot be compared: "
"""How the kind of a leaf begins that stands for something which cannot be decomposed."""
_EXACT = 1 << 53
_WORD = (1 << 62) - 1
_MAX_ITEMS = 1 << 16
_MAX_LEAVES = 1 << 22
_MAX_FILE = 1 << 26
_PLACE = re.compile(r"(?:\.[^ .\[{]+|\[[^\]]*\]|\{\d+\})*")
_POINTER = 8
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not a static type of C
_KEYS = (str, int, bool, float, bytes, type(None))
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_CACHED = type(lru_cache(abs))
_LAZY = (map, filter, zip, enumerate)
_CALLING = ("starmap", "accumulate", "filterfalse", "dropwhile", "groupby", "_grouper")
"""Iterators of itertools that call a function, which may release."""
_FILES = (io.TextIOWrapper, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.FileIO)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_DESCRIPTORS = (GetSetDescriptorType, MemberDescriptorType, WrapperDescriptorType)
_CLASS_INTERNALS = {"__dict__", "__weakref__", "_abc_impl", "__subclasshook__", "__abstractmethods__", "__slotnames__"}


class Stopped(BaseException):
    """Raised by an auditor to end a run; unlike any other error, it is no output."""


@dataclass(frozen=True)
class Raised:
    """An error that a run raised, treated as its output: the type, and the message with notes and causes."""

    kind: str
    message: str
    error: BaseException | None = field(default=None, repr=False, compare=False)

    @classmethod
    def by(cls, error: BaseException) -> Raised:
        """Return an error with what it shows to its reader: its type, message, notes and the chain of its causes."""
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
        return cls(type(error).__qualname__, "\n".join(messages), error)


@dataclass(frozen=True)
class Warned:
    """An output with the warnings that were issued while it was computed, and with everything else that was left
    behind.

    Warnings are pairs of category and message; effects are what was printed, logged, written or set.
    """

    output: Any
    warnings: tuple[tuple[str, str], ...] = ()
    effects: tuple[tuple[str, Any], ...] = ()


class Leaf(NamedTuple):
    """A kind, with a number (int, float) or a vector (64-bit integers or floats) where there is one."""

    kind: str
    value: Any = None

    @property
    def exact(self) -> bytes:
        """Return the number or vector as bytes, which are equal if and only if every bit of it is."""
        value = self.value
        if isinstance(value, np.ndarray):
            return value.tobytes()
        return np.float64(value).tobytes() if type(value) is float else repr(value).encode()


@dataclass(frozen=True, eq=False)
class Frozen:
    """An output as the leaves that it had when it was observed, so that a later change of the object does not
    matter.
    """

    leaves: tuple[tuple[str, str, Leaf], ...]

    @classmethod
    def of(cls, output: Any) -> Frozen:
        """Decompose an output now."""
        return cls(tuple((path, shown, leaf) for path, shown, leaf in _walk(output)))

    @property
    def opaque(self) -> tuple[str, ...]:
        """Return what cannot be compared, each with its location in the output."""
        return tuple(
            dict.fromkeys(
                f"{leaf.kind.removeprefix(OPAQUE)}{location(shown)}"
                for _, shown, leaf in self.leaves
                if leaf.kind.startswith(OPAQUE)
            )
        )


class _EndOfContainer:
    """A marker on the stack for the end of a container."""

    def __init__(self, value: object) -> None:
        self.container = value


Child = tuple[str, Any] | tuple[str, Any, str]
"""The name of a part within a path, the part, and, where the name holds a value, the name to show instead."""


def leaves(output: Any) -> Iterator[tuple[str, Leaf]]:
    """Yield every leaf of an output with its path, in an order that depends only on the output."""
    for path, _, leaf in output.leaves if type(output) is Frozen else _walk(output):
        yield path, leaf


def _walk(output: Any) -> Iterator[tuple[str, str, Leaf]]:
    """Yield ``(path, shown, leaf)`` for every leaf; ``shown`` is the path without values, which a report may contain.

    The walk is depth-first with an explicit stack, so that deep outputs cannot overflow Python's. A container inside
    itself and a shared object that was seen before become leaves that say so; what cannot be decomposed, and everything
    after the first 2^22 parts, becomes an opaque leaf.
    """
    stack: list[tuple[str, str, Any]] = [("", "", output)]
    inside: dict[int, int] = {}  # the depth of every container that is being visited
    known: dict[int, tuple[int, Any]] = {}  # objects that were decomposed, kept alive so that ids are not reused
    names: dict[int, tuple[Any, str]] = {}
    count = 0
    while stack:
        path, shown, value = stack.pop()
        shared = type(value) is Shared
        value = value.value if shared else value
        kind = type(value)
        count += 1
        if kind is Leaf:
            yield path, shown, value
        elif kind is float:
            yield path, shown, Leaf("float", value)
        elif kind is _EndOfContainer:
            del inside[id(value.container)]
        elif kind is Frozen:
            for below, shown_below, leaf in value.leaves:
                yield path + below, shown + shown_below, leaf
        elif id(value) in inside:
            yield path, shown, Leaf(f"itself, {len(inside) - inside[id(value)]} up")
        elif count > _MAX_LEAVES:
            yield path, shown, Leaf(f"{OPAQUE}more than {_MAX_LEAVES} parts")
            return
        else:
            how = _decomposition_of(kind)
            if shared or how.shared:
                if id(value) in known:
                    yield path, shown, Leaf(f"part {known[id(value)][0]} again")
                    continue
                known[id(value)] = len(known), value
            try:
                outer, _naming.names = _naming.names, names if _naming.names is None else _naming.names
                try:
                    children = _parts(value, how)
                finally:
                    _naming.names = outer
            except Exception:
                children = [("", Leaf(f"{OPAQUE}{kind.__module__}.{kind.__qualname__}"))]
            first = 0
            while first < len(children) and type(children[first][1]) is Leaf:
                child = children[first]
                yield path + child[0], shown + (child[2] if len(child) == 3 else child[0]), child[1]
                first += 1
            if first < len(children):
                inside[id(value)] = len(inside)
                stack.append((path, shown, _EndOfContainer(value)))
                stack.extend(
                    (path + child[0], shown + (child[2] if len(child) == 3 else child[0]), child[1])
                    for child in reversed(children[first:])
                )


def digest(output: Any) -> bytes:
    """Return a 16-byte hash of the canonical form: equal for outputs with the same paths and leaves."""
    result = blake2b(digest_size=16)
    for path, leaf in leaves(output):
        for part in (path.encode("utf-8", "surrogatepass"), leaf.kind.encode("utf-8", "surrogatepass"), leaf.exact):
            result.update(len(part).to_bytes(8, "big") + part)
    return result.digest()


def difference(one: Any, other: Any) -> str | None:
    """Return the location at which two outputs first differ, such as ``" at a[0]"``; None if they are equal.

    The location contains no value of the outputs. What cannot be compared counts as different.
    """
    if one is other:
        return None
    first, second = (item if type(item) is Frozen else Frozen.of(item) for item in (one, other))
    location_text = first_difference(first, second)
    if location_text is None and first.opaque:
        return f" (cannot be compared: {first.opaque[0]})"
    return location_text


def differing(one: Frozen, other: Frozen) -> Iterator[tuple[int, bool]]:
    """Yield the index of every leaf that differs, and whether the outputs stop corresponding there.

    They do where the paths differ, or where one output has more leaves: nothing after that is compared.
    """
    for index, ((path, _, leaf), (other_path, _, other_leaf)) in enumerate(zip(one.leaves, other.leaves, strict=False)):
        if path != other_path:
            yield index, True
            return
        if leaf.kind != other_leaf.kind or leaf.exact != other_leaf.exact:
            yield index, False
    if len(one.leaves) != len(other.leaves):
        yield min(len(one.leaves), len(other.leaves)), True


def first_difference(one: Frozen, other: Frozen, varies: Callable[[int], bool] = lambda _: False) -> str | None:
    """Return the location of the first leaf that differs between two outputs, such as ``" at a[0]"``, or None.

    Leaves are skipped whose index in ``one`` satisfies ``varies``: those that differ between runs on one data set.
    What cannot be compared counts as equal here.
    """
    index = next((index for index, _ in differing(one, other) if not varies(index)), None)
    if index is None:
        return None
    if index >= min(len(one.leaves), len(other.leaves)):
        return location(max(one.leaves, other.leaves, key=len)[index][1])
    (_, shown, leaf), (_, _, other_leaf) = one.leaves[index], other.leaves[index]
    in_type = leaf.value is not None and leaf.kind != other_leaf.kind
    return location(shown + _first_position(leaf, other_leaf), in_type)


def _first_position(one: Leaf, other: Leaf) -> str:
    """Return the first index at which two vectors of one length differ, in brackets; an empty string for other
    leaves.
    """
    first, second = one.value, other.value
    if not (isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and first.shape == second.shape):
        return ""
    differs = first.view(np.int64) != second.view(np.int64)
    return f"[{int(np.argmax(differs))}]"


def location(shown: str, in_type: bool = False) -> str:
    """Return a path into an output in words, such as ``" at a[0] (in its index)"``; empty for the output itself.

    ``shown`` is the path and, after a space, the property of the part that is meant; ``in_type`` names the type where
    no property is given.
    """
    head = _PLACE.match(shown)
    assert head is not None
    place = f" at {head[0].removeprefix('.')}" if head[0] else ""
    detail = shown[head.end() :].strip() or ("type" if in_type else "")
    return f"{place} (in its {detail})" if detail else place


class ContentEquality:
    """Equality and hashing by content, for values that contain arrays."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and digest(other) == digest(self)

    def __hash__(self) -> int:
        return hash(digest(self))


def name_of(key: Any) -> str:
    """Return the name of a dict key or set element within a path; distinct keys have distinct names."""
    if type(key) in _KEYS or (type(key) is tuple and all(type(part) in _KEYS for part in key)):
        return repr(key)
    names = _naming.names
    if names is None:
        return f"{type(key).__qualname__}:{digest(key).hex()}"
    if id(key) not in names:
        names[id(key)] = key, f"{type(key).__qualname__}:{digest(key).hex()}"
    return names[id(key)][1]


class _Naming(threading.local):
    """The cache of :func:`name_of` during one decomposition, one for each thread: None outside of a decomposition.

    It maps the id of a key to the key and its name. The key is kept so that its id is not given to another object.
    """

    names: dict[int, tuple[Any, str]] | None = None


_naming = _Naming()


class _Decomposition(NamedTuple):
    """The way in which values of one type are decomposed: what the built-in base has, and what a subclass adds."""

    base: type
    decompose: Callable[[Any], list[Child]]
    shared: bool = False
    """Whether a second reference to the same object is a part of the form; containers are written out again."""
    internals: frozenset[str] | None = frozenset()
    """Attributes that hold what ``decompose`` returns, or caches of it; None if all do."""
    library: bool = False


def _decomposition_of(kind: Any) -> _Decomposition:
    """Return how values of a type are decomposed, also where its metaclass forbids hashing, which the cache needs."""
    try:
        return _decomposition(kind)
    except TypeError:
        return _decomposition.__wrapped__(kind)


@lru_cache(maxsize=1 << 12)
def _decomposition(kind: type) -> _Decomposition:
    """Return how values of a type are decomposed: by its first known base class, or by its slots and ``__dict__``."""
    for base in kind.__mro__:
        if base is not object and base in _BASES:
            return _Decomposition(base, _BASES[base], base in _SHARED, _INTERNALS.get(base, frozenset()))
        known = library_parts(base)
        if known is not None:
            decompose: Any = known[0]
            return _Decomposition(base, decompose, False, known[1], library=True)
    hidden = _hidden_state(kind)
    return _Decomposition(object, _hidden if hidden else lambda value: [_type_leaf(value)], True)


def _parts(value: Any, how: _Decomposition) -> list[Child]:
    """Return the named parts of a value, those of ``how`` first.

    A subclass of a built-in type, or an object of another library, can hold more than ``how`` knows of: its class,
    other attributes, and its rows by key are further parts.
    """
    kind = type(value)
    parts = how.decompose(value)
    if kind is how.base and not how.library:  # exactly a built-in type, which holds nothing else
        return parts
    stored = [] if how.internals is None else _attribute_parts(value, how.internals)
    return [*parts, *_class_parts(kind), *stored, *_keyed(value)]


def is_library(name: str) -> bool:
    """Return whether a module is part of Python, dither or an installed package, rather than of the audited code."""
    top = name.partition(".")[0]
    if top in ("__main__", "__mp_main__"):
        return False
    if top in sys.stdlib_module_names or top == "dither":
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


def _is_importable(value: Any) -> bool:
    """Return whether an object is found under its own name in the module that it names."""
    # a class that a package names as its own is loaded there only when it is asked for
    home = defining_module(value) if isinstance(value, type) else module_of(value)
    item: Any = sys.modules.get(home)
    for name in value.__qualname__.split("."):
        item = getattr(item, "__dict__", {}).get(name)
    return item is value


def _class_parts(kind: type) -> list[Child]:
    """Return the class of a value as one part to be compared; nothing for a class of a library, whose code is fixed."""
    return [] if _is_of_library(kind) else [(" class", kind)]


def _is_of_library(kind: type) -> bool:
    """Return whether a class is written in C, or is found in the library module that it names."""
    return not kind.__flags__ & _HEAP_TYPE or (is_library(module_of(kind)) and _is_importable(kind))


def _class(value: type) -> list[Child]:
    """Decompose a class into its name, bases and attributes; of one that can be imported, only what it stores."""
    result: list[Child] = [("", Leaf(f"class {module_of(value)}.{value.__qualname__}"))]
    if _is_of_library(value):
        return result
    importable = _is_importable(value)
    own = {name: item for name, item in vars(value).items() if name not in _CLASS_INTERNALS}
    if importable:  # its code is the same; what it stores may change
        own = {name: item for name, item in own.items() if not _is_code(name, item)}
    return [*result, (".__bases__", value.__bases__), *_named(own)]


def _is_code(name: str, item: Any) -> bool:
    """Return whether a class attribute is code (a method, a descriptor, a special name) rather than data."""
    return (name.startswith("__") and name.endswith("__")) or callable(item) or hasattr(item, "__get__")


def _named(items: Attributes) -> list[Child]:
    """Return attributes as children by name; a first leaf lists the names, so that a name is shown only if both outputs
    have it."""
    if not items:
        return []
    names = sorted(items, key=str)
    listed: Child = (" attributes", Leaf(", ".join(map(str, names))))
    return [listed, *((f".{name}", items[name]) for name in names)]


def _attribute_parts(value: Any, internals: frozenset[str] = frozenset()) -> list[Child]:
    """Return the attributes of an object as children, except those named in ``internals``."""
    stored = attributes(value)
    return _named({name: item for name, item in stored.items() if name not in internals} if internals else stored)


def attributes(instance: Any) -> Attributes:
    """Return everything stored in an object: its slots and its ``__dict__``, without the caches of library classes."""
    result: Attributes = {}
    kind = type(instance)
    for base in kind.__mro__:
        for name, descriptor in vars(base).items():
            if type(descriptor) is MemberDescriptorType and name not in result:
                try:
                    result[name] = descriptor.__get__(instance, kind)
                except Exception:  # an empty slot
                    continue
    try:
        stored = object.__getattribute__(instance, "__dict__")
    except AttributeError:
        return result
    if not isinstance(stored, (dict, MappingProxyType)):
        return {**result, "__dict__": stored}
    # whether a library computed a cached property says nothing about the value of an object
    return result | {name: value for name, value in dict.items(dict(stored)) if not _is_cache(kind, name)}


def _is_cache(kind: type, name: Any) -> bool:
    """Return whether an attribute is a cached property of a library class."""
    for base in kind.__mro__:
        item = vars(base).get(name)
        if item is not None:
            return isinstance(item, cached_property) and is_library(module_of(base))
    return False


def _hidden_state(kind: type) -> type | None:
    """Return the base class in C whose fields are neither slots nor in a ``__dict__``; None if there is none."""
    step: type | None = kind
    while step is not None and step is not object:
        base: type = step.__base__ or object
        own = vars(step)
        seen = sum(type(item) is MemberDescriptorType for item in own.values())
        seen += ("__dict__" in own) + ("__weakref__" in own)
        if step.__basicsize__ - base.__basicsize__ > _POINTER * seen or step.__itemsize__ != base.__itemsize__:
            return step
        step = base
    return None


def _type_leaf(value: Any) -> Child:
    """Return the qualified name of a value's class, as a first leaf."""
    return (" type", Leaf(f"{module_of(type(value))}.{type(value).__qualname__}"))


def _hidden(value: Any) -> list[Child]:
    """Decompose an object with a state in C: what pickling would write, its items if it is an iterator, or its
    bytes.
    """
    kind = type(value)
    hidden = _hidden_state(kind)
    assert hidden is not None
    lazy = hidden in _LAZY or (hidden.__module__ == "itertools" and hidden.__name__ in _CALLING)
    reduced = None if lazy else _reduced(value, kind, hidden)
    if reduced is not None:
        return [_type_leaf(value), (" kept", reduced)]
    if hasattr(kind, "__next__"):
        return [_type_leaf(value), *_drained(value)]
    try:
        with memoryview(value) as view:
            place: list[Child] = [(" place", value.tell())] if hasattr(kind, "tell") else []
            return [_type_leaf(value), (" bytes", view.tobytes()), *place]
    except Exception:
        return [("", Leaf(f"{OPAQUE}{module_of(kind)}.{kind.__qualname__}"))]


def _reduced(value: Any, kind: type, hidden: Any) -> Any:
    """Return what the class in C itself writes when it is pickled; None if it does not, or if a subclass interferes.

    ``kind`` is the type of ``value``, and ``hidden`` the base class in C, whose state Python cannot read. The result is
    a tuple as ``__reduce__`` returns it, or the name of a global.
    """
    import copyreg

    names = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
    for base in kind.__mro__:
        if base is hidden:
            break
        if any(name in vars(base) for name in names):
            return None
    own = [vars(base) for base in hidden.__mro__ if base is not object]
    try:
        if hidden in copyreg.dispatch_table:
            result: Any = copyreg.dispatch_table[hidden](value)
        elif any("__reduce_ex__" in item for item in own):
            result = hidden.__reduce_ex__(value, 4)
        elif any("__reduce__" in item for item in own):
            result = hidden.__reduce__(value)
        else:
            result = object.__reduce_ex__(value, 4)
    except Exception:
        return None
    if isinstance(result, str):  # the name of a global
        return result if getattr(sys.modules.get(getattr(value, "__module__", "")), result, None) is value else None
    # an object that is rebuilt without arguments does not reveal its state
    return result if isinstance(result, tuple) else None


def _drained(value: Any) -> list[Child]:
    """Return the items that are left in an iterator, up to a limit, and the error that it raises."""
    items: list[Any] = []
    try:
        items.extend(islice(value, _MAX_ITEMS))
    except (KeyboardInterrupt, Stopped):
        raise
    except BaseException as error:
        return [(" items", items), (" end", Raised.by(error))]
    return [
        (" items", items),
        *([(" rest", Leaf(f"{OPAQUE}more than {_MAX_ITEMS} items"))] * (len(items) == _MAX_ITEMS)),
    ]


def _generator(value: Any) -> list[Child]:
    """Decompose a generator into the items that are left in it."""
    return [(" type", Leaf("generator")), *_drained(value)]


def _file(value: Any) -> list[Child]:
    """Decompose an open file into its name, mode and whole content, and the position that was reached."""
    parts: list[Child] = [
        _type_leaf(value),
        (" name", getattr(value, "name", None)),
        (" mode", getattr(value, "mode", None)),
    ]
    try:
        value.flush()
        number = value.fileno()
    except (OSError, ValueError):  # closed, or a file in memory
        inner = getattr(value, "buffer", None)
        return [*parts, (" closed", value.closed), *([] if inner is None else [(" buffer", inner)])]
    size = os.fstat(number).st_size
    if size > _MAX_FILE:
        return [*parts, (" content", Opaque("a file of more than 64 MiB"))]
    try:
        return [*parts, (" place", value.tell()), (" content", os.pread(number, size, 0))]
    except OSError:  # a pipe, a terminal, a file that was opened for writing only
        content = Path(value.name).read_bytes() if isinstance(value.name, str) else Opaque("an open file")
        return [*parts, (" content", content)]


def _quoted(text: str | bytes) -> str:
    """Return a text in quotes, one character per character or byte; no other kind begins with a quote."""
    return f"'{text}'" if isinstance(text, str) else f"b'{text.decode('latin-1')}'"


def _long(value: int, kind: str) -> list[Child]:
    """Decompose an integer that no float represents exactly into residues, low bits and all of its digits.

    ``kind`` is the kind of the leaf for the number itself, which is rounded to a float if it has more than 64 bits.
    """
    short = value if -(1 << 63) <= value < 1 << 63 else _real(value)
    return [
        ("", Leaf(kind, short)),
        (" residue", Leaf("int", value % MODULUS)),
        (" low bits", Leaf("int", value & _WORD)),
        (" digits", Leaf(hex(value))),
    ]


def _real(value: Any) -> float:
    """Return the float nearest to a number; infinity, with its sign, where it is too large for a float."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _int(value: Any) -> list[Child]:
    """Decompose an integer, or an instance of a subclass."""
    kind, whole = type(value).__qualname__, int.__int__(value)
    if type(value) is int:
        return [("", Leaf("int", whole))] if -_EXACT <= whole <= _EXACT else _long(whole, "int")
    return [("", Leaf(kind, whole if abs(whole) <= _EXACT else None)), (" whole", whole)]


def _complex(value: Any) -> list[Child]:
    """Decompose a complex number, read by the methods of its built-in class."""
    parts = (complex.real.__get__(value), complex.imag.__get__(value))
    return [("", Leaf(type(value).__qualname__)), (" real", parts[0]), (" imaginary", parts[1])]


def _text(value: Any) -> list[Child]:
    """Decompose a text or bytes, or an instance of a subclass."""
    if type(value) is str or type(value) is bytes:
        return [("", Leaf(_quoted(value)))]
    plain = str.__str__(value) if isinstance(value, str) else bytes(memoryview(value))
    return [(" type", Leaf(type(value).__qualname__)), ("", Leaf(_quoted(plain)))]


def _decimal(value: Any) -> list[Child]:
    """Decompose a decimal number into its nearest float, sign, exponent and coefficient."""
    sign, digits, exponent = Decimal.as_tuple(value)
    real = np.nan if Decimal.is_nan(value) else _real(Decimal(value))
    return [
        ("", Leaf(type(value).__qualname__, real)),
        (" sign", Leaf("int", sign)),
        (" exponent", exponent),
        (" coefficient", int("".join(map(str, digits)) or "0")),
    ]


def _fraction(value: Any) -> list[Child]:
    """Decompose a fraction into its nearest float, numerator and denominator."""
    numerator, denominator = (getattr(Fraction, name).__get__(value) for name in ("_numerator", "_denominator"))
    exact = Fraction(numerator, denominator)
    return [
        ("", Leaf(type(value).__qualname__, _real(exact))),
        (" numerator", numerator),
        (" denominator", denominator),
    ]


def _stored(value: Any) -> Any:
    """Return the tuple with which an object of a library pickles its state in C."""
    kind: Any = type(value)
    return kind.__reduce__(value)


def _moment(value: Any) -> list[Child]:
    """Decompose a date, a time or a duration into the arguments with which its class in C is pickled."""
    base: Any = next(base for base in type(value).__mro__ if base in _BASES)
    if type(value) is not base and is_library(module_of(type(value))):
        return [(" type", Leaf(type(value).__qualname__)), (" kept", _stored(value))]
    reduced: Any = base.__reduce_ex__(value, 4) if base is not timedelta else timedelta.__reduce__(value)
    return [(" type", Leaf(type(value).__qualname__)), (" kept", reduced[1])]


def _raised(value: Raised) -> list[Child]:
    """Decompose an error that is treated as an output: its type, message and the exception itself."""
    children: list[Child] = [("", Leaf(f"raised {value.kind}")), (" message", value.message, ".message")]
    return [*children, (" error", value.error)] if value.error is not None else children


def _warned(value: Warned) -> list[Child]:
    """Decompose an output with its warnings and effects."""
    effects: list[Child] = [(f" {name}", item) for name, item in value.effects]
    return [*([(" warnings", value.warnings)] if value.warnings else []), *effects, ("", value.output)]


def _error(value: BaseException) -> list[Child]:
    """Decompose an exception into its type, traceback, arguments and causes.

    The variables of its frames are left out, and so is the object that lacks an attribute: Python itself stores them
    there.
    """
    lines = []
    step: TracebackType | None = value.__traceback__
    while step is not None:
        if not step.tb_frame.f_globals.get("__name__", "").startswith("dither."):
            lines.append(f"{step.tb_frame.f_code.co_name} {step.tb_lineno}")
        step = step.tb_next
    result: list[Child] = [
        _type_leaf(value),
        (" traceback", Leaf("\n".join(lines))),
        *((f".{name}", vars(BaseException)[name].__get__(value)) for name in ("args", "__cause__", "__context__")),
    ]
    return result


def _view(value: memoryview) -> list[Child]:
    """Decompose a memory view: its layout and bytes, and the object whose memory it shows."""
    layout = f"memoryview {value.format} {value.shape} {value.strides} {value.readonly}"
    base: list[Child] = [(" base", Shared(value.obj))] if value.obj is not None else []
    return [(" type", Leaf(layout)), ("", value.tobytes()), *base]


def _scalar(value: Any) -> list[Child]:
    """Decompose a scalar of NumPy, with residues and digits where a 64-bit number does not represent it."""
    kind = value.dtype.kind
    if kind == "b":
        return [("", Leaf(f"numpy.{bool(value)}"))]
    if kind in "iu":
        whole = int(value)
        return [("", Leaf(value.dtype.name, whole))] if abs(whole) <= _EXACT else _long(whole, value.dtype.name)
    if kind == "f" and value.dtype.itemsize <= 8:
        return [("", Leaf(value.dtype.name, float(value)))]
    return [(" scalar", np.asarray(value))]


def _array(instance: Any) -> list[Child]:
    """Decompose an array: shape, type, order in memory, metadata, values, and the array of which it is a view."""
    subclass = "" if type(instance) is np.ndarray else f" {type(instance).__qualname__}"
    plain = np.ndarray.view(instance, np.ndarray)
    result: list[Child] = [
        (" shape or type", Leaf(f"{plain.shape} {plain.dtype}{subclass}")),
        (" length", Leaf("int", plain.size)),
    ]
    order = plain.flags.c_contiguous, plain.flags.f_contiguous
    if order != (True, True):
        result.append((" order in memory", Leaf(str(order))))
    if plain.dtype.kind in "iu" and plain.dtype.char != np.dtype(plain.dtype.name).char:
        result.append((" type in C", Leaf(plain.dtype.char)))  # of two with the same name
    if plain.dtype.metadata:
        result.append((" metadata", dict(plain.dtype.metadata)))
    if isinstance(instance, np.ma.MaskedArray):
        return [*result, ("", instance.data), (" mask", np.ma.getmaskarray(instance)), (" fill", instance.fill_value)]
    return [*result, *_array_values(plain), *_array_base(instance)]


def _array_base(instance: Any) -> list[Child]:
    """Return the array of which a view was taken, as one part, if it has more memory than the view; else nothing."""
    base = instance.base
    while isinstance(base, np.ndarray) and base.nbytes == instance.nbytes:
        base = base.base
    return [] if base is None else [(" base", Shared(base))]


def _array_values(array: Array) -> list[Child]:
    """Decompose the values of an array by their type; nothing is rounded.

    Dates are compared as integers; unsigned integers and floats of more than 64 bits, which no 64-bit float holds, are
    divided into a float and the rest.
    """
    flat = array.ravel()
    kind = flat.dtype.kind
    if kind == "b":
        return [("", Leaf("ints", flat.astype(np.int64)))]
    if kind in "mM":
        return [("", Leaf("ints", flat.astype(flat.dtype.newbyteorder("=")).view(np.int64)))]
    if kind == "c":
        return [(" real", flat.real.copy()), (" imaginary", flat.imag.copy())]
    if kind == "u" and flat.dtype.itemsize == 8 and flat.size and int(flat.max()) >= 1 << 63:
        low = (flat & np.uint64(_WORD)).astype(np.int64)
        return [("", Leaf("floats", flat.astype(np.float64))), (" low bits", Leaf("ints", low)),
                (" high bits", Leaf("ints", (flat >> np.uint64(62)).astype(np.int64)))]  # fmt: skip
    if kind in "iu":
        return [("", Leaf("ints", flat.astype(np.int64)))]
    if kind == "f" and flat.dtype.itemsize <= 8:
        return [("", Leaf("floats", flat.astype(np.float64)))]
    if kind == "f":
        short = flat.astype(np.float64)
        with np.errstate(all="ignore"):
            rest = (flat - short).astype(np.float64)
        return [("", Leaf("floats", short)), (" rest", Leaf("floats", rest))]
    if flat.dtype.names:
        return [*((f".{name_of(name)}", flat[name].copy()) for name in flat.dtype.names), (" bytes", flat.tobytes())]
    if kind == "V":
        return [("", flat.tobytes())]
    return [(f"[{position}]", value) for position, value in enumerate(flat.tolist())]


def _keyed(instance: Any) -> list[Child]:
    """Return the numbers of a table once more, each under the key of its row, so that order does not matter.

    See :func:`dither.audit.outputs.libraries.keyed_rows`; objects that are no table have no such parts.
    """
    return [
        (path, Leaf("present") if value is ... else value, " rows") for path, value in keyed_rows(instance, name_of)
    ]


def _mapping(instance: Any) -> list[Child]:
    """Decompose a dict: its keys in order, then every value under the name of its key."""
    kind = type(instance).__qualname__
    items = list(dict.items(instance))
    if isinstance(instance, OrderedDict):  # it has an order of its own
        held = {id(key): (key, value) for key, value in items}
        items = [held[id(key)] for key in OrderedDict.__iter__(instance)]
    names = [name_of(key) for key, _ in items]
    values = [
        (f"[{name}]", value, f"[key {position}]")
        for position, (name, (_, value)) in enumerate(zip(names, items, strict=True), 1)
    ]
    return [(" type", Leaf(kind)), (" keys", Leaf(", ".join(names))), *values]


def _set(instance: Any) -> list[Child]:
    """Decompose a set: its size, and the presence of every element."""
    base = set if isinstance(instance, set) else frozenset
    names = sorted(map(name_of, base.__iter__(instance)))
    result = [(f" has {name}", Leaf("present"), " elements") for name in names]
    return [(" type", Leaf(type(instance).__qualname__)), (" size", Leaf("int", len(names))), *result]


def _list(instance: Any) -> list[Child]:
    """Decompose a list, tuple or deque; a list of dicts also by the keys of its rows."""
    base = next(base for base in (list, tuple, deque) if isinstance(instance, base))
    plain = instance if type(instance) is base else list(base.__iter__(instance))
    rows = _keyed(plain) if plain and isinstance(plain[0], dict) else []
    limit: list[Child] = [(" limit", instance.maxlen)] if base is deque and instance.maxlen is not None else []
    hidden = _hidden_state(type(instance)) if type(instance) is not base else None
    more: list[Child] = []
    if hidden is not None and hidden is not base and hidden not in base.__mro__:  # os.stat_result, time.struct_time
        reduced = _reduced(instance, type(instance), hidden)
        more = [(" kept", reduced[1:] if isinstance(reduced, tuple) else Opaque(type(instance).__qualname__))]
    return [*_sequence(plain, type(instance).__qualname__), *limit, *rows, *more]


def _sequence(instance: Any, kind: str) -> list[Child]:
    """Decompose the elements of a sequence, as one vector if they are numbers of one type that 64 bits represent
    exactly."""
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


def _module(value: ModuleType) -> list[Child]:
    """Decompose a module: an imported one is its name, any other what it stores."""
    name = value.__name__
    if sys.modules.get(name) is value:
        return [("", Leaf(f"module {name}"))]
    stored = {key: item for key, item in vars(value).items() if key not in ("__builtins__", "__spec__", "__loader__")}
    return [("", Leaf(f"module {name}")), *_named(stored)]


def _builtin(value: Any) -> list[Child]:
    """Decompose a function of C into its name and, for a method, its owner."""
    owner = value.__self__
    leaf: Child = ("", Leaf(f"builtin {value.__module__}.{value.__qualname__}"))
    return [leaf] if owner is None or isinstance(owner, ModuleType) else [leaf, (".__self__", owner)]


def _function(value: FunctionType) -> list[Child]:
    """Decompose a function: an importable one into its attributes, any other into code, closure, defaults and
    globals.
    """
    name = f"{value.__module__}.{value.__qualname__}"
    kept = {"__defaults__": value.__defaults__, "__kwdefaults__": value.__kwdefaults__, **vars(value)}
    if _is_importable(value):
        stored = (
            {} if is_library(value.__module__ or "") else {key: item for key, item in kept.items() if item is not None}
        )
        return [("", Leaf(f"function {name}")), *_named(stored)]
    kept |= {key: getattr(value, key) for key in ("__code__", "__closure__", "__doc__", "__annotations__")}
    module = sys.modules.get(value.__module__ or "")
    if module is None or vars(module) is not value.__globals__:
        used = {*value.__code__.co_names} & {*value.__globals__}
        kept["__globals__"] = {key: value.__globals__[key] for key in sorted(used)}
    return [(" type", Leaf(f"function {name} {value.__name__}")), *_named(kept)]


def _code(value: CodeType) -> list[Child]:
    """Decompose a code object into its public fields."""
    fields = sorted(name for name in dir(value) if name.startswith("co_") and not callable(getattr(value, name)))
    skipped = ("co_lnotab", "co_stacksize", "co_nlocals")  # derived, or deprecated
    parts: list[Child] = [(f".{name}", getattr(value, name)) for name in fields if name not in skipped]
    return [(" type", Leaf("code")), *parts]


def _cell(value: CellType) -> list[Child]:
    """Decompose the cell of a closure into its content."""
    try:
        return [(" type", Leaf("cell")), (".contents", value.cell_contents)]
    except ValueError:
        return [(" type", Leaf("empty cell"))]


def _enum(value: Enum) -> list[Child]:
    """Decompose a member of an enumeration into its class and name."""
    kind = type(value)
    return [(" type", Leaf(f"{module_of(kind)}.{kind.__qualname__} {vars(value)['_name_']}"))]


def _lock(value: Any) -> list[Child]:
    """Decompose a lock into whether it is held."""
    held = value.locked() if hasattr(value, "locked") else repr(value).startswith("<locked")
    return [("", Leaf(f"lock {held}"))]


def _cached(value: Any) -> list[Child]:
    """Decompose a function with a cache, which cannot be read; that of a library is part of its code."""
    name = f"{value.__module__}.{value.__qualname__}"
    if is_library(value.__module__ or ""):
        return [("", Leaf(f"cached {name}"))]
    content = [(" cache", Opaque("the cache of a function"))] if value.cache_info().currsize else []
    return [(" type", Leaf(f"cached {name}")), (".__wrapped__", value.__wrapped__), *content]


def _match(value: re.Match[Any]) -> list[Child]:
    """Decompose a match of a regular expression into its pattern, text and groups."""
    return [_type_leaf(value), (" match", (value.re, value.string, value.pos, value.endpos, value.regs))]


def _weak(value: Any) -> list[Child]:
    """Decompose a weak reference into the object that it refers to, None if that is gone, and its callback."""
    return [(" type", Leaf("weakref")), (" of", value()), (" callback", value.__callback__)]


_BASES: dict[type, Callable[[Any], list[Child]]] = {
    float: lambda value: [("", Leaf(type(value).__qualname__, float.__float__(value)))],
    int: _int,
    complex: _complex,
    **dict.fromkeys((str, bytes, bytearray), _text),
    **dict.fromkeys((bool, type(None), type(NotImplemented), type(...)), lambda value: [("", Leaf(repr(value)))]),
    Decimal: _decimal,
    Fraction: _fraction,
    **dict.fromkeys((datetime, date, time, timedelta), _moment),
    Raised: _raised,
    Warned: _warned,
    Opaque: lambda value: [("", Leaf(f"{OPAQUE}{value.what}"))],
    np.generic: _scalar,
    np.ndarray: _array,
    memoryview: _view,
    dict: _mapping,
    **dict.fromkeys((set, frozenset), _set),
    **dict.fromkeys((list, tuple, deque), _list),
    MappingProxyType: lambda value: [(" proxy", dict(value))],
    **dict.fromkeys(_VIEWS, lambda value: [(" view", Leaf(type(value).__name__)), (" of", dict(value.mapping))]),
    type: _class,
    ModuleType: _module,
    BuiltinFunctionType: _builtin,
    MethodType: lambda value: [
        (" type", Leaf("method")),
        (".__func__", value.__func__),
        (".__self__", value.__self__),
    ],
    FunctionType: _function,
    CodeType: _code,
    CellType: _cell,
    **dict.fromkeys(
        _DESCRIPTORS,
        lambda value: [("", Leaf(f"descriptor {value.__objclass__.__qualname__}.{value.__name__}"))],
    ),
    **dict.fromkeys(_LOCKS, _lock),
    weakref.ref: _weak,
    _CACHED: _cached,
    re.Match: _match,
    GeneratorType: _generator,
    TracebackType: lambda _: [("", Leaf("traceback"))],
    **dict.fromkeys(_FILES, _file),
    BaseException: _error,
    Enum: _enum,
}
_SHARED = frozenset(
    {type, ModuleType, MethodType, FunctionType, CodeType, CellType, weakref.ref, GeneratorType, BaseException, Enum}
)
_INTERNALS: dict[type, frozenset[str] | None] = {
    BaseException: frozenset({"obj"}),
    Enum: frozenset({"__objclass__", "_sort_order_"}),
    type: None,
    _CACHED: frozenset({"__wrapped__"}),
}
