"""Counting bits by place."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dp
from dither.local import sketch
from dither.local.bases import clear_padding, count_bits, ones, set_bits
from dither.randomness import SYSTEM
from support import each


@each("width", [1, 3, 8, 17])
@each("rows", [0, 1, 2, 24, 25, 26, 100, 5000])
def test_counts_are_those_of_unpacked_bits(rows, width):
    records = SYSTEM.words(rows * width // 8 + 1).view(np.uint8)[: rows * width].reshape(rows, width)
    bits = np.unpackbits(records, axis=1, bitorder="little")
    assert np.array_equal(count_bits(records), bits.sum(axis=0, dtype=np.int64))
    assert np.array_equal(ones(records), bits.sum(axis=1, dtype=np.int64))
    assert np.array_equal(count_bits(np.full((rows, width), 255, dtype=np.uint8)), np.full(8 * width, rows))


def test_single_bits_are_set_and_padding_cleared():
    records = np.full((3, 2), 255, dtype=np.uint8)
    clear_padding(records, 11)
    assert records.tolist() == [[255, 7]] * 3
    set_bits(records, np.array([0, 9, 10]), np.array([False, False, True]))
    assert records.tolist() == [[254, 7], [255, 5], [255, 7]]


@pytest.mark.parametrize(
    ("rows", "width", "skewed"), [(8, 13, False), (300, 64, False), (300, 17, True), (5, 100, True)]
)
def test_sketches_add_the_bits_of_every_row(rows, width, skewed, monkeypatch):
    """Against one report at a time; skewed: nearly all reports in one row, as nobody who is honest sends them."""
    monkeypatch.setattr(sketch, "_BYTES_AT_ONCE", 1 << 12)
    p = dp.local.CountMeanSketch(1, categories=20, rows=rows, width=width)
    records = p.privatize(np.arange(2000) % 20).records.copy()
    size = p.record_bytes - -(-width // 8)
    if skewed:
        records[:1900, :size] = records[0, :size]
    expected = np.zeros((rows, width), dtype=np.int64)
    for record in records:
        row = int.from_bytes(record[:size].tobytes(), "little")
        expected[row] += np.unpackbits(record[size:], bitorder="little", count=width)
    tally = p.new_tally()
    p.tally(tally, records[:700])
    p.tally(tally, records[700:])
    assert np.array_equal(tally, expected)
