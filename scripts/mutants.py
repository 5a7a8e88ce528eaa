"""Plant defects in dither one at a time, and check that the tests catch each of them.

    python scripts/mutants.py                      # every mutant of scripts/mutants.toml
    python scripts/mutants.py --only 'ledger-*'    # some of them, by name or pattern; may be repeated
    python scripts/mutants.py --list               # what each of them breaks

A mutant replaces one piece of text in one file of ``src/dither``, which must occur there exactly once, and names the
tests that have to notice. The tree is copied to a temporary folder; the named tests must pass there as it is. Then each
mutant is applied alone and its tests are run until the first failure. Its outcome is one of

* ``caught``: a test failed;
* ``SURVIVED``: every named test passed, so the suite does not protect what the mutant breaks;
* ``BROKEN``: the module could not be imported, a name was missing, or pytest itself failed. That shows nothing.

The exit status is 0 if all are caught.
"""

from __future__ import annotations

import argparse
import compileall
import fnmatch
import importlib
import json
import os
import py_compile
import queue
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "scripts" / "mutants.toml"
COPIED = ("src", "tests")
LIMIT_SECONDS = 600  # for one mutant; for all tests without one, six times as long
# errors of a mutant that does not run, as opposed to one that does the wrong thing
NOT_RUNNING = (ImportError, NameError, SyntaxError)
_NO_IMPORT = 90


@dataclass(frozen=True)
class Mutant:
    """One planted defect."""

    name: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self) -> str:
        """The mutated file, from the root of the repository."""
        return f"src/dither/{self.file}"

    @property
    def module(self) -> str:
        """The name under which the mutated file is imported."""
        return ".".join(Path("dither", self.file).with_suffix("").parts).removesuffix(".__init__")

    def apply(self, text: str) -> str:
        """The text of the file with the defect; refused unless the old text occurs exactly once."""
        count = text.count(self.old)
        if count != 1:
            raise SystemExit(f"{self.name}: expected the old text exactly once in {self.path}, got it {count} times")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Outcome:
    """What the tests said about a mutant: its verdict, the first failing test or the reason, and the time taken."""

    verdict: str
    detail: str
    seconds: float


def read_mutants(path: Path = LIST) -> list[Mutant]:
    """Every mutant of the list, in its order; refused if a name occurs twice."""
    with path.open("rb") as file:
        entries = tomllib.load(file)["mutant"]
    mutants = [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]
    names = [mutant.name for mutant in mutants]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise SystemExit(f"{path.name}: expected different names, got {', '.join(sorted(repeated))} more than once")
    return mutants


def chosen(mutants: Sequence[Mutant], patterns: Sequence[str] | None) -> list[Mutant]:
    """The mutants whose name or file matches one of the patterns; all of them without patterns."""
    if not patterns:
        return list(mutants)
    result = [
        mutant
        for mutant in mutants
        if any(fnmatch.fnmatch(text, pattern) for pattern in patterns for text in (mutant.name, mutant.file))
    ]
    if not result:
        raise SystemExit(f"--only: expected the name of a mutant, got {', '.join(patterns)}; see --list")
    return result


