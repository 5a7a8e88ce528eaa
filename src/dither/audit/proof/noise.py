"""Privacy of added noise: the noise distribution compared with its own shift, within limits, and stretched.

Additive noise
--------------

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

Integers under Laplace noise get the discrete Laplace distribution. Every other release is the ideal real-valued
release, rounded, so the certificate of the real-valued distribution covers it. With several sensitivities, every
coordinate may move by its own sensitivity at once, and the losses of independent coordinates add up.

Laplace noise restricted to an interval
---------------------------------------
The density is ``exp(-|v - q| / b) / (2 b C_q)`` on [lower, upper].

*Reduction.* Between q and q' = q + d the privacy loss is at most ``d/b + ln(C_q' / C_q)``, attained at the limit that
is farther from q'. Since ``C_q = 1 - (e^-(q - lower)/b + e^-(upper - q)/b) / 2`` is concave, so is ln C, and its
increase over a step d is largest at q = lower; there the bound increases with d, since ``(ln C)' >= -1/b``, its value
at the upper limit. So the worst pair is an answer at the lower limit (or, by symmetry, the upper one) and an answer
one sensitivity inside. A release on a lattice is a function of the ideal one; the lower bound on the loss is that of
the first cell of the lattice.

Noise proportional to a smooth sensitivity
------------------------------------------
In units of the smaller of two neighbors' sensitivities, the answers differ by at most 1 and the scales of the noise
are s and at most ``s e^beta``. For an epsilon that is not too small, :mod:`dither.accounting.smooth` proves that the
whole shift and the whole stretch of the *observed* distribution are the worst case; its enclosures are the upper
bounds here. For any epsilon the two steps can be taken one after the other, ``E_(a+b)(P, Q) <= E_a(P, R) + e^a E_b(R,
Q)``, where R is shifted but not stretched: the first term increases with the shift, the second with the stretch, since
its derivative is the density at the ends of the event times their distance. Any event on an allowed pair gives a lower
bound; the sensitivity may be any number of lattice steps, so the effect of rounding vanishes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from dither import arguments
from dither.accounting import POWERS, gaussian_smooth_delta, heavy_smooth_loss, laplace_smooth_delta
from dither.audit.proof.certificate import (
    BITS,
    ZERO,
    Evidence,
    Interval,
    compose,
    exp_interval,
    no_noise,
    unaffected,
    worst_of,
    zcdp_delta,
)
from dither.errors import NotPrivate
from dither.exact import exactly, exp_neg, log, square_root
from dither.mechanisms import Gaussian, Laplace
from dither.mechanisms.additive import Additive
from dither.mechanisms.bounded import BoundedLaplace
from dither.mechanisms.smooth import SmoothNoise
from dither.randomness import MAX_SCALE, MIN_SCALE, Exponential, Law, Normal, Staircase, truncated_tail
from dither.randomness.discrete import DiscreteLaplace

_MAX_BITS = 16384
_LARGE_EPSILON = 400
_CLOSE = 1 << 56
_TINY = Fraction(1, 1 << 200)
_VANISHING = Fraction(1, 1 << 1200)
_LARGEST_SHIFT = "answers as far apart as the sensitivity allows"
_METHOD = "closed tail comparison"


def cdf(law: Law, z: Fraction, bits: int) -> Interval:
    """Enclose P(Z <= z) for a symmetric distribution, from its tail ``P(|Z| > z)``, with ``bits`` of precision."""
    low, high = (Fraction(end, 2 << bits) for end in law.tail(abs(z), bits))
    return (low, high) if z <= 0 else (1 - high, 1 - low)


@dataclass(frozen=True)
class ThresholdEvent:
    """The event ``{z <= end}``: enclosures of its probability under P and Q, computed with a given number of bits."""

    p: Callable[[int], Interval]
    q: Callable[[int], Interval]

    @classmethod
    def ending_at(cls, law: Law, end: Fraction, shift: Fraction) -> ThresholdEvent:
        """Return the event ``{z <= end}`` for the noise around 0 and around ``shift``."""
        return cls(lambda bits: cdf(law, end, bits), lambda bits: cdf(law, end - shift, bits))

    def probability(self, precision: int = 1 << 40) -> tuple[Interval, int]:
        """Return the probability under P to a relative error of 1 / precision, and the number of bits that were
        needed.
        """
        bits = 128
        while True:
            low, high = self.p(bits)
            if (high - low) * precision <= high or high < _VANISHING or bits >= _MAX_BITS:
                return (low, high), bits
            bits += bits // 2

    def delta(self, epsilon: Fraction) -> Interval:
        """Enclose ``P - e^epsilon Q`` for the event, with as many bits as needed; e^epsilon Q is at most about P."""
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
    """Enclose delta(epsilon), attained by the event on which the privacy loss exceeds epsilon, a half-line.

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
    """Return the evidence of Laplace noise of scale 1 for an answer that moves by ``shift``.

    The privacy loss is ``|z - shift| - |z|``.
    """
    return Evidence((shift, shift), partial(_laplace_curve, shift, law), _LARGEST_SHIFT, _METHOD)


