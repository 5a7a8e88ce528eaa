"""Limits and bounds that nobody stated, chosen privately from noisy histograms out of the question's own budget.

*How much a person counts for* (``max_rows``, ``max_groups``). One histogram counts people by how many rows they have,
in bins whose edges grow by the fourth root of 2; every person is in one bin, so its sensitivity is 1. The limit, and
what it leaves out, follow from the noisy histogram alone (:mod:`dither.tables.planning.best_limit`). Where Laplace and
normal noise are both possible, and there are many groups, two histograms (of the l1 norm and of the l2 norm of a
person's rows) at half the cost each also tell which noise is better.

*Which groups* (``max_groups`` where keys are not public, or people are counted). The same with the number of a person's
groups instead of the number of rows; never more groups than rows.

*Bounds of values* follow from a histogram of magnitudes (:mod:`dither.tables.planning.automatic_bounds`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.accounting import gaussian_ratio
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.mechanisms import Laplace
from dither.present.digits import two_digits
from dither.tables.compile import expressions, statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.limits import MAX_TOTAL, Limits
from dither.tables.notes import Note
from dither.tables.planning.automatic_bounds import Unseen, edges_of, least_seen
from dither.tables.planning.automatic_bounds import choose as choose_bounds
from dither.tables.planning.best_limit import EDGES, BestLimit, best_limit, unseen_people
from dither.tables.planning.key_selection import number_of_groups
from dither.tables.planning.left_out import LeftOut, estimate_left_out
from dither.tables.planning.plan import Plan, below, variance_of
from dither.tables.query.tree import Aggregate, Expression, Query

SHARES = {"max_rows": Fraction(1, 10), "max_groups": Fraction(1, 10), "bias": Fraction(1, 20)}
"""The share of the budget that the choice of a limit takes, and learning how much stated limits leave out (``bias``);
bounds of an aggregate take :data:`BOUNDS_SHARE`."""
BOUNDS_SHARE = Fraction(1, 20)
SECOND_LOOK_SHARE = Fraction(1, 3)
"""The share of what is left for the answers that is spent on looking for bounds again, where none were found."""
STATE_BOUNDS = "state its bounds, as in AVG(x, contribution_bounds_per_row => (0, 100)) or bounds=(0, 100) in Python"
_SHARE_NOT_SHOWN = 1 / 20
"""Keys of more than this share of all people are to be shown, where the number of groups is chosen."""
BOUNDS_OF = "bounds of "
"""What the choice of bounds is called before the name of its aggregate, which may be that of a limit."""
_PRIVATE_GROUPS = 100


def unstated_limits(
    query: Query, max_groups: object, max_rows: object, private: bool, bias: bool = False
) -> dict[str, Fraction]:
    """What has to be chosen, with its share of the budget: limits, and the names of aggregates without bounds; with
    ``bias`` also how much stated limits leave out, unless that is learned along with a limit.
    """
    result: dict[str, Fraction] = {}
    kinds = {aggregate.kind for aggregate in query.aggregates.values()}
    rows = max_rows == "auto" and kinds != {"people"}
    if rows:
        result["max_rows"] = SHARES["max_rows"]
    if max_groups == "auto" and query.groups and (private or "people" in kinds or not rows):
        result["max_groups"] = SHARES["max_groups"]
    of_rows = kinds != {"people"} and not rows
    of_groups = query.groups and "max_groups" not in result and (private or "people" in kinds)
    if bias and (of_rows or of_groups):
        result["bias"] = SHARES["bias"]
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds == "auto":
            result[BOUNDS_OF + name] = BOUNDS_SHARE
    return result


def with_provisional_bounds(query: Query) -> Query:
    """The question with stand-ins for bounds that are chosen later: enough to plan and to charge."""
    return _bounded(
        query, {name: (0.0, 1.0) for name, aggregate in query.aggregates.items() if aggregate.bounds == "auto"}
    )


def _bounded(query: Query, bounds: dict[str, tuple[float, float]]) -> Query:
    aggregates: dict[str, Aggregate] = {
        name: replace(aggregate, bounds=bounds[name]) if name in bounds else aggregate
        for name, aggregate in query.aggregates.items()
    }
    return replace(query, aggregates=aggregates)


def total_cost(epsilon: Fraction, delta: Fraction | None) -> Guarantee:
    """What everything costs, whichever noise is chosen at the end."""
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


class Choices(NamedTuple):
    """What was chosen privately: the question with bounds, the limits, the aggregates for which no bounds were found,
    how much the limits leave out, and what to say of all of it.
    """

    query: Query
    max_groups: int | None
    max_rows: int | None
    norm: Literal[1, 2]
    without_bounds: tuple[str, ...]
    left_out: LeftOut | None
    notes: list[str]
    memberships_left_out: LeftOut | None = None
    """The same for people's groups instead of rows: by how much counts of people are low."""
    spent_again: Fraction = Fraction(0)
    """What a second look for bounds cost, out of what was left for the answers."""


