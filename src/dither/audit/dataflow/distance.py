"""The distance between two inputs of one release, relative to the sensitivity that the mechanism declares.

A ratio above 1 means that the declared sensitivity is wrong. The privacy cost of a release for this particular pair of
inputs is bounded by an epsilon, the square of a Gaussian mu, and a delta, all of which add up over releases.

The distance of two courses of a series on a table is over all of its periods, not one release at a time. What a series
declares is a schema of participation: one person moves what is measured in at most k periods, any two of them at least
b apart, in each by at most the l1 norm of every aggregate. A release that keeps within the norm of each period and not
within the schema is a leak that no single release shows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np

from dither.audit.outputs.canonical import difference
from dither.budget_hooks import Request
from dither.guarantees import PureDP
from dither.local.protocol import LocalProtocol
from dither.local.sets import PaddedSets
from dither.mechanisms import (
    BoundedLaplace,
    Gaussian,
    Laplace,
    ProposeTestRelease,
    RandomizedResponse,
    SmoothNoise,
    SparseVector,
    Staircase,
)
from dither.mechanisms.additive import Additive
from dither.mechanisms.continuous import ContinuousExponential
from dither.mechanisms.selection import SelectionMechanism
from dither.mechanisms.sparse_vector import SparseVectorSession
from dither.mechanisms.top_k import TopK
from dither.mechanisms.values import scalar
from dither.publish.mechanism import MarginalMechanism
from dither.stream.series_spec import SeriesMechanism
from dither.tables.compile.statements import Measure
from dither.tables.planning.group_keys import KeySelection, vectors
from dither.tables.planning.top_keys import TopKeys

Arguments = Mapping[str, Any]
_INTEGERS = 256
_SMALL = 1 << 52
"""Whole numbers below this, and their differences, are exact as floats."""
ROUNDING = 1e-9
"""The tolerance on a ratio of 1, since floats that a pipeline computes are rounded."""


class ShapeMismatch(Exception):
    """The inputs of one release differ in type or shape; the message says what was expected, without values."""


@dataclass(frozen=True)
class InputChange:
    """The change of one release's input between neighbors, and bounds on the resulting privacy cost."""

    ratio: float
    """The distance of the inputs in units of the declared sensitivity."""
    epsilon: float = 0.0
    mu_squared: float = 0.0
    delta: float = 0.0


@singledispatch
def input_change(mechanism: Any, one: Arguments, other: Arguments) -> InputChange:
    """Return the change between the arguments ``one`` and ``other`` of a release of a supported mechanism.

    Implementations raise :class:`ShapeMismatch` where the arguments differ in something that no noise covers.
    """
    raise AssertionError(mechanism, one, other)


def is_supported(mechanism: Any) -> bool:
    """Return whether :func:`input_change` knows how far the inputs of a mechanism's releases may move."""
    return input_change.dispatch(type(mechanism)) is not input_change.dispatch(object)


@input_change.register
def _additive_change(mechanism: Additive, one: Arguments, other: Arguments) -> InputChange:
    """Return how far the values ``one`` and ``other`` of a noisy release differ, and the privacy loss of that.

    The ratio is the change divided by the sensitivity: in l1 norm for Laplace noise and l2 norm for normal noise where
    sensitivities bound coordinates jointly, and the largest of the coordinates otherwise. The loss is divided by the
    scales of the noise: mu squared for normal noise, epsilon otherwise.
    """
    changes, noise = _coordinate_changes(one["value"], other["value"]), mechanism.noise
    copies = len(changes) if noise.joint else 1
    ratios = [change / limit for change, limit in zip(changes, noise.sensitivities * copies, strict=True)]
    scaled = [change / Fraction(scale) for change, scale in zip(changes, noise.scales * copies, strict=True)]
    if isinstance(mechanism, Gaussian):
        squares = sum((ratio * ratio for ratio in ratios), Fraction(0))
        ratio = _square_root(squares) if noise.joint else _largest(ratios)
        mu_squared = sum((change * change for change in scaled), Fraction(0))
        return InputChange(_strict_ratio(changes, ratio, squares > 1), mu_squared=float(mu_squared))
    total = sum(ratios, Fraction(0))
    ratio = _strict_ratio(changes, float(total), total > 1) if noise.joint else _largest(ratios)
    if isinstance(mechanism, Laplace):
        return InputChange(ratio, epsilon=float(sum(scaled, Fraction(0))))
    assert isinstance(mechanism, Staircase)
    return InputChange(ratio, epsilon=float(mechanism.epsilon) * math.ceil(ratio - 1e-12))


