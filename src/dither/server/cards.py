"""The cards and plans of the served folder, and what is pinned about each table.

A card's name is the table's name; what is not in the folder cannot be named. A card that is edited counts from the next
request on, unless it cannot be read, or would give rows a fresh budget: then the last good one stays in force, and
stewards see what is wrong. Its limits are those of the ledger once there are accounts: stewards change them there,
signed, and the card need not be edited for it.

A card that names another ledger, or another name for the same rows, would have a fresh budget, of which no page tells;
so would one in which another column names the person, where each person has a budget. So the first card of a table pins
them, in the server's own database. A card that differs is not taken over: until it is signed off by two stewards (one,
where a single steward is configured) and the server is started again, what was pinned counts. Paths inside the served
folder are written from there on, so that the folder may move; passwords are left out.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import sqlalchemy as sa

from dither.errors import DitherError, InvalidArgument, LedgerError, message
from dither.ledger import Ledger
from dither.ledger import open as open_ledger_at
from dither.ledger.chain import check_receipt_file, keep_receipt, read_receipt
from dither.ledger.recorded import canonical
from dither.publish import plan_file
from dither.release.pipeline import incident_log_beside_card
from dither.server import schema
from dither.server.config import FILE_NAME
from dither.server.errors import NotFound
from dither.server.store import Store
from dither.tables.card import toml
from dither.tables.card.accounts import open_ledger
from dither.tables.card.model import Card, PrivateTable
from dither.tables.card.toml import contents, read_bytes

_PORT = "5432"

_LOCAL = ("localhost", "127.0.0.1", "::1")

_PASSWORD = re.compile(r"(?<=[?&])password=[^&]*&?")

_cards, _signatures, _users = schema.cards, schema.card_signatures, schema.users


@dataclass(frozen=True)
class Pin:
    """What must not change about a served table without signatures: the file name of its card, its ledger, its receipt
    file, and each source of its rows with the column that identifies the person."""

    name: str
    file: str
    ledger: str
    receipt: str
    sources: Mapping[str, str]

    @classmethod
    def of(cls, path: Path, card: Card, receipt_file: str) -> Pin:
        """Return the pin of the card in the file ``path``, with its addresses in canonical form.

        >>> Pin.of(Path("/cards/t.toml"), Card("t", "/cards/t.csv", {}, ledger="/cards/t.sqlite"), "/r").ledger
        't.sqlite'
        """
        folder = path.parent
        units: dict[str, set[str]] = {}
        for table in card.private_tables.values():
            for place in _source_addresses(table.source, folder):
                units.setdefault(place, set()).add(_person_column(table))
        ledger = "" if card.ledger is None else _canonical_address(card.ledger, folder)
        sources = {place: ", ".join(sorted(units[place])) for place in sorted(units)}
        return cls(card.name, path.name, ledger, _canonical_address(receipt_file, folder), sources)

    @property
    def digest(self) -> str:
        """Return the hash of the whole pin, which stewards sign."""
        parts = [self.name, self.file, self.ledger, self.receipt, sorted(map(list, self.sources.items()))]
        return hashlib.sha256(canonical(parts).encode()).hexdigest()

    def covers(self, other: Pin) -> bool:
        """Return whether ``other`` equals this pin except that it may have fewer sources."""
        return self == replace(other, sources=self.sources) and other.sources.items() <= self.sources.items()

    def difference(self, pinned: Iterable[Pin], folder: Path) -> str:
        """Return how this pin would give rows a second, fresh budget, in words for stewards; empty if it would not.

        ``pinned`` are the pins of all tables, and ``folder`` is the served folder, to which their paths are relative.
        """
        others = {pin.name: pin for pin in pinned}
        before = others.pop(self.name, None)
        if before is not None and (self.ledger, self.receipt) != (before.ledger, before.receipt):
            return "a different ledger or receipt"
        known = {} if before is None else before._person_columns(folder)
        here = self._person_columns(folder)
        if any(known.get(row) not in (None, unit) for row, unit in here.items()):
            return "a different column that identifies the person"
        for pin in others.values():
            if before is None and pin.file == self.file:
                return f"a name other than {pin.name}"
            if (here.keys() - known.keys()) & pin._person_columns(folder).keys():
                return f"rows that have the budget of {pin.name}"
        return ""

    def _person_columns(self, folder: Path) -> dict[str, str]:
        """Return the column that identifies the person, by each address and file identity of the sources."""
        return {row: unit for source, unit in self.sources.items() for row in _row_identities(source, folder)}


def _person_column(table: PrivateTable) -> str:
    """Return the column that identifies the person, with its type and format; empty where each row is a person."""
    if table.unit is None:
        return ""
    column = table.columns[table.unit]
    return " ".join(filter(None, (table.unit, column.type, column.format)))


def _canonical_address(text: str, folder: Path) -> str:
    """Return an address in canonical form: a URL without user and password; a file's real path, relative to the served
    ``folder`` if it is inside."""
    if "://" in text:
        scheme, _, address = text.partition("://")
        return f"{scheme}://{_PASSWORD.sub('', address.rpartition('@')[2])}"
    real, home = os.path.realpath(os.path.join(folder, text)), os.path.realpath(folder)
    inside = os.path.commonpath([real, home]) == home
    return os.path.relpath(real, home) if inside else real


def _source_addresses(source: str, folder: Path) -> set[str]:
    """Return the canonical addresses of a source: its own and, for a glob pattern, those of the matching files.

    A source is a file, or ``database::table`` with a file, a PostgreSQL URL or ``spark`` before the colons.
    """
    place, mark, table = source.rpartition("::")
    if not mark:
        path = os.path.join(folder, source)
        files = [] if os.path.exists(path) else glob.glob(path, recursive=True)
        return {_canonical_address(item, folder) for item in (source, *files)}
    is_remote = "://" in place
    where = _database(place) if is_remote else place if place == "spark" else _canonical_address(place, folder)
    return {f"{where}::{_table_name(table, 'public' if is_remote else 'default' if place == 'spark' else 'main')}"}


def _table_name(name: str, default_schema: str) -> str:
    """Return a table name in canonical form: without quotes and the default schema, in lower case."""
    parts = [quoted.replace('""', '"') or bare for quoted, bare in re.findall(r'"((?:[^"]|"")+)"|([^".]+)', name)]
    folded = [part.casefold() for part in parts]
    return ".".join(folded[1:] if len(folded) == 2 and folded[0] == default_schema else folded)


def _database(address: str) -> str:
    """Return the address of a PostgreSQL database in canonical form, ``postgresql://host[:port]/name``, so that two
    spellings of one database are equal."""
    try:
        url = urlsplit(address)
        given = {key: values[-1] for key, values in parse_qs(url.query).items()}
        host = (given.get("host") or url.hostname or "localhost").lower()
        port = given.get("port") or str(url.port or _PORT)
        name = given.get("dbname") or unquote(url.path.strip("/")) or given.get("user") or url.username or ""
    except ValueError:  # no address: it is refused when it is opened
        return _canonical_address(address, Path())
    return f"postgresql://{'localhost' if host in _LOCAL else host}{'' if port == _PORT else ':' + port}/{name}"


def _row_identities(source: str, folder: Path) -> Iterator[str]:
    """Yield what identifies the rows of a source: its addresses, and device and inode of the files that exist, which
    survive renaming."""
    for place in _source_addresses(source, folder):
        yield place
        path, mark, table = place.rpartition("::") if "::" in place else (place, "", "")
        with suppress(OSError, ValueError):
            status = os.stat(os.path.join(folder, path))
            yield f"file {status.st_dev} {status.st_ino}{mark}{table}"


class Pins:
    """The stored pins of all tables, and the stewards' signatures for changed ones."""

    def __init__(self, store: Store, *, single_steward: bool = False) -> None:
        self._store = store
        self.needed = 1 if single_steward else 2

    def all(self) -> tuple[Pin, ...]:
        """Return the stored pins of all tables, ordered by table name."""
        rows = self._store.rows(sa.select(_cards).order_by(_cards.c.dataset))
        return tuple(Pin(row.dataset, row.file, row.ledger, row.receipt, json.loads(row.sources)) for row in rows)

    def keep(self, pin: Pin) -> None:
        """Store the pin of a table, keeping the sources that it had before, and delete the signatures for it."""
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
        """Store a steward's signature for a changed pin; a second one replaces the first."""
        same = _signatures.c.digest == pin.digest, _signatures.c.user == user
        row = {"digest": pin.digest, "user": user, "reason": reason, "at": time.time()}
        self._store.run(_signatures.delete().where(*same), _signatures.insert().values(**row))

    def signers(self, pin: Pin) -> tuple[str, ...]:
        """Return the names of the stewards who have signed a changed pin and are still stewards."""
        joined = sa.select(_users.c.name, _users.c.roles).join(_signatures, _signatures.c.user == _users.c.name)
        rows = self._store.rows(
            joined.where(_signatures.c.digest == pin.digest, _users.c.active).order_by(_users.c.name)
        )
        return tuple(row.name for row in rows if "steward" in row.roles.split())

    def is_signed(self, pin: Pin) -> bool:
        """Return whether enough stewards have signed a changed pin."""
        return len(self.signers(pin)) >= self.needed


