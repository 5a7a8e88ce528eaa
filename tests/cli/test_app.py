"""The command line: what it prints, and one line and a status of 2 for whatever is wrong."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dither import __version__


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dither.cli.app", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "110"},
    )


def test_demo_prints_every_answer_with_its_error_and_the_total_cost():
    done = run("demo", "--people", "2000")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for part in (
        "2,000 made-up people",
        "mean age",
        "mean income",
        "median income",
        "ε = 0.2",
        "± (95 %)",
        "spent: ε = 1 ",
    ):
        assert part in done.stdout


@pytest.mark.parametrize("people", ["1", "2"])
def test_demo_works_for_hardly_anyone(people):
    done = run("demo", "--people", people, "--epsilon", "0.001")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo", "--epsilon", "0"),
        ("demo", "--epsilon", "-1"),
        ("demo", "--epsilon", "nan"),
        ("demo", "--epsilon", "inf"),
        ("demo", "--epsilon", "1e7"),
        ("demo", "--epsilon", "one"),
        ("demo", "--people", "0"),
        ("demo", "--people", "-5"),
        ("demo", "--people", "1e3"),
        ("demo", "--people", "100000000000"),
        ("demo", "--nope"),
        ("demo", "extra"),
        ("nosuch",),
        ("--nosuch",),
    ],
    ids=" ".join,
)
def test_a_wrong_argument_is_one_clear_line_and_status_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr + done.stdout
    assert done.stderr.startswith("dither: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_version():
    done = run("version")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, __version__, "")


def test_help_lists_the_commands():
    done = run("--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "version" in done.stdout


def test_no_argument_shows_the_help():
    done = run()
    assert "demo" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_an_unforeseen_error_shows_no_local_variables():
    """They hold data; typer's pretty tracebacks would print them."""
    from dither.cli.app import app

    assert app.pretty_exceptions_enable is False
