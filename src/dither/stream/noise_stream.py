"""The noise of a series, step after step, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import arguments
from dither.randomness.laws import Law
from dither.stateful import Stateful
from dither.stream.filters import Filter, FilterState, restored, stored
from dither.stream.keyed import KeyedNoise, Lattice


@dataclass(frozen=True)
class Segment:
    """Steps ``first`` to ``first + filter.length - 1`` (from 1), which share a filter and a scale of noise."""

    first: int
    filter: Filter
    scale: float
    """The scale of the fresh noise, in lattice steps."""


class NoiseStream(Stateful):
    """The noise of running sums, step after step: the secret state in memory.

    It follows from the key, or goes on from a record (:meth:`record`) with a key of its own: what was drawn before
    stays in the sums, and fresh noise is that of the new key. A record has the size of the filter, not of the steps.

    >>> from dither import ZCDP
    >>> from dither.stream.mechanism import StreamPlan
    >>> StreamPlan(horizon=8, budget=ZCDP(0.5)).start(bytes(32)).advance(3).shape
    (3, 1)
    """

    def __init__(
        self,
        segment_at: Callable[[int], Segment],
        law: Law,
        series: int,
        key: bytes,
        recorded: Mapping[str, Any] | None = None,
    ) -> None:
        self._segment_at, self._law, self._series = segment_at, law, series
        self._keyed = KeyedNoise(key)
        self._step = 0
        self._state: FilterState | None = None
        self._segment: Segment | None = None
        self._before: Lattice | int = 0
        self._last: Lattice | int = 0
        if recorded is not None:
            self._step = int(recorded["step"])
            self._segment = segment_at(self._step)
            self._state = self._segment.filter.start(series, recorded["filter"])
            self._before, self._last = restored(recorded["before"]), restored(recorded["last"])

    @property
    def step(self) -> int:
        """How many steps were drawn."""
        return self._step

    def record(self) -> dict[str, Any]:
        """What later noise depends on, beside keys, after one step or more: numbers and arrays, and secret.

        >>> from dither import ZCDP
        >>> from dither.stream.mechanism import StreamPlan
        >>> plan = StreamPlan(horizon=8, budget=ZCDP(0.5))
        >>> stream = plan.start(bytes(32))
        >>> _ = stream.advance(3)
        >>> later = plan.start(bytes(32), stream.record())
        >>> bool((later.advance(5) == stream.advance(5)).all())
        True
        """
        assert self._state is not None
        before, last = (stored(np.asarray(item)) for item in (self._before, self._last))
        return {"step": self._step, "filter": self._state.record(), "before": before, "last": last}

    def advance(self, steps: int = 1) -> Lattice:
        """The noise of the next steps, a row for each, in lattice steps."""
        arguments.whole(steps, "steps")
        self._segment_at(self._step + steps)
        parts = []
        while steps:
            segment = self._segment_at(self._step + 1)
            if segment is not self._segment:
                self._segment, self._state = segment, segment.filter.start(self._series)
                self._before = self._last
            assert self._state is not None
            count = min(steps, segment.first + segment.filter.length - 1 - self._step)
            fresh = self._keyed.draw(self._law, segment.scale, self._step + 1, count, self._series)
            noise = self._state.advance(fresh) + self._before
            self._last, self._step = noise[-1].copy(), self._step + count
            parts.append(noise)
            steps -= count
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
