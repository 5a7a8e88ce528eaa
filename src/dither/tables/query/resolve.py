"""Which columns a question may name: those of the table, and of public tables joined to it.

>>> from dither.tables.card.model import Card, ColumnCard
>>> rows = Rows((private_relation(Card("visits", "visits.csv", {"Region": ColumnCard("text")})),))
>>> rows.find(Column("region"))
Column(name='Region', table=None)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard, Type
from dither.tables.card.values import clip, closest
from dither.tables.query.evaluate import typed
from dither.tables.query.tree import Aggregate, Call, Column, Expression, Join, Source, check_size


@dataclass(frozen=True)
class Relation:
    """A name for some rows, and what each of their columns is; ``merged``, by USING, is found by its full name only."""

    name: str
    columns: Mapping[str, Expression]
    merged: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rows:
    """The rows a question is about: their columns, which of them are kept, and what is joined to them. ``source`` is
    the private relation that they are of, on whose columns everything else is; None is the card's own table."""

    relations: tuple[Relation, ...]
    where: Expression | None = None
    joins: tuple[Join, ...] = ()
    source: Source | None = None

    def find(self, column: Column) -> Expression:
        """Return what a column, as written, stands for. In one table an exact name goes before one that differs in
        case."""
        relation, name = self._located(column)
        return relation.columns[name]

    def spelling_of(self, column: Column) -> str:
        """Return the column's name, in the spelling of the card or of whoever named it."""
        return self._located(column)[1]

    def has_table(self, name: str) -> bool:
        """Return whether some of the rows are called so."""
        return any(item.name.casefold() == name.casefold() for item in self.relations)

    def lookup(self, column: Column) -> tuple[Relation, str] | None:
        """Return where a column, as written, is found, and its spelling; None where there is none of the name, and
        refused where the name stands for several."""
        matches: list[tuple[Relation, str]] = []
        for item in self.relations:
            if column.table is not None and item.name.casefold() != column.table.casefold():
                continue
            names = [name for name in item.columns if column.table is not None or name not in item.merged]
            alike = [name for name in names if name.casefold() == column.name.casefold()]
            matches += [(item, name) for name in ([column.name] if column.name in alike else alike)]
        if len(_values(matches)) > 1:
            raise ambiguous(column, matches[0])
        return matches[0] if matches else None

    def _located(self, column: Column) -> tuple[Relation, str]:
        match = self.lookup(column)
        if match is not None:
            return match
        if column.table is not None and not self.has_table(column.table):
            fix = closest(column.table, [item.name for item in self.relations])
            raise InvalidArgument("table", "a table of the question", repr(clip(column.table)), fix)
        table = None if column.table is None else column.table.casefold()
        names = [name for item in self.relations if table in (None, item.name.casefold()) for name in item.columns]
        raise InvalidArgument("column", "a column of the table", repr(clip(column.name)), closest(column.name, names))


def ambiguous(column: Column, match: tuple[Relation, str]) -> InvalidArgument:
    """Return the refusal of a name that several columns have; one of them is the match."""
    relation, name = match
    fix = f"write {relation.name}.{name}, in the spelling of the card"
    return InvalidArgument("column", "one meaning", f"several of {clip(column.name)!r}", fix)


def _values(matches: list[tuple[Relation, str]]) -> set[Expression]:
    """Return the different things that a name can stand for: a person who is joined on is the same on both sides."""
    return {relation.columns[name] for relation, name in matches}


def private_relation(card: Card, name: str | None = None) -> Relation:
    """Return the card's table, under its name or another."""
    return Relation(name or card.name, {item: Column(item) for item in card.columns})


def public_relation(card: Card, table: str, name: str | None = None) -> tuple[str, Relation]:
    """Return a public table of the card, in the card's spelling, under its name or another."""
    key = spelling(table, card.public)
    if key is None:
        if spelling(table, [card.name]):
            fix = "ask in SQL: JOIN … ON a.person = b.person joins rows of the same person"
            raise InvalidArgument("JOIN", "a public table of the card", "the table itself", fix)
        fix = closest(table, card.public) if card.public else "state it in the card under public"
        raise InvalidArgument("JOIN", "a public table of the card", repr(clip(table)), fix)
    return key, Relation(name or key, {item: Column(item, key) for item in card.public[key].columns})


def spelling(name: str, names: Mapping[str, object] | list[str]) -> str | None:
    """Return the name as the card writes it: itself, or the only one that differs in case."""
    if name in names:
        return name
    matches = [item for item in names if item.casefold() == name.casefold()]
    return matches[0] if len(matches) == 1 else None


def unique(name: str, taken: Collection[str], normalize: Callable[[str], str] = str.casefold) -> str:
    """Return the name, with a number after it where it is among ``taken``, which are normalized names."""
    number, result = 1, name
    while normalize(result) in taken:
        number += 1
        result = f"{name}_{number}"
    return result


def card_of(card: Card, column: Column) -> ColumnCard:
    """Return what is public about a column that was found."""
    return card.columns[column.name] if column.table is None else card.public[column.table].columns[column.name]


def type_of(card: Card, column: Column) -> Type:
    """Return the type of a column that was found."""
    return card_of(card, column).type


def resolve_columns(expression: Expression, rows: Rows) -> Expression:
    """Return the expression with every column as written replaced by what it stands for."""
    check_size(expression)

    def resolve(item: Expression) -> Expression:
        if isinstance(item, Column):
            return rows.find(item)
        return Call(item.op, tuple(map(resolve, item.args))) if isinstance(item, Call) else item

    return resolve(expression)


def answer_type(aggregate: Aggregate, card: Card) -> Type:
    """Return the type of an aggregate's answer."""
    if aggregate.kind in ("count", "count_value", "count_distinct", "people"):
        return "integer"
    if aggregate.kind == "mode" and aggregate.value is not None:
        return typed(aggregate.value, lambda column: type_of(card, column))[1] or "number"
    return "number"
