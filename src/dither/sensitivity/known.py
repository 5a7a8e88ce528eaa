"""Global sensitivities of the usual statistics, for either relation.

``n`` is the number of records; under :data:`~dither.AddRemove` that of the larger of the two tables, so that
removing one of n is covered. ``width``
below is upper - lower. All results are rounded up to floats.

A sensitivity estimated from a public distribution of the data, for statistics without a finite global one.

*Statement.* Let f be a statistic of n records, and G the distance of its values on two neighbors whose records are
independent draws of a distribution P. Of ``trials`` independent copies of G, :func:`sampled` returns the largest. The
copy of G that belongs to the actual data and one neighbor of theirs, if these are draws of P as well, exceeds it with
probability at most ``1 / (trials + 1)``. Laplace noise of scale ``sampled / epsilon`` then has random differential
privacy (Hall, Rinaldo and Wasserman 2013) with gamma = 1 / (trials + 1): with probability 1 - gamma, over the data, the
neighbor and the trials, the privacy loss is at most epsilon.

*Why.* The ``trials + 1`` copies are exchangeable; each is strictly the largest with the same probability, and at most
one of them is.

*What it does not guarantee.* This is not differential privacy. It says nothing about data that are not draws of P, nor
about a record that is not: an outlier, or a person whom an attacker singles out, may lose everything. gamma is not
delta: where the event fails there is no bound on the loss, and it holds for one pair of neighbors, not for all of them
at once. It must be computed from P, or from public data, never from the data to be protected.

The course's document 2 names a *general sensitivity* as another way around a global sensitivity that is too large, and
does not define it. This is the construction of Rubinstein and Alda (2017), whose bound is larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument
from dither.exact import exactly, square_root, up
from dither.neighbors import AddRemove, Neighbors, relation

_BITS = 96


def _width(bounds: object) -> Fraction:
    """Return the exact width of the bounds."""
    low, high = arguments.bounds(bounds)
    return exactly(high) - exactly(low)


def _records(n: object, neighbors: Neighbors, at_least: int) -> int:
    """Return the checked number of records of the larger of two neighboring tables.

    Under AddRemove there must be one more than ``at_least``, so that the smaller table has enough.
    """
    return arguments.whole(n, "n", at_least + (neighbors is AddRemove))


def count(*, neighbors: Neighbors) -> float:
    """Return 1: one record more, or one record that now satisfies the condition.

    >>> from dither import AddRemove
    >>> count(neighbors=AddRemove)
    1.0
    """
    relation(neighbors)
    return 1.0


def sum(*, bounds: object, neighbors: Neighbors) -> float:
    """Return the width of the bounds for replace, and the larger of ``|lower|`` and ``|upper|`` for add or remove.

    >>> from dither import AddRemove, ReplaceOne
    >>> sum(bounds=(-10, 5), neighbors=ReplaceOne), sum(bounds=(-10, 5), neighbors=AddRemove)
    (15.0, 10.0)
    """
    low, high = arguments.bounds(bounds)
    return up(max(abs(exactly(low)), abs(exactly(high))) if relation(neighbors) is AddRemove else _width(bounds))


def mean(*, n: int, bounds: object, neighbors: Neighbors) -> float:
    """Return the width of the bounds over the size of the larger table.

    Replacing moves the sum by the width; adding x as record n moves the mean by ``(x - mean) / n``.

    >>> from dither import ReplaceOne
    >>> mean(n=100, bounds=(0, 1), neighbors=ReplaceOne) == 0.01
    True
    """
    return up(_width(bounds) / _records(n, relation(neighbors), 1))


def variance(*, n: int, bounds: object, neighbors: Neighbors) -> float:
    """Return the squared width of the bounds over the size of the larger table (sample variance, divisor n - 1).

    Replace: all equal against one at the other bound, ``width^2 / n``. Add record n: ``s'^2 = s^2 (n-2)/(n-1) + d^2/n``
    with d its distance from the mean, so the change is between ``-s^2/(n-1) >= -width^2 / (4 (n-2))`` and
    ``width^2 / n``; the former is attained only by even n - 1, for which it is ``-width^2 / (4 (n-2))`` too.

    >>> from dither import ReplaceOne
    >>> variance(n=100, bounds=(0, 10), neighbors=ReplaceOne)
    1.0
    """
    return up(_width(bounds) ** 2 / _records(n, relation(neighbors), 2))


def std(*, n: int, bounds: object, neighbors: Neighbors) -> float:
    """Return the width of the bounds over the *square root* of the size of the larger table.

    The worst case is a table of equal values against one with a single value at the other bound.

    >>> from dither import ReplaceOne
    >>> std(n=100, bounds=(0, 1), neighbors=ReplaceOne)
    0.1
    """
    size = _records(n, relation(neighbors), 2)
    root = math.isqrt(size)
    if root * root == size:
        return up(_width(bounds) / root)
    return up(_width(bounds) / Fraction(square_root(Fraction(size), _BITS)[0], 1 << _BITS))


def minimum(*, bounds: object, neighbors: Neighbors) -> float:
    """Return the width: one record can be the minimum. Noise of that size drowns it; :func:`dither.stats.min` selects
    instead.

    >>> from dither import ReplaceOne
    >>> minimum(bounds=(0, 110), neighbors=ReplaceOne)
    110.0
    """
    relation(neighbors)
    return up(_width(bounds))


maximum = minimum
median = minimum


def histogram(*, neighbors: Neighbors, norm: int = 1) -> float:
    """Return 1 for add or remove, and for replace 2 in the l1 norm or sqrt(2) in the l2 norm.

    Replacing lowers one count and raises another; the number of bins plays no part.

    >>> from dither import AddRemove, ReplaceOne
    >>> histogram(neighbors=AddRemove), histogram(neighbors=ReplaceOne)
    (1.0, 2.0)
    """
    if arguments.whole(norm, "norm") > 2:
        raise InvalidArgument("norm", "1 or 2", norm, "pass norm=1 for Laplace noise, norm=2 for Gaussian")
    if relation(neighbors) is AddRemove:
        return 1.0
    return 2.0 if norm == 1 else math.nextafter(math.sqrt(2), 2)


def sampled(
    statistic: Callable[[Any], float], draw: Callable[[int], Any], *, n: int, gamma: float, neighbors: Neighbors
) -> float:
    """Return a bound on the change of a statistic that random neighbors exceed with probability at most ``gamma``.

    Parameters
    ----------
    statistic
        Takes an array of records, returns a number.
    draw
        Takes a number of records, returns an array of as many independent draws from a *public* distribution.
    n
        The number of records; under ``AddRemove`` that of the larger data set.
    gamma
        How likely random neighbors are to differ by more; ``1/gamma - 1`` pairs of data sets are drawn.
    neighbors
        The relation.

    Examples
    --------
    >>> import dither as dp
    >>> incomes = np.random.default_rng(1)
    >>> bound = sampled(np.mean, lambda k: incomes.pareto(3, k) + 1, n=1000, gamma=0.01, neighbors=dp.ReplaceOne)
    >>> 0.002 < bound < 0.2     # the global sensitivity is infinite
    True
    """
    size = arguments.whole(n, "n", 2 if relation(neighbors) is AddRemove else 1)
    if not 0 < gamma < 1:
        raise InvalidArgument("gamma", "a number between 0 and 1", gamma, "pass gamma=0.01, for example")
    largest = 0.0
    for _ in range(max(1, math.ceil(1 / arguments.positive(gamma, "gamma")) - 1)):
        if neighbors is AddRemove:
            records = draw(size)
            change = abs(float(statistic(records)) - float(statistic(records[:-1])))
        else:
            records = draw(size + 1)
            replaced = records[np.append(np.arange(size - 1), size)]
            change = abs(float(statistic(records[:-1])) - float(statistic(replaced)))
        if not math.isfinite(change):
            raise InvalidArgument(
                "statistic", "a finite number for every sample", "NaN or infinity", "bound the statistic first"
            )
        largest = max(largest, change)
    return largest
