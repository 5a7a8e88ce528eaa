"""A whole distribution in one, two, three and more dimensions: when would the Kolmogorov-Smirnov mechanism win?

Source: document 1 and Wasserman and Zhou (2010). Document 1 says that the mechanism's rate, n^(-1/3) for any number r
of dimensions, is faster than that of the other epsilon-DP releases, and that nobody knows how to draw it. It is drawn
exactly here, on a line and on narrow grids (``dither.density.ks``), and compared with the noisy, the perturbed and
the smoothed histogram for r = 1, 2, 3; the last column is a noisy histogram on the mechanism's own narrow grid.

In more dimensions the rates decide. Noisy counts on V cells a side have an error of order V^(r/2)/(n epsilon) from the
noise of the V^r/2 cells below a vertex, and hide 1/V of a rough distribution inside their cells, 1/V^2 of a smooth
one. The best V gives n^(-2/(r + 2)) and n^(-4/(r + 4)), at most the n^(-1/2) of the sample. Against n^(-1/3) the
sentence of document 1 becomes plausible from r = 5 on for rough distributions, from r = 9 on for smooth ones. This is
true of the noisy counts, which may be negative. Made probabilities by least squares, as ``density.release`` does, they
lose mass to the many empty cells (dotted); the distribution nearest in KS distance would lose a factor of 2 at most.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

EPSILON = 1.0
METHODS = ("histogram", "perturbed", "smoothed", "ks", "same grid")
GRIDS = {1: (100,), 2: (40, 3), 3: (24, 2, 2)}
"""Of the mechanism, which needs narrow grids; the histograms have their default grids."""


def truth(t: np.ndarray) -> np.ndarray:
    """The distribution function of independent coordinates of law Beta(2, 5)."""
    return np.asarray(np.prod(1 - (1 - t) ** 5 * (1 + 5 * t), axis=-1))


def distance(result: dp.density.Density, rng: np.random.Generator) -> float:
    """The largest distance to the truth at 4000 random points and the lines through the grid's vertices."""
    points = rng.beta(2, 3, (4000, result.dimensions))
    axes = [line[rng.integers(0, line.size, 4000)] for line in result.edges]
    both = np.concatenate([points, np.column_stack(axes)])
    return float(np.abs(result.cdf(both[:, 0] if result.dimensions == 1 else both) - truth(both)).max())


def released(x: np.ndarray, method: Any, bins: Any = None) -> dp.density.Density:
    """One release of these records."""
    dimensions = x.shape[1]
    if dimensions == 1:
        return dp.density.release(x[:, 0], (0, 1), EPSILON, method, bins=bins[0] if bins else None)
    return dp.density.release(x, [(0, 1)] * dimensions, EPSILON, method, bins=bins)


def best_cells(n: int, dimensions: int) -> int:
    """The number of cells a side for a smooth distribution."""
    return max(2, round((n * EPSILON) ** (2 / (dimensions + 4))))


def both_distances(n: int, dimensions: int, rng: np.random.Generator) -> tuple[float, float]:
    """The error of noisy counts as they are, and made probabilities by least squares."""
    x, shape = rng.beta(2, 5, (n, dimensions)), (best_cells(n, dimensions),) * dimensions
    result = released(x, "histogram", shape)
    counts = np.histogramdd(x, result.edges)[0].astype(np.int64)
    noisy = np.array(dp.Laplace(sensitivity=2, epsilon=EPSILON).release(counts.ravel())).reshape(shape)
    return distance(dataclasses.replace(result, weights=noisy / n), rng), distance(result, rng)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Compare four releases for r = 1, 2, 3, and the noisy histogram with n^(-1/3) for more dimensions."""
    rng, repeats = np.random.default_rng(9), 3 if quick else 10
    sizes = [1000] if quick else [1000, 10_000]
    four: dict[str, list[float]] = {}
    print(f"mean distance to the truth of {repeats} releases, ε = {EPSILON:g}")
    print(f"{'r':>2} {'n':>7} " + " ".join(f"{name:>10}" for name in METHODS) + "   n^(-1/3)")
    for dimensions, grid in GRIDS.items():
        for n in sizes:
            row = []
            for method in METHODS:
                samples = [rng.beta(2, 5, (n, dimensions)) for _ in range(repeats)]
                bins = grid if method in ("ks", "same grid") else None
                drawn = "histogram" if method == "same grid" else method
                row.append(float(np.mean([distance(released(x, drawn, bins), rng) for x in samples])))
            four[f"{dimensions}, {n}"] = row
            print(f"{dimensions:>2} {n:>7} " + " ".join(f"{v:>10.4f}" for v in row) + f" {n ** (-1 / 3):>10.4f}")

    counts = [1000, 10_000] if quick else [1000, 3162, 10_000, 31_623, 100_000]
    curves: dict[int, list[float]] = {}
    made: dict[int, list[float]] = {}
    for r in (1, 2, 3, 4) if quick else (1, 2, 3, 4, 5, 6):
        pairs = [[both_distances(n, r, rng) for _ in range(2 if quick else 5)] for n in counts]
        curves[r], made[r] = np.mean(pairs, axis=1).T.tolist()
    logs = np.log(counts)
    slopes = {r: float(np.polyfit(logs, np.log(values), 1)[0]) for r, values in curves.items()}
    for r, values in curves.items():
        ends = f"{values[0]:.4f} at n = {counts[0]}, {values[-1]:.4f} at {counts[-1]}"
        print(f"noisy counts, r = {r}: {ends} (as probabilities {made[r][-1]:.4f}), slope {slopes[r]:.2f}")
    rough, smooth = (next(r for r in range(1, 20) if rate(r) < 1 / 3) for rate in (rough_rate, smooth_rate))
    print(f"the rate n^(-1/3) is faster than that of noisy counts from r = {rough} (rough), {smooth} (smooth)")

    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for r, values in curves.items():
        (drawn,) = left.plot(counts, values, "o-", markersize=4, label=f"noisy counts, r = {r}")
        left.plot(counts, made[r], ":", color=drawn.get_color())
    line = np.array([counts[0], counts[-1]], dtype=float)
    left.plot(line, line ** (-1 / 3), "k--", label=r"$n^{-1/3}$")
    left.set(xscale="log", yscale="log", xlabel="records n", ylabel="KS distance to the truth")
    over = np.arange(1, 13)
    right.plot(over, [rough_rate(r) for r in over], "v-", label="noisy counts, rough distribution")
    right.plot(over, [smooth_rate(r) for r in over], "o-", label="noisy counts, smooth distribution")
    right.axhline(1 / 3, color="black", linestyle="--", label="KS mechanism (Wasserman and Zhou)")
    right.set(xlabel="dimensions r", ylabel=r"exponent $a$ of the rate $n^{-a}$", ylim=(0, 0.55))
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "density_dimensions.png", dpi=150)
    return {
        "four": four,
        "curves": curves,
        "made": made,
        "counts": counts,
        "slopes": slopes,
        "rough": rough,
        "smooth": smooth,
    }


def rough_rate(dimensions: int) -> float:
    """The exponent of a noisy histogram for a distribution of bounded density."""
    return min(1 / 2, 2 / (dimensions + 2))


def smooth_rate(dimensions: int) -> float:
    """The exponent of a noisy histogram for a Lipschitz density."""
    return min(1 / 2, 4 / (dimensions + 4))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer releases, fewer dimensions")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
