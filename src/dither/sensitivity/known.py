"""Global sensitivities of the usual statistics, for either relation.

``n`` is the number of records; under :data:`~dither.AddRemove` that of the smaller of the two tables. ``width``
below is upper - lower. All results are rounded up to floats.
"""

from __future__ import annotations

import math
from fractions import Fraction

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
    """Return the number by which one record is outweighed: the size of the larger table."""
    return arguments.whole(n, "n", at_least) + (neighbors is AddRemove)


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

    Replacing moves the sum by the width; adding x moves the mean by ``(x - mean) / (n + 1)``.

    >>> from dither import ReplaceOne
    >>> mean(n=100, bounds=(0, 1), neighbors=ReplaceOne) == 0.01
    True
    """
    return up(_width(bounds) / _records(n, relation(neighbors), 1))


def variance(*, n: int, bounds: object, neighbors: Neighbors) -> float:
    """Return the squared width of the bounds over the size of the larger table (sample variance, divisor n - 1).

    Replace: all equal against one at the other bound, ``width^2 / n``. Add: ``s'^2 = s^2 (n-1)/n + d^2/(n+1)``
    with d the distance of the new record from the mean, so the change is between ``-s^2/n >= -width^2 / (4
    (n-1))`` and ``width^2 / (n+1)``.

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
