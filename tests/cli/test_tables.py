"""From a file to an answer on the command line: init, edit, check, query, explain, budget; and whatever goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import dither as dp

pytestmark = pytest.mark.slow

COUNT = "SELECT COUNT(*) AS n FROM visits"
GROUPS = "SELECT region, COUNT(*) AS n, AVG(amount) AS spend FROM visits GROUP BY region"


def left(card: Path) -> str:
    with dp.open(card) as table:
        return str(table.left)


def test_a_draft_is_written_beside_its_source(visits, dither):
    visits.unlink()
    code, out, err = dither("init", "visits.csv", "--unit", "who")
    assert (code, err) == (0, "")
    assert "visits.toml" in out
    assert visits.exists()


def test_from_a_file_to_an_answer(visits, dither):
    code, out, err = dither("check", visits)
    assert (code, err) == (0, "")
    assert "source and card agree" in out
    code, out, err = dither("explain", visits, GROUPS, "--epsilon", "1")
    assert (code, err) == (0, "")
    assert "Laplace noise" in out
    assert "groups: 2, all public" in out
    assert dither("query", visits, GROUPS, "--epsilon", "1", "--dry-run") == (0, out, "")
    assert left(visits) == "(ε, δ) = (20, 0.001)"
    code, out, err = dither("query", visits, GROUPS, "--epsilon", "1")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["region", "n", "±", "spend", "±"]
    assert "cost: ε = 1" in out
    code, again, _ = dither("query", visits, GROUPS, "--epsilon", "1")
    assert "paid earlier" in again
    assert again.splitlines()[:4] == out.splitlines()[:4]
    code, out, err = dither("budget", visits, "--history", "--verify")
    assert (code, err) == (0, "")
    assert "visits" in out
    assert "verified" in out
    assert "19" in out


def test_every_format(visits, dither, tmp_path):
    ask = ("query", visits, GROUPS, "--epsilon", "1")
    content = json.loads(dither(*ask, "--format", "json")[1])
    assert [row["region"] for row in content["rows"]] == ["north", "south"]
    assert dither(*ask, "--format", "csv")[1].splitlines()[0] == "region,n,spend,n_error,spend_error"
    for name in ("a.json", "a.csv", "a.parquet"):
        code, out, err = dither(*ask, "--output", name)
        assert (code, out) == (0, "")
        assert err.startswith("cost: ε = 1 (paid earlier")
        assert err.endswith(f"written to {name}\n")
    assert pq.read_table(tmp_path / "a.parquet").column("n").to_pylist() == [row["n"] for row in content["rows"]]
    code, _, err = dither(*ask, "--plot", "a.png")
    assert (code, err) == (0, "")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert dither(*ask, "--format", "parquet", "--output", "odd.name")[0] == 0
    assert left(visits) == "(ε, δ) = (19, 0.001)"


def test_a_plot_shows_the_first_number_that_sql_makes(visits, dither, tmp_path):
    sql = "SELECT region, 2 * n AS twice FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region))"
    code, _, err = dither("query", visits, sql, "--epsilon", "1", "--plot", "a.png")
    assert (code, err) == (0, "")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    texts = sql.replace("2 * n AS twice", "CAST(n AS VARCHAR) AS n")
    code, _, err = dither("query", visits, texts, "--epsilon", "1", "--plot", "b.png")
    assert code == 2
    assert "a column of noisy numbers" in err
    assert left(visits) == "(ε, δ) = (19, 0.001)"


def test_asking_again_by_another_name_and_by_another_analyst(visits, dither):
    ask = ("query", visits, COUNT, "--epsilon", "1")
    for more in ((), ("--again",), ("--again",), ("--key", "mine"), ("--analyst", "a"), ("--integer",)):
        assert dither(*ask, *more)[0] == 0
    assert left(visits) == "(ε, δ) = (14, 0.001)"
    assert "paid earlier" in dither(*ask, "--key", "mine")[1]
    code, out, err = dither("query", visits, COUNT, "--epsilon", "0.5", "--key", "mine")
    assert (code, out) == (2, "")
    assert "another request" in err


def test_accuracy_first(visits, dither):
    code, out, _ = dither("query", visits, COUNT, "--error", "50")
    assert code == 0
    assert float(out.splitlines()[2].split()[1]) <= 50
    assert "ε = 0.3" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("query", "visits.toml", "DROP TABLE visits", "--epsilon", "1"), "SELECT"),
        (("query", "visits.toml", "SELECT COUNT(*) FROM '/etc/passwd'", "--epsilon", "1"), "visits"),
        (("query", "visits.toml", "SELECT 1", "--epsilon", "1"), "SQL"),
        (("query", "visits.toml", "SELECT day, COUNT(*) FROM visits GROUP BY amount", "--epsilon", "1"), ""),
        (("query", "visits.toml", f"{COUNT} WHERE {'(' * 10_000}1 = 1{')' * 10_000}", "--epsilon", "1"), ""),
        (("query", "visits.toml", COUNT), "epsilon"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--error", "2"), "both"),
        (("query", "visits.toml", COUNT, "--epsilon", "nan"), "epsilon"),
        (("query", "visits.toml", COUNT, "--epsilon", "100"), "left"),
        (("query", "visits.toml", COUNT, "--epsilon", "x"), "epsilon"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--max-groups", "many"), "--max-groups"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--noise", "none"), "noise"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--format", "xlsx"), "--format"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--format", "parquet"), "--output"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--output", "a.xlsx"), "--output"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--output", "nowhere/a.json"), "--output"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--plot", "a.doc"), "--plot"),
        (("query", "visits.toml", COUNT, "--epsilon", "1", "--plot", "nowhere/a.png"), "--plot"),
        (("query", "visits.toml", COUNT + "\udcff", "--epsilon", "1"), "Unicode"),
        (("query", "nosuch.toml", COUNT, "--epsilon", "1"), "card"),
        (("query", "visits.csv", COUNT, "--epsilon", "1"), ""),
        (("explain", "visits.toml", "SELECT", "--epsilon", "1"), ""),
        (("check", "nosuch.toml"), "card"),
        (("check", "visits.csv"), "TOML"),
        (("init", "nosuch.csv"), "no such file"),
        (("init", "visits.csv", "--unit", "nosuch"), "nosuch"),
        (("init", "visits.csv", "--unit", "who"), "exists"),
        (("init", "visits.csv", "--unit", "who", "--output", "nowhere/x.toml"), ""),
        (("budget", "visits.toml"), "ledger"),
        (("budget", "nosuch.toml"), "card"),
    ],
    ids=lambda content: " ".join(content)[:60] if isinstance(content, tuple) else "",
)
def test_whatever_is_wrong_is_one_line_and_costs_nothing(visits, dither, arguments, said):
    code, out, err = dither(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("dither: ")
    assert len(err.strip().splitlines()) == 1
    assert said in err
    assert left(visits) == "(ε, δ) = (20, 0.001)"


def test_a_card_or_a_file_that_is_wrong(visits, dither):
    good = visits.read_text(encoding="utf-8")
    for wrong in (
        good.replace("[0, 40]", "[40, 0]"),
        good.replace("epsilon = 20", "epsilon = -1"),
        good.replace('unit = "who"', 'unit = "amount"'),
        good.replace('type = "date"', 'type = "time"'),
        good.replace("[budget]\nepsilon = 20\ndelta = 1e-3", ""),
        good.replace('ledger = "visits.ledger"', ""),
        good.replace("visits.csv", "nosuch.csv"),
        good + "[columns.nosuch]\ntype = 'text'\n",
        "]",
        "",
    ):
        visits.write_text(wrong, encoding="utf-8")
        code, out, err = dither("query", visits, COUNT, "--epsilon", "1")
        assert (code, out) == (2, "")
        assert len(err.strip().splitlines()) == 1
    visits.write_text(good, encoding="utf-8")
    assert left(visits) == "(ε, δ) = (20, 0.001)"


def test_cells_of_the_wrong_type_are_null_and_say_nothing(visits, dither):
    """A cell that cannot be read is NULL, as an empty one is; the answer is as long and as wide as ever."""
    with open("visits.csv", "a", encoding="utf-8") as out:
        out.write("x,north,much,someday\n,,,\n7,north,,2024-13-45\n")
    code, out, err = dither("query", visits, GROUPS, "--epsilon", "1", "--format", "json")
    assert (code, err.splitlines()[0]) == (0, "cost: ε = 1")
    assert not any(cell in err for cell in ("much", "someday", "2024-13"))
    assert len(json.loads(out)["rows"]) == 2


def test_an_interrupt_leaves_the_ledger_right(visits, dither, monkeypatch):
    from dither.tables.execute import run

    real = run.answer

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "answer", stop)
    code, out, err = dither("query", visits, COUNT, "--epsilon", "1")
    assert (code, out) == (130, "")
    assert "ε = 1 was charged" in err
    assert len(err.splitlines()) == 1
    assert left(visits) == "(ε, δ) = (19, 0.001)"
    monkeypatch.setattr(run, "answer", real)
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    assert left(visits) == "(ε, δ) = (18, 0.001)"  # there was no answer yet, so it is paid again
    assert dither("budget", visits, "--verify")[0] == 0


def test_what_a_program_reads_goes_to_stdout_and_the_rest_to_stderr(visits, dither):
    ask = ("query", visits, GROUPS, "--epsilon", "1")
    _, out, err = dither(*ask, "--format", "json")
    content = json.loads(out)
    assert content["replayed"] is False
    assert content["receipt"] == dither("budget", visits)[1].split()[-1]
    assert "cost: ε = 1\nleft: (ε, δ) = (19, 0.001)\n" in err
    _, out, err = dither(*ask, "--format", "json")
    assert json.loads(out)["replayed"] is True
    assert len(dither(*ask, "--format", "csv")[1].splitlines()) == 3


@pytest.mark.parametrize(("format", "name"), [("json", "a.csv"), ("csv", "a.PARQUET"), ("parquet", "a.json")])
def test_a_format_that_the_name_of_the_file_contradicts_is_refused(format, name, visits, dither):
    code, out, err = dither("query", visits, GROUPS, "--epsilon", "1", "--format", format, "--output", name)
    assert (code, out) == (2, "")
    assert f"ends in .{format}, as --format says" in err
    assert not Path("visits.ledger").exists()


def test_an_analyst_sees_both_accounts_and_what_would_be_refused(visits, dither):
    text = visits.read_text(encoding="utf-8").replace("delta = 1e-3", "delta = 1e-3\neach_analyst = 2")
    visits.write_text(text, encoding="utf-8")
    ask = (visits, "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1.5")
    ann = ("--analyst", "ann")
    for command in (("explain", *ask, *ann), ("query", *ask, *ann, "--dry-run")):  # no ledger yet
        out = dither(*command)[1]
        assert "left: you ε = 2; the table (ε, δ) = (20, 0.001) (no ledger yet)" in out
        assert "would be refused" not in out
    assert "would be refused: " in dither("explain", *ask[:2], "--epsilon", "21")[1]
    assert "left: you ε = 0.5; the table (ε, δ) = (18.5, 0.001)" in dither("query", *ask, *ann)[1]
    for other, refused in (("ann", True), ("bob", False)):
        out = dither("explain", *ask, "--analyst", other)[1]
        assert ("would be refused: cost: expected at most what analyst 'ann'" in out) == refused
        assert (dither("query", *ask, "--analyst", other, "--again")[0] == 2) == refused


def test_more_than_each_person_has_for_life_would_be_refused(visits, dither):
    text = visits.read_text(encoding="utf-8").replace("delta = 1e-3", 'delta = 1e-3\nper = "person"')
    visits.write_text(text, encoding="utf-8")
    ask = (visits, "SELECT COUNT(*) AS n FROM visits", "--epsilon")
    for _ in range(2):  # without a ledger, and with one
        assert "would be refused: " in dither("explain", *ask, "21")[1]
        assert "would be refused: " not in dither("explain", *ask, "20")[1]
        assert dither("query", *ask, "21")[0] == 2
        assert dither("query", *ask, "1")[0] == 0


def test_limits_that_choose_themselves_and_what_stated_ones_leave_out(visits, dither):
    question = "SELECT COUNT(*) AS n FROM visits"
    code, out, _ = dither("query", visits, question, "--epsilon", "0.1", "--max-rows", "auto")
    assert code == 0
    assert "low by" not in out  # what the limit leaves out is in the answer, and in its ±
    code, out, err = dither("query", visits, question, "--epsilon", "0.1", "--bias", "--format", "json")
    assert code == 0
    assert "n_low_by_max" in json.loads(out)["rows"][0]
    assert "learned with ε" in err
    code, _, err = dither("explain", visits, question, "--error", "1%")
    assert code == 2
    assert "rows = " in err


def test_a_card_of_several_files_from_the_draft_to_an_answer(visits, dither):
    Path("people.csv").write_text("who,city\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(500)), encoding="utf-8")
    code, out, _ = dither("init", "visits.csv", "people.csv", "--unit", "who", "--name", "clinic")
    assert (code, out.partition(":")[0]) == (0, "clinic.toml")
    before = {path.name for path in Path().iterdir()}
    code, out, _ = dither("check", "clinic.toml")
    assert code == 0
    assert "table people: 2 columns, the person is who" in out
    assert "sources and card agree" in out
    assert {path.name for path in Path().iterdir()} == before  # no ledger
    code, out, _ = dither("query", "clinic.toml", "SELECT COUNT(*) AS n FROM people", "--epsilon", "0.5")
    assert code == 0
    assert "dataset 'clinic'" in dither("budget", "clinic.toml")[1]
    for protected in ("people.csv", "visits.csv"):
        command = ("query", "clinic.toml", "SELECT COUNT(*) AS m FROM people", "--epsilon", "0.1")
        assert dither(*command, "--output", protected, "--force")[0] == 2
    assert dither("init", "visits.csv", "visits.csv", "--unit", "who")[0] == 2


def test_what_a_draft_leaves_to_be_filled_in_is_listed(visits, dither):
    Path("people.csv").write_text("who,city,age\n1,a,30\n", encoding="utf-8")
    assert dither("init", "people.csv", "--unit", "who", "--output", "draft.toml")[0] == 0
    code, out, _ = dither("check", "draft.toml")
    assert code == 0
    assert "- to be filled in: city, age;" in out
    assert "complete" not in out
    text = Path("draft.toml").read_text(encoding="utf-8")
    city, age = '[columns.city]\ntype = "text"', '[columns.age]\ntype = "text"'
    text = text.replace(
        f"{age}  # to be filled in", '[columns.age]\ntype = "integer"  # to be filled in\nbounds = [0, 99]'
    )
    text = text.replace(f"{city}  # to be filled in", city)
    Path("draft.toml").write_text(text, encoding="utf-8")
    assert "to be filled in" not in dither("check", "draft.toml")[1]
    assert dither("init", "visits.csv", "people.csv", "--unit", "who", "--output", "both.toml")[0] == 0
    assert "people.city, people.age;" in dither("check", "both.toml")[1]


def test_a_steward_is_told_of_cells_that_name_nobody(visits, dither):
    with open("visits.csv", "a", encoding="utf-8") as out:
        out.write("x,north,1,2024-01-01\n")
    code, _, err = dither("check", visits)
    assert code == 2
    assert "whole numbers of 64 bits in who" in err
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0  # which rows there are is not for whoever asks


def test_an_interval_for_the_population_is_named_apart(visits, dither):
    question = "SELECT COUNT(*) AS n FROM visits"
    code, out, _ = dither("query", visits, question, "--epsilon", "0.1", "--interval", "population")
    assert code == 0
    assert "± population" in out.splitlines()[0]
    code, out, _ = dither("query", visits, question, "--epsilon", "0.1", "--interval", "population", "--format", "json")
    assert code == 0
    assert json.loads(out)["interval"] == "population"
    assert "n_population_error" in json.loads(out)["rows"][0]
    code, _, err = dither("query", visits, question, "--epsilon", "0.1", "--interval", "sampling")
    assert code == 2
    assert "noise or population" in err


# -- a first hour with other people's files -------------------------------------------------------------------------

UGLY = 'name = "sales"\nsource = "sales.csv"\nledger = "l"\nrows_without_unit = "drop"\nunit = "who"\ndelta = 1e-6\n'
UGLY += (
    '[budget]\nepsilon = 9\n[columns]\nwho = "integer"\nday = "date"\namount = { type = "number", bounds = [0, 999] }\n'
)


@pytest.fixture
def sales(tmp_path, monkeypatch):
    """A card that says nothing of how its file writes dates and numbers."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{i % 400};{i % 28 + 1}/{i % 12 + 1}/2013;{i % 90},27" for i in range(2000)]
    Path("sales.csv").write_text("\n".join(["who;day;amount", *lines, "1;13/12/2013;NA"]) + "\n", encoding="utf-8")
    Path("sales.toml").write_text(UGLY, encoding="utf-8")
    return Path("sales.toml")


