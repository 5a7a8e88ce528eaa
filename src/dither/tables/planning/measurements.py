"""What each aggregate of a question is estimated from: measurements that several of them share, or bins to choose from.

The moments of a column are one measurement (:class:`~dither.tables.compile.statements.Moments`): COUNT(*), COUNT, SUM,
AVG, VAR and STDDEV that are about the same column share it, and its part of the budget. A lone sum is measured as such,
since that takes less noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dither import arguments
from dither.errors import InvalidArgument
from dither.mechanisms import Exponential, Laplace
from dither.tables.card.values import Value
from dither.tables.compile import expressions
from dither.tables.compile.expressions import GRID_BITS, Lookup, bounded
from dither.tables.compile.limits import Limits
from dither.tables.compile.pairs import PAIR_BITS, Pair, pair_grid
from dither.tables.compile.statements import Measure, Moments, grid, near_zero, pair_products
from dither.tables.planning.key_selection import Noise, mode_keys
from dither.tables.query.tree import OF_PAIRS, Aggregate, Column, Query, show

BINS = 8192

Part = tuple[Measure, ...]
"""Measures that are released as one vector."""
PublicKeys = tuple[tuple[Value, ...] | None, ...]


@dataclass(frozen=True)
class Choice:
    """A choice for each group among bins or keys: an extreme, a mode."""

    name: str
    aggregate: Aggregate
    mechanism: Exponential
    bins: int
    interval: Laplace | None = None
    """The noise of a histogram of the bins or keys, if an interval, or for a mode its probability, was asked for."""


@dataclass(frozen=True)
class Counts:
    """A histogram for each group."""

    name: str
    aggregate: Aggregate
    mechanism: Noise


@dataclass(frozen=True)
class Measurements:
    """What has to be measured, by the names of aggregates: vectors with their weights, and choices among bins."""

    parts: Mapping[str, Part]
    weights: Mapping[str, float]
    choices: tuple[tuple[str, Aggregate, int], ...]
    """Aggregates that are chosen among so many bins, with the edges or keys of these."""


def _bounds(name: str, aggregate: Aggregate, find: Lookup) -> tuple[tuple[float, float], bool]:
    """The public bounds of an aggregate's value, and whether it is a whole number."""
    assert aggregate.value is not None
    if isinstance(aggregate.value, Column):
        card = find(aggregate.value)[1]
        kind, known = card.type, card.bounds
    else:
        kind, known = "number", expressions.public_interval(aggregate.value, find)
    if kind not in ("integer", "number"):
        raise InvalidArgument(name, "a number", kind, "count it, or group by it")
    given = aggregate.bounds if aggregate.bounds is not None else known
    if given is None:
        here = "as bounds=(low, high) in Python, or contribution_bounds_per_row => (low, high) in SQL"
        fix = f"state them in the card, or here, {here}"
        if expressions.compile(aggregate.value, find).range is not None:
            fix = f"hold it within bounds: LEAST(GREATEST({show(aggregate.value)}, 0), 100), for example"
        raise InvalidArgument(name, "public bounds of its values", "none", fix)
    if given == known and known is not None and known[0] == known[1]:
        # every value is the same, as in SUM(CASE WHEN x > 0 THEN 1 END): wider bounds that hold it are as true
        given = (min(known[0], 0.0), max(known[0], 0.0)) if known[0] else (0.0, 1.0)
    return arguments.bounds(given), kind == "integer"


def measurements(
    query: Query, keys: PublicKeys, limits: Limits, find: Lookup, population: bool = False
) -> Measurements:
    """What each aggregate needs: a vector of measures with its weight, or a choice among so many bins.

    Aggregates of one value share its moments, and the number of rows follows from moments that count rows without a
    value as well: everything is measured, and paid for, once. Errors for a ``population`` need the squares of values.
    """
    same = _counts_people(query, keys, limits)
    parts: dict[str, Part] = {}
    weights: dict[str, float] = {}
    chosen: list[tuple[str, Aggregate, int]] = []
    moments = _moments(query, limits, find, same, population)
    rows = next((item for item in moments.values() if item.nulls), None)
    for name, aggregate in query.aggregates.items():
        kind, value = aggregate.kind, aggregate.value
        if kind == "people" or (kind == "count" and same):
            parts[name], weights[name] = (Measure("people"),), 1.0
        elif kind in OF_PAIRS:
            parts[name], weights[name] = pair_products(_pair(name, aggregate, limits, find)), 1.0
        elif kind == "count_distinct":
            parts[name], weights[name] = (Measure("distinct", value),), 1.0
        elif kind == "count":
            parts[name], weights[name] = (Measure("rows"),) if rows is None else rows.parts, 1.0
        elif kind == "mode":
            assert value is not None
            listed = aggregate.keys if aggregate.keys is not None else mode_keys(value, query.where, find)
            if not listed:
                where = show(value) if isinstance(value, Column) else "x"
                largest = f"SELECT {where} … GROUP BY {where} ORDER BY COUNT(*) DESC LIMIT 1"
                fix = f"state keys = […] in the card, keep some of its values: WHERE {where} IN (…), or write {largest}"
                raise InvalidArgument(name, "public keys that the mode is chosen among", "none", fix)
            chosen.append((name, replace(aggregate, keys=listed), len(listed)))
        elif kind == "histogram":
            edges = aggregate.edges
            if edges is None or len(edges) < 2:
                raise InvalidArgument(name, "edges of its bins", "none", "pass edges=(0, 10, 20)")
            chosen.append((name, aggregate, len(edges) - 1))
        elif kind in ("quantile", "min", "max"):
            chosen.append(_binned(name, aggregate, find))
        else:
            vector = moments[name]
            alone = kind == "sum" and sum(item is vector for item in moments.values()) == 1 and not vector.nulls
            alone = (
                alone and not population and vector.grid is not None and near_zero(vector.grid, math.ceil(limits.total))
            )
            parts[name] = (Measure("sum", value, vector),) if alone else vector.parts
            weights[name] = 1.0
            if alone:
                low, high = vector.bounds or (0.0, 1.0)
                weights[name] = max(abs(low), abs(high)) / ((abs(low) + abs(high)) / 2)
    for name, aggregate in query.aggregates.items():
        if aggregate.weight is not None:
            weights[name] = arguments.positive(aggregate.weight, "weight")
    return Measurements(parts, weights, tuple(chosen))


