"""A released distribution, and the questions that can be answered from it at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument
from dither.extras import Axes
from dither.guarantees import Guarantee
from dither.neighbors import Neighbors
from dither.present import chart, markup
from dither.randomness import Source, resolve
from dither.randomness.source import NOTICE

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Density(ComparedByValue):
    """Probabilities of the bins of a grid, uniform inside each bin; a function of one private release.

    >>> import dither as dp
    >>> result = dp.density.release([0.2, 0.25, 0.3] * 100, bounds=(0, 1), epsilon=1, bins=10)
    >>> 0 <= result.cdf(0.5) <= 1 and 0 <= result.quantile(0.5) <= 1 and result.sample(7).shape == (7,)
    True
    """

    weights: Floats
    """The probability of each bin, all non-negative, adding up to 1; as many dimensions as the data."""
    edges: tuple[Floats, ...]
    """The edges of the bins, for each dimension."""
    guarantee: Guarantee
    neighbors: Neighbors
    method: str
    seeded: bool = False

    @property
    def dimensions(self) -> int:
        """Return the number of dimensions of the data."""
        return len(self.edges)

    def _line(self, question: str) -> tuple[Floats, Floats]:
        """Return the edges of the bins and the distribution function at them; refuse several dimensions.

        ``question`` is what was asked for, for the error.
        """
        if self.dimensions != 1:
            raise InvalidArgument(question, "one dimension", f"{self.dimensions}", "use weights, edges or sample")
        cumulative = np.cumsum(self.weights)
        # divided by the last, so that it is exactly 1 after the last bin with weight
        return self.edges[0], np.concatenate([[0.0], cumulative / cumulative[-1]])

    @overload
    def cdf(self, t: float) -> float: ...
    @overload
    def cdf(self, t: Sequence[float] | NDArray[Any]) -> Floats: ...
    def cdf(self, t: Any) -> float | Floats:
        """Return the distribution function at t, the probability of a value at most t, between 0 and 1.

        With one dimension, t is a number or an array of numbers. With several, it is a point or an array with a row
        for each point, and the probability is that every coordinate is at most that of t. Bins are uniform inside, so
        the function is interpolated linearly in each coordinate between the edges of the bins.

        >>> import dither as dp
        >>> dp.density.release([0.5] * 10, bounds=(0, 1), epsilon=1, bins=2).cdf([0.0, 1.0])
        array([0., 1.])
        >>> square = np.random.default_rng(1).uniform(size=(1000, 2))
        >>> abs(dp.density.release(square, bounds=[(0, 1), (0, 1)], epsilon=1, bins=4).cdf([0.5, 0.5]) - 0.25) < 0.1
        True
        """
        points = np.asarray(t, dtype=np.float64)
        if self.dimensions == 1:
            edges, cumulative = self._line("cdf")
            line = np.interp(points, edges, cumulative, left=0.0, right=1.0)
            return float(line) if points.ndim == 0 else line
        if points.ndim not in (1, 2) or points.shape[-1] != self.dimensions:
            raise InvalidArgument(
                "t",
                f"a point of {self.dimensions} coordinates, or rows of them",
                f"shape {points.shape}",
                f"pass t={[0.5] * self.dimensions}, for example",
            )
        cumulative = np.pad(self.weights, [(1, 0)] * self.dimensions)
        positions, shares = [], []
        for axis, (edges, line) in enumerate(zip(self.edges, np.atleast_2d(points).T, strict=True)):
            cumulative = np.cumsum(cumulative, axis=axis)
            low, share = _between(edges, line)
            positions.append((low, low + 1))
            shares.append((1 - share, share))
        result = np.zeros(len(positions[0][0]))
        for corner in product((0, 1), repeat=self.dimensions):
            weight = np.prod([share[end] for share, end in zip(shares, corner, strict=True)], axis=0)
            result += weight * cumulative[tuple(pair[end] for pair, end in zip(positions, corner, strict=True))]
        result /= cumulative.flat[-1]
        return float(result[0]) if points.ndim == 1 else result

    @overload
    def quantile(self, q: float) -> float: ...
    @overload
    def quantile(self, q: Sequence[float] | NDArray[Any]) -> Floats: ...
    def quantile(self, q: Any) -> float | Floats:
        """Return the smallest value with probability q of not being exceeded.

        >>> import dither as dp
        >>> dp.density.release([0.5] * 10, bounds=(0, 1), epsilon=1, bins=2).quantile(1.0) <= 1.0
        True
        """
        edges, cumulative = self._line("quantile")
        probabilities = np.asarray(q, dtype=np.float64)
        if not np.all((probabilities >= 0) & (probabilities <= 1)):
            raise InvalidArgument(
                "q", "numbers from 0 to 1", "a number outside of that range", "pass q=0.5 for the median"
            )
        right = np.clip(np.searchsorted(cumulative, probabilities, side="left"), 1, cumulative.size - 1)
        rise = cumulative[right] - cumulative[right - 1]
        fraction = np.where(rise > 0, (probabilities - cumulative[right - 1]) / np.where(rise > 0, rise, 1.0), 0.0)
        result = edges[right - 1] + fraction * (edges[right] - edges[right - 1])
        return float(result) if np.ndim(q) == 0 else result

    def density(self) -> Floats:
        """Return the probability of each bin divided by its size.

        >>> import dither as dp
        >>> dp.density.release([0.5] * 10, bounds=(0, 1), epsilon=1, bins=2).density().shape
        (2,)
        """
        result = self.weights
        for axis, edges in enumerate(self.edges):
            shape = [1] * self.dimensions
            shape[axis] = -1
            result = result / np.diff(edges).reshape(shape)
        return result

    def sample(self, count: int, *, source: Source | None = None) -> Floats:
        """Draw independently from the released distribution; with several dimensions a row for each draw.

        >>> import dither as dp
        >>> dp.density.release([0.5] * 10, bounds=(0, 1), epsilon=1, bins=2).sample(3).shape
        (3,)
        """
        size, resolved = arguments.whole(count, "count", 0), resolve(source)
        cumulative = np.cumsum(self.weights.ravel())
        chosen = np.searchsorted(cumulative, _unit(size, resolved) * cumulative[-1], side="right")
        chosen = chosen.clip(max=cumulative.size - 1)
        columns = []
        for edges, cell in zip(self.edges, np.unravel_index(chosen, self.weights.shape), strict=True):
            values = edges[cell] + _unit(size, resolved) * (edges[cell + 1] - edges[cell])
            columns.append(np.minimum(values, edges[cell + 1]))
        return columns[0] if self.dimensions == 1 else np.column_stack(columns)

    def plot(self, axes: Axes | None = None, **style: Any) -> Axes:
        """Draw the density on matplotlib axes (new ones by default) and return them; one or two dimensions."""
        if self.dimensions > 2:
            raise InvalidArgument("plot", "one or two dimensions", f"{self.dimensions}", "plot a margin")
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(figsize=(6.4, 4.0)).add_subplot()
        if self.dimensions == 1:
            axes.stairs(self.density(), self.edges[0], **{"label": f"{self.method}, {self.guarantee}", **style})
        else:
            axes.pcolormesh(self.edges[0], self.edges[1], self.density().T, **style)
        return axes

    def _repr_html_(self) -> str:
        """Return the density for a notebook: its guarantee and, in one dimension, a chart."""
        picture = ""
        if self.dimensions == 1:
            heights = [float(height) for height in self.density() for _ in range(2)]
            edges = self.edges[0]
            ends = [float(edge) for pair in pairwise(edges) for edge in pair]
            picture = markup.picture(chart.lines([("", ends, heights)], title="The released density", x_label="value"))
        return markup.block(markup.heading(repr(self)), picture)

    def __repr__(self) -> str:
        shape = " x ".join(str(edges.size - 1) for edges in self.edges)
        notice = f", {NOTICE}" if self.seeded else ""
        return f"Density({shape} bins, method={self.method!r}; {self.guarantee}, {self.neighbors!r}{notice})"


def _unit(size: int, source: Source) -> Floats:
    """Draw ``size`` numbers uniformly from [0, 1), in multiples of 2^-53."""
    result: Floats = (source.words(size) >> np.uint64(11)) * np.float64(2.0**-53)
    return result


def on_grid(density: Density, lines: Sequence[Floats]) -> Floats:
    """Return the distribution function at every point of a grid, given by its coordinates along each axis.

    Inside a bin the density is uniform, so the function is linear in each coordinate.

    >>> import dither as dp
    >>> square = np.random.default_rng(1).uniform(size=(100, 2))
    >>> on_grid(dp.density.release(square, [(0, 1), (0, 1)], 1, bins=2), [np.array([0.0, 1.0])] * 2)
    array([[0., 0.],
           [0., 1.]])
    """
    result = np.pad(density.weights, [(1, 0)] * density.dimensions)
    for axis, (edges, line) in enumerate(zip(density.edges, lines, strict=True)):
        result = np.cumsum(result, axis=axis)
        low, share = _between(edges, line)
        share = share.reshape([-1 if i == axis else 1 for i in range(density.dimensions)])
        result = (1 - share) * result.take(low, axis=axis) + share * result.take(low + 1, axis=axis)
    return np.asarray(result / density.weights.sum())


def _between(edges: Floats, line: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the index of the bin of each coordinate in ``line``, and the share of the bin's width that is below it."""
    position = np.interp(line, edges, np.arange(edges.size, dtype=np.float64))
    low = np.minimum(position.astype(np.int64), edges.size - 2)
    return low, position - low


def on_simplex(values: Floats) -> Floats:
    """Return the probabilities nearest to ``values`` in the sense of least squares: the projection onto the simplex.

    It is ``max(values - c, 0)`` with the c for which the result adds up to 1 (Duchi et al. 2008).

    >>> on_simplex(np.array([0.8, 0.4, -0.2]))
    array([0.7, 0.3, 0. ])
    """
    values = values - values.max()  # 1 less than the largest is less, however large that is
    descending = np.sort(values.ravel())[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, descending.size + 1)
    last_positive = int(np.flatnonzero(descending > excess)[-1])
    result: Floats = np.maximum(values - excess[last_positive], 0.0)
    result /= result.sum()
    return result
