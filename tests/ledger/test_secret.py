"""The secret of people's hashes: beside a file, in the environment, or given; never lost in silence."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

import dither as dp
from dither.ledger.secret import VARIABLE
from support import refuses

Ledger = dp.ledger.Ledger


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def paid(place: Any, **how: Any) -> bool:
    """Charge ann once; whether she could pay."""
    with dp.ledger.open(place, **how) as ledger:
        if not ledger.accounts():
            ledger.create("visits", each_person=dp.PureDP(1))
        kept = ledger.charge("visits", dp.PureDP(1), people=["ann"]).kept
        assert kept is not None
        return bool(kept.all())


def test_a_given_secret_is_the_only_one(place: str) -> None:
    given = secrets.token_bytes(32)
    assert paid(place, secret=given)
    with refuses(dp.LedgerError, "another"):
        paid(place, secret=secrets.token_bytes(32))
    assert not paid(place, secret=given), "under another secret everybody would look new"
    for read_only in (False, True):
        with refuses(dp.LedgerError, "another"):
            dp.ledger.open(place, secret=secrets.token_bytes(32), read_only=read_only)


def test_a_variable(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = secrets.token_bytes(32)
    monkeypatch.setenv(VARIABLE, given.hex() + "\n")
    assert paid(place)
    assert not paid(place)
    assert not paid(place, secret=given)
    monkeypatch.setenv(VARIABLE, secrets.token_hex(32))
    with refuses(dp.LedgerError, "another"):
        paid(place)
    for wrong in ("", "ab", "g" * 64, given.hex()[:-1], given.hex() + "00", "ü" * 64):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(dp.InvalidArgument, match=VARIABLE) as error:
            paid(place)
        assert len(wrong) < 3 or wrong not in str(error.value)


def test_wrong_secrets_are_refused(place: str) -> None:
    for wrong in (b"", b"short", bytes(31), bytes(33)):
        with refuses(dp.InvalidArgument, "32 bytes"):
            dp.ledger.open(place, secret=wrong)
    for thing in ("x" * 32, bytearray(32), 5):
        with refuses(dp.WrongType, "32 bytes"):
            dp.ledger.open(place, secret=thing)  # type: ignore[arg-type]


def test_a_server_has_no_file(postgresql: str) -> None:
    """A ledger has a secret from the beginning: without one its history would be anybody's to rewrite."""
    for _ in range(2):
        with pytest.raises(dp.InvalidArgument, match=VARIABLE):
            dp.ledger.open(postgresql)
        dp.ledger.open(postgresql, secret=bytes(32)).close()


def test_a_file_beside_the_ledger(tmp_path: Path) -> None:
    place = tmp_path / "budget.sqlite"
    key = tmp_path / "budget.sqlite.key"
    assert paid(place)
    given = key.read_text()
    assert len(bytes.fromhex(given)) == 32
    assert not paid(place)
    assert not paid(place, secret=bytes.fromhex(given))
    key.unlink()
    with refuses(dp.LedgerError, ".key"):
        paid(place)
    assert not key.exists(), "no new one is made"
    for wrong in ("", "x", given[:-2], "ü" * 40, given + given):
        key.write_text(wrong, "utf-8")
        with refuses(dp.InvalidArgument, "beside"):
            paid(place)
    key.write_bytes(b"\xff\xfe\0")
    with refuses(dp.InvalidArgument, "beside"):
        paid(place)
    key.write_text(secrets.token_hex(32))
    with refuses(dp.LedgerError, "another"):
        paid(place)
    key.unlink()
    key.mkdir()
    with refuses(dp.LedgerError, ".key"):
        paid(place)
    key.rmdir()
    key.write_text(given)
    assert not paid(place)


def test_the_secret_is_not_in_the_ledger(tmp_path: Path) -> None:
    place, given = tmp_path / "budget.sqlite", secrets.token_bytes(32)
    paid(place, secret=given)
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert given not in held
    assert given.hex().encode() not in held
    assert not (tmp_path / "budget.sqlite.key").exists()
