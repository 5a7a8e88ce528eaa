"""k-ary randomized response as a local protocol: one category, mostly the true one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.accounting import ResponseReport
from dither.exact import Enclosure
from dither.local.designs import design_support, inside_float, inside_probability
from dither.local.index_records import index_bytes, pack_indices, refuse_index, unpack_indices
from dither.local.protocol import Codes, Tally
from dither.local.pure import PureProtocol
from dither.local.reports import Records
from dither.local.wire_codes import RANDOMIZED_RESPONSE
from dither.randomness import Source, trials, uniform_integers


@dataclass(frozen=True)
class RandomizedResponse(PureProtocol):
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
    wire_code: ClassVar[int] = RANDOMIZED_RESPONSE

    def __post_init__(self) -> None:
        self.check_parameters()

    @property
    def event(self) -> ResponseReport:
        """For accountants: one report of one person."""
        return ResponseReport(self.exact_epsilon, self.category_count)

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities of reporting a category for those who have it and for the others."""
        return design_support(float(self.epsilon), 1, self.category_count, 0)

    @property
    def record_bytes(self) -> int:
        """The number of bytes of each record."""
        return index_bytes(self.category_count)

    @property
    def report_bits(self) -> int:
        """The number of bits that the number of a category needs."""
        return (self.category_count - 1).bit_length()

    def draw(self, codes: Codes, source: Source) -> Records:
        """A category for each code."""
        k = self.category_count
        probability = inside_float(float(self.epsilon), 1, k)
        truthful = trials(probability, self.own_probability, codes.size, source)
        others = uniform_integers(k - 1, codes.size, source).astype(np.int64)
        others += others >= codes
        return pack_indices(np.where(truthful, codes, others), k)

    def preferred(self, code: int) -> NDArray[np.int64]:
        """The reports that are e^epsilon times as likely for this category as the others: the category alone."""
        return np.array([code], dtype=np.int64)

    @property
    def point_count(self) -> int:
        """The number of possible reports."""
        return self.category_count

    def own_probability(self, bits: int) -> Enclosure:
        """Limits of the probability of reporting the truth, times ``2**bits``."""
        return inside_probability(self.exact_epsilon, 1, self.category_count, bits)

    def check(self, records: Records) -> None:
        """Refuse numbers that are no category."""
        refuse_index(unpack_indices(records, self.category_count), self.category_count)

    def new_tally(self) -> Tally:
        """How often each category was reported."""
        return np.zeros(self.category_count, dtype=np.int64)

    def tally(self, tally: Tally, records: Records) -> None:
        """Count the reported categories."""
        tally += np.bincount(unpack_indices(records, tally.size), minlength=tally.size)

    def supporters(self, tally: Tally, n: int, codes: Codes) -> NDArray[np.int64]:
        """How often these categories were reported."""
        result: NDArray[np.int64] = tally[codes]
        return result


__all__ = ["RandomizedResponse"]