def copy_tree(folder: Path) -> None:
    """Copy what is imported and run; link to the rest of the repository."""
    for entry in ROOT.iterdir():
        if entry.name in COPIED:
            shutil.copytree(entry, folder / entry.name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        elif entry.name != ".git":
            (folder / entry.name).symlink_to(entry)
    # a cache is valid for the text it was made from: by time and size it could outlive a mutant
    checked = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(folder / "src", quiet=1, invalidation_mode=checked)


def run_tests(folder: Path, tests: Sequence[str], module: str, *, first_only: bool) -> Outcome:
    """Import a module and run tests in a copy of the tree, in a process of their own."""
    report = folder / "outcome.json"
    report.unlink(missing_ok=True)
    # plugins that the named tests do not need would take a third of the time
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    pytest_options = ["-p", "no:cacheprovider", "--tb=short", *(["-x"] if first_only else [])]
    command = [sys.executable, __file__, "--inside", str(report), module, *pytest_options, *tests]
    start, limit = time.monotonic(), LIMIT_SECONDS if first_only else 6 * LIMIT_SECONDS
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return Outcome("BROKEN", f"no end after {limit} s", time.monotonic() - start)
    seconds = time.monotonic() - start
    written = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    first = written.get("failed", "")
    if done.returncode == 0:
        return Outcome("SURVIVED", "", seconds)
    if done.returncode == 1 and written.get("runs"):
        return Outcome("caught", first, seconds)
    if done.returncode == _NO_IMPORT:
        return Outcome("BROKEN", f"{module} cannot be imported", seconds)
    lines = f"{done.stdout}{done.stderr}".strip().splitlines()[-15:]
    detail = f"status {done.returncode}, {written.get('error', 'no failing test')} {first}\n" + "\n".join(lines)
    return Outcome("BROKEN", detail, seconds)


class Watcher:
    """A pytest plugin that imports the mutated module first, and writes the first failing test with its error."""

    def __init__(self, report: Path, module: str) -> None:
        self.report, self.module = report, module

    def pytest_sessionstart(self) -> None:
        """Called by pytest after its conftest. That a property fails is enough: its smallest example takes minutes."""
        import pytest
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutants")
        try:
            importlib.import_module(self.module)
        except Exception:
            pytest.exit(f"{self.module} cannot be imported", returncode=_NO_IMPORT)

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        """Called by pytest at each failure; only the first one is kept."""
        if not self.report.exists():
            error = call.excinfo.type
            written = {"failed": node.nodeid, "error": error.__name__, "runs": not issubclass(error, NOT_RUNNING)}
            self.report.write_text(json.dumps(written), encoding="utf-8")


def run_inside(report: str, module: str, *pytest_arguments: str) -> int:
    """Run pytest in this process."""
    import pytest

    return int(pytest.main(list(pytest_arguments), plugins=[Watcher(Path(report), module)]))


def try_mutant(mutant: Mutant, folder: Path) -> Outcome:
    """Apply a mutant in a copy of the tree, run its tests, and restore the file."""
    path = folder / mutant.path
    text = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(text), encoding="utf-8")
    try:
        return run_tests(folder, mutant.tests, mutant.module, first_only=True)
    finally:
        path.write_text(text, encoding="utf-8")


def try_all(mutants: Sequence[Mutant], folders: Sequence[Path]) -> Iterator[tuple[Mutant, Outcome]]:
    """Try each mutant in one of the copies, as many at a time as there are copies."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for folder in folders:
        free.put(folder)

    def attempt(mutant: Mutant) -> tuple[Mutant, Outcome]:
        folder = free.get()
        try:
            return mutant, try_mutant(mutant, folder)
        finally:
            free.put(folder)

    with ThreadPoolExecutor(len(folders)) as pool:
        yield from pool.map(attempt, mutants)


def passes_unmutated(tests: Sequence[str], folders: Sequence[Path]) -> bool:
    """Whether all tests pass in the tree as it is, shared out over its copies."""
    parts = [tests[start :: len(folders)] for start in range(len(folders))]

    def attempt(pair: tuple[Path, Sequence[str]]) -> Outcome:
        folder, part = pair
        return run_tests(folder, part, "dither", first_only=False) if part else Outcome("SURVIVED", "", 0.0)

    with ThreadPoolExecutor(len(folders)) as pool:
        outcomes = list(pool.map(attempt, zip(folders, parts, strict=True)))
    for outcome in outcomes:
        if outcome.verdict != "SURVIVED":
            print(f"without a mutant there is a failure already: {outcome.detail}")
    return all(outcome.verdict == "SURVIVED" for outcome in outcomes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the chosen mutants and say what became of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="PATTERN", help="the name or file of mutants to try")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants to try at a time")
    parser.add_argument("--list", action="store_true", help="print what each mutant breaks, and do nothing")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a mutant first")
    options = parser.parse_args(arguments)
    mutants = chosen(read_mutants(), options.only)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.breaks} ({mutant.file})")
        return 0
    for mutant in mutants:
        mutant.apply((ROOT / mutant.path).read_text(encoding="utf-8"))
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dither-mutants-") as temporary:
        folders = [Path(temporary, str(number)) for number in range(max(1, min(options.jobs, len(mutants))))]
        for folder in folders:
            folder.mkdir()
            copy_tree(folder)
        tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        if not options.unchecked and not passes_unmutated(tests, folders):
            return 1
        verdicts = []
        for mutant, outcome in try_all(mutants, folders):
            verdicts.append(outcome.verdict)
            print(f"{outcome.verdict:8} {outcome.seconds:5.1f} s  {mutant.name}  {outcome.detail}", flush=True)
            if outcome.verdict == "SURVIVED":
                print(f"         {mutant.breaks} ({mutant.file}): not noticed by {', '.join(mutant.tests)}", flush=True)
    caught = verdicts.count("caught")
    print(f"{caught} of {len(mutants)} mutants caught in {time.monotonic() - start:.0f} s")
    return int(caught < len(mutants))


if __name__ == "__main__":
    sys.exit(run_inside(*sys.argv[2:]) if sys.argv[1:2] == ["--inside"] else main())
