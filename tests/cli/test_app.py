"""The command line: what it prints, and one line and a status of 2 for whatever is wrong."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import typer

from dither import __version__
from dither.cli.app import app, main


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dither", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "110"},
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo", "--rows", "0"),
        ("demo", "--rows", "-5"),
        ("demo", "--rows", "1e3"),
        ("demo", "--rows", "many"),
        ("demo", "--rows", "100000000000"),
        ("demo", "--folder", "/dev/null/nowhere"),
        ("demo", "--nope"),
        ("demo", "extra"),
        ("nosuch",),
        ("--nosuch",),
    ],
    ids=" ".join,
)
def test_a_wrong_argument_is_one_clear_line_and_status_2(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["dither", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.err.startswith("dither: ")
    assert len(printed.err.strip().splitlines()) == 1
    assert printed.out == ""


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("demo", "--rows", "0"), ("nosuch",)], ids=" ".join)
def test_the_same_from_a_shell(arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dither: ")
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), RuntimeError("Query interrupted")], ids=["python", "duckdb"])
def test_an_interrupt_ends_quietly(raised, monkeypatch, capsys):
    def interrupt(rows, folder):
        raise raised

    monkeypatch.setattr(sys, "argv", ["dither", "demo"])
    monkeypatch.setattr("dither.cli.demo.run", interrupt)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
def test_version():
    done = run("version")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, __version__, "")


@pytest.mark.slow
def test_help_lists_the_commands():
    done = run("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "version" in done.stdout


WORDS = {
    "": "Differentially private answers from your tables.",
    "check": "Validate a card and list what is missing.",
    "series": "published points never change",
    "serve": "no role can read rows",
    "report": "Write a NIST SP 800-226 deployment record.",
}
RIDDLES = ("give none of them away", "leaves open", "are out", "by nobody", "nobody", "whoever", "so many", "by now")


def test_help_says_it_in_the_words_of_the_field():
    group = typer.main.get_command(app)
    texts = {"": group.help, **{name: command.help for name, command in group.commands.items()}}
    options = [option.help for command in group.commands.values() for option in command.params if option.help]
    for name, words in WORDS.items():
        assert words in texts[name]
    assert not [text for text in (*texts.values(), *options) if any(riddle in text for riddle in RIDDLES)]


@pytest.mark.slow
def test_no_argument_shows_the_help():
    done = run()
    assert "demo" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_an_unforeseen_error_shows_no_local_variables():
    """They hold data; typer's pretty tracebacks would print them."""
    assert app.pretty_exceptions_enable is False


def test_a_command_that_opens_nothing_loads_neither_engines_nor_the_ledger():
    """They take longer to load than such a command takes to run."""
    code = "import sys, dither.cli.app; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert not {"sqlalchemy", "sqlglot", "duckdb", "pyarrow", "pandas", "scipy"} & set(done.stdout.split())
