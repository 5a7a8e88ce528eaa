"""Answers come at ticks that double, and at no other moment."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dither.server import jobs
from dither.server.jobs import next_tick, tick_delay


@given(st.floats(0, 1e6), st.floats(1e-3, 60))
def test_a_tick_is_a_power_of_two_and_not_early(elapsed, tick):
    result = tick_delay(elapsed, tick)
    assert result >= elapsed
    assert math.log2(result / tick) == round(math.log2(result / tick)) >= 0
    assert result == tick or result / 2 < elapsed


def test_few_values_are_possible():
    assert len({tick_delay(i / 100, 0.25) for i in range(12_001)}) == 10


def test_moments_count_from_the_question():
    assert next_tick(1000.0, 1000.0, 0.25) == 1000.25
    assert next_tick(1000.0, 1003.0, 0.25) == 1004.0


WHOLE_FILES = {"auth.py", "backup.py", "oidc.py"}
DATED = {"cards.py: keep", "cards.py: sign", "context.py: line", "monitoring.py: __init__", "questions.py: propose",
         "questions.py: publish", "tables.py: propose", "pool.py: __init__", "users.py: add",
         "users.py: grant"}  # fmt: skip
"""What is dated for people, or expires after hours. All else goes by :class:`Clock` or ``time.monotonic``."""


def test_ticks_and_limits_do_not_read_a_clock_that_can_be_set():
    wall = re.compile(r"\btime\.time(_ns)?\b|datetime\.(now|utcnow|today)\b")
    found, sites = set(), 0
    for path in Path(jobs.__file__).parent.rglob("*.py"):
        if path.name in WHOLE_FILES:
            continue
        source = path.read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                uses = len(wall.findall(ast.get_source_segment(source, node) or ""))
                found |= {f"{path.name}: {node.name}"} if uses else set()
                sites += uses
        sites -= len(wall.findall(source))
    assert found == DATED
    assert sites == 0  # none outside of a function
