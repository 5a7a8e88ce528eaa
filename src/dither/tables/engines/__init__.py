"""Where the rows are: DuckDB embedded, PostgreSQL, Spark. An engine runs the SQL of a plan and returns small tables.

What every engine promises, whatever the source:

* It only reads, and never runs more than one SELECT at a time.
* Its columns are the card's, as the card's types: BIGINT, DOUBLE, text compared byte by byte, BOOLEAN, DATE, and
  TIMESTAMP in UTC without a zone. What a type cannot hold is NULL: an integer beyond 64 bits, a date outside the
  years 1 to 9999, a cell of a CSV file that cannot be read as the card says.
* In a CSV file a record is one line (:mod:`dither.tables.engines.files`); empty and unquoted is NULL, and ``""`` is
  empty text.
* Text is valid UTF-8; other text is NULL, or the source is refused when it becomes known.
* After a fork, the child has to open the source again.
* Times are UTC, literals are plain, comparisons are exact: see :mod:`dither.tables.query.nodes`.
* Errors never hold a value from the data, nor a password; the engine's own message, which may, is not passed on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dither.errors import InvalidArgument, WrongType
from dither.extras import need
from dither.tables.card.model import Card, PublicTable, Type
from dither.tables.engines.base import Engine
from dither.tables.planning.group_keys import MOST_ROWS, MOST_VALUES
from dither.tables.query.operations.base import NUMBERS
from dither.tables.query.relations import names_read, shown_expressions
from dither.tables.query.tree import Call, Column, Query, columns, conditions, public_joins

__all__ = ["Engine", "connect", "malformed_lines", "same_place", "with_public_values"]

_FORMS = "a path, file.duckdb::table, postgresql://…::table, spark::table, or a frame"


def connect(source: object, card: Card | None = None, types: Mapping[str, Type] | None = None) -> Engine:
    """Open a source, or those of several tables, and check that each is what the card says.

    With a card, files are read in full unless they were before; otherwise nothing but the schema is read.

    Parameters
    ----------
    source
        A path or glob of Parquet or CSV files, ``file.duckdb::table``, ``postgresql://user@host/db::table``,
        ``spark::table`` (or ``spark::folder/*.parquet``); a pandas or polars frame, an Arrow table, a DuckDB
        relation, a Spark frame. For a card with several tables, a mapping of their names to such sources, which one
        engine can read.
    card
        What is public about it. Without one, every column that can be used is, as the type the source has.
    types
        For a frame without a card: the types of columns, where they are not those of its schema.

    >>> import pyarrow as pa
    >>> with connect(pa.table({"x": [1, 2, None]})) as engine:
    ...     print(engine.schema(), engine.run("SELECT COUNT(x) AS n FROM dither_rows").to_pylist())
    {'x': 'integer'} [{'n': 2}]
    """
    engine = _opened(_by_table(source, card), card, types)
    try:
        engine.prepare()
    except BaseException:
        engine.close()
        raise
    return engine


def _by_table(source: object, card: Card | None) -> dict[str, object]:
    """Return the source of each private table by name; without a card, of the only table, whose name is empty.
    Refuse missing or unknown names."""
    if not isinstance(source, Mapping):
        source = {"" if card is None else next(iter(card.private_tables), card.name): source}
    sources = {name: os.fspath(item) if isinstance(item, os.PathLike) else item for name, item in source.items()}
    expected = set(sources) if card is None else set(card.private_tables) or {card.name}
    if set(sources) != expected:
        got = f"sources for {', '.join(sources) or 'none'}"
        raise InvalidArgument("source", f"a source for each of {', '.join(sorted(expected))}", got, "name each of them")
    return sources


def _opened(sources: dict[str, object], card: Card | None, types: Mapping[str, Type] | None) -> Engine:
    """Return the engine that reads all of these sources, which must be in one place.

    ``sources`` are given by table. ``card`` is None when a draft is made, and ``types`` are the types of a frame's
    columns that are stated without a card.
    """
    places = {_location(source) for source in sources.values()}
    if len(places) > 1:
        expected = "tables that one engine reads: files and frames, or one PostgreSQL database, or Spark"
        raise InvalidArgument("source", expected, "tables of several", "copy them to one place")
    (place,) = places
    if place == "spark":
        from dither.tables.engines.spark import SparkEngine

        named = {table: _after_mark(source) if isinstance(source, str) else source for table, source in sources.items()}
        return SparkEngine(named, card)
    if place != "duckdb":
        need("psycopg", "postgresql")
        from dither.tables.engines.postgresql import PostgreSQLEngine

        return PostgreSQLEngine(place, {table: _after_mark(str(source)) for table, source in sources.items()}, card)
    from dither.tables.engines.duckdb import duckdb_engine

    return duckdb_engine(sources, card, types)


def _after_mark(source: str) -> str:
    """Return the table that a source names after ``::``."""
    return source.rpartition("::")[2]


def _location(source: object) -> str:
    """Return what identifies the engine of a source: "duckdb", "spark", or the URL of a PostgreSQL database; refuse
    other sources."""
    if not isinstance(source, str):
        home = type(source).__module__.partition(".")[0]
        if home == "pyspark":
            return "spark"
        if home in ("pandas", "polars", "pyarrow", "duckdb", "_duckdb"):
            return "duckdb"
        raise WrongType("source", _FORMS, type(source).__name__, "pass one of these")
    place, mark, table = source.rpartition("::")
    if "://" in source:
        scheme = source.partition("://")[0].lower()
        if scheme not in ("postgresql", "postgres"):
            raise InvalidArgument(
                "source", _FORMS, f"{_plain(scheme)}://", "copy the files to this machine, or to PostgreSQL"
            )
        if not mark or "://" not in place:
            raise InvalidArgument("source", "postgresql://…::table", "no table", "add ::table after the database")
        return place
    if not source.strip() or (mark and not (place and table)):
        raise InvalidArgument("source", _FORMS, "an empty name", "say where the rows are")
    return "spark" if mark and place == "spark" else "duckdb"


def malformed_lines(source: str) -> Iterator[tuple[str, int]]:
    """Yield file and line number of each line in CSV files that is not a record. Only for the steward: they are
    private."""
    from dither.tables.engines import files

    result = files.find(source)
    if result.format is not None:
        for path in result.paths:
            for line in files.malformed(path, result.format):
                yield path, line


def _plain(scheme: str) -> str:
    """Return the scheme of a URL for an error, or "an unknown scheme" where it is long or has unusual characters."""
    return scheme if scheme.replace("+", "").isalnum() and len(scheme) <= 20 else "an unknown scheme"


def same_place(one: str, other: str) -> bool:
    """Return whether two sources are tables of one database, so that one connection reads both."""
    left, mark, _ = one.rpartition("::")
    return bool(mark) and left == other.rpartition("::")[0] and (left == "spark" or "://" in left)


_WITHOUT_BOUNDS = ("count", "count_value", "count_distinct", "people", "mode")
"""The kinds of aggregates that need no bounds of a value."""


def with_public_values(engine: Engine, card: Card, query: Query) -> Card:
    """Return the card completed from the contents of the public tables that a query joins.

    Columns that it groups by get their distinct values as public keys. Columns of numbers that it aggregates get their
    least and largest value as bounds, where the card states none. Tables get their distinct rows in the grouping
    columns, which tell the combinations of keys that occur. Tables that are too large stay as they are. Everything in
    a public table is public, and so is what follows from it.
    """
    joins = {join.table: join for join in public_joins(query) if join.table in card.public}
    joins |= {join.table: join for join in public_joins(query) if join.table in card.public and join.left}
    public = dict(card.public)
    read = names_read(query)
    grouped = [*(group.value for group in query.groups), *shown_expressions(query, read)]
    for column in sorted(columns(*grouped), key=str):
        if column.table not in joins or public[column.table].columns[column.name].keys is not None:
            continue
        values = engine.public_values(column.table, column.name, MOST_VALUES)
        if values is None:
            continue
        if joins[column.table].left and None not in values:
            values = (*values, None)
        known = replace(public[column.table].columns[column.name], keys=values)
        table = public[column.table]
        public[column.table] = replace(table, columns={**table.columns, column.name: known})
    bounded_by = [
        item for item in query.aggregates.values() if item.bounds is None and item.kind not in _WITHOUT_BOUNDS
    ]
    added_up = [value for item in bounded_by for value in (item.value, item.other) if value is not None]
    computed = [value for value in (*grouped, *conditions(query)) if isinstance(value, Call)]
    for column in sorted(columns(*added_up, *shown_expressions(query, read), *computed), key=str):
        if column.table is None or column.table not in joins:
            continue
        table = public[column.table]
        of_column = table.columns[column.name]
        if of_column.type not in NUMBERS or of_column.bounds is not None:
            continue
        bounds = engine.public_bounds(column.table, column.name)
        if bounds is not None:
            bounded = replace(of_column, bounds=bounds)
            public[column.table] = replace(table, columns={**table.columns, column.name: bounded})
    for name, join in joins.items():
        by_key = {Column(join.other, name)} if join.own in grouped else set()
        by_group = {column for column in columns(*grouped) | by_key if column.table == name}
        used = {column.name for column in by_group | columns(*conditions(query)) if column.table == name}
        if by_group and len(used) == 1:  # the rows are the column's values, which are its keys by now
            (only,) = used
            known_values = public[name].columns[only].keys
            rows = None if known_values is None else tuple({only: value} for value in known_values)
            public[name] = replace(public[name], rows=public[name].rows or rows)
        elif by_group:
            names = sorted(used.union(*(public[name].rows or ())[:1]))
            lines = engine.public_rows(name, names, MOST_ROWS)
            rows = None if lines is None else tuple(dict(zip(names, line, strict=True)) for line in lines)
            public[name] = replace(public[name], rows=rows)
    return replace(card, public=public)


def read_public(table: PublicTable) -> Any:
    """Return all rows of a public table as an Arrow table."""
    with connect(table.source, Card("public", table.source, table.columns)) as engine:
        return engine.run(f"SELECT * FROM {engine.table.sql(dialect=engine.dialect)} AS t")
