"""What pure privacy alone implies."""

from __future__ import annotations

from fractions import Fraction

from dither.exact import exp_neg

_BITS = 96


def pure_delta(own: Fraction, at: Fraction) -> Fraction:
    """The largest delta at loss ``at`` of any ``own``-DP release, from above; 0 from ``own`` on.

    The least private of them is randomized response: ``(1 - exp(at - own)) / (1 + exp(-own))``.

    >>> round(float(pure_delta(Fraction(1), Fraction(0))), 6)
    0.462117
    """
    if at >= own:
        return Fraction(0)
    one = 1 << _BITS
    return (1 - Fraction(exp_neg(own - at, _BITS)[0], one)) / (1 + Fraction(exp_neg(own, _BITS)[0], one))
