"""Mean, variance and standard deviation from noisy sums, each with an interval: for ``dp.stats`` and tables alike.

The limits are those of :mod:`~dither.inference.measured`. Here is what makes them right for moments.

*Mean.* A quotient of two numbers whose noise is known: the limits are those of Fieller, exact.

*Variance.* With N, T, S the number of values, their sum and the sum of their squares, about a public middle, and
``m = T/N``, the sum of squared deviations is ``S - T^2/N``. From noisy ``n = N + y, t = T + x, s = S + z`` it is
``s - t^2/n = (S - T^2/N) + G - F^2/n`` exactly, with ``G = z - 2 m x + m^2 y`` linear in the noise and
``F = x - m y``. A sample of possible truths repeats the step: it is *lower* than ``s - t^2/n`` by another
``F_k^2/n``, where the truth is *higher* by ``F^2/n``. The part of F that G determines does no harm (along it the
function is monotone in one number, for which the limits are exact); the rest of it, ``R = F - G Cov(F, G)/Var(G)``,
is uncorrelated with G, so the limits are shifted by twice its square: ``2 R_k^2/n`` is added to every sample. What
is left is of third order in (noise / N).

*Bounds.* Noisy sums that no values can have are first moved to the nearest that some have, because limits that follow
from an impossible number would sometimes be too narrow; that only widens the interval, by limits that were already
beyond what is possible. A variance below 0 is moved to at least one standard error below 0, and near 0 the share of
samples beyond the limits goes to one side (:func:`~dither.inference.measured.limits`), since the other cannot be
missed. All limits are kept to what values within the bounds can have. Samples
without any values (or fewer than two, for a variance) are beyond both limits, so a group whose number is lost in its
noise has the whole range.

*Coverage.* Measured over 12 real populations and two laws of noise by ``benchmarks/coverage.py``: 94 to 97 % for 95 %,
except in groups of which the number is lost in its noise, where it is more. For confidences beyond what the sample can
resolve (above some 99.8 %) the limits are conservative.

Conservative limits
-------------------
*Statement.* If every sum is within its range, the true mean and the true variance are within the limits.

*Why.* The sums then lie in a box. A quotient of sums with a positive denominator is monotone in each of them, so its
extremes over the box are at corners. The variance ``(m2 - m1^2) N / (N - 1)``, with m1 and m2 the first two moments of
N values, is at most what the largest m2, the smallest m1^2 and the smallest N give together, and at least what the
opposite extremes give. All limits are kept to what values within the bounds can have.

Ranges that hold together with some confidence therefore give limits that hold with at least that confidence. They are
two to three times as wide as they need be at 95 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dither.inference.measured import Array, Measured, Numbers, limits


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
        """Return the larger distance from the value to the limits."""
        return np.maximum(self.high - self.value, self.value - self.low)

    def shifted(self, by: float) -> IntervalEstimate:
        """Return the value and limits plus a public constant."""
        return IntervalEstimate(self.value + by, self.low + by, self.high + by)

    def scaled(self, by: float) -> IntervalEstimate:
        """Return the value and limits times a public positive constant."""
        return IntervalEstimate(self.value * by, self.low * by, self.high * by)


def mean(count: Measured, total: Measured, largest: float) -> IntervalEstimate:
    """Return the mean of values within ``-largest .. largest``, with limits.

    ``count`` is their noisy number and ``total`` their noisy sum. If the noisy number does not show that there are any
    values (it is at most 0.5), the value is 0 and the limits are those of the values. Where the sample of the noise is
    too small for the confidence (``count.resolved`` is false), the limits are the conservative ones of the module.

    >>> from dither.inference import NoiseLaw, measured
    >>> sums = measured([100.0, 50.0], [NoiseLaw("laplace", 1.0), NoiseLaw("laplace", 2.0)], confidence=0.95)
    >>> estimate = mean(*sums, largest=2.0)
    >>> [round(float(number[0]), 2) for number in estimate]
    [0.5, 0.44, 0.56]
    """
    size, some = count.value, count.value > 0.5  # one value, whose number has noise of its own
    inside = np.where(some, np.clip(total.value, -largest * size, largest * size), 0.0)
    value = inside / np.where(some, size, 1.0)
    if not count.resolved:
        low, high = mean_limits(count.range, total.range, largest)
    else:
        low, high = limits(_quotient, (total.at(inside), count), -largest, largest)
    return _around(value, np.where(some, low, -largest), np.where(some, high, largest))


def variance(
    count: Measured, total: Measured, squares: Measured, largest: float, largest_square: float | None = None
) -> IntervalEstimate:
    """Return the sample variance (divisor N - 1) of values within ``-largest .. largest``, with limits.

    ``count``, ``total`` and ``squares`` are their noisy number, sum and sum of squares. The squares may have been
    counted on another grid, on which they are at most ``largest_square``, by default the square of ``largest``. There
    are at least two values, or there is no variance; if the noisy number does not show any, the value is 0 and the
    limits are 0 and the variance of two values at the two bounds.

    >>> from dither.inference import NoiseLaw, measured
    >>> sums = measured([1000.0, 0.0, 999.0], [NoiseLaw("laplace", 2.0)] * 3, confidence=0.95)
    >>> [round(float(number[0]), 3) for number in variance(*sums, largest=2.0)]
    [1.0, 0.992, 1.008]
    """
    square = largest * largest
    highest = square if largest_square is None else largest_square
    some = count.value >= 1
    possible = _possible(count, total, squares, largest, highest)
    size, first, second = (item.value for item in possible)
    value = np.where(some, np.minimum(second - first * first / size, square * size) / (size - 1), 0.0)
    if not count.resolved:
        low, high = variance_limits(count.range, total.range, squares.range, largest, highest)
    else:
        scale = _deviation_error(possible)
        least = first * first / size - scale  # a variance below 0 says that the truth is small: up to one error of it
        lowest = squares.at(np.clip(squares.value, least, np.maximum(highest * size, least)))
        low, high = limits(
            variance_samples, (count, possible[1], lowest), 0.0, 2 * square, scale / np.maximum(size - 1, 1.0)
        )
    return _around(value, np.where(some, low, 0.0), np.where(some, high, 2 * square))


def standard_deviation(square: IntervalEstimate) -> IntervalEstimate:
    """Return the root of a variance: a monotone function of it, so its limits are the roots of the limits.

    >>> [float(number) for number in standard_deviation(IntervalEstimate(4.0, 1.0, 9.0))]
    [2.0, 1.0, 3.0]
    """
    return IntervalEstimate(*(np.sqrt(np.maximum(number, 0.0)) for number in square))


def _possible(
    count: Measured, total: Measured, squares: Measured, largest: float, largest_square: float
) -> tuple[Measured, Measured, Measured]:
    """Return number, sum and sum of squares, moved to the nearest that at least two values can have.

    The values are within ``-largest .. largest`` and their squares at most ``largest_square``; a sum of squares is at
    least the square of the sum divided by the number (Cauchy and Schwarz).
    """
    size = np.maximum(count.value, 2.0)
    first = np.clip(total.value, -largest * size, largest * size)
    least = first * first / size
    second = np.clip(squares.value, least, np.maximum(largest_square * size, least))
    return count.at(size), total.at(first), squares.at(second)


def _deviation_error(sums: tuple[Measured, Measured, Measured]) -> Array:
    """Return the standard error that the noise gives the sample variance v, times n - 1, for each group.

    ``sums`` are the noisy number n, sum and sum of squares. With m the mean, the gradient of v in these numbers is
    ``(m^2 - v, -2 m, 1) / (n - 1)``; the covariance of the noise is that of its sample.
    """
    count, total, squares = sums
    center = total.value / count.value
    spread = (squares.value - total.value * center) / np.maximum(count.value - 1, 1.0)
    noise = np.stack([count.noise, total.noise, squares.noise])
    covariance = noise @ noise.T / noise.shape[1]
    gradient = np.stack([center * center - spread, -2 * center, np.ones_like(center)], axis=1)
    result: Array = np.sqrt(np.maximum(((gradient @ covariance) * gradient).sum(axis=1), 0.0))
    return result


def _quotient(values: Sequence[Array], noises: Sequence[Array]) -> Array:
    """Return samples of a quotient of two sums without their noise; NaN where the denominator is not positive."""
    (total, count), (of_total, of_count) = values, noises
    size = count - of_count
    return (total - of_total) / np.where(size > 0, size, np.nan)


def variance_samples(values: Sequence[Array], noises: Sequence[Array]) -> Array:
    """Return samples of the sample variance, corrected for curvature (see the module).

    ``values`` are the noisy number, sum and sum of squares, with one row for each group; ``noises`` are samples of
    their noise, with one column for each point of the sample. The result has groups by points, NaN where the number is
    at most 1. ``slope`` is ``Cov(F, G)/Var(G)`` of the module. ``gradient`` is ``(n - 1) dv/d(n, t, s)`` of the
    variance v; the G of the module is of the sum of squares, before it is divided by ``n - 1``.
    """
    (count, total, squares), noise = values, np.concatenate(noises)
    size = np.maximum(count, 2.0)
    center = total / size
    spread = (squares - total * center) / (size - 1)
    one, zero = np.ones_like(center), np.zeros_like(center)
    covariance = noise @ noise.T / noise.shape[1]
    gradient = np.concatenate([center * center - spread, -2 * center, one], axis=1)
    curved = np.concatenate([-center, one, zero], axis=1)
    largest = np.abs(gradient).max(axis=1, keepdims=True)  # the slope is of any multiple of the gradient
    gradient /= largest
    weighted = gradient @ (covariance / np.maximum(np.abs(covariance).max(), 1e-300))
    shared = (weighted * curved).sum(axis=1, keepdims=True)
    slope = shared / np.maximum((weighted * gradient).sum(axis=1, keepdims=True), 1e-300)
    result: Array = ((curved - slope * gradient) * np.sqrt(2 / size)) @ noise
    result *= result
    number = count - noise[0]
    number[number <= 1] = np.nan
    first = total - noise[1]
    first *= first
    first /= number
    result -= first
    result += squares - noise[2]
    number -= 1
    result /= number
    return result


def _around(value: Array, low: Numbers, high: Numbers) -> IntervalEstimate:
    """Return an estimate whose limits are widened to contain its value."""
    return IntervalEstimate(value, np.minimum(low, value), np.maximum(high, value))


Range = tuple[Numbers, Numbers]


def mean_limits(count: Range, total: Range, largest: float) -> Range:
    """Return the extremes of the mean of values within ``-largest .. largest``, over ranges of their number and their
    sum.

    If there may be no values, the limits are those of the values.

    >>> [round(float(limit), 4) for limit in mean_limits((95.0, 105.0), (30.0, 70.0), 2.0)]
    [0.2857, 0.7368]
    """
    shown = np.asarray(count[0]) > 0
    low, high = _quotients(total, (np.where(shown, count[0], 1.0), np.where(shown, count[1], 1.0)))
    return np.where(shown, np.clip(low, -largest, largest), -largest), np.where(
        shown, np.clip(high, -largest, largest), largest
    )


def variance_limits(count: Range, total: Range, squares: Range, largest: float, largest_square: float) -> Range:
    """Return the extremes of the sample variance of values within ``-largest .. largest``, over ranges of their number,
    sum and sum of squares, where one square is at most ``largest_square``.

    If there may be fewer than two values, the limits are 0 and the variance of two values at the two bounds.

    >>> low, high = variance_limits((99.0, 101.0), (-1.0, 1.0), (98.0, 100.0), 2.0, 4.0)
    >>> round(float(low), 3), round(float(high), 3)
    (0.98, 1.02)
    """
    square = largest * largest
    first = mean_limits(count, total, largest)
    shown = np.asarray(count[0]) > 1
    sizes = np.maximum(np.where(shown, count[0], 2.0), 2.0), np.maximum(np.where(shown, count[1], 2.0), 2.0)
    low, high = _quotients(squares, sizes)
    low, high = spread_limits(first, (np.maximum(low, 0.0), np.minimum(high, largest_square)), sizes, square)
    return np.where(shown, low, 0.0), np.where(shown, high, 2 * square)


def spread_limits(first: Range, second: Range, count: Range, largest: float) -> Range:
    """Return bounds on the variance ``(m2 - m1^2) N / (N - 1)`` from ranges of its parts.

    ``first`` and ``second`` are the (low, high) ranges of the moments m1 and m2, ``count`` that of the number N of
    values, and ``largest`` is the most that ``m2 - m1^2`` can be within the bounds of the values; it is at least 0.

    >>> low, high = spread_limits((0.5, 0.5), (0.5, 0.5), (2.0, 2.0), 0.25)
    >>> float(low), float(high)
    (0.5, 0.5)
    """
    ends = first[0] * first[0], first[1] * first[1]
    most = np.maximum(*ends)
    least = np.where((np.asarray(first[0]) < 0) & (np.asarray(first[1]) > 0), 0.0, np.minimum(*ends))
    low = np.maximum(second[0] - most, 0.0) * count[1] / (count[1] - 1)
    high = np.clip(second[1] - least, 0.0, largest) * count[0] / (count[0] - 1)
    return low, high


def _quotients(numerator: Range, denominator: Range) -> Range:
    """Return the smallest and the largest quotient over ranges of a numerator and a positive denominator."""
    (low, high), (least, most) = numerator, denominator
    return low / np.where(np.asarray(low) < 0, least, most), high / np.where(np.asarray(high) < 0, most, least)
