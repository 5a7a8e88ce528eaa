"""Arithmetic on released numbers: the value of a function of them, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dither.errors import InvalidArgument
from dither.inference.measured import Array, NoiseLaw, Numbers, limits, measured
from dither.inference.moments import IntervalEstimate


def combine(
    function: Callable[..., Array],
    values: Sequence[Numbers],
    laws: Sequence[NoiseLaw],
    confidence: float = 0.95,
    *,
    low: float = -np.inf,
    high: float = np.inf,
) -> IntervalEstimate:
    """Return the value of a function of released numbers with independent noise, with limits for its value without
    noise.

    *Statement.* The limits cover with the confidence if the function is linear, or a monotone function of a linear
    one, or a :func:`quotient` of two linear ones; other smooth functions of numbers that are large against their noise
    are covered to first order. The reasons are those of :mod:`~dither.inference.measured`.

    *Why a function of the numbers, rather than arithmetic on intervals.* A number that occurs twice has one noise:
    ``(a - b) / a`` is sampled with the same noise of a in both places, so its correlation with itself is kept.

    Parameters
    ----------
    function
        Takes as many arrays as there are values and returns one, element by element. What is not a number or not
        finite (the logarithm of a negative number) supports no value in particular, and widens the limits.
    values, laws
        The released numbers, each one number or one for each group, and the law of the noise of each.
    confidence
        At most some 99.8 %, beyond which the sample of the noise has too few points.
    low, high
        What the function of the truth cannot exceed; value and limits are kept to it.

    Examples
    --------
    >>> count, total = NoiseLaw("laplace", 1.0), NoiseLaw("laplace", 10.0)
    >>> released = [np.array([100.0, 4.0]), np.array([500.0, 30.0])]
    >>> estimate = combine(lambda n, t: quotient(t, n), released, [count, total])
    >>> estimate.value.round(2), estimate.low.round(2), estimate.high.round(2)
    (array([5. , 7.5]), array([ 4.67, -1.01]), array([ 5.33, 34.67]))
    """
    inputs = measured(values, laws, confidence)
    if not all(item.resolved for item in inputs):
        raise InvalidArgument("confidence", "at most 0.998", confidence, "ask for a lower confidence")
    columns = np.broadcast_arrays(*(item.value for item in inputs))

    def statistic(released: Sequence[Array], noises: Sequence[Array]) -> Array:
        """Return samples of the function without the noise; NaN where it is undefined.

        The first column has the released numbers, so that a quotient knows the sign of its denominator.
        """
        # the released numbers stand in the first column, where a quotient sees on which side of 0 its denominator is
        arrays = [np.concatenate([value, value - noise], axis=1) for value, noise in zip(released, noises, strict=True)]
        with np.errstate(all="ignore"):
            sample = np.array(np.broadcast_to(function(*arrays), arrays[0].shape)[:, 1:], dtype=np.float64)
        sample[~np.isfinite(sample)] = np.nan
        return sample

    with np.errstate(all="ignore"):
        value = np.array(np.broadcast_to(function(*(c[:, None] for c in columns)), (columns[0].size, 1))[:, 0], float)
    lower, upper = limits(statistic, inputs, low, high)
    value = np.clip(value, low, high)
    return IntervalEstimate(value, np.fmin(lower, value), np.fmax(upper, value))


def quotient(numerator: Array, denominator: Array) -> Array:
    """Return ``numerator / denominator`` inside a function for :func:`combine`.

    It is undefined where the noise may have changed the sign of the denominator: then no quotient is excluded, as in
    Fieller's argument.

    >>> quotient(np.array([[6.0, 6.0, 6.0]]), np.array([[2.0, 3.0, -1.0]]))
    array([[ 3.,  2., nan]])
    """
    same = np.sign(denominator) == np.sign(denominator[:, :1])
    return numerator / np.where(same & (denominator != 0), denominator, np.nan)
