"""SELECT statements and their clauses as sqlglot nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlglot import exp

from dither.tables.query.nodes import binary


def alias(x: exp.Expr, name: str) -> exp.Expr:
    """A value of a SELECT under a plain name."""
    return exp.Alias(this=x, alias=exp.to_identifier(name))


def relation(source: Any, name: str) -> exp.Expr:
    """A query or a table for FROM, under a plain name.

    >>> select([exp.Star()], relation(exp.to_table("rows"), "t")).sql()
    'SELECT * FROM rows AS t'
    """
    if isinstance(source, exp.Query) and not isinstance(source, exp.Subquery):
        return source.subquery(name, copy=False)
    return exp.alias_(source, name, table=True)


def select(
    columns: Sequence[exp.Expr],
    source: exp.Expr,
    *,
    joins: Sequence[exp.Join] = (),
    where: Sequence[exp.Expr] = (),
    group_by: Sequence[exp.Expr] = (),
) -> exp.Select:
    """A SELECT; of several conditions all must hold."""
    query = exp.Select().select(*columns, copy=False).from_(source, copy=False)
    for item in joins:
        query.append("joins", item)
    if where:
        query.set("where", exp.Where(this=all_of(where)))
    if group_by:
        query.set("group", exp.Group(expressions=list(group_by)))
    return query


def all_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """One condition that holds where all of them hold.

    >>> all_of([exp.column("a"), exp.column("b"), exp.column("c")]).sql()
    'a AND b AND c'
    """
    result = conditions[0]
    for item in conditions[1:]:
        result = binary("and", result, item)
    return result


def join(source: exp.Expr, on: exp.Expr, kind: Literal["", "LEFT", "SEMI"] = "") -> exp.Join:
    """A join, for :func:`select`."""
    side = {"side": "LEFT"} if kind == "LEFT" else {"kind": "SEMI"} if kind == "SEMI" else {}
    return exp.Join(this=source, on=on, **side)


def row_number(order: Sequence[exp.Expr], partition: Sequence[exp.Expr] = ()) -> exp.Expr:
    """The number of a row from 1 on, in this order, within rows that are equal in ``partition``; NULLs come last."""
    ordered = [exp.Ordered(this=item, desc=False, nulls_first=False) for item in order]
    return exp.Window(
        this=exp.RowNumber(), partition_by=list(partition), order=exp.Order(expressions=ordered), over="OVER"
    )


def values(rows: Sequence[Sequence[exp.Expr]], name: str, columns: Sequence[str]) -> exp.Expr:
    """A table of constants, for FROM."""
    tuples = [exp.Tuple(expressions=list(row)) for row in rows]
    identifiers = [exp.to_identifier(item) for item in columns]
    return exp.Values(expressions=tuples, alias=exp.TableAlias(this=exp.to_identifier(name), columns=identifiers))


def count_rows() -> exp.Expr:
    """How many rows there are."""
    return exp.Count(this=exp.Star(), big_int=True)


__all__ = ["alias", "all_of", "count_rows", "join", "relation", "row_number", "select", "values"]
