"""Backups: consistent while others write; a restore forgets no charge, puts no receipt back, and says what is lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest
import sqlalchemy as sa
from serving import PASSWORD, fill

import dither as dp
from dither.errors import DitherError, InvalidArgument, LedgerError
from dither.ledger import Receipt
from dither.ledger.chain import keep_receipt
from dither.server import schema
from dither.server.backup import backup, read_manifest, restore
from dither.server.config import Config
from dither.server.errors import NotSignedIn
from dither.server.service import Service
from dither.server.store import Store
from support import each

ANSWER = {
    "user": "ann", "dataset": "visits", "kind": "question", "request": "", "question": "", "options": "{}",
    "cost": "", "part": 0, "body": "", "at": 0.0, "title": "",
}  # fmt: skip


def config_of(folder):
    return Config(folder=str(folder), warm=False, workers=1)


@pytest.fixture
def served(tmp_path):
    """A folder that was served: with a steward, a token, and five charges."""
    folder = tmp_path / "cards"
    folder.mkdir()
    service = Service.start(config_of(fill(folder)))
    link = service.auth.first_link()
    session = service.auth.use_link(link.rpartition("/")[2], PASSWORD, "sam")
    sam = service.auth.principal_of_session(session)
    service.accounts.create_token(sam, "test", scopes=["audit"], days=1)
    service.stop()
    charge(folder, 5)
    return folder, session


def charge(folder, count, receipt=True):
    with dp.ledger.open(folder / "visits.sqlite", create=False) as ledger:
        for _ in range(count):
            ledger.release("visits", dp.PureDP(1), lambda: 1)
        if receipt:
            keep_receipt(folder / "visits.toml.receipt", ledger.head)
        return ledger.head.seq


def test_a_copy_is_consistent_while_others_write(served, tmp_path):
    """Answers are written to the database after the ledger: none is in a copy without its charge."""
    folder, _ = served
    stop = threading.Event()

    def write():
        ledger = dp.ledger.open(folder / "visits.sqlite", create=False)
        with ledger, closing(Store(str(folder / "dither-server.sqlite"))) as store:
            number = 0
            while not stop.is_set():
                number += 1
                released = ledger.release("visits", dp.PureDP(0.001), lambda: 1)
                row = {**ANSWER, "id": str(number), "receipt": str(released.receipt)}
                store.run(schema.answers.insert().values(**row))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            backup(config_of(folder), tmp_path / f"copy{number}", keys=tmp_path / "keys")
    finally:
        stop.set()
        writer.join()
    for number in range(3):
        place = tmp_path / f"restored{number}"
        place.mkdir()
        restore(config_of(place), tmp_path / f"copy{number}", keys=tmp_path / "keys")
        with closing(Store(str(place / "dither-server.sqlite"))) as store:
            known = [row.receipt for row in store.rows(sa.select(schema.answers.c.receipt))]
        with dp.ledger.open(place / "visits.sqlite", create=False) as ledger:
            ledger.verify()
            for receipt in known:
                ledger.expect(Receipt.read(receipt))
    assert known


def test_a_backup_is_for_its_owner_alone_and_whole(served, tmp_path):
    folder, _ = served
    manifest = backup(config_of(folder), tmp_path / "copy")
    assert [saved.place for saved in manifest.ledgers] == ["visits.sqlite"]
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "copy").iterdir()} == {0o600}
    assert not list((tmp_path / "copy").glob("*receipt*"))
    secret = (folder / "visits.sqlite.key").read_bytes().strip()
    assert not [path.name for path in (tmp_path / "copy").iterdir() if secret in path.read_bytes()]
    with pytest.raises(InvalidArgument, match="new folder"):
        backup(config_of(folder), tmp_path / "copy")
    (folder / "new.toml").write_text("[[[")
    with pytest.raises(InvalidArgument, match=r"new\.toml"):  # its ledger would be left out
        backup(config_of(folder), tmp_path / "second")
    assert not (tmp_path / "second").exists()
    (folder / "new.toml").unlink()
    (folder / "visits.toml").write_text("[[[")  # this one is known to the server
    assert backup(config_of(folder), tmp_path / "second").ledgers[0].place == "visits.sqlite"


@each("name", ["backup.json", "ledger-0.sqlite", "server.sqlite", "visits.toml"])
def test_a_backup_that_was_changed_is_refused(backed_up, tmp_path, name):
    shutil.copytree(backed_up, tmp_path / "copy")
    content = bytearray((tmp_path / "copy" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "copy" / name).write_bytes(content)
    with pytest.raises(InvalidArgument, match="as it was written"):
        read_manifest(tmp_path / "copy")


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory):
    folder = fill(tmp_path_factory.mktemp("cards"))
    Service.start(config_of(folder)).stop()
    backup(config_of(folder), folder.parent / "kept-copy", keys=folder.parent / "kept-keys")
    return folder.parent / "kept-copy"


def test_names_that_lead_elsewhere_are_refused(backed_up, tmp_path):
    shutil.copytree(backed_up, tmp_path / "copy")
    manifest = json.loads((tmp_path / "copy/backup.json").read_bytes())
    manifest["files"].append("../outside.toml")
    (tmp_path / "copy/backup.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidArgument, match="as it was written"):
        read_manifest(tmp_path / "copy")


def remove(folder, *endings):
    for ending in endings or ("", "-journal"):
        (folder / f"visits.sqlite{ending}").unlink(missing_ok=True)


def test_a_ledger_that_forgot_charges_is_refused_until_the_loss_is_accepted(served, tmp_path):
    folder, _ = served
    backup(config_of(folder), tmp_path / "copy")
    charge(folder, 3)
    kept = (folder / "visits.toml.receipt").read_bytes()
    remove(folder)
    found = {item.what: item for item in restore(config_of(folder), tmp_path / "copy")}
    ledger = found["visits.sqlite"]
    assert (ledger.outcome, ledger.entry, ledger.lost, ledger.refused) == ("restored", 11, 6, True)
    assert (folder / "visits.toml.receipt").read_bytes() == kept  # never put back
    assert found["the server's database"].outcome == "kept"
    with pytest.raises(LedgerError):
        Service.start(config_of(folder))
    with pytest.raises(InvalidArgument, match="--signed-by"):
        restore(config_of(folder), tmp_path / "copy", accept_loss=True)
    [ledger] = [
        item
        for item in restore(config_of(folder), tmp_path / "copy", accept_loss=True, signed_by="sam", reason="a fire")
        if item.what == "visits.sqlite"
    ]
    assert (ledger.lost, ledger.refused) == (6, False)
    service = Service.start(config_of(folder))
    try:
        restored = service.context.folder.ledger("visits")
        assert restored.left("visits") is None  # all may have been spent
        last = [entry for entry in restored.history("visits") if entry.kind == "limit"][-1]
        assert last.body["signed_by"] == "sam"
        assert "a fire" in last.body["reason"]
    finally:
        service.stop()
    assert [path.read_bytes() for path in folder.glob("visits.toml.receipt.entry-*")] == [kept]


def test_accounts_of_people_and_analysts_are_closed_as_well(tmp_path):
    (tmp_path / "cards").mkdir()
    folder = fill(tmp_path / "cards")
    text, budget = (folder / "visits.toml").read_text(), 'epsilon = 10\nper = "person"\neach_analyst = 5'
    (folder / "visits.toml").write_text(text.replace("epsilon = 1000", budget))
    Service.start(config_of(folder)).stop()
    backup(config_of(folder), tmp_path / "copy")
    with dp.ledger.open(folder / "visits.sqlite", create=False) as ledger:
        ledger.release("visits", dp.PureDP(1), lambda _: 1, people=[1, 2], analyst="ann")
        keep_receipt(folder / "visits.toml.receipt", ledger.head)
    remove(folder)
    restore(config_of(folder), tmp_path / "copy", accept_loss=True, signed_by="sam", reason="a fire")
    with dp.ledger.open(folder / "visits.sqlite", create=False) as ledger:
        with pytest.raises(dp.BudgetExceeded):
            ledger.charge("visits", dp.PureDP(1e-4), people=[3], analyst="bob")
        ledger.verify()


def test_what_is_sound_and_newer_stays(served, tmp_path):
    folder, session = served
    backup(config_of(folder), tmp_path / "copy")
    head = charge(folder, 3)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".key", ".toml", ".receipt")}
    found = {item.what: item for item in restore(config_of(folder), tmp_path / "copy")}
    assert {item.outcome for item in found.values()} == {"kept"}
    assert not found["visits.sqlite"].refused
    assert {name: (folder / name).read_bytes() for name in before} == before
    with dp.ledger.open(folder / "visits.sqlite", create=False) as ledger:
        assert ledger.head.seq == head
    service = Service.start(config_of(folder))
    assert service.auth.principal_of_session(session).name == "sam"
    service.stop()


@each("damage", ["cut", "zeroed", "other", "journal", "key"])
def test_what_is_damaged_is_put_aside_and_restored(backed_up, tmp_path, damage):
    folder, keys = tmp_path / "cards", backed_up.with_name("kept-keys")
    folder.mkdir()
    with pytest.raises(InvalidArgument, match="--keys"):
        restore(config_of(folder), backed_up)
    restore(config_of(folder), backed_up, keys=keys)
    ledger = folder / "visits.sqlite"
    content = ledger.read_bytes()
    match damage:
        case "cut":
            ledger.write_bytes(content[:5000])
        case "zeroed":
            ledger.write_bytes(content[:4096] + bytes(len(content) - 4096))
        case "other":
            remove(folder, "", ".key", "-journal")
            with dp.ledger.open(ledger) as fresh:
                fresh.create("visits", limit=dp.PureDP(1000))
        case "journal":  # of another file: it would be rolled back into the copy
            ledger.unlink()
            (folder / "visits.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(2000))
        case "key":
            (folder / "visits.sqlite.key").write_text("ab" * 32)
    [found] = [item for item in restore(config_of(folder), backed_up, keys=keys) if item.what == "visits.sqlite"]
    outcome = "kept" if damage == "key" else "restored"  # a sound ledger that lacks its key is not replaced
    assert (found.outcome, found.lost, found.refused) == (outcome, 0, False)
    assert list(folder.glob("visits.sqlite*.replaced-*"))
    Service.start(config_of(folder)).stop()


def test_nobody_is_signed_in_on_a_restored_database(served, tmp_path):
    folder, session = served
    backup(config_of(folder), tmp_path / "copy")
    for ending in ("", "-wal", "-shm"):
        (folder / f"dither-server.sqlite{ending}").unlink(missing_ok=True)
    [database] = [item for item in restore(config_of(folder), tmp_path / "copy") if item.what.startswith("the server")]
    assert database.outcome == "restored"
    service = Service.start(config_of(folder))
    try:
        with pytest.raises(NotSignedIn):
            service.auth.principal_of_session(session)
        assert service.auth.sign_in("sam", PASSWORD)
        store = service.context.store
        assert all(row.revoked_at for row in store.rows(sa.select(schema.tokens)))
    finally:
        service.stop()


def test_nothing_is_restored_under_a_running_server(served, tmp_path):
    folder, _ = served
    service = Service.start(config_of(folder))
    try:
        backup(config_of(folder), tmp_path / "copy")  # but it may be copied
        with pytest.raises(InvalidArgument, match="Another server"):
            restore(config_of(folder), tmp_path / "copy")
    finally:
        service.stop()


def test_a_database_of_postgresql_is_named_and_not_copied(served, tmp_path):
    folder, _ = served
    config = Config(folder=str(folder), database="postgresql://h/d")
    assert backup(config, tmp_path / "copy").elsewhere == ("the server's database",)


def test_errors_are_of_one_tree(served, tmp_path):
    folder, _ = served
    with pytest.raises(DitherError):
        backup(config_of(folder), tmp_path / "nowhere" / "copy")
    with closing(sqlite3.connect(folder / "visits.sqlite")) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE type = 'trigger'")
        connection.commit()
    with pytest.raises(DitherError):
        backup(config_of(folder), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
