"""The card of a table: what is public about it, written once by its steward.

Names and types of columns, who the people are, public bounds and keys, how much one person may contribute, and the
budget. Nothing in it may be taken from the data.

A card may have several private tables: :func:`check_private_tables` refuses those that cannot be of the same people.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Any, cast
from typing import Literal as Choice

from dither import arguments
from dither.comparison import unhashable
from dither.errors import InvalidArgument, NotPrivate
from dither.guarantees import Guarantee
from dither.public_module import public_in
from dither.tables.card.profile import Profile
from dither.tables.card.values import (
    FORMATS,
    Value,
    clip,
    closest,
    format_problem,
    literal_type,
    plain_keys,
    plain_value,
)

Type = Choice["integer", "number", "text", "boolean", "date", "timestamp"]
MIN_EPSILON = 1e-4
MAX_INCIDENTS = 3
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
"""What a table may be called in SQL."""
TYPES: tuple[Type, ...] = ("integer", "number", "text", "boolean", "date", "timestamp")


@dataclass(frozen=True)
class ColumnCard:
    """What is public about one column: its type, and where stated its bounds and its keys.

    ``period`` are the bounds of a column of dates or timestamps, both included. ``format`` says how a source that holds
    dates or numbers as text writes them (``"%m/%d/%Y"``, ``"$1,234.56"``); see :mod:`dither.tables.card.values`.
    """

    type: Type
    bounds: tuple[float, float] | None = None
    keys: tuple[Value, ...] | None = None
    period: tuple[date, date] | None = field(default=None, repr=False)
    format: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Make keys plain values, and refuse a format that the column's type cannot have."""
        object.__setattr__(self, "keys", plain_keys(self.keys))
        if self.format is not None:
            problem = format_problem(self.format, self.type) if self.type in FORMATS else "none for this type"
            if problem:
                example = f'pass format="{FORMATS[self.type]}", for example' if self.type in FORMATS else "leave it out"
                raise InvalidArgument(f"format of {self.type}", problem, repr(self.format[:40]), example)


def column_card(
    name: str, type: Type, bounds: tuple[Any, Any] | None = None, keys: tuple[Value, ...] | None = None
) -> ColumnCard:
    """Return the card of the column ``name``; ``bounds`` are two dates for a column of dates, otherwise two numbers.

    ``keys`` are the public values that may occur, None where they are not public.
    """
    if bounds is None or type not in ("date", "timestamp"):
        return ColumnCard(type, None if bounds is None else arguments.bounds(bounds), keys)
    where, fix = f"bounds of {name}", "pass (date(2024, 1, 1), date(2024, 12, 31)), for example"
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2 or not all(isinstance(end, date) for end in bounds):
        raise InvalidArgument(where, "two dates (first, last)", "values that are no dates", fix)
    first, last = (plain_value(end) for end in bounds)
    if type == "timestamp":  # a day as the last moment means its end
        first = first if isinstance(first, datetime) else datetime.combine(cast(date, first), time())
        last = last if isinstance(last, datetime) else datetime.combine(cast(date, last), time.max)
    kinds = {literal_type(first), literal_type(last)}
    if kinds != {type} or not cast(date, first) <= cast(date, last):
        raise InvalidArgument(
            where, f"two values of type {type}, the first not after the last", "values of another type or order", fix
        )
    return ColumnCard(type, None, keys, (cast(date, first), cast(date, last)))


@dataclass(frozen=True)
class PublicTable:
    """A table that anybody may see, to be joined on a key: where it is, and the types of its columns."""

    source: str
    columns: Mapping[str, ColumnCard]
    rows: tuple[Mapping[str, Value], ...] | None = field(default=None, repr=False)
    """Its different rows in the columns that a question groups by, read when the question is planned."""


@dataclass(frozen=True)
class PersonPath:
    """How the rows of a private table reach their person: through the rows of another private ``table`` with the same
    key.

    ``keys`` are pairs of a column of the own table and the column of the other one that it refers to: one pair, or
    several for a composite key. What makes it private is stated in :mod:`dither.tables.compile.person_paths`.
    """

    table: str
    keys: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.table} via {' AND '.join(f'{own} = {other}' for own, other in self.keys)}"


