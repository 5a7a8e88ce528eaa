"""Compare the speed of the working tree with that of an earlier commit; that is ``make bench-compare BASE=<commit>``.

    python benchmarks/compare.py BASE [--rounds 5] [--only TEXT]

The base is checked out into a temporary git worktree. The cases of ``compare_cases.py`` run alternately in both trees,
in a new process each time, and the least CPU and wall time of each case over all rounds is kept: other work on the
machine can only add to a time. Cases whose CPU time seems to have grown by more than a tenth run for as many rounds
again before they are flagged. The exit status is 1 if a case stays flagged. Ctrl-C after the first round ends the
measurement and prints the table so far.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SLOWER = 1.1

Times = dict[str, tuple[float, float] | None]


@dataclass(frozen=True)
class Comparison:
    """A case: its least CPU and wall seconds in both trees; None where a tree cannot run it."""

    case: str
    base: tuple[float, float] | None
    now: tuple[float, float] | None

    @property
    def ratio(self) -> float | None:
        """CPU time now over CPU time of the base.

        >>> Comparison("release", (0.5, 0.6), (0.25, 0.3)).ratio
        0.5
        """
        return None if self.base is None or self.now is None else self.now[0] / self.base[0]

    @property
    def slower(self) -> bool:
        """Whether the case takes more than 1.1 times the CPU time of the base, or no longer runs."""
        return self.now is None or (self.ratio is not None and self.ratio > SLOWER)


@contextmanager
def checked_out(commit: str, folder: Path) -> Iterator[Path]:
    """A worktree of a commit in the folder, removed afterwards."""
    tree = folder / "base"
    subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--quiet", "--detach", str(tree), commit], check=True)
    try:
        yield tree
    finally:
        subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=True)


def run(tree: Path, folder: Path, cases: Sequence[str]) -> Times:
    """The times of some cases in a tree, in one new process."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, str(HERE / "compare_cases.py"), str(folder), *cases],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    result = json.loads(done.stdout.splitlines()[-1])
    if Path(result["dither"]).resolve() != (tree / "src" / "dither").resolve():
        raise SystemExit(f"expected dither of {tree}, got {result['dither']}: is another version on the import path?")
    return {name: None if pair is None else (pair[0], pair[1]) for name, pair in result["times"].items()}


def least(first: tuple[float, float] | None, second: tuple[float, float] | None) -> tuple[float, float] | None:
    """The smaller CPU time and the smaller wall time of two measurements.

    >>> least((1.0, 4.0), (2.0, 3.0)), least(None, (2.0, 3.0))
    ((1.0, 3.0), (2.0, 3.0))
    """
    if first is None or second is None:
        return second if first is None else first
    return min(first[0], second[0]), min(first[1], second[1])


def alternate(trees: dict[str, Path], folder: Path, cases: Sequence[str], rounds: int, best: dict[str, Times]) -> None:
    """Run the cases in both trees in turn, every other round in the opposite order, and keep the least times."""
    for turn in range(rounds):
        for name in list(trees)[:: -1 if turn % 2 else 1]:
            print(f"round {turn + 1} of {rounds}: {name} …", file=sys.stderr)
            for case, pair in run(trees[name], folder, cases).items():
                best[name][case] = least(best[name].get(case), pair)


def compare(commit: str, cases: Sequence[str], rounds: int) -> list[Comparison]:
    """Compare the cases in both trees; those that seem slower are measured again before the result is given."""
    from compare_cases import write_visits

    with tempfile.TemporaryDirectory(prefix="dither-compare-") as name, checked_out(commit, Path(name)) as base:
        folder, trees = Path(name), {"base": base, "now": ROOT}
        write_visits(folder / "visits.parquet")
        best: dict[str, Times] = {tree: {} for tree in trees}
        remaining = list(cases)
        for _ in range(2):
            try:
                alternate(trees, folder, remaining, rounds, best)
            except KeyboardInterrupt:
                if any(case not in best[tree] for tree in trees for case in cases):
                    raise
                print("interrupted: the table is of the rounds that were complete", file=sys.stderr)
                rounds = 0
            result = [Comparison(case, best["base"][case], best["now"][case]) for case in cases]
            remaining = [comparison.case for comparison in result if comparison.slower]
            if not remaining or not rounds:
                break
    return result


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(2.5e-06), duration(0.0123), duration(1.5)
    ('2.5 µs', '12.3 ms', '1.5 s')
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            break
    return f"{seconds * factor:.3g} {unit}"


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as a Markdown table."""
    lines = [
        "| case | base, CPU | now, CPU | ratio | base, wall | now, wall | slower |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for comparison in comparisons:
        base = ["missing"] * 2 if comparison.base is None else [duration(seconds) for seconds in comparison.base]
        now = ["missing"] * 2 if comparison.now is None else [duration(seconds) for seconds in comparison.now]
        ratio = "" if comparison.ratio is None else f"{comparison.ratio:.2f}×"
        flag = "**yes**" if comparison.slower else ""
        lines.append(f"| {comparison.case} | {base[0]} | {now[0]} | {ratio} | {base[1]} | {now[1]} | {flag} |")
    return "\n".join(lines)


def main() -> int:
    """Compare, print the table, and say by the exit status whether a case is slower."""
    from compare_cases import CASES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5, help="how often both trees take their turn (5)")
    parser.add_argument("--only", action="append", help="only cases with this text in their name; may be repeated")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.only or any(text in case for text in options.only)]
    if not cases:
        parser.error("no case has such a name; the cases are: " + "; ".join(CASES))
    comparisons = compare(options.base, cases, options.rounds)
    print(table(comparisons))
    return int(any(comparison.slower for comparison in comparisons))


if __name__ == "__main__":
    sys.exit(main())