def _laplace_curve(shift: Fraction, law: Law, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) of Laplace noise: the loss at z is ``shift - 2 z`` between the answers, which ends the
    best half-line."""
    return best_threshold_event(
        lambda loss: ThresholdEvent.ending_at(law, (shift - loss) / 2, shift), epsilon, max_loss=shift
    )


def integer_laplace_shift(shift: int, scale: float) -> Evidence:
    """Return the evidence of discrete Laplace noise for an integer that moves by ``shift``."""
    if shift == 0:
        return unaffected("no integer moves by less than 1")
    loss = shift / Fraction(scale)
    pair = _LARGEST_SHIFT.replace("answers", "integers")
    return Evidence((loss, loss), partial(_integer_laplace_curve, shift, scale), pair, _METHOD)


def _integer_laplace_curve(shift: int, scale: float, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) by the best half-line of integers."""
    law, b = DiscreteLaplace(scale), Fraction(scale)

    def integer_cdf(k: int, bits: int) -> Interval:
        """Enclose P(K <= k), where K is the integer nearest to scale * Z."""
        return cdf(law, (k + Fraction(1, 2)) / b, bits)

    def event_at_loss(loss: Fraction) -> ThresholdEvent:
        """Return the half-line of integers on which the loss is at least ``loss``."""
        k = math.floor((shift - loss * b) / 2)
        return ThresholdEvent(lambda bits: integer_cdf(k, bits), lambda bits: integer_cdf(k - shift, bits))

    return best_threshold_event(event_at_loss, epsilon, max_loss=shift / b)


def normal_shift(shift: Interval, law: Normal, rounding: Fraction = Fraction(0), coordinates: int = 1) -> Evidence:
    """Return the evidence of normal noise of standard deviation 1 for an answer that moves by ``shift``, an enclosure.

    The privacy loss ``shift^2/2 - shift z`` is unbounded; it is normal with mean rho = shift^2/2 and variance 2 rho,
    so the release is rho-zCDP, and rho is the smallest such number.

    A release on a lattice is within half a ``grain`` of the ideal one along the direction of the shift, and the lower
    bounds account for it: where several coordinates move at once, the half-line does not end at edges of cells; and
    rho is at least the divergence of order 1, which by the Donsker-Varadhan formula is at least ``m (shift - grain) -
    m^2/2`` for all m.
    """
    low, high = shift
    margin = rounding / 2 if coordinates > 1 else Fraction(0)
    rho = max(low - rounding, Fraction(0)) ** 2 / 2, high**2 / 2
    return Evidence(None, partial(_normal_curve, low, high, law, margin), _LARGEST_SHIFT, _METHOD, rho)


