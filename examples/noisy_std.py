"""A noisy standard deviation: why width/(n epsilon) is too little noise, and why the root of a noisy variance is best.

Source: document 2 of the course, Example 23, which adds Lap(width/(n epsilon)) to the standard deviation. Its
sensitivity is width/sqrt(n), not width/n: n zeros against n - 1 zeros and one record at the bound have the standard
deviations 0 and *exactly* width/sqrt(n). With the printed noise the two are told apart by one answer: the true loss
is sqrt(n) epsilon.

The right noise for the standard deviation itself is sqrt(n) times larger and drowns it. The variance is far less
sensitive, width^2/n, so dp.stats.std adds noise to that and takes the root, which costs nothing. The document objects
that a noisy variance can be negative and has no root then; P(negative) = exp(-s^2/b)/2 with b = width^2/(n epsilon).
Clamped at 0 it has one, and even there the error is smaller than with noise on the standard deviation.
method="bounded" draws the variance inside its domain instead, never 0, with more noise.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

N, BOUNDS, EPSILON = 1000, (0.0, 100.0), 1.0
WIDTH = BOUNDS[1] - BOUNDS[0]
TOP = WIDTH**2 * (N // 2) * (N - N // 2) / (N * (N - 1))  # the largest variance there is


def spread_of(sd: float) -> np.ndarray:
    """Data whose standard deviation is exactly ``sd``, up to rounding."""
    z = np.random.default_rng(23).normal(0, 1, N)
    z = (z - z.mean()) / z.std(ddof=1)
    return 50 + sd * z


def root_error(sd: float, scale: float, top: float, bounded: bool) -> float:
    """The root mean square error of the root of a noisy variance, from its density around sd^2."""
    z = np.concatenate([-np.geomspace(45, 1e-6, 20_001), np.geomspace(1e-6, 45, 20_001)]) * scale
    v = sd**2 + z
    if bounded:
        v = np.unique(np.clip(v, 0, top))
    p = np.exp(-np.abs(v - sd**2) / scale) / (2 * scale)
    mass = np.diff(v) * (p[1:] + p[:-1]) / 2
    middle = np.clip((v[1:] + v[:-1]) / 2, 0, top)
    return math.sqrt(float(mass @ (np.sqrt(middle) - sd) ** 2 / mass.sum()))


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print the pair and its true loss, the errors of the three ways, and plot both."""
    draws = 200 if quick else 4000
    pair = [np.zeros(N), np.r_[np.zeros(N - 1), BOUNDS[1]]]
    sds = [float(x.std(ddof=1)) for x in pair]
    right_size = dp.sensitivity.std(n=N, bounds=BOUNDS, neighbors=dp.ReplaceOne)
    wrong = dp.Laplace(WIDTH / N, EPSILON)  # the printed sensitivity
    right = dp.Laplace(right_size, EPSILON)
    moved = dp.Laplace(sds[1], sds[1] / wrong.scale)  # the same noise, with the sensitivity that it really has to hide
    loss = float(moved.epsilon)
    delta = moved.privacy_curve(EPSILON, integer=False)
    cut = sds[1] / 2
    lines = [float(np.mean(np.asarray(wrong.release(np.full(draws, sd))) > cut)) for sd in sds]
    scale = WIDTH**2 / (N * EPSILON)
    inner = dp.BoundedLaplace(scale * EPSILON, EPSILON, 0.0, TOP).scale
    levels = [0.0, 1.0, 2.0, 4.0, 8.0, 15.0]
    rows: dict[str, list[float]] = {"zero": [], "exact zero": [], "clamped": [], "bounded": [], "seen": [], "least": []}
    for sd in levels:
        x = spread_of(sd)
        seen = np.array([dp.stats.std(x, BOUNDS, EPSILON) for _ in range(draws)])
        inside = np.array([dp.stats.std(x, BOUNDS, EPSILON, method="bounded") for _ in range(draws // 4)])
        rows["zero"].append(float(np.mean(seen == 0)))
        rows["exact zero"].append(math.exp(-(sd**2) / scale) / 2)
        rows["clamped"].append(root_error(sd, scale, TOP, False))
        rows["bounded"].append(root_error(sd, inner, TOP, True))
        rows["seen"].append(math.sqrt(float(np.mean((seen - sd) ** 2))))
        rows["least"].append(float(inside.min()))
    direct = math.sqrt(right.variance)

    print(f"n = {N}, values in {BOUNDS}, epsilon = {EPSILON:g}")
    print(f"standard deviation of {N} zeros: {sds[0]:g}; with one at the bound: {sds[1]:.6f}")
    print(f"sensitivity: width/n = {WIDTH / N:g} (as printed), width/sqrt(n) = {right_size:.6f} (true)")
    print(f"noise Lap(width/(n epsilon)) on this pair: true loss {loss:.3f}, delta at epsilon {delta:.7f};")
    print(f"  above {cut:.2f}: {lines[0]:.3f} of the answers for the zeros, {lines[1]:.3f} for the other table")
    print(f"RMS error with Lap(width/(sqrt(n) epsilon)) on the standard deviation: {direct:.3f}, for all data")
    print(f"{'sd':>6} {'std':>8} {'seen':>8} {'bounded':>8} {'P(noisy variance < 0)':>22} {'seen':>7}")
    for i, sd in enumerate(levels):
        print(f"{sd:>6g} {rows['clamped'][i]:>8.3f} {rows['seen'][i]:>8.3f} {rows['bounded'][i]:>8.3f}", end=" ")
        print(f"{rows['exact zero'][i]:>22.4f} {rows['zero'][i]:>7.4f}")

    figure = Figure(figsize=(10.5, 4.3), layout="constrained")
    left, axes = figure.subplots(1, 2)
    t = np.linspace(-4, 8, 2401)
    for sd, name, style in zip(sds, ("all 0", f"one record at {BOUNDS[1]:g}"), ("-", "--"), strict=True):
        for m, color, which in ((wrong, "tab:red", "width/n"), (right, "tab:blue", "width/√n")):
            density = np.exp(-np.abs(t - sd) / m.scale) / (2 * m.scale)
            left.semilogy(t, density, style, color=color, label=f"{which}, {name}")
    left.set(title=f"Noise on the standard deviation, ε = {EPSILON:g}", xlabel="answer", ylabel="density")
    left.set_ylim(1e-6, 1e3)
    left.legend(fontsize=8, ncols=2, loc="upper center")
    grid = np.linspace(0, 20, 60)
    axes.axhline(direct, color="tab:blue", label="noise on the standard deviation, width/√n")
    bounded_curve = [root_error(sd, inner, TOP, True) for sd in grid]
    axes.plot(grid, bounded_curve, color="tab:orange", label='dp.stats.std, method="bounded"')
    axes.plot(grid, [root_error(sd, scale, TOP, False) for sd in grid], color="tab:green", label="dp.stats.std")
    axes.plot(levels, rows["seen"], "o", color="tab:green", label=f"dp.stats.std, {draws} draws")
    axes.set(title="Error of the private standard deviation", xlabel="true standard deviation", ylabel="RMS error")
    axes.set_ylim(0, None)
    axes.legend(fontsize=8)
    for panel in (left, axes):
        panel.grid(alpha=0.3)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "noisy_std.png", dpi=150)
    return {"n": N, "draws": draws, "pair": sds, "loss": loss, "delta": delta, "told": lines, "direct": direct, **rows}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
