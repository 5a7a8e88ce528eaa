"""Private gradient descent: clipped gradients, exact sums, normal noise, random samples, and their accounting.

Each step sums the gradients of the records in its batch, each clipped to a length of ``clip``, adds normal noise of
deviation ``noise_multiplier * clip``, and moves against the result. The sum is exact: the gradient of a record is its
row's direction times its residual's, both cut toward zero to whole multiples of 2^-16, so it is an integer matrix of
Frobenius norm at most 2^32, and integers are added without rounding. Adding or removing one record moves the sum by
at most that, and all iterates are functions of the noisy sums, so the whole trace may be published.

How a batch is drawn is part of the event. *poisson*: every record is in the batch by an independent coin in every
step, which amplifies privacy. *once*: a pass deals every record to exactly one of its 1/rate steps, as shuffling does;
nothing is amplified then, and a pass costs one step.

>>> from dither.learn.losses import Logistic
>>> X, y = np.array([[1.0, 0.2], [1.0, 0.9]] * 500), np.array([0.0, 1.0] * 500)
>>> trace = noisy_descent(Logistic(), X, y, start=np.zeros(2), steps=50, clip=0.5, noise_multiplier=20, step=10.0,
...                       size=1000)
>>> trace.iterates.shape
(51, 2)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dither import arguments
from dither.accounting import Event, GaussianNoise, PoissonSampled, best_of, gaussian_ratio, pld, renyi, zcdp
from dither.budget_hooks import covered, spends
from dither.errors import DitherError, InvalidArgument, InvalidData, NotPrivate
from dither.exact import decimal, root_up, up
from dither.exact.search import crossing
from dither.guarantees import ApproxDP, Guarantee
from dither.learn.budget import quantized, row_norms, whole_product
from dither.learn.gd import Schedule, Trace, read_records, start_of
from dither.learn.losses import Floats, Loss
from dither.mechanisms import Gaussian
from dither.randomness import Source, bernoulli, resolve, uniform_integers

Integers = NDArray[np.int64]

GRADIENT_BITS = 16
GRADIENT_SENSITIVITY = 1 << (2 * GRADIENT_BITS)
"""The Frobenius norm, in steps of the lattice, that no gradient is longer than."""

_ROWS = 1 << 14  # below 2^21, so that sums in floats are exact; and fits the cache
_EXACT_ROWS = 1 << 21
_MAX_ROWS = 1 << 31
_BITS = 96
_MIN_NOISE = 2.0**-6


@dataclass(frozen=True)
class Factors:
    """Rows as integer vectors in their direction, and their norms, so that gradients can be summed exactly."""

    directions: Floats
    norms: Floats
    unit: float
    """The integer that stands for 1 in ``directions``."""

    @classmethod
    def of(cls, X: Floats) -> Factors:
        """Return the direction (as whole numbers of norm at most 2^16) and the norm of every row."""
        high = np.abs(X).max(axis=1, initial=0.0)
        scaled = X / np.where(high > 0, high, 1.0)[:, np.newaxis]
        norms_of_rows = row_norms(scaled)
        directions, unit = quantized(scaled / np.maximum(norms_of_rows, 1.0)[:, np.newaxis], 1.0, GRADIENT_BITS)
        with np.errstate(over="ignore"):
            return cls(directions, norms_of_rows * high, unit)

    def times(self, beta: Floats) -> Floats:
        """Return the scores ``rows @ beta``, each computed from its own row alone."""
        scale = self.norms / self.unit
        result = whole_product(self.directions, GRADIENT_BITS, beta)
        result *= scale if beta.ndim == 1 else scale[:, np.newaxis]
        return result

    def clipped_sum(self, residuals: Floats, clip: float, chosen: NDArray[np.bool_] | None = None) -> Integers:
        """Return the exact sum of the clipped gradients of the chosen records, as integers: :meth:`steps_to_one` is 1.

        A record's gradient is its row times its residual: ``residuals`` has a number, or one number for each score,
        for each record. Gradients longer than ``clip`` are shortened to it. ``chosen`` says which records count; None
        is all. The result has one row for each feature and one column for each score.

        *Statement.* One record more or less changes it by a matrix of Frobenius norm at most ``GRADIENT_SENSITIVITY``.
        *Why.* Its part is the outer product of two integer vectors of norm at most 2^16 each, whatever its row and
        residual are.
        """
        directions, norms = self.directions, self.norms
        if len(norms) >= _MAX_ROWS:
            raise InvalidData("X", "fewer than 2^31 rows", "more", "use a sample of them")
        parts = residuals if residuals.ndim == 2 else residuals[:, np.newaxis]
        if chosen is not None:
            directions, norms, parts = directions[chosen], norms[chosen], parts[chosen]
        with np.errstate(over="ignore", invalid="ignore"):
            parts = parts * norms[:, np.newaxis]
        parts[~np.isfinite(parts)] = 0.0  # too long for floats: such a record counts as none
        whole, _ = quantized(parts, clip, GRADIENT_BITS)
        total = np.zeros((directions.shape[1], whole.shape[1]), dtype=np.int64)
        for start in range(0, len(whole), _ROWS):
            block = slice(start, start + _ROWS)
            total += (directions[block].T @ whole[block]).astype(np.int64)
        return total

    def steps_to_one(self, clip: float, scores: int) -> float:
        """Return the integer that stands for 1 in :meth:`clipped_sum`, for gradients of ``scores`` columns."""
        return self.unit * quantized(np.zeros((1, scores)), clip, GRADIENT_BITS)[1]


Release = Callable[[Integers], Floats]
Batches = Callable[[int], NDArray[np.bool_]]


def descend_privately(
    loss: Loss,
    X: Floats,
    y: Floats,
    *,
    start: Floats,
    steps: Floats,
    clip: float,
    size: float,
    release: Release,
    batches: Batches | None = None,
    momentum: float = 0.0,
    weights: Floats | float = 1.0,
) -> Trace:
    """Run a gradient descent on noisy sums of clipped gradients and return the trace of its iterates.

    ``loss`` gives the residuals of the records with features ``X`` and targets ``y``. ``start`` is the first iterate,
    ``steps`` the sizes of the steps, and ``clip`` the longest gradient of one record. ``release`` returns an integer
    sum with noise and accounts for its privacy. ``batches`` maps the number of a step to a mask of the records it uses;
    None is all of them.

    ``size`` is the approximate number of records in a batch, from public knowledge or a noisy count, never from the
    data. With ``momentum`` m the step is along ``v = m v + (1 - m) gradient``. ``weights`` multiply gradients before
    they are clipped; the weight of a record may depend on that record only. All iterates may be published.
    """
    factors = Factors.of(X)
    beta, velocity = start, np.zeros_like(start)
    unit = factors.steps_to_one(clip, 1 if start.ndim == 1 else start.shape[1]) * size
    iterates = np.empty((len(steps) + 1, *start.shape))
    iterates[0] = start
    for h, step in enumerate(steps):
        chosen = None if batches is None else batches(h)
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a record
            residuals = (loss.residual(factors.times(beta), y).T * weights).T
        noisy = release(factors.clipped_sum(residuals, clip, chosen)).reshape(start.shape) / unit
        velocity = momentum * velocity + (1 - momentum) * (noisy + loss.shrinkage(beta))
        beta = beta - step * velocity
        iterates[h + 1] = beta
    return Trace(iterates, steps)


@dataclass(frozen=True)
class NoisyDescent:
    """Noisy gradient descent as a mechanism: its event, its guarantee, and :meth:`run`.

    *Statement.* If one record is added or removed, the trace is as private as ``steps`` Gaussian mechanisms of noise
    ``noise_multiplier`` times their sensitivity, each on a Poisson sample of the records if ``sampling_rate`` is below
    1. *Why.* See the head of :mod:`dither.learn.descent`; the loss is composed exactly.

    Parameters
    ----------
    steps, step
        How many steps, and of which size: a number or a :class:`~dither.learn.gd.Schedule`.
    clip, noise_multiplier
        The longest gradient of one record, and the deviation of the noise in units of it.
    size
        About how many records there are: public, or a noisy count. It scales the steps only.
    sampling_rate, sampling
        The share of the records in a step, and how it is drawn: ``"poisson"`` or ``"once"``.
    delta
        For an (epsilon, delta) guarantee; a full batch without it has a rho.

    Examples
    --------
    >>> NoisyDescent(steps=100, step=1.0, clip=1.0, noise_multiplier=20, size=1000).guarantee
    ZCDP(0.125)
    >>> NoisyDescent(steps=100, step=1.0, clip=1.0, noise_multiplier=2, size=1000, sampling_rate=0.01).event
    100 * PoissonSampled(GaussianNoise(2), 0.01)
    >>> NoisyDescent(steps=100, step=1.0, clip=1.0, noise_multiplier=2, size=1000, sampling_rate=0.01,
    ...              sampling="once").event
    GaussianNoise(2)
    """

    steps: int
    step: float | Schedule
    clip: float
    noise_multiplier: float
    size: float
    sampling_rate: float = 1.0
    sampling: Literal["poisson", "once"] = "poisson"
    delta: float | None = None
    momentum: float = 0.0

    def __post_init__(self) -> None:
        """Check the parameters; for ``sampling="once"`` the rate must be 1/k, so that k batches partition the data."""
        arguments.whole(self.steps, "steps")
        for name in ("clip", "noise_multiplier", "size"):
            arguments.positive(getattr(self, name), name)
        if not 1e-90 <= self.clip <= 1e90:
            raise InvalidArgument("clip", "a number from 1e-90 to 1e+90", self.clip, "measure in other units")
        rate = arguments.rate(self.sampling_rate, "sampling_rate")
        if self.sampling not in ("poisson", "once"):
            raise NotPrivate(
                "sampling", "'poisson' or 'once'", repr(self.sampling), "other samples have no account here"
            )
        if self.sampling == "once" and rate.numerator != 1:
            raise InvalidArgument(
                "sampling_rate", "1 over a whole number, for 'once'", float(rate), "pass Fraction(1, 3)"
            )
        if not 0 <= self.momentum < 1:
            raise InvalidArgument("momentum", "a number from 0 on, below 1", self.momentum, "pass momentum=0")
        if self.delta is not None:
            arguments.delta(self.delta)
        if not isinstance(self.step, Schedule):
            arguments.positive(self.step, "step")

    @property
    def mechanism(self) -> Gaussian:
        """Return the Gaussian mechanism of one step, for integer sums of sensitivity ``GRADIENT_SENSITIVITY``."""
        multiplier = decimal(self.noise_multiplier, "noise_multiplier")
        return Gaussian(
            GRADIENT_SENSITIVITY, rho=cast(float, 1 / (2 * multiplier * multiplier))
        )  # exact numbers are floats to it

    @property
    def event(self) -> Event:
        """Return the event for accountants: the noise of all steps, and how the batches are drawn."""
        rate = arguments.rate(self.sampling_rate, "sampling_rate")
        one: Event = self.mechanism.event_for(integer=False)
        if self.sampling == "once":
            return -(-self.steps // rate.denominator) * one
        return self.steps * (one if rate == 1 else PoissonSampled(one, rate))

    @property
    def guarantee(self) -> Guarantee:
        """Return the best guarantee that an accountant finds at ``delta``; without one, rho-zCDP."""
        if self.delta is not None:
            return best_of(self.event, self.delta).guarantee
        if not zcdp.supports(self.event):
            raise NotPrivate("delta", "a delta, where batches are samples", "none", "pass delta=1e-5, for example")
        return zcdp.guarantee(self.event)

    @spends
    def run(self, loss: Loss, X: Floats, y: Floats, start: ArrayLike, *, source: Source | None = None) -> Trace:
        """Run the descent and return its trace, all of which may be published.

        ``loss`` is what to minimize (:mod:`dither.learn.losses`), ``X`` and ``y`` are the records and their targets,
        ``start`` is the first iterate, and ``source`` the randomness, by default the operating system's.

        >>> from dither.learn.losses import Squared
        >>> m = NoisyDescent(steps=9, step=0.5, clip=1.0, noise_multiplier=3, size=100)
        >>> m.run(Squared(), np.ones((100, 1)), np.full(100, 0.5), start=0.0).last.shape
        (1,)
        """
        words, mechanism = resolve(source), self.mechanism
        beta = start_of(start)
        rows, targets = read_records(X, y, beta)
        steps = self.step.steps(self.steps) if isinstance(self.step, Schedule) else np.full(self.steps, self.step)

        def release(sums: Integers) -> Floats:
            """Return exact sums with the noise of one step."""
            flattened = sums.ravel()
            small = len(rows) <= _EXACT_ROWS
            exact = flattened.astype(np.float64) if small else [Fraction(int(value)) for value in flattened]
            return np.asarray(covered(mechanism.release)(exact, source=words), dtype=np.float64)

        return descend_privately(
            loss,
            rows,
            targets,
            start=beta,
            steps=steps,
            clip=self.clip,
            size=float(self.size) * float(self.sampling_rate),
            release=release,
            batches=self._batches(len(rows), words),
            momentum=self.momentum,
        )

    def _batches(self, count: int, source: Source) -> Batches | None:
        """Return a function from step h to a mask of the records it uses; None if every step uses all.

        There are ``count`` records. With ``"poisson"`` each is in a batch with probability ``sampling_rate``, drawn
        anew for each step; with ``"once"`` and the rate 1/k, a random partition into k batches is drawn from
        ``source`` for every k steps.
        """
        rate = arguments.rate(self.sampling_rate, "sampling_rate")
        if rate == 1:
            return None
        if self.sampling == "poisson":
            return lambda _: bernoulli(rate, count, source)
        batch_of_record = np.empty(0, dtype=np.uint64)

        def once(h: int) -> NDArray[np.bool_]:
            """Return which records are in the batch of a step; a pass over the data uses each record once."""
            nonlocal batch_of_record
            if h % rate.denominator == 0:  # a new pass over the data
                batch_of_record = uniform_integers(rate.denominator, count, source)
            return np.asarray(batch_of_record == h % rate.denominator)

        return once


def noisy_descent(
    loss: Loss,
    X: Floats,
    y: Floats,
    *,
    start: ArrayLike,
    steps: int,
    clip: float,
    noise_multiplier: float,
    step: float | Schedule,
    size: float,
    sampling_rate: float = 1.0,
    sampling: Literal["poisson", "once"] = "poisson",
    delta: float | None = None,
    momentum: float = 0.0,
    source: Source | None = None,
) -> Trace:
    """Run :class:`NoisyDescent` in one call: its parameters, and those of :meth:`NoisyDescent.run`.

    >>> from dither.learn.losses import Squared
    >>> noisy_descent(Squared(), np.ones((500, 1)), np.full(500, 0.5), start=0.0, steps=20, clip=1.0, step=0.3,
    ...               noise_multiplier=4, size=500, sampling_rate=0.1, delta=1e-5).iterates.shape
    (21, 1)
    """
    descent = NoisyDescent(
        steps, step, clip, noise_multiplier, size, sampling_rate, sampling=sampling, delta=delta, momentum=momentum
    )
    return descent.run(loss, X, y, start, source=source)


def noise_for(epsilon: float, delta: float, steps: int, sampling_rate: float = 1.0) -> float:
    """Return the smallest noise multiplier with which the steps are (epsilon, delta)-DP, to 1e-5.

    ``epsilon`` and ``delta`` are the guarantee of all ``steps`` together, by the best accountant. ``sampling_rate`` is
    that of Poisson samples. Full batches compose to one Gaussian mechanism, so theirs is exact. Samples never need
    more noise than full batches, up to the rounding of the accountants, so the search goes down from there, to about
    1/64 at the least: with few steps at a small rate delta alone may pay for all of them.

    >>> round(noise_for(1, 1e-5, steps=100), 3), round(noise_for(1, 1e-5, steps=100, sampling_rate=0.01), 2)
    (37.306, 0.9)
    """
    count, share = arguments.whole(steps, "steps"), arguments.rate(sampling_rate)
    ratio = gaussian_ratio(arguments.epsilon(epsilon), arguments.delta(delta))
    ratio_of_all_rows = up(ratio * root_up(Fraction(count), _BITS))
    if share == 1:
        return ratio_of_all_rows
    target = ApproxDP(epsilon, delta)

    def event(noise: float) -> Event:
        """Return the event of a descent with this noise multiplier."""
        return count * PoissonSampled(GaussianNoise(noise), share)

    def fits(noise: float) -> bool:
        """Return whether this noise multiplier keeps the target guarantee."""
        try:
            if renyi.guarantee(event(noise), delta) <= target:  # as a rule, and much faster
                return True
        except DitherError:
            pass
        return excess(noise) <= 0

    @cache
    def excess(noise: float) -> float:
        """Return the logarithm of the epsilon at this noise over the target's, infinite where it cannot be computed."""
        try:
            result = best_of(event(noise), delta, (renyi, pld)).guarantee
        except DitherError:  # more than any guarantee may say, or than an accountant can compute
            return math.inf
        log_excess = math.log(max(float(result.exact[0] / target.exact[0]), 1e-300))
        return min(log_excess, 0.0) if result <= target else max(log_excess, 1e-300)

    high = ratio_of_all_rows
    while not fits(high):
        high *= 1.25
        if high > 2 * ratio_of_all_rows:
            raise NotPrivate(
                "epsilon, delta",
                "a guarantee that an accountant can show for these steps at this rate",
                "one that none can",
                "pass a larger epsilon or delta, or fewer steps, or leave rate out",
            )
    while high > _MIN_NOISE and fits(high / 2):
        high /= 2
    return high if high <= _MIN_NOISE else crossing(excess, high / 2, high, 1e-5)
