"""An oracle for the canonical form: exact comparison of two values, which shares no code with it.

Everything a recipient could inspect counts: the sign of a zero, masked values, the index of a Series, the closure of a
function, an attribute of a dict. Objects of unknown structure are compared by what pickling them would write. Reported
paths contain no values, and dict keys count as values.

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
    """The path to the first difference, or None if there is none."""
    try:
        return _difference(one, other, "", {})
    except RecursionError:
        return " (too deep to compare)"


def _difference(one: Any, other: Any, where: str, seen: Seen) -> str | None:
    location = where and f" at {where}"
    pair = id(one), id(other)
    if one is other or pair in seen:
        return None
    if type(one) is not type(other):
        return f"{location} (in its type)"
    seen[pair] = one, other  # kept alive, so that their ids are not reused
    if isinstance(one, memoryview):
        layouts = [(view.format, view.shape, view.strides, view.readonly, view.tobytes()) for view in (one, other)]
        return None if layouts[0] == layouts[1] else location
    if isinstance(one, (int, str, bytes, bytearray, type)):
        result = None if one == other else location
    elif isinstance(one, float):
        result = None if _same_float(one, other) else location
    elif isinstance(one, complex):
        result = None if _same_float(one.real, other.real) and _same_float(one.imag, other.imag) else location
    elif isinstance(one, (np.ndarray, np.generic)):
        result = _arrays(one, other, where, seen)
    elif isinstance(one, Set):
        result = None if one == other and Counter(map(type, one)) == Counter(map(type, other)) else location
    elif isinstance(one, Mapping):
        if _difference([*one], [*other], "", seen) is not None:
            return f"{location} (in its keys)"
        pairs = enumerate(zip(one.values(), other.values(), strict=True), 1)
        result = _first_difference(((a, b, f"{where}[key {i}]") for i, (a, b) in pairs), seen)
    elif isinstance(one, (list, tuple, deque)):
        if len(one) != len(other):
            return f"{location} (in its length)"
        pairs = enumerate(zip(one, other, strict=True))
        result = _first_difference(((a, b, f"{where}[{i}]") for i, (a, b) in pairs), seen)
    else:
        return _objects(one, other, where, seen)
    return _attributes(one, other, where, seen) if result is None else result


def _same_float(one: float, other: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other and math.copysign(1.0, one) == math.copysign(1.0, other)


def _arrays(one: Any, other: Any, where: str, seen: Seen) -> str | None:
    location = where and f" at {where}"
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{location} (in its shape or type)"
    if one.strides != other.strides and _order(one) != _order(other):
        return f"{location} (in its order in memory)"
    if isinstance(one, np.ma.MaskedArray):
        if not np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(other)):
            return f"{location} (in its mask)"
        one, other = one.data, other.data
    first, second = np.asarray(one), np.asarray(other)
    if first.dtype == object:
        return _difference(first.tolist(), second.tolist(), where, seen)
    if first.dtype.names:
        return _first_difference(
            ((first[name], second[name], f"{where}[{i}]") for i, name in enumerate(first.dtype.names)), seen
        )
    if first.dtype.kind == "c":
        return _first_difference(((first.real, second.real, where), (first.imag, second.imag, where)), seen)
    same = np.array_equal(first, second, equal_nan=first.dtype.kind in "fmM")
    if same and first.dtype.kind == "f":
        same = bool(np.all((np.signbit(first) == np.signbit(second)) | np.isnan(first)))
    return None if same else location


def _order(array: Any) -> tuple[bool, bool]:
    return bool(array.flags.c_contiguous), bool(array.flags.f_contiguous)


def _objects(one: Any, other: Any, where: str, seen: Seen) -> str | None:
    location = where and f" at {where}"
    for parts_of in (_pandas, _arrow, _function, attributes):
        parts = parts_of(one), parts_of(other)
        if any(parts):
            return _named(*parts, where, seen)
    equality: Any = type(one).__eq__
    try:
        if equality is not object.__eq__ and (one == other or (one != one and other != other)):
            return None
        reduced = one.__reduce_ex__(4), other.__reduce_ex__(4)
    except Exception:  # neither comparable nor picklable: a lock, a connection, a generator
        return None if _ADDRESS.sub("", repr(one)) == _ADDRESS.sub("", repr(other)) else location
    return location if equality is not object.__eq__ or _difference(*reduced, "", seen) is not None else None


def _pandas(value: Any) -> dict[str, Any]:
    """The content of a Series, a frame or an index, by position, since labels may be duplicated."""
    if hasattr(value, "to_flat_index"):
        return {"names": [*value.names], "dtype": str(value.dtype), "values": value.tolist()}
    if not (hasattr(value, "iloc") and hasattr(value, "attrs")):
        return {}
    result = {"index": value.index, "attrs": value.attrs}
    if value.ndim == 1:
        return {"name": value.name, "dtype": value.dtype, "values": value.tolist(), **result}
    return {"columns": value.columns, "values": [value.iloc[:, i] for i in range(value.shape[1])], **result}


def _arrow(value: Any) -> dict[str, Any]:
    """The columns of an answer, a polars frame or an Arrow table."""
    if isinstance(value, type):
        return {}
    if hasattr(value, "to_arrow"):
        details = {name: getattr(value, name, None) for name in ("name", "notes")}
        return {**details, "dtype": str(getattr(value, "dtype", "")), "columns": value.to_arrow()}
    if hasattr(value, "to_pylist") and hasattr(value, "schema"):
        return {"schema": str(value.schema), "rows": value.to_pylist()}
    return {}


def _function(value: Any) -> dict[str, Any]:
    """The code, defaults and closure of a function, or the target of a bound method."""
    if isinstance(value, MethodType):
        return {"__func__": value.__func__, "__self__": value.__self__}
    if isinstance(value, FunctionType):
        return {name: getattr(value, name) for name in ("__code__", "__defaults__", "__kwdefaults__", "__closure__")}
    return {"cell_contents": value.cell_contents} if isinstance(value, CellType) and value != CellType() else {}


def _attributes(one: Any, other: Any, where: str, seen: Seen) -> str | None:
    return _named(attributes(one), attributes(other), where, seen)


def _named(first: dict[str, Any], second: dict[str, Any], where: str, seen: Seen) -> str | None:
    if {*first} != {*second}:
        return f"{where and f' at {where}'} (in its attributes)"
    return _first_difference(((first[name], second[name], f"{where}.{name}".lstrip(".")) for name in first), seen)


def attributes(instance: Any) -> dict[str, Any]:
    """Everything stored in an object: its slots and its ``__dict__``, without cached properties."""
    if isinstance(instance, type):
        return {}
    result: dict[str, Any] = {}
    if isinstance(instance, BaseException):  # which a traceback shows
        names = ("args", "__cause__", "__context__", "__suppress_context__")
        result = {name: getattr(instance, name) for name in names}
    for base in type(instance).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled_name = (
                f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            )
            if name not in ("__dict__", "__weakref__") and hasattr(instance, mangled_name):
                result[mangled_name] = getattr(instance, mangled_name)
    result |= getattr(instance, "__dict__", {})
    # whether a cached property was computed says nothing about the value of an object
    return {
        name: value
        for name, value in result.items()
        if not isinstance(getattr(type(instance), name, None), cached_property)
    }


def _first_difference(parts: Iterable[Part], seen: Seen) -> str | None:
    for one, other, where in parts:
        result = _difference(one, other, where, seen)
        if result is not None:
            return result
    return None


__all__ = ["attributes", "difference"]
