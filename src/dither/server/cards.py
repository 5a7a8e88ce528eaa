"""The cards and plans of the served folder.

A card's name is the table's name; what is not in the folder cannot be named. A card that is edited counts from the next
request on, unless it cannot be read, or would give rows a fresh budget (:mod:`dither.server.pins`): then the last good
one stays in force, and stewards see what is wrong. Its limits are those of the ledger once there are accounts: stewards
change them there, signed, and the card need not be edited for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dither.errors import DitherError, InvalidArgument, LedgerError, message
from dither.ledger import Ledger, receipts
from dither.ledger import open as open_ledger_at
from dither.publish import plan_file
from dither.server.config import FILE_NAME
from dither.server.errors import NotFound
from dither.server.pins import Pin, Pins
from dither.tables.card import toml
from dither.tables.card.accounts import open_ledger
from dither.tables.card.model import Card
from dither.tables.card.toml import contents, read_bytes

State = tuple[int, ...]
RESTART = "have stewards sign it off, and start the server again; or undo it"


@dataclass(frozen=True)
class Served:
    """A card that is in force: what its file held, which may have been edited since."""

    path: str
    state: State
    card: Card
    text: str = field(repr=False)

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

    @property
    def pin(self) -> Pin:
        """What it says of its ledger and its rows."""
        return Pin.of(Path(self.path), self.card, self.receipt_file)

    @property
    def document(self) -> dict[str, str]:
        """The card for a worker, which reads no file of the folder: what it gets is what is in force here."""
        return {"path": self.path, "text": self.text, "receipt": self.receipt_file}


def served_card(document: dict[str, str]) -> Card:
    """The card of a worker's task, with the receipt that its ledger has to hold."""
    path = Path(document["path"])
    card = toml.parse(contents(document["text"].encode("utf-8"), "card"), path.parent)
    if "://" in (card.ledger or "") and card.incident_log is None:
        card = replace(card, incident_log=str(path.parent / f"{card.name}.incidents.log"))
    return replace(card, receipt=document["receipt"])


@dataclass(frozen=True)
class Refusal:
    """A file that is not in force as it stands: why, for stewards, and what would have to be signed off, if that is
    the reason."""

    file: str
    problem: str
    pin: Pin | None = None


@dataclass(frozen=True)
class _Read:
    """What a file of the folder holds."""

    state: State
    served: Served | None = None
    plan: dict[str, Any] | None = None
    problem: str = ""


