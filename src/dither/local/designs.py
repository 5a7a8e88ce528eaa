"""The law that all reports of a design share: one of K reports, of which s are e^epsilon times as likely as the others.

A *design* gives every category a set of s of the K possible reports. A client draws a report of its category's set with
probability ``s e^epsilon / (s e^epsilon + K - s)``, uniformly, and otherwise one of the others, uniformly. So every
report has one of two probabilities, whose ratio is e^epsilon, and that is the whole proof. If any two sets share c
reports, a report lies in the set of another category with the same probability q: the protocol is pure.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dither.exact import Enclosure, divide, exp_neg


def inside_probability(epsilon: Fraction, size: int, total: int, bits: int) -> Enclosure:
    """Limits of ``s / (s + (K - s) exp(-epsilon))`` times ``2**bits``: the probability of a report in the set.

    >>> low, high = inside_probability(Fraction(1), 1, 2, 60)
    >>> round(low / 2**60, 6), high - low < 10
    (0.731059, True)
    """
    low, high = exp_neg(epsilon, bits)
    one, others = size << bits, total - size
    return divide((one, one), (one + others * low, one + others * high), bits)


def inside_float(epsilon: float, size: float, total: float) -> float:
    """The probability that :func:`inside_probability` encloses, as a float.

    >>> round(inside_float(1.0, 1, 2), 6)
    0.731059
    """
    return size / (size + (total - size) * math.exp(-epsilon))


def design_support(epsilon: float, size: int, total: int, shared: float) -> tuple[float, float]:
    """The probabilities that a report lies in the set of its sender's category, and in that of another.

    ``size`` is s, ``total`` is K and ``shared`` the number of reports that two sets have in common.

    >>> p, q = design_support(math.log(3), 1, 2, 0)
    >>> round(p, 6), round(q, 6)
    (0.75, 0.25)
    """
    p = inside_float(epsilon, size, total)
    return p, p * shared / size + (1 - p) * (size - shared) / (total - size)
