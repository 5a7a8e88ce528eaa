"""What nobody stated about a private aggregation, chosen by the profile of its card; no data are read.

Which rows a question is about follows from the profile as far as it is about one table: conditions keep the share of
the rows that they keep by the histograms of their columns, taken to be independent; a column that is computed from one
column of the table has the values that it has at the middles of that column's bins. Of everything else bounds stay as
they are, and values are taken to be spread evenly between them.

Aggregates of one value, and the number of rows beside them, are one measurement where they have one limit
(:mod:`dither.tables.planning.plan`). So each aggregate has the limit that is best for itself with its share of epsilon,
or all have one that is best for all of them together, whichever has the smaller errors: their logarithms are added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import DitherError
from dither.tables.card.model import Card
from dither.tables.card.profile import ColumnProfile, TableProfile
from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.planning import automatic, choose
from dither.tables.planning.choose import Choice, Correction, Known
from dither.tables.planning.forecast import (
    GroupErrors,
    error_of_answers,
    error_of_quantile,
    of_three_sizes,
    without_noise_of,
)
from dither.tables.planning.table_model import Floats, People, Values
from dither.tables.planning.top_keys import shown_groups
from dither.tables.query.evaluate import evaluate
from dither.tables.query.relations import base_of, is_whole
from dither.tables.query.tree import (
    OF_PAIRS,
    Aggregate,
    Call,
    Column,
    Expression,
    PerPerson,
    PrivateRows,
    Projection,
    Query,
    columns,
    conjuncts,
)

if TYPE_CHECKING:
    from dither.tables.planning.plan import Aggregation

CHOSEN = ("count", "count_value", "sum", "mean", "var", "std", "quantile", "mode", "histogram", *OF_PAIRS)
"""The kinds of aggregates that may have a limit of their own; people count once in extremes."""
_OF_ROWS = ("count", "count_value", "histogram", "mode")
_OF_QUANTILES = 1.6 * 2.05
"""The ± of quantiles in standard deviations of their errors: values are taken to be spread evenly within bins."""
_GUESSES, _STEP = 200, 0.381966
"""How many examples of a value of several columns a forecast is made with; a step of the golden ratio, odd multiples of
which order evenly spread places differently."""
_KNOWN_RANKS = 0.7
"""Up to which share of its distance from the nearer end errors in the rank of a quantile become errors of its value."""
_EPOCH = datetime(1970, 1, 1)
_UNKNOWN_SHARE = 0.3
"""The share of the rows that a condition is taken to keep, of which the profile says nothing."""
_ASSUMED_GROUPS = 100
"""How many groups there are taken to be where their keys are not public and the profile does not say."""


@dataclass(frozen=True)
class ProfiledRows:
    """What the profile says about the rows of one private aggregation: people by their number of rows, and the values
    of columns."""

    table: TableProfile
    people: People
    approximate: bool
    """Whether the rows are not simply those that the profile is about."""
    renamed: Mapping[str, Expression] = field(default_factory=dict)
    """The columns of a relation in the columns of the table."""
    rows_of_person: frozenset[str] = frozenset()
    """The columns of a relation that are numbers of rows of a person."""
    limits_free: bool = False
    """Whether the limit on rows is to be chosen."""
    sketched: Mapping[Expression, Values] = field(default_factory=dict)
    """Values of which a histogram was released for this question."""
    limit: float | None = None
    """The limit, where that is neither the question's nor to be chosen."""
    thinnings: tuple[People, ...] = ()
    """The people, where a condition keeps each row by itself, and where it keeps all rows of some of them."""
    to_learn: bool = False
    """Whether how many rows people have is learned by a part of the question's own epsilon: a condition keeps some of
    the rows of each person or all rows of some people, and for counts and sums it matters which."""
    to_sketch: bool = False
    """Whether values of which the profile says nothing are sketched by a part of the question's own epsilon, and limits
    and bounds are chosen then."""
    conditions: tuple[Expression, ...] = ()
    """The conditions that every row meets, in the columns of the table."""
    excess: float = 1.0
    """By which factor the number of people by the histogram exceeds the number that was measured by itself: noise that
    is cut off at 0 adds up over bins."""
    to_bound: frozenset[str] = frozenset()
    """The names of the aggregates whose bounds are to be chosen whatever the card says: those in the question stand for
    them."""

    def values(self, value: Expression, find: Lookup, bounds: tuple[float, float] | None) -> Values | None:
        """Return the distribution of a value by the profile; None where the profile says nothing about it."""
        if value in self.sketched:
            return self.sketched[value]
        if isinstance(value, Column) and value.table is None and value.name in self.rows_of_person:
            return self._numbers_of_rows()
        value = self.in_table(value)
        used = columns(value)
        if len(used) != 1 or any(column.table is not None for column in used):
            return None
        (column,) = used
        known = self._kept(self._of_column(column, find), column, find)
        if isinstance(value, Column):
            return known if not isinstance(known, _Listed) else None
        return None if known is None else _mapped(known, value, column.name)

    def guessed(self, value: Expression, find: Lookup) -> Values | None:
        """Return the distribution that a value of several columns would have if these were independent, for forecasts
        alone; None where the profile does not have one of them."""
        value = self.in_table(value)
        used = sorted(columns(value), key=lambda column: column.name)
        drawn: dict[str, list[Any]] = {}
        for place, column in enumerate(used):
            known = None if column.table is not None else self._kept(self._of_column(column, find), column, find)
            if not isinstance(known, Values):
                return None
            at: Floats = (np.arange(_GUESSES, dtype=np.float64) * (2 * place + 1) * _STEP + 0.5) % 1
            drawn[column.name] = [_as_type(item, known.kind) for item in known.quantile(at).tolist()]
        try:
            rows = [dict(zip(drawn, items, strict=True)) for items in zip(*drawn.values(), strict=True)]
            results = [evaluate(value, row) for row in rows]
            points = np.array([float(item) for item in results if item is not None])
        except (DitherError, TypeError, ValueError, OverflowError):
            return None
        if not points.size:
            return None
        shares = np.full(len(points), 1 / len(points))
        return Values(points, shares, np.zeros(len(points)), (float(points.min()), float(points.max())))

    def _kept(self, known: Values | _Listed | None, column: Column, find: Lookup) -> Values | _Listed | None:
        """Return the distribution of a column in the rows that the conditions keep; None where it is unknown.

        Conditions on the column select its values. A range condition on another number may select the smallest or
        largest values of this one, as the two may be correlated.
        """
        share = 1.0
        for item in self.conditions:
            if known is None:
                return None
            used = columns(item)
            if used == {column}:
                known = _where(known, item, column.name)
            elif len(used) > 1 or _is_range(item):
                one = self.share_of(item, find)
                share *= _UNKNOWN_SHARE if one is None else one
        return known.of_subset(share) if isinstance(known, Values) and share < 1 else known

    def in_table(self, value: Expression) -> Expression:
        """Return an expression with a relation's columns replaced by what they are in the table."""
        if isinstance(value, Column):
            return self.renamed.get(value.name, value) if value.table is None else value
        if isinstance(value, Call):
            return Call(value.op, tuple(map(self.in_table, value.args)))
        return value

    @property
    def unseen(self) -> int:
        """How many people with far more rows than others the histogram of people may hide; 0 where rows are people."""
        known = self.table.people
        return 0 if known is None else automatic.people_seen(Fraction(math.sqrt(2) / known.deviation))

    def _numbers_of_rows(self) -> Values:
        """Return the distribution of people's numbers of rows, for columns that hold such a number."""
        people = People.of_histogram(self.table.people) if self.table.people is not None else self.people
        points, shares = people.sizes.ravel(), people.expected.ravel() / people.number
        deviations = np.repeat(people.deviations / 2 / people.number, 2)
        filled = points[shares > 1e-4] if (shares > 1e-4).any() else points
        ends = float(filled.min()), float(filled.max())
        possible = np.repeat(people.possible / 2 / people.number, 2, axis=1) - shares
        return Values(points, shares, deviations, ends, hidden=((possible, people.weights),))

    def _of_column(self, column: Column, find: Lookup) -> Values | _Listed | None:
        """Return the values of a column that the profile knows, as a distribution or as a list of keys; else None."""
        known = self.table.columns.get(column.name)
        if known is None:
            return None
        if known.values is None and known.keys is not None:
            weights = np.maximum(np.asarray(known.keys.weights), 0.0)
            total = max(float(weights.sum()), 1e-9)
            deviations = np.full(len(weights), known.keys.deviation / total)
            nulls = max(known.nulls or 0.0, 0.0)
            return _Listed(tuple(known.keys.keys), weights / total, deviations, nulls / (nulls + total))
        try:
            card = find(column)[1]
            kind, bounds = card.type, card.bounds
        except (DitherError, KeyError):
            kind, bounds = "number", None
        result = Values.of_column(self.table, column.name, bounds, self.people)
        return None if result is None else replace(result, kind=kind)

    def share_of(self, condition: Expression | None, find: Lookup) -> float | None:
        """Return the share of the rows that a condition keeps; None where some of it is not known."""
        result = 1.0
        for item in conjuncts(condition):
            item = self.in_table(item)
            used = columns(item)
            if len(used) != 1:
                return None
            (column,) = used
            known = self._of_column(column, find)
            mapped = None if known is None else _mapped(known, item, column.name)
            if known is None or mapped is None:
                return None
            share = float(mapped.shares @ mapped.points) * (1 - mapped.nulls)
            if evaluate(item, {column.name: None}) is True:
                share += known.nulls
            seen = known.deviations[known.deviations > 0]
            result *= max(share, float(seen.min(initial=1.0)) if seen.size else 0.0)  # which the noise may hide
        return min(max(result, 1e-6), 1.0)


