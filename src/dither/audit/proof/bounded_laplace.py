"""Laplace noise restricted to an interval: density ``exp(-|v - q| / b) / (2 b C_q)`` on [lower, upper].

*Reduction.* Between q and q' = q + d the privacy loss is at most ``d/b + ln(C_q' / C_q)``, attained at the limit that
is farther from q'. Since ``C_q = 1 - (e^-(q - lower)/b + e^-(upper - q)/b) / 2`` is concave, so is ln C, and its
increase over a step d is largest at q = lower; there the bound increases with d, since ``(ln C)' >= -1/b``, its value
at the upper limit. So the worst pair is an answer at the lower limit (or, by symmetry, the upper one) and an answer
one sensitivity inside. A release on a lattice is a function of the ideal one; the lower bound on the loss is that of
the first cell of the lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dither import arguments
from dither.audit.proof.evidence import BITS, Evidence, Interval, exp_interval, no_noise, worst_of
from dither.exact import exactly, exp_neg, log
from dither.mechanisms.bounded import BoundedLaplace
from dither.randomness import truncated_tail

_PAIR = "an answer at a limit and one a sensitivity inside"


@dataclass(frozen=True)
class TruncatedLaplace:
    """Answers ``first`` and ``first + shift`` under noise of scale b on [lower, upper], released in cells whose edges
    are the odd multiples of half a step.
    """

    lower: Fraction
    upper: Fraction
    first: Fraction
    shift: Fraction
    b: Fraction
    step: Fraction

    def evidence(self) -> Evidence:
        """The worst privacy loss and the privacy curve."""
        loss = self._loss_lower(), self._loss_upper()
        return Evidence(loss, self._curve, _PAIR, "interval bounds on the normalized density")

    def _loss_upper(self) -> Fraction:
        """An upper bound on ``shift/b + ln(C_(lower + shift) / C_lower)``."""
        ratio, width = self.b / self.shift, self.upper - self.lower
        bits = BITS + 2 * max(0, ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1)
        one = 1 << bits
        top = 2 * one - exp_neg(self.shift / self.b, bits)[0] - exp_neg((width - self.shift) / self.b, bits)[0]
        bottom = max(one - exp_neg(width / self.b, bits)[1], 1)
        return self.shift / self.b + Fraction(log(Fraction(top, bottom), bits)[1], one)

    def _cdf(self, q: Fraction, edge: Fraction, bits: int = 2 * BITS) -> Interval:
        """P(V < edge) for the answer q."""
        one = 1 << bits
        above = truncated_tail((edge - q) / self.b, (self.lower - q) / self.b, (self.upper - q) / self.b, bits)
        return Fraction(one - above[1], one), Fraction(one - above[0], one)

    def _edge(self, v: Fraction) -> Fraction:
        """The first cell edge above v."""
        return (math.floor(v / self.step - Fraction(1, 2)) + Fraction(3, 2)) * self.step

    def _loss_lower(self) -> Fraction:
        """A lower bound on the loss: that of the first cell."""
        edge = min(self._edge(self.lower), self.upper)
        p, q = self._cdf(self.first, edge)[0], self._cdf(self.first + self.shift, edge)[1]
        return max(Fraction(0), Fraction(log(p / q, BITS)[0], 1 << BITS)) if p > 0 and q > 0 else Fraction(0)

    def _curve(self, epsilon: Fraction) -> Interval:
        """delta(epsilon); the lower bound is that of the best threshold event of cells at the worst pair."""
        if epsilon > 600:
            return Fraction(0), Fraction(1)
        growth, max_loss = exp_interval(epsilon)[1], self._loss_upper()
        start = self._edge(self.lower + max(max_loss - epsilon, Fraction(0)) * self.b / 2 - self.step)
        edges = [edge for edge in (start, start + self.step) if self.lower < edge < self.upper]
        result = [self._cdf(self.first, e)[0] - growth * self._cdf(self.first + self.shift, e)[1] for e in edges]
        return max([*result, Fraction(0)]), Fraction(1)


def bounded_laplace(mechanism: BoundedLaplace) -> Evidence:
    """Evidence for real numbers on the lattice and for integers, whose limits are half a step wider and whose scale
    differs.

    >>> bounded_laplace(BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10)).loss[1] <= 1
    True
    """
    if not mechanism.scale > 0:
        return no_noise("any answers that differ")
    lower, upper = exactly(mechanism.lower), exactly(mechanism.upper)
    sensitivity = min(arguments.sensitivity(mechanism.sensitivity), upper - lower)
    scale, step = Fraction(mechanism.scale), Fraction(mechanism.lattice_step)
    real = TruncatedLaplace(lower, upper, lower, sensitivity, scale, step).evidence()
    first, last = math.ceil(lower), math.floor(upper)
    shift = min(math.floor(sensitivity), last - first)
    if shift < 1:
        return real
    half = Fraction(1, 2)
    integer_scale = Fraction(mechanism.integer_scale)
    integers = TruncatedLaplace(first - half, last + half, Fraction(first), Fraction(shift), integer_scale, Fraction(1))
    return worst_of(real, integers.evidence())
