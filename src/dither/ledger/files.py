"""The files of a SQLite ledger: created in one atomic step, and refused where one ledger could become two.

``budget.sqlite``          everything that was ever charged, once a charge has returned
``budget.sqlite.key``      the secret; without it the ledger cannot be used
``budget.sqlite-journal``  SQLite's own: how to undo the write that is under way. It is there even when nothing is, so
                           that a missing one is noticed (:mod:`dither.ledger.store`)
``budget.sqlite.part``     a ledger that is being made; what is left of one is removed or finished by the next

Either the ledger and its key both exist, or neither does and both are made; anything else is refused, since a new
ledger would forget what was spent. They are made under a lock on the folder, and the ledger gets its name last, when it
is complete, so that other processes never see a part of it.

The secret of a ledger: 32 bytes, chosen when the ledger is created.

The hash chain of the history and the hashes of people's keys are keyed with it, so somebody who obtains the database
alone can neither rewrite the history nor look up a name. A SQLite ledger keeps the secret in a file beside it
(``budget.sqlite.key``, readable by its owner only). A PostgreSQL ledger takes it from the environment variable
``DITHER_LEDGER_KEY`` (64 hexadecimal digits) or from ``open(…, secret=…)``. The ledger stores a fingerprint of its
secret, and a different secret, under which every person would seem new, is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dither.errors import InvalidArgument, LedgerError, LedgerMissing, WrongType
from dither.ledger import schema

VARIABLE = "DITHER_LEDGER_KEY"


@dataclass(frozen=True)
class Secret:
    """The secret of a ledger: 32 bytes, and the keys derived from them, one for each use."""

    value: bytes

    @cached_property
    def chain(self) -> bytes:
        """Return the key of the hash chain of the history."""
        return self._derived(b"history")

    @cached_property
    def people(self) -> bytes:
        """Return the key of the hashes and checksums of people's accounts."""
        return self._derived(b"people")

    @cached_property
    def series(self) -> bytes:
        """Return the key under which the state of series is sealed."""
        return self._derived(b"series")

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of the secret that the ledger stores, to recognize it."""
        return hashlib.sha256(b"dither ledger secret" + self.value).hexdigest()[:32]

    def _derived(self, use: bytes) -> bytes:
        """Return the key for one use."""
        return hmac.digest(self.value, b"dither ledger: " + use, "sha256")

    def __repr__(self) -> str:
        return "Secret(…)"


def given_secret(given: bytes | None) -> Secret | None:
    """Return the secret that the caller passes, else the one in the environment variable; None if there is neither."""
    if given is not None:
        if not isinstance(given, bytes):
            raise WrongType("secret", "32 bytes", type(given).__name__, "pass secrets.token_bytes(32)")
        if len(given) != 32:
            raise InvalidArgument("secret", "32 bytes", f"{len(given)}", "pass secrets.token_bytes(32)")
        return Secret(given)
    if VARIABLE in os.environ:
        return _read_secret(os.environ[VARIABLE], f"the variable {VARIABLE}")
    return None


def missing_secret() -> InvalidArgument:
    """Return the error for a PostgreSQL ledger without a secret, since it has no key file."""
    return InvalidArgument(
        "secret",
        "the secret of the ledger",
        "none",
        f"set {VARIABLE} to what secrets.token_hex(32) gives, and keep it",
    )


def read_key(path: Path) -> Secret:
    """Return the secret in a key file."""
    try:
        text = path.read_bytes().decode("ascii", "replace")
    except OSError:
        raise LedgerError(
            "ledger", "the file of its secret beside it, ending in .key", "none", "put the file back beside it"
        ) from None
    return _read_secret(text, "the file beside the ledger")


def wrong_secret() -> LedgerError:
    """Return the error for a secret that is not the one of this ledger."""
    return LedgerError(
        "ledger",
        "the secret that it was made with",
        "a different secret, under which every person would seem new",
        "put the ledger's own .key file or variable back",
    )


def _read_secret(text: str, where: str) -> Secret:
    """Return the secret that a text spells in hexadecimal; ``where`` names the text in the error."""
    try:
        result = bytes.fromhex(text.strip())
    except ValueError:
        result = b""
    if len(result) != 32:
        raise InvalidArgument(
            "secret", f"64 hexadecimal digits in {where}", "text of a different form", "put the secret back"
        )
    return Secret(result)


_HEADER = b"SQLite format 3\0"
_MOUNTS = Path("/proc/self/mountinfo")
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


def key_file(path: Path) -> Path:
    """Return the path of the key file of a SQLite ledger."""
    return path.with_name(path.name + ".key")


def journal_file(path: Path) -> Path:
    """Return the path of SQLite's rollback journal, which undoes an interrupted write."""
    return path.with_name(path.name + "-journal")


