"""Noise laws, each given twice: a fast float quantile with an error bound, and a rigorous tail.

A law describes a standard variable Z through the uniform number U it is made from:
``U = P(|Z| > |z|)`` for a symmetric law (the sign is a separate bit) and ``U = P(Z > z)`` for a one-sided one.

*The float side.* ``quantile(u)`` replaces floats ``u`` in ``[low, high]`` by z with ``|z - Q(U)| <= error``
for every real U that the word behind ``u`` allows: 63 bits, read as an integer w >= 2^44 and rounded to a
float, so ``|U/u - 1| <= 2^-44 + 2^-53``. The bounds below rest on one assumption about the platform:

    (A) ``log``, ``log1p`` and ``exp`` of NumPy and of ``math`` are within a relative 2^-46 (64 units in the last
        place) of the true value on the ranges used.

Published figures for the implementations NumPy uses are below 4 units. ``tests/randomness/test_laws.py`` checks (A)
against mpmath on the machine at hand. Additions, products and roundings are IEEE 754.

*The exact side.* ``tail(z, bits)`` encloses P(|Z| > z), or P(Z > z). It decides whatever the floats cannot,
and the outcome never depends on how good the floats were, only on the bound being true.

The normal law: a certified table of Taylor polynomials, and the exact tail behind it.

With ``u = P(|N| > z)`` and ``g = sqrt(pi/2) exp(z^2/2)``, the quantile z(u) has the derivatives

    z' = -g,   z'' = z g^2,   z''' = -(1 + 2z^2) g^3,   z'''' = (7z + 6z^3) g^4,   z^(5) = -(7 + 46z^2 + 24z^4) g^5.

The floats u in [2^-19, 1] are cut into cells by their exponent and the first seven bits of their fraction, so the
cell number is a shift of the float's own bits. In each cell the quantile is its Taylor polynomial of degree 4 at the
middle. Its error has three parts, all bounded when the table is built (and the build fails if they are too large):

* the constant term: a float z0 whose rigorous tail is compared with the middle;
* the remainder: |z^(5)| grows with z, so its value at the cell's lower end, times (half width)^5 / 120;
* rounding: u g <= sqrt(pi/2) and |u - middle| <= 2^-8 u, so the terms after the first add up to less than 2^-7
  and their rounding, with coefficients good to a relative 2^-46, to less than 2^-50.

In sum below 2^-41. The word adds 2^-43.9 u g < 2^-43. No library function is trusted at sampling time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.exact import Enclosure, divide, exp_neg, gumbel_tail, heavy_tail, normal_tail, pi
from dither.exact.search import bisect_floats

Floats = NDArray[np.float64]
Number = TypeVar("Number", float, NDArray[np.float64])

LOW = 2.0**-19
"""Below this a word has fewer than 44 significant bits and the draw is settled exactly."""


class Law(Protocol):
    """What the lattice combinator needs to know of a noise law."""

    @property
    def symmetric(self) -> bool:
        """Return whether the sign is a separate fair bit."""

    @property
    def high(self) -> float:
        """Return the largest float u for which quantiles are computed in floats; above it they are settled exactly."""

    @property
    def error(self) -> float:
        """Return the bound on ``|quantile(u) - Q(U)|``, where ``quantile`` does not return its own."""

    def quantile(self, u: Floats) -> Floats | None:
        """Replace tail probabilities u by quantiles z in place; return a bound on each error, or None for ``error``."""

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return the quantile z of one tail probability and a bound on its error, ``inf`` where none is known."""

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose P(|Z| > z), or P(Z > z) if the law is one-sided, in units of ``2**-bits``."""


@dataclass(frozen=True)
class Exponential:
    """Density exp(-z) on z >= 0; ``Exponential(symmetric=True)`` is the standard Laplace law.

    Q(U) = -ln U. With u >= 2^-19, ``|ln u| < 13.2``: (A) gives 13.2 * 2^-46, the word 2^-43.9; in sum below 2^-41.

    >>> Exponential().quantile_one(0.5)[0] == math.log(2)
    True
    """

    symmetric: bool = False
    high = 1.0
    error = 2.0**-41

    def quantile(self, u: Floats) -> None:
        """Replace each u, a tail probability, by its quantile ``-ln u``, in place."""
        np.log(u, out=u)
        np.negative(u, out=u)

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return the quantile ``-ln u`` of a tail probability, and the bound on its error in floats."""
        return -math.log(u), self.error

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose the tail ``exp(-z)`` in units of ``2**-bits``; 1 for z <= 0."""
        return exp_neg(max(z, Fraction(0)), bits)


@dataclass(frozen=True)
class Gumbel:
    """P(Z > z) = 1 - exp(-exp(-z)).

    Q(U) = -ln E with E = -ln(1 - U). For u <= 1 - 2^-15, 1 - U is known to a relative 2^-38 at its worst, where
    E > 10, and E to a relative 2^-41; for small u, E to that of U. Its logarithm is off by as much, plus (A).
    In sum below 2^-40.

    >>> abs(Gumbel().quantile_one(1 - math.exp(-1))[0]) < 1e-12
    True
    """

    symmetric = False
    high = 1 - 2.0**-15
    error = 2.0**-40

    def quantile(self, u: Floats) -> None:
        """Replace each u, a tail probability, by its quantile ``-ln(-ln(1 - u))``, in place."""
        np.negative(u, out=u)
        np.log1p(u, out=u)
        np.negative(u, out=u)
        np.log(u, out=u)
        np.negative(u, out=u)

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return the quantile ``-ln(-ln(1 - u))`` of a tail probability, and the bound on its error in floats."""
        return -math.log(-math.log1p(-min(u, 1 - 2.0**-53))), self.error

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose the tail ``P(Z > z) = 1 - exp(-exp(-z))`` in units of ``2**-bits``."""
        return gumbel_tail(z, bits)


@dataclass(frozen=True)
class Staircase:
    """Density constant on steps: a on [k, k+gamma) and a * exp(-epsilon) on [k+gamma, k+1), times exp(-k*epsilon).

    With s = exp(-epsilon) and W = gamma + s * (1 - gamma) (Geng and Viswanath 2014), for 0 <= r <= 1

        P(|Z| > k + r) = s^k * (1 - r * (1 - s) / W)               for r <= gamma,
        P(|Z| > k + r) = s^(k+1) * (1 + (1 - r) * (1 - s) / W)     for r >= gamma.

    The quantile is continuous, so a step number that rounding puts one too far costs no more than the rounding
    itself. A relative error e in U moves z by at most e / (1 - s); U after scaling by s^-k is good to a
    relative 2^-42.

    >>> Staircase(Fraction(1), Fraction(1, 2)).tail(Fraction(3), 60)[0] / 2**60 == math.exp(-3)
    True
    """

    epsilon: Fraction
    gamma: Fraction
    symmetric = True
    high = 1.0

    @cached_property
    def _floats(self) -> tuple[float, float, float, float]:
        """Return epsilon, the slope and shrinkage of a step, and the knot between its two parts, in floats."""
        epsilon, gamma = float(self.epsilon), float(self.gamma)
        shrink = math.exp(-epsilon)
        width = gamma + shrink * (1 - gamma)
        return epsilon, width / -math.expm1(-epsilon), shrink, shrink / width

    @cached_property
    def error(self) -> float:
        """Return the bound ``2^-40 / (1 - exp(-epsilon))`` on the error of a quantile computed in floats."""
        return -(2.0**-40) / math.expm1(-float(self.epsilon))

    def quantile(self, u: Floats) -> None:
        """Replace u by its quantile in place: the step from ln u, the point on it by linear interpolation.

        With s and W of the class, ``slope = W / (1 - s)``, ``shrink = s`` and ``knot = s / W``, the tail at gamma.
        """
        epsilon, slope, shrink, knot = self._floats
        step = np.log(u)
        step /= -epsilon
        np.floor(step, out=step)
        u *= np.exp(epsilon * step)
        with np.errstate(divide="ignore", over="ignore"):  # above epsilon = 700 the second piece is not reached
            place = np.where(u >= knot, (1 - u) * slope, 1 - (u / shrink - 1) * slope)
        np.add(step, place, out=u)

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return one quantile and its error bound, as :meth:`quantile` computes it."""
        epsilon, slope, shrink, knot = self._floats
        step = math.floor(-math.log(u) / epsilon)
        v = math.exp(math.log(u) + epsilon * step) if u < LOW else u * math.exp(epsilon * step)
        return step + ((1 - v) * slope if v >= knot else 1 - (v / shrink - 1) * slope), self.error

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose ``P(|Z| > z)`` in units of ``2**-bits``, by the formulas of the class.

        Both are monotone in s on each piece, so the ends of s enclose them.
        """
        if z <= 0:
            return 1 << bits, 1 << bits
        step = math.floor(z)
        place = z - step
        work_bits = bits + 16
        ends = []
        for numerator in exp_neg(self.epsilon, work_bits):
            s = Fraction(numerator, 1 << work_bits)
            relative_drop = (1 - s) / (self.gamma + s * (1 - self.gamma))
            ends.append(1 - place * relative_drop if place <= self.gamma else s * (1 + (1 - place) * relative_drop))
        decay = exp_neg(self.epsilon * step, work_bits)
        low, high = min(ends) * decay[0], max(ends) * decay[1]
        return max(0, math.floor(low) >> 16), min(1 << bits, (math.ceil(high) >> 16) + 1)


def _series(x: Number, a: Number) -> Number:
    """Return the first 64 terms of ``sum over k of x^k k! / ((1 + a) ... (k + a))``, element by element.

    One draw takes floats: they have the bits of an array of one element, whose 192 operations take ten times as long.
    """
    result = 0 * x + 1
    for k in range(64, 0, -1):
        result *= x * (k / (k + a))
        result += 1
    return result


@dataclass(frozen=True)
class HeavyTail:
    """Density proportional to ``1 / (1 + |z|**gamma)``, gamma > 1; gamma = 2 is the Cauchy law.

    The quantile is guessed from a table, improved by Newton's method and then *checked*. The float tail at z
    has a relative error t of at most 2^-44 (3 + gamma |ln z|): by (A) for the power, and 64 terms of a positive
    series of ratio at most 1/2 (for z <= 1 it is one minus such a value, so t is absolute). It differs from u
    by some r, so by the mean value theorem z is off by at most (r + t u + 2^-43 u) / p, with p a lower bound of
    the density nearby: four fifths of its value at z, which holds over a distance of z / (16 (1 + gamma)).
    That bound is returned with each draw, infinite where it is not small enough to prove itself.

    >>> z, error = HeavyTail(Fraction(2)).quantile_one(0.5)       # P(|Cauchy| > 1) = 1/2
    >>> abs(z - 1) <= error < 1e-9
    True
    """

    gamma: Fraction
    symmetric = True
    high = 1.0
    error = math.inf

    def __post_init__(self) -> None:
        if not Fraction(6, 5) <= self.gamma <= 30:
            raise InvalidArgument(
                "gamma",
                "a number from 1.2 to 30",
                float(self.gamma),
                "pass 4, which has a variance; nearer to 1 draws exceed the largest float, beyond 30 noise only grows",
            )

    @cached_property
    def _mass(self) -> float:
        """Return the integral of the density ``1 / (1 + z^gamma)`` over z > 0: ``(pi/g) / sin(pi/g)``."""
        g = float(self.gamma)
        return math.pi / g / math.sin(math.pi / g)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Return the logarithms of tail probabilities and of their quantiles, from which floats are interpolated."""
        log_z = np.linspace(-16.0, 14.0 + 14.0 / (float(self.gamma) - 1), 4096)
        tails = self._tail_floats(np.exp(log_z))
        return np.log(tails[::-1]), log_z[::-1]

    def _tail_floats(self, z: Floats) -> Floats:
        """Return the tail probabilities in floats, by the hypergeometric series on either side of 1."""
        g = float(self.gamma)
        inside = z <= 1
        v = np.where(inside, z, 1 / z)
        power = np.exp(g * np.log(v))
        x = power / (1 + power)
        a = np.where(inside, 1 / g, 1 - 1 / g)
        series = _series(float(x[0]), float(a[0])) if len(z) == 1 else _series(x, a)
        part = np.where(inside, v, power / v / (g - 1)) / (1 + power) * series / self._mass
        tails: Floats = np.where(inside, 1 - part, part)
        return tails

    def quantile(self, u: Floats) -> Floats:
        """Replace each ``u``, a tail probability, by its quantile, and return a certified error for each element.

        The quantile is a guess from a table and two Newton steps; the error is that of the class, infinite where it is
        not proven.
        """
        g = float(self.gamma)
        table_u, table_z = self._table
        z = np.exp(np.interp(np.log(u), table_u, table_z))
        for _ in range(2):
            density = 1 / (self._mass * (1 + np.exp(g * np.log(z))))
            change = (self._tail_floats(z) - u) / density
            z += np.clip(change, -z / 2, z)
        relative = 2.0**-44 * (3 + g * np.abs(np.log(z)))
        residual = np.abs(self._tail_floats(z) - u) + relative * np.where(z <= 1, 1.0, u) + 2.0**-43 * u
        slope = self._mass * (1 + np.exp(g * np.log(z)))
        bound = 1.25 * residual * slope
        bound[~(bound * (1 + g) < z / 16 + 2.0**-30)] = math.inf
        u[:] = z
        return bound

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return one quantile and its error bound; below the table, the leading term of the tail and an
        infinite bound."""
        if u < LOW / 2:
            g = float(self.gamma)
            return (u * (g - 1) * self._mass) ** (-1 / (g - 1)), math.inf
        z = np.array([u])
        error = self.quantile(z)
        return float(z[0]), float(error[0])

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose P(|Z| > z) in units of ``2**-bits``, by the hypergeometric series."""
        return heavy_tail(z, self.gamma, bits)


