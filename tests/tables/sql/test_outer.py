"""Hostile SQL around a private aggregation: nothing but the noisy table can be read, and nothing is charged."""

from __future__ import annotations

import itertools
from datetime import date

import duckdb
import pytest
from sqlglot import exp, parse_one

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.sql.parse import FUNCTIONS, parse, reads_database, render
from tables.questions import CARD
from tables.visits import card, spent

INNER = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
VALUES = [
    "getenv('HOME')", "current_setting('temp_directory')", "getvariable('x')", "random()", "uuid()",
    "localtimestamp", '"LocalTime"', "current_catalog", "session_user", "user",
    "current_role", "current_schema", "age(DATE '2020-01-01')",
    "current_user", "current_user()", "current_query()", "current_database()",
    "version()",
    "nextval('s')", "currval('s')", "setseed(0.5)", "pg_typeof(1)", "txid_current()", "sleep_ms(1000)", "error('x')",
    "main.getenv('HOME')", "system.main.getenv('HOME')", "read_text('/etc/passwd')", "write_log('x')",
    "(SELECT amount FROM visits LIMIT 1)", "(SELECT MAX(content) FROM read_text('/etc/passwd'))",
    "(SELECT COUNT(*) FROM duckdb_settings())", "(SELECT MAX(value) FROM duckdb_secrets())",
    "(SELECT MAX(a) FROM query('SELECT 1 AS a'))", "(SELECT COUNT(*) FROM query_table('visits'))",
    "EXISTS (SELECT 1 FROM visits WHERE age > 90)",
    "(SELECT STRING_AGG(region, ',') FROM visits)", "(SELECT amount FROM (SELECT * FROM visits))",
    "list_transform([1], x -> x)", "COLUMNS(*)", "repeat('x', 1000000000)", "lpad('x', 1000000000, ' ')", "$1", "?",
    "json_execute_serialized_sql('x')", "hash(1)", "stats(1)",
]  # fmt: skip
TABLES = [
    "read_csv('/etc/passwd')", "read_text('/etc/passwd')", "read_blob('x')", "read_parquet('x')", "read_json('x')",
    "parquet_scan('x')", "glob('/*')", "sniff_csv('x')", "duckdb_tables()", "duckdb_settings()", "duckdb_functions()",
    "pragma_version()", "pragma_table_info('noisy')", "query('SELECT 1')", "query_table('noisy')", "'/etc/passwd'",
    "'data.csv'", '"data.parquet"', "information_schema.tables", "pg_catalog.pg_class", "sqlite_master", "pg_class",
    "duckdb_secrets()", "which_secret('a', 'b')", "range(1000000000)", "visits", "main.visits", "main.regions",
    "memory.main.visits", "summary", "noisy", "dither_noisy_rows", "arrow_scan(1, 2, 3)", "seq_scan('x')",
]  # fmt: skip
AROUND_VALUES = [
    f"SELECT n, {{}} AS x FROM ({INNER})",
    f"SELECT n FROM ({INNER}) WHERE CAST({{}} AS VARCHAR) > ''",
    f"SELECT n FROM ({INNER}) ORDER BY {{}}",
    f"WITH m AS ({INNER}) SELECT SUM(n) OVER (ORDER BY {{}}) AS x FROM m",
    "SELECT region, COUNT(*) AS n, {} AS x FROM visits GROUP BY region",
    f"SELECT COUNT(*) AS n FROM visits UNION ALL SELECT {{}} FROM ({INNER})",
]
AROUND_TABLES = [
    f"SELECT * FROM ({INNER}) m, {{}} AS t",
    f"SELECT * FROM {{}} AS t JOIN ({INNER}) m ON TRUE",
    f"SELECT n FROM ({INNER}) WHERE EXISTS (SELECT 1 FROM {{}})",
    f"SELECT n FROM ({INNER}) UNION ALL SELECT 1 FROM {{}}",
    f"WITH m AS ({INNER}), t AS (SELECT * FROM {{}}) SELECT m.n FROM m, t",
    f"SELECT (SELECT COUNT(*) FROM (SELECT * FROM {{}}) AS t WHERE t.x = m.region) FROM ({INNER}) AS m",
]
STATEMENTS = [
    f"WITH RECURSIVE m AS ({INNER}) SELECT * FROM m",
    f"SELECT n FROM ({INNER}) USING SAMPLE 1",
    f"SELECT n INTO x FROM ({INNER})",
    f"PIVOT ({INNER}) ON region USING SUM(n)",
    f"COPY ({INNER}) TO '/tmp/x.csv'",
    f"CREATE TABLE x AS {INNER}",
    f"EXPLAIN ANALYZE SELECT * FROM ({INNER})",
    f"SELECT n FROM ({INNER}); SELECT 1",
    f"SELECT n FROM ({INNER}); ATTACH 'x'",
    f"SELECT * FROM ({INNER}) AS m, LATERAL (SELECT amount FROM visits WHERE visits.region = m.region)",
    "SELECT *, COUNT(*) AS n FROM visits GROUP BY region",
    "SELECT visits.*, COUNT(*) OVER () FROM visits",
    "SELECT amount, SUM(COUNT(*)) OVER () FROM visits GROUP BY region",
    "SELECT region, LAG(MAX(amount)) OVER (ORDER BY amount) FROM visits GROUP BY region",
    "SELECT region, COUNT(*) FROM visits GROUP BY region QUALIFY amount > 1",
    "SELECT DISTINCT ON (amount) region, COUNT(*) FROM visits GROUP BY region",
    "SELECT DISTINCT amount FROM visits",
    "SELECT * FROM visits ORDER BY amount LIMIT 1 OFFSET 1",
    "SELECT n FROM (SELECT amount AS n FROM visits UNION ALL SELECT COUNT(*) FROM visits)",
]
HOSTILE = [
    *(around.format(value) for around, value in itertools.product(AROUND_VALUES, VALUES)),
    *(around.format(table) for around, table in itertools.product(AROUND_TABLES, TABLES)),
    *STATEMENTS,
]


