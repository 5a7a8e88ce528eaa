"""Dates written as text and whole numbers stored as doubles: read the same everywhere, or NULL."""

from __future__ import annotations

import csv
import re
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import InvalidData
from dither.tables.card.model import Card, ColumnCard
from dither.tables.engines import connect
from dither.tables.engines.conversions import LOOKED_AT, proposed_types, unread_cells
from support import each, refuses

HOSTILE = [
    None, "", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-02-30", "2024-04-31", "2024-12-31",
    "2024-13-01", "2024-00-10", "2024-01-00", "2024-01-32", "0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01",
    "2024-1-1", " 2024-01-01", "2024-01-01 ", "2024-01-01\n", "2024/01/01", "20240101", "2024-01-01 10:00:00",
    "２０２４-01-01", "-024-01-01", "+024-01-01", "2024-01-0x", "infinity", "now", "x" * 70000,
]  # fmt: skip
TIMES = [
    "2024-02-29 23:59:59",
    "2024-02-29 24:00:00",
    "2024-02-29 10:60:00",
    "2024-02-29 10:00:60",
    "2023-02-29 01:00:00",
]
DOUBLES = [None, 0.0, -0.0, 3.0, 3.6, -2.0, 2.0**53, 2.0**62, 2.0**63, -(2.0**63), 1e300, float("nan"), float("inf"),
           float("-inf"), 5e-324]  # fmt: skip


AMERICAN = [
    "1/2/2013", "01/02/2013", "1/02/2013", "12/31/2013", "13/12/2013", "2/29/2013", "2/29/2012", "1/2/13", "1/2/02013",
    "001/2/2013", "/2/2013", "1//2013", "1/2/2013\n", " 1/2/2013", "1/2/2013 ", "1-2-2013", "1/2/0000", None, "",
]  # fmt: skip
NUMBERS = [
    None, "", "5", "-5", "+5", "5,27", "5.27", "1.000,50", "1,000.50", "$1000", "$1,000.50", "-$5", "$-5", "- $ 5",
    "$5-", "5%", "5 %", "1,5", "1,50,0",
    "1.000", "1,000", "1 000,5", "1\u00a0000,5", "1\u202f000,5", "1'000.5", "1’000.5",
    "−5,5", "--5", "5-", "1e5", "Inf", "nan", ",5", ".5", "5,", "5.", ",", ".", "$", "€5", "5€", "5 €", "5€€", "$$5",
    "5\n", "\t5", "٥", "0x10", "1_000", "9" * 30, "9" * 31, "0." + "1" * 30, "0." + "1" * 31, "1,234,567,890.125",
    "Fr. 1.50", "Fr.1.50", "Fr 1.50", "x" * 70000,
]  # fmt: skip
NUMBER_FORMATS = [
    "1234.56", "1234,56", "1,234.56", "1.234,56", "1 234,56", "1'234.56", "$1,234.56", "1.234,56 €", "1234.56%",
    "Fr. 1234.56",
]  # fmt: skip


def expected_date(text: str | None, form: str = "%Y-%m-%d") -> date | None:
    """What Python makes of a text of digits and signs whose year has four digits."""
    try:
        value = datetime.strptime(text or "", form)
    except ValueError:
        return None
    digits = re.sub("%[md]", "[0-9]{1,2}", form.replace("%Y", "[0-9]{4}"))
    return value.date() if re.fullmatch(digits, text) else None


