"""Whole numbers and signs of numbers: ROUND, TRUNC, FLOOR, CEIL, SIGN and the remainder.

All of them are computed by sums, products, quotients and FLOOR of doubles, which IEEE 754 defines to the last bit, so
engines agree. ROUND of an engine is not used: PostgreSQL rounds halves to even, Spark rounds in decimals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dither.errors import InvalidArgument
from dither.tables.card.values import EXACT_INTEGERS
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
    constant,
    describe,
    require_numbers,
    require_range,
    whole_number,
    wrong_type,
)
from dither.tables.query.ranges import Range
from dither.tables.query.tree import Call, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp

MOST_DIGITS = 15


# -- ROUND and TRUNC ------------------------------------------------------------------------------------------------


def _digits(call: Call) -> int:
    digits = constant(call.args[1])
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > MOST_DIGITS:
        expected = f"a constant number of digits from -{MOST_DIGITS} to {MOST_DIGITS}"
        raise InvalidArgument(call.op.upper(), expected, show(call.args[1]), "write ROUND(x, 2)")
    return digits


def _check_round(call: Call, args: list[TypedExpression]) -> Checked:
    require_numbers(call, args)
    return [item for item, _ in args], "integer" if _digits(call) <= 0 or args[0][1] == "integer" else "number"


def _compile_round(call: Call, compiler: Compiler) -> TypedSql:
    digits = _digits(call)
    value = compiler.number(call.args[0])
    known = require_range(value)
    if digits > 0 and known.quantum >= 1:
        return value
    scale = nodes.double(10.0 ** abs(digits))
    factor = Range.constant(10 ** abs(digits))
    scaled_range = (known * factor if digits > 0 else known / factor).checked()
    scaled = nodes.binary("*", value.node, scale) if digits > 0 else nodes.divide(value.node, scale)
    half = nodes.double(0.5 if call.op == "round" else 0.0)
    down, up = nodes.binary("+", scaled, half), nodes.binary("-", scaled, half)
    whole = nodes.call("FLOOR", down)
    if scaled_range.low < 0:
        positive = nodes.binary(">=", value.node, nodes.double(0.0))
        whole = nodes.case([(positive, whole)], nodes.call("CEIL", up))
    if scaled_range.size >= EXACT_INTEGERS and digits > 0:
        # such doubles are whole already, and FLOOR on Spark is a BIGINT, which does not hold them
        is_whole = nodes.binary(">=", nodes.call("ABS", scaled), nodes.double(EXACT_INTEGERS))
        whole = nodes.case([(is_whole, scaled)], nodes.cast(whole, "number"))
    rule = round_half_away if call.op == "round" else truncate
    low, high = rule(known.low, digits), rule(known.high, digits)
    if digits > 0:
        return TypedSql(nodes.divide(whole, scale), "number", Range.between(low, high, 1 / 10.0**digits))
    if max(abs(low), abs(high)) > EXACT_INTEGERS:
        fix = "leave it out"
        raise InvalidArgument(call.op.upper(), "values within 2^53 in size", "larger, by their bounds", fix)
    result = nodes.binary("*", whole, scale) if digits else whole
    return TypedSql(nodes.cast(result, "integer"), "integer", Range.whole(low, high))


def round_half_away(value: float, digits: int = 0) -> float:
    """A number to so many digits after the point, halves away from 0, by doubles as engines compute it.

    >>> round_half_away(2.5), round_half_away(-2.5), round_half_away(1.005, 2), round_half_away(1250, -2)
    (3, -3, 1.0, 1300)
    """
    return _to_digits(value, digits, 0.5)


def truncate(value: float, digits: int = 0) -> float:
    """A number without the digits after those asked for.

    >>> truncate(-2.7), truncate(1.29, 1)
    (-2, 1.2)
    """
    return _to_digits(value, digits, 0.0)


def _to_digits(value: float, digits: int, half: float) -> float:
    if digits >= 0 and isinstance(value, int):
        return value
    scale = 10.0 ** abs(digits)
    scaled = value * scale if digits > 0 else value / scale
    whole = math.floor(scaled + half) if value >= 0 else math.ceil(scaled - half)
    return float(whole) / scale if digits > 0 else int(whole * scale)


def _read_round(name: str) -> Callable[[Sequence[exp.Expr], Read], Expression]:
    def read_arguments(args: Sequence[exp.Expr], read: Read) -> Expression:
        return Call(name, (read(args[0]), read(args[1]) if len(args) == 2 else Literal(0)))

    return read_arguments


# -- SIGN -----------------------------------------------------------------------------------------------------------


def _check_sign(call: Call, args: list[TypedExpression]) -> Checked:
    require_numbers(call, args)
    return [args[0][0]], "integer"


def _compile_sign(call: Call, compiler: Compiler) -> TypedSql:
    result = compiler.value(call.args[0])
    if result.type not in NUMBERS:
        raise wrong_type("a number", result.type)
    zero = nodes.integer(0)
    arms = [
        (nodes.binary(relation, result.node, zero), nodes.integer(sign))
        for relation, sign in ((">", 1), ("<", -1), ("=", 0))
    ]
    low, high = (-1, 1) if result.range is None else (_sign(result.range.low), _sign(result.range.high))
    return TypedSql(nodes.cast(nodes.case(arms, nodes.literal(None)), "integer"), "integer", Range.whole(low, high))


def _sign(value: float) -> int:
    if not isinstance(value, (int, float)):
        raise TypeError
    return (value > 0) - (value < 0)


# -- the remainder --------------------------------------------------------------------------------------------------


def _check_remainder(call: Call, args: list[TypedExpression]) -> Checked:
    for item, kind in args:
        if kind != "integer":
            got = f"{show(item)}, which is {'not whole' if kind == 'number' else describe(kind)}"
            fix = "round first: FLOOR(x) % 10" if kind == "number" else "use columns of whole numbers"
            raise InvalidArgument(show(call), "whole numbers", got, fix)
    if constant(args[1][0]) == 0:
        raise InvalidArgument(show(call), "a divisor other than 0", "0", "divide by something else")
    return [item for item, _ in args], "integer"


def _compile_remainder(call: Call, compiler: Compiler) -> TypedSql:
    """PostgreSQL fails on a divisor of 0, and the least integer divided by -1 overflows."""
    left, right = (whole_number(argument, compiler) for argument in call.args)
    divisor = right.range
    if divisor is not None and divisor.size == 0:
        raise InvalidArgument("%", "a divisor other than 0", "0", "divide by something else")
    arms = [
        (nodes.binary("=", right.node, nodes.integer(value)), result)
        for value, result in ((0, nodes.literal(None)), (-1, nodes.integer(0)))
        if divisor is None or divisor.low <= value <= divisor.high
    ]
    remainder = nodes.binary("%", left.node, right.node)
    if arms:  # of a NULL the arm of -1 must not make 0
        arms.insert(0, (nodes.is_null(left.node), nodes.literal(None)))
    known = None
    sizes = [*([] if left.range is None else [left.range.size]), *([] if divisor is None else [divisor.size - 1])]
    if sizes:
        most = min(sizes)
        low = 0.0 if left.range is not None and left.range.low >= 0 else -most
        high = 0.0 if left.range is not None and left.range.high <= 0 else most
        known = Range.whole(low, high)
    return TypedSql(nodes.cast(nodes.case(arms, remainder) if arms else remainder, "integer"), "integer", known)


def remainder(left: int, right: int) -> int | None:
    """What is left of a division of whole numbers, with the sign of the first; None where the second is 0.

    >>> remainder(7, 3), remainder(-7, 3), remainder(7, 0)
    (1, -1, None)
    """
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError
    if right == 0:
        return None
    size = abs(left) % abs(right)
    return size if left >= 0 else -size


# -- the whole quotient ---------------------------------------------------------------------------------------------


def _check_quotient(call: Call, args: list[TypedExpression]) -> Checked:
    for item, kind in args:
        if kind != "integer":
            left, right = map(show, call.args)
            got = f"{show(item)}, which is {'not whole' if kind == 'number' else describe(kind)}"
            fix = f"write TRUNC({left} / {right}), or FLOOR" if kind == "number" else "use columns of whole numbers"
            raise InvalidArgument(show(call), "whole numbers, of which engines divide alike", got, fix)
    return [item for item, _ in args], "integer"


def _compile_quotient(call: Call, compiler: Compiler) -> TypedSql:
    return _compile_round(Call("trunc", (Call("/", call.args), Literal(0))), compiler)


def quotient(left: int, right: int) -> int | None:
    """The quotient of whole numbers, cut off toward 0; None where the second is 0.

    >>> quotient(7, 2), quotient(-7, 2), quotient(7, 0)
    (3, -3, None)
    """
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError
    if right == 0:
        return None
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


ROUNDING = (
    Operation(
        "round", "(x, digits): to so many digits after the point, halves away from 0; without them a whole number",
        2, 2, _check_round, _compile_round, round_half_away, "ROUND(x, 1)",
        special_functions=(Function("ROUND", (1, 2), "ROUND(x, 2)", _read_round("round")),),
        examples=("ROUND(x)", "ROUND(n * 7, -1)", "ROUND(n, 2)", "ROUND(ABS(x), 3)"), range_rule="its ends, rounded",
    ),
    Operation(
        "trunc", "(x, digits): cut off after so many digits, toward 0; a whole number where there are none",
        2, 2, _check_round, _compile_round, truncate, "TRUNC(x)",
        special_functions=tuple(
            Function(name, (1, 2), "TRUNC(x, 2)", _read_round("trunc")) for name in ("TRUNC", "TRUNCATE")
        ),
        examples=("TRUNC(x, 1)", "TRUNC(x * 7, -1)"), range_rule="its ends, cut off",
    ),
    Operation(
        "//", "the quotient of whole numbers, cut off toward 0",
        2, 2, _check_quotient, _compile_quotient, quotient, "n // 2",
        syntax=Syntax("IntDiv", ("this", "expression")), examples=("n DIV 3", "DATE_DIFF('day', d, d) // 7"),
        null_where="the divisor is 0", range_rule="that of the quotients of its ends, cut off",
    ),
    Operation(
        "sign", "-1, 0 or 1", 1, 1, _check_sign, _compile_sign, _sign, "SIGN(x)", functions=("SIGN",),
        examples=("SIGN(n)", "SIGN(ABS(x))"), range_rule="-1 to 1",
    ),
    Operation(
        "%", "the remainder of whole numbers, with the sign of the first",
        2, 2, _check_remainder, _compile_remainder, remainder, "n % 2", functions=("MOD",),
        syntax=Syntax("Mod", ("this", "expression")), examples=("n % n", "MOD(7, n)", "(n + 3) % 4"),
        null_where="the divisor is 0", range_rule="below the divisor in size; from 0 on where the first is",
    ),
)  # fmt: skip
"""The operations that round, and the remainder."""