@lru_cache(maxsize=256)
def _normal_curve(low: Fraction, high: Fraction, law: Normal, margin: Fraction, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) for a shift between ``low`` and ``high``; the lower bound is reduced by a lattice
    ``margin``."""

    def delta(shift: Fraction) -> Interval:
        """Enclose delta(epsilon) for one shift."""
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
    """Return the evidence of staircase noise of step 1 for an answer that moves by ``shift``.

    For shifts of up to one step the privacy loss is -e, 0 or e, so that ``P(loss = e) = TV / (1 - e^-e)``, and the
    total variation distance between a unimodal symmetric distribution and its shift is ``P(|Z| <= shift/2)``. For
    larger shifts the loss is at most e for each step begun. The half-line up to 0 shows a loss of ``-ln P(|Z| >
    shift)``.
    """
    high = law.epsilon * max(1, math.ceil(shift))
    bits = BITS + min(int(high * 3 / 2), 1 << 12)
    low = min(high, Fraction(-log(Fraction(max(law.tail(shift, bits)[1], 1), 1 << bits), BITS)[1], 1 << BITS))
    return Evidence((low, high), partial(_staircase_curve, shift, law), _LARGEST_SHIFT, _METHOD)


def _staircase_curve(shift: Fraction, law: Staircase, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon): from below by some half-lines, from above by the total variation distance."""
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
    """Return the evidence of a standard distribution times ``scale`` for an answer that moves by ``sensitivity``."""
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
    """Return a lower bound on delta(epsilon) for several Laplace coordinates: the event that every coordinate is on the
    far side, where their losses add up.
    """
    excess = sum(shifts, Fraction(0)) - epsilon
    if excess <= 0:
        return Fraction(0)
    return (1 - Fraction(exp_neg(excess, BITS)[1], 1 << BITS)) / (1 << len(shifts))


_SEVERAL = "every coordinate moved by its own sensitivity at once"


def additive_noise(mechanism: Additive, sensitivities: tuple[Fraction, ...]) -> Evidence:
    """Return the evidence of additive noise, and refuse noise for which there is no proof here.

    The answers of neighbors differ in coordinate i by at most ``sensitivities[i]``; if the noise is joint, there is one
    sensitivity, which bounds the norm of the whole difference.
    """
    noise = mechanism.noise
    laws, scales = noise.laws, noise.scales
    if not _has_proof(mechanism, len(sensitivities)):
        raise NotPrivate(
            "mechanism",
            "Laplace, normal or staircase noise, one law for each sensitivity, on a lattice of a power of two",
            "noise that is not of this form",
            "certify a mechanism of dither.mechanisms",
        )
    if not all(scale > 0 for scale in scales):
        return no_noise("any answers that differ")
    if isinstance(laws[0], Normal):
        return _normal(mechanism, sensitivities, scales, laws[0])
    if isinstance(laws[0], Staircase):
        if noise.joint:
            raise NotPrivate(
                "mechanism",
                "staircase noise with a sensitivity for each coordinate",
                "one for vectors of any length, of which every coordinate that moves loses epsilon",
                "pass a sequence of sensitivities",
            )
        triples = zip(laws, sensitivities, scales, strict=True)
        singles = [shift_evidence(law, sensitivity, scale) for law, sensitivity, scale in triples]
        return singles[0] if len(singles) == 1 else compose(*singles, pair=_SEVERAL, method=singles[0].method)
    real = _laplace(sensitivities, scales, laws[0])
    # integers under Laplace get discrete noise, which is not the real law rounded
    return worst_of(real, _integers(sensitivities, scales)) if isinstance(mechanism, Laplace) else real


def _has_proof(mechanism: Additive, count: int) -> bool:
    """Return whether the proofs of this module cover the noise of a mechanism with ``count`` sensitivities."""
    noise = mechanism.noise
    law_types = {type(law) for law in noise.laws}
    is_laplace = all(law == Exponential(symmetric=True) for law in noise.laws)
    has_known_law = is_laplace or law_types in ({Normal}, {Staircase})
    is_normal_under_rho = law_types == {Normal} or not isinstance(mechanism, Gaussian) or mechanism.rho is None
    coordinates = 1 if noise.joint else len(noise.lattice_steps)
    has_one_each = len(noise.laws) == len(noise.scales) == count == coordinates
    steps_are_powers_of_two = all(math.frexp(step)[0] == 0.5 for step in noise.lattice_steps)
    is_finite = math.inf not in noise.scales
    return has_known_law and is_normal_under_rho and has_one_each and steps_are_powers_of_two and is_finite


def _laplace(sensitivities: tuple[Fraction, ...], scales: tuple[float, ...], law: Law) -> Evidence:
    """Return the evidence of Laplace noise on several coordinates that may all move at once.

    ``law`` is the standard law, and ``sensitivities`` and ``scales`` have one number for each coordinate. Upper bounds
    come from the total shift in one coordinate, which is at least as bad; lower bounds from one coordinate alone and
    from the orthant in which all losses add up.
    """
    shifts = [sensitivity / Fraction(scale) for sensitivity, scale in zip(sensitivities, scales, strict=True)]
    total = laplace_shift(sum(shifts, Fraction(0)), law)
    if len(shifts) == 1:
        return total
    single = laplace_shift(max(shifts), law)
    return Evidence(total.loss, partial(_laplace_vector_curve, total, single, tuple(shifts)), _SEVERAL, total.method)


