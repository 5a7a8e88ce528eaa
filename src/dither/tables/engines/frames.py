"""The one gate through which frames in memory enter: every column gets its type from what is declared.

What a column's type is comes from the caller (``types=`` or a card) or from the frame's schema, never from its values.
A column of Python objects has no schema, so its type must be declared. A declared type is applied to each value by
itself: a value that it cannot hold is NULL, and no value changes how another is read. Behind the gate there are plain
Arrow columns only, whose text is valid UTF-8.

pandas chooses the dtype of a whole column by its values: one missing whole number makes all of them floats, one odd
cell makes them objects. A declared type therefore fits every dtype of pandas. Polars and Arrow keep whole numbers
whole, so with them only numbers may be declared as other numbers.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.tables.card.model import TYPES, Type, arrow_type
from dither.tables.card.values import EXACT_INTEGERS
from dither.tables.engines.base import source_error

_SECONDS = (-62135596800, 253402300799)
"""The years 1 to 9999."""


class Objects(list[Any]):
    """A column of Python objects, which has no type of its own."""


class Foreign(Objects):
    """A column of a type that Arrow does not have; usable only as a declared one."""


def plain_table(
    frame: Any, types: Mapping[str, Type], only_declared: bool, unit: str | None = None
) -> tuple[Any, list[str]]:
    """Return a frame as an Arrow table of plain columns, and the names of columns that no card's type fits.

    Parameters
    ----------
    frame
        A pandas or Polars frame, an Arrow table, a DuckDB relation.
    types
        The declared types.
    only_declared
        Whether the other columns are left out; otherwise they have the type of the frame's schema.
    unit
        The column that names people. It is refused where a value cannot be held: that person would be left out.
    """
    names, columns, inferred = _columns(frame)
    if len(set(names)) != len(names):
        raise source_error("columns that differ", "two of one name", "rename one of them")
    plain: dict[str, Any] = {}
    unusable: list[str] = []
    for name, values in zip(names, columns, strict=True):
        declared = types.get(name)
        if declared is None and only_declared:
            continue
        if isinstance(values, Foreign) and declared is None:
            unusable.append(name)
            continue
        if isinstance(values, Objects) and declared is None:
            raise InvalidData(
                f"column {_shown(name)}",
                "a declared type",
                "Python objects, whose type would have to be guessed from the values",
                f"pass types={{{_shown(name)!r}: 'text'}} (or {', '.join(TYPES[:2])}, …), convert the column with "
                "astype('string'), or leave it out",
            )
        is_number = not isinstance(values, Objects) and _family(values.type) in ("integer", "number")
        if name == unit and declared == "text" and is_number:
            declared = None  # the engine writes numbers as text, each as one of its own
        result = _typed(values, declared, inferred)
        if name == unit and result is not None:
            _check_unit_values(name, values, result, declared)
        if result is None:
            unusable.append(name)
        else:
            plain[name] = result
    if not plain and not only_declared:
        raise source_error("columns of numbers, text or dates", "none", "convert its columns before")
    return pa.table(plain or {"": pa.nulls(0)}), unusable


def _check_unit_values(name: str, values: Any, converted: Any, declared: Type | None) -> None:
    """Refuse the person's column ``name`` where a value became NULL in conversion: that person's rows would be left
    out.

    ``values`` are those of the frame, ``converted`` the Arrow column made of them, as the ``declared`` type (None:
    text).
    """
    missing = sum(map(_is_missing, values)) if isinstance(values, Objects) else values.null_count
    if not isinstance(values, Objects) and pa.types.is_floating(values.type):
        missing += pc.sum(pc.is_nan(values)).as_py() or 0
    if converted.null_count > missing:
        fix = "convert it before, for example with astype('string')"
        expected = f"values that can be held as {declared or 'text'}, since it names the person"
        raise InvalidData(f"column {_shown(name)}", expected, "values that cannot", fix)


def _is_missing(value: object) -> bool:
    """Return whether a Python object stands for a missing value: None, NaN, NaT, or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA cannot say whether it differs from itself
        return True


def check_types(types: Mapping[str, Type] | None) -> dict[str, Type]:
    """Return declared types as a dict; refuse names that are no types."""
    declared = dict(types or {})
    for name, kind in declared.items():
        if kind not in TYPES:
            got = kind if isinstance(kind, str) else type(kind).__name__
            raise InvalidArgument(
                f"types[{_shown(str(name))!r}]", f"one of {', '.join(TYPES)}", got, "choose one of these"
            )
    return declared


def _shown(name: str) -> str:
    """Return a name for a message, with control characters replaced."""
    return "".join(sign if sign.isprintable() else "?" for sign in name)


