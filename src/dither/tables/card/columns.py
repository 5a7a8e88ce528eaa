"""The columns of a card file: types, bounds, keys and formats; and how a mistake in a card is named."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any, cast

from dither.errors import InvalidArgument
from dither.tables.card.formats import FORMATS, format_problem
from dither.tables.card.model import TYPES, ColumnCard, Type
from dither.tables.card.values import Value
from dither.tables.card.wording import clip, nearest

_COLUMN = ("type", "bounds", "keys", "format")
_KINDS: dict[type, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list", dict: "a section",
    date: "a date", datetime: "a date with a time",
}  # fmt: skip

EXAMPLES: dict[Type, str] = {
    "integer": "1, 2, 3",
    "number": "0.5, 1.0",
    "text": '"north", "south"',
    "boolean": "true, false",
    "date": "2024-01-01, 2024-02-01",
    "timestamp": "2024-01-01T00:00:00, 2024-01-01T12:00:00",
}


def wrong(name: str, expected: str, got: str, fix: str) -> InvalidArgument:
    """A mistake in a card."""
    return InvalidArgument(name, expected, got, fix)


def kind_of(value: object) -> str:
    """What a value of TOML is, in words.

    >>> kind_of(True), kind_of("a")
    ('true or false', 'text')
    """
    return _KINDS.get(type(value), "something else")


def check_names(given: object, allowed: tuple[str, ...], where: str) -> None:
    """Refuse what is no section, and a section with a key that it cannot have."""
    if not isinstance(given, Mapping):
        raise wrong(where or "card", "a section", kind_of(given), f"write [{where}] and its keys below")
    for key in given:
        if key not in allowed:
            fix = nearest(str(key), allowed) or "remove it, or correct its name"
            raise wrong(f"{where}.{key}" if where else key, listed_with_or(allowed), "another key", fix)


def listed_with_or(words: tuple[str, ...]) -> str:
    """Words in a row.

    >>> listed_with_or(("a", "b", "c"))
    'a, b or c'
    """
    return f"{', '.join(words[:-1])} or {words[-1]}"


def columns_of(given: Mapping[str, Any], where: str) -> dict[str, ColumnCard]:
    """The columns of a card, or of a public table in it.

    >>> columns_of({"columns": {"age": {"type": "integer", "bounds": [0, 120]}}}, "")["age"].bounds
    (0, 120)
    """
    name = f"{where}.columns" if where else "columns"
    sections = given.get("columns")
    if not isinstance(sections, Mapping) or not sections:
        got = "none" if not sections else kind_of(sections)
        raise wrong(name, "a section for each column", got, f'write [{name}.age] and below it type = "integer"')
    result: dict[str, ColumnCard] = {}
    folded: dict[str, str] = {}
    for column, section in sections.items():
        if not column or "\0" in column or len(column.encode("utf-8", "replace")) > 255:
            raise wrong(name, "names of columns", "an empty or overlong one", "write the name as in the source")
        if folded.setdefault(column.casefold(), column) != column:
            raise wrong(f"{name}.{column}", "names that differ by more than case", "two alike", "rename one of them")
        result[column] = _column(section, f"{name}.{column}")
    return result


def _column(section: object, name: str) -> ColumnCard:
    if isinstance(section, str):
        section = {"type": section}
    check_names(section, _COLUMN, name)
    assert isinstance(section, Mapping)
    type = section.get("type")
    if type not in TYPES:
        got = "none" if type is None else repr(type) if isinstance(type, str) else kind_of(type)
        raise wrong(f"{name}.type", listed_with_or(TYPES), got, f'write type = "{_near_type(type)}"')
    dated = type in ("date", "timestamp")
    return ColumnCard(
        type,
        None if dated else _bounds(section.get("bounds"), type, name),
        _keys(section.get("keys"), type, name),
        _period(section.get("bounds"), type, name) if dated else None,
        _format(section.get("format"), type, name),
    )


def _near_type(given: object) -> str:
    known = {
        **dict.fromkeys(("int", "bigint", "smallint", "whole"), "integer"),
        **dict.fromkeys(("float", "double", "decimal", "real", "numeric"), "number"),
        **dict.fromkeys(("string", "str", "varchar", "char"), "text"),
        **dict.fromkeys(("datetime", "time"), "timestamp"),
        "bool": "boolean",
    }
    if isinstance(given, str):
        near = difflib.get_close_matches(given.lower(), TYPES, 1)
        return known.get(given.lower()) or (near[0] if near else "text")
    return "text"


def _bounds(given: object, type: Type, name: str) -> tuple[float, float] | None:
    if given is None:
        return None
    where, fix = f"{name}.bounds", "write bounds = [lower, upper], chosen without looking at the data"
    if type not in ("integer", "number"):
        raise wrong(where, "bounds of numbers or dates only", f"bounds of {type}", "remove them, or correct the type")
    if not isinstance(given, list) or len(given) != 2:
        got = f"{len(given)} values" if isinstance(given, list) else kind_of(given)
        raise wrong(where, "two numbers [lower, upper]", got, fix)
    for bound in given:
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            raise wrong(where, "two numbers [lower, upper]", kind_of(bound), fix)
        if not math.isfinite(bound) or abs(bound) > 1e100:
            raise wrong(where, "finite numbers, at most 1e100", str(bound), fix)
        if type == "integer" and (bound != int(bound) or not -(1 << 62) <= bound <= 1 << 62):
            raise wrong(where, "whole numbers of 63 bits for an integer", str(bound), 'or say type = "number"')
    low, high = given
    if not low < high:
        raise wrong(where, "lower below upper", f"[{low}, {high}]", "swap or widen them")
    return (int(low), int(high)) if type == "integer" else (low, high)


def _period(given: object, type: Type, name: str) -> tuple[date, date] | None:
    """The bounds of a column of dates or timestamps; a day as the last moment means its end."""
    if given is None:
        return None
    where, fix = f"{name}.bounds", "write bounds = [2024-01-01, 2024-12-31], without quotes"
    if not isinstance(given, list) or len(given) != 2 or not all(isinstance(bound, date) for bound in given):
        got = "others" if isinstance(given, list) else kind_of(given)
        raise wrong(where, "two dates [first, last]", got, fix)
    if type == "date" and any(isinstance(bound, datetime) for bound in given):
        raise wrong(where, "two dates [first, last]", "times of day", fix)
    first, last = given
    if type == "timestamp":
        first = _key(first, type, where) if isinstance(first, datetime) else datetime.combine(first, time())
        last = _key(last, type, where) if isinstance(last, datetime) else datetime.combine(last, time.max)
    if not first <= last:
        raise wrong(where, "the first not after the last", "the other order", "swap them")
    return first, last


def _format(given: object, type: Type, name: str) -> str | None:
    if given is None:
        return None
    where = f"{name}.format"
    if type not in FORMATS:
        expected = "a format of dates, timestamps or numbers only"
        raise wrong(where, expected, f"one of {type}", "remove it, or correct the type")
    if not isinstance(given, str):
        raise wrong(where, "text", kind_of(given), f'write format = "{FORMATS[type]}"')
    problem = format_problem(given, type)
    if problem:
        raise wrong(where, problem, repr(clip(given)), f'write format = "{FORMATS[type]}"')
    return given


def _keys(given: object, type: Type, name: str) -> tuple[Value, ...] | None:
    if given is None:
        return None
    where = f"{name}.keys"
    if not isinstance(given, list) or not given:
        got = "an empty list" if isinstance(given, list) else kind_of(given)
        raise wrong(where, "a list of the values that may occur", got, f"write keys = [{EXAMPLES[type]}]")
    result = tuple(_key(key, type, where) for key in given)
    if len(set(result)) != len(result):
        raise wrong(where, "values that differ", "one of them twice", "remove it")
    return result


_AS: dict[Type, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "text": (str,), "boolean": (bool,), "date": (date,),
    "timestamp": (datetime,),
}  # fmt: skip


def _key(key: object, type_: Type, where: str) -> Value:
    if type(key) not in _AS[type_]:
        expected = {"integer": "whole numbers", "number": "numbers", "text": 'text in "…"', "boolean": "true and false",
                    "date": "dates without quotes", "timestamp": "dates with times, without quotes"}[type_]  # fmt: skip
        raise wrong(where, f"{expected}, as the type {type_} says", kind_of(key), f"write keys = [{EXAMPLES[type_]}]")
    if type_ == "number":
        assert isinstance(key, (int, float))
        number = float(key)
        if not math.isfinite(number):
            raise wrong(where, "finite numbers", str(key), "remove it")
        return number
    if isinstance(key, int) and not -(1 << 63) <= key < 1 << 63:
        raise wrong(where, "whole numbers of 64 bits", "a larger one", "remove it")
    if isinstance(key, str) and "\0" in key:
        raise wrong(where, "text without a NUL", "one with it", "remove it")
    if isinstance(key, datetime) and key.tzinfo is not None:
        return key.astimezone(UTC).replace(tzinfo=None)
    return cast(Value, key)
