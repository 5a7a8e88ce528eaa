"""Local reports of numbers, from which their mean and their distribution are estimated.

A number is rounded to one of d grid points, 0 to d - 1. A report is one of K = d + w - 1 numbers; grid point j prefers
the *window* of w numbers from j to j + w - 1. A number in the window is e^epsilon times as likely as any other, which
is the whole proof. The mean of the report is linear in j, which makes unbiased means easy. With w near ``d exp(-epsilon
/ 2)`` this is the piecewise mechanism (Wang et al. 2019) on a grid, with w near ``2 b d`` the square wave (Li et al.
2020), and with d = 2 and w = 1 randomized response, the mechanism of Duchi, Jordan and Wainwright (2018).

For the mean, a report is one bit, a number of a window, or one or the other at random, whichever has the smallest
variance. For the distribution, reports near the sender's bin are more likely, and the server inverts that by EM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument, InvalidData
from dither.exact import Enclosure
from dither.local.bases import IndexProtocol, inside_float, inside_probability
from dither.local.protocol import Codes, Floats, Tally, refuse_choice
from dither.local.reports import WIRE_CODES, Records, half_width, reports_line
from dither.present.text import significant, table, with_error
from dither.randomness import Source, bernoulli, trials, uniform_integers
from dither.validation import as_values


def line_bounds(value: object) -> tuple[int | float, int | float]:
    """Return public bounds as ``(lower, upper)``; their difference must be above 0 and finite as a float."""
    low, high = arguments.bounds(value)
    with np.errstate(over="ignore"):
        span = float(np.float64(high) - np.float64(low))
    if not (math.isfinite(span) and span >= float(np.finfo(np.float64).tiny)):
        got = "limits that are the same float" if span == 0 else "limits too far from each other, or too close"
        raise InvalidArgument("bounds", "limits whose difference is an ordinary float", got, "measure in other units")
    return low, high


def numbers_within(values: object, bounds: tuple[int | float, int | float], name: str) -> Floats:
    """Return numbers within the bounds as floats; other values are refused without naming them."""
    numbers: Floats = as_values(values, "number", name=name).values.astype(np.float64)
    if not bool(np.all((numbers >= float(bounds[0])) & (numbers <= float(bounds[1])))):
        raise InvalidData(
            name,
            "numbers within the bounds",
            "a number outside of them, or a value that is not a number, such as NaN or None",
            "clip numbers or state wider bounds; drop or fill in values that are not numbers",
        )
    return numbers


def bounds_parameters(bounds: tuple[int | float, int | float]) -> dict[str, object]:
    """Return the bounds as exact rationals by name, for the canonical parameters."""
    return {"low": Fraction(bounds[0]), "high": Fraction(bounds[1])}


@dataclass(frozen=True)
class Windows:
    """Reports about one of d grid points, each of which prefers a window of w numbers, at the epsilon of a report."""

    points: int
    width: int
    epsilon: Fraction

    @property
    def total(self) -> int:
        """Return the number K of possible reports."""
        return self.points + self.width - 1

    @property
    def inside(self) -> float:
        """Return the probability of a report in the window of the sender's grid point."""
        return inside_float(float(self.epsilon), self.width, self.total)

    def own_probability(self, bits: int) -> Enclosure:
        """Enclose the probability of a report in the window, in whole multiples of ``2**-bits``."""
        return inside_probability(self.epsilon, self.width, self.total, bits)

    def draw(self, codes: Codes, source: Source) -> NDArray[np.int64]:
        """Draw a report for each grid point in ``codes``: in its window with probability :attr:`inside`, else outside.

        The window of grid point c has the reports c to c + width - 1; inside and outside the report is uniform.
        """
        held = trials(self.inside, self.own_probability, codes.size, source)
        within = uniform_integers(self.width, codes.size, source).astype(np.int64) + codes
        if self.total == self.width:
            return within
        outside = uniform_integers(self.total - self.width, codes.size, source).astype(np.int64)
        outside += np.where(outside >= codes, self.width, 0)
        return np.where(held, within, outside)

    def law(self) -> Floats:
        """Return the probability of each report, as a matrix with a row for each grid point."""
        result = np.full((self.points, self.total), self.low)
        for point in range(self.points):
            result[point, point : point + self.width] = self.inside / self.width
        return result

    @property
    def slope(self) -> float:
        """Return how much the mean report rises from one grid point to the next: ``inside (1 - e^-epsilon)``."""
        return -self.inside * math.expm1(-float(self.epsilon))

    @property
    def low(self) -> float:
        """Return the probability of each report outside of the window, accurate however small it is."""
        return self.inside / self.width * math.exp(-float(self.epsilon))


