"""``dp.density.release``: release a whole distribution by one of four methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dither import arguments, sensitivity
from dither.budget_hooks import spends_arguments
from dither.density import histograms, ks, ks_grid
from dither.density.result import Density, on_simplex
from dither.errors import InvalidArgument, NotPrivate
from dither.guarantees import PureDP
from dither.inference import bin_numbers
from dither.mechanisms import Laplace
from dither.neighbors import AddRemove, Neighbors, ReplaceOne, relation
from dither.randomness import Source, resolve
from dither.stats.column import NanPolicy, known_size, read
from dither.validation import as_table

Method = Literal["histogram", "perturbed", "smoothed", "ks"]

_METHODS = ("histogram", "perturbed", "smoothed", "ks")
_PRIVATE_SIZE_BINS = 100
_MAX_CELLS = 1 << 24
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

    ``bins`` and ``points`` default to rules of n and epsilon (:mod:`dither.density.histograms`); where n is
    private, under add/remove, to 100 bins. The last two methods are about a public number of records:
    replace-one only.

    Several dimensions: pass rows as a two-dimensional array and bounds as one pair for each column. The methods work
    on the product grid; the number of cells grows as a power, so beyond two or three columns nothing good is to be
    had. ``"ks"`` needs a narrow grid there, one long axis and few cells on the others
    (:mod:`dither.density.ks_grid` has the cost): ``(points + 1)^D`` at most 2^18, D the product of the numbers of bins
    of all axes but the longest.

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
        raise InvalidArgument("bins", "bins that floats can tell apart", "narrower ones", "pass fewer bins")
    cells = _cells(columns, edges, shape)
    facts = (edges, PureDP(exact_epsilon), neighbors, method, not resolved.private)
    if method == "ks":
        return Density(_ks_weights(cells, shape, k, exact_epsilon, resolved), *facts)
    cell_count = math.prod(shape)
    if method == "smoothed":
        theta = histograms.smallest_theta(cell_count, n, k, exact_epsilon)
        counts = histograms.smoothed_draws(cells, cell_count, k, theta, resolved)
        return Density((counts / k).reshape(shape), *facts)
    mechanism = Laplace(sensitivity.histogram(neighbors=neighbors), cast(float, exact_epsilon))
    noisy = histograms.noisy_counts(np.bincount(cells, minlength=cell_count).reshape(shape), mechanism, resolved)
    if method == "perturbed":
        return Density(histograms.perturbed(noisy), *facts)
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
    line = len(shape) == 1
    problem: ks.Problem = ks.PathProblem(tuple(cumulative.tolist()), k) if line else ks_grid.GridProblem(cumulative, k)
    path, _ = ks.release(problem, epsilon, source)
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
    but the first get 3 bins (2 beyond two dimensions), and its points are limited by :func:`ks_grid.most_points`. The
    histogram methods draw no points and get 1.
    """
    if method == "ks":
        cells, k = histograms.default_ks(n, epsilon)
        if bins is None and dimensions > 1:
            bins = [cells, *[3 if dimensions == 2 else 2] * (dimensions - 1)]
    elif method == "smoothed":
        cells, k = histograms.default_smoothed(n, epsilon)
    else:
        cells, k = (histograms.default_bins(n, epsilon) if neighbors is ReplaceOne else _PRIVATE_SIZE_BINS), 1
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
    most = ks_grid.most_points(math.prod(sorted(shape)[:-1])) if method == "ks" and dimensions > 1 else None
    if points is None:
        return shape, k if most is None else max(1, min(k, most))
    if most is not None and arguments.whole(points, "points") > most:
        raise InvalidArgument(
            "points",
            f"at most {most} points on slices of {math.prod(sorted(shape)[:-1])} cells, for method='ks'",
            points,
            "pass fewer points, or fewer bins on all axes but one",
        )
    return shape, arguments.whole(points, "points")


def _cells(
    columns: list[NDArray[np.float64]], edges: tuple[NDArray[np.float64], ...], shape: tuple[int, ...]
) -> NDArray[np.int64]:
    numbers = tuple(bin_numbers(column, axis_edges) for column, axis_edges in zip(columns, edges, strict=True))
    return np.ravel_multi_index(numbers, shape)
