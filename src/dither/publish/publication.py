"""What was released: estimates with intervals, whole counts that add up, and records, from the same noisy numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from dither.errors import InvalidArgument
from dither.guarantees import Guarantee
from dither.present import markup
from dither.present.digits import two_digits
from dither.present.terminal import printable
from dither.publish.allocate import normal_quantile
from dither.publish.domain import Domain, Levels
from dither.publish.integers import WholeCounts, whole_counts
from dither.publish.publication_files import write_files
from dither.publish.reconstruct import Estimates, SumEstimate
from dither.publish.records import records
from dither.publish.totals import PublicTotals
from dither.randomness import Source
from dither.tables.card.values import closest
from dither.tables.planning.automatic import LeftOut


@dataclass(frozen=True, eq=False)
class Publication:
    """What was released: estimates with intervals, whole counts that add up, and records.

    ``left`` says what the accounts had left after it, ``receipt`` is the ledger's, ``replayed`` says that it was
    recorded earlier and cost nothing now, ``notes`` what its numbers leave out, and ``plan`` what was asked for.

    Every ± is of the counts of bounded rows: each person counts for at most ``max_rows`` rows (None: every row is a
    person). ``left_out`` says how large a part of the rows that leaves out, which no ± includes; None where it was not
    learned.

    >>> import dither as dp
    >>> from dither.publish import Attribute, Domain, MarginalPlan, table_spec
    >>> domain = Domain([Attribute.flat("sex", ["f", "m"])])
    >>> publication = MarginalPlan(domain, [table_spec(domain, ["sex"])]).release({(1,): [500, 600]}, dp.ZCDP(0.5))
    >>> publication.table("sex").column_names
    ['sex', 'value', 'lower', 'upper', 'integer']
    >>> print(publication)
    cost: ρ = 0.5 (zCDP)
    sex: 2 cells, ± 2.0 (95 %)
    """

    estimates: Estimates = field(repr=False)
    totals: PublicTotals = field(repr=False)
    guarantee: Guarantee
    has_whole_counts: bool = True
    """Whether all tables are margins of one that is small enough to hold."""
    source: Source | None = field(default=None, repr=False, kw_only=True)
    left: str = field(default="", kw_only=True)
    receipt: str = field(default="", kw_only=True)
    replayed: bool = field(default=False, kw_only=True)
    notes: tuple[str, ...] = field(default=(), repr=False, kw_only=True)
    plan: Mapping[str, Any] = field(default_factory=dict, repr=False, kw_only=True)
    max_rows: int | None = field(default=None, kw_only=True)
    left_out: LeftOut | None = field(default=None, kw_only=True)
    asked: tuple[tuple[str, ...], ...] = field(default=(), repr=False, kw_only=True)
    """The names of the tables' columns, in the order in which they were asked for."""

    @property
    def cost(self) -> str:
        """What it cost, in words."""
        return str(self.guarantee)

    @cached_property
    def counts(self) -> WholeCounts:
        """Whole, non-negative counts of which every table is a margin; refused where one table cannot hold them."""
        return whole_counts(self.estimates, totals=self.totals, source=self.source)

    @cached_property
    def errors(self) -> dict[tuple[str, ...], float]:
        """The mean half-width of the intervals of every table that was asked for."""
        variances, z = self.estimates.variances, normal_quantile(0.95)
        result = {}
        for levels in self.tables:
            shares = self.estimates.residuals.mean_variances(levels, variances)
            deviation = float(np.sqrt(shares @ np.array([*variances.values()])))
            result[self.estimates.domain.names(levels)] = z * self.estimates.unit * deviation
        return result

    @property
    def tables(self) -> list[Levels]:
        """The tables that were asked for, by their levels."""
        return [*dict.fromkeys(self.estimates.tables)]

    def names_of(self, levels: Levels) -> tuple[str, ...]:
        """The names of a table's columns, in the order in which they were asked for."""
        domain = self.estimates.domain
        return next((names for names in self.asked if domain.levels(names) == levels), domain.names(levels))

    def table(self, *names: str, confidence: float = 0.95) -> Any:
        """A table as Arrow: its keys, the unbiased value with its interval, and the whole count where there is one.

        Every name is a column, in this order, the last one running fastest: ``table("state", "county")`` has the
        counties, each beside its state. A list of names does as well.
        """
        names = _flat(names)
        estimate = self.estimates.table(names)
        domain = self.estimates.domain
        levels = domain.levels(names)
        places = np.unravel_index(np.arange(domain.size(levels)), domain.shape(levels))
        columns: dict[str, Any] = {}
        for attribute, level, place in zip(domain.attributes, levels, places, strict=True):
            for depth in range(1, level + 1):
                if depth == level or attribute.level_names[depth - 1] in names:
                    above = attribute.ancestors(level, depth)[place]
                    columns[attribute.level_names[depth - 1]] = attribute.keys[depth - 1].take(pa.array(above))
        low, high = estimate.interval(confidence)
        for name, values in (("value", estimate.value), ("lower", low), ("upper", high)):
            columns[name] = pa.array(np.ravel(values))
        if self.has_whole_counts:
            columns["integer"] = pa.array(np.ravel(self.counts.table(names)))
        order = _row_order(domain, names, levels)
        result = pa.table(columns).select([*names, *(name for name in columns if name not in names)])
        return result if order is None else result.take(pa.array(order))

    def sum_of(self, names: Sequence[str] | str, weights: Any) -> SumEstimate:
        """A weighted sum of the cells of a table, unbiased, with its interval.

        ``weights`` is a mapping of keys to weights (of tuples of keys, where the table has several columns), other
        cells having 0; or a number for each cell, in the order of the rows of :meth:`table`.
        """
        names = _flat((names,))
        domain, levels = self.estimates.domain, self.estimates.domain.levels(names)
        if isinstance(weights, Mapping):
            weights = _weights_by_key(self.table(*names).select([*names]), weights)
        array = np.asarray(weights, dtype=np.float64)
        order = _row_order(domain, names, levels)
        if order is not None and array.size == len(order):
            array, flat = np.empty(array.size), np.ravel(array)
            array[order] = flat
        return self.estimates.sum_of(names, array)

    def records(self) -> Any:
        """One row for each person of the whole counts, as Arrow."""
        return records(self.counts)

    def write(self, folder: str | os.PathLike[str], format: str = "csv", *, force: bool = False) -> list[str]:
        """Write a file for each table, ``records.parquet``, and ``publication.json``, which says what is promised.

        Returns the names of the files. ``format`` is ``"csv"`` or ``"parquet"``; ``force`` overwrites files that exist.
        """
        return write_files(self, folder, format, force=force)

    def _sizes(self) -> list[tuple[str, int, float]]:
        """The name, the number of cells and the ± of every table."""
        domain = self.estimates.domain
        return [
            (" × ".join(self.names_of(levels)) or "everybody", domain.size(levels), self.errors[domain.names(levels)])
            for levels in self.tables
        ]

    def __str__(self) -> str:
        output = [f"cost: {self.cost}" + (" (paid earlier: this is the recorded publication)" if self.replayed else "")]
        output += [f"left: {self.left}"] if self.left else []
        beside = "" if self.left_out is None else f"; {self.left_out}"
        output += [
            f"{name}: {size:,} cell{'s' if size != 1 else ''}, {_plus_minus(error)}{beside}"
            for name, size, error in self._sizes()
        ]
        return "\n".join(map(printable, [*output, *self.notes]))

    def _repr_html_(self) -> str:
        """For a notebook: the cost, what is left, every table with its ±, and the notes."""
        facts = [("cost", self.cost), *([("left", self.left)] if self.left else [])]
        facts += [] if self.left_out is None else [("beside every ±", str(self.left_out))]
        lines = [[name, f"{size:,}", _plus_minus(error)] for name, size, error in self._sizes()]
        return markup.block(
            markup.heading("Publication"),
            markup.facts(facts),
            markup.table(["table", "cells", "expected ± (95 %)"], lines, [False, True, True]),
            markup.lines(self.notes),
        )


