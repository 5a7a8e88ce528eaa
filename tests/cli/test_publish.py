"""``dither publish``, ``synthesize`` and ``series``: dry runs, files, replay, and what is refused before the charge."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dither as dp
from dither.cli.app import app
from dither.publish import counting
from dither.tables.card import toml
from support import refuses

PLAN = """
card = "visits.toml"
tables = [["region"], ["region", "amount"], ["month"]]

[budget]
epsilon = 1
delta = 1e-6

[columns.amount]
edges = [0, 10, 20, 40]

[columns.month]
column = "day"
part = "month"
"""


@pytest.fixture
def plan(visits):
    path = visits.with_name("plan.toml")
    path.write_text(PLAN)
    return path


def left():
    with dp.open("visits.toml", read_only=True) as table:
        return table.left


def test_a_dry_run_shows_every_table_and_charges_nothing(plan, dither):
    code, out, err = dither("publish", plan, "--dry-run")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("cost: (ε, δ) = (1, 1e-06); left: (ε, δ) = (20, 0.001)")
    assert lines[2].split() == ["table", "cells", "expected", "±", "(95", "%)"]
    assert lines[4].split()[:2] == ["region", "2"]
    assert "Rows whose `month` is NULL or none of its 12 keys count in no table." in out
    content = json.loads(dither("publish", plan, "--dry-run", "--json", "--epsilon", "30")[1])
    assert [table["cells"] for table in content["tables"]] == [2, 6, 12]
    assert content["refused"] is not None
    assert not Path("visits.ledger").exists()


@pytest.mark.slow
def test_a_release_writes_a_folder_and_the_same_again_is_free(plan, dither, tmp_path):
    code, out, err = dither("publish", plan, "--output", "tables")
    assert (code, out) == (0, "")
    assert "written to tables: region.csv, region_amount.csv, month.csv, records.parquet, publication.json" in err
    assert left() == dp.ApproxDP(19, 0.000999)
    by_region = pc.read_csv(tmp_path / "tables" / "region.csv")
    records = pq.read_table(tmp_path / "tables" / "records.parquet")
    assert sum(by_region.column("integer").to_pylist()) == records.num_rows
    code, out, err = dither("publish", plan, "--output", "again", "--format", "parquet", "--json")
    assert "paid earlier" in err
    assert out == Path("again", "publication.json").read_text()
    assert left() == dp.ApproxDP(19, 0.000999)
    assert pq.read_table("again/region.parquet").column("value").to_pylist() == by_region.column("value").to_pylist()
    about, replayed = (json.loads(Path(folder, "publication.json").read_text()) for folder in ("tables", "again"))
    assert about["receipt"] == replayed["receipt"]
    content = json.loads(dither("publish", plan, "--json")[1])
    assert [row["region"] for row in content["tables"][0]["rows"]] == ["north", "south"]
    code, out, err = dither("publish", plan)
    assert code == 0
    assert "whole" in out
    assert "--output FOLDER writes all of it" in err
    assert dither("publish", plan, "--again", "--output", "anew")[0] == 0
    assert left() == dp.ApproxDP(18, 0.000998)


@pytest.mark.slow
def test_files_that_exist_stay_and_nothing_is_charged(plan, dither):
    dither("publish", plan, "--dry-run")
    Path("tables").mkdir()
    Path("tables", "region.csv").write_text("mine")
    before = left()
    code, out, err = dither("publish", plan, "--output", "tables")
    assert (code, out) == (2, "")
    assert "--output (region.csv): expected a new file, got one that exists" in err
    assert [path.name for path in Path("tables").iterdir()] == ["region.csv"]
    assert left() == before
    assert dither("publish", plan, "--output", "tables", "--force")[0] == 0
    assert "mine" not in Path("tables", "region.csv").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ("", ["--output", "no/such/folder"], ["--output", "a folder"]),
        ("", ["--format", "xlsx"], ["--format", "csv or parquet"]),
        ("", ["--epsilon", "1", "--rho", "1"], ["rho", "leave one of them out"]),
        ("", ["--epsilon", "30"], ["cost"]),
        ("", ["--rho", "0.1"], ["cost: expected epsilon and delta", "pass --epsilon 2.5 and --delta 1e-6"]),
        ('tables = [["regon"]]', [], ["tables", "'regon'", "write 'region'"]),
        ('tables = [["region"], ["region"]]', [], ["tables", "region twice"]),
        ('tables = [{ by = ["region"], error = "1%" }]', [], ["error of region", "rows = 100000"]),
        ('tables = [{ by = ["region"], error = 1 }]', [], ["error", "this budget would reach region ±"]),
    ],
)
def test_what_can_be_refused_is_refused_before_any_charge(plan, dither, change, options, words):
    if change:
        plan.write_text(PLAN.replace('tables = [["region"], ["region", "amount"], ["month"]]', change))
    before = left()
    code, out, err = dither("publish", plan, *options)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
    assert left() == before
    assert not Path("no").exists()


def test_a_failure_after_the_charge_says_that_it_was_charged(plan, dither, monkeypatch):
    def fails(*_):
        raise RuntimeError("a value")

    monkeypatch.setattr(counting, "table_counts", fails)
    code, out, err = dither("publish", plan, "--output", "tables")
    assert (code, out) == (2, "")
    assert "(ε, δ) = (1, 1e-06) was charged" in err
    assert "a value" not in err
    assert not Path("tables").exists()


@pytest.mark.slow
def test_what_a_limit_leaves_out_is_learned_or_the_limit_is_chosen(plan, dither):
    code, out, err = dither("publish", plan, "--dry-run", "--max-rows", "auto")
    assert (code, err) == (0, "")
    assert out.count("× max_rows") >= 3
    code, out, err = dither("publish", plan, "--max-rows", "auto", "--json")
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert content["max_rows"] >= 1
    assert {*content["left_out"]} == {"share", "low", "high"}
    code, _, err = dither("publish", plan, "--max-rows", 2, "--bias", "--output", "tables")
    assert code == 0
    assert "of the rows are excluded" in err
    said = json.loads(Path("tables/publication.json").read_text())
    assert (said["max_rows"], said["plan"]["max_rows"], said["plan"]["bias"]) == (2, 2, True)
    code, _, err = dither("publish", plan, "--max-rows", "some")
    assert code == 2
    assert "--max-rows: expected a whole number or auto" in err


def test_a_draft_is_a_plan_whose_dry_run_works(visits, dither):
    code, out, err = dither("publish", "--draft", visits)
    assert (code, err) == (0, "")
    assert "visits_plan.toml: a draft, from the card only" in out
    assert "[columns.day]" in Path("visits_plan.toml").read_text()
    assert dither("publish", "visits_plan.toml", "--dry-run")[0] == 0
    assert dither("publish", "--draft", visits)[0] == 2


def test_a_card_or_a_missing_file_in_place_of_a_plan_is_named(plan, visits, dither):
    assert "--draft visits.toml" in dither("publish", visits)[2]
    assert "write 'plan.toml', the nearest name" in dither("publish", "plam.toml")[2]


def test_a_page_is_written_beside_the_tables_and_an_existing_one_stays(plan, dither):
    code, _, err = dither("publish", plan, "--output", "tables", "--report", "page.html")
    assert code == 0, err
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    values = pc.read_csv("tables/region.csv")
    assert all(str(key) in page for key in values.column("region").to_pylist())
    before = left()
    code, _, err = dither("publish", plan, "--report", "page.html", "--again")
    assert code != 0
    assert "--report: expected a new file" in err
    assert left() == before


RULE = "NOT (region = 'north' AND amount < 15)"


@pytest.fixture
def command(visits, dither):
    def run(*options):
        return dither(
            "synthesize", visits, "--epsilon", 1, "--columns", "region,amount", "--constraint", RULE, *options
        )

    return run


def test_a_dry_run_shows_columns_tables_and_cost_and_charges_nothing(command):
    code, out, err = command("--dry-run")
    assert (code, err) == (0, "")
    assert "cost: (ε, δ) = (1, 1e-06); left: " in out
    assert "region: 2 keys, and NULL" in out
    assert "amount: 32 bins" in out
    assert f"every record obeys: {RULE}" in out
    assert "at most 6 rows" in out
    assert "no ledger yet" in out


@pytest.mark.slow
def test_what_a_limit_leaves_out_is_said(command):
    code, _, err = command("--max-rows", "auto", "--rows", 10, "--output", "few.parquet")
    assert code == 0
    assert "chosen privately" in err
    assert "of the rows are excluded" in err
    assert "What the limit excludes will be learned" in command("--max-rows", 2, "--bias", "--dry-run")[1]


@pytest.mark.slow
def test_records_are_written_as_parquet_and_csv_with_a_page_for_one_charge(command, tmp_path):
    code, out, err = command("--output", "records.parquet", "--report", "page.html", "--rows", 400)
    assert (code, out) == (0, "")
    assert "400 synthetic records; cost (ε, δ) = (1, 1e-06); left: " in err
    assert "written to records.parquet" in err
    before = left()
    records = pq.read_table(tmp_path / "records.parquet")
    assert records.column_names == ["region", "amount"]
    rows = records.to_pylist()
    assert any(row["region"] == "north" for row in rows)
    assert not any(row["region"] == "north" and row["amount"] is not None and row["amount"] < 15 for row in rows)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Synthetic records of visits" in page
    assert "NOT (region = &#x27;north&#x27; AND amount &lt; 15)" in page
    code, _, err = command("--output", "records.csv", "--rows", 400)
    assert code == 0
    assert "replayed for free" in err
    assert pc.read_csv(tmp_path / "records.csv").num_rows == 400
    assert left() == before


def test_records_go_to_a_pipe_as_csv(command):
    code, out, err = command("--rows", 30)
    assert code == 0
    assert out.splitlines()[0] == '"region","amount"'
    assert len(out.splitlines()) == 31
    assert "30 synthetic records" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (("--rows", 0), ("rows", "from 1 on")),
        (("--output", "records.txt"), ("--output", ".parquet")),
        (("--target", "day"), ("target", "one of region, amount")),
        (("--constraint", "amount < 3", "--constraint", "amount > 5 AND amount IS NOT NULL"), ("possible record",)),
        (("--constraint", "amount <"), ("Fix:",)),
        (("--where", "colour = 'red'"), ("column", "colour")),
        (("--columns", "who"), ("columns.who",)),
        (("--delta", 2), ("delta",)),
    ],
)
def test_mistakes_are_one_line_and_charge_nothing(command, options, fragments, tmp_path):
    before = left()
    code, out, err = command(*options)
    assert (code, out) == (2, "")
    assert all(fragment in err for fragment in fragments)
    assert err.count("\n") == 1
    assert not (tmp_path / "records.txt").exists()
    assert left() == before


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
        assert table.ledger.verify().entries


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
    assert said.endswith("(ε, δ) = (1, 1e-07) was charged, once for the whole series: releasing it again is free.")
    assert run("daily", "--through", "2026-01-05").exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(series.Series, "_advance", fail)
        said, _ = guard.explained(run("daily", "--through", "2026-01-09").exception)
    assert said.endswith("Nothing was charged.")


def test_a_refused_window_makes_no_ledger(folder):
    assert run("daily", "--window", "0").exit_code != 0
    assert not (folder / "ledger.sqlite").exists()
