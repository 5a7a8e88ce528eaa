"""How often intervals hold the truth: 12 real populations, five aggregates, two laws of noise, three epsilons."""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dither as dp
from dither.inference import Measured, NoiseLaw, mean, measured, standard_deviation, variance
from suite import Row, limited, main

TITLE = "Coverage of intervals"
CONFIDENCE = 0.95
EPSILONS = (0.1, 0.5, 1.0)
DELTA = 1e-6
STEPS = 1 << 12
LOWEST, HIGHEST = 0.94, 0.97
GROUPS = 10_000
NOTES = (
    "Columns of the data sets that come with scikit-learn (20 to 1,797 records), with bounds half as wide again as the "
    "data. Every aggregate has the whole epsilon, shared equally by its noisy sums, as in a table. An ask draws new "
    "noise; the records stay.",
    "Each row gives the lowest and the highest coverage of the 12 populations. A population counts against the upper "
    "target only where both limits are within the possible range in nine asks of ten: elsewhere nothing can be missed "
    "on one side, and small groups have the whole range. How many count is in brackets. A COUNT counts if its ± is 5 "
    "or more: below, whole numbers leave no choice between 93 and 97 %.",
    "Reference: the standard error of a measured coverage, if 95 % is right; the targets allow for three of them.",
    "±: the largest over the populations that count of (the half-width) / (the 95 % point of the true error).",
    "dp.stats: asks of the public functions, pooled over the populations.",
    "Through tables: SQL about a table of many groups, each of which holds the same population, so that one release is "
    "as many asks; how often value ± error holds the truth of the group, for three populations and both noises. "
    "Every aggregate has a question of its own. MIN and MAX count at least as often, since a bound is one of their "
    "limits; ± is the larger of two distances, so a lopsided interval counts more often too.",
)


def populations(path: Path | None = None) -> Iterator[tuple[str, np.ndarray]]:
    """The name and the values of each."""
    from sklearn import datasets

    diabetes, wine, iris = datasets.load_diabetes(scaled=False), datasets.load_wine(), datasets.load_iris()
    cancer, digits, linnerud = datasets.load_breast_cancer(), datasets.load_digits(), datasets.load_linnerud()
    yield "diabetes, progression", diabetes.target
    yield "diabetes, body mass", diabetes.data[:, 2]
    yield "diabetes, age", diabetes.data[:, 0]
    yield "wine, alcohol", wine.data[:, 0]
    yield "wine, proline", wine.data[:, 12]
    yield "iris, sepal length", iris.data[:, 0]
    yield "iris, petal length", iris.data[:, 2]
    yield "breast cancer, radius", cancer.data[:, 0]
    yield "breast cancer, worst area", cancer.data[:, 23]
    yield "digits, ink", digits.data.mean(axis=1)
    yield "digits, one pixel", digits.data[:, 20]
    yield "linnerud, weight", linnerud.target[:, 0]
    if path is not None:
        with path.open(newline="") as file:
            yield "ages of a file", np.array([float(row["age"]) for row in csv.DictReader(file)])


def centered(values: np.ndarray) -> np.ndarray:
    """Steps from the middle of the bounds, of which there are STEPS to either bound."""
    low, high = float(values.min()), float(values.max())
    margin = (high - low) / 4
    return np.rint((2 * values - low - high) / (high - low + 2 * margin) * STEPS).astype(np.int64)


def mechanism(noise: str, sensitivity: int, epsilon: float) -> Any:
    """The noise of one sum."""
    return dp.Laplace(sensitivity, epsilon) if noise == "Laplace" else dp.Gaussian(sensitivity, epsilon, DELTA)


def sums(steps: np.ndarray, noise: str, epsilon: float, parts: int, asks: int) -> tuple[Measured, ...]:
    """Count, sum and sum of squares, as many of them as asked for, each with new noise for every ask."""
    values, laws = [], []
    for power in range(parts):
        law = mechanism(noise, STEPS**power, epsilon / parts)
        unit = float(STEPS) ** -power
        released = np.asarray(law.release(np.full(asks, int((steps**power).sum()))))
        values.append(released * unit)
        laws.append(NoiseLaw.of(law, integer=True, unit=unit))
    return measured(values, laws, CONFIDENCE)


Limits = tuple[np.ndarray, np.ndarray, np.ndarray, float, tuple[float, float]]
"""The values and limits of all asks, the truth, and the range of what is possible."""


