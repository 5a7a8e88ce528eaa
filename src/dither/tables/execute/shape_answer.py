"""From the noisy table to the answer: the columns, rows and order that the question wants, each number with its error.

Everything here is post-processing, and costs nothing. One SELECT over the noisy table is evaluated by
:mod:`dither.tables.query.evaluate`; other SQL is run by :mod:`dither.tables.query.postprocess`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.tables.answer import Answer
from dither.tables.card.model import Type
from dither.tables.compile import expressions
from dither.tables.compile.statements import StatementContext
from dither.tables.execute.replicates import errors_of_rows, evaluated, half_width, replicates
from dither.tables.execute.run import NoisyTable
from dither.tables.options import ReleaseOptions
from dither.tables.planning.estimate import limitations, unit_notes
from dither.tables.planning.key_selection import bin_labels
from dither.tables.planning.plan import Plan
from dither.tables.query import evaluate
from dither.tables.query.tree import SIMPLE, Aggregate, Column, Expression, PostProcessing, columns

if TYPE_CHECKING:
    from dither.tables.query.postprocess import PostProcessed


def rehearse(plan: Plan, frame: StatementContext) -> None:
    """Try the SQL of a question on made-up noisy tables: what DuckDB refuses, it refuses before the charge."""
    if plan.query.post is not None:
        from dither.tables.query import postprocess  # it loads DuckDB, which other questions may not need

        postprocess.rehearse(plan.query.post, _noisy_types(plan, frame))


def shape_answer(
    plan: Plan, frame: StatementContext, noisy: NoisyTable, options: ReleaseOptions, notes: list[str]
) -> Answer:
    """The noisy table as the question wants it shown."""
    if plan.query.post is not None:
        return _post_processed(plan.query.post, plan, frame, noisy, options, notes)
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
    shown = shape.columns or {name: Column(name) for name in names} | bin_labels(plan.query.groups)
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
    errors |= _errors_of_arithmetic(plan, noisy, options, lines, kept, shown)
    errors = {name: errors[name] for name in shown if name in errors}
    lines_shown = tuple(tuple(line[name] for name in shown) for line in kept)
    kinds = tuple(
        _held_by(types.get(column.name if isinstance(column, Column) else ""), [row[j] for row in lines_shown])
        for j, column in enumerate(shown.values())
    )
    return Answer(tuple(shown), kinds, lines_shown, errors, str(plan.guarantee), (*_notes(plan), *notes))


def _errors_of_arithmetic(
    plan: Plan,
    noisy: NoisyTable,
    options: ReleaseOptions,
    lines: list[dict[str, Any]],
    kept: list[dict[str, Any]],
    shown: Mapping[str, Expression],
) -> dict[str, tuple[float | None, ...]]:
    """The errors of columns that are computed from aggregates; none for a column that uses an aggregate whose noise
    has no known law.
    """
    computed = {
        name: item
        for name, item in shown.items()
        if not isinstance(item, Column) and _uses(item, plan.query.aggregates)
    }
    if not any(_uses(item, plan.parts) for item in computed.values()):
        return {}
    tables = replicates(plan, noisy.measures, len(noisy.keys))
    if tables is None:
        return {}
    adjusted = {}
    for name, values in tables.items():
        aggregate = plan.query.aggregates[name]
        adjusted[name] = np.array([[_adjusted(value, aggregate, options) for value in row] for row in values.tolist()])
    result: dict[str, tuple[float | None, ...]] = {}
    places = [line["\0place"] for line in kept]
    for name, item in computed.items():
        used = {column.name for column in columns(item)} & set(plan.query.aggregates)
        if not used <= set(tables) or any(isinstance(line[name], (str, bool)) for line in kept):
            continue
        chosen = {column: adjusted[column][:, places] for column in used}
        samples = evaluated(functools.partial(evaluate.evaluate, item), [lines[place] for place in places], chosen)
        result[name] = tuple(half_width(line[name], sample) for line, sample in zip(kept, samples, strict=True))
    return result


def _uses(item: Expression, names: Mapping[str, object]) -> bool:
    return any(column.name in names for column in columns(item))


def _post_processed(
    post: PostProcessing,
    plan: Plan,
    frame: StatementContext,
    noisy: NoisyTable,
    options: ReleaseOptions,
    notes: list[str],
) -> Answer:
    """What the question's own SQL makes of the noisy table."""
    from dither.tables.query import postprocess

    aggregates = plan.query.aggregates
    rows = [
        (*key, *(_adjusted(noisy.answers[name][i], aggregate, options) for name, aggregate in aggregates.items()))
        for i, key in enumerate(noisy.keys)
    ]
    with postprocess.IsolatedDatabase(post, _noisy_types(plan, frame)) as database:
        result = database.run(rows)
    errors = _errors_after(post, plan, frame, noisy, options, result)
    notes_of_errors = [] if errors is not None else ["the ± of computed columns could not be computed"]
    every_note = (*_notes(plan), *notes, *notes_of_errors)
    return Answer(result.names, result.types, tuple(result.rows), errors or {}, str(plan.guarantee), every_note)


