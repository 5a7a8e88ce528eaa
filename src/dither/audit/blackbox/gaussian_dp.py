"""Statements about a declared family: the loss of a mechanism that is known to be Gaussian.

A lower bound on epsilon at a small delta needs events of about probability delta, which few samples ever show. If
the mechanism is *declared* to be as Gaussian noise, as noisy gradient descent with full batches is and with sampled
ones nearly is, one threshold in the middle of the two laws tells all: its level and its power fix the one
parameter mu, and mu fixes epsilon at every delta. What is found refutes the claim "mu-Gaussian-DP"; it says nothing
about epsilon of a mechanism outside the family.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dither.accounting.gaussian import gaussian_epsilon
from dither.audit.blackbox.confidence import Floats, upper

_SLACK = 1e-9
_MOST_MU = 1e6


def gaussian_mu(hits: int, others: int, false_alarms: int, trials: int, failure: float) -> float:
    """A lower bound on mu: ``hits`` of ``others`` outputs of the neighbour were in the region, ``false_alarms`` of
    ``trials`` outputs of x.

    *Statement.* If the code is mu-Gaussian-DP for x and its neighbour, this number is at most mu with probability
    ``1 - failure``.

    *Why.* mu-GDP says that a test of level a misses with probability b of at least Phi(Phi^-1(1 - a) - mu) (Dong,
    Roth and Su 2022), that is ``mu >= Phi^-1(1 - a) - Phi^-1(b)``, which falls in a and in b. Either is below its
    Clopper-Pearson bound but with probability ``failure / 2``.

    >>> round(gaussian_mu(8413, 10000, 5000, 10000, 0.01), 2)
    0.93
    """
    from scipy.special import ndtri

    level = upper(false_alarms, trials, failure / 2)
    miss = upper(others - hits, others, failure / 2)
    if level >= 1 or miss >= 1:
        return 0.0
    return max(0.0, float(-ndtri(level) - ndtri(miss)) * (1 - _SLACK))


def wilson_mu(hits: Any, others: float, false_alarms: Any, trials: float, failure: float) -> Floats:
    """What :func:`gaussian_mu` will be about, for arrays: to choose a threshold, never to state a result."""
    from scipy.special import ndtri

    z2 = float(ndtri(failure / 2)) ** 2

    def most(count: Any, total: float) -> Any:
        share = count / total
        spread = np.sqrt(z2 * share * (1 - share) / total + (z2 / (2 * total)) ** 2)
        return (share + z2 / (2 * total) + spread) / (1 + z2 / total)

    result = -ndtri(most(false_alarms, trials)) - ndtri(most(others - hits, others))
    return np.where(np.isfinite(result), result, -np.inf)


def epsilon_of(mu: float, delta: float) -> float:
    """The epsilon that mu-GDP has at ``delta``: that of Gaussian noise with sigma = sensitivity / mu, rounded down.

    >>> round(epsilon_of(0.25, 1e-6), 4)
    1.0607
    """
    if mu <= 0:
        return 0.0
    ratio = Fraction((1 + _SLACK) / min(mu, _MOST_MU))  # more noise than that of mu, hence less epsilon
    return float(gaussian_epsilon(ratio, Fraction(delta))) * (1 - _SLACK)


def estimated_mu(hits: int, others: int, false_alarms: int, trials: int) -> float:
    """mu at the frequencies themselves, with half an output added so that it is finite.

    >>> round(estimated_mu(8413, 10000, 5000, 10000), 2)
    1.0
    """
    from scipy.special import ndtri

    level, power = (false_alarms + 0.5) / (trials + 1), (hits + 0.5) / (others + 1)
    result = float(ndtri(power) - ndtri(level))
    return result if math.isfinite(result) else 0.0
