"""The noise of a series on a table: every number of every group is a lane of one plan, and one charge pays for all.

*Mechanism.* A period has a whole number for each aggregate and group. Aggregate a is multiplied by a public whole
number ``q_a``, so that all of them together are one vector of whole numbers, of which running sums are released by one
:class:`~dither.stream.mechanism.StreamPlan`.

*Sensitivity.* In one period a person adds to the groups of aggregate a at most ``S_a`` in the l1 norm, hence in the l2
norm (:mod:`dither.tables.compile.statements`). All lanes together change by at most ``sqrt(sum (q_a S_a)^2)`` in the l2
norm, and by ``sum q_a S_a`` in the l1 norm, which a pure guarantee counts. That, for k periods at least b apart
(:mod:`dither.stream.participants`), is the neighboring relation of the plan, whose proof holds.

*Shares.* The noise of aggregate a in its own units is that of the plan over ``q_a``: an aggregate with the weight w has
``q_a S_a`` proportional to ``sqrt(w)`` (to ``w`` under a pure guarantee), which is the share w of rho (of epsilon). The
``q_a`` are rounded; what they are does not matter for the guarantee, as long as the sensitivity is theirs, which is
checked. They are recorded with the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.budget_hooks import observed
from dither.errors import NotPrivate
from dither.exact import root_up
from dither.guarantees import Guarantee, PureDP
from dither.stream.keyed import Lattice
from dither.stream.mechanism import StreamPlan

_FINEST = 8
_BITS = 64


@dataclass(frozen=True)
class Lane:
    """One aggregate: how far a person moves it in one period in whole numbers, what 1 of them is worth, and its
    weight."""

    sensitivity: int
    unit: float
    weight: Fraction = Fraction(1)


def multipliers(lanes: Sequence[Lane], pure: bool) -> tuple[int, ...]:
    """Return the whole numbers that aggregates are multiplied by, so that each has its share of the accuracy.

    All ``lanes`` get noise of one scale, so that an aggregate with a larger multiplier is more accurate. The share of
    an aggregate is its weight if ``pure`` (l1 sensitivities add up), and the square root of it otherwise (their squares
    do).
    """
    if len(lanes) == 1:
        return (1,)
    wanted = [float(lane.weight) if pure else math.sqrt(lane.weight) for lane in lanes]
    scale = _FINEST * max(lane.sensitivity / share for lane, share in zip(lanes, wanted, strict=True))
    return tuple(max(1, round(scale * share / lane.sensitivity)) for lane, share in zip(lanes, wanted, strict=True))


def joint_sensitivity(lanes: Sequence[Lane], factors: Sequence[int], pure: bool) -> Fraction:
    """Return how far a person moves all lanes together in one period, each multiplied by its factor: rounded up."""
    sizes = [q * lane.sensitivity for q, lane in zip(factors, lanes, strict=True)]
    return Fraction(sum(sizes)) if pure else root_up(Fraction(sum(size**2 for size in sizes)), _BITS)


@dataclass(frozen=True)
class SeriesMechanism:
    """Running sums of whole numbers, ``groups`` for each aggregate, with the noise of one plan."""

    name: str
    lanes: tuple[Lane, ...]
    groups: int
    plan: StreamPlan
    factors: tuple[int, ...]
    """The whole numbers that aggregates are multiplied by."""

    def __post_init__(self) -> None:
        """Refuse multipliers whose joint sensitivity exceeds that of the plan, as only a changed record has them."""
        plan, lanes, factors = self.plan, self.lanes, self.factors
        fits = len(factors) == len(lanes) and plan.series == self.groups * len(lanes)
        positive = all(type(factor) is int and factor > 0 for factor in factors)
        if not (fits and positive and joint_sensitivity(lanes, factors, plan.pure) <= Fraction(plan.sensitivity)):
            expected = "multipliers whose sensitivity is that of the plan"
            raise NotPrivate("recorded", expected, "a changed record", "leave the record as it was")

    @classmethod
    def planned(
        cls,
        name: str,
        lanes: tuple[Lane, ...],
        groups: int,
        budget: Guarantee,
        *,
        horizon: int,
        participations: int,
        separation: int,
    ) -> SeriesMechanism:
        """Plan the noise and the multipliers for these aggregates.

        Parameters
        ----------
        name
            The name of the series.
        lanes, groups
            The aggregates with their sensitivities, and the number of groups for each of which they are released.
        budget
            What the whole series costs.
        horizon, participations, separation
            The number of steps, the most steps with values of one person, and the fewest from one of them to the next.
        """
        pure = isinstance(budget, PureDP)
        factors = multipliers(lanes, pure)
        plan = StreamPlan(
            horizon=horizon,
            budget=budget,
            max_participations=participations,
            min_separation=separation,
            sensitivity=joint_sensitivity(lanes, factors, pure),
            series=groups * len(lanes),
        )
        return cls(name, lanes, groups, plan, factors)

    def record(self) -> dict[str, Any]:
        """Return plan and multipliers as plain values, public, with which a series continues under any later
        version."""
        return {"plan": self.plan.record(), "multipliers": list(self.factors)}

    @classmethod
    def from_record(cls, name: str, lanes: tuple[Lane, ...], groups: int, record: Mapping[str, Any]) -> SeriesMechanism:
        """Return the mechanism with the plan and the multipliers that were recorded."""
        return cls(name, lanes, groups, StreamPlan.from_record(record["plan"]), tuple(record["multipliers"]))

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the whole series, which is paid once."""
        return self.plan.guarantee

    @observed
    def release(self, increments: NDArray[Any], before: NDArray[Any], noise: Lattice) -> NDArray[np.float64]:
        """Return noisy running sums after these periods, a row for each, each aggregate in its own units.

        ``before`` are the exact sums so far; ``increments`` has a row for each period. Both are whole numbers in the
        units of the statement. ``noise`` is what the plan draws for the running sums of these periods, in lattice
        steps, and for nothing else. What is released was paid for when the series was charged.
        """
        factors, scale = np.repeat(np.array(self.factors, dtype=object), self.groups), 1 << self.plan.lattice_bits
        sums = np.cumsum(increments.astype(object), axis=0) + before
        exact = sums * factors * scale + noise.astype(object)
        units = np.repeat(np.array([lane.unit for lane in self.lanes]), self.groups)
        return np.asarray((exact / scale).astype(np.float64) / factors.astype(np.float64) / units, dtype=np.float64)

    def errors(self, first: int, last: int, window: int | None = None) -> NDArray[np.float64]:
        """Return the ± (95 %) of each aggregate after some periods, a row for each: of running sums, or of the sums of
        the last ``window`` periods.
        """
        sizes = np.array([q * lane.unit for q, lane in zip(self.factors, self.lanes, strict=True)])
        whole = np.array([self.plan.error(step, 0.95, window) for step in range(first, last + 1)])
        return np.asarray(whole[:, None] / sizes, dtype=np.float64)
