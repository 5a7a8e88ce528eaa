"""Learning where the outputs on two data sets differ: a score for outputs, and where to guess by it.

A score is learned on every look at the outputs (:mod:`dither.audit.blackbox.views`): the look itself, where large means
the one data set and small the other; the log-likelihood ratio on its atoms and on quantile bins; that of every single
value that came more than once, however rare; and a blend of the best of these. Each is judged on the half of the sample
that it was not learned on. All of this may go wrong without harm: what is stated later rests on fresh outputs only.

Two regions are learned: the one with the largest bound on a sample like this, and the one with the largest bound to be
expected on as many fresh runs as there will be, which may rest on events too rare to show here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.confidence import wilson
from dither.audit.blackbox.features import Array, Outputs, gather
from dither.audit.blackbox.gaussian_dp import wilson_mu
from dither.audit.blackbox.scores import Atoms, Bins, Blend, Large, Look, Ratio, Score, exact_values, finite, log_ratios
from dither.audit.blackbox.views import View, views

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]

_CUTS = 16
_ZOOMS = 3
_BLENDED = 12
_BLEND_ROWS = 40_000
_CAUTION = 1e-3  # of the failure probability: the best of a thousand cuts looks better than it is
_RARE = 0.1


@dataclass(frozen=True)
class Region:
    """Where to guess: the neighbour if the score is at least ``high``, x if it is at most ``low``, else not at all.

    >>> outputs = gather(np.concatenate([np.zeros(50), np.ones(50)]))
    >>> region = learn(outputs, np.arange(100) >= 50, 0.01)[0]
    >>> region(1.0), region(0.0)
    ('x_neighbor', 'x')
    """

    score: Score
    low: float
    high: float

    def __call__(self, output: Any) -> str | None:
        """The guess for one output: "x", "x_neighbor", or None where it abstains."""
        guess = int(self.guesses(gather([output]))[0])
        return {1: "x_neighbor", -1: "x", 0: None}[guess]

    def guesses(self, outputs: Outputs, scores: Floats | None = None) -> NDArray[np.int8]:
        """1 for the neighbour, -1 for x, 0 for neither."""
        result = self.score(outputs) if scores is None else scores
        with np.errstate(invalid="ignore"):
            return (result >= self.high).astype(np.int8) - (result <= self.low).astype(np.int8)

    @property
    def sides(self) -> int:
        """How many of the two sets are not empty."""
        return int(self.high < math.inf) + int(self.low > -math.inf)

    @property
    def words(self) -> str:
        """In words."""
        for_neighbor, for_x = self.score.where(self.low, self.high)
        parts = [f"x_neighbor where {for_neighbor}"] * (self.high < math.inf)
        parts += [f"x where {for_x}"] * (self.low > -math.inf)
        return "; ".join(parts) or "nowhere: no difference was seen"


@dataclass(frozen=True)
class Goal:
    """What a region is chosen for: the bound on ``fresh`` times as many runs, with the counts seen here taken to be
    ``doubt`` deviations too good."""

    failure: float
    delta: float
    fresh: float = 1.0
    doubt: float = 0.0

    def __call__(self, right: Any, wrong: Any, trials: int, sides: Any) -> Floats:
        """About what the bound will be."""
        right, wrong = right - self.doubt * np.sqrt(right), wrong + self.doubt * np.sqrt(wrong)
        return wilson(self.fresh * right, self.fresh * wrong, self.fresh * trials, self.failure, self.delta, sides)


def learn(
    outputs: Outputs, labels: Labels, failure: float, delta: float = 0.0, mode: str = "region", fresh: float = 1.0
) -> list[Region]:
    """The regions to try, best first, one or two; ``labels`` are True where the neighbour was run, and there will be
    ``fresh`` times as many fresh runs as these.
    """
    goals: list[Goal] = [Goal(_CAUTION * failure, delta)]
    if mode != "gaussian":
        goals.append(Goal(_RARE * failure, delta, max(1.0, fresh), 1.0))
    nothing = Region(Large(View(""), 1.0), -math.inf, math.inf)
    best = [(-math.inf, nothing, np.empty(0))] * len(goals)
    for score, held_out in _candidates(outputs, labels):
        for place, (value, low, high) in enumerate(_cuts(held_out, labels, goals, mode)):
            if value > best[place][0] + 1e-9:
                best[place] = value, Region(score, low, high), held_out
    regions: list[Region] = []
    for _, region, judged in best:
        if not isinstance(region.score, Large):
            region = _carried_over(region, judged, region.score(outputs))
        if not any(region is known or _alike(region, known) for known in regions):
            regions.append(region)
    return regions


def _alike(one: Region, other: Region) -> bool:
    return one.score is other.score and (one.low, one.high) == (other.low, other.high)


def _carried_over(region: Region, judged: Floats, scores: Floats) -> Region:
    """The region for the score learned on everything: it takes as many of the runs as with the scores it was chosen
    by, and then all that score the same.
    """
    ranked = np.sort(scores)
    share = ranked.size / max(1, int((~np.isnan(judged)).sum()))
    upper, lower = (round(share * np.count_nonzero(chosen)) for chosen in (judged >= region.high, judged <= region.low))
    high = float(ranked[ranked.size - upper]) if upper else math.inf
    low = float(ranked[lower - 1]) if lower else -math.inf
    if low >= high:
        below = ranked[ranked < high]
        low = float(below[-1]) if below.size else -math.inf
    return Region(region.score, low, high)


def _candidates(outputs: Outputs, labels: Labels) -> Iterator[tuple[Score, Floats]]:
    """Scores, each with what it gives to the runs when learned without them."""
    even = np.arange(labels.size) % 2 == 0
    ratios: list[tuple[float, Ratio, Floats]] = []
    for view in views(outputs, labels):
        column = view(outputs)
        if column.dtype != object:
            usable = np.isfinite(column)
            if not usable.any():
                continue
            if view.ordered and usable.mean() > 0.5 and column[usable].min() < column[usable].max():
                apart = _rank_difference(column, labels, usable)
                sign = 1.0 if apart >= 0 else -1.0
                yield Large(view, sign), unseen(finite(column * sign), view)
        if view.only_atoms:
            yield from _atoms(view, column, labels, even)
            continue
        bins = Bins.of(column)
        places = bins(column)
        counts = [np.bincount(places[m], minlength=bins.count) for m in (even & labels, even & ~labels, ~even & labels)]
        last = np.bincount(places[~even & ~labels], minlength=bins.count)
        if np.count_nonzero(counts[0] + counts[1] + counts[2] + last) < 2:
            continue
        held_out = np.where(even, log_ratios(counts[2], last)[places], log_ratios(counts[0], counts[1])[places])
        ratio = Ratio(view, bins, log_ratios(counts[0] + counts[2], counts[1] + last))
        judged = unseen(held_out, view)
        known = np.nan_to_num(judged)
        ratios.append((float(np.where(labels, known, -known).mean()), ratio, known))
        yield ratio, judged
        if bins.shared:
            yield from _atoms(view, column, labels, even)
    ratios.sort(key=lambda result: -result[0])
    chosen = [result for result in ratios if result[0] > 0][:_BLENDED]
    if len(chosen) > 1:
        yield _blend([result[1] for result in chosen], np.stack([result[2] for result in chosen], axis=1), labels, even)


def _atoms(view: Look, column: Array, labels: Labels, even: Labels) -> Iterator[tuple[Score, Floats]]:
    """Every value that came more than once, if there are any that bins do not hold apart already."""
    values = exact_values(column)
    atoms = Atoms.of(view, values, labels)
    if not atoms.values.size:
        return
    halves = [Atoms.of(view, values[half], labels[half]) for half in (even, ~even)]
    held_out = np.where(even, halves[1].of_values(values), halves[0].of_values(values))
    yield atoms, unseen(held_out, view)


def unseen(scores: Floats, view: Look) -> Floats:
    """Scores to judge a look by: not those of the runs that its weights were learned from."""
    return np.where(np.arange(scores.size) < view.taught, np.nan, scores) if view.taught else scores


def _rank_difference(column: Array, labels: Labels, usable: Labels) -> float:
    with np.errstate(over="ignore"):  # of two that are as large as floats can be
        middle = np.median(column[usable])
    above = (column > middle) * 1.0 - (column < middle) * 1.0
    return float(above[usable & labels].sum() - above[usable & ~labels].sum())


def _blend(parts: list[Ratio], matrix: Floats, labels: Labels, even: Labels) -> tuple[Blend, Floats]:
    first, second = (_weights(matrix[half], labels[half]) for half in (even, ~even))
    held_out = np.where(even, matrix @ second, matrix @ first)
    return Blend(tuple(parts), (first + second) / 2), held_out


def _weights(matrix: Floats, labels: Labels) -> Floats:
    """Logistic regression with a ridge, by Newton's method."""
    matrix, target = matrix[:_BLEND_ROWS], labels[:_BLEND_ROWS].astype(np.float64)
    weights = np.full(matrix.shape[1], 1.0 / matrix.shape[1])
    for _ in range(8):
        chance = 1 / (1 + np.exp(-np.clip(matrix @ weights, -30, 30)))
        slope = matrix.T @ (target - chance) - weights
        bend = (matrix * (chance * (1 - chance))[:, None]).T @ matrix + np.eye(weights.size)
        weights = weights + np.clip(np.linalg.solve(bend, slope), -2, 2)
    return weights


