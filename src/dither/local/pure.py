"""Pure protocols: a report supports some categories, and what supports a category says how often it occurs.

A report *supports* a set of categories. In a pure protocol (Wang, Blocki, Li and Jha 2017) a category is supported with
probability p by a report from a person who has it, and with probability q by any other. If a share s of n reports
supports a category, ``(s - q) / (p - q)`` is an unbiased estimate of its share f, with variance
``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)^2)``.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.local.protocol import Codes, Floats, FrequencyProtocol, Tally


class PureProtocol(FrequencyProtocol):
    """Base of the protocols in which every category is supported with probability p or q."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The probabilities p and q that a report supports the category of its sender, and that it supports another."""

    def supporters(self, tally: Tally, n: int, codes: Codes) -> NDArray[np.int64]:
        """How many of n reports support each of these categories; here the sums are these numbers."""
        result: NDArray[np.int64] = tally[codes]
        return result

    def variance(self, n: int, share: float = 0.0) -> float:
        """The variance of an estimated share among n people: ``(f p (1 - p) + (1 - f) q (1 - q)) / (n (p - q)^2)``."""
        p, q = self.support
        people = arguments.whole(n, "n")
        return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / ((p - q) ** 2 * people)

    @property
    def report_range(self) -> float:
        """``1 / (p - q)``: a report supports a category or does not."""
        p, q = self.support
        return 1 / (p - q)

    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Unbiased shares, and standard errors at the shares that were estimated."""
        p, q = self.support
        shares = (self.supporters(tally, n, codes) / n - q) / (p - q)
        likely = np.clip(shares, 0.0, 1.0)
        return shares, np.sqrt((likely * p * (1 - p) + (1 - likely) * q * (1 - q)) / n) / (p - q)
