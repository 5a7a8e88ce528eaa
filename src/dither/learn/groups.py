"""Noisy counts and mean rows of groups of records: classes of a classifier, clusters around centers.

A record is in one group and adds to no other, so the sums of all groups together move as far as one row is long: any
number of groups costs what one does.

>>> import dither as dp
>>> budget = GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove)
>>> groups = np.repeat([0, 1], 3000)
>>> counts = group_counts(groups, 2, budget, share=0.5)
>>> means, noise = group_means(np.repeat([[0.2], [0.7]], 3000, axis=0), groups, counts, 1.0, budget, share=0.5)
>>> bool(np.abs(means.ravel() - [0.2, 0.7]).max() < 0.05)
True
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.learn.budget import VECTOR_BITS, Floats, GaussianBudget, exact_sum, noisy_ceiling
from dither.learn.rows import row_norms

_MIN_KEPT, _NOISE_FACTOR = 0.5, 5.0
_MIN_COUNT_RATIO = 8.0


def group_counts(groups: NDArray[np.int64], size: int, budget: GaussianBudget, share: float | Fraction) -> Floats:
    """How many records are in each of so many groups; may be negative."""
    [noisy] = budget.release([(np.bincount(groups, minlength=size), 1)], share, aligned=True)
    return noisy


def group_means(
    rows: Floats,
    groups: NDArray[np.int64],
    counts: Floats,
    norm: float,
    budget: GaussianBudget,
    share: float | Fraction,
) -> tuple[Floats, Floats]:
    """The sum of the rows of each group, each clipped to ``norm``, over its count; and the deviation of the noise."""
    sums = [exact_sum(rows[groups == group], norm, budget.order) for group in range(len(counts))]
    [noisy] = budget.release([(np.stack([total for total, _ in sums]), 1 << VECTOR_BITS)], share)
    return noisy / (sums[0][1] * counts[:, np.newaxis]), norm * deviation(budget, share) / counts


def typical_length(
    rows: Floats,
    size: int,
    *,
    longest: float,
    otherwise: float,
    count: float,
    budget: GaussianBudget,
    share: float | Fraction,
) -> float:
    """A length to clip rows to that are summed in so many groups; a public one if there are too few to find out.

    With w the noise of a group's mean if nothing were clipped, it is about what a fraction 1 - 5 w of the rows stay
    below, but at least the median: clipping saves noise, and is not worth its bias where there is little.

    >>> import dither as dp
    >>> budget = GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove)
    >>> typical_length(np.ones((9, 1)), 2, longest=2.0, otherwise=0.5, count=9, budget=budget, share=0.1)
    0.5
    """
    if count < _MIN_COUNT_RATIO * deviation(budget, share, aligned=True):
        return otherwise
    kept_fraction = max(_MIN_KEPT, 1 - _NOISE_FACTOR * longest * deviation(budget, 1) * size / count)
    return noisy_ceiling(row_norms(rows, budget.order), longest, kept_fraction, count, budget, share)


def without_noise(result: Floats, noise: Floats | float) -> Floats:
    """Rows with noise of these deviations, or one row, each moved toward 0 as far as the noise explains its length.

    >>> without_noise(np.array([[1.0, 1.0], [0.1, 0.1]]), np.array([0.5, 0.5]))
    array([[0.75, 0.75],
           [0.  , 0.  ]])
    """
    square = (result * result).mean(axis=-1)
    signal_share = np.maximum(square - noise * noise, 0.0) / np.maximum(square, np.finfo(np.float64).tiny)
    return np.asarray(signal_share[..., np.newaxis] * result)


def deviation(budget: GaussianBudget, share: float | Fraction, *, aligned: bool = False) -> float:
    """The standard deviation of the noise of a part with reach 1.

    >>> import dither as dp
    >>> round(deviation(GaussianBudget(dp.PureDP(1), dp.AddRemove), 1), 3)
    1.414
    """
    return budget.ratio(share, aligned=aligned) * (math.sqrt(2) if budget.pure else 1.0)
