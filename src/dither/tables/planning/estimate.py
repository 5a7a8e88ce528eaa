"""From the noisy measures of an aggregate to its answers, one for each group, and how far each may be off.

This is where COUNT, SUM, AVG, VAR and STDDEV are estimated. Everything here is post-processing of released numbers; the
formulas and the reasons for their intervals are in :mod:`dither.inference.moments`.

*Levels of ROLLUP, CUBE and GROUPING SETS* are made to agree.

*Least squares.* With x the true number in each cell, level S has measured ``y_S = A_S x + noise`` of variance v_S, A_S
adding up over the columns that are not in S. The estimate is the x that makes ``sum_S |y_S - A_S x|^2 / v_S`` least;
each level is shown as ``A_S x``, so groups add up to the groups above them exactly, up to rounding of doubles.

*The solution in closed form.* Let ``m_T`` for a set T of columns be the totals by T with their mean over each column of
T taken out (what the analysis of variance calls the interaction of T). Every ``y_S`` with S a superset of T is
informative of it: added up over the columns of S that are not in T, of which there are ``n = product of their numbers
of keys`` combinations, it is an unbiased estimate with variance ``n v_S``. Noise in different m_T is uncorrelated, as
the matrices that take out means are orthogonal projections that commute, so the best estimate of each m_T is the mean
of these weighed by ``1 / (n v_S)``, and level S is the sum over its subsets T of ``m_T / n``. Its variance is

    sum over T of  [1 / sum over S' of 1 / (n' v_S')] * product over T of (1 - 1 / number of keys) / n^2.

Averages and variances of a level are computed from its adjusted numbers and sums. Numbers of people, and of different
values, do not add up, and
choices among bins (quantiles, extremes, modes, histograms) are those of their level alone.

Where some keys are private, groups that are too small are missing, and where keys are columns of one public table,
combinations that do not occur are (:mod:`dither.tables.planning.group_keys`): levels are then answered each on its
own, and need not add up.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dither.inference import (
    STANDARD_NORMAL,
    IntervalEstimate,
    Measured,
    NoiseLaw,
    PairStatistic,
    PairSums,
    mean,
    measured,
    pair_statistic,
    population_count,
    population_mean,
    population_sum,
    population_variance,
    standard_deviation,
    variance,
)
from dither.inference.measured import limits
from dither.tables.compile.limits import Level
from dither.tables.compile.statements import Measure, is_race
from dither.tables.planning.plan import AggregationPlan, BinChoice, Part, answer_type, variance_of
from dither.tables.planning.tails import outcome
from dither.tables.query.tree import Aggregate, Column

SAMPLE_SIZES = (1_000, 100_000)
"""Numbers of rows in a group for which errors that depend on it are forecast, where the card states none."""
Columns = tuple[int, ...]
_BEYOND = 0.01
"""The probability with which an extreme is taken from bins beyond all values, if all of these are in one bin."""
_FAR = 2.0**60  # beyond every rank, and still a number that NumPy adds


def estimate(
    plan: AggregationPlan,
    aggregate: Aggregate,
    parts: Part,
    noisy: Mapping[Measure, NDArray[Any]],
    confidence: float,
) -> tuple[list[Any], list[float | None]]:
    """Return the answers of an aggregate by group, and the half-widths of their confidence intervals (None: unknown),
    from the noisy measures of its ``parts``. Limits and bounds are not corrected for."""
    rounded = answer_type(plan, aggregate) == "integer"
    if plan.population:
        answers = _of_population(aggregate.kind, plan, parts, [noisy[measure] for measure in parts], confidence)
        values = np.asarray(answers.value)
        return _whole(values) if rounded else values.tolist(), np.asarray(answers.error).tolist()
    if is_race(parts):
        answer, error = outcome(parts, plan.measures, noisy, plan.limits, confidence)
        answer = np.floor(answer) if rounded else answer
        widths: list[float | None] = [None] * len(answer) if error is None else (error + int(rounded)).tolist()
        return (_whole(answer) if rounded else answer.tolist()), widths
    units = [measure.unit(plan.limits) for measure in parts]
    if len(parts) == 1:
        values = noisy[parts[0]] if units[0] == 1 else noisy[parts[0]] / units[0]
        errors: list[float | None] = [_error(plan, parts[0], rounded, confidence)] * len(values)
        return _whole(values) if rounded else values.tolist(), errors
    if parts[0].pair is not None:
        answers = _from_pair(plan, aggregate, parts, [noisy[measure] for measure in parts], confidence)
        return _known(answers.value), _known(answers.error)
    answers = _from_moments(aggregate.kind, plan, parts, [noisy[measure] for measure in parts], confidence)
    errors = np.broadcast_to(np.asarray(answers.error), np.shape(answers.value)).tolist()
    if rounded:
        return _whole(np.asarray(answers.value)), rounded_error(errors).tolist()
    return np.asarray(answers.value).tolist(), errors


def corrected(
    plan: AggregationPlan, name: str, noisy: Mapping[Measure, NDArray[Any]], confidence: float
) -> tuple[list[Any], list[float | None], list[float | None] | None]:
    """Return each group's answer, corrected for what limits and bounds leave out; its total error; and the error by
    limits and bounds alone (None: there is no correction)."""
    parts, aggregate = plan.measures_of[name], plan.query.aggregates[name]
    values, errors = estimate(plan, aggregate, parts, noisy, confidence)
    correction = plan.corrections.get(name)
    if correction is None:
        return values, errors, None
    known = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    moved = known * correction.factor + correction.shift
    if aggregate.kind in ("var", "std"):
        moved = np.maximum(moved, 0.0)
    of_limits = correction.limits_error(moved, _rows_counted(plan, parts, noisy), confidence)
    of_noise = np.array([math.nan if error is None else error for error in errors]) * correction.factor
    total = np.hypot(of_noise, of_limits)
    if answer_type(plan, aggregate) == "integer":
        answers: list[Any] = [None if math.isnan(value) else round(value) for value in moved.tolist()]
        total = rounded_error(total)
    else:
        answers = _known(moved)
    return answers, _known(total), _known(of_limits)


def _rows_counted(
    plan: AggregationPlan, parts: Part, noisy: Mapping[Measure, NDArray[Any]]
) -> NDArray[np.float64] | None:
    """Return the noisy number of counted rows in each group; None if it does not follow from the measures."""
    moments = parts[0].moments
    if parts[0].kind not in ("rows", "part", "people", "product"):
        return None
    counting = parts if moments is None else parts[: moments.degree + 1]
    result: NDArray[np.float64] = np.sum([np.asarray(noisy[part], dtype=np.float64) for part in counting], axis=0)
    return result / parts[0].unit(plan.limits)


def knows_sizes(plan: AggregationPlan) -> bool:
    """Return whether the profile has all columns of GROUP BY, so that it tells how large groups are."""
    rows = plan.profiled
    values = [group.value for group in plan.query.groups]
    if not values or rows is None:
        return not values
    named = [value.name for value in map(rows.in_table, values) if isinstance(value, Column) and value.table is None]
    known = [rows.table.columns[name] for name in named if name in rows.table.columns]
    return len(known) == len(values) and all((column.keys or column.private_keys) is not None for column in known)


def _sizing_parts(plan: AggregationPlan, name: str) -> Part:
    """Return the measures whose sum is the size of a group, in values, rows or people, for an aggregate; empty if the
    plan has none."""
    people = (parts for parts in plan.measures_of.values() if len(parts) == 1 and parts[0].kind == "people")
    return counting_parts(plan, name) or next(people, ())


def has_forecast(plan: AggregationPlan, name: str) -> bool:
    """Return whether a quantile has a ± without an interval of its own: something must tell how large groups are."""
    if name not in plan.expected or not plan.query.groups:
        return name in plan.expected
    return knows_sizes(plan) or (name in plan.corrections and bool(_sizing_parts(plan, name)))


_SMALLER = 1.5
"""By which factor a group has fewer people than a typical one, from which on it counts as small."""


def quantile_errors(
    plan: AggregationPlan, name: str, noisy: Mapping[Measure, NDArray[Any]], groups: int
) -> list[float | None]:
    """Return the forecast ± of a quantile in each group; None where nothing tells how large groups are, and infinity
    where only public bounds limit it.

    The error falls off at most as 1 over the number of people, as the error in rank does. So in a group of a smaller
    noisy number (its lower limit) the ± is that of a typical group times the quotient of their numbers of people.
    Where no numbers were released, it is that of the smallest group by the profile. The forecast rests on how dense
    values are near the quantile: errors that reach beyond these may be any.
    """
    if not has_forecast(plan, name):
        return [None] * groups
    expected, correction, parts = plan.expected[name], plan.corrections.get(name), _sizing_parts(plan, name)

    def local(error: float, smaller: float = 1.0) -> float:
        """Return an error; infinity where it is too large for the density near the quantile to say anything. In a group
        that is ``smaller`` than a typical one by a factor, the mechanism may leave all of its values behind: half of
        what is known nearby is then the most."""
        return math.inf if error * (2 if smaller > _SMALLER else 1) > expected.spread > 0 else error

    if not plan.query.groups:
        return [local(expected.most_typical)] * groups
    if correction is None or not parts:
        return [local(expected.most_smallest, math.inf)] * groups
    noise = math.sqrt(sum(variance_of(plan.measures[part]) for part in parts))
    least = np.sum([np.asarray(noisy[part], dtype=np.float64) for part in parts], axis=0)[:groups] - 1.96 * noise
    same = (plan.corrections.get(other) for other, its in plan.measures_of.items() if parts[0] in its)
    of_rows = next((item for item in same if item is not None), correction)
    people = least / parts[0].unit(plan.limits) * (1.0 if parts[0].kind == "people" else of_rows.people_of_row)
    smaller = np.maximum(correction.people / np.maximum(people, 1.0), 1.0)
    return [local(expected.most_typical * factor, factor) for factor in smaller.tolist()]


def expected_error(plan: AggregationPlan, name: str, confidence: float = 0.95) -> float:
    """Return the half-width of the interval of a count or a sum for its noise, which does not depend on the data."""
    parts, aggregate = plan.measures_of[name], plan.query.aggregates[name]
    rounded = answer_type(plan, aggregate) == "integer"
    if is_race(parts):  # of the lowest level: for people who have little
        return _error(plan, parts[-1], rounded, 1 - (1 - confidence) / len(parts))
    if len(parts) == 1:
        return _error(plan, parts[0], rounded, confidence)
    nothing = [np.zeros(1, dtype=np.int64) for _ in parts]
    answer = _from_moments(aggregate.kind, plan, parts, nothing, confidence)
    error = float(np.asarray(answer.error).max())
    return float(rounded_error(error)) if rounded else error


def error_for_size(plan: AggregationPlan, name: str, size: int, confidence: float = 0.95) -> float | None:
    """Return the ± of a mean, variance or deviation in a group of ``size`` rows, for values spread evenly between the
    bounds; None where it depends on the data."""
    parts = plan.measures_of[name]
    unit, moments = parts[0].unit(plan.limits), parts[0].moments
    valued = len(parts) - (1 if moments is not None and moments.nulls else 0)
    noisy = {part: np.array([round(size * unit / valued) if i < valued else 0]) for i, part in enumerate(parts)}
    return estimate(plan, plan.query.aggregates[name], parts, noisy, confidence)[1][0]


def _error(plan: AggregationPlan, measure: Measure, rounded: bool, confidence: float) -> float:
    """Return the half-width of the interval of an answer from one measure, which may be ``rounded`` to an integer.

    Where least squares combines several levels, the noise is taken to have the same law with the reduced variance. That
    is exact for normal noise; for Laplace noise, whose combination is closer to normal, intervals of 95 % then cover
    95 % to 96.6 %.
    """
    unit = measure.unit(plan.limits)
    error = float(plan.measures[measure].error(confidence, integer=True)) / unit * plan.reduced.get(measure, 1.0)
    whole = unit == 1 and measure not in plan.reduced
    return float(rounded_error(error)) if rounded and not whole else error


def rounded_error(error: Any) -> Any:
    """Return the error of a number with this error that is then rounded: it is within k of a whole number if it was
    within ``k + 1/2`` before.

    >>> [float(rounded_error(error)) for error in (0.4, 7.3, 7.6)]
    [0.4, 7.3, 8.0]
    """
    return np.maximum(error, np.ceil(np.asarray(error) - 0.5))


def _whole(values: NDArray[Any]) -> list[int]:
    """Return an array as a list of rounded integers."""
    return [round(value) for value in values.tolist()]


def _linear(number: Measured) -> IntervalEstimate:
    """Return a linear combination of noisy numbers with its confidence interval: from the sample of its noise where
    that is large enough for the confidence (``resolved``), otherwise value ± error."""
    if not number.resolved:
        return IntervalEstimate(number.value, number.value - number.error, number.value + number.error)
    low, high = limits(lambda values, noises: values[0] - noises[0], (number,), -np.inf, np.inf)
    return IntervalEstimate(number.value, low, high)


def _from_moments(
    kind: str, plan: AggregationPlan, parts: Part, noisy: list[NDArray[Any]], confidence: float
) -> IntervalEstimate:
    """Return a count, sum, mean, variance or standard deviation (``kind``) for each group, with its interval, from the
    noisy sums of the moments of a value (:class:`~dither.tables.compile.statements.Moments`).

    With y from 0 to 1 for a value between its bounds, these are the sums of 1 - y and y or, of degree 2, of (1 - y)^2,
    2 y (1 - y) and y^2. Their total is the number of values n. The sum of 2 y - 1 is the last minus the first, and that
    of (2 y - 1)^2 is n minus twice the middle one.
    """
    moments, mechanism = parts[0].moments, plan.measures[parts[0]]
    assert moments is not None
    unit = parts[0].unit(plan.limits)
    law = NoiseLaw.of(mechanism, integer=True, unit=plan.reduced.get(parts[0], 1.0) / unit)
    sums = measured([values / unit for values in noisy], [law] * len(parts), confidence)
    valued = sums[: moments.degree + 1]
    count = valued[0]
    for part in valued[1:]:
        count += part
    if kind == "count":
        return _linear(count + sums[-1] if moments.nulls else count)
    if kind == "count_value":
        return _linear(count)
    grid = moments.grid
    assert grid is not None
    half, middle = grid.width / (2 * grid.scale), (grid.low + grid.high) / (2 * grid.scale)
    about_middle = (valued[-1] - valued[0]) * half
    if kind == "sum":
        return _linear(about_middle + count * middle)
    if kind == "mean":
        return mean(count, about_middle, half).shifted(middle)
    squares = (count - valued[1] * 2.0) * (half * half)
    result = variance(count, about_middle, squares, half)
    return result if kind == "var" else standard_deviation(result)


def _sums(plan: AggregationPlan, parts: Part, noisy: list[NDArray[Any]], confidence: float) -> tuple[Measured, ...]:
    """Return the noisy sums in rows, and after them a standard normal variable, which stands for the sampling error of
    the population."""
    unit = parts[0].unit(plan.limits)
    law = NoiseLaw.of(plan.measures[parts[0]], integer=True, unit=1 / unit)
    values: list[Any] = [values / unit for values in noisy]
    return measured([*values, 0.0], [*([law] * len(parts)), STANDARD_NORMAL], confidence)


def _of_population(
    kind: str, plan: AggregationPlan, parts: Part, noisy: list[NDArray[Any]], confidence: float
) -> IntervalEstimate:
    """Return an answer for each group as :func:`_from_moments`, with the interval for the population from which the
    people were drawn: it covers noise and sampling error."""
    *sums, sampling = _sums(plan, parts, noisy, confidence)
    if not sampling.resolved:  # only the values are of interest
        return _from_moments(kind, plan, parts, noisy, confidence) if len(parts) > 1 else _linear(sums[0])
    cluster = most_rows_of_a_person(plan, parts[0].rows_per_person)
    if len(parts) == 1:
        return population_count(sums[0], sampling, 1.0 if parts[0].kind == "people" else cluster)
    moments = parts[0].moments
    assert moments is not None
    valued = sums[: moments.degree + 1]
    count = functools.reduce(lambda one, two: one + two, valued)
    if kind in ("count", "count_value"):
        return population_count(count + sums[-1] if kind == "count" and moments.nulls else count, sampling, cluster)
    grid = moments.grid
    assert grid is not None
    half, middle = grid.width / (2 * grid.scale), (grid.low + grid.high) / (2 * grid.scale)
    about_middle, squares = (valued[2] - valued[0]) * half, (count - valued[1] * 2.0) * (half * half)
    if kind == "sum":
        about_zero = squares + about_middle * (2 * middle) + count * (middle * middle)
        return population_sum(about_middle + count * middle, about_zero, sampling, cluster)
    if kind == "mean":
        return population_mean(count, about_middle, squares, sampling, half, cluster).shifted(middle)
    result = population_variance(count, about_middle, squares, sampling, half, cluster)
    return result if kind == "var" else standard_deviation(result)


def most_rows_of_a_person(plan: AggregationPlan, rows_per_person: int | None) -> float:
    """Return the largest number of rows that one person counts for, under an aggregate's own limit (None: that of the
    question): the size of a cluster of possibly equal rows for sampling errors."""
    return 1.0 if plan.card.unit is None else float(plan.limits.of_aggregate(rows_per_person).total)


def _from_pair(
    plan: AggregationPlan,
    aggregate: Aggregate,
    parts: Part,
    noisy: list[NDArray[Any]],
    confidence: float,
) -> IntervalEstimate:
    """Return a statistic of two values for each group, with its interval, from the noisy sums of their products.

    The sums are of values scaled to 0 … 1/2 (:mod:`dither.tables.compile.statements`), so that a value is low +
    distance * scaled. A least-squares line predicts the aggregate's ``value`` from ``other``.
    """
    pair = parts[0].pair
    assert pair is not None
    unit = parts[0].unit(plan.limits)
    law = NoiseLaw.of(plan.measures[parts[0]], integer=True, unit=1 / unit)
    sums = PairSums.of_parts(measured([values / unit for values in noisy], [law] * len(parts), confidence))
    sides = [(grid.low / grid.scale, 2 * pair.width / grid.scale) for grid in pair.grids]
    if pair.values[0] == aggregate.value:  # the first predicts the second
        sums, sides = sums.swapped, sides[::-1]
    (low, distance), (predicted_low, predicted_distance) = sides
    result = pair_statistic(cast(PairStatistic, aggregate.kind), sums, at=-low / distance)
    if sums.count.resolved:  # a slope without limits is no answer
        result = result._replace(value=np.where(np.isfinite(result.error), result.value, np.nan))
    if aggregate.kind in ("covar_pop", "covar_samp"):
        return result.scaled(distance * predicted_distance)
    if aggregate.kind == "regr_slope":
        return result.scaled(predicted_distance / distance)
    if aggregate.kind == "regr_intercept":
        return result.scaled(predicted_distance).shifted(predicted_low)
    return result


def _known(numbers: Any) -> list[Any]:
    """Return numbers as a list, with None for NaN and infinity."""
    return [number if np.isfinite(number) else None for number in np.asarray(numbers).tolist()]


def inside_rank(plan: AggregationPlan, choice: BinChoice) -> int:
    """Return the rank, counted from the end in units of the bins' counts, at which a minimum or maximum is chosen.

    It is not 0 but 2 * sensitivity * log(bins / 0.01) / epsilon: all of the many empty bins beyond the data have rank
    0, and together they would win the exponential mechanism. It depends on public numbers alone.
    """
    sensitivity = float(plan.bin_limits(choice.aggregate).sensitivity())
    edge = math.log(choice.bins / _BEYOND)
    return math.ceil(min(2 * sensitivity * edge / choice.mechanism.epsilon, _FAR))


CONFIDENCE = 0.95
"""The probability with which no group that nobody is in has a value."""


_OF_VALUES = ("mean", "var", "std", "min", "max", "quantile", "mode")


def without_values(plan: AggregationPlan, name: str, noisy: Mapping[Measure, NDArray[Any]]) -> NDArray[np.bool_] | None:
    """Return a mask of the groups that may have no values of an aggregate; None where the number of values was not
    measured, or where the aggregate has an answer without values, as counts do.

    A mean, a quantile or an extreme of no values is NULL, as SQL has it. A group with public keys is shown whether
    anybody is in it or not, and so is the answer of a question without groups; what is computed of values there would
    be computed from noise alone: the mean of no values was the middle of the bounds, or an end of them.

    *The rule.* The noisy number of values in a group is what the mean is divided by. Where it is not above what the
    noise of an empty group exceeds with a probability of ``(1 - 95 %) / groups``, the answer is NULL. So with a
    probability of 95 % every group that nobody is in has NULL; a group that has values is NULL only if their number is
    lost in its noise, and then nothing would be known of the mean either. It is post-processing of released numbers.
    """
    parts = counting_parts(plan, name)
    if not parts:
        return None
    unit = parts[0].unit(plan.limits)
    law = NoiseLaw.of(plan.measures[parts[0]], integer=True, unit=plan.reduced.get(parts[0], 1.0) / unit)
    values = np.sum([np.asarray(noisy[part], dtype=np.float64) / unit for part in parts], axis=0)
    limit = law.sum_limit(len(parts), (1 - CONFIDENCE) / max(len(values), 1))
    result: NDArray[np.bool_] = values <= max(limit, 0.5)  # up to half a value, a mean is the middle of the bounds
    return result


def counting_parts(plan: AggregationPlan, name: str) -> tuple[Measure, ...]:
    """Return measures whose sum is the number of values of an aggregate, or else of rows or people; empty if the plan
    has none."""
    aggregate = plan.query.aggregates[name]
    if aggregate.kind not in _OF_VALUES:
        return ()
    own = aggregate.rows_per_person  # rows with other weights would say little of the number in the denominator
    same = [parts for parts in plan.measures_of.values() if parts[0].pair is None]
    known = sorted(same, key=lambda parts: parts[0].rows_per_person != own)
    of_value = value_counting_parts(plan, name)
    if of_value:
        return of_value
    of_rows = [parts for parts in known if parts[0].kind in ("rows", "people")]
    of_rows += [parts for parts in known if parts[0].moments is not None and parts[0].moments.nulls and len(parts) > 1]
    return of_rows[0] if of_rows else ()


def value_counting_parts(plan: AggregationPlan, name: str) -> tuple[Measure, ...]:
    """Return the measures that add up to the number of values that are not NULL."""
    aggregate = plan.query.aggregates[name]
    of_value = [parts for parts in plan.measures_of.values() if parts[0].pair is None and _is_of(parts, aggregate)]
    of_value.sort(key=lambda parts: parts[0].rows_per_person != aggregate.rows_per_person)
    moments = of_value[0][0].moments if of_value else None
    return () if moments is None else of_value[0][: moments.degree + 1]


def _is_of(parts: Part, aggregate: Aggregate) -> bool:
    """Return whether measures are all parts of the moments of an aggregate's value."""
    moments = parts[0].moments
    return moments is not None and parts[0].kind == "part" and moments.value == aggregate.value


