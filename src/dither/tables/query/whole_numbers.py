"""Which expressions SQL computes as whole numbers, and which as doubles whose values are whole.

FLOOR, CEIL, ROUND and TRUNC of a number give whole numbers here, which ``//`` and ``%`` take; in SQL they are doubles.
For an answer it is SQL's type that counts: ``SUM(FLOOR(x)) // 2`` is not cut off there.
"""

from __future__ import annotations

from collections.abc import Callable

from dither.tables.card.model import ColumnCard
from dither.tables.query.relations import is_double_in_sql
from dither.tables.query.tree import Column, Expression, Literal
from dither.tables.query.typecheck import typed

_OF_ALL_ARGUMENTS = ("+", "-", "*", "neg", "abs", "%", "//", "coalesce", "greatest", "least")

Cards = Callable[[Column], ColumnCard]
"""What is public about a column."""


def is_whole(expression: Expression, cards: Cards) -> bool:
    """Whether SQL computes an expression as a whole number.

    >>> from dither.tables.query.tree import Call
    >>> cards = {Column("n"): ColumnCard("integer"), Column("x"): ColumnCard("number")}.__getitem__
    >>> [is_whole(item, cards) for item in (Column("n"), Call("*", (Column("n"), Literal(2))), Column("x"))]
    [True, True, False]
    >>> is_whole(Call("floor", (Column("x"),)), cards)
    False
    """
    checked, kind = typed(expression, lambda column: cards(column).type)
    return kind == "integer" and not _is_double(checked, cards)


def _is_double(expression: Expression, cards: Cards) -> bool:
    """Whether SQL computes a number as a double, or with digits after the point."""
    if isinstance(expression, Column):
        card = cards(expression)
        return card.type == "number" or is_double_in_sql(card)
    if isinstance(expression, Literal):
        return isinstance(expression.value, float)
    op, args = expression.op, expression.args
    if op in ("floor", "ceil"):
        return True
    if op in ("round", "trunc", "nullif"):
        return _is_double(args[0], cards)
    if op == "case":
        args = (*args[1:-1:2], args[-1])
    elif op not in _OF_ALL_ARGUMENTS:
        return typed(expression, lambda column: cards(column).type)[1] == "number"
    return any(_is_double(item, cards) for item in args)