@dataclass(frozen=True)
class Student:
    """Density proportional to ``1 / (1 + z^2)^2``: Student's law with 3 degrees of freedom, divided by sqrt(3).

    ``P(|Z| > z) = C(z) - (2/pi) z / (1 + z^2)``, C the Cauchy tail. There is no float filter: every draw is
    settled exactly, which suits single numbers.

    >>> abs(Student().tail(Fraction(1), 60)[0] / 2**60 - (0.5 - 1 / math.pi)) < 1e-15
    True
    """

    symmetric = True
    high = 1.0
    error = math.inf

    def quantile(self, u: Floats) -> Floats:
        """Replace u by approximate quantiles in place; no bound is known."""
        u[:] = [self.quantile_one(item)[0] for item in u.tolist()]
        return np.full(u.size, math.inf)

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return the z with ``P(|Z| > z)`` about ``u``, by bisection on the float tail, and infinity: no bound is
        known.

        From 100 on the tail is taken as ``4 / (3 pi z^3)``, its leading term, as the difference of two numbers would
        cancel.
        """

        def passes(z: float) -> bool:
            """Return whether the tail beyond z is at most u."""
            tail = 1 - 2 / math.pi * (math.atan(z) + z / (1 + z * z)) if z < 100 else 4 / (3 * math.pi * z**3)
            return tail <= u

        high = max(2.0, (4 / (3 * math.pi * u)) ** (1 / 3) * 2)
        return bisect_floats(passes, 0.0, high, steps=60).holds, math.inf

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose ``P(|Z| > z)`` in units of ``2**-bits``, by the formula of the class."""
        if z <= 0:
            return 1 << bits, 1 << bits
        work_bits = bits + 8
        low, high = heavy_tail(z, Fraction(2), work_bits)
        pi_bounds = pi(work_bits)
        part = 2 * z / (1 + z * z)
        minus = [
            math.floor((part * (1 << 2 * work_bits)) / pi_bounds[1]),
            math.ceil((part * (1 << 2 * work_bits)) / pi_bounds[0]),
        ]
        return max(0, (low - minus[1]) >> 8), min(1 << bits, ((high - minus[0]) >> 8) + 1)


