"""The few things that DuckDB, PostgreSQL and Spark say differently, each in a form on which they agree to the bit.

Every function takes and returns sqlglot expressions and reads nothing. What they rely on is tested on all three engines
in ``tests/tables/test_engine_primitives.py``; the sessions that make it so (UTC, ANSI mode, plain string literals) are
set up in :mod:`dither.tables.engines`.

No expression built here fails on a value: what has no answer is NULL. An engine's error would be seen by whoever asks.

>>> render(as_text(column("when"), "timestamp", "postgres"), "postgres")
'TO_CHAR("when", \\'YYYY-MM-DD HH24:MI:SS.US\\')'
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any, Literal

import sqlglot
from sqlglot import exp

from dither.errors import InvalidArgument, WrongType, message
from dither.tables.card import Type
from dither.tables.tree import PERIODS, Value

Dialect = Literal["duckdb", "postgres", "spark"]
DIALECTS: tuple[Dialect, ...] = ("duckdb", "postgres", "spark")

FIRST, LAST = date.min, date.max
"""The dates every engine and Python can hold; others are NULL."""

_TYPES: dict[Type, str] = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "TEXT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_STAMPS: dict[Dialect, tuple[str, str]] = {
    "duckdb": ("STRFTIME", "%Y-%m-%d %H:%M:%S.%f"),
    "postgres": ("TO_CHAR", "YYYY-MM-DD HH24:MI:SS.US"),
    "spark": ("DATE_FORMAT", "yyyy-MM-dd HH:mm:ss.SSSSSS"),
}
# the smallest and largest products that PostgreSQL computes without an error, with room for rounding
_SMALL, _LARGE = 1e-290, 1e300


def render(expression: exp.Expression, dialect: Dialect) -> str:
    """The text of an expression or a query.

    >>> render(exp.select("*").from_(exp.to_identifier("a b", quoted=True)), "spark")
    'SELECT * FROM `a b`'
    """
    return expression.sql(dialect=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)


def column(name: str, table: str | None = None) -> exp.Column:
    """A column by its exact name, quoted.

    >>> render(column('a"b', "t"), "duckdb")
    '"t"."a""b"'
    """
    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True) if table else None)


def cast(expression: exp.Expression, type: Type) -> exp.Cast:
    """As one of the card's types: BIGINT, DOUBLE, TEXT, BOOLEAN, DATE, or TIMESTAMP without a time zone.

    >>> render(cast(column("x"), "number"), "postgres")
    'CAST("x" AS DOUBLE PRECISION)'
    """
    return exp.Cast(this=expression.copy(), to=exp.DataType.build(_TYPES[type]))


def try_cast(expression: exp.Expression, type: Type) -> exp.TryCast:
    """As :func:`cast`, NULL where the value cannot be read. DuckDB only: the others have no such cast that agrees.

    >>> render(try_cast(column("x"), "integer"), "duckdb")
    'TRY_CAST("x" AS BIGINT)'
    """
    return exp.TryCast(this=expression.copy(), to=exp.DataType.build(_TYPES[type]))


def literal(value: Value) -> exp.Expression:
    """A constant, with its type said: the same bits on every engine.

    A float is written as its shortest decimal, which every engine reads back exactly; a bare ``0.1`` would be a
    DECIMAL. A time with an offset is taken to UTC.

    >>> [render(literal(value), "duckdb") for value in (0.1, 7, "it's", True, None, date(2024, 2, 29))]
    ["CAST('0.1' AS DOUBLE)", "CAST('7' AS BIGINT)", "'it''s'", 'TRUE', 'NULL', "CAST('2024-02-29' AS DATE)"]
    """
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise InvalidArgument(message("constant", "an integer of 64 bits", "a larger one", "write it with a point"))
        return cast(exp.Literal.string(str(value)), "integer")
    if isinstance(value, float):
        text = "NaN" if math.isnan(value) else repr(value).replace("inf", "Infinity")
        return cast(exp.Literal.string(text), "number")
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
            raise InvalidArgument(
                message("constant", "text that every engine can hold", "a NUL or half a character", "leave it out")
            )
        return exp.Literal.string(value)
    if isinstance(value, datetime):
        plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return cast(exp.Literal.string(plain.isoformat(" ", "microseconds")), "timestamp")
    if isinstance(value, date):
        return cast(exp.Literal.string(value.isoformat()), "date")
    raise WrongType(message("constant", "a value of SQL", type(value).__name__, "pass text, a number or a date"))


def is_nan(x: exp.Expression) -> exp.Expression:
    """True exactly for NaN, which all three engines put above infinity; false for infinity, NULL for NULL.

    >>> render(is_nan(column("x")), "duckdb")
    '"x" > CAST(\\'Infinity\\' AS DOUBLE)'
    """
    return exp.GT(this=_inner(x), expression=literal(math.inf))


def on_grid(x: exp.Expression, power: int) -> exp.Expression:
    """``floor(x * 2^power + 1/2)`` as BIGINT: the nearest point of the grid of steps 2^-power.

    Bit-identical on the engines for finite doubles whose result is below 2^62: hold x within bounds first. Values so
    small that PostgreSQL would fail with "underflow" are 0 before the product, as they are after it.

    >>> render(on_grid(column("x"), 10), "duckdb")
    'CAST(FLOOR("x" * CAST(\\'1024.0\\' AS DOUBLE) + CAST(\\'0.5\\' AS DOUBLE)) AS BIGINT)'
    """
    if not -900 <= power <= 900:
        raise InvalidArgument(
            message("power", "a whole number from -900 to 900", power, "choose wider or finer bounds")
        )
    safe = x if power >= 0 else _case((_below(exp.Abs(this=x.copy()), 2.0**-100), literal(0.0)), otherwise=x)
    product = exp.Mul(this=_inner(safe), expression=literal(2.0**power))
    return cast(exp.Floor(this=exp.Add(this=product, expression=literal(0.5))), "integer")


def product(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """``left * right`` of finite doubles, except that what is below about 1e-290 may be 0 and what is above 1e300 NULL.

    PostgreSQL fails with "underflow" and "overflow" where the others say 0 and infinity; here nobody gets there.
    Evaluates each side several times: pass columns, or the columns of a subquery.
    """
    a, b = exp.Abs(this=left.copy()), exp.Abs(this=right.copy())
    return _case(
        (exp.or_(_is_zero(left), _is_zero(right)), literal(0.0)),
        (exp.and_(_below(a, 1.0), exp.LT(this=b, expression=_over(literal(_SMALL), a))), literal(0.0)),
        (exp.and_(_above(a, 1.0), exp.GT(this=b, expression=_over(literal(_LARGE), a))), exp.null()),
        otherwise=exp.Mul(this=_inner(left), expression=_inner(right)),
    )


def quotient(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """``left / right`` of finite doubles, NULL where right is 0; tiny and huge results as in :func:`product`.

    Division by zero is infinity on DuckDB and an error on the others.
    """
    a, b = exp.Abs(this=left.copy()), exp.Abs(this=right.copy())
    tiny, huge = (exp.Mul(this=b.copy(), expression=literal(limit)) for limit in (_SMALL, _LARGE))
    return _case(
        (_is_zero(right), exp.null()),
        (_is_zero(left), literal(0.0)),
        (exp.and_(_above(b, 1.0), exp.LT(this=a, expression=tiny)), literal(0.0)),
        (exp.and_(_below(b, 1.0), exp.GT(this=a, expression=huge)), exp.null()),
        otherwise=_over(left, right),
    )


def whole_quotient(left: exp.Expression, right: exp.Expression, dialect: Dialect) -> exp.Expression:
    """``left // right`` of BIGINTs, left not negative and right positive.

    >>> [render(whole_quotient(column("a"), column("b"), dialect), dialect) for dialect in DIALECTS]
    ['("a" // "b")', '("a" / "b")', '(`a` DIV `b`)']
    """
    if dialect == "postgres":
        return exp.Paren(this=_over(left, right))
    return exp.Paren(this=exp.IntDiv(this=_inner(left), expression=_inner(right)))


def remainder(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """``left % right`` of BIGINTs, left not negative and right positive.

    >>> render(remainder(column("a"), column("b")), "postgres")
    '("a" % "b")'
    """
    return exp.Paren(this=exp.Mod(this=_inner(left), expression=_inner(right)))


def total(x: exp.Expression, dialect: Dialect) -> exp.Expression:
    """The sum of BIGINTs without overflow: HUGEINT, NUMERIC or DECIMAL inside, as the engine has it.

    Spark adds BIGINTs in 64 bits, and fails or wraps when a partial sum leaves them.

    >>> [render(total(column("x"), dialect), dialect) for dialect in DIALECTS]
    ['SUM("x")', 'SUM("x")', 'SUM(CAST(`x` AS DECIMAL(20, 0)))']
    """
    if dialect == "spark":
        return exp.Sum(this=exp.Cast(this=x.copy(), to=exp.DataType.build("DECIMAL(20, 0)")))
    return exp.Sum(this=x.copy())


def as_text(x: exp.Expression, type: Type, dialect: Dialect) -> exp.Expression:
    """A value as text, in one form on every engine: ``-7``, ``true``, ``2024-02-29``, ``2024-02-29 23:59:59.000000``.

    Doubles have no such form (``1``, ``1.0``, ``1e+20`` and ``1.0E20`` are all seen): put them on a grid first.
    """
    if type == "number":
        raise InvalidArgument(
            message("type", "integer, text, boolean, date or timestamp", "number", "round it to a grid first")
        )
    if type == "text":
        return x.copy()
    if type == "timestamp":
        name, pattern = _STAMPS[dialect]
        return _call(name, x, exp.Literal.string(pattern))
    return cast(x, "text")


def digest(text: exp.Expression) -> exp.Expression:
    """The MD5 of text in UTF-8, as 32 hexadecimal digits in lower case.

    >>> render(digest(column("x")), "spark")
    'MD5(`x`)'
    """
    return _call("MD5", text)


def truncated(x: exp.Expression, period: str, type: Type) -> exp.Expression:
    """The start of the year, quarter, month, week (from Monday), day or hour of x, of the same type as x.

    >>> render(truncated(column("d"), "week", "date"), "postgres")
    'CAST(DATE_TRUNC(\\'week\\', CAST("d" AS TIMESTAMP)) AS DATE)'
    """
    if period not in PERIODS:
        raise InvalidArgument(message("date_trunc", f"one of {', '.join(PERIODS)}", "another period", "pass 'month'"))
    if type not in ("date", "timestamp"):
        raise InvalidArgument(message("date_trunc", "a date or a timestamp", type, "say its type in the card"))
    return cast(_call("DATE_TRUNC", exp.Literal.string(period), cast(x, "timestamp")), type)


def like(x: exp.Expression, pattern: str) -> exp.Expression:
    """``x LIKE pattern``: case matters, ``%`` any text, ``_`` one character, nothing else is special.

    A backslash escapes on PostgreSQL and Spark, and is itself on DuckDB. An escape that the pattern does not contain
    makes all of them the last.

    >>> render(like(column("x"), "50!%"), "duckdb")
    '"x" LIKE \\'50!%\\' ESCAPE \\'#\\''
    """
    escape = next((sign for sign in "!#$&*+-/:;<=>@^`|~?,." if sign not in pattern), None)
    if escape is None:
        raise InvalidArgument(message("LIKE", "a pattern that leaves one sign unused", "all of them", "shorten it"))
    return exp.Escape(this=exp.Like(this=_inner(x), expression=literal(pattern)), expression=literal(escape))


def lower(x: exp.Expression) -> exp.Expression:
    """ASCII letters in lower case; others stay, since engines fold them in different ways.

    >>> render(lower(column("x")), "duckdb")
    'TRANSLATE("x", \\'ABCDEFGHIJKLMNOPQRSTUVWXYZ\\', \\'abcdefghijklmnopqrstuvwxyz\\')'
    """
    return _call("TRANSLATE", x, exp.Literal.string(_UPPER), exp.Literal.string(_LOWER))


def upper(x: exp.Expression) -> exp.Expression:
    """ASCII letters in upper case; see :func:`lower`."""
    return _call("TRANSLATE", x, exp.Literal.string(_LOWER), exp.Literal.string(_UPPER))


def bytewise(x: exp.Expression, dialect: Dialect) -> exp.Expression:
    """Text that compares byte by byte. Columns of :attr:`Engine.table` do so already.

    >>> render(bytewise(column("x"), "postgres"), "postgres")
    '"x" COLLATE "C"'
    """
    if dialect != "postgres":
        return x.copy()
    return exp.Collate(this=_inner(x), expression=exp.to_identifier("C", quoted=True))


def in_calendar(x: exp.Expression, type: Type) -> exp.Expression:
    """A date or timestamp, NULL outside the years 1 to 9999 (and where a database says ``infinity``)."""
    first, last = literal(FIRST), literal(LAST)
    if type == "timestamp":
        first, last = literal(datetime.min), literal(datetime.max)
    return _case((exp.Between(this=_inner(x), low=first, high=last), x), otherwise=exp.null())


def _call(name: str, *arguments: exp.Expression) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _inner(x: exp.Expression) -> exp.Expression:
    """An operand: sqlglot renders trees as they are and adds no parentheses."""
    simple = isinstance(
        x, (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Cast, exp.Boolean, exp.Null, exp.Subquery)
    )
    return x.copy() if simple else exp.Paren(this=x.copy())


def _case(*arms: tuple[Any, Any], otherwise: exp.Expression) -> exp.Case:
    found = exp.Case(default=otherwise.copy())
    for condition, value in arms:
        found.append("ifs", exp.If(this=condition.copy(), true=value.copy()))
    return found


def _over(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    # typed and unsafe: as the engine divides, without casts or NULLIF that sqlglot would add
    return exp.Div(this=_inner(left), expression=_inner(right), typed=True, safe=False)


def _is_zero(x: exp.Expression) -> exp.Expression:
    return exp.EQ(this=_inner(x), expression=literal(0.0))


def _below(x: exp.Expression, limit: float) -> exp.Expression:
    return exp.LT(this=_inner(x), expression=literal(limit))


def _above(x: exp.Expression, limit: float) -> exp.Expression:
    return exp.GT(this=_inner(x), expression=literal(limit))
