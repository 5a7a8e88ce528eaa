"""A series on a table: charged once for its whole horizon, released period by period; released points never change.

A release through a period measures the periods that are not released yet, adds the noise of one plan, records the
points, and only then returns them; released points are returned as recorded. The effect of one person is bounded over
the whole horizon (:mod:`dither.stream.participants`, with the proof); the state is sealed in the ledger
(:mod:`dither.ledger.series`).

>>> import dither as dp, pyarrow as pa
>>> from datetime import date, timedelta
>>> rows = pa.table({"who": [*range(60)], "day": [date(2026, 1, 1) + timedelta(days=i % 6) for i in range(60)]})
>>> with dp.open(rows, unit="who", budget=dp.ApproxDP(1, 1e-6)) as visits:
...     days = visits.over("day", column="day", horizon=30, start="2026-01-01", epsilon=1, delta=1e-6)
...     daily = days.agg(n=dp.count())
...     first = daily.release(through="2026-01-03")
...     later = daily.release(through="2026-01-06")
>>> len(first), len(later), later.rows[:3] == first.rows, str(later.remaining)
(3, 6, True, 'nothing')

The lines that are read from the table (:class:`Lines`) are private, and none of them leaves the advance that reads
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import dither
from dither import arguments
from dither.budget_hooks import charging_to
from dither.comparison import unhashable
from dither.errors import InvalidArgument, LedgerError
from dither.ledger import Receipt
from dither.ledger.accounts import Remaining
from dither.ledger.recorded import decode, encode
from dither.ledger.series import Advance, Pay, SeriesRecord, SeriesState
from dither.present import markup
from dither.public_module import public_in
from dither.release import pipeline
from dither.stream.filters import SAFE, as_wide, restored, stored, whole_numbers
from dither.stream.keyed import Lattice, new_key
from dither.stream.participants import Participation, changed, identities, look_up, merged, parts_to_merge, take_part
from dither.stream.running import budget_of
from dither.stream.series_answer import SeriesAnswer, SeriesExplanation
from dither.stream.series_spec import Calendar, Late, SeriesMechanism, SeriesSpec, Unit, check_moments
from dither.tables.attribute_hints import NotIterable
from dither.tables.builder import steps
from dither.tables.builder.expressions import Condition, count, people, sum_
from dither.tables.builder.steps import Grouping
from dither.tables.card.toml import SeriesAggregate
from dither.tables.card.values import clip, closest
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.statements import person_periods
from dither.tables.query.tree import Aggregate, Query

SECRET = 0
"""The number of the state's part that holds the totals and the noise; the other parts hold participation."""


class SeriesSecret(NamedTuple):
    """The secret state besides participation: the number of released periods (``position``), the exact totals, and the
    recorded state of the noise (None before the first advance).

    Keys of noise are not kept: the noise that they generated is in ``noise``, and each is used for one advance only.
    """

    position: int
    totals: NDArray[Any]
    noise: Mapping[str, Any] | None

    @classmethod
    def read(cls, state: SeriesState, lanes: int) -> SeriesSecret:
        """Return the secret from the state of a series with ``lanes`` numbers per period."""
        if not state.advances:
            return cls(0, np.zeros(lanes, dtype=object), None)
        content = decode(state.parts[SECRET])
        return cls(content["position"], as_wide(restored(content["totals"])), content["noise"])

    def sealed(self) -> bytes:
        """Return the secret encoded as a part of the state, which the ledger encrypts."""
        totals = stored(whole_numbers([self.totals.tolist()])[0])
        return encode({"position": self.position, "totals": totals, "noise": self.noise})


