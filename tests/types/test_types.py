"""What type checkers know of the public face: a user's script passes both of them in strict mode, and runs."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import runpy
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import dither
from support import for_each

SCRIPT = Path(__file__).with_name("user_script.py")
SITE = Path(dither.__file__).parents[1]
PACKAGES = """
    accounting audit course density learn ledger local present publish  sensitivity stats stream
"""

RETURNS_ANY = {
    "an Arrow table, and pyarrow carries no types": """
        Answer.to_arrow Publication.table Publication.records SyntheticRecords.table records synthesize
    """,
    "an object of scikit-learn, which carries no types": """
        PrivateEstimator.non_private_estimator GaussianNB.non_private_estimator KMeans.non_private_estimator
        LinearRegression.non_private_estimator LogisticRegression.non_private_estimator Mean.non_private_estimator
        PCA.non_private_estimator Ridge.non_private_estimator StandardScaler.non_private_estimator
    """,
    "an object of dp-accounting, which carries no types": "to_dp_event",
    "whatever the example of a course is": "Result.implementation Result.run",
}
"""The public functions whose results a checker knows nothing of, by the reason."""


def checked(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A checker's verdict on the script, copied away from this repository's settings, with the package as a library."""
    shutil.copy(SCRIPT, folder)
    paths = {"PYTHONPATH": str(SITE), "MYPYPATH": str(SITE), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command, SCRIPT.name],
        cwd=folder,
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        check=False,
    )


def test_mypy_accepts_what_a_user_writes(tmp_path):
    pytest.importorskip("mypy")
    # silent: as for a package that is installed, errors inside it are not the user's
    options = ("--strict", "--follow-imports=silent", "--cache-dir", os.devnull, "--config-file=")
    done = checked(tmp_path, "mypy", *options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_accepts_what_a_user_writes(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    done = checked(tmp_path, "pyright", "--pythonpath", sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_a_user_writes_runs(tmp_path, capsys):
    runpy.run_path(str(SCRIPT))["main"](tmp_path)
    assert capsys.readouterr().out


def public_functions() -> dict[str, typing.Any]:
    """Every public function, method and property of the public packages, by its name."""
    found = {}
    for package in (dither, *(importlib.import_module(f"dither.{name}") for name in PACKAGES.split())):
        for name in dir(package):
            thing = getattr(package, name)
            if inspect.isfunction(thing):
                found[name] = thing
            if inspect.isclass(thing):
                for base in thing.__mro__:
                    for member, value in vars(base).items() if base.__module__.startswith("dither") else ():
                        function = getattr(value, "fget", getattr(value, "__func__", value))
                        if inspect.isfunction(function) and not member.startswith("_"):
                            found[f"{base.__name__}.{member}"] = function
    return found


def test_a_result_is_Any_only_where_there_is_a_reason():
    reasons = {name for names in RETURNS_ANY.values() for name in names.split()}

    def is_known(name, function):
        function = inspect.unwrap(function)
        returned = function.__annotations__.get("return")
        assert returned not in ("Any", typing.Any) or typing.get_overloads(function) or name in reasons

    functions = public_functions()
    assert len(functions) > 500
    for_each(functions.items(), is_known)
    assert reasons <= functions.keys()
