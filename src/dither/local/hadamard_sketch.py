"""The Hadamard count-mean sketch: Apple's protocol with one privatized bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument
from dither.exact import Enclosure
from dither.local.designs import inside_float, inside_probability
from dither.local.estimates import LocalFrequencies
from dither.local.hadamard import hadamard_transform, odd_parity
from dither.local.index_records import IndexProtocol
from dither.local.protocol import Codes, Floats, Tally
from dither.local.reports import Records
from dither.local.sketch import Sketch
from dither.local.wire_codes import HADAMARD_COUNT_MEAN_SKETCH
from dither.randomness import Source, trials, uniform_integers


@dataclass(frozen=True)
class HadamardCountMeanSketch(IndexProtocol[LocalFrequencies], Sketch):
    """Report a random row, a random coordinate and one bit: the sign there of the column's row of a Hadamard matrix,
    flipped with probability 1 / (e^epsilon + 1).

    *Statement.* Row and coordinate are drawn independently of the value, and the sign by randomized response: each
    report is epsilon-DP for its sender, whatever their value is replaced by (Apple Differential Privacy Team 2017).

    *Why.* Given row and coordinate, the two signs have probabilities whose ratio is e^epsilon.

    *Record.* ``2 (m r + l) + b`` for row r, coordinate l and b = 1 for the sign -1, in 1, 2, 4 or 8 bytes, the fewest
    that hold ``2 rows width - 1``. The hash is that of :mod:`dither.local.keyed_hash`; the sign in row i and coordinate
    l is -1 to the number of bits that i and l have in common.

    n times the variance of a rare category is about ``((e^epsilon + 1) / (e^epsilon - 1))^2``, to which collisions add.

    Parameters are those of :class:`CountMeanSketch`; the width is a power of two.

    >>> import dither as dp
    >>> p = dp.local.HadamardCountMeanSketch(epsilon=4)
    >>> p.record_bytes, p.report_bits, round(p.variance(1), 3)
    (4, 23, 1.077)
    >>> p.estimate(p.privatize(["a", "b", "a"]), ["a", "c"]).n
    3
    """

    epsilon: float
    categories: Any = None
    rows: int = 1024
    width: int = 4096
    key: bytes = bytes(16)
    wire_code: ClassVar[int] = HADAMARD_COUNT_MEAN_SKETCH

    def __post_init__(self) -> None:
        self.check_sketch()
        if self.width & (self.width - 1):
            raise InvalidArgument("width", "a power of two", self.width, f"pass width={1 << self.width.bit_length()}")

    @classmethod
    def apple(cls, epsilon: float = 4, categories: Any = None, *, key: bytes = bytes(16)) -> HadamardCountMeanSketch:
        """Apple's published parameters for Safari domains: 1,024 rows of 32,768 columns.

        >>> HadamardCountMeanSketch.apple().report_bits
        26
        """
        return cls(epsilon, categories, rows=1024, width=32768, key=key)

    def own_probability(self, bits: int) -> Enclosure:
        """Limits of the probability of the true sign, times ``2**bits``."""
        return inside_probability(self.exact_epsilon, 1, 2, bits)

    @property
    def report_count(self) -> int:
        """The number of possible reports, 2 R m."""
        return 2 * self.rows * self.width

    def draw(self, codes: Codes, source: Source) -> Records:
        """A row and a coordinate for each, and the sign there, or the other one."""
        cells = uniform_integers(self.rows * self.width, codes.size, source).astype(np.int64)
        rows, coordinates = np.divmod(cells, self.width)
        truthful = trials(inside_float(float(self.epsilon), 1, 2), self.own_probability, codes.size, source)
        negative = odd_parity(self.columns(codes, rows), coordinates) == truthful
        return self.pack(2 * cells + negative)

    def new_tally(self) -> Tally:
        """The sum of the signs of each row and coordinate."""
        return np.zeros((self.rows, self.width), dtype=np.int32)

    def tally(self, tally: Tally, records: Records) -> None:
        """Add up the signs."""
        reports = self.unpack(records)
        np.add.at(tally.reshape(-1), reports >> 1, 1 - 2 * (reports & 1).astype(np.int32))

    def cells(self, block: Tally) -> Tally:
        """A Hadamard transform of each row."""
        return hadamard_transform(block)

    def matched(self, sums: Floats, n: int) -> Floats:
        """The mean sign, freed from flips."""
        return sums / (n * math.tanh(float(self.epsilon) / 2))

    def pair_statistic(self, block: Tally, n: int) -> float:
        """From the squares of the sums of all coordinates but the first, whose sign is the same for all columns: two
        reports of one row and coordinate add, on average over coordinates, ``t^2 (m - 1) / m`` with t = tanh(epsilon/2)
        where their columns are the same and ``-t^2 / m`` otherwise; a single report adds 1.
        """
        strength, m = math.tanh(float(self.epsilon) / 2), self.width
        sums = block[:, 1:].astype(np.float64)
        squares = float(np.einsum("ij,ij->", sums, sums))
        single = (1 - 1 / m) * block.shape[0] / self.rows
        result: float = (squares - n * single) * m / strength**2 * self.rows**2 / (n * (n - 1))
        return result

    @property
    def report_range(self) -> float:
        """From one sign to the other, freed from flips and collisions."""
        return 2 / math.tanh(float(self.epsilon) / 2) * self.width / (self.width - 1)

    def variance(self, n: int, share: float = 0.0) -> float:
        """The variance of an estimated share among n people, without that of collisions."""
        strength, m = math.tanh(float(self.epsilon) / 2), self.width
        spread = 1 / strength**2 - share - (1 - share) / m**2
        return spread / arguments.whole(n, "n") * (m / (m - 1)) ** 2