def with_least_squares(plans: Sequence[AggregationPlan]) -> list[AggregationPlan]:
    """Return the plans with the factors by which least squares over levels will reduce the noise of their measures."""
    result = list(plans)
    for measure, places in _shared(plans):
        levels, variances = _of_measure(plans, measure, places)
        after = variances_after([level.columns for level in levels], levels[0].sizes, variances)
        for place, before, reduced in zip(places, variances, after, strict=True):
            factor = math.sqrt(reduced / before)
            result[place] = replace(result[place], reduced={**result[place].reduced, measure: factor})
    return result


def _shared(plans: Sequence[AggregationPlan]) -> Iterator[tuple[Measure, list[int]]]:
    """Yield each measure that several levels of a hierarchy share, with the indices of their plans. Numbers of people
    and of different values are left out, since they do not add up over groups."""
    places_of: dict[tuple[int, Measure], list[int]] = {}
    for place, plan in enumerate(plans):
        if plan.shared_bounds is not None and plan.shared_bounds.level is not None:
            for measure in plan.measures:
                if measure.kind not in ("people", "distinct"):
                    places_of.setdefault((plan.shared_bounds.level.hierarchy, measure), []).append(place)
    yield from ((measure, places) for (_, measure), places in places_of.items() if len(places) > 1)


