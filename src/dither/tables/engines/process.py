"""What belongs to one process: after a fork the child has the objects, but not the threads and connections behind them.

DuckDB's threads do not exist in the child, and a question would wait for them for ever, after it was charged; a
connection to PostgreSQL or Spark is one socket with two readers. An engine is therefore refused in any process but its
own, before anything is charged, and what it owns is removed by its own process alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass, field

from dither.errors import DitherError, message


@dataclass(frozen=True)
class Owner:
    """The process that made an object.

    >>> Owner().is_here
    True
    """

    pid: int = field(default_factory=os.getpid)

    @property
    def is_here(self) -> bool:
        """Whether this is that process."""
        return os.getpid() == self.pid

    def check(self) -> None:
        """Refuse any other process."""
        if not self.is_here:
            raise DitherError(
                message(
                    "table",
                    "one that was opened in this process",
                    "one that was opened before the process was forked",
                    "open it again in this process",
                )
            )


class PrivateFolder:
    """A temporary folder, removed with the object or at the end of the process that made it, and by no other."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="dither-")
        self._remove = weakref.finalize(self, _remove, self.name, Owner())

    def remove(self) -> None:
        """Remove it now."""
        self._remove()

    cleanup = remove


def _remove(name: str, owner: Owner) -> None:
    if owner.is_here:
        shutil.rmtree(name, ignore_errors=True)
