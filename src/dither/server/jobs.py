"""Questions under way: each is a job, which ends at a tick, answered, refused, failed or cancelled.

*Ticks.* How long a question takes depends on the rows, a little. So its answer, or that there is none, is shown at one
of the moments ``began_at + tick * 2**k`` and at no other, and all that time can tell is k: with the first tick at 0.25
s and a limit of 120 s, one of ten values. Multiples of a tick would be one of 480. The price is that an answer may come
up to twice as late as it could. A neighboring table changes how long a question takes by far less than a tick, so k
differs only if the work ends right at a tick. That this is improbable is an assumption, not a proof: see the threat
model. A question begins when it is asked, or, if all workers are taken, at the tick at which one of them ends: the wait
in a queue is a sum of ticks of others, and is not doubled. A question is also cancelled at a tick: otherwise cancelling
it would tell whether it had ended.

*Until its tick* a job is ``waiting``, whatever happens meanwhile: the answer is in no list before, the question counts
as under way, and the worker that computed it takes no other, since when that one begins would tell when this one ended.
For the same reason an analyst has one question at a time under way on a table: the next one, if it is the first in
other words, is free as soon as the first is recorded.

*Failures.* A worker that dies or takes too long has paid if it had charged: the incident is recorded, and the error is
that of any failure which touched data.
"""

from __future__ import annotations

import json
import logging
import math
import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, repeat
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from dither.errors import Cancelled, DataIncident, DitherError, LedgerError, ServerUnavailable
from dither.ledger import Charge, Entry, Ledger
from dither.ledger.accounts import promised
from dither.server import errors, schema
from dither.server.cards import Folder
from dither.server.config import Config
from dither.server.errors import NotFound, Stopping, TooMany, location_of
from dither.server.pool import Clock, Ending, Pool, Task
from dither.server.store import Store, iso


def tick_delay(elapsed: float, tick: float) -> float:
    """Return the delay of the first tick that is not before ``elapsed`` seconds: ``tick``, doubled as often as needed.

    >>> [tick_delay(s, 0.25) for s in (0.0, 0.25, 0.26, 0.9, 3.0)]
    [0.25, 0.25, 0.5, 1.0, 4.0]
    """
    if elapsed <= tick:
        return tick
    result = tick * 2.0 ** math.ceil(math.log2(elapsed / tick))
    while result < elapsed:  # the logarithm was rounded
        result *= 2
    return result


def next_tick(began_at: float, now: float, tick: float) -> float:
    """Return the first tick, at ``now`` or later, of a question that began at ``began_at``."""
    return began_at + tick_delay(now - began_at, tick)


def tick_after(began_at: float, now: float, tick: float) -> float:
    """Return the first tick, later than ``now``, of a question that began at ``began_at``.

    >>> tick_after(100.0, 100.25, 0.25), tick_after(100.0, 100.3, 0.25)
    (100.5, 100.5)
    """
    result = next_tick(began_at, now, tick)
    return result if result > now else began_at + 2 * (result - began_at)


JobState = Literal["waiting", "answered", "refused", "failed", "cancelled"]
JobKind = Literal["question", "publication", "profile"]


@dataclass(frozen=True)
class Job:
    """A question under way: ``waiting`` until a tick, then ended with an ``answer_id`` or a ``problem``."""

    id: str
    table: str
    question: str
    state: JobState
    asked_at: str
    kind: JobKind = "question"
    answer_id: str | None = None
    problem: dict[str, Any] | None = None


_SHOWN_AT_ONCE = frozenset({"InvalidArgument", "WrongType", "NotPrivate", "NotFound"})
"""Classes of errors that follow from the question and the card alone. No row was read, so they are shown at once."""

_GIVEN_UP = 8
"""A waiting job older than this many time limits belongs to a process that has died; it then counts as failed."""

_LATEST_TICK = 4
"""An upper bound, in time limits, on the delay between the start of a question and the tick that shows its result."""

_SHORTEST_LOOK = 0.02
"""The shortest polling interval, in seconds, for a question that no worker has begun."""