def _laplace_vector_curve(
    total: Evidence, single: Evidence, shifts: tuple[Fraction, ...], epsilon: Fraction
) -> Interval:
    """Enclose delta(epsilon) of a vector: from below by one coordinate and the orthant, from above by the total
    shift."""
    return max(single.at(epsilon)[0], orthant_delta(shifts, epsilon)), total.at(epsilon)[1]


def _integers(sensitivities: tuple[Fraction, ...], scales: tuple[float, ...]) -> Evidence:
    """Return the evidence of Laplace noise on integers, which move by whole numbers and get discrete Laplace noise.

    There is one sensitivity and one scale for each coordinate. For scales of 2^56 and more the noise is the real
    distribution, rounded.
    """
    result = [
        integer_laplace_shift(math.floor(sensitivity), max(scale, MIN_SCALE))
        if scale <= MAX_SCALE
        else shift_evidence(Exponential(symmetric=True), sensitivity, scale)
        for sensitivity, scale in zip(sensitivities, scales, strict=True)
    ]
    return result[0] if len(result) == 1 else compose(*result, pair=_SEVERAL, method=result[0].method)


def _normal(
    mechanism: Additive, sensitivities: tuple[Fraction, ...], scales: tuple[float, ...], law: Normal
) -> Evidence:
    """Return the evidence of normal noise; only the distance in units of the standard deviations matters.

    ``sensitivities`` and ``scales`` have one number for each coordinate, and ``law`` is the standard normal law. The
    distance is the l2 norm of the shifts; the rounding of the answer to the steps of the lattice is added to it.

    The discrete Gaussian, which integers get under ``rho``, satisfies zCDP with the same rho: ``E_Q (p/q)^a = e^(a
    (a-1) rho) Z(a d) / Z(0)``, where Z(u) is the sum over the integers of ``exp(-(k - u)^2 / (2 s^2))``, which is
    largest for integer u (Poisson summation).
    """
    shifts = [sensitivity / Fraction(scale) for sensitivity, scale in zip(sensitivities, scales, strict=True)]
    distance: Interval = (shifts[0], shifts[0])
    if len(shifts) > 1:
        low, high = square_root(sum((shift * shift for shift in shifts), Fraction(0)), BITS)
        distance = Fraction(low, 1 << BITS), Fraction(high, 1 << BITS)
    steps = zip(mechanism.noise.lattice_steps, scales, strict=True)
    rounding = len(scales) * max(Fraction(step) / Fraction(scale) for step, scale in steps)
    real = normal_shift(distance, law, rounding, len(scales))
    if not isinstance(mechanism, Gaussian) or mechanism.rho is None:
        return real
    assert real.rho is not None
    curve = partial(_discrete_gaussian_curve, real, real.rho[1])
    return Evidence(None, curve, real.pair, real.method + ", and zCDP for integers", real.rho)


