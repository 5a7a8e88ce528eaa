"""The distance between two inputs of one release, relative to the sensitivity that the mechanism declares.

A ratio above 1 means that the declared sensitivity is wrong. The privacy cost of a release for this particular pair of
inputs is bounded by an epsilon, the square of a Gaussian mu, and a delta, all of which add up over releases.

The distance of two histories of a series on a table is over all of its periods, not one release at a time. A series
declares a participation schema: one person changes its input in at most k periods, any two of them separated by at
least b, and in each period by at most the declared l1 sensitivity of every aggregate. Releases that respect the
sensitivity in each period but violate the schema are a leak that no single release shows.
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
    """Return how far one release's input differs between two neighbors, and bounds on what that difference costs.

    ``one`` and ``other`` are the arguments of the release on the two data sets, by parameter name.

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
    """Return the change of the answer in units of the sensitivity; any change costs the whole guarantee."""
    (change,) = _coordinate_changes(one["value"], other["value"])
    return _change_at_full_cost(mechanism, float(change / Fraction(mechanism.sensitivity)))


@input_change.register
def _response_change(mechanism: RandomizedResponse, one: Arguments, other: Arguments) -> InputChange:
    """Return the number of reports whose true category differs between ``one`` and ``other``, as the ratio."""
    _same_container(one["value"], other["value"])
    first, second = (np.atleast_1d(np.asarray(item["value"], dtype=object)) for item in (one, other))
    return _report_change(mechanism, first.tolist(), second.tolist())


def _report_change(mechanism: Any, one: list[Any], other: list[Any]) -> InputChange:
    """Return the number of reports whose true value differs, as the ratio.

    ``one`` and ``other`` have the true value of each report on the two data sets. The sensitivity of a local protocol
    is one report, and each that differs costs the whole epsilon.
    """
    if len(one) != len(other):
        raise ShapeMismatch("the same number of reports")
    ratio = sum(a != b for a, b in zip(one, other, strict=True))
    return InputChange(ratio, epsilon=ratio * float(mechanism.guarantee.epsilon))


@input_change.register(LocalProtocol)
def _local_change(mechanism: LocalProtocol[Any], one: Arguments, other: Arguments) -> InputChange:
    """Return the number of reports whose encoded value differs between ``one`` and ``other``, as the ratio."""
    return _report_change(mechanism, *(mechanism.encode(item["values"]).tolist() for item in (one, other)))


@input_change.register
def _sets_change(mechanism: PaddedSets, one: Arguments, other: Arguments) -> InputChange:
    """Return the number of reports whose set of items differs between ``one`` and ``other``, as the ratio."""

    def codes(items: Any) -> frozenset[int]:
        """Return the codes of the items of one person's set."""
        return frozenset(mechanism.encode(list(items)).tolist() if len(items) else ())

    return _report_change(mechanism, *([*map(codes, item["values"])] for item in (one, other)))


@input_change.register(SelectionMechanism)
@input_change.register(TopK)
def _score_change(mechanism: Any, one: Arguments, other: Arguments) -> InputChange:
    """Return the largest change of a score from ``one`` to ``other``, in units of the sensitivity.

    The scores are those of candidates, of all integers, or of an interval. Scores that are a function of integers are
    compared on a range around both centers.
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
            raise ShapeMismatch("the same number of candidates")
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
    """Return the change, in units of the sensitivity, of scores that rise by up to ``up`` and fall by up to ``down``.

    Scores that are declared monotone all move in one direction, so for them rise and fall add up.
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
    return _change_at_full_cost(mechanism, max(distance, spread))


@input_change.register
def _proposed_change(mechanism: ProposeTestRelease, one: Arguments, other: Arguments) -> InputChange:
    """Return the larger of the change of the distance and, where the test can pass, that of the answer over the bound.

    It is at most 1 for neighbors. Any change costs the whole guarantee of the mechanism.
    """
    change = abs(_number(one["value"]) - _number(other["value"]))
    # where some neighbor is farther away than the bound, the distance is 0
    test_passes = min(one["distance"], other["distance"]) > 0
    ratio = max(
        abs(one["distance"] - other["distance"]), float(change / Fraction(mechanism.bound)) if test_passes else 0.0
    )
    return _change_at_full_cost(mechanism, ratio)


@input_change.register
def _threshold_change(mechanism: SparseVector, one: Arguments, other: Arguments) -> InputChange:
    """Return a ratio of 0 and the epsilon of the whole session, which is charged when it starts."""
    if one["threshold"] != other["threshold"]:
        raise ShapeMismatch("the same threshold")
    return InputChange(0.0, epsilon=float(mechanism.epsilon))  # the whole session is charged here


