"""The noise of a series on a table: every number of every group is a lane of one plan, and one charge pays for all.

*Mechanism.* A period has a whole number for each aggregate and group. Aggregate a is multiplied by a public whole
number ``q_a``, so that all of them together are one vector of whole numbers, of which running sums are released by one
:class:`~dither.stream.mechanism.StreamPlan`.

*Sensitivity.* In one period a person adds to the groups of aggregate a at most ``S_a`` in the l1 norm, hence in the l2
norm (:mod:`dither.tables.compile.periods`). All lanes together change by at most ``sqrt(sum (q_a S_a)^2)`` in the l2
norm, and by ``sum q_a S_a`` in the l1 norm, which a pure guarantee counts. That, for k periods at least b apart
(:mod:`dither.stream.participants`), is the neighboring relation of the plan, whose proof holds.

*Shares.* The noise of aggregate a in its own units is that of the plan over ``q_a``: an aggregate with the weight w has
``q_a S_a`` proportional to ``sqrt(w)`` (to ``w`` under a pure guarantee), which is the share w of rho (of epsilon). The
``q_a`` are rounded; what they are does not matter for the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.budget_hooks import observed
from dither.exact import root_up
from dither.guarantees import Guarantee, PureDP
from dither.stream.mechanism import StreamPlan

_FINEST = 8
_BITS = 64


@dataclass(frozen=True)
class Lane:
    """One aggregate: how far a person moves it in one period, in whole numbers, what is worth 1, and its weight."""

    sensitivity: int
    unit: float
    weight: Fraction = Fraction(1)


def multipliers(lanes: Sequence[Lane], pure: bool) -> tuple[int, ...]:
    """The whole numbers that aggregates are multiplied by, so that each has its share.

    >>> multipliers([Lane(1, 1.0), Lane(100, 1.0)], pure=False)
    (800, 8)
    """
    if len(lanes) == 1:
        return (1,)
    wanted = [float(lane.weight) if pure else math.sqrt(lane.weight) for lane in lanes]
    scale = _FINEST * max(lane.sensitivity / share for lane, share in zip(lanes, wanted, strict=True))
    return tuple(max(1, round(scale * share / lane.sensitivity)) for lane, share in zip(lanes, wanted, strict=True))


@dataclass(frozen=True)
class SeriesMechanism:
    """Running sums of whole numbers, ``groups`` for each aggregate, with the noise of one plan.

    >>> from dither import ApproxDP
    >>> cost, schema = ApproxDP(1, 1e-6), {"participations": 2, "separation": 7}
    >>> plan = SeriesMechanism.plan_for([Lane(1, 1.0)], 3, cost, horizon=30, **schema)
    >>> mechanism = SeriesMechanism("daily", (Lane(1, 1.0),), 3, plan)
    >>> before = np.zeros(3, dtype=object)
    >>> mechanism.release(np.ones((2, 3), dtype=np.int64), before, [(1, bytes(32))]).shape
    (2, 3)
    """

    name: str
    lanes: tuple[Lane, ...]
    groups: int
    plan: StreamPlan

    @staticmethod
    def plan_for(
        lanes: Sequence[Lane], groups: int, budget: Guarantee, *, horizon: int, participations: int, separation: int
    ) -> StreamPlan:
        """The plan for these aggregates."""
        pure = isinstance(budget, PureDP)
        sizes = [q * lane.sensitivity for q, lane in zip(multipliers(lanes, pure), lanes, strict=True)]
        joint = Fraction(sum(sizes)) if pure else root_up(Fraction(sum(size**2 for size in sizes)), _BITS)
        return StreamPlan(
            horizon=horizon,
            budget=budget,
            max_participations=participations,
            min_separation=separation,
            sensitivity=joint,
            series=groups * len(lanes),
        )

    @cached_property
    def factors(self) -> NDArray[Any]:
        """What each lane is multiplied by."""
        return np.repeat(np.array(multipliers(self.lanes, self.plan.pure), dtype=object), self.groups)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole series costs, once."""
        return self.plan.guarantee

    @observed
    def release(
        self, increments: NDArray[np.int64], before: NDArray[Any], keys: Sequence[tuple[int, bytes]]
    ) -> NDArray[np.float64]:
        """Running sums with noise after some periods, a row for each, each aggregate in its own units.

        ``keys`` are the keys of the noise with the first period of each; that of the last is the first that is
        released now. ``before`` are the exact sums so far; ``increments`` has a row for each period. Both are whole
        numbers in the units of the statement. What they release was paid for when the series was charged.
        """
        factors, scale = self.factors, 1 << self.plan.lattice_bits
        sums = np.cumsum(increments.astype(object), axis=0) + before
        noise = self._noise(keys, len(increments))
        exact = sums * factors * scale + noise.astype(object)
        units = np.repeat(np.array([lane.unit for lane in self.lanes]), self.groups)
        return np.asarray((exact / scale).astype(np.float64) / factors.astype(np.float64) / units, dtype=np.float64)

    def _noise(self, keys: Sequence[tuple[int, bytes]], steps: int) -> NDArray[Any]:
        stream = self.plan.start(keys[0][1])
        for (_, key), (following, _) in pairwise(keys):
            stream.change_key(key)
            while stream.step < following - 1:
                stream.advance(min(following - 1 - stream.step, 256))
        stream.change_key(keys[-1][1])
        return stream.advance(steps)

    def errors(self, first: int, last: int, window: int | None = None) -> NDArray[np.float64]:
        """The ± (95 %) of each aggregate after some periods, a row for each: of running sums, or of the sums of the
        last ``window`` periods."""
        factors = multipliers(self.lanes, self.plan.pure)
        sizes = np.array([q * lane.unit for q, lane in zip(factors, self.lanes, strict=True)])
        whole = np.array([self.plan.error(step, 0.95, window) for step in range(first, last + 1)])
        return np.asarray(whole[:, None] / sizes, dtype=np.float64)


__all__ = ["Lane", "SeriesMechanism", "multipliers"]
