"""What the steward did not state, chosen privately: how many groups of a person count, and bounds of values.

Each choice is read off one noisy histogram, for a twentieth of the budget. The number of groups is what is enough for
95 % of the people (one count for each person); the same histogram tells how much is left out all the same. Bounds are
powers of two: from the lowest to the highest magnitude that holds more values than noise alone would show (as many
values for each person as rows count).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, message
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.mechanisms import Laplace
from dither.tables.compile import expressions, statements
from dither.tables.compile.statements import Statement, StatementContext
from dither.tables.planning.plan import below
from dither.tables.query.tree import Aggregate, Column, Query

SHARE = Fraction(1, 20)
MOST_GROUPS = 64
_SHARE_OF_PEOPLE = 0.95
CONFIDENCE = 1 - 1e-6
"""How sure it is that no bin is taken for a filled one by its noise alone: one such bin makes bounds useless."""
_POWERS = [2.0**k for k in range(-20, 51)]
MAGNITUDES = (*(-power for power in reversed(_POWERS)), 0.0, *_POWERS)


def unstated_limits(query: Query, max_groups: object) -> list[str]:
    """What has to be chosen: ``max_groups``, and the names of aggregates without stated bounds."""
    result = ["max_groups"] if max_groups == "auto" and query.groups else []
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds == "auto":
            if not isinstance(aggregate.value, Column):
                raise InvalidArgument(
                    message(name, "a plain column for bounds='auto'", "an expression", "state its bounds")
                )
            result.append(name)
    return result


def with_provisional_bounds(query: Query) -> Query:
    """The question with stand-ins for bounds that are chosen later: enough to plan and to charge."""
    return _with_bounds(
        query, {name: (0.0, 1.0) for name, aggregate in query.aggregates.items() if aggregate.bounds == "auto"}
    )


def _with_bounds(query: Query, bounds: dict[str, tuple[float, float]]) -> Query:
    aggregates: dict[str, Aggregate] = {
        name: replace(aggregate, bounds=bounds[name]) if name in bounds else aggregate
        for name, aggregate in query.aggregates.items()
    }
    return replace(query, aggregates=aggregates)


def total_cost(epsilon: Fraction, delta: Fraction | None) -> Guarantee:
    """What everything costs, whichever noise is chosen at the end."""
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


class Choices(NamedTuple):
    """What was chosen privately: the question with bounds, the number of groups, the aggregates for which no bounds
    were found, and what to say of it.
    """

    query: Query
    max_groups: object
    without_bounds: tuple[str, ...]
    notes: list[str]


def choose_limits(
    query: Query,
    frame: StatementContext,
    epsilon: Fraction,
    max_groups: object,
    run: Callable[[Statement], list[tuple[Any, ...]]],
) -> Choices:
    """Choose the limits that nobody stated, for ``epsilon`` each."""
    notes: list[str] = []
    bounds: dict[str, tuple[float, float]] = {}
    without_bounds: list[str] = []
    groups = max_groups
    if max_groups == "auto" and query.groups:
        lines = run(statements.spread(frame, MOST_GROUPS))
        groups, share_left_out = _sufficient_groups(lines, epsilon)
        detail = f"about {share_left_out:.0%} of people's groups are left out"
        notes.append(f"max_groups = {groups}, chosen privately with ε = {float(epsilon):.3g}: {detail}")
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds == "auto" and aggregate.value is not None:
            ungrouped = replace(frame, query=replace(query, groups=()), keys=(), groups=1)
            lines = run(statements.bins(ungrouped, aggregate.value, MAGNITUDES, None))
            limits = _bounds_of_values(lines, frame.limit, epsilon)
            if limits is None:
                bounds[name] = (0, 1)
                without_bounds.append(name)
                notes.append(
                    f"no bounds of {name} could be found with ε = {float(epsilon):.3g}, so it has no answer: "
                    "state its bounds, or spend more"
                )
                continue
            low, high = limits
            if expressions.compile(aggregate.value, frame.find).type == "integer":
                low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
            bounds[name] = low, high
            detail = f"({bounds[name][0]:g}, {bounds[name][1]:g})"
            notes.append(f"bounds of {name} = {detail}, chosen privately with ε = {float(epsilon):.3g}")
    return Choices(_with_bounds(query, bounds), groups, tuple(without_bounds), notes)


def _sufficient_groups(lines: list[tuple[Any, ...]], epsilon: Fraction) -> tuple[int, float]:
    """The number of groups that is enough for 95 % of the people, and the share of all their groups beyond it."""
    counts, width = _noisy_histogram(lines, MOST_GROUPS, 1, epsilon)
    noisy = np.where(counts > width, counts, 0).astype(float)  # what may be noise alone would add up in the tail
    groups = np.arange(1, MOST_GROUPS + 1)
    enough = int(np.searchsorted(np.cumsum(noisy), _SHARE_OF_PEOPLE * noisy.sum())) + 1 if noisy.sum() else 1
    share_left_out = float((noisy * np.maximum(groups - enough, 0)).sum() / max((noisy * groups).sum(), 1.0))
    return min(enough, MOST_GROUPS), share_left_out


def _bounds_of_values(lines: list[tuple[Any, ...]], limit: int, epsilon: Fraction) -> tuple[float, float] | None:
    """From the lowest to the highest magnitude that holds more values than noise alone would show in any; None if none
    does.
    """
    noisy, width = _noisy_histogram(lines, len(MAGNITUDES) - 1, limit, epsilon)
    occupied = np.flatnonzero(noisy > width)
    if occupied.size == 0:
        return None
    return MAGNITUDES[int(occupied[0])], MAGNITUDES[int(occupied[-1]) + 1]


def _noisy_histogram(
    lines: list[tuple[Any, ...]], bins: int, limit: int, epsilon: Fraction
) -> tuple[NDArray[np.int64], float]:
    """A noisy histogram to which one person adds at most ``limit``, and how far all of it is off at most."""
    counts = np.zeros(bins, dtype=np.int64)
    for line in lines:
        counts[int(line[-2])] = int(line[-1])
    mechanism = Laplace(limit, below(epsilon))
    released: NDArray[np.int64] = np.asarray(mechanism.release(counts))
    return released, float(mechanism.error(CONFIDENCE, coordinates=bins, integer=True))
