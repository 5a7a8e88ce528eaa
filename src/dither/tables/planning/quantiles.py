"""Quantiles of one value in one group: the middle one first, the others on its two sides.

A choice among bins by the exponential mechanism, the score being by how many values a bin misses the rank asked for.
The values are then parted at the place chosen, and the quantiles below it are looked for among those below, the others
among those above. A value is on one side only, so all choices of a level cost as much as one of them: m quantiles cost
``levels`` choices, the whole part of ``log2(m) + 1``, instead of m (Kaplan, Schnapp and Stemmer 2022).

*Values in the bin chosen* go to both sides, or quantiles that fall in the same bin could not be found. Bins are cut
into :data:`PARTS` parts that hold equal shares of their values; of a bin with c values, cut in the middle of its j-th
part, ``c (2j + 1) / (2 PARTS)``, rounded down, go below. One value more makes one of the sides larger by one, never
both: parting keeps neighbours neighbours.

*The score* of a part, in units of 1/PARTS value, is ``den * rank - num * total``, where the rank asked for is the share
num/den of all. A value more changes it by ``PARTS (den - num)`` or ``- PARTS num``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.mechanisms import Exponential

PARTS = 4
_FINEST = 10**6  # ranks, which are multiplied by the denominator, must be whole numbers of 64 bits

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Rank:
    """A quantile that is chosen, and those that are then looked for below and above it."""

    share: Fraction
    """The quantile, among all values."""
    at: Fraction
    """The quantile, among the values that are left to look at."""
    mechanism: Exponential
    below: Rank | None = None
    above: Rank | None = None

    @property
    def parts(self) -> int:
        """Into how many parts bins are cut: if nothing is looked for on its sides, they need not be."""
        return PARTS if self.below or self.above else 1

    def __iter__(self) -> Iterator[Rank]:
        yield self
        for side in (self.below, self.above):
            yield from side or ()


def levels(shares: Sequence[Fraction]) -> int:
    """How many choices one value takes part in.

    >>> [levels([Fraction(i, 8) for i in range(many)]) for many in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 3, 3, 4]
    """
    return len(shares).bit_length()


def ranks(shares: Sequence[Fraction], epsilon: float, limit: int) -> Rank:
    """The order in which these quantiles, increasing, are chosen; each for ``epsilon``, a person having ``limit``
    values."""
    result = _ranks(shares, Fraction(0), Fraction(1), epsilon, limit)
    assert result is not None
    return result


def _ranks(shares: Sequence[Fraction], low: Fraction, high: Fraction, epsilon: float, limit: int) -> Rank | None:
    if not shares:
        return None
    middle = len(shares) // 2
    share = shares[middle]
    at = ((share - low) / (high - low)).limit_denominator(_FINEST)
    parts = PARTS if len(shares) > 1 else 1
    return Rank(
        share,
        at,
        Exponential(limit * parts * max(at.numerator, at.denominator - at.numerator), epsilon),
        _ranks(shares[:middle], low, share, epsilon, limit),
        _ranks(shares[middle + 1 :], share, high, epsilon, limit),
    )


def choose(rank: Rank, counts: Counts, first: int = 0) -> dict[Fraction, int]:
    """The bin of each quantile, of bins that hold so many values; ``first`` is the number of the first bin."""
    parts, at = rank.parts, rank.at
    fine = np.repeat(counts, parts)
    up_to = np.cumsum(fine)
    wanted = at.numerator * int(up_to[-1])
    misses = np.maximum(0, np.maximum(at.denominator * (up_to - fine) - wanted, wanted - at.denominator * up_to))
    bin, part = divmod(int(rank.mechanism.select_index(-misses)), parts)
    result = {rank.share: first + bin}
    lower = int(counts[bin]) * (2 * part + 1) // (2 * parts)
    if rank.below is not None:
        result |= choose(rank.below, np.append(counts[:bin], lower), first)
    if rank.above is not None:
        result |= choose(rank.above, np.insert(counts[bin + 1 :], 0, counts[bin] - lower), first + bin)
    return result


def errors(rank: Rank, bins: int, confidence: float = 0.95) -> dict[Fraction, float]:
    """By how many values the rank of each quantile may be off, with this confidence each, values that share a bin
    aside: by the error of its own choice, and by that of the choice before it as far as it moved what was looked at."""
    return _errors(rank, bins, 1 - (1 - confidence) / _depth(rank), 0.0)


def _depth(rank: Rank | None) -> int:
    return 0 if rank is None else 1 + max(_depth(rank.below), _depth(rank.above))


def _errors(rank: Rank, bins: int, sure: float, before: float) -> dict[Fraction, float]:
    own = before + rank.mechanism.error(bins * rank.parts, sure) / (rank.parts * rank.at.denominator)
    result = {rank.share: own}
    if rank.below is not None:
        result |= _errors(rank.below, bins, sure, own * float(rank.below.at))
    if rank.above is not None:
        result |= _errors(rank.above, bins, sure, own * float(1 - rank.above.at))
    return result


__all__ = ["PARTS", "Rank", "choose", "errors", "levels", "ranks"]
