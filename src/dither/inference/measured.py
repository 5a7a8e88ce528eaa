"""Released numbers with all values that their noise may have had, and the limits that follow for a function of them.

*The construction.* A released number is ``y = a + e``, with the truth a and noise e of a known law. Put in the place of
the noise K values that stand for its law, e_1 .. e_K: then ``y - e_k`` are K equally likely truths, and a function f of
several numbers has the K values ``f(y - e_k)``. The limits are the values between which a share of at least the
confidence of them lies, with equal shares beyond either. (Statisticians know this as a parametric bootstrap of the
pivots, or as generalized pivotal quantities; Weerahandi 1993.)

*Statement.* The limits cover the true ``f(a)`` with the confidence asked for, up to the resolution of the sample, if
f is linear in the numbers, or a monotone function of one such, or a quotient of two such with a positive denominator.
For other smooth functions the coverage differs from it by terms of second order in (noise / number); the curvature that
causes them is taken out where it matters, in :mod:`~dither.inference.moments`.

*Why.* For a linear f with coefficients c, ``f(y) - f(a) = c e`` has the same law as ``c e_k``: the limits are those of
a pivot. A monotone function of it moves the limits and the truth alike. For a quotient, ``(t - x_k)/(n - z_k) <= m``
says the same as ``t - m n <= x_k - m z_k`` where ``n - z_k > 0``; at the true m the left side has the law of the right
side. So the limits are those of Fieller's exact argument. A sample with ``n - z_k <= 0`` supports no quotient in
particular, so it is counted as beyond *both* limits, which can only widen them.

The sample is a lattice rule (a Korobov lattice in the unit cube with the extensible generator of Hickernell, Hong,
L'Ecuyer and Lemieux 2000), not random draws: the same numbers always have the same limits. It is symmetric about 0.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.exact.search import bisect_floats
from dither.mechanisms import Gaussian, Laplace, MixedNoise


@dataclass(frozen=True)
class NoiseLaw:
    """Noise that is symmetric about 0: Laplace or normal, real or on a lattice; or none.

    On a lattice of ``step``, Laplace noise is the discrete law with probabilities in proportion to
    ``exp(-step |k| / scale)`` and normal noise is the real law rounded to the lattice, as the mechanisms release whole
    numbers.

    >>> NoiseLaw("laplace", 2.0).quantiles(np.array([0.025, 0.6, 0.975])).round(4)
    array([-5.9915,  0.4463,  5.9915])
    >>> NoiseLaw("laplace", 1.0, step=1.0).quantiles(np.array([0.025, 0.6, 0.975]))
    array([-3.,  0.,  3.])
    """

    shape: Literal["laplace", "normal", "none"]
    scale: float = 0.0
    step: float = 0.0
    """The spacing of the lattice; 0 where the noise is real."""

    @classmethod
    def of(cls, mechanism: Laplace | Gaussian | MixedNoise, *, integer: bool, unit: float = 1.0) -> NoiseLaw:
        """Return the law that a mechanism adds to one number; ``unit`` is what a released 1 is worth.

        >>> NoiseLaw.of(Laplace(sensitivity=1, epsilon=0.5), integer=True, unit=10)
        NoiseLaw(shape='laplace', scale=20.0, step=10)
        """
        inner = mechanism.mechanism if isinstance(mechanism, MixedNoise) else mechanism
        scale = inner.scale
        assert isinstance(scale, float), "the noise has one scale"
        shape: Literal["laplace", "normal"] = "laplace" if isinstance(inner, Laplace) else "normal"
        return cls(shape, scale * unit, inner.integer_step(0) * unit if integer else 0.0)

    def times(self, factor: float) -> NoiseLaw:
        """Return the law of ``factor`` times the noise, for a positive factor."""
        return replace(self, scale=self.scale * factor, step=self.step * factor)

    def quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the quantiles of the noise at these levels: uniform levels give samples of the law.

        At a level u below 1/2 the quantile is ``-k``, with k the smallest multiple of the step that the noise exceeds
        with a probability of at most u; above 1/2 the mirror image.
        """
        if self.shape == "none":
            return np.zeros_like(levels)
        tail = np.minimum(levels, 1 - levels)
        if self.shape == "normal":
            from scipy.special import ndtri

            sizes = -self.scale * ndtri(tail)
            if self.step:
                sizes = self.step * np.rint(sizes / self.step)
        elif self.step:
            ratio = self.scale / self.step
            excess = -ratio * (np.log(tail) + math.log1p(math.exp(-1 / ratio)))
            sizes = self.step * np.maximum(np.ceil(excess * (1 - 1e-12) - 1), 0.0)
        else:
            sizes = -self.scale * np.log(2 * tail)
        result: NDArray[np.float64] = np.where(levels < 0.5, -sizes, sizes)
        return result

    def error(self, tail: float) -> float:
        """Return the half-width that the noise exceeds with a probability of at most ``tail``.

        >>> round(NoiseLaw("normal", 1.0).error(0.05), 3)
        1.96
        """
        return abs(float(self.quantiles(np.array([tail / 2]))[0]))

    def sum_limit(self, count: int, tail: float) -> float:
        """Return what the sum of ``count`` independent noises of this law exceeds with a probability of at most
        ``tail``.

        A sum of Laplace noises of scale 1 is ``G - H``, two Gamma variables of this shape. It exceeds t if a Poisson
        process has fewer than ``count`` arrivals up to ``t + H``: j of them up to t, with probability
        ``exp(-t) t^j / j!``, and m after it, with probability ``C(m + count - 1, m) / 2^(m + count)``, where
        ``j + m < count``. Noise on a lattice is taken for real noise.

        >>> law = NoiseLaw("laplace", 1.0)
        >>> round(law.sum_limit(1, 0.025), 4), round(law.sum_limit(2, 0.025), 4)
        (2.9957, 4.113)
        >>> round(NoiseLaw("normal", 1.0).sum_limit(4, 0.025), 2)
        3.92
        """
        if self.shape == "none":
            return 0.0
        if self.shape == "normal":
            from scipy.special import ndtri

            return float(-self.scale * math.sqrt(count) * ndtri(tail))
        after = [math.ldexp(math.comb(m + count - 1, m), -m - count) for m in range(count)]

        def exceeds(t: float) -> bool:
            """Return whether the sum exceeds t, in units of the scale, with a probability above ``tail``."""
            before = [math.exp(-t) * math.pow(t, j) / math.factorial(j) for j in range(count)]
            return math.fsum(p * sum(after[: count - j]) for j, p in enumerate(before)) > tail

        low, high = 0.0, 1.0
        while exceeds(high):
            low, high = high, 2 * high
        return self.scale * bisect_floats(lambda t: not exceeds(t), low, high, tolerance=1e-9).holds


