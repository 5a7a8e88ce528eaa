"""What a ledger must look like after anything has happened to it, read without the code under test."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
from work import COST, PEOPLE, opened

import dither as dp
from dither.ledger.accounts import LOSS_UNIT

TABLES = ("dither_about", "dither_account", "dither_entry", "dither_person")


def read(place: str, statement: str) -> list[Any]:
    """The rows of a query, from the driver."""
    if "://" in place:
        with psycopg.connect(place) as connection:
            return connection.execute(statement.encode()).fetchall()
    with closing(sqlite3.connect(place)) as connection:
        return connection.execute(statement).fetchall()


def contents(place: str) -> list[Any]:
    """Everything that is in a ledger."""
    return [sorted(read(place, f"SELECT * FROM {table}"), key=repr) for table in TABLES]


def spent(ledger: dp.ledger.Ledger, dataset: str = "visits", analyst: str = "") -> Fraction:
    """What an account has used, exactly; nothing, if there is none."""
    place = (dataset, "analyst" if analyst else "dataset", analyst)
    return Fraction(
        sum(account.used.loss for account in ledger.accounts(dataset) if account.identity == place), LOSS_UNIT
    )


def shown(log: Path) -> dict[str, bytes]:
    """What the world has seen: the answer under each key, of which there must be one."""
    if not log.exists():
        return {}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    result = {key: stored.encode() for key, stored in lines}
    assert all(result[key] == stored.encode() for key, stored in lines), "two answers under one key"
    return result


def check(place: str, log: Path) -> int:
    """Nothing was released that was not paid for, each key has one answer, and a key without one is paid again.

    The number of charges. Everybody in ``PEOPLE`` took part in each, so each has spent what the dataset has.
    """
    seen = shown(log)
    with opened(place) as ledger:
        assert ledger.verify().entries
        entries = list(ledger.history("visits"))
        charges = {entry.seq: entry.key for entry in entries if entry.kind == "charge"}
        given = [(charges[entry.charge], entry.answer) for entry in entries if entry.charge is not None]
        answers = dict(given)
        assert len(answers) == len(given)
        assert all(answers[key] == stored for key, stored in seen.items())
        assert spent(ledger) == COST * len(charges) >= COST * len(seen)
        people = read(place, "SELECT loss, delta FROM dither_person")
        assert people == [(COST * LOSS_UNIT * len(charges), 0)] * (len(set(PEOPLE)) if charges else 0)

        waiting = set(charges.values()) - set(answers)
        for key in [*list(answers)[-5:], *waiting]:
            assert key is not None
            again = ledger.release("visits", dp.PureDP(COST), lambda kept: f"anew {kept.all()}", key=key, people=PEOPLE)
            assert again.stored == answers.get(key, again.stored)
            assert again.replayed == (key in answers)
        assert spent(ledger) == COST * (len(charges) + len(waiting))
        assert ledger.verify().entries == 1 + len(charges) + len(answers) + 2 * len(waiting)
    return len(charges)
