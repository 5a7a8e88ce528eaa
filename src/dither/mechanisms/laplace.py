"""The Laplace mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import DiscreteLaplaceNoise, Event, LaplaceNoise, Pure, pure_delta
from dither.exact import exp_neg, up
from dither.exact.search import bisect_floats
from dither.guarantees import PureDP
from dither.mechanisms.additive import Additive, coordinates_of, shares
from dither.randomness import (
    MAX_SCALE,
    MIN_SCALE,
    Exponential,
    Source,
    discrete_laplace,
    discrete_laplace_one,
)

_LAPLACE = Exponential(symmetric=True)
_BITS = 80


@dataclass(frozen=True)
class Laplace(Additive):
    """Release ``f(x) + Lap(sensitivity / epsilon)``.

    *Statement.* If ``|f(x) - f(y)|_1 <= sensitivity`` for all neighbors x, y (under the relation for which the
    sensitivity was computed), the release is epsilon-DP.

    *Why.* The density at z is proportional to ``exp(-|z - f(x)|_1 / b)``, and by the triangle inequality it
    changes by a factor of at most ``exp(sensitivity / b) = exp(epsilon)`` between neighbors (Dwork, McSherry,
    Nissim and Smith 2006). Integers get the discrete Laplace law, proportional to ``exp(-|k| / b)`` on the
    integers, for which the same line holds; all else gets the real law, correctly rounded to a public lattice.

    Parameters
    ----------
    sensitivity
        The l1 sensitivity; or a sequence, the sensitivity of each coordinate, over which epsilon is then split.
    epsilon
        The privacy loss of the whole release.
    split
        Weights of the split; by default in proportion to sensitivity^(2/3), which makes the total variance smallest.

    Examples
    --------
    >>> m = Laplace(sensitivity=1, epsilon=0.5)
    >>> m.scale, m.variance, m.guarantee
    (2.0, 8.0, PureDP(0.5))
    >>> isinstance(m.release(42), int), isinstance(m.release(42.0), float)
    (True, True)
    >>> round(m.error(confidence=0.95, integer=False), 4)
    5.9915
    >>> from dither.randomness import SeededSource
    >>> m.release(42, source=SeededSource(1))
    43 (seeded, not private)
    """

    sensitivity: float | Sequence[float]
    epsilon: float
    split: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Check the parameters and compute the scale of each coordinate: its sensitivity over its share of epsilon."""
        sensitivities = coordinates_of(self.sensitivity)
        own_epsilon = arguments.epsilon(self.epsilon)
        # these shares of epsilon make the sum of the variances smallest
        weights = shares(self.split, [float(sensitivity) ** (2 / 3) for sensitivity in sensitivities])
        pairs = zip(sensitivities, weights, strict=True)
        scales = [up(sensitivity / (own_epsilon * weight)) for sensitivity, weight in pairs]
        self._set(sensitivities, [_LAPLACE] * len(sensitivities), scales, scales, joint=len(sensitivities) == 1)

    @classmethod
    def for_error(cls, error: float, *, sensitivity: float, confidence: float = 0.95, integer: bool = False) -> Laplace:
        """Return the mechanism with the smallest epsilon whose answers are within ``error`` of the truth.

        ``confidence`` is the probability with which they are, ``sensitivity`` is that of the class, and ``integer``
        says that integers are released, with discrete noise. The added 2^-20 pays for the rounding to the lattice.

        >>> round(Laplace.for_error(5, confidence=0.95, sensitivity=1).epsilon, 4)
        0.5991
        """
        width, tail = arguments.positive(error, "error"), 1 - arguments.confidence(confidence)
        exact = arguments.sensitivity(sensitivity)
        needed = math.log(1 / tail) + 2.0**-20
        if integer:
            # 2 q^(k+1) / (1 + q) <= tail, with q = exp(-epsilon / sensitivity) and k the whole part of the error
            k = math.floor(width)

            def fits(rate: float) -> bool:
                """Return whether discrete noise of this rate exceeds k with at most the tail probability."""
                return math.log(2) - rate * (k + 1) - math.log1p(math.exp(-rate)) <= math.log(tail)

            rate = bisect_floats(fits, 0.0, needed + 1, steps=200).holds
            return cls(sensitivity, up(exact * Fraction(rate)) * (1 + 1e-12))
        return cls(sensitivity, up(exact * Fraction(needed) / Fraction(width)))

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP."""
        return PureDP(self.epsilon)

    @property
    def event(self) -> Event:
        """Return the event of any release for accountants: pure epsilon-DP, unless no integer can move.

        Integers can lose as much as randomized response does. See :meth:`event_for`.

        >>> Laplace(sensitivity=1, epsilon=0.5).event
        Pure(0.5)
        """
        if len(self._sensitivities) == 1 and self._sensitivities[0] < 1:
            return self.event_for(integer=False)
        return Pure(arguments.epsilon(self.epsilon))

    def event_for(self, *, integer: bool) -> Event:
        """Return the event for accountants if only integers, or no integers, are released: the law itself.

        See :meth:`privacy_curve` for why vectors are no worse than numbers.

        >>> m = Laplace(sensitivity=3, epsilon=0.5)
        >>> m.event_for(integer=True), m.event_for(integer=False)
        (DiscreteLaplaceNoise(6, 3), LaplaceNoise(2))
        """
        epsilons = self._coordinate_epsilons()
        shift = math.floor(self._sensitivities[0])
        if not integer or (len(epsilons) == 1 and (shift == 0 or self._scales[0] > MAX_SCALE)):
            return LaplaceNoise(1 / sum(epsilons, Fraction(0)))
        return (
            Pure(arguments.epsilon(self.epsilon))
            if len(epsilons) > 1
            else DiscreteLaplaceNoise(Fraction(self._scales[0]), shift)
        )

    def _unit_variance(self, law: Exponential) -> float:
        """Return 2, the variance of the standard Laplace law."""
        return 2.0

    def privacy_curve(self, epsilon: float, *, integer: bool | None = None) -> float:
        """Return the smallest delta for which the release is (epsilon, delta)-DP, rounded up.

        The real law: ``1 - exp((epsilon - e) / 2)``, e the mechanism's own epsilon. The discrete law at
        sensitivity D: ``F(j) - exp(epsilon) F(j - D)`` with ``j = floor((D - epsilon b) / 2)`` and F its
        distribution function; at D = 1 it is randomized response. By default the larger of the two.

        A vector does not change this, nor does a split (where the real curve, at the sum of the epsilons, is an
        upper bound). Both laws are log-concave, so the best test between shifts is a threshold and the
        trade-off function of a shift a + b is that of a followed by b; changing one coordinate by a and then
        another by b has no more power (Dong, Roth and Su 2022, on group privacy). One coordinate moved by all
        of the sensitivity is the worst case.

        >>> m = Laplace(sensitivity=1, epsilon=1)
        >>> round(m.privacy_curve(0, integer=False), 6), round(m.privacy_curve(0), 6), m.privacy_curve(1)
        (0.393469, 0.462117, 0.0)
        """
        exact_epsilon = arguments.epsilon_or_zero(epsilon)
        epsilons = self._coordinate_epsilons()
        own_epsilon = sum(epsilons, Fraction(0))
        if exact_epsilon >= own_epsilon:
            return 0.0
        real = 1 - Fraction(exp_neg((own_epsilon - exact_epsilon) / 2, _BITS)[0], 1 << _BITS)
        shift = math.floor(self._sensitivities[0])
        if integer is False or (len(epsilons) == 1 and shift == 0):
            return up(real)
        # with several sensitivities every coordinate may move at once: the bound of all epsilon-DP releases
        several = len(epsilons) > 1
        discrete = pure_delta(own_epsilon, exact_epsilon) if several else self._discrete_curve(exact_epsilon, shift)
        return up(discrete if integer else max(real, discrete))

    def _coordinate_epsilons(self) -> list[Fraction]:
        """Return the epsilon of each coordinate, from the rounded scales."""
        pairs = zip(self._sensitivities, self._scales, strict=True)
        return [sensitivity / Fraction(scale) for sensitivity, scale in pairs]

    def _discrete_curve(self, epsilon: Fraction, shift: int) -> Fraction:
        """Return an upper bound on delta(epsilon) of discrete Laplace noise K for an integer that moves by ``shift``.

        It is ``P(K <= j) - e^epsilon P(K <= j - shift)``, j the last integer where the loss is at least epsilon.
        """
        scale = Fraction(self._scales[0])
        j = math.floor((shift - epsilon * scale) / 2)
        q = [Fraction(end, 1 << _BITS) for end in exp_neg(1 / scale, _BITS)]

        def below(k: int, high: int) -> Fraction:
            """Return P(K <= k) for the discrete Laplace law, from below (high=0) or above (high=1)."""
            if k < 0:
                return Fraction(exp_neg(-k / scale, _BITS)[high], 1 << _BITS) / (1 + q[1 - high])
            return 1 - Fraction(exp_neg((k + 1) / scale, _BITS)[1 - high], 1 << _BITS) / (1 + q[high])

        growth = (1 << _BITS) / Fraction(exp_neg(epsilon, _BITS)[1])
        return max(Fraction(0), below(j, 1) - growth * below(j - shift, 0))

    def _integer_noise_one(self, x: int, i: int, source: Source) -> int:
        """Draw discrete Laplace noise of coordinate i; beyond its largest scale, the rounded real noise."""
        if self._scales[i] > MAX_SCALE:
            return super()._integer_noise_one(x, i, source)
        return discrete_laplace_one(max(self._scales[i], MIN_SCALE), source)

    def _one_by_one(self) -> bool:
        """Return whether the noise is so wide that sums of 64 bits could overflow."""
        return self._scales[0] > MAX_SCALE / 64

    def _integer_noise(self, xs: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        """Draw discrete Laplace noise for each integer of ``xs``."""
        return discrete_laplace(max(self._scales[0], MIN_SCALE), xs.size, source)

    def integer_tail(self, value: int, threshold: int, bits: int) -> Fraction:
        """Return an upper bound on ``P(release(value) >= threshold)`` for an integer.

        It is ``q^t / (1 + q)`` with q = exp(-1/scale) and t = threshold - value.
        """
        t, scale = threshold - value, Fraction(max(self._scales[0], MIN_SCALE))
        if scale > MAX_SCALE:
            return super().integer_tail(value, threshold, bits)
        if t <= 0:
            return Fraction(1)
        q = Fraction(exp_neg(1 / scale, bits)[0], 1 << bits)
        return Fraction(exp_neg(t / scale, bits)[1], 1 << bits) / (1 + q)

    def _integer_error(self, i: int, width: float, tail: float) -> float:
        """Return the smallest k with P(|K| > k) <= ``tail`` for the integer noise K of coordinate ``i``.

        With scale b and q = exp(-1/b) that probability is ``2 q^(k+1) / (1 + q)``. ``width``, the error of real noise,
        is used where the scale is too large for integer noise to be drawn.
        """
        scale = self._scales[i]
        if scale > MAX_SCALE:
            return super()._integer_error(i, width, tail)
        excess = math.log(2) - math.log1p(math.exp(-1 / scale)) - math.log(tail)
        return float(max(0, math.ceil(scale * excess * (1 + 1e-13) - 1)))
