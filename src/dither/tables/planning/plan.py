"""The plan of one private aggregation: what is measured, with which noise, for which part of the budget.

A plan is made from the question and the card alone. It reads no data, so it can be shown, checked and charged first.

Measured are whole numbers for each group (:class:`~dither.tables.compile.statements.Measure`), by Laplace or Gaussian
noise on integers, and choices among bins or keys, by the exponential mechanism. The moments of a column are one
measurement (:class:`~dither.tables.compile.statements.Moments`): COUNT(*), COUNT, SUM, AVG, VAR and STDDEV that are
about the same column share it, and its part of the budget. A lone sum is measured as such, which takes less noise.
Aggregates with different limits of their own (``rows_per_person``) share nothing: their rows have different weights.

One person touches at most ``groups`` groups, so a measure that one person changes by at most b in a group has l1
sensitivity ``groups * b`` and l2 sensitivity ``sqrt(groups) * b``. The parts of the budget add up:

* Laplace: the parts' epsilons add up to epsilon.
* Gaussian: all measures are one vector of normal noise, so ``sum (sensitivity / sigma)^2`` is what counts, and sigma is
  calibrated on the exact curve. Used where its standard deviations are smaller, and a delta is given.
* Keys that are not public are shown if the noisy number of their people reaches a threshold: a key of one person only
  does so with probability at most ``delta / groups``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from dither import arguments
from dither.accounting import gaussian_epsilon, gaussian_ratio
from dither.errors import InvalidArgument, fix_by_options
from dither.exact import root_up, up
from dither.guarantees import FREE, ApproxDP, Guarantee, PureDP
from dither.mechanisms import Exponential, Gaussian, Laplace
from dither.tables.card.accounts import pays_delta
from dither.tables.card.model import Card, Type
from dither.tables.compile import expressions, statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.expressions import GRID_BITS, Lookup, bounded
from dither.tables.compile.limits import MAX_TOTAL, Limits, SharedBounds
from dither.tables.compile.statements import (
    PAIR_BITS,
    Measure,
    Moments,
    ValuePair,
    grid,
    is_race,
    near_zero,
    pair_grid,
    pair_products,
)
from dither.tables.options import ReleaseOptions
from dither.tables.planning.group_keys import (
    KeySelection,
    Noise,
    PublicKeys,
    Tie,
    mode_keys,
    narrowed_keys,
    number_of_groups,
    public_keys,
    threshold,
    tied_values,
    ties_of,
)
from dither.tables.planning.quantiles import Quantiles, levels, ranks
from dither.tables.planning.tails import race_of
from dither.tables.planning.top_keys import KEYS, TopKeys, TopQuestion, weights_statement
from dither.tables.query.nodes import Dialect
from dither.tables.query.relations import is_whole
from dither.tables.query.tree import EXTREMES, OF_PAIRS, Aggregate, Column, Query, private_tables, public_tables, show

if TYPE_CHECKING:  # questions without a profile need neither
    from dither.tables.planning.choose import Correction
    from dither.tables.planning.forecast import GroupErrors
    from dither.tables.planning.profiled import ProfiledRows

BINS = 8192

Part = tuple[Measure, ...]
"""Measures that are released as one vector."""


@dataclass(frozen=True)
class BinChoice:
    """A choice for each group among bins or keys: an extreme, a mode."""

    name: str
    aggregate: Aggregate
    mechanism: Exponential
    bins: int
    interval: Laplace | None = None
    """The noise of a histogram of the bins or keys, if an interval, or for a mode its probability, was asked for."""


@dataclass(frozen=True)
class Counts:
    """A histogram for each group."""

    name: str
    aggregate: Aggregate
    mechanism: Noise


@dataclass(frozen=True)
class Measurements:
    """What has to be measured, by the names of aggregates: vectors with their weights, and choices among bins."""

    parts: Mapping[str, Part]
    weights: Mapping[str, float]
    choices: tuple[tuple[str, Aggregate, int], ...]
    """Aggregates that are chosen among bins: the name, the aggregate, and the number of bins."""


def _bounds(name: str, aggregate: Aggregate, find: Lookup) -> tuple[tuple[float, float], bool]:
    """Return the public bounds of an aggregate's value, and whether it is a whole number."""
    assert aggregate.value is not None
    if isinstance(aggregate.value, Column):
        card = find(aggregate.value)[1]
        kind, known = card.type, card.bounds
    else:
        whole = is_whole(aggregate.value, lambda column: find(column)[1])
        kind, known = "integer" if whole else "number", expressions.public_interval(aggregate.value, find)
    if kind not in ("integer", "number"):
        raise InvalidArgument(name, "a number", kind, "count it, or group by it")
    given = aggregate.bounds if aggregate.bounds is not None else known
    if given is None:
        here = "by bounds=(0, 100), or as in AVG(amount, contribution_bounds_per_row => (0, 100))"
        fix = f"state them in the card, or in the question, {here}"
        if expressions.compile(aggregate.value, find).range is not None:
            fix = f"hold it within bounds: LEAST(GREATEST({show(aggregate.value)}, 0), 100), for example"
        raise InvalidArgument(name, "public bounds of its values", "none", fix)
    if given == known and known is not None and known[0] == known[1]:
        # every value is the same, as in SUM(CASE WHEN x > 0 THEN 1 END): wider bounds that hold it are as true
        given = (min(known[0], 0.0), max(known[0], 0.0)) if known[0] else (0.0, 1.0)
    return arguments.bounds(given), kind == "integer"


