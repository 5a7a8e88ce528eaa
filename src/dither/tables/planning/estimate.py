"""From the noisy measures of an aggregate to its answers, one for each group, and how far each may be off.

This is where COUNT, SUM, AVG, VAR and STDDEV are estimated. Everything here is post-processing of released numbers; the
formulas and the reasons for their intervals are in :mod:`dither.inference.moments`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
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
from dither.present.digits import two_digits
from dither.tables.card.model import Card
from dither.tables.compile import expressions
from dither.tables.compile.statements import Measure
from dither.tables.notes import Note
from dither.tables.planning.automatic import BOUNDS_OF, unseen_bounds_notes
from dither.tables.planning.empty_groups import empty_group_notes
from dither.tables.planning.key_selection import every_group
from dither.tables.planning.measurements import Choice
from dither.tables.planning.null_keys import null_notes
from dither.tables.planning.person_sums import person_sum_notes
from dither.tables.planning.plan import Plan, answer_type
from dither.tables.planning.quantiles import Quantiles
from dither.tables.planning.quantiles import errors as rank_errors
from dither.tables.query.relations import RelationCard, base_of, describe_relation
from dither.tables.query.tree import SIMPLE, Aggregate, CappedRows, PersonJoin, show, sources

ADDED = ("count", "count_value", "sum", "histogram")
"""The kinds of aggregates that are too low by as much as the limits leave out."""
SAMPLE_SIZES = (1_000, 100_000)
"""Numbers of rows in a group for which errors that depend on it are forecast, where the card states none."""
ASSUMED_ROWS = 10_000
"""How many rows a group has, for the question whether its answer would be noise alone, where the card states none."""
_EDGE = math.log(1e6)
_FAR = 2.0**60  # beyond every rank, and still a number that NumPy adds
_COUNTS = ("count", "count_value", "count_distinct", "people")


def estimate(
    plan: Plan,
    aggregate: Aggregate,
    parts: tuple[Measure, ...],
    noisy: Mapping[Measure, NDArray[Any]],
    confidence: float,
) -> tuple[list[Any], list[float | None]]:
    """The answer of each group, and the half-width of its interval."""
    rounded = answer_type(plan, aggregate) == "integer"
    if plan.population:
        answers = _of_population(aggregate.kind, plan, parts, [noisy[measure] for measure in parts], confidence)
        values = np.asarray(answers.value)
        return _whole(values) if rounded else values.tolist(), np.asarray(answers.error).tolist()
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


def expected_error(plan: Plan, name: str, confidence: float = 0.95) -> float:
    """How far a count or a sum may be off by its noise, whatever the data are."""
    parts, aggregate = plan.parts[name], plan.query.aggregates[name]
    rounded = answer_type(plan, aggregate) == "integer"
    if len(parts) == 1:
        return _error(plan, parts[0], rounded, confidence)
    nothing = [np.zeros(1, dtype=np.int64) for _ in parts]
    answer = _from_moments(aggregate.kind, plan, parts, nothing, confidence)
    error = float(np.asarray(answer.error).max())
    return float(rounded_error(error)) if rounded else error


def error_for_size(plan: Plan, name: str, size: int, confidence: float = 0.95) -> float | None:
    """The ± of a mean, variance or deviation in a group of ``size`` rows, for values spread evenly between the bounds;
    None where it depends on the data."""
    parts = plan.parts[name]
    unit, moments = parts[0].unit(plan.limits), parts[0].moments
    valued = len(parts) - (1 if moments is not None and moments.nulls else 0)
    noisy = {part: np.array([round(size * unit / valued) if i < valued else 0]) for i, part in enumerate(parts)}
    return estimate(plan, plan.query.aggregates[name], parts, noisy, confidence)[1][0]


@dataclass(frozen=True)
class NoiseOnly:
    """An answer whose expected ± reaches from one end of what it could be to the other, with ``rows`` in a group.

    It is decided by the question, the card and the options alone.
    """

    name: str
    error: float
    low: float
    high: float
    rows: int


def noise_only(plan: Plan) -> tuple[NoiseOnly, ...]:
    """The answers of a plan that would be nothing but noise.

    Means lie between the bounds, variances below a quarter of the squared width, deviations below half of it: a ± of
    half of that says nothing, wherever the answer is. Counts and sums are from 0 on, and are held against the rows that
    the card states, if it does. The rows of a group are those that the card states, divided by the number of public
    groups, or :data:`ASSUMED_ROWS`.
    """
    result = []
    for part in plan.aggregations:
        groups, stated = every_group(part.keys, part.ties), part.card.rows
        rows = ASSUMED_ROWS if stated is None else max(1, stated // max(1, len(groups or ())))
        for name, parts in part.parts.items():
            kind, moments = part.query.aggregates[name].kind, parts[0].moments
            if BOUNDS_OF + name in part.automatic:
                continue
            low, high = moments.bounds if moments is not None and moments.bounds is not None else (0.0, 1.0)
            width = high - low
            between = {"mean": (low, high), "var": (0.0, width**2 / 4), "std": (0.0, width / 2)}
            if stated is not None:
                between |= {kind: (0.0, float(rows)) for kind in _COUNTS}
                between["sum"] = (rows * min(low, 0.0), rows * max(high, 0.0))
            if kind in between:
                least, most = between[kind]
                error = expected_error(part, name) if kind in SIMPLE else error_for_size(part, name, rows)
                all_of_it = (most - least) * (1.0 if kind in SIMPLE else 0.5) * (1 - 1e-9)
                if error is not None and error >= all_of_it:
                    result.append(NoiseOnly(name, error, least, most, rows))
    return tuple(result)


def forecast_notes(plan: Plan) -> list[str]:
    """What a plan says about answers that would be nothing but noise."""
    return [
        Note(
            "error",
            f"{item.name}: with {item.rows:,} rows in a group its ± would be as wide as all that it could be, from "
            f"{item.low:,.6g} to {item.high:,.6g}; a release asks for confirmation",
        )
        for item in noise_only(plan)
    ]


def refuse_noise_only(plan: Plan) -> None:
    """Refuse a question of which an answer would be nothing but noise."""
    for item in noise_only(plan):
        raise InvalidArgument(
            f"± of {item.name}",
            f"less than all that it could be with {item.rows:,} rows in a group, {item.low:,.6g} to {item.high:,.6g}",
            f"± {two_digits(item.error)}: the answer would be noise alone",
            "spend more epsilon, state a larger rows in the card, or pass force=True to ask all the same",
        )


def _error(plan: Plan, measure: Measure, rounded: bool, confidence: float) -> float:
    """How far an answer from one measure may be off, which is ``rounded`` to a whole number or not.

    Least squares makes of the noise of several levels noise of a smaller variance that is nearer to normal. It is taken
    for noise of the same law with this variance, which is the same for normal noise; limits for Laplace noise cover
    between 95 % and 96.6 % then.
    """
    unit = measure.unit(plan.limits)
    error = float(plan.measures[measure].error(confidence, integer=True)) / unit * plan.reduced.get(measure, 1.0)
    whole = unit == 1 and measure not in plan.reduced
    return float(rounded_error(error)) if rounded and not whole else error


def rounded_error(error: Any) -> Any:
    """The error of a number with this error that is then rounded: it is within k of a whole number if it was within
    ``k + 1/2`` before.

    >>> [float(rounded_error(error)) for error in (0.4, 7.3, 7.6)]
    [0.4, 7.3, 8.0]
    """
    return np.maximum(error, np.ceil(np.asarray(error) - 0.5))


def _whole(values: NDArray[Any]) -> list[int]:
    """Answers as whole numbers."""
    return [round(value) for value in values.tolist()]


def _linear(number: Measured) -> IntervalEstimate:
    """A sum of noisy numbers, with limits that its noise has."""
    if not number.resolved:
        return IntervalEstimate(number.value, number.value - number.error, number.value + number.error)
    low, high = limits(lambda values, noises: values[0] - noises[0], (number,), -np.inf, np.inf)
    return IntervalEstimate(number.value, low, high)


def _from_moments(
    kind: str, plan: Plan, parts: tuple[Measure, ...], noisy: list[NDArray[Any]], confidence: float
) -> IntervalEstimate:
    """An answer for each group from the parts of the moments of a value, in rows.

    With y from 0 to 1 the place of a value between its bounds, the parts are the sums of ``1 - y`` and ``y``, or of
    ``(1 - y)^2``, ``2 y (1 - y)`` and ``y^2``. They add up to the number of values; the sum of ``2 y - 1`` is the last
    less the first, and that of ``(2 y - 1)^2`` the number less twice the middle part.
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


