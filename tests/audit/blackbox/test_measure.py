"""The measured bound is true as often as it says, tight, and found early; each claim also shown on a broken twin."""

from __future__ import annotations

import json
import math
import multiprocessing
import pickle

import numpy as np
import pytest
from scipy import stats

import dither as dp
from dither.audit import Pair, replay, search
from dither.audit.blackbox.measure import _checkpoints, _shares, measure
from dither.audit.blackbox.region import learn_regions
from dither.audit.blackbox.views import collect_outputs
from dither.errors import InvalidArgument, WrongType
from support import refuses

pytestmark = pytest.mark.slow

SURE = 1 - 1e-10
FALSE_ALARM = 1e-9


def laplace(x, size):
    """Half the noise that epsilon = 1 needs."""
    return dp.Laplace(1, 2).release(np.full(size, x))


def leaking(x, size):
    """epsilon = 1, but for one run in twenty, which tells all."""
    revealed = np.random.default_rng().random(size) < 0.05
    return np.where(revealed, 1024.0 + x, dp.Laplace(1, 1).release(np.full(size, x)))


def assert_alarms_are_rare(is_refuted, runs):
    """A true claim is refuted at 90 % confidence in at most a tenth of the runs; two fifths would be seen."""
    permitted = stats.binom.isf(FALSE_ALARM, runs, 0.1)
    assert stats.binom.sf(permitted, runs, 0.4) > 0.98
    assert sum(is_refuted() for _ in range(runs)) <= permitted


@pytest.mark.parametrize(
    ("fn", "x", "y", "runs"),
    [
        pytest.param(dp.RandomizedResponse(epsilon=1), 0, 1, 120, id="randomized response"),
        pytest.param(dp.Laplace(1, 1), 0.0, 1.0, 120, id="laplace"),
        pytest.param(dp.Laplace(1, 1), 0, 1, 120, id="discrete laplace"),
    ],
)
def test_false_alarms_are_no_more_than_stated(fn, x, y, runs):
    """The claim is exactly true, and every measurement has two looks."""
    assert_alarms_are_rare(lambda: measure(fn, x, y, claim=1, trials=500, confidence=0.9).refuted, runs)


def test_more_than_the_claim_raises_alarms():
    """The events that the test above counts do happen, at a rate that it would refuse."""
    alarms = sum(
        measure(dp.RandomizedResponse(epsilon=2), 0, 1, claim=1, trials=500, confidence=0.9).refuted for _ in range(50)
    )
    assert stats.binom.sf(alarms - 1, 50, 0.1) < FALSE_ALARM


def test_false_alarms_with_a_delta():
    claim = dp.ApproxDP(1, 0.05)
    assert_alarms_are_rare(
        lambda: measure(leaking, 0.0, 1.0, claim=claim, trials=500, confidence=0.9, batch=True).refuted, 120
    )
    assert measure(leaking, 0.0, 1.0, claim=dp.ApproxDP(1, 0.02), trials=50_000, confidence=SURE, batch=True).refuted


def test_false_alarms_of_the_gaussian_mode():
    exact = dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-5)
    options = {"claim": dp.ApproxDP(1, 1e-5), "mode": "gaussian", "trials": 500}
    assert_alarms_are_rare(lambda: measure(exact, 0.0, 1.0, confidence=0.9, **options).refuted, 120)
    weak = dp.Gaussian(sensitivity=1, epsilon=8, delta=1e-5)
    assert measure(weak, 0.0, 1.0, confidence=SURE, **options).refuted


def test_a_million_runs_of_laplace_are_nearly_tight():
    """The bound is 2.3 standard errors of 0.002 below 1, so 0.975 and 1.025 are ten away."""
    result = measure(dp.Laplace(1, 1), 0.0, 1.0, trials=10**6)
    assert 0.975 < result.epsilon < 1.025
    assert result.trials == 10**6
    assert not result.refuted


def test_half_scale_laplace_is_refuted_by_a_few_hundred_runs():
    result = [measure(laplace, 0.0, 1.0, claim=1, batch=True) for _ in range(30)]
    early = sum(item.refuted and item.trials <= 500 for item in result)
    assert early >= 20
    assert all(item.refuted for item in result)
    assert not measure(dp.Laplace(1, 1), 0.0, 1.0, claim=1, trials=2000, confidence=SURE).refuted


@pytest.mark.parametrize("epsilon", [0.15, 1.5, 7.5])
def test_half_as_much_again_is_always_found(epsilon):
    assert measure(dp.Laplace(1, epsilon), 0.0, 1.0, claim=epsilon / 1.5, trials=10**6).refuted


def test_what_never_agrees_gives_the_logarithm_of_the_runs():
    result = measure(lambda x: x, 0, 1, trials=20_000)
    assert math.log(20_000) - 2 < result.epsilon < math.log(40_000)
    assert result.power > 0.99
    assert result.alpha < 0.001
    assert (result.region(0), result.region(1)) == ("x", "x_neighbor")


def test_the_same_data_show_nothing():
    result = measure(dp.Laplace(1, 1), 0.0, 0.0, trials=5000, claim=0, confidence=SURE)
    assert not result.refuted
    assert result.epsilon == 0


def test_gaussian_noise_needs_its_family():
    """At delta = 1e-5 the region sees little, the family all; and its answer is that of the exact curve."""
    noise = dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-5)
    free = measure(noise, 0.0, 1.0, delta=1e-5, trials=100_000)
    tight = measure(noise, 0.0, 1.0, delta=1e-5, trials=100_000, mode="gaussian")
    assert free.mu is None
    assert 0.75 < tight.epsilon < 1.2
    assert tight.epsilon > free.epsilon
    assert tight.mu == pytest.approx(1 / noise.scale, abs=0.06)
    assert "if it is Gaussian DP" in str(tight)


