"""A SQLite ledger as files: made in one step, and refused where it could be two.

``budget.sqlite``          everything that was ever charged, once a charge has returned
``budget.sqlite.key``      the secret; without it the ledger cannot be used
``budget.sqlite-journal``  SQLite's own: how to undo the write that is under way. It is there even when nothing is, so
                           that a missing one is noticed (:mod:`dither.ledger.store`)
``budget.sqlite.part``     a ledger that is being made; what is left of one is removed or finished by the next

There is a ledger with its key, or there is neither and both are made; anything else is refused, since to start anew
would forget what was spent. Making them is one step for everybody else: it is done under a lock on the folder, and the
ledger gets its name last, when it is complete.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dither.errors import LedgerError
from dither.ledger import schema
from dither.ledger import secret as _secret
from dither.ledger.secret import Secret

_HEADER = b"SQLite format 3\0"
_MOUNTS = Path("/proc/self/mountinfo")
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


def key_file(path: Path) -> Path:
    """Where the secret of a SQLite ledger is kept."""
    return path.with_name(path.name + ".key")


def journal_file(path: Path) -> Path:
    """Where SQLite keeps how to undo the write that is under way."""
    return path.with_name(path.name + "-journal")


def prepared(path: Path, given: Secret | None, create: bool) -> tuple[Secret, bool]:
    """The secret of the ledger at a path, and whether the ledger was made for it just now."""
    try:
        created = not os.path.lexists(path) and _make(path, given, create)
        check(path)
        return given or _secret.read_file(key_file(path)), created
    except (OSError, sqlite3.Error):
        raise _refused("a file that can be opened", "one that cannot", "check its name and its folder") from None


def check(path: Path) -> None:
    """Refuse what is no ledger, and a file that has another name: SQLite's journal goes by the name, so that what one
    name leaves half written the other would not undo.
    """
    if path.is_dir():
        raise _refused("a file", "a folder", "name a file in it")
    with path.open("rb") as file:  # SQLite itself takes short files for empty databases
        if file.read(len(_HEADER)) != _HEADER:
            raise _refused(
                "a ledger, or no file yet",
                "a file that is not a ledger, or was cut off",
                "check its name, or restore the ledger from a copy",
            )
        if os.fstat(file.fileno()).st_nlink > 1:
            raise _refused("a file with one name", "one with several (hard links)", "remove the other names")
    if _is_mount(path):
        raise _refused("a file in a folder", "one that is mounted by itself", "mount the folder instead of the file")


def _is_mount(path: Path) -> bool:
    """Whether something is mounted on this very file, as ``docker -v file:file`` does."""
    if path.stat().st_dev != path.parent.stat().st_dev:
        return True
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:  # a system without it
        return False
    # blanks and the like are written as octal numbers
    return os.fsencode(path) in {line.split()[4].decode("unicode_escape").encode("latin-1") for line in lines}


def _make(path: Path, given: Secret | None, create: bool) -> bool:
    """Make ledger and key, unless somebody else has meanwhile."""
    key, part = key_file(path), path.with_name(path.name + ".part")
    if not path.parent.is_dir():
        raise _refused("a folder that exists", "a missing one", "make it first, or choose another")
    if not create:
        if os.path.lexists(key):
            raise _lost()
        raise _refused("a ledger", "no such file", "create it with dither.ledger.open(place)")
    if not os.access(path.parent, os.W_OK):
        raise _refused(
            "a folder that can be written, for a new ledger", "one that cannot", "let it be written, or choose another"
        )
    with _locked(path.parent):
        if os.path.lexists(path):
            return False
        if os.path.lexists(key):
            if given is not None or not _waits_for(part, _secret.read_file(key)):
                raise _lost()
        else:
            part.unlink(missing_ok=True)
            fresh = given or Secret(secrets.token_bytes(32))
            _write_ledger(part, fresh)
            if given is None:
                _write_key(key, fresh)
        os.rename(part, path)
        _sync(path.parent)
        return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write_ledger(path: Path, secret: Secret) -> None:
    """A complete ledger without any account; only its owner may read who will be in it."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _PRIVATE))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("BEGIN")
        for statement, values in schema.creation("sqlite", secret.fingerprint):
            connection.execute(statement, values)
        connection.execute("COMMIT")
    _sync(path)


def _write_key(path: Path, secret: Secret) -> None:
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE)
    with os.fdopen(handle, "wb") as file:
        file.write(secret.value.hex().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.rename(part, path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _waits_for(part: Path, secret: Secret) -> bool:
    """Whether a ledger was complete but for its name, with this key, when its making was interrupted."""
    if not part.exists():
        return False
    with closing(sqlite3.connect(f"{part.as_uri()}?mode=ro", uri=True)) as connection:
        result = dict(connection.execute("SELECT name, value FROM dither_about").fetchall())
        return result == {"version": str(schema.VERSION), "secret": secret.fingerprint}


def _lost() -> LedgerError:
    return _refused(
        "the ledger that the .key file beside it belongs to",
        "none: a new one would forget what was spent",
        "restore the ledger from its latest copy",
    )


def _refused(expected: str, got: str, fix: str) -> LedgerError:
    return LedgerError("ledger", expected, got, fix)
