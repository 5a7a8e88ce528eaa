"""Standard pairs of neighboring data sets at which privacy bugs are commonly found.

For finding violations, the choice of the pair matters more than the statistics. Code that is right for most data fails
where all records are equal, where one is at a bound, where the data set is empty, where integers overflow, or where a
value is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import arguments
from dither.audit.outputs.canonical import ContentEquality
from dither.neighbors import AddRemove, Neighbors, relation

_RECORDS = 6
_MANY = 1000
_ROWS_PER_PERSON = 10


@dataclass(frozen=True, eq=False)
class Pair(ContentEquality):
    """Two data sets that differ in one person; unpacks as ``name, x, x_neighbor``.

    >>> name, x, x_neighbor = Pair("one more", [1], [1, 2])
    """

    name: str
    x: Any
    x_neighbor: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.name, self.x, self.x_neighbor))


def standard_neighbors(
    bounds: tuple[float, float], neighbors: Neighbors, *, records: int = _RECORDS, unusual: bool = True
) -> list[Pair]:
    """Standard pairs of neighboring arrays, for functions of an array of numbers with public ``bounds``.

    They include equal records, ties, one outlier at each bound, an empty data set, a single record, and many records.
    With ``unusual`` they also include values that a column may contain in spite of its bounds: NaN, infinities, values
    far outside, the limits of integer types, and negative zero. A function that raises an error for such values
    reveals their presence.

    >>> import dither as dp
    >>> [pair.name for pair in standard_neighbors((0, 1), dp.AddRemove)][:3]
    ['nothing, one record at the lower bound', 'nothing, one record at the upper bound', 'one more at the lower bound']
    >>> first = standard_neighbors((0.0, 1.0), dp.ReplaceOne)[0]
    >>> first.x, first.x_neighbor
    (array([0.]), array([1.]))
    """
    low, high = arguments.bounds(bounds)
    if type(low) is not type(high):
        low, high = float(low), float(high)
    count = arguments.whole(records, "records", 2)
    pairs_under = _added if relation(neighbors) is AddRemove else _replaced
    result = list(pairs_under(low, high, count))
    if unusual:
        result += _unusual(low, high, count, neighbors)
    return result


def _bases(low: Any, high: Any, count: int) -> Iterator[tuple[str, Any]]:
    middle = type(low)((low + high) / 2)
    yield "all at the lower bound", np.full(count, low)
    yield "all at the upper bound", np.full(count, high)
    yield "all in the middle", np.full(count, middle)
    yield "half at each bound", np.where(np.arange(count) % 2 == 0, low, high)
    yield "one at the lower bound, the others at the upper", np.array([low] + [high] * (count - 1))
    yield "one at the upper bound, the others at the lower", np.array([high] + [low] * (count - 1))
    yield "spread evenly", np.linspace(low, high, count).astype(np.full(1, low).dtype)
    yield "many at the upper bound", np.full(_MANY, high)


def _added(low: Any, high: Any, count: int) -> Iterator[Pair]:
    empty = np.full(0, low)
    yield Pair("nothing, one record at the lower bound", empty, np.array([low]))
    yield Pair("nothing, one record at the upper bound", empty, np.array([high]))
    for bound, value in (("lower", low), ("upper", high)):
        yield Pair(f"one more at the {bound} bound", np.array([value]), np.array([value, value]))
        for name, base in _bases(low, high, count):
            yield Pair(f"{name}, one more at the {bound} bound", base, np.append(base, value))


def _replaced(low: Any, high: Any, count: int) -> Iterator[Pair]:
    yield Pair("a single record, lower to upper bound", np.array([low]), np.array([high]))
    for bound, value in (("lower", low), ("upper", high)):
        for name, base in _bases(low, high, count):
            changed = base.copy()
            index = int(np.argmax(changed != value))
            if changed[index] != value:
                changed[index] = value
                yield Pair(f"{name}, one moved to the {bound} bound", base, changed)


def _unusual(low: Any, high: Any, count: int, neighbors: Neighbors) -> Iterator[Pair]:
    usual = np.full(count, float(low))
    numbers = {"NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf, "1e308": 1e308, "minus zero": -0.0}
    for name, value in numbers.items():
        yield _with_record(f"one {name}", usual, value, neighbors)
    yield _with_record("all NaN but one", np.full(count, np.nan), float(high), neighbors)
    for kind in (np.uint8, np.int64):
        limits = np.iinfo(kind)
        yield _with_record(
            f"{kind.__name__} at its largest", np.full(count, limits.max, dtype=kind), limits.min, neighbors
        )
        if limits.min:
            yield _with_record(
                f"{kind.__name__} at its least", np.full(count, limits.min, dtype=kind), limits.max, neighbors
            )


def _with_record(name: str, base: Any, value: Any, neighbors: Neighbors) -> Pair:
    if neighbors is AddRemove:
        return Pair(f"{name}, added", base, np.append(base, np.array([value], dtype=base.dtype)))
    changed = base.copy()
    changed[-1] = value
    return Pair(f"{name}, in the place of another", base, changed)


def multi_row_neighbors(
    bounds: tuple[float, float], neighbors: Neighbors, *, rows: int = _ROWS_PER_PERSON
) -> list[Pair]:
    """Pairs of lists of rows ``{"id": ..., "value": ...}`` in which one person has many rows, for functions whose
    guarantee is per person rather than per row.

    >>> import dither as dp
    >>> [pair.name for pair in multi_row_neighbors((0, 1), dp.AddRemove)]
    ['ten rows of one person at the lower bound', 'ten rows of one person at the upper bound', 'nobody else']
    """
    low, high = arguments.bounds(bounds)
    others = [{"id": f"p{i}", "value": low} for i in range(_RECORDS)]

    def person(value: Any) -> list[dict[str, Any]]:
        return [{"id": "q", "value": value} for _ in range(rows)]

    count = "ten" if rows == _ROWS_PER_PERSON else str(rows)
    if relation(neighbors) is AddRemove:
        return [
            Pair(f"{count} rows of one person at the lower bound", others, others + person(low)),
            Pair(f"{count} rows of one person at the upper bound", others, others + person(high)),
            Pair("nobody else", [], person(high)),
        ]
    return [
        Pair(
            f"{count} rows of one person, lower to upper bound",
            others + person(low),
            others + person(high),
        ),
        Pair(f"one row for {count}", others + person(high)[:1], others + person(high)),
    ]
