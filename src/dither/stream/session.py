"""A started series: what was paid for once, and the state that must exist once."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from fractions import Fraction
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.budget_hooks import observed, starts_session
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.guarantees import Guarantee
from dither.mechanisms.values import scalar
from dither.randomness import Source, mark
from dither.stateful import Stateful
from dither.stream.keyed import new_key
from dither.stream.mechanism import StreamPlan
from dither.validation import saturate

Floats = NDArray[np.float64]


class StreamSession(Stateful):
    """Running sums of one plan under one secret key; it cannot be copied, pickled or used by a forked process.

    Where a ledger charges for releases, constructing one is what it charges for: all steps are paid with it.

    >>> from dither import ZCDP
    >>> from dither.randomness import SYSTEM
    >>> session = StreamSession(StreamPlan(horizon=2, budget=ZCDP(0.5)), SYSTEM)
    >>> bool(abs(session.release([1000])[0] - 1000) < 100), session.step
    (True, 1)
    """

    plan: StreamPlan
    """The public plan."""

    @starts_session(cost="plan")
    def __init__(self, plan: StreamPlan, source: Source) -> None:
        self.plan, self._source = plan, source
        self._noise = plan.start(new_key(source))
        self._sums: list[int] = [0] * plan.series
        self._lock = threading.Lock()

    @property
    def step(self) -> int:
        """How many steps were released."""
        return self._noise.step

    @property
    def guarantee(self) -> Guarantee:
        """What all steps together cost."""
        return self.plan.guarantee

    @observed
    def release(self, values: Sequence[Any]) -> Floats:
        """The running sums with noise, after the values of the next step."""
        steps = [self._lattice(value) for value in values]
        if len(steps) != self.plan.series:
            raise InvalidArgument(
                "values", f"{self.plan.series:,} numbers, one for each series", f"{len(steps):,}", "pass them all"
            )
        with self._lock:  # two threads at once must not draw the same step
            noise = self._noise.advance()[0].tolist()
            self._sums = [total + step for total, step in zip(self._sums, steps, strict=True)]
            scale = 1 << self.plan.lattice_bits
            result = np.array([_quotient(total + w, scale) for total, w in zip(self._sums, noise, strict=True)])
        marked: Floats = mark(result, self._source)
        return marked

    def _lattice(self, value: Any) -> int:
        number = scalar(value)
        if number is None:
            raise WrongType("value", "a number", type(value).__name__, "pass the value of the step")
        if isinstance(number, int):
            return number << self.plan.lattice_bits
        if self.plan.series > 1:
            raise InvalidData("values", "whole numbers", "others", "round them, in units as small as needed")
        # half a step is always rounded upwards: rounding to even would move two values that are an odd number of steps
        # from each other by one step more
        return math.floor(Fraction(number) * (1 << self.plan.lattice_bits) + Fraction(1, 2))


def _quotient(noisy: int, scale: int) -> float:
    """A released number as the nearest float, or as the largest one where it is beyond all floats."""
    try:
        return noisy / scale
    except OverflowError:
        return float_info.max if noisy > 0 else -float_info.max


def as_values(values: Any, series: int) -> Sequence[Any]:
    """The values of one step of several series: a list, or a one-dimensional array of whole numbers.

    >>> as_values(np.array([1, 2], dtype=np.uint8), 2)
    [1, 2]
    """
    if isinstance(values, np.ndarray):
        if values.ndim != 1 or values.dtype.kind not in "biu":
            raise WrongType(
                "values", "one dimension of whole numbers", f"dtype {values.dtype}", "pass counts as integers"
            )
        numbers: list[Any] = saturate(values).tolist() if values.dtype.kind == "u" else values.tolist()
        return numbers
    if not isinstance(values, (list, tuple)):
        raise WrongType(
            "values", f"a list of {series:,} numbers", type(values).__name__, "pass one number for each series"
        )
    return values
