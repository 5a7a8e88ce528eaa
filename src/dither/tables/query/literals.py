"""Constants of a question: which values may be written, their types, and texts that name dates.

>>> literal_type(1.5), as_date("2024-02-29")
('number', datetime.date(2024, 2, 29))
"""

from __future__ import annotations

import math
from datetime import date, datetime, time

from dither.errors import InvalidArgument, message
from dither.tables.card.model import Type
from dither.tables.card.values import Value, plain_value
from dither.tables.query.wording import clip

LARGEST_INTEGER = 2**63 - 1
"""The largest whole number of 64 bits."""


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
            raise InvalidArgument(
                message("number", "at most 64 bits", "more", "write it as 1e30, or use a smaller one")
            )
        return "integer"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument(message("number", "a finite number", value, "use a number below 1.8e308"))
        return "number"
    if isinstance(value, str):
        if "\0" in value or not _encodes(value):
            raise InvalidArgument(message("text", "valid Unicode without NUL", "a text that is not", "take it out"))
        return "text"
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise InvalidArgument(message("timestamp", "no time zone", "a time zone", "write it in the column's zone"))
        return "timestamp"
    return "date"


def as_date(text: str) -> date:
    """The date a text names, as YYYY-MM-DD.

    >>> as_date("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    try:
        value = date.fromisoformat(text)
    except ValueError:
        value = None
    if value is None or value.isoformat() != text:
        moment = None if value is not None else _moment(text)
        if moment is not None and moment.time() == time():
            return moment.date()
        got = "a time of day" if moment is not None else repr(clip(text))
        raise InvalidArgument(message("date", "a date as 'YYYY-MM-DD'", got, "write for example '2024-01-31'"))
    return value


def as_timestamp(text: str) -> datetime:
    """The moment a text names, as YYYY-MM-DD or YYYY-MM-DD HH:MM[:SS[.ffffff]].

    >>> as_timestamp("2024-02-29 12:30")
    datetime.datetime(2024, 2, 29, 12, 30)
    """
    value = _moment(text)
    if value is None:
        expected = "a timestamp as 'YYYY-MM-DD HH:MM:SS', without time zone"
        raise InvalidArgument(
            message("timestamp", expected, repr(clip(text)), "write for example '2024-01-31 12:00:00'")
        )
    return value


def _moment(text: str) -> datetime | None:
    try:
        value = datetime.fromisoformat(text)
        day = date.fromisoformat(text[:10])
    except ValueError:
        return None
    return value if value.tzinfo is None and day.isoformat() == text[:10] and len(text) <= 26 else None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


__all__ = ["LARGEST_INTEGER", "as_date", "as_timestamp", "literal_type"]
