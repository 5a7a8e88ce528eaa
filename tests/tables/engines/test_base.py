"""Files, databases and frames in DuckDB: what is read, what is refused, and what nobody gets to see."""

from __future__ import annotations

import gzip
import os
import traceback
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import DitherError, InvalidArgument, InvalidData, WrongType
from dither.tables.card.model import Card, ColumnCard, Type
from dither.tables.engines import connect, malformed_lines
from support import refuses
from support_engines import cancelling, interrupted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # Py4J leaves them to the collector
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def card(**types: Type) -> Card:
    return Card("t", "…", {name: ColumnCard(type) for name, type in types.items()})


def rows(source: object, said: Card | None = None) -> list[dict[str, Any]]:
    with connect(source, said) as engine:
        return list(engine.run("SELECT * FROM dither_rows").to_pylist())


def refused(source: object, said: Card | None = None) -> str:
    with pytest.raises((InvalidData, InvalidArgument)) as caught:
        connect(source, said)
    assert caught.value.__cause__ is None
    return str(caught.value)


# -- CSV -------------------------------------------------------------------------------------------------------------


def csv(folder: Path, text: str | bytes, name: str = "t.csv") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_csv_cells_are_read_as_the_card_says(tmp_path: Path) -> None:
    path = csv(
        tmp_path,
        "i,x,t,b,d,s\n"
        "1,1.5,a,true,2024-02-29,2024-02-29 12:00:00\n"
        '-7,1e3," a ",false,2024-01-01,2024-01-01T00:00:00+02:00\n'
        ",,,,,\n"
        '"","","","","",""\n'
        "one,two,,maybe,2023-02-29,never\n"
        "99999999999999999999,nan,é😀,1,99999-01-01,2024-01-01\n",
    )
    types: dict[str, Type] = {"i": "integer", "x": "number", "t": "text", "b": "boolean", "d": "date", "s": "timestamp"}
    result = rows(path, card(**types))
    assert result[0] == {"i": 1, "x": 1.5, "t": "a", "b": True, "d": date(2024, 2, 29), "s": datetime(2024, 2, 29, 12)}
    assert result[1] == {
        "i": -7,
        "x": 1000.0,
        "t": " a ",
        "b": False,
        "d": date(2024, 1, 1),
        "s": datetime(2023, 12, 31, 22),
    }
    assert set(result[2].values()) == {None}
    assert result[3] == {"i": None, "x": None, "t": "", "b": None, "d": None, "s": None}  # quoted: empty text
    assert set(result[4].values()) == {None}
    assert (result[5]["i"], result[5]["t"], result[5]["d"]) == (None, "é😀", None)


def test_types_of_csv_files_are_never_guessed(tmp_path: Path) -> None:
    with connect(csv(tmp_path, "a,b\n1,2024-01-01\n")) as engine:
        assert engine.schema() == {"a": "text", "b": "text"}
    assert rows(csv(tmp_path, "a\n007\n"), card(a="text")) == [{"a": "007"}]


@pytest.mark.parametrize("text", ["a;b\n1;x,y\n", "a\tb\n1\tx,y\n", "a|b\n1|x,y\n", 'a,b\n1,"x,y"\n'])
def test_the_header_says_what_is_between_cells(tmp_path: Path, text: str) -> None:
    assert rows(csv(tmp_path, text), card(a="integer", b="text")) == [{"a": 1, "b": "x,y"}]


@pytest.mark.parametrize(
    "text", ["a,b\r\n1,x\r\n", "\ufeffa,b\n1,x\n", 'b,"a"\nx,1\n', 'a,b\n1,"x"\n', "extra,a,b\nq,1,x", ",a,b\n0,1,x\n"]
)
def test_forms_of_csv(tmp_path: Path, text: str) -> None:
    assert rows(csv(tmp_path, text), card(a="integer", b="text")) == [{"a": 1, "b": "x"}]


def test_compressed_csv(tmp_path: Path) -> None:
    path = csv(tmp_path, gzip.compress(b"a\n1\n"), "t.csv.gz")
    assert rows(path, card(a="integer")) == [{"a": 1}]


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    assert rows(csv(tmp_path, "a,b\n"), card(a="integer", b="text")) == []
    assert rows(csv(tmp_path, "a,b"), card(a="integer", b="text")) == []


