from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from divergence import number, refusal

from dither import Exponential, PureDP
from dither.mechanisms.continuous import ContinuousExponential, mean_pieces, piecewise_constant
from dither.randomness import SeededSource, is_seeded
from support import FALSE_ALARM, SOON_S, each, label, surprise

SCORES: dict[str, tuple[tuple[float, float], list[Any]]] = {
    "constant": ((0.0, 1.0), piecewise_constant([0.0, 0.2, 0.25, 1.0], [0.0, 6.0, -1.0])),
    "concave": ((0.0, 1.0), [(0.0, 1.0, [0.0, 12.0, -20.0])]),
    "convex": ((-1.0, 2.0), [(-1.0, 2.0, [0.0, -1.0, 2.0])]),
    "tent": ((0.0, 1.0), [(0.0, 0.3, [-3.0, 10.0]), (0.3, 1.0, [3.0, -10.0])]),
    "mixed": ((0.0, 3.0), [(0.0, 1.0, [2.0]), (1.0, 1.5, [0.0, 2.0]), (1.5, 3.0, [5.0, -4.0, 1.0])]),
    "wide": ((-1e6, 1e6), [(-1e6, 0.0, [0.0, 4e-6]), (0.0, 1e6, [1.0])]),
}


def masses(bounds: Any, pieces: list[Any], rate: Fraction, edges: Any) -> Any:
    """Integrals of the density over the bins."""

    def score(t: Any, coefficients: Any) -> Any:
        return mp.fsum(number(c) * t**i for i, c in enumerate(coefficients))

    total = []
    for a, b in itertools.pairwise(edges):
        mass = mp.mpf(0)
        for start, end, coefficients in pieces:
            low, high = max(a, start), min(b, end)
            if low < high:
                mass += mp.quad(lambda t, c=coefficients: mp.exp(number(rate) * score(t, c)), [low, high])
        total.append(mass)
    return np.array([float(m / mp.fsum(total)) for m in total])


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORES)
def test_releases_follow_the_density(name: str) -> None:
    bounds, pieces = SCORES[name]
    m, words = ContinuousExponential(1, 1, bounds=bounds), SeededSource(8)
    result = np.array([m.release(pieces, source=words) for _ in range(500)])
    assert bounds[0] <= result.min()
    assert result.max() <= bounds[1]
    edges = np.linspace(*bounds, 13)
    counts = np.bincount(np.clip(np.searchsorted(edges, result, side="right") - 1, 0, 11), minlength=12)
    assert surprise(counts, masses(bounds, pieces, m.rate, edges.tolist())) > FALSE_ALARM
    assert surprise(counts, masses(bounds, pieces, m.rate * 3, edges.tolist())) < FALSE_ALARM


@each("name", SCORES)
@each("rate", [0.01, 1, 1e4, 1e12])
def test_cells_cover_every_point_once_under_a_true_bound(name: str, rate: float) -> None:
    """Deterministic: a point's chance is its cell's weight / points * exp(score - top), its own weight exactly."""
    bounds, pieces = SCORES[name]
    m = ContinuousExponential(Fraction(1, int(2 * rate)) if rate >= 1 else 50, 1, bounds=bounds)  # type: ignore[arg-type]
    low, high = (Fraction(end) for end in bounds)
    step = Fraction(high - low) / (1 << 12)
    cells = sorted(m._cells(pieces, low, high, step), key=lambda cell: cell.first)
    assert cells[0].first == 0
    for a, b in itertools.pairwise(cells):
        assert a.first + a.points == b.first
    assert cells[-1].first + cells[-1].points == (1 << 12) + 1
    for cell in cells:
        for k in {cell.first, cell.first + cell.points // 2, cell.first + cell.points - 1}:
            t = low + k * step
            at = [c for start, end, c in pieces if Fraction(start) <= t < Fraction(end) or (t == high == Fraction(end))]
            exact = sum((Fraction(c) * t**i for i, c in enumerate(at[0])), Fraction(0))
            assert cell.score(t) == exact
            assert exact <= cell.top


@pytest.mark.parametrize("power", [1, 2])
def test_no_rate_makes_it_slow(power: int) -> None:
    start = time.process_time()
    for n in (1, 10**3, 10**6, 10**9, 10**15):
        m = ContinuousExponential(1 / n, 1, bounds=(0.0, 1.0))
        for mean in (0.0, 0.3, 1.0):
            for _ in range(3):
                assert abs(m.release(mean_pieces(mean, (0.0, 1.0), power)) - mean) < 60 / math.sqrt(n)
    assert time.process_time() - start < SOON_S


@pytest.mark.slow
def test_the_squared_mean_is_the_truncated_normal() -> None:
    """-(t - mean)^2 at sensitivity 1/n: variance 1/(n epsilon) before truncation; rounding of mean^2 cancels."""
    mean, n = 0.1, 40
    m, words = ContinuousExponential(Fraction(1, n), 1, bounds=(0.0, 1.0)), SeededSource(2)  # type: ignore[arg-type]
    pieces = mean_pieces(mean, (0.0, 1.0), 2)
    assert pieces[0][2][1:] == [2 * mean, -1]
    result = np.array([m.release(pieces, source=words) for _ in range(500)])
    edges = np.linspace(0, 1, 21)

    def normal(variance: float) -> Any:
        cdf = np.array([float(mp.ncdf((t - mean) / math.sqrt(variance))) for t in edges])
        return np.diff(cdf) / (cdf[-1] - cdf[0])

    counts = np.bincount(np.clip(np.searchsorted(edges, result, side="right") - 1, 0, 19), minlength=20)
    assert surprise(counts, normal(1 / n)) > FALSE_ALARM
    assert surprise(counts, normal(0.5 / n)) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 10])
