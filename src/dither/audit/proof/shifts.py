"""Noise added to an answer: the law that is drawn against itself, shifted.

*Reduction to the largest shift.* For laws P, Q that are symmetric and fall on either side, ``1 - E = integral of
min(p, c q)``, c = e^epsilon, is an integral over levels u of the length of the overlap of the intervals ``{p > u}``
and ``{c q > u}``; both have their middle at the answers, and two intervals overlap the less the farther their middles
are apart. So the hockey-stick divergence E grows with the shift, whatever the two laws are, on the line and on the
integers.

*Reduction of vectors.* A Laplace density depends on the sum of the coordinates' distances only; both log-concave laws
have a threshold as their best test, so a shift a + b in one coordinate is told apart at least as well as a in one and
b in another (Dong, Roth and Su 2022, on groups). Normal noise looks the same in all directions. So one coordinate,
moved by all of the sensitivity, is the worst.

*The best test.* For a log-concave law the loss falls from left to right, so the best set is a half-line, and its end,
where the loss is epsilon, is a rational number. Two tails at that end are all there is to enclose. A release on a
lattice is a function of the ideal one, so it loses no more; and no less, since the answer may lie anywhere between
two lattice points, so that the end of the half-line falls on the edge of a cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dither.audit.proof.evidence import (
    BITS,
    EVERYTHING,
    NOTHING,
    Curve,
    Evidence,
    Interval,
    exp_ends,
    no_noise,
    unmoved,
)
from dither.exact import exp_neg, log
from dither.randomness import Exponential, Law, Normal, Staircase
from dither.randomness.discrete import DiscreteLaplace

_MOST_BITS = 16384
_LARGE_LOSS = 400
_CLOSE = 1 << 56
_TINY = Fraction(1, 1 << 200)
_VANISHING = Fraction(1, 1 << 1200)
_APART = "answers as far apart as the sensitivity allows"
_METHOD = "closed tail comparison"


def below(law: Law, z: Fraction, bits: int) -> Interval:
    """P(Z <= z) of a symmetric law, from its tail.

    >>> below(Exponential(symmetric=True), Fraction(0), 8)
    (Fraction(1, 2), Fraction(1, 2))
    """
    low, high = (Fraction(end, 2 << bits) for end in law.tail(abs(z), bits))
    return (low, high) if z <= 0 else (1 - high, 1 - low)


@dataclass(frozen=True)
class HalfLine:
    """The test ``{z <= end}``: the chance of it under P and Q, given so many bits."""

    p: Callable[[int], Interval]
    q: Callable[[int], Interval]

    def chance(self, close: int = 1 << 40) -> tuple[Interval, int]:
        """P to a relative 1 / close, and the bits that took."""
        bits = 128
        while True:
            low, high = self.p(bits)
            if (high - low) * close <= high or high < _VANISHING or bits >= _MOST_BITS:
                return (low, high), bits
            bits += bits // 2

    def delta(self, epsilon: Fraction) -> Interval:
        """P - e^epsilon Q, with as many bits as it takes: e^epsilon Q is at most about P."""
        bits = self.chance(16)[1] + 96 + math.ceil(epsilon * 3 / 2)
        while True:
            (low, high), (less, more), growth = self.p(bits), self.q(bits), exp_ends(epsilon, bits)
            low, high = low - growth[1] * more, high - growth[0] * less
            if (high - low) * _CLOSE <= abs(high) or high < _VANISHING or bits >= _MOST_BITS:
                return low, high
            bits += bits // 2


def best_half_line(ending: Callable[[Fraction], HalfLine], epsilon: Fraction, top: Fraction | None = None) -> Interval:
    """delta(epsilon), ``ending(loss)`` being the half-line that ends where the loss, which falls, is that much, and
    ``top`` the largest loss.

    For an enormous epsilon e^epsilon is not computed: ``E = integral over P of (1 - e^(epsilon - loss))_+`` is enclosed
    by layers of the loss, each with its smallest and its largest value.
    """
    if epsilon <= _LARGE_LOSS:
        return ending(epsilon).delta(epsilon)
    layers = [Fraction(i, 16) ** 2 for i in range(97)]
    if top is not None:
        layers = [x for x in layers if epsilon + x < top]
    chances = [ending(epsilon + x).chance()[0] for x in layers]
    falls = [Fraction(exp_neg(x, BITS)[0], 1 << BITS) for x in layers]
    least = Fraction(exp_neg(top - epsilon, BITS)[0], 1 << BITS) if top is not None else Fraction(0)
    low = high = Fraction(0)
    for i, (chance, fall) in enumerate(zip(chances, falls, strict=True)):
        inner = chances[i + 1] if i + 1 < len(layers) else NOTHING
        low += max(chance[0] - inner[1], Fraction(0)) * max(1 - fall - _TINY, Fraction(0))
        high += (chance[1] - inner[0]) * (1 - (falls[i + 1] if i + 1 < len(layers) else least))
    return low, high


def laplace_shift(shift: Fraction, law: Law) -> Evidence:
    """Laplace noise of scale 1 and an answer that moves by ``shift``: the loss is ``|z - shift| - |z|``.

    >>> evidence = laplace_shift(Fraction(1), Exponential(symmetric=True))
    >>> evidence.loss, round(float(evidence.at(Fraction(0))[1]), 6)
    ((Fraction(1, 1), Fraction(1, 1)), 0.393469)
    """

    def ending(loss: Fraction) -> HalfLine:
        end = (shift - loss) / 2
        return HalfLine(*_masses(law, end, shift))

    return Evidence((shift, shift), lambda at: best_half_line(ending, at, shift), _APART, _METHOD)


def integer_laplace_shift(shift: int, scale: float) -> Evidence:
    """Discrete Laplace noise and an integer that moves by ``shift``.

    >>> round(float(integer_laplace_shift(1, 1.0).at(Fraction(0))[1]), 6)
    0.462117
    """
    if shift == 0:
        return unmoved("no integer moves by less than 1")
    law, b = DiscreteLaplace(scale), Fraction(scale)

    def mass(k: int, bits: int) -> Interval:
        """P(K <= k), K the integer nearest to scale * Z."""
        return below(law, (k + Fraction(1, 2)) / b, bits)

    def ending(loss: Fraction) -> HalfLine:
        k = math.floor((shift - loss * b) / 2)
        return HalfLine(lambda bits: mass(k, bits), lambda bits: mass(k - shift, bits))

    return Evidence(
        (shift / b, shift / b),
        lambda at: best_half_line(ending, at, shift / b),
        _APART.replace("answers", "integers"),
        _METHOD,
    )


def normal_shift(shift: Interval, law: Law, grain: Fraction = Fraction(0), coordinates: int = 1) -> Evidence:
    """Normal noise of deviation 1 and an answer that moves by ``shift``, itself enclosed: the loss ``shift^2/2 -
    shift z`` has no bound; it is normal with mean rho = shift^2/2 and variance 2 rho, which is rho-zCDP and no less.

    A release on a lattice is within half a ``grain`` of the ideal one, seen along the shift, and that is taken from the
    lower bounds: where several coordinates move at once the half-line does not end on edges of cells; and rho is at
    least the divergence of order 1, which by Donsker and Varadhan is at least ``m (shift - grain) - m^2/2`` for all m.

    >>> round(float(normal_shift((Fraction(1), Fraction(1)), Normal()).at(Fraction(1))[1]), 6)
    0.126937
    """
    low, high = shift
    blur = grain / 2 if coordinates > 1 else Fraction(0)

    def ending(loss: Fraction, d: Fraction) -> HalfLine:
        return HalfLine(*_masses(law, d / 2 - loss / d, d))

    @lru_cache(maxsize=64)
    def curve(at: Fraction) -> Interval:
        last = best_half_line(lambda loss: ending(loss, high), at)
        if not blur:
            return last if low == high else (best_half_line(lambda loss: ending(loss, low), at)[0], last[1])
        if at > _LARGE_LOSS:
            return Fraction(0), last[1]
        end = low / 2 - at / low
        return HalfLine(
            lambda bits: below(law, end - blur, bits), lambda bits: below(law, end + blur - low, bits)
        ).delta(at)[0], last[1]

    return Evidence(None, curve, _APART, _METHOD, (max(low - grain, Fraction(0)) ** 2 / 2, high**2 / 2))


def staircase_shift(shift: Fraction, law: Staircase) -> Evidence:
    """Staircase noise of step 1 and an answer that moves by ``shift``.

    Up to one step the loss is -e, 0 or e, so that ``P(loss = e) = TV / (1 - e^-e)``, and the total variation between a
    law that falls on either side and its shift is ``P(|Z| <= shift/2)``. Beyond, it is at most e for each step begun.
    The half-line up to 0 shows a loss of ``-ln P(|Z| > shift)``.

    >>> staircase_shift(Fraction(1), Staircase(Fraction(1), Fraction(1, 2))).loss[1]
    Fraction(1, 1)
    """
    own, gamma = law.epsilon, law.gamma
    high = own * max(1, math.ceil(shift))
    bits = BITS + min(int(high * 3 / 2), 1 << 12)
    low = min(high, Fraction(-log(Fraction(max(law.tail(shift, bits)[1], 1), 1 << bits), BITS)[1], 1 << BITS))
    places = {Fraction(0), shift / 2, gamma, 1 - gamma, shift - gamma, min(gamma, 1 - gamma)}

    def curve(at: Fraction) -> Interval:
        if at <= _LARGE_LOSS:
            result = max(HalfLine(*_masses(law, end, shift)).delta(at)[0] for end in places)
        else:  # up to 0 the loss is e for each whole step
            gap = max(math.floor(shift) * own - at, Fraction(0))
            result = (1 - Fraction(exp_neg(gap, BITS)[1], 1 << BITS)) / 2
        if shift > 1 or at >= own:
            return result, Fraction(1)
        one = 1 << BITS
        gap = 1 - Fraction(exp_neg(own - at, BITS)[0], one)
        inside = 1 - Fraction(law.tail(shift / 2, BITS)[0], one)
        return result, gap * inside / (1 - Fraction(exp_neg(own, BITS)[1], one))

    return Evidence((low, high), curve, _APART, _METHOD)


def _masses(law: Law, end: Fraction, shift: Fraction) -> tuple[Callable[[int], Interval], Callable[[int], Interval]]:
    return lambda bits: below(law, end, bits), lambda bits: below(law, end - shift, bits)


def shifted(law: Law, part: Fraction, scale: float) -> Evidence:
    """``scale`` times a standard law, and an answer that moves by ``part``.

    >>> shifted(Normal(), Fraction(1), 2.0).rho
    (Fraction(1, 8), Fraction(1, 8))
    """
    if not scale > 0:
        return no_noise("any answers that differ")
    shift = part / Fraction(scale)
    maker: dict[type, Callable[[Any], Evidence]] = {
        Exponential: lambda own: laplace_shift(shift, own),
        Normal: lambda own: normal_shift((shift, shift), own),
        Staircase: lambda own: staircase_shift(shift, own),
    }
    return maker[type(law)](law)


def corner(shifts: list[Fraction]) -> Curve:
    """Below delta(epsilon) of several Laplace coordinates: the test that all of them are on the far side, where the
    losses add up.

    >>> corner([Fraction(1), Fraction(1)])(Fraction(2))[0]
    Fraction(0, 1)
    """

    def curve(at: Fraction) -> Interval:
        gap = sum(shifts, Fraction(0)) - at
        if gap <= 0:
            return Fraction(0), Fraction(0)
        return (1 - Fraction(exp_neg(gap, BITS)[1], 1 << BITS)) / 2 ** len(shifts), EVERYTHING[1]

    return curve
