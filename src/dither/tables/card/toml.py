"""Card files: a steward's TOML, read with every mistake named, and what it leaves out.

A card holds what is public. Its file looks like this::

    name = "visits"
    source = "visits.parquet"
    unit = "patient"

    [budget]
    epsilon = 1
    per = "person"

    [columns.patient]
    type = "integer"

    [columns.amount]
    type = "number"
    bounds = [0, 1000]

    [columns.region]
    type = "text"
    keys = ["north", "south"]

Paths in it start from the card's folder. A card of several tables about the same people has a section for each, in
place of its own source, unit and columns::

    name = "clinic"

    [tables.visits]
    source = "visits.parquet"
    unit = "patient"

    [tables.visits.columns.patient]
    type = "integer"

A table whose rows name no person has a path to the person in place of a unit: the row of another private table that
has the same key. That table has a unit, or a path of its own. A composite key has several equalities, joined by AND::

    [tables.procedures]
    source = "procedures.parquet"
    person = "visits via visit_id = id"

The person of a procedure is that of its visit. A procedure without a visit, and one whose visit has no patient, is
excluded from every answer. The steward asserts that a key has one person: a key with several belongs to the first of
them in order, which keeps answers private, and ``dither check`` counts such keys.

A series, which is released over time, has a section like this::

    [series.daily]
    over = "day"
    column = "visited_at"
    horizon = 365
    start = 2026-01-01
    epsilon = 1
    delta = 1e-9
    max_participations = 4
    groups = ["region"]
    aggregates = { n = "count", spend = "sum(amount)" }

``aggregates`` are ``"count"``, ``"people"``, ``"count(column)"`` and ``"sum(column)"``, each under its name.

A file that is no TOML is refused with the line of its first mistake; plans and configurations of servers are read so,
too.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Literal, cast

from dither.errors import DitherError, InvalidArgument
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.ledger.accounts import Limit
from dither.present.text import printable
from dither.tables.card.model import (
    MAX_INCIDENTS,
    MIN_EPSILON,
    NAME,
    TYPES,
    Card,
    ColumnCard,
    PersonPath,
    PrivateTable,
    PublicTable,
    SeriesCard,
    Type,
    check_private_tables,
    with_people_by_path,
)
from dither.tables.card.values import FORMATS, Value, clip, format_problem, nearest

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
    """Return the error for a mistake in a card."""
    return InvalidArgument(name, expected, got, fix)


def kind_of(value: object) -> str:
    """Return the kind of a TOML value in words, for messages."""
    return _KINDS.get(type(value), "something else")


def check_names(given: object, allowed: tuple[str, ...], where: str) -> None:
    """Refuse a value ``given`` that is no section, and a section with a key that is not ``allowed``.

    ``where`` is the name of the section in errors, empty for the whole card.
    """
    if not isinstance(given, Mapping):
        raise wrong(where or "card", "a section", kind_of(given), f"write [{where}] and its keys below")
    for key in given:
        if key not in allowed:
            fix = nearest(str(key), allowed) or "remove it, or correct its name"
            raise wrong(f"{where}.{key}" if where else key, listed_with_or(allowed), "an unknown key", fix)


def listed_with_or(words: tuple[str, ...]) -> str:
    """Return words as an enumeration: "a, b or c"."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def columns_of(given: Mapping[str, Any], where: str) -> dict[str, ColumnCard]:
    """Return the columns of a card, or of one of its tables, from the section ``columns`` of ``given``.

    ``where`` is the name of the table's section in errors, empty for the whole card. Names that differ by case alone
    are refused, since SQL does not tell them apart.
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
    """Return one column from its section of the card, or from its type alone, as in ``age = "integer"``."""
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
    """Return the type of a card that was probably meant, such as "integer" for "bigint"; "text" if none is near."""
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
    """Return the bounds of a column of numbers, checked against its ``type``; None where none are stated.

    Whole numbers are limited to 63 bits, so that sums of them and their negatives do not overflow.
    """
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
    """Return the bounds of a column of dates or timestamps; None where none are stated.

    For timestamps, a day as lower bound means its first moment and as upper bound its last.
    """
    if given is None:
        return None
    where, fix = f"{name}.bounds", "write bounds = [2024-01-01, 2024-12-31], without quotes"
    if not isinstance(given, list) or len(given) != 2 or not all(isinstance(bound, date) for bound in given):
        got = "values that are no dates" if isinstance(given, list) else kind_of(given)
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
    """Return the format of a text column that holds dates or numbers; None where none is stated."""
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
    """Return the public keys of a column as values of its ``type``; None where none are stated."""
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
    """Return one public ``key`` as a value of the column's type; ``where`` is its name in errors.

    Timestamps with a zone are converted to UTC. Whole numbers have 64 bits, as in databases.
    """
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


_SERIES = (
    "over", "column", "horizon", "start", "epsilon", "delta", "rho", "max_participations", "min_separation", "max_rows",
    "late", "arrived", "groups", "where", "aggregates",
)  # fmt: skip
_UNITS = ("hour", "day", "week", "month")
_AGGREGATE = re.compile(r"(count|people|sum)\s*(?:\(\s*([^()]+?)\s*\))?")
_OPTIONS = ("epsilon", "delta", "rho", "max_participations", "min_separation", "max_rows", "late", "arrived")


@dataclass(frozen=True)
class SeriesAggregate:
    """One aggregate of a series: its kind, and the column that it is of."""

    kind: str
    column: str | None

    @classmethod
    def read(cls, text: object, where: str) -> SeriesAggregate:
        """Return an aggregate as a card writes it."""
        result = _AGGREGATE.fullmatch(text) if isinstance(text, str) else None
        if result is None or (result[1] == "sum") > (result[2] is not None) or (result[1] == "people" and result[2]):
            expected = '"count", "people", "count(column)" or "sum(column)"'
            raise wrong(where, expected, clip(repr(text)), 'write aggregates = { n = "count", spend = "sum(amount)" }')
        return cls(result[1], result[2])


def series_of(given: object, columns: Mapping[str, ColumnCard]) -> dict[str, SeriesCard]:
    """Return the series of a card, checked as far as that is possible without a table."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not given:
        raise wrong("series", "a section for each series", kind_of(given), "write [series.daily]")
    result = {}
    for name, section in given.items():
        where = f"series.{name}"
        if not name.isidentifier():
            raise wrong(where, "a plain word for its name", repr(clip(name)), "write [series.daily]")
        check_names(section, _SERIES, where)
        result[name] = _series(section, where, columns)
    return result


