"""Report noisy max, and permute-and-flip, which is report noisy max with exponential noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import BoundedRange, Event, Pure
from dither.budget_hooks import covered, spends
from dither.errors import InvalidArgument
from dither.mechanisms.exponential import relative_rates
from dither.mechanisms.selection import Candidate, SelectionMechanism, Ties, paired, read_scores
from dither.randomness import Exponential as ExponentialLaw
from dither.randomness import Gumbel, Source, exponential_race, mark, resolve

_TABLE = 1 << 20

_LAWS: dict[str, Gumbel | ExponentialLaw] = {
    "gumbel": Gumbel(),
    "laplace": ExponentialLaw(symmetric=True),
    "exponential": ExponentialLaw(),
}


@dataclass(frozen=True)
class NoisyMax(SelectionMechanism):
    """The index of the largest score after noise of scale ``2 * sensitivity / epsilon`` on each.

    *Statement.* epsilon-DP with Gumbel, Laplace or exponential noise; if all scores move in the same direction
    between neighbors (``monotone=True``: counts when a record is added or removed) half that scale suffices.
    For counts under replacement it does not: ``Lap(1/epsilon)`` there loses almost 2 epsilon.

    *Why.* Fix the noise of all candidates but i. Candidate i wins if its noise exceeds some r. Between
    neighbors r moves by at most twice the sensitivity (once if monotone), and the probability to exceed r changes
    by a factor of at most e^epsilon (Dwork and Roth 2014, section 3.3; Ding et al. 2021 for one-sided noise).
    Gumbel noise gives exactly the exponential mechanism, exponential noise exactly permute-and-flip.

    Examples
    --------
    >>> NoisyMax(sensitivity=1, epsilon=1, noise="laplace").select(["a", "b"], [0, 500])
    'b'
    """

    noise: Literal["gumbel", "laplace", "exponential"] = "gumbel"

    def __post_init__(self) -> None:
        """Check the parameters; ``noise`` is the name of the law of the noise."""
        super().__post_init__()
        if self.noise not in _LAWS:
            raise InvalidArgument(
                "noise", "'gumbel', 'laplace' or 'exponential'", repr(self.noise), "choose one of them"
            )

    @property
    def event(self) -> Event:
        """Return the event for accountants: bounded range for Gumbel noise, which is the exponential mechanism; else
        pure.

        >>> NoisyMax(sensitivity=1, epsilon=1).event, PermuteAndFlip(sensitivity=1, epsilon=1).event
        (BoundedRange(1), Pure(1))
        """
        return (BoundedRange if self.noise == "gumbel" else Pure)(arguments.epsilon(self.epsilon))

    @spends
    def select_index(self, scores: Any, *, source: Source | None = None) -> int:
        """Return the index of the winner; the noise itself is not released.

        >>> NoisyMax(sensitivity=1, epsilon=1).select_index([0, 1000])
        1
        """
        resolved, read = resolve(source), read_scores(scores)
        law = _LAWS[self.noise]
        index: int = mark(exponential_race(read.floats, resolved, self.rate, law=law, exact_score=read.exact), resolved)
        return index

    @spends
    def select(self, candidates: Sequence[Candidate], scores: Any, *, source: Source | None = None) -> Candidate:
        """Return the winner of ``candidates`` by ``scores``, one number for each.

        ``source`` is the randomness, by default the operating system's.

        >>> NoisyMax(sensitivity=1, epsilon=1).select(["no", "yes"], [0, 1000])
        'yes'
        """
        names = paired(candidates, scores)
        chosen: Candidate = mark(names[covered(self.select_index)(scores, source=source)], resolve(source))
        return chosen

    def error(self, candidates: int, confidence: float = 0.95, *, ties: Ties = 1) -> float:
        """Return the most by which the winner's score is below the best, with this confidence.

        That of the exponential mechanism, which permute-and-flip never exceeds (McKenna and Sheldon 2020). With
        Laplace noise: all noises are within ``ln(d / tail)`` scales together, so two of them differ by twice
        that at most, and ties do not help.

        >>> m = NoisyMax(sensitivity=1, epsilon=1, noise="exponential")
        >>> round(m.error(100), 2)
        15.2
        """
        return (
            self.gap(candidates, ties, confidence)
            if self.noise != "laplace"
            else 2 * self.gap(candidates, 1, confidence)
        )

    def probabilities(self, scores: Any) -> NDArray[np.float64]:
        """Return the probability of each candidate.

        Gumbel: the exponential mechanism's. Exponential: with ``p_i = exp(rate (score_i - best))``, candidate i
        is reached at a uniform time t in a random order and wins if its trial, of probability p_i, is the first to
        succeed: ``p_i * integral over (0, 1) of product over j != i of (1 - p_j t)``, a polynomial, integrated
        exactly by Gauss-Legendre. Laplace: the same idea over the noise of the winner, in pieces between the
        scores.

        >>> NoisyMax(sensitivity=1, epsilon=2, noise="exponential").probabilities([0.0, 0.0])
        array([0.5, 0.5])
        """
        rates = np.asarray(relative_rates(read_scores(scores).floats, self.rate))
        if self.noise == "gumbel":
            weights = np.exp(rates)
        elif self.noise == "exponential":
            weights = _permute_and_flip(np.exp(rates))
        else:
            weights = _laplace_winner(rates)
        shares: NDArray[np.float64] = weights / math.fsum(weights.tolist())
        return shares


@dataclass(frozen=True)
class PermuteAndFlip(NoisyMax):
    """Permute-and-flip (McKenna and Sheldon 2020): :class:`NoisyMax` with exponential noise.

    *Statement.* epsilon-DP, and in expected score never worse than the exponential mechanism. Scores are
    visited in random order and a trial of probability ``exp(rate * (score - best))`` is made for each until one
    succeeds; that has the law of the largest score after exponential noise.

    >>> PermuteAndFlip(sensitivity=1, epsilon=1).probabilities([15, 20, 25]).round(4)
    array([0.0033, 0.041 , 0.9558])
    """

    noise: Literal["gumbel", "laplace", "exponential"] = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise != "exponential":
            raise InvalidArgument("noise", "'exponential'", repr(self.noise), "use NoisyMax for other noise")


def _permute_and_flip(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the selection probabilities of permute-and-flip; p has the success probability of each candidate's trial.

    Candidate i wins with probability ``p_i integral over (0, 1) of product over j != i of (1 - p_j t) dt``, computed by
    Gauss-Legendre quadrature. Up to 400 candidates one rule is exact for the polynomial; for more, rules between
    powers of two down to 1 / size are combined.
    """
    if p.size <= 400:
        knots, nodes = np.array([0.0, 1.0]), p.size // 2 + 1
    else:
        knots, nodes = np.concatenate([[0.0], 0.5 ** np.arange(math.ceil(math.log2(p.size)), -1, -1)]), 40
    t, weights = _rule(knots, nodes)
    result = np.zeros(p.size)
    for block in _parts(t.size, p.size):
        logs = np.log1p(-np.multiply.outer(t[block], p).clip(max=1 - 1e-16))
        result += weights[block] @ np.exp(logs.sum(axis=1)[:, None] - logs)
    return p * result


