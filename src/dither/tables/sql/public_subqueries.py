"""Subqueries in expressions that read public tables alone: computed when the question is read, and then constants.

``WHERE amount > (SELECT AVG(price) FROM goods)`` and ``WHERE region IN (SELECT region FROM places WHERE coast)`` say
something about rows that anybody could have written as a number or a list, since whatever a public table holds is
public. So the question that is planned, charged and recorded has the values, not the subquery: it is asked anew when
they have changed.

A subquery that names a column of the query around it cannot be computed by itself. It is left as it is, for the rules
of joins and of EXISTS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card
from dither.tables.card.values import Value
from dither.tables.query.operations.base import refuse_sql
from dither.tables.query.relations import spelling
from dither.tables.query.tree import PostProcessing
from dither.tables.sql.scopes import with_item

if TYPE_CHECKING:
    from dither.tables.query.postprocess import PostProcessedTable

MOST_VALUES = 1000
"""How many values a list from a public table may have, as what is written in brackets may."""
ComputePublic = Callable[[PostProcessing], "PostProcessedTable"]
"""Computes SQL that reads public tables alone."""


def public_tables_read(tree: exp.Expr, card: Card) -> tuple[str, ...]:
    """Return the public tables that a query reads, each once, in the spelling of the card."""
    names = [spelling(table.name, card.public) for table in _tables(tree)]
    return tuple(dict.fromkeys(name for name in names if name is not None))


def reads_public_alone(tree: exp.Expr, card: Card) -> bool:
    """Return whether a query reads tables, and all of them are public."""
    tables = list(_tables(tree))
    named = all(isinstance(table.this, exp.Identifier) and not table.args.get("db") for table in tables)
    return bool(tables) and named and all(spelling(table.name, card.public) is not None for table in tables)


def _tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield the tables that a query reads, other than items of WITH."""
    return (table for table in tree.find_all(exp.Table) if with_item(table) is None)


def write_public_values(tree: exp.Query, card: Card, compute: ComputePublic) -> None:
    """Replace every subquery in an expression that reads public tables alone by its values.

    ``x = ANY (SELECT …)`` is ``x IN (SELECT …)``. ``x IN (SELECT key FROM table)`` stays, since engines join it.
    """
    if not card.public:
        return
    for equality in list(tree.find_all(exp.EQ)):
        listed = _query(equality.expression.this) if isinstance(equality.expression, exp.Any) else None
        if isinstance(listed, exp.Query):
            equality.replace(exp.In(this=equality.this.copy(), query=exp.Subquery(this=listed.copy())))
    for node in list(tree.find_all(exp.In, exp.Exists, exp.Subquery)):
        query = _query(node.args.get("query") if isinstance(node, exp.In) else node.this)
        in_expression = not isinstance(node.parent, (exp.From, exp.Join, exp.In, exp.Exists, exp.CTE, exp.Query))
        if not isinstance(query, exp.Query) or not in_expression or not reads_public_alone(query, card):
            continue
        if isinstance(node, exp.In) and _is_whole_column(query):
            continue
        known = _computed(query, card, compute)
        if known is None:
            continue
        if isinstance(node, exp.Exists):
            node.replace(exp.Boolean(this=bool(known.rows)))
        elif len(known.names) != 1:
            raise refuse_sql("one column in a subquery of an expression", str(len(known.names)), "name one column")
        elif isinstance(node, exp.In):
            _write_list(node, [row[0] for row in known.rows])
        else:
            if len(known.rows) > 1:
                fix = "aggregate in the subquery, or write IN (SELECT …)"
                raise refuse_sql("one value of a subquery", f"{len(known.rows):,} rows", fix)
            node.replace(constant_node(known.rows[0][0] if known.rows else None))


def _query(node: exp.Expr | None) -> exp.Expr | None:
    """Return the query inside brackets."""
    while isinstance(node, (exp.Subquery, exp.Paren)):
        node = node.this
    return node


def _is_whole_column(query: exp.Expr) -> bool:
    """Return whether a query is ``SELECT column FROM table``, with nothing else."""
    parts = {name for name, part in query.args.items() if part}
    plain = parts <= {"expressions", "from_", "distinct"} and len(query.expressions) == 1
    return plain and isinstance(query.expressions[0], exp.Column) and isinstance(query.args["from_"].this, exp.Table)


def _computed(query: exp.Query, card: Card, compute: ComputePublic) -> PostProcessedTable | None:
    """Return what a query makes of public tables; None where it cannot be computed by itself."""
    from dither.tables.sql.parse import render

    known = public_tables_read(query, card)
    try:
        return compute(PostProcessing(render(query.copy(), public=known), table="", public=known))
    except InvalidArgument:
        return None


def _write_list(node: exp.In, values: list[Value]) -> None:
    """Write a list of values into ``x IN (SELECT …)``; without any, it is FALSE whatever x is."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) > MOST_VALUES:
        fix = "join the table, or name a column of it: IN (SELECT key FROM table)"
        raise refuse_sql(f"at most {MOST_VALUES:,} values in IN (SELECT …)", f"{len(distinct):,}", fix)
    if distinct:
        node.set("query", None)
        node.set("expressions", [constant_node(value) for value in distinct])
    else:
        node.replace(exp.Boolean(this=False))


def constant_node(value: Value) -> exp.Expr:
    """Return a value as a constant in SQL."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, (int, float)):
        number: exp.Expr = exp.Literal.number(repr(abs(value)))
        return exp.Neg(this=number) if value < 0 else number
    if isinstance(value, (date, datetime)):
        kind = exp.DataType.Type.TIMESTAMP if isinstance(value, datetime) else exp.DataType.Type.DATE
        return exp.Cast(this=exp.Literal.string(str(value)), to=exp.DataType(this=kind))
    return exp.Literal.string(value)
