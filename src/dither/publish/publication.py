"""What was released: estimates with intervals, whole counts that add up, and records, from the same noisy numbers.

The files of a publication: a table each, the records, and a description of what is promised.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dither.errors import InvalidArgument
from dither.guarantees import Guarantee
from dither.inference.measured import normal_quantile
from dither.ledger.accounts import Remaining
from dither.present import markup
from dither.present.notes import Note, share_left_out
from dither.present.text import printable, two_digits
from dither.publish.domain import Domain, Levels
from dither.publish.integers import WholeCounts, records, whole_counts
from dither.publish.residuals import Estimates, SumEstimate
from dither.publish.totals import PublicTotals
from dither.randomness import Source
from dither.tables.card.values import closest
from dither.tables.planning.automatic import ClippedShare


@dataclass(frozen=True, eq=False)
class Publication:
    """Released tables: estimates with intervals, whole counts that add up, and records.

    ``remaining`` is the budget that was left after it, ``receipt`` the ledger's receipt, ``replayed`` says that it was
    recorded earlier and cost nothing now, ``notes`` says which rows are not counted, and ``plan`` describes the plan.

    Every ± is of the counts of bounded rows: each person counts for at most ``max_rows`` rows (None: every row is a
    person). ``clipped_share`` is the share of the rows that this leaves out, which no ± includes; None where it was
    not learned.

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
    remaining: Remaining | None = field(default=None, kw_only=True)
    receipt: str = field(default="", kw_only=True)
    replayed: bool = field(default=False, kw_only=True)
    notes: tuple[Note, ...] = field(default=(), repr=False, kw_only=True)
    plan: Mapping[str, Any] = field(default_factory=dict, repr=False, kw_only=True)
    max_rows: int | None = field(default=None, kw_only=True)
    clipped_share: ClippedShare | None = field(default=None, kw_only=True)
    asked: tuple[tuple[str, ...], ...] = field(default=(), repr=False, kw_only=True)
    """The names of the tables' columns, in the order of the plan."""

    @property
    def cost(self) -> Guarantee:
        """Return the guarantee that was paid."""
        return self.guarantee

    @property
    def left(self) -> Guarantee | None:
        """Return the remaining budget of the analyst; None where there is no limit or it is not known."""
        return None if self.remaining is None else self.remaining.guarantee

    @cached_property
    def counts(self) -> WholeCounts:
        """Return whole, non-negative counts of which every table is a margin; refused if the table that holds them
        would have more than ``MAX_CELLS`` cells."""
        return whole_counts(self.estimates, totals=self.totals, source=self.source)

    @cached_property
    def errors(self) -> dict[tuple[str, ...], float]:
        """Return the mean half-width of the 95 % intervals of every table that was asked for, by its column names."""
        estimates, factor = self.estimates, normal_quantile(0.95) * self.estimates.unit
        return {
            estimates.domain.names(levels): factor
            * math.sqrt(estimates.residuals.mean_variance(levels, estimates.variances))
            for levels in self.tables
        }

    @property
    def tables(self) -> list[Levels]:
        """Return the levels of the tables that were asked for."""
        return [*dict.fromkeys(self.estimates.tables)]

    def names_of(self, levels: Levels) -> tuple[str, ...]:
        """Return the names of a table's columns, in the order in which they were asked for."""
        domain = self.estimates.domain
        return next((names for names in self.asked if domain.levels(names) == levels), domain.names(levels))

    def table(self, *names: str, confidence: float = 0.95) -> Any:
        """Return a table as Arrow: its keys, the unbiased value with its interval, and the whole count where there is
        one.

        Every name is a key column, and rows are ordered by these columns: ``table("state", "county")`` has a row for
        each county, with its state. The names may also be passed as one list.
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
        """Return a weighted sum of the cells of a table, unbiased, with its interval.

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
        """Return one row for each person of the whole counts, as Arrow."""
        return records(self.counts)

    def write(self, folder: str | os.PathLike[str], format: str = "csv", *, force: bool = False) -> list[str]:
        """Write a file for each table, ``records.parquet``, and ``publication.json`` with the guarantee.

        Returns the names of the files. ``format`` is ``"csv"`` or ``"parquet"``; ``force`` overwrites files that exist.
        """
        return write_files(self, folder, format, force=force)

    def _sizes(self) -> list[tuple[str, int, float]]:
        """Return the name of every table (its columns joined by ×), its number of cells, and its mean ± in rows."""
        domain = self.estimates.domain
        return [
            (" × ".join(self.names_of(levels)) or "everybody", domain.size(levels), self.errors[domain.names(levels)])
            for levels in self.tables
        ]

    def __str__(self) -> str:
        """Return the cost, what is left, each table with its cells and ±, and the notes, a line each."""
        output = [f"cost: {self.cost}" + (" (paid earlier: this is the recorded publication)" if self.replayed else "")]
        output += [] if self.remaining is None else [f"left: {self.remaining}"]
        beside = "" if self.clipped_share is None else f"; {self.clipped_share}"
        output += [
            f"{name}: {size:,} cell{'s' if size != 1 else ''}, {_plus_minus(error)}{beside}"
            for name, size, error in self._sizes()
        ]
        return "\n".join(map(printable, [*output, *map(str, self.notes)]))

    def _repr_html_(self) -> str:
        """Return the publication for a notebook: the cost, the remaining budget, every table with its ±, and
        the notes."""
        facts = [("cost", str(self.cost))]
        facts += [] if self.remaining is None else [("left", str(self.remaining))]
        facts += [] if self.clipped_share is None else [("beside every ±", str(self.clipped_share))]
        lines = [[name, f"{size:,}", _plus_minus(error)] for name, size, error in self._sizes()]
        return markup.block(
            markup.heading("Publication"),
            markup.facts(facts),
            markup.table(["table", "cells", "expected ± (95 %)"], lines, [False, True, True]),
            markup.lines([*map(str, self.notes)]),
        )


