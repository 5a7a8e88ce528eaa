"""Kinds of intervals around a released number: the limits that hold the answer without noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dither.mechanisms import BoundedLaplace


class Interval:
    """The limits that hold the answer without noise with a given confidence."""

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return the limits around a released ``value``."""
        raise AssertionError("each kind of interval has its limits")

    def half_width(self, value: float, confidence: float) -> float:
        """Return the larger distance from ``value`` to the limits."""
        low, high = self(value, confidence)
        return max(high - value, value - low)

    def text(self, value: float) -> str:
        """Return the half-width at 95 % as text, such as ``"± 0.25"``."""
        return f"± {self.half_width(value, 0.95):.4g}"


def outward(low: float, high: float) -> tuple[float, float]:
    """Return the limits ``low`` and ``high``, each moved outward to the next float if they are very close.

    They are close if they differ by at most 2^20 units in the last place, where the rounding errors of computing them
    might exclude the true value.

    >>> outward(0.0, 1.0), outward(2.0**53, 2.0**53)
    ((0.0, 1.0), (9007199254740991.0, 9007199254740994.0))
    """
    if high - low > 2.0**20 * math.ulp(max(abs(low), abs(high))):
        return low, high
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


@dataclass(frozen=True)
class Around(Interval):
    """``factor`` times the half-width of the noise, on both sides, clipped to the domain of the answer."""

    noise: Any
    factor: float = 1.0
    integer: bool = False
    low: float = -math.inf
    high: float = math.inf

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return ``value`` plus and minus the half-width at ``confidence``, clipped to the range of the answer.

        For a noisy number that was clipped to the domain, this is the interval around the domain's end. It contains the
        part of the interval around the noisy number that lies in the domain, so it is valid and never empty.
        """
        width = self.factor * self.noise.error(confidence, integer=self.integer)
        low, high = value - width, value + width
        if not self.integer or abs(value) >= 2.0**52:
            low, high = outward(low, high)
        return min(max(low, self.low), self.high), max(min(high, self.high), self.low)


@dataclass(frozen=True)
class AroundBounded(Interval):
    """The interval of a mechanism whose releases stay within limits."""

    noise: BoundedLaplace

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return the value plus and minus the half-width, clipped to the limits of the noise."""
        width = self.noise.error(confidence)
        return max(value - width, self.noise.lower), min(value + width, self.noise.upper)


@dataclass(frozen=True)
class Root(Interval):
    """The square roots of the limits of another interval."""

    inner: Interval

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return the square roots of the limits of the inner interval for the square."""
        low, high = self.inner(value * value, confidence)
        return math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))


@dataclass(frozen=True)
class WithinBounds(Interval):
    """The bounds: the size of the noise depends on the data, so no narrower limits may be stated."""

    low: float
    high: float

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return the bounds."""
        return self.low, self.high

    def text(self, value: float) -> str:
        """Return a text without a half-width: the size of the noise is private."""
        return "with noise of a private size"


@dataclass(frozen=True)
class RankInterval(Interval):
    """The number of ranks by which a selected value can be off: ``(ln d + ln(1/tail)) / rate``.

    d is the number of candidates and ``rate`` the exponent of the exponential mechanism for one record missed.

    How far that is in the units of the data is not public without a further release, so the limits in those
    units are the bounds.
    """

    rate: float
    points: int
    low: float
    high: float

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return the bounds: no narrower limits are certain."""
        return self.low, self.high

    def ranks(self, confidence: float) -> float:
        """Return the largest error of the rank, in records, with probability ``confidence``: the formula above."""
        return (math.log(self.points) - math.log(1 - confidence)) / self.rate

    def text(self, value: float) -> str:
        """Return the largest error of the rank at 95 % as text, such as ``"within 12 ranks"``."""
        return f"within {self.ranks(0.95):.0f} ranks"
