"""Rigorous enclosures of the functions that noise laws are made of.

Every function returns integers ``(low, high)`` with ``low <= f(x) * 2**bits <= high``. The width is a few
units, whatever the argument, so asking for more bits always separates ``f(x)`` from a number that differs.

Two things carry the proofs. Elementary functions come from :mod:`decimal`, whose ``exp`` and ``ln`` are
correctly rounded; the rounding of argument and result is added to the enclosure. Series have positive terms
only and are summed twice in integers, once with every operation rounded down and once with every operation
rounded up, so each partial result is a bound by monotonicity; the tail left out is bounded by a geometric series.
"""

from __future__ import annotations

import decimal as _decimal
import math
from fractions import Fraction
from functools import lru_cache

Enclosure = tuple[int, int]

_LN10_OVER_LN2 = 3.3219280948873626
_EXTREME = 999_999_999_999_999_999


def _context(bits: int, magnitude: int = 0) -> _decimal.Context:
    """Return a decimal context with enough digits for this number of bits and this number of digits before the
    point."""
    digits = int(max(bits, 0) / _LN10_OVER_LN2) + max(magnitude, 0) + 12
    return _decimal.Context(prec=digits, Emax=_EXTREME, Emin=-_EXTREME, traps=[])


def _power_of_ten(exponent: int) -> _decimal.Decimal:
    """Return ``10**exponent`` as a decimal number."""
    # operators on Decimal would round to the thread's own context, so only constructors and context methods are used
    return _decimal.Decimal((0, (1,), exponent))


def _digits(value: Fraction) -> int:
    """Return an upper bound on the number of decimal digits before the point."""
    return max(0, int((value.numerator.bit_length() - value.denominator.bit_length() + 1) * 0.30103) + 2)


def _widen(value: _decimal.Decimal, relative: _decimal.Decimal, bits: int, context: _decimal.Context) -> Enclosure:
    """Return integers around ``value * 2**bits``, where ``value`` is known up to a ``relative`` error."""
    scaled = context.multiply(value, _decimal.Decimal(1 << bits))
    margin = context.multiply(scaled.copy_abs(), relative)
    return math.floor(context.subtract(scaled, margin)) - 1, math.ceil(context.add(scaled, margin)) + 1


