"""Searching for where a monotone condition changes: every bisection of the project, and which side it returns.

A claim about privacy must err to one side. A search ends with two places, one where the condition was seen to hold and
one where it was not, and only the caller knows which of the two is safe. So a bisection returns both, as a
:class:`Bracket`, and the caller names the side: ``bisect_floats(is_private, 0.0, 10.0).holds`` is private, because it
was tried; the true boundary lies between it and ``.fails``.

Conditions are monotone between the two ends that are given, and the ends themselves are never tried: one is *taken* to
fail and the other to hold. If the condition holds everywhere between them the search closes in on ``fails``; if it
holds nowhere, on ``holds``, and then returns that end untouched.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

from dither.exact.rational import down

Number = TypeVar("Number", int, float, Fraction)


class Bracket(NamedTuple, Generic[Number]):
    """The two ends that a bisection closed in on; the condition changes between them.

    >>> Bracket(fails=1, holds=2).holds
    2
    """

    fails: Number
    """The last place where the condition was seen not to hold, or the end that was given as such."""
    holds: Number
    """The last place where the condition was seen to hold, or the end that was given as such."""


def bisect_floats(
    condition: Callable[[float], bool],
    fails: float,
    holds: float,
    *,
    geometric: bool = False,
    tolerance: float = 0.0,
    negligible: float = 0.0,
    steps: int = 2200,
) -> Bracket[float]:
    """Halve the interval between ``fails`` and ``holds``, either of which may be the larger.

    Parameters
    ----------
    condition
        Monotone between the two ends.
    geometric
        Take geometric means, which suits positive numbers of unknown magnitude: as many steps are then spent on each
        power of ten. While one end is 0, the next place is a sixteenth of the other.
    tolerance
        End as soon as the ends differ by at most this share of the larger one. By default the search ends when no float
        lies between the ends (or, with ``geometric``, when the rounded mean is one of them).
    negligible
        End as soon as both ends are smaller than this.
    steps
        Try the condition at most so often. 2200 halvings separate any two floats.

    >>> root = bisect_floats(lambda x: x * x >= 2, 0.0, 2.0)
    >>> root.fails < root.holds, root.fails ** 2 < 2 <= root.holds ** 2
    (True, True)
    >>> bisect_floats(lambda x: False, 0.0, 2.0).holds
    2.0
    """
    rising = holds > fails
    low, high = (fails, holds) if rising else (holds, fails)
    relaxed = tolerance > 0 or negligible > 0
    for _ in range(steps):
        if relaxed:
            size = max(abs(low), abs(high))
            if size < negligible or high - low <= tolerance * size:
                break
        middle = _geometric_mean(low, high) if geometric else (low + high) / 2
        if not low < middle < high:
            break
        if bool(condition(middle)) is rising:
            high = middle
        else:
            low = middle
    return Bracket(low, high) if rising else Bracket(high, low)


def _geometric_mean(low: float, high: float) -> float:
    """Return the geometric mean of ``low`` and ``high`` without overflow, the point where a bisection cuts.

    If ``low`` is 0, for which the mean would be 0, it is a sixteenth of ``high``.
    """
    if low <= 0:
        return high / 16
    product = low * high
    if sys.float_info.min < product < math.inf:
        mean: float = product**0.5
        return mean
    return math.sqrt(low) * math.sqrt(high)


def bisect_integers(
    condition: Callable[[int], bool], fails: int, holds: int, *, significant_bits: int | None = None
) -> Bracket[int]:
    """Halve the interval between two integers until they are consecutive.

    With ``significant_bits`` the search ends once the ends agree to that number of bits of the smaller one.

    >>> bisect_integers(lambda k: k * k > 1000, 0, 1000)
    Bracket(fails=31, holds=32)
    """
    while True:
        low, high = min(fails, holds), max(fails, holds)
        tolerance = 1 if significant_bits is None else max(1, low >> significant_bits)
        if high - low <= tolerance:
            return Bracket(fails, holds)
        middle = (low + high) // 2
        if condition(middle):
            holds = middle
        else:
            fails = middle


def bisect_fractions(
    condition: Callable[[Fraction], bool], fails: Fraction, holds: Fraction, *, steps: int, floats: bool = False
) -> Bracket[Fraction]:
    """Halve the interval between two rationals ``steps`` times, exactly.

    With ``floats`` every place tried is rounded down to a float first, which keeps numerators and denominators short;
    what is returned was still tried as it is.

    >>> bisect_fractions(lambda x: x * x >= 2, Fraction(1), Fraction(2), steps=2)
    Bracket(fails=Fraction(5, 4), holds=Fraction(3, 2))
    """
    for _ in range(steps):
        middle = (fails + holds) / 2
        if floats:
            middle = Fraction(down(middle))
        if condition(middle):
            holds = middle
        else:
            fails = middle
    return Bracket(fails, holds)


def smallest_float(condition: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest positive float for which an increasing condition holds, by geometric bisection.

    What is returned was tried, or is ``high``, which is taken to hold.

    >>> round(smallest_float(lambda x: x * x >= 2, 1e-9, 1e9), 12)
    1.414213562373
    """
    return bisect_floats(condition, low, high, geometric=True, steps=300).holds


