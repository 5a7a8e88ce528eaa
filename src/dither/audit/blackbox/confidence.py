"""Confidence bounds on probabilities and, derived from them, on epsilon.

All bounds that enter a statement are exact for binomial counts (Clopper and Pearson 1934); none relies on a normal
approximation. The exception, :func:`approximate_epsilon` is used only to choose among candidate rules.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SLACK = 1e-11
_GUESS_RATE_SHARE = 0.05


def clopper_pearson_upper(successes: int, trials: int, failure: float) -> float:
    """The Clopper-Pearson upper confidence bound on a binomial probability, valid with probability ``1 - failure``.

    >>> round(clopper_pearson_upper(0, 1000, 0.05), 6)
    0.002991
    >>> clopper_pearson_upper(10, 10, 0.05)
    1.0
    """
    from scipy.special import betainccinv

    if successes >= trials:
        return 1.0
    return min(1.0, float(betainccinv(successes + 1, trials - successes, failure)) * (1 + _SLACK))


def clopper_pearson_lower(successes: int, trials: int, failure: float) -> float:
    """The Clopper-Pearson lower confidence bound on a binomial probability, valid with probability ``1 - failure``.

    >>> round(clopper_pearson_lower(1000, 1000, 0.05), 6)
    0.997009
    >>> clopper_pearson_lower(0, 10, 0.05)
    0.0
    """
    from scipy.special import betaincinv

    if successes <= 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, failure)) * (1 - _SLACK)


def epsilon_lower_bound(
    right: int, wrong: int, trials: int, failure: float, delta: float = 0.0, sides: int = 2
) -> float:
    """A lower confidence bound on epsilon from the outcome of a guessing game, valid with probability ``1 - failure``.

    *The game.* In each round a fair coin chooses x or its neighbor, the code runs on it, and a rule fixed in advance
    guesses from the output which one it was, or abstains: it guesses the neighbor on a set S and x on a disjoint set
    T. Of ``trials`` rounds, ``right`` guesses were correct and ``wrong`` were not. ``sides`` is the number of nonempty
    sets among S and T.

    *Statement.* If the code is (epsilon, delta)-DP for x and its neighbor, the returned number is at most epsilon
    with probability ``1 - failure``.

    *Proof.* Let P and Q be the output distributions at the neighbor and at x. A guess is made
    and correct with probability c = (P(S) + Q(T)) / 2, and made and wrong with w = (Q(S) + P(T)) / 2. Adding
    P(S) <= e^epsilon Q(S) + delta and Q(T) <= e^epsilon P(T) + delta gives

        c <= e^epsilon w + delta sides / 2.

    With g = c + w, the probability of a guess, this reads ``c / g <= (e^epsilon + delta sides / (2 g)) / (1 +
    e^epsilon)``. Given the number of guesses, the correct ones are Binomial(guesses, c / g), so a lower bound on c / g
    and, if delta > 0, a lower bound on g imply a lower bound on epsilon. For delta = 0 only the first is needed and it
    receives the whole failure probability, whereas the usual argument needs two bounds (on level and power) and uses
    one of the two sets. For delta > 0 the bound on g receives a twentieth of the failure probability, and the union
    bound completes the proof.

    >>> round(epsilon_lower_bound(7311, 2689, 20000, 0.01), 3)
    0.948
    >>> round(epsilon_lower_bound(10**6, 0, 10**6, 0.01), 2)
    12.29
    >>> epsilon_lower_bound(50, 50, 200, 0.01)
    0.0
    """
    guesses = right + wrong
    if not right:
        return 0.0
    if delta:
        guess_rate = clopper_pearson_lower(guesses, trials, failure * _GUESS_RATE_SHARE)
        failure *= 1 - _GUESS_RATE_SHARE
        delta_share = delta * sides / 2 / guess_rate if guess_rate else math.inf
    else:
        delta_share = 0.0
    error_rate = clopper_pearson_upper(wrong, guesses, failure)
    success_rate = 1 - error_rate - delta_share
    return max(0.0, math.log(success_rate / error_rate) * (1 - _SLACK)) if success_rate > 0 else 0.0


def epsilon_estimate(right: int, wrong: int, trials: int, delta: float = 0.0, sides: int = 2) -> float:
    """A point estimate of epsilon from the observed frequencies, with half a round added to keep it finite.

    >>> round(epsilon_estimate(7311, 2689, 20000), 3)
    1.0
    """
    excess = (right + 0.5) - delta * sides / 2 * trials
    return max(0.0, math.log(excess / (wrong + 0.5))) if excess > 0 else 0.0


def approximate_epsilon(
    right: Any, wrong: Any, trials: float, failure: float, delta: float = 0.0, sides: Any = 2
) -> Floats:
    """An approximation of :func:`epsilon_lower_bound` for arrays, by Wilson's score interval; negative values allowed.

    It is used to choose among candidate rules, never to state a result.

    >>> round(float(approximate_epsilon(7311, 2689, 20000, 0.01)), 3)
    0.948
    """
    from scipy.special import ndtri

    z2 = float(ndtri(failure)) ** 2
    guesses = np.asarray(right + wrong, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        frequency = wrong / guesses
        margin = np.sqrt(z2 * frequency * (1 - frequency) / guesses + (z2 / (2 * guesses)) ** 2)
        error_rate = (frequency + z2 / (2 * guesses) + margin) / (1 + z2 / guesses)
        success_rate = 1 - error_rate - delta * sides / 2 * trials / guesses
        result = np.log(success_rate / error_rate)
    return np.where(np.isfinite(result), result, -np.inf)