Method = Literal["best", "duchi", "piecewise", "hybrid"]

STEPS = 1023
"""The number of steps of the grid to which values are rounded, at random and without bias."""
_FRACTION_BITS = 32


@dataclass(frozen=True, eq=False)
class LocalMean(ComparedByValue):
    """An unbiased mean of the people who reported, with its standard error.

    >>> import dither as dp
    >>> p = dp.local.Mean(bounds=(0, 10), epsilon=1)
    >>> bool(abs(p.estimate(p.privatize([4.0] * 4000)).value - 4) < 2)
    True
    """

    value: float
    standard_error: float
    n: int
    seeded: bool = False
    slope: float = 0.0
    """By how much the variance of the mean changes with it."""
    step: float = 0.0
    """What one report can change the mean by."""

    def __str__(self) -> str:
        """Format the mean and its ±.

        >>> print(LocalMean(4.25, 0.05, 900))
        4.25 ± 0.10
        900 reports; ± with 95 % confidence
        """
        return "\n".join([" ± ".join(with_error(self.value, self.error())), reports_line(self.n, self.seeded)])

    def error(self, confidence: float = 0.95) -> float:
        """Return the half-width of a confidence interval for the mean of the people who reported.

        It is a normal one with many reports, and wider with few (:func:`~dither.local.reports.half_width`).
        """
        return float(half_width(self.standard_error, self.slope, self.step, confidence))


