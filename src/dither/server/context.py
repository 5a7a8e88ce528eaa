"""What all use cases share: configuration, store, cards with ledgers, workers, jobs, rate limits, the event log."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from dither.errors import DitherError, ServerUnavailable
from dither.server import schema
from dither.server.cards import Folder, Pins
from dither.server.config import Config
from dither.server.errors import NotFound, error_of
from dither.server.jobs import Jobs
from dither.server.limits import RateLimit
from dither.server.machine import worker_memory_mb
from dither.server.pool import Clock, Pool
from dither.server.roles import Principal, authorize
from dither.server.store import FolderLock, Store

_MAX_TEXT = 200

_MAX_NAME = 64

_NOISY = frozenset({"questions.ask", "questions.cancel", "chain.verify", "sign-out"})
"""Actions that change no limit, grant or user, and that can be repeated at will."""

_NOISY_PER_MINUTE = 30

_MOST_NOISY = 100_000
"""How many lines of each user about refusals and these actions are kept."""

_JOB_DAYS = 30
"""How many days the state of a question can be looked up by its id; the answer is kept longer."""

_PAUSE = 3600.0

_DAY = 86400.0

_log = logging.getLogger("dither.server")

_events, _jobs = schema.events, schema.jobs


class EventLog:
    """The log of who did what, when and to which subject, and what was refused. It never holds an answer or a
    secret.

    Its size is bounded, however noisy a client is: texts are cut, lines that a client can cause at will are limited for
    each user (the next line says how many were left out), and lines are removed after ``event_days``, once an hour.
    Lines of changes are always written and are removed by their age alone, so that nobody can push them out.
    """

    def __init__(self, store: Store, clock: Clock, days: int) -> None:
        """Write to a store; lines are deleted after ``days``."""
        self._store, self._clock, self._days = store, clock, days
        self._limit = RateLimit(_NOISY_PER_MINUTE)
        self._lock = threading.Lock()
        self._left_out: Counter[str] = Counter()
        self._next_prune = 0.0

    def line(self, who: str, action: str, subject: str = "", *, refused: str = "") -> tuple[sa.Executable, ...]:
        """Return the SQL statements that insert a line: one, or none if the user has caused too many lines about
        refusals or repeatable actions.

        The line says how many of the user's lines before it were left out.
        """
        name, detail = who[:_MAX_NAME], refused
        if refused or action in _NOISY:
            try:
                self._limit.take(name)
            except ServerUnavailable:
                with self._lock:
                    self._left_out[name] += 1
                return ()
        with self._lock:
            more = self._left_out.pop(name, 0)
        if more:
            detail = f"{detail} ({more} lines before this one were left out)".strip()
        values = {
            "at": time.time(), "user": name, "action": action, "subject": subject[:_MAX_TEXT],
            "outcome": "refused" if refused else "done", "detail": detail[:_MAX_TEXT],
        }  # fmt: skip
        return (_events.insert().values(**values),)

    def write(self, who: str, action: str, subject: str = "", *, refused: str = "") -> None:
        """Write the line that ``who`` did the ``action`` to the ``subject``; ``refused`` names the error if it was
        refused.

        If the line of a refusal cannot be written, the refusal stands nevertheless.
        """
        statements = self.line(who, action, subject, refused=refused)
        try:
            if statements:
                self._store.run(*statements)
        except SQLAlchemyError as error:
            if not refused:
                raise
            _log.error("a refusal cannot be written to the event log: %s", type(error).__name__)
        if time.monotonic() >= self._next_prune:
            self.prune()

    def prune(self) -> None:
        """Delete lines that are too old, and a user's oldest refused or repeatable lines beyond the limit."""
        self._next_prune = time.monotonic() + _PAUSE
        now = self._clock.now()
        noisy = (_events.c.outcome == "refused") | _events.c.action.in_(sorted(_NOISY))
        counts = sa.select(_events.c.user).where(noisy).group_by(_events.c.user)
        try:
            self._store.run(_events.delete().where(_events.c.at < now - _DAY * self._days))
            self._store.run(_jobs.delete().where(_jobs.c.asked_at < now - _DAY * _JOB_DAYS))
            for row in self._store.rows(counts.having(sa.func.count() > _MOST_NOISY)):
                theirs = noisy & (_events.c.user == row.user)
                last = sa.select(_events.c.id).where(theirs).order_by(_events.c.id.desc())
                oldest = self._store.one(last.offset(_MOST_NOISY - 1).limit(1))
                if oldest is not None:
                    self._store.run(_events.delete().where(theirs, _events.c.id < oldest.id))
        except SQLAlchemyError as error:
            _log.error("old lines of the event log cannot be removed: %s", type(error).__name__)


_ADDRESSES = 50
"""The limit on sign-ins of one user, as a multiple of the limit of one address: sign-in attempts from a single address
cannot lock a user out."""

