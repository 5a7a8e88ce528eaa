"""The result of a statistic: a number with its guarantee, its neighboring relation and its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.comparison import ComparedByValue
from dither.errors import WrongType
from dither.guarantees import Guarantee
from dither.inference.intervals import Interval, RankInterval
from dither.neighbors import Neighbors
from dither.present import chart, markup
from dither.randomness.source import NOTICE


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
    uncertainty: Interval
    """The kind of interval, of which :meth:`interval` and :meth:`error` are the limits and the half-width."""

    if TYPE_CHECKING:  # given by int or float, the other base of every subclass

        def __float__(self) -> float: ...

    @classmethod
    def of(
        cls, value: Any, guarantee: Guarantee, neighbors: Neighbors, mechanism: str, interval: Interval, private: bool
    ) -> Self:
        """Return ``value`` as an int or a float (that of the class) with what is known of its release.

        ``mechanism`` is the name of the mechanism, ``interval`` a function of a value and a confidence to limits, and
        ``private`` is False for a release with a seeded source.
        """
        number: Any = cls  # its other base is int or float, which is made from a value
        result: Self = number.__new__(cls, value)
        result.__dict__.update(
            guarantee=guarantee, neighbors=neighbors, mechanism=mechanism, seeded=not private, uncertainty=interval
        )
        return result

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return lower and upper limits that hold the answer without noise with probability ``confidence``.

        That is the answer from the data clipped to the bounds and, unless they are integers, rounded to 2^-30 of their
        width (2^-21 for a variance).

        If the statistic was asked for with ``interval="population"``, they hold that of the population which the
        records were drawn from, to which the sampling error belongs as well.
        """
        return self.uncertainty(float(self), arguments.confidence(confidence))

    def error(self, confidence: float = 0.95) -> float:
        """Return the larger distance from this number to the ends of :meth:`interval`."""
        return self.uncertainty.half_width(float(self), arguments.confidence(confidence))

    def rank_error(self, confidence: float = 0.95) -> float:
        """Return the largest error of the rank of a median, minimum or maximum, in records, with this confidence.

        >>> import dither as dp
        >>> round(dp.stats.median([1.0, 2.0, 3.0], bounds=(0, 100), epsilon=1).rank_error(), 1)
        48.5
        """
        if not isinstance(self.uncertainty, RankInterval):
            raise WrongType("rank_error", "a median, minimum or maximum", self.mechanism, "use error()")
        return self.uncertainty.ranks(arguments.confidence(confidence))

    def _repr_html_(self) -> str:
        """Return the estimate for a notebook: the number with its interval, and the guarantee."""
        return markup.block(
            markup.heading(f"{self} {self.uncertainty.text(float(self))}"),
            markup.facts(
                [("confidence", "95 %"), ("promises", str(self.guarantee)), ("neighbors", repr(self.neighbors))]
                + ([("note", NOTICE)] if self.seeded else [])
            ),
        )

    def __repr__(self) -> str:
        notice = f", {NOTICE}" if self.seeded else ""
        interval = self.uncertainty.text(float(self))
        return f"{self} {interval} (95 %; {self.guarantee}, {self.neighbors!r}{notice})"


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
        """Return the half-width within which the noise of all bins lies together, with probability ``confidence``."""
        return float(self.noise.error(confidence, coordinates=self.counts.size, integer=True))

    def __iter__(self) -> Any:
        return iter((self.counts, self.edges))

    def _repr_html_(self) -> str:
        """Return the histogram for a notebook: a bar for each bin, with the error that holds for all of them."""
        width = self.error()
        ends = zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), self.counts.tolist(), strict=True)
        bars = [(f"{low:.4g} to {high:.4g}", float(count), width) for low, high, count in ends]
        text = f"each ± {width:.4g} (95 % for all bins); {self.guarantee}, {self.neighbors!r}"
        return markup.block(markup.picture(chart.bars(bars, title="Released counts")), markup.lines([text]))

    def __repr__(self) -> str:
        notice = f", {NOTICE}" if self.seeded else ""
        interval = f"each ± {self.error():.4g} (95 % for all bins; {self.guarantee}, {self.neighbors!r}{notice})"
        return f"Histogram(counts={self.counts.tolist()}, {interval})"
