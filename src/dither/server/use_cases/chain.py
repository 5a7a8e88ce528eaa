"""What an auditor reads: the history of a ledger, whether it is as it was written, receipts, and the event log."""

from __future__ import annotations

from itertools import islice

import sqlalchemy as sa

from dither.errors import LedgerError
from dither.ledger import Receipt
from dither.ledger.report import line
from dither.server import schema
from dither.server.context import Context
from dither.server.principal import Principal
from dither.server.results import ChainEntry, Event, Verification
from dither.server.roles import authorize
from dither.server.times import iso

_MOST = 1000


class Chain:
    """Read-only evidence."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def entries(self, who: Principal, table: str, *, after: int = 0, most: int = 100) -> tuple[ChainEntry, ...]:
        """Entries of a table's history with numbers above ``after``, in order."""
        with self._context.acting(who, "chain.read", table):
            history = self._context.folder.ledger(table).history(table)
            later = (entry for entry in history if entry.seq > after)
            return tuple(ChainEntry(**line(entry)) for entry in islice(later, max(1, min(most, _MOST))))

    def verify(self, who: Principal, table: str, *, receipt: str | None = None) -> Verification:
        """Check every entry and every account of the table's ledger, and that it holds a receipt that was kept."""
        with self._context.acting(who, "chain.verify", table, logged=True):
            kept = None if not receipt else Receipt.read(receipt)
            ledger = self._context.folder.ledger(table)
            try:
                result = ledger.verify(kept)
            except LedgerError as error:
                return Verification(table, 0, "", str(error))
            return Verification(table, result.entries, str(result.head))

    def receipt(self, who: Principal, table: str) -> str:
        """The last receipt of the table's ledger, to be kept elsewhere."""
        with self._context.acting(who, "chain.verify", table, logged=True):
            return str(self._context.folder.ledger(table).head)

    def events(self, who: Principal, *, after: int = 0, most: int = 100, user: str | None = None) -> tuple[Event, ...]:
        """The event log, the newest first; ``after`` is the number of the last line of the page before, 0 for the
        first page."""
        authorize(who, "events.read")
        events = schema.events
        conditions = [events.c.id < after] if after else []
        conditions += [] if user is None else [events.c.user == user]
        statement = sa.select(events).where(*conditions).order_by(events.c.id.desc()).limit(max(1, min(most, _MOST)))
        return tuple(
            Event(row.id, iso(row.at), row.user, row.action, row.subject, row.outcome, row.detail)
            for row in self._context.store.rows(statement)
        )
