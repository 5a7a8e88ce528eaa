"""Scores of diffprivlib's estimators on splits that another interpreter has written down; prints JSON.

Features are brought to [-1, 1] by the same public bounds that ours get; ``data_norm`` is then the root of their number.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import diffprivlib
import numpy as np
from diffprivlib.models import PCA, LinearRegression, LogisticRegression


def logistic(parts, epsilon):
    size = parts["train"].shape[1] ** 0.5
    model = LogisticRegression(epsilon=epsilon, data_norm=size, max_iter=500).fit(parts["train"], parts["seen"])
    return float(model.score(parts["test"], parts["hidden"]))


def regression(parts, epsilon):
    low, high = parts["labels"]
    model = LinearRegression(epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=(float(low), float(high)))
    return float(model.fit(parts["train"], parts["seen"]).score(parts["test"], parts["hidden"]))


def components(parts, epsilon):
    X = parts["train"]
    result = PCA(5, epsilon=epsilon, bounds=(-1.0, 1.0), data_norm=X.shape[1] ** 0.5).fit(X).components_
    middle = X - X.mean(axis=0)
    return float(((middle @ result.T) ** 2).sum() / (middle**2).sum())


KINDS = {"logistic": logistic, "regression": regression, "components": components}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    scores: dict[str, list[float]] = {}
    for path in sorted(Path(sys.argv[1]).glob("*.npz")):
        with np.load(path) as parts:
            scores.setdefault(str(parts["name"]), []).append(KINDS[str(parts["kind"])](parts, float(parts["epsilon"])))
    print(json.dumps({"version": diffprivlib.__version__, "scores": scores}))