@dataclass(frozen=True)
class _Listed:
    """Public keys with the share of the people that each has."""

    keys: tuple[Any, ...]
    shares: Floats
    deviations: Floats
    nulls: float = 0.0
    """The share of rows without a key."""


def _mapped(known: Values | _Listed, value: Expression, name: str) -> Values | None:
    """Return the values of an expression of one column, in rows with NULL as well; None where it cannot be computed."""

    def at(item: Any) -> float:
        """Return the expression at one value of the column; NaN for NULL."""
        result = evaluate(value, {name: item})
        return math.nan if result is None else float(result)

    try:
        if isinstance(known, _Listed):
            points = np.array([at(key) for key in known.keys], dtype=np.float64)
            of_keys = Values(points, known.shares, known.deviations, (0.0, 0.0), nulls=known.nulls)
            mapped = of_keys.mapped(lambda _: points)
        else:
            mapped = known.mapped(lambda points: np.array([at(_as_type(item, known.kind)) for item in points.tolist()]))
        of_null = at(None)
        return mapped if math.isnan(of_null) else mapped.with_nulls_as(of_null, known.nulls)
    except (DitherError, TypeError, ValueError, OverflowError):
        return None


def _where(known: Values | _Listed, condition: Expression, name: str) -> Values | _Listed | None:
    """Return the values of a column that a condition on it keeps; None where that cannot be computed."""

    def keeps(items: Iterable[Any]) -> NDArray[np.bool_]:
        """Return a mask of the values for which the condition holds."""
        return np.array([evaluate(condition, {name: item}) is True for item in items], dtype=bool)

    try:
        if isinstance(known, _Listed):
            kept = keeps(known.keys)
            total = max(float(known.shares[kept].sum()), 1e-9)
            keys = tuple(key for key, keep in zip(known.keys, kept.tolist(), strict=True) if keep)
            return _Listed(keys, known.shares[kept] / total, known.deviations[kept] / total)
        return known.where(lambda points: keeps(_as_type(item, known.kind) for item in points.tolist()))
    except (DitherError, TypeError, ValueError, OverflowError):
        return None


