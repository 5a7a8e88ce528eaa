"""Standardizing features by private means and variances."""

from __future__ import annotations

from typing import Any

import numpy as np

from dither.learn.base import Released, UnsupervisedEstimator, centered, limits_of
from dither.learn.budget import Floats, GaussianBudget, noisy_count, noisy_moments
from dither.learn.sklearn_base import TransformerMixin, check_is_fitted
from dither.neighbors import Neighbors
from dither.randomness import Source

_COUNT = 0.2


class StandardScaler(TransformerMixin, UnsupervisedEstimator):
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

    def _released(self, rows: Floats, *labels: Any, budget: GaussianBudget) -> Released:
        lower, upper = limits_of(self.bounds, rows.shape[1])
        half = (upper - lower) / 2
        count = noisy_count(rows, budget, _COUNT)
        mean, square, noise = noisy_moments(centered(rows, (lower, upper)), count, budget, budget.left)
        mean = np.clip(mean, -1.0, 1.0)
        variance = np.clip(square - mean * mean, min(noise, 1.0), 1.0)
        return {
            "mean_": (lower + upper) / 2 + mean * half,
            "var_": variance * half * half,
            "scale_": np.sqrt(variance) * half,
        }

    def transform(self, X: Any) -> Floats:
        """Rows, not clipped, in deviations from the mean."""
        shift, scale = self._map()
        return np.asarray((self._new_rows(X) - shift) / scale)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows in their own units again."""
        shift, scale = self._map()
        return np.asarray(self._new_rows(X) * scale + shift)

    def _map(self) -> tuple[Floats | float, Floats | float]:
        check_is_fitted(self)
        return self.mean_ if self.with_mean else 0.0, self.scale_ if self.with_std else 1.0

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the features, as they went in."""
        from sklearn.utils.validation import _check_feature_names_in

        return _check_feature_names_in(self, input_features)

    def non_private_estimator(self) -> Any:
        """The estimator of scikit-learn that does the same without privacy."""
        from sklearn import preprocessing

        return preprocessing.StandardScaler()
