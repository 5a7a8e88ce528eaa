"""A known-broken mechanism together with its repair."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dither.audit.suite.subjects import Draw
from dither.guarantees import Guarantee


@dataclass(frozen=True)
class Counterexample:
    """A mechanism that violates its claim on the given pair of neighbors, and a repaired version that satisfies it."""

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


__all__ = ["Counterexample"]
