"""SQL on the noisy table, in a DuckDB that holds nothing else but public tables.

The database lives in memory for one question. It holds the noisy table and the public tables that the SQL names, opens
no file, no network and no extension, sees no variable of Python, and its settings are locked. So whatever its SQL says,
it can read only what is released already or public. A statement that fails, or runs for long, is stopped; what was paid
for is then shown without it (:mod:`dither.tables.execute.shape_answer`).

Which statements are allowed is decided before (:mod:`dither.tables.sql.parse`). A statement is tried on made-up tables
(:func:`rehearse`) before anything is paid for.

>>> columns = {"month": "integer", "n": "integer"}
>>> sql = "SELECT month, n - LAG(n) OVER (ORDER BY month) AS change FROM noisy"
>>> with IsolatedDatabase(PostProcessing(sql), columns) as database:
...     database.run([(1, 10), (2, 14)])
PostProcessedTable(names=('month', 'change'), types=('integer', 'integer'), rows=[(1, None), (2, 4)])
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa

from dither.errors import InvalidArgument
from dither.tables.card.model import Type, arrow_type
from dither.tables.card.values import LARGEST_INTEGER, clip
from dither.tables.query.evaluate import representable
from dither.tables.query.relations import unique
from dither.tables.query.tree import PostProcessing

MEMORY = "512MB"
SECONDS = 20.0
"""How long a statement may run."""
MAX_ROWS = 1_000_000
MAX_CHARACTERS = 100_000_000
"""How long the texts of an answer may be, all together."""

_LOCKED = (
    "SET threads = 1",
    f"SET memory_limit = '{MEMORY}'",
    "SET temp_directory = ''",
    "SET enable_progress_bar = false",
    "SET TimeZone = 'UTC'",
    "SET ieee_floating_point_ops = true",
    "SET python_enable_replacements = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_TYPES: dict[str, Type] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "number"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), "timestamp"),
    **dict.fromkeys(("VARCHAR", '"NULL"', "NULL"), "text"),
    "BOOLEAN": "boolean",
    "DATE": "date",
}
_SOURCE = "dither_noisy_rows"
_DIGITS = pa.decimal128(38, 0)
_LARGEST_WIDE = 10**38 - 1
Rows = Sequence[Sequence[Any]]
"""The rows of a noisy table."""
_NUMBERS = (1000, 0, -3, 123_456_789)
_EVERY, _NUMBER = "dither_every_table", "dither_number"
PublicRows = Mapping[str, tuple[Mapping[str, Type], pa.Table]]
"""Public tables by name: the types of their columns, and their rows."""


@dataclass(frozen=True)
class PostProcessedTable:
    """What a statement made of the noisy table."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    rows: list[tuple[Any, ...]]


