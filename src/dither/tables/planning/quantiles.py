"""Quantiles of one value in one group, selected among public bins by halving (:mod:`dither.inference.quantiles`).

Each is a selection among bins by the exponential mechanism, the score being by how many values a bin misses the rank
wanted.

*Values in the bin selected* go to both sides, or quantiles that fall in the same bin could not be found. Bins are cut
into :data:`PARTS` parts that hold equal shares of their values; of a bin with c values, cut in the middle of its j-th
part, ``c (2j + 1) / (2 PARTS)``, rounded down, go below. One value more makes one of the sides larger by one, never
both: splitting keeps neighbors neighbors.

*The score* of a part, in units of 1/PARTS value, is ``den * rank - num * total``, where the rank wanted is the share
num/den of all. A value more changes it by ``PARTS (den - num)`` or ``- PARTS num``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dither import inference
from dither.inference import Split, halve
from dither.mechanisms import Exponential, Laplace
from dither.tables.query.tree import Aggregate

PARTS = 4
_FINEST = 10**6  # ranks, which are multiplied by the denominator, must be whole numbers of 64 bits

_MOST = 1 << 62

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Rank(Split):
    """A quantile that is selected among bins, and those that are then selected below and above it."""

    mechanism: Exponential = field(kw_only=True)

    @property
    def parts(self) -> int:
        """The number of parts into which each bin is divided, so that a selection can split it between both sides; 1
        for the last selections."""
        return PARTS if self.below or self.above else 1


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of one value for each group, by the names of their answers."""

    shares: Mapping[str, Fraction]
    aggregate: Aggregate
    rank: Rank
    bins: int
    interval: Laplace | None = None
    """The noise of the histogram from which their intervals follow, if these were asked for."""


def levels(shares: Sequence[Fraction]) -> int:
    """Return the number of selections in which one value takes part: the depth of the tree of quantiles."""
    return inference.levels(len(shares))


def ranks(shares: Sequence[Fraction], epsilon: float, limit: int) -> Rank:
    """Return the tree in which increasing quantiles are selected, each at ``epsilon``; a person has at most ``limit``
    values. The middle one is selected first, the others among the values on its two sides."""
    return _with_mechanisms(halve(shares), epsilon, limit)


def _with_mechanisms(split: Split, epsilon: float, limit: int) -> Rank:
    """Return the tree of selections with the mechanism of each, for bins with at most ``limit`` values of a person."""
    at = split.at.limit_denominator(_FINEST)
    parts = PARTS if split.below or split.above else 1
    return Rank(
        split.share,
        at,
        None if split.below is None else _with_mechanisms(split.below, epsilon, limit),
        None if split.above is None else _with_mechanisms(split.above, epsilon, limit),
        mechanism=Exponential(limit * parts * max(at.numerator, at.denominator - at.numerator), epsilon),
    )


def choose(rank: Rank, counts: Counts) -> dict[Fraction, int]:
    """Return the bin of each quantile, from the exact ``counts`` of the bins.

    Counts are limited so that no rank exceeds 64 bits, one by one: nobody's part of a count becomes larger by that.
    """
    most = _MOST // (len(counts) * PARTS * _largest_denominator(rank))
    return rank.select_all((np.minimum(counts, most), 0), _choose_one)


def _largest_denominator(rank: Rank | None) -> int:
    """Return the largest denominator of the quantiles' ranks; 1 for none."""
    if rank is None:
        return 1
    return max(rank.at.denominator, *(_largest_denominator(side) for side in (rank.below, rank.above)))


def _choose_one(rank: Rank, bins: tuple[Counts, int]) -> tuple[int, tuple[Counts, int], tuple[Counts, int]]:
    """Select the bin of one quantile; return it, and the bins below and above as (counts, number of the first)."""
    (counts, first), parts, at = bins, rank.parts, rank.at
    fine = np.repeat(counts, parts)
    up_to = np.cumsum(fine)
    target = at.numerator * int(up_to[-1])
    misses = np.maximum(0, np.maximum(at.denominator * (up_to - fine) - target, target - at.denominator * up_to))
    bin, part = divmod(int(rank.mechanism.select_index(-misses)), parts)
    lower = int(counts[bin]) * (2 * part + 1) // (2 * parts)
    below = np.append(counts[:bin], lower), first
    above = np.insert(counts[bin + 1 :], 0, counts[bin] - lower), first + bin
    return first + bin, below, above