def _of_measure(
    plans: Sequence[AggregationPlan], measure: Measure, places: list[int]
) -> tuple[list[Level], list[float]]:
    """Return the levels of the plans with the indices ``places``, and the variances of a measure's noise there divided
    by the largest one, since at a tiny epsilon their squares would overflow."""
    roots = [math.sqrt(variance_of(plans[place].measures[measure])) for place in places]
    return [_level(plans[place]) for place in places], [max(root / max(roots), 1e-100) ** 2 for root in roots]


def make_agree(plans: Sequence[AggregationPlan], values: Sequence[dict[Measure, NDArray[Any]]]) -> None:
    """Adjust the measures of all levels by least squares so that they add up. The last axis of an array has the groups
    of its level; axes before it, for simulated tables, are kept.
    """
    for measure, places in _shared(plans):
        levels, variances = _of_measure(plans, measure, places)
        tables = [values[place][measure] for place in places]
        moved = least_squares([level.columns for level in levels], levels[0].sizes, variances, tables)
        for place, table in zip(places, moved, strict=True):
            values[place][measure] = table


def _level(plan: AggregationPlan) -> Level:
    """Return the level of a plan that is one of several."""
    assert plan.shared_bounds is not None
    assert plan.shared_bounds.level is not None
    return plan.shared_bounds.level


