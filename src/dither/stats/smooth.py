"""Quantiles with noise of the size of their smooth sensitivity."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast

import numpy as np

from dither import sensitivity
from dither.budget_hooks import covered
from dither.errors import InvalidArgument
from dither.inference import WithinBounds
from dither.mechanisms import SmoothNoise
from dither.neighbors import Neighbors, ReplaceOne, relation
from dither.randomness import Source, resolve
from dither.sensitivity.smooth import ends, rank_of
from dither.stats.column import NanPolicy, known_size, read
from dither.stats.estimate import EstimateFloat


def smooth_quantile(
    x: Any,
    q: float,
    bounds: tuple[float, float] | None,
    epsilon: float | None,
    delta: float | None,
    neighbors: Neighbors,
    nan: NanPolicy,
    source: Source | None,
) -> EstimateFloat:
    """Return the record of rank ``ceil(q n)`` with noise: Laplace where a delta is given, Student's otherwise; kept to
    the bounds.

    >>> answer = smooth_quantile(list(range(1001)), 0.5, (0, 1000), 1, None, ReplaceOne, "refuse", None)
    >>> 0 <= answer <= 1000
    True
    """
    lower, upper = ends(bounds)
    if relation(neighbors) is not ReplaceOne:
        raise InvalidArgument(
            "neighbors", "dither.ReplaceOne for method='smooth'", "AddRemove", "use method='exponential'"
        )
    resolved = resolve(source)
    mechanism = SmoothNoise("student" if delta is None else "laplace", cast(float, epsilon), delta)
    values = np.clip(read(x, neighbors, nan, lower).astype(np.float64), lower, upper)
    known_size(values.size)
    rank = rank_of(q, values.size)
    middle = float(np.partition(values, rank - 1)[rank - 1])
    size = sensitivity.smooth_order(values, rank, (lower, upper), mechanism.beta)
    noisy = covered(mechanism.release)(Fraction(middle), size, width=upper - lower, source=resolved)
    clipped = min(max(float(noisy), lower), upper)
    interval = WithinBounds(lower, upper)
    return EstimateFloat.of(
        clipped, mechanism.guarantee, neighbors, f"SmoothNoise({mechanism.kind})", interval, resolved.private
    )
