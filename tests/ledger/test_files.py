"""A ledger and its key, or neither: anything else is refused, and making them is one step, wherever it is cut short.

The secret of people's hashes: beside a file, in the environment, or given; never lost in silence.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import dither as dp
from dither.ledger import files
from dither.ledger.files import VARIABLE
from support import each, refuses


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def spent(tmp_path: Path) -> Path:
    """A ledger in which somebody has spent everything."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with dp.ledger.open(folder / "budget.sqlite") as ledger:
        ledger.create("visits", each_person=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(1), people=["ann"])
    return folder / "budget.sqlite"


@pytest.mark.parametrize("key", [True, False])
@pytest.mark.parametrize("size", [None, 0, 1, 15, 16, 17, 99, 100, 512, 4095, 4096, 8192, 20_000])
@pytest.mark.parametrize("how", [{}, {"create": False}, {"read_only": True}, {"secret": bytes(32)}])
def test_what_is_left_of_a_ledger_starts_no_new_one(
    spent: Path, size: int | None, key: bool, how: dict[str, Any]
) -> None:
    whole = spent.read_bytes()
    assert len(whole) > 20_000
    spent.unlink()
    if size is not None:
        spent.write_bytes(whole[:size])
    if not key:
        files.key_file(spent).unlink()
    before = {file.name: file.read_bytes() for file in spent.parent.iterdir()}
    if size is None and not key and how in ({}, {"secret": bytes(32)}):
        with dp.ledger.open(spent, **how) as ledger:
            assert ledger.created, "there is no file and no key: this is a new one, and says so"
        return
    with refuses(dp.LedgerError):
        dp.ledger.open(spent, **how)
    assert {file.name: file.read_bytes() for file in spent.parent.iterdir()} == before


def test_a_ledger_without_its_key_is_refused(spent: Path) -> None:
    files.key_file(spent).unlink()
    for how in ({}, {"read_only": True}, {"create": False}):
        with refuses(dp.LedgerError, ".key"):
            dp.ledger.open(spent, **how)  # type: ignore[arg-type]


STEPS = ["_write_ledger", "write_durably", "rename ledger", "rename key", "sync"]


@each("step", STEPS)
@each("after", [True, False])
@each("given", [True, False])
def test_making_one_may_be_cut_short_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool, given: bool
) -> None:
    spent, secret = tmp_path / "budget.sqlite", bytes(32) if given else None
    owner, name = (os, "rename") if step.startswith("rename") else (files, step)
    real = getattr(owner, name)

    def cut(*arguments: Any, **options: Any) -> None:
        here = not step.startswith("rename") or str(arguments[1]).endswith(".key") == step.endswith("key")
        if not here:
            return real(*arguments, **options)
        if after:
            real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, cut)
    try:
        dp.ledger.open(spent, secret=secret).close()
        assert given
        assert step in ("write_durably", "rename key"), "no key is written for a secret that is given"
    except KeyboardInterrupt:
        pass
    monkeypatch.undo()
    with dp.ledger.open(spent, secret=secret) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(1))
        assert ledger.verify().entries == 2
    left = {file.name for file in tmp_path.iterdir()}
    assert left <= {"budget.sqlite", "budget.sqlite.key", "budget.sqlite-journal"}


def test_a_key_whose_ledger_was_never_finished_is_not_one_whose_ledger_is_lost(spent: Path) -> None:
    """Only a ledger that is complete, unused and made with this key is finished."""
    part = spent.with_name("budget.sqlite.part")
    with dp.ledger.open(spent.with_name("other.sqlite")):
        pass
    spent.with_name("other.sqlite").rename(part)
    spent.unlink()
    with refuses(dp.LedgerError, "forget what was spent"):
        dp.ledger.open(spent)


