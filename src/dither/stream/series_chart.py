"""A line for each group with a band of its errors, as SVG: text, so it is the same everywhere and needs no library."""

from __future__ import annotations

import html
import math
from typing import Any

from dither.present.digits import significant
from dither.stream.series_answer import MAX_LINES, SeriesAnswer

_WIDTH, _HEIGHT, _LEFT, _TOP, _SIDE = 430, 200, 78, 30, 22
_COLORS = (
    "#4c78a8", "#e45756", "#3f8a37", "#9a5f8a", "#c2600a", "#35807b", "#9d755d", "#79706e",
    "#1b3a5c", "#8c1c1b", "#8a7a00", "#d6407f",
)  # fmt: skip
_COLUMNS, _LINE = 3, 17
"""How many names of groups stand beside each other above the lines, and how high each is: a phone is narrow."""


def line_chart(answer: SeriesAnswer, column: str) -> str:
    """The points of one aggregate over time.

    >>> from dither.guarantees import PureDP
    >>> from datetime import date
    >>> rows = ((date(2026, 1, 1), 4.0), (date(2026, 1, 2), 7.0))
    >>> answer = SeriesAnswer(("day", "n<"), ("date", "number"), rows, {"n<": (1.0, 1.5)}, PureDP(1), unit="day")
    >>> picture = line_chart(answer, "n<")
    >>> picture.startswith("<svg "), picture.count("<polyline"), picture.count("<polygon"), "n&lt;" in picture
    (True, 1, 1, True)
    """
    every = list(answer.lines(column).items())
    lines = every[:MAX_LINES]
    ends = [end for _, points in lines for _, v, e in points for end in (v - e, v + e) if math.isfinite(end)]
    low, high = min([*ends, 0.0]), max([*ends, 0.0])
    high = high if high > low else low + 1.0
    count = max((len(points) for _, points in lines), default=0)
    title = f"{answer.describe(column)}, with its error (95 %), {answer.cost}"
    top = _TOP + (_LINE * math.ceil(len(lines) / _COLUMNS) if answer.groups else 0)
    height, width = top + _HEIGHT + 30, _LEFT + _WIDTH + _SIDE
    heading = answer.describe(column)
    if len(every) > MAX_LINES:
        heading += f", the first {MAX_LINES} of {len(every):,} groups"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" style="width:100%;max-width:680px;'
        f'height:auto" role="img" aria-label="{html.escape(title)}" font-family="sans-serif" font-size="13">',
        f"<title>{html.escape(title)}</title>",
        f'<text x="{_LEFT}" y="16" font-weight="bold" fill="#1a1a1a">{html.escape(heading)}</text>',
    ]

    def x(place: int) -> str:
        return _plain(_LEFT + _WIDTH * (place / (count - 1) if count > 1 else 0.5))

    def y(value: float) -> str:
        return _plain(top + _HEIGHT * (1 - (min(max(value, low), high) - low) / (high - low)))

    for tick in _ticks(low, high):
        parts.append(f'<path d="M{_LEFT} {y(tick)}H{_LEFT + _WIDTH}" stroke="#dddddd" stroke-width="1"/>')
        label = html.escape(significant(tick, 3))
        parts.append(f'<text x="{_LEFT - 8}" y="{y(tick)}" dy="4" text-anchor="end" fill="#1a1a1a">{label}</text>')
    for i, (label, points) in enumerate(lines):
        color = _COLORS[i % len(_COLORS)]
        upper = " ".join(f"{x(place)},{y(value + error)}" for place, (_, value, error) in enumerate(points))
        lower = [f"{x(place)},{y(value - error)}" for place, (_, value, error) in enumerate(points)]
        parts.append(f'<polygon points="{upper} {" ".join(reversed(lower))}" fill="{color}" fill-opacity="0.22"/>')
        middle = " ".join(f"{x(place)},{y(value)}" for place, (_, value, _) in enumerate(points))
        parts.append(f'<polyline points="{middle}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        for _, value, error in points if len(points) == 1 else ():  # a line of one point cannot be seen
            beside = _plain(_LEFT + _WIDTH * (i + 1) / (len(lines) + 1))
            parts.append(f'<path d="M{beside} {y(value - error)}V{y(value + error)}" stroke="{color}"/>')
            parts.append(f'<circle cx="{beside}" cy="{y(value)}" r="3" fill="{color}"/>')
        if answer.groups:
            text = html.escape(label if len(label) <= 18 else label[:17] + "…")
            left, line = _LEFT + i % _COLUMNS * _WIDTH // _COLUMNS, _TOP + 4 + _LINE * (i // _COLUMNS)
            parts.append(f'<text x="{left}" y="{line}" fill="{color}">{text}</text>')
    first = lines[0][1] if lines else []
    for place, anchor in ((0, "start"), (count - 1, "end")) if count > 1 else ((0, "middle"),):
        if 0 <= place < len(first):
            text = html.escape(_moment(first[place][0]))
            parts.append(
                f'<text x="{x(place)}" y="{top + _HEIGHT + 20}" text-anchor="{anchor}" fill="#1a1a1a">{text}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends, 0 among them where it lies between them."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    while (high - low) / step > 6:
        step *= 2 if str(step).lstrip("0.").startswith(("1", "5")) else 2.5
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _moment(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _plain(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
