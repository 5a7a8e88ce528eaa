"""How a question is answered: what is measured, with which noise, for which part of the budget.

A plan is made from the question and the card alone. It reads no data, so it can be shown, checked and charged first.

Measured are whole numbers for each group (:class:`~dither.tables.compile.statements.Measure`), by Laplace or Gaussian
noise on integers, and choices among bins or keys, by the exponential mechanism. One person touches at most ``groups``
groups, so a measure that one person changes by at most b in a group has l1 sensitivity ``groups * b`` and l2
sensitivity ``sqrt(groups) * b``. The parts of the budget add up:

* Laplace: the parts' epsilons add up to epsilon.
* Gaussian: all measures are one vector of normal noise, so ``sum (sensitivity / sigma)^2`` is what counts, and sigma is
  calibrated on the exact curve. Used where its standard deviations are smaller, and a delta is given.
* Keys that are not public are shown if the noisy number of their people reaches a threshold: a key of one person only
  does so with probability at most ``delta / groups``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from dither import arguments
from dither.accounting import gaussian_epsilon, gaussian_ratio
from dither.errors import InvalidArgument, message
from dither.exact import root_up, up
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.mechanisms import Exponential, Gaussian, Laplace
from dither.tables.card.model import MOST_ROWS, Card
from dither.tables.card.values import Value
from dither.tables.compile import expressions, statements
from dither.tables.compile.expressions import GRID_BITS, Lookup, bounded
from dither.tables.compile.queries import DialectSql
from dither.tables.compile.statements import SQUARE_BITS, Measure, Statement, StatementContext, grid
from dither.tables.planning.key_selection import KeySelection, Noise, public_keys, threshold
from dither.tables.planning.quantiles import Rank, levels, ranks
from dither.tables.query.tree import Aggregate, Column, Query

BINS = 8192
MOST_GROUPS = 100_000
KEY_SHARE = Fraction(1, 4)
TOTAL_SHARE = Fraction(1, 5)
_BITS = 80


@dataclass(frozen=True)
class Choice:
    """A choice for each group among bins or keys: an extreme, a mode."""

    name: str
    aggregate: Aggregate
    mechanism: Exponential
    bins: int


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of one value for each group, by the names of their answers."""

    shares: Mapping[str, Fraction]
    aggregate: Aggregate
    rank: Rank
    bins: int


@dataclass(frozen=True)
class Counts:
    """A histogram for each group."""

    name: str
    aggregate: Aggregate
    mechanism: Noise


@dataclass(frozen=True)
class Plan:
    """What will be done, and what it costs."""

    query: Query
    card: Card
    keys: tuple[tuple[Value, ...] | None, ...]
    groups: int
    limit: int
    guarantee: Guarantee
    measures: Mapping[Measure, Noise]
    choices: tuple[Choice, ...] = ()
    quantiles: tuple[Quantiles, ...] = ()
    counts: tuple[Counts, ...] = ()
    selection: KeySelection | None = None
    parts: Mapping[str, tuple[Measure, ...]] = field(default_factory=dict)
    totals: Mapping[Measure, Noise] = field(default_factory=dict)
    """Grand totals measured as well, to which the groups are made to add up."""
    other: bool = False
    """Whether what is in groups that are not shown is shown in one more row, as the totals less the rest."""
    automatic: Fraction | None = None
    """The epsilon of each thing that is still to be chosen privately; see :mod:`dither.tables.planning.automatic`."""
    unstated_limits: tuple[str, ...] = ()
    """What is still to be chosen privately: ``max_groups``, and aggregates by their names."""

    def frame(self, dialect_sql: DialectSql, tables: Mapping[str, exp.Expr], secret: int) -> StatementContext:
        """What the statements need to know of it."""
        return StatementContext(self.query, self.card, self.keys, self.groups, self.limit, secret, dialect_sql, tables)


