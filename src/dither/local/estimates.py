"""What a server says: estimated shares of the categories, with their errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument
from dither.inference.laws import normal_quantile
from dither.present.text import printable, table, with_error

Floats = NDArray[np.float64]


_MOST_SHOWN = 20


def reports_line(n: int, seeded: bool) -> str:
    """Return how many reports an estimate is from, for a terminal."""
    return f"{n:,} reports; ± with 95 % confidence" + ("; from a seeded source: not private" if seeded else "")


def half_width(standard_error: Floats | float, slope: Floats | float, step: Floats | float, confidence: float) -> Any:
    """Return half the width of a score interval with a continuity correction, around an unbiased estimate from reports.

    A normal interval takes the estimated variance v for the true one and the estimate for continuous. Neither holds
    where few reports tell: none of them may support a category that some people have. Here every value f is kept that
    is no farther from the estimate than ``h + z sqrt(variance at f + h)``. The variance changes with f by at most
    ``slope`` (Wilson 1927), and h is half of ``step``, what one report can change the estimate by. Solved for f, with
    ``c = z^2 slope / 2``, the distance is ``h + c + sqrt(c^2 + z^2 (v + h slope))``. Slope and step fall as 1/n, so
    that what is left with many reports is the normal interval.
    """
    z, h = normal_quantile(confidence), step / 2
    c = z * z * slope / 2
    return h + c + np.sqrt(c * c + z * z * (np.square(standard_error) + h * slope))


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
    slope: float = 0.0
    """By how much the variance of a share changes with the share."""
    step: float = 0.0
    """What one report can change a share by."""

    @property
    def counts(self) -> Floats:
        """Return the estimated numbers of people."""
        return self.shares * self.n

    def error(self, confidence: float = 0.95) -> Floats:
        """Return half-widths of confidence intervals for the shares among the people who reported.

        They are normal ones with many reports, and wider with few (:func:`half_width`).
        """
        widths: Floats = half_width(self.standard_error, self.slope, self.step, confidence)
        return widths

    def __getitem__(self, category: Any) -> float:
        """Return the estimated share of one category."""
        if category not in self.categories:
            raise InvalidArgument(
                "category", "one that was estimated", "one that was not", "ask the server to estimate it"
            )
        return float(self.shares[self.categories.index(category)])

    def __str__(self) -> str:
        """Format a table: the share of each category with its ±, the most frequent first.

        >>> shares = np.array([0.25, 0.75])
        >>> print(LocalFrequencies(("no", "yes"), shares, np.array([0.021, 0.021]), 400))
        category  share     ±
        ────────  ─────  ────
        yes        0.75  0.04
        no         0.25  0.04
        400 reports; ± with 95 % confidence
        """
        order = np.argsort(-self.shares, kind="stable")[:_MOST_SHOWN].tolist()
        errors = self.error().tolist()
        cells = [[printable(str(self.categories[i])), *with_error(float(self.shares[i]), errors[i])] for i in order]
        lines = table(["category", "share", "±"], cells, [False, True, True])
        if len(self.categories) > _MOST_SHOWN:
            lines.append(f"{len(self.categories):,} categories, the {_MOST_SHOWN} most frequent shown: dicts() has all")
        return "\n".join([*lines, reports_line(self.n, self.seeded)])

    def dicts(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Return one dictionary for each category: its name, its share and the ± of the share.

        >>> import dither as dp
        >>> p = dp.local.HadamardResponse(categories=2, epsilon=20)
        >>> [sorted(row) for row in p.estimate(p.privatize([0, 1])).dicts()]
        [['category', 'error', 'share'], ['category', 'error', 'share']]
        """
        rows = zip(self.categories, self.shares.tolist(), self.error(confidence).tolist(), strict=True)
        return [{"category": category, "share": share, "error": error} for category, share, error in rows]

    def consistent(self) -> LocalFrequencies:
        """Return the nearest shares that are at least 0 and add up to 1, for all categories: no longer unbiased, and
        closer to the truth where most categories are rare (Wang et al. 2020, "norm-sub").

        >>> import dither as dp
        >>> p = dp.local.SubsetSelection(categories=4, epsilon=1)
        >>> bool(abs(p.estimate(p.privatize([0, 1, 2, 3] * 10)).consistent().shares.sum() - 1) < 1e-9)
        True
        """
        if not self.shares.size:
            raise InvalidArgument("categories", "all of them", "none", "estimate all categories first")
        ordered = np.sort(self.shares)[::-1]
        excess = (np.cumsum(ordered) - 1) / np.arange(1, ordered.size + 1)
        shift = excess[int(np.flatnonzero(ordered > excess)[-1])]
        shares = np.maximum(self.shares - shift, 0.0)
        return replace(self, shares=shares)
