"""Limits and bounds of a question without a profile: from a sketch of its rows, which a part of its epsilon buys.

The sketch is a small profile of the rows that are asked about: people by their number of rows, and the values of each
expression of which a mean, a variance, a quantile, a correlation or a sum is asked, where each person has the weight 1
in all. Where every row is a person, there are values alone. Of a question by its error (``error=…``) sums are not
sketched: they have an error that does not depend on the data. So it feeds the choice that a profile feeds
(:mod:`dither.tables.planning.profiled`). The limit of counts and sums stays the one that follows from the histogram of
people alone (:func:`dither.tables.planning.automatic.best_limit`); where none are asked for, the others have limits of
their own. What the sketch hides in its noise is part of the ±, and what limits leave out is added back, as with a
profile. Beside a profile the numbers of rows alone are learned, where a condition makes them uncertain, and all limits
and corrections follow (:attr:`~dither.tables.planning.profiled.ProfiledRows.to_learn`); and so are values of which the
profile has no distribution, as of ``a - b`` (:attr:`~dither.tables.planning.profiled.ProfiledRows.to_sketch`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither.mechanisms import Laplace
from dither.present.notes import Note
from dither.tables.card.profile import NoisyHistogram, TableProfile
from dither.tables.compile import expressions, statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.limits import Limits
from dither.tables.planning.automatic import BOUNDS_SHARE, EDGES, SKETCH_SHARE, VALUES_OF
from dither.tables.planning.choose import Correction
from dither.tables.planning.forecast import GroupErrors
from dither.tables.planning.plan import AggregationPlan, round_down
from dither.tables.planning.profiled import ProfiledRows, settle
from dither.tables.planning.table_model import Floats, People, Values
from dither.tables.query.relations import is_whole
from dither.tables.query.tree import OF_PAIRS, Aggregate, Column, Expression, Query, columns

SKETCHED = ("mean", "var", "std", "quantile", *OF_PAIRS)
CORRECTED = ("count", "count_value", "sum")
"""What is corrected by the histogram of people, whatever its values are."""
_COUNTED = ("count", "count_value", "sum", "histogram", "mode")
_OTHER = "second of "
"""What the second value of a pair is called before the name of its aggregate."""
_MOST_FOR_SKETCHES = Fraction(3, 10)
"""The share that all of the sketches beside a profile take together at most."""
_OCTAVES = 10
"""How many octaves of magnitudes have bins of their own on either side of 0."""


@dataclass(frozen=True)
class Sketched:
    """What was chosen by a sketch."""

    query: Query
    corrections: Mapping[str, Correction]
    expected: Mapping[str, GroupErrors]
    notes: tuple[Note, ...]
    own_limits: bool


def values_to_sketch(
    query: Query, find: Lookup, sums: bool, profiled: ProfiledRows | None = None
) -> dict[str, Fraction]:
    """Return the shares of epsilon for histograms of values whose bounds only the card states, by the name of the first
    aggregate of each; with ``sums``, for values that are added up as well. Those of which a profile has the
    distribution need none."""
    added = {item.value for item in query.aggregates.values() if item.kind == "sum"}
    result: dict[Expression, str] = {}
    for name, item in query.aggregates.items():
        if item.kind not in (*SKETCHED, *(("sum",) if sums else ())):
            continue
        for called, value, stated in ((name, item.value, item.bounds), (_OTHER + name, item.other, item.other_bounds)):
            if stated is not None or value is None or (value in added and not sums):
                continue
            bounds = expressions.public_interval(value, find)
            whole = is_whole(value, lambda column: find(column)[1])
            if bounds is None or bounds[1] - bounds[0] <= (1 if whole else 0):
                continue
            if profiled is None or profiled.values(value, find, bounds) is None:
                result.setdefault(value, called)
    share = BOUNDS_SHARE if profiled is None else min(SKETCH_SHARE, _MOST_FOR_SKETCHES / max(len(result), 1))
    return {VALUES_OF + name: share for name in result.values()}


def _value_of(query: Query, sketched: str) -> Expression | None:
    """Return the expression whose values a private choice sketches, given the name of the choice (such as "values of
    spend", the first value of that aggregate); None for a choice that is no sketch."""
    if not sketched.startswith(VALUES_OF):
        return None
    name = sketched.removeprefix(VALUES_OF)
    if name in query.aggregates:
        return query.aggregates[name].value
    aggregate = query.aggregates.get(name.removeprefix(_OTHER))
    return None if aggregate is None else aggregate.other


def sketch_edges(bounds: tuple[float, float], whole: bool = False) -> tuple[float, ...]:
    """Return edges of bins within bounds: half octaves from the larger bound down, on both sides of 0, and for
    ``whole`` numbers down to 1.

    >>> [round(edge, 1) for edge in sketch_edges((-1, 100))[-4:]]
    [35.4, 50.0, 70.7, 100.0]
    """
    low, high = float(bounds[0]), float(bounds[1])
    largest = max(abs(low), abs(high))
    every = (largest / 2 ** (step / 2) for step in range(2 * _OCTAVES + 1))
    sizes = [size for size in every if not whole or size >= 1]
    inner = sorted({*sizes, *(-size for size in sizes), 0.0})
    return (low, *(edge for edge in inner if low < edge < high), high)


def by_sketch(
    plan: AggregationPlan,
    query: Query,
    context: StatementContext,
    run: Callable[[Statement], list[Any]],
    of_people: tuple[Floats, Fraction, float] | None,
) -> Sketched:
    """Choose bounds by noisy histograms of values, and limits of single aggregates if none is a count or a sum.

    ``of_people`` are the noisy histogram of people, what it cost, and the limit of counts and sums; None where every
    row is a person.
    """
    find = plan.find
    limits = Limits(1, 1, 1, context.card.unit is not None, exceeded=False)
    alone = replace(context, query=replace(query, groups=()), keys=(), limits=limits)
    one = int(statements.bin_limits(limits).sensitivity())
    known: dict[Expression, Values] = {}
    rows_with_values = 1.0
    for name, spent in plan.automatic.items():
        value = _value_of(query, name)
        if value is None:
            continue
        bounds = expressions.public_interval(value, find)
        assert bounds is not None
        whole = is_whole(value, lambda column: find(column)[1])
        edges = sketch_edges(bounds, whole)
        counts = np.zeros(len(edges) - 1, dtype=np.int64)
        for line in run(statements.bins(alone, value, edges, None)):
            counts[int(line[-2])] = int(line[-1])
        mechanism = Laplace(one, round_down(spent))
        noisy = np.asarray(mechanism.release(counts)).astype(np.float64) / one
        histogram = NoisyHistogram(edges, tuple(noisy.tolist()), scale=float(np.asarray(mechanism.scale)) / one)
        values = Values.of_histogram(histogram, bounds, whole)
        rows_with_values = max(rows_with_values, float(noisy.sum()))
        if values is not None:
            known[value] = replace(values, alike=1.0) if _is_of_person(value, plan) else values
    if of_people is None and plan.profiled is not None:
        own, rows = plan.profiled.limits_free, replace(plan.profiled, sketched=known)
    elif of_people is None:
        own = False
        rows = ProfiledRows(TableProfile(None), People.of_one_row(rows_with_values), False, sketched=known, limit=1.0)
    else:
        counts_of_people, epsilon, limit = of_people
        own = not any(item.kind in _COUNTED for item in query.aggregates.values()) and plan.limits.norm == 1
        own = own or plan.profiled is not None
        histogram = NoisyHistogram(tuple(map(float, EDGES)), tuple(counts_of_people.tolist()), scale=1 / float(epsilon))
        limits_of_rows = None if own else limit
        table, people = TableProfile(histogram), People.of_histogram(histogram)
        rows = ProfiledRows(table, people, False, limits_free=own, sketched=known, limit=limits_of_rows)
        if plan.profiled is not None:
            people = people.up_to(plan.profiled.people.most_rows)  # a condition gives nobody more rows
            rows = replace(plan.profiled, people=people, approximate=False, limits_free=True, sketched=known)
    left = plan.guarantee.exact[0] - sum(plan.automatic.values(), Fraction(0))
    every = own or of_people is None
    about = replace(
        query, aggregates={name: item for name, item in query.aggregates.items() if _is_chosen(item, every)}
    )
    settled = settle(replace(plan, query=about), rows, left, None)
    notes = tuple(
        _note(plan, name, value, bounds, known[value])
        for name, item in settled.aggregates.items()
        for value, bounds in ((item.value, item.bounds), (item.other, item.other_bounds))
        if value is not None and value in known and isinstance(bounds, tuple)
    )
    corrections = {
        name: item
        for name, item in settled.corrections.items()
        if plan.profiled is not None
        or settled.aggregates[name].value in known
        or settled.aggregates[name].kind in CORRECTED
    }
    expected = {name: settled.expected[name] for name in corrections}
    chosen = replace(query, aggregates={**query.aggregates, **settled.aggregates})
    return Sketched(chosen, corrections, expected, notes, own)


def _is_of_person(value: Expression, plan: AggregationPlan) -> bool:
    """Return whether a value is computed from a public table that is joined on the person: the same in all of their
    rows."""
    tables = {column.table for column in columns(value)}
    own = {join.table for join in plan.query.joins if join.own == Column(plan.card.unit or "")}
    return bool(tables) and tables <= own


def _is_chosen(aggregate: Aggregate, own: bool) -> bool:
    """Return whether the sketch chooses bounds or a limit of an aggregate."""
    return aggregate.bounds != "auto" and (own or aggregate.kind in (*SKETCHED, *CORRECTED))


def _note(plan: AggregationPlan, name: str, value: Expression, bounds: tuple[float, float], values: Values) -> Note:
    """Return the note on the bounds chosen for a value of an aggregate, with the share of the values beyond."""
    low, high = bounds
    beyond = (values.points < low) | (values.points > high)
    share = float(values.shares[beyond].sum())
    most = share + 2 * float(np.sqrt((values.deviations[beyond] ** 2).sum()))
    spent = sum((item for other, item in plan.automatic.items() if _value_of(plan.query, other) == value), Fraction(0))
    about = {"share": share, "most": min(most, 1.0), "of_card": False}
    return Note("bounds_chosen", {"name": name, "low": low, "high": high, "epsilon": float(spent), **about})
