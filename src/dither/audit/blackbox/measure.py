"""Measuring the privacy loss of any code from the outside: a lower bound on its true epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.audit.blackbox import confidence as bounds
from dither.audit.blackbox import gaussian_dp
from dither.audit.blackbox.features import Outputs
from dither.audit.blackbox.region import Region, learn
from dither.audit.blackbox.sampling import Runs, Sampler, drawing, progress_bar
from dither.errors import InvalidArgument, WrongType, message
from dither.guarantees import ApproxDP, Guarantee, PureDP

_FIRST_LOOK = 250
_LAST_SHARE = 0.8
_RARE_SHARE = 0.1
_POINTS = 64
_PLOTTED = 200_000
_MODES = ("region", "gaussian")


@dataclass(frozen=True)
class Measurement:
    """What was found: with probability ``confidence`` the true epsilon at ``delta`` is at least ``epsilon``.

    ``estimate`` is the same without a margin; ``region`` says where which data set was guessed; ``alpha`` (at most)
    and ``power`` (at least) are those of the test "it was the neighbour" (or "it was x", if the region has no other
    part), together with the same confidence; ``points`` are pairs (alpha, power) of tests along the learned score as
    they were seen, to be plotted; ``trials`` is the number of runs for each data set, on average. ``mu`` is the
    bound on the parameter of Gaussian DP in the mode "gaussian", else None.

    >>> import dither as dp
    >>> found = measure(dp.Laplace(sensitivity=1, epsilon=2), 0.0, 1.0, claim=0.5)
    >>> found.refuted, found.trials < 100_000
    (True, True)
    """

    epsilon: float
    estimate: float
    confidence: float
    delta: float
    alpha: float
    power: float
    region: Region = field(repr=False)
    trials: int
    claim: float | None
    mode: str = "region"
    mu: float | None = None
    points: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    note: str = ""

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, with that confidence."""
        return self.claim is not None and self.epsilon > self.claim

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        kept = [item.name for item in fields(self) if item.name not in ("region", "points")]
        result = {name: getattr(self, name) for name in kept}
        return {
            **result,
            "region": self.region.words,
            "refuted": self.refuted,
            "points": [list(p) for p in self.points],
        }

    def __str__(self) -> str:
        at = f" at delta = {self.delta:g}" if self.delta else ""
        family = f", if it is Gaussian DP (mu >= {self.mu:.4g})" if self.mu is not None else ""
        lines = [
            f"epsilon >= {self.epsilon:.4g}{at} with {100 * self.confidence:.12g} % confidence{family}; "
            f"estimate {self.estimate:.4g}, {self.trials:,} runs a side"
        ]
        if self.claim is not None:
            lines.append(f"the claim epsilon = {self.claim:g} is {'REFUTED' if self.refuted else 'not refuted'}")
        lines.append(f"guessed {self.region.words}")
        return "\n".join([*lines, self.note] if self.note else lines)


