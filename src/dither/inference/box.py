"""Limits of a mean and a variance when every noisy sum is within its error: conservative, at any confidence.

*Statement.* If every sum is within its range, the true mean and the true variance are within the limits.

*Why.* The sums then lie in a box. A quotient of sums with a positive denominator is monotone in each of them, so its
extremes over the box are at corners. The variance ``(m2 - m1^2) N / (N - 1)``, with m1 and m2 the first two moments of
N values, is at most what the largest m2, the smallest m1^2 and the smallest N give together, and at least what the
opposite extremes give. All limits are kept to what values within the bounds can have.

Ranges that hold together with some confidence therefore give limits that hold with at least that confidence. They are
two to three times as wide as they need be at 95 %, so :mod:`~dither.inference.moments` uses them only where a sample of
the noise cannot resolve the tails.
"""

from __future__ import annotations

import numpy as np

from dither.inference.measured import Numbers

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
    """Return the extremes of ``(m2 - m1^2) N / (N - 1)``, with ``m2 - m1^2`` between 0 and the ``largest`` that the
    bounds allow, over ranges of the two moments and the number of values.

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
    """Return the extremes of a quotient whose denominator is positive."""
    (low, high), (least, most) = numerator, denominator
    return low / np.where(np.asarray(low) < 0, least, most), high / np.where(np.asarray(high) < 0, most, least)
