"""Reports of a place on a line: one of K numbers, of which a window that moves with the value is more likely.

The d places 0 to d - 1 have windows of w numbers each: place j prefers the numbers j to j + w - 1 of the K = d + w - 1
there are. A number of the own window is e^epsilon times as likely as any other, which is the whole proof. The mean of
the report is a straight line in j: that is what makes unbiased means easy, and with w near ``d exp(-epsilon / 2)`` it
is the piecewise mechanism (Wang et al. 2019) on a grid, with w near ``2 b d`` the square wave (Li et al. 2020); with
d = 2 and w = 1 it is randomized response, which is the mechanism of Duchi, Jordan and Wainwright (2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidArgument, InvalidData
from dither.exact import Enclosure
from dither.local.designs import inside_float, inside_probability
from dither.local.protocol import Codes, Floats
from dither.randomness import Source, trials, uniform_integers
from dither.validation import as_values


def line_bounds(value: object) -> tuple[int | float, int | float]:
    """Public limits between which floats can tell places: their difference is above 0 and finite as a float.

    >>> line_bounds((0, 10))
    (0, 10)
    """
    low, high = arguments.bounds(value)
    with np.errstate(over="ignore"):
        span = float(np.float64(high) - np.float64(low))
    if not (math.isfinite(span) and span >= float(np.finfo(np.float64).tiny)):
        got = "limits that are the same float" if span == 0 else "limits too far from each other, or too close"
        raise InvalidArgument("bounds", "limits whose difference is an ordinary float", got, "measure in other units")
    return low, high


def numbers_within(values: object, bounds: tuple[int | float, int | float], name: str) -> Floats:
    """Numbers within the bounds as floats; others, and what is no number, are refused without naming them.

    >>> numbers_within([1, 2.5], (0, 10), "values")
    array([1. , 2.5])
    """
    numbers: Floats = as_values(values, "number", name=name).values.astype(np.float64)
    if not bool(np.all((numbers >= float(bounds[0])) & (numbers <= float(bounds[1])))):
        raise InvalidData(
            name,
            "numbers within the bounds",
            "a number that is not, or what is no number, such as NaN or None",
            "clip numbers or state wider bounds; leave out, or fill in, what is no number",
        )
    return numbers


def bounds_parameters(bounds: tuple[int | float, int | float]) -> dict[str, object]:
    """Bounds as parameters of the byte format.

    >>> bounds_parameters((0, 2.5))
    {'low': Fraction(0, 1), 'high': Fraction(5, 2)}
    """
    return {"low": Fraction(bounds[0]), "high": Fraction(bounds[1])}


@dataclass(frozen=True)
class Windows:
    """d places with windows of w numbers, and the epsilon of a report.

    >>> windows = Windows(places=4, width=2, epsilon=Fraction(1))
    >>> windows.total, windows.law().sum(axis=1).round(9).tolist()
    (5, [1.0, 1.0, 1.0, 1.0])
    """

    places: int
    width: int
    epsilon: Fraction

    @property
    def total(self) -> int:
        """The number K of possible reports."""
        return self.places + self.width - 1

    @property
    def inside(self) -> float:
        """The probability of a report in the own window."""
        return inside_float(float(self.epsilon), self.width, self.total)

    def own_probability(self, bits: int) -> Enclosure:
        """Limits of that probability times ``2**bits``."""
        return inside_probability(self.epsilon, self.width, self.total, bits)

    def draw(self, codes: Codes, source: Source) -> NDArray[np.int64]:
        """A number for each place."""
        held = trials(self.inside, self.own_probability, codes.size, source)
        within = uniform_integers(self.width, codes.size, source).astype(np.int64) + codes
        if self.total == self.width:
            return within
        outside = uniform_integers(self.total - self.width, codes.size, source).astype(np.int64)
        outside += np.where(outside >= codes, self.width, 0)
        return np.where(held, within, outside)

    def law(self) -> Floats:
        """The probability of each number, a row for each place."""
        result = np.full((self.places, self.total), self.low)
        for place in range(self.places):
            result[place, place : place + self.width] = self.inside / self.width
        return result

    @property
    def slope(self) -> float:
        """By how much the mean report rises from a place to the next."""
        return -self.inside * math.expm1(-float(self.epsilon))

    @property
    def low(self) -> float:
        """The probability of a report that is not in the own window: right however small it is."""
        return self.inside / self.width * math.exp(-float(self.epsilon))
