"""Privacy of additive noise: the noise distribution compared with its own shift.

*Reduction to the largest shift.* Let P and Q be symmetric and unimodal. With c = e^epsilon, ``1 - E = integral of
min(p, c q)`` is an integral over levels u of the length of the overlap of the intervals ``{p > u}`` and ``{c q > u}``.
These intervals are centered at the two answers, and the overlap of two intervals decreases with the distance of their
centers. Hence the hockey-stick divergence E increases with the shift, on the line and on the integers.

*Reduction of vectors.* A Laplace density depends only on the sum of the coordinates' distances. For log-concave
distributions a threshold is the best test, so a shift of a + b in one coordinate is at least as distinguishable as a
in one coordinate and b in another (Dong, Roth and Su 2022, on groups). Normal noise is rotation invariant. So the worst
case is one coordinate moved by the whole sensitivity.

*The best test.* For a log-concave distribution the privacy loss decreases from left to right, so the best event is a
half-line ``{z <= end}``, and its end, where the loss equals epsilon, is a rational number. It remains to enclose two
tail probabilities. A release on a lattice is a function of the ideal release, so its divergence is no larger; nor is
it smaller, since the answer may lie anywhere between two lattice points, so that the half-line can end at the edge of
a cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

from dither.audit.proof.evidence import (
    BITS,
    ZERO,
    Evidence,
    Interval,
    exp_interval,
    no_noise,
    unaffected,
)
from dither.exact import exp_neg, log
from dither.randomness import Exponential, Law, Normal, Staircase
from dither.randomness.discrete import DiscreteLaplace

_MAX_BITS = 16384
_LARGE_EPSILON = 400
_CLOSE = 1 << 56
_TINY = Fraction(1, 1 << 200)
_VANISHING = Fraction(1, 1 << 1200)
_LARGEST_SHIFT = "answers as far apart as the sensitivity allows"
_METHOD = "closed tail comparison"


def cdf(law: Law, z: Fraction, bits: int) -> Interval:
    """P(Z <= z) for a symmetric distribution, from its tail.

    >>> cdf(Exponential(symmetric=True), Fraction(0), 8)
    (Fraction(1, 2), Fraction(1, 2))
    """
    low, high = (Fraction(end, 2 << bits) for end in law.tail(abs(z), bits))
    return (low, high) if z <= 0 else (1 - high, 1 - low)


@dataclass(frozen=True)
class ThresholdEvent:
    """The event ``{z <= end}``: enclosures of its probability under P and Q, computed with a given number of bits."""

    p: Callable[[int], Interval]
    q: Callable[[int], Interval]

    @classmethod
    def ending_at(cls, law: Law, end: Fraction, shift: Fraction) -> ThresholdEvent:
        """The event ``{z <= end}`` for the noise around 0 and around ``shift``."""
        return cls(lambda bits: cdf(law, end, bits), lambda bits: cdf(law, end - shift, bits))

    def probability(self, precision: int = 1 << 40) -> tuple[Interval, int]:
        """The probability under P to a relative error of 1 / precision, and the number of bits that this needed."""
        bits = 128
        while True:
            low, high = self.p(bits)
            if (high - low) * precision <= high or high < _VANISHING or bits >= _MAX_BITS:
                return (low, high), bits
            bits += bits // 2

    def delta(self, epsilon: Fraction) -> Interval:
        """P - e^epsilon Q, with as many bits as needed; e^epsilon Q is at most about P."""
        bits = self.probability(16)[1] + 96 + math.ceil(epsilon * 3 / 2)
        while True:
            (p_low, p_high), (q_low, q_high), growth = self.p(bits), self.q(bits), exp_interval(epsilon, bits)
            low, high = p_low - growth[1] * q_high, p_high - growth[0] * q_low
            if (high - low) * _CLOSE <= abs(high) or high < _VANISHING or bits >= _MAX_BITS:
                return low, high
            bits += bits // 2


def best_threshold_event(
    event_at_loss: Callable[[Fraction], ThresholdEvent], epsilon: Fraction, max_loss: Fraction | None = None
) -> Interval:
    """delta(epsilon) of the best threshold event.

    ``event_at_loss(loss)`` is the half-line that ends where the privacy loss, which is decreasing, equals ``loss``;
    ``max_loss`` is the largest loss, if there is one. For a very large epsilon, e^epsilon is not computed: ``E =
    integral over P of (1 - e^(epsilon - loss))_+`` is enclosed by layers of the loss, each with its smallest and its
    largest value.
    """
    if epsilon <= _LARGE_EPSILON:
        return event_at_loss(epsilon).delta(epsilon)
    excesses = [Fraction(i, 16) ** 2 for i in range(97)]
    if max_loss is not None:
        excesses = [excess for excess in excesses if epsilon + excess < max_loss]
    probabilities = [event_at_loss(epsilon + excess).probability()[0] for excess in excesses]
    decays = [Fraction(exp_neg(excess, BITS)[0], 1 << BITS) for excess in excesses]
    last_decay = Fraction(exp_neg(max_loss - epsilon, BITS)[0], 1 << BITS) if max_loss is not None else Fraction(0)
    low = high = Fraction(0)
    for i, (probability, decay) in enumerate(zip(probabilities, decays, strict=True)):
        inner = probabilities[i + 1] if i + 1 < len(excesses) else ZERO
        low += max(probability[0] - inner[1], Fraction(0)) * max(1 - decay - _TINY, Fraction(0))
        high += (probability[1] - inner[0]) * (1 - (decays[i + 1] if i + 1 < len(excesses) else last_decay))
    return low, high


def laplace_shift(shift: Fraction, law: Law) -> Evidence:
    """Laplace noise of scale 1 and an answer that moves by ``shift``: the privacy loss is ``|z - shift| - |z|``.

    >>> evidence = laplace_shift(Fraction(1), Exponential(symmetric=True))
    >>> evidence.loss, round(float(evidence.at(Fraction(0))[1]), 6)
    ((Fraction(1, 1), Fraction(1, 1)), 0.393469)
    """
    return Evidence((shift, shift), partial(_laplace_curve, shift, law), _LARGEST_SHIFT, _METHOD)


def _laplace_curve(shift: Fraction, law: Law, epsilon: Fraction) -> Interval:
    return best_threshold_event(
        lambda loss: ThresholdEvent.ending_at(law, (shift - loss) / 2, shift), epsilon, max_loss=shift
    )


def integer_laplace_shift(shift: int, scale: float) -> Evidence:
    """Discrete Laplace noise and an integer that moves by ``shift``.

    >>> round(float(integer_laplace_shift(1, 1.0).at(Fraction(0))[1]), 6)
    0.462117
    """
    if shift == 0:
        return unaffected("no integer moves by less than 1")
    loss = shift / Fraction(scale)
    pair = _LARGEST_SHIFT.replace("answers", "integers")
    return Evidence((loss, loss), partial(_integer_laplace_curve, shift, scale), pair, _METHOD)


def _integer_laplace_curve(shift: int, scale: float, epsilon: Fraction) -> Interval:
    law, b = DiscreteLaplace(scale), Fraction(scale)

    def integer_cdf(k: int, bits: int) -> Interval:
        """P(K <= k), where K is the integer nearest to scale * Z."""
        return cdf(law, (k + Fraction(1, 2)) / b, bits)

    def event_at_loss(loss: Fraction) -> ThresholdEvent:
        k = math.floor((shift - loss * b) / 2)
        return ThresholdEvent(lambda bits: integer_cdf(k, bits), lambda bits: integer_cdf(k - shift, bits))

    return best_threshold_event(event_at_loss, epsilon, max_loss=shift / b)


def normal_shift(shift: Interval, law: Normal, rounding: Fraction = Fraction(0), coordinates: int = 1) -> Evidence:
    """Normal noise of standard deviation 1 and an answer that moves by ``shift``, which is itself enclosed.

    The privacy loss ``shift^2/2 - shift z`` is unbounded; it is normal with mean rho = shift^2/2 and variance 2 rho,
    so the release is rho-zCDP, and rho is the smallest such number.

    A release on a lattice is within half a ``grain`` of the ideal one along the direction of the shift, and the lower
    bounds account for it: where several coordinates move at once, the half-line does not end at edges of cells; and
    rho is at least the divergence of order 1, which by the Donsker-Varadhan formula is at least ``m (shift - grain) -
    m^2/2`` for all m.

    >>> round(float(normal_shift((Fraction(1), Fraction(1)), Normal()).at(Fraction(1))[1]), 6)
    0.126937
    """
    low, high = shift
    margin = rounding / 2 if coordinates > 1 else Fraction(0)
    rho = max(low - rounding, Fraction(0)) ** 2 / 2, high**2 / 2
    return Evidence(None, partial(_normal_curve, low, high, law, margin), _LARGEST_SHIFT, _METHOD, rho)


@lru_cache(maxsize=256)
def _normal_curve(low: Fraction, high: Fraction, law: Normal, margin: Fraction, epsilon: Fraction) -> Interval:
    """delta(epsilon) for a shift between ``low`` and ``high``; the lower bound is reduced by a lattice ``margin``."""

    def delta(shift: Fraction) -> Interval:
        return best_threshold_event(
            lambda loss: ThresholdEvent.ending_at(law, shift / 2 - loss / shift, shift), epsilon
        )

    largest = delta(high)
    if not margin:
        return largest if low == high else (delta(low)[0], largest[1])
    if epsilon > _LARGE_EPSILON:
        return Fraction(0), largest[1]
    end = low / 2 - epsilon / low
    event = ThresholdEvent(lambda bits: cdf(law, end - margin, bits), lambda bits: cdf(law, end + margin - low, bits))
    return event.delta(epsilon)[0], largest[1]


def staircase_shift(shift: Fraction, law: Staircase) -> Evidence:
    """Staircase noise of step 1 and an answer that moves by ``shift``.

    For shifts of up to one step the privacy loss is -e, 0 or e, so that ``P(loss = e) = TV / (1 - e^-e)``, and the
    total variation distance between a unimodal symmetric distribution and its shift is ``P(|Z| <= shift/2)``. For
    larger shifts the loss is at most e for each step begun. The half-line up to 0 shows a loss of ``-ln P(|Z| >
    shift)``.

    >>> staircase_shift(Fraction(1), Staircase(Fraction(1), Fraction(1, 2))).loss[1]
    Fraction(1, 1)
    """
    high = law.epsilon * max(1, math.ceil(shift))
    bits = BITS + min(int(high * 3 / 2), 1 << 12)
    low = min(high, Fraction(-log(Fraction(max(law.tail(shift, bits)[1], 1), 1 << bits), BITS)[1], 1 << BITS))
    return Evidence((low, high), partial(_staircase_curve, shift, law), _LARGEST_SHIFT, _METHOD)


def _staircase_curve(shift: Fraction, law: Staircase, epsilon: Fraction) -> Interval:
    step_loss, gamma, one = law.epsilon, law.gamma, 1 << BITS
    if epsilon <= _LARGE_EPSILON:
        ends = {Fraction(0), shift / 2, gamma, 1 - gamma, shift - gamma, min(gamma, 1 - gamma)}
        low = max(ThresholdEvent.ending_at(law, end, shift).delta(epsilon)[0] for end in ends)
    else:  # on the half-line up to 0 the loss is e for each whole step
        excess = max(math.floor(shift) * step_loss - epsilon, Fraction(0))
        low = (1 - Fraction(exp_neg(excess, BITS)[1], one)) / 2
    if shift > 1 or epsilon >= step_loss:
        return low, Fraction(1)
    gain = 1 - Fraction(exp_neg(step_loss - epsilon, BITS)[0], one)
    total_variation = 1 - Fraction(law.tail(shift / 2, BITS)[0], one)
    return low, gain * total_variation / (1 - Fraction(exp_neg(step_loss, BITS)[1], one))


def shift_evidence(law: Law, sensitivity: Fraction, scale: float) -> Evidence:
    """Noise of a standard distribution times ``scale``, and an answer that moves by ``sensitivity``.

    >>> shift_evidence(Normal(), Fraction(1), 2.0).rho
    (Fraction(1, 8), Fraction(1, 8))
    """
    if not scale > 0:
        return no_noise("any answers that differ")
    shift = sensitivity / Fraction(scale)
    if isinstance(law, Exponential):
        return laplace_shift(shift, law)
    if isinstance(law, Normal):
        return normal_shift((shift, shift), law)
    assert isinstance(law, Staircase)
    return staircase_shift(shift, law)


def orthant_delta(shifts: Sequence[Fraction], epsilon: Fraction) -> Fraction:
    """A lower bound on delta(epsilon) for several Laplace coordinates: the event that every coordinate is on the far
    side, where their losses add up.

    >>> orthant_delta([Fraction(1), Fraction(1)], Fraction(2))
    Fraction(0, 1)
    """
    excess = sum(shifts, Fraction(0)) - epsilon
    if excess <= 0:
        return Fraction(0)
    return (1 - Fraction(exp_neg(excess, BITS)[1], 1 << BITS)) / (1 << len(shifts))
