"""What is measured: whole numbers for each group, on public grids, to which each person adds at most so much."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dither.errors import InvalidArgument, message
from dither.inference import Grid
from dither.tables.compile import expressions
from dither.tables.query.tree import Expression

SQUARE_BITS = 12


def grid(bounds: tuple[float, float], whole: bool, bits: int, limit: int) -> Grid:
    """The grid for these bounds: of step 1 for whole numbers in a range that fits, otherwise of some 2^bits steps.

    >>> grid((0, 120), True, 24, 1)
    Grid(low=0, high=120, step=Fraction(1, 1))
    """
    low, high = bounds
    bits -= max(0, math.ceil(math.log2(limit)) - 4)
    ends = math.ceil(low) if whole else low, math.floor(high) if whole else high
    scale = 1.0 if whole and ends[1] - ends[0] < 1 << bits else expressions.scale_of(low, high, bits)
    result = Grid.rounded_half_up(low, high, scale)
    if max(abs(result.low), abs(result.high)) * limit >= 1 << 32:
        raise InvalidArgument(
            message(
                "bounds",
                "bounds that are not far from 0 compared to their width",
                "others",
                "subtract a constant in the question",
            )
        )
    return result


@dataclass(frozen=True)
class Measure:
    """A whole number for each group, to which each person adds at most ``bound``, either way.

    ``kind`` is ``count`` (rows), ``values`` (rows where the value is not NULL), ``people``, ``sum`` (of the value),
    ``center`` (twice the value less the middle of its bounds) or ``square`` (the square of that, on a coarser grid).
    """

    kind: str
    value: Expression | None = None
    bounds: tuple[float, float] | None = None
    grid: Grid | None = None

    @property
    def column(self) -> tuple[object, ...]:
        """What it reads of each row: measures that read the same share it."""
        return self.value, self.grid, self.bounds, self.kind == "square"

    @property
    def scale(self) -> float:
        """What one whole number is worth: a count counts, sums are in steps, half steps, or squares of these."""
        if self.grid is None or self.kind == "values":
            return 1.0
        return self.grid.scale * {"center": 2.0, "square": 4.0 * self.grid.scale}.get(self.kind, 1.0)

    def bound(self, limit: int) -> int:
        """What one person adds to one group at most."""
        if self.kind == "people":
            return 1
        if self.kind in ("count", "values"):
            return limit
        assert self.grid is not None
        if self.kind == "sum":
            return max(abs(self.grid.low), abs(self.grid.high), 1) * limit
        return (self.grid.width if self.kind == "center" else self.grid.width**2) * limit


__all__ = ["SQUARE_BITS", "Grid", "Measure", "grid"]
