"""Constants of cards and questions as plain Python values.

A subclass of ``str``, ``int``, ``float``, ``date`` or ``datetime`` may print as anything: a member of ``class
Region(str, Enum)`` prints as ``Region.NORTH``, and pandas' NaT is a ``datetime``. Written into SQL such a text would
mean another constant, or one that cannot be read, and a statement that fails once a row reaches it tells that the row
is there. So every constant is made plain where it enters, and only plain ones are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from dither.errors import WrongType, message

Value = None | bool | int | float | str | date | datetime
"""A constant of a question or a card."""

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
    raise WrongType(message("literal", _EXPECTED, type(value).__name__, "convert it"))


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
        raise WrongType(message("literal", f"{_EXPECTED}, to the microsecond", got, "use None, or round it"))
    parts = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
    return datetime(*(getattr(datetime, part).__get__(value) for part in parts))


__all__ = ["Value", "plain_keys", "plain_value"]
