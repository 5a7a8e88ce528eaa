"""The exact privacy curve of Gaussian noise, and its two inverses.

With ``r = sigma / sensitivity`` (Balle and Wang 2018, Theorem 8)

    delta(epsilon) = Phi(1/(2r) - epsilon r) - exp(epsilon) Phi(-1/(2r) - epsilon r).

Floats find the place, enclosures certify it: what is returned always errs to the side of less privacy claimed. An
epsilon or a delta that is passed as a float is the decimal it prints as; a ratio is the smaller of its two readings
(:mod:`dither.exact.rational`), which has the larger delta.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dither.errors import InvalidArgument, fix_by_options
from dither.exact import decimal, exactly, exp, normal_tail, up
from dither.exact.search import certified, smallest_float

_BITS = 64
_LARGE_LOSS = 400
_SMALLEST_DELTA = Fraction(1, 10**300)


def _delta_floats(epsilon: float, r: float) -> float:
    """Return ``Phi(1/(2r) - epsilon r) - e^epsilon Phi(-1/(2r) - epsilon r)`` in floats.

    It is delta(epsilon) of Gaussian noise of ``sigma = r sensitivity``. For epsilon above 400 the second term is left
    out, which can only make the result larger.
    """
    near, far = 1 / (2 * r) - epsilon * r, 1 / (2 * r) + epsilon * r
    first = 0.5 * math.erfc(-near / math.sqrt(2))
    if epsilon > _LARGE_LOSS:
        return first
    return max(0.0, first - 0.5 * math.exp(epsilon) * math.erfc(far / math.sqrt(2)))


def _phi(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose the standard normal distribution function at x, with ``bits`` of precision."""
    low, high = (Fraction(end, 2 << bits) for end in normal_tail(abs(x), bits))
    return (low, high) if x <= 0 else (1 - high, 1 - low)


def _budget(value: float | Fraction, name: str, at_least_zero: bool = False) -> Fraction:
    """Return an epsilon or a delta as an exact number, or refuse ``value`` if it is not above 0.

    ``name`` is the parameter's name for the error, and ``at_least_zero`` allows 0.
    """
    exact = value if isinstance(value, Fraction) else decimal(value, name)
    if exact < 0 or (exact == 0 and not at_least_zero):
        expected = "a number of at least 0" if at_least_zero else "a number above 0"
        raise InvalidArgument(name, expected, value, f"pass {name}={'1e-6' if name == 'delta' else '1'}")
    return exact


def _ratio(value: float | Fraction) -> Fraction:
    """Return ``sigma / sensitivity`` as an exact number: the smaller of two readings of a float, so that rounding
    claims no privacy."""
    exact = value if isinstance(value, Fraction) else min(decimal(value, "r"), exactly(value, "r"))
    if exact <= 0:
        raise InvalidArgument("r", "sigma over the sensitivity, above 0", value, "pass r=4, for example")
    return exact


def gaussian_delta(epsilon: float | Fraction, r: float | Fraction) -> float:
    """Return an upper bound on delta(epsilon) of Gaussian noise of ``sigma = r * sensitivity``.

    ``delta(epsilon) = Phi(1/(2r) - epsilon r) - e^epsilon Phi(-1/(2r) - epsilon r)`` (Balle and Wang 2018), enclosed
    and rounded up; the bound is tight to about 2^-50 of its value. For epsilon above 400 the second term is left out,
    which can only make the bound larger.

    >>> round(gaussian_delta(1, 2), 6)
    0.00683
    >>> gaussian_delta(0.5, 1.41) >= gaussian_delta(0.5, Fraction(141, 100))   # a float is read against the claim
    True
    """
    return _delta_exact(_budget(epsilon, "epsilon", at_least_zero=True), _ratio(r))


@lru_cache(maxsize=4096)
def _delta_exact(epsilon: Fraction, r: Fraction) -> float:
    """Return an upper bound on ``Phi(1/(2r) - epsilon r) - e^epsilon Phi(-1/(2r) - epsilon r)``, from enclosures."""
    near, far = 1 / (2 * r) - epsilon * r, -1 / (2 * r) - epsilon * r
    # both terms are at least about phi(near) * exp(-...): enough bits for the smaller one
    tiny = near * near / 2
    if tiny > 4000:
        return 1.0 if near > 0 else 5e-324
    if near > 0:
        tiny = Fraction(0)
    # for large r the terms nearly cancel: their difference is at least about their size / r^2
    bits = _BITS + int(tiny * 3 / 2) + 2 * max(0, r.numerator.bit_length() - r.denominator.bit_length() + 1)
    first = _phi(near, bits)[1]
    if epsilon > _LARGE_LOSS:
        return up(first)
    work_bits = bits + int(epsilon * 3 / 2) + 8
    second = _phi(far, work_bits)[0] * Fraction(exp(epsilon, work_bits)[0], 1 << work_bits)
    return up(max(Fraction(0), first - second))


def _possible(delta: Fraction) -> float:
    """Return delta as a float; refused if it is smaller than 1e-300."""
    if delta < _SMALLEST_DELTA:
        raise InvalidArgument(
            "delta", "at least 1e-300", f"{float(delta):g}", *fix_by_options("pass {delta}, for example", delta=1e-6)
        )
    return float(delta)


def gaussian_ratio(epsilon: float | Fraction, delta: float | Fraction) -> Fraction:
    """Return the smallest ``r = sigma / sensitivity`` for which Gaussian noise is (epsilon, delta)-DP, rounded up.

    It is the r at which :func:`gaussian_delta` of epsilon equals delta.

    >>> round(float(gaussian_ratio(1, 1e-6)), 4)
    4.2247
    """
    return _ratio_exact(_budget(epsilon, "epsilon", at_least_zero=True), _budget(delta, "delta"))


@lru_cache(maxsize=1024)
def _ratio_exact(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the smallest ratio that is proved to suffice, to a relative 2^-36, searched from floats."""
    fast, exact_delta = float(epsilon), _possible(delta)
    start = smallest_float(lambda r: _delta_floats(fast, r) <= exact_delta, 1e-12, 1e18)
    return certified(start, lambda r: Fraction(_delta_exact(epsilon, r)) <= delta)


def gaussian_epsilon(r: float | Fraction, delta: float | Fraction) -> Fraction:
    """Return the smallest epsilon for which Gaussian noise of ``sigma = r * sensitivity`` is (epsilon, delta)-DP.

    It is the epsilon at which :func:`gaussian_delta` equals delta, rounded up.

    >>> round(float(gaussian_epsilon(4, 1e-6)), 4)
    1.0607
    """
    return _epsilon_exact(_ratio(r), _budget(delta, "delta"))


@lru_cache(maxsize=65536)
def _epsilon_exact(r: Fraction, delta: Fraction) -> Fraction:
    """Return the smallest epsilon at which Gaussian noise is proved to be (epsilon, ``delta``)-DP, to a relative 2^-36.

    ``r`` is the standard deviation of the noise over the l2 sensitivity. The search in floats gives a start, and exact
    arithmetic decides near it. The result is 0 if delta suffices even at epsilon 0.
    """
    fast, exact_delta = float(r), _possible(delta)
    if _delta_floats(0.0, fast) <= exact_delta:
        return Fraction(0)
    start = smallest_float(lambda epsilon: _delta_floats(epsilon, fast) <= exact_delta, 1e-18, 1e15)
    return certified(start, lambda epsilon: Fraction(_delta_exact(epsilon, r)) <= delta)
