"""Subset selection: a random set of categories that mostly holds the true one; the smallest variance there is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidData
from dither.exact import Enclosure
from dither.local.bit_records import BitProtocol, clear_padding, ones, set_bits
from dither.local.designs import inside_float, inside_probability
from dither.local.protocol import Codes
from dither.local.reports import Records
from dither.local.wire_codes import SUBSET_SELECTION
from dither.randomness import Source, trials, uniform_integers
from dither.randomness.biased_bits import BiasedBits

_CHUNK_BYTES = 1 << 23


@dataclass(frozen=True)
class SubsetSelection(BitProtocol):
    """Report a set of w categories: with probability p one that holds the own category, otherwise one that does not.

    *Statement.* With ``p = w e^epsilon / (w e^epsilon + k - w)`` and the set otherwise uniform, each report is
    epsilon-DP for its sender, whatever their category is replaced by (Wang et al. 2016; Ye and Barg 2018). With
    ``w = round(k / (e^epsilon + 1))`` no protocol has a smaller variance in the worst case over distributions.

    *Why.* Of the C(k, w) sets, those that hold the own category all have one probability and the others have another,
    and their ratio is ``(p / C(k-1, w-1)) / ((1 - p) / C(k-1, w)) = e^epsilon``.

    *Record.* Bit c % 8 of byte c // 8 says whether the set holds category c, the lowest bit first; unused bits are 0.

    n times the variance of a rare category is ``q (1 - q) / (p - q)^2``, where
    ``q = p (w - 1) / (k - 1) + (1 - p) w / (k - 1)``.

    >>> import dither as dp
    >>> [round(dp.local.SubsetSelection(categories=128, epsilon=e).variance(1), 4) for e in (0.5, 1, 2, 4)]
    [15.4114, 3.6098, 0.6971, 0.0584]
    """

    categories: Any
    epsilon: float
    wire_code: ClassVar[int] = SUBSET_SELECTION

    def __post_init__(self) -> None:
        self.check_parameters()

    @property
    def subset_size(self) -> int:
        """The number w of categories in a report."""
        return max(1, round(self.category_count / (math.exp(float(self.epsilon)) + 1)))

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities that a report holds its sender's category, and that it holds another."""
        k, w = self.category_count, self.subset_size
        p = inside_float(float(self.epsilon), w, k)
        return p, (p * (w - 1) + (1 - p) * w) / (k - 1)

    def own_probability(self, bits: int) -> Enclosure:
        """Limits of p times ``2**bits``."""
        return inside_probability(self.exact_epsilon, self.subset_size, self.category_count, bits)

    def draw(self, codes: Codes, source: Source) -> Records:
        """Whether the own category is in the set, and then the rest of the set, uniformly."""
        held = trials(self.support[0], self.own_probability, codes.size, source)
        records = np.empty((codes.size, self.record_bytes), dtype=np.uint8)
        step = max(1, _CHUNK_BYTES // self.record_bytes)
        for start in range(0, codes.size, step):
            chunk = slice(start, start + step)
            self._draw_others(records[chunk], codes[chunk], self.subset_size - held[chunk], source)
        set_bits(records, codes, held)
        return records

    def _draw_others(self, records: Records, codes: Codes, sizes: NDArray[np.int64], source: Source) -> None:
        """Uniform sets of these sizes among the categories other than the own one.

        Independent bits are a uniform set of random size; adding members drawn uniformly from those outside, or
        removing members drawn uniformly from those inside, leaves it uniform until the size is right.
        """
        k = self.category_count
        records[...] = _even_bits(self.subset_size, k).draw(records.size, source).reshape(records.shape)
        clear_padding(records, k)
        set_bits(records, codes, np.zeros(codes.size, dtype=np.bool_))
        missing = sizes - ones(records)
        flat, width = records.reshape(-1), records.shape[1]
        open_rows = np.flatnonzero(missing)
        left, own = np.abs(missing[open_rows]), codes[open_rows]
        remove = missing[open_rows] < 0
        while open_rows.size:
            picks = uniform_integers(k - 1, open_rows.size, source).astype(np.int64)
            picks += picks >= own
            places, masks = open_rows * width + (picks >> 3), (1 << (picks & 7)).astype(np.uint8)
            content = flat[places]
            flips = ((content & masks) != 0) == remove
            flat[places] = np.where(flips, content ^ masks, content)
            left -= flips
            still = np.flatnonzero(left)
            if still.size < left.size:
                open_rows, left, own, remove = open_rows[still], left[still], own[still], remove[still]

    def check(self, records: Records) -> None:
        """Refuse bits after the last category and sets of another size."""
        super().check(records)
        if bool(np.any(ones(records) != self.subset_size)):
            raise InvalidData(
                "reports", f"sets of {self.subset_size} categories", "another size", "refuse this client's reports"
            )


def _share(part: Fraction, bits: int) -> Enclosure:
    scaled = part.numerator << bits
    return scaled // part.denominator, -(-scaled // part.denominator)


@lru_cache(maxsize=16)
def _even_bits(size: int, count: int) -> BiasedBits:
    """Bits that are 1 with about probability size / count, in steps of 1/256."""
    steps = min(max(round(256 * size / count), 1), 255)
    return BiasedBits(partial(_share, Fraction(steps, 256)))
