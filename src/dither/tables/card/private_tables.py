"""Whether the tables of a card can be of the same people: names and columns that name the person; and whether public
tables are others."""

from __future__ import annotations

import os
from collections.abc import Mapping

from dither.errors import InvalidArgument, NotPrivate
from dither.tables.card.model import NAME, Card, ColumnCard

_FLOATS = "a pandas column of whole numbers with gaps is made of floats: use astype('Int64')"


def check_private_tables(card: Card) -> None:
    """Refuse a card whose tables do not name people alike, or are called by names that could mean two things.

    >>> from dither.tables.card.model import PrivateTable
    >>> tables = {
    ...     "visits": PrivateTable("visits.csv", {"patient": ColumnCard("integer")}, "patient"),
    ...     "patients": PrivateTable("patients.csv", {"id": ColumnCard("text")}, "id"),
    ... }
    >>> check_private_tables(Card("clinic", "", {}, tables=tables))
    Traceback (most recent call last):
    dither.InvalidArgument: tables.patients.unit: expected a column of type integer, as in visits, got text. Fix: give \
both columns one type: the people of all tables are the same.
    """
    _check_unit("unit", card.columns, card.unit)
    _check_public_sources(card)
    if not card.tables:
        return
    _check_names(card)
    types: dict[str, str] = {}
    for name, table in card.private_tables.items():
        where = "unit" if name not in card.tables else f"tables.{name}.unit"
        if table.unit is None:
            fix = "name the column of each table that says which person a row is about"
            raise InvalidArgument(where, "a unit, since there are several tables", "none", fix)
        _check_unit(where, table.columns, table.unit)
        types[name] = table.columns[table.unit].type
        first = next(iter(types))
        if types[name] != types[first]:
            expected = f"a column of type {types[first]}, as in {first}"
            fix = "give both columns one type: the people of all tables are the same"
            raise InvalidArgument(where, expected, types[name], fix)


def _check_unit(where: str, columns: Mapping[str, ColumnCard], unit: str | None) -> None:
    """A person is named by a whole number or a text: of other values it is not sure which are the same."""
    column = None if unit is None else columns.get(unit)
    if unit is None or (column is not None and column.type in ("integer", "text")):
        return
    got = "no such column" if column is None else column.type
    raise InvalidArgument(where, "a column of whole numbers or text", got, f"convert it; {_FLOATS}")


def _check_public_sources(card: Card) -> None:
    """No public table is read from where private rows are: its keys would be those that occur there."""
    private = {os.path.realpath(table.source) for table in card.private_tables.values() if table.source}
    for name, table in card.public.items():
        if os.path.realpath(table.source) in private:
            fix = "name a table that anybody may see"
            raise NotPrivate(f"public.{name}.source", "another source than the private one", "the same", fix)


def _check_names(card: Card) -> None:
    taken = {card.name.casefold(): "the name of the card, which is that of the dataset"}
    for name in card.public:
        taken[name.casefold()] = "the name of a public table"
    for name in card.tables:
        if not NAME.fullmatch(name):
            expected = "a name for SQL: letters, digits and _"
            raise InvalidArgument(f"tables.{name}", expected, "another", "rename it")
        if name.casefold() in taken:
            expected, got = "a name that nothing else has", taken[name.casefold()]
            raise InvalidArgument(f"tables.{name}", expected, got, "rename one of them")
        taken[name.casefold()] = "the name of another table"
