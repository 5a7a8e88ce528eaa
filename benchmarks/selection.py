"""Selection: choosing among many candidates and few, medians, whole distributions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dither as dp
from suite import Row, Task, interleaved, late, limited, main, number, repeat, timely, times

TITLE = "Selection"
NOTES = (
    "All times are of CPU, all threads together, the best of 7 to 15 repeats in which ours and the reference take "
    "turns. The mechanism is built once, outside the clock. epsilon and sensitivity are 1.",
    "The reference for a choice is `np.argmax(scores + rng.gumbel(size=d))`: what people write by hand, the same law "
    "up to rounding, and not private, for the reasons given under Noise. It is the same line for every mechanism.",
    "Scores: all zero; uniform from 0 to 1000; zero but for one of 1000; standard normal; uniform from -1e307 to "
    "1e307. A choice that takes more than 5 s is stopped and counts as missed.",
    "Rank error: by how many records the released value misses the rank n/2, zero if it ties with a record there. The "
    "mean over 300 releases, each of a fresh set of 100,000 values. For evenly spaced values the law of the "
    "mechanism gives 1.92 under ReplaceOne and 0.85 under AddRemove; the standard error is about 0.13 and 0.06.",
    "The target is for values without large gaps or ties. *Two lumps* and *whole numbers* are there to show what those "
    "do: where the middle is within some 30 ranks of a wide empty stretch, its many lattice points outweigh the few "
    "at the records. That belongs to the law, not to its sampler. Whole numbers mostly give 0 here, because some "
    "990 records tie; with 99 ties (n = 10,000) a trial of 30 gave a mean of 14 ranks under ReplaceOne.",
    "Density with 2,154 points at n of 1,000 and 10,000 asks for far more points than the default there.",
    "A constant is released as the nearest point of the lattice, whose step for (0, 100) is below 1e-7.",
    "KS error: the largest distance between the released distribution function and that of the records, taken at the "
    "records, mean over 10 releases of one set. Bins and points are the defaults of each method unless said.",
)

CANDIDATES = 10**6
FEW = 100
RECORDS = 10**6
PATIENCE_S = 5.0
BOUNDS = (0.0, 100.0)
ANALYTIC = {dp.ReplaceOne: 1.92, dp.AddRemove: 0.85}
HARD = ("two lumps", "whole numbers")
METHODS = ("histogram", "perturbed", "smoothed", "ks")

rng = np.random.default_rng()

MECHANISMS: dict[str, Callable[[Any], object]] = {
    "Exponential": dp.Exponential(1, 1).select_index,
    "PermuteAndFlip": dp.PermuteAndFlip(1, 1).select_index,
    "NoisyMax, Laplace": dp.NoisyMax(1, 1, noise="laplace").select_index,
    "TopK(10)": dp.TopK(10, 1, 1).select_indices,
}

SHAPES: dict[str, Callable[[int], Any]] = {
    "zeros": np.zeros,
    "uniform": lambda d: rng.uniform(0, 1000, d),
    "one high": lambda d: np.where(np.arange(d) == d // 2, 1000.0, 0.0),
    "normal": rng.standard_normal,
    "±1e307": lambda d: rng.uniform(-1e307, 1e307, d),
}

COLUMNS: dict[str, Callable[[int], Any]] = {
    "evenly spaced": lambda n: np.linspace(*BOUNDS, n),
    "uniform": lambda n: rng.uniform(*BOUNDS, n),
    "normal(50, 10)": lambda n: rng.normal(50, 10, n),
    "skewed, 100 × Beta(2, 5)": lambda n: 100 * rng.beta(2, 5, n),
    "two lumps": lambda n: np.where(rng.random(n) < 0.5, rng.normal(20, 1, n), rng.normal(80, 1, n)),
    "whole numbers": lambda n: rng.integers(0, 101, n).astype(np.float64),
}


def by_hand(scores: Any) -> object:
    """The insecure line of code."""
    return np.argmax(scores + rng.gumbel(size=scores.size))


def many(quick: bool) -> list[Row]:
    """One choice among a million."""
    d = CANDIDATES // 100 if quick else CANDIDATES
    result: list[Row] = []
    for shape, make in SHAPES.items():
        scores = make(d)
        tasks: dict[str, Task] = {name: partial(select, scores) for name, select in MECHANISMS.items()}
        ended = {name: timely(task, PATIENCE_S) for name, task in tasks.items()}
        running = {name: task for name, task in tasks.items() if ended[name]}
        best = interleaved({**running, "numpy": partial(by_hand, scores)}, 3 if quick else 15)
        for name in tasks:
            what, at_most = f"{name} among {d:,}, {shape}", None if name.startswith("TopK") else 0.5
            if ended[name]:
                result.append(times(what, best[name] * 1e3, best["numpy"] * 1e3, "ms", at_most, "numpy argmax"))
            else:
                target = "" if at_most is None else f"≤ {at_most:.1f}×"
                result.append(late(what, PATIENCE_S, target, f"{number(best['numpy'] * 1e3)} ms (numpy argmax)"))
    return sorted(result, key=lambda row: [row.what.startswith(name) for name in MECHANISMS], reverse=True)


def few(quick: bool) -> list[Row]:
    """One choice among a hundred."""
    tasks: dict[str, Task] = {}
    calls = {name: (20 if quick else 500) // (20 if name.startswith("TopK") else 1) for name in MECHANISMS}
    loops: dict[str, int] = {}
    for name, select in MECHANISMS.items():
        for shape in ("zeros", "uniform", "one high"):
            what = f"{name} among {FEW}, {shape}"
            loops[what], tasks[what] = calls[name], partial(repeat, select, calls[name], SHAPES[shape](FEW))
    best = interleaved(tasks, 3 if quick else 9)
    return [
        limited(what, result / loops[what] * 1e6, "µs", None if what.startswith("TopK") else 40.0)
        for what, result in best.items()
    ]


def median_time(quick: bool) -> list[Row]:
    """The median of a million floats."""
    n = RECORDS // 100 if quick else RECORDS
    result: list[Row] = []
    for name in ("uniform", "skewed, 100 × Beta(2, 5)", "whole numbers"):
        values = COLUMNS[name](n)
        best = interleaved(
            {"ours": partial(dp.stats.median, values, BOUNDS, 1), "numpy": partial(np.median, values)},
            3 if quick else 11,
        )
        what = f"Median of {n:,}, {name}"
        result.append(times(what, best["ours"] * 1e3, best["numpy"] * 1e3, "ms", 3.0, "numpy median"))
    return result


def rank_error(values: Any, released: float) -> float:
    """How many records lie between the released value and the middle.

    >>> rank_error(np.array([1.0, 2.0, 3.0, 4.0]), 3.5), rank_error(np.array([1.0, 2.0, 3.0, 4.0]), 3.0)
    (1.0, 0.0)
    """
    middle = values.size / 2
    return float(max(0.0, np.sum(values < released) - middle, middle - np.sum(values <= released)))


def median_error(quick: bool) -> list[Row]:
    """How good the median is."""
    n, releases = (10**3, 3) if quick else (10**5, 300)
    result: list[Row] = []
    for neighbors, analytic in ANALYTIC.items():
        for name, make in COLUMNS.items():
            total = 0.0
            for _ in range(releases):
                values = np.clip(make(n), *BOUNDS)
                total += rank_error(values, float(dp.stats.median(values, BOUNDS, 1, neighbors=neighbors)))
            named = f"{analytic} (analytic)" if name == "evenly spaced" else ""
            at_most = 2.5 if neighbors is dp.ReplaceOne and name not in HARD else None
            what = f"Mean rank error, {neighbors!r}, {name}"
            result.append(limited(what, total / releases, "ranks", at_most, named))
    worst = 0.0
    for constant in (0.0, 42.0, 100.0 / 3.0, 100.0):
        values = np.full(n, constant)
        worst = max(worst, *(abs(float(dp.stats.median(values, BOUNDS, 1)) - constant) for _ in range(20)))
    kept = worst <= 1e-7
    result.append(Row("Median of constants, largest error", f"{worst:.1e}", "", None, "≤ 1e-7", kept))
    return result


def ks_error(sorted_values: Any, density: dp.density.Density) -> float:
    """The largest distance between the distribution functions."""
    n, steps = sorted_values.size, np.arange(sorted_values.size)
    released = density.cdf(sorted_values)
    return float(max(np.max(released - steps / n), np.max((steps + 1) / n - released)))


def distributions(quick: bool) -> list[Row]:
    """Whole distributions of Beta(2, 5) values."""
    result: list[Row] = []
    bins, points = (10, 50) if quick else (200, 2154)
    for n, at_most in ((10**4, None),) if quick else ((10**5, 1.5), (10**6, None)):
        values = rng.beta(2, 5, n)
        task = partial(dp.density.release, values, (0, 1), 1, "ks", bins=bins, points=points)
        best = interleaved({"ks": task}, 1 if quick else 7)["ks"]
        error = mean_ks_error(values, task, quick)
        what = f"Density, ks, {bins} bins, {points:,} points, n = {n:,} (KS error {number(error)})"
        result.append(limited(what, best, "s", at_most))
    for n in (10**3,) if quick else (10**3, 10**4):
        task = partial(dp.density.release, rng.beta(2, 5, n), (0, 1), 1, "ks", bins=bins, points=points)
        what = f"Density, ks, {bins} bins, {points:,} points, n = {n:,}"
        if timely(task, PATIENCE_S):
            result.append(limited(what, interleaved({"ks": task}, 2)["ks"], "s"))
        else:
            result.append(late(what, PATIENCE_S))
    for n in (10**3,) if quick else (10**3, 10**4, 10**5):
        values = rng.beta(2, 5, n)
        for method in METHODS:
            error = mean_ks_error(values, partial(dp.density.release, values, (0, 1), 1, method), quick)
            result.append(Row(f"KS error, {method}, n = {n:,}", number(error)))
    return result


def mean_ks_error(values: Any, release: Callable[[], Any], quick: bool) -> float:
    """Over several releases."""
    ordered, releases = np.sort(values), 2 if quick else 10
    return sum(ks_error(ordered, release()) for _ in range(releases)) / releases


def rows(quick: bool = False) -> list[Row]:
    """All of the suite."""
    return [row for part in (many, few, median_time, median_error, distributions) for row in part(quick)]


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
