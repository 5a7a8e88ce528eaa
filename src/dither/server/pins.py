"""What the server holds on to about each table: which ledger and receipt it has, and which rows.

A card that names another ledger, or another name for the same rows, would have a fresh budget, of which no page tells.
So the first card of a table pins them, in the server's own database. A card that differs is not taken over: until it is
signed off by two stewards (one, where a single steward is configured) and the server is started again, what was pinned
counts. Places inside the served folder are written from there on, so that the folder may move; passwords are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from dither.ledger.recorded import canonical
from dither.server import schema
from dither.server.store import Store
from dither.tables.card.model import Card

_cards, _signatures, _users = schema.cards, schema.card_signatures, schema.users


@dataclass(frozen=True)
class Pin:
    """The file of a table's card, where its ledger and its receipt are, and the sources of its rows."""

    name: str
    file: str
    ledger: str
    receipt: str
    sources: tuple[str, ...]

    @classmethod
    def of(cls, path: Path, card: Card, receipt_file: str) -> Pin:
        """What a card would pin.

        >>> Pin.of(Path("/cards/t.toml"), Card("t", "/cards/t.csv", {}, ledger="/cards/t.sqlite"), "/r").ledger
        't.sqlite'
        """
        folder = path.parent
        own = [card.source] if card.columns else []
        sources = {_place(source, folder) for source in (*own, *(table.source for table in card.tables.values()))}
        ledger = "" if card.ledger is None else _place(card.ledger, folder)
        return cls(card.name, path.name, ledger, _place(receipt_file, folder), tuple(sorted(sources)))

    @property
    def digest(self) -> str:
        """What stewards sign."""
        return hashlib.sha256(canonical([self.name, self.file, self.ledger, self.receipt]).encode()).hexdigest()

    def covers(self, other: Pin) -> bool:
        """Whether another one says nothing new."""
        return self == replace(other, sources=self.sources) and set(other.sources) <= set(self.sources)

    def difference(self, pinned: Iterable[Pin]) -> str:
        """In which way this would be a fresh budget for rows that have one, in words; nothing where it would not."""
        others = {pin.name: pin for pin in pinned}
        before = others.pop(self.name, None)
        if before is not None and (self.ledger, self.receipt) != (before.ledger, before.receipt):
            return "another ledger or receipt"
        rows = set(self.sources) - set(() if before is None else before.sources)
        for pin in others.values():
            if before is None and pin.file == self.file:
                return f"another name than {pin.name}"
            if rows & set(pin.sources):
                return f"rows that have the budget of {pin.name}"
        return ""


def _place(text: str, folder: Path) -> str:
    """A place without a password, from the folder on where it is inside."""
    path, mark, rest = text.partition("::")
    if "://" in path:
        scheme, _, address = path.partition("://")
        return f"{scheme}://{address.rpartition('@')[2]}{mark}{rest}"
    real, home = os.path.realpath(path), os.path.realpath(folder)
    inside = os.path.commonpath([real, home]) == home
    return (os.path.relpath(real, home) if inside else real) + mark + rest


class Pins:
    """The pins of all tables, and who has signed others off."""

    def __init__(self, store: Store, *, single_steward: bool = False) -> None:
        self._store = store
        self.needed = 1 if single_steward else 2

    def all(self) -> tuple[Pin, ...]:
        """What is pinned."""
        rows = self._store.rows(sa.select(_cards).order_by(_cards.c.dataset))
        return tuple(
            Pin(row.dataset, row.file, row.ledger, row.receipt, tuple(json.loads(row.sources))) for row in rows
        )

    def keep(self, pin: Pin) -> None:
        """Pin a table; rows that it had before stay pinned, too. What was signed off for it is used up."""
        before = [source for known in self.all() if known.name == pin.name for source in known.sources]
        sources = json.dumps(sorted({*before, *pin.sources}))
        row = {"dataset": pin.name, "file": pin.file, "ledger": pin.ledger, "receipt": pin.receipt, "sources": sources,
               "at": time.time()}  # fmt: skip
        self._store.run(
            _cards.delete().where(_cards.c.dataset == pin.name),
            _cards.insert().values(**row),
            _signatures.delete().where(_signatures.c.digest == pin.digest),
        )

    def sign(self, pin: Pin, user: str, reason: str) -> None:
        """Write down that a steward has signed a change off; once for each."""
        same = _signatures.c.digest == pin.digest, _signatures.c.user == user
        row = {"digest": pin.digest, "user": user, "reason": reason, "at": time.time()}
        self._store.run(_signatures.delete().where(*same), _signatures.insert().values(**row))

    def signers(self, pin: Pin) -> tuple[str, ...]:
        """The stewards who have signed a change off, and still are stewards."""
        joined = sa.select(_users.c.name, _users.c.roles).join(_signatures, _signatures.c.user == _users.c.name)
        rows = self._store.rows(
            joined.where(_signatures.c.digest == pin.digest, _users.c.active).order_by(_users.c.name)
        )
        return tuple(row.name for row in rows if "steward" in row.roles.split())

    def is_signed(self, pin: Pin) -> bool:
        """Whether enough stewards have signed a change off."""
        return len(self.signers(pin)) >= self.needed


def void_signatures(user: str) -> sa.Executable:
    """The statement that takes back what somebody has signed off who is no steward any more."""
    return _signatures.delete().where(_signatures.c.user == user)


__all__ = ["Pin", "Pins", "void_signatures"]
