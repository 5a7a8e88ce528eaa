"""Private descent: how far one record can move a sum, who is in a batch, what it costs, and that it learns."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dither as dp
from dither.accounting import GaussianNoise, PoissonSampled, best_of, zcdp
from dither.budget_hooks import charging_to
from dither.errors import InvalidArgument, InvalidData, NotPrivate
from dither.learn.descent import (
    GRADIENT_SENSITIVITY,
    Factors,
    NoisyDescent,
    descend_privately,
    noise_for,
    noisy_descent,
)
from dither.learn.losses import Logistic, Multinomial, Squared
from dither.randomness import SYSTEM
from support import refuses

ANY = st.floats(-1e300, 1e300, allow_nan=False)
PLAIN = {"steps": 10, "step": 1.0, "clip": 1.0, "noise_multiplier": 3.0, "size": 100.0}


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 6), st.integers(1, 4), st.floats(1e-9, 1e9))
def test_one_record_changes_a_sum_by_no_more_than_the_sensitivity(data, d, k, clip):
    X = data.draw(arrays.arrays(np.float64, (3, d), elements=ANY))
    residuals = data.draw(arrays.arrays(np.float64, (3, k), elements=ANY))
    whole = Factors.of(X).clipped_sum(residuals, clip)
    less = Factors.of(X[1:]).clipped_sum(residuals[1:], clip)
    moved = sum(int(a - b) ** 2 for a, b in zip(whole.ravel().tolist(), less.ravel().tolist(), strict=True))
    assert moved <= GRADIENT_SENSITIVITY**2


@pytest.mark.parametrize("k", [1, 7])
def test_the_sensitivity_is_attained(k):
    """A long gradient along one axis fills it, to a part in 2^15: nothing is given away."""
    total = Factors.of(np.array([[-5.0, 0.0]])).clipped_sum(np.full((1, k), 1e3), 1.0)
    assert (
        0.999 * GRADIENT_SENSITIVITY
        < math.sqrt(sum(int(one) ** 2 for one in total.ravel().tolist()))
        <= GRADIENT_SENSITIVITY
    )


def clipped_sum(residuals, X, clip):
    """Return the sum of the examples' gradients, made one by one in floats, each shortened to a norm of ``clip``."""
    gradients = np.einsum("ij,ik->ijk", X, residuals)
    norms = np.linalg.norm(gradients, axis=(1, 2))
    return (gradients * np.minimum(1, clip / norms)[:, np.newaxis, np.newaxis]).sum(axis=0)


def test_the_sum_is_the_clipped_sum_whatever_the_order():
    rng = np.random.default_rng(1)
    X, residuals = rng.normal(size=(40_000, 5)), rng.normal(size=(40_000, 3))
    factors = Factors.of(X)
    total = factors.clipped_sum(residuals, 1.5)
    assert total / factors.steps_to_one(1.5, 3) == pytest.approx(
        clipped_sum(residuals, X, 1.5), abs=0.002 * 40_000**0.5
    )
    order = rng.permutation(40_000)
    assert np.array_equal(Factors.of(X[order]).clipped_sum(residuals[order], 1.5), total)
    assert not np.array_equal(clipped_sum(residuals[order], X[order], 1.5), clipped_sum(residuals, X, 1.5))


def coins(made, count):
    batches = made._batches(count, SYSTEM)
    return np.array([batches(h) for h in range(made.steps)])


def off(drawn, rate):
    """How many standard errors the number of inclusions is from that of independent coins."""
    return abs(drawn.sum() - rate * drawn.size) / math.sqrt(drawn.size * rate * (1 - rate))


def test_every_record_is_in_by_its_own_coin_in_every_step():
    created = NoisyDescent(**{**PLAIN, "steps": 400}, sampling_rate=0.1)
    drawn = coins(created, 500)
    assert off(drawn, 0.1) < 6.5
    assert off(drawn, 0.09) > 6.5
    assert off(drawn, 0.11) > 6.5
    sizes = drawn.sum(axis=1)
    assert np.unique(sizes).size > 5  # batches of a fixed size are no Poisson samples
    per_record = drawn.sum(axis=0)
    assert 15 < per_record.var() < 75  # 400 * 0.09 = 36; dealt once in ten it would be 0
    pairs = (drawn[1:] & drawn[:-1]).mean()
    assert abs(pairs - 0.01) < 6.5 * math.sqrt(0.01 / drawn.size * 3)


