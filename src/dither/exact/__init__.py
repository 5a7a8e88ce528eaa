"""Exact rationals, outward rounding and rigorous enclosures: the arithmetic below every claim.

>>> from fractions import Fraction
>>> from dither.exact import exp_neg, up
>>> low, high = exp_neg(Fraction(1), 64)          # e^-1 lies between low / 2^64 and high / 2^64
>>> high - low <= 4
True
>>> up(Fraction(1, 3)) > 1 / 3                    # rounded away from zero privacy loss
True
"""

from dither.exact.functions import (
    Enclosure,
    divide,
    exp,
    exp_neg,
    gumbel_tail,
    heavy_tail,
    log,
    normal_tail,
    pi,
    power_neg,
    root_up,
    square_root,
)
from dither.exact.rational import decimal, down, exactly, outward_max, up
from dither.public_module import name_by_home as _name_by_home

__all__ = [
    "Enclosure",
    "decimal",
    "divide",
    "down",
    "exactly",
    "exp",
    "exp_neg",
    "gumbel_tail",
    "heavy_tail",
    "log",
    "normal_tail",
    "outward_max",
    "pi",
    "power_neg",
    "root_up",
    "square_root",
    "up",
]

__dir__ = _name_by_home(__name__, __all__, globals())
