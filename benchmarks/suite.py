"""What every suite of benchmarks shares: the stopwatch, one row of a table, the command line.

A suite is a module with a ``TITLE``, some ``NOTES`` and a function ``rows(quick) -> list[Row]``; it ends with
``main(TITLE, NOTES, rows)`` and its name stands in ``SUITES`` of ``run.py``. Nothing here needs more than Python
itself, because the peers' interpreters use the same stopwatch.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

Task = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of a table; ``target`` is empty and ``met`` None where there is nothing to keep to."""

    what: str
    ours: str
    reference: str = ""
    ratio: float | None = None
    target: str = ""
    met: bool | None = None


def interleaved(tasks: Mapping[str, Task], repeats: int) -> dict[str, float]:
    """The least CPU seconds (all threads together) of each task, all run in turn after one run to warm up.

    A busy machine slows whatever runs at the moment; taking turns lets it hit all tasks alike, and the best leaves
    it out.
    """
    for task in tasks.values():
        task()
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            best[name] = min(best[name], time.process_time() - start)
    return best


def timely(task: Task, seconds: float) -> bool:
    """Whether the task ends within so many seconds; if not, it is stopped (where the system has alarms)."""
    if not hasattr(signal, "SIGALRM"):
        task()
        return True

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        task()
    except TimeoutError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return True


def repeat(call: Callable[..., object], calls: int, *arguments: object) -> None:
    """The loop that short calls are timed in."""
    for _ in range(calls):
        call(*arguments)


def times(what: str, ours: float, reference: float, unit: str, at_most: float | None = None, named: str = "") -> Row:
    """A row for ``ours`` against ``reference``, both in ``unit``, with a ratio of at most ``at_most``."""
    ratio = ours / reference
    return Row(
        what,
        f"{number(ours)} {unit}",
        f"{number(reference)} {unit}" + (f" ({named})" if named else ""),
        ratio,
        "" if at_most is None else f"≤ {at_most:.1f}×",
        None if at_most is None else ratio <= at_most,
    )


def limited(what: str, ours: float, unit: str, at_most: float | None = None, reference: str = "") -> Row:
    """A row for ``ours`` in ``unit``, which is to be at most ``at_most``."""
    target = "" if at_most is None else f"≤ {number(at_most)} {unit}"
    return Row(what, f"{number(ours)} {unit}", reference, None, target, None if at_most is None else ours <= at_most)


def late(what: str, seconds: float, target: str = "", reference: str = "") -> Row:
    """A row for what was stopped."""
    return Row(what, f"> {number(seconds)} s, stopped", reference, None, target, False if target else None)


def number(value: float) -> str:
    """Three significant digits, without an exponent.

    >>> number(0.01234), number(12.34), number(12345.6)
    ('0.0123', '12.3', '12,346')
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = f"{value:.3g}"
    return f"{float(digits):g}"


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| what | dither | reference | ratio | target | met |", "|---|---:|---:|---:|---:|---|"]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}×"
        met = {True: "yes", False: "**no**", None: ""}[row.met]
        lines.append(f"| {row.what} | {row.ours} | {row.reference} | {ratio} | {row.target} | {met} |")
    return "\n".join(lines)


def missed(rows: Sequence[Row]) -> list[str]:
    """What did not keep to its target."""
    return [row.what for row in rows if row.met is False]


def main(title: str, notes: Sequence[str], rows: Callable[[bool], list[Row]]) -> None:
    """Measure one suite and print it: a table, or JSON for ``run.py``."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--quick", action="store_true", help="fewer repeats and smaller sizes, to see that everything runs"
    )
    options = parser.parse_args()
    measured = rows(options.quick)
    if options.json:
        print(json.dumps({"title": title, "notes": list(notes), "rows": [asdict(row) for row in measured]}))
    else:
        print(table(measured))
        for what in missed(measured):
            print(f"target missed: {what}", file=sys.stderr)
    sys.exit(1 if options.check and missed(measured) else 0)
