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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, message
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.mechanisms import Laplace
from dither.tables.compile import expressions, statements
from dither.tables.compile.statements import Frame
from dither.tables.planning.plan import below
from dither.tables.query.tree import Aggregate, Column, Query

SHARE = Fraction(1, 20)
MOST = 64
_ENOUGH = 0.95
CONFIDENCE = 1 - 1e-6
"""How sure it is that no bin is taken for a filled one by its noise alone: one such bin makes bounds useless."""
_POWERS = [2.0**k for k in range(-20, 51)]
MAGNITUDES = (*(-power for power in reversed(_POWERS)), 0.0, *_POWERS)


def unstated(query: Query, max_groups: object) -> list[str]:
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


def provisional(query: Query) -> Query:
    """The question with stand-ins for bounds that are chosen later: enough to plan and to charge."""
    return _bounded(query, {name: (0.0, 1.0) for name, told in query.aggregates.items() if told.bounds == "auto"})


def _bounded(query: Query, bounds: dict[str, tuple[float, float]]) -> Query:
    told: dict[str, Aggregate] = {
        name: replace(aggregate, bounds=bounds[name]) if name in bounds else aggregate
        for name, aggregate in query.aggregates.items()
    }
    return replace(query, aggregates=told)


def total(loss: Fraction, delta: Fraction | None) -> Guarantee:
    """What everything costs, whichever noise is chosen at the end."""
    return PureDP(loss) if delta is None else ApproxDP(loss, delta)


def settle(
    query: Query, frame: Frame, loss: Fraction, max_groups: object, run: Callable[[str], list[tuple[Any, ...]]]
) -> tuple[Query, object, list[str]]:
    """Choose, at ``loss`` for each choice: the question with bounds, the number of groups, and what to say of it."""
    notes, bounds = [], {}
    groups = max_groups
    if max_groups == "auto" and query.groups:
        lines = run(statements.spread(frame, MOST))
        groups, beyond = _enough(lines, loss)
        told = f"about {beyond:.0%} of people's groups are left out"
        notes.append(f"max_groups = {groups}, chosen privately with ε = {float(loss):.3g}: {told}")
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds == "auto" and aggregate.value is not None:
            alone = replace(frame, query=replace(query, groups=()), keys=(), groups=1)
            lines = run(statements.bins(alone, aggregate.value, MAGNITUDES, None))
            low, high = _span(lines, frame.limit, loss)
            if expressions.compile(aggregate.value, frame.find).type == "integer":
                low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
            bounds[name] = low, high
            told = f"({bounds[name][0]:g}, {bounds[name][1]:g})"
            notes.append(f"bounds of {name} = {told}, chosen privately with ε = {float(loss):.3g}")
    return _bounded(query, bounds), groups, notes


def _enough(lines: list[tuple[Any, ...]], loss: Fraction) -> tuple[int, float]:
    """The number of groups that is enough for 95 % of the people, and the share of all their groups beyond it."""
    result, width = _noisy(lines, MOST, 1, loss)
    noisy = np.where(result > width, result, 0).astype(float)  # what may be noise alone would add up in the tail
    groups = np.arange(1, MOST + 1)
    enough = int(np.searchsorted(np.cumsum(noisy), _ENOUGH * noisy.sum())) + 1 if noisy.sum() else 1
    beyond = float((noisy * np.maximum(groups - enough, 0)).sum() / max((noisy * groups).sum(), 1.0))
    return min(enough, MOST), beyond


def _span(lines: list[tuple[Any, ...]], limit: int, loss: Fraction) -> tuple[float, float]:
    """From the lowest to the highest magnitude that holds more values than noise alone would show in any."""
    noisy, width = _noisy(lines, len(MAGNITUDES) - 1, limit, loss)
    seen = np.flatnonzero(noisy > width)
    if seen.size == 0:
        seen = np.array([int(noisy.argmax())])
    return MAGNITUDES[int(seen[0])], MAGNITUDES[int(seen[-1]) + 1]


def _noisy(lines: list[tuple[Any, ...]], bins: int, limit: int, loss: Fraction) -> tuple[NDArray[np.int64], float]:
    """A noisy histogram to which one person adds at most ``limit``, and how far all of it is off at most."""
    counts = np.zeros(bins, dtype=np.int64)
    for line in lines:
        counts[int(line[-2])] = int(line[-1])
    mechanism = Laplace(limit, below(loss))
    released: NDArray[np.int64] = np.asarray(mechanism.release(counts))
    return released, float(mechanism.error(CONFIDENCE, coordinates=bins, integer=True))
