"""What one operation is: a row of the table of operations, and what its functions work with.

A question passes an operation four times: its types are checked, it is written as SQL together with the range of its
values, it is evaluated in Python where it is applied to the noisy answer, and it is read from SQL. A row says all four.

A :class:`Range` is what is known of a number before any row is read. Every value lies between ``low`` and ``high``, is
a whole multiple of ``quantum``, a power of two, and is 0 or at least ``least`` in size. The operations below compute
the range of a result in doubles rounded to nearest, which keep order, so what they say holds for the rounded result on
every engine:

* a sum of multiples of q is one, also after rounding, since a double too large to be exact is a multiple of more;
* a double of size at least m is a multiple of the distance between doubles at m, which serves products and quotients.

A result whose range :meth:`Range.checked` accepts neither overflows nor vanishes on any engine. That is decided by the
question and the card alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from dither.errors import InvalidArgument, WrongType
from dither.tables.card.model import Type
from dither.tables.card.values import EXACT_INTEGERS, Value, clip, literal_type
from dither.tables.query.tree import Call, Expression, Literal, show

MOST = 1e150
LEAST = 1e-250


@dataclass(frozen=True)
class Range:
    """The values that an expression can have: doubles from ``low`` to ``high``.

    All are multiples of ``quantum``, and those other than 0 are at least ``least`` in size, so that it is known which
    products and quotients are exact, and which cannot overflow or underflow.
    """

    low: float
    high: float
    least: float
    quantum: float

    @classmethod
    def of(cls, low: float, high: float, quantum: float) -> Range:
        """Return the range of the multiples of ``quantum`` from ``low`` to ``high``.

        Those other than 0 are at least ``quantum`` in absolute value, or the nearer end if 0 is not between the ends.
        """
        contains_zero = low <= 0 <= high
        return cls(low, high, quantum if contains_zero else max(quantum, min(abs(low), abs(high))), quantum)

    @classmethod
    def constant(cls, value: float) -> Range:
        """Return the range with this value alone."""
        return cls.whole(value, value)

    @classmethod
    def whole(cls, low: float, high: float) -> Range:
        """Return the range of the whole numbers between two bounds, and of the bounds themselves (which may be
        fractions); refuse bounds beyond 1e150 in absolute value."""
        if max(abs(low), abs(high)) > MOST:
            raise _out_of_range("larger ones")
        return cls.of(float(low), float(high), min(_quantum(low), _quantum(high)))

    @classmethod
    def between(cls, low: float, high: float, least: float) -> Range:
        """Return the range of doubles from ``low`` to ``high`` that are 0 or at least ``least`` in size."""
        return cls(low, high, least, _spacing(least))

    @property
    def size(self) -> float:
        """The largest absolute value in the range."""
        return max(abs(self.low), abs(self.high))

    def __neg__(self) -> Range:
        """Return the range of the negated values."""
        return Range(-self.high, -self.low, self.least, self.quantum)

    def __abs__(self) -> Range:
        """Return the range of the absolute values."""
        contains_zero = self.low <= 0 <= self.high
        low = 0.0 if contains_zero else min(abs(self.low), abs(self.high))
        return Range(low, self.size, self.least, self.quantum)

    def __add__(self, other: Range) -> Range:
        """Return the range of the sums."""
        return Range.of(self.low + other.low, self.high + other.high, min(self.quantum, other.quantum))

    def __sub__(self, other: Range) -> Range:
        """Return the range of the differences."""
        return self + -other

    def __mul__(self, other: Range) -> Range:
        """Return the range of the products."""
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        least = self.least * other.least
        return Range(min(ends), max(ends), least, max(self.quantum * other.quantum, _spacing(least)))

    def __truediv__(self, other: Range) -> Range:
        """Return the range of the quotients, for divisors other than 0.

        A quotient is extreme where the divisor is: at an end of the divisor's range or, if that range contains 0, next
        to 0 at ±``least``.
        """
        extreme_divisors = [other.low, other.high]
        if other.low <= 0 <= other.high:
            extreme_divisors += [-other.least] * (other.low < 0) + [other.least] * (other.high > 0 or other.low == 0)
        ends = [a / b for a in (self.low, self.high) for b in extreme_divisors if b]
        least = self.least / (other.size or 1.0)
        return Range(min(ends), max(ends), least, _spacing(least))

    def __or__(self, other: Range) -> Range:
        """Return the smallest known range that contains both."""
        return Range(
            min(self.low, other.low),
            max(self.high, other.high),
            min(self.least, other.least),
            min(self.quantum, other.quantum),
        )

    def checked(self) -> Range:
        """Return the range unchanged; refuse it if it has values above 1e150 or, other than 0, below 1e-250 in absolute
        value, with which doubles could overflow or underflow."""
        if self.size <= MOST and self.least >= LEAST:
            return self
        raise _out_of_range("larger ones" if self.least >= LEAST else "smaller ones that are not 0")


def _out_of_range(got: str) -> InvalidArgument:
    """Return the error for an expression whose values could overflow or underflow."""
    fix = "narrow the bounds of its columns, or use a larger or smaller unit"
    return InvalidArgument("expression", "values between 1e-250 and 1e150 in size", f"{got}, by its bounds", fix)


def _quantum(value: float) -> float:
    """Return the largest power of two, at most 1, of which a number is a multiple."""
    return 1 / float(value).as_integer_ratio()[1]


def _spacing(size: float) -> float:
    """Return the power of two by which adjacent doubles of this absolute value are spaced, or half of it."""
    return math.ldexp(1.0, math.frexp(size)[1] - 53)


class LazyModule:
    """Stands for a module, which is imported when one of its names is first used.

    sqlglot takes long to load, and a question built in Python needs it only when it is compiled.
    """

    def __init__(self, name: str) -> None:
        """Remember the module's name; nothing is imported yet."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Return the attribute of the module, which is imported first if it was not used before."""
        return getattr(import_module(self._name), attribute)


