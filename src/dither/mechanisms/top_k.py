"""The best k of many candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dither import arguments
from dither.accounting import Event
from dither.budget_hooks import covered, spends
from dither.errors import InvalidArgument
from dither.exact import square_root
from dither.exact.search import bisect_fractions
from dither.guarantees import ZCDP, ApproxDP, PureDP
from dither.mechanisms.exponential import Exponential
from dither.mechanisms.pictures import Pictured
from dither.mechanisms.selection import Candidate, paired, read_scores
from dither.randomness import Source, mark, noisy_top_k, resolve

_BITS = 96


@dataclass(frozen=True)
class TopK(Pictured):
    """The k candidates with the largest scores after one Gumbel noise on each: the same as k exponential
    mechanisms, one after another.

    *Statement.* With a loss e for each of the k choices the release of the k names in order is k e-DP, and,
    since each choice is e^2/8-zCDP, also (k e^2/8)-zCDP. The larger e that either way allows for the guarantee
    asked for is used: ``epsilon / k`` if delta is 0 or k is small, the zCDP one for larger k.

    *Why.* The order of Gumbel-noised scores has the law of peeling (Durfee and Rogers 2019), so one pass over
    the scores does; composition does the rest.

    Examples
    --------
    >>> TopK(2, sensitivity=1, epsilon=1).select("abcd", [0, 900, 0, 1000])
    ['d', 'b']
    >>> [TopK(k, sensitivity=1, epsilon=1, delta=1e-6).accounted_by for k in (2, 100)]
    ['pure', 'zcdp']
    """

    k: int
    sensitivity: float
    epsilon: float
    delta: float | None = None
    monotone: bool = False
    choice: Exponential = field(init=False, repr=False, compare=False)
    """The mechanism of one choice."""
    accounted_by: str = field(init=False, repr=False, compare=False)
    """``"pure"`` or ``"zcdp"``: which of the two ways is the cheaper."""

    def __post_init__(self) -> None:
        """Check the parameters and compute the epsilon of one of the k choices, by pure DP or zCDP.

        If every choice is e-DP all of them are k e-DP and (k e^2/8)-zCDP: ``accounted_by`` says which of the two
        allowed the larger e.
        """
        k, exact_epsilon = arguments.whole(self.k, "k"), arguments.epsilon(self.epsilon)
        epsilon, accounting = exact_epsilon / k, "pure"
        if self.delta is not None:
            rho = _largest_rho(exact_epsilon, arguments.delta(self.delta))
            other = Fraction(square_root(8 * rho / k, _BITS)[0], 1 << _BITS)
            if other > epsilon:
                epsilon, accounting = other, "zcdp"
        exact: Any = epsilon  # a rational, which says more than the float of the annotation
        object.__setattr__(self, "choice", Exponential(self.sensitivity, exact, self.monotone))
        object.__setattr__(self, "accounted_by", accounting)

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """Return epsilon-DP, or (epsilon, delta)-DP where that allows less noise."""
        if self.accounted_by == "pure":
            return PureDP(self.epsilon)
        assert self.delta is not None
        return ApproxDP(self.epsilon, self.delta)

    @property
    def event(self) -> Event:
        """Return the event for accountants: k selections, one after another.

        >>> TopK(2, sensitivity=1, epsilon=1).event
        2 * BoundedRange(0.5)
        """
        return self.k * self.choice.event

    @property
    def scale(self) -> float:
        """Return the scale of the Gumbel noise."""
        return self.choice.scale

    @spends
    def select_indices(self, scores: Any, *, source: Source | None = None) -> list[int]:
        """Return the indices of the k winners, the best first.

        >>> TopK(1, sensitivity=1, epsilon=1).select_indices([0, 1000])
        [1]
        """
        resolved, prepared = resolve(source), read_scores(scores)
        if prepared.floats.size < self.k:
            raise InvalidArgument(
                "scores", f"at least k = {self.k} candidates", f"{prepared.floats.size}", "ask for fewer"
            )
        if np.count_nonzero(prepared.floats > -np.inf) < self.k:
            raise InvalidArgument("scores", f"at least k = {self.k} above -inf", "fewer", "ask for fewer")
        result = noisy_top_k(prepared.floats, self.k, resolved, self.choice.rate, exact_score=prepared.exact)
        indices: list[int] = mark(result, resolved)
        return indices

    @spends
    def select(self, candidates: Sequence[Candidate], scores: Any, *, source: Source | None = None) -> list[Candidate]:
        """Return the k winning candidates, the best first.

        >>> TopK(1, sensitivity=1, epsilon=1).select(["no", "yes"], [0, 1000])
        ['yes']
        """
        names = paired(candidates, scores)
        return [names[i] for i in covered(self.select_indices)(scores, source=source)]

    def error(self, candidates: int, confidence: float = 0.95) -> float:
        """Return the most by which any winner's score is below the true k-th best, with this confidence for all k
        together.

        >>> TopK(5, sensitivity=1, epsilon=1).error(100) > TopK(1, sensitivity=1, epsilon=1).error(100)
        True
        """
        tail = (1 - arguments.confidence(confidence)) / self.k
        return self.choice.gap(candidates, 1, 1 - tail)


@lru_cache(maxsize=256)
def _largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho, to a relative 1e-9, whose zCDP implies (epsilon, delta)-DP."""

    def fits(rho: Fraction) -> bool:
        """Return whether rho-zCDP implies the epsilon at delta."""
        return rho > 0 and ZCDP(rho).to_approx(float(delta)).exact[0] <= epsilon

    return bisect_fractions(fits, epsilon, Fraction(0), steps=40, floats=True).holds
