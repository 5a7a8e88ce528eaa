"""A value of a row as a whole number, in SQL: steps of a public grid, or the number of a bin. Neither can fail."""

from __future__ import annotations

import math

from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup, double
from dither.tables.planning.measures import Grid
from dither.tables.query.ranges import LEAST, MOST
from dither.tables.query.tree import Column, Expression


def whole_steps(value: Expression, grid: Grid, bounds: tuple[float, float], find: Lookup) -> str:
    """A value as whole steps of a grid, within bounds; NULL for NULL and NaN."""
    low, high = bounds
    known = None
    if isinstance(value, Column):
        sql, card = find(value)
        if card.type == "integer" and grid.scale == 1.0:
            return (
                f"CASE WHEN {sql} <= {grid.low} THEN {grid.low} WHEN {sql} >= {grid.high} THEN {grid.high} "
                f"ELSE CAST({sql} AS BIGINT) END"
            )
        if card.type == "integer":
            sql = f"CAST({sql} AS DOUBLE)"
    else:
        number = expressions.number(value, find)
        sql, known = number.sql, number.range
    return f"CAST({expressions.held(sql, low, high, grid.scale, known)} AS BIGINT)"


def bin_of(value: Expression, edges: tuple[float, ...], find: Lookup) -> str:
    """The number of the bin; equal widths by one multiplication, others by comparison.

    What is below the second edge is compared and not multiplied: a product too small for a double is an error on
    PostgreSQL. Any other value is as far from the first edge as doubles there are from each other, or a bin's width.
    """
    count = len(edges) - 1
    low, high = edges[0], edges[-1]
    sql = find(value)[0] if isinstance(value, Column) else expressions.number(value, find).sql
    plain = f"CAST({sql} AS DOUBLE)"
    outside = (
        f"CASE WHEN {plain} IS NULL OR {plain} > {expressions.NAN} THEN NULL WHEN {plain} <= {double(low)} THEN 0 "
        f"WHEN {plain} >= {double(high)} THEN {count - 1}"
    )
    if count > 64 and _even(edges):
        per = count / (high - low)
        step = f"CAST(FLOOR(({plain} - {double(low)}) * {double(per)}) AS BIGINT)"
        return f"{outside} WHEN {plain} < {double(edges[1])} THEN 0 ELSE LEAST({step}, {count - 1}) END"
    expressions.repeated(plain, count)
    arms = " ".join(f"WHEN {plain} < {double(edge)} THEN {i}" for i, edge in enumerate(edges[1:-1]))
    return f"{outside} {arms} ELSE {count - 1} END"


def _even(edges: tuple[float, ...]) -> bool:
    """Whether bins have equal widths, within bounds that a product can bear."""
    width, count, size = float(edges[-1]) - float(edges[0]), len(edges) - 1, max(abs(edges[0]), abs(edges[-1]))
    if not LEAST <= width <= MOST or size > MOST:
        return False
    slack = 1e-9 * width + 2 * math.ulp(float(size))
    return max(abs(edge - (edges[0] + width * i / count)) for i, edge in enumerate(edges)) <= slack


__all__ = ["bin_of", "whole_steps"]