_SETTLING_SHARE = 16
"""The time reserved for storing a result is ``tick / _SETTLING_SHARE``: a result that comes later than that before a
tick is shown at the next one."""

_PAUSES = (0.05, 0.2, 1.0, 5.0)
"""Seconds before each new attempt to store how a job ended."""

_MOST_FAILURES = 3
"""How many attempts to store may fail although database and disk can be used."""

_jobs = schema.jobs

_log = logging.getLogger("dither.server")


@dataclass(frozen=True)
class Submission:
    """A question, publication or profile to compute: ``message`` is the worker's task, ``question`` and ``options`` are
    what the user's history shows, and ``request`` is a hash by which a repeated submission is recognized."""

    user: str
    dataset: str
    kind: JobKind
    question: str
    options: Mapping[str, Any]
    request: str
    message: Mapping[str, Any]


@dataclass(frozen=True)
class _Started:
    """The id of a job that this process started, and a future that is done when the job is stored, or holds the error
    that prevented it."""

    job: str
    written: Future[None] = field(default_factory=Future)


class Jobs:
    """The jobs of this process; their states are in the store, so that every process can show them."""

    def __init__(self, config: Config, store: Store, folder: Folder, pool: Pool, clock: Clock) -> None:
        """Take over the queue of questions: correct dates, and give up jobs whose process is gone."""
        self._clock = clock
        self._config, self._store, self._folder, self._pool = config, store, folder, pool
        self.server = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._by_request: dict[str, _Started] = {}  # jobs that have not ended, by the hash of their request
        self._of_user: dict[str, int] = {}  # the number of such jobs of each user
        self._queues: dict[tuple[str, str], deque[Task]] = {}  # by analyst and table; the first task is running
        self._cancel_at: dict[str, float] = {}  # by job, when it was cancelled in this process
        self._began_at: dict[str, float] = {}  # by job, when a worker began it
        self._measuring: dict[str, float] = {}  # by table, until when its newest profile is not shown
        self._stopping = threading.Event()
        self._correct_dates()
        waiting = _jobs.c.state == "waiting"
        if store.is_sqlite:  # the only process: what waited when the last one ended was never answered
            self._abandon(waiting)
        else:  # another process may still answer a job unless it is too old
            self._abandon(waiting & (_jobs.c.asked_at < self._clock.now() - _GIVEN_UP * config.time_limit))

    def _correct_dates(self) -> None:
        """Set stored times that lie after the latest possible tick to now; such times were stored before the system's
        clock was set back."""
        now = self._clock.now()
        latest = now + _LATEST_TICK * self._config.time_limit + self._config.tick
        for column in (_jobs.c.visible_at, schema.answers.c.at):
            self._store.run(column.table.update().where(column > latest).values({column.name: now}))

    def _abandon(self, condition: sa.ColumnElement[bool]) -> None:
        """Mark the waiting jobs that meet a condition as failed, and record incidents for their unanswered charges.

        The process of these jobs has died. The database does not say which charges they made, since that would take
        another disk write before each charge, so every charge made for the same analyst after one of them began counts.
        """
        by_dataset: dict[str, list[sa.Row[Any]]] = {}
        for row in self._store.rows(sa.select(_jobs).where(condition)):
            by_dataset.setdefault(row.dataset, []).append(row)
        for dataset, rows in by_dataset.items():
            with suppress(NotFound):  # its card is not served any more
                self._record_incidents(dataset, rows)
        values = {"state": "failed", "visible_at": 0.0, "problem": _problem_text(Stopping.now())}
        self._store.run(_jobs.update().where(condition).values(**values))

    def _record_incidents(self, dataset: str, rows: list[sa.Row[Any]]) -> None:
        """Record an incident for each unanswered charge of a table that one of the jobs in ``rows`` may have made.

        Such a charge may have read rows before its process ended, and counts towards the closing of the ``dataset``.
        """
        ledger = self._folder.ledger(dataset)
        for charge in _unanswered(ledger, dataset, lambda entry: any(_may_be_of(entry, row) for row in rows)):
            ledger.record_incident(charge)
        self._folder.keep_receipt(dataset)

    def start(self, submission: Submission, log: Sequence[sa.Executable]) -> Job:
        """Queue the question ``submission``, or find the job of an identical one that is queued.

        ``log`` are the statements that write the event log, run in the transaction that stores the job, so that every
        process can show it. Questions of one analyst to one table are answered one after the other.
        """
        with self._lock:
            known = self._by_request.get(submission.request)
            if known is None:
                if self._stopping.is_set():
                    raise Stopping.now()
                self._admit(submission.user)
                started = _Started(secrets.token_hex(16))
                self._by_request[submission.request] = started
                self._of_user[submission.user] = self._of_user.get(submission.user, 0) + 1
        if known is not None:
            known.written.result()  # the first request may still be storing it, or fail to
            return self.get(known.job, submission.user)
        job, now = started.job, self._clock.now()
        if submission.kind == "profile":
            self._measuring[submission.dataset] = math.inf
        row = {
            "id": job, "user": submission.user, "dataset": submission.dataset, "kind": submission.kind,
            "question": submission.question, "server": self.server, "request": submission.request, "state": "waiting",
            "asked_at": now,
        }  # fmt: skip
        try:
            self._store.run(_jobs.insert().values(**row), *log)
        except BaseException as error:
            self._measuring.pop(submission.dataset, None)
            self._forget(job, submission)
            started.written.set_exception(error)
            raise
        started.written.set_result(None)

        def on_end(how: Ending, event: dict[str, Any], key: str | None) -> None:
            """Store how the job ended, wait for its tick if rows may have been read, and begin the analyst's next
            question.

            ``how`` and ``event`` are the worker's report; ``key`` is that of its charge, None if it announced none.
            """
            began_at = self._began_at.get(job, now)
            try:
                try:
                    visible_at = self._retry_until_stored(
                        lambda: self._store_ending(job, submission, began_at, how, event, key)
                    )
                except Exception:
                    if self._stopping.is_set():  # it is left to the next server
                        raise
                    visible_at = self._retry_until_stored(lambda: self._give_up(job, began_at))
                if submission.kind == "profile":
                    self._measuring[submission.dataset] = visible_at
                if event.get("charged") or (how in ("died", "late") and key is not None):  # rows may have been read
                    self._clock.wait(visible_at, self._stopping)
            finally:
                self._forget(job, submission)
                self._begin_next(submission)

        task = Task(
            {**submission.message, "keep_profile": self.is_measuring(submission.dataset)},
            on_end,
            begin=lambda: self._store_beginning(job, submission.dataset),
            stop_at=lambda: self._stop_at(job),
            wake_at=lambda moment: next_tick(self._began_at[job], moment + 1e-3, self._config.tick),
        )
        with self._lock:
            queue = self._queues.setdefault((submission.user, submission.dataset), deque())
            queue.append(task)
            is_first = len(queue) == 1
        if is_first:
            self._pool.submit(task)
        return Job(job, submission.dataset, submission.question, "waiting", iso(now), submission.kind)

    def _store_beginning(self, job: str, dataset: str) -> None:
        """Store that a worker begins a job: its ticks count from this moment, in every process."""
        self._began_at[job] = now = self._clock.now()
        with suppress(SQLAlchemyError, DitherError):  # those who wait then look as if it had not begun
            after = self._folder.ledger(dataset).head.seq
            self._store.run(_jobs.update().where(_jobs.c.id == job).values(began_at=now, began_after=after))

    def _begin_next(self, submission: Submission) -> None:
        """Begin the next question of an analyst on the same table after one has ended."""
        owner = submission.user, submission.dataset
        with self._lock:
            queue = self._queues[owner]
            queue.popleft()
            if not queue:
                del self._queues[owner]
        if queue:
            self._pool.submit(queue[0])

    def _admit(self, user: str) -> None:
        """Refuse a question if its analyst, the ``user``, has too many under way, or the server has.

        The refusals propose to try again after 1 and 5 seconds.
        """
        most = self._config.max_questions_each
        if self._of_user.get(user, 0) >= most:
            raise TooMany.of("questions", f"at most {most} at the same time", 1)
        if len(self._by_request) >= self._config.max_waiting:
            raise TooMany.of("questions", "a server with room for more", 5)

    def _forget(self, job: str, submission: Submission) -> None:
        """Remove a job that has ended, or could not be stored, from the memory of this process."""
        with self._lock:
            self._by_request.pop(submission.request, None)
            self._cancel_at.pop(job, None)
            self._began_at.pop(job, None)
            count = self._of_user.get(submission.user, 1) - 1
            if count:
                self._of_user[submission.user] = count
            else:
                self._of_user.pop(submission.user, None)

    def _stop_at(self, job: str) -> float | None:
        """Return the time at which a cancelled job is to be stopped, None if it is not cancelled.

        That is the next tick if a worker has begun it, so that stopping does not tell whether it had ended, else the
        time of the cancellation.
        """
        cancelled_at = self._cancelled_at(job)
        if cancelled_at is None or job not in self._began_at:
            return cancelled_at
        began_at = self._began_at[job]
        return next_tick(began_at, max(began_at, cancelled_at), self._config.tick)

    def _cancelled_at(self, job: str) -> float | None:
        """Return when a job was cancelled, here or through another process; None if it was not."""
        if job in self._cancel_at or self._store.is_sqlite:
            return self._cancel_at.get(job)
        with suppress(SQLAlchemyError):  # then no other process can have cancelled it, either
            row = self._store.one(sa.select(_jobs.c.cancel_at).where(_jobs.c.id == job))
            return None if row is None else row[0]
        return None

    def _retry_until_stored(self, write: Callable[[], float]) -> float:
        """Call ``write``, which stores how a job ended, until it succeeds; return its result, the time of the tick.

        The job may have been charged, so an outage of the disk or database is waited out. Other errors are retried
        ``_MOST_FAILURES`` times and then raised. A stopping server raises at once and leaves the job to the next one.
        """
        failures = 0
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            try:
                return write()
            except Exception as error:
                _log.error("the end of a question cannot be written down: %s", location_of(error))
                failures += not (errors.is_outage(error) or isinstance(error, LedgerError))
                if failures >= _MOST_FAILURES or self._stopping.wait(pause):
                    raise
        raise AssertionError

    def _give_up(self, job: str, began_at: float) -> float:
        """Store a job whose result could not be stored as failed with a data incident, since rows may have been read;
        return the time at which that is shown."""
        visible_at = self._visible_at(began_at, self._clock.now())
        values = {"state": "failed", "visible_at": visible_at, "problem": _problem_text(DataIncident())}
        self._store.run(_jobs.update().where(_jobs.c.id == job).values(**values))
        return visible_at

    def _visible_at(self, began_at: float, moment: float) -> float:
        """Return the tick at which a result that comes at ``moment`` may be shown, with time left for storing it."""
        tick = self._config.tick
        return next_tick(began_at, moment + tick / _SETTLING_SHARE, tick)

    def _store_ending(
        self, job: str, submission: Submission, began_at: float, how: Ending, event: dict[str, Any], key: str | None
    ) -> float:
        """Store how a job ended, and return the time from which on that may be seen: a tick, or now for the refusals in
        ``_SHOWN_AT_ONCE``.

        ``submission`` is the question, begun at ``began_at``; ``how`` and ``event`` are what the worker reported, and
        ``key`` is that of its charge, None if it announced none. A charge without an answer becomes an incident.
        """
        now = self._clock.now()
        values: dict[str, Any] = {"state": "failed", "visible_at": self._visible_at(began_at, now)}
        statements: list[sa.Executable] = []
        if how == "end" and "answers" in event:
            rows = self.answer_rows(submission, event, values["visible_at"])
            ids, shown_at = self._recorded_ids(rows, statements)
            # another process may have received this answer first; it is visible from the tick of that question on
            visible_at = max(values["visible_at"], next_tick(began_at, shown_at, self._config.tick))
            values |= {"state": "answered", "answer": ids[0], "visible_at": visible_at}
        elif how == "end":
            values["state"] = "refused"
            values["problem"] = json.dumps(event["problem"])
            if event["problem"]["title"] == "DataIncident":
                values["state"] = "failed"
                if key is not None:  # the worker may not have been able to record it
                    self._record_incident(submission.dataset, key)
            if event.get("kind") in _SHOWN_AT_ONCE:
                values["visible_at"] = now
        elif how == "stopped":
            error: BaseException = Stopping.now() if self._stopping.is_set() else Cancelled(*_CANCELLED)
            values |= {"state": "failed" if self._stopping.is_set() else "cancelled", "problem": _problem_text(error)}
        else:
            charged = key is not None and self._record_incident(submission.dataset, key)
            error = DataIncident() if charged or key is not None else ServerUnavailable(*_NOT_CHARGED)
            values["problem"] = _problem_text(error)
        self._store.run(*statements, _jobs.update().where(_jobs.c.id == job).values(**values))
        with suppress(Exception):  # how it ended counts without it; the next one is kept
            self._folder.keep_receipt(submission.dataset)  # it may have been charged, however it ended
        return float(values["visible_at"])

    def answer_rows(self, submission: Submission, event: dict[str, Any], visible_at: float) -> list[dict[str, Any]]:
        """Return the database rows of the answers of a question, or of the tables of a publication.

        ``submission`` is the question, ``event`` the worker's report with one document per answer (and the name of each
        table), and ``visible_at`` the tick from which on they are shown.
        """
        return [
            {
                "id": secrets.token_hex(16), "user": submission.user, "dataset": submission.dataset,
                "kind": submission.kind, "request": submission.request,
                "question": submission.question + (f": {part}" if part else ""),
                "options": json.dumps(dict(submission.options)), "cost": event["cost"], "receipt": document["receipt"],
                "part": place, "body": json.dumps(document), "at": visible_at, "title": "",
            }
            for place, (document, part) in enumerate(zip(event["answers"], event["parts"], strict=True))
        ]  # fmt: skip

    def _recorded_ids(self, rows: list[dict[str, Any]], statements: list[sa.Executable]) -> tuple[list[str], float]:
        """Return the ids of answers, and from when on all are visible; an answer that is stored already, by its
        receipt, keeps its id. The statements that store the others are appended to ``statements``."""
        ids, moments = [], []
        table = schema.answers
        for row in rows:
            same = [table.c[name] == row[name] for name in ("user", "dataset", "receipt", "part")]
            known = self._store.one(sa.select(table.c.id, table.c.at).where(*same))
            if known is None:
                statements.append(table.insert().values(**row))
            else:  # asked in other words, or recorded before a card was edited: found by these words from now on
                statements.append(table.update().where(table.c.id == known[0]).values(request=row["request"]))
            ids.append(row["id"] if known is None else known.id)
            moments.append(row["at"] if known is None else known.at)
        return ids, max(moments)

    def is_measuring(self, dataset: str) -> bool:
        """Return whether this process measures a profile of a table or waits for its tick; until then the profile is
        neither shown nor used for planning."""
        return self._clock.now() < self._measuring.get(dataset, 0.0)

    @property
    def under_way(self) -> int:
        """Return how many questions of this process have not ended yet."""
        return len(self._by_request)

    def _record_incident(self, dataset: str, key: str) -> bool:
        """Record an incident for the last charge of a table under a key if it is unanswered, and return whether it
        was."""
        ledger = self._folder.ledger(dataset)
        entries = ledger.history(dataset)
        last = max((entry.seq for entry in entries if entry.key == key and entry.kind == "charge"), default=0)
        charges = _unanswered(ledger, dataset, lambda entry: entry.seq == last)
        for charge in charges:
            ledger.record_incident(charge)
        return bool(charges)

    def get(self, job: str, user: str) -> Job:
        """Return a job of a user as it may be seen now; raise NotFound for others."""
        row = self._store.one(sa.select(_jobs).where(_jobs.c.id == job, _jobs.c.user == user))
        if row is None:
            raise NotFound.of("question")
        return self._as_visible(row)

    def waiting(self, user: str) -> tuple[Job, ...]:
        """Return the waiting jobs of a user, the oldest first."""
        recent = self._clock.now() - 4 * self._config.time_limit
        statement = sa.select(_jobs).where(_jobs.c.user == user, _jobs.c.asked_at > recent).order_by(_jobs.c.asked_at)
        return tuple(job for job in map(self._as_visible, self._store.rows(statement)) if job.state == "waiting")

    def next_look(self, job: Job, now: float) -> float:
        """Return the next time at which to check whether a waiting job has ended.

        It depends on the times at which the question was asked and begun, never on whether it has ended: the next tick
        once it has begun; until then the next multiple of the tick since it was asked, so that no tick is missed.
        """
        row = self._store.one(sa.select(_jobs.c.asked_at, _jobs.c.began_at).where(_jobs.c.id == job.id))
        if row is None:
            return now
        tick = self._config.tick
        if row.began_at is not None:
            return tick_after(float(row.began_at), now, tick)
        step = max(tick, _SHORTEST_LOOK)
        asked_at = float(row.asked_at)
        return asked_at + step * (math.floor((now - asked_at) / step) + 1)

    def cancel(self, job: str, user: str) -> Job:
        """Cancel a waiting job: it is not begun, or is stopped at its next tick unless it has ended by then."""
        current = self.get(job, user)
        if current.state == "waiting":
            now = self._clock.now()
            with self._lock:
                if any(started.job == job for started in self._by_request.values()):
                    self._cancel_at[job] = now
            self._store.run(_jobs.update().where(_jobs.c.id == job).values(cancel_at=now))
        return current

    def _as_visible(self, row: sa.Row[Any]) -> Job:
        """Return a stored job as it may be seen now: waiting until its tick, and failed if its process is gone."""
        now = self._clock.now()
        state: Any
        hidden = row.state == "waiting" or row.visible_at > now
        if row.state == "waiting" and row.asked_at < now - _GIVEN_UP * self._config.time_limit:  # its process is gone
            hidden, state = False, "failed"
            problem: dict[str, Any] | None = errors.problem_of(Stopping.now())
        else:
            state = "waiting" if hidden else row.state
            problem = None if hidden or row.problem is None else json.loads(row.problem)
        return Job(
            row.id, row.dataset, row.question, state, iso(row.asked_at), row.kind,
            None if hidden else row.answer, problem,
        )  # fmt: skip

    def stop(self) -> None:
        """Take no more questions; running ones end, and waiting ones are given up without a charge."""
        with self._lock:
            self._stopping.set()