def stand_in(plan: Plan) -> Choices:
    """Choices as they might be, to try what is done with them before anything is charged."""
    groups, rows = (1 if name in plan.automatic else None for name in ("max_groups", "max_rows"))
    return Choices(plan.query, groups, rows, plan.limits.norm, (), None, [])


def choose_limits(
    plan: Plan,
    query: Query,
    context: StatementContext,
    run: Callable[[Statement], list[Any]],
    either_norm: bool = False,
) -> Choices:
    """Choose what nobody stated, each for its part of the budget; with ``either_norm`` also whether Laplace or normal
    noise is used, by the norm that bounds people better."""
    notes: list[str] = []
    groups = rows = None
    left_out = memberships = None
    groups_epsilon = Fraction(0)
    if plan.automatic.get("max_groups"):
        groups_epsilon = plan.automatic["max_groups"]
        lines = run(statements.people_by_size(context, EDGES, "groups"))
        histogram = noisy_histogram(lines, groups_epsilon)
        chosen = best_limit(histogram, groups_epsilon, _noise_of_one(plan), _assumed_groups(plan))
        most = MAX_TOTAL if "max_rows" in plan.automatic else MAX_TOTAL // plan.limit
        groups = min(chosen.limit, _most_groups(plan), most)
        if plan.selection is not None:  # keys of few people are not shown, and the fewest grow with the groups
            groups = min(groups, max(1, int(float(histogram.sum()) * _SHARE_NOT_SHOWN / plan.selection.threshold)))
    norm = plan.limits.norm
    if plan.automatic.get("max_rows"):
        norm, chosen, people, epsilon = _rows_limit(plan, context, run, either_norm)
        groups = None if groups is None else min(groups, chosen.limit)  # a person has a row in each group at least
        in_each = groups or plan.groups
        rows = math.ceil(chosen.limit / (in_each if norm == 1 else math.sqrt(in_each)))
        rows = min(rows, MAX_TOTAL // in_each)
    # what is left out is that of the limits that apply, which are not quite those that were best
    if groups is not None:
        memberships = estimate_left_out(histogram, groups_epsilon, groups, _most_groups(plan))
        notes.append(Note("chosen", f"max_groups = {groups}, chosen privately with ε = {float(groups_epsilon):.3g}"))
    beyond = None
    if rows is not None:
        total, spent = Limits(in_each, rows, norm).total, float(plan.automatic["max_rows"])
        beyond = estimate_left_out(people, epsilon, float(total))
        left_out = _both(beyond, memberships, plan)
        note = f"each person counts for at most {math.ceil(total):,} rows, chosen privately with ε = {spent:.3g}"
        notes.append(Note("chosen", note if left_out is None else f"{note}: {beyond}; {unseen_people(epsilon)}"))
    if plan.automatic.get("bias"):
        beyond, memberships, epsilon = _beyond_stated_limits(plan, groups, context, run, beyond, memberships)
        left_out = None if beyond is None else _both(beyond, memberships, plan)
        learned = [str(left_out)] if left_out is not None else []
        learned += [memberships.of("people's groups")] if memberships is not None else []
        spent = float(plan.automatic["bias"])
        notes.append(Note("bias", f"{', and '.join(learned)}; {unseen_people(epsilon)}; learned with ε = {spent:.3g}"))
    bounds, unknown, again = _bounds(plan, query, context, run, notes)
    return Choices(_bounded(query, bounds), groups, rows, norm, unknown, left_out, notes, memberships, again)


def _both(rows: LeftOut, memberships: LeftOut | None, plan: Plan) -> LeftOut | None:
    """What the limit on rows and the choice of a person's groups leave out together; None if one of them is unknown.

    Where keys are public, every row counts in its group, and the limit on rows is the only one. Otherwise rows are also
    left out with the groups that a person does not count in: how many is not known, since the people with many groups
    need not be those with many rows. What is beyond the limit on rows is left out in any case.
    """
    if plan.selection is None:
        return rows
    if memberships is None:
        return None
    return LeftOut.at_least(rows.low)


def _beyond_stated_limits(
    plan: Plan,
    chosen_groups: int | None,
    context: StatementContext,
    run: Callable[[Statement], list[Any]],
    rows: LeftOut | None,
    memberships: LeftOut | None,
) -> tuple[LeftOut | None, LeftOut | None, Fraction]:
    """How much of the rows, and of people's groups, is beyond the limits, None for what is not asked; and what each
    histogram cost. ``rows`` and ``memberships`` are known already where their limits were chosen privately."""
    kinds = {aggregate.kind for aggregate in plan.query.aggregates.values()}
    limits = replace(plan.limits, groups=chosen_groups or plan.groups)
    by_groups = bool(plan.query.groups) and memberships is None and (plan.selection is not None or "people" in kinds)
    by_rows = kinds != {"people"} and rows is None
    epsilon = plan.automatic["bias"] / (2 if by_groups and by_rows else 1)
    if by_groups:
        lines = run(statements.people_by_size(context, EDGES, "groups"))
        memberships = estimate_left_out(noisy_histogram(lines, epsilon), epsilon, limits.groups, _most_groups(plan))
    if by_rows:
        lines = run(statements.people_by_size(context, EDGES, "rows" if limits.norm == 1 else "squares"))
        rows = estimate_left_out(noisy_histogram(lines, epsilon), epsilon, float(limits.total))
    return rows, memberships, epsilon


def _rows_limit(
    plan: Plan, context: StatementContext, run: Callable[[Statement], list[Any]], either_norm: bool
) -> tuple[Literal[1, 2], BestLimit, NDArray[np.float64], Fraction]:
    """The limit on a person's rows: in the norm of the plan, or where the noise may be either, in the better one; with
    the noisy histogram that it was chosen from, and what that cost."""
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


def _normal_noise_of_one(plan: Plan) -> float:
    """The same with normal noise, for a plan with Laplace noise and a delta to spend."""
    epsilon, delta = plan.guarantee.exact
    left = epsilon - sum(plan.automatic.values(), Fraction(0))
    laplace = next(iter(plan.measures.values()), None)
    share = 1.0 if laplace is None else float(laplace.guarantee.exact[0] / left)
    return float(gaussian_ratio(left, delta)) / math.sqrt(min(share, 1.0))


def _most_groups(plan: Plan) -> int:
    """How many groups there can be, as far as that is public."""
    return min(number_of_groups(plan.keys, plan.ties, private=MAX_TOTAL), MAX_TOTAL)


def _assumed_groups(plan: Plan) -> int:
    """How many groups what is left out is spread over: as many as there are public keys, or some number of private
    ones, of which nobody knows how many there are."""
    return min(number_of_groups(plan.keys, plan.ties, private=_PRIVATE_GROUPS), MAX_TOTAL)


def _noise_of_one(plan: Plan) -> float:
    """The standard deviation of the noise in rows, if one person counts for one row."""
    if plan.measures:  # a row changes a sum by a quarter of the largest value, say, and everything else by 1
        measure, noise = next(iter(plan.measures.items()))
        row = float(measure.sensitivity(plan.limits)) / (4 if measure.kind == "sum" else 1)
        return math.sqrt(variance_of(noise)) / row
    return 4 / float(plan.guarantee.exact[0])


def _bounds(
    plan: Plan,
    query: Query,
    context: StatementContext,
    run: Callable[[Statement], list[Any]],
    notes: list[str],
) -> tuple[dict[str, tuple[float, float]], tuple[str, ...], Fraction]:
    """Bounds of the aggregates that have none, the names of those for which none could be found, and what looking for
    them again cost.

    Without bounds there is no answer, so that what is left for it would be lost. A share of that is spent on a second
    histogram where the first one shows none: the cost of the question, which is charged already, stays the same.
    """
    bounds: dict[str, tuple[float, float]] = {}
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
        chosen = choose_bounds(*_noisy(lines, len(edges) - 1, sensitivity, epsilon), edges, is_stated)
        if isinstance(chosen, Unseen):
            again += each_again
            epsilon, spent = each_again, epsilon + each_again
            chosen = choose_bounds(*_noisy(lines, len(edges) - 1, sensitivity, epsilon), edges, is_stated)
        if isinstance(chosen, Unseen):
            bounds[name] = (0, 1)
            unknown.append(name)
            more = "spend more" if chosen.factor is None else f"spend about {two_digits(chosen.factor)} times the ε"
            reason = f"no bounds of {name} could be found with ε = {float(spent):.3g}, so it has no answer"
            notes.append(Note("bounds", f"{reason}, and what it cost stays charged: {STATE_BOUNDS}, or {more}"))
            continue
        low, high = chosen.low, chosen.high
        if whole:
            low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
        bounds[name] = low, high
        detail = f"({low:g}, {high:g})"
        how = f"bounds of {name} = {detail}, chosen privately with ε = {float(epsilon):.3g}"
        beyond = f"values beyond them count as the nearer bound, so {name} may be off by more than its ±"
        notes.append(Note("chosen", f"{how}: {beyond}; {chosen.beyond}"))
    return bounds, tuple(unknown), again


def _edges(value: Expression, find: expressions.Lookup) -> tuple[tuple[float, ...], bool, bool]:
    """The edges of the bins that bounds of a value are looked for among, whether it is a whole number, and whether the
    first and the last edge are bounds in the card."""
    typed = expressions.compile(value, find)
    stated = expressions.public_interval(value, find)
    whole = typed.type == "integer"
    return edges_of(typed.interval if stated is None else stated, whole), whole, stated is not None


def unseen_bounds_notes(plan: Plan) -> tuple[str, ...]:
    """What is said, before anything is charged, of bounds that may not be found: of how few people there are none, even
    if all of them have alike values and the second look is needed."""
    result = []
    find = expressions.lookup(plan.card, {join.table: join.table for join in plan.query.joins})
    names = [name for name in plan.query.aggregates if plan.automatic.get(BOUNDS_OF + name)]
    left = plan.guarantee.exact[0] - sum(plan.automatic.values(), Fraction(0))
    for name in names:
        value = plan.query.aggregates[name].value
        assert value is not None
        edges, _, is_stated = _edges(value, find)
        if not is_stated:
            people = two_digits(least_seen(Laplace(1, below(left * SECOND_LOOK_SHARE / len(names))), len(edges) - 1))
            result.append(
                Note(
                    "bounds",
                    f"{name}: its bounds are looked for privately, and with fewer than about {people} people none are "
                    f"found and it has no answer, although it is charged; {STATE_BOUNDS} to avoid that",
                )
            )
    return tuple(result)


def noisy_histogram(lines: list[Any], epsilon: Fraction) -> NDArray[np.float64]:
    """The noisy number of people in each bin of :data:`EDGES`."""
    return _noisy(lines, len(EDGES), 1, epsilon)[0].astype(np.float64)


def _noisy(lines: list[Any], bins: int, sensitivity: int, epsilon: Fraction) -> tuple[NDArray[np.int64], Laplace]:
    """A noisy histogram to which one person adds at most ``sensitivity``, and its mechanism."""
    counts = np.zeros(bins, dtype=np.int64)
    for line in lines:
        counts[int(line[-2])] = int(line[-1])
    mechanism = Laplace(sensitivity, below(epsilon))
    released: NDArray[np.int64] = np.asarray(mechanism.release(counts))
    return released, mechanism
