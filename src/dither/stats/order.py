"""Median, minimum and maximum: selected among the values there could be, never outside the bounds.

*Statement.* The ranks of a lattice point t are those from the number of records below t to the number at or
below t (more than one where records are at t). A t between the bounds is released with probability proportional
to ``exp(-epsilon d(t) / (2 D))``, d(t) the distance of the wanted rank from the ranks of t and D bounding by how
much one record moves it: the exponential mechanism (McSherry and Talwar 2007), epsilon-DP.

*How.* The score is constant between consecutive records, so the lattice falls into n + 1 stretches and n points
with ``count * exp(score)`` each: one race of 2 n + 1 clocks (:func:`~dither.randomness.first_to_ring`) and one
uniform draw inside the winner. Both are exact.
"""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument, message
from dither.guarantees import PureDP
from dither.neighbors import AddRemove, Neighbors, ReplaceOne, relation
from dither.randomness import Source, first_to_ring, resolve, uniform_integers
from dither.stats.column import Grid, NanPolicy, Values, read
from dither.stats.estimate import EstimateFloat, EstimateInt, Interval

_BITS = 30
_EDGE = math.log(1000)


@dataclass(frozen=True)
class RankInterval(Interval):
    """How many ranks a selected value can be off: ``2 D (ln d + ln(1/tail)) / epsilon``, d the number of
    lattice points.

    How far that is in the units of the data is not public without a further release, so the limits in those
    units are the bounds.
    """

    epsilon: float
    reach: float
    points: int
    low: float
    high: float

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """The bounds: nothing narrower is certain."""
        return self.low, self.high

    def ranks(self, confidence: float) -> float:
        """The number of records by which the rank is off at most."""
        return 2 * self.reach * (math.log(self.points) - math.log(1 - confidence)) / self.epsilon

    def text(self, value: float) -> str:
        """In ranks."""
        return f"within {self.ranks(0.95):.0f} ranks"


def _select(
    x: Any, bounds: Any, epsilon: Any, neighbors: Neighbors, nan: NanPolicy, source: Source | None, target: str
) -> EstimateInt | EstimateFloat:
    lower, upper = arguments.bounds(bounds)
    loss, words = arguments.epsilon(epsilon), resolve(source)
    values = read(x, relation(neighbors), nan, lower)
    if neighbors is ReplaceOne and values.size < 1:
        raise InvalidArgument(
            message(
                "x",
                "at least 1 record under ReplaceOne, where the number of records is public",
                "0",
                "pass neighbors=dither.AddRemove if that number is private",
            )
        )
    grid = Grid.between(lower, upper, _BITS, integers=values.dtype.kind == "i")
    starts, counts, below, upto = _stretches(values, grid, lower, upper)
    n = values.size
    if target == "median":
        # twice the distance of n / 2: adding or removing a record moves it by 1, replacing one by 2
        wanted, times, factor = n, 2, loss / (2 * (1 if neighbors is AddRemove else 2))
    else:
        # a rank a little inside keeps the long empty stretch beyond the data from winning; it is public
        edge = math.ceil(builtins.min(2 * Fraction(_EDGE) / loss, Fraction(1 << 50)))
        wanted, times, factor = builtins.min(edge, n // 4) if neighbors is ReplaceOne else edge, 1, loss / 2
        if target == "max":
            below, upto = n - upto, n - below
    scores = -np.maximum(np.maximum(times * below - wanted, wanted - times * upto), 0).astype(np.float64)
    chosen = first_to_ring(scores, words, factor, counts)
    place = int(starts[chosen]) + int(uniform_integers(int(counts[chosen]), 1, words)[0])
    value = (grid.first + place) * grid.step
    reach = 0.5 if target == "median" and neighbors is AddRemove else 1.0
    interval = RankInterval(float(loss), reach, grid.span + 1, float(lower), float(upper))
    if grid.step == 1 and values.dtype.kind == "i":
        return EstimateInt.of(int(value), PureDP(loss), neighbors, "Exponential", interval, words.private)
    return EstimateFloat.of(
        builtins.min(builtins.max(float(value), float(lower)), float(upper)),
        PureDP(loss),
        neighbors,
        "Exponential",
        interval,
        words.private,
    )


def _stretches(values: Values, grid: Grid, lower: float, upper: float) -> tuple[Any, Any, Any, Any]:
    """The lattice cut at the records: where each piece starts, its points, the records below it, and those up to it.

    Pieces are in turn what lies before a record and the record's own point, which is empty where it is that of
    the record before.
    """
    parts = list(grid.places(values, lower, upper))
    places = np.sort(np.concatenate(parts).astype(np.int64)) if parts else np.zeros(0, dtype=np.int64)
    n = places.size
    starts, counts, below, upto = (np.zeros(2 * n + 1, dtype=np.int64) for _ in range(4))
    ends = np.append(places, grid.span + 1)
    starts[2::2], starts[1::2] = places + 1, places
    counts[::2] = np.maximum(ends - starts[::2], 0)
    counts[1::2] = np.diff(places, prepend=-1) > 0
    below[::2] = upto[::2] = np.arange(n + 1)
    below[1::2], upto[1::2] = np.searchsorted(places, places, "left"), np.searchsorted(places, places, "right")
    return starts, counts, below, upto


def median(
    x: Any,
    bounds: tuple[float, float] | None = None,
    epsilon: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> EstimateInt | EstimateFloat:
    """A value close in rank to the median, selected by the exponential mechanism.

    >>> 40 < median([48, 49, 50, 51, 52] * 100, bounds=(0, 100), epsilon=1) < 60
    True
    """
    return _select(x, bounds, epsilon, neighbors, nan, source, "median")


def min(
    x: Any,
    bounds: tuple[float, float] | None = None,
    epsilon: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> EstimateInt | EstimateFloat:
    """A value close in rank to the smallest, inside the bounds.

    It aims at the record of rank ``2 ln(1000) / epsilon`` (or n/4, if that is less and n is public): one person
    decides the true minimum, so no private release can follow it.

    >>> 0 <= min([30, 40, 50] * 100, bounds=(0, 110), epsilon=1) <= 110
    True
    """
    return _select(x, bounds, epsilon, neighbors, nan, source, "min")


def max(
    x: Any,
    bounds: tuple[float, float] | None = None,
    epsilon: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> EstimateInt | EstimateFloat:
    """A value close in rank to the largest, inside the bounds; see :func:`min`.

    >>> 0 <= max([30, 40, 50] * 100, bounds=(0, 110), epsilon=1) <= 110
    True
    """
    return _select(x, bounds, epsilon, neighbors, nan, source, "max")
