"""Errors and variances that mechanisms state, held against what they release."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from divergence import number, refusal
from scipy import stats

from dither import BoundedLaplace, Gaussian, Laplace, MixedNoise, Staircase
from dither.mechanisms.additive import coordinates_of, plain_value, shares
from support import each, label

FALSE_ALARM = 1e-9
TRIALS = 60_000
FAST = [
    Laplace(1, 0.5),
    Laplace(0.1, 3),
    Laplace(3, 1),
    Gaussian(1, 1, 1e-6),
    Gaussian(2, rho=0.1),
    MixedNoise(1, 1, 0.3),
]
SLOW = [Staircase(1, 1), Staircase(2, 0.7), Staircase(1, 0.2, gamma=0.9)]
BOUNDED = [BoundedLaplace(1, 1, 0, 10), BoundedLaplace(1, 0.3, 0, 5)]


def errors(m: Any, value: Any, trials: int = TRIALS) -> Any:
    if m in FAST:
        dtype = np.int64 if isinstance(value, int) else np.float64
        return np.abs(m.release(np.full(trials, value, dtype=dtype)) - value)
    return np.abs(np.array([m.release(value) for _ in range(trials)]) - value)


def width(m: Any, level: float, *, integer: bool) -> float:
    if m in BOUNDED:
        return math.ceil(m.error(level)) if integer else m.error(level)
    return m.error(level, integer=integer)


def judge(covered: int, trials: int, level: float) -> float:
    """The chance of a coverage as far from the level, on either side."""
    return 2 * min(stats.binom.cdf(covered, trials, level), stats.binom.sf(covered - 1, trials, level))


# the error of a bounded mechanism is that of its worst value, a limit
WORST = [(m, value) for value in (0.0, 5.0) for m in [*FAST, *SLOW, *BOUNDED] if not (m in BOUNDED and value)]


@each(("m", "value"), WORST)
def test_the_error_of_real_releases_is_honest_and_not_wasteful(m: Any, value: float) -> None:
    off, w = errors(m, value), width(m, 0.95, integer=False)
    assert judge(int((off <= w).sum()), TRIALS, 0.95) > FALSE_ALARM
    assert judge(int((off <= 0.9 * w).sum()), TRIALS, 0.95) < FALSE_ALARM
    assert judge(int((off <= 1.1 * w).sum()), TRIALS, 0.95) < FALSE_ALARM


@pytest.mark.slow
@each("m", [*FAST, *SLOW, *BOUNDED])
@each("level", [0.3, 0.95])
def test_the_error_of_integer_releases_is_honest_and_the_next_smaller_is_not(m: Any, level: float) -> None:
    off, w = errors(m, 0), width(m, level, integer=True)
    assert w == int(w)
    assert stats.binom.cdf((off <= w).sum(), TRIALS, level) > FALSE_ALARM
    if w >= 1 and m not in BOUNDED:
        assert stats.binom.sf((off <= w - 1).sum() - 1, TRIALS, level) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("m", [*FAST, *SLOW, *BOUNDED], ids=label)
def test_the_default_error_holds_for_floats_and_for_integers(m: Any) -> None:
    w = m.error(0.95)
    assert stats.binom.cdf((errors(m, 0.0) <= w).sum(), TRIALS, 0.95) > FALSE_ALARM
    if m not in BOUNDED and getattr(m, "sensitivity", 1) >= 1:
        assert stats.binom.cdf((errors(m, 0) <= w).sum(), TRIALS, 0.95) > FALSE_ALARM


@pytest.mark.parametrize("m", [*FAST, *SLOW], ids=label)
def test_the_variance_is_that_of_the_noise(m: Any) -> None:
    """Nine standard deviations of the mean square: below 1e-9 for these tails, above nothing that 10 % would do."""
    trials = 200_000 if m in FAST else 60_000
    squares = errors(m, 0.3, trials) ** 2
    spread = squares.std() / math.sqrt(trials)

    def fits(variance: float) -> bool:
        return abs(squares.mean() - variance) < 9 * spread

    assert fits(m.variance)
    assert not fits(0.81 * m.variance)
    assert not fits(1.21 * m.variance)


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", [2, 20])
@pytest.mark.parametrize("m", FAST, ids=label)
def test_all_coordinates_stay_within_the_joint_error_together(m: Any, coordinates: int) -> None:
    off = errors(m, 0.0, 40_000 * coordinates).reshape(-1, coordinates).max(axis=1)
    w = m.error(0.9, coordinates=coordinates, integer=False)
    assert judge(int((off <= w).sum()), 40_000, 0.9) > FALSE_ALARM
    assert judge(int((off <= 0.9 * w).sum()), 40_000, 0.9) < FALSE_ALARM


@each("rho", [0.01, 0.3, 1, 2, 8, 50])
@each("level", [0.01, 0.2, 0.5, 0.6827, 0.9, 0.95, 0.999, 1 - 1e-9])
def test_the_integer_error_holds_for_the_discrete_gaussian_as_enumerated(rho: float, level: float) -> None:
    m = Gaussian(1, rho=rho)
    w, s = int(m.error(level, integer=True)), number(m.sigma)
    extent = int(20 * m.sigma) + 20
    weights = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * s * s)) for k in range(-extent, extent + 1)}
    inside = mp.fsum(weights[k] for k in range(-w, w + 1)) / mp.fsum(weights.values())
    assert inside >= number(level)


@each("epsilon", [0.01, 0.5, 1, 5, 30])
@each("level", [1e-6, 0.2, 0.5, 0.95, 0.999, 1 - 1e-12])
def test_the_integer_error_of_laplace_is_the_smallest_that_holds(epsilon: float, level: float) -> None:
    m = Laplace(1, epsilon)
    w, q = int(m.error(level, integer=True)), mp.exp(-1 / number(m.scale))
    outside = [2 * q ** (k + 1) / (1 + q) for k in (w, w - 1)]
    assert outside[0] <= 1 - number(level)
    assert w == 0 or outside[1] > (1 - number(level)) * (1 - mp.mpf(10) ** -9)


@each("sensitivity", [0.1, 1, 7])
@each("target", [0.9, 5, 5.7, 1000])
@each("level", [0.5, 0.95, 0.9999])
def test_for_error_is_the_smallest_epsilon_that_does(sensitivity: float, target: float, level: float) -> None:
    less = 1 - 1e-3
    lap = Laplace.for_error(target, sensitivity=sensitivity, confidence=level)
    assert (
        lap.error(level, integer=False) <= target < Laplace(sensitivity, lap.epsilon * less).error(level, integer=False)
    )
    gauss = Gaussian.for_error(target, sensitivity=sensitivity, delta=1e-6, confidence=level)
    assert gauss.error(level, integer=False) <= target
    assert target < Gaussian(sensitivity, gauss.epsilon * less, 1e-6).error(level, integer=False)
    stair = Staircase.for_error(target, sensitivity=sensitivity, confidence=level)
    assert stair.error(level, integer=False) <= target
    assert target < Staircase(sensitivity, stair.epsilon * less).error(level, integer=False)
    if target < 5 * sensitivity:
        bounded = BoundedLaplace.for_error(target, sensitivity=sensitivity, lower=0, upper=9, confidence=level)
        assert bounded.error(level) <= target
        assert target < BoundedLaplace(sensitivity, bounded.epsilon * less, 0, 9).error(level) or bounded.epsilon < 1e-8


@pytest.mark.parametrize("target", [0.4, 1, 5.7, 30, 1e6])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_for_error_of_integers(target: float, level: float) -> None:
    lap = Laplace.for_error(target, sensitivity=1, confidence=level, integer=True)
    assert lap.error(level, integer=True) <= target < Laplace(1, lap.epsilon * (1 - 1e-3)).error(level, integer=True)
    gauss = Gaussian.for_error(target, sensitivity=1, delta=1e-6, confidence=level, integer=True)
    assert gauss.error(level, integer=True) <= target
    less = Gaussian(1, gauss.epsilon * (1 - 1e-3), 1e-6).error(level, integer=True)
    assert target < less or gauss.epsilon < 1e-11  # where delta alone allows so little noise


@pytest.mark.parametrize("kind", [Laplace, Staircase])
@pytest.mark.parametrize("junk", [0, -1, math.nan, math.inf, "5", None, True])
def test_for_error_refuses_nonsense(kind: Any, junk: Any) -> None:
    refusal(lambda: kind.for_error(junk, sensitivity=1))
    refusal(lambda: kind.for_error(5, sensitivity=junk))
    refusal(lambda: kind.for_error(5, sensitivity=1, confidence=junk))
    refusal(lambda: kind(1, 1).error(junk))


@pytest.mark.parametrize("junk", [0, -1, 1.5, "2", None, True, 10**18, 10**400])
def test_a_bad_number_of_coordinates_is_refused(junk: Any) -> None:
    refusal(lambda: Laplace(1, 1).error(coordinates=junk))


def test_the_helpers_read_what_they_are_given() -> None:
    assert coordinates_of(np.array(5.0)) == coordinates_of(5) == (5,)
    assert plain_value([np.float64(1), np.int8(2)]) == (1, 2)
    assert all(type(x) is not np.float64 for x in plain_value([np.float64(1)]))
    assert sum(shares(None, [1.0, 2.0, 0.3])) == 1
    for junk in ([], np.array([]), b"12", "12", [0], [1, None]):
        refusal(lambda junk=junk: coordinates_of(junk))
    for junk in ([1], [1, 2, 3], [0, 1], [1, -1], [1, math.nan], "12", 5, [None, 1]):
        refusal(lambda junk=junk: shares(junk, [1.0, 1.0]))


def test_noise_that_no_float_can_hold_is_refused() -> None:
    refusal(lambda: Laplace(1e120, 1e-300))
    refusal(lambda: Laplace([1, 1e120], 1e-300))


@pytest.mark.parametrize(
    ("mechanism", "scales", "joint"),
    [
        (Laplace(3, 1), (3.0,), True),
        (Laplace([1, 1], 1), (2.0, 2.0), False),
        (Gaussian(1, rho=0.5), (1.0,), True),
        (Staircase(2, 1), (2.0,), False),
        (MixedNoise(1, 1, 1e-6), (1.0,), True),
    ],
    ids=repr,
)
def test_the_noise_of_a_mechanism_can_be_read_and_not_changed(
    mechanism: Any, scales: tuple[float, ...], joint: bool
) -> None:
    noise = mechanism.noise
    assert (noise.scales, noise.joint) == (scales, joint)
    assert len(noise.laws) == len(noise.sensitivities) == len(noise.lattice_steps) == len(scales)
    assert all(math.frexp(step)[0] == 0.5 for step in noise.lattice_steps)
    with pytest.raises(FrozenInstanceError):
        noise.scales = (0.1,)
    assert mechanism.noise == noise
