"""Numbers as exact rationals, and outward rounding to floats: never in favor of the claim.

Two readings of a float are in use, and which one is meant is never left open:

* a *budget* (epsilon, delta, rho) is read as the decimal it prints as: ``0.1`` means 1/10, so that ten
  releases at 0.1 cost exactly 1;
* a *measurement* (a bound, a value in the data) is the binary number it is.

A sensitivity is the larger of its two readings.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import SupportsFloat

from dither.errors import InvalidArgument, WrongType

_LONGEST = 3322  # bits
_TRUTH_VALUES = ("bool", "bool_")  # Python's type and NumPy's, which is named either way


def _real(value: object, name: str) -> int | float | Fraction:
    """Return a real number as int, float or Fraction; truth values, text and what is not finite are refused."""
    if type(value).__name__ in _TRUTH_VALUES or isinstance(value, str) or not isinstance(value, (Real, SupportsFloat)):
        raise _not_real(value, name)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise _not_real(value, name) from None
    if not math.isfinite(number):
        raise InvalidArgument(name, "a finite number", number, f"pass a finite {name}")
    return number


def _not_real(value: object, name: str) -> WrongType:
    """Return the refusal of a value that is not a real number."""
    return WrongType(name, "a real number", type(value).__name__, f"pass {name} as an int, float or Fraction")


def decimal(value: object, name: str = "value") -> Fraction:
    """Read a budget as an exact number: a float is taken as the decimal that it prints.

    >>> sum(decimal(0.1) for _ in range(10)) == 1
    True
    """
    number = _real(value, name)
    if isinstance(number, float):
        return Fraction(repr(number))
    if max(abs(number.numerator), number.denominator).bit_length() > _LONGEST:
        raise InvalidArgument(name, "a number of at most 1000 digits", number, "round it")
    return Fraction(number)


def exactly(value: object, name: str = "value") -> Fraction:
    """Read a measurement: a float is the binary number it is.

    >>> exactly(0.1) > decimal(0.1)
    True
    """
    return Fraction(_real(value, name))


def outward_max(value: object, name: str = "value") -> Fraction:
    """Read a sensitivity: the larger of its binary and decimal readings.

    >>> outward_max(0.1) == exactly(0.1)
    True
    """
    return max(decimal(value, name), exactly(value, name))


def up(value: Fraction) -> float:
    """Return the smallest float that is at least ``value``.

    >>> up(Fraction(1, 2))
    0.5
    >>> Fraction(up(Fraction(1, 3))) > Fraction(1, 3)
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -float.fromhex("0x1.fffffffffffffp+1023")
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def down(value: Fraction) -> float:
    """Return the largest float that is at most ``value``.

    >>> Fraction(down(Fraction(1, 3))) < Fraction(1, 3)
    True
    """
    return -up(-value) or 0.0  # never -0.0
