"""The normal law: a certified table of Taylor polynomials, and the exact tail behind it.

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
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from dither.exact import Enclosure, normal_tail
from dither.randomness.laws import LOW, Floats

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
        """Enclose P(|N| > z)."""
        return normal_tail(z, bits)
