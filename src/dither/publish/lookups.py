"""Public lookups: which place lies in which, from a public table of the card, a file, a frame or a mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.tables.card.model import Type, arrow_type
from dither.tables.card.values import clip, closest
from dither.tables.query import nodes
from dither.tables.table import Table

_ENDINGS = (".csv", ".parquet")


def read_lookup(
    table: Table, name: str, levels: Sequence[str], lookup: Any, types: Mapping[str, Type], folder: str
) -> dict[str, Any]:
    """One Arrow array for each level, with a row for each finest place.

    Parameters
    ----------
    lookup
        The name of a public table of the card, the path of a CSV or Parquet file (from ``folder``), a frame, a mapping
        of a sequence for each level, or, of two levels, a mapping of each finest place to its parent. None: the only
        public table of the card that has a column for each level.
    types
        The types of levels that are columns of the card; the others are text where a file has no types.

    >>> import dither as dp
    >>> with dp.open(pa.table({"county": ["A1", "B1"]}), budget=dp.PureDP(1)) as people:
    ...     places = read_lookup(people, "geo", ["state", "county"], {"A1": "A", "B1": "B"}, {}, ".")
    >>> {level: keys.to_pylist() for level, keys in places.items()}
    {'state': ['A', 'B'], 'county': ['A1', 'B1']}
    """
    where = f"lookup of {name}"
    if len(levels) == 1 and lookup is None:
        fix = "list it among the columns, or name a level above it"
        raise InvalidArgument(where, "at least two levels, or a lookup", "one level without", fix)
    columns = _columns(table, where, levels, lookup, folder)
    missing = [level for level in levels if level not in columns.column_names]
    if missing:
        fix = closest(missing[0], columns.column_names) + ", or add the column"
        raise InvalidArgument(where, f"a column {missing[0]}", "none", fix)
    distinct = columns.select([*levels]).group_by([*levels], use_threads=False).aggregate([])
    return {level: _cast(where, level, distinct.column(level), types.get(level)) for level in levels}


def _columns(table: Table, where: str, levels: Sequence[str], lookup: Any, folder: str) -> pa.Table:
    public = table.card.public
    if lookup is None:
        fitting = [item for item, card in public.items() if {*levels} <= {*card.columns}]
        if len(fitting) != 1:
            got = "none" if not fitting else f"several: {', '.join(fitting)}"
            expected = f"a public table of the card with the columns {', '.join(levels)}, or a lookup in the plan"
            fix = 'name one: lookup = "places.csv", or the name of a public table'
            raise InvalidArgument(where, expected, got, fix)
        lookup = fitting[0]
    if isinstance(lookup, (str, os.PathLike)):
        text = os.fspath(lookup)
        if text in public:
            return _of_public_table(table, text, [level for level in levels if level in public[text].columns])
        _refuse_private_rows(table, where, Path(folder, os.path.expanduser(text)))
        return _of_file(where, text, folder, [*public])
    if isinstance(lookup, Mapping):
        if {*levels} & {*lookup} or len(levels) != 2:
            return _as_arrow(where, {key: [*values] for key, values in lookup.items()})
        return _as_arrow(where, {levels[0]: [*lookup.values()], levels[1]: [*lookup]})
    return _as_arrow(where, lookup)


def _refuse_private_rows(table: Table, where: str, path: Path) -> None:
    """Refuse a file of the table itself: which places occur among its rows is not public."""
    for private in table.engine.private_files:
        if path.exists() and os.path.exists(private) and os.path.samefile(path, private):
            fix = "name a public list of all places, also of those where nobody is"
            raise NotPrivate(where, "a public file", "the file that holds the private rows", fix)


def _as_arrow(where: str, given: Any) -> pa.Table:
    try:
        return pa.table(given)
    except (pa.ArrowInvalid, TypeError, ValueError):
        expected = "a public table's name, a CSV or Parquet file, a frame, or columns of one length"
        fix = "pass {'state': [...], 'county': [...]}, one row for each county"
        raise WrongType(where, expected, type(given).__name__, fix) from None


def _of_public_table(table: Table, name: str, columns: Sequence[str]) -> pa.Table:
    engine = table.engine
    selected = [exp.alias_(nodes.column(column, "p"), column, quoted=True) for column in columns]
    result: pa.Table = engine.run(exp.select(*selected).from_(exp.alias_(engine.public(name), "p", table=True)))
    return result


def _of_file(where: str, text: str, folder: str, public: Sequence[str]) -> pa.Table:
    path = Path(folder, os.path.expanduser(text))
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        fix = closest(text, public) if public else "name a file that ends in .csv or .parquet"
        raise InvalidArgument(where, "a public table of the card, or a .csv or .parquet file", repr(clip(text)), fix)
    try:
        if ending == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        from pyarrow import csv

        names = csv.open_csv(path).schema.names
        options = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
        )
        return csv.read_csv(path, convert_options=options)
    except (OSError, pa.ArrowException):
        fix = "check the path, which starts from the folder of the plan"
        raise InvalidArgument(where, "a file that can be read", repr(clip(text)), fix) from None


def _cast(where: str, level: str, column: Any, kind: Type | None) -> Any:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind is None:
        return array
    try:
        return array.cast(arrow_type(kind))
    except pa.ArrowException:
        fix = f"write the values of {level} as the card has them"
        raise InvalidArgument(where, f"a column {level} of type {kind}, as in the card", "others", fix) from None
