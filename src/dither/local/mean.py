"""The mean of a number: a report of one bit, of a place in a window, or of either, whichever varies least."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from dither import arguments
from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument
from dither.local.estimates import half_width, reports_line
from dither.local.index_records import IndexProtocol
from dither.local.protocol import Codes, Floats, Tally, refuse_choice
from dither.local.reports import Records
from dither.local.windows import Windows, bounds_parameters, line_bounds, numbers_within
from dither.local.wire_codes import MEAN
from dither.present.digits import with_error
from dither.randomness import Source, bernoulli, uniform_integers

Method = Literal["best", "duchi", "piecewise", "hybrid"]

STEPS = 1023
"""The number of steps of the grid on which values are put, at random and without bias."""
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
        """The mean and its ±.

        >>> print(LocalMean(4.25, 0.05, 900))
        4.25 ± 0.10
        900 reports; ± with 95 % confidence
        """
        return "\n".join([" ± ".join(with_error(self.value, self.error())), reports_line(self.n, self.seeded)])

    def error(self, confidence: float = 0.95) -> float:
        """The half-width of a confidence interval for the mean of the people who reported: with many reports a normal
        one, with few of them wider (:func:`~dither.local.estimates.half_width`).
        """
        return float(half_width(self.standard_error, self.slope, self.step, confidence))


@dataclass(frozen=True)
class Mean(IndexProtocol[LocalMean]):
    """Report a number within bounds so that the mean over all reports is unbiased.

    *Statement.* Each report is epsilon-DP for its sender, whatever number within the bounds theirs is replaced by.

    *Why.* A number becomes a place on a public grid, at random so that it is right on average. *duchi*: grid of two
    places, the ends, and randomized response between them (Duchi, Jordan and Wainwright 2018). *piecewise*: 1024
    places, and a report from a window around the place, e^epsilon times as likely as any other (Wang et al. 2019;
    :mod:`dither.local.windows`). *hybrid*: one or the other by a coin that does not depend on the number. *best* is the
    one with the smallest variance in the worst case over numbers: duchi up to epsilon = 0.61, then hybrid.

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
    wire_code: ClassVar[int] = MEAN

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", line_bounds(self.bounds))
        if self.method not in ("best", "duchi", "piecewise", "hybrid"):
            raise InvalidArgument(
                "method", "best, duchi, piecewise or hybrid", "something else", "leave it out for the best"
            )
        self.check_parameters()

    @property
    def chosen(self) -> str:
        """The method in use."""
        if self.method != "best":
            return self.method
        return "duchi" if self.window_rate == 0 else "hybrid"

    @property
    def window_rate(self) -> Fraction:
        """The probability of a report by windows instead of one bit."""
        if self.method in ("duchi", "piecewise"):
            return Fraction(int(self.method == "piecewise"))
        return _best_rate(self.exact_epsilon)

    @property
    def windows(self) -> tuple[Windows, Windows]:
        """The two kinds of reports: one bit, and by windows."""
        return _kinds(self.exact_epsilon)

    @property
    def report_count(self) -> int:
        """The number of possible reports."""
        return 2 + self.windows[1].total

    def own_parameters(self) -> dict[str, object]:
        """Bounds and method."""
        return {**bounds_parameters(self.bounds), "window_rate": self.window_rate}

    def encode(self, values: Any, name: str = "values") -> Codes:
        """Each number in units of ``2**-32`` of a grid step, from the lower bound on."""
        numbers, (low, high) = numbers_within(values, self.bounds, name), (float(bound) for bound in self.bounds)
        share = np.clip((numbers - low) / (high - low), 0.0, 1.0)
        return np.rint(share * float(STEPS << _FRACTION_BITS)).astype(np.int64)

    def draw(self, codes: Codes, source: Source) -> Records:
        """The kind of each report by a coin, the place by rounding at random, then the report of the place."""
        bit, window = self.windows
        fine = (source.words(codes.size) >> np.uint64(64 - _FRACTION_BITS)).astype(np.int64)
        places = (codes + fine) >> _FRACTION_BITS
        by_window = bernoulli(self.window_rate, codes.size, source)
        reports = 2 + window.draw(places, source)
        one_bit = np.flatnonzero(~by_window)
        # an end, with a probability in proportion to the distance from the other one: of STEPS places, exactly
        picks = uniform_integers(STEPS, one_bit.size, source).astype(np.int64)
        reports[one_bit] = bit.draw((picks < places[one_bit]).astype(np.int64), source)
        return self.pack(reports)

    @property
    def contributions(self) -> Floats:
        """What each possible report adds to the estimate; on average, the number."""
        bit, window = self.windows
        low, high = (float(bound) for bound in self.bounds)
        shares = [
            (np.arange(kind.total) - (kind.total - 1) / 2) / (kind.slope * (kind.places - 1)) + 0.5
            for kind in (bit, window)
        ]
        return low + (high - low) * np.concatenate(shares)

    def read(self, tally: Tally, n: int, categories: Any, seeded: bool) -> LocalMean:
        """The mean of the contributions and its standard error, from what they show: a report varies by itself at
        least as much as for the number for which it varies least.

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
        """The variance of the mean of n reports, in the worst case over their numbers; ``share`` is not used."""
        low, high = (float(bound) for bound in self.bounds)
        return self.worst_variance * ((high - low) / 2) ** 2 / arguments.whole(n, "n")

    @property
    def worst_variance(self) -> float:
        """The variance of one report about a number in [-1, 1], in the worst case."""
        return _extreme_variances(self.exact_epsilon, float(self.window_rate))[1]


@lru_cache(maxsize=64)
def _kinds(epsilon: Fraction) -> tuple[Windows, Windows]:
    """One bit, and the window of the smallest variance in the worst case near the formula's."""
    guess = round(STEPS * math.exp(-float(epsilon) / 2))
    widths = sorted({min(max(1, guess + shift), STEPS) for shift in range(-3, 4)})
    options = [Windows(STEPS + 1, width, epsilon) for width in widths]
    return Windows(2, 1, epsilon), min(options, key=lambda kind: float(_variances(kind).max()))