class IsolatedDatabase:
    """A database in memory for the statement of one question; ``columns`` are those of each noisy table.

    ``public`` are the public tables beside them. ``seconds`` is what all its statements together may take. With
    ``strict`` a subquery in an expression that has several rows is an error, as it is refused; otherwise it is one of
    them. With ``wide`` whole numbers have 128 bits, as DuckDB's own sums of them have.
    """

    def __init__(
        self,
        post: PostProcessing,
        *columns: Mapping[str, Type],
        public: PublicRows | None = None,
        seconds: float = SECONDS,
        strict: bool = False,
        wide: bool = False,
    ) -> None:
        """Open the database without access to files or extensions, and start the timer that interrupts it after
        ``seconds``.

        ``post`` is the statement; the other parameters are described by the class.
        """
        self._wide = wide
        self._post, self._columns = post, dict(zip(post.tables, map(dict, columns), strict=True))
        self._connection = duckdb.connect(
            ":memory:", config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        try:
            for statement in (f"SET scalar_subquery_error_on_multiple_rows = {str(strict).lower()}", *_LOCKED):
                self._connection.execute(statement)
        except BaseException:
            self._connection.close()
            raise
        self._timer = threading.Timer(seconds, self._connection.interrupt)
        self._timer.daemon = True
        self._timer.start()
        try:
            for name, (types, known) in (public or {}).items():
                self._create(known, name, types)
        except BaseException:
            self.close()
            raise

    def run(self, *tables: Rows) -> PostProcessedTable:
        """Return the answer that the statement makes of the rows of each noisy table."""
        for (name, columns), rows in zip(self._columns.items(), tables, strict=True):
            self._load(rows, name, columns)
        statements = self._connection.extract_statements(self._post.sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidArgument(
                "query", "one SELECT", "several statements, or one of another kind", "ask one question at a time"
            )
        relation = self._connection.sql(statements[0])
        names = _distinct([str(name) for name in relation.columns])
        natives = [str(native) for native in relation.types]
        types = tuple(_type(name, native) for name, native in zip(names, natives, strict=True))
        result = _fetch(relation.limit(MAX_ROWS + 1))
        lines = [tuple(_plain(value, kind) for value, kind in zip(row, types, strict=True)) for row in result]
        for place, kind in enumerate(types):  # integers beyond 64 bits have become floats
            if kind == "integer" and any(isinstance(line[place], float) for line in lines):
                types = (*types[:place], "number", *types[place + 1 :])
        return PostProcessedTable(names, types, lines)

    def run_each(self, answers: Sequence[Sequence[Rows]]) -> list[list[tuple[Any, ...]]]:
        """Return the answer's rows for each of several noisy answers, computed by one statement. ``answers`` holds
        the rows of all noisy tables for each; result rows are in no order."""
        named = []
        for place, (name, columns) in enumerate(self._columns.items()):
            every = f"{_EVERY}_{place}"
            rows = [(number, *row) for number, tables in enumerate(answers) for row in tables[place]]
            self._load(rows, every, {_NUMBER: "integer", **columns})
            shown = ", ".join(map(_quoted, columns))
            one = f"SELECT {shown} FROM {every} WHERE {every}.{_NUMBER} = numbers.{_NUMBER}"
            named.append(f"{_quoted(name)} AS ({one})")
        numbers = f"SELECT CAST(range AS BIGINT) AS {_NUMBER} FROM range({len(answers)})"
        answer = f"WITH {', '.join(named)} SELECT * FROM ({self._post.sql})"
        relation = self._connection.sql(
            f"SELECT numbers.*, answer.* FROM ({numbers}) AS numbers, LATERAL ({answer}) AS answer"
        )
        types = [_type("", str(native)) for native in relation.types[1:]]
        result: list[list[tuple[Any, ...]]] = [[] for _ in answers]
        for number, *row in relation.limit(MAX_ROWS).fetchall():
            result[number].append(tuple(_plain(value, kind) for value, kind in zip(row, types, strict=True)))
        return result

    def _load(self, rows: Sequence[Sequence[Any]], table: str, columns: Mapping[str, Type]) -> None:
        """Create a table of these rows; whole numbers are 128 bits wide where the database is ``wide``."""
        whole = [name for name, kind in columns.items() if kind == "integer"] if self._wide else []
        schema = pa.schema(
            [pa.field(name, _DIGITS if name in whole else arrow_type(kind)) for name, kind in columns.items()]
        )
        most = _LARGEST_WIDE if self._wide else LARGEST_INTEGER
        values = [[_held(row[place], kind, most) for row in rows] for place, kind in enumerate(columns.values())]
        self._create(pa.table(values, schema=schema), table, columns)

    def _create(self, rows: pa.Table, table: str, columns: Mapping[str, Type]) -> None:
        """Create a table from an Arrow table with columns of these types."""
        whole = [name for name, kind in columns.items() if kind == "integer"] if self._wide else []
        self._connection.register(_SOURCE, rows)
        shown = ", ".join(
            f"CAST({_quoted(name)} AS HUGEINT) AS {_quoted(name)}" if name in whole else _quoted(name)
            for name in columns
        )
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {_quoted(table)} AS SELECT {shown} FROM {_SOURCE}")
        self._connection.unregister(_SOURCE)

    def close(self) -> None:
        """Stop the timer and close the database."""
        self._timer.cancel()
        with suppress(Exception):
            self._connection.close()

    def __enter__(self) -> IsolatedDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_on_any_numbers(
    post: PostProcessing,
    columns: Sequence[Mapping[str, Type]],
    keys: Sequence[int],
    tables: Sequence[Rows],
    public: PublicRows | None = None,
) -> PostProcessedTable | None:
    """Return the answer that a rehearsed statement makes of these noisy tables; None where it fails on them.

    Where whole numbers become too large for 64 bits, they are computed with in 128, and where these are too few, as
    doubles. No rehearsal
    can rule out that a statement fails, takes long, or has many rows, on just these tables. That is no incident, since
    the tables are released already; so no exception leaves this function. ``keys`` is how many of the first columns of
    each table are its groups.

    >>> post, columns = PostProcessing("SELECT n * n AS square FROM noisy"), {"n": "integer"}
    >>> run_on_any_numbers(post, [columns], [0], [[(10**10,)]]).rows
    [(1e+20,)]
    >>> post = PostProcessing("SELECT n * n // 70 AS whole FROM noisy")
    >>> run_on_any_numbers(post, [columns], [0], [[(10**10,)]]).rows
    [(1428571428571428571,)]
    >>> post = PostProcessing("SELECT make_date(2024, n, 1) AS day FROM noisy")
    >>> run_on_any_numbers(post, [columns], [0], [[(13,)]]) is None
    True
    """
    for attempt in ("64 bits", "128 bits", "doubles"):
        as_computed = [
            {
                name: "number" if kind == "integer" and place >= first and attempt == "doubles" else kind
                for place, (name, kind) in enumerate(item.items())
            }
            for item, first in zip(columns, keys, strict=True)
        ]
        try:
            with IsolatedDatabase(post, *as_computed, public=public, wide=attempt == "128 bits") as database:
                return database.run(*tables)
        except (duckdb.InterruptException, InvalidArgument):  # doubles are no faster, and no fewer
            return None
        except Exception:
            continue
    return None


def rehearse(
    post: PostProcessing,
    *columns: Mapping[str, Type],
    one_row: Collection[str] = (),
    public: Mapping[str, Mapping[str, Type]] | None = None,
) -> PostProcessedTable:
    """Try a statement on made-up tables before the charge, and return the columns it makes; refuse it where it fails.
    The tables have no rows, one row, and zeros, negative and large numbers and NULL; those in ``one_row`` always have
    one row. ``public`` has the types of the columns of each public table that it reads. Nothing here depends on the
    data.

    >>> rehearse(PostProcessing("SELECT m FROM noisy"), {"n": "integer"})
    Traceback (most recent call last):
    dither.InvalidArgument: SQL: expected SQL that DuckDB runs on the noisy answer, got Referenced column "m" not found
    in FROM clause!. Fix: use the names of the inner SELECT, and the functions of DuckDB.
    """
    known = tuple((name, tuple(types.items())) for name, types in (public or {}).items())
    return _rehearsed_once(post, tuple(tuple(item.items()) for item in columns), frozenset(one_row), known)


@lru_cache(maxsize=64)
def _rehearsed_once(
    post: PostProcessing,
    columns: tuple[tuple[tuple[str, Type], ...], ...],
    one_row: frozenset[str],
    public: tuple[tuple[str, tuple[tuple[str, Type], ...]], ...],
) -> PostProcessedTable:
    """Rehearse a statement with integers of 64 bits, then 128 bits, then as doubles, until none overflows.

    ``columns`` are name and type of the columns of each noisy table, ``one_row`` the names of tables that always have
    one row, ``public`` the names and columns of public tables. Results are cached: a statement is rehearsed when it is
    read, explained and released, and opening a database takes long.
    """
    known = {name: dict(types) for name, types in public}
    for wide in (False, True):  # it is computed in 128 bits, or as doubles, see run_on_any_numbers
        with suppress(duckdb.OutOfRangeException):
            return _rehearsed(post, [dict(item) for item in columns], one_row, known, wide)
    as_doubles = [{name: "number" if kind == "integer" else kind for name, kind in item} for item in columns]
    with _refusing():
        return _rehearsed(post, as_doubles, one_row, known)


def _rehearsed(
    post: PostProcessing,
    columns: Sequence[Mapping[str, Type]],
    one_row: Collection[str],
    public: Mapping[str, Mapping[str, Type]],
    wide: bool = False,
) -> PostProcessedTable:
    """Run the statement ``post`` on made-up tables of growing size and return its columns without rows.

    The tables have no, one and all of the made-up rows, so that a statement that fails on an empty or a longer answer
    is refused before the charge. Tables in ``one_row`` have one row, each of the made-up ones in turn. ``wide`` gives
    whole numbers 128 bits.
    """
    result = None
    rows = [_made_up_rows(item) for item in columns]
    known = {name: (types, _made_up_table(types)) for name, types in public.items()}
    with IsolatedDatabase(post, *columns, public=known, strict=True, wide=wide) as database:
        for place in range(len(_NUMBERS) + 1 if one_row else 3):
            most = (0, 1)[place] if place < 2 else None
            tables = [
                table[place : place + 1] if name in one_row else table[:most]
                for name, table in zip(post.tables, rows, strict=True)
            ]
            with _refusing(duckdb.OutOfRangeException):
                result = database.run(*tables)
    assert result is not None
    return replace(result, rows=[])


@contextmanager
def _refusing(*other: type[Exception]) -> Iterator[None]:
    """Turn DuckDB's errors about made-up rows into refusals, except the types in ``other``. DuckDB's message quotes
    the statement and nothing else."""
    said = None
    try:
        yield
    except other:
        raise
    except duckdb.InterruptException:
        said = "one that takes too long"
    except duckdb.Error as error:
        said = clip(re.sub(r"^[A-Za-z ]*Error: ", "", str(error).strip().splitlines()[0]), 160)
    if said is not None:
        fix = "use the names of the inner SELECT, and the functions of DuckDB"
        if "More than one row" in said:
            fix = "aggregate in the subquery, or write LIMIT 1, so that it has one row"
        raise InvalidArgument("SQL", "SQL that DuckDB runs on the noisy answer", said, fix)


def _made_up_table(columns: Mapping[str, Type]) -> pa.Table:
    """Return the rows of :func:`_made_up_rows` as an Arrow table, which stands for a public one."""
    schema = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in columns.items()])
    return pa.table(list(zip(*_made_up_rows(columns), strict=True)), schema=schema)