@dataclass(frozen=True)
class PrivateTable:
    """A table of rows about people: where it is, its columns, and which of them names the person.

    ``rows`` is about how many rows it has, if that is public. Where the person is reached by a ``path``, the source
    has no column of the person: :func:`with_people_by_path` adds one to ``columns``, and names it as the ``unit``.
    """

    source: str
    columns: Mapping[str, ColumnCard]
    unit: str | None
    rows: int | None = field(default=None, repr=False)
    path: PersonPath | None = field(default=None, repr=False)

    @property
    def stated_columns(self) -> Mapping[str, ColumnCard]:
        """The columns of the source: all but the person where that is reached by a path."""
        if self.path is None:
            return self.columns
        return {name: column for name, column in self.columns.items() if name != self.unit}


@dataclass(frozen=True)
class SeriesCard:
    """A series of releases over time, as a card states it: see :mod:`dither.tables.card.toml`."""

    over: str
    column: str
    horizon: int
    start: date | None
    groups: tuple[str, ...]
    where: str | None
    aggregates: Mapping[str, str]
    options: Mapping[str, Any]


@public_in("dither")
@unhashable
@dataclass(frozen=True)
class Card:
    """What is public about a table, or about several tables of the same people.

    ``name`` is the table's name in SQL and the dataset's in the ledger. ``source`` says where the rows are: a path or
    glob of Parquet or CSV files, ``file.duckdb::table``, ``postgresql://…::table`` or ``spark::table``. ``unit`` is the
    column that names the person, or None if every row is a person of their own. ``max_groups`` and ``max_rows`` bound
    how many groups one person contributes to, and how many rows to each.

    ``tables`` are further tables of the same people, by their names in SQL. A card that has them may have no rows of
    its own: ``source`` and ``columns`` are then empty, and ``name`` is that of the dataset alone. Budget and limits
    are shared: a person is all rows with one value of the unit, in all tables.

    >>> Card("visits", "visits.parquet", {"age": ColumnCard("integer", bounds=(0, 120))}).max_rows
    1
    >>> people = {"person": ColumnCard("integer")}
    >>> list(Card("clinic", "", {}, tables={"visits": PrivateTable("visits.csv", people, "person")}).private_tables)
    ['visits']
    """

    name: str
    source: str
    columns: Mapping[str, ColumnCard]
    unit: str | None = None
    max_groups: int | Choice["auto"] = 1
    max_rows: int | Choice["auto"] = 1
    public: Mapping[str, PublicTable] = field(default_factory=dict)
    ledger: str | None = None
    budget: Guarantee | None = None
    each_analyst: Guarantee | None = None
    each_person: Guarantee | None = None
    delta: float | None = None
    """The delta of one release, where one is needed: keys that are not public, Gaussian noise."""
    version: str | None = None
    """Which state of the data this is: answers recorded for another one are not given again."""
    as_of: date | None = None
    """The day that CURRENT_DATE stands for in SQL; None for the day on which a question is asked (UTC)."""

    # What follows does not change what an answer means: it is left out of the text that a recorded answer is found by.
    population: str | None = field(default=None, repr=False)
    """Whose people these are: tables of one population share each person's account. By default the table's own."""
    filter: Choice["sum", "advanced"] = field(default="sum", repr=False)
    """How the limits are kept; see :mod:`dither.ledger.accounts`."""
    min_epsilon: float = field(default=MIN_EPSILON, repr=False)
    """The least epsilon of a question: one that costs next to nothing is of use to an attacker only."""
    max_incidents: int = field(default=MAX_INCIDENTS, repr=False)
    """How many errors while rows are read close the table, until its steward reopens it."""
    receipt: str | None = field(default=None, repr=False)
    """A file that keeps the last receipt: a ledger that does not hold it is refused."""
    incident_log: str | None = field(default=None, repr=False)
    """The steward's log of errors while rows were read; by default beside the ledger."""
    rows: int | None = field(default=None, repr=False)
    """About how many rows there are, if that is public: what a percentage as a wanted error is of."""
    rows_without_unit: Choice["drop", "each"] | None = field(default=None, repr=False)
    """What becomes of rows whose unit is NULL: each is a person of its own, or they are left out, whether the card says
    so or not. The first changes what an answer means, and is part of what a recorded answer is found by."""

    # Left out of the text that version 0.1 recorded answers by, in which there was one table.
    tables: Mapping[str, PrivateTable] = field(default_factory=dict, repr=False)
    """Further tables of the same people, by their names in SQL."""
    series: Mapping[str, SeriesCard] = field(default_factory=dict, repr=False)
    """What is released over time, by name: ``dither series CARD NAME``. It changes no answer to a question."""
    profile: Profile | None = field(default=None, repr=False)
    """The newest profile that the ledger has recorded, set when a table is opened; no card file states it."""
    path: PersonPath | None = field(default=None, repr=False)
    """How the rows of the card's own table reach their person, where no column of it names them."""

    @property
    def private_tables(self) -> Mapping[str, PrivateTable]:
        """All private tables by their names in SQL; the card's own table, if it has columns, comes first."""
        own = PrivateTable(self.source, self.columns, self.unit, self.rows, self.path)
        return {**({self.name: own} if self.columns else {}), **self.tables}

    @cached_property
    def counts_rows_without_unit(self) -> bool:
        """Whether each row whose unit is NULL counts as a person with that row only, as the card says for all
        tables."""
        units = [table.unit for table in self.private_tables.values()]
        return self.rows_without_unit == "each" and any(unit is not None for unit in units)

    @property
    def sources(self) -> str | Mapping[str, str]:
        """The card's source or, if it has several tables, their sources by name."""
        return {name: table.source for name, table in self.private_tables.items()} if self.tables else self.source

    def for_table(self, name: str, *others: str) -> Card:
        """Return the card of a question about one of several tables: that table becomes the card's own, and of the
        others only ``others`` are kept.

        Budget, limits and public tables are the same. A card of one table is returned unchanged.
        """
        if not self.tables and name == self.name:
            return self
        table = self.private_tables[name]
        return replace(
            self,
            name=name,
            source=table.source,
            columns=table.columns,
            unit=table.unit,
            rows=table.rows,
            path=table.path,
            tables={other: self.private_tables[other] for other in others},
        )