def level_table(name: str, count: int, columns: int) -> NDArray[np.float64]:
    """Return levels of noise that depend only on ``name``, a Latin hypercube.

    Each column has all of ``(1/2, 3/2, …) / count`` in an order of its own, so that numbers of one law have one error.

    >>> table = level_table("any", 4, 2)
    >>> np.sort(table, axis=0)[:, 0]
    array([0.125, 0.375, 0.625, 0.875])
    """
    digest = hashlib.shake_256(f"dither {name}".encode()).digest(8 * count * columns)
    words = np.frombuffer(digest, dtype="<u8").reshape(count, columns)
    order: NDArray[np.int64] = words.argsort(axis=0, kind="stable")
    return (order + 0.5) / count


EXACT = NoiseLaw("none")
"""No noise: the number is public."""

STANDARD_NORMAL = NoiseLaw("normal", 1.0)
"""The law of a sampling error in units of its standard deviation, where there are many records."""


def normal_quantile(confidence: float) -> float:
    """Return z such that a normal number is within z deviations of its mean with this probability.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    return NormalDist().inv_cdf((1 + arguments.confidence(confidence)) / 2)


Array = NDArray[np.float64]
Numbers = float | Array
"""One number, or an array with a number for each group."""
Statistic = Callable[[Sequence[Array], Sequence[Array]], Array]
"""A function of released numbers, in a column with a row for each group, and of the noise to be taken from them, in a
row with a column for each sample."""

_GENERATOR = 17_797
_FEWEST_POINTS = 1 << 10
_MOST_POINTS = 1 << 15
_POINTS_BEYOND = 51
"""How many points of the sample are to be beyond the limits, about."""
_FREE = 2.5
"""From this number of standard errors on, the end of what is possible plays no part."""
_BLOCK = 1 << 14
"""How many samples are held at once: arrays that stay in the cache and need no pages of their own."""


@dataclass(frozen=True)
class Measured:
    """A released number, or one for each group, and the noise that it may carry; closed under linear arithmetic.

    >>> one, two = measured([10.0, 20.0], [NoiseLaw("laplace", 1.0)] * 2, confidence=0.95)
    >>> total = one + two * 2
    >>> total.value, total.noise.size
    (array([50.]), 1024)
    >>> bool(np.allclose(total.noise, one.noise + 2 * two.noise))
    True
    """

    value: Array
    noise: Array
    """Equally likely values of the noise; those of numbers that were measured together belong together."""
    error: float
    """With the confidence, all numbers that were measured together are within their errors at once."""
    confidence: float

    def __add__(self, other: Measured) -> Measured:
        return replace(
            self, value=self.value + other.value, noise=self.noise + other.noise, error=self.error + other.error
        )

    def __sub__(self, other: Measured) -> Measured:
        return self + other * -1.0

    def __mul__(self, factor: float) -> Measured:
        return replace(self, value=self.value * factor, noise=self.noise * factor, error=self.error * abs(factor))

    @property
    def resolved(self) -> bool:
        """Return whether the sample has enough points for limits at this confidence; beyond it only ``error`` is of
        use."""
        return self.noise.size > 0

    @property
    def range(self) -> tuple[Array, Array]:
        """Return ``value - error`` and ``value + error``, between which the true value lies with the confidence."""
        return self.value - self.error, self.value + self.error

    def at(self, value: Numbers) -> Measured:
        """Return the given numbers with the noise, error and confidence of this one."""
        return replace(self, value=np.atleast_1d(np.asarray(value, dtype=np.float64)))


def measured(values: Sequence[Numbers], laws: Sequence[NoiseLaw], confidence: float) -> tuple[Measured, ...]:
    """Return released numbers with their noise laws, prepared for limits at this ``confidence``.

    ``values[i]`` was released with noise of the law ``laws[i]``, independent of the others, and is one number or an
    array with one number for each group. Each result has a sample of its noise, and a range; the ranges hold together
    with the confidence, as 1 - confidence is divided among the laws that have noise (Bonferroni).
    """
    count = sum(law.shape != "none" for law in laws)
    tail = (1 - confidence) / max(count, 1)
    sample = _sample(tuple(laws), _points(confidence))
    return tuple(
        Measured(np.atleast_1d(np.asarray(value, dtype=np.float64)), noise, law.error(tail), confidence)
        for value, noise, law in zip(values, sample, laws, strict=True)
    )


def _points(confidence: float) -> int:
    """Return the number of points of a sample: a power of two with about 51 points beyond the limits.

    0 if more than 2^15 would be needed, for a confidence too near to 1.
    """
    needed = _POINTS_BEYOND / (1 - confidence)
    return max(_FEWEST_POINTS, 1 << math.ceil(math.log2(needed))) if needed <= _MOST_POINTS else 0


@functools.lru_cache(maxsize=64)
def _sample(laws: tuple[NoiseLaw, ...], points: int) -> tuple[Array, ...]:
    """Return, for each law, its noise at every point of a rank-1 lattice rule (a quasi-Monte Carlo sample).

    Coordinate i of point k is ``(k + 1/2) a^i / points`` modulo 1, with a = ``_GENERATOR``; the noise is the law's
    quantile there. With ``points`` = 0 the arrays are empty.
    """
    centers = np.arange(points) + 0.5
    result = []
    for number, law in enumerate(laws):
        multiplier = pow(_GENERATOR, number, points) if points else 1
        noise = law.quantiles(np.mod(centers * multiplier, points) / max(points, 1))
        noise.flags.writeable = False
        result.append(noise)
    return tuple(result)


def limits(
    statistic: Statistic, inputs: Sequence[Measured], low: Numbers, high: Numbers, scale: Array | None = None
) -> tuple[Array, Array]:
    """Return the lower and upper limits of a statistic for each group, kept between ``low`` and ``high``.

    ``statistic`` computes it from the noisy values and samples of their noise, ``inputs`` are the noisy values, and
    ``scale`` is its standard error in each group, or None: then equal shares of the sample are beyond either limit.
    Where the statistic is not a number the sample counts as beyond both limits.

    *Near the lower end.* A truth that is at the end of what is possible cannot be missed by an upper limit, so equal
    shares beyond both limits cover it too often. With the standard error of the statistic as ``scale``, a truth v is
    within the limits if the share of samples below v is at least u and at most u plus the confidence, where u is half
    of ``1 - confidence`` far from the end and all of it within one standard error (in between it falls linearly,
    :func:`_near_end`). For every v that has the probability asked for, since u depends on v alone (Feldman and Cousins
    1998 choose u by likelihood). Limits are never narrower than one standard error above the end.
    """
    noises = [item.noise[None, :] for item in inputs]
    values = np.broadcast_arrays(*(item.value for item in inputs))
    points = inputs[0].noise.size
    beyond = math.floor(points * (1 - inputs[0].confidence) / 2)
    groups = values[0].size
    result = np.empty((2, groups))
    rows = max(1, _BLOCK // points)
    for start in range(0, groups, rows):
        part = slice(start, start + rows)
        sample = statistic([value[part, None] for value in values], noises)
        undefined = np.isnan(sample).sum(axis=1)
        if scale is not None:
            sample.sort(axis=1)
            result[0, part], result[1, part] = _limits_near_end(sample, undefined, beyond, low, scale[part])
            continue
        sample.sort(axis=1)  # what is not a number comes last, as if it were beyond the upper limit
        rank = beyond - undefined
        lower = np.take_along_axis(sample, np.maximum(rank, 0)[:, None], axis=1)[:, 0]
        result[0, part] = np.where(rank < 0, -np.inf, lower)
        upper = sample[:, points - 1 - beyond]
        result[1, part] = np.where(np.isnan(upper), np.inf, upper)
    return np.clip(result[0], low, high), np.clip(result[1], low, high)


def _near_end(distance: Array) -> Array:
    """Return the part of the share beyond the upper limit that is given to the lower limit.

    ``distance`` is that of a value from the end of what is possible, in standard errors: the part is 1 within one of
    them, 0 from 2.5 on, and linear in between.
    """
    result: Array = np.clip((_FREE - distance) / (_FREE - 1), 0.0, 1.0)
    return result


def _limits_near_end(sample: Array, undefined: Array, beyond: int, low: Numbers, scale: Array) -> tuple[Array, Array]:
    """Return the lower and upper limits of sorted samples where the least possible value may be near.

    ``sample`` has one sorted row for each group, NaN last; ``undefined`` is the number of NaN in each row, ``beyond``
    how many samples are beyond each limit far from the end, ``low`` the least possible value and ``scale`` the
    standard error of each group. See :func:`limits` for the rule.
    """
    points, unit = sample.shape[1], np.maximum(scale, 1e-300)[:, None]
    # below: the first of the samples from the bottom that is not too far down for its own distance from the end
    numbers = np.arange(beyond, 2 * beyond + 1)
    ranks = numbers[None, :] - undefined[:, None]
    values = np.where(ranks < 0, -np.inf, np.take_along_axis(sample, np.maximum(ranks, 0), axis=1))
    enough = numbers[None, :] >= beyond * (1 + _near_end((values - low) / unit))
    lower = np.take_along_axis(values, np.argmax(enough, axis=1)[:, None], axis=1)[:, 0]
    # above: likewise from the top, where what is not a number stands
    numbers = np.arange(beyond + 1)
    values = sample[:, points - 1 - numbers]
    values = np.where(np.isnan(values), np.inf, values)
    enough = numbers[None, :] >= beyond * (1 - _near_end((values - low) / unit))
    upper = np.take_along_axis(values, np.argmax(enough, axis=1)[:, None], axis=1)[:, 0]
    return lower, np.maximum(upper, low + unit[:, 0])
