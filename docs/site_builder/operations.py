"""The page of SQL operations: the table that dither itself reads, row by row."""

from __future__ import annotations

from dither.tables.query import operations
from dither.tables.query.operations import OPERATIONS
from dither.tables.query.operations.base import Operation

FAMILIES = (
    *(("Arithmetic", "ARITHMETIC"), ("Rounding", "ROUNDING"), ("Functions of numbers", "NUMERIC_FUNCTIONS")),
    *(("Smallest and largest", "EXTREMES"), ("Comparison", "COMPARISON"), ("Logic", "LOGIC")),
    *(("Conditions", "CONDITIONAL"), ("Text", "TEXT"), ("Dates", "DATES")),
    *(("Arithmetic of dates", "DATE_ARITHMETIC"), ("Conversions", "CASTS")),
)
"""The families of operations by their titles, in the order of the table."""


def cell(text: str) -> str:
    """Text of a cell of a Markdown table."""
    return text.replace("|", r"\|").replace("\n", " ")


def code(text: str) -> str:
    """SQL in a cell of a Markdown table."""
    return f"`` {cell(text)} ``" if "`" in text else f"`{cell(text)}`"


def _spelling(row: Operation) -> str:
    """How SQL writes it: its functions, or the operation's own sign."""
    names = (*row.functions, *(item.name for item in row.special_functions))
    return ", ".join(code(name) for name in names) or code(row.name)


def _null(row: Operation) -> str:
    if row.null_where:
        return row.null_where
    return "where an argument is" if row.strict else ""


def row_of(row: Operation) -> str:
    """A line of the table: how it is written, what it means, its range, when it is NULL, examples."""
    examples = "; ".join(code(example) for example in (row.example, *row.examples))
    agree = "" if row.exact else " Engines agree to 1e-12."
    cells = (_spelling(row), cell(row.meaning) + agree, cell(row.range_rule), cell(_null(row)), examples)
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """The whole page."""
    lines = [
        "# SQL operations", "",
        f"The {len(OPERATIONS)} operations on the values of a row, in `SELECT`, `WHERE`, `GROUP BY` and `HAVING`. This page "
        "is made from the table that dither checks, compiles and evaluates questions with, so it cannot differ from "
        "what is accepted. Every operation means the same on DuckDB, PostgreSQL and Spark, and none can fail on a "
        "value: an error would tell something about a row, so the result is NULL instead. Above the private aggregation "
        "any SQL of DuckDB may be used, since it sees the noisy answer only.", "",
        "In the examples `x` is a number, `n` a whole number, `s` a text, `d` a date, `t` a timestamp and `b` true or "
        "false. The range of a number is what sums and means need bounds for: it follows from the card's bounds. "
        "Aggregates are in [the guide to tables](/tables.md).", "",
    ]  # fmt: skip
    for title, family in FAMILIES:
        rows = getattr(operations, family)
        lines += [
            f"## {title}",
            "",
            "| SQL | meaning | range of the result | NULL | examples |",
            "|---|---|---|---|---|",
        ]
        lines += [*map(row_of, rows), ""]
    return "\n".join(lines)
