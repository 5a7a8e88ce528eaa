"""The exponential mechanism over data sets, scored by the Kolmogorov-Smirnov distance: drawn exactly, in one
dimension and on narrow grids of more.

*Statement.* Of all ways z to place k points into the V cells of a grid, one is released with probability proportional
to ``exp(-epsilon t(z) / 2) / prod c!`` (the c are the numbers of points in the cells: as samples in order, all z have
the same base weight), ``t(z) = ceil(n KS)``, KS the largest difference between the shares of data and release below a
vertex of the grid. Replacing one of the n records moves n KS, and so t, by at most 1: epsilon-DP (Wasserman and Zhou
2010, who leave open how to draw z). Their law has n KS in the exponent; the one drawn here has the next integer and
differs from it: with n = 5, 3 cells, 4 points and epsilon = 2 a test on 20,000 draws distinguishes them.

*How.* With r = exp(-epsilon/2), ``r^t = (1 - r) * sum over T >= t of r^T``: draw a threshold T with probability
proportional to ``r^T N(T)``, N(T) the weight of all z with t(z) <= T, then z among those. Thresholds are put into
blocks: N is bounded by its value at the block's right end, a z drawn there is kept if its own t(z) is at most T, and
all starts again otherwise. Blocks are cut until most proposals are kept.

*Recursion.* The z with t(z) <= T are those whose numbers Z of points below each vertex satisfy ``|X/n - Z/k| <= T/n``,
X the number of records below it. N(T) is the end of a forward recursion along the first axis, slice by slice, and z is
drawn backwards through it. Its state is the number of points below each vertex of a slice, summed over the slices
before: D numbers, for slices of D cells (one on a line), each within ``k X/n -+ k T/n``. The cells of a slice are
filled one after the other; filling a cell moves all numbers at vertices above it, so a slice takes D convolutions with
``1/c!``.

*Rounding.* The recursion runs on logarithms in floats. Each of its sums, one convolution for each cell, is off by a
relative ``eta_j`` at most (:func:`rounding`), and everything drawn from it is drawn exactly in proportion to those
floats (:func:`~dither.randomness.exponential_race`). So each z has its weight up to a factor exp(+-eta), eta the sum,
the ratio of two probabilities up to exp(4 eta), and the mechanism is run at epsilon - 4 eta.

*Cost.* A slice has up to ``(k + 1)^D`` states, and D is the product of the lengths of all axes but the first. This is
the obstacle that document 1 calls a practical problem: the profile of a slice is all that has to be remembered, and
the number of profiles grows exponentially with the cells of the slice. For 100 points within 0.05 of evenly spread data
there are 1.1e3 profiles of a slice of 3 cells, 1.2e6 of 6, 6.5e9 of 10 and 5e25 of 40. A grid of 40 x 3 cells with 63
points takes two seconds. Releases whose bound on the states, a function of k and D, is above 2^18 are refused.

*Other ways.* A Markov chain would need a mixing time that is proved for every data set, as what is missing to the law
is added to delta. Moving one point changes the score by up to n/k, so with one point redrawn at a time Dobrushin's
condition asks for ``(k - 1) tanh(epsilon n / (4 k)) < 1``, about ``epsilon n < 4``; for epsilon = 1, n = 1000, k = 100
the left side is 97.7. Rejection from independent proposals takes up to ``exp(epsilon n KS / 2)`` of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.randomness import Source, exponential_race, geometric, uniform_integers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_GOOD_ENOUGH = 1.6  # upper over lower bound on the weight of all blocks: proposals for one accepted draw
_MAX_BLOCKS = 80


@dataclass(frozen=True, eq=False)
class Problem:
    """The data's cumulative counts at the vertices of a grid, and the number k of points to place.

    A line is a grid of one dimension, whose slices have one cell.
    """

    cumulative: Integers
    points: int

    @property
    def records(self) -> int:
        """Return the number n of records."""
        return int(self.cumulative.flat[-1])

    @property
    def cells(self) -> int:
        """Return the number V of cells."""
        return self.cumulative.size

    def log_weights(self) -> Floats:
        """Return the logarithm of the weight of c points in one cell, for c = 0, ..., k.

        The weight is the Poisson probability ``exp(-k/V) (k/V)^c / c!``. It differs from ``1/c!`` by factors whose
        product over all cells is the same for every z, and keeps the sums of the recursion near 1.
        """
        mean = self.points / self.cells
        return np.array([c * math.log(mean) - mean - math.lgamma(c + 1) for c in range(self.points + 1)])

    def everything(self) -> float:
        """Return the logarithm of the weight of all z, ``exp(-k) k^k / k!``: a Poisson probability."""
        k = self.points
        return k * math.log(k) - k - math.lgamma(k + 1)

    @cached_property
    def _moved(self) -> Integers:
        """Return a row for each cell of a slice: 1 at the vertices above it, where a point in it counts, else 0."""
        corners = list(np.ndindex(self.cumulative.shape[1:]))
        above = [[all(a <= b for a, b in zip(cell, v, strict=True)) for v in corners] for cell in corners]
        return np.array(above, dtype=np.int64)

    @cached_property
    def _inverse(self) -> Integers:
        """Return the inverse of :attr:`_moved`: it maps the numbers at the vertices to the counts of the cells."""
        return np.rint(np.linalg.inv(self._moved)).astype(np.int64)

    def score(self, path: Integers) -> int:
        """Return ``t(z) = ceil(n KS)`` of a release with these cumulative counts of points at the vertices.

        ``n KS = max |X - n Z / k|`` over the vertices, where X and Z are the counts of records and of points below.
        """
        n, k = self.records, self.points
        worst = max(abs(k * int(x) - n * int(z)) for x, z in zip(self.cumulative.flat, path.flat, strict=True))
        return -(-worst // k)

    def band(self, threshold: int) -> list[tuple[Integers, Integers]]:
        """Return the lowest and highest cumulative count at each vertex of each slice with ``t(z) <= threshold``.

        Low > high where there is none. Lower ends are at least those of the slices before, since cumulative counts do
        not fall.
        """
        n, k = self.records, self.points
        limits: list[tuple[Integers, Integers]] = []
        for row in self.cumulative.reshape(len(self.cumulative), -1).tolist():
            low = [max(0, -(-(k * x - threshold * k) // n)) for x in row]
            high = [min(k, (k * x + threshold * k) // n) for x in row]
            limits.append((np.maximum(low, limits[-1][0]) if limits else np.array(low), np.array(high)))
        limits[-1][0][-1] = limits[-1][1][-1] = k
        return limits

    def forward(self, threshold: int, weights: Floats) -> Forward:
        """Compute the logarithm of the sum of the weights of all placements inside the band, slice by slice.

        ``threshold`` is the T that gives the band, and ``weights[c]`` the logarithm of the weight of c points in one
        cell. ``logs[i]`` of the result holds, for each state of slice i inside the band, the logarithm of the sum over
        the placements that lead to it. If the band is empty the total is -inf.

        >>> problem = Problem(np.array([[1, 1], [1, 2]]), 3)
        >>> result = problem.forward(2, problem.log_weights())      # all 20 placements of 3 points in 4 cells
        >>> abs(result.total - problem.everything()) < 1e-12
        True
        """
        band, one_state = self.band(threshold), [1] * len(self._moved)
        if any((low > high).any() for low, high in band):
            return Forward(threshold, band, [np.full(one_state, -np.inf)])
        previous = np.zeros(len(self._moved), dtype=np.int64)
        before, logs = np.zeros(one_state), []
        for low, high in band:
            values = np.full(high - previous + 1, -np.inf)
            kept = tuple(slice(0, min(a, b)) for a, b in zip(before.shape, values.shape, strict=True))
            values[kept] = before[kept]
            for moved in self._moved:
                values = _filled(values, moved, weights)
            before, previous = values[tuple(slice(start, None) for start in low - previous)], low
            logs.append(before)
        return Forward(threshold, band, logs)

    def scores(self, inner: Forward, slice_number: int, after: Integers, weights: Floats) -> Floats:
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

    def draw(self, inner: Forward, weights: Floats, source: Source) -> Integers:
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

        >>> Problem(np.array([[1, 1], [1, 2]]), 3).counted(np.array([0, 3, 3])).tolist()
        [[1, 1], [1, 3]]
        """
        result = np.bincount(cells, minlength=self.cells).reshape(self.cumulative.shape)
        for axis in range(result.ndim):
            result = np.cumsum(result, axis=axis)
        return result


