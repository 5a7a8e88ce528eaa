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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.inference.intervals import Interval
from dither.mechanisms import Laplace, MixedNoise

Numbers = float | NDArray[np.float64]
"""One number, or an array with a number for each group."""
Range = tuple[Numbers, Numbers]


class NoisySum(NamedTuple):
    """A released sum, or one for each group, and the error that it stays within.

    >>> NoisySum(100, 5.0).limits
    (95.0, 105.0)
    """

    value: Numbers
    error: float

    @property
    def limits(self) -> Range:
        """The smallest and the largest true sum."""
        return self.value - self.error, self.value + self.error


class IntervalEstimate(NamedTuple):
    """A value and the limits of the true answer; arrays of them for many groups.

    >>> float(IntervalEstimate(1.0, 0.5, 1.25).error)
    0.5
    """

    value: Numbers
    low: Numbers
    high: Numbers

    @property
    def error(self) -> Numbers:
        """The larger distance from the value to the limits."""
        return np.maximum(self.high - self.value, self.value - self.low)

    def shifted(self, by: float) -> IntervalEstimate:
        """All three moved by a public constant."""
        return IntervalEstimate(self.value + by, self.low + by, self.high + by)


def mean(count: NoisySum, total: NoisySum, largest: float) -> IntervalEstimate:
    """The mean of values within ``-largest .. largest``, from their noisy number and their noisy sum.

    If the noisy number does not show that there are any values, the limits are those of the values.

    >>> float(mean(NoisySum(100, 5.0), NoisySum(50, 20.0), 2.0).value)
    0.5
    >>> [float(number) for number in mean(NoisySum(0, 5.0), NoisySum(50, 20.0), 2.0)]
    [0.0, -2.0, 2.0]
    """
    size = np.asarray(count.value, dtype=np.float64)
    least, most = count.limits
    some = size >= 1
    value = np.where(some, np.clip(total.value / np.where(some, size, 1.0), -largest, largest), 0.0)
    shown = some & (least > np.float64(0))
    low, high = _quotients(total.limits, (np.where(shown, least, 1.0), np.where(shown, most, 1.0)))
    low = np.where(shown, np.minimum(np.maximum(low, -largest), value), -largest)
    high = np.where(shown, np.maximum(np.minimum(high, largest), value), largest)
    return IntervalEstimate(value[()], low[()], high[()])


def variance(
    count: NoisySum, total: NoisySum, squares: NoisySum, largest: float, largest_square: float | None = None
) -> IntervalEstimate:
    """The sample variance (divisor N - 1) of values within ``-largest .. largest``, from their noisy number, sum and
    sum of squares.

    The squares may have been counted on another grid, on which they are at most ``largest_square``. There are at least
    two values, or there is no variance; if the noisy number does not show that, the limits are 0 and the variance of
    two values at the two bounds.

    >>> float(variance(NoisySum(100, 1.0), NoisySum(0, 1.0), NoisySum(99, 1.0), 2.0).value)
    1.0
    """
    square = largest * largest
    size = np.asarray(count.value, dtype=np.float64)
    least, most = count.limits
    some = size >= 1
    first = mean(count, total, largest)
    second = squares.value / np.where(some, size, 1.0)
    value = np.where(some, sample_variance(first.value, second, np.maximum(size, 2.0), square), 0.0)
    shown = some & (least > np.float64(1))
    low, high = _quotients(squares.limits, (np.where(shown, least, 2.0), np.where(shown, most, 2.0)))
    highest = square if largest_square is None else largest_square
    sizes = np.maximum(np.where(shown, least, 2.0), 2.0), np.maximum(np.where(shown, most, 2.0), 2.0)
    limits = variance_limits((first.low, first.high), (np.maximum(low, 0.0), np.minimum(high, highest)), sizes, square)
    low = np.where(shown, np.minimum(limits[0], value), 0.0)
    high = np.where(shown, np.maximum(limits[1], value), 2 * square)
    return IntervalEstimate(value[()], low[()], high[()])


def standard_deviation(square: IntervalEstimate) -> IntervalEstimate:
    """The root of a variance: a function of it, so its limits are the roots of the limits.

    >>> [float(number) for number in standard_deviation(IntervalEstimate(4.0, 1.0, 9.0))]
    [2.0, 1.0, 3.0]
    """
    return IntervalEstimate(*(np.sqrt(np.maximum(number, 0.0)) for number in square))


def sample_variance(first: Numbers, second: Numbers, count: Numbers, largest: float) -> Numbers:
    """``(m2 - m1^2) N / (N - 1)``, with ``m2 - m1^2`` kept between 0 and the ``largest`` that the bounds allow.

    >>> float(sample_variance(0.5, 0.5, 2.0, 0.25))
    0.5
    """
    return np.minimum(np.maximum(second - first * first, 0.0), largest) * count / (count - 1)


def variance_limits(first: Range, second: Range, count: Range, largest: float) -> Range:
    """The extremes of :func:`sample_variance` over ranges of the two moments and the number of values, from outside.

    >>> low, high = variance_limits((0.5, 0.5), (0.5, 0.5), (2.0, 2.0), 0.25)
    >>> float(low), float(high)
    (0.5, 0.5)
    """
    ends = first[0] * first[0], first[1] * first[1]
    most = np.maximum(*ends)
    least = np.where((first[0] < np.float64(0)) & (first[1] > np.float64(0)), 0.0, np.minimum(*ends))
    low = np.maximum(second[0] - most, 0.0) * count[1] / (count[1] - 1)
    high = np.minimum(second[1] - least, largest) * count[0] / (count[0] - 1)
    return low, high


def _quotients(numerator: Range, denominator: Range) -> Range:
    """The extremes of a quotient whose denominator is positive."""
    (low, high), (least, most) = numerator, denominator
    return low / np.where(np.asarray(low) < 0, least, most), high / np.where(np.asarray(high) < 0, most, least)


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
        return float(sample_variance(first, second, count, 0.25)) * self.width**2

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """The extremes over the corners of the box."""
        t = float(self.noise.error(confidence, coordinates=3, integer=True))
        corners = [
            self._moments(tuple(item + sign * t for item, sign in zip(self.sums, signs, strict=True)))
            for signs in itertools.product((-1, 1), repeat=3)
        ]
        first, second, count = ((min(numbers), max(numbers)) for numbers in zip(*corners, strict=True))
        low, high = variance_limits(first, second, count, 0.25)
        return min(float(low) * self.width**2, value), max(float(high) * self.width**2, value)


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
