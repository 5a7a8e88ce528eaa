"""Local reports about numbers, sets, words and days, as they are and as they are gotten wrong.

Functions are ``(data, size) -> size outputs``; the data are one person's value.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dither.guarantees import PureDP
from dither.local.designs import inside_float, inside_probability
from dither.local.distribution import Distribution
from dither.local.heavy_hitters import HeavyHitters
from dither.local.index_records import pack_indices, unpack_indices
from dither.local.mean import Mean
from dither.local.protocol import LocalProtocol
from dither.local.sets import PaddedSets
from dither.local.subset_selection import SubsetSelection
from dither.randomness import resolve, trials, uniform_integers

CLAIM = PureDP(1)
MEAN = Mean((0, 1), 1)
DISTRIBUTION = Distribution((0, 1), 8, 1)
SETS = PaddedSets(4, 2, 1)
WORDS = HeavyHitters(1, 0.5, 3)
DAILY = SubsetSelection(4, 1)
DAYS = 5


def reports(protocol: LocalProtocol[Any], x: Any, size: int) -> list[bytes]:
    """The records of so many reports of one value."""
    return [record.tobytes() for record in protocol.privatize([x] * size).records]


def mean_reports(x: float, size: int) -> list[int]:
    """Reports of a number as they are."""
    records = MEAN.privatize(np.full(size, x)).records
    numbers: list[int] = unpack_indices(records, MEAN.report_count).tolist()
    return numbers


def mean_of_two_kinds(x: float, size: int) -> list[int]:
    """One bit for numbers at an end, a window for all others: the kind of report tells which."""
    kind = Mean((0, 1), 1, "duchi" if x in (0, 1) else "piecewise")
    numbers: list[int] = unpack_indices(kind.privatize(np.full(size, x)).records, kind.report_count).tolist()
    return numbers


def distribution_reports(x: float, size: int) -> list[bytes]:
    """Reports of a bin as they are."""
    return reports(DISTRIBUTION, x, size)


def window_cut_off(x: float, size: int) -> list[bytes]:
    """Windows that end at the bounds: a bin at the edge spreads the same probability over fewer reports."""
    source, bins, half = resolve(None), DISTRIBUTION.bins, 2
    code = int(DISTRIBUTION.encode([x])[0])
    low, high = max(0, code - half), min(bins, code + half + 1)
    width = 2 * half + 1
    held = trials(inside_float(1.0, width, bins), partial(inside_probability, Fraction(1), width, bins), size, source)
    inside = low + uniform_integers(high - low, size, source).astype(np.int64)
    outside = uniform_integers(bins - (high - low), size, source).astype(np.int64)
    outside += np.where(outside >= low, high - low, 0)
    return [record.tobytes() for record in pack_indices(np.where(held, inside, outside), bins)]


def set_reports(x: Any, size: int) -> list[bytes]:
    """Reports of a set as they are."""
    return reports(SETS, x, size)


def every_item(x: Any, size: int) -> list[list[bytes]]:
    """A report for each item of the set, of epsilon each, though how many there are depends on the set."""
    items = [reports(SETS.base, item, size) for item in sorted(x)]
    return [[column[run] for column in items] for run in range(size)]


def word_reports(x: str, size: int) -> list[bytes]:
    """The report of somebody who is asked in the first round only."""
    return [record.tobytes() for record in WORDS.start().privatize([x] * size).records]


def asked_in_every_round(x: str, size: int) -> list[tuple[int, ...]]:
    """The same person in all rounds, epsilon each: which half of the letters its word is in, letter by letter."""
    half = SubsetSelection(2, WORDS.epsilon)
    rounds = [half.privatize([int(letter > "m")] * size).records[:, 0] for letter in x]
    return [tuple(int(column[run]) for column in rounds) for run in range(size)]


def remembered_reports(x: int, size: int) -> list[list[bytes]]:
    """The same report on every day."""
    return [[report] * DAYS for report in reports(DAILY, x, size)]


def reset_every_day(x: int, size: int) -> list[list[bytes]]:
    """A budget that is full again every morning: a new report on every day."""
    days = [reports(DAILY, x, size) for _ in range(DAYS)]
    return [[day[run] for day in days] for run in range(size)]
