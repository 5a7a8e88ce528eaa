"""Parsed form fields, the SQL of the guided form, and the texts that describe a table's public card."""

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
from dither.present.text import shown, significant
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from dither.tables.codec import decimal
from dither.tables.query.operations import FUNCTIONS
from dither.tables.sql.aggregates import AGGREGATES

FLAGS = {
    "bias": "Estimate how much the limits leave out",
    "quantile_interval": "Give medians and quantiles a ±",
    "other": "Add a row for all groups that are not shown",
    "integer": "Round counts and sums to whole numbers",
    "force": "Ask even if the answer is expected to be mostly noise",
    "nonnegative": "Round negative counts and sums up to 0",
    "again": "Ask and pay again, even if this was answered before",
}
"""The checkboxes of a question's form: the option of a release, and its label."""
DEFAULT_EPSILON = "0.1"


def text_of(form: FormData, name: str, most: int = 20_000) -> str:
    """Return the text field ``name`` of a form without surrounding spaces and with plain line ends; a missing field is
    empty.

    Refuse one of more than ``most`` characters.
    """
    value = form.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise InvalidArgument(name, f"at most {most:,} characters", "more", "shorten it")
    return value.replace("\r\n", "\n").strip()


def texts_of(form: FormData, name: str) -> list[str]:
    """Return all values of a field that may occur several times."""
    return [value for value in form.getlist(name) if isinstance(value, str)]


@dataclass(frozen=True)
class QuestionFields:
    """The fields of a question's form as the user filled them in, so that the form can be shown again unchanged."""

    by: str = "epsilon"
    epsilon: str = DEFAULT_EPSILON
    error: str = ""
    flags: tuple[str, ...] = ()

    def options(self) -> dict[str, Any]:
        """Return the options by name, parsed for a release.

        >>> QuestionFields(epsilon="0,5", flags=("bias",)).options()
        {'epsilon': 0.5, 'bias': True}
        >>> QuestionFields(by="error", error="1 %").options()
        {'error': '1%'}
        """
        result: dict[str, Any] = dict.fromkeys(self.flags, True)
        if self.by == "error":
            text = self.error.replace(" ", "")
            return {"error": text if text.endswith("%") else number(text, "±")} | result
        return {"epsilon": number(self.epsilon, "ε")} | result


def question_fields(form: FormData) -> QuestionFields:
    """Return the options that a form was sent with."""
    by = "error" if form.get("by") == "error" else "epsilon"
    flags = tuple(name for name in FLAGS if form.get(name) == "yes")
    return QuestionFields(by, text_of(form, "epsilon", 40), text_of(form, "error", 40), flags)


def number(text: str, name: str) -> float:
    """Parse a positive number; a comma counts as a decimal point."""
    value = decimal(text.strip().replace(",", "."))
    if value is None or value <= 0:
        got = "an empty field" if not text.strip() else "text that is not a number"
        raise InvalidArgument(name, "a number above 0", got, "write a number, as in 0.5")
    return value


def limit_of(form: FormData) -> Guarantee | None:
    """Parse a limit in ε, in ε and δ, or in ρ; None if the fields are empty."""
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


# -- the guided form: a table, what to measure, groups and conditions become the SQL that is asked ------------------

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
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
class GuidedMeasure:
    """A measure that the guided form offers: value and label of its checkbox, its SQL, and the name of its column."""

    value: str
    label: str
    sql: str
    name: str


@dataclass(frozen=True)
class Condition:
    """A condition of the guided form: column, comparison and value as texts."""

    column: str
    operator: str
    value: str


def measures(table: PrivateTable) -> list[GuidedMeasure]:
    """Return what the guided form can measure: rows, people, and average, total and median of bounded numbers."""
    result = [GuidedMeasure("rows", "Number of rows", "COUNT(*)", "number_of_rows")]
    if table.unit is not None:
        sql = f"COUNT(DISTINCT {identifier(table.unit)})"
        result.append(GuidedMeasure("people", "Number of people", sql, "number_of_people"))
    for column, about in table.columns.items():
        if about.bounds is not None and about.type in ("integer", "number") and column != table.unit:
            for kind, (function, label, name) in _MEASURES_OF_COLUMN.items():
                sql = f"{function}({identifier(column)})"
                result.append(GuidedMeasure(f"{kind}:{column}", label.format(column), sql, name.format(column)))
    return result


