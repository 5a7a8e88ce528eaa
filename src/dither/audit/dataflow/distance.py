"""How far apart two inputs of a mechanism are, measured by what the mechanism declares.

``times`` is the distance over the declared sensitivity: above 1 the declaration was wrong. What the two inputs can
lose at most is kept beside it, as an epsilon, the square of a Gaussian mu, and a delta, which add up over releases.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np

from dither.audit.outputs.equality import difference
from dither.budget_hooks import Request
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
from dither.mechanisms.selection import Selection
from dither.mechanisms.sparse_vector import SparseVectorSession
from dither.mechanisms.top_k import TopK
from dither.mechanisms.values import scalar
from dither.tables.planning.key_selection import Keys
from dither.tables.planning.measures import Measure

Given = Mapping[str, Any]
_INTEGERS = 256
ROUNDING = 1e-9
"""How far beyond 1 an input may move: floats that a pipeline computes are rounded."""


class Shape(Exception):
    """The inputs of one release are not of the same shape; how is said without their values."""


@dataclass(frozen=True)
class Moved:
    """How far one release's input moved between neighbours, and what that can lose.

    >>> Moved(0.5, epsilon=1.0)
    Moved(times=0.5, epsilon=1.0, square=0.0, delta=0.0)
    """

    times: float
    epsilon: float = 0.0
    square: float = 0.0
    delta: float = 0.0


@singledispatch
def moved(what: Any, one: Given, other: Given) -> Moved:
    """How far apart the inputs of what releases are; of what is :func:`known` only."""
    raise AssertionError(what, one, other)


def known(what: Any) -> bool:
    """Whether this releases by itself, from inputs that can be compared."""
    return moved.dispatch(type(what)) is not moved.dispatch(object)


@moved.register
def _(what: Additive, one: Given, other: Given) -> Moved:
    steps = _steps(one["value"], other["value"])
    parts, scales = what.noise.sensitivities, [Fraction(scale) for scale in what.noise.scales]
    if what.noise.joint:
        parts, scales = parts * len(steps), scales * len(steps)
    if isinstance(what, Gaussian):
        square = sum((step / scale) ** 2 for step, scale in zip(steps, scales, strict=True))
        far = sum((step / part) ** 2 for step, part in zip(steps, parts, strict=True))
        times = _root(far) if what.noise.joint else _most(steps, parts)
        return Moved(_strictly(steps, times, far > 1), square=float(square))
    sum_of = sum(step / part for step, part in zip(steps, parts, strict=True))
    times = _strictly(steps, float(sum_of), sum_of > 1) if what.noise.joint else _most(steps, parts)
    if isinstance(what, Laplace):
        return Moved(times, epsilon=float(sum(step / scale for step, scale in zip(steps, scales, strict=True))))
    assert isinstance(what, Staircase)
    return Moved(times, epsilon=float(what.epsilon) * math.ceil(times - 1e-12))


@moved.register
def _(what: BoundedLaplace, one: Given, other: Given) -> Moved:
    times = _most(_steps(one["value"], other["value"]), [Fraction(what.sensitivity)])
    return Moved(times, *_whole(what, times))


@moved.register
def _(what: RandomizedResponse, one: Given, other: Given) -> Moved:
    _same_container(one["value"], other["value"])
    here, there = (np.atleast_1d(np.asarray(item["value"], dtype=object)) for item in (one, other))
    if here.shape != there.shape:
        raise Shape("as many reports")
    times = int(np.sum(here != there))
    return Moved(times, epsilon=times * float(what.guarantee.epsilon))


@moved.register(Selection)
@moved.register(TopK)
def _(what: Any, one: Given, other: Given) -> Moved:
    if "score" in one:  # over all integers
        near = range(min(one["center"], other["center"]) - _INTEGERS, max(one["center"], other["center"]) + _INTEGERS)
        here, there = ([Fraction(item["score"](k)) for k in near] for item in (one, other))
    elif isinstance(what, ContinuousExponential):
        return _selected(what, *_along(one["pieces"], other["pieces"]))
    else:
        if difference(*(list(item.get("candidates", ())) for item in (one, other))) is not None:
            raise Shape("the same candidates")
        here, there = (np.asarray(item["scores"]).tolist() for item in (one, other))
        if len(here) != len(there):
            raise Shape("as many candidates")
    steps = [
        a - b if math.isfinite(a) and math.isfinite(b) else (0 if a == b else math.inf)
        for a, b in zip(here, there, strict=True)
    ]
    return _selected(what, float(max([*steps, 0])), float(max([*(-step for step in steps), 0])))


def _selected(what: Any, up: float, down: float) -> Moved:
    """Scores that rise by ``up`` and fall by ``down`` at most; monotone ones may do one of both only."""
    far = up + down if what.monotone else max(up, down)
    times = far / float(what.sensitivity)
    return Moved(times, epsilon=float(what.guarantee.exact[0]) * times)


@moved.register
def _(what: SmoothNoise, one: Given, other: Given) -> Moved:
    step = abs(_number(one["value"]) - _number(other["value"]))
    sizes = sorted(_number(item["smooth_sensitivity"]) for item in (one, other))
    if one["width"] != other["width"]:
        raise Shape("the same public width")
    far = 0.0 if step == 0 else (float(step / sizes[0]) if sizes[0] else math.inf)
    spread = 0.0 if sizes[0] == sizes[1] else (math.log(sizes[1] / sizes[0]) / what.beta if sizes[0] else math.inf)
    return Moved(max(far, spread), *_whole(what, max(far, spread)))


@moved.register
def _(what: ProposeTestRelease, one: Given, other: Given) -> Moved:
    step = abs(_number(one["value"]) - _number(other["value"]))
    # where a neighbour farther away than the bound exists, the distance to one is 0
    sure = min(one["distance"], other["distance"]) > 0
    times = max(abs(one["distance"] - other["distance"]), float(step / Fraction(what.bound)) if sure else 0.0)
    return Moved(times, *_whole(what, times))


@moved.register
def _(what: SparseVector, one: Given, other: Given) -> Moved:
    if one["threshold"] != other["threshold"]:
        raise Shape("the same threshold")
    return Moved(0.0, epsilon=float(what.epsilon))  # the whole session is paid for here


@moved.register
def _(what: SparseVectorSession, one: Given, other: Given) -> Moved:
    steps = [abs(step) for step in _questions(one, other)]
    return Moved(float(max(steps) / Fraction(what.mechanism.sensitivity)))


def _questions(one: Given, other: Given) -> list[Fraction]:
    """How far a question, and the answer that it may get, rise."""
    names = [name for name in ("value", "answer") if (one.get(name), other.get(name)) != (None, None)]
    if any(isinstance(scalar(one.get(name)), int) != isinstance(scalar(other.get(name)), int) for name in names):
        raise Shape("numbers of the same type")
    return [_number(other[name]) - _number(one[name]) for name in names]


def one_way(what: SparseVectorSession, asked: Sequence[tuple[Given, Given]]) -> float:
    """How far the questions of a session rise and fall together, in units of the sensitivity: if they are said to move
    the same way, by more than 1 they do not."""
    if not what.mechanism.monotone:
        return 0.0
    steps = [_questions(*pair)[0] for pair in asked]
    return float((max(*steps, Fraction(0)) - min(*steps, Fraction(0))) / Fraction(what.mechanism.sensitivity))


@moved.register
def _(what: Keys, one: Given, other: Given) -> Moved:
    """Keys that all have are compared; a key of one person only is shown with probability delta / groups at most."""
    here, there, noises = one["lines"], other["lines"], one["noises"]
    people = list(noises).index(Measure("people"))
    alone = [lines[key][people] for lines, rest in ((here, there), (there, here)) for key in lines if key not in rest]
    times = max(len(alone) / what.groups, max(alone, default=0))
    epsilon = square = 0.0
    for i, noise in enumerate(noises.values()):
        pair = ([lines[key][i] for key in here if key in there] for lines in (here, there))
        result = moved(noise, *({"value": values} for values in pair))
        times, epsilon, square = max(times, result.times), epsilon + result.epsilon, square + result.square
    return Moved(times, epsilon, square, float(what.delta) if alone else 0.0)


@moved.register
def _(what: Request, one: Given, other: Given) -> Moved:
    """A function that releases from records: they must be neighbours."""
    here, there = (_records(next(iter(item.values()))) for item in (one, other))
    apart, back = sum((Counter(here) - Counter(there)).values()), sum((Counter(there) - Counter(here)).values())
    times = max(apart, back)
    if difference(*(dict(list(item.items())[1:]) for item in (one, other))) is not None:
        raise Shape("the same public arguments")
    return Moved(times, *_whole(what, times))


def _whole(what: Any, times: float) -> tuple[float, float, float]:
    """The whole guarantee, if anything moved."""
    if times == 0:
        return 0.0, 0.0, 0.0
    numbers = [float(number) for number in what.guarantee.exact]
    return numbers[0], 0.0, numbers[1] if len(numbers) > 1 else 0.0


def _records(x: Any) -> list[Any]:
    """The records of a column or of rows, as things that can be counted."""
    rows = np.asarray(x)
    if rows.ndim == 0:
        raise Shape("records")
    return [
        row.tobytes() if rows.dtype != object else repr(row.tolist())
        for row in (rows if rows.ndim > 1 else rows[:, None])
    ]


def _number(value: Any) -> Fraction:
    result = scalar(value)
    if result is None:
        raise Shape("one number")
    return Fraction(result)


def _steps(one: Any, other: Any) -> list[Fraction]:
    """How far each coordinate moved."""
    if (scalar(one) is None) != (scalar(other) is None):
        raise Shape("numbers in both runs, or vectors in both")
    _same_container(one, other)
    here, there = _coordinates(one), _coordinates(other)
    if len(here) != len(there):
        raise Shape("vectors of the same length")
    if [isinstance(x, int) for x in here] != [isinstance(x, int) for x in there]:
        raise Shape("numbers of the same type")
    return [abs(Fraction(a) - Fraction(b)) for a, b in zip(here, there, strict=True)]


def _coordinates(value: Any) -> list[Any]:
    """The numbers of a vector, each of the type that it is released as."""
    single = scalar(value)
    if single is not None:
        return [single]
    numbers = value if isinstance(value, (list, tuple)) else np.asarray(value).ravel().tolist()
    return [_typed(number) for number in numbers]


def _typed(value: Any) -> Any:
    number = scalar(value)
    if number is None:
        raise Shape("numbers")
    return number


def _same_container(one: Any, other: Any) -> None:
    """What comes back together with the noise: a list, an array, the index and the name of a Series."""
    here, there = (
        [] if scalar(item) is not None or isinstance(item, (list, tuple))
        else [type(item), np.asarray(item).dtype.kind == "f", getattr(item, "index", None), getattr(item, "name", None)]
        for item in (one, other)
    )  # fmt: skip
    if difference(here, there) is not None:
        raise Shape("the same container, with the same index and name,")


def _strictly(steps: Sequence[Fraction], times: float, beyond: bool) -> float:
    """Whole numbers have no rounding to excuse: what is beyond 1 by the least is beyond what is put up with."""
    return max(times, 1 + 2 * ROUNDING) if beyond and all(step.denominator == 1 for step in steps) else times


def _root(square: Fraction | int) -> float:
    """The square root, infinite where no float is that large."""
    return math.sqrt(square) if square < 1 << 1000 else math.inf


def _most(steps: Sequence[Fraction], parts: Sequence[Fraction]) -> float:
    return float(max((step / part for step, part in zip(steps, parts, strict=True)), default=Fraction(0)))


def _along(one: Sequence[Any], other: Sequence[Any]) -> tuple[float, float]:
    """How far a score in pieces rises and falls at most: quadratics differ by one, largest at its ends or turn."""
    ends = sorted({float(end) for pieces in (one, other) for start, stop, _ in pieces for end in (start, stop)})
    up = down = 0.0
    for low, high in pairwise(ends):
        middle = (low + high) / 2
        here, there = (next(c for start, stop, c in pieces if start <= middle <= stop) for pieces in (one, other))
        c0, c1, c2 = (Fraction(a) - Fraction(b) for a, b in zip(_three(here), _three(there), strict=True))
        places = [Fraction(low), Fraction(high)]
        if c2 and low < -c1 / (2 * c2) < high:
            places.append(-c1 / (2 * c2))
        steps = [float(c0 + c1 * t + c2 * t * t) for t in places]
        up, down = max(up, *steps), max(down, *(-step for step in steps))
    return up, down


def _three(coefficients: Sequence[float]) -> list[float]:
    return [*coefficients, 0.0, 0.0][:3]


__all__ = ["ROUNDING", "Moved", "Shape", "known", "moved", "one_way"]
