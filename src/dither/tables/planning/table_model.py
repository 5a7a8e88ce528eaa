"""What is expected of the rows of a question, given a profile: how many rows people have, and where values are.

Everything here is post-processing of released numbers (:mod:`dither.tables.card.profile`), and is the same whenever it
is computed.

*People* (:class:`People`). The noisy histogram of people by their number of rows is replaced by histograms without
noise that may have led to it, each with its probability (:func:`dither.tables.planning.automatic.without_noise`).
With the weight ``min(1, R / N)`` for the rows of a person with N rows, a person counts for ``min(N, R)`` rows.

*Values* (:class:`Values`). Neighboring bins are taken together until they hold more than noise alone would show, from
the fullest bin on to both sides. What the noise may hide beyond has possibilities with probabilities (:func:`_tail`).
Each run of bins is taken to have all of its values at one point; the last bins on both sides, which take in what is
beyond, end at the bounds of the card.

A person of whose N rows each is asked about with probability s has about ``N s`` of them, if any. So the rows that a
condition keeps are those of fewer people, with fewer rows each (:meth:`People.thinned`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dither.tables.card.profile import NoisyHistogram, NoisyNumber, TableProfile
from dither.tables.planning.automatic import EDGES, probabilities, with_humps, without_noise

Floats = NDArray[np.float64]

ALIKE = 0.25
"""How values of one person are correlated, where the profile does not show it."""
_LEAST_ALIKE = 0.05
_FALSE_ALARM = 0.01
"""The probability with which noise alone fills any bin beyond doubt."""
_CERTAIN = 1e-6
"""The probability with which noise alone makes the noisy number of any bin of people be used as it is."""
_OCTAVE = 4
_SLOPE = 0.2
"""By how much tails fall off otherwise, from one bin of people to the next, than the bins before them."""
_BIN_WIDTH = math.log(2) / 4
_AS_FAST, _FASTER, _UNKNOWN_FALL, _SHAPE_ERROR = 0.05, 0.05, 0.3, 0.1
"""By how much tails fall off more slowly than before, as a standard deviation, or faster, as a median, from one bin of
people to the next; how fast they fall off where that is not seen; and by how much the logarithm of a density differs
from a line."""
_POWER_LAWS, _BENT, _LEVEL = 12.0, 0.3, 0.2
"""How much more probable it is that a tail is that of a power law; how fast it bends otherwise; and by how
much its level is off, as a logarithm."""
_TAIL_LEVELS = np.array([0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5])
_FALLS = np.concatenate([np.linspace(-0.1, 0.7, 25), [0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 6.0]])
_BENDS = np.array([0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 3.0, 8.0])
_SEEN = 3.5
"""How many standard deviations of the noise neighboring bins hold together, or more bins are taken together."""
_GAP = 6
"""The search for the next run ends after more bins than this, and than twice the run before."""
_ENOUGH, _TAIL, _TRUNCATED = 10.0, 0.1, 1.3
"""The values that tell how a tail falls off are at least so many standard deviations of the noise, and this share of
the values on a side. What is hidden makes their mean distance too small, about by the third factor."""
_BARELY = 0.5
"""What is added to the logarithm of how far the fullest bin is above the noise, by which values seem to fall off."""
_WHOLE = 0.99
"""The share of the values that are whole, from which on all are taken to be."""
_IN_BIN = 0.4
"""How uncertain the mean of a function is within a bin, compared with its values at both ends."""
_NOTHING, _SEPARATE = 0.8, 0.03
"""The probabilities, before the noisy numbers are seen, that there is nothing beyond the last bins that are seen, where
these are the fullest; and that there are values apart from the others. Otherwise these fall off."""
_FADING = 0.12
"""To which power of the density at the end, as a share of the largest, it is less probable that nothing is beyond."""
_ALONE = 0.02
"""How probable values in one bin apart from all others are; the nearer, the more so."""
_SCALES = ((0.5, 0.3), (1.0, 0.4), (2.0, 0.2), (5.0, 0.1))
"""By which multiples of that distance values may fall off, with their probabilities."""
_MASSES = ((0.1, 0.2), (0.3, 0.3), (1.0, 0.3), (3.0, 0.2))
"""By which factors their number may differ from what follows from the density at the end, with their probabilities."""
_WIDTHS, _HIDDEN = (0.3, 1.0), (0.5, 1.0, 2.0)
"""How far values apart may reach, in widths of what is seen; and how many they are, in deviations of the noise."""
_LEAST_PROBABLE = 0.003
_NORMAL, _NORMAL_90 = 1.96, 1.645
"""The errors (95 % and 90 %) of normal noise, in standard deviations."""
_NOBODY = 0.1
"""Fewer people than this are taken to be none."""
_EXAMPLES, _GOLDEN = 5, (math.sqrt(5) - 1) / 2
"""How many examples of noise a forecast is made with; the golden ratio, whose multiples are spread evenly."""
_PARTS = 8
"""Into how many parts a cell is divided for a condition or a function."""
_ALIKE_OR_EXTREME = (0.5, 0.25, 0.25)
"""How probable it is that rows chosen by another number have values like all others, the smallest, or the largest."""
_LEAST_HIDDEN = 0.02
"""Bins that are expected to hold less than this share of the noise's standard deviation, together, are taken to be
empty."""


@dataclass(frozen=True)
class People:
    """The distribution of people by their number of rows: ``possible`` histograms without noise (a line each) with
    their probabilities ``weights``.

    ``sizes`` has two numbers of rows for each bin; half of its people are taken to have either.
    """

    sizes: Floats
    possible: Floats
    weights: Floats
    deviations: Floats
    """The standard deviation of the noise in each bin; 0 where the noisy number of a bin was not used."""
    tails: Floats | None = None
    """More histograms that may be true, with any tails that fall off about as fast as what is seen, or faster; and"""
    tail_weights: Floats | None = None
    """their probabilities."""

    @classmethod
    def of_one_row(cls, number: float) -> People:
        """Return people of one row each."""
        return cls(np.ones((1, 2)), np.array([[max(number, 1.0)]]), np.ones(1), np.zeros(1))

    @classmethod
    def of_histogram(cls, histogram: NoisyHistogram) -> People:
        """Return the people by a noisy histogram: the histograms without noise that may have led to it."""
        edges = np.asarray(histogram.edges, dtype=np.float64)
        weights = np.asarray(histogram.weights, dtype=np.float64)
        if len(edges) == len(EDGES) and np.array_equal(edges, EDGES):
            posterior = without_noise(weights, Fraction(math.sqrt(2) / histogram.deviation))
            expected, logs, start = posterior.expected, posterior.logs, posterior.start
            if start is not None:
                logs = logs + _as_before(edges, weights, expected, start)
        else:
            expected, logs, start = _thresholded(weights, histogram.deviation)
        lower = np.concatenate([[0.0], edges[:-1]]) + 1
        sizes = lower[:, None] * (np.maximum(edges, lower) / lower)[:, None] ** np.array([[0.25, 0.75]])
        seen = np.arange(len(edges)) <= (-1 if start is None else start)
        certain = weights > _filled(weights, histogram.deviation, _CERTAIN)
        expected = np.where(certain, weights, expected)
        seen |= certain
        chances = probabilities(logs)
        assert np.isfinite(chances).all()  # NaN would become answers
        tails: tuple[Floats, Floats] | tuple[None, None] = None, None
        if start is not None and len(edges) - start > 1:
            tails = _any_tails(edges, weights, histogram.deviation / math.sqrt(2), start)
        return cls(sizes, np.maximum(expected, 0.0), chances, np.where(seen, histogram.deviation, 0.0), *tails)

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
        """Return the number of rows counted under each of these limits."""
        counted = (self.expected[..., None] * np.minimum(self.sizes[..., None], limits)).sum(axis=(0, 1))
        result: Floats = np.maximum(counted, 1e-9)
        return result

    def left_out(self, limits: Floats) -> tuple[Floats, Floats]:
        """Return the rows beyond each limit and their standard deviation: over the possible histograms, and by the
        noise of the bins that were seen."""
        beyond = np.maximum(self.sizes[..., None] - limits, 0.0).mean(axis=1)
        missing = self.possible @ beyond
        mean = self.weights @ missing
        variance = self.weights @ (missing - mean) ** 2
        return mean, np.sqrt(variance + self.deviations**2 @ beyond**2)

    def noise_beyond(self, limit: float) -> float:
        """Return the part of the standard deviation of :meth:`left_out` that is noise, of the bins that were seen."""
        beyond = np.maximum(self.sizes - limit, 0.0).mean(axis=1)
        return math.sqrt(float(self.deviations**2 @ beyond**2))

    def hidden(self, limit: float) -> tuple[float, float]:
        """Return the median number of rows beyond a limit, and the standard deviation of a normal law whose 95 %
        interval is as wide as that of the possible tails, some of which are much longer than expected."""
        beyond = np.maximum(self.sizes - limit, 0.0).mean(axis=1)
        expected, deviations = self.left_out(np.array([limit]))
        if self.tails is None or self.tail_weights is None:
            return float(expected[0]), float(deviations[0])
        behind = np.cumsum(self.tails[:, ::-1], axis=1)[:, ::-1]
        usual = np.where(behind >= math.log(2), self.tails, 0.0) @ beyond  # half of such data have nobody farther out
        least, missing = map(float, _quantiles(usual, self.tail_weights, (0.025, 0.5)))
        missing = min(missing, float(expected[0]))  # any tail may be there, and few are as heavy as most of these
        most = float(_quantiles(np.where(behind >= 0.02, self.tails, 0.0) @ beyond, self.tail_weights, (0.975,))[0])
        return missing, math.hypot(max(most - missing, missing - least) / _NORMAL, self.noise_beyond(limit))

    @cached_property
    def most_rows(self) -> float:
        """The most rows that anybody is expected to have: behind it there are fewer than :data:`_NOBODY` people."""
        expected = self.weights @ self.possible
        largest = self.sizes.max(axis=1)
        order = np.argsort(-largest)
        behind = np.cumsum(expected[order])
        return float(largest[order][min(int(np.searchsorted(behind, _NOBODY)), len(order) - 1)])

    def scaled(self, factor: float) -> People:
        """Return as many people times a factor."""
        tails = None if self.tails is None else self.tails * factor
        return replace(self, possible=self.possible * factor, tails=tails)

    def up_to(self, most: float) -> People:
        """Return the distribution with numbers of rows limited to ``most``."""
        inside = self.sizes.min(axis=1) <= most
        tails = None if self.tails is None else self.tails * inside
        return replace(
            self,
            sizes=np.minimum(self.sizes, max(most, 1.0)),
            possible=self.possible * inside,
            deviations=self.deviations * inside,
            tails=tails,
        )

    def thinned(self, share: float) -> People:
        """Return the people that remain under a condition which keeps this share of the rows. Two cases of
        :meth:`thinnings` are equally likely: it keeps each row independently, or all rows of some people."""
        if share >= 1 or self.sizes.max() <= 1:
            return replace(self, possible=self.possible * share, tails=None, tail_weights=None)
        one, other = self.thinnings(share)
        nobody = np.zeros_like(self.possible)
        return People(
            np.concatenate([one.sizes, other.sizes]),
            np.concatenate(
                [np.concatenate([one.possible, nobody], axis=1), np.concatenate([nobody, other.possible], axis=1)]
            ),
            np.concatenate([self.weights, self.weights]) / 2,
            np.concatenate([one.deviations, other.deviations]) / math.sqrt(2),
            *self._joined_tails(one, other),
        )

    def _joined_tails(self, one: People, other: People) -> tuple[Floats | None, Floats | None]:
        """Return the histograms with any tails of both, and their probabilities."""
        if one.tails is None or other.tails is None or self.tail_weights is None:
            return None, None
        nobody = np.zeros_like(one.tails)
        tails = np.concatenate([np.c_[one.tails, nobody], np.c_[nobody, other.tails]])
        return tails, np.concatenate([self.tail_weights, self.tail_weights]) / 2

    def as_learned(self, epsilon: float) -> tuple[People, ...]:
        """Return what a noisy histogram of these people at this epsilon would show, as examples for a few fixed draws
        of its noise, which decides how many rows it may hide."""
        bins = np.searchsorted(EDGES, np.minimum(self.sizes, EDGES[-1]).ravel())
        counts = np.bincount(bins, self.expected.ravel(), len(EDGES))
        edges = tuple(map(float, EDGES))
        places = (np.arange(_EXAMPLES * len(EDGES)) + 0.5) * _GOLDEN % 1 * 2 - 1  # evenly between -1 and 1
        noises = -np.sign(places) * np.log1p(-np.abs(places)) / epsilon
        return tuple(
            People.of_histogram(
                NoisyHistogram(edges, tuple(np.rint(counts + noise).tolist()), scale=1 / epsilon)
            ).up_to(self.most_rows)
            for noise in noises.reshape(_EXAMPLES, -1)
        )

    def thinnings(self, share: float) -> tuple[People, People]:
        """Return the people under a condition that keeps this share of the rows, in two cases: each row independently,
        and all rows of that share of the people."""
        some = -np.expm1(self.sizes * math.log1p(-min(share, 1 - 1e-9)))
        sizes, kept = np.maximum(self.sizes * share / some, 1.0), some.mean(axis=1)
        tails = (None, None) if self.tails is None else (self.tails * kept, self.tails * share)
        thinned = replace(self, possible=self.possible * kept, deviations=self.deviations * kept, tails=tails[0])
        whole = replace(self, possible=self.possible * share, deviations=self.deviations * share, tails=tails[1])
        return replace(thinned, sizes=sizes), whole


def _as_before(edges: Floats, weights: Floats, possible: Floats, start: int) -> Floats:
    """Return the log prior of ``possible`` histograms up to a common term: a normal law of their rate of decay in the
    octave after bin ``start``, around the rate of the noisy histogram in the octave before."""
    end = min(start + _OCTAVE, len(edges) - 1)
    if start < _OCTAVE + 1 or end == start:
        return np.zeros(len(possible))
    widths = np.log(edges / np.concatenate([[0.5], edges[:-1]]))
    density = np.maximum(weights / widths, 1e-9)
    late, early = density[start - 1 : start + 2].mean(), density[start - 1 - _OCTAVE : start + 2 - _OCTAVE].mean()
    before = min(max(math.log(early / late) / _OCTAVE, 0.0), 1.5)
    tails = np.maximum(possible / widths, 1e-300)
    after = (np.log(tails[:, start]) - np.log(tails[:, end])) / (end - start)
    result: Floats = -0.5 * ((after - before) / _SLOPE) ** 2
    return result


def _quantiles(values: Floats, weights: Floats, levels: Sequence[float]) -> list[Floats]:
    """Return quantiles of weighted values, which are on the last axis."""
    order = np.argsort(values, axis=-1)
    ordered, below = np.take_along_axis(values, order, -1), np.cumsum(weights[order], axis=-1)
    places = [np.minimum((below < level).sum(axis=-1), values.shape[-1] - 1) for level in levels]
    return [np.take_along_axis(ordered, place[..., None], -1)[..., 0] for place in places]


def _any_tails(edges: Floats, weights: Floats, scale: float, start: int) -> tuple[Floats, Floats]:
    """Return histograms that may have led to a noisy one, a line each, with their probabilities: from the bin ``start``
    on, people per octave fall off by ``exp(-a x - b x^2)``, with x in quarters of octaves.

    They are weighed by the likelihood of the Laplace noise that they imply, and by what tails usually do: they go on to
    fall off about as fast as in the two octaves before (:data:`_AS_FAST`, and what the noise hides of that), or faster
    (:data:`_FASTER`, by much where they end), and power laws (``b = 0``) are common. There may be a second hump behind.
    """
    widths, places = np.log(edges / np.concatenate([[0.5], edges[:-1]])), np.log(edges) / _BIN_WIDTH
    seen, x = weights / scale, places[start:] - places[start]
    first = max(start - 2 * _OCTAVE, 0)
    density, error = (seen / widths)[first : start + 1], math.sqrt(2) / widths[first : start + 1]
    fall, unsure, used = 0.0, _UNKNOWN_FALL, density > 2 * error
    if start - first >= _OCTAVE and used.sum() >= _OCTAVE:
        precision = (density[used] / error[used]) ** 2
        precision /= 1 + _SHAPE_ERROR**2 * precision
        place = places[first : start + 1][used]
        place = place - precision @ place / precision.sum()
        spread = float(precision @ place**2)
        fall, unsure = -float(precision @ (place * np.log(density[used]))) / spread, spread**-0.5
    base = max(float(seen[start : start + 2].mean()), 1.0)
    level, a, b = (axis.ravel()[:, None] for axis in np.meshgrid(base * _TAIL_LEVELS, _FALLS, _BENDS, indexing="ij"))
    tails = level * (widths[start:] / widths[start]) * np.exp(np.maximum(-a * x - b * x**2, -700.0))
    tails[:, 0] = max(float(seen[start]), 0.0)  # which is seen
    faster = (a - fall)[:, 0]
    usual = -0.5 * (np.minimum(faster, 0) / math.hypot(_AS_FAST, unsure)) ** 2 - 4 * np.log1p(
        np.maximum(faster, 0) / _FASTER
    )
    usual += np.where(b[:, 0] == 0, math.log(_POWER_LAWS), 0.0) - 1.2 * np.log1p(b[:, 0] / _BENT)
    usual -= 0.5 * (np.log(level[:, 0] / base) / _LEVEL) ** 2
    fit = usual - np.abs(seen[None, start:] - tails).sum(axis=1)
    tails, fit = with_humps(seen[start:], tails, fit)
    kept = fit > fit.max() - math.log(1e6)
    before = np.broadcast_to(np.maximum(weights[:start], 0.0), (int(kept.sum()), start))
    return np.concatenate([before, tails[kept] * scale], axis=1), probabilities(fit[kept])


def _thresholded(weights: Floats, deviation: float) -> tuple[Floats, Floats, int | None]:
    """Return, in the form of :func:`~dither.tables.planning.automatic.without_noise`, one histogram of people with
    bins after the last clearly filled one (and its neighbor) set to 0, its logarithm 0, and that bin (None: none)."""
    filled = np.flatnonzero(weights > 5 * deviation)
    last = int(filled[-1]) if filled.size else None
    kept = weights if last is None else np.where(np.arange(len(weights)) <= last + 1, weights, 0.0)
    return np.maximum(kept, 0.0)[None, :], np.zeros(1), last


def _may_be_whole(whole: NoisyNumber | None, number: float) -> bool:
    """Return whether all of this number of values may be whole, as far as the noise shows."""
    return whole is not None and whole.value + 2 * whole.deviation > number


def _within(histogram: NoisyHistogram, bounds: tuple[float, float] | None) -> tuple[Floats, Floats]:
    """Return the edges of the bins, within bounds, and their weights."""
    edges = np.asarray(histogram.edges, dtype=np.float64)
    return edges if bounds is None else np.clip(edges, *bounds), np.asarray(histogram.weights, dtype=np.float64)


def _filled(weights: Floats, deviation: float, false_alarm: float = _FALSE_ALARM) -> float:
    """Return the threshold that noise alone exceeds in any bin with this probability at most, by Laplace's tail."""
    return deviation / math.sqrt(2) * math.log(len(weights) / (2 * false_alarm))


