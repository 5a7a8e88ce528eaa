"""How sure the moments are: intervals for ratios and variances of noisy sums."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from dither.exact.search import bisect_floats
from dither.mechanisms import BoundedLaplace, Laplace, MixedNoise
from dither.stats.estimate import Interval, outward


@dataclass(frozen=True)
class RatioInterval(Interval):
    """Exact limits for a = A / (A + B), known as A + X and B + Y with independent noise (Fieller's argument).

    At the true a, ``(A + X)(1 - a) - (B + Y) a = (1 - a) X - a Y``, whose quantile is known for every a: the
    limits are where it is just reached. X and Y are whole numbers, no larger than the real noise rounded, so half
    a step is added to its quantile.
    """

    high: int
    low: int
    noise: Laplace | MixedNoise
    first: float
    width: float

    def _possible(self, a: float, tail: float) -> bool:
        """Whether P(|(1 - a) X - a Y| >= what would have to be noise if a were true) is above ``tail``."""
        inner = self.noise.mechanism if isinstance(self.noise, MixedNoise) else self.noise
        needed = abs(self.high * (1 - a) - self.low * a) - inner._integer_step(0) / 2
        if isinstance(inner, Laplace):
            return _pair_tail(1 - a, a, max(needed, 0.0) / float(inner.scale)) >= tail  # type: ignore[arg-type]
        return needed <= math.hypot(1 - a, a) * float(inner.error(1 - tail, integer=False))

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Search outward from the estimate, on the scale from 0 to 1."""
        tail, here = 1 - confidence, (value - self.first) / self.width
        if self.high + self.low <= 0:
            return self.first, self.first + self.width
        ends = []
        for outer in (0.0, 1.0):
            if self._possible(outer, tail):
                ends.append(outer)
            else:  # the side that fails lies outside the limits, so they are rounded outward
                ends.append(bisect_floats(lambda a: self._possible(a, tail), outer, here, steps=60).fails)
        low, high = outward(self.first + self.width * ends[0], self.first + self.width * ends[1])
        return min(low, value), max(high, value)


def _pair_tail(p: float, q: float, t: float) -> float:
    """P(|p X + q Y| > t) for independent standard Laplace X and Y."""
    p, q = max(p, q), min(p, q)
    if q < 1e-12 * p:
        return math.exp(-t / p)
    if p - q < 1e-6 * p:
        return (1 + t / (2 * p)) * math.exp(-t / p)
    return (p * p * math.exp(-t / p) - q * q * math.exp(-t / q)) / (p * p - q * q)


@dataclass(frozen=True)
class AroundBounded(Interval):
    """The interval of a bounded mechanism."""

    noise: BoundedLaplace

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Its half-width, kept to the limits."""
        width = self.noise.error(confidence)
        return max(value - width, self.noise.lower), min(value + width, self.noise.upper)


@dataclass(frozen=True)
class BernsteinInterval(Interval):
    """The variance from the three noisy Bernstein sums, and conservative limits for it.

    With m1 and m2 the first two moments of y and N the number of records, all ratios of the sums, the variance
    is ``(m2 - m1^2) N / (N - 1)``. All three sums are within t of the truth together with the confidence asked
    for; m1, m2 and N are monotone in each sum, so their extremes over that box are at its corners.
    """

    sums: tuple[int, ...]
    noise: Laplace | MixedNoise
    span: float
    width: float

    def _moments(self, sums: tuple[float, ...]) -> tuple[float, float, float]:
        b0, b1, b2 = (max(item, 0.0) for item in sums)
        everything = b0 + b1 + b2
        if everything <= 0:
            return 0.5, 0.5, 2.0
        return (b1 / 2 + b2) / everything, b2 / everything, max(everything / self.span**2, 2.0)

    def point(self) -> float:
        """The estimate, kept between 0 and the largest variance there is."""
        m1, m2, n = self._moments(tuple(float(item) for item in self.sums))
        return min(max(m2 - m1 * m1, 0.0), 0.25) * n / (n - 1) * self.width**2

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """The extremes over the corners of the box."""
        t = float(self.noise.error(confidence, coordinates=3, integer=True))
        corners = [
            self._moments(tuple(item + s * t for item, s in zip(self.sums, signs, strict=True)))
            for signs in itertools.product((-1, 1), repeat=3)
        ]
        first, second, sizes = zip(*corners, strict=True)
        low = max(min(second) - max(first) ** 2, 0.0) * max(sizes) / (max(sizes) - 1)
        high = min(max(second) - min(first) ** 2, 0.25) * min(sizes) / (min(sizes) - 1)
        return min(low * self.width**2, value), max(high * self.width**2, value)
