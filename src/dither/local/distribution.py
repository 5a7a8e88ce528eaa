"""The distribution of a number: reports near the own bin are more likely, and the collector undoes that by EM."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dither import arguments
from dither.comparison import ComparedByValue
from dither.local.estimates import half_width, reports_line
from dither.local.index_records import IndexProtocol
from dither.local.protocol import Codes, Floats, Tally, refuse_choice
from dither.local.reports import Records
from dither.local.windows import Windows, bounds_parameters, line_bounds, numbers_within
from dither.local.wire_codes import DISTRIBUTION
from dither.present.digits import significant, with_error
from dither.present.terminal import table
from dither.randomness import Source

_MAX_BINS = 4096
_ITERATIONS = 10_000
_MOST_SHOWN = 20


@dataclass(frozen=True, eq=False)
class LocalDistribution(ComparedByValue):
    """An estimated histogram: smooth shares, unbiased shares with their standard errors, and what follows.

    ``shares`` are at least 0 and add up to 1; they are close to the truth where that is smooth, and smoothing makes
    them wrong at spikes. ``unbiased`` are right on average whatever the truth, and far noisier in single bins. Only
    the unbiased ones have a standard error; so the ± of cumulative shares, which is small, is from these.

    >>> import dither as dp
    >>> p = dp.local.Distribution(bounds=(0, 100), bins=16, epsilon=2)
    >>> result = p.estimate(p.privatize([10.0] * 500 + [60.0] * 500))
    >>> bool(abs(result.shares.sum() - 1) < 1e-9), result.edges.size
    (True, 17)
    """

    edges: Floats
    shares: Floats
    unbiased: Floats
    covariance: Floats
    n: int
    contributions: tuple[Floats, Floats]
    """The least and the most that one report adds to n times each cumulative share."""
    seeded: bool = False

    @property
    def standard_error(self) -> Floats:
        """Of the unbiased shares."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def cumulative(self) -> Floats:
        """The share of people below each edge after the first, by the smooth shares."""
        return np.cumsum(self.shares)

    def __str__(self) -> str:
        """A table of at most so many lines: the share of people below an edge, with its ±.

        >>> import dither as dp
        >>> p = dp.local.Distribution(bounds=(0, 100), bins=4, epsilon=20)
        >>> print(str(p.estimate(p.privatize([10.0] * 500 + [60.0] * 500))).splitlines()[0])
        below  share of people  ±
        """
        low, high = self.cumulative_interval()
        places = sorted({round(i) for i in np.linspace(0, self.shares.size - 1, min(_MOST_SHOWN, self.shares.size))})
        lines = [
            [significant(float(self.edges[i + 1])), *with_error(float(self.cumulative[i]), float(high[i] - low[i]) / 2)]
            for i in places
        ]
        shown = table(["below", "share of people", "±"], lines, [True] * 3)
        return "\n".join([*shown, reports_line(self.n, self.seeded)])

    @property
    def mean(self) -> float:
        """The mean, with every person in the middle of their bin."""
        return float(self.shares @ ((self.edges[:-1] + self.edges[1:]) / 2))

    def cumulative_interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Confidence intervals for the shares below each edge after the first, from the unbiased shares: with many
        reports normal ones, with few of them wider (:func:`~dither.local.estimates.half_width`).
        """
        ones = np.tril(np.ones((self.unbiased.size, self.unbiased.size)))
        middle, spread = ones @ self.unbiased, np.einsum("ij,jk,ik->i", ones, self.covariance, ones)
        least, most = self.contributions
        slope, step = np.abs(least + most - 2 * middle) / self.n, (most - least) / self.n
        half = half_width(np.sqrt(np.maximum(spread, 0.0)), slope, step, confidence)
        return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)

    def quantile(self, share: float) -> float:
        """Where so large a share of people is below, by the smooth shares, linear within a bin."""
        level = arguments.rate(share, "share")
        below = np.append(0.0, self.cumulative)
        return float(np.interp(float(level), below / below[-1], self.edges))


@dataclass(frozen=True)
class Distribution(IndexProtocol[LocalDistribution]):
    """Report a number within bounds so that the collector can estimate the whole distribution.

    *Statement.* Each report is epsilon-DP for its sender, whatever number within the bounds theirs is replaced by.

    *Why.* The number's bin prefers a window of reports, each e^epsilon times as likely as any other (the square wave of
    Li et al. 2020 on a grid, :mod:`dither.local.windows`). The window's width is theirs, which makes reports of
    neighboring bins overlap the right amount. The histogram is found by expectation maximization,
    stopped early and smoothed by the weights 1/4, 1/2, 1/4.

    *Record.* An unsigned integer in the fewest of 1, 2 or 4 bytes: bin j prefers the numbers j to j + w - 1.

    Parameters
    ----------
    bounds
        The smallest and the largest number, public.
    bins
        The number of bins of equal width.
    epsilon
        The privacy loss of one report.

    Examples
    --------
    >>> import dither as dp
    >>> dp.local.Distribution(bounds=(0, 100), bins=64, epsilon=1).windows.width
    33
    """

    bounds: tuple[float, float]
    bins: int
    epsilon: float
    categories: int = field(default=0, init=False, repr=False)
    wire_code: ClassVar[int] = DISTRIBUTION

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", line_bounds(self.bounds))
        object.__setattr__(self, "bins", arguments.whole(self.bins, "bins", 2, _MAX_BINS))
        object.__setattr__(self, "categories", self.bins)
        self.check_parameters()

    @property
    def windows(self) -> Windows:
        """The windows of reports."""
        return _square_wave(self.bins, self.exact_epsilon)

    @property
    def report_count(self) -> int:
        """The number of possible reports."""
        return self.windows.total

    @property
    def edges(self) -> Floats:
        """The edges of the bins."""
        return np.linspace(float(self.bounds[0]), float(self.bounds[1]), self.bins + 1)

    def own_parameters(self) -> dict[str, object]:
        """Bounds and the width of the windows."""
        return {**bounds_parameters(self.bounds), "width": self.windows.width}

    def encode(self, values: Any, name: str = "values") -> Codes:
        """The bin of each number."""
        numbers, (low, high) = numbers_within(values, self.bounds, name), (float(bound) for bound in self.bounds)
        return np.clip(((numbers - low) / (high - low) * self.bins).astype(np.int64), 0, self.bins - 1)

    def draw(self, codes: Codes, source: Source) -> Records:
        """A number of the own window, or another."""
        return self.pack(self.windows.draw(codes, source))

    def smoothed(self, tally: Tally) -> Floats:
        """Expectation maximization until the mean log-likelihood of a report gains less than ``1e-3 e^epsilon / n``,
        the rule of Li et al., and then one pass of smoothing. Smoothing after every step, as they do, makes
        shares wrong by more than the noise where there are many people.
        """
        law, n = self.windows.law(), int(tally.sum())
        observed = tally / n
        shares = np.full(self.bins, 1 / self.bins)
        last, enough = -math.inf, 1e-3 * math.exp(min(float(self.epsilon), 20.0)) / n
        for _ in range(_ITERATIONS):
            expected = shares @ law
            shares = shares * (law @ (observed / expected))
            shares /= shares.sum()
            likelihood = float(observed @ np.log(shares @ law))
            if abs(likelihood - last) < enough:
                break
            last = likelihood
        padded = np.concatenate([shares[:1], shares, shares[-1:]])
        return padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4

    def inverted(self, tally: Tally) -> tuple[Floats, Floats]:
        """Unbiased shares that add up to 1, by least squares, and their covariance.

        The windows' law has full rank; weights are those of equal shares, so that they do not depend on the reports,
        and the estimate stays unbiased.
        """
        n, inverse = int(tally.sum()), _inverse(self.windows)
        observed = tally / n
        unbiased = inverse @ observed
        # few reports do not show how often others are sent: no report has a smaller probability than ``low``
        covariance = (inverse * np.maximum(observed, self.windows.low)) @ inverse.T - np.outer(unbiased, unbiased)
        return unbiased, covariance / max(n - 1, 1)

    def read(self, tally: Tally, n: int, categories: Any, seeded: bool) -> LocalDistribution:
        """The histogram of the people who reported."""
        refuse_choice(categories, "all bins are estimated")
        unbiased, covariance = self.inverted(tally)
        contributions = _contributions(self.windows)
        return LocalDistribution(self.edges, self.smoothed(tally), unbiased, covariance, n, contributions, seeded)

    def variance(self, n: int, share: float = 0.0) -> float:
        """The variance of the unbiased share of a bin in the middle among n people whose numbers are spread evenly."""
        law, inverse = self.windows.law(), _inverse(self.windows)
        row = inverse[self.bins // 2]
        mixture = share * law[self.bins // 2] + (1 - share) * law.mean(axis=0)
        return float(mixture @ row**2 - (mixture @ row) ** 2) / arguments.whole(n, "n")


@lru_cache(maxsize=32)
def _square_wave(bins: int, epsilon: Fraction) -> Windows:
    """The window of the square wave: twice ``b = (e exp(e) - exp(e) + 1) / (2 exp(e) (exp(e) - 1 - e))`` of the bounds;
    at most the bounds themselves, at least one bin.
    """
    e = max(float(epsilon), 1e-3)
    b = (e + math.expm1(-e)) / (2 * (math.expm1(e) - e))
    return Windows(bins, min(max(1, round(2 * b * bins)), bins), epsilon)


@lru_cache(maxsize=8)
def _inverse(windows: Windows) -> Floats:
    """The matrix that turns shares of reports into unbiased shares of bins."""
    law = windows.law()
    weights = 1 / law.mean(axis=0)
    result: Floats = np.linalg.solve((law * weights) @ law.T, law * weights)
    result.setflags(write=False)
    return result


@lru_cache(maxsize=8)
def _contributions(windows: Windows) -> tuple[Floats, Floats]:
    """The least and the most that one report adds to n times each cumulative share."""
    cumulative = np.cumsum(_inverse(windows), axis=0)
    result = cumulative.min(axis=1), cumulative.max(axis=1)
    for limits in result:
        limits.setflags(write=False)
    return result
