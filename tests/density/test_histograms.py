from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither import AddRemove, Laplace, ReplaceOne
from dither.density.release import (
    default_bins,
    default_ks,
    default_smoothed,
    noisy_counts,
    perturbed,
    smallest_theta,
    smoothed_draws,
)
from dither.density.result import on_simplex
from dither.randomness import SeededSource
from support import FALSE_ALARM, SOON_S, surprise

mp.mp.dps = 40


@pytest.mark.parametrize(("m", "n", "k"), [(2, 1, 1), (4, 3, 2), (10, 1000, 50), (64, 7, 9), (3, 10**6, 1)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(5)])
def test_the_smallest_theta(m: int, n: int, k: int, epsilon: Fraction) -> None:
    theta = smallest_theta(m, n, k, epsilon)

    def worst(t: Fraction) -> Fraction:
        """The largest ratio of a cell's chances over all pairs of neighboring tables."""
        counts = range(min(n, 4))
        return max(((1 - t) * Fraction(c + 1, n) + t / m) / ((1 - t) * Fraction(c, n) + t / m) for c in counts)

    def real(x: Fraction) -> Any:
        return mp.mpf(x.numerator) / x.denominator

    assert k * mp.log(real(worst(theta))) <= real(epsilon)
    assert k * mp.log(real(worst(theta * (1 - Fraction(1, 10**12))))) > real(epsilon)


def test_smoothed_draws_are_private_by_enumeration() -> None:
    m, n, k, epsilon = 3, 3, 2, Fraction(1)
    theta = smallest_theta(m, n, k, epsilon)
    assert theta <= 1
    laws = {}
    for records in itertools.product(range(m), repeat=n):
        probability = [(1 - theta) * Fraction(records.count(c), n) + theta / m for c in range(m)]
        laws[records] = {
            z: math.prod((probability[c] for c in z), start=Fraction(1)) for z in itertools.product(range(m), repeat=k)
        }
    worst = Fraction(0)
    for x, y in itertools.permutations(laws, 2):
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1:
            worst = max(worst, *(laws[x][z] / laws[y][z] for z in laws[x]))
    assert 0.999 < math.log(worst) <= 1


def test_smoothed_draws_follow_the_mixture() -> None:
    cells = np.array([0, 0, 0, 2])
    counts = smoothed_draws(cells, 4, 40_000, Fraction(1, 5), SeededSource(1))
    assert surprise(counts, np.array([0.65, 0.05, 0.25, 0.05])) > FALSE_ALARM
    assert surprise(counts, np.array([0.6375, 0.0625, 0.2375, 0.0625])) < FALSE_ALARM


def test_a_huge_epsilon_does_not_hang() -> None:
    start = time.process_time()
    for method in ("histogram", "perturbed", "smoothed", "ks"):
        result = dp.density.release([0.1, 0.9], (0, 1), 10**6, method, bins=2, points=1)  # type: ignore[arg-type]
        assert result.weights.sum() == 1
    assert time.process_time() - start < SOON_S


@given(st.lists(st.floats(-1e300, 1e300) | st.floats(-2, 2), min_size=1, max_size=12))
def test_the_simplex(values: list[float]) -> None:
    x = np.array(values)
    result = on_simplex(x)
    assert np.all(result >= 0)
    assert math.fsum(result.tolist()) == pytest.approx(1, abs=1e-12)
    order = np.argsort(x, kind="stable")
    assert np.all(np.diff(result[order]) >= 0)


@given(st.lists(st.integers(-40, 40), min_size=1, max_size=7), st.integers(1, 40))
def test_the_simplex_is_the_nearest_point(values: list[int], scale: int) -> None:
    """Against the optimality conditions: x - found is one constant where found > 0, and at most it elsewhere."""
    x = np.array(values) / scale
    result = on_simplex(x)
    shift = (x - result)[result > 0]
    assert np.ptp(shift) < 1e-12
    assert np.all(x[result == 0] <= shift[0] + 1e-12)
    already = np.abs(x) / max(np.abs(x).sum(), 1e-300)
    if np.abs(x).sum() > 0:
        assert np.allclose(on_simplex(already), already, atol=1e-15)


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9))
def test_perturbed(noisy: list[int]) -> None:
    result = perturbed(np.array(noisy))
    assert np.all(result >= 0)
    assert result.sum() == pytest.approx(1)
    if max(noisy) > 0:
        assert np.array_equal(result > 0, np.array(noisy) > 0)


def test_counts_change_by_at_most_the_sensitivity_of_the_mechanism() -> None:
    for neighbors, most in ((AddRemove, 1), (ReplaceOne, 2)):
        assert dp.sensitivity.histogram(neighbors=neighbors) == most
        for n in range(4):
            for x in itertools.product(range(3), repeat=n):
                others = [x[:i] + x[i + 1 :] for i in range(n)]
                if neighbors is ReplaceOne:
                    others = [(*rest, c) for rest in others for c in range(3)]
                for y in others:
                    counts = [np.bincount(np.array(t, dtype=np.int64), minlength=3) for t in (x, y)]
                    assert np.abs(counts[0] - counts[1]).sum() <= most


@pytest.mark.parametrize(("neighbors", "scale"), [(ReplaceOne, 2.0), (AddRemove, 1.0)])
def test_the_noise_on_each_count(neighbors: Any, scale: float) -> None:
    mechanism = Laplace(dp.sensitivity.histogram(neighbors=neighbors), 1)
    noise = noisy_counts(np.full((100, 200), 7), mechanism, SeededSource(9)) - 7
    assert noise.shape == (100, 200)
    k = np.arange(-60, 61)
    for width, fine in ((scale, True), (1.2 * scale, False)):
        p = np.exp(-np.abs(k) / width)
        counts = np.bincount(np.clip(noise.ravel() + 60, 0, 120), minlength=121)
        assert (surprise(counts, p / p.sum()) > FALSE_ALARM) is fine


def test_default_sizes() -> None:
    for n in (1, 2, 10, 1000, 10**7):
        for epsilon in (1e-6, 0.1, 1.0, 10.0, 1e6):
            assert 2 <= default_bins(n, epsilon) <= 4096
            cells, k = default_ks(n, epsilon)
            assert 2 <= cells <= min(k, 200)
            m, k = default_smoothed(n, epsilon)
            assert m >= 2
            assert k >= 1
