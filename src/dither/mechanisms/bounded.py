"""Laplace noise that stays inside public limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import Approximate, Pure, pure_delta
from dither.errors import InvalidArgument
from dither.exact import Enclosure, decimal, exactly, exp_neg, log, up
from dither.exact.search import smallest_float
from dither.guarantees import ApproxDP, PureDP
from dither.mechanisms import values
from dither.mechanisms.additive import ReleasesNumbers, plain_value
from dither.mechanisms.values import Scalar, Vector
from dither.randomness import Source, draw_one, resolve, round_nearest, spacing, truncated_tail

_BITS = 96
_EXACT = 1 << 53


class TruncatedLaplace:
    """The standard Laplace law around one value, kept to ``low <= z <= high`` with ``low <= 0 <= high``.

    U = P(Z > z). The upper mass ``s = (exp(-high) + u m) / 2``, m = 2 - exp(low) - exp(-high), is a sum of
    positive terms, good to a relative 2^-42; so is the lower one with 1 - u for u <= 1 - 2^-12. z is the
    logarithm of twice the smaller of them: off by less than 2^-40.
    """

    __slots__ = ("_ends", "_floats")
    symmetric = False
    high = 1 - 2.0**-12
    error = 2.0**-40

    def __init__(self, value: Fraction | float, lower: Fraction | float, upper: Fraction | float, scale: float) -> None:
        """Take the law around ``value`` between the limits ``lower`` and ``upper``, in units of ``scale``.

        ``low`` and ``high`` of the class are the distances of the limits from the value, divided by the scale.
        """
        self._ends = (value, lower, upper, scale)
        if lower >= -_EXACT and upper <= _EXACT and not any(isinstance(x, Fraction) for x in (value, lower, upper)):
            self._floats = ((lower - value) / scale, (upper - value) / scale)
        else:  # a large int or a Fraction would be rounded to a float before the difference is taken
            exact = Fraction(value)
            self._floats = (float(Fraction(lower) - exact) / scale, float(Fraction(upper) - exact) / scale)

    def quantile(self, u: NDArray[np.float64]) -> None:
        """Replace each element by its quantile, by :meth:`quantile_one`."""
        u[:] = [self.quantile_one(x)[0] for x in u.tolist()]

    def quantile_one(self, u: float) -> tuple[float, float]:
        """Return the z with ``P(Z > z) = u``, and a bound on its error."""
        low, high = self._floats
        below, above = math.exp(low), math.exp(-high)
        mass = -math.expm1(low) - math.expm1(-high)
        upper = above + u * mass
        if upper <= 1:
            return -math.log(max(upper, 1e-300)), self.error
        return math.log(max(below + (1 - u) * mass, 1e-300)), self.error

    def tail(self, z: Fraction, bits: int) -> Enclosure:
        """Enclose P(Z > z) in units of ``2**-bits``; z is measured from the value, in scales."""
        value, lower, upper, scale = (Fraction(end) for end in self._ends)
        return truncated_tail(z, (lower - value) / scale, (upper - value) / scale, bits)


@dataclass(frozen=True)
class BoundedLaplace(ReleasesNumbers):
    """Release a number in [lower, upper] with density proportional to ``exp(-|v - q| / b)`` there.

    *Statement.* If neighbors' answers, after clipping to [lower, upper], differ by at most ``sensitivity <=
    upper - lower``, the release is (epsilon, delta)-DP (epsilon-DP for delta = 0) when ``b >= sensitivity /
    (epsilon - ln C(b) - ln(1 - delta))``, ``C(b) = C_{l+s} / C_l``, ``C_q = 1 - (exp(-(q-l)/b) + exp(-(u-q)/b))
    / 2`` (Holohan, Antonatos, Braghin and Mac Aonghusa 2018). The smallest such b, a fixed point, is used. The
    naive ``b = sensitivity / epsilon`` is not epsilon-DP: what the density is divided by depends on the data.

    *Why.* The log-density moves by ``d/b + ln(C_{q+d} / C_q)`` for a shift d. C is concave, so this is largest
    at q = l, where it grows with d; and ``ln 1/(1-delta)`` more loss is covered by delta.

    Values are drawn by inversion on the lattice inside the limits, without rejection, so the time taken does
    not depend on how close the value is to a limit.

    Examples
    --------
    >>> m = BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10)
    >>> round(m.scale, 5)
    1.61156
    >>> 0 <= m.release(0.1) <= 10, isinstance(m.release(3), int)
    (True, True)
    """

    sensitivity: float
    epsilon: float
    lower: float
    upper: float
    delta: float = 0.0
    scale: float = field(init=False, repr=False, compare=False)
    """The fixed point b."""
    lattice_step: float = field(init=False, repr=False, compare=False)
    """The spacing, a power of two, of the public lattice that real-valued releases are rounded to."""
    _allowed: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the parameters, store limits as exact numbers or floats, and compute the scale b.

        ``_allowed`` is the privacy loss that b must not exceed, ``epsilon - ln(1 - delta)``, rounded down.
        """
        ends = arguments.bounds((self.lower, self.upper), "(lower, upper)")
        for name, end in zip(("lower", "upper"), ends, strict=True):
            if not isinstance(getattr(self, name), Fraction):
                object.__setattr__(self, name, end)
        width = exactly(self.upper) - exactly(self.lower)
        if width >= 1 << 1000:
            raise InvalidArgument(
                "(lower, upper)", "limits whose difference is at most 1e+300", "more", "move them closer"
            )
        exact_sensitivity, epsilon = arguments.sensitivity(self.sensitivity), arguments.epsilon(self.epsilon)
        if exact_sensitivity > width:
            raise InvalidArgument(
                "sensitivity",
                f"at most upper - lower = {float(width):g}",
                self.sensitivity,
                "no answer inside the limits can move farther: pass that",
            )
        delta_allowance = Fraction(0)
        if decimal(self.delta, "delta") != 0:
            exact_delta = arguments.delta(self.delta)
            delta_allowance = Fraction(-log(1 - exact_delta, _BITS)[1], 1 << _BITS)
        for name, value in vars(self).copy().items():
            object.__setattr__(self, name, plain_value(value))
        object.__setattr__(self, "_allowed", epsilon + delta_allowance)
        object.__setattr__(self, "scale", _fixed_point(exact_sensitivity, width, epsilon + delta_allowance))
        object.__setattr__(self, "lattice_step", spacing(min(self.scale, float(width))))

    @classmethod
    def for_error(
        cls,
        error: float,
        *,
        sensitivity: float,
        lower: float,
        upper: float,
        confidence: float = 0.95,
        delta: float = 0.0,
    ) -> BoundedLaplace:
        """Return the mechanism with the smallest epsilon that stays within ``error``, wherever the value is.

        ``confidence`` is the probability with which it does; the other parameters are those of the class.

        >>> BoundedLaplace.for_error(3, sensitivity=1, lower=0, upper=10).error() <= 3
        True
        """
        width = arguments.positive(error, "error")

        def fits(epsilon: float) -> bool:
            """Return whether the mechanism at this epsilon stays within the error."""
            return cls(sensitivity, epsilon, lower, upper, delta).error(confidence) <= width

        if not fits(1e6):
            raise InvalidArgument("error", "an error that epsilon = 1e6 can reach", error, "accept a larger error")
        return cls(sensitivity, smallest_float(fits, 1e-9, 1e6), lower, upper, delta)

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """Return epsilon-DP, or (epsilon, delta)-DP where a delta was given."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def event(self) -> Pure | Approximate:
        """Return the event for accountants, which know only the guarantee."""
        epsilon = arguments.epsilon(self.epsilon)
        return Approximate(epsilon, self.delta) if self.delta else Pure(epsilon)

    @property
    def variance(self) -> float:
        """Return the mean squared error around the value where it is largest, at a limit.

        There the noise is an exponential law of scale b, cut off at the other limit.
        """
        r = (float(self.upper) - float(self.lower)) / self.scale
        return (
            self.scale**2 * (2 - (r * r + 2 * r + 2) * math.exp(-r)) / -math.expm1(-r)
            if r > 1e-3
            else (r * self.scale) ** 2 / 3
        )

    def error(self, confidence: float = 0.95) -> float:
        """Return the half-width w with ``P(|released - value| <= w) >= confidence`` for every value inside the limits.

        At a limit ``P(|V - q| > w) = (exp(-w/b) - exp(-W/b)) / (1 - exp(-W/b))``, W = upper - lower; anywhere
        else it is smaller. Integers need the next whole number.
        """
        tail, r = 1 - arguments.confidence(confidence), (float(self.upper) - float(self.lower)) / self.scale
        return self.scale * -math.log(tail + (1 - tail) * math.exp(-r)) * (1 + 1e-13) + self.lattice_step / 2

    def privacy_curve(self, epsilon: float) -> float:
        """Return a delta for which the release is (epsilon, delta)-DP, rounded up.

        From the exact largest loss L, by what is the best possible for L-DP: ``(1 - exp(epsilon - L)) / (1 +
        exp(-L))``. It is 0 from L on.

        >>> m = BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10)
        >>> m.privacy_curve(1)
        0.0
        """
        exact_epsilon = arguments.epsilon_or_zero(epsilon)
        largest_loss = _loss(
            arguments.sensitivity(self.sensitivity), exactly(self.upper) - exactly(self.lower), Fraction(self.scale)
        )
        return up(pure_delta(largest_loss, exact_epsilon))

    def _release(self, value: Any, source: Source | None) -> Any:
        """Return a value inside the limits, near ``value``; an int for an int."""
        resolved = resolve(source)

        def many(xs: Vector) -> list[Any] | NDArray[Any]:
            """Return each number with independent noise, as a list or as an array of the same type."""
            noisy = [self._noisy(x, resolved) for x in (xs if isinstance(xs, list) else xs.tolist())]
            return noisy if isinstance(xs, list) else values.as_array(noisy, xs.dtype)

        def no_vector(xs: Vector) -> list[Any] | NDArray[Any]:
            """Release the one element of a vector; longer vectors are refused, since each coordinate needs its own
            budget."""
            if len(xs) > 1:
                raise InvalidArgument(
                    "value",
                    "one number",
                    f"{len(xs)} numbers",
                    "release each coordinate with its own mechanism and share of epsilon",
                )
            return many(xs)

        return values.release(value, resolved, lambda x: self._noisy(x, resolved), no_vector)

    def _noisy(self, x: Scalar, source: Source) -> int | float:
        """Return a number with noise, within the limits."""
        if not isinstance(x, int):
            clipped = min(max(x, self.lower), self.upper)
            law = TruncatedLaplace(clipped, self.lower, self.upper, self.scale)
            noisy = round_nearest(clipped, law, self.scale, self.lattice_step, source)
            return float(min(max(noisy, self.lower), self.upper))
        return self._noisy_integer(x, source)

    def _noisy_integer(self, x: int, source: Source) -> int:
        """Return the integer ``x``, clipped to the limits, with noise drawn from ``source``; an integer inside the
        limits.

        The law has limits half a step wider, so that every integer has a whole cell of width 1.
        """
        first, last = math.ceil(self.lower), math.floor(self.upper)
        if first > last:
            raise InvalidArgument(
                "value", "a float: there is no whole number inside the limits", "an int", "pass float(value)"
            )
        clipped = min(max(x, first), last)
        half = 0.5 if first > -(1 << 51) and last < 1 << 51 else Fraction(1, 2)  # beyond, a float has no halves
        law = TruncatedLaplace(clipped, first - half, last + half, self.integer_scale)
        return min(max(clipped + draw_one(law, self.integer_scale, source), first), last)

    @cached_property
    def integer_scale(self) -> float:
        """Return the scale of the noise on integers: the smallest that is private for limits half a step wider."""
        width = Fraction(math.floor(self.upper) - math.ceil(self.lower) + 1)
        exact_sensitivity = min(arguments.sensitivity(self.sensitivity), width)
        return _fixed_point(exact_sensitivity, width, self._allowed)


def _loss(sensitivity: Fraction, width: Fraction, b: Fraction) -> Fraction:
    """Return the largest loss at scale b, rounded up.

    It is ``s/b + ln((2 - e^(-s/b) - e^(-(w - s)/b)) / (1 - e^(-w/b)))``, s the sensitivity and w the width between the
    limits: the quotient is that of the masses inside the limits around ``lower + s`` and around ``lower``.
    """
    # both sides of the quotient are about width / b where that is small, and their logarithm is about sensitivity / b
    relative = b / sensitivity
    bits = _BITS + 2 * max(0, relative.numerator.bit_length() - relative.denominator.bit_length() + 1)
    one = 1 << bits
    top = 2 * one - exp_neg(sensitivity / b, bits)[0] - exp_neg((width - sensitivity) / b, bits)[0]
    bottom = max(one - exp_neg(width / b, bits)[1], 1)
    return sensitivity / b + Fraction(log(Fraction(top, bottom), bits)[1], one)


def _fixed_point(sensitivity: Fraction, width: Fraction, max_loss: Fraction) -> float:
    """Return the smallest scale b whose privacy loss is at most ``max_loss``: bisection in floats, then certified.

    ``sensitivity`` is that of the answer and ``width`` the distance of the limits. The float is raised by a relative
    2^-50, doubled until the exact loss is small enough.
    """
    s, w, target = float(sensitivity), float(width), float(max_loss)

    def floats(b: float) -> float:
        """Return the largest privacy loss at scale b, in floats; the formula is that of :func:`_loss`."""
        top = -math.expm1(-s / b) - math.expm1(-(w - s) / b)
        return s / b + math.log(top / -math.expm1(-w / b))

    start = smallest_float(lambda b: floats(b) <= target, s / (target + 60) / 4, s * max(1e12, 4 / target))
    result, increment = Fraction(start), Fraction(1, 1 << 50)
    while _loss(sensitivity, width, result) > max_loss:
        result *= 1 + increment
        increment *= 2
    return up(result)
