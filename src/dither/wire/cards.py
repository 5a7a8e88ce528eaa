"""The public part of a card as JSON: all that a question is parsed, checked and explained by.

Where the rows, the ledger, the receipt and the incident log are is not in it, nor the formats of the source's texts.

>>> visits = Card("visits", "visits.csv", {"age": ColumnCard("integer", (0, 120))}, ledger="l.sqlite")
>>> sent = to_json(visits)
>>> sent["columns"], "source" in sent, "ledger" in sent
({'age': {'type': 'integer', 'bounds': [0, 120]}}, False, False)
>>> from_json(sent).columns == visits.columns
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.guarantees import Guarantee
from dither.tables.card.model import TYPES, Card, ColumnCard, PrivateTable, PublicTable
from dither.tables.card.values import Value
from dither.wire import guarantees, values
from dither.wire.documents import VERSION, fields, kind_of, text

_LIMITS = ("budget", "each_analyst", "each_person")
_CHOICES: dict[str, tuple[object, ...]] = {"filter": ("sum", "advanced"), "rows_without_unit": (None, "drop", "each")}
_OPTIONAL = (
    "unit", "max_groups", "max_rows", "public", *_LIMITS, "delta", "version_of_data", "min_epsilon", "max_incidents",
    "rows", "tables", *_CHOICES,
)  # fmt: skip

PublicValues = Callable[[str, str], tuple[Value, ...] | None]
"""The values of a column of a public table, or None where there are too many to list."""


def to_json(card: Card, public_values: PublicValues | None = None) -> dict[str, Any]:
    """What is public about the tables of a card. ``public_values`` lists those of public tables: they become keys."""
    document: dict[str, Any] = {
        "version": VERSION,
        "name": card.name,
        "columns": _columns_to_json(card.columns),
        "unit": card.unit,
        "max_groups": card.max_groups,
        "max_rows": card.max_rows,
        "public": {
            name: _columns_to_json(_with_values(name, item.columns, public_values))
            for name, item in card.public.items()
        },
        "delta": None if card.delta is None else values.to_json(card.delta),
        "version_of_data": card.version,
        "min_epsilon": values.to_json(card.min_epsilon),
        "max_incidents": card.max_incidents,
        "rows": card.rows,
        "tables": {
            name: {"columns": _columns_to_json(item.columns), "unit": item.unit, "rows": item.rows}
            for name, item in card.tables.items()
        },
    }
    for name in _LIMITS:
        limit: Guarantee | None = getattr(card, name)
        document[name] = None if limit is None else guarantees.to_json(limit)
    return {**document, **{name: getattr(card, name) for name in _CHOICES}}


def from_json(document: object) -> Card:
    """The card; its sources are empty."""
    given = fields(document, "card", ("name", "columns"), _OPTIONAL)
    for name, choices in _CHOICES.items():
        if name in given and given[name] not in choices:
            raise InvalidArgument(f"card.{name}", "one of its choices", "another", "leave it out")
    stated: dict[str, Any] = {name: given[name] for name in _CHOICES if name in given}
    for name in ("max_groups", "max_rows"):
        limit = given.get(name, 1)
        stated[name] = "auto" if limit == "auto" else arguments.whole(limit, f"card.{name}")
    for name in _LIMITS:
        if given.get(name) is not None:
            stated[name] = guarantees.from_json(given[name], f"card.{name}")
    for name in ("delta", "min_epsilon"):
        if given.get(name) is not None:
            stated[name] = _number(given[name], f"card.{name}")
    if "max_incidents" in given:
        stated["max_incidents"] = arguments.whole(given["max_incidents"], "card.max_incidents")
    card = Card(
        text(given["name"], "card.name"),
        "",
        _columns(given["columns"], "card.columns"),
        _optional_text(given.get("unit"), "card.unit"),
        public={
            name: PublicTable("", _columns(item, f"card.public.{name}"))
            for name, item in _object(given.get("public", {}), "card.public").items()
        },
        version=_optional_text(given.get("version_of_data"), "card.version_of_data"),
        rows=_rows(given.get("rows"), "card.rows"),
        tables={
            name: _private_table(item, f"card.tables.{name}")
            for name, item in _object(given.get("tables", {}), "card.tables").items()
        },
    )
    return replace(card, **stated)


def _private_table(document: object, where: str) -> PrivateTable:
    given = fields(document, where, ("columns",), ("unit", "rows"), versioned=False)
    unit = _optional_text(given.get("unit"), f"{where}.unit")
    columns = _columns(given["columns"], f"{where}.columns")
    return PrivateTable("", columns, unit, _rows(given.get("rows"), f"{where}.rows"))


def _with_values(
    table: str, columns: Mapping[str, ColumnCard], public_values: PublicValues | None
) -> Mapping[str, ColumnCard]:
    if public_values is None:
        return columns
    return {
        name: column if column.keys is not None else replace(column, keys=public_values(table, name))
        for name, column in columns.items()
    }


def _columns_to_json(columns: Mapping[str, ColumnCard]) -> dict[str, Any]:
    result = {}
    for name, column in columns.items():
        document: dict[str, Any] = {"type": column.type}
        for part in ("bounds", "keys", "period"):
            items = getattr(column, part)
            if items is not None:
                document[part] = [values.to_json(item) for item in items]
        result[name] = document
    return result


def _columns(document: object, where: str) -> dict[str, ColumnCard]:
    return {name: _column(item, f"{where}.{name}") for name, item in _object(document, where).items()}


def _column(document: object, where: str) -> ColumnCard:
    given = fields(document, where, ("type",), ("bounds", "keys", "period"), versioned=False)
    kind = given["type"]
    if kind not in TYPES:
        raise InvalidArgument(f"{where}.type", ", ".join(TYPES), "another", "write one of these")
    parts = {name: _values(given[name], f"{where}.{name}") for name in ("bounds", "keys", "period") if name in given}
    bounds, period = parts.get("bounds"), parts.get("period")
    if period is not None and (len(period) != 2 or not all(isinstance(end, date) for end in period)):
        raise InvalidArgument(f"{where}.period", "two dates", "others", "write the first and the last")
    limits = None if bounds is None else arguments.bounds(bounds, f"{where}.bounds")
    return ColumnCard(kind, limits, parts.get("keys"), period)


def _values(document: object, where: str) -> tuple[Any, ...]:
    if not isinstance(document, list):
        raise WrongType(where, "a list", kind_of(document), "write […]")
    return tuple(values.from_json(item, where) for item in document)


def _object(document: object, where: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise WrongType(where, "an object", kind_of(document), "write {…}")
    return document


def _optional_text(document: object, where: str) -> str | None:
    return None if document is None else text(document, where)


def _number(document: object, where: str) -> Any:
    value = values.from_json(document, where)
    if isinstance(value, bool) or value is None or isinstance(value, (str, date)):
        raise WrongType(where, "a number", kind_of(document), "write 1e-6, for example")
    return value


def _rows(document: object, where: str) -> int | None:
    return None if document is None else arguments.whole(document, where)
