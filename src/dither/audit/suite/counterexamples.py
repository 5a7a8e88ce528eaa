"""The known-broken suite: mechanisms that violate their claims, each with a repaired version.

An auditor must refute every broken version and no repaired one. Some come from lecture notes, papers and libraries,
others are common mistakes. Each counterexample has a pair of neighbors on which it fails, and functions ``(data, size)
-> size outputs`` for :func:`dither.audit.measure`. Those in which the data bypass the mechanisms are detected by
:func:`dither.audit.replay` as well. In three groups of them

* clients of the local model report more than they claim. The data set is one person's value, and an output is the
  report: its bits, or the row or hash function and what is reported of it. The repaired version is the protocol of
  :mod:`dither.local`;
* publications and series over time count a person less often than they should
  (:mod:`dither.audit.suite.small_releases`);
* the noise is right and another part of the output reveals the data: a label, a type, a digit, a warning, or several
  parts jointly. The data set is 0 or 1, all numbers have noise for a hundredth of the claim, and one part of the output
  is a function of the data. The repaired version returns the same output without that dependence.

>>> from dither.audit.blackbox.measure import measure
>>> case = counterexample("half the scale")
>>> measure(case.broken, case.x, case.x_neighbor, batch=True, claim=case.claim).refuted
True
>>> measure(case.repaired, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=2000).refuted
False
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import stats
from dither.audit.suite import small_releases as small
from dither.audit.suite.subjects import Draw, repeated_runs, run_session
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.local import (
    CountMeanSketch,
    HadamardCountMeanSketch,
    LocalHashing,
    LocalProtocol,
    RandomizedResponse,
    UnaryEncoding,
)
from dither.local.bases import unpack_indices
from dither.local.finite_fields import field_tables
from dither.mechanisms import BoundedLaplace, Gaussian, Laplace, SparseVector
from dither.randomness import SYSTEM, SeededSource, resolve, uniform_integers
from dither.tables.compile.statements import Measure
from dither.tables.planning.group_keys import threshold
from dither.tables.planning.top_keys import TopQuestion


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A mechanism that violates its claim on the given pair of neighbors, and a repaired version that satisfies it.

    A counterexample of the suite is equal only to itself and is pickled by its name.
    """

    name: str
    reason: str
    """Why the claim is violated."""
    claim: Guarantee
    x: Any = field(repr=False)
    x_neighbor: Any = field(repr=False)
    broken: Draw = field(repr=False)
    repaired: Draw = field(repr=False)
    caught_by_replay: bool = False
    """Whether the data bypass the mechanisms, so that :func:`dither.audit.replay` detects the violation too."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (counterexample, (self.name,)) if self in COUNTEREXAMPLES else super().__reduce__()


def counterexample(name: str) -> Counterexample:
    """Return the counterexample of that name in the known-broken suite."""
    return next(case for case in COUNTEREXAMPLES if case.name == name)


Outputs = NDArray[np.int64]

_CATEGORIES = 8
_SEEDS = 256
_SYMMETRIC = UnaryEncoding(_CATEGORIES, 1, optimized=False)
_HASHING = LocalHashing(_CATEGORIES, 1)
_SKETCH = CountMeanSketch(1, rows=4, width=16)
_RESPONSE = RandomizedResponse(2, 1)


def repeated_reports(protocol: LocalProtocol[Any], x: Any, size: int) -> Outputs:
    """Return ``size`` reports of one person as rows of numbers: bits one by one, other records as one number."""
    records = protocol.privatize([x] * size).records
    if isinstance(protocol, UnaryEncoding):
        return np.unpackbits(records, axis=1, bitorder="little").astype(np.int64)
    if isinstance(protocol, CountMeanSketch):
        bits = np.unpackbits(records[:, 1:], axis=1, bitorder="little")
        return np.column_stack([records[:, 0], bits]).astype(np.int64)
    if isinstance(protocol, LocalHashing):
        reports = unpack_indices(records, protocol.report_count).astype(np.int64)
        return np.column_stack(np.divmod(reports, protocol.hash_range))
    if isinstance(protocol, HadamardCountMeanSketch):
        reports = unpack_indices(records, protocol.report_count).astype(np.int64)
        return np.column_stack([reports >> 1, reports & 1])
    return records[:, 0].astype(np.int64)


def wrong_flips(x: int, size: int) -> Outputs:
    """Return the reports of a symmetric unary client that flips with probability 1 / (e^epsilon + 1).

    Right is 1 / (e^(epsilon/2) + 1).
    """
    return repeated_reports(UnaryEncoding(_CATEGORIES, 2, optimized=False), x, size)


def chosen_hash(x: int, size: int) -> Outputs:
    """Return the reports of a client that draws its hash function again if its category and the next have one hash.

    That makes the function depend on the category, which local hashing forbids.
    """
    g = _HASHING.hash_range
    add, multiply = field_tables(g)
    reports = repeated_reports(_HASHING, x, size)

    def hashed(category: int, functions: Outputs) -> Outputs:
        """Return the hash of a category under each function: the scalar product of their digits in base g, over the
        field with g elements."""
        result = np.zeros_like(functions)
        for position in range(_HASHING.digits):
            digit = category // g**position % g
            result = add[result, multiply[functions // g**position % g, digit]]
        return result

    while (bad := np.flatnonzero(hashed(x, reports[:, 0]) == hashed(x + 1, reports[:, 0]))).size:
        reports[bad] = repeated_reports(_HASHING, x, bad.size)
    return reports


def fixed_row(x: int, size: int) -> Outputs:
    """Return the reports of a sketch client that takes the row from its value instead of drawing it."""
    rows = np.full(size, x % _SKETCH.rows)
    codes = _SKETCH.encode([x] * size)
    bits = _SKETCH.encoding.draw(_SKETCH.columns(codes, rows), resolve(None))
    return np.column_stack([rows, np.unpackbits(bits, axis=1, bitorder="little")]).astype(np.int64)


@lru_cache(maxsize=2)
def _reports_by_seed(x: int) -> Outputs:
    """Return the report of one value under each of the 256 seeds."""
    return np.array([_RESPONSE.privatize([x], source=SeededSource(seed)).records[0, 0] for seed in range(_SEEDS)])


def guessed_seed(x: int, size: int) -> Outputs:
    """Return the reports of a client whose noise comes from an 8-bit seed, and the seed, which it also sends."""
    seeds = uniform_integers(_SEEDS, size, resolve(None)).astype(np.int64)
    return np.column_stack([seeds, _reports_by_seed(x)[seeds]])


def secure_response(x: int, size: int) -> Outputs:
    """Return reports with secure noise, each with an independent 8-bit number: the repaired :func:`guessed_seed`."""
    beside = uniform_integers(_SEEDS, size, resolve(None)).astype(np.int64)
    return np.column_stack([beside, repeated_reports(_RESPONSE, x, size)])


_NOISE = Laplace(sensitivity=1, epsilon=0.01)
_RARE = 1 / 300
_KEYS = ("north", "east", "south", "west")


@dataclass(frozen=True)
class TwoFields:
    """An output with two fields."""

    first: float
    second: float


def noisy(x: int) -> float:
    """Return a real number with noise."""
    return float(_NOISE.release(float(x)))


def count(x: int) -> int:
    """Return an integer with noise."""
    return int(_NOISE.release(x))


def shifted(x: int) -> tuple[float, float]:
    """Return two numbers with one draw of noise, so that their difference is exact."""
    first = noisy(0)
    return first, first + x


def even(x: int) -> dict[str, int]:
    """Return four noisy counts whose sum is even on one data set and odd on the other."""
    counts = {key: count(0) for key in _KEYS}
    counts["west"] += (sum(counts.values()) + x) % 2
    return counts


def with_bit(x: int, position: int) -> float:
    """Return a number with noise, one bit of which is replaced by the data."""
    word = np.array([noisy(0)]).view(np.int64)
    return float(((word & ~np.int64(1 << position)) | np.int64(x << position)).view(np.float64)[0])


def occasionally_constant(x: int, size: int) -> NDArray[np.float64]:
    """Return noisy numbers; on one data set, one in three hundred is replaced by a constant."""
    result = np.asarray(_NOISE.release(np.zeros(size)), dtype=np.float64)
    chosen = (SYSTEM.words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53 < _RARE
    return np.where(chosen, 42.0, result) if x else result


def long_text(x: int) -> str:
    """Return a long text of which one character, far from both ends, depends on the data."""
    return f"{noisy(0)} {'.' * 200}{'ab'[x]} {noisy(0)}"


def in_memory_order(x: int) -> NDArray[np.float64]:
    """Return a matrix in row-major order on one data set and in column-major order on the other."""
    matrix = np.full((2, 2), noisy(0))
    return np.asfortranarray(matrix) if x else matrix


def with_warning(x: int) -> float:
    """Return a number with noise, with a warning on one data set."""
    if x:
        warnings.warn("a value is missing", stacklevel=2)
    return noisy(0)


def _case(name: str, reason: str, broken: Callable[[int], Any]) -> Counterexample:
    """Return a counterexample whose output depends on the data 0 or 1 besides the noise; repaired, it always
    takes 0.
    """
    return Counterexample(name, reason, PureDP(1), 0, 1, repeated_runs(broken), repeated_runs(lambda _: broken(0)))


def _cases() -> Iterator[Counterexample]:
    """Yield the counterexamples in which another part of the output than the noisy number reveals the data.

    They need no other package than NumPy, except for the last ones, which are made only if pandas is installed.
    """
    yield _case(
        "difference in a dict", "two keys have the same noise", lambda x: dict(zip("ab", shifted(x), strict=True))
    )
    yield _case("difference in an object", "two fields have the same noise", lambda x: TwoFields(*shifted(x)))
    yield _case("difference in nested lists", "two numbers have the same noise", lambda x: [[v] for v in shifted(x)])
    yield _case("parity of four keys", "every count has noise, but not the parity of their sum", even)
    yield Counterexample(
        "a value now and then", "one run in three hundred shows which data set it was", PureDP(1), 0, 1,
        occasionally_constant, lambda _, size: occasionally_constant(0, size),
    )  # fmt: skip
    yield _case("width of a float", "a 32-bit float for one data set", lambda x: (np.float64, np.float32)[x](count(0)))
    yield _case("letter of a long text", "one letter among hundreds", long_text)
    yield _case("long integer", "noise in steps of two on an integer of 71 bits", lambda x: 2**70 + 2 * count(0) + x)
    yield _case(
        "digit of a decimal", "a digit that no float holds", lambda x: Decimal(count(0)) + Decimal(x).scaleb(-20)
    )
    yield _case("bit of a mantissa", "bit 21 of the float depends on the data", lambda x: with_bit(x, 21))
    yield _case("residue", "noise in steps of seven", lambda x: 7 * count(0) + x)
    yield _case("memory view", "the content of a memory view", lambda x: memoryview(b"ab"[x : x + 1]))
    yield _case("order in memory", "columns first", in_memory_order)
    yield _case("warning", "a warning where a value is missing", with_warning)
    if find_spec("pandas") is not None:
        yield from _frames()


def _frames() -> Iterator[Counterexample]:
    """Yield the counterexamples in which an index, a name or a type of pandas reveals the data."""
    import pandas as pd

    def names(x: int) -> list[str]:
        """Return an index of two people, the second of whom depends on the data."""
        return ["ann", ("bob", "cal")[x]]

    yield _case("index of a series", "a person's key", lambda x: pd.Series([noisy(0), noisy(0)], index=names(x)))
    yield _case("index of a frame", "a person's key", lambda x: pd.DataFrame({"n": [count(0)] * 2}, index=names(x)))
    yield _case("difference in a frame", "two rows have the same noise", lambda x: pd.DataFrame({"n": shifted(x)}))
    yield _case("name of a series", "a name from the data", lambda x: pd.Series([noisy(0)], name="nm"[x]))
    yield _case(
        "type of a series",
        "Int64 where a value is missing",
        lambda x: pd.Series([count(0)], dtype=("int64", "Int64")[x]),
    )


OUTPUT_COUNTEREXAMPLES: tuple[Counterexample, ...] = tuple(_cases())
"""All counterexamples of this module; those with frames only if pandas is installed."""


Floats = NDArray[np.float64]


def laplace(scale: float, shape: Any) -> Floats:
    """Draw Laplace noise of the given scale."""
    size = int(np.prod(shape))
    result: Floats = Laplace(sensitivity=scale, epsilon=1).release(np.zeros(size))
    return result.reshape(shape)


def textbook_laplace(x: float, size: int) -> Floats:
    """Return ``x - sgn(u) ln(1 - 2|u|)`` in floats: the set of possible outputs depends on x (Mironov 2012)."""
    u = (resolve(None).words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53 - 0.5
    result: Floats = x - np.sign(u) * np.log1p(-2 * np.minimum(np.abs(u), 0.5 - 2.0**-54))
    return result


def local_median(x: Sequence[float], size: int) -> Floats:
    """Return the median with Laplace noise proportional to its local sensitivity, which itself depends on the data."""
    values, middle = sorted(x), len(x) // 2
    local = max(values[middle] - values[middle - 1], values[middle + 1] - values[middle])
    return values[middle] + (laplace(local, size) if local else np.zeros(size))


def noisy_max(scale: float) -> Draw:
    """Return the index of the largest count after adding Laplace noise."""
    return lambda counts, size: np.argmax(np.asarray(counts) + laplace(scale, (size, len(counts))), axis=1)


def truncated(x: float, size: int) -> Floats:
    """Return x with Laplace noise of scale 1, redrawn until the output is within [0, 10]."""
    result = x + laplace(1.0, size)
    while (outside := (result < 0) | (result > 10)).any():
        result[outside] = x + laplace(1.0, int(outside.sum()))
    return result


def above(limit_noise: Floats, noisy: Floats, limit: int) -> NDArray[np.int64]:
    """Return 1 where a noisy answer reaches the noisy threshold, 0 below, and -1 once the limit of answers above is
    used up."""
    result = (noisy >= limit_noise[:, None]).astype(np.int64)
    result[np.cumsum(result, axis=1) - result >= limit] = -1
    return result


def sparse(limit: int, *, numeric: bool = False) -> Draw:
    """Return the repaired version of all sparse vector counterexamples: one session per run."""
    mechanism = SparseVector(sensitivity=1, epsilon=1, limit=limit, numeric=numeric)
    return lambda x, size: np.array(repeated_runs(partial(run_session, mechanism))(x, size))


def sparse_with_answers_shown(x: Sequence[float], size: int) -> Floats:
    """Release the noisy answer that was compared, which is an upper bound on the noisy threshold."""
    noisy = np.asarray(x) + laplace(2.0, (size, len(x)))
    outcome = above(laplace(2.0, size), noisy, 1)
    return np.where(outcome == 1, noisy, outcome - 100.0)


def sparse_with_small_noise(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """Compare answers under noise that does not grow with the limit on answers above the threshold."""
    return above(laplace(4.0, size), np.asarray(x) + laplace(4 / 3, (size, len(x))), len(x) // 2)


def sparse_without_query_noise(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """Compare answers without noise with a noisy threshold."""
    return above(laplace(2.0, size), np.broadcast_to(np.asarray(x, dtype=float), (size, len(x))), len(x))


def sparse_without_limit(x: Sequence[float], size: int) -> NDArray[np.int64]:
    """Compare noisy answers without a limit on those above the threshold."""
    return above(laplace(2.0, size), np.asarray(x) + laplace(2.0, (size, len(x))), len(x))


def twice(epsilon: float) -> Draw:
    """Return a function that releases one number twice, with independent noise."""
    return lambda x, size: x + laplace(1 / epsilon, (size, 2))


def count_people(rows: Sequence[tuple[int, str]]) -> int:
    """Return the number of distinct people."""
    return len({person for person, _ in rows})


def all_keys(rows: Sequence[tuple[int, str]]) -> dict[str, int]:
    """Return noisy counts of people by key, one key per person, for every key that occurs."""
    counts = Counter(key for _, key in dict(rows).items())
    return {key: Laplace(1, 1).release(count) for key, count in sorted(counts.items())}


def common_keys(rows: Sequence[tuple[int, str]]) -> dict[str, int]:
    """Return noisy counts of people for the keys whose noisy count reaches a threshold: the repaired
    :func:`all_keys`.
    """
    counts, people = Counter(key for _, key in dict(rows).items()), Measure("people")
    keys, noisy = _RULE.release({(key,): (count,) for key, count in counts.items()}, {people: Laplace(1, 1)})
    return {str(key): count for (key,), count in zip(keys, noisy[people].tolist(), strict=True)}


def largest_keys(rows: Sequence[tuple[int, str]]) -> list[str]:
    """Return the two keys with the largest noisy weights, one per person, divided among the person's rows."""
    weights = _weights(rows)
    noisy = {key: _TOP.noise.release(weight) for key, weight in weights.items()}
    return sorted(noisy, key=lambda key: -noisy[key])[:2]