_GRANT = sa.select(schema.grants.c.user).where(
    schema.grants.c.user == sa.bindparam("name"), schema.grants.c.dataset == sa.bindparam("table")
)


@dataclass(frozen=True)
class Context:
    """The parts of a running server."""

    config: Config
    clock: Clock
    store: Store
    folder: Folder
    pool: Pool
    explaining: Pool
    jobs: Jobs
    requests: RateLimit
    questions: RateLimit
    sign_ins: RateLimit
    sign_ins_of_user: RateLimit
    events: EventLog
    lock: FolderLock | None

    @classmethod
    def start(cls, config: Config, clock: Clock) -> Context:
        """Open and start everything; refuse it while another server has the SQLite file locked."""
        lock = None if "://" in config.store_address else FolderLock(config.store_address)
        try:
            return cls._open_parts(config, clock, lock)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    @classmethod
    def _open_parts(cls, config: Config, clock: Clock, lock: FolderLock | None) -> Context:
        """Open the store, the cards and the ledgers of a folder, and start the workers.

        There are two pools: one of ``config.workers`` processes for questions, and one of a single process for
        explanations. ``clock`` gives the time and the ticks at which answers appear; ``lock`` is held on the folder,
        and is None on PostgreSQL.
        """
        store = Store(config.store_address)
        try:
            folder = Folder(config.folder, Pins(store, single_steward=config.single_steward))
            for name in folder.names():
                folder.ledger(name)  # a ledger that went back is refused now
        except BaseException:
            store.close()
            raise
        warm_up = [{"do": "open", "card": folder.get(name).document} for name in folder.names()]
        pools = [
            Pool(
                size, memory_mb=worker_memory_mb(config), time_limit=config.time_limit, warm_up=list(warm_up),
                clock=clock, warm=config.warm,
            )
            for size in (config.workers, 1)
        ]  # fmt: skip
        jobs = Jobs(config, store, folder, pools[0], clock)
        events = EventLog(store, clock, config.event_days)
        events.prune()
        return cls(
            config, clock, store, folder, pools[0], pools[1], jobs,
            RateLimit(config.requests_per_minute), RateLimit(config.questions_per_minute),
            RateLimit(config.sign_ins_per_minute), RateLimit(_ADDRESSES * config.sign_ins_per_minute), events, lock,
        )  # fmt: skip

    def stop(self) -> None:
        """Let running questions end, give up waiting ones, and close everything."""
        self.jobs.stop()
        self.pool.stop()
        self.explaining.stop()
        self.folder.close()
        self.store.close()
        if self.lock is not None:
            self.lock.release()

    def count_request(self, who: Principal | None, address: str) -> None:
        """Apply the rate limit to a request: of its user, over all sessions and tokens, or of its address if it is
        anonymous."""
        self.requests.take(f"address {address}" if who is None else f"user {who.name}")

    @contextmanager
    def acting(self, who: Principal, action: str, subject: str = "", *, logged: bool = False) -> Iterator[None]:
        """Authorize an action of the user ``who``, run the block, and log it: refusals always, successes if ``logged``.

        ``subject`` is what the action is about, for the log. Of a refusal the log has the class alone: its words may
        repeat what somebody typed, a password among it.
        """
        try:
            authorize(who, action)
            yield
        except DitherError as error:
            self.events.write(who.name, action, subject, refused=type(error).__name__)
            raise
        if logged:
            self.events.write(who.name, action, subject)

    def run_in_explaining_worker(self, task: Mapping[str, Any], what: str, table: str) -> dict[str, Any]:
        """Run a task in the worker process for explanations, which reads no rows, and return the worker's last event.

        ``what`` is the subject of the error where time or memory are exceeded, and ``table`` the table concerned.
        An error of the worker is raised here.
        """
        message = {**task, "keep_profile": self.jobs.is_measuring(table)}
        event = self.explaining.call(message, self.config.time_limit)
        if event is None:
            raise ServerUnavailable(
                what,
                "a question that can be planned within the limits of time and memory",
                "one that exceeds them",
                "simplify it",
            )
        if "problem" in event:
            raise error_of(event["problem"])
        return event

    def is_quick(self, table: str) -> bool:
        """Return whether the server's database and the ledger of a table are local files, so that a recorded answer is
        found within microseconds."""
        if not self.store.is_sqlite:
            return False
        try:
            return "://" not in (self.folder.get(table).card.ledger or "://")
        except NotFound:
            return False

    def check_granted(self, who: Principal, table: str) -> None:
        """Refuse a table that is not granted to a principal, with the error for one that does not exist."""
        self.folder.get(table)
        if not self.is_granted(who.name, table):
            raise NotFound.of("table")

    def is_granted(self, user: str, table: str) -> bool:
        """Return whether a user may ask a table."""
        return self.store.one(_GRANT, {"name": user, "table": table}) is not None
