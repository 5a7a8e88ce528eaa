"""Limits on what clients send: how often, how much, and how slowly.

Connections that never finish saying what they want, or never take the answer, are closed.

uvicorn closes a connection that is idle after a response, and :class:`dither.server.app.BodyLimit` refuses a
slow body. A client that sends a part of its headers, or nothing, or does not read what it asked for, would hold a
connection for ever. Enough of them would hold all descriptors that the process may have. So there is a limit on the
number of connections, which leaves descriptors for all else (:mod:`dither.server.machine`), and when it is reached, the
connection that has waited longest for a request is closed for the one that comes: whoever sends a request is served.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import h11
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from dither.server.errors import TooMany

_MOST_NAMES = 100_000


def address_of(scope: Scope) -> str:
    """Return the client's IP address; empty if it is unknown."""
    return scope["client"][0] if scope.get("client") else ""


class RateLimit:
    """A token bucket for each name, filled with ``per_minute`` tokens a minute; counted in this process only."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow ``per_minute`` events a minute, and as many at once; ``clock`` returns the time in seconds."""
        self._clock = clock
        self._rate, self._most = per_minute / 60.0, float(per_minute)
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take a token of a name; raise TooMany, with the seconds until the next token, if there is none."""
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


class HeaderTimeoutProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 protocol that closes connections which send no complete headers within ``header_seconds``,
    or do not read the response within ``write_seconds``."""

    header_seconds = 20.0
    write_seconds = 60.0
    _timer: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Accept a connection, closing an idle one if the limit is reached, and start the timeout of its headers."""
        limit = self.limit_concurrency
        if limit is not None and len(self.connections) >= limit - 1:  # at the limit, uvicorn refuses every request
            self._make_room()
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take received bytes; stop the timeout when the headers of a request are complete."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Note since when the connection is idle, and handle a pipelined request."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close a kept connection without a new request, and drop what its client has not read by then."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.write_seconds, self.transport.abort)

    def pause_writing(self) -> None:
        """Start the timeout for a client that does not read the response."""
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timeout: the client has read the response."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop both timeouts."""
        self._stop_waiting()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().connection_lost(exc)

    def _make_room(self) -> None:
        """Close the connection that has been idle longest, if any is idle."""
        others = [other for other in self.connections if isinstance(other, HeaderTimeoutProtocol) and other.is_idle]
        oldest = min(others, key=lambda other: other._idle_since, default=None)
        if oldest is not None:
            self.connections.discard(oldest)  # now, and not when the loop comes to it: more may be accepted before
            oldest.transport.abort()

    @property
    def is_idle(self) -> bool:
        """Return whether the connection waits for a request, or for the rest of its headers."""
        is_waiting = self._timer is not None or self.timeout_keep_alive_task is not None
        return is_waiting and not self.transport.is_closing()

    def _wait(self) -> None:
        """Start the timeout for the headers of a request, unless it runs."""
        if self._timer is None:  # once for a request: a byte now and then gains no time
            self._idle_since = self.loop.time()
            self._timer = self.loop.call_later(self.header_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        """Stop the timeout for the headers of a request."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        """Close a connection whose headers did not arrive in time."""
        self._timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