def test_check_tells_the_steward_which_cells_do_not_read(sales, dither):
    code, out, err = dither("check", sales)
    assert (code, err) == (0, "")
    assert "- day: 2,001 of 2,001 cells cannot be read as date, and count as empty. Fix: write " in out
    assert 'format = "%d/%m/%Y", which reads 2,000 of the first 2,000' in out
    assert "- amount: 2,001 of 2,001 cells cannot be read as number, and count as empty (1 of them are NA" in out
    assert 'format = "1234,56", which reads 2,000 of the first 2,000' in out
    assert "2 column(s) with cells that cannot be read\n" in out
    text = UGLY.replace('"date"', '{ type = "date", format = "%d/%m/%Y" }')
    sales.write_text(text.replace('"number"', '"number", format = "1234,56"'), encoding="utf-8")
    code, out, err = dither("check", sales)
    assert "- amount: 1 of 2,001 cells are NA, - or the like, and count as empty" in out
    assert "complete; source and card agree\n" in out
    code, out, err = dither("query", sales, "SELECT AVG(amount) AS a FROM sales", "--epsilon", "5", "--max-rows", "6")
    assert float(out.splitlines()[2].split()[0]) == pytest.approx(44.7, abs=2)


def test_check_tells_the_steward_which_cells_are_no_key_and_which_people_are_called_na(tmp_path, monkeypatch, dither):
    """Half the cells differ from the keys by case; some rows say NA where they should name somebody."""
    monkeypatch.chdir(tmp_path)
    lines = [f"p{i % 40},{'North' if i % 2 else 'north'},{i % 3}" for i in range(100)]
    Path("t.csv").write_text("\n".join(["who,region,kind", *lines, "NA,north,1", "n/a,,2"]) + "\n", encoding="utf-8")
    card = 'name = "t"\nsource = "t.csv"\nledger = "l"\nunit = "who"\n[budget]\nepsilon = 1\n[columns]\nwho = "text"\n'
    keys = 'region = { type = "text", keys = ["north", "south"] }\nkind = { type = "integer", keys = [0, 1, 2] }\n'
    Path("t.toml").write_text(card + keys, encoding="utf-8")
    code, out, err = dither("check", "t.toml")
    assert (code, err) == (0, "")
    assert "- region: 50 of 101 cells are none of its 2 public keys: their rows are in no group. Fix: " in out
    assert "kind:" not in out
    assert "- who: 2 rows have NA, - or the like as their person, and count as one person. Fix: " in out


