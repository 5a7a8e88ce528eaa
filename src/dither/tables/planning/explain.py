"""A plan in words and values: what would be done, what it would cost, and what the answers leave out. No data is read.

The error bars are about the noise alone, so a plan and an answer also say (:func:`plan_notes`)

* what the limits on one person's rows do to the answers;
* which rows are in no group. With keys that are not public, NULL is a group as any other. Public keys contain NULL only
  where the question makes it one (:mod:`dither.tables.planning.group_keys`), and keys that are derived from bounds have
  no group for rows beyond them: shares of the groups are then shares of the other rows. Whether an expression can be
  NULL follows from the question and the card alone. A column of a private table can be, but for the person, unless
  WHERE or a join keeps no row in which it is;
* where a choice among bins (a quantile, an extreme, a mode) has a value although nobody is in the group: it comes
  without a number of values, and is NULL by the number that the question asks for beside it
  (:func:`~dither.tables.planning.estimate.without_values`). Where it asks for none, or for rows of which all values may
  be NULL, the answer says so;
* which values are held within bounds. A condition on rows takes a value as it is beyond its bounds, but a sum of a
  person's values is exact, and the same in any order on every engine, because the values are within public bounds
  (:mod:`dither.tables.compile.relations`): ``HAVING SUM(amount) > 120`` is about amounts within the bounds of the card.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlglot import exp

from dither.comparison import unhashable
from dither.errors import DitherError, InvalidArgument
from dither.guarantees import Guarantee
from dither.ledger.accounts import Remaining
from dither.mechanisms import Gaussian
from dither.present import markup
from dither.present.notes import Note, lever_words, limit_words
from dither.present.text import printable, two_digits
from dither.public_module import public_in
from dither.tables.card.model import Card, ColumnCard
from dither.tables.card.values import Value
from dither.tables.compile import expressions, relations
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.statements import Measure, is_race
from dither.tables.planning.automatic import BOUNDS_OF, VALUES_OF, unseen_bounds_notes
from dither.tables.planning.estimate import (
    SAMPLE_SIZES,
    counting_parts,
    error_for_size,
    expected_error,
    has_forecast,
    inside_rank,
    most_rows_of_a_person,
    value_counting_parts,
)
from dither.tables.planning.group_keys import Noise, PublicFacts, RelationRows, card_of_question, every_group
from dither.tables.planning.plan import AggregationPlan, BinChoice, QuestionPlan, variance_of
from dither.tables.planning.quantiles import Quantiles, errors
from dither.tables.planning.quantiles import errors as rank_errors
from dither.tables.planning.tails import is_bounded, per_row
from dither.tables.planning.work import expressions_in
from dither.tables.query import nodes
from dither.tables.query.evaluate import folded
from dither.tables.query.operations import operation
from dither.tables.query.operations.base import NUMBERS
from dither.tables.query.relations import RelationCard, base_of, describe_relation, person_of, relation_schema
from dither.tables.query.tree import (
    EXTREMES,
    SIMPLE,
    Aggregate,
    Call,
    CappedRows,
    Column,
    Expression,
    Group,
    Literal,
    PerPerson,
    PersonJoin,
    Query,
    Source,
    UnionAll,
    Windowed,
    show,
    sources,
    walk,
)

if typing.TYPE_CHECKING:  # questions without a profile do not need it
    from dither.tables.planning.forecast import GroupErrors

_ANY_NUMBER = (-(2.0**40), 2.0**40)
_NEVER_NULL = ("is_null", "is_distinct")
_COUNTS = ("count", "count_value", "count_distinct", "row_number", "rank", "dense_rank")


def null_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return notes on rows that are in no group: their key is NULL, or a date or number beyond the bounds from which
    the keys are derived."""
    query = plan.query
    find = plan.find
    public = [(group, keys) for group, keys in zip(query.groups, plan.asked_keys, strict=True) if keys is not None]
    missing = [group for group, keys in public if None not in keys and may_be_null(plan, group.value)]
    result = []
    if missing:
        texts = [_as_sql(group.value) or group.name for group in missing]
        result.append(Note("null_keys", {"columns": texts, "group_by": [_with_null(group, find) for group in missing]}))
    lost: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for group, keys in public:
        if group.keys is None:
            for column, ends, certain in _beyond(group.value, keys, plan):
                bounds = {"column": column, "low": str(ends[0]), "high": str(ends[1])}
                if bounds not in lost[certain]:
                    lost[certain].append(bounds)
    result += [
        Note("keys_beyond_bounds", {"columns": columns, "certain": certain})
        for certain, columns in lost.items()
        if columns
    ]
    return tuple(result)


def may_be_null(plan: AggregationPlan, expression: Expression) -> bool:
    """Return whether an expression may be NULL in some of the rows that a plan is about, as far as is public."""
    return _may_be_null(folded(expression), RelationRows.asked(plan.query), base_of(plan.card).unit)


def _as_sql(value: Expression) -> str | None:
    """Return a column, or a part of a date column, as SQL; None for other expressions."""
    if isinstance(value, Column):
        return value.name if value.name.isidentifier() else f'"{value.name}"'
    if isinstance(value, Call) and value.op in ("date_trunc", "date_part") and len(value.args) == 2:
        part, column = value.args
        if isinstance(part, Literal) and isinstance(column, Column):
            return f"{value.op}('{part.value}', {_as_sql(column)})"
    return None


def _with_null(group: Group, find: Lookup) -> str:
    """Return the SQL to group by so that rows with NULL form a group, too: COALESCE, or CASE for a truth value."""
    text = _as_sql(group.value) or f"<expression of {group.name}>"
    if expressions.compile(group.value, find).type == "boolean":
        return f"CASE WHEN {text} THEN 'yes' WHEN NOT {text} THEN 'no' ELSE 'unknown' END"
    return f"COALESCE({text}, …)"


