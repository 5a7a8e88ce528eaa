"""Where the ledgers of these tests live: a SQLite file, and a database on a PostgreSQL server started for the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dither as dp

sys.path.insert(0, str(Path(__file__).parent / "survive"))

from throwaway import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One for each worker, started by the first test that wants it."""
    result = Server()
    yield result
    result.stop()


@pytest.fixture
def postgresql(server: Server) -> Iterator[str]:
    """A fresh database."""
    place = server.fresh()
    yield place
    server.drop(place)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where there is no ledger yet."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.sqlite")
    result: str = request.getfixturevalue("postgresql")
    return result


@pytest.fixture
def secret() -> bytes:
    """For the accounts of people."""
    return bytes(range(32))


@pytest.fixture
def ledger(place: str, secret: bytes) -> Iterator[dp.ledger.Ledger]:
    """A new ledger."""
    with dp.ledger.open(place, secret=secret) as result:
        yield result
