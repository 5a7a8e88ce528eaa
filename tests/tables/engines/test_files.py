"""Files whose values cannot be read are refused when they become known, and not by a question."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from dither.errors import InvalidData
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import expressions
from dither.tables.engines import connect
from dither.tables.query import nodes
from dither.tables.query.nodes import binary, integer
from support import refuses

pytestmark = pytest.mark.slow


def text(*values: bytes | None) -> Any:
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


CARD = Card("t", "…", {"t": ColumnCard("text"), "n": ColumnCard("integer")})
BAD = [b"\xff\xfe", b"caf\xe9", b"\xed\xa0\x80", b"\xc3", b"a secret\xf0\x9f"]


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("dictionary", [True, False])
def test_parquet_with_text_that_is_not_utf8_is_refused_when_opened(
    tmp_path: Path, value: bytes, dictionary: bool
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"t": text(b"ok", value, None), "n": [1, 2, 3]}), path, use_dictionary=dictionary)
    with refuses(InvalidData, "text that is not UTF-8") as caught:
        connect(path, CARD)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    with connect(path, Card("t", "…", {"n": ColumnCard("integer")})) as engine:  # a column that the card leaves out
        assert engine.run("SELECT SUM(n) AS s FROM dither_rows").to_pylist() == [{"s": 6}]


def test_parquet_with_times_beyond_what_can_be_held_is_refused_when_opened(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": pa.array([0, 2**62], pa.timestamp("ms"))}), path)
    with refuses(InvalidData, "a time beyond"):
        connect(path, Card("t", "…", {"s": ColumnCard("timestamp")}))


def test_a_parquet_file_that_changes_is_read_again_before_the_next_charge(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"t": ["x"], "n": [1]}), path)
    with connect(path, CARD) as engine:
        engine.check()
        pq.write_table(pa.table({"t": text(b"\xff"), "n": [1]}), path)
        with refuses(InvalidData, "text that is not UTF-8"):
            engine.check()
        pq.write_table(pa.table({"t": ["y"], "n": [2]}), path)
        engine.check()


def test_the_rows_of_a_duckdb_database_are_utf8_already(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as own:
        own.execute("CREATE TABLE t (t VARCHAR, n INTEGER)")
        for value in BAD:
            with pytest.raises((duckdb.Error, UnicodeDecodeError)):
                own.execute("INSERT INTO t SELECT decode(?::BLOB), 1", [value])


def test_a_cell_that_is_no_whole_number_is_null_and_not_rounded(tmp_path: Path) -> None:
    cells = {"3": 3, "-7": -7, "+4": 4, "3.0": 3, "9007199254740993": 9007199254740993, "3.6": None, "3.5": None}
    cells |= {"-0.4": None, "9007199254740992.5": None, "1e-1": None, "x": None, "99999999999999999999": None}
    path = tmp_path / "rows.csv"
    path.write_text("n,x\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    card = Card("t", str(path), {"n": ColumnCard("integer"), "x": ColumnCard("integer")})
    engine = connect(str(path), card)
    try:
        result = engine.run(f"SELECT x FROM {engine.table.sql('duckdb')} ORDER BY n")
        assert result.column(0).to_pylist() == list(cells.values())
    finally:
        engine.close()


def test_nan_in_a_parquet_file_is_no_value_whatever_the_largest_value_is(tmp_path: Path) -> None:
    """DuckDB knows the least and the largest value of a Parquet file, in which NaN is not counted: a condition that
    holds for both must not be taken to hold for NaN, nor may one row decide what becomes of NaN in all others."""
    for largest in (44.0, 1e9):
        rows = pa.table({"x": [1.0, math.nan, math.nan, largest]})
        pq.write_table(rows, tmp_path / "rows.parquet")
        card = Card("rows", str(tmp_path / "rows.parquet"), {"x": ColumnCard("number", (0.0, 50.0))})
        with connect(card.source, card) as engine:
            x = nodes.column("x")
            arms = [(expressions.is_nan(x), integer(0)), (binary("<", x, nodes.double(45.0)), integer(1))]
            kinds = nodes.call("SUM", nodes.case(arms, integer(100)))
            text = nodes.render(exp.select(kinds).from_(exp.alias_(engine.private("rows"), "t")), "duckdb")
            assert engine.run(text).column(0)[0].as_py() == (2 if largest < 45 else 101)
