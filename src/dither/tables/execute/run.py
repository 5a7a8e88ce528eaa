"""From a plan to an answer: run the statements, add the noise, put the pieces together.

Whatever depends on the data here is a whole number for a group, and leaves only with its noise. With public keys every
group is there, with noise, whether anybody is in it or not; otherwise groups below the threshold are dropped. What is
computed of values is NULL where the noisy number of values does not show that there are any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.inference import NoiseLaw, mode_probability
from dither.tables.compile import expressions, statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.statements import Measure
from dither.tables.planning.estimate import (
    corrected,
    inside_rank,
    make_agree,
    most_rows_of_a_person,
    quantile_errors,
    rounded_error,
    without_values,
)
from dither.tables.planning.group_keys import Key, every_group, group_numbers, noisy_measures
from dither.tables.planning.plan import AggregationPlan, BinChoice, Counts, answer_type, statements_of
from dither.tables.planning.quantiles import Quantiles, choose, extreme_interval, intervals
from dither.tables.query.tree import Aggregate

_LARGEST = (1 << 63) - 1

OTHER = None
"""The key of the row for all groups that are not shown."""

Run = Callable[[Statement], list[tuple[Any, ...]]]
Bins = dict[int, int]
"""A group's bins that hold anything, each with how many values."""


@dataclass
class NoisyTable:
    """The noisy table: for each group its key, each answer, and how far it may be off (95 %)."""

    keys: list[Key]
    answers: dict[str, list[Any]] = field(default_factory=dict)
    errors: dict[str, list[float | None]] = field(default_factory=dict)
    limit_errors: dict[str, list[float | None]] = field(default_factory=dict)
    """The part of the errors that is not noise, but not known of what limits and bounds leave out."""
    probabilities: dict[str, list[float | None]] = field(default_factory=dict)
    """Of a mode in each group: how probable it is that nothing is more common."""
    measures: Mapping[Measure, NDArray[Any]] = field(default_factory=dict)
    """What the answers were estimated from: every measure of each group, with its noise."""
    without_values: list[str] = field(default_factory=list)
    """The answers that are NULL in some group because it may have no values."""


def answers(plans: Sequence[AggregationPlan], contexts: Sequence[StatementContext], run: Run) -> list[NoisyTable]:
    """Return the noisy table of each private aggregation of a question: run its statements and add the noise. The
    levels of ROLLUP or CUBE are made consistent by least squares."""
    if not any(plan.reduced for plan in plans):
        return [answer(plan, context, run) for plan, context in zip(plans, contexts, strict=True)]
    measured = [_measured(plan, context, run) for plan, context in zip(plans, contexts, strict=True)]
    make_agree(plans, [noisy for _, noisy in measured])
    return [
        answer(plan, context, run, measured=known)
        for plan, context, known in zip(plans, contexts, measured, strict=True)
    ]


def answer(
    plan: AggregationPlan,
    context: StatementContext,
    run: Run,
    confidence: float = 0.95,
    measured: tuple[list[Key], dict[Measure, NDArray[Any]]] | None = None,
) -> NoisyTable:
    """Return the noisy table of one plan: run its statements, add the noise and estimate the answers.

    ``run`` runs a statement. ``measured`` are the groups and noisy measures where they were computed before; None runs
    the statements for them. Errors are half-widths at this ``confidence``.
    """
    groups, noisy = _measured(plan, context, run) if measured is None else measured
    result = NoisyTable(every_group(plan.keys, plan.ties) or groups, measures=noisy)
    for name in plan.query.aggregates:
        if name in plan.measures_of:
            values, errors, of_limits = corrected(plan, name, noisy, confidence)
            result.answers[name], result.errors[name] = values, errors
            if of_limits is not None:
                result.limit_errors[name] = of_limits
    shown = groups[:-1] if plan.other else groups
    for choice, lines in _binned(plan, context, run, plan.choices):
        chosen = [
            _choose_bin(choice, _counts_of_bins(lines.get(key, {}), choice.bins), plan, confidence) for key in shown
        ]
        result.answers[choice.name] = [item.value for item in chosen]
        result.errors[choice.name] = [item.error for item in chosen]
        if choice.interval is not None and choice.aggregate.kind == "mode":
            result.probabilities[choice.name] = [item.probability for item in chosen]
    for ranked, lines in _binned(plan, context, run, plan.quantiles):
        counts_of_groups = [_counts_of_bins(lines.get(key, {}), ranked.bins) for key in shown]
        places = [choose(ranked.rank, counts) for counts in counts_of_groups]
        spans: list[dict[Any, tuple[int, int]]] | None = None
        limit = ranked.aggregate.rows_per_person
        one = 1 << plan.bin_limits(ranked.aggregate).bits()
        cluster = most_rows_of_a_person(plan, limit) * one if plan.population else None
        if ranked.interval is not None:
            spans = [
                intervals(place, counts, ranked.interval, confidence, cluster)
                for place, counts in zip(places, counts_of_groups, strict=True)
            ]
        for name, share in ranked.shares.items():
            rounded = answer_type(plan, plan.query.aggregates[name]) == "integer"
            values = [_middle_of_bin(ranked.aggregate, place[share], rounded) for place in places]
            result.answers[name] = values
            if spans is None:
                public = expressions.public_interval(ranked.aggregate.value, plan.find)
                result.errors[name] = [
                    error if error != math.inf else _distance_to_bounds(value, public)
                    for value, error in zip(values, quantile_errors(plan, name, noisy, len(values)), strict=True)
                ]
            else:
                result.errors[name] = [
                    _half_width(ranked.aggregate, value, spans[i][share]) for i, value in enumerate(values)
                ]
    for count, lines in _binned(plan, context, run, plan.counts):
        bins = len(count.aggregate.edges or ()) - 1
        whole = np.array([_counts_of_bins(lines.get(key, {}), bins) for key in shown], dtype=np.int64)
        released = np.asarray(count.mechanism.release(whole.ravel()) if whole.size else whole.ravel())
        one = 1 << plan.bin_limits(count.aggregate).bits()
        rows = released if one == 1 else np.rint(released / one).astype(np.int64)
        result.answers[count.name] = rows.reshape(len(shown), bins).tolist()
        error = float(count.mechanism.error(confidence, integer=True)) / one
        result.errors[count.name] = [error if one == 1 else float(rounded_error(error))] * len(shown)
    _set_null(result, plan, noisy)
    if plan.other:  # the row of all other groups: counts and sums follow from the totals, their errors are unknown
        for name, aggregate in plan.query.aggregates.items():
            added = aggregate.kind in ("count", "count_value", "people", "sum")
            result.answers[name][len(shown) :] = [result.answers[name][-1] if added else None]
            result.errors[name][len(shown) :] = [None]
            if name in result.limit_errors:
                result.limit_errors[name][len(shown) :] = [None]
            if name in result.probabilities:
                result.probabilities[name][len(shown) :] = [None]
    return result


