"""Answers as bytes: every value comes back, the bytes are always the same, and reading them runs nothing."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import dither as dp
from dither.ledger.recorded import canonical, decode, encode
from support import each, refuses

TEXTS = st.text(st.characters(exclude_categories=[]), max_size=20)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**700), 10**700),
    st.floats(),
    TEXTS,
    st.binary(max_size=20),
)
ARRAYS = nps.arrays(
    st.one_of(
        nps.boolean_dtypes(),
        nps.integer_dtypes(endianness="?"),
        nps.floating_dtypes(sizes=(16, 32, 64), endianness="?"),
        nps.byte_string_dtypes(max_len=5),
        nps.unicode_string_dtypes(max_len=5),
    ),
    nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
KEYS = st.one_of(st.sampled_from(["dither", "items", "value"]), TEXTS)
ANSWERS = st.recursive(
    st.one_of(SCALARS, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


def same(left: Any, right: Any) -> bool:
    """Equal to the last bit, of the same types."""
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.ndarray):
        return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (left == right and str(left) == str(right))
    return bool(left == right)


@given(ANSWERS)
def test_every_answer_comes_back(answer: Any) -> None:
    stored = encode(answer)
    assert same(decode(stored), answer)
    assert encode(decode(stored)) == stored


def test_the_comparison_can_fail() -> None:
    pairs = [(0, False), (0.0, -0.0), ([1], (1,)), (1, 1.0), ("", b""), (np.zeros(2), np.zeros(2, "f4"))]
    for left, right in pairs:
        assert not same(left, right)
        assert encode(left) != encode(right)


def test_bytes_are_fixed_for_ever() -> None:
    """What is in ledgers already must be read, and replayed, by every later version."""
    fixed: list[tuple[Any, bytes]] = [
        (0, b"0"),
        (-1.5, b"-1.5"),
        (True, b"true"),
        (None, b"null"),
        ("é\n", '"é\\n"'.encode()),
        ([1, []], b"[1,[]]"),
        ({"b": 1, "a": {}}, b'{"a":{},"b":1}'),
        ((1,), b'{"dither":"tuple","items":[1]}'),
        (b"\0\xff", b'{"data":"AP8=","dither":"bytes"}'),
        (math.inf, b'{"dither":"float","value":"inf"}'),
        (math.nan, b'{"dither":"float","value":"nan"}'),
        (2**2000, b'{"dither":"int","value":"0x1' + b"0" * 500 + b'"}'),
        ({"dither": 1}, b'{"dither":"dict","items":{"dither":1}}'),
        (
            np.array([[1, 2]], dtype="<i2"),
            b'{"data":"AQACAA==","dither":"array","dtype":"<i2","shape":[1,2]}',
        ),
    ]
    for answer, stored in fixed:
        assert encode(answer) == stored
        assert same(decode(stored), answer)


def test_numbers_of_numpy_are_numbers() -> None:
    for held, plain in (
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.bytes_(b"a"), b"a"),
    ):
        assert same(decode(encode(held)), plain)
    strided = np.arange(10).reshape(2, 5)[:, ::2]
    assert same(decode(encode(strided)), np.ascontiguousarray(strided))
    fresh = decode(encode(np.zeros(2)))
    fresh[0] = 1  # its own memory


def _deep(levels: int) -> list[Any]:
    result: list[Any] = []
    for _ in range(levels):
        result = [result]
    return result


UNSUPPORTED: list[Any] = [
    object(), {1}, {1: 2}, {(1,): 2}, 1j, np.complex128(1), np.longdouble(1), np.array([1], dtype=np.longdouble),
    np.array([object()]), np.array(["2020"], dtype="M8[D]"), np.zeros(1, dtype=[("a", int)]), np.datetime64("2020"),
    np.ma.array([1, 2], mask=[True, False]), pd.Series([1]), pd.DataFrame({"a": [1]}), bytearray(b"a"),
    range(3), print, _deep(100_000), [[{"a": {1, 2}}]],
]  # fmt: skip


@each("answer", UNSUPPORTED)
def test_other_types_are_refused(answer: Any) -> None:
    with refuses(dp.WrongType, "answer"):
        encode(answer)


class Trap:
    """Runs on being unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_reading_runs_nothing(tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    trap = pickle.dumps(Trap(flag))
    data = base64.b64encode(trap).decode()
    code = f"__import__('pathlib').Path({str(flag)!r}).touch()"
    crafted: list[Any] = [
        {"dither": "array", "dtype": "O", "shape": [1], "data": data},
        {"dither": "array", "dtype": "|O8", "shape": [1], "data": base64.b64encode(bytes(8)).decode()},
        {"dither": "array", "dtype": code, "shape": [1], "data": data},
        {"dither": "array", "dtype": "i8,O", "shape": [1], "data": data},
        {"dither": "array", "dtype": ["<i8", "O"], "shape": [1], "data": data},
        {"dither": "array", "dtype": "<i8", "shape": code, "data": data},
        {"dither": "array", "dtype": "<i8", "shape": [10**9], "data": ""},
        {"dither": "array", "dtype": "M8[s]", "shape": [1], "data": base64.b64encode(bytes(8)).decode()},
        {"dither": "array", "dtype": "V8", "shape": [1], "data": base64.b64encode(bytes(8)).decode()},
        {"dither": "matrix", "dtype": "<i8", "shape": [1], "data": base64.b64encode(bytes(8)).decode()},
        {"dither": "pickle", "data": data},
        {"dither": "object", "data": data, "dtype": "<i8", "shape": [1]},
        {"dither": "tuple", "items": 5},
        {"dither": "dict", "items": [code]},
        {"dither": "float", "value": code},
        {"dither": "int", "value": code},
        {"dither": ["bytes"], "data": data},
        {"dither": {}},
        {"dither": 5},
    ]
    stored = [json.dumps(one).encode() for one in crafted]
    for one in [*stored, trap, b"", b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5000, b"NaNa"]:
        with refuses(dp.LedgerError, "answers"):
            decode(one)
    assert not flag.exists()
    pickle.loads(trap)
    assert flag.exists(), "the trap works"


@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer_or_a_ledger_error(stored: bytes) -> None:
    with contextlib.suppress(dp.LedgerError):
        decode(stored)


@given(
    st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), TEXTS), lambda inner: st.lists(inner), max_leaves=8)
)
def test_canonical_text_is_json(value: Any) -> None:
    assert json.loads(canonical(value)) == value
    assert canonical({"a": value, "b": 1}) == canonical({"b": 1, "a": value})
