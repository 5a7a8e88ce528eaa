"""Lower bounds on the parameter mu of a mechanism that is declared to satisfy Gaussian DP.

A lower bound on epsilon at a small delta needs events of probability about delta, which a sample of moderate size does
not contain. If the mechanism is *declared* to behave like Gaussian noise, as noisy gradient descent does with full
batches and nearly does with sampled ones, a single threshold test between the two distributions suffices: its level
and power determine mu, and mu determines epsilon at every delta. The result refutes the claim "mu-Gaussian-DP"; it
says nothing about the epsilon of a mechanism outside that family.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dither.accounting.gaussian import gaussian_epsilon
from dither.audit.blackbox.confidence import Floats, clopper_pearson_upper

_SLACK = 1e-9
_MAX_MU = 1e6


def mu_lower_bound(hits: int, neighbor_runs: int, false_alarms: int, trials: int, failure: float) -> float:
    """A lower confidence bound on mu, where ``hits`` of ``neighbor_runs`` outputs on the neighbor fell into the region
    and ``false_alarms`` of ``trials`` outputs on x did.

    *Statement.* If the code is mu-Gaussian-DP for x and its neighbor, the returned number is at most mu with
    probability ``1 - failure``.

    *Proof.* Under mu-GDP a test of level a has a type II error b of at least Phi(Phi^-1(1 - a) - mu) (Dong, Roth and
    Su 2022), that is ``mu >= Phi^-1(1 - a) - Phi^-1(b)``, which is decreasing in a and in b. Each of the two exceeds
    its Clopper-Pearson upper bound with probability at most ``failure / 2``.

    >>> round(mu_lower_bound(8413, 10000, 5000, 10000, 0.01), 2)
    0.93
    """
    from scipy.special import ndtri

    level = clopper_pearson_upper(false_alarms, trials, failure / 2)
    miss_rate = clopper_pearson_upper(neighbor_runs - hits, neighbor_runs, failure / 2)
    if level >= 1 or miss_rate >= 1:
        return 0.0
    return max(0.0, float(-ndtri(level) - ndtri(miss_rate)) * (1 - _SLACK))


def approximate_mu(hits: Any, neighbor_runs: float, false_alarms: Any, trials: float, failure: float) -> Floats:
    """An approximation of :func:`mu_lower_bound` for arrays, used to choose a threshold, never to state a result."""
    from scipy.special import ndtri

    z2 = float(ndtri(failure / 2)) ** 2

    def wilson_upper(count: Any, total: float) -> Any:
        frequency = count / total
        margin = np.sqrt(z2 * frequency * (1 - frequency) / total + (z2 / (2 * total)) ** 2)
        return (frequency + z2 / (2 * total) + margin) / (1 + z2 / total)

    result = -ndtri(wilson_upper(false_alarms, trials)) - ndtri(wilson_upper(neighbor_runs - hits, neighbor_runs))
    return np.where(np.isfinite(result), result, -np.inf)


def gdp_epsilon(mu: float, delta: float) -> float:
    """The epsilon of mu-GDP at ``delta``, rounded down: that of Gaussian noise with sigma = sensitivity / mu.

    >>> round(gdp_epsilon(0.25, 1e-6), 4)
    1.0607
    """
    if mu <= 0:
        return 0.0
    ratio = Fraction((1 + _SLACK) / min(mu, _MAX_MU))  # slightly more noise than mu stands for, hence a smaller epsilon
    return float(gaussian_epsilon(ratio, Fraction(delta))) * (1 - _SLACK)


def mu_estimate(hits: int, neighbor_runs: int, false_alarms: int, trials: int) -> float:
    """A point estimate of mu from the observed frequencies, with half an output added to keep it finite.

    >>> round(mu_estimate(8413, 10000, 5000, 10000), 2)
    1.0
    """
    from scipy.special import ndtri

    level, power = (false_alarms + 0.5) / (trials + 1), (hits + 0.5) / (neighbor_runs + 1)
    result = float(ndtri(power) - ndtri(level))
    return result if math.isfinite(result) else 0.0
