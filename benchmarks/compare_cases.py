"""The cases that ``compare.py`` times in two versions of dither: run in a process of its own for each version.

    python benchmarks/compare_cases.py FOLDER [CASE ...]

The version measured is the one on the import path. Only public names are used, because this file also runs with
older versions; a case that a version cannot run is reported as missing. The folder holds ``visits.parquet``, made by
:func:`write_visits`. The last line printed is JSON: for each case the least CPU and wall seconds of one call.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dither as dp

Task = Callable[[], object]

SIZE = 10**6
REGIONS = tuple(f"region-{number:02d}" for number in range(50))
GROUP_BY = "SELECT region, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m FROM visits GROUP BY region"
QUANTILE = "SELECT region, MEDIAN(amount) AS m FROM visits GROUP BY region"
SECONDS_PER_CASE = 0.6
"""Each case is repeated for at least so long in every process, and at least three times."""


def write_visits(path: Path, rows: int = SIZE) -> None:
    """Write the table of the questions: 20 visits a person, the same rows every time."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT CAST(HASH(i) % {rows // 20} AS INTEGER) AS person, "
            "'region-' || LPAD(CAST(HASH(i + 1000000000) % 50 AS VARCHAR), 2, '0') AS region, "
            f"(HASH(i + 2000000000) % 10000) / 100.0 AS amount FROM RANGE({rows}) AS r(i)) TO '{path}' (FORMAT parquet)"
        )


def write_card(folder: Path, source: Path) -> Path:
    """Write the card of the visits, with a ledger beside it."""
    keys = ", ".join(f'"{region}"' for region in REGIONS)
    path = folder / "visits.toml"
    path.write_text(
        f'name = "visits"\nsource = "{source}"\nunit = "person"\nledger = "{folder}/ledger.sqlite"\n'
        "[budget]\nepsilon = 4000\n"
        '[columns.person]\ntype = "integer"\n'
        f'[columns.region]\ntype = "text"\nkeys = [{keys}]\n'
        '[columns.amount]\ntype = "number"\nbounds = [0, 100]\n',
        encoding="utf-8",
    )
    return path


def loop(function: Callable[..., object], calls: int, *arguments: object) -> tuple[Task, int]:
    """A task that calls a function many times, and how many times."""

    def task() -> None:
        for _ in range(calls):
            function(*arguments)

    return task, calls


def release(mechanism: Callable[[], Any], value: object, calls: int = 1) -> Callable[[Path], tuple[Task, int]]:
    """A case that releases one value; the mechanism is built once, outside the clock."""
    return lambda _: loop(mechanism().release, calls, value)


def select(mechanism: Callable[[], Any], method: str) -> Callable[[Path], tuple[Task, int]]:
    """A case that chooses among a million scores."""
    scores = np.random.default_rng(0).uniform(0, 1000, SIZE)
    return lambda _: loop(getattr(mechanism(), method), 1, scores)


def compose(folder: Path) -> tuple[Task, int]:
    """Two hundred distinct releases to one epsilon."""
    accounting = dp.accounting
    laplace = [accounting.LaplaceNoise(10 + number / 10) for number in range(100)]
    gaussian = [accounting.GaussianNoise(40 + number / 10) for number in range(100)]
    event = accounting.Sequential(*laplace, *gaussian)
    return loop(accounting.pld.guarantee, 1, event, 1e-6)


def charge(folder: Path) -> tuple[Task, int]:
    """One charge in a SQLite ledger."""
    ledger = dp.ledger.open(folder / "charges.sqlite")
    ledger.create("visits", limit=dp.PureDP(4000))
    return loop(ledger.charge, 50, "visits", dp.PureDP(1e-6))


def question(sql: str, reopen: bool) -> Callable[[Path], tuple[Task, int]]:
    """A question to a million rows on DuckDB, with or without opening the table; a new epsilon is a new release."""

    def case(folder: Path) -> tuple[Task, int]:
        card = write_card(folder, folder.parent / "visits.parquet")
        epsilons = (1 + step / 2**20 for step in itertools.count())
        opened = None if reopen else dp.open(card)

        def task() -> None:
            if opened is None:
                with dp.open(card) as table:
                    table.sql(sql).release(epsilon=next(epsilons))
            else:
                opened.sql(sql).release(epsilon=next(epsilons))

        return task, 1

    return case


def cold_import(folder: Path) -> tuple[Task, int]:
    """``import dither`` in a fresh interpreter."""
    return loop(partial(subprocess.run, check=True), 1, [sys.executable, "-c", "import dither"])


def cold_query(folder: Path) -> tuple[Task, int]:
    """``dither query`` on 1,000 rows in a fresh interpreter."""
    source = folder / "visits-1000.parquet"
    write_visits(source, 1000)
    card = write_card(folder, source)
    epsilons = (1 + step / 2**20 for step in itertools.count())

    def task() -> None:
        command = [sys.executable, "-m", "dither", "query", str(card), GROUP_BY, "--epsilon"]
        subprocess.run([*command, repr(next(epsilons))], check=True, stdout=subprocess.DEVNULL)

    return task, 1


