"""The steps of every paid release, in this order: check, identify, charge, compute, record.

1. *Check* (:func:`check`, and what the caller rehearses): whatever can be refused is refused here, for free.
2. *Identify* (:func:`identify`): the key under which the result is recorded. A request that was answered before finds
   the recorded bytes under it and pays nothing.
3. *Charge*: one durable transaction of the ledger, before any row is read. There are no refunds.
4. *Compute*: read the rows of the people who paid, add the noise. An error here may depend on a single row, so it
   becomes an incident: the charge stays, the steward's log tells the whole story, and the error that leaves the release
   (:class:`dither.errors.DataIncident`) is always the same and holds nothing of its cause (:func:`hide_data_errors`).
5. *Record*: the result is durable before it is returned.

A process that dies has at most wasted budget. :func:`release` takes steps 3 to 5 for a question, a publication or
synthetic records. A series is charged once (:func:`charge_series`); each of its advances is computed and recorded by
:func:`advance_series`.

Progress of a long release: the number of the running statement, and the seconds since it began.

It is written to stderr, over itself, on a terminal or in a notebook only, after a second, and it is removed when the
answer is there. It shows what the person who asks knows or can measure anyway: the plan, and the time.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TextIO, TypeVar

from dither import arguments
from dither.errors import (
    DataIncident,
    DatasetClosed,
    DitherError,
    InvalidArgument,
    LedgerError,
    WrongType,
    fix_by_options,
)
from dither.guarantees import ZCDP, Guarantee, stored
from dither.ledger import Charge, Ledger, Receipt
from dither.ledger.accounts import Remaining
from dither.ledger.chain import check_receipt_file, keep_receipt
from dither.ledger.recorded import canonical
from dither.ledger.series import Compute as ComputeAdvance
from dither.ledger.series import SeriesRecord
from dither.present.notes import Note

DELAY, INTERVAL = 1.0, 0.5
"""Seconds before the progress line is first shown, and between its updates."""


def is_interactive(out: TextIO | None = None) -> bool:
    """Return whether a stream (None: stderr) is a terminal or the output of a notebook.

    >>> import io
    >>> is_interactive(io.StringIO())
    False
    """
    stream = sys.stderr if out is None else out
    notebook = type(stream).__module__.startswith("ipykernel.")
    return notebook or bool(getattr(stream, "isatty", lambda: False)())


class Progress:
    """Shows the number of the running statement and the elapsed seconds until the ``with`` block ends.

    >>> import io
    >>> with Progress(3, io.StringIO()) as progress:
    ...     progress.next_statement()
    >>> progress.text(12.4)
    'dither: statement 1 of 3, 12 s'
    """

    def __init__(
        self,
        total: int,
        out: TextIO,
        *,
        delay: float = DELAY,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Show progress on ``out`` after ``delay`` seconds and every ``interval`` seconds; ``total`` is the expected
        number of statements, and ``clock`` returns the time in seconds."""
        self._total, self._out = total, out
        self._delay, self._interval, self._clock = delay, interval, clock
        self._number = self._width = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, name="dither progress", daemon=True)

    def next_statement(self) -> None:
        """Count one more statement; the total grows if there are more than expected."""
        self._number += 1
        self._total = max(self._total, self._number)

    def text(self, seconds: float) -> str:
        """Return the line that is shown after this many seconds."""
        return f"dither: statement {max(self._number, 1)} of {max(self._total, 1)}, {int(seconds)} s"

    def _show(self) -> None:
        """Update the line at each interval until the block ends; this runs in a separate thread."""
        start = self._clock()
        wait = self._delay
        while not self._done.wait(wait):
            self._write(self.text(self._clock() - start))
            wait = self._interval

    def _write(self, text: str) -> None:
        """Overwrite the progress line with ``text``; stop showing progress if the terminal is gone."""
        try:
            self._out.write("\r" + text.ljust(self._width))
            self._out.flush()
        except (OSError, ValueError):  # a terminal that is gone is no reason to lose an answer
            self._done.set()
        self._width = len(text)

    def __enter__(self) -> Progress:
        """Start to show the progress, if a thread can be started."""
        with suppress(RuntimeError):  # no thread is no reason to lose an answer either
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread that shows the progress, and clear the line; an error is not handled here."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._width:
            self._write("")
            self._write("")