def _beyond(
    key: Expression, keys: tuple[Value, ...], plan: AggregationPlan
) -> Iterator[tuple[str, Sequence[object], bool]]:
    """Yield the columns whose bounds in the card limit the keys, as (name, bounds, certain): rows with values beyond
    the bounds have no key. It is not certain for computed keys, which may be among the keys all the same."""
    *_, (rows, value) = RelationRows.asked(plan.query).levels(key)
    card_there = card_of_question(Query({}, source=rows.source), base_of(plan.card)) if rows.path else plan.card
    find = expressions.lookup_of(card_there, rows.joins)
    raw = (value, *value.args) if isinstance(value, Call) and value.op == "coalesce" else (value,)
    for column in dict.fromkeys(node for node in walk(folded(value)) if isinstance(node, Column)):
        card = find(column)[1]
        ends: Sequence[object] | None = card.bounds if card.type in NUMBERS else card.period
        if ends is None or card.keys is not None or column.table is not None:
            continue
        unbounded = replace(card, bounds=None if card.bounds is None else _ANY_NUMBER, period=None)

        def without(other: Column, column: Column = column, card: ColumnCard = unbounded) -> tuple[Any, ColumnCard]:
            """Return a column's SQL and card, with the card of this column without bounds."""
            return find(other) if other != column else (find(other)[0], card)

        try:
            stated = PublicFacts(without, rows.conditions).values(value)
        except DitherError:  # without bounds it cannot be computed at all
            stated = None
        if stated is None or not set(stated) <= set(keys):
            computed = card.type in NUMBERS and column not in raw
            yield column.name, ends, not computed


def _may_be_null(expression: Expression, rows: RelationRows, person: str | None) -> bool:
    """Return whether an expression may be NULL in some row, as far as is public."""
    if isinstance(expression, Literal):
        return expression.value is None
    if isinstance(expression, Call):
        args = expression.args
        if expression.op in _NEVER_NULL:
            return False
        if expression.op in ("coalesce", "greatest", "least"):
            return all(_may_be_null(item, rows, person) for item in args)
        if expression.op == "bin":  # outside of its edges
            return True
        branches = {"case": (*args[1:-1:2], args[-1]), "if": args[1:]}.get(expression.op, args)
        return any(_may_be_null(item, rows, person) for item in branches)
    if any(_fails(condition, expression) for condition in rows.conditions):
        return False
    if any(not join.left and _is_null(join.own, expression) for join in rows.joins):
        return False
    if expression.table is not None:  # a NULL in a public table is one of the keys
        return any(join.left for join in rows.joins if join.table == expression.table)
    return expression.name != person and _column_may_be_null(expression, rows, person)


def _column_may_be_null(column: Column, rows: RelationRows, person: str | None) -> bool:
    """Return whether a column of a relation, other than the person, may be NULL by its definition there."""
    source, name = rows.source, column.name
    if isinstance(source, UnionAll):
        return any(_column_may_be_null(column, RelationRows(item), person) for item in source.sources)
    if isinstance(source, PersonJoin) and name in (source.left_person, source.right_person):
        return source.kind != "inner"
    if isinstance(source, Windowed) and name in source.windows:
        return source.windows[name].kind not in _COUNTS
    if isinstance(source, PerPerson) and name in source.aggregates:
        return source.aggregates[name].kind not in _COUNTS
    inside = rows.inside(column)
    return inside is None or _may_be_null(inside[1], inside[0], person)


def _fails(condition: Expression, column: Column) -> bool:
    """Return whether a condition cannot hold in a row in which a column is NULL."""
    if isinstance(condition, Call) and condition.op in ("and", "or"):
        known = (_fails(item, column) for item in condition.args)
        return any(known) if condition.op == "and" else all(known)
    if isinstance(condition, Call) and condition.op == "not":
        return _is_null(condition.args[0], column) or _holds(condition.args[0], column)
    return _is_null(condition, column)


def _holds(condition: Expression, column: Column) -> bool:
    """Return whether a condition always holds in a row in which a column is NULL."""
    return isinstance(condition, Call) and condition.op == "is_null" and _is_null(condition.args[0], column)


def _is_null(expression: Expression, column: Column) -> bool:
    """Return whether an expression is always NULL in a row in which a column is."""
    if not isinstance(expression, Call):
        return expression in (column, Literal(None))
    if operation(expression.op).strict:
        return any(_is_null(item, column) for item in expression.args)
    return expression.op in ("between", "in") and _is_null(expression.args[0], column)


def empty_group_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return notes on answers that are shown for groups without people, or without values, where SQL would have no row
    or NULL."""
    result = []
    public = plan.query.groups and plan.selection is None
    if public and plan.query.post is not None and _aggregates(plan.query.post.sql):
        result.append(Note("empty_groups"))
    names = [choice.name for choice in plan.choices] + [name for ranked in plan.quantiles for name in ranked.shares]
    unknown = [name for name in names if plan.selection is None and not counting_parts(plan, name)]
    if unknown:
        result.append(Note("value_without_rows", _without_a_count(plan, unknown)))
    may_be_null = [
        name
        for name in names
        if name not in unknown and not value_counting_parts(plan, name) and _value_may_be_null(plan, name)
    ]
    if may_be_null:
        result.append(Note("value_without_values", _without_a_count(plan, may_be_null)))
    return tuple(result)


def _value_may_be_null(plan: AggregationPlan, name: str) -> bool:
    """Return whether all values of an aggregate may be NULL although there are rows, as far as is public."""
    value = plan.query.aggregates[name].value
    return value is not None and may_be_null(plan, value)


def _without_a_count(plan: AggregationPlan, names: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a note on answers that are not NULL without values: their names, and the counts that would
    show whether there are values."""
    values = [plan.query.aggregates[name].value for name in names]
    counts = [f"COUNT({value.name})" if isinstance(value, Column) else "COUNT(*)" for value in values]
    return {"names": [*names], "grouped": bool(plan.query.groups), "counts": [*dict.fromkeys(counts)]}


