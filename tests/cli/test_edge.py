"""Whatever is typed, and whatever breaks: a status, at most one line on stderr, no traceback, and the truth about the
charge.
"""

from __future__ import annotations

import errno
import itertools
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dither as dp
from dither.cli import guard
from dither.errors import LedgerError
from dither.ledger import schema
from dither.ledger.store import LedgerStore
from dither.tables.answer import Answer
from dither.tables.execute import run as answering
from dither.tables.question import Question

COUNT = "SELECT COUNT(*) AS n FROM visits"
SECRET = "alice has a secret"
NUMBERS = [
    "1", "0", "-1", "1e-200", "5e-324", "1e-18", "1e308", "1e309", "nan", "inf", "-inf", "²", "٣", "", " 1", "1_0",
    "9" * 400, "9" * 5000, "1e-6", "0.5", "auto", "one", "\x1b[2J", "a\nb", "'", "\udcff",
]  # fmt: skip
QUESTIONS = [
    COUNT, "SELECT MIN(amount) AS a, MAX(amount) AS b FROM visits", "SELECT MEDIAN(amount) AS m FROM visits",
    "SELECT day, COUNT(*) AS n FROM visits GROUP BY day", "SELECT region, AVG(amount) AS a FROM visits GROUP BY region",
    "SELECT STDDEV(amount) AS s, COUNT(DISTINCT who) AS p FROM visits", "", "SELECT", "\x1b[31m", "SELECT '\0'",
]  # fmt: skip
NUMERIC = ("--epsilon", "--delta", "--error", "--max-groups", "--max-rows")
WORDS = ("--noise", "--format", "--output", "--plot", "--report", "--analyst", "--key")
FLAGS = ("--other", "--nonnegative", "--integer", "--again", "--dry-run", "--nosuch")


def well_behaved(found: tuple[int, str, str]) -> None:
    code, out, err = found
    assert code in (0, 1, 2, 130)
    assert "Traceback" not in out + err
    assert "bug" not in err
    assert len(err.splitlines()) <= 1
    assert "\x1b" not in out + err


@pytest.mark.slow
@pytest.mark.parametrize("option", NUMERIC)
def test_every_number_in_every_option_is_taken_or_refused(option, visits, dither):
    more = () if option in ("--epsilon", "--error") else ("--epsilon", "1")
    for value in NUMBERS:
        well_behaved(dither("explain", visits, QUESTIONS[3], f"{option}={value}", *more))


@pytest.mark.slow
def test_a_tiny_or_huge_epsilon_is_taken_or_refused_where_the_card_allows_it(visits, dither):
    visits.write_text("min_epsilon = 1e-100\n" + visits.read_text(encoding="utf-8"), encoding="utf-8")
    for value, question in itertools.product(("5e-324", "1e-320", "1e-200", "1e-18"), QUESTIONS[:2]):
        well_behaved(dither("explain", visits, question, "--epsilon", value))
        well_behaved(dither("explain", visits, question, "--epsilon", value, "--delta", "1e-6"))
    for value in ("1e-90", "1e-18"):
        code, out, _ = dither("query", visits, QUESTIONS[1], "--epsilon", value)
        assert (code, "cost" in out) == (0, True)
    assert dither("query", visits, QUESTIONS[1], "--epsilon", "1e-200")[0] == 2


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_options_together_are_taken_or_refused(data, visits, dither):
    arguments: list[str] = []
    for option in data.draw(st.lists(st.sampled_from(NUMERIC), max_size=3, unique=True)):
        arguments.append(f"{option}={data.draw(st.sampled_from(NUMBERS))}")
    for option in data.draw(st.lists(st.sampled_from(WORDS), max_size=3, unique=True)):
        words = ["best", "json", "a.csv", "a.html", "x.zzz", "nowhere/a.png", "/dev/null", ".", *NUMBERS]
        arguments.append(f"{option}={data.draw(st.sampled_from(words))}")
    arguments += data.draw(st.lists(st.sampled_from(FLAGS), max_size=3, unique=True))
    question = data.draw(st.sampled_from(QUESTIONS))
    well_behaved(dither("query", visits, question, *arguments))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_options_of_the_other_commands_are_taken_or_refused(data, visits, dither):
    command = data.draw(st.sampled_from(["budget", "init", "check", "version", "nosuch", "demo", "audit"]))
    place = data.draw(
        st.sampled_from(["visits.toml", "visits.csv", "nosuch", ".", "", "a\0b", "\x1b[1m", "::", "sqlite://"])
    )
    options = {
        "budget": [
            "--history",
            "--verify",
            "--receipt=x",
            "--export=x.zzz",
            "--plot=x.zzz",
            "--export=x.csv",
            "--dataset=",
        ],
        "init": ["--unit=who", "--unit=\x1b", "--name=", "--output=nowhere/a", "--output=", "--force"],
        "demo": ["--rows=²", "--rows=1e9", "--folder=", "--folder=visits.csv", "--folder=a\0b"],
        "audit": ["--epsilon=²", "--json=nowhere/a", "--bounds=1", "--trials=0", "--only=\x1b"],
    }.get(command, ["--nosuch"])
    chosen = data.draw(st.lists(st.sampled_from(options), min_size=1, max_size=3, unique=True))
    if command == "demo":
        well_behaved(dither(command, *chosen, "extra"))
    else:
        well_behaved(dither(command, place, *chosen))