def _made_up_rows(columns: Mapping[str, Type]) -> list[tuple[Any, ...]]:
    """Return varied rows that a noisy table with these ``columns`` (types by name) could have; the last is all NULL."""
    rows: list[tuple[Any, ...]] = []
    for place, number in enumerate(_NUMBERS):
        values: dict[Type, Any] = {
            "integer": number,
            "number": float(number),
            "text": "abcd"[place],
            "boolean": place % 2 == 0,
            "date": date(2024, 1, 1) + timedelta(place),
            "timestamp": datetime(2024, 1, 1) + timedelta(place),
        }
        rows.append(tuple(values[kind] for kind in columns.values()))
    return [*rows, (None,) * len(columns)]


def _fetch(relation: Any) -> list[tuple[Any, ...]]:
    """Return all rows of a result; refuse one with too many rows, or texts too long to record."""
    result: list[tuple[Any, ...]] = relation.fetchall()
    if len(result) > MAX_ROWS:
        raise InvalidArgument("SQL", f"at most {MAX_ROWS} rows", "more", "join answers on their keys")
    if sum(len(value) for row in result for value in row if isinstance(value, str)) > MAX_CHARACTERS:
        expected = f"texts of at most {MAX_CHARACTERS} characters in all"
        raise InvalidArgument("SQL", expected, "more", "write shorter texts")
    return result


