"""One combinator for every noise law: the lattice point nearest to x + Z, correctly rounded.

The ideal mechanism adds a real-valued Z to a real x. What leaves dither is the nearest multiple of a spacing
that is a power of two chosen from public parameters alone, a function of the ideal output, so whatever was
proved of the ideal mechanism holds as it stands, for any float x. The result is found as correctly rounded
mathematical libraries find theirs (Ziv 1991):

1. From 64 random bits compute ``c = fraction + scale * Q(u)`` in floats, knowing ``|c - true| <= bound``.
2. If ``c`` is farther than the bound from the nearest half-integer, every real number these bits can still
   become rounds to the same lattice point, ``rint(c)``: done. This decides all but a few draws in a million.
3. Otherwise compare U with rigorous enclosures of the law's tail at the half-integers nearby, drawing more bits
   of U when they are needed.

The bound: the quantile is off by ``error`` (see :mod:`dither.randomness.laws`); the product and the sum round
to within ``2^-52`` of numbers below ``scale * 14 + 1``. Hence ``bound = scale * (error + 2^-47) + 2^-50``.

Draws are made in chunks that stay in cache, so the extra memory does not grow with their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.exact.search import largest_integer
from dither.randomness.laws import LOW, Floats, Law
from dither.randomness.source import LazyUniform, Source

CHUNK = 1 << 14
BLOCK = 2 * CHUNK
MAGNITUDE = (1 << 63) - 1
_UNIT = 2.0**-63
_EXACT_FLOAT = 2.0**52


@dataclass(frozen=True)
class Steps:
    """Noise in lattice steps: whole numbers as floats, and the few too large for a float to hold."""

    values: Floats
    large: dict[int, int]


def bound(scale: float, error: float) -> float:
    """Return how far the float value of ``fraction + scale * Q`` can be from the true one.

    >>> bound(1.0, 2.0**-40) < 2.0**-39
    True
    """
    return scale * (error + 2.0**-47) + 2.0**-50


def settle(u: LazyUniform, negative: bool, law: Law, scale: Fraction, fraction: Fraction) -> int:
    """Return the integer nearest to ``fraction + scale * Z``, decided by enclosures alone.

    Z is a draw of ``law``: ``u`` is the uniform number behind its size and ``negative`` its sign. With s the sign, it
    is s * (the largest k with s * fraction + scale * |Z| >= k - 1/2), that is U <= tail((k - 1/2 - s * fraction) /
    scale).
    """
    sign = -1 if negative else 1
    shift = sign * fraction

    def reached(k: int) -> bool:
        """Return whether the result is at least k."""
        z = (k - Fraction(1, 2) - shift) / scale
        return (law.symmetric and z <= 0) or u.below(lambda bits: law.tail(z, bits))

    guess, _ = law.quantile_one(u.approximate())
    return sign * largest_integer(reached, round(shift + scale * Fraction(guess)))


def draw(
    law: Law,
    scale: float,
    count: int,
    source: Source,
    fractions: Floats | float = 0.0,
    exact_fraction: Callable[[int], Fraction] | None = None,
) -> Steps:
    """Draw ``count`` independent values of ``rint(fraction + scale * Z)``, Z of the standard ``law``.

    ``fractions`` is one number for all values or one for each, and ``source`` gives one word for each.
    ``exact_fraction(i)`` gives the i-th fraction where the float in ``fractions`` is only near it (to 2^-52). Values
    are computed in floats; those too near to a half to be sure are settled exactly. Integers from 2^52 on, which a
    float may not hold, are in ``large`` of the result, by their index.

    >>> from dither.randomness import SeededSource
    >>> from dither.randomness.laws import Exponential
    >>> draw(Exponential(symmetric=True), 10.0, 3, SeededSource(1)).values
    array([  3.,  18., -13.])
    """
    out = np.empty(count)
    large: dict[int, int] = {}
    for start in range(0, count, CHUNK):
        steps = out[start : start + CHUNK]
        words = source.words(steps.size)
        u = np.empty(steps.size)
        np.copyto(u, (words & np.uint64(MAGNITUDE)).view(np.int64), casting="unsafe")
        u *= _UNIT
        outside = u.min() < LOW or u.max() > law.high
        doubtful = (u < LOW) | (u > law.high) if outside else None
        if doubtful is not None:
            u[doubtful] = 0.5
        errors = law.quantile(u)
        u *= scale
        if law.symmetric:
            np.copysign(u, words.view(np.float64), out=u)
        u += fractions if isinstance(fractions, float) else fractions[start : start + CHUNK]
        np.rint(u, out=steps)
        limit: Floats | float
        if errors is None:
            limit = 0.5 - bound(scale, law.error)
        else:
            limit = 0.5 - scale * (errors + 2.0**-47) - 2.0**-50 * (1 + np.abs(u))
            limit[np.abs(u) > _EXACT_FLOAT / 4] = -1.0
        u -= steps
        np.abs(u, out=u)
        if doubtful is not None or errors is not None or u.max() > limit:
            undecided = ~(u <= limit)
            if doubtful is not None:
                undecided |= doubtful
            for i in np.flatnonzero(undecided).tolist():
                word = int(words[i])
                if exact_fraction is not None:
                    fraction = exact_fraction(start + i)
                else:
                    fraction = Fraction(fractions if isinstance(fractions, float) else float(fractions[start + i]))
                negative = law.symmetric and word > MAGNITUDE
                step = settle(LazyUniform(word & MAGNITUDE, 63, source), negative, law, Fraction(scale), fraction)
                steps[i] = step
                if abs(step) >= _EXACT_FLOAT:
                    large[start + i] = step
    return Steps(out, large)


def draw_one(
    law: Law, scale: float, source: Source, fraction: float = 0.0, exact_fraction: Fraction | None = None
) -> int:
    """Draw one value of :func:`draw`, without arrays.

    ``law``, ``scale`` and ``source`` are as there; ``exact_fraction`` is the fraction where the float ``fraction`` is
    only near it, or None where it is exact.

    >>> from dither.randomness import SeededSource
    >>> from dither.randomness.laws import Exponential
    >>> draw_one(Exponential(symmetric=True), 10.0, SeededSource(1))
    3
    """
    word = source.word()
    u = (word & MAGNITUDE) * _UNIT
    negative = word > MAGNITUDE and law.symmetric
    if LOW <= u <= law.high:
        z, error = law.quantile_one(u)
        c = scale * z
        c = fraction - c if negative else fraction + c
        if abs(c) < _EXACT_FLOAT / 4:
            k = round(c)
            if abs(c - k) <= 0.5 - (scale * (error + 2.0**-47) + 2.0**-50 * (1 + abs(c))):
                return k
    exact = Fraction(fraction) if exact_fraction is None else exact_fraction
    return settle(LazyUniform(word & MAGNITUDE, 63, source), negative, law, Fraction(scale), exact)


def spacing(scale: float) -> float:
    """Return the public lattice step for noise of this scale: a power of two with 2^20 to 2^21 steps to the scale.

    >>> spacing(1.0) == 2.0**-20
    True
    """
    return math.ldexp(1.0, math.frexp(scale)[1] - 21)


def round_nearest(x: Fraction | float, law: Law, scale: float, step: float, source: Source) -> float:
    """Release x: draw Z from the standard ``law`` and return the multiple of ``step`` nearest to ``x + scale * Z``.

    ``step`` is a power of two. x is split into the nearest lattice point and an exact rest, to which the noise is
    added, so the result is that of exact real numbers, rounded once.

    >>> from dither.randomness import SeededSource
    >>> from dither.randomness.laws import Exponential
    >>> round_nearest(0.3, Exponential(symmetric=True), 1.0, 0.25, SeededSource(1))
    0.5
    """
    if isinstance(x, float) and abs(x) < step * _EXACT_FLOAT and (abs(x) > step * 2.0**-900 or x == 0):
        position = x / step
        nearest = round(position)
        return (nearest + draw_one(law, scale / step, source, position - nearest)) * step
    exact = Fraction(x) / Fraction(step)
    nearest = round(exact)
    rest = exact - nearest
    return _to_float(nearest + draw_one(law, scale / step, source, float(rest), rest), step)


def round_nearest_all(x: Floats, law: Law, scale: float, step: float, source: Source) -> Floats:
    """Return :func:`round_nearest` of each element of ``x``: with noise, on a lattice.

    The noise is ``scale`` times a draw of ``law`` from ``source``, and ``step`` is the distance of lattice points.

    >>> from dither.randomness import SeededSource
    >>> from dither.randomness.laws import Exponential
    >>> round_nearest_all(np.array([0.3, 100.0]), Exponential(symmetric=True), 1.0, 0.25, SeededSource(1))
    array([  0.5 , 101.75])
    """
    out = np.empty(x.size)
    for start in range(0, x.size, BLOCK):
        part = x[start : start + BLOCK]
        position = out[start : start + BLOCK]
        if max(float(part.max()), -float(part.min())) < step * _EXACT_FLOAT:
            _round_block(part, position, law, scale, step, source)
        else:
            position[:] = [round_nearest(value, law, scale, step, source) for value in part.tolist()]
    return out


def _round_block(x: Floats, out: Floats, law: Law, scale: float, step: float, source: Source) -> None:
    """Write the noisy values of ``x`` on the lattice to ``out``, where all lattice numbers are below 2^52.

    The noise is ``scale`` times a draw of ``law`` from ``source``, and ``step`` is the distance of lattice points, a
    power of two. Then ``x / step``, its nearest integer and their difference are exact floats.
    """
    with np.errstate(under="ignore"):  # a vanishing x: its fraction is then taken from x itself where it matters
        fractions = x * (1 / step)
    np.rint(fractions, out=out)
    fractions -= out

    def exact_fraction(i: int) -> Fraction:
        """Return the exact distance of element i from its nearest lattice number."""
        exact = Fraction(float(x[i])) / Fraction(step)
        return exact - round(exact)

    steps = draw(law, scale / step, x.size, source, fractions, exact_fraction)
    for i, k in steps.large.items():
        steps.values[i] = 0.0
        steps.large[i] = int(out[i]) + k
    out += steps.values
    with np.errstate(over="ignore"):  # beyond the floats is infinity, as for one value
        out *= step
    out += 0.0  # -0.0 would show the sign of the noise
    for i, total in steps.large.items():
        out[i] = _to_float(total, step)


def _to_float(number: int, step: float) -> float:
    """Return a lattice number as a float; infinite beyond the range of floats."""
    try:
        return float(number * Fraction(step))
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def integer_steps(law: Law, scale: float, count: int, source: Source) -> NDArray[np.int64]:
    """Draw noise for integers: the integer nearest to ``scale * Z``, saturated at the ends of 64 bits.

    >>> from dither.randomness import SeededSource
    >>> from dither.randomness.laws import Exponential
    >>> integer_steps(Exponential(symmetric=True), 10.0, 3, SeededSource(1))
    array([  3,  18, -13])
    """
    return in_blocks(count, lambda size: to_int64(draw(law, scale, size, source)))


def in_blocks(count: int, block: Callable[[int], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return ``count`` integers from calls of ``block(size)`` that fit the cache, so that memory stays bounded.

    >>> in_blocks(3, lambda size: np.arange(size))
    array([0, 1, 2])
    """
    if count <= BLOCK:
        return block(count)
    out = np.empty(count, dtype=np.int64)
    for start in range(0, count, BLOCK):
        part = out[start : start + BLOCK]
        part[:] = block(part.size)
    return out


def to_int64(steps: Steps) -> NDArray[np.int64]:
    """Return steps as 64-bit integers, saturated at the ends.

    >>> to_int64(Steps(np.array([1.0]), {0: 2**70})) == 2**63 - 1
    array([ True])
    """
    values = steps.values
    for i in steps.large:
        values[i] = 0.0
    out = values.astype(np.int64)
    for i, k in steps.large.items():
        out[i] = min(max(k, -(1 << 63)), MAGNITUDE)
    return out
