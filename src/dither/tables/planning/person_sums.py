"""Sums and means of a person's rows, which are of values held within their bounds: an answer says so.

A condition on rows takes a value as it is beyond its bounds. A sum of a person's values is exact, and the same in any
order on every engine, because the values are within public bounds (:mod:`dither.tables.compile.relations`). So
``HAVING SUM(amount) > 120`` is about amounts within the bounds of the card, which is to be known where one may lie
beyond them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dither.errors import DitherError
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import expressions, relations
from dither.tables.compile.expressions import Lookup
from dither.tables.notes import Note
from dither.tables.planning.plan import Plan
from dither.tables.query.operations.base import NUMBERS
from dither.tables.query.relations import base_of, person_of, relation_schema
from dither.tables.query.tree import Column, Expression, PerPerson, Source, Windowed, sources, walk


def person_sum_notes(plan: Plan) -> tuple[str, ...]:
    """What a question says about columns that are held within their bounds before a person's values are added up."""
    if plan.query.source is None:
        return ()
    card = base_of(plan.card)
    held = (text for source in sources(plan.query.source) for text in _held(source, card))
    return tuple(Note("bounds", text) for text in dict.fromkeys(held))


def _held(source: Source, card: Card) -> Iterator[str]:
    if not isinstance(source, (PerPerson, Windowed)):
        return
    inside = replace(card, columns=relation_schema(card, source.source, relations.describe).columns)
    joins = source.joins if isinstance(source, PerPerson) else ()
    find = expressions.lookup(inside, {join.table: join.table for join in joins})
    every = source.aggregates.values() if isinstance(source, PerPerson) else source.windows.values()
    for value in dict.fromkeys(item.value for item in every if item.kind in ("sum", "mean")):
        for column in () if value is None else clamped_columns(value, find):
            low, high = find(column)[1].bounds or (0, 0)
            clamped = f"values of {column.name} are clamped to {low:,.15g} to {high:,.15g}, the bounds of the card"
            yield f"{clamped}, before they are added up for each {person_of(card)}"


def clamped_columns(value: Expression, find: Lookup) -> list[Column]:
    """The columns with bounds on which the range of a value depends.

    >>> from dither.tables.query import nodes
    >>> from dither.tables.query.tree import Call, Literal
    >>> find = lambda column: (nodes.column(column.name, "t"), ColumnCard("number", (0, 9)))
    >>> clamped_columns(Call("*", (Column("x"), Literal(2))), find)
    [Column(name='x', table=None)]
    >>> clamped_columns(Call("case", (Call(">", (Column("x"), Literal(2))), Literal(1), Literal(0))), find)
    []
    """
    result = []
    for column in dict.fromkeys(node for node in walk(value) if isinstance(node, Column)):
        card = find(column)[1]
        if card.type in NUMBERS and card.bounds is not None and column.table is None:
            low, high = card.bounds
            wider = replace(card, bounds=(low - 1, high + 1))

            def widened(other: Column, column: Column = column, wider: ColumnCard = wider) -> tuple[Any, ColumnCard]:
                return (find(other)[0], wider) if other == column else find(other)

            if _interval(value, widened) != _interval(value, find):
                result.append(column)
    return result


def _interval(value: Expression, find: Lookup) -> tuple[float, float] | None:
    try:
        return expressions.number(value, find).interval
    except DitherError:  # whole numbers without bounds are added up as they are
        return None