def test_nobody_but_the_steward_is_told_about_cells(sales, dither):
    """What is said depends on single cells: it is in no answer, no plan and no card."""
    for command in (("explain", sales, "SELECT COUNT(amount) AS n FROM sales", "--epsilon", "1"),
                    ("query", sales, "SELECT COUNT(amount) AS n FROM sales", "--epsilon", "1", "--report", "a.html"),
                    ("budget", sales)):  # fmt: skip
        code, out, err = dither(*command)
        assert code == 0
        assert "do not read" not in out + err
    assert "do not read" not in Path("a.html").read_text(encoding="utf-8")


def test_init_proposes_types_and_writes_none_of_them(sales, dither):
    _, out, _ = dither("init", "sales.csv", "--unit", "who", "--output", "draft.toml")
    assert 'day     type = "date", format = "%d/%m/%Y"   2,000 of 2,000' in out
    assert 'amount  type = "number", format = "1234,56"  2,000 of 2,000' in out
    draft = Path("draft.toml").read_text(encoding="utf-8")
    assert dp.tables.draft.draft("sales.csv", "who") == draft
    assert 'type = "text"  # to be filled in' in draft
    assert "%d/%m/%Y" not in draft
    _, out, _ = dither("init", "sales.csv", "--schema-only", "--output", "other.toml")
    assert "amount" not in out