def _sums(plan: Plan, parts: tuple[Measure, ...], noisy: list[NDArray[Any]], confidence: float) -> tuple[Measured, ...]:
    """The noisy sums in rows, and after them a sampling error in units of its standard deviation."""
    unit = parts[0].unit(plan.limits)
    law = NoiseLaw.of(plan.measures[parts[0]], integer=True, unit=1 / unit)
    values: list[Any] = [values / unit for values in noisy]
    return measured([*values, 0.0], [*([law] * len(parts)), STANDARD_NORMAL], confidence)


def _of_population(
    kind: str, plan: Plan, parts: tuple[Measure, ...], noisy: list[NDArray[Any]], confidence: float
) -> IntervalEstimate:
    """An answer for each group with limits for the population that its people were drawn from."""
    *sums, sampling = _sums(plan, parts, noisy, confidence)
    if not sampling.resolved:  # only the values are of interest
        return _from_moments(kind, plan, parts, noisy, confidence) if len(parts) > 1 else _linear(sums[0])
    cluster = most_rows_of_a_person(plan)
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


def most_rows_of_a_person(plan: Plan) -> float:
    """For how many rows one person counts in a group at most: those of one person may be alike."""
    return 1.0 if plan.card.unit is None else float(plan.limits.total)


def _from_pair(
    plan: Plan, aggregate: Aggregate, parts: tuple[Measure, ...], noisy: list[NDArray[Any]], confidence: float
) -> IntervalEstimate:
    """An answer for each group from the sums of products of two values, in rows; values are ``low + distance a``,
    with ``a`` from 0 to 1/2 as in :mod:`dither.tables.compile.pairs`. A line predicts ``value`` from ``other``.
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
    """Numbers, None where there is none: nothing could be said of it."""
    return [number if np.isfinite(number) else None for number in np.asarray(numbers).tolist()]


UNKNOWN_AMOUNT = "counts and sums can be too low by an unknown amount"
"""What is said of an answer whose limits leave out nobody knows how much."""


def unit_notes(card: Card) -> tuple[str, ...]:
    """What every answer says about rows without a unit; nothing where every row is a person.

    >>> from dither.tables.card.model import ColumnCard
    >>> unit_notes(Card("visits", "", {"who": ColumnCard("integer")}, unit="who"))
    ('rows without who, which belong to nobody, are left out',)
    """
    derived = isinstance(card, RelationCard)
    unit = base_of(card).unit if derived else card.unit
    if unit is None:
        return ()
    if card.counts_rows_without_unit and not derived:
        return (Note("rows_without_person", f"each row without {unit} counts as a person of its own"),)
    return (Note("rows_without_person", f"rows without {unit}, which belong to nobody, are left out"),)


def plan_notes(plan: Plan) -> tuple[str, ...]:
    """Return what an explanation and an answer say about one private aggregation of a question."""
    left_out = (*limitations(plan), *combined_notes(plan), *unit_notes(plan.card), *null_notes(plan))
    return (*left_out, *held_notes(plan), *unseen_bounds_notes(plan), *interval_notes(plan), *empty_group_notes(plan))


def limitations(
    plan: Plan, stated: Literal["", "beside them", "as a share"] = "", limits_are_stated: bool = True
) -> tuple[str, ...]:
    """The sentences for a plan; none where every row is a person, since then nothing is left out.

    Parameters
    ----------
    plan
        The plan of the question.
    stated
        How the answer says how much is left out: beside its counts, or in a note, as a share of all rows, which says
        nothing about a single group, or about the values in those rows; empty where it does not.
    limits_are_stated
        Whether the sentence begins with the limits; limits that were chosen privately have a note already.
    """
    if plan.card.unit is None:
        return ()
    kinds = {aggregate.kind for aggregate in plan.query.aggregates.values()}
    some_groups = plan.limits.exceeded or plan.selection is not None
    if kinds == {"people"} and not some_groups:
        return ()
    effects = []
    if kinds & set(ADDED) or "people" in kinds:
        if stated == "beside them":
            effects.append("counts are low by what is stated beside them")
        elif stated:
            whole = "all of people's groups" if kinds == {"people"} else "all rows"
            of = ["a group"] if plan.query.groups else []
            of += ["a sum"] if kinds & {"sum", "count_value", "histogram"} or not of else []
            effect = "what is left out makes counts and sums low: the share stated"
            effects.append(f"{effect} is of {whole}, and that of {' or of '.join(of)} may be smaller or larger")
        elif plan.automatic.keys() & {"max_rows", "bias"}:
            effects.append("counts and sums will be low, and the answer will state which share of the rows is left out")
        else:
            effects.append(f"{UNKNOWN_AMOUNT} (bias=True, or --bias, spends a little to learn it)")
    if "count_distinct" in kinds:
        effects.append("different values of one person beyond that do not count, so their number can be too low")
    if kinds - {*ADDED, "people", "count_distinct"}:
        effects.append("means, quantiles and the like lean toward people with few rows")
    sentence = f"{', and '.join(effects)}; the ± does not include it"
    if limits_are_stated:
        sentence = f"each person counts for at most {describe_limits(plan)}, so {sentence}"
    unknown = any(UNKNOWN_AMOUNT in effect for effect in effects)
    return (Note("undercount_unknown" if unknown else "limits", sentence),)


def combined_notes(plan: Plan) -> tuple[str, ...]:
    """What is said of rows of a person that are combined with each other, of which only so many are."""
    result = []
    for item in () if plan.query.source is None else sources(plan.query.source):
        if isinstance(item, PersonJoin):
            to = "EXISTS" if item.kind in ("semi", "anti") else "the join"
            for side in (item.left, item.right):
                if isinstance(side, CappedRows):
                    rows = "1 row" if side.most == 1 else f"{side.most:,} rows"
                    what = describe_relation(side.source, base_of(plan.card))
                    contributed = f"each person contributes at most {rows} of {what} to {to}"
                    result.append(f"{contributed}, chosen whatever their values are; counts and sums can be too low")
    return tuple(Note("limits", text) for text in dict.fromkeys(result))


def bias_notes(plan: Plan, bias: bool) -> tuple[str, ...]:
    """What a plan and an answer say where ``bias=True`` learns nothing."""
    parts = plan.aggregations
    if not bias or any("bias" in part.automatic for part in parts):
        return ()
    why = "has nothing to learn: people are counted once each, and no limit leaves any out"
    if any({"max_rows", "max_groups"} & part.automatic.keys() for part in parts):
        why = "spends nothing beside limits that are chosen privately: what they leave out is learned with them"
    elif all(part.card.unit is None for part in parts):
        why = "has nothing to learn: each person has one row at most, so no limit leaves rows out; what bounds do to "
        why += "values beyond them is not part of it"
    return (Note("bias", f"bias=True, or --bias, {why}"),)


def held_notes(plan: Plan) -> tuple[str, ...]:
    """What a question of a relation says about bounds that it states, where values can lie beyond them; bounds that are
    chosen privately have a note of their own."""
    if not isinstance(plan.card, RelationCard):
        return ()
    find = expressions.lookup(plan.card, {join.table: join.table for join in plan.query.joins})
    result = []
    for name, aggregate in plan.query.aggregates.items():
        value, bounds = aggregate.value, aggregate.bounds
        if value is None or not isinstance(bounds, tuple) or BOUNDS_OF + name in plan.automatic:
            continue
        known = expressions.compile(value, find).range
        if known is None or known.low < bounds[0] or known.high > bounds[1]:
            held = f"{show(value)} is held within {bounds[0]:,.15g} to {bounds[1]:,.15g}, as the question states"
            result.append(Note("bounds", f"{held}: values beyond count as the nearer bound"))
    return (*dict.fromkeys(result), *person_sum_notes(plan))


def interval_notes(plan: Plan) -> tuple[str, ...]:
    """What an answer says about errors that are not in its table, or not those of the noise alone."""
    result = []
    if plan.population:
        result.append("± population (95 %): noise and sampling error, for the population that the rows were drawn from")
        cluster = most_rows_of_a_person(plan)
        if cluster > 1 and any(aggregate.kind != "people" for aggregate in plan.query.aggregates.values()):
            result.append(
                "people were drawn, not rows, and the rows of one person may be alike: the sampling error is taken for "
                f"the most that it can be, {np.sqrt(cluster):.2g} times that of rows drawn one by one"
            )
    if "max_rows" in plan.automatic:  # numbers of rows follow from a limit that is still to be chosen
        return tuple(Note("error", text) for text in result)
    one = 1 << plan.bin_limits.bits()
    for choice in plan.choices:
        width = _bin_width(plan, choice.name, choice.aggregate)
        gap = choice.mechanism.error(choice.bins) / one
        if choice.aggregate.kind == "mode":
            said = f"no key is more common than {choice.name} by more than {two_digits(gap)} rows"
        else:
            beyond = inside_rank(plan, choice) / one + gap
            said = f"at most {two_digits(beyond)} rows are beyond {choice.name}"
            said += f" by more than half of its bin, which is {width} wide" if width else ""
        result.append(f"{said} (95 %)")
    for ranked in plan.quantiles:
        if ranked.interval is None:
            gaps = {name: gap / one for name, gap in rank_errors(ranked.rank, ranked.bins).items()}
            for name, share in ranked.shares.items():
                width = _bin_width(plan, name, ranked.aggregate)
                middle = f"; {name} is the middle of a bin that is {width} wide" if width else ""
                result.append(f"the rank of {name} is off by at most {two_digits(gaps[share])} rows (95 %){middle}")
    chosen: list[Choice | Quantiles] = [*plan.choices, *plan.quantiles]
    if any(item.interval is None for item in chosen):
        result.append("values that are chosen have no ±: quantile_interval=True (--quantile-interval) spends on it")
    return tuple(Note("error", text) for text in result)


def _bin_width(plan: Plan, name: str, aggregate: Aggregate) -> str:
    """How wide the bins are that a value is chosen among, of which it is the middle; nothing for whole numbers, which
    have a bin each, and where the bounds are still to be chosen."""
    if plan.automatic.get(BOUNDS_OF + name) or aggregate.edges is None or isinstance(aggregate.edges[0], int):
        return ""
    return two_digits(float(np.diff(np.asarray(aggregate.edges, dtype=np.float64)).max()))


def inside_rank(plan: Plan, choice: Choice) -> int:
    """The rank at which an extreme is looked for, in units of the bins' counts: a rank a little inside keeps the empty
    stretch beyond the data from winning. It is public, as epsilon is."""
    sensitivity = float(plan.bin_limits.sensitivity())
    return math.ceil(min(2 * sensitivity * _EDGE / choice.mechanism.epsilon, _FAR))


def describe_limits(plan: Plan) -> str:
    """What one person counts for, in words.

    The limits are on all groups together: one that has fewer groups may have more rows in each of them.
    """
    if "max_rows" in plan.automatic:
        return "a number of rows that is chosen privately"
    rows = "1 row" if plan.limit == 1 else f"{plan.limit:,} rows"
    if plan.together is not None and any(item.kind != "people" for item in plan.query.aggregates.values()):
        total = plan.groups * plan.limit
        return "1 row" if total == 1 else f"{total:,} rows"
    if not plan.query.groups or (plan.groups == 1 and plan.selection is None and "max_groups" not in plan.automatic):
        return rows
    groups = (
        "some groups, a number that is chosen privately"
        if "max_groups" in plan.automatic
        else "1 group"
        if plan.groups == 1
        else f"{plan.groups:,} groups"
    )
    if all(aggregate.kind == "people" for aggregate in plan.query.aggregates.values()):
        return groups
    return f"the weight of {rows} in each of {groups}"
