"""From noisy numbers to the answer: everything here is post-processing of released numbers, and free.

:func:`estimate` is where COUNT, SUM, AVG, VAR and STDDEV are estimated, for each group, with how far each may be off;
the formulas and the reasons for their intervals are in :mod:`dither.inference.moments`. :func:`shape_answer` shows the
noisy table as the question wants it: columns, order, what is done to the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.inference import IntervalEstimate, NoisySum, mean, standard_deviation, variance
from dither.tables.answer import Answer
from dither.tables.card.model import Type
from dither.tables.compile import expressions
from dither.tables.compile.statements import Measure, StatementContext
from dither.tables.options import ReleaseOptions
from dither.tables.planning.explain import limitations
from dither.tables.planning.key_selection import Key
from dither.tables.planning.plan import Plan
from dither.tables.query import evaluate
from dither.tables.query.tree import SIMPLE, Aggregate, Column


@dataclass
class NoisyTable:
    """The noisy table: for each group its key, each answer, and how far it may be off (95 %)."""

    keys: list[Key]
    answers: dict[str, list[Any]] = field(default_factory=dict)
    errors: dict[str, list[float | None]] = field(default_factory=dict)


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


def shape_answer(
    plan: Plan, frame: StatementContext, noisy: NoisyTable, options: ReleaseOptions, notes: list[str]
) -> Answer:
    """The noisy table as the question wants it shown."""
    groups = [group.name for group in plan.query.groups]
    names = [*groups, *plan.query.aggregates]
    lines = []
    for i, key in enumerate(noisy.keys):
        line = dict(zip(groups, key, strict=True))
        for name, aggregate in plan.query.aggregates.items():
            line[name] = _adjusted(noisy.answers[name][i], aggregate, options)
        line["\0place"] = i
        lines.append(line)
    shape = plan.query.shape
    shown = shape.columns or {name: Column(name) for name in names}
    kept = evaluate.apply(replace(shape, columns={**shown, "\0place": Column("\0place")}), [*names, "\0place"], lines)
    types = {group: typed.type for group, typed in zip(groups, frame.grouped(), strict=True)}
    for name, aggregate in plan.query.aggregates.items():
        if aggregate.kind == "mode" and aggregate.value is not None:
            types[name] = expressions.compile(aggregate.value, frame.find).type
        elif aggregate.kind in SIMPLE:
            types[name] = _type(plan, aggregate, options.integer)
    errors = {
        name: tuple(noisy.errors[column.name][line["\0place"]] for line in kept)
        for name, column in shown.items()
        if isinstance(column, Column) and column.name in noisy.errors
    }
    lines_shown = tuple(tuple(line[name] for name in shown) for line in kept)
    kinds = tuple(
        _held_by(types.get(column.name if isinstance(column, Column) else ""), [row[j] for row in lines_shown])
        for j, column in enumerate(shown.values())
    )
    return Answer(tuple(shown), kinds, lines_shown, errors, str(plan.guarantee), (*_notes(plan), *notes))


def _adjusted(value: Any, aggregate: Aggregate, options: ReleaseOptions) -> Any:
    """A count or sum not below 0, or as a whole number, where the options say so; it is free."""
    if isinstance(value, list):
        return [_adjusted(item, aggregate, options) for item in value]
    if not isinstance(value, (int, float)) or aggregate.kind not in SIMPLE:
        return value
    result = max(value, 0) if options.nonnegative else value
    return evaluate.representable(round(result)) if options.integer else result


def _type(plan: Plan, aggregate: Aggregate, integer: bool) -> Type:
    """The type of a count, sum or histogram, from the plan alone: the same when no group is shown."""
    adjusted = bool(plan.totals) and plan.selection is None  # least squares moves counts off the whole numbers
    whole = aggregate.kind == "histogram" or (aggregate.kind != "sum" and not adjusted)
    return "integer" if whole or integer else "number"


def _held_by(declared: Type | None, values: list[Any]) -> Type:
    """The declared type; numbers where whole numbers were declared and one is beyond 64 bits, and so a float."""
    if declared is None:
        return _kind(values)
    return "number" if declared == "integer" and any(isinstance(value, float) for value in values) else declared


def _kind(values: list[Any]) -> Type:
    kinds: dict[type, Type] = {
        bool: "boolean", int: "integer", list: "integer", float: "number", date: "date", datetime: "timestamp"
    }  # fmt: skip
    result = {kinds.get(type(value), "text") for value in values if value is not None}
    return result.pop() if len(result) == 1 else "number" if result <= {"integer", "number"} else "text"


def _notes(plan: Plan) -> tuple[str, ...]:
    result = list(limitations(plan))
    if plan.selection is not None:
        result.append(f"groups with fewer than about {plan.selection.threshold} people are not shown")
        if plan.other:
            result.append("the last row, without a key, is all groups that are not shown")
    return tuple(result)


__all__ = ["NoisyTable", "estimate", "shape_answer"]
