"""Learning under differential privacy: estimators with scikit-learn's interface, and gradient descent.

* Estimators: :class:`Mean`, :class:`LinearRegression`, :class:`Ridge`, :class:`LogisticRegression`,
  :class:`GaussianNB`, :class:`KMeans`, :class:`PCA`, :class:`StandardScaler`. Bounds are public and required; a fit
  states its ``guarantee_`` and charges an open ledger scope once. :class:`NonPrivate` is the baseline of any of them.
* :func:`select_model`: choose among fitted models on private records. :func:`compare`: what privacy costs in score.
* Descent: :func:`gradient_descent`, :func:`online_sgd` and :func:`offline_sgd`, not private, with their bounds;
  :func:`noisy_descent`, private.

>>> import numpy as np
>>> X = np.linspace(0, 10, 4000)[:, np.newaxis]
>>> Ridge(epsilon=1, bounds=(0, 10), label_bounds=(0, 30)).fit(X, 2 * X[:, 0] + 5).guarantee_
ApproxDP(1, 1e-05)
"""

from __future__ import annotations

from dither.learn.base import NonPrivate, PrivacyWarning, total_spent
from dither.learn.descent import NoisyDescent, noise_for, noisy_descent
from dither.learn.gd import (
    Schedule,
    Trace,
    descend,
    descent_bound,
    gradient_descent,
    gradient_variance,
    stochastic_bound,
    utility_bound,
)
from dither.learn.gd import offline as offline_sgd
from dither.learn.gd import online as online_sgd
from dither.learn.groups import GaussianNB, KMeans
from dither.learn.linear import LinearRegression, Mean, Ridge
from dither.learn.logistic import LogisticRegression
from dither.learn.losses import Huber, Logistic, Loss, Multinomial, SmoothHinge, Squared, ridge_line
from dither.learn.selection import Choice, Comparison, compare, select_model
from dither.learn.transformers import PCA, StandardScaler
from dither.public_module import name_by_home as _name_by_home

__all__ = [
    "PCA",
    "Choice",
    "Comparison",
    "GaussianNB",
    "Huber",
    "KMeans",
    "LinearRegression",
    "Logistic",
    "LogisticRegression",
    "Loss",
    "Mean",
    "Multinomial",
    "NoisyDescent",
    "NonPrivate",
    "PrivacyWarning",
    "Ridge",
    "Schedule",
    "SmoothHinge",
    "Squared",
    "StandardScaler",
    "Trace",
    "compare",
    "descend",
    "descent_bound",
    "gradient_descent",
    "gradient_variance",
    "noise_for",
    "noisy_descent",
    "offline_sgd",
    "online_sgd",
    "ridge_line",
    "select_model",
    "stochastic_bound",
    "total_spent",
    "utility_bound",
]

__dir__ = _name_by_home(__name__, __all__, globals())
