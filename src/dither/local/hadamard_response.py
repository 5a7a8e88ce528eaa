"""Hadamard response: a client reports a column of a Hadamard matrix, mostly one with sign +1 in its category's row.

The entry in row i and column j of the Hadamard matrix is ``(-1)^b``, where b is the number of ones in ``i & j``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.exact import Enclosure
from dither.local.bases import IndexProtocol, inside_float, inside_probability
from dither.local.protocol import Codes, Floats, FrequencyProtocol, Tally
from dither.local.reports import WIRE_CODES, LocalFrequencies, Records
from dither.randomness import Source, trials, uniform_integers


def odd_parity(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where the entry of the Hadamard matrix is -1: where ``row & column`` has an odd number of ones."""
    result: NDArray[np.bool_] = (np.bitwise_count(rows & columns) & 1).astype(np.bool_)
    return result


def hadamard_transform(values: NDArray[Any]) -> NDArray[Any]:
    """Return the Hadamard transform of ``values`` along the last axis, whose length is a power of two.

    It is the product with the Hadamard matrix, computed by log2(length) rounds of sums and differences.

    Whole numbers must be of a type that holds the sum of the absolute values along the axis.
    """
    size = values.shape[-1]
    result = np.array(values.reshape(-1, size).T, order="C")  # the axis first, so that all steps read whole runs
    spare, half = np.empty((size // 2, result.shape[1]), dtype=result.dtype), 1
    while half < size:
        pairs = result.reshape(size // (2 * half), 2, half, -1)
        low, high, difference = pairs[:, 0], pairs[:, 1], spare.reshape(size // (2 * half), half, -1)
        np.subtract(low, high, out=difference)
        low += high
        high[...] = difference
        half *= 2
    return np.ascontiguousarray(result.T).reshape(values.shape)


@dataclass(frozen=True)
class HadamardResponse(IndexProtocol[LocalFrequencies], FrequencyProtocol):
    """Report one of B b points: with probability p one of the b/2 points that the category prefers, otherwise another.

    *Statement.* Category c belongs to block ``i = c % B`` and row ``j = c // B + 1`` of the Hadamard matrix of
    order b, a power of two; it prefers the points of its block in whose columns row j is +1. With
    ``p = s e^epsilon / (s e^epsilon + K - s)``, s = b/2 and K = B b, each report is epsilon-DP for its sender, whatever
    their category is replaced by (Acharya, Sun and Zhang 2019).

    *Why.* Every point has one of two probabilities, whose ratio is e^epsilon.

    The difference between the reports in the preferred half of the block and in the other half has mean
    ``n f s (e^epsilon - 1) / (s e^epsilon + K - s)``: reports from other categories cancel. Its variance depends on how
    many people are in the block. :meth:`variance` is the mean over categories where all other people are spread evenly
    over the other categories; a standard error is for the people who are there. Encoding and decoding are fast; the
    variance is larger than that of the other protocols where epsilon is large.

    *Record.* ``b i + y`` for block i and column y, in 1, 2, 4 or 8 bytes, the fewest that hold B b - 1.

    >>> import dither as dp
    >>> p = dp.local.HadamardResponse(categories=1024, epsilon=1)
    >>> p.blocks, p.order, round(p.variance(1), 3)
    (1, 2048, 4.683)
    """

    categories: Any
    epsilon: float
    wire_code: ClassVar[int] = WIRE_CODES["HadamardResponse"]

    @property
    def blocks(self) -> int:
        """Return the number B of blocks, the power of two with the smallest variance."""
        return _best_blocks(self.category_count, float(self.epsilon))

    @property
    def order(self) -> int:
        """Return the order b of the Hadamard matrix of a block."""
        return _order(self.category_count, self.blocks)

    @property
    def report_count(self) -> int:
        """Return the number K of points, each of which is a report."""
        return self.blocks * self.order

    def own_probability(self, bits: int) -> Enclosure:
        """Enclose p, the probability of a point that the sender prefers, in whole multiples of ``2**-bits``.

        A category prefers one of the 2 B halves of blocks, so ``p = e^epsilon / (e^epsilon + 2 B - 1)``.
        """
        return inside_probability(self.exact_epsilon, 1, 2 * self.blocks, bits)

    @property
    def probability(self) -> float:
        """Return the probability p of a point that the sender's category prefers."""
        return inside_float(float(self.epsilon), 1, 2 * self.blocks)

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw one report for each code: a preferred point with probability p, otherwise one of the others, uniformly.

        The others are the other half of the category's block and both halves of all other blocks.
        """
        order, blocks = self.order, self.blocks
        row, block = np.divmod(codes, blocks)
        row += 1
        held = trials(self.probability, self.own_probability, codes.size, source)
        column = uniform_integers(order, codes.size, source).astype(np.int64)
        # of the 2 B halves, those not preferred are equally likely; half 0 is the other half of the same block
        half = uniform_integers(2 * blocks - 1, codes.size, source).astype(np.int64)
        same_block = held | (half == 0)
        # a column on the wrong side goes to the right one by a bit of the row, which is one to one
        wrong = odd_parity(row, column) == held
        column ^= np.where(same_block & wrong, row & -row, 0)
        other = np.where(half > 0, (half - 1) // 2, 0)
        other += other >= block
        return self.pack(np.where(same_block, block, other) * order + column)

    def preferred(self, code: int) -> NDArray[np.int64]:
        """Return the points that a category prefers: each is e^epsilon times as likely for it as any other point.

        They are the columns of its block in which its row of the Hadamard matrix is +1.
        """
        row, block = divmod(code, self.blocks)
        columns = np.arange(self.order)
        return block * self.order + columns[~odd_parity(np.array(row + 1), columns)]

    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Return unbiased shares of the categories, and their standard errors.

        ``tally`` holds the added-up reports of ``n`` people, and ``codes`` the numbers of the categories asked for. A
        share is the difference between the two halves of the category's block, which a Hadamard transform computes for
        all rows, divided by its mean for a share of 1.
        """
        transformed = hadamard_transform(tally.reshape(self.blocks, self.order))
        row, block = np.divmod(codes, self.blocks)
        strength = self._strength
        shares = transformed[block, row + 1] / (n * strength)
        likely = np.clip(shares, 0.0, 1.0)
        same, other = self._in_block
        # the mean of the squares of what each report adds: the share of reports in the block, within what can be
        squares = np.clip(transformed[block, 0] / n, likely * same + (1 - likely) * other, same)
        return shares, np.sqrt((squares - likely * strength**2) / n) / strength

    @property
    def report_range(self) -> float:
        """Return ``2 / strength`` (:attr:`_strength`): the difference between the contributions of a report in the
        preferred half of the block and in the other half."""
        return 2 / self._strength

    @property
    def variance_slope(self) -> float:
        """Return the derivative of n times the variance with respect to the share, at least 1.

        :meth:`shares` takes the variance from the number of reports in the block, to which other categories of the
        block contribute; the lower limit of 1 covers what that number says of a single report.
        """
        return max(1.0, super().variance_slope)

    @property
    def _in_block(self) -> tuple[float, float]:
        """Return ``(same, other)``: the probabilities that a report lies in a block, for people whose category belongs
        to that block and for all others."""
        p, halves = self.probability, 2 * self.blocks - 1
        return p + (1 - p) / halves, 2 * (1 - p) / halves if halves > 1 else 0.0

    @property
    def _strength(self) -> float:
        """Return ``p - (1 - p) / (2 B - 1)``, a sender's mean contribution to the difference of its block's halves.

        p is the probability of the preferred half, and each of the other 2 B - 1 halves has the same probability.
        """
        return self.probability - (1 - self.probability) / (2 * self.blocks - 1)

    def variance(self, n: int, share: float = 0.0) -> float:
        """Return the variance of an estimated share among n people, averaged over categories.

        All people without the category are spread evenly over the other categories. Categories differ a little where
        blocks are not equally large.
        """
        strength, (same, other) = self._strength, self._in_block
        in_block = share + (1 - share) * self._share_in_block
        squares = in_block * same + (1 - in_block) * other
        return (squares - share * strength**2) / (strength**2 * arguments.whole(n, "n"))

    @property
    def _share_in_block(self) -> float:
        """Return the share of other categories that are in the block of a category, averaged over categories."""
        k = self.category_count
        size, larger = divmod(k, self.blocks)
        pairs = larger * (size + 1) * size + (self.blocks - larger) * size * (size - 1)
        return pairs / (k * (k - 1))


def _order(k: int, blocks: int) -> int:
    """Return the order b of the Hadamard matrices: the smallest power of two with ``blocks (b - 1) >= k``.

    Row 0 of a Hadamard matrix is constant, so each of the ``blocks`` matrices serves b - 1 of the k categories.
    """
    return 1 << max(1, (-(-k // blocks)).bit_length())


@lru_cache(maxsize=64)
def _best_blocks(k: int, epsilon: float) -> int:
    """Return the number of blocks, a power of two, at which the variance of an estimated share is smallest."""
    growth = math.exp(epsilon)

    def variance(blocks: int) -> float:
        """Return a number proportional to the variance of a rare category's share for B = ``blocks`` blocks.

        It is ``((e^eps + 1)/B + 2 (1 - 1/B)) (e^eps + 2 B - 1)``, in the limit of many categories: the mean square of
        a report's contribution over the square of its mean, without constant factors.
        """
        spread = (growth + 1) / blocks + 2 * (1 - 1 / blocks)
        return spread * (growth + 2 * blocks - 1)

    return min((1 << i for i in range(max(1, (k - 1).bit_length()))), key=variance)
