"""Search in floats, then certify: the smallest number that is proved to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction


def smallest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest float for which an increasing condition holds, by bisection in the logarithm.

    >>> round(smallest(lambda x: x * x >= 2, 1e-9, 1e9), 12)
    1.414213562373
    """
    for _ in range(300):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def certified(start: float, holds: Callable[[Fraction], bool]) -> Fraction:
    """The smallest number, to a relative 2^-36, that is proved to do, searched from ``start``.

    >>> float(certified(1.4, lambda x: x * x >= 2))**2 - 2 < 1e-9
    True
    """
    above, below = start * (1 + 2.0**-40), start * (1 - 2.0**-40)
    if holds(Fraction(above)) and not holds(Fraction(below)):  # as a rule
        return Fraction(above)
    low = high = start
    more = 2.0**-50
    while not holds(Fraction(high)):
        low, high, more = high, max(high * (1 + more), math.nextafter(high, math.inf)), 2 * more
    if low == high:
        low, more = high * (1 - 2.0**-36), 2.0**-36
        while holds(Fraction(low)):
            low, high, more = low * (1 - more), low, min(2 * more, 0.5)
    while high > low * (1 + 2.0**-36):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(Fraction(middle)) else (middle, high)
    return Fraction(high)


def crossing(excess: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Where a decreasing function becomes 0 or less, to a relative ``tolerance`` from above: false position with
    a bisection whenever that is slow. ``excess(high) <= 0`` is known; what is returned was evaluated or is high.

    >>> round(crossing(lambda x: 2 - x * x, 0.0, 10.0, 1e-12), 9)
    1.414213562
    """
    at_low = excess(low)
    if at_low <= 0:
        return low
    at_high = min(excess(high), 0.0)
    for step in range(200):
        if high - low <= tolerance * high:
            break
        place = low + (high - low) * at_low / (at_low - at_high) if math.isfinite(at_low - at_high) else low
        # a little beyond the secant, so that the bracket closes from both sides
        place += (0.25 if step % 2 else -0.25) * tolerance * high
        if step % 3 == 2 or not low < place < high:
            place = (low + high) / 2
            if not low < place < high:
                break
        value = excess(place)
        if value > 0:
            low, at_low = place, value
        else:
            high, at_high = place, value
    return high
