"""The Gaussian mechanism, calibrated on its exact curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import Concentrated, Event, GaussianNoise, gaussian_delta, gaussian_epsilon, gaussian_ratio
from dither.errors import InvalidArgument, NotPrivate
from dither.exact import exactly, log, square_root, up
from dither.guarantees import ZCDP, ApproxDP
from dither.mechanisms.additive import Additive, coordinates_of, shares
from dither.randomness import MAX_SCALE, MIN_SCALE, Normal, Source, discrete_gaussian, discrete_gaussian_one

_NORMAL = Normal()
_BITS = 96


@dataclass(frozen=True)
class Gaussian(Additive):
    """Release ``f(x) + N(0, sigma^2)``.

    *Statement.* If ``|f(x) - f(y)|_2 <= sensitivity`` for all neighbors x, y, the release is (epsilon,
    delta)-DP exactly when, with r = sigma / sensitivity, ``Phi(1/(2r) - epsilon r) - exp(epsilon) Phi(-1/(2r) -
    epsilon r) <= delta``. The smallest such sigma is used. Given ``rho`` instead, ``sigma = sensitivity /
    sqrt(2 rho)`` and the release is rho-zCDP.

    *Why.* The privacy loss is itself normal, with mean 1/(2r^2) and variance 1/r^2, whatever the dimension,
    because the noise is invariant under rotation (Balle and Wang 2018, Theorem 8).

    The classical ``sigma = sqrt(2 ln(1.25/delta)) sensitivity / epsilon``, ``method="classical"``, is a weaker bound
    (Dwork and Roth 2014, Theorem A.1), proved for epsilon below 1. For larger epsilon it is checked on the curve above:
    where it holds, the guarantee states its true delta; where it does not (first at epsilon 4.47 for delta 0.5, 6.77
    for 0.01, 8.42 for 1e-5 and 10.25 for 1e-12), the mechanism is refused with the true delta.

    Under (epsilon, delta) integers get the normal law correctly rounded to integers, a function of the ideal
    release, so the curve above holds in any dimension. The discrete Gaussian has another curve, with no closed
    form in several dimensions, but the same zCDP: it is what integers get under ``rho``.

    Parameters
    ----------
    sensitivity
        The l2 sensitivity; or a sequence, the sensitivity of each coordinate.
    epsilon, delta
        The guarantee; or ``rho`` instead of both.
    method
        ``"exact"``: the smallest sigma. ``"classical"``: the textbook formula.
    split
        With a sequence: each coordinate's weight in ``sum (sensitivity_i / sigma_i)^2``; by default in proportion to
        its sensitivity, which makes the total variance smallest.

    Examples
    --------
    >>> m = Gaussian(sensitivity=1, epsilon=1, delta=1e-6)
    >>> round(m.sigma, 4), m.guarantee
    (4.2247, ApproxDP(1, 1e-06))
    >>> isinstance(m.release([1.0, 2.0]), list)
    True
    >>> Gaussian(sensitivity=1, rho=0.5).sigma
    1.0
    >>> Gaussian(sensitivity=1, epsilon=8, delta=1e-5, method="classical").guarantee
    ApproxDP(8, 7.97059551809e-06)
    >>> Gaussian(sensitivity=1, epsilon=10, delta=1e-5, method="classical")
    Traceback (most recent call last):
    dither.NotPrivate: delta: expected at least 2.26537e-05, the true delta of the classical sigma at epsilon = 10, got
    1e-05. Fix: leave method out: the exact calibration holds for every epsilon.
    """

    sensitivity: float | Sequence[float]
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    method: Literal["exact", "classical"] = "exact"
    split: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Check the parameters and compute the standard deviation of each coordinate.

        A coordinate of sensitivity s and weight w (see ``split``) gets ``sigma = s r / sqrt(w)``, where r is the ratio
        of noise to sensitivity of one release with the whole guarantee.
        """
        sensitivities = coordinates_of(self.sensitivity)
        ratio = self._ratio()
        weights = shares(self.split, [float(sensitivity) for sensitivity in sensitivities])
        roots = [
            Fraction(1) if weight == 1 else Fraction(square_root(1 / weight, _BITS)[1], 1 << _BITS)
            for weight in weights
        ]
        scales = [up(sensitivity * ratio * root) for sensitivity, root in zip(sensitivities, roots, strict=True)]
        self._set(sensitivities, [_NORMAL] * len(sensitivities), scales, scales, joint=len(sensitivities) == 1)

    def _ratio(self) -> Fraction:
        """Return sigma / sensitivity, rounded up."""
        if self.method not in ("exact", "classical"):
            raise InvalidArgument("method", "'exact' or 'classical'", repr(self.method), "leave it out")
        if self.rho is not None:
            if self.epsilon is not None or self.delta is not None:
                raise InvalidArgument("rho", "rho, or epsilon and delta", "both", "leave one of them out")
            exact = 1 / (2 * ZCDP(self.rho).exact[0])
            low, high = square_root(exact, _BITS)
            root = Fraction(low, 1 << _BITS)
            return root if root * root == exact else Fraction(high, 1 << _BITS)
        if self.epsilon is None or self.delta is None:
            raise InvalidArgument("delta", "epsilon and delta, or rho", "neither", "pass epsilon=1, delta=1e-6")
        epsilon, delta = arguments.epsilon(self.epsilon), arguments.delta(self.delta)
        if self.method == "exact":
            return gaussian_ratio(epsilon, delta)
        twice = 2 * Fraction(log(Fraction(5, 4) / delta, _BITS)[1], 1 << _BITS)
        ratio = Fraction(square_root(twice, _BITS)[1], 1 << _BITS) / epsilon
        if epsilon >= 1 and exactly(true := gaussian_delta(epsilon, ratio)) > delta:
            raise NotPrivate(
                "delta",
                f"at least {true:.6g}, the true delta of the classical sigma at epsilon = {float(epsilon):g}",
                self.delta,
                "leave method out: the exact calibration holds for every epsilon",
            )
        return ratio

    @classmethod
    def for_error(
        cls, error: float, *, sensitivity: float, delta: float, confidence: float = 0.95, integer: bool = False
    ) -> Gaussian:
        """Return the mechanism with the smallest epsilon, at this delta, whose answers are within ``error`` of the
        truth with this confidence.

        >>> m = Gaussian.for_error(10, sensitivity=1, delta=1e-6)
        >>> round(m.epsilon, 3), m.error(confidence=0.95, integer=False) <= 10
        (0.816, True)
        """
        width = arguments.positive(error, "error")
        tail = 1 - arguments.confidence(confidence)
        z, _ = _NORMAL.quantile_one(tail)
        half_width = math.floor(width) + 0.5 if integer else width
        sigma = half_width / (z * (1 + 1e-9) + 2.0**-20)
        epsilon = gaussian_epsilon(exactly(sigma) / arguments.sensitivity(sensitivity), arguments.delta(delta))
        return cls(sensitivity, up(max(epsilon, Fraction(1, 10**12))), delta)

    @property
    def guarantee(self) -> ApproxDP | ZCDP:
        """Return (epsilon, delta)-DP, or rho-zCDP."""
        if self.rho is not None:
            return ZCDP(self.rho)
        assert self.epsilon is not None
        assert self.delta is not None
        if self.method == "classical" and self.epsilon >= 1:
            return ApproxDP(self.epsilon, exactly(self.privacy_curve(self.epsilon)))
        return ApproxDP(self.epsilon, self.delta)

    @property
    def sigma(self) -> float | tuple[float, ...]:
        """Return the standard deviation of the noise; one for each coordinate if there are several."""
        return self.scale

    @property
    def event(self) -> Event:
        """Return the event of any release for accountants.

        It is the normal law under (epsilon, delta), and rho-zCDP under ``rho``, where integers get the discrete law.

        >>> Gaussian(sensitivity=1, rho=0.5).event
        Concentrated(0.5)
        """
        return self.event_for(integer=self.rho is not None)

    def event_for(self, *, integer: bool) -> Event:
        """Return the event for accountants if only integers, or no integers, are released.

        >>> Gaussian(sensitivity=1, rho=0.5).event_for(integer=False)
        GaussianNoise(1)
        """
        return Concentrated(self.rho) if integer and self.rho is not None else GaussianNoise(self._exact_ratio())

    def _exact_ratio(self) -> Fraction:
        """Return sigma / sensitivity of the noise with rounded scales, rounded down."""
        if len(self._scales) == 1:
            return Fraction(self._scales[0]) / self._sensitivities[0]
        pairs = zip(self._sensitivities, self._scales, strict=True)
        squared_distance = sum(((sensitivity / Fraction(scale)) ** 2 for sensitivity, scale in pairs), Fraction(0))
        return Fraction(square_root(1 / squared_distance, _BITS)[0], 1 << _BITS)

    def _unit_variance(self, law: Normal) -> float:
        """Return 1, the variance of the standard normal law."""
        return 1.0

    def privacy_curve(self, epsilon: float) -> float:
        """Return the smallest delta for which the release is (epsilon, delta)-DP, rounded up.

        Under ``rho`` it is that of the real law; integers, which get the discrete law there, are covered by
        ``guarantee.to_approx``.

        >>> Gaussian(sensitivity=1, epsilon=1, delta=1e-6).privacy_curve(1) <= 1e-6
        True
        """
        return gaussian_delta(arguments.epsilon_or_zero(epsilon), self._exact_ratio())

    def _integer_noise_one(self, x: int, i: int, source: Source) -> int:
        """Draw the noise of coordinate i for the integer x: discrete Gaussian under ``rho``, else rounded normal."""
        if self.rho is None or self._scales[i] > MAX_SCALE:
            return super()._integer_noise_one(x, i, source)
        return discrete_gaussian_one(max(self._scales[i], MIN_SCALE), source)

    def integer_tail(self, value: int, threshold: int, bits: int) -> Fraction:
        """Return an upper bound on ``P(release(value) >= threshold)`` for an integer, that of the rounded law.

        The discrete law, under ``rho``, has less beyond its deviation, where its density is convex and each of its
        masses below the integral around it.
        """
        t, sigma = threshold - value - Fraction(1, 2), Fraction(max(self._scales[0], MIN_SCALE))
        if self.rho is None or sigma > MAX_SCALE:
            return super().integer_tail(value, threshold, bits)
        return Fraction(_NORMAL.tail(t / sigma, bits)[1], 2 << bits) if t > sigma else Fraction(1)

    def _one_by_one(self) -> bool:
        """Return whether noise for integers could exceed 64 bits, so that they are released one by one."""
        return super()._one_by_one() if self.rho is None else self._scales[0] > MAX_SCALE

    def _integer_noise(self, xs: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        """Draw noise for each integer of ``xs``: discrete Gaussian under ``rho``, else rounded normal noise."""
        if self.rho is None:
            return super()._integer_noise(xs, source)
        return discrete_gaussian(max(self._scales[0], MIN_SCALE), xs.size, source)
