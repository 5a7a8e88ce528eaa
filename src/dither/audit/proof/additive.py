"""Mechanisms that add noise to numbers and vectors.

Integers under Laplace noise get the discrete Laplace distribution. Every other release is the ideal real-valued
release, rounded, so the certificate of the real-valued distribution covers it. With several sensitivities, every
coordinate may move by its own sensitivity at once, and the losses of independent coordinates add up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from dither.audit.proof.evidence import BITS, Evidence, Interval, compose, no_noise, worst_of
from dither.audit.proof.selection import zcdp_delta
from dither.audit.proof.shifts import integer_laplace_shift, laplace_shift, normal_shift, orthant_delta, shift_evidence
from dither.errors import NotPrivate
from dither.exact import square_root
from dither.mechanisms import Gaussian, Laplace
from dither.mechanisms.additive import Additive
from dither.randomness import MAX_SCALE, MIN_SCALE, Exponential, Law, Normal, Staircase

_SEVERAL = "every coordinate moved by its own sensitivity at once"


def additive_noise(mechanism: Additive, sensitivities: tuple[Fraction, ...]) -> Evidence:
    """Evidence for noise under which coordinate i (or the whole vector) moves by at most ``sensitivities[i]``.

    >>> additive_noise(Laplace(sensitivity=1, epsilon=1), (Fraction(2),)).loss[1]
    Fraction(2, 1)
    """
    noise = mechanism.noise
    laws, scales = noise.laws, noise.scales
    law_types = {type(law) for law in laws}
    is_known = law_types in ({Normal}, {Staircase}) or all(law == Exponential(symmetric=True) for law in laws)
    is_known &= law_types == {Normal} or not isinstance(mechanism, Gaussian) or mechanism.rho is None
    is_known &= len(laws) == len(scales) == len(sensitivities) == (1 if noise.joint else len(noise.lattice_steps))
    is_known &= all(math.frexp(step)[0] == 0.5 for step in noise.lattice_steps) and math.inf not in scales
    if not is_known:
        raise NotPrivate(
            "mechanism",
            "Laplace, normal or staircase noise, one law for each sensitivity, on a lattice of a power of two",
            "others",
            "certify a mechanism of dither.mechanisms",
        )
    if not all(scale > 0 for scale in scales):
        return no_noise("any answers that differ")
    if isinstance(laws[0], Normal):
        return _normal(mechanism, sensitivities, scales, laws[0])
    if law_types == {Staircase}:
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
    return worst_of(real, _integers(sensitivities, scales)) if isinstance(mechanism, Laplace) else real


def _laplace(sensitivities: tuple[Fraction, ...], scales: tuple[float, ...], law: Law) -> Evidence:
    """Upper bounds come from the total shift in one coordinate, which is at least as bad as all coordinates at once;
    lower bounds from one coordinate alone and from the orthant in which all losses add up.
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
    return max(single.at(epsilon)[0], orthant_delta(shifts, epsilon)), total.at(epsilon)[1]


def _integers(sensitivities: tuple[Fraction, ...], scales: tuple[float, ...]) -> Evidence:
    """Integers move by whole numbers; for scales of 2^56 and more the noise is the real distribution, rounded."""
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
    """Only the distance in units of the standard deviations matters.

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
    low, high = real.at(epsilon)
    return low, max(high, zcdp_delta(rho, epsilon))
