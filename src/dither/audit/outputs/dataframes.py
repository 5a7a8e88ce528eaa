"""Tables of every library as named parts, and their rows under keys.

``columns_of`` loses nothing: index, names, types and values, one column after another. ``keyed_rows`` says the same
again with each number under the key of its row, so that a row can be compared with the same row of another run
wherever it stands.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

Child = tuple[str, Any]


def columns_of(thing: Any) -> list[Child] | None:
    """The parts of an index, a Series or a table of pandas, polars, Arrow or dither; None of anything else."""
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
        parts = [(f"{{{place}}}", _column(thing.iloc[:, place])) for place in range(thing.shape[1])]
        return [(" columns", thing.columns), (" length", len(thing)), *shared, *parts]
    if hasattr(thing, "get_columns") and hasattr(thing, "schema"):  # a polars frame
        parts = [(f"{{{place}}}", column.to_list()) for place, column in enumerate(thing.get_columns())]
        return [(" schema", [(name, str(kind)) for name, kind in thing.schema.items()]), *parts]
    if hasattr(thing, "to_list") and hasattr(thing, "to_arrow") and hasattr(thing, "dtype"):  # a polars Series
        return [(" name", thing.name), (" dtype", str(thing.dtype)), ("", thing.to_list())]
    if hasattr(thing, "to_pylist"):
        if hasattr(thing, "schema"):
            schema = thing.schema.to_string(show_schema_metadata=True, truncate_metadata=False)
            parts = [(f"{{{place}}}", column.to_pylist()) for place, column in enumerate(thing.columns)]
            return [(" schema", schema), (" length", thing.num_rows), *parts]
        return [(" dtype", str(thing.type)), ("", thing.to_pylist())]
    return None


def _column(series: Any) -> list[Any]:
    """A column of a frame, which has the frame's index."""
    return [str(series.dtype), series.attrs, _values(series)]


def _values(series: Any) -> Any:
    if hasattr(series, "cat") or hasattr(series, "categories"):
        held = series.cat if hasattr(series, "cat") else series
        return [np.asarray(held.codes), held.categories, bool(held.ordered)]
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.tolist()


def keyed_rows(thing: Any, name_of: Callable[[Any], str]) -> Iterator[Child]:
    """The number of rows, which keys there are (Ellipsis stands for a key that is there), and each number under its
    row's key.

    The key of a row is whatever in it is neither a number nor missing; rows with the same key are told apart by their
    place among each other.
    """
    table = _rows(thing)
    if table is None:
        return
    names, rows = table
    count, seen = 0, dict[str, int]()
    for row in rows:
        count += 1
        key = ", ".join([name_of(value) for value in row if not _is_number(value)])
        seen[key] = seen.get(key, 0) + 1
        key = key if seen[key] == 1 else f"{key} ({seen[key]})"
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
    """A row with the levels of its index as cells."""
    if plain or not isinstance(row[0], tuple):
        return row
    return (*row[0], *row[1:])


__all__ = ["columns_of", "keyed_rows"]