def test_dealt_records_are_in_one_step_of_every_pass():
    created = NoisyDescent(**{**PLAIN, "steps": 20}, sampling_rate=0.1, sampling="once")
    drawn = coins(created, 300)
    assert np.all(drawn[:10].sum(axis=0) == 1)
    assert np.all(drawn[10:].sum(axis=0) == 1)
    assert not np.array_equal(drawn[:10], drawn[10:])
    assert off(drawn[:1], 0.1) < 6.5


def test_the_sampler_is_part_of_the_event():
    poisson = NoisyDescent(**PLAIN, sampling_rate=0.1, delta=1e-5)
    dealt = NoisyDescent(**PLAIN, sampling_rate=0.1, sampling="once", delta=1e-5)
    assert poisson.event == 10 * PoissonSampled(GaussianNoise(3), Fraction(1, 10))
    assert dealt.event == GaussianNoise(3)
    assert poisson.guarantee < dealt.guarantee
    with refuses(NotPrivate, "other samples have no account"):
        NoisyDescent(**PLAIN, sampling_rate=0.1, sampling="shuffled")
    with refuses(InvalidArgument):
        NoisyDescent(**PLAIN, sampling_rate=0.3, sampling="once")


def test_full_batches_cost_what_one_gaussian_costs():
    created = NoisyDescent(**PLAIN)
    assert created.guarantee == dp.ZCDP(Fraction(10, 18)) == zcdp.guarantee(created.event)
    exact = NoisyDescent(**PLAIN, delta=1e-5).guarantee
    one = dp.Gaussian(sensitivity=math.sqrt(10) / 3, epsilon=exact.epsilon, delta=1e-5)
    assert one.sigma == pytest.approx(1, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "rate", "steps"), [(3.0, 0.1, 10), (1.0, 0.01, 200), (5.0, 1.0, 30)])
def test_the_account_is_that_of_dp_accounting(noise, rate, steps):
    created = NoisyDescent(**{**PLAIN, "noise_multiplier": noise, "steps": steps}, sampling_rate=rate, delta=1e-5)
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    by_loss = pld.PLDAccountant(value_discretization_interval=1e-3).compose(event, steps).get_epsilon(1e-5)
    by_order = rdp.RdpAccountant().compose(event, steps).get_epsilon(1e-5)
    assert created.guarantee.epsilon == pytest.approx(by_loss, rel=0.02)
    assert created.guarantee.epsilon <= by_order * (1 + 1e-6)


@pytest.mark.slow
def test_noise_for_is_the_least_that_keeps_to_the_guarantee():
    for rate in (1.0, 0.05):
        noise = noise_for(1, 1e-5, steps=8, sampling_rate=rate)

        def cost(noise, rate=rate):
            event = 8 * (PoissonSampled(GaussianNoise(noise), rate) if rate < 1 else GaussianNoise(noise))
            return best_of(event, 1e-5).guarantee.epsilon

        assert cost(noise) <= 1 < cost(noise * 0.999)


def test_the_noise_is_as_wide_as_it_says():
    created = NoisyDescent(steps=20, step=1.0, clip=2.0, noise_multiplier=3.0, size=10.0)
    trace = created.run(FlatLoss(), np.ones((50, 200)), np.zeros(50), start=np.zeros(200))
    spread = float(np.diff(trace.iterates, axis=0).std()) * 10 / 2
    # the variance of 4000 normal numbers: 6.5 standard errors are 15 %
    for scale, passes in ((3.0, True), (3.0 * 0.8, False), (3.0 * 1.25, False)):
        assert (abs(spread**2 / scale**2 - 1) < 6.5 * math.sqrt(2 / 4000)) is passes


