"""Objects of other libraries as named parts: tables, arrays, figures and tensors.

:func:`library_parts` is lossless: it returns index, names, types and values column by column, with what lies behind
them (levels and categories that no row has, values under a mask or null, the whole of a buffer of which a slice is
shown). :func:`keyed_rows` repeats the numbers of a table under the key of their row, so that a row can be compared with
the same row of another run regardless of its position.

A class is recognized by its name and package, so that nothing is imported here.
"""

from __future__ import annotations

import io
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Child = tuple[str, Any]
Decompose = Callable[[Any], list[Child]]

_SALT = "dither"


@dataclass(frozen=True)
class Opaque:
    """Something that cannot be decomposed, and therefore not be compared."""

    what: str


@dataclass(frozen=True, eq=False)
class Shared:
    """A part to which others refer as well: it is written out once."""

    value: Any


def library_parts(kind: type) -> tuple[Decompose, frozenset[str] | None] | None:
    """Return how objects of a class of a known library are decomposed; None for a class that is not known.

    The result is the function that returns the parts, and the attributes that need not be compared besides, because
    the parts determine them: None stands for all attributes.
    """
    return _KNOWN.get((module_of(kind).partition(".")[0], kind.__name__))


def module_of(kind: type) -> str:
    """Return the name of the module of a class, or "" where something else was stored there."""
    name = kind.__module__
    return name if isinstance(name, str) else ""


def _type(value: Any) -> Child:
    """Return one part, named ``class name``: the qualified name of the class of a value."""
    return " class name", f"{type(value).__module__}.{type(value).__qualname__}"


def _pandas_index(value: Any) -> list[Child]:
    """Decompose an index of pandas, with levels that no row has any more."""
    parts = [_type(value), (" names", list(value.names)), (" dtype", str(value.dtype))]
    if hasattr(value, "levels"):  # with those that no row has any more
        levels = [(f" level {position}", level) for position, level in enumerate(value.levels)]
        codes = [(f" codes {position}", codes) for position, codes in enumerate(value.codes)]
        return [*parts, *levels, *codes, ("", value.tolist())]
    if hasattr(value, "start") and hasattr(value, "step"):
        return [*parts, (" range", (value.start, value.stop, value.step))]
    return [*parts, (" frequency", str(getattr(value, "freq", None))), ("", value.array)]


def _pandas_series(value: Any) -> list[Child]:
    """Decompose a series of pandas, with its index and metadata."""
    parts = [_type(value), (" name", value.name), (" dtype", str(value.dtype)), (" index", value.index)]
    return [*parts, (" metadata", value.attrs), *_flags(value), ("", value.array)]


def _pandas_frame(value: Any) -> list[Child]:
    """Decompose a data frame of pandas column by column, with its index and metadata."""
    columns = [(f"{{{position}}}", _column(value.iloc[:, position])) for position in range(value.shape[1])]
    parts = [_type(value), (" columns", value.columns), (" length", len(value)), (" index", value.index)]
    return [*parts, (" metadata", value.attrs), *_flags(value), *columns]


def _flags(value: Any) -> list[Child]:
    """Return one part of a frame or series: whether it allows duplicate labels."""
    return [(" flags", value.flags.allows_duplicate_labels)]


def _column(series: Any) -> list[Any]:
    """Return the type, metadata and values of a column of a frame, whose index is that of the frame."""
    return [str(series.dtype), series.attrs, series.array]


def _pandas_array(value: Any) -> list[Child]:
    """Decompose an array of pandas; its attributes hold everything, except ``_ndarray``, which is stored in C."""
    parts: list[Child] = [_type(value), (" dtype", str(value.dtype))]
    if hasattr(value.dtype, "categories"):
        parts += [(" categories", value.dtype.categories), (" ordered", bool(value.dtype.ordered))]
    return [*parts, ("", getattr(value, "_ndarray"))] if hasattr(value, "_ndarray") else parts  # noqa: B009


def _polars_frame(value: Any) -> list[Child]:
    """Decompose a data frame of polars column by column."""
    schema = [(name, str(kind)) for name, kind in value.schema.items()]
    columns = [(f"{{{position}}}", _polars_values(column)) for position, column in enumerate(value.get_columns())]
    return [_type(value), (" schema", schema), (" length", value.height), *columns]


def _polars_series(value: Any) -> list[Child]:
    """Decompose a series of polars."""
    return [_type(value), (" name", value.name), (" dtype", str(value.dtype)), ("", _polars_values(value))]


