"""A history that was edited, and accounts that were, are found out: with the triggers gone, on the raw database.

The history: all of it, in pages, in its order whatever the clock says.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import dither as dp
from dither.ledger import chain
from dither.ledger.store import LedgerStore
from support import refuses

pytestmark = pytest.mark.slow

Ledger = dp.ledger.Ledger
Receipt = dp.ledger.Receipt
TABLES = ("dither_entry", "dither_account", "dither_person")


class Raw:
    """The database itself, whoever it belongs to."""

    def __init__(self, place: str) -> None:
        self.server = "://" in place
        self._connection: Any = (
            psycopg.connect(place, autocommit=True) if self.server else sqlite3.connect(place, isolation_level=None)
        )

        self.run("SET synchronous_commit = off" if self.server else "PRAGMA synchronous = OFF")
        if not self.server:
            self.run("PRAGMA journal_mode = PERSIST")  # a journal that is gone would have everything verified

    def run(self, statement: str, *values: object) -> list[Any]:
        cursor = self._connection.execute(statement.replace("?", "%s") if self.server else statement, values)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        self._connection.close()

    def disarm(self, patch: pytest.MonkeyPatch) -> None:
        """Without the triggers, and with nobody to see that they are missing."""
        patch.setattr(LedgerStore, "check_shape", lambda _: None)
        if self.server:
            self.run("DROP TRIGGER dither_append_only ON dither_entry")
            self.run("DROP TRIGGER dither_no_truncate ON dither_entry")
        else:
            for name in ("dither_no_update", "dither_no_delete", "dither_no_replace"):
                self.run(f"DROP TRIGGER {name}")

    def columns(self, table: str) -> list[str]:
        cursor = self._connection.execute(f"SELECT * FROM {table}")
        return [column[0] for column in cursor.description]

    @contextmanager
    def undone(self) -> Iterator[None]:
        """What is done inside is put right afterwards."""
        held = {table: self.run(f"SELECT * FROM {table}") for table in TABLES}
        try:
            yield
        finally:
            for table, rows in held.items():
                self.run(f"DELETE FROM {table}")
                for row in rows:
                    self.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)


@pytest.fixture
def raw(place: str) -> Iterator[Raw]:
    result = Raw(place)
    yield result
    result.close()


def other(value: Any) -> Any:
    """Something else of the same type."""
    if value is None:
        return None
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    return value + 1000 if isinstance(value, int) else value + "x"


def refused(ledger: Ledger, receipt: Receipt | None = None) -> bool:
    try:
        ledger.verify(receipt)
    except dp.LedgerError:
        return True
    return False


def test_every_edit_of_every_cell_is_found(written: Ledger, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    raw.disarm(monkeypatch)
    tried = 0
    for table in TABLES:
        names = raw.columns(table)
        keys = {"dither_entry": 1, "dither_account": 3, "dither_person": 1}[table]
        where = " AND ".join(f"{name} = ?" for name in names[:keys])
        for row in raw.run(f"SELECT * FROM {table}"):
            for name, value in zip(names, row, strict=True):
                new = other(value)
                if name in ("key", "charge", "answer", "limit_loss") and value is None:
                    new = {"key": "k", "charge": 3, "answer": b"1", "limit_loss": 7}[name]
                if new is None:
                    continue
                raw.run(f"UPDATE {table} SET {name} = ? WHERE {where}", new, *row[:keys])
                assert refused(written), (table, name, row)
                now = [new if key == name else old for key, old in zip(names[:keys], row, strict=False)]
                raw.run(f"DELETE FROM {table} WHERE {where}", *now)
                raw.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
                tried += 1
    assert tried > 130
    assert not refused(written), "everything was put right again"


@pytest.mark.parametrize("value", ["text", 1.5, b"bytes"])
def test_cells_of_another_type_are_found(tmp_path: Any, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite takes anything anywhere."""
    place = str(tmp_path / "budget.sqlite")
    with dp.ledger.open(place) as ledger:
        ledger.create("visits", limit=dp.PureDP(5), each_person=dp.PureDP(3))
        ledger.release("visits", dp.PureDP(0.5), lambda _: 1, key="june", people=["ann"])
        raw = Raw(place)
        raw.disarm(monkeypatch)
        for table in TABLES:
            for name in raw.columns(table):
                if name == "seq":
                    continue
                with raw.undone():
                    try:
                        raw.run(f"UPDATE {table} SET {name} = ?", value)
                    except sqlite3.IntegrityError:
                        continue  # it has to be unique
                    if value == 1.5 and name in ("loss", "delta"):
                        raw.run(f"UPDATE {table} SET {name} = {name} + 1")
                    assert refused(ledger), (table, name)
                    for read in (ledger.accounts, lambda: list(ledger.history()), lambda: ledger.head):
                        try:
                            read()
                        except dp.LedgerError:
                            continue
        raw.close()


