"""Limits and bounds that nobody stated, chosen privately from noisy histograms out of the question's own budget.

*How much a person counts for* (``max_rows``, ``max_groups``). One histogram counts people by how many rows they have,
in bins whose edges grow by the fourth root of 2; every person is in one bin, so its sensitivity is 1. With a limit R
the noise grows in proportion to R, and what people have beyond R is left out; R is the edge for which the sum of both
squares is smallest. At the best R only a few people have more, fewer than the histogram can show: they are estimated
from a family of tails, each weighed by the likelihood of the noise that it implies (:func:`_tails`). The same weights
tell how much is left out, and between which limits that lies. Where Laplace and normal noise are both possible, and
there are many groups, two histograms (of the l1 norm and of the l2 norm of a person's rows) at half the cost each also
tell which noise is better.

*Which groups* (``max_groups`` where keys are not public, or people are counted). The same with the number of a person's
groups instead of the number of rows; never more groups than rows.

*Bounds of values* are powers of two: from the lowest to the highest magnitude that holds more values than noise alone
would show, of a histogram to which every person adds one value in all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.accounting import gaussian_ratio
from dither.errors import InvalidArgument, message
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.mechanisms import Laplace
from dither.tables.compile import expressions, statements
from dither.tables.compile.limits import MAX_TOTAL, Limits
from dither.tables.compile.statements import Statement, StatementContext
from dither.tables.planning.plan import Plan, below, variance_of
from dither.tables.query.tree import Aggregate, Column, Query

SHARES = {"max_rows": Fraction(1, 10), "max_groups": Fraction(1, 10), "bias": Fraction(1, 20)}
"""The share of the budget that the choice of a limit takes, and learning how much stated limits leave out (``bias``);
bounds of an aggregate take :data:`BOUNDS_SHARE`."""
BOUNDS_SHARE = Fraction(1, 20)
CONFIDENCE = 1 - 1e-6
"""How sure it is that no bin is taken for a filled one by its noise alone: one such bin makes bounds useless."""
EDGES = tuple(sorted({round(2 ** (i / 4)) for i in range(81)}))
"""Upper edges of the bins of people by their number of rows or groups; the last bin takes in all that is beyond."""
_POWERS = [2.0**k for k in range(-20, 51)]
MAGNITUDES = (*(-power for power in reversed(_POWERS)), 0.0, *_POWERS)
_PRIVATE_GROUPS = 100
_QUANTILE = 2.33
_WINDOW = 4
_SURE = 18.0
"""What the sum of so many bins of noise alone exceeds less than once in 10,000 histograms, in units of its scale."""
_LEVELS = np.geomspace(0.25, 3, 10)
_SLOPES = np.array([-1.0, -0.7, -0.4, -0.2, 0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.4, 2.0, 3.0, 6.0])
_CURVES = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6, 1.2, 3.0])
_LEAST_SLOPE = 1.5 * math.log(2) / 4


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
    if bias and not rows and (kinds != {"people"} or (query.groups and "max_groups" not in result)):
        result["bias"] = SHARES["bias"]
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds == "auto":
            if not isinstance(aggregate.value, Column):
                raise InvalidArgument(
                    message(name, "a plain column for bounds='auto'", "an expression", "state its bounds")
                )
            result[name] = BOUNDS_SHARE
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


@dataclass(frozen=True)
class LeftOut:
    """How much of the rows a limit leaves out, as a share of all rows: an estimate, and where it lies."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.of("the rows")

    def of(self, what: str) -> str:
        """A sentence about what is left out: rows, or groups of people."""
        return f"about {_percent(self.share)} of {what} are left out ({_percent(self.low)} to {_percent(self.high)})"


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
    if "max_groups" in plan.automatic:
        groups_epsilon = plan.automatic["max_groups"]
        lines = run(statements.people_by_size(context, EDGES, "groups"))
        histogram = _histogram(lines, groups_epsilon)
        chosen = _best_limit(histogram, groups_epsilon, _noise_of_one(plan), _assumed_groups(plan))
        most = MAX_TOTAL if "max_rows" in plan.automatic else MAX_TOTAL // plan.limit
        groups, memberships = min(chosen.limit, _most_groups(plan), most), chosen.left_out
    norm = plan.limits.norm
    if "max_rows" in plan.automatic:
        norm, chosen, epsilon = _rows_limit(plan, context, run, either_norm)
        groups = None if groups is None else min(groups, chosen.limit)  # a person has a row in each group at least
        left_out = _both(chosen.left_out, memberships, plan)
        in_each = groups or plan.groups
        rows = math.ceil(chosen.limit / (in_each if norm == 1 else math.sqrt(in_each)))
        rows = min(rows, MAX_TOTAL // in_each)
        total = math.ceil(Limits(in_each, rows, norm).total)
        notes.append(
            f"each person counts for at most {total:,} rows, chosen privately with ε = {float(epsilon):.3g}: "
            f"{chosen.left_out}"
        )
    if groups is not None:
        notes.insert(0, f"max_groups = {groups}, chosen privately with ε = {float(groups_epsilon):.3g}")
    if "bias" in plan.automatic:
        left_out, memberships = _beyond_stated_limits(plan, groups, context, run, memberships)
        epsilon = plan.automatic["bias"]
        learned = [str(left_out)] if left_out is not None else []
        learned += [memberships.of("people's groups")] if memberships is not None else []
        notes.append(f"{', and '.join(learned)}; learned with ε = {float(epsilon):.3g}")
    bounds, unknown = _bounds(plan, query, context, run, notes)
    return Choices(_bounded(query, bounds), groups, rows, norm, unknown, left_out, notes, memberships)


def _both(rows: LeftOut, memberships: LeftOut | None, plan: Plan) -> LeftOut | None:
    """What the limit on rows and the choice of a person's groups leave out together; None if one of them is unknown.

    Where keys are public, every row counts in its group, and the limit on rows is the only one. Otherwise a person with
    n rows in k groups counts with about ``min(R, n G / k)`` rows, so that the larger of both shares is left out of
    theirs. Of all rows that is at least the larger of both shares, and no more than if both were independent, unless
    people with many rows have fewer groups than others.
    """
    if plan.selection is None:
        return rows
    if memberships is None:
        return None
    share, low = max(rows.share, memberships.share), max(rows.low, memberships.low)
    return LeftOut(share, low, 1 - (1 - rows.high) * (1 - memberships.high))


def _beyond_stated_limits(
    plan: Plan,
    chosen_groups: int | None,
    context: StatementContext,
    run: Callable[[Statement], list[Any]],
    memberships: LeftOut | None,
) -> tuple[LeftOut | None, LeftOut | None]:
    """How much of the rows, and of people's groups, is beyond limits that were stated; None for what is not asked."""
    kinds = {aggregate.kind for aggregate in plan.query.aggregates.values()}
    limits = replace(plan.limits, groups=chosen_groups or plan.groups)
    by_groups = bool(plan.query.groups) and memberships is None and (plan.selection is not None or "people" in kinds)
    epsilon = plan.automatic["bias"] / (2 if by_groups and kinds != {"people"} else 1)
    if by_groups:
        lines = run(statements.people_by_size(context, EDGES, "groups"))
        memberships = _left_out(_histogram(lines, epsilon), epsilon, limits.groups)
    if kinds == {"people"}:
        return None, memberships
    lines = run(statements.people_by_size(context, EDGES, "rows" if limits.norm == 1 else "squares"))
    rows = _left_out(_histogram(lines, epsilon), epsilon, float(limits.total))
    return _both(rows, memberships, plan), memberships


def _rows_limit(
    plan: Plan, context: StatementContext, run: Callable[[Statement], list[Any]], either_norm: bool
) -> tuple[Literal[1, 2], BestLimit, Fraction]:
    """The limit on a person's rows: in the norm of the plan, or where the noise may be either, in the better one."""
    whole, groups = plan.automatic["max_rows"], _assumed_groups(plan)
    norms: tuple[Literal[1, 2], ...] = (1, 2) if either_norm else (plan.limits.norm,)
    epsilon = whole / len(norms)
    results: list[tuple[float, Literal[1, 2], BestLimit]] = []
    for norm in norms:
        lines = run(statements.people_by_size(context, EDGES, "rows" if norm == 1 else "squares"))
        noise = _noise_of_one(plan) if norm == plan.limits.norm else _normal_noise_of_one(plan)
        limit = _best_limit(_histogram(lines, epsilon), epsilon, noise, groups)
        results.append((limit.error, norm, limit))
    _, norm, limit = min(results, key=lambda item: item[0])
    return norm, limit, whole


def _normal_noise_of_one(plan: Plan) -> float:
    """The same with normal noise, for a plan with Laplace noise and a delta to spend."""
    epsilon, delta = plan.guarantee.exact
    left = epsilon - sum(plan.automatic.values(), Fraction(0))
    laplace = next(iter(plan.measures.values()), None)
    share = 1.0 if laplace is None else float(laplace.guarantee.exact[0] / left)
    return float(gaussian_ratio(left, delta)) / math.sqrt(min(share, 1.0))


def _most_groups(plan: Plan) -> int:
    """How many groups there can be, as far as that is public."""
    return min(math.prod(MAX_TOTAL if keys is None else len(keys) for keys in plan.keys), MAX_TOTAL)


def _assumed_groups(plan: Plan) -> int:
    """How many groups what is left out is spread over: as many as there are public keys, or some number of private
    ones, of which nobody knows how many there are."""
    return min(math.prod(_PRIVATE_GROUPS if keys is None else len(keys) for keys in plan.keys), MAX_TOTAL)


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
) -> tuple[dict[str, tuple[float, float]], tuple[str, ...]]:
    """Bounds of the aggregates that have none, and the names of those for which none could be found."""
    bounds: dict[str, tuple[float, float]] = {}
    unknown: list[str] = []
    limits = Limits(1, 1, 1, context.card.unit is not None, exceeded=False)
    alone = replace(context, query=replace(query, groups=()), keys=(), limits=limits)
    for name, aggregate in query.aggregates.items():
        if aggregate.bounds != "auto" or aggregate.value is None:
            continue
        epsilon = plan.automatic[name]
        lines = run(statements.bins(alone, aggregate.value, MAGNITUDES, None))
        span = _span(lines, int(statements.bin_limits(limits).sensitivity()), epsilon)
        if span is None:
            bounds[name] = (0, 1)
            unknown.append(name)
            notes.append(
                f"no bounds of {name} could be found with ε = {float(epsilon):.3g}, so it has no answer: "
                "state its bounds, or spend more"
            )
            continue
        low, high = span
        if expressions.compile(aggregate.value, context.find).type == "integer":
            low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
        bounds[name] = low, high
        detail = f"({bounds[name][0]:g}, {bounds[name][1]:g})"
        notes.append(f"bounds of {name} = {detail}, chosen privately with ε = {float(epsilon):.3g}")
    return bounds, tuple(unknown)


