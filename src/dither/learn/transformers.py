"""Principal components from a noisy covariance matrix, and features standardized by private moments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument
from dither.learn.base import (
    ClassNamePrefixFeaturesOutMixin,
    Limits,
    OneToOneFeatureMixin,
    Released,
    TransformerMixin,
    UnsupervisedEstimator,
    centered,
    check_is_fitted,
)
from dither.learn.budget import (
    Floats,
    GaussianBudget,
    noisy_ceiling,
    noisy_count,
    noisy_gram,
    noisy_moments,
    noisy_sum,
    row_norms,
)
from dither.learn.inputs import filled, table
from dither.neighbors import Neighbors
from dither.randomness import Source

_COUNT_SHARE, _MEAN_SHARE, _SIZES_SHARE = 0.02, 0.1, 0.02
_KEPT_FRACTION = 0.5


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedEstimator):
    """Principal components by Analyze Gauss (Dwork, Talwar, Thakurta and Zhang 2014), (epsilon, delta)-DP.

    The mean is released first and taken away, so that rows are short; they are clipped to about their median length,
    found in a noisy histogram, which keeps their directions and saves noise; then the sum of their outer products gets
    symmetric normal noise. The components are the eigenvectors of what was released, and cost nothing more, however
    many are kept. Variances are those of the clipped rows, and so too small.

    Parameters
    ----------
    n_components
        How many to keep; all if None.
    epsilon, delta, bounds, neighbors, source
        As for every estimator, see :class:`~dither.learn.KMeans`; a delta is required.

    Examples
    --------
    >>> X = np.outer(np.linspace(-1, 1, 5000), [0.6, 0.8])
    >>> pca = PCA(n_components=1, epsilon=1, bounds=(-1, 1)).fit(X)
    >>> bool(abs(abs(pca.components_[0] @ [0.6, 0.8]) - 1) < 0.05)
    True
    """

    components_: Floats
    mean_: Floats
    explained_variance_: Floats
    explained_variance_ratio_: Floats

    _needs_delta = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        bounds: Any = None,
        neighbors: Neighbors | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(epsilon, delta, bounds=bounds, neighbors=neighbors, source=source)
        self.n_components = n_components

    def _check_parameters(self) -> None:
        """Refuse a number of components that is no positive whole number."""
        if self.n_components is not None:
            arguments.whole(self.n_components, "n_components")

    def _check_columns(self, columns: int) -> None:
        """Refuse more components than features."""
        if self.n_components is not None and self.n_components > columns:
            raise InvalidArgument("n_components", f"at most the {columns} feature(s)", self.n_components, "pass fewer")

    def _released(self, rows: Floats, limits: Limits, *labels: Any, budget: GaussianBudget) -> Released:
        """Return the mean, the components and their variances, from a noisy covariance matrix.

        The sign of a component is chosen so that its largest coordinate is positive.
        """
        lower, upper = limits
        columns = rows.shape[1]
        max_norm = math.sqrt(float(np.sum((upper - lower) ** 2))) / 2
        centered_rows = rows - (lower + upper) / 2
        count = noisy_count(rows, budget, _COUNT_SHARE)
        mean = noisy_sum(centered_rows, max_norm, budget, _MEAN_SHARE) / count
        mean = np.clip(mean, (lower - upper) / 2, (upper - lower) / 2)
        centered_rows -= mean
        norm = noisy_ceiling(
            row_norms(centered_rows), 2 * max_norm, _KEPT_FRACTION, count, budget, _SIZES_SHARE
        ) / math.sqrt(2)
        matrix = noisy_gram(centered_rows, norm, budget, budget.left) / count
        values, vectors = np.linalg.eigh(matrix)
        component_count = columns if self.n_components is None else self.n_components
        values, components = np.maximum(values[::-1], 0.0), vectors[:, ::-1].T[:component_count]
        largest = components[np.arange(component_count), np.abs(components).argmax(axis=1)]
        total = max(float(values.sum()), np.finfo(float).tiny)
        return {
            "components_": components * np.where(largest < 0, -1.0, 1.0)[:, np.newaxis],
            "mean_": mean + (lower + upper) / 2,
            "explained_variance_": values[:component_count],
            "explained_variance_ratio_": values[:component_count] / total,
            "n_components_": component_count,
        }

    def transform(self, X: Any) -> Floats:
        """Return the coordinates of the rows, not clipped, along the components: ``(X - mean_) components_'``."""
        return np.asarray((self._new_rows(X) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Return the rows with these coordinates along the components: ``X components_ + mean_``."""
        return np.asarray(filled(table(X, len(self.components_)), 0.0) @ self.components_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        """Return the number of output columns, which scikit-learn names by the class: see ``get_feature_names_out``."""
        return int(self.components_.shape[0])

    def non_private_estimator(self) -> Any:
        """Return the estimator of scikit-learn that fits such a model without privacy."""
        from sklearn import decomposition

        return decomposition.PCA(self.n_components)


_COUNT = 0.2


class StandardScaler(OneToOneFeatureMixin, TransformerMixin, UnsupervisedEstimator):
    """Take away the mean of each feature and divide by its deviation: (epsilon, delta)-DP, or epsilon-DP with
    ``delta=None``.

    Mean and mean square of all features are released together (:func:`~dither.learn.budget.noisy_moments`). A variance
    below the noise is raised to it, so a constant feature becomes small and not large.

    Parameters
    ----------
    epsilon, delta
        The guarantee of one fit.
    bounds
        Public limits of the features: one pair for all, or one pair for each. Features are clipped to them.
    with_mean, with_std
        Whether to take away the mean, and to divide by the deviation; both are released anyway.
    neighbors
        ``dither.AddRemove``, the number of records being private (the default), or ``dither.ReplaceOne``.
    source
        Randomness; a seeded source is for tests only.

    Examples
    --------
    >>> X = np.linspace(0, 10, 5000)[:, np.newaxis]
    >>> scaler = StandardScaler(epsilon=1, bounds=(0, 10)).fit(X)
    >>> bool(abs(scaler.mean_[0] - 5) < 0.5), scaler.transform(X).shape
    (True, (5000, 1))
    """

    mean_: Floats
    var_: Floats
    scale_: Floats

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        *,
        bounds: Any = None,
        with_mean: bool = True,
        with_std: bool = True,
        neighbors: Neighbors | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(epsilon, delta, bounds=bounds, neighbors=neighbors, source=source)
        self.with_mean = with_mean
        self.with_std = with_std

    def _released(self, rows: Floats, limits: Limits, *labels: Any, budget: GaussianBudget) -> Released:
        """Return mean, variance and scale of each feature, in the units of the data."""
        lower, upper = limits
        half = (upper - lower) / 2
        count = noisy_count(rows, budget, _COUNT)
        mean, square, noise = noisy_moments(centered(rows, limits), count, budget, budget.left)
        mean = np.clip(mean, -1.0, 1.0)
        variance = np.clip(square - mean * mean, min(noise, 1.0), 1.0)
        return {
            "mean_": (lower + upper) / 2 + mean * half,
            "var_": variance * half * half,
            "scale_": np.sqrt(variance) * half,
        }

    def transform(self, X: Any) -> Floats:
        """Return the rows, not clipped, in deviations from the mean."""
        shift, scale = self._map()
        return np.asarray((self._new_rows(X) - shift) / scale)

    def inverse_transform(self, X: Any) -> Floats:
        """Return rows in their original units."""
        shift, scale = self._map()
        return np.asarray(self._new_rows(X) * scale + shift)

    def _map(self) -> tuple[Floats | float, Floats | float]:
        """Return ``(shift, scale)``: what is subtracted from each feature, and by what the difference is divided."""
        check_is_fitted(self)
        return self.mean_ if self.with_mean else 0.0, self.scale_ if self.with_std else 1.0

    def non_private_estimator(self) -> Any:
        """Return the estimator of scikit-learn that fits such a model without privacy."""
        from sklearn import preprocessing

        return preprocessing.StandardScaler()
