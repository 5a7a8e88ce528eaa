"""Median, quantiles, minimum and maximum: selected among all values between the bounds.

*Statement.* Let L(t) and R(t) be the numbers of records below t, and at most t. A lattice point t between the
bounds is released with probability proportional to ``exp(-epsilon * miss(t) / (2 D))``, ``miss(t) = max(0, L(t)
- w, w - R(t))``: by how many records t misses the wanted rank w; D bounds by how much one record moves it. That
is the exponential mechanism (McSherry and Talwar 2007), epsilon-DP. For the q-quantile w = q n, and D is 1 if a
record is replaced, max(q, 1 - q) if one is added or removed (n moves too).

*How.* The miss is constant between consecutive records, and zero at the records that tie at the quantile, so
the lattice falls into points and intervals with ``count * exp(score)`` each: one race of clocks
(:func:`~dither.randomness.exponential_race`) and one uniform draw inside the winner, both exact. Only records near
the wanted rank carry weight, so the rest are not even sorted: all points beyond a window of ranks are two
clocks with an upper bound of their weight. The window is so wide that these win once in 2^40 draws; then a
point of theirs is kept in proportion to its true weight, or all starts again: still the exact law.
"""

from __future__ import annotations

import builtins
import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dither import arguments, sensitivity
from dither.budget_hooks import covered, spends_arguments
from dither.errors import InvalidArgument
from dither.exact import decimal
from dither.guarantees import PureDP
from dither.inference import Grid, RankInterval, Split, WithinBounds, halve, levels
from dither.inference.grid import Values
from dither.mechanisms import PermuteAndFlip, SmoothNoise
from dither.neighbors import AddRemove, Neighbors, ReplaceOne, relation
from dither.randomness import Source, bernoulli_exp, exponential_race, resolve, uniform_integer
from dither.sensitivity.smooth import ends, rank_of
from dither.stats.column import NanPolicy, known_size, read
from dither.stats.estimate import EstimateFloat, EstimateInt
from dither.validation import as_values

Category = TypeVar("Category")

_BITS = 30
_EDGE = math.log(1e6)  # stands for ln n in the rank of an extreme where n is private
_RARE = 28.0  # exp(-28) is about 2^-40, how often a point beyond the window wins

Selected = EstimateInt | EstimateFloat

QuantileMethod = Literal["exponential", "smooth"]


@dataclass(frozen=True)
class TargetRank:
    """The wanted rank w = numerator / unit, and ``rate``, the exponent of the mechanism for one record missed."""

    numerator: int
    unit: int
    rate: Fraction

    def miss(self, below: int, up_to: int) -> int:
        """Return ``unit * max(0, L - w, w - R)``: by how many records a point misses the rank, times ``unit``.

        L = ``below`` records lie below the point and R = ``up_to`` at most at it.
        """
        return builtins.max(0, self.unit * below - self.numerator, self.numerator - self.unit * up_to)


