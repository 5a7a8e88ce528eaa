"""Score against epsilon: what privacy costs on data that you may look at.

**Not private.** The scores are those of the data themselves, without noise: this is for public data, or for data like
those that will be used. The estimators are fitted many times, and a ledger scope that is open is charged every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import arguments
from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument
from dither.extras import Axes, PandasFrame
from dither.learn.budget import Floats
from dither.learn.spent import total_spent

_WARNING = "not private: scores of the data themselves"


@dataclass(frozen=True, eq=False)
class Comparison(ComparedByValue):
    """Scores of all repeats: ``scores[i, j]`` at ``epsilons[i]`` on split j, ``baseline[j]`` without privacy.

    >>> comparison = Comparison("Ridge", (0.5, 1.0), np.array([[0.5, 0.7], [0.8, 0.8]]), np.array([0.9, 0.9]))
    >>> print(comparison)
    Ridge, 2 repeats (not private: scores of the data themselves)
         epsilon      mean       std    lowest   highest
             0.5    0.6000    0.1414    0.5000    0.7000
               1    0.8000    0.0000    0.8000    0.8000
     not private    0.9000    0.0000    0.9000    0.9000
    """

    name: str
    epsilons: tuple[float, ...]
    scores: Floats
    baseline: Floats | None

    @property
    def table(self) -> list[dict[str, float | None]]:
        """One row for each epsilon: mean, standard deviation, lowest and highest score over the repeats; the last is
        that of the baseline, with None for epsilon.

        >>> Comparison("Ridge", (1.0,), np.array([[0.5, 0.7]]), None).table[0]["mean"]
        0.6
        """
        rows: list[tuple[float | None, Floats]] = list(zip(self.epsilons, self.scores, strict=True))
        if self.baseline is not None:
            rows.append((None, self.baseline))
        return [
            {
                "epsilon": epsilon,
                "mean": float(scores.mean()),
                "std": float(scores.std(ddof=1)) if len(scores) > 1 else 0.0,
                "lowest": float(scores.min()),
                "highest": float(scores.max()),
            }
            for epsilon, scores in rows
        ]

    def to_pandas(self) -> PandasFrame:
        """The table as a data frame; epsilon is infinite for the baseline.

        >>> Comparison("Ridge", (1.0,), np.array([[0.5, 0.7]]), None).to_pandas().columns.tolist()
        ['epsilon', 'mean', 'std', 'lowest', 'highest']
        """
        import pandas as pd

        frame = pd.DataFrame(self.table)
        frame["epsilon"] = frame["epsilon"].astype(float).fillna(np.inf)
        return frame

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw mean scores over epsilon on matplotlib axes (new ones by default), with every repeat as a dot, a band
        of one standard deviation, and the baseline dashed; returns the axes.

        >>> axes = Comparison("Ridge", (0.5, 1.0), np.ones((2, 3)), np.ones(3)).plot()
        >>> axes.get_xlabel(), axes.get_xscale()
        ('epsilon', 'log')
        """
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(layout="constrained").subplots()
        means, spread = self.scores.mean(axis=1), np.array([row["std"] for row in self.table[: len(self.epsilons)]])
        (line,) = axes.plot(self.epsilons, means, marker="o", label=self.name)
        axes.fill_between(self.epsilons, means - spread, means + spread, color=line.get_color(), alpha=0.2)
        positions = np.repeat(self.epsilons, self.scores.shape[1])
        axes.scatter(positions, self.scores.ravel(), s=6, color=line.get_color(), alpha=0.4)
        if self.baseline is not None:
            axes.axhline(float(self.baseline.mean()), linestyle="--", color="gray", label="not private")
        axes.set_xscale("log")
        axes.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        axes.minorticks_off()
        axes.set_xlabel("epsilon")
        axes.set_ylabel("score")
        axes.legend(loc="lower right")
        return axes

    def __str__(self) -> str:
        lines = [f"{self.name}, {self.scores.shape[1]} repeats ({_WARNING})"]
        lines.append(f"{'epsilon':>12}{'mean':>10}{'std':>10}{'lowest':>10}{'highest':>10}")
        for row in self.table:
            first = "not private" if row["epsilon"] is None else f"{row['epsilon']:g}"
            others = "".join(f"{row[name]:>10.4f}" for name in ("mean", "std", "lowest", "highest"))
            lines.append(f"{first:>12}{others}")
        return "\n".join(lines)


def compare(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    epsilons: Sequence[float] = (0.1, 0.5, 1, 3),
    repeats: int = 20,
    test_size: float = 0.2,
    scoring: str | Callable[..., float] | None = None,
    parameter: str = "epsilon",
    baseline: Any = "twin",
    seed: int = 0,
) -> Comparison:
    """Fit on the same random splits at every epsilon, and without privacy; score on the part held out.

    **Not private**: a study on data that you may look at.

    Parameters
    ----------
    estimator
        A private estimator, or a pipeline with one.
    X, y
        Rows, and labels where there are any.
    epsilons, repeats, test_size
        What to try, on how many splits, with which part held out. Splits keep the shares of the classes.
    scoring
        As in scikit-learn; by default the estimator's own ``score``.
    parameter
        The name of epsilon among the estimator's parameters, for pipelines: ``"ridge__epsilon"``.
    baseline
        The estimator without privacy; by default the twin of the private one if it has one, and None for none.
    seed
        Of the splits, not of the noise.

    Examples
    --------
    >>> from dither.learn.linear import Ridge
    >>> X = np.linspace(0, 10, 3000)[:, np.newaxis]
    >>> study = compare(Ridge(bounds=(0, 10), label_bounds=(0, 30)), X, 3 * X[:, 0], epsilons=(0.5, 5), repeats=3)
    >>> study.scores.shape, bool(study.baseline.min() > 0.999)
    ((2, 3), True)
    """
    from sklearn.base import clone, is_classifier
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import train_test_split

    budgets = tuple(float(arguments.epsilon(epsilon)) for epsilon in epsilons)
    if not budgets:
        raise InvalidArgument("epsilons", "at least one", "none", "pass epsilons=(0.1, 1)")
    count = arguments.whole(repeats, "repeats")
    models = [clone(estimator).set_params(**{parameter: epsilon}) for epsilon in budgets]
    reference = baseline
    if isinstance(baseline, str) and baseline == "twin":
        reference = estimator.non_private() if hasattr(estimator, "non_private") else None
    if reference is not None:
        models.append(reference)
    arrays = [X] if y is None else [X, y]
    stratify = y if y is not None and is_classifier(estimator) else None
    score = None if scoring is None else check_scoring(estimator, scoring)
    result = np.empty((len(models), count))
    with total_spent():  # a study, whose cost is no question
        for j in range(count):
            split_arrays = train_test_split(*arrays, test_size=test_size, random_state=seed + j, stratify=stratify)
            train, test = split_arrays[0::2], split_arrays[1::2]
            for i, model in enumerate(models):
                fitted = clone(model).fit(*train)
                result[i, j] = fitted.score(*test) if score is None else score(fitted, *test)
    return Comparison(
        type(estimator).__name__, budgets, result[: len(budgets)], result[-1] if reference is not None else None
    )
