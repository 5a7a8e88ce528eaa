"""The specification of a series on a table: its periods, aggregates and groups, participation, cost and noise.

All of it is public and part of the request that the ledger keeps: a series cannot change after it was charged. Its
periods are hours, days, weeks or months from a public start on, numbered from 1.

*Mechanism.* Every aggregate of every group is a lane of one plan, and one charge pays for all. A period has a whole
number for each aggregate and group. Aggregate a is multiplied by a public whole number ``q_a``, so that all of them
together are one vector of whole numbers, of which running sums are released by one
:class:`~dither.stream.mechanism.StreamPlan`.

*Sensitivity.* In one period a person adds to the groups of aggregate a at most ``S_a`` in the l1 norm, hence in the l2
norm (:mod:`dither.tables.compile.statements`). All lanes together change by at most ``sqrt(sum (q_a S_a)^2)`` in the l2
norm, and by ``sum q_a S_a`` in the l1 norm, which a pure guarantee counts. That, for k periods at least b apart
(:mod:`dither.stream.participants`), is the neighboring relation of the plan, whose proof holds.

*Shares.* The noise of aggregate a in its own units is that of the plan over ``q_a``: an aggregate with the weight w has
``q_a S_a`` proportional to ``sqrt(w)`` (to ``w`` under a pure guarantee), which is the share w of rho (of epsilon). The
``q_a`` are rounded; what they are does not matter for the guarantee, as long as the sensitivity is theirs, which is
checked. They are recorded with the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.budget_hooks import observed
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.exact import root_up
from dither.guarantees import Guarantee, PureDP
from dither.present.notes import Note
from dither.stream.keyed import Lattice
from dither.stream.mechanism import StreamPlan
from dither.stream.participants import Participation
from dither.tables.builder import steps
from dither.tables.builder.expressions import Term, case, col
from dither.tables.card.model import Card
from dither.tables.card.values import Value, closest
from dither.tables.codec import to_json
from dither.tables.compile import expressions
from dither.tables.compile.limits import MAX_TOTAL, Limits
from dither.tables.compile.statements import SUM_BITS, Measure, grid, period_limits, period_sensitivity, period_unit
from dither.tables.planning.explain import unit_notes
from dither.tables.planning.plan import keys_of, measurements
from dither.tables.query.operations.dates import start_of_period
from dither.tables.query.tree import Expression, Query

Unit = Literal["hour", "day", "week", "month"]
UNITS: tuple[Unit, ...] = ("hour", "day", "week", "month")
_MOST = 1 << 20


@dataclass(frozen=True)
class Calendar:
    """Consecutive periods of one unit. Period 1 begins at ``start``, which is the first moment of a period.

    >>> days = Calendar("day", date(2026, 1, 1), 365)
    >>> days.begin(31), days.step("2026-01-31"), days.step("2026-01-31T12:30")
    (datetime.date(2026, 1, 31), 31, 31)
    >>> Calendar("month", date(2026, 1, 1), 12).begin(13)
    datetime.date(2027, 1, 1)
    """

    unit: Unit
    start: date
    horizon: int

    def __post_init__(self) -> None:
        """Refuse an unknown unit, too many periods, and a start that is not the first moment of a period."""
        if self.unit not in UNITS:
            got = repr(self.unit)[:20] if isinstance(self.unit, str) else type(self.unit).__name__
            raise InvalidArgument("unit", f"one of {', '.join(UNITS)}", got, "write over('day', …)")
        horizon = arguments.whole(self.horizon, "horizon")
        if horizon > _MOST:
            raise InvalidArgument("horizon", f"at most {_MOST:,} periods", f"{horizon:,}", "use longer ones")
        start = read_moment(self.start, "start")
        if self.unit == "hour" and not isinstance(start, datetime):
            start = datetime.combine(start, time())
        elif self.unit != "hour" and isinstance(start, datetime):
            if start.time() != time():
                raise self._not_a_start(start)
            start = start.date()
        if start_of_period(self.unit, start) != start:
            raise self._not_a_start(start)
        object.__setattr__(self, "start", start)
        try:
            self.begin(horizon + 1)
        except OverflowError:
            beyond = True
        else:
            beyond = False
        if beyond:
            raise InvalidArgument("horizon", "periods before the year 9999", "later ones", "state fewer")

    def _not_a_start(self, start: date) -> InvalidArgument:
        """Return the error for a start that is not the first moment of a period."""
        first = start_of_period(self.unit, start)
        first = first.date() if self.unit != "hour" and isinstance(first, datetime) else first
        fix = f"write start={first.isoformat()!r}"
        return InvalidArgument("start", f"the first moment of a {self.unit}", "a moment inside of one", fix)

    def begin(self, step: int) -> date:
        """Return the first moment of period number ``step`` (from 1); for ``horizon + 1``, the end of the series."""
        if self.unit == "month":
            months = self.start.year * 12 + self.start.month - 1 + step - 1
            if months // 12 > date.max.year:
                raise OverflowError
            return date(months // 12, months % 12 + 1, 1)
        length = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}[self.unit]
        return self.start + (step - 1) * length

    def step(self, moment: object) -> int:
        """Return the number of the period that contains a moment; one outside of the series is refused."""
        read = read_moment(moment, "through")
        place = self._period_number(read)
        if not 1 <= place <= self.horizon:
            expected = f"from {self.label(1)} to {self.label(self.horizon)}, the periods of this series"
            fix = "name one of them; a longer series is a new one, at its own cost"
            raise InvalidArgument("through", expected, "a moment outside of it", fix)
        return place

    def _period_number(self, moment: date) -> int:
        """Return the number of the period that contains a moment: below 1 before the series, more than the horizon
        after it."""
        if self.unit == "hour":
            value = moment if isinstance(moment, datetime) else datetime.combine(moment, time.max)
            assert isinstance(self.start, datetime)
            return (value - self.start) // timedelta(hours=1) + 1
        day = moment.date() if isinstance(moment, datetime) else moment
        if self.unit == "month":
            return (day.year - self.start.year) * 12 + day.month - self.start.month + 1
        return (day - self.start).days // (7 if self.unit == "week" else 1) + 1

    def finished(self, now: datetime | None = None) -> int:
        """Return the number of periods that have ended at ``now`` (None: by the clock in UTC), at most the horizon."""
        moment = datetime.now(UTC).replace(tzinfo=None) if now is None else now
        return max(0, min(self.horizon, self._period_number(moment) - 1))

    def label(self, step: int) -> str:
        """Return the first moment of a period, as text."""
        return self.begin(step).isoformat()


def read_moment(value: object, name: str) -> date:
    """Return a date or a timestamp without a time zone, from such a value or its text in ISO 8601.

    Timestamps with a zone are refused.

    >>> read_moment("2026-11-30", "through")
    datetime.date(2026, 11, 30)
    """
    fix = f"pass {name}='2026-01-31'"
    if isinstance(value, str):
        result: date | None = None
        for kind in (date, datetime):
            try:
                result = kind.fromisoformat(value)
            except ValueError:
                continue
            break
        if result is None:
            raise InvalidArgument(name, "a date, as 2026-01-31", "text that is not one", fix)
        value = result
    if not isinstance(value, date):
        raise WrongType(name, "a date", type(value).__name__, fix)
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise InvalidArgument(name, "a timestamp without a zone, which is UTC", "one with a zone", fix)
    return value


Late = Literal["ignore", "arrival"]
KINDS = ("count", "count_value", "people", "sum")
"""The aggregates that a series can have: those that add up over periods."""
VERSION = 1
MAX_CELLS = 100_000


@dataclass(frozen=True)
class SeriesSpec:
    """The specification of a series on one table; :meth:`dither.Table.over` explains its fields."""

    card: Card
    query: Query
    calendar: Calendar
    column: str
    budget: Guarantee
    participation: Participation
    max_rows: int
    late: Late = "ignore"
    arrived: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse columns without dates or timestamps, contradictory rules, and names that occur twice."""
        for column in (self.column, *([] if self.arrived is None else [self.arrived])):
            check_moments(self.card, column, self.calendar.unit)
        if self.card.counts_rows_without_unit:
            fix = 'leave such rows out: rows_without_unit = "drop"'
            raise InvalidArgument("rows_without_unit", '"drop" for a series', '"each"', fix)
        if self.late not in ("ignore", "arrival"):
            fix = "leave it out: rows that come late do not count"
            raise InvalidArgument("late", '"ignore" or "arrival"', "an unknown rule", fix)
        if (self.late == "arrival") != (self.arrived is not None):
            expected = "a column with the time at which each row arrived, and late='arrival', both or neither"
            fix = (
                "name the column, arrived='loaded_at': without it late rows cannot be told from rows that were counted"
            )
            raise InvalidArgument("arrived", expected, "one of them", fix)
        if self.arrived is not None:
            types = {self.card.columns[name].type for name in (self.column, self.arrived)}
            if len(types) > 1:
                expected = f"a column of the type of {self.column}"
                raise InvalidArgument("arrived", expected, "columns of two types", "make both dates, or timestamps")
        if self.calendar.unit in {name.casefold() for name in self.names}:
            fix = "give it another name"
            raise InvalidArgument(self.calendar.unit, "a name for the periods alone", "the name of a column, too", fix)
        _ = self.keys, self.lanes

    @property
    def names(self) -> list[str]:
        """Return the columns of the answer besides the period."""
        return [*(group.name for group in self.query.groups), *self.query.aggregates]

    @property
    def moment(self) -> Term:
        """Return the expression of a row's date that determines its period: the column, or the later of it and the
        arrival."""
        if self.arrived is None:
            return col(self.column)
        return case((col(self.arrived) > col(self.column), col(self.arrived)), otherwise=col(self.column))

    def query_of(self, first: int, last: int) -> Query:
        """Return the query restricted to rows in the periods ``first`` to ``last``."""
        moment, is_date = self.moment, self.card.columns[self.column].type == "date"

        def edge(step: int) -> date:
            """Return the first moment of a period, in the type of the column."""
            begin = self.calendar.begin(step)
            return begin if is_date or isinstance(begin, datetime) else datetime.combine(begin, time())

        return steps.where(self.query, [moment >= edge(first), moment < edge(last + 1)], self.card)

    @cached_property
    def period(self) -> Expression:
        """Return the expression of the first moment of a row's period."""
        probe = steps.group_by(Query({}), (), {"t": self.moment.trunc(self.calendar.unit)}, self.card)
        return probe.groups[0].value

    @cached_property
    def keys(self) -> tuple[tuple[Value, ...], ...]:
        """Return the public keys of each group column; refuse groups without public keys, and too many numbers."""
        result = []
        for group, listed in zip(self.query.groups, keys_of(self.query, self.card), strict=True):
            if listed is None:
                fix = "state keys = […] in the card, or write group_by(dp.among('region', ['north', 'south']))"
                raise InvalidArgument(group.name, "public keys: a series has every group", "none", fix)
            result.append(listed)
        if math.prod(map(len, result)) * max(1, len(self.query.aggregates)) > MAX_CELLS:
            raise InvalidArgument("groups", f"at most {MAX_CELLS:,} numbers a period", "more of them", "group less")
        return tuple(result)

    @property
    def cells(self) -> int:
        """Return the number of cells: combinations of the groups' keys."""
        return math.prod(map(len, self.keys))

    @cached_property
    def limits(self) -> Limits:
        """Return the limits on one person's contribution in one period."""
        if self.max_rows > MAX_TOTAL:
            raise InvalidArgument("max_rows", f"at most {MAX_TOTAL:,}", f"{self.max_rows:,}", "count fewer")
        return period_limits(self.max_rows, self.card.unit is not None)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """Return the measure of each aggregate; refuse aggregates that are not one sum over rows."""
        if not self.query.aggregates:
            raise InvalidArgument("series", "at least one aggregate", "none", "write .agg(n=dp.count())")
        find = expressions.lookup(self.card, {})
        result = []
        for name, aggregate in self.query.aggregates.items():
            if aggregate.kind not in KINDS:
                fix = "use dp.count, dp.people or dp.sum; a mean is the ratio of a sum and a count"
                raise InvalidArgument(name, "a number that adds up over periods", aggregate.kind, fix)
            if aggregate.bounds == "auto":
                fix = "state bounds=(low, high), or in the card"
                raise InvalidArgument(name, "stated bounds for a series", "'auto'", fix)
            alone = Query({name: aggregate}, groups=self.query.groups, where=self.query.where)
            (part,) = measurements(alone, self.keys, self.limits, find).parts.values()
            if len(part) != 1:
                fix = "subtract a constant, or narrow the bounds"
                raise InvalidArgument(name, "bounds not far from 0", "bounds far from 0", fix)
            result.append(_coarser(part[0], math.ceil(part[0].limits(self.limits).total)))
        return tuple(result)

    @cached_property
    def lanes(self) -> tuple[Lane, ...]:
        """Return, for each aggregate, its sensitivity to one person in one period, its unit and its weight."""
        result = []
        for aggregate, measure in zip(self.query.aggregates.values(), self.measures, strict=True):
            weight = 1 if aggregate.weight is None else arguments.positive(aggregate.weight, "weight")
            moves = period_sensitivity(measure, self.limits)
            result.append(Lane(moves, period_unit(measure, self.limits), Fraction(weight)))
        return tuple(result)

    @cached_property
    def mechanism(self) -> SeriesMechanism:
        """Return the mechanism of a new series; one that was charged continues with the recorded mechanism instead."""
        return SeriesMechanism.planned(
            self.name or "",
            self.lanes,
            self.cells,
            self.budget,
            horizon=self.calendar.horizon,
            participations=1 if self.card.unit is None else self.participation.max_participations,
            separation=self.participation.min_separation,
        )

    def request(self) -> dict[str, Any]:
        """Return the canonical form of the series for the ledger: everything on which its numbers and noise depend."""
        calendar, rule = self.calendar, self.participation
        return {
            "version": VERSION,
            "series": {
                "periods": [calendar.unit, calendar.start.isoformat(), calendar.horizon],
                "column": self.column,
                "table": self.card.name,
                "unit": self.card.unit,
                "unit_type": None if self.card.unit is None else self.card.columns[self.card.unit].type,
                "query": to_json(self.query),
                "keys": to_json(list(self.keys)),
                "lanes": [[lane.sensitivity, lane.unit, str(lane.weight)] for lane in self.lanes],
                "participation": [rule.max_participations, rule.min_separation],
                "max_rows": self.max_rows,
                "late": self.late,
                "arrived": self.arrived,
            },
        }

    def notes(self) -> tuple[Note, ...]:
        """Return the notes that accompany every ±."""
        calendar, rule, unit = self.calendar, self.participation, self.calendar.unit
        if self.card.unit is None:
            result = [Note("series_row_is_person", {"unit": unit})]
        else:
            limits = {"rows": self.max_rows, "periods": rule.max_participations, "separation": rule.min_separation}
            result = [Note("series_limits", {"unit": unit, **limits}), Note("undercount_elsewhere")]
            if rule.is_bounded(calendar.horizon):
                result.append(Note("series_falling", {"unit": unit}))
        counted = [name for name, aggregate in self.query.aggregates.items() if aggregate.kind == "people"]
        if counted:
            result.append(Note("series_people", {"names": counted, "unit": unit}))
        late = Note("late_ignored")
        if self.late == "arrival":
            late = Note("late_arrival", {"column": self.column, "arrived": self.arrived})
        return (*result, *unit_notes(self.card), late)