@input_change.register
def _bounded_change(mechanism: BoundedLaplace, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of the one number, which costs the whole guarantee."""
    (change,) = _coordinate_changes(one["value"], other["value"])
    ratio = float(change / Fraction(mechanism.sensitivity))
    return InputChange(ratio, *_full_guarantee(mechanism, ratio))


@input_change.register
def _response_change(mechanism: RandomizedResponse, one: Arguments, other: Arguments) -> InputChange:
    """Return the number of reports whose true category differs between ``one`` and ``other``, as the ratio.

    The sensitivity of randomized response is one report, and each costs the whole epsilon.
    """
    _same_container(one["value"], other["value"])
    first, second = (np.atleast_1d(np.asarray(item["value"], dtype=object)) for item in (one, other))
    if first.shape != second.shape:
        raise ShapeMismatch("as many reports")
    ratio = int(np.sum(first != second))
    return InputChange(ratio, epsilon=ratio * float(mechanism.guarantee.epsilon))


@input_change.register(LocalProtocol)
def _local_change(mechanism: LocalProtocol[Any], one: Arguments, other: Arguments) -> InputChange:
    """Return the number of reports whose encoded value differs between ``one`` and ``other``, as the ratio.

    The sensitivity of a local protocol is one report, and each costs the whole epsilon.
    """
    first, second = mechanism.encode(one["values"]), mechanism.encode(other["values"])
    if first.shape != second.shape:
        raise ShapeMismatch("as many reports")
    ratio = int(np.count_nonzero((first != second).reshape(len(first), -1).any(axis=1)))
    return InputChange(ratio, epsilon=ratio * float(mechanism.guarantee.epsilon))


@input_change.register
def _sets_change(mechanism: PaddedSets, one: Arguments, other: Arguments) -> InputChange:
    """Return the number of reports whose set differs between ``one`` and ``other``, as the ratio.

    The sensitivity of a local protocol is one report, and each costs the whole epsilon.
    """

    def codes(own: Any) -> frozenset[int]:
        return frozenset(mechanism.encode(list(own)).tolist() if len(own) else ())

    first, second = ([*map(codes, item["values"])] for item in (one, other))
    if len(first) != len(second):
        raise ShapeMismatch("as many reports")
    ratio = sum(a != b for a, b in zip(first, second, strict=True))
    return InputChange(ratio, epsilon=ratio * float(mechanism.guarantee.epsilon))


@input_change.register(SelectionMechanism)
@input_change.register(TopK)
def _score_change(mechanism: Any, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of the scores from ``one`` to ``other``: of candidates, of all integers, or of an interval.

    Scores that are a function of integers are compared on a range around both centers. The largest rise and the largest
    fall are given to :func:`_selection_change`, which relates them to the sensitivity.
    """
    if "score" in one:  # over all integers
        centers = one["center"], other["center"]
        integers = range(min(centers) - _INTEGERS, max(centers) + _INTEGERS)
        first, second = ([Fraction(item["score"](k)) for k in integers] for item in (one, other))
    elif isinstance(mechanism, ContinuousExponential):
        return _selection_change(mechanism, *_piecewise_change(one["pieces"], other["pieces"]))
    else:
        if difference(*(list(item.get("candidates", ())) for item in (one, other))) is not None:
            raise ShapeMismatch("the same candidates")
        scores = [np.asarray(item["scores"]) for item in (one, other)]
        if len(scores[0]) != len(scores[1]):
            raise ShapeMismatch("as many candidates")
        if all(
            item.dtype.kind in "iu" and item.size and -_SMALL < item.min() <= item.max() < _SMALL for item in scores
        ):
            steps = scores[0].astype(np.int64) - scores[1].astype(np.int64)
            return _selection_change(mechanism, float(max(steps.max(), 0)), float(max(-steps.min(), 0)))
        first, second = (item.tolist() for item in scores)
    changes = [
        a - b if math.isfinite(a) and math.isfinite(b) else (0 if a == b else math.inf)
        for a, b in zip(first, second, strict=True)
    ]
    return _selection_change(mechanism, float(max([*changes, 0])), float(max([*(-change for change in changes), 0])))


def _selection_change(mechanism: Any, up: float, down: float) -> InputChange:
    """Return the change of scores that rise by at most ``up`` and fall by at most ``down``; monotone ones may do one
    only.
    """
    distance = up + down if mechanism.monotone else max(up, down)
    ratio = distance / float(mechanism.sensitivity)
    return InputChange(ratio, epsilon=float(mechanism.guarantee.exact[0]) * ratio)


@input_change.register
def _smooth_change(mechanism: SmoothNoise, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of the answer, or that of the smooth sensitivities if it is larger.

    The first is in units of the smaller sensitivity; the second is the logarithm of their ratio in units of ``beta``.
    Both are at most 1 for neighbors. Any change costs the whole guarantee of the mechanism.
    """
    change = abs(_number(one["value"]) - _number(other["value"]))
    sizes = sorted(_number(item["smooth_sensitivity"]) for item in (one, other))
    if one["width"] != other["width"]:
        raise ShapeMismatch("the same public width")
    distance = 0.0 if change == 0 else (float(change / sizes[0]) if sizes[0] else math.inf)
    spread = 0.0 if sizes[0] == sizes[1] else (math.log(sizes[1] / sizes[0]) / mechanism.beta if sizes[0] else math.inf)
    return InputChange(max(distance, spread), *_full_guarantee(mechanism, max(distance, spread)))


@input_change.register
def _proposed_change(mechanism: ProposeTestRelease, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of the distance or, where the test can pass, of the answer in units of the bound.

    The larger of the two is the ratio, at most 1 for neighbors. Any change costs the whole guarantee of the mechanism.
    """
    change = abs(_number(one["value"]) - _number(other["value"]))
    # where some neighbor is farther away than the bound, the distance is 0
    test_passes = min(one["distance"], other["distance"]) > 0
    ratio = max(
        abs(one["distance"] - other["distance"]), float(change / Fraction(mechanism.bound)) if test_passes else 0.0
    )
    return InputChange(ratio, *_full_guarantee(mechanism, ratio))


@input_change.register
def _threshold_change(mechanism: SparseVector, one: Arguments, other: Arguments) -> InputChange:
    """Return no change, and the cost of the whole session, which is charged at its start."""
    if one["threshold"] != other["threshold"]:
        raise ShapeMismatch("the same threshold")
    return InputChange(0.0, epsilon=float(mechanism.epsilon))  # the whole session is charged here


@input_change.register
def _question_change(session: SparseVectorSession, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of a question or its answer in units of the sensitivity; its cost was charged at the start."""
    changes = [abs(change) for change in _query_changes(one, other)]
    return InputChange(float(max(changes) / Fraction(session.mechanism.sensitivity)))


def _query_changes(one: Arguments, other: Arguments) -> list[Fraction]:
    """Return the signed changes of the query and, in a numeric session, of the answer that is released with noise."""
    names = [name for name in ("value", "answer") if (one.get(name), other.get(name)) != (None, None)]
    if any(isinstance(scalar(one.get(name)), int) != isinstance(scalar(other.get(name)), int) for name in names):
        raise ShapeMismatch("numbers of the same type")
    return [_number(other[name]) - _number(one[name]) for name in names]


def monotone_violation(session: SparseVectorSession, queries: Sequence[tuple[Arguments, Arguments]]) -> float:
    """Return the range of the changes of all queries in a session, in units of the sensitivity.

    Above 1, queries that are declared monotone do not all move in one direction. It is 0 for sessions that are not
    monotone.
    """
    if not session.mechanism.monotone:
        return 0.0
    changes = [_query_changes(*pair)[0] for pair in queries]
    return float((max(*changes, Fraction(0)) - min(*changes, Fraction(0))) / Fraction(session.mechanism.sensitivity))


@input_change.register
def _keys_change(mechanism: KeySelection, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of the counts of common keys, and of those that only one data set has.

    ``lines`` of the arguments have the numbers of each key, and ``noises`` the noise of each of these numbers; a key is
    released if its number of people is large enough. The ratio is the largest of: keys of one data set only, in units
    of the groups that a person may be in; their number of people; and the change of any number of a common key. A key
    of one data set only is released with probability at most delta / groups.
    """
    first, second, noises = one["lines"], other["lines"], one["noises"]
    people = list(noises).index(Measure("people"))
    unshared_counts = [
        lines[key][people]
        for lines, other_lines in ((first, second), (second, first))
        for key in lines
        if key not in other_lines
    ]
    ratio = max(len(unshared_counts) / mechanism.groups, max(unshared_counts, default=0))
    epsilon = mu_squared = 0.0
    common = [key for key in first if key in second]
    for vector in vectors(noises):  # released together: the norm of all of it is bounded
        pair = ([lines[key][i] for key in common for i in vector] for lines in (first, second))
        noise = list(noises.values())[vector[0]]
        result = input_change(noise, *({"value": values} for values in pair))
        ratio, epsilon, mu_squared = max(ratio, result.ratio), epsilon + result.epsilon, mu_squared + result.mu_squared
    return InputChange(ratio, epsilon, mu_squared, float(mechanism.delta) if unshared_counts else 0.0)


@input_change.register
def _top_keys_change(mechanism: TopKeys, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of the weights of all keys, in units of the weight of a person.

    A key of one data set only has no weight in the other; any of them is released with probability at most delta.
    """
    first, second = one["lines"], other["lines"]
    keys = [*dict.fromkeys([*first, *second])]
    weights = ([lines.get(key, 0) for key in keys] for lines in (first, second))
    result = input_change(mechanism.noise, *({"value": values} for values in weights))
    return replace(result, delta=float(mechanism.delta) if first.keys() != second.keys() else 0.0)


@input_change.register
def _marginals_change(mechanism: MarginalMechanism, one: Arguments, other: Arguments) -> InputChange:
    """Return the largest l1 norm of a table's change, which is declared, and the squared distance of the residuals.

    The ratio is the norm in units of the declared contribution of a person. The cost is that of the noise, which is
    added to the residuals. A ratio above 1 is returned as clearly above 1, however little it exceeds it.
    """
    first, second = one["counts"], other["counts"]
    if [*first] != [*second] or any(np.shape(first[levels]) != np.shape(second[levels]) for levels in first):
        raise ShapeMismatch("the same tables")
    changes = {levels: np.asarray(first[levels], np.int64) - np.asarray(second[levels], np.int64) for levels in first}
    norms = [sum(map(abs, change.ravel().tolist())) for change in changes.values()]
    ratio = Fraction(max(norms, default=0)) / Fraction(mechanism.contribution)
    return InputChange(
        max(float(ratio), 1 + 2 * ROUNDING) if ratio > 1 else float(ratio),
        mu_squared=float(mechanism.squared_distance_of(changes)),
    )


@input_change.register
def _series_change(mechanism: SeriesMechanism, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of one advance of a series; :func:`series_ratio` looks at all of them together."""
    if np.shape(one["increments"]) != np.shape(other["increments"]):
        raise ShapeMismatch("the same periods")
    return InputChange(series_ratio(mechanism, [(one, other)]))


@input_change.register
def _request_change(mechanism: Request, one: Arguments, other: Arguments) -> InputChange:
    """Return the number of records that a function of records gains or loses: one between neighbors."""
    first, second = (_records(next(iter(item.values()))) for item in (one, other))
    removed, added = sum((Counter(first) - Counter(second)).values()), sum((Counter(second) - Counter(first)).values())
    ratio = max(removed, added)
    if difference(*(dict(list(item.items())[1:]) for item in (one, other))) is not None:
        raise ShapeMismatch("the same public arguments")
    return InputChange(ratio, *_full_guarantee(mechanism, ratio))


def _full_guarantee(mechanism: Any, ratio: float) -> tuple[float, float, float]:
    """Return the whole guarantee as (epsilon, mu squared, delta), or zeros if the input did not change (``ratio`` 0).

    It is for mechanisms whose cost of a smaller change is not computed.
    """
    if ratio == 0:
        return 0.0, 0.0, 0.0
    numbers = [float(number) for number in mechanism.guarantee.exact]
    return numbers[0], 0.0, numbers[1] if len(numbers) > 1 else 0.0


def _records(x: Any) -> list[Any]:
    """Return the records of a column or of rows, in a hashable form."""
    rows = np.asarray(x)
    if rows.ndim == 0:
        raise ShapeMismatch("records")
    return [
        row.tobytes() if rows.dtype != object else repr(row.tolist())
        for row in (rows if rows.ndim > 1 else rows[:, None])
    ]


def _number(value: Any) -> Fraction:
    """Return one exact number; anything else is refused."""
    result = scalar(value)
    if result is None:
        raise ShapeMismatch("one number")
    return Fraction(result)


def _coordinate_changes(one: Any, other: Any) -> list[Fraction]:
    """Return the absolute change of every coordinate."""
    if (scalar(one) is None) != (scalar(other) is None):
        raise ShapeMismatch("numbers in both runs, or vectors in both")
    _same_container(one, other)
    first, second = _coordinates(one), _coordinates(other)
    if len(first) != len(second):
        raise ShapeMismatch("vectors of the same length")
    if [isinstance(x, int) for x in first] != [isinstance(x, int) for x in second]:
        raise ShapeMismatch("numbers of the same type")
    return [abs(Fraction(a) - Fraction(b)) for a, b in zip(first, second, strict=True)]


def _coordinates(value: Any) -> list[Any]:
    """Return the numbers of a vector, each in the type in which it is released."""
    single = scalar(value)
    if single is not None:
        return [single]
    numbers = value if isinstance(value, (list, tuple)) else np.asarray(value).ravel().tolist()
    return [_released_number(number) for number in numbers]


def _released_number(value: Any) -> Any:
    """Return one number in the type in which a mechanism releases it; anything else is refused."""
    number = scalar(value)
    if number is None:
        raise ShapeMismatch("numbers")
    return number


def _same_container(one: Any, other: Any) -> None:
    """Refuse containers that differ in what is returned along with the noise: type, index or name.

    Lists, tuples and single numbers have nothing of the kind. Raises ShapeMismatch.
    """
    first, second = (
        [] if scalar(item) is not None or isinstance(item, (list, tuple))
        else [type(item), np.asarray(item).dtype.kind == "f", getattr(item, "index", None), getattr(item, "name", None)]
        for item in (one, other)
    )  # fmt: skip
    if difference(first, second) is not None:
        raise ShapeMismatch("the same container, with the same index and name,")


def _strict_ratio(changes: Sequence[Fraction], ratio: float, beyond: bool) -> float:
    """Return the ratio, raised above the tolerance if it exceeds 1 for integers, which are not rounded."""
    return max(ratio, 1 + 2 * ROUNDING) if beyond and all(change.denominator == 1 for change in changes) else ratio


def _square_root(square: Fraction | int) -> float:
    """Return the square root; infinite beyond the range of floats."""
    return math.sqrt(square) if square < 1 << 1000 else math.inf


def _largest(ratios: Sequence[Fraction]) -> float:
    return float(max(ratios, default=Fraction(0)))


def _piecewise_change(one: Sequence[Any], other: Sequence[Any]) -> tuple[float, float]:
    """Return the largest rise and the largest fall of a piecewise quadratic score between two data sets.

    ``one`` and ``other`` are triples of start, stop and the coefficients of the score between them. On every stretch
    without an end inside, the difference of the two pieces is extremal at the ends or at its vertex; it is evaluated
    exactly.
    """
    ends = sorted({float(end) for pieces in (one, other) for start, stop, _ in pieces for end in (start, stop)})
    up = down = 0.0
    for low, high in pairwise(ends):
        middle = (low + high) / 2
        first, second = (next(c for start, stop, c in pieces if start <= middle <= stop) for pieces in (one, other))
        c0, c1, c2 = (
            Fraction(a) - Fraction(b) for a, b in zip(_coefficients(first), _coefficients(second), strict=True)
        )
        points = [Fraction(low), Fraction(high)]
        if c2 and low < -c1 / (2 * c2) < high:
            points.append(-c1 / (2 * c2))
        changes = [float(c0 + c1 * t + c2 * t * t) for t in points]
        up, down = max(up, *changes), max(down, *(-change for change in changes))
    return up, down


def _coefficients(coefficients: Sequence[float]) -> list[float]:
    """Return the coefficients of 1, t and t^2, with zeros for those that are left out."""
    return [*coefficients, 0.0, 0.0][:3]


def series_ratio(mechanism: SeriesMechanism, releases: Sequence[tuple[Arguments, Arguments]]) -> float:
    """Return how far all releases of a series moved its input, in units of what the participation schema allows.

    The ratio is the largest of three: of the number of periods, of their separation, and of the l1 norm in one period.
    """
    plan = mechanism.plan
    change = np.concatenate([np.asarray(a["increments"]) - np.asarray(b["increments"]) for a, b in releases])
    moved = np.flatnonzero(np.any(change != 0, axis=1))
    ratio = len(moved) / plan.max_participations
    if len(moved) > 1:
        ratio = max(ratio, plan.min_separation / int(np.diff(moved).min()))
    for i, lane in enumerate(mechanism.lanes):
        norms = np.abs(change[:, i * mechanism.groups : (i + 1) * mechanism.groups]).sum(axis=1)
        ratio = max(ratio, float(norms.max(initial=0)) / lane.sensitivity)
    return ratio


def series_cost(mechanism: SeriesMechanism, releases: Sequence[tuple[Arguments, Arguments]]) -> tuple[float, float]:
    """Return epsilon and mu squared of the whole series if this is the first release that differs, and zeros otherwise.

    ``releases`` are the arguments on both data sets, in order of release and with the present one last. The guarantee
    covers all releases together, so it is counted once.
    """
    differs = [np.any(np.asarray(a["increments"]) != np.asarray(b["increments"])) for a, b in releases]
    if not differs[-1] or any(differs[:-1]):
        return 0.0, 0.0
    if isinstance(mechanism.guarantee, PureDP):
        return float(mechanism.guarantee.exact[0]), 0.0
    return 0.0, float(1 / mechanism.plan.ratio**2)