def _discrete_gaussian_curve(real: Evidence, rho: Fraction, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) of discrete normal noise: the curve of the real one, limited by that of rho-zCDP."""
    low, high = real.at(epsilon)
    return low, max(high, zcdp_delta(rho, epsilon))


_PAIR = "an answer at a limit and one a sensitivity inside"


@dataclass(frozen=True)
class TruncatedShift:
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
        """Return the evidence of this pair of answers: its privacy loss, enclosed, and its privacy curve."""
        loss = self._loss_lower(), self._loss_upper()
        return Evidence(loss, self._curve, _PAIR, "interval bounds on the normalized density")

    def _loss_upper(self) -> Fraction:
        """Return an upper bound on ``s/b + ln((2 - e^(-s/b) - e^(-(w - s)/b)) / (1 - e^(-w/b)))``, the largest loss.

        s is the shift and w the width between the limits.
        """
        ratio, width = self.b / self.shift, self.upper - self.lower
        bits = BITS + 2 * max(0, ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1)
        one = 1 << bits
        top = 2 * one - exp_neg(self.shift / self.b, bits)[0] - exp_neg((width - self.shift) / self.b, bits)[0]
        bottom = max(one - exp_neg(width / self.b, bits)[1], 1)
        return self.shift / self.b + Fraction(log(Fraction(top, bottom), bits)[1], one)

    def _cdf(self, q: Fraction, edge: Fraction) -> Interval:
        """Enclose P(V < edge) for the answer q."""
        bits = 2 * BITS
        one = 1 << bits
        above = truncated_tail((edge - q) / self.b, (self.lower - q) / self.b, (self.upper - q) / self.b, bits)
        return Fraction(one - above[1], one), Fraction(one - above[0], one)

    def _edge(self, v: Fraction) -> Fraction:
        """Return the first edge of a cell above v: edges are ``(k + 1/2) step`` for whole k."""
        return (math.floor(v / self.step - Fraction(1, 2)) + Fraction(3, 2)) * self.step

    def _loss_lower(self) -> Fraction:
        """Return a lower bound on the loss: the logarithm of the ratio of both probabilities of the lowest cell."""
        edge = min(self._edge(self.lower), self.upper)
        p, q = self._cdf(self.first, edge)[0], self._cdf(self.first + self.shift, edge)[1]
        return max(Fraction(0), Fraction(log(p / q, BITS)[0], 1 << BITS)) if p > 0 and q > 0 else Fraction(0)

    def _curve(self, epsilon: Fraction) -> Interval:
        """Enclose delta(epsilon); the lower bound is that of the best threshold event of cells at the worst pair."""
        if epsilon > 600:
            return Fraction(0), Fraction(1)
        growth, max_loss = exp_interval(epsilon)[1], self._loss_upper()
        start = self._edge(self.lower + max(max_loss - epsilon, Fraction(0)) * self.b / 2 - self.step)
        edges = [edge for edge in (start, start + self.step) if self.lower < edge < self.upper]
        result = [self._cdf(self.first, e)[0] - growth * self._cdf(self.first + self.shift, e)[1] for e in edges]
        return max([*result, Fraction(0)]), Fraction(1)


def bounded_laplace(mechanism: BoundedLaplace) -> Evidence:
    """Return the evidence of bounded Laplace noise: the worse of real numbers on the lattice and of integers.

    For integers the limits are half a step wider, and the scale differs.
    """
    if not mechanism.scale > 0:
        return no_noise("any answers that differ")
    lower, upper = exactly(mechanism.lower), exactly(mechanism.upper)
    sensitivity = min(arguments.sensitivity(mechanism.sensitivity), upper - lower)
    scale, step = Fraction(mechanism.scale), Fraction(mechanism.lattice_step)
    real = TruncatedShift(lower, upper, lower, sensitivity, scale, step).evidence()
    first, last = math.ceil(lower), math.floor(upper)
    shift = min(math.floor(sensitivity), last - first)
    if shift < 1:
        return real
    half = Fraction(1, 2)
    integer_scale = Fraction(mechanism.integer_scale)
    integers = TruncatedShift(first - half, last + half, Fraction(first), Fraction(shift), integer_scale, Fraction(1))
    return worst_of(real, integers.evidence())


_SMOOTH_BITS = 512
_SMOOTH_ONE = 1 << _SMOOTH_BITS
_MARGIN = Fraction(1, 10**9)


def smooth_noise(mechanism: SmoothNoise) -> Evidence:
    """Return the evidence of noise proportional to a sensitivity that is smooth at ``mechanism.beta``."""
    if not (mechanism.scale > 0 and mechanism.beta > 0):
        return no_noise("any answers that differ")
    s, beta = Fraction(mechanism.scale), Fraction(mechanism.beta)
    law = mechanism.law
    if mechanism.kind in POWERS:
        return _heavy_tailed(law, s, beta, POWERS[mechanism.kind], mechanism.exponent)
    shifted = shift_evidence(law, Fraction(1), mechanism.scale)
    return Evidence(
        None,
        partial(_light_tailed_curve, law, mechanism.kind, s, beta, shifted),
        "answers that differ by the smaller smooth sensitivity, the other one larger by e^beta",
        "closed tail comparison of a shifted and stretched law",
    )


def _light_tailed_curve(
    law: Law, kind: str, s: Fraction, beta: Fraction, shifted: Evidence, epsilon: Fraction
) -> Interval:
    """Enclose delta(epsilon) for smooth sensitivity with Laplace or normal noise (``kind``).

    The noise has the standard law ``law`` times ``s`` times the smooth sensitivity, whose ratio between neighbors is at
    most e^beta; ``shifted`` is the evidence for equal scales. The lower end is that of a shift alone, or of an event
    under a shift and a stretch. Where the formula for the upper end gives nothing, shift and stretch are taken one
    after the other, with epsilon divided between them in nine ways.
    """
    wider_scale = s * Fraction(math.floor(exp_interval(beta)[0] * (1 << 100)), 1 << 100)
    low = max(shifted.at(epsilon)[0], _outside(law, kind, wider_scale, s, epsilon))
    upper = laplace_smooth_delta if kind == "laplace" else gaussian_smooth_delta
    high = Fraction(upper(epsilon, s, beta))
    if high == 1 and epsilon < 600:
        shares = {Fraction(0), *(epsilon * i / 8 for i in range(1, 9))}
        two_steps = [
            shifted.at(epsilon - share)[1] + exp_interval(epsilon - share)[1] * _stretch_alone(law, kind, beta, share)
            for share in shares
        ]
        high = min(Fraction(1), *two_steps)
    return low, high


def _outside(law: Law, kind: str, wider_scale: Fraction, s: Fraction, epsilon: Fraction) -> Fraction:
    """Return a lower bound on delta(epsilon): ``P - e^epsilon Q`` on the complement of an interval.

    P has scale ``wider_scale`` around 0, and Q has scale s around 1; ``law`` is their standard law, which ``kind``
    names. The ends of the interval, where the loss is near epsilon, are the roots of a linear or quadratic equation.
    They are computed in floats, since any ends give a lower bound.
    """
    u, v, target = float(wider_scale), float(s), float(epsilon)
    if epsilon > 600 or not wider_scale > s:
        return Fraction(0)
    if kind == "laplace":
        t, gap = v * (target + math.log(u / v)), 1 - v / u
        ends = ((1 - t) / gap, (1 + t) / gap)
    else:
        gap, t = 1 - (v / u) ** 2, 1 - 2 * v * v * (target + math.log(u / v))
        root = math.sqrt(max(1 - gap * t, 0.0))
        ends = ((1 - root) / gap, (1 + root) / gap)
    first, last = Fraction(ends[0]), Fraction(ends[1])
    p = cdf(law, first / wider_scale, _SMOOTH_BITS)[0] + cdf(law, -last / wider_scale, _SMOOTH_BITS)[0]
    q = cdf(law, (first - 1) / s, _SMOOTH_BITS)[1] + cdf(law, (1 - last) / s, _SMOOTH_BITS)[1]
    return p - exp_interval(epsilon, _SMOOTH_BITS)[1] * q


def _stretch_alone(law: Law, kind: str, beta: Fraction, epsilon: Fraction) -> Fraction:
    """Return an upper bound on delta(epsilon) between scales 1 and e^beta around one answer, in either order.

    ``law`` is the standard law, Laplace or normal, which ``kind`` names. The event ends where the loss equals epsilon.
    That point is computed in floats, and the probability of what may lie between it and the true end is counted for P
    and not for Q.
    """
    power = 1 if kind == "laplace" else 2
    gap = -math.expm1(-power * float(beta)) / power
    stretch, growth, result = exp_interval(beta), exp_interval(epsilon)[0], Fraction(0)
    for sign in (1, -1):
        level = (float(epsilon) + sign * float(beta)) * sign / gap
        if level <= 0:
            continue
        end = Fraction(level ** (1 / power))
        first, last = end * (1 - _MARGIN), end * (1 + _MARGIN)
        if sign == 1:  # the wider distribution is observed, outside of an interval
            result = max(result, _tail(law, first / stretch[1])[1] - growth * _tail(law, last)[0])
        else:
            result = max(result, 1 - _tail(law, last)[0] - growth * (1 - _tail(law, first / stretch[1])[1]))
    return result


def _tail(law: Law, z: Fraction) -> Interval:
    """Enclose P(Z > z) for a symmetric distribution, z >= 0."""
    low, high = law.tail(z, _SMOOTH_BITS)
    return Fraction(low, _SMOOTH_ONE), Fraction(high, _SMOOTH_ONE)


def _heavy_tailed(law: Law, s: Fraction, beta: Fraction, power: int, gamma: Fraction) -> Evidence:
    """Return the evidence of noise with density proportional to ``(1 + |z|^gamma)^-power``, whose loss is bounded.

    The noise is z times ``s`` times the smooth sensitivity, whose ratio between neighbors is at most e^beta. The lower
    bound on the loss is that of one point and one allowed pair.
    """
    low = max(
        _loss_at(_largest(float(s), float(stretch), float(gamma)), stretch, s, power, gamma)
        for stretch in _stretches(beta)
    )
    return Evidence(
        (low, Fraction(heavy_smooth_loss(s, beta, power, gamma))),
        partial(_heavy_tailed_curve, law, 1 / s),
        "answers that differ by the smaller smooth sensitivity, the sensitivities by up to e^beta",
        "closed formula at the ends of the stretch" if power == 1 else "interval bounds on pieces of the stretch",
    )


def _heavy_tailed_curve(law: Law, shift: Fraction, epsilon: Fraction) -> Interval:
    """Enclose delta(epsilon) from below by half-lines under a shift alone; 1 is the upper bound.

    ``law`` is the standard law and ``shift`` the distance of the answers in units of the scale. Any half-line gives a
    lower bound; 61 of them are tried.
    """
    growth = exp_interval(epsilon, _SMOOTH_BITS)[1]
    ends = [Fraction(end) for end in np.linspace(-3.0, 3.0, 61).tolist()]
    deltas = [cdf(law, end, 128)[0] - growth * cdf(law, end - shift, 128)[1] for end in ends]
    return max(*deltas, Fraction(0)), Fraction(1)


def _stretches(beta: Fraction) -> list[Fraction]:
    """Return ratios of two neighbors' scales, from e^-beta to e^beta, at which lower bounds are tried."""
    one = 1 << 100
    largest = Fraction(math.floor(exp_interval(beta)[0] * one), one)
    smallest = 1 / largest
    return [smallest, *(smallest + (1 - smallest) * Fraction(i, 8) for i in range(1, 9)), largest]


