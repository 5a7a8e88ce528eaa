"""Count, sum, mean, variance, standard deviation and histograms.

Data are clipped to the public bounds and counted on an integer grid (:class:`~dither.inference.Grid`), so
every sum is a sum of integers: no order of the rows, rounding or overflow can move it by more than the
sensitivity that is paid for (Casacuberta, Shoemate, Vadhan and Wagaman 2022).

Where the number of records is public (:data:`~dither.ReplaceOne`), mean and variance get noise directly. Where
it is private (:data:`~dither.AddRemove`), one idea serves both: with y the position of a record between the
bounds, from 0 to 1, the Bernstein polynomials

    degree 1:  1 - y,  y                         degree 2:  (1 - y)^2,  2 y (1 - y),  y^2

are non-negative and add up to 1, so a record changes the vector of their sums by exactly 1 in the l1 norm.
Releasing that vector costs one epsilon, not one for the number, one for the sum and one for the squares; they
all follow from it. Replacing a record changes it by at most 2.

Every interval is for the records at hand (``interval="noise"``): it holds their answer without the noise. With
``interval="population"`` it holds that of the population they were drawn from, with the sampling error added
(:mod:`dither.inference.population`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dither import arguments, sensitivity
from dither.budget_hooks import covered, spends_arguments
from dither.errors import InvalidArgument
from dither.inference import (
    Around,
    AroundBounded,
    BernsteinInterval,
    Grid,
    Interval,
    NoiseLaw,
    PopulationCount,
    PopulationVariance,
    Root,
    bin_numbers,
)
from dither.inference.grid import Values
from dither.mechanisms import BoundedLaplace, Laplace, MixedNoise
from dither.neighbors import AddRemove, Neighbors, ReplaceOne, relation
from dither.randomness import Source, mark, resolve
from dither.stats.column import NanPolicy, known_size, listed, read, total
from dither.stats.estimate import EstimateFloat, EstimateInt, Histogram

IntervalKind = Literal["noise", "population"]

_SUM_BITS = 30
_SQUARE_BITS = 21


def noise(
    sensitivity: Any, epsilon: Any, delta: Any = None, *, l2: Any = None, coordinates: int = 1
) -> Laplace | MixedNoise:
    """Return Laplace noise, or the better of Laplace and Gaussian noise where a delta is given.

    >>> noise(1, 1)
    Laplace(sensitivity=1, epsilon=1, split=None)
    """
    _check_sensitivity(sensitivity)
    if delta is None:
        return Laplace(sensitivity, epsilon)
    return MixedNoise(sensitivity, epsilon, delta, sensitivity if l2 is None else l2, coordinates)


def _check_sensitivity(sensitivity: Any) -> None:
    """Refuse bounds whose sensitivity, an exact number, is outside of the range 2^-399 to 2^399 for noise in floats."""
    if not Fraction(1, 1 << 399) < sensitivity < 1 << 399:
        raise InvalidArgument(
            "bounds",
            "bounds whose sensitivity is from 1e-120 to 1e+120",
            "a sensitivity beyond that",
            "measure the data in other units",
        )


def _name(mechanism: Laplace | MixedNoise) -> str:
    """Return the name of the noise that was used: ``"Laplace"`` or, of mixed noise, what it chose."""
    return mechanism.chosen if isinstance(mechanism, MixedNoise) else "Laplace"


def _for_population(interval: IntervalKind) -> bool:
    """Return whether ``interval`` is ``"population"``; refuse anything but that and ``"noise"``."""
    if interval not in ("noise", "population"):
        raise InvalidArgument("interval", "'noise' or 'population'", repr(interval), "choose one of them")
    return interval == "population"


@spends_arguments
def count(
    x: Any,
    epsilon: float,
    delta: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    interval: IntervalKind = "noise",
    source: Source | None = None,
) -> EstimateInt:
    """Return the number of records; for booleans, the number that are true.

    A list declares no type, so there each entry counts unless it is ``False``. The sensitivity is 1 under either
    relation. With ``interval="population"`` the interval is for how many would be counted on average among as many
    records of the population; under add/remove, where their number is private, for the mean of a Poisson law.

    ``x`` are the records, one column. ``delta`` None is epsilon-DP, by Laplace noise; a number allows Gaussian noise
    where that is smaller. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value counts as
    (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness, by default
    the operating system's.

    >>> answer = count([True, False, True], epsilon=1)
    >>> isinstance(answer, int), answer.error(0.95)
    (True, 3.0)
    """
    mechanism, resolved = noise(1, epsilon, delta), resolve(source)
    population = _for_population(interval)
    column = listed(x)
    values = read(column, relation(neighbors), nan)
    boolean = _declared(column).lower().startswith("bool")
    result = int(np.count_nonzero(values)) if boolean else values.size - _false(column)
    limits: Interval = Around(mechanism, integer=True)
    if population:
        limits = PopulationCount(NoiseLaw.of(mechanism, integer=True), values.size if neighbors is ReplaceOne else None)
    return EstimateInt.of(
        covered(mechanism.release)(result, source=resolved),
        mechanism.guarantee,
        neighbors,
        _name(mechanism),
        limits,
        resolved.private,
    )


def _declared(x: Any) -> str:
    """Return the declared type of a column as text, such as ``"int64"``; an empty text for a list."""
    return str(getattr(x, "dtype", getattr(x, "type", "")))


def _false(x: Any) -> int:
    """Return how many entries of a column without a declared type are ``False``; 0 for a column with one."""
    if _declared(x) in ("", "object", "Object"):
        return len([item for item in x if isinstance(item, (bool, np.bool_)) and not item])
    return 0


@spends_arguments
def sum(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> EstimateInt | EstimateFloat:
    """Return the sum of the records, each clipped to the bounds.

    An array or Series of integers with integer bounds gives an integer; other columns give a float.

    Sensitivity: upper - lower under replace-one, the larger of their sizes under add/remove.

    ``x`` are the records, one column. ``delta`` None is epsilon-DP, by Laplace noise; a number allows Gaussian noise
    where that is smaller. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value counts as
    (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness, by default
    the operating system's.

    >>> answer = sum([1.5, 2.5, 400.0], bounds=(0, 10), epsilon=1)      # 400 counts as 10
    >>> isinstance(answer, float) and abs(answer - 14) < 1000
    True
    """
    lower, upper = arguments.bounds(bounds)
    resolved = resolve(source)
    arguments.epsilon(epsilon)
    values = read(x, relation(neighbors), nan, lower)
    grid = Grid.between(lower, upper, _SUM_BITS, integers=values.dtype.kind == "i")
    mechanism = noise(grid.sensitivity(neighbors) * grid.step, epsilon, delta)
    exact = (_total(values, grid, lower, upper) + values.size * grid.low) * grid.step
    whole = grid.step == 1 and values.dtype.kind == "i"
    released = covered(mechanism.release)(int(exact) if whole else exact, source=resolved)
    kind: type[EstimateInt] | type[EstimateFloat] = EstimateInt if whole else EstimateFloat
    return kind.of(
        released, mechanism.guarantee, neighbors, _name(mechanism), Around(mechanism, integer=whole), resolved.private
    )


def _total(values: Values, grid: Grid, lower: float, upper: float) -> int:
    """Return the exact sum of a column in steps above the grid's lowest point, block by block.

    ``values`` are the records, which are clipped to ``lower`` and ``upper``.
    """
    result = 0
    for positions in grid.positions(values, lower, upper):
        result += total(positions)
    return result


@spends_arguments
def mean(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    interval: IntervalKind = "noise",
    source: Source | None = None,
) -> EstimateFloat:
    """Return the mean of the records, each clipped to the bounds.

    Replace-one: noise of sensitivity (upper - lower)/n; unbiased. Add/remove: the two Bernstein sums, and their
    ratio, which stays inside the bounds. With ``interval="population"`` the three Bernstein sums under either relation,
    because the sampling error needs the variance; the noise of the mean is then up to 1.12 times (add/remove) or 1.41
    times (replace-one) as large.

    ``x`` are the records, one column. ``delta`` None is epsilon-DP, by Laplace noise; a number allows Gaussian noise
    where that is smaller. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value counts as
    (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness, by default
    the operating system's.

    >>> answer = mean([0.2, 0.4, 0.9] * 100, bounds=(0, 1), epsilon=1)
    >>> abs(answer - 0.5) < 0.2
    True
    """
    lower, upper = arguments.bounds(bounds)
    resolved = resolve(source)
    arguments.epsilon(epsilon)
    population = _for_population(interval)
    values = read(x, relation(neighbors), nan, lower)
    if population:
        return _from_bernstein_sums("mean", values, lower, upper, epsilon, delta, neighbors, resolved, population)
    grid = Grid.between(lower, upper, _SUM_BITS, integers=values.dtype.kind == "i")
    if neighbors is ReplaceOne:
        known_size(values.size, 1)
        mechanism = noise(grid.width * grid.step / values.size, epsilon, delta)
        exact = (Fraction(_total(values, grid, lower, upper), values.size) + grid.low) * grid.step
        released = covered(mechanism.release)(exact, source=resolved)
        return EstimateFloat.of(
            released, mechanism.guarantee, neighbors, _name(mechanism), Around(mechanism), resolved.private
        )
    mechanism = noise(grid.width, epsilon, delta, coordinates=2)
    above = _total(values, grid, lower, upper)
    high, low = covered(mechanism.release)([above, values.size * grid.width - above], source=resolved)
    share = min(max(high / (high + low), 0.0), 1.0) if high + low > 0 else 0.5
    first, width = float(grid.low * grid.step), float(grid.width * grid.step)
    limits = BernsteinInterval((int(low), int(high)), mechanism, "mean", grid.width, first, width)
    inside = min(max(first + width * share, float(lower)), float(upper))
    return EstimateFloat.of(inside, mechanism.guarantee, neighbors, _name(mechanism), limits, resolved.private)


@spends_arguments
def variance(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    method: Literal["clamped", "bounded"] = "clamped",
    interval: IntervalKind = "noise",
    source: Source | None = None,
) -> EstimateFloat:
    """Return the sample variance (divisor n - 1) of the records, each clipped to the bounds; never negative.

    Replace-one: sensitivity (upper - lower)^2 / n. ``method="clamped"`` moves a noisy value into its domain [0,
    largest possible], ``method="bounded"`` draws it inside by :class:`~dither.BoundedLaplace`: strictly
    positive, at the price of a scale that is up to twice as large. Add/remove: the three Bernstein sums. The limits of
    ``interval="population"`` cover at least with the confidence, often with more, as nothing is released of the fourth
    moment that the sampling error depends on.

    ``x`` are the records, one column. ``delta`` None is epsilon-DP, by Laplace noise; a number allows Gaussian noise
    where that is smaller. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value counts as
    (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness, by default
    the operating system's.

    >>> variance([1.0, 2.0, 3.0, 4.0] * 50, bounds=(0, 5), epsilon=1) >= 0
    True
    """
    lower, upper = arguments.bounds(bounds)
    resolved = resolve(source)
    arguments.epsilon(epsilon)
    if method not in ("clamped", "bounded"):
        raise InvalidArgument("method", "'clamped' or 'bounded'", repr(method), "choose one of them")
    population = _for_population(interval)
    if method == "bounded" and (neighbors is AddRemove or population):
        raise InvalidArgument(
            "method",
            "'clamped' under AddRemove and for the interval of a population",
            "'bounded'",
            "leave method out, or pass neighbors=dither.ReplaceOne and leave interval out",
        )
    values = read(x, relation(neighbors), nan, lower)
    if neighbors is AddRemove:
        return _from_bernstein_sums("variance", values, lower, upper, epsilon, delta, neighbors, resolved, population)
    grid, n, first, second = _moments(values, lower, upper)
    known_size(n, 2)
    exact = Fraction(n * second - first * first, n * (n - 1)) * grid.step**2
    sensitivity = grid.width**2 * grid.step**2 / n
    largest = grid.width**2 * Fraction((n // 2) * (n - n // 2), n * (n - 1)) * grid.step**2
    top = float(largest) * (1 + 2.0**-50)
    if method == "bounded":
        if delta is not None:
            raise InvalidArgument("delta", "none with method='bounded'", delta, "leave delta out")
        widest = max(top, float(sensitivity) * (1 + 2.0**-50))
        inside = BoundedLaplace(cast(float, sensitivity), epsilon, 0.0, widest)
        released = covered(inside.release)(exact, source=resolved)
        return EstimateFloat.of(
            released, inside.guarantee, neighbors, "BoundedLaplace", AroundBounded(inside), resolved.private
        )
    mechanism = noise(sensitivity, epsilon, delta)
    free = covered(mechanism.release)(exact, source=resolved)
    limits: Interval = Around(mechanism, low=0.0, high=top)
    if population:
        limits = PopulationVariance(NoiseLaw.of(mechanism, integer=False), n, float(grid.width * grid.step))
    return EstimateFloat.of(
        min(max(free, 0.0), top), mechanism.guarantee, neighbors, _name(mechanism), limits, resolved.private
    )


class _GridMoments(NamedTuple):
    """Exact sums of the records' positions on a grid, counted in steps from the lower bound."""

    grid: Grid
    records: int
    """The number of records."""
    first: int
    """The sum of the positions."""
    second: int
    """The sum of the squared positions."""


def _moments(values: Values, lower: float, upper: float) -> _GridMoments:
    """Return the exact first and second moment of the records on a grid for a variance.

    ``values`` are the records, which are clipped to ``lower`` and ``upper``. The grid has 2^21 to 2^22 points, so that
    squares of positions fit 64 bits.
    """
    grid = Grid.between(lower, upper, _SQUARE_BITS, integers=values.dtype.kind == "i")
    _check_sensitivity((grid.width * grid.step) ** 2)
    first, second = 0, 0
    for positions in grid.positions(values, lower, upper):
        first += total(positions)
        second += total(positions * positions)
    return _GridMoments(grid, values.size, first, second)


def _from_bernstein_sums(
    statistic: Literal["mean", "variance"],
    values: Values,
    lower: float,
    upper: float,
    epsilon: float,
    delta: float | None,
    neighbors: Neighbors,
    source: Source,
    population: bool,
) -> EstimateFloat:
    """Return the mean or the variance from the three Bernstein sums of degree 2.

    With y the record in steps above the lower bound, and w the width of the grid in steps, the sums are those of ``(w
    - y)^2``, ``2 y (w - y)`` and ``y^2``, which add up to w^2 for each record. Adding or removing a record changes
    them by w^2 in the l1 norm, replacing one by 2 w^2 (and by at most sqrt(2) w^2 in the l2 norm, as each record adds
    a vector of non-negative numbers; 2 is paid for).

    ``values`` are the records, clipped to ``lower`` and ``upper``; ``population`` asks for the interval of the
    population instead of the records; the other parameters are those of :func:`mean`, checked.
    """
    grid, n, first, second = _moments(values, lower, upper)
    if neighbors is ReplaceOne:
        known_size(n, 2)
    mechanism = noise(grid.width**2 * (2 if neighbors is ReplaceOne else 1), epsilon, delta, coordinates=3)
    top, cross = second, 2 * (grid.width * first - second)
    sums = covered(mechanism.release)([n * grid.width**2 - cross - top, cross, top], source=source)
    limits = BernsteinInterval(
        tuple(int(item) for item in sums),
        mechanism,
        statistic,
        grid.width,
        float(grid.low * grid.step),
        float(grid.width * grid.step),
        n if neighbors is ReplaceOne else None,
        population,
    )
    value = limits.point()
    if statistic == "mean":
        value = min(max(value, float(lower)), float(upper))
    return EstimateFloat.of(value, mechanism.guarantee, neighbors, _name(mechanism), limits, source.private)


@spends_arguments
def std(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    method: Literal["clamped", "bounded"] = "clamped",
    interval: IntervalKind = "noise",
    source: Source | None = None,
) -> EstimateFloat:
    """Return the standard deviation: the root of :func:`variance`, whose release is never negative.

    The standard deviation itself has the sensitivity (upper - lower)/sqrt(n), not (upper - lower)/n, so noise
    on it would be far larger than noise on the variance, of which the root is a function that costs nothing.

    The parameters are those of :func:`variance`.

    >>> std([1.0, 2.0, 3.0, 4.0] * 50, bounds=(0, 5), epsilon=1) >= 0
    True
    """
    square = covered(variance)(
        x, bounds, epsilon, delta, neighbors=neighbors, nan=nan, method=method, interval=interval, source=source
    )
    return EstimateFloat.of(
        math.sqrt(square),
        square.guarantee,
        square.neighbors,
        square.mechanism,
        Root(square.uncertainty),
        not square.seeded,
    )


var = variance


@spends_arguments
def histogram(
    x: Any,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float | None = None,
    *,
    bins: int | Sequence[float] = 10,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> Histogram:
    """Return counts of the records in bins between the bounds; records outside are counted in the first or last bin.

    The l1 sensitivity is 1 under add/remove and 2 under replace-one, however many bins there are. ``bins`` is
    their number, or their edges, from lower to upper.

    ``x`` are the records, one column. ``delta`` None is epsilon-DP, by Laplace noise; a number allows Gaussian noise
    where that is smaller. ``neighbors`` is the neighboring relation, ``nan`` says what a missing value counts as
    (``"refuse"``: an error, ``"drop"``, or ``"lower"``: the lower bound), and ``source`` is the randomness, by default
    the operating system's.

    >>> result = histogram([1, 2, 2, 3], bounds=(0, 4), bins=4, epsilon=1)
    >>> result.guarantee, result.counts.dtype
    (PureDP(1), dtype('int64'))
    """
    lower, upper = arguments.bounds(bounds)
    edges = _edges(bins, lower, upper)
    resolved = resolve(source)
    mechanism = noise(
        sensitivity.histogram(neighbors=relation(neighbors)),
        epsilon,
        delta,
        l2=sensitivity.histogram(neighbors=neighbors, norm=2),
        coordinates=edges.size - 1,
    )
    values = read(x, neighbors, nan, lower).astype(np.float64)
    counts = np.bincount(bin_numbers(values, edges), minlength=edges.size - 1).astype(np.int64)
    released = mark(covered(mechanism.release)(counts, source=resolved), resolved)
    return Histogram(released, edges, mechanism.guarantee, neighbors, mechanism, not resolved.private)


def _edges(bins: Any, lower: float, upper: float) -> NDArray[np.float64]:
    """Return the edges of the bins, strictly increasing from the ``lower`` bound to the ``upper``.

    ``bins`` is a number of bins of equal width, or the edges themselves; anything that does not give such edges is
    refused.
    """
    result: NDArray[np.float64] = np.zeros(0)
    if max(abs(lower), abs(upper)) < 1 << 1000:
        if isinstance(bins, (Sequence, np.ndarray)) and not isinstance(bins, (str, bytes)):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                result = np.asarray(bins, dtype=np.float64)
        else:
            bin_count = arguments.whole(bins, "bins")
            result = np.linspace(float(lower), float(upper), bin_count + 1) if bin_count < 1 << 26 else result
    ends = (float(lower), float(upper)) if result.size else ()
    if result.ndim != 1 or result.size < 2 or not np.all(np.diff(result) > 0) or (result[0], result[-1]) != ends:
        raise InvalidArgument(
            "bins",
            "increasing edges from the lower bound to the upper, within 1e+300",
            "edges that do not increase, or do not end at the bounds",
            "pass such edges, or fewer bins: there must be room for them between the bounds",
        )
    return result
