"""Targets of the protocols of the local model: ``python benchmarks/local.py [--quick]``.

Times are CPU seconds of one run, best of three. Memory is the peak of what Python and NumPy allocate while reports are
estimated, without the reports themselves; of it, the sums do not grow with the reports. ``--processes`` measures
variances in so many processes at once.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np

import dither as dp
from dither.local.protocol import FrequencyProtocol
from dither.local.sketch import Sketch

PEOPLE = 10**6
EPSILONS = (0.5, 1, 2, 4)
OPTIMUM = {0.5: 15.41, 1: 3.610, 2: 0.6971, 4: 0.0584}
"""n times the variance of subset selection at k = 128."""


def protocols(k: int, epsilon: float, **sketch: Any) -> dict[str, FrequencyProtocol]:
    """All protocols for frequencies; sketches with their defaults unless others are given."""
    return {
        "randomized response": dp.local.RandomizedResponse(k, epsilon),
        "subset selection": dp.local.SubsetSelection(k, epsilon),
        "unary, optimized": dp.local.UnaryEncoding(k, epsilon),
        "unary, symmetric": dp.local.UnaryEncoding(k, epsilon, optimized=False),
        "local hashing": dp.local.LocalHashing(k, epsilon),
        "Hadamard response": dp.local.HadamardResponse(k, epsilon),
        "projective geometry": dp.local.ProjectiveGeometryResponse(k, epsilon),
        "count-mean sketch": dp.local.CountMeanSketch(epsilon, k, **sketch),
        "count-mean sketch, symmetric": dp.local.CountMeanSketch(epsilon, k, optimized=False, **sketch),
        "Hadamard sketch": dp.local.HadamardCountMeanSketch(epsilon, k, **sketch),
    }


def variance_cell(cell: tuple[str, int, float, int]) -> str:
    """Squared errors in collections of 1,024 people, one of k categories each in turn, over the stated variance.

    The standard error is from the collections, since estimates of one collection are not independent. A sketch gets
    another key for each collection, so that collisions vary as stated.
    """
    name, k, epsilon, values = cell
    n, ratios = 1024, []
    pairs = k * (n // k) * (n // k - 1) / n**2 * (1 - 1 / k)  # of people with the same value, another than that asked
    for _ in range(max(2 if values == 1 else 20, values // k)):
        p = protocols(k, epsilon, rows=16, width=1024, key=os.urandom(16))[name]
        stated = p.variance(n, 1 / k) + (p.collision_variance(pairs) if isinstance(p, Sketch) else 0.0)
        tally = p.new_tally()
        p.tally(tally, p.privatize(np.arange(n) % k).records)
        ratios.append(float(np.square(p.shares(tally, n, p.all_codes())[0] - 1 / k).mean()) / stated)
    return f"{np.mean(ratios):.4f} ± {np.std(ratios, ddof=1) / math.sqrt(len(ratios)):.4f}"


def variances(values: int, processes: int) -> None:
    """Measured over stated variance with the standard error of the ratio, and n times the stated one."""
    print(
        f"measured over stated variance ({values:,} estimates each) ± its standard error; n times the stated variance"
    )
    names = list(protocols(2, 1))
    cells = [(name, k, epsilon, values) for k in (128, 1024) for name in names for epsilon in EPSILONS]
    with ProcessPoolExecutor(processes) if processes > 1 else nullcontext() as pool:
        results = iter(map(variance_cell, cells) if pool is None else pool.map(variance_cell, cells))
        for k in (128, 1024):
            print(f"  k = {k:<27}" + "".join(f"epsilon {epsilon:<18}" for epsilon in EPSILONS))
            for name in names:
                row = [(next(results), protocols(k, e, rows=16, width=1024)[name].variance(1)) for e in EPSILONS]
                print(f"  {name:<30}" + "".join(f"{cell} ({own:.4g})".ljust(26) for cell, own in row), flush=True)
    for epsilon, optimum in OPTIMUM.items():
        best = dp.local.best(categories=128, epsilon=epsilon).protocol
        own = best.variance(1)
        print(f"  best at k = 128, epsilon {epsilon}: {own:.4g}, {own / optimum:.4f} of the optimum")


def cpu_time(run: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The least CPU time of a few runs, and the last result."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = run()
        best = min(best, time.process_time() - start)
    return best, result


def speeds(k: int, epsilon: float, people: int = PEOPLE) -> None:
    """A million clients and a million reports."""
    print(f"{people:,} people, k = {k}, epsilon = {epsilon}")
    print(f"  {'protocol':<30}{'privatize':>12}{'estimate':>12}{'reports':>12}  peak memory / reports, without sums")
    values = np.arange(people) % k
    apple = {
        "Apple's count-mean sketch": dp.local.CountMeanSketch.apple(epsilon, k),
        "Apple's Hadamard sketch": dp.local.HadamardCountMeanSketch.apple(epsilon, k),
    }
    for name, p in (protocols(k, epsilon) | (apple if people == PEOPLE else {})).items():  # large tables
        p.estimate(p.privatize([0, 1]))  # tables are built once
        privatize, reports = cpu_time(lambda p=p: p.privatize(values))
        estimate, _ = cpu_time(lambda p=p, reports=reports: p.estimate(reports))
        tracemalloc.start()
        p.estimate(reports)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        size, without = f"{reports.nbytes / 1e6:.0f} MB", (peak - p.server().nbytes) / reports.nbytes
        memory = f"{peak / reports.nbytes:>10.2f}{without:>10.2f}"
        print(f"  {name:<30}{privatize:>10.3f} s{estimate:>10.3f} s{size:>12}{memory}", flush=True)


def stream(batches: int, people: int = PEOPLE) -> None:
    """Reports of a million people at a time, added to one server."""
    for name in ("projective geometry", "local hashing"):
        p = protocols(1024, 1)[name]
        server, values = p.server(), np.arange(people) % 1024
        server.add(p.privatize(values))
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        for _ in range(batches - 1):
            server.add(p.privatize(values))
        seconds = time.process_time() - start
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        estimate = server.estimate()
        worst = float(np.max(np.abs(estimate.shares - 1 / 1024) / estimate.standard_error))
        print(
            f"{server.n:,} reports streamed, {name}: {seconds:.1f} s with their privatizing, "
            f"peak memory {before / 1024:.0f} MB after the first batch and {after / 1024:.0f} MB after the last, "
            f"sums of {server.nbytes / 1024:.0f} kB, largest deviation {worst:.1f} standard errors"
        )


def main() -> None:
    """Print all measurements."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--values", type=int, help="estimates for each variance")
    parser.add_argument("--only", choices=["stream", "speeds", "variances"])
    options = parser.parse_args()
    people = 10**4 if options.quick else PEOPLE
    if options.only in (None, "speeds"):
        for epsilon in (1,) if options.quick else (1, 4):
            speeds(1024, epsilon, people)
    if options.only in (None, "stream"):
        stream(2 if options.quick else 100, people)
    if options.only in (None, "variances"):
        variances(options.values or (1 if options.quick else 200_000), options.processes)


if __name__ == "__main__":
    main()
