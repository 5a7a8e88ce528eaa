from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dither import DitherError
from dither.density import ks
from dither.randomness import SeededSource
from support import FALSE_ALARM, each, refuses, surprise

mp.mp.dps = 40


def paths(cells: int, points: int) -> list[tuple[int, ...]]:
    """All Z_1 <= ... <= Z_V = k."""
    return [(*p, points) for p in itertools.combinations_with_replacement(range(points + 1), cells - 1)]


def tables(records: int, cells: int) -> list[tuple[int, ...]]:
    return [(*p, records) for p in itertools.combinations_with_replacement(range(records + 1), cells - 1)]


def neighbors(x: tuple[int, ...]) -> set[tuple[int, ...]]:
    """One record moves from cell a to cell b."""
    counts, result = np.diff(x, prepend=0).tolist(), set()
    for a, b in itertools.permutations(range(len(x)), 2):
        if counts[a] > 0:
            moved = list(counts)
            moved[a] -= 1
            moved[b] += 1
            result.add(tuple(itertools.accumulate(moved)))
    return result


@cache
def true_score(x: tuple[int, ...], z: tuple[int, ...]) -> int:
    n, k = x[-1], z[-1]
    return math.ceil(n * max(abs(Fraction(a, n) - Fraction(b, k)) for a, b in zip(x, z, strict=True)))


def multinomial(z: tuple[int, ...]) -> Fraction:
    return Fraction(1, math.prod(math.factorial(c) for c in np.diff(z, prepend=0).tolist()))


def real(x: Fraction) -> Any:
    return mp.mpf(x.numerator) / x.denominator


def enumerated(x: tuple[int, ...], k: int, rate: Any) -> dict[Any, Any]:
    weights = {z: real(multinomial(z)) * mp.exp(-rate * true_score(x, z)) for z in paths(len(x), k)}
    total = mp.fsum(weights.values())
    return {z: w / total for z, w in weights.items()}


def rate_of(x: tuple[int, ...], k: int, epsilon: Fraction) -> tuple[float, float]:
    """The rate that a release really uses, and what it sets aside."""
    spare = ks.set_aside(ks.Problem(np.array(x), k), epsilon)
    return float(epsilon - Fraction(spare)) / 2 * (1 - 2.0**-50), spare


def sampled(x: tuple[int, ...], k: int, rate: float) -> dict[Any, Any]:
    """The law the code samples, from the floats of blocks() and of the recursion, with no randomness."""
    problem = ks.Problem(np.array(x), k)
    weights = problem.log_weights()
    law: dict[Any, Any] = {z: mp.mpf(0) for z in paths(len(x), k)}
    cells = len(x)
    for block in ks.blocks(problem, rate, weights):
        mass = mp.exp(mp.mpf(block.upper))
        if block.inner is None:
            scale = mp.mpf(1 / rate)
            for z in law:
                probability = real(multinomial(z) * math.factorial(k)) / mp.mpf(cells) ** k
                late = max(0, problem.score(np.array(z)) - block.start - 1)
                law[z] += mass * probability * mp.exp(-late / scale)
            continue
        inner = block.inner
        band = [(int(low[0]), int(high[0])) for low, high in inner.band]
        ends = mp.exp(-mp.mpf(rate) * (inner.threshold - block.start))
        for z in law:
            if any(not low <= at <= high for at, (low, high) in zip(z, band, strict=True)):
                continue
            probability = mp.mpf(1)
            for j in range(cells - 1, 0, -1):
                low, high = band[j - 1]
                terms = [
                    mp.exp(mp.mpf(float(inner.logs[j - 1][at - low] + weights[z[j] - at])))
                    for at in range(low, min(high, z[j]) + 1)
                ]
                probability *= terms[z[j - 1] - low] / mp.fsum(terms)
            t = problem.score(np.array(z))
            remaining = (mp.exp(-mp.mpf(rate) * max(0, t - block.start - 1)) - ends) / (1 - ends)
            law[z] += mass * probability * max(remaining, 0)
    total = mp.fsum(law.values())
    return {z: w / total for z, w in law.items()}