def make(
    query: Query,
    card: Card,
    *,
    epsilon: object,
    delta: object = None,
    max_groups: object = None,
    max_rows: object = None,
    noise: Literal["best", "laplace", "gaussian"] = "best",
    consistent: bool = False,
    other: bool = False,
) -> Plan:
    """The plan for a question, or the reason why there is none."""
    whole = arguments.epsilon(epsilon)
    epsilon_of_groups = whole * (1 - TOTAL_SHARE) if consistent or other else whole
    exact_delta = None if delta is None else arguments.delta(delta)
    limit = 1 if card.unit is None else arguments.whole(first(max_rows, query.max_rows, card.max_rows), "max_rows")
    if limit > MOST_ROWS:
        raise InvalidArgument(message("max_rows", f"at most {MOST_ROWS}", limit, "sum over more is rarely worth it"))
    find = expressions.lookup(card, {join.table: join.table for join in query.joins})
    _check_joins(query, card, find)
    keys = tuple(public_keys(group.keys, group.value, find) for group in query.groups)
    groups = 1
    if card.unit is not None and query.groups:
        groups = arguments.whole(first(max_groups, query.max_groups, card.max_groups), "max_groups")
        if groups > MOST_GROUPS:
            raise InvalidArgument(message("max_groups", f"at most {MOST_GROUPS}", groups, "the noise grows with it"))
        groups = min(groups, math.prod(len(listed) if listed is not None else groups for listed in keys))
    private = any(listed is None for listed in keys)
    if private and exact_delta is None:
        raise InvalidArgument(
            message(
                "delta",
                "a delta, to choose which keys may be shown",
                "none",
                "pass delta=1e-6, or state the public keys of the groups in the card",
            )
        )
    draft = Plan(query, card, keys, groups, limit, PureDP(epsilon_of_groups), {})
    parts, weights, chosen = _parts(draft, find)
    result = _budget(draft, parts, weights, chosen, epsilon_of_groups, exact_delta, private, noise)
    return _with_totals(result, whole, consistent, other) if consistent or other else result


def _with_totals(plan: Plan, whole: Fraction, consistent: bool, other: bool) -> Plan:
    """The plan with part of the budget spent on grand totals of counts and sums."""
    if consistent and (not plan.query.groups or plan.selection is not None):
        raise InvalidArgument(
            message("consistent", "groups with public keys", "others", "state the keys, or leave consistent out")
        )
    if other and plan.selection is None:
        raise InvalidArgument(
            message("other", "groups whose keys are not public", "others", "leave other out: every group is shown")
        )
    added = [measure for measure in plan.measures if measure.kind in ("count", "people", "values", "sum")]
    epsilon_each = below(whole * TOTAL_SHARE / max(len(added), 1))
    totals: dict[Measure, Noise] = {m: Laplace(plan.groups * m.bound(plan.limit), epsilon_each) for m in added}
    guarantee = plan.guarantee
    return replace(
        plan,
        totals=totals,
        other=other,
        guarantee=ApproxDP(whole, guarantee.exact[1]) if isinstance(guarantee, ApproxDP) else PureDP(whole),
    )


def _check_joins(query: Query, card: Card, find: Lookup) -> None:
    """Large whole numbers that differ are the same as doubles: a row could have two partners."""
    for join in query.joins:
        private_type, public_type = (
            expressions.compile(join.own, find).type,
            card.public[join.table].columns[join.other].type,
        )
        if (private_type, public_type) == ("number", "integer"):
            raise InvalidArgument(
                message(
                    "JOIN",
                    "keys of one type",
                    f"{private_type} and {public_type}",
                    f"state {join.other} as a number in the card",
                )
            )


def check(plan: Plan) -> None:
    """Write every statement of a plan without an engine: what cannot be written is refused before it is paid for."""
    tables = dict.fromkeys(("", *(join.table for join in plan.query.joins)), exp.to_table("t"))
    statements_of(plan, plan.frame(DialectSql("duckdb"), tables, 0))


def statements_of(plan: Plan, context: StatementContext) -> list[Statement]:
    """Every statement of a plan, each once."""
    result = [statements.sums(context, list(plan.measures))] if plan.measures else []
    binned: list[Choice | Quantiles | Counts] = [*plan.choices, *plan.quantiles, *plan.counts]
    for aggregate in (item.aggregate for item in binned):
        assert aggregate.value is not None
        result.append(statements.bins(context, aggregate.value, aggregate.edges, aggregate.keys))
    return list(dict.fromkeys(result))


def first(*given: object) -> object:
    """The first that is stated."""
    return next((value for value in given if value is not None), None)


def _bounds(name: str, aggregate: Aggregate, find: Lookup) -> tuple[tuple[float, float], bool]:
    """The public bounds of an aggregate's value, and whether it is a whole number."""
    assert aggregate.value is not None
    if isinstance(aggregate.value, Column):
        card = find(aggregate.value)[1]
        kind, known = card.type, card.bounds
    else:
        typed = expressions.number(aggregate.value, find)
        kind, known = "number", typed.interval
    if kind not in ("integer", "number"):
        raise InvalidArgument(message(name, "a number", kind, "count it, or group by it"))
    given = aggregate.bounds if aggregate.bounds is not None else known
    if given is None:
        raise InvalidArgument(
            message(
                name, "public bounds of its values", "none", "state them in the card, or as bounds=(low, high) here"
            )
        )
    return arguments.bounds(given), kind == "integer"


