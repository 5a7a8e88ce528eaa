"""From the noisy measures of an aggregate to its answers, one for each group, and how far each may be off.

This is where COUNT, SUM, AVG, VAR and STDDEV are estimated. Everything here is post-processing of released numbers; the
formulas and the reasons for their intervals are in :mod:`dither.inference.moments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.inference import IntervalEstimate, NoisySum, mean, standard_deviation, variance
from dither.tables.compile.measures import Measure
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
    first = noisy[parts[0]].tolist()
    if aggregate.kind in ("count", "count_value", "people"):
        return first, [errors[0]] * len(first)
    if aggregate.kind == "sum":
        scale = parts[-1].scale
        return [total / scale for total in first], [errors[0] / scale] * len(first)
    sums = [
        NoisySum(noisy[measure].astype(np.float64) * (1 / measure.scale), error * (1 / measure.scale))
        for measure, error in zip(parts, errors, strict=True)
    ]
    moment = _moment(aggregate.kind, parts, sums)
    return np.asarray(moment.value).tolist(), np.asarray(moment.error).tolist()


def _moment(kind: str, parts: tuple[Measure, ...], sums: list[NoisySum]) -> IntervalEstimate:
    """The mean, variance or standard deviation of each group, from the number of its values and their sums about the
    middle of the bounds.
    """
    grid = parts[1].grid
    assert grid is not None
    largest, middle = grid.width / (2 * grid.scale), (grid.low + grid.high) / (2 * grid.scale)
    if kind == "mean":
        return mean(sums[0], sums[1], largest).shifted(middle)
    coarse = parts[2].grid
    assert coarse is not None
    square = variance(sums[0], sums[1], sums[2], largest, (coarse.width / (2 * coarse.scale)) ** 2)
    return square if kind == "var" else standard_deviation(square)


__all__ = ["estimate"]
