"""What the comparisons share: ``main`` measures the libraries that the running interpreter has, and prints JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version

from suite import Task, interleaved, repeat

Tasks = dict[str, tuple[Task, int]]
"""For each task how to run it, and how many releases that makes."""

SECONDS = {"ns": 1e9, "µs": 1e6}


def loop(call: Callable[..., object], value: object, calls: int) -> tuple[Task, int]:
    """``calls`` single releases."""
    return partial(repeat, call, calls, value), calls


def main(
    libraries: Mapping[str, Callable[[int], Tasks]],
    *,
    calls: int,
    repeats: int,
    unit: str,
    yardstick: str,
    notes: Sequence[str],
) -> None:
    """CPU time of one release for each task of each library here; ``yardstick`` names the task of numpy's that shows
    how fast the machine was.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    result: dict[str, Tasks] = {}
    for library, tasks in libraries.items():
        try:
            result[library] = tasks(calls // 10 if quick else calls)
        except ModuleNotFoundError:
            continue
    named = {f"{library}/{what}": task for library, tasks in result.items() for what, (task, _) in tasks.items()}
    best = interleaved(named, 1 if quick else repeats)
    figures = {
        library: {
            "version": version(library),
            "figures": {what: best[f"{library}/{what}"] / done * SECONDS[unit] for what, (_, done) in tasks.items()},
        }
        for library, tasks in result.items()
    }
    print(json.dumps({"unit": unit, "yardstick": yardstick, "notes": list(notes), "libraries": figures}))
