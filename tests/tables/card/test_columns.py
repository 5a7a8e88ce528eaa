"""Columns of a card file: bounds and formats of dates. What else a column may say is tried with whole cards."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from dither.errors import InvalidArgument
from dither.tables.card.toml import columns_of
from support import refuses


def test_bounds_of_dates() -> None:
    columns = {
        "a": {"type": "date", "bounds": [date(2024, 1, 1), date(2024, 12, 31)]},
        "b": {"type": "timestamp", "bounds": [date(2024, 1, 1), date(2024, 12, 31)]},
        "c": {"type": "timestamp", "bounds": [datetime(2024, 1, 1, 6), datetime(2024, 1, 1, 8)]},
        "d": {"type": "date", "format": "%d.%m.%Y"},
    }
    columns_by_name = columns_of({"columns": columns}, "")
    assert columns_by_name["a"].period == (date(2024, 1, 1), date(2024, 12, 31))
    assert columns_by_name["b"].period == (datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 999999))
    assert columns_by_name["c"].period == (datetime(2024, 1, 1, 6), datetime(2024, 1, 1, 8))
    assert columns_by_name["d"].format == "%d.%m.%Y"
    assert all(column.bounds is None for column in columns_by_name.values())


@pytest.mark.parametrize(
    ("section", "fragment"),
    [
        ({"type": "date", "bounds": ["2024-01-01", "2024-12-31"]}, "two dates [first, last]"),
        ({"type": "date", "bounds": [date(2024, 1, 1)]}, "two dates [first, last]"),
        ({"type": "date", "bounds": [datetime(2024, 1, 1), datetime(2024, 1, 2)]}, "times of day"),
        ({"type": "date", "bounds": [date(2024, 1, 2), date(2024, 1, 1)]}, "swap them"),
        ({"type": "text", "format": "%Y-%m-%d"}, "a format of dates, timestamps or numbers only"),
        ({"type": "date", "format": "%Y-%m"}, "%Y, %m and %d, each once"),
        ({"type": "date", "format": "%Y-%m-%d %H"}, "%Y, %m and %d, each once"),
        ({"type": "timestamp", "format": "%Y-%m-%d %M"}, "%H with %M"),
        ({"type": "date", "format": "%Y%m%d[0]"}, "letters, spaces and signs"),
        ({"type": "date", "format": "%y-%m-%d"}, "%Y, %m and %d, each once"),
        ({"type": "date", "format": 5}, "text"),
    ],
)
def test_mistakes_about_dates(section: dict[str, object], fragment: str) -> None:
    with refuses(InvalidArgument, "columns.a", fragment):
        columns_of({"columns": {"a": section}}, "")
