"""Tables of all supported libraries as named parts, by column and by row.

``columns_of`` is lossless: it returns index, names, types and values column by column. ``keyed_rows`` repeats the
numbers under the key of their row, so that a row can be compared with the same row of another run regardless of its
position.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

Child = tuple[str, Any]


def columns_of(thing: Any) -> list[Child] | None:
    """The parts of an index, a Series or a table of pandas, polars, Arrow or dither; None for anything else."""
    if isinstance(thing, type):
        return None
    if hasattr(thing, "to_flat_index") and hasattr(thing, "names"):
        more: list[Child] = [(" frequency", str(getattr(thing, "freq", None)))]
        values = thing.tolist() if getattr(thing, "nlevels", 1) > 1 else _values(thing)
        return [(" names", list(thing.names)), (" dtype", str(thing.dtype)), *more, ("", values)]
    if hasattr(thing, "iloc") and hasattr(thing, "attrs"):
        shared: list[Child] = [(" index", thing.index), (" attributes", thing.attrs)]
        if thing.ndim == 1:
            return [(" name", thing.name), (" dtype", str(thing.dtype)), *shared, ("", _values(thing))]
        parts = [(f"{{{position}}}", _column(thing.iloc[:, position])) for position in range(thing.shape[1])]
        return [(" columns", thing.columns), (" length", len(thing)), *shared, *parts]
    if hasattr(thing, "get_columns") and hasattr(thing, "schema"):  # a polars frame
        parts = [(f"{{{position}}}", column.to_list()) for position, column in enumerate(thing.get_columns())]
        return [(" schema", [(name, str(kind)) for name, kind in thing.schema.items()]), *parts]
    if hasattr(thing, "to_list") and hasattr(thing, "to_arrow") and hasattr(thing, "dtype"):  # a polars Series
        return [(" name", thing.name), (" dtype", str(thing.dtype)), ("", thing.to_list())]
    if hasattr(thing, "to_pylist"):
        if hasattr(thing, "schema"):
            schema = thing.schema.to_string(show_schema_metadata=True, truncate_metadata=False)
            parts = [(f"{{{position}}}", column.to_pylist()) for position, column in enumerate(thing.columns)]
            return [(" schema", schema), (" length", thing.num_rows), *parts]
        return [(" dtype", str(thing.type)), ("", thing.to_pylist())]
    return None


def _column(series: Any) -> list[Any]:
    """A column of a frame, which has the frame's index."""
    return [str(series.dtype), series.attrs, _values(series)]


def _values(series: Any) -> Any:
    if hasattr(series, "cat") or hasattr(series, "categories"):
        categorical = series.cat if hasattr(series, "cat") else series
        return [np.asarray(categorical.codes), categorical.categories, bool(categorical.ordered)]
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.tolist()


def keyed_rows(thing: Any, name_of: Callable[[Any], str]) -> Iterator[Child]:
    """The number of rows, the presence of every key (as Ellipsis), and every number under the key of its row.

    The key of a row consists of its values that are neither numbers nor missing; rows with equal keys are numbered.
    """
    table = _rows(thing)
    if table is None:
        return
    names, rows = table
    count, occurrences = 0, dict[str, int]()
    for row in rows:
        count += 1
        key = ", ".join([name_of(value) for value in row if not _is_number(value)])
        occurrences[key] = occurrences.get(key, 0) + 1
        key = key if occurrences[key] == 1 else f"{key} ({occurrences[key]})"
        yield f" has row {key}", ...
        for name, value in zip(names, row, strict=True):
            if _is_number(value):
                yield f"[{key}].{name}", value
    yield " rows", count


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, (numbers.Real, Decimal))


def _rows(thing: Any) -> tuple[Sequence[str], Iterator[Sequence[Any]]] | None:
    if hasattr(thing, "itertuples"):
        index = [name if name is not None else "index" for name in map(str, thing.index.names)]
        plain = type(thing.index).__name__ == "RangeIndex"
        names = [*([] if plain else index), *map(str, thing.columns)]
        return names, (_flat(row, plain) for row in thing.itertuples(index=not plain, name=None))
    if hasattr(thing, "iter_rows"):
        return list(thing.columns), thing.iter_rows()
    if hasattr(thing, "to_pylist") and hasattr(thing, "schema"):
        return thing.column_names, zip(*(column.to_pylist() for column in thing.columns), strict=True)
    if type(thing).__name__ == "Answer" and hasattr(thing, "dicts"):
        return thing.columns, iter(thing.rows)
    if isinstance(thing, (list, tuple)) and thing and all(isinstance(row, Mapping) for row in thing):
        columns = list(dict.fromkeys(str(key) for row in thing for key in row))
        return columns, ([row.get(key, "missing") for key in columns] for row in thing)
    return None


def _flat(row: tuple[Any, ...], plain: bool) -> tuple[Any, ...]:
    """A row in which the levels of its index are separate cells."""
    if plain or not isinstance(row[0], tuple):
        return row
    return (*row[0], *row[1:])


__all__ = ["columns_of", "keyed_rows"]