def _series(section: Mapping[str, Any], where: str, columns: Mapping[str, ColumnCard]) -> SeriesCard:
    """Return one series from its section of the card; the columns it names must be in the card."""
    unit, column, start = section.get("over"), section.get("column"), section.get("start")
    if unit not in _UNITS:
        raise wrong(f"{where}.over", "hour, day, week or month", clip(repr(unit)), 'write over = "day"')
    for name in ("column", *(["arrived"] if "arrived" in section else [])):
        item = section.get(name)
        if not isinstance(item, str) or item not in columns or columns[item].type not in ("date", "timestamp"):
            raise wrong(
                f"{where}.{name}", "a column of dates or timestamps of the card", clip(repr(item)), f"correct {name}"
            )
    horizon = section.get("horizon")
    if not isinstance(horizon, int) or isinstance(horizon, bool) or horizon < 1:
        raise wrong(f"{where}.horizon", "how many periods there are", kind_of(horizon), "write horizon = 365")
    if start is not None and not isinstance(start, date):
        raise wrong(f"{where}.start", "a date", kind_of(start), "write start = 2026-01-01")
    groups = section.get("groups", [])
    if not isinstance(groups, list) or not all(isinstance(item, str) and item in columns for item in groups):
        raise wrong(f"{where}.groups", "columns of the card", clip(repr(groups)), 'write groups = ["region"]')
    condition = section.get("where")
    if condition is not None and not isinstance(condition, str):
        raise wrong(f"{where}.where", "a condition in SQL", kind_of(condition), 'write where = "amount > 0"')
    stated = section.get("aggregates")
    if not isinstance(stated, Mapping) or not stated:
        raise wrong(f"{where}.aggregates", "what to add up", kind_of(stated), 'write aggregates = { n = "count" }')
    for name, text in stated.items():
        SeriesAggregate.read(text, f"{where}.aggregates.{name}")
    if "epsilon" not in section and "rho" not in section:
        raise wrong(f"{where}.epsilon", "what the whole series costs", "nothing", "write epsilon = 1 and delta = 1e-9")
    for name in ("epsilon", "delta", "rho", "max_participations", "min_separation", "max_rows"):
        value = section.get(name, 1)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value <= 0:
            raise wrong(f"{where}.{name}", "a number above 0", kind_of(value), f"correct {name}")
    options = {name: section[name] for name in _OPTIONS if name in section}
    assert isinstance(column, str)
    return SeriesCard(unit, column, horizon, start, tuple(groups), condition, dict(stated), options)