def _set_null(table: NoisyTable, plan: AggregationPlan, noisy: Mapping[Measure, NDArray[Any]]) -> None:
    """Set the answers to NULL in those groups whose noisy counts of values do not show that there are any."""
    for name, values in table.answers.items():
        empty = without_values(plan, name, noisy)
        places: list[int] = [] if empty is None else np.flatnonzero(empty[: len(values)]).tolist()
        table.without_values += [name] if places else []
        for place in places:
            values[place] = table.errors[name][place] = None
            if name in table.limit_errors:
                table.limit_errors[name][place] = None
            if name in table.probabilities:
                table.probabilities[name][place] = None


def _group(plan: AggregationPlan, line: tuple[Any, ...]) -> Key:
    """Return the group that a line of a result is about.

    In a line, public keys stand as their index. If all keys are public the group is these indices, which differ even
    where an engine considers keys equal; otherwise indices are replaced by the keys.
    """
    if plan.selection is None:
        return tuple(int(value) for value in line[: len(plan.keys)])
    return tuple(
        value if keys is None else keys[int(value)]
        for value, keys in zip(line[: len(plan.keys)], plan.keys, strict=True)
    )


def _measured(
    plan: AggregationPlan, context: StatementContext, run: Run
) -> tuple[list[Key], dict[Measure, NDArray[Any]]]:
    """Return the groups to show, and for each measure its noisy numbers in their order.

    With public keys these are all groups; otherwise those that the private selection releases and, if the plan has a
    row for all ``other`` groups, that row: noisy totals minus the groups shown.
    """
    every = group_numbers(plan.keys, plan.ties)
    measures = list(plan.measures)
    if not measures:
        return every or [], {}
    lines = _lines(plan, context, run)
    if plan.selection is None:
        assert every is not None
        nothing = (0,) * len(measures)
        return every, noisy_measures([lines.get(group, nothing) for group in every], plan.measures)
    totals = {
        m: _within_64_bits(noise.release(sum(line[measures.index(m)] for line in lines.values())))
        for m, noise in plan.totals.items()
    }
    keys, noisy = plan.selection.release(lines, plan.measures)
    if plan.other:
        keys = [*keys, (OTHER,) * len(plan.keys)]
        noisy = {
            m: np.array([*values.tolist(), _within_64_bits(totals[m] - sum(values.tolist()))], dtype=np.int64)
            for m, values in noisy.items()
        }
    return keys, noisy


def _lines(plan: AggregationPlan, context: StatementContext, run: Run) -> dict[Key, tuple[int, ...]]:
    """Return the exact measures of each group with rows, in the order of the plan. With private keys, groups that are
    missing from the first statement, which counts people, are ignored: they could not be selected."""
    places = len(plan.keys)
    columns: dict[Measure, dict[Key, int]] = {}
    groups: dict[Key, None] = {}
    for statement, measures in statements.of_measures(context, list(plan.measures)):
        lines = {_group(plan, line): line[places:] for line in run(statement)}
        if len(measures) == len(plan.measures):
            return lines
        if plan.selection is None or not columns:
            groups |= dict.fromkeys(lines)
        columns |= {measure: {key: line[i] for key, line in lines.items()} for i, measure in enumerate(measures)}
    return {key: tuple(columns[measure].get(key, 0) for measure in plan.measures) for key in groups}


