"""``dither synthesize``: a dry run that reads nothing, files, a page, replays and refusals."""

from __future__ import annotations

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import dither as dp

RULE = "NOT (region = 'north' AND amount < 15)"


@pytest.fixture
def command(visits, dither):
    def run(*options):
        return dither(
            "synthesize", visits, "--epsilon", 1, "--columns", "region,amount", "--constraint", RULE, *options
        )

    return run


def left(path="visits.toml"):
    with dp.open(path, read_only=True) as table:
        return table.left


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
