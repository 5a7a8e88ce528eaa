"""Losses of linear models, with the gradient of every example as two factors.

A linear model scores a row x by ``x' beta``: one number, or one for each of k classes. So the gradient of one example's
loss is an outer product, *row times residual*, where the residual is the derivative by the score. Norms of all n
gradients, and the sum of all clipped ones, then cost two matrix products: the n x d x k array of gradients is never
made.

A ``penalty`` adds ``penalty/2 |beta|^2`` to the mean loss, without the first ``free`` coordinates (an intercept).

>>> X, y = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0, 4.0])
>>> loss = Squared(weight=1 / 2)
>>> loss.gradient(np.zeros(2), X, y)
array([-2.33333333, -3.33333333])
>>> loss.minimum(X, y)
array([0.83333333, 1.5       ])
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidArgument
from dither.learn.budget import row_sums

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Loss:
    """Base of the losses: a function ``value`` of score and target, its derivative ``residual`` by the score, and
    ``curvature``, a bound on the second derivative.

    >>> Logistic(penalty=0.1).penalty
    0.1
    """

    penalty: float = 0.0
    free: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.penalty) and self.penalty >= 0):
            raise InvalidArgument("penalty", "a number from 0 on", self.penalty, "pass penalty=0")
        arguments.whole(self.free, "free", at_least=0)

    @property
    def curvature(self) -> float:
        """Return the largest second derivative by the score; for several scores, the largest eigenvalue."""
        raise AssertionError("each loss knows its curvature")

    def value(self, scores: Floats, y: Floats) -> Floats:
        """Return the loss of each example."""
        raise AssertionError("each loss has a value")

    def residual(self, scores: Floats, y: Floats) -> Floats:
        """Return the derivative of the loss of each example by its score or scores."""
        raise AssertionError("each loss has a derivative")

    def objective(self, beta: Floats, X: Floats, y: Floats) -> float:
        """Return the mean loss plus the penalty: the f that is minimized."""
        return float(self.value(X @ beta, y).mean()) + self.penalty / 2 * float(np.sum(beta[self.free :] ** 2))

    def shrinkage(self, beta: Floats) -> Floats:
        """Return the gradient of the penalty: ``penalty beta``, and 0 for the first ``free`` coordinates."""
        out = self.penalty * beta
        out[: self.free] = 0
        return out

    def gradient(self, beta: Floats, X: Floats, y: Floats) -> Floats:
        """Return the gradient of :meth:`objective`: ``X' residual / n`` plus that of the penalty."""
        return np.asarray(X.T @ self.residual(X @ beta, y) / len(X) + self.shrinkage(beta))

    def smoothness(self, X: Floats, *, single: bool = False) -> float:
        """Return a Lipschitz constant of the gradient of the objective; of the loss of any one example if ``single``.

        It is ``curvature |X|^2 / n + penalty`` with the spectral norm of X, and for one example the curvature times the
        largest squared length of a row, plus the penalty.

        >>> Squared().smoothness(np.ones((4, 1)))
        2.0
        """
        largest = float((X**2).sum(axis=1).max()) if single else float(np.linalg.norm(X, 2)) ** 2 / len(X)
        return self.curvature * largest + self.penalty