def _type(name: str, native: str) -> Type:
    """Return the card's type for the DuckDB type ``native`` of the result column ``name``; refuse types that answers do
    not have.
    """
    if native.startswith("DECIMAL"):
        return "integer" if native.replace(" ", "").endswith(",0)") else "number"
    kind = _TYPES.get("VARCHAR" if native.startswith("ENUM") else native)
    if kind is None:
        got = f"{clip(name)!r}, which is {clip(native, 20)}"
        fix = "write CAST(… AS VARCHAR), or a part of it"
        raise InvalidArgument("SQL", "columns of numbers, texts, dates or truth values", got, fix)
    return kind


def _quoted(name: str) -> str:
    """Return a name in double quotes for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _held(value: Any, kind: Type, most: int) -> Any:
    """Return a value as the noisy table's column stores it; raise OverflowError for a whole number above ``most`` in
    size."""
    if value is None:
        return None
    if kind == "integer":
        whole = round(value)
        if abs(whole) > most:
            raise OverflowError
        return Decimal(whole) if most > LARGEST_INTEGER else whole
    return float(value) if kind == "number" else value


def _plain(value: Any, kind: Type) -> Any:
    """Return a value of DuckDB as an answer stores it; None where it cannot be represented."""
    if isinstance(value, Decimal):
        value = int(value) if kind == "integer" else float(value)
    if kind == "date":
        return value if isinstance(value, date) else None
    if kind == "timestamp":
        return value if isinstance(value, datetime) else None
    return representable(value)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return the column names with a number behind each repeated one."""
    result: list[str] = []
    for name in names:
        result.append(unique(name or "value", result, normalize=str))
    return tuple(result)