CASES = [((1, 2), 2), ((3, 3, 7), 4), ((0, 5, 9, 10), 5), ((0, 0, 0, 4), 3), ((40, 50, 100), 5), ((1,), 1), ((0, 1), 1)]


@each(("x", "k"), CASES)
@each("epsilon", [Fraction(1, 10), Fraction(1), Fraction(8)])
def test_the_law_that_is_sampled_is_the_enumerated_one(x: Any, k: int, epsilon: Fraction) -> None:
    rate, spare = rate_of(x, k, epsilon)
    exact, real_law = enumerated(x, k, mp.mpf(rate)), sampled(x, k, rate)
    for z in exact:
        assert abs(mp.log(real_law[z] / exact[z])) <= mp.mpf(spare) / 2
        assert abs(real_law[z] - exact[z]) < 1e-9


@pytest.mark.parametrize(("n", "cells", "k"), [(1, 2, 1), (2, 2, 3), (3, 3, 2), (4, 3, 3), (5, 2, 4), (3, 4, 2)])
def test_the_worst_loss_over_all_neighbors(n: int, cells: int, k: int) -> None:
    epsilon = Fraction(1)
    laws = {x: sampled(x, k, rate_of(x, k, epsilon)[0]) for x in tables(n, cells)}
    worst = max(abs(mp.log(laws[x][z] / laws[y][z])) for x in laws for y in neighbors(x) for z in laws[x])
    assert 0.3 < worst <= 1


