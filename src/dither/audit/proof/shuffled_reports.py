"""Shuffled reports: the curve of the clones by enumeration, and an attack that shows how much of it is real.

*From above.* Of n - 1 other reports, C ~ Bin(n - 1, r) are clones (:mod:`dither.accounting.shuffling` has the proof in
its first lines; r = t = exp(-epsilon0), or 2 t / (1 + t) where reports are distinct). Given C, the number a of reports
that came from Q0 has the laws

    P(a) = A B(a - 1) + D B(a),   Q(a) = D B(a - 1) + A B(a),   B = Bin(C, 1/2),   A = w / (1 + t),  D = t A,

where w is the probability of C. As ``B(a - 1) / B(a) = a / (C + 1 - a)`` grows with a, the set with the largest
``P - e^epsilon Q`` is one of ``a >= j``, and with the tail T of B

    delta = sum over C of the largest over j of (A - e^epsilon D) T(j - 1) + (D - e^epsilon A) T(j).

*From below.* In randomized response over k >= 3 categories, let all others have a third one. Of their reports C are one
of the two categories of the person, with r = 2 / (e^epsilon0 + k - 1), and the person's own is with probability
``h = (e^epsilon0 + 1) / (e^epsilon0 + k - 1)``. For whoever looks at these two numbers only, the formula above is exact
with ``A = h w(C) / (1 + t) + (1 - h) w(C + 1) / 2`` and ``D = h t w(C) / (1 + t) + (1 - h) w(C + 1) / 2``. A
bound for all randomizers is not below that for k = 3; reports of one bit have no such third value, and no lower bound
here. The accountant knows a smaller curve of k-ary response, by its blanket; it lies between the two.

All numbers are integers in units of 2^-512, rounded outward; nothing of :mod:`dither.accounting.shuffling` is used.
What lies outside of a window around the mean, at most exp(-100) on either side by Bernstein's inequality, counts in
full from above and not at all from below. So many people that the window would be too wide are counted as fewer, which
is worse, and have no lower bound.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from dither.accounting import Shuffled
from dither.audit.proof.evidence import Evidence, Interval, exp_interval

_BITS = 512  # masses at the end of a window are near 2^-260, and n times their relative error has to be small
_UNIT = 1 << _BITS
_EXPONENT = 100
_OUTSIDE = _UNIT >> 144  # exp(-100) is below 2^-144
_MAX_MEAN = 1 << 22


def shuffled_evidence(event: Shuffled) -> Evidence:
    """The pure loss, which k-ary response attains, and the curve."""
    return Evidence(
        (event.epsilon, event.epsilon),
        partial(_curve, event.epsilon, event.n, event.response_categories, event.distinct),
        "one value replaced by another, all other people having a third one",
        "enumeration of the number of clones",
    )


def _curve(epsilon0: Fraction, n: int, categories: int | None, distinct: bool, epsilon: Fraction) -> Interval:
    t = exp_interval(-epsilon0, 2 * _BITS)
    rate = (2 * t[0] / (1 + t[0]), 2 * t[1] / (1 + t[1])) if distinct else t
    high = clones(t, rate, (Fraction(1), Fraction(1)), n, epsilon)[1]
    k = categories if distinct else 3
    if k is None or k < 3:
        return Fraction(0), high
    # in terms of t: 2 / (1/t + k - 1) and (1/t + 1) / (1/t + k - 1), which grow and fall with t
    seen = 2 * t[0] / (1 + (k - 1) * t[0]), 2 * t[1] / (1 + (k - 1) * t[1])
    own = (1 + t[1]) / (1 + (k - 1) * t[1]), (1 + t[0]) / (1 + (k - 1) * t[0])
    return clones(t, seen, own, n, epsilon)[0], high


def clones(t: Interval, rate: Interval, own: Interval, n: int, epsilon: Fraction) -> Interval:
    """delta(epsilon) where each of n - 1 other reports is a clone with probability ``rate`` and the person's own report
    is one of these with probability ``own``.

    >>> half = Fraction(1, 2), Fraction(1, 2)
    >>> one = Fraction(1), Fraction(1)
    >>> low, high = clones(half, half, one, 1, Fraction(0))          # the person's report alone
    >>> round(float(low), 9), round(float(high), 9)
    (0.333333333, 0.333333333)
    """
    others, complete = n - 1, True
    if others * rate[1] > _MAX_MEAN:
        others, complete = int(_MAX_MEAN / rate[1]), False
    first, weights = _binomial(others, rate)
    growth = exp_interval(epsilon, 2 * _BITS)
    alone = _scaled((own[0] / (1 + t[1]), own[1] / (1 + t[0])))
    shared = _scaled((own[0] * t[0] / (1 + t[0]), own[1] * t[1] / (1 + t[1])))
    rest = _scaled(((1 - own[1]) / 2, (1 - own[0]) / 2))
    e = _scaled(growth)
    tail = _HalfTail(first)
    low = high = 0
    for place, weight in enumerate(weights):
        tail.advance(first + place)
        after = weights[place + 1] if place + 1 < len(weights) else (0, _OUTSIDE)
        one = _add(_times(alone, weight), _times(rest, after))
        other = _add(_times(shared, weight), _times(rest, after))
        gain, cost = _subtract(one, _times(e, other)), _subtract(_times(e, one), other)
        if gain[1] <= 0:
            continue
        count, best = first + place + 1, (0, gain[1])
        if gain[0] > 0:
            # the best j is the first above (C + 1) cost / (gain + cost)
            start = count * cost[0] // (gain[1] + cost[0]) + 1
            end = min(count * cost[1] // (gain[0] + cost[1]) + 1, count)
            values = [
                _subtract(_times(gain, before), _times(cost, at)) for before, at in map(tail.at, range(start, end + 1))
            ]
            best = max(0, *(value[0] for value in values)), max(0, *(value[1] for value in values))
        low, high = low + best[0], high + best[1]
    return Fraction(low if complete else 0, _UNIT), Fraction(min(high + 2 * _OUTSIDE, _UNIT), _UNIT)


class _HalfTail:
    """Tails T of B = Bin(C, 1/2) in units, enclosed, for C that grows by one and places i that move little."""

    def __init__(self, count: int) -> None:
        self.count, self.i = count, count // 2
        first, masses = _binomial(count, (Fraction(1, 2), Fraction(1, 2)))
        above = masses[self.i - first :]
        self.tail = sum(low for low, _ in above), sum(high for _, high in above) + _OUTSIDE  # T(i)
        self.mass = above[0]  # B(i)

    def advance(self, count: int) -> None:
        """From Bin(C, 1/2) to Bin(C + 1, 1/2): T(i) grows by B(i - 1) / 2, B(i) by (C + 1) / (2 (C + 1 - i))."""
        while self.count < count:
            self.tail = _add(self.tail, _ratio(self.mass, self.i, 2 * (self.count - self.i + 1)))
            self.count += 1
            self.mass = _ratio(self.mass, self.count, 2 * (self.count - self.i))

    def at(self, j: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """T(j - 1) and T(j), for j from 1 to C + 1."""
        while self.i < j - 1:
            self.tail = _subtract(self.tail, self.mass)
            self.mass = _ratio(self.mass, self.count - self.i, self.i + 1)
            self.i += 1
        while self.i > j - 1:
            self.mass = _ratio(self.mass, self.i, self.count - self.i + 1)
            self.tail = _add(self.tail, self.mass)
            self.i -= 1
        return _positive(self.tail), _positive(_subtract(self.tail, self.mass))


def _binomial(count: int, rate: Interval) -> tuple[int, list[tuple[int, int]]]:
    """The first value of a window, and enclosures of the masses in it."""
    mean = float(count * rate[1])
    width = math.ceil(math.sqrt(2 * mean * _EXPONENT) + 2 * _EXPONENT / 3) + 3
    mode = min(count, int((count + 1) * rate[0]))
    low, high = max(0, mode - width), min(count, mode + width)
    odds = _scaled((rate[0] / (1 - rate[0]), rate[1] / (1 - rate[1])))
    up, down = [(_UNIT, _UNIT)], [(_UNIT, _UNIT)]
    for k in range(mode, high):
        up.append(_ratio(_times(up[-1], odds), count - k, k + 1))
    inverse = _UNIT * _UNIT // odds[1], -(-_UNIT * _UNIT // max(odds[0], 1))
    for k in range(mode, low, -1):
        down.append(_ratio(_times(down[-1], inverse), k, count - k + 1))
    masses = down[:0:-1] + up
    least, most = sum(mass[0] for mass in masses), sum(mass[1] for mass in masses)
    inside = _UNIT - 2 * _OUTSIDE
    return low, [(one[0] * inside // most, -(-one[1] * _UNIT // least)) for one in masses]


def _scaled(interval: Interval) -> tuple[int, int]:
    low, high = interval
    return low.numerator * _UNIT // low.denominator, -(-high.numerator * _UNIT // high.denominator)


def _add(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


def _subtract(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] - other[1], one[1] - other[0]


def _positive(interval: tuple[int, int]) -> tuple[int, int]:
    return max(interval[0], 0), max(interval[1], 0)


def _times(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The product of two intervals of which neither has a negative end."""
    return one[0] * other[0] >> _BITS, -(-one[1] * other[1] >> _BITS)


def _ratio(interval: tuple[int, int], numerator: int, denominator: int) -> tuple[int, int]:
    return interval[0] * numerator // denominator, -(-interval[1] * numerator // denominator)
