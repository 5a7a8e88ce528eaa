"""What a steward is told about cells that do not read as the card says, and what would read them."""

from __future__ import annotations

import csv
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dither.tables.card.model import Card, ColumnCard
from dither.tables.engines import connect
from dither.tables.engines.unread_cells import LOOKED_AT, proposed_types, unread_cells
from support import each

DAYS = [date(2013, 1, 1) + timedelta(days=i) for i in range(60)]
WRITTEN = {
    "13/12/2013": ([f"{day.day}/{day.month}/{day.year}" for day in DAYS], "date", "%d/%m/%Y"),
    "12/13/2013": ([f"{day.month}/{day.day}/{day.year}" for day in DAYS], "date", "%m/%d/%Y"),
    "20131213": ([f"{day:%Y%m%d}" for day in DAYS], "date", "%Y%m%d"),
    "13.12.2013 9:30": ([f"{day:%d.%m.%Y} 9:30" for day in DAYS], "timestamp", "%d.%m.%Y %H:%M"),
    "5,27": ([f"{i},27" for i in range(60)], "number", "1234,56"),
    "1,000.50": ([f"{i},000.50" for i in range(1, 60)], "number", "1,234.56"),
    "1.000,50": ([f"{i}.000,50" for i in range(1, 60)], "number", "1.234,56"),
    "$1000": ([f"${i}.25" for i in range(60)], "number", "$1234.56"),
    "$1,000.50": ([f"${i},000.50" for i in range(1, 60)], "number", "$1,234.56"),
    "5.5%": ([f"{i}.5%" for i in range(60)], "number", "1234.56%"),
    "12 €": ([f"{i},50 €" for i in range(60)], "number", "1234,56 €"),
    "5,000 as integer": ([f"{i},000" for i in range(1, 60)], "integer", "1,234"),
}


def written(place: Path, cells: list[str]) -> str:
    with place.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["n", "v"], *enumerate(cells)])
    return str(place)


def card(source: str, column: ColumnCard) -> Card:
    return Card("t", source, {"n": ColumnCard("integer"), "v": column})


@each("name", list(WRITTEN))
def test_the_format_that_reads_the_cells_is_suggested(name, tmp_path):
    cells, kind, format = WRITTEN[name]
    source = written(tmp_path / "t.csv", [*cells, "NA", "", "oops"])
    with connect(source, card(source, ColumnCard(kind))) as engine:
        (found,) = unread_cells(engine)
    assert (found.column, found.type, found.cells, found.markers) == ("v", kind, len(cells) + 2, 1)
    assert found.unread == len(cells) + 2
    assert [(item.type, item.format, item.read) for item in found.better] == [(kind, format, len(cells))]
    with connect(source, card(source, ColumnCard(kind, format=format))) as engine:
        (left,) = unread_cells(engine)  # the word that is none, and the marker
    assert (left.unread, left.markers, left.better) == (2, 1, ())


@each("name", list(WRITTEN))
def test_types_are_proposed_for_columns_of_text(name, tmp_path):
    cells, kind, format = WRITTEN[name]
    source = written(tmp_path / "t.csv", [*cells, "n/a", "-"])
    with connect(source) as engine:
        proposal = proposed_types(engine, ["v"])["v"]
    assert (proposal.tried, proposal.readings[0].read) == (len(cells), len(cells))
    assert (kind, format) in [(item.type, item.format) for item in proposal.readings]


def test_two_formats_that_mean_different_values_are_both_named(tmp_path):
    source = written(tmp_path / "t.csv", ["1/2/2013", "3/4/2013"])
    with connect(source, card(source, ColumnCard("date"))) as engine:
        assert [item.format for item in unread_cells(engine)[0].better] == ["%d/%m/%Y", "%m/%d/%Y"]
    source = written(tmp_path / "u.csv", ["1,500", "2,750"])
    with connect(source, card(source, ColumnCard("number"))) as engine:
        assert [item.format for item in unread_cells(engine)[0].better] == ["1234,56", "1,234.56"]


def test_what_reads_is_not_reported(tmp_path):
    source = written(tmp_path / "t.csv", ["1", "2.5", "", "1e3"])
    with connect(source, card(source, ColumnCard("number"))) as engine:
        assert unread_cells(engine) == []
    source = written(tmp_path / "u.csv", ["north", "NA", ""])
    with connect(source, card(source, ColumnCard("text"))) as engine:
        assert unread_cells(engine) == []
        assert proposed_types(connect(source), ["v"]) == {}
    source = written(tmp_path / "w.csv", ["1", "NA", "-"])
    with connect(source, card(source, ColumnCard("integer"))) as engine:
        (found,) = unread_cells(engine)
    assert (found.unread, found.markers, found.better) == (2, 2, ())


def test_only_the_first_cells_are_tried_and_all_are_counted(tmp_path):
    source = written(tmp_path / "t.csv", ["1,5"] * (LOOKED_AT + 10))
    with connect(source, card(source, ColumnCard("number"))) as engine:
        (found,) = unread_cells(engine)
    assert (found.cells, found.unread, found.tried) == (LOOKED_AT + 10, LOOKED_AT + 10, LOOKED_AT)


def test_columns_of_text_in_other_sources(tmp_path, postgres):
    """A cast that fails on a value is never tried: only formats are, where the source declares text."""
    import psycopg

    cells = ["$1,000.50", "$5", "oops", None]
    pq.write_table(pa.table({"n": [0, 1, 2, 3], "v": cells}), tmp_path / "t.parquet")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE ugly (n BIGINT, v TEXT)")
        connection.cursor().executemany("INSERT INTO ugly VALUES (%s, %s)", list(enumerate(cells)))
    try:
        for source in (str(tmp_path / "t.parquet"), f"{postgres}::ugly"):
            with connect(source, card(source, ColumnCard("number", format="1234.56"))) as engine:
                (found,) = unread_cells(engine)
            assert (found.cells, found.unread) == (3, 3)
            assert [str(item) for item in found.better] == ['type = "number", format = "$1,234.56"']
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("DROP TABLE ugly")


@pytest.mark.parametrize("stored", [3.6, float("nan")])
def test_doubles_that_are_no_whole_numbers_are_counted(stored, tmp_path):
    source = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"n": [1, 2], "v": [1.0, stored]}), source)
    with connect(source, card(source, ColumnCard("integer"))) as engine:
        assert [(item.unread, item.better) for item in unread_cells(engine)] == [(1, ())]
