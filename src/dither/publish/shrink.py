"""Counts from noisy counts by empirical Bayes: what counts like this one turned out to be.

Most cells of a fine table are empty or nearly so. Setting negative estimates to zero leaves the positive ones, which in
an empty region are all noise, and the sum grows; taking it back from all cells alike takes it from the dense ones. Here
the law of the counts themselves is estimated first, from all noisy counts of cells that are alike (whose parents have
similar averages): the mixture of normal laws around whole counts that makes the noisy counts most likely (Kiefer and
Wolfowitz 1956; found by expectation maximization). The mean of the posterior law is then the estimate: near zero where
most are empty, and the noisy count itself where counts are far from zero. It uses only numbers that were released.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dither.publish.contrasts import Floats
from dither.publish.domain import Integers

_LEAST_GROUP = 30
_SIZES = 8192
_MEMBERS_PER_ITERATION, _FEWEST, _MOST = 5, 10, 300
"""The more counts there are, the more iterations: few counts should not be followed too closely."""
_FAR = 30.0
"""Counts beyond so many deviations are left as they are."""
_POINTS_PER_DEVIATION = 4
_LEAST_SHARE = 0.01
_LEAST_WEIGHT = 1e-12
_TINY = 1e-300


def shrink(noisy: Floats, variance: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """The posterior mean and variance of each count.

    Parameters
    ----------
    noisy, variance
        Noisy counts, and the variances of their noise.
    expected
        What each count would be if those of one parent were equal: cells of similar expectation are alike.

    Examples
    --------
    >>> mean, variance = shrink(np.tile([-3.0, -1.0, 0.0, 1.0, 3.0], 20), np.full(100, 4.0), np.full(100, 0.1))
    >>> bool(np.all(mean >= 0) and mean.max() < 0.5)
    True
    """
    mean, spread = np.maximum(noisy, 0.0), variance.copy()
    mean[expected <= 0] = spread[expected <= 0] = 0.0
    kinds = _alike(variance, expected)
    order = np.argsort(kinds, kind="stable")
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(kinds[order])) + 1, [len(kinds)]])
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        members = order[start:stop]
        if kinds[members[0]] < 0:
            continue
        deviation = float(np.sqrt(variance[members].mean()))
        members = members[noisy[members] < _FAR * deviation]
        if len(members) >= _LEAST_GROUP:
            mean[members], spread[members] = _posterior(noisy[members], deviation)
    spread = np.maximum(spread, _LEAST_SHARE * variance)
    spread[expected <= 0] = 0.0
    return mean, spread


def _alike(variance: Floats, expected: Floats) -> Integers:
    """A number for each cell: the same where variance and expectation are within a factor; -1 where there is nothing
    to estimate."""
    known = (variance > 0) & (expected > 0)
    with np.errstate(divide="ignore"):
        noise = np.rint(2 * np.log2(np.where(known, variance, 1.0)))
        size = np.rint(1.5 * np.log2(np.where(known, expected, 1.0)))
    kinds = ((noise + 4096) * _SIZES + size + 4096).astype(np.int64)
    return np.where(known, _merged(kinds, known), -1)


def _merged(kinds: Integers, known: NDArray[np.bool_]) -> Integers:
    """Kinds of one variance and of neighboring expectations in one, until each has enough members."""
    different, which, counts = np.unique(kinds[known], return_inverse=True, return_counts=True)
    merged = np.empty_like(different)
    start, members = 0, 0
    for i, kind in enumerate(different.tolist()):
        members += int(counts[i])
        last_of_variance = i + 1 == len(different) or different[i + 1] // _SIZES != kind // _SIZES
        if last_of_variance and members < _LEAST_GROUP and start and different[start - 1] // _SIZES == kind // _SIZES:
            merged[start : i + 1] = merged[start - 1]
        else:
            merged[start : i + 1] = kind
        if members >= _LEAST_GROUP or last_of_variance:
            start, members = i + 1, 0
    result = kinds.copy()
    result[known] = merged[which]
    return result


def _posterior(noisy: Floats, deviation: float) -> tuple[Floats, Floats]:
    """The posterior mean and variance of counts of one kind, by a table over the range of the noisy counts."""
    low, high = float(noisy.min()), float(noisy.max())
    points = max(int((high - low) / deviation * _POINTS_PER_DEVIATION), 16)
    at = np.linspace(low, high, points + 1)
    place = (noisy - low) * (points / max(high - low, 1e-300))
    observed = np.bincount(np.rint(place).astype(np.int64), minlength=points + 1).astype(np.float64)
    support = _support(max(high, 0.0) + deviation, deviation)
    exponent = -0.5 * ((at[:, np.newaxis] - support) / deviation) ** 2
    likelihood = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    weights = 1 / (1 + support)
    for _ in range(min(max(len(noisy) // _MEMBERS_PER_ITERATION, _FEWEST), _MOST)):
        joint = likelihood * weights
        weights = (observed / (joint.sum(axis=1) + _TINY)) @ joint / observed.sum()
    joint = likelihood * np.maximum(weights, _LEAST_WEIGHT)
    joint /= joint.sum(axis=1, keepdims=True)
    mean = joint @ support
    variance = np.maximum(joint @ support**2 - mean**2, 0.0)
    return np.interp(noisy, at, mean), np.interp(noisy, at, variance)


def _support(highest: float, deviation: float) -> Floats:
    """Whole counts up to the highest: all of them at first, then in steps of half a deviation."""
    step = max(deviation / 2, 1.0)
    near = np.arange(0.0, min(highest, 4 * step, 40.0) + 1)
    return np.unique(np.rint(np.concatenate([near, np.arange(0.0, highest + step, step)])))
