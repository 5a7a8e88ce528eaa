"""Errors while rows are read: one fixed error for the person who asks, the whole story in the steward's log.

Whether an engine fails may depend on a single row, so the error that leaves a release
(:class:`dither.errors.DataIncident`) is always the same and holds nothing of its cause.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from dither.errors import DataIncident

R = TypeVar("R")

withheld_errors: ContextVar[list[BaseException] | None] = ContextVar("withheld_errors", default=None)
"""Where an engine's own errors are put for the steward's log; nowhere else, since they may hold data."""


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


def log_path(stated: str | None, dataset: str, ledger: str) -> str:
    """Return where the log is: as the card states, or beside a ledger in a file, or here for one in a database.

    >>> log_path(None, "visits", "visits.ledger"), log_path(None, "visits", "postgresql://server/db")
    ('visits.ledger.incidents.log', 'visits.incidents.log')
    """
    return stated or (f"{dataset}.incidents.log" if "://" in ledger else f"{ledger}.incidents.log")


def log_beside_card(stated: str | None, dataset: str, ledger: str | None, card: str | os.PathLike[str]) -> str | None:
    """Return the log of a card that is read from a file: as it states, or beside the card if the ledger is in a
    database.

    >>> log_beside_card(None, "visits", "postgresql://server/db", "/cards/visits.toml")
    '/cards/visits.incidents.log'
    """
    if stated is not None or "://" not in (ledger or ""):
        return stated
    return str(Path(card).absolute().parent / f"{dataset}.incidents.log")


def hide_data_errors(
    work: Callable[[], R], log: IncidentLog, subject: str, after: Callable[[], object] = lambda: None
) -> R:
    """Do work that reads rows. If it fails, log why, call ``after``, and raise an error without a cause.

    The error is raised outside of every handler, so that what failed is neither its cause nor its context. Ctrl-C and
    the end of the process do not depend on data, and pass.
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
