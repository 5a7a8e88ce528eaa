"""Exponential clocks: which of many rings first, decided exactly.

If clock i rings after ``E_i / w_i`` with independent standard exponential ``E_i``, it is the first with
probability ``w_i / sum(w)``: a draw in proportion to the weights without ever adding them up. Here ``w_i =
counts_i * exp(factor * scores_i)``, so scores of any size can be raced.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, message
from dither.exact import Enclosure, log
from dither.randomness.lattice import CHUNK, MAGNITUDE
from dither.randomness.laws import LOW, Floats, Gumbel
from dither.randomness.lazy import LazyUniform
from dither.randomness.source import Source

_GUMBEL = Gumbel()


def first_to_ring(
    scores: Floats,
    source: Source,
    factor: Fraction = Fraction(1),
    counts: NDArray[np.int64] | None = None,
) -> int:
    """The index of the clock that rings first: ``P(i)`` is proportional to ``counts[i] * exp(factor * scores[i])``.

    One pass compares ``factor * score + ln(count) + G``, G a Gumbel variable, in floats. Each key is known to
    within ``2^-39 + 2^-49 m``, m the size of its parts: the Gumbel quantile to 2^-40, the logarithm to 2^-40
    for counts below 2^63, the product and the sums to 2^-50 m. Clocks that this leaves in the race, and those
    whose word the float quantile cannot take, are compared exactly, on as many bits as it needs. A score of
    -inf, or a count of 0, never rings.

    >>> from dither.randomness import SeededSource
    >>> first_to_ring(np.array([0.0, 50.0, -np.inf]), SeededSource(1))
    1
    """
    rates = scores * float(factor)
    if scores.size == 0 or np.any(np.isnan(rates)) or np.any(np.isposinf(rates)):
        raise InvalidArgument(
            message("scores", "at least one, none NaN or too large", "something else", "pass finite scores")
        )
    alive = rates > -np.inf
    if counts is not None:
        alive &= counts > 0
    best = -math.inf
    contenders: list[tuple[float, int, int]] = []
    for start in range(0, rates.size, CHUNK):
        part = slice(start, start + CHUNK)
        here = alive[part]
        words = source.words(here.size) & np.uint64(MAGNITUDE)
        u: Floats = words.view(np.int64) * np.float64(2.0**-63)
        doubtful = (u < LOW) | (u > _GUMBEL.high)
        u[doubtful] = 0.5
        _GUMBEL.quantile(u)
        size = np.abs(rates[part], where=here, out=np.zeros(here.size))
        keys = np.add(rates[part], u, where=here, out=np.full(here.size, -np.inf))
        if counts is not None:
            logs = np.log(np.maximum(counts[part], 1).astype(np.float64))
            keys += logs
            size += logs
        slack = 2.0**-39 + 2.0**-49 * (size + 16)
        lowest = np.where(here & ~doubtful, keys - slack, -np.inf)
        highest = np.where(here & doubtful, np.inf, keys + slack)
        best = max(best, float(lowest.max()))
        for i in np.flatnonzero(here & (highest >= best)).tolist():
            contenders.append((float(highest[i]), start + i, int(words[i])))
    racing = [(i, LazyUniform(word, 63, source)) for key, i, word in contenders if key >= best]
    if not racing:
        raise InvalidArgument(message("scores", "at least one clock that can ring", "none", "give one a finite score"))
    while len(racing) > 1:
        ends = [
            _key(clock, factor * Fraction(float(scores[i])), 1 if counts is None else int(counts[i]))
            for i, clock in racing
        ]
        front = max(low for low, _ in ends)
        racing = [entry for entry, (_, high) in zip(racing, ends, strict=True) if high >= front]
        if len(racing) > 1:
            for _, clock in racing:
                clock.extend()
    return racing[0][0]


def _key(u: LazyUniform, rate: Fraction, count: int) -> tuple[Fraction, Fraction]:
    """Enclose ``rate + ln(count) - ln(-ln(1 - U))`` over the reals that U can still become."""
    while u.value == 0 or u.value + 1 == 1 << u.bits:
        u.extend()
    bits = u.bits
    size = log(Fraction(count), bits)
    # the key decreases in U
    low = size[0] - _log_energy(u.value + 1, bits)[1]
    high = size[1] - _log_energy(u.value, bits)[0]
    return rate + Fraction(low, 1 << bits), rate + Fraction(high, 1 << bits)


def _log_energy(value: int, bits: int) -> Enclosure:
    """Enclose ``ln(-ln(1 - value / 2**bits)) * 2**bits`` for 0 < value < 2**bits."""
    work = 2 * bits + 16
    low, high = log(1 - Fraction(value, 1 << bits), work)
    return log(Fraction(max(-high, 1), 1 << work), bits)[0], log(Fraction(-low, 1 << work), bits)[1]
