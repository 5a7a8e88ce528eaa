"""Limits for the population that the records were drawn from: the noise *and* the sampling error.

The intervals of the other modules are about the records at hand: they hold the answer that these records have without
noise. Here the records are taken as independent draws from a population, and the limits hold *its* mean, share,
variance or standard deviation. They are wider, and approach the usual confidence intervals where the noise is small.

*How.* Each sample of possible truths of :mod:`~dither.inference.measured` gets a sampling error of its own: one more
coordinate of the lattice, standard normal, z_k.

* *Mean:* ``mean_k - t(z_k) sqrt(variance_k / N_k)``, where t(z) is the quantile of Student's law with N - 1 degrees of
  freedom at the level of z. Without noise that is Student's interval.
* *Share, and the count of a share:* the p for which ``share_k - p = z_k sqrt(p (1 - p) / N)``, the score interval of
  Wilson. Where the number of records is not public, N p is the mean of a Poisson law, which is the limit of large N.
* *Variance:* the fourth moment is not released. As ``u = (x - mean)^2`` lies between 0 and M^2, with M the largest
  distance from the mean to a bound and has the mean v, its variance is at most ``v (M^2 - v)`` (Bhatia and Davis
  2000): the limits are those of a share, of v in M^2. They cover with *at least* the confidence; where values are
  concentrated far within the bounds, with much more.

* *Sum:* ``sum_k - z_k sqrt(S_k)``, with S the sum of squares: the variance of a sum of a Poisson number of draws.

*People with several rows.* Then people are drawn, not rows, and rows of one person may be alike. What is released does
not tell how much. If no person counts for more than ``cluster`` rows in all, with weights w, the square of what one
person adds is at most ``(sum w x)^2 <= (sum w) (sum w x^2) <= cluster sum w x^2`` (Cauchy and Schwarz): the variance
between people is at most ``cluster`` times what it would be if every row were drawn on its own. The limits take it for
that. They cover with *at least* the confidence, and are up to ``sqrt(cluster)`` times as wide as they need be.

*Coverage.* That of Student's and Wilson's intervals, which assume that sums of N draws are nearly normal: good from
some 30 records on, less so for skewed populations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dither.errors import InvalidArgument
from dither.inference.intervals import Interval
from dither.inference.measured import STANDARD_NORMAL, Array, Measured, NoiseLaw, limits, measured
from dither.inference.moments import IntervalEstimate, mean, variance, variance_samples


def wilson(share: Array, records: Array | float, z: Array) -> Array:
    """Return Wilson's limit of a share: the p with ``share - p = z sqrt(p (1 - p) / records)``.

    >>> wilson(np.array([0.5]), 100.0, np.array([1.96])).round(3)
    array([0.404])
    """
    inside = np.clip(share, 0.0, 1.0)
    half = z * z / (2 * records)
    root = np.sqrt(inside * (1 - inside) / records + half * half / (z * z + 1e-300))
    result: Array = np.clip((inside + half - z * root) / (1 + 2 * half), 0.0, 1.0)
    return result


def population_count(
    count: Measured, sampling: Measured, cluster: float = 1.0, records: float | None = None
) -> IntervalEstimate:
    """Return an interval for the mean of a count over samples of this size from the population.

    ``records`` is the number of all rows (None: private), and ``sampling`` the sampling error: the number 0 with
    standard normal noise, measured together with the count. ``cluster`` is the most rows that one person may have.

    >>> inputs = measured([1000.0, 0.0], [NoiseLaw("laplace", 1.0), STANDARD_NORMAL], confidence=0.95)
    >>> [round(float(number[0])) for number in population_count(*inputs)]
    [1000, 940, 1064]
    """
    _require_resolved(count)
    # a Poisson law is the limit of ever more records
    largest = max(float(np.abs(count.value).max(initial=1.0)), count.error)
    most = 1e9 * largest if records is None else max(records, 1.0)

    def statistic(values: Sequence[Array], noises: Sequence[Array]) -> Array:
        """Return samples of the mean count, each Wilson's limit at the level of its sampling error."""
        return most * wilson((values[0] - noises[0]) / most, most / cluster, noises[1])

    low, high = limits(statistic, (count, sampling), 0.0, np.inf if records is None else records)
    return IntervalEstimate(count.value, np.minimum(low, count.value), np.maximum(high, count.value))


def population_sum(total: Measured, squares: Measured, sampling: Measured, cluster: float = 1.0) -> IntervalEstimate:
    """Return an interval for the mean of a sum over samples of this size from the population.

    ``total`` is the noisy sum and ``squares`` the noisy sum of squares about 0, the variance of a sum of a Poisson
    number of draws. ``sampling`` is the sampling error, the number 0 with standard normal noise, which was measured
    together with the sums; ``cluster`` is the most rows that one person may have, 1 where each row is a person.

    >>> laws = [NoiseLaw("laplace", 1.0)] * 2 + [STANDARD_NORMAL]
    >>> [round(float(number[0])) for number in population_sum(*measured([500.0, 1000.0, 0.0], laws, confidence=0.95))]
    [500, 438, 562]
    """
    _require_resolved(total)

    def statistic(values: Sequence[Array], noises: Sequence[Array]) -> Array:
        """Return samples of the sum without noise, minus a sampling error of deviation ``sqrt(sum of squares)``."""
        spread = np.sqrt(cluster * np.maximum(values[1] - noises[1], 0.0))
        result: Array = values[0] - noises[0] - noises[2] * spread
        return result

    low, high = limits(statistic, (total, squares, sampling), -np.inf, np.inf)
    return IntervalEstimate(total.value, np.minimum(low, total.value), np.maximum(high, total.value))


