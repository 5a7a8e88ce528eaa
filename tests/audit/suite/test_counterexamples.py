"""Every broken mechanism is refuted and no repaired one is, each with an error probability of at most 1e-9."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from dither.audit.blackbox.measure import measure
from dither.audit.dataflow.replay import replay
from dither.audit.suite.counterexamples import COUNTEREXAMPLES, OUTPUT_COUNTEREXAMPLES, counterexample

SURE = 1 - 1e-9
NAMES = [case.name for case in COUNTEREXAMPLES]
CAUGHT_BY_REPLAY = [case for case in COUNTEREXAMPLES if case.caught_by_replay]


@pytest.mark.slow
@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=NAMES)
def test_the_broken_version_is_refuted(case):
    result = measure(
        case.broken, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=200_000, confidence=SURE
    )
    assert result.refuted


@pytest.mark.slow
@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=NAMES)
def test_the_repaired_version_is_not_refuted(case):
    trials = 300 if case in OUTPUT_COUNTEREXAMPLES else 600
    result = measure(
        case.repaired, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=trials, confidence=SURE
    )
    assert not result.refuted


@pytest.mark.slow
@pytest.mark.parametrize("case", CAUGHT_BY_REPLAY, ids=lambda case: case.name)
def test_bypasses_are_detected_by_replay(case):
    assert not replay(lambda x: case.broken(x, 1), case.x, case.x_neighbor, claim=case.claim).passed
    assert replay(lambda x: case.repaired(x, 1), case.x, case.x_neighbor, claim=case.claim, rounds=4).passed


def test_every_counterexample_has_a_name_and_a_reason():
    assert len(COUNTEREXAMPLES) >= 32
    assert len({*NAMES}) == len(NAMES)
    assert all(case.reason for case in COUNTEREXAMPLES)


def test_every_counterexample_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(COUNTEREXAMPLES)) == COUNTEREXAMPLES
    assert all(counterexample(case.name) is case for case in COUNTEREXAMPLES)
    assert len({*COUNTEREXAMPLES}) == len(COUNTEREXAMPLES)


def test_a_changed_counterexample_is_not_taken_for_the_original():
    changed = replace(COUNTEREXAMPLES[0], reason="another")
    assert changed != COUNTEREXAMPLES[0]
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(changed)
