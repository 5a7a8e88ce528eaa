from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import dither as dp
from dither import ZCDP, ApproxDP, DitherError, PureDP
from dither.accounting import (
    Approximate,
    BoundedRange,
    Concentrated,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    Pure,
    Sequential,
    best_of,
    calibrate,
    epsilon_for_error,
    gaussian_ratio,
    split,
)
from support import each, refuses


@pytest.mark.parametrize(
    "events",
    [
        [LaplaceNoise(1), GaussianNoise(1)],
        [10 * LaplaceNoise(3), BoundedRange(0.2)],
        [GaussianNoise(1)],
        [Concentrated(1), GaussianNoise(2)],
        [100 * PoissonSampled(GaussianNoise(1), 0.05)],
    ],
)
@pytest.mark.parametrize("total", [ApproxDP(1, 1e-6), ApproxDP(0.1, 1e-9)])
def test_the_noise_is_enough_and_a_little_less_is_not(events: Any, total: ApproxDP) -> None:
    result = calibrate(events, total)
    assert result.guarantee <= total
    assert best_of(Sequential(*result.events), total.exact[1]).guarantee <= total
    assert result.events == tuple(event.scaled(result.factor) for event in events)
    smaller = Sequential(*(event.scaled(Fraction(999, 1000)) for event in result.events))
    assert not best_of(smaller, total.exact[1]).guarantee <= total


def test_one_gaussian_is_calibrated_as_the_mechanism_is() -> None:
    result = calibrate(GaussianNoise(1), ApproxDP(1, 1e-6)).events[0]
    assert isinstance(result, GaussianNoise)
    assert float(result.ratio) == pytest.approx(float(gaussian_ratio(Fraction(1), Fraction(1, 10**6))), rel=1e-5)


def test_pure_totals_are_met_exactly() -> None:
    result = calibrate([Pure(1), LaplaceNoise(1)], PureDP(0.3), weights=[1, 2])
    assert result.guarantee == PureDP(0.3)
    assert [event.pure_epsilon for event in result.events] == [Fraction(1, 10), Fraction(1, 5)]
    sampled = calibrate(PoissonSampled(LaplaceNoise(1), 0.1), PureDP(0.3))
    assert PureDP(Fraction(2999, 10000)) <= sampled.guarantee <= PureDP(0.3)


def test_rho_totals() -> None:
    result = calibrate([GaussianNoise(1), LaplaceNoise(1)], ZCDP(0.1))
    assert ZCDP(Fraction(9999, 100000)) <= result.guarantee <= ZCDP(0.1)
    assert result.accountant == "zcdp"


def test_weights_are_inverse_noise() -> None:
    first, second = calibrate([GaussianNoise(1), GaussianNoise(1)], ApproxDP(1, 1e-6), weights=[1, 4]).events
    assert isinstance(first, GaussianNoise)
    assert isinstance(second, GaussianNoise)
    assert first.ratio == 4 * second.ratio


@pytest.mark.parametrize(
    "make",
    [
        lambda e: dp.Laplace(1, e),
        lambda e: dp.Gaussian(2, e, 1e-6),
        lambda e: dp.Staircase(1, e),
        lambda e: dp.MixedNoise(1, e, 1e-6),
        lambda e: dp.BoundedLaplace(1, e, 0, 1000),
    ],
)
@pytest.mark.parametrize("error", [0.7, 5, 300])
def test_epsilon_from_error_is_enough_and_no_more_than_it_must_be(make: Any, error: float) -> None:
    result = epsilon_for_error(make, error, confidence=0.9)
    assert make(result).error(confidence=0.9) <= error
    assert make(result * 0.999).error(confidence=0.9) > error


def test_shares_add_up_exactly() -> None:
    for total in (PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.3)):
        assert sum(split(total, [1, 2, 0.7])) == total
        assert split(total, [1]) == (total,)
    assert split(PureDP(1), [0.1, 0.2]) == (PureDP(Fraction(1, 3)), PureDP(Fraction(2, 3)))


@each(
    "act",
    [
        lambda: calibrate([], PureDP(1)),
        lambda: calibrate("x", PureDP(1)),  # type: ignore[arg-type]
        lambda: calibrate([1], PureDP(1)),  # type: ignore[list-item]
        lambda: calibrate(Pure(1), 1),  # type: ignore[arg-type]
        lambda: calibrate(Pure(1), PureDP(1), weights=[1, 2]),
        lambda: calibrate(Pure(1), PureDP(1), weights=[-1]),
        lambda: calibrate(Pure(1), PureDP(1), weights=[math.nan]),
        lambda: calibrate(GaussianNoise(1), PureDP(1)),
        lambda: calibrate(Approximate(1, 1e-3), ZCDP(1)),
        lambda: calibrate(Approximate(1, 1e-3), ApproxDP(1, 1e-6)),
        lambda: calibrate(Pure(1), ApproxDP(0, 0.1)),
        lambda: split(PureDP(1), []),
        lambda: split(PureDP(1), [0]),
        lambda: split(PureDP(1), "ab"),  # type: ignore[arg-type]
        lambda: split(1, [1]),  # type: ignore[arg-type]
        lambda: epsilon_for_error(lambda e: dp.Laplace(1, e), 0),
        lambda: epsilon_for_error(lambda e: dp.Laplace(1, e), math.inf),
        lambda: epsilon_for_error(lambda e: dp.Laplace(1, e), 1, confidence=1),
        lambda: epsilon_for_error(lambda e: dp.Laplace(1, e), 1e-12),
    ],
)
def test_nonsense_is_refused(act: Any) -> None:
    with refuses((ValueError, TypeError)) as refused:
        act()
    assert isinstance(refused.value, DitherError)