def truncated_tail(z: Fraction, low: Fraction, high: Fraction, bits: int) -> Enclosure:
    """Enclose P(Z > z | low < Z < high) for the standard Laplace law and ``low <= 0 <= high``.

    For z >= 0 it is ``(e^-z - e^-high) / (2 - e^low - e^-high)``, and ``(2 - e^z - e^-high)`` over that for z < 0.

    >>> truncated_tail(Fraction(0), Fraction(-1), Fraction(1), 10)[0] in (511, 512)
    True
    """
    if z <= low:
        return 1 << bits, 1 << bits
    if z >= high:
        return 0, 0
    work_bits = bits + 8
    one = 1 << work_bits
    below, above = exp_neg(-low, work_bits), exp_neg(high, work_bits)
    decay = exp_neg(abs(z), work_bits)
    total = 2 * one - below[1] - above[1], 2 * one - below[0] - above[0]
    part = (
        (decay[0] - above[1], decay[1] - above[0])
        if z >= 0
        else (2 * one - decay[1] - above[1], 2 * one - decay[0] - above[0])
    )
    low_part, high_part = divide((max(part[0], 0), max(part[1], 0)), (max(total[0], 1), total[1]), bits)
    return low_part, min(high_part, 1 << bits)


_FRACTION_BITS = 7
_EXPONENTS = 19
_SHIFT = 52 - _FRACTION_BITS
_FIRST = (1023 - _EXPONENTS) << _FRACTION_BITS
_BOUND = 2.0**-41


