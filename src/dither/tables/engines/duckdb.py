"""DuckDB, embedded: files, DuckDB databases and frames in memory.

The sources of a card get a database of their own in memory, which may open them and nothing else: no other file, no
network, no extension, no setting once it is set up. What does not fit in memory goes, encrypted, to a folder of
its own.

Cells of CSV files are read as text (:mod:`dither.tables.engines.files`) and then as the card's types: a cell that
cannot be read so is NULL, as an empty one is. The sign between cells (comma, semicolon, tab or bar) is known from the
header.

Files are read in full once, when they become known with a card and whenever they have changed: a CSV file with a line
that is no record and a Parquet file with text that is not UTF-8 are refused then, so that no question can find them.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from dither.errors import InvalidArgument, InvalidData
from dither.tables.card.model import TYPES, Card, ColumnCard, Type
from dither.tables.draft_paths import ForeignKey
from dither.tables.engines import files, frames
from dither.tables.engines.base import Engine, EngineFailure, PrivateFolder, SourceColumn, source_error, unreadable
from dither.tables.engines.conversions import whole_double
from dither.tables.query import nodes

_LOCKED = (
    "SET enable_progress_bar = false",
    "SET TimeZone = 'UTC'",
    "SET python_enable_replacements = false",
    "SET temp_file_encryption = true",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_TYPES: dict[str, tuple[Type, ...]] = {
    **dict.fromkeys(
        (
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "HUGEINT",
            "UTINYINT",
            "USMALLINT",
            "UINTEGER",
            "UBIGINT",
            "UHUGEINT",
        ),
        ("integer", "number"),
    ),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ("number", "integer")),
    **dict.fromkeys(("VARCHAR", "ENUM", "UUID"), ("text",)),
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"), ("timestamp",)
    ),
    "BOOLEAN": ("boolean",),
    "DATE": ("date",),
    '"NULL"': TYPES,
}

_CELL = "text"
"""What a cell of a CSV file is called, which may be read as any type."""
_WIDE = frozenset({"UBIGINT", "HUGEINT", "UHUGEINT"})
"""Whole numbers of which some are none of 64 bits."""
_RAW = "dither_raw"


@dataclass(frozen=True)
class DuckDBSource:
    """The source of one private table. ``setup`` is done while files may still be opened; ``raw`` stands in FROM.

    ``paths`` are files that are read in full before the first question, ``csv`` their format where they are CSV files,
    and ``unusable`` names columns that no type fits and that are not in ``raw``.
    """

    raw: exp.Expr
    setup: Callable[[Any], object] = lambda _: None
    paths: tuple[str, ...] = ()
    csv: files.CsvFormat | None = None
    unusable: Sequence[str] = ()


class DuckDBEngine(Engine):
    """Sources in DuckDB, one for each private table."""

    dialect = "duckdb"

    def __init__(self, card: Card | None, sources: Mapping[str, DuckDBSource]) -> None:
        """Open a database in memory that reads ``sources``, by private table; ``card`` is None to look at them before
        there is one.

        What does not fit into memory goes to a temporary folder of its own, which is removed with it.
        """
        super().__init__(card)
        self._sources = dict(sources)
        self._scanned: dict[str, str] = {}
        self._folder = PrivateFolder()
        self._spill = self._folder.name
        options = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        self._connection = duckdb.connect(":memory:", config={**options, "temp_directory": self._spill})
        try:
            self._safely(self._set_up)
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        """Open the sources, then lock DuckDB's configuration, so that no other file can be read."""
        for source in self._sources.values():
            source.setup(self._connection)
        parquet = tuple(path for source in self._sources.values() if source.csv is None for path in source.paths)
        if parquet:
            self._connection.execute(f"SET allowed_paths = {nodes.render(_paths(parquet), 'duckdb')}")
        for statement in _LOCKED:
            self._connection.execute(statement)

    @property
    def private_files(self) -> tuple[str, ...]:
        """The files that hold private rows."""
        return tuple(path for source in self._sources.values() for path in source.paths)

    def _source_columns(self, table: str) -> Mapping[str, SourceColumn]:
        """Return the current columns of a table's source; cells of a CSV file are text that may be read as any type."""
        source = self._sources[table]
        if source.csv is not None:
            if files.csv_format(source.paths) != source.csv:  # cells are known by their place
                raise source_error("the header it had when it was opened", "a changed header", "open it again")
            types: tuple[Type, ...] = ("text", *(type for type in TYPES if type != "text"))
            return dict.fromkeys(source.csv.header, SourceColumn(_CELL, types, ("text", "integer")))
        with self._lock:
            unusable = dict.fromkeys(source.unusable, SourceColumn("a type that no card has", ()))
            return {**self._describe(source), **unusable}

    def _check_columns(self, table: str, present: Mapping[str, SourceColumn]) -> None:
        """Check the columns ``present`` of ``table`` as every engine does, and read new or changed files in full.

        Values that cannot be read are refused here, before a question fails over them: whether it fails would depend on
        rows.
        """
        super()._check_columns(table, present)
        source = self._sources[table]
        if self.card is None or not source.paths:
            return
        types = {name: column.type for name, column in self._declared(table).items()}
        purpose = repr((source.csv, types))
        mark = files.identity(source.paths, purpose)
        if mark != self._scanned.get(table) and not files.was_scanned(source.paths, mark):
            with self._lock:
                self._safely(
                    lambda: self._scan_csv(source) if source.csv is not None else self._scan_values(table, present)
                )
            if files.identity(source.paths, purpose) != mark:
                raise source_error(
                    "files that stay as they are while they are read", "files that changed", "open it again later"
                )
            files.remember_scan(source.paths, mark)
        self._scanned[table] = mark

    def _has_unread_units(self, table: str, unit: str) -> bool:
        """Return whether a CSV file has units that cannot be read as whole numbers."""
        if self._sources[table].csv is None or self._declared(table)[unit].type != "integer":
            return False
        cell, whole = nodes.column(unit), _whole_number(nodes.column(unit))
        unread = exp.and_(nodes.is_not_null(cell), nodes.is_null(whole))
        query = exp.select(exp.alias_(exp.true(), "unread")).from_(self._raw(table)).where(unread).limit(1)
        return bool(self.run(query).num_rows)

    def _scan_csv(self, source: DuckDBSource) -> None:
        """Refuse CSV files that have lines which are not records."""
        assert source.csv is not None
        try:
            wrong = any(True for path in source.paths for _ in files.malformed(path, source.csv))
        except (OSError, EOFError, zlib.error):
            raise source_error("a source that can be read", "one that is gone or damaged", "restore it") from None
        if wrong:
            raise source_error(
                "a CSV file in UTF-8 with a record on each line, cells as in the header, quotes closed on the line",
                "one with other lines",
                "its steward can list the lines with dither.tables.engines.malformed_lines, and correct them",
            )

    def _scan_values(self, table: str, present: Mapping[str, SourceColumn]) -> None:
        """Refuse files of ``table`` with values that cannot be read, by hashing every value of the card's columns.

        Sums and counts could be answered from statistics in the file.
        """
        types = {name: column.type for name, column in self._declared(table).items()}
        values = [self._canonical(name, present[name], type) for name, type in types.items()]
        hashes = [exp.func("BIT_XOR", exp.func("HASH", value)) for value in values]
        try:
            self._execute(nodes.render(exp.select(*hashes).from_(self._raw(table)), "duckdb"))
        except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.OutOfRangeException):
            wrong = True
        else:
            wrong = False
        if wrong:  # outside the handler: the engine's message holds a value
            raise source_error(
                "values that can be read",
                "text that is not UTF-8, or a time beyond what can be held",
                "write the files again with valid values",
            )

    def _describe(self, source: DuckDBSource) -> dict[str, SourceColumn]:
        """Return the columns of a source by DuckDB's DESCRIBE; refuse Parquet files with different columns."""
        sql = f"DESCRIBE {nodes.render(exp.select('*').from_(source.raw.copy()), 'duckdb')}"
        try:
            lines = self._connection.execute(sql).fetchall()
        except duckdb.CatalogException:
            raise source_error("a table of the database", "none of that name", "check the name after ::") from None
        collated = isinstance(source.raw, exp.Table)
        result = {str(line[0]): _source_column(str(line[1]), collated) for line in lines}
        if len(source.paths) > 1:
            self._check_alike(source.paths)
        return result

    def _check_alike(self, paths: tuple[str, ...]) -> None:
        """Refuse Parquet files of one glob whose columns differ, from their footers."""
        raw = exp.Anonymous(this="parquet_schema", expressions=[_paths(paths)])
        listed = nodes.render(exp.select("*").from_(raw), "duckdb")
        numbered = f"SELECT *, ROW_NUMBER() OVER () AS n FROM ({listed})"
        columns = "LIST((name, type, logical_type, num_children) ORDER BY n)"
        sql = f"SELECT DISTINCT {columns} FROM ({numbered}) GROUP BY file_name"
        if len(self._connection.execute(sql).fetchall()) > 1:
            raise source_error("Parquet files with the same columns", "different ones", "write them with one schema")

    def _raw(self, table: str) -> exp.Expr:
        """Return a table's source, unconverted, for FROM."""
        return self._sources[table].raw.copy()

    def _canonical(self, name: str, result: SourceColumn, type: Type) -> exp.Expr:
        """Return a source column converted to the card's type, NULL for values that do not fit."""
        x: exp.Expr = nodes.column(name)
        is_cell = result.native == _CELL
        if is_cell and type == "timestamp":  # an offset in the cell is heeded; without one it is UTC
            x = exp.TryCast(this=x, to=exp.DataType.build("TIMESTAMPTZ"))
        if type == "integer" and result.native in ("FLOAT", "DOUBLE"):
            return whole_double(x, self.dialect)
        if type == "number" and result.native in ("FLOAT", "DOUBLE"):
            # without it, comparisons hold or fail by the statistics of a Parquet file, in which NaN is not counted
            x = nodes.call("TRY", x)
        x = _whole_number(x) if is_cell and type == "integer" else nodes.try_cast(x, type)
        if type == "text" and (result.collated or is_cell):
            return nodes.bytewise(x, "duckdb")
        return nodes.in_calendar(x, type) if type in ("date", "timestamp") else x

    def _foreign_keys(self, table: str) -> list[ForeignKey]:
        """Return the foreign keys of a table of a DuckDB database."""
        raw = self._sources[table].raw
        if not isinstance(raw, exp.Table) or not raw.catalog:
            return []
        look = (
            "SELECT constraint_column_names, referenced_table, referenced_column_names FROM duckdb_constraints() "
            "WHERE constraint_type = 'FOREIGN KEY' AND (database_name, schema_name, table_name) = (?, ?, ?)"
        )
        lines = self._connection.execute(look, [raw.catalog, raw.db, raw.name]).fetchall()
        return [ForeignKey(tuple(own), other, tuple(referred)) for own, other, referred in lines]

    def _name(self, view: str, query: exp.Expr) -> exp.Expr:
        """Create a temporary view of a query and return it for FROM."""
        self._connection.execute(f"CREATE TEMP VIEW {view} AS {nodes.render(query, 'duckdb')}")
        return exp.to_table(view)

    @property
    def reads_csv(self) -> bool:
        """Whether the source is CSV files."""
        return self._sources[self._own].csv is not None

    def _stage(self, name: str, rows: Any) -> exp.Expr:
        """Register an Arrow table under a name and return it for FROM."""
        self._connection.register(name, rows)
        return exp.to_table(name)

    def _drop(self, staged: exp.Expr) -> None:
        """Unregister a staged table."""
        self._connection.unregister(staged.name)

    def _execute(self, sql: str) -> Any:
        """Run one SELECT and return its rows as Arrow; refuse other statements."""
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidArgument(
                "query", "one SELECT", "several statements, or one of another kind", "ask one question at a time"
            )
        return self._stoppable(lambda: self._connection.sql(statements[0]).to_arrow_table())

    def _stoppable(self, work: Callable[[], Any]) -> Any:
        """Return the result of ``work``, run in a thread if this is the main thread: DuckDB does not notice Ctrl-C,
        which then interrupts it from here."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(work)
            try:
                return answer.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise

    def _failure(self, error: Exception) -> EngineFailure | None:
        """Return the refusal that replaces an exception of DuckDB or Arrow; None for other exceptions."""
        if isinstance(error, pa.ArrowInvalid):
            return EngineFailure(unreadable())
        if not isinstance(error, duckdb.Error):
            return None
        if isinstance(error, duckdb.InterruptException):
            self._stopped = True
        harmless = isinstance(error, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException))
        if isinstance(error, duckdb.IOException):
            return EngineFailure(source_error("a source that can be read", "one that is gone or damaged", "restore it"))
        return EngineFailure(unreadable(), harmless)

    def _cancel(self) -> None:
        """Interrupt the running statement."""
        self._connection.interrupt()

    def _close(self) -> None:
        """Close the connection and remove the temporary folder."""
        with suppress(Exception):
            self._connection.close()
        self._folder.remove()


def _source_column(native: str, collated: bool) -> SourceColumn:
    """Return the types that a card may state for a column of the DuckDB type ``native``.

    ``collated`` says that the column may compare texts by a collation. Types of a unit are those as which distinct
    values stay distinct: numbers with fractions can name people only as text.
    """
    name = re.split(r"[(\[]", native, maxsplit=1)[0]  # an ENUM lists its values, which are data
    if "[" in native:
        return SourceColumn("a list", ())
    if name == "DECIMAL":
        precision, scale = (int(part) for part in native.partition("(")[2].rstrip(") ").split(","))
        unit_types: tuple[Type, ...] = ("integer", "text") if scale == 0 and precision <= 18 else ("text",)
        return SourceColumn(native, ("integer", "number") if scale == 0 else ("number",), unit_types)
    types = _TYPES.get(name, ())
    if types[:1] == ("number",) or name in _WIDE:
        return SourceColumn(name, types, ("text",))
    unit_types = ("integer", "text") if "integer" in types else tuple(type for type in types if type == "text")
    return SourceColumn(name, types, unit_types, collated)


def _paths(paths: tuple[str, ...]) -> exp.Expr:
    """Return paths as an SQL array of texts."""
    return exp.Array(expressions=[exp.Literal.string(path) for path in paths])


def duckdb_engine(sources: Mapping[str, object], card: Card | None, types: Mapping[str, Type] | None) -> DuckDBEngine:
    """Return the engine for these sources by table: files, tables of DuckDB databases (``path::relation``), or frames.

    ``card`` is None before there is one; frames are then converted to the ``types`` stated for their columns. If
    opening fails and a database is among the sources, the error names it as the cause, which it usually is.
    """
    result: dict[str, DuckDBSource] = {}
    catalogs: dict[str, str] = {}
    for place, (table, source) in enumerate(sources.items()):
        known = None if card is None else card.private_tables.get(table)
        columns = None if known is None else known.stated_columns
        raw = _RAW if place == 0 else f"{_RAW}_{place}"
        if not isinstance(source, str):
            unit = None if known is None else known.unit
            result[table] = _of_frame(source, columns, types, unit, raw)
            continue
        path, mark, relation = source.rpartition("::")
        result[table] = _of_database(path, relation, catalogs) if mark else _of_files(source, columns, raw)
    try:
        return DuckDBEngine(card, result)
    except InvalidData:
        if not catalogs:
            raise
    raise source_error(
        "a DuckDB database that can be opened",
        "a file of a different kind, or one that is open elsewhere for writing",
        "close it elsewhere, or pass the relation itself",
    )


def _of_files(source: str, declared: Mapping[str, ColumnCard] | None, raw: str) -> DuckDBSource:
    """Return Parquet or CSV files as a source; ``declared`` are the card's columns, None to read all, and ``raw`` is
    the name under which CSV files are registered."""
    result = files.find(source)
    if result.format is not None:
        header = result.format.header
        columns = header if declared is None else tuple(name for name in header if name in declared)
        table = files.CsvTable(result.paths, result.format, columns or header[:1])
        return DuckDBSource(exp.to_table(raw), lambda it: it.register(raw, table), result.paths, result.format)
    switched_off = ("hive_partitioning", "union_by_name")
    options = [exp.EQ(this=exp.to_identifier(name), expression=exp.false()) for name in switched_off]
    read = exp.Anonymous(this="read_parquet", expressions=[_paths(result.paths), *options])
    return DuckDBSource(read, paths=result.paths)


def _of_database(path: str, table: str, catalogs: dict[str, str]) -> DuckDBSource:
    """Return a table of a DuckDB database, attached read-only, as a source. ``catalogs`` has the names under which
    databases are attached, by path, and is extended."""
    place = files.database(path)
    parts = files.parts_of(table)
    is_open = place in catalogs
    catalog_name = catalogs.setdefault(place, f"source_{len(catalogs)}" if catalogs else "source")
    named = [catalog_name, *(parts if len(parts) == 2 else ["main", *parts])]
    catalog, schema, relation = (exp.to_identifier(part, quoted=True) for part in named)
    raw = exp.table_(relation, schema, catalog)
    if is_open:
        return DuckDBSource(raw)
    attach = f"ATTACH {exp.Literal.string(place).sql('duckdb')} AS {catalog_name} (READ_ONLY); USE {catalog_name}"
    return DuckDBSource(raw, lambda it: it.execute(attach))


def _of_frame(
    frame: Any, columns: Mapping[str, ColumnCard] | None, types: Mapping[str, Type] | None, unit: str | None, raw: str
) -> DuckDBSource:
    """Return a frame in memory as a source of plain Arrow columns, copied only where they need conversion.

    ``columns`` are the card's, None without a card: then ``types`` may state some. ``unit`` is the column that names
    the person (None: no such column), and ``raw`` the name of the table in the engine.
    """
    declared = frames.check_types(types)
    if columns is not None:
        declared = {name: "text" if column.format else column.type for name, column in columns.items()}
    rows, unusable = frames.plain_table(frame, declared, only_declared=columns is not None, unit=unit)
    return DuckDBSource(exp.to_table(raw), lambda it: it.register(raw, rows), unusable=unusable)


def _whole_number(x: exp.Expr) -> exp.Expr:
    """Return a CSV cell as a BIGINT, NULL where it is not a whole number: digits with an optional sign, and at most
    zeros after a point. A cast alone would round "3.6"."""
    readable = exp.Anonymous(
        this="REGEXP_FULL_MATCH", expressions=[x.copy(), exp.Literal.string(r"\s*[+-]?[0-9]+(\.0*)?\s*")]
    )
    return exp.Case(default=exp.null()).when(readable, nodes.try_cast(x, "integer"))
