"""Outputs of any kind as columns that can be compared.

Whatever a function returns is taken apart into *leaves*, each with a path: the number itself, ``[3]`` of a vector,
``['north']`` of a dict, whether a key or an element is there, a cell of a table, the type and the message of an error.
Over many runs the leaves of one path make a column: numbers, vectors, or labels for all that is not a number. Nothing
is interpreted here; which column tells two data sets apart is learned in :mod:`dither.audit.region`.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Table = tuple[Sequence[str], Iterable[Sequence[Any]], str]

MOST_COLUMNS = 2000
_MOST_LETTERS = 160
_MOST_COORDINATES = 1 << 16
_MOST_DEPTH = 6
_ABSENT = "absent"
_NUMBERS = {"int", "float", "ints", "floats"}


@dataclass(frozen=True)
class Raised:
    """An error, as an output.

    >>> Raised.by(ValueError("too few"))
    Raised(kind='ValueError', message='too few')
    """

    kind: str
    message: str

    @classmethod
    def by(cls, error: BaseException) -> Raised:
        """What an error shows to whoever sees it: its type and its words."""
        try:
            words = str(error)
        except Exception:
            words = "…"
        return cls(type(error).__qualname__, words[:_MOST_LETTERS])


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
        if name.endswith(" kind"):
            return np.full(self.size, self._own_kind(name.removesuffix(" kind")), dtype=object)
        return np.full(self.size, np.nan)

    def _own_kind(self, name: str) -> str:
        """The kind of a column that has no labels."""
        if name in self.columns:
            return _kind(self.columns[name])
        return _leaf_kind(self.fixed[name]) if name in self.fixed else _ABSENT

    def part(self, start: int, stop: int) -> Outputs:
        """The runs from ``start`` on and before ``stop``."""
        stop = min(stop, self.size)
        kept = {name: column[start:stop] for name, column in self.columns.items()}
        return Outputs(stop - start, kept, self.fixed)

    def where(self, chosen: Array) -> Outputs:
        """Some of the runs: a mask or places."""
        kept = {name: column[chosen] for name, column in self.columns.items()}
        return Outputs(int(np.count_nonzero(chosen)) if chosen.dtype == bool else chosen.size, kept, self.fixed)


def _kind(column: Array) -> str:
    return {"i": "int", "u": "int", "f": "float"}.get(column.dtype.kind, _ABSENT) + ("s" if column.ndim == 2 else "")


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
    for name in list(names):  # numbers of several kinds need labels, as they do within one part
        if not name.endswith(" kind") and len({part._own_kind(name) for part in parts}) > 1:
            names.setdefault(f"{name} kind")
    few = _few(name.removesuffix(" kind") for name in names)
    columns = {
        name: _stacked([part.column(name) for part in parts]) for name in names if name.removesuffix(" kind") in few
    }
    return Outputs(sum(part.size for part in parts), columns, fixed)


def _few(paths: Iterable[str]) -> set[str]:
    """The paths that are kept: of too many, those that come first in an order that no data set has a say in. So a
    path that is kept of all runs was kept of every part of them."""
    every = set(paths)
    if len(every) <= MOST_COLUMNS:
        return every
    order = sorted(every, key=lambda path: (path.count("[") + path.count(" has "), crc32(repr(path).encode()), path))
    return set(order[:MOST_COLUMNS])


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
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "iuf" and outputs.ndim > 0:
        return Outputs(outputs.shape[0], {"": _numeric(np.asarray(outputs).reshape(outputs.shape[0], -1))})
    every = list(outputs)
    fast = _uniform(every)
    if fast is not None:
        return Outputs(len(every), {"": fast}, _fixed(every[0]))
    columns: dict[str, dict[int, Any]] = {}
    for run, output in enumerate(every):
        for path, leaf in _leaves(output, "", 0):
            columns.setdefault(path, {})[run] = leaf
    found: dict[str, Array] = {}
    fixed: dict[str, Any] = {}
    few = _few(columns)
    for path, leaves in columns.items():
        if path in few:
            found.update(_as_columns(path, leaves, len(every), fixed))
    return Outputs(len(every), found, fixed)


def _fixed(output: Any) -> dict[str, Any]:
    """What an array has besides its numbers, as the leaves of one that is looked at by itself would say it."""
    if not isinstance(output, np.ndarray):
        return {}
    told = dict(_leaves(output, "", 0))
    return {" shape kind": told[" shape"], " length": told[" length"], " kind": _leaf_kind(told[""])}


def _numeric(array: Array) -> Array:
    """Numbers as 64-bit floats or integers; a single coordinate is no vector."""
    if array.dtype.kind == "u":
        array = array.astype(np.int64 if array.dtype.itemsize < 8 else np.float64)
    array = array.astype(np.int64 if array.dtype.kind == "i" else np.float64, copy=False)
    return array[:, 0] if array.shape[1] == 1 else array[:, :_MOST_COORDINATES]


def _uniform(outputs: list[Any]) -> Array | None:
    """The column of outputs that are all numbers of one kind, or vectors of one length."""
    kinds = set(map(type, outputs))
    if all(issubclass(kind, (float, np.floating)) for kind in kinds):
        return np.array(outputs, dtype=np.float64)
    if all(issubclass(kind, (int, np.integer)) and not issubclass(kind, (bool, np.timedelta64)) for kind in kinds):
        whole = _integers(outputs)
        return whole if whole.dtype.kind == "i" else None
    if all(issubclass(kind, np.ndarray) and not issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        shapes = {(output.shape, output.dtype.name) for output in outputs}
        if len(shapes) == 1 and outputs[0].dtype.kind in "iuf" and outputs[0].ndim and outputs[0].size:
            return _numeric(np.stack(outputs).reshape(len(outputs), -1))
    return None


def _integers(values: Sequence[Any]) -> Array:
    try:
        return np.array([int(value) for value in values], dtype=np.int64)
    except OverflowError:
        return np.array([_real(value) for value in values])


def _real(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _as_columns(path: str, leaves: dict[int, Any], size: int, fixed: dict[str, Any]) -> Iterator[tuple[str, Array]]:
    """The numbers of a path and the labels of what is not a number there; either only if there are some.

    The labels are left out only where :func:`_kind` finds them in the numbers, whatever runs they are joined with.
    """
    kinds = {run: _leaf_kind(leaf) for run, leaf in leaves.items()}
    plain = set(kinds.values()) if len(kinds) == size else {*kinds.values(), _ABSENT}
    column = _numbers(leaves, kinds, size, whole=plain == {"int"})
    if plain - _NUMBERS or len(plain) > 1:
        labels = np.full(size, _ABSENT, dtype=object)
        for run, kind in kinds.items():
            labels[run] = kind
        yield f"{path} kind", labels
    elif column is None or plain != {_kind(column)}:
        fixed[f"{path} kind"] = plain.pop()
    if column is not None:
        yield path, column


def _numbers(leaves: dict[int, Any], kinds: dict[int, str], size: int, *, whole: bool) -> Array | None:
    width = max((leaf.size for leaf in leaves.values() if isinstance(leaf, np.ndarray)), default=0)
    if width:
        matrix = np.full((size, width), np.nan)
        for run, leaf in leaves.items():
            if isinstance(leaf, np.ndarray):
                matrix[run, : leaf.size] = leaf
            elif not isinstance(leaf, str):
                matrix[run, 0] = _real(leaf)
        return matrix
    places = [run for run, kind in kinds.items() if kind in ("int", "float")]
    if not places:
        return None
    if whole:
        return _integers([leaves[run] for run in range(size)])
    column = np.full(size, np.nan)
    column[places] = [_real(leaves[run]) for run in places]
    return column


def _leaf_kind(leaf: Any) -> str:
    if isinstance(leaf, str):
        return leaf
    if isinstance(leaf, np.ndarray):
        return "ints" if leaf.dtype.kind in "iu" else "floats"
    return "int" if isinstance(leaf, int) else "float"


def _label(value: Any) -> str:
    text = str.__repr__(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"


def _leaves(output: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Every leaf of an output: an int, a float, a vector of numbers, or a str that stands for anything else."""
    if isinstance(output, Raised):
        yield path, f"raised {output.kind}"
        yield f"{path} message", _label(output.message)
    elif output is None or isinstance(output, (bool, np.bool_)):
        yield path, str(output)
    elif isinstance(output, (str, bytes, np.timedelta64)) or (isinstance(output, Decimal) and output.is_snan()):
        yield path, _label(output)
    elif isinstance(output, numbers.Integral):
        yield path, int(output)
    elif isinstance(output, (numbers.Real, Decimal)):
        yield path, _real(output)
    elif isinstance(output, complex):
        yield f"{path} real", output.real
        yield f"{path} imaginary", output.imag
    elif depth >= _MOST_DEPTH:
        yield path, _label(output)
    else:
        yield from _inside(output, path, depth + 1)


