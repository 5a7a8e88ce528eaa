"""The column that names people: on every engine each of its values is a person of their own, or it is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import InvalidData
from dither.tables.card.model import Card, ColumnCard, Type
from dither.tables.engines import connect
from support import refuses

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # Py4J leaves them to the collector

LONG = "x" * 70_000
VALUES: dict[str, list[Any]] = {
    "BIGINT": [-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1, None],
    "UBIGINT": [0, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, None],
    "HUGEINT": [-(2**100), 2**63, 2**63 + 1, 2**100, 2**100 + 1, None],
    "DECIMAL(38, 0)": [Decimal(10**37), Decimal(10**37 + 1), Decimal(1), None],
    "DECIMAL(20, 2)": [Decimal("1.00"), Decimal("1.01"), Decimal("100000000000000000.01"), None],
    "DOUBLE": [0.0, -0.0, 0.1, 0.1 + 2**-56, 2.0**60, 2.0**60 + 256, 1e300, float("inf"), -1.5, None],
    "FLOAT": [0.5, 0.1, 2.0**30, 2.0**30 + 128, None],
    "VARCHAR": ["", "a", "A", "a ", "\u00e9", "e\u0301", LONG, LONG + "y", "NaN", None],
}
INTEGERS = {"BIGINT"}


def card(type: Type) -> Card:
    return Card("t", "…", {"who": ColumnCard(type)}, "who")


def people(engine: Any) -> int:
    table = engine.table.sql(engine.dialect)
    return int(engine.run(f"SELECT COUNT(DISTINCT who) AS n FROM {table} AS t").column("n")[0].as_py())


def expected_people(values: list[Any]) -> int:
    return len({value for value in values if value is not None})  # 0.0 and -0.0 are one number


@pytest.mark.parametrize("native", VALUES)
def test_every_value_of_a_duckdb_column_is_a_person(tmp_path, native):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t (who {native})")
        connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in VALUES[native]])
        connection.execute(f"COPY t TO '{tmp_path}/t.parquet'")
    sources = [f"{path}::t", str(tmp_path / "t.parquet")]
    for source in sources[:1] if native == "HUGEINT" else sources:  # which Parquet does not have: DuckDB rounds it
        with connect(source, card("text")) as engine:
            assert people(engine) == expected_people(VALUES[native])
        if native in INTEGERS:
            with connect(source, card("integer")) as engine:
                assert people(engine) == expected_people(VALUES[native])
        else:
            with refuses(InvalidData, "column who", "as integer", "say type = 'text'"):
                connect(source, card("integer"))


@pytest.mark.parametrize(
    ("native", "values"),
    [
        ("bigint", VALUES["BIGINT"]),
        ("numeric(18, 0)", [Decimal(10**17), Decimal(10**17 + 1), None]),
        ("numeric(38, 0)", VALUES["DECIMAL(38, 0)"]),
        ("numeric(20, 2)", VALUES["DECIMAL(20, 2)"]),
        ("double precision", VALUES["DOUBLE"]),
        ("real", VALUES["FLOAT"]),
        ("text", VALUES["VARCHAR"]),
    ],
)
def test_every_value_of_a_postgresql_column_is_a_person(postgres, native, values):
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS units")
        connection.execute(f"CREATE TABLE units (who {native})".encode())
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO units VALUES (%s)", [(value,) for value in values])
            if native.startswith(("numeric", "double", "real")):
                cursor.execute("INSERT INTO units VALUES ('NaN')")
    with connect(f"{postgres}::units", card("text")) as engine:
        assert people(engine) == expected_people(values)
    if native in ("bigint", "numeric(18, 0)"):
        with connect(f"{postgres}::units", card("integer")) as engine:
            assert people(engine) == expected_people(values)
    else:
        with refuses(InvalidData, "column who", "as integer", "say type = 'text'"):
            connect(f"{postgres}::units", card("integer"))


def test_a_postgresql_column_in_which_different_texts_are_one_value_names_nobody(postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS units")
        connection.execute("CREATE TABLE units (who numeric)")
        connection.execute("INSERT INTO units VALUES (1.0), (1.00)")
    for type in ("integer", "text"):
        with refuses(InvalidData, "column who", "numeric", "make it text in the source"):
            connect(f"{postgres}::units", card(type))


@pytest.mark.slow
def test_every_value_of_a_spark_column_is_a_person(spark, tmp_path):
    columns = {
        "whole": (pa.int64(), VALUES["BIGINT"]),
        "decimal": (pa.decimal128(38, 0), VALUES["DECIMAL(38, 0)"]),
        "double": (pa.float64(), [*VALUES["DOUBLE"], float("nan")]),
        "text": (pa.string(), VALUES["VARCHAR"]),
    }
    for name, (kind, values) in columns.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"who": pa.array(values, kind)}), path)
        with connect(f"spark::{path}", card("text")) as engine:
            known = [value for value in values if value == value]
            assert people(engine) == expected_people(known)
    with refuses(InvalidData, "as integer", "say type = 'text'"):
        connect(f"spark::{tmp_path}/decimal.parquet", card("integer"))
    raw = spark.sql("SELECT CAST(x AS STRING) AS who FROM VALUES (X'61FF'), (X'61FE'), (X'61') AS t(x)")
    with connect(raw, card("text")) as engine:
        assert people(engine) == 3


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"who": pl.Series([2**63, 2**63 + 1, 1], dtype=pl.UInt64)}),
        pd.DataFrame({"who": pd.Series([2**63, 2**63 + 1, 1], dtype="uint64")}),
        pa.table({"who": pa.array([2**63, 2**63 + 1, 1], pa.uint64())}),
        pa.table({"who": pa.array([Decimal(10**30), Decimal(10**30 + 1), Decimal(1)], pa.decimal128(38, 0))}),
        pd.DataFrame({"who": [1.0, 2.5, 3.0, None]}),
    ],
)
def test_a_frame_is_opened_with_every_person(frame):
    with dp.open(frame, unit="who", budget=dp.PureDP(1)) as table:
        assert table.card.columns["who"].type == "text"
        assert people(table.engine) == 3


@pytest.mark.parametrize(
    ("values", "type"),
    [([1.0, 2.5], "integer"), (["a", "b\ud800"], "text"), ([1, "x"], "integer"), ([2**63, 1], "integer")],
)
def test_a_frame_with_people_that_its_declared_type_cannot_hold_is_refused(values, type):
    frame = pd.DataFrame({"who": pd.Series(values, dtype="object" if type != "integer" or "x" in values else None)})
    with refuses(InvalidData, "column who"):
        dp.open(frame, unit="who", types={"who": type}, budget=dp.PureDP(1))


def test_missing_people_of_a_frame_are_left_out_and_not_refused():
    frame = pd.DataFrame({"who": pd.Series([1, None, float("nan"), pd.NA, 2], dtype="object")})
    with dp.open(frame, unit="who", types={"who": "integer"}, budget=dp.PureDP(1)) as table:
        assert people(table.engine) == 2


def test_a_csv_cell_that_names_nobody_is_for_its_steward_to_correct(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("who\n1\n\n2\n")
    with connect(str(path), card("integer")) as engine:
        engine.check_people()
        path.write_text("who\n1\n99999999999999999999\n2\n")
        with refuses(InvalidData, "whole numbers of 64 bits in who", "say type = 'text'"):
            engine.check_people()
    with connect(str(path), card("text")) as engine:
        engine.check_people()
        assert people(engine) == 3