def _is_range(condition: Expression) -> bool:
    """Return whether a condition compares by order (<, BETWEEN, …) somewhere, rather than by equality alone."""
    return isinstance(condition, Call) and (
        condition.op in ("<", "<=", ">", ">=", "between") or any(map(_is_range, condition.args))
    )


def _as_type(point: float, kind: str) -> Any:
    """Return a number of the profile as a value of the column's type; dates count days since 1970."""
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=int(point))
    if kind == "timestamp":
        return _EPOCH + timedelta(days=point)
    return round(point) if kind == "integer" else point


def profiled_rows(query: Query, card: Card, limits_free: bool) -> ProfiledRows | None:
    """Return what the card's profile says about the rows of an aggregation; None without a profile, and for joins and
    other relations that it does not describe. ``limits_free`` says that limits on rows may be chosen.

    Columns are traced through projections and at most one table per person to columns of the card. A condition keeps
    the share of the rows that the profile shows or, where it shows none, an assumed one.
    """
    base = base_of(card)
    if base.profile is None:
        return None
    source, conditions, renamed = query.source, [query.where], dict[str, Expression]()
    of_person: PerPerson | None = None
    while isinstance(source, (Projection, PerPerson)) and of_person is None:
        if isinstance(source, PerPerson):
            of_person = source
        elif not all(isinstance(item, Column) for item in source.columns.values()):
            break
        else:
            own = {name: item for name, item in source.columns.items() if item != Column(name)}
            renamed = {
                **own,
                **{name: own.get(item.name, item) for name, item in renamed.items() if isinstance(item, Column)},
            }
            conditions.append(source.where)
        source = source.source
    if source is not None and not isinstance(source, PrivateRows):
        return None
    name = base.name if source is None or source.table is None else source.table
    table = base.profile.tables.get(name)
    if table is None:
        return None
    number = table.total.value if table.total is not None else None
    if table.people is not None:
        people = People.of_histogram(table.people)
    elif number is not None:
        people = People.of_one_row(number)
    else:
        return None
    excess = 1.0
    if table.people is not None and table.total is not None and table.total.value > 3 * table.total.deviation:
        excess = people.number / table.total.value
    rows = ProfiledRows(table, people, False, renamed, limits_free=limits_free, excess=excess)
    if of_person is not None:
        counted = frozenset(
            name for name, item in of_person.aggregates.items() if item.kind == "count" and not of_person.groups
        )
        if of_person.groups:
            return None
        return replace(
            rows,
            people=People.of_one_row(people.number),
            approximate=of_person.where is not None or query.where is not None,
            rows_of_person=counted if of_person.where is None else frozenset(),
            renamed={name: Column(f"\0{name}") for name in of_person.aggregates},
        )
    find = expressions.lookup_of(card, query.joins)
    stated = [item for item in conditions if item is not None]
    if not stated:
        return rows
    rows = replace(rows, conditions=tuple(rows.in_table(part) for item in stated for part in conjuncts(item)))
    shares = [rows.share_of(item, find) for item in stated]
    share = math.prod(_UNKNOWN_SHARE if item is None else item for item in shares)
    return replace(rows, people=people.thinned(share), approximate=True, thinnings=people.thinnings(share))


