"""Alarms over a running sum."""

from __future__ import annotations

import pytest

from dither import InvalidArgument, PureDP, WrongType
from dither.stream import ThresholdAlarm
from support import refuses


def test_it_rings_near_the_threshold():
    early = late = 0
    for _ in range(200):
        alarm = ThresholdAlarm.for_error(300, 10_000, steps=365, confidence=0.95)
        steps = 0
        while not alarm.update(50):
            steps += 1
        total = 50 * (steps + 1)
        early += total < 10_000 - 300
        late += total > 10_000 + 300 + 50
    assert early + late < 40, "5 % of 200 are 10, and 40 has a probability below 1e-9"


def test_what_it_costs():
    alarm = ThresholdAlarm.for_error(300, 10_000, steps=365)
    assert alarm.error(365) <= 300
    assert alarm.error(365) > 299
    often = ThresholdAlarm.for_error(300, 10_000, steps=365, max_participations=3)
    assert often.guarantee.epsilon == pytest.approx(3 * alarm.guarantee.epsilon, rel=1e-6)
    assert ThresholdAlarm(5, epsilon=0.5).guarantee == PureDP(0.5)
    assert ThresholdAlarm(5, epsilon=1, monotone=True).error(10) < ThresholdAlarm(5, epsilon=1).error(10)


def test_several_thresholds_in_turn():
    alarm = ThresholdAlarm([10_000, 20_000, 30_000], epsilon=1)
    said = [alarm.update(5_000) for _ in range(3)]
    assert not said[0]
    while not alarm.done:
        alarm.update(5_000)
    assert alarm.passed == 3
    with refuses(InvalidArgument, "update"):
        alarm.update(1)


def test_refusals():
    with refuses(InvalidArgument, "threshold"):
        ThresholdAlarm([2, 1], epsilon=1)
    with refuses(InvalidArgument, "threshold"):
        ThresholdAlarm([], epsilon=1)
    with refuses(WrongType, "value"):
        ThresholdAlarm(1, epsilon=1).update("x")
    with refuses(InvalidArgument, "max_participations"):
        ThresholdAlarm(1, epsilon=1, max_participations=0)


def test_a_sum_beyond_all_floats_is_compared_all_the_same():
    alarm = ThresholdAlarm([10, 20], epsilon=1)
    assert not alarm.update(-(10**400))
    assert not alarm.update(5)
    assert alarm.update(10**400 + 10**6)
    assert alarm.update(10**401)
    assert alarm.done
