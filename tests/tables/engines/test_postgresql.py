"""PostgreSQL: what is its own. The suite that every engine passes is in ``tests/tables/query/test_nodes.py``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import psycopg
import pytest
import sqlglot

from dither.errors import DitherError, InvalidArgument, InvalidData
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.engines import Engine, connect
from dither.tables.query.nodes import MAX_TEXT_BYTES, render
from support import refuses
from support_engines import cancelling, interrupted

pytestmark = pytest.mark.slow


def make(place: str, *statements: str) -> None:
    with psycopg.connect(place, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def rows(engine: Engine, columns: str = "*") -> list[dict[str, Any]]:
    return list(engine.run(f"SELECT {columns} FROM {render(engine.table, 'postgres')} AS t").to_pylist())


@pytest.fixture
def everything(postgres: str) -> Iterator[str]:
    make(
        postgres,
        "CREATE TYPE mood AS ENUM ('a secret', 'sad')",
        "CREATE DOMAIN age AS smallint CHECK (VALUE >= 0)",
        """CREATE TABLE everything (i smallint, n numeric, m numeric(10, 2), w numeric(18, 0), f real, c char(5),
        v varchar(9), u uuid, e mood, g age, b boolean, d date, s timestamp, z timestamptz,
        j json, t time, a integer[])""",
        """INSERT INTO everything VALUES (1, 1e400, 1.25, 7, 0.5, 'a', 'a ',
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'sad', 3, true, 'infinity', '-infinity',
        '2024-01-01 00:00:00+02', '{}', '10:00', '{1}')""",
        "INSERT INTO everything (n, d, s) VALUES ('NaN', '0044-03-15 BC', '10000-01-01')",
        "INSERT INTO everything (n, d, s) VALUES (1e-400, '9999-12-31', '9999-12-31 23:59:59.999999')",
        "INSERT INTO everything (n) VALUES (-1e400)",
        "INSERT INTO everything (n) VALUES (0.1)",
    )
    yield f"{postgres}::everything"
    make(postgres, "DROP TABLE everything", "DROP TYPE mood", "DROP DOMAIN age")


def test_types(everything: str) -> None:
    with connect(everything) as engine:
        assert engine.schema() == {
            "i": "integer", "n": "number", "m": "number", "w": "integer", "f": "number", "c": "text", "v": "text",
            "u": "text", "e": "text", "g": "integer", "b": "boolean", "d": "date", "s": "timestamp", "z": "timestamp",
        }  # fmt: skip
        assert engine.unusable() == ["j", "t", "a"]
        first, second, third, fourth, fifth = rows(engine)
    assert first == {
        "i": 1, "n": math.inf, "m": 1.25, "w": 7, "f": 0.5, "c": "a", "v": "a ",
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "e": "sad", "g": 3,
        "b": True, "d": None, "s": None, "z": datetime(2023, 12, 31, 22),
    }  # fmt: skip
    assert math.isnan(second["n"])
    assert (second["d"], second["s"]) == (None, None)
    assert (third["n"], third["d"]) == (0.0, date(9999, 12, 31))
    assert third["s"] == datetime(9999, 12, 31, 23, 59, 59, 999999)
    assert (fourth["n"], fifth["n"]) == (-math.inf, 0.1)


def test_the_table_means_the_same_when_sqlglot_has_read_it_as_duckdb(everything: str) -> None:
    with connect(everything) as engine:
        again = sqlglot.parse_one(f"SELECT * FROM {engine.table.sql('duckdb')} AS t", read="duckdb")
        assert repr(engine.run(again).to_pylist()) == repr(rows(engine))


def test_a_wrong_type_is_refused(everything: str) -> None:
    with pytest.raises(
        InvalidData, match=r"column e: expected integer, as the card says, got an enumeration"
    ) as caught:
        connect(everything, Card("t", "…", {"e": ColumnCard("integer")}))
    assert "secret" not in str(caught.value)
    with refuses(InvalidData, "column w: expected text"):
        connect(everything, Card("t", "…", {"w": ColumnCard("text")}))


def test_text_is_compared_by_bytes_whatever_the_database_says(everything: str) -> None:
    with connect(everything) as engine:
        table = render(engine.table, "postgres")
        sql = f"SELECT pg_collation_for(t.v) AS v, pg_collation_for(MAX(t.c)) AS c FROM {table} AS t"
        assert engine.run(sql + " GROUP BY t.v LIMIT 1").to_pylist() == [{"v": '"C"', "c": '"C"'}]


def test_the_session(everything: str) -> None:
    with connect(everything) as engine:
        for name, value in {"TimeZone": "UTC", "default_transaction_read_only": "on", "DateStyle": "ISO, YMD"}.items():
            assert engine.run(f"SELECT current_setting('{name}') AS x").to_pylist() == [{"x": value}]
        for sql in (
            "DROP TABLE everything",
            "DELETE FROM everything",
            "SELECT 1; SELECT 2",
            "SET timezone = 'GMT'",
            "",
        ):
            with refuses(DitherError):
                engine.run(sql)
        assert len(rows(engine, "i")) == 5


def test_names(postgres: str) -> None:
    make(
        postgres,
        'CREATE SCHEMA "Clinic"',
        'CREATE TABLE "Clinic"."Visits of 2024" ("A ""b" integer)',
        "CREATE VIEW visits AS SELECT 1 AS a",
        "CREATE TABLE parts (a integer) PARTITION BY RANGE (a)",
    )
    with connect(f'{postgres}::"Clinic"."Visits of 2024"') as engine:
        assert engine.schema() == {'A "b': "integer"}
        assert rows(engine) == []
    with connect(f"{postgres}::Clinic.Visits of 2024") as engine:
        assert engine.schema() == {'A "b': "integer"}
    with connect(f"{postgres}::visits") as engine:
        assert rows(engine) == [{"a": 1}]
    connect(f"{postgres}::parts").close()
    for name in ("Visits", "nothing", "pg_class; DROP TABLE x", "a.b.c", 'a"b', ""):
        with pytest.raises((InvalidData, InvalidArgument)):
            connect(f"{postgres}::{name}")


def test_public_tables_of_the_same_database_stay_there(postgres: str) -> None:
    make(
        postgres,
        "CREATE TABLE codes (code integer, region char(9))",
        "INSERT INTO codes VALUES (1, 'north'), (2, NULL)",
    )
    public = PublicTable(f"{postgres}::codes", {"code": ColumnCard("integer"), "region": ColumnCard("text")})
    wrong = PublicTable(f"{postgres}::codes", {"code": ColumnCard("date")})
    card = Card("t", "…", {"code": ColumnCard("integer")}, public={"codes": public, "wrong": wrong})
    with connect(f"{postgres}::codes", card) as engine:
        assert '"public"."codes"' in render(engine.public("codes"), "postgres")
        assert engine.run(
            f"SELECT region FROM {render(engine.public('codes'), 'postgres')} AS p ORDER BY 1"
        ).to_pylist() == [{"region": "north"}, {"region": None}]
        assert engine.unique("codes", "code")
        with refuses(InvalidData, "column code"):
            engine.public("wrong")
        with refuses(InvalidArgument):
            engine.public("another")


def test_doors_that_stay_shut(postgres: str) -> None:
    make(postgres, "CREATE ROLE poor LOGIN", "CREATE TABLE closed (a integer)", "REVOKE ALL ON closed FROM PUBLIC")
    host = postgres.partition("host=")[2]
    places = {
        f"postgresql://poor@/tables?host={host}::closed": "one without the privilege",
        f"postgresql://somebody:sekret@/tables?host={host}::t": "an unknown user",
        f"postgresql://postgres:sekret@/nothing?host={host}::t": "an unknown database",
        "postgresql://postgres:sekret@127.0.0.1:1/d::t": "no answer",
        "postgresql://postgres:sekret@[h/d::t": "a URL of a different form",
        "postgresql://postgres:sekret@/d?nonsense=1::t": "a URL of a different form",
        "postgresql://postgres:sekret@h/d": "no table",
        "postgresql://postgres:sekret@h/d::": "an empty name",
    }
    for place, message in places.items():
        with pytest.raises((InvalidData, InvalidArgument)) as caught:
            connect(place)
        assert message in str(caught.value)
        assert "sekret" not in str(caught.value)
        assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_table_that_goes_away(postgres: str) -> None:
    make(postgres, "CREATE TABLE gone (a integer)")
    with connect(f"{postgres}::gone") as engine:
        make(postgres, "DROP TABLE gone")
        with refuses(InvalidData, "gone"):
            engine.check()
        with refuses(InvalidData):
            rows(engine)


def test_a_connection_that_breaks(postgres: str, postgres_server: Any) -> None:
    make(postgres, "CREATE TABLE IF NOT EXISTS held (a integer)")
    with connect(f"{postgres}::held") as engine:
        postgres_server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dither'"
        )
        with refuses(InvalidData, "a connection that broke"):
            rows(engine)


SLOW = "SELECT pg_sleep(3600)::text AS s"


def test_stopping_from_another_thread(postgres: str) -> None:
    make(postgres, "CREATE TABLE IF NOT EXISTS held (a integer)")
    with connect(f"{postgres}::held") as engine:
        with cancelling(engine), refuses(DitherError, "one that was stopped"):
            engine.run(SLOW)
        assert rows(engine) == []


def test_ctrl_c_stops_it(postgres: str, postgres_server: Any) -> None:
    make(postgres, "CREATE TABLE IF NOT EXISTS held (a integer)")
    script = f"""
