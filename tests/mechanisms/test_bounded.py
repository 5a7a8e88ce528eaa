from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from divergence import budget, hockey_stick_of_densities, number, refusal

from dither import ApproxDP, BoundedLaplace, PureDP
from support import surprise

CASES = [
    (1, 1, 0, 10, 0),
    (0.5, 0.3, -1, 1, 0),
    (2, 3, 0, 2, 0),
    (1, 0.5, 0, 4, 0.01),
    (1, 5, 0, 100, 0),
    (1, 1e-6, 0, 10, 0),
]


def mass(q: Any, lower: Any, upper: Any, b: Any) -> Any:
    """What exp(-|v - q| / b) / 2b integrates to inside the limits."""
    return 1 - (mp.exp(-(q - lower) / b) + mp.exp(-(upper - q) / b)) / 2


def density(q: Any, lower: Any, upper: Any, b: Any) -> Any:
    total = mass(q, lower, upper, b)
    return lambda v: mp.exp(-abs(v - q) / b) / (2 * b * total)


def largest_loss(s: Any, lower: Any, upper: Any, b: Any, points: int = 40) -> Any:
    """Over all pairs q, q + d on a grid; the log-ratio of the densities is largest at a limit or at a peak."""
    lower, upper, s, b = map(number, (lower, upper, s, b))
    worst = mp.mpf(0)
    for i in range(points + 1):
        for part in (mp.mpf(1) / 7, mp.mpf(1) / 2, mp.mpf(1)):
            d = s * part
            q = lower + (upper - lower - d) * i / points
            if q < lower:
                continue
            one, other = density(q, lower, upper, b), density(q + d, lower, upper, b)
            worst = max(worst, *(abs(mp.log(one(v) / other(v))) for v in (lower, q, q + d, upper)))
    return worst


def test_the_fixed_point_is_the_known_number_and_the_naive_scale_loses_1490() -> None:
    m = BoundedLaplace(1, 1, 0, 10)
    assert m.scale == pytest.approx(1.61156, abs=5e-6)
    assert mp.nstr(largest_loss(1, 0, 10, 1), 4) == "1.49"
    assert abs(largest_loss(1, 0, 10, 1) - mp.mpf("1.490")) < 5e-4


@pytest.mark.parametrize(("sensitivity", "epsilon", "lower", "upper", "delta"), CASES)
def test_no_pair_of_values_loses_more_than_epsilon(
    sensitivity: float, epsilon: float, lower: float, upper: float, delta: float
) -> None:
    m = BoundedLaplace(sensitivity, epsilon, lower, upper, delta)
    allowed = budget(epsilon) - mp.log(1 - budget(delta))
    worst = largest_loss(sensitivity, lower, upper, m.scale)
    assert worst <= allowed + mp.mpf(10) ** -12
    assert worst >= allowed - mp.mpf(10) ** -8  # the scale is the smallest
    if sensitivity < upper - lower:
        assert largest_loss(sensitivity, lower, upper, sensitivity / epsilon, 10) > allowed * mp.mpf("1.001")
    assert m.guarantee == (ApproxDP(epsilon, delta) if delta else PureDP(epsilon))


@pytest.mark.parametrize(("sensitivity", "epsilon", "lower", "upper", "delta"), CASES[:4])
def test_the_curve_is_never_below_the_truth(
    sensitivity: float, epsilon: float, lower: float, upper: float, delta: float
) -> None:
    m = BoundedLaplace(sensitivity, epsilon, lower, upper, delta)
    b, low, high, s = map(number, (m.scale, lower, upper, sensitivity))
    for q in (low, (low + high - s) / 2, high - s):
        one, other = density(q, low, high, b), density(q + s, low, high, b)
        for at in (0, 0.5 * epsilon, epsilon):
            exact = hockey_stick_of_densities(one, other, [low, q, q + s, high], at)
            assert exact <= number(m.privacy_curve(at)) + mp.mpf(10) ** -15
            if at == epsilon:
                assert exact <= budget(delta) + mp.mpf(10) ** -15


@pytest.mark.parametrize("value", [0.0, 0.3, 5.0, 10.0])
def test_float_releases_follow_the_law(value: float) -> None:
    m = BoundedLaplace(1, 1, 0, 10)
    sample = np.array([m.release(value) for _ in range(25_000)])
    assert sample.min() >= 0
    assert sample.max() <= 10
    edges = np.linspace(0, 10, 41)[1:-1] + 1e-4
    counts = np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)

    def law(b: float) -> Any:
        def below(v: float) -> float:
            part = [math.exp(-abs(x - value) / b) for x in (0.0, v)]
            upto = part[1] - part[0] if v <= value else 2 - part[0] - part[1]
            return upto / (2 - part[0] - math.exp(-(10 - value) / b))

        return np.diff([0.0, *(below(v) for v in edges), 1.0])

    assert surprise(counts, law(m.scale)) > 1e-9
    assert surprise(counts, law(0.75 * m.scale)) < 1e-9
    assert surprise(counts, law(1.33 * m.scale)) < 1e-9


