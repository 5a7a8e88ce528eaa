"""``dither publish``: a dry run, a release into a folder, replay, a draft, and what goes wrong before the charge."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.publish import counting

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
    with dp.open("visits.toml") as table:
        return str(table.left)


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
    assert left() == "(ε, δ) = (19, 0.000999)"
    by_region = pc.read_csv(tmp_path / "tables" / "region.csv")
    records = pq.read_table(tmp_path / "tables" / "records.parquet")
    assert sum(by_region.column("integer").to_pylist()) == records.num_rows
    code, out, err = dither("publish", plan, "--output", "again", "--format", "parquet", "--json")
    assert "paid earlier" in err
    assert out == Path("again", "publication.json").read_text()
    assert left() == "(ε, δ) = (19, 0.000999)"
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
    assert left() == "(ε, δ) = (18, 0.000998)"


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
        ("", ["--rho", "0.1"], ["cost: expected epsilon and delta", "pass --epsilon 2.5 and --delta 1e-06"]),
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
