"""A profile: a small noisy description of the private tables of a card, which was released once and is public.

Every histogram has weight 1 for a person, whatever the number of their rows: each of a person's N rows in a table
counts ``1 / N``. So the l1 sensitivity of a histogram is 1 when a person with all their rows is added or removed.
:mod:`dither.tables.profile` releases one; :mod:`dither.tables.compile.profiles` has the statements and the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dither.comparison import unhashable
from dither.guarantees import Guarantee
from dither.present import markup
from dither.present.text import with_error
from dither.public_module import public_in


@dataclass(frozen=True, kw_only=True)
class ProfileNoise:
    """The noise in each number of a part of a profile: Laplace noise of this scale, or normal noise whose standard
    deviation is the scale."""

    scale: float
    normal: bool = False

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in one number."""
        return self.scale if self.normal else math.sqrt(2) * self.scale


@dataclass(frozen=True)
class NoisyHistogram(ProfileNoise):
    """The noisy weights of people in bins.

    A bin goes from its edge up to the next one; the first and the last take in what is beyond, and there is an edge
    more than bins. In a histogram of people by a number (of rows, of keys) ``edges`` are the largest numbers of the
    bins, and as many as these.

    >>> NoisyHistogram((0, 10, 20), (103.0, 48.0), scale=4.0).deviation
    5.656854249492381
    """

    edges: tuple[float, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class NoisyKeys(ProfileNoise):
    """The noisy weight of the people at each public key; a person whose rows have several keys is shared by them."""

    keys: tuple[Any, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class NoisyNumber(ProfileNoise):
    """One noisy number of people, or sum of their weights."""

    value: float


@dataclass(frozen=True)
class ColumnProfile:
    """What is known of one column. A part that was not measured is None."""

    type: str = ""
    """The type of the column in the card."""
    values: NoisyHistogram | None = None
    """Weights of people by value, in whole numbers or doubles; of dates and timestamps in days since 1970-01-01."""
    keys: NoisyKeys | None = None
    """Weights of people by public key."""
    nulls: float | None = None
    """The weight of people whose value is NULL (or NaN), with the noise of a bin of ``values`` or a key of ``keys``."""
    whole: NoisyNumber | None = None
    """The weight of people whose value is a whole number, in a column of numbers."""
    by_rows: tuple[NoisyHistogram, ...] | None = None
    """``values`` for people of each class of rows per person (:attr:`TableProfile.classes`), in fewer bins."""
    private_keys: NoisyHistogram | None = None
    """How keys that are not public are shared: with the weight s of a key (the sum over its people), a bin from ``a``
    to ``b`` holds the sum over all keys of what s has between a and b. Divided by ``b - a`` it is at least the number
    of keys of weight b, and at most the number of keys above a. Weight above the last edge is in no bin."""
    keys_per_person: NoisyHistogram | None = None
    """People by the number of different keys they have, where the keys are not public."""


@dataclass(frozen=True)
class TableProfile:
    """What is known of one private table: people by their number of rows, and its columns."""

    people: NoisyHistogram | None
    """People by their number of rows; None where every row is a person of its own."""
    columns: Mapping[str, ColumnProfile] = field(default_factory=dict)
    total: NoisyNumber | None = None
    """How many people there are."""
    classes: tuple[int, ...] = ()
    """The largest numbers of rows of the classes of :attr:`ColumnProfile.by_rows`; the last takes in what is beyond."""


@public_in("dither")
@unhashable
@dataclass(frozen=True)
class Profile:
    """A noisy description of the private tables of a card, by their names in SQL; what planning uses.

    It was charged once, and everything that is computed from it is post-processing.

    >>> from dither.guarantees import PureDP
    >>> table = TableProfile(None, total=NoisyNumber(1012.0, scale=10.0))
    >>> Profile({"visits": table}, PureDP(0.1)).tables["visits"].total.value
    1012.0
    """

    tables: Mapping[str, TableProfile]
    cost: Guarantee
    released: datetime | None = None

    def text(self, width: int = 100) -> str:
        """Return it as text for a terminal: every column with bars of its people, and their bands."""
        from dither.present.drawing import terminal
        from dither.tables.card.profile_charts import table_charts

        lines = []
        for name, table in self.tables.items():
            lines += [self.heading(name), ""]
            for chart in table_charts(table).values():
                lines += [terminal(chart, width), ""]
        return "\n".join([*lines, *self.facts()])

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: a chart for each column of each table."""
        from dither.tables.card.profile_charts import table_charts

        parts = []
        for name, table in self.tables.items():
            parts.append(markup.heading(self.heading(name)))
            parts += [markup.picture(chart) for chart in table_charts(table).values()]
        return markup.block(*parts, markup.lines(self.facts()))

    def heading(self, name: str) -> str:
        """Return the name of a table and about how many people it has."""
        total = self.tables[name].total
        if total is None:
            return name
        from dither.tables.card.profile_charts import error_of

        value, error = with_error(round(total.value), error_of(total))
        return f"{name}: {value} ± {error} people"

    def facts(self) -> list[str]:
        """Return what it cost, when it was released, and what its numbers are."""
        when = [] if self.released is None else [f"released: {self.released:%Y-%m-%d}"]
        meaning = "Each person counts 1 in every chart, shared evenly by the person's rows; ± is the noise (95 %)."
        return [*when, f"cost: {self.cost}", meaning]
