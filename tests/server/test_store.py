"""One contract for the server's database, on SQLite and on PostgreSQL."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from serving import fill

from dither.errors import InvalidArgument, LedgerError
from dither.server import schema
from dither.server.config import Config
from dither.server.service import Service
from dither.server.store import Store

USER = {"name": "ann", "display": "Ann", "roles": "analyst", "active": True, "created_at": 1.5}


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    return str(tmp_path / "s.sqlite") if request.param == "sqlite" else request.getfixturevalue("postgresql")


@pytest.fixture
def store(place):
    result = Store(place)
    yield result
    result.close()


def names(store):
    return [row.name for row in store.rows(sa.select(schema.users.c.name).order_by(schema.users.c.name))]


def test_what_is_written_is_read_also_by_the_next(store, place):
    store.run(schema.users.insert().values(**USER))
    other = Store(place)
    try:
        assert names(store) == names(other) == ["ann"]
        row = other.one(sa.select(schema.users))
        assert (row.active, row.created_at, row.password) == (True, 1.5, None)
        assert other.one(sa.select(schema.users).where(schema.users.c.name == "bob")) is None
    finally:
        other.close()


def test_a_transaction_is_whole_or_nothing(store):
    with pytest.raises(sa.exc.IntegrityError):
        store.run(schema.users.insert().values(**USER), schema.users.insert().values(**USER))
    assert names(store) == []
    with suppress(KeyError), store.writing() as connection:
        connection.execute(schema.users.insert().values(**USER))
        raise KeyError
    assert names(store) == []
    store.run(schema.users.insert().values(**USER))
    assert store.run(schema.users.update().where(schema.users.c.name == "bob").values(active=False)) == 0


def test_many_threads(store):
    def add(number):
        for i in range(10):
            store.run(schema.users.insert().values(**{**USER, "name": f"u{number}-{i}"}))
            assert f"u{number}-{i}" in names(store)

    threads = [threading.Thread(target=add, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names(store)) == 60


def test_of_two_who_settle_one_wins(store):
    store.run(schema.users.insert().values(**USER))
    update = schema.users.update().where(schema.users.c.active.is_(True)).values(active=False)
    assert [store.run(update), store.run(update)] == [1, 0]


def test_events_are_numbered(store):
    line = {"at": 0.0, "user": "x", "action": "y", "subject": "", "outcome": "done", "detail": ""}
    for _ in range(3):
        store.run(schema.events.insert().values(**line))
    ids = [row.id for row in store.rows(sa.select(schema.events.c.id).order_by(schema.events.c.id))]
    assert ids == sorted(set(ids))


def test_another_version_is_refused(store, place):
    store.run(schema.about.update().values(version=99))
    with pytest.raises(InvalidArgument, match="version"):
        Store(place)
    store.run(schema.about.update().values(version=schema.VERSION))


def test_its_file_is_its_owners(tmp_path):
    Store(str(tmp_path / "s.sqlite")).close()
    assert stat.S_IMODE(Path(tmp_path, "s.sqlite").stat().st_mode) == 0o600


def test_places_that_cannot_be_used(tmp_path):
    with pytest.raises(LedgerError):
        Store(str(tmp_path / "nowhere" / "s.sqlite"))
    with pytest.raises(InvalidArgument, match="SQLite or PostgreSQL"):
        Store("mysql://x/y")


def damaged_stores(tmp_path):
    """Files that are no database, or parts of one: what a disk, a copy that was cut off, or an editor leaves."""
    whole = tmp_path / "whole.sqlite"
    store = Store(str(whole))
    store.run(*(schema.users.insert().values(**{**USER, "name": f"u{i}" + "x" * 50}) for i in range(200)))
    store.close()
    content = whole.read_bytes()
    page = 4096
    yield "text", b"this is no database\n" * 300
    yield "cut off", content[: len(content) // 2 // page * page]
    yield "begins with zeros", bytes(page) + content[page:]
    yield "zeros inside", content[: 2 * page] + bytes(len(content) - 2 * page)
    yield "the last page", content[:-page] + b"\xff" * page
    yield "a part of a page", content[: 3 * page + 100]


def test_a_damaged_store_is_refused_in_a_sentence(tmp_path):
    for name, content in damaged_stores(tmp_path):
        (tmp_path / "s.sqlite").write_bytes(content)
        for left in tmp_path.glob("s.sqlite-*"):
            left.unlink()
        with pytest.raises(LedgerError, match=r"damaged or different file. Fix: restore it from a backup") as error:
            Store(str(tmp_path / "s.sqlite")).close()
        assert error.value.__cause__ is None, name


def test_a_server_with_a_damaged_store_prints_one_sentence(tmp_path):
    fill(tmp_path)
    (tmp_path / "dither-server.sqlite").write_bytes(b"this is no database\n" * 300)
    command = [sys.executable, "-m", "dither", "serve", str(tmp_path), "--port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode != 0
    assert "restore it from a backup" in result.stderr + result.stdout
    assert "Traceback" not in result.stderr + result.stdout


def test_a_second_server_on_the_same_folder_is_refused(tmp_path):
    """It would give up what the first has under way, and record incidents of charges that are then answered."""
    config = Config(folder=str(tmp_path), warm=False, workers=1)
    first = Service.start(config)
    (tmp_path / "again").symlink_to(tmp_path)
    try:
        for folder in (tmp_path, tmp_path / "again"):
            with pytest.raises(InvalidArgument, match="Another server"):
                Service.start(replace(config, folder=str(folder)))
        assert first.auth.first_link() is not None  # the first one goes on
    finally:
        first.stop()
    Service.start(config).stop()
