"""Clocks that go wrong, and files that are put back, or copied without what belongs to them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from books import contents, spent
from work import COST, charged, opened, workers

import dither as dp
from dither.ledger import chain


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
        with pytest.raises(dp.BudgetExceeded):
            there.charge("visits", dp.PureDP(0.1))
        for receipt in receipts:
            here.verify(receipt)
            there.expect(receipt)


def put(source: Path, target: Path) -> None:
    """Put a file where a ledger was, without what SQLite kept beside that."""
    for ending in ("-wal", "-shm"):
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
    with pytest.raises(dp.LedgerError, match="an older copy"):
        dp.ledger.open(place, receipt=receipt)
    # without a receipt it cannot be told from the ledger it once was: that is what receipts are for
    with dp.ledger.open(place, receipt=old) as ledger:
        assert ledger.verify().entries == 4
        # nor does it become the other ledger by growing as long
        charged(ledger, "visits", "1/10", 5)
        for check in (ledger.expect, ledger.verify):
            with pytest.raises(dp.LedgerError, match="an older copy"):
                check(receipt)


def taken(place: Path, *, endings: tuple[str, ...], to: Path) -> Path:
    """Copy the files of a ledger in use, from another process: closing one of them here would let go of its locks."""
    to.mkdir()
    for ending in endings:
        subprocess.run(["cp", f"{place}{ending}", str(to / (place.name + ending))], check=True)
    return to / place.name


def test_a_copy_without_what_was_not_written_back_yet(tmp_path: Path) -> None:
    """Charges are first in the file ending in -wal. A copy without it is an older ledger; with it, it is whole."""
    place = tmp_path / "budget.sqlite"
    with opened(str(place)) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        charged(ledger, "visits", "1/100", 3)
    with opened(str(place)) as ledger:
        old = ledger.head
        charged(ledger, "visits", "1/100", 20)
        receipt = ledger.head
        without = taken(place, endings=("",), to=tmp_path / "without")
        whole = taken(place, endings=("", "-wal"), to=tmp_path / "whole")
    with pytest.raises(dp.LedgerError, match="an older copy"):
        dp.ledger.open(without, receipt=receipt)
    with dp.ledger.open(without, receipt=old) as ledger:
        assert ledger.verify().entries == 4
    # closed in good order, nothing is left to lose: the file alone is the ledger
    assert not place.with_name(place.name + "-wal").exists()
    with dp.ledger.open(place, receipt=receipt) as ledger, dp.ledger.open(whole, receipt=receipt) as other:
        assert ledger.verify() == other.verify()
        assert spent(ledger) == spent(other) == 23 * 10 * COST


def test_a_log_cut_short_or_damaged(tmp_path: Path) -> None:
    """Wherever the -wal file of a killed process is cut or changed, what is left are the first charges, whole."""
    place = tmp_path / "budget.sqlite"
    with opened(str(place)) as ledger:
        receipts = [ledger.head, ledger.create("visits", limit=dp.PureDP(1))]
        for _ in range(10):
            receipts.append(ledger.charge("visits", dp.PureDP(0.01)).receipt)
        copy = taken(place, endings=("", "-wal"), to=tmp_path / "copy")
    log = copy.with_name(copy.name + "-wal")
    main, original = copy.read_bytes(), log.read_bytes()
    rng = np.random.default_rng()
    lost = 0
    for position in [0, len(original) - 1, *rng.integers(len(original), size=30).tolist()]:
        for cut in (True, False):
            copy.write_bytes(main)
            copy.with_name(copy.name + "-shm").unlink(missing_ok=True)
            flipped = bytearray(original)
            flipped[position] ^= int(rng.integers(1, 256))
            log.write_bytes(original[:position] if cut else flipped)
            try:
                with dp.ledger.open(copy, create=False) as ledger:
                    kept = receipts.index(ledger.verify().head)
                    assert kept == 0 or spent(ledger) == (kept - 1) * 10 * COST
            except dp.LedgerError:
                kept = -1
            if kept < len(receipts) - 1:
                lost += 1
                with pytest.raises(dp.LedgerError):
                    dp.ledger.open(copy, receipt=receipts[-1])
    assert lost > 0


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
