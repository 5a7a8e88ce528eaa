"""The share of one noisy sum in the total of two, with exact limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dither.exact.search import bisect_floats
from dither.inference.intervals import Interval, outward
from dither.mechanisms import Laplace, MixedNoise


@dataclass(frozen=True)
class RatioInterval(Interval):
    """Exact limits for a = A / (A + B), known as A + X and B + Y with independent noise (Fieller's argument).

    *Statement.* The limits hold the true a with the confidence asked for.

    *Why.* At the true a, ``(A + X)(1 - a) - (B + Y) a = (1 - a) X - a Y``, whose quantile is known for every a: the
    limits are where it is just reached. X and Y are whole numbers, no larger than the real noise rounded, so half
    a step is added to its quantile.
    """

    high: int
    """The noisy A."""
    low: int
    """The noisy B."""
    noise: Laplace | MixedNoise
    first: float
    """The value of the ratio 0, in the units of the answer."""
    width: float
    """The distance from there to the value of the ratio 1."""

    def possible(self, a: float, tail: float) -> bool:
        """Whether P(\\|(1 - a) X - a Y\\| >= what would have to be noise if a were true) is at least ``tail``."""
        inner = self.noise.mechanism if isinstance(self.noise, MixedNoise) else self.noise
        needed = abs(self.high * (1 - a) - self.low * a) - inner.integer_step(0) / 2
        if isinstance(inner, Laplace):
            return tail_of_two(1 - a, a, max(needed, 0.0) / float(inner.scale)) >= tail  # type: ignore[arg-type]
        return needed <= math.hypot(1 - a, a) * float(inner.error(1 - tail, integer=False))

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Search outward from the estimate, on the scale from 0 to 1; the limits are rounded outward."""
        tail, here = 1 - confidence, (value - self.first) / self.width
        if self.high + self.low <= 0:
            return self.first, self.first + self.width
        limits = [
            end
            if self.possible(end, tail)
            else bisect_floats(lambda a: self.possible(a, tail), end, here, steps=60).fails
            for end in (0.0, 1.0)
        ]
        low, high = outward(self.first + self.width * limits[0], self.first + self.width * limits[1])
        return min(low, value), max(high, value)


def tail_of_two(p: float, q: float, t: float) -> float:
    """``P(|p X + q Y| > t)`` for independent standard Laplace X and Y.

    >>> round(tail_of_two(1.0, 0.0, 1.0), 6), round(tail_of_two(0.5, 0.5, 1.0), 6)
    (0.367879, 0.270671)
    """
    p, q = max(p, q), min(p, q)
    if q < 1e-12 * p:
        return math.exp(-t / p)
    if p - q < 1e-6 * p:
        return (1 + t / (2 * p)) * math.exp(-t / p)
    return (p * p * math.exp(-t / p) - q * q * math.exp(-t / q)) / (p * p - q * q)


__all__ = ["RatioInterval", "tail_of_two"]