def fingerprint(path: str) -> State:
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
    """The cards of a folder that are in force, by the names of their tables, with their ledgers."""

    def __init__(self, folder: str, pins: Pins) -> None:
        self.place = Path(folder).absolute()
        self.pins = pins
        self._lock = threading.RLock()
        self._files: dict[str, _Read] = {}
        self._served: dict[str, Served] = {}
        self._refusals: dict[str, Refusal] = {}
        self._ledgers: dict[str, Ledger] = {}
        self._unusable: dict[str, str] = {}
        """What is wrong with the ledgers or receipts of cards that are not in force for it, by what they would pin."""
        if not self.place.is_dir():
            raise InvalidArgument("folder", "a folder with cards", "none", "check its path")
        self._start()

    # -- which cards are in force -----------------------------------------------------------------------------------

    def _start(self) -> None:
        """Take over what was signed off. On the first start of all, whatever is there is pinned as it is."""
        self._look()
        pinned, readable = self.pins.all(), list(self._readable())
        names = [served.name for served in readable]
        for served in readable:
            is_first = not pinned and names.count(served.name) == 1
            is_signed = bool(served.pin.difference(pinned, self.place)) and self.pins.is_signed(served.pin)
            if is_signed:
                _retire_receipt(served)
            if (is_first or is_signed) and not self._ledger_problem(served):
                self.pins.keep(served.pin)
        self._decide()

    def scan(self) -> None:
        """Look at all files again, if any was added, removed or edited."""
        with self._lock:
            if self._look() or self._unusable:
                self._decide()

    def _look(self) -> bool:
        """Read the files that have changed; whether there were any."""
        result: dict[str, _Read] = {}
        for path in sorted(self.place.glob("*.toml")):
            if path.name == FILE_NAME or not path.is_file():
                continue
            with suppress(NotFound):  # it has gone meanwhile
                state, known = fingerprint(str(path)), self._files.get(str(path))
                result[str(path)] = known if known is not None and known.state == state else _read(path, state)
        changed, self._files = result != self._files, result
        return changed

    def _readable(self) -> Iterator[Served]:
        return (read.served for read in self._files.values() if read.served is not None)

    def _decide(self) -> None:
        """Which cards are in force: of each file the one that it holds, or the last good one."""
        pinned, before = self.pins.all(), {served.path: served for served in self._served.values()}
        owners = {pin.name: pin.file for pin in pinned}
        names = [served.name for served in self._readable()]
        in_force: dict[str, Served] = {}
        refusals: dict[str, Refusal] = {}
        unusable, self._unusable = self._unusable, {}
        for path, read in self._files.items():
            file, served, problem, pin = Path(path).name, read.served, read.problem, None
            if served is not None:
                difference = served.pin.difference(pinned, self.place)
                if names.count(served.name) > 1 and owners.get(served.name) != file:
                    problem = message("name", "one for each card", f"{served.name} twice", "give it another name")
                elif difference:
                    pin = served.pin
                    problem = message("card", "the ledger, name and people that its rows have", difference, RESTART)
                    if pin.digest in unusable:  # signed off, and in vain
                        problem = self._unusable[pin.digest] = unusable[pin.digest]
                elif served.name not in owners:
                    problem = self._ledger_problem(served)
            if problem:
                refusals[file] = Refusal(file, problem, pin)
                served = before.get(path)
            if served is not None:
                in_force[served.name] = served
        for served in in_force.values():
            if not any(pin.covers(served.pin) for pin in pinned):  # a new table, or one whose rows are elsewhere now
                self.pins.keep(served.pin)
        self._served, self._refusals = in_force, refusals

    def names(self) -> list[str]:
        """The names of all tables."""
        self.scan()
        return sorted(self._served)

    def refusals(self) -> tuple[Refusal, ...]:
        """The files that are not in force as they stand: for stewards."""
        self.scan()
        return tuple(self._refusals[file] for file in sorted(self._refusals))

    def get(self, name: str) -> Served:
        """The card of a table that is in force."""
        with self._lock:
            served = self._served.get(name)
            if served is None:
                raise NotFound.of("table")
            read = self._files.get(served.path)
            if read is None or fingerprint(served.path) != read.state:
                self.scan()
                if name not in self._served:
                    raise NotFound.of("table")
            return self._served[name]

    # -- ledgers ----------------------------------------------------------------------------------------------------

    def ledger(self, name: str) -> Ledger:
        """The ledger of a table, in which its accounts are open. It holds the receipt that was kept, and from now on
        one is kept: a ledger that is removed is not made anew."""
        return self._opened(self.get(name))

    def _opened(self, served: Served) -> Ledger:
        with self._lock:
            if served.name not in self._ledgers:
                card = aligned(served.card)
                if card.ledger is None:
                    fix = "state ledger in the card"
                    raise InvalidArgument("ledger", "where the budget is kept", "nowhere", fix)
                kept = receipts.read(served.receipt_file)
                if kept is None:
                    receipts.check_writable(served.receipt_file)
                ledger = open_ledger(card, card.ledger, kept)[0]
                try:
                    receipts.keep(served.receipt_file, ledger.head)
                except BaseException:
                    ledger.close()
                    raise
                self._ledgers[served.name] = ledger
            return self._ledgers[served.name]

    def _ledger_problem(self, served: Served) -> str:
        """Why the ledger of a card that is not pinned cannot be opened; nothing where it can. Such a card is a
        problem of its own: nothing of it is pinned, and the other tables are served."""
        try:
            self._opened(served)
        except DitherError as error:
            return self._unusable.setdefault(served.pin.digest, str(error))
        return ""

    def keep_receipt(self, name: str) -> None:
        """Keep the last receipt of a table's ledger, so that an older copy of it is refused at the next start."""
        receipts.keep(self.get(name).receipt_file, self.ledger(name).head)

    # -- plans ------------------------------------------------------------------------------------------------------

    def plans(self) -> dict[str, tuple[str, str]]:
        """The plans: for each name (of its file, without the ending) the path, and the name of its table. Of a plan
        that cannot be read, stewards see why among the refusals."""
        self.scan()
        by_path = {os.path.realpath(served.path): served.name for served in self._served.values()}
        result = {}
        for path, read in self._files.items():
            if read.plan is not None:
                with suppress(DitherError):  # a card that is not there
                    card = os.path.realpath(plan_file.card_path(read.plan, self.place))
                    if card in by_path:
                        result[Path(path).stem] = (path, by_path[card])
        return result

    def close(self) -> None:
        """Close all ledgers, with the last receipt of each kept."""
        with self._lock:
            for name, ledger in self._ledgers.items():
                with suppress(Exception):  # of a disk that is full, or a ledger that is gone: it is closed all the same
                    receipts.keep(self._served[name].receipt_file, ledger.head)
                ledger.close()
            self._ledgers.clear()


def _retire_receipt(served: Served) -> None:
    """Put a receipt aside that the ledger which was signed off does not hold: it is of the one before, and evidence."""
    kept = receipts.read(served.receipt_file)
    if kept is None:
        return
    try:
        with open_ledger_at(str(served.card.ledger), create=False, read_only=True, receipt=kept):
            return
    except DitherError:
        os.replace(served.receipt_file, f"{served.receipt_file}.entry-{kept.seq}")


def _read(path: Path, state: State) -> _Read:
    """What a file holds: a card, a plan, or what is wrong with it."""
    try:
        raw = read_bytes(path, "card", "or draft a card with dither init")
        given = contents(raw, "card")
        if "source" not in given and "card" in given:
            return _Read(state, plan=plan_file.read_plan(path))
        card = toml.parse(given, path.parent)
        if card.ledger is None:
            raise InvalidArgument("ledger", "where the budget is kept", "nowhere", "state ledger in the card")
        return _Read(state, served=Served(str(path), state, card, raw.decode("utf-8-sig")))
    except DitherError as error:
        return _Read(state, problem=str(error))