def _places(changes: NDArray[np.intp], start: float, stop: float) -> NDArray[np.intp]:
    """Some of the places between ``start`` and ``stop`` where the sorted score changes, dense at both ends."""
    inside = changes[(changes >= start) & (changes <= stop)]
    if inside.size <= 2 * _CUTS:
        return inside
    even = np.linspace(0, inside.size - 1, _CUTS)
    dense = np.geomspace(1, inside.size, _CUTS // 2) - 1
    return inside[np.unique(np.concatenate([even, dense, inside.size - 1 - dense]).astype(np.intp))]


Ranking = tuple[Floats, NDArray[np.intp], NDArray[np.intp]]


def _sorted(scores: Floats, labels: Labels) -> Ranking:
    """Sorted scores, the neighbour's runs before each place, and the places where the score changes (and both ends)."""
    usable = ~np.isnan(scores)
    order = np.argsort(scores[usable], kind="stable")
    ranked = scores[usable][order]
    before = np.concatenate([[0], np.cumsum(labels[usable][order])])
    changes = np.concatenate([[0], np.flatnonzero(ranked[1:] > ranked[:-1]) + 1, [ranked.size]])
    return ranked, before, changes.astype(np.intp)


def _cuts(scores: Floats, labels: Labels, goals: list[Goal], mode: str) -> list[tuple[float, float, float]]:
    """For each goal its value and the two cuts that reach it."""
    ranking = _sorted(scores, labels)
    if mode == "gaussian":
        return [_one_cut(ranking, labels, goal.failure) for goal in goals]
    return [_two_cuts(ranking, labels, goal) for goal in goals]


def _two_cuts(ranking: Ranking, labels: Labels, goal: Goal) -> tuple[float, float, float]:
    """Guess x before one place of the sorted scores and the neighbour from another on: the best two places."""
    ranked, before, changes = ranking
    size, total = ranked.size, before[-1]
    firsts = lasts = _places(changes, 0, size)
    best = -math.inf, 0, size
    for _ in range(_ZOOMS):
        i, j = firsts[:, None], lasts[None, :]
        right = (i - before[i]) + (total - before[j])
        wrong = before[i] + (size - j) - (total - before[j])
        sides = (i > 0).astype(int) + (j < size)
        value = np.where((i <= j) & (sides > 0), goal(right, wrong, labels.size, sides), -np.inf)
        row, column = divmod(int(np.argmax(value)), lasts.size)
        if value[row, column] > best[0]:
            best = float(value[row, column]), int(firsts[row]), int(lasts[column])
        if changes.size <= 2 * _CUTS:
            break
        firsts, lasts = _around(changes, firsts, best[1]), _around(changes, lasts, best[2])
    _, i_best, j_best = best
    low = float(ranked[i_best - 1]) if i_best > 0 else -math.inf
    high = float(ranked[j_best]) if j_best < size else math.inf
    return best[0], low, high


def _around(changes: NDArray[np.intp], tried: NDArray[np.intp], best: int) -> NDArray[np.intp]:
    below, above = tried[tried < best], tried[tried > best]
    start, stop = below[-1] if below.size else best, above[0] if above.size else best
    return np.unique(np.append(_places(changes, start, stop), best))


def _one_cut(ranking: Ranking, labels: Labels, failure: float) -> tuple[float, float, float]:
    """Guess the neighbour from one place on and x before it."""
    ranked, before, changes = ranking
    total, size = int(before[-1]), ranked.size
    places = changes[(changes > 0) & (changes < size)]
    if not places.size:
        return -math.inf, -math.inf, math.inf
    hits, alarms = total - before[places], (size - places) - (total - before[places])
    value = wilson_mu(hits, max(1, labels.sum()), alarms, max(1, (~labels).sum()), failure)
    best = int(np.argmax(value))
    return float(value[best]), float(ranked[places[best] - 1]), float(ranked[places[best]])
