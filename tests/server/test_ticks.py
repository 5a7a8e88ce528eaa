"""Answers come at ticks that double, and at no other moment."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from dither.server.ticks import delay, next_tick


@given(st.floats(0, 1e6), st.floats(1e-3, 60))
def test_a_tick_is_a_power_of_two_and_not_early(elapsed, tick):
    result = delay(elapsed, tick)
    assert result >= elapsed
    assert math.log2(result / tick) == round(math.log2(result / tick)) >= 0
    assert result == tick or result / 2 < elapsed


def test_few_values_are_possible():
    assert len({delay(i / 100, 0.25) for i in range(12_001)}) == 10


def test_moments_count_from_the_question():
    assert next_tick(1000.0, 1000.0, 0.25) == 1000.25
    assert next_tick(1000.0, 1003.0, 0.25) == 1004.0