def _coarser(measure: Measure, rows: int) -> Measure:
    """Return the measure with a coarser grid of values if it is a sum on a finer one: a grid much finer than the noise
    only makes numbers larger and noise slower to draw."""
    moments = measure.moments
    if measure.kind != "sum" or moments is None or moments.grid is None or moments.bounds is None:
        return measure
    coarse = grid(moments.bounds, False, SUM_BITS, rows)
    if moments.grid.width <= coarse.width:
        return measure
    return replace(measure, moments=replace(moments, grid=coarse))


def check_moments(card: Card, column: object, unit: str) -> None:
    """Refuse a column that the card does not have, or that holds no dates or, for periods of an hour, no timestamps."""
    if not isinstance(column, str) or column not in card.columns:
        dates = [name for name, item in card.columns.items() if item.type in ("date", "timestamp")]
        fix = closest(column, dates) if isinstance(column, str) and dates else "name a column of dates of the card"
        raise InvalidArgument("column", "a column of dates or timestamps", "an unknown column", fix)
    kind = card.columns[column].type
    if kind not in ("date", "timestamp") or (kind == "date" and unit == "hour"):
        expected = "a column of timestamps, for an hour" if unit == "hour" else "a column of dates or timestamps"
        raise InvalidArgument("column", expected, f"a column of type {kind}", "name another column")


