"""Every broken mechanism is caught, and its repair is not; with a chance of 1e-9 to be wrong about any."""

from __future__ import annotations

import pytest

from dither.audit.blackbox.measure import measure
from dither.audit.dataflow.replay import replay
from dither.audit.suite.counterexamples import COUNTEREXAMPLES
from dither.audit.suite.output_counterexamples import OUTPUT_COUNTEREXAMPLES

pytestmark = pytest.mark.slow

SURE = 1 - 1e-9
NAMES = [case.name for case in COUNTEREXAMPLES]
GLUE = [case for case in COUNTEREXAMPLES if case.caught_by_replay]


@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=NAMES)
def test_the_broken_one_is_refuted(case):
    result = measure(
        case.broken, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=200_000, confidence=SURE
    )
    assert result.refuted


@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=NAMES)
def test_its_repair_is_not(case):
    trials = 300 if case in OUTPUT_COUNTEREXAMPLES else 600
    result = measure(
        case.repaired, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=trials, confidence=SURE
    )
    assert not result.refuted


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [c for c in COUNTEREXAMPLES if c.name != "local sensitivity" and c not in OUTPUT_COUNTEREXAMPLES],
    ids=lambda c: c.name,
)
def test_its_repair_is_not_however_long_one_looks(case):
    result = measure(
        case.repaired, case.x, case.x_neighbor, batch=True, claim=case.claim, trials=5_000, confidence=SURE
    )
    assert not result.refuted


@pytest.mark.parametrize("case", GLUE, ids=lambda case: case.name)
def test_glue_is_caught_without_noise(case):
    assert not replay(lambda x: case.broken(x, 1), case.x, case.x_neighbor, claim=case.claim).passed
    assert replay(lambda x: case.repaired(x, 1), case.x, case.x_neighbor, claim=case.claim, rounds=4).passed


def test_the_catalogue_says_why():
    assert len(COUNTEREXAMPLES) >= 32
    assert len({*NAMES}) == len(NAMES)
    assert all(case.reason for case in COUNTEREXAMPLES)
