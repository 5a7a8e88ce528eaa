"""PostgreSQL, where the data is. The session is read-only and in UTC; one statement at a time is sent, by itself.

Text is compared under the collation ``C``, byte by byte, whatever the database's own. CHAR(n) is text without its
padding. A password belongs in ``~/.pgpass`` or PGPASSWORD, not in a card; no message ever shows the URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import conninfo, sql
from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard, Type, arrow_type
from dither.tables.draft_paths import ForeignKey
from dither.tables.engines import same_place
from dither.tables.engines.base import Engine, EngineFailure, SourceColumn, check_column, source_error, unreadable
from dither.tables.engines.conversions import whole_double
from dither.tables.engines.files import parts_of
from dither.tables.query import nodes

_SESSION = (
    "SET default_transaction_read_only = on",
    "SET TIME ZONE 'UTC'",
    "SET datestyle = 'ISO, YMD'",
    "SET standard_conforming_strings = on",
    "SET extra_float_digits = 1",
    "SET client_encoding = 'UTF8'",
)
_TYPES: dict[str, tuple[Type, ...]] = {
    **dict.fromkeys(("int2", "int4", "int8"), ("integer", "number")),
    **dict.fromkeys(("float4", "float8"), ("number", "integer")),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "citext"), ("text",)),
    **dict.fromkeys(("timestamp", "timestamptz"), ("timestamp",)),
    "bool": ("boolean",),
    "date": ("date",),
}
_RESULTS: dict[str, Type] = {
    **{name: kinds[0] for name, kinds in _TYPES.items()},
    "numeric": "integer",
    "unknown": "text",
}
_LOOK = """
SELECT a.attname, b.typname, b.typtype, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END
FROM pg_attribute AS a
JOIN pg_type AS t ON t.oid = a.atttypid
JOIN pg_type AS b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""


