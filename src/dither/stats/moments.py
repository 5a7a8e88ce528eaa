"""Count, sum, mean, variance and standard deviation.

Data are clipped to the public bounds and counted on an integer grid (:class:`~dither.inference.Grid`), so
every sum is a sum of integers: no order of the rows, rounding or overflow can move it by more than the
sensitivity that is paid for (Casacuberta, Shoemate, Vadhan and Wagaman 2022).

Where the number of records is public (:data:`~dither.ReplaceOne`), mean and variance get noise directly. Where
it is private (:data:`~dither.AddRemove`), one idea serves both: with y the place of a record between the
bounds, from 0 to 1, the Bernstein polynomials

    degree 1:  1 - y,  y                         degree 2:  (1 - y)^2,  2 y (1 - y),  y^2

are non-negative and add up to 1, so a record changes the vector of their sums by exactly 1 in the l1 norm.
Releasing that vector costs one epsilon, not one for the number, one for the sum and one for the squares; they
all follow from it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np

from dither import arguments
from dither.budget_hooks import covered, spends_arguments
from dither.errors import InvalidArgument, message
from dither.inference import Around, AroundBounded, BernsteinInterval, Grid, RatioInterval, Root
from dither.inference.grid import Values
from dither.mechanisms import BoundedLaplace, Laplace, MixedNoise
from dither.neighbors import AddRemove, Neighbors, ReplaceOne, relation
from dither.randomness import Source, resolve
from dither.stats.column import NanPolicy, known_size, listed, read, total
from dither.stats.estimate import EstimateFloat, EstimateInt

_SUM_BITS = 30
_SQUARE_BITS = 21


def noise(
    sensitivity: Any, epsilon: Any, delta: Any = None, *, l2: Any = None, coordinates: int = 1
) -> Laplace | MixedNoise:
    """Laplace noise, or the better of Laplace and Gaussian noise where a delta is given.

    >>> noise(1, 1)
    Laplace(sensitivity=1, epsilon=1, split=None)
    """
    _check_sensitivity(sensitivity)
    if delta is None:
        return Laplace(sensitivity, epsilon)
    return MixedNoise(sensitivity, epsilon, delta, sensitivity if l2 is None else l2, coordinates)


def _check_sensitivity(sensitivity: Any) -> None:
    if not Fraction(1, 1 << 399) < sensitivity < 1 << 399:
        raise InvalidArgument(
            message(
                "bounds",
                "bounds whose sensitivity is from 1e-120 to 1e+120",
                "others",
                "measure the data in other units",
            )
        )


def _name(mechanism: Laplace | MixedNoise) -> str:
    return mechanism.chosen if isinstance(mechanism, MixedNoise) else "Laplace"


@spends_arguments
def count(
    x: Any,
    epsilon: float,
    delta: float | None = None,
    *,
    neighbors: Neighbors = ReplaceOne,
    nan: NanPolicy = "refuse",
    source: Source | None = None,
) -> EstimateInt:
    """How many records there are; for booleans, how many are true.

    A list declares no type, so there each entry counts unless it is ``False``. The sensitivity is 1 under either
    relation.

    >>> answer = count([True, False, True], epsilon=1)
    >>> isinstance(answer, int), answer.error(0.95)
    (True, 3.0)
    """
    mechanism, resolved = noise(1, epsilon, delta), resolve(source)
    column = listed(x)
    values = read(column, relation(neighbors), nan)
    result = int(np.count_nonzero(values)) if _boolean(column) else values.size - _false(column)
    interval = Around(mechanism, integer=True)
    return EstimateInt.of(
        covered(mechanism.release)(result, source=resolved),
        mechanism.guarantee,
        neighbors,
        _name(mechanism),
        interval,
        resolved.private,
    )


def _boolean(x: Any) -> bool:
    return _declared(x).lower().startswith("bool")


def _declared(x: Any) -> str:
    return str(getattr(x, "dtype", getattr(x, "type", "")))


def _false(x: Any) -> int:
    """How many entries of a column without a declared type are ``False``: a question to each entry by itself."""
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
    """The sum of the records, each clipped to the bounds. An array or Series of integers with integer bounds gives
    an integer, all else a float.

    Sensitivity: upper - lower under replace-one, the larger of their sizes under add/remove.

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
    result = 0
    for places in grid.places(values, lower, upper):
        result += total(places)
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
    source: Source | None = None,
) -> EstimateFloat:
    """The mean of the records, each clipped to the bounds.

    Replace-one: noise of sensitivity (upper - lower)/n; unbiased. Add/remove: the two Bernstein sums, and their
    ratio, which stays inside the bounds.

    >>> answer = mean([0.2, 0.4, 0.9] * 100, bounds=(0, 1), epsilon=1)
    >>> abs(answer - 0.5) < 0.2
    True
    """
    lower, upper = arguments.bounds(bounds)
    resolved = resolve(source)
    arguments.epsilon(epsilon)
    values = read(x, relation(neighbors), nan, lower)
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
    interval = RatioInterval(int(high), int(low), mechanism, first, width)
    inside = min(max(first + width * share, float(lower)), float(upper))
    return EstimateFloat.of(inside, mechanism.guarantee, neighbors, _name(mechanism), interval, resolved.private)


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
    source: Source | None = None,
) -> EstimateFloat:
    """The sample variance (divisor n - 1) of the records, each clipped to the bounds; never negative.

    Replace-one: sensitivity (upper - lower)^2 / n. ``method="clamped"`` moves a noisy value into its domain [0,
    largest possible], ``method="bounded"`` draws it inside by :class:`~dither.BoundedLaplace`: strictly
    positive, at the price of a scale that is up to twice as large. Add/remove: the three Bernstein sums.

    >>> variance([1.0, 2.0, 3.0, 4.0] * 50, bounds=(0, 5), epsilon=1) >= 0
    True
    """
    lower, upper = arguments.bounds(bounds)
    resolved = resolve(source)
    arguments.epsilon(epsilon)
    if method not in ("clamped", "bounded"):
        raise InvalidArgument(message("method", "'clamped' or 'bounded'", repr(method), "choose one of them"))
    values = read(x, relation(neighbors), nan, lower)
    grid = Grid.between(lower, upper, _SQUARE_BITS, integers=values.dtype.kind == "i")
    _check_sensitivity((grid.width * grid.step) ** 2)
    n, first, second = values.size, 0, 0
    for places in grid.places(values, lower, upper):
        first += total(places)
        second += total(places * places)
    if neighbors is AddRemove:
        if method == "bounded":
            raise InvalidArgument(
                message(
                    "method",
                    "'clamped' under AddRemove",
                    "'bounded'",
                    "leave method out, or pass neighbors=dither.ReplaceOne",
                )
            )
        return _variance_of_private_size(
            n, first, second, grid, noise(grid.width**2, epsilon, delta, coordinates=3), resolved
        )
    known_size(n, 2)
    exact = Fraction(n * second - first * first, n * (n - 1)) * grid.step**2
    sensitivity = grid.width**2 * grid.step**2 / n
    largest = grid.width**2 * Fraction((n // 2) * (n - n // 2), n * (n - 1)) * grid.step**2
    top = float(largest) * (1 + 2.0**-50)
    if method == "bounded":
        if delta is not None:
            raise InvalidArgument(message("delta", "none with method='bounded'", delta, "leave delta out"))
        widest = max(top, float(sensitivity) * (1 + 2.0**-50))
        inside = BoundedLaplace(cast(float, sensitivity), epsilon, 0.0, widest)
        released = covered(inside.release)(exact, source=resolved)
        return EstimateFloat.of(
            released, inside.guarantee, neighbors, "BoundedLaplace", AroundBounded(inside), resolved.private
        )
    mechanism = noise(sensitivity, epsilon, delta)
    free = covered(mechanism.release)(exact, source=resolved)
    interval = Around(mechanism, low=0.0, high=top, free=float(free))
    return EstimateFloat.of(
        min(max(free, 0.0), top), mechanism.guarantee, neighbors, _name(mechanism), interval, resolved.private
    )


def _variance_of_private_size(
    n: int, first: int, second: int, grid: Grid, mechanism: Laplace | MixedNoise, source: Source
) -> EstimateFloat:
    top, cross = second, 2 * (grid.width * first - second)
    sums = covered(mechanism.release)([n * grid.width**2 - cross - top, cross, top], source=source)
    interval = BernsteinInterval(
        tuple(int(item) for item in sums), mechanism, float(grid.width), float(grid.width * grid.step)
    )
    return EstimateFloat.of(
        interval.point(), mechanism.guarantee, AddRemove, _name(mechanism), interval, source.private
    )


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
    source: Source | None = None,
) -> EstimateFloat:
    """The standard deviation: the root of :func:`variance`, whose release is never negative.

    The standard deviation itself has the sensitivity (upper - lower)/sqrt(n), not (upper - lower)/n, so noise
    on it would be far larger than noise on the variance, of which the root is a function that costs nothing.

    >>> std([1.0, 2.0, 3.0, 4.0] * 50, bounds=(0, 5), epsilon=1) >= 0
    True
    """
    square = covered(variance)(x, bounds, epsilon, delta, neighbors=neighbors, nan=nan, method=method, source=source)
    return EstimateFloat.of(
        math.sqrt(square),
        square.guarantee,
        square.neighbors,
        square.mechanism,
        Root(square.uncertainty),
        not square.seeded,
    )


var = variance
