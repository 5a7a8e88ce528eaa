"""What a known-broken case consists of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dither.audit.suite.subjects import Draw
from dither.guarantees import Guarantee


@dataclass(frozen=True)
class Broken:
    """A mechanism that breaks its claim on these neighbours, and one that keeps it."""

    name: str
    why: str
    claim: Guarantee
    one: Any = field(repr=False)
    other: Any = field(repr=False)
    broken: Draw = field(repr=False)
    repaired: Draw = field(repr=False)
    glue: bool = False
    """Whether what is wrong is around the mechanisms rather than in them."""


__all__ = ["Broken"]
