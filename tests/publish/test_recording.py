"""What the ledger records of a publication: the same numbers come back, bit for bit, and nothing else is read.

Recorded bytes: read back as they were written, refused where they are of something else.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dither as dp
from dither.ledger import recorded
from dither.publish import Attribute, Domain, Round, Synthesizer
from dither.publish.graphical import CliqueLaws, junction_tree, possible_cells
from dither.publish.recording import decode_parts, encode_parts, encode_synthesis
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


SYNTHESIZER = Synthesizer(Domain([Attribute.flat("a", range(3)), Attribute.flat("b", range(2))]), dp.ZCDP(0.1))
COUNTS = {(1, 0): [50, 30, 20], (0, 1): [60, 40], (1, 1): [[40, 10], [10, 20], [10, 10]]}


@pytest.fixture(scope="module")
def stored():
    return SYNTHESIZER.measure(COUNTS)


def test_the_same_bytes_give_the_same_records(stored):
    first, second = (SYNTHESIZER.read(stored) for _ in range(2))
    assert first.records.equals(second.records)
    assert first.rounds == second.rounds
    assert not SYNTHESIZER.read(SYNTHESIZER.measure(COUNTS)).records.equals(first.records)


def test_noisy_counts_are_whole_and_near_the_exact_ones(stored):
    rounds = SYNTHESIZER.read(stored).rounds
    assert rounds[0].values.dtype == np.int64
    for item in rounds:
        levels = tuple(int(place in item.table) for place in range(2))
        assert np.all(np.abs(item.values - np.array(COUNTS[levels])) < 8 * item.sigma)


def test_what_is_recorded_is_small():
    """Noisy counts take two or three bytes, as few as their noise has, and laws at most four."""
    noise = np.random.default_rng(1).normal(1000, 20, (30, 50, 40))
    rounds = [Round((0, 1), 20.0, np.rint(values).astype(np.int64)) for values in noise]
    tree = junction_tree((50, 40), [(0, 1)])
    laws = CliqueLaws((50, 40), tree, possible_cells((50, 40), tree, {}), [noise.mean(axis=0)], 2e6)
    assert len(encode_synthesis(rounds, laws)) < 2.5 * noise.size + 6 * 2000


def test_other_bytes_are_refused(stored):
    other = Synthesizer(Domain([Attribute.flat("a", range(3)), Attribute.flat("b", range(3))]), dp.ZCDP(0.1))
    with refuses(dp.LedgerError, "a synthesis of these columns"):
        other.read(stored)
    content = recorded.decode(stored)
    for change in ({"version": 2}, {"counts": b"x"}, {"is": "noisy contrasts"}):
        with refuses(dp.LedgerError, "a synthesis of these columns"):
            SYNTHESIZER.read(recorded.encode({**content, **change}))
