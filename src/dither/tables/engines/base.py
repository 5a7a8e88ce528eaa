"""What the engines share: the contract, the check against the card, and what results look like.

An engine belongs to one process: after a fork the child has the objects, but not the threads and connections behind
them. DuckDB's threads do not exist in the child, and a question would wait for them for ever, after it was charged; a
connection to PostgreSQL or Spark is one socket with two readers. An engine is therefore refused in any process but its
own, before anything is charged, and what it owns is removed by its own process alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

import pyarrow as pa
from sqlglot import exp

from dither.errors import DitherError, InvalidArgument, InvalidData, message
from dither.tables.card.model import Card, ColumnCard, Type
from dither.tables.card.values import Value, literal_type
from dither.tables.compile.context import Statement
from dither.tables.engines.conversions import parsed_text
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect

R = TypeVar("R")

ROWS = "dither_rows"
"""What the source is called in the SQL of an engine that has views of its own."""

withheld_errors: ContextVar[list[BaseException] | None] = ContextVar("withheld_errors", default=None)
"""Where an engine's own errors are put for the steward's log; nowhere else, since they may hold data."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of the source: what the engine calls its type, and what a card may call it, the likeliest first."""

    native: str
    types: tuple[Type, ...]


@dataclass(frozen=True)
class Owner:
    """The process that made an object.

    >>> Owner().is_here
    True
    """

    pid: int = field(default_factory=os.getpid)

    @property
    def is_here(self) -> bool:
        """Whether this is that process."""
        return os.getpid() == self.pid

    def check(self) -> None:
        """Refuse any other process."""
        if not self.is_here:
            raise DitherError(
                message(
                    "table",
                    "one that was opened in this process",
                    "one that was opened before the process was forked",
                    "open it again in this process",
                )
            )


