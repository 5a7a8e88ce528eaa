"""Confidence bounds for probabilities and, from them, for privacy losses.

All are exact for binomial counts (Clopper and Pearson 1934): no normal approximation stands between a count and a
statement. :func:`wilson` is the exception, and only ever chooses where to look.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SLACK = 1e-11
_SHARE_OF_GUESSES = 0.05


def upper(successes: int, trials: int, failure: float) -> float:
    """A probability that is at least the true one with probability ``1 - failure``, for a binomial count.

    >>> round(upper(0, 1000, 0.05), 6)
    0.002991
    >>> upper(10, 10, 0.05)
    1.0
    """
    from scipy.special import betainccinv

    if successes >= trials:
        return 1.0
    return min(1.0, float(betainccinv(successes + 1, trials - successes, failure)) * (1 + _SLACK))


def lower(successes: int, trials: int, failure: float) -> float:
    """A probability that is at most the true one with probability ``1 - failure``, for a binomial count.

    >>> round(lower(1000, 1000, 0.05), 6)
    0.997009
    >>> lower(0, 10, 0.05)
    0.0
    """
    from scipy.special import betaincinv

    if successes <= 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, failure)) * (1 - _SLACK)


def loss(right: int, wrong: int, trials: int, failure: float, delta: float = 0.0, sides: int = 2) -> float:
    """A lower bound on epsilon from guesses, which holds with probability ``1 - failure``.

    *The game.* A fair coin chooses x or its neighbour, the code runs on it, and a rule fixed beforehand looks at
    the output and guesses which it was, or abstains: it guesses the neighbour on a set S and x on a set T, disjoint.
    Of ``trials`` rounds ``right`` were guessed right and ``wrong`` wrong. ``sides`` says how many of S and T are not
    empty.

    *Statement.* If the code is (epsilon, delta)-DP for x and its neighbour, this number is at most epsilon with
    probability ``1 - failure``.

    *Why.* Let P and Q be the laws of the output at the neighbour and at x. A round is right with probability
    c = (P(S) + Q(T)) / 2 and wrong with w = (Q(S) + P(T)) / 2, and P(S) <= e^epsilon Q(S) + delta and
    Q(T) <= e^epsilon P(T) + delta add up to

        c <= e^epsilon w + delta sides / 2.

    With g = c + w, the probability of a guess, that is ``c / g <= (e^epsilon + delta sides / (2 g)) / (1 +
    e^epsilon)``. Given the number of guesses, the right ones are Binomial(guesses, c / g); so a lower bound on c / g
    and, if delta is not 0, one on g give one on epsilon. For delta = 0 the first is all there is, and has the
    whole failure probability: one bound where the usual argument needs two, for level and power, and both
    sets count. For delta > 0 the second gets a twentieth of it and the union bound does the rest.

    >>> round(loss(7311, 2689, 20000, 0.01), 3)
    0.948
    >>> round(loss(10**6, 0, 10**6, 0.01), 2)
    12.29
    >>> loss(50, 50, 200, 0.01)
    0.0
    """
    guesses = right + wrong
    if not right:
        return 0.0
    if delta:
        guessing = lower(guesses, trials, failure * _SHARE_OF_GUESSES)
        failure *= 1 - _SHARE_OF_GUESSES
        free = delta * sides / 2 / guessing if guessing else math.inf
    else:
        free = 0.0
    missed = upper(wrong, guesses, failure)
    gained = 1 - missed - free
    return max(0.0, math.log(gained / missed) * (1 - _SLACK)) if gained > 0 else 0.0


def estimated_loss(right: int, wrong: int, trials: int, delta: float = 0.0, sides: int = 2) -> float:
    """The loss at the frequencies themselves, with half a round added to either so that it is finite.

    >>> round(estimated_loss(7311, 2689, 20000), 3)
    1.0
    """
    gained = (right + 0.5) - delta * sides / 2 * trials
    return max(0.0, math.log(gained / (wrong + 0.5))) if gained > 0 else 0.0


def wilson(right: Any, wrong: Any, trials: float, failure: float, delta: float = 0.0, sides: Any = 2) -> Floats:
    """What :func:`loss` will be about, for arrays and below 0 too: to choose a rule, never to state a result.

    >>> round(float(wilson(7311, 2689, 20000, 0.01)), 3)
    0.948
    """
    from scipy.special import ndtri

    z2 = float(ndtri(failure)) ** 2
    guesses = np.asarray(right + wrong, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = wrong / guesses
        spread = np.sqrt(z2 * share * (1 - share) / guesses + (z2 / (2 * guesses)) ** 2)
        missed = (share + z2 / (2 * guesses) + spread) / (1 + z2 / guesses)
        gained = 1 - missed - delta * sides / 2 * trials / guesses
        result = np.log(gained / missed)
    return np.where(np.isfinite(result), result, -np.inf)
