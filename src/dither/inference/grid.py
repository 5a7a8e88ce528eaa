"""The public grid on which values are counted, so that sums of values are sums of integers.

*Statement.* Values are clipped to public bounds and rounded to the nearest point of a public grid, one record at a
time. The sum is then a sum of integers, and one record moves it by at most :meth:`Grid.sensitivity` steps.

*Why.* Sums of floats depend on the order of the rows and are rounded as they grow, so that one record can move them by
more than its value (Casacuberta, Shoemate, Vadhan and Wagaman 2022). Sums of integers do not and cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.exact import exactly
from dither.neighbors import Neighbors, ReplaceOne

Values = NDArray[np.int64] | NDArray[np.float64]

_BLOCK_ROWS = 1 << 17


@dataclass(frozen=True)
class Grid:
    """The points ``step * k`` with ``low <= k <= high``.

    ``low`` and ``high`` are the bounds in steps, so they are integers; ``step`` is 1 or another power of two, so
    multiplying by :attr:`scale` is exact in floats.

    >>> Grid.between(0, 100, 20)
    Grid(low=0, high=1638400, step=Fraction(1, 16384))
    >>> Grid.between(0, 100, 20, integers=True)
    Grid(low=0, high=100, step=Fraction(1, 1))
    """

    low: int
    high: int
    step: Fraction

    @classmethod
    def between(cls, lower: float, upper: float, bits: int, *, integers: bool = False) -> Grid:
        """Return the grid with ``2**bits`` to ``2**(bits+1)`` points between the bounds ``lower`` and ``upper``.

        With ``integers`` (the column holds integers) and integer bounds, it has all integers between the bounds
        instead, unless there are 2^62 of them or more (``2**bits`` if bits is 24 or less, as for squares). Bounds
        above 2^1000, or very close for their size, are refused.
        """
        low, high = exactly(lower), exactly(upper)
        if (
            integers
            and isinstance(lower, int)
            and isinstance(upper, int)
            and high - low < 1 << (62 if bits > 24 else bits)
            and -(1 << 63) <= low < high < 1 << 63
        ):
            return cls(lower, upper, Fraction(1))
        if max(abs(low), abs(high)) >= 1 << 1000:
            raise InvalidArgument(
                "bounds", "bounds of at most 1e+300", "larger ones", "pass bounds that the data can reach"
            )
        exponent = math.frexp(float(high - low))[1] - 1 - bits
        step = Fraction(2) ** exponent
        if max(abs(low), abs(high)) / step >= 1 << 62 or not -1000 < exponent < 900:
            raise InvalidArgument(
                "bounds",
                "bounds whose width is not tiny against their size",
                "bounds with a tiny width",
                "subtract a public constant from the data and the bounds",
            )
        return cls(round(low / step), round(high / step), step)

    @classmethod
    def rounded_half_up(cls, lower: float, upper: float, scale: float) -> Grid:
        """Return the grid of steps ``1 / scale``, a power of two, with bounds rounded as SQL rounds values.

        That is ``floor(bound * scale + 0.5)``.

        >>> Grid.rounded_half_up(0.0, 1.3, 2.0)
        Grid(low=0, high=3, step=Fraction(1, 2))
        """
        return cls(math.floor(lower * scale + 0.5), math.floor(upper * scale + 0.5), 1 / Fraction(scale))

    @property
    def width(self) -> int:
        """Return the number of steps from the lowest point to the highest."""
        return self.high - self.low

    @property
    def scale(self) -> float:
        """Return ``1 / step``, the number of steps in a distance of 1."""
        return float(1 / self.step)

    def sensitivity(self, neighbors: Neighbors) -> int:
        """Return the largest change of the sum of all records, in steps, by one record.

        Replacing a record moves it by the width; adding or removing one by the larger of the bounds' sizes.

        >>> from dither import AddRemove, ReplaceOne
        >>> grid = Grid(-3, 10, Fraction(1))
        >>> grid.sensitivity(ReplaceOne), grid.sensitivity(AddRemove)
        (13, 10)
        """
        return self.width if neighbors is ReplaceOne else max(abs(self.low), abs(self.high))

    def value(self, position: int) -> Fraction:
        """Return the value of the point at a position, counted in steps from the lowest point.

        >>> Grid(-2, 2, Fraction(1, 4)).value(1)
        Fraction(-1, 4)
        """
        return (self.low + position) * self.step

    def part(self, first: int, last: int) -> Grid:
        """Return the points from ``first`` to ``last``, counted in steps from the lowest one.

        >>> Grid(-2, 2, Fraction(1, 4)).part(1, 3)
        Grid(low=-1, high=1, step=Fraction(1, 4))
        """
        return Grid(self.low + first, self.low + last, self.step)

    @property
    def mirrored(self) -> Grid:
        """Return the grid of the points with their signs changed."""
        return Grid(-self.high, -self.low, self.step)

    def positions(self, x: Values, lower: float, upper: float) -> Iterator[NDArray[np.uint64]]:
        """Yield the position of each record of ``x`` on the grid, in blocks of rows.

        Records are clipped to the bounds ``lower`` and ``upper`` and rounded to the nearest grid point; a position is
        the number of steps above the lowest point.
        """
        for start in range(0, x.size, _BLOCK_ROWS):
            block = x[start : start + _BLOCK_ROWS]
            if block.dtype.kind == "i" and self.step == 1:
                steps = np.clip(block, self.low, self.high)
            else:
                scaled = np.clip(block.astype(np.float64), float(lower), float(upper))
                if float(self.step) != 1.0:
                    scaled = scaled / float(self.step)
                steps = np.clip(np.rint(scaled), float(self.low), float(self.high)).astype(np.int64)
                np.clip(steps, self.low, self.high, out=steps)
            yield steps.view(np.uint64) - np.uint64(self.low % (1 << 64))


def bin_numbers(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the bin of each value, of bins that begin at their lower edges; values outside go to the first or last
    bin.

    >>> bin_numbers(np.array([-1.0, 0.5, 1.0, 9.0]), np.array([0.0, 1.0, 2.0]))
    array([0, 0, 1, 1])
    """
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
