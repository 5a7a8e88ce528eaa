"""Series in a card: what is released over time, stated once by the steward.

A section of it looks like this::

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
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from dither.tables.card.columns import check_names, kind_of, wrong
from dither.tables.card.model import ColumnCard, SeriesCard

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
        """An aggregate as a card writes it.

        >>> SeriesAggregate.read("sum(amount)", "spend")
        SeriesAggregate(kind='sum', column='amount')
        """
        result = _AGGREGATE.fullmatch(text) if isinstance(text, str) else None
        if result is None or (result[1] == "sum") > (result[2] is not None) or (result[1] == "people" and result[2]):
            expected = '"count", "people", "count(column)" or "sum(column)"'
            raise wrong(where, expected, "another", 'write aggregates = { n = "count", spend = "sum(amount)" }')
        return cls(result[1], result[2])


def series_of(given: object, columns: Mapping[str, ColumnCard]) -> dict[str, SeriesCard]:
    """The series of a card; every mistake that can be seen without a table is named."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not given:
        raise wrong("series", "a section for each series", kind_of(given), "write [series.daily]")
    result = {}
    for name, section in given.items():
        where = f"series.{name}"
        if not name.isidentifier():
            raise wrong(where, "a plain word for its name", "another", "write [series.daily]")
        check_names(section, _SERIES, where)
        result[name] = _series(section, where, columns)
    return result


def _series(section: Mapping[str, Any], where: str, columns: Mapping[str, ColumnCard]) -> SeriesCard:
    unit, column, start = section.get("over"), section.get("column"), section.get("start")
    if unit not in _UNITS:
        raise wrong(f"{where}.over", "hour, day, week or month", "another", 'write over = "day"')
    for name in ("column", *(["arrived"] if "arrived" in section else [])):
        item = section.get(name)
        if not isinstance(item, str) or item not in columns or columns[item].type not in ("date", "timestamp"):
            raise wrong(f"{where}.{name}", "a column of dates or timestamps of the card", "another", f"correct {name}")
    horizon = section.get("horizon")
    if not isinstance(horizon, int) or isinstance(horizon, bool) or horizon < 1:
        raise wrong(f"{where}.horizon", "how many periods there are", kind_of(horizon), "write horizon = 365")
    if start is not None and not isinstance(start, date):
        raise wrong(f"{where}.start", "a date", kind_of(start), "write start = 2026-01-01")
    groups = section.get("groups", [])
    if not isinstance(groups, list) or not all(isinstance(item, str) and item in columns for item in groups):
        raise wrong(f"{where}.groups", "columns of the card", "others", 'write groups = ["region"]')
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
