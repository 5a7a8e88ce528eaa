"""Bits, residues and parities of outputs, where leaks hide that a histogram of the values does not show.

A *bit* is one binary digit of one coordinate (of an integer, of the integer part of a float, or of the stored
representation of a float) or one bit of the hash of a label. Single bits and residues are screened by the statistical
distance between the two data sets. All parities of a dozen bits are screened at once with a Walsh-Hadamard transform,
which also detects noisy parities; among hundreds of bits, linear algebra modulo 2 finds every parity that is constant
on one data set and not on the other. The results are only candidates; evidence comes from fresh runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.features import Array, Outputs

Labels = NDArray[np.bool_]
Bits = NDArray[np.uint8]

MODULI = (3, 5, 7, 8, 9, 10, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31)
_PARITY_COLUMNS = 12
_MAX_COLUMNS = 512
_SPARE_ROWS = 40
_MAX_INTEGER = 2.0**62
_MIN_VIOLATION_RATE = 0.05


@dataclass(frozen=True)
class Bit:
    """Bit ``number`` of a coordinate: of its integer part or, if ``stored``, of its representation in memory."""

    column: str
    index: int | None
    number: int = 0
    stored: bool = False

    def __call__(self, outputs: Outputs) -> Bits:
        """0 or 1 for each run."""
        column = outputs.column(self.column)
        if column.dtype == object:
            return np.fromiter((label_hash(label) >> self.number & 1 for label in column), np.uint8, column.size)
        return bit(coordinate(column, self.index), self.number, stored=self.stored)

    @property
    def name(self) -> str:
        """A description for reports."""
        index = "" if self.index is None else f"[{self.index}]"
        return f"bit {self.number} of {self.column or 'output'}{index}"


@lru_cache(maxsize=1 << 16)
def label_hash(label: str) -> int:
    """A hash of a label that is identical in all processes.

    >>> label_hash("a") == label_hash("a"), label_hash("a") == label_hash("b")
    (True, False)
    """
    return int.from_bytes(blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def coordinate(column: Array, index: int | None) -> Array:
    """One number per run: the column itself, or one coordinate of it."""
    if column.ndim == 2:
        index = 0 if index is None else index
        return column[:, index] if index < column.shape[1] else np.full(len(column), np.nan)
    return column if not index else np.full(len(column), np.nan)


def integer_part(values: Array) -> NDArray[np.int64]:
    """The integer part; 0 for values that have none.

    >>> integer_part(np.array([2.5, -0.5, np.nan])).tolist()
    [2, -1, 0]
    """
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    with np.errstate(invalid="ignore"):
        floors = np.floor(values)
        return np.where(np.abs(floors) < _MAX_INTEGER, floors, 0.0).astype(np.int64)


def _stored_words(values: Array) -> NDArray[np.int64]:
    """The 64 bits of each number."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def bit(values: Array, number: int, *, stored: bool = False) -> Bits:
    """One bit of each number.

    >>> bit(np.array([1, 2, 3]), 0).tolist(), bit(np.array([1.0, -1.0]), 63, stored=True).tolist()
    ([1, 0, 1], [0, 1])
    """
    words = _stored_words(values) if stored else integer_part(values)
    return ((words >> np.int64(number)) & np.int64(1)).astype(np.uint8)


def residues(values: Array, modulus: int) -> NDArray[np.int64]:
    """The integer part modulo ``modulus``.

    >>> residues(np.array([8, -1]), 7).tolist()
    [1, 6]
    """
    return integer_part(values) % np.int64(modulus)


def chi_square_score(codes: Array, labels: Labels) -> float:
    """The chi-square statistic for small integer codes on the two data sets, standardized by its mean and deviation.

    >>> chi_square_score(np.array([0, 1] * 50), np.array([False, True] * 50)) > 10
    True
    """
    first, second = (np.bincount(codes[chosen]) for chosen in (labels, ~labels))
    size = max(first.size, second.size)
    first, second = (np.pad(item, (0, size - item.size)).astype(float) for item in (first, second))
    total = first + second
    occupied = total > 0
    degrees = int(occupied.sum()) - 1
    if degrees < 1 or not first.sum() or not second.sum():
        return 0.0
    p = first.sum() / total.sum()
    chi = float((((first - p * total) ** 2)[occupied] / (p * (1 - p) * total[occupied])).sum())
    return (chi - degrees) / math.sqrt(2 * degrees)


