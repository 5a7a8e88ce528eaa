"""The Kolmogorov-Smirnov mechanism on grids of several dimensions, against enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dither import InvalidArgument, PureDP
from dither.density import ks, release
from dither.randomness import SeededSource
from support import FALSE_ALARM, each, refuses, surprise

mp.mp.dps = 40
Counts = tuple[int, ...]


@cache
def placements(records: int, cells: int) -> list[Counts]:
    """All counts of the cells."""
    cuts = itertools.combinations(range(records + cells - 1), cells - 1)
    return [tuple(b - a - 1 for a, b in itertools.pairwise((-1, *cut, records + cells - 1))) for cut in cuts]


def summed(counts: Counts, shape: tuple[int, ...]) -> Any:
    result = np.array(counts, dtype=np.int64).reshape(shape)
    for axis in range(len(shape)):
        result = np.cumsum(result, axis=axis)
    return result


@cache
def true_score(x: Counts, z: Counts, shape: tuple[int, ...]) -> int:
    n, k = sum(x), sum(z)
    pairs = zip(summed(x, shape).flat, summed(z, shape).flat, strict=True)
    return math.ceil(n * max(abs(Fraction(int(a), n) - Fraction(int(b), k)) for a, b in pairs))


def enumerated(x: Counts, k: int, shape: tuple[int, ...], rate: float) -> dict[Counts, Any]:
    weights = {
        z: mp.exp(-mp.mpf(rate) * true_score(x, z, shape)) / math.prod(map(math.factorial, z))
        for z in placements(k, len(x))
    }
    total = mp.fsum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def rate_of(problem: ks.Problem, epsilon: float) -> tuple[float, float]:
    """The rate that a release really uses, and what it sets aside."""
    spare = ks.set_aside(problem, Fraction(epsilon))
    return float(Fraction(epsilon) - Fraction(spare)) / 2 * (1 - 2.0**-50), spare


def sampled(x: Counts, k: int, shape: tuple[int, ...], rate: float) -> dict[Counts, Any]:
    """The law the code samples, from the floats of the blocks and the recursion, with no randomness."""
    problem = ks.Problem(summed(x, shape), k)
    weights = problem.log_weights()
    law: dict[Counts, Any] = {z: mp.mpf(0) for z in placements(k, len(x))}
    for block in ks.blocks(problem, rate, weights):
        mass = mp.exp(mp.mpf(block.upper))
        inner: Any = block.inner
        for z in law:
            path = summed(z, shape)
            late = mp.exp(-mp.mpf(rate) * max(0, problem.score(path) - block.start - 1))
            if inner is None:
                multinomial = mp.mpf(math.factorial(k)) / math.prod(map(math.factorial, z))
                law[z] += mass * multinomial / mp.mpf(len(x)) ** k * late
                continue
            ends = mp.exp(-mp.mpf(rate) * (inner.threshold - block.start))
            law[z] += (
                mass * drawn(problem, inner, path.reshape(shape[0], -1), weights) * max(0, (late - ends) / (1 - ends))
            )
    total = mp.fsum(law.values())
    return {z: weight / total for z, weight in law.items()}


def drawn(problem: ks.Problem, inner: ks.Forward, path: Any, weights: Any) -> Any:
    """The probability of one path, drawn backwards."""
    result = mp.mpf(1)
    for row in range(len(path) - 1, -1, -1):
        logs, low = inner.logs[row], inner.band[row][0]
        scores = logs.ravel() if row == len(path) - 1 else problem.scores(inner, row, path[row + 1], weights)
        at = path[row] - low
        if np.any(at < 0) or np.any(at >= logs.shape):
            return mp.mpf(0)
        terms = [mp.exp(mp.mpf(float(score))) for score in scores]
        result *= terms[np.ravel_multi_index(tuple(at), logs.shape)] / mp.fsum(terms)
    return result


CASES = [
    ((1, 0, 1, 1), (2, 2), 3),
    ((0, 0, 0, 4), (2, 2), 2),
    ((5, 0, 0, 5), (2, 2), 4),
    ((1, 2, 0, 0, 3, 1), (3, 2), 3),
    ((2, 2, 1, 0, 0, 1), (2, 3), 2),
    ((1, 0, 0, 2, 0, 1, 1, 0), (2, 2, 2), 2),
]


@each(("x", "shape", "k"), CASES)
@each("epsilon", [0.1, 1.0, 8.0])
def test_the_law_that_is_sampled_is_the_enumerated_one(x: Any, shape: Any, k: int, epsilon: float) -> None:
    rate, spare = rate_of(ks.Problem(summed(x, shape), k), epsilon)
    exact, real_law = enumerated(x, k, shape, rate), sampled(x, k, shape, rate)
    for z, probability in exact.items():
        assert abs(mp.log(real_law[z] / probability)) <= mp.mpf(spare) / 2


@each(("shape", "n", "k"), [((2, 2), 2, 2), ((2, 2), 3, 1), ((3, 2), 1, 2)])
def test_the_worst_loss_over_all_neighbors(shape: Any, n: int, k: int) -> None:
    cells = math.prod(shape)
    laws = {x: sampled(x, k, shape, rate_of(ks.Problem(summed(x, shape), k), 1.0)[0]) for x in placements(n, cells)}
    worst = 0.0
    for x, y in itertools.permutations(laws, 2):
        if sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 2:
            worst = max(worst, max(abs(float(mp.log(laws[x][z] / laws[y][z]))) for z in laws[x]))
    assert 0.3 < worst <= 1


@each(("x", "shape", "k"), CASES)
def test_the_recursion_counts_placements(x: Any, shape: Any, k: int) -> None:
    problem, cells = ks.Problem(summed(x, shape), k), len(x)
    weights = problem.log_weights()
    unit = mp.power(mp.mpf(k) / cells, k) * mp.exp(-k)
    for threshold in range(sum(x) + 1):
        inside = [z for z in placements(k, cells) if true_score(x, z, shape) <= threshold]
        total = problem.forward(threshold, weights).total
        if inside:
            exact = unit * mp.fsum(mp.mpf(1) / math.prod(map(math.factorial, z)) for z in inside)
            assert abs(mp.exp(total) / exact - 1) < mp.mpf(1e-13)
        else:
            assert total == -math.inf


@each(("shape", "n", "k"), [((6, 2), 50, 12), ((5, 3), 300, 10), ((3, 2, 2), 40, 8)])
def test_rounding_bounds_the_float_recursion(shape: Any, n: int, k: int) -> None:
    """The same recursion in integers, over counts of the columns: 1/c! is k!/c! over k!, so that nothing is rounded."""
    rng = np.random.default_rng(n)
    x = np.bincount(rng.integers(0, math.prod(shape), n), minlength=math.prod(shape))
    problem = ks.Problem(summed(tuple(x.tolist()), shape), k)
    weights = problem.log_weights()
    whole = [math.factorial(k) // math.factorial(c) for c in range(k + 1)]
    size = float(np.abs(weights).max()) + k * (math.log(problem.cells) + 3) + 64
    bound = ks.rounding(problem, k + 1, size)
    width = math.prod(shape[1:])
    for threshold in (n // (2 * k) + 1, n // 5, n):
        state = {(0,) * width: 1}
        for low, high in problem.band(threshold):
            for column in range(width):
                after: dict[Counts, int] = {}
                for counts, weight in state.items():
                    for c in range(k - sum(counts) + 1):
                        moved = (*counts[:column], counts[column] + c, *counts[column + 1 :])
                        after[moved] = after.get(moved, 0) + weight * whole[c]
                state = after
            state = {
                counts: weight
                for counts, weight in state.items()
                if np.all(low <= (at := summed(counts, shape[1:]).ravel())) and np.all(at <= high)
            }
        total = problem.forward(threshold, weights).total
        if not state:
            assert total == -math.inf
            continue
        unit = k * mp.log(mp.mpf(k) / problem.cells) - k - problem.cells * mp.log(mp.mpf(math.factorial(k)))
        assert abs(mp.mpf(total) - mp.log(mp.mpf(sum(state.values()))) - unit) <= mp.mpf(bound)


@pytest.mark.parametrize(("x", "shape", "k"), [CASES[0], CASES[3]])
def test_draws_follow_the_enumerated_law(x: Any, shape: Any, k: int) -> None:
    problem, source = ks.Problem(summed(x, shape), k), SeededSource(5)
    times, seen = 2500, dict.fromkeys(placements(k, len(x)), 0)
    for _ in range(times):
        path, _ = ks.release(problem, Fraction(2), source)
        for axis in range(len(shape)):
            path = np.diff(path, prepend=0, axis=axis)
        seen[tuple(path.ravel().tolist())] += 1

    def fit(epsilon: float) -> float:
        law = enumerated(x, k, shape, epsilon / 2)
        return surprise(np.array([seen[z] for z in law]), np.array([float(law[z]) for z in law]))

    assert fit(2.0) > FALSE_ALARM
    assert fit(1.0) < FALSE_ALARM
    assert fit(4.0) < FALSE_ALARM


@each("columns", [2, 3])
def test_a_release_of_several_columns(columns: int) -> None:
    rng = np.random.default_rng(columns)
    x = np.column_stack([rng.beta(2, 5, 500), *rng.uniform(size=(columns - 1, 500))])
    bounds = [(0, 1)] * columns
    result = release(x, bounds, 1, "ks", source=SeededSource(1))
    assert result.guarantee == PureDP(1)
    assert result.weights.sum() == pytest.approx(1)
    narrow = (2,) * (columns - 1)
    first, last = (
        release(x[:, order], bounds, 50, "ks", bins=bins, points=10, source=SeededSource(2)).weights
        for order, bins in ((slice(None), (5, *narrow)), (slice(None, None, -1), (*narrow, 5)))
    )
    shares = np.histogramdd(x, [np.linspace(0, 1, 6), *[[0, 0.5, 1]] * (columns - 1)])[0] / 500
    assert np.abs(first - shares).max() < 0.25
    assert np.abs(last.T - shares).max() < 0.25  # whichever axis is the longest


def test_grids_with_too_many_profiles_are_refused_whatever_the_data() -> None:
    for data in (np.zeros((9, 2)), np.random.default_rng(1).uniform(size=(9, 2))):
        with refuses(InvalidArgument, "at most 21 points on slices of 4 cells"):
            release(data, [(0, 1), (0, 1)], 1, "ks", bins=(8, 4), points=22)
    for bins in ((40, 40), (6, 40)):
        with refuses(InvalidArgument, "bins", "at most 5 cells in a slice", "method='histogram'"):
            release(data, [(0, 1), (0, 1)], 1, "ks", bins=bins)
    assert ks.most_points(4) == 21
    assert (ks.most_points(3) + 1) ** 3 <= ks.MAX_STATES < (ks.most_points(3) + 2) ** 3
