"""Constants as JSON: what JSON has no type of is an object with one field that names the type.

>>> to_json(date(2024, 1, 31)), from_json({"date": "2024-01-31"}, "day")
({'date': '2024-01-31'}, datetime.date(2024, 1, 31))
"""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from dither.errors import InvalidArgument, WrongType
from dither.tables.card.values import Value
from dither.wire.documents import kind_of
from dither.wire.numbers import MOST_DIGITS, fraction

_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_LONGEST = 2 * MOST_DIGITS + 2


def to_json(value: Any) -> Any:
    """A constant of a question or a card as JSON has it; its type is kept."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    raise WrongType("value", "a number, text, boolean, date or None", type(value).__name__, "convert it")


def from_json(document: object, what: str) -> Value | Fraction:
    """The constant."""
    if document is None or isinstance(document, (bool, int, float, str)):
        return document
    if isinstance(document, dict) and len(document) == 1:
        ((kind, text),) = document.items()
        reader: Any = _READERS.get(kind)
        if reader is not None and isinstance(text, str) and len(text) <= _LONGEST:
            try:
                result: Value | Fraction | None = reader(text)
            except (ValueError, OverflowError):
                result = None
            if result is not None:
                return result
    expected = "a number, text, true, false, null, or an object with date, timestamp, float or fraction"
    got = "another object" if isinstance(document, dict) else kind_of(document)
    raise InvalidArgument(what, expected, got, 'write {"date": "2024-01-31"} for a date')


_READERS = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "float": _NOT_FINITE.get,
    "fraction": fraction,
}
