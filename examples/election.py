"""An election with 15, 20 and 25 votes at epsilon = 1: three private ways to name the winner, exactly.

Source: document 2 of the course, Example 29. Replacing one vote moves a score by at most 1 and
not all in the same direction, so the noise has scale 2/epsilon. The exponential mechanism is Gumbel noise,
permute-and-flip is one-sided exponential noise (never worse), report noisy max is usually told with Laplace noise.
``probabilities`` gives the exact law of each; the frequencies of draws lie beside them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

VOTES = {"Ada": 15, "Bo": 20, "Cy": 25}
EPSILON = 1.0


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print the probabilities of each candidate beside the frequencies, and plot both."""
    draws = 2000 if quick else 20_000
    scores = list(VOTES.values())
    mechanisms = {
        "exponential": dp.Exponential(sensitivity=1, epsilon=EPSILON),
        "permute-and-flip": dp.PermuteAndFlip(sensitivity=1, epsilon=EPSILON),
        "Laplace noisy max": dp.NoisyMax(sensitivity=1, epsilon=EPSILON, noise="laplace"),
    }
    exact = {name: m.probabilities(scores) for name, m in mechanisms.items()}
    seen = {
        name: np.bincount([m.select_index(scores) for _ in range(draws)], minlength=len(scores)) / draws
        for name, m in mechanisms.items()
    }

    print(f"votes {VOTES}, epsilon = {EPSILON:g}, replacing one vote; {draws} draws each")
    print(f"{'':>18} " + " ".join(f"{name:^17}" for name in VOTES) + f" {'votes lost, expected':>21}")
    lost = {}
    for name in mechanisms:
        cells = " ".join(f"{p:.4f} ({f:.4f})  " for p, f in zip(exact[name], seen[name], strict=True))
        lost[name] = float(max(scores) - exact[name] @ scores)
        print(f"{name:>18} {cells} {lost[name]:>20.3f}")
    print("exact probabilities, frequencies of the draws in brackets")

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    places, width = np.arange(len(scores)), 0.26
    for i, (name, color) in enumerate(zip(mechanisms, ("tab:blue", "tab:green", "tab:orange"), strict=True)):
        x = places + (i - 1) * width
        bars = axes.bar(x, exact[name], width * 0.92, color=color, alpha=0.6, label=f"{name}, exact")
        axes.bar_label(bars, fmt="%.4f", fontsize=8, padding=6)
        error = 4 * np.sqrt(exact[name] * (1 - exact[name]) / draws)
        label = f"{draws} draws, ± 4 standard errors" if i == 2 else None
        axes.errorbar(x, seen[name], error, fmt="k.", capsize=3, label=label)
    axes.set_xticks(places, [f"{name}\n{votes} votes" for name, votes in VOTES.items()])
    axes.set(title=f"Who is named the winner, ε = {EPSILON:g}", ylabel="probability", ylim=(0, 1.1), xlabel="candidate")
    axes.legend(loc="upper left", fontsize=9)
    axes.grid(axis="y", alpha=0.3)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "election.png", dpi=150)
    return {
        "draws": draws,
        "votes_lost": lost,
        "exact": {name: p.tolist() for name, p in exact.items()},
        "seen": {name: p.tolist() for name, p in seen.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
