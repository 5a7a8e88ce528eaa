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

Paths in it start from the card's folder.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal, cast

from dither.errors import DitherError, InvalidArgument, message
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.tables.card.model import (
    MAX_INCIDENTS,
    MIN_EPSILON,
    MOST_ROWS,
    NAME,
    TYPES,
    Card,
    ColumnCard,
    PublicTable,
    Type,
)
from dither.tables.card.values import Value
from dither.tables.card.wording import nearest

__all__ = ["gaps", "parse", "read"]

_TOP = (
    "name", "source", "unit", "max_groups", "max_rows", "delta", "ledger", "budget", "columns",
    "public", "version", "min_epsilon", "max_incidents", "receipt", "incident_log",
)  # fmt: skip
_COLUMN = ("type", "bounds", "keys")
_PUBLIC = ("source", "columns")
_BUDGET = ("epsilon", "delta", "rho", "per", "each_analyst", "population", "filter")
_GUARANTEE = ("epsilon", "delta", "rho")
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


def read(path: str | os.PathLike[str]) -> Card:
    """The card in a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "visits.toml")
    ...     _ = place.write_text('name = "visits"\\nsource = "visits.csv"\\ncolumns.age = "integer"')
    ...     read(place).columns
    {'age': ColumnCard(type='integer', bounds=None, keys=None)}
    """
    place = Path(path)
    try:
        raw = place.read_bytes()
    except IsADirectoryError:
        raise _wrong("card", "a file", "a folder", "name the card in it") from None
    except OSError:
        raise _wrong("card", "a file that can be read", "none", "write one with dither init") from None
    try:
        given = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise _wrong("card", "a file in UTF-8", "another encoding", "save it as UTF-8") from None
    except RecursionError:
        raise _wrong("card", "a file in TOML", "lists or tables nested too deep", "write them flat") from None
    except ValueError as error:  # TOMLDecodeError, and numbers too long to be read
        raise _wrong("card", "a file in TOML", f"a mistake: {error}", "correct that line") from None
    return parse(given, place.absolute().parent)


def parse(given: Mapping[str, Any], folder: str | os.PathLike[str] = ".") -> Card:
    """The card that a file's contents say; relative paths start from ``folder``.

    >>> parse({"name": "t", "source": "t.csv", "columns": {"age": "integer"}, "uint": "age"})
    Traceback (most recent call last):
    dither.InvalidArgument: uint: expected name, source, unit, max_groups, max_rows, delta, ledger, budget,
    columns, public, version, min_epsilon, max_incidents, receipt or incident_log, got another key. Fix: write 'unit',
    the nearest name.
    """
    _known(given, _TOP, "")
    home = Path(folder)
    name = _text(given, "name", "", required=True)
    if not NAME.fullmatch(name):
        raise _wrong("name", "a name for SQL: letters, digits and _", repr(name), 'write name = "visits", for example')
    columns = _columns(given, "")
    unit = _text(given, "unit", "")
    if unit is not None:
        if unit not in columns:
            raise _wrong("unit", "one of the columns", repr(unit), f"add [columns.{unit}], or correct the name")
        if columns[unit].type not in ("integer", "text"):
            raise _wrong(
                "unit", "a column of type integer or text", columns[unit].type, "name the column that says who it is"
            )
    ledger = _text(given, "ledger", "")
    budget, each_person, each_analyst = _budget(given.get("budget"), unit)
    population, filter = _accounts(given.get("budget"))
    return Card(
        name=name,
        source=_place(_text(given, "source", "", required=True), home),
        columns=columns,
        unit=unit,
        max_groups="auto" if given.get("max_groups") == "auto" else _whole(given, "max_groups"),
        max_rows=_whole(given, "max_rows"),
        public=_public(given.get("public", {}), home),
        ledger=None if ledger is None else _place(ledger, home),
        budget=budget,
        each_analyst=each_analyst,
        each_person=each_person,
        delta=_delta(given.get("delta"), "delta"),
        version=_text(given, "version", ""),
        population=population,
        filter=filter,
        min_epsilon=_least(given.get("min_epsilon", MIN_EPSILON)),
        max_incidents=_whole(given, "max_incidents", MAX_INCIDENTS),
        receipt=_file(_text(given, "receipt", ""), "receipt", home),
        incident_log=_file(_text(given, "incident_log", ""), "incident_log", home),
    )