def _parts(
    plan: Plan, find: Lookup
) -> tuple[dict[str, tuple[Measure, ...]], dict[str, tuple[float, ...]], list[tuple[str, Aggregate, int]]]:
    """What each aggregate needs: measures with their weights, or a choice among so many bins."""
    parts: dict[str, tuple[Measure, ...]] = {}
    weights: dict[str, tuple[float, ...]] = {}
    chosen: list[tuple[str, Aggregate, int]] = []
    for name, aggregate in plan.query.aggregates.items():
        kind, value = aggregate.kind, aggregate.value
        if kind in ("count", "people"):
            # with one row for each person and group, rows and people are the same number
            same = "people" if plan.limit == 1 else kind
            parts[name], weights[name] = (Measure(same),), (1.0,)
        elif kind == "count_value":
            parts[name], weights[name] = (Measure("values", value),), (1.0,)
        elif kind == "mode":
            assert value is not None
            keys = aggregate.keys if aggregate.keys is not None else public_keys(None, value, find)
            if not keys:
                raise InvalidArgument(
                    message(name, "public keys to choose among", "none", "pass keys=, or in the card")
                )
            chosen.append((name, replace(aggregate, keys=keys), len(keys)))
        elif kind == "histogram":
            edges = aggregate.edges
            if edges is None or len(edges) < 2:
                raise InvalidArgument(message(name, "edges of its bins", "none", "pass edges=(0, 10, 20)"))
            chosen.append((name, aggregate, len(edges) - 1))
        else:
            bounds, whole = _bounds(name, aggregate, find)
            if kind in ("quantile", "min", "max"):
                ends = bounded(*bounds)
                width = ends[1] - ends[0]
                bins = int(width) + 1 if whole and width < BINS else BINS
                first = int(bounds[0]) if whole and bounds[0] == int(bounds[0]) else bounds[0]
                edges = tuple(
                    float(bounds[0]) + width * i / bins if not (whole and width < BINS) else first + i
                    for i in range(bins + 1)
                )
                chosen.append((name, replace(aggregate, edges=edges), bins))
                continue
            steps = grid(bounds, whole, GRID_BITS, plan.limit)
            if steps.width == 0:
                raise InvalidArgument(message(name, "bounds at least 1 apart", "closer ones", "widen them"))
            if kind == "sum":
                typical = (abs(bounds[0]) + abs(bounds[1])) / 2
                parts[name] = (Measure("sum", value, bounds, steps),)
                weights[name] = (max(abs(bounds[0]), abs(bounds[1])) / typical,)
                continue
            needed = [Measure("values", value, bounds, steps), Measure("center", value, bounds, steps)]
            if kind in ("var", "std"):
                coarse = grid(bounds, False, SQUARE_BITS, plan.limit)
                needed.append(Measure("square", value, bounds, coarse))
            parts[name], weights[name] = tuple(needed), tuple(1.0 for _ in needed)
    for name, aggregate in plan.query.aggregates.items():
        if aggregate.weight is not None:
            weight = arguments.positive(aggregate.weight, "weight")
            weights[name] = tuple(weight / len(parts.get(name, (1,))) for _ in parts.get(name, (1,)))
    return parts, weights, chosen


def _budget(
    plan: Plan,
    parts: dict[str, tuple[Measure, ...]],
    weights: dict[str, tuple[float, ...]],
    chosen: list[tuple[str, Aggregate, int]],
    epsilon: Fraction,
    delta: Fraction | None,
    private: bool,
    noise: str,
) -> Plan:
    """Divide the budget: a measure that serves several aggregates gets the largest of its weights once."""
    shares: dict[Measure | str, Fraction] = {}
    for name, needed in parts.items():
        for measure, weight in zip(needed, weights[name], strict=True):
            shares[measure] = max(shares.get(measure, Fraction(0)), Fraction(weight))
    for name, _, _ in chosen:
        shares[name] = Fraction(weights.get(name, (1.0,))[0])
    people = Measure("people")
    if private and people not in shares:
        rest = sum(shares.values(), Fraction(0))
        shares[people] = rest * KEY_SHARE / (1 - KEY_SHARE)
    total = sum(shares.values(), Fraction(0))
    if total == 0:
        raise InvalidArgument(message("question", "at least one aggregate", "none", "add COUNT(*), for example"))
    measured = {measure: share / total for measure, share in shares.items() if isinstance(measure, Measure)}
    picked = {name: share / total for name, share in shares.items() if isinstance(name, str)}
    noises = _noises(plan, measured, epsilon, delta, private, noise)
    normal = any(isinstance(mechanism, Gaussian) for mechanism in noises.values())
    choices, counts = [], []
    ranked: dict[tuple[object, ...], list[tuple[str, Aggregate, int]]] = {}
    for name, aggregate, bins in chosen:
        share_of_epsilon = epsilon * picked[name]
        if aggregate.kind == "histogram":
            counts.append(Counts(name, aggregate, Laplace(plan.groups * plan.limit, below(share_of_epsilon))))
        elif aggregate.kind == "quantile":
            ranked.setdefault((aggregate.value, aggregate.edges), []).append((name, aggregate, bins))
        else:
            choices.append(Choice(name, aggregate, _chooser(plan, aggregate, share_of_epsilon), bins))
    return replace(
        plan,
        guarantee=ApproxDP(epsilon, delta) if delta is not None and (private or normal) else PureDP(epsilon),
        measures=noises,
        choices=tuple(choices),
        quantiles=tuple(
            _quantiles(plan, same, epsilon * sum(picked[name] for name, *_ in same)) for same in ranked.values()
        ),
        counts=tuple(counts),
        selection=threshold(noises[people], delta, plan.groups, normal) if private and delta is not None else None,
        parts=parts,
    )


