"""The guided form: a table, what to measure, groups, conditions and an accuracy; it becomes the SQL that is asked.

The form offers only what the card allows. Whatever is sent is checked against the card again: names are those of
columns, and values are written as literals of the column's type, so no text from the form becomes SQL of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from dither.errors import InvalidArgument
from dither.wire.numbers import decimal

PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_KEYWORDS = frozenset({
    "all", "and", "any", "as", "asc", "between", "by", "case", "cast", "cross", "date", "day", "desc", "distinct",
    "else", "end", "except", "exists", "false", "filter", "for", "from", "full", "group", "having", "in", "inner",
    "interval", "intersect", "into", "is", "join", "left", "like", "limit", "month", "natural", "not", "null",
    "offset", "on", "or", "order", "outer", "over", "partition", "qualify", "right", "rollup", "select", "set",
    "some", "table", "then", "time", "timestamp", "to", "true", "union", "unique", "using", "values", "when", "where",
    "window", "with", "year",
})  # fmt: skip
OPERATORS = {
    "=": "is",
    "<>": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
}
MAX_CONDITIONS = 3
_MEASURES_OF_COLUMN = {
    "avg": ("AVG", "Average of {}", "average_{}"),
    "sum": ("SUM", "Total of {}", "total_{}"),
    "median": ("MEDIAN", "Median of {}", "median_{}"),
}


@dataclass(frozen=True)
class GuidedColumn:
    """What the form needs to know of a column."""

    name: str
    type: str
    bounded: bool = False
    keys: tuple[str, ...] | None = None
    person: bool = False


@dataclass(frozen=True)
class Measure:
    """Something to measure: what the form calls it, and how it is written."""

    value: str
    label: str
    sql: str
    name: str


@dataclass(frozen=True)
class Condition:
    """A condition as it was sent."""

    column: str
    operator: str
    value: str


def measures(columns: Sequence[GuidedColumn]) -> list[Measure]:
    """What can be measured: rows, people, and of columns of numbers with bounds their average, total and median.

    >>> columns = [GuidedColumn("who", "integer", person=True), GuidedColumn("age", "integer", True)]
    >>> [item.label for item in measures(columns)]
    ['Number of rows', 'Number of people', 'Average of age', 'Total of age', 'Median of age']
    """
    result = [Measure("rows", "Number of rows", "COUNT(*)", "number_of_rows")]
    for column in columns:
        if column.person:
            sql = f"COUNT(DISTINCT {identifier(column.name)})"
            result.append(Measure("people", "Number of people", sql, "number_of_people"))
    for column in columns:
        if column.bounded and column.type in ("integer", "number") and not column.person:
            for kind, (function, label, name) in _MEASURES_OF_COLUMN.items():
                sql = f"{function}({identifier(column.name)})"
                result.append(
                    Measure(f"{kind}:{column.name}", label.format(column.name), sql, name.format(column.name))
                )
    return result


def group_columns(columns: Sequence[GuidedColumn]) -> list[GuidedColumn]:
    """The columns whose values can be groups: neither the person nor fractions, nor numbers without keys.

    >>> [item.name for item in group_columns([GuidedColumn("region", "text"), GuidedColumn("age", "integer", True)])]
    ['region']
    """
    return [
        column
        for column in columns
        if not column.person and (column.keys is not None or column.type in ("text", "boolean"))
    ]


def sql_of(
    table: str,
    columns: Sequence[GuidedColumn],
    chosen: Sequence[str],
    groups: Sequence[str],
    conditions: Sequence[Condition],
) -> str:
    """The SQL of what was chosen.

    >>> columns = [GuidedColumn("region", "text", keys=("north",)), GuidedColumn("amount", "number", True)]
    >>> print(sql_of("visits", columns, ["rows", "avg:amount"], ["region"], [Condition("amount", ">", "10")]))
    SELECT region, COUNT(*) AS number_of_rows, AVG(amount) AS average_amount
    FROM visits
    WHERE amount > 10
    GROUP BY region
    """
    known = {column.name: column for column in columns}
    allowed = {item.value: item for item in measures(columns)}
    groupable = {column.name for column in group_columns(columns)}
    if not chosen:
        raise InvalidArgument("measure", "at least one", "none", "choose what to measure")
    for value in chosen:
        if value not in allowed:
            raise InvalidArgument("measure", "one that the form offers", "another", "choose one of the list")
    for name in groups:
        if name not in groupable:
            raise InvalidArgument("groups", "columns that the form offers", "another", "choose from the list")
    shown = [identifier(name) for name in groups]
    shown += [f"{allowed[value].sql} AS {identifier(allowed[value].name)}" for value in chosen]
    lines = [f"SELECT {', '.join(shown)}", f"FROM {identifier(table)}"]
    written = [_condition(item, known) for item in conditions if item.column]
    lines += [f"WHERE {' AND '.join(written)}"] if written else []
    lines += [f"GROUP BY {', '.join(identifier(name) for name in groups)}"] if groups else []
    return "\n".join(lines)


def _condition(condition: Condition, known: Mapping[str, GuidedColumn]) -> str:
    column = known.get(condition.column)
    if column is None:
        raise InvalidArgument("filter", "a column of the table", "another", "choose one of the list")
    if condition.operator not in OPERATORS:
        raise InvalidArgument("filter", f"one of {', '.join(OPERATORS.values())}", "another", "choose one")
    return f"{identifier(column.name)} {condition.operator} {literal(condition.value, column.type)}"


def identifier(name: str) -> str:
    """A name as SQL writes it, in quotes where it needs them.

    >>> identifier("amount"), identifier("Total paid"), identifier('a"b'), identifier("order")
    ('amount', '"Total paid"', '"a""b"', '"order"')
    """
    if PLAIN_NAME.fullmatch(name) and name not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def literal(text: str, type: str) -> str:
    """A value from the form as a literal of SQL; refused where it is not of the column's type.

    >>> literal("O'Brien", "text"), literal("1e3", "number"), literal("2026-01-31", "date"), literal("yes", "boolean")
    ("'O''Brien'", '1000', "DATE '2026-01-31'", 'TRUE')
    >>> literal("1 OR 1=1", "integer")
    Traceback (most recent call last):
    dither.InvalidArgument: filter: expected a number, got another text. Fix: write digits, as in 10 or 2.5.
    """
    plain = text.strip()
    if type in ("integer", "number"):
        value = decimal(plain)
        if value is None:
            raise InvalidArgument("filter", "a number", "another text", "write digits, as in 10 or 2.5")
        return f"{int(value)}" if value == int(value) and abs(value) < 2**53 else repr(value)
    if type == "boolean":
        if plain.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise InvalidArgument("filter", "true or false", "another text", "write true or false")
        return "TRUE" if plain.lower() in ("true", "yes", "1") else "FALSE"
    if type in ("date", "timestamp"):
        try:
            moment = date.fromisoformat(plain) if type == "date" else datetime.fromisoformat(plain)
        except ValueError:
            raise InvalidArgument("filter", "a date", "another text", "write it as 2026-01-31") from None
        return f"DATE '{moment.isoformat()}'" if type == "date" else f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}'"
    return "'" + text.replace("'", "''") + "'"