@dataclass(frozen=True, eq=False)
class Forward:
    """The recursion at one threshold: the logarithm of the weight of all beginnings, for each state of each slice."""

    threshold: int
    band: list[tuple[Integers, Integers]]
    logs: list[Floats]

    @cached_property
    def total(self) -> float:
        """Return ``ln N(threshold)``; -inf if there is no placement."""
        last = self.logs[-1]
        top = float(last.max())
        return top if top == -math.inf else top + math.log(float(np.exp(last - top).sum()))


def _filled(values: Floats, moved: Integers, weights: Floats) -> Floats:
    """Return the states' log weights after one more cell is filled: a convolution with the weights of the cell.

    ``values`` has one axis for each vertex of the slice, and holds the logarithm of the weight of each state (numbers
    of points below the vertices). c points in the cell increase the numbers where ``moved`` is 1 by c, with weight
    ``exp(weights[c])``.
    """
    if values.ndim == 1:  # on a line: all numbers of points at once
        positions, possible = np.arange(values.size), np.flatnonzero(values > -np.inf)
        padded = np.concatenate([np.full(values.size, -np.inf), weights[: values.size]])
        terms = values[possible] + padded[positions[:, np.newaxis] - possible + values.size]
        highest = terms.max(axis=1, initial=-np.inf)
        safe = np.where(highest > -np.inf, highest, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(safe + np.log(np.exp(terms - safe[:, np.newaxis]).sum(axis=1)))
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


def rounding(problem: Problem, width: int, size: float) -> float:
    """Return a bound on the sum of the relative errors of the recursion's sums, and of the blocks' weights.

    ``problem`` gives the number of cells, ``width`` is the largest number w of terms in one sum, and ``size`` the
    largest absolute logarithm s. One sum: adding logarithms of size at most s rounds to 2^-50 s in all, exp and log
    are within 2^-46 (assumption A of the laws, exponents below 745), w terms are added with a relative 2^-53 each, and
    what underflows is below w exp(-745). The rest of 2^-48 s is for the weights of the cells, known to a few units in
    the last place, which the draws of the last block do not use, and for the weights of the blocks.

    >>> rounding(Problem(np.array([1, 2]), 2), 3, 10.0) < 1e-11
    True
    """
    step_error = 2.0**-52 * (16 * size + 745 + width) + 2.0**-44 + 2.0**-46 * math.log(width + 1)
    return (problem.cells + 5) * step_error


@dataclass(frozen=True)
class Block:
    """Thresholds after ``start`` up to that of ``inner``; without ``inner``, all thresholds after ``start``."""

    start: int
    inner: Forward | None
    upper: float
    lower: float


def _log_geometric(start: int, end: int | None, rate: float) -> float:
    """Return the logarithm of ``sum over start < T <= end of exp(-rate T) (1 - exp(-rate))``.

    It is ``exp(-rate (start + 1)) (1 - exp(-rate (end - start)))``; None for ``end`` is infinity.
    """
    if end is None:
        return -rate * (start + 1)
    return -rate * (start + 1) + math.log(-math.expm1(-rate * (end - start)))


def blocks(problem: Problem, rate: float, weights: Floats) -> list[Block]:
    """Cut the thresholds 0, 1, ... into blocks whose upper bounds on the weight are near the weights themselves.

    ``rate`` is the r in the weight ``exp(-r T)`` of a threshold, and ``weights`` are the logarithms of the weights of
    the numbers of points in a cell. A block's ``upper`` takes the recursion at its right end, its ``lower`` at its
    left end. The block with the largest gap is halved until the sums of both differ by a factor of at most
    ``_GOOD_ENOUGH``, which is about how many proposals one accepted draw takes, or there are ``_MAX_BLOCKS``. Blocks
    of weight 0 are left out.
    """
    n = problem.records
    computed: dict[int, Forward] = {}

    def at(threshold: int) -> Forward:
        """Return the recursion at a threshold, computed once."""
        if threshold not in computed:
            computed[threshold] = problem.forward(threshold, weights)
        return computed[threshold]

    def total(threshold: int) -> float:
        """Return ``ln N`` of a threshold, -inf below 0."""
        return -math.inf if threshold < 0 else at(threshold).total

    def make(start: int, end: int | None) -> Block:
        """Return the block of thresholds above ``start`` up to ``end`` (None: no end), with bounds on its weight."""
        mass = _log_geometric(start, end, rate)
        if end is None:
            return Block(start, None, problem.everything() + mass, total(start) + mass)
        return Block(start, at(end), at(end).total + mass, total(start) + mass)

    # thresholds grow until what lies beyond cannot matter, or is certain
    ends, threshold = [-1], max(1, n // (4 * problem.points))
    while True:
        threshold = min(threshold, n)
        ends.append(threshold)
        beyond = problem.everything() + _log_geometric(threshold, None, rate)
        best = max(
            (total(end) + _log_geometric(start, end, rate) for start, end in itertools.pairwise(ends)),
            default=-math.inf,
        )
        if threshold == n or (best > -math.inf and beyond < best - 6) or problem.everything() - total(threshold) < 0.2:
            break
        threshold = 2 * threshold
    result = [make(start, end) for start, end in itertools.pairwise(ends)] + [make(ends[-1], None)]
    while len(result) < _MAX_BLOCKS:
        upper = _log_sum([block.upper for block in result])
        lower = _log_sum([block.lower for block in result])
        if upper - lower < math.log(_GOOD_ENOUGH):
            break
        gains = [
            math.exp(b.upper - upper) - math.exp(b.lower - upper)
            if b.inner is not None and b.inner.threshold - b.start > 1
            else -1.0
            for b in result
        ]
        if max(gains) <= 1e-3:
            break
        i = int(np.argmax(gains))
        start, inner = result[i].start, result[i].inner
        assert inner is not None, "only blocks with an inner threshold gain from being halved"
        end = inner.threshold
        middle = (start + end) // 2
        result[i : i + 1] = [make(start, middle), make(middle, end)]
    return [block for block in result if block.upper > -math.inf]


def _log_sum(logs: list[float]) -> float:
    """Return ``ln(sum exp(logs))`` without overflow; -inf if all are."""
    top = max(logs)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(item - top) for item in logs))


