"""How probable it is that a key that was selected is the most common one, given noisy counts of all keys."""

from __future__ import annotations

import math

import numpy as np

from dither.inference.measured import STANDARD_NORMAL, Array, NoiseLaw, level_table

_SAMPLES = 2000
_SHRUNKEN_SAMPLES = 500
_QUANTILE = 1.3
"""Of a normal variable: what it exceeds in one of ten cases."""


def mode_probability(selected: int, counts: Array, law: NoiseLaw, rate: float) -> float:
    """Return a probability that no key is more common than the one selected, which is rather too low than too high.

    *Statement.* It is the lowest of several posterior probabilities, given the noisy counts and the selection. One
    assumes a flat prior: all counts were equally plausible before. The others take the 2, 4, 8, … keys with the highest
    noisy counts, or all keys, for a sample of a normal law, whose variance is estimated from the same noisy counts
    (empirical Bayes). Where these differ by no more than noise alone would make them differ in 9 of 10 cases, that
    variance is 0, and the probability for m such keys is 1 / m: the selection then picked one of m keys that are nearly
    as common as each other.

    *Why.* Noisy counts ``y = c + e`` and the selection j are independent given the true counts c, so the density of c
    is in proportion to the prior times ``P(y | c) P(j | c)``. Samples of the prior times the first factor are weighted
    by the second, ``exp(rate c_j) / sum exp(rate c_i)``, which is the law of the exponential mechanism. For the flat
    prior samples are ``y - e_k``; for the normal one they are normal with mean ``M + s (y - M)`` and variance
    ``s v``, where v is the variance of the noise, M the mean of y and ``s = 1 - q v / var(y)``, no less than 0. The
    variance of m numbers of noise alone exceeds ``q v`` in about one of ten cases, with
    ``q = 1 + 1.3 sqrt((k - 1) / m)`` and k the kurtosis of the noise (6 for Laplace, 3 for normal noise). A flat prior
    alone would be sure too often: it takes differences between counts to be large.

    All noise that stands for its law is always the same, so that the result is.

    Parameters
    ----------
    selected
        The index of the key that was selected.
    counts, law
        The noisy counts of all keys, and the law of their noise.
    rate
        The exponent of the exponential mechanism for one more of a key.

    Examples
    --------
    >>> law = NoiseLaw("laplace", 2.0)
    >>> mode_probability(0, np.array([120.0, 40.0, 10.0]), law, rate=0.5)
    1.0
    >>> mode_probability(0, np.array([42.0, 40.0, 10.0]), law, rate=0.5)
    0.5
    """
    levels = level_table("mode", _SAMPLES, counts.size)
    flat = counts[None, :] - law.quantiles(levels.ravel()).reshape(levels.shape)
    lowest = _probability_of_best(selected, flat, rate)
    if counts.size == 1 or law.shape == "none":
        return lowest
    order = np.argsort(-counts, kind="stable")
    rank = int(np.flatnonzero(order == selected)[0])
    sizes = {min(2**power, counts.size) for power in range(1, counts.size.bit_length() + 1)}
    for size in sorted(sizes):
        among = order[:size].copy()
        among[-1] = selected if rank >= size else among[-1]
        lowest = min(lowest, _with_normal_prior(min(rank, size - 1), counts[among], law, rate))
    return lowest


def _with_normal_prior(selected: int, counts: Array, law: NoiseLaw, rate: float) -> float:
    """Return the probability that the selected key is the most common, with a normal prior for the true counts.

    ``selected`` is the index of the key in ``counts``, ``law`` the noise of the counts, and ``rate`` the exponent of
    the exponential mechanism per unit of count. The variance of the prior is estimated from the noisy counts
    themselves (empirical Bayes, see :func:`mode_probability`); if noise explains all of their spread, every key is as
    likely.
    """
    variance, excess = (2 * law.scale**2, 5.0) if law.shape == "laplace" else (law.scale**2, 2.0)
    explained = variance * (1 + _QUANTILE * math.sqrt(excess / counts.size))
    shrinkage = 1 - explained / max(float(counts.var(ddof=1)), explained)
    if shrinkage == 0:
        return 1 / counts.size
    levels = level_table("alike", _SHRUNKEN_SAMPLES, counts.size)
    normal = STANDARD_NORMAL.quantiles(levels.ravel()).reshape(levels.shape)
    mean = counts.mean()
    return _probability_of_best(
        selected, mean + shrinkage * (counts - mean)[None, :] + math.sqrt(shrinkage * variance) * normal, rate
    )


def _probability_of_best(selected: int, possible: Array, rate: float) -> float:
    """Return the probability that the selected count is the highest, from samples of the true counts.

    ``possible`` has a row of counts for each sample; it is weighted by the probability with which the exponential
    mechanism of exponent ``rate`` would have selected this key from those counts.
    """
    exponents = rate * (possible - possible[:, [selected]])
    largest = exponents.max(axis=1)
    weights = np.exp(-largest) / np.exp(exponents - largest[:, None]).sum(axis=1)
    total = float(weights.sum())
    best = possible[:, selected] >= possible.max(axis=1)
    return float(weights[best].sum()) / total if total > 0 else 0.0
