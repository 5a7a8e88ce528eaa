"""A known-broken mechanism together with its repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dither.audit.suite.subjects import Draw
from dither.guarantees import Guarantee


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A mechanism that violates its claim on the given pair of neighbors, and a repaired version that satisfies it.

    A counterexample of the suite is equal only to itself and is pickled by its name.
    """

    name: str
    reason: str
    """Why the claim is violated."""
    claim: Guarantee
    x: Any = field(repr=False)
    x_neighbor: Any = field(repr=False)
    broken: Draw = field(repr=False)
    repaired: Draw = field(repr=False)
    caught_by_replay: bool = False
    """Whether the data bypass the mechanisms, so that :func:`dither.audit.replay` detects the violation too."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (counterexample, (self.name,)) if self in all_counterexamples() else super().__reduce__()


def all_counterexamples() -> tuple[Counterexample, ...]:
    """The known-broken suite."""
    from dither.audit.suite.counterexamples import COUNTEREXAMPLES  # which needs this module

    return COUNTEREXAMPLES


def counterexample(name: str) -> Counterexample:
    """The counterexample of that name in the known-broken suite.

    >>> counterexample("half the scale").claim
    PureDP(1)
    """
    return next(case for case in all_counterexamples() if case.name == name)
