"""Exact integers: uniform, geometric, discrete Laplace and discrete Gaussian, at scales from 2^-20 to 2^56; and trials.

A trial is decided in floats where a float with a known error can decide it, and otherwise by enclosures of the
exact probability and further bits of the same uniform number (:class:`~dither.randomness.source.LazyUniform`).

The discrete Gaussian comes by rejection from the normal law rounded to integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.exact import Enclosure, divide, exp_neg, normal_tail
from dither.randomness.lattice import CHUNK, MAGNITUDE, draw, draw_one, in_blocks, integer_steps, to_int64
from dither.randomness.laws import Exponential, Floats, Normal
from dither.randomness.source import LazyUniform, Source, Threshold, Words

Flags = NDArray[np.bool_]

_FLOAT_MARGIN = 2.0**-40


def uniform_integers(high: int, count: int, source: Source) -> NDArray[np.uint64]:
    """Draw independent uniform integers in ``[0, high)``, for ``1 <= high <= 2**64``, by rejection.

    ``count`` is how many to draw, from the words of ``source``. The smallest number of bits that holds ``high - 1`` is
    kept and values from ``high`` on are drawn again.

    >>> from dither.randomness import SeededSource
    >>> uniform_integers(6, 5, SeededSource(1))
    array([5, 4, 1, 3, 1], dtype=uint64)
    """
    if not 1 <= high <= 1 << 64:
        raise InvalidArgument("high", "an int from 1 to 2**64", high, "draw from a smaller range")
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
    """Draw one uniform integer in ``[0, high)``, for ``1 <= high <= 2**64``.

    >>> from dither.randomness import SeededSource
    >>> 0 <= uniform_integer(6, SeededSource(1)) < 6
    True
    """
    mask = (1 << (high - 1).bit_length()) - 1
    while True:
        result = source.word() & mask
        if result < high:
            return result


def below(words: Words, thresholds: Floats | float, exact: Callable[[int], Threshold], source: Source) -> Flags:
    """Return, for each word, whether a uniform number U that starts with its 64 bits is below a threshold.

    ``thresholds`` are floats accurate to a relative 2^-42. Where floats cannot decide, ``exact(i)`` encloses the
    threshold of word i, and more bits of U are taken from ``source``.
    """
    u = words * 2.0**-64
    limits = np.asarray(thresholds)
    # a word leaves U open by 2^-64, which the relative margin of a tiny threshold does not cover
    result: Flags = u < limits * (1 - _FLOAT_MARGIN) - 2.0**-60
    undecided = ~result & (u <= limits * (1 + _FLOAT_MARGIN) + 2.0**-60)
    for i in np.flatnonzero(undecided).tolist():
        result[i] = LazyUniform(int(words[i]), 64, source).below(exact(i))
    return result


def enclose_rational(p: Fraction, bits: int) -> Enclosure:
    """Enclose a rational number times ``2**bits``.

    >>> enclose_rational(Fraction(1, 3), 4)
    (5, 6)
    """
    scaled = p.numerator << bits
    return scaled // p.denominator, -(-scaled // p.denominator)


def bernoulli(p: Fraction | float | Floats, count: int, source: Source) -> Flags:
    """Draw independent trials with exactly these probabilities of success (a float is the binary number it is).

    ``p`` is one probability for all trials, or an array with one for each. ``count`` is how many to draw, from the
    words of ``source``.

    >>> from dither.randomness import SeededSource
    >>> bernoulli(Fraction(1, 3), 4, SeededSource(1))
    array([False,  True, False,  True])
    """
    values = np.asarray(float(p) if isinstance(p, Fraction) else p, dtype=np.float64)
    if not np.all((values >= 0) & (values <= 1)):
        raise InvalidArgument("p", "probabilities in [0, 1]", "one outside", "pass probabilities")

    def exact(i: int) -> Threshold:
        """Return the enclosure of the probability of trial i."""
        rate = p if isinstance(p, Fraction) else Fraction(float(values if values.ndim == 0 else values[i]))
        return partial(enclose_rational, rate)

    return _chunked(values, count, source, exact)


def bernoulli_exp(gamma: Fraction | float | Floats, count: int, source: Source) -> Flags:
    """Draw independent trials that succeed with probability ``exp(-gamma)``, ``gamma >= 0`` exactly as given.

    >>> from dither.randomness import SeededSource
    >>> bernoulli_exp(Fraction(1, 2), 4, SeededSource(1))
    array([ True,  True, False,  True])
    """
    values = np.asarray(float(gamma) if isinstance(gamma, Fraction) else gamma, dtype=np.float64)
    if not np.all(values >= 0) or np.any(np.isinf(values)):
        raise InvalidArgument("gamma", "finite numbers from 0 on", "a negative or infinite number", "pass gamma >= 0")

    def exact(i: int) -> Threshold:
        """Return the enclosure of the probability of trial i."""
        rate = gamma if isinstance(gamma, Fraction) else Fraction(float(values if values.ndim == 0 else values[i]))
        return lambda bits: exp_neg(rate, bits)

    return _chunked(np.exp(-values), count, source, exact)


def trials(p: float, exact: Threshold, count: int, source: Source) -> Flags:
    """Draw independent trials with the probability that ``exact`` encloses and ``p`` approximates to a relative 2^-42.

    >>> from dither.randomness import SeededSource
    >>> trials(0.5, lambda bits: (1 << bits - 1, 1 << bits - 1), 4, SeededSource(1)).size
    4
    """
    return _chunked(np.asarray(p), count, source, lambda _: exact)


def trial(p: float, exact: Threshold, source: Source) -> bool:
    """Draw one trial of :func:`trials`: return True with the probability that ``exact`` encloses.

    ``p`` is a float near that probability, to a relative 2^-42, which decides nearly always; ``source`` gives the
    bits.

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


