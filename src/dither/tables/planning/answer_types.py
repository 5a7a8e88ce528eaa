"""The types of answers, as SQL has them: COUNT, and SUM, MIN and MAX of whole numbers, are whole numbers.

SQL on top of an answer means something else on doubles: ``SUM(qty) // COUNT(*)`` would not be cut off, and
``SUM(qty) || ' pieces'`` would have digits after the point. So an answer that is a whole number in SQL is rounded to
one where it is estimated, once, and is one in the noisy table and in all that is made of it. It is post-processing.

The type follows from the question and the card alone.
"""

from __future__ import annotations

from dither.tables.card.model import Type
from dither.tables.compile import expressions
from dither.tables.planning.plan import Plan
from dither.tables.query.tree import Aggregate, Call, Column, Expression, Literal
from dither.tables.query.typecheck import Types, typed

_COUNTS = ("count", "count_value", "count_distinct", "people", "histogram")
_OF_ITS_TYPE = ("sum", "min", "max", "mode")
_OF_ALL_ARGUMENTS = ("+", "-", "*", "neg", "abs", "%", "//", "coalesce", "greatest", "least")


def answer_type(plan: Plan, aggregate: Aggregate) -> Type:
    """The type of the answers of an aggregate."""
    if aggregate.kind in _COUNTS:
        return "integer"
    if aggregate.value is None or not (aggregate.kind in _OF_ITS_TYPE or aggregate.discrete):
        return "number"
    find = expressions.lookup(plan.card, {join.table: join.table for join in plan.query.joins})
    if aggregate.kind == "mode":
        return expressions.compile(aggregate.value, find).type
    return "integer" if is_whole(aggregate.value, lambda column: find(column)[1].type) else "number"


def is_whole(expression: Expression, types: Types) -> bool:
    """Whether SQL computes an expression as a whole number. FLOOR(x) is whole, and can be divided by ``//`` here; in
    SQL it is a double.

    >>> types = {Column("n"): "integer", Column("x"): "number"}.__getitem__
    >>> [is_whole(item, types) for item in (Column("n"), Call("*", (Column("n"), Literal(2))), Column("x"))]
    [True, True, False]
    >>> is_whole(Call("floor", (Column("x"),)), types)
    False
    """
    checked, kind = typed(expression, types)
    return kind == "integer" and not _is_double(checked, types)


def _is_double(expression: Expression, types: Types) -> bool:
    """Whether SQL computes a number as a double, or with digits after the point."""
    if not isinstance(expression, Call):
        kind = types(expression) if isinstance(expression, Column) else typed(expression, types)[1]
        return kind == "number"
    op, args = expression.op, expression.args
    if op in ("floor", "ceil"):
        return True
    if op in ("round", "trunc", "nullif"):
        return _is_double(args[0], types)
    if op == "case":
        args = (*args[1:-1:2], args[-1])
    elif op not in _OF_ALL_ARGUMENTS:
        return typed(expression, types)[1] == "number"
    return any(_is_double(item, types) for item in args if item != Literal(None))


__all__ = ["answer_type", "is_whole"]
