"""Mean, variance and standard deviation from noisy sums, each with an interval.

*Statement.* If every sum is within its error of the truth, the true answer is within the interval.

*Why.* The sums then lie in a box. A quotient of sums with a positive denominator is monotone in each of them, so its
extremes over the box are at corners. The variance ``(m2 - m1^2) N / (N - 1)``, with m1 and m2 the first two moments of
N values, is at most what the largest m2, the smallest m1^2 and the smallest N give together, and at least what the
opposite extremes give. All answers and limits are kept to what values within the bounds can have.

Errors of sums that hold together with some confidence therefore give intervals that hold with that confidence.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

from dither.inference.intervals import Interval
from dither.mechanisms import Laplace, MixedNoise

Range = tuple[float, float]


class NoisySum(NamedTuple):
    """A released sum and the error that it stays within.

    >>> NoisySum(100, 5.0).limits
    (95.0, 105.0)
    """

    value: float
    error: float

    @property
    def limits(self) -> Range:
        """The smallest and the largest true sum."""
        return self.value - self.error, self.value + self.error

    def scaled(self, factor: float) -> NoisySum:
        """In other units: so many of the new ones to an old one."""
        return NoisySum(self.value * factor, self.error * factor)


class IntervalEstimate(NamedTuple):
    """A value and the limits of the true answer.

    >>> IntervalEstimate(1.0, 0.5, 1.25).error
    0.5
    """

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """The larger distance from the value to the limits."""
        return max(self.high - self.value, self.value - self.low)

    def shifted(self, by: float) -> IntervalEstimate:
        """All three moved by a public constant."""
        return IntervalEstimate(self.value + by, self.low + by, self.high + by)


def mean(count: NoisySum, total: NoisySum, largest: float) -> IntervalEstimate:
    """The mean of values within ``-largest .. largest``, from their noisy number and their noisy sum.

    If the noisy number does not show that there are any values, the limits are those of the values.

    >>> mean(NoisySum(100, 5.0), NoisySum(50, 20.0), 2.0).value
    0.5
    >>> mean(NoisySum(0, 5.0), NoisySum(50, 20.0), 2.0)
    IntervalEstimate(value=0.0, low=-2.0, high=2.0)
    """
    if count.value < 1:
        return IntervalEstimate(0.0, -largest, largest)
    value = _clip(total.value / count.value, -largest, largest)
    if count.limits[0] <= 0:
        return IntervalEstimate(value, -largest, largest)
    low, high = _quotients(total.limits, count.limits)
    return IntervalEstimate(value, min(max(low, -largest), value), max(min(high, largest), value))


def variance(
    count: NoisySum, total: NoisySum, squares: NoisySum, largest: float, largest_square: float | None = None
) -> IntervalEstimate:
    """The sample variance (divisor N - 1) of values within ``-largest .. largest``, from their noisy number, sum and
    sum of squares.

    The squares may have been counted on another grid, on which they are at most ``largest_square``. There are at least
    two values, or there is no variance; if the noisy number does not show that, the limits are 0 and the variance of
    two values at the two bounds.

    >>> variance(NoisySum(100, 1.0), NoisySum(0, 1.0), NoisySum(99, 1.0), 2.0).value
    1.0
    """
    square = largest * largest
    if count.value < 1:
        return IntervalEstimate(0.0, 0.0, 2 * square)
    first = mean(count, total, largest)
    value = sample_variance(first.value, squares.value / count.value, max(count.value, 2.0), square)
    if count.limits[0] <= 1:
        return IntervalEstimate(value, 0.0, 2 * square)
    low, high = _quotients(squares.limits, count.limits)
    second = max(low, 0.0), min(high, square if largest_square is None else largest_square)
    sizes = max(count.limits[0], 2.0), max(count.limits[1], 2.0)
    low, high = variance_limits((first.low, first.high), second, sizes, square)
    return IntervalEstimate(value, min(low, value), max(high, value))


def standard_deviation(square: IntervalEstimate) -> IntervalEstimate:
    """The root of a variance: a function of it, so its limits are the roots of the limits.

    >>> standard_deviation(IntervalEstimate(4.0, 1.0, 9.0))
    IntervalEstimate(value=2.0, low=1.0, high=3.0)
    """
    return IntervalEstimate(*(math.sqrt(max(number, 0.0)) for number in square))


def sample_variance(first: float, second: float, count: float, largest: float) -> float:
    """``(m2 - m1^2) N / (N - 1)``, with ``m2 - m1^2`` kept between 0 and the ``largest`` that the bounds allow.

    >>> sample_variance(0.5, 0.5, 2.0, 0.25)
    0.5
    """
    return min(max(second - first * first, 0.0), largest) * count / (count - 1)


def variance_limits(first: Range, second: Range, count: Range, largest: float) -> Range:
    """The extremes of :func:`sample_variance` over ranges of the two moments and the number of values, from outside.

    >>> variance_limits((0.5, 0.5), (0.5, 0.5), (2.0, 2.0), 0.25)
    (0.5, 0.5)
    """
    most = max(end * end for end in first)
    least = 0.0 if first[0] < 0 < first[1] else min(end * end for end in first)
    low = max(second[0] - most, 0.0) * count[1] / (count[1] - 1)
    high = min(second[1] - least, largest) * count[0] / (count[0] - 1)
    return low, high


def _quotients(numerator: Range, denominator: Range) -> Range:
    """The extremes of a quotient whose denominator is positive."""
    corners = [a / b for a, b in itertools.product(numerator, denominator)]
    return min(corners), max(corners)


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


@dataclass(frozen=True)
class BernsteinInterval(Interval):
    """The variance from three noisy Bernstein sums, and conservative limits for it.

    The sums are those of ``(1 - y)^2``, ``2 y (1 - y)`` and ``y^2``, with y the place of a value between the bounds,
    from 0 to 1. Their total is the number of records N, and ``m1 = (b1 / 2 + b2) / N`` and ``m2 = b2 / N`` are the
    first two moments of y. All three sums are within t of the truth together with the confidence asked for; m1, m2
    and N are monotone in each sum, so their extremes over that box are at its corners.
    """

    sums: tuple[int, ...]
    noise: Laplace | MixedNoise
    span: float
    """The number of steps of the grid; the sums are in units of its square."""
    width: float
    """The distance between the bounds."""

    def _moments(self, sums: tuple[float, ...]) -> tuple[float, float, float]:
        b0, b1, b2 = (max(item, 0.0) for item in sums)
        everything = b0 + b1 + b2
        if everything <= 0:
            return 0.5, 0.5, 2.0
        return (b1 / 2 + b2) / everything, b2 / everything, max(everything / self.span**2, 2.0)

    def point(self) -> float:
        """The estimate, kept between 0 and the largest variance there is."""
        first, second, count = self._moments(tuple(float(item) for item in self.sums))
        return sample_variance(first, second, count, 0.25) * self.width**2

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """The extremes over the corners of the box."""
        t = float(self.noise.error(confidence, coordinates=3, integer=True))
        corners = [
            self._moments(tuple(item + sign * t for item, sign in zip(self.sums, signs, strict=True)))
            for signs in itertools.product((-1, 1), repeat=3)
        ]
        first, second, count = ((min(numbers), max(numbers)) for numbers in zip(*corners, strict=True))
        low, high = variance_limits(first, second, count, 0.25)
        return min(low * self.width**2, value), max(high * self.width**2, value)


__all__ = [
    "BernsteinInterval",
    "IntervalEstimate",
    "NoisySum",
    "mean",
    "sample_variance",
    "standard_deviation",
    "variance",
    "variance_limits",
]