class Lines(NamedTuple):
    """The lines that a statement returned: one for each person, period and group, with the measured whole numbers.

    ``step`` is the period, ``cell`` the index of the group, ``numbers`` has an array for each measure. ``person`` is
    each line's index into ``keys`` (the people's keys) and ``people`` (their records); all three are None if every row
    is a person.
    """

    step: NDArray[np.int64]
    cell: NDArray[np.int64]
    numbers: list[NDArray[np.int64]]
    person: NDArray[np.intp] | None
    keys: Any
    people: Any

    @classmethod
    def read(cls, rows: Any, spec: SeriesSpec, people_key: bytes, first: int, last: int) -> Lines:
        """Return the lines of a statement about the periods ``first`` to ``last`` from an Arrow table.

        The columns of ``rows`` are ``t`` (the first moment of the period), ``g0``, ``g1``, ... (the index of each
        group's key), ``m0``, ``m1``, ... (the measures) and ``u`` (the person, where the card has a unit).
        ``people_key`` is the secret under which people are recorded. Lines of other periods are dropped, should an
        engine return any: a period is measured once.
        """
        begins = np.array([spec.calendar.begin(step) for step in range(first, last + 1)], dtype="datetime64[us]")
        moments = rows.column("t").to_numpy().astype("datetime64[us]")
        period_index = np.minimum(np.searchsorted(begins, moments), len(begins) - 1)
        inside = begins[period_index] == moments
        if not inside.all():
            rows, period_index = rows.filter(pa.array(inside)), period_index[inside]
        step = period_index.astype(np.int64) + first
        cell = np.zeros(rows.num_rows, dtype=np.int64)
        for i, keys in enumerate(spec.keys):
            cell = cell * len(keys) + rows.column(f"g{i}").to_numpy()
        measured = [rows.column(f"m{i}").to_numpy() for i in range(len(spec.measures))]
        if spec.card.unit is None:
            return cls(step, cell, measured, None, None, None)
        people = pc.dictionary_encode(rows.column("u").combine_chunks())
        person = people.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        return cls(step, cell, measured, person, people.dictionary, identities(people.dictionary, people_key))

    def increments(self, first: int, last: int, cells: int, kept: NDArray[np.bool_] | None) -> Lattice:
        """Return the exact sums of the periods ``first`` to ``last``, a row for each; Python's integers if 64 bits
        could overflow.

        ``kept`` is a mask of the lines that count (None: all). Columns are ordered by measure, then by cell; ``cells``
        is the number of cells, the combinations of the groups' keys.
        """
        result: Lattice = np.zeros((last - first + 1, len(self.numbers) * cells), dtype=np.int64)
        chosen = slice(None) if kept is None else kept
        rows, cell = self.step[chosen] - first, self.cell[chosen]
        for i, numbers in enumerate(self.numbers):
            largest = max(abs(int(bound)) for bound in (numbers.min(initial=0), numbers.max(initial=0)))
            if largest * len(numbers) >= SAFE:  # sums of 64 bits could overflow
                result, numbers = as_wide(result), numbers.astype(object)
            np.add.at(result, (rows, i * cells + cell), numbers[chosen])
        return result


def participating(
    lines: Lines, state: SeriesState, pay: Pay | None, rule: Participation, horizon: int
) -> tuple[NDArray[np.bool_] | None, dict[int, bytes | None]]:
    """Return a mask of the lines that count (None: all), and the changed parts of the record of participation by number
    (None: the part is deleted).

    The numbers of entries and parts in the ledger must not depend on the rows, since receipts disclose them.

    Parameters
    ----------
    lines
        The measured lines.
    state
        The state of the series, whose parts record in which periods people took part.
    pay
        Charges the accounts of people who take part for the first time, and returns who could pay; None: people have no
        accounts.
    rule
        The rule on how often a person may take part, within ``horizon`` periods.
    """
    if lines.person is None or (pay is None and not rule.is_bounded(horizon)):
        return None, {}
    places = sorted(part for part in state.parts if part != SECRET)
    before = look_up(lines.people, [state.parts[part] for part in places])
    allowed = np.ones(len(lines.person), dtype=bool)
    if pay is not None:
        unpaid = np.flatnonzero(before["used"] == 0)
        admitted = np.ones(len(before), dtype=bool)
        admitted[unpaid] = pay(
            lines.keys.take(unpaid)
        )  # also without such people: the entries of the ledger must not depend on the rows
        allowed = admitted[lines.person]
    kept = np.zeros(len(lines.person), dtype=bool)
    kept[allowed], after = take_part(before, lines.person[allowed], lines.step[allowed], rule)
    new, number = changed(before, after, rule.widths(horizon)), state.advances + 1
    count = parts_to_merge(number)
    newest = places if count is None else places[max(0, len(places) - count) :]
    whole = merged([*(state.parts[part] for part in newest), new]) if newest else new
    return kept, {**dict.fromkeys(newest), number: whole}


