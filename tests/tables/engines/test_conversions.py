"""Dates written as text and whole numbers stored as doubles: read the same everywhere, or NULL."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import InvalidData
from dither.tables.card.model import Card, ColumnCard
from dither.tables.engines import connect
from support import refuses

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


def expected_date(text: str | None, form: str = "%Y-%m-%d") -> date | None:
    """What Python makes of a text that it writes back the same."""
    try:
        value = datetime.strptime(text or "", form)
    except ValueError:
        return None
    written = f"{value.year:04}-{value.month:02}-{value.day:02}"
    return value.date() if text == written else None


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
    assert hours == [None, datetime(2024, 2, 29, 7)]


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
        assert read(source, Card("t", "", columns), "v") == [expected_date(text) for text in texts]
        whole = [expected_whole(DOUBLES[i] if i < len(DOUBLES) else None) for i in range(len(texts))]
        assert read(source, Card("t", "", columns), "x") == whole
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE converted")


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # Py4J leaves them to the collector
def test_on_spark(spark):
    schema = "n bigint, v string, x double"
    values = [(i, text, DOUBLES[i] if i < len(DOUBLES) else None) for i, text in enumerate(HOSTILE)]
    columns = {"n": ColumnCard("integer"), "v": ColumnCard("date", format="%Y-%m-%d"), "x": ColumnCard("integer")}
    frame = spark.createDataFrame(values, schema)
    assert read(frame, Card("t", "", columns), "v") == [expected_date(text) for text in HOSTILE]
    assert read(frame, Card("t", "", columns), "x") == [expected_whole(x) for _, _, x in values]
