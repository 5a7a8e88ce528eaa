"""Reading one column of data: any one-dimensional container, a stated policy for missing values, and an exact
integer grid.

Everything here works on one record at a time (clip, round, replace), so it cannot make neighbours differ in
more than one record; and every check that could fail on the data fails before anything is released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, InvalidData, message
from dither.exact import exactly
from dither.intake import as_values
from dither.neighbors import Neighbors, ReplaceOne

NanPolicy = Literal["refuse", "drop", "lower"]
Values = NDArray[np.int64] | NDArray[np.float64]

_ROWS = 1 << 17


def read(x: Any, neighbors: Neighbors, nan: NanPolicy = "refuse", lower: float = 0.0) -> Values:
    """One column as 64-bit integers or finite floats.

    Which of the two is decided by the declared type of an array or Series, never by its records; a list or an object
    column declares none, so its numbers are floats (:mod:`dither.intake`). Missing values (NaN, None, plus or minus
    infinity, and in a column without a declared type whatever is no number) are refused by default;
    ``nan="drop"`` leaves those records out, which changes how many there are and so needs
    :data:`~dither.AddRemove`; ``nan="lower"`` counts them as the lower bound.

    >>> from dither import AddRemove
    >>> read([1.0, None, 3.0], AddRemove, nan="drop")
    array([1., 3.])
    """
    if nan not in ("refuse", "drop", "lower"):
        raise InvalidArgument(message("nan", "'refuse', 'drop' or 'lower'", repr(nan), "choose one of them"))
    if nan == "drop" and neighbors is ReplaceOne:
        raise InvalidArgument(
            message(
                "nan",
                "'refuse' or 'lower' under ReplaceOne, where the number of records is public",
                "'drop'",
                "pass neighbors=dither.AddRemove, or nan='lower'",
            )
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
            message(
                "x",
                "finite numbers",
                "NaN, None or infinity among them",
                "pass nan='lower', or nan='drop' with neighbors=dither.AddRemove",
            )
        )
    return values[~missing] if nan == "drop" else np.where(missing, values.dtype.type(fill), values)


def listed(x: Any) -> Any:
    """A column that can be read more than once: an iterator as a list, anything else as it is.

    >>> listed(i for i in range(3))
    [0, 1, 2]
    """
    return list(x) if isinstance(x, Iterator) else x


def known_size(size: int, at_least: int = 1) -> None:
    """Refuse too few records where their number is public, under ReplaceOne.

    >>> known_size(1)
    """
    if size < at_least:
        raise InvalidArgument(
            message(
                "x",
                f"at least {at_least} record(s) under ReplaceOne, where the number of records is public",
                f"{size}",
                "pass neighbors=dither.AddRemove if that number is private",
            )
        )


@dataclass(frozen=True)
class Grid:
    """The points ``step * k``, ``first <= k <= last``, on which values are counted: sums become sums of integers.

    >>> Grid.between(0, 100, 20)
    Grid(step=Fraction(1, 16384), first=0, last=1638400)
    >>> Grid.between(0, 100, 20, integers=True)
    Grid(step=Fraction(1, 1), first=0, last=100)
    """

    step: Fraction
    first: int
    last: int

    @classmethod
    def between(cls, lower: float, upper: float, bits: int, *, integers: bool = False) -> Grid:
        """A grid with ``2**bits`` to ``2**(bits+1)`` points between the bounds; for ``integers`` the integers,
        if they are not many more.
        """
        low, high = exactly(lower), exactly(upper)
        if (
            integers
            and isinstance(lower, int)
            and isinstance(upper, int)
            and high - low < 1 << (62 if bits > 24 else bits)
            and -(1 << 63) <= low < high < 1 << 63
        ):
            return cls(Fraction(1), lower, upper)
        if max(abs(low), abs(high)) >= 1 << 1000:
            raise InvalidArgument(
                message("bounds", "bounds of at most 1e+300", "larger ones", "pass bounds that the data can reach")
            )
        exponent = math.frexp(float(high - low))[1] - 1 - bits
        step = Fraction(2) ** exponent
        if max(abs(low), abs(high)) / step >= 1 << 62 or not -1000 < exponent < 900:
            raise InvalidArgument(
                message(
                    "bounds",
                    "bounds whose width is not tiny against their size",
                    "such bounds",
                    "subtract a public constant from the data and the bounds",
                )
            )
        return cls(step, round(low / step), round(high / step))

    @property
    def span(self) -> int:
        """The number of steps from the first point to the last."""
        return self.last - self.first

    def places(self, x: Values, lower: float, upper: float) -> Iterator[NDArray[np.uint64]]:
        """For each record, clipped to the bounds, how many steps from the first point it lies; in blocks of rows."""
        for start in range(0, x.size, _ROWS):
            part = x[start : start + _ROWS]
            if part.dtype.kind == "i" and self.step == 1:
                clipped = np.clip(part, self.first, self.last)
            else:
                scaled = np.clip(part.astype(np.float64), float(lower), float(upper))
                if float(self.step) != 1.0:
                    scaled = scaled / float(self.step)
                clipped = np.clip(np.rint(scaled), float(self.first), float(self.last)).astype(np.int64)
                np.clip(clipped, self.first, self.last, out=clipped)
            yield clipped.view(np.uint64) - np.uint64(self.first % (1 << 64))


def total(places: NDArray[np.uint64]) -> int:
    """The sum of 64-bit numbers as a Python int: halves are added apart, so nothing can overflow.

    >>> total(np.array([2**64 - 1, 2**64 - 1], dtype=np.uint64)) == 2**65 - 2
    True
    """
    high = int((places >> np.uint64(32)).sum(dtype=np.uint64))
    low = int((places & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64))
    return (high << 32) + low
