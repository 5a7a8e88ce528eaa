"""The card of a table: what is public about it, written once by its steward.

Names and types of columns, who the people are, public bounds and keys, how much one person may contribute, and the
budget. Nothing in it may be taken from the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal as Choice

from dither.guarantees import Guarantee
from dither.tables.tree import Value

Type = Choice["integer", "number", "text", "boolean", "date", "timestamp"]
MIN_EPSILON = 1e-4
MAX_INCIDENTS = 3
TYPES: tuple[Type, ...] = ("integer", "number", "text", "boolean", "date", "timestamp")


@dataclass(frozen=True)
class ColumnCard:
    """What is public about one column: its type, and where stated its bounds and its keys."""

    type: Type
    bounds: tuple[float, float] | None = None
    keys: tuple[Value, ...] | None = None


@dataclass(frozen=True)
class PublicTable:
    """A table that anybody may see, to be joined on a key: where it is, and the types of its columns."""

    source: str
    columns: Mapping[str, ColumnCard]


@dataclass(frozen=True)
class Card:
    """What is public about a table.

    ``name`` is the table's name in SQL and the dataset's in the ledger. ``source`` says where the rows are: a path or
    glob of Parquet or CSV files, ``file.duckdb::table``, ``postgresql://…::table`` or ``spark::table``. ``unit`` is the
    column that names the person, or None if every row is a person of their own. ``max_groups`` and ``max_rows`` bound
    what one person contributes: at most so many groups, at most so many rows in each.
    """

    name: str
    source: str
    columns: Mapping[str, ColumnCard]
    unit: str | None = None
    max_groups: int | Choice["auto"] = 1
    max_rows: int = 1
    public: Mapping[str, PublicTable] = field(default_factory=dict)
    ledger: str | None = None
    budget: Guarantee | None = None
    each_analyst: Guarantee | None = None
    each_person: Guarantee | None = None
    delta: float | None = None
    """The delta of one release, where one is needed: keys that are not public, Gaussian noise."""
    version: str | None = None
    """Which state of the data this is: answers recorded for another one are not given again."""

    # What follows does not change what an answer means: it is left out of the text that a recorded answer is found by.
    population: str | None = field(default=None, repr=False)
    """Whose people these are: tables of one population share each person's account. By default the table's own."""
    filter: Choice["sum", "advanced"] = field(default="sum", repr=False)
    """How the limits are kept; see :mod:`dither.ledger.units`."""
    min_epsilon: float = field(default=MIN_EPSILON, repr=False)
    """The least epsilon of a question: one that costs next to nothing is of use to an attacker only."""
    max_incidents: int = field(default=MAX_INCIDENTS, repr=False)
    """After so many errors while rows were read, the table is closed until its steward reopens it."""
    receipt: str | None = field(default=None, repr=False)
    """A file that keeps the last receipt: a ledger that does not hold it is refused."""
    incident_log: str | None = field(default=None, repr=False)
    """The steward's log of errors while rows were read; by default beside the ledger."""
