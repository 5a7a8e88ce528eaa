"""Histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dither import arguments, sensitivity
from dither.errors import InvalidArgument, message
from dither.neighbors import Neighbors, ReplaceOne, relation
from dither.randomness import Source, mark, resolve
from dither.stats.column import NanPolicy, read
from dither.stats.estimate import Histogram
from dither.stats.moments import noise


def histogram(
    x: Any,
    bounds: tuple[float, float] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    *,
    bins: int | Sequence[float] = 10,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> Histogram:
    """Counts of the records in bins between the bounds; records outside are counted in the first or last bin.

    The l1 sensitivity is 1 under add/remove and 2 under replace-one, however many bins there are. ``bins`` is
    their number, or their edges, from lower to upper.

    >>> found = histogram([1, 2, 2, 3], bounds=(0, 4), bins=4, epsilon=1)
    >>> found.guarantee, found.counts.dtype
    (PureDP(1), dtype('int64'))
    """
    lower, upper = arguments.bounds(bounds)
    if isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, str):
        edges = np.asarray(bins, dtype=np.float64)
        if (
            edges.ndim != 1
            or edges.size < 2
            or not np.all(np.diff(edges) > 0)
            or edges[0] != lower
            or edges[-1] != upper
        ):
            raise InvalidArgument(
                message(
                    "bins",
                    "increasing edges from the lower bound to the upper",
                    "something else",
                    "pass a number of bins, or such edges",
                )
            )
    else:
        edges = np.linspace(float(lower), float(upper), arguments.whole(bins, "bins") + 1)
    words = resolve(source)
    mechanism = noise(
        sensitivity.histogram(neighbors=relation(neighbors)),
        epsilon,
        delta,
        l2=sensitivity.histogram(neighbors=neighbors, norm=2),
        coordinates=edges.size - 1,
    )
    values = read(x, neighbors, nan, lower).astype(np.float64)
    cells = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
    counts = np.bincount(cells, minlength=edges.size - 1).astype(np.int64)
    released = mark(mechanism.release(counts, source=words), words)
    return Histogram(released, edges, mechanism.guarantee, neighbors, mechanism, not words.private)
