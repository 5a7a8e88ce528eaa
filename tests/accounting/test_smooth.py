"""The worst pair of noises of a private size: its divergence by quadrature, and that no other pair is worse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dither import DitherError, SmoothNoise
from dither.accounting import (
    POWERS,
    gaussian_smooth_delta,
    heavy_smooth_loss,
    laplace_smooth_delta,
    smooth_calibration,
    smooth_scale,
)
from support import each, refuses

CURVES: dict[str, Callable[[Fraction, Fraction, Fraction], float]] = {
    "laplace": laplace_smooth_delta,
    "gaussian": gaussian_smooth_delta,
}
EPSILONS = [0.1, 1, 3, 10]
DELTAS = [1e-3, 1e-6, 1e-9]


def exact(value: float) -> Fraction:
    return Fraction(repr(value))


def log_density(kind: str, x: Any, center: Any, scale: Any) -> Any:
    z = (x - center) / scale
    if kind == "laplace":
        return -abs(z) - mp.log(2 * scale)
    return -z * z / 2 - mp.log(scale * mp.sqrt(2 * mp.pi))


def quadrature(kind: str, epsilon: Any, wide: Any, narrow: Any, d: Any, *, q_wider: bool = False) -> Any:
    """The integral of (p - e^epsilon q)_+ with P at 0, Q at d, from the densities: the ends of the set where it
    is positive by bisection, then Gauss-Legendre.
    """
    epsilon, wide, narrow, d = (mp.mpf(v) for v in (epsilon, wide, narrow, d))
    sp, sq = (narrow, wide) if q_wider else (wide, narrow)

    def ratio(x: Any) -> Any:
        return log_density(kind, x, 0, sp) - log_density(kind, x, d, sq) - epsilon

    def excess(x: Any) -> Any:
        return mp.exp(log_density(kind, x, 0, sp)) - mp.exp(epsilon + log_density(kind, x, d, sq))

    farthest = float(wide) * (80 if kind == "laplace" else 30)
    grid = sorted({*np.linspace(-farthest, farthest, 401).tolist(), 0.0, float(d)})
    signs = [ratio(mp.mpf(x)) > 0 for x in grid]
    ends = []
    for i in range(len(grid) - 1):
        if signs[i] != signs[i + 1]:
            left, right = mp.mpf(grid[i]), mp.mpf(grid[i + 1])
            inside, outside = (left, right) if signs[i] else (right, left)
            for _ in range(100):
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if ratio(middle) > 0 else (inside, middle)
            ends.append(inside)
    total, places = mp.mpf(0), [-farthest, *ends, farthest]
    for left, right in itertools.pairwise(places):
        if ratio((mp.mpf(left) + right) / 2) > 0:
            cuts = {left, right, *(x for x in (0, d) if left < x < right)}
            near = [left + k * wide for k in (1, 4, 10, 25)] + [right - k * wide for k in (1, 4, 10, 25)]
            total += mp.quad(excess, sorted(cuts | {x for x in near if left < x < right}))
    return total


def divergence(kind: str, epsilon: float, sp: Any, sq: Any, d: Any) -> Any:
    """The same in floats and for arrays, from the tails: scales sp, sq of P and Q, shift d > 0."""
    sp, sq, d = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (sp, sq, d)))
    constant = np.log(sq / sp) - epsilon
    with np.errstate(all="ignore"):
        if kind == "gaussian":
            a, b, c = 1 / (2 * sq**2) - 1 / (2 * sp**2), -d / sq**2, d**2 / (2 * sq**2) + constant
            flat = np.abs(sq / sp - 1) < 1e-9
            root = np.sqrt(np.maximum(b * b - 4 * a * c, 0))
            low = np.where(flat, -c / b, 2 * c / (-b + root))  # the root that stays finite as a goes to 0
            high = np.where(flat, np.inf, (-b + root) / (2 * a))
            empty = b * b - 4 * a * c <= 0

            def below(x: Any, center: Any, scale: Any) -> Any:
                return special.ndtr((x - center) / scale)

        else:
            slope = 1 / sq - 1 / sp
            flat = np.abs(sq / sp - 1) < 1e-9
            at0, at_d = d / sq + constant, -d / sp + constant
            between = at0 / (1 / sp + 1 / sq)
            low = np.where(at0 > 0, between, np.where(flat, -np.inf, at0 / slope))
            high = np.where(flat, np.inf, d - at_d / slope)
            # Q wider: positive between at0 / slope < 0 and where it falls below again
            low = np.where((sq > sp) & ~flat, at0 / slope, low)
            high = np.where((sq > sp) & ~flat, np.where(at_d > 0, d - at_d / slope, between), high)
            empty = at0 <= 0

            def below(x: Any, center: Any, scale: Any) -> Any:
                z = (x - center) / scale
                return np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))

        grow = math.exp(epsilon)

        def outside(center: Any, scale: Any) -> Any:
            return below(low, center, scale) + below(2 * center - high, center, scale)

        def inside(center: Any, scale: Any) -> Any:
            first, last = np.minimum(low, high), np.maximum(low, high)
            return below(last, center, scale) - below(first, center, scale)

        wider_q = (sq > sp) & ~flat
        result = np.where(
            wider_q,
            np.where(empty, 0.0, inside(0 * d, sp) - grow * inside(d, sq)),
            outside(0 * d, sp) - grow * outside(d, sq),
        )
    return np.maximum(result, 0.0)


@pytest.mark.slow
def test_the_oracles_agree() -> None:
    rng = np.random.default_rng(5)
    for kind in CURVES:
        for _ in range(4):
            s, b, d = rng.uniform(1.5, 4), rng.uniform(0.01, 0.3), rng.uniform(0.1, 1)
            epsilon = rng.uniform(0.05, 0.6)
            for q_wider in (False, True):
                sp, sq = (s, s * math.exp(b)) if q_wider else (s * math.exp(b), s)
                slow = float(quadrature(kind, epsilon, max(sp, sq), s, d, q_wider=q_wider))
                assert divergence(kind, epsilon, sp, sq, d) == pytest.approx(slow, rel=1e-6, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CURVES)
@pytest.mark.parametrize("epsilon", [*EPSILONS, 50])
def test_the_worst_pair_by_quadrature(kind: str, epsilon: float) -> None:
    for delta in DELTAS[::2]:
        beta, s = smooth_calibration(kind, exact(epsilon), exact(delta))
        with mp.workdps(30):
            wide = mp.exp(mp.mpf(beta.numerator) / beta.denominator) * s.numerator / s.denominator
            truth = quadrature(kind, epsilon, wide, mp.mpf(s.numerator) / s.denominator, 1)
        result = CURVES[kind](exact(epsilon), s, beta)
        assert truth <= mp.mpf(result) <= truth * (1 + mp.mpf(10) ** -6), (delta, truth, result)


def points(kind: str, epsilon: float, delta: float) -> list[tuple[float, float]]:
    """The calibrated (beta, s), and others."""
    best, _ = smooth_calibration(kind, exact(epsilon), exact(delta))
    betas = [best, best / 10, best * Fraction(5, 4)]
    return [(float(b), float(smooth_scale(kind, exact(epsilon), exact(delta), b))) for b in betas]


@each("kind", CURVES)
@each("epsilon", EPSILONS)
@each("delta", DELTAS)
def test_no_pair_is_worse(kind: str, epsilon: float, delta: float) -> None:
    for beta, s in points(kind, epsilon, delta):
        claimed = CURVES[kind](exact(epsilon), Fraction(s), Fraction(beta))
        assert claimed < 1
        b, d = np.meshgrid(np.linspace(-beta, beta, 201), np.linspace(0.001, 1, 101))
        # units of the smaller S: b > 0 makes P the wider one, b < 0 makes Q
        all_pairs = divergence(kind, epsilon, s * np.exp(np.maximum(b, 0)), s * np.exp(np.maximum(-b, 0)), d)
        assert all_pairs.max() <= claimed * (1 + 1e-6), (beta, s)
        assert all_pairs.max() == pytest.approx(claimed, rel=1e-5)  # and the claimed one is among them


@pytest.mark.parametrize("kind", CURVES)
@settings(max_examples=60, deadline=None)
@given(st.floats(0.02, 20), st.floats(0.001, 0.9), st.floats(1.01, 30), st.floats(-1, 1), st.floats(0.001, 1))
def test_no_pair_is_worse_for_any_scale_that_is_certified(
    kind: str, epsilon: float, share: float, factor: float, place: float, d: float
) -> None:
    beta, s = share * epsilon, factor / epsilon
    claimed = CURVES[kind](Fraction(epsilon), Fraction(s), Fraction(beta))
    b = place * beta
    result = divergence(kind, epsilon, s * math.exp(max(b, 0)), s * math.exp(max(-b, 0)), d)
    assert result <= claimed * (1 + 1e-6) + 1e-13


@pytest.mark.parametrize("kind", CURVES)
def test_nothing_is_claimed_outside_the_side_condition(kind: str) -> None:
    curve, one = CURVES[kind], Fraction(1)
    for beta, s in [(one, Fraction(100)), (Fraction(1, 100), one), (Fraction(9, 10), Fraction(10)), (one * 2, one * 9)]:
        holds = (1 / float(s) if kind == "laplace" else math.exp(beta) / float(s) + 1 / (2 * float(s) ** 2)) + beta < 1
        assert not holds
        assert curve(one, s, beta) == 1.0
    assert curve(one, Fraction(100), Fraction(1, 100)) < 1


@each("power", [1, 2])
@each("beta", [1e-4, 0.05, 0.3, 1.0, 5.0])
@each("s", [0.3, 1.0, 3.0, 30.0])
def test_heavy_tails_against_all_places_shifts_and_stretches(power: int, beta: float, s: float) -> None:
    result = heavy_smooth_loss(Fraction(s), Fraction(beta), power)
    most = 0.0
    z = np.concatenate([np.linspace(-60, 60, 4001), np.geomspace(1e-3, 1e4, 400), -np.geomspace(1e-3, 1e4, 400)])
    for b in np.linspace(-beta, beta, 33):
        for d in min(1.0, math.exp(b)) / s * np.array([0.25, 0.5, 0.9, 1.0]):
            w = np.concatenate([z * math.exp(b), z, d + z * math.exp(b)])
            ratio = (1 + (w - d) ** 2 / math.exp(2 * b)) / (1 + w * w)
            most = max(most, float((b + power * np.log(ratio)).max()), float((-b - power * np.log(ratio)).max()))
    assert most <= result
    assert result <= most * (1 + 2e-3) + beta / 16 * (power - 1)


@each("gamma", [1.2, 1.7, 2.0, 3.5, 8.0, 30.0])
@each("beta", [1e-4, 0.05, 0.3, 1.0, 5.0])
@each("s", [0.3, 1.0, 3.0, 30.0])
def test_power_laws_against_all_places_shifts_and_stretches(gamma: float, beta: float, s: float) -> None:
    """The closed formula is the largest loss over a grid of all pairs, and no end of the stretch is left out."""
    result = heavy_smooth_loss(Fraction(s), Fraction(beta), 1, Fraction(gamma))
    log_z = np.concatenate([np.linspace(-25, 25, 2001), np.linspace(-2, 2, 2001)])
    z, most = np.concatenate([np.exp(log_z), -np.exp(log_z), [0.0]]), 0.0
    with np.errstate(divide="ignore"):
        at_first = np.logaddexp(0, gamma * np.log(np.abs(z)))
        for b in np.linspace(-beta, beta, 21):
            for d in min(1.0, math.exp(b)) / s * np.array([0.5, 1.0]):
                at_second = np.logaddexp(0, gamma * (np.log(np.abs(z - d)) - b))
                most = max(most, float((b + at_second - at_first).max()))
    assert most <= result * (1 + 1e-12)
    assert result <= most * (1 + 1e-4)


@each("beta", [1e-3, 0.3, 2.0])
@each("s", [0.3, 1.0, 30.0])
def test_the_cauchy_law_against_its_own_formula(beta: float, s: float) -> None:
    """For gamma = 2 the loss is arcosh of cosh(b) + e^-|b| / (2 s^2), convex in |b|."""
    with mp.workdps(40):
        true = max(mp.acosh(mp.cosh(b) + mp.exp(-mp.mpf(b)) / (2 * mp.mpf(s) ** 2)) for b in (0, beta))
        result = heavy_smooth_loss(Fraction(s), Fraction(beta), 1)
        assert true <= result <= true * (1 + 1e-12)


@pytest.mark.parametrize("delta", DELTAS)
def test_the_textbook_holds_with_slack_where_epsilon_is_small(delta: float) -> None:
    for epsilon in (0.1, 0.5, 1):
        for kind in CURVES:
            assert SmoothNoise(kind, epsilon, delta, "textbook").certificate() <= delta / 5  # type: ignore[arg-type]
    for epsilon in (0.001, 1, 10, 50):
        assert SmoothNoise("laplace", epsilon, delta, "textbook").certificate() <= delta
        assert SmoothNoise("cauchy", epsilon, calibration="textbook").certificate() <= epsilon / 2
    assert 10 <= 1e-6 / SmoothNoise("gaussian", 1, 1e-6, "textbook").certificate() <= 1000
    assert 10 <= 1e-6 / SmoothNoise("laplace", 1, 1e-6, "textbook").certificate() <= 1000


@pytest.mark.parametrize(("epsilon", "delta"), [(5, 1e-6), (10, 1e-6), (10, 1e-9), (50, 1e-6)])
def test_the_textbook_gaussian_fails_for_large_epsilon_and_is_refused(epsilon: float, delta: float) -> None:
    logarithm = math.log(2 / delta)
    beta, s = epsilon / (2 * logarithm), 5 * math.sqrt(2 * logarithm) / epsilon
    assert quadrature("gaussian", epsilon, s * math.exp(beta), s, 1) > delta  # a pair that tells more
    with refuses(DitherError, "true delta"):
        SmoothNoise("gaussian", epsilon, delta, "textbook")


@pytest.mark.slow
@each("kind", [*CURVES, *POWERS])
@each("epsilon", [0.001, 0.1, 1, 3, 10, 50])
def test_calibration_is_certified_and_no_larger_than_needed(kind: str, epsilon: float) -> None:
    for delta in [0.1, 1e-6, 1e-20] if kind in CURVES else [0.0]:
        loss, failure = exact(epsilon), exact(delta)
        beta, s = smooth_calibration(kind, loss, failure)
        assert Fraction(float(beta)) == beta  # what is certified is what is used
        assert Fraction(float(s)) == s

        def holds(scale: Fraction, beta: Fraction = beta, loss: Fraction = loss, failure: Fraction = failure) -> bool:
            if kind in POWERS:
                return heavy_smooth_loss(scale, beta, POWERS[kind]) <= loss
            return CURVES[kind](loss, scale, beta) <= failure

        assert holds(s)
        assert not holds(s * (1 - Fraction(1, 10**6)))
        for other in [beta * Fraction(k, 100) for k in (50, 80, 95, 105, 120)]:
            if other > Fraction(9, 10) * loss / (3 if kind == "student" else 1):
                continue  # beyond what is searched
            try:
                cost = smooth_scale(kind, loss, failure, other) / other
            except DitherError:
                continue  # no scale is enough for so large a beta
            assert s / beta <= cost * (1 + Fraction(1, 10**4))


def test_a_beta_that_no_noise_can_carry_is_refused() -> None:
    for kind, beta in (("laplace", 0.8), ("gaussian", 0.5)):
        with refuses(DitherError, "beta"):
            smooth_scale(kind, Fraction(1), Fraction(1, 10**6), exact(beta))


def test_the_second_calibration_is_remembered() -> None:
    for kind in (*CURVES, *POWERS):
        key = kind, Fraction(987, 1000), Fraction(0) if kind in POWERS else Fraction(1, 10**7)
        assert smooth_calibration(*key) is smooth_calibration(*key)