@dataclass(frozen=True)
class _Run:
    """Neighboring bins merged into one: its range, the mean of its values (``point``), its weight and the standard
    deviation of that."""

    low: float
    high: float
    point: float
    weight: float
    deviation: float
    width: int
    """The number of bins."""

    @classmethod
    def of(cls, edges: Floats, weights: Floats, deviation: float, first: int, last: int, step: float) -> _Run:
        """Return the bins from the first up to the last one, which is not included; ``step`` is 1 for whole numbers."""
        held = np.maximum(weights[first:last], 0.0)
        middles = _middles(edges, step)[first:last]
        point = float(held @ middles / held.sum()) if held.sum() > 0 else float(middles.mean())
        total = float(weights[first:last].sum())
        return cls(
            float(edges[first]), float(edges[last]), point, total, deviation * math.sqrt(last - first), last - first
        )


def _middles(edges: Floats, step: float) -> Floats:
    """Return the middles of bins, whose upper edges are not in them; of whole numbers with a ``step`` of 1."""
    result: Floats = (edges[:-1] + np.maximum(edges[1:] - step, edges[:-1])) / 2
    return result


def _runs(
    edges: Floats, histogram: NoisyHistogram, places: range, before: _Run, step: float
) -> tuple[list[_Run], _Tail | None]:
    """Return the runs of bins on one side that hold more than noise alone, each as short as that allows, and what may
    be beyond the last of these."""
    weights, deviation = np.asarray(histogram.weights, dtype=np.float64), histogram.deviation
    seen: list[_Run] = []
    total, start, last = 0.0, 0, before
    filled = [number for number, place in enumerate(places, 1) if weights[place] > _filled(weights, deviation)]
    for number, place in enumerate(places, 1):
        total += float(weights[place])
        width = number - start
        if number > max(filled, default=0) and width > max(2 * last.width, _GAP):
            break
        if total > (_SEEN + math.log2(width) / 2) * deviation * math.sqrt(width) or number in filled:
            first, final = sorted((places[start], place))
            last = _Run.of(edges, weights, deviation, first, final + 1, step)
            seen.append(last)
            start, total = number, 0.0
    rest = places[start:]
    return seen, None if not rest else _tail(edges, histogram, rest, [before, *seen], step)