def _group_shares(asked: Aggregation, rows: ProfiledRows) -> list[float] | None:
    """Return each group's share of the people (None: no groups), from the profile of the grouping columns as if they
    were independent; even shares for columns without a profile. Of groups that are shown by their size, the largest."""
    if not asked.query.groups:
        return None
    result = np.ones(1)
    for group, listed in zip(asked.query.groups, asked.keys, strict=True):
        value = rows.in_table(group.value)
        column = rows.table.columns.get(value.name) if isinstance(value, Column) and value.table is None else None
        joined = _joined_column(asked.query, group.value, rows)
        if listed is None:
            number = _ASSUMED_GROUPS
            shares = np.full(number, 1 / number)
            if column is not None and column.private_keys is not None:
                shares = _private_shares(column.private_keys, rows.people.number)
        elif joined is not None:
            shares = _joined_shares(joined, len(listed), rows.people.number)
        elif column is not None and column.keys is not None:
            weight = dict(zip(column.keys.keys, column.keys.weights, strict=True))
            whole = max(sum(max(item, 0.0) for item in column.keys.weights), 1.0)
            least = column.keys.deviation / whole
            shares = np.array([max(weight.get(key, 0.0) / whole, least) for key in listed])
            shares = without_noise_of(shares, least)
        else:
            shares = np.full(len(listed), 1 / max(len(listed), 1))
        result = np.outer(result, shares).ravel()
        if len(result) > 10_000:
            result = np.quantile(result, np.linspace(0, 1, 1000))
    shown = shown_groups(asked.query)
    if shown is not None:
        result = np.sort(result)[-shown:]
    return [float(item) for item in result]


