"""Types of expressions, and the two things that depend on them: what is refused, and which texts are dates.

An expression that passes :func:`typed` means one thing in every engine: no operation sees a kind of value it does not
know, NULL is written only where it has a type (a branch of CASE, an argument of COALESCE), and texts that are compared
with dates have become dates.

>>> from dither.tables.query.tree import Call, Column, Literal
>>> question = Call(">=", (Column("day"), Literal("2024-01-01")))
>>> typed(question, {Column("day"): "date"}.__getitem__)[0].args[1]
Literal(value=datetime.date(2024, 1, 1))
"""

from __future__ import annotations

from collections.abc import Callable

from dither.errors import InvalidArgument
from dither.tables.card.model import Type
from dither.tables.card.values import literal_type
from dither.tables.query.operations import operation
from dither.tables.query.operations.base import NUMBER_IN_CARD, NUMBERS, TypedExpression, describe
from dither.tables.query.operations.text import MAX_MADE_BYTES
from dither.tables.query.tree import Call, Column, Expression, Literal, check_size, show

Types = Callable[[Column], Type]
"""The type of a column."""


def typed(expression: Expression, types: Types) -> TypedExpression:
    """The expression with its dates as dates, and its type; refused if it makes no sense.

    >>> typed(Call("+", (Column("a"), Literal(1))), {Column("a"): "integer"}.__getitem__)[1]
    'integer'
    """
    check_size(expression)
    return _typed(expression, types)


def require_number(expression: Expression, types: Types, what: str) -> Expression:
    """The expression as a number, which ``what`` needs: true is 1 and false 0, and what is neither is refused.

    >>> require_number(Column("a"), {Column("a"): "number"}.__getitem__, "SUM")
    Column(name='a', table=None)
    >>> require_number(Column("a"), {Column("a"): "boolean"}.__getitem__, "AVG").op
    'cast'
    """
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
    """The expression, which is refused unless it is true or false.

    >>> require_boolean(Column("a"), {Column("a"): "boolean"}.__getitem__, "WHERE")
    Column(name='a', table=None)
    """
    checked, kind = typed(expression, types)
    if kind != "boolean":
        got = f"{show(expression)}, which is {describe(kind)}"
        raise InvalidArgument(what, "a condition", got, "compare it with something: x > 0, x = 'a'")
    return checked


def _typed(expression: Expression, types: Types) -> TypedExpression:
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
        fix = "ask for x IS NULL or x IS NOT NULL, in Python col('x').is_null()"
        raise InvalidArgument(show(expression), "values", "NULL, which makes it NULL always", fix)
    checked, kind = row.check(expression, args)
    return Call(expression.op, tuple(checked)), kind
