"""Plots to files: whether they can be drawn is checked before anything is charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dither.errors import InvalidArgument
from dither.extras import need
from dither.tables.execute.shape_answer import output_columns
from dither.tables.planning.plan import QuestionPlan
from dither.tables.query.tree import Column

ENDINGS = ("png", "svg", "pdf", "jpg", "webp")


def require_matplotlib(path: str | None) -> None:
    """Refuse a plot if what draws it is not installed.

    >>> require_matplotlib(None)
    """
    if path is not None:
        need("matplotlib.figure", "plot")


def plotted_column(path: str | None, plan: QuestionPlan) -> str | None:
    """Return the column of an answer that its plot will show: the first of noisy numbers, one to a group."""
    if path is None:
        return None
    by_sql = output_columns(plan)
    if by_sql is not None:  # by SQL: the first column of numbers that is not a group
        groups = {group.name for part in plan.parts for group in part.query.groups}
        for name, kind in zip(by_sql.names, by_sql.types, strict=True):
            if kind in ("integer", "number") and name not in groups:
                return name
    aggregates = {} if by_sql is not None else plan.query.aggregates
    shown = plan.query.shape.columns or {name: Column(name) for name in aggregates}
    for name, source in shown.items():
        aggregate = aggregates.get(source.name) if isinstance(source, Column) else None
        if aggregate is not None and aggregate.kind not in ("histogram", "mode"):
            return name
    raise InvalidArgument(
        "--plot", "an answer with a column of noisy numbers", "none", "ask for a count, a sum or a mean as well"
    )


def save(path: str, draw: Callable[[Any], object], width: float = 7.0) -> None:
    """Draw on new axes and write them to a file."""
    figure = need("matplotlib.figure", "plot").Figure(figsize=(width, 4.0), layout="constrained")
    draw(figure.subplots())
    figure.savefig(path)
