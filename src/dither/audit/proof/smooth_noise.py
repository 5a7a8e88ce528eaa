"""Noise proportional to a smooth sensitivity: the distribution compared with its own shift and stretch.

In units of the smaller of two neighbors' sensitivities, the answers are at most 1 apart and the scales of the noise
are s and at most ``s e^beta``. For an epsilon that is not too small, :mod:`dither.accounting.smooth` proves that the
whole shift and the whole stretch of the *observed* distribution are the worst case; its enclosures are the upper
bounds here. For any epsilon the two steps can be taken one after the other, ``E_(a+b)(P, Q) <= E_a(P, R) + e^a E_b(R,
Q)``, where R is shifted but not stretched: the first term increases with the shift, the second with the stretch, since
its derivative is the density at the ends of the event times their distance. Any event on an allowed pair gives a lower
bound; the sensitivity may be any number of lattice steps, so the effect of rounding vanishes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from dither.accounting import POWERS, gaussian_smooth_delta, heavy_smooth_loss, laplace_smooth_delta
from dither.audit.proof.evidence import Evidence, Interval, exp_interval, no_noise
from dither.audit.proof.shifts import cdf, shift_evidence
from dither.exact import log
from dither.mechanisms.smooth import SmoothNoise
from dither.randomness import Law

_BITS = 512
_ONE = 1 << _BITS
_MARGIN = Fraction(1, 10**9)


def smooth_noise(mechanism: SmoothNoise) -> Evidence:
    """Evidence for the noise of ``mechanism.scale`` and sensitivities that are smooth at ``mechanism.beta``.

    >>> smooth_noise(SmoothNoise("laplace", 1, 1e-6)).at(Fraction(1))[1] <= Fraction(1, 10**6)
    True
    """
    if not (mechanism.scale > 0 and mechanism.beta > 0):
        return no_noise("any answers that differ")
    s, beta = Fraction(mechanism.scale), Fraction(mechanism.beta)
    law = mechanism.law
    if mechanism.kind in POWERS:
        return _heavy_tailed(law, s, beta, POWERS[mechanism.kind])
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
    """delta(epsilon) for Laplace and normal noise; ``shifted`` is the evidence for equal scales."""
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
    """P - e^epsilon Q on the complement of an interval, for P of scale ``wide`` around 0 and Q of scale s around 1.

    The ends, where the loss is near epsilon, are computed in floats: any ends give a lower bound.
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
    p = cdf(law, first / wider_scale, _BITS)[0] + cdf(law, -last / wider_scale, _BITS)[0]
    q = cdf(law, (first - 1) / s, _BITS)[1] + cdf(law, (1 - last) / s, _BITS)[1]
    return p - exp_interval(epsilon, _BITS)[1] * q


def _stretch_alone(law: Law, kind: str, beta: Fraction, epsilon: Fraction) -> Fraction:
    """An upper bound on delta(epsilon) between scales 1 and e^beta around the same answer, in either order.

    The event ends where the loss equals epsilon. That point is computed in floats, and the probability of what may
    lie between it and the true end is counted for P and not for Q.
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
    low, high = law.tail(z, _BITS)
    return Fraction(low, _ONE), Fraction(high, _ONE)


def _heavy_tailed(law: Law, s: Fraction, beta: Fraction, power: int) -> Evidence:
    """Density ``(1 + z^2)^-power``: the loss is bounded; the lower bound is that of one point and one allowed pair."""
    low = max(_loss_at(_largest(float(s), float(stretch)), stretch, s, power) for stretch in _stretches(beta))
    return Evidence(
        (low, Fraction(heavy_smooth_loss(s, beta, power))),
        partial(_heavy_tailed_curve, law, 1 / s),
        "answers that differ by the smaller smooth sensitivity, the sensitivities by up to e^beta",
        "interval bounds on pieces of the stretch",
    )


def _heavy_tailed_curve(law: Law, shift: Fraction, epsilon: Fraction) -> Interval:
    growth = exp_interval(epsilon, _BITS)[1]
    ends = [Fraction(end) for end in np.linspace(-3.0, 3.0, 61).tolist()]
    deltas = [cdf(law, end, 128)[0] - growth * cdf(law, end - shift, 128)[1] for end in ends]
    return max(*deltas, Fraction(0)), Fraction(1)


def _stretches(beta: Fraction) -> list[Fraction]:
    """Allowed ratios of two neighbors' scales, from e^-beta to e^beta."""
    one = 1 << 100
    largest = Fraction(math.floor(exp_interval(beta)[0] * one), one)
    smallest = 1 / largest
    return [smallest, *(smallest + (1 - smallest) * Fraction(i, 8) for i in range(1, 9)), largest]


def _largest(s: float, stretch: float) -> Fraction:
    """Where the loss between scale 1 around 0 and scale ``stretch`` around the shift is largest, in floats."""
    d = min(1.0, stretch) / s
    z = np.concatenate([-np.geomspace(1e-3, 1e9, 4001), np.linspace(-4.0, 4.0, 8001)])
    ratio = (1 + ((z - d) / stretch) ** 2) / (1 + z * z)
    return Fraction(float(z[int(np.argmax(ratio))]))


def _loss_at(z: Fraction, stretch: Fraction, s: Fraction, power: int) -> Fraction:
    """A lower bound on the loss at z."""
    d = min(Fraction(1), stretch) / s
    ratio = (1 + ((z - d) / stretch) ** 2) / (1 + z * z)
    return Fraction(log(stretch, 128)[0] + power * log(ratio, 128)[0], 1 << 128)
