"""Answers about nobody: a mean, a quantile or an extreme of no values is NULL, as SQL has it.

A question without groups is answered even if no row meets its WHERE, and a group with public keys is shown
whether anybody is in it or not. What is computed of values would be computed from noise alone there: the mean of no
values was the middle of the bounds, or an end of them, first in ``ORDER BY … DESC``.

*The rule*, of which a question without groups is one group. The noisy number of values in a group is what the mean is
divided by. Where it is not above what the noise of an empty group exceeds with a probability of ``(1 - 95 %) /
groups``, the answer is NULL. So with a probability of 95 % every group of the answer that nobody is in has NULL; a
group that has values is NULL only if their number is lost in its noise, and then nothing would be known of the mean
either. It is post-processing of released numbers.

A choice among bins (a quantile, an extreme, a mode) comes without a number. It is NULL by the number of values, or else
of rows or people, that the question asks for beside it. Where it asks for none, or for rows of which all values may be
NULL, the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from dither.inference import NoiseLaw
from dither.tables.compile.statements import Measure
from dither.tables.notes import Note
from dither.tables.planning.null_keys import may_be_null
from dither.tables.planning.plan import Plan
from dither.tables.query import nodes
from dither.tables.query.tree import Aggregate, Column

CONFIDENCE = 0.95
"""The probability with which no group that nobody is in has a value."""
_OF_VALUES = ("mean", "var", "std", "min", "max", "quantile", "mode")


def without_values(plan: Plan, name: str, noisy: Mapping[Measure, NDArray[Any]]) -> NDArray[np.bool_] | None:
    """The groups that may have no values of an aggregate; None where nothing is known of their number, or where the
    aggregate has an answer without values."""
    parts = _number(plan, name)
    if not parts:
        return None
    unit = parts[0].unit(plan.limits)
    law = NoiseLaw.of(plan.measures[parts[0]], integer=True, unit=plan.reduced.get(parts[0], 1.0) / unit)
    values = np.sum([np.asarray(noisy[part], dtype=np.float64) / unit for part in parts], axis=0)
    limit = law.sum_limit(len(parts), (1 - CONFIDENCE) / max(len(values), 1))
    result: NDArray[np.bool_] = values <= max(limit, 0.5)  # up to half a value, a mean is the middle of the bounds
    return result


def _number(plan: Plan, name: str) -> tuple[Measure, ...]:
    """The measures that add up to the number of values of an aggregate, or of the rows or people that may have them;
    none where there are no such measures."""
    aggregate = plan.query.aggregates[name]
    if aggregate.kind not in _OF_VALUES:
        return ()
    known = [parts for parts in plan.parts.values() if parts[0].pair is None]
    of_value = _number_of_values(plan, name)
    if of_value:
        return of_value
    of_rows = [parts for parts in known if parts[0].kind in ("rows", "people")]
    of_rows += [parts for parts in known if parts[0].moments is not None and parts[0].moments.nulls and len(parts) > 1]
    return of_rows[0] if of_rows else ()


def _number_of_values(plan: Plan, name: str) -> tuple[Measure, ...]:
    """The measures that add up to the number of values that are not NULL."""
    for parts in plan.parts.values():
        moments = parts[0].moments
        if parts[0].pair is None and moments is not None and _is_of(parts, plan.query.aggregates[name]):
            return parts[: moments.degree + 1]
    return ()


def _is_of(parts: tuple[Measure, ...], aggregate: Aggregate) -> bool:
    """Whether measures are all parts of the moments of an aggregate's value."""
    moments = parts[0].moments
    return moments is not None and parts[0].kind == "part" and moments.value == aggregate.value


def empty_group_notes(plan: Plan) -> tuple[str, ...]:
    """What an answer says about values that are chosen whether anybody has one or not."""
    result = []
    public = plan.query.groups and plan.selection is None
    if public and plan.query.post is not None and _aggregates(plan.query.post.sql):
        result.append("every public group counts in what is computed of the groups, also one that nobody is in")
    names = [choice.name for choice in plan.choices] + [name for ranked in plan.quantiles for name in ranked.shares]
    unknown = [name for name in names if plan.selection is None and not _number(plan, name)]
    if unknown:
        where = (
            "a group that nobody is in has a value as well"
            if plan.query.groups
            else "has a value even if there are no rows"
        )
        result.append(f"{', '.join(unknown)}: {where}; with {_counted(plan, unknown)} in the question it is NULL")
    may_be_null = [
        name
        for name in names
        if name not in unknown and not _number_of_values(plan, name) and _value_may_be_null(plan, name)
    ]
    if may_be_null:
        where = (
            "a group with rows but no value has one as well"
            if plan.query.groups
            else "has a value even if all values are NULL"
        )
        result.append(
            f"{', '.join(may_be_null)}: {where}; with {_counted(plan, may_be_null)} in the question it is NULL"
        )
    return tuple(Note("empty", text) for text in result)


def _value_may_be_null(plan: Plan, name: str) -> bool:
    """Whether all values of an aggregate may be NULL although there are rows, as far as is public."""
    value = plan.query.aggregates[name].value
    return value is not None and may_be_null(plan, value)


def _counted(plan: Plan, names: Sequence[str]) -> str:
    """The counts by which these answers are NULL where there are no values; COUNT(*) for what is no column."""
    values = [plan.query.aggregates[name].value for name in names]
    counts = [f"COUNT({value.name})" if isinstance(value, Column) else "COUNT(*)" for value in values]
    return " and ".join(dict.fromkeys(counts))


def _aggregates(sql: str) -> bool:
    """Whether SQL on the answer computes something of several groups, other than by a window function."""
    for node in nodes.parsed(sql).find_all(exp.AggFunc):
        outer = node.parent
        while isinstance(outer, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
            outer = outer.parent
        if not isinstance(outer, exp.Window):
            return True
    return False


def null_value_notes(plan: Plan, names: Sequence[str]) -> tuple[str, ...]:
    """What an answer says about these, which have values that are NULL by the rule."""
    if not names:
        return ()
    if not plan.query.groups:
        text = f"{', '.join(names)}: NULL, because the noisy number of rows does not show that there are any"
    else:
        text = f"{', '.join(names)}: NULL in groups whose noisy number of rows does not show that anybody is in them"
    return (Note("empty", text),)