def _wrong(name: str, expected: str, got: str, fix: str) -> InvalidArgument:
    return InvalidArgument(message(name, expected, got, fix))


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "something else")


def _known(given: object, allowed: tuple[str, ...], where: str) -> None:
    if not isinstance(given, Mapping):
        raise _wrong(where or "card", "a section", _kind(given), f"write [{where}] and its keys below")
    for key in given:
        if key not in allowed:
            fix = nearest(str(key), allowed) or "remove it, or correct its name"
            raise _wrong(f"{where}.{key}" if where else key, _listed_with_or(allowed), "another key", fix)


def _listed_with_or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _text(given: Mapping[str, Any], key: str, where: str, required: bool = False) -> Any:
    name, value = f"{where}.{key}" if where else key, given.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        got = "none" if value is None else _kind(value) if not isinstance(value, str) else "empty text"
        raise _wrong(name, "text", got, f'write {key} = "…"')
    return value


def _whole(given: Mapping[str, Any], key: str, default: int = 1) -> int:
    value = given.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        got = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else _kind(value)
        expected = "a whole number from 1 on" + (' or "auto"' if key == "max_groups" else "")
        raise _wrong(key, expected, got, f"{key} = {default}")
    return value


def _place(source: str, home: Path) -> str:
    """A source or ledger with its path made full; URLs and Spark tables are as they are."""
    if "://" in source:
        return source
    path, mark, table = source.rpartition("::")
    if mark and path == "spark":
        return source
    path, rest = (path, mark + table) if mark else (source, "")
    return os.path.normpath(os.path.join(home, os.path.expanduser(path))) + rest


def _file(given: str | None, name: str, home: Path) -> str | None:
    """A file of this machine, with its path made full."""
    if given is None:
        return None
    if "://" in given:
        raise _wrong(name, "a path of this machine", "an address", f'write {name} = "{name}.txt"')
    return os.path.normpath(os.path.join(home, os.path.expanduser(given)))


def _columns(given: Mapping[str, Any], where: str) -> dict[str, ColumnCard]:
    name = f"{where}.columns" if where else "columns"
    sections = given.get("columns")
    if not isinstance(sections, Mapping) or not sections:
        got = "none" if not sections else _kind(sections)
        raise _wrong(name, "a section for each column", got, f'write [{name}.age] and below it type = "integer"')
    result: dict[str, ColumnCard] = {}
    folded: dict[str, str] = {}
    for column, section in sections.items():
        if not column or "\0" in column or len(column.encode("utf-8", "replace")) > 255:
            raise _wrong(name, "names of columns", "an empty or overlong one", "write the name as in the source")
        if folded.setdefault(column.casefold(), column) != column:
            raise _wrong(f"{name}.{column}", "names that differ by more than case", "two alike", "rename one of them")
        result[column] = _column(section, f"{name}.{column}")
    return result


def _column(section: object, name: str) -> ColumnCard:
    if isinstance(section, str):
        section = {"type": section}
    _known(section, _COLUMN, name)
    assert isinstance(section, Mapping)
    type = section.get("type")
    if type not in TYPES:
        got = "none" if type is None else repr(type) if isinstance(type, str) else _kind(type)
        raise _wrong(f"{name}.type", _listed_with_or(TYPES), got, f'write type = "{_near_type(type)}"')
    return ColumnCard(type, _bounds(section.get("bounds"), type, name), _keys(section.get("keys"), type, name))


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
        raise _wrong(where, "bounds of a number only", f"bounds of {type}", "remove them, or correct the type")
    if not isinstance(given, list) or len(given) != 2:
        got = f"{len(given)} values" if isinstance(given, list) else _kind(given)
        raise _wrong(where, "two numbers [lower, upper]", got, fix)
    for bound in given:
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            raise _wrong(where, "two numbers [lower, upper]", _kind(bound), fix)
        if not math.isfinite(bound) or abs(bound) > 1e100:
            raise _wrong(where, "finite numbers, at most 1e100", str(bound), fix)
        if type == "integer" and (bound != int(bound) or not -(1 << 62) <= bound <= 1 << 62):
            raise _wrong(where, "whole numbers of 63 bits for an integer", str(bound), 'or say type = "number"')
    low, high = given
    if not low < high:
        raise _wrong(where, "lower below upper", f"[{low}, {high}]", "swap or widen them")
    return (int(low), int(high)) if type == "integer" else (low, high)


