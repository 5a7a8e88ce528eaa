"""Learning the region of outputs that best distinguishes two data sets.

For every view of the outputs (:mod:`dither.audit.blackbox.views`) several scores are learned, of which large ones favor
the neighbor and small ones favor x: the value itself; the
log-likelihood ratio over atoms and quantile bins; the ratio of every exact value observed more than once, however
rare; and a weighted sum of the best ratios. Each score is judged on the half of the sample that it was not learned on.
Mistakes made here do not affect validity, since every statement rests on fresh runs.

Two regions are learned: the one with the largest confidence bound on a sample of this size, and the one with the
largest bound expected on the fresh runs to come, which may be a rare event.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.confidence import approximate_epsilon, approximate_mu
from dither.audit.blackbox.views import Array, Labels, Outputs, OutputView, View, collect_outputs, label_hash, views
from dither.audit.outputs.canonical import ContentEquality

Floats = NDArray[np.float64]

_PRIOR = 1.0
_MAX_BINS = 128
_MAX_LABELS = 512
_OTHER = "…"
_MAX_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Bins(ContentEquality):
    """Bins of a column: atoms and quantile bins for numbers, one bin per label for everything else."""

    edges: Floats
    labels: tuple[str, ...] = ()
    shared: bool = True
    """Whether some bin may contain several distinct observed values."""

    @classmethod
    def of(cls, column: Array) -> Bins:
        """Learn bins of roughly equal counts from a column; a frequent value gets a bin of its own."""
        if column.dtype == object:
            frequencies = Counter(map(str, column))
            names = sorted(frequencies, key=lambda name: (-frequencies[name], name))[:_MAX_LABELS]
            return cls(np.empty(0), tuple(names), len(frequencies) > _MAX_LABELS)
        numbers = column[~np.isnan(column)]
        count = min(_MAX_BINS, max(4, int(numbers.size**0.4)))
        values, counts = np.unique(numbers, return_counts=True)
        common = counts > (0 if values.size <= count else max(5.0, numbers.size / count / 3))
        atoms, rest = values[common], np.repeat(values[~common], counts[~common])
        share = max(1, round(count * rest.size / max(1, numbers.size)))
        indices = (np.arange(1, share) * rest.size) // share
        edges = np.unique(np.concatenate([atoms, np.nextafter(atoms, np.inf), rest[indices]]))
        return cls(edges, shared=bool(rest.size))

    @property
    def count(self) -> int:
        """Return the number of bins."""
        return (len(self.labels) if self.labels else self.edges.size) + 1

    def __call__(self, column: Array) -> NDArray[np.intp]:
        """Return the bin of each value."""
        if self.labels:
            indices = {label: index for index, label in enumerate(self.labels)}
            return np.array([indices.get(str(value), len(indices)) for value in column], dtype=np.intp)
        if column.dtype == object:
            return np.full(column.size, self.edges.size, dtype=np.intp)
        return np.searchsorted(self.edges, column, side="right")

    def name(self, index: int) -> str:
        """Return a description of a bin for reports."""
        if self.labels:
            return _printable(self.labels[index]) if index < len(self.labels) else _OTHER
        low = -math.inf if index == 0 else float(self.edges[index - 1])
        high = math.inf if index == self.edges.size else float(self.edges[index])
        return f"{low:.6g}" if math.nextafter(low, math.inf) == high else f"[{low:.6g}, {high:.6g})"


def _printable(label: str) -> str:
    """Return a label shortened and escaped for display on a terminal."""
    short = label if len(label) <= _MAX_SHOWN else f"{label[:_MAX_SHOWN]}…"
    return short if short.isprintable() else ascii(short)


@dataclass(frozen=True)
class ValueScore:
    """Score outputs by the value of the view itself; ``sign`` is -1 if small values favor the neighbor."""

    view: OutputView
    sign: float

    def __call__(self, outputs: Outputs) -> Floats:
        """Return the score of each run; NaN where the value is NaN."""
        return finite(self.sign * self.view(outputs))

    def where(self, low: float, high: float) -> tuple[str, str]:
        """Describe the outputs with scores of at least ``high``, and those with scores of at most ``low``."""
        more, less = (">=", "<=") if self.sign > 0 else ("<=", ">=")
        return f"{self.view.name} {more} {self.sign * high:.6g}", f"{self.view.name} {less} {self.sign * low:.6g}"


@dataclass(frozen=True, eq=False)
class LikelihoodRatioScore(ContentEquality):
    """Score outputs by the log-likelihood ratio of the bin that the value of the view falls into."""

    view: OutputView
    bins: Bins
    ratios: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        """Return the score of each run."""
        return np.asarray(self.ratios[self.bins(self.view(outputs))], dtype=np.float64)

    def where(self, low: float, high: float) -> tuple[str, str]:
        """Describe the outputs with scores of at least ``high``, and those with scores of at most ``low``."""
        return self._describe(self.ratios >= high), self._describe(self.ratios <= low)

    def _describe(self, chosen: Labels) -> str:
        """Return a text that lists the first four of the bins selected by a mask."""
        names = [self.bins.name(index) for index in np.flatnonzero(chosen).tolist()]
        listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        return f"{self.view.name} in {{{listed}}}"


@dataclass(frozen=True, eq=False)
class AtomScore(ContentEquality):
    """Score outputs by the log-likelihood ratio of the exact value, learned where it occurs more than once, 0
    elsewhere."""

    view: OutputView
    values: Array
    ratios: Floats

    @classmethod
    def of(cls, view: OutputView, column: Array, labels: Labels) -> AtomScore:
        """Learn the log-likelihood ratio of every value of ``column`` that occurs more than once.

        A value that occurs once says nothing about the other runs.
        """
        values, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
        repeated = counts > 1
        neighbor_counts = np.bincount(codes[labels], minlength=values.size)
        ratios = log_ratios(neighbor_counts, counts - neighbor_counts)
        return cls(view, values[repeated], ratios[repeated])

    def __call__(self, outputs: Outputs) -> Floats:
        """Return the score of each run."""
        return self.of_values(exact_values(self.view(outputs)))

    def of_values(self, column: Array) -> Floats:
        """Return the score of each value, 0 for values that were not learned."""
        if not self.values.size:
            return np.zeros(column.size)
        indices = np.minimum(np.searchsorted(self.values, column), self.values.size - 1)
        return np.where(self.values[indices] == column, self.ratios[indices], 0.0)

    def where(self, low: float, high: float) -> tuple[str, str]:
        """Describe the outputs with scores of at least ``high``, and those with scores of at most ``low``."""
        return self._describe(self.ratios >= high), self._describe(self.ratios <= low)

    def _describe(self, chosen: Labels) -> str:
        """Return a text that lists the first four of the exact values selected by a mask."""
        values = self.values[chosen]
        listed = ", ".join(f"{value:.6g}" for value in values[:4].tolist())
        return f"{self.view.name} is exactly one of {{{listed}{f' and {values.size - 4} more' * (values.size > 4)}}}"


def exact_values(column: Array) -> Array:
    """Return the numbers of a column, or hashes of its labels, so that equal values map to equal floats."""
    if column.dtype != object:
        with np.errstate(invalid="ignore"):
            return column.astype(np.float64) if column.dtype.kind != "f" else column
    return np.fromiter((label_hash(label) >> 11 for label in column), np.float64, column.size)


@dataclass(frozen=True, eq=False)
class BlendedScore(ContentEquality):
    """Score outputs by a weighted sum of log-likelihood ratios of several views."""

    parts: tuple[LikelihoodRatioScore, ...]
    weights: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        """Return the score of each run."""
        total = np.zeros(outputs.size)
        for part, weight in zip(self.parts, self.weights.tolist(), strict=True):
            total += weight * part(outputs)
        return total

    def where(self, low: float, high: float) -> tuple[str, str]:
        """Describe the outputs with scores of at least ``high``, and those with scores of at most ``low``."""
        names = ", ".join(part.view.name for part in self.parts[:4])
        names += f" and {len(self.parts) - 4} more" if len(self.parts) > 4 else ""
        return f"score of {names} >= {high:.3g}", f"score of {names} <= {low:.3g}"


Score = ValueScore | LikelihoodRatioScore | AtomScore | BlendedScore


def finite(scores: Array) -> Floats:
    """Return scores clipped to finite floats, since an infinite threshold stands for a guess never made."""
    largest = np.finfo(np.float64).max
    return np.clip(scores.astype(np.float64), -largest, largest)


def log_ratios(neighbor: Array, x: Array) -> Floats:
    """Return the log-likelihood ratios of the bins from their counts, shrunk towards 0 where counts are small."""
    total, other = neighbor.sum() + _PRIOR, x.sum() + _PRIOR
    return np.asarray(np.log((neighbor + _PRIOR) / total * other / (x + _PRIOR)), dtype=np.float64)


_CUTS = 16
_REFINEMENTS = 3
_MAX_BLENDED = 12
_BLEND_RUNS = 40_000
_SELECTION_FACTOR = 1e-3  # the best of a thousand cuts looks better than it is
_RARE = 0.1


@dataclass(frozen=True)
class Region:
    """Guess the neighbor if the score is at least ``high``, x if it is at most ``low``, and abstain otherwise."""

    score: Score
    low: float
    high: float

    def __call__(self, output: Any) -> str | None:
        """Return the guess for one output: "x", "x_neighbor", or None if the rule abstains."""
        guess = int(self.guesses(collect_outputs([output]))[0])
        return {1: "x_neighbor", -1: "x", 0: None}[guess]

    def guesses(self, outputs: Outputs, scores: Floats | None = None) -> NDArray[np.int8]:
        """Return a guess for each run: 1 for the neighbor, -1 for x, 0 for abstention."""
        result = self.score(outputs) if scores is None else scores
        with np.errstate(invalid="ignore"):
            return (result >= self.high).astype(np.int8) - (result <= self.low).astype(np.int8)

    @property
    def sides(self) -> int:
        """Return how many of the two guesses, x and its neighbor, the rule can make: 0, 1 or 2."""
        return int(self.high < math.inf) + int(self.low > -math.inf)

    @property
    def description(self) -> str:
        """Return a description for reports."""
        for_neighbor, for_x = self.score.where(self.low, self.high)
        parts = [f"x_neighbor where {for_neighbor}"] * (self.high < math.inf)
        parts += [f"x where {for_x}"] * (self.low > -math.inf)
        return "; ".join(parts) or "nowhere: no difference was seen"


@dataclass(frozen=True)
class Objective:
    """Approximate the bound on epsilon that ``fresh_ratio`` times as many runs would give: the score by which regions
    are compared.

    The observed counts are first made worse by ``pessimism`` standard deviations.
    """

    failure: float
    delta: float
    fresh_ratio: float = 1.0
    pessimism: float = 0.0

    def __call__(self, right: Any, wrong: Any, trials: int, sides: Any) -> Floats:
        """Return the approximate bound for arrays of counts of right and wrong guesses."""
        right, wrong = right - self.pessimism * np.sqrt(right), wrong + self.pessimism * np.sqrt(wrong)
        return approximate_epsilon(
            self.fresh_ratio * right,
            self.fresh_ratio * wrong,
            self.fresh_ratio * trials,
            self.failure,
            self.delta,
            sides,
        )


def learn_regions(
    outputs: Outputs, labels: Labels, failure: float, delta: float = 0.0, mode: str = "region", fresh_ratio: float = 1.0
) -> list[Region]:
    """Learn one or two regions to test on fresh runs: the best in general, and the best for rare events.

    For every candidate score, the cuts with the largest lower bound are searched on held-out scores. The second
    objective, which the mode "gaussian" does not have, allows rare events for which only fresh runs give enough
    evidence.

    Parameters
    ----------
    labels
        True for the runs on the neighbor.
    failure
        The probability with which a bound may fail. Only a thousandth of it is used here, since the best of many cuts
        looks better than it is.
    delta, mode
        As for :func:`dither.audit.measure`.
    fresh_ratio
        The number of fresh runs to come, relative to this sample.
    """
    objectives: list[Objective] = [Objective(_SELECTION_FACTOR * failure, delta)]
    if mode != "gaussian":
        objectives.append(Objective(_RARE * failure, delta, max(1.0, fresh_ratio), 1.0))
    no_guess = Region(ValueScore(View(""), 1.0), -math.inf, math.inf)
    best = [(-math.inf, no_guess, np.empty(0))] * len(objectives)
    for score, held_out in _candidates(outputs, labels):
        for index, (value, low, high) in enumerate(_best_cuts(held_out, labels, objectives, mode)):
            if value > best[index][0] + 1e-9:
                best[index] = value, Region(score, low, high), held_out
    regions: list[Region] = []
    for _, region, held_out_scores in best:
        if not isinstance(region.score, ValueScore):
            region = _transferred(region, held_out_scores, region.score(outputs))
        rule = region.low, region.high
        if not any(region.score is other.score and rule == (other.low, other.high) for other in regions):
            regions.append(region)
    return regions


def _transferred(region: Region, held_out_scores: Floats, scores: Floats) -> Region:
    """Set thresholds for the score learned on all runs so that the region contains the fraction of runs it has under
    held-out scores."""
    ranked = np.sort(scores)
    factor = ranked.size / max(1, int((~np.isnan(held_out_scores)).sum()))
    upper, lower = (
        round(factor * np.count_nonzero(chosen))
        for chosen in (held_out_scores >= region.high, held_out_scores <= region.low)
    )
    high = float(ranked[ranked.size - upper]) if upper else math.inf
    low = float(ranked[lower - 1]) if lower else -math.inf
    if low >= high:
        below = ranked[ranked < high]
        low = float(below[-1]) if below.size else -math.inf
    return Region(region.score, low, high)


def _candidates(outputs: Outputs, labels: Labels) -> Iterator[tuple[Score, Floats]]:
    """Yield candidate scores, each with the held-out score of every run (learned on the other half of the sample).

    For each view of the outputs these are: the value itself, with the sign that makes large values speak for the
    neighbor; the score of exact values; and the log-likelihood ratios of bins. At the end comes a blend of the ratios
    that separate the two data sets best.
    """
    even = np.arange(labels.size) % 2 == 0
    ratios: list[tuple[float, LikelihoodRatioScore, Floats]] = []
    for view in views(outputs, labels):
        column = view(outputs)
        if column.dtype != object:
            usable = np.isfinite(column)
            if not usable.any():
                continue
            if view.ordered and usable.mean() > 0.5 and column[usable].min() < column[usable].max():
                difference = _rank_difference(column, labels, usable)
                sign = 1.0 if difference >= 0 else -1.0
                yield ValueScore(view, sign), held_out_only(finite(column * sign), view)
        if view.only_atoms:
            yield from _atoms(view, column, labels, even)
            continue
        bins = Bins.of(column)
        indices = bins(column)
        masks = (even & labels, even & ~labels, ~even & labels, ~even & ~labels)
        even_neighbor, even_x, odd_neighbor, odd_x = (np.bincount(indices[m], minlength=bins.count) for m in masks)
        neighbor_counts, x_counts = even_neighbor + odd_neighbor, even_x + odd_x
        if np.count_nonzero(neighbor_counts + x_counts) < 2:
            continue
        from_even, from_odd = log_ratios(even_neighbor, even_x), log_ratios(odd_neighbor, odd_x)
        ratio = LikelihoodRatioScore(view, bins, log_ratios(neighbor_counts, x_counts))
        held_out_scores = held_out_only(np.where(even, from_odd[indices], from_even[indices]), view)
        filled = np.nan_to_num(held_out_scores)
        ratios.append((float(np.where(labels, filled, -filled).mean()), ratio, filled))
        yield ratio, held_out_scores
        if bins.shared:
            yield from _atoms(view, column, labels, even)
    ratios.sort(key=lambda item: -item[0])
    best = [(ratio, scores) for gain, ratio, scores in ratios if gain > 0][:_MAX_BLENDED]
    if len(best) > 1:
        yield _blend([ratio for ratio, _ in best], np.stack([scores for _, scores in best], axis=1), labels, even)


def _atoms(view: OutputView, column: Array, labels: Labels, even: Labels) -> Iterator[tuple[Score, Floats]]:
    """Yield the score of exact values with its held-out scores, if some value was observed more than once.

    ``column`` is what ``view`` extracts from the outputs, and ``even`` marks one half of the runs: each half is scored
    by the ratios that were learned on the other.
    """
    values = exact_values(column)
    atoms = AtomScore.of(view, values, labels)
    if not atoms.values.size:
        return
    halves = [AtomScore.of(view, values[half], labels[half]) for half in (even, ~even)]
    held_out = np.where(even, halves[1].of_values(values), halves[0].of_values(values))
    yield atoms, held_out_only(held_out, view)


def held_out_only(scores: Floats, view: OutputView) -> Floats:
    """Return the scores, with NaN for the runs from which the weights of the view were learned.

    Those are the first ``training_runs``; a score of them would be judged on the runs that it was fitted to.
    """
    return np.where(np.arange(scores.size) < view.training_runs, np.nan, scores) if view.training_runs else scores


def _rank_difference(column: Array, labels: Labels, usable: Labels) -> float:
    """Return a median test statistic: positive if large values are more frequent on the neighbor than on x.

    Each ``usable`` (finite) value of ``column`` counts as 1 above the median, -1 below it and 0 at it.
    """
    with np.errstate(over="ignore"):  # the mean of two of the largest floats
        middle = np.median(column[usable])
    above = (column > middle) * 1.0 - (column < middle) * 1.0
    return float(above[usable & labels].sum() - above[usable & ~labels].sum())


def _blend(
    parts: list[LikelihoodRatioScore], matrix: Floats, labels: Labels, even: Labels
) -> tuple[BlendedScore, Floats]:
    """Learn the weights of a blend on both halves of the runs, and score each half with the weights of the other."""
    first, second = (_weights(matrix[half], labels[half]) for half in (even, ~even))
    held_out = np.where(even, matrix @ second, matrix @ first)
    return BlendedScore(tuple(parts), (first + second) / 2), held_out


def _weights(matrix: Floats, labels: Labels) -> Floats:
    """Fit a ridge-penalized logistic regression of the labels on the scores, by eight steps of Newton's method.

    ``matrix`` has a row for each run and a column for each score. The exponent is limited to 30, where the probability
    is 0 or 1 to the precision of floats, and a step to 2 in each weight, so that separable data do not diverge.
    """
    matrix, target = matrix[:_BLEND_RUNS], labels[:_BLEND_RUNS].astype(np.float64)
    weights = np.full(matrix.shape[1], 1.0 / matrix.shape[1])
    for _ in range(8):
        probability = 1 / (1 + np.exp(-np.clip(matrix @ weights, -30, 30)))
        gradient = matrix.T @ (target - probability) - weights
        hessian = (matrix * (probability * (1 - probability))[:, None]).T @ matrix + np.eye(weights.size)
        weights = weights + np.clip(np.linalg.solve(hessian, gradient), -2, 2)
    return weights


def _candidate_cuts(changes: NDArray[np.intp], start: float, stop: float) -> NDArray[np.intp]:
    """Return up to about 32 of the indices between ``start`` and ``stop`` at which the sorted score changes, denser at
    both ends."""
    inside = changes[(changes >= start) & (changes <= stop)]
    if inside.size <= 2 * _CUTS:
        return inside
    even = np.linspace(0, inside.size - 1, _CUTS)
    dense = np.geomspace(1, inside.size, _CUTS // 2) - 1
    return inside[np.unique(np.concatenate([even, dense, inside.size - 1 - dense]).astype(np.intp))]


class Ranking(NamedTuple):
    """The scores of a sample in increasing order."""

    scores: Floats
    before: NDArray[np.intp]
    """The number of runs on the neighbor before each index, with one more entry for the end."""
    changes: NDArray[np.intp]
    """The indices at which the score changes, with 0 and the end: where a cut can be."""


class Cut(NamedTuple):
    """A rule that guesses x for scores up to ``low`` and the neighbor from ``high`` on, and its ``value``.

    The value is that of an objective; a threshold is infinite where a data set is never guessed.
    """

    value: float
    low: float
    high: float


def _sorted(scores: Floats, labels: Labels) -> Ranking:
    """Return the ranking of the scores that are not NaN; ``labels`` are True for runs on the neighbor."""
    usable = ~np.isnan(scores)
    order = np.argsort(scores[usable], kind="stable")
    ranked = scores[usable][order]
    before = np.concatenate([[0], np.cumsum(labels[usable][order])])
    changes = np.concatenate([[0], np.flatnonzero(ranked[1:] > ranked[:-1]) + 1, [ranked.size]])
    return Ranking(ranked, before, changes.astype(np.intp))


def _best_cuts(scores: Floats, labels: Labels, objectives: list[Objective], mode: str) -> list[Cut]:
    """Return the best rule for each objective.

    ``scores`` are held-out scores of the runs, and ``labels`` are True for runs on the neighbor. In the ``mode``
    "gaussian" one threshold separates the two guesses; otherwise runs between the cuts are not guessed.
    """
    ranking = _sorted(scores, labels)
    if mode == "gaussian":
        return [_best_threshold(ranking, labels, objective.failure) for objective in objectives]
    return [_best_interval(ranking, labels, objective) for objective in objectives]


def _best_interval(ranking: Ranking, labels: Labels, objective: Objective) -> Cut:
    """Return the best rule that guesses x below one cut of the sorted scores and the neighbor above another.

    A coarse grid of pairs of cuts is tried first, then finer ones around the best pair.
    """
    ranked, before, changes = ranking
    size, total = ranked.size, before[-1]
    firsts = lasts = _candidate_cuts(changes, 0, size)
    best = -math.inf, 0, size
    for _ in range(_REFINEMENTS):
        i, j = firsts[:, None], lasts[None, :]
        right = (i - before[i]) + (total - before[j])
        wrong = before[i] + (size - j) - (total - before[j])
        sides = (i > 0).astype(int) + (j < size)
        value = np.where((i <= j) & (sides > 0), objective(right, wrong, labels.size, sides), -np.inf)
        row, column = divmod(int(np.argmax(value)), lasts.size)
        if value[row, column] > best[0]:
            best = float(value[row, column]), int(firsts[row]), int(lasts[column])
        if changes.size <= 2 * _CUTS:
            break
        firsts, lasts = _refined(changes, firsts, best[1]), _refined(changes, lasts, best[2])
    _, i_best, j_best = best
    low = float(ranked[i_best - 1]) if i_best > 0 else -math.inf
    high = float(ranked[j_best]) if j_best < size else math.inf
    return Cut(best[0], low, high)


def _refined(changes: NDArray[np.intp], tried: NDArray[np.intp], best: int) -> NDArray[np.intp]:
    """Return candidate cuts around ``best``: between the next smaller and the next larger cut in ``tried``."""
    below, above = tried[tried < best], tried[tried > best]
    start, stop = below[-1] if below.size else best, above[0] if above.size else best
    return np.unique(np.append(_candidate_cuts(changes, start, stop), best))


def _best_threshold(ranking: Ranking, labels: Labels, failure: float) -> Cut:
    """Return the best rule that guesses the neighbor above one cut and x below it, judged by its bound on mu.

    The value is that bound, which fails with probability ``failure``, or -infinity if all scores are equal. The
    thresholds are the scores next to the cut.
    """
    ranked, before, changes = ranking
    total, size = int(before[-1]), ranked.size
    indices = changes[(changes > 0) & (changes < size)]
    if not indices.size:
        return Cut(-math.inf, -math.inf, math.inf)
    hits, false_alarms = total - before[indices], (size - indices) - (total - before[indices])
    value = approximate_mu(hits, max(1, labels.sum()), false_alarms, max(1, (~labels).sum()), failure)
    best = int(np.argmax(value))
    return Cut(float(value[best]), float(ranked[indices[best] - 1]), float(ranked[indices[best]]))
