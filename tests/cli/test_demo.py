"""The made-up shop: the same every time, asked from the card to the page, twice in a row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from dither.cli import demo
from dither.cli.app import main
from dither.randomness import SeededSource, drawn_from
from dither.tables import table as session
from support import eventually

pytestmark = pytest.mark.slow


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dither", "demo", "--folder", str(folder), *more],
        capture_output=True, text=True, timeout=600, encoding="utf-8",
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


def test_the_truth_beside_the_answers_does_not_contradict_the_error(tmp_path):
    """The table that a visitor sees first: of 40 seeded answers each region's truth is within the ± of so many that
    fewer would have a probability below 1e-6 at 95 %. A limit that leaves out more than the ± covers none."""
    visits = demo.make_visits(200_000)
    pq.write_table(visits, tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(demo.CARD.replace("epsilon = 2", "epsilon = 2000"), encoding="utf-8")
    with duckdb.connect() as engine:
        engine.register("visits", visits)
        truth = {region: number for region, number, _ in engine.execute(demo.BY_REGION).fetchall()}
    missed = dict.fromkeys(truth, 0)
    with session.open(str(tmp_path / "visits.toml")) as table, drawn_from(SeededSource(1)):
        for _ in range(40):
            answer = table.sql(demo.BY_REGION).release(0.5, again=True)
            for region, value, error in zip(answer["region"], answer["visits"], answer.error("visits"), strict=True):
                missed[region] += abs(value - truth[region]) > error
    assert max(missed.values()) <= stats.binom.isf(1e-6, 40, 0.05)


def test_the_demo_runs_twice_and_leaves_a_page(tmp_path):
    folder = tmp_path / "a folder's"
    for _ in range(2):
        done = run(folder, "--rows", "20000")
        assert (done.returncode, done.stderr) == (0, "")
    for part in (
        "$ dither init ", "$ dither check ", "complete; source and card agree", "$ dither explain ", "$ dither query ",
        "--report", "truth*", "never shown otherwise", "a group needs", "paid earlier: this is the recorded answer",
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


HOLDING = """
import sys, time
from dither.cli.app import main

class Holding:
    def __init__(self, out, line):
        self.out, self.line, self.text = out, line, ""

    def write(self, text):
        self.text += text
        written = self.out.write(text)
        self.out.flush()
        if self.line in self.text:
            time.sleep(600)
        return written

    def __getattr__(self, name):
        return getattr(self.out, name)

sys.stdout = Holding(sys.stdout, sys.argv.pop(1))
main()
"""
"""The command line, which waits for its interrupt once it has printed a line: it would be at its end before long."""


def interrupted(folder: Path, line: str, out: Path) -> int:
    """The status of a demo that is interrupted once it has printed a line."""
    with out.open("w") as printed:
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", HOLDING, line, "demo", "--rows", "1000", "--folder", str(folder)],
            stdout=printed, stderr=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        eventually(lambda: line in out.read_text(encoding="utf-8") or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=600)
    return process.returncode


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_ends_it_and_the_next_one_works(tmp_path):
    """Interrupted ever later in one folder: each demo comes further than the one before, and the last to its end."""
    folder, out = tmp_path / "d", tmp_path / "out.txt"
    for line in ("$ dither check", "5. Quantiles"):
        assert interrupted(folder, line, out) in (130, -signal.SIGINT)  # to a shell both are 130
        printed = out.read_text(encoding="utf-8")
        assert line in printed
        assert "The next demo starts all over" not in printed
    assert run(folder, "--rows", "1000").returncode == 0
