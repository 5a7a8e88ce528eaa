"""Reading one column of data: any one-dimensional container, and a stated policy for missing values.

Everything here works on one record at a time (clip, round, replace), so it cannot make neighbors differ in
more than one record; and every check that could fail on the data fails before anything is released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, InvalidData
from dither.inference.grid import Values
from dither.neighbors import Neighbors, ReplaceOne
from dither.validation import as_values

NanPolicy = Literal["refuse", "drop", "lower"]


def read(x: Any, neighbors: Neighbors, nan: NanPolicy = "refuse", lower: float = 0.0) -> Values:
    """Return one column as 64-bit integers or finite floats.

    Which of the two is decided by the declared type of an array or Series, never by its records; a list or an object
    column declares none, so its numbers are floats (:mod:`dither.validation`). Missing values (NaN, None, plus or minus
    infinity, and in a column without a declared type whatever is no number) are refused by default;
    ``nan="drop"`` leaves those records out, which changes how many there are and so needs
    :data:`~dither.AddRemove`; ``nan="lower"`` counts them as the lower bound.

    ``x`` is the column, ``neighbors`` the neighboring relation and ``lower`` the lower bound.

    >>> from dither import AddRemove
    >>> read([1.0, None, 3.0], AddRemove, nan="drop")
    array([1., 3.])
    """
    if nan not in ("refuse", "drop", "lower"):
        raise InvalidArgument("nan", "'refuse', 'drop' or 'lower'", repr(nan), "choose one of them")
    if nan == "drop" and neighbors is ReplaceOne:
        raise InvalidArgument(
            "nan",
            "'refuse' or 'lower' under ReplaceOne, where the number of records is public",
            "'drop'",
            "pass neighbors=dither.AddRemove, or nan='lower'",
        )
    column = as_values(x, "number")
    values: Values = column.values.astype(np.int64, copy=False) if column.kind == "boolean" else column.values
    missing, fill = column.missing, float(lower)
    if values.dtype.kind == "i":
        fill = min(max(math.floor(lower), -(1 << 63)), (1 << 63) - 1)
    else:
        missing = ~np.isfinite(values)
    if not bool(np.any(missing)):
        return values
    if nan == "refuse":
        raise InvalidData(
            "x",
            "finite numbers",
            "NaN, None or infinity among them",
            "pass nan='lower', or nan='drop' with neighbors=dither.AddRemove",
        )
    return values[~missing] if nan == "drop" else np.where(missing, values.dtype.type(fill), values)


def listed(x: Any) -> Any:
    """Return a column that can be read more than once: an iterator as a list, any other object unchanged.

    >>> listed(i for i in range(3))
    [0, 1, 2]
    """
    return list(x) if isinstance(x, Iterator) else x


def known_size(size: int, at_least: int = 1) -> None:
    """Refuse fewer than ``at_least`` records where their number is public, under ReplaceOne.

    ``size`` is the number of records; it is public, so the error may contain it.

    >>> known_size(1)
    """
    if size < at_least:
        raise InvalidArgument(
            "x",
            f"at least {at_least} record(s) under ReplaceOne, where the number of records is public",
            f"{size}",
            "pass neighbors=dither.AddRemove if that number is private",
        )


def total(numbers: NDArray[np.uint64]) -> int:
    """Return the sum of unsigned 64-bit ``numbers`` as a Python int: halves are added separately, so nothing overflows.

    The halves are below 2^32, so sums of fewer than 2^32 of them fit 64 bits.

    >>> total(np.array([2**64 - 1, 2**64 - 1], dtype=np.uint64)) == 2**65 - 2
    True
    """
    high = int((numbers >> np.uint64(32)).sum(dtype=np.uint64))
    low = int((numbers & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64))
    return (high << 32) + low
