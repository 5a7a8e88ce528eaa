"""The periods of a series: hours, days, weeks or months, from a public start on, numbered from 1."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.tables.query.operations.dates import start_of_period

Unit = Literal["hour", "day", "week", "month"]
UNITS: tuple[Unit, ...] = ("hour", "day", "week", "month")
_MOST = 1 << 20


@dataclass(frozen=True)
class Calendar:
    """So many periods from a start on. Period 1 begins at ``start``, which is the first moment of a period.

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
        first = start_of_period(self.unit, start)
        first = first.date() if self.unit != "hour" and isinstance(first, datetime) else first
        fix = f"write start={first.isoformat()!r}"
        return InvalidArgument("start", f"the first moment of a {self.unit}", "another", fix)

    def begin(self, step: int) -> date:
        """The first moment of a period; of the one after the last, the end of the series."""
        if self.unit == "month":
            months = self.start.year * 12 + self.start.month - 1 + step - 1
            if months // 12 > date.max.year:
                raise OverflowError
            return date(months // 12, months % 12 + 1, 1)
        length = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}[self.unit]
        return self.start + (step - 1) * length

    def step(self, moment: object) -> int:
        """The number of the period that holds a moment; refused where the series has none."""
        read = read_moment(moment, "through")
        place = self._place(read)
        if not 1 <= place <= self.horizon:
            expected = f"from {self.label(1)} to {self.label(self.horizon)}, the periods of this series"
            fix = "name one of them; a longer series is another one, at its own cost"
            raise InvalidArgument("through", expected, "another", fix)
        return place

    def _place(self, moment: date) -> int:
        if self.unit == "hour":
            value = moment if isinstance(moment, datetime) else datetime.combine(moment, time.max)
            assert isinstance(self.start, datetime)
            return (value - self.start) // timedelta(hours=1) + 1
        day = moment.date() if isinstance(moment, datetime) else moment
        if self.unit == "month":
            return (day.year - self.start.year) * 12 + day.month - self.start.month + 1
        return (day - self.start).days // (7 if self.unit == "week" else 1) + 1

    def finished(self, now: datetime | None = None) -> int:
        """How many periods have ended by now, by the clock in UTC; at most the horizon."""
        moment = datetime.now(UTC).replace(tzinfo=None) if now is None else now
        return max(0, min(self.horizon, self._place(moment) - 1))

    def label(self, step: int) -> str:
        """The first moment of a period, as text."""
        return self.begin(step).isoformat()


def read_moment(value: object, name: str) -> date:
    """A date or a timestamp without a zone, or the text of one in ISO 8601.

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
            raise InvalidArgument(name, "a date, as 2026-01-31", "another text", fix)
        value = result
    if not isinstance(value, date):
        raise WrongType(name, "a date", type(value).__name__, fix)
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise InvalidArgument(name, "a timestamp without a zone, which is UTC", "one with a zone", fix)
    return value
