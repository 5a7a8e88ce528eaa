"""The card that a question is planned under: of a derived relation, what is public about its columns.

Types and bounds follow from the card (:mod:`dither.tables.query.relations`), and so do keys
(:mod:`dither.tables.planning.derived_keys`): of expressions, and of columns that a condition compares with constants.
So do bounds of whole numbers from the WHERE of the question, as of a count of a person's rows in ``WHERE k <= 20``.
Aggregates of what has no public bounds, of other counts and sums of a person's rows above all, get ``bounds="auto"``.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import date

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard
from dither.tables.card.values import Value
from dither.tables.compile import expressions, relations
from dither.tables.compile.expressions import Lookup
from dither.tables.planning.derived_keys import PublicFacts
from dither.tables.planning.origins import Rows
from dither.tables.query.relations import base_of, extent_of, relation_card
from dither.tables.query.tree import Aggregate, Column, Expression, Join, Query

PublicKeys = tuple[tuple[Value, ...] | None, ...]
_BOUNDED = ("sum", "mean", "var", "std", "min", "max", "quantile")


def card_of_question(query: Query, card: Card) -> Card:
    """The card of what a question is asked of.

    >>> card_of_question(Query({}), Card("visits", "visits.csv", {})).name
    'visits'
    """
    result = relation_card(card, query.source, _described, query.where)
    if query.source is None or query.where is None:
        return result
    find = expressions.lookup(result, {join.table: join.table for join in query.joins})
    columns = {name: _compared(Column(name), column, find, query.where) for name, column in result.columns.items()}
    return replace(result, columns=columns)


def narrowed_keys(query: Query, card: Card, keys: PublicKeys) -> PublicKeys:
    """Keys that the question does not list, without those that conditions inside of the relation rule out: of WHERE in
    a SELECT after FROM, of QUALIFY there, or of ON. NULL stays where it is a key."""
    if query.source is None:
        return keys
    result, lookups = list(keys), dict[tuple[int, ...], Lookup]()
    for place, group in enumerate(query.groups):
        if result[place] is None or group.keys is not None:
            continue
        for rows, item in itertools.islice(Rows.asked(query).levels(group.value), 1, None):
            if rows.path not in lookups:
                inner = card_of_question(Query({}, source=rows.source), base_of(card))
                lookups[rows.path] = expressions.lookup(inner, {join.table: join.table for join in rows.joins})
            facts = PublicFacts(lookups[rows.path], rows.conditions)
            possible = facts.values(item)
            listed = result[place] or ()
            kept = listed if possible is None else tuple(key for key in listed if key is None or key in possible)
            result[place] = facts.meeting(item, kept) or kept or listed
    return tuple(result)


def _described(expression: Expression, card: Card, where: Expression | None, joins: tuple[Join, ...]) -> ColumnCard:
    column = relations.describe(expression, card, where, joins)
    facts = PublicFacts.of(expressions.lookup(card, {item.table: item.table for item in joins}), where)
    if not isinstance(expression, Column):
        return column if column.keys is not None else replace(column, keys=facts.values(expression))
    listed = facts.listed(expression) if where is not None else None
    if listed is not None:
        column = replace(column, keys=listed)
    if column.type in ("date", "timestamp"):
        first, last = facts.bounds(expression)
        if isinstance(first, date) and isinstance(last, date) and first <= last:
            column = replace(column, period=(first, last))
    return column


def _compared(expression: Column, column: ColumnCard, find: Lookup, where: Expression) -> ColumnCard:
    """A column of whole numbers without bounds, with those between which a condition leaves its values."""
    if extent_of(column) is None or column.type != "integer":
        return column
    low, high = PublicFacts.of(find, where).bounds(expression)
    if (low, high) != PublicFacts.of(expressions.wider(find), where).bounds(expression):
        return column
    assert isinstance(low, int)
    assert isinstance(high, int)
    return replace(column, bounds=(low, max(high, low + 1)))


def with_unstated_bounds(query: Query, card: Card) -> Query:
    """The question with bounds="auto" for aggregates of what can be computed and has no public bounds: columns of a
    relation, and quotients by what may be near 0. Of such quotients the bounds are those that WHERE leaves, where it
    keeps the divisor away from 0. A number that is read from text may be anything: it is refused later.

    >>> with_unstated_bounds(Query({}), Card("visits", "visits.csv", {})).aggregates
    {}
    """
    find = expressions.lookup(card, {join.table: join.table for join in query.joins})
    aggregates = {
        name: replace(item, bounds=_bounds_by_conditions(item, find, query.where) or "auto")
        for name, item in query.aggregates.items()
        if (query.source is not None or not isinstance(item.value, Column)) and _is_unbounded(item, find)
    }
    return replace(query, aggregates={**query.aggregates, **aggregates})


def _is_unbounded(aggregate: Aggregate, find: Lookup) -> bool:
    value = aggregate.value
    if aggregate.kind not in _BOUNDED or aggregate.bounds is not None or value is None:
        return False
    try:
        return expressions.public_interval(value, find) is None and not expressions.reads_text(value, find)
    except InvalidArgument:  # arithmetic with a column of a private table that has no bounds
        return False


def _bounds_by_conditions(aggregate: Aggregate, find: Lookup, where: Expression | None) -> tuple[float, float] | None:
    """The bounds of a computed value of rows that meet the conditions."""
    value = aggregate.value
    if value is None or isinstance(value, Column):
        return None
    known = expressions.public_interval(value, PublicFacts.of(find, where).narrowed)
    return known if known is not None and known[0] < known[1] else None
