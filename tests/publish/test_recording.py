"""What the ledger records of a publication: the same numbers come back, bit for bit, and nothing else is read."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dither as dp
from dither.publish.recording import decode_parts, encode_parts
from support import refuses


@pytest.mark.slow
@given(arrays(np.int64, st.integers(0, 40), elements=st.integers(-(1 << 53), 1 << 53)), st.integers(0, 20))
def test_noisy_contrasts_come_back_bit_for_bit(steps, power):
    values = steps / (1 << power)
    stored = encode_parts({(1, 0): values}, {(1, 0): 1 << power}, {(1, 0): 0.1})
    parts, variances = decode_parts(stored, {(1, 0): values.shape})
    assert parts[1, 0].tobytes() == values.tobytes()
    assert variances == {(1, 0): 0.1}


def test_a_million_contrasts_take_two_bytes_each():
    noise = np.random.default_rng(1).normal(0, 64, 1_000_000).round()
    assert len(encode_parts({(1,): noise}, {(1,): 1}, {(1,): 1.0})) < 2_000_000


def test_huge_numbers_are_held_within_64_bits():
    stored = encode_parts({(1,): np.array([1e300, -1e300])}, {(1,): 1}, {(1,): 1.0})
    assert decode_parts(stored, {(1,): (2,)}).parts[1,].tolist() == [float((1 << 63) - 1024), -float((1 << 63) - 1024)]


STORED = encode_parts({(1,): np.arange(4.0)}, {(1,): 1}, {(1,): 1.0})


def changed(**content):
    return json.dumps({**json.loads(STORED), **content}).encode()


@pytest.mark.parametrize(
    ("stored", "shapes"),
    [
        (STORED, {(1,): (3,)}),
        (STORED, {(1,): (5,)}),
        (STORED, {(2,): (4,)}),
        (STORED, {(1,): (4,), (0,): (1,)}),
        (changed(version=2), {(1,): (4,)}),
        (changed(**{"is": "an answer"}), {(1,): (4,)}),
        (changed(parts=[[[1], 1, 1.0, "text"]]), {(1,): (4,)}),
        (b"[]", {(1,): (4,)}),
        (b"no JSON", {(1,): (4,)}),
    ],
)
def test_bytes_of_another_plan_or_version_are_refused(stored, shapes):
    with refuses(dp.LedgerError, "ledger"):
        decode_parts(stored, shapes)
