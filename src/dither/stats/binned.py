"""Histograms."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments, sensitivity
from dither.budget_hooks import covered, spends_arguments
from dither.errors import InvalidArgument
from dither.inference import bin_numbers
from dither.neighbors import Neighbors, ReplaceOne, relation
from dither.randomness import Source, mark, resolve
from dither.stats.column import NanPolicy, read
from dither.stats.estimate import Histogram
from dither.stats.moments import noise


@spends_arguments
def histogram(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
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

    >>> result = histogram([1, 2, 2, 3], bounds=(0, 4), bins=4, epsilon=1)
    >>> result.guarantee, result.counts.dtype
    (PureDP(1), dtype('int64'))
    """
    lower, upper = arguments.bounds(bounds)
    edges = _edges(bins, lower, upper)
    resolved = resolve(source)
    mechanism = noise(
        sensitivity.histogram(neighbors=relation(neighbors)),
        epsilon,
        delta,
        l2=sensitivity.histogram(neighbors=neighbors, norm=2),
        coordinates=edges.size - 1,
    )
    values = read(x, neighbors, nan, lower).astype(np.float64)
    counts = np.bincount(bin_numbers(values, edges), minlength=edges.size - 1).astype(np.int64)
    released = mark(covered(mechanism.release)(counts, source=resolved), resolved)
    return Histogram(released, edges, mechanism.guarantee, neighbors, mechanism, not resolved.private)


def _edges(bins: Any, lower: float, upper: float) -> NDArray[np.float64]:
    """The edges asked for, strictly increasing from the lower bound to the upper."""
    result: NDArray[np.float64] = np.zeros(0)
    if max(abs(lower), abs(upper)) < 1 << 1000:
        if isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, (str, bytes)):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                result = np.asarray(bins, dtype=np.float64)
        else:
            bin_count = arguments.whole(bins, "bins")
            result = np.linspace(float(lower), float(upper), bin_count + 1) if bin_count < 1 << 26 else result
    ends = (float(lower), float(upper)) if result.size else ()
    if result.ndim != 1 or result.size < 2 or not np.all(np.diff(result) > 0) or (result[0], result[-1]) != ends:
        raise InvalidArgument(
            "bins",
            "increasing edges from the lower bound to the upper, within 1e+300",
            "something else",
            "pass such edges, or fewer bins: there must be room for them between the bounds",
        )
    return result
