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
"""

from __future__ import annotations

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card
from dither.tables.query.tree import Query
from dither.tables.sql.blocks import has_outer_part, read_blocks, read_select
from dither.tables.sql.text import statement


def parse(text: str, card: Card) -> Query:
    """The question that a SELECT asks of the card's table.

    >>> from dither.tables.card.model import ColumnCard
    >>> visits = Card("visits", "visits.csv", {"region": ColumnCard("text"), "amount": ColumnCard("number", (0, 9))})
    >>> question = parse("SELECT region, SUM(amount) / COUNT(*) AS m FROM visits GROUP BY region", visits)
    >>> list(question.aggregates), question.groups[0].name
    (['sum_amount', 'count'], 'region')
    >>> parse("SELECT SUM(amuont) FROM visits", visits)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dither.InvalidArgument: column: expected a column of the table, got 'amuont'. Fix: write 'amount', ...
    """
    tree, options = statement(text, card.name)
    try:
        return read_select(tree, options, card)
    except InvalidArgument as error:
        return _with_post_processing(tree, options, card, error)


def _with_post_processing(tree: exp.Query, options: dict[str, exp.Expr], card: Card, error: InvalidArgument) -> Query:
    """The question of a statement that one SELECT with its shape cannot say, for a reason that the error states."""
    try:
        return read_blocks(tree, options, card)
    except InvalidArgument as other:
        refusal = other if has_outer_part(tree) else error
    raise refusal
