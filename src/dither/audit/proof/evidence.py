"""What is known of the worst pair of neighbours: enclosures of its loss and of its privacy curve.

Every number is an interval of rationals that holds the true one. Evidence is combined in two ways only: the
*worst* of several variants, and several parts *together*, whose losses add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dither.accounting.pure import pure_delta
from dither.exact import exp, exp_neg

BITS = 256
RESOLUTION = Fraction(1, 1 << 128)
"""Losses are known to this at least. A loss that equals its claim and is no rational number cannot be told from
one that exceeds it by less."""

FAR = Fraction(200)
"""How far away the candidates are whose weight, exp(-200), vanishes."""

Interval = tuple[Fraction, Fraction]
Curve = Callable[[Fraction], Interval]

NOTHING: Interval = (Fraction(0), Fraction(0))
EVERYTHING: Interval = (Fraction(1), Fraction(1))


@dataclass(frozen=True)
class Evidence:
    """The worst loss over all neighbours, enclosed (None where it is infinite), and the curve delta(epsilon).

    >>> e = Evidence((Fraction(1), Fraction(1)), lambda at: NOTHING, "one apart", "enumeration")
    >>> e.at(Fraction(2))
    (Fraction(0, 1), Fraction(0, 1))
    """

    loss: Interval | None
    curve: Curve
    pair: str
    method: str
    rho: Interval | None = None
    """The smallest rho of its zCDP, enclosed, where it is known."""

    def at(self, epsilon: Fraction) -> Interval:
        """delta(epsilon), kept within what the loss allows."""
        if self.loss is not None and epsilon >= self.loss[1]:
            return NOTHING
        low, high = self.curve(epsilon)
        if self.loss is not None:
            high = min(high, pure_delta(self.loss[1], epsilon))
        high = min(max(high, Fraction(0)), Fraction(1))
        return min(max(low, Fraction(0)), high), high

    def named(self, pair: str, method: str) -> Evidence:
        """The same, in other words."""
        return Evidence(self.loss, self.curve, pair, method, self.rho)


def no_noise(pair: str) -> Evidence:
    """A release that shows the answer itself.

    >>> no_noise("any two").at(Fraction(5))[0]
    Fraction(1, 1)
    """
    return Evidence(None, lambda _: EVERYTHING, pair, "no noise")


def unmoved(what: str) -> Evidence:
    """A release that no neighbour changes.

    >>> unmoved("integers").loss
    (Fraction(0, 1), Fraction(0, 1))
    """
    return Evidence(NOTHING, lambda _: NOTHING, f"none: {what}", "no neighbour differs", NOTHING)


def worst(*variants: Evidence) -> Evidence:
    """Of several variants, of which any may be released: the largest of everything, in the words of the worst.

    >>> worst(unmoved("a"), no_noise("b")).pair
    'b'
    """
    if len(variants) == 1:
        return variants[0]
    leading = max(
        variants, key=lambda item: (item.loss is None, item.loss[1] if item.loss else item.at(Fraction(1))[1])
    )
    loss = None
    if all(item.loss for item in variants):
        loss = max(item.loss[0] for item in variants if item.loss), max(item.loss[1] for item in variants if item.loss)

    def curve(at: Fraction) -> Interval:
        ends = [item.at(at) for item in variants]
        return max(end[0] for end in ends), max(end[1] for end in ends)

    rho = None
    if all(item.rho for item in variants):
        rho = max(item.rho[0] for item in variants if item.rho), max(item.rho[1] for item in variants if item.rho)
    return Evidence(loss, curve, leading.pair, leading.method, rho)


def together(*parts: Evidence, pair: str, method: str) -> Evidence:
    """Independent noises about the same people, of which every part may be at its worst at once: losses add up.

    Above, the curve is that of any release with such a loss; below, that of the worst part, the others not looked at.

    >>> together(unmoved("a"), unmoved("b"), pair="both", method="sum").loss
    (Fraction(0, 1), Fraction(0, 1))
    """
    if len(parts) == 1:
        return parts[0].named(pair, method)
    loss = None
    if all(part.loss for part in parts):
        low = sum((part.loss[0] for part in parts if part.loss), Fraction(0))
        loss = low, sum((part.loss[1] for part in parts if part.loss), Fraction(0))

    def curve(at: Fraction) -> Interval:
        return max(part.at(at)[0] for part in parts), Fraction(1)

    return Evidence(loss, curve, pair, method)


def repeated(part: Evidence, times: int) -> Evidence:
    """The same part so many times, each with noise of its own.

    >>> repeated(unmoved("a"), 3).loss
    (Fraction(0, 1), Fraction(0, 1))
    """
    loss = None if part.loss is None else (times * part.loss[0], times * part.loss[1])
    return Evidence(loss, lambda at: (part.at(at)[0], Fraction(1)), part.pair, part.method)


def exp_ends(x: Fraction, bits: int = BITS) -> Interval:
    """exp(x), enclosed.

    >>> exp_ends(Fraction(0))
    (Fraction(1, 1), Fraction(1, 1))
    """
    low, high = exp(x, bits) if x > 0 else exp_neg(-x, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)
