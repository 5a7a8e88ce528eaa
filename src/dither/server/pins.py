"""What the server holds on to about each table: which ledger and receipt it has, which rows, and who the people are.

A card that names another ledger, or another name for the same rows, would have a fresh budget, of which no page tells;
so would one in which another column names the person, where each person has a budget.
So the first card of a table pins them, in the server's own database. A card that differs is not taken over: until it is
signed off by two stewards (one, where a single steward is configured) and the server is started again, what was pinned
counts. Places inside the served folder are written from there on, so that the folder may move; passwords are left out.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import sqlalchemy as sa

from dither.ledger.recorded import canonical
from dither.server import schema
from dither.server.store import Store
from dither.tables.card.model import Card, PrivateTable

_PORT = "5432"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_PASSWORD = re.compile(r"(?<=[?&])password=[^&]*&?")

_cards, _signatures, _users = schema.cards, schema.card_signatures, schema.users


@dataclass(frozen=True)
class Pin:
    """The file of a table's card, where its ledger and its receipt are, and the sources of its rows: for each the
    column that names the person, with its type; None where that was not written down."""

    name: str
    file: str
    ledger: str
    receipt: str
    sources: Mapping[str, str | None]

    @classmethod
    def of(cls, path: Path, card: Card, receipt_file: str) -> Pin:
        """What a card would pin.

        >>> Pin.of(Path("/cards/t.toml"), Card("t", "/cards/t.csv", {}, ledger="/cards/t.sqlite"), "/r").ledger
        't.sqlite'
        """
        folder = path.parent
        units: dict[str, set[str]] = {}
        for table in card.private_tables.values():
            for place in _places(table.source, folder):
                units.setdefault(place, set()).add(_unit(table))
        ledger = "" if card.ledger is None else _place(card.ledger, folder)
        sources = {place: ", ".join(sorted(units[place])) for place in sorted(units)}
        return cls(card.name, path.name, ledger, _place(receipt_file, folder), sources)

    @property
    def digest(self) -> str:
        """What stewards sign: all of it."""
        parts = [self.name, self.file, self.ledger, self.receipt, sorted(map(list, self.sources.items()))]
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def covers(self, other: Pin) -> bool:
        """Whether another one says nothing new."""
        return self == replace(other, sources=self.sources) and other.sources.items() <= self.sources.items()

    def difference(self, pinned: Iterable[Pin], folder: Path) -> str:
        """In which way this would be a fresh budget for rows that have one, in words; nothing where it would not."""
        others = {pin.name: pin for pin in pinned}
        before = others.pop(self.name, None)
        if before is not None and (self.ledger, self.receipt) != (before.ledger, before.receipt):
            return "another ledger or receipt"
        known = {} if before is None else before._units(folder)
        here = self._units(folder)
        if any(known.get(row) not in (None, unit) for row, unit in here.items()):
            return "another column that names the person"
        for pin in others.values():
            if before is None and pin.file == self.file:
                return f"another name than {pin.name}"
            if (here.keys() - known.keys()) & pin._units(folder).keys():
                return f"rows that have the budget of {pin.name}"
        return ""

    def _units(self, folder: Path) -> dict[str, str | None]:
        """The unit of all rows, by each way to tell which they are: places, and files themselves as they are now."""
        return {row: unit for source, unit in self.sources.items() for row in _rows(source, folder)}


def _unit(table: PrivateTable) -> str:
    if table.unit is None:
        return ""
    column = table.columns[table.unit]
    return " ".join(filter(None, (table.unit, column.type, column.format)))


def _place(text: str, folder: Path) -> str:
    """A place without a password, from the folder on where it is inside."""
    if "://" in text:
        scheme, _, address = text.partition("://")
        return f"{scheme}://{_PASSWORD.sub('', address.rpartition('@')[2])}"
    real, home = os.path.realpath(os.path.join(folder, text)), os.path.realpath(folder)
    inside = os.path.commonpath([real, home]) == home
    return os.path.relpath(real, home) if inside else real


def _places(source: str, folder: Path) -> set[str]:
    """A source in its one spelling, and the files of a glob."""
    place, mark, table = source.rpartition("::")
    if not mark:
        path = os.path.join(folder, source)
        files = [] if os.path.exists(path) else glob.glob(path, recursive=True)
        return {_place(item, folder) for item in (source, *files)}
    is_remote = "://" in place
    where = _database(place) if is_remote else place if place == "spark" else _place(place, folder)
    return {f"{where}::{_table(table, 'public' if is_remote else 'default' if place == 'spark' else 'main')}"}


def _table(name: str, schema: str) -> str:
    """The name of a table without quotes, its schema where it is another one than that by default, and in small
    letters: two names that differ in nothing else count as one."""
    parts = [quoted.replace('""', '"') or bare for quoted, bare in re.findall(r'"((?:[^"]|"")+)"|([^".]+)', name)]
    folded = [part.casefold() for part in parts]
    return ".".join(folded[1:] if len(folded) == 2 and folded[0] == schema else folded)


def _database(address: str) -> str:
    """The host, port and name of a PostgreSQL database, however its address is written."""
    try:
        url = urlsplit(address)
        given = {key: values[-1] for key, values in parse_qs(url.query).items()}
        host = (given.get("host") or url.hostname or "localhost").lower()
        port = given.get("port") or str(url.port or _PORT)
        name = given.get("dbname") or unquote(url.path.strip("/")) or given.get("user") or url.username or ""
    except ValueError:  # no address: it is refused when it is opened
        return _place(address, Path())
    return f"postgresql://{'localhost' if host in _LOCAL else host}{'' if port == _PORT else ':' + port}/{name}"


def _rows(source: str, folder: Path) -> Iterator[str]:
    """The ways to tell which rows a source has: its places, and the files that are there now, whatever their names."""
    for place in _places(source, folder):
        yield place
        path, mark, table = place.rpartition("::") if "::" in place else (place, "", "")
        with suppress(OSError, ValueError):
            status = os.stat(os.path.join(folder, path))
            yield f"file {status.st_dev} {status.st_ino}{mark}{table}"


class Pins:
    """The pins of all tables, and who has signed others off."""

    def __init__(self, store: Store, *, single_steward: bool = False) -> None:
        self._store = store
        self.needed = 1 if single_steward else 2

    def all(self) -> tuple[Pin, ...]:
        """What is pinned."""
        rows = self._store.rows(sa.select(_cards).order_by(_cards.c.dataset))
        return tuple(Pin(row.dataset, row.file, row.ledger, row.receipt, _stored(row.sources)) for row in rows)

    def keep(self, pin: Pin) -> None:
        """Pin a table; rows that it had before stay pinned, too. What was signed off for it is used up."""
        before = next((known.sources for known in self.all() if known.name == pin.name), {})
        sources = json.dumps({**before, **pin.sources}, sort_keys=True)
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


def _stored(text: str) -> Mapping[str, str | None]:
    """Sources as they are written down; at first it was without their units."""
    sources = json.loads(text)
    return sources if isinstance(sources, dict) else dict.fromkeys(sources)


def void_signatures(user: str) -> sa.Executable:
    """The statement that takes back what somebody has signed off who is no steward any more."""
    return _signatures.delete().where(_signatures.c.user == user)
