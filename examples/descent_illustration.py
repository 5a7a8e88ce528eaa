"""The two plots of document 2, made again with its own parameters, and what they can and cannot show.

Source: document 2 of the course, the illustrations of Example 33: the mean of n = 1000 draws of an exponential law, by
gradient descent with steps of 0.1 (30 iterates from 0), and by stochastic gradient descent with one record a step (200
iterates): constant steps of 0.1, and steps of 0.1/sqrt(1 + i), i = 1, 2, ..., records in order; and the latter with a
record drawn at random in each step.

Each line is one path; its law is known. An iterate is linear in the records drawn, so the mean and the variance of
its distance to the mean of the population follow from a recursion, shown as bands of two standard deviations. Constant
steps end 0.33 away from it in the root of the mean square, falling ones 0.089. The loops compute 29 gradients of 1000
records, and 199 of one, not 30,000 and 200. Nothing here is private.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dither import learn

N, GAMMA, ITERATES, STOCHASTIC = 1000, 0.1, 30, 200
CONSTANT = learn.Schedule(GAMMA)
FALLING = learn.Schedule(GAMMA, rho=0.5, skip=1)
"""0.1/sqrt(1 + i) from i = 1 on."""


def paths(data: np.ndarray) -> dict[str, learn.Trace]:
    """One path of each algorithm."""
    loss, X = learn.Squared(), np.ones((data.size, 1))
    count = STOCHASTIC - 1
    in_order = X[:count], data[:count]
    return {
        "GD": learn.gradient_descent(loss, X, data, start=0.0, steps=ITERATES - 1, schedule=CONSTANT),
        "constant": learn.online_sgd(loss, *in_order, start=0.0, batch=1, schedule=CONSTANT),
        "falling": learn.online_sgd(loss, *in_order, start=0.0, batch=1, schedule=FALLING),
        "falling, random": learn.offline_sgd(loss, X, data, start=0.0, steps=count, schedule=FALLING),
    }


def law(steps: np.ndarray, mean: float, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation of every iterate from 0, for independent records."""
    middle, spread = [0.0], [0.0]
    for gamma in steps.tolist():
        middle.append((1 - 2 * gamma) * middle[-1] + 2 * gamma * mean)
        spread.append((1 - 2 * gamma) ** 2 * spread[-1] + (2 * gamma) ** 2 * variance)
    return np.array(middle), np.sqrt(spread)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print where each path ends, and what its law says, and draw both plots."""
    data = np.random.default_rng(33).exponential(size=N)
    traces, mean = paths(data), float(data.mean())
    laws = {
        name: law(schedule.steps(STOCHASTIC - 1), 1.0, 1.0)
        for name, schedule in (("constant", CONSTANT), ("falling", FALLING))
    }
    rms = {name: float(np.hypot(middle[-1] - 1, spread[-1])) for name, (middle, spread) in laws.items()}
    repeats, ends = 200 if quick else 2000, {}
    rng = np.random.default_rng(34)
    for name, schedule in (("constant", CONSTANT), ("falling", FALLING)):
        runs = [
            learn.online_sgd(
                learn.Squared(), np.ones((199, 1)), rng.exponential(size=199), start=0.0, batch=1, schedule=schedule
            )
            for _ in range(repeats)
        ]
        ends[name] = float(np.sqrt(np.mean([(run.last[0] - 1) ** 2 for run in runs])))
    reached = float(traces["GD"].last[0]) / mean
    gradients = {"GD": (ITERATES - 1) * N, "SGD": STOCHASTIC - 1}
    print(f"mean of the data {mean:.4f}; GD ends at {traces['GD'].last[0]:.4f}, {reached:.5f} of it = 1 - 0.8^29")
    for name in ("constant", "falling", "falling, random"):
        print(f"SGD, {name:>15} steps: one path ends at {traces[name].last[0]:.4f}")
    for name in rms:
        print(
            f"SGD, {name:>8} steps: RMS distance to 1 {rms[name]:.5f} by its law, {ends[name]:.4f} in {repeats} paths"
        )
    print(f"gradients of one record: GD {gradients['GD']:,}, SGD {gradients['SGD']}")

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    index = np.arange(1, ITERATES + 1)
    left.plot(index, traces["GD"].iterates[:, 0], color="blue")
    left.axhline(mean, color="black", linewidth=0.8)
    left.set(title="GD", xlabel="Index", ylabel="results", ylim=(0, 1.1))
    index = np.arange(1, STOCHASTIC + 1)
    for name, color in (("constant", "blue"), ("falling", "red"), ("falling, random", "green")):
        right.plot(index, traces[name].iterates[:, 0], color=color, linewidth=1, label=f"{name} steps")
    for name, color in (("constant", "blue"), ("falling", "red")):
        middle, spread = laws[name]
        right.fill_between(index, middle - 2 * spread, middle + 2 * spread, color=color, alpha=0.12, linewidth=0)
    right.axhline(mean, color="black", linewidth=0.8)
    right.set(title="SGD, and two standard deviations", xlabel="Index", ylabel="res", ylim=(0, None))
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "descent_illustration.png", dpi=150)
    return {
        "reached": reached,
        "rms": rms,
        "ends": ends,
        "repeats": repeats,
        "gradients": gradients,
        "laws": laws,
        "traces": traces,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer paths for the check of the law")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
