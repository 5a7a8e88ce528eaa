"""Limits and bounds of a question without a profile: from a sketch of its rows, which a part of its epsilon buys.

The sketch is a small profile of the rows that are asked about: people by their number of rows, and the values of each
expression of which a mean, a variance or a quantile is asked, where each person has the weight 1 in all. So it feeds
the choice that a profile feeds (:mod:`dither.tables.planning.profiled`). The limit of counts and sums stays the one
that follows from the histogram of people alone (:func:`dither.tables.planning.automatic.best_limit`); where none are
asked for, the others have limits of their own. What the sketch hides in its noise is part of the ±, and what limits
leave out is added back, as with a profile.
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
from dither.tables.planning.automatic import BOUNDS_SHARE, EDGES, VALUES_OF
from dither.tables.planning.choose import Correction
from dither.tables.planning.plan import AggregationPlan, round_down
from dither.tables.planning.profiled import GroupErrors, ProfiledRows, settle
from dither.tables.planning.table_model import Floats, People, Values
from dither.tables.query.relations import is_whole
from dither.tables.query.tree import Aggregate, Expression, Query

SKETCHED = ("mean", "var", "std", "quantile")
CORRECTED = ("count", "count_value", "sum")
"""What is corrected by the histogram of people, whatever its values are."""
_COUNTED = ("count", "count_value", "sum", "histogram", "mode")
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


def values_to_sketch(query: Query, find: Lookup) -> dict[str, Fraction]:
    """Return the shares of epsilon for histograms of values whose bounds only the card states, by the name of the first
    aggregate of each."""
    sums = {item.value for item in query.aggregates.values() if item.kind == "sum"}
    result: dict[Expression, str] = {}
    for name, item in query.aggregates.items():
        if item.kind not in SKETCHED or item.bounds is not None or item.value is None or item.value in sums:
            continue
        bounds = expressions.public_interval(item.value, find)
        whole = is_whole(item.value, lambda column: find(column)[1])
        if bounds is not None and bounds[1] - bounds[0] > (1 if whole else 0):
            result.setdefault(item.value, name)
    return {VALUES_OF + name: BOUNDS_SHARE for name in result.values()}


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
    people: Floats,
    epsilon: Fraction,
    limit: float,
) -> Sketched:
    """Choose bounds by noisy histograms of values, and limits of single aggregates if none is a count or a sum.

    ``people`` is the noisy histogram of people, which cost ``epsilon``; ``limit`` is that of counts and sums.
    """
    find = plan.find
    histogram = NoisyHistogram(tuple(map(float, EDGES)), tuple(people.tolist()), scale=1 / float(epsilon))
    of_people = People.of_histogram(histogram)
    limits = Limits(1, 1, 1, context.card.unit is not None, exceeded=False)
    alone = replace(context, query=replace(query, groups=()), keys=(), limits=limits)
    one = int(statements.bin_limits(limits).sensitivity())
    known: dict[Expression, Values] = {}
    for name, spent in plan.automatic.items():
        aggregate = query.aggregates.get(name.removeprefix(VALUES_OF)) if name.startswith(VALUES_OF) else None
        if aggregate is None or aggregate.value is None:
            continue
        bounds = expressions.public_interval(aggregate.value, find)
        assert bounds is not None
        edges = sketch_edges(bounds, is_whole(aggregate.value, lambda column: find(column)[1]))
        counts = np.zeros(len(edges) - 1, dtype=np.int64)
        for line in run(statements.bins(alone, aggregate.value, edges, None)):
            counts[int(line[-2])] = int(line[-1])
        mechanism = Laplace(one, round_down(spent))
        noisy = np.asarray(mechanism.release(counts)).astype(np.float64) / one
        values = Values.of_histogram(
            NoisyHistogram(edges, tuple(noisy.tolist()), scale=float(np.asarray(mechanism.scale)) / one), bounds
        )
        if values is not None:
            known[aggregate.value] = values
    own = not any(item.kind in _COUNTED for item in query.aggregates.values()) and plan.limits.norm == 1
    rows = ProfiledRows(
        TableProfile(histogram), of_people, False, limits_free=own, sketched=known, limit=None if own else limit
    )
    left = plan.guarantee.exact[0] - sum(plan.automatic.values(), Fraction(0))
    about = replace(query, aggregates={name: item for name, item in query.aggregates.items() if _is_chosen(item, own)})
    settled = settle(replace(plan, query=about), rows, left, None)
    notes = tuple(
        _note(plan, name, item, known[item.value])
        for name, item in settled.aggregates.items()
        if item.value in known and isinstance(item.bounds, tuple)
    )
    corrections = {
        name: item
        for name, item in settled.corrections.items()
        if settled.aggregates[name].value in known or settled.aggregates[name].kind in CORRECTED
    }
    expected = {name: settled.expected[name] for name in corrections}
    chosen = replace(query, aggregates={**query.aggregates, **settled.aggregates})
    return Sketched(chosen, corrections, expected, notes, own)


def _is_chosen(aggregate: Aggregate, own: bool) -> bool:
    """Return whether the sketch chooses bounds or a limit of an aggregate."""
    return aggregate.bounds != "auto" and (own or aggregate.kind in (*SKETCHED, *CORRECTED))


def _note(plan: AggregationPlan, name: str, aggregate: Aggregate, values: Values) -> Note:
    """Return the note on the bounds chosen for an aggregate, with the share of the values beyond."""
    assert isinstance(aggregate.bounds, tuple)
    low, high = aggregate.bounds
    beyond = (values.points < low) | (values.points > high)
    share = float(values.shares[beyond].sum())
    most = share + 2 * float(np.sqrt((values.deviations[beyond] ** 2).sum()))
    spent = plan.automatic.get(VALUES_OF + name, Fraction(0))
    about = {"share": share, "most": min(most, 1.0), "of_card": False}
    return Note("bounds_chosen", {"name": name, "low": low, "high": high, "epsilon": float(spent), **about})