def test_a_file_without_a_header_is_called_so(sales, dither):
    for first in ("17;north;17", "17;north;5,27", "17;1/2/2013;north"):
        Path("raw.csv").write_text(f"{first}\n{first}\n", encoding="utf-8")
        code, _, err = dither("init", "raw.csv")
        assert code == 2
        assert "a first line that looks like data. Fix: put a line with the names before it" in err
        assert "5,27" not in err
    assert not Path("raw.toml").exists()
    Path("years.csv").write_text("region;2023;2024\nnorth;1;2\n", encoding="utf-8")
    assert dither("init", "years.csv")[0] == 0


def test_a_budget_that_no_ledger_keeps_is_refused_by_check(sales, dither):
    sales.write_text(UGLY.replace("epsilon = 9", "epsilon = 5000"), encoding="utf-8")
    code, _, err = dither("check", sales)
    assert code == 2
    assert "budget: limit: expected a limit between 1e-15 and 4611, got ε = 5000" in err


def test_an_answer_that_would_be_noise_alone_asks_for_confirmation(sales, dither):
    ask = ("query", sales, "SELECT AVG(amount) AS a FROM sales", "--epsilon", "0.0002")
    code, _, err = dither(*ask)
    assert code == 2
    assert "± of a: expected less than all that it could be with 10,000 rows in a group, 0 to 999, got ± " in err
    assert err.endswith("or pass --yes to ask all the same.\n")
    assert left(sales) == "ε = 9"
    assert "a release asks for confirmation" in dither(*ask, "--dry-run")[1]
    assert dither(*ask, "--yes")[0] == 0
    assert dither(*ask)[0] == 0  # it is paid for