def test_the_true_sensitivity_of_the_squared_mean_is_private(n: int) -> None:
    sensitivity = (2 - Fraction(1, n)) / n
    m = ContinuousExponential(sensitivity, 1, bounds=(0.0, 1.0))  # type: ignore[arg-type]
    grid = [Fraction(k, 400) for k in range(401)]

    def law(mean: Fraction) -> list[Any]:
        weights = [mp.exp(number(-m.rate * (t - mean) ** 2)) for t in grid]
        return [w / mp.fsum(weights) for w in weights]

    for k in range(n):
        p, q = law(Fraction(k, n)), law(Fraction(k + 1, n))
        assert max(abs(mp.log(a / b)) for a, b in zip(p, q, strict=True)) <= 1


GAPS: list[Any] = [
    [],
    [(0.0, 0.4, [0.0]), (0.5, 1.0, [0.0])],
    [(0.0, 0.6, [0.0]), (0.5, 1.0, [0.0])],
    [(0.1, 1.0, [0.0])],
    [(0.0, 0.9, [0.0])],
    [(0.5, 1.0, [0.0]), (0.0, 0.5, [0.0])],
    [(0.0, 2.0, [0.0]), (2.0, 3.0, [0.0])],
    [(0.0, 1.0, [])],
    [(0.0, 1.0, [1.0, 2.0, 3.0, 4.0])],
    [(0.0, 1.0, [math.nan])],
    [(0.0, 1.0, [math.inf])],
    [(0.0, 1.0, ["987654.321"])],
    [(math.nan, 1.0, [987654.321])],
]


@pytest.mark.parametrize("pieces", GAPS, ids=label)
def test_pieces_must_cover_the_bounds(pieces: Any) -> None:
    refusal(lambda: ContinuousExponential(1, 1, bounds=(0.0, 1.0)).release(pieces), "987654")


def test_pieces_may_reach_beyond_the_bounds_and_be_empty() -> None:
    m = ContinuousExponential(1, 1, bounds=(0.0, 1.0))
    assert 0 <= m.release([(-5.0, 0.0, [900.0]), (0.0, 0.0, [9.0]), (0.0, 7.0, [0.0])]) <= 1
    assert 0 <= m.release([(0.0, 0.5, [0]), (0.5, 0.5, [10**9]), (0.5, 1.0, [0])]) <= 1
    assert m.release([(0.0, 0.5, [0]), (0.5, 1.0, [10**30])]) >= 0.5
    assert m.release([(0.0, 1.0, [1e308, 1e308, 1e308])]) == 1.0
    assert ContinuousExponential(1, 1, bounds=(0, 10**5)).release([(0, 10**5, [0, 1e306])]) == 10**5


def test_bounds_of_any_kind() -> None:
    for bounds in ((-1e-300, 1e-300), (1e15, 1e15 + 1), (-(2**60), 2**60), (0.1, 0.3), (-1e300, 1e300)):
        m = ContinuousExponential(1, 1, bounds=bounds)
        for _ in range(20):
            assert bounds[0] <= m.release([(*bounds, [0.0])]) <= bounds[1]
    for bad in (None, (1, 0), (0, 0), (0, math.inf), (-1e308, 1e308), "ab", (1, 2, 3), 5):
        refusal(lambda bad=bad: ContinuousExponential(1, 1, bounds=bad))
    refusal(lambda: piecewise_constant([0, 1], [1, 2]))


def test_what_it_says_of_itself() -> None:
    m = Exponential.continuous(sensitivity=1, epsilon=0.5, bounds=(0, 1))
    assert m.guarantee == PureDP(0.5)
    assert is_seeded(m.release([(0, 1, [0])], source=SeededSource(1)))
    assert Exponential.continuous(sensitivity=1, epsilon=1, bounds=(0, 1), monotone=True).rate == 1
