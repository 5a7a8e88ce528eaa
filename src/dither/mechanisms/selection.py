"""The base of the mechanisms that select a candidate: reading scores, and the exponent for one unit of score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import BoundedRange, Event
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.guarantees import PureDP
from dither.mechanisms.pictures import Pictured
from dither.neighbors import AddRemove, Neighbors, relation

Candidate = TypeVar("Candidate")
Ties = int | Mapping[float, int]
"""How many candidates are tied at the top; or how many are within each distance of it, at least."""

_EXACT = 1 << 53
_FAR = Fraction(2) ** 1000
_FIX = "pass one number for each candidate; -inf for one that must not be chosen"


@dataclass(frozen=True)
class Scores:
    """Scores as floats, and exactly where floats round them.

    Integers of more than 53 bits are stored as distances from the largest, so that none is too large for a float.
    """

    floats: NDArray[np.float64]
    exact: Callable[[int], Fraction] | None


def read_scores(scores: Any) -> Scores:
    """Return one-dimensional scores: finite numbers or -inf, at least one of them finite.

    >>> read_scores([2**60, 2**60 - 3]).floats
    array([-0., -3.])
    """
    try:
        result = np.asanyarray(scores.to_numpy() if hasattr(scores, "to_numpy") else scores)
    except (TypeError, ValueError, OverflowError):
        raise WrongType("scores", "numbers", type(scores).__name__, _FIX) from None
    if result.ndim != 1:
        raise InvalidArgument("scores", "one dimension", f"{result.ndim} dimensions", _FIX)
    if result.size == 0:
        raise InvalidArgument("scores", "at least one candidate", "none", _FIX)
    if isinstance(result, np.ma.MaskedArray):
        if np.any(np.ma.getmaskarray(result)):
            raise InvalidData("scores", "no masked values", "some", "pass -inf for them")
        result = result.data
    kind = result.dtype.kind
    if kind in "fO" and isinstance(scores, (list, tuple)) and any(_large(item) for item in scores):
        return _from_integers(scores)
    if kind in "biu":
        if result.dtype.itemsize < 8 or (result.min() >= -_EXACT and result.max() <= _EXACT):
            return Scores(result.astype(np.float64), None)
        whole = result.astype(np.uint64) if kind == "u" else result.astype(np.int64).view(np.uint64)
        behind = (whole[int(np.argmax(result))] - whole).astype(np.uint64)
        return Scores(-behind.astype(np.float64), lambda i: Fraction(-int(behind[i])))
    if kind != "f" or result.dtype.itemsize > 8:
        raise WrongType("scores", "real numbers of at most 64 bits", f"dtype {result.dtype}", _FIX)
    floats = result.astype(np.float64, copy=False)
    top = floats.max()
    if not -math.inf < top < math.inf:  # NaN fails as well
        raise InvalidData("scores", "no NaN, no +inf, and at least one above -inf", "NaN, +inf, or -inf alone", _FIX)
    return Scores(floats, None)


def _large(item: object) -> bool:
    """Return whether an item is an integer that no float represents exactly."""
    return isinstance(item, (int, np.integer)) and not -_EXACT <= item <= _EXACT


def _from_integers(scores: Sequence[Any]) -> Scores:
    """Return scores with integers that NumPy would round or refuse, so that their differences stay exact."""
    if not all(isinstance(item, (int, float, np.integer, np.floating)) for item in scores):
        raise WrongType("scores", "real numbers", "a value that is not a number", _FIX)
    if not all(_large(item) or -math.inf <= item < math.inf for item in scores):
        raise InvalidData("scores", "no NaN, no +inf, and at least one above -inf", "NaN, +inf, or -inf alone", _FIX)
    finite = {i: Fraction(item) for i, item in enumerate(scores) if _large(item) or item > -math.inf}
    top = max(finite.values())
    floats = np.full(len(scores), -np.inf)
    for i, value in finite.items():
        floats[i] = float(max(value - top, -_FAR))
    return Scores(floats, lambda i: max(finite[i] - top, -_FAR))


def paired(candidates: Sequence[Candidate], scores: Any) -> Sequence[Candidate]:
    """Return the candidates as a sequence to be indexed; refused if their number is not that of the scores.

    >>> paired("ab", [1, 2])
    'ab'
    """
    for name, value in (("candidates", candidates), ("scores", scores)):
        if not hasattr(value, "__len__"):
            raise WrongType(name, "a sequence", type(value).__name__, "pass a list")
    if len(candidates) != len(scores):
        raise InvalidArgument(
            "candidates", f"as many as there are scores, {len(scores)}", f"{len(candidates)}", "pair them up"
        )
    # a Series would look labels up
    return candidates if isinstance(candidates, (str, list, tuple, range, np.ndarray)) else list(candidates)


@dataclass(frozen=True)
class SelectionMechanism(Pictured):
    """Base of the mechanisms that choose one of many candidates by their scores.

    ``sensitivity`` is how far one person can move any one score. ``monotone=True`` is allowed where between any two
    neighbors all scores move in the same direction, as counts do when a record is added or removed: half the noise.
    """

    sensitivity: float
    epsilon: float
    monotone: bool = False

    def __post_init__(self) -> None:
        arguments.sensitivity(self.sensitivity)
        arguments.epsilon(self.epsilon)
        if not isinstance(self.monotone, bool):
            raise WrongType("monotone", "True or False", type(self.monotone).__name__, "leave it out if unsure")

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP."""
        return PureDP(self.epsilon)

    @property
    def event(self) -> Event:
        """Return the event for accountants: all losses lie in an interval of length epsilon."""
        return BoundedRange(arguments.epsilon(self.epsilon))

    @classmethod
    def for_counts(cls, epsilon: float, neighbors: Neighbors, **keywords: Any) -> Self:
        """Return the mechanism for scores that are numbers of records: sensitivity 1, and monotone under add-or-remove.

        >>> import dither as dp
        >>> dp.Exponential.for_counts(1, dp.AddRemove).monotone, dp.Exponential.for_counts(1, dp.ReplaceOne).monotone
        (True, False)
        """
        return cls(1, epsilon, monotone=relation(neighbors) is AddRemove, **keywords)

    @cached_property
    def rate(self) -> Fraction:
        """Return the exponent for one unit of score: epsilon / (2 sensitivity), or epsilon / sensitivity if
        monotone."""
        return arguments.epsilon(self.epsilon) / (arguments.sensitivity(self.sensitivity) * (1 if self.monotone else 2))

    @property
    def scale(self) -> float:
        """Return the size of the noise on a score, 1 / rate; infinite where no float can represent it."""
        try:
            return float(1 / self.rate)
        except OverflowError:
            return math.inf

    def gap(self, candidates: int, ties: Ties, confidence: float | None = None) -> float:
        """Return ``(ln(candidates / r) + ln(1/tail)) / rate``; without a confidence, without the tail.

        ``r`` is the number of candidates tied at the top; one that is within a of it counts as ``exp(-rate a)``, its
        weight against the best.
        """
        d, near = arguments.whole(candidates, "candidates"), near_ties(ties, candidates)
        r = math.fsum(count * math.exp(-far / self.scale) for far, count in near) * (1 - 2.0**-50)
        if len(near) == 1:
            r = near[0][1]
        tail_term = 0.0 if confidence is None else -math.log(1 - arguments.confidence(confidence))
        return max(0.0, math.log(d / r) + tail_term) * self.scale * (1 + 2.0**-50)

    def expected_gap(self, candidates: int, ties: Ties) -> float:
        """Return the largest expected distance of the chosen score from the best, over all scores with these ties.

        ``candidates`` is their number, and ``ties`` says how many are at most how far from the best
        (:func:`near_ties`). The result is the root of a decreasing function
        (:meth:`~dither.Exponential.expected_score_bound` has the reason), found by halving in units of the scale, and
        rounded up.
        """
        near = [(far / self.scale, count) for far, count in near_ties(ties, candidates)]
        others = candidates - sum(count for _, count in near)

        def excess(bound: float) -> float:
            """Return a number that is positive while the expected distance may exceed ``bound``, in units of the scale.

            It is the sum over all candidates of ``(distance - bound) exp(-distance)``, with the distances that make it
            largest: ``bound + 1`` where nothing is known of a candidate.
            """
            worst = bound + 1
            gains = [(min(far, worst) - bound) * math.exp(-min(far, worst)) * count for far, count in near]
            return math.fsum([*gains, others * math.exp(-worst)])

        low, high = 0.0, math.log(candidates) + 1
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return high * self.scale * (1 + 2.0**-40)


def near_ties(ties: Ties, candidates: int) -> list[tuple[float, int]]:
    """Return, for increasing distances from the best score, how many more candidates are within each of them.

    ``ties`` maps a distance to the number of candidates within it, the best included, or is the number that share the
    best score. ``candidates`` is the number of all of them. Where nothing is known it is ``[(0, 1)]``: the best
    itself.

    >>> near_ties({0.5: 3, 2.0: 4}, 10)
    [(0.0, 1), (0.5, 2), (2.0, 1)]
    """
    limit = arguments.whole(candidates, "candidates")
    counts = dict(ties) if isinstance(ties, Mapping) else {0.0: ties}
    result, known = [], 0
    for far in sorted({0.0, *(arguments.positive(far, "ties") for far in counts if far != 0)}):
        within = max(arguments.whole(counts.get(far, 1), "ties"), known, 1)
        if within > limit:
            raise InvalidArgument(
                "ties", f"at most the number of candidates, {limit}", within, "count the candidates tied at the top"
            )
        if within > known:
            result.append((far, within - known))
        known = within
    return result
