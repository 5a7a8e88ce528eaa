"""How much a limit on what one person counts for leaves out, from a noisy histogram of people.

A person with r rows loses ``max(r - R, 0)`` of them to the limit R. With ``g_s(r) = max(r - R, 0) - s r``, the share of
the rows that is left out exceeds s exactly if the sum of ``g_s`` over the people is above 0. The histogram bounds that
sum: a person in a bin adds no less than the smallest ``g_s`` of the bin, and bins whose people can only add to it may
be ignored. The statement is therefore true whatever the people are: there is no law of their rows that it assumes.

*From above* a histogram says nothing, unless it is public how many rows (or groups) a person can have at most. One
person more, with as many rows as all others together have, changes one bin by 1. That is what the noise hides: a limit
that is above the share for one of both tables and below it for the other would tell them apart. So what is said is "at
least", except of groups, of which there are no more than public keys.

*Noise.* A sum of the noise of the bins with weights w, in units of its scale, exceeds t with a probability of at most
``exp(-l t) prod 1 / (1 - (l w)^2)`` for every l below ``1 / max |w|``: the moment generating function of Laplace's law
is ``1 / (1 - l^2)``, and that of the discrete one is smaller.

*Shares.* They are tried on a fixed grid, from below, until one cannot be excluded. If the lower limit is above the true
share, then the first point of the grid that is not below the true share was excluded although it is true: that has a
probability of at most :data:`_DOUBT`, and the same holds from above.

All of it is post-processing of released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.tables.planning.best_limit import EDGES

Floats = NDArray[np.float64]

_DOUBT = 0.025
"""The probability with which each of both limits may be wrong."""
_SHARES = np.concatenate([np.geomspace(1e-4, 0.02, 24), np.linspace(0.03, 0.99, 97), [0.995, 0.999]])
_LAST_BINS = range(len(EDGES) - 1, -1, -4)
"""The bins behind which a histogram may be ignored: the doubt is divided among them."""
_SLOPES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
"""What is tried as l, in units of ``1 / max |w|``."""


@dataclass(frozen=True)
class LeftOut:
    """How much of the rows a limit leaves out, as a share of all rows: an estimate, and where it lies with 95 %
    confidence. Without an upper limit ``high`` is 1, and ``share`` is ``low``: it is at least that.

    >>> str(LeftOut(0.12, 0.1, 0.15)), str(LeftOut(0.1, 0.1, 1.0))
    ('about 12 % of the rows are left out (10 % to 15 %)', 'at least 10 % of the rows are left out')
    """

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.of("the rows")

    def of(self, what: str) -> str:
        """A sentence about what is left out: rows, or groups of people.

        >>> LeftOut.at_least(0.0).of("people's groups")
        "the noise hides whether any of people's groups are left out"
        """
        if self.high < 1:
            return f"about {percent(self.share)} of {what} are left out ({percent(self.low)} to {percent(self.high)})"
        if not self.low:
            return f"the noise hides whether any of {what} are left out"
        return f"at least {percent(self.low)} of {what} are left out"

    @classmethod
    def at_least(cls, low: float) -> LeftOut:
        """What is known from below alone."""
        return cls(low, low, 1.0)


def estimate_left_out(people: Floats, epsilon: Fraction, limit: float, most: int | None = None) -> LeftOut:
    """How much a limit leaves out, from the noisy histogram of people.

    Parameters
    ----------
    people
        The noisy number of people in each bin of :data:`~dither.tables.planning.best_limit.EDGES`.
    epsilon
        What the histogram cost: its noise is Laplace noise of scale ``1 / epsilon``.
    limit
        What one person counts for at most.
    most
        What a person can have at most, where that is public.

    Examples
    --------
    >>> people = np.zeros(len(EDGES))
    >>> people[EDGES.index(8)] = 10_000
    >>> print(estimate_left_out(people, Fraction(1, 10), 2))
    at least 74 % of the rows are left out
    >>> print(estimate_left_out(people, Fraction(1, 10), 2, most=8))
    about 75 % of the rows are left out (74 % to 76 %)
    """
    upper = np.array(EDGES, dtype=np.float64)
    lower = np.concatenate([[0.0], upper[:-1]]) + 1
    upper[-1] = math.inf
    if most is not None and most < EDGES[-1]:
        possible = lower <= most
        people, lower, upper = people[possible], lower[possible], np.minimum(upper[possible], most)
    if upper[-1] <= limit:
        return LeftOut(0.0, 0.0, 0.0)
    scaled, ends = people * float(epsilon), {min(end, len(people) - 1) for end in _LAST_BINS}
    at_lower, at_upper = _excess(lower, limit), _excess(upper, limit)
    least = np.minimum(at_lower, at_upper)
    least = np.where((lower < limit) & (limit < upper), -_SHARES[:, None] * limit, least)
    excluded = np.zeros(len(_SHARES), dtype=np.bool_)
    for end in ends:
        ignorable = (least[:, end + 1 :] >= 0).all(axis=1)
        sums = least[:, : end + 1] @ scaled[: end + 1]
        tried = np.flatnonzero(ignorable & (sums > 0) & ~excluded)
        excluded[tried] = sums[tried] > _noise(least[tried, : end + 1], _DOUBT / len(ends))
    low = _last_of_first(excluded, _SHARES, 0.0)
    if math.isinf(upper[-1]):
        return LeftOut.at_least(low)
    largest = np.maximum(at_lower, at_upper)
    excluded = largest @ scaled < -_noise(largest, _DOUBT)
    high = _last_of_first(excluded[::-1], _SHARES[::-1], 1.0)
    if high == 1:
        return LeftOut.at_least(low)
    middle = (lower + upper) / 2
    share = float(people @ np.maximum(middle - limit, 0)) / max(float(people @ middle), 1.0)
    return LeftOut(min(max(share, low), high), low, high)


def _last_of_first(excluded: NDArray[np.bool_], shares: Floats, otherwise: float) -> float:
    """The last share of those at the beginning that are all excluded."""
    number = int(np.argmin(np.append(excluded, False)))
    return float(shares[number - 1]) if number else otherwise


def _excess(rows: Floats, limit: float) -> Floats:
    """``g_s`` at these numbers of rows, a line for each share of the grid; infinite for infinitely many rows."""
    with np.errstate(invalid="ignore"):
        excess = np.maximum(rows - limit, 0.0) - _SHARES[:, None] * rows
    return np.where(np.isinf(rows), math.inf, excess)


def _noise(weights: Floats, doubt: float) -> Floats:
    """What a sum of Laplace variables of scale 1 with these weights, a line each, exceeds with this probability or a
    smaller one."""
    largest = np.maximum(np.abs(weights).max(axis=1), 1e-12)
    relative = (weights / largest[:, None])[:, :, None] * _SLOPES
    bounds = (-np.log1p(-np.square(relative)).sum(axis=1) - math.log(doubt)) / _SLOPES
    result: Floats = bounds.min(axis=1) * largest
    return result


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.5), percent(0.0312), percent(2e-7), percent(0)
    ('50 %', '3.1 %', 'less than 0.01 %', '0 %')
    """
    if 0 < share < 0.0001:
        return "less than 0.01 %"
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"
