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
        axes.set_xticks(range(len(chart.categories)), list(chart.categories), rotation=rotation)
    for axis, set_label, set_limits, set_scale in (
        (chart.x, axes.set_xlabel, axes.set_xlim, axes.set_xscale),
        (chart.y, axes.set_ylabel, axes.set_ylim, axes.set_yscale),
    ):
        set_label(axis.label)
        if axis.log:
            set_scale("log")
        if (axis.low, axis.high) != (None, None):
            set_limits(axis.low, axis.high)
    if any(isinstance(x, date) for mark in chart.marks for x in mark.x[:1]):
        axes.tick_params(axis="x", labelrotation=30)  # dates are too long to stand beside each other
    if any(mark.name for mark in chart.marks):
        axes.legend(fontsize="small")
    axes.set_title(" ".join(filter(None, (chart.title, chart.note))), fontsize=10)
    return axes


def _draw(mark: Mark, color: str, axes: Axes) -> None:
    points = mark.points()
    x, y, errors = zip(*points, strict=True) if points else ((), (), ())
    name = mark.name or None
    if mark.style == "bars":
        axes.bar(x, y, yerr=errors if any(errors) else None, capsize=3, color=color, alpha=0.7, label=name)
    elif mark.style == "points" or (len(points) == 1 and any(errors)):  # a line of one point cannot be seen
        axes.errorbar(x, y, yerr=errors if any(errors) else None, fmt="o", color=color, label=name)
    elif mark.style == "steps":
        axes.step(x, y, where="post", marker="o", markersize=4, color=color, label=name)
    elif mark.style == "reference":
        axes.plot(x, y, ":", color="gray", label=name)
    else:
        if any(errors):
            low, high = ([a + sign * b for a, b in zip(y, errors, strict=True)] for sign in (-1, 1))
            axes.fill_between(x, low, high, color=color, alpha=0.25, linewidth=0)
        marker = "o" if len(points) <= _FEW else ""
        axes.plot(x, y, "--" if mark.style == "dashed" else "-", color=color, marker=marker, markersize=3, label=name)
