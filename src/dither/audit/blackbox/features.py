"""Outputs of arbitrary type as columns that can be compared across runs.

The leaves at one path of the canonical form (:mod:`dither.audit.outputs.canonical`) over many runs form a column of
numbers or vectors, and a second column of labels holds the kinds of these leaves. Nothing is interpreted here; which
columns distinguish two data sets is learned in :mod:`dither.audit.blackbox.region`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dither.audit.outputs.canonical import OPAQUE, Leaf, leaves

Array = NDArray[Any]

MAX_COLUMNS = 2000
"""The number of columns that is always kept; more are kept when there are few runs."""
MAX_CELLS = 1 << 27
_COLUMN_LIMIT = 1 << 16
_ABSENT = "absent"
_EXACT = 1 << 53


@dataclass(frozen=True)
class Outputs:
    """The outputs of ``size`` runs as columns: floats, integers, vectors (2-dimensional) or labels (of str)."""

    size: int
    columns: Mapping[str, Array]
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Columns that have the same value in all runs, stored once; they matter only when runs are concatenated."""

    @property
    def opaque(self) -> tuple[str, ...]:
        """Return what could not be decomposed in some run, each with its location in the output."""
        kinds: dict[str, None] = {}
        for name in (*self.constants, *self.columns):
            if name.endswith(" kind"):
                column = [self.constants[name]] if name in self.constants else self.columns[name]
                place = name.removesuffix(" kind").partition(" ")[0]
                unknown = {kind for kind in column if kind.startswith(OPAQUE)}
                kinds |= {f"{kind.removeprefix(OPAQUE)}{f' at {place}' if place else ''}": None for kind in unknown}
        return tuple(kinds)

    def column(self, name: str) -> Array:
        """Return the column of that name; a column of missing values if no output has it."""
        if name in self.columns:
            return self.columns[name]
        if name in self.constants:
            value = self.constants[name]
            return np.full(self.size, value, dtype=object if isinstance(value, str) else None)
        return np.full(self.size, _ABSENT, dtype=object) if name.endswith(" kind") else np.full(self.size, np.nan)

    def rows(self, start: int, stop: int) -> Outputs:
        """Return the runs in the half-open range from ``start`` to ``stop``."""
        stop = min(stop, self.size)
        columns = {name: column[start:stop] for name, column in self.columns.items()}
        return Outputs(stop - start, columns, self.constants)

    def select(self, chosen: Array) -> Outputs:
        """Return the chosen runs, given as a mask or as indices."""
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Outputs(int(np.count_nonzero(chosen)) if chosen.dtype == bool else chosen.size, columns, self.constants)


def concatenate(parts: Sequence[Outputs]) -> Outputs:
    """Concatenate the runs of all parts, in order, and keep the columns that :func:`_kept_paths` selects."""
    parts = [part for part in parts if part.size] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    constants = {
        name: value
        for name, value in parts[0].constants.items()
        if all(name not in part.columns and part.constants.get(name) == value for part in parts)
    }
    names = dict.fromkeys(name for part in parts for name in (*part.columns, *part.constants) if name not in constants)
    size = sum(part.size for part in parts)
    kept_paths = _kept_paths((name.removesuffix(" kind") for name in (*names, *constants)), size)
    columns = {
        name: _stacked([part.column(name) for part in parts])
        for name in names
        if name.removesuffix(" kind") in kept_paths
    }
    constants = {name: value for name, value in constants.items() if name.removesuffix(" kind") in kept_paths}
    return Outputs(size, columns, constants)