def _keys(given: object, type: Type, name: str) -> tuple[Value, ...] | None:
    if given is None:
        return None
    where = f"{name}.keys"
    if not isinstance(given, list) or not given:
        got = "an empty list" if isinstance(given, list) else _kind(given)
        raise _wrong(where, "a list of the values that may occur", got, f"write keys = [{EXAMPLES[type]}]")
    result = tuple(_key(key, type, where) for key in given)
    if len(set(result)) != len(result):
        raise _wrong(where, "values that differ", "one of them twice", "remove it")
    return result


_AS: dict[Type, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "text": (str,), "boolean": (bool,), "date": (date,),
    "timestamp": (datetime,),
}  # fmt: skip


def _key(key: object, type_: Type, where: str) -> Value:
    if type(key) not in _AS[type_]:
        expected = {"integer": "whole numbers", "number": "numbers", "text": 'text in "…"', "boolean": "true and false",
                    "date": "dates without quotes", "timestamp": "dates with times, without quotes"}[type_]  # fmt: skip
        raise _wrong(where, f"{expected}, as the type {type_} says", _kind(key), f"write keys = [{EXAMPLES[type_]}]")
    if type_ == "number":
        assert isinstance(key, (int, float))
        number = float(key)
        if not math.isfinite(number):
            raise _wrong(where, "finite numbers", str(key), "remove it")
        return number
    if isinstance(key, int) and not -(1 << 63) <= key < 1 << 63:
        raise _wrong(where, "whole numbers of 64 bits", "a larger one", "remove it")
    if isinstance(key, str) and "\0" in key:
        raise _wrong(where, "text without a NUL", "one with it", "remove it")
    if isinstance(key, datetime) and key.tzinfo is not None:
        return key.astimezone(UTC).replace(tzinfo=None)
    return cast(Value, key)


def _public(given: object, home: Path) -> dict[str, PublicTable]:
    if not isinstance(given, Mapping):
        raise _wrong("public", "a section for each public table", _kind(given), "write [public.regions]")
    result = {}
    for name, section in given.items():
        where = f"public.{name}"
        if not NAME.fullmatch(name):
            raise _wrong(where, "a name for SQL: letters, digits and _", "another", "rename it")
        _known(section, _PUBLIC, where)
        result[name] = PublicTable(
            _place(_text(section, "source", where, required=True), home), _columns(section, where)
        )
    return result