def _polars_values(series: Any) -> list[Any]:
    """Return the values of a series of polars, its layout, and its Arrow form where it has one."""
    layout = series.flags, series.n_chunks()
    try:
        stored = series.to_arrow()
    except Exception:  # Python objects
        return [series.to_list(), layout]
    return [series.to_list(), layout, stored]


def _polars_lazy(value: Any) -> list[Child]:
    """Decompose a query that was not run: its plan with the data in it, and its result."""
    try:
        plan: Any = value.serialize()
    except Exception:
        plan = Opaque("the plan of a LazyFrame")
    return [_type(value), (" plan", plan), ("", value.collect())]


def _arrow_table(value: Any) -> list[Child]:
    """Decompose a table of Arrow column by column."""
    columns = [(f"{{{position}}}", column) for position, column in enumerate(value.columns)]
    return [_type(value), (" schema", value.schema), (" length", value.num_rows), *columns]


def _arrow_schema(value: Any) -> list[Child]:
    """Decompose a schema of Arrow into its fields and metadata."""
    fields = [(f" field {position}", value.field(position)) for position in range(len(value))]
    return [_type(value), ("", str(value)), (" metadata", _metadata(value)), *fields]


def _arrow_field(value: Any) -> list[Child]:
    """Decompose a field of Arrow into its name, type and metadata."""
    return [_type(value), ("", (value.name, str(value.type), value.nullable)), (" metadata", _metadata(value))]


def _metadata(value: Any) -> Any:
    """Return the metadata of a schema or field as a dict; None if there are none."""
    return None if value.metadata is None else dict(value.metadata)


def _arrow_chunks(value: Any) -> list[Child]:
    """Decompose a chunked array of Arrow into its values and chunks."""
    chunks = [(f" chunk {position}", chunk) for position, chunk in enumerate(value.chunks)]
    return [_type(value), (" dtype", str(value.type)), ("", value.to_pylist()), *chunks]


def _arrow_array(value: Any) -> list[Child]:
    """Decompose an array of Arrow into its values and buffers, with what lies under nulls and outside of a slice."""
    parts = [_type(value), (" dtype", str(value.type)), (" offset", value.offset), ("", value.to_pylist())]
    if hasattr(value, "dictionary"):  # also the values that no row has
        parts += [(" dictionary", value.dictionary), (" indices", value.indices)]
    if hasattr(value, "storage"):
        parts.append((" storage", value.storage))
    buffers = enumerate(value.buffers())
    return [*parts, *((f" buffer {position}", None if item is None else Shared(item)) for position, item in buffers)]


def _arrow_buffer(value: Any) -> list[Child]:
    """Decompose a buffer of Arrow into its bytes and the buffer of which it is a part."""
    parent = value.parent
    return [_type(value), ("", value.to_pybytes()), *([] if parent is None else [(" parent", Shared(parent))])]


def _arrow_scalar(value: Any) -> list[Child]:
    """Decompose a scalar of Arrow."""
    parts = [_type(value), (" dtype", str(value.type)), ("", value.as_py())]
    return [*parts, *((f" {name}", getattr(value, name)) for name in ("dictionary", "values") if hasattr(value, name))]


def _arrow_file(value: Any) -> list[Child]:
    """Decompose a file of Arrow: its position and content, if it can be read again from the start."""
    if value.closed or not value.readable() or not value.seekable():
        return [_type(value), ("", "closed" if value.closed else Opaque("a file of Arrow"))]
    place = value.tell()
    value.seek(0)
    content = value.read()
    value.seek(place)
    return [_type(value), (" place", place), ("", content)]


def _arrow_type(value: Any) -> list[Child]:
    """Decompose a type of Arrow into its name."""
    return [_type(value), ("", str(value))]


def _figure(value: Any) -> list[Child]:
    """Decompose a figure: its SVG, and the public properties of everything in it, also of what is invisible."""
    import matplotlib as mpl

    drawing = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": _SALT, "svg.fonttype": "none", "path.simplify": False}):
        value.savefig(drawing, format="svg", metadata={"Date": None})
    artists = [(f" artist {position}", _artist(item)) for position, item in enumerate(value.findobj())]
    return [_type(value), ("", drawing.getvalue()), *artists]


def _artist(value: Any) -> list[Any]:
    """Return the properties of one artist that are plain data, and what else was stored in it under a public name."""
    try:
        properties = dict(value.properties())
    except Exception:
        properties = {}
    properties |= {f".{name}": item for name, item in vars(value).items() if not name.startswith("_")}
    return [type(value).__qualname__, sorted((name, item) for name, item in properties.items() if _is_plain(item, 3))]


