"""Bars of one noisy column with their errors, as SVG: text, so it is the same everywhere and needs no library."""

from __future__ import annotations

import math
from typing import Any

from dither.errors import InvalidArgument
from dither.present.markup import escaped
from dither.present.text import number
from dither.tables.answer import Answer, noisy, shown

MAX_BARS = 60
_LINE, _LABEL, _WIDTH = 24, 190, 420
_MIN_SIDE, _SIGN = 150, 7.5
"""The room for the numbers on the right: at least so wide, and so much for each sign."""
_MAX_LABEL = 26


def chart(answer: Answer, column: str | None = None) -> str:
    """An SVG picture of one noisy column, by default the first that holds numbers: a bar and its 95 % error a row.

    >>> from dither.guarantees import PureDP
    >>> answer = Answer(("region", "n"), ("text", "integer"), (("a<b", 4), ("c", 6)), {"n": (1.0, 1.0)}, PureDP(1))
    >>> picture = chart(answer)
    >>> picture.startswith("<svg "), picture.count("<rect"), "a&lt;b" in picture
    (True, 2, True)
    """
    drawable = columns(answer)
    name = column if column is not None else next(iter(drawable), None)
    if name is None or name not in drawable:
        known = ", ".join(drawable) or "none: this answer has no noisy numbers"
        raise InvalidArgument("column", f"one of {known}", str(name), "name a noisy column of numbers")
    values, widths = answer[name][:MAX_BARS], answer.error(name)[:MAX_BARS]
    lines = list(zip(labels(answer)[:MAX_BARS], values, widths, strict=True))
    low, high = span(values, widths)
    height = _LINE * len(lines) + 34
    numbers = [_number_text(value, width) for _, value, width in lines]
    whole_width = _LABEL + _WIDTH + max(_MIN_SIDE, math.ceil(20 + _SIGN * max(map(len, numbers), default=0)))
    label = f"{name}, with its error (95 %), {answer.cost}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole_width} {height}" '
        f'width="{whole_width}" height="{height}" role="img" aria-label="{escaped(label)}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{escaped(label)}</title>",
        f'<text x="{_LABEL}" y="16" font-weight="bold" fill="#1a1a1a">{escaped(_short(name))}</text>',
    ]

    def x(value: float) -> float:
        return _LABEL + _WIDTH * min(max((value - low) / (high - low), 0.0), 1.0)

    for i, (label, value, width) in enumerate(lines):
        top = 26 + _LINE * i
        middle = top + _LINE / 2 - 2
        parts.append(f'<text x="{_LABEL - 8}" y="{_plain(middle + 4)}" text-anchor="end" fill="#1a1a1a">{label}</text>')
        if not number(value):
            continue
        left, right = sorted((x(0.0), x(float(value))))
        parts.append(
            f'<rect x="{_plain(left)}" y="{top}" width="{_plain(right - left)}" height="{_LINE - 6}" fill="#8fb3d9"/>'
        )
        if number(width):
            limits = float(value) - float(width or 0), float(value) + float(width or 0)
            begin, end = map(x, limits)
            # an end that is beyond the picture has no cap: the interval goes on
            caps = [x(limit) for limit in limits if low <= limit <= high]
            ends = "".join(f"M{_plain(at)} {_plain(middle - 5)}V{_plain(middle + 5)}" for at in caps)
            path = f"M{_plain(begin)} {_plain(middle)}H{_plain(end)}{ends}"
            parts.append(f'<path d="{path}" stroke="#1a1a1a" stroke-width="1.5" fill="none"/>')
        parts.append(
            f'<text x="{_LABEL + _WIDTH + 10}" y="{_plain(middle + 4)}" fill="#1a1a1a">{escaped(numbers[i])}</text>'
        )
    zero, foot = _plain(x(0.0)), 26 + _LINE * len(lines)
    parts.append(f'<path d="M{zero} 22V{foot}" stroke="#1a1a1a" stroke-width="1"/></svg>')
    return "\n".join(parts) + "\n"


def _number_text(value: Any, width: float | None) -> str:
    """A value and its ± as the chart has them; nothing for what is not drawn."""
    if not number(value):
        return ""
    return " ± ".join(noisy(value, width)) if number(width) else noisy(value, None)[0]


def columns(answer: Answer) -> list[str]:
    """The noisy columns that hold numbers."""
    return [
        name
        for name in answer.columns
        if name in answer.errors
        and any(number(v) for v in answer[name])
        and not any(isinstance(v, (list, str)) for v in answer[name])
    ]


def labels(answer: Answer) -> list[str]:
    """What each row is about, escaped: its keys. A column of fractions is never a key."""
    keys = [
        place
        for place, (name, kind) in enumerate(zip(answer.columns, answer.types, strict=True))
        if name not in answer.errors and kind != "number"
    ]
    return [
        escaped(_short(", ".join(_key(row[place]) for place in keys))) if keys else "all rows" for row in answer.rows
    ]


def _key(value: Any) -> str:
    return "NULL" if value is None else shown(value)


def _short(text: str) -> str:
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…"


def span(values: list[Any], widths: list[float | None]) -> tuple[float, float]:
    """From the lowest to the highest end of a bar or its error, 0 included. One wild error does not shrink the bars to
    nothing: of an error that is more than twice the largest value only so much is drawn.

    >>> span([12, 40], [20.0, 20.0])
    (-8.0, 60.0)
    """
    drawn = [float(value) for value in values if number(value)]
    largest = 2 * max((abs(value) for value in drawn), default=0.0)
    ends = [0.0]
    for value, width in zip(values, widths, strict=True):
        if number(value):
            half_width = min(float(width), largest) if number(width) and width is not None else 0.0
            ends += [float(value), float(value) - half_width, float(value) + half_width]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (0.0, 1.0)


def _plain(value: float) -> str:
    return f"{value:.1f}"
