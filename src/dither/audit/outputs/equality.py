"""Whether two results are the same, and if not, where they differ; values are never shown, and a key is one.

Everything that whoever gets the result could look at counts: the sign of a zero, what a mask hides, the index of a
Series, what a function closes over, an attribute of a dict. Where nothing is known of how a thing is made, it is what
pickling it would write.

>>> difference({"n": 3, "keys": ["a"]}, {"n": 3, "keys": ["b"]})
' at [key 2][0]'
>>> difference(float("nan"), float("nan")) is None
True
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

Part = tuple[Any, Any, str]
Seen = dict[tuple[int, int], tuple[Any, Any]]

_ADDRESS = re.compile(r"\b0x[0-9a-f]+")


def difference(one: Any, other: Any) -> str | None:
    """The path to the first thing that differs, or None."""
    try:
        return _difference(one, other, "", {})
    except RecursionError:
        return " (too deep to compare)"


def _difference(one: Any, other: Any, where: str, seen: Seen) -> str | None:
    told = where and f" at {where}"
    pair = id(one), id(other)
    if one is other or pair in seen:
        return None
    if type(one) is not type(other):
        return f"{told} (in its type)"
    seen[pair] = one, other  # held, so that no other thing gets their ids
    if isinstance(one, memoryview):
        shown = [(view.format, view.shape, view.strides, view.readonly, view.tobytes()) for view in (one, other)]
        return None if shown[0] == shown[1] else told
    if isinstance(one, (int, str, bytes, bytearray, type)):
        result = None if one == other else told
    elif isinstance(one, float):
        result = None if _same_float(one, other) else told
    elif isinstance(one, complex):
        result = None if _same_float(one.real, other.real) and _same_float(one.imag, other.imag) else told
    elif isinstance(one, (np.ndarray, np.generic)):
        result = _arrays(one, other, where, seen)
    elif isinstance(one, Set):
        result = None if one == other and Counter(map(type, one)) == Counter(map(type, other)) else told
    elif isinstance(one, Mapping):
        if _difference([*one], [*other], "", seen) is not None:
            return f"{told} (in its keys)"
        pairs = enumerate(zip(one.values(), other.values(), strict=True), 1)
        result = _first(((a, b, f"{where}[key {i}]") for i, (a, b) in pairs), seen)
    elif isinstance(one, (list, tuple, deque)):
        if len(one) != len(other):
            return f"{told} (in its length)"
        pairs = enumerate(zip(one, other, strict=True))
        result = _first(((a, b, f"{where}[{i}]") for i, (a, b) in pairs), seen)
    else:
        return _objects(one, other, where, seen)
    return _attributes(one, other, where, seen) if result is None else result


def _same_float(one: float, other: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other and math.copysign(1.0, one) == math.copysign(1.0, other)


def _arrays(one: Any, other: Any, where: str, seen: Seen) -> str | None:
    told = where and f" at {where}"
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{told} (in its shape or type)"
    if one.strides != other.strides and _order(one) != _order(other):
        return f"{told} (in its order in memory)"
    if isinstance(one, np.ma.MaskedArray):
        if not np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(other)):
            return f"{told} (in its mask)"
        one, other = one.data, other.data
    here, there = np.asarray(one), np.asarray(other)
    if here.dtype == object:
        return _difference(here.tolist(), there.tolist(), where, seen)
    if here.dtype.names:
        return _first(((here[name], there[name], f"{where}[{i}]") for i, name in enumerate(here.dtype.names)), seen)
    if here.dtype.kind == "c":
        return _first(((here.real, there.real, where), (here.imag, there.imag, where)), seen)
    same = np.array_equal(here, there, equal_nan=here.dtype.kind in "fmM")
    if same and here.dtype.kind == "f":
        same = bool(np.all((np.signbit(here) == np.signbit(there)) | np.isnan(here)))
    return None if same else told


def _order(array: Any) -> tuple[bool, bool]:
    return bool(array.flags.c_contiguous), bool(array.flags.f_contiguous)


def _objects(one: Any, other: Any, where: str, seen: Seen) -> str | None:
    told = where and f" at {where}"
    for parts_of in (_pandas, _arrow, _function, attributes):
        parts = parts_of(one), parts_of(other)
        if any(parts):
            return _named(*parts, where, seen)
    own: Any = type(one).__eq__
    try:
        if own is not object.__eq__ and (one == other or (one != one and other != other)):
            return None
        kept = one.__reduce_ex__(4), other.__reduce_ex__(4)
    except Exception:  # neither to be compared nor pickled: a lock, a connection, a generator
        return None if _ADDRESS.sub("", repr(one)) == _ADDRESS.sub("", repr(other)) else told
    return told if own is not object.__eq__ or _difference(*kept, "", seen) is not None else None


def _pandas(thing: Any) -> dict[str, Any]:
    """What a Series, a frame or an index shows: two rows may have the same label, so none is looked up by it."""
    if hasattr(thing, "to_flat_index"):
        return {"names": [*thing.names], "dtype": str(thing.dtype), "values": thing.tolist()}
    if not (hasattr(thing, "iloc") and hasattr(thing, "attrs")):
        return {}
    result = {"index": thing.index, "attrs": thing.attrs}
    if thing.ndim == 1:
        return {"name": thing.name, "dtype": thing.dtype, "values": thing.tolist(), **result}
    return {"columns": thing.columns, "values": [thing.iloc[:, i] for i in range(thing.shape[1])], **result}


def _arrow(thing: Any) -> dict[str, Any]:
    """The columns of an answer, a polars frame or an Arrow table."""
    if isinstance(thing, type):
        return {}
    if hasattr(thing, "to_arrow"):
        shown = {name: getattr(thing, name, None) for name in ("name", "notes")}
        return {**shown, "dtype": str(getattr(thing, "dtype", "")), "columns": thing.to_arrow()}
    if hasattr(thing, "to_pylist") and hasattr(thing, "schema"):
        return {"schema": str(thing.schema), "rows": thing.to_pylist()}
    return {}


def _function(thing: Any) -> dict[str, Any]:
    """What a function does, and what it brings along to do it with."""
    if isinstance(thing, MethodType):
        return {"__func__": thing.__func__, "__self__": thing.__self__}
    if isinstance(thing, FunctionType):
        return {name: getattr(thing, name) for name in ("__code__", "__defaults__", "__kwdefaults__", "__closure__")}
    return {"cell_contents": thing.cell_contents} if isinstance(thing, CellType) and thing != CellType() else {}


def _attributes(one: Any, other: Any, where: str, seen: Seen) -> str | None:
    return _named(attributes(one), attributes(other), where, seen)


def _named(here: dict[str, Any], there: dict[str, Any], where: str, seen: Seen) -> str | None:
    if {*here} != {*there}:
        return f"{where and f' at {where}'} (in its attributes)"
    return _first(((here[name], there[name], f"{where}.{name}".lstrip(".")) for name in here), seen)


def attributes(thing: Any) -> dict[str, Any]:
    """Everything that is stored with a thing: its slots and its dict, without what was computed once and kept."""
    if isinstance(thing, type):
        return {}
    result: dict[str, Any] = {}
    if isinstance(thing, BaseException):  # what a traceback shows
        result = {name: getattr(thing, name) for name in ("args", "__cause__", "__context__", "__suppress_context__")}
    for base in type(thing).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            own = f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            if name not in ("__dict__", "__weakref__") and hasattr(thing, own):
                result[own] = getattr(thing, own)
    result |= getattr(thing, "__dict__", {})
    # what was computed once and kept says when it was asked for, not what the thing is
    return {
        name: value
        for name, value in result.items()
        if not isinstance(getattr(type(thing), name, None), cached_property)
    }


def _first(parts: Iterable[Part], seen: Seen) -> str | None:
    for one, other, where in parts:
        result = _difference(one, other, where, seen)
        if result is not None:
            return result
    return None


__all__ = ["attributes", "difference"]
