"""Counts of a grid with noise, and draws from a smoothed histogram."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.budget_hooks import covered
from dither.exact import exp, up
from dither.mechanisms import Laplace
from dither.randomness import Source, bernoulli, uniform_integers

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_BITS = 80


def noisy_counts(counts: Integers, mechanism: Laplace, source: Source) -> Integers:
    """Return an array of ``counts`` of any shape with discrete Laplace noise on each, drawn from ``source``.

    ``mechanism`` has the sensitivity of the whole histogram and epsilon. No ledger is charged: the caller has paid.

    >>> from dither.randomness import SeededSource
    >>> noisy_counts(np.array([5, 7]), Laplace(sensitivity=2, epsilon=1), SeededSource(1)).shape
    (2,)
    """
    result: Any = covered(mechanism.release)(counts.ravel(), source=source)
    return np.asarray(result).reshape(counts.shape)


def perturbed(noisy: Integers) -> Floats:
    """Truncate at zero and renormalize (Wasserman and Zhou 2010); uniform if nothing is left.

    >>> perturbed(np.array([3, -1, 1]))
    array([0.75, 0.  , 0.25])
    """
    nonnegative: Floats = np.maximum(noisy, 0).astype(np.float64)
    total = nonnegative.sum()
    return nonnegative / total if total > 0 else np.full(noisy.shape, 1 / noisy.size)


def smallest_theta(cells: int, records: int, points: int, epsilon: Fraction) -> Fraction:
    """Return the least weight of the uniform law with which ``points`` draws are epsilon-DP, rounded up.

    The draws are from a mixture of the histogram of ``records`` records over ``cells`` cells with the uniform law. A
    draw falls into a cell with probability ``(1 - theta) count/n + theta/m`` (n records, m cells); replacing a record
    changes a count by 1, so the ratio is at most ``1 + (1 - theta) m / (n theta)``, and k draws cost ``k ln`` of that
    (Wasserman and Zhou 2010): epsilon at ``theta = m / (m + n (exp(epsilon/k) - 1))``.

    >>> float(smallest_theta(10, 1000, 50, Fraction(1))) < 0.34
    True
    """
    # beyond exp(64) there is nothing to gain, and exp(10^6) takes minutes
    growth = Fraction(exp(min(epsilon / points, Fraction(64)), _BITS)[0], 1 << _BITS) - 1
    exact = Fraction(cells) / (cells + records * growth)
    return min(Fraction(1), Fraction(up(exact)))


def smoothed_draws(cells: Integers, number: int, points: int, theta: Fraction, source: Source) -> Integers:
    """Draw ``points`` points from (1 - theta) times the histogram of ``cells`` plus theta times the uniform law.

    Returns how many fall into each of the ``number`` cells.

    >>> from dither.randomness import SeededSource
    >>> int(smoothed_draws(np.array([0, 1, 1]), 4, 10, Fraction(1, 2), SeededSource(1)).sum())
    10
    """
    from_uniform = bernoulli(theta, points, source)
    uniform_cells = uniform_integers(number, points, source).astype(np.int64)
    from_data = cells[uniform_integers(cells.size, points, source).astype(np.int64)]
    return np.bincount(np.where(from_uniform, uniform_cells, from_data), minlength=number)


def default_bins(records: int, epsilon: float) -> int:
    """Return a number of bins that balances what a bin hides against the noise that adds up along the cumulative
    shares.

    At the middle of m bins the noise is the sum of m/2 numbers of scale 2/epsilon, about ``2 sqrt(m) / (n
    epsilon)``. A bin hides about 1/m of a rough distribution, which balances at ``(n epsilon / 2)^(2/3)``, and
    about 1/m^2 of a smooth one, which balances at ``(n epsilon)^(2/5)``. Between the two lies ``2 sqrt(n
    epsilon)``; from 2 to 4096.

    >>> default_bins(1000, 1.0)
    63
    """
    return int(min(max(2 * math.sqrt(records * epsilon), 2), 4096))


def default_smoothed(records: int, epsilon: float) -> tuple[int, int]:
    """Return the number m of bins and k of points of the smoothed histogram for n = ``records`` at ``epsilon``.

    They make ``1/(2m) + 1/sqrt(k) + theta`` smallest over m from 2 to 64: the width of a bin, the sampling error of
    the points, and the weight theta of the uniform law (:func:`smallest_theta`), which is about ``m k / (n epsilon)``.
    For given m, ``k = (n epsilon / (2 m))^(2/3)``.

    >>> default_smoothed(1000, 1.0)
    (5, 21)
    """
    best = (math.inf, 2, 1)
    for m in range(2, 65):
        k = max(1, int((records * epsilon / (2 * m)) ** (2 / 3)))
        theta = m / (m + records * math.expm1(min(epsilon / k, 50.0)))
        best = min(best, (1 / (2 * m) + 1 / math.sqrt(k) + theta, m, k))
    return best[1], best[2]


def default_ks(records: int, epsilon: float) -> tuple[int, int]:
    """Return the number V of cells and k of points of the Kolmogorov-Smirnov mechanism for n = ``records``.

    ``k = (n min(epsilon, 1))^(2/3)`` is the rate of Wasserman and Zhou 2010, and ``V = 4 sqrt(k)``, at least 2, at
    most k and at most 200. More cells show finer detail but allow the release more deviation; measured on smooth,
    skewed and heaped data, this lies between what suits the first and the last.

    >>> default_ks(1000, 1.0), default_ks(100_000, 1.0)
    ((40, 100), (185, 2154))
    """
    k = max(2, math.floor((records * min(epsilon, 1.0)) ** (2 / 3) + 1e-9))
    return max(2, min(int(4 * math.sqrt(k)), k, 200)), k
