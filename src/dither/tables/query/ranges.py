"""What is known of a number before any row is read: the least and largest value, and how close to 0 others can be.

Every value of a :class:`Range` lies between ``low`` and ``high``, is a whole multiple of ``quantum``, a power of two,
and is 0 or at least ``least`` in size. The operations below compute the range of a result in doubles rounded to
nearest, which keep order, so what they say holds for the rounded result on every engine:

* a sum of multiples of q is one, also after rounding, since a double too large to be exact is a multiple of more;
* a double of size at least m is a multiple of the distance between doubles at m, which serves products and quotients.

A result whose range :meth:`Range.checked` accepts neither overflows nor vanishes on any engine. That is decided by the
question and the card alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dither.errors import InvalidArgument

MOST = 1e150
LEAST = 1e-250


@dataclass(frozen=True)
class Range:
    """The values that an expression can have.

    >>> Range.constant(3) + Range.whole(0, 9)
    Range(low=3.0, high=12.0, least=3.0, quantum=1.0)
    """

    low: float
    high: float
    least: float
    quantum: float

    @classmethod
    def of(cls, low: float, high: float, quantum: float) -> Range:
        """The multiples of a quantum from ``low`` to ``high``."""
        inside = low <= 0 <= high
        return cls(low, high, quantum if inside else max(quantum, min(abs(low), abs(high))), quantum)

    @classmethod
    def constant(cls, value: float) -> Range:
        """One value."""
        return cls.whole(value, value)

    @classmethod
    def whole(cls, low: float, high: float) -> Range:
        """The bounds themselves, and the whole numbers between them."""
        if max(abs(low), abs(high)) > MOST:
            raise _refusal("larger ones")
        return cls.of(float(low), float(high), min(_quantum(low), _quantum(high)))

    @classmethod
    def between(cls, low: float, high: float, least: float) -> Range:
        """The doubles from ``low`` to ``high`` that are 0 or at least ``least`` in size.

        >>> Range.between(0.0, 8.0, 2.0).quantum == 2.0**-51
        True
        """
        return cls(low, high, least, _spacing(least))

    @property
    def size(self) -> float:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low, self.least, self.quantum)

    def __abs__(self) -> Range:
        inside = self.low <= 0 <= self.high
        return Range(0.0 if inside else min(abs(self.low), abs(self.high)), self.size, self.least, self.quantum)

    def __add__(self, other: Range) -> Range:
        return Range.of(self.low + other.low, self.high + other.high, min(self.quantum, other.quantum))

    def __sub__(self, other: Range) -> Range:
        return self + -other

    def __mul__(self, other: Range) -> Range:
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        least = self.least * other.least
        return Range(min(ends), max(ends), least, max(self.quantum * other.quantum, _spacing(least)))

    def __truediv__(self, other: Range) -> Range:
        """Of quotients by what is not 0."""
        near = [other.low, other.high]
        if other.low <= 0 <= other.high:
            near += [-other.least] * (other.low < 0) + [other.least] * (other.high > 0 or other.low == 0)
        ends = [a / b for a in (self.low, self.high) for b in near if b]
        least = self.least / (other.size or 1.0)
        return Range(min(ends), max(ends), least, _spacing(least))

    def __or__(self, other: Range) -> Range:
        """The values of either."""
        return Range(
            min(self.low, other.low),
            max(self.high, other.high),
            min(self.least, other.least),
            min(self.quantum, other.quantum),
        )

    def checked(self) -> Range:
        """Itself, or a refusal where a result could overflow or vanish."""
        if self.size <= MOST and self.least >= LEAST:
            return self
        raise _refusal("larger ones" if self.least >= LEAST else "smaller ones that are not 0")


def _refusal(got: str) -> InvalidArgument:
    fix = "narrow the bounds of its columns, or use a handier unit"
    return InvalidArgument("expression", "values between 1e-250 and 1e150 in size", f"{got}, by its bounds", fix)


def _quantum(value: float) -> float:
    """The largest power of two, at most 1, of which a number is a whole multiple."""
    return 1 / float(value).as_integer_ratio()[1]


def _spacing(size: float) -> float:
    """The distance between doubles from this size on, up to the next power of two."""
    return math.ldexp(1.0, math.frexp(size)[1] - 53)