_MOST_LINES = 1_000
"""How far back the beginning of a mistake is looked for."""


def read_bytes(place: Path, what: str, hint: str) -> bytes:
    """Return the bytes of a file; ``what`` it is, and a ``hint`` how to get one, are for messages."""
    try:
        return place.read_bytes()
    except IsADirectoryError:
        raise wrong(what, "a file", "a folder", f"name the {what} in it") from None
    except (OSError, ValueError):  # a NUL in the path is a ValueError
        raise missing(place, what, hint) from None


def contents(raw: bytes, what: str, place: Path | None = None) -> dict[str, Any]:
    """Parse the bytes of a TOML file; ``what`` it is and its ``place`` are for messages."""
    name = what if place is None else f"{what} {clip(place.name)}"
    try:
        text = raw.decode("utf-8-sig")
        return tomllib.loads(text)
    except UnicodeDecodeError:
        raise wrong(name, "a file in UTF-8", "another encoding", "save it as UTF-8") from None
    except RecursionError:
        raise wrong(name, "a file in TOML", "lists or tables nested too deep", "write them flat") from None
    except ValueError as error:  # TOMLDecodeError, and numbers too long to be read
        raise _mistake(str(error), text, name) from None


def missing(place: Path, what: str, hint: str) -> InvalidArgument:
    """Return the error for a file ``place`` that cannot be read, with a file of a similar name beside it as advice."""
    beside = [item.stem for item in place.parent.glob("*.toml")][:200] if place.parent.is_dir() else []
    near = difflib.get_close_matches(place.stem[:200], beside, n=1)
    fix = f"write '{near[0]}.toml', the nearest name" if near else f"check the path, {hint}"
    return wrong(what, "a file that can be read", f"none of the name {clip(place.name)!r}", fix)


def _mistake(reason: str, text: str, name: str) -> InvalidArgument:
    """Return the error for a file that is no TOML, with the position and line of the first mistake.

    Of what was never closed, a list or a text, the parser names the place where it gave up; the mistake is where it
    begins.
    """
    lines = text.splitlines()
    match = re.search(r"line ([0-9]+), column ([0-9]+)", reason)
    end = min(int(match[1]), len(lines)) if match else len(lines)
    begin = _beginning(lines, end)
    column = int(match[2]) if match and begin == end else len(lines[begin - 1].rstrip()) + 1 if begin == end else 1
    where = f"line {begin}, column {column}" if begin == end else f"what begins in line {begin}"
    got = f"a mistake in {where}: {_shown(lines[begin - 1])}" if lines else "a mistake"
    fix = 'write key = value there, with text in "…", lists in […] and sections as [name], each once'
    return wrong(name, "a file in TOML", got, fix)


def _beginning(lines: list[str], end: int) -> int:
    """Return the line in which the statement begins that the parser fails on in line ``end``: all lines before it
    can be parsed."""
    for before in range(end - 1, max(-1, end - _MOST_LINES), -1):
        try:
            tomllib.loads("\n".join(lines[:before]))
        except (ValueError, RecursionError):
            continue
        blank = (
            line for line in range(before, end) if lines[line].strip() and not lines[line].lstrip().startswith("#")
        )
        return next(blank, end - 1) + 1
    return end


def _shown(line: str) -> str:
    """Return a line of a file for a message, without passwords and secrets."""
    if re.search("(?i)secret|password|token", line.partition("=")[0]):
        line = line.partition("=")[0] + "= …"
    line = re.sub(r"(?i)(password=)[^&\s\"':]*", r"\1…", re.sub(r"(://[^/@:\s]*):[^@\s]*@", r"\1:…@", line))
    return clip(printable(line.strip()))