def _plus_minus(error: float) -> str:
    return f"± {two_digits(error)} (95 %)" if error else "± 0 (public)"


def _flat(names: Sequence[Any]) -> tuple[str, ...]:
    """Names of columns, given one by one or as one list."""
    if len(names) == 1 and isinstance(names[0], (list, tuple)):
        return tuple(names[0])
    return tuple(names)


def _row_order(domain: Domain, names: Sequence[str], levels: Levels) -> Any:
    """The cells of a table in the order of its names, the last one running fastest; None: as in the domain."""
    axes = domain.axes(names)
    if axes == sorted(axes):
        return None
    others = [axis for axis in range(len(levels)) if axis not in axes]
    cells = np.arange(domain.size(levels)).reshape(domain.shape(levels))
    return np.ravel(np.transpose(cells, [*others, *axes]))


def _weights_by_key(keys: Any, weights: Mapping[Any, Any]) -> list[Any]:
    """The weight of each row of keys; 0 where none is given."""
    columns = [column.to_pylist() for column in keys.columns]
    rows = columns[0] if len(columns) == 1 else [*zip(*columns, strict=True)]
    given = {key[0] if len(columns) == 1 and isinstance(key, tuple) else key: value for key, value in weights.items()}
    unknown = [key for key in given if key not in {*rows}]
    if unknown:
        expected = f"keys of {' × '.join(keys.column_names)}" + (", as tuples" if len(columns) > 1 else "")
        fix = f"write {rows[0]!r}, for example" if len(columns) > 1 else closest(str(unknown[0]), map(str, rows))
        raise InvalidArgument("weights", expected, repr(unknown[0]), fix)
    return [given.get(row, 0) for row in rows]
