"""Covariance, correlation and regression of two columns from noisy sums of their products, each with an interval.

With N, A, B the number of pairs and the sums of their two values, and S_aa, S_bb, S_ab the sums of squares and
products, the sums about the means are ``C_ab = S_ab - A B / N``, and everything here is a function of them:

====================  ====================================================
covariance            ``C_ab / (N - 1)``, or ``C_ab / N``
correlation           ``C_ab / sqrt(C_aa C_bb)``
slope of b on a       ``C_ab / C_aa``
intercept             ``B / N - slope A / N``
====================  ====================================================

*Limits.* They come from a sample of possible truths (:mod:`~dither.inference.measured`). As for a variance
(:mod:`~dither.inference.moments`), a noisy ``C_ab`` is lower than its truth by ``F_a F_b / N``, with
``F_a = e_a - m_a e_N`` the noise of a centered sum, up to a part that is linear in the noise; a sample repeats
that step. So twice the product of those parts of F_a and F_b that are uncorrelated with the linear part of the
statistic is added to every sample. What is left is of second order where the statistic is not linear in the C.

A sample without any pairs, or with a variance that is not positive where one is divided by, supports no value in
particular, and counts as beyond both limits: where a variance is lost in its noise, a slope has no limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dither.inference.measured import Array, Measured, Statistic, limits
from dither.inference.moments import IntervalEstimate

PairStatistic = Literal["covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2"]
_TINY = 1e-300
_FLAT = 1e-9
"""A variance that is taken for none at all: its direction would be beyond what a double holds."""


@dataclass(frozen=True)
class PairSums:
    """Noisy sums over pairs of values a and b, each between 0 and 1.

    >>> from dither.inference import NoiseLaw, measured
    >>> parts = measured([40.0, 40.0, 10.0, 10.0, 0.0, 0.0], [NoiseLaw("laplace", 1.0)] * 6, confidence=0.95)
    >>> PairSums.of_parts(parts).count.value
    array([100.])
    """

    count: Measured
    first: Measured
    second: Measured
    first_squares: Measured
    second_squares: Measured
    products: Measured

    @classmethod
    def of_parts(cls, parts: Sequence[Measured]) -> PairSums:
        """Return the sums of a pair from those of the six terms of ``(a + b + c)^2``, where ``a + b + c = 1``.

        The terms are a^2, b^2, c^2, 2ab, 2ac and 2bc.
        """
        aa, bb, cc, ab, ac, bc = parts
        count = aa + bb + cc + ab + ac + bc
        return cls(count, aa + (ab + ac) * 0.5, bb + (ab + bc) * 0.5, aa, bb, ab * 0.5)

    @property
    def swapped(self) -> PairSums:
        """Return the sums of the pairs (b, a)."""
        return PairSums(self.count, self.second, self.first, self.second_squares, self.first_squares, self.products)

    @property
    def inputs(self) -> tuple[Measured, ...]:
        """Return all six sums, in order."""
        return self.count, self.first, self.second, self.first_squares, self.second_squares, self.products


def pair_statistic(kind: PairStatistic, sums: PairSums, at: float = 0.0) -> IntervalEstimate:
    """Return a statistic of pairs of numbers, with its limits; NaN where there seem to be no pairs.

    ``kind`` is the SQL name of the statistic (such as ``"corr"``, ``"covar_pop"`` or ``"regr_slope"``), and ``sums``
    are the noisy number, sums, sums of squares and sum of products. Values are scaled so that the distance between
    their bounds is 1, hence the limits of a covariance, 1/4. The slope is that of the second value on the first, the
    intercept the height of that line where the first is ``at``. The value is NaN where the noisy number is below 1.5.

    >>> from dither.inference import NoiseLaw, measured
    >>> parts = measured([400.0, 400.0, 100.0, 700.0, 10.0, 10.0], [NoiseLaw("laplace", 1.0)] * 6, confidence=0.95)
    >>> estimate = pair_statistic("corr", PairSums.of_parts(parts))
    >>> [round(float(number[0]), 2) for number in estimate]
    [-0.04, -0.07, -0.01]
    """
    values = [item.value for item in sums.inputs]
    number = np.maximum(values[0], 2.0)
    first, second = values[1] / number, values[2] / number
    aa = np.maximum(values[3] - first * values[1], 0.0)
    bb = np.maximum(values[4] - second * values[2], 0.0)
    most = np.sqrt(aa * bb)
    ab = np.clip(values[5] - first * values[2], -most, most)
    with np.errstate(all="ignore"):
        value = _of_central(kind, number, first - at, second, aa, bb, ab)
    lowest, highest = {"corr": (-1.0, 1.0), "regr_r2": (-1.0, 1.0)}.get(kind, (-np.inf, np.inf))
    if kind in ("covar_pop", "covar_samp"):
        lowest, highest = (-0.25, 0.25) if kind == "covar_pop" else (-0.5, 0.5)
    value = np.where(values[0] >= 1.5, np.clip(value, lowest, highest), np.nan)
    if not sums.count.resolved:
        low, high = np.full_like(value, lowest), np.full_like(value, highest)
    else:
        low, high = limits(_samples(kind, at), sums.inputs, lowest, highest)
    if kind == "regr_r2":
        squares = np.square([low, high])
        least = np.where((low < 0) & (high > 0), 0.0, squares.min(axis=0))
        value, low, high = np.square(value), least, squares.max(axis=0)
    return IntervalEstimate(value, np.fmin(low, value), np.fmax(high, value))


def _of_central(
    kind: PairStatistic, number: Array, first: Array, second: Array, aa: Array, bb: Array, ab: Array
) -> Array:
    """Return the statistic ``kind`` from central sums; for ``regr_r2`` it is the correlation, not yet squared.

    ``number`` is the number of pairs, ``first`` and ``second`` are the means, ``aa`` and ``bb`` the sums of squared
    deviations from them, and ``ab`` the sum of their products.
    """
    if kind in ("covar_pop", "covar_samp"):
        return ab / (number - (kind == "covar_samp"))
    if kind in ("corr", "regr_r2"):
        correlation: Array = np.clip(ab / np.sqrt(_positive(aa) * _positive(bb)), -1.0, 1.0)
        return correlation
    slope = ab / _positive(aa)
    return slope if kind == "regr_slope" else second - slope * first


def _positive(square: Array) -> Array:
    """Return sums of squares, with NaN in place of those that are not positive."""
    result: Array = np.where(square > 0, square, np.nan)
    return result


def _gradient(
    kind: PairStatistic, means: tuple[Array, Array], sums: tuple[Array, Array, Array], size: Array, at: float
) -> Array:
    """Return the direction in which the noise of the six sums moves the statistic ``kind``, for each group.

    ``means`` are those of the two values, ``sums`` the central sums (aa, bb, ab), ``size`` is the number of pairs, and
    ``at`` is where the intercept is taken. The result has one row for each group and one column for each of number,
    sum a, sum b, sum aa, sum bb and sum ab. It is the gradient up to a positive factor; its length has no use.
    """
    (a, b), (aa, bb, ab) = means, sums
    zero, one = np.zeros_like(a), np.ones_like(a)
    of_first, of_second = np.stack([-a, one, zero, zero, zero, zero], 1), np.stack([-b, zero, one, zero, zero, zero], 1)
    of_aa = np.stack([a * a, -2 * a, zero, one, zero, zero], 1)
    of_bb = np.stack([b * b, zero, -2 * b, zero, one, zero], 1)
    of_ab = np.stack([a * b, -b, -a, zero, zero, one], 1)
    if kind in ("covar_pop", "covar_samp"):
        of_ab[:, 0] -= ab / size
        return of_ab
    aa, bb = np.maximum(aa, _FLAT * size), np.maximum(bb, _FLAT * size)
    if kind in ("corr", "regr_r2"):
        return of_ab - (ab / aa / 2)[:, None] * of_aa - (ab / bb / 2)[:, None] * of_bb
    slope = (ab / aa)[:, None]
    along = of_ab - slope * of_aa
    if kind == "regr_slope":
        return along
    return (of_second - slope * of_first) / size[:, None] - ((a - at) / aa)[:, None] * along


def _residual(curved: Array, gradient: Array, covariance: Array) -> Array:
    """Return the part of a linear function of the noise that is uncorrelated with another one.

    Each row of ``curved`` and of ``gradient`` holds the coefficients of a linear function for one group, and
    ``covariance`` is that of the noise. The regression of the first on the second is subtracted, as the curvature
    correction of :mod:`dither.inference.moments` asks for.
    """
    weighted = gradient @ covariance
    shared = (weighted * curved).sum(axis=1, keepdims=True)
    result: Array = curved - shared / np.maximum((weighted * gradient).sum(axis=1, keepdims=True), _TINY) * gradient
    return result


def _samples(kind: PairStatistic, at: float) -> Statistic:
    """Return a function that computes the statistic ``kind`` in every sample of possible truths.

    It takes noisy sums and samples of their noise (:func:`~dither.inference.measured.limits`), and adds twice the
    square of the uncorrelated part of the means' noise, as :mod:`dither.inference.moments` explains for a variance.
    ``at`` is where an intercept is taken.
    """

    def statistic(values: Sequence[Array], noises: Sequence[Array]) -> Array:
        """Return samples of the statistic from noisy sums, corrected for curvature."""
        noise = np.concatenate(noises)
        covariance = noise @ noise.T / noise.shape[1]
        size, first, second, first_squares, second_squares, products = (item[:, 0] for item in values)
        size = np.maximum(size, 2.0)
        a, b = first / size, second / size
        central = first_squares - first * a, second_squares - second * b, products - first * b
        gradient = _gradient(kind, (a, b), central, size, at)
        zero, one = np.zeros_like(a), np.ones_like(a)
        curved_a, curved_b = (
            _residual(curved, gradient, covariance) @ noise
            for curved in (
                np.stack([-a, one, zero, zero, zero, zero], 1),
                np.stack([-b, zero, one, zero, zero, zero], 1),
            )
        )
        number, t, u, tt, uu, tu = (value - item for value, item in zip(values, noises, strict=True))
        number[number <= 1] = np.nan
        twice = (2 / size)[:, None]
        with np.errstate(all="ignore"):
            aa = tt - t * t / number + twice * curved_a * curved_a
            bb = uu - u * u / number + twice * curved_b * curved_b
            ab = tu - t * u / number + twice * curved_a * curved_b
            return _of_central(kind, number, t / number - at, u / number, aa, bb, ab)

    return statistic