def _errors_after(
    post: PostProcessing,
    plan: Plan,
    frame: StatementContext,
    noisy: NoisyTable,
    options: ReleaseOptions,
    result: PostProcessed,
) -> dict[str, tuple[float | None, ...]] | None:
    """The errors of the columns that SQL made of the noisy table: that of a column that was passed on is known, others
    come from running the SQL on tables as they might have been; None where that is not possible.

    A column that depends on an aggregate whose noise has no known law (a quantile, a mode) has no error.
    """
    from dither.tables.query import postprocess

    groups = [group.name for group in plan.query.groups]
    types = _noisy_types(plan, frame)
    keys = [
        place
        for place, (name, kind) in enumerate(zip(result.names, result.types, strict=True))
        if kind not in ("integer", "number") or (name in groups and types[name] == kind)
    ]
    passed_on = _passed_on(groups, noisy, result)
    numeric = {name for name, kind in zip(result.names, result.types, strict=True) if kind in ("integer", "number")}
    if numeric <= {*passed_on, *(result.names[place] for place in keys)}:
        return passed_on
    tables = replicates(plan, noisy.measures, len(noisy.keys))
    if tables is None:
        return passed_on or None
    aggregates = plan.query.aggregates

    def table(k: int | None, without_law: bool = True) -> list[tuple[Any, ...]]:
        """The noisy table, or one that it might have been; without the aggregates whose noise has no known law."""
        values_of: list[list[Any]] = []
        for name, aggregate in aggregates.items():
            values = tables[name][k].tolist() if name in tables and k is not None else noisy.answers[name]
            hidden = name not in tables and not without_law
            values_of.append([None if hidden else _adjusted(value, aggregate, options) for value in values])
        return [(*key, *(values[i] for values in values_of)) for i, key in enumerate(noisy.keys)]

    count = len(next(iter(tables.values()), ()))
    try:
        with postprocess.IsolatedDatabase(post, types) as database:
            possible = [table(None), table(None, False), *map(table, range(count))]
            same, without, *samples = database.run_each(possible)
    except postprocess.FAILURES:  # it takes too long, or fails on a table as it might have been
        return passed_on or None
    if _fingerprint(same) != _fingerprint(result.rows):
        return passed_on or None
    steady = [place for place in keys if result.names[place] in groups or _is_steady(place, result.rows, samples)]
    computed_errors = errors_of_rows(result.names, result.rows, steady, samples)
    for place, name in enumerate(result.names):
        if name in computed_errors and _fingerprint(without, place, *steady) != _fingerprint(
            result.rows, place, *steady
        ):
            computed_errors[name] = (None,) * len(result.rows)
    return {name: (computed_errors | passed_on)[name] for name in result.names if name in computed_errors | passed_on}


def _is_steady(place: int, rows: Sequence[Sequence[Any]], samples: Sequence[Sequence[Sequence[Any]]]) -> bool:
    """Whether a column has no other values in the samples than it has in the answer, so that rows are known by it."""
    known = {row[place] for row in rows}
    return all(row[place] in known for sample in samples for row in sample)


def _fingerprint(rows: Sequence[Sequence[Any]], *places: int) -> Counter[tuple[str, ...]]:
    """The rows in any order, at these places or at all, up to the last digits of numbers."""
    kept = [[row[place] for place in places] if places else row for row in rows]
    return Counter(tuple(f"{item:.9g}" if isinstance(item, float) else repr(item) for item in row) for row in kept)


def _passed_on(groups: list[str], noisy: NoisyTable, result: PostProcessed) -> dict[str, tuple[float | None, ...]]:
    """The errors of columns that are those of the noisy table: each row has its group's keys, and their answer."""
    if not set(groups) <= set(result.names):
        return {}
    key_places = [result.names.index(name) for name in groups]
    place_of = {key: place for place, key in enumerate(noisy.keys)}
    places = [place_of.get(tuple(row[place] for place in key_places)) for row in result.rows]
    errors: dict[str, tuple[float | None, ...]] = {}
    for column, name in enumerate(result.names):
        if name in noisy.answers and all(
            place is not None and noisy.answers[name][place] == row[column]
            for place, row in zip(places, result.rows, strict=True)
        ):
            errors[name] = tuple(noisy.errors[name][place] for place in places if place is not None)
    return errors


def _noisy_types(plan: Plan, frame: StatementContext) -> dict[str, Type]:
    """The types of the columns of the noisy table, from the plan alone."""
    types = {group.name: typed.type for group, typed in zip(plan.query.groups, frame.grouped(), strict=True)}
    for name, aggregate in plan.query.aggregates.items():
        if aggregate.kind == "mode" and aggregate.value is not None:
            types[name] = expressions.compile(aggregate.value, frame.find).type
        else:
            types[name] = _type(plan, aggregate, False) if aggregate.kind in SIMPLE else "number"
    return types


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
    result = [*limitations(plan), *unit_notes(plan.card)]
    if plan.selection is not None:
        result.append(f"groups with fewer than about {plan.selection.threshold} people are not shown")
        if plan.other:
            result.append("the last row, without a key, is all groups that are not shown")
    return tuple(result)


__all__ = ["rehearse", "shape_answer"]
