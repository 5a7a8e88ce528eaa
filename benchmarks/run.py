"""Run every suite, and the peers beside it, and write README.md.

That is ``make bench``, or ``python benchmarks/run.py --with-peers``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from suite import Row, missed, number, table

SUITES = (
    "noise", "selection", "smooth", "accounting", "ledger", "tables", "relations", "auditing",
    "learning_logistic", "learning_regression", "learning_groups", "learning_peers", "import_time", "coverage",
    "answers", "publish", "stream", "work_of_a_person",
)  # fmt: skip
PEERS = {"noise": "noise_peers", "selection": "selection_peers"}
ROUNDS = 3
HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / ".venv-peers"

Figures = dict[str, dict[str, Any]]

HEAD = """# Benchmarks

Made by `make bench`; do not edit. Measured on {date}, on {machine}.

    make bench                            # everything, peers included; writes this page
    python benchmarks/run.py              # the peers only where their environment is there already
    python benchmarks/noise.py --check    # one suite; exits with 1 if a target is missed
    python benchmarks/noise.py --quick    # small sizes, to see that it runs

{verdict}

The machine may have had other work to do; ratios within one table are better than the absolute times.
"""

PEER_NOTES = (
    "CPU time of one release, the best of {rounds} rounds in which the two interpreters take turns. NumPy's "
    "*{yardstick}* took {ours} {unit} in ours and {others} {unit} in theirs, which shows how alike conditions were.",
    "*Best peer / dither* above 1 means that dither is faster than every peer in the row.",
)


def project_python() -> str:
    """The interpreter that runs this file."""
    return sys.executable


def peers_python(create: bool) -> str | None:
    """The peers' interpreter; made on request."""
    python = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin") / "python"
    if create:
        if not python.exists():
            subprocess.run([project_python(), "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "-r", str(HERE / "peers" / "requirements.txt")], check=True
        )
    return str(python) if python.exists() else None


def output(python: str, script: Path, *options: str) -> Any:
    """What the script prints, as JSON; it finds the stopwatch beside this file."""
    done = subprocess.run(
        [python, str(script), *options],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    return json.loads(done.stdout.splitlines()[-1])


def compared(script: Path, theirs: str, rounds: int, *options: str) -> tuple[Figures, dict[str, Any]]:
    """The best figure of each library over all rounds; and the unit, the notes, and numpy's time for the yardstick in
    both interpreters.
    """
    best: Figures = {}
    about: dict[str, Any] = {"ours": float("inf"), "others": float("inf")}
    for _ in range(rounds):
        for who, python in (("ours", project_python()), ("others", theirs)):
            result = output(python, script, *options)
            libraries = result.pop("libraries")
            about |= result
            for library, figures in libraries.items():
                figures_of_library = best.setdefault(library, {"version": figures["version"], "figures": {}})["figures"]
                for what, figure in figures["figures"].items():
                    figures_of_library[what] = min(figure, figures_of_library.get(what, float("inf")))
            about[who] = min(about[who], libraries["numpy"]["figures"][result["yardstick"]])
    return best, about


def peer_table(best: Figures, unit: str) -> str:
    """One row for each task, one column for each library."""
    others = [library for library in best if library not in ("dither", "numpy")]
    columns = ["dither", *others, "numpy"]
    tasks = list(dict.fromkeys(what for library in columns for what in best[library]["figures"]))
    titles = [
        f"{library} {best[library]['version']}" + (", not private" if library == "numpy" else "") for library in columns
    ]
    lines = [
        f"| {unit} a release | {' | '.join(titles)} | best peer / dither |",
        "|---|" + "---:|" * (len(columns) + 1),
    ]
    for what in tasks:
        figures = {library: best[library]["figures"].get(what) for library in columns}
        cells = [number(figure) if figure is not None else "" for figure in figures.values()]
        ours, rivals = figures["dither"], [figures[library] for library in others if figures[library] is not None]
        factor = f"{min(rivals) / ours:.1f}×" if ours is not None and rivals else ""
        lines.append(f"| {what} | {' | '.join(cells)} | {factor} |")
    return "\n".join(lines)


def machine() -> str:
    """Cores, kind of processor, Python and NumPy, and how busy it was; nothing that names the machine."""
    processor = platform.processor() or platform.machine()
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
        fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in cpuinfo)}
        processor = f"{fields['model name']} (family {fields['cpu family']})"
    except (OSError, KeyError):
        pass
    load = f", load average {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    libraries = f"NumPy {version('numpy')}, cryptography {version('cryptography')}"
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores of {processor}, {system}, {libraries}{load}"


def notes(lines: list[str]) -> str:
    """A Markdown list."""
    return "\n".join(f"- {line}" for line in lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--with-peers", action="store_true", help="make the peers' environment first, if it is not there"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--quick", action="store_true", help="small sizes; does not write README.md")
    parser.add_argument("--only", choices=SUITES, action="append", help="this suite; does not write README.md")
    options = parser.parse_args()
    quick = ["--quick"] if options.quick else []
    where, date = machine(), datetime.date.today().isoformat()
    theirs = peers_python(options.with_peers)
    parts: list[str] = []
    all_rows: list[Row] = []
    for suite in options.only or SUITES:
        print(f"{suite} …", file=sys.stderr)
        result = output(project_python(), HERE / f"{suite}.py", "--json", *quick)
        rows = [Row(**row) for row in result["rows"]]
        all_rows += rows
        parts.append(f"## {result['title']}\n\n{table(rows)}\n\n{notes(result['notes'])}\n")
        if suite in PEERS:
            parts.append(
                f"### {result['title']}: what people can pick instead\n\n"
                + peers(suite, theirs, 1 if options.quick else ROUNDS, quick)
            )
    missed_targets, met = missed(all_rows), sum(row.met is True for row in all_rows)
    verdict = f"Targets: {met} met, {len(missed_targets)} missed" + (
        f" ({'; '.join(missed_targets)})." if missed_targets else "."
    )
    page = "\n".join([HEAD.format(date=date, machine=where, verdict=verdict), *parts])
    print(page)
    if not options.quick and not options.only:
        (HERE / "README.md").write_text(page, encoding="utf-8")
    sys.exit(1 if options.check and missed_targets else 0)


def peers(suite: str, theirs: str | None, rounds: int, quick: list[str]) -> str:
    """The comparison of one suite, or why there is none."""
    if theirs is None:
        return "Not measured this time: `python benchmarks/run.py --with-peers` makes the environment they need.\n"
    print(f"{suite}: peers …", file=sys.stderr)
    best, about = compared(HERE / "peers" / f"{PEERS[suite]}.py", theirs, rounds, *quick)
    facts = {**about, "ours": number(about["ours"]), "others": number(about["others"]), "rounds": rounds}
    lines = [line.format(**facts) for line in PEER_NOTES] + about["notes"]
    return f"{peer_table(best, about['unit'])}\n\n{notes(lines)}\n"


if __name__ == "__main__":
    main()
