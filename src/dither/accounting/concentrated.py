"""The zCDP of noise laws, exactly: each of these rho is the smallest possible.

All bounded-loss laws here are treated alike. Let L be the loss and ``F(v)`` the sum (or integral) of ``sqrt(P Q)
exp(v L)``, so that ``exp((alpha - 1) D_alpha) = F(alpha - 1/2)``. The pair is symmetric, so F is even; and
``F(1/2) = 1``. *If all zeros of F are imaginary*, then by Hadamard's product ``ln F = const + sum over k of ln(1
+ v^2 / z_k^2)``, which is concave in s = v^2, so it lies below its tangent at v = 1/2:

    (alpha - 1) D_alpha <= (alpha^2 - alpha) * D_1,        that is rho = D_1, the Kullback-Leibler divergence,

and no smaller rho will do, as alpha -> 1. The zeros, at v = i y:

* *pure, randomized response with 2 outcomes*: F is ``cosh(v e)`` up to a factor: zeros of cos. rho = e tanh(e/2).
* *k outcomes*: ``cosh(v e) + b`` with b = (k - 2) exp(-e/2) / 2: zeros of cos + b, real for b <= 1. Beyond that
  rho of the pure law is used.
* *Laplace*: ``cosh(v e) + sinh(v e) / (2 v)``: zeros of ``y cos y + c sin y``, c = e/2 > 0, which are the
  eigenvalues of a self-adjoint problem (w'' = -y^2 w, w(0) = 0, w'(1) + c w(1) = 0) and so real. rho = e +
  exp(-e) - 1 (conjectured by Wang 2022; Harrison and Manurangsi 2025).
* *discrete Laplace*, t = exp(-1/b), sensitivity D: with theta = y/b it is ``U_D - t U_(D-2)`` in Chebyshev's
  polynomials of cos(theta). At the zeros of U_(D-1), where U_D = -U_(D-2), and at +-1 it alternates in sign, so
  that it has D real zeros. rho = (D - 2 t (1 - t^D) / (1 - t^2)) / b.

*Bounded range*, losses in some interval of length e, which the mechanism is free to place: the worst place gives
``(alpha - 1) D_alpha = alpha s(alpha) - (alpha - 1) s(alpha - 1) - s(1)``, ``s(u) = ln(2 sinh(u e / 2) / u) = ln e
+ sum over k of ln(1 + u^2 / a_k)``. Each term is an integral over y >= a_k of ``1/y - 1/(y + u^2)``, so it is
enough to put ``u^2 / (u^2 + y)`` for s. With m = alpha (alpha - 1) the claim then reads

    y m (m + 3y + 1) / ((1 + y) ((m + y)^2 + y)) <= m (1 + 3y) / (1 + y)^2,

and multiplied out the difference is ``m^2 ((1 + 3y) m + y + 5 y^2) >= 0`` up to positive factors. rho = x - 1 -
ln x, x = e / (1 - exp(-e)), which is below the e^2/8 of Cesar and Rogers 2021.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dither.exact import exp_neg, log, up
from dither.guarantees import PureDP

_BITS = 96


def _bits(small: Fraction) -> int:
    """Return the bits for a relative precision of 2^-80 in a difference that is of the order of ``small`` squared."""
    return _BITS + 3 * max(0, small.denominator.bit_length() - small.numerator.bit_length() + 1)


@lru_cache(maxsize=65536)
def pure_rho(epsilon: Fraction) -> Fraction:
    """Return the rho of epsilon-DP: ``epsilon tanh(epsilon / 2)``, rounded up.

    >>> round(float(pure_rho(Fraction(1))), 6)
    0.462117
    """
    return PureDP(epsilon).to_zcdp().exact[0]


@lru_cache(maxsize=65536)
def laplace_rho(epsilon: Fraction) -> Fraction:
    """Return the rho of Laplace noise: ``epsilon + exp(-epsilon) - 1``, rounded up.

    >>> round(float(laplace_rho(Fraction(1))), 6)
    0.367879
    """
    bits = _bits(epsilon)
    return Fraction(up(epsilon - 1 + Fraction(exp_neg(epsilon, bits)[1], 1 << bits)))


@lru_cache(maxsize=65536)
def discrete_laplace_rho(scale: Fraction, sensitivity: int) -> Fraction:
    """Return the smallest rho (zCDP) of discrete Laplace noise, rounded up.

    ``scale`` is the scale b of the noise, which has probabilities in proportion to ``exp(-|k| / b)``, and
    ``sensitivity`` the largest change D of the integer it is added to. With t = exp(-1/b) the rho is the mean of the
    privacy loss, ``(D - 2 t (1 - t^D) / (1 - t^2)) / b``.

    >>> discrete_laplace_rho(Fraction(2), 1) == pure_rho(Fraction(1, 2))
    True
    """
    if sensitivity == 1:
        return pure_rho(1 / scale)
    bits = _bits(min(1 / scale, sensitivity / scale)) + sensitivity.bit_length()
    one = 1 << bits
    t, power = exp_neg(1 / scale, bits), exp_neg(sensitivity / scale, bits)
    # t (1 - t^D) / (1 - t^2) is a sum of powers of t over 1 + t, each of which rises with t
    low = Fraction(t[0] * (one - power[1]), one * one - t[0] * t[0]) if t[1] < one else Fraction(0)
    bound = (sensitivity - 2 * max(low, Fraction(0))) / scale
    return min(Fraction(up(bound)), pure_rho(sensitivity / scale))


@lru_cache(maxsize=65536)
def range_rho(epsilon: Fraction) -> Fraction:
    """Return the rho of a mechanism of bounded range: ``x - 1 - ln x`` with ``x = epsilon / (1 - exp(-epsilon))``,
    rounded up.

    It is never above epsilon^2 / 8.

    >>> float(range_rho(Fraction(1))) < 0.125, round(float(range_rho(Fraction(1))), 6)
    (True, 0.123302)
    """
    bits = _bits(epsilon)
    one = 1 << bits
    # x - 1 - ln x rises with x above 1
    x = epsilon * one / (one - exp_neg(epsilon, bits)[1])
    return min(Fraction(up(x - 1 - Fraction(log(x, bits)[0], one))), epsilon * epsilon / 8)


@lru_cache(maxsize=65536)
def response_rho(epsilon: Fraction, categories: int) -> Fraction:
    """Return the rho of randomized response, ``epsilon (1 - exp(-epsilon)) / (1 + (k - 1) exp(-epsilon))``, rounded up.

    It is valid where k - 2 <= 2 exp(epsilon / 2); otherwise that of epsilon-DP is returned.

    >>> response_rho(Fraction(1), 2) == pure_rho(Fraction(1)) > response_rho(Fraction(1), 5)
    True
    """
    pure = pure_rho(epsilon)
    bits = _bits(epsilon)
    one = 1 << bits
    if categories == 2 or (categories - 2) * exp_neg(epsilon / 2, bits)[1] > 2 * one:
        return pure
    low = exp_neg(epsilon, bits)[0]
    return min(pure, Fraction(up(epsilon * Fraction(one - low, one + (categories - 1) * low))))
