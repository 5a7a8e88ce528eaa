from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from divergence import budget, hockey_stick, hockey_stick_of_densities, number, refusal, rounded
from scipy import stats

from dither import ZCDP, ApproxDP, Gaussian, NotPrivate
from support import each, label, refuses, surprise

CASES = [(1, 1, 0.01), (2, 1, 1e-3), (3, 3, 0.05), (0.5, 0.3, 1e-2)]


def normal_tail(sigma: float) -> Any:
    return lambda z: mp.erfc(z / number(sigma) / mp.sqrt(2))


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), CASES)
def test_the_real_law_follows_the_curve_exactly(sensitivity: float, epsilon: float, delta: float) -> None:
    m = Gaussian(sensitivity, epsilon, delta)
    s, far = number(m.sigma), 14 * m.sigma
    for at in (0, 0.5 * epsilon, epsilon, 2 * epsilon):
        exact = hockey_stick_of_densities(
            lambda z: mp.npdf(z, 0, s), lambda z: mp.npdf(z, number(sensitivity), s), [-far, 0, sensitivity, far], at
        )
        claimed = number(m.privacy_curve(at))
        assert claimed - mp.mpf(10) ** -9 <= exact <= claimed
    assert number(m.privacy_curve(epsilon)) <= budget(delta)


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), [(1, 1, 0.01), (2, 1, 0.02), (3, 3, 0.05), (1, 5, 0.1)])
def test_rounded_integers_stay_below_the_curve(sensitivity: int, epsilon: float, delta: float) -> None:
    m = Gaussian(sensitivity, epsilon, delta)
    extent = int(13 * m.sigma) + 4
    p = rounded(normal_tail(m.sigma), 0, extent)
    for moved in range(1, sensitivity + 1):
        q = rounded(normal_tail(m.sigma), moved, extent)
        for at in (0, 0.5 * epsilon, epsilon, 2 * epsilon):
            assert hockey_stick(p, q, at) <= number(m.privacy_curve(at))
        assert hockey_stick(p, q, epsilon) <= budget(delta)


@pytest.mark.parametrize("shift", [(3, 4), (5, 0), (0, -5)])
def test_rounded_pairs_of_integers_stay_below_the_curve(shift: tuple[int, int]) -> None:
    m = Gaussian(5, 1, 0.02)
    k = np.arange(-90, 91)

    def cells(center: int) -> Any:
        return np.diff(stats.norm.cdf(np.append(k - 0.5, k[-1] + 0.5), center, m.sigma))

    p, q = np.multiply.outer(cells(0), cells(0)), np.multiply.outer(cells(shift[0]), cells(shift[1]))
    for at in (0, 0.5, 1, 2):
        assert np.maximum(p - np.exp(at) * q, 0).sum() <= m.privacy_curve(at) + 1e-12


@pytest.mark.parametrize("rho", [0.02, 0.5, 2])
@pytest.mark.parametrize("shift", [1, 2])
def test_discrete_gaussian_integers_are_rho_zcdp(rho: float, shift: int) -> None:
    m = Gaussian(shift, rho=rho)
    extent = int(16 * m.sigma) + 6

    def law(center: int) -> Any:
        weights = {
            k: mp.exp(-(mp.mpf(k - center) ** 2) / (2 * number(m.sigma) ** 2)) for k in range(-extent, extent + 1)
        }
        total = mp.fsum(weights.values())
        return {k: w / total for k, w in weights.items()}

    p, q = law(0), law(shift)
    for alpha in ("1.1", "1.5", "2", "5", "20"):
        a = mp.mpf(alpha)
        renyi = mp.log(mp.fsum(p[k] ** a * q[k] ** (1 - a) for k in p)) / (a - 1)
        assert renyi <= a * budget(rho) * (1 + mp.mpf(10) ** -12)
    for delta in (1e-6, 1e-2):
        converted = m.guarantee.to_approx(delta)
        assert hockey_stick(p, q, converted.epsilon) <= budget(delta)


