"""What the engines share: the contract, the check against the card, and what results look like.

An engine has one private table or several, by their names in SQL. Whatever holds for one of them holds for each: it has
the card's columns with the card's types, it is checked again before every question, and no value makes it fail.

An engine belongs to one process: after a fork the child has the objects, but not the threads and connections behind
them. DuckDB's threads do not exist in the child, and a question would wait for them for ever, after it was charged; a
connection to PostgreSQL or Spark is one socket with two readers. An engine is therefore refused in any process but its
own, before anything is charged, and what it owns is removed by its own process alone.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

import pyarrow as pa
from sqlglot import exp

from dither.errors import DitherError, InvalidArgument, InvalidData
from dither.release.pipeline import withheld_errors
from dither.stateful import process
from dither.tables.card.model import Card, ColumnCard, Type, arrow_type
from dither.tables.card.values import Value, clip, literal_type
from dither.tables.compile.context import Statement
from dither.tables.compile.person_paths import rows_beyond_path, with_person
from dither.tables.draft_paths import ForeignKey
from dither.tables.engines.conversions import KeyCells, parsed_text, unit_text
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect


def source_error(expected: str, got: str, fix: str) -> InvalidData:
    """Return the error for a source that cannot be used."""
    return InvalidData("source", expected, got, fix)


def unreadable() -> InvalidData:
    """Return the error for a failure while rows are read. It is always the same, since the engine's own message may
    hold data."""
    return source_error(
        "rows that the engine can read",
        "an error of the engine",
        "check the source; the engine's message is withheld, since it may hold data",
    )


R = TypeVar("R")
CellReading = ColumnCard | KeyCells | str | None
"""Which cells :meth:`Engine.count_cells` counts: those that can be read as a card's column says, that are public keys,
that match a pattern, or (None) that are not NULL."""

ROWS = "dither_rows"
"""What the source is called in the SQL of an engine that has views of its own."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of the source: what the engine calls its type, and what a card may call it, the likeliest first.

    ``unit_types`` are the types as which the column may name people: distinct values stay distinct, so that no person
    is dropped and no two people become one. ``collated`` says that text may have a collation.
    """

    native: str
    types: tuple[Type, ...]
    unit_types: tuple[Type, ...] = ()
    collated: bool = False


@dataclass(frozen=True)
class OpenTable:
    """A private table as it was opened: its columns, those of its source, and what stands in FROM for it."""

    columns: Mapping[str, ColumnCard]
    source_columns: Mapping[str, SourceColumn]
    node: exp.Expr


@dataclass(frozen=True)
class EngineFailure:
    """What is said about an error of an engine. Where that is ``free_of_data``, because it was found before any row was
    read, the engine's own error is its cause."""

    refusal: DitherError
    free_of_data: bool = False


