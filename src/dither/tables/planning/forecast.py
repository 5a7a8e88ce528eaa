"""The error that is expected of an answer before it is asked for: within which 95 % of the answers of a cell will be.

A forecast is of the error, and not of the ±, which also has to cover what is hardly probable. The error of a cell has
two parts (:class:`dither.tables.planning.choose.Choice`). *Noise*, of the answer and of the profile that it was planned
with, is different in every answer. What limits and bounds leave in a cell after correction is the *same in each of
them*, and not known. Where its law is taken to be normal with a standard deviation t, it is beyond ``0.67 t`` as often
as not, so that is what is expected (:data:`_TYPICAL`), and 95 % of the answers are within the q with
``P(|b + s Z| <= q) = 95 %``, for ``b = 0.67 t``, noise of the standard deviation s and Z of the standard normal law. It
would be as if all of it were noise, ``1.96 sqrt(s^2 + t^2)``, only if cells were asked about once each.

*Quantiles.* The exponential mechanism selects a bin, of all bins of the answer, with a probability in proportion to
``exp(-m epsilon / (2 max(p, 1 - p) R))``, where m is by how many rows the bin misses the rank p
(:mod:`dither.tables.planning.quantiles`). How that law lies about the true quantile follows from where values are by
the profile: evenly in their bins, or at whole numbers. Whether the quantile is at the end of many equal values or amid
them decides most of the error, and is not known: the expected error is the mean over ranks near p.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from dither.exact.search import bisect_floats
from dither.tables.planning.plan import BINS
from dither.tables.planning.table_model import Floats, Values

_NORMAL = NormalDist()
_CONFIDENCE = 0.95
_TYPICAL = _NORMAL.inv_cdf(0.75)
"""The median size of what a normal law describes, in its standard deviations."""
_HEAVIER = 1.045
"""By how much the error (95 %) of the noise of answers exceeds that of normal noise: by 1 to 1.08 for Laplace noise."""
_WELL_KNOWN = 0.1
"""The error of a mean, in standard deviations of the values, up to which it says something even where it is near 0."""
_NEAR = np.linspace(-0.02, 0.02, 9)
"""How far ranks are off at which a quantile may be: about as far as the profile's noise hides it."""


class GroupErrors(NamedTuple):
    """Expected total errors (95 %) in the smallest group, in one of typical size, and in the largest; about how large
    the answer itself is in a typical one; and by how much values differ, where it is a mean of them, or of a quantile,
    how far values near it reach."""

    smallest: float
    typical: float
    largest: float
    answer: float
    spread: float = 0.0
    most_smallest: float = 0.0
    """What the ± of a quantile has to cover in the smallest group, in place of an interval of its own; and"""
    most_typical: float = 0.0
    """the same in a typical one."""

    @property
    def errors(self) -> tuple[float, float, float]:
        """The errors alone."""
        return self.smallest, self.typical, self.largest

    @property
    def is_mostly_noise(self) -> bool:
        """Whether the error exceeds the answer; a mean near 0 that is known well beside its values is none of these."""
        return self.typical > max(self.answer, _WELL_KNOWN * self.spread)


def mean_errors(several: Sequence[Mapping[str, GroupErrors]]) -> dict[str, GroupErrors]:
    """Return the geometric mean of what is expected, where it is not known which of several is true."""
    result = {}
    for name in several[0]:
        logarithms = np.log(np.maximum([item[name] for item in several], 1e-300)).mean(axis=0)
        result[name] = GroupErrors(*np.exp(logarithms).tolist())
    return result


def error_of_answers(total: float, noise: float) -> float:
    """Return the error within which 95 % of the answers of a cell are expected to be: ``total`` is the standard
    deviation of all of the error, ``noise`` of the part that differs from answer to answer.

    >>> round(error_of_answers(1.0, 1.0), 2), round(error_of_answers(1.0, 0.0), 2)
    (2.05, 0.67)
    """
    noise = min(noise, total)
    same = _TYPICAL * math.sqrt(max(total**2 - noise**2, 0.0))
    if noise <= 1e-6 * total:
        return same

    def covers(size: float) -> bool:
        return _NORMAL.cdf((size - same) / noise) - _NORMAL.cdf((-size - same) / noise) >= _CONFIDENCE

    share_of_noise = noise / math.hypot(noise, same)
    half = bisect_floats(covers, 0.0, same + 3 * noise, tolerance=1e-4).holds
    return half * (1 + (_HEAVIER - 1) * share_of_noise)


def error_of_quantile(
    values: Values, bounds: tuple[float, float], at: float, scale: float, off: float, whole: bool
) -> float:
    """Return the error within which 95 % of the answers to a quantile ``at`` this rank are expected to be.

    ``scale`` is by which share of the rows a bin misses the rank for it to be e times less probable, ``off`` the
    standard deviation of the rank by what limits do; ``whole`` answers have a bin each.
    """
    low, high = bounds
    number = int(high - low) + 1 if whole and high - low < BINS else BINS
    edges: Floats = low + np.arange(number + 1, dtype=np.float64) * (1.0 if number < BINS else (high - low) / BINS)
    middles = edges[:-1] if number < BINS else (edges[1:] + edges[:-1]) / 2
    up_to = values.below(edges)
    up_to[0], up_to[-1] = 0.0, 1.0  # values beyond the bounds are in the bins at the ends
    distances, chances = [], []
    for near in at + _NEAR * min(1.0, 4 * at, 4 * (1 - at)):
        true = middles[min(int(np.searchsorted(up_to[1:], near)), number - 1)]
        for rank in (near - _TYPICAL * off, near + _TYPICAL * off):
            held = min(max(rank, 0.0), 1.0)
            misses = np.maximum(0.0, np.maximum(up_to[:-1] - held, held - up_to[1:]))
            selected = np.exp(-misses / scale)
            distances.append(np.abs(middles - true))
            chances.append(selected / selected.sum())
    far, likely = np.concatenate(distances), np.concatenate(chances)
    order = np.argsort(far)
    reached = np.cumsum(likely[order])
    return float(far[order[min(int(np.searchsorted(reached, _CONFIDENCE * reached[-1])), len(far) - 1)]])


def without_noise_of(shares: Floats, deviation: float) -> Floats:
    """Return shares drawn together by as much as noise of this standard deviation drives them apart (James and Stein):
    the smallest and the largest of noisy numbers are otherwise too small and too large."""
    if len(shares) < 3:
        return shares
    mean = float(shares.mean())
    kept = max(1 - deviation**2 / max(float(shares.var(ddof=1)), 1e-300), 0.0)
    result: Floats = mean + kept * (shares - mean)
    return result


def of_three_sizes(shares: Floats) -> tuple[float, float, float]:
    """Return the shares of the smallest group, of one of typical size and of the largest; of two groups, the smaller
    one is typical, since no group is between them."""
    ordered = np.sort(shares)
    return float(ordered[0]), float(ordered[(len(ordered) - 1) // 2]), float(ordered[-1])
