"""Gradient descent, the trace of its iterates, and bounds on its error.

``beta[h+1] = beta[h] - gamma[h] g[h](beta[h])`` for h = 0, ..., N-1 is the whole algorithm: plain descent, stochastic
descent and the private ones differ in the g only. Nothing in this file is private; :mod:`dither.learn.descent` is. A
step of stochastic descent uses a batch only. *Online*: the rows are cut into disjoint batches, each used once.
*Offline*: every step draws a new batch at random.

>>> trace = descend(lambda beta, h: beta, start=1.0, steps=20, schedule=Schedule(0.5))   # f(x) = x^2 / 2
>>> trace.last
array([9.53674316e-07])
>>> bool(trace.average[0] ** 2 / 2 <= descent_bound(1.0, trace.steps, smoothness=1.0)[-1])
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dither import arguments
from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument, InvalidData
from dither.learn import inputs
from dither.learn.losses import Floats, Loss
from dither.randomness import Source, resolve, uniform_integers

Gradient = Callable[[Floats, int], Floats]


@dataclass(frozen=True)
class Schedule:
    """Step sizes ``gamma[h] = first (1 + skip + h)^-rho``; constant for rho = 0.

    ``skip`` leaves out the first sizes.

    >>> Schedule(0.1, rho=0.5).steps(4)
    array([0.1       , 0.07071068, 0.05773503, 0.05      ])
    >>> Schedule(0.1, rho=0.5, skip=1).steps(3)
    array([0.07071068, 0.05773503, 0.05      ])
    """

    first: float = 1.0
    rho: float = 0.0
    skip: int = 0

    def __post_init__(self) -> None:
        arguments.positive(self.first, "first")
        arguments.whole(self.skip, "skip", 0)
        if not 0 <= self.rho <= 1:
            raise InvalidArgument("rho", "a number from 0 to 1", self.rho, "pass rho=0.5")

    def steps(self, count: int) -> Floats:
        """Return the first ``count`` step sizes."""
        return np.asarray(self.first * (1.0 + self.skip + np.arange(count)) ** -self.rho)


@dataclass(frozen=True, eq=False)
class Trace(ComparedByValue):
    """What a descent went through: ``iterates`` beta[0], ..., beta[N] and ``steps`` gamma[0], ..., gamma[N-1].

    >>> Trace(np.array([[1.0], [0.5], [0.25]]), np.array([1.0, 3.0])).average
    array([0.625])
    """

    iterates: Floats
    steps: Floats

    @property
    def last(self) -> Floats:
        """Return beta[N]."""
        return np.asarray(self.iterates[-1])

    @property
    def averages(self) -> Floats:
        """Return ``sum gamma[j] beta[j] / sum gamma[j]`` over j < M, for M = 1, ..., N, which the bounds are about."""
        weights = self.steps.reshape(-1, *(1,) * (self.iterates.ndim - 1))
        return np.asarray(np.cumsum(weights * self.iterates[:-1], axis=0) / np.cumsum(weights, axis=0))

    @property
    def average(self) -> Floats:
        """Return ``sum gamma[j] beta[j] / sum gamma[j]`` over all iterates but the last."""
        return np.asarray(self.averages[-1])

    def excess(self, loss: Loss, X: Floats, y: Floats, best: Floats, *, average: bool = True) -> Floats:
        """Return ``f(average) - f(best)`` after 1, ..., N steps, f being the objective of ``loss`` on ``X`` and ``y``.

        With ``average=False`` it is ``f(iterate) - f(best)``.
        """
        least = loss.objective(best, X, y)
        betas = self.averages if average else self.iterates[1:]
        return np.array([loss.objective(beta, X, y) - least for beta in betas])

    def plot(self, axes: Any, excess: Floats, bound: Floats | None = None, label: str = "") -> None:
        """Draw ``excess`` over the number of steps on the matplotlib ``axes``, both logarithmic.

        ``bound`` is drawn beside it, dashed and in the same color, if it is not None; ``label`` names the line in a
        legend. An excess below 1e-18 is drawn as that, since a logarithmic axis has no 0.

        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> Trace(np.zeros((3, 1)), np.ones(2)).plot(axes, np.array([0.5, 0.1]), np.array([1.0, 0.5]), "GD")
        >>> len(axes.lines)
        2
        """
        count = np.arange(1, len(excess) + 1)
        (line,) = axes.loglog(count, np.maximum(excess, 1e-18), label=label or None)
        if bound is not None:
            axes.loglog(count, bound, "--", color=line.get_color())


def descend(gradient: Gradient, *, start: ArrayLike, steps: int, schedule: Schedule) -> Trace:
    """Run ``steps`` steps of descent against ``gradient(beta, h)``, and return the trace of the iterates.

    >>> descend(lambda beta, h: 2 * (beta - 3), start=[0.0], steps=2, schedule=Schedule(0.25)).iterates.ravel()
    array([0.  , 1.5 , 2.25])
    """
    beta = start_of(start)
    count = arguments.whole(steps, "steps")
    gammas = schedule.steps(count)
    iterates = np.empty((count + 1, *beta.shape))
    iterates[0] = beta
    for h, gamma in enumerate(gammas):
        beta = beta - gamma * gradient(beta, h)
        iterates[h + 1] = beta
    return Trace(iterates, gammas)


def start_of(start: ArrayLike) -> Floats:
    """Return the first iterate as an array of finite floats; a number is a vector of one."""
    beta = np.atleast_1d(np.array(start, dtype=np.float64))
    if not np.all(np.isfinite(beta)):
        raise InvalidArgument("start", "finite numbers", "NaN or infinity", "start from zeros")
    return beta


def read_records(X: Any, y: Any, beta: Floats) -> tuple[Floats, Floats]:
    """Return rows ``X`` and targets ``y`` as floats for a private descent from ``beta``; invalid records become zeros.

    A record with a cell or target that is no finite number becomes zeros, which have no gradient. ``beta`` has one
    coordinate for each column, and a second axis if there are several scores; targets that are not one for each score
    of each row are refused: broadcasting would mix those of several records.
    """
    X = inputs.table(X, len(beta))
    several = getattr(y, "ndim", beta.ndim) == 2 if not isinstance(y, (list, tuple)) else beta.ndim == 2
    y = inputs.table(y, beta.shape[-1]) if several else inputs.numbers(y)
    if X.ndim != 2 or beta.ndim > 2 or beta.shape[0] != X.shape[1] or y.shape != (len(X), *beta.shape[1:]):
        fix = "see X.shape, y.shape and start.shape"
        expected = "rows, one coordinate of start for each column, and a target for each row and score"
        raise InvalidData("X, y", expected, "shapes that do not match", fix)
    usable = np.isfinite(X).all(axis=1) & (np.isfinite(y) if y.ndim == 1 else np.isfinite(y).all(axis=1))
    return np.where(usable[:, np.newaxis], X, 0.0), np.where(usable if y.ndim == 1 else usable[:, np.newaxis], y, 0.0)


def gradient_descent(
    loss: Loss, X: Floats, y: Floats, *, start: ArrayLike, steps: int, schedule: Schedule | None = None
) -> Trace:
    """Run plain gradient descent on the mean loss, by default with the constant step ``1 / smoothness``.

    >>> from dither.learn.losses import Squared
    >>> x = np.array([1.0, 2.0, 6.0])
    >>> gradient_descent(Squared(), np.ones((3, 1)), x, start=0.0, steps=30, schedule=Schedule(0.1)).last
    array([2.99628618])
    """
    chosen = Schedule(1 / loss.smoothness(X)) if schedule is None else schedule
    return descend(lambda beta, _: loss.gradient(beta, X, y), start=start, steps=steps, schedule=chosen)


def descent_bound(distance_squared: float, steps: Floats, smoothness: float) -> Floats:
    """Return a bound on ``f(average) - f*`` after 1, ..., N steps: ``|beta[0] - beta*|^2 / sum gamma[j]``.

    *Statement.* It holds if f is convex, its gradient has the Lipschitz constant L = ``smoothness``, and every step is
    at most 1.5 / L; other steps are refused. *Why.* For such f, ``<f'(b), b - b*> >= f(b) - f* + |f'(b)|^2 / (2L)``
    and ``|f'(b)|^2 <= 2L (f(b) - f*)``, so one step brings ``|b - b*|^2`` down by at least ``2 gamma min(1, 2 - gamma
    L) (f(b) - f*)``, which is at least ``gamma (f(b) - f*)``. Sum over the steps and use convexity.

    >>> descent_bound(1.0, np.full(4, 0.5), smoothness=1.0)
    array([2.        , 1.        , 0.66666667, 0.5       ])
    """
    check_step_sizes(steps, 1.5 / smoothness)
    return utility_bound(distance_squared, steps)


def utility_bound(
    distance_squared: float, steps: Floats, *, constant: float = 0.0, noise: Floats | None = None, per_noise: float = 0
) -> Floats:
    """Return ``(D^2 + constant sum gamma^2 + per_noise sum gamma^2 theta^2) / sum gamma`` after 1, ..., N steps.

    Without constant and noise it bounds gradient descent (:func:`descent_bound`), with a constant stochastic descent
    (:func:`stochastic_bound`), and with the sizes theta of the noise private descent as well.

    >>> utility_bound(1.0, np.ones(2), constant=0.5)
    array([1.5, 1. ])
    """
    squares = steps**2
    total = distance_squared + constant * np.cumsum(squares)
    if noise is not None:
        total = total + per_noise * np.cumsum(squares * noise**2)
    return np.asarray(total / np.cumsum(steps))


def check_step_sizes(steps: Floats, limit: float) -> None:
    """Refuse steps longer than the limit up to which a bound is proved."""
    if not math.isfinite(limit) or steps.max() > limit * (1 + 1e-12):
        raise InvalidArgument(
            "steps",
            f"steps of at most {limit:.6g}, for which the bound is proved",
            f"{steps.max():.6g}",
            "shorten them",
        )


def online(loss: Loss, X: Floats, y: Floats, *, start: ArrayLike, batch: int, schedule: Schedule) -> Trace:
    """Make one pass of stochastic gradient descent over the data, and return all iterates.

    Step h uses rows h b, ..., (h + 1) b - 1 of ``X`` and ``y``, b = ``batch``, and no other; rows that do not fill a
    batch are left out. ``loss`` is minimized from ``start``, with the step sizes of ``schedule``. It is not private.

    >>> from dither.learn.losses import Squared
    >>> online(Squared(), np.ones((4, 1)), np.arange(4.0), start=0.0, batch=2, schedule=Schedule(0.5)).iterates.ravel()
    array([0. , 0.5, 2.5])
    """
    size = _batch(batch, len(X))

    def gradient(beta: Floats, h: int) -> Floats:
        """Return the gradient of the loss on the rows of batch h."""
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
    """Make many passes of stochastic gradient descent: every step draws ``batch`` different rows at random.

    ``loss`` on the rows ``X`` and targets ``y`` is minimized from ``start`` in ``steps`` steps of the sizes of
    ``schedule``; ``source`` is the randomness of the draws. The result has all iterates. It is not private.

    >>> from dither.learn.losses import Squared
    >>> offline(Squared(), np.ones((4, 1)), np.ones(4), start=0.0, steps=3, schedule=Schedule(0.5)).last
    array([1.])
    """
    size, words = _batch(batch, len(X)), resolve(source)

    def gradient(beta: Floats, _: int) -> Floats:
        """Return the gradient of the loss on a new random batch."""
        rows = draw_rows(len(X), size, words)
        return loss.gradient(beta, X[rows], y[rows])

    return descend(gradient, start=start, steps=steps, schedule=schedule)


def draw_rows(count: int, size: int, source: Source) -> NDArray[np.int64]:
    """Draw ``size`` different indices below ``count``, every set of them with equal probability."""
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
    """Return the mean over the rows of the squared length of their gradients at the minimum.

    This is what keeps stochastic gradient descent with a constant step from settling. ``loss`` on the rows ``X`` and
    targets ``y`` is smallest at ``best``; a penalty belongs to the loss.

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
    """Return a bound on the mean of ``f(average) - f*``: ``D^2 / sum gamma + C sum gamma^2 / sum gamma``.

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
    """Return ``batch`` as a checked size of a batch; sizes above ``count``, the number of rows, are refused."""
    size = arguments.whole(batch, "batch")
    if size > count:
        raise InvalidArgument("batch", "at most the number of rows", size, "pass a smaller batch")
    return size
