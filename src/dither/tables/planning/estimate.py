"""From the noisy measures of an aggregate to its answers, one for each group, and how far each may be off.

This is where COUNT, SUM, AVG, VAR and STDDEV are estimated. Everything here is post-processing of released numbers; the
formulas and the reasons for their intervals are in :mod:`dither.inference.moments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.inference import IntervalEstimate, Measured, NoiseLaw, mean, measured, standard_deviation, variance
from dither.inference.measured import limits
from dither.tables.card.model import Card
from dither.tables.compile.statements import Measure
from dither.tables.planning.plan import Plan
from dither.tables.query.tree import Aggregate

ADDED = ("count", "count_value", "sum", "histogram")
"""The kinds of aggregates that are too low by as much as the limits leave out."""
_COUNTS = ("count", "count_value", "people")


def estimate(
    plan: Plan,
    aggregate: Aggregate,
    parts: tuple[Measure, ...],
    noisy: Mapping[Measure, NDArray[Any]],
    confidence: float,
) -> tuple[list[Any], list[float | None]]:
    """The answer of each group, and the half-width of its interval."""
    units = [measure.unit(plan.limits) for measure in parts]
    if len(parts) == 1:
        values = noisy[parts[0]] if units[0] == 1 else noisy[parts[0]] / units[0]
        errors: list[float | None] = [_error(plan, parts[0], aggregate.kind, confidence)] * len(values)
        return _whole(values) if aggregate.kind in _COUNTS else values.tolist(), errors
    answers = _from_moments(aggregate.kind, plan, parts, [noisy[measure] for measure in parts], confidence)
    errors = np.broadcast_to(np.asarray(answers.error), np.shape(answers.value)).tolist()
    if aggregate.kind in _COUNTS:
        return _whole(np.asarray(answers.value)), rounded_error(errors).tolist()
    return np.asarray(answers.value).tolist(), errors


def expected_error(plan: Plan, name: str, confidence: float = 0.95) -> float:
    """How far a count or a sum may be off by its noise, whatever the data are."""
    parts, kind = plan.parts[name], plan.query.aggregates[name].kind
    if len(parts) == 1:
        return _error(plan, parts[0], kind, confidence)
    nothing = [np.zeros(1, dtype=np.int64) for _ in parts]
    answer = _from_moments(kind, plan, parts, nothing, confidence)
    error = float(np.asarray(answer.error).max())
    return float(rounded_error(error)) if kind in _COUNTS else error


def _error(plan: Plan, measure: Measure, kind: str, confidence: float) -> float:
    """How far an answer from one measure may be off; a count in smaller units is rounded to a whole number as well."""
    unit = measure.unit(plan.limits)
    error = float(plan.measures[measure].error(confidence, integer=True)) / unit
    return float(rounded_error(error)) if kind in _COUNTS and unit != 1 else error


def rounded_error(error: Any) -> Any:
    """The error of a number with this error that is then rounded: it is within k of a whole number if it was within
    ``k + 1/2`` before.

    >>> [float(rounded_error(error)) for error in (0.4, 7.3, 7.6)]
    [0.4, 7.3, 8.0]
    """
    return np.maximum(error, np.ceil(np.asarray(error) - 0.5))


def _whole(values: NDArray[Any]) -> list[int]:
    """Counts as whole numbers."""
    return [round(value) for value in values.tolist()]


def _linear(number: Measured) -> IntervalEstimate:
    """A sum of noisy numbers, with limits that its noise has."""
    if not number.resolved:
        return IntervalEstimate(number.value, number.value - number.error, number.value + number.error)
    low, high = limits(lambda values, noises: values[0] - noises[0], (number,), -np.inf, np.inf)
    return IntervalEstimate(number.value, low, high)


def _from_moments(
    kind: str, plan: Plan, parts: tuple[Measure, ...], noisy: list[NDArray[Any]], confidence: float
) -> IntervalEstimate:
    """An answer for each group from the parts of the moments of a value, in rows.

    With y from 0 to 1 the place of a value between its bounds, the parts are the sums of ``1 - y`` and ``y``, or of
    ``(1 - y)^2``, ``2 y (1 - y)`` and ``y^2``. They add up to the number of values; the sum of ``2 y - 1`` is the last
    less the first, and that of ``(2 y - 1)^2`` the number less twice the middle part.
    """
    moments, mechanism = parts[0].moments, plan.measures[parts[0]]
    assert moments is not None
    unit = parts[0].unit(plan.limits)
    law = NoiseLaw.of(mechanism, integer=True, unit=1 / unit)
    sums = measured([values / unit for values in noisy], [law] * len(parts), confidence)
    valued = sums[: moments.degree + 1]
    count = valued[0]
    for part in valued[1:]:
        count += part
    if kind == "count":
        return _linear(count + sums[-1] if moments.nulls else count)
    if kind == "count_value":
        return _linear(count)
    grid = moments.grid
    assert grid is not None
    half, middle = grid.width / (2 * grid.scale), (grid.low + grid.high) / (2 * grid.scale)
    about_middle = (valued[-1] - valued[0]) * half
    if kind == "sum":
        return _linear(about_middle + count * middle)
    if kind == "mean":
        return mean(count, about_middle, half).shifted(middle)
    squares = (count - valued[1] * 2.0) * (half * half)
    result = variance(count, about_middle, squares, half)
    return result if kind == "var" else standard_deviation(result)


UNKNOWN_AMOUNT = "counts and sums can be too low by an unknown amount"
"""What is said of an answer whose limits leave out nobody knows how much."""


def unit_notes(card: Card) -> tuple[str, ...]:
    """What every answer says about rows that belong to nobody; nothing where every row is a person.

    >>> from dither.tables.card.model import ColumnCard
    >>> unit_notes(Card("visits", "", {"who": ColumnCard("integer")}, unit="who"))
    ('rows without who, which belong to nobody, are left out',)
    """
    return () if card.unit is None else (f"rows without {card.unit}, which belong to nobody, are left out",)


def limitations(plan: Plan, estimated: bool = False, limits_are_stated: bool = True) -> tuple[str, ...]:
    """The sentences for a plan; none where every row is a person, since then nothing is left out.

    Parameters
    ----------
    plan
        The plan of the question.
    estimated
        Whether the answer says beside its counts and sums how much is left out.
    limits_are_stated
        Whether the sentence begins with the limits; limits that were chosen privately have a note already.
    """
    if plan.card.unit is None:
        return ()
    kinds = {aggregate.kind for aggregate in plan.query.aggregates.values()}
    some_groups = plan.limits.exceeded or plan.selection is not None
    if kinds == {"people"} and not some_groups:
        return ()
    effects = []
    if kinds & set(ADDED) or "people" in kinds:
        if estimated:
            spread = ", if what is left out is spread over the groups as the rows are" if plan.query.groups else ""
            effects.append(f"counts and sums are low by about what is stated beside them{spread}")
        elif plan.automatic.keys() & {"max_rows", "bias"}:
            effects.append("counts and sums will be low by about as much as the answer will state")
        else:
            effects.append(f"{UNKNOWN_AMOUNT} (bias=True, or --bias, spends a little to learn it)")
    if kinds - {*ADDED, "people"}:
        effects.append("means, quantiles and the like lean toward people with few rows")
    sentence = f"{', and '.join(effects)}; the ± does not include it"
    return (
        f"each person counts for at most {describe_limits(plan)}, so {sentence}" if limits_are_stated else sentence,
    )


def describe_limits(plan: Plan) -> str:
    """What one person counts for, in words.

    The limits are on all groups together: one that has fewer groups may have more rows in each of them.
    """
    if "max_rows" in plan.automatic:
        return "a number of rows that is chosen privately"
    rows = "1 row" if plan.limit == 1 else f"{plan.limit:,} rows"
    if not plan.query.groups or (plan.groups == 1 and plan.selection is None and "max_groups" not in plan.automatic):
        return rows
    groups = (
        "some groups, a number that is chosen privately"
        if "max_groups" in plan.automatic
        else "1 group"
        if plan.groups == 1
        else f"{plan.groups:,} groups"
    )
    if all(aggregate.kind == "people" for aggregate in plan.query.aggregates.values()):
        return groups
    return f"the weight of {rows} in each of {groups}"


__all__ = [
    "ADDED", "UNKNOWN_AMOUNT", "describe_limits", "estimate", "expected_error", "limitations", "rounded_error",
    "unit_notes",
]  # fmt: skip