def measure(
    fn: Callable[..., Any],
    x: Any,
    x_neighbor: Any,
    *,
    trials: int = 100_000,
    confidence: float = 0.99,
    delta: float = 0.0,
    claim: float | Guarantee | None = None,
    mode: str = "region",
    batch: bool = False,
    processes: int | None = None,
    progress: bool = False,
    features: Callable[[Any], Any] | None = None,
) -> Measurement:
    """A lower bound on the epsilon of ``fn`` for two data sets, from running it.

    *Statement.* Suppose the runs of ``fn`` are independent, and on x and x_neighbor it satisfies (e, delta)-DP. Then
    the measured epsilon is above e with probability at most ``1 - confidence``, whatever ``fn`` returns and
    whatever was learned about it; so a claim is refuted wrongly at most that often.

    *Why.* A first part of the rounds teaches one or two regions (:mod:`dither.audit.blackbox.region`). They are then
    fixed, the other rounds are independent of them, and :func:`dither.audit.blackbox.confidence.loss` proves a bound
    for each; of two, the first has nine tenths of the failure probability and the second, which may be a rare event,
    one tenth. With a claim there are several looks, at 250, 500, 1,000, ... runs a side and at the last one. Each look
    by itself is such a held-out bound, on the first part and the rest of what was drawn so far, with a failure
    probability of its own: four fifths of ``1 - confidence`` for the last and an equal share of the rest for each of
    the others. The looks are not independent and need not be: by the union bound all of them hold together with
    probability ``confidence``, so their maximum does, and so does whichever it was that stopped the sampling.

    It is a statement about this pair of data sets, and from below: a mechanism that is not refuted may still be
    broken elsewhere. See :func:`dither.audit.search` for pairs and :func:`dither.audit.certify` for proofs.

    Parameters
    ----------
    fn
        A function of the data that returns anything: numbers, vectors, labels, dicts, sets, tables, None. An error it
        raises counts as an output. A mechanism stands for its ``release``.
    x, x_neighbor
        Two neighbouring data sets. They are handed to ``fn`` as they are.
    trials
        The most runs for each data set. A coin chooses for every run, so the numbers differ a little.
    confidence
        The probability that the statement is true.
    delta
        The delta at which epsilon is measured.
    claim
        An epsilon to refute, or a PureDP or ApproxDP (which brings its delta): sampling stops once it is refuted.
    mode
        "region"; or "gaussian", which assumes that ``fn`` is mu-Gaussian-DP for some mu and gives the epsilon of the
        least such mu at ``delta``: far tighter for noisy gradient descent, and only a statement about that family.
    batch
        ``fn(x, size)`` returns ``size`` independent outputs, as a list or as an array with one row for each.
    processes
        How many processes to run ``fn`` in. They are forks, and noise from dither is safe there; noise from a NumPy
        generator is copied with them, which is refused where it is seen. By default one.
    progress
        Show a bar on standard error.
    features
        A function of an output (with ``batch`` and an array, of the array) whose result is looked at instead of it.

    Examples
    --------
    >>> import dither as dp
    >>> found = measure(dp.Laplace(sensitivity=1, epsilon=1), 0.0, 1.0, trials=200_000)
    >>> 0.9 < found.epsilon < 1.05
    True
    >>> mean = lambda x, size: [dp.stats.mean(x, bounds=(0, 1), epsilon=1) for _ in range(size)]
    >>> measure(mean, [0, 0, 1], [0, 1, 1], batch=True, trials=500, claim=dp.PureDP(1), confidence=1 - 1e-9).refuted
    False
    """
    count = arguments.whole(trials, "trials", 20, 1 << 32)
    level = arguments.confidence(confidence)
    workers = 1 if processes is None else arguments.whole(processes, "processes")
    claimed, allowed = _claim(claim, delta)
    if mode not in _MODES:
        raise InvalidArgument(message("mode", "'region' or 'gaussian'", repr(mode), "pass mode='region'"))
    if mode == "gaussian" and not allowed:
        raise InvalidArgument(message("delta", "above 0 in the mode 'gaussian'", 0, "pass delta=1e-6, for example"))
    draw = drawing(fn, batch)
    looks = _looks(count, claimed is not None)
    spent = _shares(1 - level, len(looks))
    runs: Runs | None = None
    best: Measurement | None = None
    with (
        progress_bar(progress, 2 * count, "measuring") as bar,
        Sampler(draw, x, x_neighbor, features, workers, bar) as sampler,
    ):
        for stop, failure in zip(looks, spent, strict=True):
            more = sampler.rounds(2 * stop - (0 if runs is None else runs.labels.size))
            runs = more if runs is None else runs + more
            result = _look(runs, stop, failure, level, allowed, claimed, mode)
            # a later look says more of the region; an earlier one may have had the larger bound
            if best is None or result.epsilon >= best.epsilon:
                best = result
            if best.refuted:
                break
    assert best is not None
    assert runs is not None
    return replace(best, trials=runs.labels.size // 2)


def _claim(claim: float | Guarantee | None, delta: float) -> tuple[float | None, float]:
    """The claimed epsilon, and the delta that goes with it."""
    allowed = 0.0 if delta == 0 else float(arguments.delta(delta))
    if isinstance(claim, (PureDP, ApproxDP)):
        own = claim.delta if isinstance(claim, ApproxDP) else 0.0
        if delta and own != allowed:
            raise InvalidArgument(message("delta", f"that of the claim, {own:g}", f"{allowed:g}", "leave it out"))
        return float(claim.epsilon), float(own)
    if isinstance(claim, Guarantee):
        raise WrongType(message("claim", "a PureDP or ApproxDP", type(claim).__name__, "pass claim.to_approx(1e-6)"))
    return None if claim is None else float(arguments.epsilon_or_zero(claim, "claim")), allowed


def _looks(trials: int, early: bool) -> list[int]:
    """After how many runs a side to look: doubling, if it is worth stopping early, and at the end."""
    result, stop = [], _FIRST_LOOK
    while early and stop <= 0.7 * trials:
        result.append(stop)
        stop *= 2
    return [*result, trials]


def _shares(failure: float, looks: int) -> list[float]:
    """The failure probability of each look; they add up to no more than ``failure``."""
    if looks == 1:
        return [failure]
    return [failure * (1 - _LAST_SHARE) * (1 - 1e-12) / (looks - 1)] * (looks - 1) + [failure * _LAST_SHARE]


def _first_part(runs: int) -> float:
    """The part of the runs to learn from: half of a few, a tenth of many."""
    return max(0.1, 0.5 * min(1.0, math.sqrt(math.sqrt(1000 / runs))))


def _look(
    runs: Runs, trials: int, failure: float, level: float, delta: float, claim: float | None, mode: str
) -> Measurement:
    """Learn regions on the first part, and state the most that one of them shows on the rest: each has its own share of
    the failure probability, fixed before the rest is looked at."""
    taught, fresh = runs.split(round(runs.labels.size * _first_part(trials)))
    more = fresh.labels.size / max(1, taught.labels.size)
    regions = learn(taught.outputs, taught.labels, failure, delta, mode, more)
    spent = [failure] if len(regions) == 1 else [failure * (1 - _RARE_SHARE), failure * _RARE_SHARE * (1 - 1e-12)]
    stated = [
        _stated(region, fresh, trials, share, level, delta, claim, mode)
        for region, share in zip(regions, spent, strict=True)
    ]
    return replace(max(stated, key=lambda item: item.epsilon), note=_note(runs.outputs))


def _stated(
    region: Region,
    fresh: Runs,
    trials: int,
    failure: float,
    level: float,
    delta: float,
    claim: float | None,
    mode: str,
) -> Measurement:
    """What fresh runs show by a region that was fixed before."""
    scores = region.score(fresh.outputs)
    guesses = region.guesses(fresh.outputs, scores)
    labels, total = fresh.labels, fresh.labels.size
    neighbors, others = int(labels.sum()), int(total - labels.sum())
    first = region.high < math.inf  # the region's test is for the neighbour, or else for x
    inside = guesses == (1 if first else -1)
    hits, alarms = int((inside & (labels == first)).sum()), int((inside & (labels != first)).sum())
    sides = (neighbors, others) if first else (others, neighbors)
    mu = None
    if mode == "gaussian":
        mu = gaussian_dp.gaussian_mu(hits, sides[0], alarms, sides[1], failure)
        epsilon = gaussian_dp.epsilon_of(mu, delta)
        estimate = gaussian_dp.epsilon_of(gaussian_dp.estimated_mu(hits, sides[0], alarms, sides[1]), delta)
    else:
        right = int(((guesses != 0) & ((guesses > 0) == labels)).sum())
        wrong = int(np.count_nonzero(guesses)) - right
        epsilon = bounds.loss(right, wrong, total, failure, delta, max(1, region.sides))
        estimate = bounds.estimated_loss(right, wrong, total, delta, region.sides) if right + wrong else 0.0
    return Measurement(
        epsilon=epsilon,
        estimate=estimate,
        confidence=level,
        delta=delta,
        alpha=bounds.upper(alarms, sides[1], failure / 2),
        power=bounds.lower(hits, sides[0], failure / 2),
        region=region,
        trials=trials,
        claim=claim,
        mode=mode,
        mu=mu,
        points=_points(scores, labels),
    )


def _points(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """(alpha, power) of the tests "the score is at least t", as seen."""
    scores, labels = scores[:_PLOTTED], labels[:_PLOTTED]
    usable = ~np.isnan(scores)
    ours, theirs = np.sort(scores[usable & ~labels]), np.sort(scores[usable & labels])
    if not ours.size or not theirs.size:
        return ()
    cuts = np.unique(np.quantile(np.concatenate([ours, theirs]), np.linspace(0, 1, _POINTS), method="nearest"))
    alpha = 1 - np.searchsorted(ours, cuts) / max(1, int((~labels).sum()))
    power = 1 - np.searchsorted(theirs, cuts) / max(1, int(labels.sum()))
    return tuple(sorted({(0.0, 0.0), *zip(alpha.tolist(), power.tolist(), strict=True), (1.0, 1.0)}))


def _note(outputs: Outputs) -> str:
    """A word of warning if there was nothing to measure."""
    kinds = {outputs.fixed[" kind"]} if " kind" in outputs.fixed else set(outputs.columns.get(" kind", ()))
    if len(kinds) == 1 and str(*kinds).startswith("raised"):
        return f"every run {kinds.pop()}: nothing was measured"
    return ""
