"""Reading a column: containers, declared types, missing values, and exact totals."""

from __future__ import annotations

import array
import math

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from dither import AddRemove, DitherError, ReplaceOne
from dither.inference import Grid
from dither.stats.column import read, total
from support import refuses


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50))
def test_a_total_is_that_of_python_integers(entries):
    assert total(np.array(entries, dtype=np.uint64)) == sum(entries)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integer_arrays_are_read_as_64_bit_integers(dtype):
    x = np.array([0, 1, 1], dtype=dtype)
    for column in (x, pd.Series(x), pl.Series(x), x[::2]):
        result = read(column, ReplaceOne)
        assert result.dtype == np.int64
        assert result[:2].max() == 1
    for order in "<>":
        assert read(x.astype(x.dtype.newbyteorder(order)), ReplaceOne).tolist() == [0, 1, 1]


def test_the_largest_unsigned_number_saturates_instead_of_wrapping():
    assert read(np.array([2**64 - 1, 2**63, 5], dtype=np.uint64), ReplaceOne).tolist() == [2**63 - 1, 2**63 - 1, 5]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f8"])
def test_float_arrays_are_read_as_64_bit_floats(dtype):
    result = read(np.array([0.5, -2.0], dtype=dtype), ReplaceOne)
    assert result.dtype == np.float64
    assert result.tolist() == [0.5, -2.0]


@pytest.mark.parametrize("dtype", ["longdouble", "complex128", "U5", "S5", "datetime64[s]", "timedelta64[s]", "V4"])
def test_other_arrays_are_refused_without_a_word_about_their_contents(dtype):
    with refuses(DitherError, "x: expected real numbers ") as caught:
        read(np.zeros(2, dtype=dtype), ReplaceOne)
    assert isinstance(caught.value, TypeError)


def test_the_message_for_text_does_not_tell_how_long_the_longest_entry_is():
    texts = set()
    for n in (1, 16):
        with refuses(DitherError) as caught:
            read(np.array(["a" * n]), ReplaceOne)
        texts.add(str(caught.value))
    assert len(texts) == 1


@pytest.mark.parametrize(
    "column",
    [
        [3, 1, 2],
        (3, 1, 2),
        iter([3, 1, 2]),
        (v for v in [3, 1, 2]),
        {3: 0, 1: 0, 2: 0}.keys(),
        array.array("i", [3, 1, 2]),
        [np.int8(3), True, 2.0],
        np.array([3, 1, 2], dtype=object),
        [3, 1, np.float32(2)],
    ],
)
def test_containers_without_a_declared_type_are_read_as_floats(column):
    result = read(column, ReplaceOne)
    assert result.dtype == np.float64
    assert result.tolist() in ([3, 1, 2], [3, True, 2])


@pytest.mark.parametrize(
    "entries", [[], [1], [1, 2.5], [2**63], [-1, 2**63], [10**400], [-(10**400), 1], [True], [1, None]]
)
def test_no_record_of_a_list_decides_the_type_of_the_others(entries):
    result = read(entries, AddRemove, nan="drop")
    assert result.dtype == np.float64
    assert result.size == len([e for e in entries if e is not None])


@given(st.lists(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans()), max_size=6))
def test_each_record_of_a_list_is_read_by_itself(entries):
    together = read(entries, ReplaceOne).tolist()
    assert together == [read([entry], ReplaceOne).tolist()[0] for entry in entries]
    assert together == read([*entries, None, 10**400], AddRemove, nan="drop").tolist()[: len(entries)]


MISSING = {
    "list": lambda x: [None if v is None else v for v in x],
    "pandas Int64": lambda x: pd.Series(x, dtype="Int64"),
    "pandas UInt8": lambda x: pd.Series(x, dtype="UInt8"),
    "pandas Float64": lambda x: pd.Series(x, dtype="Float64"),
    "pandas float": lambda x: pd.Series(x, dtype="float64"),
    "pandas object": lambda x: pd.Series(x, dtype="object"),
    "polars Int64": lambda x: pl.Series(x, dtype=pl.Int64),
    "polars UInt16": lambda x: pl.Series(x, dtype=pl.UInt16),
    "polars Float32": lambda x: pl.Series(x, dtype=pl.Float32),
    "pandas category": lambda x: pd.Series(x, dtype="object").astype("category"),
    "pandas sparse": lambda x: pd.Series(x, dtype="Sparse[float]"),
    "pandas array": lambda x: pd.array(x, dtype="Int16"),
    "polars Int128": lambda x: pl.Series(x, dtype=pl.Int128),
    "masked array": lambda x: np.ma.array([v or 0 for v in x], mask=[v is None for v in x]),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_values_follow_the_policy_and_never_the_declared_type(name):
    make = MISSING[name]
    with_gap, without = make([4, None, 7]), make([4, 5, 7])
    with refuses(DitherError, "x: expected finite numbers, got "):
        read(with_gap, ReplaceOne)
    with refuses(DitherError, "pass neighbors=dither"):
        read(without, ReplaceOne, nan="drop")
    assert read(with_gap, AddRemove, nan="drop").tolist() == [4, 7]
    assert read(with_gap, ReplaceOne, nan="lower", lower=2).tolist() == [4, 2, 7]
    for policy in ("drop", "lower"):
        assert read(with_gap, AddRemove, policy, 2).dtype == read(without, AddRemove, policy, 2).dtype


@pytest.mark.parametrize("name", ["pandas Int64", "polars Int64", "masked array"])
def test_a_missing_record_does_not_round_the_others(name):
    """Read as floats, 2^53 + 1 becomes 2^53: one missing record would move all the others."""
    big = 2**53 + 1
    assert read(MISSING[name]([big, None, big]), AddRemove, nan="drop").tolist() == [big, big]


@pytest.mark.parametrize("lower", [-(2**70), 2**70, 0.5, -0.5])
def test_a_missing_integer_is_at_or_below_any_lower_bound_that_integers_reach(lower):
    result = read(pl.Series([3, None]), ReplaceOne, nan="lower", lower=lower)
    assert result.dtype == np.int64
    assert result[1] <= max(lower, -(2**63))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_missing(value):
    for column in ([1.0, value], np.array([1.0, value]), pd.Series([1.0, value]), pl.Series([1.0, value])):
        with refuses(DitherError):
            read(column, ReplaceOne)
        assert read(column, AddRemove, nan="drop").tolist() == [1.0]
        assert read(column, ReplaceOne, nan="lower", lower=-2).tolist() == [1.0, -2.0]


@pytest.mark.parametrize("column", [pd.Series([True, None], dtype="boolean"), pl.Series([True, None]), [True, None]])
def test_booleans_with_gaps_are_numbers(column):
    assert read(column, AddRemove, nan="drop").tolist() == [1]
    assert read(column, ReplaceOne, nan="lower").tolist() == [1, 0]


def test_an_empty_column_is_read_in_its_declared_type():
    for column, dtype in [
        ([], "f"),
        (np.zeros(0, int), "i"),
        (pd.Series([], dtype="Int64"), "i"),
        (pl.Series([], dtype=pl.UInt8), "i"),
        (pl.Series([], dtype=pl.Float32), "f"),
        (iter(()), "f"),
    ]:
        assert read(column, AddRemove).dtype.kind == dtype
        assert read(column, AddRemove).shape == (0,)


def test_the_callers_data_are_left_alone():
    for x in (np.array([1.0, np.nan, 9.0]), np.array([1, 2**63 - 1])):
        before = x.copy()
        result = read(x, AddRemove, nan="lower")
        list(Grid.between(0, 3, 30).positions(result, 0, 3))
        np.testing.assert_array_equal(x, before)
