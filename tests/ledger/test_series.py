"""The state of a series: sealed, advanced once, and none the worse for crashes, copies and hands that change it."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

import dither as dp
from dither.ledger.series import Advance
from support import refuses
from support_forking import forking

COST = dp.PureDP(0.5)
STEPS = ["charged", "series measured", "series computed", "series written", "series recorded"]


def opened(place: str) -> dp.ledger.Ledger:
    secret = bytes(range(32)) if "://" in place else None
    ledger = dp.ledger.open(place, secret=secret)
    ledger.ensure("visits", limit=dp.PureDP(1))
    return ledger


def record_of(ledger, key="daily"):
    return ledger.series("visits", COST, key=key, request={"daily": 1})


def advance(record, text: bytes, parts=None, expected=None):
    def compute(state, _):
        if expected is not None and state.advances != expected:
            return None
        return Advance(b'"%s"' % text, {0: b"secret " + text, **(parts or {})})

    return record.advance(compute, max_incidents=3)


def test_incidents_of_one_analyst_do_not_stop_the_series_of_another(place):
    with opened(place) as ledger:
        record = ledger.series("visits", COST, key="daily", request={"daily": 1}, analyst="bob")
        for n in range(3):
            charge = ledger.charge("visits", dp.PureDP(0.01), key=f"ann {n}", analyst="ann")
            ledger.record_incident(charge)
        assert advance(record, b"a") is not None
        for n in range(3):
            charge = ledger.charge("visits", dp.PureDP(0.01), key=f"bob {n}", analyst="bob")
            ledger.record_incident(charge)
        with pytest.raises(dp.DatasetClosed):
            advance(record, b"b")


def test_a_series_is_charged_once_and_goes_on(place):
    with opened(place) as ledger:
        for n, text in enumerate([b"a", b"b", b"c"]):
            record = record_of(ledger)
            assert len(record.answers()[0]) == n
            receipt = advance(record, text)
            assert record.answers() == ([b'"a"', b'"b"', b'"c"'][: n + 1], receipt)
        assert ledger.left("visits") == dp.PureDP(0.5)
        assert ledger.verify().entries == 5
        with refuses(dp.InvalidArgument, "charged under this name"):
            ledger.series("visits", COST, key="daily", request={"daily": 2})
        with refuses(dp.BudgetExceeded):
            ledger.series("visits", dp.PureDP(0.6), key="weekly", request={})
    with opened(place) as ledger:
        assert record_of(ledger).answers()[0] == [b'"a"', b'"b"', b'"c"']


def test_the_state_is_sealed_and_parts_come_and_go(place):
    seen = []
    with opened(place) as ledger:
        record = record_of(ledger)
        advance(record, b"one", {1: b"somebody", 2: b"somebody two"})
        advance(record, b"two", {1: None, 3: b"somebody three"})
        record.advance(lambda state, _: seen.append(dict(state.parts)), max_incidents=3)
    assert seen == [{0: b"secret two", 2: b"somebody two", 3: b"somebody three"}]
    if "://" not in place:
        assert b"somebody" not in Path(place).read_bytes()
        assert b"secret two" not in Path(place).read_bytes()


def test_no_key_of_a_question_is_that_of_a_series(place):
    """Whoever asks chooses the key: it must neither end a series nor be answered by it."""
    with opened(place) as ledger:
        record = record_of(ledger)
        advance(record, b"one")
        keys = {entry.key for entry in ledger.history() if entry.key is not None}
        assert len(keys) == 2
        for key in keys:
            with refuses(dp.InvalidArgument, "key"):
                ledger.charge("visits", dp.PureDP(0.1), key=key, request={})
        for key in ("daily", "series daily", "daily#00000001", "series daily#00000001"):
            ledger.record(ledger.charge("visits", dp.PureDP(0.1), key=key, request={}), b'"other"')
        advance(record, b"two")
        assert record_of(ledger).answers()[0] == [b'"one"', b'"two"']


def test_two_who_measured_the_same_advance_once(place):
    with opened(place) as first, opened(place) as second:
        assert advance(record_of(first), b"one", expected=0) is not None
        assert advance(record_of(second), b"two", expected=0) is None
        assert record_of(second).answers()[0] == [b'"one"']


def test_many_threads_advance_one_after_the_other(place):
    with opened(place) as ledger:
        record_of(ledger)

    def work(n: int) -> None:
        with opened(place) as ledger:
            advance(record_of(ledger), b"%d" % n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with opened(place) as ledger:
        assert sorted(record_of(ledger).answers()[0]) == [b'"%d"' % n for n in range(6)]
        assert ledger.left("visits") == dp.PureDP(0.5)
        assert ledger.verify()


DAMAGES = {
    "removed": "DELETE FROM dither_series",
    "a part removed": "DELETE FROM dither_series WHERE part = 1",
    "moved": "UPDATE dither_series SET part = 5 WHERE part = 1",
    "older": "UPDATE dither_series SET number = 0",
    "changed": "UPDATE dither_series SET sealed = zeroblob(40) WHERE part = 0",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_that_was_changed_is_refused(tmp_path, damage):
    place = str(tmp_path / "budget.sqlite")
    with opened(place) as ledger:
        for text in (b"a", b"b"):
            advance(record_of(ledger), text, {1: b"people"})
    with closing(sqlite3.connect(place)) as connection:
        connection.execute(DAMAGES[damage])
        connection.commit()
    with opened(place) as ledger, refuses(dp.LedgerError, "state of its last advance"):
        advance(record_of(ledger), b"c")


def test_an_older_state_in_a_newer_ledger_is_refused(tmp_path):
    place = str(tmp_path / "budget.sqlite")
    with opened(place) as ledger:
        advance(record_of(ledger), b"a")
    with closing(sqlite3.connect(place)) as connection:
        old = connection.execute("SELECT series, part, number, sealed FROM dither_series").fetchall()
    with opened(place) as ledger:
        advance(record_of(ledger), b"b")
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("DELETE FROM dither_series")
        connection.executemany("INSERT INTO dither_series VALUES (?, ?, ?, ?)", old)
        connection.commit()
    with opened(place) as ledger, refuses(dp.LedgerError, "state of its last advance"):
        advance(record_of(ledger), b"c")


def test_an_older_copy_of_the_ledger_is_found_out_by_its_receipt(tmp_path):
    place, copy = str(tmp_path / "budget.sqlite"), str(tmp_path / "copy")
    with opened(place) as ledger:
        advance(record_of(ledger), b"a")
    shutil.copy(place, copy)
    with opened(place) as ledger:
        receipt = advance(record_of(ledger), b"b")
    shutil.copy(copy, place)
    with refuses(dp.LedgerError, "older copy"):
        dp.ledger.open(place, receipt=receipt)


def test_a_failed_reading_is_counted_every_time(place):
    with opened(place) as ledger:
        record = record_of(ledger)
        for n in range(3):
            assert ledger.incident_count("visits") == n
            record.fail()
        with pytest.raises(dp.DatasetClosed):
            advance(record, b"a")
        assert ledger.verify()
        assert ledger.left("visits") == dp.PureDP(0.5)


IMPORTS = """
import json, os, signal, sys
import duckdb, numpy as np, pandas, pyarrow as pa, sqlalchemy.dialects.sqlite, dither as dp
import dither.stream, dither.tables.engines
from datetime import date, timedelta
from dither.randomness.laws import Normal
Normal().quantile(np.array([0.5]))  # its table is made by the first draw
ledger_class = dp.ledger.Ledger
"""
SCRIPT = """
step, ledger, through, out = sys.argv[1:]
def reached(_, name):
    if name == step:
        os.kill(os.getpid(), signal.SIGKILL)
