"""A value of a row as a whole number, in SQL: steps of a public grid, or the number of a bin. Neither can fail."""

from __future__ import annotations

import math

from sqlglot import exp

from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.measures import Grid
from dither.tables.query import nodes
from dither.tables.query.nodes import binary, double, integer
from dither.tables.query.ranges import LEAST, MOST
from dither.tables.query.tree import Column, Expression


def whole_steps(value: Expression, grid: Grid, bounds: tuple[float, float], find: Lookup) -> exp.Expr:
    """A value as whole steps of a grid, within bounds; NULL for NULL and NaN."""
    low, high = bounds
    known = None
    if isinstance(value, Column):
        node, card = find(value)
        if card.type == "integer" and grid.scale == 1.0:
            ends = integer(grid.low), integer(grid.high)
            arms = [(binary("<=", node, ends[0]), ends[0]), (binary(">=", node, ends[1]), ends[1])]
            return nodes.case(arms, nodes.cast(node, "integer"))
        if card.type == "integer":
            node = nodes.cast(node, "number")
    else:
        number = expressions.number(value, find)
        node, known = number.node, number.range
    return nodes.cast(expressions.hold(node, low, high, grid.scale, known), "integer")


def bin_of(value: Expression, edges: tuple[float, ...], find: Lookup) -> exp.Expr:
    """The number of the bin; equal widths by one multiplication, others by comparison.

    What is below the second edge is compared and not multiplied: a product too small for a double is an error on
    PostgreSQL. Any other value is as far from the first edge as doubles there are from each other, or a bin's width.
    """
    last = len(edges) - 2
    low, high = edges[0], edges[-1]
    column = find(value)[0] if isinstance(value, Column) else expressions.number(value, find).node
    x = nodes.cast(column, "number")
    arms = [
        (binary("or", nodes.is_null(x), expressions.is_nan(x)), nodes.literal(None)),
        (binary("<=", x, double(low)), integer(0)),
        (binary(">=", x, double(high)), integer(last)),
    ]
    if last >= 64 and _even(edges):
        arms.append((binary("<", x, double(edges[1])), integer(0)))
        steps = binary("*", binary("-", x, double(low)), double((last + 1) / (high - low)))
        return nodes.case(arms, nodes.call("LEAST", nodes.cast(nodes.call("FLOOR", steps), "integer"), integer(last)))
    arms += [(binary("<", x, double(edge)), integer(i)) for i, edge in enumerate(edges[1:-1])]
    result = nodes.case(arms, integer(last))
    nodes.check_length(result)
    return result


def _even(edges: tuple[float, ...]) -> bool:
    """Whether bins have equal widths, within bounds that a product can bear."""
    width, count, size = float(edges[-1]) - float(edges[0]), len(edges) - 1, max(abs(edges[0]), abs(edges[-1]))
    if not LEAST <= width <= MOST or size > MOST:
        return False
    slack = 1e-9 * width + 2 * math.ulp(float(size))
    return max(abs(edge - (edges[0] + width * i / count)) for i, edge in enumerate(edges)) <= slack


__all__ = ["bin_of", "whole_steps"]
