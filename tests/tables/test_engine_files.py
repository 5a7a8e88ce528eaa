"""Files whose values cannot be read are refused when they become known, and not by a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dither.errors import InvalidData
from dither.tables.card import Card, ColumnCard
from dither.tables.engines import connect


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
    with pytest.raises(InvalidData, match="text that is not UTF-8") as caught:
        connect(path, CARD)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    with connect(path, Card("t", "…", {"n": ColumnCard("integer")})) as engine:  # a column that the card leaves out
        assert engine.run("SELECT SUM(n) AS s FROM dither_rows").to_pylist() == [{"s": 6}]


def test_parquet_with_times_beyond_what_can_be_held_is_refused_when_opened(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"s": pa.array([0, 2**62], pa.timestamp("ms"))}), path)
    with pytest.raises(InvalidData, match="a time beyond"):
        connect(path, Card("t", "…", {"s": ColumnCard("timestamp")}))


def test_a_parquet_file_that_changes_is_read_again_before_the_next_charge(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"t": ["x"], "n": [1]}), path)
    with connect(path, CARD) as engine:
        engine.check()
        pq.write_table(pa.table({"t": text(b"\xff"), "n": [1]}), path)
        with pytest.raises(InvalidData, match="text that is not UTF-8"):
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
