"""Disks that are full, and files that may not be written: one clear error, nothing lost, and on when it is over."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from ledger_state import spent
from throwaway import Server
from work import COST, opened, together

import dither as dp
from support import refuses

pytestmark = pytest.mark.slow

OWN_MOUNTS = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


def mounted(folder: Path) -> list[str]:
    """A command that runs another in a world where the folder is a small disk of its own."""
    return [*OWN_MOUNTS, "sh", "-c", f'mount -t tmpfs -o size=400k tmpfs "{folder}" && exec "$@"', "sh"]


def can_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = [*mounted(Path(folder)), "true"]
        return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True).returncode == 0


# the first two work everywhere; where a small disk can be mounted, it is filled as well
@pytest.mark.parametrize("way", ["file size", "pages", *(["tmpfs"] if can_mount() else [])])
def test_a_full_disk(tmp_path: Path, way: str) -> None:
    within = mounted(tmp_path) if way == "tmpfs" else ()
    (result,) = together(1, "full_disk", place=str(tmp_path / "budget.sqlite"), way=way, within=within)
    assert result["errors"], "the disk was never full"
    expected = "a disk that fails" if way == "file size" else "a full disk"
    assert all(f"got {expected}" in error for error in result["errors"])
    assert result["readable"]
    assert result["entries"] == 1 + result["paid"]


@pytest.mark.parametrize("what", ["file", "folder", "both"])
def test_what_may_not_be_written(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    place = str(folder / "budget.sqlite")
    with opened(place) as ledger:
        ledger.create("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(COST), people=["ann"])
    (result,) = together(1, "forbidden", place=place, what=what)
    assert len(result["errors"]) >= 2
    assert all("one that is read-only" in error or "cannot be opened" in error for error in result["errors"])
    assert result["entries"] == 3
    with opened(place) as ledger:
        assert spent(ledger) == 2 * COST


@pytest.mark.parametrize("journal", [True, False])
def test_everything_is_read_where_nothing_may_be_written(tmp_path: Path, journal: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    place = folder / "budget.sqlite"
    with dp.ledger.open(place) as ledger:
        ledger.create("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(COST), people=["ann"])
    if not journal:
        (folder / "budget.sqlite-journal").unlink()
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    (result,) = together(1, "read_only", place=str(place))
    folder.chmod(0o755)
    *read, errors = result
    assert read == [2, 2, True, False, False]
    assert len(errors) == 3
    assert all("read_only=True" in error for error in errors)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_new_ledger_where_nothing_may_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (result,) = together(1, "forbidden", place=str(folder / "budget.sqlite"), what="new")
    assert len(result["errors"]) == 1


def test_a_server_that_may_not_write(server: Server, postgresql: str) -> None:
    name = postgresql.split("?")[0].rsplit("/", 1)[1]
    with opened(postgresql) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        ledger.close()
        server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        for _ in range(2):
            with refuses(dp.LedgerError, "got one that is read-only"):
                ledger.charge("visits", dp.PureDP(COST), key="k")
        assert ledger.left("visits") == dp.PureDP(1)
        server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
        ledger.close()
        ledger.charge("visits", dp.PureDP(COST), key="k")
        assert ledger.verify().entries == 2


def test_a_server_whose_disk_is_full(server: Server, postgresql: str) -> None:
    """No file may grow beyond what its write-ahead log needs."""
    size = int(server.execute("SELECT setting FROM pg_settings WHERE name = 'wal_segment_size'")[0][0])

    def answer() -> bytes:
        return os.urandom(2_000_000)

    with opened(postgresql) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        server.halt()
        server.start(size)
        ledger.close()
        cause, paid = None, 0
        try:
            for paid in range(1000):
                ledger.release("visits", dp.PureDP(COST), answer, key=f"{paid}")
        except dp.LedgerError as error:
            cause = error.__cause__
        finally:
            server.halt()
            server.start()
        assert "File too large" in str(cause)
        ledger.close()
        assert spent(ledger) == (paid + 1) * COST
        ledger.release("visits", dp.PureDP(COST), answer, key=f"{paid}")
        assert spent(ledger) == (paid + 2) * COST, "what was not recorded is paid again"
        assert ledger.verify().entries == 2 + 2 * (paid + 1)