def _size(columns: Sequence[int], sizes: Sequence[int]) -> int:
    """Return how many groups a level with these columns has."""
    return math.prod(sizes[column] for column in columns)


def _subsets(levels: Sequence[Columns]) -> list[Columns]:
    """Return every subset of the columns of some level, each once."""
    every = (itertools.combinations(level, size) for level in levels for size in range(len(level) + 1))
    return list(dict.fromkeys(itertools.chain(*every)))


def _rest(level: Columns, part: Columns) -> Columns:
    """Return the columns of a level without those of a part of it."""
    return tuple(column for column in level if column not in part)


def least_squares(
    levels: Sequence[Columns], sizes: Sequence[int], variances: Sequence[float], values: Sequence[NDArray[Any]]
) -> list[NDArray[np.float64]]:
    """Return the ``values`` of the levels of a hierarchy adjusted by weighted least squares so that they add up.

    A level is a set of columns, and its array has the groups in its last axis, the product of the columns' keys; axes
    before it are kept. The tables are split into orthogonal parts, one for each subset of columns: its totals minus
    their means over each column. Each part is averaged over the levels that contain its columns, with weights inverse
    to the variance of its totals there, and spread evenly over the other columns.
    """
    before = np.shape(values[0])[:-1]
    tables = [
        np.asarray(table, dtype=np.float64).reshape((*before, *(sizes[column] for column in level)))
        for table, level in zip(values, levels, strict=True)
    ]
    result = [np.zeros_like(table) for table in tables]
    for part in _subsets(levels):
        within = [place for place, level in enumerate(levels) if set(part) <= set(level)]
        weights = [1 / (variances[place] * _size(_rest(levels[place], part), sizes)) for place in within]
        estimate: NDArray[np.float64] = np.zeros(())
        for place, weight in zip(within, weights, strict=True):
            level = levels[place]
            outside = tuple(len(before) + i for i, column in enumerate(level) if column not in part)
            totals = tables[place].sum(axis=outside)
            for axis in range(len(before), totals.ndim):
                totals = totals - totals.mean(axis=axis, keepdims=True)
            estimate = estimate + totals * (weight / sum(weights))
        for place in within:
            level = levels[place]
            shape = (sizes[column] if column in part else 1 for column in level)
            result[place] += estimate.reshape((*before, *shape)) / _size(_rest(level, part), sizes)
    return [table.reshape((*before, -1)) for table in result]


def variances_after(levels: Sequence[Columns], sizes: Sequence[int], variances: Sequence[float]) -> list[float]:
    """Return the variance of one group's value at each level after :func:`least_squares`: the sum over its orthogonal
    parts of prod(1 - 1 / size) / precision, divided by the squared number of groups that a total is spread over."""
    result = [0.0] * len(levels)
    for part in _subsets(levels):
        within = [place for place, level in enumerate(levels) if set(part) <= set(level)]
        precision = sum(1 / (variances[place] * _size(_rest(levels[place], part), sizes)) for place in within)
        spread = math.prod(1 - 1 / sizes[column] for column in part) / precision
        for place in within:
            result[place] += spread / _size(_rest(levels[place], part), sizes) ** 2
    return result
