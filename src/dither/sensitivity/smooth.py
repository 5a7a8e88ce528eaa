"""Local sensitivity at a distance, and the smooth sensitivity that repairs it.

The local sensitivity of f at x, how far f moves when one record of x is replaced, leaks: it changes with x. Let
``A_k(x)`` bound the local sensitivity of every table that differs from x in at most k records. Then

    S(x) = max over k of exp(-k beta) A_k(x)

is at least the local sensitivity and changes by a factor of at most exp(beta) when a record is replaced, since
``A_k(x) <= A_{k+1}(y)`` for neighbors x, y (Nissim, Raskhodnikova and Smith 2007). All of this is about
:data:`~dither.ReplaceOne`.

For an order statistic of rank m, ``A_k = max over t = 0..k+1 of x_(m+t) - x_(m+t-k-1)``, records beyond the
ends being the bounds. For others a bound with the same two properties will do, and is given with each.

Rounding: floats are off by less than a relative 2^-44. S is computed for a beta that is 2^-42 smaller and
raised by 2^-43, so what is returned is an upper bound, and smooth for the beta that was asked for. It is never
below 2^-500 of the width of the bounds, where exp(-k beta) would lose its digits and vanish for x but not for
its neighbor: the maximum with a constant is smooth too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidArgument, InvalidData, NotPrivate
from dither.exact import decimal, exactly, square_root, up
from dither.exact.search import bisect_integers
from dither.validation import as_values

Floats = NDArray[np.float64]

_LESS = 2.0**-42
_MORE = 1 + 2.0**-43
_MIN_RELATIVE = 2.0**-500


def _sorted(x: Any, bounds: Any, at_least: int = 1) -> tuple[Floats, float, float]:
    """Return the records of ``x`` in increasing order, clipped to ``bounds``, and the two bounds as floats.

    Fewer than ``at_least`` records and missing values are refused.
    """
    low, high = ends(bounds)
    floats = as_values(x, "number").floats()
    if floats.size < at_least:
        raise InvalidArgument(
            "x", f"at least {at_least} record(s)", f"{floats.size}", "the number of records is public here"
        )
    if np.any(np.isnan(floats)):
        raise InvalidData("x", "numbers", "missing values among them", "replace it by a bound before")
    return np.sort(np.clip(floats, low, high)), low, high


def ends(bounds: Any) -> tuple[float, float]:
    """Return the bounds as floats; refuse bounds whose difference could overflow or underflow.

    >>> ends((0, 120))
    (0.0, 120.0)
    """
    lower, upper = arguments.bounds(bounds)
    if not (max(abs(lower), abs(upper)) < 2.0**900 and float(upper) - float(lower) > 2.0**-500):
        raise InvalidArgument(
            "bounds",
            "bounds below 1e+270 whose difference is above 1e-150",
            "bounds beyond that",
            "measure in another unit",
        )
    return float(lower), float(upper)


def _beta(beta: object) -> float:
    """Return beta less a margin of 2^-42, so that a sensitivity computed with it in floats is an upper bound."""
    exact_beta = arguments.positive(beta, "beta")
    if not _LESS * 4 < exact_beta <= 100:
        raise InvalidArgument(
            "beta", "a number above 1e-12 and at most 100", beta, "take it from dither.SmoothNoise(...).beta"
        )
    return exact_beta - _LESS


def rank_of(q: object, n: int) -> int:
    """Return the rank, from 1, of the q-quantile among n sorted records: ``ceil(q n)``.

    >>> rank_of(0.5, 101), rank_of(0, 5), rank_of(0.25, 8)
    (51, 1, 2)
    """
    share = decimal(q, "q")
    if not 0 <= share <= 1:
        raise InvalidArgument("q", "a number from 0 to 1", q, "pass q=0.5 for the median")
    return min(max(math.ceil(share * n), 1), n)


def local_order(x: Any, rank: int, bounds: Any, distance: int = 0) -> float:
    """Return the largest local sensitivity of the order statistic of rank m over tables at most k = ``distance``
    records away.

    It is the largest ``x_(m + t) - x_(m + t - k - 1)``, t from 0 to k + 1; the bounds stand beyond both ends.

    >>> [round(local_order([1, 2, 4, 8, 16], 3, (0, 100), distance=k), 9) for k in (0, 1)]
    [4.0, 12.0]
    """
    ordered, low, high = _sorted(x, bounds)
    m, k = _checked_rank(rank, ordered.size), arguments.whole(distance, "distance", 0)
    window = min(k + 1, ordered.size + 1)
    padded = np.concatenate([np.full(window + 1, low), ordered, np.full(window + 1, high)])
    center = window + m  # the index of x_(m) in `padded`
    if k + 1 > window:
        return high - low
    t = np.arange(k + 2)
    return float(_difference(padded[center + t], padded[center + t - k - 1]).max())


def _difference(a: Floats, b: Floats) -> Floats:
    """Return a - b, rounded up; exactly where it is a float, so that a limit that is just met is not exceeded."""
    result = a - b
    b_rounded = result - a
    rounding_error = (a - (result - b_rounded)) - (b + b_rounded)  # the rounding error, exactly
    rounded: Floats = np.where(rounding_error > 0, np.nextafter(result, np.inf), result)
    return rounded


def _checked_rank(rank: int, n: int) -> int:
    """Return the rank as a whole number from 1 to n."""
    m = arguments.whole(rank, "rank")
    if m > n:
        raise InvalidArgument("rank", f"at most the number of records, {n}", rank, "count from 1")
    return m


def smooth_order(x: Any, rank: int, bounds: Any, beta: float) -> float:
    """Return the beta-smooth sensitivity of the order statistic of this rank, in O(n log n).

    ``S = max over i <= m <= j of (x_j - x_i) exp(-beta (j - i - 1))``. For fixed i the best j does not decrease
    with i (Nissim et al.), so halving the range of i halves the ranges of j: log n levels of n values. Pairs with
    so large a j - i that even the whole range, times exp(-beta (j - i - 1)), is below the value of adjacent records
    need not be examined.

    >>> round(smooth_order([1, 2, 4, 8, 16], 3, (0, 100), 1.0), 6)      # (100 - 4) exp(-2)
    12.992187
    """
    ordered, low, high = _sorted(x, bounds)
    return _smooth(ordered, _checked_rank(rank, ordered.size), low, high, _beta(beta)) * _MORE


def _smooth(ordered: Floats, m: int, low: float, high: float, beta: float) -> float:
    """Return the smooth sensitivity of the record of rank ``m`` (from 1) at ``beta``, rounded up.

    ``ordered`` are the sorted records and ``low`` and ``high`` the bounds. It is the largest ``(x_j - x_i) exp(-beta
    (j - i - 1))`` with i <= m <= j, j > i. Only windows that could hold a larger value than a few quick pairs are
    searched.
    """
    n = ordered.size
    padded = np.concatenate([[low], ordered, [high]])  # x_(0) to x_(n+1)
    whole = high - low
    distances = [1 << i for i in range(n.bit_length())]
    pairs = [(max(m - k, 0), min(m + k, n + 1)) for k in distances] + [(m - 1, m), (m, m + 1)]
    floor = max(float(padded[j] - padded[i]) * math.exp(-beta * (j - i - 1)) for i, j in pairs)
    # beyond `window` even the whole range is worth less than one of these pairs; records beyond the ends are the
    # bounds, and the nearest is the best
    window = min(n + 1, int(math.log(whole / floor) / beta) + 2) if floor > whole * 1e-300 else n + 1
    first, last = max(0, m - window), min(n + 1, m + window)
    left, right = np.arange(first, m + 1), np.arange(m, last + 1)
    return max(_best_pair(padded, left, right, beta), whole * _MIN_RELATIVE)


def _best_pair(padded: Floats, left: NDArray[np.int64], right: NDArray[np.int64], beta: float) -> float:
    """Return the largest ``(x_j - x_i) exp(-beta (j - i - 1))``, j > i, for i in ``left`` and j in ``right``.

    ``padded`` holds x, with the bounds at both ends. The best j does not decrease as i grows, so the best j of the
    middle i splits the problem in two (divide and conquer, a monotone matrix search); all parts of one level are done
    at once.
    """
    best = 0.0
    # a node: rows a..b of `left` still to do, and the columns their best j lies in
    starts, ends = np.array([0]), np.array([left.size - 1])
    lows, highs = np.array([0]), np.array([right.size - 1])
    while starts.size:
        middle = (starts + ends) // 2
        widths = highs - lows + 1
        offsets = np.concatenate([[0], np.cumsum(widths)[:-1]])
        columns = np.arange(int(widths.sum())) - np.repeat(offsets - lows, widths)
        rows = np.repeat(middle, widths)
        i, j = left[rows], right[columns]
        values = (padded[j] - padded[i]) * np.exp(-beta * np.maximum(j - i - 1, 0))
        tops = np.maximum.reduceat(values, offsets)
        best = max(best, float(tops.max()))
        hits = np.flatnonzero(values == np.repeat(tops, widths))
        owner = np.searchsorted(offsets, hits, side="right") - 1
        _, first_hit = np.unique(owner, return_index=True)
        chosen = columns[hits[first_hit]]
        upper, lower = middle > starts, middle < ends
        starts, ends, lows, highs = (
            np.concatenate([starts[upper], middle[lower] + 1]),
            np.concatenate([middle[upper] - 1, ends[lower]]),
            np.concatenate([lows[upper], chosen[lower]]),
            np.concatenate([chosen[upper], highs[lower]]),
        )
    return best


def smooth_quantile(x: Any, q: float, bounds: Any, beta: float) -> float:
    """Return the beta-smooth sensitivity of the q-quantile, the record of rank ``ceil(q n)``.

    >>> smooth_quantile([1, 2, 4, 8, 16], 0.5, (0, 100), 1.0) == smooth_median([1, 2, 4, 8, 16], (0, 100), 1.0)
    True
    """
    ordered, low, high = _sorted(x, bounds)
    return _smooth(ordered, rank_of(q, ordered.size), low, high, _beta(beta)) * _MORE


def smooth_median(x: Any, bounds: Any, beta: float) -> float:
    """Return the beta-smooth sensitivity of the median (for an even number of records, of the lower of the two in the
    middle).

    >>> smooth_median([5.0] * 101, (0, 10), 1.0) < 1e-15
    True
    """
    return smooth_quantile(x, 0.5, bounds, beta)


def local_median(x: Any, bounds: Any, distance: int = 0) -> float:
    """Return the local sensitivity of the median, over tables at most ``distance`` records away; releasing it, or
    noise of its size, leaks.

    >>> round(local_median([1, 2, 4, 8, 16], (0, 100)), 9)
    4.0
    """
    return local_order(x, rank_of(0.5, len(x)), bounds, distance)


def smooth_min(x: Any, bounds: Any, beta: float) -> float:
    """Return the beta-smooth sensitivity of the minimum.

    >>> smooth_min([3, 4, 5], (0, 10), 1.0) > 2.9
    True
    """
    return smooth_order(x, 1, bounds, beta)


def smooth_max(x: Any, bounds: Any, beta: float) -> float:
    """Return the beta-smooth sensitivity of the maximum.

    >>> smooth_max([3, 4, 5], (0, 10), 1.0) > 4.9
    True
    """
    return smooth_order(x, len(x), bounds, beta)


def smooth_mean(x: Any, bounds: Any, beta: float) -> float:
    """Return the smooth sensitivity of the mean, about (upper - lower)/n.

    A record may be replaced by one at either bound whatever the others are, so local, smooth and global sensitivity are
    almost equal.

    Local: ``max(x_(n) - lower, upper - x_(1)) / n``; one step away it is already that of a record at a bound:
    (upper - lower)/n. Hence ``S = max(local, exp(-beta) (upper - lower)/n)``. Over an unbounded population
    there is no smooth bound: it is infinite one step away.

    ``x`` are the records, ``bounds`` the (lower, upper) bounds to which they are clipped, and ``beta`` is the
    smoothness.

    >>> round(smooth_mean([4.0, 6.0], (0, 10), 10.0), 6)
    3.0
    """
    if bounds is None or (isinstance(bounds, (tuple, list)) and any(end in (math.inf, -math.inf) for end in bounds)):
        raise NotPrivate(
            "bounds",
            "finite bounds: without them one record moves the mean without limit, and no smooth bound exists",
            "none",
            "bound the population",
        )
    ordered, low, high = _sorted(x, bounds)
    local = max(float(ordered[-1]) - low, high - float(ordered[0]))
    return max(local, (high - low) * math.exp(-_beta(beta))) / ordered.size * _MORE


def smooth_trimmed_mean(x: Any, trim: float, bounds: Any, beta: float) -> float:
    """Return a beta-smooth bound for the mean without the ``l = floor(trim n)`` smallest and largest records.

    Replacing one record replaces one in the sorted middle and shifts others by one rank: the mean moves by at
    most ``U_0 = (x_(n-l+1) - x_(l)) / (n - 2l)``. ``U_k = (x_(n-l+1+k) - x_(l-k)) / (n - 2l)`` is at least the
    same of any table k records away.

    ``x`` are the records, ``trim`` is the share left out on each side, ``bounds`` are the (lower, upper) bounds to
    which records are clipped, and ``beta`` is the smoothness.

    >>> smooth_trimmed_mean([0, 5, 5, 5, 5, 5, 5, 5, 5, 10], 0.2, (0, 10), 1.0) < 10 / 6
    True
    """
    ordered, low, high = _sorted(x, bounds)
    n, share = ordered.size, arguments.positive(trim, "trim")
    cuts = {math.floor(share * n), math.floor(decimal(trim) * n)}  # 0.29 of 100: 28 in floats, 29 in decimals
    if share >= 0.5 or min(cuts) < 1:
        raise InvalidArgument(
            "trim",
            "a share below 0.5 that leaves out at least one record on each side",
            trim,
            "pass trim=0.1 and enough records",
        )
    padded, rate = np.concatenate([[low], ordered, [high]]), _beta(beta)
    result = []
    for cut in cuts:
        k = np.arange(cut + 1)
        spread = padded[n - cut + 1 + k] - padded[cut - k]
        result.append(max(float((spread * np.exp(-rate * k)).max()), (high - low) * _MIN_RELATIVE) / (n - 2 * cut))
    return max(result) * _MORE


def smooth_iqr(x: Any, bounds: Any, beta: float) -> float:
    """Return a beta-smooth bound for the interquartile range: the sum of those of the quartiles, each of them smooth.

    ``x`` are the records, ``bounds`` the (lower, upper) bounds to which they are clipped, and ``beta`` is the
    smoothness.

    >>> smooth_iqr(list(range(101)), (0, 100), 0.5) < 100
    True
    """
    ordered, low, high = _sorted(x, bounds)
    n, rate = ordered.size, _beta(beta)
    quartiles = [_smooth(ordered, rank_of(q, n), low, high, rate) for q in (0.25, 0.75)]
    return (quartiles[0] + quartiles[1]) * _MORE


def distance_to_exceed(x: Any, rank: int, bounds: Any, limit: float) -> int:
    """Return the least number of records to replace until the local sensitivity of an order statistic exceeds
    ``limit``.

    The statistic is the record of ``x`` of this ``rank``, from 1, clipped to ``bounds``. The number is 0 if the local
    sensitivity exceeds the limit already, and n + 1 if no records within the bounds can make it. ``A_k`` grows with k:
    bisection.

    >>> distance_to_exceed([1, 2, 4, 8, 16], 3, (0, 100), 4.5)
    1
    """
    ordered, low, high = _sorted(x, bounds)
    n, limit = ordered.size, float(exactly(limit, "limit"))
    if high - low <= limit:
        return n + 1
    return bisect_integers(lambda k: local_order(ordered, rank, (low, high), k) > limit, -1, n).holds


def linear(matrix: Sequence[Sequence[float]] | NDArray[Any], *, norm: int = 1) -> float:
    """Return the sensitivity of linear queries ``matrix @ counts`` when one of the counts changes by 1: the largest
    norm of a column.

    >>> linear([[1, 0], [1, 1]])
    2.0
    """
    try:
        table = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 2 or table.size == 0 or not np.all(np.isfinite(table)):
        raise InvalidArgument(
            "matrix",
            "a two-dimensional table of finite numbers",
            "a different shape, or numbers that are not finite",
            "one row for each query",
        )
    if arguments.whole(norm, "norm") not in (1, 2):
        raise InvalidArgument("norm", "1 or 2", norm, "l1 for Laplace noise, l2 for Gaussian noise")
    sums = [sum((abs(Fraction(entry)) ** norm for entry in column), Fraction(0)) for column in table.T.tolist()]
    largest = max(sums)
    return up(largest) if norm == 1 else up(Fraction(square_root(largest, 96)[1], 1 << 96))