_TOP = (
    "name", "source", "unit", "max_groups", "max_rows", "delta", "ledger", "budget", "columns",
    "public", "tables", "version", "as_of", "min_epsilon", "max_incidents", "receipt", "incident_log",
    "rows_without_unit", "rows", "series", "person",
)  # fmt: skip
_PUBLIC = ("source", "columns")
_TABLE = ("source", "unit", "person", "columns", "rows")
_BUDGET = ("epsilon", "delta", "rho", "per", "each_analyst", "population", "filter")
_GUARANTEE = ("epsilon", "delta", "rho")


def read(path: str | os.PathLike[str]) -> Card:
    """Read the card in a TOML file; refuse a file that holds rows or nothing."""
    place = Path(path)
    raw = read_bytes(place, "card", "or draft a card with dither init")
    if place.suffix.lower() != ".toml" and _looks_like_data(place, raw):
        got = f"a file of rows, {clip(place.name)!r}"
        raise wrong("card", "a card in TOML", got, f"draft one with dither init {clip(place.name)}")
    given = contents(raw, "card", place)
    if not given:
        raise wrong("card", "name, source and columns", "nothing", "draft a card with dither init, and fill it in")
    return parse(given, place.absolute().parent)


def _looks_like_data(place: Path, raw: bytes) -> bool:
    """Return whether a file given as a card holds rows instead, by its ending or first bytes."""
    suffixes = {suffix.lower() for suffix in place.suffixes}
    named = suffixes & {".csv", ".tsv", ".parquet", ".pq", ".duckdb", ".db", ".gz", ".arrow", ".xlsx", ".json"}
    return bool(named) or raw.startswith(b"PAR1") or raw[8:12] == b"DUCK"


def parse(given: Mapping[str, Any], folder: str | os.PathLike[str] = ".") -> Card:
    """Return the card that a parsed TOML file describes; relative paths start from ``folder``."""
    check_names(given, _TOP, "")
    home = Path(folder)
    name = _text(given, "name", "", required=True)
    if not NAME.fullmatch(name):
        raise wrong("name", "a name for SQL: letters, digits and _", repr(name), 'write name = "visits", for example')
    tables = _tables(given, home)
    has_own = "columns" in given or "source" in given or not tables
    columns = columns_of(given, "") if has_own else {}
    unit = _unit(given, "", columns) if has_own else None
    any_unit = unit or next((table.unit for table in tables.values()), None)
    ledger = _text(given, "ledger", "")
    limits = _budget(given.get("budget"), any_unit)
    population, filter = _accounts(given.get("budget"))
    _check_limit(limits.dataset or limits.each_person, "budget", filter)
    _check_limit(limits.each_analyst, "budget.each_analyst", filter)
    card = Card(
        name=name,
        source=_place(_text(given, "source", "", required=True), home) if has_own else "",
        columns=columns,
        unit=unit,
        max_groups="auto" if given.get("max_groups") == "auto" else _whole(given, "max_groups"),
        max_rows="auto" if given.get("max_rows") == "auto" else _whole(given, "max_rows"),
        public=_public(given.get("public", {}), home),
        ledger=None if ledger is None else _place(ledger, home),
        budget=limits.dataset,
        each_analyst=limits.each_analyst,
        each_person=limits.each_person,
        delta=None if given.get("delta") is None else _number(given["delta"], "delta", *_PROBABILITY),
        version=_text(given, "version", ""),
        as_of=_day(given, "as_of"),
        population=population,
        filter=filter,
        min_epsilon=_number(given.get("min_epsilon", MIN_EPSILON), "min_epsilon", *_LEAST_EPSILON),
        max_incidents=_whole(given, "max_incidents", MAX_INCIDENTS),
        receipt=_file(_text(given, "receipt", ""), "receipt", home),
        incident_log=_file(_text(given, "incident_log", ""), "incident_log", home),
        rows_without_unit=_rows_without_unit(given.get("rows_without_unit"), any_unit, limits.each_person is not None),
        rows=None if given.get("rows") is None else _whole(given, "rows"),
        tables=tables,
        series=series_of(given.get("series"), columns),
        path=person_path(given, "", unit) if has_own else None,
    )
    card = with_people_by_path(card)
    check_private_tables(card)
    return card


