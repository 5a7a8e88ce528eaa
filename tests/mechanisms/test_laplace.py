from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from divergence import budget, discrete_laplace, hockey_stick, hockey_stick_of_densities, largest_loss, number

from dither import Laplace, PureDP
from support import refuses, surprise

TINY = mp.mpf(10) ** -12
CURVE_POINTS = [0, 0.01, 0.3, 0.5, 0.9, 1, 1.5]


def density(scale: float, center: Any) -> Any:
    b = number(scale)
    return lambda z: mp.exp(-abs(z - center) / b) / (2 * b)


@pytest.mark.parametrize("epsilon", [0.3, 1, 3])
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 2.5])
def test_integer_releases_lose_at_most_epsilon_and_follow_the_curve(sensitivity: float, epsilon: float) -> None:
    m = Laplace(sensitivity, epsilon)
    extent = int(80 * m.scale) + 5
    shift = int(sensitivity)
    p = discrete_laplace(m.scale, 0, extent)
    for moved in range(1, shift + 1):
        q = discrete_laplace(m.scale, moved, extent)
        assert largest_loss(p, q) <= budget(epsilon) + TINY
        for at in CURVE_POINTS:
            exact = hockey_stick(p, q, at * epsilon)
            claimed = number(m.privacy_curve(at * epsilon, integer=True))
            assert exact <= claimed + mp.mpf(10) ** -25
            if moved == shift:
                assert exact >= claimed - mp.mpf(10) ** -9


@pytest.mark.parametrize("epsilon", [0.3, 1, 3])
@pytest.mark.parametrize("sensitivity", [0.5, 1, 2, 3])
def test_real_releases_follow_the_curve(sensitivity: float, epsilon: float) -> None:
    m = Laplace(sensitivity, epsilon)
    far = 90 * m.scale
    for at in (0, 0.3, 0.9, 1):
        exact = hockey_stick_of_densities(
            density(m.scale, 0), density(m.scale, number(sensitivity)), [-far, 0, sensitivity, far], at * epsilon
        )
        claimed = number(m.privacy_curve(at * epsilon, integer=False))
        assert claimed - mp.mpf(10) ** -9 <= exact <= claimed + mp.mpf(10) ** -20


def test_the_default_curve_covers_both_laws() -> None:
    m = Laplace(2, 1)
    for at in CURVE_POINTS:
        assert m.privacy_curve(at) == max(m.privacy_curve(at, integer=True), m.privacy_curve(at, integer=False))
    assert Laplace(0.5, 1).privacy_curve(0.5) == Laplace(0.5, 1).privacy_curve(0.5, integer=False)


def shifted_real(a: Any, at: Any) -> Any:
    """The hockey-stick divergence of a standard Laplace shift by a, at any real epsilon."""
    if at >= a:
        return mp.mpf(0)
    return 1 - mp.exp(at) if at <= -a else 1 - mp.exp((at - a) / 2)


@pytest.mark.parametrize("share", ["0.01", "0.25", "0.5", "0.8"])
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_a_real_shift_split_over_two_coordinates_stays_below_the_curve(epsilon: float, share: str) -> None:
    m, whole = Laplace(1, epsilon), budget(epsilon)
    a, b = whole * mp.mpf(share), whole * (1 - mp.mpf(share))
    for at in (0, 0.3, 0.9, 1):
        e = at * whole
        exact = (
            shifted_real(b, e - a) / 2
            + shifted_real(b, e + a) * mp.exp(-a) / 2
            + mp.quad(lambda z, e=e: mp.exp(-z) / 2 * shifted_real(b, e - a + 2 * z), mp.linspace(0, a, 6))
        )
        assert exact <= number(m.privacy_curve(at * epsilon, integer=False)) + mp.mpf(10) ** -12
        # with the same split declared
        split = Laplace([float(a), float(b)], epsilon, split=[float(a), float(b)])
        assert exact <= number(split.privacy_curve(at * epsilon, integer=False)) + mp.mpf(10) ** -12


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_an_integer_shift_split_over_two_coordinates_stays_below_the_curve(
    epsilon: float, first: int, second: int
) -> None:
    m = Laplace(first + second, epsilon)
    extent = int(45 * m.scale)
    k = np.arange(-extent, extent + 1)
    q = np.exp(-1 / m.scale)
    rows = [(1 - q) / (1 + q) * q ** np.abs(k - shift) for shift in (0, first, second)]
    p, moved = np.multiply.outer(rows[0], rows[0]), np.multiply.outer(rows[1], rows[2])
    for at in (0, 0.1, 0.3, 0.5, 0.9):
        exact = np.maximum(p - np.exp(at * epsilon) * moved, 0).sum()
        assert exact <= m.privacy_curve(at * epsilon, integer=True) + 1e-12


def test_split_integer_coordinates_lose_at_most_epsilon_together() -> None:
    m = Laplace([1, 3], 1, split=[2, 1])
    losses = [s / scale for s, scale in zip((1, 3), m.scale, strict=True)]
    assert sum(losses) <= 1
    assert losses[0] == pytest.approx(2 * losses[1])
    assert m.guarantee == PureDP(1)
    default = Laplace([1, 8], 1)
    assert sum(default.variance) <= sum(Laplace([1, 8], 1, split=[1, 8]).variance)
    assert sum(default.variance) <= sum(Laplace([1, 8], 1, split=[1, 3]).variance)


@pytest.mark.parametrize("value", [0, -7, 2**60, -(2**80)])
def test_integer_releases_follow_the_enumerated_law(value: int) -> None:
    m = Laplace(2, 1)
    sample = np.array([m.release(value) - value for _ in range(30_000)], dtype=np.int64)
    extent = 20
    counts = np.bincount(np.clip(sample, -extent, extent) + extent, minlength=2 * extent + 1)

    def law(scale: float) -> Any:
        p = np.array([float(v) for v in discrete_laplace(scale, 0, 400).values()])
        inner = p[400 - extent : 401 + extent].copy()
        inner[0], inner[-1] = p[: 401 - extent].sum(), p[400 + extent :].sum()
        return inner

    assert surprise(counts, law(m.scale)) > 1e-9
    assert surprise(counts, law(0.9 * m.scale)) < 1e-9
    assert surprise(counts, law(1.1 * m.scale)) < 1e-9


def test_half_the_scale_would_be_caught() -> None:
    m = Laplace(1, 1)
    p, q = (discrete_laplace(m.scale / 2, k, 200) for k in (0, 1))
    assert largest_loss(p, q) > 1.9
    assert hockey_stick(p, q, 1) > number(m.privacy_curve(1)) + 0.1


@pytest.mark.parametrize("epsilon", [-1, float("nan"), "1", None, 1e7])
def test_the_curve_refuses_nonsense(epsilon: object) -> None:
    with refuses((ValueError, TypeError)):
        Laplace(1, 1).privacy_curve(epsilon)  # type: ignore[arg-type]
