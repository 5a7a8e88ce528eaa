"""Seeing what a statistic hands to its mechanism, and what the mechanism was paid for."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.arguments import sensitivity
from dither.mechanisms import BoundedLaplace, Gaussian
from dither.mechanisms.additive import Additive


class Paid:
    """One release: the exact vector before noise, and the sensitivity the noise was made for."""

    def __init__(self, mechanism: Any, value: Any) -> None:
        self.mechanism = mechanism
        numbers = value.tolist() if isinstance(value, np.ndarray) else value
        self.vector = [Fraction(item) for item in (numbers if isinstance(numbers, list) else [numbers])]
        self.sensitivity = sensitivity(mechanism.sensitivity)

    def covers(self, other: Paid) -> bool:
        """Whether both were paid for alike and are no farther apart than that, in the norm of the noise."""
        assert type(self.mechanism) is type(other.mechanism)
        assert self.sensitivity == other.sensitivity, "the noise depends on the data"
        assert len(self.vector) == len(other.vector), "the length depends on the data"
        moves = [abs(a - b) for a, b in zip(self.vector, other.vector, strict=True)]
        if isinstance(self.mechanism, Gaussian):
            return sum(m * m for m in moves) <= self.sensitivity**2
        return sum(moves, Fraction(0)) <= self.sensitivity


@pytest.fixture(scope="session")
def paid() -> Callable[[Callable[[], Any]], Paid]:
    """``paid(call)`` runs the call and gives its one release."""

    def run(call: Callable[[], Any]) -> Paid:
        seen: list[Paid] = []
        with pytest.MonkeyPatch.context() as patch:
            for kind in (Additive, BoundedLaplace):

                def spy(self: Any, value: Any, *, source: Any = None, original: Any = kind.release) -> Any:
                    seen.append(Paid(self, value))
                    return original(self, value, source=source)

                patch.setattr(kind, "release", spy)
            call()
        assert len(seen) == 1, "one release for one epsilon"
        return seen[0]

    return run
