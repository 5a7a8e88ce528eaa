"""Values of cards and questions: plain constants, the formats of text columns, and names in messages.

A constant is made plain where it enters. A subclass of ``str``, ``int``, ``float``, ``date`` or ``datetime`` may print
as anything: a member of ``class Region(str, Enum)`` prints as ``Region.NORTH``, and pandas' NaT is a ``datetime``.
Written into SQL such a text would mean another constant, or one that cannot be read, and a statement that fails once a
row reaches it tells that the row is there.

>>> literal_type(1.5), literal_type("north")
('number', 'text')

A format says how a text column writes dates or numbers, so that every engine reads them alike. Of dates it is ``%Y``,
``%m``, ``%d`` and for timestamps also ``%H``, ``%M``, ``%S``, each at most once, with other characters between. The
year has four digits. The other parts have one or two, so that ``%m/%d/%Y`` reads ``1/2/2013`` and ``01/02/2013``, and
two where a part follows or precedes another one without a sign (``%Y%m%d``).

Of numbers it is the number 1234.56 as the column writes it, 1234 for a column of integers: ``"1.234,56"``,
``"1234,56"``, ``"$1,234.56"``, ``"1 234,56 €"``, ``"1234.56%"``. The thousands separator, the word or sign before or
after the number, the digits after the decimal sign and spaces around each of them may be missing in a cell. ``5%`` is
read as 5.

A text that is not of this form, or names no day of the calendar, is NULL.

>>> FORMATS["date"], [part.name for part in parts_of("%d.%m.%Y")]
('%Y-%m-%d', ['d', '.', 'm', '.', 'Y'])
>>> number_format("1.234,56 €", "number")
NumberFormat(before='', thousands='.', decimal=',', after='€')
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument, WrongType

if TYPE_CHECKING:
    from dither.tables.card.model import Type


def nearest(name: str, names: Iterable[str], likeness: float = 0.6, quote: str | None = "'") -> str | None:
    """Return advice to write the one of ``names`` that is most like an unknown ``name``; None where none is similar.

    ``likeness`` is the least similarity, from 0 to 1 as by ``difflib``; case does not count. With ``quote=None`` the
    name is written as in SQL: without quotes, or in double quotes where it has spaces or signs.
    """
    known = {item.casefold(): item for item in names}
    near = difflib.get_close_matches(name.casefold()[:200], known, n=1, cutoff=likeness)
    if not near:
        return None
    result = known[near[0]]
    quote = quote if quote is not None else "" if result.isidentifier() else '"'
    return f"write {quote}{result}{quote}, the nearest name"


def closest(name: str, names: Iterable[str]) -> str:
    """Return advice on an unknown name: the most similar known one, or the list of them."""
    known = list(names)
    return nearest(name, known) or (f"use one of {', '.join(known[:20])}" if known else "there is none")


def clip(text: str, length: int = 60) -> str:
    """Return a text shortened to a length for messages, with … where it was cut."""
    return text if len(text) <= length else f"{text[:length]}…"


Value = None | bool | int | float | str | date | datetime
"""A constant of a question or a card."""

LARGEST_INTEGER = 2**63 - 1
"""The largest whole number of 64 bits."""
EXACT_INTEGERS = 1 << 53
"""Up to this size every whole number is a double of its own."""

_PLAIN = frozenset({type(None), bool, int, float, str, date, datetime})
_EXPECTED = "a number, text, boolean, date, datetime or None"


def plain_value(value: Any) -> Value:
    """Return a constant as exactly one of Python's plain types, without subclasses; refuse other types."""
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
    """Return public keys as plain values; None where none are stated."""
    return None if keys is None else tuple(plain_value(key) for key in keys)


def _plain_datetime(value: datetime) -> datetime:
    """Return a plain datetime, without what a subclass adds; refuse NaT and fractions of a microsecond."""
    if type(value) is not datetime and (value != value or getattr(value, "nanosecond", 0) != 0):
        got = "NaT, or a fraction of a microsecond"
        raise WrongType("literal", f"{_EXPECTED}, to the microsecond", got, "use None, or round it")
    parts = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
    return datetime(*(getattr(datetime, part).__get__(value) for part in parts))


