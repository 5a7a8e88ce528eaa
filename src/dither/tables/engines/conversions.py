"""Columns whose source holds them as another type: dates written as text, whole numbers stored as doubles.

What cannot be read is NULL, on every engine the same: a text is checked by patterns before it is cast, so that no cast
can fail, and none is more generous than another.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from dither.tables.card.formats import WIDTHS, parts_of
from dither.tables.card.model import Type
from dither.tables.card.values import EXACT_INTEGERS
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary

_YEAR = "[0-9]{4}"
_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAY = (
    f"({_YEAR}-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|{_YEAR}-(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|{_YEAR}-02-(0[1-9]|1[0-9]|2[0-8])|{_LEAP_YEAR}-02-29)"
)
_TIME = " ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"


def parsed_text(x: exp.Expr, format: str, type: Type, dialect: Dialect) -> exp.Expr:
    """A text as the date or timestamp that it writes in this format; NULL where it does not, or there is no such day.

    >>> nodes.render(parsed_text(nodes.column("day"), "%d.%m.%Y", "date", "duckdb"), "duckdb")[:30]
    'CASE WHEN (LENGTH("day") = 10)'
    """
    pieces: dict[str, exp.Expr] = {}
    pattern, place = "", 1
    for name, width in parts_of(format):
        if name in WIDTHS and width == WIDTHS[name]:
            start, size = exp.Literal.number(place), exp.Literal.number(width)
            pieces[name] = nodes.call("SUBSTRING", x.copy(), start, size)
            pattern += f"[0-9]{{{width}}}"
        else:
            pattern += f"[{name}]"
        place += width
    day = _joined([pieces["Y"], pieces["m"], pieces["d"]], "-")
    valid = _DAY
    if type == "timestamp":
        day = _joined([day, _joined([pieces.get(name, exp.Literal.string("00")) for name in "HMS"], ":")], " ")
        valid += _TIME
    conditions = [
        binary("=", nodes.call("LENGTH", x.copy()), exp.Literal.number(place - 1)),
        _matches(x.copy(), pattern, dialect),
        _matches(day.copy(), valid, dialect),
        binary("<>", pieces["Y"].copy(), exp.Literal.string("0000")),
    ]
    moment = nodes.try_cast(day, type) if dialect == "duckdb" else nodes.cast(day, type)
    return nodes.case([(reduce(lambda one, other: binary("and", one, other), conditions), moment)], exp.null())


def whole_double(x: exp.Expr) -> exp.Expr:
    """A double as a BIGINT, NULL where it is no whole number, or one so large that another has the same double.

    >>> nodes.render(whole_double(nodes.column("x")), "duckdb")[:30]
    'CASE WHEN ("x" >= CAST(\\'-90071'
    """
    within = binary(
        "and",
        binary(">=", x.copy(), nodes.double(-EXACT_INTEGERS)),
        binary("<=", x.copy(), nodes.double(EXACT_INTEGERS)),  # NaN is larger than every number
    )
    whole = binary("=", x.copy(), nodes.call("FLOOR", x.copy()))
    converted = nodes.case([(whole, nodes.cast(x, "integer"))], exp.null())
    return nodes.case([(within, converted)], exp.null())


def unit_text(x: exp.Expr, canonical: exp.Expr, dialect: Dialect, *, is_double: bool = False) -> exp.Expr:
    """A column that names people as text: of every value but NULL and NaN a text of its own.

    ``canonical`` is the column as text, NULL where it is not valid. A text that no function of ours may be given (one
    that is not valid, or too long) is stood for by its SHA-256. Two doubles that are equal have one text; whole numbers
    have that of a BIGINT. NaN, which stands for a missing number, is nobody.

    >>> nodes.render(unit_text(nodes.column("x"), nodes.column("x"), "spark"), "spark")[:31]
    'COALESCE(CASE WHEN OCTET_LENGTH'
    """
    if is_double:
        whole = nodes.cast(whole_double(x.copy()), "text")
        number = binary("<=", x.copy(), nodes.double(float("inf")))  # NaN is larger than every number
        return nodes.case([(number, nodes.coalesce(whole, canonical))], exp.null())
    text = nodes.cast(x.copy(), "text")
    return nodes.coalesce(nodes.limit_text(canonical, text.copy(), dialect), _digest(text, dialect))


def _digest(text: exp.Expr, dialect: Dialect) -> exp.Expr:
    """The SHA-256 of a text, in hexadecimal, after its name."""
    if dialect == "postgres":
        raw = nodes.call("SHA256", nodes.call("CONVERT_TO", text, exp.Literal.string("UTF8")))
        hashed = nodes.call("ENCODE", raw, exp.Literal.string("hex"))
    elif dialect == "spark":
        raw = exp.Cast(this=text, to=exp.DataType.build("BINARY"))
        hashed = exp.Anonymous(this="SHA2", expressions=[raw, exp.Literal.number(256)])
    else:
        hashed = nodes.call("SHA256", text)
    return nodes.bytewise(nodes.concatenate(exp.Literal.string("sha256:"), hashed), dialect)


def _joined(pieces: list[exp.Expr], sign: str) -> exp.Expr:
    return reduce(
        lambda one, other: nodes.concatenate(nodes.concatenate(one, exp.Literal.string(sign)), other),
        [piece.copy() for piece in pieces],
    )


def _matches(x: exp.Expr, pattern: str, dialect: Dialect) -> exp.Expr:
    """Whether the whole of a text fits a regular expression of digits, signs, choices and counts."""
    if dialect == "duckdb":
        return nodes.call("REGEXP_FULL_MATCH", x, exp.Literal.string(pattern))
    return exp.RegexpLike(this=nodes.operand(x), expression=exp.Literal.string(f"^({pattern})$"))


__all__ = ["parsed_text", "unit_text", "whole_double"]
