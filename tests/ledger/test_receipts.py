"""A file with the last receipt: whole, later ones only, and anything else in it refused."""

from __future__ import annotations

import os

import pytest

from dither.errors import DitherError, LedgerError
from dither.ledger import Receipt, receipts
from support import refuses


def receipt(seq: int) -> Receipt:
    return Receipt(seq, f"{seq:064x}")


def test_a_later_receipt_replaces_an_earlier_one_and_never_the_other_way(tmp_path):
    path = tmp_path / "receipt"
    assert receipts.read(path) is None
    for seq, kept in ((3, 3), (2, 3), (3, 3), (7, 7)):
        receipts.keep(path, receipt(seq))
        assert receipts.read(path) == receipt(kept)
    assert [item.name for item in tmp_path.iterdir()] == ["receipt"]
    assert path.read_text() == f"{receipt(7)}\n"


@pytest.mark.parametrize("held", [b"", b"\n", b"3", b"3:ab", b"\xff\xfe", b"3:" + b"g" * 64, b"x" * 10_000])
def test_what_is_no_receipt_is_refused_and_stays(tmp_path, held):
    path = tmp_path / "receipt"
    path.write_bytes(held)
    with refuses(DitherError, "receipt"):
        receipts.read(path)
    with refuses(DitherError, "receipt"):
        receipts.keep(path, receipt(9))
    assert path.read_bytes() == held


def test_a_write_that_fails_leaves_the_old_receipt_whole(tmp_path, monkeypatch):
    path = tmp_path / "receipt"
    receipts.keep(path, receipt(3))

    def full(*_):
        raise OSError(28, "No space left on device")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, full)
            with refuses(LedgerError, "receipt"):
                receipts.keep(path, receipt(9))
        assert receipts.read(path) == receipt(3)
        assert [item.name for item in tmp_path.iterdir()] == ["receipt"]


def test_a_place_where_none_can_be_kept_is_refused(tmp_path):
    receipts.check_writable(tmp_path / "receipt")
    for place in (tmp_path, tmp_path / "no folder" / "receipt"):
        with refuses(LedgerError, "receipt"):
            receipts.check_writable(place)
    with refuses(LedgerError):
        receipts.read(tmp_path)
