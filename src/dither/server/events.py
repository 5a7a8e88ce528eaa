"""The event log: who did what, when, to what, and whether it was refused. Never an answer or a secret.

Its size is bounded, however noisy a client is: texts are cut, lines that a client can cause at will are limited for
each user (the next line says how many were left out), and lines are removed after ``event_days``. Lines of changes are
always written and are removed by their age alone, so that nobody can push them out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from dither.errors import ServerUnavailable
from dither.server import schema
from dither.server.limits import RateLimit
from dither.server.store import Store
from dither.server.ticks import Clock

_MAX_TEXT = 200
_MAX_NAME = 64
_NOISY = frozenset({"questions.ask", "questions.cancel", "chain.verify", "sign-out"})
"""What changes neither a limit, nor a grant, nor a user, and can be done again and again."""
_NOISY_PER_MINUTE = 30
_MOST_NOISY = 100_000
"""So many such lines of each user are kept."""
_JOB_DAYS = 30
"""So long can a question be looked up by its number; its answer stays."""
_PAUSE = 3600.0
_DAY = 86400.0
_log = logging.getLogger("dither.server")
_events, _jobs = schema.events, schema.jobs


class EventLog:
    """The event log of a store, from which old lines are removed once an hour."""

    def __init__(self, store: Store, clock: Clock, days: int) -> None:
        self._store, self._clock, self._days = store, clock, days
        self._limit = RateLimit(_NOISY_PER_MINUTE)
        self._lock = threading.Lock()
        self._left_out: Counter[str] = Counter()
        self._next_prune = 0.0

    def line(self, who: str, action: str, subject: str = "", *, refused: str = "") -> tuple[sa.Executable, ...]:
        """The statement that writes a line; none where there were too many that a client can cause at will."""
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
        """Write a line. A refusal stays one where its line cannot be written."""
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
        """Remove what is too old, and noisy lines of a user beyond the last ones."""
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