if TYPE_CHECKING:
    from sqlglot import exp

    from dither.tables.query import nodes as nodes
else:  # sqlglot is loaded when something is compiled
    nodes = LazyModule("dither.tables.query.nodes")

NUMBERS = ("integer", "number")

NUMBER_IN_CARD = 'if {} holds numbers, its card should say so: type = "number", with bounds'
"""What to do about a text where a number is needed. A CAST would have no bounds, and its noise would be of no use."""

TypedExpression = tuple[Expression, Type | None]
"""An expression and its type; None is the type of a bare NULL."""

Checked = tuple[Sequence[Expression], Type]
"""The arguments as they are used (texts beside dates have become dates), and the type of the result."""

Read = Callable[["exp.Expr"], Expression]
"""The expression that a node of sqlglot stands for."""


@dataclass(frozen=True, eq=False)
class TypedSql:
    """SQL with its type and, for numbers, the range of its values."""

    node: exp.Expr
    type: Type
    range: Range | None = None
    period: tuple[date, date] | None = None
    """The bounds of a column of dates or timestamps; values may lie beyond them."""

    @property
    def is_null(self) -> bool:
        """Whether this is the constant NULL, which fits every type."""
        return self.node.key == "null"

    @property
    def interval(self) -> tuple[float, float] | None:
        """The least and the largest value; None where the range is unknown."""
        return None if self.range is None else (self.range.low, self.range.high)


class Compiler(Protocol):
    """What an operation needs to write its arguments as SQL."""

    def value(self, expression: Expression) -> TypedSql:
        """Return the SQL of an expression with the values as they are."""

    def number(self, expression: Expression) -> TypedSql:
        """Return the SQL of a number as a double that is never NaN and lies in a known range, so that arithmetic with
        it cannot overflow."""


@dataclass(frozen=True)
class Syntax:
    """How SQL writes an operation, besides calling a function.

    ``node`` is the name of sqlglot's class and ``parts`` are the arguments of that node in order; other parts of the
    node are refused, except those of ``ignored``. A node that says ``negate`` stands for the opposite. ``refuse``
    raises where the node has a form that is not read. A node whose parts are not simply the arguments has ``read``.
    """

    node: str
    parts: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    refuse: Callable[[exp.Expr], None] | None = None
    read: Callable[[exp.Expr, Read], Expression] | None = None