def _counts_people(query: Query, keys: PublicKeys, limits: Limits) -> bool:
    """Whether rows and people are the same number: each person has one row in each group, and nothing is compared with
    it that is not. Levels that add up count rows."""
    if limits.level_groups is not None:
        return False
    kinds = {aggregate.kind for aggregate in query.aggregates.values()}
    private = any(listed is None for listed in keys)
    return limits.rows == 1 and kinds <= {"count", "people"} and (private or not query.groups or "people" in kinds)


def _moments(query: Query, limits: Limits, find: Lookup, counts_people: bool, population: bool) -> dict[str, Moments]:
    """The moments that each aggregate is estimated from: one vector for all aggregates of the same value and bounds,
    of the highest degree that any of them needs; the first also counts rows without a value if rows are counted.
    """
    degrees = {"count_value": 0, **dict.fromkeys(("sum", "mean"), 2 if population else 1), "var": 2, "std": 2}
    needed: dict[str, tuple[tuple[object, ...], int]] = {}
    bounds: dict[str, tuple[tuple[float, float], bool] | None] = {}
    aggregates = query.aggregates
    for name, aggregate in aggregates.items():
        if aggregate.kind in degrees and aggregate.value is not None:
            bounds[name] = None if aggregate.kind == "count_value" else _bounds(name, aggregate, find)
            needed[name] = (aggregate.value, bounds[name]), degrees[aggregate.kind]
    for name, (column, degree) in needed.items():  # a count of values is part of any other moments of the value
        if degree == 0:
            other = next((c for c, d in needed.values() if d and c[0] == column[0]), column)
            needed[name] = other, degree
    result: dict[str, Moments] = {}
    vectors: dict[tuple[object, ...], Moments] = {}
    rows = any(aggregate.kind == "count" for aggregate in aggregates.values()) and not counts_people
    for name, (column, _) in needed.items():
        if column not in vectors:
            degree = max(d for c, d in needed.values() if c == column)
            known = next((bounds[n] for n, (c, _) in needed.items() if c == column and bounds[n] is not None), None)
            vectors[column] = _vector(limits, name, aggregates[name], degree, rows and not vectors, known)
        result[name] = vectors[column]
    return result


def _pair(name: str, aggregate: Aggregate, limits: Limits, find: Lookup) -> Pair:
    """Two values that are measured together, in an order that all aggregates of the same two share."""
    assert aggregate.other is not None
    sides = [
        (item.value, *_bounds(name, item, find))
        for item in (aggregate, replace(aggregate, value=aggregate.other, bounds=aggregate.other_bounds))
    ]
    sides.sort(key=repr)
    # what one row adds, the square of twice the width, times the rows of one person has to stay below 2^30
    bits = min(PAIR_BITS, (27 - math.ceil(limits.total).bit_length()) // 2)
    grids = [pair_grid(bounds, whole, bits, name) for _, bounds, whole in sides]
    (one, one_bounds, _), (two, two_bounds, _) = sides
    assert one is not None
    assert two is not None
    return Pair((one, two), (one_bounds, two_bounds), (grids[0], grids[1]))


def _vector(
    limits: Limits,
    name: str,
    aggregate: Aggregate,
    degree: int,
    nulls: bool,
    known: tuple[tuple[float, float], bool] | None,
) -> Moments:
    value = aggregate.value
    assert value is not None
    if known is None:
        return Moments(value, 0, nulls)
    bounds, whole = known
    total = math.ceil(limits.total)
    steps = grid(bounds, whole, GRID_BITS, total)
    if steps.width == 0:
        raise InvalidArgument(name, "bounds at least 1 apart", "closer ones", "widen them")
    if degree < 2:
        return Moments(value, 1, nulls, bounds, steps)
    # what one row adds, times the rows of one person, has to stay below 2^30
    divisor = -(-(int(steps.width) ** 2) // (1 << max(29 - total.bit_length(), 1)))
    return Moments(value, 2, nulls, bounds, steps, divisor)


def _binned(name: str, aggregate: Aggregate, find: Lookup) -> tuple[str, Aggregate, int]:
    """A quantile or an extreme, with the edges of the bins that it is chosen among."""
    bounds, whole = _bounds(name, aggregate, find)
    ends = bounded(*bounds)
    width = ends[1] - ends[0]
    bins = int(width) + 1 if whole and width < BINS else BINS
    first = int(bounds[0]) if whole and bounds[0] == int(bounds[0]) else bounds[0]
    edges = tuple(
        float(bounds[0]) + width * i / bins if not (whole and width < BINS) else first + i for i in range(bins + 1)
    )
    return name, replace(aggregate, edges=edges), bins
