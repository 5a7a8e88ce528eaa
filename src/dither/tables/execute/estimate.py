"""From the noisy measures of an aggregate to its answers, one for each group, and how far each may be off.

This is where COUNT, SUM, AVG, VAR and STDDEV are estimated. Everything here is post-processing of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

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
    """An aggregate from its measures, and how far it may be off.

    Each of j measures is within its width with probability ``1 - (1 - confidence)/j``, so all are with ``confidence``.
    """
    sure = 1 - (1 - confidence) / len(parts)
    wide = [float(plan.measures[measure].error(sure, integer=True)) for measure in parts]
    values = [noisy[measure].tolist() for measure in parts]
    if aggregate.kind in ("count", "count_value", "people"):
        return values[0], [wide[0]] * len(values[0])
    first = parts[-1 if aggregate.kind == "sum" else 1].grid
    assert first is not None
    if aggregate.kind == "sum":
        return [total / first.scale for total in values[0]], [wide[0] / first.scale] * len(values[0])
    moments = [_moments(line, wide, parts) for line in zip(*values, strict=True)]
    if aggregate.kind == "mean":
        return [mean for mean, *_ in moments], [error for _, error, *_ in moments]
    if aggregate.kind == "var":
        return [var for _, _, var, _ in moments], [error for *_, error in moments]
    roots = [math.sqrt(var) for _, _, var, _ in moments]
    return roots, [
        max(math.sqrt(var + error) - root, root - math.sqrt(max(var - error, 0.0)))
        for root, (_, _, var, error) in zip(roots, moments, strict=True)
    ]


def _moments(line: tuple[int, ...], wide: list[float], parts: tuple[Measure, ...]) -> tuple[float, float, float, float]:
    """Mean and variance from noisy sums, each with how far it may be off; within what the bounds allow.

    No error is larger than the distance from the estimate to the farther end of what is possible: the bounds for a
    mean, and for a variance 0 and that of two values at the two bounds. Where the noisy number of values does not show
    that there are any, nothing smaller holds.
    """
    steps = parts[1].grid
    assert steps is not None
    half = steps.width / (2 * steps.scale)
    middle = (steps.low + steps.high) / (2 * steps.scale)
    largest = 2 * half * half
    n, least = line[0], line[0] - wide[0]
    if n < 1:
        return middle, half, 0.0, largest
    mean = min(max(line[1] / (2 * steps.scale * n), -half), half)
    error = half + abs(mean)
    if least > 0:
        error = min((wide[1] / (2 * steps.scale) + abs(mean) * wide[0]) / least, error)
    if len(line) == 2:
        return middle + mean, error, 0.0, 0.0
    coarse = parts[2].grid
    assert coarse is not None
    unit = 4 * coarse.scale * coarse.scale
    square = line[2] / (unit * n)
    spread = max(square - mean * mean, 0.0)
    var = min(spread * (n / (n - 1) if n > 1 else 1.0), largest)
    off = max(var, largest - var)
    if least > 1:  # then the true number N is at least 2; N / (N - 1) falls, and differs most at the least N
        moved = (wide[2] / unit + abs(square) * wide[0]) / least + 2 * abs(mean) * error + error * error
        off = min(moved * least / (least - 1) + spread * (1 / (least - 1) - 1 / (n - 1)), off)
    return middle + mean, error, var, off


__all__ = ["estimate"]