def _kept_paths(paths: Iterable[str], size: int) -> set[str]:
    """Return the paths of the columns to keep, fewer of them the more runs there are, so that memory is bounded.

    If there are too many, those are kept that come first in an order independent of the data; a path that is kept for
    all runs was therefore kept for every part of them.
    """
    unique_paths, limit = set(paths), max(MAX_COLUMNS, min(_COLUMN_LIMIT, MAX_CELLS // max(1, size)))
    if len(unique_paths) <= limit:
        return unique_paths
    order = sorted(
        unique_paths, key=lambda path: (path.count("[") + path.count(" has "), crc32(repr(path).encode()), path)
    )
    return set(order[:limit])


def _stacked(columns: list[Array]) -> Array:
    """Concatenate the columns of several parts, padded to one width and converted to one type."""
    width = max((column.shape[1] for column in columns if column.ndim == 2), default=0)
    if width:
        columns = [_padded(column, width) for column in columns]
    if any(column.dtype.kind == "f" for column in columns):
        columns = [column.astype(np.float64) if column.dtype.kind in "iu" else column for column in columns]
    return np.concatenate(columns)


def _padded(column: Array, width: int) -> Array:
    """Pad a column of numbers or vectors with NaN to vectors of the given width."""
    matrix = column if column.ndim == 2 else column[:, None]
    if matrix.shape[1] == width:
        return matrix
    return np.hstack([matrix.astype(np.float64), np.full((matrix.shape[0], width - matrix.shape[1]), np.nan)])


def collect_outputs(outputs: Any) -> Outputs:
    """Decompose outputs, one per run, into columns; each row of an array counts as one output."""
    if type(outputs) is np.ndarray and outputs.dtype.kind in "if" and outputs.dtype.itemsize <= 8 and outputs.ndim > 0:
        width = int(np.prod(outputs.shape[1:]))
        if len(outputs) and width:
            return Outputs(len(outputs), {"": _numeric(outputs.reshape(len(outputs), width))}, _constants(outputs[0]))
    # the rows of one array are views of it, and so of all runs
    outputs_list = [row.copy() if isinstance(row, np.ndarray) else row for row in outputs]
    uniform = _uniform(outputs_list)
    if uniform is not None:
        return Outputs(len(outputs_list), {"": uniform}, _constants(outputs_list[0]))
    paths: dict[str, dict[int, Leaf]] = {}
    for run, output in enumerate(outputs_list):
        for path, leaf in leaves(output):
            column = paths.setdefault(path, {})
            while run in column:  # a part with the path of another
                path += "'"
                column = paths.setdefault(path, {})
            column[run] = leaf
    result: dict[str, Array] = {}
    constants: dict[str, Any] = {}
    kept_paths = _kept_paths(paths, len(outputs_list))
    for path, column in paths.items():
        if path in kept_paths:
            result.update(_as_columns(path, column, len(outputs_list), constants))
    return Outputs(len(outputs_list), result, constants)


def _constants(output: Any) -> dict[str, Any]:
    """Return the kinds and values of all leaves of an output other than its own numbers."""
    result: dict[str, Any] = {}
    plain = output.copy() if isinstance(output, np.ndarray) else output  # a row is a view of all rows
    for path, leaf in leaves(plain):
        result[f"{path} kind"] = leaf.kind
        if path and leaf.value is not None:
            result[path] = leaf.value
    return result


def _numeric(array: Array) -> Array:
    """Convert numbers to 64-bit floats or integers, and vectors of length one to scalars."""
    array = array.astype(np.int64 if array.dtype.kind == "i" else np.float64, copy=False)
    return array[:, 0] if array.shape[1] == 1 else array


def _uniform(outputs: list[Any]) -> Array | None:
    """Return the column for outputs that are all numbers of one type, or vectors of one shape and type; None for
    others."""
    kinds = set(map(type, outputs))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is float or issubclass(kind, np.floating):
        return np.array(outputs, dtype=np.float64) if np.dtype(kind).itemsize <= 8 else None
    if kind is int or kind is np.int64:
        try:
            integers = np.array(outputs, dtype=np.int64)
        except OverflowError:
            return None
        return integers if integers.min() >= -_EXACT and integers.max() <= _EXACT else None
    if kind is np.ndarray:
        shapes = {(output.shape, output.dtype) for output in outputs}
        first = outputs[0]
        if len(shapes) == 1 and first.dtype.kind in "if" and first.dtype.itemsize <= 8 and first.ndim and first.size:
            return _numeric(np.stack(outputs).reshape(len(outputs), -1))
    return None


def _as_columns(
    path: str, column: dict[int, Leaf], size: int, constants: dict[str, Any]
) -> Iterator[tuple[str, Array]]:
    """Yield the columns of one location in the outputs: the kinds of its leaves, and its numbers, if there are any.

    ``column`` has the leaf at ``path`` for each run that has one, by the number of the run; ``size`` is the number of
    runs. Where all runs have one kind of leaf, no column of kinds is needed: the kind is stored in ``constants``.
    """
    kinds = {leaf.kind for leaf in column.values()}
    if len(kinds) == 1 and len(column) == size:
        constants[f"{path} kind"] = kinds.pop()
    else:
        labels = np.full(size, _ABSENT, dtype=object)
        for run, leaf in column.items():
            labels[run] = leaf.kind
        yield f"{path} kind", labels
    values = {run: leaf.value for run, leaf in column.items() if leaf.value is not None}
    numbers = _numbers({run: value for run, value in values.items() if np.size(value)}, size)
    if numbers is not None:
        yield path, numbers


def _numbers(values: dict[int, Any], size: int) -> Array | None:
    """Return the numbers at one path as a column: integers if every run has one, else floats with NaN for missing
    values.

    Vectors are padded to one length; None if no run has a number.
    """
    if not values:
        return None
    vectors = {run: value for run, value in values.items() if isinstance(value, np.ndarray)}
    integers = len(values) == size and all(
        value.dtype.kind == "i" if isinstance(value, np.ndarray) else type(value) is int for value in values.values()
    )
    if not vectors:
        if integers:
            return np.array([values[run] for run in range(size)], dtype=np.int64)
        column = np.full(size, np.nan)
        column[list(values)] = list(values.values())
        return column
    width = max(value.size for value in vectors.values())
    if integers and len(vectors) == size and all(value.size == width for value in vectors.values()):
        return _numeric(np.stack([vectors[run] for run in range(size)]))
    matrix = np.full((size, width), np.nan)
    for run, value in values.items():
        if isinstance(value, np.ndarray):
            matrix[run, : value.size] = value
        else:
            matrix[run, 0] = value
    return matrix
