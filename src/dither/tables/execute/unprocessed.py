"""Noisy tables without the SQL around the aggregation, for when that SQL fails on them.

The noisy tables are paid for, and are private already. So they are the answer then, and none of them is lost: of
several, each has rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dither.present.notes import Note
from dither.tables.card.model import Type

_NUMBER = "aggregation"


class NoisyColumns(NamedTuple):
    """A noisy table: its columns with their types, its rows, and the errors and probabilities of some columns."""

    types: Mapping[str, Type]
    rows: Sequence[tuple[Any, ...]]
    errors: Mapping[str, Sequence[float | None]]
    probabilities: Mapping[str, Sequence[float | None]]


class Unprocessed(NamedTuple):
    """Several noisy tables as one, and what to say of it."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    rows: tuple[tuple[Any, ...], ...]
    errors: dict[str, tuple[float | None, ...]]
    probabilities: dict[str, tuple[float | None, ...]]
    note: Note


def unprocessed(tables: Sequence[NoisyColumns]) -> Unprocessed:
    """The noisy tables below one another. Columns of one name and type are one column; it is NULL, without an error,
    in the rows of tables that lack it. The first column of several tables is the number of the aggregation.

    >>> by_day = NoisyColumns({"day": "integer", "n": "integer"}, [(1, 5), (2, 7)], {"n": [3.0, 3.0]}, {})
    >>> result = unprocessed([by_day, NoisyColumns({"n": "integer"}, [(11,)], {"n": [2.0]}, {})])
    >>> result.names, result.rows
    (('aggregation', 'day', 'n'), ((1, 1, 5), (1, 2, 7), (2, None, 11)))
    >>> result.errors
    {'n': (3.0, 3.0, 2.0)}
    """
    several = len(tables) > 1
    columns = list(dict.fromkeys(column for table in tables for column in table.types.items()))
    taken = {_NUMBER} if several else set()
    names: dict[tuple[str, Type], str] = {}
    for name, kind in columns:
        names[name, kind] = _free(name, taken)
        taken.add(names[name, kind])
    rows: list[tuple[Any, ...]] = []
    for number, table in enumerate(tables, 1):
        places = {column: place for place, column in enumerate(table.types.items())}
        for row in table.rows:
            values = [row[places[column]] if column in places else None for column in columns]
            rows.append((number, *values) if several else tuple(values))
    kinds: list[Type] = [kind for _, kind in columns]
    return Unprocessed(
        ((_NUMBER,) if several else ()) + tuple(names.values()),
        ("integer", *kinds) if several else tuple(kinds),
        tuple(rows),
        _below_one_another(names, tables, [table.errors for table in tables]),
        _below_one_another(names, tables, [table.probabilities for table in tables]),
        Note("failed_sql", {"column": _NUMBER if several else None}),
    )


def _below_one_another(
    names: Mapping[tuple[str, Type], str],
    tables: Sequence[NoisyColumns],
    known: Sequence[Mapping[str, Sequence[float | None]]],
) -> dict[str, tuple[float | None, ...]]:
    """What is known of each column, for the rows of all tables."""
    result: dict[str, tuple[float | None, ...]] = {}
    for (name, kind), shown in names.items():
        of_tables = [
            facts[name] if name in facts and table.types.get(name) == kind else None
            for table, facts in zip(tables, known, strict=True)
        ]
        if any(values is not None for values in of_tables):
            every: list[float | None] = []
            for table, values in zip(tables, of_tables, strict=True):
                every += [None] * len(table.rows) if values is None else list(values)
            result[shown] = tuple(every)
    return result


def _free(name: str, taken: Iterable[str]) -> str:
    """The name, with a number after it where it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
