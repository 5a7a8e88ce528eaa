"""Clocks that go wrong, and files that are put back, or copied without what belongs to them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from ledger_state import check, contents, spent
from work import COST, PEOPLE, SECRET, charged, opened, workers

import dither as dp
from dither.ledger import chain
from support import refuses

pytestmark = pytest.mark.slow


def test_a_clock_that_goes_backwards(ledger: dp.ledger.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    times = [f"{year}-01-01T00:00:00.000000+00:00" for year in (2031, 2029, 1970, 9999, 1970)]
    for time in times:
        monkeypatch.setattr(chain, "now", lambda time=time: time)
        ledger.charge("visits", dp.PureDP(0.2))
    entries = list(ledger.history())
    assert [entry.at for entry in entries[1:]] == times
    assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert ledger.left("visits") is None
    assert ledger.verify(ledger.head).entries == 6


def test_two_hosts_with_their_own_clocks(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as here, opened(place) as there:
        here.create("visits", limit=dp.PureDP(1))
        receipts = []
        for turn in range(10):
            monkeypatch.setattr(chain, "now", lambda turn=turn: f"{2026 - 30 * (turn % 2)}-06-01T12:00:00.000000+00:00")
            receipts.append((here, there)[turn % 2].charge("visits", dp.PureDP(0.1)).receipt)
        with refuses(dp.BudgetExceeded):
            there.charge("visits", dp.PureDP(0.1))
        for receipt in receipts:
            here.verify(receipt)
            there.expect(receipt)


def put(source: Path, target: Path) -> None:
    """Put a file where a ledger was, without what SQLite kept beside that."""
    for ending in ("-wal", "-shm", "-journal"):
        target.with_name(target.name + ending).unlink(missing_ok=True)
    shutil.copyfile(source, target)


def test_an_old_copy_put_back(tmp_path: Path) -> None:
    place, copy = tmp_path / "budget.sqlite", tmp_path / "copy"
    with opened(str(place)) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        charged(ledger, "visits", "1/10", 3)
        old = ledger.head
    shutil.copyfile(place, copy)
    with opened(str(place)) as ledger:
        charged(ledger, "visits", "1/10", 3)
        receipt = ledger.head
    put(copy, place)
    with refuses(dp.LedgerError, "an older copy"):
        dp.ledger.open(place, secret=SECRET, receipt=receipt)
    # without a receipt it cannot be told from the ledger it once was: that is what receipts are for
    with dp.ledger.open(place, secret=SECRET, receipt=old) as ledger:
        assert ledger.verify().entries == 4
        # nor does it become the other ledger by growing as long
        charged(ledger, "visits", "1/10", 5)
        for check in (ledger.expect, ledger.verify):
            with refuses(dp.LedgerError, "an older copy"):
                check(receipt)


def taken(place: Path, *, endings: tuple[str, ...], to: Path) -> Path:
    """Copy the files of a ledger in use, from another process: closing one of them here would let go of its locks."""
    to.mkdir()
    for ending in endings:
        subprocess.run(["cp", f"{place}{ending}", str(to / (place.name + ending))], check=True)
    return to / place.name


def test_the_file_alone_is_the_ledger(tmp_path: Path) -> None:
    """Once a charge has returned, nothing of it is in any other file."""
    place = tmp_path / "budget.sqlite"
    with opened(str(place)) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        for turn in range(5):
            charged(ledger, "visits", "1/100", 4)
            copy = taken(place, endings=("",), to=tmp_path / f"{turn}")
            with dp.ledger.open(copy, secret=SECRET, receipt=ledger.head) as other:
                assert other.verify() == ledger.verify()
                assert spent(other) == (turn + 1) * 40 * COST


DELETED = [("-wal",), ("-journal",), ("-shm",), ("-wal", "-shm", "-journal")]


@pytest.mark.parametrize("step", ["asked", "charged", "computed", "recorded"])
def test_whatever_is_deleted_after_a_kill_nothing_is_given_back(tmp_path: Path, step: str) -> None:
    folder, log = tmp_path / "killed", tmp_path / "log"
    folder.mkdir()
    place = folder / "budget.sqlite"
    with opened(str(place)) as ledger:
        ledger.create("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
        ledger.release("visits", dp.PureDP(COST), lambda _: 1, key="first", people=PEOPLE)
    with workers(1, "die_at", place=str(place), step=step, log=str(log)) as (worker,):
        worker.tell()
        assert worker.says() is None
    for turn, endings in enumerate(DELETED):
        copy = tmp_path / f"{turn}"
        shutil.copytree(folder, copy)
        for ending in endings:
            (copy / (place.name + ending)).unlink(missing_ok=True)
        assert check(str(copy / place.name), log) == (1 if step == "asked" else 2)


def test_a_file_half_written_without_its_journal_is_refused(tmp_path: Path) -> None:
    """Killed while it wrote, and the journal deleted: some pages are new, some are old. Whatever is accepted then adds
    up, to the person; the journal that is missing has everything verified before the next charge.
    """
    place = tmp_path / "budget.sqlite"
    with opened(str(place)) as ledger:
        ledger.create("visits", each_person=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(COST), people=range(1000))
        ledger.close()
        before = place.read_bytes()
        ledger.charge("visits", dp.PureDP(COST), people=range(500, 2000))
    after = place.read_bytes()
    old = [before[i : i + 4096] for i in range(0, len(before), 4096)]
    new = [after[i : i + 4096] for i in range(0, len(after), 4096)]
    assert len(new) > len(old)
    rng, refused, unseen = np.random.default_rng(), 0, 0
    for turn in range(24):
        # SQLite writes pages in their order: most mixtures are a beginning; others are what a disk may do
        cut = rng.integers(1, len(new))
        fresh = np.arange(len(new)) < cut if turn % 2 else rng.random(len(new)) < 0.5
        pages = [new[i] if fresh[i] or i >= len(old) else old[i] for i in range(len(new))]
        for journal in (False, True):
            folder = tmp_path / f"{turn} {journal}"
            folder.mkdir()
            copy = folder / "budget.sqlite"
            copy.write_bytes(b"".join(pages))
            if journal:
                (folder / "budget.sqlite-journal").write_bytes(bytes(512))
            try:
                with opened(str(copy)) as ledger:
                    ledger.charge("visits", dp.PureDP(COST), people=[0])
                    adds_up = ledger.verify().entries > 0
            except dp.LedgerError:
                adds_up = False
                refused += not journal
            else:
                assert adds_up
            with contextlib.suppress(dp.LedgerError), opened(str(copy)) as ledger:
                unseen += journal and len(list(ledger.history())) > 3
    assert refused > 10
    assert unseen > 0, "with a journal in its place nobody would have looked"


def test_a_killed_process_leaves_its_log_behind(tmp_path: Path) -> None:
    place = tmp_path / "budget.sqlite"
    with opened(str(place)) as ledger:
        ledger.create("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
    with workers(1, "die_at", place=str(place), step="recorded", log=str(tmp_path / "log")) as (worker,):
        worker.tell()
        assert worker.says() is None
    whole = contents(str(place))
    assert len(whole[2]) == 3
    with opened(str(place)) as ledger:
        assert spent(ledger) == COST
        assert ledger.verify().entries == 3
