"""The Kolmogorov-Smirnov mechanism on a grid of several dimensions, drawn exactly where the grid is narrow.

The law is that of :mod:`dither.density.ks`: k points in the cells of a grid, one placement z with probability
proportional to ``exp(-epsilon t(z) / 2) / prod c!``, ``t(z) = ceil(n KS)``, KS the largest difference of the shares of
data and release below a vertex of the grid.

*How.* As there: a threshold T first, then z with ``t(z) <= T``, uniformly among ordered placements. The recursion goes
along the first axis, slice by slice. Its state is the number of points below each vertex of a slice, summed over the
slices before: D numbers, for slices of D cells, each within ``k X/n -+ k T/n``. The cells of a slice are filled one
after the other; filling a cell moves all numbers at vertices above it, so a slice takes D convolutions with ``1/c!``.

*Cost.* A slice has up to ``(k + 1)^D`` states, and D is the product of the lengths of all axes but the first. This is
the obstacle that document 1 calls a practical problem: the profile of a slice is all that has to be remembered, and
the number of profiles grows exponentially with the cells of the slice. For 100 points within 0.05 of evenly spread data
there are 1.1e3 profiles of a slice of 3 cells, 1.2e6 of 6, 6.5e9 of 10 and 5e25 of 40. A grid of 40 x 3 cells with 63
points takes two seconds. Releases whose bound on the states, a function of k and D, is above 2^18 are refused.

*Other ways.* A Markov chain would need a mixing time that is proved for every data set, as what is missing to the law
is added to delta. Moving one point changes the score by up to n/k, so with one point redrawn at a time Dobrushin's
condition asks for ``(k - 1) tanh(epsilon n / (4 k)) < 1``, about ``epsilon n < 4``; for epsilon = 1, n = 1000, k = 100
the left side is 97.7. Rejection from independent proposals takes up to ``exp(epsilon n KS / 2)`` of them.

*Rounding.* Each of the D convolutions of a slice is one of the sums of :func:`dither.density.ks.rounding`; a path is
drawn slice by slice, backwards, exactly in proportion to floats. So eta has a term for each cell.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dither.density.ks import Floats, Integers, Problem
from dither.randomness import Source, exponential_race

MAX_STATES = 1 << 18


def most_points(width: int) -> int:
    """Return the largest number of points for slices of ``width`` cells.

    >>> [most_points(width) for width in (2, 3, 4, 6)]
    [511, 63, 21, 7]
    """
    k = int(MAX_STATES ** (1 / width)) + 1
    while (k + 1) ** width > MAX_STATES:
        k -= 1
    return k


@dataclass(frozen=True, eq=False)
class GridProblem(Problem):
    """The data's cumulative counts at the vertices of the grid, and the number of points to place."""

    cumulative: Integers
    points: int

    @property
    def records(self) -> int:
        """n."""
        return int(self.cumulative.flat[-1])

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.cumulative.size

    @cached_property
    def _moved(self) -> Integers:
        """For each cell of a slice, at which vertices of the slice a point in it counts."""
        corners = list(np.ndindex(self.cumulative.shape[1:]))
        above = [[all(a <= b for a, b in zip(cell, v, strict=True)) for v in corners] for cell in corners]
        return np.array(above, dtype=np.int64)

    @cached_property
    def _inverse(self) -> Integers:
        """The counts of the cells from the numbers at the vertices."""
        return np.rint(np.linalg.inv(self._moved)).astype(np.int64)

    def score(self, path: Integers) -> int:
        """Return ``t(z)`` of cumulative counts at the vertices."""
        n, k = self.records, self.points
        worst = max(abs(k * int(x) - n * int(z)) for x, z in zip(self.cumulative.flat, path.flat, strict=True))
        return -(-worst // k)

    def band(self, threshold: int) -> list[tuple[Integers, Integers]]:
        """Return the lowest and highest cumulative count at each vertex of each slice with ``t(z) <= threshold``.

        Low > high where there is none.
        """
        n, k = self.records, self.points
        limits = []
        for row in self.cumulative.reshape(len(self.cumulative), -1).tolist():
            low = [max(0, -(-(k * x - threshold * k) // n)) for x in row]
            high = [min(k, (k * x + threshold * k) // n) for x in row]
            limits.append((np.array(low), np.array(high)))
        limits[-1][0][-1] = limits[-1][1][-1] = k
        return limits

    def forward(self, threshold: int, weights: Floats) -> GridForward:
        """Compute the logarithm of the sum of the weights of all placements inside the band, slice by slice.

        ``threshold`` is the T that gives the band, and ``weights[c]`` the logarithm of the weight of c points in one
        cell. ``logs[i]`` of the result holds, for each state of slice i inside the band, the logarithm of the sum over
        the placements that lead to it. If the band is empty the total is -inf.

        >>> problem = GridProblem(np.array([[1, 1], [1, 2]]), 3)
        >>> result = problem.forward(2, problem.log_weights())      # all 20 placements of 3 points in 4 cells
        >>> abs(result.total - problem.everything()) < 1e-12
        True
        """
        band = self.band(threshold)
        previous = np.zeros(len(self._moved), dtype=np.int64)
        before, logs = np.zeros([1] * len(self._moved)), []
        for low, high in band:
            if np.any(low > high) or np.any(high < previous):
                return GridForward(threshold, band, [np.full([1] * len(low), -np.inf)])
            values = np.full(high - previous + 1, -np.inf)
            kept = tuple(slice(0, min(a, b)) for a, b in zip(before.shape, values.shape, strict=True))
            values[kept] = before[kept]
            for moved in self._moved:
                values = _filled(values, moved, weights)
            before = values[tuple(slice(max(0, start), None) for start in low - previous)]
            previous = np.maximum(low, previous)
            logs.append(before)
        return GridForward(threshold, self._narrowed(band), logs)

    def _narrowed(self, band: list[tuple[Integers, Integers]]) -> list[tuple[Integers, Integers]]:
        """Raise lower ends to those of earlier slices, since cumulative counts do not fall."""
        lows = itertools.accumulate((low for low, _ in band), np.maximum)
        return [(low, high) for low, (_, high) in zip(lows, band, strict=True)]

    def scores(self, inner: GridForward, slice_number: int, after: Integers, weights: Floats) -> Floats:
        """Return, for every state of one slice, the logarithm of the weight with which it is drawn.

        ``inner`` is the recursion of :meth:`forward`, ``slice_number`` the slice, ``after`` the state that was drawn
        for the next slice, and ``weights[c]`` the logarithm of the weight of c points in one cell. The weight is that
        of all placements that lead to the state, times that of the cells between it and ``after``; it is 0 (-inf)
        where a cell would have a negative number of points.
        """
        low, _ = inner.band[slice_number]
        logs = inner.logs[slice_number]
        states = np.indices(logs.shape).reshape(logs.ndim, -1) + low[:, np.newaxis]
        counts = self._inverse.T @ (after[:, np.newaxis] - states)
        possible = (counts >= 0).all(axis=0)
        result = np.full(logs.size, -np.inf)
        result[possible] = logs.ravel()[possible] + weights[counts[:, possible]].sum(axis=0)
        return result

    def draw(self, inner: GridForward, weights: Floats, source: Source) -> Integers:
        """Draw cumulative counts inside the band, exactly in proportion to their weight.

        ``inner`` is the recursion of :meth:`forward`, ``weights[c]`` the logarithm of the weight of c points in one
        cell, and ``source`` the randomness. Slices are drawn from the last one backwards, each given the next.
        """
        path: list[Integers] = []
        for (low, _), logs, number in reversed(list(zip(inner.band, inner.logs, itertools.count()))):
            scores = self.scores(inner, number, path[-1], weights) if path else logs.ravel()
            path.append(low + np.array(np.unravel_index(exponential_race(scores, source), logs.shape)))
        return np.array(path[::-1]).reshape(self.cumulative.shape)

    def counted(self, cells: Integers) -> Integers:
        """Return the cumulative counts of points in these cells.

        >>> GridProblem(np.array([[1, 1], [1, 2]]), 3).counted(np.array([0, 3, 3])).tolist()
        [[1, 1], [1, 3]]
        """
        result = np.bincount(cells, minlength=self.cells).reshape(self.cumulative.shape)
        for axis in range(result.ndim):
            result = np.cumsum(result, axis=axis)
        return result


@dataclass(frozen=True, eq=False)
class GridForward:
    """The recursion at one threshold: the logarithm of the weight of all beginnings, for each state of each slice."""

    threshold: int
    band: list[tuple[Integers, Integers]]
    logs: list[Floats]

    @cached_property
    def total(self) -> float:
        """ln N(threshold); -inf if there is no placement."""
        last = self.logs[-1]
        top = float(last.max())
        return top if top == -math.inf else top + math.log(float(np.exp(last - top).sum()))


def _filled(values: Floats, moved: Integers, weights: Floats) -> Floats:
    """Return the states' log weights after one more cell is filled: a convolution with the weights of the cell.

    ``values`` has one axis for each vertex of the slice, and holds the logarithm of the weight of each state (numbers
    of points below the vertices). c points in the cell increase the numbers where ``moved`` is 1 by c, with weight
    ``exp(weights[c])``.
    """
    room = min(size for size, moves in zip(values.shape, moved, strict=True) if moves)
    top = np.full(values.shape, -np.inf)
    parts = []
    for c in range(min(room, len(weights))):
        to = tuple(slice(c if moves else 0, None) for moves in moved)
        source = values[
            tuple(slice(0, size - c if moves else None) for size, moves in zip(values.shape, moved, strict=True))
        ]
        parts.append((to, source, weights[c]))
        np.maximum(top[to], source + weights[c], out=top[to])
    safe = np.where(top > -np.inf, top, 0.0)
    total = np.zeros(values.shape)
    for to, source, weight in parts:
        total[to] += np.exp(source + weight - safe[to])
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(total))
