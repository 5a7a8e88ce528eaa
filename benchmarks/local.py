"""Targets of the protocols of the local model: ``python benchmarks/local.py [--quick]``.

Times are CPU seconds of one run, best of three. Memory is the peak of what Python and NumPy allocate while reports are
estimated, without the reports themselves.
"""

from __future__ import annotations

import argparse
import resource
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import dither as dp
from dither.local import LocalProtocol

PEOPLE = 10**6
EPSILONS = (0.5, 1, 2, 4)
OPTIMUM = {0.5: 15.41, 1: 3.610, 2: 0.6971, 4: 0.0584}
"""n times the variance of subset selection at k = 128."""


def protocols(k: int, epsilon: float, **sketch: int) -> dict[str, LocalProtocol]:
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


def measured_variance(protocol: LocalProtocol, k: int, values: int) -> float:
    """The variance over collections of 1,024 people, one of k categories each in turn, over the stated one.

    Enough collections for ``values`` estimates: 200,000 give the ratio to within 0.3 %, as a standard error.
    """
    n, repeats = 1024, max(20, values // k)
    records = protocol.privatize(np.arange(n * repeats) % k).records
    codes, shares = protocol.all_codes(), np.empty((repeats, k))
    for i in range(repeats):
        tally = protocol.new_tally()
        protocol.tally(tally, records[i * n : (i + 1) * n])
        shares[i] = protocol.shares(tally, n, codes)[0]
    return float(shares.var(axis=0, ddof=1).mean() / protocol.variance(n, 1 / k))


def variances(values: int) -> None:
    """Measured over stated variance, and stated variance of a rare category times n."""
    print(f"measured over stated variance ({values:,} estimates each) and n times the stated variance")
    for k in (128, 1024):
        print(f"  k = {k:<27}" + "".join(f"epsilon {epsilon:<10}" for epsilon in EPSILONS))
        for name in protocols(k, 1):
            cells = []
            for epsilon in EPSILONS:
                p = protocols(k, epsilon, rows=16, width=1024)[name]
                cells.append(f"{measured_variance(p, k, values):.4f} ({p.variance(1):.4g})")
            print(f"  {name:<30}" + "".join(f"{cell:<18}" for cell in cells), flush=True)
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


def speeds(k: int, epsilon: float) -> None:
    """A million clients and a million reports."""
    print(f"{PEOPLE:,} people, k = {k}, epsilon = {epsilon}")
    print(f"  {'protocol':<30}{'privatize':>12}{'estimate':>12}{'reports':>12}{'peak memory / reports':>24}")
    values = np.arange(PEOPLE) % k
    for name, p in (
        *protocols(k, epsilon).items(),
        ("Apple's count-mean sketch", dp.local.CountMeanSketch.apple(epsilon, k)),
        ("Apple's Hadamard sketch", dp.local.HadamardCountMeanSketch.apple(epsilon, k)),
    ):
        p.estimate(p.privatize([0, 1]))  # tables are built once
        privatize, reports = cpu_time(lambda p=p: p.privatize(values))
        estimate, _ = cpu_time(lambda p=p, reports=reports: p.estimate(reports))
        tracemalloc.start()
        p.estimate(reports)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        size = f"{reports.nbytes / 1e6:.0f} MB"
        print(
            f"  {name:<30}{privatize:>10.3f} s{estimate:>10.3f} s{size:>12}{peak / reports.nbytes:>24.2f}", flush=True
        )


def stream(batches: int) -> None:
    """Reports of a million people at a time, added to one server."""
    for name in ("projective geometry", "local hashing"):
        p = protocols(1024, 1)[name]
        server, values = p.server(), np.arange(PEOPLE) % 1024
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
    parser.add_argument("--only", choices=["stream", "speeds", "variances"])
    options = parser.parse_args()
    if options.only in (None, "speeds"):
        speeds(1024, 1)
        speeds(1024, 4)
    if options.only in (None, "stream"):
        stream(3 if options.quick else 100)
    if options.only in (None, "variances"):
        variances(20_000 if options.quick else 200_000)


if __name__ == "__main__":
    main()
