"""The privacy curve that pure differential privacy implies."""

from __future__ import annotations

from fractions import Fraction

from dither.exact import exp_neg

_BITS = 96


def pure_delta(epsilon: Fraction, other: Fraction) -> Fraction:
    """The largest delta at the epsilon ``other`` of any ``epsilon``-DP release, from above; 0 from ``epsilon`` on.

    The least private of them is randomized response: ``(1 - exp(other - epsilon)) / (1 + exp(-epsilon))``.

    >>> round(float(pure_delta(Fraction(1), Fraction(0))), 6)
    0.462117
    """
    if other >= epsilon:
        return Fraction(0)
    one = 1 << _BITS
    return (1 - Fraction(exp_neg(epsilon - other, _BITS)[0], one)) / (1 + Fraction(exp_neg(epsilon, _BITS)[0], one))
