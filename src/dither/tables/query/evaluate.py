"""Types of expressions, and their values on the noisy table in plain Python: columns, HAVING, ORDER BY, LIMIT.

In Python NULL is None, and spreads as in SQL: a comparison with it is unknown, a condition that is unknown keeps no
row. Division by zero, and any number that is not finite, is None. NULLs sort last, rising or falling; rows that are
equal keep their order.

>>> from dither.tables.query.tree import Call, Column
>>> rows = [{"region": "a", "n": 5, "total": 10}, {"region": "b", "n": 0, "total": 3}]
>>> shape = Shape({"region": Column("region"), "mean": Call("/", (Column("total"), Column("n")))})
>>> apply(shape, ["region", "n", "total"], rows)
[{'region': 'a', 'mean': 2.0}, {'region': 'b', 'mean': None}]

An expression that passes :func:`typed` means one thing in every engine: no operation sees a kind of value it does not
know, NULL is written only where it has a type (a branch of CASE, an argument of COALESCE), and texts that are compared
with dates have become dates.

>>> question = Call(">=", (Column("day"), Literal("2024-01-01")))
>>> typed(question, {Column("day"): "date"}.__getitem__)[0].args[1]
Literal(value=datetime.date(2024, 1, 1))
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.card.model import Type
from dither.tables.card.values import EXACT_INTEGERS, LARGEST_INTEGER, clip, closest, literal_type
from dither.tables.query.operations import OPERATIONS, operation
from dither.tables.query.operations.base import NUMBER_IN_CARD, NUMBERS, TypedExpression, describe
from dither.tables.query.operations.text import MAX_MADE_BYTES
from dither.tables.query.tree import Call, Column, Expression, Literal, Shape, check_size, columns, show, walk

Types = Callable[[Column], Type]
"""The type of a column."""


def typed(expression: Expression, types: Types) -> TypedExpression:
    """Return an expression with its type, after texts that are compared with dates became dates; refuse one that has
    no single meaning on all engines."""
    check_size(expression)
    return _typed(expression, types)


def require_number(expression: Expression, types: Types, what: str) -> Expression:
    """Return an expression as a number, for the function or clause ``what``: TRUE is 1 and FALSE 0; refuse other
    types."""
    checked, kind = typed(expression, types)
    if kind == "boolean":
        return Call("cast", (Literal("integer"), checked))
    if kind not in NUMBERS:
        fix = (
            f"count instead, COUNT({show(expression)}); {NUMBER_IN_CARD.format(show(expression))}"
            if kind == "text"
            else f"count instead, COUNT({show(expression)}), or write {what}(YEAR({show(expression)}))"
            if kind in ("date", "timestamp")
            else "count instead, or pass a column of numbers"
        )
        raise InvalidArgument(what, "a number", f"{show(expression)}, which is {describe(kind)}", fix)
    return checked


def require_boolean(expression: Expression, types: Types, what: str) -> Expression:
    """Return an expression that is a condition, for the clause ``what``; refuse other types."""
    checked, kind = typed(expression, types)
    if kind != "boolean":
        got = f"{show(expression)}, which is {describe(kind)}"
        raise InvalidArgument(what, "a condition", got, "compare it with something: x > 0, x = 'a'")
    return checked


def _typed(expression: Expression, types: Types) -> TypedExpression:
    """Return an expression and its type, from the types of its arguments upwards."""
    if isinstance(expression, Column):
        return expression, types(expression)
    if isinstance(expression, Literal):
        value = expression.value
        if isinstance(value, str) and len(value.encode(errors="replace")) > MAX_MADE_BYTES:
            expected = f"a text of at most {MAX_MADE_BYTES:,} bytes"
            raise InvalidArgument("constant", expected, "a longer one", "compare with LEFT(s, 100) = '…'")
        return expression, literal_type(value)
    row = operation(expression.op)
    row.check_arity(expression)
    args = [_typed(item, types) for item in expression.args]
    if not row.takes_null and any(kind is None for _, kind in args):
        command = "ask for x IS NULL or x IS NOT NULL"
        fix = f"{command}, in Python col('x').is_null()"
        raise InvalidArgument(show(expression), "values", "NULL, which makes it NULL always", fix, command)
    checked, kind = row.check(expression, args)
    return Call(expression.op, tuple(checked)), kind


Row = Mapping[str, Any]


def check_shape(shape: Shape, names: Sequence[str]) -> None:
    """Refuse a shape that names columns which the noisy table does not have, or whose LIMIT is negative."""
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
    """Refuse an expression that is too large, or whose operations are unknown or have too few or too many arguments."""
    check_size(expression)
    for node in walk(expression):
        if isinstance(node, Call):
            operation(node.op).check_arity(node)


def apply(shape: Shape, names: Sequence[str], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows of the answer: HAVING keeps rows, ORDER BY sorts them with NULLs last, LIMIT cuts them, and
    the columns are computed (all of ``names`` where the shape states none)."""
    check_shape(shape, names)
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
    """Return the value of an expression on one row of the noisy answer; None is NULL."""
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
    """Return an expression with its constant parts computed. A part stays as written where it is NULL, which would
    have no type, or a number so large that a double may not hold it exactly."""
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
    """Return a value that can be recorded, shown and exported: an integer beyond 64 bits becomes a float, and a
    number that is not finite None. Every step of :func:`evaluate` ends here, so numbers do not grow with the
    expression."""
    if isinstance(value, int) and not -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER:
        try:
            return float(value)
        except OverflowError:
            return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _mixed(what: str) -> InvalidArgument:
    """Return the error for an operation on values of different types."""
    return InvalidArgument(what, "values of one kind", "values of different kinds", "use one kind in a column")
