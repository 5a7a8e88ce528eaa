"""Outputs of any kind as columns that can be compared.

The leaves of one path (:mod:`dither.audit.outputs.canonical`) make a column over many runs: numbers, vectors, and
the kinds of all leaves as labels. Nothing is interpreted here; which column tells two data sets apart is learned in
:mod:`dither.audit.blackbox.region`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dither.audit.outputs.canonical import Leaf, Raised, leaves

Array = NDArray[Any]

MOST_COLUMNS = 2000
"""Kept of outputs with more parts than that, however many runs there are; of few runs more are kept."""
MOST_CELLS = 1 << 27
_MANY_COLUMNS = 1 << 16
_ABSENT = "absent"
_EXACT = 1 << 53


@dataclass(frozen=True)
class Outputs:
    """The outputs of ``size`` runs as columns: floats, integers, vectors (2-dimensional) or labels (of str).

    >>> found = gather([{"n": 1}, {"n": 2, "m": 3.5}])
    >>> found.size, sorted(found.columns)
    (2, [' keys kind', "['m']", "['m'] kind", "['n']"])
    >>> found.columns["['m'] kind"]
    array(['absent', 'float'], dtype=object)
    """

    size: int
    columns: Mapping[str, Array]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Columns, not among the others, that are the same in all runs: of no use until other runs are joined."""

    def column(self, name: str) -> Array:
        """A column, or what a column looks like that none of the outputs has."""
        if name in self.columns:
            return self.columns[name]
        if name in self.fixed:
            value = self.fixed[name]
            return np.full(self.size, value, dtype=object if isinstance(value, str) else None)
        return np.full(self.size, _ABSENT, dtype=object) if name.endswith(" kind") else np.full(self.size, np.nan)

    def part(self, start: int, stop: int) -> Outputs:
        """The runs from ``start`` on and before ``stop``."""
        stop = min(stop, self.size)
        kept = {name: column[start:stop] for name, column in self.columns.items()}
        return Outputs(stop - start, kept, self.fixed)

    def where(self, chosen: Array) -> Outputs:
        """Some of the runs: a mask or places."""
        kept = {name: column[chosen] for name, column in self.columns.items()}
        return Outputs(int(np.count_nonzero(chosen)) if chosen.dtype == bool else chosen.size, kept, self.fixed)


def join(parts: Sequence[Outputs]) -> Outputs:
    """All runs of all parts, in their order.

    >>> join([gather([1, 2]), gather([None])]).columns[" kind"]
    array(['int', 'int', 'None'], dtype=object)
    """
    parts = [part for part in parts if part.size] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    fixed = {
        name: value
        for name, value in parts[0].fixed.items()
        if all(name not in part.columns and part.fixed.get(name) == value for part in parts)
    }
    names = dict.fromkeys(name for part in parts for name in (*part.columns, *part.fixed) if name not in fixed)
    size = sum(part.size for part in parts)
    few = _few((name.removesuffix(" kind") for name in (*names, *fixed)), size)
    columns = {
        name: _stacked([part.column(name) for part in parts]) for name in names if name.removesuffix(" kind") in few
    }
    fixed = {name: value for name, value in fixed.items() if name.removesuffix(" kind") in few}
    return Outputs(size, columns, fixed)