def _joined_column(query: Query, value: Expression, rows: ProfiledRows) -> ColumnProfile | None:
    """Return the profile of the column by which a public table is joined that a group is computed from; None for other
    groups, or without such a profile."""
    tables = {column.table for column in columns(value)}
    for join in query.joins:
        own = rows.in_table(join.own)
        if tables == {join.table} and isinstance(own, Column) and own.table is None:
            known = rows.table.columns.get(own.name)
            return None if known is None or (known.private_keys or known.keys) is None else known
    return None


def _joined_shares(column: ColumnProfile, groups: int, people: float) -> Floats:
    """Return the share of the people in each of the groups that a public table makes of the keys of a column: as many
    of the largest keys as there are groups, each with some of the others; nobody in groups beyond."""
    if column.private_keys is not None:
        shares = _private_shares(column.private_keys, people)
    else:
        weights = np.maximum(np.asarray(column.keys.weights if column.keys is not None else ()), 0.0)
        shares = weights / max(float(weights.sum()), 1.0)
    shares = np.sort(shares)[::-1]
    padded = np.append(shares, np.zeros(-len(shares) % max(groups, 1)))
    result: Floats = np.minimum(padded.reshape(-1, max(groups, 1)).sum(axis=0), 1.0)
    return result


def _private_shares(layers: Any, people: float) -> Floats:
    """Return the share of the people at each private key, from the profile's ``layers`` of keys by people."""
    edges = np.asarray(layers.edges, dtype=np.float64)
    above = np.maximum(np.asarray(layers.weights) / np.maximum(np.diff(edges), 1e-9), 0.0)
    seen = np.asarray(layers.weights) > 3 * layers.deviation
    above = np.where(seen, above, 0.0)
    numbers = np.maximum(above - np.append(above[1:], 0.0), 0.0)
    shares = [
        share for number, share in zip(numbers, (edges[1:] + edges[:-1]) / 2 / max(people, 1.0), strict=True)
        for _ in range(min(round(float(number)), 1000))
    ]  # fmt: skip
    return np.array(shares) if shares else np.full(_ASSUMED_GROUPS, 1 / _ASSUMED_GROUPS)


@dataclass(frozen=True)
class Settled:
    """What the profile chose for an aggregation: aggregates with limits and bounds, a limit ``rows`` for the others
    (None: the stated one), corrections, and expected errors."""

    aggregates: Mapping[str, Aggregate]
    rows: int | None
    corrections: Mapping[str, Correction]
    expected: Mapping[str, GroupErrors]
    """The expected total error of each aggregate."""