def expected_number(text: str | None, form: str) -> float | None:
    """A number of a format, read from left to right: a sign and a unit in either order, digits, the other unit."""
    before, after = form.partition("1")[0].strip(), form.rpartition("6")[2].strip()
    thousands, decimal = form.partition("1")[2].partition("234")[0], form.partition("234")[2][0]
    rest = re.sub("[\u00a0\u202f]", " ", text or "").replace("’", "'").replace("−", "-").strip(" ")
    negative = False
    for part in ("[+-]", before) if re.match("[+-]", rest) else (before, "[+-]"):
        start = re.match("[+-]", rest) if part == "[+-]" else rest.startswith(part)
        negative |= part == "[+-]" and rest.startswith("-")
        rest = (rest[1 if part == "[+-]" else len(part) :] if start else rest).lstrip(" ")
    rest = (rest.removesuffix(after) if after else rest).rstrip(" ")
    whole, _, fraction = rest.partition(decimal)
    groups = whole.split(thousands) if thousands else [whole]
    if len(groups) > 1 and not (1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])):
        return None
    digits = "".join(groups)
    if not re.fullmatch("[0-9]*", digits + fraction) or not digits + fraction or max(len(digits), len(fraction)) > 30:
        return None
    return float(f"{'-' if negative else ''}{digits or '0'}.{fraction or '0'}")


def expected_whole(value: float | None) -> int | None:
    whole = value is not None and abs(value) != float("inf") and value == value and value == int(value)
    return int(value) if whole and abs(value) <= 2**53 else None


def read(source, card: Card, column: str) -> list[object]:
    with connect(source, card) as engine:
        rows = engine.run(f"SELECT {column} AS v, n FROM {engine.table.sql(dialect=engine.dialect)} AS t")
    return [line["v"] for line in sorted(rows.to_pylist(), key=lambda line: line["n"])]


def card(column: ColumnCard) -> Card:
    return Card("t", "", {"n": ColumnCard("integer"), "v": column})


def numbered(values: list[object], kind: pa.DataType) -> pa.Table:
    return pa.table({"n": list(range(len(values))), "v": pa.array(values, kind)})


@pytest.mark.parametrize("stored", ["frame", "parquet"])
def test_texts_as_dates(tmp_path, stored):
    rows = numbered(HOSTILE, pa.string())
    pq.write_table(rows, tmp_path / "t.parquet")
    source = rows if stored == "frame" else str(tmp_path / "t.parquet")
    assert read(source, card(ColumnCard("date", format="%Y-%m-%d")), "v") == [expected_date(text) for text in HOSTILE]


def test_cells_of_csv_files_as_dates(tmp_path):
    (tmp_path / "t.csv").write_text("n,v\n0,31.12.2024\n1,2024-12-31\n2,30.02.2024\n3,\n")
    result = read(str(tmp_path / "t.csv"), card(ColumnCard("date", format="%d.%m.%Y")), "v")
    assert result == [date(2024, 12, 31), None, None, None]


def test_texts_as_timestamps():
    rows = numbered([*TIMES, None], pa.string())
    result = read(rows, card(ColumnCard("timestamp", format="%Y-%m-%d %H:%M:%S")), "v")
    assert result == [datetime(2024, 2, 29, 23, 59, 59), None, None, None, None, None]
    hours = read(numbered(["29/02/2024 7h", "29/02/2024 07h"], pa.string()),
                 card(ColumnCard("timestamp", format="%d/%m/%Y %Hh")), "v")  # fmt: skip
    assert hours == [datetime(2024, 2, 29, 7), datetime(2024, 2, 29, 7)]


def test_parts_of_dates_need_no_leading_zeros():
    """The dates of a file of 2,000 that Excel wrote were read in 354 rows."""
    result = read(numbered(AMERICAN, pa.string()), card(ColumnCard("date", format="%m/%d/%Y")), "v")
    assert result == [expected_date(text, "%m/%d/%Y") for text in AMERICAN]
    assert sum(day is not None for day in result) == 5
    packed = ["20130102", "2013102", "201312", "2013-1-2"]
    assert read(numbered(packed, pa.string()), card(ColumnCard("date", format="%Y%m%d")), "v") == [
        date(2013, 1, 2), None, None, None
    ]  # fmt: skip


@each("format", NUMBER_FORMATS)
def test_texts_as_numbers(format):
    result = read(numbered(NUMBERS, pa.string()), card(ColumnCard("number", format=format)), "v")
    assert dict(zip(NUMBERS, result, strict=True)) == {text: expected_number(text, format) for text in NUMBERS}


