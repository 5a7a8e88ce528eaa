"""The price of a digital good: choose the price that earns most, without giving away what anyone would pay.

Source: document 3 of the course, Example 1.2. A survey asks n people what they would pay at most; price p earns
``p * #{i : x_i >= p}``. One person replaced moves the earnings of price p by at most p, so the sensitivity is the
largest price. Everything is in whole cents, so the scores are exact.

Noise on the best price itself would not do: one cent too much can lose every buyer, and the best price can move from
one end to the other when one person changes, so its own sensitivity is the whole range.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

PRICES = np.arange(1, 200)  # cents
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def survey(n: int, seed: int = 2) -> np.ndarray:
    """Simulated: most would pay some 70 cents, a third some 1.40, in cents."""
    rng = np.random.default_rng(seed)
    wanted = np.where(rng.random(n) < 2 / 3, rng.normal(70, 8, n), rng.normal(140, 15, n))
    return np.clip(np.rint(wanted), 1, PRICES[-1]).astype(np.int64)


def earnings(payers: np.ndarray) -> np.ndarray:
    """``p * #{x_i >= p}`` for every price, in cents."""
    return PRICES * (payers[:, None] >= PRICES).sum(axis=0)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print the expected revenue of three private prices, and plot it against epsilon."""
    n, draws = 1000, 5000 if quick else 100_000
    scores = earnings(survey(n))
    best, widest = int(scores.max()), int(PRICES[-1])
    best_price = int(PRICES[scores.argmax()])
    expected: dict[str, list[float]] = {"exponential": [], "permute-and-flip": [], "noise on the price": []}
    promised, drawn = [], []
    for epsilon in EPSILONS:
        exponential = dp.Exponential(sensitivity=widest, epsilon=epsilon)
        flip = dp.PermuteAndFlip(sensitivity=widest, epsilon=epsilon)
        expected["exponential"].append(float(exponential.probabilities(scores) @ scores) / best)
        expected["permute-and-flip"].append(float(flip.probabilities(scores) @ scores) / best)
        shift = dp.Laplace(sensitivity=widest - 1, epsilon=epsilon)
        noisy = np.clip(shift.release(np.full(draws, best_price)), 1, widest)
        expected["noise on the price"].append(float(scores[noisy - 1].mean()) / best)
        promised.append(max(0.0, 1 - exponential.expected_score_bound(len(PRICES)) / best))
        drawn.append(int(flip.select(PRICES.tolist(), scores)))

    print(f"{n} people asked; the best price is {best_price} cents and earns {best / 100:.2f} dollars")
    print("share of that earned: at least  exponential  perm.-and-flip  noise on price  a draw")
    for i, epsilon in enumerate(EPSILONS):
        row = [expected[name][i] for name in expected]
        print(
            f"      epsilon = {epsilon:<4} {promised[i]:>10.3f} {row[0]:>12.4f} {row[1]:>15.4f} {row[2]:>15.4f}"
            f"  {drawn[i]} cents"
        )

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(PRICES, scores / 100, color="black", label="revenue")
    left.set(title="Revenue, and where the private price falls", xlabel="price (cents)", ylabel="revenue (dollars)")
    chances = left.twinx()
    for epsilon, color in ((0.1, "tab:orange"), (1.0, "tab:blue")):
        p = dp.PermuteAndFlip(sensitivity=widest, epsilon=epsilon).probabilities(scores)
        chances.fill_between(PRICES, p, step="mid", color=color, alpha=0.45, label=f"P(price), ε = {epsilon:g}")
    chances.set(ylabel="probability of the price, permute-and-flip")
    chances.set_ylim(0)
    lines, names = (a + b for a, b in zip(*(x.get_legend_handles_labels() for x in (left, chances)), strict=True))
    chances.legend(lines, names, loc="upper right", fontsize=8)
    styles = {"exponential": "o-", "permute-and-flip": "s-", "noise on the price": "x:"}
    for name, style in styles.items():
        right.loglog(EPSILONS, 1 - np.array(expected[name]), style, label=name)
    right.loglog(EPSILONS, 1 - np.array(promised), "k--", label="at most, whatever the scores")
    right.set(title=f"What privacy costs, n = {n}", xlabel="ε", ylabel="share of the best revenue lost, expected")
    right.grid(alpha=0.3, which="both")
    right.legend(fontsize=8)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "pricing.png", dpi=150)
    return {"epsilons": list(EPSILONS), "promised": promised, "drawn": drawn, "best_price": best_price, **expected}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
