"""The distance of two courses of a series on a table: over all of its periods, not one release at a time.

What a series declares is a schema of participation: one person moves what is measured in at most k periods, any two of
them at least b apart, in each by at most the l1 norm of every aggregate. A release that keeps within the norm of each
period and not within the schema is a leak that no single release shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dither.guarantees import PureDP
from dither.stream.series_mechanism import SeriesMechanism

Arguments = Mapping[str, Any]


def series_ratio(mechanism: SeriesMechanism, releases: Sequence[tuple[Arguments, Arguments]]) -> float:
    """How far what is measured moved in all releases so far, in units of what the schema allows.

    >>> from dither import ApproxDP
    >>> from dither.stream.series_mechanism import Lane
    >>> schema = {"horizon": 9, "participations": 1, "separation": 1}
    >>> daily = SeriesMechanism.planned("daily", (Lane(1, 1.0),), 1, ApproxDP(1, 1e-6), **schema)
    >>> one, other = {"increments": np.array([[1], [1]])}, {"increments": np.array([[0], [0]])}
    >>> series_ratio(daily, [(one, other)])
    2.0
    """
    plan = mechanism.plan
    change = np.concatenate([np.asarray(a["increments"]) - np.asarray(b["increments"]) for a, b in releases])
    moved = np.flatnonzero(np.any(change != 0, axis=1))
    ratio = len(moved) / plan.max_participations
    if len(moved) > 1:
        ratio = max(ratio, plan.min_separation / int(np.diff(moved).min()))
    for i, lane in enumerate(mechanism.lanes):
        norms = np.abs(change[:, i * mechanism.groups : (i + 1) * mechanism.groups]).sum(axis=1)
        ratio = max(ratio, float(norms.max(initial=0)) / lane.sensitivity)
    return ratio


def series_cost(mechanism: SeriesMechanism, releases: Sequence[tuple[Arguments, Arguments]]) -> tuple[float, float]:
    """Epsilon and the square of mu, charged with the first release that differs: the whole series costs this once."""
    differs = [np.any(np.asarray(a["increments"]) != np.asarray(b["increments"])) for a, b in releases]
    if not differs[-1] or any(differs[:-1]):
        return 0.0, 0.0
    if isinstance(mechanism.guarantee, PureDP):
        return float(mechanism.guarantee.exact[0]), 0.0
    return 0.0, float(1 / mechanism.plan.ratio**2)
