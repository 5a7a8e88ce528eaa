"""Reading input data: any column or table is converted to plain NumPy arrays here, value by value.

The type of a column is what the caller declares, by the ``dtype`` of an array or Series, by the type of an Arrow
column, or by ``kind``; it is never worked out from the records. A list and a column of dtype ``object`` declare
nothing. Each value is converted by itself, so that one record cannot change how another is represented; a value
that does not fit the declared type is *missing*, which is not an error here. Beyond this module there is no pandas.

>>> as_values([7, None, "?", 1.5, True]).values
array([7. , nan, nan, 1.5, 1. ])
>>> as_values([7, None, "?", 1.5, True], kind="integer").values
array([7, 0, 0, 0, 1])
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, WrongType

Kind = Literal["number", "float", "integer", "boolean", "label"]
"""What a caller may declare a column to be; ``"number"``: integers or floats, whichever its dtype says, and floats
where it says nothing."""

_ENDS = -(1 << 63), (1 << 63) - 1
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, Fraction, Decimal)
_PLAIN = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}
_FIX = "pass a one-dimensional list, array or Series of numbers"


@dataclass(frozen=True, eq=False)
class InputColumn:
    """One validated column: ``values`` of dtype float64, int64, bool, or object for labels, and a mask of
    ``missing`` ones.

    Where a value is missing, ``values`` holds NaN, 0, False or None.
    """

    kind: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]

    def floats(self) -> NDArray[np.float64]:
        """Return the values as float64, NaN where they are missing.

        >>> as_values(np.array([1, 2])).floats()
        array([1., 2.])
        """
        values = self.values.astype(np.float64, copy=False)
        return np.where(self.missing, math.nan, values) if bool(np.any(self.missing)) else values


@dataclass(frozen=True, eq=False)
class _Declared:
    """A column before conversion: its declared kind (None if it declares none), its values, and those known to be
    missing."""

    kind: str | None
    values: Any
    missing: Any = False
    name: str = ""


def as_values(data: Any, kind: Kind | None = None, *, name: str = "x") -> InputColumn:
    """Convert one column (a list, a NumPy array, or a pandas, Polars or Arrow column) to a declared type.

    Without a ``kind`` a list is read as floats and an object column is refused. A column whose declared type is not
    the kind asked for is converted value by value where both are numbers, and refused otherwise: text is no number,
    whatever it says.

    >>> import numpy as np
    >>> as_values(np.array([1, 2], dtype=np.uint8)).values.dtype
    dtype('int64')
    >>> as_values(["tea", 3.0, None], kind="label").values
    array(['tea', 3, None], dtype=object)
    """
    if kind is not None and kind not in get_args(Kind):
        raise InvalidArgument("kind", f"one of {', '.join(get_args(Kind))}", "an unknown kind", "choose one of them")
    column = _declared(data, name)
    if kind == "label":
        return _labels(column)
    if column.kind is None and not isinstance(column.values, list) and kind is None:
        raise WrongType(
            name, "a column that declares its type", "dtype object", "convert it, for example with astype(float)"
        )
    if column.kind == "other":
        raise WrongType(name, "real numbers of at most 64 bits", f"{column.name} values", _FIX)
    wanted = kind if kind in ("float", "integer", "boolean") else column.kind or "float"
    return _CONVERSIONS[wanted](column)


def as_table(
    data: Any, kind: Literal["float", "label"] = "float", *, columns: int | None = None, name: str = "X"
) -> NDArray[Any]:
    """Convert rows and columns to one two-dimensional array: of float64, NaN where a cell does not fit, or of
    labels.

    Takes two-dimensional arrays, frames and Arrow tables, and lists of rows. ``columns`` is how many there must be;
    for a list it is needed, since no record may decide the shape of the others: a row of another length is missing.
    An array or a frame of objects is read only as labels.

    >>> as_table([[1, 2.5], [None, "?"], [3]], columns=2)
    array([[1. , 2.5],
           [nan, nan],
           [nan, nan]])
    """
    if columns is not None and columns < 1:
        raise InvalidArgument("columns", "at least 1", columns, "pass the number of columns")
    parts = _parts(data, columns, name)
    if columns is not None and len(parts) != columns:
        raise InvalidArgument(name, f"{columns} column(s)", f"{len(parts)}", "pass one value for each")
    rows = len(parts[0]) if parts else 0
    table: NDArray[Any] = np.empty((rows, len(parts)), dtype=object if kind == "label" else np.float64)
    for i, part in enumerate(parts):
        table[:, i] = (
            as_values(part, "label", name=name).values if kind == "label" else as_values(part, name=name).floats()
        )
    return table


def as_records(data: Any, kind: Kind | None = None, *, columns: int | None = None, name: str = "x") -> NDArray[Any]:
    """Convert records to an array with an entry or a row for each: float64, NaN for missing ones, unless another
    ``kind`` is declared.

    Missing whole numbers are 0. A list is one column unless ``columns`` states how many there are.
    """
    if isinstance(data, np.ndarray) and data.ndim > 1 and data.dtype.kind in _PLAIN and data.dtype.itemsize <= 8:
        if columns is not None and data.shape[1:] != (columns,):
            raise InvalidArgument(name, f"{columns} column(s)", "a different number", "pass one value for each")
        return data.astype(np.int64 if kind == "integer" and data.dtype.kind in "bi" else np.float64)
    table = columns is not None or getattr(data, "ndim", 1) != 1 or hasattr(data, "columns")
    if table or hasattr(data, "column_names"):
        return as_table(data, "label" if kind == "label" else "float", columns=columns, name=name)
    column = as_values(data, kind, name=name)
    return column.values if kind in ("integer", "boolean", "label") else column.floats()


def _parts(data: Any, columns: int | None, name: str) -> list[Any]:
    """Split a table of any library into its columns."""
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise InvalidArgument(name, "two dimensions", f"{data.ndim}", "pass rows and columns")
        return [data[:, i] for i in range(data.shape[1])]
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas; names need not be distinct
        return [data.iloc[:, i] for i in range(data.shape[1])]
    if hasattr(data, "get_columns"):  # Polars
        return list(data.get_columns())
    if hasattr(data, "column_names") and hasattr(data, "itercolumns"):  # Arrow
        return list(data.itercolumns())
    if isinstance(data, (list, tuple)):
        if columns is None:
            raise WrongType(name, "an array or a frame", "a list of rows", "pass numpy.array(rows, dtype=float)")
        rows = [_cells(row, columns) for row in data]
        return [[row[i] for row in rows] for i in range(columns)]
    raise WrongType(name, "rows and columns", type(data).__name__, "pass a two-dimensional array or a frame")


def _cells(row: Any, columns: int) -> list[Any]:
    """Return the cells of a row of a list; all missing if it has another length."""
    cells = row.tolist() if isinstance(row, np.ndarray) else row
    return list(cells) if isinstance(cells, (list, tuple)) and len(cells) == columns else [None] * columns


def _declared(x: Any, name: str) -> _Declared:
    """Read a column of any library, with the type that it declares."""
    if isinstance(x, (str, bytes, bytearray, dict, set, frozenset, type)) or x is None or np.isscalar(x):
        raise WrongType(name, "a column of numbers", type(x).__name__, _FIX)
    dimensions = getattr(x, "ndim", 1) if not hasattr(x, "columns") and not hasattr(x, "column_names") else 2
    if dimensions != 1:
        raise InvalidArgument(name, "one dimension", f"{dimensions} dimensions", "pass one column, for example x[:, 0]")
    if isinstance(x, np.ma.MaskedArray):
        return _from_array(np.asarray(x.data), np.ma.getmaskarray(x))
    if isinstance(x, np.ndarray):
        return _from_array(x)
    library = type(x).__module__.partition(".")[0]
    if library == "pandas":
        return _from_pandas(x)
    if library == "polars":
        return _from_polars(x)
    if library == "pyarrow":
        return _from_arrow(x)
    if not hasattr(x, "__iter__"):
        raise WrongType(name, "a column of numbers", type(x).__name__, _FIX)
    return _Declared(None, list(x))


def _from_array(x: NDArray[Any], missing: Any = False) -> _Declared:
    """Read a NumPy array."""
    if x.dtype == object:
        return _Declared(None, x, missing)
    kind = _PLAIN.get(x.dtype.kind, "other") if x.dtype.itemsize <= 8 else "other"
    return _Declared(kind, x, missing, x.dtype.type.__name__)


def _from_pandas(x: Any) -> _Declared:
    """Read a pandas Series; gaps of nullable dtypes are missing."""
    dtype = x.dtype
    if isinstance(dtype, np.dtype):
        return _from_array(x.to_numpy())
    plain = getattr(dtype, "numpy_dtype", None)  # of the nullable dtypes, with gaps or without
    if plain is not None and plain.kind in _PLAIN and hasattr(x, "isna"):
        gaps = np.asarray(x.isna())
        return _from_array(x.to_numpy(dtype=plain, na_value=plain.type(0)), gaps)
    if type(dtype).__name__ in ("CategoricalDtype", "SparseDtype"):
        return _Declared(None, np.asarray(x, dtype=object))
    return _Declared("other", np.asarray(x, dtype=object), name=type(dtype).__name__)


def _from_polars(x: Any) -> _Declared:
    """Read a Polars Series; nulls are missing."""
    name = type(x.dtype).__name__ if not isinstance(x.dtype, type) else x.dtype.__name__
    kind = "integer" if x.dtype.is_integer() else "float" if x.dtype.is_float() else "other"
    if name == "Boolean":
        kind = "boolean"
    if name in ("Object", "Categorical", "Enum", "Decimal"):
        return _Declared(None, _objects(x.to_list()))
    if kind == "other" or name.endswith("128"):  # which NumPy does not have
        return _Declared(kind, _objects(x.to_list()), name=name)
    gaps = x.is_null().to_numpy()
    return _Declared(kind, x.fill_null(False if kind == "boolean" else 0).to_numpy(), gaps, name)


def _from_arrow(x: Any) -> _Declared:
    """Read an Arrow array; nulls are missing."""
    name = str(x.type)
    kinds = {"bool": "boolean", "double": "float", "float": "float", "halffloat": "float"}
    kind = kinds.get(name, "integer" if name.lstrip("u") in ("int8", "int16", "int32", "int64") else "other")
    if name.startswith(("decimal", "dictionary")):
        return _Declared(None, _objects(x.to_pylist()))
    if kind == "other":
        return _Declared(kind, _objects(x.to_pylist()), name=name)
    if name == "halffloat":
        return _Declared(kind, np.asarray(x.to_numpy(zero_copy_only=False), dtype=np.float64))
    gaps = np.asarray(x.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    filled = x.fill_null(False if kind == "boolean" else 0)
    return _Declared(kind, np.asarray(filled.to_numpy(zero_copy_only=False)), gaps, name)


def _objects(items: list[Any]) -> NDArray[Any]:
    """Return a list as an array of objects, without guessing a dtype."""
    result = np.empty(len(items), dtype=object)
    result[:] = items
    return result


def _masked(column: _Declared, size: int) -> NDArray[np.bool_]:
    """Return the mask of values that a column declares as missing."""
    return np.zeros(size, dtype=bool) if column.missing is False else np.asarray(column.missing, dtype=bool)


def _plain_array(column: _Declared) -> bool:
    """Return whether the values are an array of numbers or booleans."""
    return isinstance(column.values, np.ndarray) and column.values.dtype != object


def _floats(column: _Declared) -> InputColumn:
    """Convert a column to float64, with NaN for missing values."""
    if _plain_array(column):
        values = column.values.astype(np.float64, copy=False)
    else:
        values = np.fromiter((_float(item) for item in column.values), np.float64, len(column.values))
    result = InputColumn("float", values, _masked(column, values.size) | np.isnan(values))
    return InputColumn("float", result.floats(), result.missing)


def _integers(column: _Declared) -> InputColumn:
    """Convert a column to int64; numbers that are not whole are missing."""
    if not _plain_array(column) or column.values.dtype.kind == "f":
        items = [_integer(item) for item in (column.values.tolist() if _plain_array(column) else column.values)]
        missing = _masked(column, len(items)) | np.array([item is None for item in items], dtype=bool)
        return InputColumn("integer", np.array([item or 0 for item in items], dtype=np.int64), missing)
    values = saturate(column.values) if column.values.dtype.kind == "u" else column.values.astype(np.int64, copy=False)
    missing = _masked(column, values.size)
    return InputColumn("integer", np.where(missing, 0, values) if bool(missing.any()) else values, missing)


def _booleans(column: _Declared) -> InputColumn:
    """Convert a column to booleans; numbers other than 0 and 1 are missing."""
    if _plain_array(column) and column.values.dtype.kind == "b":
        missing = _masked(column, column.values.size)
        return InputColumn("boolean", column.values & ~missing, missing)
    items = [_integer(item) for item in (column.values.tolist() if _plain_array(column) else column.values)]
    missing = _masked(column, len(items)) | np.array([item not in (0, 1) for item in items], dtype=bool)
    return InputColumn("boolean", np.array([item == 1 for item in items], dtype=bool) & ~missing, missing)


def _labels(column: _Declared) -> InputColumn:
    """Convert a column to labels."""
    items = column.values.tolist() if isinstance(column.values, np.ndarray) else column.values
    values = _objects([as_label(item) for item in items])
    missing = _masked(column, len(items)) | np.array([item is None for item in values], dtype=bool)
    values[missing] = None
    return InputColumn("label", values, missing)


_CONVERSIONS: dict[str, Callable[[_Declared], InputColumn]] = {
    "float": _floats,
    "integer": _integers,
    "boolean": _booleans,
}


def _float(item: Any) -> float:
    """Convert a value to a float, NaN if it is no number; numbers beyond all floats become the largest one."""
    if type(item) is float:
        return item
    if not isinstance(item, _NUMBERS):
        return math.nan
    try:
        return float(item)
    except OverflowError:  # an int beyond all floats is beyond all bounds
        return sys.float_info.max if item > 0 else -sys.float_info.max
    except ValueError:  # a signaling NaN
        return math.nan


def _integer(item: Any) -> int | None:
    """Convert a value to a whole number of 64 bits, beyond them the nearest one; None if it is not whole."""
    if not isinstance(item, _NUMBERS) or (not isinstance(item, int) and not math.isfinite(_float(item))):
        return None
    whole = int(item)
    return min(max(whole, _ENDS[0]), _ENDS[1]) if whole == item else None


def as_label(item: Any) -> Any:
    """Convert a label to a plain Python value, whole floats to integers; None for missing and unhashable ones.

    >>> as_label(np.float64(3)), as_label("tea"), as_label(math.nan), as_label([])
    (3, 'tea', None, None)
    """
    item = item.item() if isinstance(item, np.generic) else item
    if isinstance(item, float):
        return None if math.isnan(item) else int(item) if item.is_integer() else item
    if type(item).__name__ in ("NAType", "NaTType"):
        return None
    try:
        hash(item)
    except TypeError:
        return None
    return item


def saturate(unsigned: NDArray[Any]) -> NDArray[np.int64]:
    """Convert unsigned to signed integers, too large ones to the largest, which only brings neighbors nearer.

    >>> saturate(np.array([2**64 - 1], dtype=np.uint64)).tolist() == [2**63 - 1]
    True
    """
    signed: NDArray[np.int64] = np.minimum(unsigned, np.uint64(2**63 - 1)).astype(np.int64)
    return signed
