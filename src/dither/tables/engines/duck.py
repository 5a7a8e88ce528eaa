"""DuckDB, embedded: files, DuckDB databases and frames in memory.

Each source gets a database of its own in memory, which may open the source and nothing else: no other file, no network,
no extension, no setting once it is set up. What does not fit in memory goes, encrypted, to a folder of its own.

Cells of CSV files are read as text and then as the card's types: a cell that cannot be read so is NULL, as an empty one
is. A line with too few or too many cells is not a row of this table at all, and refused. The sign between cells (comma,
semicolon, tab or bar) is known from the header.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
from sqlglot import exp

from dither.errors import DitherError, InvalidArgument, InvalidData, WrongType, message
from dither.tables import dialect as say
from dither.tables.card import TYPES, Card, Type
from dither.tables.engines import files
from dither.tables.engines.base import Engine, Found, arrow_type, broken, unreadable

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
    **dict.fromkeys(("FLOAT", "DOUBLE"), ("number",)),
    **dict.fromkeys(("VARCHAR", "ENUM", "UUID"), ("text",)),
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"), ("timestamp",)
    ),
    "BOOLEAN": ("boolean",),
    "DATE": ("date",),
    '"NULL"': TYPES,
}


class Duck(Engine):
    """A source in DuckDB. ``setup`` is done while files may still be opened; ``raw`` is the source for FROM."""

    dialect = "duckdb"

    def __init__(
        self,
        card: Card | None,
        raw: exp.Expression,
        setup: Callable[[Any], None] = lambda _: None,
        paths: tuple[str, ...] = (),
        header: tuple[str, ...] = (),
    ) -> None:
        super().__init__(card)
        self._source, self._paths, self._header = raw, paths, header
        self._spill = tempfile.mkdtemp(prefix="dither-")
        self._clean = weakref.finalize(self, shutil.rmtree, self._spill, ignore_errors=True)
        options = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        self._connection = duckdb.connect(":memory:", config={**options, "temp_directory": self._spill})
        try:
            self._safely(lambda: self._set_up(setup))
        except BaseException:
            self.close()
            raise

    def _set_up(self, setup: Callable[[Any], None]) -> None:
        setup(self._connection)
        if self._paths:
            self._connection.execute(f"SET allowed_paths = {say.render(_paths(self._paths), 'duckdb')}")
        # DuckDB 2 moves TRY_CAST into the reading of CSV files, where a cell that fails it is an error
        known = {str(line[0]) for line in self._connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
        if "type_pushdown" in known:
            self._connection.execute("SET disabled_optimizers = 'type_pushdown'")
        for statement in _LOCKED:
            self._connection.execute(statement)

    def found(self) -> Mapping[str, Found]:
        """The columns of the source."""
        if self._header:
            if files.headers(self._paths)[0] != self._header:  # cells are known by their place
                raise broken("the header it had when it was opened", "another", "open it again")
            return dict.fromkeys(self._header, Found("text", ("text", *(type for type in TYPES if type != "text"))))
        with self._lock:
            return self._described(self._source)

    def _described(self, raw: exp.Expression) -> dict[str, Found]:
        sql = f"DESCRIBE {say.render(exp.select('*').from_(raw), 'duckdb')}"
        try:
            lines = self._connection.execute(sql).fetchall()
        except duckdb.CatalogException:
            raise broken("a table of the database", "none of that name", "check the name after ::") from None
        found = {str(line[0]): _found(str(line[1])) for line in lines}
        if len(self._paths) > 1:
            self._alike()
        return found

    def _alike(self) -> None:
        """Files of one glob have the same columns; checked in their footers."""
        raw = exp.Anonymous(this="parquet_schema", expressions=[_paths(self._paths)])
        listed = say.render(exp.select("*").from_(raw), "duckdb")
        numbered = f"SELECT *, ROW_NUMBER() OVER () AS n FROM ({listed})"
        columns = "LIST((name, type, logical_type, num_children) ORDER BY n)"
        sql = f"SELECT DISTINCT {columns} FROM ({numbered}) GROUP BY file_name"
        if len(self._connection.execute(sql).fetchall()) > 1:
            raise broken("Parquet files with the same columns", "different ones", "write them with one schema")

    def _raw(self) -> exp.Expression:
        return self._source.copy()

    def _canonical(self, name: str, found: Found, type: Type) -> exp.Expression:
        x: exp.Expression = say.column(name)
        if self._header and type == "timestamp":  # an offset in the cell is heeded; without one it is UTC
            x = exp.TryCast(this=x, to=exp.DataType.build("TIMESTAMPTZ"))
        x = say.try_cast(x, type)
        return say.in_calendar(x, type) if type in ("date", "timestamp") else x

    def _name(self, view: str, query: exp.Expression) -> exp.Expression:
        self._connection.execute(f"CREATE TEMP VIEW {view} AS {say.render(query, 'duckdb')}")
        return exp.to_table(view)

    def _keep(self, name: str, rows: Any) -> exp.Expression:
        self._connection.register(name, rows)
        return exp.to_table(name)

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
            return broken("a source that can be read", "one that is gone or damaged", "restore it"), False
        return unreadable(), harmless

    def cancel(self) -> None:
        """Stop what runs now, from another thread."""
        self._stopped = True
        self._connection.interrupt()

    def close(self) -> None:
        """Close the database and remove its folder."""
        with suppress(Exception):
            self._connection.close()
        self._clean()


def _found(native: str) -> Found:
    name = re.split(r"[(\[]", native, maxsplit=1)[0]  # an ENUM lists its values, which are data
    if "[" in native:
        return Found("a list", ())
    if name == "DECIMAL":
        return Found(native, ("integer", "number") if native.replace(" ", "").endswith(",0)") else ("number",))
    return Found(name, _TYPES.get(name, ()))


def _paths(paths: tuple[str, ...]) -> exp.Expression:
    return exp.Array(expressions=[exp.Literal.string(path) for path in paths])


def of_files(source: str, card: Card | None) -> Duck:
    """Parquet or CSV files."""
    found = files.find(source)
    if found.kind == "parquet":
        options: dict[str, exp.Expression] = {"hive_partitioning": exp.false(), "union_by_name": exp.false()}
        raw = exp.Anonymous(this="read_parquet", expressions=[_paths(found.paths), *_options(options)])
        return Duck(card, raw, paths=found.paths)
    options = {
        "auto_detect": exp.false(),
        "header": exp.true(),
        "columns": _struct(found.header),
        "delim": exp.Literal.string(found.delimiter),
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "nullstr": exp.Literal.string(""),
        "allow_quoted_nulls": exp.false(),
        "hive_partitioning": exp.false(),
    }
    raw = exp.Anonymous(this="read_csv", expressions=[_paths(found.paths), *_options(options)])
    return Duck(card, raw, paths=found.paths, header=found.header)


def _options(options: Mapping[str, exp.Expression]) -> list[exp.Expression]:
    return [exp.EQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]


def _struct(names: tuple[str, ...]) -> exp.Expression:
    pairs = [exp.PropertyEQ(this=exp.Literal.string(name), expression=exp.Literal.string("VARCHAR")) for name in names]
    return exp.Struct(expressions=pairs)


def of_database(path: str, table: str, card: Card | None) -> Duck:
    """A table or view of a DuckDB database, opened to read only."""
    place = files.database(path)
    parts = files.parts_of(table)
    named = ["source", *(parts if len(parts) == 2 else ["main", *parts])]
    catalog, schema, relation = (exp.to_identifier(part, quoted=True) for part in named)
    raw = exp.table_(relation, schema, catalog)
    try:
        attach = f"ATTACH {exp.Literal.string(place).sql('duckdb')} AS source (READ_ONLY); USE source"
        return Duck(card, raw, lambda it: it.execute(attach))
    except InvalidData:
        raise broken(
            "a DuckDB database that can be opened",
            "another file, or one that is open elsewhere for writing",
            "close it elsewhere, or pass the relation itself",
        ) from None


def of_frame(frame: Any, card: Card | None) -> Duck:
    """A frame in memory: its columns as Arrow, where they are not copied if they are Arrow already."""
    try:
        rows = _arrow(frame, card)
    except (pa.ArrowException, ValueError, TypeError) as error:
        if isinstance(error, DitherError):
            raise
        raise broken(
            "columns of one type each", "a column of mixed values", "convert the frame's columns to one type each"
        ) from None
    if len(set(rows.schema.names)) != len(rows.schema.names):
        raise broken("columns that differ", "two of one name", "rename one of them")
    return Duck(card, exp.to_table("dither_frame"), lambda it: it.register("dither_frame", rows))


def _arrow(frame: Any, card: Card | None) -> Any:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    name, home = type(frame).__name__, type(frame).__module__.partition(".")[0]
    if home == "pandas" and name == "DataFrame":
        return _of_pandas(frame, card)
    if home == "polars" and name in ("DataFrame", "LazyFrame"):
        return (frame.collect() if name == "LazyFrame" else frame).to_arrow()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return frame.to_arrow_table()
    raise WrongType(message("source", "a frame or a table", name, "pass a pandas, polars or Arrow table"))


def _of_pandas(frame: Any, card: Card | None) -> Any:
    """Columns of objects are what the card says they are; the others what their type says."""
    fields = []
    for position, name in enumerate(frame.columns):
        kind = frame.dtypes.iloc[position]
        said = card.columns.get(name) if card is not None and isinstance(name, str) else None
        values = frame.iloc[:, position]
        if str(kind) == "object" and said is not None:
            values = pa.Array.from_pandas(values, type=arrow_type(said.type))
        else:
            values = pa.Array.from_pandas(values)
        fields.append((str(name), values))
    return pa.table([values for _, values in fields], names=[name for name, _ in fields])
