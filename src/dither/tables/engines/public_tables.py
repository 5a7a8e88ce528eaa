"""What has to be known of a public table before it is joined: whether its key is one, and the values of columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from dither.errors import DitherError
from dither.tables.card.values import Value, literal_type
from dither.tables.query import nodes

if TYPE_CHECKING:
    from dither.tables.engines.base import Engine


def is_unique(engine: Engine, name: str, column: str) -> bool:
    """Whether no value occurs twice in a column of a public table. NULLs, which join nothing, do not count.

    Equality is that of the join: on the column as it is.
    """
    key = nodes.column(column, "p")
    twice = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(
        exp.alias_(engine.public(name), "p", table=True)
    )
    twice = twice.where(exp.Not(this=exp.Is(this=key, expression=exp.null()))).group_by(key)
    most = exp.select(exp.alias_(exp.Max(this=exp.column("n")), "most")).from_(twice.subquery("c"))
    result = engine.run(most).column("most")[0].as_py()
    return result is None or result == 1


def values(engine: Engine, name: str, column: str, most: int) -> tuple[Value, ...] | None:
    """The different values of a column of a public table, in order, NULL last; None where they are more than
    ``most``, or one of them cannot be written as a constant."""
    lines = rows(engine, name, (column,), most)
    if lines is None:
        return None
    result = [value for (value,) in lines]
    known = sorted(value for value in result if value is not None)
    return (*known, *(value for value in result if value is None))


def rows(engine: Engine, name: str, columns: Sequence[str], most: int) -> tuple[tuple[Value, ...], ...] | None:
    """The different rows that a public table has in some columns; None where they are more than ``most``, or a value
    cannot be written as a constant."""
    selected = [exp.alias_(nodes.column(column, "p"), f"k{i}") for i, column in enumerate(columns)]
    query = exp.select(*selected).from_(exp.alias_(engine.public(name), "p", table=True))
    result = engine.run(query.distinct().limit(most + 1))
    if result.num_rows > most:
        return None
    lines = tuple(zip(*(result.column(f"k{i}").to_pylist() for i in range(len(columns))), strict=True))
    try:
        for value in itertools.chain.from_iterable(lines):
            literal_type(value)
    except DitherError:
        return None
    return lines
