"""Overfitting to a holdout set by asking it again and again, and how a private holdout prevents it.

Source: Dwork, Feldman, Hardt, Pitassi, Reingold and Roth, "The reusable holdout" (2015), their experiment on a smaller
scale. Labels and variables are +-1. The analyst takes the variables most correlated with the label in the training
data, keeps those whose correlation has the same sign in the holdout, and lets the first k of them vote. Then the
holdout is asked how good that vote is: but it helped to choose the variables, so it praises its own choice.

``dp.ReusableHoldout`` answers with the training mean unless the holdout disagrees by more than a threshold, and then
with a noisy holdout mean. The epsilon here is what all answers together cost the people in the holdout; the theorems
would want a smaller one, or more records, before they promise anything, in the paper's own experiment as well. What is
shown is an experiment, not a guarantee: an answer may be off by about the threshold, half of it in accuracy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

EPSILON, REAL, FRESH = 4.0, 20, 20_000
PARTS = {"train": "training data", "holdout": "holdout, as answered", "fresh": "fresh data"}
Question = Callable[[np.ndarray], np.ndarray]


def records(rng: np.random.Generator, n: int, variables: int, bias: float) -> np.ndarray:
    """Simulated +-1 rows, the label last; the first variables equal it with probability (1 + bias)/2."""
    label = rng.choice(np.array([-1, 1], dtype=np.int8), (n, 1))
    lean = np.where(np.arange(variables) < REAL, bias, 0.0)
    same = rng.random((n, variables), dtype=np.float32) < (1 + lean) / 2
    return np.hstack([np.where(same, label, -label), label])


def right(columns: np.ndarray, signs: np.ndarray) -> Question:
    """+1 for a record whose label the vote of these columns gets right, -1 otherwise."""
    return lambda rows: np.sign(rows[:, columns] @ signs) * rows[:, -1]


def experiment(
    n: int, variables: int, asked: int, ks: list[int], limit: int, threshold: float, bias: float
) -> dict[str, Any]:
    """Accuracies on training data, holdout (as answered) and fresh data, for each k and both kinds of holdout."""
    rng = np.random.default_rng(7)
    train, held = (records(rng, n, variables, bias) for _ in range(2))
    fresh = records(rng, FRESH, variables, bias)
    correlation = (train[:, :-1] * train[:, -1:]).mean(axis=0)
    order, signs = np.argsort(-np.abs(correlation))[:asked], np.sign(correlation).astype(np.int64)
    private = dp.ReusableHoldout(train, held, bounds=(-1, 1), epsilon=EPSILON, threshold=threshold, limit=limit)
    kinds: dict[str, tuple[Callable[[Question], float], Callable[[], bool]]] = {
        "plain": (lambda question: float(question(held).mean()), lambda: True),
        # answers are kept back for the questions at the end, one for each k
        "reusable": (lambda question: private.ask(question).value, lambda: private.left > len(ks)),
    }
    result: dict[str, Any] = {}
    for name, (ask, may_ask) in kinds.items():
        kept = np.array([j for j in order if may_ask() and ask(right(np.array([j]), signs[[j]])) > 0])
        accuracy = {"train": [], "holdout": [], "fresh": []}
        for k in ks:
            vote = right(kept[:k], signs[kept[:k]])
            for part, value in zip(accuracy, (vote(train).mean(), ask(vote), vote(fresh).mean()), strict=True):
                accuracy[part].append((1 + float(value)) / 2)
        result[name] = {"kept": kept.size, **accuracy}
    return result | {"used": limit - private.left, "guarantee": private.guarantee}


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print and plot the accuracies, with labels that nothing predicts and with some that 20 variables predict."""
    n, variables, asked, limit, threshold = (600, 600, 80, 16, 0.15) if quick else (4000, 2000, 300, 40, 0.1)
    ks = [1, 5, 11, 21, 31] if quick else [1, 5, 11, 21, 31, 51, 71, 101]
    cases = {"no variable predicts the label": 0.0, f"{REAL} variables predict it a little": 5 / n**0.5}
    found = {case: experiment(n, variables, asked, ks, limit, threshold, bias) for case, bias in cases.items()}
    print(f"{n} training and {n} holdout records, {variables} variables, {asked} of them checked on the holdout")
    for case, result in found.items():
        used = f"{result['used']} of {limit} noisy answers used; {result['guarantee']} for the holdout"
        print(f"{case}; {used}")
        print(f"{'k':>6}  plain: train holdout  fresh   reusable: train holdout  fresh")
        for i, k in enumerate(ks):
            plain, reusable = ([result[kind][part][i] for part in PARTS] for kind in ("plain", "reusable"))
            print(f"{k:>6}  {plain[0]:>12.3f} {plain[1]:>7.3f} {plain[2]:>6.3f}", end="")
            print(f"   {reusable[0]:>15.3f} {reusable[1]:>7.3f} {reusable[2]:>6.3f}")

    figure = Figure(figsize=(10, 7), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    for row, (case, result) in zip(panels, found.items(), strict=True):
        for axes, kind in zip(row, ("plain", "reusable"), strict=True):
            for (part, label), style in zip(PARTS.items(), ("v-", "s-", "o-"), strict=True):
                axes.plot(ks, result[kind][part], style, label=label)
            axes.axhline(0.5, color="k", linewidth=0.8, linestyle=":", label="a coin")
            axes.set(title=f"{kind} holdout: {case}", ylabel="accuracy")
            axes.grid(alpha=0.3)
    for axes in panels[1]:
        axes.set(xlabel="number of chosen variables k")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(f"n = {n}, {variables} variables, ε = {EPSILON:g} for all answers of the reusable holdout")
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "reusable_holdout.png", dpi=150)
    noise, signal = found.values()
    return {"k": ks, "limit": limit, "threshold": threshold, "noise": noise, "signal": signal}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer records and questions")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
