"""What the statements add up, from the definition, in plain Python: every person's rows, each with the same weight."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dither.tables.compile.limits import Limits
from dither.tables.compile.statements import Measure

Row = tuple[Any, Any, Mapping[str, int | None]]
"""A person, a group, and the values of columns in steps of their grids; None for no value."""


def root_up(square: int) -> int:
    """The square root of a whole number, rounded up."""
    return math.isqrt(square - 1) + 1 if square else 0


def weight(limits: Limits, numbers: Iterable[int]) -> int:
    """The weight of a person with so many rows in each group, in units of 2^-bits: ``floor(2^bits R / N)``."""
    one = 1 << limits.bits()
    if limits.norm == 1:
        total, rows = limits.rows_per_person or limits.groups * limits.rows, sum(numbers)
        return one if rows <= total else one * total // rows
    total = math.isqrt(64 * 64 * limits.groups * limits.rows**2)
    if limits.rows_per_person is not None:
        total = 64 * limits.rows_per_person
    squares = sum(number * number for number in numbers)
    return one if 64 * 64 * squares <= total * total else one * total // (root_up(64 * 64 * squares) + 1)


def times(number: int, weight: int, places: int) -> int:
    """A number with its weight, rounded toward zero."""
    size = abs(number) * weight >> places
    return size if number >= 0 else -size


def of_row(measure: Measure, value: int | None) -> int:
    """What one row adds to a measure: ``value`` in steps from 0, as its grid has them."""
    if measure.kind == "rows":
        return 1
    if measure.kind == "sum":
        return value or 0
    moments = measure.moments
    assert moments is not None
    if value is None:
        return moments.top if measure.part > moments.degree else 0
    if measure.part > moments.degree:
        return 0
    if moments.grid is None:
        return 1
    above, width = value - moments.grid.low, moments.grid.width
    below = width - above
    parts: tuple[Any, ...] = (below, above)
    if moments.degree == 2:
        first, last = below**2 // moments.divisor, above**2 // moments.divisor
        parts = first, moments.top - first - last, last
    assert sum(parts) == moments.top
    assert min(parts) >= 0
    return int(parts[measure.part])


def weighted_sums(
    rows: Iterable[Row], limits: Limits, measures: Sequence[Measure], columns: Sequence[str], by_person: bool
) -> dict[Any, tuple[int, ...]]:
    """Every measure of every group. Numbers are weighted row by row, or those of a person and group together."""
    people: dict[Any, dict[Any, list[Mapping[str, int | None]]]] = defaultdict(lambda: defaultdict(list))
    for person, group, values in rows:
        if person is not None:
            people[person][group].append(values)
    result: dict[Any, list[int]] = defaultdict(lambda: [0] * len(measures))
    for groups in people.values():
        sizes = [len(lines) for lines in groups.values()]
        v = weight(limits.of_people, [1] * len(groups)) if limits.exceeded else 1
        for group, lines in groups.items():
            for i, (measure, column) in enumerate(zip(measures, columns, strict=True)):
                if measure.kind == "people":
                    result[group][i] += v
                    continue
                numbers = [of_row(measure, line.get(column)) for line in lines]
                own = replace(limits, rows_per_person=measure.rows_per_person)
                w, places = weight(own, sizes), own.bits() - own.bits(measure.top)
                for number in [sum(numbers)] if by_person else numbers:
                    result[group][i] += times(number, w, places)
    return {group: tuple(numbers) for group, numbers in result.items()}


def norm(limits: Limits, moved: Iterable[Iterable[int]]) -> float:
    """The norm of a change, given by group and then by number: the l1 norm, or the l2 norm of all numbers."""
    numbers = [abs(number) for group in moved for number in group]
    return sum(numbers) if limits.norm == 1 else math.sqrt(sum(number * number for number in numbers))