def ask(aggregate: str, steps: np.ndarray, noise: str, epsilon: float, asks: int) -> Limits:
    """Many asks of one aggregate."""
    unbounded = -math.inf, math.inf
    if aggregate in ("COUNT", "SUM"):
        power = int(aggregate == "SUM")
        law = mechanism(noise, STEPS**power, epsilon)
        released = np.asarray(law.release(np.full(asks, int((steps**power).sum())))) * float(STEPS) ** -power
        error = law.error(CONFIDENCE, integer=True) * float(STEPS) ** -power
        return (
            released,
            released - error,
            released + error,
            float((steps**power).sum()) * float(STEPS) ** -power,
            (unbounded),
        )
    x = steps / STEPS
    if aggregate == "AVG":
        estimate, truth, ends = mean(*sums(steps, noise, epsilon, 2, asks), 1.0), float(x.mean()), (-1.0, 1.0)
    else:
        estimate, truth, ends = variance(*sums(steps, noise, epsilon, 3, asks), 1.0), float(x.var(ddof=1)), (0.0, 2.0)
        if aggregate == "STDDEV":
            estimate, truth, ends = standard_deviation(estimate), math.sqrt(truth), (0.0, math.sqrt(2))
    value, low, high = (np.asarray(number) for number in estimate)
    return value, low, high, truth, ends


Cell = tuple[float, bool, float]
"""The coverage, whether it counts against the upper target, and how wide ± is against what is needed."""


def cell(aggregate: str, steps: np.ndarray, noise: str, epsilon: float, asks: int) -> Cell:
    """One aggregate of one population at one epsilon."""
    value, low, high, truth, ends = ask(aggregate, steps, noise, epsilon, asks)
    covered = float(np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9)))
    inside = float(np.mean((low > ends[0]) & (high < ends[1]))) >= 0.9
    if aggregate == "COUNT":
        inside = high[0] - low[0] >= 10
    needed = float(np.quantile(np.abs(value - truth), CONFIDENCE))
    half_width = float(np.median(np.maximum(high - value, value - low)))
    return covered, inside, half_width / max(needed, 1e-12)


def row(aggregate: str, noise: str, epsilon: float, asks: int, cells: list[Cell]) -> Row:
    """All populations."""
    error = math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / asks)
    lowest, highest = min(covered for covered, *_ in cells), max(covered for covered, *_ in cells)
    counted = [item for item in cells if item[1]]
    met = lowest >= LOWEST - 3 * error and all(covered <= HIGHEST + 3 * error for covered, *_ in counted)
    ratio = f"; ± {max(width for *_, width in counted):.2f}" if counted else ""
    return Row(
        f"{aggregate}, {noise}, ε = {epsilon:g} ({len(counted)})",
        f"{100 * lowest:.1f}–{100 * highest:.1f} %{ratio}",
        f"± {100 * error:.1f} %",
        target="94–97 %" if counted else "≥ 94 %",
        met=met,
    )


def covering(name: str, hits: int, total: int, highest: float = 1.0) -> Row:
    """How many of the intervals hold, against 94 % and the most that they may."""
    covered, error = hits / total, math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / total)
    return Row(
        name,
        f"{100 * covered:.1f} %",
        f"± {100 * error:.1f} %",
        target="≥ 94 %" if highest == 1 else f"94–{100 * highest:g} %",
        met=LOWEST - 3 * error <= covered <= highest + 3 * error,
    )


def through_statistics(asks: int, data: list[np.ndarray]) -> Iterator[Row]:
    """The same by the public functions."""
    functions: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], float]]] = {
        "mean": (dp.stats.mean, lambda x: float(x.mean())),
        "var": (dp.stats.var, lambda x: float(x.var(ddof=1))),
        "std": (dp.stats.std, lambda x: float(x.std(ddof=1))),
    }
    for name, (function, true) in functions.items():
        for relation in (dp.AddRemove, dp.ReplaceOne):
            hits = total = 0
            for steps in data:
                truth = true(steps)
                for _ in range(asks):
                    low, high = function(steps, bounds=(-STEPS, STEPS), epsilon=1.0, neighbors=relation).interval()
                    hits += low - 1e-6 <= truth <= high + 1e-6
                    total += 1
            yield covering(f"dp.stats.{name}, {relation!r}, ε = 1", hits, total, 0.975)


