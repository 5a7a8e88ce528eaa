"""The numbers that the pictures of a page are drawn from: bars with their errors, what is spent, spending over time.

Templates turn them into SVG. Lengths are in units of the view box of each picture; text stays outside of bars, so that
it is as large on a phone as on a desk. Colors come from the style sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dither.present.bars import MAX_BARS, columns, span
from dither.present.digits import significant
from dither.present.text import number
from dither.tables.answer import Answer, noisy, shown

MAX_CHARTS = 4
BAR_WIDTH = 1000.0
TIMELINE_WIDTH, TIMELINE_HEIGHT = 1000.0, 100.0


@dataclass(frozen=True)
class Bar:
    """One row of a chart: its keys, its value and ± as text, where the bar begins and how long it is, and its error."""

    label: str
    value: str
    begin: float
    length: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Bars:
    """A chart of one noisy column: a bar for each of the first rows, and where zero is."""

    name: str
    zero: float
    bars: tuple[Bar, ...]
    more: int


def bar_charts(answer: Answer) -> list[Bars]:
    """A chart for each of the first noisy columns of numbers.

    >>> from dither.guarantees import PureDP
    >>> answer = Answer(("region", "n"), ("text", "integer"), (("a", 50), ("b", 100)), {"n": (10.0, 10.0)}, PureDP(1))
    >>> chart, = bar_charts(answer)
    >>> [(bar.label, bar.value, round(bar.length)) for bar in chart.bars]
    [('a', '50 ± 10', 454), ('b', '100 ± 10', 909)]
    """
    return [_bars(answer, name) for name in columns(answer)[:MAX_CHARTS]] if answer.rows else []


def _bars(answer: Answer, name: str) -> Bars:
    values, widths = answer[name][:MAX_BARS], answer.error(name)[:MAX_BARS]
    low, high = span(values, widths)

    def x(value: float) -> float:
        return round(BAR_WIDTH * min(max((value - low) / (high - low), 0.0), 1.0), 1)

    bars = []
    for label, value, width in zip(row_labels(answer), values, widths, strict=False):
        if not number(value):
            bars.append(Bar(label, "", x(0.0), 0.0))
            continue
        texts = noisy(value, width)
        left, right = sorted((x(0.0), x(float(value))))
        error = float(width) if width is not None and number(width) else None
        bars.append(
            Bar(
                label,
                " ± ".join(texts) if error is not None else texts[0],
                left,
                round(right - left, 1),
                None if error is None else x(float(value) - error),
                None if error is None else x(float(value) + error),
            )
        )
    return Bars(name, x(0.0), tuple(bars), max(len(answer.rows) - MAX_BARS, 0))


def row_labels(answer: Answer) -> list[str]:
    """What each row is about: its keys. A column of fractions is never a key."""
    places = [
        place
        for place, (name, kind) in enumerate(zip(answer.columns, answer.types, strict=True))
        if name not in answer.errors and kind != "number"
    ]
    if not places:
        return ["all rows"] * len(answer.rows)
    return [", ".join("NULL" if row[i] is None else shown(row[i]) for i in places) for row in answer.rows]


@dataclass(frozen=True)
class Meter:
    """How much of a limit is spent, and how much a question would add, in percent of the limit."""

    spent: float
    now: float
    limit: float
    spent_text: str
    left_text: str
    limit_text: str


def meter(spent: float, limit: float | None, now: float = 0.0) -> Meter | None:
    """A meter of a budget; None where there is no limit in one number.

    >>> meter(0.5, 2.0, 0.5).spent, meter(0.5, 2.0, 0.5).now, meter(1.5, 2.0).left_text
    (25.0, 25.0, '0.5')
    """
    if limit is None or limit <= 0:
        return None
    before = min(100 * spent / limit, 100.0)
    after = min(100 * (spent + now) / limit, 100.0)
    left = significant(max(limit - spent, 0.0))
    return Meter(round(before, 2), round(after - before, 2), limit, significant(spent), left, significant(limit))


@dataclass(frozen=True)
class Timeline:
    """Spending over time as steps: a path, the area below it, dots, the limit, and what stands beside it."""

    path: str
    area: str
    dots: str
    limit: float | None
    top: str
    begin: str
    end: str


def timeline(points: Sequence[tuple[datetime, float]], limit: float | None) -> Timeline | None:
    """What was spent at which time, as steps; None where nothing was spent. Clocks that go back are held still.

    >>> from datetime import datetime
    >>> picture = timeline([(datetime(2026, 1, 1), 0.0), (datetime(2026, 1, 3), 0.5)], 1.0)
    >>> picture.path, picture.limit, picture.top, picture.end
    ('M0.0 100.0H1000.0V50.0', 0.0, '1', '2026-01-03')
    """
    if not points:
        return None
    highest = max([total for _, total in points] + ([limit] if limit is not None else [])) or 1.0
    first = points[0][0].timestamp()
    seconds = max(points[-1][0].timestamp() - first, 1.0)

    def place(at: datetime, total: float) -> tuple[float, float]:
        share = min(max((at.timestamp() - first) / seconds, 0.0), 1.0)
        return round(TIMELINE_WIDTH * share, 1), round(TIMELINE_HEIGHT * (1 - total / highest), 2)

    places = [place(at, total) for at, total in points]
    path = f"M{places[0][0]} {places[0][1]}" + "".join(f"H{x}V{y}" for x, y in places[1:])
    begin, end = (
        f"{at:%Y-%m-%d}" if seconds > 86_400 else f"{at:%Y-%m-%d %H:%M}" for at in (points[0][0], points[-1][0])
    )
    return Timeline(
        path,
        f"{path}V{TIMELINE_HEIGHT}H{places[0][0]}Z",
        "".join(f"M{x} {y}h0" for x, y in places),
        None if limit is None else round(TIMELINE_HEIGHT * (1 - limit / highest), 2),
        significant(highest, 3),
        begin,
        end,
    )
