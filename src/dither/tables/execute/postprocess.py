"""The noisy table as the question wants it shown: columns, order, what is done to the numbers. All of it is free."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import Any

from dither.tables.answer import Answer
from dither.tables.card.model import Type
from dither.tables.compile import expressions
from dither.tables.compile.statements import Frame
from dither.tables.execute import run
from dither.tables.options import ReleaseOptions
from dither.tables.planning.limitations import limitations
from dither.tables.planning.plan import Plan
from dither.tables.query import evaluate
from dither.tables.query.tree import SIMPLE, Aggregate, Column


def shape_answer(plan: Plan, frame: Frame, noisy: run.NoisyTable, options: ReleaseOptions, notes: list[str]) -> Answer:
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
    wanted = plan.query.shape
    shown = wanted.columns or {name: Column(name) for name in names}
    kept = evaluate.apply(replace(wanted, columns={**shown, "\0place": Column("\0place")}), [*names, "\0place"], lines)
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