@pytest.mark.parametrize("line", ["1", "1,2,3", '1,"2', "1,\xff", '1,2"', "1,\r2"])
def test_a_file_with_a_malformed_line_is_refused_when_it_is_opened(tmp_path: Path, line: str) -> None:
    path = csv(tmp_path, b"a,b\n5,a secret\n" + line.encode("latin-1") + b"\n")
    message = refused(path, card(a="integer", b="text"))
    assert "a record on each line" in message
    assert "secret" not in message
    assert not set(message) & set("0123456789") - {"8"}  # not even the number of the line; UTF-8 is a name
    assert list(malformed_lines(path)) == [(path, 3)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "an empty one"),
        (b"\n1\n", "an empty first line"),
        (b"a,a\n1,2\n", "two of one name"),
        (b"a,A\n1,2\n", "more than case"),
        (b"\xff\xfea\n", "another encoding"),
        (b"b\n1\n", "column a: expected a column of the source, got none of that name"),
        (b"A\n1\n", "Fix: write it as A"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, text: bytes, said: str) -> None:
    assert said in refused(csv(tmp_path, text), card(a="integer"))


def test_several_csv_files_have_one_header(tmp_path: Path) -> None:
    csv(tmp_path, "a,b\n1,x\n", "1.csv")
    csv(tmp_path, "a,b\n2,y\n", "2.csv")
    assert len(rows(tmp_path / "*.csv", card(a="integer"))) == 2
    csv(tmp_path, "b,a\n2,y\n", "3.csv")
    assert "different ones" in refused(tmp_path / "*.csv", card(a="integer"))


# -- Parquet ---------------------------------------------------------------------------------------------------------


def test_parquet(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None], "b": ["x", ""], "l": [[1], []], "e": pa.array(["p", "q"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "t.parquet")
    with connect(tmp_path / "t.parquet") as engine:
        assert engine.schema() == {"a": "integer", "b": "text", "e": "text"}
        assert engine.unusable() == ["l"]
    assert rows(tmp_path / "*.parquet", card(a="number", b="text")) == [{"a": 1.0, "b": "x"}, {"a": None, "b": ""}]


@pytest.mark.parametrize("name", ["it's.parquet", "sp ace.parquet", "ü😀.parquet", "a;b--.parquet"])
def test_odd_file_names(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / name)
    assert rows(tmp_path / name) == [{"a": 1}]


def test_a_file_name_is_never_a_pattern_for_others(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a1.parquet")
    pq.write_table(pa.table({"a": [2]}), tmp_path / "a[1].parquet")
    assert "rename" in refused(tmp_path / "a[1].parquet")


def test_parquet_files_of_different_schemas(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["a secret"]}), tmp_path / "2.parquet")
    assert "different ones" in refused(tmp_path / "*.parquet")


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": list(range(10000))}), path)
    whole = path.read_bytes()
    for cut in (0, 3, 8, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert "source:" in refused(path)
    path.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    with connect(path) as engine, refuses(InvalidData) as caught:
        engine.run("SELECT SUM(a) AS s FROM dither_rows")
    assert caught.value.__cause__ is None


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with connect(path) as engine:
        path.unlink()
        with refuses(InvalidData):
            engine.check()
        with refuses(InvalidData):
            engine.run("SELECT * FROM dither_rows")


def test_a_file_that_changes_its_type_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with connect(path, card(a="integer")) as engine:
        engine.check()
        pq.write_table(pa.table({"a": ["x"]}), path)
        with refuses(InvalidData, "column a: expected integer, as the card says, got VARCHAR"):
            engine.check()


def test_a_csv_file_whose_columns_change_places_is_noticed(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b\n1,2\n")
    with connect(path, card(a="integer")) as engine:
        csv(tmp_path, "b,a\n2,1\n")
        with refuses(InvalidData, "open it again"):
            engine.check()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.parquet", "no such file"),
        ("*.parquet", "no such file"),
        (".", "a folder"),
        ("t.xlsx", "ends in"),
        ("t", "ends in"),
        ("t.duckdb", "add ::table"),
        ("t.duckdb::", "an empty name"),
        ("nothing.duckdb::t", "no such file"),
        ("t.xlsx::t", "a different kind"),
    ],
)
def test_places_that_are_refused(tmp_path: Path, name: str, said: str) -> None:
    for there in ("t.xlsx", "t", "t.duckdb"):
        (tmp_path / there).write_text("something")
    assert said in refused(str(tmp_path / name))


@pytest.mark.parametrize(
    "source", ["", " ", "s3://bucket/t.parquet", "https://x/t.csv", "mysql://u:sekret@h/d::t", "::t"]
)
def test_sources_that_are_refused(source: str) -> None:
    assert "sekret" not in refused(source)


def test_things_that_are_no_source() -> None:
    for thing in (7, None, [1], {"a": 1}, pd.Series([1]), pa.array([1])):
        with refuses(WrongType):
            connect(thing)


