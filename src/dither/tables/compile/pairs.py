"""How two columns are measured together: sums of six products that are not negative and add up to the same in each row.

*Statement.* Let t and u, from 0 to 1, be the places of two values between their bounds, ``a = t/2``, ``b = u/2`` and
``c = 1 - a - b``. The six terms of ``(a + b + c)^2``, that is ``a^2, b^2, c^2, 2ab, 2ac, 2bc``, are not negative and
add up to 1. So the six sums of them are one measurement: one row moves it by 1 in the l1 norm, and by no more in the
l2 norm. Number, means, variances and covariance of the pairs follow from it: ``a = a^2 + (2ab + 2ac) / 2``.

*In whole numbers.* Values are steps above their lower bounds, x and y, of at most ``width`` in all. With
``z = 2 width - x - y``, the terms are ``x^2, y^2, z^2, 2xy, 2xz, 2yz``: whole numbers that add up to ``(2 width)^2``,
which is the ``top`` of a row. A row in which either value is NULL adds nothing to any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.inference import Grid
from dither.tables.compile.expressions import Lookup, bounded, whole_steps
from dither.tables.query import nodes
from dither.tables.query.nodes import binary, case, integer, plain_column
from dither.tables.query.tree import Expression

Bounds = tuple[float, float]
PARTS = 6
PAIR_BITS = 13


@dataclass(frozen=True)
class Pair:
    """Two values that are measured together, each with its bounds and its grid."""

    values: tuple[Expression, Expression]
    bounds: tuple[Bounds, Bounds]
    grids: tuple[Grid, Grid]

    @property
    def width(self) -> int:
        """The steps of the finer grid from end to end: no value is further from its lower bound."""
        return max(grid.width for grid in self.grids)

    @property
    def top(self) -> int:
        """What one row adds to all parts together."""
        return (2 * self.width) ** 2

    def columns(self, name: str, find: Lookup) -> dict[str, exp.Expr]:
        """The two values in steps above their lower bounds, as columns of the rows."""
        result = {}
        for place, (value, bounds, grid) in enumerate(zip(self.values, self.bounds, self.grids, strict=True)):
            steps = whole_steps(value, grid, bounds, find)
            result[f"{name}_{place}"] = steps if grid.low == 0 else binary("-", steps, integer(grid.low))
        return result

    def part(self, name: str, number: int) -> exp.Expr:
        """One of the six products of a row, from its columns; 0 where either value is missing."""
        x, y = plain_column(f"{name}_0"), plain_column(f"{name}_1")
        z = binary("-", binary("-", integer(2 * self.width), x), y)
        products: Sequence[Callable[[], exp.Expr]] = (
            lambda: binary("*", x, x),
            lambda: binary("*", y, y),
            lambda: binary("*", z, z),
            lambda: binary("*", integer(2), binary("*", x, y)),
            lambda: binary("*", binary("*", integer(2), x), z),
            lambda: binary("*", binary("*", integer(2), y), z),
        )
        missing = binary("or", nodes.is_null(x), nodes.is_null(y))
        return case([(missing, integer(0))], products[number]())


def pair_grid(bounds: Bounds, whole: bool, bits: int, name: str) -> Grid:
    """A grid of about ``2^bits`` steps: two such grids are equally fine, whatever the bounds. Whole numbers that are
    fewer get several steps each, so that they stay exact.

    >>> pair_grid((0, 100), True, 9, "x").width, pair_grid((0.0, 3.7), False, 9, "x").width
    (500, 512)
    """
    low, high = bounded(*bounds)
    most = 1 << bits
    distance = int(high) - int(low)
    scale = float(most // distance) if whole and 0 < distance <= most else most / (high - low)
    result = Grid.rounded_half_up(low, high, scale)
    if result.width == 0 or max(abs(result.low), abs(result.high)) >= 1 << 50:  # steps are computed in doubles
        fix = "subtract a constant in the question"
        expected = "bounds that are not far from 0 compared to their width"
        raise InvalidArgument(name, expected, "others", fix)
    return result
