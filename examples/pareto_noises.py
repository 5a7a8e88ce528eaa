"""The mean and the median of Pareto data under Laplace, Gaussian, mixed and smooth noise.

Source: document 2 of the course, Example 11: density a x^(-a-1), x > 1. It compares noises for the mean. A mean over
all x > 1 has no finite sensitivity, so here the population is bounded: values above the public bound are clipped to
it.

* The mean's sensitivity is width/n for every table, so its smooth sensitivity is no smaller, and noise that must also
  hide its own size is larger than plain Laplace noise.
* The median's global sensitivity is the whole width, its smooth sensitivity that of the gaps in the middle: there the
  smooth noise is far smaller than any noise of the global sensitivity, whatever its law.
* "Mixed noise" as in Theorem 10, Gaussian with the variance of Laplace where the sensitivity is below
  sqrt(pi) delta epsilon / 2, is not (epsilon, delta)-DP: its true delta does not depend on the sensitivity, whereas the
  threshold does, and with it on the unit of measurement. ``dp.course.theorem_10`` refuses and says the true delta;
  ``dp.MixedNoise`` takes the smaller of the Laplace and the exactly calibrated Gaussian noise.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

SHAPE, BOUNDS, EPSILON, DELTA = 3.0, (1.0, 50.0), 1.0, 1e-6
WIDTH = BOUNDS[1] - BOUNDS[0]


def pareto(n: int) -> np.ndarray:
    """Simulated data, by inversion, clipped to the bounds."""
    u = np.random.default_rng(11).random(n)
    return np.clip((1 - u) ** (-1 / SHAPE), *BOUNDS)


def noises(reach: float) -> dict[str, Any]:
    """The noises whose size is public."""
    return {
        "Laplace": dp.Laplace(reach, EPSILON),
        "Gaussian": dp.Gaussian(reach, EPSILON, DELTA),
        "mixed": dp.MixedNoise(reach, EPSILON, DELTA),
    }


def compare(x: np.ndarray, draws: int) -> dict[str, dict[str, tuple[float, float]]]:
    """For the mean and the median, each noise: its standard deviation, and the share of draws within the half-width
    that holds with probability 1/2.
    """
    known = {"n": x.size, "bounds": BOUNDS, "neighbors": dp.ReplaceOne}
    sensitivity = {
        "mean": dp.sensitivity.mean(**known),
        "median": dp.sensitivity.median(bounds=BOUNDS, neighbors=dp.ReplaceOne),
    }
    value = {"mean": float(x.mean()), "median": float(np.median(x))}
    smooth = {"mean": dp.sensitivity.smooth_mean, "median": dp.sensitivity.smooth_median}
    result: dict[str, dict[str, tuple[float, float]]] = {}
    for name, truth in value.items():
        rows = {}
        for label, m in noises(sensitivity[name]).items():
            off = np.abs(np.asarray(m.release(np.full(draws, truth))) - truth)
            half = m.error(0.5, coordinates=1, integer=False)
            rows[label] = (math.sqrt(m.variance), float(np.mean(off <= half)))
        for kind in ("laplace", "gaussian", "student"):
            m = dp.SmoothNoise(kind, EPSILON, None if kind == "student" else DELTA)
            size = smooth[name](x, BOUNDS, m.beta)
            off = np.abs([m.release(truth, size, width=WIDTH) - truth for _ in range(draws)])
            rows[f"smooth {kind.capitalize()}"] = (m.std(size), float(np.mean(off <= m.error(size, 0.5))))
        result[name] = rows
    return result


def refusal(reach: float, delta: float) -> str:
    """What theorem_10 says to this sensitivity: the law it takes, or why it takes none."""
    try:
        return f"{type(dp.course.theorem_10(reach, EPSILON, delta)).__name__} noise"
    except dp.NotPrivate as error:
        return str(error)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print the errors, what Theorem 10 would do, and plot the errors over n."""
    n, draws = 1001, 300 if quick else 3000
    x = pareto(n)
    result = compare(x, draws)
    sensitivity = dp.sensitivity.mean(n=n, bounds=BOUNDS, neighbors=dp.ReplaceOne)
    print(f"{n} Pareto({SHAPE:g}) values in {BOUNDS}, epsilon = {EPSILON:g}, delta = {DELTA:g} where one is needed")
    print(f"mean {x.mean():.4f}, median {np.median(x):.4f}; standard deviation of the noise (share of {draws} draws")
    print(f"within the half-width for 1/2)\n{'':>16} {'mean':>18} {'median':>18}")
    for label in result["mean"]:
        cells = " ".join(f"{result[name][label][0]:>10.4f} ({result[name][label][1]:.3f})" for name in result)
        print(f"{label:>16} {cells}")
    chosen = dp.MixedNoise(sensitivity, EPSILON, DELTA).chosen
    units = {"in the unit of the data": sensitivity, "in units a million times as large": sensitivity * 1e-6}
    says = {unit: refusal(size, DELTA) for unit, size in units.items()}
    print(f"mixed noise takes {chosen}. Theorem 10 for the mean, sensitivity {sensitivity:.4f}:")
    for unit, text in says.items():
        print(f"  {unit}: {text}")

    sizes = [51, 101, 301, 1001, 3001] if quick else [51, 101, 301, 1001, 3001, 10_001, 30_001]
    curves: dict[str, list[float]] = {}
    for size in sizes:
        y = pareto(size)
        curves.setdefault("Laplace, global sensitivity", []).append(math.sqrt(2) * WIDTH / EPSILON)
        for kind, label in (("laplace", "smooth Laplace (δ)"), ("student", "smooth Student (pure)")):
            m = dp.SmoothNoise(kind, EPSILON, None if kind == "student" else DELTA)
            curves.setdefault(label, []).append(m.std(dp.sensitivity.smooth_median(y, BOUNDS, m.beta)))
        density = SHAPE * 2 ** (-1 - 1 / SHAPE)  # of the law at its median, 2^(1/a)
        curves.setdefault("sampling error", []).append(1 / (2 * density * math.sqrt(size)))
    figure = Figure(figsize=(10.5, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    labels = list(result["mean"])
    for shift, (name, color) in zip((-0.2, 0.2), (("mean", "tab:blue"), ("median", "tab:orange")), strict=True):
        places = np.arange(len(labels)) + shift
        left.barh(places, [result[name][label][0] for label in labels], 0.38, color=color, label=f"of the {name}")
    left.set_xscale("log")
    left.set_yticks(range(len(labels)), labels)
    left.invert_yaxis()
    left.set(title=f"Standard deviation of the noise, n = {n}", xlabel="standard deviation")
    left.legend(fontsize=8)
    for (label, values), style in zip(curves.items(), ("s-", "o-", "^-", "k--"), strict=True):
        right.loglog(sizes, values, style, markersize=4, label=label)
    right.set(title=f"Noise of the median, ε = {EPSILON:g}", xlabel="n", ylabel="standard deviation")
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "pareto_noises.png", dpi=150)
    figures = {"noise": result, "draws": draws, "n": n, "chosen": chosen}
    return figures | {"theorem_10": list(says.values()), "curves": curves}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer draws and sizes")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
