"""Theorem 10 of the second document: Gaussian noise of the Laplace variance, private or refused."""

from __future__ import annotations

from fractions import Fraction

from dither import arguments
from dither.accounting import gaussian_delta
from dither.errors import NotPrivate
from dither.exact import exactly, pi, square_root, up
from dither.mechanisms import Gaussian, Laplace

_BITS = 96


def theorem_10(
    sensitivity: float, epsilon: float, delta: float, *, threshold: float | None = None, sigma: float | None = None
) -> Laplace | Gaussian:
    """Return the mixed noise of Definition 9: normal if ``sensitivity <= threshold``, else Laplace noise.

    *Statement.* Theorem 10 sets ``threshold = sqrt(pi) delta epsilon / 2`` and ``sigma = sqrt(2) sensitivity /
    epsilon``, the defaults here, claims (epsilon, delta)-DP, and is false: the delta of such Gaussian noise depends on
    epsilon alone, so no threshold on the sensitivity can make it small. It is refused, with the true delta, whenever
    it is not (epsilon, delta)-DP, and granted with its true delta otherwise; so is any other sigma. Laplace noise is
    epsilon-DP whatever the threshold. :class:`~dither.MixedNoise` chooses between two calibrated laws instead.

    >>> theorem_10(0.01, 1, 0.0113)
    Traceback (most recent call last):
    dither.NotPrivate: delta: expected at least 0.0396326, the true delta of Gaussian noise with sigma = 1.41421 times
    the sensitivity at this epsilon, got 0.0113. Fix: use MixedNoise(sensitivity, epsilon, delta).
    >>> type(theorem_10(1, 1, 0.01)).__name__
    'Laplace'
    >>> round(theorem_10(1, 1, 0.01, threshold=2, sigma=3).delta, 6)
    0.000208
    """
    width, exponent, claimed = arguments.sensitivity(sensitivity), arguments.epsilon(epsilon), arguments.delta(delta)
    if threshold is None:
        root_pi = Fraction(square_root(Fraction(pi(_BITS)[0], 1 << _BITS), _BITS)[0], 1 << _BITS)
        limit = root_pi * claimed * exponent / 2
    else:
        limit = exactly(arguments.positive(threshold, "threshold"))
    if width > limit:
        return Laplace(sensitivity, epsilon)
    if sigma is None:
        ratio = Fraction(square_root(Fraction(2), _BITS)[0], 1 << _BITS) / exponent
    else:
        ratio = exactly(arguments.positive(sigma, "sigma")) / width
    true = gaussian_delta(exponent, ratio)
    if exactly(true) > claimed:
        expected = (
            f"at least {true:.6g}, the true delta of Gaussian noise with sigma = {float(ratio):.6g} times the "
            "sensitivity at this epsilon"
        )
        raise NotPrivate("delta", expected, delta, "use MixedNoise(sensitivity, epsilon, delta)")
    return Gaussian(sensitivity, epsilon, up(Fraction(true)))