def _largest(s: float, stretch: float, gamma: float) -> Fraction:
    """Return the point where the loss is near its largest, found on a grid in floats: any point gives a lower bound.

    The loss is that between scale 1 around 0 and scale ``stretch`` around the shift, for noise with density
    proportional to a power of ``1 + |z|^gamma``. The shift is the smaller of the two sensitivities divided by ``s``.
    """
    d = min(1.0, stretch) / s
    z = np.concatenate([-np.geomspace(1e-3, 1e9, 4001), np.linspace(-4.0, 4.0, 8001)])
    log_ratio = _log_one_plus_power((z - d) / stretch, gamma) - _log_one_plus_power(z, gamma)
    return Fraction(float(z[int(np.argmax(log_ratio))]))


def _log_one_plus_power(z: np.ndarray, gamma: float) -> np.ndarray:
    """Return ``ln(1 + |z|^gamma)``, without overflow."""
    with np.errstate(divide="ignore"):
        result: np.ndarray = np.logaddexp(0.0, gamma * np.log(np.abs(z)))
    return result


def _loss_at(z: Fraction, stretch: Fraction, s: Fraction, power: int, gamma: Fraction) -> Fraction:
    """Return a lower bound on the privacy loss at z, ``ln(stretch) + power ln((1 + |u|^gamma) / (1 + |z|^gamma))``.

    One answer is 0 with scale 1, the other ``d = min(1, stretch) / s`` with scale ``stretch``, so that ``u = (z - d) /
    stretch``.
    """
    d = min(Fraction(1), stretch) / s
    ratio = (1 + _power((z - d) / stretch, gamma)[0]) / (1 + _power(z, gamma)[1])
    return Fraction(log(stretch, 128)[0] + power * log(ratio, 128)[0], 1 << 128)


def _power(z: Fraction, gamma: Fraction) -> Interval:
    """Enclose ``|z|^gamma``; exactly, where gamma is a whole number."""
    if gamma.denominator == 1:
        return abs(z) ** int(gamma), abs(z) ** int(gamma)
    if not z:
        return ZERO
    low, high = (Fraction(end, _SMOOTH_ONE) for end in log(abs(z), _SMOOTH_BITS))
    return exp_interval(gamma * low, _SMOOTH_BITS)[0], exp_interval(gamma * high, _SMOOTH_BITS)[1]
