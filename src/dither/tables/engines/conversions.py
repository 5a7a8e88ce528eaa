"""Columns whose source holds them as another type, and what a steward is told about cells that cannot be read.

What cannot be read is NULL, on every engine the same: a text is checked by patterns before it is cast, so that no cast
can fail, and none is more generous than another.

Dates and numbers may be written as text, whole numbers stored as doubles. A wrong type or format turns a whole column
into NULLs, and a question about it pays for noise. :func:`unread_cells` says how many there are, and which format would
read them. It is taken from the rows and is not private. ``dither check`` and ``dither init`` print it to the steward
who runs them, who has the rows; nothing else uses it, and no answer and no server shows it.

A format is suggested if it reads more of the first cells than what the card says. Two are if both do and they mean
different values: 1/2/2013 is a day in January or in February, and 1,500 is one and a half or fifteen hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from dither.tables.card.model import ColumnCard, Type
from dither.tables.card.values import EXACT_INTEGERS, DatePart, number_format, parts_of
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary
from dither.tables.query.operations.casts import CALENDAR_DAY

if TYPE_CHECKING:
    from dither.tables.engines.base import Engine, SourceColumn

_TIME = " ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"


def parsed_text(x: exp.Expr, format: str, type: Type, dialect: Dialect) -> exp.Expr:
    """Return the SQL of the date, timestamp or number that a text ``x`` states in a ``format``; NULL for texts of
    another form.

    Regular expressions split a date into its parts, which are joined to an ISO date and checked against the calendar,
    so that no engine's own parser decides.

    >>> "LPAD(REGEXP_EXTRACT" in nodes.render(parsed_text(nodes.column("x"), "%d.%m.%Y", "date", "spark"), "spark")
    True
    """
    if type in ("integer", "number"):
        return _parsed_number(x, format, type)
    parts = parts_of(format)
    pieces = {part.name: _piece(x, parts, place, dialect) for place, part in enumerate(parts) if part.most}
    day = _joined([pieces["Y"], pieces["m"], pieces["d"]], "-")
    valid = f"({CALENDAR_DAY})"
    if type == "timestamp":
        day = _joined([day, _joined([pieces.get(name, exp.Literal.string("00")) for name in "HMS"], ":")], " ")
        valid += _TIME
    conditions = [_matches(day.copy(), valid, dialect), binary("<>", pieces["Y"].copy(), exp.Literal.string("0000"))]
    moment = nodes.try_cast(day, type) if dialect == "duckdb" else nodes.cast(day, type)
    return nodes.case([(reduce(lambda one, other: binary("and", one, other), conditions), moment)], exp.null())


def _piece(x: exp.Expr, parts: Sequence[DatePart], place: int, dialect: Dialect) -> exp.Expr:
    """Return the SQL of one part of a date in the text ``x``, such as the month, padded with zeros.

    ``parts`` are all parts of the format, and ``place`` is the index of this one. Where the text does not fit the
    format, the result has no digits. A ``!`` is appended to the text and to the pattern, since in Java ``$`` also
    matches before a final line end.
    """
    pattern = ""
    for other, part in enumerate(parts):
        digits = f"[0-9]{{{part.least},{part.most}}}"
        pattern += f"[{part.name}]" if not part.most else f"({digits})" if other == place else digits
    marked = nodes.concatenate(x.copy(), exp.Literal.string("!"))
    arguments = [marked, exp.Literal.string(f"^{pattern}[!]$")]
    if dialect == "postgres":  # with a pattern as second argument, its only group
        piece: exp.Expr = exp.Anonymous(this="SUBSTRING", expressions=arguments)
    else:
        piece = exp.Anonymous(this="REGEXP_EXTRACT", expressions=[*arguments, exp.Literal.number(1)])
    if parts[place].least == parts[place].most:
        return piece
    width = exp.Literal.number(parts[place].most)
    return exp.Anonymous(this="LPAD", expressions=[piece, width, exp.Literal.string("0")])


_SPACES, _SIGNS = "\u00a0\u202f\u2009", {"\u2019": "'", "\u2212": "-"}
"""Spaces and signs that are written in numbers beside those of ASCII."""


def _parsed_number(x: exp.Expr, format: str, type: Type) -> exp.Expr:
    """Return the SQL of the number that a text ``x`` states in a ``format``, as this ``type``; NULL for texts of
    another form.

    A pattern is checked before the cast, so that every engine reads the nearest double: integers have at most 18
    digits, which fit 64 bits, other numbers at most 30 before and after the decimal sign. Then the unit before or after
    the number, thousands separators, spaces and plus signs are removed. Of two units the longer is removed first, since
    it may contain the other.
    """
    written = number_format(format, type)
    assert written is not None
    before, after = (
        f"({''.join(f'[{sign}]' for sign in unit)})?" if unit else "" for unit in (written.before, written.after)
    )
    most = 18 if type == "integer" else 30
    groups = (most - 1) // 3
    thousands, decimal = f"[{written.thousands}]", f"[{written.decimal}]"
    digits = f"[0-9]{{1,{most}}}"
    if written.thousands:
        digits = f"({digits}|[0-9]{{1,3}}({thousands}[0-9]{{3}}){{1,{groups}}})"
    if written.decimal:
        digits = f"({digits}({decimal}[0-9]{{0,30}})?|{decimal}[0-9]{{1,30}})"
    pattern = f" *([+-]? *{before} *|{before} *[+-] *){digits} *{after} *"
    units = "".join(dict.fromkeys(written.before + written.after))
    characters = "".join(dict.fromkeys(f"0-9{units}{written.thousands}{written.decimal} +")) + "-"
    text = nodes.translate(x, _SPACES + "".join(_SIGNS), " " * len(_SPACES) + "".join(_SIGNS.values()))
    plain = text.copy()
    for unit in sorted(filter(None, (written.before, written.after)), key=len, reverse=True):
        plain = _without(plain, unit)
    for sign in dict.fromkeys(f"{written.thousands} +"):
        plain = _without(plain, sign)
    if written.decimal == ",":
        plain = nodes.call("REPLACE", plain, exp.Literal.string(","), exp.Literal.string("."))
    readable = nodes.fits(text, characters, pattern)
    return nodes.case([(readable, nodes.cast(plain, type))], exp.null())


def _without(x: exp.Expr, text: str) -> exp.Expr:
    """Return a text expression with every occurrence of ``text`` removed."""
    return nodes.call("REPLACE", x, exp.Literal.string(text), exp.Literal.string(""))


def whole_double(x: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return the SQL of a double as a BIGINT; NULL where it is not whole, or beyond 2^53, where one double stands for
    several integers.

    DuckDB casts by TRY_CAST: it drops the condition where the statistics of a Parquet file imply it, but these ignore
    NaN, on which CAST would fail.

    >>> nodes.render(whole_double(nodes.column("x"), "duckdb"), "duckdb")[:30]
    'CASE WHEN ("x" >= CAST(\\'-90071'
    """
    within = binary(
        "and",
        binary(">=", x.copy(), nodes.double(-EXACT_INTEGERS)),
        binary("<=", x.copy(), nodes.double(EXACT_INTEGERS)),  # NaN is larger than every number
    )
    whole = binary("=", x.copy(), nodes.call("FLOOR", x.copy()))
    number = nodes.try_cast(x, "integer") if dialect == "duckdb" else nodes.cast(x, "integer")
    converted = nodes.case([(whole, number)], exp.null())
    return nodes.case([(within, converted)], exp.null())


