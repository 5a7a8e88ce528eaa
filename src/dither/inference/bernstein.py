"""Mean and variance of one array from noisy Bernstein sums, with their intervals.

With y the place of a record between the bounds, from 0 to 1, the polynomials ``1 - y, y`` (degree 1) and ``(1 - y)^2,
2 y (1 - y), y^2`` (degree 2) add up to 1. So the number of records N, and their sum T and sum of squares S about the
middle, are linear in the sums b of these polynomials:

    degree 1:  N = b0 + b1,       T = (b1 - b0) / 2
    degree 2:  N = b0 + b1 + b2,  T = (b2 - b0) / 2,  S = (b0 - b1 + b2) / 4

Noise of N, T and S that comes from the noise of the same sums is correlated; :class:`~dither.inference.Measured` keeps
that, as its samples are taken of the sums themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dither.inference.intervals import Interval, outward
from dither.inference.measured import EXACT, STANDARD_NORMAL, Measured, NoiseLaw, measured
from dither.inference.moments import IntervalEstimate, mean, variance
from dither.inference.population import population_mean, population_variance
from dither.mechanisms import Laplace, MixedNoise


@dataclass(frozen=True)
class BernsteinInterval(Interval):
    """The mean or variance from two or three noisy Bernstein sums, and its limits.

    >>> interval = BernsteinInterval((60, 40), Laplace(1, 1), "mean", span=1, first=0.0, width=10.0)
    >>> interval.point(), [round(limit, 1) for limit in interval(4.0, 0.95)]
    (4.0, [3.8, 4.2])
    """

    sums: tuple[int, ...]
    noise: Laplace | MixedNoise
    statistic: Literal["mean", "variance"]
    span: int
    """The number of steps of the grid; sums of degree 2 are in units of its square."""
    first: float
    """The lower bound."""
    width: float
    """The distance between the bounds."""
    count: int | None = None
    """The number of records, where it is public."""
    population: bool = False
    """Whether the limits are for the population that the records were drawn from."""

    def _estimate(self, confidence: float) -> IntervalEstimate:
        """Return the statistic with its interval for values from -1/2 to 1/2, between the bounds.

        N, T and S (``count``, ``total`` and ``squares``) follow from the sums by the formulas of the module. With
        ``population`` a last number is the sampling error, 0 with standard normal noise.
        """
        unit = 1 / float(self.span ** (len(self.sums) - 1))
        law = NoiseLaw.of(self.noise, integer=True, unit=unit)
        values, laws = [float(item) * unit for item in self.sums], [law] * len(self.sums)
        public = [] if self.count is None else [float(self.count)]
        extra = [EXACT] * len(public) + [STANDARD_NORMAL] * self.population
        numbers = measured([*values, *public, *([0.0] * self.population)], [*laws, *extra], confidence)
        sums = numbers[: len(self.sums)]
        count = sums[0] + sums[1] if len(sums) == 2 else sums[0] + sums[1] + sums[2]
        if self.count is not None:
            count = numbers[len(self.sums)]
        total = (sums[-1] - sums[0]) * 0.5
        if self.statistic == "mean" and not self.population:
            return mean(count, total, 0.5)
        squares: Measured = (sums[0] - sums[1] + sums[2]) * 0.25
        if not self.population:
            return variance(count, total, squares, 0.5)
        moment = population_mean if self.statistic == "mean" else population_variance
        return moment(count, total, squares, numbers[-1], 0.5)

    def _within_bounds(self, estimate: IntervalEstimate) -> tuple[float, float, float]:
        """Return value and limits for the data's own bounds, from an estimate for values from -1/2 to 1/2."""
        if self.statistic == "mean":
            estimate = estimate.shifted(0.5).scaled(self.width).shifted(self.first)
        else:
            estimate = estimate.scaled(self.width**2)
        # the numbers of an estimate are arrays, here of one number
        value, low, high = (float(np.atleast_1d(number)[0]) for number in estimate)
        return value, low, high

    def point(self) -> float:
        """Return the estimate, clipped to the values that data within the bounds can have."""
        return self._within_bounds(self._estimate(0.5))[0]

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return the limits, widened to contain the value."""
        _, low, high = self._within_bounds(self._estimate(confidence))
        low, high = outward(low, high)
        return min(low, value), max(high, value)
