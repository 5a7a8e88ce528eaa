"""Bits, residues and parities of outputs: where a leak hides that no histogram of the values sees.

A *bit* is one binary digit of one coordinate (of an integer, of the whole part of a float, or of a float as it is
stored) or one bit of the hash of a label. Single bits and residues are screened by how far the two data sets are apart
in them. Of several bits together, all parities of a dozen are screened at once by a Walsh-Hadamard transform, which
finds noisy ones; and of hundreds, linear algebra modulo 2 finds every parity that is always the same on one data set
and is not on the other. What is found here is only a place to look at.
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
_PATTERN = 12
_MOST_RELATIONS = 512
_SPARE_ROWS = 40
_FAR = 2.0**62
_FEWEST_VIOLATIONS = 0.05


@dataclass(frozen=True)
class Bit:
    """Bit ``number`` of a coordinate: of its whole part, or, ``stored``, of the float in memory."""

    column: str
    place: int | None
    number: int = 0
    stored: bool = False

    def __call__(self, outputs: Outputs) -> Bits:
        """0 or 1 for each run."""
        column = outputs.column(self.column)
        if column.dtype == object:
            return np.fromiter((hash_of(label) >> self.number & 1 for label in column), np.uint8, column.size)
        return bit(coordinate(column, self.place), self.number, stored=self.stored)

    @property
    def name(self) -> str:
        """In words."""
        place = "" if self.place is None else f"[{self.place}]"
        return f"bit {self.number} of {self.column or 'output'}{place}"


@lru_cache(maxsize=1 << 16)
def hash_of(label: str) -> int:
    """A hash of a label that is the same in every process.

    >>> hash_of("a") == hash_of("a"), hash_of("a") == hash_of("b")
    (True, False)
    """
    return int.from_bytes(blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def coordinate(column: Array, place: int | None) -> Array:
    """One number for each run: the column, or one of its places."""
    if column.ndim == 2:
        place = 0 if place is None else place
        return column[:, place] if place < column.shape[1] else np.full(len(column), np.nan)
    return column if not place else np.full(len(column), np.nan)


def whole(values: Array) -> NDArray[np.int64]:
    """The whole part as an integer; 0 for what has none.

    >>> whole(np.array([2.5, -0.5, np.nan])).tolist()
    [2, -1, 0]
    """
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    with np.errstate(invalid="ignore"):
        down = np.floor(values)
        return np.where(np.abs(down) < _FAR, down, 0.0).astype(np.int64)


def _stored(values: Array) -> NDArray[np.int64]:
    """The 64 bits of each number."""
    if values.dtype.kind in "iu":
        return values.astype(np.int64, copy=False)
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def bit(values: Array, number: int, *, stored: bool = False) -> Bits:
    """One bit of each number.

    >>> bit(np.array([1, 2, 3]), 0).tolist(), bit(np.array([1.0, -1.0]), 63, stored=True).tolist()
    ([1, 0, 1], [0, 1])
    """
    words = _stored(values) if stored else whole(values)
    return ((words >> np.int64(number)) & np.int64(1)).astype(np.uint8)


def residues(values: Array, modulus: int) -> NDArray[np.int64]:
    """The whole part modulo ``modulus``.

    >>> residues(np.array([8, -1]), 7).tolist()
    [1, 6]
    """
    return whole(values) % np.int64(modulus)


def apart(codes: Array, labels: Labels) -> float:
    """How far apart the two data sets are in small integers: chi-square beyond its degrees of freedom, in deviations.

    >>> apart(np.array([0, 1] * 50), np.array([False, True] * 50)) > 10
    True
    """
    ours, theirs = (np.bincount(codes[chosen]) for chosen in (labels, ~labels))
    size = max(ours.size, theirs.size)
    ours, theirs = (np.pad(item, (0, size - item.size)).astype(float) for item in (ours, theirs))
    total = ours + theirs
    used = total > 0
    degrees = int(used.sum()) - 1
    if degrees < 1 or not ours.sum() or not theirs.sum():
        return 0.0
    p = ours.sum() / total.sum()
    chi = float((((ours - p * total) ** 2)[used] / (p * (1 - p) * total[used])).sum())
    return (chi - degrees) / math.sqrt(2 * degrees)


def bits_apart(values: Array, labels: Labels, *, raw: bool) -> NDArray[np.float64]:
    """How many deviations the share of ones of each of the 64 bits is apart."""
    words = _stored(values) if raw else whole(values)
    ones = np.unpackbits(words.astype("<i8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return shares_apart(ones, labels)


def shares_apart(ones: Array, labels: Labels) -> NDArray[np.float64]:
    """How many deviations the share of ones of each column is apart.

    >>> shares_apart(np.array([[0, 1], [1, 1]] * 50), np.array([False, True] * 50)).tolist()
    [10.0, 0.0]
    """
    ours, theirs = ones[labels], ones[~labels]
    if not len(ours) or not len(theirs):
        return np.zeros(ones.shape[1])
    middle = ones.mean(axis=0)
    spread = np.sqrt(middle * (1 - middle) * (1 / len(ours) + 1 / len(theirs)))
    gap = np.abs(ours.mean(axis=0) - theirs.mean(axis=0))
    return np.asarray(np.divide(gap, spread, out=np.zeros_like(gap), where=spread > 0), dtype=np.float64)


def parities(matrix: Bits, labels: Labels, count: int = 3) -> list[list[int]]:
    """The sets of columns whose parity tells most, of all subsets of the first dozen columns.

    >>> rng = np.random.default_rng()
    >>> free = rng.integers(0, 2, (400, 4)).astype(np.uint8)
    >>> free[:, 3] = (free[:, 0] + free[:, 1] + (np.arange(400) >= 200)) % 2
    >>> [0, 1, 3] in parities(free, np.arange(400) >= 200)
    True
    """
    used = matrix[:, :_PATTERN]
    width = used.shape[1]
    codes = used.astype(np.int64) @ (1 << np.arange(width))
    sums = np.bincount(codes[labels], minlength=1 << width) / max(1, int(labels.sum()))
    sums = sums - np.bincount(codes[~labels], minlength=1 << width) / max(1, int((~labels).sum()))
    for place in range(width):
        pairs = sums.reshape(-1, 2, 1 << place)
        sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
    best = np.argsort(-np.abs(sums), kind="stable")[:count]
    return [[place for place in range(width) if code >> place & 1] for code in best.tolist() if code & (code - 1)]


def relations(matrix: Bits, labels: Labels, count: int = 3) -> list[list[int]]:
    """Sets of columns whose parity is the same in all runs on one data set, and not on the other.

    >>> rng = np.random.default_rng()
    >>> free = rng.integers(0, 2, (600, 100)).astype(np.uint8)
    >>> free[:300, 7] = free[:300, 20:90].sum(axis=1) % 2
    >>> sorted(relations(free, np.arange(600) >= 300)[0]) == [7, *range(20, 90)]
    True
    """
    result: list[tuple[float, list[int]]] = []
    for side in (labels, ~labels):
        ours, theirs = matrix[side], matrix[~side]
        width = min(matrix.shape[1], _MOST_RELATIONS, len(ours) - _SPARE_ROWS)
        if width < 1 or not len(theirs):
            continue
        ones = np.ones((len(ours), 1), dtype=np.uint8)
        basis = null_space(np.hstack([ours[:, :width], ones])[: width + 1 + _SPARE_ROWS])
        for relation in basis:
            chosen = np.flatnonzero(relation[:-1])
            if not chosen.size:
                continue
            kept, broken = ((side_bits[:, chosen].sum(axis=1) + relation[-1]) % 2 for side_bits in (ours, theirs))
            gap = float(broken.mean() - kept.mean())
            if gap > _FEWEST_VIOLATIONS:
                result.append((gap, chosen.tolist()))
    result.sort(key=lambda item: -item[0])
    return [chosen for _, chosen in result[:count]]


def null_space(matrix: Bits) -> Bits:
    """A basis of all x with ``matrix @ x = 0`` modulo 2, one in each row.

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
    for place, column in enumerate(free):
        basis[place, column] = 1
        basis[place, pivots] = rows[: len(pivots), column]
    return basis
