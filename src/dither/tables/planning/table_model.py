"""What is expected of the rows of a question, given a profile: how many rows people have, and where values are.

Everything here is post-processing of released numbers (:mod:`dither.tables.card.profile`), and is the same whenever it
is computed.

*People* (:class:`People`). The noisy histogram of people by their number of rows is replaced by histograms without
noise that may have led to it, each with its probability (:func:`dither.tables.planning.person_sizes.without_noise`).
With the weight ``min(1, R / N)`` for the rows of a person with N rows, a person counts for ``min(N, R)`` rows.

*Values* (:class:`Values`). Where bins are filled beyond doubt, and between them, the noisy numbers are used. Beyond, a
bin is expected to hold half of what the one before it holds, with a standard deviation as large as that, and this is
weighed against its noisy number, each by the inverse of its variance. Each bin is taken to have all of its values in its
middle; the last bins on both sides, which take in what is beyond, end at the bounds of the card.

A person of whose N rows each is asked about with probability s has about ``N s`` of them, if any. So the rows that a
condition keeps are those of fewer people, with fewer rows each (:meth:`People.thinned`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dither.tables.card.profile import NoisyHistogram, TableProfile
from dither.tables.planning.automatic import EDGES, without_noise

Floats = NDArray[np.float64]

ALIKE = 0.25
"""How values of one person are correlated, where the profile does not show it."""
_LEAST_ALIKE = 0.05
_FALSE_ALARM = 0.01
"""The probability with which noise alone fills any bin beyond doubt."""
_NEXT = 1.5
"""How many standard deviations of the noise a bin holds next to those that are filled, to be taken for filled."""
_FALL = 0.3
"""By which factor the first bin falls where the noise hides what bins hold; each next one falls by a factor that is
:data:`_STEEPER` times that of the one before."""
_STEEPER = 0.6


@dataclass(frozen=True)
class People:
    """People by their number of rows: histograms that may be true, a line each, with their probabilities.

    ``sizes`` are two numbers of rows for each bin, between which its people lie; half of them are at either.
    """

    sizes: Floats
    possible: Floats
    weights: Floats
    deviation: float = 0.0
    """The standard deviation of the noise that each bin of the histogram was released with."""
    last: int | None = None
    """The last bin that is filled beyond doubt; None where there is none."""

    @classmethod
    def of_one_row(cls, number: float) -> People:
        """Return people of one row each."""
        return cls(np.ones((1, 2)), np.array([[max(number, 1.0)]]), np.ones(1), 0.0, 0)

    @classmethod
    def of_histogram(cls, histogram: NoisyHistogram) -> People:
        """Return what may be true by a noisy histogram of people, whose bins end at its ``edges``."""
        edges = np.asarray(histogram.edges, dtype=np.float64)
        weights = np.asarray(histogram.weights, dtype=np.float64)
        if len(edges) == len(EDGES) and np.array_equal(edges, EDGES):
            found = without_noise(weights, math.sqrt(2) / histogram.deviation)
            expected, probabilities, start = found.expected, found.weights, found.start
        else:
            expected, probabilities, start = _thresholded(weights, histogram.deviation)
        lower = np.concatenate([[0.0], edges[:-1]]) + 1
        sizes = lower[:, None] * (np.maximum(edges, lower) / lower)[:, None] ** np.array([[0.25, 0.75]])
        return cls(sizes, np.maximum(expected, 0.0), probabilities, histogram.deviation, start)

    @cached_property
    def number(self) -> float:
        """How many people are expected."""
        return max(float(self.weights @ self.possible.sum(axis=1)), 1.0)

    @cached_property
    def expected(self) -> Floats:
        """How many people are expected at each of the sizes."""
        result: Floats = np.repeat((self.weights @ self.possible)[:, None] / 2, 2, axis=1)
        return result

    @cached_property
    def rows(self) -> float:
        """How many rows are expected in all."""
        return max(float((self.expected * self.sizes).sum()), 1.0)

    def counted(self, limits: Floats) -> Floats:
        """Return for how many rows all people count together, with each of these limits."""
        return np.maximum((self.expected[..., None] * np.minimum(self.sizes[..., None], limits)).sum(axis=(0, 1)), 1e-9)

    def left_out(self, limits: Floats) -> tuple[Floats, Floats]:
        """Return how many rows are beyond each limit, and the standard deviation of that: histograms that may be true
        differ, and the numbers of the bins that were seen have noise."""
        beyond = np.maximum(self.sizes[..., None] - limits, 0.0).mean(axis=1)
        each = self.possible @ beyond
        mean = self.weights @ each
        variance = np.maximum(self.weights @ each**2 - mean**2, 0.0)
        seen = beyond[: (0 if self.last is None else self.last + 1)]
        return mean, np.sqrt(variance + self.deviation**2 * (seen**2).sum(axis=0))

    def thinned(self, share: float) -> People:
        """Return the people of whose rows each is kept with this probability."""
        if share >= 1 or self.sizes.max() <= 1:
            return replace(self, possible=self.possible * min(share, 1.0)) if share < 1 else self
        some = -np.expm1(self.sizes * math.log1p(-share))
        sizes = np.maximum(self.sizes * share / some, 1.0)
        return replace(self, sizes=sizes, possible=self.possible * some.mean(axis=1))


def _thresholded(weights: Floats, deviation: float) -> tuple[Floats, Floats, int | None]:
    """Return a histogram of people without the bins behind the last one that is filled beyond doubt."""
    filled = np.flatnonzero(weights > 5 * deviation)
    last = int(filled[-1]) if filled.size else None
    kept = weights if last is None else np.where(np.arange(len(weights)) <= last + 1, weights, 0.0)
    return np.maximum(kept, 0.0)[None, :], np.ones(1), last


def _points(histogram: NoisyHistogram, bounds: tuple[float, float] | None) -> tuple[Floats, Floats]:
    """Return the middles of the bins, within bounds, and their weights."""
    edges = np.asarray(histogram.edges, dtype=np.float64)
    if bounds is not None:
        edges = np.clip(edges, *bounds)
    return (edges[1:] + edges[:-1]) / 2, np.asarray(histogram.weights, dtype=np.float64)


@dataclass(frozen=True)
class Values:
    """Values in a row of a person who is chosen by chance: points with their probabilities.

    ``classes`` are the same for people with few rows, more rows, …, which may be in other bins, and of which each has a
    largest number of rows.
    """

    points: Floats
    shares: Floats
    deviations: Floats
    """The standard deviation of each share."""
    ends: tuple[float, float] = (-math.inf, math.inf)
    """The points between which values are seen beyond doubt; others may be hidden by the noise."""
    classes: tuple[Values, ...] = ()
    sizes: tuple[int, ...] = ()
    nulls: float = 0.0
    """The share of rows without a value."""
    alike: float = ALIKE
    """How values of one person are correlated."""
    kind: str = "number"
    """The type of the column."""
    people: float = 1.0
    """How many people a class has."""

    @classmethod
    def flat(cls, bounds: tuple[float, float]) -> Values:
        """Return values of which nothing is known but their bounds."""
        return cls(np.linspace(bounds[0], bounds[1], 9), np.full(9, 1 / 9), np.zeros(9), bounds)

    @classmethod
    def of_histogram(cls, histogram: NoisyHistogram, bounds: tuple[float, float] | None) -> Values | None:
        """Return the values by a noisy histogram; None where noise is all that is seen."""
        points, weights = _points(histogram, bounds)
        deviation = histogram.deviation
        certain = deviation / math.sqrt(2) * math.log(len(weights) / (2 * _FALSE_ALARM))
        filled = np.flatnonzero(weights > certain)
        if filled.size == 0:
            return None
        first, last = int(filled[0]), int(filled[-1])
        while first > 0 and weights[first - 1] > _NEXT * deviation:
            first -= 1
        while last + 1 < len(weights) and weights[last + 1] > _NEXT * deviation:
            last += 1
        expected, deviations = weights.copy(), np.full(len(weights), deviation)
        for end, step in ((first, -1), (last, 1)):
            beyond = np.arange(end + step, -1 if step < 0 else len(weights), step)
            level = max(float(weights[[end, end - step] if first < last else [end]].mean()), deviation)
            steps = np.arange(1, len(beyond) + 1)
            prior = np.maximum(level * _FALL**steps * _STEEPER ** (steps * (steps - 1) / 2), 1e-12)
            precision = 1 / prior**2 + 1 / deviation**2
            expected[beyond] = (1 / prior + weights[beyond] / deviation**2) / precision
            deviations[beyond] = 1 / np.sqrt(precision)
        expected = np.maximum(expected, 0.0)
        number = max(float(expected.sum()), 1.0)
        return cls(points, expected / number, deviations / number, (float(points[first]), float(points[last])))

    @classmethod
    def of_column(
        cls, table: TableProfile, name: str, bounds: tuple[float, float] | None, people: People
    ) -> Values | None:
        """Return the values of a column by its profile; None where that has none."""
        column = table.columns.get(name)
        if column is None or column.values is None:
            return None
        result = cls.of_histogram(column.values, bounds)
        if result is None:
            return None
        number = max(float(sum(column.values.weights)), 1.0)
        known: tuple[Values, ...] = ()
        if column.by_rows and len(column.by_rows) == len(table.classes):
            known = tuple(cls._of_class(item, bounds, result.ends) for item in column.by_rows)
        nulls = max(column.nulls or 0.0, 0.0)
        means = getattr(column, "means", None)
        return replace(
            result,
            classes=known,
            sizes=tuple(table.classes) if known else (),
            nulls=nulls / (nulls + number),
            alike=ALIKE if means is None else result._alike(means, bounds, people),
        )

    def _alike(self, means: NoisyHistogram, bounds: tuple[float, float] | None, people: People) -> float:
        """Return the correlation of values of a person, by the variance of the means of people: that of all values
        times ``r + (1 - r) / N``."""
        seen = Values.of_histogram(means, bounds)
        if seen is None or self.deviation_of_values == 0:
            return ALIKE
        inverse = float((people.expected / people.sizes).sum()) / people.number
        share = seen.deviation_of_values**2 / self.deviation_of_values**2
        return min(max((share - inverse) / max(1 - inverse, 1e-9), _LEAST_ALIKE), 1.0)

    @classmethod
    def _of_class(
        cls, histogram: NoisyHistogram, bounds: tuple[float, float] | None, ends: tuple[float, float]
    ) -> Values:
        """Return the values of some of the people, in the bins that any values are in; noise stays as it is."""
        points, weights = _points(histogram, bounds)
        edges = np.asarray(histogram.edges, dtype=np.float64)
        inside = (edges[1:] > ends[0]) & (edges[:-1] <= ends[1])
        number = max(float(weights[inside].sum()), histogram.deviation)
        deviations = np.full(int(inside.sum()), histogram.deviation / number)
        return cls(points[inside], weights[inside] / number, deviations, ends, people=number)

    def class_means(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return by how much the mean of each class differs from that of all, of values held within each pair of
        bounds, and the standard deviation of that difference by the noise."""
        numbers = np.array([item.people for item in self.classes])
        means, noises = [], []
        for item in self.classes:
            held = np.clip(item.points, low[:, None], high[:, None])
            mean = held @ item.shares
            means.append(mean)
            noises.append(np.sqrt((held - mean[:, None]) ** 2 @ item.deviations**2))
        return np.array(means) - numbers @ np.array(means) / numbers.sum(), np.array(noises)

    def mapped(self, function: Callable[[Floats], Floats]) -> Values:
        """Return the values of a function of this value; NaN is no value."""
        points = function(self.points)
        known = np.isfinite(points)
        if not known.any():
            return replace(self, points=np.zeros(1), shares=np.ones(1), deviations=np.zeros(1), nulls=1.0, classes=())
        share = max(float(self.shares[known].sum()), 1e-12)
        return replace(
            self,
            points=points[known],
            shares=self.shares[known] / share,
            deviations=self.deviations[known] / share,
            ends=(float(points[known].min()), float(points[known].max())),
            nulls=1 - (1 - self.nulls) * share,
            classes=tuple(replace(item.mapped(function), people=item.people) for item in self.classes),
        )

    @cached_property
    def mean(self) -> float:
        """The mean."""
        return float(self.shares @ self.points)

    @cached_property
    def deviation_of_values(self) -> float:
        """The standard deviation of the values."""
        return math.sqrt(max(float(self.shares @ (self.points - self.mean) ** 2), 0.0))

    def quantile(self, q: float | Floats) -> Floats:
        """Return quantiles, linear between the points."""
        order = np.argsort(self.points)
        below = np.cumsum(self.shares[order]) - self.shares[order] / 2
        result: Floats = np.interp(q, below, self.points[order])
        return result

    def held_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the mean square of the values held within each pair of bounds."""
        held = np.clip(self.points, low[..., None], high[..., None])
        return held @ self.shares, held**2 @ self.shares
