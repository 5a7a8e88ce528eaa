"""DuckDB, embedded: files, DuckDB databases and frames in memory.

Each source gets a database of its own in memory, which may open the source and nothing else: no other file, no network,
no extension, no setting once it is set up. What does not fit in memory goes, encrypted, to a folder of its own.

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
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from dither.errors import DitherError, InvalidArgument, InvalidData, message
from dither.tables.card.model import TYPES, Card, Type
from dither.tables.engines import files, frames
from dither.tables.engines.base import Engine, PrivateFolder, SourceColumn, source_error, unreadable
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

_RAW = "dither_raw"


class DuckDBEngine(Engine):
    """A source in DuckDB. ``setup`` is done while files may still be opened; ``raw`` is the source for FROM.

    ``files`` are what has to be read in full before the first question, ``csv`` their format where they are CSV files,
    and ``unusable`` names columns that no type fits and that are not in ``raw``.
    """

    dialect = "duckdb"

    def __init__(
        self,
        card: Card | None,
        raw: exp.Expr,
        setup: Callable[[Any], object] = lambda _: None,
        *,
        files: tuple[str, ...] = (),
        csv: files.CsvFormat | None = None,
        unusable: Sequence[str] = (),
    ) -> None:
        super().__init__(card)
        self._source, self._files, self._csv, self._unusable = raw, files, csv, unusable
        self._scanned = ""
        self._folder = PrivateFolder()
        self._spill = self._folder.name
        options = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        self._connection = duckdb.connect(":memory:", config={**options, "temp_directory": self._spill})
        try:
            self._safely(lambda: self._set_up(setup))
        except BaseException:
            self.close()
            raise

    def _set_up(self, setup: Callable[[Any], object]) -> None:
        setup(self._connection)
        if self._files and self._csv is None:
            self._connection.execute(f"SET allowed_paths = {nodes.render(_paths(self._files), 'duckdb')}")
        for statement in _LOCKED:
            self._connection.execute(statement)

    def source_columns(self) -> Mapping[str, SourceColumn]:
        """The columns of the source."""
        if self._csv is not None:
            if files.csv_format(self._files) != self._csv:  # cells are known by their place
                raise source_error("the header it had when it was opened", "another", "open it again")
            any_type = SourceColumn("text", ("text", *(type for type in TYPES if type != "text")))
            return dict.fromkeys(self._csv.header, any_type)
        with self._lock:
            return {**self._describe(self._source), **dict.fromkeys(self._unusable, SourceColumn("another type", ()))}

    def check(self) -> Mapping[str, SourceColumn]:
        """As for every engine; files that are new or have changed are read in full as well."""
        result = super().check()
        if self.card is not None and self._files:
            types = {name: column.type for name, column in self.card.columns.items()}
            purpose = repr((self._csv, types))
            mark = files.identity(self._files, purpose)
            if mark != self._scanned and not files.was_scanned(self._files, mark):
                with self._lock:
                    self._safely(
                        lambda: self._scan_csv() if self._csv is not None else self._scan_values(result, types)
                    )
                if files.identity(self._files, purpose) != mark:
                    raise source_error(
                        "files that stay as they are while they are read", "others", "open it again later"
                    )
                files.remember_scan(self._files, mark)
            self._scanned = mark
        return result

    def _scan_csv(self) -> None:
        assert self._csv is not None
        try:
            wrong = any(True for path in self._files for _ in files.malformed(path, self._csv))
        except (OSError, EOFError, zlib.error):
            raise source_error("a source that can be read", "one that is gone or damaged", "restore it") from None
        if wrong:
            raise source_error(
                "a CSV file in UTF-8 with a record on each line, cells as in the header, quotes closed on the line",
                "one with other lines",
                "its steward can list the lines with dither.tables.engines.malformed_lines, and correct them",
            )

    def _scan_values(self, result: Mapping[str, SourceColumn], types: Mapping[str, Type]) -> None:
        """Read every value of the card's columns: hashed, since sums and counts may come from statistics."""
        values = [self._canonical(name, result[name], type) for name, type in types.items()]
        hashes = [exp.func("BIT_XOR", exp.func("HASH", value)) for value in values]
        try:
            self._execute(nodes.render(exp.select(*hashes).from_(self._raw()), "duckdb"))
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

    def _describe(self, raw: exp.Expr) -> dict[str, SourceColumn]:
        sql = f"DESCRIBE {nodes.render(exp.select('*').from_(raw), 'duckdb')}"
        try:
            lines = self._connection.execute(sql).fetchall()
        except duckdb.CatalogException:
            raise source_error("a table of the database", "none of that name", "check the name after ::") from None
        result = {str(line[0]): _source_column(str(line[1])) for line in lines}
        if len(self._files) > 1:
            self._alike()
        return result

    def _alike(self) -> None:
        """Files of one glob have the same columns; checked in their footers."""
        raw = exp.Anonymous(this="parquet_schema", expressions=[_paths(self._files)])
        listed = nodes.render(exp.select("*").from_(raw), "duckdb")
        numbered = f"SELECT *, ROW_NUMBER() OVER () AS n FROM ({listed})"
        columns = "LIST((name, type, logical_type, num_children) ORDER BY n)"
        sql = f"SELECT DISTINCT {columns} FROM ({numbered}) GROUP BY file_name"
        if len(self._connection.execute(sql).fetchall()) > 1:
            raise source_error("Parquet files with the same columns", "different ones", "write them with one schema")

    def _raw(self) -> exp.Expr:
        return self._source.copy()

    def _canonical(self, name: str, result: SourceColumn, type: Type) -> exp.Expr:
        x: exp.Expr = nodes.column(name)
        if self._csv is not None and type == "timestamp":  # an offset in the cell is heeded; without one it is UTC
            x = exp.TryCast(this=x, to=exp.DataType.build("TIMESTAMPTZ"))
        if type == "integer" and result.native in ("FLOAT", "DOUBLE"):
            return whole_double(x)
        x = _whole_number(x) if self._csv is not None and type == "integer" else nodes.try_cast(x, type)
        if type == "text" and isinstance(self._source, exp.Table):  # whose columns may have a collation
            return nodes.bytewise(x, "duckdb")
        return nodes.in_calendar(x, type) if type in ("date", "timestamp") else x

    def _name(self, view: str, query: exp.Expr) -> exp.Expr:
        self._connection.execute(f"CREATE TEMP VIEW {view} AS {nodes.render(query, 'duckdb')}")
        return exp.to_table(view)

    @property
    def reads_csv(self) -> bool:
        """Whether the source is CSV files."""
        return self._csv is not None

    def _stage(self, name: str, rows: Any) -> exp.Expr:
        self._connection.register(name, rows)
        return exp.to_table(name)

    def _drop(self, staged: exp.Expr) -> None:
        self._connection.unregister(staged.name)

    def _execute(self, sql: str) -> Any:
        statements = self._connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidArgument(message("query", "one SELECT", "another statement", "ask one question at a time"))
        return self._stoppable(lambda: self._connection.sql(statements[0]).to_arrow_table())

    def _stoppable(self, work: Callable[[], Any]) -> Any:
        """Do it in a thread of its own: DuckDB does not look for Ctrl-C, which only the main thread gets."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(work)
            try:
                return answer.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise

    def _explain(self, error: Exception) -> tuple[DitherError, bool] | None:
        if isinstance(error, pa.ArrowInvalid):
            return unreadable(), False
        if not isinstance(error, duckdb.Error):
            return None
        if isinstance(error, duckdb.InterruptException):
            self._stopped = True
        harmless = isinstance(error, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException))
        if isinstance(error, duckdb.IOException):
            return source_error("a source that can be read", "one that is gone or damaged", "restore it"), False
        return unreadable(), harmless

    def _cancel(self) -> None:
        self._connection.interrupt()

    def _close(self) -> None:
        with suppress(Exception):
            self._connection.close()
        self._folder.remove()


def _source_column(native: str) -> SourceColumn:
    name = re.split(r"[(\[]", native, maxsplit=1)[0]  # an ENUM lists its values, which are data
    if "[" in native:
        return SourceColumn("a list", ())
    if name == "DECIMAL":
        return SourceColumn(native, ("integer", "number") if native.replace(" ", "").endswith(",0)") else ("number",))
    return SourceColumn(name, _TYPES.get(name, ()))


def _paths(paths: tuple[str, ...]) -> exp.Expr:
    return exp.Array(expressions=[exp.Literal.string(path) for path in paths])


def of_files(source: str, card: Card | None) -> DuckDBEngine:
    """Parquet or CSV files."""
    result = files.find(source)
    if result.format is not None:
        header = result.format.header
        columns = header if card is None else tuple(name for name in header if name in card.columns)
        table = files.CsvTable(result.paths, result.format, columns or header[:1])
        return DuckDBEngine(
            card, exp.to_table(_RAW), lambda it: it.register(_RAW, table), files=result.paths, csv=result.format
        )
    options: dict[str, exp.Expr] = {"hive_partitioning": exp.false(), "union_by_name": exp.false()}
    raw = exp.Anonymous(this="read_parquet", expressions=[_paths(result.paths), *_options(options)])
    return DuckDBEngine(card, raw, files=result.paths)


def _options(options: Mapping[str, exp.Expr]) -> list[exp.Expr]:
    return [exp.EQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]


def of_database(path: str, table: str, card: Card | None) -> DuckDBEngine:
    """A table or view of a DuckDB database, opened to read only."""
    place = files.database(path)
    parts = files.parts_of(table)
    named = ["source", *(parts if len(parts) == 2 else ["main", *parts])]
    catalog, schema, relation = (exp.to_identifier(part, quoted=True) for part in named)
    raw = exp.table_(relation, schema, catalog)
    try:
        attach = f"ATTACH {exp.Literal.string(place).sql('duckdb')} AS source (READ_ONLY); USE source"
        return DuckDBEngine(card, raw, lambda it: it.execute(attach))
    except InvalidData:
        raise source_error(
            "a DuckDB database that can be opened",
            "another file, or one that is open elsewhere for writing",
            "close it elsewhere, or pass the relation itself",
        ) from None


def of_frame(frame: Any, card: Card | None, types: Mapping[str, Type] | None = None) -> DuckDBEngine:
    """A frame in memory, as plain Arrow columns, which are not copied if they are so already."""
    declared = frames.check_types(types)
    if card is not None:
        declared = {name: "text" if column.format else column.type for name, column in card.columns.items()}
    rows, unusable = frames.plain_table(frame, declared, only_declared=card is not None)
    return DuckDBEngine(card, exp.to_table(_RAW), lambda it: it.register(_RAW, rows), unusable=unusable)


def _whole_number(x: exp.Expr) -> exp.Expr:
    """A cell as a BIGINT: digits with or without a sign, and at most zeros behind a point; a bare cast would round."""
    readable = exp.Anonymous(
        this="REGEXP_FULL_MATCH", expressions=[x.copy(), exp.Literal.string(r"\s*[+-]?[0-9]+(\.0*)?\s*")]
    )
    return exp.Case(default=exp.null()).when(readable, nodes.try_cast(x, "integer"))