_CANCELLED = ("question", "an answer", "a cancellation", "ask again; a charge made before stays")

_NOT_CHARGED = (
    "question",
    "one that can be planned within the limits",
    "one that took too much time or memory",
    "ask something simpler",
)


def _unanswered(ledger: Ledger, dataset: str, is_meant: Callable[[Entry], bool]) -> list[Charge]:
    """Return the charges of a table that have neither an answer nor an incident, among those that ``is_meant`` selects
    by their entries in the history."""
    charges, settled = [], set()
    for entry in ledger.history(dataset):
        if entry.kind == "charge" and is_meant(entry):
            charges.append(entry)
        elif entry.kind in ("answer", "incident"):
            settled.add(entry.charge)
    return [
        Charge(dataset, entry.key, cost, entry.receipt)
        for entry in charges
        if entry.seq not in settled and entry.key is not None and (cost := promised(entry.body["cost"])) is not None
    ]


def _may_be_of(entry: Entry, row: sa.Row[Any]) -> bool:
    """Return whether a job may have made a charge: the charge came after the job began, and is of the same analyst.

    The order is that of the ledger's entries, since clocks can be set; the time counts where the job has no such
    number.
    """
    if row.began_after is not None:
        later = entry.seq > row.began_after
    else:
        later = datetime.fromisoformat(entry.at).timestamp() >= row.asked_at - 1.0
    body = entry.body
    prefix, slash, _ = (entry.key or "").partition("/")
    return later and bool(row.user == body.get("analyst", prefix if slash else row.user))


def _problem_text(error: BaseException) -> str:
    """Return an error as the JSON text that is stored and shown."""
    return json.dumps(errors.problem_of(error))