def test_what_the_formats_of_numbers_mean():
    """A few cells by hand, so that the oracle itself is known to read something."""
    said = {"1.234,56": ("5,27", 5.27), "$1,234.56": ("$1,000.50", 1000.5), "1234.56%": ("5%", 5.0)}
    assert all(expected_number(cell, format) == value for format, (cell, value) in said.items())
    assert expected_number("-$5", "$1,234.56") == -5
    assert expected_number("1.00,5", "1.234,56") is None


def test_texts_as_integers():
    cells = ["1,234", "12", "1,23", "999,999,999,999,999,999", "9,999,999,999,999,999,999", "1.0", "-7", "$5"]
    result = read(numbered(cells, pa.string()), card(ColumnCard("integer", format="1,234")), "v")
    assert result == [1234, 12, None, 999999999999999999, None, None, -7, None]


def test_a_unit_has_no_format():
    rows = pa.table({"n": [1], "v": ["1"]})
    who = Card("t", "", {"n": ColumnCard("integer"), "v": ColumnCard("integer", format="1,234")}, "v")
    with refuses(InvalidData, "a unit as the source has it"):
        connect(rows, who).close()


@pytest.mark.slow
@given(st.lists(st.dates(date(1, 1, 1)).map(lambda day: f"{day.year:04}-{day.month:02}-{day.day:02}")
                | st.from_regex(r"[0-2][0-9]{3}-[01][0-9]-[0-3][0-9]", fullmatch=True), min_size=1))  # fmt: skip
def test_every_day_of_the_calendar_and_no_other(texts):
    rows = numbered(texts, pa.string())
    result = read(rows, card(ColumnCard("date", format="%Y-%m-%d")), "v")
    assert result == [expected_date(text) for text in texts]


def test_a_format_needs_a_column_of_text():
    rows = pa.table({"n": [1], "v": pa.array([1], pa.date32())})
    with connect(rows) as engine:
        assert engine.schema()["v"] == "date"
    pq_card = card(ColumnCard("date", format="%Y-%m-%d"))
    with refuses(InvalidData, "text"):
        connect(rows, pq_card).close()


@pytest.mark.parametrize("stored", ["frame", "parquet"])
def test_doubles_as_whole_numbers(tmp_path, stored):
    rows = numbered(DOUBLES, pa.float64())
    pq.write_table(rows, tmp_path / "t.parquet")
    source = rows if stored == "frame" else str(tmp_path / "t.parquet")
    assert read(source, card(ColumnCard("integer")), "v") == [expected_whole(value) for value in DOUBLES]


def check_as_on_duckdb(source, texts: list[str | None]) -> None:
    """Cells read as dates and numbers of every format: to the bit what DuckDB reads, which the tests above check."""
    dates = [ColumnCard("date", format="%m/%d/%Y"), ColumnCard("timestamp", format="%m/%d/%Y")]
    numbers = [ColumnCard("number", format=format) for format in NUMBER_FORMATS]
    for column in (*dates, *numbers, ColumnCard("integer", format="1,234")):
        assert read(source, card(column), "v") == read(numbered(texts, pa.string()), card(column), "v"), column.format


