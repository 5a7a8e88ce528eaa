"""The files of a publication: a table each, the records, and a description of what is promised."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dither.errors import InvalidArgument
from dither.publish.allocate import normal_quantile
from dither.publish.domain import Levels
from dither.tables.planning.automatic import LeftOut

if TYPE_CHECKING:
    from dither.publish.publication import Publication

FORMATS = ("csv", "parquet")
RECORDS = "records.parquet"
DESCRIPTION = "publication.json"
PROMISES = {
    "value": "unbiased estimate of the count; may be negative or not whole",
    "lower, upper": "the exact count of the cell lies between them with probability 95 %, for each cell by itself",
    "integer": "whole count, never negative; every table is a margin of one object and public totals are met; biased "
    "near zero, and without an interval: it may differ from the value by more than the ±",
}
"""What is promised of each column of a table."""
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


def interval_promise(max_rows: int, left_out: LeftOut | None) -> str:
    """What is promised of intervals where the rows of a person are bounded.

    >>> interval_promise(4, LeftOut(0.12, 0.1, 0.15)).split(". ")[1]
    'Of all rows in the domain, about 12 % of them are left out (10 % to 15 %), which is not part of the interval.'
    """
    rows = "one row" if max_rows == 1 else f"{max_rows:,} rows"
    known = _NOT_KNOWN
    if left_out is not None:
        known = f"Of all rows in the domain, {left_out.of('them')}, which is not part of the interval."
    return _BOUNDED.format(rows=rows, known=known)


def file_names(names: list[tuple[str, ...]], format: str) -> list[str]:
    """The name of a file for each table, all different on every file system.

    >>> file_names([("state",), ("state", "sex"), ("state_sex",), ()], "csv")
    ['state.csv', 'state_sex.csv', 'state_sex_2.csv', 'everybody.csv']
    """
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
    """The format of tables, refused if it is none of those that can be written."""
    if format not in FORMATS:
        raise InvalidArgument("format", "'csv' or 'parquet'", repr(format), "pass format='csv'")
    return format


def writers(publication: Publication, format: str) -> dict[str, Writer]:
    """What writes each file, given a path, by the name of the file."""
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
    """The columns of a table's keys: a place stands beside those that it lies in."""
    domain = publication.estimates.domain
    axes = domain.axes(publication.names_of(levels))
    return tuple(name for axis in axes for name in domain.attributes[axis].level_names[: levels[axis]])


def _write_table_of(publication: Publication, columns: tuple[str, ...], format: str, path: str) -> None:
    write_table(publication.table(*columns), path, format)


def write_files(publication: Publication, folder: str | os.PathLike[str], format: str, *, force: bool) -> list[str]:
    """Write all files into a folder, which is made if it is missing; none is written if one exists already."""
    files = writers(publication, format)
    target = Path(folder)
    existing = [name for name in files if os.path.lexists(target / name)]
    if existing and not force:
        fix = "choose another folder, or pass force=True"
        raise InvalidArgument("folder", "one without these files", f"one with {existing[0]}", fix)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InvalidArgument("folder", "a folder", "something else", "choose another name") from None
    for name, write in files.items():
        write(str(target / name))
    return [*files]


def write_table(table: Any, path: str, format: str) -> None:
    """An Arrow table as a file."""
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
    """What was published, under which guarantee, and what is promised of it; the same whenever it is asked for."""
    from dither import __version__

    domain, estimates = publication.estimates.domain, publication.estimates
    tables = []
    for file, levels in zip(files, publication.tables, strict=True):
        columns = domain.names(levels)
        largest = estimates.residuals.largest_variance(levels, estimates.variances)[0]
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
        promises["lower, upper"] = interval_promise(publication.max_rows, publication.left_out)
    if not publication.has_whole_counts:
        del promises["integer"]
    return {
        "version": 1,
        "dither": __version__,
        "guarantee": publication.cost,
        "neighbors": "one person is added or removed, with all rows",
        "receipt": publication.receipt,
        "tables": tables,
        "error": "the mean half-width of the intervals of the cells of a table, at 95 %",
        "promises": promises,
        "max_rows": publication.max_rows,
        "left_out": None if publication.left_out is None else vars(publication.left_out),
        "records": {"file": RECORDS, "promise": RECORD_PROMISE} if publication.has_whole_counts else None,
        "notes": [*publication.notes],
        "plan": dict(publication.plan),
    }
