"""k-ary randomized response as a local protocol: one category, mostly the true one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.accounting import ResponseReport
from dither.exact import Enclosure
from dither.local.designs import design_support, inside_float, inside_probability
from dither.local.estimates import LocalFrequencies
from dither.local.index_records import IndexProtocol
from dither.local.protocol import Codes
from dither.local.pure import PureProtocol
from dither.local.reports import Records
from dither.local.wire_codes import RANDOMIZED_RESPONSE
from dither.randomness import Source, trials, uniform_integers


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

    def draw(self, codes: Codes, source: Source) -> Records:
        """A category for each code."""
        k = self.category_count
        probability = inside_float(float(self.epsilon), 1, k)
        truthful = trials(probability, self.own_probability, codes.size, source)
        others = uniform_integers(k - 1, codes.size, source).astype(np.int64)
        others += others >= codes
        return self.pack(np.where(truthful, codes, others))

    def preferred(self, code: int) -> NDArray[np.int64]:
        """The reports that are e^epsilon times as likely for this category as the others: the category alone."""
        return np.array([code], dtype=np.int64)

    @property
    def report_count(self) -> int:
        """The number of possible reports."""
        return self.category_count

    def own_probability(self, bits: int) -> Enclosure:
        """Limits of the probability of reporting the truth, times ``2**bits``."""
        return inside_probability(self.exact_epsilon, 1, self.category_count, bits)
