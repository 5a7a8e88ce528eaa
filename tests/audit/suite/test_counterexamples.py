"""Every broken mechanism is refuted and no repaired one is, each with an error probability of at most 1e-9."""

from __future__ import annotations

import pytest

from dither.audit.blackbox.measure import measure
from dither.audit.dataflow.replay import replay
from dither.audit.suite.counterexamples import COUNTEREXAMPLES
from dither.audit.suite.output_counterexamples import OUTPUT_COUNTEREXAMPLES

pytestmark = pytest.mark.slow

SURE = 1 - 1e-9
NAMES = [case.name for case in COUNTEREXAMPLES]
CAUGHT_BY_REPLAY = [case for case in COUNTEREXAMPLES if case.caught_by_replay]


@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=NAMES)
def test_the_broken_version_is_refuted(case):
    result = measure(
        case.broken, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=200_000, confidence=SURE
    )
    assert result.refuted


@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=NAMES)
def test_the_repaired_version_is_not_refuted(case):
    trials = 300 if case in OUTPUT_COUNTEREXAMPLES else 600
    result = measure(
        case.repaired, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=trials, confidence=SURE
    )
    assert not result.refuted


@pytest.mark.parametrize("case", CAUGHT_BY_REPLAY, ids=lambda case: case.name)
def test_bypasses_are_detected_by_replay(case):
    assert not replay(lambda x: case.broken(x, 1), case.x, case.x_neighbor, claim=case.claim).passed
    assert replay(lambda x: case.repaired(x, 1), case.x, case.x_neighbor, claim=case.claim, rounds=4).passed


def test_every_counterexample_has_a_name_and_a_reason():
    assert len(COUNTEREXAMPLES) >= 32
    assert len({*NAMES}) == len(NAMES)
    assert all(case.reason for case in COUNTEREXAMPLES)
