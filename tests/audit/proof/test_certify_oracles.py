"""Certificates compared with brute force, mpmath and published numbers; every reduction to a worst pair with grids."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import dither as dp
from dither.audit.proof.certificate import zcdp_delta
from dither.audit.proof.certify import certify_unchecked as certify
from dither.audit.proof.noise import TruncatedShift, staircase_shift
from dither.audit.proof.selection import above_threshold, laplace_difference_tail, two_sided_delta
from dither.randomness import Staircase as StaircaseLaw

from . import oracle_certify as oracle


def changed(mechanism, /, **fields):
    for name, value in fields.items():
        object.__setattr__(mechanism, name, value)
    return mechanism


def encloses(interval, true, rel=1e-9, absolute=1e-12):
    low, high = interval
    return float(low) <= true * (1 + rel) + absolute and true * (1 - rel) - absolute <= float(high)


def test_naive_bounded_laplace_loses_one_and_a_half():
    result = certify(changed(dp.BoundedLaplace(1, 1, 0, 10), scale=1.0))
    assert_allclose(result.epsilon, 1.490, atol=5e-4)
    assert_allclose(result.epsilon_low, 1.490, atol=5e-4)
    assert result.refuted
    repaired = certify(changed(dp.BoundedLaplace(1, 1, 0, 10), scale=1.61157))
    assert repaired.holds
    assert certify(changed(dp.BoundedLaplace(1, 1, 0, 10), scale=1.61155)).refuted


def test_gaussian_of_the_laplace_variance():
    result = certify(changed(dp.Gaussian(1, 1, 0.0113), _scales=(math.sqrt(2),)))
    assert_allclose([result.delta_low, result.delta], 0.0396326, rtol=1e-5)
    assert result.refuted
    for sensitivity in (0.01, 100):  # the delta does not depend on it
        other = certify(changed(dp.Gaussian(sensitivity, 1, 0.0113), _scales=(sensitivity * math.sqrt(2),)))
        assert_allclose(other.delta, result.delta, rtol=1e-12)


def test_classical_gaussian_at_a_large_epsilon():
    sigma = math.sqrt(2 * math.log(1.25e5)) / 10
    result = certify(changed(dp.Gaussian(1, 10, 1e-5), _scales=(sigma,)))
    assert_allclose([result.delta_low, result.delta], 2.3e-5, rtol=0.02)
    assert result.refuted


def test_noisy_max_with_laplace_noise_of_scale_one():
    added = certify(dp.NoisyMax(1, 1, monotone=True, noise="laplace"))
    replaced = certify(changed(dp.NoisyMax(1, 1, noise="laplace"), rate=Fraction(1)))
    assert added.holds
    assert 0.98 <= added.epsilon_low <= added.epsilon == 1
    assert replaced.refuted
    assert 1.97 <= replaced.epsilon_low <= replaced.epsilon == 2
    # the quoted figures do not say how far apart the counts are: at one gap both are met, and farther ones come closer
    assert_allclose([two_counts(60, 1), two_counts(60, 2)], [0.98, 1.97], atol=5e-3)
    for moved, result in ((1, added), (2, replaced)):
        losses = [two_counts(gap, moved) for gap in (0, 5, 60, 1000)]
        assert losses == sorted(losses)
        assert losses[-1] <= result.epsilon_low


def two_counts(gap, moved):
    return float(mpmath.log(oracle.two_laplace_winner(gap) / oracle.two_laplace_winner(gap + moved)))


@pytest.mark.parametrize("ratio", [0.2, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("epsilon", [0, 0.5, 3])
def test_gaussian_curve(ratio, epsilon):
    result = certify(changed(dp.Gaussian(2, 1, 1e-6), _scales=(2 * ratio,))).curve(epsilon)
    true = oracle.gaussian_delta(ratio, epsilon)
    assert encloses(result, true)
    assert result[1] - result[0] <= max(1e-13 * result[1], 5e-324)


def test_gaussian_curve_far_out():
    """Where e^epsilon is not computed, and where delta is tiny, against mpmath."""
    with mpmath.workdps(400):
        r, e = mpmath.mpf(1) / 40, mpmath.mpf(1000)
        true = mpmath.ncdf(1 / (2 * r) - e * r) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * r) - e * r)
        low, high = certify(changed(dp.Gaussian(1, 1, 1e-6), _scales=(1 / 40,))).curve(1000)
        assert low <= true <= high <= low * 1.05
        r, e = mpmath.mpf(10), mpmath.mpf(3)
        true = mpmath.ncdf(1 / (2 * r) - e * r) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * r) - e * r)
        low, high = certify(changed(dp.Gaussian(1, 1, 1e-6), _scales=(10.0,))).curve(3)
        assert low <= true <= high <= low * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0, 0.4, 0.9])
def test_laplace_curve_of_numbers_and_integers(epsilon):
    small = certify(dp.Laplace(0.5, 1)).curve(epsilon)  # no integer moves
    true = oracle.density_delta(oracle.laplace(0, 1), oracle.laplace(1, 1), epsilon, -40, 40)
    assert encloses(small, true, 1e-6)
    assert small[1] - small[0] < 1e-15
    k = np.arange(-300, 301)
    for sensitivity in (1, 3):
        result = certify(dp.Laplace(sensitivity, 1)).curve(epsilon)
        b = sensitivity
        p, q = np.exp(-np.abs(k) / b), np.exp(-np.abs(k - sensitivity) / b)
        true = max(oracle.hockey_stick(p / p.sum(), q / q.sum(), epsilon), 1 - math.exp((epsilon - 1) / 2))
        assert encloses(result, true, 1e-9)


def test_curves_grow_with_the_shift():
    """The reduction to the largest shift: overlaps of centered intervals."""
    densities = {
        "laplace": lambda z: np.exp(-np.abs(z)) / 2,
        "normal": stats.norm.pdf,
        "cauchy": stats.cauchy.pdf,
        "staircase": oracle.staircase_density(1.0, 0.3),
    }
    for p, q in itertools.product(densities.values(), repeat=2):
        for epsilon in (0, 0.5):
            result = [
                oracle.density_delta(p, lambda z, d=d, q=q: 1.5 * q(1.5 * (z - d)), epsilon, -100, 100, 40_001)
                for d in (0, 0.3, 1.0, 2.5)
            ]
            assert np.all(np.diff(result) >= -2e-3)


def test_two_moved_coordinates_are_no_worse_than_one():
    """The reduction of vectors, for Laplace noise: shifts 0.4 and 0.6 against 1."""
    for epsilon in (0, 0.3, 0.7):
        z = np.linspace(-12, 12, 2401)
        dz = z[1] - z[0]
        p = np.multiply.outer(oracle.laplace(0, 1)(z), oracle.laplace(0, 1)(z)) * dz * dz
        q = np.multiply.outer(oracle.laplace(0.4, 1)(z), oracle.laplace(0.6, 1)(z)) * dz * dz
        assert oracle.hockey_stick(p, q, epsilon) <= 1 - math.exp((epsilon - 1) / 2) + 1e-4


@pytest.mark.parametrize("gamma", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("shift", [0.3, 1, 1.5, 2])
def test_staircase(gamma, shift):
    evidence = staircase_shift(Fraction(shift), StaircaseLaw(Fraction(1), Fraction(gamma)))
    density = oracle.staircase_density(1.0, gamma)
    z = np.linspace(-9.9995, 9.9995, 20000) + 1e-7
    loss = np.log(density(z) / density(z - shift))
    assert evidence.loss[0] <= loss.max() + 1e-9
    assert loss.max() <= evidence.loss[1] + 1e-9
    for epsilon in (0, 0.5):
        true = oracle.density_delta(density, lambda z: density(z - shift), epsilon, -60, 60, 1_200_001)
        assert encloses(evidence.at(Fraction(epsilon)), true, 1e-3)
    if shift == 1:
        low, high = evidence.at(Fraction(1, 2))
        assert high - low < 1e-60


@pytest.mark.parametrize("b", [0.3, 1.0, 4.0])
def test_bounded_laplace_over_all_pairs(b):
    """The reduction to a limit: all pairs of a grid lose no more, and the worst of them loses that."""
    low, high, part = 0.0, 3.0, 1.0
    evidence = TruncatedShift(
        Fraction(0), Fraction(3), Fraction(0), Fraction(1), Fraction(b), Fraction(1, 1 << 20)
    ).evidence()
    v = np.linspace(low, high, 601)
    worst, deltas = 0.0, {0.0: 0.0, 0.4: 0.0}
    for q, other in itertools.product(np.linspace(low, high, 31), repeat=2):
        if abs(q - other) <= part + 1e-12:
            p, r = oracle.truncated(q, b, low, high), oracle.truncated(other, b, low, high)
            worst = max(worst, float(np.log(p(v) / r(v)).max()))
            for epsilon in deltas:
                deltas[epsilon] = max(deltas[epsilon], oracle.density_delta(p, r, epsilon, low, high, 601))
    assert_allclose([float(end) for end in evidence.loss], worst, rtol=1e-5)
    for epsilon, true in deltas.items():
        assert true <= float(evidence.at(Fraction(epsilon))[1]) + 1e-4
        assert float(evidence.at(Fraction(epsilon))[0]) <= true + 1e-4


def test_bounded_laplace_integers_by_enumeration():
    mechanism = dp.BoundedLaplace(2, 1, 0, 6)
    b, edges = mechanism.integer_scale, np.arange(-0.5, 7)
    rows = []
    for x in range(7):
        cdf = np.where(edges < x, np.exp((edges - x) / b) / 2, 1 - np.exp((x - edges) / b) / 2)
        cells = np.diff(cdf)
        rows.append(cells / cells.sum())
    worst = max(np.log(rows[x] / rows[y]).max() for x, y in itertools.product(range(7), repeat=2) if abs(x - y) <= 2)
    assert worst <= certify(mechanism).epsilon <= 1


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [0, 0.3, 1, 1.5])
def test_smooth_noise_over_all_pairs(kind, epsilon):
    mechanism = dp.SmoothNoise(kind, 1, 1e-3)
    s, beta = mechanism.scale, mechanism.beta
    density = oracle.laplace if kind == "laplace" else oracle.normal
    worst = 0.0
    for b, d in itertools.product(np.linspace(-beta, beta, 9), (0, 0.5, 1)):
        wide, narrow = s * math.exp(max(b, 0)), s * math.exp(max(-b, 0))
        true = oracle.density_delta(density(0, wide), density(d, narrow), epsilon, -60 * s, 60 * s, 60_001)
        worst = max(worst, true)
    low, high = certify(mechanism).curve(epsilon)
    assert low <= worst * (1 + 1e-4) + 1e-9
    assert worst * (1 - 1e-4) <= high
    if epsilon >= 1:
        assert high - low <= 1e-9 * high


@pytest.mark.parametrize("kind", ["cauchy", "student"])
def test_heavy_smooth_noise_over_all_pairs(kind):
    mechanism = dp.SmoothNoise(kind, 1)
    s, beta, power = mechanism.scale, mechanism.beta, {"cauchy": 1, "student": 2}[kind]
    z = np.concatenate([-np.geomspace(1e-4, 1e8, 20001), np.geomspace(1e-4, 1e8, 20001)])
    worst = max(
        float((b + power * np.log((1 + ((z - d * min(1, math.exp(b)) / s) * math.exp(-b)) ** 2) / (1 + z * z))).max())
        for b in np.linspace(-beta, beta, 41)
        for d in (0, 0.5, 1)
    )
    result = certify(mechanism)
    assert worst <= result.epsilon <= 1
    assert_allclose(result.epsilon_low, worst, rtol=1e-2)


@pytest.mark.parametrize("gamma", [1.5, 3, 7.25])
def test_smooth_power_noise_over_all_pairs(gamma):
    mechanism = dp.SmoothNoise("power", 1, gamma=gamma)
    s, beta = mechanism.scale, mechanism.beta
    z = np.concatenate([-np.geomspace(1e-4, 1e8, 20001), np.geomspace(1e-4, 1e8, 20001)])
    worst = 0.0
    for b, d in itertools.product(np.linspace(-beta, beta, 41), (0, 0.5, 1)):
        moved = (z - d * min(1, math.exp(b)) / s) * math.exp(-b)
        loss = b + np.log1p(np.abs(moved) ** gamma) - np.log1p(np.abs(z) ** gamma)
        worst = max(worst, float(loss.max()))
    result = certify(mechanism)
    assert worst <= result.epsilon <= 1
    assert_allclose(result.epsilon_low, worst, rtol=1e-2)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("kind", ["exponential", "gumbel", "laplace", "flip"])
def test_selection_over_all_small_score_pairs(kind, monotone):
    """The reduction to two candidates: no pair of small score vectors loses more or has a larger delta."""
    mechanism = {
        "exponential": dp.Exponential(1, 1, monotone),
        "gumbel": dp.NoisyMax(1, 1, monotone),
        "laplace": dp.NoisyMax(1, 1, monotone, "laplace"),
        "flip": dp.PermuteAndFlip(1, 1, monotone),
    }[kind]
    result = certify(mechanism)
    ends = {epsilon: result.curve(epsilon) for epsilon in (0, 0.5)}
    largest, deltas = 0.0, dict.fromkeys(ends, 0.0)
    vectors = [(0, 0), (0, 2), (0, 1, 4), (0, 0, 6), (0, 30), (0, 0.5, 1)]
    for scores in vectors:
        p = mechanism.probabilities(scores)
        for other in oracle.neighbors(scores, 1, monotone):
            q = mechanism.probabilities(other)
            largest = max(largest, float(np.abs(np.log(p / q)).max()))
            for epsilon in deltas:
                deltas[epsilon] = max(deltas[epsilon], oracle.hockey_stick(p, q, epsilon))
    assert 0.85 <= largest <= result.epsilon + 1e-6
    assert largest <= result.epsilon_low + 1e-6
    for epsilon, true in deltas.items():
        assert true <= ends[epsilon][1] + 1e-9
    if kind in ("exponential", "gumbel"):
        p = np.linspace(0, 1, 100_001)
        for epsilon, (low, high) in ends.items():
            true = (p - math.exp(epsilon) * p / (p + (1 - p) * math.e)).max()
            assert_allclose([low, high], true, rtol=1e-6)


def test_two_candidates_with_laplace_noise():
    for gap in (-4.0, -0.5, 0.0, 1.0, 7.0):
        low, high = laplace_difference_tail(1.0, 1.0, gap)
        assert low <= oracle.two_laplace_winner(gap) <= high
    true = oracle.two_laplace_winner(-0.5) - math.exp(0.2) * oracle.two_laplace_winner(0.5)
    assert two_sided_delta(-0.5, Fraction(1), Fraction(1, 5)) <= true


@pytest.mark.parametrize(("z_scale", "y_scale"), [(1.0, 3.0), (2.0, 0.1), (5.0, 5.0)])
def test_difference_of_laplace_noises(z_scale, y_scale):
    for gap in (-3.0, 0.0, 2.0):
        true = float(oracle.sparse_outcome([], [(-gap, 1)], y_scale, z_scale))
        low, high = laplace_difference_tail(z_scale, y_scale, gap)
        assert low <= true <= high
        assert high - low < 0.01


def test_top_k_by_enumeration():
    mechanism = dp.TopK(2, 1, 1)
    result, rate = certify(mechanism), float(mechanism.choice.rate)
    largest, highs = 0.0, {epsilon: result.curve(epsilon)[1] for epsilon in (0, 0.5)}
    for scores in ([0, 0, 0], [0, 0, 30], [0, 0, 12, 12], [0, 5, 5]):
        p = oracle.peeled(np.exp(rate * np.array(scores)), 2)
        for other in oracle.neighbors(scores, 1, monotone=False):
            q = oracle.peeled(np.exp(rate * other), 2)
            largest = max(largest, float(np.abs(np.log(p / q)).max()))
            for epsilon, high in highs.items():
                assert oracle.hockey_stick(p, q, epsilon) <= high + 1e-12
    assert 0.99 <= largest <= result.epsilon_low


def test_top_k_among_many_candidates_is_binomial():
    """Below: a thousand candidates of each of two kinds come close to the independent choices of the limit."""
    k, length, n = 3, 2 / 3, 1000
    result = certify(dp.TopK(k, 1, 2))

    def kinds(weight):
        """P(the kinds of k choices), without what was chosen."""
        rows = []
        for order in itertools.product((0, 1), repeat=k):
            remaining, probability = [n, n], 1.0
            for kind in order:
                total = remaining[0] * weight + remaining[1]
                probability *= remaining[kind] * (weight if kind == 0 else 1) / total
                remaining[kind] -= 1
            rows.append(probability)
        return np.array(rows)

    best = max(oracle.hockey_stick(kinds(w), kinds(w * math.exp(-length)), 0.5) for w in np.geomspace(0.2, 5, 60))
    low, high = result.curve(0.5)
    assert_allclose(low, best, rtol=0.02)
    assert best <= high


def test_randomized_response_by_enumeration():
    for k in (2, 5):
        mechanism = dp.RandomizedResponse(1.3, k)
        p = mechanism.probability
        rows = np.full((k, k), (1 - p) / (k - 1))
        np.fill_diagonal(rows, p)
        result = certify(mechanism)
        assert_allclose([result.epsilon_low, result.epsilon], np.log(rows[0] / rows[1]).max(), rtol=1e-12)
        assert_allclose(result.curve(0.4), oracle.hockey_stick(rows[0], rows[1], 0.4), rtol=1e-12)


@pytest.mark.parametrize(("limit", "monotone"), [(1, False), (1, True), (3, False)])
def test_sparse_vector_integral(limit, monotone):
    """The threshold integral by mpmath: the worst questions come close to the bound, and no others exceed it."""
    b1, b2 = 2.0, 3.0
    bound = above_threshold(Fraction(1), b1, b2, limit, monotone=monotone).loss
    n, fall = limit + 4, 0 if monotone else 1
    p = oracle.sparse_outcome([(60, n)], [(0, limit)], b1, b2)
    q = oracle.sparse_outcome([(61, n)], [(-fall, limit)], b1, b2)
    worst = float(mpmath.log(p / q))
    assert_allclose([float(end) for end in bound], worst, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
def test_sparse_vector_integral_elsewhere(monotone):
    b1, b2, limit, fall = 2.0, 3.0, 2, 0 if monotone else 1
    bound = above_threshold(Fraction(1), b1, b2, limit, monotone=monotone).loss
    for height, count, start in itertools.product((-2, 5), (1, 6), (-3, 2)):
        p = oracle.sparse_outcome([(height, count)], [(start, limit)], b1, b2)
        for up in (0, 1):
            q = oracle.sparse_outcome([(height + up, count)], [(start - fall, limit)], b1, b2)
            assert abs(float(mpmath.log(p / q))) <= float(bound[1]) + 1e-9


def test_propose_test_release_by_summing_the_noise():
    for epsilon, delta in ((1, 1e-3), (0.5, 1e-6)):
        mechanism = dp.ProposeTestRelease(0.1, epsilon, delta)
        result = certify(mechanism)
        k = np.arange(-4000, 4001)
        p = np.exp(-np.abs(k) * epsilon / 2)
        assert_allclose([result.delta_low, result.delta], (p / p.sum())[k > mechanism.threshold].sum(), rtol=1e-9)
        assert_allclose(result.delta, mechanism.probability(0), rtol=1e-9)


def test_discrete_gaussian_has_the_rho_of_the_normal_law():
    """Renyi divergences of the discrete law, summed up, never exceed those of the normal one."""
    k = np.arange(-400, 401)
    for sigma, moved in itertools.product((0.4, 1.0, 5.0), (1, 2)):
        p, q = np.exp(-(k**2) / (2 * sigma**2)), np.exp(-((k - moved) ** 2) / (2 * sigma**2))
        p, q = p / p.sum(), q / q.sum()
        result = certify(changed(dp.Gaussian(moved, rho=0.5), _scales=(sigma,)))
        for alpha in (1.1, 2, 3.7):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                terms = np.where(q > 0, p**alpha * q ** (1 - alpha), 0)
            renyi = math.log(np.nansum(terms[np.isfinite(terms)])) / (alpha - 1)
            assert renyi <= alpha * result.rho * (1 + 1e-9)
        assert_allclose(result.rho, moved**2 / (2 * sigma**2), rtol=1e-12)
        assert oracle.hockey_stick(p, q, 1) <= result.curve(1)[1] + 1e-12


def test_zcdp_conversion():
    for rho, delta in itertools.product((0.01, 0.5, 5), (1e-3, 1e-9)):
        epsilon = dp.ZCDP(rho).to_approx(delta).epsilon
        assert_allclose(float(zcdp_delta(Fraction(repr(float(rho))), Fraction(epsilon))), delta, rtol=1e-6)