def _laplace_winner(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each i, the probability that rate i plus Laplace noise is the largest.

    It is the integral over z of ``f(z - rate_i) prod over j != i of F(z - rate_j)``, f and F the density and the
    distribution function, by Gauss-Legendre quadrature between the rates and 45 units beyond them.
    """
    finite = rates > -np.inf
    centers = rates[finite]
    knots = np.unique(np.concatenate([centers[centers > -80], [-45.0], np.linspace(0.0, 45.0, 46)]))
    knots = np.unique(np.concatenate([knots, np.arange(math.floor(knots[0]), 45.0)]))
    z, weights = _rule(knots, 20)
    sums = np.zeros(centers.size)
    for block in _parts(z.size, centers.size):
        shift = z[block, None] - centers
        below = np.where(shift < 0, 0.5 * np.exp(np.minimum(shift, 0)), 1 - 0.5 * np.exp(-np.maximum(shift, 0)))
        logs = np.log(np.maximum(below, 1e-300))
        sums += weights[block] @ (0.5 * np.exp(-np.abs(shift)) * np.exp(logs.sum(axis=1)[:, None] - logs))
    result = np.zeros(rates.size)
    result[finite] = sums
    return result


def _rule(knots: NDArray[np.float64], nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nodes and weights of Gauss-Legendre quadrature between each two consecutive knots."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(knots)[:, None] / 2
    return (knots[:-1, None] + half + half * x).ravel(), (half * w).ravel()


def _parts(rows: int, columns: int) -> list[slice]:
    """Return slices of rows such that a table with this number of columns stays small."""
    size = max(1, _TABLE // columns)
    return [slice(start, start + size) for start in range(0, rows, size)]
