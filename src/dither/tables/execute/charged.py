"""A release that is paid for: charge, read the rows, record what results, and only then give it.

Questions and publications take this way. Everything that can be refused has been refused before it. From the charge on
there is no way back: whatever fails, the charge stays, and errors while rows are read are incidents, not answers.
Whether an engine fails may depend on a single row, so whoever asks sees one sentence whatever the cause
(:class:`dither.errors.DataIncident`), which holds nothing of it; what did happen is for the steward's log.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dither.errors import DataIncident, DitherError, InvalidArgument
from dither.guarantees import Guarantee
from dither.ledger import Charge, Receipt, Released, receipts
from dither.ledger.accounts import Remaining
from dither.present.notes import Note
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.engines.base import withheld_errors
from dither.tables.execute.contributors import Contributors
from dither.tables.execute.incidents import IncidentLog

if TYPE_CHECKING:
    from dither.tables.table import Table

R = TypeVar("R")
Compute = Callable[[Sequence[StatementContext], Sequence[Note], Sequence[Note]], bytes]
"""Computes what is recorded, from the rows of those who paid and two lists of notes: what the first answer says, and
what limits for each person do to the answer."""


@dataclass(frozen=True)
class Request:
    """What is asked of the ledger: a request in canonical form with its key."""

    key: str
    content: dict[str, Any]


def refuse_read_only(table: Table) -> None:
    """Refuse a table that cannot be charged."""
    if table.read_only:
        raise InvalidArgument(
            "table", "one that was opened to ask", "one opened to read only", "open it without read_only"
        )


def check_receipt(table: Table) -> None:
    """Refuse, before the charge, a receipt that could not be kept."""
    if table.card.receipt is not None:
        receipts.check_writable(table.card.receipt)


def keep_receipt(table: Table, receipt: Receipt) -> None:
    """Keep a receipt where the card says so, if it says so."""
    if table.card.receipt is not None:
        receipts.keep(table.card.receipt, receipt)


def keep_charge(table: Table, receipt: Receipt) -> None:
    """Keep the receipt of a charge before rows are read: an older ledger is found out whatever comes of the charge.
    Where that fails, the answer is not lost by it; that of the answer is tried next."""
    with suppress(DitherError):
        keep_receipt(table, receipt)


def charged_release(
    table: Table,
    cost: Guarantee,
    request: Request,
    contexts: Sequence[StatementContext],
    compute: Compute,
    analyst: str | None = None,
) -> tuple[Released, Remaining]:
    """Charge, compute and record, or find what is recorded: the release, and what is left.

    ``contexts`` say whom it is about: where people have accounts, they pay, and ``compute`` gets the rows of those who
    did.
    """
    first_notes = table.accounts.first_notes(analyst)
    contributors = Contributors(table.engine, contexts) if table.accounts.of_people else None
    charge = _pay(table, cost, request, contributors, analyst)
    stored = charge.answer
    if stored is None:
        keep_charge(table, charge.receipt)
        stored = _compute(table, cost, contexts, contributors, charge, compute, first_notes)
    released = table.accounts.ledger.record(charge, stored)
    table.accounts.note_answer()
    keep_receipt(table, released.receipt)
    return released, table.accounts.remaining(analyst)


def _pay(
    table: Table, cost: Guarantee, request: Request, contributors: Contributors | None, analyst: str | None
) -> Charge:
    """Charge a request to its accounts, or find what is recorded of it."""
    people = None
    if contributors is not None:
        table.accounts.check_people(cost, request.content, request.key)
        subject = f"{table.card.name}: whom a question is about"
        read = contributors.read

        def people() -> Any:
            return shielded(read, table.incident_log, subject)

    try:
        return table.accounts.ledger.charge(
            table.card.name,
            cost,
            key=request.key,
            request=request.content,
            analyst=analyst,
            people=people,
            max_incidents=table.card.max_incidents,
        )
    except DataIncident:
        with suppress(Exception):
            keep_receipt(table, table.accounts.ledger.head)
    raise DataIncident  # outside of the handler: nothing of what failed goes with it


def _compute(
    table: Table,
    cost: Guarantee,
    contexts: Sequence[StatementContext],
    contributors: Contributors | None,
    charge: Charge,
    compute: Compute,
    first_notes: Sequence[Note],
) -> bytes:
    """What is recorded. If anything fails here, it is an incident, whatever it was."""

    def work() -> bytes:
        try:
            paid = contexts if contributors is None else contributors.remaining(charge.kept)
            people_notes = table.accounts.people_notes(cost, paid=True)
            with table.engine.snapshot():
                return compute(paid, first_notes, people_notes)
        finally:
            if contributors is not None:
                contributors.drop()

    subject = f"{table.card.name}: the question charged in entry {charge.receipt.seq} of the ledger"

    def after() -> None:
        keep_receipt(table, table.accounts.ledger.record_incident(charge))

    return shielded(work, table.incident_log, subject, after)


def watched(
    work: Callable[[Callable[[Statement], R]], bytes], run: Callable[[Statement], R], statements: Callable[[], int]
) -> bytes:
    """``work(run)``, with its progress on a terminal or in a notebook; ``statements`` says how many will be run."""
    if not (sys.stderr is not None and sys.stderr.isatty()) and "ipykernel" not in sys.modules:
        return work(run)
    from dither.tables.execute.progress import Progress, is_watched

    if not is_watched():
        return work(run)
    with Progress(statements(), sys.stderr) as progress:

        def counted(statement: Statement) -> R:
            progress.next_statement()
            return run(statement)

        return work(counted)


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