def _inside(output: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    table = _table(output)
    if table is not None:
        yield from _rows(table, path, depth)
    elif isinstance(output, np.ndarray) or type(output).__name__ == "Series":
        output = output if isinstance(output, np.ndarray) else np.asarray(output)
        array = np.asarray(output)
        if array.ndim == 0:
            yield from _leaves(array.item(), path, depth)
            return
        yield f"{path} shape", _label((array.shape, array.dtype.name))
        plain = array.dtype.kind in "iuf" and not np.ma.isMaskedArray(output)
        yield from _sequence(array.ravel() if plain else output.ravel().tolist(), path, depth)
    elif isinstance(output, Mapping):
        yield f"{path} keys", _label([_label(key) for key in output])
        for key, value in output.items():
            yield from _leaves(value, f"{path}[{_label(key)}]", depth)
    elif isinstance(output, Set):
        yield f"{path} size", len(output)
        for element in output:
            yield f"{path} has {_label(element)}", "present"
    elif isinstance(output, (list, tuple)):
        yield f"{path} type", type(output).__name__
        yield from _sequence(output, path, depth)
    elif dataclasses.is_dataclass(output) or hasattr(output, "__dict__"):
        yield f"{path} type", type(output).__name__
        for name, value in sorted(vars(output).items()):
            if not callable(value):
                yield from _leaves(value, f"{path}.{name}", depth)
    else:
        yield path, _label(output)


def _sequence(values: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    yield f"{path} length", len(values)
    if isinstance(values, np.ndarray) or (
        len(values) > 1 and all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in values)
    ):
        array = np.asarray(values)
        if array.dtype.kind in "iuf":
            yield path, array[:_MOST_COORDINATES]
            return
    for place, value in enumerate(values):
        yield from _leaves(value, f"{path}[{place}]", depth)


def _table(output: Any) -> Table | None:
    """Columns, rows and a word for the types of a table of any kind; None if it is not one."""
    name = type(output).__name__
    if name == "DataFrame" and hasattr(output, "itertuples"):
        return list(map(str, output.columns)), output.itertuples(index=False, name=None), _label(list(output.dtypes))
    if name == "DataFrame" and hasattr(output, "iter_rows"):
        return output.columns, output.iter_rows(), _label(list(output.dtypes))
    if name == "Table" and hasattr(output, "to_pylist"):
        return output.column_names, [list(row.values()) for row in output.to_pylist()], _label(output.schema.types)
    if name == "Answer" and hasattr(output, "dicts"):
        return output.columns, output.rows, _label((output.types, output.notes))
    if isinstance(output, (list, tuple)) and output and all(isinstance(row, Mapping) for row in output):
        columns = list(dict.fromkeys(str(key) for row in output for key in row))
        return columns, [[row.get(key, "missing") for key in columns] for row in output], "dicts"
    return None


def _rows(table: Table, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Schema, number of rows, which keys are there in which order, and each number under its row's key.

    The key of a row is whatever in it is neither a number nor missing; rows with the same key are told apart by
    their place among each other.
    """
    names, rows, types = table
    yield f"{path} columns", _label((list(names), types))
    count, order, seen = 0, [], dict[str, int]()
    for row in rows:
        count += 1
        key = ", ".join(_label(v) for v in row if v is not None and not isinstance(v, (numbers.Real, Decimal)))
        seen[key] = seen.get(key, 0) + 1
        key = key if seen[key] == 1 else f"{key} ({seen[key]})"
        order.append(key)
        yield f"{path} has row {key}", "present"
        for name, value in zip(names, row, strict=True):
            if value is None or isinstance(value, (numbers.Real, Decimal)):
                yield from _leaves(value, f"{path}[{key}].{name}", depth)
    yield f"{path} rows", count
    yield f"{path} order", _label(order)
