"""The known-broken suite: mechanisms that violate their claims, each with a repaired version.

An auditor must refute every broken version and no repaired one. Some come from lecture notes, papers and libraries,
others are common mistakes. Each counterexample has a pair of neighbors on which it fails, and functions ``(data, size)
-> size outputs`` for :func:`dither.audit.measure`. Those in which the data bypass the mechanisms are detected by
:func:`dither.audit.replay` as well.

>>> from dither.audit.blackbox.measure import measure
>>> case = next(case for case in COUNTEREXAMPLES if case.name == "half the scale")
>>> measure(case.broken, case.x, case.x_neighbor, batch=True, claim=case.claim).refuted
True
>>> measure(case.repaired, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=2000).refuted
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
from dither.audit.suite import publishing, streams
from dither.audit.suite.case import Counterexample
from dither.audit.suite.local_counterexamples import LOCAL_COUNTEREXAMPLES
from dither.audit.suite.local_number_counterexamples import NUMBER_COUNTEREXAMPLES
from dither.audit.suite.output_counterexamples import OUTPUT_COUNTEREXAMPLES
from dither.audit.suite.subjects import Draw, repeated_runs, run_session
from dither.guarantees import ApproxDP, PureDP
from dither.mechanisms import BoundedLaplace, Gaussian, Laplace, SparseVector
from dither.randomness import resolve
from dither.tables.compile.statements import Measure
from dither.tables.planning.key_selection import threshold

Floats = NDArray[np.float64]


def laplace(scale: float, shape: Any) -> Floats:
    """Laplace noise of the given scale."""
    size = int(np.prod(shape))
    result: Floats = Laplace(sensitivity=scale, epsilon=1).release(np.zeros(size))
    return result.reshape(shape)


def textbook_laplace(x: float, size: int) -> Floats:
    """``x - sgn(u) ln(1 - 2|u|)`` in floats: the set of possible outputs depends on x (Mironov 2012)."""
    u = (resolve(None).words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53 - 0.5
    result: Floats = x - np.sign(u) * np.log1p(-2 * np.minimum(np.abs(u), 0.5 - 2.0**-54))
    return result


def local_median(x: Sequence[float], size: int) -> Floats:
    """Laplace noise proportional to the local sensitivity, which itself depends on the data."""
    values, middle = sorted(x), len(x) // 2
    local = max(values[middle] - values[middle - 1], values[middle + 1] - values[middle])
    return values[middle] + (laplace(local, size) if local else np.zeros(size))


def noisy_max(scale: float) -> Draw:
    """The index of the largest count after adding Laplace noise."""
    return lambda counts, size: np.argmax(np.asarray(counts) + laplace(scale, (size, len(counts))), axis=1)


def truncated(x: float, size: int) -> Floats:
    """Laplace noise of scale 1, redrawn until the output is within [0, 10]."""
    result = x + laplace(1.0, size)
    while (outside := (result < 0) | (result > 10)).any():
        result[outside] = x + laplace(1.0, int(outside.sum()))
    return result


def above(limit_noise: Floats, noisy: Floats, limit: int) -> NDArray[np.int64]:
    """1 where a noisy answer reaches the noisy threshold, 0 below, -1 once the limit of answers above is used up."""
    result = (noisy >= limit_noise[:, None]).astype(np.int64)
    result[np.cumsum(result, axis=1) - result >= limit] = -1
    return result


def sparse(limit: int, *, numeric: bool = False) -> Draw:
    """The repaired version of all sparse vector counterexamples: one session per run."""
    mechanism = SparseVector(sensitivity=1, epsilon=1, limit=limit, numeric=numeric)
    return lambda x, size: np.array(repeated_runs(partial(run_session, mechanism))(x, size))


def sparse_with_answers_shown(x: Sequence[float], size: int) -> Floats:
    """Releases the noisy answer that was compared, which is an upper bound on the noisy threshold."""
    noisy = np.asarray(x) + laplace(2.0, (size, len(x)))
    outcome = above(laplace(2.0, size), noisy, 1)
    return np.where(outcome == 1, noisy, outcome - 100.0)


def sparse_with_small_noise(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """Noise on the answers that does not grow with the limit on answers above the threshold."""
    return above(laplace(4.0, size), np.asarray(x) + laplace(4 / 3, (size, len(x))), len(x) // 2)


def sparse_without_query_noise(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """No noise on the answers at all."""
    return above(laplace(2.0, size), np.broadcast_to(np.asarray(x, dtype=float), (size, len(x))), len(x))


def sparse_without_limit(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """No limit on the number of answers above the threshold."""
    return above(laplace(2.0, size), np.asarray(x) + laplace(2.0, (size, len(x))), len(x))


def twice(epsilon: float) -> Draw:
    """The same number released twice, with independent noise."""
    return lambda x, size: x + laplace(1 / epsilon, (size, 2))


def count_people(rows: Sequence[tuple[int, str]]) -> int:
    """The number of distinct people."""
    return len({person for person, _ in rows})


def all_keys(rows: Sequence[tuple[int, str]]) -> dict[str, int]:
    """Noisy counts of people by key, one key per person, for every key that occurs."""
    counts = Counter(key for _, key in dict(rows).items())
    return {key: Laplace(1, 1).release(count) for key, count in sorted(counts.items())}


def common_keys(rows: Sequence[tuple[int, str]]) -> dict[str, int]:
    """The same for the keys whose noisy number of people reaches a threshold."""
    counts, people = Counter(key for _, key in dict(rows).items()), Measure("people")
    keys, noisy = _RULE.release({(key,): (count,) for key, count in counts.items()}, {people: Laplace(1, 1)})
    return {str(key): count for (key,), count in zip(keys, noisy[people].tolist(), strict=True)}


def mean_or_error(x: Sequence[float]) -> float:
    """Raises an error if a record is NaN."""
    if any(math.isnan(value) for value in x):
        raise ValueError("a record is not a number")
    return float(stats.mean(np.array(x), bounds=(0, 1), epsilon=1))


_RULE = threshold(Laplace(1, 1), Fraction("1e-6"), 1, False)
_ZEROS = np.zeros(100)
_ONE = np.append(np.zeros(99), 1.0)
_SIX = [(i, "abc"[i % 3]) for i in range(6)]
_MIXED = ApproxDP(1, 0.0113)

COUNTEREXAMPLES: tuple[Counterexample, ...] = (
    Counterexample(
        "half the scale", "noise for half the sensitivity", PureDP(1), 0.0, 1.0,
        lambda x, size: x + laplace(0.5, size),
        lambda x, size: x + laplace(1.0, size),
    ),
    Counterexample(
        "floating point", "the set of possible floats depends on the answer", PureDP(1), 0.0, 1.0,
        textbook_laplace,
        lambda x, size: Laplace(1, 1).release(np.full(size, x)),
    ),
    Counterexample(
        "local sensitivity", "the noise itself depends on the data", PureDP(1), (0, 0, 0, 1, 1), (0, 0, 0, 0, 1),
        local_median,
        repeated_runs(lambda x: stats.median(np.array(x, dtype=float), bounds=(0, 1), epsilon=1, method="smooth")),
    ),
    Counterexample(
        "noisy max", "Lap(1/epsilon) is for records that are added or removed, not replaced", PureDP(1),
        (1, 0, 0, 0), (0, 1, 1, 1),
        noisy_max(1.0),
        noisy_max(2.0),
    ),
    Counterexample(
        "mixed noise", "normal noise of sqrt(2) sensitivity/epsilon has delta = 0.0396, not 0.0113", _MIXED, 0.0, 1.0,
        lambda x, size: Gaussian(sensitivity=1, epsilon=1, delta=0.0396).release(np.full(size, x)),
        lambda x, size: Gaussian(sensitivity=1, epsilon=1, delta=0.0113).release(np.full(size, x)),
    ),
    Counterexample(
        "standard deviation", "it moves by width/sqrt(n), not width/n", PureDP(1), _ZEROS, _ONE,
        lambda x, size: Laplace(1 / len(x), 1).release(np.full(size, np.std(x))),
        lambda x, size: Laplace(1 / math.sqrt(len(x)), 1).release(np.full(size, np.std(x))),
    ),
    Counterexample(
        "bounded Laplace", "truncation costs privacy: at this scale the loss is 1.49", PureDP(1), 0.0, 1.0,
        truncated,
        repeated_runs(BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).release),
    ),
    Counterexample(
        "sparse vector, answers shown", "the answer that was compared is shown", PureDP(1),
        (0,) * 8 + (1,), (1,) * 8 + (0,),
        sparse_with_answers_shown,
        sparse(1, numeric=True),
    ),
    Counterexample(
        "sparse vector, small noise", "noise that does not grow with the limit", PureDP(1),
        (0,) * 6 + (1,) * 6, (1,) * 6 + (0,) * 6,
        sparse_with_small_noise,
        sparse(6),
    ),
    Counterexample(
        "sparse vector, bare answers", "no noise on the answers", PureDP(1), (0, 1), (1, 0),
        sparse_without_query_noise,
        sparse(2),
    ),
    Counterexample(
        "sparse vector, no end", "no limit on answers above the threshold", PureDP(1),
        (0,) * 12, (1,) * 6 + (-1,) * 6,
        sparse_without_limit,
        sparse(12),
    ),
    Counterexample(
        "composition by product", "epsilons add up: 1, not 1/4", PureDP(0.25), 0.0, 1.0,
        twice(0.5),
        twice(0.125),
    ),
    Counterexample(
        "contributions", "a person with twenty rows counts twenty times", PureDP(1),
        [*_SIX, *((9, "a") for _ in range(20))], _SIX,
        repeated_runs(lambda rows: Laplace(1, 1).release(len(rows))),
        repeated_runs(lambda rows: Laplace(1, 1).release(count_people(rows))),
        caught_by_replay=True,
    ),
    Counterexample(
        "keys", "a key is released because one person has it", ApproxDP(1, 1e-6), [*_SIX, (9, "rare")], _SIX,
        repeated_runs(all_keys),
        repeated_runs(common_keys),
        caught_by_replay=True,
    ),
    Counterexample(
        "bounds from the data", "the largest value sets the noise", PureDP(1),
        np.linspace(1, 2, 20), np.append(np.linspace(1, 2, 20)[:-1], 100.0),
        repeated_runs(lambda x: stats.mean(x, bounds=(0, float(x.max())), epsilon=1)),
        repeated_runs(lambda x: stats.mean(x, bounds=(0, 100), epsilon=1)),
        caught_by_replay=True,
    ),
    Counterexample(
        "NaN", "an error if one record is NaN", PureDP(1), [0.5] * 9 + [math.nan], [0.5] * 10,
        repeated_runs(mean_or_error),
        repeated_runs(lambda x: stats.mean(np.array(x), bounds=(0, 1), epsilon=1, nan="lower")),
        caught_by_replay=True,
    ),
    Counterexample(
        "publishing", "noise for people of one row, though three rows of a person count", publishing.CLAIM,
        *publishing.people(),
        publishing.bounded_for_one_row,
        publishing.noisy_residuals,
        caught_by_replay=True,
    ),
    *LOCAL_COUNTEREXAMPLES,
    *NUMBER_COUNTEREXAMPLES,
    Counterexample(
        "participations", "noise for people who are in one step of a series, though a person is in two",
        streams.CLAIM, streams.HISTORY, streams.NEIGHBOR,
        streams.for_one_participation,
        streams.running_sums,
    ),
    Counterexample(
        "noise redrawn", "a restart draws the noise of a series anew, which is paid for once",
        streams.CLAIM, streams.HISTORY, streams.NEIGHBOR,
        streams.redrawn,
        streams.running_sums,
    ),
    *OUTPUT_COUNTEREXAMPLES,
)  # fmt: skip
"""All counterexamples, including those of :mod:`dither.audit.suite.output_counterexamples` and of
:mod:`dither.audit.suite.local_counterexamples` and :mod:`dither.audit.suite.local_number_counterexamples`."""
