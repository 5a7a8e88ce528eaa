"""The gate for data: types are declared, and every value is converted by itself."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

from dither import DitherError, InvalidArgument, WrongType
from dither.validation import as_table, as_values
from support import refuses

KINDS = ["float", "integer", "boolean", "label"]
HOSTILE = [
    None,
    math.nan,
    math.inf,
    "?",
    "7",
    1.5,
    2**70,
    -(10**400),
    True,
    [1],
    {},
    object(),
    1j,
    b"x",
    np.int8(3),
    Decimal("2"),
    Decimal("sNaN"),
    Fraction(1, 3),
    pd.NA,
    pd.NaT,
    np.datetime64("NaT", "s"),
    np.float32(0.1),
]
cells = st.one_of(st.sampled_from(HOSTILE), st.integers(), st.floats(), st.text(max_size=3), st.booleans())


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a is b or a == b or (a != a and b != b))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "number", *KINDS])
@given(entries=st.lists(cells, min_size=1, max_size=5), other=cells, at=st.integers(0, 4))
def test_no_cell_changes_how_another_is_read(kind, entries, other, at):
    at %= len(entries)
    before = as_values(entries, kind)
    after = as_values([*entries[:at], other, *entries[at + 1 :]], kind)
    assert before.values.dtype == after.values.dtype
    assert before.kind == after.kind
    for i in range(len(entries)):
        if i != at:
            assert same(before.values[i], after.values[i])
            assert before.missing[i] == after.missing[i]


@given(rows=st.lists(st.one_of(cells, st.lists(cells, max_size=3)), min_size=1, max_size=5), other=cells)
def test_no_row_of_a_list_changes_the_shape_of_the_others(rows, other):
    before, after = as_table(rows, columns=2), as_table([*rows[:-1], other], columns=2)
    assert before.shape == after.shape == (len(rows), 2)
    assert before.dtype == after.dtype == np.float64
    np.testing.assert_array_equal(before[:-1], after[:-1])


CONTAINERS = {
    "list": list,
    "array": lambda x: np.array(x, dtype=float),
    "masked": lambda x: np.ma.masked_invalid(np.array(x, dtype=float)),
    "object": lambda x: np.array(x, dtype=object),
    "pandas": lambda x: pd.Series(x, dtype=float),
    "pandas index": lambda x: pd.Index(x, dtype=float),
    "Int64": lambda x: pd.Series(x, dtype="Int64"),
    "pandas arrow": lambda x: pd.Series(x, dtype="int64[pyarrow]"),
    "category": lambda x: pd.Series(x, dtype=object).astype("category"),
    "polars": lambda x: pl.Series(x, dtype=pl.Int64),
    "polars 128": lambda x: pl.Series(x, dtype=pl.Int128),
    "arrow": lambda x: pa.array(x, type=pa.int64()),
    "arrow float": lambda x: pa.array(x, type=pa.float32()),
    "arrow chunks": lambda x: pa.chunked_array([x[:1], x[1:]], type=pa.int64()),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_agree(name):
    column = CONTAINERS[name]([3, None, 1, 0])
    assert as_values(column, "integer").values.tolist() == [3, 0, 1, 0]
    assert as_values(column, "integer").missing.tolist() == [False, True, False, False]
    np.testing.assert_array_equal(as_values(column, "float").values, [3, math.nan, 1, 0])
    np.testing.assert_array_equal(as_values(column, "number").floats(), [3, math.nan, 1, 0])
    assert as_values(column, "boolean").values.tolist() == [False, False, True, False]
    assert as_values(column, "boolean").missing.tolist() == [True, True, False, False]
    assert as_values(column, "label").values.tolist() == [3, None, 1, 0]
    declared = name not in ("list", "object", "category")
    whole = name in ("Int64", "pandas arrow", "polars", "polars 128", "arrow", "arrow chunks")
    if declared or name == "list":
        assert as_values(column).kind == ("integer" if whole else "float")
    else:
        with refuses(WrongType, "expected a column that declares its type", "Fix"):
            as_values(column)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["3", None], dtype="string"),
        np.array(["3"]),
        pl.Series(["3"]),
        pa.array(["3"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.zeros(1, dtype=np.longdouble),
    ],
)
def test_text_and_dates_are_no_numbers_by_their_declared_type(column):
    for kind in (None, "number", "float", "integer", "boolean"):
        with refuses(WrongType, "real numbers"):
            as_values(column, kind)
    as_values(column, "label")


def test_frames_and_arrays_make_the_same_table():
    plain = np.array([[1.0, 4.0], [math.nan, 5.0]])
    frame = pd.DataFrame({"a": pd.Series([1, None], dtype="Int64"), "b": [4, 5]})
    arrow = pa.table({"a": pa.array([1, None]), "b": [4, 5]})
    for table in (plain, frame, pl.DataFrame({"a": [1, None], "b": [4, 5]}), arrow):
        np.testing.assert_array_equal(as_table(table), plain)
        np.testing.assert_array_equal(as_table(table, columns=2), plain)
        assert as_table(table, "label").tolist() == [[1, 4], [None, 5]]
        with refuses(InvalidArgument):
            as_table(table, columns=3)
    for wrong in ([[1.0, 2.0]], np.ones(3), "ab", 5, None, pd.DataFrame({"a": [1, "x"]}), np.array([[1, None]])):
        with refuses(DitherError):
            as_table(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "abc",
        b"a",
        5,
        {},
        {1},
        int,
        np.ones((2, 2)),
        np.array(1.0),
        pd.DataFrame({"a": [1]}),
        pl.DataFrame({"a": [1]}),
        pa.table({"a": [1]}),
        object(),
    ],
)
def test_what_is_no_column_is_refused(wrong):
    for kind in (None, *KINDS):
        with refuses(DitherError, "x:"):
            as_values(wrong, kind)
    with refuses(InvalidArgument):
        as_values([1], "decimal")  # type: ignore[arg-type]
