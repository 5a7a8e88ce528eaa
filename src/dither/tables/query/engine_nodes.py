"""SQL of texts and dates, much of which :func:`dither.tables.query.nodes.render` writes differently for each engine."""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from dither.tables.card.model import Type
from dither.tables.query import nodes


def text_bytes(x: exp.Expr) -> exp.Expr:
    """How many bytes a text has in UTF-8.

    >>> [nodes.render(text_bytes(nodes.column("x")), dialect) for dialect in nodes.DIALECTS]
    ['STRLEN("x")', 'OCTET_LENGTH("x")', 'OCTET_LENGTH(`x`)']
    """
    return nodes.call("_text_bytes", x)


def text_position(x: exp.Expr, part: exp.Expr) -> exp.Expr:
    """Where a text first occurs in another, from 1 on; 0 where it does not."""
    return nodes.call("_text_position", x, part)


def starts_with(x: exp.Expr, start: exp.Expr) -> exp.Expr:
    """Whether a text begins with another."""
    return nodes.call("_starts_with", x, start)


def fits(x: exp.Expr, characters: str, pattern: str) -> exp.Expr:
    """Whether a text consists of ``characters``, as a class of a regular expression says them, and is of a pattern.

    The pattern has no backslash and stands alone in ``^(…)$``. The characters leave line ends out: before one at the
    end of a text ``$`` would match in Java.
    """
    other = exp.RegexpLike(this=nodes.operand(x), expression=exp.Literal.string(f"[^{characters}]"))
    whole = exp.RegexpLike(this=nodes.operand(x), expression=exp.Literal.string(f"^({pattern})$"))
    return nodes.binary("and", nodes.not_(exp.Paren(this=other)), exp.Paren(this=whole))


def trim(x: exp.Expr, side: Literal["both", "leading", "trailing"]) -> exp.Expr:
    """A text without the spaces at its ends, or at one of them; other white space stays.

    >>> nodes.render(trim(nodes.column("x"), "both"), "postgres")
    'TRIM(BOTH \\' \\' FROM "x")'
    """
    return exp.Trim(this=x, expression=exp.Literal.string(" "), position=side.upper())


def days_between(end: exp.Expr, start: exp.Expr) -> exp.Expr:
    """How many days one date is after another, as a BIGINT.

    >>> [nodes.render(days_between(nodes.column("a"), nodes.column("b")), dialect) for dialect in nodes.DIALECTS]
    ['CAST((("a") - ("b")) AS BIGINT)', 'CAST((("a") - ("b")) AS BIGINT)', 'CAST(DATEDIFF(`a`, `b`) AS BIGINT)']
    """
    return nodes.cast(nodes.call("_days_between", end, start), "integer")


def date_part(part: str, x: exp.Expr) -> exp.Expr:
    """A part of a date or timestamp as a BIGINT: whole seconds, weeks by ISO 8601, Monday as day 1 of 7.

    >>> [nodes.render(date_part("isodow", nodes.column("x")), dialect) for dialect in ("duckdb", "spark")]
    ['CAST(FLOOR(EXTRACT(ISODOW FROM "x")) AS BIGINT)', 'CAST(FLOOR(EXTRACT(DAYOFWEEK_ISO FROM `x`)) AS BIGINT)']
    """
    extracted = (
        nodes.call("_day_of_week", x)
        if part == "isodow"
        else exp.Extract(this=exp.Var(this=part.upper()), expression=x)
    )
    return nodes.cast(nodes.call("FLOOR", extracted), "integer")


def start_of_period(period: str, x: exp.Expr, type: Type) -> exp.Expr:
    """The first moment of a date's year, quarter, month, week or day, or of a timestamp's hour, of the same type.

    >>> nodes.render(start_of_period("month", nodes.column("d"), "date"), "duckdb")
    'CAST(DATE_TRUNC(\\'MONTH\\', "d") AS DATE)'
    """
    return nodes.cast(exp.TimestampTrunc(this=x, unit=exp.Var(this=period.upper())), type)


def add_interval(x: exp.Expr, count: int, unit: str, type: Type) -> exp.Expr:
    """A date or timestamp so many units later, of the same type; it must be known to stay within the calendar.

    >>> nodes.render(add_interval(nodes.column("x"), -2, "month", "date"), "postgres")
    'CAST("x" + INTERVAL \\'-2 MONTH\\' AS DATE)'
    """
    interval = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.Var(this=unit.upper()))
    return nodes.cast(exp.Add(this=nodes.operand(x), expression=interval), type)


def is_same(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Whether two values are equal or both NULL: never NULL itself.

    >>> [nodes.render(is_same(nodes.column("a"), nodes.column("b")), dialect) for dialect in ("duckdb", "spark")]
    ['"a" IS NOT DISTINCT FROM "b"', '`a` IS NOT DISTINCT FROM `b`']
    """
    return exp.NullSafeEQ(this=nodes.operand(left), expression=nodes.operand(right))


def timestamp_text(x: exp.Expr) -> exp.Expr:
    """A timestamp as text, with six digits after the seconds.

    >>> nodes.render(timestamp_text(nodes.column("x")), "spark")
    "DATE_FORMAT(`x`, 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
    """
    return nodes.call("_timestamp_text", x)


def limit_text(x: exp.Expr, size: exp.Expr, most: int) -> exp.Expr:
    """A text, or NULL where its ``size`` is above ``most``.

    >>> nodes.render(limit_text(nodes.column("x"), text_bytes(nodes.column("x")), 1024), "postgres")
    'CASE WHEN OCTET_LENGTH("x") <= 1024 THEN "x" ELSE NULL END'
    """
    return nodes.case([(nodes.binary("<=", size, nodes.integer(most)), x)], exp.null())