def with_progress(
    work: Callable[[Callable[[Any], R]], bytes], run: Callable[[Any], R], statements: Callable[[], int]
) -> bytes:
    """Return ``work(run)``, and show its progress on a terminal or in a notebook: each call of ``run`` counts as one of
    ``statements()`` expected statements."""
    if not is_interactive():
        return work(run)
    with Progress(statements(), sys.stderr) as progress:

        def counted(statement: Any) -> R:
            """Count a statement, and run it."""
            progress.next_statement()
            return run(statement)

        return work(counted)


C = TypeVar("C", covariant=True)
R = TypeVar("R")
Rows = TypeVar("Rows")
Lines = TypeVar("Lines")


# -- errors while rows are read ---------------------------------------------------------------------------------------

withheld_errors: ContextVar[list[BaseException] | None] = ContextVar("withheld_errors", default=None)
"""The list to which engines append their own errors for the steward's log; None outside of a release. They may hold
data, so they are stored nowhere else."""


class IncidentLog:
    """The steward's log of incidents: a file that only its owner may read, created with its first line."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def write(self, subject: str, *errors: BaseException) -> None:
        """Append an entry with the time, the ``subject`` (what was done) and the full tracebacks of the errors."""
        details = "".join("".join(traceback.format_exception(error)) for error in errors)
        text = f"---- {datetime.now(UTC).isoformat(timespec='seconds')} {subject}\n{details}"
        handle = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.chmod(self.path, 0o600)
            os.write(handle, text.encode("utf-8", "backslashreplace"))
        finally:
            os.close(handle)


def incident_log_path(stated: str | None, dataset: str, ledger: str) -> str:
    """Return the path of the incident log: as ``stated`` by the card, else beside the ledger if that is a file, else in
    the working directory.

    >>> incident_log_path(None, "visits", "visits.ledger"), incident_log_path(None, "visits", "postgresql://server/db")
    ('visits.ledger.incidents.log', 'visits.incidents.log')
    """
    return stated or (f"{dataset}.incidents.log" if "://" in ledger else f"{ledger}.incidents.log")


def incident_log_beside_card(
    stated: str | None, dataset: str, ledger: str | None, card: str | os.PathLike[str]
) -> str | None:
    """Return the path of the incident log as a card file states it, or beside that file if the ledger is in a database.

    None leaves the choice to :func:`incident_log_path`: the log is then beside the ledger.

    >>> incident_log_beside_card(None, "visits", "postgresql://server/db", "/cards/visits.toml")
    '/cards/visits.incidents.log'
    """
    if stated is not None or "://" not in (ledger or ""):
        return stated
    return str(Path(card).absolute().parent / f"{dataset}.incidents.log")


def hide_data_errors(
    work: Callable[[], R], log: IncidentLog, subject: str, after: Callable[[], object] = lambda: None
) -> R:
    """Return ``work()``, which reads rows. If it fails, log its error under ``subject``, call ``after``, and raise
    :class:`DataIncident` without a cause.

    It is raised outside of every handler, so that the original error, which may hold data, is neither its cause nor its
    context. KeyboardInterrupt and SystemExit do not depend on data and are raised again.
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
    with suppress(Exception):  # the error that the caller sees must not depend on a full disk or a missing ledger
        log.write(subject, *errors)
    errors.clear()
    with suppress(Exception):
        after()
    raise DataIncident


# -- who is charged ---------------------------------------------------------------------------------------------------


class ChargedCard(Protocol):
    """The part of a card that a release needs."""

    @property
    def name(self) -> str:
        """Return the dataset that is charged."""

    @property
    def min_epsilon(self) -> float:
        """Return the least epsilon that a release may cost."""

    @property
    def max_incidents(self) -> int:
        """Return the number of incidents after which the dataset is closed."""

    @property
    def receipt(self) -> str | None:
        """Return the path of the file with the last receipt; None if no receipt is kept."""


