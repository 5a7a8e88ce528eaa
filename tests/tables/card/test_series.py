"""Sections of series in a card; every mistake is named in tests/cli/test_series.py."""

from __future__ import annotations

from datetime import date

import pytest

import dither as dp
from dither.tables.card.model import ColumnCard
from dither.tables.card.toml import SeriesAggregate, series_of
from support import refuses

COLUMNS = {"day": ColumnCard("date"), "x": ColumnCard("number", (0, 9))}
SECTION = {
    "over": "week", "column": "day", "horizon": 52, "start": date(2026, 1, 5), "rho": 0.1, "max_participations": 2,
    "aggregates": {"n": "count", "total": "sum( x )"},
}  # fmt: skip


def test_a_section_is_read():
    read = series_of({"weekly": SECTION}, COLUMNS)["weekly"]
    assert (read.over, read.horizon, read.start, read.groups) == ("week", 52, date(2026, 1, 5), ())
    assert read.options == {"rho": 0.1, "max_participations": 2}
    assert SeriesAggregate.read(read.aggregates["total"], "total") == SeriesAggregate("sum", "x")
    assert series_of(None, COLUMNS) == {}


@pytest.mark.parametrize("given", [[], {}, {"a b": SECTION}, {"weekly": 3}, {"weekly": {**SECTION, "aggregates": {}}}])
def test_what_is_no_section_is_refused(given):
    with refuses(dp.InvalidArgument, "series"):
        series_of(given, COLUMNS)
