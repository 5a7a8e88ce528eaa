"""Errors while rows are read are incidents, not answers.

Whether an engine fails may depend on a single row, so whoever asks sees one sentence whatever the cause
(:class:`dither.errors.DataIncident`), which holds nothing of it. What did happen is for the steward, in a log that its
owner alone may read.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from dither.errors import DataIncident
from dither.tables.card.model import Card
from dither.tables.engines.base import withheld_errors

R = TypeVar("R")

__all__ = ["IncidentLog", "log_of", "shielded"]


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


def shielded(work: Callable[[], R], log: IncidentLog, subject: str, after: Callable[[], object] = lambda: None) -> R:
    """Do what reads rows. If it fails, log why, do what comes after, and raise an error that does not say.

    The error is raised outside of every handler: what failed is neither its cause nor its context. Ctrl-C and the
    end of the process are nobody's data, and go through.
    """
    errors: list[BaseException] = []
    token = withheld_errors.set(errors)
    try:
        return work()
    except (KeyboardInterrupt, SystemExit) as stop:
        stop.__cause__ = stop.__context__ = None
        raise
    except BaseException as error:
        errors.append(error)
    finally:
        withheld_errors.reset(token)
    with suppress(Exception):  # neither a full disk nor a ledger that is gone may change what is said
        log.write(subject, *errors)
    errors.clear()
    with suppress(Exception):
        after()
    raise DataIncident
