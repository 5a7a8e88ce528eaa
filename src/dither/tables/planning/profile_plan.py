"""The plan of a profile: what is measured of each private table, in which bins, with which part of the budget.

A plan is made from the card alone. Every part of it is a vector of whole numbers of which one person changes the l1
norm by at most 1, in units of the part (proofs: :mod:`dither.tables.compile.marginals`), so a part with the share
``s`` of the budget gets

* Laplace noise of scale ``1 / (s epsilon)``: the parts' epsilons add up to epsilon; or
* normal noise of ``sigma = r / sqrt(s)``, with r the ratio of noise to sensitivity that the whole budget allows: the
  squares of sensitivity over sigma add up to ``1 / r^2``, so that all parts together are one release of normal noise
  whose ratio is r. That holds, too, where a part is chosen by what was released before it: Gaussian differential
  privacy, zCDP and pure differential privacy all compose adaptively.

*Allocation.* What planning needs is in :data:`IMPORTANCE`. Limits are chosen by the people's numbers of rows for every
question about the table, and its tail decides: 3. Bounds follow from the values of a column: 2, for each column. How a
column moves with rows per person only corrects a bias: 1. Counts of people by key tell the size of groups: 1, and the
two histograms about keys that are not public: 1 and 1/2. Every share is one of the number of people: 1. The share of
whole numbers needs little: 1/4. Laplace noise gets epsilon in proportion to these weights w. Normal noise gets shares
of ``1 / sigma^2`` in proportion to ``w^(3/2)``: of sums of variances ``sum c / epsilon^2`` and ``sum c sigma^2``, with
importances ``c = w^3``, these are the smallest under the constraint of each law.

*Two looks.* The people's numbers of rows come first. Where they show that nobody has many rows, no column can move with
them, and its part of the budget goes to all others. Classes of rows per person, and the coarser bins in which columns
are counted by class, are chosen by what was released before: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument, WrongType, fix_by_options
from dither.exact import root_up, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.mechanisms import Gaussian, Laplace
from dither.release.pipeline import check_least
from dither.tables.card.accounts import pays_delta
from dither.tables.card.model import Card, ColumnCard, PrivateTable, Type
from dither.tables.card.profile import NoisyHistogram
from dither.tables.card.values import Value, clip, closest
from dither.tables.compile.marginals import Edges
from dither.tables.planning.automatic import EDGES
from dither.tables.planning.plan import round_down

Kind = Literal["people", "total", "values", "by_rows", "whole", "keys", "private_keys", "keys_per_person"]

IMPORTANCE: Mapping[Kind, Fraction] = {
    "people": Fraction(3),
    "total": Fraction(1),
    "values": Fraction(2),
    "by_rows": Fraction(1),
    "whole": Fraction(1, 4),
    "keys": Fraction(1),
    "private_keys": Fraction(1),
    "keys_per_person": Fraction(1, 2),
}
FIRST: tuple[Kind, ...] = ("people", "total")
"""What is measured before all else."""
MOST_BINS = 64
_EQUAL, _GROWING = 24, 36
MOST_KEYS = 1_000
"""A column with more public keys is described as if they were not public."""
CLASSES = 4
COARSE_BINS = 12
KEY_EDGES = (0, *sorted({round(2 ** (i / 2)) for i in range(41)}))
"""The edges of the layers of the weights of keys, up to 2^20 people; and after the first, of people by their keys."""
_CONFIDENCE = 0.95
_BITS = 80
_FINEST = 4096
"""The finest bin is this part of the width, about 0."""
_NARROWEST = 1e-290
"""The least width, of which parts are still numbers."""
_FAR, _NEAR = 1e12, 1e-3
"""Between which sizes numbers without bounds are looked for."""
_ROUND = (
    (1, ("1", "1.5", "2", "3", "5", "7")), (1, ("1", "2", "5")), (1, ("1", "3")), (1, ("1",)), (2, ("1",)),
    (10, ("1",)), (50, ("1",)),
)  # fmt: skip
"""Round numbers: every how many powers of ten there are which multiples, the finest first."""
_NARROW = 8
"""Bounds on one side of 0 whose ratio is smaller are cut into equal bins."""
_EPOCH = date(1970, 1, 1)
_CALENDAR = date(1930, 1, 1), date(2050, 1, 1)
"""Where dates without bounds are looked for."""


@dataclass(frozen=True)
class ColumnPlan:
    """How one column is measured: in bins between ``edges``, by public ``keys``, or without both by how many people
    share each private key."""

    name: str
    type: Type
    edges: Edges | None = None
    keys: tuple[Value, ...] | None = None

    def kinds(self, has_unit: bool) -> tuple[Kind, ...]:
        """Return the kinds of parts of the profile that measure the column; ``has_unit`` says that people may have
        several rows."""
        if self.keys is not None:
            return ("keys",)
        if self.edges is None:
            return ("private_keys", "keys_per_person") if has_unit else ("private_keys",)
        numeric = self.type in ("integer", "number")
        by_rows: tuple[Kind, ...] = ("by_rows",) if numeric and has_unit else ()
        return ("values", *by_rows, *(("whole",) if self.type == "number" else ()))


@dataclass(frozen=True)
class TablePlan:
    """How one private table is measured."""

    name: str
    unit: str | None
    columns: tuple[ColumnPlan, ...]

    @property
    def first(self) -> tuple[Kind, ...]:
        """The kinds of parts that are measured first: people by their number of rows, and their total; the total alone
        where every row is a person."""
        return FIRST if self.unit is not None else ("total",)


class Part(NamedTuple):
    """One part of a profile: a table, a column or "" for the table itself, and what is measured."""

    table: str
    column: str
    kind: Kind


@dataclass(frozen=True)
class ProfilePlan:
    """What is measured of all private tables of a card, and the guarantee; ``normal`` says whether the noise is normal
    or Laplace noise."""

    card: Card
    tables: tuple[TablePlan, ...]
    guarantee: Guarantee
    normal: bool
    without_by_rows: frozenset[str] = frozenset()
    """Tables whose people have about as many rows as one another, by the first measurement, so that classes by the
    number of rows are not measured."""

    @property
    def parts(self) -> Iterator[Part]:
        """All parts of the profile, those that are measured first (:attr:`TablePlan.first`) before the others."""
        for table in self.tables:
            yield from (Part(table.name, "", kind) for kind in table.first)
        for table in self.tables:
            for column in table.columns:
                for kind in column.kinds(table.unit is not None):
                    if kind != "by_rows" or table.name not in self.without_by_rows:
                        yield Part(table.name, column.name, kind)

    @cached_property
    def shares(self) -> Mapping[Part, Fraction]:
        """The share of the budget of each part; they add up to 1. What was measured in the first look keeps its own."""
        costs = {part: _cost(part.kind, self.normal) for part in self.parts}
        every = replace(self, without_by_rows=frozenset()).shares if self.without_by_rows else None
        if every is None:
            whole = sum(costs.values(), Fraction(0))
            return {part: cost / whole for part, cost in costs.items()}
        spent = {part: every[part] for part in costs if part.kind in FIRST}
        left = 1 - sum(spent.values(), Fraction(0))
        whole = sum((cost for part, cost in costs.items() if part not in spent), Fraction(0))
        return {part: spent[part] if part in spent else left * cost / whole for part, cost in costs.items()}

    def noise(self, part: Part, sensitivity: int) -> Laplace | Gaussian:
        """Return the noise of a part of which one person changes the l1 norm by at most ``sensitivity``."""
        return noise_of(self.guarantee, self.normal, self.shares[part], sensitivity)

    def after_first_look(self, one_class: Iterable[str]) -> ProfilePlan:
        """Return what is left to be measured, where people of these tables have about as many rows as others."""
        return replace(self, without_by_rows=frozenset(one_class))

    def deviation(self, kind: Kind) -> float:
        """Return the standard deviation of the noise in each number of a kind of part, in people; 0 without any."""
        part = next((part for part in self.parts if part.kind == kind), None)
        return 0.0 if part is None else math.sqrt(_variance(self.noise(part, 1)))

    @property
    def people_seen(self) -> float:
        """The number of people in one bin that exceeds the noise of all bins with a probability of 95 %."""
        part = next((part for part in self.parts if part.kind == "values"), next(iter(self.parts)))
        bins = MOST_BINS if part.kind == "values" else len(EDGES)
        return float(self.noise(part, 1).error(_CONFIDENCE, coordinates=bins, integer=False))


def noise_of(guarantee: Guarantee, normal: bool, share: Fraction, sensitivity: int) -> Laplace | Gaussian:
    """Return the noise that a share of a budget pays for: epsilon times the share or, for normal noise, the scale over
    the root of the share."""
    if not normal:
        return Laplace(sensitivity, round_down(guarantee.exact[0] * share))
    scaled = up(sensitivity * root_up(1 / share, _BITS))
    if isinstance(guarantee, ZCDP):
        return Gaussian(scaled, rho=round_down(guarantee.exact[0]))
    epsilon, delta = guarantee.exact
    return Gaussian(scaled, round_down(epsilon), round_down(delta))


def _cost(kind: Kind, normal: bool) -> Fraction:
    """Return the weight by which a kind of part shares the budget: its importance, to the power 3/2 for normal
    noise."""
    weight = IMPORTANCE[kind]
    return Fraction(float(weight) ** 1.5) if normal else weight


def _variance(noise: Laplace | Gaussian) -> float:
    """Return the variance of noise with one scale."""
    result = noise.variance
    assert isinstance(result, float)
    return result


# -- what is measured -------------------------------------------------------------------------------------------------


def plan_profile(
    card: Card,
    epsilon: float | None = None,
    *,
    delta: float | None = None,
    rho: float | None = None,
    columns: Sequence[str] | None = None,
    without: Sequence[str] = (),
) -> ProfilePlan:
    """Return the plan of a profile.

    Columns are named as in the card, or with their table where it has several: ``visits.amount``. By default all are
    measured but the one that names the person.
    """
    tables = tuple(
        TablePlan(name, table.unit, tuple(_column_plan(*item) for item in chosen))
        for (name, table), chosen in zip(
            card.private_tables.items(), _chosen(card.private_tables, columns, without), strict=True
        )
    )
    guarantee = _guarantee(card, epsilon, delta, rho)
    check_least(card.min_epsilon, guarantee)
    if isinstance(guarantee, ZCDP):
        return ProfilePlan(card, tables, guarantee, normal=True)
    if isinstance(guarantee, PureDP):
        return ProfilePlan(card, tables, guarantee, normal=False)
    normal = ProfilePlan(card, tables, guarantee, normal=True)
    laplace = ProfilePlan(card, tables, PureDP(guarantee.exact[0]), normal=False)
    return normal if _mean_log_deviation(normal) < _mean_log_deviation(laplace) else laplace


def _mean_log_deviation(plan: ProfilePlan) -> float:
    """Return the mean of the logarithm of the noise's deviation, by the importance of the parts."""
    weights = [float(IMPORTANCE[part.kind]) for part in plan.parts]
    logs = [math.log(_variance(plan.noise(part, 1))) / 2 for part in plan.parts]
    return float(np.average(logs, weights=weights))