def _variances(kind: Windows) -> Floats:
    """The variance of one report for each place, where the places are spread over [-1, 1]."""
    r = np.arange(kind.total, dtype=np.float64)
    z = 2 * (r - (kind.total - 1) / 2) / (kind.slope * (kind.places - 1))
    low, gain = kind.low, kind.slope / kind.width
    squares = np.append(0.0, np.cumsum(z * z))
    places = np.arange(kind.places)
    second: Floats = low * squares[-1] + gain * (squares[places + kind.width] - squares[places])
    result: Floats = second - (2 * places / (kind.places - 1) - 1) ** 2
    return result


@lru_cache(maxsize=256)
def _extreme_variances(epsilon: Fraction, rate: float) -> tuple[float, float]:
    """The variances of one report about the numbers in [-1, 1] for which it is smallest and largest."""
    bit, window = _kinds(epsilon)
    x = np.linspace(-1, 1, STEPS + 1)
    ends = 1 / bit.slope**2 - x * x
    rounding = 1 / STEPS**2 if rate else 0.0
    variances = rate * _variances(window) + (1 - rate) * ends
    return float(variances.min()), float(variances.max()) + rounding


@lru_cache(maxsize=64)
def _best_rate(epsilon: Fraction) -> Fraction:
    """In 1024ths, the one with the smallest variance in the worst case."""
    bit, window = _kinds(epsilon)
    x = np.linspace(-1, 1, STEPS + 1)
    ends, windows = 1 / bit.slope**2 - x * x, _variances(window)
    worst = [float((rate * windows + (1024 - rate) * ends).max()) for rate in range(1025)]
    return Fraction(int(np.argmin(worst)), 1024)
