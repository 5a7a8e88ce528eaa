"""Charts on matplotlib axes: the same values that :mod:`dither.present.drawing` renders as SVG."""

from __future__ import annotations

from datetime import date

from dither.extras import Axes, need
from dither.present.chart import Chart, Mark
from dither.present.drawing import COLORS

_FEW = 30
"""A line of at most this many points shows them."""


def draw(chart: Chart, axes: Axes | None = None, *, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """Draw a chart on axes, new ones unless some are given, and return them.

    >>> from dither.present.chart import bars
    >>> [float(patch.get_height()) for patch in draw(bars([("north", 41, 6.0)], title="Counts")).patches]
    [41.0]
    """
    if axes is None:
        axes = need("matplotlib.pyplot", "plot").subplots(layout="constrained", figsize=size)[1]
    for number, mark in enumerate(chart.marks):
        _draw(mark, COLORS[(number if mark.color is None else mark.color) % len(COLORS)], axes)
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
    """Escape dollar signs: between two of them matplotlib reads a formula, and fails where it is none."""
    return text.replace("$", r"\$")


def _draw(mark: Mark, color: str, axes: Axes) -> None:
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
