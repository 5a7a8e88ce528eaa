"""The exponential mechanism, over a finite set, the integers, or an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.budget_hooks import covered, spends
from dither.callbacks import outcome, silenced
from dither.errors import InvalidData, NotPrivate
from dither.exact import exactly, exp, up
from dither.guarantees import ZCDP
from dither.mechanisms.continuous import ContinuousExponential
from dither.mechanisms.selection import Candidate, SelectionMechanism, Ties, paired, read_scores
from dither.randomness import MIN_SCALE, Source, bernoulli_exp, discrete_laplace_one, exponential_race, mark, resolve

_BITS = 80
_NEVER = Fraction(2) ** 60  # a coin that shows heads with probability exp(-2^60) shows tails


@dataclass(frozen=True)
class Exponential(SelectionMechanism):
    """Choose y with probability proportional to ``exp(epsilon * score(y) / (2 * sensitivity))``.

    *Statement.* If no score moves by more than ``sensitivity`` between neighbors, the choice is epsilon-DP
    (McSherry and Talwar 2007). If all scores move in the same direction (``monotone=True``: counts when a
    record is added or removed, never when one is replaced) the 2 drops.

    *Why.* Numerator and normalizer each change by a factor of at most ``exp(epsilon / 2)``; if all scores rise,
    or all fall, they change in the same direction and only one of them counts.

    The draw is exact: a race of exponential clocks (:mod:`dither.randomness.race`), in which no weight is
    computed and none can overflow. Scores may have any size; -inf means never.

    Examples
    --------
    >>> election = Exponential(sensitivity=1, epsilon=1)
    >>> election.probabilities([15, 20, 25]).round(4)
    array([0.0062, 0.0754, 0.9184])
    >>> election.select(["a", "b", "c"], [15, 20, 25]) in ("a", "b", "c")
    True
    """

    @property
    def zcdp(self) -> ZCDP:
        """Return epsilon^2/8-zCDP: the losses of all outputs lie in an interval of length epsilon (Cesar and Rogers
        2021).

        >>> Exponential(sensitivity=1, epsilon=2).zcdp
        ZCDP(0.5)
        """
        return ZCDP(arguments.epsilon(self.epsilon) ** 2 / 8)

    @classmethod
    def for_error(
        cls, error: float, *, candidates: int, sensitivity: float, confidence: float = 0.95, monotone: bool = False
    ) -> Exponential:
        """Return the smallest epsilon with which the chosen score is within ``error`` of the best, with this
        confidence.

        >>> Exponential.for_error(10, candidates=100, sensitivity=1).error(100) <= 10
        True
        """
        width = exactly(arguments.positive(error, "error"))
        unit = cls(sensitivity, 1, monotone)
        return cls(sensitivity, up(exactly(unit.error(candidates, confidence)) / width), monotone)

    @spends
    def select_index(self, scores: Any, *, source: Source | None = None) -> int:
        """Return the index of the chosen score.

        >>> Exponential(sensitivity=1, epsilon=1).select_index([0, 1000])
        1
        """
        resolved, read = resolve(source), read_scores(scores)
        index: int = mark(exponential_race(read.floats, resolved, self.rate, exact_score=read.exact), resolved)
        return index

    @spends
    def select(self, candidates: Sequence[Candidate], scores: Any, *, source: Source | None = None) -> Candidate:
        """Return one of ``candidates``, chosen by ``scores``, one number for each; -inf is never chosen.

        ``source`` is the randomness, by default the operating system's.

        >>> Exponential(sensitivity=1, epsilon=1).select(["no", "yes"], [0, 1000])
        'yes'
        """
        names = paired(candidates, scores)
        chosen: Candidate = mark(names[covered(self.select_index)(scores, source=source)], resolve(source))
        return chosen

    def probabilities(self, scores: Any) -> NDArray[np.float64]:
        """Return the probability of each candidate, correct to a few units in the last place.

        >>> Exponential(sensitivity=1, epsilon=2).probabilities([0.0, 0.0])
        array([0.5, 0.5])
        """
        weights = np.exp(np.asarray(relative_rates(read_scores(scores).floats, self.rate)))
        shares: NDArray[np.float64] = weights / math.fsum(weights.tolist())
        return shares

    def error(self, candidates: int, confidence: float = 0.95, *, ties: Ties = 1) -> float:
        """Return the most by which the selected score is below the best among ``candidates``, with this confidence.

        ``P(score <= best - 2 sensitivity (ln(d/r) + t) / epsilon) <= exp(-t)``, r of the d candidates being
        tied at the top. ``ties`` may say how many are *near* the top: ``{a: r}``, at least r within a of it. A
        candidate that is a below the best counts as ``exp(-epsilon a / (2 sensitivity))`` of a tie.

        >>> round(Exponential(sensitivity=1, epsilon=1).error(100, 0.95), 2)
        15.2
        >>> round(Exponential(sensitivity=1, epsilon=1).error(100, 0.95, ties={1: 10, 2: 30}), 2)
        9.95
        """
        return self.gap(candidates, ties, confidence)

    def expected_score_bound(self, candidates: int, *, ties: Ties = 1) -> float:
        """Return how far the expected score is below the best at most; near-ties help, as in :meth:`error`.

        *Statement.* At most ``2 sensitivity ln(d) / epsilon`` below the best, a consequence of ``E z + ln C`` being an
        entropy, z the gaps times the rate and C the sum of all exp(-z). What is returned is smaller: the largest
        value that any scores with these ties have. Without ties it is ``W((d - 1) / e)`` scales, W Lambert's function.

        *Why.* The expected gap is at most b if the sum of ``(g - b) exp(-rate g)`` over the candidates' gaps g is at
        most 0. Each term is largest at ``g = b + 1/rate``, or at a if g is known to be at most a, and a is less. So the
        smallest b at which the sum of these largest terms is 0 bounds all cases, and is met by one of them.

        >>> m = Exponential(sensitivity=1, epsilon=1)
        >>> round(m.expected_score_bound(100), 2), round(2 * math.log(100), 2)
        (5.26, 9.21)
        >>> round(m.expected_score_bound(100, ties={1: 10, 2: 30}), 2)
        2.52
        """
        return self.expected_gap(candidates, ties)

    def privacy_curve(self, epsilon: float) -> float:
        """Return the smallest delta for which every selection of this epsilon is (epsilon, delta)-DP, rounded up.

        The losses lie in an interval of length e, the mechanism's epsilon; the worst such mechanism has two
        outputs, and ``delta = (exp(e/2) - exp(epsilon/2))^2 / (exp(e) - 1)`` (Dong, Durfee and Rogers 2020).

        >>> round(Exponential(sensitivity=1, epsilon=1).privacy_curve(0), 6)
        0.244919
        """
        exact_epsilon, own_epsilon = arguments.epsilon_or_zero(epsilon), arguments.epsilon(self.epsilon)
        if exact_epsilon >= own_epsilon:
            return 0.0
        # divided by exp(e): (1 - exp((epsilon - e)/2))^2 / (1 - exp(-e))
        one = 1 << _BITS
        half_ratio, full_ratio = exp((exact_epsilon - own_epsilon) / 2, _BITS)[0], exp(-own_epsilon, _BITS)[1]
        return up(min(Fraction(1), (1 - Fraction(half_ratio, one)) ** 2 / (1 - Fraction(full_ratio, one))))

    @spends
    def select_integer(
        self,
        score: Callable[[int], float],
        *,
        center: int,
        ceiling: float,
        slope: float,
        source: Source | None = None,
    ) -> int:
        """Select one of all integers, given a public bound that makes the sum of the weights finite.

        The bound is ``score(k) <= ceiling - slope * |k - center|`` for every k, with ``slope > 0``.

        Proposed from the discrete Laplace law that the bound describes, kept with probability ``exp(rate *
        (score - bound))``: exact. ``center``, ``ceiling`` and ``slope`` may depend on the data; a score above
        its bound is an error of the caller's and is refused.

        >>> m = Exponential(sensitivity=1, epsilon=1)
        >>> abs(m.select_integer(lambda k: -abs(k - 7), center=7, ceiling=0, slope=1) - 7) < 200
        True
        """
        resolved, exact_slope, exact_ceiling = resolve(source), exactly(slope, "slope"), exactly(ceiling, "ceiling")
        if exact_slope <= 0:
            raise NotPrivate(
                "slope",
                "a positive number: without one the weights have no finite sum",
                slope,
                "bound the scores from above by a falling line",
            )
        middle = arguments.whole(center, "center", at_least=-(1 << 62))
        width = max(up(1 / (self.rate * exact_slope)), MIN_SCALE)
        while True:
            step = discrete_laplace_one(width, resolved)
            result = _scored(score, middle + step)
            # the proposal's own exponent is 1/width, a little below rate * slope
            shortfall = (exact_ceiling - result) * self.rate - abs(step) / exactly(width)
            if (exact_ceiling - result) < exact_slope * abs(step):
                raise NotPrivate(
                    "score", "a score at most its bound", "one above it", "raise the ceiling or lower the slope"
                )
            if bool(bernoulli_exp(min(max(shortfall, Fraction(0)), _NEVER), 1, resolved)[0]):
                chosen: int = mark(middle + step, resolved)
                return chosen

    @staticmethod
    def continuous(
        *, sensitivity: float, epsilon: float, bounds: tuple[float, float], monotone: bool = False
    ) -> ContinuousExponential:
        """Return the exponential mechanism over the interval ``bounds``, for scores that are quadratic in pieces.

        ``sensitivity``, ``epsilon`` and ``monotone`` are those of this class. See :class:`ContinuousExponential`.
        """
        return ContinuousExponential(sensitivity, epsilon, monotone, bounds)


def _scored(score: Callable[[int], float], candidate: int) -> Fraction:
    """Return the score of a candidate; an error inside the score function, which may hold data, is not shown."""
    with silenced():
        value = outcome(lambda: exactly(score(candidate), "score"))
    if value is not None:
        return value
    raise InvalidData(
        "score", "a finite number for every integer", "an error or something else", "bound the score first"
    )


def relative_rates(scores: NDArray[np.float64], rate: Fraction) -> list[float]:
    """Return ``rate * (score - largest)`` for each score, correctly rounded.

    >>> relative_rates(np.array([1.0, 2.0, -np.inf]), Fraction(1, 2))
    [-0.5, 0.0, -inf]
    """
    largest = Fraction(float(scores.max()))
    return [
        -math.inf if score == -math.inf else max(float((Fraction(score) - largest) * rate), -1e308)
        for score in scores.tolist()
    ]