def measurements(
    query: Query, keys: PublicKeys, limits: Limits, find: Lookup, population: bool = False, any_tails: bool = False
) -> Measurements:
    """Return what to measure for each aggregate: a vector of measures with its weight, or a choice among bins.

    Aggregates of one value share its moments, and the number of rows follows from moments that count rows without a
    value as well: everything is measured, and paid for, once. Errors for a ``population`` need the squares of values.
    """
    if any_tails:
        return _races(query, limits, find)
    same = _counts_people(query, keys, limits)
    allowed = {name: _rows_per_person(name, aggregate, limits) for name, aggregate in query.aggregates.items()}
    parts: dict[str, Part] = {}
    weights: dict[str, float] = {}
    chosen: list[tuple[str, Aggregate, int]] = []
    moments = _moments(query, limits, find, same, population, allowed)
    for name, aggregate in query.aggregates.items():
        kind, value, own = aggregate.kind, aggregate.value, limits.of_aggregate(allowed[name])
        if kind == "people" or (kind == "count" and same and allowed[name] is None):
            parts[name], weights[name] = (Measure("people"),), 1.0
        elif kind in OF_PAIRS:
            parts[name], weights[name] = pair_products(_pair(name, aggregate, own, find)), 1.0
        elif kind == "count_distinct":
            parts[name], weights[name] = (Measure("distinct", value),), 1.0
        elif kind == "count":
            counting = (item for other, item in moments.items() if item.nulls and allowed[other] == allowed[name])
            rows = next(counting, None)
            parts[name], weights[name] = (Measure("rows"),) if rows is None else rows.parts, 1.0
        elif kind == "mode":
            assert value is not None
            listed = aggregate.keys if aggregate.keys is not None else mode_keys(value, query.where, find)
            if not listed:
                where = show(value) if isinstance(value, Column) else "x"
                largest = f"SELECT {where} … GROUP BY {where} ORDER BY COUNT(*) DESC LIMIT 1"
                fix = f"state keys = […] in the card, keep some of its values: WHERE {where} IN (…), or write {largest}"
                raise InvalidArgument(name, "public keys that the mode is chosen among", "none", fix)
            chosen.append((name, replace(aggregate, keys=listed), len(listed)))
        elif kind == "histogram":
            edges = aggregate.edges
            if edges is None or len(edges) < 2:
                raise InvalidArgument(name, "edges of its bins", "none", "pass edges=(0, 10, 20)")
            chosen.append((name, aggregate, len(edges) - 1))
        elif kind in ("quantile", "min", "max"):
            chosen.append(_binned(name, aggregate, find))
        else:
            vector = moments[name]
            alone = kind == "sum" and sum(item is vector for item in moments.values()) == 1 and not vector.nulls
            steps = None if population else vector.grid
            alone = alone and steps is not None and near_zero(steps, math.ceil(own.total))
            parts[name] = (Measure("sum", value, vector),) if alone else vector.parts
            weights[name] = 1.0
            if alone:
                low, high = vector.bounds or (0.0, 1.0)
                weights[name] = max(abs(low), abs(high)) / ((abs(low) + abs(high)) / 2)
        if name in parts and allowed[name] is not None:
            parts[name] = tuple(replace(measure, rows_per_person=allowed[name]) for measure in parts[name])
    for name, aggregate in query.aggregates.items():
        if aggregate.weight is not None:
            weights[name] = arguments.positive(aggregate.weight, "weight")
    return Measurements(parts, weights, tuple(chosen))