def _unit(given: Mapping[str, Any], where: str, columns: Mapping[str, ColumnCard]) -> str | None:
    """Return the column that names the person in a card or in one of its tables; None where none is stated."""
    name, section = (f"{where}.unit", f"{where}.columns") if where else ("unit", "columns")
    unit: str | None = _text(given, "unit", where)
    if unit is not None:
        if unit not in columns:
            raise wrong(name, "one of the columns", repr(unit), f"add [{section}.{unit}], or correct the name")
        if columns[unit].type not in ("integer", "text"):
            fix = "name the column that says who it is"
            raise wrong(name, "a column of type integer or text", columns[unit].type, fix)
        if columns[unit].format is not None:  # two texts may write one number, and two people would be one
            raise wrong(f"{section}.{unit}.format", "none for the unit", "one", 'remove it, and write type = "text"')
    return unit


def _tables(given: Mapping[str, Any], home: Path) -> dict[str, PrivateTable]:
    """Return the private tables in the section ``tables``, by name."""
    sections = given.get("tables", {})
    if not isinstance(sections, Mapping) or ("tables" in given and not sections):
        got = "an empty one" if isinstance(sections, Mapping) else kind_of(sections)
        raise wrong("tables", "a section for each private table", got, "write [tables.visits]")
    result = {}
    for name, section in sections.items():
        where = f"tables.{name}"
        check_names(section, _TABLE, where)
        columns = columns_of(section, where)
        source = _place(_text(section, "source", where, required=True), home)
        rows = None if section.get("rows") is None else _whole(section, "rows")
        unit = _unit(section, where, columns)
        result[name] = PrivateTable(source, columns, unit, rows, person_path(section, where, unit))
    return result


_EQUALITY = r"\s*(\S+)\s*=\s*(\S+)\s*"
_PATH = re.compile(rf"\s*(\w+)\s+via\s({_EQUALITY}(?:\sAND{_EQUALITY})*)", re.IGNORECASE)
EXAMPLE_OF_PATH = "orders via order_id = id"


def person_path(given: Mapping[str, Any], where: str, unit: str | None) -> PersonPath | None:
    """Return the path to the person that a card or one of its tables states under ``person``; None where it states
    none. ``unit`` is the column that it names instead."""
    text = _text(given, "person", where)
    if text is None:
        return None
    name = f"{where}.person" if where else "person"
    if unit is not None:
        raise wrong(name, "a unit or a path to the person", "both", "remove one of them")
    path = path_in(text)
    if path is None:
        fix = f'write person = "{EXAMPLE_OF_PATH}": a private table, and the equal keys of both'
        raise wrong(name, "a path to the person", repr(clip(text)), fix)
    return path


def path_in(text: str) -> PersonPath | None:
    """Return the path to the person that a text says, such as ``orders via order_id = id``; None where it says none.

    >>> path_in("orders via shop = shop AND order_id = id").keys
    (('shop', 'shop'), ('order_id', 'id'))
    """
    match = _PATH.fullmatch(text)
    if match is None:
        return None
    pairs = re.split(r"\sAND\s", match[2], flags=re.IGNORECASE)
    sides = (pair.partition("=") for pair in pairs)
    return PersonPath(match[1], tuple((own.strip(), other.strip()) for own, _, other in sides))


def _rows_without_unit(given: object, unit: str | None, people_pay: bool) -> Literal["drop", "each"] | None:
    """Return what the card says about rows whose unit is NULL: "drop" or "each"; None where it says nothing."""
    if given is None:
        return None
    name = "rows_without_unit"
    if unit is None:
        raise wrong(name, "a unit", "none", f"remove {name}: every row is a person of its own")
    if given == "each":
        if people_pay:
            expected = '"drop" where people have budgets of their own, which are kept by their unit'
            raise wrong(name, expected, '"each"', f'write {name} = "drop", or per = "dataset" under [budget]')
        return "each"
    if given != "drop":
        got = repr(clip(given)) if isinstance(given, str) else kind_of(given)
        raise wrong(name, '"drop" or "each"', got, 'write "drop" to leave them out')
    return "drop"


def _text(given: Mapping[str, Any], key: str, where: str, required: bool = False) -> Any:
    """Return the text under a key; None where it is missing and not required."""
    name, value = f"{where}.{key}" if where else key, given.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        got = "none" if value is None else kind_of(value) if not isinstance(value, str) else "empty text"
        raise wrong(name, "text", got, f'write {key} = "…"')
    return value


