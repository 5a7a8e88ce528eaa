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
5. Where n / r is above ``20 (columns + 1)^1.5`` times the root of one less than the classes, the *likelihood*: rows are
   made uncorrelated altogether in step 4, and 60 to 240 steps of gradient descent with momentum use all that is left. A
   gradient is weighted by the length of its row and never by its residual, so that what they settle at is a maximum of
   the (weighted) likelihood; the length up to which rows count in full grows with n / r. Steps are so short that the
   noise moves a score by about 0.3. The mean of the later half of the iterates is kept, and of its coefficients what
   the noise does not explain.
6. Where it is below, *margins*: 40 steps with full batches, each record's gradient clipped to 0.2. That needs little
   noise and classifies well, but what it settles at is not the likelihood's: records that are predicted badly count
   less, and the coefficients get too large where classes overlap. The noise that the steps add up to in a coefficient
   is their whole length times ``0.2 r / n``, and that is held at 3.5 (at 5 after step 4) divided by the root of the
   number of scores, unless steps get too long to converge. The column of ones that makes the intercept is one of 0.1,
   and of up to 0.2 where n / r is above 50. The coefficients are the average of the last half of the iterates.
7. With two classes, and where n / r is above 100 and above ``12 (columns + 1)``, a fifth of what is left before step 6
   calibrates its scores: the likelihood of one slope and one intercept, as in step 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dither.learn.base import Limits, PrivateClassifier, Released, centered
from dither.learn.budget import GaussianBudget, noisy_ceiling, noisy_count, noisy_gram, noisy_sum, project, row_norms
from dither.learn.descent import GRADIENT_SENSITIVITY, Factors, descend_privately
from dither.learn.groups import without_noise
from dither.learn.losses import Floats, Logistic, Loss, Multinomial, softmax
from dither.neighbors import ReplaceOne

_STEPS = 40
_CLIP = 0.2
_NOISE, _NOISE_DECORRELATED = 3.5, 5.0
_LONGEST_STEP = 30.0
_MIN_COUNT_RATIO = 3.0
_MEAN_NORM, _SQUARE_NORM = 0.5, 0.2
_MIN_STRENGTH = 10
_PRODUCTS_SHARE = 0.1

