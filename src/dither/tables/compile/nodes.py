"""The few things that DuckDB, PostgreSQL and Spark say differently, each in a form on which they agree to the bit.

Every function takes and returns sqlglot expressions and reads nothing. What they rely on is tested on all three engines
in ``tests/tables/compile/test_nodes.py``; the sessions that make it so (UTC, ANSI mode, plain string literals) are
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
from dither.tables.card.model import Type, Value

Dialect = Literal["duckdb", "postgres", "spark"]
DIALECTS: tuple[Dialect, ...] = ("duckdb", "postgres", "spark")

FIRST, LAST = date.min, date.max
"""The dates every engine and Python can hold; others are NULL."""

MAX_TEXT_BYTES = 1 << 16
"""The longest text of a column, in bytes of UTF-8; longer ones are NULL on every engine.

Engines fail on long texts, and such an error would depend on one value: PostgreSQL's TRANSLATE allocates four times
the text and no more than 1 GB, and no row of an intermediate result may exceed 1 GB either. A row has at most 1,664
columns, so with this limit it stays near 100 MB. No operation makes a text longer: limiting the columns is enough.
"""

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


def whole_quotient(left: exp.Expression, right: exp.Expression, dialect: Dialect) -> exp.Expression:
    """``left // right`` of BIGINTs, left not negative and right positive.

    >>> [render(whole_quotient(column("a"), column("b"), dialect), dialect) for dialect in DIALECTS]
    ['("a" // "b")', '("a" / "b")', '(`a` DIV `b`)']
    """
    if dialect == "postgres":
        return exp.Paren(this=_over(left, right))
    return exp.Paren(this=exp.IntDiv(this=_inner(left), expression=_inner(right)))


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


def bytewise(x: exp.Expression, dialect: Dialect) -> exp.Expression:
    """Text that compares byte by byte. Columns of :attr:`Engine.table` do so already.

    >>> render(bytewise(column("x"), "postgres"), "postgres")
    '"x" COLLATE "C"'
    """
    if dialect != "postgres":
        return x.copy()
    return exp.Collate(this=_inner(x), expression=exp.to_identifier("C", quoted=True))


def limited(x: exp.Expression, text: exp.Expression, dialect: Dialect) -> exp.Expression:
    """``x``, or NULL where ``text``, which it is made of, is longer than :data:`MAX_TEXT_BYTES`.

    >>> render(limited(column("x"), column("x"), "postgres"), "postgres")
    'CASE WHEN OCTET_LENGTH("x") <= 65536 THEN "x" ELSE NULL END'
    """
    size = _call("STRLEN" if dialect == "duckdb" else "OCTET_LENGTH", text)
    limit = exp.Literal.number(MAX_TEXT_BYTES)
    return _case((exp.LTE(this=size, expression=limit), x), otherwise=exp.null())


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
    result = exp.Case(default=otherwise.copy())
    for condition, value in arms:
        result.append("ifs", exp.If(this=condition.copy(), true=value.copy()))
    return result


def _over(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    # typed and unsafe: as the engine divides, without casts or NULLIF that sqlglot would add
    return exp.Div(this=_inner(left), expression=_inner(right), typed=True, safe=False)
