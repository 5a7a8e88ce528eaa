"""Series over time in the audit: the true ones pass, those of one participation and of redrawn noise do not."""

from __future__ import annotations

import numpy as np
import pytest

from dither import PureDP
from dither.audit.blackbox.measure import measure
from dither.audit.suite import streams

PAIR = streams.HISTORY, streams.NEIGHBOR


@pytest.mark.slow
@pytest.mark.parametrize("broken", [streams.for_one_participation, streams.redrawn])
def test_broken_series_are_refuted(broken):
    result = measure(broken, *PAIR, batch=True, claim=streams.CLAIM, trials=100_000, confidence=1 - 1e-9)
    assert result.refuted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "claim"), [(streams.running_sums, streams.CLAIM), (streams.running_sums_of_a_tree, PureDP(1))]
)
def test_true_series_are_not(draw, claim):
    result = measure(draw, *PAIR, batch=True, claim=claim, trials=5_000, confidence=1 - 1e-9)
    assert not result.refuted


def test_transcripts_are_running_sums():
    transcripts = streams.running_sums(streams.HISTORY, 4000)
    deviations = np.sqrt([streams.plan_for().variance(step) for step in range(1, 7)])
    assert transcripts.shape == (4000, 6)
    assert (np.abs(transcripts.mean(axis=0) - np.cumsum(streams.HISTORY)) < 7 * deviations / np.sqrt(4000)).all()
