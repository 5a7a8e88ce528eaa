"""From the noisy measures of an aggregate to its answers, one for each group, and how far each may be off.

This is where COUNT, SUM, AVG, VAR and STDDEV are estimated. Everything here is post-processing of released numbers; the
formulas and the reasons for their intervals are in :mod:`dither.inference.moments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from dither.inference import IntervalEstimate, NoisySum, mean, standard_deviation, variance
from dither.tables.planning.measures import Measure
from dither.tables.planning.plan import Plan
from dither.tables.query.tree import Aggregate


def estimate(
    plan: Plan,
    aggregate: Aggregate,
    parts: tuple[Measure, ...],
    noisy: Mapping[Measure, NDArray[Any]],
    confidence: float,
) -> tuple[list[Any], list[float | None]]:
    """The answer of each group, and the half-width of its interval.

    Each of j measures is within its error with probability ``1 - (1 - confidence)/j``, so all of them are with
    ``confidence``.
    """
    level = 1 - (1 - confidence) / len(parts)
    errors = [float(plan.measures[measure].error(level, integer=True)) for measure in parts]
    values = [noisy[measure].tolist() for measure in parts]
    if aggregate.kind in ("count", "count_value", "people"):
        return values[0], [errors[0]] * len(values[0])
    if aggregate.kind == "sum":
        scale = parts[-1].scale
        return [total / scale for total in values[0]], [errors[0] / scale] * len(values[0])
    estimates = [
        _moment(aggregate.kind, parts, [NoisySum(*pair) for pair in zip(sums, errors, strict=True)])
        for sums in zip(*values, strict=True)
    ]
    return [item.value for item in estimates], [item.error for item in estimates]


def _moment(kind: str, parts: tuple[Measure, ...], sums: list[NoisySum]) -> IntervalEstimate:
    """A mean, variance or standard deviation of one group, from the number of its values and their sums about the
    middle of the bounds.
    """
    count, total, *squares = (part.scaled(1 / measure.scale) for part, measure in zip(sums, parts, strict=True))
    grid = parts[1].grid
    assert grid is not None
    largest = grid.width / (2 * grid.scale)
    if kind == "mean":
        return mean(count, total, largest).shifted((grid.low + grid.high) / (2 * grid.scale))
    coarse = parts[2].grid
    assert coarse is not None
    square = variance(count, total, squares[0], largest, (coarse.width / (2 * coarse.scale)) ** 2)
    return square if kind == "var" else standard_deviation(square)


__all__ = ["estimate"]
