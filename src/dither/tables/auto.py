"""What the steward did not state, chosen privately: how many groups of a person count, and bounds of values.

Each choice costs a twentieth of the budget. The number of groups is what is enough for 95 % of the people, a quantile
by the exponential mechanism (one count for each person). Bounds are powers of two: from the lowest to the highest
magnitude that holds more values than noise alone would show, by a noisy histogram (as many values for each person as
rows count).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither.errors import InvalidArgument, message
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.mechanisms import Exponential, Laplace
from dither.tables import bounding
from dither.tables.bounding import Frame
from dither.tables.plan import below
from dither.tables.tree import Aggregate, Column, Query

SHARE = Fraction(1, 20)
MOST = 64
_ENOUGH = Fraction(19, 20)
_POWERS = [2.0**k for k in range(-20, 51)]
MAGNITUDES = (*(-power for power in reversed(_POWERS)), 0.0, *_POWERS)


def wanted(query: Query, max_groups: object) -> list[str]:
    """What has to be chosen: ``max_groups``, and the names of aggregates without stated bounds."""
    found = ["max_groups"] if max_groups == "auto" and query.groups else []
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds == "auto":
            if not isinstance(aggregate.value, Column):
                raise InvalidArgument(
                    message(name, "a plain column for bounds='auto'", "an expression", "state its bounds")
                )
            found.append(name)
    return found


def provisional(query: Query) -> Query:
    """The question with stand-ins for bounds that are chosen later: enough to plan and to charge."""
    return _bounded(query, {name: (0.0, 1.0) for name, told in query.aggregates.items() if told.bounds == "auto"})


def _bounded(query: Query, bounds: dict[str, tuple[float, float]]) -> Query:
    told: dict[str, Aggregate] = {
        name: replace(aggregate, bounds=bounds[name]) if name in bounds else aggregate
        for name, aggregate in query.aggregates.items()
    }
    return replace(query, aggregates=told)


def total(loss: Fraction, chance: Fraction | None) -> Guarantee:
    """What everything costs, whichever noise is chosen at the end."""
    return PureDP(loss) if chance is None else ApproxDP(loss, chance)


def settle(
    query: Query, frame: Frame, loss: Fraction, max_groups: object, run: Callable[[str], list[tuple[Any, ...]]]
) -> tuple[Query, object, list[str]]:
    """Choose, at ``loss`` for each choice: the question with bounds, the number of groups, and what to say of it."""
    notes, bounds = [], {}
    groups = max_groups
    if max_groups == "auto" and query.groups:
        lines = run(bounding.spread(frame, MOST))
        groups = 1 + _quantile(lines, MOST, _ENOUGH, 1, loss)
        notes.append(f"max_groups = {groups}, chosen privately with ε = {float(loss):.3g}")
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds == "auto" and aggregate.value is not None:
            alone = replace(frame, query=replace(query, groups=()), keys=(), groups=1)
            lines = run(bounding.bins(alone, aggregate.value, MAGNITUDES, None))
            bounds[name] = _span(lines, frame.limit, loss)
            told = f"({bounds[name][0]:g}, {bounds[name][1]:g})"
            notes.append(f"bounds of {name} = {told}, chosen privately with ε = {float(loss):.3g}")
    return _bounded(query, bounds), groups, notes


def _span(lines: list[tuple[Any, ...]], limit: int, loss: Fraction) -> tuple[float, float]:
    """From the lowest to the highest magnitude that holds more values than noise alone would show in any."""
    counts = np.zeros(len(MAGNITUDES) - 1, dtype=np.int64)
    for line in lines:
        counts[int(line[-2])] = int(line[-1])
    mechanism = Laplace(limit, below(loss))
    noisy = np.asarray(mechanism.release(counts))
    seen = np.flatnonzero(noisy > mechanism.error(0.95, coordinates=counts.size, integer=True))
    if seen.size == 0:
        seen = np.array([int(noisy.argmax())])
    return MAGNITUDES[int(seen[0])], MAGNITUDES[int(seen[-1]) + 1]


def _quantile(lines: list[tuple[Any, ...]], bins: int, at: Fraction, sensitivity: int, loss: Fraction) -> int:
    counts = np.zeros(bins, dtype=np.int64)
    for line in lines:
        counts[int(line[-2])] = int(line[-1])
    up_to = np.cumsum(counts)
    rank = at.numerator * int(up_to[-1])
    misses = np.maximum(0, np.maximum(at.denominator * (up_to - counts) - rank, rank - at.denominator * up_to))
    reach = sensitivity * max(at.numerator, at.denominator - at.numerator)
    return int(Exponential(reach, below(loss)).select_index(-misses))
