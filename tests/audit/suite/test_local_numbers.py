"""Local reports gotten wrong are refuted, and as they are, they are not."""

from __future__ import annotations

import pytest

from dither.audit.blackbox.measure import measure
from dither.audit.suite import local_numbers as suite

PAIRS = {
    "mean": (0.0, 0.5, suite.mean_of_two_kinds, suite.mean_reports),
    "distribution": (0.0, 0.5, suite.window_cut_off, suite.distribution_reports),
    "sets": ({0, 1, 2}, set(), suite.every_item, suite.set_reports),
    "words": ("aaa", "zzz", suite.asked_in_every_round, suite.word_reports),
    "days": (0, 1, suite.reset_every_day, suite.remembered_reports),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_broken_twins(name: str) -> None:
    x, neighbor, broken, repaired = PAIRS[name]
    assert measure(broken, x, neighbor, batch=True, claim=suite.CLAIM, trials=20_000).refuted
    assert not measure(repaired, x, neighbor, batch=True, claim=suite.CLAIM, trials=5_000, confidence=1 - 1e-9).refuted
