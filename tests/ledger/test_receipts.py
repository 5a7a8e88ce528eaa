"""A file with the last receipt: whole, later ones only, and anything else in it refused."""

from __future__ import annotations

import os
from typing import Any

import pytest

import dither as dp
from dither.errors import DitherError, LedgerError
from dither.ledger import Receipt
from dither.ledger.chain import check_receipt_file, keep_receipt, read_receipt
from support import refuses


def receipt(seq: int) -> Receipt:
    return Receipt(seq, f"{seq:064x}")


def test_a_later_receipt_replaces_an_earlier_one_and_never_the_other_way(tmp_path):
    path = tmp_path / "receipt"
    assert read_receipt(path) is None
    for seq, kept in ((3, 3), (2, 3), (3, 3), (7, 7)):
        keep_receipt(path, receipt(seq))
        assert read_receipt(path) == receipt(kept)
    assert [item.name for item in tmp_path.iterdir()] == ["receipt"]
    assert path.read_text() == f"{receipt(7)}\n"


@pytest.mark.parametrize("held", [b"", b"\n", b"3", b"3:ab", b"\xff\xfe", b"3:" + b"g" * 64, b"x" * 10_000])
def test_what_is_no_receipt_is_refused_and_stays(tmp_path, held):
    path = tmp_path / "receipt"
    path.write_bytes(held)
    with refuses(DitherError, "receipt"):
        read_receipt(path)
    with refuses(DitherError, "receipt"):
        keep_receipt(path, receipt(9))
    assert path.read_bytes() == held


def test_a_write_that_fails_leaves_the_old_receipt_whole(tmp_path, monkeypatch):
    path = tmp_path / "receipt"
    keep_receipt(path, receipt(3))

    def full(*_):
        raise OSError(28, "No space left on device")

    for step in ("fsync", "rename"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, full)
            with refuses(LedgerError, "receipt"):
                keep_receipt(path, receipt(9))
        assert read_receipt(path) == receipt(3)
        assert [item.name for item in tmp_path.iterdir()] == ["receipt"]


def test_a_place_where_none_can_be_kept_is_refused(tmp_path):
    check_receipt_file(tmp_path / "receipt")
    for place in (tmp_path, tmp_path / "no folder" / "receipt"):
        with refuses(LedgerError, "receipt"):
            check_receipt_file(place)
    with refuses(LedgerError):
        read_receipt(tmp_path)


@pytest.mark.slow
def test_receipts(ledger: dp.ledger.Ledger, place: str, secret: bytes, tmp_path: Any) -> None:
    empty = ledger.head
    assert empty.seq == 0
    ledger.expect(empty)
    ledger.create("visits", limit=dp.PureDP(1))
    receipts = [ledger.head, ledger.charge("visits", dp.PureDP(0.1)).receipt]
    for receipt in [empty, *receipts]:
        assert Receipt.read(str(receipt)) == receipt
        ledger.expect(receipt)
        ledger.verify(receipt)
        dp.ledger.open(place, secret=secret, receipt=receipt).close()
    with dp.ledger.open(tmp_path / "other.sqlite") as older:
        older.create("visits", limit=dp.PureDP(1))
        wrong = [
            *receipts,
            Receipt(99, "0" * 64),
            Receipt(-1, "0" * 64),
            Receipt(10**30, "0" * 64),
            Receipt(0, "1" * 64),
        ]
        for receipt in wrong:
            with refuses(dp.LedgerError, "receipt"):
                older.expect(receipt)
            with refuses(dp.LedgerError, "receipt"):
                older.verify(receipt)
            with refuses(dp.LedgerError, "receipt"):
                dp.ledger.open(tmp_path / "other.sqlite", receipt=receipt)
    for text in (
        "",
        ":",
        "1:",
        "1:" + "g" * 64,
        "-1:" + "0" * 64,
        "²:" + "0" * 64,
        "9" * 5000 + ":" + "0" * 64,
        5,
        None,
    ):
        with refuses(dp.InvalidArgument, "receipt"):
            Receipt.read(text)  # type: ignore[arg-type]
    for thing in ("1:" + "0" * 64, 5, b""):
        with refuses(dp.WrongType, "receipt"):
            ledger.expect(thing)  # type: ignore[arg-type]
