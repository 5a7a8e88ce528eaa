"""Values that depend on a condition: CASE, COALESCE and NULLIF.

Where one of their branches is a number, all become doubles within their bounds, so that the result has a range.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dither.tables.card.model import Type
from dither.tables.card.values import literal_type
from dither.tables.query import nodes
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Function,
    Operation,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    check_alike,
    compile_alike,
    compile_condition,
    refuse_other_parts,
    require_alike,
    require_conditions,
)
from dither.tables.query.operations.comparison import compare
from dither.tables.query.ranges import Range
from dither.tables.query.tree import Call, Expression, Literal

if TYPE_CHECKING:
    from sqlglot import exp


def compile_branches(expressions: list[Expression], compiler: Compiler, as_number: bool) -> list[TypedSql]:
    """Compiled alike: as safe doubles, within their bounds, if any is a number or all take part in arithmetic."""
    result = [compiler.value(expression) for expression in expressions]
    kinds = {part.type for part in result if not part.is_null}
    if "number" in kinds or (as_number and kinds == {"integer"}):
        return [part if part.is_null else compiler.number(item) for item, part in zip(expressions, result, strict=True)]
    return result


def union(parts: list[TypedSql]) -> tuple[Type, Range | None]:
    """The type and range of a value that is one of several."""
    given = [part for part in require_alike(parts) if not part.is_null]
    if not given:
        return "text", None
    kind = given[0].type if len({part.type for part in given}) == 1 else "number"
    ranges = [part.range for part in given]
    known = [item for item in ranges if item is not None]
    return kind, functools.reduce(operator.or_, known) if len(known) == len(ranges) else None


# -- CASE -------------------------------------------------------------------------------------------------------------


def _check_case(call: Call, args: list[TypedExpression]) -> Checked:
    conditions, branches = args[:-1:2], [*args[1::2], args[-1]]
    require_conditions("CASE WHEN", conditions, "a condition")
    values, kind = check_alike(call, branches)
    pairs = zip((item for item, _ in conditions), values, strict=False)
    return [*(item for pair in pairs for item in pair), values[-1]], kind


def _compile_case(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    *pairs, otherwise = call.args
    conditions = [compile_condition(argument, compiler) for argument in pairs[::2]]
    branches = compile_branches([*pairs[1::2], otherwise], compiler, as_number)
    kind, known = union(branches)
    arms = [(when, then.node) for when, then in zip(conditions, branches[:-1], strict=True)]
    return TypedSql(nodes.case(arms, branches[-1].node), kind, known)


def _case(*arguments: Callable[[], Any]) -> Any:
    for when, then in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if when() is True:
            return then()
    return arguments[-1]()


def _read_case(node: exp.Expr, read: Read) -> Expression:
    refuse_other_parts(node, "this", "ifs", "default")
    parts: list[Expression] = []
    for item in node.args["ifs"]:
        refuse_other_parts(item, "this", "true")
        when = read(item.this)
        parts += [Call("=", (read(node.this), when)) if node.this else when, read(item.args["true"])]
    default = node.args.get("default")
    return Call("case", (*parts, read(default) if default is not None else Literal(None)))


# -- COALESCE ---------------------------------------------------------------------------------------------------------


def _compile_coalesce(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    parts = compile_branches(list(call.args), compiler, as_number)
    kind, known = union(parts)
    return TypedSql(nodes.coalesce(*(part.node for part in parts)), kind, known)


def _coalesce(*arguments: Callable[[], Any]) -> Any:
    return next((value for argument in arguments if (value := argument()) is not None), None)


# -- NULLIF -----------------------------------------------------------------------------------------------------------


def _check_nullif(call: Call, args: list[TypedExpression]) -> Checked:
    values, _ = check_alike(call, args)
    first, kind = values[0], args[0][1]
    kind = literal_type(first.value) if isinstance(first, Literal) else kind
    assert kind is not None  # a bare NULL was refused
    return values, kind


def _compile_nullif(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    """The first argument is compared as it is, and then used within its bounds.

    It is written twice, so that nested ones are refused by their length: NULLIF would be short, but DuckDB makes the
    same CASE of it, and its plan would take all the memory.
    """
    x, y = compile_alike(call, compiler)
    (value,) = compile_branches([call.args[0]], compiler, as_number)
    equal = nodes.binary("=", x.node, y.node)
    return TypedSql(nodes.case([(equal, nodes.literal(None))], value.node), value.type, value.range)


def _nullif(*arguments: Callable[[], Any]) -> Any:
    value, other = (argument() for argument in arguments)
    known = value is not None and other is not None
    return None if known and compare(operator.eq, value, other) else value


def _read_if(args: Sequence[exp.Expr], read: Read) -> Expression:
    """IF(when, then, otherwise); without the last it is NULL."""
    parts = [read(item) for item in args]
    return Call("case", (*parts, *([Literal(None)] if len(parts) == 2 else [])))


def _read_if_node(node: exp.Expr, read: Read) -> Expression:
    refuse_other_parts(node, "this", "true", "false")
    return _read_if([part for name in ("this", "true", "false") if (part := node.args.get(name)) is not None], read)


def _read_isnull(args: Sequence[exp.Expr], read: Read) -> Expression:
    """ISNULL(x) asks whether x is NULL, ISNULL(x, y) is COALESCE."""
    parts = tuple(map(read, args))
    return Call("is_null" if len(parts) == 1 else "coalesce", parts)


def _read_nullif(args: Sequence[exp.Expr], read: Read) -> Expression:
    return Call("nullif", tuple(map(read, args)))


CONDITIONAL = (
    Operation(
        "case", "(when, then, when, then, …, otherwise): the value beside the first condition that holds",
        3, None, _check_case, _compile_case, _case, "CASE WHEN b THEN x ELSE n END",
        strict=False, takes_null=True, compile_number=functools.partial(_compile_case, as_number=True),
        syntax=Syntax("Case", read=_read_case), other_syntax=(Syntax("If", read=_read_if_node),),
        special_functions=tuple(Function(name, (2, 3), "IF(x > 0, 1, 0)", _read_if) for name in ("IF", "IIF")),
        examples=("IF(b, x, n)", "IIF(b, s, 'none')", "CASE n WHEN 1 THEN 'one' WHEN 2 THEN 'two' END"),
        range_rule="that of all branches together",
    ),
    Operation(
        "coalesce", "the first that is not NULL",
        1, None, check_alike, _compile_coalesce, _coalesce, "COALESCE(x, n)",
        strict=False, takes_null=True, compile_number=functools.partial(_compile_coalesce, as_number=True),
        functions=("COALESCE", "IFNULL", "NVL"), range_rule="that of all together",
        special_functions=(Function("ISNULL", (1, 2), "ISNULL(x, 0)", _read_isnull),),
        examples=("IFNULL(s, 'none')", "COALESCE(d, DATE '2024-01-01')", "ISNULL(x, 0)"),
    ),
    Operation(
        "nullif", "(x, y): x, unless they are equal",
        2, 2, _check_nullif, _compile_nullif, _nullif, "NULLIF(n, 0)",
        strict=False, compile_number=functools.partial(_compile_nullif, as_number=True),
        range_rule="that of x", null_where="they are equal",
        special_functions=(Function("NULLIF", 2, "NULLIF(x, 0)", _read_nullif),),
    ),
)  # fmt: skip
"""The operations that choose among values."""
