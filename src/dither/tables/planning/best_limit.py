"""The best limit on what one person counts for, from a noisy histogram of people.

The histogram counts people by how many rows (or groups) they have, in bins whose edges grow by the fourth root of 2.
With a limit R the noise of an answer grows in proportion to R, and what people have beyond R is left out. R is the one
whose error is expected to be the smallest: the root of the sum of both squares, averaged over the histograms without
noise that may have led to the noisy one, each with its probability (:func:`_without_noise`). How much it leaves out is
not told by these probabilities, which rest on assumptions, but by :mod:`~dither.tables.planning.left_out`.

It is a mean of errors and not of their squares because a few histograms that are hardly possible, with people who have
very many rows, would otherwise decide alone: the limit would be so high that noise is most of the error. Where some
bins are filled beyond doubt, the mean is that of the errors to the power 3/2, which heeds long tails more.

People are found by tests whose false alarms are bounded (:func:`thresholds`), in single bins and in neighboring ones.
Some people with very many rows, fewer than :func:`people_seen` in a bin, may hide in the noise, as in everything else
that is released. They can be anywhere and no limit on what they have would hold, so every answer says how many are not
seen.

All of it is post-processing of released numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EDGES = tuple(sorted({round(2 ** (i / 4)) for i in range(81)}))
"""Upper edges of the bins of people by their number of rows or groups; the last bin takes in all that is beyond."""
_CANDIDATES = tuple(sorted({round(2 ** (i / 8)) for i in range(161)}))
_WINDOW = 4
_WINDOWS = (1, 2, 4, 8)
_FALSE_ALARM = 2e-4
"""The probability with which a histogram of noise alone shows people in any window of any width."""
_MISSED = 0.05
_LEVELS = np.geomspace(0.25, 3, 10)
_SLOPES = np.array([-1.0, -0.7, -0.4, -0.2, 0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.4, 2.0, 3.0, 6.0])
_CURVES = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 3.0])
_LEAST_SLOPE = 1.5 * math.log(2) / 4
_CENTERS = np.arange(0, 61, 1.5)
_WIDTHS = np.array([0.4, 1.0, 2.0, 4.0, 7.0, 11.0])
_TOTALS = np.geomspace(0.5, 80, 14)
_FALL_OF_CENTERS = 2 * math.log(2) / 4
"""That people have twice as many rows is a quarter as likely before anything is known."""


class BestLimit(NamedTuple):
    """A limit on what one person counts for, and the error that is expected with it."""

    limit: int
    error: float


def best_limit(people: NDArray[np.float64], epsilon: Fraction, noise_of_one: float, groups: int) -> BestLimit:
    """The limit with the smallest expected error of noise and of what is left out, from the noisy histogram of people.

    How many people are in a bin varies as in a Poisson law about what is expected there: a few people with very many
    rows may be there, or not. That is part of the error.

    What is left out is spread over the groups, as a rule unevenly: the mean square is counted as twice what it would be
    if it were spread evenly.

    Parameters
    ----------
    people
        The noisy number of people in each bin of :data:`EDGES`.
    epsilon
        What the histogram cost: its noise is Laplace noise of scale ``1 / epsilon``.
    noise_of_one
        The standard deviation of the noise of an answer, in rows, if a person counts for one row.
    groups
        How many groups what is left out is spread over.
    """
    possible = _without_noise(people, epsilon)
    out, variances = _beyond(possible.expected, np.array(_CANDIDATES, dtype=np.float64))
    squares = (noise_of_one * np.array(_CANDIDATES)) ** 2 + (out**2 + variances) * min(1.0, 2 / groups**2)
    power = 1.0 if possible.start is None else 1.5
    errors = (possible.weights @ squares ** (power / 2)) ** (1 / power)
    best = int(np.argmin(errors))
    return BestLimit(_CANDIDATES[best], float(errors[best]))


def _beyond(
    expected: NDArray[np.float64], limits: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What is beyond each limit by each histogram, and its variance; half of the people of a bin are at either of the
    two points of :func:`_points`."""
    beyond = np.maximum(_points()[None, :, :] - limits[:, None, None], 0.0)
    out, variances = expected @ beyond.mean(axis=2).T, expected @ (beyond**2).mean(axis=2).T
    return np.maximum(out, 0.0), np.maximum(variances, 0.0)


def _points() -> NDArray[np.float64]:
    """Two numbers of rows within each bin, a quarter from its ends on a logarithmic scale."""
    upper = np.array(EDGES, dtype=np.float64)
    lower = np.concatenate([[0.0], upper[:-1]]) + 1
    points: NDArray[np.float64] = lower[:, None] * (upper / lower)[:, None] ** np.array([[0.25, 0.75]])
    return points


@cache
def thresholds() -> dict[int, float]:
    """What the sum of so many neighboring bins has to exceed for people to be there, in units of the noise's scale.

    *Statement.* Where there are no people, any sum of any width exceeds its threshold with a probability of at most
    2e-4.

    *Why.* The sum of w Laplace variables of scale 1 is the difference of two gamma variables of shape w: the times at
    which two Poisson processes of rate 1 have w events. When the second has its w-th, the first has k with probability
    ``C(w - 1 + k, k) / 2^(w + k)``, and then needs another gamma time of shape w - k. So the sum exceeds t with
    probability ``sum over k < w of C(w - 1 + k, k) 2^-(w + k) Q(w - k, t)``, where ``Q(n, t) = exp(-t) sum over j < n
    of t^j / j!``. Every width gets an equal part of the 2e-4, and every sum of a width an equal part of that.

    >>> {width: round(threshold, 1) for width, threshold in thresholds().items()}
    {1: 13.5, 2: 15.7, 4: 18.9, 8: 23.6}
    """
    result = {}
    for width in _WINDOWS:
        level = _FALSE_ALARM / len(_WINDOWS) / (len(EDGES) - width + 1)
        low, high = 0.0, 100.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if _sum_exceeds(width, middle) > level else (low, middle)
        result[width] = high
    return result


