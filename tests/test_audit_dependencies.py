"""The audit of dependencies finds a missing pin and a version with an advisory, and passes for this tree."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "audit_dependencies.py"
spec = importlib.util.spec_from_file_location("audit_dependencies", SCRIPT)
audit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(audit)

PROJECT = {"project": {"dependencies": ["Jinja2>=3"], "optional-dependencies": {"a": ["psycopg[binary]>=3.1"]}}}
ADVISORY = {"package": "jinja2", "fixed": "3.1.6", "id": "CVE-0", "about": "something"}


def test_this_tree_passes(capsys):
    assert audit.main([]) == 0
    printed = capsys.readouterr().out
    assert "0 problem(s)" in printed
    assert "was not asked" in printed


def test_what_is_wrong_is_said():
    lock = audit.pins("jinja2==3.1.6  # a comment\npsycopg==3.2 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n")
    assert lock == {"jinja2": "3.1.6", "psycopg": "3.2"}
    assert audit.problems(PROJECT, lock, [ADVISORY]) == []
    (line,) = audit.problems(PROJECT, {**lock, "jinja2": "3.1.5"}, [ADVISORY])
    assert "CVE-0" in line
    (line,) = audit.problems(PROJECT, {"jinja2": "3.1.6"}, [ADVISORY])
    assert line.startswith("psycopg: ")


def test_of_several_pins_the_lowest_is_audited():
    lock = audit.pins("a==4.1 ; python_full_version >= '3.11.5' \\\na==2.10 ; python_full_version < '3.11.5' \\\n")
    assert lock == {"a": "2.10"}


@pytest.mark.parametrize(
    ("version", "fixed", "below"),
    [
        ("3.1.5", "3.1.6", True),
        ("3.10", "3.9", False),
        ("1.0rc1", "1.0", False),
        ("0.9", "1.0", True),
        ("2", "2.0", False),
    ],
)
def test_versions_are_compared_by_numbers(version, fixed, below):
    assert audit.is_below(version, fixed) == below


def test_a_database_that_was_not_asked_is_no_pass(monkeypatch, capsys):
    monkeypatch.setattr(audit.importlib.util, "find_spec", lambda _name: None)
    assert audit.main(["--online"]) == 2
    assert "not installed" in capsys.readouterr().err


def test_installing_a_lock_resolves_nothing():
    """A version that is published after the lock must not matter: old pips refuse a lock with hashes then."""
    root = Path(__file__).parents[1]
    lines = [
        line
        for name in ("Makefile", "deploy/Containerfile")
        for line in (root / name).read_text().splitlines()
        if "--require-hashes" in line
    ]
    assert len(lines) == 2
    assert all("--no-deps" in line for line in lines)
