"""Comparisons of values of one kind: ``= <> < <= > >=``, IN and BETWEEN. Text is compared byte by byte."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument
from dither.tables.card.wording import clip
from dither.tables.query import engine_nodes, nodes
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Operation,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    check_alike,
    compile_alike,
    refuse_other_parts,
    refuse_sql,
)
from dither.tables.query.tree import Call, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp


def compare(relation: Callable[[Any, Any], Any], a: Any, b: Any) -> bool:
    """Whether two values, neither of them NULL, are so related; a date is the start of its day.

    >>> compare(operator.lt, date(2024, 1, 1), datetime(2024, 1, 1, 12))
    True
    """
    dates = isinstance(a, date) and isinstance(b, date)
    if dates and isinstance(a, datetime) != isinstance(b, datetime):
        a, b = as_datetime(a), as_datetime(b)
    if isinstance(a, str) != isinstance(b, str):
        raise TypeError
    return bool(relation(a, b))


def as_datetime(value: Any) -> Any:
    """A date as the start of its day, and any other value as it is.

    >>> as_datetime(date(2024, 2, 29)), as_datetime(5)
    (datetime.datetime(2024, 2, 29, 0, 0), 5)
    """
    dated = isinstance(value, date) and not isinstance(value, datetime)
    return datetime.combine(value, time()) if dated else value


def _check(call: Call, args: list[TypedExpression]) -> Checked:
    return check_alike(call, args)[0], "boolean"


def _compile(call: Call, compiler: Compiler) -> TypedSql:
    left, right = compile_alike(call, compiler)
    return TypedSql(nodes.binary(call.op, left.node, right.node), "boolean")


def _comparison(name: str, node: str, relation: Callable[[Any, Any], Any]) -> Operation:
    return Operation(
        name,
        "true or false; NULL if either is",
        2,
        2,
        _check,
        _compile,
        lambda a, b: compare(relation, a, b),
        f"x {name} n",
        syntax=Syntax(node, ("this", "expression")),
    )


# -- IN ---------------------------------------------------------------------------------------------------------------


def _check_in(call: Call, args: list[TypedExpression]) -> Checked:
    if not all(isinstance(item, Literal) for item, _ in args[1:]):
        raise InvalidArgument("IN", "a list of constants", "an expression", "write it as x = … OR x = …")
    if args[0][1] is None or all(kind is None for _, kind in args[1:]):
        fix = "ask for x IS NULL or x IS NOT NULL, in Python col('x').is_null()"
        raise InvalidArgument(show(call), "values", "NULL, which makes it NULL always", fix)
    return _check(call, args)


def _compile_in(call: Call, compiler: Compiler) -> TypedSql:
    first, *others = compile_alike(call, compiler)
    return TypedSql(nodes.in_list(first.node, [other.node for other in others]), "boolean")


def _in(*arguments: Callable[[], Any]) -> bool | None:
    """A NULL among the others leaves it open, unless one of them is the value."""
    value, *others = (argument() for argument in arguments)
    if value is None:
        return None
    matches = any(compare(operator.eq, value, item) for item in others if item is not None)
    return True if matches else None if None in others else False


# -- BETWEEN ----------------------------------------------------------------------------------------------------------


def _compile_between(call: Call, compiler: Compiler) -> TypedSql:
    x, low, high = compile_alike(call, compiler)
    return TypedSql(nodes.between(x.node, low.node, high.node), "boolean")


def _between(*arguments: Callable[[], Any]) -> bool | None:
    """A NULL leaves it open, unless the other end says no."""
    x, low, high = (argument() for argument in arguments)
    above = None if x is None or low is None else compare(operator.ge, x, low)
    below = None if x is None or high is None else compare(operator.le, x, high)
    return False if False in (above, below) else None if None in (above, below) else True


# -- IS DISTINCT FROM -------------------------------------------------------------------------------------------------


def _compile_distinct(call: Call, compiler: Compiler) -> TypedSql:
    left, right = compile_alike(call, compiler)
    return TypedSql(nodes.not_(engine_nodes.is_same(left.node, right.node)), "boolean")


def _distinct(*arguments: Callable[[], Any]) -> bool:
    left, right = (argument() for argument in arguments)
    if left is None or right is None:
        return left is not right
    return not compare(operator.eq, left, right)


def _read_same(node: exp.Expr, read: Read) -> Expression:
    refuse_other_parts(node, "this", "expression")
    return Call("not", (Call("is_distinct", (read(node.this), read(node.args["expression"]))),))


def _refuse_other_than_list(node: exp.Expr) -> None:
    """Refuse an IN that has a subquery or no list."""
    if node.args.get("query") is not None:
        raise refuse_sql("IN with a list of constants", "a subquery", "write the values out: x IN ('a', 'b')")
    if node.args.get("field") is not None:
        fix = f"put the values into brackets: IN ({clip(node.args['field'].sql('duckdb'))})"
        raise refuse_sql("IN with a list of constants", "a value without brackets", fix)
    if not any(value for name, value in node.args.items() if name not in ("this", "negate")):
        raise refuse_sql("IN with a list of constants", "no list", "write the values out: x IN ('a', 'b')")


COMPARISON = (
    _comparison("=", "EQ", operator.eq),
    _comparison("<>", "NEQ", operator.ne),
    _comparison("<", "LT", operator.lt),
    _comparison("<=", "LTE", operator.le),
    _comparison(">", "GT", operator.gt),
    _comparison(">=", "GTE", operator.ge),
    Operation(
        "in", "whether the first argument is one of the others, which are literals",
        2, None, _check_in, _compile_in, _in, "s IN ('a', 'b')", strict=False, takes_null=True,
        examples=("n IN (1, NULL)", "s IN ('a', NULL, 'b')"),
        syntax=Syntax("In", ("this", "expressions"), refuse=_refuse_other_than_list),
    ),
    Operation(
        "between", "(x, low, high): whether x is within, both ends in",
        3, 3, _check, _compile_between, _between, "x BETWEEN 0 AND n", strict=False,
        syntax=Syntax("Between", ("this", "low", "high")),
    ),
    Operation(
        "is_distinct", "whether they differ, where NULL is a value like others: never NULL",
        2, 2, _check, _compile_distinct, _distinct, "x IS DISTINCT FROM n", strict=False, takes_null=True,
        syntax=Syntax("NullSafeNEQ", ("this", "expression")), other_syntax=(Syntax("NullSafeEQ", read=_read_same),),
        examples=("s IS NOT DISTINCT FROM 'a'", "d IS DISTINCT FROM DATE '2024-02-29'", "b IS TRUE", "b IS NOT FALSE"),
    ),
)  # fmt: skip
"""The comparisons."""