@dataclass(frozen=True)
class Mean(IndexProtocol[LocalMean]):
    """Report a number within bounds so that the mean over all reports is unbiased.

    *Statement.* Each report is epsilon-DP for its sender, whatever number within the bounds theirs is replaced by.

    *Why.* A number is rounded to a point of a public grid, at random and without bias. *duchi*: a grid of two points,
    the bounds, and randomized response between them (Duchi, Jordan and Wainwright 2018). *piecewise*: 1024 points, and
    a report from a window around the point, e^epsilon times as likely as any other (Wang et al. 2019). *hybrid*: one or
    the other by a coin that does not depend on the number. *best* has the smallest variance in the worst case over
    numbers: duchi up to epsilon = 0.61, then hybrid.

    *Record.* An unsigned integer in the fewest of 1, 2 or 4 bytes: 0 or 1 for a report of duchi, 2 + r for the number
    r of the window. A number outside of the bounds is refused.

    Parameters
    ----------
    bounds
        The smallest and the largest number, public.
    epsilon
        The privacy loss of one report.
    method
        ``best``, or one of the three.

    Examples
    --------
    >>> import dither as dp
    >>> p = dp.local.Mean(bounds=(-1, 1), epsilon=1)
    >>> p.chosen, round(p.worst_variance, 2), round(dp.local.Mean((-1, 1), 1, "duchi").worst_variance, 2)
    ('hybrid', 4.29, 4.68)
    """

    bounds: tuple[float, float]
    epsilon: float
    method: Method = "best"
    categories: int = field(default=STEPS + 1, init=False, repr=False)
    wire_code: ClassVar[int] = WIRE_CODES["Mean"]
    _estimated: ClassVar[str] = "the mean"

    def __post_init__(self) -> None:
        """Check the bounds, the method and epsilon."""
        object.__setattr__(self, "bounds", line_bounds(self.bounds))
        if self.method not in ("best", "duchi", "piecewise", "hybrid"):
            raise InvalidArgument(
                "method", "best, duchi, piecewise or hybrid", repr(self.method), "leave it out for the best"
            )
        self.check_parameters()

    @property
    def chosen(self) -> str:
        """Return the name of the method in use; for ``"best"`` it is duchi or hybrid, by epsilon."""
        if self.method != "best":
            return self.method
        return "duchi" if self.window_rate == 0 else "hybrid"

    @property
    def window_rate(self) -> Fraction:
        """Return the probability that a report is drawn from a window, rather than one bit."""
        if self.method in ("duchi", "piecewise"):
            return Fraction(int(self.method == "piecewise"))
        return _best_rate(self.exact_epsilon)

    @property
    def windows(self) -> tuple[Windows, Windows]:
        """Return the two kinds of reports: one bit, and a window."""
        return _kinds(self.exact_epsilon)

    @property
    def report_count(self) -> int:
        """Return the number of possible reports."""
        return 2 + self.windows[1].total

    def own_parameters(self) -> dict[str, object]:
        """Return the bounds and the probability of a window, which determine the reports."""
        return {**bounds_parameters(self.bounds), "window_rate": self.window_rate}

    def encode(self, values: Any, name: str = "values") -> Codes:
        """Return each number in units of ``2**-32`` of a grid step, from the lower bound on."""
        numbers, (low, high) = numbers_within(values, self.bounds, name), (float(bound) for bound in self.bounds)
        share = np.clip((numbers - low) / (high - low), 0.0, 1.0)
        return np.rint(share * float(STEPS << _FRACTION_BITS)).astype(np.int64)

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw one report for each number in ``codes``, with randomness from ``source``.

        A code is a position on the public grid with ``_FRACTION_BITS`` binary digits after the point. A coin decides
        between the one-bit report and the window, the position is rounded at random to a grid point (so that it is
        right on average), and the report of that point is drawn.
        """
        bit, window = self.windows
        fine = (source.words(codes.size) >> np.uint64(64 - _FRACTION_BITS)).astype(np.int64)
        points = (codes + fine) >> _FRACTION_BITS
        by_window = bernoulli(self.window_rate, codes.size, source)
        reports = 2 + window.draw(points, source)
        one_bit = np.flatnonzero(~by_window)
        # rounded to an end of the grid with probability point / STEPS, exactly
        picks = uniform_integers(STEPS, one_bit.size, source).astype(np.int64)
        reports[one_bit] = bit.draw((picks < points[one_bit]).astype(np.int64), source)
        return self.pack(reports)

    @property
    def contributions(self) -> Floats:
        """Return the contribution of each possible report to the estimate; on average it is the sender's number."""
        bit, window = self.windows
        low, high = (float(bound) for bound in self.bounds)
        shares = [
            (np.arange(kind.total) - (kind.total - 1) / 2) / (kind.slope * (kind.points - 1)) + 0.5
            for kind in (bit, window)
        ]
        return low + (high - low) * np.concatenate(shares)

    def read(self, tally: Tally, n: int, categories: Any, seeded: bool) -> LocalMean:
        """Return the mean of the contributions of all reports and its standard error, estimated from their spread.

        ``tally`` counts each possible report, ``n`` is their number, ``categories`` must be None (there is one mean),
        and ``seeded`` says that some report came from a seeded source. The spread of one report is at least as large
        as for the number for which it is smallest.

        Of contributions from a to b with the mean m, the variance is at most ``(m - a) (b - m)``, of which the
        derivative is ``a + b - 2 m``; it is concave, so that no other mean is farther from it than that.
        """
        refuse_choice(categories, "there is one mean")
        z = self.contributions
        mean = float(tally @ z) / n
        low, high = (float(bound) for bound in self.bounds)
        least = _extreme_variances(self.exact_epsilon, float(self.window_rate))[0] * ((high - low) / 2) ** 2
        spread = max(float(tally @ (z - mean) ** 2) / max(n - 1, 1), least)
        used = z[:2] if self.window_rate == 0 else z
        a, b = float(used.min()), float(used.max())
        return LocalMean(mean, math.sqrt(spread / n), n, seeded, abs(a + b - 2 * mean) / n, (b - a) / n)

    def variance(self, n: int, share: float = 0.0) -> float:
        """Return the variance of the mean of n reports, in the worst case over their numbers; ``share`` is not used."""
        low, high = (float(bound) for bound in self.bounds)
        return self.worst_variance * ((high - low) / 2) ** 2 / arguments.whole(n, "n")

    @property
    def worst_variance(self) -> float:
        """Return the largest variance of one report about a number in [-1, 1]."""
        return _extreme_variances(self.exact_epsilon, float(self.window_rate))[1]


@lru_cache(maxsize=64)
def _kinds(epsilon: Fraction) -> tuple[Windows, Windows]:
    """Return the two kinds of reports at ``epsilon``: one bit (between the ends), and a window on the grid.

    The window's width has the smallest variance in the worst case over numbers, of the seven widths nearest to the
    formula of the piecewise mechanism, ``exp(-epsilon / 2)`` of the grid.
    """
    guess = round(STEPS * math.exp(-float(epsilon) / 2))
    widths = sorted({min(max(1, guess + shift), STEPS) for shift in range(-3, 4)})
    options = [Windows(STEPS + 1, width, epsilon) for width in widths]
    return Windows(2, 1, epsilon), min(options, key=lambda kind: float(_variances(kind).max()))


