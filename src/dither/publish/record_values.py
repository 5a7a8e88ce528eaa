"""The values of synthetic records from their codes: keys as they are; for bins, numbers, dates or times inside them.

A key becomes itself, NULL becomes NULL, and the key of other values that key. For a column in bins, the other values
are numbers outside all bins, of which nothing is known: they become NULL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.publish.domain import Attribute, Domain, Integers
from dither.tables.card.model import Type, arrow_type
from dither.tables.card.values import Value

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, eq=False)
class RecordColumn:
    """The values of one attribute in records; made by :func:`record_columns`.

    The values in bins are numbers on a *scale*: integers and real numbers as they are, dates in days since 1970, and
    timestamps in microseconds since 1970.

    >>> column, = record_columns(Domain([Attribute.binned("age", [0, 18, 65], null=True)]))
    >>> column.type, column.low, column.high, column.values_at(1, 30)
    ('integer', array([ 0, 18]), array([17, 64]), {'age': 30})
    """

    attribute: Attribute
    type: Type
    """The type of the finest level."""
    low: NDArray[Any] | None = field(default=None, repr=False)
    """The smallest value of each bin; None where the attribute has keys."""
    high: NDArray[Any] | None = field(default=None, repr=False)
    """The largest value of each bin."""

    @property
    def types(self) -> dict[str, Type]:
        """Return the type of every level."""
        attribute = self.attribute
        if self.low is not None:
            return {attribute.level_names[-1]: self.type}
        return {
            name: type_of_arrow(keys.type) for name, keys in zip(attribute.level_names, attribute.keys, strict=True)
        }

    @property
    def whole(self) -> bool:
        """Return whether the numbers in the bins are whole: integers, days or microseconds."""
        return self.type != "number"

    def values_at(self, code: int, number: float | None = None) -> dict[str, Value]:
        """Return the value of each level, by name, for a code and, if it is that of a bin, a number inside the bin."""
        attribute = self.attribute
        if self.low is not None:
            value = None if number is None or code >= len(self.low) else _value_on_scale(number, self.type)
            return {attribute.level_names[-1]: value}
        depth = len(attribute.level_names)
        return {
            name: attribute.keys[level - 1][int(attribute.ancestors(depth, level)[code])].as_py()
            for level, name in enumerate(attribute.level_names, start=1)
        }

    def label(self, code: int) -> str:
        """Return the label of a code: its key, the only value of its bin, or the bin's first and last values.

        >>> column, = record_columns(Domain([Attribute.binned("age", [0, 1, 18], null=True)]))
        >>> [column.label(code) for code in range(3)]
        ['0', '1 to 17', 'NULL']
        """
        key = self.attribute.keys[-1][code].as_py()
        if self.low is None or self.high is None or code >= len(self.low) or not self.whole:
            return "NULL" if key is None else str(key)
        first, last = (_value_on_scale(end[code], self.type) for end in (self.low, self.high))
        return str(first) if first == last else f"{first} to {last}"

    def numbers(self, codes: Integers, uniform: NDArray[np.float64]) -> NDArray[Any] | None:
        """Return a number inside the bin of each record, from ``uniform`` numbers in [0, 1); None if the attribute has
        keys."""
        if self.low is None or self.high is None:
            return None
        places = np.minimum(codes, len(self.low) - 1)
        return inside(self.low[places], self.high[places], uniform)

    def arrays(self, codes: Integers, numbers: NDArray[Any] | None) -> dict[str, Any]:
        """Return the Arrow columns of records with these codes, and these numbers inside their bins."""
        attribute = self.attribute
        if self.low is None or numbers is None:
            depth = len(attribute.level_names)
            return {
                name: keys.take(pa.array(attribute.ancestors(depth, level)[codes]))
                for level, (name, keys) in enumerate(zip(attribute.level_names, attribute.keys, strict=True), start=1)
            }
        type = arrow_type(self.type)
        plain = pa.array(numbers, mask=codes >= len(self.low))
        if self.type == "date":
            plain = plain.cast(pa.int32())
        return {attribute.level_names[-1]: plain.cast(type)}


def record_columns(
    domain: Domain,
    types: Mapping[str, Type] | None = None,
    periods: Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[date, date]] | None = None,
) -> list[RecordColumn]:
    """Return the columns of the records of a domain.

    ``types`` has types of attributes in bins; by default integers if all edges are whole, else real numbers.
    ``periods`` names attributes whose keys are the starts of periods such as months: records get days or times inside
    the period, and within the attribute's ``bounds`` if these are stated.
    """
    columns = []
    for attribute in domain.attributes:
        stated = (types or {}).get(attribute.name)
        if attribute.name in (periods or {}):
            columns.append(
                _period_column(attribute, (periods or {})[attribute.name], (bounds or {}).get(attribute.name))
            )
            continue
        if attribute.edges is None:
            columns.append(RecordColumn(attribute, type_of_arrow(attribute.keys[-1].type)))
            continue
        type: Type = stated or ("integer" if all(edge == int(edge) for edge in attribute.edges) else "number")
        edges = np.array(attribute.edges)
        if type == "number":
            columns.append(RecordColumn(attribute, type, edges[:-1], np.nextafter(edges[1:], -np.inf)))
            continue
        starts = np.array([math.ceil(edge) for edge in attribute.edges], dtype=np.int64)
        if np.any(np.diff(starts) < 1):
            raise InvalidArgument(
                f"edges of {attribute.name}",
                f"at least one value of the type {type} in every bin",
                "a bin without any",
                "leave out one of its edges",
            )
        columns.append(RecordColumn(attribute, type, starts[:-1], starts[1:] - 1))
    return columns


def _period_column(attribute: Attribute, period: str, bounds: tuple[date, date] | None) -> RecordColumn:
    """Return the column for keys that are starts of a ``period``: records have a date or timestamp within it.

    Periods are cut at the ``bounds``; one that lies beyond them stays whole, since records may still have its key.
    """
    type = type_of_arrow(attribute.keys[-1].type)
    factor = 86_400_000_000 if type == "timestamp" else 1
    listed = len(attribute.keys[-1]) - attribute.null - (attribute.other is not None)
    starts = attribute.keys[-1].to_pylist()[:listed]
    low = [int(on_scale(start) * factor) for start in starts]
    high = [int(on_scale(_following(start, period)) * factor) - 1 for start in starts]
    first, last = (min(low), max(high)) if bounds is None else (int(on_scale(end) * factor) for end in bounds)
    inner = [(max(begin, first), min(end, last)) for begin, end in zip(low, high, strict=True)]
    kept = [
        pair if pair[0] <= pair[1] else outer for pair, outer in zip(inner, zip(low, high, strict=True), strict=True)
    ]
    ends = np.array(kept, dtype=np.int64).reshape(-1, 2)
    return RecordColumn(attribute, type, ends[:, 0], ends[:, 1])


def _following(start: Any, period: str) -> Any:
    """Return the start of the next period after the one that begins at ``start``.

    >>> _following(date(2024, 11, 1), "quarter"), _following(date(2024, 2, 26), "week")
    (datetime.date(2025, 2, 1), datetime.date(2024, 3, 4))
    """
    durations = {"week": timedelta(weeks=1), "day": timedelta(days=1), "hour": timedelta(hours=1)}
    if period in durations:
        return start + durations[period]
    months = start.year * 12 + start.month - 1 + {"month": 1, "quarter": 3, "year": 12}[period]
    return start.replace(year=months // 12, month=months % 12 + 1)


def inside(low: NDArray[Any], high: NDArray[Any], uniform: NDArray[np.float64]) -> NDArray[Any]:
    """Return numbers uniform between ``low`` and ``high``, both included, from ``uniform`` numbers in [0, 1)."""
    if low.dtype.kind == "i":
        steps = np.floor(uniform * (high - low + 1)).astype(np.int64)
        return np.asarray(np.clip(low + steps, low, high))
    return np.asarray(np.clip(low + uniform * (high - low), low, high))


def on_scale(value: Value) -> Fraction:
    """Return a constant as a number: days since 1970 for dates and, with a fraction, for timestamps.

    >>> on_scale(date(1970, 1, 3)), on_scale(1.5)
    (Fraction(2, 1), Fraction(3, 2))
    """
    if isinstance(value, datetime):
        return Fraction((value - _EPOCH) // _MICROSECOND, 86_400_000_000)
    if isinstance(value, date):
        return Fraction((value - _EPOCH.date()).days)
    assert isinstance(value, (int, float))
    return Fraction(value)


def _value_on_scale(number: float, type: Type) -> Value:
    """Return the value of a type with this number on the scale of bins: days or microseconds since 1970 for dates and
    timestamps."""
    if type == "date":
        return _EPOCH.date() + timedelta(days=int(number))
    if type == "timestamp":
        return _EPOCH + timedelta(microseconds=int(number))
    return float(number) if type == "number" else int(number)


def type_of_arrow(arrow_type: Any) -> Type:
    """Return the column type that values of an Arrow type have; text for types that have no counterpart.

    >>> type_of_arrow(pa.int32()), type_of_arrow(pa.string())
    ('integer', 'text')
    """
    types: list[tuple[Any, Type]] = [
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "number"),
        (pa.types.is_date, "date"),
        (pa.types.is_timestamp, "timestamp"),
    ]
    return next((type for matches, type in types if matches(arrow_type)), "text")