_LIKELIHOOD_STRENGTH = 20.0
_LIKELIHOOD_STEPS, _MOST_TIMES_STEPS, _MOMENTUM = 60, 4.0, 0.7
_SCORE_VARIANCE = 0.1  # of the noise in the scores while the likelihood is climbed
_FULL_LENGTH = 1.5  # in units of a typical row
_ROWS_NORM = 1.4
_TYPICAL_CURVATURE = 0.2  # of the likelihood of two classes, at most 1/4
_MIN_CALIBRATION_STRENGTH, _CALIBRATION_STRENGTH = 100.0, 12.0
_CALIBRATION_SHARE, _SPREAD_SHARE, _SPREAD_FRACTION = Fraction(1, 5), Fraction(1, 50), 0.7


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
        features but adds nothing to the gradients, so a strange label is no error, and none is rounded to a class: of
        continuous labels hardly anything but noise is learned. ``"observed"`` takes the labels that occur, and is for
        data where *that a label occurs* is public: it is not protected.
    neighbors, source
        The relation, by default :data:`dither.AddRemove`; and where randomness comes from, for tests only.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_
        As in scikit-learn, in the units of the data. With r the ratio of noise to sensitivity at (epsilon, delta), they
        tend to those of maximum likelihood as n / r grows, and are calibrated where it is some hundreds: see the head
        of :mod:`dither.learn.logistic`. Below, they are made for classification: where classes overlap they are too
        large, and :meth:`predict_proba` is too sure and may be worse than the shares of the classes.
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
        """Return the estimator of scikit-learn that fits such a model without privacy."""
        return make_pipeline(StandardScaler(), PlainLogisticRegression(max_iter=1000))

    def _released(self, rows: Floats, limits: Limits, *labels: Any, budget: GaussianBudget) -> Released:
        """Return ``coef_`` and ``intercept_`` in the units of the data, by the seven steps of the module."""
        codes, classes = labels
        scaled_rows = centered(rows, limits)
        size = _noisy_record_count(scaled_rows, budget)
        middle, scale = _centers_and_scales(scaled_rows, size, budget)
        scaled = (scaled_rows - middle) * scale
        strength, columns = size / budget.ratio(1.0), rows.shape[1]
        enough = _LIKELIHOOD_STRENGTH * (columns + 1) ** 1.5 * math.sqrt(len(classes) - 1)
        likely = strength >= enough
        correlated = strength >= _MIN_STRENGTH * columns
        rotation = np.eye(columns)
        if likely or correlated:
            rotation = _decorrelation(scaled, size, budget, whole=likely)
        one = 1 / math.sqrt(columns) if likely else min(0.2, max(0.1, 0.1 * math.sqrt(strength / 50)))
        features = np.column_stack([project(scaled, rotation, 2 * float(scale.max())), np.full(len(rows), one)])
        records = _Records.of(features, codes, len(classes))
        if likely:
            weights = _likelihood(records, size, budget, strength / enough)
        else:
            calibrate = len(classes) == 2 and strength >= max(
                _MIN_CALIBRATION_STRENGTH, _CALIBRATION_STRENGTH * (columns + 1)
            )
            left = budget.left * (1 - _CALIBRATION_SHARE if calibrate else 1)
            weights = _clipped_descent(records, size, budget, left, _NOISE_DECORRELATED if correlated else _NOISE)
            if calibrate:
                slope, shift = _calibration(records, weights, size, budget)
                weights = slope * weights
                weights[-1] += shift / one
        lower, upper = limits
        coef = (rotation @ weights[:-1]).T * (scale * 2 / (upper - lower))
        origin = (lower + upper) / 2 + middle * (upper - lower) / 2
        return {"coef_": coef, "intercept_": weights[-1] * one - coef @ origin}

    def decision_function(self, X: Any) -> Floats:
        """Return the linear score ``X coef + intercept`` of each class; for two classes, of the second one only."""
        rows = self._rows(X)
        scores = rows @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, in the order of ``classes_``."""
        scores = self.decision_function(X)
        return softmax(np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])


def _noisy_record_count(rows: Floats, budget: GaussianBudget) -> float:
    """Return the number of ``rows``: exact under ReplaceOne, where it is public, and otherwise noisy.

    A noisy number is at least 3 times its noise.


    A private number is released twice out of ``budget``: from 2 %, and from a second share that grows, up to 10 %,
    where the noise matters. The result is the mean weighted by the shares.
    """
    if budget.neighbors is ReplaceOne:
        return noisy_count(rows, budget, 1.0)
    least, first = _MIN_COUNT_RATIO * budget.ratio(1.0), 0.02
    count = noisy_count(rows, budget, first)
    second = min(0.1, 1.5 * budget.ratio(1.0) / max(count, least))
    again = noisy_count(rows, budget, second)
    return max(least, (first * count + second * again) / (first + second))


def _centers_and_scales(scaled_rows: Floats, size: float, budget: GaussianBudget) -> tuple[Floats, Floats]:
    """Return the center of each feature, and the factor for each with which a typical row has length 1.

    ``scaled_rows`` has features between -1 and 1, ``size`` is the number of records, and ``budget`` pays for two
    releases: means and mean squares, steps 2 and 3 of the module. A feature is divided by the fourth root of its mean
    square, half way to a standard deviation of 1, hence the exponent -0.25.
    """
    columns = scaled_rows.shape[1]
    relative_noise = budget.ratio(1.0) / size

    def mean(values: Floats, norm: float, share: float) -> Floats:
        """Return the noisy mean of each column of ``values``, whose rows are clipped to ``norm`` per root column.

        The means are shrunk toward their common mean by the share of their spread that noise explains.
        """
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


def _decorrelation(rows: Floats, size: float, budget: GaussianBudget, *, whole: bool) -> Floats:
    """Return the matrix to multiply ``rows`` by so that features are less correlated.

    It is the inverse square root of their mean product if ``whole``, which makes them uncorrelated, else the inverse
    fourth root, half way. ``size`` is the number of records; ``budget`` pays for the noisy product matrix. Eigenvalues
    below the noise are taken to be as large as it; rows keep a typical length of 1.
    """
    columns, norm = rows.shape[1], _ROWS_NORM if whole else 1.0
    noise = norm * norm * budget.ratio(_PRODUCTS_SHARE, aligned=True) * math.sqrt(columns) / size
    values, vectors = np.linalg.eigh(noisy_gram(rows, norm, budget, _PRODUCTS_SHARE) / size)
    values = np.maximum(values, noise if whole else max(noise, 0.02 / columns))
    roots = values ** (-0.5 if whole else -0.25)
    return np.asarray(vectors * (roots / math.sqrt(float((roots**2 * values).sum()))) @ vectors.T)


@dataclass(frozen=True)
class _Records:
    """Features, the last of them constant, and targets; a record of no class is a row of zeros, without gradient."""

    features: Floats
    targets: Floats
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, features: Floats, codes: NDArray[np.int64], classes: int) -> _Records:
        """Return records with one target for each class, or one target if there are two classes."""
        chosen = codes[:, np.newaxis] == np.arange(classes)
        known = chosen.any(axis=1)
        targets = chosen.astype(np.float64)
        return cls(features * known[:, np.newaxis], targets[:, 1] if classes == 2 else targets, known)

    @property
    def scores(self) -> int:
        """Return the number of scores: one for each class, or one if there are two classes."""
        return 1 if self.targets.ndim == 1 else self.targets.shape[1]

    @property
    def loss(self) -> Loss:
        """Return the loss for two classes or for several."""
        return Logistic() if self.scores == 1 else Multinomial()

    @property
    def zeros(self) -> Floats:
        """Return coefficients of 0, the first iterate: a vector, or a column for each score if there are several."""
        columns = self.features.shape[1]
        return np.zeros(columns) if self.scores == 1 else np.zeros((columns, self.scores))


def _mean_iterate(
    records: _Records, start: Floats, steps: Floats, size: float, budget: GaussianBudget, left: Fraction, **given: Any
) -> Floats:
    """Return the mean of the later half of a descent's iterates, a column for each score; it spends ``left``.

    ``records`` are the features, targets and loss, ``start`` is the first iterate, ``steps`` the sizes of the steps,
    and ``size`` the number of records, public or noisy. The part ``left`` of ``budget`` is divided evenly among the
    steps. ``given`` are further parameters of :func:`~dither.learn.descent.descend_privately`.
    """
    share = Fraction(math.floor(left * 2**30), 2**30) / len(steps)
    trace = descend_privately(
        records.loss,
        records.features,
        records.targets,
        start=start,
        steps=steps,
        size=size,
        release=lambda sums: budget.release([(sums, GRADIENT_SENSITIVITY)], share)[0],
        **given,
    )
    return np.asarray(trace.iterates[len(steps) // 2 + 1 :].mean(axis=0).reshape(len(start), -1))


def _clipped_descent(records: _Records, size: float, budget: GaussianBudget, left: Fraction, noise: float) -> Floats:
    """Return coefficients by descent on gradients clipped to 0.2 (step 6 of the module), for ``left`` of ``budget``.

    ``records`` are the features, targets and loss, and ``size`` is their number, public or noisy. The size of the steps
    is chosen so that the noise they add to a coefficient has the standard deviation ``noise / sqrt(number of scores)``,
    but at most the largest size with which descent converges.
    """
    scores = records.scores
    length = noise / math.sqrt(scores) * size * math.sqrt(left) / (budget.ratio(1.0) * _CLIP)
    step = min(length / _STEPS, _LONGEST_STEP * (4 if scores == 1 else scores))
    return _mean_iterate(records, records.zeros, np.full(_STEPS, step), size, budget, left, clip=_CLIP)


def _likelihood(
    records: _Records, size: float, budget: GaussianBudget, excess: float, start: Floats | None = None
) -> Floats:
    """Return coefficients by maximum likelihood (step 5 of the module), for the whole remaining ``budget``.

    ``records`` are the features, targets and loss, and ``size`` is their number, public or noisy. The features except
    the constant one are uncorrelated, and rows have a typical length of 1. ``excess`` is n / r over the value from
    which this method is used. ``start`` is the first iterate; None starts from zeros and shrinks the coefficients
    by the share that noise explains.

    *Why no gradient is clipped.* Rows are weighted down to the length ``longest``, and a residual is at most 1 long
    (``sqrt(2)`` for several scores), so no gradient is longer than ``clip``.
    """
    columns = records.features.shape[1] - 1
    longest = _FULL_LENGTH * excess**0.25 * math.sqrt(1 + 1 / columns)
    clip = longest if records.scores == 1 else math.sqrt(2) * longest
    curvature = (_TYPICAL_CURVATURE if records.scores == 1 else 1 / records.scores) / columns
    steps = round(_LIKELIHOOD_STEPS * min(math.sqrt(excess), _MOST_TIMES_STEPS))
    noise = clip * budget.ratio(budget.left) / size  # in a gradient that all of the budget is spent on
    step = min(
        columns / (records.loss.curvature * (1 - _MOMENTUM)),
        2 * _SCORE_VARIANCE * curvature / (noise * noise * steps),
    )
    result = _mean_iterate(
        records,
        records.zeros if start is None else start,
        np.full(steps, step),
        size,
        budget,
        budget.left,
        clip=clip,
        momentum=_MOMENTUM,
        weights=longest / np.maximum(row_norms(records.features), longest),
    )
    if start is None:
        result[:-1] = without_noise(result[:-1].ravel(), math.sqrt(2) * noise / curvature).reshape(columns, -1)
    return result


def _calibration(records: _Records, weights: Floats, size: float, budget: GaussianBudget) -> tuple[float, float]:
    """Return the slope and intercept ``(a, b)`` for which ``a score + b`` has the largest likelihood (Platt scaling).

    The scores are the features of ``records`` times ``weights`` (two classes, so one column); ``size`` is the number
    of records. All of the remaining ``budget`` is spent: a little on a noisy 70 % quantile of the scores' sizes, by
    which they are divided so that the descent works on numbers near 1, and the rest on the descent.
    """
    scores = Factors.of(records.features).times(weights[:, 0])
    top = 8 * float(np.linalg.norm(weights))
    spread = noisy_ceiling(np.abs(scores), top, _SPREAD_FRACTION, size, budget, _SPREAD_SHARE)
    features = np.column_stack([scores / spread, records.known])
    result = _likelihood(replace(records, features=features), size, budget, 1.0, start=np.array([spread, 0.0]))
    return float(result[0, 0]) / spread, float(result[1, 0])
