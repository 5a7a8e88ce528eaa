"""The server's own database: SQLite for one process, PostgreSQL for several.

Statements are SQLAlchemy Core. On SQLite all threads share one connection to write and one to read, each under a lock:
two threads that write never meet, and who reads does not wait for a disk. Commits are on disk when they return, so that
a token that was revoked stays so.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from dither.errors import InvalidArgument, LedgerError
from dither.server import schema


def iso(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601 text, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_or_none(seconds: float | None) -> str | None:
    """Return a time as :func:`iso` does; None for None."""
    return None if seconds is None else iso(seconds)


class FolderLock:
    """A file lock beside the server's SQLite file, held while a server runs, so that a second one is refused."""

    def __init__(self, address: str) -> None:
        """Take the lock of the SQLite file ``address``; refuse it while another server holds it."""
        try:  # the path itself, so that two names of one folder are one lock
            self._file = os.open(os.path.realpath(address) + ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            text = "The server's folder cannot be written to. Check its path and who may write to it."
            raise LedgerError(text) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            text = "Another server serves this folder. Stop it, or use PostgreSQL."
            raise InvalidArgument(text) from None

    def release(self) -> None:
        """Release the lock."""
        os.close(self._file)


_BUSY_MS = 60_000

_CONNECT_SECONDS = 10


class Store:
    """The server's own database: users, credentials, grants, questions, answers and events."""

    def __init__(self, address: str) -> None:
        """Open a database, a SQLite file or ``postgresql://…``, and create missing tables."""
        self._lock, self._reading = threading.RLock(), threading.RLock()
        self.is_sqlite = "://" not in address
        try:
            self._engine = _sqlite(address) if self.is_sqlite else _postgresql(address)
            self._connection = self._engine.connect() if self.is_sqlite else None
            self._reader = self._engine.connect() if self.is_sqlite else None
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise _unusable(error) from None
        try:
            self._create()
        except SQLAlchemyError as error:
            self.close()
            raise _unusable(error) from None
        except BaseException:
            self.close()
            raise

    def _create(self) -> None:
        """Create missing tables; refuse a damaged file and tables of another version."""
        with self.writing() as connection:
            if self.is_sqlite and connection.execute(sa.text("PRAGMA quick_check(1)")).fetchall() != [("ok",)]:
                raise _damaged()
            if not self.is_sqlite:  # several processes start at the same time
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7216471)"))
            schema.metadata.create_all(connection)
            versions = [row[0] for row in connection.execute(sa.select(schema.about.c.version))]
            if not versions:
                connection.execute(schema.about.insert().values(version=schema.VERSION))
            elif versions != [schema.VERSION]:
                fix = "use the version of dither that wrote it, or a newer one"
                got = "one of another version"
                raise InvalidArgument("database", f"version {schema.VERSION} of the server's tables", got, fix)

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that is durable when the block ends, and undone if it fails."""
        if self._connection is not None:
            with self._lock, self._connection.begin():
                self._connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield self._connection
        else:
            with self._engine.begin() as connection:
                yield connection

    @contextmanager
    def alone(self) -> Iterator[sa.Connection]:
        """Open a transaction that excludes those of all other processes and threads opened by this method."""
        with self.writing() as connection:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7216472)"))
            yield connection

    def rows(self, statement: sa.Select[Any], values: Mapping[str, Any] | None = None) -> Sequence[sa.Row[Any]]:
        """Return the rows of a SELECT."""
        if self._reader is not None:
            with self._reading:  # SQLite reads without a transaction: each SELECT sees what is committed
                return self._reader.execute(statement, values or {}).fetchall()
        with self._engine.connect() as connection:
            return connection.execute(statement, values or {}).fetchall()

    def one(self, statement: sa.Select[Any], values: Mapping[str, Any] | None = None) -> sa.Row[Any] | None:
        """Return the first row of a SELECT; None if it has none."""
        rows = self.rows(statement, values)
        return rows[0] if rows else None

    def run(self, *statements: sa.Executable) -> int:
        """Execute statements in one transaction, and return how many rows the last one changed."""
        count = 0
        with self.writing() as connection:
            for statement in statements:
                count = connection.execute(statement).rowcount
        return count

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            if self._connection is not None and self._reader is not None:
                self._connection.close()
                self._reader.close()
            self._engine.dispose()


def _sqlite(address: str) -> sa.Engine:
    """Return the engine of a SQLite file, which is created with access for its owner only."""
    path = Path(address)
    if not path.exists():  # readable by its owner alone
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"check_same_thread": False}, poolclass=sa.NullPool)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        """Set up a new connection."""
        connection.isolation_level = None  # transactions begin where this module says
        for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={_BUSY_MS}", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _postgresql(address: str) -> sa.Engine:
    """Return the engine of a PostgreSQL database."""
    url = sa.make_url(address)
    if url.get_backend_name() != "postgresql":
        fix = "pass a file for SQLite, or postgresql://user@host/name"
        raise InvalidArgument("database", "SQLite or PostgreSQL", url.get_backend_name(), fix)
    url = url.set(drivername="postgresql+psycopg")
    given = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS}
    return sa.create_engine(url, pool_size=8, max_overflow=24, pool_pre_ping=True, connect_args=given)


def _unusable(error: BaseException) -> LedgerError:
    """Return the error for a database that cannot be opened, from the driver's error."""
    cause = getattr(error, "orig", error)
    if type(cause) is sqlite3.DatabaseError:
        return _damaged()
    fix = "check its place, and who may read and write it"
    return LedgerError("database", "a database of the server that can be opened", "none", fix)


def _damaged() -> LedgerError:
    """Return the error for a damaged file, or for one that is not the database of a server."""
    expected, fix = "a database of the server as it was written", "restore it from a backup"
    return LedgerError("database", expected, "a damaged or different file", fix)