def void_signatures(user: str) -> sa.Executable:
    """Return the statement that deletes the signatures of a user who is no longer a steward."""
    return _signatures.delete().where(_signatures.c.user == user)


FileState = tuple[int, ...]

RESTART = "have stewards sign it off, and start the server again; or undo it"


@dataclass(frozen=True)
class ServedCard:
    """A card in force, with the text and the state (:func:`fingerprint`) of its file when it was read; the file may
    have been edited since."""

    path: str
    state: FileState
    card: Card
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        """Return the name of the table."""
        return self.card.name

    @property
    def receipt_file(self) -> str:
        """Return the path of the file with the last receipt: as the card states, else beside the card, as on the
        command line."""
        return self.card.receipt or f"{self.path}.receipt"

    @property
    def identity(self) -> str:
        """Return a text that changes whenever the card's file does; it is hashed into each request, so that an answer
        recorded under an older card is not found by it."""
        return f"{self.name} {' '.join(map(str, self.state))}"

    @property
    def pin(self) -> Pin:
        """Return what this card states about its ledger and its rows."""
        return Pin.of(Path(self.path), self.card, self.receipt_file)

    @property
    def document(self) -> dict[str, str]:
        """Return the card as JSON for a worker process. The worker does not read the file again, so that server and
        worker use one version of the card."""
        return {"path": self.path, "text": self.text, "receipt": self.receipt_file}


