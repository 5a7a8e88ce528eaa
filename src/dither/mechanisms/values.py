"""Inputs and outputs of releases: numbers, lists, arrays and Series, each returned in the container it came in."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.randomness import Source, mark
from dither.randomness.source import NOTICE
from dither.validation import saturate

Scalar = int | float | Fraction
Vector = NDArray[np.int64] | NDArray[np.float64] | list[Scalar]

_FAR = 1 << 61
_LARGEST = Fraction(float.fromhex("0x1.fffffffffffffp+1023"))
_FIX = "pass a number, a list, a one-dimensional numeric array or a Series"


def scalar(value: Any) -> Scalar | None:
    """Return ``value`` as an int, a finite float or a Fraction; None if it is not a number.

    >>> scalar(np.int32(3)), scalar([1])
    (3, None)
    """
    if type(value) is int:
        return value
    if type(value) is not float:
        if isinstance(value, np.timedelta64):
            return None
        if isinstance(value, (bool, np.bool_, Integral)):
            return int(value)
        if isinstance(value, Rational):
            exact = Fraction(int(value.numerator), int(value.denominator))
            if abs(exact) > _LARGEST:
                raise InvalidData("value", "a number that a float can hold", "a larger one", "bound it first")
            return exact
        if not isinstance(value, (float, np.floating)):
            return None
        value = float(value)
    number: float = value
    if not math.isfinite(number):
        raise InvalidData("value", "a finite number", "NaN or infinity", "drop or bound such values before the release")
    return number


def array(value: NDArray[Any], name: str = "value") -> NDArray[np.int64] | NDArray[np.float64]:
    """Return a one-dimensional array as 64-bit integers (saturated) or finite 64-bit floats.

    Booleans become 0 and 1, and unsigned integers above the largest signed one become that. Masked values, NaN,
    infinity and other types are refused; ``name`` is the parameter's name for the error.

    >>> array(np.array([1, 2], dtype=np.uint8)).dtype
    dtype('int64')
    """
    if value.ndim != 1:
        raise InvalidArgument(name, "one dimension", f"{value.ndim} dimensions", "pass one column, or array.ravel()")
    if isinstance(value, np.ma.MaskedArray):
        if np.any(np.ma.getmaskarray(value)):
            raise InvalidData(name, "no masked values", "some", "drop or fill them before the release")
        value = value.data
    if value.dtype.kind in "bi":
        return value.astype(np.int64, copy=False)
    if value.dtype.kind == "u":
        return saturate(value)
    if value.dtype.kind != "f" or value.dtype.itemsize > 8:
        raise WrongType(
            name,
            "integers or floats of at most 64 bits",
            f"dtype {value.dtype}",
            "convert with astype(float) or astype(int)",
        )
    floats = value.astype(np.float64, copy=False)
    if not np.all(np.isfinite(floats)):
        raise InvalidData(
            name, "finite numbers", "NaN or infinity among them", "drop or bound such values before the release"
        )
    return floats


def release(
    value: Any,
    source: Source,
    release_scalar: Callable[[Scalar], int | float],
    release_vector: Callable[[Vector], list[Any] | NDArray[Any]],
) -> Any:
    """Release ``value`` by the function for one number or for a vector, and return it in the container it came in.

    ``value`` is a number, a list or tuple, a numpy array of at most one dimension or a Series; other types are
    refused. The result is marked as not private if ``source`` is a seeded one.
    """
    single = scalar(value)
    if single is not None:
        return mark(release_scalar(single), source)
    if isinstance(value, (list, tuple)):
        numbers = [number for number in map(scalar, value) if number is not None]
        if len(numbers) < len(value):
            raise WrongType("value", "a list of numbers", "a list with something else in it", _FIX)
        _nonempty(len(numbers))
        return mark(list(release_vector(numbers)), source)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            if np.ma.is_masked(value):
                raise InvalidData("value", "a number", "a masked one", "drop or fill it before the release")
            return release(value.item(), source, release_scalar, release_vector)
        column = array(value)
        _nonempty(column.size)
        return mark(np.asarray(release_vector(column)), source)
    library = type(value).__module__.partition(".")[0]
    if library in ("pandas", "polars") and type(value).__name__ == "Series":
        return _series(value, library, source, release_vector)
    raise WrongType("value", "numbers", type(value).__name__, _FIX)


def _series(value: Any, library: str, source: Source, release_vector: Callable[[Vector], Any]) -> Any:
    """Release a Series as one vector, and return a Series with its name and index.

    ``value`` is the Series of ``library``, "pandas" or "polars", and ``release_vector`` releases an array. If
    ``source`` is a seeded one, a notice that the result is not private is added to the name. Missing values and
    columns of Python objects are refused.
    """
    missing = bool(value.isna().any()) if library == "pandas" else value.null_count() > 0
    if missing:
        raise InvalidData("value", "no missing values", "some", "drop or fill them before the release")
    plain = value.to_numpy()
    if plain.dtype == object:
        raise WrongType("value", "a numeric Series", f"dtype {value.dtype}", _FIX)
    column = array(plain)
    _nonempty(column.size)
    noisy = np.asarray(release_vector(column))
    name = value.name if source.private else f"{value.name} ({NOTICE})"
    if library == "pandas":
        return type(value)(noisy, index=value.index, name=name)
    return type(value)(name, noisy)


def _nonempty(length: int) -> None:
    """Refuse an empty vector."""
    if length == 0:
        raise InvalidArgument("value", "at least one number", "none", "release only where there are answers")


def as_array(numbers: list[Any], dtype: Any) -> NDArray[Any]:
    """Return released numbers as an array; integers stop at the ends of 64 bits.

    >>> as_array([2**70, -1], np.dtype(np.int64)).tolist() == [2**63 - 1, -1]
    True
    """
    if dtype.kind == "f":
        return np.array(numbers, dtype=np.float64)
    ends = np.iinfo(np.int64)
    return np.array([min(max(number, ends.min), ends.max) for number in numbers], dtype=np.int64)


def add_saturating(x: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add ``x`` to ``noise`` in place, stopping at the ends of 64 bits instead of wrapping around.

    >>> add_saturating(np.array([2**63 - 1]), np.array([5])).tolist() == [2**63 - 1]
    True
    """
    if x.size == 0 or (x.min() > -_FAR and x.max() < _FAR and noise.min() > -_FAR and noise.max() < _FAR):
        return np.add(noise, x, out=noise)
    up = noise > 0
    np.add(noise, x, out=noise)
    noise[up & (noise < x)] = np.iinfo(np.int64).max
    noise[~up & (noise > x)] = np.iinfo(np.int64).min
    return noise
