"""Noise of the size of a smooth sensitivity: the law against itself, shifted and stretched.

In units of the smaller of two neighbours' sensitivities the answers are at most 1 apart and the scales of the noise
are s and at most ``s e^beta``. That the whole shift and the whole stretch of the *observed* law are worst is proved in
:mod:`dither.accounting.smooth`, for an epsilon that is not too small, whose enclosures are used from above. For any
epsilon the two steps can be taken one after the other, ``E_(a+b)(P, Q) <= E_a(P, R) + e^a E_b(R, Q)``, R being shifted
but not stretched: the first grows with the shift, the second with the stretch, since ``d/db`` of it is the density at
the ends of the test times their distance. From below every test on an allowed pair will do; the sensitivity may be any
number of lattice steps, so that what rounding hides vanishes.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dither.accounting import POWERS, gaussian_smooth_delta, heavy_smooth_loss, laplace_smooth_delta
from dither.audit.proof.evidence import Evidence, Interval, exp_ends, no_noise
from dither.audit.proof.shifts import below, shifted
from dither.exact import log
from dither.mechanisms.smooth import _LAWS, SmoothNoise
from dither.randomness import Law

_BITS = 512
_ONE = 1 << _BITS
_MARGIN = Fraction(1, 10**9)


def smooth_noise(mechanism: SmoothNoise) -> Evidence:
    """The noise of ``mechanism.scale``, for sensitivities that are smooth at ``mechanism.beta``.

    >>> smooth_noise(SmoothNoise("laplace", 1, 1e-6)).at(Fraction(1))[1] <= Fraction(1, 10**6)
    True
    """
    if not (mechanism.scale > 0 and mechanism.beta > 0):
        return no_noise("any answers that differ")
    s, beta = Fraction(mechanism.scale), Fraction(mechanism.beta)
    law = _LAWS[mechanism.kind]
    if mechanism.kind in POWERS:
        return _heavy(law, s, beta, POWERS[mechanism.kind])
    upper = laplace_smooth_delta if mechanism.kind == "laplace" else gaussian_smooth_delta
    wide = s * Fraction(math.floor(exp_ends(beta)[0] * (1 << 100)), 1 << 100)
    same = shifted(law, Fraction(1), mechanism.scale)

    def curve(at: Fraction) -> Interval:
        low = max(same.at(at)[0], _outside(law, mechanism.kind, wide, s, at))
        high = Fraction(upper(at, s, beta))
        if high == 1 and at < 600:
            parts = {Fraction(0), *(at * i / 8 for i in range(1, 9))}
            steps = [
                same.at(at - part)[1] + exp_ends(at - part)[1] * _stretch_alone(law, mechanism.kind, beta, part)
                for part in parts
            ]
            high = min(Fraction(1), *steps)
        return low, high

    return Evidence(
        None,
        curve,
        "answers apart by the smaller smooth sensitivity, the other one larger by e^beta",
        "closed tail comparison of a shifted and stretched law",
    )


def _outside(law: Law, kind: str, wide: Fraction, s: Fraction, at: Fraction) -> Fraction:
    """P - e^at Q on the outside of an interval, P of scale ``wide`` around 0 and Q of scale s around 1.

    The ends, where the loss is near ``at``, come from floats: any ends give a lower bound.
    """
    u, v, wanted = float(wide), float(s), float(at)
    if at > 600 or not wide > s:
        return Fraction(0)
    if kind == "laplace":
        t, gap = v * (wanted + math.log(u / v)), 1 - v / u
        ends = ((1 - t) / gap, (1 + t) / gap)
    else:
        gap, t = 1 - (v / u) ** 2, 1 - 2 * v * v * (wanted + math.log(u / v))
        root = math.sqrt(max(1 - gap * t, 0.0))
        ends = ((1 - root) / gap, (1 + root) / gap)
    first, last = Fraction(ends[0]), Fraction(ends[1])
    p = below(law, first / wide, _BITS)[0] + below(law, -last / wide, _BITS)[0]
    q = below(law, (first - 1) / s, _BITS)[1] + below(law, (1 - last) / s, _BITS)[1]
    return p - exp_ends(at, _BITS)[1] * q


def _stretch_alone(law: Law, kind: str, beta: Fraction, at: Fraction) -> Fraction:
    """delta(at) between scales 1 and e^beta around the same answer, either one observed, from above.

    The test ends where the loss is ``at``: at a float, and what may lie between that and the true end is counted for P
    and not for Q.
    """
    power = 1 if kind == "laplace" else 2
    gap = -math.expm1(-power * float(beta)) / power
    wide, growth, result = exp_ends(beta), exp_ends(at)[0], Fraction(0)
    for sign in (1, -1):
        level = (float(at) + sign * float(beta)) * sign / gap
        if level <= 0:
            continue
        end = Fraction(level ** (1 / power))
        first, last = end * (1 - _MARGIN), end * (1 + _MARGIN)
        if sign == 1:  # the wide one observed, outside
            result = max(result, _tail(law, first / wide[1])[1] - growth * _tail(law, last)[0])
        else:
            result = max(result, 1 - _tail(law, last)[0] - growth * (1 - _tail(law, first / wide[1])[1]))
    return result


def _tail(law: Law, z: Fraction) -> Interval:
    low, high = law.tail(z, _BITS)
    return Fraction(low, _ONE), Fraction(high, _ONE)


def _heavy(law: Law, s: Fraction, beta: Fraction, power: int) -> Evidence:
    """Density ``(1 + z^2)^-power``: the loss is bounded; from below it is that of one point and one allowed pair."""
    low = max(_at_point(_largest(float(s), float(stretch)), stretch, s, power) for stretch in _stretches(beta))
    shift = 1 / s

    def curve(at: Fraction) -> Interval:
        growth = exp_ends(at, _BITS)[1]
        ends = [Fraction(end) for end in np.linspace(-3.0, 3.0, 61).tolist()]
        result = max(below(law, end, 128)[0] - growth * below(law, end - shift, 128)[1] for end in ends)
        return max(result, Fraction(0)), Fraction(1)

    return Evidence(
        (low, Fraction(heavy_smooth_loss(s, beta, power))),
        curve,
        "answers apart by the smaller smooth sensitivity, the sensitivities by up to e^beta",
        "interval bounds on pieces of the stretch",
    )


def _stretches(beta: Fraction) -> list[Fraction]:
    """Allowed quotients of two neighbours' scales, from e^-beta to e^beta."""
    one = 1 << 100
    most = Fraction(math.floor(exp_ends(beta)[0] * one), one)
    return [1 / most, *(1 / most + (1 - 1 / most) * Fraction(i, 8) for i in range(1, 9)), most]


def _largest(s: float, stretch: float) -> Fraction:
    """Where the loss between scale 1 around 0 and scale ``stretch`` around the shift is largest, in floats."""
    d = min(1.0, stretch) / s
    z = np.concatenate([-np.geomspace(1e-3, 1e9, 4001), np.linspace(-4.0, 4.0, 8001)])
    ratio = (1 + ((z - d) / stretch) ** 2) / (1 + z * z)
    return Fraction(float(z[int(np.argmax(ratio))]))


def _at_point(z: Fraction, stretch: Fraction, s: Fraction, power: int) -> Fraction:
    """The loss at z, from below."""
    d = min(Fraction(1), stretch) / s
    ratio = (1 + ((z - d) / stretch) ** 2) / (1 + z * z)
    return Fraction(log(stretch, 128)[0] + power * log(ratio, 128)[0], 1 << 128)
