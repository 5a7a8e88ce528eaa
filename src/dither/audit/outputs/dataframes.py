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


def columns_of(value: Any) -> list[Child] | None:
    """The parts of an index, a Series or a table of pandas, polars, Arrow or dither; None for anything else."""
    if isinstance(value, type):
        return None
    if hasattr(value, "to_flat_index") and hasattr(value, "names"):
        extra: list[Child] = [(" frequency", str(getattr(value, "freq", None)))]
        values = value.tolist() if getattr(value, "nlevels", 1) > 1 else _values(value)
        return [(" names", list(value.names)), (" dtype", str(value.dtype)), *extra, ("", values)]
    if hasattr(value, "iloc") and hasattr(value, "attrs"):
        shared: list[Child] = [(" index", value.index), (" attributes", value.attrs)]
        if value.ndim == 1:
            return [(" name", value.name), (" dtype", str(value.dtype)), *shared, ("", _values(value))]
        parts = [(f"{{{position}}}", _column(value.iloc[:, position])) for position in range(value.shape[1])]
        return [(" columns", value.columns), (" length", len(value)), *shared, *parts]
    if hasattr(value, "get_columns") and hasattr(value, "schema"):  # a polars frame
        parts = [(f"{{{position}}}", column.to_list()) for position, column in enumerate(value.get_columns())]
        return [(" schema", [(name, str(kind)) for name, kind in value.schema.items()]), *parts]
    if hasattr(value, "to_list") and hasattr(value, "to_arrow") and hasattr(value, "dtype"):  # a polars Series
        return [(" name", value.name), (" dtype", str(value.dtype)), ("", value.to_list())]
    if hasattr(value, "to_pylist"):
        if hasattr(value, "schema"):
            schema = value.schema.to_string(show_schema_metadata=True, truncate_metadata=False)
            parts = [(f"{{{position}}}", column.to_pylist()) for position, column in enumerate(value.columns)]
            return [(" schema", schema), (" length", value.num_rows), *parts]
        return [(" dtype", str(value.type)), ("", value.to_pylist())]
    return None


def _column(series: Any) -> list[Any]:
    """A column of a frame, which has the frame's index."""
    return [str(series.dtype), series.attrs, _values(series)]


def _values(series: Any) -> Any:
    if hasattr(series, "cat") or hasattr(series, "categories"):
        categorical = series.cat if hasattr(series, "cat") else series
        return [np.asarray(categorical.codes), categorical.categories, bool(categorical.ordered)]
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.tolist()


def keyed_rows(instance: Any, name_of: Callable[[Any], str]) -> Iterator[Child]:
    """The number of rows, the presence of every key (as Ellipsis), and every number under the key of its row.

    The key of a row consists of its values that are neither numbers nor missing; rows with equal keys are numbered.
    """
    table = _rows(instance)
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


def _rows(value: Any) -> tuple[Sequence[str], Iterator[Sequence[Any]]] | None:
    if hasattr(value, "itertuples"):
        index = [name if name is not None else "index" for name in map(str, value.index.names)]
        plain = type(value.index).__name__ == "RangeIndex"
        names = [*([] if plain else index), *map(str, value.columns)]
        return names, (_flat(row, plain) for row in value.itertuples(index=not plain, name=None))
    if hasattr(value, "iter_rows"):
        return list(value.columns), value.iter_rows()
    if hasattr(value, "to_pylist") and hasattr(value, "schema"):
        return value.column_names, zip(*(column.to_pylist() for column in value.columns), strict=True)
    if type(value).__name__ == "Answer" and hasattr(value, "dicts"):
        return value.columns, iter(value.rows)
    if isinstance(value, (list, tuple)) and value and all(isinstance(row, Mapping) for row in value):
        columns = list(dict.fromkeys(str(key) for row in value for key in row))
        return columns, ([row.get(key, "missing") for key in columns] for row in value)
    return None


def _flat(row: tuple[Any, ...], plain: bool) -> tuple[Any, ...]:
    """A row in which the levels of its index are separate cells."""
    if plain or not isinstance(row[0], tuple):
        return row
    return (*row[0], *row[1:])


__all__ = ["columns_of", "keyed_rows"]
