"""A server: adds up reports as they arrive, in memory that does not grow with their number."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.local.protocol import LocalProtocol, Result
from dither.local.reports import Records, Reports
from dither.local.wire_codes import protocol_name


class Server(Generic[Result]):
    """Sums of reports of one protocol, from which shares are estimated at any time.

    A batch is checked as a whole before any of it is added, so that a refused batch changes nothing. With
    ``refuse_duplicates`` the server remembers the 16-byte id of every batch and refuses one that it has; without, its
    memory does not grow at all.

    >>> import dither as dp
    >>> p = dp.local.SubsetSelection(categories=16, epsilon=1)
    >>> monday, tuesday = p.server(), p.server()
    >>> monday.add(p.privatize([3, 1, 4])).add(p.privatize([1, 5]).to_bytes()).n
    5
    >>> tuesday.add(p.privatize([9])).merge(monday).n
    6
    """

    def __init__(self, protocol: LocalProtocol[Result], *, refuse_duplicates: bool = True) -> None:
        self.protocol = protocol
        self.refuse_duplicates = refuse_duplicates
        self.n = 0
        self.seeded = False
        self._tally = protocol.new_tally()
        self._batches: set[bytes] = set()

    def add(self, reports: Any) -> Server[Result]:
        """Add a batch: :class:`Reports`, or their bytes. Returns the server."""
        batch = reports if isinstance(reports, Reports) else Reports.from_bytes(reports)
        chunks = self._checked(batch)
        self._make_room(len(batch))
        for records in chunks:
            self.protocol.tally(self._tally, records)
        self.n += len(batch)
        self.seeded |= batch.seeded
        if self.refuse_duplicates:
            self._batches.add(batch.batch)
        return self

    def _checked(self, batch: Reports) -> list[Records]:
        """The records of a batch in chunks, all of which could have been sent; anything else is refused."""
        p = self.protocol
        if batch.wire_code != p.wire_code:
            raise InvalidData(
                "reports",
                f"reports of {type(p).__name__}",
                f"reports of {protocol_name(batch.wire_code)}",
                "add them to a server of their own protocol; nothing of this batch was added",
            )
        if batch.fingerprint != p.fingerprint:
            other = (
                f"epsilon={batch.epsilon:g}"
                if batch.epsilon != p.epsilon_on_the_wire
                else "other categories or options"
            )
            raise InvalidData(
                "reports",
                f"reports of clients with the server's parameters, epsilon={p.epsilon_on_the_wire:g}",
                f"reports of clients with {other}",
                "keep one server for each set of parameters; nothing of this batch was added",
            )
        if batch.records.ndim != 2 or batch.records.dtype != np.uint8 or batch.records.shape[1] != p.record_bytes:
            raise InvalidData(
                "reports",
                f"records of {p.record_bytes} bytes",
                "records of another width",
                "send the batch again; nothing of it was added",
            )
        if self.refuse_duplicates and batch.batch in self._batches:
            raise InvalidData(
                "reports", "a batch that is new", "one that was added before", "leave it out; it counts already"
            )
        step = max(1, p.chunk_bytes // p.record_bytes)
        records = np.ascontiguousarray(batch.records)
        chunks = [records[start : start + step] for start in range(0, len(batch), step)]
        for chunk in chunks:
            p.check(chunk)
        return chunks

    def _make_room(self, more: int) -> None:
        """Sums of 32 bits become sums of 64 before one of them could overflow."""
        if self._tally.dtype == np.int32 and self.n + more >= 1 << 31:
            self._tally = self._tally.astype(np.int64)

    def merge(self, other: Server[Result]) -> Server[Result]:
        """Add what another server of the same protocol has added. Returns the server; the other stays as it is."""
        if not isinstance(other, Server):
            raise WrongType("other", "a server", type(other).__name__, "pass what protocol.server() returned")
        if other is self or other.protocol.canonical_parameters != self.protocol.canonical_parameters:
            raise InvalidArgument(
                "other", "another server with the same parameters", "a different one", "merge equal servers"
            )
        if other.n and self.refuse_duplicates and not other.refuse_duplicates:
            raise InvalidArgument(
                "other",
                "a server that knows which batches it has added, as this one does",
                "one with refuse_duplicates=False",
                "start both servers alike; nothing was merged",
            )
        if self.refuse_duplicates and not self._batches.isdisjoint(other._batches):
            raise InvalidData(
                "other",
                "batches that this server does not have",
                "a batch that both have added",
                "add every batch to one server only; nothing was merged",
            )
        self._make_room(other.n)
        self._tally += other._tally
        self.n += other.n
        self.seeded |= other.seeded
        if self.refuse_duplicates:
            self._batches |= other._batches
        return self

    @property
    def nbytes(self) -> int:
        """The size of the sums in bytes."""
        return int(self._tally.nbytes)

    def estimate(self, categories: Any = None) -> Result:
        """What all reports added so far say: for categories, unbiased shares of those asked for, by default of all."""
        if self.n == 0:
            raise InvalidData("reports", "at least one", "none", "add reports first")
        return self.protocol.read(self._tally, self.n, categories, self.seeded)

    def __repr__(self) -> str:
        return f"Server({self.protocol!r}, n={self.n})"
