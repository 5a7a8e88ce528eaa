"""Acknowledged means on disk: the settings that promise it, on the very connection that is used."""

from __future__ import annotations

from pathlib import Path

import pytest
from throwaway import Server
from work import charged, opened

import dither as dp
from support import refuses

pytestmark = pytest.mark.slow


def test_sqlite_writes_through(tmp_path: Path) -> None:
    with opened(str(tmp_path / "budget.sqlite")) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        for _ in range(2):
            charged(ledger, "visits", "1/10", 1)
            run = ledger._store._driver().execute
            assert run("PRAGMA synchronous").fetchone() == (2,)  # FULL
            assert run("PRAGMA journal_mode").fetchone() == ("persist",)
            assert run("PRAGMA fullfsync").fetchone() == (1,)
            ledger.close()  # and on the next connection as well


def test_postgresql_writes_through(server: Server, postgresql: str) -> None:
    name = postgresql.split("?")[0].rsplit("/", 1)[1]
    with opened(postgresql) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
    server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with opened(postgresql) as ledger:
        charged(ledger, "visits", "1/10", 1)
        run = ledger._store._driver().execute
        assert run("SHOW synchronous_commit").fetchone() == ("on",)
        assert run("SHOW fsync").fetchone() == ("on",)


@pytest.mark.slow
def test_a_server_that_does_not_write_through_is_refused() -> None:
    server = Server(fsync="off")
    try:
        with refuses(dp.LedgerError, "fsync = off"):
            dp.ledger.open(server.fresh(), secret=bytes(32))
    finally:
        server.stop()
