"""Read the records of an estimator through :mod:`dither.validation`, value by value, typed as the caller declares.

Features and the targets of a regression are numbers, because ``bounds`` say so; labels are those of ``classes``. A cell
that is none of that is *missing*, whatever it is instead (None, NaN, text, a date), and a missing cell is replaced by a
public number: it is no error, and no reason to see the cells of other records otherwise. A table is refused for its
declared dtype and for its shape alone, and no message says how many rows there are.

>>> table([[1, 2.5], [None, True]])
array([[1. , 2.5],
       [nan, 1. ]])
>>> codes([0, "1", 1.0, None], np.array([0, 1])).tolist()
[0, -1, 1, -1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidData, WrongType
from dither.validation import as_table, as_values

Floats = NDArray[np.float64]

LARGEST = 1e100
"""Cells beyond are taken to be this large: outside of all bounds, and small enough to compute with."""

_NUMERIC = "biuf"
_RESHAPE = "Reshape your data: X.reshape(-1, 1) has one feature, X.reshape(1, -1) one row"
_ENCODE = "encode text by public numbers; declare numbers by astype(float) or pd.to_numeric(column, errors='coerce')"


def table(X: Any, columns: int | None = None) -> Floats:
    """Return rows as a matrix of floats, with NaN for every cell that is no number.

    ``columns`` is the declared number of columns; None takes the length of the first row of a list. An element of a
    list that is no row, or a row of another length, becomes a row of NaN.
    """
    if is_frame(X):
        rows = as_table(X)
    elif isinstance(X, (list, tuple)):
        rows = as_table(X, columns=_columns(X, columns))
    else:
        rows = _numeric(_array(X), "X")
    if rows.ndim != 2:
        raise InvalidData("X", "rows and columns", "no table", _RESHAPE)
    if rows.shape[1] == 0:  # in the words of scikit-learn, but for the number of rows
        got = "0 feature(s) (shape=(, 0)) while a minimum of 1 is required."
        raise InvalidData("X", "at least one column", got, "pass a table with columns")
    return rows


def filled(rows: Floats, missing: Floats | float) -> Floats:
    """Return the rows, finite: each missing cell is replaced by a public number, one for all or one for each column."""
    result = np.clip(rows, -LARGEST, LARGEST)
    return np.asarray(np.where(np.isnan(result), missing, result))


def numbers(y: Any) -> Floats:
    """Return the targets of a regression as one float for each record, with NaN for every cell that is no number."""
    column = _one_column(y)
    return _numeric(column, "y") if isinstance(column, np.ndarray) else as_values(column, name="y").floats()


def codes(y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each label among the sorted classes, and -1 for other labels."""
    label_array = labels(y)
    if label_array.dtype.kind in _NUMERIC:
        if classes.dtype.kind not in _NUMERIC:
            return np.full(len(label_array), -1)
        class_values, values = classes.astype(np.float64), label_array.astype(np.float64)
        positions = np.searchsorted(class_values, values).clip(max=len(class_values) - 1)
        return np.where(class_values[positions] == values, positions, -1)
    known = {one: code for code, one in enumerate(classes.tolist())}
    return np.array([-1 if label is None else known.get(label, -1) for label in label_array], dtype=np.int64)


def observed(y: Any) -> NDArray[Any]:
    """Return the sorted distinct labels that occur in the data, text or whole numbers.

    It reads the data without noise, so it is for labels whose occurrence is public.
    """
    label_array = labels(y)
    distinct = {one for one in label_array.tolist() if one is not None and one == one}
    result = np.asarray(sorted(distinct, key=str))
    if len({isinstance(one, str) for one in distinct}) > 1 or result.dtype.kind not in "biufU":
        raise InvalidData("y", "text or numbers", "both, or labels of other types", "pass classes=[...]")
    if result.dtype.kind == "f" and np.any(result != np.trunc(result)):
        got = "fractions (Unknown label type: continuous)"
        raise InvalidData("y", "labels of classes", got, "pass classes=[...], or use a regression")
    return np.unique(result.astype(label_array.dtype) if label_array.dtype.kind in _NUMERIC else result)


def labels(y: Any) -> NDArray[Any]:
    """Return labels as an array: of numbers if the data declare a numeric type, else of objects, None if missing."""
    column = _one_column(y)
    if isinstance(column, np.ndarray) and column.dtype.kind in _NUMERIC:
        return column
    if isinstance(column, np.ndarray) and column.dtype.kind in "cmMV":
        raise InvalidData("y", "text or whole numbers", f"dtype {column.dtype}", "encode labels by numbers")
    return as_values(column, "label", name="y").values


def shown(cells: Sequence[Any]) -> list[Any]:
    """Return each cell as a float if it is a number, as text if it is text, and as NaN otherwise.

    A cell is read by itself, so that its type does not depend on the other cells.
    """
    floats = as_values(list(cells)).values.tolist()
    return [str(cell) if isinstance(cell, str) else value for cell, value in zip(cells, floats, strict=True)]


def check_lengths(labels: int, rows: int) -> None:
    """Refuse a number of labels that differs from the number of rows, without revealing either."""
    if labels != rows:
        raise InvalidData("X, y", "as many labels as rows", "different numbers", "compare len(X) with len(y)")


def is_frame(X: Any) -> bool:
    """Return whether this is a table of named columns: of pandas, Polars or Arrow."""
    return hasattr(X, "columns") and hasattr(X, "shape")


def _array(X: Any) -> NDArray[Any]:
    """Return an array-like object as an array of NumPy; a sparse matrix is refused."""
    if hasattr(X, "toarray"):
        raise WrongType("X", "dense rows", "a sparse matrix", "pass X.toarray()")
    return np.asarray(X)