def _shifted(exact: Callable[[int], Threshold], start: int) -> Callable[[int], Threshold]:
    """Return thresholds that are numbered from ``start`` on."""
    return lambda i: exact(start + i)


def _chunked(thresholds: Floats, count: int, source: Source, exact: Callable[[int], Threshold]) -> Flags:
    """Draw trials in chunks, so that memory is bounded.

    ``thresholds`` holds one probability for all trials or one for each, as floats, ``exact(i)`` encloses that of trial
    i, and ``count`` trials are drawn from ``source``.
    """
    out = np.empty(count, dtype=np.bool_)
    for start in range(0, count, CHUNK):
        part = out[start : start + CHUNK]
        chunk_thresholds = thresholds if thresholds.ndim == 0 else thresholds[start : start + CHUNK]
        part[:] = below(source.words(part.size), chunk_thresholds, _shifted(exact, start), source)
    return out


Integers = NDArray[np.int64]

SPLIT_SCALE = 2.0**26
MAX_SCALE = 2.0**56
MIN_SCALE = 2.0**-20


def check_scale(scale: float) -> float:
    """Return ``scale``; refuse one outside of 2^-20 to 2^56, for which the integer samplers are not proved.

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
    """Draw integers with ``P(K >= k) = exp(-k / scale)``: ``scale`` times an exponential variable, rounded down."""
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
        """Return ``ln cosh(h)`` with h = 1 / (2 scale), the constant by which the law differs from the exponential."""
        half = 0.5 / self.scale
        return half + math.log1p(math.exp(-2 * half)) - math.log(2)

    @cached_property
    def error(self) -> float:
        """Return a bound on the error of a quantile in floats: that of the logarithm plus that of the constant."""
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


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES = (_NODES + 1) / 4  # on [0, 1/2]
_NODES.setflags(write=False)
_WEIGHTS.setflags(write=False)
_KAPPA = 40.0
_NORMAL = Normal()


def _acceptance(k: Floats, sigma: float) -> Floats:
    """Return ``A(0) / A(k)`` in floats, the probability to keep a rounded normal number k.

    ``A(k)`` is the integral over (0, 1/2) of exp(-s^2 / (2 sigma^2)) cosh(k s / sigma^2).

    Gauss-Legendre with 20 nodes: for k / sigma^2 <= 40 and sigma >= 0.15 the error term of the rule, relative
    to A(k), is below 2^-36.
    """
    base = _WEIGHTS * np.exp(-(_NODES**2) / (2 * sigma * sigma))
    top = np.cosh(np.multiply.outer(k / (sigma * sigma), _NODES)) @ base
    ratio: Floats = base.sum() / np.asarray(top)
    return ratio


def _exact_acceptance(k: int, sigma: Fraction) -> Threshold:
    """Return the probability with which a proposal k of rounded normal noise is kept, enclosed at any precision.

    It is exp(-k^2 / (2 sigma^2)) P(cell 0) / P(cell k); the cell of k are the numbers that are rounded to k.
    """
    half = Fraction(1, 2)

    def threshold(bits: int) -> Enclosure:
        """Enclose the probability of keeping k, times ``2**bits``: the cells follow from normal tails at their ends."""
        rate = Fraction(k * k) / (2 * sigma * sigma)
        work_bits = bits + 32 + 2 * int(rate * 3 / 2) + 2 * max(0, math.frexp(float(sigma))[1])
        upper_tail, lower_tail = normal_tail((k - half) / sigma, work_bits), normal_tail((k + half) / sigma, work_bits)
        cell = upper_tail[0] - lower_tail[1], upper_tail[1] - lower_tail[0]
        middle = normal_tail(half / sigma, work_bits)
        one = 1 << work_bits
        center = 2 * (one - middle[1]), 2 * (one - middle[0])  # both tails are counted in `cell`
        decay = exp_neg(rate, work_bits)
        numerator = decay[0] * center[0] >> work_bits, (decay[1] * center[1] >> work_bits) + 1
        low, high = divide(numerator, (max(cell[0], 1), cell[1]), bits)
        return low, min(high, 1 << bits)

    return threshold


def discrete_gaussian(sigma: float, count: int, source: Source) -> Integers:
    """Draw integers with probability proportional to ``exp(-k^2 / (2 sigma^2))`` (Canonne, Kamath and Steinke 2020).

    ``count`` is how many to draw, from the words of ``source``. The proposal is the normal law rounded to integers,
    whose cell k has mass proportional to exp(-k^2/2s^2) A(k) with A as in :func:`_acceptance`; it is kept with
    probability A(0)/A(k) >= 1/cosh(k/2s^2) >= 1 - k^2/8s^4, so one comparison keeps nearly all, a quadrature decides
    most others, and enclosures the rest. For very wide laws the proposal is the discrete Laplace law.

    >>> from dither.randomness import SeededSource
    >>> discrete_gaussian(10.0, 4, SeededSource(1))
    array([  3,  14, -11,   6])
    """
    propose = _gaussian_from_laplace if check_scale(sigma) > SPLIT_SCALE else _gaussian_from_rounded

    def block(size: int) -> Integers:
        """Draw a block of integers, repeating rejected proposals."""
        out, rejected = propose(sigma, size, source)
        while rejected.size:
            out[rejected], again = propose(sigma, rejected.size, source)
            rejected = rejected[again]
        return out

    return in_blocks(count, block)


def discrete_gaussian_one(sigma: float, source: Source) -> int:
    """Draw one integer of :func:`discrete_gaussian` for ``sigma`` from ``source``, without arrays.

    The tests of a proposal go from cheap to exact: the lower bound ``1 - k^2 / (8 sigma^4)`` of the probability to
    keep it, a quadrature with its margin of error, and an enclosure.

    >>> from dither.randomness import SeededSource
    >>> discrete_gaussian_one(10.0, SeededSource(1))
    3
    """
    if check_scale(sigma) > SPLIT_SCALE:
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


def _gaussian_from_rounded(sigma: float, count: int, source: Source) -> tuple[Integers, Integers]:
    """Return proposals from rounded normal noise, and the indices of those that are rejected.

    ``count`` proposals are drawn for ``sigma`` from ``source``. With K the largest of the sizes, every one is kept
    with probability 1 - K^2/8s^4 or more, so words below that are not looked at again; a word's uniform number is less
    than one more than the word.
    """
    k = integer_steps(_NORMAL, sigma, count, source)
    words = source.words(count)
    largest = float(max(k.max(initial=0), -k.min(initial=0)))
    certain_acceptance = max(0.0, 1 - largest * largest / (8 * sigma**4) - 2.0**-40)
    rest = np.flatnonzero(words >= np.uint64(int(certain_acceptance * 2.0**64)))
    size, u = np.abs(k[rest]).astype(np.float64), words[rest] * 2.0**-64
    uncertain = u >= 1 - size * size / (8 * sigma**4) - 2.0**-40
    rest, size, u = rest[uncertain], size[uncertain], u[uncertain]
    if not rest.size:
        return k, rest
    quick = (size <= _KAPPA * sigma * sigma) & (sigma >= 0.15)
    value = _acceptance(np.where(quick, size, 0.0), sigma)
    rejected = quick & (u > value * (1 + 2.0**-34) + 2.0**-60)
    undecided = ~rejected & ~(quick & (u < value * (1 - 2.0**-34)))
    for i in np.flatnonzero(undecided).tolist():
        index = int(rest[i])
        threshold = _exact_acceptance(abs(int(k[index])), Fraction(sigma))
        rejected[i] = not LazyUniform(int(words[index]), 64, source).below(threshold)
    return k, rest[rejected]


def _gaussian_from_laplace(sigma: float, count: int, source: Source) -> tuple[Integers, Integers]:
    """Return proposals from discrete Laplace noise of scale t = ``sigma``, and the indices of those that are rejected.

    ``count`` is how many to draw, from the words of ``source``. A proposal is kept with probability exp(-(|k| -
    sigma^2/t)^2 / (2 sigma^2)).
    """
    k = discrete_laplace(sigma, count, source)
    exact_sigma = Fraction(sigma)

    def exact(i: int) -> Threshold:
        """Return the enclosure of the probability that proposal i is kept."""
        rate = (abs(int(k[i])) - exact_sigma) ** 2 / (2 * exact_sigma**2)
        return lambda bits: exp_neg(rate, bits)

    size = np.abs(k)
    rate = ((size.astype(np.float64) - sigma) / sigma) ** 2 / 2
    # the rounding of |k| to a float moves the rate by less than 2^-44 where |k| < 2^8 sigma; beyond, exp(-rate)
    # < 2^-60 decides
    return k, np.flatnonzero(~below(source.words(count), np.exp(-rate), exact, source))
