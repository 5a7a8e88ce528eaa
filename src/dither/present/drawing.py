"""Charts as pictures: :func:`svg` needs no script, no font and no library, :func:`draw` uses matplotlib axes.

The SVG of a chart is always the same text.

Places across are percentages and texts have a fixed size, so that a chart is as wide as its page and as legible on a
phone as on a desk. Colors of text and lines are ``currentColor``: a picture is legible on a light and on a dark ground.
A style sheet may color marks by their classes. A nested picture without an aspect ratio holds what has no percentages,
such as paths; its strokes do not scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from dither.extras import Axes, need
from dither.present.chart import Axis, Chart, Mark, position, ticks, time_texts
from dither.present.text import escaped, printable, shortened, significant

COLORS = (
    "#2c7fb8", "#d95f02", "#1b9e77", "#a64ca6", "#e45756", "#8a7a00", "#5b6bd6", "#9d755d", "#35807b", "#d6407f",
    "#6b8e23", "#7f7f7f",
)  # fmt: skip
"""Colors that stand out from light and from dark, one for each mark."""

_PHONE = 292
"""The narrowest page width, in pixels, for which texts are arranged: that of a phone."""
_CHARACTER = 7.2
"""The width of a character in pixels."""
_MAX_LABEL, _MAX_NAME = 26, 36
"""The most characters in the label of a row, and in a name of the legend."""
_ROW, _STACKED_ROW = 24, 40
_INNER = 1000
"""The width of a nested picture in its own units."""


def svg(chart: Chart, *, width: int = 680, height: int = 200, style: str = "") -> str:
    """Render a chart as SVG: a row for each category, or a plane that is ``height`` pixels high.

    It is ``width`` pixels wide, and narrower where a style sheet limits it; ``style`` is a CSS declaration for a
    picture outside of such a page. Texts are cut and arranged for the width of a phone, since the same picture is shown
    there.

    >>> from dither.present.chart import bars
    >>> picture = svg(bars([("a<b", 41, 6.0), ("south", 60, 6.0)], title="Counts"))
    >>> picture.startswith("<svg "), picture.count("<rect"), "a&lt;b" in picture
    (True, 2, True)
    """
    body, top, phone = [], 4, min(width, _PHONE)
    if chart.heading:
        heading = escaped(shortened(chart.heading, phone // 8))
        body, top = [f'<text y="15" font-weight="bold" font-size="13" fill="currentColor">{heading}</text>'], 24
    drawn, bottom = _rows(chart, top, phone) if chart.categories else _plane(chart, top, phone, height)
    body += drawn
    if chart.note:
        bottom += 18
        body.append(_text(0, bottom - 4, chart.note))
    return frame(chart.title, body, width, bottom, style=style)


def terminal(chart: Chart, width: int = 100) -> str:
    """Render a chart of categories as text of ``width`` characters: a row for each category.

    A bar is solid up to the lower end of its interval and pale up to the upper one.

    >>> from dither.present.chart import bars
    >>> print(terminal(bars([("north", 41, 6.0), ("south", 60, 6.0)], title="Counts"), 30))
    Counts
      north  █████████▒▒▒       41
      south  ██████████████▒▒▒  60
    """
    labels = [shortened(label, _MAX_LABEL) for label in chart.categories]
    texts = next((mark.texts for mark in chart.marks if mark.texts), [""] * len(labels))
    left, right = (max(map(len, column), default=0) for column in (labels, texts))
    room = max(width - left - right - 6, 10)
    scale = _Scale(*chart.span())
    drawn = {}
    for mark in chart.marks:
        for i, y, error in mark.points():
            solid, end = (round(room * scale.share(at)) for at in (max(y - error, 0.0), max(y + error, 0.0)))
            drawn[i] = "█" * solid + "▒" * (end - solid)
    rows = [
        f"  {printable(label):<{left}}  {drawn.get(i, ''):<{room}}  {text:>{right}}".rstrip()
        for i, (label, text) in enumerate(zip(labels, texts, strict=True))
    ]
    return "\n".join([printable(chart.title), *rows, *([f"  {printable(chart.note)}"] if chart.note else [])])


def frame(title: str, body: Sequence[str], width: int, height: int, *, scaled: bool = False, style: str = "") -> str:
    """Wrap the elements of a picture in an SVG element with a title for screen readers.

    ``body`` are the elements, ``width`` and ``height`` its size in pixels. A ``scaled`` picture grows and shrinks as a
    whole, others keep the size of their texts. ``style`` is a CSS declaration, empty for none.
    """
    box = f' viewBox="0 0 {width} {height}"' if scaled else ""
    inline = f' style="{style}"' if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{"scaled" if scaled else "chart"}" width="{width}" '
        f'height="{height}"{box}{inline} role="img" aria-label="{escaped(title)}" font-family="system-ui, sans-serif" '
        f'font-size="12"><title>{escaped(title)}</title>{"".join(body)}</svg>'
    )


class _Scale(NamedTuple):
    """Maps the values of an axis to shares of its length."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value between both ends, from 0 to 1; values beyond are moved to the end."""
        low, high, at = (math.log10(max(v, 1e-300)) if self.log else v for v in (self.low, self.high, value))
        return min(max((at - low) / (high - low), 0.0), 1.0) if high > low else 0.5