class ChargedAccounts(Protocol):
    """The accounts of a dataset, as far as a release needs them."""

    @property
    def ledger(self) -> Ledger:
        """Return the ledger that keeps the accounts."""

    @property
    def of_people(self) -> bool:
        """Return whether each person has an account."""

    def check_people(self, guarantee: Guarantee, request: Mapping[str, Any], key: str) -> None:
        """Refuse a request that would cost more than each person's whole limit, unless it was answered before."""

    def first_notes(self, analyst: str | None) -> Sequence[Note]:
        """Return the notes that only the first answer from a ledger carries; empty afterwards."""

    def people_notes(self, guarantee: Guarantee, paid: bool = False) -> Sequence[Note]:
        """Return the notes on how the limits of each person affect an answer; ``paid`` says that it was charged."""

    def note_answer(self) -> None:
        """Record in memory that the ledger has given an answer, so that the next one is not the first."""

    def remaining(self, analyst: str | None = None) -> Remaining:
        """Return the remaining budget of the table, and of the analyst."""


class ChargedEngine(Protocol):
    """The engine that reads the rows."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Read one state of the rows in all statements of the block."""


class ChargedTable(Protocol):
    """An open table, as far as a release needs it."""

    @property
    def card(self) -> ChargedCard:
        """Return the card of the table."""

    @property
    def accounts(self) -> ChargedAccounts:
        """Return the accounts that are charged."""

    @property
    def engine(self) -> ChargedEngine:
        """Return the engine that reads the rows."""

    @property
    def incident_log(self) -> IncidentLog:
        """Return the steward's log of incidents."""

    @property
    def read_only(self) -> bool:
        """Return whether the table was opened without the right to charge."""


class ReleaseRows(Protocol[C]):
    """The rows of a release, and the people behind them, who pay where people have accounts."""

    @property
    def everybody(self) -> C:
        """Return the rows of all people."""

    def read(self) -> Any:
        """Read the column of person keys, a key for each row."""

    def remaining(self, kept: Any) -> C:
        """Return the rows of the people who paid, from the mask ``kept`` over the keys that were read."""

    def drop(self) -> None:
        """Delete temporary copies of the rows."""


# -- check ------------------------------------------------------------------------------------------------------------


def check(table: ChargedTable, cost: Guarantee) -> None:
    """Refuse a table that cannot be charged, a cost below the card's ``min_epsilon``, and an unwritable receipt
    file."""
    if table.read_only:
        fix = "open it without read_only"
        raise InvalidArgument("table", "one that was opened to ask", "one opened to read only", fix)
    check_least(table.card.min_epsilon, cost)
    if table.card.receipt is not None:
        check_receipt_file(table.card.receipt)


def check_least(min_epsilon: float, cost: Guarantee) -> None:
    """Refuse a cost below a card's ``min_epsilon`` or, for zCDP, below ``rho = min_epsilon**2 / 2``.

    Releases at a tiny cost serve no analysis, but would let an attacker ask very often.
    """
    if not isinstance(cost, Guarantee):
        raise WrongType("guarantee", "a guarantee", type(cost).__name__, "pass dither.ApproxDP(1, 1e-9)")
    least, name = arguments.epsilon(min_epsilon, "min_epsilon"), "epsilon"
    if isinstance(cost, ZCDP):
        least, name = least**2 / 2, "rho"
    if cost.exact[0] < least:
        expected = f"at least {float(least):g}, the card's min_epsilon" + (" as rho" if name == "rho" else "")
        fix = fix_by_options(f"pass {{{name}}} or more", **{name: float(least)})
        raise InvalidArgument(name, expected, f"{float(cost.exact[0]):g}", *fix)


# -- identify ---------------------------------------------------------------------------------------------------------

PROFILE_KEY = "profile"
"""The prefix of the keys of profiles, by which the newest profile is found."""
_DERIVED_KEY = re.compile("[0-9a-f]{64}|profile[0-9a-f]+")


@dataclass(frozen=True)
class PaidRequest:
    """A request to the ledger in canonical form, with the key that its result is recorded under."""

    key: str
    content: dict[str, Any]


