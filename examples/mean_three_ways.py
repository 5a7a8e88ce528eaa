"""A mean of n numbers in [0, 1], released by Laplace noise and by the exponential mechanism with two scores.

Source: document 1 of the course, Example, the mean, with its statements corrected:

* ``-|mean - t|`` has sensitivity 1/n. Over the whole line the normaliser is the same for all data, so the release,
  Lap(2/(n epsilon)), costs epsilon/2 only; run at 2 epsilon it *is* the Laplace mechanism. Cut to [0, 1] the
  normaliser does depend on the data, and the cost near the ends is between the two.
* ``-(mean - t)^2`` has sensitivity (2 - 1/n)/n on [0, 1], not 1/n. Over the whole line it is unbounded, so the
  untruncated N(mean, 1/(n epsilon)) is not epsilon-DP. Cut to [0, 1], the density that is printed, with 1/n,
  costs less than epsilon after all: that is computed below, it does not follow from the theorem.

The true cost is ``max |ln p(t | mean) - ln p(t | mean')|`` over all means at most 1/n apart (one record replaced).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp
from dither.mechanisms import mean_pieces

EPSILON = 1.0
WAYS: dict[str, tuple[int, float, tuple[float, float], Callable[[int], Fraction]]] = {
    # power of the score, epsilon handed to the mechanism, bounds, sensitivity handed to it
    "-|.| on [0, 1]": (1, EPSILON, (0.0, 1.0), lambda n: Fraction(1, n)),
    "-|.| on [-2, 3]": (1, EPSILON, (-2.0, 3.0), lambda n: Fraction(1, n)),
    "-|.| on [-2, 3], at 2ε": (1, 2 * EPSILON, (-2.0, 3.0), lambda n: Fraction(1, n)),
    "-(.)² on [0, 1], (2-1/n)/n": (2, EPSILON, (0.0, 1.0), lambda n: (2 - Fraction(1, n)) / n),
    "-(.)² on [0, 1], the printed 1/n": (2, EPSILON, (0.0, 1.0), lambda n: Fraction(1, n)),
}


def rate_of(name: str, n: int) -> float:
    """The factor of the score in the exponent, epsilon / (2 sensitivity)."""
    return WAYS[name][1] / (2 * float(WAYS[name][3](n)))


def normaliser(name: str, n: int, mean: float) -> float:
    """The integral of ``exp(-rate |t - mean|^power)`` over the bounds."""
    power, _, (low, high), _ = WAYS[name]
    rate, left, right = rate_of(name, n), mean - low, high - mean
    if power == 1:
        return (2 - math.exp(-rate * left) - math.exp(-rate * right)) / rate
    return math.sqrt(math.pi / rate) / 2 * (math.erf(math.sqrt(rate) * left) + math.erf(math.sqrt(rate) * right))


def true_cost(name: str, n: int) -> float:
    """The largest log ratio; in t it is largest at an end of the bounds or at one of the two means."""
    power, _, bounds, _ = WAYS[name]
    worst = 0.0
    for distance in (k / (4 * n) for k in range(1, 5)):
        for a in np.linspace(0, 1 - distance, 401).tolist():
            b = a + distance
            drift = math.log(normaliser(name, n, b) / normaliser(name, n, a))
            for t in (*bounds, a, b):
                worst = max(worst, abs(rate_of(name, n) * (abs(t - b) ** power - abs(t - a) ** power) + drift))
    return worst


def density(name: str, n: int, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """A grid over the bounds, finer near the mean, and the density of the release there."""
    power, _, (low, high), _ = WAYS[name]
    near = mean + np.sinh(np.linspace(-12, 12, 20_001)) * 3e-5
    t = np.unique(np.concatenate([near[(near > low) & (near < high)], [low, mean, high]]))
    return t, np.exp(-rate_of(name, n) * np.abs(t - mean) ** power) / normaliser(name, n, mean)


def errors(name: str, n: int, mean: float) -> tuple[float, float]:
    """The root mean square and the median of |release - mean|, from the density."""
    t, p = density(name, n, mean)
    mass = np.diff(t) * (p[1:] + p[:-1]) / 2
    square = float(mass @ ((t[1:] + t[:-1]) / 2 - mean) ** 2)
    total = np.concatenate([[0.0], np.cumsum(mass)])
    widths = np.linspace(0, 10 * math.sqrt(square), 20_001)
    inside = np.interp(mean + widths, t, total) - np.interp(mean - widths, t, total)
    return math.sqrt(square), float(np.interp(0.5, inside, widths))


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print errors and true costs at n = 100, and plot the densities and the errors over n."""
    n, draws = 100, 40 if quick else 300
    data = np.rint(np.random.default_rng(4).beta(2, 3, n) * 1000).astype(int)  # simulated, in thousandths
    exact = Fraction(int(data.sum()), 1000 * n)
    mean = float(exact)
    laplace = dp.Laplace(sensitivity=1 / n, epsilon=EPSILON)
    noisy = np.abs(np.asarray(laplace.release(np.full(draws, mean))) - mean)
    middle = laplace.scale * math.log(2)
    result = {"Laplace": (math.sqrt(2) * laplace.scale, float(np.mean(noisy <= middle)), EPSILON)}
    for name, (power, epsilon, bounds, sensitivity) in WAYS.items():
        mechanism = dp.Exponential.continuous(sensitivity=sensitivity(n), epsilon=epsilon, bounds=bounds)
        pieces = mean_pieces(exact, bounds, power)
        off = np.abs(np.array([mechanism.release(pieces) for _ in range(draws)]) - mean)
        spread, median = errors(name, n, mean)
        result[name] = (spread, float(np.mean(off <= median)), true_cost(name, n))

    print(f"n = {n}, mean = {mean:.4f}, epsilon = {EPSILON:g}; {draws} draws each")
    print(f"{'':>32} {'RMS error':>10} {'true cost':>10}  draws within the exact median error")
    for name, (spread, share, cost) in result.items():
        print(f"{name:>32} {spread:>10.4f} {cost:>10.4f}  {share:.2f}")
    sizes = [30, 100, 300, 1000, 3000]
    spreads = {name: [errors(name, size, 0.4)[0] for size in sizes] for name in WAYS}
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    t = np.linspace(0, 1, 2001)
    styles = zip(WAYS, ("s-", "o--", "v-", "^-", "D-"), (4.5, 1.5, 4.5, 2, 2), strict=True)
    for name, style, width in styles:  # two pairs lie on top of each other: the wider line below
        grid, p = density(name, n, mean)
        left.plot(grid, p, style[1:], linewidth=width)
        label = f"{name}: costs {result[name][2]:.3f}"
        right.loglog(sizes, spreads[name], style, linewidth=width, markersize=5 + width / 2, label=label)
    left.plot(t, np.exp(-np.abs(t - mean) / laplace.scale) / (2 * laplace.scale), "k--")
    right.loglog(sizes, [math.sqrt(2) / (size * EPSILON) for size in sizes], "k--", label="Laplace: costs 1.000")
    left.set(title=f"Density of the release, n = {n}", xlabel="released mean", ylabel="density", xlim=(0.1, 0.75))
    right.set(title=f"Error, and true cost at n = {n} (ε = {EPSILON:g})", xlabel="n", ylabel="RMS error")
    right.grid(alpha=0.3, which="both")
    right.legend(fontsize=7.5)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "mean_three_ways.png", dpi=150)
    columns = zip(("error", "share_within_median", "cost"), zip(*result.values(), strict=True), strict=True)
    return {"n": n, "draws": draws, **{key: dict(zip(result, values, strict=True)) for key, values in columns}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
