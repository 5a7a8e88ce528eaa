"""Learning: the same splits given to diffprivlib, in its own environment."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import learning_logistic
import learning_regression
import run
from dither.learn.linear import LinearRegression
from dither.learn.logistic import LogisticRegression
from dither.learn.transformers import PCA
from suite import Row, main

TITLE = "Learning: what people can pick instead"
NOTES = (
    "Mean scores over the same splits (accuracy; R²; share of the variance of all of digits kept by 5 components), one "
    "fit on each. diffprivlib has no delta; ours has 1e-5. Its features are brought to [-1, 1] by the bounds that ours "
    "get. Its scores of regressions that fail are as bad as they are.",
    "Opacus, which needs a network and its training to be written, was measured once, elsewhere: breast_cancer .787 / "
    ".943 / .950 / .972, digits .279 / .854 / .903 / .936 at epsilon 0.1 / 0.5 / 1 / 3.",
)

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5


def tasks(repeats: int) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """For each row our scores, and the split as the others get it."""
    result: dict[str, list[tuple[float, dict[str, Any]]]] = {}
    for name, (X, y, bounds, classes) in learning_logistic.data().items():
        for seed in range(repeats):
            train, test, seen, hidden = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)
            for epsilon in EPSILONS:
                ours = (
                    LogisticRegression(epsilon, DELTA, bounds=bounds, classes=classes)
                    .fit(train, seen)
                    .score(test, hidden)
                )
                split = {
                    "kind": "logistic",
                    "train": _scaled(train, bounds),
                    "test": _scaled(test, bounds),
                    "seen": seen,
                }
                row = f"{name}, accuracy, ε = {epsilon:g}"
                result.setdefault(row, []).append((ours, {**split, "hidden": hidden, "epsilon": epsilon}))
    for name in ("diabetes", "computers", "flights"):
        X, y, bounds, labels = learning_regression.SETS[name][0]()
        for seed in range(100, 100 + (repeats if name != "flights" else min(repeats, 3))):
            train, test, seen, hidden = train_test_split(X, y, test_size=0.2, random_state=seed)
            for epsilon in EPSILONS:
                estimator = LinearRegression(epsilon, DELTA, bounds=bounds, label_bounds=labels)
                ours = estimator.fit(train, seen).score(test, hidden)
                split = {
                    "kind": "regression",
                    "train": _scaled(train, bounds),
                    "test": _scaled(test, bounds),
                    "seen": seen,
                }
                row = f"{name}, R², ε = {epsilon:g}"
                result.setdefault(row, []).append(
                    (ours, {**split, "hidden": hidden, "labels": labels, "epsilon": epsilon})
                )
    X = load_digits().data
    middle = X - X.mean(axis=0)
    for _ in range(repeats):
        axes = PCA(5, epsilon=1.0, delta=DELTA, bounds=(0, 16)).fit(X).components_
        ours = float(((middle @ axes.T) ** 2).sum() / (middle**2).sum())
        split = {"kind": "components", "train": _scaled(X, [(0, 16)] * 64), "epsilon": 1.0}
        result.setdefault("digits, variance kept, ε = 1", []).append((ours, split))
    return result


def _scaled(X: Any, bounds: list[tuple[float, float]]) -> Any:
    low, high = np.array(bounds, dtype=float).T
    return np.clip(2 * (X - low) / (high - low) - 1, -1, 1)


def rows(quick: bool) -> list[Row]:
    theirs = run.peers_python(False)
    if theirs is None:
        return []
    splits_by_row = tasks(1 if quick else 20)
    with tempfile.TemporaryDirectory() as folder:
        for i, (row, splits) in enumerate(splits_by_row.items()):
            for j, (_, split) in enumerate(splits):
                np.savez(Path(folder, f"{i:03}-{j:03}.npz"), name=row, **split)
        peer_result = run.output(
            theirs, Path(os.path.dirname(os.path.abspath(__file__)), "peers", "learning_scores.py"), folder
        )
    result = []
    for row, splits in splits_by_row.items():
        ours, others = float(np.mean([score for score, _ in splits])), float(np.mean(peer_result["scores"][row]))
        ahead = None if quick else ours >= others
        result.append(
            Row(row, f"{ours:.4f}", f"{others:.4g} (diffprivlib {peer_result['version']})", None, "≥ peer", ahead)
        )
    return result


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