@public_in("dither.stream")
@unhashable
@dataclass(frozen=True)
class TimeSeriesBuilder(NotIterable):
    """A table over time, to which aggregates are added: what :meth:`dither.Table.over` returns.

    >>> import dither as dp, pyarrow as pa
    >>> from datetime import date
    >>> with dp.open(pa.table({"day": [date(2026, 1, 1)], "vip": [True]}), budget=dp.PureDP(1)) as visits:
    ...     days = visits.over("day", column="day", horizon=7, start="2026-01-01", epsilon=1)
    ...     days.where("vip").agg(n=dp.count())
    Series('data', n = count, each day of 7 from 2026-01-01)
    """

    table: dither.Table = field(repr=False)
    stated: Mapping[str, Any] = field(repr=False)
    """The fields of :class:`SeriesSpec` besides the card and the query."""
    query: Query = field(default_factory=lambda: Query({}))

    def where(self, condition: Condition | Sequence[Condition]) -> TimeSeriesBuilder:
        """Return this builder restricted to rows that also meet a condition, or all of several in a list."""
        return replace(self, query=steps.where(self.query, condition, self.table.card))

    def group_by(self, *groups: Grouping | Sequence[Grouping], **named: Grouping) -> TimeSeriesBuilder:
        """Return this builder with a series for each combination of keys of these columns or expressions, which must be
        public."""
        return replace(self, query=steps.group_by(self.query, groups, named, self.table.card))

    def agg(self, *unnamed: object, **aggregates: Aggregate) -> Series:
        """Return the series of these aggregates (counts, people and sums), each passed with a name."""
        steps.refuse_unnamed(unnamed)
        card = self.table.card
        spec = SeriesSpec(card, steps.agg(self.query, aggregates, card), **self.stated)
        return Series(self.table, spec)


def over(
    table: dither.Table,
    unit: Unit,
    *,
    column: str,
    horizon: int,
    start: object,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    max_participations: int,
    min_separation: int,
    max_rows: int | None,
    late: Late,
    arrived: str | None,
    name: str | None,
) -> TimeSeriesBuilder:
    """Return the builder of a series on a table, with the arguments of :meth:`dither.Table.over`; refuse everything
    that can be refused without the aggregates."""
    card = table.card
    if card.tables:
        fix = "open the one table by a card of its own, with the same ledger and population"
        raise InvalidArgument("over", "a card of one table", "several", fix)
    check_moments(card, column, unit)
    period = card.columns[column].period
    if start is None and period is None:
        fix = f"pass start='2026-01-01', or state bounds of {column} in the card"
        raise InvalidArgument("start", "the first period of the series", "none", fix)
    calendar = Calendar(unit, start if start is not None else period[0], horizon)  # type: ignore[arg-type,index]
    rule = Participation(max_participations, min_separation)
    if name is not None and (not isinstance(name, str) or not name.isidentifier()):
        raise InvalidArgument("name", "a plain word", "no identifier", "pass name='daily'")
    rows = 1 if card.unit is None else max_rows if max_rows is not None else card.max_rows
    if rows == "auto":
        fix = "pass max_rows=1 to over(): how many rows of a person count in a period"
        raise InvalidArgument("max_rows", "a whole number for a series", "'auto'", fix)
    stated = {
        "calendar": calendar,
        "column": column,
        "budget": budget_of(epsilon, card.delta if delta is None and rho is None else delta, rho),
        "participation": rule,
        "max_rows": arguments.whole(rows, "max_rows"),
        "late": late,
        "arrived": arrived,
        "name": name,
    }
    return TimeSeriesBuilder(table, stated)


