"""Comparisons, logic, and values that depend on them: CASE, COALESCE, NULLIF, GREATEST and LEAST.

Text is compared byte by byte. NULL is unknown in logic. Where a branch is a number, all become doubles within their
bounds, so that the result has a range. GREATEST and LEAST leave NULLs out, as all engines do.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from functools import partial
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument
from dither.tables.card.model import Type
from dither.tables.card.values import clip, literal_type
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Function,
    Operation,
    Range,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    check_alike,
    check_boolean,
    checks,
    compile_alike,
    compile_condition,
    constant,
    nodes,
    refuse_other_parts,
    refuse_sql,
    require_alike,
    require_conditions,
    wrong_type,
)
from dither.tables.query.tree import Call, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp


def compare(relation: Callable[[Any, Any], Any], a: Any, b: Any) -> bool:
    """Return whether a relation, such as ``operator.lt``, holds between two values that are not NULL.

    A date is compared with a timestamp as the start of its day. Raise TypeError for a text beside another type.
    """
    dates = isinstance(a, date) and isinstance(b, date)
    if dates and isinstance(a, datetime) != isinstance(b, datetime):
        a, b = as_datetime(a), as_datetime(b)
    if isinstance(a, str) != isinstance(b, str):
        raise TypeError
    return bool(relation(a, b))


def as_datetime(value: Any) -> Any:
    """Return a date as the start of its day; other values unchanged."""
    dated = isinstance(value, date) and not isinstance(value, datetime)
    return datetime.combine(value, time()) if dated else value


def _check(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of a comparison converted to one type, and "boolean" as the type of its result."""
    return check_alike(call, args)[0], "boolean"


def _compared(write: Callable[..., exp.Expr]) -> Callable[[Call, Compiler], TypedSql]:
    """Return the function that compiles a comparison of values of one kind; ``write`` makes its SQL from theirs."""

    def compile(call: Call, compiler: Compiler) -> TypedSql:
        """Return a comparison as SQL."""
        return TypedSql(write(*(part.node for part in compile_alike(call, compiler))), "boolean")

    return compile


def _comparison(name: str, node: str, relation: Callable[[Any, Any], Any]) -> Operation:
    """Return the row of a comparison in the table of operations.

    ``name`` is its operator in SQL, ``node`` its class in sqlglot, and ``relation`` the function that compares in
    Python.
    """
    return Operation(
        name,
        "true or false; NULL if either is",
        2,
        2,
        _check,
        _compared(lambda a, b: nodes.binary(name, a, b)),
        lambda a, b: compare(relation, a, b),
        f"x {name} n",
        syntax=Syntax(node, ("this", "expression")),
    )


# -- IN ---------------------------------------------------------------------------------------------------------------