def _races(query: Query, limits: Limits, find: Lookup) -> Measurements:
    """Return what to measure for each aggregate of a question with ``tails="any"``: for counts and sums the levels of
    the R2T mechanism (:mod:`dither.tables.planning.tails`)."""
    parts: dict[str, Part] = {}
    for name, item in query.aggregates.items():
        if item.kind == "people":
            parts[name] = (Measure("people"),)
            continue
        if item.rows_per_person is not None:
            fix = "leave out rows_per_person: max_rows says how many rows anybody has"
            raise InvalidArgument(name, "no limit of its own, with tails='any'", item.rows_per_person, fix)
        bounds = _bounds(name, item, find) if item.kind == "sum" else None
        parts[name] = race_of(name, item.kind, item.value, bounds, limits)
    stated = {name: item.weight for name, item in query.aggregates.items()}
    weights = {name: 1.0 if weight is None else arguments.positive(weight, "weight") for name, weight in stated.items()}
    return Measurements(parts, weights, ())


def _rows_per_person(name: str, aggregate: Aggregate, limits: Limits) -> int | None:
    """Return the limit on rows that an aggregate itself states; None for none, or where every row is a person."""
    if aggregate.rows_per_person is None:
        return None
    if aggregate.kind in ("people", "count_distinct"):
        fix = "leave it out: max_groups says how many groups of a person count"
        raise InvalidArgument(name, "rows_per_person of an aggregate that adds up rows", aggregate.kind, fix)
    result = arguments.whole(aggregate.rows_per_person, "rows_per_person")
    if result > MAX_TOTAL:
        raise InvalidArgument("rows_per_person", f"at most {MAX_TOTAL}", result, "the noise grows with it")
    return result if limits.weighted else None


def _counts_people(query: Query, keys: PublicKeys, limits: Limits) -> bool:
    """Return whether counts of rows can be measured as counts of people: each person has at most one row in a group,
    and all aggregates are counts. It is False for levels, whose counts of rows add up."""
    if limits.level_groups is not None:
        return False
    kinds = {aggregate.kind for aggregate in query.aggregates.values()}
    private = any(listed is None for listed in keys)
    return limits.rows == 1 and kinds <= {"count", "people"} and (private or not query.groups or "people" in kinds)


def _moments(
    query: Query,
    limits: Limits,
    find: Lookup,
    counts_people: bool,
    population: bool,
    allowed: Mapping[str, int | None],
) -> dict[str, Moments]:
    """Return the moments from which each aggregate is estimated: one vector for all aggregates of one value, with equal
    bounds and limits, of the highest degree among them. A count of rows is measured by the first vector with its limit,
    which then also counts rows without a value."""
    degrees = {"count_value": 0, **dict.fromkeys(("sum", "mean"), 2 if population else 1), "var": 2, "std": 2}
    needed: dict[str, tuple[tuple[object, ...], int]] = {}
    bounds: dict[str, tuple[tuple[float, float], bool] | None] = {}
    aggregates = query.aggregates
    for name, aggregate in aggregates.items():
        if aggregate.kind in degrees and aggregate.value is not None:
            bounds[name] = None if aggregate.kind == "count_value" else _bounds(name, aggregate, find)
            needed[name] = (aggregate.value, allowed[name], bounds[name]), degrees[aggregate.kind]
    for name, (column, degree) in needed.items():  # a count of values is part of any other moments of the value
        if degree == 0:
            other = next((c for c, d in needed.values() if d and c[:2] == column[:2]), column)
            needed[name] = other, degree
    result: dict[str, Moments] = {}
    vectors: dict[tuple[object, ...], Moments] = {}
    rows = {  # the limits of counts of rows that no moments have counted yet
        allowed[name]
        for name, aggregate in aggregates.items()
        if aggregate.kind == "count" and not (counts_people and allowed[name] is None)
    }
    for name, (column, _) in needed.items():
        if column not in vectors:
            degree = max(d for c, d in needed.values() if c == column)
            known = next((bounds[n] for n, (c, _) in needed.items() if c == column and bounds[n] is not None), None)
            counts_rows, own = allowed[name] in rows, limits.of_aggregate(allowed[name])
            rows.discard(allowed[name])
            vectors[column] = _vector(own, name, aggregates[name], degree, counts_rows, known)
        result[name] = vectors[column]
    return result


