"""How text columns write dates and numbers, in forms that every engine reads alike.

**Dates.** A format is ``%Y``, ``%m``, ``%d`` and for timestamps also ``%H``, ``%M``, ``%S``, each at most once, with
other characters between them. The year has four digits. The other parts have one or two, so that ``%m/%d/%Y`` reads
``1/2/2013`` and ``01/02/2013``, and two where a part follows or precedes another one without a sign (``%Y%m%d``).

**Numbers.** A format is the number 1234.56 as the column writes it, 1234 for a column of integers: ``"1.234,56"``,
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

import re
import unicodedata
from dataclasses import dataclass

FORMATS = {"date": "%Y-%m-%d", "timestamp": "%Y-%m-%d %H:%M:%S", "number": "1,234.56", "integer": "1,234"}
"""A format of each type that may have one, as an example."""
WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_DAY, _TIME = {"Y", "m", "d"}, {"H", "M", "S"}
_PLAIN = re.compile(r"[ -$&-/:-@A-Za-z_]")
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
    """What a format should have been; nothing where it can be used.

    >>> format_problem("%Y-%m", "date")
    '%Y, %m and %d, each once'
    """
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
    if not all(_PLAIN.fullmatch(sign) for sign in re.sub(r"%.", "", format)):
        return "letters, spaces and signs between the parts"
    return ""


def parts_of(format: str) -> list[DatePart]:
    """The parts of a format of dates, in order.

    >>> parts_of("%m/%Y%d")[0], parts_of("%m/%Y%d")[3]
    (DatePart(name='m', least=1, most=2), DatePart(name='d', least=2, most=2))
    """
    pieces = re.findall(r"%([YmdHMS])|([^%])", format)
    result = []
    for place, (name, sign) in enumerate(pieces):
        beside = [pieces[other][0] for other in (place - 1, place + 1) if 0 <= other < len(pieces)]
        least = WIDTHS[name] if name and (name == "Y" or any(beside)) else 1
        result.append(DatePart(name, least, WIDTHS[name]) if name else DatePart(sign))
    return result


def number_format(format: str, kind: str) -> NumberFormat | None:
    """How the format of a column of numbers writes them; None where it is none.

    >>> number_format("$1,234", "integer")
    NumberFormat(before='$', thousands=',', decimal='', after='')
    """
    match = _NUMBER.fullmatch(format)
    if match is None:
        return None
    result = NumberFormat(match["before"], match["thousands"], match["decimal"] or "", match["after"])
    if bool(result.decimal) != (kind == "number") or (result.decimal and result.decimal == result.thousands):
        return None
    return result if all(map(_is_unit, filter(None, (result.before, result.after)))) else None


def _is_unit(text: str) -> bool:
    """Whether a text may stand beside a number: letters, signs of currencies, % and points, such as ``Fr.``; nothing
    that is an operator of patterns, nor a point alone, which might be taken for a decimal sign."""
    kinds = [sign if sign in "%." else unicodedata.category(sign)[:2] for sign in text]
    letters = all(kind in ("%", ".", "Sc") or kind.startswith("L") for kind in kinds)
    return letters and set(text) != {"."} and len(text) <= 8
