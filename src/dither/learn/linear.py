"""Mean, linear regression and ridge regression from exact noisy sums.

Regression has two ways, and a public rule chooses. Features and labels are first moved and scaled by their public
bounds into [-1, 1]; r is the noise of the whole budget in units of one person, d the number of features, n a noisy
count.

* *Few records*, ``n < 30 r max((d + 1)^1.5, 10)``: n is counted again, from 3 %; the mean of the labels comes from
  ``3 r / n`` of the budget, or is taken to be the middle of the bounds where r / n is above 0.06. Then noisy gradient
  descent, in which the Gram matrix, for which there is no budget, is never released. Gradients are clipped to 0.2, all
  that is left is shared evenly by the steps, and the steps add up to ``1 / r``: directions that the noise would drown
  are not followed to their end, which is what a penalty does. The mean of the later half of the iterates is kept, and
  of its weights what the noise, whose size is known, does not explain: with too few records that is a constant.
* *Many records*: features are standardized by noisy moments and long rows weighted down; a noisy Gram matrix of
  features and label gives a first solution, from the directions that rise above its noise, and a whitening. Then come
  noisy Newton steps on the residuals, clipped to what nine tenths of them need: the labels' full range is paid for
  once, and mostly it is the residuals that are. What the noise of the Gram matrix has spoilt, the steps repair.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from dither import arguments
from dither.learn import inputs
from dither.learn.base import (
    Limits,
    PrivateEstimator,
    RegressorMixin,
    Released,
    UnsupervisedEstimator,
    centered,
    limits_of,
)
from dither.learn.budget import (
    Floats,
    GaussianBudget,
    noisy_ceiling,
    noisy_count,
    noisy_gram,
    noisy_moments,
    noisy_sum,
    project,
    quantized,
    row_norms,
    steps_to_one,
)
from dither.learn.descent import GRADIENT_BITS, GRADIENT_SENSITIVITY, Factors
from dither.neighbors import Neighbors
from dither.randomness import Source

_COUNT_SHARE, _SECOND_COUNT_SHARE = 0.02, 0.03
_BLOCK = 1 << 14  # rows at a time, to stay in the cache
_SHORTEST = 1e-100
_LARGEST = 1e30
_NEWTON_COUNT_RATIO, _MIN_NEWTON_FEATURES = 30.0, 10.0

_GRADIENT = 0.2  # the longest gradient of one record, by descent
_LENGTH = 0.2  # how far, in units of 1 / (r * _GRADIENT), the steps go in all
_INTERCEPT = 1 / 24  # the square of the constant feature, for each feature
_MIN_CONSTANT = 0.5
_STEPS = (10, 500)
_MAX_RELATIVE_NOISE, _MEAN_RATE, _TYPICAL_MEAN = 0.06, 3.0, 0.3  # the mean of the labels
_HALFWAY_STRENGTH = 10.0

_MOMENTS_SHARE, _SIZES_SHARE, _GRAM_SHARE = 0.1, 0.02, 0.2
_MIN_VARIANCE = 0.02
_FILTER = 8.0
_KEPT_ROWS, _KEPT_RESIDUALS = 0.95, 0.9
_FEW_STEPS = ((1, 1), (1, 5))  # steps of a round, and its part of what is left: with a good whitening,
_MANY_STEPS = ((1, 1), (4, 3), (8, 5))  # and where noise hides some directions


class _Steps:
    """Noisy sums of clipped gradients of least squares, ``z (label - z'beta)``, where z is a given row times a matrix.

    They are the steps of both methods of this module, descent and Newton's.
    """

    def __init__(self, rows: Floats, largest: float, matrix: Floats, labels: Floats, budget: GaussianBudget) -> None:
        """Store each row z as its norm and its direction in whole numbers, so that sums of gradients are exact.

        z are the given ``rows`` times ``matrix``, which whitens them or is the identity; ``rows`` is overwritten by
        the directions. ``largest`` bounds the length of a given row, and ``budget`` pays for the sums.
        """
        self.labels, self.budget = labels, budget
        sizes = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, start + _BLOCK)
            z = project(rows[block], matrix, largest)
            sizes[block] = row_norms(z)
            # all rows but zeros are longer and so clipped to one norm: only the direction stays
            rows[block] = quantized(z, _SHORTEST, GRADIENT_BITS, sizes=sizes[block])[0]
        self.unit = steps_to_one(rows.shape[1], 1.0, GRADIENT_BITS)
        self.factors = Factors(rows, sizes, self.unit)

    def residuals(self, beta: Floats) -> Floats:
        """Return the labels minus the predictions at ``beta``."""
        return self.labels - self.factors.times(beta)

    def gradient(self, residuals: Floats, clip: float, share: Fraction) -> Floats:
        """Return the noisy sum of the gradients, each clipped to ``clip``, for a share of the budget."""
        total = self.factors.clipped_sum(residuals, clip)
        [noisy] = self.budget.release([(total, GRADIENT_SENSITIVITY)], share)
        return noisy[:, 0] / self.factors.steps_to_one(clip, 1)


class LinearFit(NamedTuple):
    """A linear model ``intercept + x weights``, fitted with noise."""

    intercept: float
    weights: Floats
    method: str
    """``"descent"`` or ``"newton"``: how it was fitted."""


def solve(x: Floats, v: Floats, penalty: Floats, budget: GaussianBudget) -> LinearFit:
    """Return the noisy least squares fit of the labels ``v`` on the features ``x``, both scaled to within [-1, 1].

    ``penalty`` is the ridge penalty on the square of each weight. The whole ``budget`` is spent: 2 % on a count of the
    records, which decides between descent (few records) and Newton's method, and the rest on that.
    """
    count = noisy_count(x, budget, _COUNT_SHARE)
    if count < _NEWTON_COUNT_RATIO * budget.ratio(1) * max((x.shape[1] + 1) ** 1.5, _MIN_NEWTON_FEATURES):
        count = (_COUNT_SHARE * count + _SECOND_COUNT_SHARE * noisy_count(x, budget, _SECOND_COUNT_SHARE)) / (
            _COUNT_SHARE + _SECOND_COUNT_SHARE
        )
        return LinearFit(*_descent(x, v, penalty, count, budget), "descent")
    return LinearFit(*_newton(x, v, penalty, count, budget), "newton")


def _descent(x: Floats, v: Floats, penalty: Floats, count: float, budget: GaussianBudget) -> tuple[float, Floats]:
    """Return intercept and weights by noisy descent with a constant step, for the rest of the budget.

    ``x`` are the features and ``v`` the labels, scaled to between -1 and 1; ``penalty`` is the ridge penalty of each
    weight, ``count`` a noisy number of records. This is the way for few records in the module: the intercept is the
    weight of a constant feature about the mean of the labels, and the later half of the iterates is averaged.
    """
    middle = _likely_mean(v, count, budget)
    v = v - middle
    features = x.shape[1]
    constant = max(math.sqrt(_INTERCEPT * features), _MIN_CONSTANT)
    smoothness = (constant * constant + features) / 2  # the largest eigenvalue is below twice this
    length = _LENGTH / (_GRADIENT * budget.ratio(budget.left))
    steps = min(max(math.ceil(length * smoothness * count), _STEPS[0]), _STEPS[1])
    step = min(length / steps, 1 / (smoothness * count))
    share = budget.left / steps
    shrink = 1 / (1 + step * np.concatenate([[0.0], penalty]))  # an implicit step: no penalty is too large for it
    rows = np.hstack([np.full((len(x), 1), constant), x])
    sums = _Steps(rows, max(constant, 1.0), np.eye(features + 1), v, budget)
    beta, average = np.zeros(features + 1), np.zeros(features + 1)
    for h in range(steps):
        beta = shrink * (beta + step * sums.gradient(sums.residuals(beta), _GRADIENT, share))
        if h >= steps // 2:
            average += beta / (steps - steps // 2)
    return float(middle + average[0] * constant), _likely_weights(average[1:], count / budget.ratio(1), steps)


def _likely_mean(v: Floats, count: float, budget: GaussianBudget) -> float:
    """Return the noisy mean of the labels, shrunk toward 0, or 0 where noise would drown it.

    ``v`` are the labels scaled to between -1 and 1, ``count`` a noisy number of them, and ``budget`` pays for the sum.
    With t = 0.3, the size that a mean typically has, and the noise of standard deviation s, the noisy mean is
    multiplied by ``t^2 / (t^2 + s^2)``: the posterior mean under a normal prior.
    """
    relative_noise = budget.ratio(1) / count
    if relative_noise > _MAX_RELATIVE_NOISE:
        return 0.0
    share = Fraction(_MEAN_RATE * relative_noise).limit_denominator(1000)
    noise = budget.ratio(share) / count
    signal_share = _TYPICAL_MEAN * _TYPICAL_MEAN / (_TYPICAL_MEAN * _TYPICAL_MEAN + noise * noise)
    return signal_share * float(np.clip(noisy_sum(v[:, np.newaxis], 1.0, budget, share)[0] / count, -1.0, 1.0))


def _likely_weights(result: Floats, strength: float, steps: int) -> Floats:
    """Return the weights of a noisy descent times the factor with the smallest expected error.

    ``result`` are the d weights found, ``strength`` is the number of records over the noise of one release, and
    ``steps`` the number of steps. With a fraction g of the way to the minimum covered, t^2 the mean square of the true
    weights and the noise of standard deviation s in each, the best factor is ``g t^2 / (g^2 t^2 + s^2)``. It is
    computed for the t that the weights found imply and for t = 0.3; the smaller one is used, at most 1.

    s is an empirical rule. Without data, the mean of the later iterates would have the deviation ``_LENGTH sqrt(2/3 + 1
    / (2 steps))``; the gradients of the data damp it, in measurements to about ``(d + 1)^0.25 / strength``.
    """
    undamped_noise = _LENGTH * math.sqrt(2 / 3 + 1 / (2 * steps))
    noise = undamped_noise / math.hypot(1.0, undamped_noise * strength / (len(result) + 1) ** 0.25)
    progress = 1 / (1 + _HALFWAY_STRENGTH / strength)
    square = float(np.mean(result * result))
    signal_share = max(square - noise * noise, 0.0) / max(square, _SHORTEST)
    prior_share = (progress * _TYPICAL_MEAN) ** 2 / ((progress * _TYPICAL_MEAN) ** 2 + noise * noise)
    return result * min(min(signal_share, prior_share) / progress, 1.0)


def _newton(x: Floats, v: Floats, penalty: Floats, count: float, budget: GaussianBudget) -> tuple[float, Floats]:
    """Return intercept and weights by a noisy Gram matrix and noisy Newton steps, for the rest of the budget.

    ``x`` are the features and ``v`` the labels, scaled to between -1 and 1; ``penalty`` is the ridge penalty of each
    weight, ``count`` a noisy number of records. This is the way for many records in the module: moments standardize
    the features, the Gram matrix gives a first solution ``beta`` in whitened coordinates, and rounds of steps on
    clipped residuals (``_FEW_STEPS`` or ``_MANY_STEPS``) improve it.
    """
    size = x.shape[1] + 1
    mean, square, noise = noisy_moments(x, count, budget, _MOMENTS_SHARE)
    scale = np.sqrt(np.maximum(square - mean * mean, max(2 * noise, _MIN_VARIANCE)))
    x = np.asarray(x, order="F")  # columns in one piece: what is done to each of them is quicker
    both = np.empty((len(x), size + 1), order="F")  # the constant, the features and the label of each row
    z = both[:, :-1]
    sizes = np.empty(len(x))
    for start in range(0, len(x), _BLOCK):
        block = slice(start, start + _BLOCK)
        rows = both[block]
        rows[:, 0], rows[:, -1] = 1.0, v[block]
        np.subtract(x[block], mean, out=rows[:, 1:-1])
        rows[:, 1:-1] *= 1 / scale
        sizes[block] = row_norms(rows[:, :-1])
    norm_limit = noisy_ceiling(sizes, 8 * math.sqrt(size), _KEPT_ROWS, count, budget, _SIZES_SHARE)
    both *= (norm_limit / np.maximum(sizes, norm_limit))[:, np.newaxis]  # a weight leaves a linear model as it is

    norm = math.sqrt(norm_limit * norm_limit + 1)
    gram = noisy_gram(both, norm, budget, _GRAM_SHARE, within=True) / count
    noise = norm * norm * budget.ratio(_GRAM_SHARE, aligned=True) * math.sqrt(size) / count
    ridge = np.concatenate([[0.0], penalty / (scale * scale)]) / count
    shorter = 1 / np.sqrt(1 + ridge)  # a weight with a large penalty in units of its own: all numbers are near 1
    values, vectors = np.linalg.eigh(shorter[:, np.newaxis] * (gram[:-1, :-1] + np.diag(ridge)) * shorter)
    rounds = _FEW_STEPS if values[0] > _FILTER * noise else _MANY_STEPS
    values = np.maximum(values, noise)
    whitening = shorter[:, np.newaxis] * vectors / np.sqrt(values)
    beta = values * values / (values * values + (_FILTER * noise) ** 2) * (whitening.T @ gram[:-1, -1])
    ridge_here = whitening.T @ (ridge[:, np.newaxis] * whitening)

    sums = _Steps(z, norm_limit, whitening, both[:, -1].copy(), budget)
    left = budget.left - len(rounds) * Fraction(str(_SIZES_SHARE))
    total_weight = sum(round_weight for _, round_weight in rounds)
    for steps, round_weight in rounds:
        residuals = sums.residuals(beta)
        sizes = np.abs(residuals) * sums.factors.norms
        clip = noisy_ceiling(sizes, 16 * math.sqrt(size), _KEPT_RESIDUALS, count, budget, _SIZES_SHARE)
        for again in range(steps):
            residuals = sums.residuals(beta) if again else residuals
            gradient = sums.gradient(residuals, clip, left * round_weight / (total_weight * steps)) / count
            beta = beta + gradient - ridge_here @ beta
    result = whitening @ beta
    return float(result[0] - np.sum(result[1:] * mean / scale)), result[1:] / scale


class _Linear(RegressorMixin, PrivateEstimator):
    """Base of linear and ridge regression, which differ in their penalty."""

    coef_: Floats
    intercept_: float
    _needs_delta = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        bounds: Any = None,
        label_bounds: Any = None,
        neighbors: Neighbors | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(epsilon, delta, bounds=bounds, neighbors=neighbors, source=source)
        self.label_bounds = label_bounds

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows and labels, both clipped to their bounds; a ledger scope that is open is charged once."""
        self._fit_rows(X, y, labeled=True)
        return self

    def predict(self, X: Any) -> Floats:
        """Return the label of each row, by the linear model, also beyond the bounds."""
        return np.asarray(self._new_rows(X) @ self.coef_ + self.intercept_)

    def _check_parameters(self) -> None:
        """Refuse missing or malformed bounds of the labels."""
        self._label_limits()

    def _label_limits(self) -> tuple[float, float]:
        """Return ``label_bounds``, which have to be stated: limits of the features say nothing about the labels."""
        low, high = limits_of(arguments.bounds(self.label_bounds, "label_bounds"), 1, "label_bounds")
        return float(low[0]), float(high[0])

    def _labels(self, y: Any, rows: int) -> tuple[Any, ...]:
        """Return the labels ``y`` as numbers clipped to their bounds, in a tuple; missing ones are in the middle.

        ``rows`` is the number of records, which must be that of the labels.
        """
        low, high = self._label_limits()
        result = inputs.filled(inputs.numbers(y), (low + high) / 2)
        inputs.check_lengths(len(result), rows)
        return (np.clip(result, low, high),)

    def non_private_data(self, rows: Floats, y: Any) -> tuple[Any, ...]:
        """Return the arguments of the non-private estimator's ``fit``: the rows, and the labels clipped to bounds."""
        return rows, *self._labels(y, len(rows))

    def _alpha(self) -> float:
        """Return the factor of the squared weights in the objective: 0 for least squares."""
        return 0.0

    def _penalty(self, half: Floats) -> Floats:
        """Return ``alpha / half^2``, the penalty of each weight when features are divided by ``half``.

        It is at most ``_LARGEST``, at which a weight is practically 0, and computed so that nothing overflows.
        """
        return np.minimum(self._alpha() / _LARGEST, half * half) / (half * half) * _LARGEST

    def _released(self, rows: Floats, limits: Limits, *labels: Any, budget: GaussianBudget) -> Released:
        """Return coefficients and intercept in the units of the data, and the method that was used."""
        lower, upper = limits
        low, high = self._label_limits()
        half, label_half = (upper - lower) / 2, (high - low) / 2
        v = np.clip((labels[0] - (low + high) / 2) / label_half, -1.0, 1.0)  # the middle of close bounds is rounded
        intercept, weights, method = solve(centered(rows, limits), v, self._penalty(half), budget)
        coefficients = weights * label_half / half
        middle = float(np.sum(coefficients * (lower + upper) / 2))
        return {
            "coef_": coefficients,
            "intercept_": intercept * label_half + (low + high) / 2 - middle,
            "method_": method,
        }


class LinearRegression(_Linear):
    """Least squares, (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta
        The guarantee of one fit.
    bounds
        Public limits of the features: one pair for all, or one pair for each. Features are clipped to them.
    label_bounds
        Public limits of the labels, which are clipped to them. They have to be stated.
    neighbors
        ``dither.AddRemove``, the number of records being private (the default), or ``dither.ReplaceOne``.
    source
        Randomness; a seeded source is for tests only.

    Examples
    --------
    >>> import dither as dp
    >>> X = np.linspace(0, 10, 5000)[:, np.newaxis]
    >>> model = LinearRegression(epsilon=1, bounds=(0, 10), label_bounds=(0, 30)).fit(X, 2 * X[:, 0] + 5)
    >>> model.guarantee_, bool(abs(model.coef_[0] - 2) < 0.5)
    (ApproxDP(1, 1e-05), True)
    """

    def non_private_estimator(self) -> Any:
        """Return the estimator of scikit-learn that fits such a model without privacy."""
        from sklearn import linear_model

        return linear_model.LinearRegression()


class Ridge(_Linear):
    """Least squares with a penalty ``alpha |w|^2`` as in scikit-learn, (epsilon, delta)-DP.

    Parameters as for :class:`LinearRegression`. The noise makes its own penalty; ``alpha`` is on top of it.

    >>> X = np.linspace(0, 10, 5000)[:, np.newaxis]
    >>> model = Ridge(epsilon=1, alpha=1.0, bounds=(0, 10), label_bounds=(0, 30)).fit(X, 2 * X[:, 0] + 5)
    >>> model.coef_.shape
    (1,)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        alpha: float = 1.0,
        bounds: Any = None,
        label_bounds: Any = None,
        neighbors: Neighbors | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(epsilon, delta, bounds=bounds, label_bounds=label_bounds, neighbors=neighbors, source=source)
        self.alpha = alpha

    def _check_parameters(self) -> None:
        """Refuse malformed bounds of the labels, and a negative penalty."""
        super()._check_parameters()
        self._alpha()

    def _alpha(self) -> float:
        """Return the penalty, 0 or a positive number."""
        return 0.0 if self.alpha == 0 else arguments.positive(self.alpha, "alpha")

    def non_private_estimator(self) -> Any:
        """Return the estimator of scikit-learn that fits such a model without privacy."""
        from sklearn import linear_model

        return linear_model.Ridge(alpha=self.alpha)


class Mean(UnsupervisedEstimator):
    """The mean of each column: (epsilon, delta)-DP, or epsilon-DP with ``delta=None``.

    Rows are moved to the middle of the bounds, so that the noise of the count matters little.

    >>> Mean(epsilon=1, bounds=(0, 1)).fit(np.full((2000, 2), 0.25)).mean_.shape
    (2,)
    """

    mean_: Floats

    def _released(self, rows: Floats, limits: Limits, *labels: Any, budget: GaussianBudget) -> Released:
        """Return the noisy sum over the noisy count, which takes a fifth of the budget, in the units of the data."""
        lower, upper = limits
        columns = rows.shape[1]
        count = noisy_count(rows, budget, 0.2)
        norm = float(columns) if budget.pure else math.sqrt(columns)
        total = noisy_sum(centered(rows, limits), norm, budget, budget.left)
        mean = np.clip(total / count, -1.0, 1.0)
        return {"mean_": (lower + upper) / 2 + mean * (upper - lower) / 2}

    def non_private_estimator(self) -> Any:
        """Return the estimator that computes the mean without privacy."""
        return _PlainMean()


class _PlainMean:
    """The mean of each column without privacy, with scikit-learn's interface."""

    def fit(self, X: Floats, y: Any = None) -> Self:
        """Set ``mean_`` to the mean of each column."""
        self.mean_ = X.mean(axis=0)
        return self
