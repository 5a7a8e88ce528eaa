"""Series over time, small enough to be measured: whole transcripts of histories that differ in one person.

A person is in at most two of six steps. The broken versions take it that one is in one, or draw new noise whenever
their process is started again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.randomness import Exponential, Normal, resolve
from dither.stream.keyed import new_key
from dither.stream.mechanism import StreamPlan
from dither.stream.noise_stream import NoiseStream

CLAIM = ApproxDP(1, 0.01)
HISTORY = (5, 5, 5, 5, 5, 5)
NEIGHBOR = (6, 6, 5, 5, 5, 5)
"""With one person more, in the first two steps: the worst pattern."""


def plan_for(claim: Guarantee = CLAIM, *, participations: int = 2) -> StreamPlan:
    """The plan of six steps."""
    return StreamPlan(horizon=len(HISTORY), budget=claim, max_participations=participations)


def _transcripts(plan: StreamPlan, history: Any, size: int) -> NDArray[np.float64]:
    """So many transcripts of running sums, each under noise of its own: lanes of one key are independent."""
    law = Exponential(symmetric=True) if plan.pure else Normal()
    noise = NoiseStream(plan.segment, law, size, new_key(resolve(None))).advance(len(history))
    sums = np.cumsum(np.asarray(history, dtype=np.int64)) << plan.lattice_bits
    return plan.values(sums[None, :] + noise.T)


def running_sums(history: Any, size: int) -> NDArray[np.float64]:
    """Transcripts of a series in which a person may be in two steps."""
    return _transcripts(plan_for(), history, size)


def running_sums_of_a_tree(history: Any, size: int) -> NDArray[np.float64]:
    """The same with a pure guarantee."""
    return _transcripts(plan_for(PureDP(1)), history, size)


def for_one_participation(history: Any, size: int) -> NDArray[np.float64]:
    """Noise for people who are in one step, though a person is in two."""
    return _transcripts(plan_for(participations=1), history, size)


def redrawn(history: Any, size: int) -> NDArray[np.float64]:
    """A process that is started anew for every step, without the key of the step before."""
    steps = [_transcripts(plan_for(), history, size)[:, step] for step in range(len(history))]
    return np.stack(steps, axis=1)