def _pair(name: str, aggregate: Aggregate, limits: Limits, find: Lookup) -> ValuePair:
    """Return the pair of values, with bounds and grids, that an aggregate of two values needs. It is the same for both
    orders of its arguments, so that CORR(x, y) and CORR(y, x) share one measurement."""
    assert aggregate.other is not None
    sides = [
        (item.value, *_bounds(name, item, find))
        for item in (aggregate, replace(aggregate, value=aggregate.other, bounds=aggregate.other_bounds))
    ]
    sides.sort(key=repr)
    # what one row adds, the square of twice the width, times the rows of one person has to stay below 2^30
    bits = min(PAIR_BITS, (27 - math.ceil(limits.total).bit_length()) // 2)
    grids = [pair_grid(bounds, whole, bits, name) for _, bounds, whole in sides]
    (one, one_bounds, _), (two, two_bounds, _) = sides
    assert one is not None
    assert two is not None
    return ValuePair((one, two), (one_bounds, two_bounds), (grids[0], grids[1]))


def _vector(
    limits: Limits,
    name: str,
    aggregate: Aggregate,
    degree: int,
    nulls: bool,
    known: tuple[tuple[float, float], bool] | None,
) -> Moments:
    """Return the moments of a value up to a degree; ``known`` is (bounds, is whole), or None to count values only."""
    value = aggregate.value
    assert value is not None
    if known is None:
        return Moments(value, 0, nulls)
    bounds, whole = known
    total = math.ceil(limits.total)
    steps = grid(bounds, whole, GRID_BITS, total)
    if steps.width == 0:
        raise InvalidArgument(name, "bounds at least 1 apart", "closer ones", "widen them")
    if degree < 2:
        return Moments(value, 1, nulls, bounds, steps)
    # what one row adds, times the rows of one person, has to stay below 2^30
    divisor = -(-(int(steps.width) ** 2) // (1 << max(29 - total.bit_length(), 1)))
    return Moments(value, 2, nulls, bounds, steps, divisor)


def _binned(name: str, aggregate: Aggregate, find: Lookup) -> tuple[str, Aggregate, int]:
    """Return the name of a quantile or extreme, the aggregate with the edges of its bins, and their number."""
    bounds, whole = _bounds(name, aggregate, find)
    ends = bounded(*bounds)
    width = ends[1] - ends[0]
    bins = int(width) + 1 if whole and width < BINS else BINS
    first = int(bounds[0]) if whole and bounds[0] == int(bounds[0]) else bounds[0]
    edges = tuple(
        float(bounds[0]) + width * i / bins if not (whole and width < BINS) else first + i for i in range(bins + 1)
    )
    return name, replace(aggregate, edges=edges), bins


KEY_SHARE = Fraction(1, 4)
TOTAL_SHARE = Fraction(1, 5)
INTERVAL_SHARE = Fraction(1, 3)
_BITS = 80
_COUNTS = ("count", "count_value", "count_distinct", "people", "histogram")
_OF_ITS_TYPE = ("sum", "min", "max", "mode")


@dataclass(frozen=True)
class Aggregation:
    """One private aggregation of a question, with everything that its plan needs but a budget."""

    query: Query
    card: Card
    options: ReleaseOptions
    """With numbers for ``max_groups`` and ``max_rows``: 1 where they are still to be chosen privately."""
    keys: PublicKeys
    ties: tuple[Tie, ...]
    """Which keys occur together; all others in every combination."""
    limits: Limits
    needed: Measurements
    shared_bounds: SharedBounds | None = None
    """How it is bounded with other aggregations, where the question has several."""
    unstated: Mapping[str, Fraction] = field(default_factory=dict)
    """What is chosen privately, and the share of epsilon that each choice takes: ``max_rows``, ``max_groups``,
    bounds of aggregates; see :mod:`dither.tables.planning.automatic`."""
    top: TopQuestion | None = None
    """The question for the largest groups, if it is one: ``keys`` are those chosen, or stand-ins before the choice."""
    profiled: ProfiledRows | None = None
    """What the profile of the card says about its rows, by which limits and bounds that nobody stated are chosen."""
    corrections: Mapping[str, Correction] = field(default_factory=dict)
    """What follows for answers from what limits and bounds leave out, by their names."""
    expected: Mapping[str, GroupErrors] = field(default_factory=dict)
    """The total errors that are expected of answers by the profile."""

    @property
    def find(self) -> Lookup:
        """The lookup of the SQL and the card of a column, for expressions on the aggregation's rows."""
        return expressions.lookup_of(self.card, self.query.joins)

    @property
    def measures_of(self) -> Mapping[str, Part]:
        """What each aggregate is estimated from, by the name of its answer."""
        return self.needed.parts

    @property
    def asked_keys(self) -> PublicKeys:
        """The keys that are public without being chosen."""
        return self.keys if self.top is None else self.top.keys

    @property
    def has_private_keys(self) -> bool:
        """Whether the keys of some column of GROUP BY are not public."""
        return any(listed is None for listed in self.keys)

    @property
    def population(self) -> bool:
        """Whether the errors are for the population that the rows were drawn from."""
        return self.options.interval == "population"

    @property
    def other(self) -> bool:
        """Whether groups that are not shown are one more row, as the totals less the rest."""
        return self.options.other

    def bin_limits(self, aggregate: Aggregate) -> Limits:
        """Return the limits under which the bins of an aggregate are counted."""
        return statements.bin_limits(self.limits, aggregate.rows_per_person, aggregate.kind in EXTREMES)

    @property
    def max_groups(self) -> int:
        """How many groups one person counts for at most."""
        return self.limits.groups

    @property
    def max_rows(self) -> int:
        """How many rows one person counts for at most in each of ``max_groups`` groups."""
        return self.limits.rows

    def statement_context(self, dialect: Dialect, tables: Mapping[str, exp.Expr], secret: int) -> StatementContext:
        """Return the context of the aggregation's statements on these tables; ``secret`` keys their hashes."""
        keys = self.asked_keys if KEYS in self.unstated else self.keys
        return StatementContext(self.query, self.card, keys, self.limits, secret, dialect, tables)

    def with_budget(self, epsilon: Fraction, delta: Fraction | None, joint: Fraction | None = None) -> AggregationPlan:
        """Return the plan at this budget, on which only noise, thresholds and the norm of the limits depend.

        ``joint`` is this aggregation's share of a question whose aggregations are one vector of normal noise: its part
        of sum (sensitivity / sigma)^2. None releases it separately.
        """
        if self.has_private_keys and delta is None:
            raise self.needs_delta()
        return _divided(self, epsilon, delta, joint)

    def needs_delta(self) -> InvalidArgument:
        """Return the error for private keys without a delta, which their selection costs."""
        fix = [f"{text}, or {make_keys_public(self)}" for text in fix_by_options("pass {delta}", delta=1e-6)]
        return InvalidArgument("delta", "a delta, to choose which keys may be shown", "none", *fix)


@dataclass(frozen=True, kw_only=True)
class AggregationPlan(Aggregation):
    """An aggregation with its budget: the noise of each measure, choice, quantile and histogram, and the guarantee."""

    guarantee: Guarantee
    measures: Mapping[Measure, Noise]
    choices: tuple[BinChoice, ...] = ()
    quantiles: tuple[Quantiles, ...] = ()
    counts: tuple[Counts, ...] = ()
    selection: KeySelection | None = None
    top_keys: TopKeys | None = None
    """How the keys of the largest groups are chosen."""
    totals: Mapping[Measure, Noise] = field(default_factory=dict)
    """Grand totals measured as well, from which ``other`` follows."""
    automatic: Mapping[str, Fraction] = field(default_factory=dict)
    """What is still to be chosen privately, and the epsilon of each. It is 0 where the choice is that of another
    aggregation of the same rows, and for bounds that have been chosen."""
    reduced: Mapping[Measure, float] = field(default_factory=dict)
    """What least squares over the levels does to the standard deviation of each measure: a factor of at most 1."""


@dataclass(frozen=True)
class QuestionPlan:
    """The plan of a question: one plan for each of its private aggregations."""

    parts: tuple[AggregationPlan, ...]
    of_public: Query | None = None
    """The question, where it reads public tables alone and has no private aggregation."""
    before: tuple[QuestionPlan, ...] = ()
    """The plans of the questions that are answered first (:attr:`Query.before`)."""

    @property
    def query(self) -> Query:
        """The first aggregation, which has what is done with the answers of all of them: shape, SQL around them."""
        return self.parts[0].query if self.of_public is None else self.of_public

    @cached_property
    def cost(self) -> Guarantee:
        """What the question costs: the epsilons and deltas of its aggregations add up."""
        if self.of_public is not None:
            return FREE
        parts = [part.guarantee for part in self.parts] + [plan.cost for plan in self.before]
        if len(parts) == 1:
            return parts[0]
        exact = [part.exact for part in parts]
        epsilon, delta = (sum((numbers[i] for numbers in exact if len(numbers) > i), Fraction(0)) for i in (0, 1))
        return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def aggregation_of(
    query: Query,
    card: Card,
    options: ReleaseOptions,
    shared_bounds: SharedBounds | None = None,
    known: tuple[PublicKeys, tuple[Tie, ...]] | None = None,
) -> Aggregation:
    """Return an aggregation whose limits are stated; ``known`` are its keys, where they were looked up before."""
    has_unit = card.unit is not None
    keys, ties = keys_and_ties(query, card, options.other) if known is None else known
    rows = arguments.whole(coalesce(options.max_rows, query.max_rows, card.max_rows), "max_rows") if has_unit else 1
    groups, level_groups = 1, None if shared_bounds is None else 1
    if has_unit and (query.groups or shared_bounds is not None):
        groups = arguments.whole(coalesce(options.max_groups, query.max_groups, card.max_groups), "max_groups")
        possible = max(number_of_groups(keys, ties, private=groups), 1)  # no key may have been chosen
        if shared_bounds is not None:
            level_groups, possible = min(groups, possible), shared_bounds.most_groups
        groups = min(groups, possible)
    if groups * rows > MAX_TOTAL:
        raise InvalidArgument(
            "max_rows", f"max_groups times max_rows at most {MAX_TOTAL}", groups * rows, "the noise grows with it"
        )
    most = groups if level_groups is None else level_groups
    exceeded = None not in keys and number_of_groups(keys, ties) > most
    limits = Limits(groups, rows, 1, has_unit, has_unit and exceeded, level_groups=level_groups)
    needed = measurements(
        query,
        keys,
        limits,
        expressions.lookup_of(card, query.joins),
        options.interval == "population",
        options.tails == "any",
    )
    return Aggregation(query, card, options, keys, ties, limits, needed, shared_bounds)


def keys_of(query: Query, card: Card, listed_only: bool = False) -> PublicKeys:
    """Return the public keys of each column of GROUP BY; None where they are not public, or not listed where they must
    be."""
    return keys_and_ties(query, card, listed_only)[0]


def keys_and_ties(query: Query, card: Card, listed_only: bool = False) -> tuple[PublicKeys, tuple[Tie, ...]]:
    """Return the public keys of each column of GROUP BY, and which of them occur together."""
    tied = tied_values(query, card)
    keys = public_keys(
        query.groups, query.where, expressions.lookup_of(card, query.joins), listed_only=listed_only, tied=tied
    )
    keys = narrowed_keys(query, card, keys)
    return keys, ties_of(query.groups, keys, tied)


def make_keys_public(asked: Aggregation) -> str:
    """Return advice on making the keys of a question public: limit computed numbers, or list the keys in the card."""
    find = asked.find
    for group, listed in zip(asked.query.groups, asked.asked_keys, strict=True):
        if listed is None and expressions.compile(group.value, find).range is not None:
            value = show(group.value)
            return f"make its keys few numbers: GROUP BY LEAST({value}, 12), or WHERE {value} <= 12"
    return "state the public keys of the groups in the card"


def _totals(
    asked: Aggregation, noises: Mapping[Measure, Noise], limits: Limits, epsilon: Fraction
) -> dict[Measure, Noise]:
    """Return the noise of grand totals; a total less the groups that are shown is the row for all others.

    One person changes a total by an l1 norm: an l2 norm of R over k groups is an l1 norm of at most ``sqrt(k) R``; a
    person is in at most ``max_groups`` groups, and a row that is a person is in one.
    """
    if not asked.has_private_keys:
        raise InvalidArgument(
            "other", "groups whose keys are not public", "public keys", "leave other out: every group is shown"
        )
    several = root_up(Fraction(limits.groups), _BITS) if limits.norm == 2 and asked.card.unit is not None else 1
    epsilon_each = round_down(epsilon / max(len({measure.measurement for measure in noises}), 1))
    return {measure: Laplace(up(measure.sensitivity(limits) * several), epsilon_each) for measure in noises}


def check_statements(plan: QuestionPlan) -> None:
    """Refuse a plan of which some statement cannot be compiled; no engine is needed."""
    for part in plan.parts:
        statements_of(part, without_engine(part))


def without_engine(plan: AggregationPlan) -> StatementContext:
    """Return the context of a plan's statements with stand-ins for an engine's tables."""
    names = [*(name or "" for name in private_tables(plan.query)), *public_tables(plan.query)]
    return plan.statement_context("duckdb", dict.fromkeys(names, exp.to_table("t")), 0)


def statements_of(plan: AggregationPlan, context: StatementContext) -> list[Statement]:
    """Return every statement of a plan, each once."""
    result = [statement for statement, _ in statements.of_measures(context, list(plan.measures))]
    if plan.top is not None and plan.top_keys is not None and KEYS in plan.unstated:
        result.append(weights_statement(plan.top, plan.top_keys, context))
    binned: list[BinChoice | Quantiles | Counts] = [*plan.choices, *plan.quantiles, *plan.counts]
    result += [statements.bins_of(context, item.aggregate) for item in binned]
    return list(dict.fromkeys(result))


def coalesce(*given: object) -> object:
    """Return the first argument that is not None; None if all are."""
    return next((value for value in given if value is not None), None)


def _divided(asked: Aggregation, whole: Fraction, delta: Fraction | None, joint: Fraction | None) -> AggregationPlan:
    """Return the plan of an aggregation, with its budget ``whole`` and ``delta`` divided by the weights of aggregates.

    A measurement that serves several aggregates gets the largest of their weights once. Private keys take a quarter of
    epsilon if people are not counted anyway, and the row for other groups a fifth. ``joint`` is explained by
    :meth:`Aggregation.with_budget`.
    """
    epsilon = whole * (1 - TOTAL_SHARE) if asked.other else whole
    needed, people = asked.needed, Measure("people")
    shares: dict[Part | str, Fraction] = {}
    for name, part in needed.parts.items():
        vectors = [(measure,) for measure in part] if is_race(part) else [part]
        for vector in vectors:
            shares[vector] = max(shares.get(vector, Fraction(0)), Fraction(needed.weights[name]) / len(vectors))
    for name, _, _ in needed.choices:
        shares[name] = Fraction(needed.weights.get(name, 1.0))
    if asked.has_private_keys and (people,) not in shares:
        rest = sum(shares.values(), Fraction(0))
        shares[(people,)] = rest * KEY_SHARE / (1 - KEY_SHARE)
    total = sum(shares.values(), Fraction(0))
    if total == 0:
        raise InvalidArgument(
            "question", "at least one aggregate", "none", "add COUNT(*), or .agg(n=dp.count())", "add COUNT(*)"
        )
    measured = {part: share / total for part, share in shares.items() if not isinstance(part, str)}
    picked = {name: share / total for name, share in shares.items() if isinstance(name, str)}
    noises = _noises(asked, measured, epsilon, delta, joint)
    normal = any(isinstance(mechanism, Gaussian) for mechanism in noises.values())
    limits = _limits_of_normal_noise(asked) if normal else asked.limits
    choices, counts = [], []
    ranked: dict[tuple[object, ...], list[tuple[str, Aggregate, int]]] = {}
    for name, aggregate, bins in needed.choices:
        own = epsilon * picked[name]
        if aggregate.kind == "histogram":
            sensitivity = up(asked.bin_limits(aggregate).sensitivity())
            counts.append(Counts(name, aggregate, Laplace(sensitivity, round_down(own))))
        elif aggregate.kind == "quantile":
            same = (aggregate.value, aggregate.edges, aggregate.rows_per_person)
            ranked.setdefault(same, []).append((name, aggregate, bins))
        else:
            choices.append(_choice(asked, name, aggregate, own, bins))
    selection = None
    if asked.has_private_keys and delta is not None:
        selection = threshold(noises[people], delta, asked.max_groups, normal)
    spends_delta = delta is not None and (asked.has_private_keys or normal)
    of_asked = {item.name: getattr(asked, item.name) for item in fields(Aggregation)}
    return AggregationPlan(
        **{**of_asked, "limits": limits},
        guarantee=ApproxDP(whole, delta) if spends_delta and delta is not None else PureDP(whole),
        measures=noises,
        choices=tuple(choices),
        quantiles=tuple(
            _quantiles(asked, items, epsilon * sum(picked[name] for name, *_ in items)) for items in ranked.values()
        ),
        counts=tuple(counts),
        selection=selection,
        totals=_totals(asked, noises, limits, whole * TOTAL_SHARE) if asked.other else {},
    )


def _limits_of_normal_noise(asked: Aggregation) -> Limits:
    """Return the limits in the l2 norm; aggregations with shared bounds keep the l1 norm, which is no smaller."""
    return asked.limits if asked.shared_bounds is not None else replace(asked.limits, norm=2)


def round_down(epsilon: Fraction) -> float:
    """Return the largest float that is at most ``epsilon``."""
    result = float(epsilon)
    return result if Fraction(result) <= epsilon else math.nextafter(result, 0.0)


def _noises(
    asked: Aggregation,
    shares: Mapping[Part, Fraction],
    epsilon: Fraction,
    delta: Fraction | None,
    joint: Fraction | None,
) -> dict[Measure, Noise]:
    """Return the noise of each measure: Laplace or normal, whichever is smaller over all; Laplace without a delta, or
    if limits are still to be chosen. ``joint`` is this plan's part of one vector of normal noise over several plans."""
    if not shares:
        return {}
    noise = asked.options.noise
    if noise == "best" and (not pays_delta(asked.card) or "max_rows" in asked.unstated):
        noise = "laplace"
    laplace: dict[Measure, Noise] = {}
    for part, share in shares.items():
        # one vector, whose l1 norm a person changes by no more than this
        mechanism = Laplace(up(part[0].sensitivity(asked.limits)), round_down(epsilon * share))
        laplace |= dict.fromkeys(part, mechanism)
    if delta is None or noise == "laplace":
        if noise == "gaussian":
            fix = fix_by_options("pass {delta}", delta=1e-6)
            raise InvalidArgument("delta", "a delta, for Gaussian noise", "none", *fix)
        return laplace
    whole = sum(shares.values(), Fraction(0))
    ratio = gaussian_ratio(epsilon * whole, delta / 2 if asked.has_private_keys else delta)
    if joint is not None:
        ratio = gaussian_ratio(epsilon / joint, delta / joint) * root_up(1 / joint, _BITS)
    limits = _limits_of_normal_noise(asked)
    gaussian: dict[Measure, Noise] = {}
    for part, share in shares.items():
        normal = _normal(up(part[0].sensitivity(limits)), ratio * root_up(whole / share, _BITS))
        gaussian |= dict.fromkeys(part, normal)
    if noise == "gaussian":
        return gaussian

    def spread(measure: Measure, mechanism: Noise, limits: Limits) -> float:
        """Return the logarithm of the standard deviation: variances at a tiny epsilon are beyond what a float holds."""
        return math.log(variance_of(mechanism)) / 2 - math.log(measure.unit(limits))

    better = sum(spread(m, gaussian[m], limits) - spread(m, laplace[m], asked.limits) for m in laplace)
    return gaussian if better < 0 else laplace


def variance_of(noise: Noise) -> float:
    """Return the variance of noise with one scale."""
    result = noise.variance
    assert isinstance(result, float)
    return result


def _normal(sensitivity: float, ratio: Fraction) -> Gaussian:
    """Return normal noise of scale ``ratio * sensitivity`` or slightly more; its own epsilon and delta mean nothing."""
    delta = min(Fraction(1, 10**6), 1 / (10 * ratio))  # less than its delta at epsilon = 0, about 0.4 / ratio
    epsilon = gaussian_epsilon(ratio, delta)
    while True:
        result = Gaussian(sensitivity, round_down(epsilon), float(delta))
        assert isinstance(result.scale, float)  # one sensitivity has one scale
        if Fraction(result.scale) >= Fraction(sensitivity) * ratio:
            return result
        epsilon *= 1 - Fraction(1, 1 << 30)


def _chooser(asked: Aggregation, aggregate: Aggregate, epsilon: Fraction) -> Exponential:
    """Return the mechanism of one choice in one group.

    A person who adds r_g to the bins of group g changes its scores by at most r_g, which costs ``epsilon r_g / R``,
    with R the sensitivity. The r_g add up to at most R over all groups, so all choices together cost epsilon.
    """
    return Exponential(up(asked.bin_limits(aggregate).sensitivity()), round_down(epsilon), aggregate.kind == "mode")


def _choice(asked: Aggregation, name: str, aggregate: Aggregate, epsilon: Fraction, bins: int) -> BinChoice:
    """Return a choice among bins; an interval, if the options ask for one, takes a third of its epsilon."""
    intervals = asked.options.quantile_interval or asked.population
    of_interval = epsilon * INTERVAL_SHARE if intervals else Fraction(0)
    sensitivity = up(asked.bin_limits(aggregate).sensitivity())
    interval = Laplace(sensitivity, round_down(of_interval)) if intervals else None
    return BinChoice(name, aggregate, _chooser(asked, aggregate, epsilon - of_interval), bins, interval)


def _quantiles(asked: Aggregation, same: list[tuple[str, Aggregate, int]], epsilon: Fraction) -> Quantiles:
    """Return the joint choice of all quantiles of one value; intervals, if wanted, take a third of the epsilon."""
    intervals = asked.options.quantile_interval or asked.population
    of_intervals = epsilon * INTERVAL_SHARE if intervals else Fraction(0)
    shares = {name: share_of(aggregate) for name, aggregate, _ in same}
    ordered = sorted(set(shares.values()))
    epsilon_each = round_down((epsilon - of_intervals) / levels(ordered))
    sensitivity = int(asked.bin_limits(same[0][1]).sensitivity())
    interval = Laplace(sensitivity, round_down(of_intervals)) if intervals else None
    return Quantiles(shares, same[0][1], ranks(ordered, epsilon_each, sensitivity), same[0][2], interval)


def answer_type(plan: Aggregation, aggregate: Aggregate) -> Type:
    """Return the type of the answers of an aggregate, as SQL has it, by the question and the card alone.

    An answer that is a whole number in SQL is rounded to one where it is estimated, once: SQL on top of it means
    something else on doubles, which ``//`` does not cut off.
    """
    if aggregate.kind in _COUNTS:
        return "integer"
    if aggregate.value is None or not (aggregate.kind in _OF_ITS_TYPE or aggregate.discrete):
        return "number"
    find = plan.find
    if aggregate.kind == "mode":
        return expressions.compile(aggregate.value, find).type
    return "integer" if is_whole(aggregate.value, lambda column: find(column)[1]) else "number"


def share_of(aggregate: Aggregate) -> Fraction:
    """Return the quantile asked for, as a fraction, to a millionth."""
    at = Fraction(str(aggregate.at)).limit_denominator(10**6)
    if not 0 <= at <= 1:
        raise InvalidArgument("quantile", "a number from 0 to 1", aggregate.at, "the median is 0.5")
    return at
