"""Profiles made by hand, without noise: what the noisy numbers of a real one vary about."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dither.tables.card.profile import ColumnProfile, NoisyHistogram, NoisyKeys, NoisyNumber, TableProfile

PEOPLE_EDGES = tuple(sorted({round(2 ** (i / 4)) for i in range(81)}))


def table_profile(
    who: Sequence[Hashable] | None,
    columns: Mapping[str, Sequence[Any]],
    edges: Mapping[str, Sequence[float]] | None = None,
    keys: Mapping[str, Sequence[Any]] | None = None,
    *,
    classes: Sequence[int] = (),
    scale: float = 1.0,
) -> TableProfile:
    """Return the profile of rows: ``who`` each is about (None: each is a person), the ``edges`` of the bins of columns
    of numbers, and the public ``keys`` of others. ``scale`` is what the noise is said to be; there is none."""
    size = len(next(iter(columns.values())))
    person = np.arange(size) if who is None else np.unique(np.array(who), return_inverse=True)[1]
    rows = np.bincount(person)
    weight = 1 / rows[person]
    place = np.searchsorted(np.array(classes), rows[person]).clip(0, max(len(classes) - 1, 0))

    def histogram(values: Any, ends: Sequence[float], counts: Any) -> NoisyHistogram:
        bins = np.searchsorted(np.array(ends[1:-1]), values, side="right")
        weights = np.bincount(bins, counts, minlength=len(ends) - 1)
        return NoisyHistogram(tuple(ends), tuple(map(float, weights)), scale=scale)

    def column(name: str, values: Sequence[Any]) -> ColumnProfile:
        null = np.array([value is None or value != value for value in values])
        nulls = float(weight[null].sum())
        if keys is not None and name in keys:
            listed = tuple(keys[name])
            sums = [float(weight[[value == key for value in values]].sum()) for key in listed]
            return ColumnProfile(keys=NoisyKeys(listed, tuple(sums), scale=scale), nulls=nulls)
        assert edges is not None
        known = np.array([math.nan if empty else value for value, empty in zip(values, null, strict=True)])[~null]
        of_class = [
            histogram(known[place[~null] == i], edges[name], weight[~null][place[~null] == i])
            for i in range(len(classes))
        ]
        values_of_all = histogram(known, edges[name], weight[~null])
        return ColumnProfile(values=values_of_all, nulls=nulls, by_rows=tuple(of_class) or None)

    limits = (0, *PEOPLE_EDGES[:-1], math.inf)
    counted = tuple(float(((rows > a) & (rows <= b)).sum()) for a, b in pairwise(limits))
    people = None if who is None else NoisyHistogram(PEOPLE_EDGES, counted, scale=scale)
    measured = {name: column(name, values) for name, values in columns.items()}
    return TableProfile(people, measured, NoisyNumber(float(len(rows)), scale=scale), tuple(classes))
