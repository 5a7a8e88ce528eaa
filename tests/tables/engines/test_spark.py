"""Spark: the suite that every engine passes, and what is Spark's own. All of it in one file, so that it starts once."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dither.errors import DitherError, InvalidArgument, InvalidData
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.engines import connect
from support import refuses
from support_engines import Primitives

# pyspark reads every answer from a socket that it leaves to the collector
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]


class TestSpark(Primitives):
    kind = "spark"


def test_a_view_of_the_active_session(spark: Any) -> None:
    spark.sql("SELECT 1 AS a, 'x' AS b, array(1) AS c").createOrReplaceTempView("mine")
    with connect("spark::mine") as engine:
        assert engine.schema() == {"a": "integer", "b": "text"}
        assert engine.unusable() == ["c"]
        assert engine.run("SELECT * FROM dither_rows").to_pylist() == [{"a": 1, "b": "x"}]
    assert spark.sql("SHOW VIEWS IN global_temp").filter("namespace = 'global_temp'").count() == 0


def test_the_session_of_the_user_stays_as_it_is(spark: Any) -> None:
    names = [
        "spark.sql.session.timeZone",
        "spark.sql.ansi.enabled",
        "spark.sql.caseSensitive",
        "spark.sql.timestampType",
    ]
    before = [spark.conf.get(name) for name in names]
    with connect(spark.range(3)) as engine:
        engine.run("SELECT COUNT(*) AS n FROM dither_rows")
        assert [spark.conf.get(name) for name in names] == before
        assert engine._session.conf.get("spark.sql.shuffle.partitions") == "2"  # taken over: it says how, not what
    assert [spark.conf.get(name) for name in names] == before


def test_the_session_of_the_user_stays_the_active_one(spark: Any) -> None:
    before = spark.getActiveSession()
    public = PublicTable("…", {"code": ColumnCard("integer")})
    with connect(spark.range(3), Card("t", "…", {"id": ColumnCard("integer")}, public={"p": public})) as loaded:
        loaded.stage("p", pa.table({"code": [1]}))
        loaded.run("SELECT COUNT(*) AS n FROM dither_rows")
        assert spark.getActiveSession()._jsparkSession.equals(before._jsparkSession)


def test_times_are_utc_whatever_the_session_says(spark: Any) -> None:
    frame = spark.sql("SELECT TIMESTAMP '2024-01-01 00:00:00 UTC' AS s")
    with connect(frame) as engine:
        assert engine.run("SELECT s FROM dither_rows").to_pylist() == [{"s": datetime(2024, 1, 1)}]


def test_types(spark: Any) -> None:
    frame = spark.sql(
        """SELECT CAST(1 AS TINYINT) a, CAST(1 AS DECIMAL(18, 0)) b, CAST(1 AS DECIMAL(19, 0)) c, CAST(0.5 AS FLOAT) d,
        CAST(1.25 AS DECIMAL(10, 2)) e, binary('x') f, NULL g, DATE '2024-01-01' h"""
    )
    with connect(frame) as engine:
        assert engine.schema() == {
            "a": "integer", "b": "integer", "c": "number", "d": "number", "e": "number", "g": "integer", "h": "date",
        }  # fmt: skip
        assert engine.run("SELECT a, b, c, d, e, g FROM dither_rows").to_pylist() == [
            {"a": 1, "b": 1, "c": 1.0, "d": 0.5, "e": 1.25, "g": None}
        ]


def test_padding_is_no_part_of_char(spark: Any, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE padded (c CHAR(5), v VARCHAR(5)) USING parquet LOCATION 'file:{tmp_path}/padded'")
    try:
        spark.sql("INSERT INTO padded VALUES ('a', 'a ')")
        with connect("spark::padded") as engine:
            assert engine.run("SELECT c, v FROM dither_rows").to_pylist() == [{"c": "a", "v": "a "}]
    finally:
        spark.sql("DROP TABLE padded")


def test_parquet_files(spark: Any, tmp_path: Path) -> None:
    for i in range(2):
        pq.write_table(pa.table({"x": [i, i]}), tmp_path / f"{i}.parquet")
    with connect(f"spark::{tmp_path}/*.parquet", Card("t", "…", {"x": ColumnCard("integer")})) as engine:
        assert engine.run("SELECT SUM(x) AS s FROM dither_rows").to_pylist() == [{"s": 2}]


def test_a_public_table_that_spark_knows(spark: Any) -> None:
    spark.sql("SELECT 1 AS code, 'north' AS region").createOrReplaceTempView("regions")
    public = PublicTable("spark::regions", {"code": ColumnCard("integer"), "region": ColumnCard("text")})
    card = Card("t", "…", {"code": ColumnCard("integer")}, public={"regions": public})
    with connect(spark.sql("SELECT 1 AS code"), card) as engine:
        sql = (
            f"SELECT region FROM dither_rows AS t JOIN {engine.public('regions').sql('spark')} AS p ON t.code = p.code"
        )
        assert engine.run(sql).to_pylist() == [{"region": "north"}]
        assert engine.unique("regions", "code")


@pytest.mark.parametrize("name", ["nothing_here", "a b", "", "drop table x"])
def test_no_such_table(spark: Any, name: str) -> None:
    with pytest.raises((InvalidData, InvalidArgument)) as caught:
        connect(f"spark::{name}")
    assert caught.value.__cause__ is None


def test_a_wrong_type_is_refused(spark: Any) -> None:
    with pytest.raises(
        InvalidData, match=r"column id: expected text, as the card says, got bigint\. Fix: say type = 'int"
    ):
        connect(spark.range(1), Card("t", "…", {"id": ColumnCard("text")}))


def test_names_that_differ_by_case_alone(spark: Any) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.sql("SELECT 1 AS a, 2 AS A")
        with refuses(InvalidData, "more than case"):
            connect(frame)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_stopping(spark: Any) -> None:
    slow = "SELECT SUM(a.id % (b.id + 7)) AS s FROM dither_rows AS a CROSS JOIN dither_rows AS b"
    with connect(spark.range(3_000_000)) as engine:
        waiting = threading.Timer(1.5, engine.cancel)
        waiting.start()
        start = time.monotonic()
        with refuses(DitherError, "one that was stopped"):
            engine.run(slow)
        assert time.monotonic() - start < 60
        waiting.join()
        assert engine.run("SELECT COUNT(*) AS n FROM dither_rows").to_pylist() == [{"n": 3_000_000}]


def test_text_that_is_not_utf8_is_null(spark: Any) -> None:
    """Spark holds any bytes as text; reading such an answer would be an error that depends on a row."""
    frame = spark.sql("SELECT CAST(x AS STRING) AS t FROM VALUES (X'FF'), (X'C3A9'), (X'EDA080') AS v(x)")
    with connect(frame) as engine:
        assert engine.run("SELECT t FROM dither_rows").column("t").to_pylist() == [None, "é", None]


def test_text_of_a_file_that_is_not_utf8_is_null(spark: Any, tmp_path: Path) -> None:
    raw = pa.array([b"ok", b"\xff\xfe", b"caf\xe9", None, "é".encode()])
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    pq.write_table(pa.table({"t": text}), tmp_path / "t.parquet")
    with connect(f"spark::{tmp_path}/t.parquet", Card("t", "…", {"t": ColumnCard("text")})) as engine:
        result = engine.run("SELECT t, LOWER(t) AS low, MD5(t) AS m FROM dither_rows").to_pylist()
        assert [row["t"] for row in result] == ["ok", None, None, None, "é"]
        assert engine.run("SELECT t, COUNT(*) AS n FROM dither_rows GROUP BY t").num_rows == 3
