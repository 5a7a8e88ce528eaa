"""The history: all of it, in pages, in its order whatever the clock says."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dither as dp
from dither.ledger import chain
from dither.ledger.store import Store

pytestmark = pytest.mark.slow

Ledger = dp.ledger.Ledger


def test_entries_and_pages(written: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(written.history())
    monkeypatch.setattr(chain, "_PAGE", 3)
    assert list(written.history()) == whole == list(written.history("visits"))
    assert list(written.history("deaths")) == []
    assert [entry.seq for entry in whole] == list(range(1, 12))
    assert all(isinstance(json.dumps(entry.body), str) for entry in whole)
    assert written.verify() == dp.ledger.Verified(11, whole[-1].receipt, True)


def test_history_is_read_a_little_at_a_time(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first entry is there after one page, whatever comes after it, and no more than a page is held at a time."""
    monkeypatch.setattr(chain, "_PAGE", 5)
    ledger.create("visits", limit=dp.PureDP(1))
    for i in range(30):
        ledger.charge("visits", dp.PureDP(0.01), key=f"{i}")
    real, read = Store.rows, []

    def counted(self: Store, *arguments: Any) -> list[Any]:
        result = real(self, *arguments)
        read.append(len(result))
        return result

    monkeypatch.setattr(Store, "rows", counted)
    entries = ledger.history()
    assert next(entries).seq == 1
    assert read == [5]
    ledger.charge("visits", dp.PureDP(0.01), key="meanwhile")  # who reads slowly holds nobody up
    read.clear()
    assert [entry.seq for entry in entries] == list(range(2, 33))
    assert max(read) == 5


def test_a_clock_that_goes_backwards_harms_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(["2030", "1999", "1999", "0001"])
    monkeypatch.setattr(chain, "now", lambda: next(times))
    ledger.create("visits", limit=dp.PureDP(1))
    for i in range(3):
        ledger.charge("visits", dp.PureDP(0.1), key=f"{i}")
    assert [entry.at for entry in ledger.history()] == ["2030", "1999", "1999", "0001"]
    assert ledger.verify().entries == 4
