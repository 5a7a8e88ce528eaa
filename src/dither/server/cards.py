"""The cards and plans of the served folder.

A card's name is the table's name; what is not in the folder cannot be named. A card that is edited counts from the next
request on. Its limits are those of the ledger once there are accounts: stewards change them there, signed, and the
card need not be edited for it.
"""

from __future__ import annotations

import os
import threading
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from dither.errors import InvalidArgument, LedgerError, message
from dither.ledger import Ledger, receipts
from dither.ledger import open as open_ledger_at
from dither.publish import plan_file
from dither.server.config import FILE_NAME
from dither.server.errors import NotFound
from dither.tables.card import toml
from dither.tables.card.accounts import open_ledger
from dither.tables.card.model import Card


@dataclass(frozen=True)
class Served:
    """A card of the folder, as it is now."""

    path: str
    state: tuple[int, ...]
    card: Card

    @property
    def name(self) -> str:
        """The table's name."""
        return self.card.name

    @property
    def receipt_file(self) -> str:
        """Where the last receipt is kept: beside the card, as the command line does, or where the card says."""
        return self.card.receipt or f"{self.path}.receipt"

    @property
    def identity(self) -> str:
        """Text that changes with the card."""
        return f"{self.name} {' '.join(map(str, self.state))}"


def fingerprint(path: str) -> tuple[int, ...]:
    """What changes when a file does."""
    try:
        status = os.stat(path)
    except OSError:
        raise NotFound.of("table") from None
    return status.st_mtime_ns, status.st_size, status.st_ino


def aligned(card: Card) -> Card:
    """The card with the limits that the ledger has by now, where it has accounts for it."""
    if card.ledger is None:
        return card
    try:
        with open_ledger_at(card.ledger, create=False, read_only=True) as ledger:
            accounts = {(a.kind, a.name): a for a in ledger.accounts(card.name)}
            dataset = accounts["dataset", ""]
            if dataset.spent is None and not any(entry.kind == "limit" for entry in ledger.history(card.name)):
                return card  # until something is charged or signed, the card counts
    except (LedgerError, InvalidArgument):  # none yet; what else is wrong is said when it is opened
        return card
    people, template = accounts.get(("people", "")), accounts.get(("analyst", ""))
    return replace(
        card,
        budget=dataset.limit,
        each_analyst=card.each_analyst if template is None else template.limit,
        each_person=card.each_person if people is None else people.limit,
    )


class Folder:
    """The cards of a folder, by the names of their tables, with their ledgers."""

    def __init__(self, folder: str) -> None:
        self.place = Path(folder).absolute()
        self._lock = threading.RLock()
        self._served: dict[str, Served] = {}
        self._ledgers: dict[str, Ledger] = {}
        if not self.place.is_dir():
            raise InvalidArgument(message("folder", "a folder with cards", "none", "check its path"))
        self.scan()

    def scan(self) -> None:
        """Read all cards; refused if two have the same name."""
        with self._lock:
            by_path = {served.path: served for served in self._served.values()}
            result: dict[str, Served] = {}
            for path in self._files("card"):
                state = fingerprint(path)
                known = by_path.get(path)
                served = known if known is not None and known.state == state else Served(path, state, toml.read(path))
                if served.name in result:
                    fix = "give one of them another name"
                    raise InvalidArgument(message("cards", "a name for each", f"{served.name} twice", fix))
                result[served.name] = served
            self._served = result

    def _files(self, kind: str) -> list[str]:
        """The cards or the plans, by what stands in them."""
        result = []
        for path in sorted(self.place.glob("*.toml")):
            if path.name == FILE_NAME or not path.is_file():
                continue
            try:
                given = tomllib.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                given = {"source": ""}  # reading it as a card says what is wrong
            is_plan = "source" not in given and "card" in given
            if is_plan == (kind == "plan"):
                result.append(str(path))
        return result

    def names(self) -> list[str]:
        """The names of all tables."""
        self.scan()
        return sorted(self._served)

    def get(self, name: str) -> Served:
        """The card of a table, as it is now."""
        with self._lock:
            served = self._served.get(name)
            if served is None:
                raise NotFound.of("table")
            state = fingerprint(served.path)
            if state != served.state:
                self.scan()
                return self._served[name] if name in self._served else self.get(name)
            return served

    def ledger(self, name: str) -> Ledger:
        """The ledger of a table, in which its accounts are open. It holds the receipt that was kept."""
        served = self.get(name)
        with self._lock:
            if name not in self._ledgers:
                card = aligned(served.card)
                if card.ledger is None:
                    fix = "state ledger in the card"
                    raise InvalidArgument(message("ledger", "where the budget is kept", "nowhere", fix))
                self._ledgers[name] = open_ledger(card, card.ledger, receipts.read(served.receipt_file))[0]
            return self._ledgers[name]

    def keep_receipt(self, name: str) -> None:
        """Keep the last receipt of a table's ledger, so that an older copy of it is refused at the next start."""
        receipts.keep(self.get(name).receipt_file, self.ledger(name).head)

    def plans(self) -> dict[str, tuple[str, str]]:
        """The plans: for each name (of its file, without the ending) the path, and the name of its table."""
        self.scan()
        by_path = {os.path.realpath(served.path): served.name for served in self._served.values()}
        result = {}
        for path in self._files("plan"):
            given = plan_file.read_plan(Path(path))
            card = os.path.realpath(plan_file.card_path(given, self.place))
            if card in by_path:
                result[Path(path).stem] = (path, by_path[card])
        return result

    def close(self) -> None:
        """Close all ledgers."""
        with self._lock:
            for ledger in self._ledgers.values():
                ledger.close()
            self._ledgers.clear()


__all__ = ["Folder", "Served", "aligned", "fingerprint"]