def test_rows_that_are_missing_swapped_or_new_are_found(
    written: Ledger, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw.disarm(monkeypatch)
    head = written.head
    for seq in range(1, 12):
        with raw.undone():
            raw.run("DELETE FROM dither_entry WHERE seq = ?", seq)
            assert refused(written), seq
    with raw.undone():
        raw.run("DELETE FROM dither_entry WHERE seq >= 10")
        assert refused(written, head)
    for first, second in ((1, 2), (3, 5), (4, 6), (10, 11)):
        with raw.undone():
            for old, new in ((first, -1), (second, first), (-1, second)):
                raw.run("UPDATE dither_entry SET seq = ? WHERE seq = ?", new, old)
            assert refused(written), (first, second)
    with raw.undone():
        raw.run(
            "INSERT INTO dither_entry SELECT 12, at, 'charge', dataset, 'new', NULL, body, NULL, hash "
            "FROM dither_entry WHERE seq = 11"
        )
        assert refused(written)
    for table in ("dither_account", "dither_person"):
        for i, row in enumerate(raw.run(f"SELECT * FROM {table}")):
            keys = 3 if table == "dither_account" else 1
            where = " AND ".join(f"{name} = ?" for name in raw.columns(table)[:keys])
            with raw.undone():
                raw.run(f"DELETE FROM {table} WHERE {where}", *row[:keys])
                assert refused(written), (table, i)
    with raw.undone():
        name = bytes(16)
        raw.run("INSERT INTO dither_person SELECT ?, population, 1, 0 FROM dither_person LIMIT 1", name)
        assert refused(written)
    with raw.undone():
        people = raw.run("SELECT who, loss FROM dither_person ORDER BY loss")
        (poor, few), (rich, many) = people[0], people[-1]
        assert few != many
        raw.run("UPDATE dither_person SET loss = ? WHERE who = ?", many, poor)
        raw.run("UPDATE dither_person SET loss = ? WHERE who = ?", few, rich)
        assert refused(written), "two people who swapped accounts"
    assert not refused(written, head)


def test_an_entry_of_another_course_of_events_does_not_fit(
    ledger: Ledger, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written by this ledger under the same number, after another entry than the one that is there now."""
    ledger.create("visits", limit=dp.PureDP(5))
    raw.disarm(monkeypatch)
    with raw.undone():
        ledger.release("visits", dp.PureDP(0.5), lambda: 1, key="june")
        [old] = raw.run("SELECT * FROM dither_entry WHERE seq = 3")
    ledger.release("visits", dp.PureDP(0.5), lambda: 2, key="june")
    assert not refused(ledger)
    raw.run("DELETE FROM dither_entry WHERE seq = 3")
    raw.run(f"INSERT INTO dither_entry VALUES ({', '.join('?' * len(old))})", *old)
    assert refused(ledger)


def test_an_answer_cut_off_at_the_end_needs_the_receipt(
    ledger: Ledger, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was charged adds up without it; whoever kept the receipt of the answer knows."""
    ledger.create("visits", limit=dp.PureDP(1))
    receipt = ledger.release("visits", dp.PureDP(0.5), lambda: 1, key="june").receipt
    raw.disarm(monkeypatch)
    raw.run("DELETE FROM dither_entry WHERE seq = 3")
    assert not refused(ledger)
    assert refused(ledger, receipt)
    with refuses(dp.LedgerError, "receipt"):
        ledger.expect(receipt)


def test_a_changed_checksum_is_found_at_the_next_charge(written: Ledger, raw: Raw) -> None:
    raw.run("UPDATE dither_account SET checksum = checksum + 1 WHERE kind = 'people'")
    with refuses(dp.LedgerError, "people's accounts"):
        written.charge("visits", dp.PureDP(0.1), analyst="bob", people=["new"])
    assert refused(written)


def test_peoples_accounts_that_were_put_back_are_found_even_after_further_charges(written: Ledger, raw: Raw) -> None:
    """Saved, charged, put back, charged again: the seals no longer follow each other."""
    held = raw.run("SELECT who, loss, delta FROM dither_person")
    before = raw.run("SELECT checksum, sealed FROM dither_account WHERE kind = 'people'")[0]
    written.charge("visits", dp.PureDP(0.1), analyst="bob", people=["ann"])
    for who, epsilon, delta in held:
        raw.run("UPDATE dither_person SET loss = ?, delta = ? WHERE who = ?", epsilon, delta, who)
    raw.run("UPDATE dither_account SET checksum = ?, sealed = ? WHERE kind = 'people'", *before)
    assert refused(written)
    written.charge("visits", dp.PureDP(0.1), analyst="bob", people=["ann"])
    assert refused(written)


def rewritten(raw: Raw, key: bytes, seq: int, change: Callable[[dict[str, Any]], object]) -> None:
    """What somebody does who knows how hashes are made: change one entry, and every hash from there on."""
    before = chain.START if seq == 1 else bytes(raw.run("SELECT hash FROM dither_entry WHERE seq = ?", seq - 1)[0][0])
    for row in raw.run("SELECT * FROM dither_entry WHERE seq >= ? ORDER BY seq", seq):
        entry = chain.entry_of(row)
        text = entry.text
        if entry.seq == seq:
            body = entry.body
            change(body)
            text = chain.canonical(body)
        fields = [entry.seq, entry.at, entry.kind, entry.dataset, entry.key, entry.charge, text]
        answer = None if entry.answer is None else hashlib.sha256(entry.answer).hexdigest()
        message_bytes = before + chain.canonical([*fields, answer]).encode()
        before = hmac.new(key, message_bytes, "sha256").digest() if key else hashlib.sha256(message_bytes).digest()
        raw.run("UPDATE dither_entry SET body = ?, hash = ? WHERE seq = ?", text, before, entry.seq)


def raised(body: dict[str, Any]) -> None:
    """A larger limit, from the beginning."""
    for account in body["accounts"]:
        account["limit"]["numbers"][0] = "9"


def test_without_the_secret_nobody_rewrites_history(written: Ledger, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hash made anew, as anybody can who may write the database; every account made to fit."""
    raw.disarm(monkeypatch)
    with raw.undone():
        rewritten(raw, written._store.secret.chain, 2, lambda _: None)
        assert not refused(written), "with the secret, this is how it is done"
    for key in (b"", bytes(32), KEY_OF_SOMEBODY):
        for seq, change in ((1, raised), (3, lambda body: body.__setitem__("asked", '"nothing"'))):
            with raw.undone():
                rewritten(raw, key, seq, change)
                raw.run("UPDATE dither_account SET limit_loss = 9000000000000000 WHERE kind = 'dataset'")
                assert refused(written), (key, seq)


KEY_OF_SOMEBODY = bytes(range(1, 33))


def test_one_population_is_not_put_back_without_the_secret(
    ledger: Ledger, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that mentions it in database and history, all hashes made anew."""
    raw.disarm(monkeypatch)
    ledger.create("visits", limit=dp.PureDP(9), each_person=dp.PureDP(9))
    ledger.charge("visits", dp.PureDP(1), people=["ann"])
    held = [raw.run("SELECT * FROM dither_person"), raw.run("SELECT * FROM dither_account")]
    ledger.charge("visits", dp.PureDP(1), people=["ann", "bob"])
    raw.run("DELETE FROM dither_person")
    raw.run("DELETE FROM dither_account")
    for table, rows in zip(("dither_person", "dither_account"), held, strict=True):
        for row in rows:
            raw.run(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)
    raw.run("UPDATE dither_account SET spent_loss = 2000000000000000 WHERE kind = 'dataset'")
    assert refused(ledger)
    rewritten(raw, b"", 3, lambda body: body.pop("people"))
    assert refused(ledger)


def test_a_limit_raised_in_place_is_found(written: Ledger, raw: Raw, place: str, secret: bytes) -> None:
    raw.run("UPDATE dither_account SET limit_loss = limit_loss * 10 WHERE kind = 'dataset'")
    assert refused(written)


TRIGGERS = {
    True: [
        "DROP TRIGGER dither_no_truncate ON dither_entry",
        "ALTER TABLE dither_entry DISABLE TRIGGER dither_append_only",
        "DROP INDEX dither_one_answer",
        "CREATE RULE sly AS ON UPDATE TO dither_account DO INSTEAD NOTHING",
    ],
    False: [
        "DROP TRIGGER dither_no_update",
        "DROP INDEX dither_one_answer",
        "CREATE TRIGGER sly AFTER UPDATE ON dither_account BEGIN UPDATE dither_account SET spent_loss = 0; END",
        "CREATE TRIGGER sly AFTER INSERT ON dither_person BEGIN DELETE FROM dither_person; END",
        "CREATE TABLE theirs (a)",
    ],
}


@pytest.mark.parametrize("number", range(5))
def test_triggers_that_were_dropped_or_added_are_noticed(
    written: Ledger, raw: Raw, place: str, secret: bytes, number: int
) -> None:
    result = TRIGGERS[raw.server]
    statement = result[number % len(result)]
    assert not refused(written)
    raw.run(statement)
    with refuses(dp.LedgerError, "triggers were changed"):
        written.verify()
    for read_only in (False, True):
        with refuses(dp.LedgerError, "triggers were changed"):
            dp.ledger.open(place, secret=secret, read_only=read_only)


def test_a_changed_answer_is_not_replayed(written: Ledger, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"key": "1", "analyst": "ann", "people": ["ann"]}
    cost = dp.ApproxDP(0.25, 1e-7)
    assert written.release("visits", cost, lambda _: 5, **asked).value == 1
    raw.disarm(monkeypatch)
    for change in ("answer = ?", "answer = ?, hash = hash"):
        with raw.undone():
            raw.run(f"UPDATE dither_entry SET {change} WHERE kind = 'answer' AND key = '1'", b"7")
            with refuses(dp.LedgerError, "changed"):
                written.release("visits", cost, lambda _: 5, **asked)
    with raw.undone():  # another's answer
        raw.run("DELETE FROM dither_entry WHERE kind = 'answer' AND key = '1'")
        raw.run("UPDATE dither_entry SET key = '1' WHERE kind = 'answer' AND key = '2'")
        with refuses(dp.LedgerError, "changed"):
            written.release("visits", cost, lambda _: 5, **asked)


def test_history_cannot_be_changed_by_mistake(written: Ledger, raw: Raw) -> None:
    entries = list(written.history())
    statements = [
        "UPDATE dither_entry SET at = 'x'",
        "UPDATE dither_entry SET answer = NULL WHERE seq = 4",
        "DELETE FROM dither_entry",
        "DELETE FROM dither_entry WHERE seq = 11",
    ]
    if raw.server:
        statements += ["TRUNCATE dither_entry", "TRUNCATE dither_entry, dither_account"]
    else:
        copy = "INSERT OR REPLACE INTO dither_entry SELECT"
        statements += [
            f"{copy} seq, at, kind, dataset, key, charge, body, x'32', hash FROM dither_entry WHERE seq = 4",
            f"{copy} 99, at, kind, dataset, key, charge, body, x'32', hash FROM dither_entry WHERE charge IS NOT NULL",
            f"{copy} 99, at, kind, dataset, key, charge, '', answer, hash FROM dither_entry WHERE key = '1' "
            "AND kind = 'answer'",
        ]
    for statement in statements:
        with pytest.raises((sqlite3.DatabaseError, psycopg.Error), match="append"):
            raw.run(statement)
    assert list(written.history()) == entries
    assert not refused(written)


def test_a_broken_end_is_found_at_once(
    written: Ledger, raw: Raw, place: str, secret: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw.disarm(monkeypatch)
    for statement in (
        "UPDATE dither_entry SET at = 'x' WHERE seq = 11",
        "DELETE FROM dither_entry WHERE seq = 10",
    ):
        with raw.undone():
            raw.run(statement)
            with refuses(dp.LedgerError, "entry 1"):
                dp.ledger.open(place, secret=secret)


def test_entries_and_pages(written: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(written.history())
    monkeypatch.setattr(chain, "_PAGE", 3)
    assert list(written.history()) == whole == list(written.history("visits"))
    assert list(written.history("deaths")) == []
    assert [entry.seq for entry in whole] == list(range(1, 12))
    assert all(isinstance(json.dumps(entry.body), str) for entry in whole)
    assert written.verify() == dp.ledger.Verified(11, whole[-1].receipt)


def test_history_is_read_a_little_at_a_time(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first entry is there after one page, whatever comes after it, and no more than a page is held at a time."""
    monkeypatch.setattr(chain, "_PAGE", 5)
    ledger.create("visits", limit=dp.PureDP(1))
    for i in range(30):
        ledger.charge("visits", dp.PureDP(0.01), key=f"{i}")
    real, read = LedgerStore.rows, []

    def counted(self: LedgerStore, *arguments: Any) -> list[Any]:
        result = real(self, *arguments)
        read.append(len(result))
        return result

    monkeypatch.setattr(LedgerStore, "rows", counted)
    entries = ledger.history()
    assert next(entries).seq == 1
    assert read == [5]
    ledger.charge("visits", dp.PureDP(0.01), key="meanwhile")  # who reads slowly holds nobody up
    read.clear()
    assert [entry.seq for entry in entries] == list(range(2, 33))
    assert max(read) == 5


def test_a_clock_that_goes_backwards_harms_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["2030", "1999", "1999", "0001"])
    monkeypatch.setattr(chain, "now", lambda: next(times))
    ledger.create("visits", limit=dp.PureDP(1))
    for i in range(3):
        ledger.charge("visits", dp.PureDP(0.1), key=f"{i}")
    assert [entry.at for entry in ledger.history()] == ["2030", "1999", "1999", "0001"]
    assert ledger.verify().entries == 4
