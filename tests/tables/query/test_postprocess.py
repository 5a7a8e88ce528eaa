"""The isolated database: it holds the noisy table, and whatever is asked of it, it reads nothing else."""

from __future__ import annotations

import os
from datetime import date, datetime

import duckdb
import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.query import postprocess
from dither.tables.query.postprocess import IsolatedDatabase, rehearse
from dither.tables.query.tree import PostProcessing
from support import refuses

COLUMNS = {"region": "text", "n": "integer"}
ROWS = [("a", 5), ("b", 0), (None, -2)]
outside = ["a variable of this module"]


def run(sql: str, rows=ROWS, columns=COLUMNS, seconds: float = 600):
    with IsolatedDatabase(PostProcessing(sql), columns, seconds=seconds) as database:
        return database.run(rows)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT getenv('HOME')",
        "SELECT * FROM outside",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
        "SELECT * FROM sqlite_scan('x', 'y')",
    ],
)
def test_nothing_outside_can_be_read(tmp_path, sql):
    file = tmp_path / "secret.csv"
    file.write_text("name\nAda\n")
    with pytest.raises(duckdb.Error) as error:
        run(sql.format(file=file, folder=tmp_path))
    assert "Ada" not in str(error.value)
    assert os.environ.get("HOME", "-") not in str(error.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SET enable_external_access = true", "ATTACH '{file}'", "COPY noisy TO '{file}'", "INSTALL httpfs",
        "LOAD httpfs",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; SELECT 2", "PRAGMA database_list", "EXPORT DATABASE '{file}'",
    ],
)  # fmt: skip
def test_only_one_select_is_run(tmp_path, sql):
    file = tmp_path / "written"
    with pytest.raises((InvalidArgument, duckdb.Error)):
        run(sql.format(file=file))
    assert not file.exists()


def test_types_become_those_of_an_answer():
    sql = """SELECT region, n, n / 2 AS half, SUM(n) OVER () AS total, n > 0 AS positive, DATE '2024-02-29' AS day,
             TIMESTAMP '2024-02-29 12:00:00' AS at, NULL AS nothing, ROUND(2.5, 1) AS rounded,
             ln(n) AS log FROM noisy"""
    result = run(sql)
    assert result.types == (
        "text", "integer", "number", "integer", "boolean", "date", "timestamp", "text", "number", "number"
    )  # fmt: skip
    assert result.rows[0][:8] == ("a", 5, 2.5, 3, True, date(2024, 2, 29), datetime(2024, 2, 29, 12), None)
    assert [row[9] for row in result.rows][1:] == [None, None]


def test_names_are_distinct():
    assert run("SELECT n AS a, n AS a, n AS a FROM noisy").names == ("a", "a_2", "a_3")


def test_numbers_beyond_64_bits_are_numbers():
    result = run("SELECT n::HUGEINT * 100000000000000000000::HUGEINT AS large FROM noisy")
    assert result.types == ("number",)
    assert result.rows[0] == (5e20,)


def test_a_statement_that_runs_for_long_is_stopped():
    with pytest.raises(duckdb.Error):  # it would take years
        run("SELECT COUNT(*) FROM range(10000000) a, range(10000000) b WHERE hash(a.range + b.range) = 3", seconds=0.3)


def test_memory_is_limited():
    with pytest.raises(duckdb.Error):
        run("SELECT COUNT(DISTINCT hash(range)) AS x FROM range(100000000)", seconds=60)


@pytest.mark.parametrize(
    ("sql", "fragment"),
    [
        ("SELECT m FROM noisy", "not found"),
        ("SELECT * FROM other", "does not exist"),
        ("SELECT SUM(region) FROM noisy", "sum(VARCHAR)"),
        ("SELECT (SELECT n FROM noisy) FROM noisy", "More than one row"),
        ("SELECT INTERVAL 1 DAY AS wait FROM noisy", "INTERVAL"),
        ("SELECT LIST(n) AS many FROM noisy", "CAST"),
    ],
)
def test_what_fails_on_made_up_rows_is_refused(sql, fragment):
    with refuses(InvalidArgument, fragment):
        rehearse(PostProcessing(sql), COLUMNS)


def test_a_rehearsal_is_about_all_types():
    columns = {"i": "integer", "x": "number", "t": "text", "b": "boolean", "d": "date", "at": "timestamp"}
    assert rehearse(PostProcessing("SELECT * FROM noisy"), columns).types == tuple(columns.values())


def test_a_statement_is_rehearsed_once_and_a_refused_one_again(monkeypatch):
    opened = []
    opening = IsolatedDatabase.__init__
    monkeypatch.setattr(
        IsolatedDatabase, "__init__", lambda self, *of, **more: opened.append(of) or opening(self, *of, **more)
    )
    statement = PostProcessing("SELECT 41 + COUNT(*) AS rehearsed_once FROM noisy, range(1000)")
    first, again = (rehearse(statement, COLUMNS) for _ in range(2))
    assert again == first
    assert first.names == ("rehearsed_once",)
    assert first.rows == []  # of which a statement may make many
    assert len(opened) == 1
    rehearse(statement, {**COLUMNS, "another": "integer"})  # of another table nothing is known
    assert len(opened) == 2
    for _ in range(2):
        with refuses(InvalidArgument):
            rehearse(PostProcessing("SELECT rehearsed_never FROM noisy"), COLUMNS)
    assert len(opened) == 4


def test_the_sql_of_a_question_is_rehearsed_once_from_reading_to_release(monkeypatch):
    """Reading, the plan, the explanation and the release see the same noisy tables: one rehearsal serves them all."""
    rehearsed = []
    once = postprocess._rehearsed
    monkeypatch.setattr(
        postprocess, "_rehearsed", lambda post, *of, **more: rehearsed.append(post) or once(post, *of, **more)
    )
    rows = pa.table({"u": range(40), "region": ["a", "b"] * 20, "x": [1.5, 2.5] * 20})
    with dp.open(
        rows, name="t", unit="u", keys={"region": ["a", "b"]}, bounds={"x": (0, 5)}, budget=dp.PureDP(9)
    ) as table:
        question = table.sql(
            "SELECT region, n, m - LAG(m) OVER (ORDER BY region) AS rehearsed_in_all_steps "
            "FROM (SELECT region, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY region) AS s"
        )
        question.explain(epsilon=1)
        question.release(epsilon=1)
    assert len(rehearsed) == 1