def _day(given: Mapping[str, Any], key: str) -> date | None:
    """Return the date under a key; None where it is missing."""
    value = given.get(key)
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    raise wrong(key, "a date", kind_of(value), f"write {key} = 2024-12-31, without quotes")


def _whole(given: Mapping[str, Any], key: str, default: int = 1) -> int:
    """Return the positive integer under a key; the default where it is missing."""
    value = given.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        got = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else kind_of(value)
        expected = "a whole number from 1 on" + (' or "auto"' if key in ("max_groups", "max_rows") else "")
        raise wrong(key, expected, got, f"{key} = {default}")
    return value


def _place(source: str, home: Path) -> str:
    """Return a source or ledger with an absolute path; URLs and Spark tables are unchanged."""
    if "://" in source:
        return source
    path, mark, table = source.rpartition("::")
    if mark and path == "spark":
        return source
    path, rest = (path, mark + table) if mark else (source, "")
    return os.path.normpath(os.path.join(home, os.path.expanduser(path))) + rest


def _file(given: str | None, name: str, home: Path) -> str | None:
    """Return an absolute path from one that is relative to ``home``, the card's folder; None for None. Refuse URLs."""
    if given is None:
        return None
    if "://" in given:
        raise wrong(name, "a path of this machine", "an address", f'write {name} = "{name}.txt"')
    return os.path.normpath(os.path.join(home, os.path.expanduser(given)))


def _public(given: object, home: Path) -> dict[str, PublicTable]:
    """Return the public tables in the section ``public``, by name."""
    if not isinstance(given, Mapping):
        raise wrong("public", "a section for each public table", kind_of(given), "write [public.regions]")
    result = {}
    for name, section in given.items():
        where = f"public.{name}"
        if not NAME.fullmatch(name):
            raise wrong(where, "a name for SQL: letters, digits and _", repr(clip(name)), "rename it")
        check_names(section, _PUBLIC, where)
        result[name] = PublicTable(
            _place(_text(section, "source", where, required=True), home), columns_of(section, where)
        )
    return result


_PROBABILITY = ("a number strictly between 0 and 1", lambda number: 0 < number < 1, "1e-6")
_LEAST_EPSILON = ("a number above 0 and at most 1000", lambda number: 0 < number <= 1000, f"{MIN_EPSILON}")


