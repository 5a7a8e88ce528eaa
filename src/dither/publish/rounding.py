"""Whole, non-negative numbers with given sums: of families, and of rows and columns at once.

*Families.* Numbers that add up to a whole number are rounded systematically: each becomes one of the two whole numbers
around it, with the right mean, and the sum stays.

*Rows and columns.* A table with given whole sums of rows and of columns is made by halving the rows. The sums of the
columns over the upper half are real numbers between 0 and the sums of the columns, chosen so that they add up to the
rows of that half (the weights of both halves are tilted until they do, as iterative proportional fitting would); they
are rounded as a family, and what is left goes to the lower half. Then each half is halved. Whatever the weights are,
the rounded sums stay between 0 and the sums of the columns and add up to the rows, so that no step can fail: **every
pair of row and column sums with one total is met exactly.**
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dither.publish.contrasts import Floats
from dither.publish.domain import Integers
from dither.randomness import Source

_REPAIRS = 4
_BISECTIONS = 48
_LARGEST_TILT = 60.0
_LEAST_WEIGHT = 1e-9


def fit_to_sums(mean: Floats, spread: Floats, sums: Floats, families: Integers) -> Floats:
    """Numbers of each family (rows in segments) that add up to these sums: moved in proportion to their variance while
    none falls below zero, and scaled for the rest.

    >>> fit_to_sums(np.array([[1.0], [3.0]]), np.ones((2, 1)), np.array([[2.0]]), np.array([2])).ravel()
    array([0., 2.])
    """
    starts, parent = np.cumsum(families) - families, np.repeat(np.arange(len(families)), families)
    for _ in range(_REPAIRS):
        missing = sums - np.add.reduceat(mean, starts, axis=0)
        free = np.where((mean > 0) | (missing > 0)[parent], spread, 0.0)
        room = np.add.reduceat(free, starts, axis=0)
        step = missing / np.where(room > 0, room, np.inf)
        mean = np.maximum(mean + free * step[parent], 0.0)
    present = np.add.reduceat(mean, starts, axis=0)
    empty = (present <= 0) & (sums > 0)
    mean = np.where(empty[parent], 1.0, mean)
    present = np.where(empty, families[:, np.newaxis], present)
    factor = np.where(present > 0, sums / np.where(present > 0, present, 1.0), 0.0)
    return np.asarray(mean * factor[parent])


def round_families(mean: Floats, sums: Integers, families: Integers, source: Source) -> Integers:
    """Whole numbers around the means with the right sums: one more where the running sum of what is above the floors,
    shifted by one random number for the family, passes a whole number.

    Every operation on the running sum keeps its order, so that differences are never negative, and its end is set.

    >>> from dither.randomness import SYSTEM
    >>> round_families(np.array([[0.5], [0.5], [4.0]]), np.array([[1], [4]]), np.array([2, 1]), SYSTEM).sum()
    np.int64(5)
    """
    floors = np.floor(mean)
    parts = mean - floors
    whole = floors.astype(np.int64)
    del floors
    starts, parent = np.cumsum(families) - families, np.repeat(np.arange(len(families)), families)
    ends = starts + families - 1
    left = sums - np.add.reduceat(whole, starts, axis=0)
    running = np.cumsum(parts, axis=0)
    running -= (running[starts] - parts[starts])[parent]
    np.maximum(running, 0.0, out=running)
    total = running[ends]
    words = source.words(sums.size) >> np.uint64(11)
    shift = words.astype(np.float64).reshape(sums.shape) * 2.0**-53
    running *= np.where(total > 0, left / np.where(total > 0, total, 1.0), 0.0)[parent]
    running += shift[parent]
    steps = np.minimum(np.floor(running), left[parent]).astype(np.int64)
    steps[ends] = left
    whole += steps
    whole[1:] -= steps[:-1]
    # the first of a family has no predecessor
    whole[starts[1:]] += steps[ends[:-1]]
    return whole


@dataclass(frozen=True, eq=False)
class Blocks:
    """Tables side by side: block b has ``rows[b]`` rows and ``columns[b]`` columns.

    The cells stand one block after another, row by row.
    """

    rows: Integers
    columns: Integers


def fill_blocks(blocks: Blocks, row_sums: Integers, column_sums: Integers, weights: Floats, source: Source) -> Integers:
    """Whole, non-negative cells with these sums of the rows and of the columns of every block, near the weights.

    >>> from dither.randomness import SYSTEM
    >>> blocks = Blocks(np.array([2]), np.array([2]))
    >>> fill_blocks(blocks, np.array([3, 1]), np.array([2, 2]), np.array([2.0, 1.0, 0.0, 1.0]), SYSTEM)
    array([2, 1, 0, 1])
    """
    sizes, widths = blocks.rows.copy(), blocks.columns  # segments of rows, at first one for each block
    cell_widths = np.repeat(blocks.columns, blocks.rows)  # of every row
    row_starts = np.cumsum(cell_widths) - cell_widths
    column_of_cell = np.arange(int(cell_widths.sum())) - np.repeat(row_starts, cell_widths)
    rows_before = np.concatenate([[0], np.cumsum(row_sums)])
    sums = column_sums.astype(np.int64)  # of every segment and column
    positive = np.maximum(weights, 0.0) + _LEAST_WEIGHT
    while np.any(sizes > 1):
        first = (sizes + 1) // 2
        parts = np.stack([first, sizes - first], axis=1)
        starts = np.cumsum(sizes) - sizes
        divided = np.repeat(sizes > 1, widths)
        halves = np.zeros((2, len(sums)))
        offsets = np.cumsum(widths) - widths
        in_upper = np.arange(len(cell_widths)) < np.repeat(starts + first, sizes)
        key = np.repeat(np.repeat(offsets, sizes), cell_widths) + column_of_cell
        upper_cell = np.repeat(in_upper, cell_widths)
        for half, cells in enumerate((upper_cell, ~upper_cell)):
            halves[half] = np.bincount(key[cells], positive[cells], minlength=len(sums))
        wanted = rows_before[starts + first] - rows_before[starts]
        upper = _divide(sums, halves[0], halves[1], wanted, widths, source)
        upper = np.where(divided, upper, sums)
        present = parts.ravel() > 0
        following = np.repeat(widths, 2)
        target = np.repeat(present, following)
        both = np.empty(int(following.sum()), dtype=np.int64)
        places = np.repeat(2 * offsets, widths) + np.arange(len(sums)) - np.repeat(offsets, widths)
        both[places], both[places + np.repeat(widths, widths)] = upper, sums - upper
        sizes, widths, sums = parts.ravel()[present], following[present], both[target]
    return sums


def _divide(
    sums: Integers, upper: Floats, lower: Floats, wanted: Integers, widths: Integers, source: Source
) -> Integers:
    """How much of each column belongs to the upper half of its segment: from 0 to all of it, ``wanted`` in all."""
    starts, segment = np.cumsum(widths) - widths, np.repeat(np.arange(len(widths)), widths)
    odds = np.log(np.maximum(upper, _LEAST_WEIGHT)) - np.log(np.maximum(lower, _LEAST_WEIGHT))
    low, high = np.full(len(widths), -_LARGEST_TILT), np.full(len(widths), _LARGEST_TILT)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_much = np.add.reduceat(sums / (1 + np.exp(-(odds + middle[segment]))), starts) > wanted
        low, high = np.where(too_much, low, middle), np.where(too_much, middle, high)
    shares = sums / (1 + np.exp(-(odds + low[segment])))
    whole = round_families(shares[:, np.newaxis], wanted[:, np.newaxis], widths, source).ravel()
    whole = np.clip(whole, 0, sums)
    for sign, room in ((1, sums - whole), (-1, whole.copy())):
        missing = sign * (wanted - np.add.reduceat(whole, starts))
        before = np.cumsum(room) - room
        before -= before[starts][segment]
        whole = whole + sign * np.clip(missing[segment] - before, 0, room)
    return whole
