"""COUNT and SUM whatever the tail (``tails="any"``): a race of truncations, after Dong, Fang, Yi, Tao and
Machanavajjhala, "R2T: Instance-optimal Truncation for Differentially Private Query Evaluation" (SIGMOD 2022).

Let a person contribute c to an answer over the whole question: the number of the person's rows that are asked about, or
the sum of their values, none of which is below 0. With a public G and the levels ``t = G, G / 4, G / 16, …``, measured
are the truncated answers ``Q_t``, to which each person adds ``min(c, t)`` in all: the rows keep the share
``w = min(1, t / c)`` of what they add, in every group (:mod:`dither.tables.compile.limits`).

*Privacy.* Adding or removing a person changes the vector of ``Q_t`` over all groups by at most t in the l1 norm (and so
in the l2 norm), as w depends on the person's own rows and ``sum over groups of w c_g = min(c, t)``. So each level is
one measurement with noise in proportion to t. The L levels share the budget like any measurements; everything below is
post-processing of their noisy numbers ``y_t``. A row that is a person of its own adds ``min(value, t)``.

*A lower limit.* ``Q_t <= Q``, the true answer, at every level and in every group, since nothing is negative. With
``e_t`` exceeded by the noise with probability ``doubt / (2 L)``, ``Q >= max over t of (y_t - e_t)`` with probability
``1 - doubt / 2``, whatever people have. That maximum is the answer: a number that the truth is not below.

*How low it may be.* Let nobody contribute more than c. At the level ``t < 4 c`` that first holds all, ``Q_t = Q``, so
that the maximum is at least ``Q - 2 e_t`` with probability ``1 - doubt``: off in proportion to the heaviest person
there is, not to G. That is the price of any tail: a factor L in the noise.

*An upper limit* needs G. If nobody contributes more than G, ``Q <= y_G + e`` with e exceeded with probability
``doubt / 2``. Without a public G there is none: let an interval of an (epsilon, delta) private answer hold the truth of
all data with probability ``1 - b``. One person more, with x rows, moves the truth by x. The interval that is computed
without that person reaches so far up with probability ``1 - e^epsilon b - delta`` at least, for every x. So an answer
has a ± only where ``max_rows`` (times ``max_groups``) states what a person can have; otherwise a lower limit.

Values are rounded to the nearest of ``2^20`` steps or more up to their bound before all this.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.inference import Grid
from dither.tables.compile.expressions import GRID_BITS
from dither.tables.compile.limits import MAX_TOTAL, Limits
from dither.tables.compile.statements import MAX_SIZE_BITS, Measure, Moments, grid
from dither.tables.query.tree import Expression, Query

RACED = ("count", "count_value", "sum")
_STEP = 4
_BELOW_ONE_VALUE = 6
"""How many levels of a sum are below the bound of one value."""


def check(query: Query, *, public_keys: bool, several: bool, rows_without_unit: bool) -> None:
    """Refuse a question that ``tails="any"`` cannot answer: only counts and sums over public keys have such limits."""
    for name, item in query.aggregates.items():
        if item.kind not in RACED and (item.kind != "people" or query.groups):
            kind = "a number of people in groups" if item.kind == "people" else item.kind.upper()
            raise InvalidArgument(
                name, "COUNT or SUM, with tails='any'", kind, "ask for it in a question of its own, without tails"
            )
    if not public_keys:
        fix = "state the keys in the card, or leave tails out"
        raise InvalidArgument("tails", "groups whose keys are public", "keys that are not public", fix)
    if several:
        fix = "ask a question for each, or leave tails out"
        raise InvalidArgument("tails", "one private aggregation", "several, such as levels of ROLLUP", fix)
    if rows_without_unit:
        fix = "keep rows with a unit: WHERE … IS NOT NULL, with rows_without_unit left out of the card"
        raise InvalidArgument("tails", "rows that all have a unit", "rows without one that count", fix)


def race_of(
    name: str, kind: str, value: Expression | None, bounds: tuple[tuple[float, float], bool] | None, limits: Limits
) -> tuple[Measure, ...]:
    """Return the measures of a count or sum, one for each truncation level of R2T from the largest down; a single one
    where nothing has to be truncated."""
    most = int(limits.total)
    if kind != "sum":
        moments = None if kind == "count" else Moments(_value(value), 0)
        one = Measure("rows") if moments is None else Measure("part", value, moments)
        if not limits.weighted:
            return (one,)
        levels = [most // _STEP**i for i in range(most.bit_length()) if most >= _STEP**i]
        return tuple(one.with_limit(level) for level in levels)
    assert bounds is not None
    low, high = bounds[0]
    if low < 0:
        fix = f"hold it above: SUM(GREATEST({name}, 0)), and SUM(GREATEST(-{name}, 0)) for what is below 0"
        raise InvalidArgument(name, "a sum of values that are not below 0, with tails='any'", f"bounds from {low}", fix)
    steps = grid_of(bounds, most)
    top = max(int(steps.high), 1) * most
    below = range(most.bit_length() // 2 + _BELOW_ONE_VALUE)
    levels = [max(top // _STEP**i, 1) for i in below]
    moments = Moments(_value(value), 1, False, (low, high), steps)
    return tuple(
        Measure("sum", value, moments, rows_per_person=level, by_value=True) for level in dict.fromkeys(levels)
    )


def grid_of(bounds: tuple[tuple[float, float], bool], most: int) -> Grid:
    """Return the grid of a sum to which one person adds at most ``most`` rows."""
    return grid((0.0, bounds[0][1]), bounds[1], min(GRID_BITS, MAX_SIZE_BITS - most.bit_length()), 1)


def _value(value: Expression | None) -> Expression:
    """Return the argument of an aggregate that has one."""
    assert value is not None
    return value


def is_bounded(limits: Limits) -> bool:
    """Return whether it is stated how many rows a person can have."""
    return limits.total < MAX_TOTAL or not limits.weighted


def per_row(parts: tuple[Measure, ...], noises: Mapping[Measure, Any], limits: Limits, confidence: float) -> float:
    """Return 2 e / t for the largest level t, whose one-sided noise limit is e: by how much an answer may be low, as a
    share of the truncation level that nobody exceeds."""
    part = parts[0]
    level = Fraction(part.rows_per_person or 1) / (1 if part.moments is None or not part.by_value else _scale(part))
    return 2 * _one_sided(noises[part], part.unit(limits), len(parts), confidence) / float(level)


def _scale(measure: Measure) -> Fraction:
    """Return how many grid steps of a measured value make 1."""
    assert measure.moments is not None
    assert measure.moments.grid is not None
    return Fraction(measure.moments.grid.scale)


def _one_sided(noise: Any, unit: float, levels: int, confidence: float) -> float:
    """Return what the noise of one of several levels exceeds with an equal part of half of the doubt: half of what a
    symmetric law exceeds in either direction with twice that."""
    return float(noise.error(1 - (1 - confidence) / levels, integer=True)) / unit


def outcome(
    parts: tuple[Measure, ...],
    noises: Mapping[Measure, Any],
    noisy: Mapping[Measure, NDArray[Any]],
    limits: Limits,
    confidence: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the answer of each group, its largest lower limit over all truncation levels, and the distance to the
    upper limit at the largest level; None in place of the distance if a person's rows are not bounded."""
    units = [part.unit(limits) for part in parts]
    values = [np.asarray(noisy[part], dtype=np.float64) / unit for part, unit in zip(parts, units, strict=True)]
    held = [_one_sided(noises[part], unit, len(parts), confidence) for part, unit in zip(parts, units, strict=True)]
    lowest: NDArray[np.float64] = np.max([value - error for value, error in zip(values, held, strict=True)], axis=0)
    if not is_bounded(limits):
        return lowest, None
    highest = values[0] + _one_sided(noises[parts[0]], units[0], 1, confidence)
    return lowest, np.maximum(highest - lowest, 0.0)
