from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from divergence import budget, hockey_stick, largest_loss, number, refusal, rounded

from dither import Laplace, Staircase
from support import each, label, surprise

GAMMAS = [None, 0.05, 0.5, 0.95]


def tail(m: Staircase) -> Any:
    """P(|sensitivity Z| > z) from the density of Geng and Viswanath, integrated by hand."""
    s, gamma = mp.exp(-number(m._laws[0].epsilon)), number(m._laws[0].gamma)
    width = number(m.scale)
    height = (1 - s) / (gamma + s * (1 - gamma))

    def above(z: Any) -> Any:
        z = z / width
        step = mp.floor(z)
        place = z - step
        return s**step * (1 - height * (min(place, gamma) + s * max(place - gamma, 0)))

    return above


def pieces(m: Staircase, shift: Any, extent: int = 60) -> tuple[dict[int, Any], dict[int, Any]]:
    """Masses of both laws on the intervals where both densities are constant: exact, no quadrature."""
    width, gamma, above = number(m.scale), number(m._laws[0].gamma), tail(m)
    knots = [sign * (k + part) * width for k in range(extent) for part in (0, gamma) for sign in (-1, 1)]
    ends = sorted({*knots, *(k + shift for k in knots)})

    def upper(z: Any) -> Any:
        return above(z) / 2 if z >= 0 else 1 - above(-z) / 2

    def masses(center: Any) -> dict[int, Any]:
        beyond = [upper(z - center) for z in ends]
        return {i: a - b for i, (a, b) in enumerate(itertools.pairwise(beyond))}

    return masses(mp.mpf(0)), masses(shift)


@pytest.mark.slow
@each("gamma", GAMMAS)
@each(("sensitivity", "epsilon"), [(1, 0.7), (2, 1.5), (0.5, 3), (3, 5)])
def test_real_releases_lose_at_most_epsilon_and_follow_the_curve(
    sensitivity: float, epsilon: float, gamma: float | None
) -> None:
    m = Staircase(sensitivity, epsilon, gamma)
    for part in ("0.01", "0.3", "0.5", "0.77", "1"):
        p, q = pieces(m, number(sensitivity) * mp.mpf(part), int(42 / epsilon) + 3)
        inner = {k: v for k, v in p.items() if v > mp.mpf(10) ** -16 and q[k] > mp.mpf(10) ** -16}
        assert largest_loss(inner, {k: q[k] for k in inner}) <= budget(epsilon) + mp.mpf(10) ** -12
        for at in (0, 0.3 * epsilon, 0.9 * epsilon, epsilon):
            exact, claimed = hockey_stick(p, q, at), number(m.privacy_curve(at))
            assert exact <= claimed + mp.mpf(10) ** -17
            if part == "1":
                assert exact >= claimed - mp.mpf(10) ** -9


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 0.7), (2, 1.5), (3, 4)])
def test_rounded_integers_stay_below_epsilon_and_the_curve(
    sensitivity: int, epsilon: float, gamma: float | None
) -> None:
    m = Staircase(sensitivity, epsilon, gamma)
    extent = int(30 * sensitivity / epsilon) + 5
    p = rounded(tail(m), mp.mpf(0), extent)
    for moved in range(1, sensitivity + 1):
        q = rounded(tail(m), mp.mpf(moved), extent)
        assert largest_loss(p, q) <= budget(epsilon) + mp.mpf(10) ** -12
        for at in (0, 0.3 * epsilon, epsilon):
            assert hockey_stick(p, q, at) <= number(m.privacy_curve(at)) + mp.mpf(10) ** -17


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 0.5), (2, 3)])
def test_releases_follow_the_law(sensitivity: float, epsilon: float) -> None:
    m = Staircase(sensitivity, epsilon)
    sample = np.array([m.release(0.3) - 0.3 for _ in range(30_000)])
    edges = np.linspace(-6 * sensitivity, 6 * sensitivity, 49) + 1e-3
    counts = np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)

    def law(stretch: float) -> Any:
        above = tail(m)

        def below(z: float) -> float:
            half = float(above(mp.mpf(abs(z)) / stretch)) / 2
            return half if z < 0 else 1 - half

        return np.diff([0.0, *(below(z) for z in edges), 1.0])

    assert surprise(counts, law(1)) > 1e-9
    assert surprise(counts, law(0.9)) < 1e-9
    assert surprise(counts, law(1.1)) < 1e-9


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 3, 8])
def test_the_expected_size_is_optimal_over_gamma_and_below_laplace(epsilon: float) -> None:
    def size(m: Staircase) -> Any:
        s, gamma = mp.exp(-number(m._laws[0].epsilon)), number(m._laws[0].gamma)
        weight = gamma / (gamma + s * (1 - gamma))
        return s / (1 - s) + weight * gamma / 2 + (1 - weight) * (1 + gamma) / 2

    best = size(Staircase(1, epsilon))
    assert best < Laplace(1, epsilon).scale
    for gamma in (0.01, 0.2, 0.4, 0.6, 0.99):
        assert best <= size(Staircase(1, epsilon, gamma))


def test_vectors_need_one_sensitivity_each() -> None:
    refusal(lambda: Staircase(1, 1).release([1.0, 2.0]))
    refusal(lambda: Staircase([1, 1], 1).release([1.0]))
    assert len(Staircase([1, 2], 1).release([1.0, 2])) == 2


@pytest.mark.slow
def test_a_split_stays_below_the_bound_of_pure_privacy() -> None:
    m = Staircase([1, 1], 2)
    assert sum(law.epsilon for law in m._laws) == 2
    p, q = pieces(Staircase(1, 1), mp.mpf(1), extent=25)
    both = {(i, j): p[i] * p[j] for i in p for j in p if p[i] * p[j] > mp.mpf(10) ** -14}
    moved = {key: q[key[0]] * q[key[1]] for key in both}
    for at in (0, 0.5, 1.5, 2):
        assert hockey_stick(both, moved, at) <= number(m.privacy_curve(at)) + mp.mpf(10) ** -9


@pytest.mark.parametrize("gamma", [0, 1, -0.1, 1.5, math.nan, "x", True], ids=label)
def test_a_bad_gamma_is_refused(gamma: object) -> None:
    refusal(lambda: Staircase(1, 1, gamma))  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1e-200, 1e-308])
def test_noise_no_float_can_hold_is_refused(epsilon: float) -> None:
    refusal(lambda: Staircase(1, epsilon))


@pytest.mark.parametrize("epsilon", [1e-9, 50, 700, 1e6])
def test_extreme_losses_release(epsilon: float) -> None:
    m = Staircase(1, epsilon)
    assert isinstance(m.release(5), int)
    assert math.isfinite(m.release(5.0))
