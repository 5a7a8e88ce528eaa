"""Arithmetic: ``+ - * /``, the sign, the absolute value, rounding down and up, and bins.

In SQL, arithmetic is of doubles: a number column is NULL where it is NaN, and is held within its public bounds first.
So the range of every result is known before any row is read, and what could overflow or vanish is refused.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument
from dither.tables.card.values import EXACT_INTEGERS, literal_type
from dither.tables.query import nodes
from dither.tables.query.operations.base import (
    NUMBERS,
    Checked,
    Compiler,
    Function,
    Operation,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    check_alike,
    constant,
    describe,
    refuse_other_parts,
    refuse_sql,
    require_numbers,
    require_range,
    wrong_type,
)
from dither.tables.query.operations.date_arithmetic import compile_days, difference, read_interval
from dither.tables.query.ranges import Range
from dither.tables.query.tree import Call, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp

MAX_BINS = 10_000


def _check(call: Call, args: list[TypedExpression]) -> Checked:
    require_numbers(call, args)
    whole = call.op in ("floor", "ceil") or (call.op != "/" and all(kind == "integer" for _, kind in args))
    return [item for item, _ in args], "integer" if whole else "number"


def _of_numbers(compute: Callable[..., Any]) -> Callable[..., Any]:
    """On numbers only: Python would repeat a text, join lists and subtract dates."""

    def evaluate(*values: Any) -> Any:
        if not all(isinstance(value, (int, float)) for value in values):
            raise TypeError
        return compute(*values)

    return evaluate


def arithmetic(
    name: str,
    meaning: str,
    *,
    arguments: int,
    bounds: Callable[..., Range],
    evaluate: Callable[..., Any],
    write: Callable[..., exp.Expr],
    example: str,
    functions: tuple[str, ...] = (),
    syntax: Syntax | None = None,
    null_where: str = "",
    range_rule: str = "that of the results of its ends",
) -> Operation:
    """An operation on numbers: ``bounds`` is the range of its result by those of its arguments, and ``write`` its SQL
    by theirs, which are doubles.
    """

    def compile_number(call: Call, compiler: Compiler) -> TypedSql:
        parts = [compiler.number(argument) for argument in call.args]
        known = bounds(*map(require_range, parts)).checked()
        node = write(*(part.node for part in parts))
        if name in ("floor", "ceil"):
            return TypedSql(nodes.cast(node, "integer"), "integer", known)
        return TypedSql(node, "number", known)

    def compile(call: Call, compiler: Compiler) -> TypedSql:
        """Of whole numbers a whole number, which can be grouped by, where doubles hold it exactly."""
        result = compile_number(call, compiler)
        known = require_range(result)
        whole = known.quantum >= 1 and known.size <= EXACT_INTEGERS
        if name == "/" or not whole or any(compiler.value(item).type != "integer" for item in call.args):
            return result
        return result if result.type == "integer" else TypedSql(nodes.cast(result.node, "integer"), "integer", known)

    return Operation(
        name, meaning, arguments, arguments, _check, compile, _of_numbers(evaluate), example,
        compile_number=compile_number, functions=functions, syntax=syntax, null_where=null_where,
        range_rule=range_rule,
    )  # fmt: skip


def _rounded(known: Range, round: Callable[[float], int]) -> Range:
    if known.size > EXACT_INTEGERS:
        raise InvalidArgument(
            "FLOOR and CEIL", "values within 2^53 in size", "larger ones, by their bounds", "leave it out"
        )
    return Range.whole(round(known.low), round(known.high))


def _quotient(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    zero = nodes.binary("=", right, nodes.integer(0))
    return nodes.case([(zero, nodes.literal(None))], nodes.divide(left, right))


# -- dates ----------------------------------------------------------------------------------------------------------


def _read_sum(node: exp.Expr, read: Read) -> Expression:
    """A sum or difference of numbers, of a date and an interval, or of dates."""
    refuse_other_parts(node, "this", "expression")
    left, right = node.this, node.args["expression"]
    plus = node.key == "add"
    if right.key == "interval":
        return read_interval(right, read(left), read, 1 if plus else -1)
    if left.key == "interval" and plus:
        return read_interval(left, read(right), read, 1)
    return Call("+" if plus else "-", (read(left), read(right)))


def _check_difference(call: Call, args: list[TypedExpression]) -> Checked:
    if "date" not in {kind for _, kind in args}:
        return _check(call, args)
    days = [constant(item) for item, kind in args if kind == "integer"]
    if days:
        raise InvalidArgument(show(call), "two dates", "a date and a number", "write x - INTERVAL 5 DAY")
    values, kind = check_alike(call, args)
    if kind != "date":
        raise InvalidArgument(show(call), "two dates", f"a {kind}", "write DATE_DIFF('day', start, end)")
    return values, "integer"


def _compile_difference(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    """Of dates, as how many days one is after the other."""
    end, start = (compiler.value(item) for item in call.args)
    if end.type == start.type == "date":
        return compile_days(start, end, call.args[::-1])
    compile = _DIFFERENCE.compile_number if as_number and _DIFFERENCE.compile_number else _DIFFERENCE.compile
    return compile(call, compiler)


def _difference(left: Any, right: Any) -> Any:
    plain = [isinstance(item, date) and not isinstance(item, datetime) for item in (left, right)]
    return difference("day", right, left) if all(plain) else _DIFFERENCE.evaluate(left, right)


def _read_negative(node: exp.Expr, read: Read) -> Expression:
    inside = read(node.this)
    if isinstance(inside, Literal) and isinstance(inside.value, (int, float)) and not isinstance(inside.value, bool):
        return Literal(-inside.value)
    return Call("neg", (inside,))


# -- bins -----------------------------------------------------------------------------------------------------------


def _check_bin(_call: Call, args: list[TypedExpression]) -> Checked:
    if args[0][1] not in NUMBERS:
        raise InvalidArgument("bin", "a number", describe(args[0][1]), "use a column of numbers")
    edges = [
        item.value for item, _ in args[1:] if isinstance(item, Literal) and isinstance(item.value, (int, float))
        and not isinstance(item.value, bool)
    ]  # fmt: skip
    rising = all(a < b for a, b in itertools.pairwise(edges))
    if len(edges) < len(args) - 1 or not rising:
        raise InvalidArgument(
            "bin", "constant edges that rise", "edges in another order", "write them in order, each once"
        )
    return [item for item, _ in args], "integer"


def _compile_bin(call: Call, compiler: Compiler) -> TypedSql:
    value, *cuts = call.args
    edges = [float(cut.value) for cut in cuts if isinstance(cut, Literal) and isinstance(cut.value, (int, float))]
    if len(edges) != len(cuts) or len(edges) < 2 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise InvalidArgument("bin", "rising numbers as edges", "edges that are no constants", "pass edges 0, 10, 20")
    result = compiler.value(value)
    if result.type not in NUMBERS:
        raise wrong_type("a number", result.type)
    x, null = result.node, nodes.literal(None)
    below, above = (nodes.binary(sign, x, nodes.double(end)) for sign, end in (("<", edges[0]), (">", edges[-1])))
    arms = [(nodes.binary("or", below, above), null)]
    arms += [(nodes.binary("<", x, nodes.double(edge)), nodes.integer(i)) for i, edge in enumerate(edges[1:-1])]
    arms.append((nodes.is_null(x), null))
    return TypedSql(nodes.case(arms, nodes.integer(len(edges) - 2)), "integer", Range.whole(0, len(edges) - 2))


def _bin(value: float, *edges: float) -> int | None:
    if not edges[0] <= value <= edges[-1]:
        return None
    return min(bisect_right(edges, value), len(edges) - 1) - 1


def _read_width_bucket(args: Sequence[exp.Expr], read: Read) -> Expression:
    """1 + bin: buckets count from 1. Outside of the limits it is NULL, and the upper limit is in the last bucket."""
    limits = [read(item) if item.key in ("literal", "neg", "paren") else None for item in args[1:]]
    constants = [item.value for item in limits if isinstance(item, Literal) and type(item.value) in (int, float)]
    if len(constants) < 3:
        raise refuse_sql("a number for WIDTH_BUCKET", "a column or an expression", "write it as a constant")
    low, high, count = constants
    assert isinstance(low, (int, float))
    assert isinstance(high, (int, float))
    if not isinstance(count, int) or not 1 <= count <= MAX_BINS or not low < high:
        fix = "write WIDTH_BUCKET(x, 0, 100, 10)"
        raise refuse_sql(f"WIDTH_BUCKET(x, low, high, n) with low < high, 1 to {MAX_BINS} buckets", "other limits", fix)
    step = (Fraction(high) - Fraction(low)) / count
    exact = [Fraction(low) + step * item for item in range(count + 1)]
    edges = [Literal(int(item) if item.denominator == 1 else float(item)) for item in exact]
    for item in edges:
        literal_type(item.value)
    return Call("+", (Call("bin", (read(args[0]), *edges)), Literal(1)))


_DIFFERENCE = arithmetic(
    "-", "the difference; of dates, in days", arguments=2, bounds=operator.sub, evaluate=operator.sub,
    write=lambda a, b: nodes.binary("-", a, b), example="x - n", syntax=Syntax("Sub", read=_read_sum),
)  # fmt: skip

ARITHMETIC = (
    arithmetic(
        "+", "the sum", arguments=2, bounds=operator.add, evaluate=operator.add,
        write=lambda a, b: nodes.binary("+", a, b), example="x + n", syntax=Syntax("Add", read=_read_sum),
    ),
    replace(
        _DIFFERENCE, check=_check_difference, compile=_compile_difference, evaluate=_difference,
        compile_number=functools.partial(_compile_difference, as_number=True),
        examples=("d - DATE '2024-03-01'", "d - d"),
    ),
    arithmetic(
        "*", "the product", arguments=2, bounds=operator.mul, evaluate=operator.mul,
        write=lambda a, b: nodes.binary("*", a, b), example="x * n", syntax=Syntax("Mul", ("this", "expression")),
    ),
    arithmetic(
        "/", "the quotient, never cut off", arguments=2, null_where="the divisor is 0", bounds=operator.truediv,
        evaluate=lambda a, b: None if b == 0 else a / b, write=_quotient, example="x / n",
        syntax=Syntax("Div", ("this", "expression"), ("typed", "safe")),
    ),
    arithmetic(
        "neg", "the number with the other sign", arguments=1, bounds=operator.neg, evaluate=operator.neg,
        write=lambda a: nodes.negate(a), example="-x", syntax=Syntax("Neg", read=_read_negative),
    ),
    arithmetic(
        "abs", "the absolute value", arguments=1, bounds=abs, evaluate=abs,
        write=lambda a: nodes.call("ABS", a), example="ABS(x)", functions=("ABS",),
    ),
    arithmetic(
        "floor", "the largest whole number that is not greater", arguments=1,
        bounds=lambda known: _rounded(known, math.floor), evaluate=math.floor,
        write=lambda a: nodes.call("FLOOR", a), example="FLOOR(x / 2)", functions=("FLOOR",),
    ),
    arithmetic(
        "ceil", "the smallest whole number that is not less", arguments=1,
        bounds=lambda known: _rounded(known, math.ceil), evaluate=math.ceil,
        write=lambda a: nodes.call("CEIL", a), example="CEIL(x / 2)", functions=("CEIL", "CEILING"),
    ),
    Operation(
        "bin",
        "(x, edge, edge, …), edges rising literals: the index of the bin from 0 (edge[i] <= x < edge[i + 1], the last "
        "one closed); WIDTH_BUCKET counts from 1",
        3, None, _check_bin, _compile_bin, _bin, "WIDTH_BUCKET(x, -2, 2, 4)",
        null_where="x is outside of the edges", range_rule="the number of the bins",
        special_functions=(Function("WIDTH_BUCKET", 4, "WIDTH_BUCKET(x, 0, 100, 10)", _read_width_bucket),),
    ),
)  # fmt: skip
"""The operations on numbers."""
