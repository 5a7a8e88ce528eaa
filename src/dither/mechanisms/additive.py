"""The base of the mechanisms that add noise to numbers.

A mechanism says which law it adds and at which scale; this module releases numbers and vectors with it, on the
integers for integers and on the public lattice for everything else, and turns the law into an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.budget_hooks import spends
from dither.errors import InvalidArgument
from dither.guarantees import Guarantee
from dither.mechanisms import values
from dither.mechanisms.pictures import Pictured
from dither.mechanisms.values import Scalar, Vector
from dither.randomness import (
    BLOCK,
    SPLIT_SCALE,
    Law,
    Source,
    draw_one,
    integer_steps,
    resolve,
    round_nearest,
    round_nearest_all,
    spacing,
)


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


class ReleasesNumbers(Pictured):
    """Base of the mechanisms that release an int for an int, a float for a float and an array for an array."""

    @overload
    def release(self, value: int | np.integer[Any], *, source: Source | None = None) -> int: ...
    @overload
    def release(self, value: float | Fraction | np.floating[Any], *, source: Source | None = None) -> float: ...
    @overload
    def release(self, value: NDArray[Any], *, source: Source | None = None) -> NDArray[Any]: ...
    @overload
    def release(self, value: list[int] | tuple[int, ...], *, source: Source | None = None) -> list[int]: ...
    @overload
    def release(self, value: list[float] | tuple[float, ...], *, source: Source | None = None) -> list[float]: ...
    @overload
    def release(self, value: Any, *, source: Source | None = None) -> Any: ...
    @spends
    def release(self, value: Any, *, source: Source | None = None) -> Any:
        """Return ``value`` with noise: an int for an int, a float on the public lattice for a float or a Fraction.

        Lists, arrays and Series of pandas or polars keep their type; they count as one vector with the sensitivity of
        the mechanism.
        """
        return self._release(value, source)

    def _release(self, value: Any, source: Source | None) -> Any:
        """Return the value with noise, in its own type."""
        raise AssertionError("each mechanism draws its own noise")


_MAX_COORDINATES = 10**15

PerCoordinate = float | Any
"""A float, or for several sensitivities a tuple of floats. The type does not say which of the two it is: a union with
the tuple would have to be narrowed wherever the scale of one number is used.
"""


class Additive(ReleasesNumbers):
    """Base of the mechanisms that release ``value + noise``.

    Coordinate i gets ``scales[i]`` times a draw from ``laws[i]``, on a lattice of ``steps[i]``. A *joint*
    mechanism has one law and one sensitivity for vectors of any length; any other has one of each for every
    coordinate.
    """

    _sensitivities: tuple[Fraction, ...]
    _laws: tuple[Law, ...]
    _scales: tuple[float, ...]
    _steps: tuple[float, ...]
    _joint: bool

    def _set(
        self,
        sensitivities: tuple[Fraction, ...],
        laws: Sequence[Law],
        scales: Sequence[float],
        spreads: Sequence[float],
        *,
        joint: bool,
    ) -> None:
        """Store what a release needs, for each coordinate.

        ``sensitivities`` are those of the coordinates, ``laws`` and ``scales`` the standard laws of the noise and what
        their draws are multiplied by, and ``spreads`` the sizes of the noise, which determine the lattice that results
        are rounded to. ``joint`` is described above. Noise beyond the range of floats is refused.
        """
        for name, value in vars(self).copy().items():
            object.__setattr__(self, name, plain_value(value))
        if not all(math.isfinite(size) for size in (*scales, *spreads)):
            raise InvalidArgument(
                "epsilon", "noise that a float can hold", "more", "pass a larger epsilon or a smaller sensitivity"
            )
        object.__setattr__(self, "_sensitivities", sensitivities)
        object.__setattr__(self, "_laws", tuple(laws))
        object.__setattr__(self, "_scales", tuple(scales))
        object.__setattr__(self, "_steps", tuple(spacing(spread) for spread in spreads))
        object.__setattr__(self, "_joint", joint)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of one release."""
        raise AssertionError("each mechanism states its guarantee")

    @property
    def noise(self) -> Noise:
        """Return the laws, scales, sensitivities and lattices of the noise, for auditors and accountants.

        >>> import dither as dp
        >>> dp.Gaussian(sensitivity=[1, 1], rho=1).noise.joint
        False
        """
        return Noise(self._laws, self._scales, self._sensitivities, self._steps, self._joint)

    @property
    def scale(self) -> PerCoordinate:
        """Return the scale of the noise; one for each coordinate if there are several."""
        return _one_or_all(self._scales)

    @property
    def variance(self) -> PerCoordinate:
        """Return the variance of the ideal noise; one for each coordinate if there are several."""
        return _one_or_all(
            [scale * scale * self._unit_variance(law) for law, scale in zip(self._laws, self._scales, strict=True)]
        )

    def _unit_variance(self, law: Any) -> float:
        """Return the variance of the standard law ``law``, before it is multiplied by the scale."""
        raise AssertionError("each mechanism knows the variance of its standard law")

    def _release(self, value: Any, source: Source | None) -> Any:
        """Return the value with noise, in its own type."""
        resolved = resolve(source)
        return values.release(
            value, resolved, lambda x: self._release_one(x, resolved), lambda xs: self._release_many(xs, resolved)
        )

    def _release_one(self, x: Scalar, source: Source) -> int | float:
        """Return one number with noise; refused if there are several sensitivities."""
        if len(self._scales) != 1:
            raise self._wrong_length(1)
        return self._noisy(x, 0, source)

    def _release_many(self, xs: Vector, source: Source) -> list[Any] | NDArray[Any]:
        """Return a vector with noise: vectorized where one law serves all coordinates, else one by one."""
        if not self._joint and len(xs) != len(self._scales):
            raise self._wrong_length(len(xs))
        if self._joint and not isinstance(xs, list):
            if xs.dtype.kind == "f":
                floats = cast("NDArray[np.float64]", xs)
                return round_nearest_all(floats, self._laws[0], self._scales[0], self._steps[0], source)
            return self._noisy_integers(cast("NDArray[np.int64]", xs), source)
        numbers: list[Scalar] = xs if isinstance(xs, list) else xs.tolist()
        noisy = [self._noisy(x, 0 if self._joint else i, source) for i, x in enumerate(numbers)]
        return noisy if isinstance(xs, list) else values.as_array(noisy, xs.dtype)

    def _wrong_length(self, length: int) -> InvalidArgument:
        """Return the refusal of a vector whose length is not the number of sensitivities."""
        return InvalidArgument(
            "value",
            f"{len(self._scales)} number(s), one for each sensitivity",
            f"{length}",
            "pass one sensitivity for each coordinate, and all coordinates",
        )

    def _noisy(self, x: Scalar, i: int, source: Source) -> int | float:
        """Return a number with the noise of coordinate i: an int stays one, other numbers are rounded to the
        lattice."""
        if isinstance(x, int):
            return x + self._integer_noise_one(x, i, source)
        return round_nearest(x, self._laws[i], self._scales[i], self._steps[i], source)

    def integer_step(self, i: int) -> int:
        """Return the spacing of releases of integers in coordinate i, 1 unless the noise is very wide.

        For scales above 2^26 it is a power of two, with some 2^20 of them to the scale.
        """
        return 1 if self._scales[i] <= SPLIT_SCALE else max(1, int(self._steps[i]))

    def _integer_noise_one(self, x: int, i: int, source: Source) -> int:
        """Return the difference from x to the multiple of the integer step nearest to x + noise."""
        step = self.integer_step(i)
        if step == 1:
            return draw_one(self._laws[i], self._scales[i], source)
        rest = x % step
        offset = Fraction(rest, step)
        return draw_one(self._laws[i], self._scales[i] / step, source, float(offset), offset) * step - rest

    def _integer_noise(self, xs: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        """Draw integer noise for each of ``xs`` of a joint mechanism: the real noise, rounded."""
        return integer_steps(self._laws[0], self._scales[0], xs.size, source)

    def _one_by_one(self) -> bool:
        """Return whether noise for integers could exceed 64 bits; cut off before it is added, it would reveal the
        value."""
        return self.integer_step(0) != 1

    def _noisy_integers(self, xs: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        """Return integers with noise, in blocks that fit the cache; sums stop at the ends of 64 bits."""
        if self._one_by_one():
            return values.as_array([x + self._integer_noise_one(x, 0, source) for x in xs.tolist()], xs.dtype)
        out = np.empty(xs.size, dtype=np.int64)
        for start in range(0, xs.size, BLOCK):
            block = xs[start : start + BLOCK]
            out[start : start + BLOCK] = values.add_saturating(block, self._integer_noise(block, source))
        return out

    def error(self, confidence: float = 0.95, *, coordinates: int = 1, integer: bool | None = None) -> PerCoordinate:
        """Return the half-width w with ``P(|released - value| <= w) >= confidence``; one for each coordinate if they
        differ.

        For ``coordinates`` above 1, all of them stay within w together: they are independent, so each has
        confidence^(1/coordinates). ``integer=True`` gives the whole number that integer releases need,
        ``integer=False`` that of releases on the lattice; by default the answer holds for either, where an
        integer answer is possible (a sensitivity of 1 or more).
        """
        level = arguments.confidence(confidence)
        count = arguments.whole(coordinates, "coordinates")
        if count > _MAX_COORDINATES:
            raise InvalidArgument("coordinates", "at most 10**15", "more", "pass the length of the vector")
        tail = -math.expm1(math.log(level) / count)
        result = []
        for i, (law, scale) in enumerate(zip(self._laws, self._scales, strict=True)):
            z, slack = law.quantile_one(tail)
            width = scale * (max(z, 0.0) + (slack if math.isfinite(slack) else 1e-9 * max(z, 1.0))) * (1 + 2.0**-50)
            real, needed = width + self._steps[i] / 2, self._integer_error(i, width, tail)
            both = max(real, needed) if self._sensitivities[i] >= 1 else real
            result.append(both if integer is None else needed if integer else real)
        return _one_or_all(result)

    def integer_tail(self, value: int, threshold: int, bits: int) -> Fraction:
        """Return an upper bound on ``P(release(value) >= threshold)`` for integers: 1, the trivial one, if the noise
        need not be positive for that or is asymmetric, and else one that is exact to about ``2**-bits``.

        An integer comes out as the multiple of the integer step that is nearest to value + noise: it reaches the
        threshold where the noise passes the middle between the first multiple from there on and the one before.
        """
        step = self.integer_step(0)
        edge = -(-threshold // step) * step - Fraction(step, 2) - value
        if edge <= 0 or not self._laws[0].symmetric:
            return Fraction(1)
        # ``tail`` is in units of 2^-bits and has both sides of the noise, of which one counts
        return Fraction(self._laws[0].tail(edge / Fraction(self._scales[0]), bits)[1], 2 << bits)

    def _integer_error(self, i: int, width: float, tail: float) -> float:
        """Return the half-width for integers: rounded noise is within k where the ideal noise is within k + 1/2."""
        step = self.integer_step(i)
        return max(0.0, float(math.ceil(width - 0.5))) if step == 1 else width + step / 2


def _one_or_all(result: Sequence[float]) -> PerCoordinate:
    """Return the single element of a sequence of one, and otherwise all elements as a tuple."""
    return result[0] if len(result) == 1 else tuple(result)


def coordinates_of(value: object) -> tuple[Fraction, ...]:
    """Return exact sensitivities from one number, or from a sequence of one for each coordinate.

    >>> coordinates_of([1, 2])
    (Fraction(1, 1), Fraction(2, 1))
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, (str, bytes)):
        if len(value) == 0:
            raise InvalidArgument("sensitivity", "at least one coordinate", "none", "pass sensitivity=[1, 2]")
        return tuple(arguments.sensitivity(item) for item in value)
    return (arguments.sensitivity(value),)


def shares(split: object, optimal: Sequence[float]) -> tuple[Fraction, ...]:
    """Return shares of a budget that add up to 1 exactly, in proportion to ``split``, or to ``optimal`` if it is None.

    >>> shares([1, 3], [0.5, 0.5])
    (Fraction(1, 4), Fraction(3, 4))
    """
    if split is None:
        weights = [Fraction(weight) for weight in optimal]
    else:
        if not isinstance(split, (Sequence, np.ndarray)) or len(split) != len(optimal):
            raise InvalidArgument(
                "split",
                f"{len(optimal)} weights, one for each sensitivity",
                "a different number of weights",
                "pass split=[2, 1], for example",
            )
        weights = [Fraction(arguments.positive(weight, "split")) for weight in split]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def plain_value(value: object) -> Any:
    """Return a parameter in the form in which a frozen mechanism keeps it: tuples and numbers of Python.

    >>> plain_value(np.array([1, 2]))
    (1, 2)
    """
    if isinstance(value, np.ndarray):
        return plain_value(value.tolist())
    if isinstance(value, (list, tuple)):
        return tuple(plain_value(item) for item in value)
    return value.item() if isinstance(value, np.generic) else value
