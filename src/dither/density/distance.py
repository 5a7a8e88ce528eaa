"""The Kolmogorov-Smirnov distance of samples and released distributions, in any number of dimensions.

*Definition.* ``KS(F, G) = sup over t of |F(t) - G(t)|``, F(t) the probability of the records that are at most t in
every coordinate: the natural extension of the distance on the line to several dimensions. It depends on the direction
of the axes, and not on their scale.

*Two samples.* F - G is constant between coordinates of the records, so the supremum is the largest and the smallest sum
of the weights of the records below a point, ``1/n`` for those of one sample and ``-1/m`` for the others. It is found by
divide and conquer (after Overmars and Yap 1991, and Chan 2013): a record that covers a box of points in all
coordinates but one adds a function of that coordinate alone to the sums in that box; such functions are added up,
and of a coordinate only the largest value between two of the remaining records counts; then the box is cut in two at
the median of the remaining records. This takes of order ``N log N`` for two dimensions and ``N^(r/2)`` for r, times a
logarithm, for N records in all; boxes that cannot exceed the largest sum found before are left out. Sums are integers,
so the result is exact up to one division.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.density.result import Density, Floats, on_grid
from dither.errors import InvalidArgument, InvalidData
from dither.validation import as_table, as_values

Integers = NDArray[np.int64]

_DENSE = 1 << 14
"""A box with at most this many cells is summed up cell by cell."""
_MAX_CELLS = 1 << 28


def ks_distance(x: Any, y: Any) -> float:
    """Return the largest difference of the distribution functions of two samples, or released distributions.

    Parameters
    ----------
    x, y
        Each a sample (an array, or rows in several dimensions), or a :class:`Density`. One sample and one density are
        compared on the grid of all coordinates, of which there may be 2^28.

    Notes
    -----
    The distance is not private: that of a release to the data is a function of the data.

    Examples
    --------
    >>> import numpy as np
    >>> ks_distance([1.0, 2.0, 3.0], [2.0, 3.0, 4.0, 5.0])
    0.5
    >>> corners = np.array([[0, 0], [1, 1]])
    >>> ks_distance(corners, corners[:, ::-1] * [1, -1] + [0, 1])
    0.5
    """
    pair = [item if isinstance(item, Density) else _sample(item) for item in (x, y)]
    dimensions = [item.dimensions if isinstance(item, Density) else item.shape[1] for item in pair]
    if dimensions[0] != dimensions[1]:
        raise InvalidArgument(
            "y", f"{dimensions[0]} dimension(s), as x has", str(dimensions[1]), "pass data with as many columns"
        )
    first, second = pair
    if isinstance(first, Density) and isinstance(second, Density):
        lines = tuple(np.union1d(a, b) for a, b in zip(first.edges, second.edges, strict=True))
        _check_size(lines)
        # between vertices the difference is linear in each coordinate
        return float(np.abs(on_grid(first, lines) - on_grid(second, lines)).max())
    if isinstance(first, Density):
        assert not isinstance(second, Density)
        return _to_density(second, first)
    if isinstance(second, Density):
        return _to_density(first, second)
    return _between_samples(first, second)


def _sample(data: Any) -> Floats:
    """Return a sample as a matrix of finite floats with a row for each record; a single column has rows of one."""
    several = getattr(data, "ndim", 1) == 2 or hasattr(data, "columns") or hasattr(data, "column_names")
    rows: Floats = as_table(data, name="x") if several else as_values(data, name="x").floats()[:, np.newaxis]
    if rows.size == 0:
        raise InvalidData("x", "at least one record", "none", "pass some")
    if not np.isfinite(rows).all():
        raise InvalidData("x", "finite numbers", "NaN or infinity", "drop the rows before")
    return rows


def _between_samples(x: Floats, y: Floats) -> float:
    """Return the largest difference of the distribution functions of two samples, given as rows of coordinates.

    Coordinates are replaced by their ranks in both samples together, from 1. With c the greatest common divisor of the
    sizes n and m, a record of ``x`` weighs m/c and one of ``y`` -n/c, so that sums of weights are integers: a
    difference of the distribution functions times ``n m / c``. Both signs are searched, as the difference may be
    positive or negative.
    """
    n, m = len(x), len(y)
    both = np.concatenate([x, y])
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] + 1 for column in both.T]).astype(np.int64)
    common = math.gcd(n, m)
    weights = np.repeat(np.array([m // common, -(n // common)], dtype=np.int64), [n, m])
    sizes = ranks.max(axis=0)
    largest = 0
    for sign in (1, -1):
        largest = _largest_sum(ranks, sign * weights, [np.zeros(size + 1, dtype=np.int64) for size in sizes], largest)
    return largest / (n * m // common)


def _largest_sum(ranks: Integers, weights: Integers, along: list[Integers], best: int) -> int:
    """Return the larger of ``best`` and the maximum of ``sum along[a][t[a]] + sum of weights with ranks <= t`` over t.

    Coordinate a of t goes from 0 to ``len(along[a]) - 1``. ``ranks`` has a row for each record; a rank of 0 is at most
    every t. The search is that of the module: records with at most one rank above 0 are added to ``along``, the box is
    cut in two at the median of the others, and halves that cannot exceed ``best`` are skipped.
    """
    open_axes = (ranks > 0).sum(axis=1)
    constant = int(weights[open_axes == 0].sum())
    along = list(along)
    for axis in range(len(along)):
        slab = (open_axes == 1) & (ranks[:, axis] > 0)
        if slab.any():
            added = np.zeros_like(along[axis])
            np.add.at(added, ranks[slab, axis], weights[slab])
            along[axis] = along[axis] + np.cumsum(added)
    crossing = open_axes >= 2
    ranks, weights = ranks[crossing], weights[crossing]
    bound = constant + sum(int(line.max()) for line in along)
    if len(weights) == 0:
        return max(best, bound)
    if bound + int(weights[weights > 0].sum()) <= best:
        return best
    columns = []
    for axis, line in enumerate(along):
        values, column = np.unique(np.append(ranks[:, axis], 0), return_inverse=True)  # 0 stays 0
        along[axis] = np.maximum.reduceat(line, values)
        columns.append(column[:-1])
    ranks = np.column_stack(columns)
    along[0] = along[0] + constant
    if math.prod(len(line) for line in along) <= _DENSE:
        return max(best, _largest_in_grid(ranks, weights, along))
    axis = int(np.argmax((ranks > 0).sum(axis=0)))
    cut = int(np.median(ranks[ranks[:, axis] > 0, axis]))
    lower, upper = list(along), list(along)
    lower[axis], upper[axis] = along[axis][:cut], along[axis][cut:]
    below = ranks[:, axis] < cut
    shifted = ranks.copy()
    shifted[:, axis] = np.maximum(ranks[:, axis] - cut, 0)
    best = _largest_sum(shifted, weights, upper, best)
    return _largest_sum(ranks[below], weights[below], lower, best)


def _largest_in_grid(ranks: Integers, weights: Integers, along: list[Integers]) -> int:
    """Return the maximum of :func:`_largest_sum` by computing the sum at every cell of the box.

    ``ranks`` are the records' coordinates, ``weights`` their weights, and ``along`` holds for each axis a function of
    that coordinate alone, as an array. The cumulative sums along all axes are the sums of weights with ranks at most
    t, to which the functions of the coordinates are added.
    """
    sums = np.zeros([len(line) for line in along], dtype=np.int64)
    np.add.at(sums, tuple(ranks.T), weights)
    for axis in range(sums.ndim):
        sums = np.cumsum(sums, axis=axis)
    return int((sums + sum(np.ix_(*along))).max())


def _check_size(lines: tuple[Floats, ...]) -> None:
    """Refuse a product grid of more than ``_MAX_CELLS`` cells; ``lines`` are the coordinates on each axis."""
    cells = math.prod(len(line) for line in lines)
    if cells > _MAX_CELLS:
        raise InvalidArgument(
            "x", f"at most {_MAX_CELLS} pairs of coordinates", str(cells), "compare with a sample of the density"
        )


def _to_density(sample: Floats, density: Density) -> float:
    """Return the largest difference of the distribution functions of a sample and of a density.

    In a cell of the grid of all coordinates the sample's function is constant and the density's grows: the difference
    is largest at the cell's lowest or highest corner.
    """
    lines = tuple(np.union1d(column, edges) for column, edges in zip(sample.T, density.edges, strict=True))
    _check_size(lines)
    cells = np.column_stack([np.searchsorted(line, column) for line, column in zip(lines, sample.T, strict=True)])
    cells = cells[np.argsort(cells[:, 0], kind="stable")]
    starts = np.searchsorted(cells[:, 0], np.arange(len(lines[0]) + 1))
    counts = np.zeros([len(line) for line in lines[1:]], dtype=np.int64)
    worst, ours = 0.0, np.zeros(counts.shape)
    for i in range(len(lines[0])):
        theirs = on_grid(density, (lines[0][i : i + 1], *lines[1:]))[0]
        worst = max(worst, float(np.abs(ours - _next_corner(theirs)).max()))  # the highest corners of the slab before
        rows = cells[starts[i] : starts[i + 1], 1:]
        if len(rows):
            np.add.at(counts, tuple(rows.T), 1)
        below = counts
        for axis in range(counts.ndim):
            below = np.cumsum(below, axis=axis)
        ours = below / len(sample)
        worst = max(worst, float(np.abs(ours - theirs).max()))
    return max(worst, float(np.abs(ours - _next_corner(theirs)).max()))


def _next_corner(values: Floats) -> Floats:
    """Return, for each cell of a grid, the value at the next index on every axis (at the last index, its own)."""
    for axis in range(values.ndim):
        size = values.shape[axis]
        values = values.take(np.minimum(np.arange(size) + 1, size - 1), axis=axis)
    return values
