"""Propose-test-release: noise of a proposed size, if the data are far from any that would need more."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither import arguments
from dither.accounting import Approximate
from dither.budget_hooks import covered, spends
from dither.exact import log, up
from dither.guarantees import ApproxDP
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.pictures import Pictured
from dither.randomness import Source

_BITS = 80


@dataclass(frozen=True)
class ProposeTestRelease(Pictured):
    """Release ``f(x) + Lap(bound / e2)`` if the noisy distance of x to tables of larger local sensitivity
    allows it, nothing otherwise.

    *Statement.* Let ``distance`` be the least number of records to replace until the local sensitivity of f
    exceeds ``bound``. The outcome, a number or None, is (epsilon, delta)-DP (Dwork and Lei 2009), with e1 = e2
    = epsilon/2.

    *Why.* The distance has sensitivity 1, so releasing it with discrete ``Lap(1/e1)`` noise costs e1. If the
    local sensitivity at x exceeds the bound the distance is 0 and the noise is above ``t = ln(1/delta)/e1``
    with probability below delta; otherwise f moves by at most the bound, and Laplace noise costs e2.

    Examples
    --------
    >>> m = ProposeTestRelease(bound=0.1, epsilon=1, delta=1e-6)
    >>> m.release(5.0, distance=1000) is not None, m.release(5.0, distance=0) is None
    (True, True)
    """

    bound: float
    epsilon: float
    delta: float
    test: Laplace = field(init=False, repr=False, compare=False)
    """The mechanism of the distance."""
    answer: Laplace = field(init=False, repr=False, compare=False)
    """The mechanism of the answer."""

    def __post_init__(self) -> None:
        """Check the parameters; the test of the distance and the answer get half of epsilon each."""
        arguments.sensitivity(self.bound, "bound")
        half: Any = arguments.epsilon(self.epsilon) / 2
        arguments.delta(self.delta)
        object.__setattr__(self, "test", Laplace(1, half))
        object.__setattr__(self, "answer", Laplace(self.bound, half))

    @property
    def guarantee(self) -> ApproxDP:
        """Return (epsilon, delta)-DP."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def event(self) -> Approximate:
        """Return the event for accountants, which know only the guarantee."""
        return Approximate(arguments.epsilon(self.epsilon), self.delta)

    @property
    def threshold(self) -> int:
        """Return ``ceil(ln(1/delta) / (epsilon/2))``, which the noisy distance must exceed for an answer.

        Noise on a distance of 0 exceeds it with probability below delta.

        >>> ProposeTestRelease(1, 1, 1e-6).threshold
        28
        """
        half = arguments.epsilon(self.epsilon) / 2
        return math.ceil(Fraction(-log(arguments.delta(self.delta), _BITS)[0], 1 << _BITS) / half)

    @property
    def scale(self) -> float:
        """Return the scale of the noise on the answer."""
        return up(2 * arguments.sensitivity(self.bound) / arguments.epsilon(self.epsilon))

    def probability(self, distance: int) -> float:
        """Return the probability that an answer is given at this distance.

        >>> ProposeTestRelease(1, 1, 1e-6).probability(28 + 20) > 0.99
        True
        """
        q = math.exp(-float(arguments.epsilon(self.epsilon)) / 2)
        gap = self.threshold - arguments.whole(distance, "distance", 0)
        return q ** (gap + 1) / (1 + q) if gap >= 0 else 1 - q ** (-gap) / (1 + q)

    @spends
    def release(self, value: Any, distance: int, *, source: Source | None = None) -> float | None:
        """Return the noisy value, or None; that it is None is itself private."""
        steps = arguments.whole(distance, "distance", 0)
        answer: float = covered(self.answer.release)(value, source=source)  # first, since it checks the value
        noisy = covered(self.test.release)(steps, source=source)
        return answer if noisy > self.threshold else None
