"""Forms: what people write into them as values, the guided form as SQL, and what is public about a table in words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from starlette.datastructures import FormData

from dither.errors import InvalidArgument
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.present.digits import shown, significant
from dither.tables.card.model import Card, ColumnCard
from dither.tables.codec import decimal
from dither.tables.query.operations import FUNCTIONS
from dither.tables.sql.expressions import AGGREGATES

FLAGS = {
    "bias": "Learn how much the limits leave out",
    "quantile_interval": "Give medians and quantiles a ±",
    "other": "One more row for all groups that are not shown",
    "integer": "Counts and sums as whole numbers",
    "force": "Ask although the expected ± is wider than everything the answer could be",
    "nonnegative": "Counts and sums not below 0",
    "again": "Ask anew and pay anew, even if this was answered before",
}
"""The further choices of a question: the option of a release, and the words of the form."""
DEFAULT_EPSILON = "0.1"


def text_of(form: FormData, name: str, most: int = 20_000) -> str:
    """A field of text, without spaces around it; refused if it is too long. Browsers send other ends of lines.

    >>> text_of(FormData([("sql", "SELECT 1\\r\\nFROM t ")]), "sql")
    'SELECT 1\\nFROM t'
    """
    value = form.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise InvalidArgument(name, f"at most {most:,} characters", "more", "shorten it")
    return value.replace("\r\n", "\n").strip()


def texts_of(form: FormData, name: str) -> list[str]:
    """All values of a field that may be sent several times."""
    return [value for value in form.getlist(name) if isinstance(value, str)]


@dataclass(frozen=True)
class AskedOptions:
    """The options of a question as the form has them, so that they are shown again as they were written."""

    by: str = "epsilon"
    epsilon: str = DEFAULT_EPSILON
    error: str = ""
    flags: tuple[str, ...] = ()

    def options(self) -> dict[str, Any]:
        """Return the options by name, as a release takes them.

        >>> AskedOptions(epsilon="0,5", flags=("bias",)).options()
        {'epsilon': 0.5, 'bias': True}
        >>> AskedOptions(by="error", error="1 %").options()
        {'error': '1%'}
        """
        result: dict[str, Any] = dict.fromkeys(self.flags, True)
        if self.by == "error":
            text = self.error.replace(" ", "")
            return {"error": text if text.endswith("%") else number(text, "±")} | result
        return {"epsilon": number(self.epsilon, "ε")} | result


def asked_options(form: FormData) -> AskedOptions:
    """Return the options that a form holds."""
    by = "error" if form.get("by") == "error" else "epsilon"
    flags = tuple(name for name in FLAGS if form.get(name) == "yes")
    return AskedOptions(by, text_of(form, "epsilon", 40), text_of(form, "error", 40), flags)


def number(text: str, name: str) -> float:
    """A positive number; a comma is taken for a decimal point.

    >>> number("0,25", "ε")
    0.25
    >>> number("a lot", "ε")
    Traceback (most recent call last):
    dither.InvalidArgument: ε: expected a number above 0, got another text. Fix: write a number, as in 0.5.
    """
    value = decimal(text.strip().replace(",", "."))
    if value is None or value <= 0:
        got = "nothing" if not text.strip() else "another text"
        raise InvalidArgument(name, "a number above 0", got, "write a number, as in 0.5")
    return value


def limit_of(form: FormData) -> Guarantee | None:
    """A limit in ε, in ε and δ, or in ρ; None where nothing is written.

    >>> limit_of(FormData([("epsilon", "2"), ("delta", "1e-6")]))
    ApproxDP(2, 1e-06)
    """
    epsilon, delta, rho = (text_of(form, name, 40) for name in ("epsilon", "delta", "rho"))
    if rho and (epsilon or delta):
        raise InvalidArgument("limit", "ε (and δ), or ρ", "both", "leave one of them empty")
    if rho:
        return ZCDP(number(rho, "ρ"))
    if delta and not epsilon:
        raise InvalidArgument("limit", "ε beside δ", "δ alone", "write ε as well")
    if not epsilon:
        return None
    return ApproxDP(number(epsilon, "ε"), number(delta, "δ")) if delta else PureDP(number(epsilon, "ε"))


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


_SUGGESTED = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "AS", "AND", "OR", "NOT", "BETWEEN", "IN", "IS NULL",
             "CASE WHEN", "THEN", "ELSE", "END", "DISTINCT", "LIMIT", "HAVING", "JOIN", "ON", "ROLLUP")  # fmt: skip

MAX_KEYS_SHOWN = 12


@dataclass(frozen=True)
class ColumnWords:
    """A column as the page shows it."""

    name: str
    type: str
    bounds: str
    keys: str
    forbids: str
    person: bool


@dataclass(frozen=True)
class TableWords:
    """A table of a card as the page shows it."""

    name: str
    public: bool
    columns: tuple[ColumnWords, ...]


def tables_in_words(card: Card) -> list[TableWords]:
    """The tables of a card, those of people first.

    >>> card = Card("t", "", {"amount": ColumnCard("number")})
    >>> tables_in_words(card)[0].columns[0].forbids
    'SUM, AVG, VAR, STDDEV, MIN, MAX and quantiles: it has no bounds. GROUP BY: it holds fractions.'
    """
    result = [
        TableWords(
            name,
            False,
            tuple(_column(column_name, column, table.unit, card) for column_name, column in table.columns.items()),
        )
        for name, table in card.private_tables.items()
    ]
    for name, public in card.public.items():
        columns = tuple(_column(column_name, column, None, None) for column_name, column in public.columns.items())
        result.append(TableWords(name, True, columns))
    return result


def _column(name: str, column: ColumnCard, unit: str | None, card: Card | None) -> ColumnWords:
    ends = column.bounds or column.period
    bounds = f"{shown(ends[0])} to {shown(ends[1])}" if ends else ""
    keys = ""
    if column.keys is not None:
        keys = ", ".join("NULL" if key is None else shown(key) for key in column.keys[:MAX_KEYS_SHOWN])
        more = len(column.keys) - MAX_KEYS_SHOWN
        keys += f" and {more} more" if more > 0 else ""
    person = name == unit
    forbids = "" if card is None else _forbids(column, card) if not person else "Grouping by it, and single people."
    return ColumnWords(name, column.type, bounds, keys, forbids, person)


def _forbids(column: ColumnCard, card: Card) -> str:
    """What cannot be asked of a column because of what the card does not say."""
    result = []
    if column.type in ("integer", "number") and column.bounds is None and column.keys is None:
        result.append("SUM, AVG, VAR, STDDEV, MIN, MAX and quantiles: it has no bounds.")
    if column.keys is None and column.type == "number":
        result.append("GROUP BY: it holds fractions.")
    elif column.keys is None and column.type == "text":
        few = "GROUP BY shows only groups with enough people: its keys are not public."
        result.append(few if card.delta is not None else "GROUP BY: it has no keys, and the card no δ.")
    return " ".join(result)


def contribution(card: Card) -> str:
    """How far one person counts.

    >>> contribution(Card("t", "", {"who": ColumnCard("integer")}, "who", max_groups=2, max_rows="auto"))
    'In at most 2 groups of an answer, with so many rows in each as is chosen privately for each question.'
    """
    if card.unit is None and not any(table.unit for table in card.private_tables.values()):
        return "With one row: every row is a person of its own."
    groups = "as many groups of an answer as is chosen privately for each question"
    if card.max_groups != "auto":
        groups = f"at most {card.max_groups} group{'' if card.max_groups == 1 else 's'} of an answer"
    rows = "so many rows in each as is chosen privately for each question"
    if card.max_rows != "auto":
        rows = f"at most {card.max_rows} row{'' if card.max_rows == 1 else 's'} in each"
    return f"In {groups}, with {rows}."


def guided_columns(card: Card, table: str) -> list[GuidedColumn]:
    """The columns of one table, for the guided form."""
    private = card.private_tables[table]
    return [
        GuidedColumn(
            name,
            column.type,
            column.bounds is not None,
            None if column.keys is None else tuple(shown(key) for key in column.keys),
            name == private.unit,
        )
        for name, column in private.columns.items()
    ]


def example(card: Card) -> str:
    """A first question about a table: rows by the first column with public keys, or all of them.

    >>> print(example(Card("t", "", {"region": ColumnCard("text", keys=("a", "b"))})))
    SELECT region, COUNT(*) AS number_of_rows
    FROM t
    GROUP BY region
    """
    table, private = next(iter(card.private_tables.items()))
    for name, column in private.columns.items():
        if column.keys is not None and name != private.unit:
            group = identifier(name)
            return f"SELECT {group}, COUNT(*) AS number_of_rows\nFROM {identifier(table)}\nGROUP BY {group}"
    return f"SELECT COUNT(*) AS number_of_rows\nFROM {identifier(table)}"


def completion_words(card: Card) -> str:
    """What the editor suggests, as JSON: the names of tables and columns, functions and keywords, with their kinds."""
    words: dict[str, str] = {}
    for table in tables_in_words(card):
        words.setdefault(identifier(table.name), "table")
        for column in table.columns:
            words.setdefault(identifier(column.name), column.type)
    words |= {f"{name}(": "aggregate" for name in sorted(AGGREGATES) if name.isascii()}
    words |= {f"{name}(": "function" for name in sorted(FUNCTIONS) if f"{name}(" not in words}
    words |= dict.fromkeys(_SUGGESTED, "SQL")
    return json.dumps([*words.items()], ensure_ascii=True)


@dataclass(frozen=True)
class Meter:
    """How much of a limit is spent, and how much a question would add, in percent of the limit."""

    spent: float
    now: float
    spent_text: str
    limit_text: str


def meter(spent: float, limit: float | None, now: float = 0.0) -> Meter | None:
    """Return a meter of a budget; None where there is no limit in one number.

    >>> meter(0.5, 2.0, 0.5)
    Meter(spent=25.0, now=25.0, spent_text='0.5', limit_text='2')
    """
    if limit is None or limit <= 0:
        return None
    before, after = (min(100 * total / limit, 100.0) for total in (spent, spent + now))
    return Meter(round(before, 2), round(after - before, 2), significant(spent), significant(limit))


def budget_meter(
    limit: Guarantee | None, left: Guarantee | None, cost: Guarantee | None = None
) -> tuple[Meter | None, str]:
    """Return a meter from a limit, what is left of it and a cost; and the unit.

    >>> from dither.guarantees import PureDP
    >>> budget_meter(PureDP(2), PureDP(1.5), PureDP(0.5))[0].now
    25.0
    """
    if limit is None:
        return None, "ε"
    unit, size = _amount(limit)
    rest_unit, rest = (unit, 0.0) if left is None else _amount(left)
    if rest_unit != unit or rest > size:  # a limit that was raised in the ledger, and not yet in the card
        return None, unit
    cost_unit, added = (unit, 0.0) if cost is None else _amount(cost)
    return meter(max(size - rest, 0.0), size, added if cost_unit == unit else 0.0), unit


def _amount(guarantee: Guarantee) -> tuple[str, float]:
    """Return the unit that a guarantee is counted in, and how much of it it is."""
    return "ρ" if isinstance(guarantee, ZCDP) else "ε", float(guarantee.exact[0])


def options_in_words(options: Any) -> list[str]:
    """The options of a question that say something.

    >>> options_in_words({"epsilon": 0.5, "bias": True, "again": False})
    ['ε = 0.5', 'bias']
    """
    names = {"epsilon": "ε", "delta": "δ", "error": "±"}
    result = []
    for name, value in dict(options).items():
        if value is True:
            result.append(name)
        elif value not in (None, False, "", "best", "noise"):
            result.append(f"{names.get(name, name)} = {value}")
    return result