# -- the columns of a frame, as its schema has them -------------------------------------------------------------------


def _columns(frame: Any) -> tuple[list[str], Iterator[Any], bool]:
    """Return a frame's column names and columns, and whether its library infers the type of a column from its
    values."""
    name, home = type(frame).__name__, type(frame).__module__.partition(".")[0]
    if home == "pandas" and name == "DataFrame":
        places = range(len(frame.columns))
        return [str(label) for label in frame.columns], (_of_pandas(frame.iloc[:, place]) for place in places), True
    if home == "polars" and name in ("DataFrame", "LazyFrame"):
        whole = frame.collect() if name == "LazyFrame" else frame
        return list(whole.columns), (_of_polars(series) for series in whole.get_columns()), False
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, duckdb.DuckDBPyRelation):
        frame = frame.to_arrow_table()
    if isinstance(frame, pa.Table):
        return list(frame.column_names), iter(frame.columns), False
    raise WrongType("source", "a frame or a table", name, "pass a pandas, polars or Arrow table")


def _of_pandas(series: Any) -> Any:
    """Return a pandas column as Arrow; as ``Objects`` where it has no type, as ``Foreign`` where Arrow lacks its
    type."""
    dtype = series.dtype
    if str(dtype) == "category":
        dtype = series.cat.categories.dtype
    if str(dtype) == "object":
        return Objects(series)
    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError):
        # text that is not Unicode is read value by value; else it is an extension of pandas that Arrow does not know
        text = getattr(dtype, "name", "").startswith(("str", "string"))
        return _convert(series, "text") if text else Foreign(series)


def _of_polars(series: Any) -> Any:
    """Return a polars column as Arrow; as ``Objects`` where it has no type, as ``Foreign`` where Arrow lacks its
    type."""
    if str(series.dtype).startswith("Object"):
        return Objects(series)
    try:
        return series.to_arrow()
    except Exception:  # polars raises its own kinds; a type that Arrow lacks, whatever the values
        return Foreign(series)


# -- one column as its declared type ----------------------------------------------------------------------------------


def _typed(values: Any, declared: Type | None, inferred: bool) -> Any | None:
    """Return a column converted to its declared type (None: the type of its schema); None where no card's type fits.

    Which conversion is used depends on the types alone, not on values. ``inferred`` says that the frame's library
    infers types from values, as pandas does: any type may then be declared, and values are converted one by one.
    """
    if isinstance(values, Objects):
        assert declared is not None
        return _convert(values, declared)
    column = _plain(values)
    if declared is None:
        return column
    if column is not None and (pa.types.is_null(column.type) or _family(column.type) == declared):
        return column
    if column is not None and declared == "number" and pa.types.is_integer(column.type):
        return column
    if column is not None and declared == "integer" and _family(column.type) == "number":
        return _whole(column)
    return _convert(values.to_pylist(), declared) if inferred else column


def _family(kind: Any) -> Type | None:
    """Return the card's type for an Arrow type; None for types that a card does not have."""
    tests: dict[Type, Callable[[Any], bool]] = {
        "integer": pa.types.is_integer,
        "number": lambda it: pa.types.is_floating(it) or pa.types.is_decimal(it),
        "text": lambda it: pa.types.is_string(it) or pa.types.is_large_string(it),
        "boolean": pa.types.is_boolean,
        "date": pa.types.is_date,
        "timestamp": pa.types.is_timestamp,
    }
    return next((type for type, test in tests.items() if test(kind)), None)


def _plain(values: Any) -> Any | None:
    """Return an Arrow column converted to a type that DuckDB reads without loss; None where there is none."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _plain(values.cast(kind.value_type)) if _family(kind.value_type) != "text" else _text(values)
    if _family(kind) == "text" or str(kind) == "string_view":
        return _text(values)
    if pa.types.is_float16(kind):
        return values.cast(pa.float32())
    if pa.types.is_date64(kind):
        return values.cast(pa.timestamp("ms"), safe=False).cast(pa.date32(), safe=False)
    if pa.types.is_timestamp(kind):
        return _utc(values, kind)
    if pa.types.is_null(kind):  # which has no width
        return values
    return values if _family(kind) is not None and kind.bit_width <= 128 else None


def _text(values: Any) -> Any:
    """Return a text column in UTF-8, NULL where a value is not valid."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    return pa.chunked_array([_utf8(chunk) for chunk in chunks], pa.large_string())


def _utf8(values: Any) -> Any:
    """Return an Arrow array of text in UTF-8, decoded value by value only where some value is not valid."""
    if pa.types.is_dictionary(values.type):
        return pc.take(_utf8(values.dictionary), values.indices)
    raw = values.cast(pa.large_binary())
    try:
        return raw.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(value) for value in raw.to_pylist()], pa.large_string())


