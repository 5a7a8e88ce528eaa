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


@pytest.fixture
def written(ledger: dp.ledger.Ledger) -> dp.ledger.Ledger:
    """A ledger with every kind of entry and account."""
    ledger.create(
        "visits", limit=dp.ApproxDP(5, 1e-6), each_analyst=dp.ApproxDP(4, 1e-6), each_person=dp.ApproxDP(3, 1e-6)
    )
    for i, cost in enumerate((dp.PureDP(0.5), dp.ApproxDP(0.25, 1e-7), dp.PureDP(1))):
        column = ["ann", "bob", "eve"][: i + 1]
        ledger.release("visits", cost, lambda _, i=i: i, key=f"{i}", analyst="ann", people=column)
    ledger.change_limit("visits", dp.ApproxDP(6, 1e-6), signed_by="board", reason="vote")
    ledger.charge("visits", dp.PureDP(0.5), analyst="bob", people=["ann"])
    assert ledger.verify().entries == 11
    return ledger
