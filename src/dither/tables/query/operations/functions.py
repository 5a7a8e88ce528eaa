"""Functions of one number: roots and powers, logarithms and the exponential function.

SQRT is rounded correctly by IEEE 754, and POWER is computed by products, quotients and SQRT, so these agree to the last
bit. LN, LOG10, LOG2 and EXP are each engine's own, whose last bits differ: engines agree on them to 1e-12 of the value,
or of 1, and no more is promised. Logarithms are rounded to a multiple of 2^-40, so that those that are whole numbers,
as LOG10(1000), are whole on every engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dither.errors import InvalidArgument
from dither.tables.query import nodes
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Operation,
    TypedExpression,
    TypedSql,
    constant,
    require_numbers,
    require_range,
)
from dither.tables.query.ranges import LEAST, MOST, Range
from dither.tables.query.tree import Call, show

if TYPE_CHECKING:
    from sqlglot import exp

MOST_EXPONENT = 16
_GRID = float(1 << 40)
_SLACK = 1e-12


def _check(call: Call, args: list[TypedExpression]) -> Checked:
    require_numbers(call, args)
    return [item for item, _ in args], "number"


def _refuse_negative(call: Call, expected: str) -> InvalidArgument:
    return InvalidArgument(call.op.upper(), expected, "none, by its bounds", "correct the bounds, or its sign")


# -- roots and powers -----------------------------------------------------------------------------------------------


def _compile_sqrt(call: Call, compiler: Compiler) -> TypedSql:
    return _square_root(call, compiler.number(call.args[0]))


def _square_root(call: Call, value: TypedSql) -> TypedSql:
    known = require_range(value)
    if known.high < 0:
        raise _refuse_negative(call, "values from 0 on")
    root = nodes.call("SQRT", value.node)
    if known.low < 0:
        root = nodes.case([(nodes.binary(">=", value.node, nodes.double(0.0)), root)], nodes.literal(None))
    low, high, least = (math.sqrt(max(end, 0.0)) for end in (known.low, known.high, known.least))
    return TypedSql(root, "number", Range.between(low, high, least).checked())


def _sqrt(value: float) -> float | None:
    return math.sqrt(value) if value >= 0 else None


def _exponent(call: Call) -> float:
    value = constant(call.args[1])
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        doubled = 2 * float(value)
        if 0 < abs(doubled) <= 2 * MOST_EXPONENT and doubled.is_integer():
            return float(value)
    expected = f"a constant exponent that is a multiple of 0.5 from -{MOST_EXPONENT} to {MOST_EXPONENT}, but not 0"
    raise InvalidArgument("POWER", expected, show(call.args[1]), "write EXP(y * LN(x)) for other exponents")


def _check_power(call: Call, args: list[TypedExpression]) -> Checked:
    require_numbers(call, args)
    _exponent(call)
    return [item for item, _ in args], "number"


def _compile_power(call: Call, compiler: Compiler) -> TypedSql:
    exponent = _exponent(call)
    base = compiler.number(call.args[0])
    whole, half = divmod(abs(exponent), 1)
    result = _square_root(call, base) if half else None
    square, remaining = base, int(whole)
    while remaining:
        if remaining % 2:
            result = square if result is None else _product(result, square)
        remaining //= 2
        if remaining:
            magnitude = abs(require_range(square))
            squared = (magnitude * magnitude).checked()
            square = TypedSql(nodes.binary("*", square.node, square.node), "number", squared)
    assert result is not None  # the exponent is not 0
    if exponent > 0:
        return result
    zero = nodes.binary("=", result.node, nodes.double(0.0))
    inverse = nodes.case([(zero, nodes.literal(None))], nodes.divide(nodes.double(1.0), result.node))
    return TypedSql(inverse, "number", (Range.constant(1) / require_range(result)).checked())


def _product(left: TypedSql, right: TypedSql) -> TypedSql:
    known = (require_range(left) * require_range(right)).checked()
    return TypedSql(nodes.binary("*", left.node, right.node), "number", known)


def power(base: float, exponent: float) -> float | None:
    """A number to a power, by the same products as in SQL; None where it is not a number.

    >>> power(2, 10), power(4, -0.5), power(-1, 0.5), power(0, -1)
    (1024.0, 0.5, None, None)
    """
    whole, half = divmod(abs(exponent), 1)
    if half and base < 0:
        return None
    result = math.sqrt(base) if half else None
    square, remaining = float(base), int(whole)
    while remaining:
        if remaining % 2:
            result = square if result is None else result * square
        remaining //= 2
        square = square * square if remaining else square
    assert result is not None
    return result if exponent > 0 else None if result == 0 else 1 / result


# -- logarithms and the exponential function ------------------------------------------------------------------------


def _to_grid(value: float) -> float:
    return math.floor(value * _GRID + 0.5) / _GRID


def _logarithm(
    name: str, meaning: str, write: Callable[[exp.Expr], exp.Expr], compute: Callable[[float], float]
) -> Operation:
    def compile(call: Call, compiler: Compiler) -> TypedSql:
        value = compiler.number(call.args[0])
        known = require_range(value)
        if known.high <= 0:
            raise _refuse_negative(call, "values above 0")
        scaled = nodes.binary("*", write(value.node), nodes.double(_GRID))
        steps = nodes.call("FLOOR", nodes.binary("+", scaled, nodes.double(0.5)))
        result: exp.Expr = nodes.divide(steps, nodes.double(_GRID))
        if known.low <= 0:
            positive = nodes.binary(">", value.node, nodes.double(0.0))
            result = nodes.case([(positive, result)], nodes.literal(None))
        low, high = compute(max(known.low, known.least)), compute(known.high)
        ends = math.floor(low * _GRID) / _GRID - 1 / _GRID, math.ceil(high * _GRID) / _GRID + 1 / _GRID
        return TypedSql(result, "number", Range.of(*ends, 1 / _GRID).checked())

    return Operation(
        name, meaning, 1, 1, _check, compile, lambda value: _to_grid(compute(value)) if value > 0 else None,
        f"{name.upper()}(x)", functions=(name.upper(),), examples=(f"{name.upper()}(ABS(n) + 1)",),
        null_where="x is not above 0", range_rule="of what is above 0 in its range", exact=False,
    )  # fmt: skip


def _compile_exp(call: Call, compiler: Compiler) -> TypedSql:
    """A result that PostgreSQL could not hold would be an error: the range of the exponent rules it out."""
    value = compiler.number(call.args[0])
    known = require_range(value)
    if not math.log(LEAST) <= known.low <= known.high <= math.log(MOST):
        expected = f"exponents from {math.ceil(math.log(LEAST))} to {math.floor(math.log(MOST))}"
        raise InvalidArgument("EXP", expected, "others, by their bounds", "narrow the bounds of its columns")
    low, high = math.exp(known.low) * (1 - _SLACK), math.exp(known.high) * (1 + _SLACK)
    return TypedSql(nodes.call("EXP", value.node), "number", Range.between(low, high, low).checked())


NUMERIC_FUNCTIONS = (
    Operation(
        "sqrt", "the square root", 1, 1, _check, _compile_sqrt, _sqrt, "SQRT(x)", functions=("SQRT",),
        examples=("SQRT(ABS(n))",), null_where="x is below 0", range_rule="the roots of its ends",
    ),
    Operation(
        "power",
        f"(x, exponent), exponent a constant multiple of 0.5 up to {MOST_EXPONENT} in size: by products and SQRT",
        2, 2, _check_power, _compile_power, power, "POWER(x, 3)", functions=("POWER", "POW"),
        examples=("POWER(x, 2)", "POWER(n, -1)", "POWER(x, 2.5)", "POWER(ABS(x) + 1, -1.5)", "POWER(x, 16)"),
        null_where="0 to a negative power, or the root of what is below 0", range_rule="as of products and quotients",
    ),
    _logarithm("ln", "the natural logarithm", lambda x: nodes.call("LN", x), math.log),
    _logarithm("log10", "the logarithm to base 10", lambda x: nodes.call("LOG10", x), math.log10),
    _logarithm(
        "log2", "the logarithm to base 2", lambda x: nodes.divide(nodes.call("LN", x), nodes.double(math.log(2))),
        math.log2,
    ),
    Operation(
        "exp", "e to the power of x", 1, 1, _check, _compile_exp, math.exp, "EXP(x)", functions=("EXP",),
        examples=("EXP(-n)", "EXP(0.5 * LN(ABS(x) + 1))"), range_rule="e to the power of its ends", exact=False,
    ),
)  # fmt: skip
"""The functions of one number."""
