"""What is done to the noisy table, in plain Python: columns, HAVING, ORDER BY, LIMIT. It costs nothing.

NULL is None, and spreads as in SQL: a comparison with it is unknown, a condition that is unknown keeps no row. Division
by zero, and any number that is not finite, is None. NULLs sort last, rising or falling; rows that are equal keep
their order.

>>> from dither.tables.query.tree import Call, Column
>>> rows = [{"region": "a", "n": 5, "total": 10}, {"region": "b", "n": 0, "total": 3}]
>>> shape = Shape({"region": Column("region"), "mean": Call("/", (Column("total"), Column("n")))})
>>> apply(shape, ["region", "n", "total"], rows)
[{'region': 'a', 'mean': 2.0}, {'region': 'b', 'mean': None}]
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.card.values import EXACT_INTEGERS, LARGEST_INTEGER
from dither.tables.card.wording import clip, closest
from dither.tables.query.operations import OPERATIONS, operation
from dither.tables.query.tree import Call, Column, Expression, Literal, Shape, check_size, columns, walk

Row = Mapping[str, Any]


def check(shape: Shape, names: Sequence[str]) -> None:
    """Refuse a shape that cannot be applied to a noisy table with these columns.

    >>> check(Shape(columns={"x": Column("m")}), ["n"])
    Traceback (most recent call last):
    dither.InvalidArgument: shape: expected names of groups and aggregates, got 'm'. Fix: use one of n.
    """
    for item in (*shape.columns.values(), shape.having, *(key.value for key in shape.order)):
        if item is None:
            continue
        check_arity(item)
        for column in sorted(columns(item), key=str):
            if column.table is not None or column.name not in names:
                fix = closest(column.name, names)
                got = repr(clip(column.name))
                raise InvalidArgument("shape", "names of groups and aggregates", got, fix)
    if shape.limit is not None and shape.limit < 0:
        raise InvalidArgument("limit", "a whole number from 0 on", shape.limit, "pass limit=10")


def check_arity(expression: Expression) -> None:
    """Refuse an expression that is too large, or has operations that do not exist or lack arguments.

    >>> check_arity(Call("+", (Literal(1),)))
    Traceback (most recent call last):
    dither.InvalidArgument: +: expected 2 arguments, got 1. Fix: write for example x + n.
    """
    check_size(expression)
    for node in walk(expression):
        if isinstance(node, Call):
            operation(node.op).check_arity(node)


def apply(shape: Shape, names: Sequence[str], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of the answer: those kept, in order, with the columns shown (all of ``names`` where none are stated).

    >>> apply(Shape(limit=1), ["n"], [{"n": 3}, {"n": 4}])
    [{'n': 3}]
    """
    check(shape, names)
    kept = [row for row in rows if shape.having is None or evaluate(shape.having, row) is True]
    for key in reversed(shape.order):
        keyed = [(evaluate(key.value, row), row) for row in kept]
        known = [item for item in keyed if item[0] is not None]
        try:
            known.sort(key=operator.itemgetter(0), reverse=key.descending)
        except TypeError:
            raise _mixed("ORDER BY") from None
        kept = [row for _, row in known] + [row for value, row in keyed if value is None]
    shown = shape.columns or {name: Column(name) for name in names}
    return [{name: evaluate(value, row) for name, value in shown.items()} for row in kept[: shape.limit]]


def evaluate(expression: Expression, row: Row) -> Any:
    """The value of an expression on one row.

    >>> evaluate(Call("+", (Column("n"), Literal(1))), {"n": 2})
    3
    """
    if isinstance(expression, Literal):
        return representable(expression.value)
    if isinstance(expression, Column):
        return representable(row[expression.name])
    rule = OPERATIONS[expression.op]
    try:
        if not rule.strict:
            arguments = [functools.partial(evaluate, item, row) for item in expression.args]
            return representable(rule.evaluate(*arguments))
        values = [evaluate(item, row) for item in expression.args]
        return None if None in values else representable(rule.evaluate(*values))
    except TypeError:
        raise _mixed(expression.op) from None
    except OverflowError:
        return None


def folded(expression: Expression) -> Expression:
    """The expression with every part that has no column computed; a part that is NULL, which would have no type, and a
    whole number that a double may not hold stay as they are written.

    >>> folded(Call("<", (Column("n"), Call("+", (Literal(2), Literal(3))))))
    Call(op='<', args=(Column(name='n', table=None), Literal(value=5)))
    """
    if not isinstance(expression, Call):
        return expression
    result = Call(expression.op, tuple(map(folded, expression.args)))
    if not all(isinstance(item, Literal) for item in result.args):
        return result
    try:
        value = evaluate(result, {})
    except InvalidArgument:
        return result
    exact = value is not None and not (isinstance(value, (int, float)) and abs(value) > EXACT_INTEGERS)
    return Literal(value) if exact else result


def representable(value: Any) -> Any:
    """A value that can be recorded, shown and exported: a whole number beyond 64 bits is a float, and a number that
    is not finite is None. Every step of :func:`evaluate` ends here, so numbers do not grow with the expression.

    >>> representable(2**63 - 1), representable(2**63), representable(float("inf")), representable(10**400)
    (9223372036854775807, 9.223372036854776e+18, None, None)
    """
    if isinstance(value, int) and not -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER:
        try:
            return float(value)
        except OverflowError:
            return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _mixed(what: str) -> InvalidArgument:
    return InvalidArgument(what, "values of one kind", "values of different kinds", "use one kind in a column")