def literal_type(value: Value) -> Type | None:
    """Return the type of a constant, None for NULL; refuse constants that some engine cannot hold, such as NaN or
    times with a zone."""
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
    """Return whether a text can be written in UTF-8: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


FORMATS = {"date": "%Y-%m-%d", "timestamp": "%Y-%m-%d %H:%M:%S", "number": "1,234.56", "integer": "1,234"}
"""A format of each type that may have one, as an example."""
WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_DAY, _TIME = {"Y", "m", "d"}, {"H", "M", "S"}
_PLAIN_SIGNS = re.compile(r"[ -$&-/:-@A-Za-z_]")
"""What may stand between the parts: no digit, and nothing that is an operator of patterns on some engine."""
_LONGEST = 40
_NUMBER = re.compile(r"(?P<before>[^0-9]*?) ?1(?P<thousands>[,.' ]?)234(?:(?P<decimal>[,.])56)? ?(?P<after>[^0-9]*)")


@dataclass(frozen=True)
class DatePart:
    """A part of a format: the letter of one that has ``least`` to ``most`` digits, or a sign that stands for itself."""

    name: str
    least: int = 0
    most: int = 0


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are written: the word or sign before and after them, the thousands separator and the decimal sign."""

    before: str
    thousands: str
    decimal: str
    after: str


def format_problem(format: str, kind: str) -> str:
    """Return what is expected instead of an invalid column format, for the error; an empty text if it is valid."""
    if len(format) > _LONGEST:
        return f"at most {_LONGEST} characters"
    if kind in ("integer", "number"):
        how = "1234.56 as the column writes it" if kind == "number" else "1234 as the column writes it"
        return "" if number_format(format, kind) is not None else f"the number {how}"
    names = re.findall(r"%(.)", format)
    known = _DAY | _TIME if kind == "timestamp" else _DAY
    if set(names) - known or len(set(names)) < len(names) or not set(names) >= _DAY:
        return "%Y, %m and %d, each once" + (", and any of %H, %M and %S" if kind == "timestamp" else "")
    if ("M" in names and "H" not in names) or ("S" in names and "M" not in names):
        return "%H with %M, and %M with %S"
    if not all(_PLAIN_SIGNS.fullmatch(sign) for sign in re.sub(r"%.", "", format)):
        return "letters, spaces and signs between the parts"
    return ""


def parts_of(format: str) -> list[DatePart]:
    """Return the parts of a date format in order, each with its least and largest number of digits.

    Parts without a character between them must have all their digits, so that a text can be split; a year always has
    four.
    """
    pieces = re.findall(r"%([YmdHMS])|([^%])", format)
    result = []
    for place, (name, sign) in enumerate(pieces):
        beside = [pieces[other][0] for other in (place - 1, place + 1) if 0 <= other < len(pieces)]
        least = WIDTHS[name] if name and (name == "Y" or any(beside)) else 1
        result.append(DatePart(name, least, WIDTHS[name]) if name else DatePart(sign))
    return result


def number_format(format: str, kind: str) -> NumberFormat | None:
    """Return the notation of a number format (units and separators); None where it is not 1234.56, or 1234 for
    integers, in some notation."""
    match = _NUMBER.fullmatch(format)
    if match is None:
        return None
    result = NumberFormat(match["before"], match["thousands"], match["decimal"] or "", match["after"])
    if bool(result.decimal) != (kind == "number") or (result.decimal and result.decimal == result.thousands):
        return None
    return result if all(map(_is_unit, filter(None, (result.before, result.after)))) else None


def _is_unit(text: str) -> bool:
    """Return whether a text may stand before or after a number: letters, currency signs, % and points, such as
    ``Fr.``, but not a point alone, which could be a decimal sign."""
    kinds = [sign if sign in "%." else unicodedata.category(sign)[:2] for sign in text]
    letters = all(kind in ("%", ".", "Sc") or kind.startswith("L") for kind in kinds)
    return letters and set(text) != {"."} and len(text) <= 8