def population_mean(
    count: Measured, total: Measured, squares: Measured, sampling: Measured, largest: float, cluster: float = 1.0
) -> IntervalEstimate:
    """Return the mean of the population, with limits by Student's law.

    ``count``, ``total`` and ``squares`` are the noisy number, sum and sum of squares of values within ``-largest ..
    largest``. ``sampling`` is the sampling error, the number 0 with standard normal noise, which was measured together
    with the sums; ``cluster`` is the most rows that one person may have, 1 where each row is a person.

    >>> laws = [NoiseLaw("laplace", 1.0)] * 3 + [STANDARD_NORMAL]
    >>> estimate = population_mean(*measured([1000.0, 0.0, 1000.0, 0.0], laws, confidence=0.95), largest=2.0)
    >>> [round(float(number[0]), 3) for number in estimate]
    [0.0, -0.062, 0.062]
    """
    _require_resolved(count)
    value = mean(count, total, largest).value

    def statistic(values: Sequence[Array], noises: Sequence[Array]) -> Array:
        """Return samples of the population's mean: the sample's mean without noise, minus ``t(z) sqrt(variance / N)``.

        z is the sampling error, a normal number, and t(z) Student's quantile at its level. With several rows for each
        person the variance is multiplied by ``cluster``.
        """
        number = values[0] - noises[0]
        number[number <= 1] = np.nan
        center = np.clip((values[1] - noises[1]) / number, -largest, largest)
        spread = np.clip(variance_samples(values[:3], noises[:3]), 0.0, (largest * largest - center * center))
        result: Array = center - _student(noises[3], number / cluster - 1) * np.sqrt(spread * cluster / number)
        return result

    low, high = limits(statistic, (count, total, squares, sampling), -largest, largest)
    return IntervalEstimate(value, np.minimum(low, value), np.maximum(high, value))


def population_variance(
    count: Measured, total: Measured, squares: Measured, sampling: Measured, largest: float, cluster: float = 1.0
) -> IntervalEstimate:
    """Return the variance of the population, with limits that cover it at least with the confidence.

    ``count``, ``total`` and ``squares`` are the noisy number, sum and sum of squares of values within ``-largest ..
    largest``. ``sampling`` is the sampling error, the number 0 with standard normal noise, which was measured together
    with the sums; ``cluster`` is the most rows that one person may have, 1 where each row is a person.

    >>> laws = [NoiseLaw("laplace", 1.0)] * 3 + [STANDARD_NORMAL]
    >>> estimate = population_variance(*measured([1000.0, 0.0, 1000.0, 0.0], laws, confidence=0.95), largest=2.0)
    >>> [round(float(number[0]), 2) for number in estimate]
    [1.0, 0.9, 1.11]
    """
    _require_resolved(count)
    value = variance(count, total, squares, largest).value

    def statistic(values: Sequence[Array], noises: Sequence[Array]) -> Array:
        """Return samples of the variance, with sampling error by Wilson's interval for a share of the largest
        variance."""
        number = values[0] - noises[0]
        number[number <= 1] = np.nan
        farthest = largest + np.minimum(np.abs((values[1] - noises[1]) / number), largest)
        highest = farthest * farthest
        return highest * wilson(variance_samples(values[:3], noises[:3]) / highest, number / cluster, noises[3])

    low, high = limits(statistic, (count, total, squares, sampling), 0.0, largest * largest)
    return IntervalEstimate(value, np.minimum(low, value), np.maximum(high, value))


def _student(z: Array, freedom: Array) -> Array:
    """Return Student's quantile at the level of a normal quantile z, by the first terms of Fisher's expansion.

    For fewer than four degrees of freedom it is that of four.
    """
    freedom = np.maximum(freedom, 4.0)
    square = z * z
    first = z * (square + 1) / 4
    second = z * ((5 * square + 16) * square + 3) / 96
    third = z * (((3 * square + 19) * square + 17) * square - 15) / 384
    result: Array = z + (first + (second + third / freedom) / freedom) / freedom
    return result


def _require_resolved(number: Measured) -> None:
    """Refuse a confidence for which the sample of noise has too few points."""
    if not number.resolved:
        raise InvalidArgument(
            "confidence",
            "at most 0.998 for an interval of the population",
            number.confidence,
            "ask for a lower confidence",
        )


@dataclass(frozen=True)
class PopulationCount(Interval):
    """The interval of the mean count over samples of the same size from the population.

    ``records`` is the number of all records where it is public, and None where it is not.
    """

    law: NoiseLaw
    records: int | None

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return Wilson's score interval at ``confidence`` for the noisy count ``value``, widened by the noise."""
        count, sampling = measured([value, 0.0], [self.law, STANDARD_NORMAL], confidence)
        records = None if self.records is None else float(self.records)
        _, low, high = population_count(count, sampling, records=records)
        return float(np.atleast_1d(low)[0]), float(np.atleast_1d(high)[0])


@dataclass(frozen=True)
class PopulationVariance(Interval):
    """The interval of the population's variance, for a noisy variance of a public number of records."""

    law: NoiseLaw
    records: int
    width: float
    """The distance between the bounds."""

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """Return the limits of the population's variance at ``confidence``, given the noisy variance ``value``.

        The variance as a share of the squared width gets Wilson's interval for a share.
        """
        inputs = measured([value, 0.0], [self.law, STANDARD_NORMAL], confidence)
        _require_resolved(inputs[0])
        square = self.width * self.width

        def statistic(values: Sequence[Array], noises: Sequence[Array]) -> Array:
            """Return samples of the variance, each Wilson's limit for it as a share of the squared width."""
            return square * wilson((values[0] - noises[0]) / square, float(self.records), noises[1])

        low, high = limits(statistic, inputs, 0.0, square / 4)
        return min(float(low[0]), value), max(float(high[0]), value)