def _check_in(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of IN converted to one type, and "boolean"; refuse a list that has anything but constants,
    or only NULLs."""
    if not all(isinstance(item, Literal) for item, _ in args[1:]):
        raise InvalidArgument("IN", "a list of constants", "an expression", "write it as x = … OR x = …")
    if args[0][1] is None or all(kind is None for _, kind in args[1:]):
        command = "ask for x IS NULL or x IS NOT NULL"
        fix = f"{command}, in Python col('x').is_null()"
        raise InvalidArgument(show(call), "values", "NULL, which makes it NULL always", fix, command)
    return _check(call, args)


def _in(*arguments: Callable[[], Any]) -> bool | None:
    """Return whether the first value is among the others, by the three-valued logic of SQL: None if the value is NULL,
    or if it equals none of the others and one of them is NULL. Arguments are functions that return values."""
    value, *others = (argument() for argument in arguments)
    if value is None:
        return None
    matches = any(compare(operator.eq, value, item) for item in others if item is not None)
    return True if matches else None if None in others else False


# -- BETWEEN ----------------------------------------------------------------------------------------------------------


def _between(*arguments: Callable[[], Any]) -> bool | None:
    """Return whether a value lies between two others, inclusive; None where that depends on a NULL, as in SQL.
    Arguments are functions that return values."""
    x, low, high = (argument() for argument in arguments)
    above = None if x is None or low is None else compare(operator.ge, x, low)
    below = None if x is None or high is None else compare(operator.le, x, high)
    return False if False in (above, below) else None if None in (above, below) else True


# -- IS DISTINCT FROM -------------------------------------------------------------------------------------------------


def _distinct(*arguments: Callable[[], Any]) -> bool:
    """Return whether two values differ, where NULL equals only NULL. Arguments are functions that return values."""
    left, right = (argument() for argument in arguments)
    if left is None or right is None:
        return left is not right
    return not compare(operator.eq, left, right)


def _read_same(node: exp.Expr, read: Read) -> Expression:
    """Return the expression of ``a IS NOT DISTINCT FROM b``, which is NOT (a IS DISTINCT FROM b)."""
    refuse_other_parts(node, "this", "expression")
    return Call("not", (Call("is_distinct", (read(node.this), read(node.args["expression"]))),))


def _refuse_other_than_list(node: exp.Expr) -> None:
    """Refuse an IN whose right side is a subquery, a value without brackets, or missing."""
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
        2, None, _check_in, _compared(lambda x, *values: nodes.in_list(x, values)), _in, "s IN ('a', 'b')",
        strict=False, takes_null=True, examples=("n IN (1, NULL)", "s IN ('a', NULL, 'b')"),
        syntax=Syntax("In", ("this", "expressions"), refuse=_refuse_other_than_list),
    ),
    Operation(
        "between", "(x, low, high): whether x is within, both ends in",
        3, 3, _check, _compared(lambda x, low, high: nodes.between(x, low, high)), _between, "x BETWEEN 0 AND n",
        strict=False, syntax=Syntax("Between", ("this", "low", "high")),
    ),
    Operation(
        "is_distinct", "whether they differ, where NULL is a value like others: never NULL",
        2, 2, _check, _compared(lambda a, b: nodes.not_(nodes.is_same(a, b))), _distinct, "x IS DISTINCT FROM n",
        strict=False, takes_null=True,
        syntax=Syntax("NullSafeNEQ", ("this", "expression")), other_syntax=(Syntax("NullSafeEQ", read=_read_same),),
        examples=("s IS NOT DISTINCT FROM 'a'", "d IS DISTINCT FROM DATE '2024-02-29'", "b IS TRUE", "b IS NOT FALSE"),
    ),
)  # fmt: skip
"""The comparisons."""


def _compile_connective(call: Call, compiler: Compiler) -> TypedSql:
    """Return the conjunction (AND) or disjunction (OR) of several conditions as SQL."""
    conditions = (compile_condition(argument, compiler) for argument in call.args)
    return TypedSql(functools.reduce(functools.partial(nodes.binary, call.op), conditions), "boolean")


def _check_not(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the argument of NOT, a condition, and "boolean"; refuse NOT IN of a list with NULL, which is false or NULL
    for every value, so that it would keep no row."""
    inside = call.args[0]
    if isinstance(inside, Call) and inside.op == "in" and Literal(None) in inside.args[1:]:
        first, *values = [show(item) for item in inside.args if item != Literal(None)]
        fix = f"leave NULL out: {first} NOT IN ({', '.join(values)}) keeps no row with NULL either"
        raise InvalidArgument("NOT IN", "values", "NULL among them, so that it is never true", fix)
    return check_boolean(call, args)


def _compile_not(call: Call, compiler: Compiler) -> TypedSql:
    """Return the negation of a condition as SQL."""
    return TypedSql(nodes.not_(compile_condition(call.args[0], compiler)), "boolean")


def _and(*arguments: Callable[[], Any]) -> bool | None:
    """Return whether all conditions hold; None if none is false but one is NULL, as in SQL. Arguments are functions
    that return values."""
    values = [argument() for argument in arguments]
    return False if False in values else None if None in values else True


def _or(*arguments: Callable[[], Any]) -> bool | None:
    """Return whether any condition holds; None if none is true but one is NULL, as in SQL. Arguments are functions that
    return values."""
    values = [argument() for argument in arguments]
    return True if True in values else None if None in values else False


def _compile_is_null(call: Call, compiler: Compiler) -> TypedSql:
    """Return the condition ``x IS NULL`` as SQL."""
    return TypedSql(nodes.is_null(compiler.value(call.args[0]).node), "boolean")


def _read_is(node: exp.Expr, read: Read) -> Expression:
    """Return the expression of sqlglot's node for IS NULL, IS TRUE or IS FALSE; refuse IS with anything else."""
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
        "is_null", "true or false, never NULL; NaN is NULL", 1, 1, checks(result="boolean"), _compile_is_null,
        lambda value: value() is None, "x IS NULL", strict=False,
        syntax=Syntax("Is", read=_read_is), examples=("s IS NOT NULL",),
    ),
)  # fmt: skip
"""The operations on conditions."""