def with_recent_profile(card: Card, days: float) -> Card:
    """Return the card unchanged if its profile is at most ``days`` old; otherwise, and if its age is unknown, without
    it."""
    if card.profile is None:
        return card
    released = card.profile.released
    is_recent = released is not None and datetime.now(released.tzinfo) - released <= timedelta(days=days)
    return card if is_recent else replace(card, profile=None)


def limited(card: Card, max_incidents: int | None, min_epsilon: float | None) -> Card:
    """Return the card with ``max_incidents`` and ``min_epsilon`` replaced; None keeps the card's value."""
    return replace(
        card,
        max_incidents=card.max_incidents if max_incidents is None else max_incidents,
        min_epsilon=card.min_epsilon if min_epsilon is None else min_epsilon,
    )


def tightened(card: Card, max_incidents: int | None, min_epsilon: float | None) -> Card:
    """Return the card with stricter limits; refuse limits that are looser than the steward's, which the card states."""
    fix = "leave it out, or ask the steward to change the card"
    if max_incidents is not None and arguments.whole(max_incidents, "max_incidents") > card.max_incidents:
        expected = f"at most {card.max_incidents}, as the card says"
        raise InvalidArgument("max_incidents", expected, max_incidents, fix)
    if min_epsilon is not None:
        least = arguments.epsilon(card.min_epsilon, "min_epsilon")
        if arguments.epsilon(min_epsilon, "min_epsilon") < least:
            expected = f"at least {card.min_epsilon:g}, as the card says"
            raise InvalidArgument("min_epsilon", expected, min_epsilon, fix)
    return limited(card, max_incidents, min_epsilon)


