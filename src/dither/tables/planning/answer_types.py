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
from dither.tables.query.tree import Aggregate
from dither.tables.query.whole_numbers import is_whole

_COUNTS = ("count", "count_value", "count_distinct", "people", "histogram")
_OF_ITS_TYPE = ("sum", "min", "max", "mode")


def answer_type(plan: Plan, aggregate: Aggregate) -> Type:
    """The type of the answers of an aggregate."""
    if aggregate.kind in _COUNTS:
        return "integer"
    if aggregate.value is None or not (aggregate.kind in _OF_ITS_TYPE or aggregate.discrete):
        return "number"
    find = expressions.lookup(plan.card, {join.table: join.table for join in plan.query.joins})
    if aggregate.kind == "mode":
        return expressions.compile(aggregate.value, find).type
    return "integer" if is_whole(aggregate.value, lambda column: find(column)[1]) else "number"


__all__ = ["answer_type"]
