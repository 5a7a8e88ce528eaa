"""Counterexamples of the local model: clients whose reports say more than they claim.

The data set is the category of one person, one of eight, and an output is the report: its bits, or the row or hash
function and what is reported of it. The repaired version is the protocol of :mod:`dither.local`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.audit.suite.case import Counterexample
from dither.guarantees import PureDP
from dither.local import (
    CountMeanSketch,
    HadamardCountMeanSketch,
    LocalHashing,
    LocalProtocol,
    RandomizedResponse,
    UnaryEncoding,
)
from dither.local.fields import field_tables
from dither.local.index_records import unpack_indices
from dither.randomness import SeededSource, resolve, uniform_integers

Outputs = NDArray[np.int64]

_CATEGORIES = 8
_SEEDS = 256
_SYMMETRIC = UnaryEncoding(_CATEGORIES, 1, optimized=False)
_HASHING = LocalHashing(_CATEGORIES, 1)
_SKETCH = CountMeanSketch(1, rows=4, width=16)
_RESPONSE = RandomizedResponse(2, 1)


def repeated_reports(protocol: LocalProtocol[Any], x: Any, size: int) -> Outputs:
    """So many reports of one person, as rows of numbers: bits one by one, other records as one number."""
    records = protocol.privatize([x] * size).records
    if isinstance(protocol, UnaryEncoding):
        return np.unpackbits(records, axis=1, bitorder="little").astype(np.int64)
    if isinstance(protocol, CountMeanSketch):
        bits = np.unpackbits(records[:, 1:], axis=1, bitorder="little")
        return np.column_stack([records[:, 0], bits]).astype(np.int64)
    if isinstance(protocol, LocalHashing):
        reports = unpack_indices(records, protocol.report_count).astype(np.int64)
        return np.column_stack(np.divmod(reports, protocol.hash_range))
    if isinstance(protocol, HadamardCountMeanSketch):
        reports = unpack_indices(records, protocol.report_count).astype(np.int64)
        return np.column_stack([reports >> 1, reports & 1])
    return records[:, 0].astype(np.int64)


def wrong_flips(x: int, size: int) -> Outputs:
    """A symmetric unary client that flips with probability 1 / (e^epsilon + 1), not 1 / (e^(epsilon/2) + 1)."""
    return repeated_reports(UnaryEncoding(_CATEGORIES, 2, optimized=False), x, size)


def chosen_hash(x: int, size: int) -> Outputs:
    """A client that draws another hash function where the hash of its category is that of the next category."""
    g = _HASHING.hash_range
    add, multiply = field_tables(g)
    reports = repeated_reports(_HASHING, x, size)

    def hashed(category: int, functions: Outputs) -> Outputs:
        result = np.zeros_like(functions)
        for place in range(_HASHING.digits):
            digit = category // g**place % g
            result = add[result, multiply[functions // g**place % g, digit]]
        return result

    while (bad := np.flatnonzero(hashed(x, reports[:, 0]) == hashed(x + 1, reports[:, 0]))).size:
        reports[bad] = repeated_reports(_HASHING, x, bad.size)
    return reports


def fixed_row(x: int, size: int) -> Outputs:
    """A sketch client that takes the row from its value instead of drawing it."""
    rows = np.full(size, x % _SKETCH.rows)
    codes = _SKETCH.encode([x] * size)
    bits = _SKETCH.encoding.draw(_SKETCH.columns(codes, rows), resolve(None))
    return np.column_stack([rows, np.unpackbits(bits, axis=1, bitorder="little")]).astype(np.int64)


@lru_cache(maxsize=2)
def _reports_by_seed(x: int) -> Outputs:
    return np.array([_RESPONSE.privatize([x], source=SeededSource(seed)).records[0, 0] for seed in range(_SEEDS)])


def guessed_seed(x: int, size: int) -> Outputs:
    """A client whose noise comes from a seed of eight bits, which it also sends."""
    seeds = uniform_integers(_SEEDS, size, resolve(None)).astype(np.int64)
    return np.column_stack([seeds, _reports_by_seed(x)[seeds]])


def secure_response(x: int, size: int) -> Outputs:
    """The same report with secure noise, and a number of eight bits beside it."""
    beside = uniform_integers(_SEEDS, size, resolve(None)).astype(np.int64)
    return np.column_stack([beside, repeated_reports(_RESPONSE, x, size)])


LOCAL_COUNTEREXAMPLES: tuple[Counterexample, ...] = (
    Counterexample(
        "unary client with a wrong q", "two bits differ, so each may cost half of epsilon", PureDP(1), 0, 1,
        wrong_flips,
        lambda x, size: repeated_reports(_SYMMETRIC, x, size),
    ),
    Counterexample(
        "hash chosen by neighboring values", "which hash functions are possible depends on the value", PureDP(1), 0, 3,
        chosen_hash,
        lambda x, size: repeated_reports(_HASHING, x, size),
    ),
    Counterexample(
        "sketch with a fixed row", "the row is a function of the value", PureDP(1), 0, 1,
        fixed_row,
        lambda x, size: repeated_reports(_SKETCH, x, size),
    ),
    Counterexample(
        "noise from a small seed", "who knows the seed can compute the report of every value", PureDP(1), 0, 1,
        guessed_seed,
        secure_response,
    ),
)  # fmt: skip
"""The counterexamples of the local model."""