def _sum_exceeds(width: int, threshold: float) -> float:
    """The probability that a sum of so many Laplace variables of scale 1 exceeds a threshold of at least 0."""
    total = 0.0
    for k in range(width):
        gamma = sum(threshold**j / math.factorial(j) for j in range(width - k)) * math.exp(-threshold)
        total += math.comb(width - 1 + k, k) / 2 ** (width + k) * gamma
    return total


def people_seen(epsilon: Fraction) -> int:
    """How many people in one bin are seen in 95 of 100 histograms: fewer may not be. It is public.

    >>> people_seen(Fraction(1, 10))
    159
    """
    return math.ceil((thresholds()[1] - math.log(2 * _MISSED)) / float(epsilon))


def unseen_people(epsilon: Fraction) -> str:
    """What the histogram cannot show, in words.

    >>> unseen_people(Fraction(1, 10))
    'even 160 people with very many rows could go undetected'
    """
    number = people_seen(epsilon)
    digits = max(len(str(number)) - 2, 0)
    return f"even {round(number, -digits):,} people with very many rows could go undetected"


def _last_seen(scaled: NDArray[np.float64]) -> int | None:
    """Where the last bins begin that are filled beyond doubt; None if there are none.

    It is where the last sum of four bins begins that shows people, unless another sum shows some farther than that, or
    a single bin behind its first one does: a tail is known best from a few bins, a hump from its own.
    """
    starts = {
        width: int(places[-1])
        for width, threshold in thresholds().items()
        if (places := np.flatnonzero(np.convolve(scaled, np.ones(width), "valid") > threshold)).size
    }
    last = max(starts.values(), default=None)
    usual = starts.get(_WINDOW)
    if last is None or usual is None or last > usual + _WINDOW or starts.get(1, 0) > usual:
        return last
    return usual


class _Possible(NamedTuple):
    """Histograms of people that may have led to a noisy one, with their probabilities.

    Before the bin ``start`` they are the noisy numbers themselves; None if no bin is filled beyond doubt.
    """

    expected: NDArray[np.float64]
    weights: NDArray[np.float64]
    start: int | None


def _without_noise(people: NDArray[np.float64], epsilon: Fraction) -> _Possible:
    """Histograms without noise that may have led to this noisy one: those by which a limit is chosen."""
    scaled = people * float(epsilon)
    start = _last_seen(scaled)
    expected, weights = _humps(scaled) if start is None else _tails(scaled, start)
    return _Possible(expected / float(epsilon), weights, start)


def _tails(people: NDArray[np.float64], start: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Histograms, in units of the scale of the noise, with their probabilities: with tails from ``start`` on.

    Up to the last bins that are filled beyond doubt, the noisy numbers are good enough. Beyond, tails of the form
    ``level * exp(-a i - b i^2)`` are weighed by the likelihood of the noise that they imply, all else being equal. They
    fall at least as fast as the tail of a Pareto law with exponent 1.5.
    """
    i = np.arange(len(people) - start, dtype=np.float64)
    base = max(float(people[start : start + 2].mean()), 1.0)
    level, a, b = (axis.ravel()[:, None] for axis in np.meshgrid(base * _LEVELS, _SLOPES, _CURVES, indexing="ij"))
    falls = a + 2 * b * _WINDOW >= _LEAST_SLOPE
    level, a, b = level[falls[:, 0]], a[falls[:, 0]], b[falls[:, 0]]
    slope = np.maximum(a + b * (2 * i + 1), np.where(i >= _WINDOW, _LEAST_SLOPE, -np.inf))
    logs = np.concatenate([np.zeros((len(level), 1)), -np.cumsum(slope, axis=1)[:, :-1]], axis=1)
    tails = level * np.exp(np.maximum(logs, -700.0))
    fit = -np.abs(people[None, start:] - tails).sum(axis=1)
    weights = np.exp(fit - fit.max())
    before = np.broadcast_to(people[:start], (len(weights), start))
    return np.concatenate([before, tails], axis=1), weights / weights.sum()


def _humps(people: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same where no bin is filled beyond doubt: few people, or little epsilon.

    The people are then somewhere, in a hump of the form ``exp(-(i - center)^2 / (2 width^2))``: a log-normal law, which
    is nearly constant where the width is small. Humps are weighed by the likelihood of the noise that they imply, and
    by where they are: twice the rows are a quarter as likely.
    """
    i = np.arange(len(people), dtype=np.float64)
    center, width = (axis.ravel()[:, None] for axis in np.meshgrid(_CENTERS, _WIDTHS, indexing="ij"))
    shapes = np.exp(-0.5 * ((i - center) / width) ** 2)
    shapes /= shapes.sum(axis=1, keepdims=True)
    humps = (_TOTALS[:, None, None] * shapes[None, :, :]).reshape(-1, len(people))
    fit = -np.abs(people[None, :] - humps).sum(axis=1) - _FALL_OF_CENTERS * np.tile(center[:, 0], len(_TOTALS))
    weights = np.exp(fit - fit.max())
    possible = weights > 1e-9
    return humps[possible], weights[possible] / weights[possible].sum()
