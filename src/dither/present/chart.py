"""A chart as a value: marks over two axes, with intervals and labels.

Nothing is drawn here. :func:`dither.present.drawing.svg` and :func:`dither.present.drawing.draw` render the same value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from dither.present.text import significant

Style = Literal["bars", "line", "dashed", "steps", "points", "area", "reference"]
"""The style of a mark: an area is a band without a line in its middle, a reference a gray line for comparison."""

MAX_BARS = 60
"""The default limit on the number of bars in a chart."""


@dataclass(frozen=True)
class Mark:
    """One series of numbers in a chart, with the half-widths of their intervals.

    Without ``x`` the numbers belong to the categories of the chart. ``texts`` are written beside bars. ``color`` is an
    index into the palette; None gives each mark its own.

    >>> Mark((41, None), errors=(6.0, None)).points()
    [Point(x=0, y=41.0, error=6.0)]
    """

    y: Sequence[float | None]
    x: Sequence[Any] = ()
    name: str = ""
    style: Style = "line"
    errors: Sequence[float | None] = ()
    texts: Sequence[str] = ()
    color: int | None = None

    def points(self) -> list[Point]:
        """Return the points with finite coordinates; the others are not drawn."""
        errors = self.errors or [None] * len(self.y)
        return [
            Point(x, float(y), float(error) if error is not None and is_drawable(error) else 0.0)
            for x, y, error in zip(self.x or range(len(self.y)), self.y, errors, strict=True)
            if y is not None and is_drawable(y) and is_drawable(position(x))
        ]


class Point(NamedTuple):
    """A point and the half-width of its interval; 0 for a point without an interval."""

    x: Any
    y: float
    error: float


@dataclass(frozen=True)
class Axis:
    """An axis of a chart: its label, its range (None: that of the points), its scale, and its ticks as pairs of a
    position and a text (empty: chosen automatically)."""

    label: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Chart:
    """Marks over two axes. ``title`` is the full description, ``heading`` the short text above the picture.

    A chart with ``categories`` has a row for each of them; ``note`` says what was left out.

    >>> Chart("Counts", (Mark((41, 60), style="bars"),), categories=("north", "south")).span()
    (0.0, 60.0)
    """

    title: str
    marks: tuple[Mark, ...]
    x: Axis = Axis()
    y: Axis = Axis()
    categories: tuple[str, ...] = ()
    heading: str = ""
    note: str = ""

    def span(self) -> tuple[float, float]:
        """Return the range of the value axis: it includes 0 and every value with its interval.

        An interval counts with at most twice the largest value, so that one huge interval does not shrink all others.
        """
        points = [point for mark in self.marks for point in mark.points()]
        if self.y.log:
            heights = [point.y for point in points if point.y > 0] or [1.0, 10.0]
            return min(heights), max(heights)
        widest = 2 * max((abs(point.y) for point in points), default=0.0)
        ends = [0.0] + [point.y + sign * min(point.error, widest) for point in points for sign in (-1, 1)]
        low = min(ends) if self.y.low is None else self.y.low
        high = max(ends) if self.y.high is None else self.y.high
        return (low, high) if high > low else (low, low + 1.0)


def bars(
    rows: Iterable[tuple[str, Any, float | None]],
    *,
    title: str,
    texts: Sequence[str] | None = None,
    most: int | None = MAX_BARS,
    **more: Any,
) -> Chart:
    """Build a bar chart from rows of a label, a value and the half-width of its interval.

    ``texts`` are written beside the bars (None: the values), and at most ``most`` rows are drawn (None: all).

    >>> bars([("north", 41, 6.0), ("south", 60, 6.0)], title="Counts").categories
    ('north', 'south')
    """
    every = list(rows)
    labels, values, errors = zip(*every[:most], strict=True) if every else ((), (), ())
    if texts is None:
        texts = [significant(value, 4) if is_drawable(value) else "" for value in values]
    mark = Mark(values, style="bars", errors=errors, texts=tuple(texts[:most]))
    note = f"The first {most} of {len(every):,} rows are drawn." if len(labels) < len(every) else ""
    return Chart(title, (mark,), categories=tuple(labels), note=note, **more)


def lines(
    series: Iterable[tuple[str, Sequence[float], Sequence[float]]], *, title: str, x_label: str, y_label: str = ""
) -> Chart:
    """Build a chart of named lines, each given by the x and y coordinates of its points.

    >>> [mark.name for mark in lines([("a", [0, 1], [2, 3])], title="An example", x_label="x").marks]
    ['a']
    """
    marks = tuple(Mark(tuple(y), tuple(x), name) for name, x, y in series)
    return Chart(title, marks, Axis(x_label), Axis(y_label))


def spending(
    points: Sequence[tuple[datetime, float]], limit: float | None, *, title: str, unit: str, limit_name: str = "limit"
) -> Chart:
    """Build a step chart of the total spending over time, with its limit (None: no limit).

    A time before that of an earlier point, from a clock that was set back, is drawn at that of the earlier point.

    >>> chart = spending([(datetime(2026, 1, 1), 0.0), (datetime(2026, 1, 3), 0.5)], 1.0, title="Spent", unit="ε")
    >>> [mark.name for mark in chart.marks], chart.span()
    (['spent', 'limit'], (0.0, 1.0))
    """
    times: list[datetime] = []
    for at, _ in points:
        times.append(max(at, times[-1]) if times else at)
    marks = [Mark(tuple(total for _, total in points), tuple(times), "spent", "steps")]
    if limit is not None:
        marks.append(Mark((limit, limit), (times[0], times[-1]) if times else (0, 1), limit_name, "reference"))
    return Chart(title, tuple(marks), Axis("time (UTC)"), Axis(unit, low=0.0))


def is_drawable(value: Any) -> bool:
    """Return whether a value is a finite number within the range of drawings, and not a boolean.

    >>> is_drawable(3), is_drawable(float("inf")), is_drawable(None), is_drawable(True)
    (True, False, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300


def position(x: Any) -> float:
    """Return the coordinate of ``x``, a number, a date or a time, on an axis; times are counted in days.

    >>> position(date(2026, 1, 2)) - position(datetime(2026, 1, 1, 12))
    0.5
    """
    if isinstance(x, datetime):
        return x.toordinal() + (x.hour * 3600 + x.minute * 60 + x.second) / 86_400
    return float(x.toordinal() if isinstance(x, date) else x)


def ticks(low: float, high: float, log: bool = False) -> list[float]:
    """Return round numbers from ``low`` to ``high``, 0 among them if it is included, as ticks of an axis.

    With ``log`` these are the powers of ten. Otherwise the step is 1, 2 or 5 times a power of ten, the first that gives
    at most about seven ticks.

    >>> ticks(0.0, 60.0), ticks(1, 1000, log=True)
    ([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0], [1.0, 10.0, 100.0, 1000.0])
    """
    if log:
        return [10.0**i for i in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    step, grow = 10.0 ** math.floor(math.log10((high - low) / 2)), (2.0, 2.5, 2.0)
    for i in range(9):
        if (high - low) / step <= 6:
            break
        step *= grow[i % 3]
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def time_texts(first: Any, last: Any) -> tuple[str, str]:
    """Format the first and last time of an axis, with hours if it is shorter than two days.

    >>> time_texts(date(2026, 1, 1), date(2026, 3, 1))
    ('2026-01-01', '2026-03-01')
    """
    hours = isinstance(first, datetime) and position(last) - position(first) < 2
    form = "%Y-%m-%d %H:%M" if hours else "%Y-%m-%d"
    return format(first, form), format(last, form)
