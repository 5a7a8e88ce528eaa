"""Logic, with NULL as unknown: AND, OR, NOT, and IS NULL, which is never unknown."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Operation,
    Syntax,
    TypedExpression,
    TypedSql,
    check_boolean,
    compile_condition,
    nodes,
    refuse_sql,
)
from dither.tables.query.tree import Call

if TYPE_CHECKING:
    from sqlglot import exp


def _compile_connective(call: Call, compiler: Compiler) -> TypedSql:
    conditions = (compile_condition(argument, compiler) for argument in call.args)
    return TypedSql(functools.reduce(functools.partial(nodes.binary, call.op), conditions), "boolean")


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


def _refuse_other_than_null(node: exp.Expr) -> None:
    right = node.args["expression"]
    if right.key != "null":
        raise refuse_sql("IS NULL or IS NOT NULL", f"IS {right.key.upper()}", "write x = TRUE, or x alone")


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
        "not", "whether it does not hold", 1, 1, check_boolean, _compile_not, operator.not_, "NOT b",
        syntax=Syntax("Not", ("this",)),
    ),
    Operation(
        "is_null", "true or false, never NULL; NaN is NULL", 1, 1, _check_is_null, _compile_is_null,
        lambda value: value() is None, "x IS NULL", strict=False,
        syntax=Syntax("Is", ("this",), ("expression",), _refuse_other_than_null),
    ),
)  # fmt: skip
"""The operations on conditions."""

__all__ = ["LOGIC"]