@dataclass(frozen=True)
class _Tail:
    """Values that the noise may hide beyond the last run of a side: the ``expected`` weight at each point, and
    ``possible`` differences from it (a line each) with their probabilities."""

    points: Floats
    expected: Floats
    possible: Floats
    probabilities: Floats


def _tail(edges: Floats, histogram: NoisyHistogram, rest: range, side: list[_Run], step: float) -> _Tail:
    """Return what may be beyond the runs of a side, in the bins ``rest``.

    Either there is nothing, or values fall off from the end of the last run, exponentially or as in a Pareto law of
    exponent 3 and the same mean: by the mean distance of how far values are beyond a point behind which there are
    enough of them, or by a multiple of it (:data:`_SCALES`); and they are as many as follow from the density there, or
    a multiple of it (:data:`_MASSES`); or they are apart, spread over a range or in one bin. Each of these has its
    probability, given the noisy numbers and the law of their noise.
    """
    weights, deviation = np.asarray(histogram.weights, dtype=np.float64), histogram.deviation
    last = side[-1]
    end = last.high if rest.step > 0 else last.low
    excess, behind = 0.0, 0.0
    for run in reversed(side):
        excess, behind = excess + run.weight * abs(run.point - end), behind + max(run.weight, 0.0)
        if behind > max(_ENOUGH * deviation, _TAIL * sum(max(item.weight, 0.0) for item in side)):
            break
    fullest = max(side, key=lambda run: run.weight / run.width)
    heights = math.log(max(fullest.weight / fullest.width / (_SEEN * deviation), 1.0)) + _BARELY
    fallen = abs(end - fullest.point) / heights  # what is seen ends where the noise begins, however slowly it falls
    distance = max(_TRUNCATED * excess / max(behind, 1e-9), (last.high - last.low) / 2, fallen, 1e-12)
    length = max(last.high - last.low, 1e-12)
    numbers = np.asarray(rest)
    starts, ends = edges[numbers], edges[numbers + 1]
    near, far = (starts - end, ends - end) if rest.step > 0 else (end - ends, end - starts)
    densest = max(run.weight / max(run.high - run.low, 1e-300) for run in side)
    nothing = _NOTHING * min(max(last.weight, deviation) / length / densest, 1.0) ** _FADING
    masses, before = [np.zeros(len(near))], [nothing]
    usual = max(last.weight, deviation) / length * distance
    for multiple, of_scale in _SCALES:
        scale = multiple * distance
        starts, ends = (near + length / 2) / scale, (far + length / 2) / scale
        for shape in (np.exp(-starts) - np.exp(-ends), (1 + starts / 2) ** -3 - (1 + ends / 2) ** -3):
            for factor, of_mass in _MASSES:
                masses.append(factor * usual * shape)
                before.append((1 - nothing - _SEPARATE - _ALONE) * of_scale * of_mass / 2)
    for width in _WIDTHS:
        farthest = width * (max(run.high for run in side) - min(run.low for run in side))
        shape = np.clip(farthest - near, 0.0, far - near)
        for factor in _HIDDEN:
            masses.append(factor * deviation * shape / max(float(shape.sum()), 1e-300))
            before.append(_SEPARATE / len(_WIDTHS) / len(_HIDDEN))
    nearer = 1 / np.arange(1, len(rest) + 1)
    alone = np.maximum(weights[numbers], deviation)
    masses += list(np.diag(alone))
    before += (_ALONE * nearer / nearer.sum() * deviation / alone).tolist()
    possible = np.array(masses)
    off = np.abs(weights[numbers] - possible) / deviation
    fit = -0.5 * (off**2).sum(axis=1) if histogram.normal else -math.sqrt(2) * off.sum(axis=1)
    posterior = probabilities(np.log(before) + fit)
    expected = posterior @ possible
    inside = expected > _LEAST_HIDDEN * deviation / len(rest)
    likely = posterior > _LEAST_PROBABLE
    kept = posterior[likely] / posterior[likely].sum()
    return _Tail(
        _middles(edges, step)[numbers][inside], expected[inside], (possible - expected)[likely][:, inside], kept
    )


