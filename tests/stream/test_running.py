"""Running sums, windows, means and histograms: what they release, what they cost, and that their state exists once."""

from __future__ import annotations

import math
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither import ZCDP, ApproxDP, BudgetExceeded, InvalidArgument, InvalidData, PureDP, WrongType
from dither.randomness import SeededSource, is_seeded
from dither.stream import Histogram, RunningMean, RunningSum, SlidingWindow, StreamPlan
from dither.stream.running import StreamSession, as_values, budget_of
from support import refuses

BUDGET = {"epsilon": 1, "delta": 1e-9}


@pytest.mark.parametrize("options", [BUDGET, {"rho": 0.05}, {"epsilon": 1}, {**BUDGET, "factorization": "tree"}])
def test_running_sums_follow_the_truth(options):
    series = RunningSum(horizon=60, **options)
    released = [series.release(1000 + day) for day in range(60)]
    truth = np.cumsum(1000 + np.arange(60))
    errors = np.array([series.error(step, confidence=1 - 1e-12) for step in range(1, 61)])
    assert (np.abs(np.array(released) - truth) <= errors).all()
    assert series.step == 60
    with refuses(InvalidArgument, "step", "horizon"):
        series.release(1)


def test_the_release_is_sum_plus_noise_of_the_plan():
    source = SeededSource(3)
    series = RunningSum(horizon=20, sensitivity=Fraction(1, 4), **BUDGET, source=source)
    key = SeededSource(3).words(4).tobytes()
    noise = series.plan.values(series.plan.noises(key, 20)[:, 0])
    values = [0.25 * (step % 3) for step in range(20)]
    released = [series.release(value) for value in values]
    assert np.allclose(released, np.cumsum(values) + noise, atol=1e-9)
    assert is_seeded(released[0])


def test_windows_and_means():
    window = SlidingWindow(window=5, horizon=40, **BUDGET)
    mean = RunningMean(horizon=40, **BUDGET)
    for step in range(1, 41):
        total, average = window.release(1000), mean.release(1000)
        assert abs(total - 1000 * min(step, 5)) <= window.error(confidence=1 - 1e-12)
        assert abs(average - 1000) <= mean.error(confidence=1 - 1e-12)
    assert mean.error(40) == pytest.approx(mean.plan.error(40) / 40)
    assert window.error(40) == pytest.approx(window.plan.error(40, window=5))


def test_histograms():
    series = Histogram(bins=4, horizon=10, **BUDGET)
    for step in range(1, 11):
        noisy = series.release(np.array([0, 100, 200, 300], dtype=np.int32))
        assert (np.abs(noisy - step * np.array([0, 100, 200, 300])) <= series.error(confidence=1 - 1e-12)).all()
    with refuses(InvalidArgument, "4 numbers"):
        Histogram(bins=4, horizon=10, **BUDGET).release([1, 2])
    with refuses(InvalidData, "whole numbers", hiding=["0.123"]):
        Histogram(bins=2, horizon=10, **BUDGET).release([0.123, 2])
    with refuses(WrongType, "values"):
        Histogram(bins=2, horizon=10, **BUDGET).release("12")
    assert as_values(np.array([2**63 + 5], dtype=np.uint64), 1) == [2**63 - 1]


def test_values_that_are_no_numbers():
    series = RunningSum(horizon=10, **BUDGET)
    with refuses(WrongType, "value"):
        series.release("many")
    with refuses(InvalidData, "value"):
        series.release(float("nan"))
    assert series.step == 0


def test_a_ledger_charges_once(tmp_path):
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", limit=ApproxDP(1, 1e-6))
        with ledger.scope("visits"):
            series = RunningSum(horizon=30, epsilon=0.6, delta=1e-7)
            for _ in range(30):
                series.release(5)
            with pytest.raises(BudgetExceeded):
                RunningSum(horizon=30, epsilon=0.6, delta=1e-7)
        assert series.step == 30


def test_threads_never_share_a_step():
    """Each gets a step of its own: together they get the noise of all steps, each once."""
    series, released = RunningSum(horizon=64, **BUDGET, source=SeededSource(3)), []

    def work():
        released.extend(series.release(0) for _ in range(16))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    noise = series.plan.values(series.plan.noises(SeededSource(3).words(4).tobytes(), 64)[:, 0])
    assert sorted(released) == sorted(noise.tolist())
    assert series.step == 64


def test_budgets():
    assert budget_of(1, None, None) == PureDP(1)
    assert RunningSum(horizon=5, rho=0.5).guarantee == dp.ZCDP(0.5)
    with refuses(InvalidArgument, "rho"):
        budget_of(1, None, 0.5)
    with refuses(InvalidArgument, "epsilon"):
        budget_of(None, 1e-6, None)


def test_the_event_is_one_gaussian_release():
    plan = StreamPlan(horizon=5, budget=ApproxDP(1, 1e-6))
    epsilon = dp.accounting.best_of(plan.event, 1e-6).guarantee.epsilon
    assert epsilon == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("sensitivity", [1_000_001, 3, 0.5, 1 / 3])
def test_rounding_to_the_lattice_moves_nobody_further_than_the_sensitivity(sensitivity):
    """Halves that are rounded to even values would: 0.5 and 1,000,001.5 to 0 and 1,000,002."""
    plan = StreamPlan(horizon=7, budget=ZCDP(0.5), sensitivity=sensitivity)
    most = math.ceil(Fraction(sensitivity) * (1 << plan.lattice_bits))
    for eighths in range(-20, 20):
        value = plan.unit * Fraction(eighths, 8)
        one, other = (
            StreamSession(plan, SeededSource(1)).release([x])[0] for x in (value, value + Fraction(sensitivity))
        )
        assert (Fraction(other) - Fraction(one)) * (1 << plan.lattice_bits) <= most


def test_numbers_that_no_float_holds_are_the_largest_float():
    series = RunningSum(horizon=4, rho=0.5)
    assert series.release(10**400) == sys.float_info.max
    assert series.release(-(10**401)) == -sys.float_info.max
    assert abs(series.release(10**401 - 10**400)) < 100
    assert series.step == 3
