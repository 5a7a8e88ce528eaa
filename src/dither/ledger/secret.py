"""The secret of a ledger: 32 bytes, chosen when the ledger is created.

The hash chain of the history and the hashes of people's keys are keyed with it, so somebody who obtains the database
alone can neither rewrite the history nor look up a name. A SQLite ledger keeps the secret in a file beside it
(``budget.sqlite.key``, readable by its owner only). A PostgreSQL ledger takes it from the environment variable
``DITHER_LEDGER_KEY`` (64 hexadecimal digits) or from ``open(…, secret=…)``. The ledger stores a fingerprint of its
secret: a different secret, with which every person would seem to be new, is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dither.errors import InvalidArgument, LedgerError, WrongType

VARIABLE = "DITHER_LEDGER_KEY"


@dataclass(frozen=True)
class Secret:
    """32 bytes, and the keys derived from them, one for each use."""

    value: bytes

    @cached_property
    def chain(self) -> bytes:
        """The key of the hash chain of the history."""
        return self._derived(b"history")

    @cached_property
    def people(self) -> bytes:
        """The key of the hashes and checksums of people's accounts."""
        return self._derived(b"people")

    @cached_property
    def series(self) -> bytes:
        """The key under which the state of series is sealed."""
        return self._derived(b"series")

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the secret that the ledger stores, to recognize it."""
        return hashlib.sha256(b"dither ledger secret" + self.value).hexdigest()[:32]

    def _derived(self, use: bytes) -> bytes:
        return hmac.digest(self.value, b"dither ledger: " + use, "sha256")

    def __repr__(self) -> str:
        return "Secret(…)"


def find_given(given: bytes | None) -> Secret | None:
    """The secret from the caller or from the environment; None where neither gives one."""
    if given is not None:
        if not isinstance(given, bytes):
            raise WrongType("secret", "32 bytes", type(given).__name__, "pass secrets.token_bytes(32)")
        if len(given) != 32:
            raise InvalidArgument("secret", "32 bytes", f"{len(given)}", "pass secrets.token_bytes(32)")
        return Secret(given)
    if VARIABLE in os.environ:
        return _read(os.environ[VARIABLE], f"the variable {VARIABLE}")
    return None


def missing() -> InvalidArgument:
    """The error for a PostgreSQL ledger, which has no key file, without a secret."""
    return InvalidArgument(
        "secret",
        "the secret of the ledger",
        "none",
        f"set {VARIABLE} to what secrets.token_hex(32) gives, and keep it",
    )


def read_file(path: Path) -> Secret:
    """The secret in a key file."""
    try:
        text = path.read_bytes().decode("ascii", "replace")
    except OSError:
        raise LedgerError(
            "ledger", "the file of its secret beside it, ending in .key", "none", "put the file back beside it"
        ) from None
    return _read(text, "the file beside the ledger")


def mismatch() -> LedgerError:
    """The error for a secret that is not the one of this ledger."""
    return LedgerError(
        "ledger",
        "the secret that it was made with",
        "another, under which everybody would look new",
        "put the ledger's own .key file or variable back",
    )


def _read(text: str, where: str) -> Secret:
    try:
        result = bytes.fromhex(text.strip())
    except ValueError:
        result = b""
    if len(result) != 32:
        raise InvalidArgument("secret", f"64 hexadecimal digits in {where}", "something else", "put it back")
    return Secret(result)
