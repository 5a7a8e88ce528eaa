"""What a statistic returns: a number that knows its error and its cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.comparison import ComparedByValue
from dither.errors import WrongType, message
from dither.guarantees import Guarantee
from dither.neighbors import Neighbors
from dither.randomness.seeded import NOTICE


class Interval:
    """How sure an answer is: the limits that hold the true answer with a given confidence."""

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """The limits around a released ``value``."""
        raise AssertionError("each kind of interval has its limits")

    def half_width(self, value: float, confidence: float) -> float:
        """The larger distance from ``value`` to the limits."""
        low, high = self(value, confidence)
        return max(high - value, value - low)

    def text(self, value: float) -> str:
        """In words, at 95 %."""
        return f"± {self.half_width(value, 0.95):.4g}"


class Estimate:
    """A released number with its guarantee, its relation and its error; use it as the int or float it is.

    >>> import dither as dp
    >>> answer = dp.stats.mean([1, 2, 3, 4], bounds=(0, 5), epsilon=1)
    >>> answer.guarantee, answer.neighbors
    (PureDP(1), ReplaceOne)
    >>> low, high = answer.interval(confidence=0.95)
    >>> low <= answer <= high
    True
    """

    guarantee: Guarantee
    neighbors: Neighbors
    mechanism: str
    seeded: bool
    _interval: Interval

    @classmethod
    def of(
        cls, value: Any, guarantee: Guarantee, neighbors: Neighbors, mechanism: str, interval: Interval, private: bool
    ) -> Self:
        """A number of the right kind with all that belongs to it."""
        result = cls.__new__(cls, value)  # type: ignore[call-arg]
        result.__dict__.update(
            guarantee=guarantee, neighbors=neighbors, mechanism=mechanism, seeded=not private, _interval=interval
        )
        return result

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Limits that hold the answer without noise with this confidence: that of the data clipped to the bounds
        and, unless they are integers, rounded to 2^-30 of their width (2^-21 for a variance).
        """
        return self._interval(float(self), arguments.confidence(confidence))  # type: ignore[arg-type]

    def error(self, confidence: float = 0.95) -> float:
        """The larger distance from this number to the ends of :meth:`interval`."""
        return self._interval.half_width(float(self), arguments.confidence(confidence))  # type: ignore[arg-type]

    def rank_error(self, confidence: float = 0.95) -> float:
        """For a median, minimum or maximum: how many records its rank is off at most, with this confidence.

        >>> import dither as dp
        >>> round(dp.stats.median([1.0, 2.0, 3.0], bounds=(0, 100), epsilon=1).rank_error(), 1)
        48.5
        """
        ranks = getattr(self._interval, "ranks", None)
        if ranks is None:
            raise WrongType(message("rank_error", "a median, minimum or maximum", self.mechanism, "use error()"))
        return float(ranks(arguments.confidence(confidence)))

    def __repr__(self) -> str:
        notice = f", {NOTICE}" if self.seeded else ""
        sure = self._interval.text(float(self))  # type: ignore[arg-type]
        return f"{self} {sure} (95 %; {self.guarantee}, {self.neighbors!r}{notice})"


class EstimateFloat(Estimate, float):
    """A released float; see :class:`Estimate`.

    >>> import dither as dp
    >>> isinstance(dp.stats.mean([1, 2, 3, 4], bounds=(0, 5), epsilon=1), EstimateFloat)
    True
    """

    def __str__(self) -> str:
        return float.__repr__(self)


class EstimateInt(Estimate, int):
    """A released int; see :class:`Estimate`.

    >>> import dither as dp
    >>> isinstance(dp.stats.count([1, 2, 3, 4], epsilon=1), EstimateInt)
    True
    """

    def __str__(self) -> str:
        return int.__repr__(self)


def outward(low: float, high: float) -> tuple[float, float]:
    """Limits so close that the rounding of floats counts, moved apart by it.

    >>> outward(0.0, 1.0), outward(2.0**53, 2.0**53)
    ((0.0, 1.0), (9007199254740991.0, 9007199254740994.0))
    """
    if high - low > 2.0**20 * math.ulp(max(abs(low), abs(high))):
        return low, high
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


@dataclass(frozen=True)
class Around(Interval):
    """``factor`` times the half-width of the noise, on either side, kept to the domain."""

    noise: Any
    factor: float = 1.0
    integer: bool = False
    low: float = -math.inf
    high: float = math.inf
    free: float | None = None

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """The interval around the answer before it was kept to the domain."""
        width = self.factor * self.noise.error(confidence, integer=self.integer)
        center = value if self.free is None else self.free
        low, high = center - width, center + width
        if not self.integer or abs(center) >= 2.0**52:
            low, high = outward(low, high)
        return min(max(low, self.low), self.high), max(min(high, self.high), self.low)


@dataclass(frozen=True)
class Root(Interval):
    """The square roots of another interval's ends."""

    inner: Interval

    def __call__(self, value: float, confidence: float) -> tuple[float, float]:
        """As the inner interval, for the square."""
        low, high = self.inner(value * value, confidence)
        return math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))


@dataclass(frozen=True, eq=False)
class Histogram(ComparedByValue):
    """Released counts of the bins; unpacks as ``counts, edges``.

    >>> import dither as dp
    >>> counts, edges = dp.stats.histogram([1, 2, 2, 3], bounds=(0, 4), bins=4, epsilon=1)
    >>> counts.size, edges
    (4, array([0., 1., 2., 3., 4.]))
    """

    counts: NDArray[np.int64]
    edges: NDArray[np.float64]
    guarantee: Guarantee
    neighbors: Neighbors
    noise: Any
    seeded: bool = False

    def error(self, confidence: float = 0.95) -> float:
        """The half-width that holds for all bins together."""
        return float(self.noise.error(confidence, coordinates=self.counts.size, integer=True))

    def __iter__(self) -> Any:
        return iter((self.counts, self.edges))

    def __repr__(self) -> str:
        notice = f", {NOTICE}" if self.seeded else ""
        sure = f"each ± {self.error():.4g} (95 % for all bins; {self.guarantee}, {self.neighbors!r}{notice})"
        return f"Histogram(counts={self.counts.tolist()}, {sure})"