def _span(lines: list[Any], sensitivity: int, epsilon: Fraction) -> tuple[float, float] | None:
    """From the lowest to the highest magnitude that holds more values than noise alone would show in any; None if none
    does.
    """
    noisy, mechanism = _noisy(lines, len(MAGNITUDES) - 1, sensitivity, epsilon)
    width = float(mechanism.error(CONFIDENCE, coordinates=len(MAGNITUDES) - 1, integer=True))
    filled = np.flatnonzero(noisy > width)
    if filled.size == 0:
        return None
    return MAGNITUDES[int(filled[0])], MAGNITUDES[int(filled[-1]) + 1]


def _histogram(lines: list[Any], epsilon: Fraction) -> NDArray[np.float64]:
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


class BestLimit(NamedTuple):
    """A limit on what one person counts for, and what it leaves out."""

    limit: int
    left_out: LeftOut
    error: float


def _best_limit(people: NDArray[np.float64], epsilon: Fraction, noise_of_one: float, groups: int) -> BestLimit:
    """The limit with the least squared error of noise and of what is left out, from the noisy histogram of people.

    How many people are in a bin of the tail varies as in a Poisson law about what is expected there: a few people with
    very many rows may be there, or not. That is part of the squared error, and of the limits of what is left out.

    What is left out is spread over the groups, as a rule unevenly: the mean square is counted as twice what it would be
    if it were spread evenly.
    """
    upper = np.array(EDGES, dtype=np.float64)
    expected, weights = _without_noise(people, epsilon)
    beyond = np.maximum(_middles()[None, :] - upper[:, None], 0.0)  # by limit, and by bin
    out = expected @ beyond.T  # by tail, and by limit
    varied = expected @ (beyond**2).T
    errors = (noise_of_one * upper) ** 2 + weights @ (out**2 + varied) * min(1.0, 2 / groups**2)
    best = int(np.argmin(errors))
    return BestLimit(EDGES[best], _beyond_limit(expected, weights, EDGES[best]), math.sqrt(errors[best]))


