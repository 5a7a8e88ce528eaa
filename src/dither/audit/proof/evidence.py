"""Enclosures of the privacy loss and the privacy curve at the worst pair of neighbors.

Every number is an interval of rationals that contains the true value. Evidence is combined in two ways: the *worst* of
several variants, and the *composition* of independent parts, whose losses add up. Curves are functions that pickle, so
that certificates do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from dither.accounting.pure import pure_delta
from dither.exact import exp, exp_neg

BITS = 256
RESOLUTION = Fraction(1, 1 << 128)
"""The precision of losses. An irrational loss that equals its claim cannot be distinguished from one that exceeds it
by less than this."""

FAR = Fraction(200)
"""The score gap at which the weight of a candidate, exp(-200), is negligible."""

Interval = tuple[Fraction, Fraction]
Curve = Callable[[Fraction], Interval]

ZERO: Interval = (Fraction(0), Fraction(0))
ONE: Interval = (Fraction(1), Fraction(1))


@dataclass(frozen=True)
class Evidence:
    """The worst privacy loss over all neighbors, enclosed (None if it is infinite), and the curve delta(epsilon).

    >>> e = Evidence((Fraction(1), Fraction(1)), lambda at: ZERO, "answers that differ by 1", "enumeration")
    >>> e.at(Fraction(2))
    (Fraction(0, 1), Fraction(0, 1))
    """

    loss: Interval | None
    curve: Curve
    pair: str
    method: str
    rho: Interval | None = None
    """The smallest rho for which zCDP holds, enclosed, where it is known."""

    def at(self, epsilon: Fraction) -> Interval:
        """delta(epsilon), limited to what the loss allows."""
        if self.loss is not None and epsilon >= self.loss[1]:
            return ZERO
        low, high = self.curve(epsilon)
        if self.loss is not None:
            high = min(high, pure_delta(self.loss[1], epsilon))
        high = min(max(high, Fraction(0)), Fraction(1))
        return min(max(low, Fraction(0)), high), high

    def named(self, pair: str, method: str) -> Evidence:
        """The same evidence with another description."""
        return Evidence(self.loss, self.curve, pair, method, self.rho)


def no_noise(pair: str) -> Evidence:
    """A release that shows the answer itself.

    >>> no_noise("any two").at(Fraction(5))[0]
    Fraction(1, 1)
    """
    return Evidence(None, partial(_constant_curve, ONE), pair, "no noise")


def unaffected(reason: str) -> Evidence:
    """A release that is the same for all neighbors.

    >>> unaffected("integers").loss
    (Fraction(0, 1), Fraction(0, 1))
    """
    return Evidence(ZERO, partial(_constant_curve, ZERO), f"none: {reason}", "no neighbor differs", ZERO)


def _constant_curve(delta: Interval, _: Fraction) -> Interval:
    return delta


def worst_of(*variants: Evidence) -> Evidence:
    """The worst case over several variants, any of which may be released, described as the variant with the largest
    loss.

    >>> worst_of(unaffected("a"), no_noise("b")).pair
    'b'
    """
    if len(variants) == 1:
        return variants[0]
    leading = max(
        variants, key=lambda item: (item.loss is None, item.loss[1] if item.loss else item.at(Fraction(1))[1])
    )
    losses = [item.loss for item in variants if item.loss]
    rhos = [item.rho for item in variants if item.rho]
    return Evidence(
        _largest(losses) if len(losses) == len(variants) else None,
        partial(_worst_curve, variants),
        leading.pair,
        leading.method,
        _largest(rhos) if len(rhos) == len(variants) else None,
    )


def _worst_curve(variants: tuple[Evidence, ...], epsilon: Fraction) -> Interval:
    return _largest([item.at(epsilon) for item in variants])


def _largest(intervals: list[Interval]) -> Interval:
    return max(low for low, _ in intervals), max(high for _, high in intervals)


def compose(*parts: Evidence, pair: str, method: str) -> Evidence:
    """Independent releases about the same people, all of which may be at their worst at once: losses add up.

    The upper bound on the curve is that of any release with the total loss; the lower bound is that of the worst part,
    with the others ignored.

    >>> compose(unaffected("a"), unaffected("b"), pair="both", method="sum").loss
    (Fraction(0, 1), Fraction(0, 1))
    """
    if len(parts) == 1:
        return parts[0].named(pair, method)
    losses = [part.loss for part in parts if part.loss]
    total = None
    if len(losses) == len(parts):
        total = sum((low for low, _ in losses), Fraction(0)), sum((high for _, high in losses), Fraction(0))
    return Evidence(total, partial(_part_curve, parts), pair, method)


def compose_repeated(part: Evidence, times: int) -> Evidence:
    """The composition of ``times`` independent copies of one release.

    >>> compose_repeated(unaffected("a"), 3).loss
    (Fraction(0, 1), Fraction(0, 1))
    """
    loss = None if part.loss is None else (times * part.loss[0], times * part.loss[1])
    return Evidence(loss, partial(_part_curve, (part,)), part.pair, part.method)


def _part_curve(parts: tuple[Evidence, ...], epsilon: Fraction) -> Interval:
    """Bounds on the curve of a composition: the lower bound of its worst part, and no upper bound below 1."""
    return max(part.at(epsilon)[0] for part in parts), Fraction(1)


def exp_interval(x: Fraction, bits: int = BITS) -> Interval:
    """exp(x), enclosed.

    >>> exp_interval(Fraction(0))
    (Fraction(1, 1), Fraction(1, 1))
    """
    low, high = exp(x, bits) if x > 0 else exp_neg(-x, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)