def _rows(chart: Chart, top: int, phone: int) -> tuple[list[str], int]:
    """Draw a chart of categories, a row for each: label, bars or points with intervals, and number.

    ``top`` is the vertical position of the first row in pixels, and ``phone`` the smallest width in pixels, for which
    texts are arranged. Horizontal positions are shares of the width. Return the SVG elements, and the vertical position
    at which they end.
    """
    scale = _Scale(*chart.span())
    labels = [shortened(label, _MAX_LABEL) for label in chart.categories]
    texts = next((mark.texts for mark in chart.marks if mark.texts), [""] * len(labels))
    left, right = ((_CHARACTER * max(map(len, column)) + 10) / phone for column in (labels, texts))
    stacked = left + right > 0.64  # texts stand above the bars where they would leave too little room beside them
    left, right, row = (0.0, 0.0, _STACKED_ROW) if stacked else (left, right, _ROW)

    def x(value: float) -> float:
        """Return the horizontal position of a value, as a share of the width."""
        return left + (1 - left - right) * scale.share(value)

    parts = []
    for i, (label, text) in enumerate(zip(labels, texts, strict=True)):
        base = top + row * i + (13 if stacked else 16)
        parts.append(_text(0, base, label) if stacked else _text(left, base, label, "end", -8))
        if text:
            parts.append(_text(1, base, text, "end") if stacked else _text(1 - right, base, text, dx=8))
    for number, mark in enumerate(chart.marks):
        color = _color(mark, number)
        for i, y, error in mark.points():
            middle = top + row * i + (26 if stacked else 12)
            if mark.style == "bars":
                begin, end = sorted((x(0.0), x(y)))
                parts.append(
                    f'<rect class="bar" x="{_percent(begin)}" y="{middle - 7}" width="{_percent(end - begin)}" '
                    f'height="14" fill="{color}" fill-opacity="0.55"/>'
                )
            else:
                parts.append(f'<circle class="point" cx="{_percent(x(y))}" cy="{middle}" r="4" fill="{color}"/>')
            if error:
                ends = y - error, y + error
                parts.append(_line(x(ends[0]), middle, x(ends[1]), middle))
                # an end beyond the picture has no cap: the interval goes on
                caps = [x(end) for end in ends if scale.low <= end <= scale.high]
                parts += [_line(at, middle - 5, at, middle + 5) for at in caps]
    foot = top + row * len(labels)
    return [*parts, _line(x(0.0), top, x(0.0), foot, "zero", 1)], foot + 4


