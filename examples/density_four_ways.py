"""A whole distribution, released four ways at epsilon = 1: which comes closest, and at what rate?

Source: document 1 of the course, and Wasserman and Zhou (2010): noisy, perturbed and smoothed histograms, and the
exponential mechanism over data sets with the Kolmogorov-Smirnov distance. It says that the last beats the other
epsilon-DP releases and gives its rate, n^(-1/3); here it is drawn exactly (``dither.density.ks``) and compared.

The error is the largest distance between the released distribution function and the true one, Beta(2, 5), from which
the data are simulated; that of the data themselves is shown beside it. It is no limit: a release is spread evenly over
each bin, and that smoothing can bring it closer to a smooth truth than the data are.

Every method runs at its default numbers of bins and points, none is tuned: these defaults are part of what is
compared, and on a distribution as smooth as this one other choices do better for some methods.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

EPSILON = 1.0
METHODS = ("histogram", "perturbed", "smoothed", "ks")
DATA = "the data (not private)"


def truth(t: np.ndarray) -> np.ndarray:
    """The distribution function of Beta(2, 5): P(at least 2 of 6 coins of chance t) = 1 - (1-t)^5 (1+5t)."""
    return 1 - (1 - t) ** 5 * (1 + 5 * t)


def distance(result: dp.density.Density) -> float:
    """The largest distance to the truth, on a fine grid that holds all edges of the bins."""
    t = np.union1d(np.linspace(0, 1, 4001), result.edges[0])
    return float(np.abs(result.cdf(t) - truth(t)).max())


def of_the_data(x: np.ndarray) -> float:
    """The Kolmogorov-Smirnov distance of the empirical distribution function to the truth."""
    below = truth(np.sort(x))
    steps = np.arange(x.size + 1) / x.size
    return float(max((steps[1:] - below).max(), (below - steps[:-1]).max()))


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print and plot the mean error of each method over n."""
    sizes = [100, 1000, 10_000] if quick else [100, 316, 1000, 3162, 10_000, 31_623, 100_000]
    repeats = 2 if quick else 20
    rng = np.random.default_rng(5)
    seen: dict[str, list[list[float]]] = {name: [] for name in (*METHODS, DATA)}
    for n in sizes:
        samples = [rng.beta(2, 5, n) for _ in range(repeats)]
        for method in METHODS:
            result = [dp.density.release(x, bounds=(0, 1), epsilon=EPSILON, method=method) for x in samples]
            seen[method].append([distance(item) for item in result])
        seen[DATA].append([of_the_data(x) for x in samples])
    mean = {name: [float(np.mean(row)) for row in rows] for name, rows in seen.items()}
    spread = {name: [float(np.std(row) / np.sqrt(repeats)) for row in rows] for name, rows in seen.items()}
    logs = np.log(sizes)
    slope = {name: float(np.polyfit(logs, np.log(values), 1)[0]) for name, values in mean.items()}

    print(
        f"Beta(2, 5), epsilon = {EPSILON:g}: mean KS error (± standard error) of {repeats} releases, default settings"
    )
    print(f"{'n':>8} " + " ".join(f"{name:>17}" for name in METHODS) + f" {'the data':>9}  smallest")
    for i, n in enumerate(sizes):
        cells = " ".join(f"{mean[name][i]:>8.4f} ± {spread[name][i]:.4f}" for name in METHODS)
        best = min(METHODS, key=lambda name: mean[name][i])
        print(f"{n:>8} {cells} {mean[DATA][i]:>9.4f}  {best}")
    print("   slope " + " ".join(f"{slope[name]:>17.2f}" for name in METHODS) + f" {slope[DATA]:>9.2f}")
    ahead = [n for i, n in enumerate(sizes) if mean["ks"][i] < mean["histogram"][i]]
    where = f"at n in {ahead} only" if ahead else "at no size"
    print(f"at its default settings the KS mechanism's mean error is below the noisy histogram's {where}")

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for name, style in zip(METHODS, ("o-", "v-", "D-", "s-"), strict=True):
        axes.errorbar(sizes, mean[name], 2 * np.array(spread[name]), fmt=style, capsize=2, markersize=5, label=name)
    axes.plot(sizes, mean[DATA], "k.-", linewidth=1, label=DATA)
    line = np.array([sizes[0], sizes[-1]], dtype=float)
    start = mean["ks"][0]
    axes.plot(line, 1.3 * start * (line / line[0]) ** (-1 / 3), "--", color="gray", label=r"slope of $n^{-1/3}$")
    axes.plot(line, 0.7 * mean[DATA][0] * (line / line[0]) ** -0.5, ":", color="gray", label=r"slope of $n^{-1/2}$")
    axes.set(
        title=f"Distance of the release to the truth, Beta(2, 5), ε = {EPSILON:g}, default settings",
        xlabel="number of records n",
        ylabel=f"KS distance, mean of {repeats} (± 2 standard errors)",
        xscale="log",
        yscale="log",
    )
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8.5, ncols=2)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "density_four_ways.png", dpi=150)
    return {"sizes": sizes, "repeats": repeats, "mean": mean, "slope": slope}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="up to 10,000 records, 2 releases each")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
