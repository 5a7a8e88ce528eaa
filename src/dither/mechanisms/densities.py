"""The density of a release around a value, for pictures: from the exact tails of the law that is drawn.

For an additive law, ``P(a < Z <= b)`` is a difference of two tails, each enclosed rigorously; divided by the width of
the interval it is the density there. Nothing here enters a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dither.errors import InvalidArgument
from dither.mechanisms.additive import Additive
from dither.mechanisms.bounded import BoundedLaplace
from dither.mechanisms.mixed import MixedNoise
from dither.mechanisms.smooth import SmoothNoise
from dither.randomness import Law

_BITS = 128
_STEP = Fraction(1, 1 << 16)
"""Half the width, in scales, of the interval over which a density is averaged."""

AddsNoise = Additive | BoundedLaplace | MixedNoise | SmoothNoise
"""Mechanisms whose release has a density around the value."""


def density_at(mechanism: AddsNoise, z: float, *, value: float = 0.0, smooth_sensitivity: float = 1.0) -> float:
    """Return the density of the release of ``value`` at z. Of several coordinates it is that of the first.

    ``smooth_sensitivity`` matters for :class:`~dither.SmoothNoise` only, whose noise grows with it.

    >>> import dither as dp
    >>> round(density_at(dp.Laplace(sensitivity=1, epsilon=1), 0.5), 6) == round(math.exp(-0.5) / 2, 6)
    True
    """
    if isinstance(mechanism, BoundedLaplace):
        return _bounded(mechanism, z, value)
    law, scale = law_and_scale(mechanism, smooth_sensitivity)
    return _law_density(law, (z - value) / scale) / scale


def law_and_scale(mechanism: AddsNoise, smooth_sensitivity: float = 1.0) -> tuple[Law, float]:
    """Return the standard law of the noise of ``mechanism`` and what it is multiplied by.

    For :class:`~dither.SmoothNoise` the scale is that for ``smooth_sensitivity``, which others do not use. Of a
    mechanism for several coordinates it is the first.

    >>> import dither as dp
    >>> law_and_scale(dp.Laplace(sensitivity=1, epsilon=0.5))[1]
    2.0
    """
    if isinstance(mechanism, SmoothNoise):
        return mechanism.law, mechanism.scale * smooth_sensitivity
    chosen: Any = mechanism.mechanism if isinstance(mechanism, MixedNoise) else mechanism
    if not isinstance(chosen, Additive):
        raise InvalidArgument(
            "mechanism", "one that adds noise to a number", type(mechanism).__name__, "pass a Laplace mechanism"
        )
    noise = chosen.noise
    return noise.laws[0], noise.scales[0]


def grid(mechanism: AddsNoise, value: float, points: int = 201, *, smooth_sensitivity: float = 1.0) -> Sequence[float]:
    """Return points at which to draw a density: the middle 99 % of the noise, or the whole range of a bounded law.

    ``points`` evenly spaced points are around ``value``, the answer to which ``mechanism`` adds noise;
    ``smooth_sensitivity`` is for :class:`~dither.SmoothNoise`.

    >>> import dither as dp
    >>> places = grid(dp.Laplace(sensitivity=1, epsilon=1), 10.0, 3)
    >>> places[1], 4 < places[2] - 10 < 5
    (10.0, True)
    """
    if isinstance(mechanism, BoundedLaplace):
        low, high = float(mechanism.lower), float(mechanism.upper)
    else:
        law, scale = law_and_scale(mechanism, smooth_sensitivity)
        half_width = scale * law.quantile_one(0.01)[0]
        low, high = value - half_width, value + half_width
    return [low + (high - low) * i / (points - 1) for i in range(points)]


def _law_density(law: Law, z: float) -> float:
    """Return the density of a standard law at z, from the difference of two enclosed tails."""
    middle = Fraction(abs(z)) if law.symmetric else Fraction(z)
    low = middle - _STEP
    if law.symmetric and low < 0:
        low, width = Fraction(0), middle + _STEP
    else:
        width = 2 * _STEP
    inside = law.tail(low, _BITS)[0] - law.tail(middle + _STEP, _BITS)[0]
    density = max(0.0, float(Fraction(inside, 1 << _BITS) / width))
    return density / 2 if law.symmetric else density


def _bounded(mechanism: BoundedLaplace, z: float, value: float) -> float:
    """Return the density at z of the release of ``value`` with bounded Laplace noise; 0 outside of the limits.

    It is ``exp(-|z - q| / b) / (2 b C)``, q the value clipped to the limits and C the mass of the law between them.
    """
    low, high, scale = float(mechanism.lower), float(mechanism.upper), mechanism.scale
    if not low <= z <= high:
        return 0.0
    clipped = min(max(value, low), high)
    mass = 1 - (math.exp(-(clipped - low) / scale) + math.exp(-(high - clipped) / scale)) / 2
    return math.exp(-abs(z - clipped) / scale) / (2 * scale * mass)