class _RecordedPoints(NamedTuple):
    """The recorded points and errors of the released periods (a row each), the number of advances, the mechanism, and
    the last receipt."""

    advances: int
    points: NDArray[np.float64]
    errors: NDArray[np.float64]
    mechanism: SeriesMechanism
    receipt: str

    @property
    def position(self) -> int:
        """Return the number of released periods."""
        return len(self.points)


@public_in("dither.stream")
@unhashable
@dataclass(frozen=True)
class Series(NotIterable):
    """A series on a table. Nothing is read or charged before :meth:`release`.

    >>> import dither as dp, pyarrow as pa
    >>> from datetime import date
    >>> with dp.open(pa.table({"day": [date(2026, 1, 1)] * 9}), budget=dp.PureDP(1)) as visits:
    ...     daily = visits.over("day", column="day", horizon=7, start="2026-01-01", epsilon=1).agg(n=dp.count())
    ...     answer = daily.release(through="2026-01-02")
    >>> answer.columns, len(answer)
    (('day', 'n'), 2)
    """

    table: dither.Table = field(repr=False)
    spec: SeriesSpec

    def __repr__(self) -> str:
        """Return the table, the aggregates, the groups and the calendar in one line."""
        spec, calendar = self.spec, self.spec.calendar
        parts = [f"{name} = {aggregate.kind}" for name, aggregate in spec.query.aggregates.items()]
        parts += [f"by {group.name}" for group in spec.query.groups]
        parts.append(f"each {calendar.unit} of {calendar.horizon} from {calendar.label(1)}")
        return f"Series({spec.card.name!r}, {', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Return the series for a notebook; nothing in it was read from rows."""
        after = "Nothing is read or charged yet: explain() shows the cost and the ±, release(through=…) releases."
        return markup.block(markup.heading(f"Series of {self.spec.card.name}"), markup.lines([repr(self), after]))

    # -- before -------------------------------------------------------------------------------------------------------

    def explain(self, *, window: int | None = None, analyst: str | None = None) -> SeriesExplanation:
        """Return the cost, the ± after every period, and why a release would be refused, if it would; reads no data and
        charges nothing. ``window`` and ``analyst`` are as for :meth:`release`."""
        spec, accounts = self.spec, self.table.accounts
        mechanism, calendar = spec.mechanism, spec.calendar
        periods = range(1, calendar.horizon + 1)
        widths = mechanism.errors(1, calendar.horizon, _window(window))
        errors = {name: tuple(widths[:, i].tolist()) for i, name in enumerate(spec.query.aggregates)}
        labels = tuple(calendar.label(step) for step in periods)
        refused = accounts.refusal(spec.budget, analyst)
        notes = (*spec.notes(), *accounts.people_notes(spec.budget))
        return SeriesExplanation(spec.budget, accounts.remaining(analyst), labels, errors, notes, refused)

    # -- release ------------------------------------------------------------------------------------------------------

    def release(self, through: object = None, *, window: int | None = None, analyst: str | None = None) -> SeriesAnswer:
        """Return all points through a period, with their ±; recorded points are unchanged, and missing ones are
        measured.

        Parameters
        ----------
        through
            A moment in the last requested period, as a date or its text; by default the last period that has ended, by
            the clock in UTC. Rows that arrive after the release of their period are late.
        window
            Return sums over this number of periods instead of running totals, as differences of released numbers, at no
            cost.
        analyst
            The asking analyst, where analysts have accounts.
        """
        table, spec, calendar = self.table, self.spec, self.spec.calendar
        pipeline.check(table, spec.budget)
        _window(window)
        target = calendar.finished() if through is None else calendar.step(through)
        if target == 0:
            raise InvalidArgument("through", "a period that has ended", "none yet", "wait for the first one")
        request = pipeline.identify(spec.request(), spec.budget, analyst=analyst, key=spec.name or None)
        record = pipeline.charge_series(
            table, spec.budget, request, lambda: self._statement(1, 1, rehearse=True), analyst
        )
        released = self._recorded(record)
        replayed = released.position >= target
        while released.position < target:
            before = released
            self._advance(record, before, target)
            released = self._recorded(record, before)
            if released.advances == before.advances:  # neither this nor another process has advanced the series
                fix = "restore the ledger from a copy that is as new as its last receipt"
                raise LedgerError("series", "a state that is as far as its points", "an older state", fix)
        remaining = pipeline.finish(table, Receipt.read(released.receipt), analyst)
        return self._answer(released, target, window, remaining, replayed)

    def _recorded(self, record: SeriesRecord, before: _RecordedPoints | None = None) -> _RecordedPoints:
        """Return the released points, and the mechanism that was recorded with the first of them.

        ``before`` are points that were read earlier, so that only newer ones have to be read.
        """
        spec, lanes = self.spec, len(self.spec.lanes)
        mechanism = None if before is None or not before.advances else before.mechanism
        known = (0, np.empty((0, spec.cells * lanes)), np.empty((0, lanes)))
        advances, points, errors = known if mechanism is None or before is None else before[:3]
        answers, receipt = record.answers(after=advances)
        contents = [decode(stored) for stored in answers]
        if mechanism is None and contents:
            mechanism = SeriesMechanism.from_record(spec.name or "", spec.lanes, spec.cells, contents[0]["mechanism"])
        return _RecordedPoints(
            advances + len(contents),
            np.concatenate([points, *(content["points"] for content in contents)]),
            np.concatenate([errors, *(content["errors"] for content in contents)]),
            mechanism or spec.mechanism,
            str(receipt),
        )

    def _advance(self, record: SeriesRecord, released: _RecordedPoints, target: int) -> None:
        """Measure and record the periods after those in ``released`` up to ``target``; do nothing if another process
        has recorded them first."""
        spec, mechanism = self.spec, released.mechanism
        first = released.position + 1

        def measure() -> Lines:
            """Return the lines of the missing periods, read from the table."""
            rows = self.table.engine.run(self._statement(first, target))
            return Lines.read(rows, spec, record.people_key, first, target)

        def compute(lines: Lines, state: SeriesState, pay: Pay | None) -> Advance | None:
            """Return the points of these periods, with the state of the series after them; None if another process was
            first."""
            secret = SeriesSecret.read(state, mechanism.plan.series)
            if secret.position != released.position:
                return None
            kept, parts = participating(lines, state, pay, spec.participation, spec.calendar.horizon)
            increments = lines.increments(first, target, spec.cells, kept)
            # a new key for each advance: a restored older copy of the ledger continues with independent noise
            stream = mechanism.plan.start(new_key(), secret.noise)
            noise = stream.advance(len(increments))
            with charging_to(None):  # the whole series was charged before
                points = mechanism.release(increments, secret.totals, noise)
            totals = secret.totals + increments.sum(axis=0, dtype=object)
            answer: dict[str, Any] = {"first": first, "points": points, "errors": mechanism.errors(first, target)}
            if not state.advances:
                answer["mechanism"] = mechanism.record()
            return Advance(encode(answer), {SECRET: SeriesSecret(target, totals, stream.record()).sealed(), **parts})

        periods = f"periods {first} to {target}"
        pipeline.advance_series(self.table, record, periods, measure, lambda lines: partial(compute, lines))

    # -- the statement ------------------------------------------------------------------------------------------------

    def _statement(self, first: int, last: int, rehearse: bool = False) -> Statement:
        """Return the statement that measures the periods ``first`` to ``last``; with ``rehearse``, run it on a table
        without rows first."""
        spec, engine = self.spec, self.table.engine
        engine.check()
        context = StatementContext(
            spec.query_of(first, last),
            spec.card,
            spec.keys,
            spec.limits,
            0,
            engine.dialect,
            {"": engine.private(spec.card.name)},
        )
        statement = person_periods(context, spec.measures, spec.period)
        if rehearse:
            engine.rehearse(statement.on({"": engine.empty_of(spec.card.name)}))
        return statement

    # -- the answer ---------------------------------------------------------------------------------------------------

    def _answer(
        self, released: _RecordedPoints, target: int, window: int | None, remaining: Remaining, replayed: bool
    ) -> SeriesAnswer:
        """Return the answer through a period: running sums, or sums over a window, with their ± and notes.

        Parameters
        ----------
        released
            The recorded points, at least up to the period ``target``.
        window
            The number of periods that each number is a sum of, as the difference of two points; None: running sums.
        remaining, replayed
            The remaining budget, and whether all points had been released before.
        """
        spec, calendar, mechanism = self.spec, self.spec.calendar, released.mechanism
        points = released.points[:target]
        if window is not None:
            earlier = np.zeros_like(points)
            earlier[window:] = points[:-window] if window < len(points) else points[:0]
            points = points - earlier
        keys, names = _product(spec.keys), [*spec.query.aggregates]
        # a row of points has all groups of the first aggregate, then all of the second; the answer has a line per group
        moments = [calendar.begin(step) for step in range(1, target + 1) for _ in keys]
        values = points.reshape(target, len(names), len(keys)).transpose(0, 2, 1).reshape(-1, len(names)).tolist()
        rows = tuple((moment, *key, *row) for moment, key, row in zip(moments, keys * target, values, strict=True))
        widths = released.errors[:target] if window is None else mechanism.errors(1, target, window)
        errors = {name: tuple(np.repeat(widths[:, i], spec.cells).tolist()) for i, name in enumerate(names)}
        types = [_type_of(spec, group.value) for group in spec.query.groups]
        return SeriesAnswer(
            (calendar.unit, *spec.names),
            ("timestamp" if calendar.unit == "hour" else "date", *types, *["number"] * len(names)),  # type: ignore[arg-type]
            rows,
            errors,
            spec.budget,
            (*spec.notes(), *self.table.accounts.people_notes(spec.budget, paid=True)),
            remaining,
            replayed,
            released.receipt,
            name=spec.name or "",
            unit=calendar.unit,
            window=window,
        )