def settle(
    asked: Aggregation, rows: ProfiledRows, epsilon: Fraction, noise_of: Callable[[float], float] | None
) -> Settled:
    """Return the limits and bounds with the smallest expected errors for the aggregates of an aggregation, at this
    epsilon.

    ``noise_of`` is the standard deviation of the noise in a measurement with a limit of 1 and a share of epsilon, where
    that is not Laplace noise.
    """
    query: Query = asked.query
    group_shares = _group_shares(asked, rows)
    known = Known.of(rows.people, group_shares, rows.approximate)
    stated = float(asked.limits.total) if asked.card.unit is not None or query.source is not None else 1.0
    if not rows.limits_free:
        known = replace(known, tried=(stated if rows.limit is None else rows.limit,))
    items = {name: _item(name, item, asked, rows) for name, item in query.aggregates.items() if item.kind in CHOSEN}
    if not items:
        return Settled({}, None, {}, {})
    together = len({item.value for item in items.values() if item.value is not None or len(items) == 1} or {None})
    own = {
        name: _choose(item, known_of(item, known), float(epsilon) / len(items), noise_of)
        for name, item in items.items()
    }
    best, score, parts = own, _score(own), len(items)
    if len(items) > 1 and rows.limits_free and not any(item.aggregate.rows_per_person for item in items.values()):
        for limit in known.limits().tolist():
            one = replace(known, tried=(limit,))
            shared = {
                name: _choose(item, one, float(epsilon) / max(together, 1), noise_of) for name, item in items.items()
            }
            if _score(shared) < score:
                best, score, parts = shared, _score(shared), max(together, 1)
    best = _with_common_bounds(best, items, known)
    aggregates = {name: _with_choice(items[name], choice, rows) for name, choice in best.items()}
    counted_rows = [choice.rows for name, choice in best.items() if items[name].aggregate.kind in (*_OF_ROWS, "sum")]
    largest = max(counted_rows, default=max(choice.rows for choice in best.values()))
    corrections = {
        name: replace(_allowed(choice.correction, asked), unseen=rows.unseen)
        for name, choice in best.items()
        if items[name].aggregate.kind in _CORRECTED
    }
    counted = known if rows.to_learn else replace(known, people=known.people.scaled(1 / rows.excess))
    return Settled(
        aggregates,
        largest if rows.limits_free else None,
        corrections,
        {
            name: _group_errors(items[name], choice, counted, group_shares or [1.0], float(epsilon) / parts, noise_of)
            for name, choice in best.items()
            if items[name].aggregate.kind in _CORRECTED
        },
    )


def _group_errors(
    item: _Item,
    choice: Choice,
    known: Known,
    shares: Sequence[float],
    epsilon: float,
    noise_of: Callable[[float], float] | None,
) -> GroupErrors:
    """Return the expected errors of one aggregate with the chosen limit and bounds, in groups of three sizes."""
    fixed = item if choice.bounds is None else replace(item, bounds=choice.bounds, free=False)
    if item.other is not None and choice.other_bounds is not None:
        fixed = replace(fixed, other=replace(item.other, bounds=choice.other_bounds, free=False))
    sizes = of_three_sizes(np.asarray(shares))
    middle = float(np.median(shares))
    known = replace(known, tried=(float(choice.rows),), usual=True)
    chosen = {
        share: _choose(fixed, replace(known, groups=np.array([max(share, 1e-9)])), epsilon, noise_of)
        for share in {*sizes, middle}
    }
    kind, values = item.aggregate.kind, _values(fixed)
    answer = _answer(fixed, known.people.rows * sizes[1])
    spread = values.deviation_of_values if kind == "mean" else 0.0
    if kind == "quantile":
        at = _held_rank(item.aggregate)
        far = _KNOWN_RANKS * min(at, 1 - at)
        spread = float(np.ptp(values.quantile(np.array([at - far, at, at + far]))))
    errors = [_error(fixed, chosen[share]) for share in sizes]
    most = [_OF_QUANTILES * chosen[share].error if kind == "quantile" else 0.0 for share in (sizes[0], middle)]
    return GroupErrors(errors[0], errors[1], errors[2], answer, spread, *most)


def _error(item: _Item, choice: Choice) -> float:
    """Return the error that is expected of the answers of an aggregate, with its limit and bounds."""
    if choice.rank is None:
        return error_of_answers(choice.error, choice.error if choice.noise is None else choice.noise)
    scale, off = choice.rank
    return error_of_quantile(_values(item), item.bounds, float(item.aggregate.at), scale, off, item.whole)