class PrivateFolder:
    """A temporary folder, removed with the object or at the end of the process that made it, and by no other."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="dither-")
        self._remove = weakref.finalize(self, _remove, self.name, Owner())

    def remove(self) -> None:
        """Remove it now."""
        self._remove()


def _remove(name: str, owner: Owner) -> None:
    if owner.is_here:
        shutil.rmtree(name, ignore_errors=True)


class Engine(ABC):
    """A source of rows that runs SQL. Make one with :func:`dither.tables.engines.connect`."""

    dialect: ClassVar[Dialect]

    def __init__(self, card: Card | None) -> None:
        self.card = card
        self._columns: dict[str, Type] = {}
        self._opened: dict[str, SourceColumn] = {}
        self._public: dict[str, exp.Expr] = {}
        self._lock = threading.RLock()
        self._stopped = False
        self._owner = Owner()

    # -- what each engine does in its own way -----------------------------------------------------------------------

    @abstractmethod
    def source_columns(self) -> Mapping[str, SourceColumn]:
        """The columns of the source as they are now, from its schema."""

    @abstractmethod
    def _raw(self) -> exp.Expr:
        """The source as it is, for FROM."""

    @abstractmethod
    def _canonical(self, name: str, result: SourceColumn, type: Type) -> exp.Expr:
        """A column of the source as the card's type. Never fails on a value."""

    @abstractmethod
    def _name(self, view: str, query: exp.Expr) -> exp.Expr:
        """Something for FROM that means the query: a view of that name where the engine has them."""

    @abstractmethod
    def _execute(self, sql: str) -> Any:
        """Run one SELECT and return its rows as Arrow; errors are the engine's own."""

    @abstractmethod
    def _explain(self, error: Exception) -> tuple[DitherError, bool] | None:
        """What to say about an engine's error, and whether its message is free of data; None if it is none of its."""

    @abstractmethod
    def _stage(self, name: str, rows: Any) -> exp.Expr:
        """Hold an Arrow table beside the source, for FROM."""

    @abstractmethod
    def _drop(self, staged: exp.Expr) -> None:
        """Remove what :meth:`stage` returned."""

    @abstractmethod
    def _cancel(self) -> None:
        """Stop what runs now."""

    @abstractmethod
    def _close(self) -> None:
        """Give everything back."""

    # -- the contract -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Check the source and name its columns; :func:`connect` calls it."""
        result = self.check()
        self._columns = (
            {name: column.types[0] for name, column in result.items() if column.types}
            if self.card is None
            else {name: column.type for name, column in self.card.columns.items()}
        )
        if not self._columns:
            raise InvalidData(
                message("source", "columns of numbers, text or dates", "none", "convert its columns before")
            )
        self._opened = {name: result[name] for name in self._columns}
        columns = {name: ColumnCard(type) for name, type in self._columns.items()}
        if self.card is not None:
            columns = dict(self.card.columns)
        self._table = self._safely(lambda: self._name(ROWS, self._query(result, columns, self._raw())))

    def _query(
        self, result: Mapping[str, SourceColumn], columns: Mapping[str, ColumnCard], raw: exp.Expr
    ) -> exp.Select:
        columns_sql = [
            exp.alias_(self._typed_column(name, result[name], column), exp.to_identifier(name, quoted=True))
            for name, column in columns.items()
        ]
        return exp.select(*columns_sql).from_(raw)

    def _typed_column(self, name: str, result: SourceColumn, column: ColumnCard) -> exp.Expr:
        """A column as the card's type; a text that is too long for every function of every engine is NULL."""
        if column.format is not None:
            text = self._typed_column(name, result, ColumnCard("text"))
            return parsed_text(text, column.format, column.type, self.dialect)
        type = column.type
        value = self._canonical(name, result, type)
        return (
            nodes.limit_text(value, nodes.cast(nodes.column(name), "text"), self.dialect) if type == "text" else value
        )

    @property
    def table(self) -> exp.Expr:
        """The source for FROM: the card's columns, each of the card's type. Give it an alias."""
        return self._table.copy()

    @property
    def empty(self) -> exp.Expr:
        """Something for FROM like :attr:`table`, without any row, to try a statement on. Give it an alias."""
        columns_sql = [
            exp.alias_(nodes.cast(exp.null(), type), exp.to_identifier(name, quoted=True))
            for name, type in self._columns.items()
        ]
        return exp.select(*columns_sql).where(exp.false()).subquery()

    @property
    def reads_csv(self) -> bool:
        """Whether the source is CSV, whose cells are all text until a card says what they are."""
        return False

    @property
    def columns(self) -> Mapping[str, Type]:
        """The columns of :attr:`table` and their types."""
        return dict(self._columns)

    def schema(self) -> dict[str, Type]:
        """The source's usable columns as types of a card, from its schema only. Those of a CSV file are all text."""
        return {name: result.types[0] for name, result in self._safely(self.source_columns).items() if result.types}

    def unusable(self) -> list[str]:
        """The source's columns that no card's type fits: lists, bytes, times of day."""
        return [name for name, result in self._safely(self.source_columns).items() if not result.types]

    def check(self) -> Mapping[str, SourceColumn]:
        """Whether the source has the card's columns with the card's types; refused if not. Reads no rows."""
        result = self._safely(self.source_columns)
        folded: dict[str, str] = {}
        for name in result:
            if folded.setdefault(name.casefold(), name) != name:
                raise InvalidData(
                    message("source", "columns that differ by more than case", "two that do not", "rename one of them")
                )
        for name, column in (self.card.columns if self.card else {}).items():
            check_column(name, column, result)
        if any(result.get(name) != column for name, column in self._opened.items()):
            # how a column is read was settled by the type it had
            raise source_error("the columns that it had when it was opened", "others", "open it again")
        return result

    def run(self, query: str | exp.Expr | Statement) -> Any:
        """The answer to one SELECT, as an Arrow table of int64, double, string, bool, date32 and timestamp[us].

        Whole numbers of any width come as int64. Ctrl-C stops the engine, too.
        """
        sql = self._text(query)
        self._owner.check()  # before the lock, which a thread of the parent may have held
        with self._lock:
            self._stopped = False
            return self._safely(lambda: plain(self._execute(sql)))

    def _text(self, query: str | exp.Expr | Statement) -> str:
        if isinstance(query, Statement):
            return query.text
        return query if isinstance(query, str) else nodes.render(query, self.dialect)

    def rehearse(self, query: str | Statement) -> None:
        """Run a statement about :attr:`empty`, which reads no rows of the source, and forget its answer."""
        sql = self._text(query)
        with self._lock:
            self._stopped = False
            self._safely(lambda: self._execute(sql))

    def public(self, name: str) -> exp.Expr:
        """A public table of the card, for FROM. Give it an alias."""
        from dither.tables.engines import read_public

        tables = self.card.public if self.card else {}
        if name not in tables:
            raise InvalidArgument(
                message("public table", "one that the card names", "another", "add it to the card under [public]")
            )
        self._owner.check()
        with self._lock:
            if name not in self._public:
                self._public[name] = self._beside(name) or self._stage(
                    f"dither_public_{len(self._public)}", read_public(tables[name])
                )
            return self._public[name].copy()

    def stage(self, name: str, rows: Any) -> exp.Expr:
        """Hold an Arrow table beside the source, so that a statement can join it. Only this connection sees it.

        What is returned stands in FROM; give it an alias. :meth:`drop` removes the table, and so does :meth:`close`.
        The name is a plain word that no table has.
        """
        self._owner.check()
        with self._lock:
            return self._stage(name, rows)

    def drop(self, staged: exp.Expr) -> None:
        """Remove a table that :meth:`stage` made. An engine that can no longer do it loses the table as it closes."""
        if self._owner.is_here:
            with self._lock, suppress(Exception):
                self._drop(staged)

    def _beside(self, name: str) -> exp.Expr | None:
        """A public table where the source is, if it is there."""
        return None

    def unique(self, name: str, column: str) -> bool:
        """Whether no value occurs twice in a column of a public table. NULLs, which join nothing, do not count.

        Equality is that of the join: on the column as it is.
        """
        key = nodes.column(column, "p")
        twice = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(
            exp.alias_(self.public(name), "p", table=True)
        )
        twice = twice.where(exp.Not(this=exp.Is(this=key, expression=exp.null()))).group_by(key)
        most = exp.select(exp.alias_(exp.Max(this=exp.column("n")), "most")).from_(twice.subquery("c"))
        result = self.run(most).column("most")[0].as_py()
        return result is None or result == 1

    def public_values(self, name: str, column: str, most: int) -> tuple[Value, ...] | None:
        """The different values of a column of a public table, in order, NULL last; None where they are more than
        ``most``, or one of them cannot be written as a constant."""
        values = exp.select(exp.alias_(nodes.column(column, "p"), "k")).from_(
            exp.alias_(self.public(name), "p", table=True)
        )
        result = self.run(values.distinct().limit(most + 1)).column("k").to_pylist()
        if len(result) > most:
            return None
        try:
            for value in result:
                literal_type(value)
        except DitherError:
            return None
        known = sorted(value for value in result if value is not None)
        return (*known, *(value for value in result if value is None))

    def _safely(self, work: Callable[[], R]) -> R:
        """Do it, and turn the engine's errors into ours. A message that may hold data goes with the error it came in:
        ours is raised outside its handler, so that it is not even kept as the context.
        """
        self._owner.check()
        try:
            return work()
        except (DitherError, KeyboardInterrupt):
            raise
        except Exception as error:
            withheld = withheld_errors.get()
            if withheld is not None:
                withheld.append(error)
            refusal = self._explain(error)
            if refusal is None:
                raise
            ours, harmless = refusal
            cause = error if harmless else None
        if self._stopped:
            raise DitherError(
                message("question", "one that runs to its end", "one that was stopped", "ask again with the same key")
            )
        if cause is not None:
            raise ours from cause
        raise ours

    def cancel(self) -> None:
        """Stop what runs now, from another thread."""
        if self._owner.is_here:
            self._stopped = True
            self._cancel()

    def close(self) -> None:
        """Give everything back. The engine cannot be used afterwards.

        In a process that was forked since, nothing is: the threads and connections are the parent's.
        """
        if self._owner.is_here:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def check_column(name: str, column: ColumnCard, result: Mapping[str, SourceColumn]) -> None:
    """Whether the source has this column of the card; refused if not."""
    if name not in result:
        near = next((other for other in result if other.casefold() == name.casefold()), None)
        fix = f"write it as {near}" if near else "correct the card, or add the column to the source"
        raise InvalidData(message(f"column {name}", "a column of the source", "none of that name", fix))
    if column.format is not None:
        if "text" not in result[name].types:
            fix = "leave format out of the card: the source says what they are"
            raise InvalidData(message(f"column {name}", "text, as the card's format says", result[name].native, fix))
    elif column.type not in result[name].types:
        likely = result[name].types[:1]
        fix = f"say type = '{likely[0]}' in the card" if likely else "leave it out of the card"
        raise InvalidData(message(f"column {name}", f"{column.type}, as the card says", result[name].native, fix))


def source_error(expected: str, got: str, fix: str) -> InvalidData:
    """A source that cannot be used."""
    return InvalidData(message("source", expected, got, fix))


def unreadable() -> InvalidData:
    """What is said about an error while rows are read: always the same."""
    return source_error(
        "rows that the engine can read",
        "an error of the engine",
        "check the source; the engine's message is withheld, since it may hold data",
    )


def plain(rows: Any) -> Any:
    """An Arrow table with the plain types only.

    >>> plain(pa.table({"n": pa.array([1], pa.decimal128(38, 0))})).schema.field("n").type
    DataType(int64)
    """
    arrays = [_plain(column) for column in rows.columns]
    return pa.table(arrays, names=rows.column_names)


def _plain(column: Any) -> Any:
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
