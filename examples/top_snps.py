"""Which variants differ most between patients and healthy people? The names of the top ten, privately.

A simulated genome-wide association study at real size: a million variants, 50,000 patients and 50,000 healthy people,
both numbers public. Everyone has 0, 1 or 2 copies of each variant. The score of a variant is ``|copies among patients -
copies among the healthy|``. Document 1 of the course says that epsilon-DP is not practical for such studies. It is not
if a million numbers are to be released: noise for all of them has scale 2,000,000/epsilon. The names of the best are
another matter, as their error grows with the logarithm of the number of variants only.

*Sensitivity.* Replacing one person (inside a group: the groups and their sizes are public) changes the number of
copies in that group by at most 2 and leaves the other alone, and ``||a| - |b|| <= |a - b|``: so each score moves by
at most 2, however many variants one person carries.

``dp.TopK`` adds Gumbel noise once and takes the ten largest; with delta = 0 each choice gets epsilon/10, with a
small delta composition by zCDP allows a little more where that is the larger.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

TOP, SENSITIVITY, DELTA = 10, 2, 1e-6
EPSILONS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 4.0, 32.0)


def study(people: int, variants: int, linked: int = 12, seed: int = 6) -> np.ndarray:
    """Simulated scores; the first ``linked`` variants differ in frequency, far more than by chance."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.1, 0.5, variants)
    shift = np.zeros(variants)
    shift[:linked] = np.linspace(0.16, 0.05, linked) if people < 10_000 else np.linspace(0.06, 0.015, linked)
    # the copies of independent people add up to a binomial number
    patients, healthy = (rng.binomial(2 * people, share) for share in (frequency + shift, frequency))
    return np.abs(patients - healthy)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print how many of the true top ten are released at each epsilon, and plot it."""
    people, variants, repeats = (1000, 500, 10) if quick else (50_000, 1_000_000, 5)
    scores = study(people, variants)
    tenth = int(np.sort(scores)[-TOP])
    ways = {"pure": None, f"δ = {DELTA:g}": DELTA}
    result: dict[str, list[float]] = {name: [] for name in ways}
    scale: dict[str, list[float]] = {name: [] for name in ways}
    used: list[str] = []
    over = -np.inf  # how far a released score fell below the tenth best, beyond the limit for one in 10^12
    for epsilon in EPSILONS:
        for name, delta in ways.items():
            mechanism = dp.TopK(TOP, sensitivity=SENSITIVITY, epsilon=epsilon, delta=delta)
            chosen = np.array([scores[mechanism.select_indices(scores)] for _ in range(repeats)])
            result[name].append(float((chosen >= tenth).sum(axis=1).clip(max=TOP).mean()))
            scale[name].append(mechanism.scale)
            over = max(over, tenth - chosen.min() - mechanism.error(variants, 1 - 1e-12))
        used.append(mechanism.accounted_by)

    print(f"{people:,} patients, {people:,} healthy, {variants:,} variants; the ten largest scores:")
    print("  " + ", ".join(str(score) for score in np.sort(scores)[::-1][:TOP]))
    print(f"of the true top {TOP}, found (mean of {repeats}); scale of the noise on a score")
    print(f"{'epsilon':>8} {'pure':>6} {'scale':>7} {'with delta':>11} {'scale':>7}  accounted by")
    for i, epsilon in enumerate(EPSILONS):
        (a, s), (b, t) = ((result[name][i], scale[name][i]) for name in ways)
        print(f"{epsilon:>8g} {a:>6.2f} {s:>7.2f} {b:>11.2f} {t:>7.2f}  {used[i]}")

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.hist(scores, bins=60, color="tab:gray")
    left.axvline(tenth, color="tab:red", linestyle="--", label=f"the tenth best: {tenth}")
    left.set(title=f"Scores of {variants:,} variants", xlabel="difference in copies", ylabel="variants", yscale="log")
    left.legend()
    for (name, values), style in zip(result.items(), ("o-", "s--"), strict=True):
        right.plot(EPSILONS, values, style, label=name)
    right.axhline(TOP * TOP / variants, color="k", linestyle=":", label="names drawn at random")
    right.set(
        title=f"{people:,} + {people:,} people, top {TOP}",
        xlabel="ε of the whole release",
        ylabel=f"of the true top {TOP}, found (mean of {repeats})",
        xscale="log",
        ylim=(-0.3, TOP + 0.3),
    )
    right.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS], minor=False)
    right.grid(alpha=0.3)
    right.legend()
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "top_snps.png", dpi=150)
    names = dict(zip(ways, ("pure", "delta"), strict=True))
    return {
        "epsilons": list(EPSILONS),
        "beyond_limit": float(over),
        "accounted_by": used,
        "found": {names[key]: value for key, value in result.items()},
        "scale": {names[key]: value for key, value in scale.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="a smaller study")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