class Engine(ABC):
    """A source of rows that runs SQL. Make one with :func:`dither.tables.engines.connect`."""

    dialect: ClassVar[Dialect]

    def __init__(self, card: Card | None) -> None:
        """Keep the card, which says how the source's columns are read; None reads the schema of a source before a card
        exists."""
        self.card = card
        self._tables = {} if card is None else dict(card.private_tables)
        self._stated = {name: table.stated_columns for name, table in self._tables.items()}
        self._private: dict[str, OpenTable] = {}
        self._public: dict[str, exp.Expr] = {}
        self._lock = threading.RLock()
        self._stopped = False
        self._process = process()

    # -- what each engine does in its own way -----------------------------------------------------------------------

    @abstractmethod
    def _source_columns(self, table: str) -> Mapping[str, SourceColumn]:
        """Return the current columns of a table's source, from its schema."""

    @abstractmethod
    def _raw(self, table: str) -> exp.Expr:
        """Return a table's source, unconverted, for FROM."""

    @abstractmethod
    def _name(self, view: str, query: exp.Expr) -> exp.Expr:
        """Return an element of FROM for a query: a view with this name where the engine can create views, otherwise a
        subquery."""

    @abstractmethod
    def _execute(self, sql: str) -> Any:
        """Run one SELECT and return its rows as Arrow; errors are the engine's own."""

    @abstractmethod
    def _canonical(self, name: str, result: SourceColumn, type: Type) -> exp.Expr:
        """Return a source column converted to the card's type; no value makes it fail."""

    def _query(
        self,
        present: Mapping[str, SourceColumn],
        columns: Mapping[str, ColumnCard],
        raw: exp.Expr,
        unit: str | None = None,
    ) -> exp.Select:
        """Return the SELECT that converts a source's columns to the card's types; ``unit`` names the person's
        column."""
        columns_sql = [
            exp.alias_(
                self._unit_column(name, present[name], column)
                if name == unit
                else self._typed_column(name, present[name], column),
                exp.to_identifier(name, quoted=True),
            )
            for name, column in columns.items()
        ]
        return exp.select(*columns_sql).from_(raw)

    def _typed_column(self, name: str, present: SourceColumn, column: ColumnCard) -> exp.Expr:
        """Return a column converted to the card's type; text that is too long for some engine's functions is NULL."""
        if column.format is not None:
            text = self._typed_column(name, present, ColumnCard("text"))
            return parsed_text(text, column.format, column.type, self.dialect)
        type = column.type
        value = self._canonical(name, present, type)
        return (
            nodes.limit_text(value, nodes.cast(nodes.column(name), "text"), self.dialect) if type == "text" else value
        )

    def _unit_column(self, name: str, present: SourceColumn, column: ColumnCard) -> exp.Expr:
        """Return the column that names the person, converted so that distinct values stay distinct; only NULL and NaN
        become NULL."""
        if column.type != "text":
            return self._typed_column(name, present, column)
        is_double = present.types[:1] == ("number",) and "integer" in present.types
        canonical = self._canonical(name, present, "text")
        return unit_text(nodes.column(name), canonical, self.dialect, is_double=is_double)

    @abstractmethod
    def _failure(self, error: Exception) -> EngineFailure | None:
        """Return the refusal that replaces an exception of the engine; None for other exceptions."""

    @abstractmethod
    def _stage(self, name: str, rows: Any) -> exp.Expr:
        """Create a temporary table from an Arrow table and return it for FROM."""

    @abstractmethod
    def _drop(self, staged: exp.Expr) -> None:
        """Remove a table that :meth:`_stage` created."""

    @abstractmethod
    def _cancel(self) -> None:
        """Interrupt the running statement."""

    @abstractmethod
    def _close(self) -> None:
        """Release connections and temporary files."""

    # -- the contract -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Check every table's source against the card, and create the view (or subquery) of its converted columns that
        questions read; :func:`connect` calls it once."""
        for place, table in self._in_order_of_paths():
            present = self._check_table(table)
            columns = (
                {name: ColumnCard(column.types[0]) for name, column in present.items() if column.types}
                if self.card is None
                else dict(self._declared(table))
            )
            if not columns:
                raise InvalidData("source", "columns of numbers, text or dates", "none", "convert its columns before")
            unit = self._unit(table)
            query = self._query(present, columns, self._raw(table), unit)
            if self.card is not None and unit is not None and self.card.counts_rows_without_unit:
                query = query.where(self._readable_or_null(unit, present[unit], columns[unit]))
            view = ROWS if place == 0 else f"{ROWS}_{place}"
            of_source = {name: present[name] for name in columns}
            path = self._tables[table].path if table in self._tables else None
            if path is not None:
                end, columns = self._tables[path.table], dict(self._tables[table].columns)
                unit, person = self._tables[table].unit, end.unit
                assert unit is not None
                assert person is not None
                query = with_person(query, path, unit, self.private(path.table), person)
            node = self._safely(partial(self._name, view, query))
            self._private[table] = OpenTable(columns, of_source, node)

    def _in_order_of_paths(self) -> list[tuple[int, str]]:
        """Return the private tables with their places in the card, each after those that its path to the person
        passes."""

        def hops(name: str) -> int:
            """Return how many tables the path of a table passes."""
            path = self._tables[name].path if name in self._tables else None
            return 0 if path is None else 1 + hops(path.table)

        return sorted(enumerate(self.table_names), key=lambda item: hops(item[1]))

    @property
    def table_names(self) -> tuple[str, ...]:
        """The names of the private tables; without a card there is one, whose name is empty."""
        return ("",) if self.card is None else tuple(self._tables) or (self.card.name,)

    @property
    def _own(self) -> str:
        """The name of the card's own table; refused where the card has several tables and none of its own."""
        names = self.table_names
        if len(names) > 1 and self.card is not None and self.card.name not in names:
            raise InvalidArgument("table", f"one of {', '.join(names)}", "none", "say which of them")
        return names[0]

    def _declared(self, table: str) -> Mapping[str, ColumnCard]:
        """Return the columns that the card declares for a table; none without a card."""
        return self._stated.get(table, {})

    def _unit(self, table: str) -> str | None:
        """Return the column of a table's source that names the person; None where every row is a person of its own, and
        where the person is reached by a path."""
        if table not in self._tables or self._tables[table].path is not None:
            return None
        return self._tables[table].unit

    def _readable_or_null(self, unit: str, present: SourceColumn, column: ColumnCard) -> exp.Expr:
        """Return the condition that a unit is NULL in the source or converts to the card's type.

        Rows with an unreadable unit must not count as rows without one, each of which is a person.
        """
        readable = nodes.is_not_null(self._unit_column(unit, present, column))
        return nodes.binary("or", nodes.is_null(nodes.column(unit)), readable)

    def private(self, name: str) -> exp.Expr:
        """Return a private table, with the card's columns and types, as an element of FROM without an alias."""
        return self._open_table(name).node.copy()

    def empty_of(self, name: str) -> exp.Expr:
        """Return a subquery with the columns of :meth:`private` and no rows, as an element of FROM without an alias, on
        which statements are rehearsed."""
        columns_sql = [
            exp.alias_(nodes.cast(exp.null(), column.type), exp.to_identifier(column_name, quoted=True))
            for column_name, column in self._open_table(name).columns.items()
        ]
        return exp.select(*columns_sql).where(exp.false()).subquery()

    def _open_table(self, name: str) -> OpenTable:
        """Return a prepared private table by its name in SQL; refuse other names."""
        if name not in self._private:
            expected = f"one of {', '.join(self._private)}"
            raise InvalidArgument("table", expected, repr(clip(name)), "use one that the card names")
        return self._private[name]

    @property
    def table(self) -> exp.Expr:
        """The card's own table for FROM, as :meth:`private` returns it."""
        return self.private(self._own)

    @property
    def reads_csv(self) -> bool:
        """Whether the source is CSV, whose cells are text until a card states their types."""
        return False

    @property
    def columns(self) -> Mapping[str, Type]:
        """The columns of the card's own table and their types."""
        return {name: column.type for name, column in self._open_table(self._own).columns.items()}

    def source_columns(self, table: str | None = None) -> Mapping[str, SourceColumn]:
        """Return the current columns of a table's source, from its schema; by default of the card's own table."""
        return self._safely(lambda: self._source_columns(self._own if table is None else table))

    def schema(self, unit: str | None = None) -> dict[str, Type]:
        """Return the source's usable columns with the types that a draft of a card states; columns of CSV files are
        text.

        The column ``unit``, which names the person, has a type in which distinct values stay distinct, if there is one.
        """
        return {
            name: present.unit_types[0] if name == unit and present.unit_types else present.types[0]
            for name, present in self.source_columns().items()
            if present.types
        }

    def foreign_keys(self) -> list[ForeignKey]:
        """Return the foreign keys that the source's database declares of it; none for files and frames."""
        return self._safely(lambda: self._foreign_keys(self._own))

    def _foreign_keys(self, table: str) -> list[ForeignKey]:
        """Return the foreign keys of a table's source."""
        return []

    def unusable(self) -> list[str]:
        """Return the source's columns whose type no card can state, such as lists, bytes and times of day."""
        return [name for name, present in self.source_columns().items() if not present.types]

    @property
    def private_files(self) -> tuple[str, ...]:
        """The files that hold private rows, for sources that are files."""
        return ()

    def check(self) -> None:
        """Refuse sources that no longer have the card's columns and types. Reads no rows."""
        for table in self.table_names:
            self._check_table(table)

    def check_people(self) -> None:
        """Refuse a source in which the column that names people has unreadable values, so that some people would be in
        no answer. Only for the steward: it reads rows.

        This is possible only in CSV files; in other sources the column's type excludes it.
        """
        for table in self.table_names:
            unit = self._unit(table)
            if unit is not None and self._has_unread_units(table, unit):
                expected = f"whole numbers of 64 bits in {unit}, which names the person"
                fix = f"correct them, or say type = 'text' of {unit} in the card: these people are in no answer"
                raise source_error(expected, "other cells", fix)

    def _has_unread_units(self, table: str, unit: str) -> bool:
        """Return whether some value of the unit cannot be read and would be NULL."""
        return False

    def count_cells(
        self, table: str, readings: Sequence[tuple[str, CellReading]], most: int | None = None
    ) -> list[int]:
        """Return, for each pair of a column and a reading, the number of cells of a table that can be read that way.

        Only for the steward: it reads rows, and the counts are exact. A reading is a :class:`ColumnCard` (its type and
        format), a :class:`KeyCells` (its public keys), a regular expression without backslashes that matches part of
        the cell, or None for cells that are not NULL. With ``most``, all readings are of one column, and only its first
        ``most`` cells that are not NULL are counted.
        """
        present = self.source_columns(table)
        counts = [
            exp.alias_(exp.Count(this=self._as_read(name, present[name], reading)), f"n{place}")
            for place, (name, reading) in enumerate(readings)
        ]
        rows = self._raw(table)
        if most is not None:
            cells = nodes.column(readings[0][0])
            rows = exp.select(cells).from_(rows).where(nodes.is_not_null(cells)).limit(most).subquery("cells")
        line = self.run(exp.select(*counts).from_(rows)).to_pylist()[0]
        return [int(line[f"n{place}"]) for place in range(len(readings))]

    def count_beyond_path(self, table: str) -> tuple[int, int]:
        """Return how many rows of a table reach no person by its path, and how many keys of the path's next table have
        several rows.

        Only for the steward: it reads rows, and the counts are not private.
        """
        path = self._tables[table].path
        assert path is not None
        unit, person = self._tables[table].unit, self._tables[path.table].unit
        assert unit is not None
        assert person is not None
        query = rows_beyond_path(self.private(table), unit, path, self.private(path.table), person)
        line = self.run(query).to_pylist()[0]
        return int(line["unreached"]), int(line["repeated"])

    def _as_read(self, name: str, present: SourceColumn, reading: CellReading) -> exp.Expr:
        """Return the column ``name`` as SQL that is NULL where its cell cannot be read that way (see
        :meth:`count_cells`)."""
        cell = nodes.column(name)
        if reading is None:
            return cell
        if isinstance(reading, ColumnCard):
            return self._typed_column(name, present, reading)
        if isinstance(reading, KeyCells):
            keys = [nodes.literal(key) for key in reading.column.keys or () if key is not None]
            is_key = nodes.in_list(self._typed_column(name, present, reading.column), keys)
            return nodes.case([(is_key, exp.true())], exp.null())
        matches = exp.RegexpLike(this=nodes.cast(cell, "text"), expression=exp.Literal.string(reading))
        return nodes.case([(matches, exp.true())], exp.null())

    def _check_table(self, table: str) -> Mapping[str, SourceColumn]:
        """Return the current columns of a table's source; refuse a source that does not fit the card."""
        try:
            present = self._safely(lambda: self._source_columns(table))
            self._check_columns(table, present)
        except InvalidData as error:
            if len(self.table_names) == 1:
                raise
            refusal = error.within(f"table {table}: ")
        else:
            return present
        raise refusal

    def _check_columns(self, table: str, present: Mapping[str, SourceColumn]) -> None:
        """Refuse a source of ``table`` whose columns do not fit the card, or have changed since it was opened."""
        folded: dict[str, str] = {}
        for name in present:
            if folded.setdefault(name.casefold(), name) != name:
                raise InvalidData(
                    "source", "columns that differ by more than case", "two that do not", "rename one of them"
                )
        for name, column in self._declared(table).items():
            check_column(name, column, present, is_unit=name == self._unit(table))
        opened = self._private[table].source_columns if table in self._private else {}
        if any(present.get(name) != column for name, column in opened.items()):
            # the converting view was made for the old type
            raise source_error("the columns that it had when it was opened", "changed columns", "open it again")

    def run(self, query: str | exp.Expr | Statement) -> Any:
        """Return the rows of one SELECT as an Arrow table of int64, double, string, bool, date32 and timestamp[us]
        columns; integers of any width become int64. Ctrl-C interrupts the engine as well."""
        sql = self._text(query)
        self._check_process()  # before the lock, which a thread of the parent may have held
        with self._lock:
            self._stopped = False
            return self._safely(lambda: with_plain_types(self._execute(sql)))

    def _text(self, query: str | exp.Expr | Statement) -> str:
        """Return a query as SQL text of this engine."""
        if isinstance(query, Statement):
            return query.text
        return query if isinstance(query, str) else nodes.render(query, self.dialect)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run the statements of a ``with`` block on one snapshot of all tables; engines without snapshots run them as
        they are."""
        yield

    def rehearse(self, query: str | Statement) -> None:
        """Run a statement on empty tables (:meth:`empty_of`), which reads no private rows, and discard its result."""
        sql = self._text(query)
        with self._lock:
            self._stopped = False
            self._safely(lambda: self._execute(sql))

    def public(self, name: str) -> exp.Expr:
        """Return a public table of the card for FROM, loaded at first use; the caller adds an alias."""
        from dither.tables.engines import read_public

        tables = self.card.public if self.card else {}
        if name not in tables:
            raise InvalidArgument(
                "public table", "one that the card names", repr(clip(name)), "add it to the card under [public]"
            )
        self._check_process()
        with self._lock:
            if name not in self._public:
                self._public[name] = self._beside(name) or self._stage(
                    f"dither_public_{len(self._public)}", read_public(tables[name])
                )
            return self._public[name].copy()

    def _beside(self, name: str) -> exp.Expr | None:
        """Return a public table of the same database as the private one as an element of FROM; None where it is
        elsewhere, and has to be loaded."""
        return None

    def unique(self, name: str, *columns: str) -> bool:
        """Return whether columns of a public table together have no repeated values, so that they can be the key of a
        join. Rows with a NULL among them do not count."""
        keys = [nodes.column(column, "p") for column in columns]
        twice = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(
            exp.alias_(self.public(name), "p", table=True)
        )
        twice = twice.where(*map(nodes.is_not_null, keys)).group_by(*keys)
        most = exp.select(exp.alias_(exp.Max(this=exp.column("n")), "most")).from_(twice.subquery("c"))
        result = self.run(most).column("most")[0].as_py()
        return result is None or result == 1

    def public_values(self, name: str, column: str, most: int) -> tuple[Value, ...] | None:
        """Return the distinct values of a public table's column in order, NULL last; None where there are more than
        ``most``, or some that cannot be constants."""
        lines = self.public_rows(name, (column,), most)
        if lines is None:
            return None
        result = [value for (value,) in lines]
        known = sorted(value for value in result if value is not None)
        return (*known, *(value for value in result if value is None))

    def public_bounds(self, name: str, column: str) -> tuple[float, float] | None:
        """Return the least and the largest finite number of a public table's column; None where it has not two."""
        value = nodes.column(column, "p")
        large = nodes.double(1e100)
        inside = nodes.all_of([nodes.binary("<=", value, large), nodes.binary(">=", value, nodes.negate(large))])
        ends = [exp.alias_(exp.Min(this=value), "low"), exp.alias_(exp.Max(this=value), "high")]
        line = self.run(exp.select(*ends).from_(exp.alias_(self.public(name), "p", table=True)).where(inside))
        low, high = line.column("low")[0].as_py(), line.column("high")[0].as_py()
        return None if low is None or not low < high else (low, high)

    def public_rows(self, name: str, columns: Sequence[str], most: int) -> tuple[tuple[Value, ...], ...] | None:
        """Return the distinct rows of a public table in some columns; None where there are more than ``most``, or
        values that cannot be constants."""
        selected = [exp.alias_(nodes.column(column, "p"), f"k{i}") for i, column in enumerate(columns)]
        query = exp.select(*selected).from_(exp.alias_(self.public(name), "p", table=True))
        result = self.run(query.distinct().limit(most + 1))
        if result.num_rows > most:
            return None
        lines = tuple(zip(*(result.column(f"k{i}").to_pylist() for i in range(len(columns))), strict=True))
        try:
            for value in itertools.chain.from_iterable(lines):
                literal_type(value)
        except DitherError:
            return None
        return lines

    def public_table(self, name: str, types: Mapping[str, Type], most: int) -> pa.Table:
        """Return the rows of a public table as Arrow, in columns of these ``types``; refuse more than ``most`` rows."""
        columns = [exp.alias_(nodes.column(column, "p"), column, quoted=True) for column in types]
        query = exp.select(*columns).from_(exp.alias_(self.public(name), "p", table=True))
        rows = self.run(query.limit(most + 1))
        if rows.num_rows > most:
            fix = "aggregate it before, or join it inside of the aggregation"
            raise InvalidArgument(f"public table {name}", f"at most {most:,} rows beside an answer", "more", fix)
        return rows.cast(pa.schema([pa.field(column, arrow_type(kind)) for column, kind in types.items()]))

    def stage(self, name: str, rows: Any) -> exp.Expr:
        """Create a temporary table from an Arrow table and return it as an element of FROM without an alias.

        Statements of this connection can join it. :meth:`drop` removes it, and so does :meth:`close`. ``name`` is an
        unused identifier that needs no quotes.
        """
        self._check_process()
        with self._lock:
            return self._stage(name, rows)

    def drop(self, staged: exp.Expr) -> None:
        """Remove a table that :meth:`stage` created; errors are ignored, since closing removes it, too."""
        if process() == self._process:
            with self._lock, suppress(Exception):
                self._drop(staged)

    def _check_process(self) -> None:
        """Refuse to work in any process but the one that opened the engine."""
        if process() != self._process:
            got, fix = "one that was opened before the process was forked", "open it again in this process"
            raise DitherError("table", "one that was opened in this process", got, fix)

    def _safely(self, work: Callable[[], R]) -> R:
        """Return the result of ``work``; replace an exception of the engine by a refusal without its message, which may
        hold data. The refusal is raised outside the handler, so that it does not keep the exception as context."""
        self._check_process()
        try:
            return work()
        except (DitherError, KeyboardInterrupt):
            raise
        except Exception as error:
            withheld = withheld_errors.get()
            if withheld is not None:
                withheld.append(error)
            failure = self._failure(error)
            if failure is None:
                raise
            cause = error if failure.free_of_data else None
        if self._stopped:
            raise DitherError(
                "question", "one that runs to its end", "one that was stopped", "ask again with the same key"
            )
        if cause is not None:
            raise failure.refusal from cause
        raise failure.refusal

    def cancel(self) -> None:
        """Interrupt the running statement; to be called from another thread."""
        if process() == self._process:
            self._stopped = True
            self._cancel()

    def close(self) -> None:
        """Release connections and temporary files; the engine cannot be used afterwards. In a forked child nothing is
        released, since threads and connections belong to the parent."""
        if process() == self._process:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def check_column(name: str, column: ColumnCard, present: Mapping[str, SourceColumn], *, is_unit: bool = False) -> None:
    """Refuse a column of the card that is missing in the source, or whose type there does not fit.

    ``present`` has the source's columns by ``name``. ``is_unit`` says that the column names the person: then different
    values have to stay different as the card's type.
    """
    if name not in present:
        near = next((other for other in present if other.casefold() == name.casefold()), None)
        fix = f"write it as {near}" if near else "correct the card, or add the column to the source"
        raise InvalidData(f"column {name}", "a column of the source", "none of that name", fix)
    native, types, unit_types = present[name].native, present[name].types, present[name].unit_types
    if column.format is not None and is_unit:
        fix = "say type = 'text' in the card, without a format: two texts may write one number"
        raise InvalidData(f"column {name}", "a unit as the source has it", "one with a format", fix)
    if column.format is not None:
        if "text" not in types:
            fix = "leave format out of the card: the source says what they are"
            raise InvalidData(f"column {name}", "text, as the card's format says", native, fix)
    elif is_unit and column.type not in unit_types:
        fix = f"say type = '{unit_types[0]}' in the card" if unit_types else "make it text in the source, or in a view"
        expected = f"a unit whose values all differ as {column.type}"
        raise InvalidData(f"column {name}", expected, native, fix)
    elif not is_unit and column.type not in types:
        fix = f"say type = '{types[0]}' in the card" if types else "leave it out of the card"
        raise InvalidData(f"column {name}", f"{column.type}, as the card says", native, fix)


def with_plain_types(rows: Any) -> Any:
    """Return an Arrow table with every column converted to one of the types that results have."""
    arrays = [_with_plain_type(column) for column in rows.columns]
    return pa.table(arrays, names=rows.column_names)


def _with_plain_type(column: Any) -> Any:
    """Return an Arrow column as int64, double, bool, date32, timestamp[us] or string."""
    kind = column.type
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_boolean(kind):
        return column
    if pa.types.is_date(kind):
        return column.cast(pa.date32())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.timestamp("us"))
    return column.cast(pa.string())


class PrivateFolder:
    """A temporary folder, removed with the object or at the end of the process that made it, and by no other."""

    def __init__(self) -> None:
        """Create the folder, and register its removal at the end of this process."""
        self.name = tempfile.mkdtemp(prefix="dither-")
        self._remove = weakref.finalize(self, _remove, self.name, process())

    def remove(self) -> None:
        """Remove the folder and everything in it now."""
        self._remove()


def _remove(name: str, owner: tuple[int, int]) -> None:
    """Remove a temporary folder, in the process that created it only."""
    if process() == owner:
        shutil.rmtree(name, ignore_errors=True)