def set_aside(problem: Problem, epsilon: Fraction) -> float:
    """Return 4 eta, the part of epsilon reserved for rounding errors (see the module).

    It depends on the numbers of points, cells and records of ``problem`` and on ``epsilon`` only, so it reveals
    nothing of the data when the number of records is public.

    >>> set_aside(Problem(np.array([50, 100]), 10), Fraction(1)) < 1e-9
    True
    """
    points, cells = problem.points, problem.cells
    # no logarithm in the recursion is larger than this
    size = float(np.abs(problem.log_weights()).max()) + points * (math.log(cells) + 3) + 64
    # those of the blocks' weights go up to rate * n; so does what the rounded scale of the last block's law costs
    block_error = 2.0**-51 * float(epsilon) * problem.records
    return 4 * (rounding(problem, points + 1, size) + block_error)


def release(problem: Problem, epsilon: Fraction, source: Source) -> tuple[Integers, float]:
    """Draw the release of the Kolmogorov-Smirnov mechanism; it is epsilon-DP.

    The result are the cumulative counts of the released points in the cells of ``problem``, and the part 4 eta of
    ``epsilon`` that was reserved for rounding errors; an epsilon that is not larger is refused. A block of thresholds
    is drawn, a threshold in it, and a path; the path is kept if its score is at most the threshold, and otherwise all
    is drawn again. The last block has no upper end: there paths are uniform.

    >>> from dither.randomness import SeededSource
    >>> path, spare = release(Problem(np.array([50, 100]), 10), Fraction(1), SeededSource(1))
    >>> int(path[-1]), spare < 1e-9
    (10, True)
    """
    weights = problem.log_weights()
    spare = set_aside(problem, epsilon)
    selection_epsilon = epsilon - Fraction(spare)
    if selection_epsilon <= 0:
        raise InvalidArgument(
            "epsilon",
            f"more than the rounding error of the recursion, {spare:.2g}",
            f"{float(epsilon):.2g}",
            "pass a larger epsilon or fewer points",
        )
    rate = float(selection_epsilon) / 2 * (1 - 2.0**-50)
    result = blocks(problem, rate, weights)
    uppers = np.array([block.upper for block in result])
    while True:
        block = result[exponential_race(uppers, source)]
        if block.inner is None:
            threshold = block.start + 1 + int(geometric(1 / rate, 1, source)[0])
            drawn = uniform_integers(problem.cells, problem.points, source)
            path = problem.counted(drawn.astype(np.int64))
        else:
            steps = np.arange(block.inner.threshold - block.start, dtype=np.float64)
            threshold = block.start + 1 + exponential_race(-steps, source, Fraction(rate))
            path = problem.draw(block.inner, weights, source)
        if problem.score(path) <= threshold:
            return path, spare


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