def nested(depth: int) -> str:
    return f'name = "a"\nsource = "a.csv"\nx = {"[" * depth}{"]" * depth}\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [nested(100), nested(2000), nested(100_000), "x = " + "9" * 10_000, "x = {a = " * 3000, "[" + "a." * 20_000 + "b]"],
    ids=lambda text: f"{text[:5]}… {len(text)}",
)
def test_a_card_however_deep_is_refused(text, tmp_path, dither):
    (tmp_path / "deep.toml").write_text(text)
    for command in (("check",), ("query",)):
        well_behaved(
            dither(*command, tmp_path / "deep.toml", *([COUNT, "--epsilon", "1"] if len(command[0]) < 6 else []))
        )


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_any_encoding_can_be_printed(encoding, visits):
    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dither", *arguments], capture_output=True, timeout=600,
            env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "80"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode(encoding)

    said = run("query", str(visits), COUNT, "--epsilon", "1")
    assert "cost: epsilon = 1" in said
    assert ("+/-" if encoding == "ascii" else "±") in said


class Unforeseen(Exception):
    """What nobody has thought of; its words are of the data."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Unforeseen, ValueError, RecursionError, AssertionError, UnicodeEncodeError])
def test_an_unforeseen_error_is_a_line_without_data_and_says_what_was_charged(kind, visits, dither, monkeypatch):
    def fails(*_, **__):
        raise UnicodeEncodeError("ascii", SECRET, 0, 1, SECRET) if kind is UnicodeEncodeError else kind(SECRET)

    with monkeypatch.context() as patched:
        patched.setattr(Question, "plan", fails)
        code, out, err = dither("query", visits, COUNT, "--epsilon", "1")
    assert (code, out) == (2, "")
    assert "this is a bug in dither" in err
    assert kind.__name__ in err
    assert SECRET not in err
    with monkeypatch.context() as patched:
        patched.setattr(Answer, "text", fails)
        code, out, err = dither("query", visits, COUNT, "--epsilon", "1")
    assert (code, out) == (2, "")
    assert "please report it" in err
    assert "ε = 1 was charged, and the answer is recorded" in err
    assert kind.__name__ not in err  # after rows were read, even that could be an answer
    assert SECRET not in err
    assert dither("query", visits, COUNT, "--epsilon", "1")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("step", ["charge", "record"])
def test_a_full_disk_says_what_the_ledger_holds(step, visits, dither, monkeypatch):
    assert dither("query", visits, COUNT, "--epsilon", "2")[0] == 0  # the ledger exists
    real = LedgerStore.run

    def full(self, statement, *arguments):
        kind = arguments[0].get("kind") if arguments and isinstance(arguments[0], dict) else None
        if statement is schema.APPEND and kind == {"charge": "charge", "record": "answer"}[step]:
            raise sqlite3.OperationalError("database or disk is full")
        return real(self, statement, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(LedgerStore, "run", full)
        code, out, err = dither("query", visits, COUNT, "--epsilon", "1")
    assert (code, out) == (2, "")
    assert "a full disk" in err
    spent = {"charge": "Nothing was charged.", "record": "ε = 1 was charged (entry"}[step]
    assert spent in err
    with dp.open(visits) as table:
        assert str(table.left) == {"charge": "(ε, δ) = (18, 0.001)", "record": "(ε, δ) = (17, 0.001)"}[step]


def test_where_the_ledger_cannot_be_asked_the_charge_is_assumed(visits, dither, monkeypatch):
    def gone(*_, **__):
        Path("visits.ledger").rename("moved")
        raise OSError(errno.ENOSPC, "No space left on device")

    assert dither("query", visits, COUNT, "--epsilon", "2")[0] == 0
    monkeypatch.setattr(answering, "answer", gone)
    code, _, err = dither("query", visits, COUNT, "--epsilon", "1")
    assert code == 2
    assert "was charged" in err or "assume that it was" in err


@pytest.mark.parametrize("more", [("--report", "nodir/x.html"), ("--plot", "x.zzz"), ("--format", "parquet")])
def test_nothing_is_charged_for_what_cannot_be_shown(more, visits, dither):
    code, _, err = dither("query", visits, COUNT, "--epsilon", "1", *more)
    assert code == 2
    assert more[0] in err or "--output" in err
    assert not Path("visits.ledger").exists()


def test_a_plot_of_what_has_no_bars_is_refused_before_the_charge(visits, dither):
    sql = "SELECT MODE(region) AS most FROM visits"
    code, _, err = dither("query", visits, sql, "--epsilon", "1", "--plot", "a.png")
    assert code == 2
    assert "--plot" in err
    with dp.open(visits) as table:
        assert str(table.left) == "(ε, δ) = (20, 0.001)"


def test_an_interrupt_while_the_program_is_loaded_ends_it_quietly(tmp_path):
    (tmp_path / "typer.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n")
    source = str(Path(dp.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "dither", "version"], capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), source])},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_is_one_whatever_a_library_makes_of_it():
    error = ImportError("numpy could not be imported")
    error.__context__ = KeyboardInterrupt()
    assert guard.interrupted(error)
    assert not guard.interrupted(LedgerError("locked"))
    assert guard.explained(MemoryError()) == ("out of memory", 2)


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_is_not_told_off(visits):
    script = f"{sys.executable} -m dither explain {visits} '{COUNT}' --epsilon 1 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1, 2)
    assert done.stderr == ""


def test_what_a_user_reads_names_options(visits, dither):
    asked = ("query", visits, "SELECT COUNT(*) AS n FROM visits")
    assert "Fix: pass --epsilon 0.5, or --error 50." in dither(*asked)[2]
    assert "Fix: pass --epsilon 0.0001 or more." in dither(*asked, "--epsilon", "1e-9")[2]
    assert "dither.ledger" not in dither("budget", "nowhere.ledger")[2]


def test_a_ledger_whose_name_no_file_can_have_is_refused(visits, dither):
    code, out, err = dither("budget", "a\0b", "--export", "x.csv")
    assert (code, out) == (2, "")
    assert "bug" not in err