_FINEST = 8
_BITS = 64


@dataclass(frozen=True)
class Lane:
    """One aggregate of a series: its sensitivity to one person in one period, in whole units; the number of units in 1
    (``unit``); and its weight in the budget."""

    sensitivity: int
    unit: float
    weight: Fraction = Fraction(1)


def multipliers(lanes: Sequence[Lane], pure: bool) -> tuple[int, ...]:
    """Return the whole number ``q_a`` by which each aggregate is multiplied, so that it gets its share of the budget.

    All ``lanes`` get noise of one scale, so an aggregate with a larger multiplier is more accurate. ``q_a *
    sensitivity`` is proportional to the weight if ``pure`` (l1 sensitivities add up), else to its square root (their
    squares add up).
    """
    if len(lanes) == 1:
        return (1,)
    wanted = [float(lane.weight) if pure else math.sqrt(lane.weight) for lane in lanes]
    scale = _FINEST * max(lane.sensitivity / share for lane, share in zip(lanes, wanted, strict=True))
    return tuple(max(1, round(scale * share / lane.sensitivity)) for lane, share in zip(lanes, wanted, strict=True))


def joint_sensitivity(lanes: Sequence[Lane], factors: Sequence[int], pure: bool) -> Fraction:
    """Return the sensitivity of all lanes together in one period, each multiplied by its factor, rounded up: the l1
    norm if ``pure``, else the l2 norm."""
    sizes = [q * lane.sensitivity for q, lane in zip(factors, lanes, strict=True)]
    return Fraction(sum(sizes)) if pure else root_up(Fraction(sum(size**2 for size in sizes)), _BITS)


