"""Logic, with NULL as unknown: AND, OR, NOT, and IS NULL, which is never unknown."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument
from dither.tables.card.wording import clip
from dither.tables.query import nodes
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Operation,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    check_boolean,
    compile_condition,
    refuse_other_parts,
    refuse_sql,
)
from dither.tables.query.tree import Call, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp


def _compile_connective(call: Call, compiler: Compiler) -> TypedSql:
    conditions = (compile_condition(argument, compiler) for argument in call.args)
    return TypedSql(functools.reduce(functools.partial(nodes.binary, call.op), conditions), "boolean")


def _check_not(call: Call, args: list[TypedExpression]) -> Checked:
    """NOT IN of a list with NULL is false or NULL: no row would be kept."""
    inside = call.args[0]
    if isinstance(inside, Call) and inside.op == "in" and Literal(None) in inside.args[1:]:
        first, *values = [show(item) for item in inside.args if item != Literal(None)]
        fix = f"leave NULL out: {first} NOT IN ({', '.join(values)}) keeps no row with NULL either"
        raise InvalidArgument("NOT IN", "values", "NULL among them, so that it is never true", fix)
    return check_boolean(call, args)


def _compile_not(call: Call, compiler: Compiler) -> TypedSql:
    return TypedSql(nodes.not_(compile_condition(call.args[0], compiler)), "boolean")


def _and(*arguments: Callable[[], Any]) -> bool | None:
    values = [argument() for argument in arguments]
    return False if False in values else None if None in values else True


def _or(*arguments: Callable[[], Any]) -> bool | None:
    values = [argument() for argument in arguments]
    return True if True in values else None if None in values else False


def _check_is_null(_call: Call, args: list[TypedExpression]) -> Checked:
    return [args[0][0]], "boolean"


def _compile_is_null(call: Call, compiler: Compiler) -> TypedSql:
    return TypedSql(nodes.is_null(compiler.value(call.args[0]).node), "boolean")


def _read_is(node: exp.Expr, read: Read) -> Expression:
    """IS NULL, and IS TRUE and IS FALSE, which are never NULL."""
    refuse_other_parts(node, "this", "expression")
    right = node.args["expression"]
    if right.key == "null":
        return Call("is_null", (read(node.this),))
    if right.key == "boolean":
        return Call("not", (Call("is_distinct", (read(node.this), read(right))),))
    sign = "<>" if node.parent is not None and node.parent.key == "not" else "="
    fix = f"write {clip(node.this.sql('duckdb'))} {sign} {clip(right.sql('duckdb'))}"
    if right.name.casefold() in ("none", "nan", "missing"):
        fix = f"write {clip(node.this.sql('duckdb'))} IS {'NOT ' if sign == '<>' else ''}NULL"
    raise refuse_sql("IS NULL, IS TRUE or IS FALSE", "IS with something else", fix)


LOGIC = (
    Operation(
        "and", "whether all of them hold", 2, None, check_boolean, _compile_connective, _and, "b AND x > 0",
        strict=False, syntax=Syntax("And", ("this", "expression")),
    ),
    Operation(
        "or", "whether any of them holds", 2, None, check_boolean, _compile_connective, _or, "b OR x > 0",
        strict=False, syntax=Syntax("Or", ("this", "expression")),
    ),
    Operation(
        "not", "whether it does not hold", 1, 1, _check_not, _compile_not, operator.not_, "NOT b",
        syntax=Syntax("Not", ("this",)),
    ),
    Operation(
        "is_null", "true or false, never NULL; NaN is NULL", 1, 1, _check_is_null, _compile_is_null,
        lambda value: value() is None, "x IS NULL", strict=False,
        syntax=Syntax("Is", read=_read_is), examples=("s IS NOT NULL",),
    ),
)  # fmt: skip
"""The operations on conditions."""
