"""What is public about a table in words: its columns, what each gap forbids, and how far a person counts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from dither.server.pages.charts import Meter, meter
from dither.server.pages.guided import GuidedColumn, identifier
from dither.tables.answer import shown
from dither.tables.card.model import Card, ColumnCard
from dither.tables.query.operations import FUNCTIONS
from dither.tables.sql.expressions import AGGREGATES

_AMOUNT = re.compile(r"(ε|ρ) = ([0-9.]+(?:e[-+]?[0-9]+)?)|\(ε, δ\) = \(([0-9.]+(?:e[-+]?[0-9]+)?)")
_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "AS", "AND", "OR", "NOT", "BETWEEN", "IN", "IS NULL",
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
    words |= dict.fromkeys(_KEYWORDS, "SQL")
    return json.dumps([*words.items()], ensure_ascii=True)


def amount(text: str) -> tuple[str, float] | None:
    """The ε or ρ that a text begins with.

    >>> amount("ε = 0.5"), amount("(ε, δ) = (2, 1e-06)"), amount("ρ = 0.1 (zCDP)"), amount("nothing")
    (('ε', 0.5), ('ε', 2.0), ('ρ', 0.1), None)
    """
    result = _AMOUNT.match(text)
    if result is None:
        return None
    return (result[1], float(result[2])) if result[1] else ("ε", float(result[3]))


def budget_meter(limit: str, left: str, cost: str = "") -> tuple[Meter | None, str]:
    """A meter from a limit, what is left of it and a cost, all in words; and the unit.

    >>> budget_meter("ε = 2", "ε = 1.5", "ε = 0.5")[0].now
    25.0
    """
    whole, rest, now = amount(limit), amount(left), amount(cost)
    if whole is None:
        return None, "ε"
    unit, size = whole
    remaining = rest[1] if rest is not None and rest[0] == unit else 0.0 if left.startswith("nothing") else None
    if remaining is None or remaining > size:  # a limit that was raised in the ledger, and not yet in the card
        return None, unit
    added = now[1] if now is not None and now[0] == unit else 0.0
    return meter(max(size - remaining, 0.0), size, added), unit


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
