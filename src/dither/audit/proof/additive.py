"""Mechanisms that add noise to numbers and vectors: which laws are drawn, and their shifts together.

Integers under Laplace noise get the discrete law; everything else is the ideal real release, rounded, so the real
law's certificate covers it. Several sensitivities: every coordinate may move by its own at once, and the losses of
independent coordinates add up.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dither.audit.proof.evidence import BITS, Evidence, Interval, no_noise, together, worst
from dither.audit.proof.selection import concentrated_delta
from dither.audit.proof.shifts import corner, integer_laplace_shift, laplace_shift, normal_shift, shifted
from dither.errors import NotPrivate, message
from dither.exact import square_root
from dither.mechanisms import Gaussian, Laplace
from dither.mechanisms.additive import Additive
from dither.randomness import MAX_SCALE, MIN_SCALE, Exponential, Law, Normal, Staircase

_SEVERAL = "every coordinate moved by its own sensitivity at once"


def added_noise(mechanism: Additive, parts: tuple[Fraction, ...]) -> Evidence:
    """The noise that ``mechanism`` draws, where coordinate i (or the whole vector) moves by ``parts[i]`` at most.

    >>> added_noise(Laplace(sensitivity=1, epsilon=1), (Fraction(2),)).loss[1]
    Fraction(2, 1)
    """
    noise = mechanism.noise
    laws, scales = noise.laws, noise.scales
    kinds = {type(law) for law in laws}
    known = kinds <= {Normal} or kinds <= {Staircase} or all(law == Exponential(symmetric=True) for law in laws)
    known &= kinds == {Normal} or not isinstance(mechanism, Gaussian) or mechanism.rho is None
    known &= len(laws) == len(scales) == len(parts) == (1 if noise.joint else len(noise.lattice_steps))
    known &= all(math.frexp(step)[0] == 0.5 for step in noise.lattice_steps) and math.inf not in scales
    if not known:
        raise NotPrivate(
            message(
                "mechanism",
                "Laplace, normal or staircase noise, one law for each sensitivity, on a lattice of a power of two",
                "others",
                "certify a mechanism of dither.mechanisms",
            )
        )
    if not all(scale > 0 for scale in scales):
        return no_noise("any answers that differ")
    if kinds == {Normal}:
        return _normal(mechanism, parts, scales, laws[0])
    if kinds == {Staircase}:
        if noise.joint:
            raise NotPrivate(
                message(
                    "mechanism",
                    "staircase noise with a sensitivity for each coordinate",
                    "one for vectors of any length, of which every coordinate that moves loses epsilon",
                    "pass a sequence of sensitivities",
                )
            )
        singles = [shifted(law, part, scale) for law, part, scale in zip(laws, parts, scales, strict=True)]
        return singles[0] if len(singles) == 1 else together(*singles, pair=_SEVERAL, method=singles[0].method)
    real = _laplace(parts, scales, laws[0])
    return worst(real, _integers(parts, scales)) if isinstance(mechanism, Laplace) else real


def _laplace(parts: tuple[Fraction, ...], scales: tuple[float, ...], law: Law) -> Evidence:
    """A shift of the sum in one coordinate is no better than all of them at once, and at the corner no worse."""
    shifts = [part / Fraction(scale) for part, scale in zip(parts, scales, strict=True)]
    whole = laplace_shift(sum(shifts, Fraction(0)), law)
    if len(shifts) == 1:
        return whole
    alone, all_at_once = laplace_shift(max(shifts), law), corner(shifts)

    def curve(at: Fraction) -> Interval:
        return max(alone.at(at)[0], all_at_once(at)[0]), whole.at(at)[1]

    return Evidence(whole.loss, curve, _SEVERAL, whole.method)


def _integers(parts: tuple[Fraction, ...], scales: tuple[float, ...]) -> Evidence:
    """Integers move by whole numbers; from scales of 2^56 on they get the real law, rounded."""
    result = [
        integer_laplace_shift(math.floor(part), max(scale, MIN_SCALE))
        if scale <= MAX_SCALE
        else shifted(Exponential(symmetric=True), part, scale)
        for part, scale in zip(parts, scales, strict=True)
    ]
    return result[0] if len(result) == 1 else together(*result, pair=_SEVERAL, method=result[0].method)


def _normal(mechanism: Additive, parts: tuple[Fraction, ...], scales: tuple[float, ...], law: Law) -> Evidence:
    """The distance in units of the deviations is all that counts. The discrete law, which integers get under ``rho``,
    has the same rho: ``E_Q (p/q)^a = e^(a (a-1) rho) Z(a d) / Z(0)``, Z(u) the sum over the integers of ``exp(-(k -
    u)^2 / (2 s^2))``, which is largest for whole u (Poisson summation).
    """
    shifts = [part / Fraction(scale) for part, scale in zip(parts, scales, strict=True)]
    distance: Interval = (shifts[0], shifts[0])
    if len(shifts) > 1:
        low, high = square_root(sum((shift * shift for shift in shifts), Fraction(0)), BITS)
        distance = Fraction(low, 1 << BITS), Fraction(high, 1 << BITS)
    steps = zip(mechanism.noise.lattice_steps, scales, strict=True)
    grain = len(scales) * max(Fraction(step) / Fraction(scale) for step, scale in steps)
    real = normal_shift(distance, law, grain, len(scales))
    if not isinstance(mechanism, Gaussian) or mechanism.rho is None:
        return real
    assert real.rho is not None
    rho = real.rho[1]

    def curve(at: Fraction) -> Interval:
        low, high = real.at(at)
        return low, max(high, concentrated_delta(rho, at))

    return Evidence(None, curve, real.pair, real.method + ", and zCDP for integers", real.rho)