def _left_out(people: NDArray[np.float64], epsilon: Fraction, limit: float) -> LeftOut:
    """How much a limit leaves out, from the noisy histogram of people."""
    return _beyond_limit(*_without_noise(people, epsilon), limit)


def _without_noise(people: NDArray[np.float64], epsilon: Fraction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Histograms of people that may have led to this noisy one, with their probabilities."""
    expected, weights = _tails(people * float(epsilon))
    return expected / float(epsilon), weights


def _beyond_limit(expected: NDArray[np.float64], weights: NDArray[np.float64], limit: float) -> LeftOut:
    """How much a limit leaves out, from histograms of people with their probabilities."""
    middle = _middles()
    beyond = np.maximum(middle - limit, 0.0)
    out = expected @ beyond  # by tail
    by_chance = _QUANTILE * np.sqrt(expected @ beyond**2)
    low = _weighted_quantile(np.maximum(out - by_chance, 0.0), weights, 0.01)
    high = _weighted_quantile(out + by_chance, weights, 0.99)
    rows = max(float(weights @ expected @ middle), 1.0)
    share, least, most = (min(part / rows, 1.0) for part in (float(weights @ out), low, high))
    return LeftOut(share, min(least, share), max(most, share))


def _middles() -> NDArray[np.float64]:
    """The middles of the bins of :data:`EDGES`."""
    upper = np.array(EDGES, dtype=np.float64)
    middles: NDArray[np.float64] = np.sqrt((np.concatenate([[0.0], upper[:-1]]) + 1) * upper)
    return middles


def _weighted_quantile(values: NDArray[np.float64], weights: NDArray[np.float64], level: float) -> float:
    order = np.argsort(values)
    place = int(np.searchsorted(np.cumsum(weights[order]), level))
    return float(values[order[min(place, len(order) - 1)]])


def _tails(people: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Histograms without noise that may have led to this noisy one, with their probabilities; in units of the scale.

    Up to the last bins that are filled beyond doubt, the noisy numbers are good enough. Beyond, tails of the form
    ``level * exp(-a i - b i^2)`` are weighed by the likelihood of the noise that they imply, all else being equal. They
    fall at least as fast as the tail of a Pareto law with exponent 1.5.
    """
    bins = len(people)
    sums = np.convolve(people, np.ones(_WINDOW), "full")[:bins]
    sure = np.flatnonzero(sums > _SURE)
    start = max(int(sure[-1]) - _WINDOW + 1, 0) if sure.size else 0
    i = np.arange(bins - start, dtype=np.float64)
    base = max(float(people[start : start + 2].mean()), 1.0)
    level, a, b = (axis.ravel()[:, None] for axis in np.meshgrid(base * _LEVELS, _SLOPES, _CURVES, indexing="ij"))
    falls = a + 2 * b * _WINDOW >= _LEAST_SLOPE
    level, a, b = level[falls[:, 0]], a[falls[:, 0]], b[falls[:, 0]]
    slope = np.maximum(a + b * (2 * i + 1), np.where(i >= _WINDOW, _LEAST_SLOPE, -np.inf))
    logs = np.concatenate([np.zeros((len(level), 1)), -np.cumsum(slope, axis=1)[:, :-1]], axis=1)
    tails = level * np.exp(np.maximum(logs, -700.0))
    fit = -np.abs(people[None, start:] - tails).sum(axis=1)
    weights = np.exp(fit - fit.max())
    before = np.broadcast_to(np.maximum(people[:start], 0.0), (len(weights), start))
    return np.concatenate([before, tails], axis=1), weights / weights.sum()


def _percent(share: float) -> str:
    """A share as a percentage.

    >>> _percent(0.5), _percent(0.0312), _percent(2e-7), _percent(0)
    ('50 %', '3.1 %', 'less than 0.01 %', '0 %')
    """
    if 0 < share < 0.0001:
        return "less than 0.01 %"
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"


__all__ = ["Choices", "LeftOut", "choose_limits", "total_cost", "unstated_limits", "with_provisional_bounds"]
