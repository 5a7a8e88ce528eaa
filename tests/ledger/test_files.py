"""A ledger and its key, or neither: anything else is refused, and making them is one step, wherever it is cut short."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import dither as dp
from dither.ledger import files
from dither.ledger.secret import VARIABLE
from support import each, refuses


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
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
    place: Path, size: int | None, key: bool, how: dict[str, Any]
) -> None:
    whole = place.read_bytes()
    assert len(whole) > 20_000
    place.unlink()
    if size is not None:
        place.write_bytes(whole[:size])
    if not key:
        files.key_file(place).unlink()
    before = {file.name: file.read_bytes() for file in place.parent.iterdir()}
    if size is None and not key and how in ({}, {"secret": bytes(32)}):
        with dp.ledger.open(place, **how) as ledger:
            assert ledger.created, "there is no file and no key: this is a new one, and says so"
        return
    with refuses(dp.LedgerError):
        dp.ledger.open(place, **how)
    assert {file.name: file.read_bytes() for file in place.parent.iterdir()} == before


def test_a_ledger_without_its_key_is_refused(place: Path) -> None:
    files.key_file(place).unlink()
    for how in ({}, {"read_only": True}, {"create": False}):
        with refuses(dp.LedgerError, ".key"):
            dp.ledger.open(place, **how)  # type: ignore[arg-type]


STEPS = ["_write_ledger", "_write_key", "rename ledger", "rename key", "_sync"]


@each("step", STEPS)
@each("after", [True, False])
@each("given", [True, False])
def test_making_one_may_be_cut_short_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool, given: bool
) -> None:
    place, secret = tmp_path / "budget.sqlite", bytes(32) if given else None
    owner, name = (os, "rename") if step.startswith("rename") else (files, step)
    real = getattr(owner, name)

    def cut(*arguments: Any) -> None:
        here = not step.startswith("rename") or str(arguments[1]).endswith(".key") == step.endswith("key")
        if not here:
            return real(*arguments)
        if after:
            real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, cut)
    try:
        dp.ledger.open(place, secret=secret).close()
        assert given
        assert step.endswith("key"), "no key is written for a secret that is given"
    except KeyboardInterrupt:
        pass
    monkeypatch.undo()
    with dp.ledger.open(place, secret=secret) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(1))
        assert ledger.verify().entries == 2
    left = {file.name for file in tmp_path.iterdir()}
    assert left <= {"budget.sqlite", "budget.sqlite.key", "budget.sqlite-journal"}


def test_a_key_whose_ledger_was_never_finished_is_not_one_whose_ledger_is_lost(place: Path) -> None:
    """Only a ledger that is complete, unused and made with this key is finished."""
    part = place.with_name("budget.sqlite.part")
    with dp.ledger.open(place.with_name("other.sqlite")):
        pass
    place.with_name("other.sqlite").rename(part)
    place.unlink()
    with refuses(dp.LedgerError, "forget what was spent"):
        dp.ledger.open(place)


def test_a_file_with_two_names_is_refused(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    os.link(place, other / "budget.sqlite")
    shutil.copyfile(files.key_file(place), files.key_file(other / "budget.sqlite"))
    for one in (place, other / "budget.sqlite"):
        for read_only in (True, False):
            with refuses(dp.LedgerError, "hard links"):
                dp.ledger.open(one, read_only=read_only)
    (other / "budget.sqlite").unlink()
    dp.ledger.open(place).close()


def test_a_symbolic_link_leads_to_the_one_file(place: Path, tmp_path: Path) -> None:
    link, folder = tmp_path / "link.sqlite", tmp_path / "linked"
    link.symlink_to(place)
    folder.symlink_to(place.parent)
    for one in (link, folder / place.name):
        with dp.ledger.open(one) as ledger:
            assert not ledger.created
            assert ledger._store.place.database == str(place)
            assert not ledger.charge("visits", dp.PureDP(1), people=["ann"]).kept.any()  # type: ignore[union-attr]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link.sqlite", "linked"]


def test_a_file_that_is_mounted_is_refused(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "36 35 98:0 /mnt1 {} rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(files, "_MOUNTS", mounts)
    odd = place.with_name("a b\\ü.sqlite")
    dp.ledger.open(place.with_name("plain.sqlite")).close()
    with dp.ledger.open(odd) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
    mounts.write_text(line.format("/") + line.format(place.parent))
    dp.ledger.open(place).close()
    mounts.write_text(line.format("/") + line.format(place))
    with refuses(dp.LedgerError, "mount the folder"):
        dp.ledger.open(place)
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
def test_a_mount_as_containers_have_it(place: Path, tmp_path: Path, what: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    if what == "folder":
        command = BIND.replace('"$4" "$2"', '"$4" "$2/budget.sqlite"')
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        arguments = [*unshare, "sh", "-c", command, "sh", str(place.parent), str(target), sys.executable, OPEN]
        assert subprocess.run(arguments, timeout=600).returncode == 0
        return
    shutil.copyfile(files.key_file(place), target / "budget.sqlite.key")
    (target / "budget.sqlite").touch()
    result = bound(str(place), str(target / "budget.sqlite"), sys.executable, OPEN)
    assert result.returncode != 0
    assert "mount the folder" in result.stderr
