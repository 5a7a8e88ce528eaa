"""Frames: types are declared or in the schema, and one cell never changes how another is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither.errors import DitherError, InvalidArgument, InvalidData
from dither.tables.card.model import TYPES, Card, ColumnCard, Type, arrow_type
from dither.tables.engines import connect
from dither.tables.engines.frames import convert, plain_table
from support import each, refuses

COLUMNS: dict[Type, list[Any]] = {
    "integer": [3, -7, 2**40, 0, 5],
    "number": [0.5, -7.25, 1e300, 0.0, 5.5],
    "text": ["north", "Süd", "", "007", "x"],
    "boolean": [True, False, True, False, True],
    "date": [date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(2000, 1, 1)],
    "timestamp": [datetime(2024, 2, 29, 1, 2, 3, 4), datetime(1970, 1, 1), *[datetime(2000, 1, 1)] * 3],
}
CELLS: list[Any] = [
    None, math.nan, "?", 1.5, 2**70, True, -(2**63), 2**63, 10**400, math.inf, Decimal("NaN"), Decimal("1.5"), "\ud800",
    b"\xff", [1], {"a": 1}, object(), pd.NA, pd.NaT, date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))), timedelta(1), np.float32(0.1), np.int8(3), 1j,
    float, "\x1b[2J", "x" * 100_000, complex("nan"), pd.Timestamp("2024-01-01 00:00:00.000000001"),
]  # fmt: skip


class Raises:
    """A cell whose every method raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("a secret")


def rows(frame: object, type: Type) -> list[Any]:
    """A column behind the gate, as the card's type; every engine value of it is one of these or NULL."""
    table, unusable = plain_table(frame, {"x": type}, only_declared=True)
    assert not unusable
    values = table.column("x")
    allowed = {"number": (pa.int64(), pa.float64()), "text": (pa.large_string(),)}.get(type, (arrow_type(type),))
    assert (
        pa.types.is_null(values.type)
        or values.type in allowed
        or pa.types.is_integer(values.type)
        or pa.types.is_timestamp(values.type)
    )
    return list(values.cast(allowed[-1], safe=False).to_pylist())


def made(make: Callable[[list[Any]], Any], values: list[Any]) -> Any | None:
    """The frame, or None where the user's library itself refuses to make one."""
    try:
        return make(values)
    except KeyboardInterrupt:
        raise
    except BaseException:  # Polars panics on some cells, which is no Exception
        return None


MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": lambda values: pd.DataFrame({"x": values}),
    "pandas objects": lambda values: pd.DataFrame({"x": pd.Series(values, dtype=object)}),
    "pandas category": lambda values: pd.DataFrame({"x": pd.Series(values).astype("category")}),
    "polars": lambda values: pl.DataFrame({"x": values}),
    "polars loose": lambda values: pl.DataFrame({"x": values}, strict=False),
    "polars objects": lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Object)}),
    "arrow": lambda values: pa.table({"x": values}),
}


@each("kind", MAKERS)
@each("type", TYPES)
def test_one_cell_changes_neither_other_rows_nor_the_outcome(kind: str, type: Type) -> None:
    values = COLUMNS[type]
    clean = made(MAKERS[kind], values)
    assert clean is not None
    assert rows(clean, type) == values
    tried = 0
    for cell in CELLS:
        frame = made(MAKERS[kind], [*values[:2], cell, *values[3:]])
        if frame is None:
            continue
        if kind in ("polars loose", "arrow", "polars") and not _same_family(frame, type):
            continue  # the library made another column of it, with another schema: nothing was guessed here
        result = rows(frame, type)
        assert result[:2] + result[3:] == values[:2] + values[3:], cell if type != "text" else "…"
        tried += 1
    assert tried >= (1 if kind in ("polars loose", "arrow", "polars") else 25)


def _same_family(frame: Any, type: Type) -> bool:
    if isinstance(frame, pl.DataFrame):
        dtype = frame["x"].dtype
        return dtype.is_numeric() if type in ("integer", "number") else dtype == pl.Series(COLUMNS[type]).dtype
    kind = frame.schema.field("x").type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return numeric if type in ("integer", "number") else kind == pa.array(COLUMNS[type]).type


@pytest.mark.parametrize("type", TYPES)
def test_any_object_at_all_is_a_value_or_null(type: Type) -> None:
    assert convert(Raises(), type) is None
    for cell in (*CELLS, Decimal("1e999999"), Decimal("-Infinity")):
        value = convert(cell, type)
        assert value is None or pa.array([value], arrow_type(type)).to_pylist() == [value]


@pytest.mark.parametrize("type", TYPES)
def test_objects_without_a_declared_type_are_refused_whatever_they_are(type: Type) -> None:
    message = set()
    for cell in [*CELLS, COLUMNS[type][2]]:
        for kind in ("pandas objects", "polars objects"):
            frame = made(MAKERS[kind], [*COLUMNS[type][:2], cell, *COLUMNS[type][3:]])
            if frame is not None:
                with refuses(InvalidData) as caught:
                    dp.open(frame, budget=dp.PureDP(1))
                message.add(str(caught.value))
    assert len(message) == 1
    assert "types={'x': 'text'}" in message.pop()


