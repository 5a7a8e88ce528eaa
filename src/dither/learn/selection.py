"""Choosing among fitted models by how well they do on private records, and comparing scores across epsilons.

*Statement.* ``select_model`` is epsilon-DP in the records that it scores on, for the relation that it is given.

*Why.* Every record adds to the score of every candidate a whole number of steps between 0 and 2^20: all or nothing for
a label that is predicted or missed, for a number the more the nearer it is. What a record adds depends on that record
alone: it is shown to a candidate by itself, its cells as floats or text by their own values, whatever the column that
they came in is of. So when a record is added no score falls and none rises by more
than 2^20 steps, which is what :class:`~dither.mechanisms.Exponential` calls monotone, and its full epsilon goes into
the exponent; when one is replaced scores move by at most as much in either direction, and half of it does.

With d candidates, the chosen one has, with probability ``1 - beta``, at most ``ln(d / beta) / epsilon`` records less
than the best (twice that under replace-one): choosing costs little even where fitting costs much.

The candidates themselves are published with the choice, so they must not have been fitted to these records
without noise: either they state a ``guarantee_``, which is then to be paid besides this one, or ``public=True``
says that they come from elsewhere.

:func:`compare` gives scores against epsilon: what privacy costs on data that you may look at. **Not private.** The
scores are those of the data themselves, without noise: this is for public data, or for data like
those that will be used. The estimators are fitted many times, and a ledger scope that is open is charged every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import arguments
from dither.budget_hooks import covered
from dither.callbacks import outcome, silenced
from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument, InvalidData, NotPrivate
from dither.extras import Axes, PandasFrame
from dither.guarantees import Guarantee, PureDP
from dither.learn import inputs
from dither.learn.base import PaidComputation, total_spent
from dither.learn.budget import Floats
from dither.mechanisms import Exponential
from dither.neighbors import AddRemove, Neighbors, relation
from dither.present.chart import Axis, Chart, Mark
from dither.present.drawing import draw
from dither.randomness import Source

_STEPS = 1 << 20  # to one record


@dataclass(frozen=True)
class Choice:
    """The chosen ``model``, its ``index`` among the ``candidates``, and what the choice cost: ``guarantee_``.

    >>> Choice("a", 0, 2, Exponential(sensitivity=1 << 20, epsilon=1, monotone=True)).guarantee_
    PureDP(1)
    """

    model: Any
    index: int
    candidates: int
    mechanism: Exponential

    @property
    def guarantee_(self) -> PureDP:
        """Return the guarantee of the choice; candidates that were fitted to these records cost more."""
        return self.mechanism.guarantee

    def error(self, confidence: float = 0.95) -> float:
        """Return by how many records the chosen model is worse than the best at most, with this confidence.

        >>> mechanism = Exponential(sensitivity=1 << 20, epsilon=1, monotone=True)
        >>> round(Choice("a", 0, 10, mechanism).error(0.95), 2)
        5.3
        """
        return self.mechanism.error(self.candidates, confidence) / _STEPS


def select_model(
    candidates: Sequence[Any],
    X: Any,
    y: Any,
    *,
    epsilon: float,
    within: float | None = None,
    public: bool = False,
    together: bool = False,
    neighbors: Neighbors | None = None,
    source: Source | None = None,
) -> Choice:
    """Choose, epsilon-DP, the fitted model that predicts the labels of private records best, or nearly so.

    Parameters
    ----------
    candidates
        Fitted models with ``predict``.
    X, y
        The private records: rows, as a list, an array or a data frame, and labels. Candidates see numbers as floats,
        text as text and anything else as NaN, in a frame where X is one.
    epsilon
        The guarantee. An open ledger scope is charged once, before anything is predicted.
    within
        None for labels: a record counts where its label is predicted. A number for regression: a record counts 1 where
        the prediction is exact, and less the farther it is, 0 from ``within`` on.
    public
        Says that the candidates were made without these records. Without it every candidate must state a
        ``guarantee_`` of its own, or it would be published with the choice and without protection.
    together
        Predict all records in one call instead of one by one: faster, and then it is for the candidates to see to it
        that a prediction depends on its own row alone, to the last bit, and that none is an error. X has to declare the
        types of its columns then: a list, and dtype object, are refused.
    neighbors
        ``dither.AddRemove``, the number of records being private (the default), or ``dither.ReplaceOne``.
    source
        Randomness; a seeded source is for tests only.

    A prediction that is missing or an error, or not a number where one is wanted, counts as a miss.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((200, 1)), np.repeat(["no", "yes"], [20, 180])
    >>> models = [DummyClassifier(strategy="constant", constant=label).fit(X, y) for label in ("no", "yes")]
    >>> choice = select_model(models, X, y, epsilon=1, public=True)      # fitted to nothing but their constants
    >>> choice.index, choice.guarantee_
    (1, PureDP(1))
    """
    relation_ = AddRemove if neighbors is None else relation(neighbors)
    mechanism = Exponential(sensitivity=_STEPS, epsilon=epsilon, monotone=relation_ is AddRemove)
    width = None if within is None else arguments.positive(within, "within")
    models = list(candidates)
    if not models or not all(hasattr(model, "predict") for model in models):
        raise InvalidArgument(
            "candidates", "fitted models with predict", "none, or objects without it", "pass a list of them"
        )
    if not public and not all(_states_guarantee(model) for model in models):
        raise NotPrivate(
            "candidates",
            "models that state a guarantee_",
            "a model without one",
            "fit private estimators, or pass public=True if these records had no part in them",
        )
    labels = inputs.shown(inputs.labels(y).tolist()) if width is None else inputs.numbers(y).tolist()
    count, rows = inputs.together(X) if together else inputs.records(X)
    inputs.check_lengths(len(labels), count)

    def compute() -> int:
        """Return the index of the model selected by the scores of all records."""
        with silenced():
            scores = _scores(models, rows, labels, width, together)
        return covered(mechanism.select_index)(scores, source=source)

    request = f"selection among {len(models)} models by {mechanism}"
    index = PaidComputation(request, mechanism.guarantee).release(compute, source=source)
    return Choice(models[index], index, len(models), mechanism)


def _states_guarantee(model: Any) -> bool:
    """Return whether a fitted model, or every step of a pipeline, is private by its own account."""
    if hasattr(model, "steps"):
        return all(step in (None, "passthrough") or _states_guarantee(step) for _, step in model.steps)
    return isinstance(getattr(model, "guarantee_", None), Guarantee) and getattr(model, "private_", True) is True


def _scores(models: list[Any], rows: Any, labels: list[Any], width: float | None, together: bool) -> list[int]:
    """Return the score of each model, in whole steps: the sum of what all records add.

    ``rows`` is one table if ``together``, where a model predicts all rows in one call, and otherwise a function that
    returns record i as a table. ``labels`` are the true labels, and ``width`` is, for regression, the distance from
    the label from which on a prediction counts 0; None is for classification. A prediction that fails counts as no
    match.
    """
    if together:
        predicted = [outcome(lambda model: list(model.predict(rows)), model) for model in models]
        if any(one is None or len(one) != len(labels) for one in predicted):
            raise InvalidData(
                "candidates", "one prediction for each row", "fewer or more predictions", "leave together out"
            )
        return [
            sum(_steps(one, label, width) for one, label in zip(result or [], labels, strict=True))
            for result in predicted
        ]
    scores = [0] * len(models)
    for i, label in enumerate(labels):
        row = rows(i)
        for index, model in enumerate(models):
            scores[index] += _steps(outcome(_predicted, model, row), label, width)
    return scores


def _predicted(model: Any, row: Any) -> Any:
    """Return the prediction for one record."""
    [result] = model.predict(row)
    return result


def _steps(predicted: Any, label: Any, width: float | None) -> int:
    """Return what one record adds to a score, from 0 (a miss, or an error) to 2^20.

    ``width`` is the error at which a number counts 0; None for labels.
    """

    def steps() -> int:
        """Return how well one prediction fits its label, in whole steps of a record."""
        if width is None:
            [one] = inputs.shown([predicted])
            return _STEPS if bool(one == label) else 0
        closeness = 1.0 - abs(float(predicted) - float(label)) / width
        return int(closeness * _STEPS) if 0.0 < closeness <= 1.0 else 0

    return outcome(steps) or 0


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
        """Return mean, standard deviation, lowest and highest score over the repeats for each epsilon.

        The last row is that of the baseline, with None for epsilon.

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
        """Return the table as a data frame; epsilon is infinite for the baseline.

        >>> Comparison("Ridge", (1.0,), np.array([[0.5, 0.7]]), None).to_pandas().columns.tolist()
        ['epsilon', 'mean', 'std', 'lowest', 'highest']
        """
        import pandas as pd

        frame = pd.DataFrame(self.table)
        frame["epsilon"] = frame["epsilon"].astype(float).fillna(np.inf)
        return frame

    def plot(self, axes: Axes | None = None) -> Axes:
        """Plot mean scores over epsilon, a band of one standard deviation, every repeat as a dot, and the baseline.

        It draws on matplotlib axes, new ones unless ``axes`` are given, and returns them.

        >>> axes = Comparison("Ridge", (0.5, 1.0), np.ones((2, 3)), np.ones(3)).plot()
        >>> axes.get_xlabel(), axes.get_xscale()
        ('epsilon', 'log')
        """
        spread = [row["std"] for row in self.table[: len(self.epsilons)]]
        repeats = np.repeat(self.epsilons, self.scores.shape[1]).tolist()
        marks = [
            Mark(self.scores.mean(axis=1).tolist(), self.epsilons, self.name, errors=spread, color=0),
            Mark(self.scores.ravel().tolist(), repeats, style="points", color=0),
        ]
        if self.baseline is not None:
            ends = min(self.epsilons), max(self.epsilons)
            marks.append(Mark((float(self.baseline.mean()),) * 2, ends, "not private", "reference"))
        ticks = tuple((epsilon, f"{epsilon:g}") for epsilon in self.epsilons)
        return draw(Chart("", tuple(marks), Axis("epsilon", log=True, ticks=ticks), Axis("score")), axes)

    def __str__(self) -> str:
        """Return a table with one line for each epsilon: mean, deviation, lowest and highest score of the repeats."""
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
    """Fit on identical random splits at every epsilon, and without privacy, and score on the part held out.

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