def _decoded(value: bytes | None) -> str | None:
    """Return bytes decoded as UTF-8; None where they are not valid."""
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _utc(values: Any, kind: Any) -> Any:
    """Return timestamps in UTC without a zone, in microseconds (nanoseconds stay as they are); NULL outside the years 1
    to 9999.

    ``kind`` is their Arrow type. Nanoseconds in 64 bits do not reach beyond these years.
    """
    if kind.unit == "ns":
        return values.cast(pa.timestamp("ns"))
    scale = {"s": 1, "ms": 1000, "us": 1000000}[kind.unit]
    count = values.cast(pa.int64())
    inside = pc.and_(pc.greater_equal(count, _SECONDS[0] * scale), pc.less(count, (_SECONDS[1] + 1) * scale))
    plain = pc.if_else(inside, count, pa.scalar(None, pa.int64()))
    return plain.cast(pa.timestamp(kind.unit)).cast(pa.timestamp("us"))


def _whole(values: Any) -> Any:
    """Return numbers as integers; NULL where they are not whole, or beyond 2^53, where doubles skip integers."""
    if pa.types.is_decimal(values.type):
        return values if values.type.scale == 0 else _convert(values.to_pylist(), "integer")
    exact = pc.and_(pc.less_equal(pc.abs(values), EXACT_INTEGERS), pc.equal(pc.floor(values), values))
    return pc.if_else(exact, values, pa.scalar(None, values.type)).cast(pa.int64())


# -- one value as its declared type -----------------------------------------------------------------------------------


def _convert(values: Iterable[Any], type: Type) -> Any:
    """Return Python values as an Arrow array of a card's type, NULL where a value does not fit."""
    kind = pa.large_string() if type == "text" else arrow_type(type)
    return pa.array([convert(value, type) for value in values], kind)


def convert(value: object, type: Type) -> Any:
    """Return one Python value as a card's type; None where the type cannot hold it. The result depends on no other
    value.

    Whole floats become integers, and 0 and 1 become truth values. Text is not parsed.
    """
    try:
        return _CONVERT[type](value)
    except Exception:  # the methods of an unknown object may raise anything
        return None


def _number(value: object) -> int | float | Decimal | None:
    """Return a value as int, float or Decimal; None for NaN and for what is no number."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return None if value != value else float(value)
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    if isinstance(value, (complex, np.complexfloating)):  # what pandas makes of numbers beside a complex one
        return _number(float(value.real)) if value.imag == 0 else None
    return None


def _integral(value: object) -> int | None:
    """Return a value as an int where it is exactly whole; None otherwise."""
    number = _number(value)
    if number is None or isinstance(number, int):
        return number
    if isinstance(number, float):
        return int(number) if abs(number) <= EXACT_INTEGERS and number == int(number) else None
    return int(number) if number.is_finite() and abs(number) < 1 << 64 and number == int(number) else None


def _to_integer(value: object) -> int | None:
    """Return a value as an integer of 64 bits; None where it is none."""
    number = _integral(value)
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


def _to_number(value: object) -> float | None:
    """Return a value as a float; None where it is no number."""
    number = _number(value)
    return None if number is None else float(number)


def _to_text(value: object) -> str | None:
    """Return a text, or an integer as text; None for other values. Raise for text that is not Unicode."""
    if isinstance(value, str):
        return str(value.encode().decode())
    number = None if isinstance(value, (bool, np.bool_)) else _integral(value)
    return None if number is None else str(number)


def _to_boolean(value: object) -> bool | None:
    """Return a truth value, or 0 and 1 as one; None for other values."""
    number = _integral(value)
    return bool(number) if number in (0, 1) else None


def _to_date(value: object) -> date | None:
    """Return a date, or a datetime at midnight without a zone as one; None for other values."""
    if isinstance(value, datetime):
        return value.date() if value == value and value.tzinfo is None and value.time() == time() else None
    return value if isinstance(value, date) else None


def _to_timestamp(value: object) -> datetime | None:
    """Return a datetime in UTC without a zone; None for NaT and other values."""
    if not isinstance(value, datetime) or value != value:  # pandas' NaT is a datetime that differs from itself
        return None
    utc = value if value.tzinfo is None else value.astimezone(UTC)
    return datetime.combine(utc.date(), utc.time())


_CONVERT: dict[Type, Callable[[object], Any]] = {
    "integer": _to_integer,
    "number": _to_number,
    "text": _to_text,
    "boolean": _to_boolean,
    "date": _to_date,
    "timestamp": _to_timestamp,
}
