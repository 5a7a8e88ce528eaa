"""Numbers that are text on the wire: one grammar, in ASCII digits and of bounded length.

Python's own readers take more: spaces, underscores, digits of other scripts, and exponents, of which ``1e-10000000`` is
a short text and a number of ten million digits.

>>> fraction("1/3"), fraction("-2"), fraction("1e-3"), fraction(" 1/3 "), fraction("1/0")
(Fraction(1, 3), Fraction(-2, 1), None, None, None)
>>> decimal("2.5e-3"), decimal("1_0"), decimal("1e999")
(0.0025, None, None)
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

MOST_DIGITS = 1000
_FRACTION = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}(/(?=0*[1-9])[0-9]{{1,{MOST_DIGITS}}})?")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")


def fraction(text: str) -> Fraction | None:
    """The fraction that a text is; None if it is none."""
    return Fraction(text) if _FRACTION.fullmatch(text) else None


def decimal(text: str) -> float | None:
    """The finite number that a text is, with a point and an exponent; None if it is none."""
    value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None