@dataclass(frozen=True)
class SeriesMechanism:
    """Releases running sums of whole numbers, one for each aggregate and each of ``groups``, with the noise of one
    plan."""

    name: str
    lanes: tuple[Lane, ...]
    groups: int
    plan: StreamPlan
    factors: tuple[int, ...]
    """The whole numbers that aggregates are multiplied by."""

    def __post_init__(self) -> None:
        """Refuse multipliers whose joint sensitivity exceeds that of the plan, as only a changed record has them."""
        plan, lanes, factors = self.plan, self.lanes, self.factors
        fits = len(factors) == len(lanes) and plan.series == self.groups * len(lanes)
        positive = all(type(factor) is int and factor > 0 for factor in factors)
        if not (fits and positive and joint_sensitivity(lanes, factors, plan.pure) <= Fraction(plan.sensitivity)):
            expected = "multipliers whose sensitivity is that of the plan"
            raise NotPrivate("recorded", expected, "a changed record", "leave the record as it was")

    @classmethod
    def planned(
        cls,
        name: str,
        lanes: tuple[Lane, ...],
        groups: int,
        budget: Guarantee,
        *,
        horizon: int,
        participations: int,
        separation: int,
    ) -> SeriesMechanism:
        """Return the mechanism with optimized noise and the multipliers for these aggregates.

        Parameters
        ----------
        name
            The name of the series.
        lanes, groups
            The aggregates with their sensitivities, and the number of groups.
        budget
            The cost of the whole series.
        horizon, participations, separation
            The number of steps, the most steps with values of one person, and the fewest from one of them to the next.
        """
        pure = isinstance(budget, PureDP)
        factors = multipliers(lanes, pure)
        plan = StreamPlan(
            horizon=horizon,
            budget=budget,
            max_participations=participations,
            min_separation=separation,
            sensitivity=joint_sensitivity(lanes, factors, pure),
            series=groups * len(lanes),
        )
        return cls(name, lanes, groups, plan, factors)

    def record(self) -> dict[str, Any]:
        """Return plan and multipliers as plain values, with which a later version of dither continues the series; they
        are public."""
        return {"plan": self.plan.record(), "multipliers": list(self.factors)}

    @classmethod
    def from_record(cls, name: str, lanes: tuple[Lane, ...], groups: int, record: Mapping[str, Any]) -> SeriesMechanism:
        """Return the mechanism with the plan and the multipliers that were recorded."""
        return cls(name, lanes, groups, StreamPlan.from_record(record["plan"]), tuple(record["multipliers"]))

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the whole series, which is paid once."""
        return self.plan.guarantee

    @observed
    def release(self, increments: NDArray[Any], before: NDArray[Any], noise: Lattice) -> NDArray[np.float64]:
        """Return the noisy running sums of some periods, a row for each, with each aggregate in its own units.

        ``before`` are the exact sums before these periods, and ``increments`` has a row for each period; both are whole
        numbers in the units of the statement. ``noise`` is the plan's noise of these running sums, in lattice steps.
        """
        factors, scale = np.repeat(np.array(self.factors, dtype=object), self.groups), 1 << self.plan.lattice_bits
        sums = np.cumsum(increments.astype(object), axis=0) + before
        exact = sums * factors * scale + noise.astype(object)
        units = np.repeat(np.array([lane.unit for lane in self.lanes]), self.groups)
        return np.asarray((exact / scale).astype(np.float64) / factors.astype(np.float64) / units, dtype=np.float64)

    def errors(self, first: int, last: int, window: int | None = None) -> NDArray[np.float64]:
        """Return the ± (95 %) of each aggregate after some periods, a row for each: of running sums, or of the sums of
        the last ``window`` periods.
        """
        sizes = np.array([q * lane.unit for q, lane in zip(self.factors, self.lanes, strict=True)])
        whole = np.array([self.plan.error(step, 0.95, window) for step in range(first, last + 1)])
        return np.asarray(whole[:, None] / sizes, dtype=np.float64)
