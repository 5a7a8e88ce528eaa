"""The scripts that measure and that try versions: what they would do, without doing it."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from support import load_script

ROOT = Path(__file__).parents[1]


versions = load_script("try_versions")


def test_every_requirement_has_a_lower_bound_which_is_the_lowest_version_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = {requirement.name: requirement.lowest for requirement in versions.requirements(project, ("test",))}
    pins = versions.constraints("3.11", lowest=True)
    assert len(pins) == len(stated) > 15
    for pin in pins:
        name, _, version = pin.partition("==")
        assert stated[name.partition("[")[0]] == version


def test_a_python_without_wheels_of_the_lowest_version_gets_the_first_that_has_them():
    pins = dict(pin.split("==") for pin in versions.constraints("3.13", lowest=True))
    assert versions.as_numbers(pins["numpy"]) >= (2, 1)
    assert pins["duckdb"] == dict(pin.split("==") for pin in versions.constraints("3.11", lowest=True))["duckdb"]


def test_newest_versions_are_left_open():
    assert all("==" not in pin for pin in versions.constraints("3.12", lowest=False))


def test_a_requirement_without_a_lower_bound_is_refused():
    with pytest.raises(SystemExit, match="lower bound"):
        versions.Requirement.read("numpy")


@pytest.mark.parametrize(("more", "status"), [((), 1), (("--available",), 0)])
def test_a_missing_interpreter_is_named(more, status, monkeypatch, capsys):
    monkeypatch.setattr(versions, "interpreter", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["try_versions.py", "--python", "python3.12", "--newest", *more])
    assert versions.main() == status
    assert "python3.12, newest dependencies: not tried: no such interpreter" in capsys.readouterr().out


def test_an_interpreter_is_found_by_its_path_or_not_at_all():
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert versions.interpreter(sys.executable) == (sys.executable, version)
    assert versions.interpreter("python2.99") is None


def test_what_would_be_installed_is_listed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["try_versions.py", "--python", sys.executable, "--lowest", "--list"])
    assert versions.main() == 0
    assert "numpy==" in capsys.readouterr().out


def test_lines_of_a_charge_are_measured(monkeypatch, capsys):
    cost = load_script("charge_cost")
    monkeypatch.setattr(cost, "ROUNDS", 1)
    monkeypatch.setattr(sys, "argv", ["charge_cost.py"])
    cost.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["bare", "statements", "charge"]