def _product(keys: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return all combinations of the groups' keys, the first group's key varying slowest."""
    result: list[tuple[Any, ...]] = [()]
    for listed in keys:
        result = [(*before, key) for before in result for key in listed]
    return result


def _type_of(spec: SeriesSpec, value: Any) -> str:
    """Return the type of an expression under the card."""
    from dither.tables.compile import expressions

    return str(expressions.compile(value, expressions.lookup(spec.card, {})).type)


def _window(window: object) -> int | None:
    """Return a window as a whole number of periods, or None."""
    return None if window is None else arguments.whole(window, "window")


def named_series(table: dither.Table, name: str) -> Series:
    """Return the series that the card of an open table states under this name.

    >>> import dither as dp
    >>> from dither.tables.card.model import Card
    >>> with dp.open(__import__("pyarrow").table({"n": [1]}), budget=dp.PureDP(1)) as table:
    ...     named_series(table, "daily")
    Traceback (most recent call last):
    dither.InvalidArgument: series: expected a series of the card, got 'daily'. Fix: add [series.daily] to the card.
    """
    known = table.card.series
    if name not in known:
        got = repr(clip(name)) if isinstance(name, str) else type(name).__name__
        fix = closest(name, known) if known and isinstance(name, str) else f"add [series.{clip(str(name))}] to the card"
        raise InvalidArgument("series", "a series of the card", got, fix)
    stated = known[name]
    days = table.over(
        stated.over,  # type: ignore[arg-type]
        column=stated.column,
        horizon=stated.horizon,
        start=stated.start,
        name=name,
        **stated.options,
    )
    if stated.where is not None:
        days = days.where(stated.where)
    if stated.groups:
        days = days.group_by(*stated.groups)
    return days.agg(**{item: _aggregate(text, item) for item, text in stated.aggregates.items()})


def _aggregate(text: str, name: str) -> Aggregate:
    """Return the aggregate that a text like "sum(amount)" names."""
    item = SeriesAggregate.read(text, name)
    if item.kind == "sum":
        assert item.column is not None
        return sum_(item.column)
    return people() if item.kind == "people" else count(item.column)