def below(epsilon: Fraction) -> float:
    """A float not above it."""
    result = float(epsilon)
    return result if Fraction(result) <= epsilon else math.nextafter(result, 0.0)


def _noises(
    plan: Plan,
    shares: dict[Measure, Fraction],
    epsilon: Fraction,
    delta: Fraction | None,
    private: bool,
    noise: str,
) -> dict[Measure, Noise]:
    if not shares:
        return {}
    if noise not in ("best", "laplace", "gaussian"):
        raise InvalidArgument(message("noise", "'best', 'laplace' or 'gaussian'", repr(noise), "leave it out"))
    laplace: dict[Measure, Noise] = {
        measure: Laplace(plan.groups * measure.bound(plan.limit), below(epsilon * share))
        for measure, share in shares.items()
    }
    if delta is None or noise == "laplace":
        if noise == "gaussian":
            raise InvalidArgument(message("delta", "a delta, for Gaussian noise", "none", "pass delta=1e-6"))
        return laplace
    whole = sum(shares.values(), Fraction(0))
    ratio = gaussian_ratio(epsilon * whole, delta / 2 if private else delta)
    gaussian: dict[Measure, Noise] = {}
    for measure, share in shares.items():
        sensitivity = up(root_up(Fraction(plan.groups), _BITS) * measure.bound(plan.limit))
        gaussian[measure] = _normal(sensitivity, ratio * root_up(whole / share, _BITS))
    if noise == "gaussian":
        return gaussian
    # logarithms one by one: variances at a tiny epsilon are beyond what a float holds, and their ratio is nothing
    better = sum(math.log(variance_of(gaussian[m])) - math.log(variance_of(laplace[m])) for m in shares)
    return gaussian if better < 0 else laplace


def variance_of(noise: Noise) -> float:
    """The variance of noise with one scale."""
    result = noise.variance
    assert isinstance(result, float)
    return result


def _normal(sensitivity: float, ratio: Fraction) -> Gaussian:
    """Normal noise of at least ``ratio`` times the sensitivity, by whichever epsilon that is at some delta."""
    delta = min(Fraction(1, 10**6), 1 / (10 * ratio))  # less than its delta at epsilon = 0, about 0.4 / ratio
    epsilon = gaussian_epsilon(ratio, delta)
    while True:
        result = Gaussian(sensitivity, below(epsilon), float(delta))
        assert isinstance(result.scale, float)  # one sensitivity has one scale
        if Fraction(result.scale) >= Fraction(sensitivity) * ratio:
            return result
        epsilon *= 1 - Fraction(1, 1 << 30)


def _chooser(plan: Plan, aggregate: Aggregate, epsilon: Fraction) -> Exponential:
    """The mechanism of one choice in one group; a person is in so many groups, each of which costs."""
    return Exponential(plan.limit, below(epsilon / plan.groups), aggregate.kind == "mode")


def _quantiles(plan: Plan, same: list[tuple[str, Aggregate, int]], epsilon: Fraction) -> Quantiles:
    """Quantiles of the same value, which share what their names would get."""
    shares = {name: share_of(aggregate) for name, aggregate, _ in same}
    ordered = sorted(set(shares.values()))
    epsilon_each = below(epsilon / plan.groups / levels(ordered))
    return Quantiles(shares, same[0][1], ranks(ordered, epsilon_each, plan.limit), same[0][2])


def share_of(aggregate: Aggregate) -> Fraction:
    """The quantile asked for, as a fraction, to a millionth."""
    at = Fraction(str(aggregate.at)).limit_denominator(10**6)
    if not 0 <= at <= 1:
        raise InvalidArgument(message("quantile", "a number from 0 to 1", aggregate.at, "the median is 0.5"))
    return at


__all__ = ["Choice", "Counts", "KeySelection", "Noise", "Plan", "Quantiles", "first", "make", "share_of", "variance_of"]