def _plus_minus(error: float) -> str:
    """Return a half-width at 95 % as text; 0 is that of a public total."""
    return f"± {two_digits(error)} (95 %)" if error else "± 0 (public)"


def _flat(names: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of columns as a tuple, whether they were passed one by one or as one list."""
    if len(names) == 1 and isinstance(names[0], (list, tuple)):
        return tuple(names[0])
    return tuple(names)


def _row_order(domain: Domain, names: Sequence[str], levels: Levels) -> Any:
    """Return the permutation that sorts the cells of a table by the columns ``names``, the last one running fastest;
    None if that is the order of the domain."""
    axes = domain.axes(names)
    if axes == sorted(axes):
        return None
    others = [axis for axis in range(len(levels)) if axis not in axes]
    cells = np.arange(domain.size(levels)).reshape(domain.shape(levels))
    return np.ravel(np.transpose(cells, [*others, *axes]))


def _weights_by_key(keys: Any, weights: Mapping[Any, Any]) -> list[Any]:
    """Return the weight of each row of keys, 0 where none is given; refuse weights of keys that are in no row."""
    columns = [column.to_pylist() for column in keys.columns]
    rows = columns[0] if len(columns) == 1 else [*zip(*columns, strict=True)]
    given = {key[0] if len(columns) == 1 and isinstance(key, tuple) else key: value for key, value in weights.items()}
    known = {*rows}
    unknown = [key for key in given if key not in known]
    if unknown:
        expected = f"keys of {' × '.join(keys.column_names)}" + (", as tuples" if len(columns) > 1 else "")
        fix = f"write {rows[0]!r}, for example" if len(columns) > 1 else closest(str(unknown[0]), map(str, rows))
        raise InvalidArgument("weights", expected, repr(unknown[0]), fix)
    return [given.get(row, 0) for row in rows]


FORMATS = ("csv", "parquet")
RECORDS = "records.parquet"
DESCRIPTION = "publication.json"
PROMISES = {
    "value": "unbiased estimate of the count; may be negative or not whole",
    "lower, upper": "the exact count of the cell lies between them with probability 95 %, for each cell by itself",
    "integer": "whole count, never negative; every table is a margin of one object and public totals are met; biased "
    "near zero, and without an interval: it may differ from the value by more than the ±",
}
"""The guarantee about each column of a published table, for ``publication.json``."""
_BOUNDED = (
    "the count of bounded rows of the cell lies between them with probability 95 %, for each cell by itself: each "
    "person counts for at most {rows}, and of one with more all rows count, each for less. {known}"
)
_NOT_KNOWN = (
    "How much lower that is than the count of all rows is not part of the interval and is not known; bias = true or "
    'max_rows = "auto" in the plan would say it.'
)
RECORD_PROMISE = (
    "grouped by any of the tables, the records give exactly its whole counts (integer); columns that no table has "
    "together are not related in the records either, so that some of their combinations may be impossible"
)

Writer = Callable[[str], object]


def interval_promise(max_rows: int, clipped_share: ClippedShare | None) -> str:
    """Return what intervals guarantee if at most ``max_rows`` rows of a person count, for ``publication.json``.

    >>> interval_promise(4, ClippedShare(0.12, 0.1, 0.15)).split(". ")[1]
    'About 12 % of all rows in the domain are excluded (10 % to 15 %), which is not part of the interval.'
    """
    rows = "one row" if max_rows == 1 else f"{max_rows:,} rows"
    known = _NOT_KNOWN
    if clipped_share is not None:
        share = share_left_out(clipped_share.share, clipped_share.low, clipped_share.high, "all rows in the domain")
        known = f"{share[:1].upper()}{share[1:]}, which is not part of the interval."
    return _BOUNDED.format(rows=rows, known=known)


def file_names(names: list[tuple[str, ...]], format: str) -> list[str]:
    """Return a file name for each table, from the names of its columns; all differ, also without regard to case."""
    result: list[str] = []
    taken = {Path(RECORDS).stem, Path(DESCRIPTION).stem}
    for columns in names:
        stem = re.sub(r"[^\w-]+", "_", "_".join(columns))[:100] or "everybody"
        candidate, number = stem, 1
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{stem}_{number}"
        taken.add(candidate.casefold())
        result.append(f"{candidate}.{format}")
    return result


def check_format(format: str) -> str:
    """Return the format of tables; one that cannot be written is refused."""
    if format not in FORMATS:
        raise InvalidArgument("format", "'csv' or 'parquet'", repr(format), "pass format='csv'")
    return format


def writers(publication: Publication, format: str) -> dict[str, Writer]:
    """Return a function for each file name that writes the file to a given path."""
    names = [publication.names_of(levels) for levels in publication.tables]
    files = file_names(names, check_format(format))
    result: dict[str, Writer] = {
        file: partial(_write_table_of, publication, _columns(publication, levels), format)
        for file, levels in zip(files, publication.tables, strict=True)
    }
    if publication.has_whole_counts:
        result[RECORDS] = lambda path: write_table(publication.records(), path, "parquet")
    text = json.dumps(description(publication, files), ensure_ascii=False, indent=1, default=str)
    result[DESCRIPTION] = lambda path: Path(path).write_text(text + "\n", encoding="utf-8")
    return result


def _columns(publication: Publication, levels: Levels) -> tuple[str, ...]:
    """Return the names of a table's key columns; each nested level comes after the levels that contain it."""
    domain = publication.estimates.domain
    axes = domain.axes(publication.names_of(levels))
    return tuple(name for axis in axes for name in domain.attributes[axis].level_names[: levels[axis]])


def _write_table_of(publication: Publication, columns: tuple[str, ...], format: str, path: str) -> None:
    """Write one table of a publication to a file."""
    write_table(publication.table(*columns), path, format)


def write_files(publication: Publication, folder: str | os.PathLike[str], format: str, *, force: bool) -> list[str]:
    """Write all files into a folder, which is made if it is missing, and return their names.

    ``format`` is that of the tables, "csv" or "parquet". If one of the files exists already, none is written, unless
    ``force`` is true.
    """
    files = writers(publication, format)
    target = Path(folder)
    existing = [name for name in files if os.path.lexists(target / name)]
    if existing and not force:
        fix = "choose another folder, or pass force=True"
        raise InvalidArgument("folder", "a folder without these files", f"a folder with {existing[0]}", fix)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InvalidArgument("folder", "a folder", "a path that is not a folder", "choose another name") from None
    for name, write in files.items():
        write(str(target / name))
    return [*files]


def write_table(table: Any, path: str, format: str) -> None:
    """Write an Arrow table to ``path``, as a Parquet file if ``format`` is "parquet", and as a CSV file otherwise."""
    if format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path)
        return
    from pyarrow import csv

    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    csv.write_csv(pa.table(plain, names=table.column_names), path)


