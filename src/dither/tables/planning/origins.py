"""Where an expression comes from: the relations inside of each other that it can be computed in, from one row of each.

A column of a relation is often one of the relation inside, as it is or computed from the row it stands in. So an
expression can be written on the rows of the relation inside, and further in. On the way conditions come up that all of
these rows meet: those of WHERE, of ON and of QUALIFY, as far as they are about the same rows. What they say about the
values of an expression, which rows of a public table it can be from, and whether it can be NULL, is public.

The way ends at the rows of a private table, at what is computed from several rows, and where rows of several relations
come together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dither.tables.query.evaluate import folded
from dither.tables.query.tree import (
    Call,
    CappedRows,
    Column,
    Expression,
    Join,
    PerPerson,
    PersonJoin,
    Projection,
    PublicMembership,
    Query,
    Source,
    Windowed,
    conjuncts,
)

_Move = Callable[[Column], Expression | None]
"""What a column of a relation is in the one inside of it; None where it is not there."""


@dataclass(frozen=True)
class Rows:
    """The rows of a relation that meet conditions, with public tables joined to them. ``path`` says how it is reached
    from the relation that is asked of."""

    source: Source | None
    conditions: tuple[Expression, ...] = ()
    joins: tuple[Join, ...] = ()
    path: tuple[int, ...] = ()

    @classmethod
    def asked(cls, query: Query) -> Rows:
        """The rows that a question is about."""
        return cls(query.source, _parts(query.where), tuple(query.joins))

    def levels(self, value: Expression) -> Iterator[tuple[Rows, Expression]]:
        """The expression on these rows, and on those of each relation inside that it can be computed in."""
        step: tuple[Rows, Expression] | None = self, folded(value)
        while step is not None:
            yield step
            rows, item = step
            step = rows.inside(item)

    def inside(self, value: Expression) -> tuple[Rows, Expression] | None:
        """The rows of the relation inside, and the expression on them; None where the way ends."""
        for place, (rows, move) in enumerate(self._relations()):
            moved = _moved(value, move)
            if moved is not None:
                kept = (_moved(condition, move) for condition in self.conditions)
                conditions = (*rows.conditions, *(item for item in kept if item is not None))
                return Rows(rows.source, conditions, rows.joins, (*self.path, place)), folded(moved)
        return None

    def _relations(self) -> Iterator[tuple[Rows, _Move]]:
        """The relations inside, with what columns are there."""
        source = self.source
        if isinstance(source, (Projection, PerPerson)):
            named: dict[str, Expression | None] = {}
            if isinstance(source, Projection):
                named |= source.columns
            else:
                named |= {**source.groups, **dict.fromkeys(source.aggregates)}
            yield Rows(source.source, _parts(source.where), source.joins), _renamed(named)
        elif isinstance(source, Windowed):
            yield Rows(source.source), _renamed(dict.fromkeys(source.windows))
        elif isinstance(source, (PublicMembership, CappedRows)):
            yield Rows(source.source), _renamed({})
        elif isinstance(source, PersonJoin):
            yield from _sides(source)


def _sides(source: PersonJoin) -> Iterator[tuple[Rows, _Move]]:
    """The sides of a join whose rows keep their values: of others, some are NULL."""
    people = [name for name in (source.left_person, source.right_person) if name is not None]
    left = _renamed(dict.fromkeys([*source.names, *people]))
    on = _parts(source.on) if source.kind in ("inner", "semi") else ()
    if source.kind not in ("right", "full"):
        yield Rows(source.left, _all_moved(on, left)), left
    if source.kind in ("inner", "right"):

        def right(column: Column) -> Expression | None:
            return Column(source.names[column.name]) if column.name in source.names else None

        yield Rows(source.right, _all_moved(on, right)), right


def _renamed(named: dict[str, Expression | None]) -> _Move:
    """Columns by what they are named; others are the same inside."""
    return lambda column: named.get(column.name, column)


def _parts(condition: Expression | None) -> tuple[Expression, ...]:
    return () if condition is None else tuple(conjuncts(folded(condition)))


def _all_moved(conditions: tuple[Expression, ...], move: _Move) -> tuple[Expression, ...]:
    return tuple(item for item in (_moved(condition, move) for condition in conditions) if item is not None)


def _moved(value: Expression, move: _Move) -> Expression | None:
    """An expression on the columns of a relation as one on those of the relation inside; None where there is none.
    Columns of public tables that are joined here are not there."""
    if isinstance(value, Column):
        return None if value.table is not None else move(value)
    if isinstance(value, Call):
        args = [_moved(item, move) for item in value.args]
        return None if None in args else Call(value.op, tuple(item for item in args if item is not None))
    return value