@dataclass(frozen=True)
class Function:
    """A SQL function that is not simply called with the operation's arguments.

    ``read`` turns the arguments into an expression. ``usage`` is shown where their number is none of ``arguments``.
    """

    name: str
    arguments: int | tuple[int, ...]
    usage: str
    read: Callable[[Sequence[exp.Expr], Read], Expression]

    def takes(self, count: int) -> bool:
        """Return whether the function can be called with this number of arguments."""
        return count in (self.arguments if isinstance(self.arguments, tuple) else (self.arguments,))


@dataclass(frozen=True)
class Operation:
    """One operation on values of a row, of the data or of the noisy answer.

    ``least`` and ``most`` are how many arguments it takes; ``most`` is None where there may be more.
    ``check`` refuses arguments of the wrong type. ``compile`` writes SQL that cannot fail and means the same on every
    engine. ``evaluate`` computes it in Python: of values, none of them NULL, or where ``strict`` is False of functions
    that return the values, so that it decides which it needs and what NULL means. An ``example`` in SQL uses columns
    x (number), n (integer), s (text), d (date), t (timestamp) and b (boolean); tests try it everywhere.
    """

    name: str
    meaning: str
    least: int
    most: int | None
    check: Callable[[Call, list[TypedExpression]], Checked]
    compile: Callable[[Call, Compiler], TypedSql]
    evaluate: Callable[..., Any]
    example: str
    strict: bool = True
    takes_null: bool = False
    """Whether a bare NULL has a meaning among its arguments."""
    compile_number: Callable[[Call, Compiler], TypedSql] | None = None
    """How it is written as a double where that differs: its branches become doubles, too."""
    functions: tuple[str, ...] = ()
    """Names of SQL functions that take its arguments."""
    special_functions: tuple[Function, ...] = ()
    syntax: Syntax | None = None
    other_syntax: tuple[Syntax, ...] = ()
    """Further ways in which SQL writes it."""
    examples: tuple[str, ...] = ()
    """Further examples: forms and branches that the first one leaves out."""
    null_where: str = ""
    """Where the result is NULL although no argument is: what keeps it from failing."""
    range_rule: str = ""
    """How the range of a number follows from those of the arguments, in words."""
    exact: bool = True
    """Whether engines agree to the last bit; where they do not, they agree to 1e-12 of the value or of 1."""

    @property
    def all_syntax(self) -> tuple[Syntax, ...]:
        """Every node of sqlglot that stands for the operation, besides function calls."""
        return (*(() if self.syntax is None else (self.syntax,)), *self.other_syntax)

    def check_arity(self, call: Call) -> None:
        """Refuse a call with too few or too many arguments."""
        count = len(call.args)
        lacks_default = self.name == "case" and count % 2 == 0
        if count < self.least or (self.most is not None and count > self.most) or lacks_default:
            expected = f"{self.least} arguments" if self.least == self.most else "all its arguments"
            raise InvalidArgument(self.name, expected, str(count), f"write for example {self.example}")


# -- types ----------------------------------------------------------------------------------------------------------


def checks(*rules: Callable[[Call, list[TypedExpression]], object], result: Type) -> Callable[..., Checked]:
    """Return the type check of an operation whose arguments are used unchanged and whose ``result`` has this type.

    Each of the ``rules`` refuses a call with arguments that it does not allow, by raising an error.
    """

    def check(call: Call, args: list[TypedExpression]) -> Checked:
        """Return the arguments of a call that no rule refuses, and the type of its result."""
        for rule in rules:
            rule(call, args)
        return [item for item, _ in args], result

    return check