def _numeric(array: NDArray[Any], name: str) -> Floats:
    """Return an array as floats; text, complex numbers and other types are refused."""
    kind = array.dtype.kind
    if kind == "c":
        raise InvalidData(name, "real numbers", "complex numbers", "Complex data not supported, pass two columns")
    if kind not in _NUMERIC:
        content = "text" if kind in "UST" else f"dtype {array.dtype}"
        raise InvalidData(name, "numbers", content, _ENCODE)
    with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a record
        return np.asarray(array, dtype=np.float64)


def _is_row(row: Any) -> bool:
    """Return whether an object is one row of a list of rows."""
    return isinstance(row, (list, tuple)) or (isinstance(row, np.ndarray) and row.ndim == 1)


def _columns(rows: Sequence[Any], columns: int | None) -> int:
    """Return the number of columns of a list of rows: ``columns`` if declared, else the length of its first row."""
    if not rows and columns is None:
        fix = "pass numpy.empty((0, columns)), or bounds with a pair for each column"
        raise InvalidData("X", "a table that says how many columns it has", "an empty list", fix)
    widths = [len(row) for row in rows if _is_row(row)]
    if rows and not widths:
        raise InvalidData("X", "rows and columns", "no table", _RESHAPE)
    return widths[0] if columns is None else columns


def _one_column(y: Any) -> Any:
    """Return labels as one column: an array of NumPy, a list of cells, or a column of pandas, Polars or Arrow.

    A table of one column is its column, as in scikit-learn; other shapes are refused.
    """
    if y is None:
        got = "none (it requires y to be passed, but the target y is None)"
        raise InvalidData("y", "a label for each row", got, "pass y")
    if isinstance(y, (list, tuple)):  # a row of one is its cell
        return [one[0] if _is_row(one) and len(one) == 1 else one for one in y]
    if is_frame(y):
        if y.shape[1] != 1:
            raise InvalidData("y", "one column", "several or none (y should be a 1d array)", "pass one of them")
        return y.iloc[:, 0] if hasattr(y, "iloc") else y[y.columns[0]] if hasattr(y, "get_columns") else y.column(0)
    if type(y).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
        return y
    array = _array(y)
    if array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=2)
        return array[:, 0]
    if array.ndim != 1:
        raise InvalidData("y", "one column", "an array of a different shape (y should be a 1d array)", "pass y[:, 0]")
    return array


Show = Callable[[int], Any]


def records(X: Any) -> tuple[int, Show]:
    """Return the number of records, and a function from the index of a record to a table of that one row.

    Its cells are floats or text by their own values alone, so that no other record affects them; a row of a frame is a
    frame of the same library with the same column names.
    """
    if is_frame(X):
        rows = as_table(X, "label")
        return len(rows), lambda i: _framed(X, [np.array([cell]) for cell in shown(rows[i])])
    if not isinstance(X, (list, tuple)):
        is_series = type(X).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
        X = as_values(X, "label").values.tolist() if is_series else _array(X).tolist()
        if not isinstance(X, list):
            raise InvalidData("X", "rows", "a single value", _RESHAPE)
    return len(X), lambda i: _as_row(X[i])


def together(X: Any) -> tuple[int, Any]:
    """Return the number of records, and one table of all of them with columns of floats or text, by declared dtype."""
    if is_frame(X):
        parts = [_declared_column(X.iloc[:, i] if hasattr(X, "iloc") else X[name]) for i, name in enumerate(_names(X))]
        return len(parts[0]) if parts else 0, _framed(X, parts)
    if isinstance(X, (list, tuple)):
        fix = "pass numpy.array(X, dtype=float), or leave together out"
        raise WrongType("X", "an array or a frame, with together", "a list", fix)
    array = _array(X)
    rows = array.astype(object) if array.dtype.kind == "U" else _numeric(array, "X")
    return len(rows), rows


def _names(X: Any) -> list[Any]:
    """Return the column names of a frame of pandas, Polars or Arrow."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def _as_row(row: Any) -> NDArray[Any]:
    """Return one row of a list as a matrix of one row, or a single cell as a vector of one; objects if it has text."""
    cells = shown(row if _is_row(row) else [row])
    text = any(isinstance(cell, str) for cell in cells)
    result = np.empty(len(cells), dtype=object if text else np.float64)
    result[:] = cells
    return result[np.newaxis] if _is_row(row) else result


def _declared_column(column: Any) -> NDArray[Any]:
    """Return a column of text or of numbers, by its dtype; any other is refused."""
    dtype = getattr(column, "dtype", getattr(column, "type", None))
    kinds = getattr(dtype, "categories", None)
    if str(dtype).lower().startswith(("str", "utf8", "large_string")) or (
        kinds is not None and all(isinstance(one, str) for one in kinds)
    ):
        return np.array([one if isinstance(one, str) else None for one in as_values(column, "label").values], object)
    return as_values(column, name="X").floats()


def _framed(X: Any, parts: list[NDArray[Any]]) -> Any:
    """Return a frame of the same library as ``X``, with its column names and the columns ``parts``."""
    if type(X).__module__.partition(".")[0] == "pandas":
        import pandas as pd

        frame = pd.DataFrame(dict(enumerate(parts)))
        frame.columns = X.columns
        return frame
    if type(X).__module__.partition(".")[0] == "polars":
        import polars as pl

        return pl.DataFrame({name: pl.Series(name, part.tolist()) for name, part in zip(_names(X), parts, strict=True)})
    import pyarrow as pa

    return pa.table({name: part.tolist() for name, part in zip(_names(X), parts, strict=True)})