def exp_neg(x: Fraction, bits: int) -> Enclosure:
    """Enclose ``exp(-x) * 2**bits`` for ``x >= 0``.

    With P digits the argument is off by at most ``x * 10**(1-P)`` and the result by a relative ``10**(1-P)``.

    >>> exp_neg(Fraction(0), 8)
    (256, 256)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:
        return 0, 1
    size = _digits(x)
    context = _context(bits, size)
    argument = context.divide(_decimal.Decimal(x.numerator), _decimal.Decimal(x.denominator))
    relative = _power_of_ten(size + 3 - context.prec)
    low, high = _widen(context.exp(argument.copy_negate()), relative, bits, context)
    return max(low, 0), min(high, 1 << bits)


def exp(x: Fraction, bits: int) -> Enclosure:
    """Enclose ``exp(x) * 2**bits`` for any rational ``x`` below 10^6.

    >>> low, high = exp(Fraction(1), 20)
    >>> low <= math.e * 2**20 <= high
    True
    """
    if x <= 0:
        return exp_neg(-x, bits)
    size = _digits(x)
    context = _context(bits + int(float(x) * 1.4427) + 2, size)
    argument = context.divide(_decimal.Decimal(x.numerator), _decimal.Decimal(x.denominator))
    relative = _power_of_ten(size + 3 - context.prec)
    return _widen(context.exp(argument), relative, bits, context)


def log(x: Fraction, bits: int) -> Enclosure:
    """Enclose ``ln(x) * 2**bits`` for ``x > 0``.

    >>> log(Fraction(1), 30)
    (0, 0)
    """
    if x == 1:
        return 0, 0
    context = _context(bits, len(str(abs(x.numerator.bit_length() - x.denominator.bit_length()))) + 1)
    argument = context.divide(_decimal.Decimal(x.numerator), _decimal.Decimal(x.denominator))
    value = context.ln(argument)
    # the argument's relative error moves ln by as much, absolutely; the result's is relative
    margin = context.multiply(_power_of_ten(2 - context.prec), context.add(value.copy_abs(), _decimal.Decimal(2)))
    scale = _decimal.Decimal(1 << bits)
    low = context.multiply(context.subtract(value, margin), scale)
    high = context.multiply(context.add(value, margin), scale)
    return math.floor(low) - 1, math.ceil(high) + 1


def divide(numerator: Enclosure, denominator: Enclosure, bits: int) -> Enclosure:
    """Enclose the quotient of two non-negative enclosures, the second one positive.

    ``numerator`` and ``denominator`` are pairs of integers (low, high) in a common unit; the result is (low, high) in
    units of ``2**-bits``. The low end is rounded down, the high end up.

    >>> divide((1, 1), (3, 3), 4)
    (5, 6)
    """
    return (numerator[0] << bits) // denominator[1], -((-numerator[1] << bits) // denominator[0])


def square_root(x: Fraction, bits: int) -> Enclosure:
    """Enclose ``sqrt(x) * 2**bits`` for ``x >= 0``.

    >>> square_root(Fraction(4), 3)
    (16, 17)
    """
    low = math.isqrt((x.numerator << (2 * bits)) // x.denominator)
    return low, low + 1


def root_up(x: Fraction, bits: int) -> Fraction:
    """Return ``sqrt(x)`` for ``x >= 0``, rounded up to a multiple of ``2**-bits``; exactly where the root is one.

    >>> root_up(Fraction(4), 3), root_up(Fraction(2), 3)
    (Fraction(2, 1), Fraction(3, 2))
    """
    low, high = square_root(x, bits)
    root = Fraction(low, 1 << bits)
    return root if root * root == x else Fraction(high, 1 << bits)


@lru_cache(maxsize=64)
def pi(bits: int) -> Enclosure:
    """Enclose ``pi * 2**bits`` by Machin's formula, ``pi = 16 arctan(1/5) - 4 arctan(1/239)``.

    >>> low, high = pi(100)
    >>> low <= Fraction(math.pi) * 2**100 + 2**48 and high - low <= 2
    True
    """
    work_bits = bits + 32

    def arctan_inverse(n: int) -> Enclosure:
        """Enclose ``arctan(1/n)`` in units of ``2**-work_bits``, by its alternating series."""
        total, term, k = 0, (1 << work_bits) // n, 0
        while term:
            total += (term // (2 * k + 1)) if k % 2 == 0 else -(term // (2 * k + 1))
            term //= n * n
            k += 1
        slack = 2 * (k + 1)  # each term is off by at most 2 units; the alternating tail is below the next term
        return total - slack, total + slack

    a, b = arctan_inverse(5), arctan_inverse(239)
    low, high = 16 * a[0] - 4 * b[1], 16 * a[1] - 4 * b[0]
    return low >> 32, (high >> 32) + 1


def normal_tail(z: Fraction, bits: int) -> Enclosure:
    """Enclose ``P(|N(0,1)| > z) * 2**bits`` for ``z >= 0``, by a pair of integers.

    P(|N| <= z) = sqrt(2/pi) exp(-z^2/2) * sum over k of z^(2k+1) / (1*3*...*(2k+1)), all terms positive: the sum is
    computed once with every step rounded down and once with every step rounded up. 24 guard bits absorb the rounding,
    and ``growth`` bits the size of the sum, as 1.4427 is 1/ln 2.

    >>> low, high = normal_tail(Fraction(196, 100), 53)
    >>> abs(low / 2**53 - 0.04999579) < 1e-8
    True
    """
    if z <= 0:
        return 1 << bits, 1 << bits
    half_square = z * z / 2
    if half_square > bits:  # P(|N| > z) <= exp(-z^2/2) < 2^-bits
        return 0, 1
    growth = int(half_square * Fraction(14427, 10000)) + 4  # the sum is at most 2 exp(z^2/2)
    work_bits = bits + growth + 24
    sums = []
    for round_up in (False, True):
        unit = int(round_up)
        square = (z * z * (1 << work_bits)).__floor__() + unit
        term = (z * (1 << work_bits)).__floor__() + unit
        total, k = 0, 0
        while term > unit or k == 0:
            total += term
            k += 1
            term = (term * square >> work_bits) // (2 * k + 1) + unit
            if round_up and 2 * square < (2 * k + 1 << work_bits) and term <= 4:
                total += 2 * term + 2  # ratio below 1/2 from here on
                break
        sums.append(total)
    decay = exp_neg(half_square, work_bits)
    pi_bounds = pi(work_bits)
    root_low = math.isqrt((2 << 3 * work_bits) // pi_bounds[1])
    root_high = math.isqrt(-((-2 << 3 * work_bits) // pi_bounds[0])) + 1
    low = (sums[0] * decay[0] >> work_bits) * root_low >> work_bits
    high = ((sums[1] * decay[1] >> work_bits) + 1) * root_high >> work_bits
    one = 1 << work_bits
    shift = work_bits - bits
    return max(0, (one - high - 1) >> shift), min(1 << bits, ((one - low) >> shift) + 1)


def power_neg(base: Fraction, exponent: Fraction, bits: int) -> Enclosure:
    """Enclose ``base**(-exponent) * 2**bits`` for ``base >= 1`` and ``exponent >= 0``.

    >>> power_neg(Fraction(2), Fraction(3), 10)[0] in range(126, 129)
    True
    """
    work_bits = bits + 16 + exponent.numerator.bit_length()
    low, high = log(base, work_bits)
    slow = exponent * Fraction(max(low, 0), 1 << work_bits)
    fast = exponent * Fraction(max(high, 0), 1 << work_bits)
    return exp_neg(fast, bits)[0], exp_neg(slow, bits)[1]


def _hypergeometric(a: Fraction, x: Enclosure, work_bits: int) -> Enclosure:
    """Enclose sum over k of k! / ((1+a)(2+a)...(k+a)) x^k for 0 <= x <= 1/2 (ratio of terms at most x)."""
    p, q = a.numerator, a.denominator
    ends = []
    for unit, point in ((0, x[0]), (1, x[1])):
        term, total, k = 1 << work_bits, 0, 0
        while True:
            total += term
            k += 1
            term = (term * point >> work_bits) * (k * q) // (k * q + p) + 2 * unit
            if term <= 8:
                break
        ends.append(total + 16 * unit)
    return ends[0], ends[1]


def _lower_part(v: Fraction, gamma: Fraction, bits: int, upper: bool) -> Enclosure:
    """Enclose, for 0 < ``v`` <= 1, an integral of ``1/(1 + t^gamma)``, in units of ``2**-bits``.

    It goes over (0, v), or, if ``upper``, over (1/v, infinity). With a = 1/g, respectively 1 - 1/g, both are v^(g a) /
    (g a) / (1 + v^g) * 2F1(1, 1; 1 + a; v^g / (1 + v^g)) for g = gamma (substitute t -> 1/t for the second; Pfaff's
    transformation of 2F1(1, a; 1 + a; -v^g)). 24 guard bits absorb the rounding.
    """
    work_bits = bits + 24
    a = 1 - 1 / gamma if upper else 1 / gamma
    one = 1 << work_bits
    power = power_neg(1 / v, gamma, work_bits)
    ratio = (power[0] << work_bits) // (one + power[0]), -((-power[1] << work_bits) // (one + power[1]))
    series = _hypergeometric(a, (ratio[0], min(ratio[1], one // 2 + 1)), work_bits)
    units = math.floor(v * one)
    leading_factor = power_neg(1 / v, gamma - 1, work_bits) if upper else (units, units + 1)
    weight = gamma * a
    low = (leading_factor[0] * series[0] // (one + power[1])) * weight.denominator // weight.numerator
    high = (leading_factor[1] * series[1] // (one + power[0]) + 1) * weight.denominator // weight.numerator + 1
    return low >> 24, (high >> 24) + 1


@lru_cache(maxsize=64)
def _heavy_mass(gamma: Fraction, bits: int) -> Enclosure:
    """Enclose the integral of ``1 / (1 + z^gamma)`` over z > 0 in units of ``2**-bits``.

    It is computed in two parts, up to 1 and beyond.
    """
    inner, outer = _lower_part(Fraction(1), gamma, bits, False), _lower_part(Fraction(1), gamma, bits, True)
    return inner[0] + outer[0], inner[1] + outer[1]


def heavy_tail(z: Fraction, gamma: Fraction, bits: int) -> Enclosure:
    """Enclose ``P(|Z| > z) * 2**bits`` for the density proportional to ``1 / (1 + |z|**gamma)``, ``gamma > 1``.

    >>> low, high = heavy_tail(Fraction(1), Fraction(2), 40)     # Cauchy: exactly one half
    >>> low <= 2**39 <= high
    True
    """
    if z <= 0:
        return 1 << bits, 1 << bits
    work_bits = bits + 8
    mass = _heavy_mass(gamma, work_bits)
    if z <= 1:
        inner = _lower_part(z, gamma, work_bits, False)
        tail = max(mass[0] - inner[1], 0), mass[1] - inner[0]
    else:
        tail = _lower_part(1 / z, gamma, work_bits, True)
    low, high = divide((max(tail[0], 0), tail[1]), mass, bits)
    return low, min(high, 1 << bits)


def gumbel_tail(z: Fraction, bits: int) -> Enclosure:
    """Enclose ``P(G > z) * 2**bits`` for the standard Gumbel law, ``1 - exp(-exp(-z))``.

    >>> low, high = gumbel_tail(Fraction(0), 30)
    >>> low <= (1 - math.exp(-1)) * 2**30 <= high
    True
    """
    if z < -bits:
        return (1 << bits) - 1, 1 << bits
    work_bits = bits + 8 + (int(-z * 3 / 2) if z < 0 else 0)
    rate = exp(-z, work_bits)
    survive = exp_neg(Fraction(rate[1], 1 << work_bits), bits)[0], exp_neg(Fraction(rate[0], 1 << work_bits), bits)[1]
    return (1 << bits) - survive[1], (1 << bits) - survive[0]
