"""How text columns write dates: a few parts of fixed width, so that every engine reads the same from them.

A format is ``%Y``, ``%m``, ``%d`` and for timestamps also ``%H``, ``%M``, ``%S``, each at most once, with other
characters between them. A text that is not of this form, or names no day of the calendar, is NULL.

>>> FORMATS["date"], parts_of("%d.%m.%Y")
('%Y-%m-%d', [('d', 2), ('.', 1), ('m', 2), ('.', 1), ('Y', 4)])
"""

from __future__ import annotations

import re

FORMATS = {"date": "%Y-%m-%d", "timestamp": "%Y-%m-%d %H:%M:%S"}
WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_DAY, _TIME = {"Y", "m", "d"}, {"H", "M", "S"}
_PLAIN = re.compile(r"[ -$&-/:-@A-Za-z_]")
"""What may stand between the parts: no digit, and nothing that is an operator of patterns on some engine."""


def format_problem(format: str, kind: str) -> str:
    """What a format should have been; nothing where it can be used.

    >>> format_problem("%Y-%m", "date")
    '%Y, %m and %d, each once'
    """
    if len(format) > 40:
        return "at most 40 characters"
    names = re.findall(r"%(.)", format)
    known = _DAY | _TIME if kind == "timestamp" else _DAY
    if set(names) - known or len(set(names)) < len(names) or not set(names) >= _DAY:
        return "%Y, %m and %d, each once" + (", and any of %H, %M and %S" if kind == "timestamp" else "")
    if ("M" in names and "H" not in names) or ("S" in names and "M" not in names):
        return "%H with %M, and %M with %S"
    if not all(_PLAIN.fullmatch(sign) for sign in re.sub(r"%.", "", format)):
        return "letters, spaces and signs between the parts"
    return ""


def parts_of(format: str) -> list[tuple[str, int]]:
    """The parts of a format in order: the letter of a part and its width, or a character that stands for itself."""
    return [(name, WIDTHS[name]) if name else (sign, 1) for name, sign in re.findall(r"%([YmdHMS])|([^%])", format)]


__all__ = ["FORMATS", "WIDTHS", "format_problem", "parts_of"]