def _delta(given: object, name: str) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < 1:
        got = str(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else _kind(given)
        raise _wrong(name, "a number strictly between 0 and 1", got, "write delta = 1e-6, for example")
    return float(given)


def _least(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= 1000:
        got = str(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else _kind(given)
        raise _wrong("min_epsilon", "a number above 0 and at most 1000", got, f"write min_epsilon = {MIN_EPSILON}")
    return float(given)


def _accounts(given: object) -> tuple[str | None, Literal["sum", "advanced"]]:
    """Whose people the accounts are for, and how the limits are kept."""
    if not isinstance(given, Mapping):
        return None, "sum"
    population, filter = _text(given, "population", "budget"), given.get("filter", "sum")
    if population is not None and given.get("per") != "person":
        raise _wrong(
            "budget.population", 'per = "person" beside it', "another", 'write per = "person", or remove population'
        )
    if filter not in ("sum", "advanced"):
        got = repr(filter) if isinstance(filter, str) else _kind(filter)
        raise _wrong("budget.filter", '"sum" or "advanced"', got, "leave it out")
    return population, filter


def _budget(given: object, unit: str | None) -> tuple[Guarantee | None, Guarantee | None, Guarantee | None]:
    """For the dataset, each person, each analyst."""
    if given is None:
        return None, None, None
    _known(given, _BUDGET, "budget")
    assert isinstance(given, Mapping)
    per = given.get("per", "dataset")
    if per not in ("dataset", "person"):
        got = repr(per) if isinstance(per, str) else _kind(per)
        raise _wrong("budget.per", '"dataset" or "person"', got, 'write per = "person", or leave it out')
    if per == "person" and unit is None:
        raise _wrong("budget.per", '"dataset" where no unit is named', '"person"', "name the unit, or per dataset")
    stated = {key: given[key] for key in _GUARANTEE if key in given}
    analyst: Any = given.get("each_analyst")
    if not stated and analyst is None:
        raise _wrong("budget", "epsilon, epsilon and delta, or rho", "none of them", "write epsilon = 1, for example")
    whole = _guarantee(stated, "budget") if stated else None
    if isinstance(analyst, (int, float)) and not isinstance(analyst, bool):
        analyst = {"epsilon": analyst}
    if analyst is not None:
        _known(analyst, _GUARANTEE, "budget.each_analyst")
    item = None if analyst is None else _guarantee(analyst, "budget.each_analyst")
    return (whole, None, item) if per == "dataset" else (None, whole, item)


def _guarantee(stated: Mapping[str, Any], where: str) -> Guarantee:
    for key, value in stated.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _wrong(f"{where}.{key}", "a number", _kind(value), f"write {key} without quotes")
    if "rho" in stated and len(stated) > 1:
        raise _wrong(where, "epsilon or rho", "both", "keep one; rho takes no delta")
    if "rho" not in stated and "epsilon" not in stated:
        raise _wrong(where, "epsilon, epsilon and delta, or rho", "no loss", "write epsilon = 1, for example")
    try:
        if "rho" in stated:
            return ZCDP(stated["rho"])
        if "delta" in stated and stated["delta"] != 0:
            if stated["epsilon"] == 0:
                raise _wrong(f"{where}.epsilon", "a number above 0", "0", "write epsilon = 1, for example")
            return ApproxDP(stated["epsilon"], stated["delta"])
        return PureDP(stated["epsilon"])
    except DitherError as error:
        if str(error).startswith(where):
            raise
        raise InvalidArgument(f"{where}.{error}") from None


def gaps(card: Card) -> list[str]:
    """What the card does not say, and what will therefore be refused.

    >>> card = Card("t", "t.csv", {"amount": ColumnCard("number")})
    >>> print(gaps(card)[0])
    no bounds for amount: SUM, AVG, VAR, STDDEV, MIN, MAX and quantiles of it are refused
    """
    result = [
        f"no bounds for {name}: SUM, AVG, VAR, STDDEV, MIN, MAX and quantiles of it are refused"
        for name, column in card.columns.items()
        if column.type in ("integer", "number") and column.bounds is None and column.keys is None and name != card.unit
    ]
    for name, column in card.columns.items():
        if column.keys is None and column.type in ("text", "boolean") and name != card.unit and card.delta is None:
            result.append(
                f"no keys for {name} and no delta: GROUP BY {name} is refused unless the question lists its keys"
            )
    if card.max_rows > MOST_ROWS:
        result.append(
            f"max_rows is above {MOST_ROWS}: every question is refused unless it states a smaller one; "
            f"write max_rows = {MOST_ROWS} or less"
        )
    if card.unit is None:
        result.append(
            "no unit: every row counts as a person of its own; nobody with several rows is protected as a whole"
        )
    if card.budget is None and card.each_person is None and card.each_analyst is None:
        result.append("no budget: nothing can be released")
    elif card.ledger is None:
        result.append("no ledger: what is spent cannot be written down, so nothing can be released")
    if card.delta is None and not any(isinstance(item, ApproxDP) for item in (card.budget, card.each_person)):
        result.append("no delta: Gaussian noise under a budget in epsilon, and groups found in the data, are refused")
    return result
