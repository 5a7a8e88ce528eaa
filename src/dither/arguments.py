"""Checks of arguments, each saying expected, got and fix. Budgets come back as exact rationals.

>>> epsilon(0.1)
Fraction(1, 10)
"""

from __future__ import annotations

import sys
from fractions import Fraction

from dither.errors import InvalidArgument, WrongType, fix_by_options, shown
from dither.exact import decimal, exactly, outward_max

MAX_EPSILON = Fraction(10**6)
MIN_EPSILON = Fraction(1, 10**100)
"""Below it nothing is learned, and noise over sensitivity leaves what floats can hold."""
MAX_DELTA = 1 - Fraction(1, 10**9)
MIN_RATE, MAX_RATE = Fraction(1, 10**100), 1 - Fraction(1, 10**15)
MAX_WHOLE = (1 << 63) - 1


def epsilon(value: object, name: str = "epsilon") -> Fraction:
    """Return an epsilon as an exact rational; refuse anything but a number from 1e-100 to a million.

    >>> epsilon(1)
    Fraction(1, 1)
    """
    exact = decimal(value, name)
    if not 0 < exact <= MAX_EPSILON:
        fix = ("such an epsilon gives no protection; pass 10 or less",) if exact > 0 else _larger(name)
        raise InvalidArgument(name, "a number above 0 and at most 1e+06", value, *fix)
    if exact < MIN_EPSILON:
        raise InvalidArgument(name, "at least 1e-100", value, *_larger(name))
    return exact


def _larger(name: str) -> tuple[str, str]:
    """Return the fix that suggests a larger number, in Python and on the command line."""
    return fix_by_options(f"pass a larger {name}, for example {{{name}}}", **{name: 1})


def epsilon_or_zero(value: object, name: str = "epsilon") -> Fraction:
    """Return an epsilon as :func:`epsilon` does; 0 is allowed, too.

    >>> epsilon_or_zero(0)
    Fraction(0, 1)
    """
    return Fraction(0) if value == 0 else epsilon(value, name)


def delta(value: object, name: str = "delta") -> Fraction:
    """Return a delta as an exact rational; refuse anything but a number above 0 and at most 1 - 1e-9.

    >>> delta(1e-6)
    Fraction(1, 1000000)
    """
    exact = decimal(value, name)
    if not 0 < exact < 1:
        fix = fix_by_options(f"pass {{{name}}}, or a pure mechanism for {name} = 0", **{name: 1e-6})
        raise InvalidArgument(name, "a number strictly between 0 and 1", value, *fix)
    if exact > MAX_DELTA:
        fix = fix_by_options(f"pass {{{name}}}", **{name: 1e-6})
        raise InvalidArgument(name, "a number of at most 1 - 1e-9", value, *fix)
    return exact


def rate(value: object, name: str = "rate") -> Fraction:
    """Return the probability with which each person is sampled, above 0 and at most 1, as an exact rational.

    >>> rate(0.01)
    Fraction(1, 100)
    """
    exact = decimal(value, name)
    if not 0 < exact <= 1:
        raise InvalidArgument(name, "a number above 0 and at most 1", value, f"pass {name}=0.01, for example")
    if exact < MIN_RATE or MAX_RATE < exact < 1:
        raise InvalidArgument(name, "from 1e-100 to 1 - 1e-15, or 1", value, f"pass {name}=0.01, for example")
    return exact


def sensitivity(value: object, name: str = "sensitivity") -> Fraction:
    """Return a sensitivity as an exact rational, a float rounded up; refuse anything but a positive finite number.

    >>> sensitivity(2)
    Fraction(2, 1)
    """
    exact = outward_max(value, name)
    if not Fraction(1, 1 << 400) < exact < 1 << 400:
        raise InvalidArgument(
            name, "a positive number, at most 1e+120", value, "bound what one person can change, and pass that"
        )
    return exact


def confidence(value: object, name: str = "confidence") -> float:
    """Return a confidence level, strictly between 0 and 1.

    >>> confidence(0.95)
    0.95
    """
    exact = exactly(value, name)
    number = float(exact) if 0 < exact < 1 else 0.0
    if not 0 < number < 1:
        raise InvalidArgument(name, "a number strictly between 0 and 1", value, f"pass {name}=0.95")
    return number


def positive(value: object, name: str) -> float:
    """Return a positive finite number as a float.

    >>> positive(5, "error")
    5.0
    """
    exact = exactly(value, name)
    number = float(exact) if 0 < exact < 1 << 1000 else 0.0
    if not number > 0:
        raise InvalidArgument(name, "a number above 0 and below 1e+300", value, f"pass a positive {name}")
    return number


def whole(value: object, name: str, at_least: int = 1, at_most: int = MAX_WHOLE) -> int:
    """Return a whole number from ``at_least`` to ``at_most``.

    >>> whole(3, "categories")
    3
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise WrongType(name, "a whole number", type(value).__name__, f"pass {name} as an int")
    number = int(value.__index__())
    if number < at_least:
        fix = fix_by_options(f"pass {{{name}}} or more", **{name: at_least})
        raise InvalidArgument(name, f"a whole number from {at_least} on", number, *fix)
    if number > at_most:
        raise InvalidArgument(name, f"a whole number of at most {at_most}", number, f"pass a smaller {name}")
    return number


def bounds(value: object, name: str = "bounds") -> tuple[int | float, int | float]:
    """Return public bounds ``(lower, upper)``, finite and in order.

    >>> bounds((0, 120))
    (0, 120)
    """
    fix = f"pass {name}=(lower, upper), chosen without looking at the data"
    if value is None:
        raise InvalidArgument(name, "public limits (lower, upper)", "none", fix)
    if isinstance(value, (str, dict)) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        raise WrongType(name, "a pair (lower, upper)", type(value).__name__, fix)
    if len(value) != 2:
        raise InvalidArgument(name, "a pair (lower, upper)", f"{len(value)} numbers", fix)
    low, high = exactly(value[0], name), exactly(value[1], name)
    if not low < high:
        raise InvalidArgument(
            name, "lower below upper", f"({shown(value[0])}, {shown(value[1])})", "swap or widen them"
        )
    if max(abs(low), abs(high)) > _LARGEST:
        raise InvalidArgument(name, "limits that floats can hold", "larger ones", "measure in other units")
    return _plain(value[0]), _plain(value[1])


_LARGEST = Fraction(sys.float_info.max)


def _plain(value: object) -> int | float:
    """Return a number as an int if it is one, else as a float."""
    exact = exactly(value)
    return int(exact) if hasattr(value, "__index__") else float(exact)
