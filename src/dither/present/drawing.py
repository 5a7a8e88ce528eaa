"""Small line charts and bars as SVG text, for notebooks and pages: no script, no font, no library.

A picture takes its color from where it is shown (``currentColor``), so that it is legible on a light and on a dark
ground, and has a text that says what it shows. Numbers are written with one digit after the point: the same values
give the same text everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dither.present.markup import escaped

_WIDTH, _HEIGHT = 420, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 14, 34
COLORS = ("#2c7fb8", "#d95f02", "#1b9e77", "#a64ca6")
"""Colors that stand out from light and from dark, one for each line."""

Series = tuple[str, Sequence[float], Sequence[float]]
"""A line: its name, and the places and heights of its points."""


def line_chart(lines: Sequence[Series], *, title: str, x_label: str, y_label: str = "") -> str:
    """Lines over one axis, with a legend where there are several.

    >>> picture = line_chart([("a<b", [0, 1, 2], [0, 4, 1])], title="An example", x_label="x")
    >>> picture.startswith("<svg "), picture.count("<path"), "An example" in picture
    (True, 2, True)
    """
    drawn = [(name, *_finite(x, y)) for name, x, y in lines]
    across_all = [value for _, x, _ in drawn for value in x]
    heights = [value for _, _, y in drawn for value in y]
    x_low, x_high = _span(across_all)
    y_low, y_high = _span([*heights, 0.0])
    parts = [_opening(title), *_frame(x_low, x_high, y_low, y_high, x_label, y_label)]
    for i, (name, x, y) in enumerate(drawn):
        color = COLORS[i % len(COLORS)]
        places = [(_place_x(a, x_low, x_high), _place_y(b, y_low, y_high)) for a, b in zip(x, y, strict=True)]
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
        if places:
            parts.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        if len(drawn) > 1:
            height = _TOP + 12 + 15 * i
            parts.append(f'<text x="{_WIDTH - _RIGHT - 4}" y="{height}" text-anchor="end" fill="{color}">')
            parts.append(f"{escaped(name)}</text>")
    return "".join(parts) + "</svg>"


def bar_chart(bars: Sequence[tuple[str, float, float]], *, title: str, most: int = 40) -> str:
    """Bars that lie, one a row: a name, a value and a half-width of its error, which may be 0.

    >>> bar_chart([("north", 41, 6), ("south", 60, 6)], title="Counts").count("<rect")
    2
    """
    shown = bars[:most]
    ends = [0.0, *(value - width for _, value, width in shown), *(value + width for _, value, width in shown)]
    low, high = _span([end for end in ends if math.isfinite(end)])
    height = 22 * len(shown) + 10
    left, width = 130, _WIDTH - 130 - 90
    parts = [_opening(title, height)]

    def x(value: float) -> float:
        return left + width * min(max((value - low) / (high - low), 0.0), 1.0)

    for i, (name, value, error) in enumerate(shown):
        middle = 5 + 22 * i + 11
        first, last = sorted((x(0.0), x(value)))
        parts.append(f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end" fill="currentColor">')
        parts.append(f"{escaped(_short(name))}</text>")
        parts.append(
            f'<rect x="{first:.1f}" y="{middle - 7}" width="{last - first:.1f}" height="14" fill="{COLORS[0]}"/>'
        )
        if error > 0 and math.isfinite(error):
            path = f"M{x(value - error):.1f} {middle}H{x(value + error):.1f}"
            parts.append(f'<path d="{path}" stroke="currentColor" stroke-width="1.5" fill="none"/>')
        parts.append(
            f'<text x="{left + width + 8}" y="{middle + 4}" fill="currentColor">{escaped(f"{value:.4g}")}</text>'
        )
    return "".join(parts) + "</svg>"


def _opening(title: str, height: int = _HEIGHT) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'style="max-width:100%;height:auto" role="img" aria-label="{escaped(title)}" font-family="sans-serif" '
        f'font-size="12"><title>{escaped(title)}</title>'
    )


def _frame(x_low: float, x_high: float, y_low: float, y_high: float, x_label: str, y_label: str) -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = [
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="currentColor" stroke-opacity=".5"/>',
        f'<text x="{(_LEFT + right) / 2:.1f}" y="{_HEIGHT - 4}" text-anchor="middle" fill="currentColor">'
        f"{escaped(x_label)}</text>",
    ]
    if y_label:
        parts.append(f'<text x="{_LEFT + 4}" y="{_TOP - 2}" fill="currentColor">{escaped(y_label)}</text>')
    for value, anchor in ((x_low, "start"), (x_high, "end")):
        place = _place_x(value, x_low, x_high)
        parts.append(
            f'<text x="{place:.1f}" y="{bottom + 14}" text-anchor="{anchor}" fill="currentColor">{value:.3g}</text>'
        )
    for value in (y_low, y_high):
        place = _place_y(value, y_low, y_high)
        parts.append(
            f'<text x="{_LEFT - 4}" y="{place + 4:.1f}" text-anchor="end" fill="currentColor">{value:.2g}</text>'
        )
    return parts


def _place_x(value: float, low: float, high: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / (high - low)


def _place_y(value: float, low: float, high: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * (value - low) / (high - low)


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return (low, high) if high > low else (low, low + 1.0)


def _finite(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    pairs = [(float(a), float(b)) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _short(text: str) -> str:
    return text if len(text) <= 18 else text[:17] + "…"
