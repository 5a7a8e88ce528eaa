"""How many people in this census were born on Mars: noise that gives impossible answers, and three ways out of it.

Source: document 2 of the course, Example 22. The count is 0 and its sensitivity 1. Laplace noise of scale 1/epsilon
makes half of the answers negative (dither adds the discrete law to a count: P(negative) = q/(1 + q), q =
exp(-epsilon), less than a half because 0 has a probability of its own). What can be done:

* clamp: max(0, answer). A function of the release, so it costs no privacy; but clamped answers are too large on
  average, by q/(1 - q^2), and summed over many districts that adds up. This is what went wrong with census tables.
* cut the density at 0 and renormalise, with the same scale. That is not epsilon-DP: what it is divided by depends on
  the data. The true loss is epsilon + ln(C_1/C_0), almost 1.5 at epsilon = 1.
* dp.BoundedLaplace: the same with the scale that makes it epsilon-DP: always inside, but larger noise, and a bias too.

So: publish the unclamped count where it will be added up, clamp where it will be looked at.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

EPSILON, UPPER, DISTRICTS = 1.0, 10, 1000


def counts_law(epsilon: float) -> np.ndarray:
    """Probabilities of the discrete Laplace law at -UPPER..UPPER."""
    q = math.exp(-epsilon)
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-UPPER, UPPER + 1))


def cut_law(epsilon: float) -> np.ndarray:
    """Probabilities of whole-number answers 0..UPPER: exp(-|v|/b), cut half a step beyond them, and rounded."""
    b = dp.BoundedLaplace(1, epsilon, 0, UPPER + 1).scale  # the limits are 1 farther apart
    edges = np.arange(UPPER + 1) + 0.5
    masses = np.concatenate([[-2 * math.expm1(-0.5 / b)], -np.diff(np.exp(-edges / b))])
    return masses / masses.sum()


def cut_loss(epsilon: float) -> float:
    """The largest loss of the density cut with the scale 1/epsilon: between the true counts 0 and 1, at 0."""
    share = [2 - math.exp(-epsilon * count) - math.exp(-epsilon * (UPPER - count)) for count in (0, 1)]
    return epsilon + math.log(share[1] / share[0])


def clamp_bias(epsilon: float) -> float:
    """The mean of max(0, noise)."""
    q = math.exp(-epsilon)
    return q / (1 - q * q)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print what comes out for one district and for a thousand, and plot the laws."""
    draws = 4000 if quick else 100_000
    laplace = dp.Laplace(sensitivity=1, epsilon=EPSILON)
    bounded = dp.BoundedLaplace(sensitivity=1, epsilon=EPSILON, lower=0, upper=UPPER)
    q = math.exp(-EPSILON)
    inside = cut_law(EPSILON)
    answers = {
        "Laplace, real numbers": np.asarray(laplace.release(np.zeros(draws))),
        "Laplace, whole numbers": np.asarray(laplace.release(np.zeros(draws, dtype=np.int64))),
        "bounded Laplace": np.array([bounded.release(0) for _ in range(draws)]),
    }
    answers["clamped"] = np.maximum(answers["Laplace, whole numbers"], 0)
    negative = {name: float(np.mean(values < 0)) for name, values in answers.items()}
    exact = dict.fromkeys(answers, 0.0) | {"Laplace, real numbers": 0.5, "Laplace, whole numbers": q / (1 + q)}
    places = np.arange(UPPER + 1)
    bias = {
        "Laplace, real numbers": 0.0,
        "Laplace, whole numbers": 0.0,
        "bounded Laplace": float(inside @ places),
        "clamped": clamp_bias(EPSILON),
    }
    square = {
        "Laplace, real numbers": 2 / EPSILON**2,
        "Laplace, whole numbers": 2 * q / (1 - q) ** 2,
        "bounded Laplace": float(inside @ places**2),
        "clamped": q / (1 - q) ** 2,
    }
    sums = {name: float(values[:DISTRICTS].sum()) for name, values in answers.items()}
    zeros = {"Laplace, whole numbers": float(np.mean(answers["Laplace, whole numbers"] == 0))}
    zeros["bounded Laplace"] = float(np.mean(answers["bounded Laplace"] == 0))

    first = ", ".join(f"{value:.2f}" for value in answers["Laplace, real numbers"][:4])
    print(f"nobody was born on Mars; epsilon = {EPSILON:g}. Four answers with Laplace noise: {first}")
    print(f"{'':>23} {'negative':>9} {'(exactly)':>9} {'bias':>6} {'RMS error':>10} {DISTRICTS:>10} districts")
    for name in answers:
        print(f"{name:>23} {negative[name]:>9.3f} {exact[name]:>9.3f} {bias[name]:>6.3f}", end=" ")
        print(f"{math.sqrt(square[name]):>10.3f} {sums[name]:>20.1f}")
    naive = cut_loss(EPSILON)
    print(f"cut to [0, {UPPER}] with scale 1/epsilon: true loss {naive:.4f}")
    print(f"bounded Laplace: loss {EPSILON:g}, scale {bounded.scale:.5f}")

    figure = Figure(figsize=(10.5, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    law = counts_law(EPSILON)
    clamped = np.concatenate([[law[: UPPER + 1].sum()], law[UPPER + 1 :]])
    left.bar(np.arange(-UPPER, UPPER + 1) - 0.27, law, 0.27, color="tab:gray", label="Laplace, whole numbers")
    left.bar(places, clamped, 0.27, color="tab:blue", label="clamped at 0")
    left.bar(places + 0.27, inside, 0.27, color="tab:orange", label=f"bounded to [0, {UPPER}]")
    left.set(title=f"The answer when the truth is 0, ε = {EPSILON:g}", xlabel="answer", ylabel="probability")
    left.set_xlim(-6.6, 8.6)
    left.legend(fontsize=8)
    epsilons = np.geomspace(0.1, 5, 40)
    many = [DISTRICTS * clamp_bias(float(epsilon)) for epsilon in epsilons]
    right.loglog(epsilons, many, color="tab:blue", label="clamped: bias")
    right.loglog(
        epsilons,
        [DISTRICTS * cut_law(float(epsilon)) @ places for epsilon in epsilons],
        color="tab:orange",
        label="bounded: bias",
    )
    spread = [math.sqrt(2 * DISTRICTS * math.exp(-e)) / (1 - math.exp(-e)) for e in epsilons]
    right.loglog(epsilons, spread, color="tab:gray", label="not clamped: no bias, standard deviation")
    right.set(title=f"Martians in {DISTRICTS} districts together (truth: 0)", xlabel="ε", ylabel="people")
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "mars.png", dpi=150)
    laws = {"Laplace, whole numbers": float(law[UPPER]), "bounded Laplace": float(inside[0])}
    return {
        "draws": draws,
        "negative": negative,
        "exact": exact,
        "zeros": zeros,
        "exact_zeros": laws,
        "bias": bias,
        "sums": sums,
        "sum_spread": math.sqrt(DISTRICTS * max(square.values())),
        "cut_loss": naive,
        "scale": bounded.scale,
        "least": float(answers["bounded Laplace"].min()),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
