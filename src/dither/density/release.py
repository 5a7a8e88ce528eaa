"""``dp.density.release``: release a whole distribution by one of four methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dither import arguments, sensitivity
from dither.budget_hooks import covered, spends_arguments
from dither.density import ks
from dither.density.result import Density, on_simplex
from dither.errors import InvalidArgument, NotPrivate
from dither.exact import exp, up
from dither.guarantees import PureDP
from dither.inference import bin_numbers
from dither.mechanisms import Laplace
from dither.neighbors import AddRemove, Neighbors, ReplaceOne, relation
from dither.randomness import Source, bernoulli, resolve, uniform_integers
from dither.stats.column import NanPolicy, known_size, read
from dither.validation import as_table

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
    """Return a number of bins that balances the resolution of the bins against the noise of the cumulative shares.

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


Method = Literal["histogram", "perturbed", "smoothed", "ks"]

_METHODS = ("histogram", "perturbed", "smoothed", "ks")
_PRIVATE_SIZE_BINS = 100
_MAX_CELLS = 1 << 24
_WIDEST_SLICE = 5
_LARGEST = 1 << 996


@spends_arguments
def release(
    x: Any,
    bounds: Any,
    epsilon: float,
    method: Method = "histogram",
    *,
    bins: int | Sequence[int] | None = None,
    points: int | None = None,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> Density:
    """Release the distribution of the records, clipped to the bounds, epsilon-DP.

    * ``"histogram"``: counts with discrete Laplace noise (l1 sensitivity 2 under replace-one, 1 under
      add/remove, however many bins), then the nearest probabilities by least squares.
    * ``"perturbed"``: the same noise, negative counts set to zero, renormalized.
    * ``"smoothed"``: ``points`` draws from a mixture of the histogram with the uniform law.
    * ``"ks"``: ``points`` points drawn by the exponential mechanism with the Kolmogorov-Smirnov distance: a sample z
      with probability proportional to ``exp(-epsilon ceil(n KS) / 2)`` (:mod:`dither.density.ks`).

    ``bins`` and ``points`` default to rules of n and epsilon (:mod:`dither.density.release`); where n is
    private, under add/remove, to 100 bins. The last two methods are about a public number of records:
    replace-one only.

    Several dimensions: pass rows as a two-dimensional array and bounds as one pair for each column. The methods work
    on the product grid; the number of cells grows as a power, so beyond two or three columns nothing good is to be
    had. ``"ks"`` needs a narrow grid there, one long axis and few cells on the others
    (:mod:`dither.density.ks` has the cost): ``(points + 1)^D`` at most 2^18, D the product of the numbers of bins
    of all axes but the longest, and at most 5 where ``points`` is left out.

    ``x`` holds the records, one column or rows of several. ``neighbors`` is the neighboring relation, ``nan`` what
    happens to missing values (``"refuse"``, ``"lower"``: counted as the lower bound, or ``"drop"``), and ``source``
    the randomness, by default that of the operating system.

    >>> import dither as dp
    >>> release([0.2, 0.4, 0.9] * 100, bounds=(0, 1), epsilon=1, method="ks", bins=10, points=20).method
    'ks'
    """
    if method not in _METHODS:
        raise InvalidArgument(
            "method", "'histogram', 'perturbed', 'smoothed' or 'ks'", repr(method), "choose one of them"
        )
    exact_epsilon, resolved = arguments.epsilon(epsilon), resolve(source)
    if method in ("smoothed", "ks") and relation(neighbors) is AddRemove:
        raise NotPrivate(
            "method",
            "'histogram' or 'perturbed' under AddRemove",
            repr(method),
            "pass neighbors=dither.ReplaceOne if the number of records is public",
        )
    columns, limits = _columns(x, bounds, neighbors, nan)
    n = columns[0].size
    if neighbors is ReplaceOne:
        known_size(n)
    if any(abs(end) > _LARGEST for pair in limits for end in pair):
        raise InvalidArgument("bounds", "bounds of at most 1e+300", "larger ones", "measure in other units")
    shape, k = _sizes(method, bins, points, n, float(exact_epsilon), len(columns), neighbors)
    edges = tuple(
        np.linspace(float(low), float(high), cells + 1) for (low, high), cells in zip(limits, shape, strict=True)
    )
    if any(np.any(np.diff(axis_edges) <= 0) for axis_edges in edges):
        raise InvalidArgument("bins", "bins with distinct edges as floats", "narrower ones", "pass fewer bins")
    cells = _cells(columns, edges, shape)
    facts = (edges, PureDP(exact_epsilon), neighbors, method, not resolved.private)
    if method == "ks":
        return Density(_ks_weights(cells, shape, k, exact_epsilon, resolved), *facts)
    cell_count = math.prod(shape)
    if method == "smoothed":
        theta = smallest_theta(cell_count, n, k, exact_epsilon)
        counts = smoothed_draws(cells, cell_count, k, theta, resolved)
        return Density((counts / k).reshape(shape), *facts)
    mechanism = Laplace(sensitivity.histogram(neighbors=neighbors), cast(float, exact_epsilon))
    noisy = noisy_counts(np.bincount(cells, minlength=cell_count).reshape(shape), mechanism, resolved)
    if method == "perturbed":
        return Density(perturbed(noisy), *facts)
    size = n if neighbors is ReplaceOne else max(int(noisy.sum()), 1)
    return Density(on_simplex(noisy / size), *facts)


def _ks_weights(
    cells: NDArray[np.int64], shape: tuple[int, ...], k: int, epsilon: Fraction, source: Source
) -> NDArray[np.float64]:
    """Return the released share of each cell by the Kolmogorov-Smirnov mechanism, as an array of ``shape``.

    ``cells`` is the flat cell index of each record, ``k`` the number of points to release, ``epsilon`` the guarantee
    and ``source`` the randomness. The mechanism works on cumulative counts with the longest axis first, so axes are
    transposed and transposed back, and its cumulative result is turned into counts by differences along each axis.
    """
    counts = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    order = [int(axis) for axis in np.argsort([-size for size in shape], kind="stable")]  # the longest axis first
    cumulative = counts.transpose(order)
    for axis in range(len(shape)):
        cumulative = np.cumsum(cumulative, axis=axis)
    path, _ = ks.release(ks.Problem(cumulative, k), epsilon, source)
    for axis in range(len(shape)):
        path = np.diff(path, prepend=0, axis=axis)
    return np.asarray(path.transpose(np.argsort(order)) / k)


def _columns(
    x: Any, bounds: Any, neighbors: Neighbors, nan: NanPolicy
) -> tuple[list[NDArray[np.float64]], list[tuple[float, float]]]:
    """Return the records as one array of floats for each column, and the (lower, upper) bounds of each column.

    ``x`` is a table (a two-dimensional array or a data frame) with one pair in ``bounds`` for each column, or one
    column with one pair. ``neighbors`` and ``nan`` say how missing values are treated; ``"drop"`` is refused for
    tables, where it would remove cells of a row.
    """
    if getattr(x, "ndim", 1) == 2 or hasattr(x, "columns") or hasattr(x, "column_names"):
        rows = as_table(x, name="x")
        if bounds is None or not hasattr(bounds, "__len__") or len(bounds) != rows.shape[1] or len(bounds) == 0:
            raise InvalidArgument(
                "bounds",
                f"one pair (lower, upper) for each of the {rows.shape[1]} columns",
                "bounds for a different number of columns",
                "pass bounds=[(0, 1), (0, 10)], for example",
            )
        if nan == "drop":
            raise InvalidArgument(
                "nan", "'refuse' or 'lower' in several dimensions", "'drop'", "drop the rows before the release"
            )
        limits = [arguments.bounds(pair) for pair in bounds]
        return [read(rows[:, i], neighbors, nan, low).astype(np.float64) for i, (low, _) in enumerate(limits)], limits
    low, high = arguments.bounds(bounds)
    return [read(x, neighbors, nan, low).astype(np.float64)], [(low, high)]


def _sizes(
    method: str, bins: Any, points: Any, n: int, epsilon: float, dimensions: int, neighbors: Neighbors
) -> tuple[tuple[int, ...], int]:
    """Return the shape of the grid (bins on each axis), and the number of points to draw.

    ``bins`` and ``points`` are what the user passed; None is replaced by the default rule of ``method`` for ``n``
    records at ``epsilon``, or by 100 bins where n is private (``neighbors`` is ``AddRemove``). ``dimensions`` is the
    number of columns: the default total number of cells is divided among the axes, except that for ``"ks"`` all axes
    but the first get 3 bins (2 beyond two dimensions), and its points are limited by :func:`ks.most_points`. The
    histogram methods draw no points and get 1.
    """
    if method == "ks":
        cells, k = default_ks(n, epsilon)
        if bins is None and dimensions > 1:
            bins = [cells, *[3 if dimensions == 2 else 2] * (dimensions - 1)]
    elif method == "smoothed":
        cells, k = default_smoothed(n, epsilon)
    else:
        cells, k = (default_bins(n, epsilon) if neighbors is ReplaceOne else _PRIVATE_SIZE_BINS), 1
    if bins is None:
        shape = (cells,) if dimensions == 1 else (max(2, int(cells ** (1 / dimensions))),) * dimensions
    elif isinstance(bins, (Sequence, np.ndarray)):
        shape = tuple(arguments.whole(item, "bins") for item in bins)
        if len(shape) != dimensions:
            raise InvalidArgument(
                "bins",
                f"{dimensions} number(s), one for each dimension",
                f"{len(shape)}",
                "pass one number for all",
            )
    else:
        shape = (arguments.whole(bins, "bins"),) * dimensions
    if math.prod(shape) > _MAX_CELLS:
        raise InvalidArgument("bins", f"at most {_MAX_CELLS} cells in all", f"{math.prod(shape)}", "pass fewer bins")
    width = math.prod(sorted(shape)[:-1]) if method == "ks" else 1
    most = ks.most_points(width) if method == "ks" and dimensions > 1 else None
    if points is None:
        if width > _WIDEST_SLICE:  # 7 points or fewer could be drawn
            raise InvalidArgument(
                "bins",
                f"at most {_WIDEST_SLICE} cells in a slice across the longest axis, for method='ks'",
                width,
                "pass fewer bins on all axes but one, or method='histogram'",
            )
        return shape, k if most is None else min(k, most)
    if most is not None and arguments.whole(points, "points") > most:
        raise InvalidArgument(
            "points",
            f"at most {most} points on slices of {width} cells, for method='ks'",
            points,
            "pass fewer points, or fewer bins on all axes but one",
        )
    return shape, arguments.whole(points, "points")


def _cells(
    columns: list[NDArray[np.float64]], edges: tuple[NDArray[np.float64], ...], shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return the index of each record's cell in the flattened grid of ``shape``; ``columns`` are its coordinates."""
    numbers = tuple(bin_numbers(column, axis_edges) for column, axis_edges in zip(columns, edges, strict=True))
    return np.ravel_multi_index(numbers, shape)
