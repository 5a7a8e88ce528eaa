"""SQL with its type, and the constants and names that it is made of, written so that every engine reads the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime

from dither.errors import InvalidArgument, WrongType, message
from dither.tables.card.model import Type, Value
from dither.tables.query.ranges import MOST, Range

MAX_LENGTH = 1 << 20
"""Characters of SQL that the expressions of one statement may have together."""


@dataclass(frozen=True)
class Typed:
    """SQL with its type; for numbers, the range of its values; ``op`` is what stands between its parentheses."""

    sql: str
    type: Type
    range: Range | None = None
    op: str = ""

    def __post_init__(self) -> None:
        repeated(self.sql, 1)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The least and the largest value, where they are known."""
        return None if self.range is None else (self.range.low, self.range.high)

    def within(self, *ops: str) -> str:
        """As the first operand of one of these: a chain needs no parentheses, and stays flat however long it is."""
        return self.sql[1:-1] if self.op in ops else self.sql


def repeated(sql: str, times: int) -> str:
    """SQL that is to be written so many times, refused where that is too long."""
    check_length(len(sql) * times)
    return sql


def check_length(characters: int) -> None:
    """Refuse expressions that are too long together to be run as one statement."""
    if characters > MAX_LENGTH:
        fix = "ask for fewer aggregates, or use fewer operations inside each other"
        raise InvalidArgument(message("expressions", f"at most {MAX_LENGTH} characters of SQL", "more", fix))


def name(identifier: str) -> str:
    """A quoted name.

    >>> name('a"b')
    '"a""b"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def text(value: str) -> str:
    """A quoted text.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def double(value: float) -> str:
    """A double, written so that every engine reads the same one.

    >>> double(0.1)
    'CAST(0.1 AS DOUBLE)'
    """
    return f"CAST({float(value)!r} AS DOUBLE)"


def whole(value: int) -> str:
    """A whole number of 64 bits. Written as text, since a minus sign would be an operation on a number of 65 bits.

    >>> whole(-7)
    "CAST('-7' AS BIGINT)"
    """
    return f"CAST('{value}' AS BIGINT)"


def literal(value: Value) -> Typed:
    """A constant.

    >>> literal(3).sql, literal("a").type
    ("CAST('3' AS BIGINT)", 'text')
    """
    if value is None:
        return Typed("NULL", "text")
    if isinstance(value, bool):
        return Typed("TRUE" if value else "FALSE", "boolean")
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise InvalidArgument(message("number", "an integer of 64 bits", "a larger one", "write it with a point"))
        return Typed(whole(value), "integer", Range.constant(value))
    if isinstance(value, float):
        if not math.isfinite(value) or abs(value) > MOST or 0 < abs(value) < 1 / MOST:
            raise InvalidArgument(message("number", "one between 1e-150 and 1e150 in size", "another", "leave it out"))
        return Typed(double(value), "number", Range.constant(value))
    if isinstance(value, datetime):
        plain = value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        return Typed(f"CAST({text(plain)} AS TIMESTAMP)", "timestamp")
    if isinstance(value, date):
        return Typed(f"CAST({text(value.isoformat())} AS DATE)", "date")
    if isinstance(value, str) and "\0" not in value:
        return Typed(text(value), "text")
    raise WrongType(message("value", "a number, text, boolean or date", type(value).__name__, "pass one of these"))


__all__ = ["MAX_LENGTH", "Typed", "check_length", "double", "literal", "name", "repeated", "text", "whole"]
