"""Measure what a charge in a SQLite ledger is spent on; the figures in docs/ledger.md are from this script.

    python scripts/charge_cost.py [FOLDER]

Three loops take turns, each with the same durability: a bare INSERT and COMMIT, the statements of a charge without
anything around them, and ``Ledger.charge``. Without a folder a file system in memory is used where there is one, so
that the processor is measured and not the disk. The best of all rounds is printed: other processes can only add to it.
"""

from __future__ import annotations

import itertools
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from sqlalchemy import ClauseElement
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.compiler import SQLCompiler

import dither as dp
from dither.ledger import schema

ROUNDS, CHARGES = 800, 4
ROW = ("2026-01-01T00:00:00.000000+00:00", "visits", "x" * 32, "x" * 330, bytes(32))


def connect(path: Path) -> sqlite3.Connection:
    """A connection as durable as the ledger's."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = PERSIST")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def bare(folder: Path, resources: ExitStack) -> Callable[[], None]:
    """One row inserted and committed."""
    connection = resources.enter_context(closing(connect(folder / "bare.sqlite")))
    connection.execute(
        "CREATE TABLE bare (seq BIGINT PRIMARY KEY, at TEXT, dataset TEXT, key TEXT, body TEXT, hash BLOB)"
    )
    numbers = itertools.count()

    def run() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?)", (next(numbers), *ROW))
        connection.execute("COMMIT")

    return run


def statements(folder: Path, resources: ExitStack) -> Callable[[], None]:
    """What a charge reads and writes: the accounts and the last entry, a new entry, and the account."""
    path = folder / "statements.sqlite"
    with dp.ledger.open(path) as ledger:
        ledger.create("visits", limit=dp.PureDP(1000))
        ledger.charge("visits", dp.PureDP(1e-6))
    connection = resources.enter_context(closing(connect(path)))
    numbers = itertools.count(10)

    def prepared(statement: ClauseElement, values: dict[str, object]) -> tuple[str, list[str], dict[str, object]]:
        compiled = statement.compile(dialect=sqlite.dialect())
        assert isinstance(compiled, SQLCompiler)
        return compiled.string, list(compiled.positiontup or ()), {**compiled.params, **values}

    read = prepared(schema.TOUCHED, {"owner": "visits", "analyst": ""})
    entry = {"kind": "charge", "dataset": "visits", "charge": None, "answer": None, "at": ROW[0], "body": ROW[3]}
    append = prepared(schema.APPEND, {**entry, "hash": ROW[4]})
    place = {"owner_": "visits", "kind_": "dataset", "name_": ""}
    spend = prepared(schema.SPEND, {**place, "loss": 1, "delta": 0, "checksum_": 0, "sealed_": 0})

    def execute(statement: tuple[str, list[str], dict[str, object]], **values: object) -> sqlite3.Cursor:
        text, names, fixed = statement
        given = {**fixed, **values}
        return connection.execute(text, [given[name] for name in names])

    def run() -> None:
        number = next(numbers)
        connection.execute("BEGIN IMMEDIATE")
        execute(read).fetchall()
        execute(append, seq=number, key=f"{number:032x}")
        execute(spend)
        connection.execute("COMMIT")

    return run


def charge(folder: Path, resources: ExitStack) -> Callable[[], None]:
    """A charge."""
    ledger = resources.enter_context(dp.ledger.open(folder / "charge.sqlite"))
    ledger.create("visits", limit=dp.PureDP(1000))
    cost = dp.PureDP(1e-6)

    def run() -> None:
        ledger.charge("visits", cost)

    return run


def main() -> None:
    """Print the best time of each, in microseconds: elapsed, and of the processor."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with ExitStack() as resources:
        directory = sys.argv[1] if len(sys.argv) > 1 else memory
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(dir=directory)))
        makers = {"bare": bare, "statements": statements, "charge": charge}
        tasks = {task: maker(folder, resources) for task, maker in makers.items()}
        best = {task: (float("inf"), float("inf")) for task in tasks}
        for _ in range(ROUNDS):
            for task, run in tasks.items():
                elapsed, processor = time.perf_counter(), time.process_time()
                for _ in range(CHARGES):
                    run()
                times = time.perf_counter() - elapsed, time.process_time() - processor
                best[task] = min(best[task][0], times[0]), min(best[task][1], times[1])
        for task, times in best.items():
            print(
                f"{task:10}  elapsed {1e6 * times[0] / CHARGES:6.0f} µs   processor {1e6 * times[1] / CHARGES:6.0f} µs"
            )


if __name__ == "__main__":
    main()