def _values(item: _Item) -> Values:
    """Return the values of an aggregate as far as they are known, otherwise spread evenly within its bounds."""
    return item.values or Values.flat(item.bounds)


def _answer(item: _Item, rows: float) -> float:
    """Return the expected size of an answer, without its sign, in a group of ``rows`` rows."""
    kind, values = item.aggregate.kind, _values(item)
    if kind in ("count", "count_value"):
        return rows
    if kind in ("var", "std"):
        return values.deviation_of_values ** (2 if kind == "var" else 1)
    if item.other is not None:
        return choose.pair_scale(kind, (values, _values(item.other))) / 2
    size = float(values.quantile(float(item.aggregate.at))) if kind == "quantile" else values.mean
    return abs(size) * (rows if kind == "sum" else 1)


_CORRECTED = ("count", "count_value", "sum", "mean", "var", "std", "quantile", *OF_PAIRS)


def _score(choices: Mapping[str, Choice]) -> float:
    """Return the sum of the logarithms of expected errors, by which choices for all aggregates are compared."""
    return sum(math.log(max(choice.error, 1e-300)) for choice in choices.values())


@dataclass(frozen=True)
class _Item:
    """An aggregate with the distribution of its value by the profile (None: unknown), and with its bounds."""

    aggregate: Aggregate
    value: Expression | None
    values: Values | None
    bounds: tuple[float, float]
    free: bool
    whole: bool
    alone: bool
    other: _Item | None = None
    """The second value of a pair."""


def _item(name: str, aggregate: Aggregate, asked: Aggregation, rows: ProfiledRows) -> _Item:
    """Return an aggregate with the distribution of its value, and the bounds within which bounds may be chosen."""
    value, find = aggregate.value, asked.find
    bounds, free, whole, values = (0.0, 1.0), False, False, None
    if value is not None and aggregate.kind in ("sum", "mean", "var", "std", "quantile", *OF_PAIRS):
        known = expressions.public_interval(value, find)
        whole = is_whole(value, lambda column: find(column)[1])
        if isinstance(aggregate.bounds, tuple) and name not in rows.to_bound:
            bounds = aggregate.bounds
            values = rows.values(value, find, bounds)
        else:
            values = rows.values(value, find, known)
            if known is None and values is not None:
                known = float(values.points.min()), float(values.points.max())
            if known is not None and known[1] > known[0]:
                bounds, free = (float(known[0]), float(known[1])), values is not None
                free = free and not (whole and known[1] - known[0] <= 1)
    alone = sum(item.value == value for item in asked.query.aggregates.values()) == 1 and not any(
        item.kind == "count" for item in asked.query.aggregates.values()
    )
    other = None
    if aggregate.kind in OF_PAIRS:
        second = replace(aggregate, kind="mean", value=aggregate.other, bounds=aggregate.other_bounds)
        other = _item("", second, asked, rows)
    return _Item(aggregate, value, values, bounds, free, whole, alone, other)


def known_of(item: _Item, known: Known) -> Known:
    """Return ``known`` restricted to the limit that an aggregate states, if it states one."""
    stated = item.aggregate.rows_per_person
    return known if stated is None else replace(known, tried=(float(stated),))