ASKED = {
    "COUNT(*)": len,
    "COUNT(DISTINCT x)": lambda x: len(np.unique(x)),
    "SUM(x)": np.sum,
    "AVG(x)": np.mean,
    "VAR(x)": lambda x: np.var(x, ddof=1),
    "STDDEV(x)": lambda x: np.std(x, ddof=1),
    "CORR(x, y)": lambda x: float(np.corrcoef(x, partner(x))[0, 1]),
    "REGR_SLOPE(y, x)": lambda x: float(np.polyfit(x, partner(x), 1)[0]),
    "MEDIAN(x)": lambda x: float(np.quantile(x, 0.5, method="inverted_cdf")),
    "MIN(x)": np.min,
    "MAX(x)": np.max,
}
"""Aggregates in SQL, and their truth."""
TABLE_POPULATIONS = ("diabetes, progression", "breast cancer, radius", "digits, ink")


def partner(x: np.ndarray) -> np.ndarray:
    """A second column that goes with the first: half of it, and a ripple."""
    return np.rint(x / 2 + STEPS / 8 * np.sin(np.arange(x.size))).astype(np.int64)


def through_tables(groups: int, data: dict[str, np.ndarray]) -> Iterator[Row]:
    """The same by SQL about a table, for some populations."""
    for sql, true in ASKED.items():
        for noise in ("laplace", "gaussian"):
            hits = total = 0
            for name in (name for name in TABLE_POPULATIONS if name in data):
                x = data[name]
                rows = pa.table(
                    {
                        "g": np.repeat(np.arange(groups), x.size),
                        "x": np.tile(x, groups),
                        "y": np.tile(partner(x), groups),
                    }
                )
                bounds = {"x": (-STEPS, STEPS), "y": (-STEPS, STEPS)}
                with dp.open(
                    rows,
                    bounds=bounds,
                    keys={"g": list(range(groups))},
                    budget=dp.ApproxDP(10, 1e-3),
                    delta=DELTA,
                    name="t",
                ) as table:
                    question = table.sql(f"SELECT g, {sql} AS a FROM t GROUP BY g")
                    answer = question.release(epsilon=1, noise=noise, quantile_interval=True)
                truth = float(true(x))
                for value, error in zip(answer["a"], answer.error("a"), strict=True):
                    # what has no limits excludes nothing
                    hits += error is None or value is None or abs(value - truth) <= error + 1e-9 * STEPS
                    total += 1
            yield covering(f"{sql} in a table, {noise}, ε = 1", hits, total)


def seconds(parts: int) -> float:
    """How long the intervals of many groups take, in CPU seconds."""
    steps = np.arange(-STEPS, STEPS + 1, 20)
    released = sums(steps, "Laplace", 1.0, parts, GROUPS)
    start = time.process_time()
    if parts == 2:
        mean(*released, 1.0)
    else:
        variance(*released, 1.0)
    return time.process_time() - start


def rows(quick: bool = False, path: Path | None = None) -> list[Row]:
    """All of the suite."""
    named = {name: centered(np.asarray(values, dtype=np.float64)) for name, values in populations(path)}
    if quick:
        named = {name: named[name] for name in TABLE_POPULATIONS[:1]}
    data = list(named.values())
    asks = 100 if quick else 10_000
    result, coverages = [], []
    for aggregate in ("COUNT", "SUM", "AVG", "VAR", "STDDEV"):
        for noise in ("Laplace", "Gaussian"):
            for epsilon in EPSILONS:
                cells = [cell(aggregate, steps, noise, epsilon, asks) for steps in data]
                result.append(row(aggregate, noise, epsilon, asks, cells))
                coverages += [covered for covered, *_ in cells]
    for what, count in (
        ("below 94 %", np.sum(np.array(coverages) < LOWEST)),
        ("from 94 to 97 %", np.sum((np.array(coverages) >= LOWEST) & (np.array(coverages) <= HIGHEST))),
        ("above 97 %", np.sum(np.array(coverages) > HIGHEST)),
    ):
        result.append(Row(f"All {len(coverages)} cells, none left out: {what}", str(count)))
    result += through_statistics(1 if quick else 200, data)
    result += through_tables(2 if quick else 300, named)
    for what, parts in (("AVG", 2), ("VAR", 3)):
        result.append(limited(f"Intervals of {what} in {GROUPS:,} groups", seconds(parts), "s", 0.5))
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--data", type=Path, help="a CSV file with a column 'age', as a further population")
    options, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    main(TITLE, NOTES, lambda quick: rows(quick, options.data))
