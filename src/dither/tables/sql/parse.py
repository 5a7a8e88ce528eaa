"""SQL to a question: one SELECT over the card's table, or an InvalidArgument that names the nearest thing that works.

Understood
    Aggregates (:mod:`dither.tables.sql.aggregates`) and arithmetic on them; WHERE with comparisons, AND, OR, NOT, IN,
    BETWEEN, LIKE, IS NULL, + - * /, CASE, COALESCE, NULLIF, ABS, LOWER, UPPER, date_trunc and WIDTH_BUCKET; dates as
    '2024-01-01', DATE '…' or TIMESTAMP '…'; GROUP BY columns, expressions, names given by AS, and positions; HAVING,
    ORDER BY and LIMIT on the noisy answer; FROM (SELECT … FROM table WHERE …) of rows; JOIN and LEFT JOIN to a public
    table on one equality; ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon, delta, max_groups_contributed,
    max_rows_per_group, privacy_unit_column)`` and its bounds, as BigQuery has them.

Different from what an engine does
    ``/`` never cuts off, and is NULL where the divisor is 0. WIDTH_BUCKET is NULL outside of its limits, and its last
    bucket contains the upper limit. NULLs sort last.

A name in GROUP BY or HAVING that is a column of the table and also, by AS, something else is refused: engines differ
in what they make of it.

Which of several private tables a statement is about.
"""

from __future__ import annotations

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card
from dither.tables.card.values import clip
from dither.tables.query.operations.base import refuse_sql
from dither.tables.query.resolve import spelling
from dither.tables.query.tree import Query
from dither.tables.sql.blocks import has_outer_part, read_blocks, read_select
from dither.tables.sql.expressions import is_aggregate
from dither.tables.sql.same_person import with_person_joins
from dither.tables.sql.scopes import write_windows_out
from dither.tables.sql.text import statement

_NEVER = "single rows are never released"


def parse(text: str, card: Card) -> Query:
    """The question that a SELECT asks of the card's table.

    >>> from dither.tables.card.model import ColumnCard
    >>> visits = Card("visits", "visits.csv", {"region": ColumnCard("text"), "amount": ColumnCard("number", (0, 9))})
    >>> question = parse("SELECT region, SUM(amount) / COUNT(*) AS m FROM visits GROUP BY region", visits)
    >>> list(question.aggregates), question.groups[0].name
    (['sum_amount', 'count'], 'region')
    >>> parse("SELECT SUM(amuont) FROM visits", visits)
    Traceback (most recent call last):
    dither.InvalidArgument: column: expected a column of the table, got 'amuont'. Fix: write amount, the nearest name.
    """
    tree, options = statement(text, card.name, list(card.columns), example(card))
    write_windows_out(tree)
    with_person_joins(tree, card)
    try:
        return read_select(tree, options, card)
    except InvalidArgument as error:
        return _with_post_processing(tree, options, card, error)


def example(card: Card) -> str:
    """A question about the table, for refusals.

    >>> from dither.tables.card.model import ColumnCard
    >>> example(Card("visits", "visits.csv", {"person": ColumnCard("text"), "vip": ColumnCard("boolean")}, "person"))
    'SELECT vip, COUNT(*) FROM visits GROUP BY vip'
    """
    columns = {name: item for name, item in card.columns.items() if name != card.unit}
    suitable = [name for name, item in columns.items() if item.keys or item.type == "boolean"]
    suitable += [name for name, item in columns.items() if item.type == "text"]
    if not suitable:
        return f"SELECT COUNT(*) FROM {_written(card.name)}"
    name = _written(suitable[0])
    return f"SELECT {name}, COUNT(*) FROM {_written(card.name)} GROUP BY {name}"


def _written(name: str) -> str:
    """A name as SQL writes it: in quotes where it has spaces or signs."""
    return exp.to_identifier(name).sql("duckdb")


def _with_post_processing(tree: exp.Query, options: dict[str, exp.Expr], card: Card, error: InvalidArgument) -> Query:
    """The question of a statement that one SELECT with its shape cannot say, for a reason that the error states."""
    try:
        return read_blocks(tree, options, card)
    except InvalidArgument as other:
        refusal = other if has_outer_part(tree) else error
    raise _single_rows(tree, card) or refusal


def _single_rows(tree: exp.Query, card: Card) -> InvalidArgument | None:
    """The refusal of a SELECT of the table's rows, with a question in its place."""
    start = tree.args.get("from_")
    if not isinstance(tree, exp.Select) or start is None or start.this.name.casefold() != card.name.casefold():
        return None
    columns = [item.unalias() for item in tree.expressions]
    if tree.args.get("group") or any(is_aggregate(node) for item in columns for node in item.walk()):
        return None
    stars = [item for item in columns if item.is_star]
    names = [spelling(item.name, card.columns) for item in columns if isinstance(item, exp.Column)]
    if stars:
        fix = f"write for example {example(card)}"
        return refuse_sql("groups and aggregates", "*, which means all columns", f"{fix}: {_NEVER}")
    grouped = [name for name in names if name is not None and name != card.unit]
    if len(grouped) != len(columns) or not columns:
        return None
    listed = ", ".join(map(_written, grouped))
    got = "SELECT DISTINCT of rows" if tree.args.get("distinct") else f"the column {grouped[0]} outside of aggregates"
    fix = f"write SELECT {listed}, COUNT(*) FROM {_written(card.name)} GROUP BY {listed}: {_NEVER}"
    return refuse_sql("groups and aggregates", got, fix)


def named_tables(text: str, card: Card) -> tuple[str, ...]:
    """The private tables of the card that a statement names, in the card's spelling and the order of the statement.

    >>> from dither.tables.card.model import ColumnCard, PrivateTable
    >>> visits = PrivateTable("visits.csv", {"patient": ColumnCard("integer")}, "patient")
    >>> named_tables("SELECT COUNT(*) FROM Visits", Card("clinic", "", {}, tables={"visits": visits}))
    ('visits',)
    """
    names = list(card.private_tables)
    tree, _ = statement(text, names[0])
    for item in tree.find_all(exp.CTE):
        if spelling(item.alias, names):
            got = f"{clip(item.alias)!r}, a table of the card"
            raise refuse_sql("a new name after WITH", got, "choose another name")
    written = [spelling(table.name, names) for table in tree.find_all(exp.Table) if not table.args.get("db")]
    about = list(dict.fromkeys(name for name in written if name is not None))
    expected = f"FROM one of {', '.join(names)}"
    if not about:
        raise refuse_sql(expected, "none of them", f"write SELECT COUNT(*) FROM {names[0]}, for example")
    return tuple(about)
