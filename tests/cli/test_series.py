"""``dither series``: the card's section, a dry run, a release, its files and its page."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import dither as dp
from dither.cli.app import app
from dither.tables.card import toml
from support import refuses

CARD = """
name = "visits"
source = "visits.csv"
unit = "who"
ledger = "ledger.sqlite"
budget = { epsilon = 2, delta = 1e-6 }

[columns]
who = "integer"
day = "date"
amount = { type = "number", bounds = [0, 100] }
region = { type = "text", keys = ["north", "south"] }

[series.daily]
over = "day"
column = "day"
horizon = 30
start = 2026-01-01
epsilon = 1
delta = 1e-7
max_participations = 3
groups = ["region"]
where = "amount >= 0"
aggregates = { n = "count", spend = "sum(amount)", who = "people", paid = "count(amount)" }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "visits.toml").write_text(CARD)
    lines = [f"{i},2026-01-{i % 9 + 1:02d},{i % 50},{'north' if i % 3 else 'south'}" for i in range(90)]
    (tmp_path / "visits.csv").write_text("\n".join(["who,day,amount,region", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["series", "visits.toml", *words])


@pytest.mark.slow
def test_a_release_prints_and_writes_and_is_the_same_again(folder):
    result = run("daily", "--through", "2026-01-05", "--output", "a.json", "--report", "a.html", "--plot", "a.svg")
    assert result.exit_code == 0, result.output
    assert "2026-01-05" in result.output
    assert "left: " in result.output
    points = json.loads((folder / "a.json").read_text())["rows"]
    assert len(points) == 10
    assert set(points[0]) >= {"day", "region", "n", "n_error", "spend", "who", "paid"}
    page = (folder / "a.html").read_text()
    assert page.count("<polygon") == 8
    assert "<script" not in page
    assert (folder / "a.svg").read_text().startswith("<?xml")
    again = json.loads(run("daily", "--through", "2026-01-07", "--json").output)
    assert again["rows"][:10] == points
    assert len(again["rows"]) == 14
    assert "each day" not in run("daily", "--window", "1", "--through", "2026-01-07").output
    assert dp.ledger.open(folder / "ledger.sqlite").left("visits") == dp.ApproxDP(1, 1e-6 - 1e-7)
    with dp.open("visits.toml") as table:
        assert table.ledger.verify().people


def test_a_dry_run_charges_nothing(folder):
    result = run("daily", "--dry-run")
    assert result.exit_code == 0
    assert "once for all 30 periods" in result.output
    assert not (folder / "ledger.sqlite").exists()
    assert len(json.loads(run("daily", "--dry-run", "--json").output)["errors"]["n"]) == 30


def test_a_series_that_is_not_there_is_refused(folder):
    result = run("dayly")
    assert isinstance(result.exception, dp.InvalidArgument)
    assert "daily" in str(result.exception)


def test_the_section_does_not_change_what_questions_are_recorded_by(folder):
    with dp.open("visits.toml") as table:
        first = table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=0.5)
    (folder / "visits.toml").write_text(CARD.partition("[series")[0])
    with dp.open("visits.toml") as table:
        assert table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=0.5).rows == first.rows


MISTAKES = {
    'over = "day"': 'over = "year"', 'column = "day"': 'column = "amount"', "horizon = 30": "horizon = 0",
    "start = 2026-01-01": 'start = "soon"', "epsilon = 1": "epsilon = 0",
    'groups = ["region"]': 'groups = ["nowhere"]',
    'n = "count"': 'n = "mean(amount)"', 'where = "amount >= 0"': "where = 3", "max_participations = 3": "max_days = 3",
    'who = "people"': 'who = "people(who)"', 'spend = "sum(amount)"': 'spend = "sum"',
}  # fmt: skip


@pytest.mark.parametrize("right", MISTAKES)
def test_mistakes_in_the_section_are_named(right, tmp_path):
    before, section = CARD.split("[series.daily]")
    assert right in section
    (tmp_path / "visits.toml").write_text(before + "[series.daily]" + section.replace(right, MISTAKES[right]))
    with refuses(dp.InvalidArgument, "series.daily"):
        toml.read(tmp_path / "visits.toml")


def test_a_series_that_fails_after_its_charge_does_not_say_that_nothing_was_charged(folder, monkeypatch):
    """What was charged is a field of the ledger's entry: a series has no words, and is no publication."""
    from dither.cli import guard
    from dither.stream import series

    def fail(*_args, **_more):
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(series.Series, "_advance", fail)
        said, status = guard.explained(run("daily", "--through", "2026-01-05").exception)
    assert status == 2
    assert said.endswith(
        "(ε, δ) = (1, 1e-07) was charged, once for the whole series: released again, it goes on for free."
    )
    assert run("daily", "--through", "2026-01-05").exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(series.Series, "_advance", fail)
        said, _ = guard.explained(run("daily", "--through", "2026-01-09").exception)
    assert said.endswith("Nothing was charged.")
