"""One durable transaction at a time, on SQLite or PostgreSQL.

Statements are built in SQLAlchemy Core, compiled once for the database at hand, and run on its own driver: a
charge is mostly one disk write, and should cost little more than that.

A writer holds one lock for the whole ledger from the first statement on (SQLite: ``BEGIN IMMEDIATE``;
PostgreSQL: a lock on the history), so that check and charge are one step, entries have an order, and no deadlock is
possible. Commits are on disk when they return: SQLite runs with ``synchronous=FULL``, PostgreSQL with
``synchronous_commit=on``, and a server that runs with ``fsync=off`` is refused.

SQLite keeps a rollback journal (``journal_mode=PERSIST``), not a write-ahead log: once a commit has returned, it is in
the ledger's own file, and no other file is needed to find it. Should a process die while it writes, the journal says
how to undo what is half written, and the next one does so. If that journal is lost, the file may be a mixture of
before and after. Between transactions the journal stays, with its first bytes zeroed: so one that is missing or empty
was removed, and everything is verified before the next write.
"""

from __future__ import annotations

import os
import select
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.sql.compiler import SQLCompiler

from dither.errors import DitherError, InvalidArgument, LedgerError, WrongType
from dither.ledger import files, schema

WAIT_SECONDS = 120
_JOURNAL_BYTES = 1 << 20  # what stays of a journal after a large transaction
_BEGIN = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "BEGIN",
}
_SNAPSHOT = {
    "sqlite": "BEGIN",
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
}
_TABLES = [sa.select(table).limit(0) for table in (schema.about, schema.entry, schema.account, schema.person)]


Statement = sa.ClauseElement


class _Compiled(NamedTuple):
    """A statement compiled for the driver: its text, the names of positional parameters in order (None if the driver
    takes names), and parameters with fixed values. The cache is keyed by ``id(statement)``, so it is kept alive."""

    statement: Statement
    text: str
    names: list[str] | None
    fixed: dict[str, Any]


def _compiled(statement: Statement, dialect: sa.Dialect) -> _Compiled:
    """Return the text, the names and the constants of a statement."""
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    fixed = {name: value for name, value in compiled.params.items() if value is not None}
    names = list(compiled.positiontup or ()) if compiled.positional else None
    return _Compiled(statement, compiled.string, names, fixed)


@lru_cache(maxsize=256)
def _compiled_for_sqlite(statement: Statement) -> _Compiled:
    """Return a compiled statement for SQLite, of which a process has one version. Statements are those of the schema,
    so that the cache is small; to compile them took a tenth of the time of opening a table."""
    return _compiled(statement, sqlite.dialect(dbapi=sqlite3))


@lru_cache(maxsize=32)
def _batched(build: Callable[[str], Statement], dialect: str) -> Statement:
    """Return the statement that ``build`` makes for a dialect."""
    return build(dialect)