@pytest.mark.parametrize("n", [10**6, 10**9, 10**12])
@pytest.mark.parametrize("epsilon", [1, 10, 1000])
def test_many_records_do_not_outgrow_what_is_set_aside(n: int, epsilon: int) -> None:
    """The weights of the blocks are of size exp(-rate n): in floats their logarithms lose digits as n grows."""
    for first in (3 * n // 4, n // 2 + 1, n - 1, n // 3):
        laws = [sampled((x, n), 1, rate_of((x, n), 1, Fraction(epsilon))[0]) for x in (first, first + 1)]
        assert max(abs(mp.log(laws[0][z] / laws[1][z])) for z in laws[0]) <= epsilon


@pytest.mark.parametrize(("n", "cells", "k"), [(1, 2, 3), (3, 3, 4), (4, 4, 3), (6, 2, 5), (5, 3, 2)])
def test_the_score_and_its_sensitivity(n: int, cells: int, k: int) -> None:
    for x in tables(n, cells):
        problem = ks.Problem(np.array(x), k)
        for z in paths(cells, k):
            assert problem.score(np.array(z)) == true_score(x, z)
            for y in neighbors(x):
                assert abs(true_score(x, z) - true_score(y, z)) <= 1


@pytest.mark.parametrize(("x", "k"), [((1, 2), 2), ((3, 3, 7), 4), ((0, 5, 9, 10), 5), ((2, 2, 2, 4), 3)])
def test_the_recursion_counts_paths(x: Any, k: int) -> None:
    problem = ks.Problem(np.array(x), k)
    weights, cells = problem.log_weights(), len(x)
    unit = mp.power(mp.mpf(k) / cells, k) * mp.exp(-k)
    for threshold in range(x[-1] + 2):
        inside = [z for z in paths(cells, k) if true_score(x, z) <= threshold]
        result = problem.forward(threshold, weights)
        if not inside:
            assert result.total == -math.inf
            continue
        assert abs(mp.exp(result.total) / (unit * real(sum(map(multinomial, inside)))) - 1) < mp.mpf(1e-13)
    assert problem.forward(x[-1], weights).total == pytest.approx(problem.everything(), abs=1e-13)


@pytest.mark.parametrize(("n", "cells", "k"), [(50, 8, 12), (300, 30, 40), (1000, 5, 60)])
@pytest.mark.parametrize("shape", ["even", "one", "ends"])
def test_rounding_bounds_the_float_recursion(n: int, cells: int, k: int, shape: str) -> None:
    """The same recursion in integers: 1/c! is k!/c! over k!, so that nothing is rounded."""
    x = {
        "even": [n * (j + 1) // cells for j in range(cells)],
        "one": [0] * (cells - 1) + [n],
        "ends": [n // 2] * (cells - 1) + [n],
    }[shape]
    problem = ks.Problem(np.array(x), k)
    weights = problem.log_weights()
    whole = [math.factorial(k) // math.factorial(c) for c in range(k + 1)]
    size = float(np.abs(weights).max()) + k * (math.log(cells) + 3) + 64
    bound = ks.rounding(problem, k + 1, size)
    for threshold in (n // (2 * k) + 1, n // 10, n // 2, n):
        result = problem.forward(threshold, weights)
        state = {0: 1}
        for [low], [high] in problem.band(threshold):
            state = {
                z: sum(w * whole[z - before] for before, w in state.items() if before <= z)
                for z in range(int(low), int(high) + 1)
            }
        if not state or not state[k]:
            assert result.total == -math.inf
            continue
        unit = k * mp.log(mp.mpf(k) / cells) - k - cells * mp.log(mp.mpf(math.factorial(k)))
        exact = mp.log(mp.mpf(state[k])) + unit
        assert abs(mp.mpf(result.total) - exact) <= mp.mpf(bound)


def acceptance(x: tuple[int, ...], k: int, epsilon: float) -> float:
    """The share of proposals that are kept: the lower sum of the blocks is at most the weight itself."""
    problem = ks.Problem(np.array(x), k)
    result = ks.blocks(problem, epsilon / 2, problem.log_weights())
    upper = max(block.upper for block in result)
    total = math.fsum(math.exp(block.upper - upper) for block in result)
    singles = [b for b in result if b.inner is not None and b.inner.threshold - b.start == 1]
    remaining = math.fsum(math.exp(max(b.lower, b.upper if b in singles else -math.inf) - upper) for b in result)
    return remaining / total


@each("epsilon", [0.001, 0.1, 1, 10, 1000])
@each("n", [1, 7, 1000, 10**6])
def test_sampling_ends_soon_for_all_data(n: int, epsilon: float) -> None:
    for cells, k in ((2, 1), (2, 30), (5, 7), (12, 12)):
        for shares in (
            [0.0] * (cells - 1),
            [1.0] * (cells - 1),
            [0.5] * (cells - 1),
            np.linspace(0, 1, cells + 1)[1:-1],
        ):
            x = (*(int(n * share) for share in shares), n)
            assert acceptance(x, k, epsilon) > 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("x", "k", "epsilon"), [((3, 3, 7), 4, 2), ((0, 5, 9, 10), 3, 1)])
def test_draws_follow_the_enumerated_law(x: Any, k: int, epsilon: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SeededSource(11)
    problem, rate = ks.Problem(np.array(x), k), rate_of(x, k, Fraction(epsilon))[0]
    blocks = ks.blocks(problem, rate, problem.log_weights())
    monkeypatch.setattr(ks, "blocks", lambda *_: blocks)  # they are the same for every draw
    places = {z: i for i, z in enumerate(paths(len(x), k))}
    counts = np.zeros(len(places), dtype=np.int64)
    for _ in range(8000):
        path, _ = ks.release(ks.Problem(np.array(x), k), Fraction(epsilon), source)
        counts[places[tuple(path.tolist())]] += 1
    for factor, follows in ((1, True), (0.75, False), (1.25, False)):
        law = np.array([float(p) for p in enumerated(x, k, mp.mpf(factor * epsilon / 2)).values()])
        assert (surprise(counts, law) > FALSE_ALARM) is follows


def test_an_epsilon_below_the_rounding_is_refused() -> None:
    with refuses(DitherError, "expected more than the rounding"):
        ks.release(ks.Problem(np.array([5, 10]), 20), Fraction(1, 10**12), SeededSource(1))
