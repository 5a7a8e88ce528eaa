"""The curve between privacy and accuracy that a census chooses a point of.

Source: document 5 of the course, section 7.2: "society needs to make the decision of which point in the
privacy-accuracy spectrum we want to be at". A simulated country of 4 states, 40 counties, 400 tracts and 8000 blocks;
the number of people of each is released. One person is in one state, one county, one tract and one block, so the four
tables cost the sum of their epsilons, and each table the same however many places it has.

The same noise is nothing for a state and a large part of a block. Sums of noisy blocks are worse than the tracts' own
noisy counts, from some places on: that is why a census spends something on each level (``dither.publish`` makes them
agree). Three ways to split epsilon are compared; the last gives blocks half.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

LEVELS = {"state": 4, "county": 40, "tract": 400, "block": 8000}
SPLITS = {
    "all on blocks": (0.0, 0.0, 0.0, 1.0),
    "even": (0.25, 0.25, 0.25, 0.25),
    "half on blocks": (0.1, 0.2, 0.2, 0.5),
}


def country(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """How many people live in each place of each level; blocks have some 40, a few have many."""
    blocks = rng.negative_binomial(1.2, 0.03, LEVELS["block"])
    return {level: blocks.reshape(count, -1).sum(axis=1) for level, count in LEVELS.items()}


def released(people: dict[str, np.ndarray], epsilon: float, split: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Noisy counts; a level without a share is the sum of noisy blocks."""
    result = {}
    for level, share in zip(LEVELS, split, strict=True):
        if share > 0:
            result[level] = np.asarray(dp.Laplace(sensitivity=1, epsilon=epsilon * share).release(people[level]))
    for level, count in LEVELS.items():
        result.setdefault(level, result["block"].reshape(count, -1).sum(axis=1))
    return result


def expected(epsilon: float, split: tuple[float, ...]) -> list[float]:
    """The root of the mean square error of each level: noise of its own, or that of the blocks it is made of."""
    unit = float(dp.Laplace(sensitivity=1, epsilon=1).variance)
    own = [unit / (epsilon * share) ** 2 if share else None for share in split]
    parts = [LEVELS["block"] // count for count in LEVELS.values()]
    return [
        float(np.sqrt(v if v is not None else unit * k / (epsilon * split[3]) ** 2))
        for v, k in zip(own, parts, strict=True)
    ]


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print and plot the error of each level over epsilon, as a share of the people of a place."""
    rng = np.random.default_rng(20)
    people = country(rng)
    epsilons = (0.1, 1.0, 10.0) if quick else (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
    print(f"{people['block'].sum():,} people; relative error: RMS error over the mean number of people of a place")
    print(f"{'':>15} {'ε':>5} " + " ".join(f"{level:>9}" for level in LEVELS) + "   blocks off by more than a tenth")
    sizes = np.array([people[level].mean() for level in LEVELS])
    rms: dict[str, list[list[float]]] = {name: [] for name in SPLITS}
    theory: dict[str, list[list[float]]] = {name: [] for name in SPLITS}
    wrong: dict[str, list[float]] = {name: [] for name in SPLITS}
    for name, split in SPLITS.items():
        for epsilon in epsilons:
            noisy = released(people, epsilon, split)
            rms[name].append([float(np.sqrt(np.mean((noisy[level] - people[level]) ** 2.0))) for level in LEVELS])
            theory[name].append(expected(epsilon, split))
            off = np.abs(noisy["block"] - people["block"]) > 0.1 * people["block"]
            wrong[name].append(float(off.mean()))
            shares = " ".join(f"{value:>9.2%}" for value in np.array(rms[name][-1]) / sizes)
            print(f"{name:>15} {epsilon:>5g} {shares}   {wrong[name][-1]:.1%}")

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, level in enumerate(LEVELS):
        left.loglog(epsilons, np.array(theory["even"])[:, i] / sizes[i], "-", label=f"{level}, {sizes[i]:,.0f} people")
        left.loglog(epsilons, np.array(rms["even"])[:, i] / sizes[i], "k.", markersize=3)
    left.axhline(0.01, color="gray", linestyle=":")
    left.set(title="An even split; dots: one release", xlabel="ε of all four tables", ylabel="relative error")
    for name, values in wrong.items():
        right.semilogx(epsilons, values, "o-", label=name)
    right.set(title="Blocks off by more than a tenth", xlabel="ε of all four tables", ylabel="share of the blocks")
    for axes in (left, right):
        axes.grid(alpha=0.3, which="both")
        axes.legend(fontsize=8)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "census_curve.png", dpi=150)
    return {"epsilons": epsilons, "rms": rms, "theory": theory, "wrong": wrong}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="three values of epsilon")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