def _guarantee(card: Card, epsilon: float | None, delta: float | None, rho: float | None) -> Guarantee:
    """Return the guarantee of a profile from the stated epsilon, delta or rho; the card's delta is added where every
    account can pay for it."""
    if rho is not None:
        if epsilon is not None or delta is not None:
            given = "rho and epsilon" if epsilon is not None else "rho and delta"
            raise InvalidArgument("rho", "rho, or epsilon and delta", given, "leave one of them out")
        return ZCDP(rho)
    if epsilon is None:
        raise InvalidArgument(
            "epsilon", "what the profile may cost", "nothing", *fix_by_options("pass {epsilon}", epsilon=1)
        )
    arguments.epsilon(epsilon)
    stated = delta if delta is not None else card.delta if pays_delta(card) else None
    if stated is None:
        return PureDP(epsilon)
    if not pays_delta(card):
        fix = "leave delta out, or have one added to the budget"
        raise InvalidArgument("delta", "a budget with a delta", "one without", fix)
    return ApproxDP(epsilon, stated)


def _chosen(
    tables: Mapping[str, PrivateTable], columns: Sequence[str] | None, without: Sequence[str]
) -> list[list[tuple[str, ColumnCard]]]:
    """Return the columns of each table that are measured: those in ``columns`` (None: all) except those in
    ``without``, and never the person; refuse names of unknown columns."""
    every = [
        (name, column, card)
        for name, table in tables.items()
        for column, card in table.columns.items()
        if column != table.unit
    ]
    for title, names in (("columns", columns or ()), ("without", without)):
        if isinstance(names, str):
            raise WrongType(title, "a list of names", "text", f'pass {title}=["{clip(names)}"]')
        known = {column for _, column, _ in every} | {f"{table}.{column}" for table, column, _ in every}
        for name in names:
            if name not in known:
                shown = sorted({column for _, column, _ in every})
                raise InvalidArgument(
                    title, f"one of {', '.join(shown)}", repr(clip(str(name))), closest(str(name), shown)
                )

    def listed(table: str, column: str, names: Sequence[str]) -> bool:
        """Return whether names contain a column, alone or as table.column."""
        return column in names or f"{table}.{column}" in names

    return [
        [
            (column, card)
            for table, column, card in every
            if table == name
            and (columns is None or listed(table, column, columns))
            and not listed(table, column, without)
        ]
        for name in tables
    ]