def identify(
    content: dict[str, Any],
    cost: Guarantee,
    *,
    analyst: str | None = None,
    key: str | None = None,
    again: bool = False,
    prefix: str = "",
) -> PaidRequest:
    """Return a request with the key under which its result is recorded.

    ``key`` is used if it is given. Otherwise the key is ``prefix`` with random digits, to release anew (``again``), or
    with a hash of the whole request: its ``content``, its ``cost`` and its ``analyst``.
    """
    check_key(key)
    if key is None:
        key = prefix + (secrets.token_hex(16) if again else recorded_key(content, cost, analyst))
    return PaidRequest(key, content)


def check_key(key: str | None) -> None:
    """Refuse a caller's key that has the form of a key made from a hash, and so could be that of a different
    request."""
    if key is not None and (not isinstance(key, str) or _DERIVED_KEY.fullmatch(key)):
        got = "one that dither could make itself" if isinstance(key, str) else type(key).__name__
        raise InvalidArgument("key", "a name of your choice", got, "choose another, or leave it out")


def recorded_key(content: Mapping[str, Any], cost: Guarantee, analyst: str | None) -> str:
    """Return the hash of a request at this cost by this analyst."""
    return digest({**content, "guarantee": stored(cost), **({} if analyst is None else {"analyst": analyst})})


def digest(document: Any) -> str:
    """Return the SHA-256 of a document's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(document).encode("utf-8", "surrogatepass")).hexdigest()


def is_recorded(table: ChargedTable, cost: Guarantee, request: PaidRequest, analyst: str | None) -> bool:
    """Return whether the result of a request is recorded, so that nothing would be charged."""
    name, ledger = table.card.name, table.accounts.ledger
    return ledger.has_answer(name, cost, key=request.key, request=request.content, analyst=analyst)


# -- charge, compute, record ------------------------------------------------------------------------------------------


class ReleaseNotes(NamedTuple):
    """The notes that accounts add to a result: ``first`` on a ledger's first answer, ``people`` on the limits of each
    person."""

    first: Sequence[Note]
    people: Sequence[Note]


class Paid(NamedTuple):
    """A paid result: its recorded bytes, its receipt, whether it was recorded earlier, and the remaining budget."""

    stored: bytes
    receipt: Receipt
    replayed: bool
    remaining: Remaining


def release(
    table: ChargedTable,
    cost: Guarantee,
    request: PaidRequest,
    contributors: ReleaseRows[Rows],
    compute: Callable[[Rows, ReleaseNotes], bytes],
    analyst: str | None = None,
) -> Paid:
    """Charge a request, compute its result and record it; a result that is recorded already is returned for free.

    Parameters
    ----------
    table
        The table with the accounts that are charged.
    cost, request
        What is charged, and the key and content under which the result is recorded.
    contributors
        The rows, of everybody or of the people whose own accounts could pay.
    compute
        Gets the rows and the notes about them, and returns the bytes to be recorded. Its errors, which may tell of
        data, go to the log of incidents only.
    analyst
        Who asks, where analysts have accounts.
    """
    accounts = table.accounts
    first_notes = accounts.first_notes(analyst)
    of_people = accounts.of_people
    charge = _charge(table, cost, request, contributors if of_people else None, analyst)
    answer = charge.answer
    if answer is None:
        _keep_charge(table, charge.receipt)

        def computed() -> bytes:
            """Return the result's bytes, from everybody's rows or those of the people who paid, in one state of the
            tables; the temporary copy of those rows is deleted in any case."""
            try:
                rows = contributors.remaining(charge.kept) if of_people else contributors.everybody
                notes = ReleaseNotes(first_notes, accounts.people_notes(cost, paid=True))
                with table.engine.snapshot():
                    return compute(rows, notes)
            finally:
                contributors.drop()

        def incident() -> None:
            """Record the incident, and keep its receipt."""
            _keep_receipt(table, accounts.ledger.record_incident(charge))

        subject = f"{table.card.name}: the release charged in entry {charge.receipt.seq} of the ledger"
        answer = hide_data_errors(computed, table.incident_log, subject, incident)
    recorded = accounts.ledger.record(charge, answer)
    remaining = finish(table, recorded.receipt, analyst)
    return Paid(recorded.stored, recorded.receipt, recorded.replayed, remaining)


def _charge(
    table: ChargedTable,
    cost: Guarantee,
    request: PaidRequest,
    contributors: ReleaseRows[Any] | None,
    analyst: str | None,
) -> Charge:
    """Charge a request to its accounts, or return the charge with its recorded result.

    ``cost`` is charged for the ``request``, which ``analyst`` makes where analysts have accounts. ``contributors`` are
    the rows whose people pay; None where people have no accounts.
    """
    people = None
    if contributors is not None:
        table.accounts.check_people(cost, request.content, request.key)
        read = contributors.read

        def people() -> Any:
            """Read the keys of the people; an error becomes an incident without a cause."""
            return hide_data_errors(read, table.incident_log, f"{table.card.name}: reading the keys of people")

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
            _keep_receipt(table, table.accounts.ledger.head)
    raise DataIncident  # outside of the handler, so that it has no context


def finish(table: ChargedTable, receipt: Receipt, analyst: str | None) -> Remaining:
    """Keep the receipt of a recorded result, and return the remaining budget."""
    table.accounts.note_answer()
    _keep_receipt(table, receipt)
    return table.accounts.remaining(analyst)


def _keep_receipt(table: ChargedTable, receipt: Receipt) -> None:
    """Write a receipt to the card's receipt file, if the card states one."""
    if table.card.receipt is not None:
        keep_receipt(table.card.receipt, receipt)


