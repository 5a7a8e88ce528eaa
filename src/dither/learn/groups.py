"""Estimators of groups of records: naive Bayes, of classes, and k-means, of clusters around centers.

A record is in one group and adds to no other, so the sums of all groups together move as far as one row is long: any
number of groups costs what one does.

>>> import dither as dp
>>> budget = GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove)
>>> groups = np.repeat([0, 1], 3000)
>>> counts = group_counts(groups, 2, budget, share=0.5)
>>> means, noise = group_means(np.repeat([[0.2], [0.7]], 3000, axis=0), groups, counts, 1.0, budget, share=0.5)
>>> bool(np.abs(means.ravel() - [0.2, 0.7]).max() < 0.05)
True

Gaussian naive Bayes
--------------------
Counts, means and variances of every class come from noisy sums out of one budget. A record adds to the sums of its own
class and to no other, so all classes together cost what one does. With features scaled
to between -1 and 1 (:func:`~dither.learn.base.centered`) and r the noise of the whole budget in units of one person:

1. The counts of all classes, from 10 % of the budget, moved toward each other as far as the noise explains their
   spread.
2. The mean of all records, from 10 %. What the classes have in common is found from all of them.
3. A length to clip to (:func:`typical_length`), from 2 %; 0.35 of the longest if there are too few
   records for that. The sum of the clipped differences from the common mean for each class, from half of what is left.
   The means of the classes are moved toward the common one as far as the noise in them explains their spread.
4. The same for the squares of the distances from the means of the classes (0.1 of the longest), with all that is left.
   The variances of a class are moved toward those of all records as far as the noise asks for, and none is below 1/400
   of the largest or below the noise of the common ones: a constant feature says little and not everything.

Private k-means
---------------
Lloyd's steps are taken on noisy sums. The start is the centers of a normal law: the mean and the covariance matrix of
the rows are released, what is noise in its eigenvalues is taken away, and k-means is run, without any data, on fixed
points that have the law which is left. So the centers are as spread as the data are, and along them; where there is
nothing but noise the law is a point, and so is the start: one center. Then come Lloyd's steps. A record is given to the
nearest center, and adds to its count and, clipped, its difference from that center. A center moves by the mean
difference, as far as that is not noise.

Everything is a rule in public numbers and noisy ones. Features are scaled to between -1 and 1. With s the deviation of
the noise of the whole budget in units of one person, d features, k centers and n a noisy count, ``w = s sqrt(d) / n``
(for pure epsilon-DP ``s d / n``) says how weak the data are:

1. n, from 2 % of the budget.
2. The mean, from 8 w of it, between 5 % and a half, moved toward the middle of the bounds as the noise asks for; rows
   are clipped to 0.6 of the longest if w is above 0.03. If w is above 0.15 there is nothing to be found but the mean:
   it gets the whole budget, and all centers are there.
3. A length to clip to (:func:`typical_length`), from 2 %; 0.35 of the longest if n is too small
   for that. The covariance of differences clipped to it, from 30 %.
4. Steps with what is left, shared evenly: ``(n / (8 k s))^2`` of them, between 1 and 6; a tenth of each for the counts.
   They stay on the principal axes with a variance above the noise of a step: others would cost more than they explain.

Which center is nearest is computed for each row by itself (see :mod:`dither.learn.budget`): what one record adds must
not depend on the others, to the last bit.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidArgument
from dither.learn.base import (
    ClassNamePrefixFeaturesOutMixin,
    Limits,
    PrivateClassifier,
    Released,
    TransformerMixin,
    UnsupervisedEstimator,
    centered,
    limits_of,
)
from dither.learn.budget import (
    VECTOR_BITS,
    Floats,
    GaussianBudget,
    exact_sum,
    noisy_ceiling,
    noisy_count,
    noisy_gram,
    noisy_sum,
    project,
    row_norms,
)
from dither.learn.losses import softmax
from dither.neighbors import Neighbors
from dither.randomness import Source

_MIN_KEPT, _NOISE_FACTOR = 0.5, 5.0
_MIN_COUNT_RATIO = 8.0


def group_counts(groups: NDArray[np.int64], size: int, budget: GaussianBudget, share: float | Fraction) -> Floats:
    """Return the noisy number of records in each of ``size`` groups, which may be negative.

    ``groups`` has the index of each record's group; the release takes ``share`` of ``budget``.
    """
    [noisy] = budget.release([(np.bincount(groups, minlength=size), 1)], share, aligned=True)
    return noisy


def group_means(
    rows: Floats,
    groups: NDArray[np.int64],
    counts: Floats,
    norm: float,
    budget: GaussianBudget,
    share: float | Fraction,
) -> tuple[Floats, Floats]:
    """Return the noisy mean of each group's rows, clipped to ``norm``, and the noise of each group's mean.

    The means have one row for each group; the noise is one standard deviation for each group. ``groups`` has the index
    of each row's group and ``counts`` the (noisy) size of each group; the release takes ``share`` of ``budget``.
    """
    sums = [exact_sum(rows[groups == group], norm, budget.order) for group in range(len(counts))]
    [noisy] = budget.release([(np.stack([total for total, _ in sums]), 1 << VECTOR_BITS)], share)
    return noisy / (sums[0][1] * counts[:, np.newaxis]), norm * deviation(budget, share) / counts


def typical_length(
    rows: Floats,
    size: int,
    *,
    longest: float,
    otherwise: float,
    count: float,
    budget: GaussianBudget,
    share: float | Fraction,
) -> float:
    """Choose a length to which rows are clipped before they are summed in ``size`` groups.

    No row of ``rows`` is longer than ``longest``, and there are about ``count`` of them; the choice takes the part
    ``share`` of ``budget``. If there are too few rows for that, the public length ``otherwise`` is returned and
    nothing is spent.

    Otherwise it is about the quantile ``max(1/2, 1 - 5 w)`` of the rows' norms, where w is the noise of a group's mean
    if nothing were clipped: clipping reduces noise, and where there is little noise it is not worth its bias.
    """
    if count < _MIN_COUNT_RATIO * deviation(budget, share, aligned=True):
        return otherwise
    kept_fraction = max(_MIN_KEPT, 1 - _NOISE_FACTOR * longest * deviation(budget, 1) * size / count)
    return noisy_ceiling(row_norms(rows, budget.order), longest, kept_fraction, count, budget, share)


def without_noise(result: Floats, noise: Floats | float) -> Floats:
    """Return noisy rows, or one row, shrunk toward 0 by the share of their squared length that noise explains.

    With s the mean square of a row and ``noise`` the standard deviation of the noise in its entries, the row is
    multiplied by ``max(s - noise^2, 0) / s`` (positive-part James-Stein shrinkage).
    """
    square = (result * result).mean(axis=-1)
    signal_share = np.maximum(square - noise * noise, 0.0) / np.maximum(square, np.finfo(np.float64).tiny)
    return np.asarray(signal_share[..., np.newaxis] * result)


def deviation(budget: GaussianBudget, share: float | Fraction, *, aligned: bool = False) -> float:
    """Return the standard deviation of the noise of a part with sensitivity 1, released for ``share`` of ``budget``.

    That of Laplace noise is ``sqrt(2)`` times its scale.
    """
    return budget.ratio(share, aligned=aligned) * (math.sqrt(2) if budget.pure else 1.0)


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
        """Return the estimator of scikit-learn that fits such a model without privacy."""
        from sklearn import naive_bayes

        return naive_bayes.GaussianNB()

    def _released(self, rows: Floats, limits: Limits, *labels: Any, budget: GaussianBudget) -> Released:
        """Return mean, variance and weight of each class in the units of the data."""
        lower, upper = limits
        half = (upper - lower) / 2
        codes, classes = labels
        known = codes >= 0
        groups = codes[known]
        counts, means, variances = moments(centered(rows[known], limits), groups, len(classes), budget)
        return {
            "theta_": (lower + upper) / 2 + means * half,
            "var_": variances * half * half,
            "class_count_": counts,
            "class_prior_": counts / counts.sum(),
        }

    def _joint(self, X: Any) -> Floats:
        """Return ``ln(prior) + ln(likelihood)`` of each row and class, without terms that all classes share."""
        rows = self._rows(X)
        result = [
            math.log(prior) - 0.5 * (np.log(spread).sum() + ((rows - mean) ** 2 / spread).sum(axis=1))
            for prior, mean, spread in zip(self.class_prior_, self.theta_, self.var_, strict=True)
        ]
        return np.column_stack(result)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, in the order of ``classes_``."""
        return softmax(self._joint(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each row."""
        best = self._joint(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


class GroupMoments(NamedTuple):
    """Noisy moments of groups of rows."""

    counts: Floats
    """The number of rows of each group, at least 1."""
    means: Floats
    """The mean of each feature in each group: a row for each group."""
    variances: Floats
    """The variance of each feature in each group: a row for each group."""


def moments(rows: Floats, groups: NDArray[np.int64], size: int, budget: GaussianBudget) -> GroupMoments:
    """Return count, mean and variance of each of ``size`` groups of rows, for the whole ``budget``.

    ``rows`` have features scaled to between -1 and 1, and ``groups`` is the index of each row's group. The steps and
    their shares are those of the module, under "Gaussian naive Bayes".
    """
    columns = rows.shape[1]
    max_norm = float(columns) if budget.pure else math.sqrt(columns)
    noisy = group_counts(groups, size, budget, _COUNTS_SHARE)
    count = max(float(noisy.sum()), float(size))
    spread = without_noise(noisy - count / size, deviation(budget, _COUNTS_SHARE, aligned=True))
    counts = np.maximum(count / size + spread, 1.0)
    middle = np.clip(noisy_sum(rows, max_norm, budget, _MEAN_SHARE) / count, -1.0, 1.0)

    def group_mean(values: Floats, typical: float, part: Fraction) -> tuple[Floats, Floats]:
        """Return the noisy means of ``values`` in all groups and their noise, for a part of the remaining budget."""
        norm = typical_length(
            values, size, longest=max_norm, otherwise=max_norm * typical, count=count, budget=budget, share=_SIZES_SHARE
        )
        return group_means(values, groups, counts, norm, budget, budget.left * part)

    means, noise = group_mean(rows - middle, _DISTANCE, Fraction(1, 2))
    means = np.clip(middle + without_noise(means, noise), -1.0, 1.0)
    squares, noise = group_mean((rows - means[groups]) ** 2, _SQUARE, Fraction(1))
    shares = counts / counts.sum()
    common, common_noise = shares @ squares, math.sqrt(float(((shares * noise) ** 2).sum()))
    floor = min(max(_MIN_VARIANCE * float(common.max()), common_noise, _MIN_ABSOLUTE_VARIANCE), 1.0)
    common = np.clip(common, floor, 1.0)
    noise /= float(common.mean())
    ratios = np.maximum(squares / common, np.clip(noise, _MIN_VARIANCE, _MIN_RATIO)[:, np.newaxis])
    variances = common * np.exp(without_noise(np.log(ratios), noise))
    return GroupMoments(counts, means, np.clip(variances, floor, 4.0))


_COUNT_SHARE, _LENGTH_SHARE, _GRAM_SHARE = 0.02, 0.02, 0.3
_MEAN, _MEAN_RATE, _MEAN_NORM = (0.05, 0.5), 8.0, 0.6
_LOW_RELATIVE_NOISE, _MAX_RELATIVE_NOISE = 0.03, 0.15
_TYPICAL_MEAN = 0.3  # the mean, from the middle of the bounds
_TYPICAL_LENGTH = 0.35
_COUNTS_FRACTION = Fraction(1, 10)  # of a step
_MAX_STEPS, _COUNT_TO_NOISE = 6, 8.0
_POINTS, _ROUNDS = 1 << 11, 30
_MAX_AXES = 1000


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedEstimator):
    """Centers of k groups of rows: (epsilon, delta)-DP, or epsilon-DP with ``delta=None``.

    *Statement.* A fit is (epsilon, delta)-DP for one record added or removed (or replaced, with
    ``neighbors=ReplaceOne``). *Why.* It sees the data through counts, and sums of clipped rows and their products,
    each with noise out of one :class:`~dither.learn.budget.GaussianBudget`.

    Distances are measured in the units of the bounds: features count alike if their bounds are as wide as they are.
    There are no ``labels_``: which group a record is in follows from the record, by :meth:`predict`.

    Parameters
    ----------
    n_clusters
        The number of centers, k.
    epsilon, delta
        The guarantee of one fit.
    bounds
        Public limits of the features: one pair for all, or one pair for each. Features are clipped to them.
    neighbors
        ``dither.AddRemove``, the number of records being private (the default), or ``dither.ReplaceOne``.
    source
        Randomness; a seeded source is for tests only.

    Examples
    --------
    >>> X = np.repeat([[1.0, 1.0], [9.0, 9.0]], 2000, axis=0)
    >>> model = KMeans(2, epsilon=1, bounds=(0, 10)).fit(X)
    >>> bool(np.abs(np.sort(model.cluster_centers_[:, 0]) - [1, 9]).max() < 0.5)
    True
    >>> model.guarantee_, len(set(model.predict([[0.0, 1.0], [8.0, 9.0]])))
    (ApproxDP(1, 1e-05), 2)
    """

    cluster_centers_: Floats
    n_iter_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        bounds: Any = None,
        neighbors: Neighbors | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(epsilon, delta, bounds=bounds, neighbors=neighbors, source=source)
        self.n_clusters = n_clusters

    def _check_parameters(self) -> None:
        """Refuse a number of clusters that is no whole number below 2^11."""
        if arguments.whole(self.n_clusters, "n_clusters") >= _POINTS:
            raise InvalidArgument("n_clusters", f"fewer than {_POINTS}", self.n_clusters, "pass fewer")

    def _released(self, rows: Floats, limits: Limits, *labels: Any, budget: GaussianBudget) -> Released:
        """Return the centers in the units of the data, and the number of steps."""
        lower, upper = limits
        centers, steps = private_centers(centered(rows, limits), self.n_clusters, budget)
        return {"cluster_centers_": (lower + upper) / 2 + centers * (upper - lower) / 2, "n_iter_": steps}

    def _scaled(self, X: Any) -> tuple[Floats, Floats]:
        """Return the rows, not clipped, and the centers, both scaled so that the bounds become -1 and 1."""
        rows = self._new_rows(X)
        limits = limits_of(self.bounds, self.n_features_in_)
        return centered(rows, limits), centered(self.cluster_centers_, limits)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the nearest center of each row."""
        return np.asarray(squared_distances(*self._scaled(X)).argmin(axis=1))

    def fit_predict(self, X: Any, y: Any = None) -> NDArray[np.int64]:
        """Return ``fit(X).predict(X)``: it is about single records, and not private."""
        return self.fit(X).predict(X)

    def transform(self, X: Any) -> Floats:
        """Return the distance of each row from each center, with features scaled so that the bounds are -1 and 1."""
        return np.asarray(np.sqrt(squared_distances(*self._scaled(X))))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the sum of the squared distances of the rows from their nearest centers, negative; not private."""
        return -float(squared_distances(*self._scaled(X)).min(axis=1).sum())

    @property
    def _n_features_out(self) -> int:
        """Return the number of output columns, which scikit-learn names by the class: see ``get_feature_names_out``."""
        return int(self.cluster_centers_.shape[0])

    def non_private_estimator(self) -> Any:
        """Return the estimator of scikit-learn that fits such a model without privacy."""
        from sklearn import cluster
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        units = FunctionTransformer(lambda X: centered(X, limits_of(self.bounds, X.shape[1])))
        return make_pipeline(units, cluster.KMeans(self.n_clusters, n_init=10))


def squared_distances(rows: Floats, centers: Floats) -> Floats:
    """Return the squared distance of every row from every center, as a matrix with a row for each row.

    Each row is computed by itself, so that no record affects another's rounding.
    """
    result = np.zeros((len(rows), len(centers)))
    for column in range(rows.shape[1]):
        difference = rows[:, column, np.newaxis] - centers[:, column]
        result += difference * difference
    return result


def private_centers(points_in_cube: Floats, size: int, budget: GaussianBudget) -> tuple[Floats, int]:
    """Return ``size`` centers of clusters, and the number of Lloyd's steps taken, for the whole ``budget``.

    ``points_in_cube`` are the rows, with features scaled to between -1 and 1. Count, mean, clipping norm and covariance
    are released first, with the shares of the module ("Private k-means"). Rows are projected on the principal axes
    above the noise, centers start from a normal law with these variances, and Lloyd's steps use what is left. Where the
    noise is larger than the data's spread, all centers are the noisy mean and there are 0 steps.
    """
    columns = points_in_cube.shape[1]
    max_norm = float(columns) if budget.pure else math.sqrt(columns)
    count = noisy_count(points_in_cube, budget, _COUNT_SHARE)
    relative_noise = max_norm * deviation(budget, 1) / count
    middle = _mean(points_in_cube, max_norm, count, relative_noise, budget)
    if relative_noise > _MAX_RELATIVE_NOISE:
        return np.tile(middle, (size, 1)), 0
    centered_rows = points_in_cube - middle
    norm = typical_length(
        centered_rows,
        size,
        longest=max_norm,
        otherwise=max_norm * _TYPICAL_LENGTH,
        count=count,
        budget=budget,
        share=_LENGTH_SHARE,
    )
    variances, axes = _principal(centered_rows, norm, count, budget)
    steps = max(1, min(_MAX_STEPS, int((count / (_COUNT_TO_NOISE * size * deviation(budget, budget.left))) ** 2)))
    share = budget.left / steps
    noise = norm * deviation(budget, share) * size / count
    axis_count = min(max(1, int((variances > noise * noise).sum())), _MAX_AXES)
    variances, axes = variances[:axis_count], axes[:, :axis_count]
    rows = project(centered_rows, axes, 2.0)
    centers = _normal_centers(variances, size)
    for _ in range(steps):
        centers = _moved(rows, centers, norm, share, budget)
    return np.clip(middle + centers @ axes.T, -1.0, 1.0), steps


def _mean(
    points_in_cube: Floats, longest: float, count: float, relative_noise: float, budget: GaussianBudget
) -> Floats:
    """Return the noisy mean row, shrunk toward 0 by the share that noise explains.

    ``points_in_cube`` are the rows, ``longest`` is their largest norm, ``count`` a noisy number of rows, and
    ``relative_noise`` is w of the module: noise of the whole ``budget`` over the count. The weaker the data, the more
    rows are clipped and the larger is the share of the budget; if nothing but the mean can be found it gets all. The
    mean is usually some 0.3 from 0, which is the prior standard deviation of the shrinkage.
    """
    share = (
        budget.left
        if relative_noise > _MAX_RELATIVE_NOISE
        else min(_MEAN[1], max(_MEAN[0], _MEAN_RATE * relative_noise))
    )
    norm = longest * (1.0 if relative_noise < _LOW_RELATIVE_NOISE else _MEAN_NORM)
    result, noise = noisy_sum(points_in_cube, norm, budget, share) / count, norm * deviation(budget, share) / count
    known = _TYPICAL_MEAN * _TYPICAL_MEAN / (_TYPICAL_MEAN * _TYPICAL_MEAN + noise * noise)
    return np.asarray(np.clip(known * without_noise(result, noise), -1.0, 1.0))


def _principal(rows: Floats, norm: float, count: float, budget: GaussianBudget) -> tuple[Floats, Floats]:
    """Return the variances along the principal axes, falling and corrected for noise, and the axes as columns.

    ``rows`` are centered and clipped to ``norm``, ``count`` is a noisy number of them, and the noisy Gram matrix takes
    a fixed share of ``budget``. From each eigenvalue the largest that noise alone would have is subtracted.
    """
    matrix = noisy_gram(rows, norm, budget, _GRAM_SHARE) / count
    noise = norm * norm * deviation(budget, _GRAM_SHARE, aligned=True) / count
    values, vectors = np.linalg.eigh(matrix)
    # the largest eigenvalue of such noise: sqrt(2 d) deviations of an entry of its diagonal
    return np.maximum(values[::-1] - noise * math.sqrt(2 * rows.shape[1]), 0.0), vectors[:, ::-1]


def _normal_centers(variances: Floats, size: int) -> Floats:
    """Return ``size`` centers found by k-means on fixed points of a normal law with these variances, without data.

    The points are normal quantiles of a Sobol sequence; the centers are sorted.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    # the first point of the sequence is 0, where the normal law has no quantile
    probabilities = qmc.Sobol(len(variances), scramble=False).random(_POINTS)[1:]
    points = ndtri(probabilities) * np.sqrt(variances)
    centers = points[:size]
    for _ in range(_ROUNDS):
        nearest = squared_distances(points, centers).argmin(axis=1)
        counts = np.bincount(nearest, minlength=size)[:, np.newaxis]
        sums = np.column_stack([np.bincount(nearest, column, size) for column in points.T])
        centers = np.where(counts > 0, sums / np.maximum(counts, 1), centers)
    return np.asarray(centers[np.lexsort(centers.T[::-1])])


def _moved(rows: Floats, centers: Floats, norm: float, share: Fraction, budget: GaussianBudget) -> Floats:
    """Move each of ``centers`` by the noisy mean difference of its nearest records: one of Lloyd's steps.

    Differences are clipped to ``norm`` and the step takes the part ``share`` of ``budget``, a tenth of it for the
    counts; the move is shrunk by the share that noise explains.
    """
    nearest = squared_distances(rows, centers).argmin(axis=1)
    first = share * _COUNTS_FRACTION
    counts = np.maximum(group_counts(nearest, len(centers), budget, first), deviation(budget, share))
    step, noise = group_means(rows - centers[nearest], nearest, counts, norm, budget, share - first)
    return centers + without_noise(step, noise)