def _plane(chart: Chart, top: int, phone: int, height: int) -> tuple[list[str], int]:
    """Draw the marks of a chart over two axes, with a legend if there are several.

    ``top`` is the vertical position of the drawing in pixels, ``phone`` the smallest width in pixels, for which texts
    are arranged, and ``height`` that of the plane between the axes. The plane is a nested SVG, ``_INNER`` units wide,
    which is stretched to the width beside the labels of the axis. Return the SVG elements, and the vertical position at
    which they end.
    """
    points = [mark.points() for mark in chart.marks]
    y_scale = _Scale(*chart.span(), chart.y.log)
    x_scale, places = _x_scale([point.x for group in points for point in group], chart.x)
    levels = chart.y.ticks or [(at, significant(at, 3)) for at in ticks(*y_scale)]
    left = (_CHARACTER * max((len(text) for _, text in levels), default=0) + 10) / phone
    wide = 0.98 - left
    parts, top = _legend(chart, top, phone)
    if chart.y.label:
        parts.append(_text(left, top + 11, chart.y.label))
        top += 22

    def y(value: float) -> float:
        """Return the vertical position of a value, in pixels from the top of the plane."""
        return height * (1 - y_scale.share(value))

    grid = "".join(f"M0 {y(at):.1f}H{_INNER}" for at, _ in levels)
    inner = [_path("grid", grid, "currentColor", ' stroke-opacity="0.18"', 1)]
    for number, (mark, group) in enumerate(zip(chart.marks, points, strict=True)):
        xs = [_INNER * x_scale.share(position(point.x)) for point in group]
        if x_scale.low == x_scale.high:  # all points have one x: draw the marks side by side
            xs = [_INNER * (number + 1) / (len(chart.marks) + 1) for _ in group]
        bar = 0.8 * _INNER / max(x_scale.high - x_scale.low, 1)
        drawn = [_PlanePoint(x, y(p.y), y(p.y - p.error), y(p.y + p.error)) for x, p in zip(xs, group, strict=True)]
        inner += _drawn(mark, _color(mark, number), drawn, y(0.0), bar)
    parts.append(
        f'<svg x="{_percent(left)}" y="{top}" width="{_percent(wide)}" height="{height}" '
        f'viewBox="0 0 {_INNER} {height}" preserveAspectRatio="none" overflow="visible">{"".join(inner)}</svg>'
    )
    parts += [_text(left, top + y(at) + 4, text, "end", -6) for at, text in levels]
    foot = top + height + 16
    for at, text in places:
        share = x_scale.share(at)
        parts.append(_text(left + wide * share, foot, text, _anchor(share)))
    if chart.x.label:
        foot += 17
        parts.append(_text(left + wide / 2, foot, chart.x.label, "middle"))
    return parts, foot + 6


def _x_scale(places: Sequence[Any], axis: Axis) -> tuple[_Scale, Sequence[tuple[float, str]]]:
    """Return the scale of the horizontal axis and its ticks, as (position, text).

    ``places`` are the horizontal values of all points. Ticks are those of the axis if it has some, otherwise round
    numbers or, for dates, the first and the last.
    """
    ordered = sorted(places, key=position) or [0.0, 1.0]
    low = position(ordered[0]) if axis.low is None else axis.low
    high = position(ordered[-1]) if axis.high is None else axis.high
    scale = _Scale(low, high, axis.log)
    if axis.ticks:
        return scale, axis.ticks
    if isinstance(ordered[0], date):
        return scale, [*dict.fromkeys(zip((low, high), time_texts(ordered[0], ordered[-1]), strict=True))]
    return scale, [(at, significant(at, 3)) for at in (ticks(*scale) if high > low else [low])]


