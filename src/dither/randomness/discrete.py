"""Exact integers: geometric and discrete Laplace, at any scale from 2^-20 to 2^56 steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.exact import Enclosure, divide, exp_neg
from dither.randomness.coins import below
from dither.randomness.lattice import MAGNITUDE, draw, draw_one, in_blocks, integer_steps, to_int64
from dither.randomness.laws import Exponential, Floats
from dither.randomness.source import LazyUniform, Source, Threshold

Integers = NDArray[np.int64]

SPLIT_SCALE = 2.0**26
MAX_SCALE = 2.0**56
MIN_SCALE = 2.0**-20


def check_scale(scale: float) -> float:
    """Refuse a scale for which the integer samplers are not made.

    >>> check_scale(10.0)
    10.0
    """
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise InvalidArgument(
            "scale",
            f"a scale from {MIN_SCALE:.3g} to {MAX_SCALE:.3g} lattice steps",
            scale,
            "measure in other units",
        )
    return scale


def geometric(scale: float, count: int, source: Source) -> Integers:
    """Draw integers with ``P(K >= k) = exp(-k / scale)``: the floor of ``scale`` times an exponential variable.

    >>> from dither.randomness import SeededSource
    >>> geometric(10.0, 4, SeededSource(1))
    array([ 3, 18, 13,  5])
    """
    block = _split_geometric if check_scale(scale) > SPLIT_SCALE else _floor_geometric
    return in_blocks(count, lambda size: block(scale, size, source))


def _floor_geometric(scale: float, count: int, source: Source) -> Integers:
    """Draw integers by rounding ``scale`` times an exponential variable down."""
    return to_int64(draw(Exponential(), scale, count, source, -0.5))


def _split_geometric(scale: float, count: int, source: Source) -> Integers:
    """Draw geometric integers K, ``P(K >= k) = exp(-k / scale)``, of a large ``scale``, in two parts.

    K = m A + R with m a power of two: A is geometric of scale / m, and R < m is uniform and kept with probability
    exp(-R / scale), which is above 1 - 2^-24. ``count`` is how many to draw, from the words of ``source``. Numbers are
    capped where they would exceed 63 bits.
    """
    shift = math.frexp(scale)[1] - 25
    high = _floor_geometric(math.ldexp(scale, -shift), count, source)
    low = np.empty(count, dtype=np.int64)
    todo = np.arange(count)
    while todo.size:
        proposal = (source.words(todo.size) >> np.uint64(64 - shift)).astype(np.int64)

        def exact(i: int, proposal: Integers = proposal) -> Threshold:
            """Return the enclosure of the probability that proposal i is kept."""
            rate = Fraction(int(proposal[i])) / Fraction(scale)
            return lambda bits: exp_neg(rate, bits)

        kept = below(source.words(todo.size), np.exp(proposal / -scale), exact, source)
        low[todo[kept]] = proposal[kept]
        todo = todo[~kept]
    return np.minimum(high, MAGNITUDE >> (shift + 1)) * (1 << shift) + low


@dataclass(frozen=True)
class DiscreteLaplace:
    """The law that rounds to the discrete Laplace: P(|Z| > z) = min(1, exp(-z) / cosh(1 / (2 scale))).

    ``rint(scale * Z)`` has P(|K| >= k) = 2 q^k / (1 + q), q = exp(-1/scale): the tail at z = (k - 1/2) / scale.
    The quantile is ``-ln U - ln cosh(1 / (2 scale))``: one logarithm for a draw, and zero needs no second try.

    >>> DiscreteLaplace(1.0).tail(Fraction(1, 2), 40)[0] / 2**40 > 0.537      # 2 / (e + 1)
    True
    """

    scale: float
    symmetric = True
    high = 1.0

    @cached_property
    def _offset(self) -> float:
        """Return ``ln cosh(h)`` with h = 1 / (2 scale)."""
        half = 0.5 / self.scale
        return half + math.log1p(math.exp(-2 * half)) - math.log(2)

    @cached_property
    def error(self) -> float:
        """Return the error of the exponential law plus that of the constant."""
        return 2.0**-41 + self._offset * 2.0**-45

    def quantile(self, u: Floats) -> None:
        """Replace u by -ln u - ln cosh(h) in place; a negative value rounds to zero as it should."""
        np.log(u, out=u)
        np.negative(u, out=u)
        u -= self._offset

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return one quantile and its error bound, as :meth:`quantile` computes it."""
        return -math.log(u) - self._offset, self.error

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose P(|Z| > z) = 2 exp(-z - h) / (1 + exp(-2h)) with h = 1 / (2 scale)."""
        half = Fraction(1, 2) / Fraction(self.scale)
        if z <= 0:
            return 1 << bits, 1 << bits
        work_bits = bits + 4
        top, pair = exp_neg(z + half, work_bits), exp_neg(2 * half, work_bits)
        low, high = divide((2 * top[0], 2 * top[1]), ((1 << work_bits) + pair[0], (1 << work_bits) + pair[1]), bits)
        return low, min(high, 1 << bits)


def discrete_laplace(scale: float, count: int, source: Source) -> Integers:
    """Draw integers with probability proportional to ``exp(-|k| / scale)``.

    >>> from dither.randomness import SeededSource
    >>> discrete_laplace(10.0, 4, SeededSource(1))
    array([  3,  18, -13,   6])
    """
    if check_scale(scale) <= SPLIT_SCALE:
        return integer_steps(DiscreteLaplace(scale), scale, count, source)
    return in_blocks(count, lambda size: _split_laplace(scale, size, source))


def _split_laplace(scale: float, count: int, source: Source) -> Integers:
    """Draw discrete Laplace integers of a large ``scale``: a geometric size in two parts, and a sign.

    ``count`` is how many to draw, from the words of ``source``.
    """
    out = _split_geometric(scale, count, source)
    negative = source.words(count) >> np.uint64(63) == 1
    again = np.flatnonzero(negative & (out == 0))
    while again.size:  # zero with either sign would count twice: draw those pairs again
        out[again] = _split_geometric(scale, again.size, source)
        negative[again] = source.words(again.size) >> np.uint64(63) == 1
        again = again[negative[again] & (out[again] == 0)]
    np.negative(out, out=out, where=negative)
    return out


def discrete_laplace_one(scale: float, source: Source) -> int:
    """Draw one integer of :func:`discrete_laplace` of this ``scale`` from ``source``, without arrays.

    Up to ``SPLIT_SCALE`` it is a rounded real number; above, its high and low bits are drawn separately, as in
    :func:`_split_geometric`.

    >>> from dither.randomness import SeededSource
    >>> discrete_laplace_one(10.0, SeededSource(1))
    3
    """
    if check_scale(scale) <= SPLIT_SCALE:
        return draw_one(_law(scale), scale, source)
    shift = math.frexp(scale)[1] - 25
    while True:
        high = draw_one(Exponential(), math.ldexp(scale, -shift), source, -0.5)
        low = _split_low(scale, shift, source)
        size = (high << shift) + low
        negative = source.word() >> 63
        if size or not negative:
            return -size if negative else size


def _split_low(scale: float, shift: int, source: Source) -> int:
    """Draw the low part R < 2^``shift`` of :func:`_split_geometric`, kept with probability exp(-R / ``scale``).

    exp(-x) >= 1 - x keeps nearly all proposals at once; enclosures decide the rest, with more bits of ``source``.
    """
    while True:
        low, word = source.word() >> (64 - shift), source.word()
        if word * 2.0**-64 < 1 - low / scale - 2.0**-40:
            return low
        if LazyUniform(word, 64, source).below(partial(exp_neg, low / Fraction(scale))):
            return low


@lru_cache(maxsize=256)
def _law(scale: float) -> DiscreteLaplace:
    """Return the standard law, cached since its constants take a while to compute."""
    return DiscreteLaplace(scale)
