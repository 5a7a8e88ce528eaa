"""Many independent bits that are 1 with one exactly given probability, packed into bytes.

Eight bits together are one of 256 patterns, whose probabilities ``p^w (1 - p)^(8 - w)`` depend only on the number w of
ones. Of the 65,536 values of two random bytes, ``floor(65536 P)`` stand for each pattern of probability P, which a
table looks up; the few values that are left stand for a draw from what the floors cut off. That draw picks the number
of ones by comparing a uniform number with enclosed thresholds, in floats where their error allows and exactly
elsewhere, and then a pattern with that number of ones, uniformly. The law of the bits is exactly the given one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.exact import Enclosure
from dither.randomness.discrete import uniform_integers
from dither.randomness.source import LazyUniform, Source, Threshold, Words

Bytes = NDArray[np.uint8]

_CELLS = 1 << 16
_BITS = 128
_MAX_BITS = 1 << 14
_CHUNK = 1 << 20
_MARGIN = 2.0**-40
_ONES = np.array([bin(pattern).count("1") for pattern in range(256)])
_ONES.flags.writeable = False


@dataclass(frozen=True, eq=False)
class BiasedBits:
    """A sampler of independent bits, each 1 with the probability that ``exact`` encloses.

    >>> from dither.randomness import SeededSource
    >>> half = BiasedBits(lambda bits: (1 << bits - 1, 1 << bits - 1))
    >>> half.draw(4, SeededSource(1)).size
    4
    """

    exact: Threshold

    def __post_init__(self) -> None:
        """Build the table from which most bytes (8 bits at a time) are drawn by one lookup.

        The table has 2^16 cells. Each of the 256 patterns gets the whole number of cells below its probability, and
        what is left over (the remainder) is drawn from its own law; ``_limits`` are the cumulative probabilities of
        the number of ones there. Attributes are set by ``object.__setattr__`` because the class is frozen.
        """
        cells = self._cells()
        counts = np.array([cells[ones] for ones in _ONES])
        object.__setattr__(self, "_per_pattern", cells)
        object.__setattr__(self, "_decided", int(counts.sum()))
        table = np.zeros(_CELLS, dtype=np.uint8)
        table[: counts.sum()] = np.repeat(np.arange(256, dtype=np.uint8), counts)
        table.flags.writeable = False
        object.__setattr__(self, "_table", table)
        limits = [sum(self.remainder(ones, _BITS)) / 2 ** (_BITS + 1) for ones in range(8)]
        object.__setattr__(self, "_limits", np.array(limits))

    _per_pattern: list[int] = None  # type: ignore[assignment]
    _decided: int = 0
    _table: Bytes = None  # type: ignore[assignment]
    _limits: NDArray[np.float64] = None  # type: ignore[assignment]

    def _pattern(self, ones: int, bits: int) -> tuple[Fraction, Fraction]:
        """Enclose the probability of one pattern of 8 bits with this number of ones."""
        low, high = (Fraction(limit, 1 << bits) for limit in self.exact(bits))
        low, high = max(low, Fraction(0)), min(high, Fraction(1))
        zeros = 8 - ones
        return low**ones * (1 - high) ** zeros, high**ones * (1 - low) ** zeros

    def _cells(self) -> list[int]:
        """Return the whole number of table cells for each pattern, by its number of ones."""
        bits, result = _BITS, []
        for ones in range(9):
            while True:
                low, high = (math.floor(limit * _CELLS) for limit in self._pattern(ones, bits))
                if low == high:
                    break
                bits *= 2
                if bits > _MAX_BITS:  # a probability that its enclosures cannot separate from a multiple of 1/65536
                    raise InvalidArgument("exact", "enclosures that close in", "wide ones", "enclose it more closely")
            result.append(low)
        return result

    def remainder(self, ones: int, bits: int) -> Enclosure:
        """Enclose the probability that a draw from the remainder has at most this number of ones, times ``2**bits``."""
        left = _CELLS - self._decided
        if left == 0:
            return 1 << bits, 1 << bits
        total = [Fraction(0), Fraction(0)]
        for count in range(ones + 1):
            patterns = math.comb(8, count)
            for side, limit in enumerate(self._pattern(count, bits + 32)):
                total[side] += patterns * (limit * _CELLS - self._per_pattern[count])
        return math.floor(total[0] * (1 << bits) / left), math.ceil(total[1] * (1 << bits) / left)

    def draw(self, count: int, source: Source) -> Bytes:
        """Draw ``count`` bytes of independent bits."""
        out = np.empty(count, dtype=np.uint8)
        for start in range(0, count, _CHUNK):
            part = out[start : start + _CHUNK]
            pairs = source.words(-(-part.size // 4)).view(np.uint16)[: part.size]
            np.take(self._table, pairs, out=part, mode="wrap")
            if self._decided < _CELLS:
                left = np.flatnonzero(pairs >= self._decided)
                part[left] = self._from_remainder(source.words(left.size), source)
        return out

    def _from_remainder(self, words: Words, source: Source) -> Bytes:
        """Draw a byte for each of ``words`` from the probabilities that the table does not cover.

        The number of ones is drawn first, by comparing the word, as a fraction, to cumulative probabilities: in
        floats, and exactly (with more bits of ``source``) where that is too near. Then one of the patterns with this
        number of ones is drawn uniformly.
        """
        u = words * 2.0**-64
        ones = np.searchsorted(self._limits, u, side="right")
        near = np.zeros(u.size, dtype=np.bool_)
        for limit in self._limits.tolist():
            near |= np.abs(u - limit) <= _MARGIN
        for i in np.flatnonzero(near).tolist():
            number = LazyUniform(int(words[i]), 64, source)
            ones[i] = next((w for w in range(8) if number.below(self._at_most(w))), 8)
        out = np.empty(u.size, dtype=np.uint8)
        for w in range(9):
            chosen = np.flatnonzero(ones == w)
            patterns = np.flatnonzero(w == _ONES).astype(np.uint8)
            out[chosen] = patterns[uniform_integers(patterns.size, chosen.size, source)]
        return out

    def _at_most(self, ones: int) -> Threshold:
        """Return the function that encloses the probability of at most this number of ones in a draw from the
        remainder."""
        return lambda bits: self.remainder(ones, bits)
