"""Operations on numbers: arithmetic, bins, rounding, the remainder, roots, powers, logarithms.

In SQL, arithmetic is of doubles: a number column is NULL where it is NaN, and is clamped to its public bounds first.
So the range of every result is known before any row is read, and what could overflow or vanish is refused.

ROUND, TRUNC, FLOOR, CEIL, SIGN and the remainder are computed by sums, products, quotients and FLOOR of doubles, which
IEEE 754 defines to the last bit, so engines agree. ROUND of an engine is not used: PostgreSQL rounds halves to even,
Spark rounds in decimals.

SQRT is rounded correctly by IEEE 754, and POWER is computed by products, quotients and SQRT, so these agree to the last
bit. LN, LOG10, LOG2 and EXP are each engine's own, whose last bits differ: engines agree on them to 1e-12 of the value,
or of 1, and no more is promised. Logarithms are rounded to a multiple of 2^-40, so that those that are whole numbers,
as LOG10(1000), are whole on every engine.
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
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dither.errors import InvalidArgument
from dither.tables.card.model import Type
from dither.tables.card.values import EXACT_INTEGERS, literal_type
from dither.tables.query.operations.base import (
    LEAST,
    MOST,
    NUMBERS,
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
    checks,
    constant,
    describe,
    nodes,
    refuse_other_parts,
    refuse_sql,
    require_numbers,
    require_range,
    whole_number,
    wrong_type,
)
from dither.tables.query.operations.dates import compile_days, difference, read_interval
from dither.tables.query.tree import Call, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp

MAX_BINS = 10_000


def _check(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of arithmetic, which must be numbers, and the type of its result.

    The result is an integer if all arguments are, except for a quotient; FLOOR and CEIL always give an integer.
    """
    require_numbers(call, args)
    whole = call.op in ("floor", "ceil") or (call.op != "/" and all(kind == "integer" for _, kind in args))
    return [item for item, _ in args], "integer" if whole else "number"


def _numbers_giving(result: Type) -> Callable[[Call, list[TypedExpression]], Checked]:
    """Return the type check of an operation that takes numbers and has a ``result`` of this type."""
    return checks(require_numbers, result=result)