import sys
from dither.tables.engines import connect
engine = connect(sys.argv[1])
try:
    print("asking", flush=True)
    engine.run("{SLOW}")
except KeyboardInterrupt:
    print("stopped", engine.run("SELECT 1 AS n").to_pylist())
"""
    running = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
    said = interrupted(script, f"{postgres}::held", begun=lambda: postgres_server.execute(running))
    assert "stopped [{'n': 1}]" in said
    assert postgres_server.execute(running) == []


def test_a_numeric_that_no_whole_number_can_be_is_null(postgres: str) -> None:
    make(
        postgres,
        "CREATE TABLE odd (w numeric(18, 0), n numeric, d date, s timestamp, z timestamptz)",
        "INSERT INTO odd VALUES ('NaN', 'NaN', 'infinity', '-infinity', 'infinity'), "
        "(7, 1e340, '4713-01-01 BC', '294276-12-31', '-infinity'), "
        "(-7, -1e-340, '5874897-12-31', NULL, '294276-01-01')",
    )
    with connect(f"{postgres}::odd") as engine:
        result = rows(engine)
        assert [row["w"] for row in result] == [None, 7, -7]
        assert [row["n"] for row in result][1:] == [math.inf, 0.0]
        assert {row[name] for row in result for name in "dsz"} == {None}
        make(postgres, "ALTER TABLE odd ALTER w TYPE numeric(17, 0)")
        with refuses(InvalidData, "open it again"):  # how it is read was settled by the type it had
            engine.check()


def test_a_database_in_another_encoding_is_refused(postgres: str) -> None:
    make(postgres, "CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    try:
        place = psycopg.conninfo.make_conninfo(postgres, dbname="bytes")
        make(place, "CREATE TABLE t (x text)", "INSERT INTO t VALUES (E'\\xff')")
        with refuses(InvalidData, "SQL_ASCII"):
            connect(f"{postgres.replace('/tables', '/bytes')}::t")
    finally:
        make(postgres, "DROP DATABASE bytes")


def test_a_text_too_long_for_its_functions_is_null(postgres: str) -> None:
    """TRANSLATE fails above 256 MB; the limit is far below, and one byte more is enough to see that it holds."""
    make(
        postgres,
        "CREATE TABLE long_texts (i bigint, s text)",
        f"INSERT INTO long_texts VALUES (1, repeat('A', {MAX_TEXT_BYTES})), (2, repeat('A', {MAX_TEXT_BYTES} + 1)), "
        f"(3, repeat('é', {MAX_TEXT_BYTES // 2} + 1)), (4, 'A')",
    )
    try:
        with connect(f"{postgres}::long_texts") as engine:
            result = {row["i"]: row["n"] for row in rows(engine, "i, LENGTH(TRANSLATE(s, 'A', 'a')) AS n")}
            again = sqlglot.parse_one(f"SELECT i FROM {engine.table.sql('duckdb')} AS t WHERE s IS NULL", read="duckdb")
            assert sorted(row["i"] for row in engine.run(again).to_pylist()) == [2, 3]
            kept = engine.stage("dither_paying_0", engine.run("SELECT CAST(1 AS BIGINT) AS u"))
            engine.drop(kept)
            assert engine.run("SELECT to_regclass('pg_temp.dither_paying_0') IS NULL AS gone").to_pylist()[0]["gone"]
    finally:
        make(postgres, "DROP TABLE long_texts")
    assert result == {1: MAX_TEXT_BYTES, 2: None, 3: None, 4: 1}