def below_share(m: BoundedLaplace, value: Any, trials: int = 3000) -> float:
    return sum(m.release(value) < value for _ in range(trials)) / trials


@pytest.mark.parametrize("offset", [100, 127, 128, 129, 300])
def test_large_values_inside_float_limits_get_noise_on_both_sides(offset: int) -> None:
    """2^60 + 100 is 2^60 as a float: a law around the rounded value would never go below the value."""
    m = BoundedLaplace(1, 1, 2.0**60, 2.0**60 + 2048)
    assert 0.2 < below_share(m, 2**60 + offset) < 0.65


@pytest.mark.parametrize("value", [-5, 0, 0.0, 12, 1e300, -1e300, Fraction(1, 3), 10**400])
def test_releases_stay_inside_the_limits(value: Any) -> None:
    m = BoundedLaplace(1, 0.1, 0, 10)
    for _ in range(200):
        released = m.release(value)
        assert 0 <= released <= 10
        assert type(released) is (int if isinstance(value, int) else float)


def test_limits_off_the_lattice_hold_and_integers_between_them() -> None:
    m = BoundedLaplace(1, 0.5, 0.1, 3.7)
    for _ in range(300):
        assert 0.1 <= m.release(0.1) <= 3.7
        assert m.release(2) in (1, 2, 3)
    refusal(lambda: BoundedLaplace(0.1, 1, 0.2, 0.8).release(987654), 987654)


@pytest.mark.parametrize("kind", [int, float, Fraction, Decimal, np.int64, np.float32])
def test_limits_of_every_kind(kind: type) -> None:
    m = BoundedLaplace(1, 1, kind(0), kind(10))
    assert m == BoundedLaplace(1, 1, 0, 10)
    assert 0 <= m.release(3) <= 10
    assert 0 <= m.release(3.5) <= 10


@pytest.mark.slow
def test_the_error_holds_at_every_value_and_the_variance_at_the_worst() -> None:
    m = BoundedLaplace(1, 1, 0, 10)
    b = number(m.scale)
    for level in (0.5, 0.9, 0.95, 0.999):
        w = number(m.error(level))
        for i in range(21):
            q = mp.mpf(i) / 2
            one = density(q, mp.mpf(0), mp.mpf(10), b)
            low, high = max(mp.mpf(0), q - w), min(mp.mpf(10), q + w)
            covered = mp.quad(one, sorted({low, q, high}))
            assert covered >= number(level)
            if i == 0:
                assert covered <= number(level) + mp.mpf(10) ** -5
    spread = [
        mp.quad(
            lambda v, q=q: (v - q) ** 2 * density(q, mp.mpf(0), mp.mpf(10), b)(v), sorted({mp.mpf(0), q, mp.mpf(10)})
        )
        for q in map(mp.mpf, range(11))
    ]
    assert max(spread) == spread[0]
    assert m.variance == pytest.approx(float(spread[0]), rel=1e-9)


def test_integer_arrays_stop_at_64_bits_and_vectors_are_refused() -> None:
    m = BoundedLaplace(1e25, 1, 0, 1e30)
    assert all(m.release(np.array([5])).dtype == np.int64 for _ in range(20))
    refusal(lambda: m.release([987654.321, 1.0]), 987654.321)
    refusal(lambda: m.release(np.array([987654.321, 1.0])), 987654.321)


def test_a_sensitivity_wider_than_the_limits_is_refused_at_once() -> None:
    refusal(lambda: BoundedLaplace(11, 1, 0, 10))
    assert BoundedLaplace(10, 1, 0, 10).scale == pytest.approx(10)


@pytest.mark.parametrize(
    "limits", [(1, 1), (2, 1), (0, math.inf), (math.nan, 1), (None, 1), ("0", "1"), (-1.7e308, 1.7e308)]
)
def test_bad_limits_are_refused(limits: Any) -> None:
    refusal(lambda: BoundedLaplace(1, 1, *limits))


def test_an_error_out_of_reach_is_refused() -> None:
    refusal(lambda: BoundedLaplace.for_error(1e-9, sensitivity=1, lower=0, upper=10))


@pytest.mark.parametrize("epsilon", [1e-13, 1e-30, 1e-100])
def test_tiny_losses_do_not_hang_and_are_met(epsilon: float) -> None:
    m = BoundedLaplace(1, epsilon, 0, 10)
    with mp.workdps(260):
        b, s, w = number(m.scale), mp.mpf(1), mp.mpf(10)
        assert s / b + mp.log(mass(s, 0, w, b) / mass(mp.mpf(0), 0, w, b)) <= budget(epsilon)
    assert m.scale <= 100 / epsilon