def _variances(kind: Windows) -> Floats:
    """Return the variance of the contribution of one report, for each grid point of a sender in [-1, 1].

    A report r contributes ``z``, on average the sender's number x. It has probability ``low`` or, inside the window,
    ``low + gain``; so the variance is ``low sum z^2 + gain (sum of z^2 over the window) - x^2``.
    """
    r = np.arange(kind.total, dtype=np.float64)
    z = 2 * (r - (kind.total - 1) / 2) / (kind.slope * (kind.points - 1))
    low, gain = kind.low, kind.slope / kind.width
    squares = np.append(0.0, np.cumsum(z * z))
    points = np.arange(kind.points)
    second: Floats = low * squares[-1] + gain * (squares[points + kind.width] - squares[points])
    result: Floats = second - (2 * points / (kind.points - 1) - 1) ** 2
    return result


@lru_cache(maxsize=256)
def _extreme_variances(epsilon: Fraction, rate: float) -> tuple[float, float]:
    """Return the smallest and the largest variance of one report over the numbers in [-1, 1].

    ``epsilon`` is the privacy loss and ``rate`` the probability of a window instead of a one-bit report. The largest
    includes the random rounding to the grid.
    """
    bit, window = _kinds(epsilon)
    x = np.linspace(-1, 1, STEPS + 1)
    of_bit = 1 / bit.slope**2 - x * x  # a bit contributes 1/slope or -1/slope, x on average
    rounding = 1 / STEPS**2 if rate else 0.0
    variances = rate * _variances(window) + (1 - rate) * of_bit
    return float(variances.min()), float(variances.max()) + rounding


@lru_cache(maxsize=64)
def _best_rate(epsilon: Fraction) -> Fraction:
    """Return the probability of a window report with the smallest variance in the worst case, in 1024ths."""
    bit, window = _kinds(epsilon)
    x = np.linspace(-1, 1, STEPS + 1)
    ends, windows = 1 / bit.slope**2 - x * x, _variances(window)
    worst = [float((rate * windows + (1024 - rate) * ends).max()) for rate in range(1025)]
    return Fraction(int(np.argmin(worst)), 1024)


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
    """The smallest and the largest contribution of one report to n times each cumulative share."""
    seeded: bool = False

    @property
    def standard_error(self) -> Floats:
        """Return the standard errors of the unbiased shares."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def cumulative(self) -> Floats:
        """Return the share of people below each edge after the first, by the smooth shares."""
        return np.cumsum(self.shares)

    def __str__(self) -> str:
        """Format a table of a few lines: the share of people below an edge, with its ±.

        >>> import dither as dp
        >>> p = dp.local.Distribution(bounds=(0, 100), bins=4, epsilon=20)
        >>> print(str(p.estimate(p.privatize([10.0] * 500 + [60.0] * 500))).splitlines()[0])
        below  share of people  ±
        """
        low, high = self.cumulative_interval()
        shown_bins = sorted(
            {round(i) for i in np.linspace(0, self.shares.size - 1, min(_MOST_SHOWN, self.shares.size))}
        )
        lines = [
            [significant(float(self.edges[i + 1])), *with_error(float(self.cumulative[i]), float(high[i] - low[i]) / 2)]
            for i in shown_bins
        ]
        shown = table(["below", "share of people", "±"], lines, [True] * 3)
        return "\n".join([*shown, reports_line(self.n, self.seeded)])

    @property
    def mean(self) -> float:
        """Return the mean, with every person in the middle of their bin."""
        return float(self.shares @ ((self.edges[:-1] + self.edges[1:]) / 2))

    def cumulative_interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return confidence intervals for the share of people below each edge after the first, from the unbiased
        shares.

        They are normal ones with many reports, and wider with few (:func:`~dither.local.reports.half_width`).
        """
        ones = np.tril(np.ones((self.unbiased.size, self.unbiased.size)))
        middle, spread = ones @ self.unbiased, np.einsum("ij,jk,ik->i", ones, self.covariance, ones)
        least, most = self.contributions
        slope, step = np.abs(least + most - 2 * middle) / self.n, (most - least) / self.n
        half = half_width(np.sqrt(np.maximum(spread, 0.0)), slope, step, confidence)
        return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)

    def quantile(self, share: float) -> float:
        """Return the point below which a share of people is, by the smooth shares, linear within a bin."""
        level = arguments.rate(share, "share")
        below = np.append(0.0, self.cumulative)
        return float(np.interp(float(level), below / below[-1], self.edges))