def test_a_file_with_two_names_is_refused(spent: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    os.link(spent, other / "budget.sqlite")
    shutil.copyfile(files.key_file(spent), files.key_file(other / "budget.sqlite"))
    for one in (spent, other / "budget.sqlite"):
        for read_only in (True, False):
            with refuses(dp.LedgerError, "hard links"):
                dp.ledger.open(one, read_only=read_only)
    (other / "budget.sqlite").unlink()
    dp.ledger.open(spent).close()


def test_a_symbolic_link_leads_to_the_one_file(spent: Path, tmp_path: Path) -> None:
    link, folder = tmp_path / "link.sqlite", tmp_path / "linked"
    link.symlink_to(spent)
    folder.symlink_to(spent.parent)
    for one in (link, folder / spent.name):
        with dp.ledger.open(one) as ledger:
            assert not ledger.created
            assert ledger._store.address.database == str(spent)
            assert not ledger.charge("visits", dp.PureDP(1), people=["ann"]).kept.any()  # type: ignore[union-attr]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link.sqlite", "linked"]


def test_a_file_that_is_mounted_is_refused(spent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "36 35 98:0 /mnt1 {} rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(files, "_MOUNTS", mounts)
    odd = spent.with_name("a b\\ü.sqlite")
    dp.ledger.open(spent.with_name("plain.sqlite")).close()
    with dp.ledger.open(odd) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
    mounts.write_text(line.format("/") + line.format(spent.parent))
    dp.ledger.open(spent).close()
    mounts.write_text(line.format("/") + line.format(spent))
    with refuses(dp.LedgerError, "mount the folder"):
        dp.ledger.open(spent)
    mounts.write_text(line.format(str(odd).replace("\\", "\\134").replace(" ", "\\040")), encoding="utf-8")
    with refuses(dp.LedgerError, "mount the folder"):
        dp.ledger.open(odd)


OPEN = "import sys, dither; dither.ledger.open(sys.argv[1])"
BIND = 'mount --bind "$1" "$2" && exec "$3" -c "$4" "$2"'


def bound(source: str, target: str, *command: str) -> subprocess.CompletedProcess[str]:
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    arguments = [*unshare, "sh", "-c", BIND, "sh", source, target, *command]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=600)


def can_bind() -> bool:
    with tempfile.NamedTemporaryFile() as one, tempfile.NamedTemporaryFile() as other:
        return bool(shutil.which("unshare")) and bound(one.name, other.name, "true", "").returncode == 0


@pytest.mark.parametrize("what", ["file", "folder"] if can_bind() else [])
def test_a_mount_as_containers_have_it(spent: Path, tmp_path: Path, what: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    if what == "folder":
        command = BIND.replace('"$4" "$2"', '"$4" "$2/budget.sqlite"')
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        arguments = [*unshare, "sh", "-c", command, "sh", str(spent.parent), str(target), sys.executable, OPEN]
        assert subprocess.run(arguments, timeout=600).returncode == 0
        return
    shutil.copyfile(files.key_file(spent), target / "budget.sqlite.key")
    (target / "budget.sqlite").touch()
    result = bound(str(spent), str(target / "budget.sqlite"), sys.executable, OPEN)
    assert result.returncode != 0
    assert "mount the folder" in result.stderr


Ledger = dp.ledger.Ledger


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
    with refuses(dp.LedgerError, "a different secret"):
        paid(place, secret=secrets.token_bytes(32))
    assert not paid(place, secret=given), "under another secret everybody would look new"
    for read_only in (False, True):
        with refuses(dp.LedgerError, "a different secret"):
            dp.ledger.open(place, secret=secrets.token_bytes(32), read_only=read_only)


def test_a_variable(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = secrets.token_bytes(32)
    monkeypatch.setenv(VARIABLE, given.hex() + "\n")
    assert paid(place)
    assert not paid(place)
    assert not paid(place, secret=given)
    monkeypatch.setenv(VARIABLE, secrets.token_hex(32))
    with refuses(dp.LedgerError, "a different secret"):
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
    with refuses(dp.LedgerError, "a different secret"):
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
