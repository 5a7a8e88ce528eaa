"""Protocols that report a set of categories which is likely to contain the sender's.

Sets of one category are k-ary randomized response. Sets of a fixed larger size are subset selection, whose variance is
the smallest possible. A bit for each category, flipped independently, is unary encoding: basic RAPPOR, or optimized.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.accounting import ResponseReport
from dither.errors import InvalidData, WrongType
from dither.exact import Enclosure
from dither.local.bases import (
    BitProtocol,
    IndexProtocol,
    PureProtocol,
    clear_padding,
    design_support,
    inside_float,
    inside_probability,
    ones,
    set_bits,
)
from dither.local.protocol import Codes
from dither.local.reports import WIRE_CODES, LocalFrequencies, Records
from dither.randomness import Source, bernoulli, trials, uniform_integers
from dither.randomness.biased_bits import BiasedBits
from dither.randomness.discrete import enclose_rational


@dataclass(frozen=True)
class RandomizedResponse(IndexProtocol[LocalFrequencies], PureProtocol):
    """Report one's category with probability e^epsilon / (e^epsilon + k - 1), otherwise one of the others at random.

    *Statement.* Each report is epsilon-DP for its sender, whatever their category is replaced by (Warner 1965; Kairouz,
    Oh and Viswanath 2014). It is the best protocol where e^epsilon is at least about k / 2.

    *Why.* A report has one of two probabilities, whose ratio is e^epsilon.

    *Record.* The number of the reported category, in 1, 2, 4 or 8 bytes, the fewest that hold k - 1.

    n times the variance of a rare category is ``(k - 2 + e^epsilon) / (e^epsilon - 1)^2``.
    :class:`dither.RandomizedResponse` is the same mechanism with categories in and categories out.

    >>> import dither as dp
    >>> p = dp.local.RandomizedResponse(categories=128, epsilon=1)
    >>> round(p.variance(1), 1)
    43.6
    """

    categories: Any
    epsilon: float
    wire_code: ClassVar[int] = WIRE_CODES["RandomizedResponse"]

    @property
    def event(self) -> ResponseReport:
        """Return the event for accountants, one report of one person."""
        return ResponseReport(self.exact_epsilon, self.category_count)

    @property
    def support(self) -> tuple[float, float]:
        """Return (p, q): the probabilities of reporting a category for people who have it, and for all others."""
        return design_support(float(self.epsilon), 1, self.category_count, 0)

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw one report for each code: the code itself with probability p, otherwise another category, uniformly."""
        k = self.category_count
        probability = inside_float(float(self.epsilon), 1, k)
        truthful = trials(probability, self.own_probability, codes.size, source)
        others = uniform_integers(k - 1, codes.size, source).astype(np.int64)
        others += others >= codes
        return self.pack(np.where(truthful, codes, others))

    def preferred(self, code: int) -> NDArray[np.int64]:
        """Return the reports that a category prefers: only itself, which is e^epsilon times as likely as any other."""
        return np.array([code], dtype=np.int64)

    @property
    def report_count(self) -> int:
        """Return the number of possible reports, which are the categories."""
        return self.category_count

    def own_probability(self, bits: int) -> Enclosure:
        """Enclose the probability of the truth, ``e^epsilon / (e^epsilon + k - 1)``, in units of ``2**-bits``."""
        return inside_probability(self.exact_epsilon, 1, self.category_count, bits)


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
    wire_code: ClassVar[int] = WIRE_CODES["SubsetSelection"]

    @property
    def subset_size(self) -> int:
        """Return ``w = round(k / (e^epsilon + 1))``, at least 1: the number of categories in a report.

        It has the smallest variance in the worst case over distributions (Ye and Barg 2018).
        """
        return max(1, round(self.category_count / (math.exp(float(self.epsilon)) + 1)))

    @property
    def support(self) -> tuple[float, float]:
        """Return the probabilities that a report contains its sender's category, and any other category."""
        k, w = self.category_count, self.subset_size
        p = inside_float(float(self.epsilon), w, k)
        return p, (p * (w - 1) + (1 - p) * w) / (k - 1)

    def own_probability(self, bits: int) -> Enclosure:
        """Enclose p, the probability that the set contains the sender's category, in units of ``2**-bits``.

        With sets of w of k categories it is ``w e^epsilon / (w e^epsilon + k - w)``.
        """
        return inside_probability(self.exact_epsilon, self.subset_size, self.category_count, bits)

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw a set for each code: with probability p it contains the code; the rest of it is uniform."""
        held = trials(self.support[0], self.own_probability, codes.size, source)
        records = np.empty((codes.size, self.record_bytes), dtype=np.uint8)
        step = max(1, _CHUNK_BYTES // self.record_bytes)
        for start in range(0, codes.size, step):
            chunk = slice(start, start + step)
            self._draw_others(records[chunk], codes[chunk], self.subset_size - held[chunk], source)
        set_bits(records, codes, held)
        return records

    def _draw_others(self, records: Records, codes: Codes, sizes: NDArray[np.int64], source: Source) -> None:
        """Fill ``records`` with uniform sets of these ``sizes`` among the categories other than the sender's.

        ``codes`` are the senders' own categories, which stay out of the sets, and ``source`` is the randomness.
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
            indices, masks = open_rows * width + (picks >> 3), (1 << (picks & 7)).astype(np.uint8)
            content = flat[indices]
            flips = ((content & masks) != 0) == remove
            flat[indices] = np.where(flips, content ^ masks, content)
            left -= flips
            still = np.flatnonzero(left)
            if still.size < left.size:
                open_rows, left, own, remove = open_rows[still], left[still], own[still], remove[still]

    def check_records(self, records: Records) -> None:
        """Refuse bits after the last category and sets of another size."""
        super().check_records(records)
        if bool(np.any(ones(records) != self.subset_size)):
            raise InvalidData(
                "reports",
                f"sets of {self.subset_size} categories",
                "sets of a different size",
                "refuse this client's reports",
            )