class PostgreSQLEngine(Engine):
    """Tables or views of a PostgreSQL database, by the names of the private tables."""

    dialect = "postgres"

    def __init__(self, url: str, relations: Mapping[str, str], card: Card | None) -> None:
        """Connect to the database at ``url``, and look up ``relations``, the tables or views by private table.

        ``card`` is None to look at them before there is a card.
        """
        super().__init__(card)
        parts = {table: parts_of(relation) for table, relation in relations.items()}
        self._url = url
        self._connection = _connected(url)
        try:
            self._check_encoding()
            self._safely(lambda: [self._connection.execute(statement) for statement in _SESSION])
            self._relations = {table: self._resolved(names) for table, names in parts.items()}
        except BaseException:
            self.close()
            raise

    def _check_encoding(self) -> None:
        """Refuse a database that is not in UTF-8: SQL_ASCII holds any bytes, and reading them would fail."""
        encoding = self._connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise source_error(
                "a database in UTF8", encoding or "an unknown encoding", "copy it to one made with ENCODING 'UTF8'"
            )

    def _resolved(self, parts: list[str]) -> tuple[int, str, str]:
        """Return the object identifier, schema and name of a table, so that the search path no longer matters."""
        quoted = sql.Identifier(*parts).as_string(self._connection)
        look = (
            "SELECT c.oid, n.nspname, c.relname, has_any_column_privilege(c.oid, 'SELECT') FROM pg_class AS c "
            "JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s) AND c.relkind = ANY(%s)"
        )
        result = self._safely(lambda: self._connection.execute(look, (quoted, list("rvmpf"))).fetchone())
        if result is None:
            raise source_error("a table of the database", "none of that name", "check the name after ::, case matters")
        if not result[3]:
            raise source_error(
                "a table that this user may read", "one without the privilege", "GRANT SELECT on it to this user"
            )
        return int(result[0]), str(result[1]), str(result[2])

    def _source_columns(self, table: str) -> Mapping[str, SourceColumn]:
        """Return the current columns of a table's source."""
        return self._columns_of(self._relations[table][0])

    def _columns_of(self, oid: int) -> dict[str, SourceColumn]:
        """Return the columns of the relation with this object identifier; refuse one that no longer exists."""
        with self._lock:
            lines = self._connection.execute(_LOOK, (oid,)).fetchall()
        result = {name: _source_column(native, kind, modifier) for name, native, kind, modifier in lines}
        if not result:
            raise source_error("a table of the database", "one that is gone", "open it again")
        return result

    def _raw(self, table: str) -> exp.Expr:
        """Return a table's source, unconverted, for FROM."""
        _, schema, relation = self._relations[table]
        return _table(schema, relation)

    def _canonical(self, name: str, result: SourceColumn, type: Type) -> exp.Expr:
        """Return a source column converted to the card's type; no value makes it fail."""
        x: exp.Expr = nodes.column(name)
        if result.native.startswith("numeric") and type == "integer":
            return _whole_number(x)
        if result.native in ("float4", "float8") and type == "integer":
            return whole_double(x, self.dialect)
        if result.native == "numeric" and type == "number":
            x = _double(x)
        x = nodes.cast(x, type)
        if type == "text":
            return nodes.bytewise(x, "postgres")
        return nodes.in_calendar(x, type) if type in ("date", "timestamp") else x

    def _unit_column(self, name: str, present: SourceColumn, column: ColumnCard) -> exp.Expr:
        """Return the person's column; NaN, which NUMERIC has as well, is NULL."""
        value = super()._unit_column(name, present, column)
        if not present.native.startswith("numeric"):
            return value
        number = exp.NEQ(this=nodes.column(name), expression=exp.Literal.string("NaN"))  # which names no person
        return exp.Case(default=exp.null()).when(number, value)

    def _foreign_keys(self, table: str) -> list[ForeignKey]:
        """Return the foreign keys of a table."""
        lines = self._connection.execute(_FOREIGN_KEYS, (self._relations[table][0],)).fetchall()
        return [ForeignKey(tuple(own), other, tuple(referred)) for own, other, referred in lines]

    def _name(self, view: str, query: exp.Expr) -> exp.Expr:
        """Return the query as a subquery: the connection is read-only and creates no views."""
        return exp.Subquery(this=query)

    def _beside(self, name: str) -> exp.Expr | None:
        """Return a public table of the same database for FROM; None where it is elsewhere."""
        assert self.card is not None
        public = self.card.public[name]
        if not same_place(f"{self._url}::", public.source):
            return None
        oid, schema, relation = self._resolved(parts_of(public.source.rpartition("::")[2]))
        result = self._columns_of(oid)
        for column, column_card in public.columns.items():
            check_column(column, column_card, result)
        return exp.Subquery(this=self._query(result, public.columns, _table(schema, relation)))

    def _stage(self, name: str, rows: Any) -> exp.Expr:
        """Create a temporary table, which only this connection sees, and return it for FROM."""
        kinds = {field.name: _named(field.type) for field in rows.schema}
        columns_sql = ", ".join(
            f"{nodes.render(exp.to_identifier(column, quoted=True), 'postgres')} {kind}"
            for column, kind in kinds.items()
        )
        self._safely(lambda: self._copy(name, columns_sql, rows))
        return exp.to_table(f"pg_temp.{name}")

    def _copy(self, name: str, columns_sql: str, rows: Any) -> None:
        """Create the temporary table ``name`` and copy the rows of an Arrow table into it; ``columns_sql`` declares its
        columns.
        """
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION READ WRITE")
            self._connection.execute(f"CREATE TEMP TABLE {name} ({columns_sql})".encode())
            with self._connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copy:
                for batch in rows.to_batches(10_000):
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        copy.write_row(row)

    def _drop(self, staged: exp.Expr) -> None:
        """Drop a staged table."""
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION READ WRITE")
            self._connection.execute(f"DROP TABLE {nodes.render(staged, 'postgres')}".encode())

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run the statements inside in one transaction that sees one state of the database. Other threads wait for
        the connection."""
        with self._lock, self._connection.transaction():
            self._safely(lambda: self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            yield

    def _execute(self, sql: str) -> Any:
        """Run one SELECT and return its rows as Arrow; refuse other statements."""
        try:
            # binary results take the extended protocol, which runs one statement and no more
            cursor = self._connection.execute(sql.encode(), binary=True)
        except psycopg.errors.QueryCanceled:
            self._stopped = True
            raise
        if cursor.description is None:
            raise InvalidArgument(
                "query", "one SELECT", "several statements, or one of another kind", "ask one question at a time"
            )
        lines = cursor.fetchall()
        arrays, names = [], []
        for i, column in enumerate(cursor.description):
            info = self._connection.adapters.types.get(column.type_code)
            type = _RESULTS.get(info.name if info else "", "text")
            values = [line[i] for line in lines]
            if info is not None and info.name == "numeric":
                values = [_whole(value) for value in values]
            arrays.append(pa.array(values, arrow_type(type)))
            names.append(column.name)
        return pa.table(arrays, names=names)

    def _failure(self, error: Exception) -> EngineFailure | None:
        """Return the refusal that replaces an exception of PostgreSQL or Arrow; None for other exceptions."""
        if isinstance(error, (pa.ArrowException, OverflowError)):
            return EngineFailure(unreadable())
        if not isinstance(error, psycopg.Error):
            return None
        if self._connection.broken:
            return EngineFailure(source_error("a server that answers", "a connection that broke", "open it again"))
        # class 42 is found before any row is read: syntax, names, types, rights
        return EngineFailure(unreadable(), (error.sqlstate or "").startswith("42"))

    def _cancel(self) -> None:
        """Interrupt the running statement."""
        self._connection.cancel_safe(timeout=10)

    def _close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self._connection.close()


def _connected(url: str) -> psycopg.Connection[Any]:
    """Return a connection to a database; refuse an invalid URL and a failed connection without the server's message,
    which may show a password."""
    try:
        conninfo.conninfo_to_dict(url)
    except (psycopg.Error, ValueError):
        raise InvalidArgument(
            "source", "postgresql://user@host/database::table", "a URL of a different form", "write it in that form"
        ) from None
    try:
        return psycopg.connect(url, autocommit=True, connect_timeout=20, application_name="dither")
    except (psycopg.Error, ValueError, OSError) as error:
        text = str(error).lower()
        got, fix = next((refusal for sign, refusal in _REFUSED.items() if sign in text), _REFUSED[""])
    raise source_error("a PostgreSQL server that lets us in", got, fix)


_NAMES = (
    "(SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.{key}) WITH ORDINALITY AS k(number, place) "
    "JOIN pg_attribute AS a ON a.attrelid = f.{relation} AND a.attnum = k.number)"
)
_FOREIGN_KEYS = (
    f"SELECT {_NAMES.format(key='conkey', relation='conrelid')}, c.relname, "
    f"{_NAMES.format(key='confkey', relation='confrelid')} FROM pg_constraint AS f "
    "JOIN pg_class AS c ON c.oid = f.confrelid WHERE f.contype = 'f' AND f.conrelid = %s ORDER BY f.oid"
)
_REFUSED = {
    "password": ("a refused or missing password", "put the right one into ~/.pgpass or PGPASSWORD"),
    "authentication": ("a refused user", "check the user's name and how the server checks it"),
    "pg_hba": ("a refused host or user", "ask for an entry in the server's pg_hba.conf"),
    "role": ("an unknown user", "check the user's name in the URL"),
    "database": ("an unknown database", "check the database's name in the URL"),
    "": ("no answer", "check host and port, and that the server runs"),
}


def _source_column(native: str, kind: str, modifier: int) -> SourceColumn:
    """Return the types that a card may state for a column of the PostgreSQL type ``native``; ``kind`` is "e" for an
    enumeration.

    ``modifier`` is PostgreSQL's ``atttypmod``. That of ``numeric`` holds precision and scale, in its upper 16 and its
    lower 11 bits (the scale in two's complement), plus 4; it is below 4 where they are not declared.
    """
    if kind == "e":
        return SourceColumn("an enumeration", ("text",), ("text",))
    if native == "numeric":
        if modifier < 4:  # one number has several texts: 1.0 and 1.00
            return SourceColumn("numeric", ("number",))
        precision, scale = (modifier - 4) >> 16, ((((modifier - 4) & 0x7FF) ^ 1024) - 1024)
        whole = scale == 0 and precision <= 18
        safe = precision < 300 and abs(scale) < 300
        name = f"numeric({precision},{scale})" if safe else "numeric"
        unit_types: tuple[Type, ...] = ("integer", "text") if whole else ("text",) if safe else ()
        return SourceColumn(name, ("integer", "number") if whole else ("number",), unit_types)
    types = _TYPES.get(native, ())
    if native == "citext":  # which compares texts regardless of case
        return SourceColumn(native, types)
    if types[:1] == ("integer",):
        return SourceColumn(native, types, ("integer", "text"))
    return SourceColumn(native, types, ("text",) if types[:1] in (("number",), ("text",)) else ())


def _table(schema: str, name: str) -> exp.Expr:
    """Return a table with its schema, both quoted."""
    return exp.table_(exp.to_identifier(name, quoted=True), exp.to_identifier(schema, quoted=True))


def _whole_number(x: exp.Expr) -> exp.Expr:
    """Return a NUMERIC as a BIGINT; NULL for NaN and beyond 64 bits, where a cast would fail."""
    low = exp.GTE(this=x.copy(), expression=exp.Neg(this=exp.Literal.number(1 << 63)))
    high = exp.LTE(this=x.copy(), expression=exp.Literal.number((1 << 63) - 1))
    return exp.Case(default=exp.null()).when(exp.and_(low, high), nodes.cast(x, "integer"))


def _double(x: exp.Expr) -> exp.Expr:
    """Return an unbounded NUMERIC as a double; values that a double cannot hold become 0 or infinite, where a cast
    would fail.

    The limits are bare constants, which PostgreSQL reads as NUMERIC: a type by that name would come out of sqlglot's
    hands as one of 18 digits.
    """
    nan = exp.EQ(this=x.copy(), expression=exp.Literal.string("NaN"))
    tiny = exp.LT(this=exp.Abs(this=x.copy()), expression=exp.Literal.number("1e-300"))
    high = exp.GT(this=x.copy(), expression=exp.Literal.number("1e308"))
    low = exp.LT(this=x.copy(), expression=exp.Neg(this=exp.Literal.number("1e308")))
    return (
        exp.Case(default=exp.Cast(this=x.copy(), to=exp.DataType.build("DOUBLE")))
        .when(nan, nodes.literal(float("nan")))
        .when(tiny, nodes.literal(0.0))
        .when(high, nodes.literal(float("inf")))
        .when(low, nodes.literal(float("-inf")))
    )


def _whole(value: Any) -> int | None:
    """Return a NUMERIC of a result as an int; refuse a fraction."""
    if value is None:
        return None
    if not isinstance(value, Decimal) or not value.is_finite() or value != int(value):
        raise InvalidArgument("query", "whole numbers", "a fraction", "cast NUMERIC to DOUBLE in the query")
    return int(value)


def _named(kind: Any) -> str:
    """Return PostgreSQL's name for an Arrow type."""
    types: dict[str, str] = {
        "int64": "BIGINT",
        "double": "DOUBLE PRECISION",
        "bool": "BOOLEAN",
        "date32[day]": "DATE",
        "timestamp[us]": "TIMESTAMP",
    }
    return types.get(re.sub(r"\s", "", str(kind)), 'TEXT COLLATE "C"')
