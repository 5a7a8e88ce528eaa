"""The exponential mechanism over an interval, exact on a lattice."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dither import arguments
from dither.budget_hooks import spends
from dither.errors import InvalidArgument, InvalidData
from dither.exact import exactly
from dither.mechanisms.selection import SelectionMechanism
from dither.randomness import Source, bernoulli_exp, exponential_race, mark, resolve, spacing, uniform_integers

_LATTICE_BITS = 30
_CUTS = 128
_NEGLIGIBLE = 5.0
_FAR = Fraction(2) ** 1000

Piece = tuple[float, float, Sequence[float]]


@dataclass(frozen=True)
class ContinuousExponential(SelectionMechanism):
    """Choose t in [lower, upper] with density proportional to ``exp(epsilon * score(t) / (2 * sensitivity))``.

    *Statement.* If ``sup over t of |score_x(t) - score_y(t)| <= sensitivity`` for all neighbors x, y, the
    choice is epsilon-DP. The score is given by pieces ``(start, end, coefficients)``, ``c0 + c1 t + c2 t^2``
    between start and end, that cover the interval.

    *How.* The interval is replaced by a public lattice of 2^30 to 2^31 points, on which the same theorem holds.
    Each piece is cut into cells, the finer the more they weigh; a cell is chosen by a race with its number of
    points times ``exp(rate * largest score in it)``, a point in it uniformly, and the point is kept with
    probability ``exp(rate * (its score - the largest))``; otherwise all starts again. That is the exact law,
    since every point is kept in proportion to its own weight. All numbers are rationals until the coin is tossed.

    Examples
    --------
    >>> m = ContinuousExponential(sensitivity=1, epsilon=1, bounds=(0.0, 1.0))
    >>> 0 <= m.release([(0.0, 0.5, [0.0]), (0.5, 1.0, [3.0])]) <= 1
    True
    """

    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = (exactly(end) for end in arguments.bounds(self.bounds))
        if high - low > _FAR:
            raise InvalidArgument("bounds", "bounds of at most 1e+300", "larger ones", "measure in other units")

    @spends
    def release(self, pieces: Sequence[Piece], *, source: Source | None = None) -> float:
        """Return a point of the lattice, drawn exactly in proportion to its weight.

        ``pieces`` are (start, end, coefficients) of the score, in order, and ``source`` is the randomness, by default
        the operating system's.
        """
        resolved = resolve(source)
        low, high = (exactly(end) for end in arguments.bounds(self.bounds))
        step = Fraction(spacing(float(high - low))) / (1 << (_LATTICE_BITS - 20))
        cells = self._cells(pieces, low, high, step)
        best = max(cell.top for cell in cells)
        scores = np.array([float(max(cell.top - best, -_FAR)) for cell in cells])
        counts = np.array([cell.points for cell in cells], dtype=np.int64)
        while True:
            winner = exponential_race(scores, resolved, self.rate, counts, exact_score=lambda i: cells[i].top - best)
            chosen = cells[winner]
            k = chosen.first + int(uniform_integers(chosen.points, 1, resolved)[0])
            shortfall = (chosen.top - chosen.score(low + k * step)) * self.rate
            if bool(bernoulli_exp(min(shortfall, _FAR), 1, resolved)[0]):
                point: float = mark(float(min(low + k * step, high)), resolved)
                return point

    def _cells(self, pieces: Sequence[Piece], low: Fraction, high: Fraction, step: Fraction) -> list[_LatticeCell]:
        """Return the pieces as cells of lattice points, after checks that they cover the interval without gaps.

        Lattice point k is ``low + k * step``, and the last one is not above ``high``. A point at which two pieces meet
        belongs to the second.
        """
        last = math.floor((high - low) / step)
        cells: list[_LatticeCell] = []
        next_point = 0
        for i, (start, end, coefficients) in enumerate(pieces):
            values = tuple(exactly(c, "coefficients") for c in coefficients)
            if not 1 <= len(values) <= 3:
                raise InvalidArgument(
                    "coefficients",
                    "1 to 3 of them, c0 + c1 t + c2 t^2",
                    f"{len(values)}",
                    "cut the score into such pieces",
                )
            first = math.ceil((exactly(start, "start") - low) / step)
            final = i == len(pieces) - 1
            stop = last + 1 if final else math.ceil((exactly(end, "end") - low) / step)
            if max(first, 0) != next_point or stop < next_point or (final and exactly(end, "end") < high):
                raise InvalidData(
                    "pieces",
                    "pieces in order that cover the bounds without gap or overlap",
                    "pieces with a gap or an overlap",
                    "start each where the one before ends",
                )
            if stop > next_point:
                cells.append(_LatticeCell.between(next_point, stop, values, low, step))
            next_point = stop
        if not cells or next_point != last + 1:
            raise InvalidData(
                "pieces", "pieces that cover the bounds", "pieces that end before", "start at lower, end at upper"
            )
        return self._cut(cells, low, step)

    def _cut(self, cells: list[_LatticeCell], low: Fraction, step: Fraction) -> list[_LatticeCell]:
        """Halve the heaviest of the ``cells`` in which the weight varies, until the rest matters little.

        ``low`` and ``step`` give the lattice. A cell is finished if its weight varies by a factor of at most e;
        cutting ends when no other cell has more than exp(-5) of the weight of the lightest finished one, or after 128
        cuts. More cuts make a rejection of the drawn point rarer and change nothing else.
        """
        best, finished, heaviest_finished = max(cell.top for cell in cells), [], math.inf
        heap: list[tuple[float, int, _LatticeCell]] = []

        def put(cell: _LatticeCell) -> None:
            """Add a cell to the finished ones if its weight varies by at most a factor of e, else to the heap."""
            nonlocal heaviest_finished
            ends = low + cell.first * step, low + (cell.first + cell.points - 1) * step
            weight = math.log(cell.points) - float(min((best - cell.top) * self.rate, _FAR))
            flat = len(cell.coefficients) == 1 or cell.points == 1
            if flat or (cell.top - min(cell.score(t) for t in ends)) * self.rate <= 1:
                finished.append(cell)
                heaviest_finished = min(heaviest_finished, -weight)
            else:
                heapq.heappush(heap, (-weight, cell.first, cell))

        for cell in cells:
            put(cell)
        for _ in range(_CUTS):
            if not heap or heap[0][0] > heaviest_finished + _NEGLIGIBLE:
                break
            cell = heapq.heappop(heap)[2]
            middle, end = cell.first + cell.points // 2, cell.first + cell.points
            put(_LatticeCell.between(cell.first, middle, cell.coefficients, low, step))
            put(_LatticeCell.between(middle, end, cell.coefficients, low, step))
        return finished + [cell for _, _, cell in heap]


@dataclass(frozen=True)
class _LatticeCell:
    first: int
    points: int
    top: Fraction
    coefficients: tuple[Fraction, ...]

    @classmethod
    def between(cls, a: int, b: int, coefficients: tuple[Fraction, ...], low: Fraction, step: Fraction) -> _LatticeCell:
        """Return the lattice points a to b - 1 as a cell, with the largest score on the interval they span.

        ``coefficients`` are those of the score, and lattice point k is ``low + k * step``. The largest score is at an
        end or, if the score is a concave parabola, at its peak.
        """
        cell = cls(a, b - a, Fraction(0), coefficients)
        points = [low + a * step, low + (b - 1) * step]
        if len(coefficients) == 3 and coefficients[2] < 0:
            peak = -coefficients[1] / (2 * coefficients[2])
            if points[0] < peak < points[1]:
                points.append(peak)
        return cls(a, b - a, max(cell.score(t) for t in points), coefficients)

    def score(self, t: Fraction) -> Fraction:
        """Return the score at t, by Horner's rule."""
        result = Fraction(0)
        for coefficient in reversed(self.coefficients):
            result = result * t + coefficient
        return result


def piecewise_constant(edges: Sequence[float], scores: Sequence[float]) -> list[Piece]:
    """Return pieces with one score each: ``scores[i]`` between ``edges[i]`` and ``edges[i+1]``.

    >>> piecewise_constant([0, 1, 2], [5, 7])
    [(0, 1, [5]), (1, 2, [7])]
    """
    if len(edges) != len(scores) + 1:
        raise InvalidArgument(
            "edges", f"one more than scores, {len(scores) + 1}", f"{len(edges)}", "give both ends of every piece"
        )
    return [(edges[i], edges[i + 1], [score]) for i, score in enumerate(scores)]


def mean_pieces(mean: float, bounds: tuple[float, float], power: int) -> list[Any]:
    """Return the scores ``-|t - mean|`` (power 1) and ``-(t - mean)^2`` (power 2) of the mean in document 1 of the
    course.

    >>> mean_pieces(0.25, (0.0, 1.0), 2)
    [(0.0, 1.0, [-0.0625, 0.5, -1])]
    """
    low, high = bounds
    if power == 2:
        return [(low, high, [-mean * mean, 2 * mean, -1])]
    return [(low, mean, [-mean, 1]), (mean, high, [mean, -1])]
