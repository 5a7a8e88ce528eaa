"""Backups of a served folder: a consistent copy of its ledgers and of the server's own database, and the way back.

``backup`` copies the server's database first and the ledgers afterwards, each as of one moment, while the server runs.
So a copy never holds an answer whose charge it does not hold. The other way round, a charge whose answer is in the
ledger alone, costs nothing: asked again, the recorded answer is given.

``restore`` puts back what is missing or damaged, and nothing else. A ledger that holds all that the copy holds stays as
it is, and so does a database that can be read: a copy is older, and would forget. What is replaced is put aside. **A
receipt is never put back**: it is how a ledger that forgot something is recognized. Where the receipt that was kept is
later than the copy, charges are lost, and nobody can say how much: that ledger is refused from then on, until
``accept_loss`` sets every limit in it to what is known to be spent, signed and with a reason. Stewards may raise the
limits afterwards, in the usual way. In a restored database nobody is signed in, and no token or link works: it does not
know what was revoked since.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from dither.errors import DitherError, InvalidArgument, LedgerError
from dither.guarantees import ZCDP, Guarantee, PureDP
from dither.ledger import Ledger, Receipt
from dither.ledger import open as open_ledger
from dither.ledger.chain import keep_receipt, read_receipt
from dither.ledger.files import given_secret, journal_file, key_file, read_key, sync, write_durably
from dither.server import schema
from dither.server.cards import Pin, Pins
from dither.server.config import FILE_NAME, Config
from dither.server.store import FolderLock, Store, iso
from dither.tables.card import toml
from dither.tables.card.toml import contents

MANIFEST = "backup.json"
DATABASE = "the server's database"
_VERSION = 1
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_ALMOST_ZERO: dict[str, Guarantee] = {"epsilon": PureDP(1e-9), "rho": ZCDP(1e-12)}
"""Limits, by the account's unit, too small for any question; a limit must be above 0."""


@dataclass(frozen=True)
class SavedLedger:
    """A ledger in a backup: its path in the served folder, the file name of its copy, its last receipt (``head``), the
    fingerprint of its secret, and the paths of the receipt files of its tables."""

    place: str
    copy: str
    head: str
    secret: str
    receipts: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """The content of a backup. ``elsewhere`` names PostgreSQL databases, which are not included: back them up with
    PostgreSQL's own tools. ``hashes`` has the SHA-256 of each file."""

    at: str
    ledgers: tuple[SavedLedger, ...]
    database: str
    files: tuple[str, ...]
    elsewhere: tuple[str, ...]
    hashes: dict[str, str]


@dataclass(frozen=True)
class Restored:
    """The outcome of restoring one part of a backup: ``kept`` (the existing one was intact), ``restored``, or
    ``missing`` (not in the backup; restore it by other means).

    ``entry`` is the last one that the copy of a ledger has. ``lost`` is the least number of entries that the receipt
    knows of and the ledger does not; None where no receipt was kept. ``refused`` says that the ledger is refused until
    the loss is accepted."""

    what: str
    outcome: Literal["kept", "restored", "missing"]
    entry: int = 0
    lost: int | None = None
    refused: bool = False


# -- backup -----------------------------------------------------------------------------------------------------------