@pytest.mark.parametrize("make", [lambda: Gaussian(2, 1, 0.01), lambda: Gaussian(1, rho=0.1)])
def test_integer_releases_follow_their_law(make: Any) -> None:
    m = make()
    extent = int(6 * m.sigma)
    k = np.arange(-extent, extent + 1)

    def law(sigma: float) -> Any:
        if m.rho is None:
            return np.diff(stats.norm.cdf(np.concatenate([[-np.inf], k[:-1] + 0.5, [np.inf]]), 0, sigma))
        wide = np.arange(-20 * extent, 20 * extent + 1)
        weights = np.exp(-(wide**2) / (2 * sigma**2))
        ends = np.cumsum(weights / weights.sum())
        below = ends[np.searchsorted(wide, k)]
        below[-1] = 1.0
        return np.diff(np.concatenate([[0.0], below]))

    for sample in (
        m.release(np.zeros(40_000, dtype=np.int64)),
        np.array([m.release(2**60) - 2**60 for _ in range(20_000)]),
    ):
        counts = np.bincount(np.clip(sample, -extent, extent) + extent, minlength=2 * extent + 1)
        assert surprise(counts, law(m.sigma)) > 1e-9
        assert surprise(counts, law(0.9 * m.sigma)) < 1e-9
        assert surprise(counts, law(1.1 * m.sigma)) < 1e-9


@each("delta", [1e-12, 1e-6, 1e-3, 0.1])
@each("epsilon", [1e-3, 0.1, 0.5, 0.999])
def test_the_classical_formula_is_valid_below_one_and_never_smaller(epsilon: float, delta: float) -> None:
    classical, exact = Gaussian(1, epsilon, delta, method="classical"), Gaussian(1, epsilon, delta)
    assert classical.sigma >= exact.sigma
    assert classical.sigma == pytest.approx(math.sqrt(2 * math.log(1.25 / delta)) / epsilon, rel=1e-12)
    assert classical.privacy_curve(epsilon) <= delta


def true_delta(epsilon: float, ratio: Any) -> Any:
    """The curve of Balle and Wang in 60 digits."""
    with mp.workdps(60):
        e, r = mp.mpf(str(epsilon)), mp.mpf(ratio)
        return mp.ncdf(1 / (2 * r) - e * r) - mp.exp(e) * mp.ncdf(-1 / (2 * r) - e * r)


@each("epsilon", [1, 1.5, 4.46, 4.47, 6.77, 6.78, 8.41, 8.42, 10.24, 10.25, 30, 1000])
@each("delta", [0.5, 0.01, 1e-5, 1e-12])
def test_the_classical_formula_from_one_on_has_its_true_delta_or_is_refused(epsilon: float, delta: float) -> None:
    with mp.workdps(60):
        ratio = mp.sqrt(2 * mp.log(mp.mpf("1.25") / mp.mpf(str(delta)))) / mp.mpf(str(epsilon))
    true = true_delta(epsilon, ratio)
    if true <= delta:
        m = Gaussian(1, epsilon, delta, method="classical")
        assert m.sigma == pytest.approx(float(ratio), rel=1e-15)
        assert isinstance(m.guarantee, ApproxDP)
        assert m.guarantee.epsilon == pytest.approx(epsilon, rel=1e-15)
        assert true_delta(epsilon, m.sigma) <= mp.mpf(m.guarantee.delta) <= delta
        assert m.guarantee.delta == pytest.approx(float(true), rel=1e-12)
    else:
        with refuses(NotPrivate, f"at least {float(true):.6g}, the true delta"):
            Gaussian(1, epsilon, delta, method="classical")


def test_below_one_the_classical_formula_has_the_delta_of_its_theorem() -> None:
    assert Gaussian(1, 0.5, 1e-5, method="classical").guarantee == ApproxDP(0.5, 1e-5)


def test_what_is_promised_is_what_was_asked() -> None:
    assert Gaussian(1, 0.5, 1e-6).guarantee == ApproxDP(0.5, 1e-6)
    assert Gaussian(1, rho=0.1).guarantee == ZCDP(0.1)
    assert Gaussian(3, rho=0.5).sigma == 3.0


def test_coordinates_with_their_own_sensitivities_stay_within_the_whole() -> None:
    m, one = Gaussian([1, 2, 5], 1, 1e-6), Gaussian(1, 1, 1e-6)
    loss = sum((s / sigma) ** 2 for s, sigma in zip((1, 2, 5), m.sigma, strict=True))
    assert loss <= 1 / one.sigma**2
    assert m.privacy_curve(1) <= 1e-6
    assert sum(m.variance) <= sum(Gaussian([1, 2, 5], 1, 1e-6, split=[1, 1, 1]).variance)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1},
        {"delta": 1e-6},
        {"rho": 1, "epsilon": 1},
        {"rho": 1, "delta": 1e-6},
        {"rho": 0},
        {"rho": math.nan},
        {"epsilon": 1, "delta": 1e-6, "method": "bogus"},
        {"rho": 1, "method": "bogus"},
    ],
    ids=label,
)
def test_incomplete_or_contradictory_arguments_are_refused(arguments: dict[str, Any]) -> None:
    refusal(lambda: Gaussian(1, **arguments))