def unit_text(x: exp.Expr, canonical: exp.Expr, dialect: Dialect, *, is_double: bool = False) -> exp.Expr:
    """Return the SQL of the column that names people, as texts that are distinct for distinct values; only NULL and NaN
    become NULL.

    ``canonical`` is the column as text, NULL where it is not valid UTF-8. Texts that are invalid or too long are
    replaced by their SHA-256. A whole double has the text of the integer, so that 0 and -0 are one person.

    >>> nodes.render(unit_text(nodes.column("x"), nodes.column("x"), "spark"), "spark")[:31]
    'COALESCE(CASE WHEN OCTET_LENGTH'
    """
    if is_double:
        whole = nodes.cast(whole_double(x.copy(), dialect), "text")
        number = binary("<=", x.copy(), nodes.double(float("inf")))  # NaN is larger than every number
        return nodes.case([(number, nodes.coalesce(whole, canonical))], exp.null())
    text = nodes.cast(x.copy(), "text")
    return nodes.coalesce(nodes.limit_text(canonical, text.copy(), dialect), _digest(text, dialect))


def _digest(text: exp.Expr, dialect: Dialect) -> exp.Expr:
    """Return the SQL of "sha256:" followed by the SHA-256 of a text in hexadecimal."""
    if dialect == "postgres":
        raw = nodes.call("SHA256", nodes.call("CONVERT_TO", text, exp.Literal.string("UTF8")))
        hashed = nodes.call("ENCODE", raw, exp.Literal.string("hex"))
    elif dialect == "spark":
        raw = exp.Cast(this=text, to=exp.DataType.build("BINARY"))
        hashed = exp.Anonymous(this="SHA2", expressions=[raw, exp.Literal.number(256)])
    else:
        hashed = nodes.call("SHA256", text)
    return nodes.bytewise(nodes.concatenate(exp.Literal.string("sha256:"), hashed), dialect)


def _joined(pieces: list[exp.Expr], sign: str) -> exp.Expr:
    """Return text expressions concatenated with a sign between them."""
    return reduce(
        lambda one, other: nodes.concatenate(nodes.concatenate(one, exp.Literal.string(sign)), other),
        [piece.copy() for piece in pieces],
    )


def _matches(x: exp.Expr, pattern: str, dialect: Dialect) -> exp.Expr:
    """Return the condition that a whole text matches a regular expression that all engines read alike."""
    if dialect == "duckdb":
        return nodes.call("REGEXP_FULL_MATCH", x, exp.Literal.string(pattern))
    return exp.RegexpLike(this=nodes.operand(x), expression=exp.Literal.string(f"^({pattern})$"))


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
    """A report on a column: the number of its ``cells``, of those that are ``unread`` as its ``type``, of unread ones
    that are ``markers`` of an empty cell (:data:`MARKERS`), and readings that are ``better`` for the first ``tried``
    cells."""

    table: str
    column: str
    type: Type
    cells: int
    unread: int
    markers: int
    tried: int = 0
    better: tuple[Reading, ...] = ()