def largest_integer(condition: Callable[[int], bool], guess: int) -> int:
    """Return the largest integer for which a decreasing condition holds, searched outward from ``guess``.

    The steps outward double, so a guess that is off by d costs about ``2 log2(d)`` tries. The condition must hold
    somewhere and fail somewhere: otherwise the search does not end.

    >>> largest_integer(lambda k: k * k <= 1000, 3)
    31
    """
    step = 1
    if condition(guess):
        holds, fails = guess, guess + 1
        while condition(fails):
            holds, fails, step = fails, fails + 2 * step, 2 * step
    else:
        holds, fails = guess - 1, guess
        while not condition(holds):
            holds, fails, step = holds - 2 * step, holds, 2 * step
    return bisect_integers(condition, fails, holds).holds


def certified(start: float, condition: Callable[[Fraction], bool]) -> Fraction:
    """Return the smallest number, to a relative 2^-36, for which an increasing ``condition`` is *proved*.

    ``start`` comes from a search in floats and is right but for their rounding; the condition is decided in exact
    arithmetic. As a rule it holds at ``start (1 + 2^-40)`` and fails at ``start (1 - 2^-40)``, and two evaluations
    suffice; otherwise the bracket is widened and bisected. What is returned satisfies the condition, because it was
    tried. The condition must hold for all large numbers and fail for some positive number: otherwise the search does
    not end.

    >>> float(certified(1.4, lambda x: x * x >= 2))**2 - 2 < 1e-9
    True
    """
    above, below = start * (1 + 2.0**-40), start * (1 - 2.0**-40)
    if condition(Fraction(above)) and not condition(Fraction(below)):  # as a rule
        return Fraction(above)
    low = high = start
    widening = 2.0**-50
    while not condition(Fraction(high)):
        low, high, widening = high, max(high * (1 + widening), math.nextafter(high, math.inf)), 2 * widening
    if low == high:
        low, widening = high * (1 - 2.0**-36), 2.0**-36
        while condition(Fraction(low)):
            low, high, widening = low * (1 - widening), low, min(2 * widening, 0.5)
    return Fraction(bisect_floats(lambda x: condition(Fraction(x)), low, high, tolerance=2.0**-36).holds)


def crossing(excess: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Return where the decreasing function ``excess`` becomes 0 or less, to a relative ``tolerance``, from above.

    The root is between ``low`` and ``high``; ``excess(high) <= 0`` is known. False position, with a bisection whenever
    that is slow (every third step): fewer evaluations than bisection where each of them is expensive. What is returned
    was evaluated and is at most 0 there, or is ``high``.

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
        point = math.nan  # where the ends are not finite there is no secant
        if math.isfinite(at_low - at_high):
            point = low + (high - low) * at_low / (at_low - at_high)
            # a little beyond the secant, so that the bracket closes from both sides
            point += (0.25 if step % 2 else -0.25) * tolerance * high
        if step % 3 == 2 or not low < point < high:
            point = (low + high) / 2
            if not low < point < high:
                break
        value = excess(point)
        if value <= 0:
            high, at_high = point, value
        else:  # NaN is not at most 0
            low, at_low = point, value
    return high


def minimize(function: Callable[[float], float], low: float, high: float, *, steps: int) -> float:
    """Return where a function that first falls and then rises is smallest between ``low`` and ``high``.

    Golden-section search: each of the ``steps`` keeps 0.618 of the interval. Nothing is proved about the point
    returned, so it is for choices of which every one is valid and some are better.

    >>> round(minimize(lambda x: (x - 2) ** 2, 0.0, 10.0, steps=60), 6)
    2.0
    """
    for _ in range(steps):
        left, right = low + (high - low) * 0.382, high - (high - low) * 0.382
        narrower = (low, right) if function(left) < function(right) else (left, high)
        if narrower == (low, high):
            break
        low, high = narrower
    return (low + high) / 2