def _aggregates(sql: str) -> bool:
    """Return whether SQL on the answer aggregates over groups, other than by a window function."""
    for node in nodes.parsed(sql).find_all(exp.AggFunc):
        outer = node.parent
        while isinstance(outer, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
            outer = outer.parent
        if not isinstance(outer, exp.Window):
            return True
    return False


def null_value_notes(plan: AggregationPlan, names: Sequence[str]) -> tuple[Note, ...]:
    """Return a note on the answers ``names`` that are NULL in groups without values."""
    if not names:
        return ()
    return (Note("null_values", {"names": [*names], "grouped": bool(plan.query.groups)}),)


def person_sum_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return notes on columns that are clamped to their bounds before the values of a person are added up."""
    if plan.query.source is None:
        return ()
    card = base_of(plan.card)
    return tuple(dict.fromkeys(note for source in sources(plan.query.source) for note in _held(source, card)))


def _held(source: Source, card: Card) -> Iterator[Note]:
    """Yield a note for each column that is clamped to its bounds in a sum or mean of one person's values."""
    if not isinstance(source, (PerPerson, Windowed)):
        return
    inside = replace(card, columns=relation_schema(card, source.source, relations.describe).columns)
    joins = source.joins if isinstance(source, PerPerson) else ()
    find = expressions.lookup_of(inside, joins)
    every = source.aggregates.values() if isinstance(source, PerPerson) else source.windows.values()
    for value in dict.fromkeys(item.value for item in every if item.kind in ("sum", "mean")):
        for column in () if value is None else clamped_columns(value, find):
            low, high = find(column)[1].bounds or (0, 0)
            clamped = {"column": column.name, "low": low, "high": high, "person": person_of(card)}
            yield Note("person_values_clamped", clamped)


def clamped_columns(value: Expression, find: Lookup) -> list[Column]:
    """Return the columns with bounds on which the range of a value depends."""
    result = []
    for column in dict.fromkeys(node for node in walk(value) if isinstance(node, Column)):
        card = find(column)[1]
        if card.type in NUMBERS and card.bounds is not None and column.table is None:
            low, high = card.bounds
            wider = replace(card, bounds=(low - 1, high + 1))

            def widened(other: Column, column: Column = column, wider: ColumnCard = wider) -> tuple[Any, ColumnCard]:
                """Return a column's SQL and card, with the wider bounds for this column."""
                return (find(other)[0], wider) if other == column else find(other)

            if _interval(value, widened) != _interval(value, find):
                result.append(column)
    return result


def _interval(value: Expression, find: Lookup) -> tuple[float, float] | None:
    """Return the least and largest value of an expression; None where they are not public."""
    try:
        return expressions.number(value, find).interval
    except DitherError:  # whole numbers without bounds are added up as they are
        return None


ADDED = ("count", "count_value", "sum", "histogram")
"""The kinds of aggregates that are too low by as much as the limits leave out."""


def forecast_notes(plan: QuestionPlan) -> list[Note]:
    """Return notes on answers whose ± spans all possible values."""
    return [
        Note("noise_only", {"name": item.name, "rows": item.rows, "low": item.low, "high": item.high})
        for item in noise_only(plan)
    ]


def unit_notes(card: Card) -> tuple[Note, ...]:
    """Return the note on rows without a unit; none where every row is a person."""
    derived = isinstance(card, RelationCard)
    unit = base_of(card).unit if derived else card.unit
    if unit is None:
        return ()
    as_people = card.counts_rows_without_unit and not derived
    return (Note("rows_as_people" if as_people else "rows_without_person", {"column": unit}),)


def plan_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return all notes on one private aggregation, for explanations and answers."""
    about_rows = (*limitations(plan), *combined_notes(plan), *unit_notes(plan.card), *null_notes(plan))
    return (
        *profile_notes(plan),
        *_day_notes(plan.query),
        *weekday_notes(plan),
        *about_rows,
        *held_notes(plan),
        *(unseen_bounds_notes(plan) if plan.automatic else ()),
        *error_notes(plan),
        *empty_group_notes(plan),
    )


def weekday_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return the note on how days of the week are counted, if numbers are asked for on which engines differ."""
    inside = () if plan.query.source is None else sources(plan.query.source)
    written = (item for part in (plan.query, *inside) for item in expressions_in(part))
    calls = (node for item in written for node in walk(item) if isinstance(node, Call))
    from_sunday = any(call.op == "date_part" and call.args[0] == Literal("dow") for call in calls)
    return (Note("weekday_numbers"),) if from_sunday else ()


def profile_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return the note on the profile, if limits, bounds and corrections follow from it."""
    profile = base_of(plan.card).profile
    if not plan.corrections or profile is None:
        return ()
    released = None if profile.released is None else f"{profile.released:%Y-%m-%d}"
    return (Note("by_profile", {"released": released}),)


def limitations(
    plan: AggregationPlan, stated: typing.Literal["", "beside them", "as a share"] = "", limits_are_stated: bool = True
) -> tuple[Note, ...]:
    """Return the limits of a plan and what they do to its answers; nothing where every row is a person.

    Parameters
    ----------
    plan
        The plan of the question.
    stated
        How the answer says how much is left out: beside its counts, or in a note, as a share of all rows, which says
        nothing about a single group, or about the values in those rows; empty where it does not.
    limits_are_stated
        Whether the limits are named; limits that were chosen privately have a note already.
    """
    if plan.card.unit is None and plan.options.tails == "usual":
        return ()
    if plan.options.tails == "any":
        return _any_tail(plan)
    kinds = {aggregate.kind for aggregate in plan.query.aggregates.values()}
    some_groups = plan.limits.exceeded or plan.selection is not None
    by_people = {"people", *EXTREMES}
    if (kinds <= by_people and not some_groups) or _settles_later(plan):
        return ()
    corrected = all(name in plan.corrections or item.kind in by_people for name, item in plan.query.aggregates.items())
    if plan.corrections and corrected and plan.selection is None:
        return ()  # what limits do is in the answers, and in their ±
    own = {name: item.rows_per_person for name, item in plan.query.aggregates.items() if item.rows_per_person}
    of_question = limits_are_stated and (len(own) < len(plan.query.aggregates) or plan.selection is not None)
    result = [Note("limits", stated_limits(plan))] if of_question else []
    result += [Note("limit_of_aggregate", {"name": name, "rows": rows}) for name, rows in own.items()]
    if kinds & set(ADDED) or "people" in kinds:
        if stated == "beside them":
            result.append(Note("undercount_beside"))
        elif stated:
            parts = ["group"] if plan.query.groups else []
            parts += ["sum"] if kinds & {"sum", "count_value", "histogram"} or not parts else []
            of = "groups" if kinds == {"people"} else "rows"
            result.append(Note("undercount_share", {"of": of, "of_parts": parts}))
        else:
            later = plan.automatic.keys() & {"max_rows", "bias"}
            result.append(Note("undercount_later" if later else "undercount_unknown"))
    if "count_distinct" in kinds:
        names = [name for name, item in plan.query.aggregates.items() if item.kind == "count_distinct"]
        result.append(Note("distinct_limited", {"names": names}))
    if kinds - {*ADDED, *by_people, "count_distinct"}:
        result.append(Note("means_limited"))
    return tuple(result)


def _settles_later(plan: AggregationPlan) -> bool:
    """Return whether limits are those of a profile, and are chosen when values that it lacks have been sketched."""
    return plan.profiled is not None and plan.profiled.to_sketch and plan.profiled.limits_free


def _any_tail(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return a note for each count and sum of a question with ``tails="any"``: how low it may be, and the largest
    number of a person's rows if that is stated."""
    most = int(plan.limits.total) if is_bounded(plan.limits) else None
    return tuple(
        Note("any_tail", {"name": name, "times": per_row(parts, plan.measures, plan.limits, 0.95), "most": most})
        for name, parts in plan.measures_of.items()
        if is_race(parts)
    )


def combined_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return notes on joins of a person's rows that are limited to a number of rows."""
    result = []
    for item in () if plan.query.source is None else sources(plan.query.source):
        if isinstance(item, PersonJoin):
            exists = item.kind in ("semi", "anti")
            for side in (item.left, item.right):
                if isinstance(side, CappedRows):
                    relation = describe_relation(side.source, base_of(plan.card))
                    result.append(Note("join_limit", {"rows": side.most, "relation": relation, "exists": exists}))
    return tuple(dict.fromkeys(result))


def bias_notes(plan: QuestionPlan, bias: bool) -> tuple[Note, ...]:
    """Return a note on why ``bias=True`` has no effect; none if it has, or was not asked for."""
    parts = plan.parts
    if not bias or any("bias" in part.automatic for part in parts):
        return ()
    reason = "people"
    if any({"max_rows", "max_groups"} & part.automatic.keys() for part in parts):
        reason = "limits_chosen"
    elif all(part.card.unit is None for part in parts):
        reason = "one_row"
    return (Note("bias_unused", {"reason": reason}),)


def held_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return notes on bounds stated in a question about a relation that values may exceed; bounds that are chosen
    privately have their own note."""
    if not isinstance(plan.card, RelationCard):
        return ()
    find = plan.find
    sketched = {item.value for name, item in plan.query.aggregates.items() if VALUES_OF + name in plan.automatic}
    result = []
    for name, aggregate in plan.query.aggregates.items():
        value, bounds = aggregate.value, aggregate.bounds
        if value is None or not isinstance(bounds, tuple) or BOUNDS_OF + name in plan.automatic or value in sketched:
            continue
        known = expressions.compile(value, find).range
        if known is None or known.low < bounds[0] or known.high > bounds[1]:
            result.append(Note("bounds_stated", {"value": show(value), "low": bounds[0], "high": bounds[1]}))
    return (*dict.fromkeys(result), *person_sum_notes(plan))


def error_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return notes on errors: that they include the sampling of a population; how far off in rank a quantile, extreme
    or mode may be; and that values have no interval."""
    result = []
    if plan.population:
        result.append(Note("population"))
        limits = [item.rows_per_person for item in plan.query.aggregates.values() if item.kind != "people"]
        cluster = max((most_rows_of_a_person(plan, limit) for limit in limits), default=1.0)
        if cluster > 1:
            result.append(Note("population_clusters", {"factor": math.sqrt(cluster)}))
    if "max_rows" in plan.automatic:  # what follows depends on this limit, which is still to be chosen
        return tuple(result)
    for choice in plan.choices:
        row = 1 << plan.bin_limits(choice.aggregate).bits()  # what a row of weight 1 adds to its bin
        width = _bin_width(plan, choice.name, choice.aggregate)
        gap = choice.mechanism.error(choice.bins) / row
        if choice.aggregate.kind == "mode":
            result.append(Note("mode_gap", {"name": choice.name, "rows": gap}))
        else:
            beyond = inside_rank(plan, choice) / row + gap
            of = "people" if plan.card.unit is not None else "rows"
            of = "divided" if of == "people" and plan.query.groups and plan.limits.exceeded else of
            said = {"name": choice.name, "rows": beyond, "bin_width": width, "of": of}
            result.append(Note("extreme_rank", said))
    for ranked in plan.quantiles:
        if ranked.interval is None:  # else the interval shows the error
            row = 1 << plan.bin_limits(ranked.aggregate).bits()
            gaps = {name: gap / row for name, gap in rank_errors(ranked.rank, ranked.bins).items()}
            for name, share in ranked.shares.items():
                width = _bin_width(plan, name, ranked.aggregate)
                result.append(Note("quantile_rank", {"name": name, "rows": gaps[share], "bin_width": width}))
    chosen: list[BinChoice | Quantiles] = [*plan.choices, *plan.quantiles]
    quantiles_have_errors = all(has_forecast(plan, name) for ranked in plan.quantiles for name in ranked.shares)
    if any(item.interval is None for item in (plan.choices if quantiles_have_errors else chosen)):
        result.append(Note("no_interval"))
    return tuple(result)


def _bin_width(plan: AggregationPlan, name: str, aggregate: Aggregate) -> float | None:
    """Return the largest width of the bins among which a value is chosen, whose middle is the answer; None where each
    bin is one whole number, and where the bounds are still to be chosen."""
    if plan.automatic.get(BOUNDS_OF + name) or aggregate.edges is None or isinstance(aggregate.edges[0], int):
        return None
    return float(np.diff(np.asarray(aggregate.edges, dtype=np.float64)).max())


def stated_limits(plan: AggregationPlan) -> dict[str, Any]:
    """Return the limits of one person as values of a note: rows, groups, or rows in each of some groups.

    The limits are on all groups together: one that has fewer groups may have more rows in each of them.
    """
    if "max_rows" in plan.automatic or _settles_later(plan):
        return {"rows": "auto", "groups": None}
    only_people = all(item.kind in ("people", *EXTREMES) for item in plan.query.aggregates.values())
    if plan.shared_bounds is not None and not only_people:
        return {"rows": plan.max_groups * plan.max_rows, "groups": None}
    if not plan.query.groups or (
        plan.max_groups == 1 and plan.selection is None and "max_groups" not in plan.automatic
    ):
        return {"rows": plan.max_rows, "groups": None}
    groups = "auto" if "max_groups" in plan.automatic else plan.max_groups
    return {"rows": None if only_people else plan.max_rows, "groups": groups}


ASSUMED_ROWS = 10_000
"""How many rows a group has, for the question whether its answer would be noise alone, where the card states none."""


_COUNTED = ("count", "count_value", "count_distinct", "people")


@dataclass(frozen=True)
class NoiseOnly:
    """An answer whose expected ± spans the range ``low`` to ``high`` of its possible values in a group of ``rows``
    rows; this follows from the question, the card and the options alone.
    """

    name: str
    error: float
    low: float
    high: float
    rows: int


def noise_only(plan: QuestionPlan) -> tuple[NoiseOnly, ...]:
    """Return the answers of a plan whose ± would span all their possible values.

    Means lie between the bounds, variances below a quarter of the squared width, deviations below half of it: a ± of
    half of that says nothing, wherever the answer is. Counts and sums are from 0 on, and are held against the rows that
    the card states, if it does. The rows of a group are those that the card states, divided by the number of public
    groups, or :data:`ASSUMED_ROWS`.
    """
    result = []
    for part in plan.parts:
        groups, stated = every_group(part.keys, part.ties), part.card.rows
        rows = ASSUMED_ROWS if stated is None else max(1, stated // max(1, len(groups or ())))
        for name, parts in part.measures_of.items():
            kind, moments = part.query.aggregates[name].kind, parts[0].moments
            if BOUNDS_OF + name in part.automatic:
                continue
            low, high = moments.bounds if moments is not None and moments.bounds is not None else (0.0, 1.0)
            width = high - low
            between = {"mean": (low, high), "var": (0.0, width**2 / 4), "std": (0.0, width / 2)}
            if stated is not None:
                between |= {kind: (0.0, float(rows)) for kind in _COUNTED}
                between["sum"] = (rows * min(low, 0.0), rows * max(high, 0.0))
            if kind in between:
                least, most = between[kind]
                error = expected_error(part, name) if kind in SIMPLE else error_for_size(part, name, rows)
                all_of_it = (most - least) * (1.0 if kind in SIMPLE else 0.5) * (1 - 1e-9)
                if error is not None and error >= all_of_it:
                    result.append(NoiseOnly(name, error, least, most, rows))
    return tuple(result)


def error_subject(name: str) -> str:
    """Return the subject of an error about an answer's ±."""
    return f"± of {name}"


def refuse_noise_only(plan: QuestionPlan) -> None:
    """Refuse a question if the ± of one of its answers spans all possible values."""
    for item in noise_only(plan):
        raise InvalidArgument(
            error_subject(item.name),
            f"less than all that it could be with {item.rows:,} rows in a group, {item.low:,.6g} to {item.high:,.6g}",
            f"± {two_digits(item.error)}: the answer would be noise alone",
            "spend more epsilon, state a larger rows in the card, or pass force=True to ask all the same",
            "spend more epsilon, state a larger rows in the card, or pass --yes to ask all the same",
        )


def refuse_mostly_noise(notes: tuple[Note, ...]) -> None:
    """Refuse a question all of whose answers are expected to be mostly noise, by its notes of that kind."""
    for note in notes:
        if note.values["all"]:
            levers = "".join(f"{lever_words(lever)}; " for lever in note.values["levers"])
            other = f"{levers}or " if levers else ""
            raise InvalidArgument(
                error_subject(note.values["name"]),
                f"less than the answer itself, about {two_digits(note.values['size'])}",
                f"± {two_digits(note.values['error'])}, so mostly noise",
                f"{other}pass force=True to ask all the same",
                f"{other}pass --yes to ask all the same",
            )


_WHAT = {
    "rows": "the number of rows",
    "people": "the number of people",
    "distinct": "the number of different values",
    "sum": "the sum",
    "part": "the number of rows with a value",
    "product": "the sums, squares and products of the two values",
}
_PARTS = {
    0: "the numbers of rows with and without a value",
    1: "the number and the sum of the values",
    2: "the number, the sum and the squares of the values",
}


@public_in("dither")
@unhashable
@dataclass(frozen=True)
class Explanation:
    """A line for each thing that is measured: mechanism, share of the budget, expected error; and the whole cost.

    Where a profile forecasts errors, a line has under ``groups`` the ± in the smallest, a typical and the largest
    group, and about how large the number itself is in a typical one.

    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"age": [30, 40] * 50}), budget=dp.PureDP(1)) as people:
    ...     print(people.agg(n=dp.count()).explain(epsilon=1).cost)
    ε = 1
    """

    lines: tuple[dict[str, Any], ...]
    cost: Guarantee
    groups: str
    bounding: str
    remaining: Remaining
    limitations: tuple[Note, ...] = ()
    refused: str = ""
    asked_of: str = ""
    rows_are_people: bool = False
    """Whether each row is a person of its own."""

    @property
    def left(self) -> Guarantee | None:
        """The budget left to the caller; None if none is left, and if it is not known."""
        return self.remaining.guarantee

    def typical_error(self, name: str) -> float | None:
        """Return the ± (95 %) that is expected of an answer in a group of typical size; None where it depends on the
        data, and no profile tells.

        >>> import dither as dp, pyarrow as pa
        >>> with dp.open(pa.table({"age": [30, 40] * 50}), budget=dp.PureDP(1)) as people:
        ...     print(people.agg(n=dp.count()).explain(epsilon=1).typical_error("n"))
        3.0
        """
        return next((line["error"] for line in self.lines if line["answer"] == name), None)

    def __str__(self) -> str:
        """Return the explanation as text: the cost, the groups, a line for each answer, and the limitations."""
        output = [f"cost: {self.cost}; left: {self.remaining}"]
        output += [f"would be refused: {self.refused}"] if self.refused else []
        output += [self.asked_of] if self.asked_of else []
        output += [*self.groups.split("\n"), *self.bounding.split("\n")]
        for line in self.lines:
            output.append(f"{line['answer']}: {line['measure']}, by {line['mechanism']}; {line['expected']}")
        return "\n".join(map(printable, [*output, *map(str, self.limitations)]))

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the cost, a table of what is measured, and what the answers leave out."""
        facts = [("cost", str(self.cost)), ("left", str(self.remaining))]
        facts += [("would be refused", self.refused)] if self.refused else []
        lines = [[line[name] for name in ("answer", "measure", "mechanism", "expected")] for line in self.lines]
        measured = markup.table(["answer", "measured", "by", "expected ±"], lines, [False] * 4)
        return markup.block(
            markup.facts(facts),
            markup.lines(
                [
                    *([self.asked_of] if self.asked_of else []),
                    *self.groups.split("\n"),
                    *self.bounding.split("\n"),
                ]
            ),
            measured,
            markup.lines([*map(str, self.limitations)]),
        )


def explain(
    plan: QuestionPlan, remaining: Remaining, more_notes: tuple[Note, ...] = (), refused: str = ""
) -> Explanation:
    """Return the explanation of a plan, with the ``remaining`` budget, ``more_notes``, and the reason why the question
    would be refused now (``refused``; empty if it would not).

    Each line has the name of an answer, what is measured for it, the mechanism with its noise, the expected error (None
    if it depends on the data), and that error in words, all in the units of the answer. For several private
    aggregations, each is described with its share of the budget.
    """
    parts = plan.parts
    if plan.of_public is not None:
        return Explanation(
            (),
            plan.cost,
            "groups: as the SQL says",
            "no private rows are read",
            remaining,
            public_notes(plan.query),
            refused,
        )
    lines = [line for part in parts for line in _lines(part, _by(part) if len(parts) > 1 else "")]
    first_parts = [part for item in plan.before for part in item.parts]
    lines += [line for part in first_parts for line in _lines(part, ", asked first")]
    groups, bounded = _groups(parts[0]), dict.fromkeys(map(_bounding, parts))
    learned_of = {limit for limit, learned in bounded if learned}
    bounding = "\n".join(limit + learned for limit, learned in bounded if learned or limit not in learned_of)
    if len(parts) > 1:
        shares = [f"{_by(part).strip()}, for {part.guarantee}: {_groups(part)}" for part in parts]
        groups = "\n".join([f"{len(parts)} private aggregations share the budget:", *shares])
    if any(part.reduced for part in parts):
        groups += "\ncounts and sums of levels add up, by least squares: of the rows whose keys are all public"
    notes = [note for part in parts for note in plan_notes(part)]
    notes += [note for part in parts for note in _sharing(part)]
    notes += forecast_notes(plan)
    notes += [Note("in_stages", {"stages": len(plan.before) + 1})] if plan.before else []
    first = [note for note in more_notes if note.kind == "mostly_noise"]
    every_note = tuple(dict.fromkeys([*first, *notes, *more_notes]))
    asked_of = "; ".join(dict.fromkeys(filter(None, map(_asked_of, parts))))
    rows_are_people = all(part.card.unit is None and part.query.source is None for part in parts)
    about = (groups, bounding, remaining, every_note, refused, asked_of, rows_are_people)
    return Explanation(tuple(lines), plan.cost, *about)


def public_notes(query: Query) -> tuple[Note, ...]:
    """Return the note on a question that reads public tables alone."""
    return () if query.post is None else (Note("public_alone", {"tables": [*query.post.public]}), *_day_notes(query))


def _day_notes(query: Query) -> tuple[Note, ...]:
    """Return the note on the day that CURRENT_DATE stands for, where the question names it."""
    return () if query.as_of is None else (Note("as_of", {"day": query.as_of.isoformat()}),)


def _asked_of(plan: AggregationPlan) -> str:
    """Return the line that describes the relation in FROM; an empty text for the card's own table."""
    if plan.query.source is None:
        return ""
    return f"asked of: {describe_relation(plan.query.source, base_of(plan.card))}"


def _by(plan: AggregationPlan) -> str:
    """Return the grouping columns of one of several aggregations, in brackets, such as " (by region)"."""
    return f" (by {', '.join(group.name for group in plan.query.groups)})" if plan.query.groups else " (in all)"


def _lines(plan: AggregationPlan, suffix: str) -> list[dict[str, Any]]:
    """Return a line of the explanation for each answer of one private aggregation."""
    lines: list[dict[str, Any]] = []
    limit = ["the limit"] if "max_rows" in plan.automatic or _settles_later(plan) else []
    sketched = {item.value for name, item in plan.query.aggregates.items() if VALUES_OF + name in plan.automatic}
    for name, parts in plan.measures_of.items():
        moments = parts[0].moments
        what = _WHAT[parts[0].kind] if moments is None or len(parts) == 1 else _PARTS[moments.degree]
        kind = plan.query.aggregates[name].kind
        simple = kind in SIMPLE
        bounds_to_choose = BOUNDS_OF + name in plan.automatic
        chosen = [] if kind == "people" else limit  # people count once each
        of_rows, per_limit = _times(chosen), _times(chosen, bounds_to_choose, kind)
        error: float | None
        if name in plan.expected:
            error, expected = plan.expected[name].typical, _for_groups(plan, name)
        elif simple:
            error = expected_error(plan, name)
            expected = _plus_minus(error, per_limit)
            if kind == "sum" and plan.query.aggregates[name].value in sketched:  # tighter bounds will be looked for
                error, expected = None, f"at most {expected}"
        else:
            error, expected = None, _expected_for_sizes(plan, name, per_limit)
        in_values = parts[0].kind == "sum"  # other noise is in rows, whatever the bounds are
        mechanism = _noise(plan.measures[parts[0]], parts[0], plan) + (per_limit if in_values else of_rows)
        mechanism += f" in each of {len(parts)} parts" if len(parts) > 1 else ""
        known = plan.expected.get(name)
        later = bounds_to_choose or (bool(chosen) and known is None)  # the error is that of a limit of 1
        lines.append(_line(name + suffix, what, mechanism, None if later else error, expected, known))
    of_rows = _times(limit)
    for choice in plan.choices:
        among = "keys" if choice.aggregate.kind == "mode" else "values"
        mechanism = f"the exponential mechanism among {choice.bins:,} {among}, ε = {choice.mechanism.epsilon:.4g}"
        lines.append(_line(choice.name + suffix, choice.aggregate.kind, mechanism, None, "± depends on the data"))
    for ranked in plan.quantiles:
        one = 1 << plan.bin_limits(ranked.aggregate).bits()
        rank_errors = errors(ranked.rank, ranked.bins)
        for name, share in ranked.shares.items():
            epsilon = ranked.rank.mechanism.epsilon
            mechanism = f"the exponential mechanism among {ranked.bins:,} values, ε = {epsilon:.4g} in each level"
            expected = f"its rank within {two_digits(rank_errors[share] / one)} rows{of_rows} (95 %)"
            error = None
            if name in plan.expected:
                error, expected = plan.expected[name].typical, _for_groups(plan, name)
            known = plan.expected.get(name)
            lines.append(_line(name + suffix, f"the quantile {float(share):g}", mechanism, error, expected, known))
    for count in plan.counts:
        one = 1 << plan.bin_limits(count.aggregate).bits()
        error = float(count.mechanism.error(0.95, integer=True)) / one
        deviation = two_digits(math.sqrt(variance_of(count.mechanism)) / one)
        mechanism = f"Laplace noise with a standard deviation of {deviation} rows{of_rows}"
        lines.append(
            _line(count.name + suffix, "the number of rows in each bin", mechanism, error, _plus_minus(error, of_rows))
        )
    return lines


def _sharing(plan: AggregationPlan) -> list[Note]:
    """Return notes on how asking for several aggregates at once increases their noise."""
    result = []
    several = [name for name, parts in plan.measures_of.items() if len(parts) > 1]
    added = [name for name in several if plan.query.aggregates[name].kind in ("count", "count_value")]
    others = [name for name in several if name not in added]
    if added and others:
        result.append(Note("shared_parts", {"names": added, "others": others}))
    shares = [*{*plan.measures_of.values()}, *plan.choices, *plan.counts, *plan.quantiles]
    if len(shares) > 1:
        result.append(Note("shared_epsilon"))
    return result


def _times(chosen: Sequence[str], bounds: bool = False, kind: str = "") -> str:
    """Return the text " times … that are chosen" behind a number that was computed with stand-ins: for the limits
    ``chosen`` and, if ``bounds``, for bounds of 0 and 1 of an aggregate of this ``kind``. Empty without stand-ins."""
    widths = {"sum": "the largest of the bounds", "var": "the squared width of the bounds"}
    factors = [*chosen, *([widths.get(kind, "the width of the bounds")] if bounds else [])]
    are = "are" if bounds or len(factors) > 1 else "is"
    return f" times {' and '.join(factors)} that {are} chosen" if factors else ""


def _groups(plan: AggregationPlan) -> str:
    """Return the line that says which groups are shown."""
    every = every_group(plan.keys, plan.ties)
    if not plan.query.groups:
        return "groups: one, of all rows"
    if plan.top is not None and plan.top_keys is not None:
        people = two_digits(plan.top_keys.people)
        spread = "each person spread over all of their groups" if plan.card.unit is not None else "each a row"
        expected = plan.top.expected(plan.top_keys)
        expected_text = "" if expected is None else f"; about {expected} are expected to be shown"
        return (
            f"groups: private; the {plan.top.k} largest of those of a noisy {people} people on, {spread}{expected_text}"
        )
    if every is not None:
        return f"groups: {len(every)}, all public; each is shown, whether anybody is in it or not"
    assert plan.selection is not None
    shown = f"groups: private; shown from a noisy {plan.selection.threshold} people on"
    if "max_groups" in plan.automatic:
        shown = f"{shown} if max_groups = {plan.max_groups} is chosen, and from more for a larger one"
    known = forecast_keys(plan)
    return shown if known is None else f"{shown}; about {known[0]:,} of {known[1]:,} keys will be shown"


def forecast_keys(plan: AggregationPlan) -> tuple[int, int] | None:
    """Return about how many keys that are not public will be shown, and how many there are, by the profile; None where
    it does not say, as of several columns, or of rows that meet a condition."""
    profile, query = base_of(plan.card).profile, plan.query
    value = query.groups[0].value if len(query.groups) == 1 else None
    if profile is None or query.where is not None or query.source is not None or not isinstance(value, Column):
        return None
    if plan.selection is None:
        return None
    table = profile.tables.get(base_of(plan.card).name)
    if table is None or value.table is not None:
        return None
    from dither.tables.planning.top_keys import keys_shown

    return keys_shown(table, value.name, plan.selection.threshold, plan.max_groups)


def _bounding(plan: AggregationPlan) -> tuple[str, str]:
    """Return the text on the limits of one person, and the text on what is chosen privately at which epsilon (empty if
    nothing is)."""
    bounding = "each row is a person of their own"
    if plan.query.source is not None:
        bounding = "each person has one row at most"
    if plan.card.unit is not None:
        bounding = f"each person counts for at most {limit_words(**stated_limits(plan))}"
    learned = ""
    paid = {name: epsilon for name, epsilon in plan.automatic.items() if epsilon}
    if paid:
        epsilons = ", ".join(f"{name} for ε = {float(epsilon):.3g}" for name, epsilon in paid.items())
        learned = f"; learned privately: {epsilons}"
        exact = plan.guarantee.exact
        if (
            len(exact) > 1
            and plan.selection is None
            and plan.top is None
            and not any(isinstance(n, Gaussian) for n in plan.measures.values())
        ):
            learned += f"; δ = {float(exact[1]):g} is for normal noise, if that turns out to be better"
    return bounding, learned


def _line(
    name: str, measure: str, mechanism: str, error: float | None, expected: str, groups: GroupErrors | None = None
) -> dict[str, Any]:
    """Return one line of an explanation; ``error`` is None where it is not known before. ``groups`` has the errors that
    the profile forecasts, and about how large the number is."""
    known = None if groups is None else [float(number) for number in (*groups.errors, groups.answer)]
    line = {"answer": name, "measure": measure, "mechanism": mechanism, "error": error, "expected": expected}
    return {**line, "groups": known}


def _plus_minus(error: float, times: str) -> str:
    """Return an expected error as text."""
    return f"± {two_digits(error)}{times} (95 %)"


def _noise(noise: Noise, measure: Measure, plan: AggregationPlan) -> str:
    """Return the text on the noise of a measure: its law, and its standard deviation in rows, people, or the units of
    the value."""
    kind = "normal noise" if isinstance(noise, Gaussian) else f"Laplace noise (ε = {noise.epsilon:.4g})"
    deviation = two_digits(math.sqrt(variance_of(noise)) / measure.unit(plan.limits))
    units = {"people": " people", "distinct": " values", "sum": ""}.get(measure.kind, " rows")
    return f"{kind} with a standard deviation of {deviation}{units}"


def _for_groups(plan: AggregationPlan, name: str) -> str:
    """Return the text on the total ± that the profile forecasts, in a typical, the smallest and the largest group."""
    known = plan.expected[name]
    smallest, typical, largest = map(two_digits, known.errors)
    about = f" of about {two_digits(known.answer)}" if known.answer else ""
    sizes = ""
    if not smallest == typical == largest:
        sizes = f" in a typical group, {smallest} in the smallest, {largest} in the largest"
    return f"± {typical}{about}{sizes} (95 %), noise and limits"


def _expected_for_sizes(plan: AggregationPlan, name: str, times: str) -> str:
    """Return the text on the ± of a mean, variance or standard deviation in groups of several sizes, for values spread
    evenly between the bounds."""
    texts = []
    for size in SAMPLE_SIZES:
        error = error_for_size(plan, name, size)
        if error is not None:
            texts.append(f"± {two_digits(error)}{times} with {size:,} rows in a group")
    return f"about {', '.join(texts)} (95 %)" if texts else "± depends on the data"