def test_declared_types() -> None:
    towns = pd.Series(["a", 7, None], dtype=object)
    frame = pd.DataFrame({"who": [1, 2, None], "town": towns, "junk": [[1], 2, None]})
    types: dict[str, Type] = {"who": "integer", "town": "text"}
    with refuses(InvalidData, "column junk"):
        dp.open(frame, unit="who", types=types, budget=dp.PureDP(1))
    with dp.open(frame.drop(columns="junk"), unit="who", types=types, budget=dp.PureDP(1)) as table:
        assert {name: column.type for name, column in table.card.columns.items()} == types
        table.sql("SELECT COUNT(*) n FROM data WHERE town = 'a'").release(0.5)
    for wrong in ({"who": "int"}, {"nobody": "integer"}, {"who": None}):
        with refuses(InvalidArgument):
            dp.open(pd.DataFrame({"who": [1, 2]}), types=wrong, budget=dp.PureDP(1))  # type: ignore[arg-type]


def test_a_declared_type_may_be_given_for_a_file(tmp_path: Any) -> None:
    (tmp_path / "t.csv").write_text("who,n\n1,2\n")
    with dp.open(str(tmp_path / "t.csv"), types={"n": "integer"}, budget=dp.PureDP(1)) as table:
        assert table.card.columns["n"].type == "integer"
        assert table.card.columns["who"].type == "text"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.integers(-(2**60), 2**60), st.floats(), st.booleans(), st.none()), min_size=1))
def test_a_column_of_its_own_dtype_reads_as_its_objects_do(values: list[Any]) -> None:
    """The quick ways over whole columns agree with the rule for one value."""
    series = pd.Series(values)
    for type in ("integer", "number", "text", "boolean"):
        expected = [convert(value, type) for value in series]
        assert rows(pd.DataFrame({"x": series}), type) == expected
        assert rows(pd.DataFrame({"x": series.astype(object)}), type) == expected


def bad_text() -> Any:
    raw = pa.array([b"ok", b"\xff\xfe", b"caf\xe9", None, b"\xed\xa0\x80", b"x"])
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


def test_text_in_arrow_that_is_not_utf8_is_null() -> None:
    text = bad_text()
    forms = [text, text.cast(pa.large_string()), text.dictionary_encode(), pa.chunked_array([text[:2], text[2:]])]
    for form in forms:
        with connect(pa.table({"x": form}), Card("t", "", {"x": ColumnCard("text")})) as engine:
            result = engine.run("SELECT x, LOWER(x) AS low FROM dither_rows").to_pylist()
            assert [row["x"] for row in result] == ["ok", None, None, None, None, "x"]
            assert engine.run("SELECT x, COUNT(*) AS n FROM dither_rows GROUP BY x").num_rows == 3
    with dp.open(pa.table({"x": text}), budget=dp.PureDP(1)) as table:
        table.sql("SELECT COUNT(*) n FROM data WHERE LOWER(x) = 'ok'").release(0.5)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_beyond_every_calendar_are_null(zone: str | None) -> None:
    values = [2**62, 0, -(2**62), 2**63 - 1, -(2**63), None]
    units = ("s", "ms", "us", "ns")
    table = pa.table({unit: pa.array(values, pa.timestamp(unit, zone)) for unit in units})
    with connect(table, Card("t", "", {unit: ColumnCard("timestamp") for unit in units})) as engine:
        result = engine.run("SELECT * FROM dither_rows").to_pydict()
    for unit in ("s", "ms", "us"):
        assert result[unit] == [None, datetime(1970, 1, 1), None, None, None, None]
    assert result["ns"][1] == datetime(1970, 1, 1)


def test_columns_that_no_type_fits_are_left_out() -> None:
    union = pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([1]), pa.array(["a"])]
    )
    odd = {
        "u": union,
        "l": [[1], []],
        "b": [b"a", b"b"],
        "d": pa.array([1, 2], pa.duration("s")),
        "h": pa.array(np.array([1, 2], dtype=np.float16)),
    }
    with connect(pa.table({"x": [1, 2], **odd})) as engine:
        assert engine.schema() == {"x": "integer", "h": "number"}
        assert engine.unusable() == ["u", "l", "b", "d"]
    frame = pd.DataFrame(
        {"x": [1, 2], "p": pd.period_range("2024", periods=2), "c": [1j, 2j], "z": pd.to_timedelta([1, 2])}
    )
    with connect(frame) as engine:
        assert engine.schema() == {"x": "integer"}


def test_errors_about_frames_hold_no_data() -> None:
    for frame in (MAKERS["pandas objects"](["a secret", 1]), pa.table({"x": [["a secret"]]})):
        with refuses(DitherError) as caught:
            connect(frame, Card("t", "", {"x": ColumnCard("integer"), "y": ColumnCard("text")}))
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize("type", TYPES)
def test_a_column_without_any_value_is_of_the_type_that_is_declared(type: Type) -> None:
    """Arrow gives such a column a type of its own, which has no width."""
    rows, _ = plain_table(pa.table({"x": pa.nulls(3)}), {"x": type}, only_declared=True)
    assert rows["x"].null_count == 3
    with dp.open(pa.table({"who": [1, 2, 3], "x": pa.nulls(3)}), types={"x": type}, budget=dp.PureDP(9)) as table:
        assert abs(table.sql("SELECT COUNT(x) AS n FROM data").release(epsilon=9).rows[0][0]) < 30
