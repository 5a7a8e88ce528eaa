"""Treemaps: regions as boxes whose areas are their counts and whose colors are their relative errors."""

from __future__ import annotations

from collections.abc import Sequence

from dither.present.drawing import frame
from dither.present.text import escaped, percent

Box = tuple[float, float, float, float]
"""Left, top, width and height."""

CLASSES = (
    (0.01, "up to 1 %", "#e6f0fa"),
    (0.03, "up to 3 %", "#a9cbe8"),
    (0.10, "up to 10 %", "#f7e7a3"),
    (0.30, "up to 30 %", "#f2b366"),
    (float("inf"), "more", "#dd7d63"),
)
"""Relative errors: the highest one of each class, how it is called, and its color."""
_WIDTH, _HEIGHT, _LEGEND = 760, 330, 26
_SIGN, _LINE = 6.6, 15
"""The width of a sign and the height of a line of a label."""


def color_of(relative_error: float) -> str:
    """Return the color for a relative error.

    >>> color_of(0.02), color_of(2.0)
    ('#a9cbe8', '#dd7d63')
    """
    return next(color for highest, _, color in CLASSES if relative_error <= highest)


def layout(sizes: Sequence[float], box: Box) -> list[Box]:
    """Divide a box into nearly square boxes with these areas (Bruls, Huizing and van Wijk 2000).

    The sizes are positive and in decreasing order.

    >>> layout([2.0, 1.0, 1.0], (0.0, 0.0, 4.0, 2.0))
    [(0.0, 0.0, 2.0, 2.0), (2.0, 0.0, 2.0, 1.0), (2.0, 1.0, 2.0, 1.0)]
    """
    left, top, width, height = box
    result: list[Box] = []
    start, remaining = 0, float(sum(sizes))
    while start < len(sizes):
        side = min(width, height)
        scale = width * height / remaining if remaining > 0 else 0.0
        stop, strip = start + 1, sizes[start] * scale
        worst = _flatness(sizes[start] * scale, sizes[start] * scale, strip, side)
        while stop < len(sizes):
            longer = strip + sizes[stop] * scale
            flatness = _flatness(sizes[start] * scale, sizes[stop] * scale, longer, side)
            if flatness > worst:
                break
            stop, strip, worst = stop + 1, longer, flatness
        thickness = strip / side if side > 0 else 0.0
        along = 0.0
        for size in sizes[start:stop]:
            length = size * scale / thickness if thickness > 0 else 0.0
            place = (
                (left, top + along, thickness, length) if width >= height else (left + along, top, length, thickness)
            )
            result.append(place)
            along += length
        if width >= height:
            left, width = left + thickness, max(width - thickness, 0.0)
        else:
            top, height = top + thickness, max(height - thickness, 0.0)
        remaining -= sum(sizes[start:stop])
        start = stop
    return result


def _flatness(largest: float, smallest: float, strip: float, side: float) -> float:
    """Return the aspect ratio of the flattest box in a strip."""
    if min(smallest, strip, side) <= 0:
        return float("inf")
    return max(side * side * largest / strip**2, strip**2 / (side * side * smallest))


def treemap(labels: Sequence[str], sizes: Sequence[float], relative_errors: Sequence[float], title: str) -> str:
    """Render regions of positive size as an SVG treemap, colored by relative error, with a legend.

    ``labels``, ``sizes`` and ``relative_errors`` have one entry per region; areas are proportional to sizes, and
    regions of no or negative size are left out. A label is written where it fits into its box. ``title`` is read by
    screen readers.

    >>> picture = treemap(["north", "a<b"], [30.0, 10.0], [0.02, 0.2], "regions")
    >>> picture.count("<title>"), "a&lt;b" in picture
    (3, True)
    """
    order = sorted((i for i, size in enumerate(sizes) if size > 0), key=lambda i: -sizes[i])
    boxes = layout([float(sizes[i]) for i in order], (0.0, 0.0, float(_WIDTH), float(_HEIGHT)))
    parts = []
    for i, (left, top, width, tall) in zip(order, boxes, strict=True):
        what = f"{labels[i]}: about {sizes[i]:,.0f}, ± {percent(relative_errors[i])}"
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{tall:.1f}" stroke="#ffffff" '
            f'fill="{color_of(relative_errors[i])}"><title>{escaped(what)}</title></rect>'
        )
        for line, text in enumerate((labels[i], f"± {percent(relative_errors[i])}")):
            if _SIGN * len(text) + 8 <= width and _LINE * (line + 1) + 4 <= tall:
                parts.append(
                    f'<text x="{left + 5:.1f}" y="{top + _LINE * (line + 1):.1f}" fill="#1a1a1a">{escaped(text)}</text>'
                )
    return frame(title, [*parts, *_legend()], _WIDTH, _HEIGHT + _LEGEND, scaled=True)


def _legend() -> list[str]:
    """Return the elements of the legend of error classes."""
    parts, left = [f'<text x="0" y="{_HEIGHT + 20}" fill="#1a1a1a">relative error:</text>'], 110
    for _, name, color in CLASSES:
        parts.append(
            f'<rect x="{left}" y="{_HEIGHT + 9}" width="14" height="14" fill="{color}"/>'
            f'<text x="{left + 19}" y="{_HEIGHT + 20}" fill="#1a1a1a">{name}</text>'
        )
        left += 105
    return parts
