"""A series by its name in the card of an open table."""

from __future__ import annotations

import dither
from dither.errors import InvalidArgument
from dither.stream.series import Series
from dither.tables.builder.expressions import count, people, sum_
from dither.tables.card.toml import SeriesAggregate
from dither.tables.card.values import clip, closest
from dither.tables.query.tree import Aggregate


def named_series(table: dither.Table, name: str) -> Series:
    """The series of a table's card that has this name.

    >>> import dither as dp
    >>> from dither.tables.card.model import Card
    >>> with dp.open(__import__("pyarrow").table({"n": [1]}), budget=dp.PureDP(1)) as table:
    ...     named_series(table, "daily")
    Traceback (most recent call last):
    dither.InvalidArgument: series: expected a series of the card, got 'daily'. Fix: add [series.daily] to the card.
    """
    known = table.card.series
    if name not in known:
        got = repr(clip(name)) if isinstance(name, str) else type(name).__name__
        fix = closest(name, known) if known and isinstance(name, str) else f"add [series.{clip(str(name))}] to the card"
        raise InvalidArgument("series", "a series of the card", got, fix)
    stated = known[name]
    days = table.over(
        stated.over,  # type: ignore[arg-type]
        column=stated.column,
        horizon=stated.horizon,
        start=stated.start,
        name=name,
        **stated.options,
    )
    if stated.where is not None:
        days = days.where(stated.where)
    if stated.groups:
        days = days.group_by(*stated.groups)
    return days.agg(**{item: _aggregate(text, item) for item, text in stated.aggregates.items()})


def _aggregate(text: str, name: str) -> Aggregate:
    item = SeriesAggregate.read(text, name)
    if item.kind == "sum":
        assert item.column is not None
        return sum_(item.column)
    return people() if item.kind == "people" else count(item.column)
