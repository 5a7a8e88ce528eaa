"""Rows that are in no group because what they are grouped by is NULL: where there may be some, an answer says so.

With keys that are not public, NULL is a group as any other. Public keys contain NULL only where the question makes it
one (:mod:`dither.tables.planning.derived_keys`): a card does not say whether a column has NULLs. Shares of the groups
are then shares of the rows with a value, which has to be known to whoever reads them. The same holds of rows whose date
or whole number lies beyond the bounds that keys are derived from.

Whether an expression can be NULL follows from the question and the card alone. A column of a private table can be, but
for the person, unless WHERE or a join keeps no row in which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dither.errors import DitherError
from dither.tables.card.model import ColumnCard
from dither.tables.card.values import Value
from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.notes import Note
from dither.tables.planning.derived_keys import PublicFacts
from dither.tables.planning.origins import Rows
from dither.tables.planning.plan import Plan
from dither.tables.planning.relation_cards import card_of_question
from dither.tables.query.evaluate import folded
from dither.tables.query.operations import operation
from dither.tables.query.operations.base import NUMBERS
from dither.tables.query.relations import base_of
from dither.tables.query.tree import (
    Call,
    Column,
    Expression,
    Group,
    Literal,
    PerPerson,
    PersonJoin,
    Query,
    UnionAll,
    Windowed,
    walk,
)

_ANY_NUMBER = (-(2.0**40), 2.0**40)
_NEVER_NULL = ("is_null", "is_distinct")
_COUNTS = ("count", "count_value", "count_distinct", "row_number", "rank", "dense_rank")


def null_notes(plan: Plan) -> tuple[str, ...]:
    """What an answer says about rows that are in none of its groups, because a key is NULL, or because a date or a
    whole number is beyond the bounds that its keys are derived from."""
    query = plan.query
    find = expressions.lookup(plan.card, {join.table: join.table for join in query.joins})
    public = [(group, keys) for group, keys in zip(query.groups, plan.keys, strict=True) if keys is not None]
    missing = [group for group, keys in public if None not in keys and may_be_null(plan, group.value)]
    result = []
    if missing:
        texts = [_as_sql(group.value) or group.name for group in missing]
        included = ", ".join(_with_null(group, find) for group in missing)
        result.append(f"rows with NULL in {' or '.join(texts)} are in no group: GROUP BY {included} includes them")
    lost: dict[str, list[str]] = {"are": [], "may be": []}
    for group, keys in public:
        if group.keys is None:
            for text, verb in _beyond(group.value, keys, plan):
                lost[verb].append(text)
    for verb, texts in lost.items():
        if texts:
            which = " or ".join(dict.fromkeys(texts))
            result.append(f"rows with {which}, the bounds of the card, {verb} in no group")
    return tuple(Note("no_key", text) for text in result)


def may_be_null(plan: Plan, expression: Expression) -> bool:
    """Whether an expression may be NULL in some of the rows that a plan is about, as far as is public."""
    return _may_be_null(folded(expression), Rows.asked(plan.query), base_of(plan.card).unit)


def _as_sql(value: Expression) -> str | None:
    """An expression as a question writes it; None for what is longer than a column or a part of a date."""
    if isinstance(value, Column):
        return value.name if value.name.isidentifier() else f'"{value.name}"'
    if isinstance(value, Call) and value.op in ("date_trunc", "date_part") and len(value.args) == 2:
        part, column = value.args
        if isinstance(part, Literal) and isinstance(column, Column):
            return f"{value.op}('{part.value}', {_as_sql(column)})"
    return None


def _with_null(group: Group, find: Lookup) -> str:
    """What to group by so that rows with NULL are a group as well. There is no third truth value that COALESCE could
    name, and a name that AS gives cannot stand inside a function."""
    text = _as_sql(group.value) or f"<expression of {group.name}>"
    if expressions.compile(group.value, find).type == "boolean":
        return f"CASE WHEN {text} THEN 'yes' WHEN NOT {text} THEN 'no' ELSE 'unknown' END"
    return f"COALESCE({text}, …)"


def _beyond(key: Expression, keys: tuple[Value, ...], plan: Plan) -> Iterator[tuple[str, str]]:
    """The columns of a key, in the rows that it comes from, each with its bounds in the card, beyond which rows have no
    key: where keys follow from bounds, and not from the question alone. What is computed from a number beyond them may
    be one of the keys."""
    *_, (rows, value) = Rows.asked(plan.query).levels(key)
    card_there = card_of_question(Query({}, source=rows.source), base_of(plan.card)) if rows.path else plan.card
    find = expressions.lookup(card_there, {join.table: join.table for join in rows.joins})
    raw = (value, *value.args) if isinstance(value, Call) and value.op == "coalesce" else (value,)
    for column in dict.fromkeys(node for node in walk(folded(value)) if isinstance(node, Column)):
        card = find(column)[1]
        ends: Sequence[object] | None = card.bounds if card.type in NUMBERS else card.period
        if ends is None or card.keys is not None or column.table is not None:
            continue
        unbounded = replace(card, bounds=None if card.bounds is None else _ANY_NUMBER, period=None)

        def without(other: Column, column: Column = column, card: ColumnCard = unbounded) -> tuple[Any, ColumnCard]:
            return find(other) if other != column else (find(other)[0], card)

        try:
            stated = PublicFacts(without, rows.conditions).values(value)
        except DitherError:  # without bounds it cannot be computed at all
            stated = None
        if stated is None or not set(stated) <= set(keys):
            computed = card.type in NUMBERS and column not in raw
            yield f"{column.name} beyond {ends[0]} to {ends[1]}", "may be" if computed else "are"


def _may_be_null(expression: Expression, rows: Rows, person: str | None) -> bool:
    """Whether an expression may be NULL in some row, as far as is public."""
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


def _column_may_be_null(column: Column, rows: Rows, person: str | None) -> bool:
    """Whether a column of a relation, which is not the person, may be NULL by what it is there."""
    source, name = rows.source, column.name
    if isinstance(source, UnionAll):
        return any(_column_may_be_null(column, Rows(item), person) for item in source.sources)
    if isinstance(source, PersonJoin) and name in (source.left_person, source.right_person):
        return source.kind != "inner"
    if isinstance(source, Windowed) and name in source.windows:
        return source.windows[name].kind not in _COUNTS
    if isinstance(source, PerPerson) and name in source.aggregates:
        return source.aggregates[name].kind not in _COUNTS
    inside = rows.inside(column)
    return inside is None or _may_be_null(inside[1], inside[0], person)


def _fails(condition: Expression, column: Column) -> bool:
    """Whether a condition cannot hold in a row in which a column is NULL."""
    if isinstance(condition, Call) and condition.op in ("and", "or"):
        known = (_fails(item, column) for item in condition.args)
        return any(known) if condition.op == "and" else all(known)
    if isinstance(condition, Call) and condition.op == "not":
        return _is_null(condition.args[0], column) or _holds(condition.args[0], column)
    return _is_null(condition, column)


def _holds(condition: Expression, column: Column) -> bool:
    """Whether a condition always holds in a row in which a column is NULL."""
    return isinstance(condition, Call) and condition.op == "is_null" and _is_null(condition.args[0], column)


def _is_null(expression: Expression, column: Column) -> bool:
    """Whether an expression is always NULL in a row in which a column is."""
    if not isinstance(expression, Call):
        return expression in (column, Literal(None))
    if operation(expression.op).strict:
        return any(_is_null(item, column) for item in expression.args)
    return expression.op in ("between", "in") and _is_null(expression.args[0], column)