def statistic(name: str) -> Callable[[Path], tuple[Task, int]]:
    """A statistic of a million numbers."""
    values = np.random.default_rng(0).uniform(0, 100, SIZE)
    return lambda _: loop(partial(getattr(dp.stats, name), bounds=(0, 100), epsilon=1), 1, values)


def ridge(folder: Path) -> tuple[Task, int]:
    """A ridge regression on 100,000 rows of 10 columns."""
    random = np.random.default_rng(0)
    features = random.uniform(0, 1, (10**5, 10))
    labels = features @ np.arange(10) / 45

    def fit() -> None:  # an estimator of its own for each fit: a second fit of the same one warns that costs add up
        dp.learn.Ridge(epsilon=1, bounds=(0, 1), label_bounds=(0, 1)).fit(features, labels)

    return loop(fit, 1)


def certify(folder: Path) -> tuple[Task, int]:
    """A certificate of a Laplace mechanism."""
    return loop(dp.audit.certify, 1, dp.Laplace(1, 1))


def laplace() -> Any:
    """The Laplace mechanism of every case."""
    return dp.Laplace(sensitivity=10, epsilon=1)


def gaussian() -> Any:
    """A Gaussian mechanism: a rounded normal."""
    return dp.Gaussian(sensitivity=2, epsilon=1, delta=1e-6)


def discrete_gaussian() -> Any:
    """A Gaussian mechanism that gives whole numbers the discrete Gaussian."""
    return dp.Gaussian(sensitivity=10, rho=0.5)


def response() -> Any:
    """Randomized response to a yes-or-no question."""
    return dp.RandomizedResponse(epsilon=1)


CASES: dict[str, Callable[[Path], tuple[Task, int]]] = {
    "Laplace, 10⁶ floats": release(laplace, np.zeros(SIZE)),
    "discrete Laplace, 10⁶ integers": release(laplace, np.zeros(SIZE, dtype=np.int64)),
    "Gaussian, 10⁶ floats": release(gaussian, np.zeros(SIZE)),
    "discrete Gaussian, 10⁶ integers": release(discrete_gaussian, np.zeros(SIZE, dtype=np.int64)),
    "Laplace, one float": release(laplace, 42.5, 2000),
    "discrete Laplace, one integer": release(laplace, 42, 2000),
    "Gaussian, one float": release(gaussian, 42.5, 2000),
    "discrete Gaussian, one integer": release(discrete_gaussian, 42, 2000),
    "RandomizedResponse, one": release(response, True, 2000),
    "RandomizedResponse, 10⁶": release(response, np.ones(SIZE, dtype=np.int64)),
    "Exponential among 10⁶": select(lambda: dp.Exponential(1, 1), "select_index"),
    "NoisyMax among 10⁶": select(lambda: dp.NoisyMax(1, 1, noise="laplace"), "select_index"),
    "PermuteAndFlip among 10⁶": select(lambda: dp.PermuteAndFlip(1, 1), "select_index"),
    "TopK(10) among 10⁶": select(lambda: dp.TopK(10, 1, 1), "select_indices"),
    "accounting, 200 releases composed": compose,
    "ledger, charge on SQLite": charge,
    "dp.open and GROUP BY, 10⁶ rows": question(GROUP_BY, reopen=True),
    "median by group, 10⁶ rows": question(QUANTILE, reopen=False),
    "import dither, cold": cold_import,
    "dither query, cold": cold_query,
    "stats.mean, 10⁶": statistic("mean"),
    "stats.median, 10⁶": statistic("median"),
    "learn.Ridge, 10⁵ × 10": ridge,
    "audit.certify, Laplace": certify,
}


def cpu_seconds() -> float:
    """CPU seconds of this process, all threads, and of the processes it started and waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(case: Callable[[Path], tuple[Task, int]], folder: Path) -> tuple[float, float]:
    """The least CPU and wall seconds of one call, after one to warm up."""
    task, calls = case(folder)
    task()
    best_cpu = best_wall = float("inf")
    started, repeats = time.perf_counter(), 0
    while repeats < 3 or time.perf_counter() - started < SECONDS_PER_CASE:
        cpu, wall = cpu_seconds(), time.perf_counter()
        task()
        best_cpu = min(best_cpu, (cpu_seconds() - cpu) / calls)
        best_wall = min(best_wall, (time.perf_counter() - wall) / calls)
        repeats += 1
    return best_cpu, best_wall


def main() -> None:
    """Measure the cases named, or all of them, and print JSON."""
    shared, names = Path(sys.argv[1]), sys.argv[2:] or list(CASES)
    result: dict[str, Any] = {"dither": os.path.dirname(dp.__file__), "times": {}}
    for name in names:
        with tempfile.TemporaryDirectory(dir=shared) as folder:
            try:
                result["times"][name] = measure(CASES[name], Path(folder))
            except (AttributeError, TypeError, ImportError, subprocess.CalledProcessError) as error:
                result["times"][name] = None
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