def group_columns(table: PrivateTable) -> dict[str, ColumnCard]:
    """Return the columns that can be grouped by: those with public keys, text and booleans, but not the column that
    identifies the person."""
    return {
        name: column
        for name, column in table.columns.items()
        if name != table.unit and (column.keys is not None or column.type in ("text", "boolean"))
    }


def sql_of(
    name: str, table: PrivateTable, chosen: Sequence[str], groups: Sequence[str], conditions: Sequence[Condition]
) -> str:
    """Return the SQL for the chosen measures, groups and conditions of the guided form.

    A request may hold other values than the form offers, so everything is checked against the card again: names must be
    those of columns, and values become literals of the column's type. No text from the form can become SQL syntax.

    >>> columns = {"region": ColumnCard("text", keys=("north",)), "amount": ColumnCard("number", bounds=(0, 9))}
    >>> table = PrivateTable("", columns, None)
    >>> print(sql_of("visits", table, ["rows", "avg:amount"], ["region"], [Condition("amount", ">", "10")]))
    SELECT region, COUNT(*) AS number_of_rows, AVG(amount) AS average_amount
    FROM visits
    WHERE amount > 10
    GROUP BY region
    """
    allowed = {item.value: item for item in measures(table)}
    if not chosen:
        raise InvalidArgument("measure", "at least one", "none", "choose what to measure")
    for what, wanted, offered in (("measure", chosen, allowed), ("groups", groups, group_columns(table))):
        if not set(wanted) <= offered.keys():
            raise InvalidArgument(
                what, "one of the choices in the form", "a value that is none of them", "choose from the list"
            )
    shown = [identifier(group) for group in groups]
    shown += [f"{allowed[value].sql} AS {identifier(allowed[value].name)}" for value in chosen]
    lines = [f"SELECT {', '.join(shown)}", f"FROM {identifier(name)}"]
    written = [_condition(item, table.columns) for item in conditions if item.column]
    lines += [f"WHERE {' AND '.join(written)}"] if written else []
    lines += [f"GROUP BY {', '.join(identifier(group) for group in groups)}"] if groups else []
    return "\n".join(lines)


def _condition(condition: Condition, columns: Mapping[str, ColumnCard]) -> str:
    """Return a condition of the guided form as SQL; refuse columns and comparisons that it does not offer."""
    if condition.column not in columns or condition.operator not in OPERATORS:
        raise InvalidArgument(
            "filter", "a column and a comparison that the form offers", "different ones", "choose from the list"
        )
    value = literal(condition.value, columns[condition.column].type)
    return f"{identifier(condition.column)} {condition.operator} {value}"


def identifier(name: str) -> str:
    """Return a name as SQL, quoted where necessary."""
    if _PLAIN_NAME.fullmatch(name) and name not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def literal(text: str, type: str) -> str:
    """Return a text from the form as an SQL literal of a column type; refuse text that is not a value of that type.

    >>> literal("O'Brien", "text"), literal("1e3", "number"), literal("2026-01-31", "date"), literal("yes", "boolean")
    ("'O''Brien'", '1000', "DATE '2026-01-31'", 'TRUE')
    """
    plain = text.strip()
    if type in ("integer", "number"):
        value = decimal(plain)
        if value is None:
            raise InvalidArgument("filter", "a number", "text that is not one", "write digits, as in 10 or 2.5")
        return f"{int(value)}" if value == int(value) and abs(value) < 2**53 else repr(value)
    if type == "boolean":
        if plain.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise InvalidArgument("filter", "true or false", "other text", "write true or false")
        return "TRUE" if plain.lower() in ("true", "yes", "1") else "FALSE"
    if type in ("date", "timestamp"):
        try:
            moment = date.fromisoformat(plain) if type == "date" else datetime.fromisoformat(plain)
        except ValueError:
            raise InvalidArgument("filter", "a date", "text that is not one", "write it as 2026-01-31") from None
        return f"DATE '{moment.isoformat()}'" if type == "date" else f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S}'"
    return "'" + text.replace("'", "''") + "'"


# -- what is public about a table, in words -------------------------------------------------------------------------

_SUGGESTED = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "AS", "AND", "OR", "NOT", "BETWEEN", "IN", "IS NULL",
             "CASE WHEN", "THEN", "ELSE", "END", "DISTINCT", "LIMIT", "HAVING", "JOIN", "ON", "ROLLUP")  # fmt: skip
MAX_KEYS_SHOWN = 12


