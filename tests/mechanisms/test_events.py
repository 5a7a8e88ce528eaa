"""The event of a mechanism must cover whatever it can release."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from divergence import hockey_stick, number

import dither as dp
from dither.accounting import (
    Approximate,
    BoundedRange,
    Concentrated,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Pure,
    ResponseReport,
    best_of,
    pld,
    privacy_curve,
)
from dither.mechanisms import ContinuousExponential
from support import each, label

MECHANISMS = [
    (dp.Laplace(1, 0.5), Pure(0.5)),
    (dp.Laplace(0.5, 1), LaplaceNoise(1)),
    (dp.Laplace(3, 0.5), Pure(0.5)),
    (dp.Laplace([1, 2], 1), Pure(1)),
    (dp.Staircase(1, 2), Pure(2)),
    (dp.Gaussian(1, rho=0.125), Concentrated(0.125)),
    (dp.BoundedLaplace(1, 1, 0, 10), Pure(1)),
    (dp.BoundedLaplace(1, 1, 0, 10, delta=0.01), Approximate(1, 0.01)),
    (dp.RandomizedResponse(1, 4), ResponseReport(1, 4)),
    (dp.RandomizedResponse(1, ["a", "b"]), ResponseReport(1, 2)),
    (dp.Exponential(1, 1), BoundedRange(1)),
    (dp.Exponential(1, 1, monotone=True), BoundedRange(1)),
    (ContinuousExponential(1, 1, False, (0, 1)), BoundedRange(1)),
    (dp.NoisyMax(1, 1), BoundedRange(1)),
    (dp.NoisyMax(1, 1, noise="laplace"), Pure(1)),
    (dp.PermuteAndFlip(1, 1), Pure(1)),
    (dp.TopK(4, 1, 1), 4 * BoundedRange(0.25)),
    (dp.SparseVector(1, 1, limit=3), Pure(1)),
    (dp.SmoothNoise("cauchy", 1), Pure(1)),
    (dp.SmoothNoise("laplace", 1, 1e-6), Approximate(1, 1e-6)),
    (dp.ProposeTestRelease(1, 1, 1e-6), Approximate(1, 1e-6)),
    (dp.MixedNoise(1, 1, 1e-6), Pure(1)),
    (dp.ReusableHoldout([1.0], [1.0], bounds=(0, 1), epsilon=1, threshold=1, limit=1), Pure(1)),
]


@each(("mechanism", "event"), MECHANISMS)
def test_what_each_mechanism_says_of_itself(mechanism: Any, event: Any) -> None:
    assert mechanism.event == event
    guarantee = mechanism.guarantee
    if isinstance(guarantee, dp.PureDP):
        assert best_of(mechanism.event).guarantee <= guarantee


@pytest.mark.parametrize(
    "m",
    [
        dp.Gaussian(1, 1, 1e-6),
        dp.Gaussian([1, 2], 1, 1e-6),
        dp.Gaussian(0.3, 0.5, 1e-3, method="classical"),
        dp.MixedNoise(1, 1, 0.3),
        dp.TopK(100, 1, 1, 1e-6),
    ],
    ids=label,
)
def test_the_event_implies_the_guarantee(m: Any) -> None:
    assert best_of(m.event, m.guarantee.exact[1]).guarantee <= m.guarantee


def test_gaussian_events_are_of_the_noise_as_it_is() -> None:
    m = dp.Gaussian(2, 1, 1e-6)
    assert m.event == GaussianNoise(Fraction(m.sigma) / 2) == m.event_for(integer=True)
    rho = dp.Gaussian(1, rho=0.5)
    assert (rho.event_for(integer=True), rho.event_for(integer=False)) == (Concentrated(0.5), GaussianNoise(1))


@each("sensitivity", [1, 2, 3, 2.5])
@each("at", [0, 0.1, 0.5, 0.9])
def test_laplace_on_integers_has_the_curve_of_its_event(sensitivity: float, at: float) -> None:
    """The law itself, summed up: the default event and the one for integers cover it; the real law's does not."""
    m = dp.Laplace(sensitivity, 1)
    shift, t = int(sensitivity), mp.exp(-1 / number(m.scale))
    p, q = ({k: (1 - t) / (1 + t) * t ** abs(k - c) for k in range(-400, 401)} for c in (0, shift))
    truth = hockey_stick(p, q, at)
    assert privacy_curve(m.event_for(integer=True), at) >= truth - mp.mpf(10) ** -20
    assert privacy_curve(m.event_for(integer=True), at) <= m.privacy_curve(at, integer=True) * 1.001 + 1e-9
    assert privacy_curve(m.event, at) >= truth
    if sensitivity == 1:
        assert privacy_curve(m.event_for(integer=False), at) < truth


def test_laplace_events_by_what_is_released() -> None:
    assert dp.Laplace(1, 0.5).event_for(integer=True) == DiscreteLaplaceNoise(2, 1)
    assert dp.Laplace(1, 0.5).event_for(integer=False) == LaplaceNoise(2)
    assert dp.Laplace([1, 2], 1).event_for(integer=True) == Pure(1)
    split = dp.Laplace([1, 2], 1).event_for(integer=False)
    assert isinstance(split, LaplaceNoise)
    assert float(split.ratio) == pytest.approx(1, rel=1e-12)
    assert split.ratio >= 1
    assert dp.Laplace(2.0**70, 1).event_for(integer=True) == LaplaceNoise(1)


def test_accounting_saves_where_the_law_is_known() -> None:
    m = dp.Laplace(1, 0.1)
    known, unknown = (pld.guarantee(100 * event, 1e-6).epsilon for event in (m.event_for(integer=False), m.event))
    assert known < unknown < 10
