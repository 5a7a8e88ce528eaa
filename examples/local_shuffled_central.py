"""The mean of a survey by whom one trusts: nobody, a shuffler, or a collector.

Every number is promised the same: (0.5, 1e-6)-DP against whoever sees the result. *Local*: every report is 0.5-DP by
itself, so that nobody needs to be trusted. *Shuffled*: every report has the largest epsilon0 for which n shuffled
reports are (0.5, 1e-6)-DP; somebody is trusted to forget who sent what, and n is public. *Central*: a collector holds
all answers and adds noise once. Reports of one bit are shuffled, for which the sharper bound is known
(:mod:`dither.accounting.shuffling`). Standard errors are exact; the points are one survey each.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp
from dither.exact.search import bisect_floats

EPSILON, DELTA, BOUNDS = 0.5, 1e-6, (0, 10)


def answers(n: int) -> np.ndarray:
    """Simulated: satisfaction from 0 to 10, mean 6."""
    return 10 * np.linspace(0, 1, n) ** (2 / 3)


def report_epsilon(n: int) -> float:
    """The largest epsilon0, to a thousandth, whose reports are private enough once they are shuffled."""

    def enough(epsilon0: float) -> bool:
        return dp.accounting.shuffled(epsilon0, n, DELTA, distinct=True).epsilon <= EPSILON

    return bisect_floats(enough, 12.0, EPSILON, tolerance=1e-2).holds


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print the standard error of the mean in the three models against n, and plot it."""
    sizes = [1_000, 10_000, 100_000] if quick else [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    rows: dict[str, list[float]] = {"local": [], "shuffled": [], "central": []}
    seen: dict[str, list[float]] = {name: [] for name in rows}
    epsilons = []
    print(f"the mean of answers from 0 to 10, ({EPSILON}, {DELTA})-DP in each model; standard errors")
    print(f"{'people':>9} {'local':>9} {'shuffled':>9} {'epsilon0':>9} {'central':>9}")
    for n in sizes:
        values, epsilon0 = answers(n), report_epsilon(n)
        epsilons.append(epsilon0)
        local = dp.local.Mean(BOUNDS, EPSILON)
        shuffled = dp.local.Mean(BOUNDS, epsilon0, "duchi")
        central = dp.Laplace(sensitivity=10 / n, epsilon=EPSILON)
        rows["local"].append(math.sqrt(local.variance(n)))
        rows["shuffled"].append(math.sqrt(shuffled.variance(n)))
        rows["central"].append(math.sqrt(central.variance))
        for name, protocol in (("local", local), ("shuffled", shuffled)):
            seen[name].append(abs(protocol.estimate(protocol.privatize(values)).value - float(values.mean())))
        seen["central"].append(abs(central.release(float(values.mean())) - float(values.mean())))
        cells = [f"{rows['local'][-1]:>9.4f}", f"{rows['shuffled'][-1]:>9.4f}", f"{epsilon0:>9.2f}"]
        print(f"{n:>9,} {' '.join(cells)} {rows['central'][-1]:>9.5f}")
    print("one more zero of people: local and shuffled errors fall by √10, the central one by 10")

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for color, name in zip(("tab:red", "tab:orange", "tab:green"), rows, strict=True):
        axes.loglog(sizes, rows[name], "-", color=color, label=f"{name}: standard error, at most")
        axes.loglog(sizes, seen[name], "o", color=color, markersize=4)
    axes.plot([], [], "o", color="gray", markersize=4, label="dots: the error of one run")
    axes.set(
        title=f"The mean of a survey, (ε, δ) = ({EPSILON}, {DELTA}), by whom one trusts",
        xlabel="people",
        ylabel="error of the mean (answers are 0 to 10)",
    )
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "local_shuffled_central.png", dpi=150)
    return {"sizes": sizes, "standard_error": rows, "seen": seen, "epsilon0": epsilons}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer numbers of people")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
