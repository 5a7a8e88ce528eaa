"""Mechanisms that are not what they claim, each beside its repair: what an auditor must catch, and must not.

Some stand in lecture notes and papers, some in libraries, some are what everybody writes first. Each case has
neighbours on which it fails, and functions ``(data, size) -> size outputs`` for :func:`dither.audit.measure`. Cases of
the glue between mechanisms, marked as such, are caught by :func:`dither.audit.replay` as well.

>>> from dither.audit.blackbox.measure import measure
>>> case = next(case for case in CASES if case.name == "half the scale")
>>> measure(case.broken, case.one, case.other, batch=True, claim=case.claim).refuted
True
>>> measure(case.repaired, case.one, case.other, batch=True, claim=case.claim, trials=2000).refuted
False
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import stats
from dither.audit.suite.case import Broken
from dither.audit.suite.output_counterexamples import OUTPUT_CASES
from dither.audit.suite.subjects import Draw, each, one_session
from dither.guarantees import ApproxDP, PureDP
from dither.mechanisms import BoundedLaplace, Gaussian, Laplace, SparseVector
from dither.randomness import resolve
from dither.tables.planning.key_selection import threshold
from dither.tables.planning.measures import Measure

Floats = NDArray[np.float64]


def laplace(scale: float, shape: Any) -> Floats:
    """Laplace noise of any scale."""
    size = int(np.prod(shape))
    result: Floats = Laplace(sensitivity=scale, epsilon=1).release(np.zeros(size))
    return result.reshape(shape)


def textbook_laplace(x: float, size: int) -> Floats:
    """``x - sgn(u) ln(1 - 2|u|)`` in floats: which floats can come out depends on x (Mironov 2012)."""
    u = (resolve(None).words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53 - 0.5
    result: Floats = x - np.sign(u) * np.log1p(-2 * np.minimum(np.abs(u), 0.5 - 2.0**-54))
    return result


def local_median(x: Sequence[float], size: int) -> Floats:
    """Laplace noise in proportion to the local sensitivity, which itself depends on the data."""
    values, middle = sorted(x), len(x) // 2
    local = max(values[middle] - values[middle - 1], values[middle + 1] - values[middle])
    return values[middle] + (laplace(local, size) if local else np.zeros(size))


def noisy_max(scale: float) -> Draw:
    """The winner of counts with Laplace noise."""
    return lambda counts, size: np.argmax(np.asarray(counts) + laplace(scale, (size, len(counts))), axis=1)


def truncated(x: float, size: int) -> Floats:
    """Laplace noise of scale 1, drawn again until it is within [0, 10]."""
    result = x + laplace(1.0, size)
    while (outside := (result < 0) | (result > 10)).any():
        result[outside] = x + laplace(1.0, int(outside.sum()))
    return result


def above(limit_noise: Floats, noisy: Floats, limit: int) -> NDArray[np.int64]:
    """1 where a noisy answer reaches the noisy threshold, 0 below, -1 after the last one that is answered."""
    result = (noisy >= limit_noise[:, None]).astype(np.int64)
    result[np.cumsum(result, axis=1) - result >= limit] = -1
    return result


def sparse(limit: int, *, numeric: bool = False) -> Draw:
    """The repaired twin of every sparse vector: one session a run."""
    mechanism = SparseVector(sensitivity=1, epsilon=1, limit=limit, numeric=numeric)
    return lambda x, size: np.array(each(partial(one_session, mechanism))(x, size))


def sparse_with_its_answers(x: Sequence[float], size: int) -> Floats:
    """Shows the noisy answer that was compared: it is an upper limit on the noisy threshold."""
    noisy = np.asarray(x) + laplace(2.0, (size, len(x)))
    told = above(laplace(2.0, size), noisy, 1)
    return np.where(told == 1, noisy, told - 100.0)


def sparse_with_small_noise(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """Noise on the answers that does not grow with the number of them that may be above."""
    return above(laplace(4.0, size), np.asarray(x) + laplace(4 / 3, (size, len(x))), len(x) // 2)


def sparse_with_a_noisy_threshold_only(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """No noise on the answers at all."""
    return above(laplace(2.0, size), np.broadcast_to(np.asarray(x, dtype=float), (size, len(x))), len(x))


def sparse_without_end(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """As many answers above the threshold as there are."""
    return above(laplace(2.0, size), np.asarray(x) + laplace(2.0, (size, len(x))), len(x))


def twice(epsilon: float) -> Draw:
    """The same number, released twice."""
    return lambda x, size: x + laplace(1 / epsilon, (size, 2))


def people_of(rows: Sequence[tuple[int, str]]) -> int:
    """How many different people there are."""
    return len({person for person, _ in rows})


def every_key(rows: Sequence[tuple[int, str]]) -> dict[str, int]:
    """People by key, each person in one, with noise: and every key that anybody has."""
    counts = Counter(key for _, key in dict(rows).items())
    return {key: Laplace(1, 1).release(count) for key, count in sorted(counts.items())}


def common_keys(rows: Sequence[tuple[int, str]]) -> dict[str, int]:
    """The same, for keys whose noisy number of people reaches a threshold."""
    counts, people = Counter(key for _, key in dict(rows).items()), Measure("people")
    shown, noisy = _RULE.release({(key,): (count,) for key, count in counts.items()}, {people: Laplace(1, 1)})
    return {str(key): count for (key,), count in zip(shown, noisy[people].tolist(), strict=True)}


def mean_or_error(x: Sequence[float]) -> float:
    """Charges, and then finds out that a record is no number."""
    if any(math.isnan(value) for value in x):
        raise ValueError("a record is not a number")
    return float(stats.mean(np.array(x), bounds=(0, 1), epsilon=1))


_RULE = threshold(Laplace(1, 1), Fraction("1e-6"), 1, False)
_ZEROS = np.zeros(100)
_ONE = np.append(np.zeros(99), 1.0)
_SIX = [(i, "abc"[i % 3]) for i in range(6)]
_MIXED = ApproxDP(1, 0.0113)

CASES: tuple[Broken, ...] = (
    Broken(
        "half the scale", "noise for half the sensitivity", PureDP(1), 0.0, 1.0,
        lambda x, size: x + laplace(0.5, size),
        lambda x, size: x + laplace(1.0, size),
    ),
    Broken(
        "floating point", "which floats come out depends on the answer", PureDP(1), 0.0, 1.0,
        textbook_laplace,
        lambda x, size: Laplace(1, 1).release(np.full(size, x)),
    ),
    Broken(
        "local sensitivity", "the noise itself depends on the data", PureDP(1), (0, 0, 0, 1, 1), (0, 0, 0, 0, 1),
        local_median,
        each(lambda x: stats.median(np.array(x, dtype=float), bounds=(0, 1), epsilon=1, method="smooth")),
    ),
    Broken(
        "noisy max", "Lap(1/epsilon) is for records that are added or removed, not replaced", PureDP(1),
        (1, 0, 0, 0), (0, 1, 1, 1),
        noisy_max(1.0),
        noisy_max(2.0),
    ),
    Broken(
        "mixed noise", "normal noise of sqrt(2) sensitivity/epsilon has delta = 0.0396, not 0.0113", _MIXED, 0.0, 1.0,
        lambda x, size: Gaussian(sensitivity=1, epsilon=1, delta=0.0396).release(np.full(size, x)),
        lambda x, size: Gaussian(sensitivity=1, epsilon=1, delta=0.0113).release(np.full(size, x)),
    ),
    Broken(
        "standard deviation", "it moves by width/sqrt(n), not width/n", PureDP(1), _ZEROS, _ONE,
        lambda x, size: Laplace(1 / len(x), 1).release(np.full(size, np.std(x))),
        lambda x, size: Laplace(1 / math.sqrt(len(x)), 1).release(np.full(size, np.std(x))),
    ),
    Broken(
        "bounded Laplace", "cutting the law off costs: at this scale the loss is 1.49", PureDP(1), 0.0, 1.0,
        truncated,
        each(BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).release),
    ),
    Broken(
        "sparse vector, answers shown", "the answer that was compared is shown", PureDP(1),
        (0,) * 8 + (1,), (1,) * 8 + (0,),
        sparse_with_its_answers,
        sparse(1, numeric=True),
    ),
    Broken(
        "sparse vector, small noise", "noise that does not grow with the limit", PureDP(1),
        (0,) * 6 + (1,) * 6, (1,) * 6 + (0,) * 6,
        sparse_with_small_noise,
        sparse(6),
    ),
    Broken(
        "sparse vector, bare answers", "no noise on the answers", PureDP(1), (0, 1), (1, 0),
        sparse_with_a_noisy_threshold_only,
        sparse(2),
    ),
    Broken(
        "sparse vector, no end", "no limit on answers above the threshold", PureDP(1),
        (0,) * 12, (1,) * 6 + (-1,) * 6,
        sparse_without_end,
        sparse(12),
    ),
    Broken(
        "composition by product", "losses add up: 1, not 1/4", PureDP(0.25), 0.0, 1.0,
        twice(0.5),
        twice(0.125),
    ),
    Broken(
        "contributions", "a person with twenty rows counts twenty times", PureDP(1),
        [*_SIX, *((9, "a") for _ in range(20))], _SIX,
        each(lambda rows: Laplace(1, 1).release(len(rows))),
        each(lambda rows: Laplace(1, 1).release(people_of(rows))),
        glue=True,
    ),
    Broken(
        "keys", "a key is shown because one person has it", ApproxDP(1, 1e-6), [*_SIX, (9, "rare")], _SIX,
        each(every_key),
        each(common_keys),
        glue=True,
    ),
    Broken(
        "bounds from the data", "the largest value sets the noise", PureDP(1),
        np.linspace(1, 2, 20), np.append(np.linspace(1, 2, 20)[:-1], 100.0),
        each(lambda x: stats.mean(x, bounds=(0, float(x.max())), epsilon=1)),
        each(lambda x: stats.mean(x, bounds=(0, 100), epsilon=1)),
        glue=True,
    ),
    Broken(
        "NaN", "an error where one record is no number", PureDP(1), [0.5] * 9 + [math.nan], [0.5] * 10,
        each(mean_or_error),
        each(lambda x: stats.mean(np.array(x), bounds=(0, 1), epsilon=1, nan="lower")),
        glue=True,
    ),
    *OUTPUT_CASES,
)  # fmt: skip
"""Every case."""

__all__ = ["CASES", "Broken"]
