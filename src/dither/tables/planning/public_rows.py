"""Keys that occur together: groups by columns of one public table are the different rows that the table has in them.

Without this a question by the number and the name of a plan had a group for each number with each name. Every row of
people that is in a group has its partner in the public table (or none, where the join keeps such rows), so the groups
are the combinations that the table's rows have, of which only those are left that conditions on the table let through.
The column that the join is on is the same as the one of the table.

Only rows of the public table are read, and what is released is of these groups alone: a person who came to be in a
group that is not among them would be left out, as with any key that is not listed.
"""

from __future__ import annotations

from dataclasses import dataclass

from dither.tables.card.model import Card
from dither.tables.card.values import Value
from dither.tables.planning.derived_keys import may_hold
from dither.tables.planning.origins import Rows
from dither.tables.query.evaluate import evaluate
from dither.tables.query.tree import Column, Expression, Join, Query, columns, replaced

MOST_ROWS = 100_000
"""How many different rows of a public table may be read to know which keys occur together."""


@dataclass(frozen=True)
class TiedValues:
    """Places of columns of GROUP BY, and the combinations of values that occur in them."""

    places: tuple[int, ...]
    values: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class _Origin:
    """What a group is in a public table, which is joined to a relation inside the one that is asked of."""

    path: tuple[int, ...]
    join: Join
    value: Expression
    conditions: tuple[Expression, ...]
    """The conditions on columns of the table alone."""


def tied_values(query: Query, card: Card) -> list[TiedValues]:
    """The groups of a question that are of one public table whose rows are known, with their values in these rows."""
    members_of: dict[tuple[tuple[int, ...], Join], list[tuple[int, _Origin]]] = {}
    for place, group in enumerate(query.groups):
        origin = _origin(group.value, query, card)
        if origin is not None:
            members_of.setdefault((origin.path, origin.join), []).append((place, origin))
    result = []
    for (_, join), members in members_of.items():
        rows = list(card.public[join.table].rows or ())
        if join.left:
            rows.append(dict.fromkeys(rows[0]))
        conditions = members[0][1].conditions
        kept = [row for row in rows if all(may_hold(condition, row) for condition in conditions)]
        values = dict.fromkeys(tuple(evaluate(origin.value, row) for _, origin in members) for row in kept)
        if values:
            result.append(TiedValues(tuple(place for place, _ in members), tuple(values)))
    return result


def _origin(value: Expression, query: Query, card: Card) -> _Origin | None:
    """What an expression is in a public table; None where it is not of one table alone."""
    for rows, item in Rows.asked(query).levels(value):
        for join in rows.joins:
            there = _of_table(item, join, card)
            if there is not None:
                conditions = [_of_table(condition, join, card) for condition in rows.conditions]
                return _Origin(rows.path, join, there, tuple(known for known in conditions if known is not None))
    return None


def _of_table(item: Expression, join: Join, card: Card) -> Expression | None:
    """An expression on columns of a table that are known; the key that is joined on is one of them."""
    result = item if join.left else replaced(item, join.own, Column(join.other, join.table))
    used, rows = columns(result), card.public[join.table].rows
    known = bool(used) and bool(rows) and all(column.table == join.table for column in used)
    return result if known and rows and {column.name for column in used} <= set(rows[0]) else None