def served_card(document: dict[str, str]) -> Card:
    """Return the card from the JSON that a worker got, with the receipt that its ledger has to hold."""
    path = Path(document["path"])
    card = toml.parse(contents(document["text"].encode("utf-8"), "card"), path.parent)
    card = replace(card, incident_log=incident_log_beside_card(card.incident_log, card.name, card.ledger, path))
    return replace(card, receipt=document["receipt"])


@dataclass(frozen=True)
class Refusal:
    """A card or plan file whose present content is not in force, with the reason in words for stewards; ``pin`` is what
    stewards would have to sign off, None if a signature would not help."""

    file: str
    problem: str
    pin: Pin | None = None


@dataclass(frozen=True)
class _FileContent:
    """The content of a file of the folder: a card, a plan, or a problem."""

    state: FileState
    served: ServedCard | None = None
    plan: dict[str, Any] | None = None
    problem: str = ""


def fingerprint(path: str) -> FileState:
    """Return modification time, size and inode of a file, which change when the file does."""
    try:
        status = os.stat(path)
    except OSError:
        raise NotFound.of("table") from None
    return status.st_mtime_ns, status.st_size, status.st_ino


def with_ledger_limits(card: Card) -> Card:
    """Return the card with its limits replaced by those in its ledger, once anything was charged there or a limit was
    changed; until then, and without a ledger, return the card unchanged."""
    if card.ledger is None:
        return card
    try:
        with open_ledger_at(card.ledger, create=False, read_only=True) as ledger:
            accounts = {(a.kind, a.name): a for a in ledger.accounts(card.name)}
            dataset = accounts["dataset", ""]
            if dataset.spent is None and not any(entry.kind == "limit" for entry in ledger.history(card.name)):
                return card  # until something is charged or signed, the card counts
    except (LedgerError, InvalidArgument):  # no ledger yet; any other problem is raised when it is opened to charge
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
        """Read all cards of the folder, and decide which are in force by comparing them with the stored ``pins``."""
        self.path = Path(folder).absolute()
        self.pins = pins
        self._lock = threading.RLock()
        self._files: dict[str, _FileContent] = {}  # by path
        self._served: dict[str, ServedCard] = {}  # cards in force, by table
        self._refusals: dict[str, Refusal] = {}  # by file name
        self._ledgers: dict[str, Ledger] = {}  # open ledgers, by table
        self._unusable: dict[str, str] = {}  # problems with ledgers of cards not in force, by the digest of their pin
        if not self.path.is_dir():
            raise InvalidArgument("folder", "a folder with cards", "none", "check its path")
        self._start()

    # -- which cards are in force -----------------------------------------------------------------------------------

    def _start(self) -> None:
        """Decide which cards are in force when the server starts.

        A card is accepted, and its pin stored, if it differs from the pinned one and enough stewards have signed that,
        or if nothing was ever pinned, which is the first start of the server on this folder. Without a usable ledger
        it is not accepted.
        """
        self._read_changed_files()
        pinned, readable = self.pins.all(), list(self._readable_cards())
        names = [served.name for served in readable]
        for served in readable:
            is_first = not pinned and names.count(served.name) == 1
            is_signed = bool(served.pin.difference(pinned, self.path)) and self.pins.is_signed(served.pin)
            if is_signed:
                _retire_receipt(served)
            if (is_first or is_signed) and not self._ledger_problem(served):
                self.pins.keep(served.pin)
        self._choose_cards_in_force()

    def scan(self) -> None:
        """Read added and edited files of the folder again, and decide anew which cards are in force."""
        with self._lock:
            if self._read_changed_files() or self._unusable:
                self._choose_cards_in_force()

    def _read_changed_files(self) -> bool:
        """Read the files that have changed, and return whether there were any."""
        result: dict[str, _FileContent] = {}
        for path in sorted(self.path.glob("*.toml")):
            if path.name == FILE_NAME or not path.is_file():
                continue
            with suppress(NotFound):  # it has gone meanwhile
                state, known = fingerprint(str(path)), self._files.get(str(path))
                result[str(path)] = known if known is not None and known.state == state else _read_file(path, state)
        changed, self._files = result != self._files, result
        return changed

    def _readable_cards(self) -> Iterator[ServedCard]:
        """Yield the cards of all files that could be read."""
        return (read.served for read in self._files.values() if read.served is not None)

    def _choose_cards_in_force(self) -> None:
        """Decide for each file whether its current content or its last valid one is in force, and store new pins.

        A current content is refused if it cannot be read, if its table name is used twice, if it would give rows a
        fresh budget (:meth:`Pin.difference`), or if the ledger of a new table cannot be opened.
        """
        pinned, before = self.pins.all(), {served.path: served for served in self._served.values()}
        owners = {pin.name: pin.file for pin in pinned}
        names = [served.name for served in self._readable_cards()]
        in_force: dict[str, ServedCard] = {}
        refusals: dict[str, Refusal] = {}
        unusable, self._unusable = self._unusable, {}
        for path, read in self._files.items():
            file, served, problem, pin = Path(path).name, read.served, read.problem, None
            if served is not None:
                difference = served.pin.difference(pinned, self.path)
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
        """Return the names of all served tables, sorted."""
        self.scan()
        return sorted(self._served)

    def refusals(self) -> tuple[Refusal, ...]:
        """Return the files that are not in force as they stand, for stewards."""
        self.scan()
        return tuple(self._refusals[file] for file in sorted(self._refusals))

    def get(self, name: str) -> ServedCard:
        """Return the card in force of a table; raise NotFound for an unknown name."""
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
        """Return the open ledger of a table; refuse one that does not hold the kept receipt.

        Opening stores a receipt, so that a ledger that is removed later is refused instead of created anew.
        """
        return self._open_ledger_once(self.get(name))

    def _open_ledger_once(self, served: ServedCard) -> Ledger:
        """Return the ledger of a card, which is opened once, and keep its receipt."""
        with self._lock:
            if served.name not in self._ledgers:
                card = with_ledger_limits(served.card)
                if card.ledger is None:
                    fix = "state ledger in the card"
                    raise InvalidArgument("ledger", "the path or address of a ledger", "none", fix)
                kept = read_receipt(served.receipt_file)
                if kept is None:
                    check_receipt_file(served.receipt_file)
                ledger = open_ledger(card, card.ledger, kept)[0]
                try:
                    keep_receipt(served.receipt_file, ledger.head)
                except BaseException:
                    ledger.close()
                    raise
                self._ledgers[served.name] = ledger
            return self._ledgers[served.name]

    def _ledger_problem(self, served: ServedCard) -> str:
        """Return why the ledger of a card that is not pinned yet cannot be opened; empty if it can.

        The card is then not put in force, while the other tables are served.
        """
        try:
            self._open_ledger_once(served)
        except DitherError as error:
            return self._unusable.setdefault(served.pin.digest, str(error))
        return ""

    def keep_receipt(self, name: str) -> None:
        """Store the last receipt of a table's ledger, so that an older copy of the ledger is refused at the next
        start."""
        keep_receipt(self.get(name).receipt_file, self.ledger(name).head)

    # -- plans ------------------------------------------------------------------------------------------------------

    def plans(self) -> dict[str, tuple[str, str]]:
        """Return the publication plans of the folder, by file name without ending: each plan's path and the name of its
        table.

        Stewards see among :meth:`refusals` why a plan cannot be read.
        """
        self.scan()
        by_path = {os.path.realpath(served.path): served.name for served in self._served.values()}
        result = {}
        for path, read in self._files.items():
            if read.plan is not None:
                with suppress(DitherError):  # a card that is not there
                    card = os.path.realpath(plan_file.card_path(read.plan, self.path))
                    if card in by_path:
                        result[Path(path).stem] = (path, by_path[card])
        return result

    def close(self) -> None:
        """Close all ledgers, after keeping the last receipt of each."""
        with self._lock:
            for name, ledger in self._ledgers.items():
                with suppress(Exception):  # of a disk that is full, or a ledger that is gone: it is closed all the same
                    keep_receipt(self._served[name].receipt_file, ledger.head)
                ledger.close()
            self._ledgers.clear()


def _retire_receipt(served: ServedCard) -> None:
    """Rename a kept receipt that the newly signed ledger does not hold: it belongs to the ledger before, and stays
    as evidence."""
    kept = read_receipt(served.receipt_file)
    if kept is None:
        return
    try:
        with open_ledger_at(str(served.card.ledger), create=False, read_only=True, receipt=kept):
            return
    except DitherError:
        os.replace(served.receipt_file, f"{served.receipt_file}.entry-{kept.seq}")


def _read_file(path: Path, state: FileState) -> _FileContent:
    """Return the content of a file of the folder: a card, a plan, or the problem in words; ``state`` is the file's
    fingerprint."""
    try:
        raw = read_bytes(path, "card", "or draft a card with dither init")
        given = contents(raw, "card")
        if "source" not in given and "card" in given:
            return _FileContent(state, plan=plan_file.read_plan(path))
        card = toml.parse(given, path.parent)
        if card.ledger is None:
            raise InvalidArgument("ledger", "the path or address of a ledger", "none", "state ledger in the card")
        return _FileContent(state, served=ServedCard(str(path), state, card, raw.decode("utf-8-sig")))
    except DitherError as error:
        return _FileContent(state, problem=str(error))
