"""Quantiles of sums of Laplace noises, for the error of the tree."""

from __future__ import annotations

import math
from functools import lru_cache

from scipy.optimize import brentq
from scipy.special import gammaincc


def laplace_sum_tail(x: float, terms: int) -> float:
    """P(|S| > x) for the sum S of so many independent standard Laplace variables.

    S is the difference of two waits for the m-th arrival. When the m-th arrival of one process comes, the other has had
    k with probability ``C(m-1+k, k) / 2^(m+k)``; if k < m, it still waits for m - k.

    >>> round(laplace_sum_tail(1.0, 1), 10) == round(math.exp(-1), 10)
    True
    """
    total = 0.0
    for k in range(terms):
        total += math.comb(terms - 1 + k, k) * 0.5 ** (terms + k) * float(gammaincc(terms - k, x))
    return 2 * total


@lru_cache(maxsize=4096)
def _whole(tail: float, terms: int) -> float:
    top = math.sqrt(2 * terms) * (4 - 2 * math.log(tail))
    return float(brentq(lambda x: laplace_sum_tail(x, terms) - tail, 0.0, top)) / math.sqrt(2 * terms)


def laplace_quantile(tail: float, terms: float) -> float:
    """The size that such a sum exceeds with probability ``tail``, in units of its standard deviation; between whole
    numbers of terms interpolated, for sums of Laplace noises of different scales with the same kurtosis.

    >>> round(laplace_quantile(0.05, 1), 3), round(laplace_quantile(0.05, 50), 3)
    (2.118, 1.964)
    """
    low = max(1, math.floor(terms))
    share = max(0.0, terms - low)
    return (1 - share) * _whole(tail, low) + (share * _whole(tail, low + 1) if share else 0.0)