def arrow_type(type: Type) -> Any:
    """Return the Arrow type of a column type."""
    import pyarrow as pa

    types: dict[Type, Any] = {
        "integer": pa.int64(),
        "number": pa.float64(),
        "text": pa.string(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    return types[type]


def with_people_by_path(card: Card) -> Card:
    """Return the card with a column of the person in each table that reaches it by a path, named as in the table where
    the path ends; refuse a path that ends nowhere.

    >>> orders = PrivateTable("orders.csv", {"id": ColumnCard("integer"), "who": ColumnCard("text")}, "who")
    >>> path = PersonPath("orders", (("order_id", "id"),))
    >>> items = PrivateTable("items.csv", {"order_id": ColumnCard("integer")}, None, path=path)
    >>> with_people_by_path(Card("shop", "", {}, tables={"orders": orders, "items": items})).tables["items"].unit
    'who'
    """
    known = dict(card.private_tables)
    for name in known:
        _add_person(name, known, ())
    own = known.pop(card.name, None) if card.columns else None
    card = replace(card, tables=known) if card.tables else card
    return card if own is None or own.unit == card.unit else replace(card, columns=own.columns, unit=own.unit)


def _add_person(name: str, known: dict[str, PrivateTable], passed: tuple[str, ...]) -> None:
    """Add the column of the person to the table ``name`` of the ``known`` ones, and to those that its path passes;
    ``passed`` are the tables whose paths led here."""
    table = known[name]
    if table.path is None or table.unit is not None:
        return
    where, path = f"{name}.person", table.path
    others = [other for other in known if other not in (name, *passed)]
    if path.table not in others:
        expected = f"a path through one of {', '.join(others) or 'several private tables'}"
        got = "a path that comes back to it" if path.table in known else f"one through {clip(path.table)!r}"
        raise InvalidArgument(where, expected, got, closest(path.table, others) if others else "name a unit")
    _add_person(path.table, known, (*passed, name))
    end = known[path.table]
    if end.unit is None:
        fix = f"state unit or person of {path.table}"
        raise InvalidArgument(where, "a path that ends at a column of the person", "one that ends nowhere", fix)
    for own, other in path.keys:
        kinds = []
        for column, columns in ((own, table.stated_columns), (other, end.stated_columns)):
            if column not in columns:
                raise InvalidArgument(where, "columns of both tables", repr(clip(column)), closest(column, columns))
            kinds.append(columns[column].type)
        if kinds[0] != kinds[1] or kinds[0] not in ("integer", "text", "date"):
            fix = "give both columns one of these types"
            raise InvalidArgument(where, "keys of whole numbers, text or dates", " = ".join(kinds), fix)
    taken = {column.casefold() for column in table.columns}
    unit = end.unit if end.unit.casefold() not in taken else f"{path.table}.{end.unit}"
    person = ColumnCard(end.columns[end.unit].type)
    known[name] = replace(table, columns={**table.columns, unit: person}, unit=unit)


_FLOATS = "a pandas column of whole numbers with gaps is made of floats: use astype('Int64')"


def column_types(card: Card, tables: Iterable[str]) -> dict[str, dict[str, Type]]:
    """Return the types of the columns of each of these public ``tables``, by name."""
    return {table: {name: column.type for name, column in card.public[table].columns.items()} for table in tables}


def check_private_tables(card: Card) -> None:
    """Refuse a card whose tables name people by columns of different types, or have ambiguous names."""
    _check_unit("unit", card.columns, card.unit)
    _check_public_sources(card)
    if card.counts_rows_without_unit and any(table.path is not None for table in card.private_tables.values()):
        expected = '"drop" where a person is reached by a path: a row that reaches nobody is in no answer'
        raise InvalidArgument("rows_without_unit", expected, '"each"', 'write rows_without_unit = "drop"')
    _check_names(card)
    if not card.tables:
        return
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
    """Refuse a ``unit`` that is neither a whole number nor text: equality of doubles or times differs between engines.

    ``unit`` is the column that names the person of a row, one of ``columns``, or None. ``where`` is its name in the
    error.
    """
    column = None if unit is None else columns.get(unit)
    if unit is None or (column is not None and column.type in ("integer", "text")):
        return
    got = "no such column" if column is None else column.type
    raise InvalidArgument(where, "a column of whole numbers or text", got, f"convert it; {_FLOATS}")


def _check_public_sources(card: Card) -> None:
    """Refuse a public table that is read from the source of a private table: its keys would reveal which values
    occur."""
    private = {os.path.realpath(table.source) for table in card.private_tables.values() if table.source}
    for name, table in card.public.items():
        if os.path.realpath(table.source) in private:
            fix = "name a table that anybody may see"
            raise NotPrivate(
                f"public.{name}.source", "a source that holds no private rows", "the source of a private table", fix
            )


def _check_names(card: Card) -> None:
    """Refuse table names that SQL cannot write, or that two tables share regardless of case."""
    taken = {card.name.casefold(): "the name of the card, which is that of the dataset"}
    for name in card.public:
        if name.casefold() == card.name.casefold():  # SQL would read the one or the other
            expected, got = "a name that nothing else has", taken[name.casefold()]
            raise InvalidArgument(f"public.{name}", expected, got, "rename one of them")
        taken[name.casefold()] = "the name of a public table"
    for name in card.tables:
        if not NAME.fullmatch(name):
            expected = "a name for SQL: letters, digits and _"
            raise InvalidArgument(f"tables.{name}", expected, repr(clip(name)), "rename it")
        if name.casefold() in taken:
            expected, got = "a name that nothing else has", taken[name.casefold()]
            raise InvalidArgument(f"tables.{name}", expected, got, "rename one of them")
        taken[name.casefold()] = "the name of another table"