def select_position(values: Values, grid: Grid, lower: float, upper: float, target: TargetRank, source: Source) -> int:
    """Draw a lattice point from the law of the module, and return its number, counted from the first.

    ``values`` are the records, ``grid`` is the lattice between ``lower`` and ``upper``, ``target`` is the wanted rank
    and the weight of a miss, and ``source`` the randomness. The records within a window of ranks around the target are
    found by partition, and only they are sorted; if a point beyond the window wins, its true miss is counted and it is
    kept in proportion to its weight.

    >>> from dither.randomness import SeededSource
    >>> data = np.arange(0, 1000, dtype=np.int64)
    >>> grid = Grid.between(0, 1000, 30, integers=True)
    >>> abs(select_position(data, grid, 0, 1000, TargetRank(500, 1, Fraction(1)), SeededSource(1)) - 500) < 50
    True
    """
    n = values.size
    middle = builtins.min(builtins.max(target.numerator // target.unit, 0), n)
    window = math.ceil((math.log(grid.width + 1) + _RARE) / float(target.rate)) + 2
    first, last = builtins.max(middle - window, 0), builtins.min(middle + window, n)
    nearby = values if last - first == n else cast(Values, np.partition(values, [first, last - 1])[first:last])
    starts, counts, below, up_to = _pieces(np.sort(_positions(nearby, grid, lower, upper)), first, grid.width)
    misses = np.array([target.miss(a, b) for a, b in zip(below, up_to, strict=True)])
    scores = -misses.astype(np.float64)
    while True:
        chosen = exponential_race(scores, source, target.rate / target.unit, counts)
        position = int(starts[chosen]) + uniform_integer(int(counts[chosen]), source)
        if not (chosen == 0 and first > 0) and not (chosen == counts.size - 1 and last < n):
            return position
        everywhere = _positions(values, grid, lower, upper)
        true = target.miss(int((everywhere < position).sum()), int((everywhere <= position).sum()))
        if bool(bernoulli_exp(Fraction(true - int(misses[chosen])) * target.rate / target.unit, 1, source)[0]):
            return position


def _positions(values: Values, grid: Grid, lower: float, upper: float) -> NDArray[np.int64]:
    """Return the position of each record on the grid, in steps from its lowest point."""
    parts = list(grid.positions(values, lower, upper))
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)


class _Pieces(NamedTuple):
    """A division of the grid into pieces on which the miss is constant, in increasing order."""

    starts: NDArray[np.int64]
    """The first position of each piece."""
    counts: NDArray[np.int64]
    """The number of positions of each piece."""
    below: list[int]
    """The number L of records below each piece."""
    up_to: list[int]
    """The number R of records at most at each piece."""


def _pieces(positions: NDArray[np.int64], first: int, span: int) -> _Pieces:
    """Return the pieces into which the sorted positions of records divide the grid.

    ``positions`` are those of the records in the window, ``first`` is the number of records before it, and ``span``
    the largest position of the grid. The pieces are what lies before the first position, each distinct position, each
    gap, and what lies behind the last.

    Before the window R is at most ``first`` and behind it L at least its end: there the miss is a lower bound,
    elsewhere it is exact. (Records tied with an end of the window but outside it do not matter: at the lower end only
    R counts, at the upper end only L.)
    """
    if positions.size == 0:
        return _Pieces(np.array([0]), np.array([span + 1]), [first], [first])
    distinct, index = np.unique(positions, return_index=True)
    ranks = np.append(index, positions.size) + first
    starts = np.empty(2 * distinct.size + 1, dtype=np.int64)
    counts = np.empty_like(starts)
    starts[0], counts[0] = 0, distinct[0]
    starts[1::2], counts[1::2] = distinct, 1
    starts[2::2] = distinct + 1
    counts[2::2] = np.append(distinct[1:], span + 1) - distinct - 1
    below, up_to = np.empty_like(starts), np.empty_like(starts)
    below[0::2] = up_to[0::2] = ranks
    below[1::2], up_to[1::2] = ranks[:-1], ranks[1:]
    return _Pieces(starts, counts, below.tolist(), up_to.tolist())


@dataclass(frozen=True)
class _Column:
    """A column that was read, with its grid and the checked arguments of a call."""

    values: Values
    grid: Grid
    lower: float
    upper: float
    neighbors: Neighbors
    epsilon: Fraction
    source: Source

    @classmethod
    def read(
        cls, x: Any, bounds: Any, epsilon: Any, neighbors: Neighbors, nan: NanPolicy, source: Source | None
    ) -> _Column:
        """Read the column ``x`` and check bounds, epsilon and source; the parameters are those of :func:`quantile`."""
        lower, upper = arguments.bounds(bounds)
        exact_epsilon, resolved = arguments.epsilon(epsilon), resolve(source)
        values = read(x, relation(neighbors), nan, lower)
        if neighbors is ReplaceOne:
            known_size(values.size)
        grid = Grid.between(lower, upper, _BITS, integers=values.dtype.kind == "i" and upper - lower < 1 << 62)
        return cls(values, grid, lower, upper, neighbors, exact_epsilon, resolved)

    def estimate(self, position: int, rate: Fraction) -> Selected:
        """Return a selected point of the grid as an estimate: an int for integers on a grid of step 1, else a float.

        ``rate`` is the exponent of the mechanism for one record missed.
        """
        value = self.grid.value(position)
        interval = RankInterval(float(rate), self.grid.width + 1, float(self.lower), float(self.upper))
        facts = (PureDP(self.epsilon), self.neighbors, "Exponential", interval, self.source.private)
        if self.grid.step == 1 and self.values.dtype.kind == "i":
            return EstimateInt.of(int(value), *facts)
        clipped = builtins.min(builtins.max(float(value), float(self.lower)), float(self.upper))
        return EstimateFloat.of(clipped, *facts)


def _share(q: object) -> Fraction:
    """Return q, read as a decimal number, exactly; refuse a number outside of 0 to 1."""
    share = decimal(q, "q")
    if not 0 <= share <= 1:
        raise InvalidArgument("q", "a number from 0 to 1", q, "pass q=0.5 for the median")
    return share.limit_denominator(10**18)  # ranks are far coarser


def _target_rank(q: Fraction, n: int, epsilon: Fraction, neighbors: Neighbors) -> TargetRank:
    """Return the rank ``q n`` of the q-quantile, with the exponent ``epsilon / (2 D)`` of the module."""
    sensitivity = builtins.max(q, 1 - q) if neighbors is AddRemove else Fraction(1)
    return TargetRank(q.numerator * n, q.denominator, epsilon / (2 * sensitivity))


@spends_arguments
def quantile(
    x: Any,
    q: float,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    method: QuantileMethod = "exponential",
    source: Source | None = None,
) -> Selected:
    """Return a value close in rank to the q-quantile.

    ``method="smooth"`` adds noise of the size of the smooth sensitivity instead (:class:`~dither.SmoothNoise`).

    ``x`` are the records, one column. ``q`` is from 0 to 1, and ``delta`` is for ``method="smooth"`` only.
    ``neighbors`` is the neighboring relation, ``nan`` says what a missing value counts as (``"refuse"``: an error,
    ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness, by default the operating system's.

    >>> 80 < quantile(list(range(101)) * 10, 0.9, bounds=(0, 100), epsilon=1) < 100
    True
    """
    if method == "smooth":
        return _smooth_quantile(x, q, bounds, epsilon, delta, neighbors, nan, source)
    if method != "exponential" or delta is not None:
        raise InvalidArgument("method", "'exponential' without a delta, or 'smooth'", repr(method), "leave delta out")
    share = _share(q)
    column = _Column.read(x, bounds, epsilon, neighbors, nan, source)
    target = _target_rank(share, column.values.size, column.epsilon, neighbors)
    position = select_position(column.values, column.grid, column.lower, column.upper, target, column.source)
    return column.estimate(position, target.rate)


def _smooth_quantile(
    x: Any,
    q: float,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float | None,
    neighbors: Neighbors,
    nan: NanPolicy,
    source: Source | None,
) -> EstimateFloat:
    """Return the record of rank ``ceil(q n)`` with noise of the size of its smooth sensitivity, clipped to the bounds.

    The parameters are those of :func:`quantile`; only replace-one is possible. The noise is Laplace's where a delta is
    given, and Student's otherwise.
    """
    lower, upper = ends(bounds)
    if relation(neighbors) is not ReplaceOne:
        raise InvalidArgument(
            "neighbors", "dither.ReplaceOne for method='smooth'", "AddRemove", "use method='exponential'"
        )
    resolved = resolve(source)
    mechanism = SmoothNoise("student" if delta is None else "laplace", epsilon, delta)
    values = np.clip(read(x, neighbors, nan, lower).astype(np.float64), lower, upper)
    known_size(values.size)
    rank = rank_of(q, values.size)
    middle = float(np.partition(values, rank - 1)[rank - 1])
    size = sensitivity.smooth_order(values, rank, (lower, upper), mechanism.beta)
    noisy = covered(mechanism.release)(Fraction(middle), size, width=upper - lower, source=resolved)
    clipped = builtins.min(builtins.max(float(noisy), lower), upper)
    interval = WithinBounds(lower, upper)
    return EstimateFloat.of(
        clipped, mechanism.guarantee, neighbors, f"SmoothNoise({mechanism.kind})", interval, resolved.private
    )


@spends_arguments
def median(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    method: QuantileMethod = "exponential",
    source: Source | None = None,
) -> Selected:
    """Return a value close in rank to the median.

    The parameters are those of :func:`quantile`.

    >>> 40 < median([48, 49, 50, 51, 52] * 100, bounds=(0, 100), epsilon=1) < 60
    True
    """
    return covered(quantile)(x, 0.5, bounds, epsilon, delta, method=method, neighbors=neighbors, nan=nan, source=source)


@spends_arguments
def quantiles(
    x: Any,
    q: Sequence[float],
    bounds: tuple[float, float],
    epsilon: float,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> list[Selected]:
    """Return several quantiles for one epsilon, in the order of ``q``; a larger one never gives a smaller value.

    The middle one is released first, the records are split there and each half is asked for its own (Kaplan,
    Schnapp and Stemmer 2022). A record is in one half, so a level costs what one quantile costs, and m
    quantiles need ``log2(m + 1)`` levels instead of m shares. Replacing a record is removing one and adding
    one: twice that.

    ``x`` are the records, one column. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value
    counts as (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness,
    by default the operating system's.

    >>> low, high = covered(quantiles)(list(range(101)) * 10, [0.25, 0.75], bounds=(0, 100), epsilon=2)
    >>> low <= high
    True
    """
    shares = sorted({_share(item) for item in q}) if isinstance(q, (Sequence, np.ndarray)) else []
    if not shares:
        raise InvalidArgument("q", "at least one number from 0 to 1", "none", "pass q=[0.25, 0.5, 0.75]")
    column = _Column.read(x, bounds, epsilon, neighbors, nan, source)
    if len(shares) == 2 and neighbors is ReplaceOne:
        return _two_quantiles(column, shares, q)
    single_share = len(shares) == 1
    epsilon_each = column.epsilon / (levels(len(shares)) * (1 if neighbors is AddRemove or single_share else 2))

    def select(split: Split, part: tuple[Values, int, int]) -> tuple[Selected, Any, Any]:
        """Select one quantile among the records between the points ``first`` and ``last`` of the grid.

        The result is the estimate, and the records at most and above it with their ranges.
        """
        values, first, last = part
        target = _target_rank(split.at, values.size, epsilon_each, neighbors if single_share else AddRemove)
        grid = column.grid.part(first, last)
        position = first + select_position(values, grid, column.lower, column.upper, target, column.source)
        below = _positions(values, column.grid, column.lower, column.upper) <= position
        return (
            column.estimate(position, target.rate),
            (values[below], first, position),
            (values[~below], position, last),
        )

    result = halve(shares).select_all((column.values, 0, column.grid.width), select)
    return [result[_share(item)] for item in q]


def _two_quantiles(column: _Column, shares: list[Fraction], q: Sequence[float]) -> list[Selected]:
    """Return two quantiles in the order of ``q`` under ReplaceOne, each for half of epsilon; the larger has the larger
    value.

    ``shares`` are the two numbers of ``q``, exact and increasing. Halving as in :func:`quantiles` would take two
    levels, each at twice its cost under ReplaceOne: a quarter of epsilon for each quantile.
    """
    targets = [_target_rank(share, column.values.size, column.epsilon / 2, ReplaceOne) for share in shares]
    positions = sorted(
        select_position(column.values, column.grid, column.lower, column.upper, item, column.source) for item in targets
    )
    triples = zip(shares, positions, targets, strict=True)
    result = {share: column.estimate(position, target.rate) for share, position, target in triples}
    return [result[_share(item)] for item in q]


@spends_arguments
def iqr(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> Selected:
    """Return the interquartile range: the distance of the quartiles, both from one release.

    ``x`` are the records, one column. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value
    counts as (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness,
    by default the operating system's.

    >>> iqr(list(range(101)) * 10, bounds=(0, 100), epsilon=2) >= 0
    True
    """
    low, high = covered(quantiles)(x, [0.25, 0.75], bounds, epsilon, neighbors=neighbors, nan=nan, source=source)
    ends = arguments.bounds(bounds)
    assert isinstance(high.uncertainty, RankInterval)
    interval = replace(high.uncertainty, low=0.0, high=float(ends[1] - ends[0]))
    return type(high).of(high - low, high.guarantee, high.neighbors, high.mechanism, interval, not high.seeded)


@spends_arguments
def mode(
    x: Any,
    categories: Sequence[Category],
    epsilon: float,
    *,
    neighbors: Neighbors = ReplaceOne,
    source: Source | None = None,
) -> Category:
    """Return the most common of public ``categories``, by permute-and-flip on their counts.

    ``x`` are the records; those of other categories are not counted. ``neighbors`` is the neighboring relation, and
    ``source`` is the randomness, by default the operating system's.

    >>> mode(["tea"] * 500 + ["coffee"], categories=["tea", "coffee"], epsilon=1)
    'tea'
    """
    labels: list[Any] = []
    with contextlib.suppress(TypeError):
        given = [] if isinstance(categories, (str, bytes)) else list(categories)
        labels = given if len(set(given)) == len(given) else []
    if not labels:
        raise InvalidArgument(
            "categories",
            "at least one public category, each once",
            "none, or one twice",
            "list the values there can be",
        )
    mechanism = PermuteAndFlip.for_counts(epsilon, relation(neighbors))
    index = {label: i for i, label in enumerate(labels)}
    counts = np.zeros(len(labels), dtype=np.int64)
    for item in as_values(x, "label").values.tolist():
        position = index.get(item)
        if position is not None:
            counts[position] += 1
    chosen: Category = covered(mechanism.select)(labels, counts, source=source)
    return chosen


def _extreme(
    x: Any, bounds: Any, epsilon: Any, neighbors: Neighbors, nan: NanPolicy, source: Source | None, *, top: bool
) -> Selected:
    """Select a value near the largest (``top``) or smallest record, at a rank a little inside.

    The parameters are those of :func:`min`, which has the formula of the rank.
    """
    column = _Column.read(x, bounds, epsilon, neighbors, nan, source)
    n = column.values.size
    # a rank a little inside keeps the long empty stretch beyond the data from winning; it is public
    margin = math.ceil(2 * _EDGE / float(column.epsilon))
    if neighbors is ReplaceOne:
        margin = builtins.min(math.ceil(2 * (math.log(n) + 2) / float(column.epsilon)), n // 4)
    rate = column.epsilon / 2
    if top and neighbors is AddRemove:
        # ranks from the top do not move when a record is added below: mirror the column
        flipped = -column.values if column.values.dtype.kind == "f" else -np.maximum(column.values, -(2**63) + 1)
        position = column.grid.width - select_position(
            flipped, column.grid.mirrored, -column.upper, -column.lower, TargetRank(margin, 1, rate), column.source
        )
    else:
        position = select_position(
            column.values,
            column.grid,
            column.lower,
            column.upper,
            TargetRank(n - margin if top else margin, 1, rate),
            column.source,
        )
    return column.estimate(position, rate)


@spends_arguments
def min(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> Selected:
    """Return a value close in rank to the smallest, inside the bounds.

    It aims at the record of rank ``2 (ln n + 2) / epsilon``, n/4 at most (where n is private, ``2 ln(10^6) /
    epsilon``): the empty stretch between the bound and the data must not outweigh the data. One person decides
    the true minimum, so no private release can follow it.

    ``x`` are the records, one column. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value
    counts as (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness,
    by default the operating system's.

    >>> 0 <= min([30, 40, 50] * 100, bounds=(0, 110), epsilon=1) <= 110
    True
    """
    return _extreme(x, bounds, epsilon, neighbors, nan, source, top=False)


@spends_arguments
def max(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> Selected:
    """Return a value close in rank to the largest, inside the bounds; see :func:`min`.

    ``x`` are the records, one column. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value
    counts as (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness,
    by default the operating system's.

    >>> 0 <= max([30, 40, 50] * 100, bounds=(0, 110), epsilon=1) <= 110
    True
    """
    return _extreme(x, bounds, epsilon, neighbors, nan, source, top=True)
