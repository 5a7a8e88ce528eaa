"""A profile: a small noisy description of the private tables of a card, which was released once and is public.

Every histogram has weight 1 for a person, whatever the number of their rows: each of a person's N rows in a table
counts ``1 / N``. So the l1 sensitivity of a histogram is 1 when a person with all their rows is added or removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from dither.public_module import public_in


@dataclass(frozen=True)
class NoisyHistogram:
    """The noisy weights of bins. ``scale`` is that of the Laplace noise in each; ``edges`` are one more than bins.

    A bin goes from its edge up to the next one; the first and the last take in what is beyond. In a histogram of whole
    numbers ``edges`` are the largest numbers of the bins, and as many as these.
    """

    edges: tuple[float, ...]
    weights: tuple[float, ...]
    scale: float


@dataclass(frozen=True)
class NoisyKeys:
    """The noisy weight of the people at each public key; a person whose rows have several keys is shared by them."""

    keys: tuple[Any, ...]
    weights: tuple[float, ...]
    scale: float


@dataclass(frozen=True)
class ColumnProfile:
    """What is known of one column: its values, its public keys, and the weight of people whose value is NULL."""

    values: NoisyHistogram | None = None
    """In whole numbers or doubles; of dates and timestamps, in days since 1970-01-01."""
    keys: NoisyKeys | None = None
    nulls: float | None = None


@dataclass(frozen=True)
class TableProfile:
    """What is known of one private table: people by their number of rows, and its columns."""

    people: NoisyHistogram | None
    """People by their number of rows; None where every row is a person of its own."""
    columns: Mapping[str, ColumnProfile] = field(default_factory=dict)
    rows: float | None = None
    """About how many people there are, where every row is a person."""


@public_in("dither")
@dataclass(frozen=True)
class Profile:
    """A noisy description of the private tables of a card, by their names in SQL; what planning uses.

    It was charged once, and everything that is computed from it is post-processing.
    """

    tables: Mapping[str, TableProfile]
    epsilon: float
    released: datetime | date | None = None
