"""Every benchmark has a quick form, and it runs."""

from __future__ import annotations

import contextlib
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PARTS = {
    "suite": "the stopwatch and the tables of all",
    "run": "runs the others",
    "compare": "needs an earlier commit",
    "compare_cases": "what compare.py times",
    "marginals": "part of publish.py",
    "ordinary": "part of useful.py",
    "publish_adult": "part of publish.py",
    "publish_tables": "part of publish.py",
}
"""Files that are no benchmark by themselves, and what they are."""
OWN_PROCESS = {"server": "it is run as a module, and starts servers"}
STEMS = {path.stem for path in BENCHMARKS.glob("*.py")}
QUICK = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem not in PARTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in QUICK if name not in OWN_PROCESS])
def test_the_quick_form_runs(name, monkeypatch, tmp_path, capsys):
    """In this process, which has everything imported; a suite prints a table, the others lines."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    others = {
        name: module for name, module in sys.modules.items() if name.split(".")[0] in STEMS
    }  # such as tests/tables
    for module in others:
        del sys.modules[module]
    monkeypatch.setattr(sys, "argv", [str(BENCHMARKS / f"{name}.py"), "--quick"])
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a benchmark says what it meets, and nothing is asserted about it
        with contextlib.suppress(SystemExit):  # by which a suite says, with --check, whether it met its targets
            runpy.run_path(sys.argv[0], run_name="__main__")
    for module in [name for name in sys.modules if name.split(".")[0] in STEMS]:
        del sys.modules[module]
    sys.modules.update(others)
    assert capsys.readouterr().out.count("\n") >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN_PROCESS)
def test_the_quick_form_runs_in_a_process(name):
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick"]
    done = subprocess.run(command, cwd=BENCHMARKS.parent, env={**os.environ}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_file_is_a_benchmark_or_a_part_of_one():
    assert {path.stem for path in BENCHMARKS.glob("*.py")} == {*QUICK, *PARTS}
    assert len(QUICK) > 20