def test_checkpoints_share_the_failure_probability():
    for trials in (20, 250, 500, 10**5, 10**6):
        checkpoints = _checkpoints(trials, True)
        assert checkpoints[-1] == trials
        assert checkpoints == sorted(set(checkpoints))
        assert math.fsum(_shares(0.01, len(checkpoints))) <= 0.01
    assert _checkpoints(10**5, False) == [10**5]


def test_a_measurement_is_plain_data_and_words():
    result = measure(laplace, 0.0, 1.0, claim=1, batch=True, trials=4000, confidence=SURE)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["refuted"] is True
    assert plain["points"][0] == [0, 0]
    assert plain["points"][-1] == [1, 1]
    assert plain["claim"] == 1
    assert "REFUTED" in str(result)
    assert all(0 <= alpha <= 1 and 0 <= power <= 1 for alpha, power in result.points)
    with pytest.raises(AttributeError):
        result.epsilon = 0


def test_points_lie_where_the_law_allows():
    """Within what 10^5 runs blur, power is at most e^epsilon alpha and 1 - (1 - alpha) / e^epsilon."""
    result = measure(dp.Laplace(1, 1), 0.0, 1.0, trials=100_000)
    for alpha, power in result.points:
        assert power <= min(math.e * alpha, 1 - (1 - alpha) / math.e) + 0.03


def test_several_processes_draw_different_noise():
    scale = 0.5
    result = measure(lambda x: dp.Laplace(1, 1).release(x + 0 * scale), 0.0, 1.0, trials=2000, processes=2, claim=0.1)
    assert result.trials <= 2000
    assert not multiprocessing.active_children()


def test_copied_generators_are_refused():
    rng = np.random.default_rng()
    with refuses(InvalidArgument, "identical outputs"):
        measure(lambda x, size: x + rng.laplace(size=size), 0.0, 1.0, trials=4000, processes=2, batch=True)
    assert not multiprocessing.active_children()


def test_ctrl_c_leaves_at_once():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(interrupted, 0, 1, trials=100)


def test_progress_is_shown_on_standard_error(capsys):
    measure(dp.Laplace(1, 1), 0.0, 1.0, trials=3000, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "measuring" in shown.err


def test_features_are_looked_at_instead():
    """The distance from the middle of both data sets shows nothing, its sign all."""
    options = {"trials": 20_000, "claim": 0.5, "confidence": SURE}
    assert not measure(dp.Laplace(1, 1), 0.0, 1.0, features=lambda outputs: np.abs(outputs - 0.5), **options).refuted
    assert measure(dp.Laplace(1, 1), 0.0, 1.0, features=lambda outputs: outputs < 0, **options).refuted


def test_a_function_that_always_fails_is_reported():
    assert "every run raised ZeroDivisionError" in str(measure(lambda _: 1 / 0, 0, 1, trials=100))


def test_arguments_are_checked():
    with refuses(WrongType, "a function of the data"):
        measure(3, 0, 1)
    with refuses(InvalidArgument, "mode"):
        measure(abs, 0, 1, mode="guess")
    with refuses(InvalidArgument, "delta"):
        measure(abs, 0, 1, mode="gaussian")
    with refuses(InvalidArgument, "that of the claim"):
        measure(abs, 0, 1, delta=0.1, claim=dp.ApproxDP(1, 0.2))
    with refuses(WrongType, "PureDP or ApproxDP"):
        measure(abs, 0, 1, claim=dp.ZCDP(1))
    with refuses(InvalidArgument, "outputs from"):
        measure(lambda *_: [1], 0, 1, batch=True)
    for bad in ({"trials": 1}, {"confidence": 1}, {"claim": -1}, {"delta": 1}, {"processes": 0}):
        with refuses(InvalidArgument):
            measure(abs, 0, 1, **bad)


def noisy_dict(x):
    noise = dp.Laplace(1, 1)
    return {"a": noise.release(float(x)), "b": noise.release(int(x)), "c": "yes" if x else "no"}


VALUES = {
    "measurement of numbers": lambda: measure(dp.Laplace(1, 1), 0.0, 1.0, trials=400),
    "measurement of dicts": lambda: measure(noisy_dict, 0, 1, trials=200),
    "measurement of constants": lambda: measure(lambda _: 1, 0, 1, trials=50),
    "search": lambda: search(dp.Laplace(1, 1), [("near", 0.0, 0.1), ("far", 0.0, 1.0)], trials=100),
    "replay": lambda: replay(dp.Laplace(1, 1).release, 0, 1),
    "pair": lambda: Pair("one more", np.zeros(2), np.zeros(3)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_equals_its_pickled_copy(name):
    value = VALUES[name]()
    restored = pickle.loads(pickle.dumps(value))
    assert restored == value
    assert hash(restored) == hash(value)
    assert value != "something else"


def test_values_with_other_content_differ():
    assert Pair("a", np.zeros(2), np.zeros(3)) == Pair("a", np.zeros(2), np.zeros(3))
    assert Pair("a", np.zeros(2), np.zeros(3)) != Pair("a", np.zeros(2), np.ones(3))
    assert measure(dp.Laplace(1, 1), 0.0, 1.0, trials=400) != measure(dp.Laplace(1, 9), 0.0, 1.0, trials=400)


def test_regions_that_contain_arrays_compare():
    outputs, labels = collect_outputs(np.repeat([0.0, 1.0, 2.0], 40)), np.arange(120) >= 60
    assert learn_regions(outputs, labels, 0.01) == learn_regions(outputs, labels, 0.01)
    assert learn_regions(outputs, labels, 0.01) != learn_regions(outputs, ~labels, 0.01)
