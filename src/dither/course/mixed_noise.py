"""Theorem 10 of the second document: Gaussian noise of the Laplace variance, private or refused."""

from __future__ import annotations

from fractions import Fraction

from dither import arguments
from dither.accounting import gaussian_delta
from dither.errors import NotPrivate
from dither.exact import exactly, pi, square_root, up
from dither.mechanisms import Gaussian, Laplace

_BITS = 96


def theorem_10(sensitivity: float, epsilon: float, delta: float) -> Laplace | Gaussian:
    """Return the mixed noise of Theorem 10: ``sigma^2 = 2 (sensitivity / epsilon)^2`` if ``sensitivity <= sqrt(pi)
    delta epsilon / 2``, else Laplace noise.

    *Statement.* The theorem claims (epsilon, delta)-DP, and is false: such Gaussian noise has a delta that depends on
    epsilon alone, so no threshold on the sensitivity can make it small. It is refused, with the true delta, whenever
    it is not (epsilon, delta)-DP, and granted with its true delta otherwise. :class:`~dither.MixedNoise` chooses
    between two calibrated laws instead.

    >>> theorem_10(0.01, 1, 0.0113)
    Traceback (most recent call last):
    dither.NotPrivate: delta: expected at least 0.0396326, the true delta of such Gaussian noise at this
    epsilon, whatever the sensitivity, got 0.0113. Fix: use MixedNoise(sensitivity, epsilon, delta).
    >>> type(theorem_10(1, 1, 0.01)).__name__
    'Laplace'
    """
    width, exponent, claimed = arguments.sensitivity(sensitivity), arguments.epsilon(epsilon), arguments.delta(delta)
    root_pi = Fraction(square_root(Fraction(pi(_BITS)[0], 1 << _BITS), _BITS)[0], 1 << _BITS)
    if width > root_pi * claimed * exponent / 2:
        return Laplace(sensitivity, epsilon)
    true = gaussian_delta(exponent, Fraction(square_root(Fraction(2), _BITS)[0], 1 << _BITS) / exponent)
    if exactly(true) > claimed:
        expected = (
            f"at least {true:.6g}, the true delta of such Gaussian noise at this epsilon, whatever the sensitivity"
        )
        raise NotPrivate("delta", expected, delta, "use MixedNoise(sensitivity, epsilon, delta)")
    return Gaussian(sensitivity, epsilon, up(Fraction(true)))