def intervals(
    places: Mapping[Fraction, int],
    counts: Counts,
    mechanism: Laplace,
    confidence: float = 0.95,
    cluster: float | None = None,
) -> dict[Fraction, tuple[int, int]]:
    """Return a confidence interval of bins (first, end not included) for each quantile, from a noisy histogram.

    The histogram has cells around the selected bins ``places``, wider at larger distances. For an edge with F of the n
    values below it, F - q n is a linear combination of the noisy counts, whose error is known. Edges are tested from
    the lowest up, as long as F - q n is below 0 beyond its error, so that the quantile q is above the edge; the last
    one is the lower limit. It is wrong only if the test of the first edge above the quantile fails, which has
    probability (1 - ``confidence``) / 2. The upper limit is found in the same way from above.

    With ``cluster``, the largest number that one person adds to n, the intervals are for the population from which the
    values were drawn: F - q n then has a sampling error of variance at most cluster q (1 - q) n as well
    (:mod:`dither.inference.population`).
    """
    edges = _edges_around(places.values(), len(counts))
    cells = np.add.reduceat(counts, edges[:-1])
    noisy = np.asarray(mechanism.release(cells)).astype(np.float64)
    result = {}
    for share in places:
        signs, widths = _linear_errors(len(cells), share, _scale(mechanism), confidence)
        if cluster is not None:
            z = NormalDist().inv_cdf((1 + confidence) / 2)
            sampling = cluster * float(share * (1 - share)) * max(float(noisy.sum()), 0.0)
            widths = np.sqrt(widths**2 + z * z * sampling)
        beyond = signs @ noisy
        lowest = int(np.argmin(beyond < -widths)) - 1  # the first edge is below everything
        highest = len(edges) - int(np.argmin((beyond > widths)[::-1]))
        result[share] = int(edges[max(lowest, 0)]), int(edges[min(highest, len(edges) - 1)])
    return result


def extreme_interval(
    kind: str, place: int, counts: Counts, mechanism: Laplace, confidence: float = 0.95
) -> tuple[int, int]:
    """Return a confidence interval of bins (first, end not included) for the largest ("max") or smallest ("min") value.

    For a maximum the upper limit is the last bin, since noise can hide a single value there. For the lower limit a
    noisy histogram of cells around the chosen bin ``place`` is released, and edges are tested from the lowest up, as
    long as the noisy number of values above an edge shows that there are some. The limit is wrong only if the test of
    the first edge without values above it fails, which has probability 1 - ``confidence``.
    """
    if kind == "min":
        low, high = extreme_interval("max", len(counts) - 1 - place, counts[::-1], mechanism, confidence)
        return len(counts) - high, len(counts) - low
    edges = _edges_around([place], len(counts))
    noisy = np.asarray(mechanism.release(np.add.reduceat(counts, edges[:-1]))).astype(np.float64)
    above = noisy[::-1].cumsum()[::-1]
    number = np.arange(len(noisy), 0, -1)
    widths = _scale(mechanism) * _tail_of_sums(len(noisy), confidence)[number - 1] + number / 2
    beyond = np.append(above > widths, False)
    return int(edges[max(int(np.argmin(beyond)) - 1, 0)]), len(counts)


@functools.lru_cache(maxsize=64)
def _tail_of_sums(most: int, confidence: float) -> NDArray[np.float64]:
    """Return quantiles at ``confidence`` of the sums of 1, 2, … most standard Laplace variables: exact for one, by
    Cornish and Fisher's expansion for more, and never less than for one."""
    number = np.arange(1, most + 1)
    z = NormalDist().inv_cdf(confidence)
    normal = np.sqrt(2 * number) * (z + (z**3 - 3 * z) / 24 * 3 / number)
    result: NDArray[np.float64] = np.maximum(normal, -np.log(2 * (1 - confidence)))
    return result


def _scale(mechanism: Laplace) -> float:
    """Return the scale of Laplace noise with one sensitivity."""
    scale = mechanism.scale
    assert isinstance(scale, float)  # one sensitivity has one scale
    return scale


def _edges_around(places: Iterable[int], bins: int) -> NDArray[np.int64]:
    """Return edges of cells around these bins: next to them, and at distances of powers of two."""
    steps = [0, *(1 << k for k in range(bins.bit_length()))]
    edges = {0, bins}
    for place in places:
        edges |= {place - step for step in steps} | {place + 1 + step for step in steps}
    return np.array(sorted(edge for edge in edges if 0 <= edge <= bins), dtype=np.int64)


@functools.lru_cache(maxsize=64)
def _linear_errors(
    cells: int, share: Fraction, scale: float, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the factors of the cells in ``F - q n`` for each edge, and what their noise exceeds with half of ``1 -
    confidence``: a sum of Laplace noise, nearly normal, corrected for its fourth moment (Cornish and Fisher)."""
    factors = np.tri(cells + 1, cells, -1) - float(share)
    squares = (factors**2).sum(axis=1)
    excess = 3 * (factors**4).sum(axis=1) / np.maximum(squares, 1e-300) ** 2
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    widths = scale * np.sqrt(2 * squares) * (z + (z**3 - 3 * z) / 24 * excess)
    return factors, widths + np.abs(factors).sum(axis=1) / 2  # whole numbers of noise


def errors(rank: Rank, bins: int, confidence: float = 0.95) -> dict[Fraction, float]:
    """Return a bound on the error in rank of each quantile, at this confidence, not counting values that share a bin.

    It is the error of its own selection plus that part of the error of the selection before which moved its values.
    """
    level = 1 - (1 - confidence) / rank.depth

    def error(rank: Rank, before: float) -> tuple[float, float, float]:
        """Return the error of a selection, and what it adds to those below and above."""
        off = before + rank.mechanism.error(bins * rank.parts, level) / (rank.parts * rank.at.denominator)
        below = off * float(rank.below.at) if rank.below is not None else 0.0
        above = off * float(1 - rank.above.at) if rank.above is not None else 0.0
        return off, below, above

    return rank.select_all(0.0, error)