def test_on_postgresql(postgres):
    import psycopg

    url = postgres
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE converted (n BIGINT, v TEXT, x DOUBLE PRECISION)")
        texts = [text for text in HOSTILE if text is None or "\0" not in text]
        with connection.cursor().copy("COPY converted FROM STDIN") as copy:
            for i, text in enumerate(texts):
                copy.write_row((i, text, DOUBLES[i] if i < len(DOUBLES) else None))
    try:
        columns = {"n": ColumnCard("integer"), "v": ColumnCard("date", format="%Y-%m-%d"), "x": ColumnCard("integer")}
        source = f"{url}::converted"
        others = [text for text in [*AMERICAN, *NUMBERS] if text != "x" * 70000]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE written (n BIGINT, v TEXT)")
            with connection.cursor().copy("COPY written FROM STDIN") as copy:
                for line in enumerate(others):
                    copy.write_row(line)
        check_as_on_duckdb(f"{url}::written", others)
        assert read(source, Card("t", "", columns), "v") == [expected_date(text) for text in texts]
        whole = [expected_whole(DOUBLES[i] if i < len(DOUBLES) else None) for i in range(len(texts))]
        assert read(source, Card("t", "", columns), "x") == whole
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE converted")
            connection.execute("DROP TABLE IF EXISTS written")


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # Py4J leaves them to the collector
def test_on_spark(spark):
    schema = "n bigint, v string, x double"
    values = [(i, text, DOUBLES[i] if i < len(DOUBLES) else None) for i, text in enumerate(HOSTILE)]
    columns = {"n": ColumnCard("integer"), "v": ColumnCard("date", format="%Y-%m-%d"), "x": ColumnCard("integer")}
    frame = spark.createDataFrame(values, schema)
    assert read(frame, Card("t", "", columns), "v") == [expected_date(text) for text in HOSTILE]
    assert read(frame, Card("t", "", columns), "x") == [expected_whole(x) for _, _, x in values]
    others = [*AMERICAN, *NUMBERS]
    check_as_on_duckdb(spark.createDataFrame(list(enumerate(others)), "n bigint, v string"), others)


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


def unread_cells_card(source: str, column: ColumnCard) -> Card:
    return Card("t", source, {"n": ColumnCard("integer"), "v": column})


@each("name", list(WRITTEN))
def test_the_format_that_reads_the_cells_is_suggested(name, tmp_path):
    cells, kind, format = WRITTEN[name]
    source = written(tmp_path / "t.csv", [*cells, "NA", "", "oops"])
    with connect(source, unread_cells_card(source, ColumnCard(kind))) as engine:
        (found,) = unread_cells(engine)
    assert (found.column, found.type, found.cells, found.markers) == ("v", kind, len(cells) + 2, 1)
    assert found.unread == len(cells) + 2
    assert [(item.type, item.format, item.read) for item in found.better] == [(kind, format, len(cells))]
    with connect(source, unread_cells_card(source, ColumnCard(kind, format=format))) as engine:
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
    with connect(source, unread_cells_card(source, ColumnCard("date"))) as engine:
        assert [item.format for item in unread_cells(engine)[0].better] == ["%d/%m/%Y", "%m/%d/%Y"]
    source = written(tmp_path / "u.csv", ["1,500", "2,750"])
    with connect(source, unread_cells_card(source, ColumnCard("number"))) as engine:
        assert [item.format for item in unread_cells(engine)[0].better] == ["1234,56", "1,234.56"]


def test_what_reads_is_not_reported(tmp_path):
    source = written(tmp_path / "t.csv", ["1", "2.5", "", "1e3"])
    with connect(source, unread_cells_card(source, ColumnCard("number"))) as engine:
        assert unread_cells(engine) == []
    source = written(tmp_path / "u.csv", ["north", "NA", ""])
    with connect(source, unread_cells_card(source, ColumnCard("text"))) as engine:
        assert unread_cells(engine) == []
        assert proposed_types(connect(source), ["v"]) == {}
    source = written(tmp_path / "w.csv", ["1", "NA", "-"])
    with connect(source, unread_cells_card(source, ColumnCard("integer"))) as engine:
        (found,) = unread_cells(engine)
    assert (found.unread, found.markers, found.better) == (2, 2, ())


def test_only_the_first_cells_are_tried_and_all_are_counted(tmp_path):
    source = written(tmp_path / "t.csv", ["1,5"] * (LOOKED_AT + 10))
    with connect(source, unread_cells_card(source, ColumnCard("number"))) as engine:
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
            with connect(source, unread_cells_card(source, ColumnCard("number", format="1234.56"))) as engine:
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
    with connect(source, unread_cells_card(source, ColumnCard("integer"))) as engine:
        assert [(item.unread, item.better) for item in unread_cells(engine)] == [(1, ())]