def test_a_text_column_is_to_be_a_number_in_the_card(sales, dither):
    sales.write_text(UGLY.replace('{ type = "number", bounds = [0, 999] }', '"text"'), encoding="utf-8")
    _, _, err = dither("query", sales, "SELECT AVG(amount) AS a FROM sales", "--epsilon", "1")
    assert 'if amount holds numbers, its card should say so: type = "number", with bounds.' in err
    assert "CAST" not in err
    for cast in ("DOUBLE", "INTEGER"):
        _, _, err = dither("query", sales, f"SELECT SUM(CAST(amount AS {cast})) AS a FROM sales", "--epsilon", "1")
        assert (
            f"public bounds of its values, got none. Fix: hold it within bounds: LEAST(GREATEST(CAST(amount AS {cast})"
            in err
        )
    assert left(sales) == "ε = 9"


COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_the_record_is_printed_before_and_after_a_first_answer(visits, dither):
    status, text, _ = dither("report", "--deployment", visits)
    assert status == 0
    assert "# Differential privacy record: visits" in text
    assert "there is no ledger yet" in text
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    text = dither("report", "--deployment", visits)[1]
    assert "ε = 1 *(ledger)*" in text
    assert "verified when this record was made" in text


def test_the_record_is_written_in_the_form_of_the_ending(visits, dither):
    for name, start in (("record.md", "# Diff"), ("record.html", "<!DOCTYPE html>"), ("record.json", "{")):
        status, text, _ = dither("report", "--deployment", visits, "--output", name)
        assert status == 0
        assert "left to the steward" in text
        assert Path(name).read_text(encoding="utf-8").startswith(start)
    assert json.loads(Path("record.json").read_text(encoding="utf-8"))["name"] == "visits"
    assert dither("report", "--deployment", visits, "--output", "record.md")[0] == 2  # it exists
    assert dither("report", "--deployment", visits, "--output", "record.md", "--force")[0] == 0
    assert dither("report", "--deployment", visits, "--output", "record.pdf")[0] == 2
    assert dither("report", "--deployment", visits, "--output", visits, "--force")[0] == 2  # never over a card


def test_a_ledger_that_is_gone_is_refused(visits, dither):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    Path("visits.ledger").unlink()
    status, _, error = dither("report", "--deployment", visits)
    assert status == 2
    assert "ledger" in error
