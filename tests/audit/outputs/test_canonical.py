"""The canonical form is lossless: outputs have the same form if and only if they are equal in every respect."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import enum
import itertools
import math
import mmap
import struct
import weakref
from collections import Counter, OrderedDict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dither.audit.blackbox.views import collect_outputs
from dither.audit.outputs.canonical import Frozen, Raised, digest, first_difference, leaves
from dither.audit.outputs.libraries import library_parts
from support import each

from .oracle_equality import difference

Point = namedtuple("Point", "x y")
Spot = namedtuple("Spot", "x z")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Result:
    value: object
    note: object = None


@dataclasses.dataclass(slots=True)
class Slotted:
    value: object


class Number(float):
    pass


def numbers():
    return st.one_of(
        st.integers(),
        st.integers(-4, 4),
        st.integers(2**62, 2**65),
        st.floats(allow_nan=False),
        st.just(math.nan),
        st.fractions(),
        st.decimals(allow_nan=False),
        st.complex_numbers(allow_nan=False),
        st.booleans(),
        st.sampled_from([0, 0.0, -0.0, False, 1, 1.0, True, Decimal("1.10"), Decimal("1.1"), Decimal("-0")]),
        st.builds(np.float32, st.floats(width=32, allow_nan=False)),
        st.builds(np.float16, st.floats(width=16, allow_nan=False)),
        st.builds(np.float64, st.floats(allow_nan=False)),
        st.builds(np.longdouble, st.integers(0, 2**63)),
        st.builds(np.int8, st.integers(-9, 9)),
        st.builds(np.int64, st.integers(-(2**63), 2**63 - 1)),
        st.builds(np.uint64, st.integers(0, 2**64 - 1)),
        st.builds(np.bool_, st.booleans()),
        st.builds(Number, st.floats(allow_nan=False)),
    )


def scalars():
    return st.one_of(
        numbers(),
        st.none(),
        st.text(max_size=5),
        st.builds(lambda tail: "a" * 300 + tail, st.text(max_size=2)),
        st.binary(max_size=4),
        st.sampled_from(Color),
        st.dates(),
        st.datetimes(),
        st.builds(np.datetime64, st.integers(0, 9), st.sampled_from("sD")),
        st.sampled_from([int, float, pd.NaT, Raised("ValueError", "no"), Raised("KeyError", "no")]),
    )


def arrays():
    return st.one_of(
        st.builds(
            lambda values, kind: np.array(values, dtype=kind),
            st.lists(st.integers(0, 3), max_size=4),
            st.sampled_from(["f4", "f8", "i4", "i8", "u8", "?", "c16", "M8[s]", "U3", "S3", "O", "g"]),
        ),
        st.builds(lambda values: np.array(values, dtype="u8"), st.lists(st.integers(2**62, 2**64 - 1), max_size=3)),
        st.sampled_from([np.zeros(()), np.zeros((1, 2)), np.zeros((2, 1)), np.zeros(0), np.zeros((0, 2))]),
        st.builds(lambda m: np.ma.array([1, 2], mask=[False, m]), st.booleans()),
        st.builds(lambda v: np.array([(v, 1.0)], dtype=[("a", "i4"), ("b", "f8")]), st.integers(0, 3)),
    )


KINDS = ["int64", "Int64", "float64", "Float64", "float32", "object", "string", "category"]


def frames():
    index = st.sampled_from(
        [None, ["a", "b"], ["b", "a"], [0, 1], [1, 2], [0.0, 1.0], pd.Index(["a", "b"], name="key"),
         pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), pd.DatetimeIndex(["2020-01-01", "2020-01-02"])]
    )  # fmt: skip
    values = st.lists(st.integers(0, 2), min_size=2, max_size=2)
    kind, name = st.sampled_from(KINDS), st.sampled_from([None, "n", "m", 0])
    return st.one_of(
        st.builds(lambda v, i, k, n: pd.Series(v, i, name=n).astype(k), values, index, kind, name),
        st.builds(lambda v, i, k, n: pd.DataFrame({n: v, "z": "xy"}, i).astype({n: k}), values, index, kind, name),
        st.builds(lambda v: pd.DataFrame([v, v], columns=["a", "a"]), values),
        st.builds(
            lambda v, k: pl.DataFrame({"a": pl.Series(v, dtype=k)}), values, st.sampled_from([pl.Int64, pl.Int8])
        ),
        st.builds(lambda v, n: pl.Series(n, v), values, st.sampled_from("ab")),
        st.builds(lambda v, n: pa.table({n: v}), values, st.sampled_from("ab")),
        st.builds(lambda v, k: pa.array(v, type=k), values, st.sampled_from([pa.int8(), pa.int64()])),
    )


def outputs():
    return st.recursive(
        st.one_of(scalars(), arrays(), frames()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.lists(inner, max_size=3).map(deque),
            st.builds(Point, inner, inner),
            st.builds(Spot, inner, inner),
            st.builds(Result, inner, inner),
            st.builds(Slotted, inner),
            st.dictionaries(st.one_of(st.text(max_size=2), st.integers(0, 3), st.booleans()), inner, max_size=3),
            st.dictionaries(st.text(max_size=1), inner, max_size=2).map(OrderedDict),
            st.sets(st.one_of(st.integers(0, 3), st.text(max_size=2), st.booleans()), max_size=3),
        ),
        max_leaves=5,
    )


OUTPUTS = outputs()


def changed(draw, value):
    """The same output, but for one place in it."""
    if isinstance(value, (list, tuple, deque)) and len(value) and not hasattr(value, "_fields"):
        place, parts = draw(st.integers(0, len(value) - 1)), list(value)
        parts[place] = changed(draw, parts[place])
        return type(value)(parts)
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from(list(value)))
        return type(value)((k, changed(draw, v) if k is key else v) for k, v in value.items())
    return draw(OUTPUTS)


def same(one, other):
    """By an independent comparison, which shares no code with the canonical form."""
    return difference(one, other) is None


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_form_is_equal_if_and_only_if_the_outputs_are(data):
    one = data.draw(OUTPUTS)
    other = changed(data.draw, one) if data.draw(st.booleans()) else data.draw(OUTPUTS)
    assert (digest(one) == digest(other)) == same(one, other), (list(leaves(one)), list(leaves(other)))
    assert digest(one) == digest(copy.deepcopy(one))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(OUTPUTS, OUTPUTS)
def test_outputs_that_differ_differ_in_a_column(one, other):
    assume(not same(one, other))
    both = collect_outputs([one, other])
    assert any(
        column[0] != column[1] if column.dtype == object else column[0:1].tobytes() != column[1:2].tobytes()
        for column in both.columns.values()
    )


def noted(text):
    error = ValueError("no")
    error.add_note(text)
    return error


def caused(text):
    error = ValueError("no")
    error.__cause__ = KeyError(text)
    return error


DIFFERENT = {
    "letters beyond any limit": ("a" * 10**5 + "b", "a" * 10**5 + "c"),
    "a far coordinate": (np.eye(1, 10**5, 70_000), np.eye(1, 10**5, 70_001)),
    "the payload of a NaN": (math.nan, struct.unpack("d", struct.pack("Q", 0x7FF8000000000001))[0]),
    "the bits of a long float": (np.longdouble(2**63), np.longdouble(2**63 + 1)),
    "the order of a dict": ({"a": 1, "b": 1}, {"b": 1, "a": 1}),
    "the order of rows": (pd.DataFrame({"k": ["a", "b"]}), pd.DataFrame({"k": ["b", "a"]})),
    "a column of text": (
        pd.DataFrame({"k": ["a", None], "m": [None, "a"]}, dtype=object),
        pd.DataFrame({"k": [None, "a"], "m": ["a", None]}, dtype=object),
    ),
    "the type of a dict": ({"a": 1}, Counter({"a": 1})),
    "attributes of a frame": (pd.Series([1]), pd.Series([1])),
    "a closure": (lambda a=1: a, lambda a=2: a),
    "how deep": ([[[[[[[[1]]]]]]]], [[[[[[[[2]]]]]]]]),
    "fold of a clock": (datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, fold=1)),
    "Fraction or float": (Fraction(1, 2), 0.5),
    "categories": (pd.Categorical(["a"]), pd.Categorical(["a"], categories=["a", "b"])),
    "bytes of a memoryview": (memoryview(b"ab"), memoryview(b"ac")),
    "order in memory": (np.zeros((2, 3)), np.zeros((2, 3), order="F")),
    "notes of an error": (noted("a"), noted("b")),
    "cause of an error": (caused("a"), caused("b")),
    "metadata of a schema": (pa.table({"a": [1]}), pa.table({"a": [1]}).replace_schema_metadata({"who": "alice"})),
}
DIFFERENT["attributes of a frame"][1].attrs["who"] = "alice"


@each("name", DIFFERENT)
def test_subtle_differences_are_kept(name):
    one, other = DIFFERENT[name]
    assert digest(one) != digest(other)
    if name in ALSO_REPLAY:
        assert not same(one, other)
        return
    assert digest(one) == digest(copy.deepcopy(one))


ALSO_REPLAY = {"bytes of a memoryview", "order in memory", "notes of an error", "cause of an error"}


def test_recursive_and_deep_outputs_terminate():
    ring = [1]
    ring.append(ring)
    other = [1]
    other.append([1, other])
    assert digest(ring) != digest(other)
    deep = shallow = 0
    for _ in range(5000):
        deep = [deep]
    for _ in range(4999):
        shallow = [shallow]
    assert digest(deep) != digest(shallow)


def test_keys_that_have_keys_are_decomposed_once():
    """Otherwise each level would double the time."""

    def nested(leaf):
        part = Part()
        part.value = leaf
        for _ in range(40):
            above = Part()
            above.one, above.other = {part: 1}, {part: 2}
            part = above
        return part

    assert digest(nested(1)) == digest(nested(1)) != digest(nested(2))


class Part:
    pass


def test_a_masked_record_is_decomposed():
    def record(hidden):
        array = np.ma.zeros(1, dtype=[("a", "f8")])
        array["a"] = hidden
        array.mask = [(True,)]
        return array

    assert digest(record(1.0)) == digest(record(1.0)) != digest(record(2.0))


def ordered(last):
    result = OrderedDict(a=1, b=2)
    result.move_to_end("a", last=last)
    return result


def mapped(place):
    memory = mmap.mmap(-1, 64)
    memory.seek(place)
    return memory


def arrow_reader(place):
    reader = pa.BufferReader(b"abcdef")
    reader.seek(place)
    return reader


KEPT = Part()
BEHIND = {
    "the order of an ordered dict": ordered,
    "items after the end of a slice": lambda k: itertools.islice([1, k], 1),
    "items that are not taken": lambda k: itertools.takewhile(lambda v: v > 1, [-1, k]),
    "items that are not chosen": lambda k: itertools.compress([1, k], [1, 0]),
    "factors of an empty product": lambda k: itertools.product([k], []),
    "a value to fill": lambda k: itertools.zip_longest([1], fillvalue=k),
    "a callback": lambda k: weakref.ref(KEPT, lambda _, k=k: k),
    "a finalizer": lambda k: weakref.finalize(KEPT, abs, k),
    "one of two types": lambda k: np.zeros(1, dtype=np.int_ if k else np.longlong),
    "flags of a frame": lambda k: pd.DataFrame({"n": [1]}).set_flags(allows_duplicate_labels=bool(k)),
    "flags of a series": lambda k: pl.Series([1, 1]).set_sorted() if k else pl.Series([1, 1]),
    "chunks": lambda k: pl.concat([pl.Series([1]), pl.Series([2])], rechunk=bool(k)),
    "a place in memory": mapped,
    "a place in a buffer": arrow_reader,
}


@each("name", BEHIND)
def test_what_lies_behind_a_value_is_a_part_of_it(name):
    assert digest(BEHIND[name](1)) == digest(BEHIND[name](1)) != digest(BEHIND[name](0))


HIDDEN = {
    "levels": lambda n: pd.Series(1.0, index=pd.MultiIndex.from_product([["a"], range(n)])).iloc[:1],
    "categories": lambda n: pd.Series(range(n), dtype="category").iloc[:1],
    "rows of a frame": lambda n: pd.DataFrame({"a": [1, n]}).iloc[:1],
    "values under a mask": lambda n: pd.arrays.IntegerArray(np.array([n, 1]), np.array([True, False])),
    "values of a dictionary": lambda n: pa.array([str(n), "b"]).dictionary_encode().filter(pa.array([False, True])),
    "rows of an array": lambda n: pa.array([1, n])[:1],
    "a parent buffer": lambda n: pa.py_buffer(bytes([1, n])).slice(0, 1),
    "rows of a plan": lambda n: pl.LazyFrame({"a": [n]}).filter(pl.col("a") < 0),
}


@each("name", HIDDEN)
def test_what_lies_behind_is_compared(name):
    one, again, other = (Frozen.of(HIDDEN[name](n)) for n in (3, 3, 4))
    assert not one.opaque
    assert first_difference(one, again) is None
    assert first_difference(one, other) is not None


def test_a_class_is_known_by_its_package():
    assert library_parts(pd.DataFrame) is not None
    assert library_parts(type("DataFrame", (), {})) is None
