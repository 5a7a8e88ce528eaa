"""Recorded bytes: read back as they were written, refused where they are of something else."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dp
from dither.ledger import recorded
from dither.publish import Attribute, Domain, Round, Synthesizer
from dither.publish.clique_laws import CliqueLaws, possible_cells
from dither.publish.junction import junction_tree
from dither.publish.synthesis_encoding import encode
from support import refuses

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
    assert len(encode(rounds, laws)) < 2.5 * noise.size + 6 * 2000


def test_other_bytes_are_refused(stored):
    other = Synthesizer(Domain([Attribute.flat("a", range(3)), Attribute.flat("b", range(3))]), dp.ZCDP(0.1))
    with refuses(dp.LedgerError, "a synthesis of these columns"):
        other.read(stored)
    content = recorded.decode(stored)
    for change in ({"version": 2}, {"counts": b"x"}, {"is": "noisy contrasts"}):
        with refuses(dp.LedgerError, "a synthesis of these columns"):
            SYNTHESIZER.read(recorded.encode({**content, **change}))
