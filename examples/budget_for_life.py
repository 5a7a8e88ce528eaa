"""A budget that belongs to a person: mean and variance on one half of the people, the median on the other.

Source: document 2 of the course, Example 8, which says max(e1 + e2, e3). The ledger has no rule for that: it adds
up, for each person, the releases that person took part in. Whoever cannot pay for a further one is left out of it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

BOUNDS = (18, 90)
E1, E2, E3 = 0.3, 0.2, 0.4
STATISTICS = {"mean": dp.stats.mean, "variance": dp.stats.var, "median": dp.stats.median}


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Ask three questions of two halves, then one more of everybody; print and plot who pays for what."""
    size = 1000 if quick else 20_000
    ages = np.random.default_rng(8).integers(*BOUNDS, size=size)
    people = np.arange(size)
    first, second = people < size // 2, people >= size // 2
    halves = {"mean": (E1, first), "variance": (E2, first), "median": (E3, second)}

    pure = dp.accounting.Pure
    limit = dp.accounting.basic.guarantee(dp.accounting.Parallel(pure(E1) + pure(E2), pure(E3)))
    print(f"{size} people; e1, e2, e3 = {E1}, {E2}, {E3}; by composition max(e1 + e2, e3): {limit}")

    answers: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, dp.ledger.open(Path(folder) / "budget.sqlite") as ledger:
        ledger.create("survey", each_person=dp.PureDP(max(E1 + E2, E3)))

        def ask(name: str, epsilon: float, half: Any) -> float:
            """One release about one half of the people."""
            return ledger.release(
                "survey",
                dp.PureDP(epsilon),
                lambda kept: float(STATISTICS[name](ages[half][kept], bounds=BOUNDS, epsilon=epsilon)),
                key=name,
                people=people[half],
            ).value

        for name, (epsilon, half) in halves.items():
            answers[name] = ask(name, epsilon, half)
            print(f"{name:>9} of {half.sum()} people, ε = {epsilon}: {answers[name]:.3f}")
        again = ask("mean", E1, first)
        print(f"the mean again: {again:.3f}, the recorded answer, for free")

        # the first half has spent 0.5 of 0.5, the second 0.4: a further 0.1 reaches the second half only
        reached = ledger.release("survey", dp.PureDP(0.1), lambda kept: int(kept.sum()), key="who", people=people)
        print(f"able to pay 0.1 more: {reached.value} people (for show only: this number is private)")
        entries = ledger.verify().entries
        print(f"verified: {entries} entries, every account")

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    bottom = {"first half": 0.0, "second half": 0.0}
    asked = [("mean", E1, "first half"), ("variance", E2, "first half"), ("median", E3, "second half")]
    for (name, epsilon, half), color in zip(asked, ("tab:blue", "tab:green", "tab:orange"), strict=True):
        bars = axes.bar([half], [epsilon], 0.5, bottom=bottom[half], color=color, alpha=0.6)
        axes.bar_label(bars, [f"{name}, ε = {epsilon:g}"], label_type="center")
        bottom[half] += epsilon
    axes.axhline(limit.epsilon, color="k", linestyle="--", label=f"limit of each person, {limit}")
    axes.set(title="What each person has spent", ylabel="ε", ylim=(0, 0.65))
    axes.legend(loc="upper right", fontsize=9)
    target = Path("out") if out is None else out
    target.mkdir(parents=True, exist_ok=True)
    figure.savefig(target / "budget_for_life.png", dpi=150)
    return {
        "size": size,
        "limit": limit,
        "spent": bottom,
        "answers": answers,
        "again": again,
        "true": {"mean": ages[first].mean(), "median": float(np.median(ages[second]))},
        "reached": reached.value,
        "entries": entries,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