def _choose(item: _Item, known: Known, epsilon: float, noise_of: Callable[[float], float] | None) -> Choice:
    """Return the best limit and bounds of one aggregate by its kind; ``noise_of`` None stands for Laplace noise."""
    kind = item.aggregate.kind
    noise = None if noise_of is None else noise_of(epsilon)
    about: dict[str, Any] = {"free": item.free, "whole": item.whole, "noise": noise}
    if item.values is not None and item.values.nulls > 0 and kind in ("mean", "var", "std", "quantile"):
        known = replace(known, people=known.people.thinned(1 - min(item.values.nulls, 1 - 1e-6)))
    if kind in _OF_ROWS:
        return choose.choose_count(known, epsilon, noise if kind in ("count", "count_value") else None)
    if kind == "sum":
        return choose.choose_sum(known, item.values, item.bounds, epsilon, alone=item.alone, **about)
    if kind == "mean":
        return choose.choose_mean(known, item.values, item.bounds, epsilon, **about)
    if kind in ("var", "std"):
        return choose.choose_variance(known, item.values, item.bounds, epsilon, root=kind == "std", **about)
    if item.other is not None:
        other = item.other
        return choose.choose_pair(
            known, (_values(item), _values(other)),
            (item.bounds, other.bounds), epsilon, kind,
            free=(item.free, other.free), whole=(item.whole, other.whole), noise=noise,
        )  # fmt: skip
    at = _held_rank(item.aggregate)
    return choose.choose_quantile(known, item.values, item.bounds, epsilon, at, free=item.free, whole=item.whole)


def _held_rank(aggregate: Aggregate) -> float:
    """Return which quantile is asked for, away from both ends."""
    return min(max(float(aggregate.at), 0.005), 0.995)


def _with_common_bounds(choices: Mapping[str, Choice], items: Mapping[str, _Item], known: Known) -> dict[str, Choice]:
    """Return the choices with common bounds, the widest, for aggregates that share a measurement; their corrections are
    recomputed."""
    result = dict(choices)
    for name, choice in choices.items():
        item = items[name]
        same = [
            other
            for other, its in items.items()
            if its.value == item.value and its.aggregate.kind in _MOMENTS and choices[other].rows == choice.rows
        ]
        if item.aggregate.kind not in _MOMENTS or len(same) < 2:
            continue
        ends = [choices[other].bounds for other in same]
        low = min(one[0] for one in ends if one is not None)
        high = max(one[1] for one in ends if one is not None)
        fixed = replace(item, bounds=(low, high), free=False, values=item.values)
        settled = _choose(fixed, replace(known, tried=(float(choice.rows),)), 1.0, None)
        result[name] = replace(settled, error=choice.error)
    return result


_MOMENTS = ("sum", "mean", "var", "std")


def _with_choice(item: _Item, choice: Choice, rows: ProfiledRows) -> Aggregate:
    """Return the aggregate with the limit and the bounds that were chosen, where it does not state them."""
    result = item.aggregate
    if rows.limits_free and result.rows_per_person is None:
        result = replace(result, rows_per_person=choice.rows)
    if item.free and choice.bounds is not None and choice.bounds != item.bounds:
        result = replace(result, bounds=_as_whole(choice.bounds, item.whole))
    other = item.other
    if other is not None and other.free and choice.other_bounds is not None and choice.other_bounds != other.bounds:
        result = replace(result, other_bounds=_as_whole(choice.other_bounds, other.whole))
    return result


def _as_whole(bounds: tuple[float, float], whole: bool) -> tuple[float, float]:
    """Return bounds as integers if ``whole``; otherwise unchanged."""
    return (int(bounds[0]), int(bounds[1])) if whole else bounds


def _allowed(correction: Correction, asked: Aggregation) -> Correction:
    """Return a correction; for private keys without its factor, whose size becomes uncertainty instead: an unknown
    share of rows is left out with the groups that are not shown."""
    if asked.has_private_keys and correction.factor != 1.0:
        missing = 1 - 1 / correction.factor
        return replace(correction, factor=1.0, relative=math.hypot(correction.relative, missing))
    return correction


def with_settled(query: Query, chosen_for: Query, settled: Mapping[str, Aggregate]) -> Query:
    """Return ``query`` with what was settled for equal aggregates of ``chosen_for``, which is about the same rows."""
    aggregates = dict(query.aggregates)
    for name, item in query.aggregates.items():
        for other, before in chosen_for.aggregates.items():
            if before == item and other in settled:
                aggregates[name] = settled[other]
    return replace(query, aggregates=aggregates)