# -- DuckDB's own files ----------------------------------------------------------------------------------------------


def test_a_duckdb_file(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as own:
        own.execute("CREATE TABLE visits (a INTEGER, h HUGEINT, u UUID, e ENUM('x', 'a secret'), s TIMESTAMPTZ)")
        own.execute("INSERT INTO visits VALUES (1, 2 ** 100, uuid(), 'x', '2024-01-01 00:00:00+02')")
        own.execute('CREATE SCHEMA more; CREATE VIEW more."A view" AS SELECT a FROM visits')
    with connect(f"{path}::visits") as engine:
        assert engine.schema() == {"a": "integer", "h": "integer", "u": "text", "e": "text", "s": "timestamp"}
        result = engine.run("SELECT a, h, e, s FROM dither_rows").to_pylist()
        assert result == [{"a": 1, "h": None, "e": "x", "s": datetime(2023, 12, 31, 22)}]
        with refuses(DitherError):
            engine.run("INSERT INTO source.visits (a) VALUES (1)")
    assert rows(f'{path}::more."A view"') == [{"a": 1}]
    assert "none of that name" in refused(f"{path}::nothing")
    message = refused(f"{path}::visits", card(e="integer"))
    assert "got ENUM" in message
    assert "secret" not in message
    with duckdb.connect(str(path)) as own:
        own.execute("CREATE TABLE open_elsewhere (a INTEGER)")
        assert "close it elsewhere" in refused(f"{path}::visits")


# -- frames ----------------------------------------------------------------------------------------------------------


def test_frames() -> None:
    message = card(a="integer", t="text")
    expected = [{"a": 1, "t": "x"}, {"a": 2, "t": None}]
    table = pa.table({"a": [1, 2], "t": ["x", None]})
    frames = [
        table,
        table.to_batches()[0],
        pd.DataFrame({"a": [1, 2], "t": ["x", None]}),
        pd.DataFrame({"a": [1, 2], "t": pd.Series(["x", None], dtype=object)}),
        pl.DataFrame({"a": [1, 2], "t": ["x", None]}),
        pl.LazyFrame({"a": [1, 2], "t": ["x", None]}),
        pl.DataFrame({"a": [1, 2], "t": pl.Series(["x", None], dtype=pl.Categorical)}),
        duckdb.sql("SELECT 1 AS a, 'x' AS t UNION ALL SELECT 2, NULL ORDER BY a"),
    ]
    for frame in frames:
        assert rows(frame, message) == expected, type(frame)


def test_objects_in_pandas_are_what_the_card_says() -> None:
    frame = pd.DataFrame({"d": pd.Series([date(2024, 1, 1), None], dtype=object), "b": [True, None]})
    assert rows(frame, card(d="date", b="boolean")) == [{"d": date(2024, 1, 1), "b": True}, {"d": None, "b": None}]
    mixed = pd.DataFrame({"t": pd.Series(["a secret", 1.5], dtype=object)})
    assert rows(mixed, card(t="text")) == [{"t": "a secret"}, {"t": None}]
    assert "secret" not in refused(mixed)


def test_whole_numbers_that_pandas_made_floats_are_whole_numbers_again() -> None:
    frame = pd.DataFrame({"a": [1, None, 1.5, 2.0**60]})
    assert rows(frame, card(a="integer")) == [{"a": 1}, {"a": None}, {"a": None}, {"a": None}]


def test_types_that_a_card_may_give() -> None:
    table = pa.table(
        {"i": [1], "x": [1.5], "t": ["a"], "b": [True], "d": [date(2024, 1, 1)], "s": [datetime(2024, 1, 1)]}
    )
    allowed = {
        "i": ["integer", "number"],
        "x": ["integer", "number"],
        "t": ["text"],
        "b": ["boolean"],
        "d": ["date"],
        "s": ["timestamp"],
    }
    for name in table.column_names:
        for type in ("integer", "number", "text", "boolean", "date", "timestamp"):
            if type in allowed[name]:
                connect(table, card(**{name: type})).close()
            else:
                assert f"column {name}: expected {type}" in refused(table, card(**{name: type}))


def test_nothing_but_unusable_columns() -> None:
    assert "none" in refused(pa.table({"l": [[1]]}))
    assert "two of one name" in refused(pa.table([[1], [2]], names=["a", "a"]))


# -- what it may do --------------------------------------------------------------------------------------------------


def test_nothing_else_can_be_read_or_written(tmp_path: Path) -> None:
    path = csv(tmp_path, "a\n1\n")
    other = csv(tmp_path, "b\na secret\n", "other.csv")
    secret = pa.table({"b": [1]})  # noqa: F841 - DuckDB finds Python's variables by name, if it is let
    with connect(path, card(a="integer")) as engine:
        for sql in (
            f"SELECT * FROM read_csv('{other}')",
            f"SELECT * FROM '{other}'",
            f"SELECT * FROM read_text('{other}')",
            f"SELECT * FROM glob('{tmp_path}/*')",
            "SELECT * FROM secret",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            f"ATTACH '{tmp_path}/new.duckdb' AS more",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET lock_configuration = false",
            "SET enable_external_access = true",
            "CREATE TABLE x (a INTEGER)",
            "SELECT 1; SELECT 2",
            "",
        ):
            with refuses(DitherError):
                engine.run(sql)
        assert sorted(os.listdir(tmp_path)) == ["other.csv", "t.csv"]
        settings = (
            "SELECT name, value FROM duckdb_settings() WHERE name = ANY(['autoinstall_known_extensions', 'TimeZone',"
        )
        result = engine.run(settings + " 'autoload_known_extensions', 'enable_progress_bar', 'temp_file_encryption'])")
        assert {row["name"]: row["value"] for row in result.to_pylist()} == {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "enable_progress_bar": "false",
            "temp_file_encryption": "true",
            "TimeZone": "UTC",
        }


def test_its_folder_goes_with_it() -> None:
    engine = connect(pa.table({"a": [1]}))
    folder = Path(engine._spill)  # type: ignore[attr-defined]
    assert folder.stat().st_mode & 0o777 == 0o700
    engine.close()
    assert not folder.exists()
    with refuses(DitherError):
        engine.run("SELECT 1 AS one")


def test_mistakes_in_the_sql_keep_their_cause() -> None:
    with connect(pa.table({"a": [1]})) as engine, refuses(InvalidData) as caught:
        engine.run("SELECT nothing FROM dither_rows")
    assert isinstance(caught.value.__cause__, duckdb.BinderException)


SLOW = "SELECT SUM(x.a * y.a % 7) AS s FROM dither_rows AS x, dither_rows AS y"


def test_stopping_from_another_thread() -> None:
    with connect(pa.table({"a": list(range(300_000))})) as engine:
        with cancelling(engine), refuses(DitherError, "one that was stopped"):
            engine.run(SLOW)
        assert engine.run("SELECT COUNT(*) AS n FROM dither_rows").to_pylist() == [{"n": 300_000}]


def test_ctrl_c_stops_it() -> None:
    script = f"""
import threading, time
import pyarrow as pa
from dither.tables.engines import connect
engine = connect(pa.table({{"a": list(range(300_000))}}))
def say_that_it_has_begun(before=time.process_time()):
    while time.process_time() < before + 0.3:  # of the engine, whose work is in this process
        time.sleep(0.01)
    print("asking", flush=True)
try:
    threading.Thread(target=say_that_it_has_begun, daemon=True).start()
    engine.run("{SLOW}")
except KeyboardInterrupt:
    print("stopped", engine.run("SELECT COUNT(*) AS n FROM dither_rows").to_pylist())
"""
    assert "stopped [{'n': 300000}]" in interrupted(script, begun=lambda: True)


def test_a_collation_of_the_source_makes_no_texts_equal(tmp_path):
    """Texts that differ are different keys, whatever the source thinks of them: nobody's spelling stands for others."""
    source = tmp_path / "cities.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.execute("CREATE TABLE visits(who BIGINT, city VARCHAR COLLATE nocase)")
        connection.execute(
            "INSERT INTO visits SELECT i, CASE WHEN i = 0 THEN 'PaRiS' ELSE 'paris' END FROM range(400) r(i)"
        )
    for unit in ("who", None):
        with dp.open(f"{source}::visits", unit=unit, name="visits", delta=1e-6, budget=dp.ApproxDP(100, 0.1)) as table:
            question = table.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city")
            assert [row[0] for row in question.release(epsilon=5).rows] == ["paris"]
            listed = table.group_by(dp.among("city", ["paris", "PARIS"])).agg(n=dp.count())
            assert [round(row[1], -2) for row in listed.release(epsilon=9).rows] == [400, 0]


def in_child(work: Callable[[], None]) -> bool:
    """Whether a forked process does this without an error, and within ten minutes."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            import signal

            signal.alarm(600)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_question_in_a_child_is_refused_before_it_is_charged(tmp_path: Path) -> None:
    with dp.open(pa.table({"x": [1, 2]}), budget=dp.PureDP(1), ledger=str(tmp_path / "l.sqlite")) as table:
        question = table.sql("SELECT COUNT(*) n FROM data")
        question.release(0.25)
        entries = len(list(table.ledger.history()))

        def ask() -> None:
            with refuses(DitherError, "open it again in this process"):
                question.release(0.5)
            for work in (table.engine.check, lambda: table.engine.run("SELECT 1 AS a"), table.engine.schema):
                with refuses(DitherError, "before the process was forked"):
                    work()

        assert in_child(ask)
        assert len(list(table.ledger.history())) == entries
        assert len(question.release(0.5).rows) == 1


def test_closing_in_a_child_leaves_everything_to_the_parent() -> None:
    engine = connect(pa.table({"x": [1, 2]}))
    folder = Path(engine._spill)  # type: ignore[attr-defined]

    def leave() -> None:
        engine.cancel()
        engine.close()
        assert folder.exists()

    assert in_child(leave)
    assert folder.exists()
    assert engine.run("SELECT SUM(x) AS s FROM dither_rows").to_pylist() == [{"s": 3}]
    engine.close()
    assert not folder.exists()


def test_the_folder_of_a_ledger_outlives_a_child_that_ends_as_programs_do() -> None:
    with dp.open(pa.table({"x": [1, 2]}), budget=dp.PureDP(1)) as table:
        folder = Path(table.temporary_folder.name)

        def end() -> None:
            table.temporary_folder.remove()
            table.engine._folder.remove()  # type: ignore[attr-defined]

        assert in_child(end)
        assert folder.exists()
        table.sql("SELECT COUNT(*) n FROM data").release(0.5)
    assert not folder.exists()


def test_a_table_opened_in_the_child_works(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n")
    engine = connect(str(path))

    def ask() -> None:
        with connect(str(path)) as own:
            assert own.run("SELECT COUNT(*) AS n FROM dither_rows").to_pylist() == [{"n": 1}]

    assert in_child(ask)
    engine.close()


def test_connections_to_a_server_stay_with_the_parent(postgres: str) -> None:
    engine = connect(f"{postgres}::pg_catalog.pg_class")

    def ask() -> None:
        with refuses(DitherError, "before the process was forked"):
            engine.run("SELECT 1 AS a")
        engine.close()

    assert in_child(ask)
    assert engine.run("SELECT 1 AS a").to_pylist() == [{"a": 1}]
    engine.close()


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


def units_card(type: Type) -> Card:
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
        with connect(source, units_card("text")) as engine:
            assert people(engine) == expected_people(VALUES[native])
        if native in INTEGERS:
            with connect(source, units_card("integer")) as engine:
                assert people(engine) == expected_people(VALUES[native])
        else:
            with refuses(InvalidData, "column who", "as integer", "say type = 'text'"):
                connect(source, units_card("integer"))


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
    with connect(f"{postgres}::units", units_card("text")) as engine:
        assert people(engine) == expected_people(values)
    if native in ("bigint", "numeric(18, 0)"):
        with connect(f"{postgres}::units", units_card("integer")) as engine:
            assert people(engine) == expected_people(values)
    else:
        with refuses(InvalidData, "column who", "as integer", "say type = 'text'"):
            connect(f"{postgres}::units", units_card("integer"))


def test_a_postgresql_column_in_which_different_texts_are_one_value_names_nobody(postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS units")
        connection.execute("CREATE TABLE units (who numeric)")
        connection.execute("INSERT INTO units VALUES (1.0), (1.00)")
    for type in ("integer", "text"):
        with refuses(InvalidData, "column who", "numeric", "make it text in the source"):
            connect(f"{postgres}::units", units_card(type))


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
        with connect(f"spark::{path}", units_card("text")) as engine:
            known = [value for value in values if value == value]
            assert people(engine) == expected_people(known)
    with refuses(InvalidData, "as integer", "say type = 'text'"):
        connect(f"spark::{tmp_path}/decimal.parquet", units_card("integer"))
    raw = spark.sql("SELECT CAST(x AS STRING) AS who FROM VALUES (X'61FF'), (X'61FE'), (X'61') AS t(x)")
    with connect(raw, units_card("text")) as engine:
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
    with connect(str(path), units_card("integer")) as engine:
        engine.check_people()
        path.write_text("who\n1\n99999999999999999999\n2\n")
        with refuses(InvalidData, "whole numbers of 64 bits in who", "say type = 'text'"):
            engine.check_people()
    with connect(str(path), units_card("text")) as engine:
        engine.check_people()
        assert people(engine) == 3
