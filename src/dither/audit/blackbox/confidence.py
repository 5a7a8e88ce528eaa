"""Confidence bounds on probabilities and, derived from them, on epsilon.

All bounds that enter a statement are exact for binomial counts (Clopper and Pearson 1934); none relies on a normal
approximation. The exceptions, :func:`approximate_epsilon` and :func:`approximate_mu`, are used only to choose
among candidate rules.

*Gaussian DP.* A lower bound on epsilon at a small delta needs events of probability about delta, which a sample of
moderate size does not contain. If the mechanism is *declared* to behave like Gaussian noise, as noisy gradient descent
does with full batches and nearly does with sampled ones, a single threshold test between the two distributions
suffices: its level and power determine mu, and mu determines epsilon at every delta. The result refutes the claim
"mu-Gaussian-DP"; it says nothing about the epsilon of a mechanism outside that family.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.accounting.gaussian import gaussian_epsilon

Floats = NDArray[np.float64]

_SLACK = 1e-11
_GUESS_RATE_SHARE = 0.05


def clopper_pearson_upper(successes: int, trials: int, failure: float) -> float:
    """Return the Clopper-Pearson upper confidence bound on a binomial probability at level ``1 - failure``."""
    from scipy.special import betainccinv

    if successes >= trials:
        return 1.0
    return min(1.0, float(betainccinv(successes + 1, trials - successes, failure)) * (1 + _SLACK))


def clopper_pearson_lower(successes: int, trials: int, failure: float) -> float:
    """Return the Clopper-Pearson lower confidence bound on a binomial probability at level ``1 - failure``."""
    from scipy.special import betaincinv

    if successes <= 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, failure)) * (1 - _SLACK)


def epsilon_lower_bound(
    right: int, wrong: int, trials: int, failure: float, delta: float = 0.0, sides: int = 2
) -> float:
    """Return a lower confidence bound on epsilon, at level ``1 - failure``, from the results of a guessing game.

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
    """Return a point estimate of epsilon from the observed frequencies, with half a round added to keep it finite."""
    excess = (right + 0.5) - delta * sides / 2 * trials
    return max(0.0, math.log(excess / (wrong + 0.5))) if excess > 0 else 0.0


def approximate_epsilon(
    right: Any, wrong: Any, trials: float, failure: float, delta: float = 0.0, sides: Any = 2
) -> Floats:
    """Return an approximation of :func:`epsilon_lower_bound` for arrays, by Wilson's score interval.

    ``right`` and ``wrong`` count the right and wrong guesses of each rule among ``trials`` runs, ``failure`` is the
    probability with which the bound may fail, and ``sides`` is how many of the two data sets a rule guesses. The
    result is ``ln(success / error)``, less what ``delta`` may contribute; it may be negative, and is -infinity where
    nothing is guessed. It is used to choose among candidate rules, never to state a result.
    """
    guesses = np.asarray(right + wrong, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        error_rate = _wilson_upper(wrong, guesses, failure)
        success_rate = 1 - error_rate - delta * sides / 2 * trials / guesses
        result = np.log(success_rate / error_rate)
    return np.where(np.isfinite(result), result, -np.inf)


def _wilson_upper(count: Any, total: Any, failure: float) -> Any:
    """Return the upper end of Wilson's score interval for a binomial probability (Wilson 1927), for arrays."""
    from scipy.special import ndtri

    z2 = float(ndtri(failure)) ** 2
    frequency = count / total
    margin = np.sqrt(z2 * frequency * (1 - frequency) / total + (z2 / (2 * total)) ** 2)
    return (frequency + z2 / (2 * total) + margin) / (1 + z2 / total)


_MU_SLACK = 1e-9
_MAX_MU = 1e6


def mu_lower_bound(hits: int, neighbor_runs: int, false_alarms: int, trials: int, failure: float) -> float:
    """Return a lower confidence bound on mu of Gaussian DP, at level ``1 - failure``, from a test of x against its
    neighbor.

    ``hits`` of ``neighbor_runs`` outputs on the neighbor fell into the region of the test, and ``false_alarms`` of
    ``trials`` outputs on x did.

    *Statement.* If the code is mu-Gaussian-DP for x and its neighbor, the returned number is at most mu with
    probability ``1 - failure``.

    *Proof.* Under mu-GDP a test of level a has a type II error b of at least Phi(Phi^-1(1 - a) - mu) (Dong, Roth and
    Su 2022), that is ``mu >= Phi^-1(1 - a) - Phi^-1(b)``, which is decreasing in a and in b. Each of the two exceeds
    its Clopper-Pearson upper bound with probability at most ``failure / 2``.
    """
    from scipy.special import ndtri

    level = clopper_pearson_upper(false_alarms, trials, failure / 2)
    miss_rate = clopper_pearson_upper(neighbor_runs - hits, neighbor_runs, failure / 2)
    if level >= 1 or miss_rate >= 1:
        return 0.0
    return max(0.0, float(-ndtri(level) - ndtri(miss_rate)) * (1 - _MU_SLACK))


def approximate_mu(hits: Any, neighbor_runs: float, false_alarms: Any, trials: float, failure: float) -> Floats:
    """Return an approximation of :func:`mu_lower_bound` for arrays, by Wilson's score interval.

    ``hits`` of ``neighbor_runs`` runs on the neighbor and ``false_alarms`` of ``trials`` runs on x were guessed to be
    of the neighbor. Upper ends of the false alarm rate (level) and of the miss rate, each failing with probability
    ``failure / 2``, give ``mu = -Phi^-1(level) - Phi^-1(miss rate)``, with Phi the standard normal distribution
    function; -infinity where that is not finite. It is used to choose a threshold, never to state a result.
    """
    from scipy.special import ndtri

    level = _wilson_upper(false_alarms, trials, failure / 2)
    miss_rate = _wilson_upper(neighbor_runs - hits, neighbor_runs, failure / 2)
    result = -ndtri(level) - ndtri(miss_rate)
    return np.where(np.isfinite(result), result, -np.inf)


def gdp_epsilon(mu: float, delta: float) -> float:
    """Return the epsilon of mu-GDP at ``delta``, rounded down: that of Gaussian noise with sigma = sensitivity / mu."""
    if mu <= 0:
        return 0.0
    # slightly more noise than mu stands for, hence a smaller epsilon
    ratio = Fraction((1 + _MU_SLACK) / min(mu, _MAX_MU))
    return float(gaussian_epsilon(ratio, Fraction(delta))) * (1 - _MU_SLACK)


def mu_estimate(hits: int, neighbor_runs: int, false_alarms: int, trials: int) -> float:
    """Return a point estimate of the parameter mu of Gaussian DP: ``Phi^-1(power) - Phi^-1(level)``.

    The power is the frequency of ``hits`` among ``neighbor_runs`` runs on the neighbor, the level that of
    ``false_alarms`` among ``trials`` runs on x. Half an output is added to each count to keep the estimate finite; 0 is
    returned where it still is not.
    """
    from scipy.special import ndtri

    level, power = (false_alarms + 0.5) / (trials + 1), (hits + 0.5) / (neighbor_runs + 1)
    result = float(ndtri(power) - ndtri(level))
    return result if math.isfinite(result) else 0.0
