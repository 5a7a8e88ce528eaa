"""What a server says: estimated shares of the categories, with their errors."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument, message

Floats = NDArray[np.float64]


def normal_quantile(confidence: float) -> float:
    """Half the width of a normal interval, in standard errors.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return NormalDist().inv_cdf((1 + arguments.confidence(confidence)) / 2)


@dataclass(frozen=True, eq=False)
class LocalFrequencies(ComparedByValue):
    """Estimated shares of categories among n people who reported; each is unbiased, so a small one may be negative.

    >>> import dither as dp
    >>> p = dp.local.SubsetSelection(categories=["yes", "no"], epsilon=20)
    >>> estimate = p.estimate(p.privatize(["yes"] * 3 + ["no"]))
    >>> round(estimate["yes"], 3), estimate.counts.round(3)
    (0.75, array([3., 1.]))
    """

    categories: tuple[Any, ...]
    shares: Floats
    standard_error: Floats
    n: int
    seeded: bool = False
    """Whether a report was drawn from a seeded source, which is not private."""

    @property
    def counts(self) -> Floats:
        """Estimated numbers of people."""
        return self.shares * self.n

    def error(self, confidence: float = 0.95) -> Floats:
        """Half-widths of normal confidence intervals for the shares among the people who reported."""
        return self.standard_error * normal_quantile(confidence)

    def __getitem__(self, category: Any) -> float:
        """The estimated share of one category."""
        if category not in self.categories:
            raise InvalidArgument(
                message("category", "one that was estimated", "another", "ask the server to estimate it")
            )
        return float(self.shares[self.categories.index(category)])

    def dicts(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """One dictionary for each category: its name, its share and the ± of the share.

        >>> import dither as dp
        >>> p = dp.local.HadamardResponse(categories=2, epsilon=20)
        >>> [sorted(row) for row in p.estimate(p.privatize([0, 1])).dicts()]
        [['category', 'error', 'share'], ['category', 'error', 'share']]
        """
        rows = zip(self.categories, self.shares.tolist(), self.error(confidence).tolist(), strict=True)
        return [{"category": category, "share": share, "error": error} for category, share, error in rows]

    def consistent(self) -> LocalFrequencies:
        """The nearest shares that are at least 0 and add up to 1, for all categories: no longer unbiased, and closer
        to the truth where most categories are rare (Wang et al. 2020, "norm-sub").

        >>> import dither as dp
        >>> p = dp.local.SubsetSelection(categories=4, epsilon=1)
        >>> bool(abs(p.estimate(p.privatize([0, 1, 2, 3] * 10)).consistent().shares.sum() - 1) < 1e-9)
        True
        """
        if not self.shares.size:
            raise InvalidArgument(message("categories", "all of them", "none", "estimate all categories first"))
        ordered = np.sort(self.shares)[::-1]
        excess = (np.cumsum(ordered) - 1) / np.arange(1, ordered.size + 1)
        shift = excess[int(np.flatnonzero(ordered > excess)[-1])]
        shares = np.maximum(self.shares - shift, 0.0)
        return LocalFrequencies(self.categories, shares, self.standard_error, self.n, self.seeded)


__all__ = ["LocalFrequencies", "normal_quantile"]
