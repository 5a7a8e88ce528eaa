"""The card that a question is planned under: of a derived relation, what is public about its columns.

Types and bounds follow from the card (:mod:`dither.tables.query.relations`), and so do keys
(:mod:`dither.tables.planning.derived_keys`): of expressions, and of columns that a condition inside compares with
constants. Counts and sums of a person's rows whose bounds do not follow get ``bounds="auto"``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import expressions, relations
from dither.tables.planning.derived_keys import PublicFacts
from dither.tables.query.relations import relation_card
from dither.tables.query.tree import Aggregate, Column, Expression, Join, Query

_BOUNDED = ("sum", "mean", "var", "std", "min", "max", "quantile")


def card_of_question(query: Query, card: Card) -> Card:
    """The card of what a question is asked of.

    >>> card_of_question(Query({}), Card("visits", "visits.csv", {})).name
    'visits'
    """
    return relation_card(card, query.source, _described, query.where)


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


def with_unstated_bounds(query: Query, card: Card) -> Query:
    """The question with bounds="auto" for aggregates of a relation's column that has no public bounds.

    >>> with_unstated_bounds(Query({}), Card("visits", "visits.csv", {})).aggregates
    {}
    """
    if query.source is None:
        return query
    aggregates = {
        name: replace(item, bounds="auto") if _is_unbounded(item, card) else item
        for name, item in query.aggregates.items()
    }
    return replace(query, aggregates=aggregates)


def _is_unbounded(aggregate: Aggregate, card: Card) -> bool:
    value = aggregate.value
    if aggregate.kind not in _BOUNDED or aggregate.bounds is not None or not isinstance(value, Column):
        return False
    return value.table is None and card.columns[value.name].bounds is None


__all__ = ["card_of_question", "with_unstated_bounds"]