def _column_plan(name: str, card: ColumnCard) -> ColumnPlan:
    """Return how a column is described: by its public keys if they are few, else by bins, else by people per key."""
    keys = (False, True) if card.type == "boolean" and card.keys is None else card.keys
    if keys is not None and len(keys) <= MOST_KEYS:
        return ColumnPlan(name, card.type, keys=tuple(key for key in keys if key is not None))
    if card.type == "integer" or card.type == "number":
        return ColumnPlan(name, card.type, edges=number_edges(card.bounds, card.type == "integer"))
    if card.type in ("date", "timestamp"):
        return ColumnPlan(name, card.type, edges=date_edges(card.period, card.type))
    return ColumnPlan(name, card.type)


def number_edges(bounds: tuple[float, float] | None, whole: bool) -> tuple[float, ...]:
    """Return the edges of at most 64 bins of a column of numbers: round numbers within its bounds, at equal distances
    and, where the bounds reach over several magnitudes, at growing ones on both sides of 0 as well.

    0 has a bin of its own. Few whole numbers have a bin each.

    >>> number_edges((0, 4), True)
    (0, 1, 2, 3, 4, 5)
    >>> number_edges((-100, 2000), True)[:14]
    (-100, -70, -50, -30, -20, -15, -10, -7, -5, -3, -2, -1, 0, 1)
    >>> number_edges((36.0, 42.5), False)[-3:]
    (42.2, 42.4, 42.5)
    """
    low, high = (-_FAR, _FAR) if bounds is None else (float(bounds[0]), float(bounds[1]))
    if whole:
        low, high = math.ceil(low), math.floor(high) + 1
        if high - low <= MOST_BINS:
            return tuple(range(int(low), int(max(high, low + 1)) + 1))
    high = max(high, math.nextafter(low, math.inf), low + _NARROWEST)
    smallest, largest = sorted((abs(low), abs(high)))
    if low <= 0 <= high:
        smallest = _NEAR if bounds is None else (high - low) / _FINEST
    edges = {low, high}
    if bounds is None:
        edges |= _magnitudes(low, high, smallest, whole, MOST_BINS - 4)
    elif largest > _NARROW * smallest:
        edges |= _equal(low, high, whole, _EQUAL) | _magnitudes(low, high, smallest, whole, _GROWING)
    else:
        edges |= _equal(low, high, whole, MOST_BINS - 2)
    if low <= 0 < high:
        edges |= {0.0, 1.0} if whole else {0.0, smallest / _FINEST}
    within = sorted(edge for edge in edges if low <= edge <= high)
    return tuple(map(int, within)) if whole else tuple(within)


