"""The most-liked page, by name only: how large must its lead be before a private choice finds it?

Source: document 3 of the course, Example 1.1 and Proposition 1.4 (the exponential mechanism and its utility), and
document 4, report noisy max. A person likes any set of pages; one person added or removed moves every page's
count by at most 1, all in the same direction, so ``for_counts(epsilon, dp.AddRemove)`` needs only half the noise.

Utility: a choice at least ``(ln d + t) / epsilon`` below the best has probability at most ``exp(-t)``. If the
winner leads by L, to miss it is to be L below the best, so it is found with probability at least
``1 - d exp(-epsilon L)``. For comparison: noise on all d counts, released together, has to be Lap(d/epsilon).
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

PAGES, USERS, EPSILON = 50, 2000, 0.5


def likes(seed: int = 1) -> np.ndarray:
    """Simulated: which of the pages each user likes; many pages are close, and page 0 is behind at first."""
    chance = np.concatenate([[0.2], np.linspace(0.3, 0.28, PAGES - 1)])
    return np.random.default_rng(seed).random((USERS, PAGES)) < chance


def with_lead(counts: np.ndarray, lead: int) -> np.ndarray:
    """The same counts after some visitors who like only page 0 came, until it leads by ``lead``."""
    moved = counts.copy()
    moved[0] = counts[1:].max() + lead
    return moved


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print how often the most-liked page is found, and plot it against its lead."""
    draws = 200 if quick else 2000
    counts = likes().sum(axis=0)
    leads = list(range(0, 29, 4))
    mechanisms = {
        "exponential": dp.Exponential.for_counts(EPSILON, dp.AddRemove),
        "permute-and-flip": dp.NoisyMax.for_counts(EPSILON, dp.AddRemove, noise="exponential"),
        "Laplace noisy max": dp.NoisyMax.for_counts(EPSILON, dp.AddRemove, noise="laplace"),
    }
    naive = dp.NoisyMax.for_counts(EPSILON / PAGES, dp.AddRemove, noise="laplace")
    exact = {
        name: [float(m.probabilities(with_lead(counts, lead))[0]) for lead in leads]
        for name, m in (*mechanisms.items(), ("all counts, Lap(d/ε)", naive))
    }
    seen = {
        name: [
            sum(m.select_index(scores) == 0 for _ in range(draws)) / draws
            for scores in (with_lead(counts, lead) for lead in leads)
        ]
        for name, m in mechanisms.items()
    }
    bound = [max(0.0, 1 - PAGES * math.exp(-EPSILON * lead)) for lead in leads]
    enough = mechanisms["exponential"].error(PAGES, 0.95)

    print(f"{PAGES} pages, {USERS} users, epsilon = {EPSILON}; chance to name the most-liked page (drawn / exact)")
    print(f"{'lead':>5} {'at least':>9} " + " ".join(f"{name:>18}" for name in seen) + f" {'all counts':>11}")
    for i, lead in enumerate(leads):
        cells = " ".join(f"{seen[name][i]:>9.3f} / {exact[name][i]:.4f}" for name in seen)
        print(f"{lead:>5} {bound[i]:>9.3f} {cells} {exact['all counts, Lap(d/ε)'][i]:>11.4f}")
    print(f"a lead of {enough:.1f} is enough for 95 per cent by the theorem, whatever the other counts are")

    figure = Figure(figsize=(7.2, 4.5), layout="constrained")
    axes = figure.add_subplot()
    fine = np.arange(0, leads[-1] + 1)
    for color, (name, m) in zip(("tab:blue", "tab:green", "tab:orange"), mechanisms.items(), strict=True):
        curve = [m.probabilities(with_lead(counts, int(lead)))[0] for lead in fine]
        axes.plot(fine, curve, color=color, label=f"{name}, exact")
        axes.plot(leads, seen[name], "o", color=color, markersize=5, label=f"{name}, {draws} draws")
    axes.plot(leads, exact["all counts, Lap(d/ε)"], color="tab:gray", label="noise Lap(d/ε) on all counts, exact")
    guaranteed = np.maximum(0, 1 - PAGES * np.exp(-EPSILON * fine))
    axes.plot(fine, guaranteed, "k--", label="utility theorem: at least")
    axes.axvline(enough, color="k", linewidth=0.8, linestyle=":", label="lead enough for 95 % by the theorem")
    axes.set(
        title=f"Naming the most-liked of {PAGES} pages, ε = {EPSILON}",
        xlabel="lead of the most-liked page over the next (likes)",
        ylabel="probability that it is named",
        ylim=(-0.03, 1.03),
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center right")
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "heavy_hitter.png", dpi=150)
    return {"leads": leads, "bound": bound, "exact": exact, "seen": seen, "draws": draws, "lead_for_95": enough}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
