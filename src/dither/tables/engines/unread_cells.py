"""What a steward is told about cells that do not read as the card says: how many, and which format would read them.

A cell that cannot be read counts as empty, so a wrong type or format turns a whole column into NULLs, and a question
about it pays for noise. All of this is taken from the rows and is not private. ``dither check`` and ``dither init``
print it to the steward who runs them, who has the rows; nothing else uses it, and no answer and no server shows it.

A format is suggested if it reads more of the first cells than what the card says. Two are if both do and they mean
different values: 1/2/2013 is a day in January or in February, and 1,500 is one and a half or fifteen hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from dither.tables.card.model import ColumnCard, Type
from dither.tables.card.values import number_format, parts_of
from dither.tables.engines.base import Engine, SourceColumn

MARKERS = "^ *([Nn][Aa]|[Nn]/[Aa]|#N/A|NULL|[Nn]ull|[Nn]one|NaN|nan|--?|[?]|[.][.]?|[Mm]issing|[Uu]nknown)? *$"
"""What people write into a cell that they leave empty, as a regular expression."""
LOOKED_AT = 2_000
"""How many cells of a column are tried with other formats."""
_MOST_UNREAD = 0.05
"""The share of cells that a proposal for a column without a type may leave unread."""
_SIMILAR: tuple[frozenset[Type], ...] = (frozenset({"date", "timestamp"}), frozenset({"integer", "number"}))


@dataclass(frozen=True)
class Reading:
    """A type and a format, as a card states them, and how many of the first cells can be read so."""

    type: Type
    format: str | None
    read: int

    def __str__(self) -> str:
        return f'type = "{self.type}"' + ("" if self.format is None else f', format = "{self.format}"')


@dataclass(frozen=True)
class UnreadCells:
    """How many cells of a column there are, how many of them do not read as ``type``, how many of those are words for
    an empty cell (:data:`MARKERS`), and what would read more of the first ``tried``."""

    table: str
    column: str
    type: Type
    cells: int
    unread: int
    markers: int
    tried: int = 0
    better: tuple[Reading, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """As what the cells of a column of text can be read, of the first ``tried`` that are not empty."""

    tried: int
    readings: tuple[Reading, ...]


def unread_cells(engine: Engine) -> list[UnreadCells]:
    """Return the columns of a card with cells that do not read as it says. For the steward alone: it reads rows."""
    assert engine.card is not None
    result = []
    for table in engine.table_names:
        present = engine.source_columns(table)
        columns = engine.card.private_tables[table].columns
        counts = engine.count_cells(
            table,
            [(name, reading) for name, column in columns.items() for reading in (None, column, MARKERS)],
        )
        for place, (name, column) in enumerate(columns.items()):
            cells, read, markers = counts[3 * place : 3 * place + 3]
            if column.type == "text" or read == cells:
                continue
            item = UnreadCells(table, name, column.type, cells, cells - read, min(markers, cells - read))
            result.append(_with_better(engine, item, column, present[name]) if item.markers < item.unread else item)
    return result


def proposed_types(engine: Engine, columns: Iterable[str]) -> dict[str, Proposal]:
    """As what almost all first cells of columns of text can be read. For the steward alone: it reads rows."""
    (table,) = engine.table_names
    present, result = engine.source_columns(), {}
    for name in columns:
        if "text" not in present[name].types:
            continue
        tried, readings = _tried(engine, table, name, present[name])
        best = _best(readings, least=max(1, round((1 - _MOST_UNREAD) * tried)))
        if best:
            result[name] = Proposal(tried, best)
    return result


def _with_better(engine: Engine, item: UnreadCells, column: ColumnCard, present: SourceColumn) -> UnreadCells:
    """Return the same with what would read more."""
    if "text" not in present.types:
        return item
    tried, (now, *readings) = _tried(engine, item.table, item.column, present, column)
    of_type = [reading for reading in readings if reading.type == column.type]
    better = _best(of_type, least=now.read + 1) or _best(readings, least=now.read + 1)
    return replace(item, tried=tried, better=better)


def _tried(
    engine: Engine, table: str, name: str, present: SourceColumn, column: ColumnCard | None = None
) -> tuple[int, list[Reading]]:
    """Return how many of the first cells are no words for an empty one, and how many can be read as ``column``, and as
    each other candidate of a type like it."""
    gates = (None, MARKERS, *_GATES)
    cells, markers, *occurrences = engine.count_cells(table, [(name, gate) for gate in gates], LOOKED_AT)
    similar = next((kinds for kinds in _SIMILAR if column and column.type in kinds), None)
    candidates = [] if column is None else [column]
    for gate, count in zip(_GATES, occurrences, strict=True):
        others = [ColumnCard(kind, format=format) for kind, format in _formats(gate) if count]
        candidates += [other for other in others if other.format is not None or other.type in present.types]
    candidates = [other for other in candidates if similar is None or other.type in similar]
    candidates = list({(other.type, other.format): other for other in candidates}.values())
    readings = [(name, candidate) for candidate in candidates]
    counts = engine.count_cells(table, readings, LOOKED_AT) if readings else []
    read = [
        Reading(candidate.type, candidate.format, count) for candidate, count in zip(candidates, counts, strict=True)
    ]
    return cells - markers, read


def _best(readings: Sequence[Reading], least: int) -> tuple[Reading, ...]:
    """Return the readings of most cells, the first of each meaning."""
    most = max((reading.read for reading in readings), default=0)
    result: dict[object, Reading] = {}
    if most >= least:
        kind = next(reading.type for reading in readings if reading.read == most)
        for reading in readings:
            if reading.read == most and reading.type == kind:
                result.setdefault(_meaning(reading), reading)
    return tuple(result.values())


def _meaning(reading: Reading) -> object:
    """Return what tells two formats apart that read the same cells: which number is the day, which sign the decimal
    one."""
    if reading.format is None or reading.type == "boolean":
        return {"number": ".", "date": "Ymd", "timestamp": "Ymd"}.get(reading.type, "")
    if reading.type in ("integer", "number"):
        written = number_format(reading.format, reading.type)
        return written.decimal if written is not None else ""
    return "".join(part.name for part in parts_of(reading.format) if part.most and part.name in "Ymd")


_GATES = ("[0-9]", "[$€£%]", ":", "[TtFf]")
"""What cells must have somewhere for some formats to be tried: digits, units, times, truth values."""


@cache
def _formats(gate: str) -> tuple[tuple[Type, str | None], ...]:
    """Return the types and formats that are tried where cells have this, the plainest first."""
    whole = ("1234", "1,234", "1.234", "1 234", "1'234")
    numbers = ("1234.56", "1234,56", "1,234.56", "1.234,56", "1 234.56", "1 234,56", "1'234.56")
    units = ("${}", "€{}", "£{}", "{}%", "{} €")
    days = [order.replace("-", sign) for sign in "-/." for order in ("%Y-%m-%d", "%d-%m-%Y", "%m-%d-%Y")]
    times = (" %H:%M:%S", " %H:%M", "T%H:%M:%S", "T%H:%M")
    if gate == _GATES[0]:
        forms: list[tuple[Type, str | None]] = [("date", "%Y%m%d"), ("integer", None), ("number", None)]
        forms += [("integer", form) for form in whole] + [("number", form) for form in numbers]
        return (*forms, *(("date", day) for day in days))
    if gate == _GATES[1]:
        written: list[tuple[Type, str]] = [("integer", form) for form in whole[:3]]
        written += [("number", form) for form in numbers[:4]]
        return tuple((kind, unit.format(form)) for kind, form in written for unit in units)
    if gate == _GATES[2]:
        return (("timestamp", None), *(("timestamp", day + time) for day in days for time in times))
    return (("boolean", None),)
