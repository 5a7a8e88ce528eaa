"""Answers come at ticks that double, and at no other moment."""

from __future__ import annotations

import math
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dither.server import ticks
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


DATED = {"auth.py", "backup.py", "events.py", "metrics.py", "oidc.py", "pins.py", "ticks.py", "use_cases/accounts.py",
         "use_cases/answers.py", "use_cases/budgets.py", "use_cases/users.py"}  # fmt: skip
"""What is dated for people, or expires after hours. All else goes by :class:`Clock` or ``time.monotonic``."""


def test_ticks_and_limits_do_not_read_a_clock_that_can_be_set():
    folder = Path(ticks.__file__).parent
    wall = re.compile(r"\btime\.time(_ns)?\b|datetime\.(now|utcnow|today)\b")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.py") if wall.search(path.read_text())}
    assert found <= DATED
