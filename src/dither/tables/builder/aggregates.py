"""What can be asked of each group, in Python. A str names a column; other values are expressions (:func:`col`).

``bounds`` are the public limits (lower, upper) of each value, "auto", or None for the card's; ``weight`` is the part of
the budget, relative to the other aggregates of the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.tables.builder.expressions import Operand, expression, term
from dither.tables.card.model import Type
from dither.tables.card.values import Value, literal_type, plain_value
from dither.tables.query.tree import Aggregate, Bounds, Call, Column, Kind, Literal
from dither.tables.query.typecheck import typed


def count(value: Operand | None = None, *, weight: float | None = None) -> Aggregate:
    """How many rows; with a column, how many where it is not NULL.

    >>> count().kind, count("amount").kind
    ('count', 'count_value')
    """
    if value is None:
        return Aggregate("count", weight=_weight(weight))
    return Aggregate("count_value", expression(value, "count"), weight=_weight(weight))


def count_distinct(value: Operand, *, weight: float | None = None) -> Aggregate:
    """How many different values, of which each person adds at most ``max_rows`` to a group.

    >>> count_distinct("product").kind
    'count_distinct'
    """
    return Aggregate("count_distinct", expression(value, "count_distinct"), weight=_weight(weight))


def people(*, weight: float | None = None) -> Aggregate:
    """How many people.

    >>> people().kind
    'people'
    """
    return Aggregate("people", weight=_weight(weight))


def sum_(value: Operand, bounds: object = None, *, weight: float | None = None) -> Aggregate:
    """The sum.

    >>> sum_("amount", (0, 100)).bounds
    (0, 100)
    """
    return _numbers("sum", value, bounds, weight)


def mean(value: Operand, bounds: object = None, *, weight: float | None = None) -> Aggregate:
    """The mean.

    >>> mean("amount").kind
    'mean'
    """
    return _numbers("mean", value, bounds, weight)


def var(value: Operand, bounds: object = None, *, weight: float | None = None) -> Aggregate:
    """The variance, with divisor n - 1.

    >>> var("amount").kind
    'var'
    """
    return _numbers("var", value, bounds, weight)


def std(value: Operand, bounds: object = None, *, weight: float | None = None) -> Aggregate:
    """The standard deviation: the root of :func:`var`.

    >>> std("amount").kind
    'std'
    """
    return _numbers("std", value, bounds, weight)


def covariance(
    value: Operand,
    other: Operand,
    bounds: object = None,
    other_bounds: object = None,
    *,
    population: bool = False,
    weight: float | None = None,
) -> Aggregate:
    """The covariance of two values, of rows where neither is NULL: with divisor n - 1, or n for a ``population``.

    >>> covariance("income", "age").kind, covariance("income", "age", population=True).kind
    ('covar_samp', 'covar_pop')
    """
    return _pair("covar_pop" if population else "covar_samp", value, other, bounds, other_bounds, weight)


def corr(
    value: Operand, other: Operand, bounds: object = None, other_bounds: object = None, *, weight: float | None = None
) -> Aggregate:
    """The correlation of two values, of rows where neither is NULL.

    >>> corr("income", "age").kind
    'corr'
    """
    return _pair("corr", value, other, bounds, other_bounds, weight)


def regression_slope(
    value: Operand, other: Operand, bounds: object = None, other_bounds: object = None, *, weight: float | None = None
) -> Aggregate:
    """The slope of the line of least squares that predicts ``value`` from ``other``.

    >>> regression_slope("income", "age").kind
    'regr_slope'
    """
    return _pair("regr_slope", value, other, bounds, other_bounds, weight)


def regression_intercept(
    value: Operand, other: Operand, bounds: object = None, other_bounds: object = None, *, weight: float | None = None
) -> Aggregate:
    """What the line of least squares that predicts ``value`` from ``other`` predicts where ``other`` is 0.

    >>> regression_intercept("income", "age").kind
    'regr_intercept'
    """
    return _pair("regr_intercept", value, other, bounds, other_bounds, weight)


def regression_r2(
    value: Operand, other: Operand, bounds: object = None, other_bounds: object = None, *, weight: float | None = None
) -> Aggregate:
    """The share of the variance of ``value`` that a line through ``other`` explains: the square of :func:`corr`.

    >>> regression_r2("income", "age").kind
    'regr_r2'
    """
    return _pair("regr_r2", value, other, bounds, other_bounds, weight)


def min_(value: Operand, bounds: object = None, *, weight: float | None = None) -> Aggregate:
    """The least value.

    >>> min_("amount").kind
    'min'
    """
    return _numbers("min", value, bounds, weight)


def max_(value: Operand, bounds: object = None, *, weight: float | None = None) -> Aggregate:
    """The largest value.

    >>> max_("amount").kind
    'max'
    """
    return _numbers("max", value, bounds, weight)


def median(value: Operand, bounds: object = None, *, weight: float | None = None) -> Aggregate:
    """The median.

    >>> median("amount").at
    0.5
    """
    return _numbers("quantile", value, bounds, weight)


def quantile(value: Operand, q: float, bounds: object = None, *, weight: float | None = None) -> Aggregate:
    """The quantile at ``q``, from 0 to 1.

    >>> quantile("amount", 0.9).at
    0.9
    """
    if isinstance(q, bool) or not isinstance(q, (int, float)):
        raise WrongType("q", "a number from 0 to 1", type(q).__name__, "pass q=0.9")
    if not 0 <= q <= 1:
        raise InvalidArgument("q", "a number from 0 to 1", q, "pass q=0.9")
    return replace(_numbers("quantile", value, bounds, weight), at=float(q))


def mode(value: Operand, keys: Sequence[Value] | None = None, *, weight: float | None = None) -> Aggregate:
    """The most common of the keys (the card's where None).

    >>> mode("region", keys=["a", "b"]).keys
    ('a', 'b')
    """
    listed = None if keys is None else distinct_keys(keys, "keys")
    return Aggregate("mode", expression(value, "mode"), keys=listed, weight=_weight(weight))


def histogram(value: Operand, edges: Sequence[float], *, weight: float | None = None) -> Aggregate:
    """How many values lie between each edge and the next (the last bin contains its end).

    >>> histogram("age", [0, 50, 100]).edges
    (0, 50, 100)
    """
    call = term("bin", 0, *edges).expression
    typed(call, _no_columns)
    assert isinstance(call, Call)
    numbers = tuple(cast(float, item.value) for item in call.args[1:] if isinstance(item, Literal))
    return Aggregate("histogram", expression(value, "histogram"), edges=numbers, weight=_weight(weight))


def distinct_keys(keys: object, what: str) -> tuple[Value, ...]:
    """Public keys, each once.

    >>> distinct_keys(["a", "b"], "keys")
    ('a', 'b')
    """
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise WrongType(what, "a list of values", type(keys).__name__, "pass ['a', 'b']")
    listed = tuple(plain_value(key) for key in keys)
    for item in listed:
        literal_type(item)
    if not listed or len(set(listed)) < len(listed):
        raise InvalidArgument(what, "different values", "none, or one twice", "list each once")
    return listed


def _numbers(kind: Kind, value: Operand, bounds: object, weight: float | None) -> Aggregate:
    limits = cast(Bounds, bounds if bounds is None or bounds == "auto" else arguments.bounds(bounds))
    return Aggregate(kind, expression(value, kind), bounds=limits, weight=_weight(weight))


def _pair(
    kind: Kind, value: Operand, other: Operand, bounds: object, other_bounds: object, weight: float | None
) -> Aggregate:
    limits = None if bounds is None else arguments.bounds(bounds)
    other_limits = None if other_bounds is None else arguments.bounds(other_bounds, "other_bounds")
    return Aggregate(
        kind,
        expression(value, kind),
        bounds=limits,
        other=expression(other, kind),
        other_bounds=other_limits,
        weight=_weight(weight),
    )


def _weight(weight: float | None) -> float | None:
    return None if weight is None else arguments.positive(weight, "weight")


def _no_columns(_column: Column) -> Type:
    raise InvalidArgument("edges", "numbers", "a column", "pass edges=[0, 50, 100]")