def _equal(low: float, high: float, whole: bool, most: int) -> set[float]:
    """Return at most about ``most`` multiples of a round number (1, 2, 2.5 or 5 times a power of 10) in a range."""
    exponent = math.floor(math.log10((high - low) / most))
    steps = (Decimal(f"{mantissa}e{exponent + more}") for more in (0, 1) for mantissa in ("1", "2", "2.5", "5"))
    step = next(s for s in steps if float(s) * most >= high - low and not (whole and s % 1))
    first, last = math.floor(low / float(step)), math.ceil(high / float(step))
    return {float(step * i) for i in range(first, last + 1) if low < step * i < high}


def _magnitudes(low: float, high: float, smallest: float, whole: bool, most: int) -> set[float]:
    """Return at most ``most`` round numbers of growing size between two ends, on both sides of 0."""
    exponents = range(math.floor(math.log10(smallest)), math.ceil(math.log10(max(abs(low), abs(high)))) + 1)
    chosen: set[float] = set()
    for every, mantissas in _ROUND:
        sizes = [float(f"{mantissa}e{k}") for k in exponents if k % every == 0 for mantissa in mantissas]
        sizes = [size for size in sizes if size >= smallest and not (whole and size % 1)]
        chosen = {sign * size for size in sizes for sign in (-1, 1) if low < sign * size < high}
        if len(chosen) <= most:
            break
    return chosen


