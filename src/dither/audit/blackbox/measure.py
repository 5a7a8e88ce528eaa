"""Black-box auditing: a statistical lower bound on the epsilon of any code, from running it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.audit.blackbox import confidence as bounds
from dither.audit.blackbox.region import Region, learn_regions
from dither.audit.blackbox.sampling import Runs, Sampler, progress_bar, run_function
from dither.audit.blackbox.views import Outputs
from dither.errors import InvalidArgument, WrongType
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.present import chart, markup

_FIRST_LOOK = 250
_FINAL_SHARE = 0.8
_RARE_SHARE = 0.1
_POINTS = 64
_MAX_PLOTTED = 200_000
_MODES = ("region", "gaussian")


@dataclass(frozen=True)
class Measurement:
    """A lower bound: with probability ``confidence`` the true epsilon at ``delta`` is at least ``epsilon``.

    ``estimate`` is the point estimate without a margin. ``region`` is the guessing rule. ``alpha`` (an upper bound)
    and ``power`` (a lower bound) are the level and power of the test for the neighbor (for x, if the region never
    guesses the neighbor), jointly at the same confidence. ``points`` are the observed pairs (alpha, power) of
    threshold tests on the learned score, for plotting. ``trials`` is the average number of runs per data set. ``mu``
    is the bound on the parameter of Gaussian DP in the mode "gaussian", else None.

    >>> import dither as dp
    >>> result = measure(dp.Laplace(sensitivity=1, epsilon=2), 0.0, 1.0, claim=0.5)
    >>> result.refuted, result.trials < 100_000
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
    incomparable: tuple[str, ...] = ()
    """What could not be decomposed, each with its place: the measurement says nothing about it."""

    @property
    def refuted(self) -> bool:
        """Return whether the claim is false, at the stated confidence."""
        return self.claim is not None and self.epsilon > self.claim

    def to_dict(self) -> dict[str, Any]:
        """Return the measurement as plain values, for JSON."""
        names = [item.name for item in fields(self) if item.name not in ("region", "points")]
        result = {name: getattr(self, name) for name in names}
        return {
            **result,
            "region": self.region.description,
            "refuted": self.refuted,
            "points": [list(p) for p in self.points],
        }

    def _repr_html_(self) -> str:
        """Return the measurement for a notebook: the bound, and the observed power of the tests at each level."""
        points = sorted(self.points)
        lines = [("observed", [a for a, _ in points], [b for _, b in points])] if points else []
        if self.claim is not None:
            levels = [i / 100 for i in range(101)]
            allowed = [
                min(1.0, math.exp(self.claim) * a + self.delta, 1 - math.exp(-self.claim) * (1 - self.delta - a))
                for a in levels
            ]
            lines.append(("allowed by the claim", levels, allowed))
        power = chart.lines(lines, title="Power of the tests", x_label="level α", y_label="power")
        return markup.block(markup.lines(str(self).splitlines()), markup.picture(power) if lines else "")

    def __str__(self) -> str:
        """Return the bound, the estimate, the verdict on the claim and the guessing rule, a line each."""
        at = f" at delta = {self.delta:g}" if self.delta else ""
        condition = f", if it is Gaussian DP (mu >= {self.mu:.4g})" if self.mu is not None else ""
        lines = [
            f"epsilon >= {self.epsilon:.4g}{at} with {100 * self.confidence:.12g} % confidence{condition}; "
            f"estimate {self.estimate:.4g}, {self.trials:,} runs a side"
        ]
        if self.claim is not None:
            lines.append(f"the claim epsilon = {self.claim:g} is {'REFUTED' if self.refuted else 'not refuted'}")
        lines.append(f"guessed {self.region.description}")
        lines += [f"CANNOT BE COMPARED {part}" for part in self.incomparable]
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
    """Return a lower confidence bound on the epsilon of ``fn`` for two data sets, from running it.

    *Statement.* Suppose the runs of ``fn`` are independent and (e, delta)-DP holds for x and x_neighbor. Then the
    measured epsilon exceeds e with probability at most ``1 - confidence``, whatever ``fn`` returns. A true claim is
    therefore refuted with at most that probability.

    *Proof.* One or two regions are learned on the first part of the rounds (:mod:`dither.audit.blackbox.region`).
    They are then fixed, the remaining rounds are independent of them, and
    :func:`~dither.audit.blackbox.confidence.epsilon_lower_bound` gives a bound for each. With two regions, the first
    receives nine tenths of the failure probability and the second, which may be a rare event, one tenth. With a claim
    there are interim looks after 250, 500, 1,000, ... runs per data set, and a final one. Each look is such a held-out
    bound on all runs so far and has its own failure probability: four fifths of ``1 - confidence`` for the final look,
    and equal shares of the rest for the others. The looks are dependent, but by the union bound all hold together with
    probability ``confidence``; hence so does their maximum, and so does the look at which sampling stops.

    This is a lower bound for one pair of data sets: a mechanism that is not refuted may still violate its claim on
    another pair. See :func:`dither.audit.search` for pairs and :func:`dither.audit.certify` for proofs.

    Parameters
    ----------
    fn
        A function of the data that returns anything: numbers, vectors, labels, dicts, sets, tables, None. An error
        that it raises is an output, and so is everything that it leaves behind: warnings, what it prints, logs, writes
        and stores (:mod:`dither.audit.outputs.observe`). What cannot be decomposed is listed in ``incomparable``. A
        mechanism stands for its ``release``.
    x, x_neighbor
        Two neighboring data sets. They are passed to ``fn`` unchanged.
    trials
        The maximum number of runs per data set, on average: a fair coin chooses the data set of every run.
    confidence
        The probability with which the statement holds.
    delta
        The delta at which epsilon is measured.
    claim
        An epsilon, PureDP or ApproxDP (which includes delta) to refute; sampling stops once it is refuted.
    mode
        "region"; or "gaussian", which assumes that ``fn`` is mu-Gaussian-DP for some mu and returns the epsilon at
        ``delta`` of the smallest such mu. It is far tighter for noisy gradient descent, and a statement only about
        that family.
    batch
        ``fn(x, size)`` returns ``size`` independent outputs, as a list or as an array with one row per output.
        What is left behind is not recorded in this mode, since it cannot be attributed to single outputs.
    processes
        The number of processes to run ``fn`` in, by default one. They are forks, in which noise from dither is safe;
        the state of a NumPy generator is copied to all of them, which is refused if detected.
    progress
        Whether to show a progress bar on standard error.
    features
        A function of an output (of the whole array, if ``batch`` returns one) whose result replaces the output.

    Examples
    --------
    >>> import dither as dp
    >>> result = measure(dp.Laplace(sensitivity=1, epsilon=1), 0.0, 1.0, trials=200_000)
    >>> 0.9 < result.epsilon < 1.05
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
        raise InvalidArgument("mode", "'region' or 'gaussian'", repr(mode), "pass mode='region'")
    if mode == "gaussian" and not allowed:
        raise InvalidArgument("delta", "above 0 in the mode 'gaussian'", 0, "pass delta=1e-6, for example")
    draw = run_function(fn, batch, features)
    checkpoints = _checkpoints(count, claimed is not None)
    failures = _shares(1 - level, len(checkpoints))
    runs: Runs | None = None
    best: Measurement | None = None
    with (
        progress_bar(progress, 2 * count, "measuring") as bar,
        Sampler(draw, x, x_neighbor, workers, bar) as sampler,
    ):
        for stop, failure in zip(checkpoints, failures, strict=True):
            new_runs = sampler.rounds(2 * stop - (0 if runs is None else runs.labels.size))
            runs = new_runs if runs is None else runs + new_runs
            result = _look(runs, stop, failure, level, allowed, claimed, mode)
            # a later look describes the region better; an earlier one may have the larger bound
            if best is None or result.epsilon >= best.epsilon:
                best = result
            if best.refuted:
                break
    assert best is not None
    assert runs is not None
    return replace(best, trials=runs.labels.size // 2)


def _claim(claim: float | Guarantee | None, delta: float) -> tuple[float | None, float]:
    """Return the claimed epsilon (None: there is no claim) and the delta at which epsilon is measured.

    The delta is that of a claim of ApproxDP or PureDP, which ``delta`` may not contradict, and else ``delta``.
    """
    allowed = 0.0 if delta == 0 else float(arguments.delta(delta))
    if isinstance(claim, (PureDP, ApproxDP)):
        claimed_delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
        if delta and claimed_delta != allowed:
            raise InvalidArgument("delta", f"that of the claim, {claimed_delta:g}", f"{allowed:g}", "leave it out")
        return float(claim.epsilon), float(claimed_delta)
    if isinstance(claim, Guarantee):
        raise WrongType("claim", "a PureDP or ApproxDP", type(claim).__name__, "pass claim.to_approx(1e-6)")
    return None if claim is None else float(arguments.epsilon_or_zero(claim, "claim")), allowed


def _checkpoints(trials: int, early: bool) -> list[int]:
    """Return the numbers of runs per data set at which to look: doubling if ``early`` stopping is of use, and at the
    end.
    """
    result, stop = [], _FIRST_LOOK
    while early and stop <= 0.7 * trials:
        result.append(stop)
        stop *= 2
    return [*result, trials]


def _shares(failure: float, checkpoints: int) -> list[float]:
    """Return the failure probability of each look: four fifths for the final one, equal shares of the rest."""
    if checkpoints == 1:
        return [failure]
    early_share = failure * (1 - _FINAL_SHARE) * (1 - 1e-12) / (checkpoints - 1)
    return [early_share] * (checkpoints - 1) + [failure * _FINAL_SHARE]


def _learning_fraction(runs: int) -> float:
    """Return the share of ``runs`` to learn from, ``0.5 (1000 / runs)^(1/4)``, between a tenth and a half."""
    return max(0.1, 0.5 * min(1.0, math.sqrt(math.sqrt(1000 / runs))))


def _look(
    runs: Runs, trials: int, failure: float, level: float, delta: float, claim: float | None, mode: str
) -> Measurement:
    """Learn regions on the first part of the runs and return the largest bound that one of them gives on the rest.

    ``failure`` is the probability with which this look may fail. Of two regions, the second, for rare events, gets the
    share ``_RARE_SHARE`` of it; the shares are fixed before the rest is examined. The other parameters are passed on to
    :func:`_bound_for_region`.
    """
    training, test_runs = runs.split(round(runs.labels.size * _learning_fraction(trials)))
    fresh_ratio = test_runs.labels.size / max(1, training.labels.size)
    regions = learn_regions(training.outputs, training.labels, failure, delta, mode, fresh_ratio)
    failures = [failure] if len(regions) == 1 else [failure * (1 - _RARE_SHARE), failure * _RARE_SHARE * (1 - 1e-12)]
    measurements = [
        _bound_for_region(region, test_runs, trials, share, level, delta, claim, mode)
        for region, share in zip(regions, failures, strict=True)
    ]
    best = max(measurements, key=lambda item: item.epsilon)
    return replace(best, note=_note(runs.outputs), incomparable=runs.outputs.opaque)


def _bound_for_region(
    region: Region,
    test_runs: Runs,
    trials: int,
    failure: float,
    level: float,
    delta: float,
    claim: float | None,
    mode: str,
) -> Measurement:
    """Return the measurement that fresh runs give for a fixed region.

    Parameters
    ----------
    test_runs
        Runs that were not used to learn the region.
    trials
        The number of runs per data set, which is reported.
    failure
        The probability with which the bound may fail. It is divided equally between ``alpha`` and ``power``, which are
        Clopper-Pearson bounds.
    level
        The confidence that is reported.
    delta, claim, mode
        As for :func:`measure`; the mode decides whether the bound is that of Gaussian DP.
    """
    scores = region.score(test_runs.outputs)
    guesses = region.guesses(test_runs.outputs, scores)
    labels, total = test_runs.labels, test_runs.labels.size
    neighbor_runs, x_runs = int(labels.sum()), int(total - labels.sum())
    tests_neighbor = region.high < math.inf  # whether the test is for the neighbor, or else for x
    inside = guesses == (1 if tests_neighbor else -1)
    hits = int((inside & (labels == tests_neighbor)).sum())
    false_alarms = int((inside & (labels != tests_neighbor)).sum())
    totals = (neighbor_runs, x_runs) if tests_neighbor else (x_runs, neighbor_runs)
    mu = None
    if mode == "gaussian":
        mu = bounds.mu_lower_bound(hits, totals[0], false_alarms, totals[1], failure)
        epsilon = bounds.gdp_epsilon(mu, delta)
        estimate = bounds.gdp_epsilon(bounds.mu_estimate(hits, totals[0], false_alarms, totals[1]), delta)
    else:
        right = int(((guesses != 0) & ((guesses > 0) == labels)).sum())
        wrong = int(np.count_nonzero(guesses)) - right
        epsilon = bounds.epsilon_lower_bound(right, wrong, total, failure, delta, max(1, region.sides))
        estimate = bounds.epsilon_estimate(right, wrong, total, delta, region.sides) if right + wrong else 0.0
    return Measurement(
        epsilon=epsilon,
        estimate=estimate,
        confidence=level,
        delta=delta,
        alpha=bounds.clopper_pearson_upper(false_alarms, totals[1], failure / 2),
        power=bounds.clopper_pearson_lower(hits, totals[0], failure / 2),
        region=region,
        trials=trials,
        claim=claim,
        mode=mode,
        mu=mu,
        points=_points(scores, labels),
    )


def _points(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """Return the observed (alpha, power) of the tests "the score is at least t", for about 64 thresholds t.

    ``labels`` are True for runs on the neighbor: alpha is the frequency of such scores on x, and power that on the
    neighbor. Runs whose score is NaN count as below every threshold. () if one data set has no usable score.
    """
    scores, labels = scores[:_MAX_PLOTTED], labels[:_MAX_PLOTTED]
    usable = ~np.isnan(scores)
    x_scores, neighbor_scores = np.sort(scores[usable & ~labels]), np.sort(scores[usable & labels])
    if not x_scores.size or not neighbor_scores.size:
        return ()
    cuts = np.unique(
        np.quantile(np.concatenate([x_scores, neighbor_scores]), np.linspace(0, 1, _POINTS), method="nearest")
    )
    alpha = 1 - np.searchsorted(x_scores, cuts) / max(1, int((~labels).sum()))
    power = 1 - np.searchsorted(neighbor_scores, cuts) / max(1, int(labels.sum()))
    return tuple(sorted({(0.0, 0.0), *zip(alpha.tolist(), power.tolist(), strict=True), (1.0, 1.0)}))


def _note(outputs: Outputs) -> str:
    """Return a warning if every run raised one and the same error, and an empty string otherwise."""
    kinds = {outputs.constants[" kind"]} if " kind" in outputs.constants else set(outputs.columns.get(" kind", ()))
    if len(kinds) == 1 and str(*kinds).startswith("raised"):
        return f"every run {kinds.pop()}: nothing was measured"
    return ""
