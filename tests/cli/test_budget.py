"""The receipt that the command line keeps, the steward's commands, and what reads without writing."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

import dither as dp
from dither.ledger import Receipt
from dither.tables.execute import run

COUNT = "SELECT COUNT(*) AS n FROM visits"
SIGNED = ("--signed-by", "a steward", "--reason", "a better question")


def files() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_check_and_explain_leave_no_ledger_behind(visits, dither):
    before = files()
    assert dither("check", visits)[0] == 0
    assert "no ledger yet" in dither("explain", visits, COUNT, "--epsilon", "1")[1]
    assert dither("query", visits, COUNT, "--epsilon", "1", "--dry-run")[0] == 0
    assert "dither query" in dither("budget", visits)[2]
    assert files() == before
    draft = visits.read_text(encoding="utf-8")
    visits.write_text(draft.replace("epsilon = 20", "epsilon = 5"), encoding="utf-8")  # nothing was frozen
    assert "left: (ε, δ) = (4, 0.001)" in dither("query", visits, COUNT, "--epsilon", "1")[1]


def test_a_first_answer_from_a_ledger_is_called_so_to_analysts_alone(visits, dither):
    ask = ("query", visits, COUNT, "--epsilon", "1")
    said = "This is the ledger's first answer about this table."
    assert said not in dither(*ask)[1]  # whoever has the card has just started the ledger
    for name in ("visits.ledger", "visits.ledger.key", "visits.toml.receipt"):
        Path(name).unlink()
    text, of_analysts = visits.read_text(encoding="utf-8"), "each_analyst = { epsilon = 5, delta = 1e-4 }"
    visits.write_text(text.replace("[budget]", f"[budget]\n{of_analysts}"), encoding="utf-8")
    assert said in dither(*ask, "--analyst", "ada", "--output", "a.csv", "--report", "a.html")[2]
    assert said not in Path("a.html").read_text(encoding="utf-8")
    assert said not in dither(*ask, "--analyst", "ada")[1]  # it was, when this was asked first
    assert said not in dither("query", visits, COUNT, "--epsilon", "2", "--analyst", "ada")[1]


@pytest.mark.slow
@pytest.mark.parametrize("stated", [False, True])
@pytest.mark.parametrize("what", ["gone", "empty", "older"])
def test_a_ledger_that_is_gone_or_went_back_is_refused(what, stated, visits, dither, tmp_path):
    kept = Path("visits.toml.receipt")
    if stated:
        Path("disk").mkdir()
        kept = Path("disk", "last")
        visits.write_text('receipt = "disk/last"\n' + visits.read_text(encoding="utf-8"), encoding="utf-8")
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    first = Receipt.read(kept.read_text().strip())
    shutil.copy("visits.ledger", "copy")
    assert dither("query", visits, COUNT, "--epsilon", "2")[0] == 0
    assert Receipt.read(kept.read_text().strip()).seq > first.seq
    for path in list(Path().glob("visits.ledger*")):
        if what == "gone" or path.suffix != ".key":
            path.unlink()
    if what != "gone":
        Path("visits.ledger").write_bytes(b"" if what == "empty" else Path("copy").read_bytes())
    for command in (("query", visits, COUNT, "--epsilon", "3"), ("explain", visits, COUNT, "--epsilon", "3"),
                    ("budget", visits), ("check", visits)):  # fmt: skip
        code, out, err = dither(*command)
        assert (code, out) == (2, ""), command
        assert "Fix: " in err
        if what != "empty":  # a ledger without a single entry is refused by itself
            assert ("last" if stated else "visits.toml.receipt") in err
    assert not Path("visits.ledger").exists() or what != "gone"


def test_a_receipt_can_be_given_as_well(visits, dither):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    receipt = dither("budget", visits)[1].split()[-1]
    assert dither("query", visits, COUNT, "--epsilon", "2", "--receipt", receipt)[0] == 0
    wrong = f"1:{'ab' * 32}"
    for command in (("query", visits, COUNT, "--epsilon", "3"), ("budget", visits)):
        code, _, err = dither(*command, "--receipt", wrong)
        assert code == 2
        assert "receipt" in err
    assert dither("query", visits, COUNT, "--epsilon", "3", "--receipt", "x")[0] == 2


def test_a_limit_is_changed_signed_and_with_a_reason(visits, dither):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    for wrong in (("--set", "epsilon=30"), ("--set", "epsilon=30", "--reason", "x"), ("--reason", "x"),
                  ("--set", "epsilon=²", *SIGNED), ("--set", "epsilon=1,epsilon=2", *SIGNED), ("--set", "x", *SIGNED),
                  ("--set", "", *SIGNED), ("--set", "delta=1", *SIGNED), ("--set", "rho=1", *SIGNED),
                  ("--set", "epsilon=0", *SIGNED), ("--set", "epsilon=1e999", *SIGNED), ("--analyst", "a"),
                  ("--set", "epsilon=1", "--analyst", "a", "--each-person", *SIGNED)):  # fmt: skip
        code, _, err = dither("budget", visits, *wrong)
        assert code == 2, wrong
        assert len(err.splitlines()) == 1
        assert "bug" not in err
    code, out, err = dither("budget", visits, "--set", "epsilon=30,delta=1e-3", *SIGNED)
    assert (code, err) == (0, "")
    assert "visits.toml: it still has" in out
    assert dither("query", visits, COUNT, "--epsilon", "25")[0] == 2  # the card says another budget
    visits.write_text(visits.read_text(encoding="utf-8").replace("epsilon = 20", "epsilon = 30"), encoding="utf-8")
    assert "left: (ε, δ) = (4, 0.001)" in dither("query", visits, COUNT, "--epsilon", "25")[1]
    history = dither("budget", visits, "--history", "--verify")[1]
    assert "signed by a steward: a better question" in history


def test_limits_of_an_analyst_and_of_each_person(visits, dither):
    card = visits.read_text(encoding="utf-8")
    visits.write_text(
        card.replace("epsilon = 20\ndelta = 1e-3", 'epsilon = 3\nper = "person"\neach_analyst = 2').replace(
            "delta = 1e-6\n", ""
        ),
        encoding="utf-8",
    )
    assert dither("query", visits, COUNT, "--epsilon", "1", "--analyst", "ann")[0] == 0
    assert dither("query", visits, COUNT, "--epsilon", "1.5", "--analyst", "ann")[0] == 2
    code, out, _ = dither("budget", visits, "--set", "epsilon=2.5", "--analyst", "ann", *SIGNED)
    assert code == 0
    assert "2.5" in out
    assert dither("query", visits, COUNT, "--epsilon", "1.5", "--analyst", "ann")[0] == 0
    code, out, _ = dither("budget", visits, "--set", "epsilon=4", "--each-person", *SIGNED)
    assert code == 0
    assert "still has ε = 3" in out


@pytest.mark.slow
def test_a_table_closed_after_incidents_is_shown_and_reopened(visits, dither, monkeypatch):
    def fails(*_):
        raise ValueError("alice has a secret")

    real = run.answer
    monkeypatch.setattr(run, "answer", fails)
    for i in range(3):
        code, out, err = dither("query", visits, COUNT, "--epsilon", "1", "--key", f"k{i}")
        assert (code, out) == (2, "")
        assert "ε = 1 was charged" in err
        assert "alice" not in err
        assert ("closed at 3" if i < 2 else "is closed after 3 incidents") in dither("budget", visits)[1]
    monkeypatch.setattr(run, "answer", real)
    code, _, err = dither("query", visits, COUNT, "--epsilon", "1", "--again")
    assert code == 2
    assert "incidents" in err
    assert dither("budget", visits, "--reopen")[0] == 2
    code, out, _ = dither("budget", visits, "--reopen", *SIGNED)
    assert code == 0
    assert "is reopened" in out
    assert "incidents (errors" not in out
    assert dither("query", visits, COUNT, "--epsilon", "1", "--again")[0] == 0
    assert "incident" in dither("budget", visits, "--history", "--verify")[1]


def test_a_ledger_is_shown_and_verified_without_writing_anything(visits, dither, monkeypatch):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path().iterdir()}
    real = os.open

    def no_writing(path, flags, *more, **named):
        assert not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT), path
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", no_writing)
    Path().chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        code, out, err = dither("budget", visits, "--verify", "--history")
    finally:
        Path().chmod(stat.S_IRWXU)
    assert (code, err) == (0, "")
    assert "verified" in out
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in Path().iterdir()} == before


def test_history_is_printed_as_it_is_read_and_whole_where_nobody_looks(visits, dither, monkeypatch, capsys):
    assert dither("query", visits, COUNT, "--epsilon", "1", "--key", "k" * 200)[0] == 0
    printed_before: list[int] = []
    real = dp.ledger.Ledger.history

    def watched(self, dataset=None):
        for entry in real(self, dataset):
            printed_before.append(len(capsys.readouterr().out))
            yield entry

    monkeypatch.setattr(dp.ledger.Ledger, "history", watched)
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = dither("budget", visits, "--history")
    monkeypatch.undo()
    assert len(printed_before) == 3
    assert all(count > 0 for count in printed_before)  # the line before each entry was out before it was read
    assert "receipt" in out


def test_no_column_is_cut_in_a_pipe(visits, dither, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert dither("query", visits, COUNT, "--epsilon", "1", "--key", "k" * 200)[0] == 0
    out = dither("budget", visits, "--history")[1]
    charge = next(line for line in out.splitlines() if "\tcharge\t" in line).split("\t")
    assert charge[2:] == ["charge", "visits", "ε = 1", "k" * 200]
    assert "dataset 'visits'  (ε, δ) = (20, 0.001)  ε = 1" in out


@pytest.fixture
def read_only_folder(monkeypatch):
    """Folders as somebody sees them who may not write to some; whoever runs the tests may write everywhere."""
    closed: set[Path] = set()
    real = os.access

    def access(path, mode, **named):
        return not (mode & os.W_OK and Path(path).resolve() in closed) and real(path, mode, **named)

    monkeypatch.setattr(os, "access", access)
    return lambda *folders: closed.update(Path(folder).resolve() for folder in folders)


def test_nothing_is_charged_where_the_receipt_cannot_be_kept(visits, dither, read_only_folder):
    Path("ledgers").mkdir()
    draft = visits.read_text(encoding="utf-8").replace('"visits.ledger"', '"ledgers/visits.ledger"')
    visits.write_text(draft, encoding="utf-8")
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    spent = dither("budget", visits)[1]
    read_only_folder(".")
    for command in (("query", visits, COUNT, "--epsilon", "2"), ("budget", visits, "--set", "epsilon=30", *SIGNED)):
        code, out, err = dither(*command)
        assert (code, out) == (2, "")
        assert "receipt: expected a folder that can be written, beside the card, got one that cannot" in err
        assert 'receipt = "/other/place/visits.receipt"' in err
    assert dither("budget", visits) == (0, spent, "")
    for command in (("explain", visits, COUNT, "--epsilon", "1"), ("check", visits)):
        assert dither(*command)[0] == 0
    visits.write_text('receipt = "ledgers/last"\n' + draft, encoding="utf-8")
    assert dither("query", visits, COUNT, "--epsilon", "2")[0] == 0
    assert Path("ledgers", "last").exists()


def test_a_first_question_says_that_the_folder_of_the_ledger_cannot_be_written(visits, dither, read_only_folder):
    read_only_folder(".")
    before = files()
    code, _, err = dither("query", visits, COUNT, "--epsilon", "1")
    assert code == 2
    assert "ledger: expected a folder that can be written" in err
    assert files() == before


def test_a_lost_ledger_is_to_be_restored_and_not_started_anew(visits, dither):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    for name in ("visits.ledger", "visits.toml.receipt"):
        Path(name).unlink()
    code, _, err = dither("query", visits, COUNT, "--epsilon", "1")
    assert code == 2
    assert "Fix: restore the ledger from its latest copy." in err


def entries(dither, visits) -> int:
    return int(dither("budget", visits)[1].split()[-1].partition(":")[0])


def test_a_limit_is_set_where_the_card_can_state_it(visits, dither):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    before = entries(dither, visits)
    code, _, err = dither("budget", visits, "--set", "epsilon=30,delta=1e-3", "--each-person", *SIGNED)
    assert code == 2
    assert "leave --each-person out" in err
    assert entries(dither, visits) == before
    for name in ("visits.ledger", "visits.ledger.key", "visits.toml.receipt"):
        Path(name).unlink()
    card = visits.read_text(encoding="utf-8").replace("delta = 1e-3", 'delta = 1e-3\nper = "person"')
    visits.write_text(card, encoding="utf-8")
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    before = entries(dither, visits)
    for force in ((), ("--force",)):
        code, _, err = dither("budget", visits, "--set", "epsilon=30,delta=1e-3", *SIGNED, *force)
        assert code == 2
        assert "this card's budget is per person: pass --each-person" in err
    assert entries(dither, visits) == before
    assert dither("query", visits, COUNT, "--epsilon", "2")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["epsilon=1,delta=1e-3", "epsilon=30", "epsilon=1", "epsilon=30,delta=1e-9"])
def test_a_limit_that_ends_the_questions_needs_force(limit, visits, dither):
    names = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
    assert dither("query", visits, names, "--epsilon", "2")[0] == 0  # the days are not public: this costs a delta
    before = entries(dither, visits)
    code, out, err = dither("budget", visits, "--set", limit, *SIGNED)
    assert (code, out) == (2, "")
    assert "--force" in err
    assert entries(dither, visits) == before
    assert dither("budget", visits, "--set", limit, *SIGNED, "--force")[0] == 0
    assert entries(dither, visits) == before + 1


def test_reopening_an_open_table_changes_nothing(visits, dither):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    before = entries(dither, visits)
    code, out, _ = dither("budget", visits, "--reopen", *SIGNED)
    assert code == 0
    assert "visits is open; nothing was changed" in out
    assert entries(dither, visits) == before


def test_a_card_with_another_budget_is_told_both_and_the_command(visits, dither):
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
    text = visits.read_text(encoding="utf-8").replace("epsilon = 20", "epsilon = 30")
    visits.write_text(text, encoding="utf-8")
    for command in ("query", "explain"):
        code, _, err = dither(command, visits, COUNT, "--epsilon", "1")
        assert code == 2
        assert "(limit (ε, δ) = (20, 0.001)), got limit (ε, δ) = (30, 0.001)" in err
        assert "dither budget visits.toml --set epsilon=30,delta=0.001 --signed-by NAME --reason WHY" in err
        assert "change_limit" not in err
    by = ("--by", "a steward", "--reason", "a better question")  # for short
    assert dither("budget", visits, "--set", "epsilon=30,delta=0.001", *by)[0] == 0  # as it was told
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0
