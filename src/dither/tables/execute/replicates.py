"""How far off a computed column of an answer may be: the same computation on noisy tables as they might have been.

*The construction.* A released number is ``y = a + e``, with the truth a and noise e of a known law. Draw the noise
anew, e_1 .. e_K: then ``y - e_k`` are K equally likely truths for every measure of every group, and each makes a table.
Columns that are computed from the table (arithmetic, windows, joins of answers) are computed from each, and the limits
are the values between which a share of at least the confidence of them lies, as in :mod:`dither.inference.measured`.
Numbers of one table belong together, so what they have in common is kept: a share of a total is as certain as it is.

It is post-processing. What is drawn does not depend on the data and is the same for the same plan, so that an answer
has the same error whenever it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.inference import NoiseLaw, level_table
from dither.tables.compile.statements import Measure
from dither.tables.planning.estimate import estimate, make_agree
from dither.tables.planning.plan import AggregationPlan

MOST_TABLES, FEWEST_TABLES = 1000, 200
"""How many tables are drawn, by the number of groups."""
MAX_ROWS = 200_000
"""How many rows all tables have together; for so many groups that the tables would be too few there are no errors."""
_VALUE_ONLY = 0.9999
"""A confidence at which an estimate has no sample of its noise: only its value is of interest here."""

Values = Sequence[Any]


def replicates(
    plans: Sequence[AggregationPlan], measures: Sequence[Mapping[Measure, NDArray[Any]]], groups: Sequence[int]
) -> list[Mapping[str, NDArray[np.float64]]] | None:
    """For each private aggregation, with so many groups, and for each of its aggregates whose noise has a known law,
    its answers in every table, a row for each table; None where they cannot be drawn: too many groups, or a row for
    all that are not shown.
    """
    if any(plan.other for plan in plans) or not 0 < sum(groups) <= MAX_ROWS // FEWEST_TABLES:
        return None
    count = min(MOST_TABLES, MAX_ROWS // sum(groups))
    noises: list[dict[Measure, NDArray[Any]]] = []
    number = 0
    for plan, known, size in zip(plans, measures, groups, strict=True):
        noises.append({})
        for measure in known:
            levels = level_table(f"replicates {number}", count, size)
            noise = NoiseLaw.of(plan.measures[measure], integer=True).quantiles(levels.ravel())
            noises[-1][measure] = noise.reshape(levels.shape)
            number += 1
    if any(plan.reduced for plan in plans):  # noise is made to agree as the values were, which is linear
        make_agree(plans, noises)
    result: list[Mapping[str, NDArray[np.float64]]] = []
    for plan, known, noise_of, size in zip(plans, measures, noises, groups, strict=True):
        possible = {
            measure: (np.asarray(values, dtype=np.float64)[None, :] - noise_of[measure]).ravel()
            for measure, values in known.items()
        }
        tables = {}
        for name, parts in plan.measures_of.items():
            answers, _ = estimate(plan, plan.query.aggregates[name], parts, possible, _VALUE_ONLY)
            values = np.array([math.nan if item is None else item for item in answers])
            tables[name] = values.reshape(count, size)
        result.append(tables)
    return result


def half_width(value: Any, sample: Values, confidence: float = 0.95) -> float | None:
    """How far the limits of a sample are from the value; None where too many have no value, or where noise moves the
    value to one side, as that of the largest of many: noise is in the value already, and its effect is unknown.

    >>> half_width(10, [8, 9, 10, 11, 12] * 40)
    2.0
    >>> half_width(10, [None] * 200) is None
    True
    """
    if not _is_number(value):
        return None
    known = sorted(float(item) for item in sample if _is_number(item))
    expected = len(sample) * (1 - confidence) / 2
    # as many fewer as may be beyond the true limits by chance: the tables are few
    beyond = max(math.floor(expected - math.sqrt(expected)), 0) - (len(sample) - len(known))
    if beyond < 0 or not known:
        return None
    low, high = known[beyond], known[-1 - beyond]
    if abs(known[len(known) // 2] - float(value)) > (high - low) / 4:
        return None
    return max(float(value) - low, high - float(value), 0.0)


def errors_of_rows(
    names: Sequence[str],
    rows: Sequence[Values],
    keys: Sequence[int],
    samples: Sequence[Sequence[Values]],
    confidence: float = 0.95,
) -> dict[str, tuple[float | None, ...]]:
    """The errors of the columns that vary, each row found again in the samples by its values at the places ``keys``.

    A row that is missing from a sample, or that cannot be distinguished from another, has no error there.
    """

    def by_key(lines: Sequence[Values]) -> dict[tuple[Any, ...], Values | None]:
        result: dict[tuple[Any, ...], Values | None] = {}
        for line in lines:
            key = tuple(line[place] for place in keys)
            result[key] = None if key in result else line
        return result

    actual = by_key(rows)
    tables = [by_key(sample) for sample in samples]
    result: dict[str, tuple[float | None, ...]] = {}
    for place, name in enumerate(names):
        column: list[float | None] = []
        varies = False
        for row in rows:
            key = tuple(row[item] for item in keys)
            lines = [table.get(key) for table in tables] if actual[key] is not None else []
            sample = [None if line is None else line[place] for line in lines]
            varies = varies or any(_is_number(item) and item != row[place] for item in sample)
            column.append(half_width(row[place], sample, confidence) if sample else None)
        if varies and place not in keys:
            result[name] = tuple(column)
    return result


def evaluated(
    compute: Callable[[Mapping[str, Any]], Any], lines: Sequence[Mapping[str, Any]], tables: Mapping[str, NDArray[Any]]
) -> list[list[Any]]:
    """A computed column in every table: for each line its values."""
    result = []
    for place, line in enumerate(lines):
        samples = zip(*(values[:, place].tolist() for values in tables.values()), strict=True)
        result.append([compute({**line, **dict(zip(tables, sample, strict=True))}) for sample in samples])
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
