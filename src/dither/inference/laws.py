"""The law of the noise in a released number, as far as an interval needs it."""

from __future__ import annotations

import hashlib
import math
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
