"""A long history: opening and charging take as many steps as with a short one, or a few more."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from work import opened

import dither as dp
from dither.ledger import chain, schema
from dither.ledger.accounts import LOSS_UNIT
from dither.ledger.recorded import canonical
from dither.ledger.store import LedgerStore

pytestmark = pytest.mark.slow

SMALL, LARGE = 10**3, 10**5
"""A statement that reads the whole history takes a hundred times as many steps for the large one; allowed are three."""
SERVED = 10**4
COST = LOSS_UNIT // 10**7


def history(store: LedgerStore, head: dp.ledger.Receipt, count: int) -> Iterator[tuple[Any, ...]]:
    """So many more charges, as they would have been written: the same chain, made without the checks."""
    before, at = bytes.fromhex(head.hash), chain.now()
    told = {"filter": "sum", "kind": "PureDP", "numbers": ["1/10000000"]}
    body = {"asked": "null", "charged": [["visits", "dataset", "", COST, 0]], "cost": told, "request": "0" * 64}
    text = canonical(body)
    for seq in range(head.seq + 1, head.seq + 1 + count):
        key = f"old {seq}"
        before = chain._digest(store, before, (seq, at, "charge", "visits", key, None, text), None)
        yield seq, at, "charge", "visits", key, None, text, None, before


def grown(place: str, count: int) -> None:
    """A ledger with so many charges."""
    with opened(place) as ledger:
        head = ledger.create("visits", limit=dp.PureDP(1))
    rows, spent = history(ledger._store, head, count), f"UPDATE dither_account SET spent_loss = {COST * count}"
    if "://" in place:
        with psycopg.connect(place) as server, server.cursor() as cursor:
            with cursor.copy("COPY dither_entry FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            cursor.execute(spent.encode())
            server.commit()
            server.autocommit = True
            cursor.execute("ANALYZE")
        return
    with closing(sqlite3.connect(place)) as file:
        file.execute("PRAGMA journal_mode = PERSIST")
        file.executemany("INSERT INTO dither_entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        file.execute(spent)
        file.commit()


def used(ledger: dp.ledger.Ledger) -> None:
    """One of everything that happens every day."""
    key = f"new {ledger.head.seq}"
    ledger.release("visits", dp.PureDP(1e-7), lambda: 1, key=key)
    ledger.release("visits", dp.PureDP(1e-7), lambda: 2, key=key)
    ledger.expect(ledger.charge("visits", dp.PureDP(1e-7)).receipt)
    ledger.left("visits")


def steps(place: str, work: Callable[[dp.ledger.Ledger], Any]) -> int:
    """How many steps of its machine SQLite takes for it."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    with opened(place) as ledger:
        ledger._store._driver().set_progress_handler(step, 1)
        work(ledger)
        ledger._store._driver().set_progress_handler(None, 0)
    return count


@pytest.mark.slow
def test_a_hundred_thousand_entries_on_sqlite(tmp_path: Path) -> None:
    small, large = str(tmp_path / "small.sqlite"), str(tmp_path / "large.sqlite")
    grown(small, SMALL)
    grown(large, LARGE)
    with opened(small) as ledger:
        assert ledger.verify().entries == 1 + SMALL
    for work in (used, lambda ledger: chain.check_last(ledger._store)):
        few, many = steps(small, work), steps(large, work)
        assert 0 < many <= 3 * few


@pytest.mark.slow
def test_no_statement_reads_the_whole_history(tmp_path: Path, postgresql: str) -> None:
    """But those that are meant to."""
    grown(str(tmp_path / "budget.sqlite"), SMALL)
    grown(postgresql, SERVED)
    for place in (str(tmp_path / "budget.sqlite"), postgresql):
        with opened(place) as ledger:
            store = ledger._store
            used(ledger)
            compiled = [item.text for item in store._compiled.values() if item.text.startswith("SELECT")]
        assert len(compiled) >= 4
        for text in compiled:
            if store.dialect == "sqlite":
                with closing(sqlite3.connect(place)) as file:
                    values = [None] * text.count("?")
                    plan = "\n".join(row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {text}", values))
                # a scan in the order of the key that ends with its first row is none
                assert "SCAN dither_entry" not in plan or "LIMIT" in text, text
            else:
                with psycopg.connect(place) as server:
                    names = dict.fromkeys(("seq", "dataset", "key", "charge", "owner", "kind", "name", "analyst"))
                    values = {**names, "seq": 5, "charge": 5, "param_1": 1, "param_2": 1, "kind_1": "analyst"}
                    values |= {f"kind_{i}": "dataset" for i in range(2, 5)} | {"name_1": ""}
                    plan = "\n".join(row[0] for row in server.execute(f"EXPLAIN {text}".encode(), values))
                assert "Seq Scan on dither_entry" not in plan, plan


@pytest.mark.slow
def test_many_analysts(tmp_path: Path) -> None:
    """A charge reads the accounts it touches, not everybody's."""
    places = {}
    for count in (10, 10_000):
        place = places[count] = str(tmp_path / f"{count}.sqlite")
        with opened(place) as ledger:
            ledger.create("visits", limit=dp.PureDP(1), each_analyst=dp.PureDP(1))
            (row,) = [row for row in ledger._store.rows(schema.ACCOUNTS) if row[1] == "analyst"]
        with closing(sqlite3.connect(place)) as file:
            file.execute("PRAGMA journal_mode = PERSIST")
            rows = [(row[0], row[1], f"analyst {i}", *row[3:]) for i in range(count)]
            file.executemany(f"INSERT INTO dither_account VALUES ({', '.join('?' * len(row))})", rows)
            file.commit()

    def work(ledger: dp.ledger.Ledger) -> None:
        ledger.charge("visits", dp.PureDP(0.001), analyst="analyst 5")

    assert 0 < steps(places[10_000], work) <= 3 * steps(places[10], work)