def _keep_charge(table: ChargedTable, receipt: Receipt) -> None:
    """Keep the receipt of a charge before rows are read, so that a ledger copied earlier is recognized from then on.

    A failure is ignored: the receipt of the result, which comes next, covers the charge as well.
    """
    with suppress(DitherError):
        _keep_receipt(table, receipt)


# -- series -----------------------------------------------------------------------------------------------------------


def charge_series(
    table: ChargedTable,
    cost: Guarantee,
    request: PaidRequest,
    rehearse: Callable[[], object],
    analyst: str | None = None,
) -> SeriesRecord:
    """Charge a series for its whole horizon, unless that was done before, and return its record.

    ``cost`` and ``request`` are what is charged, and the key and content by which the series is found. ``rehearse`` is
    called first, to refuse what can be refused for free. ``analyst`` is who asks, where analysts have accounts.
    """
    record = table.accounts.ledger.series(
        table.card.name,
        cost,
        key=request.key,
        request=request.content,
        analyst=analyst,
        max_incidents=table.card.max_incidents,
        check=rehearse,
    )
    _keep_charge(table, record.charged)
    return record


def advance_series(
    table: ChargedTable,
    record: SeriesRecord,
    periods: str,
    measure: Callable[[], Lines],
    compute: Callable[[Lines], ComputeAdvance],
) -> None:
    """Measure the rows of some periods, then compute and record the advance in one transaction of the ledger.

    Parameters
    ----------
    record
        The series in the ledger.
    periods
        The periods in words, for the log of incidents.
    measure
        Reads the rows. Its errors, which may tell of data, go to the log of incidents only.
    compute
        Returns, from the measured rows, the function that the ledger calls with the state of the series.
    """
    subject = f"{table.card.name}: a series, {periods}"

    def read() -> Lines:
        """Measure the rows in one state of the table."""
        with table.engine.snapshot():
            return measure()

    def incident() -> None:
        """Record the incident, and keep its receipt."""
        _keep_receipt(table, record.fail())

    lines = hide_data_errors(read, table.incident_log, subject, incident)
    refusals: list[DitherError] = []

    def advance() -> None:
        """Compute and record the advance; errors that tell nothing about rows are raised later as they are."""
        try:
            record.advance(compute(lines), max_incidents=table.card.max_incidents)
        except (LedgerError, DatasetClosed) as error:  # they do not depend on rows
            refusals.append(error)

    hide_data_errors(advance, table.incident_log, subject, incident)
    for refusal in refusals:
        raise refusal