@dataclass(frozen=True)
class Distribution(IndexProtocol[LocalDistribution]):
    """Report a number within bounds so that the collector can estimate the whole distribution.

    *Statement.* Each report is epsilon-DP for its sender, whatever number within the bounds theirs is replaced by.

    *Why.* The number's bin prefers a window of reports, each e^epsilon times as likely as any other (the square wave of
    Li et al. 2020 on a grid, with the width that they derive). The histogram is found by expectation maximization,
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
    wire_code: ClassVar[int] = WIRE_CODES["Distribution"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", line_bounds(self.bounds))
        object.__setattr__(self, "bins", arguments.whole(self.bins, "bins", 2, _MAX_BINS))
        object.__setattr__(self, "categories", self.bins)
        self.check_parameters()

    @property
    def windows(self) -> Windows:
        """Return the windows of reports."""
        return _square_wave(self.bins, self.exact_epsilon)

    @property
    def report_count(self) -> int:
        """Return the number of possible reports."""
        return self.windows.total

    @property
    def edges(self) -> Floats:
        """Return the edges of the bins."""
        return np.linspace(float(self.bounds[0]), float(self.bounds[1]), self.bins + 1)

    def own_parameters(self) -> dict[str, object]:
        """Return the bounds and the width of the windows, which determine the reports."""
        return {**bounds_parameters(self.bounds), "width": self.windows.width}

    def encode(self, values: Any, name: str = "values") -> Codes:
        """Return the bin of each number."""
        numbers, (low, high) = numbers_within(values, self.bounds, name), (float(bound) for bound in self.bounds)
        return np.clip(((numbers - low) / (high - low) * self.bins).astype(np.int64), 0, self.bins - 1)

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw a report inside the window of the sender's bin, or outside of it."""
        return self.pack(self.windows.draw(codes, source))

    def smoothed(self, tally: Tally) -> Floats:
        """Estimate the share of each bin by expectation maximization, then one pass of smoothing.

        ``tally`` counts each possible report. It stops when the mean log-likelihood of a report gains less than ``1e-3
        e^epsilon / n``, the rule of Li et al. Smoothing after every step, as they do, makes shares wrong by more than
        the noise where there are many people.
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
        """Return unbiased shares that add up to 1, by least squares, and their covariance.

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
        """Return the histogram of the people who reported.

        ``tally`` counts each possible report, ``n`` is their number, ``categories`` must be None, as all bins are
        estimated, and ``seeded`` says that some report came from a seeded source.
        """
        refuse_choice(categories, "all bins are estimated")
        unbiased, covariance = self.inverted(tally)
        contributions = _contributions(self.windows)
        return LocalDistribution(self.edges, self.smoothed(tally), unbiased, covariance, n, contributions, seeded)

    def variance(self, n: int, share: float = 0.0) -> float:
        """Return the variance of the unbiased share of the middle bin among ``n`` people.

        ``share`` is the true share of that bin; the numbers of all other people are spread evenly.
        """
        law, inverse = self.windows.law(), _inverse(self.windows)
        row = inverse[self.bins // 2]
        mixture = share * law[self.bins // 2] + (1 - share) * law.mean(axis=0)
        return float(mixture @ row**2 - (mixture @ row) ** 2) / arguments.whole(n, "n")


@lru_cache(maxsize=32)
def _square_wave(bins: int, epsilon: Fraction) -> Windows:
    """Return the windows of the square wave protocol (Li et al. 2020) on a grid of ``bins`` bins.

    The window is ``2 b`` times as wide as the bounds, with ``b = (e exp(e) - exp(e) + 1) / (2 exp(e) (exp(e) - 1 -
    e))`` for e = ``epsilon``; it is at most as wide as the bounds themselves, and at least one bin. An epsilon below
    1e-3, where the formula cancels, counts as that.
    """
    e = max(float(epsilon), 1e-3)
    b = (e + math.expm1(-e)) / (2 * (math.expm1(e) - e))
    return Windows(bins, min(max(1, round(2 * b * bins)), bins), epsilon)


@lru_cache(maxsize=8)
def _inverse(windows: Windows) -> Floats:
    """Return the matrix that turns shares of reports into unbiased shares of bins, by weighted least squares.

    With A the law of the reports (a row for each bin) and W the inverse of their mean probabilities, it is ``(A W
    A')^-1 A W``.
    """
    law = windows.law()
    weights = 1 / law.mean(axis=0)
    result: Floats = np.linalg.solve((law * weights) @ law.T, law * weights)
    result.setflags(write=False)
    return result


@lru_cache(maxsize=8)
def _contributions(windows: Windows) -> tuple[Floats, Floats]:
    """Return the smallest and the largest contribution of one report to n times each cumulative share.

    ``windows`` is the law of the reports. Both results are arrays with one number for each bin.
    """
    cumulative = np.cumsum(_inverse(windows), axis=0)
    result = cumulative.min(axis=1), cumulative.max(axis=1)
    for limits in result:
        limits.setflags(write=False)
    return result
