"""Aggregations of one question that are bounded together; levels of ROLLUP, CUBE and GROUPING SETS that agree.

*What is measured.* Aggregations of one question are often divided by each other, so a person's rows have the same limit
R in all of them, by the l1 norm (:mod:`dither.tables.compile.limits`): in those about the same rows they have the same
weights, whatever the groups are. Each has its own noise and its own share of epsilon, of which the sum is charged; a
person changes each by at most R in the l1 norm, and so in the l2 norm.

Levels with public keys are also about the same rows: those whose key in every column is one of the public keys. The
budget is divided equally among them. Which level is read is not known, and after least squares every level gains from
all others, a total most of all.

*Least squares.* With x the true number in each cell, level S has measured ``y_S = A_S x + noise`` of variance v_S, A_S
adding up over the columns that are not in S. The estimate is the x that makes ``sum_S |y_S - A_S x|^2 / v_S`` least;
each level is shown as ``A_S x``, so groups add up to the groups above them exactly, up to rounding of doubles.

*The solution in closed form.* Let ``m_T`` for a set T of columns be the totals by T with their mean over each column of
T taken out (what the analysis of variance calls the interaction of T). Every ``y_S`` with S a superset of T is
informative of it: added up over the columns of S that are not in T, of which there are ``n = product of their numbers
of keys`` combinations, it is an unbiased estimate with variance ``n v_S``. Noise in different m_T is uncorrelated, as
the matrices that take out means are orthogonal projections that commute, so the best estimate of each m_T is the mean
of these weighed by ``1 / (n v_S)``, and level S is the sum over its subsets T of ``m_T / n``. Its variance is

    sum over T of  [1 / sum over S' of 1 / (n' v_S')] * product over T of (1 - 1 / number of keys) / n^2.

Averages and variances of a level are computed from its adjusted numbers and sums. Numbers of people, and of different
values, do not add up, and
choices among bins (quantiles, extremes, modes, histograms) are those of their level alone.

Where some keys are private, groups that are too small are missing, and where keys are columns of one public table,
combinations that do not occur are (:mod:`dither.tables.planning.public_rows`): levels are then answered each on its
own, and need not add up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.tables.card.model import Card
from dither.tables.compile.limits import MAX_TOTAL, Level, Together
from dither.tables.compile.statements import Measure
from dither.tables.planning.key_selection import number_of_groups
from dither.tables.planning.plan import Plan, keys_and_ties, variance_of
from dither.tables.planning.relation_cards import card_of_question
from dither.tables.query.tree import Call, Expression, Literal, Query

Columns = tuple[int, ...]


def bounded_together(
    aggregations: Sequence[Query], card: Card, listed_only: bool = False
) -> list[tuple[Query, Together]]:
    """The aggregations of a question, and how they are bounded together. Levels with public keys only become those of
    rows that have all the keys.
    """
    keys = [keys_and_ties(query, card_of_question(query, card), listed_only) for query in aggregations]
    sizes = [number_of_groups(known, ties, private=MAX_TOTAL) for known, ties in keys]
    levels: dict[int, tuple[Query, Level]] = {}
    members_of: dict[object, list[int]] = {}
    hierarchies: dict[object, list[int]] = {}
    for place, query in enumerate(aggregations):
        members_of.setdefault(_rows(query), []).append(place)
        hierarchies.setdefault((_rows(query), frozenset(_columns(query))), []).append(place)
    for number, members in enumerate(hierarchies.values()):
        if any(aggregations[place].rolled_up for place in members):
            levels |= _levels(number, aggregations, members, card, listed_only)
    most = max([*sizes, *(math.prod(level.sizes) for _, level in levels.values())])
    numbers = {place: number for number, members in enumerate(members_of.values()) for place in members}
    result = []
    for place, query in enumerate(aggregations):
        with_keys, level = levels.get(place, (query, None))
        result.append((with_keys, Together(numbers[place], min(most, MAX_TOTAL), level)))
    return result


def _rows(query: Query) -> tuple[object, ...]:
    """What aggregations of the same rows have in common."""
    source = repr(query.source)  # whose columns are in dictionaries, which have no hash
    return query.where, query.joins, source, query.max_groups, query.max_rows


def _levels(
    hierarchy: int, aggregations: Sequence[Query], members: Sequence[int], card: Card, listed_only: bool
) -> dict[int, tuple[Query, Level]]:
    """Aggregations of the same rows and columns as levels; none where some keys are not public, or some combinations
    of them do not occur."""
    by_value = {group.value: group for place in members for group in aggregations[place].groups}
    groups = list(by_value.values())
    first = aggregations[members[0]]
    keys, ties = keys_and_ties(replace(first, groups=tuple(groups)), card_of_question(first, card), listed_only)
    listed = {group.value: known for group, known in zip(groups, keys, strict=True) if known is not None}
    result: dict[int, tuple[Query, Level]] = {}
    if len(listed) < len(groups) or ties:
        return result
    for place in members:
        query = aggregations[place]
        where = query.where
        for group in query.rolled_up:
            has_key = _has_one_of(group.value, listed[group.value])
            where = has_key if where is None else Call("and", (where, has_key))
        shown = tuple(replace(group, keys=listed[group.value]) for group in query.groups)
        columns = tuple(i for i, group in enumerate(groups) if group.value in {item.value for item in shown})
        if [group.value for group in shown] == [groups[i].value for i in columns]:
            # levels are arrays whose axes are the columns in one order
            sizes = tuple(len(listed[group.value]) for group in groups)
            result[place] = replace(query, groups=shown, where=where), Level(hierarchy, columns, sizes)
    return result


def _columns(query: Query) -> list[Expression]:
    """The columns of all levels of which this is one."""
    return [group.value for group in (*query.groups, *query.rolled_up)]


def _has_one_of(value: Expression, keys: Sequence[Any]) -> Expression:
    """The condition that a value is one of these keys."""
    known = tuple(Literal(key) for key in keys if key is not None)
    result: Expression = Call("in", (value, *known))
    return Call("or", (result, Call("is_null", (value,)))) if None in keys else result


def with_least_squares(plans: Sequence[Plan]) -> list[Plan]:
    """The plans, each with what least squares will do to the noise of its measures."""
    result = list(plans)
    for measure, places in _shared(plans):
        levels, variances = _of_measure(plans, measure, places)
        after = variances_after([level.columns for level in levels], levels[0].sizes, variances)
        for place, before, variance in zip(places, variances, after, strict=True):
            factor = math.sqrt(variance / before)
            result[place] = replace(result[place], reduced={**result[place].reduced, measure: factor})
    return result


def _shared(plans: Sequence[Plan]) -> Iterator[tuple[Measure, list[int]]]:
    """The measures that several levels of a hierarchy have and that add up, each with the places of these levels.
    Numbers of people, and of different values, do not add up."""
    places_of: dict[tuple[int, Measure], list[int]] = {}
    for place, plan in enumerate(plans):
        if plan.together is not None and plan.together.level is not None:
            for measure in plan.measures:
                if measure.kind not in ("people", "distinct"):
                    places_of.setdefault((plan.together.level.hierarchy, measure), []).append(place)
    yield from ((measure, places) for (_, measure), places in places_of.items() if len(places) > 1)


def _of_measure(plans: Sequence[Plan], measure: Measure, places: list[int]) -> tuple[list[Level], list[float]]:
    """The levels, and the variances of a measure as parts of the largest: at a tiny epsilon they are beyond what can be
    squared."""
    roots = [math.sqrt(variance_of(plans[place].measures[measure])) for place in places]
    return [_level(plans[place]) for place in places], [max(root / max(roots), 1e-100) ** 2 for root in roots]


def make_agree(plans: Sequence[Plan], values: Sequence[dict[Measure, NDArray[Any]]]) -> None:
    """Move the measures of each level so that they agree. The last axis of each array has the groups of its level; axes
    before it, for tables as they might have been, are kept.
    """
    for measure, places in _shared(plans):
        levels, variances = _of_measure(plans, measure, places)
        tables = [values[place][measure] for place in places]
        moved = least_squares([level.columns for level in levels], levels[0].sizes, variances, tables)
        for place, table in zip(places, moved, strict=True):
            values[place][measure] = table


def _level(plan: Plan) -> Level:
    assert plan.together is not None
    assert plan.together.level is not None
    return plan.together.level


def _size(columns: Sequence[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[column] for column in columns)


def _subsets(levels: Sequence[Columns]) -> list[Columns]:
    """Every set of columns that is in some level."""
    every = (itertools.combinations(level, size) for level in levels for size in range(len(level) + 1))
    return list(dict.fromkeys(itertools.chain(*every)))


def _rest(level: Columns, part: Columns) -> Columns:
    return tuple(column for column in level if column not in part)


def least_squares(
    levels: Sequence[Columns], sizes: Sequence[int], variances: Sequence[float], values: Sequence[NDArray[Any]]
) -> list[NDArray[np.float64]]:
    """The levels made to agree. The last axis of each array of values has the groups of its level, in the order of the
    product of the keys of its columns; axes before it are kept.

    >>> cells, total = np.array([10.0, 20.0]), np.array([36.0])
    >>> least_squares([(0,), ()], [2], [1.0, 1.0], [cells, total])
    [array([12., 22.]), array([34.])]
    """
    before = np.shape(values[0])[:-1]
    tables = [
        np.asarray(table, dtype=np.float64).reshape((*before, *(sizes[column] for column in level)))
        for table, level in zip(values, levels, strict=True)
    ]
    result = [np.zeros_like(table) for table in tables]
    for part in _subsets(levels):
        within = [place for place, level in enumerate(levels) if set(part) <= set(level)]
        weights = [1 / (variances[place] * _size(_rest(levels[place], part), sizes)) for place in within]
        estimate: NDArray[np.float64] = np.zeros(())
        for place, weight in zip(within, weights, strict=True):
            level = levels[place]
            outside = tuple(len(before) + i for i, column in enumerate(level) if column not in part)
            totals = tables[place].sum(axis=outside)
            for axis in range(len(before), totals.ndim):
                totals = totals - totals.mean(axis=axis, keepdims=True)
            estimate = estimate + totals * (weight / sum(weights))
        for place in within:
            level = levels[place]
            shape = (sizes[column] if column in part else 1 for column in level)
            result[place] += estimate.reshape((*before, *shape)) / _size(_rest(level, part), sizes)
    return [table.reshape((*before, -1)) for table in result]


def variances_after(levels: Sequence[Columns], sizes: Sequence[int], variances: Sequence[float]) -> list[float]:
    """The variance of a group of each level after least squares.

    >>> variances_after([(0,), ()], [2], [1.0, 1.0])
    [0.6666666666666666, 0.6666666666666666]
    """
    result = [0.0] * len(levels)
    for part in _subsets(levels):
        within = [place for place, level in enumerate(levels) if set(part) <= set(level)]
        precision = sum(1 / (variances[place] * _size(_rest(levels[place], part), sizes)) for place in within)
        spread = math.prod(1 - 1 / sizes[column] for column in part) / precision
        for place in within:
            result[place] += spread / _size(_rest(levels[place], part), sizes) ** 2
    return result
