"""Stochastic gradient descent: each step uses a batch only. Not private; see :mod:`dither.learn.descent`.

*Online*: the rows are cut into disjoint batches, each used once. *Offline*: every step draws a new batch at random.

>>> from dither.learn.losses import Squared
>>> x = np.linspace(0, 2, 200)
>>> trace = online(Squared(), np.ones((200, 1)), x, start=0.0, batch=1, schedule=Schedule(0.1, rho=0.5))
>>> trace.iterates.shape
(201, 1)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dither import arguments
from dither.errors import InvalidArgument
from dither.learn.gd import Schedule, Trace, check_step_sizes, descend, utility_bound
from dither.learn.losses import Floats, Loss
from dither.randomness import Source, resolve, uniform_integers


def online(loss: Loss, X: Floats, y: Floats, *, start: ArrayLike, batch: int, schedule: Schedule) -> Trace:
    """One pass: step h uses rows h b, ..., (h + 1) b - 1 and no other; rows that do not fill a batch are left out.

    >>> from dither.learn.losses import Squared
    >>> online(Squared(), np.ones((4, 1)), np.arange(4.0), start=0.0, batch=2, schedule=Schedule(0.5)).iterates.ravel()
    array([0. , 0.5, 2.5])
    """
    size = _batch(batch, len(X))

    def gradient(beta: Floats, h: int) -> Floats:
        rows = slice(h * size, (h + 1) * size)
        return loss.gradient(beta, X[rows], y[rows])

    return descend(gradient, start=start, steps=len(X) // size, schedule=schedule)


def offline(
    loss: Loss,
    X: Floats,
    y: Floats,
    *,
    start: ArrayLike,
    steps: int,
    schedule: Schedule,
    batch: int = 1,
    source: Source | None = None,
) -> Trace:
    """Many passes: every step draws ``batch`` different rows at random.

    >>> from dither.learn.losses import Squared
    >>> offline(Squared(), np.ones((4, 1)), np.ones(4), start=0.0, steps=3, schedule=Schedule(0.5)).last
    array([1.])
    """
    size, words = _batch(batch, len(X)), resolve(source)

    def gradient(beta: Floats, _: int) -> Floats:
        rows = draw_rows(len(X), size, words)
        return loss.gradient(beta, X[rows], y[rows])

    return descend(gradient, start=start, steps=steps, schedule=schedule)


def draw_rows(count: int, size: int, source: Source) -> NDArray[np.int64]:
    """``size`` different indices below ``count``, every set of them with the same probability.

    >>> sorted(draw_rows(3, 3, resolve(None)).tolist())
    [0, 1, 2]
    """
    if 2 * size > count:  # the first of a random order, by random keys
        keys = uniform_integers(1 << 64, count, source)
        while np.unique(keys).size < count:
            keys = uniform_integers(1 << 64, count, source)
        return np.asarray(np.argsort(keys)[:size], dtype=np.int64)
    chosen = uniform_integers(count, size, source).astype(np.int64)
    while np.unique(chosen).size < size:
        distinct = np.unique(chosen)
        chosen = np.concatenate([distinct, uniform_integers(count, size - distinct.size, source).astype(np.int64)])
    return chosen


def gradient_variance(loss: Loss, X: Floats, y: Floats, best: Floats) -> float:
    """The mean over the rows of the squared length of their gradients at the minimum: what keeps SGD from settling.

    >>> from dither.learn.losses import Squared
    >>> gradient_variance(Squared(), np.ones((2, 1)), np.array([0.0, 2.0]), np.array([1.0]))
    4.0
    """
    residuals = loss.residual(X @ best, y)
    flattened = residuals.reshape(len(X), -1)
    shrunk = loss.shrinkage(best)
    data = (flattened**2).sum(axis=1) * (X**2).sum(axis=1)
    # |g + s|^2 = |g|^2 + 2 <g, s> + |s|^2, and the mean of the g is -s at the minimum
    cross_term = 2 * float(np.sum((X.T @ residuals / len(X)) * shrunk))
    return float(data.mean()) + cross_term + float(np.sum(shrunk**2))


def stochastic_bound(
    distance_squared: float, steps: Floats, smoothness: float, variance: float, *, noise: Floats | None = None
) -> Floats:
    """``D^2 / sum gamma + C sum gamma^2 / sum gamma``: a bound on the mean of ``f(average) - f*``.

    Batches are of one row.

    *Statement.* It holds with ``C = 2 variance`` (:func:`gradient_variance`) if the loss of every row is convex, its
    gradient has the Lipschitz constant L = ``smoothness`` (``loss.smoothness(X, single=True)``), and every step is at
    most 1 / (4L); other steps are refused. *Why.* ``E |g(b)|^2 <= 2 E |g(b) - g(b*)|^2 + 2 variance <= 4L (f(b) - f*)
    + 2 variance``, so a step brings the mean of ``|b - b*|^2`` down by ``(2 gamma - 4L gamma^2) (f(b) - f*)``, at
    least ``gamma (f(b) - f*)``, less ``2 variance gamma^2``.

    With ``noise``, the root of the mean squared length of independent noise in each step, its square adds to the
    variance.

    >>> float(stochastic_bound(1.0, np.full(100, 0.125), 2.0, 1.0)[-1])
    0.33
    """
    check_step_sizes(steps, 1 / (4 * smoothness))
    return utility_bound(distance_squared, steps, constant=2 * variance, noise=noise, per_noise=1.0)


def _batch(batch: int, count: int) -> int:
    size = arguments.whole(batch, "batch")
    if size > count:
        raise InvalidArgument("batch", "at most the number of rows", size, "pass a smaller batch")
    return size