@dataclass(frozen=True)
class KeyCells:
    """The cells of a column, read as its card says, that are one of its public keys."""

    column: ColumnCard


@dataclass(frozen=True)
class CellsWithoutKey:
    """A report on a column with public keys: the number of its ``cells`` that are not empty, and of those ``without`` a
    key, whose rows are in no group."""

    table: str
    column: str
    cells: int
    without: int
    keys: int


@dataclass(frozen=True)
class MarkedPeople:
    """A report on the column that names people: the number of rows in which it has a marker of an empty cell
    (:data:`MARKERS`), all of which count as one person."""

    table: str
    column: str
    rows: int


@dataclass(frozen=True)
class Proposal:
    """The types and formats that read nearly all of the first ``tried`` nonempty cells of a column of text."""

    tried: int
    readings: tuple[Reading, ...]


def unread_cells(engine: Engine) -> list[UnreadCells]:
    """Return a report for each column with cells that cannot be read as the card says. Only for the steward: it reads
    rows.

    Unread cells that are markers of an empty cell are usual; if there are others, formats that read more are sought.
    """
    assert engine.card is not None
    result = []
    for table in engine.table_names:
        present = engine.source_columns(table)
        columns = engine.card.private_tables[table].stated_columns
        counts = engine.count_cells(
            table, [(name, reading) for name, column in columns.items() for reading in (None, column, MARKERS)]
        )
        for place, (name, column) in enumerate(columns.items()):
            cells, read, markers = counts[3 * place : 3 * place + 3]
            if column.type == "text" or read == cells:
                continue
            item = UnreadCells(table, name, column.type, cells, cells - read, min(markers, cells - read))
            result.append(_with_better(engine, item, column, present[name]) if item.markers < item.unread else item)
    return result


def cells_without_key(engine: Engine) -> list[CellsWithoutKey]:
    """Return a report for each column with public keys that has other cells. Only for the steward: it reads rows."""
    assert engine.card is not None
    result = []
    for table in engine.table_names:
        columns = engine.card.private_tables[table].stated_columns
        listed = [(name, column) for name, column in columns.items() if column.keys]
        if not listed:
            continue
        counts = engine.count_cells(
            table, [(name, reading) for name, column in listed for reading in (column, KeyCells(column))]
        )
        for place, (name, column) in enumerate(listed):
            cells, with_key = counts[2 * place : 2 * place + 2]
            if with_key < cells:
                result.append(CellsWithoutKey(table, name, cells, cells - with_key, len(column.keys or ())))
    return result


def marked_people(engine: Engine) -> list[MarkedPeople]:
    """Return a report for each table in which a marker of an empty cell names a person. Only for the steward: it reads
    rows."""
    assert engine.card is not None
    result = []
    for table in engine.table_names:
        unit, present = engine.card.private_tables[table].unit, engine.source_columns(table)
        if unit is not None and unit in present and "text" in present[unit].types[:1]:
            (rows,) = engine.count_cells(table, [(unit, MARKERS)])
            result += [MarkedPeople(table, unit, rows)] if rows else []
    return result


def proposed_types(engine: Engine, columns: Iterable[str]) -> dict[str, Proposal]:
    """Return types and formats that read nearly all first cells of text columns. Only for the steward: it reads
    rows."""
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
    """Return the report with the formats that read more of the column's first cells than the card's, preferring those
    of the card's type."""
    if "text" not in present.types:
        return item
    tried, (now, *readings) = _tried(engine, item.table, item.column, present, column)
    of_type = [reading for reading in readings if reading.type == column.type]
    better = _best(of_type, least=now.read + 1) or _best(readings, least=now.read + 1)
    return replace(item, tried=tried, better=better)


def _tried(
    engine: Engine, table: str, name: str, present: SourceColumn, column: ColumnCard | None = None
) -> tuple[int, list[Reading]]:
    """Return the number of a column's first cells that are no markers of an empty cell, and each candidate reading with
    the number of cells that it reads.

    ``column`` is the card's own reading, which is the first candidate; None before there is a card. Formats are
    candidates only if the characters that they need (:data:`_GATES`) occur in the cells.
    """
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
    """Return the readings that read the most cells, one for each meaning (:func:`_meaning`); none where these are fewer
    than ``least`` cells."""
    most = max((reading.read for reading in readings), default=0)
    result: dict[object, Reading] = {}
    if most >= least:
        kind = next(reading.type for reading in readings if reading.read == most)
        for reading in readings:
            if reading.read == most and reading.type == kind:
                result.setdefault(_meaning(reading), reading)
    return tuple(result.values())


def _meaning(reading: Reading) -> object:
    """Return what distinguishes two formats that read the same cells: the order of day and month, or the decimal
    sign."""
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
    """Return the candidate types and formats for cells that match a ``gate`` (one of :data:`_GATES`), the most usual
    first.

    A format of None is the type's own.
    """
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