def description(publication: Publication, files: list[str]) -> dict[str, Any]:
    """Return the content of ``publication.json``: what was published, its guarantee, and what intervals promise.

    ``files`` are the names of the files of the tables, in the order of the publication's tables.
    """
    from dither import __version__

    domain, estimates = publication.estimates.domain, publication.estimates
    tables = []
    for file, levels in zip(files, publication.tables, strict=True):
        columns = domain.names(levels)
        largest = estimates.residuals.largest_variance(levels, estimates.variances).variance
        mean = publication.errors[columns]
        tables.append(
            {
                "file": file,
                "columns": [*_columns(publication, levels)],
                "cells": domain.size(levels),
                "error": mean,
                "largest_error": max(mean, normal_quantile(0.95) * estimates.unit * float(np.sqrt(largest))),
            }
        )
    promises = dict(PROMISES)
    if publication.max_rows is not None:
        promises["lower, upper"] = interval_promise(publication.max_rows, publication.clipped_share)
    if not publication.has_whole_counts:
        del promises["integer"]
    return {
        "version": 1,
        "dither": __version__,
        "guarantee": str(publication.cost),
        "neighbors": "one person is added or removed, with all rows",
        "receipt": publication.receipt,
        "tables": tables,
        "error": "the mean half-width of the intervals of the cells of a table, at 95 %",
        "promises": promises,
        "max_rows": publication.max_rows,
        "left_out": None if publication.clipped_share is None else vars(publication.clipped_share),
        "records": {"file": RECORDS, "promise": RECORD_PROMISE} if publication.has_whole_counts else None,
        "notes": [*map(str, publication.notes)],
        "plan": dict(publication.plan),
    }