def _half_normal_quantile(u: float) -> float:
    """Return z with P(|N| > z) = u, in floats."""
    return -NormalDist().inv_cdf(u / 2) if u < 1 else 0.0


@lru_cache(maxsize=1)
def _table() -> tuple[Floats, tuple[tuple[float, ...], ...]]:
    """Return the certified table of the quantile of |N(0, 1)|, as a function of its tail probability u.

    For each cell of u it has the middle of the cell and the Taylor coefficients of degree 0 to 4 there; by columns (an
    array of 6 rows) and by rows (a tuple for each cell). A cell is refused unless its error, the sum of the parts that
    the module lists, is below 2^-41: ``offset * far_g`` is that of the constant term, with 1 % to spare for floats,
    ``remainder`` that of the series, at the cell's lower end (``far``, where 1e-6 pays for the float quantile), and
    2^-50 the rounding.
    """
    rows: list[tuple[float, ...]] = []
    for cell in range(_EXPONENTS << _FRACTION_BITS):
        base = math.ldexp(1.0, (cell >> _FRACTION_BITS) - _EXPONENTS)
        half = base * 2.0 ** -(_FRACTION_BITS + 1)
        lower = base * (1 + (cell % (1 << _FRACTION_BITS)) * 2.0**-_FRACTION_BITS)
        middle = lower + half
        z = _half_normal_quantile(middle)
        g = math.sqrt(math.pi / 2) * math.exp(z * z / 2)
        low, high = normal_tail(Fraction(z), 80)
        offset = max(abs(low - int(middle * 2.0**80)), abs(high - int(middle * 2.0**80))) * 2.0**-80
        far = _half_normal_quantile(lower) + 1e-6
        far_g = math.sqrt(math.pi / 2) * math.exp(far * far / 2)
        remainder = (7 + 46 * far**2 + 24 * far**4) * (far_g * half) ** 5 / 120
        if not 1.01 * offset * far_g + remainder + 2.0**-50 < _BOUND:
            raise ArithmeticError("the normal quantile table could not be certified on this platform")
        rows.append((middle, z, -g, z * g**2 / 2, -(1 + 2 * z * z) * g**3 / 6, (7 * z + 6 * z**3) * g**4 / 24))
    columns = np.ascontiguousarray(np.array(rows).T)
    columns.setflags(write=False)  # it is kept
    return columns, tuple(rows)