def date_edges(period: tuple[date, date] | None, type: Type) -> tuple[date, ...]:
    """Return the edges of at most 64 bins of a column of dates: of days, weeks, fortnights, months, quarters or years.

    >>> date_edges((date(2024, 1, 1), date(2024, 1, 3)), "date")[-1]
    datetime.date(2024, 1, 4)
    >>> date_edges((date(2024, 1, 10), date(2026, 12, 31)), "date")[:3]
    (datetime.date(2024, 1, 10), datetime.date(2024, 2, 1), datetime.date(2024, 3, 1))
    """
    first, last = (date(day.year, day.month, day.day) for day in (_CALENDAR if period is None else period))
    days = last.toordinal() - first.toordinal() + 1
    step = next((step for step in (1, 7, 14) if days <= step * (MOST_BINS - 2)), None)
    if step is not None:
        edges = [date.fromordinal(day) for day in range(first.toordinal(), last.toordinal() + 1, step)]
    else:
        months = (last.year - first.year) * 12 + last.month - first.month + 1
        step = next(step for step in (1, 3, 6, 12, 24, 60, 120, 600, 1200, 2400) if months <= step * (MOST_BINS - 2))
        starts = range(first.year * 12, last.year * 12 + 12, step)
        edges = [first, *(day for day in (date(m // 12, m % 12 + 1, 1) for m in starts) if first < day <= last)]
    edges.append(date.fromordinal(min(last.toordinal() + 1, date.max.toordinal())))
    edges = list(dict.fromkeys(edges))
    if len(edges) == 1:  # the last day of the calendar
        edges.insert(0, date.fromordinal(edges[0].toordinal() - 1))
    return tuple(edges) if type == "date" else tuple(datetime(day.year, day.month, day.day) for day in edges)


def days_since_1970(day: date) -> float:
    """Return a date as a number of days.

    >>> days_since_1970(date(1970, 1, 3))
    2.0
    """
    return float((date(day.year, day.month, day.day) - _EPOCH).days)


# -- what follows from the first look ---------------------------------------------------------------------------------


def choose_classes(people: NoisyHistogram) -> tuple[int, ...]:
    """Divide people into classes by their number of rows, and return the most rows in each class.

    Classes have about equal shares, the mean of their shares of people and of rows. There is one class if noise hides
    everybody, or all people are in one octave.

    >>> choose_classes(NoisyHistogram(EDGES, (500.0, 3.0, 0.0, 480.0) + (0.0,) * (len(EDGES) - 4), scale=1.0))
    (1, 4)
    """
    octaves = np.ceil(np.log2(np.array(people.edges))).astype(int)  # sums of bins between powers of 2 have less noise
    weights = np.bincount(octaves, people.weights)
    noise = people.deviation * np.sqrt(np.bincount(octaves))
    seen = np.where(weights > 3 * noise, weights, 0.0)
    if not seen.any():
        return (int(people.edges[-1]),)
    ends = 2 ** np.arange(len(weights))
    rows = seen * ends
    shares = np.cumsum(seen / seen.sum() + rows / rows.sum()) / 2
    places = [int(np.searchsorted(shares, (i + 1) / CLASSES - 1e-9)) for i in range(CLASSES - 1)]
    last = int(np.flatnonzero(seen)[-1])
    return tuple(int(ends[place]) for place in sorted({*places, last}))


def coarse_edges(values: NoisyHistogram) -> tuple[float, ...]:
    """Merge the bins of a histogram into few of about equal weight, and return their edges.

    >>> coarse_edges(NoisyHistogram(tuple(range(6)), (0.0, 90.0, 0.0, 0.0, 10.0), scale=1.0))
    (0, 1, 2, 4, 5)
    """
    weights = np.array(values.weights)
    seen = np.where(weights > 2 * values.deviation, weights, 0.0)
    if not seen.any():
        return (values.edges[0], values.edges[-1])
    before = np.concatenate([[0.0], np.cumsum(seen)]) / seen.sum()
    # an edge wherever a further share of the weight begins, and on both sides of a bin that holds one alone
    numbers = np.floor(before * COARSE_BINS + 1e-9).astype(int)
    kept = {0, len(values.edges) - 1}
    for i in range(1, len(before)):
        if numbers[i] > numbers[i - 1]:
            kept |= {i} | ({i - 1} if numbers[i] > numbers[i - 1] + 1 else set())
    return tuple(values.edges[i] for i in sorted(kept))