@pytest.mark.slow
def test_hostile_sql_is_refused_when_it_is_read():
    accepted, refusals = [], []
    for text in HOSTILE:
        try:
            accepted.append((text, parse(text, CARD).post))
        except InvalidArgument as error:
            refusals.append(str(error))
    assert not accepted
    assert all("Fix:" in refusal for refusal in refusals)


@pytest.mark.slow
def test_the_clock_becomes_a_constant_and_public_tables_are_named():
    for value in ("now()", "CURRENT_DATE", "CURRENT_TIMESTAMP", "today()"):
        for around in AROUND_VALUES[:4]:
            post = parse(around.format(value), CARD, date(2024, 1, 31)).post
            assert "2024-01-31" in post.sql
            assert not {"now", "current_date", "current_timestamp", "today"} & set(post.sql.lower().split())
    for text in (AROUND_VALUES[0].format("(SELECT MAX(name) FROM regions)"), f"SELECT * FROM ({INNER}), regions"):
        assert parse(text, CARD).post.public == ("regions",)


def test_nothing_is_charged_for_what_is_refused(tmp_path):
    with dp.open(card(tmp_path)) as table:
        before = spent(table)
        for text in HOSTILE[:: len(HOSTILE) // 20]:
            with pytest.raises(InvalidArgument):
                table.sql(text).release(epsilon=1)
        assert spent(table) == before


def test_a_tree_with_another_table_is_never_rendered():
    for table in ("visits", "information_schema.tables", "read_csv('x')", '"x.csv"'):
        with pytest.raises(InvalidArgument):
            render(parse_one(f"SELECT * FROM {table}", dialect="duckdb"), "noisy")


def test_a_tree_with_another_function_is_never_rendered():
    for call in ("getenv('HOME')", "current_setting('threads')", "nextval('x')", "nosuch(n)"):
        with pytest.raises(InvalidArgument):
            render(parse_one(f"SELECT {call} FROM noisy", dialect="duckdb"), "noisy")


def _has_value(database, name):
    try:
        database.execute(f'PREPARE p AS SELECT "{name}"')
    except duckdb.BinderException:
        return False
    return True


def test_no_name_is_read_from_the_database():
    """Whatever names DuckDB gives a value without a column: asked of DuckDB itself, for all its words."""
    with duckdb.connect() as database:
        words = "SELECT function_name FROM duckdb_functions() UNION SELECT keyword_name FROM duckdb_keywords()"
        names = {name for (name,) in database.execute(words).fetchall() if name.isidentifier()}
        special = {name for name in names if _has_value(database, name)}
    assert {"user", "current_catalog"} <= special
    for name in special:
        assert reads_database(name)
        with pytest.raises(InvalidArgument):
            parse(f'SELECT n, "{name}" AS x FROM ({INNER}) AS t', CARD)
        with pytest.raises(InvalidArgument):
            parse(f'SELECT a.n, "{name}" AS x FROM ({INNER}) AS a, ({INNER}) AS b', CARD)
        parse(f'SELECT n, "{name}" AS x FROM (SELECT n, n AS "{name}" FROM ({INNER}) AS s) AS t', CARD)


def test_every_function_gives_the_same_each_time():
    with duckdb.connect() as connection:
        listed = connection.sql("SELECT function_name, stability, function_type FROM duckdb_functions()").fetchall()
    for name, stability, kind in listed:
        if name in FUNCTIONS and kind in ("scalar", "aggregate"):
            assert stability == "CONSISTENT", name


def test_no_division_and_no_cast_fails():
    question = parse(f"SELECT n / (n - n), n % 0, CAST('x' || n AS INTEGER), LN(n - n - 1) FROM ({INNER})", CARD)
    assert question.post is not None
    tree = parse_one(question.post.sql, dialect="duckdb")
    assert not [node for node in tree.walk() if type(node) is exp.Cast]


def test_a_constant_of_a_branch_that_does_not_fit_its_type_is_null():
    tree = parse_one(
        "SELECT CASE WHEN n > 5 THEN CAST(99999999999 AS INT) END AS x, DATE '2024-01-01' AS d FROM noisy",
        dialect="duckdb",
    )
    assert render(tree, "noisy") == (
        "SELECT CASE WHEN n > 5 THEN TRY_CAST(99999999999 AS INT) END AS x, CAST('2024-01-01' AS DATE) AS d FROM noisy"
    )