@input_change.register
def _question_change(session: SparseVectorSession, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of a session's question, or of its noisy answer, in units of the sensitivity, at no cost.

    The whole session was charged when it started.
    """
    changes = [abs(change) for change in _query_changes(one, other)]
    return InputChange(float(max(changes) / Fraction(session.mechanism.sensitivity)))


def _query_changes(one: Arguments, other: Arguments) -> list[Fraction]:
    """Return the signed changes of the query and, in a numeric session, of the answer that is released with noise."""
    names = [name for name in ("value", "answer") if (one.get(name), other.get(name)) != (None, None)]
    if any(isinstance(scalar(one.get(name)), int) != isinstance(scalar(other.get(name)), int) for name in names):
        raise ShapeMismatch("numbers of the same type")
    return [_number(other[name]) - _number(one[name]) for name in names]


def monotone_violation(session: SparseVectorSession, queries: Sequence[tuple[Arguments, Arguments]]) -> float:
    """Return the range of the signed changes of all questions in a session, in units of the sensitivity.

    ``queries`` has the arguments of every question on both data sets. Questions that are declared monotone move in one
    direction, each by at most the sensitivity, so a range above 1 violates the declaration. 0 for other sessions.
    """
    if not session.mechanism.monotone:
        return 0.0
    changes = [_query_changes(*pair)[0] for pair in queries]
    return float((max(*changes, Fraction(0)) - min(*changes, Fraction(0))) / Fraction(session.mechanism.sensitivity))


@input_change.register
def _keys_change(mechanism: KeySelection, one: Arguments, other: Arguments) -> InputChange:
    """Return the change of the groups of a table with private keys, where a key is released if enough people have it.

    ``lines`` of the arguments have the numbers of each key, and ``noises`` the noise of each of these numbers. The
    ratio is the largest of three: the number of keys that only one data set has, over the groups that a person may be
    in; the number of people of such a key, which is 1 between neighbors; and the change of any number of a common key.
    A key of one data set only is released with probability at most delta / groups.
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
    """Return the largest change of a published table of counts, over the declared contribution of one person.

    The change of a table is measured in the l1 norm. Noise is added to the residuals (contrasts) of the tables, so the
    cost is the squared distance of the residuals in units of their noise, a mu squared. Counts are whole numbers, so
    a ratio above 1 is no rounding error: it is raised above the tolerance.
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
    """Return the change of one call of ``advance``; :func:`series_ratio` takes all calls of a series together."""
    if np.shape(one["increments"]) != np.shape(other["increments"]):
        raise ShapeMismatch("the same periods")
    return InputChange(series_ratio(mechanism, [(one, other)]))


@input_change.register
def _request_change(mechanism: Request, one: Arguments, other: Arguments) -> InputChange:
    """Return the number of records that a function of records gains or loses: one between neighbors."""
    first, second = (_records(next(iter(item.values()))) for item in (one, other))
    removed, added = sum((Counter(first) - Counter(second)).values()), sum((Counter(second) - Counter(first)).values())
    if difference(*(dict(list(item.items())[1:]) for item in (one, other))) is not None:
        raise ShapeMismatch("the same public arguments")
    return _change_at_full_cost(mechanism, max(removed, added))


def _change_at_full_cost(mechanism: Any, ratio: float) -> InputChange:
    """Return a change of ``ratio`` that costs the whole guarantee, or nothing if the input did not change (ratio 0).

    It is for mechanisms whose cost of a smaller change is not computed.
    """
    if ratio == 0:
        return InputChange(ratio)
    epsilon, *delta = (float(number) for number in mechanism.guarantee.exact)
    return InputChange(ratio, epsilon, delta=sum(delta))


def _records(x: Any) -> list[Any]:
    """Return the records of a column or of rows in a hashable form: the bytes of a row, or its text for objects."""
    rows = np.asarray(x)
    if rows.ndim == 0:
        raise ShapeMismatch("records")
    return [
        row.tobytes() if rows.dtype != object else repr(row.tolist())
        for row in (rows if rows.ndim > 1 else rows[:, None])
    ]


def _number(value: Any) -> Fraction:
    """Return a single number exactly; raise ShapeMismatch for anything else."""
    result = scalar(value)
    if result is None:
        raise ShapeMismatch("one number")
    return Fraction(result)


def _coordinate_changes(one: Any, other: Any) -> list[Fraction]:
    """Return the absolute difference of every coordinate, exactly; two single numbers have one coordinate.

    Raises ShapeMismatch where the container, the number of coordinates or the type of a number differs.
    """
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
    released = [scalar(number) for number in numbers]
    if None in released:
        raise ShapeMismatch("numbers")
    return released


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
    """Return ``ratio``, raised above the tolerance for rounding if it exceeds 1 (``beyond``) and all changes are whole.

    Whole numbers are not rounded, so any excess over 1 is real.
    """
    return max(ratio, 1 + 2 * ROUNDING) if beyond and all(change.denominator == 1 for change in changes) else ratio


def _square_root(square: Fraction | int) -> float:
    """Return the square root of an exact number as a float; infinite where the square is 2^1000 or more."""
    return math.sqrt(square) if square < 1 << 1000 else math.inf


def _largest(ratios: Sequence[Fraction]) -> float:
    """Return the largest ratio; 0 if there are none."""
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
    """Return how far the input of a series moved over all its releases, relative to the declared participation schema.

    ``releases`` are the arguments on both data sets, in order. The result is the largest of three ratios: periods that
    changed over the largest number allowed, the separation required over the smallest that occurred, and the l1 norm
    of the change in one period over the sensitivity. Above 1 the schema is violated.
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