if step:
    ledger_class._reached = reached
rows = pa.table({"who": [*range(40)], "day": [date(2026, 1, 1) + timedelta(days=i % 4) for i in range(40)]})
with dp.open(rows, unit="who", budget=dp.ApproxDP(1, 1e-6), ledger=ledger) as table:
    days = table.over("day", column="day", horizon=8, start="2026-01-01", epsilon=1, delta=1e-6)
    answer = days.agg(n=dp.count()).release(through=through)
    with open(out, "w") as file:
        json.dump([answer["n"], answer.left is None], file)
"""


@pytest.fixture(scope="module")
def processes():
    with forking(IMPORTS, SCRIPT) as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_release_killed_at_any_step_neither_loses_nor_redraws_noise(tmp_path, processes, step, started):
    ledger, out = tmp_path / "ledger", tmp_path / "out"

    def run(step: str, through: str) -> int:
        return processes.run(step, str(ledger), through, str(out))

    before = []
    if started:
        assert run("", "2026-01-02") == 0
        before = json.loads(out.read_text())[0]
        out.unlink()
    if not (started and step == "charged"):  # which is passed again and again
        assert run(step, "2026-01-03") == -signal.SIGKILL
        assert not out.exists()
    recorded = points(ledger)
    assert recorded[: len(before)] == before
    assert len(recorded) == (3 if step == "series recorded" else len(before))
    assert run("", "2026-01-04") == 0
    after, exhausted = json.loads(out.read_text())
    assert after[: len(recorded)] == recorded
    assert len(after) == 4
    assert exhausted  # by one charge, and what it paid for


def points(place: Path) -> list[float]:
    """The points that are recorded, read from the history."""
    from dither.ledger.recorded import decode

    if not place.exists():
        return []
    with dp.ledger.open(place) as ledger:
        assert ledger.verify()
        answers = [decode(entry.answer) for entry in ledger.history() if entry.kind == "answer"]
    return [float(value) for answer in answers for value in answer["points"].ravel()]
