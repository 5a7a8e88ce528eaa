"""Limits on what clients send: how often, how much, and how slowly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import Scope

from dither.server.errors import TooMany

_MOST_NAMES = 100_000


def address_of(scope: Scope) -> str:
    """Return the client's IP address; empty if it is unknown."""
    return scope["client"][0] if scope.get("client") else ""


class RateLimit:
    """A token bucket for each name: a number of events per minute, counted in this process."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow ``per_minute`` events a minute, and as many at once; ``clock`` returns the time in seconds."""
        self._clock = clock
        self._rate, self._most = per_minute / 60.0, float(per_minute)
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Count an event of a name; refuse it if there were too many."""
        moment = self._clock()
        with self._lock:
            left, before = self._buckets.get(name, (self._most, moment))
            left = min(self._most, left + (moment - before) * self._rate)
            if left < 1:
                self._buckets[name] = left, moment
                raise TooMany.of(
                    "requests", f"at most {self._most:.0f} a minute", max(1, round((1 - left) / self._rate))
                )
            if len(self._buckets) >= _MOST_NAMES and name not in self._buckets:
                self._buckets = {
                    n: b for n, b in self._buckets.items() if b[0] + (moment - b[1]) * self._rate < self._most
                }
            self._buckets[name] = left - 1, moment


class ConcurrencyLimit:
    """A limit on concurrent operations of one name and of all names; more are refused instead of queued.

    >>> places = ConcurrencyLimit("explanations", most_of_one=1, most_of_all=10)
    >>> with places.taken("ann"), places.taken("bob"):
    ...     with places.taken("ann"):
    ...         pass
    Traceback (most recent call last):
    dither.server.errors.TooMany: explanations: expected at most 1 at the same time, got more. Fix: try again in 1 s.
    """

    def __init__(self, what: str, *, most_of_one: int, most_of_all: int) -> None:
        """Limit operations called ``what`` in errors, of one name and of all names together."""
        self._what, self._of_one, self._of_all = what, most_of_one, most_of_all
        self._lock = threading.Lock()
        self._of_name: dict[str, int] = {}

    @contextmanager
    def taken(self, name: str) -> Iterator[None]:
        """Count an operation of a name while the block runs; refuse it beyond either limit."""
        with self._lock:
            count = self._of_name.get(name, 0)
            if count >= self._of_one:
                raise TooMany.of(self._what, f"at most {self._of_one} at the same time", 1)
            if sum(self._of_name.values()) >= self._of_all:
                raise TooMany.of(self._what, "a server with room for more", 2)
            self._of_name[name] = count + 1
        try:
            yield
        finally:
            with self._lock:
                self._of_name[name] -= 1
                if not self._of_name[name]:
                    del self._of_name[name]