def _of_numbers(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``compute`` restricted to numbers: it raises TypeError for other values, since Python would repeat a text,
    join lists and subtract dates."""

    def evaluate(*values: Any) -> Any:
        """Return the result of ``compute`` on numbers; raise TypeError for other values."""
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
    """Return the row of an operation on numbers in the table of operations.

    ``arguments`` is how many numbers it takes. ``bounds`` computes the range of its result from those of its arguments,
    ``evaluate`` its value in Python, and ``write`` its SQL from theirs, which are doubles. ``functions`` are its names
    as an SQL function, ``syntax`` is how SQL writes it otherwise (None: as a function only). ``meaning``, ``example``,
    ``null_where`` (where it is NULL) and ``range_rule`` (how its range follows) are shown in the documentation.
    """

    def compile_number(call: Call, compiler: Compiler) -> TypedSql:
        """Return the result as a double (BIGINT for FLOOR and CEIL) with its range; refuse a range in which it could
        overflow or underflow."""
        parts = [compiler.number(argument) for argument in call.args]
        known = bounds(*map(require_range, parts)).checked()
        node = write(*(part.node for part in parts))
        if name in ("floor", "ceil"):
            return TypedSql(nodes.cast(node, "integer"), "integer", known)
        return TypedSql(node, "number", known)

    def compile(call: Call, compiler: Compiler) -> TypedSql:
        """Return the result as a BIGINT, which can be grouped by, where all arguments are whole numbers and doubles
        hold it exactly; otherwise as a double."""
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
    """Return the range of FLOOR or CEIL: ``known`` with both ends rounded by ``round``. Refuse values beyond 2^53,
    where doubles do not hold every whole number."""
    if known.size > EXACT_INTEGERS:
        raise InvalidArgument(
            "FLOOR and CEIL", "values within 2^53 in size", "larger ones, by their bounds", "leave it out"
        )
    return Range.whole(round(known.low), round(known.high))


def _quotient(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return left / right as SQL, NULL where the divisor is 0."""
    zero = nodes.binary("=", right, nodes.integer(0))
    return nodes.case([(zero, nodes.literal(None))], nodes.divide(left, right))


# -- dates ----------------------------------------------------------------------------------------------------------


def _read_sum(node: exp.Expr, read: Read) -> Expression:
    """Return the expression of sqlglot's node for ``a + b`` or ``a - b``, of numbers, dates, or a date and an
    INTERVAL."""
    refuse_other_parts(node, "this", "expression")
    left, right = node.this, node.args["expression"]
    plus = node.key == "add"
    if right.key == "interval":
        return read_interval(right, read(left), read, 1 if plus else -1)
    if left.key == "interval" and plus:
        return read_interval(left, read(right), read, 1)
    return Call("+" if plus else "-", (read(left), read(right)))


def _check_difference(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of ``-`` and the type of its result: for two dates an integer, the number of days between
    them; for numbers as in other arithmetic."""
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
    """Return ``a - b`` as SQL: for two dates the number of days from b to a.

    ``as_number`` asks for a double within its bounds, for arithmetic, also where the arguments are whole numbers.
    """
    end, start = (compiler.value(item) for item in call.args)
    if end.type == start.type == "date":
        return compile_days(start, end, call.args[::-1])
    compile = _DIFFERENCE.compile_number if as_number and _DIFFERENCE.compile_number else _DIFFERENCE.compile
    return compile(call, compiler)


def _difference(left: Any, right: Any) -> Any:
    """Return a - b; for two dates the number of days from b to a."""
    plain = [isinstance(item, date) and not isinstance(item, datetime) for item in (left, right)]
    return difference("day", right, left) if all(plain) else _DIFFERENCE.evaluate(left, right)


def _read_negative(node: exp.Expr, read: Read) -> Expression:
    """Return the expression of sqlglot's node for ``-x``: a negative constant for a constant, otherwise a call."""
    inside = read(node.this)
    if isinstance(inside, Literal) and isinstance(inside.value, (int, float)) and not isinstance(inside.value, bool):
        return Literal(-inside.value)
    return Call("neg", (inside,))


# -- bins -----------------------------------------------------------------------------------------------------------


def _check_bin(_call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of ``bin``, a number and constant edges in rising order, and the type of its result."""
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
    """Return the index of a number's bin as SQL: a CASE that compares it with each edge; NULL outside of the edges."""
    result = compiler.value(call.args[0])
    _check_bin(call, [(call.args[0], result.type), *((edge, "number") for edge in call.args[1:])])
    edges = [float(cast(float, constant(edge))) for edge in call.args[1:]]
    x, null = result.node, nodes.literal(None)
    below, above = (nodes.binary(sign, x, nodes.double(end)) for sign, end in (("<", edges[0]), (">", edges[-1])))
    arms = [(nodes.binary("or", below, above), null)]
    arms += [(nodes.binary("<", x, nodes.double(edge)), nodes.integer(i)) for i, edge in enumerate(edges[1:-1])]
    arms.append((nodes.is_null(x), null))
    return TypedSql(nodes.case(arms, nodes.integer(len(edges) - 2)), "integer", Range.whole(0, len(edges) - 2))


def _bin(value: float, *edges: float) -> int | None:
    """Return the index of a value's bin, from 0; None outside of the edges. The last bin contains its upper edge."""
    if not edges[0] <= value <= edges[-1]:
        return None
    return min(bisect_right(edges, value), len(edges) - 1) - 1


def _read_width_bucket(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the expression of WIDTH_BUCKET(x, low, high, n): ``bin(x, edges) + 1``, since its buckets count from 1.

    It is NULL outside of the limits, and the last bucket contains ``high``. The edges are computed as fractions and
    rounded once, to the nearest doubles.
    """
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


MOST_DIGITS = 15


# -- ROUND and TRUNC ------------------------------------------------------------------------------------------------


def _digits(call: Call) -> int:
    """Return the constant number of digits after the point that ROUND or TRUNC keeps; -2 rounds to hundreds."""
    digits = constant(call.args[1])
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > MOST_DIGITS:
        expected = f"a constant number of digits from -{MOST_DIGITS} to {MOST_DIGITS}"
        raise InvalidArgument(call.op.upper(), expected, show(call.args[1]), "write ROUND(x, 2)")
    return digits


def _check_round(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of ROUND or TRUNC, a number and a constant number of digits, and the type of the result: an
    integer if no digits after the point are kept."""
    require_numbers(call, args)
    return [item for item, _ in args], "integer" if _digits(call) <= 0 or args[0][1] == "integer" else "number"


def _compile_round(call: Call, compiler: Compiler) -> TypedSql:
    """Return ROUND or TRUNC as SQL made of products, quotients and FLOOR of doubles, which all engines compute alike to
    the last bit.

    A number is scaled by the power of ten, rounded to a whole number (halves away from 0; TRUNC rounds toward 0), and
    scaled back.
    """
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
    """Return a number rounded to ``digits`` after the point, halves away from 0, by the same steps as the SQL of
    ROUND."""
    return _to_digits(value, digits, 0.5)


def truncate(value: float, digits: int = 0) -> float:
    """Return a number without its digits after the first ``digits`` behind the point, by the same steps as the SQL of
    TRUNC."""
    return _to_digits(value, digits, 0.0)


def _to_digits(value: float, digits: int, half: float) -> float:
    """Return a number multiplied by 10^digits, moved by ``half`` away from 0, cut off toward 0, and divided again.

    ``half`` 0.5 rounds and 0 cuts off. An integer without digits to drop is returned unchanged.
    """
    if digits >= 0 and isinstance(value, int):
        return value
    scale = 10.0 ** abs(digits)
    scaled = value * scale if digits > 0 else value / scale
    whole = math.floor(scaled + half) if value >= 0 else math.ceil(scaled - half)
    return float(whole) / scale if digits > 0 else int(whole * scale)


def _read_round(name: str) -> Callable[[Sequence[exp.Expr], Read], Expression]:
    """Return the reader of ROUND or TRUNC, whose second argument is 0 by default."""

    def read_arguments(args: Sequence[exp.Expr], read: Read) -> Expression:
        """Return the call with its number of digits."""
        return Call(name, (read(args[0]), read(args[1]) if len(args) == 2 else Literal(0)))

    return read_arguments


# -- SIGN -----------------------------------------------------------------------------------------------------------


def _compile_sign(call: Call, compiler: Compiler) -> TypedSql:
    """Return the sign of a number as SQL: -1, 0 or 1; NULL for NULL and NaN."""
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
    """Return the sign of a number as -1, 0 or 1; raise TypeError for other values."""
    if not isinstance(value, (int, float)):
        raise TypeError
    return (value > 0) - (value < 0)


# -- the remainder --------------------------------------------------------------------------------------------------


def _check_remainder(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of ``%``, which must be integers, and the type of its result; refuse the constant divisor
    0."""
    _require_whole(call, args, "whole numbers", "round first: FLOOR(x) % 10")
    if constant(args[1][0]) == 0:
        raise InvalidArgument(show(call), "a divisor other than 0", "0", "divide by something else")
    return [item for item, _ in args], "integer"


def _require_whole(call: Call, args: list[TypedExpression], expected: str, fix_for_doubles: str) -> None:
    """Refuse arguments of a call that are not integers. The error states what was ``expected``, and for doubles the
    advice ``fix_for_doubles``."""
    for item, kind in args:
        if kind != "integer":
            got = f"{show(item)}, which is {'not whole' if kind == 'number' else describe(kind)}"
            fix = fix_for_doubles if kind == "number" else "use columns of whole numbers"
            raise InvalidArgument(show(call), expected, got, fix)


def _compile_remainder(call: Call, compiler: Compiler) -> TypedSql:
    """Return the remainder ``a % b`` as SQL, with the sign of a.

    Divisors 0 and -1 are not divided by, unless the range of b excludes them: 0 gives NULL, where PostgreSQL would
    fail, and -1 gives 0, since dividing the least integer by -1 overflows.
    """
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
    if arms:  # NULL % -1 is NULL, not 0
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
    """Return the remainder of a division of whole numbers, with the sign of the dividend; None for a divisor of 0."""
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError
    if right == 0:
        return None
    size = abs(left) % abs(right)
    return size if left >= 0 else -size


# -- the whole quotient ---------------------------------------------------------------------------------------------


def _check_quotient(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of the integer quotient, which must be integers, and the type of its result."""
    left, right = map(show, call.args)
    expected = "whole numbers, of which engines divide alike"
    _require_whole(call, args, expected, f"write TRUNC({left} / {right}), or FLOOR")
    return [item for item, _ in args], "integer"


def quotient(left: int, right: int) -> int | None:
    """Return the quotient of whole numbers without its fraction, so that -7 // 2 is -3; None for a divisor of 0."""
    if not isinstance(left, int) or not isinstance(right, int):
        raise TypeError
    if right == 0:
        return None
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


ROUNDING = (
    Operation(
        "round",
        "(x, digits): rounded to that many digits after the point, halves away from 0; without them a whole number",
        2, 2, _check_round, _compile_round, round_half_away, "ROUND(x, 1)",
        special_functions=(Function("ROUND", (1, 2), "ROUND(x, 2)", _read_round("round")),),
        examples=("ROUND(x)", "ROUND(n * 7, -1)", "ROUND(n, 2)", "ROUND(ABS(x), 3)"), range_rule="its ends, rounded",
    ),
    Operation(
        "trunc", "(x, digits): cut off after that many digits, toward 0; a whole number where there are none",
        2, 2, _check_round, _compile_round, truncate, "TRUNC(x)",
        special_functions=tuple(
            Function(name, (1, 2), "TRUNC(x, 2)", _read_round("trunc")) for name in ("TRUNC", "TRUNCATE")
        ),
        examples=("TRUNC(x, 1)", "TRUNC(x * 7, -1)"), range_rule="its ends, cut off",
    ),
    Operation(
        "//", "the quotient of whole numbers, cut off toward 0",
        2, 2, _check_quotient,
        lambda call, compiler: _compile_round(Call("trunc", (Call("/", call.args), Literal(0))), compiler),
        quotient, "n // 2",
        syntax=Syntax("IntDiv", ("this", "expression")), examples=("n DIV 3", "DATE_DIFF('day', d, d) // 7"),
        null_where="the divisor is 0", range_rule="that of the quotients of its ends, cut off",
    ),
    Operation(
        "sign", "-1, 0 or 1", 1, 1, _numbers_giving("integer"), _compile_sign, _sign, "SIGN(x)", functions=("SIGN",),
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


MOST_EXPONENT = 16
_GRID = float(1 << 40)
_SLACK = 1e-12


def _refuse_negative(call: Call, expected: str) -> InvalidArgument:
    """Return the error for an argument of SQRT or a logarithm of which all values are negative, by its range."""
    return InvalidArgument(call.op.upper(), expected, "none, by its bounds", "correct the bounds, or its sign")


# -- roots and powers -----------------------------------------------------------------------------------------------


def _square_root(call: Call, value: TypedSql) -> TypedSql:
    """Return the square root of a compiled number as SQL, NULL for negative values; refuse a range of only negative
    values. ``call`` names the function in that error."""
    known = require_range(value)
    if known.high < 0:
        raise _refuse_negative(call, "values from 0 on")
    root = nodes.call("SQRT", value.node)
    if known.low < 0:
        root = nodes.case([(nodes.binary(">=", value.node, nodes.double(0.0)), root)], nodes.literal(None))
    low, high, least = (math.sqrt(max(end, 0.0)) for end in (known.low, known.high, known.least))
    return TypedSql(root, "number", Range.between(low, high, least).checked())


def _exponent(call: Call) -> float:
    """Return the constant exponent of POWER: a multiple of 0.5, not 0 and at most :data:`MOST_EXPONENT` in size."""
    value = constant(call.args[1])
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        doubled = 2 * float(value)
        if 0 < abs(doubled) <= 2 * MOST_EXPONENT and doubled.is_integer():
            return float(value)
    expected = f"a constant exponent that is a multiple of 0.5 from -{MOST_EXPONENT} to {MOST_EXPONENT}, but not 0"
    raise InvalidArgument("POWER", expected, show(call.args[1]), "write EXP(y * LN(x)) for other exponents")


Factor = TypeVar("Factor")


def _positive_power(
    base: Factor, exponent: float, root: Callable[[Factor], Factor], multiply: Callable[[Factor, Factor], Factor]
) -> Factor:
    """Return base^|exponent| by repeated squaring, for an exponent that is a multiple of 0.5 other than 0.

    The half of an exponent such as 2.5 is the ``root`` of the base. SQL and Python both call this, so that they compute
    the same products.
    """
    whole, half = divmod(abs(exponent), 1)
    result = root(base) if half else None
    square, remaining = base, int(whole)
    while remaining:
        if remaining % 2:
            result = square if result is None else multiply(result, square)
        remaining //= 2
        if remaining:
            square = multiply(square, square)
    assert result is not None  # the exponent is not 0
    return result


def _compile_power(call: Call, compiler: Compiler) -> TypedSql:
    """Return POWER(x, exponent) as SQL made of products and SQRT; 0 to a negative power gives NULL."""
    exponent, base = _exponent(call), compiler.number(call.args[0])
    result = _positive_power(base, exponent, functools.partial(_square_root, call), _product)
    if exponent > 0:
        return result
    zero = nodes.binary("=", result.node, nodes.double(0.0))
    inverse = nodes.case([(zero, nodes.literal(None))], nodes.divide(nodes.double(1.0), result.node))
    return TypedSql(inverse, "number", (Range.constant(1) / require_range(result)).checked())


def _product(left: TypedSql, right: TypedSql) -> TypedSql:
    """Return the product of two compiled doubles as SQL with its range, which for a square is not negative."""
    first, second = require_range(left), require_range(right)
    known = (abs(first) * abs(second) if left is right else first * second).checked()
    return TypedSql(nodes.binary("*", left.node, right.node), "number", known)


def power(base: float, exponent: float) -> float | None:
    """Return base^exponent by the same products as the SQL; None for a root of a negative number, and for 0 to a
    negative power."""
    if exponent % 1 and base < 0:
        return None
    result = _positive_power(float(base), exponent, math.sqrt, operator.mul)
    return result if exponent > 0 else None if result == 0 else 1 / result


# -- logarithms and the exponential function ------------------------------------------------------------------------


def _rounded_logarithm(value: float) -> float:
    """Return a logarithm rounded to a multiple of 2^-40, which makes LOG10(1000) exactly 3 on every engine."""
    return math.floor(value * _GRID + 0.5) / _GRID


def _logarithm(
    name: str, meaning: str, write: Callable[[exp.Expr], exp.Expr], compute: Callable[[float], float]
) -> Operation:
    """Return the row of a logarithm in the table of operations.

    ``write`` gives its SQL, ``compute`` its value in Python. Both are rounded to multiples of 2^-40, since engines
    differ in the last bits.
    """

    def compile(call: Call, compiler: Compiler) -> TypedSql:
        """Return the logarithm as SQL, NULL where the argument is not positive. Its range is widened by one step of
        the grid on both sides."""
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
        name, meaning, 1, 1, _numbers_giving("number"), compile,
        lambda value: _rounded_logarithm(compute(value)) if value > 0 else None, f"{name.upper()}(x)",
        functions=(name.upper(),), examples=(f"{name.upper()}(ABS(n) + 1)",),
        null_where="x is not above 0", range_rule="of what is above 0 in its range", exact=False,
    )  # fmt: skip


def _compile_exp(call: Call, compiler: Compiler) -> TypedSql:
    """Return EXP(x) as SQL; refuse a range of x with results below 1e-250 or above 1e150, on which PostgreSQL could
    fail."""
    value = compiler.number(call.args[0])
    known = require_range(value)
    if not math.log(LEAST) <= known.low <= known.high <= math.log(MOST):
        expected = f"exponents from {math.ceil(math.log(LEAST))} to {math.floor(math.log(MOST))}"
        raise InvalidArgument("EXP", expected, "others, by their bounds", "narrow the bounds of its columns")
    low, high = math.exp(known.low) * (1 - _SLACK), math.exp(known.high) * (1 + _SLACK)
    return TypedSql(nodes.call("EXP", value.node), "number", Range.between(low, high, low).checked())


NUMERIC_FUNCTIONS = (
    Operation(
        "sqrt", "the square root", 1, 1, _numbers_giving("number"),
        lambda call, compiler: _square_root(call, compiler.number(call.args[0])),
        lambda value: math.sqrt(value) if value >= 0 else None, "SQRT(x)",
        functions=("SQRT",), examples=("SQRT(ABS(n))",), null_where="x is below 0", range_rule="the roots of its ends",
    ),
    Operation(
        "power",
        f"(x, exponent), exponent a constant multiple of 0.5 up to {MOST_EXPONENT} in size: by products and SQRT",
        2, 2, checks(require_numbers, lambda call, _: _exponent(call), result="number"), _compile_power, power,
        "POWER(x, 3)", functions=("POWER", "POW"),
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
        "exp", "e to the power of x", 1, 1, _numbers_giving("number"), _compile_exp, math.exp, "EXP(x)",
        functions=("EXP",), examples=("EXP(-n)", "EXP(0.5 * LN(ABS(x) + 1))"), range_rule="e to the power of its ends",
        exact=False,
    ),
)  # fmt: skip
"""The functions of one number."""
