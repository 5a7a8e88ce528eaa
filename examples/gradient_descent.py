"""Gradient descent and stochastic gradient descent on four small problems, each beside the bound that holds for it.

Source: document 2 of the course, Examples 31 (a parabola), 32 (least squares), 33 (a sample mean) and 34 (ridge
regression), and its illustrations of GD and SGD for the mean. Three things that are only said there are seen here:

* (6), ``|beta0 - beta*|^2 / sum of steps``, bounds the excess of the weighted average for steps of at most 1.5/L; (9),
  with C twice the variance of the gradients at the minimum, bounds its mean for SGD and steps of at most 1/(4L).
* SGD with constant steps does not settle; with falling steps it does. The illustration's own loop takes the rows in
  order for two of its three lines, so those are *online* SGD, and the third is *offline*.
* The gradient that example 32 writes down is half of that of its loss: the factor 2 is left out. As a step size it
  does not matter.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dither.learn.gd import (
    Schedule,
    Trace,
    descend,
    descent_bound,
    gradient_descent,
    gradient_variance,
    offline,
    online,
    stochastic_bound,
)
from dither.learn.losses import Squared, ridge_line

GAMMA = 0.1


def four_descents() -> dict[str, tuple[Trace, np.ndarray, np.ndarray]]:
    """The trace, the excess of the average and its bound (6), for the examples 31 to 34."""
    rng = np.random.default_rng(31)
    result = {}
    trace = descend(lambda beta, _: beta, start=1.0, steps=100, schedule=Schedule(GAMMA))
    result["31: x²/2"] = trace, trace.averages[:, 0] ** 2 / 2, descent_bound(1.0, trace.steps, 1.0)
    x = rng.normal(size=1000)
    data = rng.exponential(size=1000)
    line = np.column_stack([np.ones(1000), x])
    problems = {
        "32: least squares": (Squared(), x[:, np.newaxis], 2 * x + rng.normal(size=1000)),
        "33: mean": (Squared(), np.ones((1000, 1)), data),
        "34: ridge": (Squared(weight=0.5, penalty=0.5, free=1), line, 1 + 2 * x + rng.normal(size=1000)),
    }
    for name, (loss, X, y) in problems.items():
        best = loss.minimum(X, y)
        if loss.penalty:
            assert np.allclose(best, ridge_line(x, y, loss.penalty))  # (8)
        trace = gradient_descent(loss, X, y, start=np.zeros(X.shape[1]), steps=100, schedule=Schedule(GAMMA))
        bound = descent_bound(float(best @ best), trace.steps, loss.smoothness(X))
        result[name] = trace, trace.excess(loss, X, y, best), bound
    return result


def illustration(repeats: int) -> dict[str, Any]:
    """The three lines of the plot in document 2, and how far from the mean they end, over and over."""
    data = np.random.default_rng(33).exponential(size=1000)
    X, mean = np.ones((1000, 1)), float(data.mean())
    constant, falling = Schedule(GAMMA), Schedule(GAMMA, rho=0.5, skip=1)
    first = X[:200], data[:200]
    lines = {
        "online, constant": online(Squared(), *first, start=0.0, batch=1, schedule=constant),
        "online, falling": online(Squared(), *first, start=0.0, batch=1, schedule=falling),
        "offline, falling": offline(Squared(), X, data, start=0.0, steps=200, schedule=falling),
    }
    steps = 400
    variance = gradient_variance(Squared(), X, data, np.array([mean]))
    spread, excess, bounds = {}, {}, {}
    for name, schedule in (("constant", constant), ("falling", falling)):
        runs = [offline(Squared(), X, data, start=0.0, steps=steps, schedule=schedule) for _ in range(repeats)]
        spread[name] = float(np.mean([(run.last[0] - mean) ** 2 for run in runs]))
        excess[name] = np.mean([(run.averages[:, 0] - mean) ** 2 for run in runs], axis=0)
        bounds[name] = stochastic_bound(mean**2, schedule.steps(steps), 2.0, variance)
    return {"mean": mean, "lines": lines, "spread": spread, "excess": excess, "bounds": bounds, "variance": variance}


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print the excess and the bound of each descent, and plot them."""
    descents, sgd = four_descents(), illustration(40 if quick else 100)
    print(f"{'gradient descent, 100 steps of 0.1':>36} {'f(average) - f*':>16} {'bound (6)':>10}")
    for name, (_, excess, bound) in descents.items():
        print(f"{name:>36} {excess[-1]:>16.5f} {bound[-1]:>10.5f}")
    print(
        f"{'offline SGD for the mean, 400 steps':>36} {'f(average) - f*':>16} {'bound (9)':>10} {'E(last - mean)²':>16}"
    )
    for name, spread in sgd["spread"].items():
        print(
            f"{name + ' steps':>36} {sgd['excess'][name][-1]:>16.5f} {sgd['bounds'][name][-1]:>10.5f} {spread:>16.5f}"
        )

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for name, (trace, excess, bound) in descents.items():
        trace.plot(left, excess, bound, name)
    for name, trace in sgd["lines"].items():
        middle.plot(trace.iterates[:, 0], label=name, linewidth=1)
    middle.axhline(sgd["mean"], color="black", linewidth=0.8)
    for name, excess in sgd["excess"].items():
        trace.plot(right, excess, sgd["bounds"][name], f"{name} steps")
    left.set(title="Gradient descent, and (6) dashed", xlabel="steps", ylabel="f(average) - f*")
    middle.set(title="SGD for a mean, one row a step", xlabel="steps", ylabel="iterate")
    right.set(title="Offline SGD in the mean, and (9) dashed", xlabel="steps", ylabel="f(average) - f*")
    for axes in (left, middle, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "gradient_descent.png", dpi=150)
    return {
        "excess": {name: excess for name, (_, excess, _) in descents.items()},
        "bound": {name: bound for name, (_, _, bound) in descents.items()},
        "parabola": descents["31: x²/2"][0].last[0],
        "sgd": {key: sgd[key] for key in ("spread", "excess", "bounds", "variance")},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