def _legend(chart: Chart, top: int, phone: int) -> tuple[list[str], int]:
    """Draw the names of the marks beside each other, up to three in a row, as many as a phone has room for.

    ``top`` is the vertical position of the legend, and ``phone`` the width of a phone, in pixels. Return the elements,
    and the vertical position at which they end: none and ``top`` for a single mark, or marks without names.
    """
    named = [(i, mark) for i, mark in enumerate(chart.marks) if mark.name]
    if len(chart.marks) < 2 or not named:
        return [], top
    names = [shortened(mark.name, _MAX_NAME) for _, mark in named]
    columns = max(1, min(3, phone // round(_CHARACTER * max(map(len, names)) + 34)))
    parts = []
    for place, ((i, mark), name) in enumerate(zip(named, names, strict=True)):
        at, base = place % columns / columns, top + 12 + 17 * (place // columns)
        dash = ' stroke-dasharray="4 3"' if mark.style in ("dashed", "reference") else ""
        ends = f'x1="{_percent(at)}" x2="{_percent(at + 0.05)}" y1="{base - 4}" y2="{base - 4}"'
        parts.append(f'<line class="{mark.style}" {ends} stroke="{_color(mark, i)}" stroke-width="3"{dash}/>')
        parts.append(_text(at + 0.05, base, name, dx=6))
    return parts, top + 17 * math.ceil(len(named) / columns) + 6


class _PlanePoint(NamedTuple):
    """A point and the ends of its interval, in units of the nested picture."""

    x: float
    y: float
    low: float
    high: float


def _drawn(mark: Mark, color: str, places: Sequence[_PlanePoint], zero: float, bar: float) -> list[str]:
    """Return the SVG elements of one mark in a plane.

    ``places`` are its points in pixels of the plane. Bars stand on the height ``zero`` and are ``bar`` wide.
    """
    if not places:
        return []
    has_intervals = any(place.low != place.high for place in places)
    if mark.style == "bars":
        return [*(_bar(place, color, zero, bar) for place in places), *_intervals(places)]
    if mark.style == "points" or (len(places) == 1 and has_intervals):  # a line of one point cannot be seen
        return [*_intervals(places), _dots(places, color)]
    if mark.style == "steps":
        path = f"M{places[0].x:.1f} {places[0].y:.1f}" + "".join(f"H{at.x:.1f}V{at.y:.1f}" for at in places[1:])
        area = f'<path class="below" d="{path}V{zero:.1f}H{places[0].x:.1f}Z" fill="{color}" fill-opacity="0.15"/>'
        return [area, _path("steps", path, color, "", 2), _dots(places, color)]
    shown = []
    if has_intervals:
        ends = [(at.x, at.high) for at in places] + [(at.x, at.low) for at in reversed(places)]
        edge = f' stroke="{color}"{_STEADY}' if mark.style == "area" else ""
        shown.append(f'<polygon points="{_joined(ends)}" fill="{color}" fill-opacity="0.2"{edge}/>')
    if mark.style != "area":
        dash = ' stroke-dasharray="6 4"' if mark.style in ("dashed", "reference") else ""
        line = _joined([(at.x, at.y) for at in places])
        look = f'fill="none" stroke="{color}" stroke-width="2"{dash}{_STEADY}'
        shown.append(f'<polyline class="{mark.style}" points="{line}" {look}/>')
    return shown


_STEADY = ' vector-effect="non-scaling-stroke"'


def _bar(point: _PlanePoint, color: str, zero: float, width: float) -> str:
    """Return the element of one vertical bar."""
    size = f'width="{width:.1f}" height="{abs(zero - point.y):.1f}"'
    corner = f'x="{point.x - width / 2:.1f}" y="{min(point.y, zero):.1f}"'
    return f'<rect class="bar" {corner} {size} fill="{color}" fill-opacity="0.55"/>'


def _intervals(places: Sequence[_PlanePoint]) -> list[str]:
    """Return one element with the vertical intervals of all points that have one."""
    path = "".join(f"M{at.x:.1f} {at.low:.1f}V{at.high:.1f}" for at in places if at.low != at.high)
    return [_path("interval", path, "currentColor", "", 1.5)] if path else []


def _dots(places: Sequence[_PlanePoint], color: str) -> str:
    """Draw points as lines of length 0 with round ends, which keep their shape where a circle would be stretched."""
    path = "".join(f"M{at.x:.1f} {at.y:.1f}h0" for at in places)
    return _path("point", path, color, ' stroke-linecap="round"', 6)


def _joined(points: Sequence[tuple[float, float]]) -> str:
    """Format points as SVG coordinates."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _path(name: str, path: str, color: str, more: str, width: float) -> str:
    """Return a path element whose stroke does not scale."""
    return f'<path class="{name}" d="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"{more}{_STEADY}/>'


def _line(x1: float, y1: float, x2: float, y2: float, name: str = "interval", width: float = 1.5) -> str:
    """Return a line element between two positions, given as shares across and pixels down."""
    ends = f'x1="{_percent(x1)}" y1="{y1}" x2="{_percent(x2)}" y2="{y2}"'
    return f'<line class="{name}" {ends} stroke="currentColor" stroke-width="{width:g}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", dx: int = 0) -> str:
    """Return a text element at a position, given as a share across and pixels down."""
    place = f'x="{_percent(x)}" y="{y:g}"' + (f' dx="{dx}"' if dx else "")
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text {place}{side} fill="currentColor">{escaped(text)}</text>'


def _anchor(share: float) -> str:
    """Return the text anchor that keeps a label at this position inside the picture."""
    return "start" if share < 0.1 else "end" if share > 0.9 else "middle"


def _color(mark: Mark, number: int) -> str:
    """Return the color of the mark with this number: its own, else one of :data:`COLORS`."""
    if mark.style == "reference":
        return "#7f7f7f"
    return COLORS[(number if mark.color is None else mark.color) % len(COLORS)]


def _percent(share: float) -> str:
    """Format a share as an SVG percentage."""
    return f"{100 * share:.2f}".rstrip("0").rstrip(".") + "%"


# -- on matplotlib axes -----------------------------------------------------------------------------------------------

_FEW = 30
"""A line with at most this many points has markers at them."""


def draw(chart: Chart, axes: Axes | None = None, *, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """Draw a chart on matplotlib axes and return them; without ``axes``, new ones of ``size`` (inches) are made.

    >>> from dither.present.chart import bars
    >>> [float(patch.get_height()) for patch in draw(bars([("north", 41, 6.0)], title="Counts")).patches]
    [41.0]
    """
    if axes is None:
        axes = need("matplotlib.pyplot", "plot").subplots(layout="constrained", figsize=size)[1]
    for number, mark in enumerate(chart.marks):
        _draw_mark(mark, COLORS[(number if mark.color is None else mark.color) % len(COLORS)], axes)
    if chart.categories:
        rotation = 90 if len(chart.categories) > 6 else 0
        axes.set_xticks(range(len(chart.categories)), [*map(_literal, chart.categories)], rotation=rotation)
    for side, axis in (("x", chart.x), ("y", chart.y)):
        if axis.label:
            getattr(axes, f"set_{side}label")(_literal(axis.label))
        if axis.log:
            getattr(axes, f"set_{side}scale")("log")
        if (axis.low, axis.high) != (None, None):
            getattr(axes, f"set_{side}lim")(axis.low, axis.high)
        if axis.ticks:
            positions, texts = zip(*axis.ticks, strict=True)
            getattr(axes, f"set_{side}ticks")(positions, [*map(_literal, texts)])
            axes.minorticks_off()
    if any(isinstance(x, date) for mark in chart.marks for x in mark.x[:1]):
        axes.tick_params(axis="x", labelrotation=30)  # dates are too long to stand beside each other
    if any(mark.name for mark in chart.marks):
        axes.legend(fontsize="small")
    title = " ".join(filter(None, (chart.title, chart.note)))
    if title:
        axes.set_title(_literal(title), fontsize=10)
    return axes


def _literal(text: str) -> str:
    """Escape dollar signs, between which matplotlib would read a formula."""
    return text.replace("$", r"\$")


def _draw_mark(mark: Mark, color: str, axes: Axes) -> None:
    """Draw one mark of a chart on matplotlib axes, in its style; a reference line is gray, all others have the
    ``color``.
    """
    points = mark.points()
    x, y, errors = zip(*points, strict=True) if points else ((), (), ())
    name = _literal(mark.name) or None
    if mark.style == "bars":
        axes.bar(x, y, yerr=errors if any(errors) else None, capsize=3, color=color, alpha=0.7, label=name)
    elif any(errors) and (mark.style == "points" or len(points) == 1):  # a line of one point cannot be seen
        axes.errorbar(x, y, yerr=errors, fmt="o", markersize=4, color=color, label=name)
    elif mark.style == "points":
        axes.scatter(x, y, s=12, color=color, alpha=0.6, label=name)
    elif mark.style == "steps":
        axes.step(x, y, where="post", marker="o", markersize=4, color=color, label=name)
    elif mark.style == "reference":
        axes.plot(x, y, ":", color="gray", label=name)
    else:
        if any(errors):
            low, high = ([a + sign * b for a, b in zip(y, errors, strict=True)] for sign in (-1, 1))
            axes.fill_between(x, low, high, color=color, alpha=0.25, linewidth=0)
        if mark.style != "area":
            marker, line = "o" if len(points) <= _FEW else "", "--" if mark.style == "dashed" else "-"
            axes.plot(x, y, line, color=color, marker=marker, markersize=3, label=name)
