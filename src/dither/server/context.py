"""What all use cases share: configuration, store, cards with ledgers, worker processes, jobs, the event log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from dither.errors import DitherError
from dither.server import schema
from dither.server.cards import Folder
from dither.server.config import Config
from dither.server.errors import NotFound
from dither.server.events import EventLog
from dither.server.jobs import Jobs
from dither.server.limits import RateLimit
from dither.server.lock import FolderLock
from dither.server.machine import worker_memory_mb
from dither.server.pins import Pins
from dither.server.pool import Pool
from dither.server.principal import Principal
from dither.server.roles import authorize
from dither.server.store import Store
from dither.server.ticks import Clock

_ADDRESSES = 50
"""From so many addresses together may somebody guess the password of one user; one alone locks nobody out."""
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
        """Open and start everything; refused where another server has the same SQLite file."""
        lock = None if "://" in config.place else FolderLock(config.place)
        try:
            return cls._started(config, clock, lock)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    @classmethod
    def _started(cls, config: Config, clock: Clock, lock: FolderLock | None) -> Context:
        store = Store(config.place)
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
        """Let questions under way end, give up those that wait, and close everything."""
        self.jobs.stop()
        self.pool.stop()
        self.explaining.stop()
        self.folder.close()
        self.store.close()
        if self.lock is not None:
            self.lock.release()

    def count_request(self, who: Principal | None, address: str) -> None:
        """Count a request; refused if there were too many. Somebody who is known has one count for all sessions and
        tokens, of which they can have any number; everybody else has that of the address."""
        self.requests.take(f"address {address}" if who is None else f"user {who.name}")

    # -- the event log ----------------------------------------------------------------------------------------------

    def event(self, who: str, action: str, subject: str = "") -> tuple[sa.Executable, ...]:
        """The statement that writes a line of the event log together with what it tells of, if it is to be written."""
        return self.events.line(who, action, subject)

    def log(self, who: str, action: str, subject: str = "", *, refused: str = "") -> None:
        """Write a line of the event log."""
        self.events.write(who, action, subject, refused=refused)

    @contextmanager
    def acting(self, who: Principal, action: str, subject: str = "", *, logged: bool = False) -> Iterator[None]:
        """Do an action in this block, if the principal may. What is refused is logged, and what is done if ``logged``.

        Of a refusal the log has the class alone: its words may repeat what somebody typed, a password among it.
        """
        try:
            authorize(who, action)
            yield
        except DitherError as error:
            self.log(who.name, action, subject, refused=type(error).__name__)
            raise
        if logged:
            self.log(who.name, action, subject)

    def is_quick(self, table: str) -> bool:
        """Whether reading what the server knows of a table is a matter of microseconds: nothing is on a network."""
        if not self.store.is_sqlite:
            return False
        try:
            return "://" not in (self.folder.get(table).card.ledger or "://")
        except NotFound:
            return False

    def check_granted(self, who: Principal, table: str) -> None:
        """Refuse a table that is not granted to a principal, in the words for one that does not exist."""
        self.folder.get(table)
        if not self.is_granted(who.name, table):
            raise NotFound.of("table")

    def is_granted(self, user: str, table: str) -> bool:
        """Whether a user may ask a table."""
        return self.store.one(_GRANT, {"name": user, "table": table}) is not None
