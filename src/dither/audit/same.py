"""Whether two results are the same, and if not, where they differ; values are never shown.

>>> difference({"n": 3, "keys": ["a"]}, {"n": 3, "keys": ["b"]})
" at ['keys'][0]"
>>> difference(float("nan"), float("nan")) is None
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any

import numpy as np

_DEEPEST = 12


def difference(one: Any, other: Any, where: str = "", deep: int = 0) -> str | None:
    """The path to the first thing that differs, or None."""
    told = where and f" at {where}"
    if one is other or deep > _DEEPEST:
        return None
    if type(one) is not type(other):
        return f"{told} (in its type)"
    if isinstance(one, float):
        return None if one == other or (math.isnan(one) and math.isnan(other)) else told
    if isinstance(one, (int, str, bytes, complex, type, Set, np.generic)) or one is None:
        return None if one == other or one != one else told
    if isinstance(one, np.ndarray):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{told} (in its shape or type)"
        if one.dtype == object:
            return difference(one.tolist(), other.tolist(), where, deep + 1)
        return None if np.array_equal(one, other, equal_nan=one.dtype.kind in "fc") else told
    if isinstance(one, Mapping):
        if list(one) != list(other):
            return f"{told} (in its keys)"
        return _first(((one[key], other[key], f"{where}[{key!r}]") for key in one), deep)
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return f"{told} (in its length)"
        return _first(((a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(one, other, strict=True))), deep)
    return _objects(one, other, where, deep)


def _objects(one: Any, other: Any, where: str, deep: int) -> str | None:
    told = where and f" at {where}"
    for convert in ("to_arrow", "to_dict"):  # answers, frames: what they show, not how they are kept
        if hasattr(one, convert) and not isinstance(one, type):
            here, there = getattr(one, convert)(), getattr(other, convert)()
            if convert == "to_arrow" and hasattr(here, "equals"):
                if here.schema != there.schema:
                    return f"{told} (in its columns)"
                return difference(here.to_pylist(), there.to_pylist(), where, deep + 1)
            return difference(here, there, where, deep + 1)
    if isinstance(one, (FunctionType, MethodType)):
        return None if one.__qualname__ == other.__qualname__ else told
    inside = [_inside(each) for each in (one, other)]
    if inside[0]:
        if {*inside[0]} != {*inside[1]}:
            return f"{told} (in its attributes)"
        names = ((inside[0][name], inside[1][name], f"{where}.{name}".lstrip(".")) for name in inside[0])
        return _first(names, deep)
    try:
        return None if bool(one == other) or repr(one) == repr(other) else told
    except (TypeError, ValueError):
        return None if repr(one) == repr(other) else told


def _inside(thing: Any) -> dict[str, Any]:
    slots = [name for base in type(thing).__mro__ for name in getattr(base, "__slots__", ())]
    found = {**{name: getattr(thing, name) for name in slots if hasattr(thing, name)}, **getattr(thing, "__dict__", {})}
    # what was computed once and kept says when it was asked for, not what the thing is
    return {
        name: value
        for name, value in found.items()
        if not isinstance(getattr(type(thing), name, None), cached_property)
    }


def _first(pairs: Any, deep: int) -> str | None:
    for one, other, where in pairs:
        found = difference(one, other, where, deep + 1)
        if found is not None:
            return found
    return None


__all__ = ["difference"]
