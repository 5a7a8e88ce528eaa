"""Projective geometry response: a short report with the variance of subset selection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.exact import Enclosure
from dither.local.designs import design_support, inside_float, inside_probability
from dither.local.estimates import LocalFrequencies
from dither.local.fields import prime_power, singer_difference_set
from dither.local.index_records import IndexProtocol
from dither.local.protocol import Codes, Tally
from dither.local.pure import PureProtocol
from dither.local.reports import Records
from dither.local.wire_codes import PROJECTIVE_GEOMETRY_RESPONSE
from dither.randomness import Source, trials, uniform_integers

_MAX_TOTAL = 1 << 22  # the tables of so many points are built in some seconds
_EXACT_BELOW = 1 << 45


@dataclass(frozen=True)
class ProjectiveGeometryResponse(IndexProtocol[LocalFrequencies], PureProtocol):
    """Report a point of a projective space: with probability p one on the hyperplane of the own category, otherwise
    one off it.

    *Statement.* The projective space of dimension t - 1 over the field with q elements has K = (q^t - 1) / (q - 1)
    points, s = (q^(t-1) - 1) / (q - 1) on each hyperplane. With ``p = s e^epsilon / (s e^epsilon + K - s)`` and the
    point otherwise uniform, each report is epsilon-DP for its sender, whatever their category is replaced by (Feldman,
    Nelson, Nguyen and Talwar 2022).

    *Why.* Every point has one of two probabilities, whose ratio is e^epsilon.

    Points and hyperplanes are numbered modulo K such that the hyperplane of category x is the translate ``x + D`` of
    Singer's difference set D: a client adds a random member of D, or of its complement, to its category. Two
    hyperplanes always share (q^(t-2) - 1) / (q - 1) points, so that the protocol is pure. q near e^epsilon + 1 makes
    the hyperplanes the right share of the space: the variance is that of subset selection for K categories with sets of
    size s.

    *Record.* The number of the point, in 1, 2, 4 or 8 bytes, the fewest that hold K - 1.

    >>> import dither as dp
    >>> p = dp.local.ProjectiveGeometryResponse(categories=1024, epsilon=1)
    >>> p.field_size, p.dimension, p.report_count, p.record_bytes, round(p.variance(1), 3)
    (4, 6, 1365, 2, 3.685)
    """

    categories: Any
    epsilon: float
    wire_code: ClassVar[int] = PROJECTIVE_GEOMETRY_RESPONSE

    def __post_init__(self) -> None:
        self.check_parameters()

    @property
    def geometry(self) -> tuple[int, int]:
        """q and t: the field size and the dimension of the vectors, of the smallest variance for k categories."""
        return _best_geometry(self.category_count, float(self.epsilon))

    @property
    def field_size(self) -> int:
        """The number q of elements of the field."""
        return self.geometry[0]

    @property
    def dimension(self) -> int:
        """The dimension t of the vectors whose lines are the points."""
        return self.geometry[1]

    @property
    def report_count(self) -> int:
        """The number K of points, each of which is a report."""
        return _points(*self.geometry)

    @property
    def hyperplane_size(self) -> int:
        """The number s of points on a hyperplane."""
        q, t = self.geometry
        return _points(q, t - 1)

    def own_probability(self, bits: int) -> Enclosure:
        """Limits of p times ``2**bits``."""
        return inside_probability(self.exact_epsilon, self.hyperplane_size, self.report_count, bits)

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities that a point is on the hyperplane of its sender's category, and on that of another."""
        return _support(*self.geometry, float(self.epsilon))

    def draw(self, codes: Codes, source: Source) -> Records:
        """A member of D, or of its complement, added to each code modulo K."""
        total, (inside, outside) = self.report_count, _steps(*self.geometry)
        probability = inside_float(float(self.epsilon), inside.size, total)
        held = trials(probability, self.own_probability, codes.size, source)
        points = codes.copy()
        for steps, chosen in ((inside, np.flatnonzero(held)), (outside, np.flatnonzero(~held))):
            points[chosen] += steps[uniform_integers(steps.size, chosen.size, source)]
        points -= total * (points >= total)
        return self.pack(points)

    def preferred(self, code: int) -> NDArray[np.int64]:
        """The points on the hyperplane of this category, which are e^epsilon times as likely for it as the others."""
        return (_steps(*self.geometry)[0] + code) % self.report_count

    def supporters(self, tally: Tally, n: int, codes: Codes) -> NDArray[np.int64]:
        """How many points lie on the hyperplanes of these categories: a circular correlation with D.

        The Fourier transform computes all of them in doubles, whose error is far below one half where n is below 2^45
        divided by K; otherwise, and where few are asked, they are added up one by one.
        """
        total, inside = self.report_count, _steps(*self.geometry)[0]
        if codes.size < 64 or n * total > _EXACT_BELOW:
            return np.array([int(tally[(inside + code) % total].sum()) for code in codes.tolist()], dtype=np.int64)
        members = np.zeros(total)
        members[inside] = 1
        spectrum = np.fft.rfft(tally.astype(np.float64)) * np.conj(np.fft.rfft(members))
        return np.rint(np.fft.irfft(spectrum, total)).astype(np.int64)[codes]


def _points(q: int, t: int) -> int:
    return sum(q**i for i in range(t))


def _support(q: int, t: int, epsilon: float) -> tuple[float, float]:
    return design_support(epsilon, _points(q, t - 1), _points(q, t), _points(q, t - 2))


@lru_cache(maxsize=64)
def _best_geometry(k: int, epsilon: float) -> tuple[int, int]:
    """The field size and dimension of the smallest variance, among those with k points or more."""
    best = math.inf, 2, 2
    wanted = min(math.exp(epsilon) + 1, 2.0 * k + 2)
    for q in range(2, int(2 * wanted) + 4):
        if prime_power(q) is None:
            continue
        t = next(t for t in range(2, 64) if _points(q, t) >= k)
        if _points(q, t) > max(_MAX_TOTAL, 4 * k):
            continue
        p, other = _support(q, t, epsilon)
        best = min(best, (other * (1 - other) / (p - other) ** 2, q, t))
    return best[1], best[2]


@lru_cache(maxsize=16)
def _steps(q: int, t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Singer's difference set and its complement; in dimension 2 a hyperplane is one point."""
    inside = singer_difference_set(q, t)
    outside = np.ones(_points(q, t), dtype=np.bool_)
    outside[inside] = False
    others = np.flatnonzero(outside)
    others.flags.writeable = False
    return inside, others