class _Translated:
    """A block in which an error of the database is raised again as a :class:`LedgerError`."""

    __slots__ = ("_explain",)

    def __init__(self, explain: Callable[[BaseException], LedgerError]) -> None:
        self._explain = explain

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Translate an error of SQLAlchemy, SQLite or psycopg; let all others pass."""
        if error is None or isinstance(error, DitherError):
            return
        # damaged text raises a UnicodeDecodeError
        of_database = isinstance(error, (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError))
        if of_database or (isinstance(error, Exception) and type(error).__module__.startswith("psycopg")):
            raise self._explain(error) from error


class LedgerStore:
    """The database of a ledger, with the ledger's secret. ``created`` is True if opening it has made it."""

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        secret: bytes | None = None,
        create: bool = True,
        read_only: bool = False,
    ) -> None:
        """Open or create the database at ``place``, a file or an address, and check that it is a ledger with this
        secret.

        ``secret`` is None where it is in the key file beside a SQLite file or in the environment; PostgreSQL has no key
        file. ``create`` allows a missing ledger to be made, unless ``read_only`` refuses every change.
        """
        self.address, self.read_only = _address(place), read_only
        self.created = False
        self.recheck: Callable[[], object] = _nothing  # what is done before a write if SQLite's journal is missing
        self._lock = threading.RLock()
        self._compiled: dict[int, _Compiled] = {}
        self._connection: Any = None
        self._open_driver: Any = None
        given, create = files.given_secret(secret), create and not read_only
        self._journal: str | None = None
        if self.address.get_backend_name() == "sqlite":
            path = Path(str(self.address.database))
            self.secret, self.created = files.prepared(path, given, create)
            self.engine, self._journal = _sqlite(self.address, read_only), str(files.journal_file(path))
        elif given is None:
            raise files.missing_secret()
        else:
            self.secret, self.engine = given, _postgresql(self.address, read_only)
        self.dialect = self.engine.dialect.name
        with _REGISTER:
            _STORES.add(self)
        with self._lock, self._translated():
            self._check(create)

    # -- the tables -------------------------------------------------------------------------------------------------

    def _check(self, create: bool) -> None:
        """Refuse a database that is no ledger of this version and secret; on PostgreSQL, make one where there is none
        and ``create`` is true."""
        with self.engine.connect() as connection:
            about = self._about(connection)
            if about is None and create and self.dialect == "postgresql":
                about = self._make(connection)
        if about is None:
            raise files.missing("a database without one")
        try:
            version = int(about["version"])
        except (KeyError, ValueError):
            raise _damaged("its version cannot be read") from None
        if version != schema.VERSION:
            fix = "open it with the version of dither that made it"
            raise _unusable(f"a ledger of version {schema.VERSION}", f"version {version}", fix)
        if about.get("secret") != self.secret.fingerprint:
            raise files.wrong_secret()
        self.check_shape()

    def _about(self, connection: sa.Connection) -> dict[str, str] | None:
        """Return version and fingerprint of the secret as the ledger states them; None for an empty database."""
        names = set(sa.inspect(connection).get_table_names())
        if "dither_about" in names:
            rows = connection.execute(sa.select(schema.about)).fetchall()
            return {str(name): str(value) for name, value in rows}
        if self.dialect == "sqlite" or any(name.startswith("dither_") for name in names):
            raise _unusable("a ledger, or no file yet", "a database of something else", "choose another place")
        return None

    def _make(self, connection: sa.Connection) -> dict[str, str] | None:
        """Make the tables on PostgreSQL, in one transaction, unless another process just did; return :meth:`_about`."""
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(6363636303)")
        if self._about(connection) is None:
            for statement, values in schema.creation(self.dialect, self.secret.fingerprint):
                connection.exec_driver_sql(statement, values)
            self.created = True
        connection.exec_driver_sql("COMMIT")
        return self._about(connection)

    def check_shape(self) -> None:
        """Refuse a ledger whose tables, indices or triggers have been changed since it was created."""
        cursor = self._driver().cursor()
        cursor.execute(schema.shape(self.dialect))
        shape = sorted(map(tuple, cursor.fetchall()), key=repr)
        if shape != schema.expected_shape(self.dialect):
            raise _damaged("its tables, indices or triggers were changed")

    # -- statements -------------------------------------------------------------------------------------------------

    def _driver(self) -> Any:
        """Return the driver's own connection; a connection that the server closed while idle is replaced."""
        if self._open_driver is not None and self.dialect == "postgresql" and _was_closed(self._open_driver):
            self._forget()
        if self._connection is None:
            self._connection = self.engine.raw_connection()
            self._open_driver = self._connection.driver_connection
        return self._open_driver

    def run(self, statement: Statement, values: Mapping[str, object] | None = None) -> Any:
        """Execute one statement, and return the cursor to fetch rows from."""
        compiled = self._compiled.get(id(statement)) or self._compile(statement)
        given: Mapping[str, object] = {**compiled.fixed, **values} if values else compiled.fixed
        parameters = given if compiled.names is None else [given[name] for name in compiled.names]
        return self._driver().execute(compiled.text, parameters)

    def _compile(self, statement: Statement) -> _Compiled:
        """Compile a statement for the driver, once; for SQLite, once for all ledgers of this process."""
        if self.dialect == "sqlite":
            result = _compiled_for_sqlite(statement)
        else:
            result = _compiled(statement, self.engine.dialect)
        self._compiled[id(statement)] = result
        return result

    def batched(self, build: Callable[[str], Statement]) -> Statement:
        """Return the statement about a batch of people that ``build`` makes for this dialect; it is made once."""
        return _batched(build, self.dialect)

    def rows(self, statement: Statement, values: Mapping[str, object] | None = None) -> list[Any]:
        """Return all rows of a query; other threads wait meanwhile, and errors of the database become those of the
        ledger."""
        with self._lock, self._translated():
            rows: list[Any] = self.run(statement, values).fetchall()
            return rows

    def transaction(self) -> AbstractContextManager[None]:
        """Open a transaction that is on disk when the block ends, and undone if it fails; other writers wait."""
        if self.read_only:
            raise _unusable("a ledger opened for writing", "one opened with read_only=True", "open it without")
        return self._between(_BEGIN[self.dialect], True)

    def snapshot(self) -> AbstractContextManager[None]:
        """Open a transaction that reads one state of the ledger, whatever others write meanwhile."""
        return self._between(_SNAPSHOT[self.dialect], False)

    def check_integrity(self) -> None:
        """Refuse tables with missing columns, and a SQLite file whose indices differ from its tables, so that rows
        exist which no query finds. PostgreSQL checks its own files.
        """
        for table in _TABLES:
            self.run(table)
        if self.dialect == "sqlite" and self._driver().execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise _damaged("its indices and its tables differ")

    @contextmanager
    def _between(self, begin: str, lock: bool) -> Iterator[None]:
        """Run a block in a transaction that the statement ``begin`` opens; ``lock`` keeps other writers out."""
        with self._lock, self._translated():
            driver = self._driver()
            try:
                if self.dialect == "sqlite":
                    driver.execute(begin)
                    if lock and self._journal is not None and not _holds_bytes(self._journal):
                        self.recheck()
                    yield
                    driver.execute("COMMIT")
                else:
                    # statements travel together, and are answered when somebody reads
                    with driver.pipeline():
                        driver.execute(begin)
                        if lock:
                            driver.execute("LOCK TABLE dither_entry IN EXCLUSIVE MODE")
                        yield
                        driver.execute("COMMIT")
            except BaseException:
                with suppress(Exception):
                    driver.execute("ROLLBACK")
                raise

    def _translated(self) -> _Translated:
        """Return a block in which errors of the database become errors of the ledger."""
        return _Translated(self.explained)

    def explained(self, error: BaseException) -> LedgerError:
        """Return the ledger's error for an error of the database, and drop the connection."""
        self._forget()
        text = str(error).lower()
        for sign, (got, fix) in _SIGNS.items():
            if sign in text:
                return _unusable("a ledger that can be written", got, fix)
        return _unusable(
            "a ledger that answers", _cause(error), "mend what the database complains about, and ask again"
        )

    def _forget(self) -> None:
        """Drop the connection, whose state is unknown after an error; the next statement opens a new one."""
        connection, self._connection, self._open_driver = self._connection, None, None
        if connection is not None:
            with suppress(Exception):
                connection.invalidate()

    def close(self) -> None:
        """Close the connection; the next statement opens a new one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = self._open_driver = None
            self.engine.dispose()

    def before_fork(self) -> None:
        """Wait for the transaction under way and close: a connection must be used, and closed, where it was opened."""
        self._lock.acquire()
        with suppress(Exception):
            self.close()

    def after_fork(self, child: bool) -> None:
        """Release the lock after a fork; ``child`` says that this is the child process, which gets a new lock."""
        if child:
            self._lock = threading.RLock()
        else:
            self._lock.release()


_STORES: weakref.WeakSet[LedgerStore] = weakref.WeakSet()  # what a fork has to look after
_REGISTER = threading.Lock()


def _before_fork() -> None:
    """Close all connections and hold all locks, so that a child inherits none in use."""
    _REGISTER.acquire()
    for store in sorted(_STORES, key=id):  # one order for all threads: they wait for each other
        store.before_fork()


def _after_fork(child: bool) -> None:
    """Release in parent and child what was held for the fork."""
    for store in _STORES:
        store.after_fork(child)
    _REGISTER.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(False),
        after_in_child=lambda: _after_fork(True),
    )


_SIGNS = {
    "readonly": ("one that is read-only", "make it, its -journal, and the folder writable"),
    "read-only": ("one that is read-only", "connect to a server that accepts writes"),
    "disk is full": ("a full disk", "make room; the ledger says what was charged"),
    "no space": ("a full disk", "make room; the ledger says what was charged"),
    "disk i/o": ("a disk that fails", "check the disk and ask again with the same key"),
    "locked": ("one that another process has locked", "ask again with the same key"),
    "unable to open": ("a file that cannot be opened", "check that its folder exists and is yours"),
    "codec can't": ("a damaged file", "restore it from a copy and check it against the last receipt"),
    "malformed": ("a damaged file", "restore it from a copy and check it against the last receipt"),
    "not a database": ("a file that is not one", "choose another file, or restore the ledger from a copy"),
    "no such table": ("a file without its tables", "restore the ledger from a copy"),
    "append": ("a statement that would change its history", "leave the history as it is"),
}


def _cause(error: BaseException) -> str:
    """Return class and first line of a database error, without the statement and its values."""
    origin = getattr(error, "orig", None) or error
    lines = " ".join(str(origin).split("\n", 1)[0].split())
    return f"{type(origin).__name__} from the database" + (f": {lines[:200]}" if lines else "")


def _unusable(expected: str, got: str, fix: str) -> LedgerError:
    """Return the error for a ledger that cannot be used."""
    return LedgerError("ledger", expected, got, fix)


def _damaged(what: str) -> LedgerError:
    """Return the error for a ledger that is not as it was written."""
    return _unusable("a ledger as it was written", f"a damaged one: {what}", "restore it from a copy")


def _address(place: object) -> sa.URL:
    """Return the address of a ledger as a URL; refuse what is neither a file nor PostgreSQL."""
    if isinstance(place, str) and "://" in place:
        try:
            url = sa.make_url(place)
        except (ArgumentError, ValueError):
            raise _elsewhere("a URL that cannot be read") from None
        if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
            return url.set(drivername="postgresql+psycopg")
        if url.drivername != "sqlite" or url.query:
            raise _elsewhere(f"{url.drivername}://" + "…?…" * bool(url.query))
        return _file(url.database or "")
    name = os.fspath(place) if isinstance(place, (str, os.PathLike)) else place
    if not isinstance(name, str) or not name:
        raise WrongType("place", "a file name or a URL", type(place).__name__, "pass 'budget.sqlite', for example")
    return _file(name)


def _file(name: str) -> sa.URL:
    """Return the URL of a SQLite file by its absolute path, which stays valid if the process changes its folder."""
    if name in ("", ":memory:"):
        raise InvalidArgument(
            "place", "a file, which outlives the process", "a database in memory", "pass 'budget.sqlite'"
        )
    if "\0" in name:
        raise _elsewhere("a name with a NUL in it")
    return sa.URL.create("sqlite", database=os.path.realpath(name))


def _elsewhere(got: str) -> InvalidArgument:
    """Return the error for an address that is neither a file nor PostgreSQL."""
    return InvalidArgument("place", "a file or postgresql://…", got, "pass 'budget.sqlite'")


def _postgresql(url: sa.URL, read_only: bool) -> sa.Engine:
    """Return an engine of PostgreSQL whose commits are on disk when they return; refuse a server with fsync off."""
    try:
        engine = sa.create_engine(url, poolclass=sa.NullPool)
    except ModuleNotFoundError:
        raise InvalidArgument(
            "place", "a PostgreSQL ledger with its driver", "no driver", "pip install 'dither[postgresql]'"
        ) from None

    @sa.event.listens_for(engine, "connect")
    def durable(driver: Any, _: Any) -> None:
        """Set up a new connection."""
        driver.autocommit = True
        if driver.execute("SHOW fsync").fetchone()[0] != "on":
            raise _unusable("a server that writes to disk", "one with fsync = off", "turn it on, or charges are lost")
        driver.execute(f"SET synchronous_commit = on; SET lock_timeout = '{WAIT_SECONDS}s'")
        if read_only:
            driver.execute("SET default_transaction_read_only = on")

    return engine


def _sqlite(url: sa.URL, read_only: bool) -> sa.Engine:
    """Return an engine of a SQLite file whose commits are on disk when they return, and whose journal file stays.

    The journal file is kept between transactions (PERSIST); where it is missing, the ledger is checked again before a
    write.
    """
    file = "file:" + quote(str(url.database)) + ("?mode=ro" if read_only else "?mode=rw")

    def connect() -> sqlite3.Connection:
        """Open the file, which has to exist."""
        return sqlite3.connect(file, uri=True, timeout=WAIT_SECONDS, check_same_thread=False)

    engine = sa.create_engine(url, poolclass=sa.NullPool, creator=connect)

    @sa.event.listens_for(engine, "connect")
    def make_durable(driver: Any, _: Any) -> None:
        """Make the commits of a new connection reach the disk, and its journal file stay: without one, the file is
        checked again. The schema is not trusted, as the file may be somebody else's; the cache is in KiB."""
        driver.isolation_level = None
        driver.execute(f"PRAGMA busy_timeout = {round(1000 * WAIT_SECONDS)}")
        if not read_only:
            with suppress(sqlite3.OperationalError):  # a file that may not be written can still be read
                # somebody else's database stays as it is
                if driver.execute("SELECT 1 FROM sqlite_master WHERE name = 'dither_about'").fetchone():
                    driver.execute("PRAGMA journal_mode = PERSIST")
                    driver.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        driver.execute("PRAGMA synchronous = FULL")
        driver.execute("PRAGMA fullfsync = ON")
        driver.execute("PRAGMA foreign_keys = ON")
        driver.execute("PRAGMA trusted_schema = OFF")
        driver.execute("PRAGMA cache_size = -65536")

    return engine


def _was_closed(driver: Any) -> bool:
    """Return whether PostgreSQL has ended a connection in which no transaction is under way, as a restart does.

    A server says nothing to an idle client unless it ends the connection, so in the usual case nothing is there to
    read, and no message is sent to find out.
    """
    if driver.closed:
        return True
    if driver.info.transaction_status != 0 or driver.pgconn.pipeline_status != 0:  # 0: idle, and no pipeline
        return False
    if not select.select([driver.fileno()], [], [], 0)[0]:
        return False
    try:
        driver.execute("SELECT 1")
    except Exception:  # of the driver: the connection is gone
        return True
    return False


def _holds_bytes(path: str) -> bool:
    """Return whether a file exists and is not empty."""
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _nothing() -> None:
    """Do nothing before a write: a store by itself cannot verify a ledger."""
