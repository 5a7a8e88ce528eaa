"""Laplace noise kept inside limits: density ``exp(-|v - q| / b) / (2 b C_q)`` on [lower, upper].

*Reduction.* Between q and q' = q + d the loss is at most ``d/b + ln(C_q' / C_q)``, at the limit that is farther from
q'. ``C_q = 1 - (e^-(q - lower)/b + e^-(upper - q)/b) / 2`` is concave, so ln C is, and its growth over a step d is
largest at q = lower; there the bound grows with d, since ``(ln C)' >= -1/b``, its value at the upper limit. So the
worst pair is the lower limit (or, mirrored, the upper one) and the answer one sensitivity inside. A release on a
lattice is a function of the ideal one; from below, the loss is that of the first cell of the lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dither import arguments
from dither.audit.proof.evidence import BITS, Evidence, Interval, exp_ends, no_noise, worst
from dither.exact import exactly, exp_neg, log
from dither.mechanisms.bounded import BoundedLaplace
from dither.randomness import truncated_tail

_PAIR = "an answer at a limit and one a sensitivity inside"


@dataclass(frozen=True)
class Truncated:
    """Answers from ``first`` on that move by ``shift``, noise of scale b on [lower, upper], released in cells whose
    edges are the odd multiples of half a step.
    """

    lower: Fraction
    upper: Fraction
    first: Fraction
    shift: Fraction
    b: Fraction
    step: Fraction

    def evidence(self) -> Evidence:
        """The worst loss and the curve."""
        return Evidence((self._least(), self._most()), self._curve, _PAIR, "interval bounds on the normalised density")

    def _most(self) -> Fraction:
        """``shift/b + ln(C_(lower + shift) / C_lower)``, from above."""
        ratio, width = self.b / self.shift, self.upper - self.lower
        bits = BITS + 2 * max(0, ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1)
        one = 1 << bits
        top = 2 * one - exp_neg(self.shift / self.b, bits)[0] - exp_neg((width - self.shift) / self.b, bits)[0]
        bottom = max(one - exp_neg(width / self.b, bits)[1], 1)
        return self.shift / self.b + Fraction(log(Fraction(top, bottom), bits)[1], one)

    def _mass(self, q: Fraction, edge: Fraction, bits: int = 2 * BITS) -> Interval:
        """P(V < edge) around q."""
        one = 1 << bits
        above = truncated_tail((edge - q) / self.b, (self.lower - q) / self.b, (self.upper - q) / self.b, bits)
        return Fraction(one - above[1], one), Fraction(one - above[0], one)

    def _edge(self, v: Fraction) -> Fraction:
        """The first edge of a cell above v."""
        return (math.floor(v / self.step - Fraction(1, 2)) + Fraction(3, 2)) * self.step

    def _least(self) -> Fraction:
        """The loss of the first cell, from below."""
        edge = min(self._edge(self.lower), self.upper)
        p, q = self._mass(self.first, edge)[0], self._mass(self.first + self.shift, edge)[1]
        return max(Fraction(0), Fraction(log(p / q, BITS)[0], 1 << BITS)) if p > 0 and q > 0 else Fraction(0)

    def _curve(self, at: Fraction) -> Interval:
        """From below: the best half-line of cells between the worst pair."""
        if at > 600:
            return Fraction(0), Fraction(1)
        growth, most = exp_ends(at)[1], self._most()
        start = self._edge(self.lower + max(most - at, Fraction(0)) * self.b / 2 - self.step)
        edges = [edge for edge in (start, start + self.step) if self.lower < edge < self.upper]
        result = [self._mass(self.first, e)[0] - growth * self._mass(self.first + self.shift, e)[1] for e in edges]
        return max([*result, Fraction(0)]), Fraction(1)


def bounded_laplace(mechanism: BoundedLaplace) -> Evidence:
    """Numbers on the lattice, and integers, which have limits half a step wider and a scale of their own.

    >>> bounded_laplace(BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10)).loss[1] <= 1
    True
    """
    if not mechanism.scale > 0:
        return no_noise("any answers that differ")
    lower, upper = exactly(mechanism.lower), exactly(mechanism.upper)
    part = min(arguments.sensitivity(mechanism.sensitivity), upper - lower)
    real = Truncated(lower, upper, lower, part, Fraction(mechanism.scale), Fraction(mechanism.lattice_step)).evidence()
    first, last = math.ceil(lower), math.floor(upper)
    moved = min(math.floor(part), last - first)
    if moved < 1:
        return real
    half = Fraction(1, 2)
    scale = Fraction(mechanism.integer_scale)
    whole = Truncated(first - half, last + half, Fraction(first), Fraction(moved), scale, Fraction(1))
    return worst(real, whole.evidence())