def compile_branches(expressions: list[Expression], compiler: Compiler, as_number: bool) -> list[TypedSql]:
    """Return the SQL of values of which the result is one, such as the branches of CASE.

    If one of them is a double, or for numbers if ``as_number`` is True, all are doubles clamped to their bounds, so
    that the result has a known range.
    """
    result = [compiler.value(expression) for expression in expressions]
    kinds = {part.type for part in result if not part.is_null}
    if "number" in kinds or (as_number and kinds == {"integer"}):
        return [part if part.is_null else compiler.number(item) for item, part in zip(expressions, result, strict=True)]
    return result


def union(parts: list[TypedSql]) -> tuple[Type, Range | None]:
    """Return the common type of several compiled values, and the smallest range that contains theirs; None in place of
    the range if one of them is unknown."""
    given = [part for part in require_alike(parts) if not part.is_null]
    if not given:
        return "text", None
    kind = given[0].type if len({part.type for part in given}) == 1 else "number"
    ranges = [part.range for part in given]
    known = [item for item in ranges if item is not None]
    return kind, functools.reduce(operator.or_, known) if len(known) == len(ranges) else None


# -- CASE -------------------------------------------------------------------------------------------------------------


def _check_case(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of CASE, alternately a condition and its value and at last the value of ELSE, with all
    values converted to one type, and that type."""
    conditions, branches = args[:-1:2], [*args[1::2], args[-1]]
    require_conditions("CASE WHEN", conditions, "a condition")
    values, kind = check_alike(call, branches)
    pairs = zip((item for item, _ in conditions), values, strict=False)
    return [*(item for pair in pairs for item in pair), values[-1]], kind


def _compile_case(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    """Return CASE as SQL; its range contains those of all branches.

    The arguments of ``call`` are alternately a condition and its value, and at last the value of ELSE. With
    ``as_number`` numbers are doubles clamped to their bounds, as arithmetic needs them.
    """
    *pairs, otherwise = call.args
    conditions = [compile_condition(argument, compiler) for argument in pairs[::2]]
    branches = compile_branches([*pairs[1::2], otherwise], compiler, as_number)
    kind, known = union(branches)
    arms = [(when, then.node) for when, then in zip(conditions, branches[:-1], strict=True)]
    return TypedSql(nodes.case(arms, branches[-1].node), kind, known)


def _case(*arguments: Callable[[], Any]) -> Any:
    """Return the value of the first branch whose condition is true, otherwise that of ELSE, the last argument.
    Arguments are functions that return values, so that other branches are not evaluated."""
    for when, then in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if when() is True:
            return then()
    return arguments[-1]()


def _read_case(node: exp.Expr, read: Read) -> Expression:
    """Return the expression of sqlglot's node for CASE; ``CASE x WHEN 1`` becomes the condition x = 1."""
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
    """Return COALESCE as SQL; its range contains those of all arguments. With ``as_number`` numbers are doubles clamped
    to their bounds."""
    parts = compile_branches(list(call.args), compiler, as_number)
    kind, known = union(parts)
    return TypedSql(nodes.coalesce(*(part.node for part in parts)), kind, known)


# -- NULLIF -----------------------------------------------------------------------------------------------------------


def _check_nullif(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of NULLIF(x, y) converted to one type, and the type of x, which the result has."""
    values, _ = check_alike(call, args)
    first, kind = values[0], args[0][1]
    kind = literal_type(first.value) if isinstance(first, Literal) else kind
    assert kind is not None  # a bare NULL was refused
    return values, kind


def _compile_nullif(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    """Return NULLIF(x, y) as SQL: CASE WHEN x = y THEN NULL ELSE x END, where the x of ELSE is clamped to its bounds if
    ``as_number`` is True.

    The function NULLIF is not used: DuckDB expands it to this CASE, and the plan of nested ones would take all memory.
    Written out, nested ones are refused by their length.
    """
    x, y = compile_alike(call, compiler)
    (value,) = compile_branches([call.args[0]], compiler, as_number)
    equal = nodes.binary("=", x.node, y.node)
    return TypedSql(nodes.case([(equal, nodes.literal(None))], value.node), value.type, value.range)


def _nullif(*arguments: Callable[[], Any]) -> Any:
    """Return the first of two values, or None where they are equal. Arguments are functions that return values."""
    value, other = (argument() for argument in arguments)
    known = value is not None and other is not None
    return None if known and compare(operator.eq, value, other) else value


def _read_if(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the expression of IF(condition, value, otherwise) as a CASE; ``otherwise`` is NULL if it is left out."""
    parts = [read(item) for item in args]
    return Call("case", (*parts, *([Literal(None)] if len(parts) == 2 else [])))


def _read_if_node(node: exp.Expr, read: Read) -> Expression:
    """Return the expression of sqlglot's node for IF as a CASE."""
    refuse_other_parts(node, "this", "true", "false")
    return _read_if([part for name in ("this", "true", "false") if (part := node.args.get(name)) is not None], read)


def _read_isnull(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the expression of ISNULL: x IS NULL for one argument, COALESCE(x, y) for two."""
    parts = tuple(map(read, args))
    return Call("is_null" if len(parts) == 1 else "coalesce", parts)


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
        1, None, check_alike, _compile_coalesce,
        lambda *arguments: next((value for argument in arguments if (value := argument()) is not None), None),
        "COALESCE(x, n)",
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
        special_functions=(
            Function("NULLIF", 2, "NULLIF(x, 0)", lambda args, read: Call("nullif", tuple(map(read, args)))),
        ),
    ),
)  # fmt: skip
"""The operations that choose among values."""


def _check_extreme(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of GREATEST or LEAST converted to one type, and that type; refuse conditions."""
    values, kind = check_alike(call, args)
    if kind == "boolean":
        fix = "combine conditions by AND and OR"
        raise InvalidArgument(call.op.upper(), "numbers, texts or dates", "conditions", fix)
    return values, kind


def _compile_extreme(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    """Return GREATEST or LEAST as SQL, which ignore NULLs. With ``as_number`` numbers are doubles clamped to their
    bounds."""
    parts = [part for part in compile_branches(list(call.args), compiler, as_number) if not part.is_null]
    kind, known = union(parts)
    if not parts or len({part.type for part in parts}) > 1 or kind == "boolean":
        raise wrong_type("numbers, texts, dates or timestamps", "booleans")
    if known is not None:
        known = _clamped(call, known)
    return TypedSql(nodes.call(call.op.upper(), *(part.node for part in parts)), kind, known)


def _clamped(call: Call, known: Range) -> Range:
    """Return the range of GREATEST or LEAST, narrowed by its constant arguments: since these are never NULL, GREATEST
    is at least the largest constant, and LEAST at most the smallest."""
    fixed = [value for item in call.args if isinstance(value := constant(item), (int, float))]
    low = max([known.low, *map(float, fixed)]) if call.op == "greatest" else known.low
    high = min([known.high, *map(float, fixed)]) if call.op == "least" else known.high
    return Range(low, high, known.least, known.quantum)


def _extreme(choose: Callable[..., Any], *arguments: Callable[[], Any]) -> Any:
    """Return the largest or smallest value other than NULL, as ``choose`` is max or min; None if all are NULL.
    Arguments are functions that return values."""
    values = [value for argument in arguments if (value := argument()) is not None]
    if len({isinstance(value, str) for value in values}) > 1:
        raise TypeError
    return choose(values, key=as_datetime) if values else None


EXTREMES = tuple(
    Operation(
        name, f"the {word} of them, NULLs left out", 2, None, _check_extreme, _compile_extreme,
        partial(_extreme, choose), example, strict=False, takes_null=True,
        compile_number=partial(_compile_extreme, as_number=True), functions=(name.upper(),), examples=examples,
        null_where="", range_rule="that of all together; constants limit it",
    )
    for name, word, choose, example, examples in (
        ("greatest", "largest", max, "GREATEST(x, n)", ("GREATEST(x, 0)", "GREATEST(s, 'b')", "GREATEST(n, -1, 1)")),
        ("least", "smallest", min, "LEAST(x, n)", ("LEAST(n, 2)", "LEAST(d, DATE '2024-03-01')", "LEAST(t, t)")),
    )
)  # fmt: skip
"""GREATEST and LEAST."""
