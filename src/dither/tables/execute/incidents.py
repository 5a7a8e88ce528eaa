"""The steward's log of what happened while rows were read, which its owner alone may read.

What whoever asks sees instead is in :func:`dither.tables.execute.charged.shielded`.
"""

from __future__ import annotations

import os
import traceback
from datetime import UTC, datetime
from pathlib import Path

from dither.tables.card.model import Card


class IncidentLog:
    """The steward's log: a file readable by its owner only, made when there is something to write."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def write(self, subject: str, *errors: BaseException) -> None:
        """Add what happened, with the engine's own messages."""
        details = "".join("".join(traceback.format_exception(error)) for error in errors)
        text = f"---- {datetime.now(UTC).isoformat(timespec='seconds')} {subject}\n{details}"
        handle = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.chmod(self.path, 0o600)
            os.write(handle, text.encode("utf-8", "backslashreplace"))
        finally:
            os.close(handle)


def log_of(card: Card, ledger: str) -> IncidentLog:
    """The log that the card names; by default beside the ledger, and for a ledger in PostgreSQL in this folder."""
    default = f"{card.name}.incidents.log" if "://" in ledger else f"{ledger}.incidents.log"
    return IncidentLog(card.incident_log or default)