class Normal:
    """The standard normal law.

    >>> z, error = Normal().quantile_one(0.05)
    >>> abs(z - 1.959963984540054) < error
    True
    """

    symmetric = True
    high = 1.0
    error = 2.0**-40

    def quantile(self, u: Floats) -> None:
        """Replace u by its quantile in place, by the polynomial of its cell."""
        table, _ = _table()
        cells = u.view(np.int64) >> _SHIFT
        cells -= _FIRST
        middle, *coefficients = np.take(table, cells, axis=1, mode="clip")
        u -= middle
        z = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            z *= u
            z += coefficient
        u[:] = z

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return one quantile and its error bound; outside the table a rough value and an infinite bound."""
        if not LOW <= u <= 1:
            return _half_normal_quantile(u), math.inf
        fraction, exponent = math.frexp(u)
        cell = (exponent + _EXPONENTS - 1 << _FRACTION_BITS) + int((2 * fraction - 1) * (1 << _FRACTION_BITS))
        rows = _table()[1]
        middle, c0, c1, c2, c3, c4 = rows[min(cell, len(rows) - 1)]
        d = u - middle
        return c0 + d * (c1 + d * (c2 + d * (c3 + d * c4))), self.error

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose P(|N| > z) for the standard normal law in units of ``2**-bits``."""
        return normal_tail(z, bits)