@lru_cache(maxsize=16)
def _even_bits(size: int, count: int) -> BiasedBits:
    """Return a sampler of independent bits that are 1 with probability ``size / count``, rounded to 1/256.

    The probability only decides how many bits :meth:`SubsetSelection._draw_others` has to correct.
    """
    steps = min(max(round(256 * size / count), 1), 255)
    return BiasedBits(partial(enclose_rational, Fraction(steps, 256)))


@dataclass(frozen=True)
class UnaryEncoding(BitProtocol):
    """Report one bit for each category: the own one is 1 with probability p, every other with probability q.

    *Statement.* Each report is epsilon-DP for its sender, whatever their category is replaced by, if
    ``p (1 - q) / (q (1 - p)) <= e^epsilon``. The symmetric form has p = e^(epsilon/2) / (e^(epsilon/2) + 1) and q = 1 -
    p (basic RAPPOR: Erlingsson, Pihur and Korolova 2014); the optimized form p = 1/2 and q = 1 / (e^epsilon + 1) (Wang,
    Blocki, Li and Jha 2017).

    *Why.* Two categories change two bits. The bits are independent, so the worst ratio is the product of p / q, for the
    bit of one, and (1 - q) / (1 - p), for that of the other: e^epsilon in both forms.

    *Record.* Bit c % 8 of byte c // 8 is the bit of category c, the lowest bit first; unused bits are 0.

    n times the variance of a rare category is ``4 e^epsilon / (e^epsilon - 1)^2`` optimized and
    ``e^(epsilon/2) / (e^(epsilon/2) - 1)^2`` symmetric.

    >>> import dither as dp
    >>> round(dp.local.UnaryEncoding(categories=128, epsilon=1).variance(1), 3)
    3.683
    >>> round(dp.local.UnaryEncoding(categories=128, epsilon=1, optimized=False).variance(1), 3)
    3.918
    """

    categories: Any
    epsilon: float
    optimized: bool = True
    wire_code: ClassVar[int] = WIRE_CODES["UnaryEncoding"]

    def __post_init__(self) -> None:
        self.check_parameters()
        if not isinstance(self.optimized, bool):
            raise WrongType("optimized", "True or False", type(self.optimized).__name__, "pass True")

    def own_parameters(self) -> dict[str, object]:
        """Return whether the encoding is the optimized or the symmetric one."""
        return {"optimized": int(self.optimized)}

    @property
    def flip_epsilon(self) -> Fraction:
        """Return the epsilon at which the bits of other categories are flipped: q = 1 / (e^flip_epsilon + 1)."""
        return self.exact_epsilon if self.optimized else self.exact_epsilon / 2

    @property
    def support(self) -> tuple[float, float]:
        """Return the probabilities p and q of a 1 for the sender's category, and for any other."""
        q = 1 / (1 + math.exp(float(self.flip_epsilon)))
        return (0.5 if self.optimized else 1 / (1 + math.exp(-float(self.flip_epsilon)))), q

    def own_probability(self, bits: int) -> Enclosure:
        """Enclose p, the probability of a 1 for the sender's category, in units of ``2**-bits``.

        It is 1/2 in the optimized form and ``e^(epsilon/2) / (e^(epsilon/2) + 1)`` in the symmetric one.
        """
        if self.optimized:
            return 1 << bits - 1, 1 << bits - 1
        return inside_probability(self.flip_epsilon, 1, 2, bits)

    def other_probability(self, bits: int) -> Enclosure:
        """Enclose q = 1 / (e^flip_epsilon + 1) in whole multiples of ``2**-bits``."""
        return _flip_probability(self.flip_epsilon, bits)

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw one bit for each category and code: 1 with probability p for the code itself, and q for all others."""
        records = flipped_bits(self.flip_epsilon).draw(codes.size * self.record_bytes, source)
        records = records.reshape(codes.size, self.record_bytes)
        clear_padding(records, self.category_count)
        set_bits(records, codes, self.draw_own(codes.size, source))
        return records

    def draw_own(self, count: int, source: Source) -> NDArray[np.bool_]:
        """Draw the bits of ``count`` senders' own categories, which are 1 with probability p."""
        if self.optimized:
            return bernoulli(0.5, count, source)
        return trials(self.support[0], self.own_probability, count, source)


def _flip_probability(flip_epsilon: Fraction, bits: int) -> Enclosure:
    """Enclose the probability of a flip, 1 / (e^flip_epsilon + 1), in whole multiples of ``2**-bits``."""
    low, high = inside_probability(flip_epsilon, 1, 2, bits)
    return (1 << bits) - high, (1 << bits) - low


@lru_cache(maxsize=16)
def flipped_bits(flip_epsilon: Fraction) -> BiasedBits:
    """Return a sampler of bits that are 1 with probability 1 / (e^flip_epsilon + 1)."""
    return BiasedBits(partial(_flip_probability, flip_epsilon))
