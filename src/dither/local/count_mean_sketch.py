"""The count-mean sketch: Apple's protocol for emoji, and the same with optimized flips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dither import arguments
from dither.errors import WrongType
from dither.local.bit_records import bit_bytes, count_bits, refuse_padding
from dither.local.index_records import index_bytes, pack_indices, refuse_index, unpack_indices
from dither.local.protocol import Codes, Floats, Tally
from dither.local.reports import Records
from dither.local.sketch import Sketch
from dither.local.unary_encoding import UnaryEncoding
from dither.local.wire_codes import COUNT_MEAN_SKETCH
from dither.randomness import Source, uniform_integers

_BYTES_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class CountMeanSketch(Sketch):
    """Report a random row and, by unary encoding, the column to which the row's hash function maps the own value.

    *Statement.* The row is drawn independently of the value, and the m bits of the column are flipped as
    :class:`UnaryEncoding` flips them: each report is epsilon-DP for its sender, whatever their value is replaced by.
    Apple's form flips symmetrically, with probability 1 / (e^(epsilon/2) + 1) (Apple Differential Privacy Team 2017,
    "Learning with Privacy at Scale"): :meth:`apple`. The default flips as optimized unary encoding does.

    *Why.* Given the row, two values change at most two bits, as in unary encoding; the row has the same law for all.

    *Record.* The row, in 1, 2, 4 or 8 bytes, the fewest that hold ``rows - 1``, little-endian; then bit c % 8 of byte
    c // 8 for column c, the lowest bit first; unused bits are 0. The hash is that of :mod:`dither.local.keyed_hash`.

    Parameters
    ----------
    epsilon
        The privacy loss of each report.
    categories
        The values to estimate by default, or None: any text, byte string or whole number may be reported and asked for.
    rows, width
        The number R of hash functions and m of columns. The server keeps R m counts.
    optimized
        Whether to flip as optimized unary encoding does.
    key
        16 bytes that select the hash functions; not a secret.

    >>> import dither as dp
    >>> apple = dp.local.CountMeanSketch.apple(epsilon=4)
    >>> apple.rows, apple.width, round(apple.variance(1), 3)
    (65536, 1024, 0.182)
    >>> p = dp.local.CountMeanSketch(epsilon=4)
    >>> round(p.variance(1), 4)
    0.0781
    >>> p.estimate(p.privatize(["a", "b", "a"]), ["a", "c"]).n
    3
    """

    epsilon: float
    categories: Any = None
    rows: int = 1024
    width: int = 1024
    optimized: bool = True
    key: bytes = bytes(16)
    wire_code: ClassVar[int] = COUNT_MEAN_SKETCH
    chunk_bytes: ClassVar[int] = 1 << 28

    def __post_init__(self) -> None:
        self.check_sketch()
        if not isinstance(self.optimized, bool):
            raise WrongType("optimized", "True or False", type(self.optimized).__name__, "pass True")

    @classmethod
    def apple(cls, epsilon: float = 4, categories: Any = None, *, key: bytes = bytes(16)) -> CountMeanSketch:
        """Apple's published parameters for emoji: 65,536 rows of 1,024 columns, symmetric flips.

        >>> CountMeanSketch.apple().report_bits
        1040
        """
        return cls(epsilon, categories, rows=65536, width=1024, optimized=False, key=key)

    def own_parameters(self) -> dict[str, object]:
        """The size of the sketch, its key, and how bits are flipped."""
        return {**super().own_parameters(), "optimized": int(self.optimized)}

    @property
    def encoding(self) -> UnaryEncoding:
        """The protocol for the column."""
        return UnaryEncoding(self.width, self.epsilon, self.optimized)

    @property
    def record_bytes(self) -> int:
        """The number of bytes of each record."""
        return index_bytes(self.rows) + bit_bytes(self.width)

    @property
    def report_bits(self) -> int:
        """The number of bits that the row needs, and one for each column."""
        return (self.rows - 1).bit_length() + self.width

    def draw(self, codes: Codes, source: Source) -> Records:
        """A row for each, and the privatized column."""
        rows = uniform_integers(self.rows, codes.size, source)
        bits = self.encoding.draw(self.columns(codes, rows), source)
        return np.concatenate([pack_indices(rows, self.rows), bits], axis=1)

    def check(self, records: Records) -> None:
        """Refuse rows that are not in the sketch and bits after the last column."""
        size = index_bytes(self.rows)
        refuse_index(unpack_indices(records[:, :size], self.rows), self.rows)
        refuse_padding(records[:, size:], self.width)

    def new_tally(self) -> Tally:
        """How many reports of each row have a 1 in each column."""
        return np.zeros((self.rows, self.width), dtype=np.int32)

    def tally(self, tally: Tally, records: Records) -> None:
        """Add up the bits of each row and column."""
        size = index_bytes(self.rows)
        rows = unpack_indices(records[:, :size], self.rows)
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=self.rows)
        starts = np.cumsum(counts) - counts
        # rows with about as many reports are counted together, side by side, the shorter ones filled up with zeros
        by_count = np.argsort(counts, kind="stable")[::-1][: int(np.count_nonzero(counts))]
        first = 0
        while first < by_count.size:
            longest = int(counts[by_count[first]])
            some = _BYTES_AT_ONCE // (longest * self.record_bytes)
            together = by_count[first : first + (some - some % 8 or 1)]  # eight of them are whole 64-bit words
            first += together.size
            ranks = np.arange(longest)[:, None]
            there = ranks < counts[together]
            block = records.take(order[np.where(there, starts[together] + ranks, 0)], axis=0)
            block[~there] = 0
            ones = count_bits(block.reshape(longest, -1)).reshape(together.size, -1)
            tally[together] += ones[:, 8 * size : 8 * size + self.width].astype(tally.dtype)

    def cells(self, block: Tally) -> Tally:
        """As they are."""
        return block

    def matched(self, sums: Floats, n: int) -> Floats:
        """The share of ones, freed from flips."""
        p, q = self.encoding.support
        return (sums / n - q) / (p - q)

    def pair_statistic(self, block: Tally, n: int) -> float:
        """From the squared deviations of each row's counts from their mean, which frees them from the number of reports
        in the row: two reports of one row add ``(p - q)^2 (1 - 1/m)`` where their columns are the same and
        ``-(p - q)^2 / m`` otherwise, and a single report adds ``(1 - 1/m)`` times its variances and ``(p - q)^2``.
        """
        p, q = self.encoding.support
        counts, m = block.astype(np.float64), self.width
        counts -= counts.mean(axis=1, keepdims=True)
        squares = float(np.einsum("ij,ij->", counts, counts))
        single = (1 - 1 / m) * (p * (1 - p) + (m - 1) * q * (1 - q) + (p - q) ** 2) * block.shape[0] / self.rows
        result: float = (squares - n * single) * self.rows**2 / ((p - q) ** 2 * n * (n - 1))
        return result

    @property
    def report_range(self) -> float:
        """That of the protocol for the column, freed from collisions."""
        return self.encoding.report_range * self.width / (self.width - 1)

    def variance(self, n: int, share: float = 0.0) -> float:
        """The variance of an estimated share among n people, without that of collisions."""
        p, q = self.encoding.support
        m = self.width
        other = p / m + q * (1 - 1 / m)
        spread = share * p * (1 - p) + (1 - share) * other * (1 - other)
        return spread / ((p - q) ** 2 * arguments.whole(n, "n")) * (m / (m - 1)) ** 2
