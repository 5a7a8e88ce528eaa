"""The ledger: durable charges against a bare loop of INSERT and COMMIT, a million people, a million entries."""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

import dither as dp
from suite import Row, limited, main, number, times

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "ledger" / "survive"))

from test_survive_growth import grown
from throwaway import Server
from work import opened

TITLE = "Ledger"
NOTES = (
    "Wall time, because a charge is mostly a wait for the disk. Ours and the reference take turns in short rounds on "
    "the same file system or server; the ratio is the median over the rounds, which a busy moment cannot move far.",
    "A charge looks up the accounts, checks them with the charge in it, appends to the history with its hash, adds to "
    "the account, and commits. The reference inserts one row as long as an entry of the history, in a transaction of "
    "its own, on a connection with the same durability (SQLite: rollback journal, synchronous=FULL; PostgreSQL: "
    "synchronous_commit=on). *Charges* are per second, over the reference.",
    "A release is a charge and the record of its answer: two transactions.",
    "People: each of 1,000,000 is charged in one charge; the first opens their accounts, the second adds to them. The "
    "reference is the whole population; a few of them are charged in a ledger that holds it.",
    "A long history: opening the ledger, one charge, closing it, with 1e6 entries against 1e3.",
)

SECRET = bytes(32)
COST = dp.PureDP(1e-6)
AT_LEAST = 0.6
PEOPLE_S = 3.0


def timed(task: Callable[[], object]) -> float:
    """Wall seconds."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def in_turns(tasks: Sequence[Callable[[], object]], rounds: int) -> list[list[float]]:
    """Wall seconds of each task in each round, after one to warm up; every other round in the opposite order."""
    for task in tasks:
        task()
    result: list[list[float]] = [[] for _ in tasks]
    for turn in range(rounds):
        for i in list(range(len(tasks)))[:: -1 if turn % 2 else 1]:
            result[i].append(timed(tasks[i]))
    return result


def bare(place: str) -> Callable[[int], None]:
    """A loop that inserts one row at a time as durably as the ledger does."""
    row = ("2026-01-01T00:00:00.000000+00:00", "visits", "x" * 32, "x" * 330, bytes(32))
    table = "CREATE TABLE bare (seq BIGINT PRIMARY KEY, at TEXT, dataset TEXT, key TEXT, body TEXT, hash {})"
    connection: Any
    if "://" in place:
        connection = psycopg.connect(place, autocommit=True)
        connection.execute(table.format("BYTEA"))
        insert, begin = "INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s)", "BEGIN"
        connection.execute("SET synchronous_commit = on")
    else:
        connection = sqlite3.connect(place + ".bare", isolation_level=None)
        connection.execute("PRAGMA journal_mode = PERSIST")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(table.format("BLOB"))
        insert, begin = "INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?)", "BEGIN IMMEDIATE"
    seq = 0

    def loop(count: int) -> None:
        nonlocal seq
        for _ in range(count):
            seq += 1
            connection.execute(begin)
            connection.execute(insert, (seq, *row))
            connection.execute("COMMIT")

    return loop


def rate(what: str, ours: list[float], reference: list[float], count: int, at_least: float | None) -> Row:
    """A row for charges per second against inserts per second."""
    ratio = statistics.median(r / o for o, r in zip(ours, reference, strict=True))
    return Row(
        what,
        f"{number(count / statistics.median(ours))} /s",
        f"{number(count / statistics.median(reference))} /s (INSERT, COMMIT)",
        ratio,
        "" if at_least is None else f"≥ {at_least}×",
        None if at_least is None else ratio >= at_least,
    )


def charges(name: str, place: str, quick: bool) -> list[Row]:
    """Charges and releases per second."""
    count, rounds = (5, 2) if quick else (100, 31)
    insert = bare(place)
    with dp.ledger.open(place, secret=SECRET) as ledger:
        ledger.create("visits", limit=dp.PureDP(1000))
        tasks = (
            lambda: [ledger.charge("visits", COST) for _ in range(count)],
            lambda: insert(count),
            lambda: [ledger.release("visits", COST, lambda: 42) for _ in range(count)],
        )
        paid, reference, released = in_turns(tasks, rounds)
    return [
        rate(f"Charges, {name}", paid, reference, count, AT_LEAST),
        rate(f"Releases, {name}", released, reference, count, None),
    ]


def people(name: str, place: str, quick: bool) -> list[Row]:
    """A whole population, twice; then a few of it, and the whole again."""
    n = 10**3 if quick else 10**6
    everybody = np.arange(n) * 7919
    table = []
    with dp.ledger.open(place, secret=SECRET) as ledger:
        ledger.create("visits", each_person=dp.PureDP(1))
        target = PEOPLE_S if name == "SQLite" and not quick else None
        for turn in ("first", "second"):
            result = timed(lambda: ledger.charge("visits", COST, people=everybody))
            table.append(limited(f"{n:,} people charged, {turn} time, {name}", result, "s", target))
        ledger.charge("visits", COST, people=everybody[:1])
        for few in (1, 1000):
            part = everybody[:: n // few]
            best = min(timed(lambda part=part: ledger.charge("visits", COST, people=part)) for _ in range(9))
            table.append(times(f"{few:,} of {n:,} people, {name}", 1e3 * best, 1e3 * result, "ms", None, "all of them"))
    return table


def long_history(folder: str, quick: bool) -> Row:
    """Opening and charging after 1e6 entries against 1e3."""
    places, most = [], 10**4 if quick else 10**6
    for count in (10**3, most):
        places.append(f"{folder}/{count}.sqlite")
        grown(places[-1], count)

    def once(place: str) -> None:
        with opened(place) as ledger:
            ledger.charge("visits", dp.PureDP(1e-7))

    small, large = in_turns([lambda place=place: once(place) for place in places], 5 if quick else 31)
    ratio = statistics.median(b / a for a, b in zip(small, large, strict=True))
    return Row(
        f"Open, charge, close, {most:,} entries, SQLite",
        f"{number(1e3 * statistics.median(large))} ms",
        f"{number(1e3 * statistics.median(small))} ms (1,000 entries)",
        ratio,
        "≤ 3.0×",
        ratio <= 3,
    )


def rows(quick: bool = False) -> list[Row]:
    """All of the suite."""
    server = Server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            return [
                *charges("SQLite", f"{folder}/charges.sqlite", quick),
                *charges("PostgreSQL", server.fresh(), quick),
                *people("SQLite", f"{folder}/people.sqlite", quick),
                *people("PostgreSQL", server.fresh(), quick),
                long_history(folder, quick),
            ]
    finally:
        server.stop()


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
