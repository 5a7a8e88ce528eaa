"""What a steward is told about cells that do not read as the card says: how many, and which format would read them.

A cell that cannot be read counts as empty, so a wrong type or format turns a whole column into NULLs, and a question
about it pays for noise. All of this is taken from the rows and is not private. ``dither check`` and ``dither init``
print it to the steward who runs them, who has the rows; nothing else uses it, and no answer and no server shows it.

A format is suggested if it reads more of the first cells than what the card says. Two are if both do and they mean
different values: 1/2/2013 is a day in January or in February, and 1,500 is one and a half or fifteen hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from dither.tables.card.formats import number_format, parts_of
from dither.tables.card.model import ColumnCard, Type
from dither.tables.engines.base import Engine, SourceColumn

MARKERS = (
    "", "NA", "N/A", "n/a", "na", "#N/A", "NULL", "null", "Null", "None", "none", "NaN", "nan", "-", "--", "?", ".",
    "..", "missing", "Missing", "unknown", "Unknown",
)  # fmt: skip
"""What people write into a cell that they leave empty."""
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


def unread_cells(engine: Engine) -> list[UnreadCells]:
    """The columns of a card with cells that do not read as it says. For the steward alone: it reads rows.

    >>> import tempfile, dither as dp
    >>> from pathlib import Path
    >>> from dither.tables.card.model import Card
    >>> from dither.tables.engines import connect
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = Path(folder, "paid.csv")
    ...     _ = source.write_text('amount;n\\n"5,27";1\\n"12,5";2\\nNA;3\\n')
    ...     with connect(str(source), Card("paid", str(source), {"amount": ColumnCard("number")})) as engine:
    ...         result = unread_cells(engine)[0]
    >>> result.unread, result.markers, str(result.better[0])
    (3, 1, 'type = "number", format = "1234,56"')
    """
    assert engine.card is not None
    result = []
    for table in engine.table_names:
        present = engine.source_columns(table)
        columns = {name: column for name, column in engine.card.private_tables[table].columns.items()}
        counts = engine.count_cells(
            table,
            [
                (name, reading)
                for name, column in columns.items()
                for reading in (None, column, MARKERS if "text" in present[name].types else ())
            ],
        )
        for place, (name, column) in enumerate(columns.items()):
            cells, read, markers = counts[3 * place : 3 * place + 3]
            if column.type == "text" or read == cells:
                continue
            item = UnreadCells(table, name, column.type, cells, cells - read, min(markers, cells - read))
            result.append(_with_better(engine, item, column, present[name]) if item.markers < item.unread else item)
    return result


def proposed_types(engine: Engine, columns: Iterable[str]) -> dict[str, tuple[int, tuple[Reading, ...]]]:
    """For columns of text, as what almost all of their first cells can be read, and how many cells were tried.

    For the steward alone: it reads rows.
    """
    (table,) = engine.table_names
    present, result = engine.source_columns(), {}
    for name in columns:
        if "text" not in present[name].types:
            continue
        tried, readings, markers = _tried(engine, table, name, _candidates(present[name]))
        best = _best(readings, least=max(1, round((1 - _MOST_UNREAD) * (tried - markers))))
        if best:
            result[name] = (tried, best)
    return result


def _with_better(engine: Engine, item: UnreadCells, column: ColumnCard, present: SourceColumn) -> UnreadCells:
    """The same with what would read more."""
    if "text" not in present.types:
        return item
    similar = next((kinds for kinds in _SIMILAR if column.type in kinds), frozenset({column.type}))
    candidates = [column, *(other for other in _candidates(present) if other.type in similar and other != column)]
    tried, (now, *readings), _ = _tried(engine, item.table, item.column, candidates)
    of_type = [reading for reading in readings if reading.type == column.type]
    better = _best(of_type, least=now.read + 1) or _best(readings, least=now.read + 1)
    return UnreadCells(
        item.table, item.column, item.type, item.cells, item.unread, item.markers, tried=tried, better=better
    )


def _tried(
    engine: Engine, table: str, name: str, candidates: Sequence[ColumnCard]
) -> tuple[int, list[Reading], int]:
    """How many of the first cells there are, can be read as each candidate, and are words for an empty one."""
    readings = [(name, None), *((name, candidate) for candidate in candidates), (name, MARKERS)]
    tried, *counts, markers = engine.count_cells(table, readings, LOOKED_AT)
    read = [Reading(each.type, each.format, count) for each, count in zip(candidates, counts, strict=True)]
    return tried, read, markers


def _best(readings: Sequence[Reading], least: int) -> tuple[Reading, ...]:
    """The readings of most cells, the first of each meaning."""
    most = max((reading.read for reading in readings), default=0)
    result: dict[object, Reading] = {}
    if most >= least:
        kind = next(reading.type for reading in readings if reading.read == most)
        for reading in readings:
            if reading.read == most and reading.type == kind:
                result.setdefault(_meaning(reading), reading)
    return tuple(result.values())


def _meaning(reading: Reading) -> object:
    """What tells two formats apart that read the same cells: which number is the day, which sign the decimal one."""
    if reading.format is None or reading.type == "boolean":
        return "." if reading.type == "number" else "YmdHMS" if reading.type in ("date", "timestamp") else ""
    if reading.type in ("integer", "number"):
        written = number_format(reading.format, reading.type)
        return written.decimal if written is not None else ""
    return "".join(part.name for part in parts_of(reading.format) if part.most and part.name in "Ymd")


@cache
def _formats() -> tuple[tuple[Type, str], ...]:
    """The formats that are tried, the plainest first."""
    whole = ("1234", "1,234", "1.234", "1 234", "1'234")
    numbers = ("1234.56", "1234,56", "1,234.56", "1.234,56", "1 234.56", "1 234,56", "1'234.56")
    units = ("{}", "${}", "€{}", "£{}", "{}%", "{} €")
    days = [order.replace("-", sign) for sign in "-/." for order in ("%Y-%m-%d", "%d-%m-%Y", "%m-%d-%Y")]
    times = (" %H:%M:%S", " %H:%M", "T%H:%M:%S", "T%H:%M")
    return (
        *(("integer", number) for number in whole),
        *(("number", unit.format(number)) for unit in units for number in numbers),
        *(("date", day) for day in (*days, "%Y%m%d")),
        *(("timestamp", day + time) for day in days for time in times),
    )


def _candidates(present: SourceColumn) -> list[ColumnCard]:
    """The types and formats that may be stated of a column of text; without a format where the source allows it."""
    plain: tuple[Type, ...] = ("integer", "number", "boolean", "date", "timestamp")  # 0 and 1 are numbers first
    return [
        *(ColumnCard(kind) for kind in plain if kind in present.types),
        *(ColumnCard(kind, format=format) for kind, format in _formats()),
    ]


__all__ = ["LOOKED_AT", "MARKERS", "Reading", "UnreadCells", "proposed_types", "unread_cells"]
