"""Constants of cards and questions as plain Python values.

A subclass of ``str``, ``int``, ``float``, ``date`` or ``datetime`` may print as anything: a member of ``class
Region(str, Enum)`` prints as ``Region.NORTH``, and pandas' NaT is a ``datetime``. Written into SQL such a text would
mean another constant, or one that cannot be read, and a statement that fails once a row reaches it tells that the row
is there. So every constant is made plain where it enters, and only plain ones are written.

>>> literal_type(1.5), literal_type("north")
('number', 'text')
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from dither.tables.card.model import Type

Value = None | bool | int | float | str | date | datetime
"""A constant of a question or a card."""

LARGEST_INTEGER = 2**63 - 1
"""The largest whole number of 64 bits."""
EXACT_INTEGERS = 1 << 53
"""Up to this size every whole number is a double of its own."""

_PLAIN = frozenset({type(None), bool, int, float, str, date, datetime})
_EXPECTED = "a number, text, boolean, date, datetime or None"


def plain_value(value: Any) -> Value:
    """The value itself, of exactly one of the plain types; other types are refused.

    >>> import enum
    >>> Region = enum.Enum("Region", {"NORTH": "north"}, type=str)
    >>> plain_value(Region.NORTH)
    'north'
    """
    if type(value) in _PLAIN:
        plain: Value = value
        return plain
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return value if isinstance(value, bool) else int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, datetime):
        return _plain_datetime(value)
    if isinstance(value, date):
        return date(*(getattr(date, part).__get__(value) for part in ("year", "month", "day")))
    if value is None:
        return None
    raise WrongType("literal", _EXPECTED, type(value).__name__, "convert it")


def plain_keys(keys: Iterable[Any] | None) -> tuple[Value, ...] | None:
    """Public keys as plain values; None where none are stated.

    >>> plain_keys(["a", 1])
    ('a', 1)
    """
    return None if keys is None else tuple(plain_value(key) for key in keys)


def _plain_datetime(value: datetime) -> datetime:
    """Without what a subclass adds; NaT, and moments finer than a microsecond, are refused."""
    if type(value) is not datetime and (value != value or getattr(value, "nanosecond", 0) != 0):
        got = "NaT, or a fraction of a microsecond"
        raise WrongType("literal", f"{_EXPECTED}, to the microsecond", got, "use None, or round it")
    parts = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
    return datetime(*(getattr(datetime, part).__get__(value) for part in parts))


def literal_type(value: Value) -> Type | None:
    """The type of a constant that can be written down in any engine.

    >>> literal_type(1.5)
    'number'
    """
    value = plain_value(value)
    if value is None or isinstance(value, bool):
        return None if value is None else "boolean"
    if isinstance(value, int):
        if not -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER:
            raise InvalidArgument("number", "at most 64 bits", "more", "write it as 1e30, or use a smaller one")
        return "integer"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument("number", "a finite number", value, "use a number below 1.8e308")
        return "number"
    if isinstance(value, str):
        if "\0" in value or not _encodes(value):
            raise InvalidArgument("text", "valid Unicode without NUL", "a text that is not", "take it out")
        return "text"
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise InvalidArgument("timestamp", "no time zone", "a time zone", "write it in the column's zone")
        return "timestamp"
    return "date"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