def _is_plain(value: Any, depth: int) -> bool:
    """Return whether a property is made of numbers, texts and arrays; others are parts of the picture or drawing
    functions."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return depth > 0 and all(_is_plain(item, depth - 1) for pair in value.items() for item in pair)
    if type(value).__module__ == "numpy":
        return getattr(value, "dtype", None) is not None and value.dtype.kind != "O"
    return value is None or isinstance(value, (str, bytes, int, float, complex, Decimal))


def _drawn(value: Any) -> list[Child]:
    """Decompose a part of a figure, from which the figure is reached."""
    figure = value.get_figure()
    return [_type(value), ("", _artist(value)), *([(" figure", figure)] if figure is not None else [])]


def _tensor(value: Any) -> list[Child]:
    """Decompose a tensor: its layout, values and gradient, and the whole storage of which it may be a view."""
    plain = value.detach().cpu()
    whole = bytes(plain.untyped_storage())  # of which this may be a view
    layout = str((value.dtype, tuple(value.shape), tuple(value.stride()), value.storage_offset(), str(value.device)))
    return [_type(value), (" layout", layout), ("", plain.tolist()), (" storage", whole), (" gradient", value.grad)]


_FRAME = frozenset({"_mgr", "_attrs", "_flags", "_item_cache", "_name", "_is_copy"})
_INDEX = frozenset({"_data", "_range", "_name", "_names", "_levels", "_codes", "_cache", "_id", "_references", "_freq"})
_NONE = frozenset[str]()
_KNOWN: dict[tuple[str, str], tuple[Decompose, frozenset[str] | None]] = {
    ("pandas", "Index"): (_pandas_index, _INDEX),
    ("pandas", "Series"): (_pandas_series, _FRAME),
    ("pandas", "DataFrame"): (_pandas_frame, _FRAME),
    ("pandas", "ExtensionArray"): (_pandas_array, frozenset({"_cache", "_dtype", "_ndarray", "_readonly"})),
    ("polars", "DataFrame"): (_polars_frame, frozenset({"_df"})),
    ("polars", "Series"): (_polars_series, frozenset({"_s"})),
    ("polars", "LazyFrame"): (_polars_lazy, frozenset({"_ldf"})),
    **{("pyarrow", name): (_arrow_table, _NONE) for name in ("Table", "RecordBatch")},
    ("pyarrow", "Schema"): (_arrow_schema, _NONE),
    ("pyarrow", "Field"): (_arrow_field, _NONE),
    ("pyarrow", "ChunkedArray"): (_arrow_chunks, _NONE),
    ("pyarrow", "Array"): (_arrow_array, _NONE),
    ("pyarrow", "Buffer"): (_arrow_buffer, _NONE),
    ("pyarrow", "Scalar"): (_arrow_scalar, _NONE),
    ("pyarrow", "NativeFile"): (_arrow_file, _NONE),
    ("pyarrow", "DataType"): (_arrow_type, _NONE),
    ("matplotlib", "Figure"): (_figure, None),
    ("matplotlib", "Artist"): (_drawn, None),
    ("dither", "Answer"): (lambda value: [_type(value)], frozenset({"receipt"})),  # a random name, not a value
    ("weakref", "finalize"): (lambda value: [_type(value), (" call", value.peek())], _NONE),
    ("random", "Random"): (lambda value: [_type(value), (" state", value.getstate())], _NONE),
    ("torch", "Tensor"): (_tensor, _NONE),
}


def keyed_rows(instance: Any, name_of: Callable[[Any], str]) -> Iterator[Child]:
    """Yield the number of rows, the presence of every key (as Ellipsis), and every number under the key of its row.

    ``instance`` is a table of a supported library (nothing is yielded for others), and ``name_of`` makes a text of a
    value. The key of a row consists of its values that are neither numbers nor missing; rows with equal keys are
    numbered.
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
    """Return whether a cell is a number or missing, rather than part of a row's key."""
    return value is None or isinstance(value, (numbers.Real, Decimal))


def _rows(value: Any) -> tuple[Sequence[str], Iterator[Sequence[Any]]] | None:
    """Return the column names and an iterator of rows of a table, data frame, answer or list of dicts, or else None.

    Rows of a data frame begin with their index, unless that only numbers them.
    """
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
    """Return a row whose first cell, the levels of a multi-level index, is replaced by one cell for each level."""
    if plain or not isinstance(row[0], tuple):
        return row
    return (*row[0], *row[1:])
