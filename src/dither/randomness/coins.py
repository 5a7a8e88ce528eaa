"""Exact uniform integers, and Bernoulli trials with exactly given probabilities.

A trial is decided in floats where a float with a known error can decide it, and otherwise by enclosures of the
exact probability and further bits of the same uniform number (:class:`~dither.randomness.source.LazyUniform`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.exact import Enclosure, exp_neg
from dither.randomness.lattice import CHUNK
from dither.randomness.laws import Floats
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