def _number(given: object, name: str, expected: str, is_allowed: Callable[[float], bool], example: str) -> float:
    """Return a stated number as a float; refuse what is no number or for which ``is_allowed`` is false."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise wrong(name, expected, kind_of(given), f"write {name} = {example}")
    if not is_allowed(given):
        raise wrong(name, expected, str(given), f"write {name} = {example}")
    return float(given)


def _accounts(given: object) -> tuple[str | None, Literal["sum", "advanced"]]:
    """Return the population that shares each person's account, None for the card's own people, and how limits are
    composed: "sum" or "advanced"."""
    if not isinstance(given, Mapping):
        return None, "sum"
    population, filter = _text(given, "population", "budget"), given.get("filter", "sum")
    if population is not None and given.get("per") != "person":
        raise wrong(
            "budget.population",
            'per = "person" beside it',
            "a budget of the dataset",
            'write per = "person", or remove population',
        )
    if filter not in ("sum", "advanced"):
        got = repr(filter) if isinstance(filter, str) else kind_of(filter)
        raise wrong("budget.filter", '"sum" or "advanced"', got, "leave it out")
    return population, filter


@dataclass(frozen=True)
class _Limits:
    """The limits that a card sets; None where it sets none."""

    dataset: Guarantee | None = None
    each_person: Guarantee | None = None
    each_analyst: Guarantee | None = None


def _budget(given: object, unit: str | None) -> _Limits:
    """Return the limits in the section ``[budget]``; ``unit`` names the person, where the card has one."""
    if given is None:
        return _Limits()
    check_names(given, _BUDGET, "budget")
    assert isinstance(given, Mapping)
    per = given.get("per", "dataset")
    if per not in ("dataset", "person"):
        got = repr(per) if isinstance(per, str) else kind_of(per)
        raise wrong("budget.per", '"dataset" or "person"', got, 'write per = "person", or leave it out')
    if per == "person" and unit is None:
        raise wrong("budget.per", '"dataset" where no unit is named', '"person"', "name the unit, or per dataset")
    stated = {key: given[key] for key in _GUARANTEE if key in given}
    analyst: Any = given.get("each_analyst")
    if not stated and analyst is None:
        raise wrong("budget", "epsilon, epsilon and delta, or rho", "none of them", "write epsilon = 1, for example")
    whole = _guarantee(stated, "budget") if stated else None
    if isinstance(analyst, (int, float)) and not isinstance(analyst, bool):
        analyst = {"epsilon": analyst}
    if analyst is not None:
        check_names(analyst, _GUARANTEE, "budget.each_analyst")
    item = None if analyst is None else _guarantee(analyst, "budget.each_analyst")
    return _Limits(whole, None, item) if per == "dataset" else _Limits(None, whole, item)


def _guarantee(stated: Mapping[str, Any], where: str) -> Guarantee:
    """Return the guarantee that epsilon, epsilon and delta, or rho state; ``where`` names the section in messages."""
    for key, value in stated.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(f"{where}.{key}", "a number", kind_of(value), f"write {key} without quotes")
    if "rho" in stated and len(stated) > 1:
        raise wrong(where, "epsilon or rho", "both", "keep one; rho takes no delta")
    if "rho" not in stated and "epsilon" not in stated:
        raise wrong(where, "epsilon, epsilon and delta, or rho", "none of them", "write epsilon = 1, for example")
    if stated.get("delta", 0) != 0 and stated["epsilon"] == 0:
        raise wrong(f"{where}.epsilon", "a number above 0", "0", "write epsilon = 1, for example")
    try:
        if "rho" in stated:
            return ZCDP(stated["rho"])
        if "delta" in stated and stated["delta"] != 0:
            return ApproxDP(stated["epsilon"], stated["delta"])
        return PureDP(stated["epsilon"])
    except DitherError as error:
        raise error.within(f"{where}.") from None


def _check_limit(limit: Guarantee | None, where: str, filter: Literal["sum", "advanced"]) -> None:
    """Refuse a limit that the ledger would refuse at the first question; None is no limit."""
    try:
        if limit is not None:
            Limit.of(limit, filter)
    except InvalidArgument as error:
        raise error.within(f"{where}: ") from None


def gaps(card: Card) -> list[str]:
    """Return what the card leaves open, and which questions are refused because of it."""
    result = []
    for table in card.private_tables:
        result += _gaps_of_table(card.for_table(table), f"{table}." if card.tables else "")
    if card.unit is None and not card.tables:
        result.append(
            "no unit: every row counts as a person of its own; nobody with several rows is protected as a whole"
        )
    elif card.rows_without_unit is None:
        units = " or ".join(dict.fromkeys(str(table.unit) for table in card.private_tables.values()))
        result.append(
            f"not said what rows without {units} are: they are left out of every answer; "
            'rows_without_unit = "drop" says that this is meant, "each" that each of them is a person of its own'
        )
    if card.budget is None and card.each_person is None and card.each_analyst is None:
        result.append("no budget: nothing can be released")
    elif card.ledger is None:
        result.append("no ledger: what is spent cannot be written down, so nothing can be released")
    if card.delta is None and not any(isinstance(item, ApproxDP) for item in (card.budget, card.each_person)):
        result.append("no delta: Gaussian noise under a budget in epsilon, and groups found in the data, are refused")
    return result


def _gaps_of_table(card: Card, prefix: str) -> list[str]:
    """Return what the card leaves open about one table's columns; ``prefix`` names the table."""
    result = [
        f"no bounds for {prefix}{name}: SUM, AVG, VAR, STDDEV, MIN, MAX and quantiles of it are refused"
        for name, column in card.columns.items()
        if column.type in ("integer", "number") and column.bounds is None and column.keys is None and name != card.unit
    ]
    for name, column in card.columns.items():
        if column.keys is None and column.type == "text" and name != card.unit and card.delta is None:
            refused = f"GROUP BY {name} is refused unless the question lists its keys"
            result.append(f"no keys for {prefix}{name} and no delta: {refused}")
    return result