def backup(config: Config, into: str | os.PathLike[str], *, keys: str | os.PathLike[str] | None = None) -> Manifest:
    """Copy the ledgers, the server's database, cards, plans and configuration of a folder into a new folder.

    The folder ``into`` appears when everything is in it and every ledger has been verified; only its owner may read it.
    The ledgers' secrets are left out, since a ledger together with its secret lets one test who is in the data;
    ``keys`` is a separate folder to which they are copied (None: they are not copied).
    """
    target = Path(into).absolute()
    if os.path.lexists(target):
        raise InvalidArgument("backup", "a new folder", "one that exists", "choose another name")
    if not target.parent.is_dir():
        raise InvalidArgument("backup", "a path in a folder that exists", "none", "make the folder first")
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    part.mkdir(mode=0o700)
    try:
        manifest = _filled(config, part, None if keys is None else Path(keys))
        write_durably(part / MANIFEST, json.dumps({"version": _VERSION, **asdict(manifest)}, indent=1).encode())
        os.rename(part, target)
    except (OSError, sqlite3.Error):
        raise LedgerError(
            "backup", "files that can be copied", "an error while copying", "check free space and permissions"
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return manifest


def _filled(config: Config, part: Path, keys: Path | None) -> Manifest:
    """Copy everything into the folder ``part`` and return its manifest; secrets go to the folder ``keys``, or
    nowhere if it is None."""
    elsewhere: list[str] = []
    database, pinned = "", tuple[Pin, ...]()
    if "://" in config.store_address:
        elsewhere.append(DATABASE)
    elif Path(config.store_address).is_file():  # before the ledgers: no answer without its charge
        database = "server.sqlite"
        _copy_database(Path(config.store_address), part / database)
        with closing(Store(str(part / database))) as store:
            pinned = Pins(store).all()
    by_ledger: dict[str, list[str]] = {}
    for pin in _pins(Path(config.folder), pinned):
        by_ledger.setdefault(pin.ledger, []).append(pin.receipt)
    saved = []
    for number, (place, kept) in enumerate(sorted(by_ledger.items())):
        if "://" in place:
            elsewhere.append(f"the ledger {place}")
            continue
        copy = f"ledger-{number}.sqlite"
        source = Path(config.folder) / place
        secret = given_secret(None) or read_key(key_file(source))
        if keys is not None and not _key_in(keys, secret.fingerprint).exists():
            keys.mkdir(mode=0o700, exist_ok=True)
            write_durably(_key_in(keys, secret.fingerprint), secret.value.hex().encode() + b"\n")
        _copy_database(source, part / copy)
        with open_ledger(part / copy, secret=secret.value, create=False, read_only=True) as ledger:
            head = ledger.verify().head
        saved.append(SavedLedger(place, copy, str(head), secret.fingerprint, tuple(sorted(set(kept)))))
    files = []
    for path in sorted(Path(config.folder).glob("*.toml")):
        if path.is_file():
            write_durably(part / path.name, path.read_bytes())
            files.append(path.name)
    hashes = {path.name: _hash(path) for path in sorted(part.iterdir())}
    return Manifest(iso(time.time()), tuple(saved), database, tuple(files), tuple(elsewhere), hashes)


def _pins(folder: Path, pinned: tuple[Pin, ...]) -> Iterator[Pin]:
    """Yield the pins of cards that were served before (``pinned``) and of every card in the folder; a pin names the
    card's ledger and receipt file.

    A card that cannot be read and was never served is refused: its ledger would be left out of the backup.
    """
    yield from pinned
    for path in sorted(folder.glob("*.toml")):
        if path.name == FILE_NAME or not path.is_file():
            continue
        try:
            given = contents(path.read_bytes(), "card")
            if "source" not in given and "card" in given:
                continue
            card = toml.parse(given, path.absolute().parent)
        except InvalidArgument as error:
            if any(pin.file == path.name for pin in pinned):
                continue
            raise error.within(f"{path.name}: ") from None
        if card.ledger is not None and ("://" in card.ledger or Path(card.ledger).exists()):
            yield Pin.of(path.absolute(), card, card.receipt or f"{path.absolute()}.receipt")


def _copy_database(source: Path, target: Path) -> None:
    """Copy the SQLite database ``source`` to the new file ``target`` as of one moment, while other processes may write
    to it.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, timeout=120)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode = DELETE")
    sync(target)


def _key_in(keys: Path, fingerprint: str) -> Path:
    """Return the path of a ledger's secret in a folder of secrets."""
    return keys / f"{fingerprint}.key"


# -- restore ----------------------------------------------------------------------------------------------------------


def read_manifest(source: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a backup; refuse a backup whose files differ from it."""
    folder = Path(source)
    try:
        given = json.loads((folder / MANIFEST).read_bytes())
        if given.pop("version") != _VERSION:
            raise ValueError
        ledgers = tuple(SavedLedger(**{**item, "receipts": tuple(item["receipts"])}) for item in given.pop("ledgers"))
        files, elsewhere = tuple(given.pop("files")), tuple(given.pop("elsewhere"))
        result = Manifest(ledgers=ledgers, files=files, elsewhere=elsewhere, **given)
        named = {*result.files, *(item.copy for item in ledgers), *filter(None, [result.database])}
        plain = all(Path(name).name == name for name in result.hashes) and named <= result.hashes.keys()
        whole = plain and all(_hash(folder / name) == known for name, known in result.hashes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise InvalidArgument("backup", "a backup as it was written", "a changed one, or none", "choose another backup")
    return result


def restore(
    config: Config,
    source: str | os.PathLike[str],
    *,
    keys: str | os.PathLike[str] | None = None,
    accept_loss: bool = False,
    signed_by: str = "",
    reason: str = "",
) -> tuple[Restored, ...]:
    """Restore missing and damaged files of a served folder from a backup, and return the outcome for each part.

    The server of the folder of ``config`` must be stopped; ``source`` is the folder of the backup. ``keys`` is the
    folder with copies of the ledgers' secrets (None: they are still beside the ledgers). ``accept_loss`` sets the
    limits in a ledger that has lost entries to its recorded spending; ``signed_by`` and ``reason`` stay in its history.
    """
    if accept_loss and not (signed_by and reason):
        fix = "pass --signed-by NAME --reason WHY"
        raise InvalidArgument("accept_loss", "who signs it and for what reason", "not both", fix)
    manifest, folder = read_manifest(source), Path(config.folder)
    if not folder.is_dir():
        raise InvalidArgument("folder", "a folder to restore into", "none", "make it first")
    lock = None if "://" in config.store_address else FolderLock(config.store_address)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    result = []
    try:
        for saved in manifest.ledgers:
            _restore_key(saved, folder, None if keys is None else Path(keys), stamp)
        for name in manifest.files:
            if not os.path.lexists(folder / name):
                write_durably(folder / name, (Path(source) / name).read_bytes())
                result.append(Restored(name, "restored"))
        for saved in manifest.ledgers:
            result.append(_restore_ledger(saved, Path(source), folder, stamp, accept_loss, signed_by, reason))
        if manifest.database:
            result.append(_restore_database(manifest, Path(source), config.store_address, stamp))
    except OSError:
        raise LedgerError(
            "restore", "files that can be written", "an error while writing", "check free space and permissions"
        ) from None
    finally:
        if lock is not None:
            lock.release()
    return (*result, *(Restored(what, "missing") for what in manifest.elsewhere))


def _restore_ledger(
    saved: SavedLedger, source: Path, folder: Path, stamp: str, accept_loss: bool, signed_by: str, reason: str
) -> Restored:
    """Restore one ledger unless the existing one holds all that its copy holds, and compare it with the kept receipts.

    ``saved`` describes the copy in the backup ``source``; ``folder`` is the server's, and ``stamp`` (the time) becomes
    part of the names of replaced files. A kept receipt of an entry that the ledger lacks shows that charges were lost.
    Then the result is refused or, with ``accept_loss``, all limits are lowered to what was spent, signed with
    ``signed_by`` and ``reason``. Without a kept receipt the number of lost entries is unknown (None).
    """
    place, head = folder / saved.place, Receipt.read(saved.head)
    outcome: Literal["kept", "restored"] = "kept" if _holds(place, head) else "restored"
    if outcome == "restored":
        for path in (place, journal_file(place)):  # a journal of another file would be rolled back into the copy
            if os.path.lexists(path):
                os.replace(path, f"{path}.replaced-{stamp}")
        write_durably(place, (source / saved.copy).read_bytes())
    kept = {path: read_receipt(path) for path in (folder / name for name in saved.receipts)}
    with open_ledger(place, create=False) as ledger:
        ahead = [known for known in kept.values() if known is not None and not _has(ledger, known)]
        lost = max((max(1, known.seq - ledger.head.seq) for known in ahead), default=0)
        has_receipt = any(known is not None for known in kept.values())
        if ahead and accept_loss:
            _close_limits(ledger, signed_by, f"restored from a copy of entry {head.seq}: {reason}")
            for path, known in kept.items():
                if known in ahead:
                    os.replace(path, f"{path}.entry-{known.seq}")
        if not ahead or accept_loss:
            for path in kept:
                keep_receipt(path, ledger.head)
        return Restored(saved.place, outcome, head.seq, lost if has_receipt else None, bool(ahead) and not accept_loss)


def _restore_key(saved: SavedLedger, folder: Path, keys: Path | None, stamp: str) -> None:
    """Put the secret of a ledger beside its file, unless it is there or in the environment.

    ``saved`` has the fingerprint of the secret; ``keys`` is the folder with copies of secrets, None if there is none. A
    wrong key in ``folder`` is renamed with ``stamp``.
    """
    place = key_file(folder / saved.place)
    given = given_secret(None)
    if given is None:
        with suppress(DitherError):
            given = read_key(place)
    if given is not None and given.fingerprint == saved.secret:
        return
    if keys is None or not _key_in(keys, saved.secret).exists():
        fix = "pass --keys FOLDER, the one to which dither backup --keys copied it"
        raise InvalidArgument("keys", f"the secret of {saved.place}", "a different secret, or none", fix)
    if os.path.lexists(place):
        os.replace(place, f"{place}.replaced-{stamp}")
    write_durably(place, _key_in(keys, saved.secret).read_bytes())


def _holds(path: Path, head: Receipt) -> bool:
    """Return whether there is an intact ledger at a path that holds the entry of a receipt."""
    try:
        with open_ledger(path, create=False, read_only=True) as ledger:
            ledger.verify(head)
    except DitherError:
        return False
    return True


def _has(ledger: Ledger, receipt: Receipt) -> bool:
    """Return whether an open ledger holds the entry of a receipt."""
    try:
        ledger.expect(receipt)
    except DitherError:
        return False
    return True


def _close_limits(ledger: Ledger, signed_by: str, reason: str) -> None:
    """Lower every limit of a ledger to the spending that it records: lost charges may have spent all that seems to be
    left.

    What people have spent is private, so their limit is lowered to almost 0.
    """
    for account in ledger.accounts():
        if account.limit is None or (account.kind == "analyst" and not account.name):
            continue
        of_people, owner = account.kind == "people", account.owner
        if of_people:  # through any of the datasets that share them
            owner = next(a.owner for a in ledger.accounts() if a.kind == "dataset" and a.population == account.owner)
        limit = account.spent if account.spent is not None and not of_people else _ALMOST_ZERO[account.unit]
        analyst = account.name if account.kind == "analyst" else None
        ledger.change_limit(
            owner, limit, signed_by=signed_by, reason=reason, analyst=analyst, each_person=of_people
        )  # fmt: skip


def _restore_database(manifest: Manifest, source: Path, target: str, stamp: str) -> Restored:
    """Restore the server's database unless it can be read; sessions, links and tokens in it are ended.

    ``manifest`` names the copy in the folder ``source``, ``target`` is the address of the database, and ``stamp``
    becomes part of the names of replaced files. Pending changes are voided, since approvals may have been lost.
    """
    path = Path(target)
    if _is_sound(path):
        return Restored(DATABASE, "kept")
    for ending in ("", "-wal", "-shm", "-journal"):
        if os.path.lexists(f"{path}{ending}"):
            os.replace(f"{path}{ending}", f"{path}{ending}.replaced-{stamp}")
    write_durably(path, (source / manifest.database).read_bytes())
    with closing(Store(target)) as store:
        now, changes = time.time(), schema.changes
        restored = {"at": now, "user": "restore", "action": "restore", "subject": manifest.at, "outcome": "done"}
        store.run(
            schema.sessions.delete(),
            schema.links.delete(),
            schema.card_signatures.delete(),
            schema.tokens.update().where(schema.tokens.c.revoked_at.is_(None)).values(revoked_at=now),
            changes.update().where(changes.c.state == "pending").values(state="void"),
            schema.events.insert().values(**restored, detail=""),
        )
    return Restored(DATABASE, "restored")


def _is_sound(path: Path) -> bool:
    """Return whether a file is a readable database of the server without errors."""
    if not path.is_file() or not path.stat().st_size:
        return False
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=120)) as connection:
            sound: bool = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
            connection.execute(str(sa.select(schema.about)))
    except sqlite3.Error:
        return False
    return sound


# -- files ------------------------------------------------------------------------------------------------------------


def _hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
