"""Private SGD as in Theorem 36 in three regimes, what Theorem 37 promises of each, and what each really costs.

Source: document 2 of the course, Theorems 36 and 37, on private SGD with batches of one, for the mean of n numbers in
[0, 1].

* Constant steps, constant epsilon: the noise theta[h] grows like h, and A3, its term in the bound (11), like N^2.
* Falling steps, constant epsilon: A3 grows like N^(2 - rho). "Does not converge."
* Falling steps, a[h] = h^kappa with 2 kappa + rho > 2: A3 falls. "The algorithm is DP-private AND converges." It does,
  but the guarantee grows with the number of steps, and without limit.

Theorem 36 is about the last iterate: ``epsilon N^kappa``. Theorem 37 is about the average of all of them, for which the
prices of single iterates add up to ``epsilon sum of a[h]``. Composition is better: each iterate, given those before
it, costs ``2C / theta[h]``. The guarantee is the smaller of the two. Noise on the mean itself, one Laplace draw of
scale 1/(n epsilon), costs epsilon and is nearer than any of the three.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp
from dither.course import TheoremSGD, private_bound
from dither.learn.gd import Schedule
from dither.learn.losses import Squared

EPSILON, CLIP, RHO, KAPPA = 1.0, 2.0, 0.5, 0.9
REGIMES = {
    "constant steps, constant ε": (Schedule(0.1), 0.0),
    "falling steps, constant ε": (Schedule(0.1, RHO), 0.0),
    f"falling steps, ε h^{KAPPA}": (Schedule(0.1, RHO), KAPPA),
}


def regime(name: str, steps: int, release: Any = "last") -> TheoremSGD:
    """The algorithm of Theorem 36: gradients of (x - beta)^2, in l1 at most 2 for x and beta in [0, 1]."""
    schedule, kappa = REGIMES[name]
    return TheoremSGD(EPSILON, steps, CLIP, schedule, kappa, release)


def errors(name: str, x: np.ndarray, steps: int, repeats: int) -> tuple[float, float]:
    """The root mean squared error of the last iterate and of the average."""
    X, result = np.ones((x.size, 1)), []
    for release in ("last", "average"):
        created = regime(name, steps, release)
        off = [float(created.run(Squared(), X, x, start=0.5)[0]) - x.mean() for _ in range(repeats)]
        result.append(float(np.sqrt(np.mean(np.square(off)))))
    return result[0], result[1]


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print errors and costs after 50 and 200 steps, and plot the terms of the bound and the costs."""
    repeats, counts = 15 if quick else 60, (50, 200)
    x = np.random.default_rng(37).beta(2, 3, 1000)
    costs: dict[str, list[dict[str, float]]] = {name: [] for name in REGIMES}
    print(f"ε = {EPSILON:g}, n = {x.size}; one Laplace draw on the mean: error {2**0.5 / x.size / EPSILON:.4f}")
    print(f"{'':>28} {'N':>4} {'ε a_N':>7} {'ε Σa_h':>8} {'guarantee':>10} {'error, last':>12} {'average':>8}")
    for name in REGIMES:
        for steps in counts:
            last, average = errors(name, x, steps, repeats)
            of_last, of_average = regime(name, steps), regime(name, steps, "average")
            cost = {
                "last": of_last.theorem_epsilon,
                "average": of_average.theorem_epsilon,
                "guarantee": of_last.guarantee.epsilon,
                "composed": of_average.guarantee.epsilon,
            }
            costs[name].append({**cost, "error_last": last, "error_average": average})
            print(
                f"{name:>28} {steps:>4} {cost['last']:>7.1f} {cost['average']:>8.1f} "
                f"{cost['guarantee']:>4.1f}, {cost['composed']:>4.1f} {last:>12.2f} {average:>8.2f}"
            )

    longest = 2000
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    over, terms = np.arange(1, longest + 1), {}
    for name in REGIMES:
        created = regime(name, longest)
        terms[name] = [term.tolist() for term in private_bound(0.25, created, coordinates=1)]
        (line,) = left.loglog(over, terms[name][2], label=f"A3: {name}")
        left.loglog(over, np.add(terms[name][0], terms[name][1]), ":", color=line.get_color())
        kappa = REGIMES[name][1]
        right.loglog(over, EPSILON * over**kappa, color=line.get_color(), label=f"last iterate: {name}")
        right.loglog(over, EPSILON * np.cumsum(over**kappa), "--", color=line.get_color())
        right.loglog(over, np.cumsum(2 * CLIP / created.noise), ":", color=line.get_color())
    left.set(title="The terms of (11): A3, and A1 + A2 dotted", xlabel="steps N")
    right.set(title="Cost: last iterate; Σ dashed, step by step dotted", xlabel="steps N", ylabel="epsilon")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "theorem_37.png", dpi=150)
    direct = float(dp.Laplace(sensitivity=1 / x.size, epsilon=EPSILON).release(float(x.mean())))
    return {"counts": counts, "costs": costs, "terms": terms, "direct": abs(direct - x.mean()), "n": x.size}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
