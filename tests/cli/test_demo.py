"""The made-up shop: the same every time, asked from the card to the page, twice in a row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dither.cli import demo
from dither.cli.app import main

pytestmark = pytest.mark.slow


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dither.cli.app", "demo", "--folder", str(folder), *more],
        capture_output=True, text=True, timeout=120, encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "110"},
    )  # fmt: skip


def test_visits_are_the_same_every_time_and_look_like_a_shop():
    visits = demo.make_visits(20_000)
    assert visits.equals(demo.make_visits(20_000))
    assert visits.column_names == ["customer", "day", "region", "product", "amount"]
    amount = visits["amount"].to_numpy()
    assert amount.min() >= 2
    assert 10 < np.median(amount) < amount.mean() < 30
    assert set(visits["region"].to_pylist()) == set(demo.REGIONS)
    assert 300 < len(set(visits["product"].to_pylist())) <= demo.PRODUCTS
    item = np.bincount(visits["customer"].to_numpy())
    assert 5 < item[item > 0].mean() < 8


def test_the_demo_runs_twice_and_leaves_a_page(tmp_path):
    folder = tmp_path / "a folder's"
    for _ in range(2):
        done = run(folder, "--rows", "20000")
        assert (done.returncode, done.stderr) == (0, "")
    for part in (
        "$ dither init ", "$ dither check ", "complete; source and card agree", "$ dither explain ", "$ dither query ",
        "--report", "truth*", "nobody else would see", "are not shown", "paid earlier: this is the recorded answer",
        "dither: cost: expected at most what dataset 'visits' has left", "$ dither budget ", "verified: 7 entries",
        "picture: ", "page: ", "The next demo starts all over",
    ):  # fmt: skip
        assert part in done.stdout
    names = {item.name for item in folder.iterdir()}
    assert {*demo.FILES, demo.LEDGER, demo.MARKER} <= names
    assert "<script" not in (folder / "regions.html").read_text(encoding="utf-8")
    assert (folder / "regions.svg").read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.parametrize(
    "there", [["mine.txt"], ["visits.parquet", "visits.toml"], [demo.LEDGER, f"{demo.LEDGER}.key"]]
)
@pytest.mark.parametrize("marked", [False, True])
def test_a_folder_with_other_things_in_it_is_refused_and_left_as_it_is(there, marked, tmp_path, monkeypatch, capsys):
    """Whatever their names: a table of real people may be called as the demo's is."""
    names = [*there, demo.MARKER, "mine.txt"] if marked else there
    for name in names:
        (tmp_path / name).write_text(f"mine: {name}")
    monkeypatch.setattr(sys, "argv", ["dither", "demo", "--rows", "1000", "--folder", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "--folder" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: f"mine: {name}" for name in names}


def interrupted(folder: Path, line: str, out: Path) -> int:
    """The status of a demo that is interrupted once it has printed a line."""
    with out.open("w") as printed:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "dither.cli.app", "demo", "--rows", "200000", "--folder", str(folder)],
            stdout=printed, stderr=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        until = time.monotonic() + 120
        while line not in out.read_text(encoding="utf-8") and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    return process.returncode


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_ends_it_and_the_next_one_works(tmp_path):
    """Interrupted ever later in one folder: each demo comes further than the one before, and the last to its end."""
    folder, out = tmp_path / "d", tmp_path / "out.txt"
    for line in ("$ dither check", "$ dither query", "truth*", "5. Quantiles"):
        assert interrupted(folder, line, out) in (130, -signal.SIGINT)  # to a shell both are 130
        printed = out.read_text(encoding="utf-8")
        assert line in printed
        assert "The next demo starts all over" not in printed
    assert run(folder, "--rows", "1000").returncode == 0