def large_keys(rows: Sequence[tuple[int, str]]) -> list[str]:
    """Return the largest keys from a threshold on: the repaired :func:`largest_keys`."""
    return [str(key) for (key,) in _TOP.release({(key,): weight for key, weight in _weights(rows).items()})]


def _weights(rows: Sequence[tuple[int, str]]) -> dict[str, int]:
    """Return the weight of each key: the sum over its rows of ``2^bits / (rows of the person)``, rounded down.

    ``rows`` are pairs of a person and a key. A person's weights add up to at most ``2^bits`` (that of ``_TOP``), the
    sensitivity.
    """
    rows_of, result = Counter(person for person, _ in rows), Counter[str]()
    for person, key in rows:
        result[key] += (1 << _TOP.bits) // rows_of[person]
    return dict(sorted(result.items()))


def mean_or_error(x: Sequence[float]) -> float:
    """Return a noisy mean, or raise an error if a record is NaN."""
    if any(math.isnan(value) for value in x):
        raise ValueError("a record is not a number")
    return float(stats.mean(np.array(x), bounds=(0, 1), epsilon=1))


_RULE = threshold(Laplace(1, 1), Fraction("1e-6"), 1, False)
_TOP = TopQuestion((None,), 2, False, True, 1, "laplace").at(Fraction(1), Fraction("1e-6"))
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
        "top keys", "the largest keys are shown, whoever has them", ApproxDP(1, 1e-6),
        [*_SIX[:1], (9, "rare")], _SIX[:1],
        repeated_runs(largest_keys),
        repeated_runs(large_keys),
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
        "publishing", "noise for people of one row, though three rows of a person count", small.PUBLISHING_CLAIM,
        *small.people(),
        small.bounded_for_one_row,
        small.noisy_residuals,
        caught_by_replay=True,
    ),
    Counterexample(
        "unary client with a wrong q", "two bits differ, so each may cost half of epsilon", PureDP(1), 0, 1,
        wrong_flips,
        lambda x, size: repeated_reports(_SYMMETRIC, x, size),
    ),
    Counterexample(
        "hash chosen by neighboring values", "which hash functions are possible depends on the value", PureDP(1), 0, 3,
        chosen_hash,
        lambda x, size: repeated_reports(_HASHING, x, size),
    ),
    Counterexample(
        "sketch with a fixed row", "the row is a function of the value", PureDP(1), 0, 1,
        fixed_row,
        lambda x, size: repeated_reports(_SKETCH, x, size),
    ),
    Counterexample(
        "noise from a small seed", "who knows the seed can compute the report of every value", PureDP(1), 0, 1,
        guessed_seed,
        secure_response,
    ),
    Counterexample(
        "local mean of two kinds", "which kind of report is sent depends on the number", small.LOCAL_CLAIM, 0.0, 0.5,
        small.mean_of_two_kinds,
        small.mean_reports,
    ),
    Counterexample(
        "local window cut off", "a bin at the edge has fewer reports in its window", small.LOCAL_CLAIM, 0.0, 0.5,
        small.window_cut_off,
        small.distribution_reports,
    ),
    Counterexample(
        "local reports of every item", "how many there are depends on the set", small.LOCAL_CLAIM, {0, 1, 2}, set(),
        small.every_item,
        small.set_reports,
    ),
    Counterexample(
        "local words in every round", "reports of one person compose", small.LOCAL_CLAIM, "aaa", "zzz",
        small.asked_in_every_round,
        small.word_reports,
    ),
    Counterexample(
        "local budget reset every day", "five days cost five times as much", small.LOCAL_CLAIM, 0, 1,
        small.reset_every_day,
        small.remembered_reports,
    ),
    Counterexample(
        "participations", "noise for people who are in one step of a series, though a person is in two",
        small.SERIES_CLAIM, small.HISTORY, small.NEIGHBOR,
        small.for_one_participation,
        small.running_sums,
    ),
    Counterexample(
        "noise redrawn", "a restart draws the noise of a series anew, which is paid for once",
        small.SERIES_CLAIM, small.HISTORY, small.NEIGHBOR,
        small.redrawn,
        small.running_sums,
    ),
    *OUTPUT_COUNTEREXAMPLES,
)  # fmt: skip