class FlatLoss(Squared):
    """No gradient at all: what moves is noise."""

    def residual(self, scores, y):
        return np.zeros_like(y)


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_it_learns(rate):
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(4000), rng.normal(size=4000)])
    y = (rng.random(4000) < 1 / (1 + np.exp(-2 * X[:, 1]))).astype(float)
    noise = noise_for(1, 1e-5, steps=60) if rate == 1 else 40.0
    created = {"clip": 1.0, "step": 4.0, "size": 4000, "sampling_rate": rate, "delta": 1e-5}
    result = noisy_descent(Logistic(), X, y, start=np.zeros(2), steps=60, noise_multiplier=noise, **created)
    # noise in the last average: some 0.05 a coordinate; the slope is near 2
    assert 1 < result.average[1] < 3
    assert abs(result.average[0]) < 0.7


def test_a_noiseless_release_is_plain_clipped_descent():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 4)), np.eye(3)[rng.integers(0, 3, 200)]
    result = descend_privately(
        Multinomial(penalty=0.1), X, y, start=np.zeros((4, 3)), steps=np.full(20, 0.5), clip=0.7, size=200.0,
        release=lambda sums: sums.astype(float),
    )  # fmt: skip
    beta = np.zeros((4, 3))
    for _ in range(20):
        beta = beta - 0.5 * (clipped_sum(Multinomial().residual(X @ beta, y), X, 0.7) / 200 + 0.1 * beta)
    assert result.last == pytest.approx(beta, abs=1e-3)


def test_a_ledger_scope_is_charged_once():
    created, spent = NoisyDescent(**PLAIN), []

    class Keeper:
        def spend(self, what, compute, *, private, recordable=True):
            spent.append((what.guarantee, private))
            return compute()

    with charging_to(Keeper()):
        created.run(Squared(), np.ones((5, 1)), np.ones(5), start=0.0)
    assert spent == [(dp.ZCDP(Fraction(10, 18)), True)]


@pytest.mark.parametrize(
    "changed",
    [
        {"steps": 0},
        {"clip": 0},
        {"clip": math.nan},
        {"noise_multiplier": -1},
        {"noise_multiplier": math.inf},
        {"size": 0},
        {"step": 0},
        {"sampling_rate": 0},
        {"sampling_rate": 1.5},
        {"delta": 0},
        {"momentum": 1},
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(changed):
    with pytest.raises(ValueError, match="expected"):
        NoisyDescent(**{**PLAIN, **changed})


def test_samples_need_a_delta():
    with refuses(NotPrivate, "delta"):
        _ = NoisyDescent(**PLAIN, sampling_rate=0.5).guarantee


@pytest.mark.parametrize("X", [[1.0], [[1.0, 2.0]], [[1.0], [1.0]]], ids=str)
def test_data_out_of_shape_are_refused(X):
    with refuses(InvalidData):
        NoisyDescent(**PLAIN).run(Squared(), np.array(X), np.ones(1), start=0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "steps", "rate"), [(0.1, 1e-9, 10, 0.001), (0.005, 1e-5, 100, 0.01)])
def test_the_noise_found_is_the_smallest(epsilon, delta, steps, rate):
    noise, goal = noise_for(epsilon, delta, steps, rate), dp.ApproxDP(epsilon, delta)

    def fits(noise):
        return best_of(steps * PoissonSampled(GaussianNoise(noise), rate), delta).guarantee <= goal

    assert fits(noise)
    assert not fits(noise * (1 - 3e-5))


def test_delta_alone_may_pay_for_all_steps():
    assert noise_for(1, 1e-5, steps=1, sampling_rate=1e-6) < 0.02


def test_a_guarantee_that_no_accountant_can_show_is_refused(monkeypatch):
    def refuse(*_):
        raise dp.NotPrivate("no")

    monkeypatch.setattr("dither.learn.descent.renyi", SimpleNamespace(guarantee=refuse))
    monkeypatch.setattr("dither.learn.descent.best_of", refuse)
    with refuses(dp.NotPrivate, "none can"):
        noise_for(1, 1e-5, steps=10, sampling_rate=0.1)