def _few(paths: Iterable[str], size: int) -> set[str]:
    """The paths that are kept: of too many, those that come first in an order that no data set has a say in, the fewer
    the more runs there are. So a path that is kept of all runs was kept of every part of them."""
    every, most = set(paths), max(MOST_COLUMNS, min(_MANY_COLUMNS, MOST_CELLS // max(1, size)))
    if len(every) <= most:
        return every
    order = sorted(every, key=lambda path: (path.count("[") + path.count(" has "), crc32(repr(path).encode()), path))
    return set(order[:most])


def _stacked(columns: list[Array]) -> Array:
    width = max((column.shape[1] for column in columns if column.ndim == 2), default=0)
    if width:
        columns = [_padded(column, width) for column in columns]
    if any(column.dtype.kind == "f" for column in columns):
        columns = [column.astype(np.float64) if column.dtype.kind in "iu" else column for column in columns]
    return np.concatenate(columns)


def _padded(column: Array, width: int) -> Array:
    wide = column if column.ndim == 2 else column[:, None]
    if wide.shape[1] == width:
        return wide
    return np.hstack([wide.astype(np.float64), np.full((wide.shape[0], width - wide.shape[1]), np.nan)])


def gather(outputs: Any) -> Outputs:
    """Take outputs apart, one for each run; an array counts as one output for each of its rows.

    >>> gather(np.zeros((3, 2))).columns[""].shape
    (3, 2)
    >>> {name: column.tolist() for name, column in gather([0.5, None, True]).columns.items()}
    {' kind': ['float', 'None', 'True'], '': [0.5, nan, nan]}
    """
    if type(outputs) is np.ndarray and outputs.dtype.kind in "if" and outputs.dtype.itemsize <= 8 and outputs.ndim > 0:
        width = int(np.prod(outputs.shape[1:]))
        if len(outputs) and width:
            return Outputs(len(outputs), {"": _numeric(outputs.reshape(len(outputs), width))}, _fixed(outputs[0]))
    every = list(outputs)
    fast = _uniform(every)
    if fast is not None:
        return Outputs(len(every), {"": fast}, _fixed(every[0]))
    paths: dict[str, dict[int, Leaf]] = {}
    for run, output in enumerate(every):
        for path, leaf in leaves(output):
            paths.setdefault(path, {})[run] = leaf
    result: dict[str, Array] = {}
    fixed: dict[str, Any] = {}
    few = _few(paths, len(every))
    for path, column in paths.items():
        if path in few:
            result.update(_as_columns(path, column, len(every), fixed))
    return Outputs(len(every), result, fixed)


def _fixed(output: Any) -> dict[str, Any]:
    """What an output has besides its numbers, as its leaves say it."""
    told: dict[str, Any] = {}
    for path, leaf in leaves(output):
        told[f"{path} kind"] = leaf.kind
        if path and leaf.value is not None:
            told[path] = leaf.value
    return told


def _numeric(array: Array) -> Array:
    """Numbers as 64-bit floats or integers; a single coordinate is no vector."""
    array = array.astype(np.int64 if array.dtype.kind == "i" else np.float64, copy=False)
    return array[:, 0] if array.shape[1] == 1 else array


def _uniform(outputs: list[Any]) -> Array | None:
    """The column of outputs that are all numbers of one type, or vectors of one shape and type."""
    kinds = set(map(type, outputs))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is float or issubclass(kind, np.floating):
        return np.array(outputs, dtype=np.float64) if np.dtype(kind).itemsize <= 8 else None
    if kind is int or kind is np.int64:
        try:
            whole = np.array(outputs, dtype=np.int64)
        except OverflowError:
            return None
        return whole if whole.min() >= -_EXACT and whole.max() <= _EXACT else None
    if kind is np.ndarray:
        shapes = {(output.shape, output.dtype) for output in outputs}
        first = outputs[0]
        if len(shapes) == 1 and first.dtype.kind in "if" and first.dtype.itemsize <= 8 and first.ndim and first.size:
            return _numeric(np.stack(outputs).reshape(len(outputs), -1))
    return None


def _as_columns(path: str, column: dict[int, Leaf], size: int, fixed: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    """The numbers of a path, if it has some, and the kinds of its leaves."""
    kinds = {leaf.kind for leaf in column.values()}
    if len(kinds) == 1 and len(column) == size:
        fixed[f"{path} kind"] = kinds.pop()
    else:
        labels = np.full(size, _ABSENT, dtype=object)
        for run, leaf in column.items():
            labels[run] = leaf.kind
        yield f"{path} kind", labels
    held = {run: leaf.value for run, leaf in column.items() if leaf.value is not None}
    numbers = _numbers({run: value for run, value in held.items() if np.size(value)}, size)
    if numbers is not None:
        yield path, numbers


def _numbers(values: dict[int, Any], size: int) -> Array | None:
    """Integers where all runs have one, else floats and NaN where there is none; vectors padded to one length."""
    if not values:
        return None
    vectors = {run: value for run, value in values.items() if isinstance(value, np.ndarray)}
    whole = len(values) == size and all(
        value.dtype.kind == "i" if isinstance(value, np.ndarray) else type(value) is int for value in values.values()
    )
    if not vectors:
        if whole:
            return np.array([values[run] for run in range(size)], dtype=np.int64)
        column = np.full(size, np.nan)
        column[list(values)] = list(values.values())
        return column
    width = max(value.size for value in vectors.values())
    if whole and len(vectors) == size and all(value.size == width for value in vectors.values()):
        return _numeric(np.stack([vectors[run] for run in range(size)]))
    matrix = np.full((size, width), np.nan)
    for run, value in values.items():
        if isinstance(value, np.ndarray):
            matrix[run, : value.size] = value
        else:
            matrix[run, 0] = value
    return matrix


__all__ = ["Array", "Outputs", "Raised", "gather", "join"]
