"""Private logistic regression: a small share of the budget centers and scales the features, the rest is for descent.

Every choice is a rule in public numbers (columns, classes, epsilon, delta) and in the noisy number of records n. With
r the ratio of noise to sensitivity that (epsilon, delta) asks of one release, ``n / r`` says how strong the data are
against the noise; it decides on all of them:

1. n itself, from 2 % of the budget, and some more where n / r is small.
2. The mean of each feature, from ``5 r / n`` of it, at most a fifth; shrunk toward the common mean as far as the noise
   in them asks for (empirical Bayes). Features are centered there: what all rows have in common has no part in the
   gradients then, which have little room.
3. The mean square of each centered feature, from ``r / (2n)``, at most 5 %; shrunk alike. Features are divided by its
   fourth root, half way to standard deviations of 1, and all of them by one number that brings a typical row to length
   1.
4. Where n / r is above ten times the columns, the products of all features, from a tenth: the rows are multiplied by
   the fourth root of the inverse of that matrix, half way to uncorrelated features.
5. Gradient descent with the rest: 40 steps with full batches, each record's gradient clipped to 0.2. The noise that
   the steps add up to in a coefficient is their whole length times ``0.2 r / n``, and that is held at 3.5 (at 5 after
   step 4) divided by the root of the number of scores, unless steps get too long to converge. The column of ones that
   makes the intercept is one of 0.1, and of up to 0.2 where n / r is above 50. The coefficients are the average of the
   last half of the iterates.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dither.learn.base import Released, centered, limits_of
from dither.learn.budget import GaussianBudget, noisy_count, noisy_gram, noisy_sum
from dither.learn.classes import PrivateClassifier
from dither.learn.descent import GRADIENT_SENSITIVITY, descend_privately
from dither.learn.groups import without_noise
from dither.learn.losses import Floats, Logistic, Loss, Multinomial, softmax
from dither.learn.rows import project
from dither.neighbors import ReplaceOne

_STEPS = 40
_CLIP = 0.2
_NOISE, _NOISE_DECORRELATED = 3.5, 5.0
_LONGEST_STEP = 30.0
_MIN_COUNT_RATIO = 3.0
_MEAN_NORM, _SQUARE_NORM = 0.5, 0.2
_MIN_STRENGTH = 10
_PRODUCTS_SHARE = 0.1


class LogisticRegression(PrivateClassifier):
    """Logistic regression for two or more classes, (epsilon, delta)-DP, with scikit-learn's interface.

    *Statement.* A fit is (epsilon, delta)-DP in rows and labels, for one record added or removed (or replaced, with
    ``neighbors=ReplaceOne``). *Why.* It sees the data through sums of clipped rows and of clipped gradients only, each
    with normal noise out of one :class:`~dither.learn.budget.GaussianBudget`.

    Parameters
    ----------
    epsilon, delta
        The guarantee. There is no pure version: ``delta=None`` is refused.
    bounds
        Public limits of the features: one pair for all, or one for each. Values beyond are clipped, also to predict.
    classes
        The public list of labels, at least two. A record with any other label counts for means and squares of the
        features but adds nothing to the gradients, so a strange label is no error. ``"observed"`` takes the labels
        that occur, and is for data where *that a label occurs* is public: it is not protected.
    neighbors, source
        The relation, by default :data:`dither.AddRemove`; and where randomness comes from, for tests only.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_
        As in scikit-learn, in the units of the data.
    guarantee_, event_
        What the fit cost.

    Examples
    --------
    >>> X = np.column_stack([np.linspace(0, 10, 2000), np.ones(2000)])
    >>> y = np.where(X[:, 0] > 5, "high", "low")
    >>> model = LogisticRegression(epsilon=1, bounds=[(0, 10), (0, 2)], classes=["high", "low"]).fit(X, y)
    >>> model.predict([[9.0, 1.0], [1.0, 1.0]])
    array(['high', 'low'], dtype='<U4')
    >>> model.guarantee_
    ApproxDP(1, 1e-05)
    """

    coef_: Floats
    intercept_: Floats
    _needs_delta = True

    def non_private_estimator(self) -> Any:
        """The estimator of scikit-learn that does the same without privacy."""
        return make_pipeline(StandardScaler(), PlainLogisticRegression(max_iter=1000))

    def _released(self, rows: Floats, *labels: Any, budget: GaussianBudget) -> Released:
        limits = limits_of(self.bounds, rows.shape[1])
        codes, classes = labels
        scaled_rows = centered(rows, limits)
        size = _size(scaled_rows, budget)
        middle, scale = _standard(scaled_rows, size, budget)
        scaled = (scaled_rows - middle) * scale
        strength = size / budget.ratio(1.0)
        known = strength >= _MIN_STRENGTH * rows.shape[1]
        rotation = _decorrelation(scaled, size, budget) if known else np.eye(rows.shape[1])
        one = min(0.2, max(0.1, 0.1 * math.sqrt(strength / 50)))
        features = np.column_stack([project(scaled, rotation, 2 * float(scale.max())), np.full(len(rows), one)])
        weights = _descended(features, codes, classes, size, budget, _NOISE_DECORRELATED if known else _NOISE)
        lower, upper = limits
        coef = (rotation @ weights[:-1]).T * (scale * 2 / (upper - lower))
        origin = (lower + upper) / 2 + middle * (upper - lower) / 2
        return {"coef_": coef, "intercept_": weights[-1] * one - coef @ origin}

    def decision_function(self, X: Any) -> Floats:
        """The score of each class; for two classes, of the second."""
        rows = self._rows(X)
        scores = rows @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of ``classes_``."""
        scores = self.decision_function(X)
        return softmax(np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores)

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of :meth:`predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])


def _size(rows: Floats, budget: GaussianBudget) -> float:
    """The number of records: counted twice where it is private, the second time as well as it is worth."""
    if budget.neighbors is ReplaceOne:
        return noisy_count(rows, budget, 1.0)
    least, first = _MIN_COUNT_RATIO * budget.ratio(1.0), 0.02
    count = noisy_count(rows, budget, first)
    second = min(0.1, 1.5 * budget.ratio(1.0) / max(count, least))
    again = noisy_count(rows, budget, second)
    return max(least, (first * count + second * again) / (first + second))


def _standard(scaled_rows: Floats, size: float, budget: GaussianBudget) -> tuple[Floats, Floats]:
    """Where to center each feature, and what to multiply it by, so that a typical row has length 1."""
    columns = scaled_rows.shape[1]
    relative_noise = budget.ratio(1.0) / size

    def mean(values: Floats, norm: float, share: float) -> Floats:
        sum_norm = norm * math.sqrt(columns)
        result = noisy_sum(values, sum_norm, budget, share) / size
        common = float(result.mean())  # toward which the features are shrunk as far as the noise in them asks for
        return common + without_noise(result - common, sum_norm * budget.ratio(share) / size)

    middle = np.clip(mean(scaled_rows, _MEAN_NORM, min(0.2, max(5 * relative_noise, 0.01))), -1.0, 1.0)
    squares = mean((scaled_rows - middle) ** 2, _SQUARE_NORM, min(0.05, max(relative_noise / 2, 0.01)))
    typical = max(float(squares.mean()), 0.01)
    squares = np.maximum(squares, 0.05 * typical)
    scale = squares**-0.25
    return middle, scale / math.sqrt(float((scale**2 * squares).sum()))


def _decorrelation(rows: Floats, size: float, budget: GaussianBudget) -> Floats:
    """The matrix to multiply rows by: the fourth root of the inverse of their mean product.

    Eigenvalues below the noise are taken to be as large as it; rows keep a typical length of 1.
    """
    columns = rows.shape[1]
    noise = budget.ratio(_PRODUCTS_SHARE, aligned=True) * math.sqrt(columns) / size
    values, vectors = np.linalg.eigh(noisy_gram(rows, 1.0, budget, _PRODUCTS_SHARE) / size)
    values = np.maximum(values, max(noise, 0.02 / columns))
    roots = values**-0.25
    return np.asarray(vectors * (roots / math.sqrt(float((roots**2 * values).sum()))) @ vectors.T)


def _descended(
    features: Floats, codes: NDArray[np.int64], classes: NDArray[Any], size: float, budget: GaussianBudget, noise: float
) -> Floats:
    """Coefficients, one column for each score: k of them, or one if there are two classes."""
    chosen = codes[:, np.newaxis] == np.arange(len(classes))
    features = features * chosen.any(axis=1)[:, np.newaxis]  # a row of zeros has no gradient
    scores = 1 if len(classes) == 2 else len(classes)
    targets = chosen.astype(np.float64)
    loss: Loss = Logistic() if scores == 1 else Multinomial()
    share = Fraction(math.floor(budget.left * 2**30), 2**30) / _STEPS
    length = noise / math.sqrt(scores) * size * math.sqrt(budget.left) / (budget.ratio(1.0) * _CLIP)
    step = min(length / _STEPS, _LONGEST_STEP * len(classes) * (2 if scores == 1 else 1))
    trace = descend_privately(
        loss,
        features,
        targets[:, 1] if scores == 1 else targets,
        start=np.zeros(features.shape[1]) if scores == 1 else np.zeros((features.shape[1], scores)),
        steps=np.full(_STEPS, step),
        clip=_CLIP,
        size=size,
        release=lambda sums: budget.release([(sums, GRADIENT_SENSITIVITY)], share)[0],
    )
    average = trace.iterates[_STEPS // 2 + 1 :].mean(axis=0)
    return np.asarray(average.reshape(features.shape[1], scores))


__all__ = ["LogisticRegression"]