@dataclass(frozen=True)
class Values:
    """The distribution of a column's value in a random row of a random person: points with their probabilities
    ``shares``.

    ``classes`` are the distributions for classes of people by their number of rows, whose largest numbers of rows are
    ``sizes``; they may have other points.
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
    hidden: tuple[tuple[Floats, Floats], ...] = ()
    """For each side, how the shares that the noise may hide differ from what is expected of them, a line for each
    possibility, and the probabilities of these."""
    cells: tuple[Floats, Floats] | None = None
    """Between which numbers the values lie that are taken to be at each point; None where they are there."""
    step: float = 0.0
    """1 where values are known to be whole numbers, else 0."""

    def expected_error(
        self, errors: Floats, function: Callable[[Floats], Floats], scale: Floats | float = 1.0
    ) -> Floats:
        """Return the expected ``errors`` when the error by hidden values is added in squares: what these change in the
        mean of ``function``, times ``scale``. The functions (such as pairs of bounds) are the last axis of ``errors``
        but one.

        It is the mean of errors over possibilities, not of squares, which improbable possibilities would dominate.
        """
        at_points, result = function(self.points), errors
        for possible, likely in self.hidden:
            off = at_points @ possible.T
            off -= _quantiles(off, likely, (0.5,))[0][..., None]
            for place in np.flatnonzero(likely > _LEAST_PROBABLE).tolist():
                probability = float(likely[place])
                result = result + probability * (np.hypot(errors, off[:, place, None] * scale) - errors)
        return result

    def uncertainty(self, function: Callable[[Floats], Floats], hidden: bool = True) -> Floats:
        """Return the standard deviation of the mean of each function of the value (``function`` gives a line of results
        for each).

        Variances of three causes add up: sum f(point)^2 * variance of its share, for the noise of the profile; the
        mean square of the change by values that the noise may hide (unless ``hidden`` is False), times
        ``_CAUTION^2``; and ``_IN_BIN^2`` times the squared difference of f between the ends of each bin.
        """
        at_points = function(self.points)
        variance = at_points**2 @ self.deviations**2
        for possible, likely in self.hidden if hidden else ():
            least, middle, most = _quantiles(at_points @ possible.T, likely, (0.05, 0.5, 0.95))
            variance = variance + (np.maximum(most - middle, middle - least) / _NORMAL_90) ** 2
        if self.cells is not None:
            within = (function(self.cells[1]) - function(self.cells[0])) * _IN_BIN
            variance = variance + within**2 @ self.shares**2
        result: Floats = np.sqrt(variance)
        return result

    def below(self, places: Floats) -> Floats:
        """Return the share of the values below each place: spread evenly in their cells, or over the whole numbers
        there."""
        lows, highs = (self.points, self.points) if self.cells is None else self.cells
        reached = np.ceil(places) if self.step else places
        width = np.maximum(highs + self.step - lows, 1e-9 * np.maximum(np.abs(lows), 1.0))
        held = np.clip((reached[:, None] - lows) / width, 0.0, 1.0)
        result: Floats = held @ np.maximum(self.shares, 0.0) / max(float(np.maximum(self.shares, 0.0).sum()), 1e-12)
        return result

    def noise(self, function: Callable[[Floats], Floats]) -> Floats:
        """Return the part of :meth:`uncertainty` that is the noise of the shares."""
        result: Floats = np.sqrt(function(self.points) ** 2 @ self.deviations**2)
        return result

    def hidden_median(self, function: Callable[[Floats], Floats]) -> Floats:
        """Return by how much the median of the mean of functions of the value differs from its expectation: what may
        be hidden is in most cases little, and rarely much."""
        at_points = function(self.points)
        medians = [_quantiles(at_points @ possible.T, likely, (0.5,))[0] for possible, likely in self.hidden]
        result: Floats = np.sum(medians, axis=0) + np.zeros(len(at_points))
        return result

    @classmethod
    def flat(cls, bounds: tuple[float, float]) -> Values:
        """Return values spread evenly between their bounds, if nothing else is known of them."""
        return cls(np.linspace(bounds[0], bounds[1], 9), np.full(9, 1 / 9), np.zeros(9), bounds)

    @classmethod
    def of_histogram(
        cls, histogram: NoisyHistogram, bounds: tuple[float, float] | None, whole: bool = False
    ) -> Values | None:
        """Return the distribution of values from a noisy histogram clipped to ``bounds``; None if no bin is clearly
        above its noise. ``whole`` says that the values are integers.

        From the fullest bin outward, neighboring bins are merged into runs that clearly exceed their noise. What the
        noise may hide beyond the last run of each side is a tail, whose possible shares are kept in ``hidden``.
        """
        edges, weights = _within(histogram, bounds)
        if not (weights > _filled(weights, histogram.deviation)).any():
            return None
        step, deviation = 1.0 if whole else 0.0, histogram.deviation
        mode = int(np.argmax(weights))
        middle = _Run.of(edges, weights, deviation, mode, mode + 1, step)
        above, upper = _runs(edges, histogram, range(mode + 1, len(weights)), middle, step)
        below, lower = _runs(edges, histogram, range(mode - 1, -1, -1), middle, step)
        seen = [*reversed(below), middle, *above]
        tails = [tail for tail in (lower, upper) if tail is not None]
        points = np.concatenate([[run.point for run in seen], *(tail.points for tail in tails)])
        held = np.concatenate([[run.weight for run in seen], *(tail.expected for tail in tails)])
        hidden, first = [], len(seen)
        for tail in tails:
            possible = np.zeros((len(tail.possible), len(points)))
            possible[:, first : first + len(tail.points)] = tail.possible
            hidden.append((possible, tail.probabilities))
            first += len(tail.points)
        deviations = np.zeros(len(points))
        deviations[: len(seen)] = [run.deviation for run in seen]
        lows, highs = points.copy(), points.copy()  # of what is hidden, the shares are less certain than the places
        lows[: len(seen)] = [run.low for run in seen]
        highs[: len(seen)] = [max(run.high - step, run.low) for run in seen]
        number, order = max(float(held.sum()), 1.0), np.argsort(points, kind="stable")
        return cls(
            points[order],
            held[order] / number,
            deviations[order] / number,
            (seen[0].low, seen[-1].high - min(step, seen[-1].high - seen[-1].low)),
            hidden=tuple((possible[:, order] / number, probabilities) for possible, probabilities in hidden),
            cells=(lows[order], highs[order]),
        )

    @classmethod
    def of_column(
        cls, table: TableProfile, name: str, bounds: tuple[float, float] | None, people: People
    ) -> Values | None:
        """Return the distribution of a column's values by its profile; None where the profile has none."""
        column = table.columns.get(name)
        if column is None or column.values is None:
            return None
        number = max(float(sum(column.values.weights)), 1.0)
        of_whole = column.whole is not None and column.whole.value > _WHOLE * number
        whole = column.type == "integer" or of_whole
        result = cls.of_histogram(column.values, bounds, whole)
        if result is None:
            return None
        known: tuple[Values, ...] = ()
        if column.by_rows and len(column.by_rows) == len(table.classes):
            known = tuple(cls._of_class(item, bounds, result.ends, float(whole)) for item in column.by_rows)
        nulls = max(column.nulls or 0.0, 0.0)
        means = getattr(column, "means", None)
        return replace(
            result,
            classes=known,
            sizes=tuple(table.classes) if known else (),
            nulls=nulls / (nulls + number),
            step=float(whole or _may_be_whole(column.whole, number)),
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
        cls, histogram: NoisyHistogram, bounds: tuple[float, float] | None, ends: tuple[float, float], step: float
    ) -> Values:
        """Return the distribution of values in one class of people, in the range ``ends``, without removing noise."""
        edges, weights = _within(histogram, bounds)
        points = _middles(edges, step)
        inside = (edges[1:] > ends[0]) & (edges[:-1] < ends[1])
        number = max(float(weights[inside].sum()), histogram.deviation)
        deviations = np.full(int(inside.sum()), histogram.deviation / number)
        return cls(points[inside], weights[inside] / number, deviations, ends, people=number)

    def class_means(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return how far each class's mean of values clipped to each pair of bounds is from that of all classes, and
        the standard deviation of that by the noise."""
        numbers = np.array([item.people for item in self.classes])
        means, noises = [], []
        for item in self.classes:
            held = np.clip(item.points, low[:, None], high[:, None])
            mean = held @ item.shares
            means.append(mean)
            noises.append(np.sqrt((held - mean[:, None]) ** 2 @ item.deviations**2))
        return np.array(means) - numbers @ np.array(means) / numbers.sum(), np.array(noises)

    def mapped(self, function: Callable[[Floats], Floats]) -> Values:
        """Return the distribution of a function of this value; NaN counts as NULL."""
        if self.cells is not None:
            return replace(self.refined(), cells=None).mapped(function)
        points = function(self.points)
        known = np.isfinite(points)
        if not known.any():
            return replace(
                self, points=np.zeros(1), shares=np.ones(1), deviations=np.zeros(1), nulls=1.0, classes=(), hidden=()
            )
        share = max(float(self.shares[known].sum()), 1e-12)
        seen = all(item.is_seen(function) for item in self.classes)
        classes = tuple(replace(item.mapped(function), people=item.people) for item in self.classes) if seen else ()
        return replace(
            self,
            points=points[known],
            shares=self.shares[known] / share,
            deviations=self.deviations[known] / share,
            hidden=tuple((possible[:, known] / share, probabilities) for possible, probabilities in self.hidden),
            cells=None,
            step=0.0,
            ends=(float(points[known].min()), float(points[known].max())),
            nulls=1 - (1 - self.nulls) * share,
            classes=classes,
            sizes=self.sizes if classes else (),
        )

    def with_nulls_as(self, value: float, share: float) -> Values:
        """Return the distribution in which a ``share`` of all rows has this value instead of NULL. That share is as
        uncertain as the largest of the others; classes of people are not known of it."""
        known = 1 - self.nulls
        total = max(known + share, 1e-12)
        deviation = float(self.deviations.max(initial=0.0))
        hidden = tuple(
            (np.append(possible, np.zeros((len(possible), 1)), axis=1) * known / total, probabilities)
            for possible, probabilities in self.hidden
        )
        return replace(
            self,
            points=np.append(self.points, value),
            shares=np.append(self.shares * known, share) / total,
            deviations=np.append(self.deviations * known, deviation) / total,
            hidden=hidden,
            ends=(min(self.ends[0], value), max(self.ends[1], value)),
            nulls=max(self.nulls - share, 0.0),
            classes=(),
            sizes=(),
        )

    def is_seen(self, function: Callable[[Floats], Floats]) -> bool:
        """Return whether more values of a function are known than noise alone would show."""
        known = np.isfinite(function(self.points))
        return float(self.shares[known].sum()) > _SEEN * math.sqrt(float((self.deviations[known] ** 2).sum()))

    def refined(self) -> Values:
        """Return the values with :data:`_PARTS` points in each cell, and the same mean in it: for conditions and
        functions that tell values of one cell from each other."""
        if self.cells is None:
            return self
        low, high = self.cells
        place = (np.arange(_PARTS) + 0.5) / _PARTS
        half = np.maximum(high - low, 1e-300) / 2
        slope = np.clip((self.points - (high + low) / 2) / half / (((2 * place - 1) ** 2).mean()), -1, 1)
        parts = (1 + slope[:, None] * (2 * place - 1)) / _PARTS
        return replace(
            self,
            points=(low[:, None] + (high - low)[:, None] * place).ravel(),
            shares=(self.shares[:, None] * parts).ravel(),
            deviations=(self.deviations[:, None] * np.sqrt(parts)).ravel(),
            hidden=tuple(
                ((possible[:, :, None] * parts).reshape(len(possible), -1), probabilities)
                for possible, probabilities in self.hidden
            ),
            cells=(
                (low[:, None] + (high - low)[:, None] * (place - 0.5 / _PARTS)).ravel(),
                (low[:, None] + (high - low)[:, None] * (place + 0.5 / _PARTS)).ravel(),
            ),
        )

    def where(self, keeps: Callable[[Floats], NDArray[np.bool_]]) -> Values | None:
        """Return the values that a condition on this value keeps; None where too few are seen to be kept."""
        fine = self.refined()
        kept = keeps(fine.points)
        share = float(fine.shares[kept].sum())
        if share <= _SEEN * float(np.sqrt((fine.deviations[kept] ** 2).sum())) or share <= 0:
            return None
        ends = max(self.ends[0], float(fine.points[kept].min())), min(self.ends[1], float(fine.points[kept].max()))
        result = replace(
            fine,
            shares=fine.shares * kept / share,
            deviations=fine.deviations * kept / share,
            hidden=tuple((possible * kept / share, probabilities) for possible, probabilities in fine.hidden),
            ends=(ends[0], max(ends)),
            nulls=0.0,
            classes=(),
            sizes=(),
        )
        return result._with_cells_joined(kept) if self.cells is not None else result._only(kept)

    def _only(self, kept: NDArray[np.bool_]) -> Values:
        """Return the values with some of the points; the others have no share."""
        return replace(
            self,
            points=self.points[kept],
            shares=self.shares[kept],
            deviations=self.deviations[kept],
            hidden=tuple((possible[:, kept], probabilities) for possible, probabilities in self.hidden),
            cells=None if self.cells is None else (self.cells[0][kept], self.cells[1][kept]),
        )

    def _with_cells_joined(self, kept: NDArray[np.bool_]) -> Values:
        """Return refined values with one point for each cell again, between the ends of the parts that are ``kept``:
        where values are in a cell is not known."""
        assert self.cells is not None
        parts = kept.reshape(-1, _PARTS)
        shares = self.shares.reshape(parts.shape)
        weights = np.where(parts, np.maximum(shares, 1e-300), 0.0)
        some = np.asarray(parts.any(axis=1))
        number = np.maximum(weights.sum(axis=1), 1e-300)
        result = replace(
            self,
            points=(weights * self.points.reshape(parts.shape)).sum(axis=1) / number,
            shares=shares.sum(axis=1),
            deviations=np.sqrt((self.deviations.reshape(parts.shape) ** 2).sum(axis=1)),
            hidden=tuple(
                (possible.reshape(len(possible), -1, _PARTS).sum(axis=2), probabilities)
                for possible, probabilities in self.hidden
            ),
            cells=(
                np.where(parts, self.cells[0].reshape(parts.shape), np.inf).min(axis=1),
                np.where(parts, self.cells[1].reshape(parts.shape), -np.inf).max(axis=1),
            ),
        )
        return result._only(some)

    def of_subset(self, share: float) -> Values:
        """Return the distribution of the values in a ``share`` of the rows that a condition on another column selects.

        The two columns may be correlated, so three cases are possible, with the probabilities of
        :data:`_ALIKE_OR_EXTREME`: the values are those of all rows, the smallest of all, or the largest.
        """
        order = np.argsort(self.points)

        def first(places: NDArray[np.intp]) -> Floats:
            """Return the distribution of the first ``share`` of the values, taken in the order of these points."""
            held = np.cumsum(self.shares[places])
            taken = np.clip(share - (held - self.shares[places]), 0, self.shares[places]) / share
            result = np.empty_like(taken)
            result[places] = taken
            return result

        possible = np.array([self.shares, first(order), first(order[::-1])])
        probabilities = np.array(_ALIKE_OR_EXTREME)
        expected = probabilities @ possible
        hidden = (*self.hidden, (possible - expected, probabilities))
        return replace(self, shares=expected, hidden=hidden, classes=(), sizes=())

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
        return np.asarray(np.interp(q, below, self.points[order]))

    def held_moments(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the mean square of the values clamped to each pair of bounds."""
        held = np.clip(self.points, low[..., None], high[..., None])
        return held @ self.shares, held**2 @ self.shares
