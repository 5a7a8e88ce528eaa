"""Unary encoding: one bit for each category, flipped independently; RAPPOR's basic form and the optimized one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.errors import WrongType
from dither.exact import Enclosure
from dither.local.bit_records import BitProtocol, clear_padding, set_bits
from dither.local.designs import inside_probability
from dither.local.protocol import Codes
from dither.local.reports import Records
from dither.local.wire_codes import UNARY_ENCODING
from dither.randomness import Source, bernoulli, trials
from dither.randomness.biased_bits import BiasedBits


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
    wire_code: ClassVar[int] = UNARY_ENCODING

    def __post_init__(self) -> None:
        self.check_parameters()
        if not isinstance(self.optimized, bool):
            raise WrongType("optimized", "True or False", type(self.optimized).__name__, "pass True")

    def own_parameters(self) -> dict[str, object]:
        """Which of the two forms it is."""
        return {"optimized": int(self.optimized)}

    @property
    def flip_epsilon(self) -> Fraction:
        """The epsilon at which the bits of other categories are flipped: q = 1 / (e^flip_epsilon + 1)."""
        return self.exact_epsilon if self.optimized else self.exact_epsilon / 2

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities p and q of a 1."""
        q = 1 / (1 + math.exp(float(self.flip_epsilon)))
        return (0.5 if self.optimized else 1 / (1 + math.exp(-float(self.flip_epsilon)))), q

    def own_probability(self, bits: int) -> Enclosure:
        """Limits of p times ``2**bits``."""
        if self.optimized:
            return 1 << bits - 1, 1 << bits - 1
        return inside_probability(self.flip_epsilon, 1, 2, bits)

    def other_probability(self, bits: int) -> Enclosure:
        """Limits of q times ``2**bits``."""
        low, high = inside_probability(self.flip_epsilon, 1, 2, bits)
        return (1 << bits) - high, (1 << bits) - low

    def draw(self, codes: Codes, source: Source) -> Records:
        """Bits of probability q, and then the own bit in its place."""
        records = flipped_bits(self.flip_epsilon).draw(codes.size * self.record_bytes, source)
        records = records.reshape(codes.size, self.record_bytes)
        clear_padding(records, self.category_count)
        set_bits(records, codes, self.draw_own(codes.size, source))
        return records

    def draw_own(self, count: int, source: Source) -> NDArray[np.bool_]:
        """The bits of the senders' own categories."""
        if self.optimized:
            return bernoulli(0.5, count, source)
        return trials(self.support[0], self.own_probability, count, source)


def _flip_probability(flip_epsilon: Fraction, bits: int) -> Enclosure:
    low, high = inside_probability(flip_epsilon, 1, 2, bits)
    return (1 << bits) - high, (1 << bits) - low


@lru_cache(maxsize=16)
def flipped_bits(flip_epsilon: Fraction) -> BiasedBits:
    """A sampler of bits that are 1 with probability 1 / (e^flip_epsilon + 1)."""
    return BiasedBits(partial(_flip_probability, flip_epsilon))