def check_boolean(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of AND, OR or NOT, and "boolean" as the type of the result; refuse arguments that are not
    conditions."""
    require_conditions(call.op.upper(), args, "conditions")
    return [item for item, _ in args], "boolean"


def require_conditions(clause: str, args: list[TypedExpression], expected: str) -> None:
    """Refuse arguments that are not conditions. ``clause`` is the SQL keyword and ``expected`` the expectation that the
    error states."""
    for item, kind in args:
        if kind != "boolean":
            got = f"{show(item)}, which is {describe(kind)}"
            fix = "compare it with something: x > 0"
            if kind == "text" and isinstance(item, Literal):
                fix = f"name the column again, x = {show(item)}, or write a list: x IN ('a', 'b')"
            raise InvalidArgument(clause, expected, got, fix)


def check_alike(call: Call, args: list[TypedExpression]) -> tuple[list[Expression], Type]:
    """Return the arguments of a call converted to one common type, and that type; refuse types without a common one.

    Columns decide the type, and constants are converted to it where their text allows it: '2024-01-31' beside dates,
    '5' beside numbers, 'true', 0 or 1 beside conditions. A date beside timestamps becomes the start of its day.
    """
    varying = {kind for item, kind in args if kind is not None and not isinstance(item, Literal)}
    fixed = {kind for item, kind in args if kind is not None and isinstance(item, Literal)}
    if len(varying) == 1:
        (target,) = varying
    elif varying:
        target = "number" if varying == set(NUMBERS) else "timestamp" if varying == {"date", "timestamp"} else "text"
    else:
        target = next((kind for kind in ("timestamp", "date") if kind in fixed), "text")
    args = [_convert(item, target) if isinstance(item, Literal) else (item, kind) for item, kind in args]
    kinds = sorted({kind for _, kind in args if kind is not None})
    if not kinds:
        raise InvalidArgument(show(call), "a value", "only NULL", "write a value, or leave it out")
    if len(kinds) == 1 or set(kinds) == set(NUMBERS):
        return [item for item, _ in args], "number" if len(kinds) > 1 else kinds[0]
    if set(kinds) == {"date", "timestamp"}:
        starts = [Call("cast", (Literal("timestamp"), item)) if kind == "date" else item for item, kind in args]
        return starts, "timestamp"
    raise InvalidArgument(show(call), "values of one kind", " and ".join(kinds), advice_on_types(call, args, kinds))


def _convert(literal: Literal, target: str) -> TypedExpression:
    """Return a constant converted to the type ``target`` of the values beside it, with its type: '2024-01-31' becomes a
    date beside dates. A constant that has no such form is returned unchanged."""
    value = literal.value
    if target == "timestamp" and isinstance(value, str):
        value = as_timestamp(value)
    elif target == "date" and isinstance(value, str):
        value = as_date(value)
    elif target == "timestamp" and isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    elif target == "date" and isinstance(value, datetime) and value.time() == time():
        value = value.date()
    elif target in NUMBERS and isinstance(value, str):
        value = _parsed_number(value)
    elif target == "boolean" and not isinstance(value, bool):
        value = {"true": True, "false": False, "1": True, "0": False}.get(str(value).lower(), value)
    return Literal(value), literal_type(value)


def _parsed_number(text: str) -> Value:
    """Return the number that a text states in at most 15 decimal digits; other texts are returned unchanged."""
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.replace(".", "", 1).isdigit() or len(digits) > 15:
        return text
    return float(text) if "." in digits else int(text)


def as_date(text: str) -> date:
    """Return the date that a text states as YYYY-MM-DD, also with a time of 00:00; refuse other texts."""
    moment = _parsed_timestamp(text)
    if moment is not None and moment.time() == time():
        return moment.date()
    got = "a time of day" if moment is not None else repr(clip(text))
    raise InvalidArgument("date", "a date as 'YYYY-MM-DD'", got, "write for example '2024-01-31'")


def as_timestamp(text: str) -> datetime:
    """Return the timestamp that a text states as YYYY-MM-DD or YYYY-MM-DD HH:MM[:SS[.ffffff]]; refuse other texts."""
    value = _parsed_timestamp(text)
    if value is None:
        expected = "a timestamp as 'YYYY-MM-DD HH:MM:SS', without time zone"
        raise InvalidArgument("timestamp", expected, repr(clip(text)), "write for example '2024-01-31 12:00:00'")
    return value


def _parsed_timestamp(text: str) -> datetime | None:
    """Return the timestamp that a text states in ISO 8601, without a time zone and with at most microseconds; None for
    other texts."""
    try:
        value = datetime.fromisoformat(text)
        day = date.fromisoformat(text[:10])
    except ValueError:
        return None
    return value if value.tzinfo is None and day.isoformat() == text[:10] and len(text) <= 26 else None


def describe(kind: Type | None) -> str:
    """Return a type in the words of error messages, such as "a date" or, for None, "NULL"."""
    words = {"integer": "a number", "number": "a number", "boolean": "true or false", None: "NULL"}
    return words.get(kind, f"a {kind}")


# -- SQL ------------------------------------------------------------------------------------------------------------


def compile_alike(call: Call, compiler: Compiler) -> list[TypedSql]:
    """Return the SQL of a call's arguments; refuse arguments of different types, which engines would convert by
    different rules."""
    return require_alike([compiler.value(argument) for argument in call.args])


def require_alike(parts: list[TypedSql]) -> list[TypedSql]:
    """Return compiled values unchanged; refuse values of types that cannot be compared.

    Integers can be compared with doubles, dates with timestamps, and NULL with everything.
    """
    families = {"integer": "number", "timestamp": "date"}
    kinds = {families.get(part.type, part.type) for part in parts if not part.is_null}
    if len(kinds) > 1:
        raise wrong_type("values of one kind", " and ".join(sorted(kinds)))
    return parts


def compile_condition(expression: Expression, compiler: Compiler) -> exp.Expr:
    """Return the SQL of a condition or a bare NULL; refuse an expression of another type."""
    result = compiler.value(expression)
    if result.type != "boolean" and not result.is_null:
        raise wrong_type("a condition", result.type)
    return result.node


def wrong_type(expected: str, got: str) -> WrongType:
    """Return the error for an expression of the wrong type."""
    return WrongType("expression", expected, got, "compare and compute like with like")


def require_numbers(call: Call, args: list[TypedExpression]) -> None:
    """Refuse arguments of a call that are not numbers; the advice in the error depends on their type."""
    for item, kind in args:
        if kind not in NUMBERS:
            fix = "use a column of numbers"
            if kind in ("date", "timestamp"):
                days = next((value for other, _ in args if isinstance(value := constant(other), int)), 1)
                fix = (
                    f"use YEAR(x), DATE_DIFF('day', x, y) or x {call.op if call.op == '-' else '+'} INTERVAL {days} DAY"
                )
                if call.op in ("trunc", "round"):
                    fix = f"write date_trunc('month', {show(item)})"
            elif kind == "text" and call.op == "+":
                fix = "write || instead of + to put texts together"
            elif kind == "text":
                fix = f"use a column of numbers; {NUMBER_IN_CARD.format(show(item))}"
            elif kind == "boolean":
                fix = f"use a column of numbers, or CAST({show(item)} AS DOUBLE)"
            raise InvalidArgument(show(call), "numbers", f"{show(item)}, which is {describe(kind)}", fix)


def require_range(typed: TypedSql) -> Range:
    """Return the range of a compiled number; refuse one whose range is unknown because columns have no bounds."""
    if typed.range is None:
        raise InvalidArgument(
            "expression", "numbers with public bounds", "one without", "state the bounds of its columns"
        )
    return typed.range


def whole_number(expression: Expression, compiler: Compiler) -> TypedSql:
    """Return the SQL of a whole number as a BIGINT; refuse an expression that may have fractions.

    A number whose range is known, and within which doubles hold every whole number (up to 2^53), is clamped to that
    range. This accepts doubles computed from whole numbers as well. Other integers are returned unchanged.
    """
    result = compiler.value(expression)
    try:
        number = compiler.number(expression)
    except InvalidArgument:
        if result.type != "integer":
            raise
        return result
    known = number.range
    if known is not None and known.quantum >= 1 and known.size <= EXACT_INTEGERS:
        return TypedSql(nodes.cast(number.node, "integer"), "integer", known)
    if result.type != "integer":
        raise wrong_type("whole numbers within 2^53 in size", "others, by their bounds")
    return result


def constant(expression: Expression) -> Value:
    """Return the value of a constant; None for any other expression."""
    return expression.value if isinstance(expression, Literal) else None


def refuse_sql(expected: str, got: str, fix: str) -> InvalidArgument:
    """Return the error for SQL that cannot be answered."""
    return InvalidArgument("SQL", expected, got, fix)


_CLAUSES = {"locks": "FOR UPDATE", "pivots": "PIVOT", "sample": "TABLESAMPLE", "laterals": "LATERAL"}
"""How SQL calls parts of a node that sqlglot calls otherwise."""


def refuse_other_parts(node: exp.Expr, *known: str) -> None:
    """Refuse a sqlglot node that has parts other than the ``known`` ones: ignoring them would change the meaning of the
    query."""
    for name, value in node.args.items():
        if value and name not in known:
            part = _CLAUSES.get(name) or name.strip("_").replace("_", " ").upper()
            raise refuse_sql(f"a plain {node.key.upper()}", f"{part} in it", f"leave {part} out")


_COMPARISONS = ("<", "<=", ">", ">=", "=", "<>")


def advice_on_types(call: Call, args: Sequence[tuple[Expression, Type | None]], kinds: Sequence[Type]) -> str:
    """Return the advice of an error about arguments of different types: how to make them comparable.

    ``kinds`` are the different types, and ``args`` the arguments of the ``call`` with theirs.
    """
    dates = any(kind in ("date", "timestamp") for kind in kinds)
    if "boolean" in kinds and any(isinstance(item, Call) and item.op in _COMPARISONS for item, _ in args):
        return "compare once at a time: x > 1 AND x < 5"
    if "boolean" in kinds and call.op == "coalesce":
        return _advice_on_three_values(args)
    if "boolean" in kinds:
        return "write TRUE or FALSE"
    if dates and set(kinds) & set(NUMBERS):
        return "write a date in quotes: '2024-01-31'"
    if "text" in kinds and set(kinds) & set(NUMBERS):
        return _advice_on_texts_and_numbers(call, args)
    return "use values of one kind"


def _advice_on_three_values(args: Sequence[tuple[Expression, Type | None]]) -> str:
    """Return the advice for a condition with a default of another type, such as COALESCE(vip, 0): to write a CASE with
    one value each for true, false and NULL."""
    truth = next(show(item) for item, kind in args if kind == "boolean")
    other, kind = next((show(item), kind) for item, kind in args if kind not in ("boolean", None))
    yes, no = ("1", "0") if kind in NUMBERS else ("'yes'", "'no'")
    if kind not in (*NUMBERS, "text"):
        return "write TRUE or FALSE"
    return f"write CASE WHEN {truth} THEN {yes} WHEN NOT {truth} THEN {no} ELSE {other} END"


def _advice_on_texts_and_numbers(call: Call, args: Sequence[tuple[Expression, Type | None]]) -> str:
    """Return the advice for texts beside numbers.

    Where they are ordered, the texts should become numbers, since '9' is above '10' as text. Where only equality
    matters, the number may be a code, which should be a text.
    """
    number = next((show(item) for item, kind in args if isinstance(item, Literal) and kind in NUMBERS), None)
    text = next((show(item) for item, kind in args if not isinstance(item, Literal) and kind == "text"), None)
    if number is not None and call.op in ("case", "coalesce"):  # nothing is compared
        return f"write '{number}', with quotes, beside texts"
    if text is None:
        word = next(item.value for item, kind in args if isinstance(item, Literal) and kind == "text")
        return f"write a number without quotes instead of {clip(str(word))!r}"
    whole = all(kind == "integer" for _, kind in args if kind in NUMBERS)
    kind, target = ("integer", "INTEGER") if whole else ("number", "DOUBLE")
    fix = f'if {clip(text)} holds numbers, state type = "{kind}" in the card, or write CAST({clip(text)} AS {target})'
    codes = number is not None and call.op in ("=", "<>", "in", "is_distinct", "nullif")
    return f"{fix}; if it holds codes, write '{number}', with quotes" if codes else fix
