"""Gaussian naive Bayes: counts, means and variances of every class, from noisy sums out of one budget.

A record adds to the sums of its own class and to no other, so all classes together cost what one does. In places
between -1 and 1 (:func:`~dither.learn.base.centered`), with r the noise of the whole budget in units of one person:

1. The counts of all classes, from 10 % of the budget, moved toward each other as far as the noise explains their
   spread.
2. The mean of all records, from 10 %. What the classes have in common is found from all of them.
3. A length to clip to (:func:`~dither.learn.groups.typical_length`), from 2 %; 0.35 of the longest if there are too few
   records for that. The sum of the clipped differences from the common mean for each class, from half of what is left.
   The means of the classes are moved toward the common one as far as the noise in them explains their spread.
4. The same for the squares of the distances from the means of the classes (0.1 of the longest), with all that is left.
   The variances of a class are moved toward those of all records as far as the noise asks for, and none is below 1/400
   of the largest or below the noise of the common ones: a constant feature says little and not everything.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.learn.base import Released, centered, limits_of
from dither.learn.budget import Floats, GaussianBudget, noisy_sum
from dither.learn.classes import PrivateClassifier
from dither.learn.groups import deviation, group_counts, group_means, typical_length, without_noise
from dither.learn.losses import softmax

_COUNTS_SHARE, _MEAN_SHARE, _SIZES_SHARE = 0.1, 0.1, 0.02
_DISTANCE, _SQUARE = 0.35, 0.1  # of the longest, where there are too few records to find out
_MIN_VARIANCE, _MIN_ABSOLUTE_VARIANCE, _MIN_RATIO = 1 / 400, 1e-6, 0.1


class GaussianNB(PrivateClassifier):
    """Naive Bayes with normal features: (epsilon, delta)-DP, or epsilon-DP with ``delta=None``.

    *Statement.* A fit is (epsilon, delta)-DP in rows and labels, for one record added or removed (or replaced, with
    ``neighbors=ReplaceOne``). *Why.* It sees the data through counts, and sums of clipped rows, of disjoint classes,
    each with noise out of one :class:`~dither.learn.budget.GaussianBudget`.

    Parameters
    ----------
    epsilon, delta
        The guarantee of one fit.
    bounds
        Public limits of the features: one pair for all, or one pair for each. Features are clipped to them, also to
        predict.
    classes
        The public list of labels, at least two; a record with any other label adds nothing. ``"observed"`` takes the
        labels that occur, and is for data where *that a label occurs* is public: it is not protected.
    neighbors
        ``dither.AddRemove``, the number of records being private (the default), or ``dither.ReplaceOne``.
    source
        Randomness; a seeded source is for tests only.

    Attributes
    ----------
    theta_, var_, class_prior_, class_count_, classes_
        As in scikit-learn, in the units of the data; counts are noisy and at least 1.

    Examples
    --------
    >>> X = np.concatenate([np.linspace(0, 4, 3000), np.linspace(6, 10, 3000)])[:, np.newaxis]
    >>> y = np.repeat(["low", "high"], 3000)
    >>> model = GaussianNB(epsilon=1, bounds=(0, 10), classes=["low", "high"]).fit(X, y)
    >>> model.predict([[1.0], [9.0]])
    array(['low', 'high'], dtype='<U4')
    >>> model.guarantee_
    ApproxDP(1, 1e-05)
    """

    theta_: Floats
    var_: Floats
    class_prior_: Floats
    class_count_: Floats

    def non_private_estimator(self) -> Any:
        """The estimator of scikit-learn that does the same without privacy."""
        from sklearn import naive_bayes

        return naive_bayes.GaussianNB()

    def _released(self, rows: Floats, *labels: Any, budget: GaussianBudget) -> Released:
        lower, upper = limits_of(self.bounds, rows.shape[1])
        half = (upper - lower) / 2
        codes, classes = labels
        known = codes >= 0
        groups = codes[known]
        counts, means, variances = moments(centered(rows[known], (lower, upper)), groups, len(classes), budget)
        return {
            "theta_": (lower + upper) / 2 + means * half,
            "var_": variances * half * half,
            "class_count_": counts,
            "class_prior_": counts / counts.sum(),
        }

    def _joint(self, X: Any) -> Floats:
        """The logarithm of prior times likelihood, but for what all classes share."""
        rows = self._rows(X)
        result = [
            math.log(prior) - 0.5 * (np.log(spread).sum() + ((rows - mean) ** 2 / spread).sum(axis=1))
            for prior, mean, spread in zip(self.class_prior_, self.theta_, self.var_, strict=True)
        ]
        return np.column_stack(result)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of ``classes_``."""
        return softmax(self._joint(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of :meth:`predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        best = self._joint(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


def moments(
    places: Floats, groups: NDArray[np.int64], size: int, budget: GaussianBudget
) -> tuple[Floats, Floats, Floats]:
    """Count, mean and variance of each of so many groups of rows between -1 and 1. All of the budget is spent.

    >>> import dither as dp
    >>> places, groups = np.repeat([[-0.5], [0.5]], 4000, axis=0), np.repeat([0, 1], 4000)
    >>> counts, means, variances = moments(places, groups, 2, GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove))
    >>> bool(np.abs(means.ravel() - [-0.5, 0.5]).max() < 0.05), means.shape, variances.shape
    (True, (2, 1), (2, 1))
    """
    columns = places.shape[1]
    max_norm = float(columns) if budget.pure else math.sqrt(columns)
    noisy = group_counts(groups, size, budget, _COUNTS_SHARE)
    count = max(float(noisy.sum()), float(size))
    spread = without_noise(noisy - count / size, deviation(budget, _COUNTS_SHARE, aligned=True))
    counts = np.maximum(count / size + spread, 1.0)
    middle = np.clip(noisy_sum(places, max_norm, budget, _MEAN_SHARE) / count, -1.0, 1.0)

    def group_mean(rows: Floats, typical: float, part: Fraction) -> tuple[Floats, Floats]:
        norm = typical_length(
            rows, size, longest=max_norm, otherwise=max_norm * typical, count=count, budget=budget, share=_SIZES_SHARE
        )
        return group_means(rows, groups, counts, norm, budget, budget.left * part)

    means, noise = group_mean(places - middle, _DISTANCE, Fraction(1, 2))
    means = np.clip(middle + without_noise(means, noise), -1.0, 1.0)
    squares, noise = group_mean((places - means[groups]) ** 2, _SQUARE, Fraction(1))
    shares = counts / counts.sum()
    common, common_noise = shares @ squares, math.sqrt(float(((shares * noise) ** 2).sum()))
    floor = min(max(_MIN_VARIANCE * float(common.max()), common_noise, _MIN_ABSOLUTE_VARIANCE), 1.0)
    common = np.clip(common, floor, 1.0)
    noise /= float(common.mean())
    ratios = np.maximum(squares / common, np.clip(noise, _MIN_VARIANCE, _MIN_RATIO)[:, np.newaxis])
    variances = common * np.exp(without_noise(np.log(ratios), noise))
    return counts, means, np.clip(variances, floor, 4.0)
