"""The secret under which the keys of people are hashed.

It is kept apart from the ledger: whoever gets hold of the database alone cannot try out names. A SQLite ledger has it
in a file beside it (``budget.sqlite.key``, readable by its owner only); a PostgreSQL ledger takes it from the
environment variable ``DITHER_LEDGER_KEY`` (64 hexadecimal digits) or from ``open(…, secret=…)``. The ledger holds a
fingerprint, so that another secret, under which everybody would look new, is refused.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path

from dither.errors import InvalidArgument, LedgerError, WrongType, message
from dither.ledger import schema
from dither.ledger.store import Store, key_file

VARIABLE = "DITHER_LEDGER_KEY"


class Secret:
    """The secret of one ledger, read when people are first charged."""

    def __init__(self, store: Store, given: bytes | None) -> None:
        if given is not None and not isinstance(given, bytes):
            raise WrongType(message("secret", "32 bytes", type(given).__name__, "pass secrets.token_bytes(32)"))
        if given is not None and len(given) != 32:
            raise InvalidArgument(message("secret", "32 bytes", f"{len(given)}", "pass secrets.token_bytes(32)"))
        self._store, self._given, self._checked = store, given, False

    def known(self) -> bool:
        """Whether it can be had without making a new one."""
        return self._given is not None or VARIABLE in os.environ or (self._file is not None and self._file.exists())

    def key(self) -> bytes:
        """The secret, checked against the ledger's fingerprint."""
        if self._given is None:
            self._given = self._found()
        if not self._checked:
            self._check(self._given)
        return self._given

    @property
    def _file(self) -> Path | None:
        if self._store.dialect != "sqlite":
            return None
        path = Path(str(self._store.place.database))
        return key_file(path)

    def _found(self) -> bytes:
        if VARIABLE in os.environ:
            return _read(os.environ[VARIABLE], f"the variable {VARIABLE}")
        if self._file is None:
            raise InvalidArgument(
                message(
                    "secret",
                    "the secret under which keys of people are hashed",
                    "none",
                    f"set {VARIABLE} to what secrets.token_hex(32) gives, and keep it",
                )
            )
        try:
            if not self._file.exists() and not self._fingerprint():
                self._write(self._file)
            return _read(self._file.read_bytes().decode("ascii", "replace"), "the file beside the ledger")
        except OSError:
            raise LedgerError(
                message(
                    "ledger", "the file of its secret beside it, ending in .key", "none", "put the file back beside it"
                )
            ) from None

    @staticmethod
    def _write(path: Path) -> None:
        """Whole or not at all, and the first of two writers wins."""
        fresh = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        handle = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, stat.S_IRUSR | stat.S_IWUSR)
        try:
            told = secrets.token_hex(32).encode() + b"\n"
            if os.write(handle, told) != len(told):
                raise OSError("the disk is full")
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(fresh)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the name is on disk too
        finally:
            os.close(folder)

    def _fingerprint(self) -> str | None:
        rows = self._store.rows(schema.GET, {"name": "secret"})
        return rows[0][0] if rows else None

    def _check(self, key: bytes) -> None:
        own = hashlib.sha256(b"dither ledger secret" + key).hexdigest()[:32]
        if self._fingerprint() is None:
            with self._store.transaction():
                if not self._store.run(schema.GET, {"name": "secret"}).fetchall():
                    self._store.run(schema.PUT, {"name": "secret", "value": own})
        if self._fingerprint() != own:
            raise LedgerError(
                message(
                    "ledger",
                    "the secret its people were hashed under",
                    "another, under which everybody would look new",
                    "put the ledger's own .key file or variable back",
                )
            )
        self._checked = True


def _read(text: str, where: str) -> bytes:
    try:
        found = bytes.fromhex(text.strip())
    except ValueError:
        found = b""
    if len(found) != 32:
        raise InvalidArgument(message("secret", f"64 hexadecimal digits in {where}", "something else", "put it back"))
    return found
