"""Calling a release with stand-ins for the data, so that wrong arguments are refused before anything is charged.

A release inside a ledger scope is charged before its data are read, and the charge stays when it then fails: whether
it fails may depend on the data, which makes the failure an answer. That a *public* argument is wrong (the bounds, the
number of bins, the method, the type of what was passed) depends on no record, and need not be paid for. The release is
therefore called once with stand-ins: zeros of the same type and shape instead of the data, and a source of randomness
that ends the call at the first word. What is refused up to there is refused for every dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from dither.errors import InvalidData
from dither.neighbors import Neighbors, ReplaceOne
from dither.randomness import resolve

_RECORDS = ("x", "y", "X")
_DATA = (*_RECORDS, "value", "scores", "distance", "smooth_sensitivity")
_STAND_IN_RECORDS = 1000
_NUMBERS = (bool, int, float, Fraction, Decimal)
_PLAIN = (type(None), str, bytes, complex, object, type, *_NUMBERS)
_CONTAINERS = (list, tuple, set, frozenset)
_LIBRARIES = ("pandas", "polars", "pyarrow")


class _FirstDraw(BaseException):
    """Ends a rehearsal where the release would draw its first random word."""


class _NoRandomness:
    """A source of randomness that ends the rehearsal when it is used."""

    private = True

    def words(self, count: int) -> NoReturn:
        """End the rehearsal."""
        raise _FirstDraw

    def word(self) -> NoReturn:
        """End the rehearsal."""
        raise _FirstDraw


def rehearse(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise the errors that ``function`` would raise about these arguments for any data; draw and release nothing.

    Code of the user's, in an object of another type than those known here, must not run twice, and not before the
    charge: with such an argument there is no rehearsal.

    >>> import dither as dp
    >>> rehearse(dp.stats.mean, {"x": [0.1, 0.7], "bounds": (1, 0), "epsilon": 1})
    Traceback (most recent call last):
    ...
    dither.InvalidArgument: bounds: expected lower below upper, got (1, 0). Fix: swap or widen them.
    """
    resolve(given.get("source"))
    if "self" in given and type(given["self"]).__module__.partition(".")[0] != "dither":
        return
    # the number of records is public under replace-one only
    count = None if given.get("neighbors", ReplaceOne) is ReplaceOne else _STAND_IN_RECORDS
    stand_ins: dict[str, Any] = {}
    for name, value in given.items():
        if name in _DATA:
            if not _is_known_data(value):
                return
            stand_ins[name] = stand_in(value, count if name in _RECORDS else None)
        elif name not in ("self", "source"):
            if not _is_plain(value):
                return
            stand_ins[name] = value
    owner = (given["self"],) if "self" in given else ()
    try:
        function(*owner, **stand_ins, source=_NoRandomness())
    except (_FirstDraw, InvalidData):  # what is wrong with the data is said after the charge
        return


def stand_in(value: Any, count: int | None = None) -> Any:
    """Return zeros of the type and shape of some data, with ``count`` records if that is given; other values stay as
    they are.

    >>> stand_in(7), stand_in([7, None]), stand_in(np.array([7.5])), stand_in("seven")
    (0, [0.0, 0.0], array([0.]), 'seven')
    """
    if type(value) in _NUMBERS or issubclass(type(value), np.generic):
        return type(value)(0)
    if type(value) is np.ndarray:
        shape = value.shape if count is None or not value.ndim else (count, *value.shape[1:])
        return np.zeros(shape, dtype=value.dtype)
    size: tuple[int, ...] = getattr(value, "shape", ()) if _is_of_library(value) else ()
    if len(size) == 2:  # a frame
        return np.zeros((size[0] if count is None else count, size[1]))
    if type(value) in (list, tuple) or _is_of_library(value):
        zeros = [0.0] * (len(value) if count is None else count)
        return zeros if isinstance(value, (list, tuple)) else np.array(zeros)
    return value


def _is_known_data(value: Any) -> bool:
    """Return whether a value is of a type that releases take as data, so that zeros can replace it."""
    return type(value) in (np.ndarray, list, tuple, dict) or _is_of_library(value) or _is_plain(value)


def _is_of_library(value: Any) -> bool:
    """Return whether a value is a column or frame of pandas, Polars or Arrow."""
    return type(value).__module__.partition(".")[0] in _LIBRARIES and hasattr(value, "__len__")


def _is_plain(value: Any) -> bool:
    """Return whether reading a value runs no code of the user."""
    kind = type(value)
    if kind in _CONTAINERS:
        return all(map(_is_plain, value))
    if kind is np.ndarray:
        return bool(value.dtype != object)
    if kind is dict:
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return kind in _PLAIN or issubclass(kind, (np.generic, Neighbors))