@dataclass(frozen=True)
class ColumnWords:
    """A column as texts for a page; ``forbids`` says what cannot be asked about it, ``person`` that it identifies
    the person."""

    name: str
    type: str
    bounds: str
    keys: str
    forbids: str
    person: bool


def tables_in_words(card: Card) -> dict[str, list[ColumnWords]]:
    """Return the columns of each table of a card as texts for a page, private tables first."""
    private = {
        name: [_column(column, about, table.unit, card) for column, about in table.columns.items()]
        for name, table in card.private_tables.items()
    }
    public = {
        name: [_column(column, about, None, None) for column, about in table.columns.items()]
        for name, table in card.public.items()
    }
    return private | public


def _column(name: str, column: ColumnCard, unit: str | None, card: Card | None) -> ColumnWords:
    """Describe a column; ``unit`` is the column that identifies the person, ``card`` is None for public tables."""
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
    """Return what cannot be asked about a column because the card states no bounds, keys or δ, in words; empty if
    everything can."""
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
    """Return how much one person can contribute to an answer, as a sentence.

    >>> contribution(Card("t", "", {"who": ColumnCard("integer")}, "who", max_groups=2, max_rows="auto"))
    'In at most 2 groups of an answer, with a privately chosen number of rows in each.'
    """
    if card.unit is None and not any(table.unit for table in card.private_tables.values()):
        return "One row: each row is a person."
    groups = "a privately chosen number of groups of an answer"
    if card.max_groups != "auto":
        groups = f"at most {card.max_groups} group{'' if card.max_groups == 1 else 's'} of an answer"
    rows = "a privately chosen number of rows in each"
    if card.max_rows != "auto":
        rows = f"at most {card.max_rows} row{'' if card.max_rows == 1 else 's'} in each"
    return f"In {groups}, with {rows}."


def example(card: Card) -> str:
    """Return a first question about a table in SQL: rows by its first column with public keys, or all rows.

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
    """Return the editor's completions as JSON: tables, columns, functions and keywords, each with its kind."""
    words: dict[str, str] = {}
    for table, columns in tables_in_words(card).items():
        words.setdefault(identifier(table), "table")
        for column in columns:
            words.setdefault(identifier(column.name), column.type)
    words |= {f"{name}(": "aggregate" for name in sorted(AGGREGATES) if name.isascii()}
    words |= {f"{name}(": "function" for name in sorted(FUNCTIONS) if f"{name}(" not in words}
    words |= dict.fromkeys(_SUGGESTED, "SQL")
    return json.dumps([*words.items()], ensure_ascii=True)


@dataclass(frozen=True)
class Meter:
    """A budget meter: what is spent and what a question would add, in percent of the limit."""

    spent: float
    now: float
    spent_text: str
    limit_text: str


def meter(spent: float, limit: float | None, now: float = 0.0) -> Meter | None:
    """Return a budget meter; None without a limit.

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
    """Return a budget meter from a limit, what is left of it and the cost of a question, and its unit, ε or ρ.

    ``left=None`` means that nothing is left. There is no meter (None) without a limit, if limit and remainder are in
    different units, and if more is left than the limit. A cost in another unit is not drawn.

    >>> from dither.guarantees import PureDP
    >>> budget_meter(PureDP(2), PureDP(1.5), PureDP(0.5))[0].now
    25.0
    """
    if limit is None:
        return None, "ε"
    unit, size = _amount(limit)
    left_unit, left_size = (unit, 0.0) if left is None else _amount(left)
    if left_unit != unit or left_size > size:  # a limit that was raised in the ledger, and not yet in the card
        return None, unit
    cost_unit, cost_size = (unit, 0.0) if cost is None else _amount(cost)
    return meter(size - left_size, size, cost_size if cost_unit == unit else 0.0), unit


def _amount(guarantee: Guarantee) -> tuple[str, float]:
    """Return unit and size of a guarantee: ρ for zCDP, else ε."""
    return "ρ" if isinstance(guarantee, ZCDP) else "ε", float(guarantee.exact[0])


def options_in_words(options: Any) -> list[str]:
    """Return the options of a question that differ from their defaults, as texts."""
    names = {"epsilon": "ε", "delta": "δ", "error": "±"}
    result = []
    for name, value in dict(options).items():
        if value is True:
            result.append(name)
        elif value not in (None, False, "", "best", "noise"):
            result.append(f"{names.get(name, name)} = {value}")
    return result