def bit_z_scores(values: Array, labels: Labels, *, raw: bool) -> NDArray[np.float64]:
    """The two-sample z-score of the proportion of ones, for each of the 64 bits."""
    words = _stored_words(values) if raw else integer_part(values)
    ones = np.unpackbits(words.astype("<i8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return proportion_z_scores(ones, labels)


def proportion_z_scores(ones: Array, labels: Labels) -> NDArray[np.float64]:
    """The two-sample z-score of the proportion of ones in each column.

    >>> proportion_z_scores(np.array([[0, 1], [1, 1]] * 50), np.array([False, True] * 50)).tolist()
    [10.0, 0.0]
    """
    first, second = ones[labels], ones[~labels]
    if not len(first) or not len(second):
        return np.zeros(ones.shape[1])
    middle = ones.mean(axis=0)
    spread = np.sqrt(middle * (1 - middle) * (1 / len(first) + 1 / len(second)))
    gap = np.abs(first.mean(axis=0) - second.mean(axis=0))
    return np.asarray(np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0), dtype=np.float64)


def strongest_parities(matrix: Bits, labels: Labels, count: int = 3) -> list[list[int]]:
    """The subsets of the first dozen columns whose parities distinguish the two data sets best.

    >>> from dither.randomness import SYSTEM
    >>> free = (SYSTEM.words(1600) % 2).astype(np.uint8).reshape(400, 4)
    >>> free[:, 3] = (free[:, 0] + free[:, 1] + (np.arange(400) >= 200)) % 2
    >>> [0, 1, 3] in strongest_parities(free, np.arange(400) >= 200)
    True
    """
    columns = matrix[:, :_PARITY_COLUMNS]
    width = columns.shape[1]
    codes = columns.astype(np.int64) @ (1 << np.arange(width))
    sums = np.bincount(codes[labels], minlength=1 << width) / max(1, int(labels.sum()))
    sums = sums - np.bincount(codes[~labels], minlength=1 << width) / max(1, int((~labels).sum()))
    for index in range(width):
        pairs = sums.reshape(-1, 2, 1 << index)
        sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
    best = np.argsort(-np.abs(sums), kind="stable")[:count]
    return [[index for index in range(width) if code >> index & 1] for code in best.tolist() if code & (code - 1)]


def constant_parities(matrix: Bits, labels: Labels, count: int = 3) -> list[list[int]]:
    """Sets of columns whose parity is constant on one data set and not on the other.

    >>> from dither.randomness import SYSTEM
    >>> free = (SYSTEM.words(60_000) % 2).astype(np.uint8).reshape(600, 100)
    >>> free[:300, 7] = free[:300, 20:90].sum(axis=1) % 2
    >>> sorted(constant_parities(free, np.arange(600) >= 300)[0]) == [7, *range(20, 90)]
    True
    """
    result: list[tuple[float, list[int]]] = []
    for side in (labels, ~labels):
        first, second = matrix[side], matrix[~side]
        width = min(matrix.shape[1], _MAX_COLUMNS, len(first) - _SPARE_ROWS)
        if width < 1 or not len(second):
            continue
        ones = np.ones((len(first), 1), dtype=np.uint8)
        basis = null_space(np.hstack([first[:, :width], ones])[: width + 1 + _SPARE_ROWS])
        for relation in basis:
            chosen = np.flatnonzero(relation[:-1])
            if not chosen.size:
                continue
            constant, violated = (
                (side_bits[:, chosen].sum(axis=1) + relation[-1]) % 2 for side_bits in (first, second)
            )
            gap = float(violated.mean() - constant.mean())
            if gap > _MIN_VIOLATION_RATE:
                result.append((gap, chosen.tolist()))
    result.sort(key=lambda item: -item[0])
    return [chosen for _, chosen in result[:count]]


def null_space(matrix: Bits) -> Bits:
    """A basis of the null space ``{x : matrix @ x = 0 modulo 2}``, one vector per row.

    >>> null_space(np.array([[1, 1, 0], [0, 1, 1]], dtype=np.uint8)).tolist()
    [[1, 1, 1]]
    """
    rows, (height, width) = matrix.copy(), matrix.shape
    pivots: list[int] = []
    for column in range(width):
        rank = len(pivots)
        if rank == height:
            break
        ones = np.flatnonzero(rows[rank:, column])
        if not ones.size:
            continue
        first = rank + int(ones[0])
        rows[[rank, first]] = rows[[first, rank]]
        others = rows[:, column].astype(bool)
        others[rank] = False
        rows[others] ^= rows[rank]
        pivots.append(column)
    free = [column for column in range(width) if column not in set(pivots)]
    basis = np.zeros((len(free), width), dtype=np.uint8)
    for index, column in enumerate(free):
        basis[index, column] = 1
        basis[index, pivots] = rows[: len(pivots), column]
    return basis
