"""The noise of a mechanism as a frozen value: laws, scales, sensitivities and lattices."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither.randomness import Law


@dataclass(frozen=True)
class Noise:
    """The noise of a mechanism: coordinate i gets ``scales[i]`` times a draw from ``laws[i]``.

    A *joint* mechanism has one law, one scale, one sensitivity and one lattice, which hold for every coordinate of
    vectors of any length; its sensitivity bounds the norm of the whole vector's change. Any other mechanism has one of
    each for every coordinate.

    >>> import dither as dp
    >>> noise = dp.Laplace(sensitivity=2, epsilon=1).noise
    >>> noise.scales, noise.sensitivities, noise.joint
    ((2.0,), (Fraction(2, 1),), True)
    """

    laws: tuple[Law, ...]
    """The standard laws, of scale 1."""
    scales: tuple[float, ...]
    """What each standard law is multiplied by."""
    sensitivities: tuple[Fraction, ...]
    """How far one person moves each coordinate, or the whole vector, at most."""
    lattice_steps: tuple[float, ...]
    """The spacing, a power of two, of the public lattice that real-valued releases are rounded to."""
    joint: bool
    """Whether one law and one sensitivity hold for vectors of any length."""
