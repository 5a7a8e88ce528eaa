"""Where a ledger lives: what is no ledger is refused and left alone, versions go up once, and nothing is shown."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import stat
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

import dither as dp
from dither.ledger import chain, schema, store
from support import each, refuses

Ledger = dp.ledger.Ledger
PASSWORD = "hunter2-hunter2"


def test_a_ledger_is_made_once_and_found_again(place: str, secret: bytes) -> None:
    with refuses(dp.LedgerError):
        dp.ledger.open(place, secret=secret, create=False)
    with refuses(dp.LedgerError):
        dp.ledger.open(place, secret=secret, read_only=True)
    with dp.ledger.open(place, secret=secret) as ledger:
        assert ledger.created
        ledger.create("visits", limit=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(0.5))
    for create in (True, False):
        with dp.ledger.open(place, secret=secret, create=create) as again:
            assert again.left("visits") == dp.PureDP(0.5)
            assert not again.created


def test_ledgers_of_a_process_share_the_texts_that_sqlite_of_each_would_get(tmp_path: Path) -> None:
    with dp.ledger.open(tmp_path / "one.sqlite") as one, dp.ledger.open(tmp_path / "two.sqlite") as two:
        for ledger in (one, two):
            ledger.create("visits", limit=dp.PureDP(1))
            ledger.charge("visits", dp.PureDP(0.5))
        shared = [item for key, item in one._store._compiled.items() if two._store._compiled.get(key) is item]
        assert len(shared) == len(one._store._compiled) >= 8
        for item in shared:
            assert item == store._compiled(item.statement, two._store.engine.dialect)


def test_a_file_is_its_owners_only(tmp_path: Path) -> None:
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", each_person=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(0.5), people=["ann"])
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def _foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()


FILES: dict[str, Callable[[Path], Any]] = {
    "foreign": _foreign,
    "text": lambda path: path.write_text("dear diary, " * 1000),
    "empty": lambda path: path.touch(),
    "short": lambda path: path.write_text("x"),  # SQLite takes this for an empty file
    "started": lambda path: path.write_bytes(b"S"),
    "cut": lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(3)),
    "header": lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(500)),
    "folder": lambda path: path.mkdir(),
}


@each("kind", FILES)
@each("create", [True, False])
def test_what_is_no_ledger_is_refused_and_left_as_it_is(tmp_path: Path, kind: str, create: bool) -> None:
    path = tmp_path / "budget.sqlite"
    FILES[kind](path)
    before = path.read_bytes() if path.is_file() else None
    with refuses(dp.LedgerError):
        dp.ledger.open(path, create=create)
    assert before is None or path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_torn_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "budget.sqlite"
    with dp.ledger.open(path) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        for i in range(20):
            ledger.release("visits", dp.PureDP(0.01), lambda: "x" * 5000, key=f"{i}")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with refuses(dp.LedgerError), dp.ledger.open(path) as ledger:
        ledger.verify()


WRONG_PLACES: list[Any] = [
    f"mysql://ann:{PASSWORD}@host/db", f"postgresql://ann:{PASSWORD}@host:port/db", f"oracle+x://ann:{PASSWORD}@h",
    f"postgresql+psycopg2://ann:{PASSWORD}@h/d", f"postgresql+asyncpg://ann:{PASSWORD}@h/d", "://", "x://",
    "sqlite+aiosqlite:///budget.sqlite",
    ":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file:budget?mode=memory&uri=true",
    "", "a\0b", "sqlite:///a\0b", None, 5, b"budget.sqlite", ["budget.sqlite"], object(),
]  # fmt: skip
MISSING: list[str] = ["no folder/budget.sqlite", "x" * 5000, "file/budget.sqlite"]


def test_other_places_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for place in WRONG_PLACES:
        with pytest.raises((dp.InvalidArgument, dp.WrongType), match="place") as error:
            dp.ledger.open(place)
        assert PASSWORD not in "".join(traceback.format_exception_only(error.value))
    for place in MISSING:
        with refuses(dp.LedgerError):
            dp.ledger.open(place)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


def test_places_have_several_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "budget ü.sqlite"
    with dp.ledger.open(path) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
    for place in (str(path), Folder(path), path.name, Path(path.name), f"sqlite:///{path}", f"sqlite:///{path.name}"):
        with dp.ledger.open(place, create=False) as ledger:
            assert ledger.left("visits") == dp.PureDP(1)


def test_a_relative_place_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is found again, and its secret beside it, when the process goes elsewhere."""
    monkeypatch.delenv("DITHER_LEDGER_KEY", raising=False)
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    monkeypatch.chdir(home)
    ledger = dp.ledger.open("budget.sqlite")
    ledger.create("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
    monkeypatch.chdir(away)
    ledger.charge("visits", dp.PureDP(0.5), people=["ann"])
    ledger.close()
    assert ledger.left("visits") == dp.PureDP(0.5)
    ledger.close()
    assert list(away.iterdir()) == []
    assert {file.name for file in home.iterdir()} >= {"budget.sqlite", "budget.sqlite.key"}


def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    url = store._address(f"postgresql://ann:{PASSWORD}@host/db")
    assert PASSWORD not in repr(url)
    with refuses(dp.LedgerError) as error:
        dp.ledger.open(f"postgresql://ann:{PASSWORD}@127.0.0.1:1/db", secret=bytes(32))
    shown = "".join(traceback.format_exception(error.value))
    assert PASSWORD not in shown


def test_what_a_ledger_prints(ledger: Ledger, place: str) -> None:
    assert repr(ledger).startswith("Ledger('")
    assert "Secret" not in repr(ledger)


def _version(ledger: Ledger, value: str) -> None:
    with ledger._store.engine.begin() as connection:
        connection.execute(schema.about.update().where(schema.about.c.name == "version").values(value=value))
        if ledger._store.dialect == "postgresql":
            connection.commit()


def test_other_versions(ledger: Ledger, place: str, secret: bytes) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    for version, sign in (("3", "version 3"), ("1", "version 1"), ("-1", "version"), ("x", "read")):
        _version(ledger, version)
        with pytest.raises(dp.LedgerError, match=sign):
            dp.ledger.open(place, secret=secret)
    _version(ledger, "2")
    dp.ledger.open(place, secret=secret).close()


def test_a_ledger_is_opened_where_it_is_used(ledger: Ledger) -> None:
    for carry in (pickle.dumps, copy.copy, copy.deepcopy):
        with refuses(dp.WrongType, "open it again"):
            carry(ledger)


def test_a_closed_ledger_opens_itself_again(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    with ledger as same:
        assert same is ledger
        same.charge("visits", dp.PureDP(0.5))
    ledger.close()
    ledger.close()
    assert ledger.left("visits") == dp.PureDP(0.5)
    with pytest.raises(ZeroDivisionError), ledger:
        raise ZeroDivisionError
    assert ledger.verify().entries == 2


def test_an_error_inside_a_transaction_takes_everything_back(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    head = ledger.head

    def half() -> None:
        with ledger._store.transaction():
            chain.append(ledger._store, "open", "deaths", {"accounts": []})
            raise RuntimeError("the power went out")

    with pytest.raises(RuntimeError, match="power"):
        half()
    assert ledger.head == head
    ledger.charge("visits", dp.PureDP(1))
    assert ledger.verify().entries == 2


def test_an_error_in_one_thread_waits_for_the_transaction_of_another(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever drops the connection after an error must not pull it from under somebody else's transaction: the
    rest of that would be written piece by piece, a charge without its sum. So it is dropped by whoever holds it.
    """
    ledger.create("visits", limit=dp.PureDP(1))
    own, held = ledger._store, []
    forget = own._forget

    def look() -> None:
        free = own._lock.acquire(blocking=False)
        held.append(not free)
        if free:
            own._lock.release()

    def watched() -> None:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(60)
        forget()

    monkeypatch.setattr(own, "_forget", watched)
    nonsense = sa.text("SELECT nonsense FROM nowhere")
    with refuses(dp.LedgerError):
        own.rows(nonsense)
    with refuses(dp.LedgerError), own.transaction():
        own.run(nonsense).fetchall()
    with refuses(dp.LedgerError), own.snapshot():
        own.run(nonsense).fetchall()
    assert held == [True, True, True]
    ledger.charge("visits", dp.PureDP(1))
    assert ledger.verify().entries == 2


def test_history_and_people_have_their_tables(ledger: Ledger) -> None:
    with ledger._store.engine.connect() as connection:
        names = set(sa.inspect(connection).get_table_names())
    assert names == {"dither_about", "dither_account", "dither_entry", "dither_person", "dither_series"}


def test_what_the_database_says_is_part_of_the_error(tmp_path, monkeypatch):
    """The cause is nowhere else to be seen: a command line shows one line. Statements and their values stay out."""
    import sqlite3

    from dither.ledger.store import LedgerStore

    with dp.ledger.open(tmp_path / "ledger.sqlite") as ledger:

        def odd(*_):
            raise sqlite3.InterfaceError("the driver is confused\n[SQL: secret]")

        monkeypatch.setattr(LedgerStore, "_driver", odd)
        with refuses(dp.LedgerError, "InterfaceError from the database: the driver is confused") as caught:
            ledger.create("d", limit=dp.PureDP(1))
        assert "secret" not in str(caught.value)
        assert "above" not in str(caught.value)


def test_a_connection_that_the_server_has_ended_is_opened_anew(postgresql: str) -> None:
    with dp.ledger.open(postgresql, secret=bytes(32)) as ledger, psycopg.connect(postgresql, autocommit=True) as other:
        ledger.create("visits", limit=dp.PureDP(1))
        pid = ledger._store._driver().info.backend_pid
        for work in (lambda: ledger.charge("visits", dp.PureDP(0.25)), lambda: ledger.accounts("visits")):
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
            work()
            assert ledger._store._driver().info.backend_pid != pid
            pid = ledger._store._driver().info.backend_pid
        assert len(list(ledger.history("visits"))) == 2