def prepared(path: Path, given: Secret | None, create: bool) -> tuple[Secret, bool]:
    """Return the secret of the ledger at a path, and whether this call made the ledger.

    ``given`` is a secret that the caller holds, None if it is in the key file beside the ledger; ``create`` allows a
    missing ledger to be made.
    """
    try:
        created = not os.path.lexists(path) and _make(path, given, create)
        check(path)
        return given or read_key(key_file(path)), created
    except (OSError, sqlite3.Error):
        raise _refused("a file that can be opened", "one that cannot", "check its name and its folder") from None


def check(path: Path) -> None:
    """Refuse a file that is not a SQLite database, or that has several names: SQLite finds its journal by the file's
    name, so a write interrupted under one name would not be undone under another.
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
    """Return whether the file itself is a mount point, as ``docker -v file:file`` makes it."""
    if path.stat().st_dev != path.parent.stat().st_dev:
        return True
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:  # a system without it
        return False
    # blanks and the like are written as octal numbers
    return os.fsencode(path) in {line.split()[4].decode("unicode_escape").encode("latin-1") for line in lines}


def _make(path: Path, given: Secret | None, create: bool) -> bool:
    """Make a ledger at ``path``, and its key file; return False if another process did so first, True otherwise.

    ``given`` is the caller's secret, None to draw one and keep it in the key file. Without ``create`` the missing
    ledger is an error. The ledger is written under the name ``.part`` and renamed after its key is on disk, so that an
    interrupted call leaves either a finished pair or one that the next call can finish. A key file without its ledger
    means that a ledger was lost: it is not replaced by an empty one, in which nothing was spent.
    """
    key, part = key_file(path), path.with_name(path.name + ".part")
    if not path.parent.is_dir():
        raise _refused("a folder that exists", "a missing one", "make it first, or choose another")
    if not create:
        if os.path.lexists(key):
            raise _lost()
        raise missing("no such file")
    if not os.access(path.parent, os.W_OK):
        raise _refused(
            "a folder that can be written, for a new ledger", "one that cannot", "let it be written, or choose another"
        )
    with _locked(path.parent):
        if os.path.lexists(path):
            return False
        if os.path.lexists(key):
            if given is not None or not _waits_for(part, read_key(key)):
                raise _lost()
        else:
            part.unlink(missing_ok=True)
            fresh = given or Secret(secrets.token_bytes(32))
            _write_ledger(part, fresh)
            if given is None:
                content = fresh.value.hex().encode() + b"\n"
                write_durably(key, content, part=key.with_name(key.name + ".part"))
        os.rename(part, path)
        sync(path.parent)
        return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder that one process has at a time; it ends with the process."""
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write_ledger(path: Path, secret: Secret) -> None:
    """Write a ledger without accounts to the new file ``path``, readable for its owner only; it holds the secret's
    fingerprint.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, _PRIVATE))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("BEGIN")
        for statement, values in schema.creation("sqlite", secret.fingerprint):
            connection.execute(statement, values)
        connection.execute("COMMIT")
    sync(path)


def write_durably(path: Path, content: bytes, *, part: Path | None = None, mode: int = _PRIVATE) -> None:
    """Write ``content`` to the file ``path``, whole or not at all, and put it on disk together with its name.

    ``part`` is where it is written first; by default beside it, under a name that no other writer has. ``mode`` are the
    permissions of the file.
    """
    fresh = part or path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fresh.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(fresh, path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk (fsync)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _waits_for(part: Path, secret: Secret) -> bool:
    """Return whether ``part`` is a complete ledger with this secret, whose creation was interrupted just before it was
    renamed."""
    if not part.exists():
        return False
    with closing(sqlite3.connect(f"{part.as_uri()}?mode=ro", uri=True)) as connection:
        result = dict(connection.execute("SELECT name, value FROM dither_about").fetchall())
        return result == {"version": str(schema.VERSION), "secret": secret.fingerprint}


def _lost() -> LedgerError:
    """Return the error for a key file whose ledger is gone."""
    return _refused(
        "the ledger that the .key file beside it belongs to",
        "none: a new one would forget what was spent",
        "restore the ledger from its latest copy",
    )


def missing(got: str) -> LedgerMissing:
    """Return the error for an address without a ledger; ``got`` describes what was found instead."""
    command = "correct its name, or ask a first question with dither query"
    return LedgerMissing("ledger", "a ledger", got, "create it with dither.ledger.open(place)", command)


def _refused(expected: str, got: str, fix: str) -> LedgerError:
    """Return the error for a file that cannot be used as a ledger."""
    return LedgerError("ledger", expected, got, fix)