def _within_64_bits(value: int) -> int:
    """Return a number clamped to 64 bits, as noisy numbers are stored: noise can be larger."""
    return min(max(int(value), -_LARGEST - 1), _LARGEST)


def _binned(
    plan: AggregationPlan,
    context: StatementContext,
    run: Run,
    items: tuple[BinChoice, ...] | tuple[Quantiles, ...] | tuple[Counts, ...],
) -> Iterator[tuple[Any, Mapping[Key, Bins]]]:
    """Yield each of the plan's ``items`` (choices of a bin, quantiles or histograms) with the counts of its bins by
    group; items with the same bins share one statement."""
    counts_of: dict[int, dict[Key, Bins]] = {}
    for item in items:
        statement = statements.bins_of(context, item.aggregate)  # the context builds it once and keeps it
        if id(statement) not in counts_of:
            # there are thousands of lines for each group, so that little is done for each
            places, lines = len(plan.keys), run(statement)
            written: dict[tuple[Any, ...], Bins] = {}
            for line in lines:
                written.setdefault(line[:places], {})[line[places]] = line[places + 1]
            result: dict[Key, Bins] = {}
            for group, counts in written.items():
                result.setdefault(_group(plan, group), {}).update(counts)
            counts_of[id(statement)] = result
        yield item, counts_of[id(statement)]


def _counts_of_bins(counts: Bins, bins: int) -> NDArray[np.int64]:
    """Return the counts of a group as an array over all bins, 0 where ``counts`` has none."""
    result = np.zeros(bins, dtype=np.int64)
    result[list(counts)] = list(counts.values())
    return result


@dataclass(frozen=True)
class _BinAnswer:
    """The value chosen for one group, its ± and, for a mode, the probability that it is the most common; None where
    they were not measured."""

    value: Any
    error: float | None = None
    probability: float | None = None


def _choose_bin(choice: BinChoice, filled: NDArray[np.int64], plan: AggregationPlan, confidence: float) -> _BinAnswer:
    """Return the mode, minimum or maximum of one group, chosen privately by the exponential mechanism from the exact
    counts ``filled`` of its bins.

    The score of a bin is its count for a mode. For a minimum or maximum it is minus the number of values between the
    bin and the wanted rank, which lies a few values inside of the end (:func:`inside_rank`).
    """
    aggregate, noise = choice.aggregate, choice.interval
    if aggregate.kind == "mode":
        assert aggregate.keys is not None
        place = int(choice.mechanism.select_index(filled))
        if noise is None:
            return _BinAnswer(aggregate.keys[place])
        noisy = np.asarray(noise.release(filled)).astype(np.float64)
        rate = choice.mechanism.epsilon / float(choice.mechanism.sensitivity)
        probability = mode_probability(place, noisy, NoiseLaw.of(noise, integer=True), rate)
        return _BinAnswer(aggregate.keys[place], probability=probability)
    up_to = np.cumsum(filled)
    inside = inside_rank(plan, choice)
    target = inside if aggregate.kind == "min" else int(up_to[-1]) - inside
    misses = np.maximum(0, np.maximum(up_to - filled - target, target - up_to))
    place = int(choice.mechanism.select_index(-misses))
    value = _middle_of_bin(aggregate, place, answer_type(plan, aggregate) == "integer")
    if noise is None:
        return _BinAnswer(value)
    return _BinAnswer(
        value, _half_width(aggregate, value, extreme_interval(aggregate.kind, place, filled, noise, confidence))
    )


def _half_width(aggregate: Aggregate, value: float, span: tuple[int, int]) -> float:
    """Return the ± of a value that lies in the bins ``span[0]`` to ``span[1] - 1``: its larger distance to their two
    ends."""
    assert aggregate.edges is not None
    low, high = aggregate.edges[span[0]], aggregate.edges[span[1]]
    if isinstance(low, int):  # bins of one whole number
        high = max(high - 1, low)
    return float(max(value - low, high - value, 0.0))


def _distance_to_bounds(value: float, public: tuple[float, float] | None) -> float | None:
    """Return the distance from a value to the farther public bound; None without public bounds."""
    return None if public is None else float(max(value - public[0], public[1] - value))


def _middle_of_bin(aggregate: Aggregate, place: int, whole: bool) -> float:
    """Return the middle of bin number ``place``, rounded if ``whole``; for a bin of one whole number that number."""
    assert aggregate.edges is not None
    low, high = aggregate.edges[place], aggregate.edges[place + 1]
    middle = low if isinstance(low, int) else (low + high) / 2
    return round(middle) if whole else float(middle)


def rehearse(plan: AggregationPlan, context: StatementContext, engine: Any) -> None:
    """Run every statement of a plan on empty tables made from the card, so that statements that the engine cannot
    compile are refused before the charge. Nothing here depends on the data."""
    for statement in statements_of(plan, context):
        empty = {name: engine.empty_of(name or plan.card.name) for name in statement.sources}
        engine.rehearse(statement.on(empty))