@dataclass(frozen=True)
class Squared(Loss):
    """``weight (score - y)^2``: with a column of ones the sample mean (weight 1), ordinary least squares, and with a
    penalty, weight 1/2 and one free coordinate ridge regression.

    >>> x = np.array([1.0, 2.0, 6.0])
    >>> Squared().minimum(np.ones((3, 1)), x)
    array([3.])
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.positive(self.weight, "weight")

    @property
    def curvature(self) -> float:
        """Return twice the weight."""
        return 2 * self.weight

    def value(self, scores: Floats, y: Floats) -> Floats:
        """Return ``weight (score - y)^2``."""
        return np.asarray(self.weight * (scores - y) ** 2)

    def residual(self, scores: Floats, y: Floats) -> Floats:
        """Return ``2 weight (score - y)``."""
        return 2 * self.weight * (scores - y)

    def minimum(self, X: Floats, y: Floats) -> Floats:
        """Return the minimizer, from the normal equations; the shortest one if there are many."""
        gram = 2 * self.weight * X.T @ X / len(X)
        ridge = np.full(X.shape[1], self.penalty)
        ridge[: self.free] = 0
        result = np.linalg.lstsq(gram + np.diag(ridge), 2 * self.weight * X.T @ y / len(X), rcond=None)[0]
        return np.asarray(result, dtype=np.float64)


def ridge_line(v: Floats, u: Floats, penalty: float) -> tuple[float, float]:
    """Return the ridge line ``u = b0 + b1 v``: ``b1 = cov(u, v) / (var(v) + penalty)`` and ``b0 = mean(u) - b1
    mean(v)``, with 1/n in covariance and variance.

    It minimizes ``1/(2n) sum (u - b0 - b1 v)^2 + penalty/2 b1^2``.

    >>> ridge_line(np.array([-1.0, 1.0]), np.array([1.0, 5.0]), penalty=1.0)
    (3.0, 1.0)
    """
    centered = v - v.mean()
    slope = float(centered @ (u - u.mean()) / len(v)) / (float(centered @ centered) / len(v) + penalty)
    return float(u.mean()) - slope * float(v.mean()), slope


def _sigmoid(scores: Floats) -> Floats:
    """Return ``1 / (1 + exp(-score))``, without overflow."""
    small = np.exp(-np.abs(scores))
    return np.asarray(np.where(scores >= 0, 1.0, small) / (1 + small))


@dataclass(frozen=True)
class Logistic(Loss):
    """``ln(1 + exp(score)) - y score`` for y in {0, 1}.

    >>> Logistic().residual(np.array([0.0, 0.0]), np.array([0.0, 1.0]))
    array([ 0.5, -0.5])
    """

    @property
    def curvature(self) -> float:
        """Return 1/4, attained at score 0."""
        return 0.25

    def value(self, scores: Floats, y: Floats) -> Floats:
        """Return ``ln(1 + exp(score)) - y score``, the negative logarithm of the probability of y."""
        return np.asarray(np.logaddexp(0, scores) - y * scores)

    def residual(self, scores: Floats, y: Floats) -> Floats:
        """Return ``1 / (1 + exp(-score)) - y``, the predicted probability of 1 less y."""
        return _sigmoid(scores) - y


def softmax(scores: Floats) -> Floats:
    """Return ``exp(score) / sum exp(score)``: the probabilities of the classes, a row for each example."""
    out = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(out / row_sums(out)[:, np.newaxis])


@dataclass(frozen=True)
class Multinomial(Loss):
    """The negative logarithm of the probability of the class, ``softmax(scores)[y]``; y is one row for each example,
    1 for its class and 0 elsewhere.

    >>> Multinomial().residual(np.zeros((1, 2)), np.array([[1.0, 0.0]]))
    array([[-0.5,  0.5]])
    """

    @property
    def curvature(self) -> float:
        """Return 1/2, which the largest eigenvalue of ``diag(p) - p p'`` does not exceed."""
        return 0.5

    def value(self, scores: Floats, y: Floats) -> Floats:
        """Return ``-ln softmax(scores)[y]`` of each example; 0 for a row of zeros in y, which has no class."""
        high = scores.max(axis=1, keepdims=True)
        shifted = scores - high
        return np.asarray(np.log(np.exp(shifted).sum(axis=1)) * y.sum(axis=1) - (shifted * y).sum(axis=1))

    def residual(self, scores: Floats, y: Floats) -> Floats:
        """Return probabilities minus y; a row of zeros in y (no class) has no gradient."""
        return np.asarray(softmax(scores) * y.sum(axis=1, keepdims=True) - y)


@dataclass(frozen=True)
class _Bent(Loss):
    """A loss that bends over a stretch of this width, and is a line beyond."""

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.positive(self.width, "width")


@dataclass(frozen=True)
class SmoothHinge(_Bent):
    """The hinge ``max(0, 1 - m)`` of the margin ``m = (2y - 1) score``, y in {0, 1}, rounded off by a parabola over
    ``1 - width < m < 1`` so that it has a derivative everywhere.

    >>> SmoothHinge().residual(np.array([-3.0, 0.5]), np.ones(2))
    array([-1. , -0.5])
    """

    @property
    def curvature(self) -> float:
        """Return 1/width, the curvature of the parabola."""
        return 1 / self.width

    def value(self, scores: Floats, y: Floats) -> Floats:
        """Return the loss: 0 for a margin from 1 on, ``(1 - m)^2 / (2 width)`` down to ``1 - width``, then a line."""
        short = 1 - (2 * y - 1) * scores
        clipped = np.clip(short, 0, self.width)
        return clipped**2 / (2 * self.width) + np.maximum(short - self.width, 0)

    def residual(self, scores: Floats, y: Floats) -> Floats:
        """Return the derivative by the score, between -1 and 1."""
        sign = 2 * y - 1
        return -sign * np.clip((1 - sign * scores) / self.width, 0, 1)


@dataclass(frozen=True)
class Huber(_Bent):
    """``(score - y)^2 / 2`` where that is at most ``width`` off, a line beyond: one far target moves little.

    >>> Huber(width=1.0).residual(np.array([0.0, 0.0]), np.array([0.5, 9.0]))
    array([-0.5, -1. ])
    """

    @property
    def curvature(self) -> float:
        """Return 1, the curvature near the target."""
        return 1.0

    def value(self, scores: Floats, y: Floats) -> Floats:
        """Return ``r^2 / 2`` for an error r of at most ``width``, and ``width (r - width / 2)`` beyond."""
        residuals = np.abs(scores - y)
        return np.where(residuals <= self.width, residuals**2 / 2, self.width * (residuals - self.width / 2))

    def residual(self, scores: Floats, y: Floats) -> Floats:
        """Return ``score - y``, clipped to ``width``."""
        return np.clip(scores - y, -self.width, self.width)
