"""Exact samplers of integers: uniform, Bernoulli, geometric, discrete Laplace, discrete Gaussian.

Each decides in floats whatever a float with a known error can decide, and leaves the rest to enclosures of the exact
probability and further bits of the same uniform number (:class:`~dither.randomness.lazy.LazyUniform`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, message
from dither.exact import Enclosure, divide, exp_neg, normal_tail
from dither.randomness.lattice import CHUNK, MAGNITUDE, draw, draw_one, in_blocks, integer_steps, to_int64
from dither.randomness.laws import Exponential, Floats
from dither.randomness.lazy import LazyUniform, Threshold
from dither.randomness.normal import Normal
from dither.randomness.source import Source, Words

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

SPLIT_SCALE = 2.0**26
MAX_SCALE = 2.0**56
MIN_SCALE = 2.0**-20
_FLOAT_MARGIN = 2.0**-40


def _check_scale(scale: float) -> float:
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise InvalidArgument(
            message(
                "scale",
                f"a scale from {MIN_SCALE:.3g} to {MAX_SCALE:.3g} lattice steps",
                scale,
                "measure in other units",
            )
        )
    return scale


def uniform_integers(high: int, count: int, source: Source) -> NDArray[np.uint64]:
    """Independent uniform integers in ``[0, high)``, for ``1 <= high <= 2**64``.

    The smallest number of bits that holds ``high - 1`` is kept and values from ``high`` on are drawn again.

    >>> from dither.randomness import SeededSource
    >>> uniform_integers(6, 5, SeededSource(1))
    array([5, 4, 1, 3, 1], dtype=uint64)
    """
    if not 1 <= high <= 1 << 64:
        raise InvalidArgument(message("high", "an int from 1 to 2**64", high, "draw from a smaller range"))
    mask = np.uint64((1 << (high - 1).bit_length()) - 1)
    top = np.uint64(high - 1)
    out = np.empty(count, dtype=np.uint64)
    filled = 0
    while filled < count:
        words = source.words(min(CHUNK, 2 * (count - filled) + 8)) & mask
        kept = words[words <= top][: count - filled]
        out[filled : filled + kept.size] = kept
        filled += kept.size
    return out


def uniform_integer(high: int, source: Source) -> int:
    """One uniform integer in ``[0, high)``, for ``1 <= high <= 2**64``.

    >>> from dither.randomness import SeededSource
    >>> 0 <= uniform_integer(6, SeededSource(1)) < 6
    True
    """
    mask = (1 << (high - 1).bit_length()) - 1
    while True:
        found = source.word() & mask
        if found < high:
            return found


def _below(words: Words, thresholds: Floats | float, exact: Callable[[int], Threshold], source: Source) -> Flags:
    """U < threshold for each word; ``thresholds`` are floats good to a relative 2^-42."""
    u = words * 2.0**-64
    certain = np.asarray(thresholds)
    # a word leaves U open by 2^-64, which the relative margin of a tiny threshold does not cover
    result: Flags = u < certain * (1 - _FLOAT_MARGIN) - 2.0**-60
    undecided = ~result & (u <= certain * (1 + _FLOAT_MARGIN) + 2.0**-60)
    for i in np.flatnonzero(undecided).tolist():
        result[i] = LazyUniform(int(words[i]), 64, source).below(exact(i))
    return result


def _rational_threshold(p: Fraction) -> Threshold:
    def threshold(bits: int) -> Enclosure:
        scaled = p.numerator << bits
        return scaled // p.denominator, -(-scaled // p.denominator)

    return threshold


def bernoulli(p: Fraction | float | Floats, count: int, source: Source) -> Flags:
    """Independent trials with exactly these probabilities of success (a float is the binary number it is).

    >>> from dither.randomness import SeededSource
    >>> bernoulli(Fraction(1, 3), 4, SeededSource(1))
    array([False,  True, False,  True])
    """
    values = np.asarray(float(p) if isinstance(p, Fraction) else p, dtype=np.float64)
    if not np.all((values >= 0) & (values <= 1)):
        raise InvalidArgument(message("p", "probabilities in [0, 1]", "one outside", "pass probabilities"))

    def exact(i: int) -> Threshold:
        return _rational_threshold(
            p if isinstance(p, Fraction) else Fraction(float(values if values.ndim == 0 else values[i]))
        )

    return _chunked(values, count, source, exact)


def bernoulli_exp(gamma: Fraction | float | Floats, count: int, source: Source) -> Flags:
    """Independent trials that succeed with probability ``exp(-gamma)``, ``gamma >= 0`` exactly as given.

    >>> from dither.randomness import SeededSource
    >>> bernoulli_exp(Fraction(1, 2), 4, SeededSource(1))
    array([ True,  True, False,  True])
    """
    values = np.asarray(float(gamma) if isinstance(gamma, Fraction) else gamma, dtype=np.float64)
    if not np.all(values >= 0) or np.any(np.isinf(values)):
        raise InvalidArgument(message("gamma", "finite numbers from 0 on", "one that is not", "pass gamma >= 0"))

    def exact(i: int) -> Threshold:
        rate = gamma if isinstance(gamma, Fraction) else Fraction(float(values if values.ndim == 0 else values[i]))
        return lambda bits: exp_neg(rate, bits)

    return _chunked(np.exp(-values), count, source, exact)


def trials(p: float, exact: Threshold, count: int, source: Source) -> Flags:
    """Independent trials with the success probability that ``exact`` encloses and ``p`` is near to (a relative
    2^-42).

    >>> from dither.randomness import SeededSource
    >>> trials(0.5, lambda bits: (1 << bits - 1, 1 << bits - 1), 4, SeededSource(1)).size
    4
    """
    return _chunked(np.asarray(p), count, source, lambda _: exact)


def trial(p: float, exact: Threshold, source: Source) -> bool:
    """One trial of :func:`trials`.

    >>> from dither.randomness import SeededSource
    >>> trial(0.0, lambda bits: (0, 0), SeededSource(1))
    False
    """
    word = source.word()
    u = word * 2.0**-64
    if u < p * (1 - _FLOAT_MARGIN) - 2.0**-60:
        return True
    if u > p * (1 + _FLOAT_MARGIN) + 2.0**-60:
        return False
    return LazyUniform(word, 64, source).below(exact)


def _chunked(thresholds: Floats, count: int, source: Source, exact: Callable[[int], Threshold]) -> Flags:
    out = np.empty(count, dtype=np.bool_)
    for start in range(0, count, CHUNK):
        part = out[start : start + CHUNK]
        some = thresholds if thresholds.ndim == 0 else thresholds[start : start + CHUNK]
        part[:] = _below(source.words(part.size), some, lambda i, start=start: exact(start + i), source)  # type: ignore[misc]
    return out


def geometric(scale: float, count: int, source: Source) -> Integers:
    """Integers with ``P(K >= k) = exp(-k / scale)``: the floor of ``scale`` times an exponential variable.

    >>> from dither.randomness import SeededSource
    >>> geometric(10.0, 4, SeededSource(1))
    array([ 3, 18, 13,  5])
    """
    block = _split_geometric if _check_scale(scale) > SPLIT_SCALE else _floor_geometric
    return in_blocks(count, lambda size: block(scale, size, source))


def _floor_geometric(scale: float, count: int, source: Source) -> Integers:
    return to_int64(draw(Exponential(), scale, count, source, -0.5))


def _split_geometric(scale: float, count: int, source: Source) -> Integers:
    """K = m A + R: A geometric of scale / m, R < m uniform and kept with probability exp(-R / scale), above 1 -
    2^-24.
    """
    shift = math.frexp(scale)[1] - 25
    high = _floor_geometric(math.ldexp(scale, -shift), count, source)
    low = np.empty(count, dtype=np.int64)
    todo = np.arange(count)
    while todo.size:
        proposal = (source.words(todo.size) >> np.uint64(64 - shift)).astype(np.int64)

        def exact(i: int, proposal: Integers = proposal) -> Threshold:
            rate = Fraction(int(proposal[i])) / Fraction(scale)
            return lambda bits: exp_neg(rate, bits)

        kept = _below(source.words(todo.size), np.exp(proposal / -scale), exact, source)
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
        half = 0.5 / self.scale
        return half + math.log1p(math.exp(-2 * half)) - math.log(2)

    @cached_property
    def error(self) -> float:
        """That of the exponential law, and of the constant."""
        return 2.0**-41 + self._offset * 2.0**-45

    def quantile(self, u: Floats) -> None:
        """-ln u - ln cosh, in place; a negative value rounds to zero as it should."""
        np.log(u, out=u)
        np.negative(u, out=u)
        u -= self._offset

    def quantile_one(self, u: float) -> tuple[float, float]:
        """As :meth:`quantile`."""
        return -math.log(u) - self._offset, self.error

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """2 exp(-z - h) / (1 + exp(-2h)) with h = 1 / (2 scale)."""
        half = Fraction(1, 2) / Fraction(self.scale)
        if z <= 0:
            return 1 << bits, 1 << bits
        work = bits + 4
        top, pair = exp_neg(z + half, work), exp_neg(2 * half, work)
        low, high = divide((2 * top[0], 2 * top[1]), ((1 << work) + pair[0], (1 << work) + pair[1]), bits)
        return low, min(high, 1 << bits)


def discrete_laplace(scale: float, count: int, source: Source) -> Integers:
    """Integers with probability proportional to ``exp(-|k| / scale)``.

    >>> from dither.randomness import SeededSource
    >>> discrete_laplace(10.0, 4, SeededSource(1))
    array([  3,  18, -13,   6])
    """
    if _check_scale(scale) <= SPLIT_SCALE:
        return integer_steps(DiscreteLaplace(scale), scale, count, source)
    return in_blocks(count, lambda size: _split_laplace(scale, size, source))


def _split_laplace(scale: float, count: int, source: Source) -> Integers:
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
    """One draw of :func:`discrete_laplace`, without arrays.

    >>> from dither.randomness import SeededSource
    >>> discrete_laplace_one(10.0, SeededSource(1))
    3
    """
    if _check_scale(scale) <= SPLIT_SCALE:
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
    """The low part of :func:`_split_geometric`; exp(-x) >= 1 - x keeps nearly all at once."""
    while True:
        low, word = source.word() >> (64 - shift), source.word()
        if word * 2.0**-64 < 1 - low / scale - 2.0**-40:
            return low
        rate = low / Fraction(scale)
        if LazyUniform(word, 64, source).below(lambda bits, rate=rate: exp_neg(rate, bits)):  # type: ignore[misc]
            return low


@lru_cache(maxsize=256)
def _law(scale: float) -> DiscreteLaplace:
    return DiscreteLaplace(scale)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES = (_NODES + 1) / 4  # on [0, 1/2]
_KAPPA = 40.0
_NORMAL = Normal()


def _acceptance(k: Floats, sigma: float) -> Floats:
    """``A(0) / A(k)`` with ``A(k)`` the integral over (0, 1/2) of exp(-s^2 / (2 sigma^2)) cosh(k s / sigma^2),
    in floats.

    Gauss-Legendre with 20 nodes: for k / sigma^2 <= 40 and sigma >= 0.15 the error term of the rule, relative
    to A(k), is below 2^-36.
    """
    base = _WEIGHTS * np.exp(-(_NODES**2) / (2 * sigma * sigma))
    top = np.cosh(np.multiply.outer(k / (sigma * sigma), _NODES)) @ base
    ratio: Floats = base.sum() / np.asarray(top)
    return ratio


def _exact_acceptance(k: int, sigma: Fraction) -> Threshold:
    """Enclose exp(-k^2 / (2 sigma^2)) P(cell 0) / P(cell k) for the rounded normal."""
    half = Fraction(1, 2)

    def threshold(bits: int) -> Enclosure:
        rate = Fraction(k * k) / (2 * sigma * sigma)
        work = bits + 32 + 2 * int(rate * 3 / 2) + 2 * max(0, math.frexp(float(sigma))[1])
        near, far = normal_tail((k - half) / sigma, work), normal_tail((k + half) / sigma, work)
        cell = near[0] - far[1], near[1] - far[0]
        middle = normal_tail(half / sigma, work)
        center = 2 * ((1 << work) - middle[1]), 2 * ((1 << work) - middle[0])  # both tails are counted in `cell`
        decay = exp_neg(rate, work)
        numerator = decay[0] * center[0] >> work, (decay[1] * center[1] >> work) + 1
        low, high = divide(numerator, (max(cell[0], 1), cell[1]), bits)
        return low, min(high, 1 << bits)

    return threshold


def discrete_gaussian(sigma: float, count: int, source: Source) -> Integers:
    """Integers with probability proportional to ``exp(-k^2 / (2 sigma^2))`` (Canonne, Kamath and Steinke 2020).

    The proposal is the normal law rounded to integers, whose cell k has mass proportional to exp(-k^2/2s^2)
    A(k) with A as in :func:`_acceptance`; it is kept with probability A(0)/A(k) >= 1/cosh(k/2s^2) >= 1 -
    k^2/8s^4, so one comparison keeps nearly all, a quadrature decides most others, and enclosures the rest. For
    very wide laws the proposal is the discrete Laplace law.

    >>> from dither.randomness import SeededSource
    >>> discrete_gaussian(10.0, 4, SeededSource(1))
    array([  3,  14, -11,   6])
    """
    propose = _gaussian_from_laplace if _check_scale(sigma) > SPLIT_SCALE else _gaussian_from_rounded

    def block(size: int) -> Integers:
        out = np.empty(size, dtype=np.int64)
        todo = np.arange(size)
        while todo.size:
            proposal, kept = propose(sigma, todo.size, source)
            out[todo[kept]] = proposal[kept]
            todo = todo[~kept]
        return out

    return in_blocks(count, block)


def discrete_gaussian_one(sigma: float, source: Source) -> int:
    """One draw of :func:`discrete_gaussian`, without arrays.

    >>> from dither.randomness import SeededSource
    >>> discrete_gaussian_one(10.0, SeededSource(1))
    3
    """
    if _check_scale(sigma) > SPLIT_SCALE:
        return int(discrete_gaussian(sigma, 1, source)[0])
    while True:
        k, word = draw_one(_NORMAL, sigma, source), source.word()
        u = word * 2.0**-64
        if u < 1 - k * k / (8 * sigma**4) - 2.0**-40:
            return k
        if sigma >= 0.15 and abs(k) <= _KAPPA * sigma * sigma:
            value = float(_acceptance(np.array(abs(k)), sigma))
            if u < value * (1 - 2.0**-34):
                return k
            if u > value * (1 + 2.0**-34) + 2.0**-60:
                continue
        if LazyUniform(word, 64, source).below(_exact_acceptance(abs(k), Fraction(sigma))):
            return k


def _gaussian_from_rounded(sigma: float, count: int, source: Source) -> tuple[Integers, Flags]:
    k = integer_steps(_NORMAL, sigma, count, source)
    size = np.abs(k).astype(np.float64)
    words = source.words(count)
    u = words * 2.0**-64
    kept: Flags = u < 1 - size * size / (8 * sigma**4) - 2.0**-40
    rest = np.flatnonzero(~kept)
    if rest.size:
        quick = (size[rest] <= _KAPPA * sigma * sigma) & (sigma >= 0.15)
        value = _acceptance(np.where(quick, size[rest], 0.0), sigma)
        sure = quick & (u[rest] < value * (1 - 2.0**-34))
        unsure = ~sure & ~(quick & (u[rest] > value * (1 + 2.0**-34) + 2.0**-60))
        kept[rest[sure]] = True
        for i in rest[unsure].tolist():
            kept[i] = LazyUniform(int(words[i]), 64, source).below(_exact_acceptance(abs(int(k[i])), Fraction(sigma)))
    return k, kept


def _gaussian_from_laplace(sigma: float, count: int, source: Source) -> tuple[Integers, Flags]:
    """Propose discrete Laplace of scale t = sigma, keep with probability exp(-(|k| - sigma^2/t)^2 / (2 sigma^2))."""
    k = discrete_laplace(sigma, count, source)
    exact_sigma = Fraction(sigma)

    def exact(i: int) -> Threshold:
        rate = (abs(int(k[i])) - exact_sigma) ** 2 / (2 * exact_sigma**2)
        return lambda bits: exp_neg(rate, bits)

    size = np.abs(k)
    rate = ((size.astype(np.float64) - sigma) / sigma) ** 2 / 2
    # the rounding of |k| to a float moves the rate by less than 2^-44 where |k| < 2^8 sigma; beyond, exp(-rate)
    # < 2^-60 decides
    return k, _below(source.words(count), np.exp(-rate), exact, source)
